// Proof harness of hue_arbiter: beats leave in the order in which they were taken, each once, under the number of their port and
// unaltered except for the time of copies. Frames are not interleaved. A MAC port that waits, and does not give way, waits for at most
// MacPorts - 1 frames of other MAC ports, and for one low-priority frame before each of these and before its own. No frame begins
// during a hold, and no group frame when there is no room for it.
//
// Place: scripts/formal. Inputs are free, except that the port `who_i` keeps offering a beat until it is taken. `mark_i` picks any one
// beat when it is taken, `who_i` is any MAC port.
module hue_arbiter_formal
  import hue_pkg::*;
#(
  parameter int unsigned BusBytes = 1,
  parameter int unsigned Share = 2
) (
  input logic                              clk_i,
  input logic                              rst_ni,
  input logic                              hold_i,
  input logic                              pause_i,
  input logic                              backlog_i,
  input logic                              full_i,
  input logic         [InputQueues-1:0]                 s_valid_i,
  input logic         [InputQueues-1:0][8*BusBytes-1:0] s_data_i,
  input logic         [InputQueues-1:0]                 s_last_i,
  input hue_arrival_t [InputQueues-1:0]                 s_arrival_i,
  input logic         [1:0]                             s_cpu_port_i,
  input logic                              c_valid_i,
  input logic [8*BusBytes-1:0]             c_data_i,
  input logic                              c_last_i,
  input logic [2:0]                        c_port_i,
  input hue_arrival_t                      c_arrival_i,
  input logic                              m_ready_i,
  input logic                              mark_i,
  input logic [1:0]                        who_i
);
  // As in the module.
  typedef struct packed {
    hue_arrival_t          arrival;
    logic [2:0]            port;
    logic                  group;
    logic                  first;
    logic                  last;
    logic [8*BusBytes-1:0] data;
  } beat_t;

  logic [InputQueues-1:0] s_ready_o;
  // The class that the input queue reports for each frame.
  hue_class_t [MacPorts-1:0] s_class_i, class_q;
  logic       [MacPorts-1:0] inside_port_q;
  always_comb begin
    for (int unsigned p = 0; p < MacPorts; p++) begin
      s_class_i[p] = inside_port_q[p] ? class_q[p] : class_of(s_data_i[p][0], s_arrival_i[p].len);
    end
  end
  always_ff @(posedge clk_i) begin
    class_q <= s_class_i;
    for (int unsigned p = 0; p < MacPorts; p++) begin
      if (!rst_ni) inside_port_q[p] <= 1'b0;
      else if (s_valid_i[p] && s_ready_o[p]) inside_port_q[p] <= !s_last_i[p];
    end
  end

  logic             c_ready_o, m_valid_o, begun_o, idle_o;
  beat_t            out;
  hue_arbiter #(.BusBytes(BusBytes), .Share(Share)) u_dut (
    .clk_i, .rst_ni, .hold_i, .pause_i, .backlog_i, .full_i, .s_valid_i, .s_ready_o, .s_data_i, .s_last_i, .s_arrival_i,
    .s_class_i, .s_cpu_port_i, .c_valid_i, .c_ready_o, .c_data_i, .c_last_i, .c_port_i, .c_arrival_i,
    .m_valid_o, .m_ready_i, .m_data_o(out.data), .m_first_o(out.first), .m_last_o(out.last), .m_group_o(out.group),
    .m_port_o(out.port), .m_arrival_o(out.arrival), .begun_o, .idle_o
  );

  // The beat that is taken in this clock.
  logic        push, pop, copies, mac, in_inside_q, out_inside_q, in_copy_q, in_group_q, out_group_q, known_q;
  beat_t       in;
  logic [2:0]  in_port_q;
  logic [1:0]  cpu_port_q;
  logic        cpu_inside_q;
  hue_arrival_t arrival_q;
  assign copies = c_valid_i && c_ready_o;
  assign mac = (s_valid_i[MacPorts-1:0] & s_ready_o[MacPorts-1:0]) != '0;
  assign push = (s_valid_i & s_ready_o) != '0 || copies;
  assign pop = m_valid_o && m_ready_i;
  always_comb begin
    in = '0;
    for (int unsigned p = 0; p < InputQueues; p++) begin
      if (s_valid_i[p] && s_ready_o[p]) begin
        in = '{arrival: s_arrival_i[p], port: p < MacPorts ? 3'(p) : {1'b1, s_cpu_port_i}, group: in_group_q, first: !in_inside_q, last: s_last_i[p], data: s_data_i[p]};
        if (!in_inside_q) in.group = p < MacPorts && is_group(s_data_i[p][0], s_arrival_i[p].len);
      end
    end
    if (copies) begin
      in = '{arrival: c_arrival_i, port: c_port_i, group: 1'b0, first: !in_inside_q, last: c_last_i, data: c_data_i};
      in.arrival.time_ns = known_q ? arrival_q.time_ns : u_dut.time_ns_q;
    end
  end

  logic       begun_q, waits_q, told_q;
  logic [1:0] held;
  logic [1:0] who_q, last_q, left;
  logic [2:0] turns_q, lows_q;
  logic       begins, waits, yields;
  assign begins = push && !in_inside_q;
  assign waits = s_valid_i[who_i] && !(in_inside_q && !in_copy_q && in_port_q == 3'(who_i)) && !(begins && !copies && in.port == 3'(who_i));
  assign yields = u_dut.long[who_i] && u_dut.yields_q[who_i];
  assign left = who_i - last_q - 2'd1;

  initial begun_q = 1'b0;
  always_ff @(posedge clk_i) begin
    begun_q <= 1'b1;
    who_q <= who_i;
    cpu_port_q <= s_cpu_port_i;
    if (!rst_ni) cpu_inside_q <= 1'b0;
    else if (s_valid_i[MacPorts] && s_ready_o[MacPorts]) cpu_inside_q <= !s_last_i[MacPorts];
    if (begins && mac) arrival_q <= in.arrival;
    if (!rst_ni) begin
      in_inside_q <= 1'b0;
      out_inside_q <= 1'b0;
      waits_q <= 1'b0;
      told_q <= 1'b0;
      known_q <= 1'b0;
      turns_q <= '0;
      lows_q <= '0;
      last_q <= 2'(MacPorts - 1);
    end else begin
      if (push) begin
        in_inside_q <= !in.last;
        in_port_q <= in.port;
        in_copy_q <= copies;
        in_group_q <= in.group;
      end
      if (pop) begin
        out_inside_q <= !out.last;
        out_group_q <= out.group;
      end
      waits_q <= waits;
      told_q <= begins && !in.group;
      known_q <= known_q || (begins && mac);
      // Frames of others, while `who_i` could begin and does not give way to shorter frames.
      turns_q <= !waits || full_i || yields ? '0 : turns_q + 3'(begins && mac);
      lows_q <= !waits || full_i || yields ? '0 : lows_q + 3'(begins && !mac);
      if (begins && mac) last_q <= in.port[1:0];
    end
  end

  always_comb begin
    if (!begun_q) assume (!rst_ni);
    if (begun_q) assume (who_i == who_q);
    if (begun_q && rst_ni && waits_q) assume (s_valid_i[who_i]);
    // The CPU port is stable from the first beat of a frame to its last.
    if (begun_q && rst_ni && cpu_inside_q) assume (s_cpu_port_i == cpu_port_q);
    if (begun_q && rst_ni) begin
      assert (({c_ready_o, s_ready_o} & ({c_ready_o, s_ready_o} - 1'b1)) == '0);
      assert ((s_ready_o & ~s_valid_i) == '0 && (!c_ready_o || c_valid_i));
      // Whole frames, each from one source.
      if (push && in_inside_q) assert (copies == in_copy_q && (copies || in.port == in_port_q));
      if (m_valid_o) assert (out.first == !out_inside_q && (!out_inside_q || out.group == out_group_q));
      // Which frames may begin.
      if (begins) assert (!hold_i && !(in.group && full_i));
      if (begins && !mac && backlog_i) assert (u_dut.ahead);
      assert (begun_o == told_q);
      // Fairness.
      assert (turns_q <= 3'(MacPorts - 1) && lows_q <= turns_q + 3'd1);
    end
  end

  // For the induction: the words in the two places of the skid continue the words that left, and precede the next one taken.
  beat_t spare;
  logic  follows;
  assign spare = u_dut.u_out.spare_data_q;
  hue_skid_rules #(.Bits($bits(beat_t))) u_rules (
    .clk_i, .rst_ni, .push_i(push), .in_i(in), .valid_i(m_valid_o), .ready_i(m_ready_i), .out_i(out), .mark_i, .held_o(held),
    .valid_q_i(u_dut.u_out.valid_q), .spare_q_i(u_dut.u_out.spare_q), .spare_data_q_i(spare)
  );
  always_comb begin
    follows = 1'b1;
    if (held == 2'd0) follows = in_inside_q == out_inside_q && (!in_inside_q || in_group_q == out_group_q);
    if (held == 2'd1) follows = in_inside_q == !out.last && (!in_inside_q || in_group_q == out.group);
    if (held == 2'd2) begin
      follows = in_inside_q == !spare.last && (!in_inside_q || in_group_q == spare.group)
                && spare.first == out.last && (spare.first || spare.group == out.group);
    end
    if (begun_q && rst_ni) begin
      assert (follows);
      assert (u_dut.inside_q == in_inside_q);
      if (in_inside_q) assert (u_dut.inside_copy_q == in_copy_q && u_dut.inside_group_q == in_group_q);
      if (in_inside_q && !in_copy_q) assert (u_dut.queue_q == (in_port_q[2] ? 3'(MacPorts) : in_port_q));
      assert (cpu_inside_q == (in_inside_q && !in_copy_q && in_port_q[2]));
      if (cpu_inside_q) assert (cpu_port_q == in_port_q[1:0]);
      if (in_inside_q && in_copy_q) assert (!in_group_q);
      if (known_q) assert (u_dut.time_ns_q == arrival_q.time_ns);
      assert (turns_q + 3'(left) <= 3'(MacPorts - 1));
      // A low-priority frame goes before one of a MAC port only after another frame of a MAC port.
      assert (u_dut.mac_went_q ? lows_q <= turns_q : lows_q <= turns_q + 3'd1);
      for (int unsigned i = 0; i < MacPorts; i++) begin
        assert (u_dut.u_mac.first_q[i] == (2'(i) > last_q) ||
                (u_dut.u_mac.first_q == '1 && 32'(last_q) == MacPorts - 1));
      end
    end
  end
  logic unused;
  assign unused = idle_o;
endmodule
