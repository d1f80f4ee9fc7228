// Admits frames to the output queues before their bodies are read. A frame that is refused because its queue has no room costs
// one clock.
//
// Place: stages → **here** → hue_scatter; hue_output_queues reports which cells have become free. Verdicts leave in the order in
// which they came. The verdict of a refused frame becomes a drop, which is counted for its port and network, unless it is a note: the
// frame itself is not lost then, and its sender's next one leaves another note. With `offline_i` the frame waits instead.
// A frame is admitted if its queue (of its network, for its port) would then hold no more cells than are free (dynamic
// thresholds with alpha 1). So a network that sends more than its port can carry uses at most half of what others leave free,
// and loses only its own frames. All CPU queues together may use half of the memory, by the same rule. So frames that software
// does not fetch take nothing from the ports.
// A frame for a CPU queue grows by its header, and a flood is written several times, so such frames can arrive faster than scatter can
// write them. This concerns the former, all copies of the latter, and notes; not the copy of a frame that leaves by one port. While bodies
// wait in the packet buffer (`backlog_i`; 0 while the ports pause), one such frame of each network is admitted per `Window`
// clocks, and one note, which is short, per sixteenth of that; while many bodies wait (`late_i`), none is.
//
// Latency: 6 clocks from a verdict in to the same verdict out when nothing is held back. Throughput: a verdict a clock.
// Source: A. K. Choudhury, E. L. Hahne, "Dynamic queue length thresholds for shared-memory packet switches", 1998.
module hue_admit
  import hue_pkg::*;
  import hue_regs_pkg::*;
#(
  parameter int unsigned Nets = 64,
  parameter int unsigned Cells = 1024,
  parameter int unsigned CellBytes = 64,   // a power of two
  parameter int unsigned Window = 4096,
  localparam int unsigned NetBits = Nets > 1 ? $clog2(Nets) : 1,
  localparam int unsigned QueueBits = $clog2(Ports) + NetBits,
  localparam int unsigned CountBits = $clog2(Cells) + 1
) (
  input  logic                 clk_i,
  input  logic                 rst_ni,
  input  logic                 offline_i,
  input  logic                 backlog_i,
  input  logic                 late_i,
  input  logic                 counts_i,       // a drop decided in this clock can be counted in the next one

  input  logic                 s_valid_i,
  output logic                 s_ready_o,
  input  hue_verdict_t         s_verdict_i,
  output logic                 m_valid_o,
  input  logic                 m_ready_i,
  output hue_verdict_t         m_verdict_o,
  output logic                 m_refused_o,    // the frame was not admitted

  // From the output queues: how many cells were ever taken out of a queue (modulo); a cell is free again; it was a CPU queue's.
  input  logic                 gone_i,
  input  logic [QueueBits-1:0] gone_queue_i,
  input  logic [CountBits-1:0] gone_cells_i,
  input  logic                 freed_i,
  input  logic                 freed_cpu_i,

  output logic                 dropped_o,      // pulse: a frame for this port, of this network, was dropped
  output logic [2:0]           dropped_port_o,
  output logic [7:0]           dropped_net_o,
  output logic                 idle_o,         // no verdict inside
  output logic                 empty_o         // one clock ago all cells were free
);

  localparam int unsigned Depth = 16;
  localparam int unsigned PlaceBits = $clog2(Depth);
  localparam int unsigned Queues = 1 << QueueBits;
  localparam int unsigned LongestCells = (FrameBytesMax + CpuHeaderBytes + CellBytes - 1) / CellBytes;

  if (Cells < 2 * LongestCells || (Cells & (Cells - 1)) != 0) begin : g_cells
    $fatal(1, "Cells: expected a power of two, with room for two frames of the greatest length");
  end

  typedef logic [PlaceBits:0]   place_t;  // one bit more than addresses, to tell full from empty
  typedef logic [CountBits-1:0] count_t;
  typedef logic [QueueBits-1:0] queue_t;
  // What the decision needs to know about a frame.
  typedef struct packed {
    logic               sends;
    logic               grows;
    logic               note;
    logic               extra;  // it takes more of scatter's clocks than its frame took of gather's
    logic [2:0]         port;
    logic [NetBits-1:0] net;
    count_t             need;
  } ask_t;

  // After reset the state of all queues is cleared.
  logic   clearing_q;
  queue_t clear_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      clearing_q <= 1'b1;
      clear_q <= '0;
    end else begin
      clear_q <= clear_q + 1'b1;
      if (clear_q == '1) clearing_q <= 1'b0;
    end
  end

  // ---- In: verdicts wait until they are decided.
  hue_verdict_t       verdicts_q [Depth];
  ask_t               asks_q [Depth];
  logic [Depth-1:0]   admits_q;
  place_t             come_q, asked_q, decided_q, left_q;   // counts of verdicts received, being decided, decided, and sent on
  ask_t               in;
  logic               full_q, to_cpu;
  logic [2:0]         port;
  logic [14:0]        bytes;
  assign port = departs_by(s_verdict_i.verdict, s_verdict_i.net[1:0], s_verdict_i.port_out);
  assign to_cpu = port >= 3'(MacPorts);
  assign bytes = 15'(sent_len(s_verdict_i.note, s_verdict_i.len)) + (to_cpu ? 15'(CpuHeaderBytes) : 15'd0);
  always_comb begin
    // The loop has its own room (hue_loop).
    in.sends = (s_verdict_i.verdict == VerdictForward || s_verdict_i.verdict == VerdictPunt) && s_verdict_i.tunnel == TunnelNone;
    in.grows = to_cpu;
    in.note = s_verdict_i.note;
    in.extra = to_cpu || s_verdict_i.more || s_verdict_i.ports != '0;
    in.port = port;
    in.net = s_verdict_i.net[NetBits-1:0];
    in.need = count_t'(cells_of(bytes, CellBytes));
  end
  assign s_ready_o = !full_q;
  always_ff @(posedge clk_i) begin
    if (s_valid_i && s_ready_o) verdicts_q[come_q[PlaceBits-1:0]] <= s_verdict_i;
    if (s_valid_i && s_ready_o) asks_q[come_q[PlaceBits-1:0]] <= in;
    // `full_q` is a clock late, so one more verdict may come: a slot is kept for it.
    full_q <= !rst_ni || clearing_q || come_q - left_q >= place_t'(Depth - 1);
    if (!rst_ni) come_q <= '0;
    else if (s_valid_i && s_ready_o) come_q <= come_q + 1'b1;
  end

  // ---- Deciding. Cells admitted to a queue and cells taken out of it are counted modulo, each by one side only.
  logic   a_v_q, b_v_q, c_v_q, d_v_q, b_by_q, b_gone_by_q, b_same_q, c_same_q, admit, drop, again, d_here, d_fits, d_waits_q;
  ask_t   a_q, b_q, c_q, d_q;
  queue_t a_queue, b_queue, c_queue, d_queue;
  count_t b_by_put_q, b_by_gone_q, b_put, b_gone, c_put_q, c_gone_q, c_before, d_put_q, d_used_q, free_q, cpu_free_q;
  assign a_queue = {a_q.port, a_q.net};
  assign b_queue = {b_q.port, b_q.net};
  assign c_queue = {c_q.port, c_q.net};
  assign d_queue = {d_q.port, d_q.net};
  hue_ram #(.Words(Queues), .Bits(CountBits)) u_put (
    .clk_i, .write_i(clearing_q || admit), .waddr_i(clearing_q ? clear_q : d_queue), .wdata_i(clearing_q ? '0 : d_put_q),
    .read_i(1'b1), .raddr_i(a_queue), .rdata_o(b_put)
  );
  hue_ram #(.Words(Queues), .Bits(CountBits)) u_gone (
    .clk_i, .write_i(clearing_q || gone_i), .waddr_i(clearing_q ? clear_q : gone_queue_i),
    .wdata_i(clearing_q ? '0 : gone_cells_i), .read_i(1'b1), .raddr_i(a_queue), .rdata_o(b_gone)
  );

  // The cells of a frame of the same queue that is admitted in this clock count for the frames behind it.
  // d_used_q is what the queue would hold with the frame.
  assign c_before = c_same_q && admit ? d_put_q : c_put_q;
  // Frames that grow, and further copies: the number of the window in which one of the network was last admitted.
  localparam int unsigned WindowBits = $clog2(Window);
  // Notes have stamps and windows of their own.
  logic [3:0]            stamps_q [2 << NetBits];
  logic [3:0]            b_stamp, c_stamp_q, window_q, note_window;
  logic [WindowBits-1:0] clocks_q;
  logic                  stamps, c_recent;
  assign stamps = admit && d_q.extra;
  assign b_stamp = stamps_q[{b_q.note, b_q.net}];
  assign note_window = 4'(clocks_q >> (WindowBits > 4 ? WindowBits - 4 : 0));
  assign c_recent = c_stamp_q == (c_q.note ? note_window : window_q);
  always_ff @(posedge clk_i) begin
    if (clearing_q) stamps_q[clear_q[NetBits:0]] <= '0;
    else if (stamps) stamps_q[{d_q.note, d_q.net}] <= d_q.note ? note_window : window_q;
    c_stamp_q <= b_stamp;
`ifdef HUE_PLANT_ADMIT_WINDOW
    d_waits_q <= c_q.extra && (late_i || backlog_i);  // for scripts/rtl-test: the bench must find this
`else
    d_waits_q <= c_q.extra && (late_i || (backlog_i && c_recent));
`endif
    if (!rst_ni) begin
      clocks_q <= '0;
      window_q <= 4'd1;
    end else begin
      clocks_q <= clocks_q + 1'b1;
      window_q <= window_q + 4'(clocks_q == '1);
    end
  end

`ifdef HUE_PLANT_ADMIT_FULL
  assign d_fits = d_q.need <= free_q;  // for scripts/rtl-test: the bench must find this
`else
  assign d_fits = d_used_q <= free_q && (!d_q.grows || d_used_q <= cpu_free_q);
`endif
  assign d_here = !d_q.sends || (d_fits && !d_waits_q);
  assign admit = d_v_q && d_here && d_q.sends;
  assign drop = d_v_q && !d_here && !offline_i && counts_i;
  // A frame that is held back is decided again later, and so are the frames behind it.
  assign again = d_v_q && !d_here && (offline_i || !counts_i);

  always_ff @(posedge clk_i) begin
    a_q <= asks_q[asked_q[PlaceBits-1:0]];
    b_q <= a_q;
    b_by_q <= admit && d_queue == a_queue;
    b_by_put_q <= d_put_q;
    b_gone_by_q <= gone_i && gone_queue_i == a_queue;
    b_by_gone_q <= gone_cells_i;
    b_same_q <= c_queue == a_queue;
    c_q <= b_q;
    c_same_q <= c_queue == b_queue;
    c_gone_q <= b_gone_by_q ? b_by_gone_q : b_gone;
    if (b_same_q && admit) c_put_q <= d_put_q;
    else c_put_q <= b_by_q ? b_by_put_q : b_put;
    d_q <= c_q;
    d_put_q <= c_before + c_q.need;
    d_used_q <= c_before - c_gone_q + c_q.need;
    if (d_v_q && !again) admits_q[decided_q[PlaceBits-1:0]] <= d_here;
    dropped_port_o <= d_q.port;
    dropped_net_o <= 8'(d_q.net);
    if (!rst_ni) begin
      a_v_q <= 1'b0;
      b_v_q <= 1'b0;
      c_v_q <= 1'b0;
      d_v_q <= 1'b0;
      asked_q <= '0;
      decided_q <= '0;
      free_q <= count_t'(Cells);
      cpu_free_q <= count_t'(Cells / 2);
      empty_o <= 1'b1;
      dropped_o <= 1'b0;
    end else begin
      a_v_q <= asked_q != come_q && !again;
      b_v_q <= a_v_q && !again;
      c_v_q <= b_v_q && !again;
      d_v_q <= c_v_q && !again;
      if (again) asked_q <= decided_q;
      else if (asked_q != come_q) asked_q <= asked_q + 1'b1;
      if (d_v_q && !again) decided_q <= decided_q + 1'b1;
      // A frame's cells are reserved when it is admitted.
      free_q <= admit ? free_q + count_t'(freed_i) - d_q.need : free_q + count_t'(freed_i);
      cpu_free_q <= cpu_free_q + count_t'(freed_cpu_i)
                    - (admit && d_q.grows ? d_q.need : '0);
`ifdef HUE_PLANT_ADMIT_EMPTY
      empty_o <= 1'b1;  // for scripts/rtl-test: the bench must find this
`else
      empty_o <= free_q == count_t'(Cells);
`endif
`ifdef HUE_PLANT_ADMIT_NOTE
      dropped_o <= drop;  // for scripts/rtl-test and scripts/formal: they must find this
`else
      dropped_o <= drop && !d_q.note;
`endif
    end
  end

  // ---- Out
  assign m_valid_o = left_q != decided_q;
  always_comb begin
    m_verdict_o = verdicts_q[left_q[PlaceBits-1:0]];
    m_refused_o = !admits_q[left_q[PlaceBits-1:0]];
    if (m_refused_o) m_verdict_o.verdict = VerdictDrop;
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni) left_q <= '0;
    else if (m_valid_o && m_ready_i) left_q <= left_q + 1'b1;
  end
  assign idle_o = come_q == left_q;

`ifndef SYNTHESIS
  a_room: assert property (@(posedge clk_i) disable iff (!rst_ni) come_q - left_q <= place_t'(Depth));
  a_free_is_bounded: assert property (@(posedge clk_i) disable iff (!rst_ni) free_q <= count_t'(Cells));
  a_cpu_half: assert property (@(posedge clk_i) disable iff (!rst_ni) cpu_free_q <= count_t'(Cells / 2));
  a_set_aside: assert property (@(posedge clk_i) disable iff (!rst_ni) admit |-> d_q.need <= free_q);
  a_offline_loses_nothing: assert property (@(posedge clk_i) disable iff (!rst_ni) offline_i |-> !drop);
  a_stable: assert property (@(posedge clk_i) disable iff (!rst_ni)
    (m_valid_o && !m_ready_i) |=> (m_valid_o && $stable(m_verdict_o)));
  localparam int unsigned Latency = 6;
  logic [Latency-1:0] alone_q;  // clocks since a verdict came while no other was inside
  always_ff @(posedge clk_i) alone_q <= !rst_ni || again ? '0 : {alone_q[Latency-2:0], s_valid_i && s_ready_o && idle_o};
  a_latency: assert property (@(posedge clk_i) disable iff (!rst_ni) alone_q[Latency-1] && !again |-> m_valid_o);
`endif
endmodule
