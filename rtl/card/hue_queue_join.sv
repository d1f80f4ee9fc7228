// A written frame joins its queue. If the queue has frames, it is linked to the last one; if not, its network is put on the port's
// list.
//
// Place: inside hue_output_queues: hue_queue_write → **here** → hue_queue_lists, hue_queue_turns. A frame that joins in a clock
// already counts for what is decided about its queue in that clock.
// Waiting: each queue has a phase bit, which toggles when the queue begins to wait. When the queue is emptied, the phase is
// copied to a second memory, written by that side only. The queue waits while the two differ.
// `waits_o` shows which networks wait at MAC ports. When a queue is emptied this shows one clock later, unless a frame joins in
// that clock.
//
// Latency: 2 clocks from a frame's last beat until it joins; a clock more until `waits_o`. Throughput: a frame a clock.
module hue_queue_join
  import hue_pkg::*;
#(
  parameter int unsigned Nets = 64,
  parameter int unsigned CellBits = 10,
  localparam int unsigned NetBits = Nets > 1 ? $clog2(Nets) : 1,
  localparam int unsigned QueueBits = $clog2(Ports) + NetBits
) (
  input  logic                 clk_i,
  input  logic                 rst_ni,
  input  logic                 clearing_i,      // after reset, the memories indexed by queue are cleared
  input  logic [QueueBits-1:0] clear_i,

  input  logic                 frame_i,         // a frame was written
  input  logic [2:0]           port_i,
  input  logic [NetBits-1:0]   net_i,
  input  logic [CellBits-1:0]  cell_i,          // its first cell
  input  logic [13:0]          len_i,

  // From hue_queue_turns: a queue is emptied; one clock later the same again, with its phase.
  input  logic                 empties_i,
  input  logic [QueueBits-1:0] empties_queue_i,
  input  logic                 emptied_i,
  input  logic [QueueBits-1:0] emptied_queue_i,
  input  logic                 emptied_phase_i,

  // A frame will join in the next clock.
  output logic                 comes_o,
  output logic [2:0]           comes_port_o,
  output logic [NetBits-1:0]   comes_net_o,
  // A frame joins. Its queue already waits (and ends with `tail_o`), or begins to wait (in phase `phase_o`).
  output logic                 joins_o,
  output logic [Ports-1:0]     joins_at_o,      // the same by port
  output logic [2:0]           port_o,
  output logic [NetBits-1:0]   net_o,
  output logic [CellBits-1:0]  cell_o,
  output logic [13:0]          len_o,
  output logic                 waited_o,
  output logic                 phase_o,
  output logic [CellBits-1:0]  tail_o,
  // The frame that joined before this one, of any queue.
  output logic [CellBits-1:0]  before_cell_o,
  output logic [13:0]          before_len_o,
  output logic [NetsMax-1:0]   waits_o
);

  localparam int unsigned Queues = 1 << QueueBits;
  localparam int unsigned NetPlaces = 1 << NetBits;
  typedef logic [QueueBits-1:0] queue_t;
  typedef logic [CellBits-1:0]  cell_t;
  // What is kept about a queue: the phase in which it waits, and its last frame.
  typedef struct packed {
    logic  phase;
    cell_t tail;
  } joined_t;

  logic        y_by_q, y_emptied_q, y_active, y_hit, y_clear, y_phase;
  queue_t      queue, y_queue_q, k_queue_q;
  cell_t       y_cell_q;
  logic [13:0] y_len_q;
  joined_t     y_joined, y_by_joined_q, k_joined;

  assign queue = {port_i, net_i};
  assign k_joined = '{phase: phase_o, tail: cell_o};
  hue_ram #(.Words(Queues), .Bits($bits(joined_t))) u_joined (
    .clk_i, .write_i(clearing_i || joins_o), .waddr_i(clearing_i ? clear_i : k_queue_q), .wdata_i(clearing_i ? '0 : k_joined),
    .read_i(1'b1), .raddr_i(queue), .rdata_o(y_joined)
  );
  hue_ram #(.Words(Queues), .Bits(1)) u_emptied (
    .clk_i, .write_i(clearing_i || emptied_i), .waddr_i(clearing_i ? clear_i : emptied_queue_i),
    .wdata_i(!clearing_i && emptied_phase_i), .read_i(1'b1), .raddr_i(queue), .rdata_o(y_clear)
  );
  assign y_hit = joins_o && k_queue_q == y_queue_q;
  always_comb begin
    y_phase = y_by_q ? y_by_joined_q.phase : y_joined.phase;
    y_active = y_by_q || (!y_emptied_q && y_joined.phase != y_clear);
    if (empties_i && empties_queue_i == y_queue_q) y_active = 1'b0;
    if (y_hit) begin
      y_phase = phase_o;
      y_active = 1'b1;
    end
  end

  always_ff @(posedge clk_i) begin
    comes_port_o <= port_i;
    comes_net_o <= net_i;
    y_queue_q <= queue;
    y_cell_q <= cell_i;
    y_len_q <= len_i;
    // Writes that the memories do not show yet.
    y_by_q <= joins_o && k_queue_q == queue;
    y_by_joined_q <= k_joined;
    y_emptied_q <= (emptied_i && emptied_queue_i == queue) || (empties_i && empties_queue_i == queue);
    port_o <= comes_port_o;
    net_o <= comes_net_o;
    k_queue_q <= y_queue_q;
    cell_o <= y_cell_q;
    len_o <= y_len_q;
    before_cell_o <= cell_o;
    before_len_o <= len_o;
    if (y_hit) tail_o <= cell_o;
    else tail_o <= y_by_q ? y_by_joined_q.tail : y_joined.tail;
    waited_o <= y_active;
    phase_o <= y_active ? y_phase : !y_phase;
    if (!rst_ni) begin
      comes_o <= 1'b0;
      joins_o <= 1'b0;
      joins_at_o <= '0;
    end else begin
      comes_o <= frame_i;
      joins_o <= comes_o;
      for (int unsigned p = 0; p < Ports; p++) joins_at_o[p] <= comes_o && comes_port_o == 3'(p);
    end
  end

  // ---- Which networks wait at MAC ports
  logic [MacPorts-1:0][NetPlaces-1:0] waits_q;
  logic [2:0]                         emptied_port;
  logic [NetBits-1:0]                 emptied_net;
  logic                               ends;
  assign {emptied_port, emptied_net} = (3 + NetBits)'(emptied_queue_i);
`ifdef HUE_PLANT_QUEUES_WAITS
  assign ends = emptied_i && !joins_o;  // for scripts/rtl-test: the bench must find this
`else
  assign ends = emptied_i;
`endif
  always_ff @(posedge clk_i) begin
    for (int unsigned p = 0; p < MacPorts; p++) begin
      if (ends && emptied_port == 3'(p)) waits_q[p][emptied_net] <= 1'b0;
      if (joins_at_o[p]) waits_q[p][net_o] <= 1'b1;
    end
    if (!rst_ni) waits_q <= '0;
  end
  always_comb begin
    waits_o = '0;
    for (int unsigned p = 0; p < MacPorts; p++) waits_o |= NetsMax'(waits_q[p]);
  end

`ifndef SYNTHESIS
  // The bit of each queue that a frame joined is set, and as many bits are set as queues of MAC ports wait: so no other bit is.
  logic [15:0] waiting_q;
  logic        begins_mac, ends_mac;
  assign begins_mac = joins_o && 32'(port_o) < MacPorts && !waited_o;
  assign ends_mac = emptied_i && 32'(emptied_port) < MacPorts;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) waiting_q <= '0;
    else waiting_q <= waiting_q + 16'(begins_mac) - 16'(ends_mac);
  end
  a_waits_once_joined: assert property (@(posedge clk_i) disable iff (!rst_ni)
    (joins_o && 32'(port_o) < MacPorts) |=> waits_q[$past(port_o[1:0])][$past(net_o)]);
  a_no_other_waits: assert property (@(posedge clk_i) disable iff (!rst_ni) 16'($countones(waits_q)) == waiting_q);
  a_latency: assert property (@(posedge clk_i) disable iff (!rst_ni) $past(frame_i, 2) |-> joins_o);
`endif
endmodule
