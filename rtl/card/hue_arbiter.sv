// Merges the frames of the MAC ports, of the CPU queues, and the copies of group frames into one stream.
//
// Place: input queues and hue_flood's copies → **here** → hue_gather, or hue_flood for a group frame of a MAC port. Frames leave
// whole, without gaps inside or between them while any wait.
// Priority: 1. MAC ports, because their lines do not wait: round robin, a frame each. A frame of `LongBytes` or more lets
// shorter ones pass until as many of their beats have passed as it has itself. 2. The CPU queues (in the order of their input
// queue) and copies, which share the remaining clocks evenly, and begin only while no backlog waits in the packet buffer (`backlog_i`).
// So a short frame of a MAC port waits for at most one frame of the greatest length, whoever sends it, and for short frames.
// Minimum share: so that MAC ports that never pause cannot stop CPU queues and copies, these may go first once they have
// waited long enough to use at most one clock in `Share`. Lines leave more clocks than that (ADR 0022). With `pause_i` MAC
// ports can wait, and the share is every second clock.
// With `hold_i` no frame begins; with `full_i` no group frame of a MAC port does.
// A copy gets the arrival time of the latest frame of a MAC port before it, so that time never runs backwards for meters.
// Latency: 1 clock. Throughput: a beat a clock.

module hue_arbiter
  import hue_pkg::*;
#(
  parameter int unsigned BusBytes = 8,
  parameter int unsigned Share = 1024
) (
  input  logic                             clk_i,
  input  logic                             rst_ni,
  input  logic                             hold_i,
  input  logic                             pause_i,
  input  logic                             backlog_i,
  input  logic                             full_i,

  // The input queues: one for each MAC port, and the last one for all CPU queues.
  input  logic         [InputQueues-1:0]                 s_valid_i,
  output logic         [InputQueues-1:0]                 s_ready_o,
  input  logic         [InputQueues-1:0][8*BusBytes-1:0] s_data_i,
  input  logic         [InputQueues-1:0]                 s_last_i,
  input  hue_arrival_t [InputQueues-1:0]                 s_arrival_i,
  input  hue_class_t   [MacPorts-1:0]                    s_class_i,     // stable over a frame
  input  logic         [1:0]                             s_cpu_port_i,  // CPU queue of the last one's frame; stable over it

  // Copies. A copy may change or be withdrawn until its first beat is taken.
  input  logic                  c_valid_i,
  output logic                  c_ready_o,
  input  logic [8*BusBytes-1:0] c_data_i,
  input  logic                  c_last_i,
  input  logic [2:0]            c_port_i,      // port on which the copied frame arrived
  input  hue_arrival_t          c_arrival_i,   // its time is ignored

  output logic                  m_valid_o,
  input  logic                  m_ready_i,
  output logic [8*BusBytes-1:0] m_data_o,
  output logic                  m_first_o,
  output logic                  m_last_o,
  output logic                  m_group_o,     // beat of a frame for hue_flood; stable over the frame
  output logic [2:0]            m_port_o,
  output hue_arrival_t          m_arrival_o,
  output logic                  begun_o,       // a frame for hue_gather began one clock ago
  output logic                  idle_o
);

  localparam logic [2:0] Cpu = 3'(MacPorts);  // index of the CPU queues' input queue
  localparam int unsigned BeatsMax = (FrameBytesMax + BusBytes - 1) / BusBytes;
  localparam int unsigned DebtBits = $clog2(BeatsMax * Share + 1) + 1;
  localparam int unsigned LeadBits = $clog2(BeatsMax + 1) + 2;

  typedef struct packed {
    hue_arrival_t          arrival;
    logic [2:0]            port;
    logic                  group;
    logic                  first;
    logic                  last;
    logic [8*BusBytes-1:0] data;
  } beat_t;

  // Which frame begins, if one may.
  logic [MacPorts-1:0]  group, long, yields_q, mac_waits, mac_short, mac_asks;
  logic                 mac_any, cpu_any, low, copy, begins, ahead;
  logic [1:0]           mac_winner;
  logic [2:0]           winner;   // an input queue
  always_comb begin
    for (int unsigned p = 0; p < MacPorts; p++) begin
      group[p] = s_class_i[p].group;
      long[p] = s_class_i[p].is_long;
      mac_waits[p] = s_valid_i[p] && !(group[p] && full_i);
      mac_short[p] = mac_waits[p] && !(long[p] && yields_q[p]);
    end
`ifdef HUE_PLANT_ARBITER_LONG
    mac_asks = mac_waits;  // for scripts/rtl-test: the bench must find this
`else
    mac_asks = mac_short != '0 ? mac_short : mac_waits;
`endif
  end
  assign cpu_any = s_valid_i[Cpu];

  // The frame that is passing, and what low-priority frames have used so far.
  logic                       inside_q, inside_low_q, inside_copy_q, inside_group_q, ahead_q, mac_went_q, no_debt_q;
  logic [2:0]                 queue_q;
  logic [DebtBits-1:0]        debt_q, debt_d, step;
  logic signed [LeadBits-1:0] lead_q;   // beats of copies less those of CPU queues
  logic [63:0]                time_ns_q;
  logic                       valid, ready, take, is_copy, is_low;
  logic [2:0]                 queue;
  beat_t                      beat, out;

  // Low-priority frames may go first after at least one frame of a MAC port, if they owe nothing. From registers.
  assign ahead = no_debt_q && mac_went_q;
`ifdef HUE_PLANT_ARBITER_PRIORITY
  assign low = (cpu_any || c_valid_i) && (mac_went_q || (!mac_any && !backlog_i));  // for scripts/rtl-test
`else
  assign low = (cpu_any || c_valid_i) && (ahead || (!mac_any && !backlog_i));
`endif
  assign copy = c_valid_i && (!cpu_any || lead_q <= 0);
  assign begins = !hold_i && (low || mac_any);
`ifdef HUE_PLANT_ARBITER_TURN
  assign take = 1'b0;  // for scripts/rtl-test: the bench must find this
`else
  assign take = !inside_q && ready && begins;
`endif
  hue_round_robin #(.Count(MacPorts)) u_mac (
    .clk_i, .rst_ni, .asks_i(mac_asks), .take_i(take && !low), .any_o(mac_any), .winner_o(mac_winner)
  );

  assign winner = low ? Cpu : 3'(mac_winner);
  assign is_low = inside_q ? inside_low_q : low;
  assign is_copy = inside_q ? inside_copy_q : low && copy;
  assign queue = inside_q ? queue_q : winner;
  always_comb begin
    if (!inside_q) valid = begins;
    else valid = inside_copy_q ? c_valid_i : s_valid_i[queue_q];
    beat.arrival = s_arrival_i[queue];
    beat.port = queue == Cpu ? {1'b1, s_cpu_port_i} : queue;
    beat.last = s_last_i[queue];
    beat.data = s_data_i[queue];
    beat.group = 1'b0;
    for (int unsigned p = 0; p < MacPorts; p++) if (queue == 3'(p)) beat.group = group[p];
    if (inside_q) beat.group = inside_group_q;
    if (is_copy) begin
      beat.arrival = c_arrival_i;
`ifdef HUE_PLANT_ARBITER_TIME
      beat.arrival.time_ns = c_arrival_i.time_ns;  // for scripts/rtl-test: the bench must find this
`else
      beat.arrival.time_ns = time_ns_q;
`endif
      beat.port = c_port_i;
      beat.last = c_last_i;
      beat.data = c_data_i;
      beat.group = 1'b0;
    end
    beat.first = !inside_q;
    s_ready_o = '0;
    s_ready_o[queue] = ready && valid && !is_copy;
    c_ready_o = ready && valid && is_copy;
  end

  hue_skid #(.Bits($bits(beat_t))) u_out (
    .clk_i, .rst_ni, .valid_i(valid), .ready_o(ready), .data_i(beat),
    .valid_o(m_valid_o), .ready_i(m_ready_i), .data_o(out)
  );
  assign m_arrival_o = out.arrival;
  assign m_port_o = out.port;
  assign m_first_o = out.first;
  assign m_last_o = out.last;
  assign m_group_o = out.group;
  assign m_data_o = out.data;
  assign idle_o = !inside_q && !m_valid_o;

  // A long frame counts the beats of the short ones that pass it.
  logic [MacPorts-1:0][10:0] passed_q;
  logic                      passes, short_q;
  assign passes = valid && ready && !is_low && (inside_q ? short_q : !long[winner[1:0]]);
  always_ff @(posedge clk_i) begin
    if (valid && ready && !inside_q) short_q <= !low && !long[winner[1:0]];
    for (int unsigned p = 0; p < MacPorts; p++) begin
      if (!rst_ni || (s_valid_i[p] && s_ready_o[p])) begin
        passed_q[p] <= '0;
        yields_q[p] <= 1'b1;
      end else begin
        if (passes && s_valid_i[p] && yields_q[p]) passed_q[p] <= passed_q[p] + 11'd1;
        yields_q[p] <= yields_q[p] && passed_q[p] < beats_of(s_arrival_i[p].len, BusBytes);
      end
    end
  end

  // Each beat of a frame that went ahead costs its class `step` clocks in which it waits for MAC ports.
  assign step = pause_i ? DebtBits'(1) : DebtBits'(Share);
  always_comb begin
    debt_d = debt_q;
    if (valid && ready && (inside_q ? ahead_q : low && ahead)) debt_d = debt_q + step;
    else if (debt_q != '0) debt_d = debt_q - 1'b1;
  end

  always_ff @(posedge clk_i) begin
    if (valid && ready) queue_q <= queue;
    if (valid && ready && !inside_q) begin
      inside_low_q <= low;
      inside_copy_q <= low && copy;
      inside_group_q <= beat.group;
      ahead_q <= low && ahead;
      if (!low) time_ns_q <= s_arrival_i[queue].time_ns;
    end
    if (!rst_ni) begin
      inside_q <= 1'b0;
      begun_o <= 1'b0;
      mac_went_q <= 1'b0;
      no_debt_q <= 1'b0;
      debt_q <= '0;
      lead_q <= '0;
    end else begin
      begun_o <= valid && ready && !inside_q && !beat.group;
      if (valid && ready) inside_q <= !beat.last;
      if (valid && ready && !inside_q) mac_went_q <= !low;
      debt_q <= debt_d;
      no_debt_q <= debt_d == '0;
      if (valid && ready && is_low) begin
        if (is_copy && lead_q != LeadBits'(BeatsMax)) lead_q <= lead_q + 1'b1;
        if (!is_copy && lead_q != -LeadBits'(BeatsMax)) lead_q <= lead_q - 1'b1;
      end
    end
  end

`ifndef SYNTHESIS
  a_one_port: assert property (@(posedge clk_i) disable iff (!rst_ni) $onehot0({c_ready_o, s_ready_o}));
  a_no_bubble: assert property (@(posedge clk_i) disable iff (!rst_ni)
    (!inside_q && mac_any && !hold_i && ready) |=> m_valid_o);
  a_latency: assert property (@(posedge clk_i) disable iff (!rst_ni) (valid && ready) |=> m_valid_o);
  a_held: assert property (@(posedge clk_i) disable iff (!rst_ni) (hold_i && valid) |-> inside_q);
  // Beside frames of other MAC ports, a MAC port waits for at most one frame: a low-priority one begins before it only if it may
  // go ahead.
  a_priority: assert property (@(posedge clk_i) disable iff (!rst_ni)
    (valid && ready && !inside_q && low && mac_any) |-> ahead);
`endif

endmodule
