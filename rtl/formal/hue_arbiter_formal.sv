// Proof harness of hue_arbiter: beats leave in the order they were taken, each once, unaltered, under their port;
// frames are not interleaved; a port that waits sees at most Ports - 1 frames of others go first.
//
// Place: scripts/formal; inputs are free but that a port that offers a beat goes on until it is taken. `mark_i`
// picks any one beat as it is taken, `who_i` is any port.
module hue_arbiter_formal
  import hue_pkg::*;
#(
  parameter int unsigned BusBytes = 1
) (
  input logic                              clk_i,
  input logic                              rst_ni,
  input logic         [Ports-1:0]                 s_valid_i,
  input logic         [Ports-1:0][8*BusBytes-1:0] s_data_i,
  input logic         [Ports-1:0]                 s_last_i,
  input hue_arrival_t [Ports-1:0]                 s_arrival_i,
  input logic                              m_ready_i,
  input logic                              mark_i,
  input logic [2:0]                        who_i
);
  // As in the module.
  typedef struct packed {
    hue_arrival_t          arrival;
    logic [2:0]            port;
    logic                  first;
    logic                  last;
    logic [8*BusBytes-1:0] data;
  } beat_t;

  logic [Ports-1:0] s_ready_o;
  logic             m_valid_o, idle_o;
  beat_t            out;
  hue_arbiter #(.BusBytes(BusBytes)) u_dut (
    .clk_i, .rst_ni, .s_valid_i, .s_ready_o, .s_data_i, .s_last_i, .s_arrival_i,
    .m_valid_o, .m_ready_i, .m_data_o(out.data), .m_first_o(out.first), .m_last_o(out.last), .m_port_o(out.port),
    .m_arrival_o(out.arrival), .idle_o
  );

  // What is taken in this clock.
  logic  push, pop;
  beat_t in;
  logic       in_inside_q, out_inside_q;
  logic [2:0] in_port_q, out_port_q;
  assign push = (s_valid_i & s_ready_o) != '0;
  assign pop = m_valid_o && m_ready_i;
  always_comb begin
    in = '0;
    for (int unsigned p = 0; p < Ports; p++) begin
      if (s_valid_i[p] && s_ready_o[p]) begin
        in = '{arrival: s_arrival_i[p], port: 3'(p), first: !in_inside_q, last: s_last_i[p], data: s_data_i[p]};
      end
    end
  end

  logic       begun_q, marked_q, before_q, waits_q, stalled_q;
  logic [1:0] inside_q;
  beat_t      beat_q, out_q;
  logic [2:0] who_q, last_q, left;
  logic [3:0] turns_q;
  logic       begins, waits;
  assign begins = push && !in_inside_q;
  assign waits = s_valid_i[who_i] && !(in_inside_q && in_port_q == who_i) && !(begins && in.port == who_i);
  assign left = who_i - last_q - 3'd1;

  initial begun_q = 1'b0;
  always_ff @(posedge clk_i) begin
    begun_q <= 1'b1;
    who_q <= who_i;
    out_q <= out;
    if (!rst_ni) begin
      inside_q <= '0;
      marked_q <= 1'b0;
      in_inside_q <= 1'b0;
      out_inside_q <= 1'b0;
      waits_q <= 1'b0;
      stalled_q <= 1'b0;
      turns_q <= '0;
      last_q <= 3'(Ports - 1);
    end else begin
      inside_q <= inside_q + 2'(push) - 2'(pop);
      if (marked_q) begin
        if (pop) before_q <= 1'b0;
        if (pop) marked_q <= before_q;
      end else if (push && mark_i) begin
        marked_q <= 1'b1;
        before_q <= inside_q != 2'(pop);
        beat_q <= in;
      end
      if (push) begin
        in_inside_q <= !in.last;
        in_port_q <= in.port;
      end
      if (pop) begin
        out_inside_q <= !out.last;
        out_port_q <= out.port;
      end
      waits_q <= waits;
      stalled_q <= m_valid_o && !m_ready_i;
      turns_q <= !waits ? '0 : turns_q + 4'(begins);
      if (begins) last_q <= in.port;
    end
  end

  always_comb begin
    if (!begun_q) assume (!rst_ni);
    if (begun_q) assume (who_i == who_q);
    if (begun_q && rst_ni && waits_q) assume (s_valid_i[who_i]);
    if (begun_q && rst_ni) begin
      assert ((s_ready_o & (s_ready_o - 1'b1)) == '0 && (s_ready_o & ~s_valid_i) == '0);
      assert (m_valid_o == (inside_q != '0));
      // In order, each once, as taken.
      if (marked_q && !before_q) assert (m_valid_o && out == beat_q);
      // A beat that waits stands still.
      if (stalled_q) assert (m_valid_o && out == out_q);
      // Whole frames, of one port.
      if (push && in_inside_q) assert (in.port == in_port_q);
      if (m_valid_o) assert (out.first == !out_inside_q && (!out_inside_q || out.port == out_port_q));
      // Fair.
      assert (turns_q <= 4'(Ports - 1));
    end
  end

  // For the induction: what the two places hold follows what left and leads to what is taken next.
  beat_t spare;
  logic  follows;
  assign spare = u_dut.u_out.spare_data_q;
  always_comb begin
    follows = 1'b1;
    if (inside_q == 2'd0) follows = in_inside_q == out_inside_q && (!in_inside_q || in_port_q == out_port_q);
    if (inside_q == 2'd1) follows = in_inside_q == !out.last && (!in_inside_q || in_port_q == out.port);
    if (inside_q == 2'd2) begin
      follows = in_inside_q == !spare.last && (!in_inside_q || in_port_q == spare.port)
                && spare.first == out.last && (spare.first || spare.port == out.port);
    end
    if (begun_q && rst_ni) begin
      assert (follows);
      assert (inside_q <= 2'd2 && 2'(u_dut.u_out.valid_q) + 2'(u_dut.u_out.spare_q) == inside_q);
      assert (u_dut.u_out.valid_q || !u_dut.u_out.spare_q);
      if (marked_q) assert (2'(before_q) < inside_q);
      if (marked_q && before_q) assert (spare == beat_q);
      assert (u_dut.inside_q == in_inside_q && (!in_inside_q || u_dut.port_q == in_port_q));
      assert (turns_q + 4'(left) <= 4'(Ports - 1));
      for (int unsigned i = 0; i < Ports; i++) begin
        assert (u_dut.u_turn.first_q[i] == (3'(i) > last_q) ||
                (u_dut.u_turn.first_q == '1 && 32'(last_q) == Ports - 1));
      end
    end
  end
endmodule
