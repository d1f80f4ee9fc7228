// Stores group frames (broadcasts and multicasts) of MAC ports, and sends a copy to each network attached to their port.
//
// Place: hue_arbiter → **here** → hue_arbiter, as copies. So every frame in the stages has one verdict, and copies have
// lower priority than all other frames. Software: crates/soft/src/stages, `flood` (ADR 0022).
// Copies: each port has a queue of frames. Ports take turns, one copy each. A frame is sent once for each valid row of its
// port's run in ATTACH, in row order, with the row's network and virtual port. If the run has no valid row, the frame is sent
// once, without a network, and counted as unclaimed.
// Changes: the row is read again until the copy's first beat is taken, and never during `hold_i`, in which rows change. So the
// copy goes to a network that is attached at that time. The driver does not move rows inside a run, so no network gets two copies.
// Admission: a frame is stored if its port's frames, with it, use no more memory than is free. So one port uses at most half
// of what the other ports leave. Other frames are dropped and counted. With `offline_i` nothing is dropped: `full_o` stops
// the arbiter in time.
// Order: the copies for a network leave in the order in which the frames arrived at the port.
//
// Latency: `Latency` clocks from the last beat in to the first beat out when nothing else waits and the host accesses no table.
// Throughput: a beat a clock in, and out inside a copy. A copy begins at the earliest 5 clocks after the last beat of the copy
// before, and 7 after its first one; each row before its own that is not valid adds 3 clocks. After a frame's last copy, freeing
// its cells takes 2 clocks each, in which nothing is sent.
module hue_flood
  import hue_pkg::*;
  import hue_regs_pkg::*;
#(
  parameter int unsigned BusBytes = 8,
  parameter int unsigned Bytes = 16384,
  parameter int unsigned AttachRows = 32
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,
  input  logic                  offline_i,
  input  logic                  hold_i,
  input  tbl_req_t              tbl_req_i,
  output tbl_rsp_t              tbl_rsp_o,
  output logic                  error_o,

  // Whole group frames of MAC ports. They are always taken.
  input  logic                  s_valid_i,
  input  logic [8*BusBytes-1:0] s_data_i,
  input  logic                  s_first_i,
  input  logic                  s_last_i,
  input  logic [2:0]            s_port_i,
  input  hue_arrival_t          s_arrival_i,
  output logic                  full_o,

  output logic                  c_valid_o,
  input  logic                  c_ready_i,
  output logic [8*BusBytes-1:0] c_data_o,
  output logic                  c_last_o,
  output logic [2:0]            c_port_o,
  output hue_arrival_t          c_arrival_o,

  output logic [MacPorts-1:0]   dropped_o,     // pulse: there was no room for a frame of this port
  output logic                  idle_o
);

`ifndef SYNTHESIS
  localparam int unsigned Latency = 9;
`endif
  // At least two beats, so that a cell's successor is known in time.
  localparam int unsigned CellBytes = BusBytes > 32 ? 2 * BusBytes : 64;
  localparam int unsigned CellBeats = CellBytes / BusBytes;
  localparam int unsigned Cells = Bytes / CellBytes;
  localparam int unsigned CellBits = $clog2(Cells);
  localparam int unsigned CountBits = CellBits + 1;
  localparam int unsigned BeatBits = $clog2(CellBeats);
  localparam int unsigned PortBits = $clog2(MacPorts);
  localparam int unsigned AttachBits = AttachRows > 1 ? $clog2(AttachRows) : 1;
  localparam int unsigned LenBits = $clog2(FrameBytesMax + 1);
  localparam int unsigned CellsMax = (FrameBytesMax + CellBytes - 1) / CellBytes;
  localparam int unsigned FreeClocks = 3;  // from the clock in which a cell is freed until it can be allocated again
  // Frames of one beat that may still arrive after `full_o` is raised.
  localparam int unsigned Coming = 4;

  if (Cells != 1 << CellBits || Cells < MacPorts + CellsMax + Coming) begin : g_cells
    $fatal(1, "Bytes: expected a power of two, with room for a frame of the greatest length");
  end

  typedef logic [CellBits-1:0]  cell_t;
  typedef logic [CountBits-1:0] count_t;
  typedef logic [PortBits-1:0]  port_t;
  // What is stored about a frame, at the address of its first cell.
  typedef struct packed {
    logic [31:0]        tag;
    logic [LenBits-1:0] len;
  } info_t;

  // ---- In: a beat waits one clock, in which the cells that its frame needs are computed; then it is written or discarded.
  logic                  w_v_q, w_first_q, w_last_q, w_in_q, w_lets, w_store, w_ends, w_drops, alloc;
  port_t                 w_port_q;
  logic [8*BusBytes-1:0] w_data_q;
  info_t                 w_info_q;
  count_t                w_need_q, w_used;
  cell_t [MacPorts-1:0]  cur_q;    // the cell for a port's next beats: its list always ends with an empty one
  count_t [MacPorts-1:0] used_q;   // cells of whole frames and of the frame that is arriving
  count_t                free_q;
  logic [BeatBits-1:0]   w_beat_q;
  cell_t                 new_cell;
  logic                  back, freed;
  port_t                 back_port;

  assign w_used = used_q[w_port_q] + w_need_q;
`ifdef HUE_PLANT_FLOOD_SHARE
  assign w_lets = w_first_q ? w_need_q <= free_q : w_in_q;  // for scripts/rtl-test: the bench must find this
`else
  assign w_lets = w_first_q ? (offline_i ? w_need_q : w_used) <= free_q : w_in_q;
`endif
  assign w_store = w_v_q && w_lets;
  assign w_drops = w_v_q && w_first_q && !w_lets;
  assign w_ends = w_last_q || w_beat_q == BeatBits'(CellBeats - 1);
  assign alloc = w_store && w_ends;

  always_ff @(posedge clk_i) begin
    w_data_q <= s_data_i;
    w_first_q <= s_first_i;
    w_last_q <= s_last_i;
    w_port_q <= s_port_i[PortBits-1:0];
    w_info_q <= '{tag: s_arrival_i.tag, len: s_arrival_i.len[LenBits-1:0]};
    w_need_q <= count_t'(cells_of(15'(s_arrival_i.len), CellBytes));
    if (w_v_q) w_in_q <= w_lets;
    for (int unsigned p = 0; p < MacPorts; p++) dropped_o[p] <= rst_ni && w_drops && w_port_q == port_t'(p);
    if (!rst_ni) begin
      w_v_q <= 1'b0;
      w_beat_q <= '0;
      for (int unsigned p = 0; p < MacPorts; p++) cur_q[p] <= cell_t'(p);
      used_q <= '0;
      free_q <= count_t'(Cells - MacPorts);
      full_o <= 1'b0;
    end else begin
      w_v_q <= s_valid_i;
      if (w_store) w_beat_q <= w_ends ? '0 : w_beat_q + 1'b1;
      if (alloc) cur_q[w_port_q] <= new_cell;
      for (int unsigned p = 0; p < MacPorts; p++) begin
        used_q[p] <= used_q[p] + (w_store && w_first_q && w_port_q == port_t'(p) ? w_need_q : '0)
                     - count_t'(back && back_port == port_t'(p));
      end
      free_q <= free_q + count_t'(freed) - (w_store && w_first_q ? w_need_q : '0);
`ifdef HUE_PLANT_FLOOD_FULL
      full_o <= offline_i && free_q < count_t'(CellsMax / 2);  // for scripts/rtl-test: the bench must find this
`else
      full_o <= offline_i && free_q < count_t'(CellsMax + Coming);
`endif
    end
  end

  // ---- Free cells: those never used yet, then those given back. The first cells belong to the ports from reset on.
  logic   fresh, back_valid, back_ready;
  cell_t  back_cell, walk_q;
  count_t fresh_q;
  logic [FreeClocks-1:0] freed_q;
  assign fresh = !fresh_q[CellBits];
  assign new_cell = fresh ? fresh_q[CellBits-1:0] : back_cell;
  assign freed = freed_q[FreeClocks-1];
  hue_deep_fifo #(.Depth(Cells), .Bits(CellBits)) u_back (
    .clk_i, .rst_ni, .valid_i(back), .ready_o(back_ready), .data_i(walk_q),
    .valid_o(back_valid), .ready_i(alloc && !fresh), .data_o(back_cell)
  );
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      freed_q <= '0;
      fresh_q <= count_t'(MacPorts);
    end else begin
      freed_q <= {freed_q[FreeClocks-2:0], back};
      if (alloc && fresh) fresh_q <= fresh_q + 1'b1;
    end
  end

  // ---- Number of whole frames, by port, whose last copy has not begun.
  count_t [MacPorts-1:0] todo_q;
  logic [MacPorts-1:0]   some_q, comes_q, begins_last;
  always_ff @(posedge clk_i) begin
    for (int unsigned p = 0; p < MacPorts; p++) begin
      if (!rst_ni) begin
        comes_q[p] <= 1'b0;
        todo_q[p] <= '0;
        some_q[p] <= 1'b0;
      end else begin
        comes_q[p] <= w_store && w_last_q && w_port_q == port_t'(p);
        todo_q[p] <= todo_q[p] + count_t'(comes_q[p]) - count_t'(begins_last[p]);
        some_q[p] <= comes_q[p] || (some_q[p] && !(begins_last[p] && todo_q[p] == count_t'(1)));
      end
    end
  end

  // ---- The next copy's network: choose a port, then read its run, a row of the run, and the row's content. This begins once the
  // copy before has begun, and starts again after a hold.
  typedef enum logic [2:0] {LookPort, LookRun, LookTake, LookAddr, LookRow, LookSays, LookDone} look_e;
  typedef struct packed {
    logic       last;     // this is the frame's last copy
    logic       copy;     // the copy has a network; 0: nobody claims the frame
    logic [7:0] net;
    logic [7:0] vport;
  } job_t;
  look_e                     look_q;
  logic                      any, begun, none_q, gone, en_q, head_wait, attach_wait, beyond_q, ends_q, here;
  port_t                     winner, port_q;
  logic [MacPorts-1:0][15:0] slot_q;       // of a port's first frame: the row at which the search for its next copy starts
  logic [MacPorts-1:0]       sent_q;       // a copy of it has left
  logic [15:0]               at_q, at_next;  // the row that is read, counted from the run's start, and the next one
  row_attach_head_t          run, run_q;
  row_attach_t               row;
  job_t                      job_q;
  logic [AttachBits-1:0]     addr_q;
  tbl_rsp_t                  head_rsp, attach_rsp;
  logic                      head_error, attach_error;

  hue_round_robin #(.Count(MacPorts)) u_turn (
    .clk_i, .rst_ni, .asks_i(some_q), .take_i(look_q == LookPort && !hold_i), .any_o(any), .winner_o(winner)
  );

  // Lookups advance only in clocks in which the host does not access the tables.
  always_ff @(posedge clk_i) en_q <= rst_ni && !head_wait && !attach_wait;
  logic unused_head_write, unused_attach_write, unused_head_parity, unused_attach_parity;
  logic [2:0] unused_head_addr;
  logic [AttachBits-1:0] unused_attach_addr;
  row_attach_head_t unused_head_data;
  row_attach_t unused_attach_data;
  hue_table #(.Id(TABLE_ATTACH_HEAD), .Rows(Ports), .Width($bits(row_attach_head_t))) u_runs (
    .clk_i, .rst_ni, .tbl_req_i, .tbl_rsp_o(head_rsp),
    .write_o(unused_head_write), .write_addr_o(unused_head_addr), .write_data_o(unused_head_data),
    .wait_o(head_wait), .en_i(en_q), .addr_i(3'(port_q)), .data_o(run), .parity_o(unused_head_parity),
    .check_i(en_q && look_q == LookTake), .error_o(head_error)
  );
  // No run includes a row that has not been written since reset.
  hue_table #(.Id(TABLE_ATTACH), .Rows(AttachRows), .Width($bits(row_attach_t)), .Reset(1'b0)) u_attach (
    .clk_i, .rst_ni, .tbl_req_i, .tbl_rsp_o(attach_rsp),
    .write_o(unused_attach_write), .write_addr_o(unused_attach_addr), .write_data_o(unused_attach_data),
    .wait_o(attach_wait), .en_i(en_q), .addr_i(addr_q), .data_o(row), .parity_o(unused_attach_parity),
    .check_i(en_q && look_q == LookSays && !beyond_q), .error_o(attach_error)
  );
  assign tbl_rsp_o = head_rsp | attach_rsp;
  assign error_o = head_error || attach_error;

  assign at_next = at_q + 16'd1;
  assign here = row.valid && !beyond_q;
  always_comb begin
    for (int unsigned p = 0; p < MacPorts; p++) begin
      begins_last[p] = (begun || gone) && job_q.last && port_q == port_t'(p);
    end
  end
  always_ff @(posedge clk_i) begin
    case (look_q)
      LookPort: begin
        port_q <= winner;
        at_q <= slot_q[winner];
      end
      LookTake: run_q <= run;
      LookAddr: begin
        addr_q <= AttachBits'(run_q.start + at_q);
        beyond_q <= at_q >= run_q.count;
        ends_q <= at_next >= run_q.count;
      end
      LookSays: begin
        // At the run's last row: if no network got the frame, it leaves once without a network.
        job_q.last <= ends_q;
        job_q.copy <= here;
        job_q.net <= here ? row.net : '0;
        job_q.vport <= here ? row.vport : '0;
        none_q <= !here && sent_q[port_q];
        if (en_q && !ends_q && !row.valid) at_q <= at_next;
      end
      default: ;
    endcase
`ifdef HUE_PLANT_FLOOD_HOLD
    if (!rst_ni || begun || gone) begin  // for scripts/rtl-test: the bench must find this
`else
    if (!rst_ni || hold_i || begun || gone) begin
`endif
      look_q <= LookPort;
    end else begin
      case (look_q)
        LookPort: if (any) look_q <= LookRun;
        LookRun:  if (en_q) look_q <= LookTake;
        LookTake: if (en_q) look_q <= LookAddr;
        LookAddr: look_q <= LookRow;
        LookRow:  if (en_q) look_q <= LookSays;
        LookSays: if (en_q) look_q <= !ends_q && !row.valid ? LookAddr : LookDone;
        default:  ;
      endcase
    end
    for (int unsigned p = 0; p < MacPorts; p++) begin
      if (!rst_ni) begin
        slot_q[p] <= '0;
        sent_q[p] <= 1'b0;
      end else if ((begun || gone) && port_q == port_t'(p)) begin
`ifdef HUE_PLANT_FLOOD_SLOT
        slot_q[p] <= job_q.last ? '0 : at_q + 16'd2;  // for scripts/rtl-test: the bench must find this
`else
        slot_q[p] <= job_q.last ? '0 : at_next;
`endif
        sent_q[p] <= !job_q.last;
      end
    end
  end

  // ---- Out: the frame of the chosen port is read ahead, and leaves once its network is known. What was read when a hold begins is
  // read again. A frame whose last copy has left gives its cells back, one by one.
  typedef enum logic [2:0] {SendIdle, SendInfo, SendTake, SendRead, SendWalk, SendBack} send_e;
  localparam int unsigned OutDepth = 4;
  localparam int unsigned OutRoomBits = $clog2(OutDepth + 1);
  typedef struct packed {
    logic                  last;
    logic [8*BusBytes-1:0] data;
  } out_t;
  send_e                send_q;
  port_t                from_q;           // the port of the frame
  cell_t [MacPorts-1:0] head_q;           // first cell of a port's first frame
  cell_t                cell_q, follows;  // the cell that is read, and its successor
  logic [BeatBits-1:0]  beat_q;
  logic [10:0]          left_q;           // beats that have not been requested yet
  count_t               cells_q;          // cells that have not been given back yet
  info_t                info, info_q;
  job_t                 sent_job_q, job;
  logic                 asks, asked_q, asked_last_q, inside_q, flush, out_valid, out_ready, fire;
  logic [OutRoomBits-1:0] out_room;
  out_t                 read, out;

  hue_ram #(.Words(Cells * CellBeats), .Bits(8 * BusBytes)) u_beats (
    .clk_i, .write_i(w_store), .waddr_i({cur_q[w_port_q], w_beat_q}), .wdata_i(w_data_q),
    .read_i(1'b1), .raddr_i({cell_q, beat_q}), .rdata_o(read.data)
  );
  hue_ram #(.Words(Cells), .Bits(CellBits)) u_nexts (
    .clk_i, .write_i(alloc), .waddr_i(cur_q[w_port_q]), .wdata_i(new_cell),
    .read_i(1'b1), .raddr_i(send_q == SendWalk ? walk_q : cell_q), .rdata_o(follows)
  );
  hue_ram #(.Words(Cells), .Bits($bits(info_t))) u_infos (
    .clk_i, .write_i(w_store && w_first_q), .waddr_i(cur_q[w_port_q]), .wdata_i(w_info_q),
    .read_i(1'b1), .raddr_i(cell_q), .rdata_o(info)
  );

  assign asks = send_q == SendRead && left_q != '0 && out_room > OutRoomBits'(asked_q);
  assign read.last = asked_last_q;
  assign flush = gone || (hold_i && !inside_q);
  hue_fifo #(.Depth(OutDepth), .Bits($bits(out_t))) u_out (
    .clk_i, .rst_ni(rst_ni && !flush), .valid_i(asked_q), .ready_o(out_ready), .data_i(read),
    .valid_o(out_valid), .ready_i(fire), .data_o(out), .room_o(out_room)
  );

  assign c_valid_o = out_valid && (inside_q || (look_q == LookDone && !none_q));
  assign fire = c_valid_o && c_ready_i;
  assign begun = fire && !inside_q;
  assign gone = look_q == LookDone && none_q && send_q == SendRead && !inside_q && !hold_i;
  assign job = inside_q ? sent_job_q : job_q;
  assign c_data_o = out.data;
  assign c_last_o = out.last;
  assign c_port_o = 3'(from_q);
  always_comb begin
    c_arrival_o = '0;
    c_arrival_o.tag = info_q.tag;
    c_arrival_o.len = 14'(info_q.len);
    c_arrival_o.copy = job.copy;
    c_arrival_o.net = job.net;
    c_arrival_o.vport = job.vport;
  end
  assign back = send_q == SendBack;
  assign back_port = from_q;

  always_ff @(posedge clk_i) begin
    if (begun) sent_job_q <= job_q;
    asked_last_q <= left_q == 11'd1;
    case (send_q)
      SendIdle: begin
        from_q <= port_q;
        cell_q <= head_q[port_q];
        beat_q <= '0;
      end
      SendTake: begin
        info_q <= info;
        left_q <= beats_of(14'(info.len), BusBytes);
        cells_q <= count_t'(cells_of(15'(info.len), CellBytes));
      end
      SendRead: begin
        if (asks) begin
          left_q <= left_q - 11'd1;
          beat_q <= beat_q + 1'b1;
          if (beat_q == BeatBits'(CellBeats - 1)) cell_q <= follows;
        end
        walk_q <= head_q[from_q];
      end
      SendBack: begin
        walk_q <= follows;
        cells_q <= cells_q - 1'b1;
      end
      default: ;
    endcase
    if (!rst_ni) begin
      send_q <= SendIdle;
      asked_q <= 1'b0;
      inside_q <= 1'b0;
      for (int unsigned p = 0; p < MacPorts; p++) head_q[p] <= cell_t'(p);
    end else begin
      asked_q <= asks && !flush;
      if (fire) inside_q <= !out.last;
      case (send_q)
        SendIdle: if (look_q != LookPort && !hold_i) send_q <= SendInfo;
        SendInfo: send_q <= SendTake;
        SendTake: send_q <= SendRead;
        SendRead: if (gone || (fire && out.last)) send_q <= job.last ? SendWalk : SendIdle;
        SendWalk: send_q <= SendBack;
        SendBack: begin
          send_q <= cells_q == count_t'(1) ? SendIdle : SendWalk;
          if (cells_q == count_t'(1)) head_q[from_q] <= follows;
        end
        default: send_q <= SendIdle;
      endcase
      if (hold_i && !inside_q && send_q inside {SendInfo, SendTake, SendRead}) send_q <= SendIdle;
    end
  end

  assign idle_o = used_q == '0 && !w_v_q;

  logic unused;
  assign unused = ^{s_arrival_i, s_port_i};

`ifdef HUE_TWIN
  always_ff @(posedge clk_i) begin
    if (rst_ni && w_drops) hue_card_ended(w_info_q.tag, 0, EndedFlood);
    if (rst_ni && (begun || gone) && job_q.last) hue_card_ended(info_q.tag, 0, EndedCopied);
  end
`endif

`ifndef SYNTHESIS
  logic used_cell_q [Cells];  // 1 while a cell is in use; meaningful once it was used
  logic whole_q, new_used;
  assign new_used = !fresh && used_cell_q[new_cell];
  count_t all;
  always_comb begin
    all = free_q;
    for (int unsigned p = 0; p < MacPorts; p++) all = all + used_q[p];
    all = all + count_t'($countones(freed_q));
  end
  always_ff @(posedge clk_i) begin
    if (alloc) used_cell_q[new_cell] <= 1'b1;
    if (back) used_cell_q[walk_q] <= 1'b0;
    if (!rst_ni) whole_q <= 1'b1;
    else if (s_valid_i) whole_q <= s_last_i;
  end
  // Not properties: Verilator copies a whole memory in every evaluation if a property depends on one of its words.
  always_ff @(posedge clk_i) if (rst_ni && alloc) a_not_in_use: assert (!new_used);
  a_whole: assert property (@(posedge clk_i) disable iff (!rst_ni) s_valid_i |-> s_first_i == whole_q);
  a_group: assert property (@(posedge clk_i) disable iff (!rst_ni)
    s_valid_i && s_first_i |-> is_group(s_data_i[0], s_arrival_i.len) && 32'(s_port_i) < MacPorts);
  a_cell_when_set_aside: assert property (@(posedge clk_i) disable iff (!rst_ni) alloc |-> (fresh || back_valid));
  a_back_has_room: assert property (@(posedge clk_i) disable iff (!rst_ni) back |-> back_ready);
  a_out_has_room: assert property (@(posedge clk_i) disable iff (!rst_ni || flush) asked_q |-> out_ready);
  a_cells: assert property (@(posedge clk_i) disable iff (!rst_ni) all == count_t'(Cells - MacPorts));
  a_offline_loses_nothing: assert property (@(posedge clk_i) disable iff (!rst_ni) offline_i |-> !w_drops);
  a_held: assert property (@(posedge clk_i) disable iff (!rst_ni) hold_i |-> !begun);
  // The first copy of a frame that arrives while nothing else is stored, if nothing else happens meanwhile.
  logic       alone_q;
  logic [3:0] after_q;   // clocks since the frame's last beat
  always_ff @(posedge clk_i) begin
    if (!rst_ni || hold_i || !en_q) alone_q <= 1'b0;
    else if (s_valid_i && s_first_i) alone_q <= idle_o;
    if (!rst_ni || (s_valid_i && !s_last_i)) after_q <= '0;
    else if (s_valid_i) after_q <= 4'd1;
    else if (after_q != '0) after_q <= after_q + 4'd1;
  end
  a_latency: assert property (@(posedge clk_i) disable iff (!rst_ni)
    (alone_q && 32'(after_q) == Latency && run_q.count != '0 && row.valid) |-> c_valid_o);
  a_stable: assert property (@(posedge clk_i) disable iff (!rst_ni)
    (c_valid_o && !c_ready_i && inside_q) |=> (c_valid_o && $stable(c_data_o) && $stable(c_last_o) && $stable(c_arrival_o)));
`endif
endmodule
