// Output queues: one queue for each pair of port and network, all in one memory of cells. Each port serves its networks in turns
// that are measured in bytes. The memory is hue_queue_memory, on chip or outside; the lists of free cells and of each frame's
// cells are always on chip.
//
// Place: hue_cpu_insert → output queues → ports. hue_admit has reserved a frame's cells before the frame comes. A frame takes as
// many cells as it needs; the frames of one network for one port form a queue and leave in order.
//   hue_queue_write    gives each beat its place; with the last beat the frame …
//   hue_queue_join     … is linked to the last frame of its queue
//   hue_queue_lists    the networks that wait, by port; the next ones with what their turn needs
//   hue_queue_turns    chooses a port's next frame, by credit
//   hue_queue_weights  what a turn adds to a network's credit
//   hue_queue_read     reads the frame's beats from their cells and sends them to the port
// Hold: the frames of one network for MAC ports can be held (`hold_i`). They wait in the network's queues and take no share
// until the hold ends. A network that moves here from software waits in this way for its frames that are still on their way in
// software (ADR 0013). It may occupy as many cells as any queue. From the second clock of a hold on none of its frames is
// taken; a frame that was taken before still leaves.
// Order: frames join their queues, and show in `waits_o`, in the order in which they came in, `Joining` clocks after their last
// beat and before any frame that came after them leaves. So once a later frame has left, `waits_o` counts the earlier ones.
// `waits_o` falls two clocks after the last frame was taken.
// Cross-network access: a frame leaves by the queue that it joined; this is asserted.
//
// Latency: `Latency` clocks from the last beat in to the first beat out when nothing else waits or comes; an external memory
// adds its own latency. Throughput: a beat a clock in, and a beat a clock out, at one port or over all ports. One port begins at
// most one frame every second clock, and all ports together one a clock, so frames of 64 bytes fill a bus of 512 bits only
// over two ports. A network that begins its turn in debt costs the port 2 clocks. The turns of a port begin at most every third
// clock, and at most two within 7 clocks, in which the next two networks are looked up. So where each turn is one frame of
// 64 bytes, it takes two ports to fill a bus of 256 bits.
// External memory: beats wait for its answer. Each port requests ahead as many beats as cover that time. While the memory has
// no room, nothing is taken in or requested.
//
// Timing: each lookup is done one clock ahead, so there is only a multiplexer between a memory and a register. What is kept
// about a queue is in block RAM, and each memory is written by one side only.

module hue_output_queues
  import hue_pkg::*;
#(
  parameter int unsigned BusBytes = 8,
  parameter int unsigned Nets = 64,
  parameter int unsigned Cells = 1024,
  parameter int unsigned CellBytes = 64,   // a power of two
  parameter int unsigned QuantumBytes = 2048,
  parameter bit External = 1'b0,
  localparam int unsigned ByteBits = $clog2(BusBytes + 1),
  localparam int unsigned NetBits = Nets > 1 ? $clog2(Nets) : 1,
  localparam int unsigned QueueBits = $clog2(Ports) + NetBits,
  localparam int unsigned CellBits = $clog2(Cells),
  localparam int unsigned CountBits = CellBits + 1
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,
  input  logic                  hold_i,          // no frame of this network begins at a MAC port
  input  logic [7:0]            hold_net_i,
  output logic [NetsMax-1:0]    waits_o,         // by network: it has frames in the queue of a MAC port
  input  tbl_req_t              tbl_req_i,
  output tbl_rsp_t              tbl_rsp_o,

  input  logic                  s_valid_i,
  output logic                  s_ready_o,
  input  logic [8*BusBytes-1:0] s_data_i,
  input  logic                  s_last_i,
  input  hue_departure_t        s_departure_i,  // stable over the frame

  // To hue_admit.
  output logic                  gone_o,
  output logic [QueueBits-1:0]  gone_queue_o,
  output logic [CountBits-1:0]  gone_cells_o,
  output logic                  freed_o,
  output logic                  freed_cpu_o,

  output logic [Ports-1:0]                 m_valid_o,
  input  logic [Ports-1:0]                 m_ready_i,
  output logic [Ports-1:0][8*BusBytes-1:0] m_data_o,
  output logic [Ports-1:0][ByteBits-1:0]   m_bytes_o,
  output logic [Ports-1:0]                 m_last_o,
  output logic [Ports-1:0][31:0]           m_tag_o,        // valid with the first beat; after that, its cell may be free

  output logic [Ports-1:0]       sent_o,         // pulse: a frame's last beat left
  output logic [Ports-1:0][13:0] sent_len_o,
  output logic                   none_o,         // one clock ago no beat was being read or waiting at a pin

  // The external memory.
  output queue_req_t                part_req_o,
  input  logic                      part_ready_i,
  input  logic                      part_rvalid_i,
  input  logic [8*QueueWordBytes-1:0] part_rdata_i
);

  localparam int unsigned CellBeats = CellBytes / BusBytes;
  localparam int unsigned BeatBits = CellBeats > 1 ? $clog2(CellBeats) : 1;
  localparam int unsigned CreditBits = 17;
  localparam int unsigned EntryBits = NetBits + 1 + CellBits + 14;
  localparam int unsigned ServedBits = CreditBits + CountBits;
  localparam int unsigned InfoBits = ByteBits + 47;
`ifndef SYNTHESIS
  localparam int unsigned Latency = 23;
  localparam int unsigned Joining = 4;
`endif

  if (BusBytes > CellBytes) begin : g_bus_bytes
    $fatal(1, "BusBytes: expected at most the bytes of a cell");
  end
  if (External && 4 * BusBytes > QueueWordBytes) begin : g_part
    $fatal(1, "External: expected a bus of which a word takes four beats or more, so that half the part's clocks suffice");
  end
  if (QuantumBytes < 64 || QuantumBytes > FrameBytesMax) begin : g_quantum
    $fatal(1, "QuantumBytes: expected 64 to the greatest length of a frame");
  end

  // After reset the memories indexed by queue are cleared.
  logic                 clearing_q;
  logic [QueueBits-1:0] clear_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      clearing_q <= 1'b1;
      clear_q <= '0;
    end else begin
      clear_q <= clear_q + 1'b1;
      if (clear_q == '1) clearing_q <= 1'b0;
    end
  end

  // Writing
  logic                  back, back_cpu, beat, link, first, last, list_room, write_room, read_room;
  logic [CellBits-1:0]   back_cell, cell_, cell_before, head;
  logic [BeatBits-1:0]   place;
  logic [8*BusBytes-1:0] data;
  hue_departure_t        departure;
  hue_queue_write #(.BusBytes(BusBytes), .Cells(Cells), .CellBeats(CellBeats), .CellBytes(CellBytes)) u_write (
    .clk_i, .rst_ni, .s_valid_i, .s_ready_o, .s_data_i, .s_last_i, .s_departure_i,
    .room_i(!clearing_q && list_room && write_room), .back_i(back), .back_cpu_i(back_cpu), .back_cell_i(back_cell), .freed_o, .freed_cpu_o,
    .beat_o(beat), .cell_o(cell_), .place_o(place), .data_o(data), .link_o(link), .before_o(cell_before),
    .first_o(first), .last_o(last), .head_o(head), .departure_o(departure)
  );

  // Joining
  logic                 comes, joins, waited, phase, empties, decided, emptied, again;
  logic [2:0]           comes_port, join_port;
  logic [NetBits-1:0]   comes_net, join_net;
  logic [Ports-1:0]     joins_at;
  logic [CellBits-1:0]  join_cell, tail, before_cell;
  logic [13:0]          join_len, before_len;
  logic [QueueBits-1:0] empties_queue, queue;
  logic [EntryBits-1:0] entry;
  logic [ServedBits-1:0] served;
  hue_queue_join #(.Nets(Nets), .CellBits(CellBits)) u_join (
    .clk_i, .rst_ni, .clearing_i(clearing_q), .clear_i(clear_q),
    .frame_i(last), .port_i(departure.port), .net_i(departure.net[NetBits-1:0]), .cell_i(head), .len_i(departure.len),
    .empties_i(empties), .empties_queue_i(empties_queue), .emptied_i(emptied), .emptied_queue_i(queue),
    .emptied_phase_i(entry[CellBits+14]),
    .comes_o(comes), .comes_port_o(comes_port), .comes_net_o(comes_net), .joins_o(joins), .joins_at_o(joins_at),
    .port_o(join_port), .net_o(join_net), .cell_o(join_cell), .len_o(join_len), .waited_o(waited), .phase_o(phase),
    .tail_o(tail), .before_cell_o(before_cell), .before_len_o(before_len), .waits_o
  );

  // Lists and turns
  logic [Ports-1:0]                 slot, others, take, back_now;
  logic [Ports-1:0][EntryBits-1:0]  slot_entry;
  logic [Ports-1:0][ServedBits-1:0] slot_served;
  logic [Ports-1:0][CellBits-1:0]   slot_tail;
  hue_queue_lists #(.Nets(Nets), .CellBits(CellBits), .CreditBits(CreditBits)) u_lists (
    .clk_i, .rst_ni, .clearing_i(clearing_q), .clear_i(clear_q), .fresh_i({CreditBits'(QuantumBytes), CountBits'(0)}),
    .joins_i(joins), .joins_at_i(joins_at), .port_i(join_port), .net_i(join_net), .cell_i(join_cell), .waited_i(waited),
    .phase_i(phase), .entry_i({join_net, phase, join_cell, join_len}), .room_o(list_room),
    .served_i(decided), .again_i(again), .again_entry_i(entry), .served_queue_i(queue), .served_state_i(served),
    .take_i(take), .back_i(back_now),
    .slot_o(slot), .slot_entry_o(slot_entry), .slot_served_o(slot_served), .slot_tail_o(slot_tail), .others_o(others)
  );
  logic [Ports-1:0]    plan, plan_room;
  logic [CellBits-1:0] plan_cell;
  logic [13:0]         plan_len;
  logic                look_wait;
  logic [NetBits-1:0]  look_net;
  logic [15:0]         quantum;
  hue_queue_weights #(.Nets(Nets), .QuantumBytes(QuantumBytes)) u_weights (
    .clk_i, .rst_ni, .clearing_i(clearing_q), .clear_i(clear_q[NetBits-1:0]), .tbl_req_i, .tbl_rsp_o, .wait_o(look_wait),
    .net_i(look_net), .quantum_o(quantum)
  );
  hue_queue_turns #(.Nets(Nets), .CellBits(CellBits), .CellBytes(CellBytes), .CreditBits(CreditBits)) u_turns (
    .clk_i, .rst_ni, .hold_i, .hold_net_i(hold_net_i[NetBits-1:0]), .look_net_o(look_net), .quantum_i(quantum), .wait_i(look_wait),
    .comes_i(comes), .comes_port_i(comes_port), .comes_net_i(comes_net), .joins_i(joins), .joins_at_i(joins_at),
    .net_i(join_net), .waited_i(waited), .cell_i(join_cell), .len_i(join_len), .tail_i(tail),
    .before_cell_i(before_cell), .before_len_i(before_len),
    .slot_i(slot), .slot_entry_i(slot_entry), .slot_served_i(slot_served), .slot_tail_i(slot_tail), .others_i(others),
    .take_o(take), .back_o(back_now), .empties_o(empties), .empties_queue_o(empties_queue), .decided_o(decided),
    .taken_o(gone_o), .emptied_o(emptied), .again_o(again), .queue_o(queue), .entry_o(entry), .served_o(served),
    .room_i(plan_room), .plan_o(plan), .plan_cell_o(plan_cell), .plan_len_o(plan_len)
  );
  assign gone_queue_o = queue;
  assign gone_cells_o = served[CountBits-1:0];

  // Reading, and the memory of beats
  logic [Ports-1:0]                   read, data_valid;
  logic [CellBits-1:0]                read_cell;
  logic [BeatBits-1:0]                read_place;
  logic [InfoBits-1:0]                info, read_info;
  logic [8*BusBytes-1:0]              read_data;
  logic [$clog2(Cells*CellBeats)-1:0] waddr, raddr;
  hue_queue_read #(.BusBytes(BusBytes), .Cells(Cells), .CellBeats(CellBeats), .External(External)) u_read (
    .clk_i, .rst_ni, .plan_i(plan), .plan_cell_i(plan_cell), .plan_len_i(plan_len), .room_o(plan_room),
    .link_i(link), .before_i(cell_before), .cell_i(cell_), .first_i(first), .head_i(head), .tag_i(departure.tag),
    .back_o(back), .back_cpu_o(back_cpu), .back_cell_o(back_cell), .read_room_i(read_room), .read_o(read), .read_cell_o(read_cell),
    .read_place_o(read_place), .info_o(info), .data_valid_i(data_valid), .data_i(read_data), .info_i(read_info),
    .m_valid_o, .m_ready_i, .m_data_o, .m_bytes_o, .m_last_o, .m_tag_o, .sent_o, .sent_len_o, .none_o
  );
  if (CellBeats == 1) begin : g_one
    assign waddr = cell_;
    assign raddr = read_cell;
  end else begin : g_several
    assign waddr = {cell_, place};
    assign raddr = {read_cell, read_place};
  end
  hue_queue_memory #(
    .External(External), .Words(Cells * CellBeats), .Bits(8 * BusBytes), .InfoBits(InfoBits), .Ports(Ports),
    .PartBits(8 * QueueWordBytes)
  ) u_cells (
    .clk_i, .rst_ni,
    .write_i(beat), .waddr_i(waddr), .wdata_i(data), .wlast_i(last), .wroom_o(write_room),
    .read_i(read), .raddr_i(raddr), .rinfo_i(info), .rroom_o(read_room),
    .rvalid_o(data_valid), .rdata_o(read_data), .rinfo_o(read_info),
    .part_valid_o(part_req_o.valid), .part_ready_i, .part_write_o(part_req_o.write), .part_addr_o(part_req_o.addr),
    .part_wdata_o(part_req_o.wdata), .part_rvalid_i, .part_rdata_i
  );

  logic unused;
  assign unused = ^{hold_net_i, place, read_place};

`ifndef SYNTHESIS
  // Frames in each queue, from joining until they are taken; and the queue that the frame in a cell joined.
  logic [15:0]          queued_q [1 << QueueBits];
  logic [QueueBits-1:0] owner_q [Cells];
  logic [QueueBits-1:0] join_queue;
  logic [15:0]          join_queued, taken_queued;
  logic                 taken, join_same, own;
  assign join_queue = QueueBits'({join_port, join_net});
  assign taken = plan != '0;
  assign join_queued = queued_q[join_queue];
  assign taken_queued = queued_q[empties_queue];
  assign join_same = joins && taken && join_queue == empties_queue;
  assign own = owner_q[plan_cell] == empties_queue;
  always_ff @(posedge clk_i) begin
    if (joins) owner_q[join_cell] <= join_queue;
    if (clearing_q) begin
      queued_q[clear_q] <= '0;
    end else if (!join_same) begin
      if (joins) queued_q[join_queue] <= join_queued + 1'b1;
      if (taken) queued_q[empties_queue] <= taken_queued - 1'b1;
    end
  end
  // Not properties: Verilator copies a whole memory in every evaluation if a property depends on one of its words.
  always_ff @(posedge clk_i) begin
    if (rst_ni && taken) a_own_queue: assert (own);
    // A queue waits (on a list or with a turn) exactly while it has frames.
    if (rst_ni && joins) a_waits: assert (waited == (join_queued != '0));
    if (rst_ni && taken) a_takes_what_waits: assert (taken_queued != '0);
    if (rst_ni && taken) a_empties: assert (empties == (taken_queued == 16'd1 && !join_same));
  end
  // A frame of one beat that arrives while the queues are empty, of a network not in debt, with nothing else arriving.
  logic [$clog2(Cells)+1:0]      inside_q;     // frames
  logic [Latency-1:0]            alone_q;
  logic                          fire, quiet;
  logic signed [CreditBits-1:0]  credits_q [1 << QueueBits];
  logic [Joining-1:0][8:0]       mac_q;
  assign fire = s_valid_i && s_ready_o;
  assign quiet = !fire && !hold_i;
  always_ff @(posedge clk_i) begin
    if (clearing_q) credits_q[clear_q] <= CreditBits'(QuantumBytes);
    else if (decided) credits_q[queue] <= served[ServedBits-1-:CreditBits];
    if (!rst_ni) begin
      inside_q <= '0;
      alone_q <= '0;
      mac_q <= '0;
    end else begin
      inside_q <= inside_q + ($clog2(Cells) + 2)'(fire && s_last_i) - ($clog2(Cells) + 2)'($countones(sent_o));
      alone_q <= quiet ? {alone_q[Latency-2:0], 1'b0} : '0;
      alone_q[0] <= fire && s_last_i && inside_q == '0 && none_o && !hold_i
                    && credits_q[QueueBits'({s_departure_i.port, s_departure_i.net[NetBits-1:0]})] > 0;
      mac_q <= {mac_q[Joining-2:0], {fire && s_last_i && 32'(s_departure_i.port) < MacPorts, s_departure_i.net}};
    end
  end
  a_latency: assert property (@(posedge clk_i) disable iff (!rst_ni)
    !External && alone_q[Latency-1] && !hold_i |-> m_valid_o != '0);
  a_joining: assert property (@(posedge clk_i) disable iff (!rst_ni)
    mac_q[Joining-1][8] |-> waits_o[mac_q[Joining-1][7:0]]);
`endif
endmodule
