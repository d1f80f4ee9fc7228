// Output queues: for each port a queue a network, in one memory of cells, emptied in turn by bytes.
//
// Place: hue_cpu_insert → output queues → ports. A frame takes as many cells as it needs; frames of one network for one
// port form a queue and leave in order. A frame is let in when its queue, with it, would hold no more cells than are
// free (Choudhury and Hahne, dynamic thresholds, alpha 1): so a network that sends more than its port takes fills at
// most half of what others leave free, and only its own frames are lost. What is not let in is dropped and counted,
// or held back when `offline_i`.
// A port serves its networks round robin. A turn lasts while the network's credit is positive; each turn adds
// QuantumBytes to the credit, each frame takes its bytes (surplus round robin). So over any time two networks that
// always wait get the same bytes to within QuantumBytes and two frames.
// One network's frames for MAC ports can be held (`hold_i`): they wait in its queues, and take no share, until the hold
// ends. A network that moves here from software waits so for the frames that are still on their way there (ADR 0013);
// what it may hold is what a queue may.
// Cross-network access: a frame leaves by the queue it was put in, which is asserted.
//
// Latency: `Latency` clocks from the last beat in to the first beat out when nothing else waits or comes. Throughput: a
// beat a clock in, and a beat a clock out over all ports together. One port begins a frame every 3 clocks at most, and
// pauses a clock between two: so it takes 3 ports with frames of 64 bytes to fill a bus of 512 bits. A network that begins
// its turn in debt costs the port 3 clocks.
//
// What is looked up is looked up a clock ahead, and nothing stands between a memory and a register but a choice:
//   in      heads → a → b → c: let in?    beats wait → x: written → k: joins its queue; if it was empty, the port's list
//   lists   of networks that wait, by port; the next ones lie ahead (slots) with their credit
//   c0..c3  a step of a port's turn: choose the port, look at its network, look up what follows, take and charge
//   e0..e3  a beat: choose the port, address, read, out
// Source: A. K. Choudhury, E. L. Hahne, "Dynamic queue length thresholds for shared-memory packet switches", 1998;
// H. Adiseshu, G. Parulkar, G. Varghese, "A reliable and scalable striping protocol", 1996.

module hue_output_queues
  import hue_pkg::*;
#(
  parameter int unsigned BusBytes = 8,
  parameter int unsigned Nets = 64,
  parameter int unsigned Cells = 1024,
  parameter int unsigned QuantumBytes = 2048,
  localparam int unsigned ByteBits = $clog2(BusBytes + 1)
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,
  input  logic                  offline_i,
  input  logic                  hold_i,          // no frame of this network is begun at a MAC port
  input  logic [5:0]            hold_net_i,
  output logic [63:0]           waits_o,         // by network: it has frames in a queue of a MAC port

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
  output logic [5:0]             dropped_net_o,
  output logic [Ports-1:0]       sent_o,         // a frame's last beat left
  output logic [Ports-1:0][13:0] sent_len_o,
  output logic                   idle_o
);

  localparam int unsigned CellBytes = 64;
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
  localparam int unsigned SlotDepth = 4;
  localparam int unsigned ActDepth = 16;
  localparam int unsigned OutDepth = 8;
  localparam int unsigned Latency = 23;
  localparam int unsigned FreeClocks = 3;  // until a cell that came back can be had again

  if (BusBytes > CellBytes) begin : g_bus_bytes
    $fatal(1, "BusBytes: expected at most the bytes of a cell");
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
    frame_t frame;
  } entry_t;
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

  // ---- In: beats wait until their frame is let in; its head goes ahead.
  localparam int unsigned InBits = $clog2(InDepth);
  typedef logic [InBits:0] place_t;  // a bit more than addresses, so that full and empty differ
  hue_departure_t        heads_q [InDepth];
  logic [InDepth-1:0]    admits_q;
  place_t                come_q, asked_q, decided_q, left_q;   // heads: came, being decided, decided, written
  logic                  inside_q, beat_ready, beat_valid, beat_last, x_fire;
  logic [8*BusBytes-1:0] beat_data;
  localparam int unsigned InRoomBits = $clog2(InDepth + 1);
  logic [InRoomBits-1:0] unused_beat_room;

  assign s_ready_o = !clearing_q && beat_ready && (inside_q || come_q - left_q != place_t'(InDepth));
  hue_fifo #(.Depth(InDepth), .Bits(8 * BusBytes + 1)) u_beats (
    .clk_i, .rst_ni, .valid_i(s_valid_i && s_ready_o), .ready_o(beat_ready), .data_i({s_last_i, s_data_i}),
    .valid_o(beat_valid), .ready_i(x_fire), .data_o({beat_last, beat_data}), .room_o(unused_beat_room)
  );
  always_ff @(posedge clk_i) begin
    if (s_valid_i && s_ready_o && !inside_q) heads_q[come_q[InBits-1:0]] <= s_departure_i;
    if (!rst_ni) begin
      inside_q <= 1'b0;
      come_q <= '0;
    end else if (s_valid_i && s_ready_o) begin
      inside_q <= !s_last_i;
      if (!inside_q) come_q <= come_q + 1'b1;
    end
  end

  // ---- Letting in: is there room? Cells let into a queue and taken out of it are counted modulo, each by one side.
  (* ram_style = "distributed" *) count_t put_q [Queues];
  (* ram_style = "distributed" *) count_t gone_q [Queues];
  logic           a_v_q, b_v_q, c_v_q, b_same_q, admit, drop, again, c_here;
  hue_departure_t a_head, c_head_q, b_head_q, a_head_q;
  queue_t         a_queue, b_queue, c_queue;
  count_t         a_need_q, b_need_q, c_need_q, b_put_q, b_gone_q, c_put_q, c_used_q, free_q;
  logic           freed;

  assign a_head = heads_q[asked_q[InBits-1:0]];
  assign a_queue = queue_of(a_head_q.port, a_head_q.net[NetBits-1:0]);
  assign b_queue = queue_of(b_head_q.port, b_head_q.net[NetBits-1:0]);
  assign c_queue = queue_of(c_head_q.port, c_head_q.net[NetBits-1:0]);
  // c_used_q is what the queue would hold with the frame.
  assign c_here = c_used_q <= free_q;
  assign admit = c_v_q && c_here;
  assign drop = c_v_q && !c_here && !offline_i;
  // Held back: this frame is looked at again, and so are those behind it.
  assign again = c_v_q && !c_here && offline_i;

  always_ff @(posedge clk_i) begin
    a_head_q <= a_head;
    a_need_q <= cells_of(a_head.len);
    b_head_q <= a_head_q;
    b_need_q <= a_need_q;
    // What is decided in this clock and in the next counts already: here that of two frames ahead, below that of one.
    b_put_q <= admit && c_queue == a_queue ? c_put_q : put_q[a_queue];
    b_gone_q <= gone_q[a_queue];
    b_same_q <= b_v_q && b_queue == a_queue;
    c_head_q <= b_head_q;
    c_need_q <= b_need_q;
    c_put_q <= (b_same_q && admit ? c_put_q : b_put_q) + b_need_q;
    c_used_q <= b_same_q && admit ? c_put_q - b_gone_q + b_need_q : b_put_q - b_gone_q + b_need_q;
    if (clearing_q) put_q[clear_q] <= '0;
    else if (admit) put_q[c_queue] <= c_put_q;
    if (admit || drop) admits_q[decided_q[InBits-1:0]] <= admit;
    dropped_port_o <= c_head_q.port;
    dropped_net_o <= c_head_q.net;
    if (!rst_ni) begin
      a_v_q <= 1'b0;
      b_v_q <= 1'b0;
      c_v_q <= 1'b0;
      asked_q <= '0;
      decided_q <= '0;
      free_q <= count_t'(Cells);
      dropped_o <= 1'b0;
    end else begin
      a_v_q <= asked_q != come_q && !again;
      b_v_q <= a_v_q && !again;
      c_v_q <= b_v_q && !again;
      if (again) asked_q <= decided_q;
      else if (asked_q != come_q) asked_q <= asked_q + 1'b1;
      if (admit || drop) decided_q <= decided_q + 1'b1;
      // A frame's cells are set aside as it is let in.
      free_q <= admit ? free_q + count_t'(freed) - c_need_q : free_q + count_t'(freed);
      dropped_o <= drop;
    end
  end

  // ---- Free cells: those never used yet, then those given back.
  logic   alloc, free_cell_v_q, back_valid, back_ready, fresh;
  cell_t  free_cell_q, back_cell, alloc_cell;
  count_t fresh_q;
  logic [FreeClocks-1:0] freed_q;
  assign fresh = fresh_q != count_t'(Cells);
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

  // ---- Writing: a beat is given its place (x), is written (x1), and with the last its frame joins the queue (k).
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

  assign x_head = heads_q[left_q[InBits-1:0]];
  assign x_fire = beat_valid && left_q != decided_q && act_room > ActRoomBits'(ActsComing);
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

  // A queue's last frame is told what follows it; a network that did not wait is put on the port's list.
  (* ram_style = "distributed" *) cell_t tail_q [Queues];
  logic [Ports-1:0][NetPlaces-1:0] waits_q;   // which networks wait at a port
  logic                            k_v_q, k_act_q, c3_empties;
  queue_t                          x1_queue, k_queue_q, c3_queue;
  logic [2:0]                      k_port_q, c3_port_q;
  net_t                            k_net_q, x1_net, c3_net;
  frame_t                          k_frame_q, k_before_q;
  cell_t                           k_tail_q;
  assign x1_net = x1_head_q.net[NetBits-1:0];
  assign x1_queue = queue_of(x1_head_q.port, x1_net);

  always_ff @(posedge clk_i) begin
    k_port_q <= x1_head_q.port;
    k_net_q <= x1_net;
    k_queue_q <= x1_queue;
    k_frame_q.first <= x1_first_q;
    k_frame_q.len <= x1_head_q.len;
    k_before_q <= k_frame_q;
    k_tail_q <= k_v_q && k_queue_q == x1_queue ? k_frame_q.first : tail_q[x1_queue];
    k_act_q <= (waits_q[x1_head_q.port][x1_net] || (k_v_q && k_queue_q == x1_queue))
               && !(c3_empties && c3_queue == x1_queue);
    if (k_v_q) tail_q[k_queue_q] <= k_frame_q.first;
    if (!rst_ni) begin
      k_v_q <= 1'b0;
      waits_q <= '0;
    end else begin
      k_v_q <= x1_commit_q;
      if (c3_empties) waits_q[c3_port_q][c3_net] <= 1'b0;
      if (k_v_q) waits_q[k_port_q][k_net_q] <= 1'b1;
    end
  end
  always_comb begin
    waits_o = '0;
    for (int unsigned p = 0; p < MacPorts; p++) waits_o |= 64'(waits_q[p]);
  end

  // ---- Lists: for each port the networks that wait and have no turn, in order. A network whose turn ended comes first.
  typedef struct packed {
    logic [2:0] port;
    entry_t     entry;
  } act_t;
  typedef logic [NetBits:0] list_t;
  localparam int unsigned AheadBits = $clog2(SlotDepth + 1);
  act_t                            act_in, act, write;
  logic                            act_new, act_ready, act_valid, act_take, list_write, r_v_q, r_push_q;
  queue_t                          r_queue_q;
  logic [2:0]                      r_port_q;
  entry_t                          r_entry_q;
  served_t                         r_served_q, served;
  list_t [Ports-1:0]               list_put_q, list_got_q, member_q;
  logic [Ports-1:0][AheadBits-1:0] ahead_q;    // networks on their way to a port's slots, or there
  logic [Ports-1:0]                pop_asks, slot_valid, slot_take, slot_ready, put_now, back_now;
  logic                            pop, p1_v_q, p2_v_q, p3_v_q;
  logic [2:0]                      pop_port, p1_port_q, p2_port_q, p3_port_q;
  queue_t                          p1_addr_q;
  entry_t                          p2_entry, p3_entry_q;
  turn_t [Ports-1:0]               slot;

  assign act_new = k_v_q && !k_act_q;
  assign act_in.port = k_port_q;
  assign act_in.entry.net = k_net_q;
  assign act_in.entry.frame = k_frame_q;
  hue_fifo #(.Depth(ActDepth), .Bits($bits(act_t))) u_acts (
    .clk_i, .rst_ni, .valid_i(act_new), .ready_o(act_ready), .data_i(act_in),
    .valid_o(act_valid), .ready_i(act_take), .data_o(act), .room_o(act_room)
  );
  assign act_take = act_valid && !r_push_q;
  assign list_write = act_valid || r_push_q;
  always_comb begin
    write = act;
    if (r_push_q) write = '{port: r_port_q, entry: r_entry_q};
  end
  hue_ram #(.Words(Queues), .Bits($bits(entry_t))) u_lists (
    .clk_i, .write_i(list_write), .waddr_i(queue_of(write.port, list_put_q[write.port][NetBits-1:0])),
    .wdata_i(write.entry), .read_i(p1_v_q), .raddr_i(p1_addr_q), .rdata_o(p2_entry)
  );

  // The first of a list goes ahead to the port's slots; on its way its credit is read.
  always_comb begin
    for (int unsigned p = 0; p < Ports; p++) begin
      pop_asks[p] = list_put_q[p] != list_got_q[p] && ahead_q[p] != AheadBits'(SlotDepth);
      put_now[p] = list_write && write.port == 3'(p);
    end
  end
  hue_round_robin #(.Count(Ports)) u_pop (
    .clk_i, .rst_ni, .asks_i(pop_asks), .take_i(1'b1), .any_o(pop), .winner_o(pop_port)
  );
  hue_ram #(.Words(Queues), .Bits($bits(served_t))) u_served (
    .clk_i, .write_i(clearing_q || r_v_q), .waddr_i(clearing_q ? clear_q : r_queue_q),
    .wdata_i(clearing_q ? {credit_t'(QuantumBytes), count_t'(0)} : r_served_q),
    .read_i(p2_v_q), .raddr_i(queue_of(p2_port_q, p2_entry.net)), .rdata_o(served)
  );
  always_ff @(posedge clk_i) begin
    p1_port_q <= pop_port;
    p1_addr_q <= queue_of(pop_port, list_got_q[pop_port][NetBits-1:0]);
    p2_port_q <= p1_port_q;
    p3_port_q <= p2_port_q;
    p3_entry_q <= p2_entry;
    if (!rst_ni) begin
      p1_v_q <= 1'b0;
      p2_v_q <= 1'b0;
      p3_v_q <= 1'b0;
      list_put_q <= '0;
      list_got_q <= '0;
      ahead_q <= '0;
      member_q <= '0;
    end else begin
      p1_v_q <= pop;
      p2_v_q <= p1_v_q;
      p3_v_q <= p2_v_q;
      for (int unsigned p = 0; p < Ports; p++) begin
        if (put_now[p]) list_put_q[p] <= list_put_q[p] + 1'b1;
        if (pop && pop_port == 3'(p)) list_got_q[p] <= list_got_q[p] + 1'b1;
        ahead_q[p] <= ahead_q[p] + AheadBits'(pop && pop_port == 3'(p)) - AheadBits'(slot_take[p]);
        // All that wait beside the one whose turn it is; one that goes back counts before it is on the list.
        member_q[p] <= member_q[p] + list_t'(act_take && act.port == 3'(p)) + list_t'(back_now[p])
                       - list_t'(slot_take[p]);
      end
    end
  end
  for (genvar p = 0; p < Ports; p++) begin : g_slot
    logic [AheadBits-1:0] unused_slot_room;
    hue_fifo #(.Depth(SlotDepth), .Bits($bits(turn_t))) u_slot (
      .clk_i, .rst_ni, .valid_i(p3_v_q && p3_port_q == 3'(p)), .ready_o(slot_ready[p]), .data_i({p3_entry_q, served}),
      .valid_o(slot_valid[p]), .ready_i(slot_take[p]), .data_o(slot[p]), .room_o(unused_slot_room)
    );
  end

  // ---- Turns: a step a clock, of one port. A frame of the network whose turn it is is planned, or there is none.
  localparam int unsigned PlanRoomBits = $clog2(PlanDepth + 1);
  logic [Ports-1:0]                   sure, maybe, asks, has_q, plan_ready, plan_valid, plan_take, held, stepping, deciding;
  logic [Ports-1:0][PlanRoomBits-1:0] plan_room;
  turn_t [Ports-1:0]                  turn_q;
  logic                               step, c1_v_q, c2_v_q, c3_v_q, c3_debt_q, c3_spent_q, c3_by_q;
  logic [2:0]                         step_port, c1_port_q, c2_port_q;
  turn_t                              c2_q, c3_q, turn_next;
  queue_t                             c2_queue;
  credit_t                            credit_left, c3_left_q, c3_more_q, c3_left_more_q, credit_next;
  count_t                             c3_taken_q;
  cell_t                              c3_tail_q;
  frame_t                             linked, follows;
  logic                               takes, last_of_queue, commit_here, held_turn, over, leaves;

  always_comb begin
    for (int unsigned p = 0; p < Ports; p++) begin
      held[p] = hold_i && p < MacPorts && turn_q[p].entry.net == hold_net_i[NetBits-1:0];
      stepping[p] = (c1_v_q && c1_port_q == 3'(p)) || (c2_v_q && c2_port_q == 3'(p));
      deciding[p] = c3_v_q && c3_port_q == 3'(p);
      // One that is held gives way to others, and asks for nothing when alone. As a step is decided the next may begin: if
      // it is not sure that there is a network whose turn it then is, only when no other port asks.
      maybe[p] = has_q[p] && !stepping[p] && (slot_valid[p] || !held[p]) && plan_room[p] >= PlanRoomBits'(2);
      sure[p] = maybe[p] && (slot_valid[p] || !deciding[p]);
    end
    asks = sure != '0 ? sure : maybe;
  end
  hue_round_robin #(.Count(Ports)) u_step (
    .clk_i, .rst_ni, .asks_i(asks), .take_i(1'b1), .any_o(step), .winner_o(step_port)
  );

  assign c2_queue = queue_of(c2_port_q, c2_q.entry.net);
`ifdef HUE_PLANT_QUEUES_CREDIT
  assign credit_left = c2_q.served.credit - credit_t'(64);  // by frames; for scripts/rtl-test: the bench must find this
`else
  assign credit_left = c2_q.served.credit - credit_t'({2'b00, c2_q.entry.frame.len});
`endif
  hue_ram #(.Words(Cells), .Bits($bits(frame_t))) u_links (
    .clk_i, .write_i(k_v_q && k_act_q), .waddr_i(k_tail_q), .wdata_i(k_frame_q),
    .read_i(c2_v_q), .raddr_i(c2_q.entry.frame.first), .rdata_o(linked)
  );
  always_ff @(posedge clk_i) begin
    c1_port_q <= step_port;
    c2_port_q <= c1_port_q;
    c2_q <= turn_q[c1_port_q];
    c3_port_q <= c2_port_q;
    c3_q <= c2_q;
    c3_tail_q <= k_v_q && k_queue_q == c2_queue ? k_frame_q.first : tail_q[c2_queue];
    c3_by_q <= k_v_q && k_act_q && k_tail_q == c2_q.entry.frame.first;
    c3_debt_q <= c2_q.served.credit <= 0;
    c3_spent_q <= credit_left <= 0;
    c3_left_q <= credit_left;
    c3_more_q <= c2_q.served.credit + credit_t'(QuantumBytes);
    c3_left_more_q <= credit_left + credit_t'(QuantumBytes);
    c3_taken_q <= c2_q.served.taken + cells_of(c2_q.entry.frame.len);
    if (!rst_ni) begin
      c1_v_q <= 1'b0;
      c2_v_q <= 1'b0;
      c3_v_q <= 1'b0;
    end else begin
      c1_v_q <= step;
      c2_v_q <= c1_v_q && has_q[c1_port_q];
      c3_v_q <= c2_v_q;
    end
  end

  assign c3_net = c3_q.entry.net;
  assign c3_queue = queue_of(c3_port_q, c3_net);
`ifdef HUE_PLANT_QUEUES_HOLD
  assign held_turn = 1'b0;  // one whose turn had begun goes on; for scripts/rtl-test: the bench must find this
`else
  assign held_turn = hold_i && 32'(c3_port_q) < MacPorts && c3_net == hold_net_i[NetBits-1:0];
`endif
  assign takes = c3_v_q && !c3_debt_q && !held_turn;
  // A frame that joins the queue in this very clock follows the one that leaves.
  assign last_of_queue = c3_tail_q == c3_q.entry.frame.first;
  assign commit_here = k_v_q && k_queue_q == c3_queue;
  assign c3_empties = takes && last_of_queue && !commit_here;
  // The turn ends when credit is used up, or nothing waits; a network that is alone goes on.
  assign over = c3_v_q && (!takes || c3_empties || c3_spent_q);
  assign leaves = c3_empties || (over && member_q[c3_port_q] != '0);
  always_comb begin
    follows = linked;
    if (c3_by_q) follows = k_before_q;
    if (last_of_queue) follows = k_frame_q;
    // What is left of a credit is lost with an empty queue, a debt is not.
    if (held_turn) credit_next = c3_q.served.credit;
    else if (c3_debt_q) credit_next = c3_more_q;
    else if (c3_spent_q) credit_next = c3_left_more_q;
    else credit_next = c3_empties ? credit_t'(QuantumBytes) : c3_left_q;
    turn_next.entry.net = c3_net;
    turn_next.entry.frame = takes ? follows : c3_q.entry.frame;
    turn_next.served.credit = credit_next;
    turn_next.served.taken = takes ? c3_taken_q : c3_q.served.taken;
    for (int unsigned p = 0; p < Ports; p++) begin
      slot_take[p] = slot_valid[p] && (deciding[p] ? leaves : !has_q[p]);
      back_now[p] = deciding[p] && leaves && !c3_empties;
    end
  end
  always_ff @(posedge clk_i) begin
    r_port_q <= c3_port_q;
    r_queue_q <= c3_queue;
    r_entry_q <= turn_next.entry;
    r_served_q <= turn_next.served;
    if (clearing_q) gone_q[clear_q] <= '0;
    else if (r_v_q) gone_q[r_queue_q] <= r_served_q.taken;
    for (int unsigned p = 0; p < Ports; p++) begin
      if (slot_take[p]) turn_q[p] <= slot[p];
      else if (deciding[p]) turn_q[p] <= turn_next;
    end
    if (!rst_ni) begin
      clearing_q <= 1'b1;
      clear_q <= '0;
      has_q <= '0;
      r_v_q <= 1'b0;
      r_push_q <= 1'b0;
    end else begin
      clear_q <= clear_q + 1'b1;
      if (clear_q == queue_t'(Queues - 1)) clearing_q <= 1'b0;
      r_v_q <= c3_v_q;
      r_push_q <= leaves && !c3_empties;
      for (int unsigned p = 0; p < Ports; p++) begin
        if (slot_take[p]) has_q[p] <= 1'b1;
        else if (deciding[p] && leaves) has_q[p] <= 1'b0;
      end
    end
  end

  frame_t [Ports-1:0] plan;
  for (genvar p = 0; p < Ports; p++) begin : g_plan
    hue_fifo #(.Depth(PlanDepth), .Bits($bits(frame_t))) u_plan (
      .clk_i, .rst_ni, .valid_i(takes && c3_port_q == 3'(p)), .ready_o(plan_ready[p]), .data_i(c3_q.entry.frame),
      .valid_o(plan_valid[p]), .ready_i(plan_take[p]), .data_o(plan[p]), .room_o(plan_room[p])
    );
  end

  // ---- Reading: a beat a clock, of one port.
  localparam int unsigned OutRoomBits = $clog2(OutDepth + 1);
  logic [Ports-1:0]                  rasks, ract_q, rlasts;
  logic [Ports-1:0][OutRoomBits-1:0] out_q;      // beats of a port between here and its pins
  logic [Ports-1:0][10:0]            rleft_q;    // beats of the frame that are not asked for yet
  frame_t [Ports-1:0]                rframe_q;
  logic [Ports-1:0][BeatBits-1:0]    rbeat_q;    // of the cell: the next one to be read
  cell_t [Ports-1:0]                 rcell_q, rnext_q;  // its cell, and the one after that
  logic                              rgrant, e1_v_q, e1_last_q, e1_by, e1_start, e1_end, e2_v_q, e3_v_q, n_v_q;
  logic [2:0]                        rport, e1_port_q, e2_port_q, e3_port_q;
  logic [BeatBits-1:0]               e1_beat;
  cell_t                             e1_cell, n_cell;
  frame_t                            e1_frame;
  logic [LaneBits-1:0]               e1_rest;

  always_comb begin
    for (int unsigned p = 0; p < Ports; p++) begin
      rasks[p] = ract_q[p] && out_q[p] != OutRoomBits'(OutDepth);
      rlasts[p] = rleft_q[p] == 11'd1;
      plan_take[p] = plan_valid[p] && !ract_q[p];
    end
  end
  hue_round_robin #(.Count(Ports)) u_read (
    .clk_i, .rst_ni, .asks_i(rasks), .take_i(1'b1), .any_o(rgrant), .winner_o(rport)
  );

  // Where the beat is. The cell after this one is looked up as it is begun; with a beat a cell that may have been in the
  // clock before.
  assign e1_frame = rframe_q[e1_port_q];
  assign e1_beat = rbeat_q[e1_port_q];
  assign e1_by = n_v_q && e2_port_q == e1_port_q;
  assign e1_cell = CellBeats == 1 && e1_by ? n_cell : rcell_q[e1_port_q];
  assign e1_start = e1_beat == '0;
  assign e1_end = e1_last_q || 32'(e1_beat) == CellBeats - 1;
  assign e1_rest = e1_frame.len[LaneBits-1:0];
  hue_ram #(.Words(Cells), .Bits(CellBits)) u_nexts (
    .clk_i, .write_i(x1_link_q), .waddr_i(x1_before_q), .wdata_i(x1_cell_q),
    .read_i(e1_v_q && e1_start), .raddr_i(e1_cell), .rdata_o(n_cell)
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
  read_t                 e2_q;
  out_t                  e3_q;
  logic [31:0]           rtag;
  logic [8*BusBytes-1:0] rdata;
  logic [Ports-1:0]      m_fire;
  assign m_fire = m_valid_o & m_ready_i;

  always_ff @(posedge clk_i) begin
    e1_port_q <= rport;
    e1_last_q <= rlasts[rport];
    e2_port_q <= e1_port_q;
    e2_q.last <= e1_last_q;
    e2_q.bytes <= e1_last_q && e1_rest != '0 ? ByteBits'(e1_rest) : ByteBits'(BusBytes);
    e2_q.len <= e1_frame.len;
    e3_port_q <= e2_port_q;
    e3_q.data <= rdata;
    e3_q.bytes <= e2_q.bytes;
    e3_q.last <= e2_q.last;
    e3_q.tag <= rtag;
    e3_q.len <= e2_q.len;
    free_cell_q <= e1_cell;
    if (n_v_q) rnext_q[e2_port_q] <= n_cell;
    if (CellBeats == 1) begin
      if (n_v_q) rcell_q[e2_port_q] <= n_cell;
    end else if (e1_v_q && e1_end) begin
      rcell_q[e1_port_q] <= e1_by ? n_cell : rnext_q[e1_port_q];
    end
    for (int unsigned p = 0; p < Ports; p++) begin
      if (plan_take[p]) begin
        rframe_q[p] <= plan[p];
        rcell_q[p] <= plan[p].first;
        rleft_q[p] <= 11'((32'(plan[p].len) + BusBytes - 1) >> LaneBits);
      end else if (rgrant && rport == 3'(p)) begin
        rleft_q[p] <= rleft_q[p] - 11'd1;
      end
    end
    if (!rst_ni) begin
      ract_q <= '0;
      rbeat_q <= '0;
      out_q <= '0;
      e1_v_q <= 1'b0;
      e2_v_q <= 1'b0;
      e3_v_q <= 1'b0;
      n_v_q <= 1'b0;
      free_cell_v_q <= 1'b0;
    end else begin
      e1_v_q <= rgrant;
      e2_v_q <= e1_v_q;
      e3_v_q <= e2_v_q;
      n_v_q <= e1_v_q && e1_start && !e1_last_q;
      if (e1_v_q) rbeat_q[e1_port_q] <= e1_end ? '0 : e1_beat + 1'b1;
      free_cell_v_q <= e1_v_q && e1_end;
      for (int unsigned p = 0; p < Ports; p++) begin
        if (plan_take[p]) ract_q[p] <= 1'b1;
        else if (rgrant && rport == 3'(p) && rlasts[p]) ract_q[p] <= 1'b0;
        out_q[p] <= out_q[p] + OutRoomBits'(rgrant && rport == 3'(p)) - OutRoomBits'(m_fire[p]);
      end
    end
  end

  // Beats of cells, and tags by first cell.
  logic [$clog2(Cells*CellBeats)-1:0] waddr, raddr;
  if (CellBeats == 1) begin : g_one
    assign waddr = x1_cell_q;
    assign raddr = e1_cell;
  end else begin : g_several
    assign waddr = {x1_cell_q, x1_beat_q};
    assign raddr = {e1_cell, e1_beat};
  end
  hue_ram #(.Words(Cells * CellBeats), .Bits(8 * BusBytes)) u_cells (
    .clk_i, .write_i(x1_store_q), .waddr_i(waddr), .wdata_i(x1_data_q), .read_i(e1_v_q), .raddr_i(raddr),
    .rdata_o(rdata)
  );
  hue_ram #(.Words(Cells), .Bits(32)) u_tags (
    .clk_i, .write_i(x1_start_q), .waddr_i(x1_first_q), .wdata_i(x1_head_q.tag),
    .read_i(e1_v_q), .raddr_i(e1_frame.first), .rdata_o(rtag)
  );

  // ---- Out
  logic [Ports-1:0] out_ready;
  for (genvar p = 0; p < Ports; p++) begin : g_out
    out_t                   sent;
    logic [OutRoomBits-1:0] unused_out_room;
    hue_fifo #(.Depth(OutDepth), .Bits($bits(out_t))) u_out (
      .clk_i, .rst_ni, .valid_i(e3_v_q && e3_port_q == 3'(p)), .ready_o(out_ready[p]), .data_i(e3_q),
      .valid_o(m_valid_o[p]), .ready_i(m_ready_i[p]), .data_o(sent), .room_o(unused_out_room)
    );
    assign m_data_o[p] = sent.data;
    assign m_bytes_o[p] = sent.bytes;
    assign m_last_o[p] = sent.last;
    assign m_tag_o[p] = sent.tag;
    assign sent_o[p] = m_fire[p] && sent.last;
    assign sent_len_o[p] = sent.len;
  end

  assign idle_o = free_q == count_t'(Cells) && come_q == left_q && out_q == '0;

`ifndef SYNTHESIS
  count_t put_cells_q;     // cells of the present frame so far
  queue_t owner_q [Cells]; // by first cell of a frame
  logic   used_q [Cells];  // counts once a cell was used
  logic   own, alloc_used, free_used, commit_x, in_alone;
  credit_t credits_q [Queues];
  logic [Latency-2:0] fires_q;     // of the last clocks, the latest lowest
  logic [Latency-1:0] holds_q;
  assign own = owner_q[c3_q.entry.frame.first] == c3_queue;
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
  a_cell_when_set_aside: assert property (@(posedge clk_i) disable iff (!rst_ni) alloc |-> (fresh || back_valid));
  a_back_has_room: assert property (@(posedge clk_i) disable iff (!rst_ni) free_cell_v_q |-> back_ready);
  a_out_has_room: assert property (@(posedge clk_i) disable iff (!rst_ni) e3_v_q |-> out_ready[e3_port_q]);
  a_plan_has_room: assert property (@(posedge clk_i) disable iff (!rst_ni) takes |-> plan_ready[c3_port_q]);
  a_slot_has_room: assert property (@(posedge clk_i) disable iff (!rst_ni) p3_v_q |-> slot_ready[p3_port_q]);
  a_act_has_room: assert property (@(posedge clk_i) disable iff (!rst_ni) act_new |-> act_ready);
  a_waits: assert property (@(posedge clk_i) disable iff (!rst_ni) c3_v_q |-> waits_q[c3_port_q][c3_net]);
  a_frames_end_as_announced: assert property (@(posedge clk_i) disable iff (!rst_ni)
    commit_x |-> 32'(put_cells_q) + 32'(alloc) == 32'(cells_of(x_head.len)));
  a_free_is_bounded: assert property (@(posedge clk_i) disable iff (!rst_ni) free_q <= count_t'(Cells));
  a_own_queue: assert property (@(posedge clk_i) disable iff (!rst_ni) takes |-> own);
  a_not_in_use: assert property (@(posedge clk_i) disable iff (!rst_ni) alloc |-> !alloc_used);
  a_in_use: assert property (@(posedge clk_i) disable iff (!rst_ni) free_cell_v_q |-> free_used);
  a_held: assert property (@(posedge clk_i) disable iff (!rst_ni)
    (takes && hold_i && 32'(c3_port_q) < MacPorts) |-> c3_net != hold_net_i[NetBits-1:0]);
  a_latency: assert property (@(posedge clk_i) disable iff (!rst_ni)
    ($past(in_alone, Latency) && fires_q == '0 && holds_q == '0) |-> m_valid_o != '0);
`endif

endmodule
