// Output queues: for each port a queue a network, in one memory of cells, emptied in turn by bytes.
// The memory is hue_queue_memory: on chip or outside. Which cells are free, and what follows what, lies on chip.
//
// Place: hue_cpu_insert → output queues → ports. A frame takes as many cells as it needs; frames of one network for one
// port form a queue and leave in order. A frame is let in when its queue, with it, would hold no more cells than are
// free (Choudhury and Hahne, dynamic thresholds, alpha 1): so a network that sends more than its port takes fills at
// most half of what others leave free, and only its own frames are lost. What is not let in is dropped and counted,
// or held back when `offline_i`.
// A port serves its networks round robin, in the order in which they began to wait. A turn lasts while the network's
// credit is positive; each turn adds QuantumBytes to the credit, each frame takes its bytes (surplus round robin). So over
// any time two networks that always wait get the same bytes to within QuantumBytes and two frames.
// One network's frames for MAC ports can be held (`hold_i`): they wait in its queues, and take no share, until the hold
// ends. A network that moves here from software waits so for the frames that are still on their way there (ADR 0013);
// what it may hold is what a queue may. From the second clock of a hold on no frame is taken; one that was taken leaves.
// Frames join their queues, and show in `waits_o`, in the order in which they came in, `Joining` clocks after their last
// beat when nothing else comes, and before any frame that came after them leaves: who sees a later one leave knows that
// `waits_o` counts them. It is false two clocks after the last one was taken. `idle_o` is never true while a beat is
// inside.
// Cross-network access: a frame leaves by the queue it was put in, which is asserted.
//
// Latency: `Latency` clocks from the last beat in to the first beat out when nothing else waits or comes, with an external
// memory more, by what that takes. Throughput: a beat a clock in, and a beat a clock out, at one port or over all; one port
// begins a frame every second clock at most, all together one a clock: so it takes two ports with frames of 64 bytes to
// fill a bus of 512 bits. A network that begins its turn in debt costs the port 2 clocks. Turns of a port begin every third
// clock at most, and two within 7 clocks, in which the next two networks are looked up: where each turn is a frame of
// 64 bytes, it takes two ports to fill a bus of 256 bits.
// With an external memory beats wait for its answer: as many of a port as it takes until then are asked for ahead, and
// nothing is taken in or asked for while it has no room.
//
// What is looked up is looked up a clock ahead, and nothing stands between a memory and a register but a choice. All that
// there is of a queue lies in block RAM; each memory is written by one side:
//   in      heads → a → b → c → d: let in?    beats wait → x: given a place → x1: written → y → k: joins its queue; a queue
//           that was empty is put on the port's list
//   lists   of networks that wait, by port; the next ones lie ahead (slots) with their credit and their last frame (p1..p5)
//   s0..s2  a step of a port's turn: choose the port; look at its network, and up what follows; take and charge
//   e0..e4  a beat: choose the port, where it lies, address, read (hue_queue_memory: a clock, or more), out
// Whether a queue waits: its phase turns over as it begins to, and again, in a memory of the other side, as it is emptied.
// Source: A. K. Choudhury, E. L. Hahne, "Dynamic queue length thresholds for shared-memory packet switches", 1998;
// H. Adiseshu, G. Parulkar, G. Varghese, "A reliable and scalable striping protocol", 1996.

module hue_output_queues
  import hue_pkg::*;
#(
  parameter int unsigned BusBytes = 8,
  parameter int unsigned Nets = 64,
  parameter int unsigned Cells = 1024,
  parameter int unsigned CellBytes = 64,   // a power of two
  parameter int unsigned QuantumBytes = 2048,
  parameter bit External = 1'b0,
  localparam int unsigned ByteBits = $clog2(BusBytes + 1)
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,
  input  logic                  offline_i,
  input  logic                  hold_i,          // no frame of this network is begun at a MAC port
  input  logic [7:0]            hold_net_i,
  output logic [NetsMax-1:0]    waits_o,         // by network: it has frames in a queue of a MAC port

  input  logic                  s_valid_i,
  output logic                  s_ready_o,
  input  logic [8*BusBytes-1:0] s_data_i,
  input  logic                  s_last_i,
  input  hue_departure_t        s_departure_i,  // stable over the frame

  output logic [Ports-1:0]                 m_valid_o,
  input  logic [Ports-1:0]                 m_ready_i,
  output logic [Ports-1:0][8*BusBytes-1:0] m_data_o,
  output logic [Ports-1:0][ByteBits-1:0]   m_bytes_o,
  output logic [Ports-1:0]                 m_last_o,
  output logic [Ports-1:0][31:0]           m_tag_o,        // counts with the first beat; then its cell may be free

  output logic                   dropped_o,      // a frame for this port, of this network
  output logic [2:0]             dropped_port_o,
  output logic [7:0]             dropped_net_o,
  output logic [Ports-1:0]       sent_o,         // a frame's last beat left
  output logic [Ports-1:0][13:0] sent_len_o,
  output logic                   idle_o,

  // The external memory.
  output queue_req_t                part_req_o,
  input  logic                      part_ready_i,
  input  logic                      part_rvalid_i,
  input  logic [8*QueueWordBytes-1:0] part_rdata_i
);

  localparam int unsigned CellBeats = CellBytes / BusBytes;
  localparam int unsigned CellBits = $clog2(Cells);
  localparam int unsigned CountBits = CellBits + 1;
  localparam int unsigned NetBits = Nets > 1 ? $clog2(Nets) : 1;
  localparam int unsigned NetPlaces = 1 << NetBits;
  localparam int unsigned Queues = Ports * NetPlaces;
  localparam int unsigned QueueBits = $clog2(Queues);
  localparam int unsigned LaneBits = $clog2(BusBytes);
  localparam int unsigned InDepth = 16;    // beats and frames that wait to be let in
  localparam int unsigned PlanDepth = 4;
  localparam int unsigned ActDepth = 16;
  localparam int unsigned OutDepth = External ? 64 : 8;
  localparam int unsigned Slots = 2;       // networks of a port that are looked up ahead
  localparam int unsigned FreeClocks = 3;  // until a cell that came back can be had again
`ifndef SYNTHESIS
  localparam int unsigned Latency = 29;
  localparam int unsigned Joining = 10;
`endif

  if (BusBytes > CellBytes) begin : g_bus_bytes
    $fatal(1, "BusBytes: expected at most the bytes of a cell");
  end
  if (External && 4 * BusBytes > QueueWordBytes) begin : g_part
    $fatal(1, "External: expected a bus of which a word takes four beats or more, so that half the part's clocks suffice");
  end
  if (Cells * CellBytes < 2 * (FrameBytesMax + CpuHeaderBytes) || (Cells & (Cells - 1)) != 0) begin : g_cells
    $fatal(1, "Cells: expected a power of two, with room for two frames of the greatest length");
  end
  if (QuantumBytes < 64 || QuantumBytes > FrameBytesMax) begin : g_quantum
    $fatal(1, "QuantumBytes: expected 64 to the greatest length of a frame");
  end

  typedef logic [CellBits-1:0]  cell_t;
  typedef logic [CountBits-1:0] count_t;
  typedef logic [QueueBits-1:0] queue_t;
  typedef logic [NetBits-1:0]   net_t;
  typedef logic signed [15:0]   credit_t;
  typedef struct packed {
    cell_t       first;
    logic [13:0] len;
  } frame_t;
  // A network that waits, with its queue's first frame.
  typedef struct packed {
    net_t   net;
    logic   phase;
    frame_t frame;
  } entry_t;
  // What the joining side keeps of a queue: the phase in which it waits, and its last frame.
  typedef struct packed {
    logic  phase;
    cell_t tail;
  } joined_t;
  // What is kept of a queue between its turns: credit, and cells ever taken (modulo).
  typedef struct packed {
    credit_t credit;
    count_t  taken;
  } served_t;
  typedef struct packed {
    entry_t  entry;
    served_t served;
  } turn_t;

  // Cells that a frame takes.
  function automatic count_t cells_of(logic [13:0] len);
    return count_t'((32'(len) + CellBytes - 1) / CellBytes);
  endfunction
  function automatic queue_t queue_of(logic [2:0] port, net_t net);
    return queue_t'({port, net});
  endfunction

  // After reset the memories by queue are cleared.
  logic   clearing_q;
  queue_t clear_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      clearing_q <= 1'b1;
      clear_q <= '0;
    end else begin
      clear_q <= clear_q + 1'b1;
      if (clear_q == queue_t'(Queues - 1)) clearing_q <= 1'b0;
    end
  end

  // ---- In: beats wait until their frame is let in; its head goes ahead.
  localparam int unsigned InBits = $clog2(InDepth);
  typedef logic [InBits:0] place_t;  // a bit more than addresses, so that full and empty differ
  hue_departure_t        heads_q [InDepth];
  logic [InDepth-1:0]    admits_q;
  place_t                come_q, asked_q, decided_q, left_q;   // heads: came, being decided, decided, written
  logic                  inside_q, inside_d, ready_q, heads_full_q, unused_beat_ready, beat_valid, beat_last, x_fire;
  logic [8*BusBytes-1:0] beat_data;
  localparam int unsigned InRoomBits = $clog2(InDepth + 1);
  logic [InRoomBits-1:0] beat_room;

  assign s_ready_o = ready_q;
  assign inside_d = s_valid_i && s_ready_o ? !s_last_i : inside_q;
  hue_fifo #(.Depth(InDepth), .Bits(8 * BusBytes + 1)) u_beats (
    .clk_i, .rst_ni, .valid_i(s_valid_i && s_ready_o), .ready_o(unused_beat_ready), .data_i({s_last_i, s_data_i}),
    .valid_o(beat_valid), .ready_i(x_fire), .data_o({beat_last, beat_data}), .room_o(beat_room)
  );
  always_ff @(posedge clk_i) begin
    if (s_valid_i && s_ready_o && !inside_q) heads_q[come_q[InBits-1:0]] <= s_departure_i;
    // What is ready comes from a register, as it goes to all beats: so one more beat may come, and two more heads.
    heads_full_q <= come_q - left_q >= place_t'(InDepth - 2);
    ready_q <= rst_ni && !clearing_q && beat_room > InRoomBits'(1) && (inside_d || !heads_full_q);
    if (!rst_ni) begin
      inside_q <= 1'b0;
      come_q <= '0;
    end else if (s_valid_i && s_ready_o) begin
      inside_q <= inside_d;
      if (!inside_q) come_q <= come_q + 1'b1;
    end
  end

  // ---- Letting in: is there room? Cells let into a queue and taken out of it are counted modulo, each by one side.
  logic           a_v_q, b_v_q, c_v_q, d_v_q, b_by_q, b_gone_by_q, b_same_q, c_same_q, admit, drop, again, d_here;
  hue_departure_t a_head, a_head_q, b_head_q, c_head_q, d_head_q;
  queue_t         a_queue, b_queue, c_queue, d_queue;
  count_t         a_need_q, b_need_q, c_need_q, d_need_q, b_by_put_q, b_by_gone_q, b_put, b_gone, c_put_q, c_gone_q;
  count_t         d_put_q, d_used_q, free_q;
  logic           freed, r_take_q;
  queue_t         r_queue_q;
  served_t        r_served_q;

  assign a_head = heads_q[asked_q[InBits-1:0]];
  assign a_queue = queue_of(a_head_q.port, a_head_q.net[NetBits-1:0]);
  assign b_queue = queue_of(b_head_q.port, b_head_q.net[NetBits-1:0]);
  assign c_queue = queue_of(c_head_q.port, c_head_q.net[NetBits-1:0]);
  assign d_queue = queue_of(d_head_q.port, d_head_q.net[NetBits-1:0]);
  hue_ram #(.Words(Queues), .Bits(CountBits)) u_put (
    .clk_i, .write_i(clearing_q || admit), .waddr_i(clearing_q ? clear_q : d_queue), .wdata_i(clearing_q ? '0 : d_put_q),
    .read_i(1'b1), .raddr_i(a_queue), .rdata_o(b_put)
  );
  hue_ram #(.Words(Queues), .Bits(CountBits)) u_gone (
    .clk_i, .write_i(clearing_q || r_take_q), .waddr_i(clearing_q ? clear_q : r_queue_q),
    .wdata_i(clearing_q ? '0 : r_served_q.taken), .read_i(1'b1), .raddr_i(a_queue), .rdata_o(b_gone)
  );
  // What a frame of the same queue, decided just now, leaves in it counts for those behind it.
  // d_used_q is what the queue would hold with the frame.
  assign d_here = d_used_q <= free_q;
  assign admit = d_v_q && d_here;
  assign drop = d_v_q && !d_here && !offline_i;
  // Held back: this frame is looked at again, and so are those behind it.
  assign again = d_v_q && !d_here && offline_i;

  always_ff @(posedge clk_i) begin
    a_head_q <= a_head;
    a_need_q <= cells_of(a_head.len);
    b_head_q <= a_head_q;
    b_need_q <= a_need_q;
    b_by_q <= admit && d_queue == a_queue;
    b_by_put_q <= d_put_q;
    b_gone_by_q <= r_take_q && r_queue_q == a_queue;
    b_by_gone_q <= r_served_q.taken;
    b_same_q <= c_queue == a_queue;
    c_head_q <= b_head_q;
    c_need_q <= b_need_q;
    c_same_q <= c_queue == b_queue;
    c_gone_q <= b_gone_by_q ? b_by_gone_q : b_gone;
    if (b_same_q && admit) c_put_q <= d_put_q;
    else c_put_q <= b_by_q ? b_by_put_q : b_put;
    d_head_q <= c_head_q;
    d_need_q <= c_need_q;
    d_put_q <= c_same_q && admit ? d_put_q + c_need_q : c_put_q + c_need_q;
    d_used_q <= c_same_q && admit ? d_put_q - c_gone_q + c_need_q : c_put_q - c_gone_q + c_need_q;
    if (admit || drop) admits_q[decided_q[InBits-1:0]] <= admit;
    dropped_port_o <= d_head_q.port;
    dropped_net_o <= d_head_q.net;
    if (!rst_ni) begin
      a_v_q <= 1'b0;
      b_v_q <= 1'b0;
      c_v_q <= 1'b0;
      d_v_q <= 1'b0;
      asked_q <= '0;
      decided_q <= '0;
      free_q <= count_t'(Cells);
      dropped_o <= 1'b0;
    end else begin
      a_v_q <= asked_q != come_q && !again;
      b_v_q <= a_v_q && !again;
      c_v_q <= b_v_q && !again;
      d_v_q <= c_v_q && !again;
      if (again) asked_q <= decided_q;
      else if (asked_q != come_q) asked_q <= asked_q + 1'b1;
      if (admit || drop) decided_q <= decided_q + 1'b1;
      // A frame's cells are set aside as it is let in.
      free_q <= admit ? free_q + count_t'(freed) - d_need_q : free_q + count_t'(freed);
      dropped_o <= drop;
    end
  end

  // ---- Free cells: those never used yet, then those given back.
  logic   alloc, free_cell_v_q, back_valid, back_ready, fresh;
  cell_t  free_cell_q, back_cell, alloc_cell;
  count_t fresh_q;
  logic [FreeClocks-1:0] freed_q;
  assign fresh = !fresh_q[CellBits];
  assign alloc_cell = fresh ? fresh_q[CellBits-1:0] : back_cell;
  assign freed = freed_q[FreeClocks-1];
  hue_deep_fifo #(.Depth(Cells), .Bits(CellBits)) u_back (
    .clk_i, .rst_ni, .valid_i(free_cell_v_q), .ready_o(back_ready), .data_i(free_cell_q),
    .valid_o(back_valid), .ready_i(alloc && !fresh), .data_o(back_cell)
  );
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      freed_q <= '0;
      fresh_q <= '0;
    end else begin
      freed_q <= {freed_q[FreeClocks-2:0], free_cell_v_q};
      if (alloc && fresh) fresh_q <= fresh_q + 1'b1;
    end
  end

  // ---- Writing: a beat is given its place (x) and is written (x1); with the last its frame joins the queue (y, k).
  localparam int unsigned BeatBits = CellBeats > 1 ? $clog2(CellBeats) : 1;
  localparam int unsigned ActRoomBits = $clog2(ActDepth + 1);
  localparam int unsigned ActsComing = 3;  // of the stages between x and the lists
  logic                   store, first_q, cell_start;
  hue_departure_t         x_head, x1_head_q;
  logic [BeatBits-1:0]    wbeat_q, x1_beat_q;
  cell_t                  wcell_q, wfirst_q, x1_cell_q, x1_first_q, x1_before_q;
  logic                   x1_store_q, x1_start_q, x1_link_q, x1_commit_q;
  logic [8*BusBytes-1:0]  x1_data_q;
  logic [ActRoomBits-1:0] act_room;
  logic                   write_room, read_room;   // of the memory

  assign x_head = heads_q[left_q[InBits-1:0]];
  assign x_fire = beat_valid && left_q != decided_q && act_room > ActRoomBits'(ActsComing) && write_room;
  assign store = x_fire && admits_q[left_q[InBits-1:0]];
  assign cell_start = wbeat_q == '0;
  assign alloc = store && cell_start;

  always_ff @(posedge clk_i) begin
    if (alloc) wcell_q <= alloc_cell;
    if (alloc && first_q) wfirst_q <= alloc_cell;
    x1_head_q <= x_head;
    x1_data_q <= beat_data;
    x1_beat_q <= wbeat_q;
    x1_cell_q <= cell_start ? alloc_cell : wcell_q;
    x1_first_q <= first_q ? alloc_cell : wfirst_q;
    x1_before_q <= wcell_q;
    if (!rst_ni) begin
      first_q <= 1'b1;
      wbeat_q <= '0;
      left_q <= '0;
      x1_store_q <= 1'b0;
      x1_start_q <= 1'b0;
      x1_link_q <= 1'b0;
      x1_commit_q <= 1'b0;
    end else begin
      if (x_fire) begin
        first_q <= beat_last;
        wbeat_q <= CellBeats == 1 || beat_last ? '0 : wbeat_q + 1'b1;
        if (beat_last) left_q <= left_q + 1'b1;
      end
      x1_store_q <= store;
      x1_start_q <= store && first_q;
      x1_link_q <= alloc && !first_q;
      x1_commit_q <= store && beat_last;
    end
  end

  // A queue's last frame is told what follows it; a network that did not wait is put on the port's list. A frame that
  // joins in clock k counts for what is decided of its queue in that clock already.
  logic    y_v_q, y_by_q, y_emptied_q, y_active, y_hit, k_v_q, k_act_q, k_phase_q, y_clear, y_phase;
  logic    empties, r_empty_q, r_phase_q;
  queue_t  x1_queue, y_queue_q, k_queue_q, s2_queue_q;
  logic [2:0] y_port_q, k_port_q;
  logic [Ports-1:0] k_at_q;          // k_v_q, by port
  net_t    x1_net, y_net_q, k_net_q;
  frame_t  y_frame_q, k_frame_q, k_before_q;
  cell_t   k_tail_q;
  joined_t y_joined, y_by_joined_q, k_joined;
  assign x1_net = x1_head_q.net[NetBits-1:0];
  assign x1_queue = queue_of(x1_head_q.port, x1_net);
  assign k_joined.phase = k_phase_q;
  assign k_joined.tail = k_frame_q.first;
  hue_ram #(.Words(Queues), .Bits($bits(joined_t))) u_joined (
    .clk_i, .write_i(clearing_q || k_v_q), .waddr_i(clearing_q ? clear_q : k_queue_q), .wdata_i(clearing_q ? '0 : k_joined),
    .read_i(1'b1), .raddr_i(x1_queue), .rdata_o(y_joined)
  );
  hue_ram #(.Words(Queues), .Bits(1)) u_emptied (
    .clk_i, .write_i(clearing_q || r_empty_q), .waddr_i(clearing_q ? clear_q : r_queue_q),
    .wdata_i(!clearing_q && r_phase_q), .read_i(1'b1), .raddr_i(x1_queue), .rdata_o(y_clear)
  );
  assign y_hit = k_v_q && k_queue_q == y_queue_q;
  always_comb begin
    y_phase = y_by_q ? y_by_joined_q.phase : y_joined.phase;
    y_active = y_by_q || (!y_emptied_q && y_joined.phase != y_clear);
    if (empties && s2_queue_q == y_queue_q) y_active = 1'b0;
    if (y_hit) begin
      y_phase = k_phase_q;
      y_active = 1'b1;
    end
  end

  always_ff @(posedge clk_i) begin
    y_port_q <= x1_head_q.port;
    y_net_q <= x1_net;
    y_queue_q <= x1_queue;
    y_frame_q.first <= x1_first_q;
    y_frame_q.len <= x1_head_q.len;
    // What the memories do not show yet.
    y_by_q <= k_v_q && k_queue_q == x1_queue;
    y_by_joined_q <= k_joined;
    y_emptied_q <= (r_empty_q && r_queue_q == x1_queue) || (empties && s2_queue_q == x1_queue);
    k_port_q <= y_port_q;
    k_net_q <= y_net_q;
    k_queue_q <= y_queue_q;
    k_frame_q <= y_frame_q;
    k_before_q <= k_frame_q;
    if (y_hit) k_tail_q <= k_frame_q.first;
    else k_tail_q <= y_by_q ? y_by_joined_q.tail : y_joined.tail;
    k_act_q <= y_active;
    k_phase_q <= y_active ? y_phase : !y_phase;
    if (!rst_ni) begin
      y_v_q <= 1'b0;
      k_v_q <= 1'b0;
      k_at_q <= '0;
    end else begin
      y_v_q <= x1_commit_q;
      k_v_q <= y_v_q;
      for (int unsigned p = 0; p < Ports; p++) k_at_q[p] <= y_v_q && y_port_q == 3'(p);
    end
  end

  // Which networks wait at MAC ports. One that is emptied shows a clock later: a frame that joins in that clock counts.
  logic [MacPorts-1:0][NetPlaces-1:0] waits_q;
  logic [2:0]                         r_port_q;
  entry_t                             r_entry_q;
  logic                               waits_end;
`ifdef HUE_PLANT_QUEUES_WAITS
  assign waits_end = r_empty_q && !k_v_q;  // for scripts/rtl-test: the bench must find this
`else
  assign waits_end = r_empty_q;
`endif
  always_ff @(posedge clk_i) begin
    for (int unsigned p = 0; p < MacPorts; p++) begin
      if (waits_end && r_port_q == 3'(p)) waits_q[p][r_entry_q.net] <= 1'b0;
      if (k_at_q[p]) waits_q[p][k_net_q] <= 1'b1;
    end
    if (!rst_ni) waits_q <= '0;
  end
  always_comb begin
    waits_o = '0;
    for (int unsigned p = 0; p < MacPorts; p++) waits_o |= NetsMax'(waits_q[p]);
  end

  // ---- Lists: for each port the networks that wait and have no turn, in order. A network whose turn ended comes first.
  typedef struct packed {
    logic [2:0] port;
    entry_t     entry;
  } act_t;
  typedef logic [NetBits:0] list_t;
  act_t                  act_in, act, write_q;
  logic                  act_new, act_ready, act_valid, act_take, list_write_q, r_v_q, r_push_q;
  served_t               p4_served;
  joined_t               p4_joined;
  list_t [Ports-1:0]     list_put_q, list_got_q, member_q;
  logic [Ports-1:0][1:0] ahead_q;    // networks on their way to a port's slots, or there
  logic [Ports-1:0]      list_some_q, others_q, pop_asks, slot_valid, slot_take, back_now, p1_at_q, p2_at_q, p4_at_q, p5_at_q;
  logic                  pop, p3_v_q, p4_by_q;
  logic [2:0]            pop_port, p1_port_q, p2_port_q, p3_port_q;
  queue_t                p3_queue, p4_queue_q, p5_queue_q;
  entry_t                p2_entry, p3_entry_q, p4_entry_q;
  cell_t                 p4_by_tail_q, p5_tail_q;
  turn_t                 p5_turn_q;
  logic                  p5_joins;
  turn_t [Ports-1:0]     slot;
  cell_t [Ports-1:0]     slot_tail;

  assign act_new = k_v_q && !k_act_q;
  assign act_in.port = k_port_q;
  assign act_in.entry.net = k_net_q;
  assign act_in.entry.phase = k_phase_q;
  assign act_in.entry.frame = k_frame_q;
  hue_fifo #(.Depth(ActDepth), .Bits($bits(act_t))) u_acts (
    .clk_i, .rst_ni, .valid_i(act_new), .ready_o(act_ready), .data_i(act_in),
    .valid_o(act_valid), .ready_i(act_take), .data_o(act), .room_o(act_room)
  );
  assign act_take = act_valid && !r_push_q;
  always_ff @(posedge clk_i) begin
    list_write_q <= rst_ni && (act_valid || r_push_q);
    write_q <= r_push_q ? '{port: r_port_q, entry: r_entry_q} : act;
  end
  hue_ram #(.Words(Queues), .Bits($bits(entry_t))) u_lists (
    .clk_i, .write_i(list_write_q), .waddr_i(queue_of(write_q.port, list_put_q[write_q.port][NetBits-1:0])),
    .wdata_i(write_q.entry), .read_i(1'b1), .raddr_i(queue_of(p1_port_q, list_got_q[p1_port_q][NetBits-1:0])),
    .rdata_o(p2_entry)
  );

  // The first of a list goes ahead to the port's slots; on its way its credit and its queue's last frame are read.
  // That a list is empty shows two clocks after it was popped.
  always_comb begin
    for (int unsigned p = 0; p < Ports; p++) begin
      pop_asks[p] = list_some_q[p] && ahead_q[p] != 2'(Slots) && !p1_at_q[p] && !p2_at_q[p];
    end
  end
  hue_round_robin #(.Count(Ports)) u_pop (
    .clk_i, .rst_ni, .asks_i(pop_asks), .take_i(1'b1), .any_o(pop), .winner_o(pop_port)
  );
  assign p3_queue = queue_of(p3_port_q, p3_entry_q.net);
  hue_ram #(.Words(Queues), .Bits($bits(served_t))) u_served (
    .clk_i, .write_i(clearing_q || r_v_q), .waddr_i(clearing_q ? clear_q : r_queue_q),
    .wdata_i(clearing_q ? {credit_t'(QuantumBytes), count_t'(0)} : r_served_q),
    .read_i(1'b1), .raddr_i(p3_queue), .rdata_o(p4_served)
  );
  hue_ram #(.Words(Queues), .Bits($bits(joined_t))) u_tails (
    .clk_i, .write_i(k_v_q), .waddr_i(k_queue_q), .wdata_i(k_joined),
    .read_i(1'b1), .raddr_i(p3_queue), .rdata_o(p4_joined)
  );
  always_ff @(posedge clk_i) begin
    p1_port_q <= pop_port;
    p2_port_q <= p1_port_q;
    p3_port_q <= p2_port_q;
    p3_entry_q <= p2_entry;
    p4_entry_q <= p3_entry_q;
    p4_queue_q <= p3_queue;
    p4_by_q <= k_v_q && k_queue_q == p3_queue;
    p4_by_tail_q <= k_frame_q.first;
    p5_queue_q <= p4_queue_q;
    p5_turn_q.entry <= p4_entry_q;
    p5_turn_q.served <= p4_served;
    if (k_v_q && k_queue_q == p4_queue_q) p5_tail_q <= k_frame_q.first;
    else p5_tail_q <= p4_by_q ? p4_by_tail_q : p4_joined.tail;
    if (!rst_ni) begin
      p1_at_q <= '0;
      p2_at_q <= '0;
      p3_v_q <= 1'b0;
      p4_at_q <= '0;
      p5_at_q <= '0;
      list_put_q <= '0;
      list_got_q <= '0;
      list_some_q <= '0;
      ahead_q <= '0;
      member_q <= '0;
      others_q <= '0;
    end else begin
      p2_at_q <= p1_at_q;
      p3_v_q <= p2_at_q != '0;
      p5_at_q <= p4_at_q;
      for (int unsigned p = 0; p < Ports; p++) begin
        p1_at_q[p] <= pop && pop_port == 3'(p);
        p4_at_q[p] <= p3_v_q && p3_port_q == 3'(p);
        if (list_write_q && write_q.port == 3'(p)) list_put_q[p] <= list_put_q[p] + 1'b1;
        if (p1_at_q[p]) list_got_q[p] <= list_got_q[p] + 1'b1;
        list_some_q[p] <= list_put_q[p] != list_got_q[p];
        ahead_q[p] <= ahead_q[p] + 2'(p1_at_q[p]) - 2'(slot_take[p]);
        // All that wait beside the one whose turn it is; one that goes back counts before it is on the list.
        member_q[p] <= member_q[p] + list_t'(act_take && act.port == 3'(p)) + list_t'(back_now[p])
                       - list_t'(slot_take[p]);
        others_q[p] <= member_q[p] != '0;
      end
    end
  end

  assign p5_joins = k_v_q && k_queue_q == p5_queue_q;

  // Slots of a port, in turn; what joins their queues meanwhile is their last frame.
  for (genvar p = 0; p < Ports; p++) begin : g_slot
    turn_t [Slots-1:0] turns_q;
    cell_t [Slots-1:0] tails_q;
    logic              wslot_q, rslot_q;
    logic [1:0]        count_q;
    assign slot_valid[p] = count_q != '0;
    assign slot[p] = turns_q[rslot_q];
    assign slot_tail[p] = tails_q[rslot_q];
    always_ff @(posedge clk_i) begin
      for (int unsigned s = 0; s < Slots; s++) begin
        if (p5_at_q[p] && wslot_q == 1'(s)) begin
          turns_q[s] <= p5_turn_q;
          tails_q[s] <= p5_joins ? k_frame_q.first : p5_tail_q;
        end else if (k_at_q[p] && k_net_q == turns_q[s].entry.net) begin
          tails_q[s] <= k_frame_q.first;
        end
      end
      if (!rst_ni) begin
        wslot_q <= 1'b0;
        rslot_q <= 1'b0;
        count_q <= '0;
      end else begin
        wslot_q <= wslot_q ^ p5_at_q[p];
        rslot_q <= rslot_q ^ slot_take[p];
        count_q <= count_q + 2'(p5_at_q[p]) - 2'(slot_take[p]);
      end
    end
  end

  // ---- Turns: a step a clock, of one port. A frame of the network whose turn it is is planned, or there is none.
  localparam int unsigned PlanRoomBits = $clog2(PlanDepth + 1);
  typedef struct packed {
    frame_t      frame;
    logic [10:0] beats;
  } plan_t;
  logic [Ports-1:0]                   asks, has_q, plan_ready, plan_valid, plan_take, plan_some_q, waits_held_q;
  logic [Ports-1:0]                   s1_at_q, s1_of_q, s2_at_q, s2_ends_q, stays, r_stays_q;
  logic [Ports-1:0]                   held, only, joins, joins_next;
  logic [Ports-1:0][PlanRoomBits-1:0] plan_room;
  turn_t [Ports-1:0]                  turn_q;
  cell_t [Ports-1:0]                  tail_q;
  logic                               step, s1_v_q, s1_again_q, s1_debt, s1_spent, s1_held, s1_only, s1_joins;
  logic [2:0]                         s1_next, s1_port_q, s2_port_q;
  turn_t                              s1, s2_q;
  queue_t                             s1_queue;
  logic                               s2_v_q, s2_takes_q, s2_debt_q, s2_spent_q, s2_held_q, s2_last_q, s2_by_q, s2_joins_q;
  credit_t                            s1_left, s1_below, s1_owes, s2_left_q, credit_next;
  cell_t                              s1_tail, s2_tail_q, r_tail_q;
  count_t                             s2_cells_q;
  logic [10:0]                        s2_beats_q;
  frame_t                             linked, follows, beside;
  logic                               leaves;
  logic [Ports-1:0]                   leaves_at;
  served_t                            served_next;
  plan_t                              plan_in;

  // Of the network whose turn it is at a port: it is held, its queue has one frame, one joins it, or will in a clock. What
  // compares stands at each port, as a choice of the port before it takes longer.
  always_comb begin
    for (int unsigned p = 0; p < Ports; p++) begin
      held[p] = hold_i && p < MacPorts && turn_q[p].entry.net == hold_net_i[NetBits-1:0];
      only[p] = tail_q[p] == turn_q[p].entry.frame.first;
      joins[p] = k_at_q[p] && k_net_q == turn_q[p].entry.net;
      joins_next[p] = y_v_q && y_port_q == 3'(p) && y_net_q == turn_q[p].entry.net;
    end
  end

  // As a step is decided the next may begin, if there surely is a network whose turn it then is: if not this one's, one in
  // a slot. One that is held gives way to others, and asks for nothing when alone.
  assign asks = has_q & plan_some_q & ~s1_at_q & ~s2_ends_q & ~waits_held_q;
  hue_round_robin #(.Count(Ports)) u_step (
    .clk_i, .rst_ni, .asks_i(asks), .take_i(1'b1), .any_o(step), .winner_o(s1_next)
  );

  always_comb begin
    // What was decided a clock ago is not with the port yet.
    s1 = s1_again_q ? {r_entry_q, r_served_q} : '0;
    s1_tail = '0;
    for (int unsigned p = 0; p < Ports; p++) begin
      if (s1_of_q[p]) s1 |= turn_q[p];
      if (s1_of_q[p]) s1_tail |= tail_q[p];
    end
  end
  assign s1_queue = queue_of(s1_port_q, s1.entry.net);
`ifdef HUE_PLANT_QUEUES_CREDIT
  assign s1_left = s1.served.credit - credit_t'(64);  // by frames; for scripts/rtl-test: the bench must find this
  assign s1_below = s1_left - 1'b1;
`else
  assign s1_left = s1.served.credit - credit_t'({2'b00, s1.entry.frame.len});
  assign s1_below = s1.served.credit + ~credit_t'({2'b00, s1.entry.frame.len});
`endif
  // Not above zero: a chain of carries each, as long as the difference.
  assign s1_spent = s1_below[15];
  assign s1_debt = s1_owes[15];
  assign s1_owes = s1.served.credit + '1;
`ifdef HUE_PLANT_QUEUES_HOLD
  assign s1_held = 1'b0;  // one whose turn had begun goes on; for scripts/rtl-test: the bench must find this
`else
  assign s1_held = (s1_at_q & held) != '0;
`endif
  assign s1_only = (s1_of_q & only) != '0 || (s1_again_q && r_tail_q == r_entry_q.frame.first);
  assign s1_joins = (s1_at_q & joins) != '0;
  hue_ram #(.Words(Cells), .Bits($bits(frame_t))) u_links (
    .clk_i, .write_i(k_v_q && k_act_q), .waddr_i(k_tail_q), .wdata_i(k_frame_q),
    .read_i(1'b1), .raddr_i(s1.entry.frame.first), .rdata_o(linked)
  );
  always_ff @(posedge clk_i) begin
    s1_port_q <= s1_next;
    s2_port_q <= s1_port_q;
    s2_q <= s1;
    s2_queue_q <= s1_queue;
    s2_debt_q <= s1_debt;
    s2_spent_q <= s1_spent;
    s2_held_q <= s1_held;
    s2_left_q <= s1_left;
    s2_cells_q <= cells_of(s1.entry.frame.len);
    s2_beats_q <= 11'((32'(s1.entry.frame.len) + BusBytes - 1) >> LaneBits);
    // A frame that joins the queue as its only one is looked at follows that one, and so does one that joins a clock later.
    s2_last_q <= s1_only && !s1_joins;
    s2_by_q <= s1_only && s1_joins;
    s2_joins_q <= (s1_at_q & joins_next) != '0;
    if (s1_joins) s2_tail_q <= k_frame_q.first;
    else s2_tail_q <= s1_again_q ? r_tail_q : s1_tail;
    for (int unsigned p = 0; p < Ports; p++) begin
      plan_some_q[p] <= plan_room[p] >= PlanRoomBits'(2);
      waits_held_q[p] <= held[p] && !slot_valid[p];
    end
    if (!rst_ni) begin
      s1_v_q <= 1'b0;
      s1_at_q <= '0;
      s1_of_q <= '0;
      s1_again_q <= 1'b0;
      r_stays_q <= '0;
      s2_v_q <= 1'b0;
      s2_takes_q <= 1'b0;
      s2_at_q <= '0;
      s2_ends_q <= '0;
    end else begin
      s1_v_q <= step;
      s1_again_q <= step && stays[s1_next];
      r_stays_q <= stays;
      s2_v_q <= s1_v_q && has_q[s1_port_q];
      s2_takes_q <= s1_v_q && has_q[s1_port_q] && !s1_debt && !s1_held;
      for (int unsigned p = 0; p < Ports; p++) begin
        s1_at_q[p] <= step && s1_next == 3'(p);
        s1_of_q[p] <= step && s1_next == 3'(p) && !stays[p];
        s2_at_q[p] <= s1_at_q[p] && has_q[p];
        s2_ends_q[p] <= s1_at_q[p] && !slot_valid[p] && (s1_only || others_q[p]);
      end
    end
  end

`ifdef HUE_PLANT_QUEUES_JOIN
  assign empties = s2_takes_q && s2_last_q;  // for scripts/rtl-test: the bench must find this
`else
  assign empties = s2_takes_q && s2_last_q && !s2_joins_q;
`endif
  // The turn ends when credit is used up, or nothing waits; a network that is alone goes on.
  // By port, so that nothing is chosen by its number first: what follows goes far.
  always_comb begin
    for (int unsigned p = 0; p < Ports; p++) leaves_at[p] = s2_at_q[p] && (empties || (others_q[p] && (!s2_takes_q || s2_spent_q)));
  end
  assign leaves = leaves_at != '0;
  always_comb begin
    beside = s2_by_q ? k_before_q : k_frame_q;
    follows = s2_by_q || s2_last_q ? beside : linked;
    // What is left of a credit is lost with an empty queue, a debt is not.
    credit_next = (s2_held_q || s2_debt_q ? s2_q.served.credit : s2_left_q)
                  + ((s2_debt_q || s2_spent_q) && !s2_held_q ? credit_t'(QuantumBytes) : credit_t'(0));
    if (empties && !s2_spent_q) credit_next = credit_t'(QuantumBytes);
    served_next.credit = credit_next;
    served_next.taken = s2_takes_q ? s2_q.served.taken + s2_cells_q : s2_q.served.taken;
    for (int unsigned p = 0; p < Ports; p++) begin
      slot_take[p] = slot_valid[p] && (s2_at_q[p] ? leaves_at[p] : !has_q[p]);
      back_now[p] = leaves_at[p] && !empties;
      stays[p] = s2_at_q[p] && !slot_take[p];
    end
  end
  always_ff @(posedge clk_i) begin
    r_port_q <= s2_port_q;
    r_queue_q <= s2_queue_q;
    r_phase_q <= s2_q.entry.phase;
    r_entry_q <= s2_q.entry;
    if (s2_takes_q) r_entry_q.frame <= follows;
    r_served_q <= served_next;
    r_tail_q <= s2_joins_q ? k_frame_q.first : s2_tail_q;
    for (int unsigned p = 0; p < Ports; p++) begin
      if (slot_take[p]) begin
        turn_q[p] <= slot[p];
        tail_q[p] <= k_at_q[p] && k_net_q == slot[p].entry.net ? k_frame_q.first : slot_tail[p];
      end else begin
        if (r_stays_q[p]) turn_q[p].entry.frame <= r_entry_q.frame;
        if (r_stays_q[p]) turn_q[p].served <= r_served_q;
        if (joins[p]) tail_q[p] <= k_frame_q.first;
      end
    end
    if (!rst_ni) begin
      has_q <= '0;
      r_v_q <= 1'b0;
      r_take_q <= 1'b0;
      r_empty_q <= 1'b0;
      r_push_q <= 1'b0;
    end else begin
      r_v_q <= s2_v_q;
      r_take_q <= s2_takes_q;
      r_empty_q <= empties;
      r_push_q <= leaves && !empties;
      for (int unsigned p = 0; p < Ports; p++) begin
        if (slot_take[p]) has_q[p] <= 1'b1;
        else if (leaves_at[p]) has_q[p] <= 1'b0;
      end
    end
  end

  assign plan_in.frame = s2_q.entry.frame;
  assign plan_in.beats = s2_beats_q;
  plan_t [Ports-1:0] plan;
  for (genvar p = 0; p < Ports; p++) begin : g_plan
    hue_fifo #(.Depth(PlanDepth), .Bits($bits(plan_t))) u_plan (
      .clk_i, .rst_ni, .valid_i(s2_takes_q && s2_at_q[p]), .ready_o(plan_ready[p]), .data_i(plan_in),
      .valid_o(plan_valid[p]), .ready_i(plan_take[p]), .data_o(plan[p]), .room_o(plan_room[p])
    );
  end

  // ---- Reading: a beat a clock, of one port. A port's next frame is there as the last beat of the one before is chosen;
  // what it is and where it lies follow a clock behind.
  localparam int unsigned OutRoomBits = $clog2(OutDepth + 1);
  logic [Ports-1:0]                  rasks, ract_q, rlast_q, rload_q, rgrants;
  logic [Ports-1:0][OutRoomBits-1:0] out_q;      // beats of a port between here and its pins
  logic [Ports-1:0]                  out_room_q; // there may be one more: from a register, as the choice of a port goes far
  logic [Ports-1:0][10:0]            rleft_q;    // beats of the frame that are not chosen yet
  frame_t [Ports-1:0]                rahead_q, rframe_q;
  logic [Ports-1:0][BeatBits-1:0]    rbeat_q;    // of the cell: the next one to be read
  cell_t [Ports-1:0]                 rcell_q, rnext_q;  // its cell, and the one after that
  logic                              rgrant, e1_v_q, e1_last_q, e1_by, e1_late, e1_start, e1_end, n_v_q;
  logic [2:0]                        rport;
  logic [Ports-1:0]                  e1_at_q, e2_at_q, e3_at, e4_at_q, n_at_q, rstart_q;
  logic [BeatBits-1:0]               e1_beat, e2_beat_q;
  cell_t                             e1_kept, e1_cell, e2_cell_q, e2_first_q, n_cell, n_cell_q;
  frame_t                            e1_frame;
  logic [LaneBits-1:0]               e1_rest;

  always_comb begin
    for (int unsigned p = 0; p < Ports; p++) begin
      rasks[p] = ract_q[p] && out_room_q[p] && read_room;
      rgrants[p] = rgrant && rport == 3'(p);
`ifdef HUE_PLANT_QUEUES_PAUSE
      plan_take[p] = plan_valid[p] && !ract_q[p];  // for scripts/rtl-test: the bench must find this
`else
      plan_take[p] = plan_valid[p] && (!ract_q[p] || (rgrants[p] && rlast_q[p]));
`endif
    end
  end
  hue_round_robin #(.Count(Ports)) u_read (
    .clk_i, .rst_ni, .asks_i(rasks), .take_i(1'b1), .any_o(rgrant), .winner_o(rport)
  );

  // Where the beat is. The cell after this one is looked up as it is begun, and is with the port three clocks later; a beat
  // that needs it before takes it on its way.
  always_comb begin
    e1_frame = '0;
    e1_beat = '0;
    e1_kept = '0;
    for (int unsigned p = 0; p < Ports; p++) begin
      if (e1_at_q[p]) e1_frame |= rframe_q[p];
      if (e1_at_q[p]) e1_beat |= rbeat_q[p];
      if (e1_at_q[p]) e1_kept |= rcell_q[p];
    end
  end
  assign e1_by = n_v_q && (e2_at_q & e1_at_q) != '0;
  assign e1_late = (n_at_q & e1_at_q & rstart_q) != '0;
  always_comb begin
    e1_cell = e1_kept;
    if (CellBeats == 1) begin
      if (e1_by) e1_cell = n_cell;
    end else if (e1_late) begin
      e1_cell = n_cell_q;
    end
  end
  assign e1_start = CellBeats == 1 || (rstart_q & e1_at_q) != '0;
  assign e1_end = e1_last_q || 32'(e1_beat) == CellBeats - 1;
  assign e1_rest = e1_frame.len[LaneBits-1:0];
  hue_ram #(.Words(Cells), .Bits(CellBits)) u_nexts (
    .clk_i, .write_i(x1_link_q), .waddr_i(x1_before_q), .wdata_i(x1_cell_q),
    .read_i(1'b1), .raddr_i(e1_cell), .rdata_o(n_cell)
  );

  // What goes along with a beat while it is read.
  typedef struct packed {
    logic                last;
    logic [ByteBits-1:0] bytes;
    logic [13:0]         len;
  } read_t;
  typedef struct packed {
    logic [8*BusBytes-1:0] data;
    logic [ByteBits-1:0]   bytes;
    logic                  last;
    logic [31:0]           tag;
    logic [13:0]           len;
  } out_t;
  read_t                 e2_q, e3_q, read;
  out_t                  e4_q;
  logic [31:0]           rtag, read_tag;
  logic [8*BusBytes-1:0] rdata;
  logic [Ports-1:0]      m_fire;
  assign m_fire = m_valid_o & m_ready_i;

  always_ff @(posedge clk_i) begin
    e1_last_q <= (rgrants & rlast_q) != '0;
    e2_cell_q <= e1_cell;
    e2_beat_q <= e1_beat;
    e2_first_q <= e1_frame.first;
    e2_q.last <= e1_last_q;
    e2_q.bytes <= e1_last_q && e1_rest != '0 ? ByteBits'(e1_rest) : ByteBits'(BusBytes);
    e2_q.len <= e1_frame.len;
    e3_q <= e2_q;
    e4_q.data <= rdata;
    e4_q.bytes <= read.bytes;
    e4_q.last <= read.last;
    e4_q.tag <= read_tag;
    e4_q.len <= read.len;
    free_cell_q <= e1_cell;
    n_cell_q <= n_cell;
    for (int unsigned p = 0; p < Ports; p++) begin
      rahead_q[p] <= plan[p].frame;
      if (rload_q[p]) rframe_q[p] <= rahead_q[p];
      if (n_at_q[p]) rnext_q[p] <= n_cell_q;
      if (rload_q[p]) rcell_q[p] <= rahead_q[p].first;
      else if (CellBeats == 1) begin
        if (n_v_q && e2_at_q[p]) rcell_q[p] <= n_cell;
      end else if (n_at_q[p] && (rstart_q[p] || (e1_end && e1_at_q[p]))) begin
        rcell_q[p] <= n_cell_q;
      end else if (e1_end && e1_at_q[p]) begin
        rcell_q[p] <= rnext_q[p];
      end
      if (rload_q[p]) rstart_q[p] <= 1'b1;
      else if (e1_at_q[p]) rstart_q[p] <= e1_end;
      if (plan_take[p]) begin
        rleft_q[p] <= plan[p].beats;
        rlast_q[p] <= plan[p].beats == 11'd1;
      end else if (rgrants[p]) begin
        rleft_q[p] <= rleft_q[p] - 11'd1;
        rlast_q[p] <= rleft_q[p] == 11'd2;
      end
    end
    if (!rst_ni) begin
      ract_q <= '0;
      rload_q <= '0;
      rbeat_q <= '0;
      out_q <= '0;
      out_room_q <= '1;
      e1_v_q <= 1'b0;
      e1_at_q <= '0;
      e2_at_q <= '0;
      e4_at_q <= '0;
      n_v_q <= 1'b0;
      n_at_q <= '0;
      free_cell_v_q <= 1'b0;
    end else begin
      rload_q <= plan_take;
      e1_v_q <= rgrant;
      e1_at_q <= rgrants;
      e2_at_q <= e1_at_q;
      e4_at_q <= e3_at;
      n_v_q <= e1_v_q && e1_start && !e1_last_q;
      // What follows a frame's last cell means nothing.
      n_at_q <= n_v_q ? e2_at_q & ~(e1_last_q ? e1_at_q : '0) : '0;
      free_cell_v_q <= e1_v_q && e1_end;
      for (int unsigned p = 0; p < Ports; p++) begin
        if (e1_at_q[p]) rbeat_q[p] <= e1_end ? '0 : rbeat_q[p] + 1'b1;
        if (plan_take[p]) ract_q[p] <= 1'b1;
        else if (rgrants[p] && rlast_q[p]) ract_q[p] <= 1'b0;
        out_q[p] <= out_q[p] + OutRoomBits'(rgrants[p]) - OutRoomBits'(m_fire[p]);
        out_room_q[p] <= m_fire[p] || out_q[p] < OutRoomBits'(OutDepth - 1) + OutRoomBits'(!rgrants[p]);
      end
    end
  end

  // Beats of cells, and tags by first cell.
  logic [$clog2(Cells*CellBeats)-1:0] waddr, raddr;
  if (CellBeats == 1) begin : g_one
    assign waddr = x1_cell_q;
    assign raddr = e2_cell_q;
  end else begin : g_several
    assign waddr = {x1_cell_q, x1_beat_q};
    assign raddr = {e2_cell_q, e2_beat_q};
  end
  hue_queue_memory #(
    .External(External), .Words(Cells * CellBeats), .Bits(8 * BusBytes), .InfoBits($bits(read_t) + 32), .Ports(Ports),
    .PartBits(8 * QueueWordBytes)
  ) u_cells (
    .clk_i, .rst_ni,
    .write_i(x1_store_q), .waddr_i(waddr), .wdata_i(x1_data_q), .wlast_i(x1_commit_q), .wroom_o(write_room),
    .read_i(e2_at_q), .raddr_i(raddr), .rinfo_i({e3_q, rtag}), .rroom_o(read_room),
    .rvalid_o(e3_at), .rdata_o(rdata), .rinfo_o({read, read_tag}),
    .part_valid_o(part_req_o.valid), .part_ready_i, .part_write_o(part_req_o.write), .part_addr_o(part_req_o.addr),
    .part_wdata_o(part_req_o.wdata), .part_rvalid_i, .part_rdata_i
  );
  hue_ram #(.Words(Cells), .Bits(32)) u_tags (
    .clk_i, .write_i(x1_start_q), .waddr_i(x1_first_q), .wdata_i(x1_head_q.tag),
    .read_i(1'b1), .raddr_i(e2_first_q), .rdata_o(rtag)
  );

  // ---- Out
  logic [Ports-1:0] out_ready;
  for (genvar p = 0; p < Ports; p++) begin : g_out
    out_t                   sent;
    logic [OutRoomBits-1:0] unused_out_room;
    hue_fifo #(.Depth(OutDepth), .Bits($bits(out_t))) u_out (
      .clk_i, .rst_ni, .valid_i(e4_at_q[p]), .ready_o(out_ready[p]), .data_i(e4_q),
      .valid_o(m_valid_o[p]), .ready_i(m_ready_i[p]), .data_o(sent), .room_o(unused_out_room)
    );
    assign m_data_o[p] = sent.data;
    assign m_bytes_o[p] = sent.bytes;
    assign m_last_o[p] = sent.last;
    assign m_tag_o[p] = sent.tag;
    assign sent_o[p] = m_fire[p] && sent.last;
    assign sent_len_o[p] = sent.len;
`ifndef SYNTHESIS
    a_room: assert property (@(posedge clk_i) disable iff (!rst_ni) out_room_q[p] == (out_q[p] != OutRoomBits'(OutDepth)));
`endif
  end

  // A frame counts as come until it is written, its cells as not free until well after it is read, and beats until they
  // are out; so that what is remembered of the last two is a clock old does not matter.
  logic all_free_q, none_out_q;
  always_ff @(posedge clk_i) begin
    all_free_q <= free_q == count_t'(Cells);
    none_out_q <= out_q == '0;
  end
`ifdef HUE_PLANT_QUEUES_IDLE
  assign idle_o = all_free_q && none_out_q;  // for scripts/rtl-test: the bench must find this
`else
  assign idle_o = all_free_q && none_out_q && come_q == left_q;
`endif

  // Beats have no numbers where a cell is one; of some sums only the sign counts.
  logic unused;
  assign unused = ^{hold_net_i, d_head_q.tag, d_head_q.len, x1_beat_q, p4_joined.phase, s1_below, s1_owes, e2_beat_q};

`ifdef HUE_TWIN
  always_ff @(posedge clk_i) begin
    if (rst_ni && drop) hue_card_ended(d_head_q.tag, 32'(d_head_q.net), EndedRefused);
  end
`endif

`ifndef SYNTHESIS
  count_t put_cells_q;     // cells of the present frame so far
  queue_t owner_q [Cells]; // by first cell of a frame
  logic   used_q [Cells];  // counts once a cell was used
  logic   own, alloc_used, free_used, commit_x, in_alone;
  credit_t credits_q [Queues];
  logic [Latency-2:0] fires_q;     // of the last clocks, the latest lowest
  logic [Latency-1:0] holds_q;
  assign own = owner_q[s2_q.entry.frame.first] == s2_queue_q;
  assign commit_x = store && beat_last;
  assign alloc_used = !fresh && used_q[alloc_cell];
  assign free_used = used_q[free_cell_q];
  // A frame of one beat that comes to where nothing is, of a network that is not in debt.
  assign in_alone = s_valid_i && s_ready_o && s_last_i && idle_o
                    && credits_q[queue_of(s_departure_i.port, s_departure_i.net[NetBits-1:0])] > 0;
  always_ff @(posedge clk_i) begin
    if (x1_commit_q) owner_q[x1_first_q] <= x1_queue;
    if (clearing_q) credits_q[clear_q] <= credit_t'(QuantumBytes);
    else if (r_v_q) credits_q[r_queue_q] <= r_served_q.credit;
    fires_q <= {fires_q[Latency-3:0], s_valid_i && s_ready_o};
    holds_q <= {holds_q[Latency-2:0], hold_i};
    if (alloc) used_q[alloc_cell] <= 1'b1;
    if (free_cell_v_q) used_q[free_cell_q] <= 1'b0;
    if (!rst_ni || commit_x) put_cells_q <= '0;
    else if (alloc) put_cells_q <= put_cells_q + 1'b1;
  end
  a_beat_has_room: assert property (@(posedge clk_i) disable iff (!rst_ni) s_valid_i && s_ready_o |-> unused_beat_ready);
  a_head_has_room: assert property (@(posedge clk_i) disable iff (!rst_ni) come_q - left_q <= place_t'(InDepth));
  a_cell_when_set_aside: assert property (@(posedge clk_i) disable iff (!rst_ni) alloc |-> (fresh || back_valid));
  a_back_has_room: assert property (@(posedge clk_i) disable iff (!rst_ni) free_cell_v_q |-> back_ready);
  a_out_has_room: assert property (@(posedge clk_i) disable iff (!rst_ni) (e4_at_q & ~out_ready) == '0);
  a_plan_has_room: assert property (@(posedge clk_i) disable iff (!rst_ni) s2_takes_q |-> plan_ready[s2_port_q]);
  a_act_has_room: assert property (@(posedge clk_i) disable iff (!rst_ni) act_new |-> act_ready);
  a_frames_end_as_announced: assert property (@(posedge clk_i) disable iff (!rst_ni)
    commit_x |-> 32'(put_cells_q) + 32'(alloc) == 32'(cells_of(x_head.len)));
  a_free_is_bounded: assert property (@(posedge clk_i) disable iff (!rst_ni) free_q <= count_t'(Cells));
  a_own_queue: assert property (@(posedge clk_i) disable iff (!rst_ni) s2_takes_q |-> own);
  a_not_in_use: assert property (@(posedge clk_i) disable iff (!rst_ni) alloc |-> !alloc_used);
  a_in_use: assert property (@(posedge clk_i) disable iff (!rst_ni) free_cell_v_q |-> free_used);
  a_held: assert property (@(posedge clk_i) disable iff (!rst_ni)
    (s2_takes_q && $past(hold_i) && 32'(s2_port_q) < MacPorts) |-> s2_q.entry.net != $past(hold_net_i[NetBits-1:0]));
  /* verilator lint_off TICKCOUNT */
  a_latency: assert property (@(posedge clk_i) disable iff (!rst_ni)
    (!External && $past(in_alone, Latency) && fires_q == '0 && holds_q == '0) |-> m_valid_o != '0);
  /* verilator lint_on TICKCOUNT */

  a_joining: assert property (@(posedge clk_i) disable iff (!rst_ni)
    $past(in_alone && 32'(s_departure_i.port) < MacPorts, Joining) |-> waits_o[$past(s_departure_i.net, Joining)]);

  // Frames in each queue, from joining until they are taken; and beats inside, from pin to pin.
  logic [15:0] queued_q [Queues];
  logic [15:0] k_queued, s2_queued;
  logic [31:0] beats_q, frames_q;
  logic        join_same;
  assign k_queued = queued_q[k_queue_q];
  assign s2_queued = queued_q[s2_queue_q];
  assign join_same = k_v_q && s2_takes_q && k_queue_q == s2_queue_q;
  always_ff @(posedge clk_i) begin
    if (clearing_q) begin
      queued_q[clear_q] <= '0;
    end else if (!join_same) begin
      if (k_v_q) queued_q[k_queue_q] <= k_queued + 1'b1;
      if (s2_takes_q) queued_q[s2_queue_q] <= s2_queued - 1'b1;
    end
    if (!rst_ni) begin
      beats_q <= '0;
      frames_q <= '0;
    end else begin
      beats_q <= beats_q + 32'(s_valid_i && s_ready_o) - 32'(x_fire && !store) - 32'($countones(m_fire));
      frames_q <= frames_q + 32'(commit_x) - 32'($countones(sent_o));
    end
  end
  // A queue waits, and is on a list or has a turn, exactly as long as it has frames.
  a_act: assert property (@(posedge clk_i) disable iff (!rst_ni) k_v_q |-> k_act_q == (k_queued != '0));
  a_takes_what_waits: assert property (@(posedge clk_i) disable iff (!rst_ni) s2_v_q |-> s2_queued != '0);
  a_empties: assert property (@(posedge clk_i) disable iff (!rst_ni)
    s2_takes_q |-> empties == (s2_queued == 16'd1 && !join_same));
  a_idle_means_empty: assert property (@(posedge clk_i) disable iff (!rst_ni) idle_o |-> (beats_q == '0 && frames_q == '0));
  // As many bits as queues of MAC ports wait, and that of one that a frame joined: so those, and no others.
  logic [15:0] waiting_q;
  logic        begins_mac, ends_mac, ends_mac_q;
  assign begins_mac = k_v_q && 32'(k_port_q) < MacPorts && k_queued == '0;
  assign ends_mac = s2_takes_q && 32'(s2_port_q) < MacPorts && s2_queued == 16'd1 && !join_same;
  always_ff @(posedge clk_i) begin
    ends_mac_q <= rst_ni && ends_mac;
    if (!rst_ni) waiting_q <= '0;
    else waiting_q <= waiting_q + 16'(begins_mac) - 16'(ends_mac_q);
  end
  a_waits: assert property (@(posedge clk_i) disable iff (!rst_ni)
    (s2_v_q && 32'(s2_port_q) < MacPorts) |-> waits_q[s2_port_q[1:0]][s2_q.entry.net]);
  a_waits_once_joined: assert property (@(posedge clk_i) disable iff (!rst_ni)
    (k_v_q && 32'(k_port_q) < MacPorts) |=> waits_q[$past(k_port_q[1:0])][$past(k_net_q)]);
  a_no_other_waits: assert property (@(posedge clk_i) disable iff (!rst_ni) 16'($countones(waits_q)) == waiting_q);
`endif

endmodule
