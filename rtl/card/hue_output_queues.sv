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
// Latency: `Latency` clocks from the last beat in to the first beat out when nothing else waits or comes. Throughput:
// a beat a clock in, and a beat a clock out over all ports together; a network that begins its turn in debt costs the
// port a clock.
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

  output logic                   dropped_o,      // a frame of s_departure_i, with its first beat
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
  localparam int unsigned PlanDepth = 2;
  localparam int unsigned OutDepth = 4;
  localparam int unsigned Latency = 5;

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
  typedef logic signed [15:0]   credit_t;
  typedef struct packed {
    cell_t       first;
    logic [13:0] len;
  } plan_t;

  // Cells that a frame takes.
  function automatic count_t cells_of(logic [13:0] len);
    return count_t'((32'(len) + CellBytes - 1) / CellBytes);
  endfunction

  // ---- State that both sides look at; each array is written by one side.

  // Writing side: cells ever put into a queue (modulo), a queue's last frame, its first frame when it was empty before.
  count_t      put_q [Queues];
  cell_t       tail_q [Queues];
  cell_t       head_put_q [Queues];
  // By cell: the next one of the frame; by first cell of a frame: the next frame of the queue, and the length.
  cell_t       next_q [Cells];
  cell_t       follow_q [Cells];
  logic [13:0] len_q [Cells];
  // Serving side: cells ever taken, first frame of a queue that was not left empty, and whether it counts; credit.
  count_t      taken_q [Queues];
  cell_t       head_taken_q [Queues];
  logic        head_taken_counts_q [Queues];
  credit_t     credit_q [Queues];
  // Which networks wait at a port.
  logic [Ports-1:0][NetPlaces-1:0] waits_q;

  // After reset the arrays by queue are cleared.
  logic   clearing_q;
  queue_t clear_q;

  // ---- Free cells: those never used yet, then those given back.
  logic   alloc, free, back_valid, back_ready, fresh;
  cell_t  free_cell, back_cell, alloc_cell;
  count_t fresh_q, free_q;
  logic [CountBits-1:0] unused_room;
  assign fresh = fresh_q != count_t'(Cells);
  assign alloc_cell = fresh ? fresh_q[CellBits-1:0] : back_cell;
  hue_fifo #(.Depth(Cells), .Bits(CellBits)) u_back (
    .clk_i, .rst_ni, .valid_i(free), .ready_o(back_ready), .data_i(free_cell),
    .valid_o(back_valid), .ready_i(alloc && !fresh), .data_o(back_cell), .room_o(unused_room)
  );

  // ---- Writing
  localparam int unsigned BeatBits = CellBeats > 1 ? $clog2(CellBeats) : 1;
  logic                inside_q, admit, drop, lost_q, store, commit, first_beat, cell_start;
  logic [BeatBits-1:0] wbeat_q, wbeat;
  cell_t               wcell_q, wcell, wfirst_q, wfirst;
  queue_t              wqueue;
  count_t              need, used;
  logic                queue_empty;

  assign wqueue = {s_departure_i.port, s_departure_i.net[NetBits-1:0]};
  assign need = cells_of(s_departure_i.len);
  assign used = put_q[wqueue] - taken_q[wqueue];
  assign queue_empty = used == '0;
  assign admit = 32'(used) + 32'(need) <= 32'(free_q);
  assign first_beat = !inside_q;
  assign drop = first_beat && !admit && !offline_i;
  assign s_ready_o = !clearing_q && (!first_beat || admit || !offline_i);
  assign store = s_valid_i && s_ready_o && !(first_beat ? drop : lost_q);
  assign dropped_o = s_valid_i && s_ready_o && drop;
  assign cell_start = first_beat || wbeat_q == '0;
  assign wbeat = first_beat ? '0 : wbeat_q;
  assign alloc = store && cell_start;
  assign wcell = cell_start ? alloc_cell : wcell_q;
  assign wfirst = first_beat ? alloc_cell : wfirst_q;
  assign commit = store && s_last_i;

  always_ff @(posedge clk_i) begin
    if (store) begin
      wcell_q <= wcell;
      wfirst_q <= wfirst;
      if (cell_start && !first_beat) next_q[wcell_q] <= alloc_cell;
    end
    if (commit) begin
      len_q[wfirst] <= s_departure_i.len;
      tail_q[wqueue] <= wfirst;
      if (queue_empty) head_put_q[wqueue] <= wfirst;
      else follow_q[tail_q[wqueue]] <= wfirst;
    end
    if (clearing_q) put_q[clear_q] <= '0;
    else if (commit) put_q[wqueue] <= put_q[wqueue] + need;
    if (!rst_ni) begin
      inside_q <= 1'b0;
      lost_q <= 1'b0;
      wbeat_q <= '0;
      fresh_q <= '0;
    end else begin
      if (s_valid_i && s_ready_o) begin
        inside_q <= !s_last_i;
        if (first_beat) lost_q <= drop;
        wbeat_q <= CellBeats == 1 || s_last_i ? '0 : wbeat + 1'b1;
      end
      if (alloc && fresh) fresh_q <= fresh_q + 1'b1;
    end
  end

  // ---- Serving: a step a clock, for one port. A frame of the network whose turn it is is planned, or there is none.
  logic [Ports-1:0]                plan_ready, plan_valid, asks, has_q;
  logic [Ports-1:0][NetBits-1:0]   net_q;    // whose turn it is, or was last
  logic                            step, begins, takes, empties, last_of_queue, commit_here, over;
  logic [2:0]                      sport;
  logic [NetBits-1:0]              found, found_after, found_any;
  logic                            any_after;
  logic [NetPlaces-1:0]            others;
  logic [Ports-1:0][NetPlaces-1:0] may;      // they wait, and are not held
  logic                            held_turn;
  queue_t                          squeue;
  cell_t                           sfirst, snext;
  logic [13:0]                     slen;
  count_t                          scells, waiting;
  credit_t                         credit, credit_left;
  plan_t                           plan_in;
  plan_t [Ports-1:0]               plan;
  // The reading side ends the first planned frame of a port.
  logic                            rgrant, rlast;
  logic [2:0]                      rport;

  always_comb begin
    may = waits_q;
    if (hold_i) begin
      for (int unsigned p = 0; p < MacPorts; p++) may[p][hold_net_i[NetBits-1:0]] = 1'b0;
    end
    for (int unsigned p = 0; p < Ports; p++) asks[p] = plan_ready[p] && (has_q[p] || may[p] != '0) && !clearing_q;
  end
  always_comb begin
    waits_o = '0;
    for (int unsigned p = 0; p < MacPorts; p++) waits_o |= NetsMax'(waits_q[p]);
  end
  hue_round_robin #(.Count(Ports)) u_step (
    .clk_i, .rst_ni, .asks_i(asks), .take_i(1'b1), .any_o(step), .winner_o(sport)
  );

  // The next waiting network after the last one; itself only when it has no turn yet.
  always_comb begin
    others = may[sport];
    if (has_q[sport]) others[net_q[sport]] = 1'b0;
    found_after = '0;
    found_any = '0;
    any_after = 1'b0;
    for (int unsigned n = 0; n < NetPlaces; n++) begin
      if (others[NetPlaces-1-n]) begin
        found_any = NetBits'(NetPlaces - 1 - n);
        if (NetPlaces - 1 - n > 32'(net_q[sport])) begin
          found_after = NetBits'(NetPlaces - 1 - n);
          any_after = 1'b1;
        end
      end
    end
    found = any_after ? found_after : found_any;
  end

  assign begins = step && !has_q[sport];
  assign squeue = {sport, net_q[sport]};
  assign credit = credit_q[squeue];
`ifdef HUE_PLANT_QUEUES_HOLD
  assign held_turn = 1'b0;  // one whose turn had begun goes on; for scripts/rtl-test: the bench must find this
`else
  assign held_turn = hold_i && 32'(sport) < MacPorts && net_q[sport] == hold_net_i[NetBits-1:0];
`endif
  assign takes = step && has_q[sport] && credit > 0 && !held_turn;
  assign sfirst = head_taken_counts_q[squeue] ? head_taken_q[squeue] : head_put_q[squeue];
  assign slen = len_q[sfirst];
  assign scells = cells_of(slen);
  assign waiting = put_q[squeue] - taken_q[squeue];
  // A frame that joins the queue in this very clock follows the one that leaves.
  assign last_of_queue = waiting == scells;
  assign commit_here = commit && wqueue == squeue;
  assign empties = takes && last_of_queue && !commit_here;
  assign snext = last_of_queue ? wfirst : follow_q[sfirst];
`ifdef HUE_PLANT_QUEUES_CREDIT
  assign credit_left = credit - credit_t'(64);  // by frames; for scripts/rtl-test: the bench must find this
`else
  assign credit_left = credit - credit_t'({2'b00, slen});
`endif
  // The turn ends when credit is used up, or nothing waits.
  assign over = step && has_q[sport] && (!takes || empties || credit_left <= 0);
  assign plan_in.first = sfirst;
  assign plan_in.len = slen;

  always_ff @(posedge clk_i) begin
    if (clearing_q) begin
      taken_q[clear_q] <= '0;
      head_taken_counts_q[clear_q] <= 1'b0;
      credit_q[clear_q] <= credit_t'(QuantumBytes);
    end else begin
      if (takes) begin
        taken_q[squeue] <= taken_q[squeue] + scells;
        head_taken_q[squeue] <= snext;
        head_taken_counts_q[squeue] <= !empties;
      end
      if (takes || (over && !held_turn)) begin
        // What is left of a credit is lost with an empty queue, a debt is not.
        if (!takes) credit_q[squeue] <= credit + credit_t'(QuantumBytes);
        else if (credit_left <= 0) credit_q[squeue] <= credit_left + credit_t'(QuantumBytes);
        else credit_q[squeue] <= empties ? credit_t'(QuantumBytes) : credit_left;
      end
    end
    if (begins || (over && others != '0)) net_q[sport] <= found;
    if (!rst_ni) begin
      clearing_q <= 1'b1;
      clear_q <= '0;
      has_q <= '0;
      waits_q <= '0;
      net_q <= '0;
    end else begin
      clear_q <= clear_q + 1'b1;
      if (clear_q == queue_t'(Queues - 1)) clearing_q <= 1'b0;
      if (begins) has_q[sport] <= 1'b1;
      // The next network's turn begins at once; one that is alone goes on.
      if ((empties || (over && held_turn)) && others == '0) has_q[sport] <= 1'b0;
      if (empties) waits_q[sport][net_q[sport]] <= 1'b0;
      if (commit) waits_q[s_departure_i.port][s_departure_i.net[NetBits-1:0]] <= 1'b1;
    end
  end

  for (genvar p = 0; p < Ports; p++) begin : g_plan
    logic [$clog2(PlanDepth+1)-1:0] unused_plan_room;
    hue_fifo #(.Depth(PlanDepth), .Bits($bits(plan_t))) u_plan (
      .clk_i, .rst_ni, .valid_i(takes && sport == 3'(p)), .ready_o(plan_ready[p]), .data_i(plan_in),
      .valid_o(plan_valid[p]), .ready_i(rgrant && rlast && rport == 3'(p)), .data_o(plan[p]), .room_o(unused_plan_room)
    );
  end

  // ---- Reading: a beat a clock, of one port.
  localparam int unsigned OutRoomBits = $clog2(OutDepth + 1);
  logic [Ports-1:0]                  rasks, rv_q;
  logic [Ports-1:0][OutRoomBits-1:0] out_room;
  logic [Ports-1:0][10:0]            rindex_q;   // beat of the frame that the port sends
  cell_t [Ports-1:0]                 rcell_q;    // its cell, after the first beat
  logic                              rcell_end;
  cell_t                             rcell;
  logic [10:0]                       rbeats;
  plan_t                             rplan;
  logic [LaneBits-1:0]               rrest;

  always_comb begin
    for (int unsigned p = 0; p < Ports; p++) rasks[p] = plan_valid[p] && out_room[p] > OutRoomBits'(rv_q[p]);
  end
  hue_round_robin #(.Count(Ports)) u_read (
    .clk_i, .rst_ni, .asks_i(rasks), .take_i(1'b1), .any_o(rgrant), .winner_o(rport)
  );
  assign rplan = plan[rport];
  assign rbeats = 11'((32'(rplan.len) + BusBytes - 1) >> LaneBits);
  assign rlast = rindex_q[rport] == rbeats - 11'd1;
  assign rcell = rindex_q[rport] == '0 ? rplan.first : rcell_q[rport];
  assign rcell_end = rlast || (rindex_q[rport] & 11'(CellBeats - 1)) == 11'(CellBeats - 1);
  assign rrest = rplan.len[LaneBits-1:0];
  assign free = rgrant && rcell_end;
  assign free_cell = rcell;

  // What goes along with a beat while it is read.
  typedef struct packed {
    logic                last;
    logic [ByteBits-1:0] bytes;
    logic [13:0]         len;
  } read_t;
  read_t       r_q;
  logic [31:0] rtag;
  logic [8*BusBytes-1:0] rdata;

  always_ff @(posedge clk_i) begin
    r_q.last <= rlast;
    r_q.bytes <= rlast && rrest != '0 ? ByteBits'(rrest) : ByteBits'(BusBytes);
    r_q.len <= rplan.len;
    if (rgrant) rcell_q[rport] <= rcell_end ? next_q[rcell] : rcell;
    if (!rst_ni) begin
      rindex_q <= '0;
      rv_q <= '0;
      free_q <= count_t'(Cells);
    end else begin
      for (int unsigned p = 0; p < Ports; p++) rv_q[p] <= rgrant && rport == 3'(p);
      if (rgrant) rindex_q[rport] <= rlast ? '0 : rindex_q[rport] + 11'd1;
      // A frame's cells are set aside with its first beat.
      free_q <= free_q + count_t'(free) - (store && first_beat ? need : count_t'(0));
    end
  end

  // Beats of cells, and tags by first cell.
  logic [$clog2(Cells*CellBeats)-1:0] waddr, raddr;
  if (CellBeats == 1) begin : g_one
    assign waddr = wcell;
    assign raddr = rcell;
  end else begin : g_several
    assign waddr = {wcell, wbeat};
    assign raddr = {rcell, rindex_q[rport][BeatBits-1:0]};
  end
  hue_ram #(.Words(Cells * CellBeats), .Bits(8 * BusBytes)) u_cells (
    .clk_i, .write_i(store), .waddr_i(waddr), .wdata_i(s_data_i), .read_i(rgrant), .raddr_i(raddr), .rdata_o(rdata)
  );
  hue_ram #(.Words(Cells), .Bits(32)) u_tags (
    .clk_i, .write_i(store && first_beat), .waddr_i(wfirst), .wdata_i(s_departure_i.tag),
    .read_i(rgrant), .raddr_i(rplan.first), .rdata_o(rtag)
  );

  // ---- Out
  typedef struct packed {
    logic [8*BusBytes-1:0] data;
    logic [ByteBits-1:0]   bytes;
    logic                  last;
    logic [31:0]           tag;
    logic [13:0]           len;
  } out_t;
  out_t             out;
  logic [Ports-1:0] out_ready;
  assign out.data = rdata;
  assign out.bytes = r_q.bytes;
  assign out.last = r_q.last;
  assign out.tag = rtag;
  assign out.len = r_q.len;
  for (genvar p = 0; p < Ports; p++) begin : g_out
    out_t sent;
    hue_fifo #(.Depth(OutDepth), .Bits($bits(out_t))) u_out (
      .clk_i, .rst_ni, .valid_i(rv_q[p]), .ready_o(out_ready[p]), .data_i(out),
      .valid_o(m_valid_o[p]), .ready_i(m_ready_i[p]), .data_o(sent), .room_o(out_room[p])
    );
    assign m_data_o[p] = sent.data;
    assign m_bytes_o[p] = sent.bytes;
    assign m_last_o[p] = sent.last;
    assign m_tag_o[p] = sent.tag;
    assign sent_o[p] = m_valid_o[p] && m_ready_i[p] && sent.last;
    assign sent_len_o[p] = sent.len;
  end

  assign idle_o = free_q == count_t'(Cells) && !inside_q && rv_q == '0 && m_valid_o == '0;

`ifndef SYNTHESIS
  count_t           put_cells_q;     // cells of the present frame so far
  queue_t           owner_q [Cells]; // by first cell of a frame
  logic             used_q [Cells];  // counts once a cell was used
  logic             own, alloc_used, free_used, in_debt;
  logic [Latency-2:0] commits_q;     // of the last clocks, the latest lowest
  logic [Latency-1:0] holds_q;
  assign own = owner_q[sfirst] == squeue;
  assign in_debt = credit_q[wqueue] <= 0;
  assign alloc_used = !fresh && used_q[alloc_cell];
  assign free_used = used_q[free_cell];
  always_ff @(posedge clk_i) begin
    if (commit) owner_q[wfirst] <= wqueue;
    commits_q <= {commits_q[Latency-3:0], commit};
    holds_q <= {holds_q[Latency-2:0], hold_i};
    if (alloc) used_q[alloc_cell] <= 1'b1;
    if (free) used_q[free_cell] <= 1'b0;
    if (!rst_ni || commit) put_cells_q <= '0;
    else if (alloc) put_cells_q <= put_cells_q + 1'b1;
  end
  a_cell_when_set_aside: assert property (@(posedge clk_i) disable iff (!rst_ni) alloc |-> (fresh || back_valid));
  a_back_has_room: assert property (@(posedge clk_i) disable iff (!rst_ni) free |-> back_ready);
  a_out_has_room: assert property (@(posedge clk_i) disable iff (!rst_ni) (rv_q & ~out_ready) == '0);
  a_takes_what_waits: assert property (@(posedge clk_i) disable iff (!rst_ni)
    takes |-> (waiting >= scells && waiting != '0));
  a_frames_end_as_announced: assert property (@(posedge clk_i) disable iff (!rst_ni)
    commit |-> 32'(put_cells_q) + 32'(alloc) == 32'(need));
  a_free_is_bounded: assert property (@(posedge clk_i) disable iff (!rst_ni) free_q <= count_t'(Cells));
  a_own_queue: assert property (@(posedge clk_i) disable iff (!rst_ni) takes |-> own);
  a_not_in_use: assert property (@(posedge clk_i) disable iff (!rst_ni) alloc |-> !alloc_used);
  a_in_use: assert property (@(posedge clk_i) disable iff (!rst_ni) free |-> free_used);
  // A network that is in debt first waits for its turns.
  a_held: assert property (@(posedge clk_i) disable iff (!rst_ni)
    (takes && hold_i && 32'(sport) < MacPorts) |-> net_q[sport] != hold_net_i[NetBits-1:0]);
  a_latency: assert property (@(posedge clk_i) disable iff (!rst_ni)
    ($past(commit && idle_o && !in_debt, Latency) && commits_q[Latency-2:0] == '0 && holds_q == '0) |-> m_valid_o != '0);
`endif

endmodule
