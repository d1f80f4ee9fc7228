// Reading: takes the frames that each port is to send from their cells, beat by beat, and passes them to the port.
//
// Place: inside hue_output_queues: plans of hue_queue_turns → **here** ↔ hue_queue_memory → ports. Pipeline of a beat: choose the
// port (e0); find the beat's cell (e1); issue its address (e2); read (e3; one clock or more); to the port's FIFO (e4). When the
// first beat of a cell is at e1, the next cell is looked up. A cell is given back when its last beat has passed e1.
//
// Latency: 6 clocks from a plan to the first beat out, with memory on chip. Throughput: a beat a clock, at one port or over all.
module hue_queue_read
  import hue_pkg::*;
#(
  parameter int unsigned BusBytes = 8,
  parameter int unsigned Cells = 1024,
  parameter int unsigned CellBeats = 8,
  parameter bit External = 1'b0,
  localparam int unsigned ByteBits = $clog2(BusBytes + 1),
  localparam int unsigned CellBits = $clog2(Cells),
  localparam int unsigned BeatBits = CellBeats > 1 ? $clog2(CellBeats) : 1
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,

  // Plans: the frames to send.
  input  logic [Ports-1:0]      plan_i,
  input  logic [CellBits-1:0]   plan_cell_i,
  input  logic [13:0]           plan_len_i,
  output logic [Ports-1:0]      room_o,          // room for two more plans

  // From hue_queue_write: a cell follows another one; the tag of a frame.
  input  logic                  link_i,
  input  logic [CellBits-1:0]   before_i,
  input  logic [CellBits-1:0]   cell_i,
  input  logic                  first_i,
  input  logic [CellBits-1:0]   head_i,
  input  logic [31:0]           tag_i,
  output logic                  back_o,
  output logic                  back_cpu_o,      // the cell was a CPU queue's
  output logic [CellBits-1:0]   back_cell_o,

  // To hue_queue_memory: a port requests a beat; one clock later the info that accompanies it. Both come back with the beat.
  input  logic                  read_room_i,
  output logic [Ports-1:0]      read_o,
  output logic [CellBits-1:0]   read_cell_o,
  output logic [BeatBits-1:0]   read_place_o,
  output logic [ByteBits+46:0]  info_o,
  input  logic [Ports-1:0]      data_valid_i,
  input  logic [8*BusBytes-1:0] data_i,
  input  logic [ByteBits+46:0]  info_i,

  output logic [Ports-1:0]                 m_valid_o,
  input  logic [Ports-1:0]                 m_ready_i,
  output logic [Ports-1:0][8*BusBytes-1:0] m_data_o,
  output logic [Ports-1:0][ByteBits-1:0]   m_bytes_o,
  output logic [Ports-1:0]                 m_last_o,
  output logic [Ports-1:0][31:0]           m_tag_o,
  output logic [Ports-1:0]                 sent_o,
  output logic [Ports-1:0][13:0]           sent_len_o,
  output logic                             none_o  // one clock ago no beat was between here and the pins
);

  localparam int unsigned PlanDepth = 4;
  localparam int unsigned OutDepth = External ? 64 : 8;
  localparam int unsigned LaneBits = $clog2(BusBytes);
  typedef logic [CellBits-1:0] cell_t;
  typedef struct packed {
    cell_t       first;
    logic [13:0] len;
  } frame_t;
  typedef struct packed {
    frame_t      frame;
    logic [10:0] beats;
  } plan_t;

  // ---- Plans
  localparam int unsigned PlanRoomBits = $clog2(PlanDepth + 1);
  logic [Ports-1:0]                   plan_ready, plan_valid, plan_take;
  logic [Ports-1:0][PlanRoomBits-1:0] plan_room;
  plan_t [Ports-1:0]                  plan;
  plan_t                              plan_in;
  assign plan_in.frame = '{first: plan_cell_i, len: plan_len_i};
  assign plan_in.beats = 11'((32'(plan_len_i) + BusBytes - 1) >> LaneBits);
  for (genvar p = 0; p < Ports; p++) begin : g_plan
    hue_fifo #(.Depth(PlanDepth), .Bits($bits(plan_t))) u_plan (
      .clk_i, .rst_ni, .valid_i(plan_i[p]), .ready_o(plan_ready[p]), .data_i(plan_in),
      .valid_o(plan_valid[p]), .ready_i(plan_take[p]), .data_o(plan[p]), .room_o(plan_room[p])
    );
    assign room_o[p] = plan_room[p] >= PlanRoomBits'(2);
  end

  // ---- e0: choose the port. A port's next frame is available when the last beat of the frame before is chosen; its first cell and
  // length follow one clock later.
  localparam int unsigned OutRoomBits = $clog2(OutDepth + 1);
  logic [Ports-1:0]                  asks, act_q, last_q, load_q, grants;
  logic [Ports-1:0][OutRoomBits-1:0] out_q;      // beats of a port between here and its pins
  logic [Ports-1:0]                  out_room_q; // room for one more: from a register, as the choice of a port is a long path
  logic [Ports-1:0][10:0]            left_q;     // beats of the frame that are not chosen yet
  frame_t [Ports-1:0]                ahead_q, frame_q;
  logic [Ports-1:0][BeatBits-1:0]    beat_q;     // the next beat to be read of the cell
  cell_t [Ports-1:0]                 cell_q, next_q;  // its cell, and the next cell
  logic                              grant, e1_v_q, e1_last_q, e1_by, e1_late, e1_start, e1_end, n_v_q;
  logic [2:0]                        port;
  logic [Ports-1:0]                  e1_at_q, e2_at_q, e4_at_q, n_at_q, start_q;
  logic [BeatBits-1:0]               e1_beat, e2_beat_q;
  cell_t                             e1_kept, e1_cell, e2_cell_q, e2_first_q, n_cell, n_cell_q;
  frame_t                            e1_frame;
  logic [LaneBits-1:0]               e1_rest;
  always_comb begin
    for (int unsigned p = 0; p < Ports; p++) begin
      asks[p] = act_q[p] && out_room_q[p] && read_room_i;
      grants[p] = grant && port == 3'(p);
`ifdef HUE_PLANT_QUEUES_PAUSE
      plan_take[p] = plan_valid[p] && !act_q[p];  // for scripts/rtl-test: the bench must find this
`else
      plan_take[p] = plan_valid[p] && (!act_q[p] || (grants[p] && last_q[p]));
`endif
    end
  end
  hue_round_robin #(.Count(Ports)) u_read (
    .clk_i, .rst_ni, .asks_i(asks), .take_i(1'b1), .any_o(grant), .winner_o(port)
  );

  // ---- e1: find the beat's cell. When a cell begins, the next one is looked up; it reaches the port three clocks later. A beat that
  // needs it sooner takes it from the pipeline.
  always_comb begin
    e1_frame = '0;
    e1_beat = '0;
    e1_kept = '0;
    for (int unsigned p = 0; p < Ports; p++) begin
      if (e1_at_q[p]) e1_frame |= frame_q[p];
      if (e1_at_q[p]) e1_beat |= beat_q[p];
      if (e1_at_q[p]) e1_kept |= cell_q[p];
    end
  end
  assign e1_by = n_v_q && (e2_at_q & e1_at_q) != '0;
  assign e1_late = (n_at_q & e1_at_q & start_q) != '0;
  always_comb begin
    e1_cell = e1_kept;
    if (CellBeats == 1) begin
      if (e1_by) e1_cell = n_cell;
    end else if (e1_late) begin
      e1_cell = n_cell_q;
    end
  end
  assign e1_start = CellBeats == 1 || (start_q & e1_at_q) != '0;
  assign e1_end = e1_last_q || 32'(e1_beat) == CellBeats - 1;
  assign e1_rest = e1_frame.len[LaneBits-1:0];
  hue_ram #(.Words(Cells), .Bits(CellBits)) u_nexts (
    .clk_i, .write_i(link_i), .waddr_i(before_i), .wdata_i(cell_i),
    .read_i(1'b1), .raddr_i(e1_cell), .rdata_o(n_cell)
  );

  // What accompanies a beat while it is read.
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
  read_t            e2_q, e3_q, read;
  out_t             e4_q;
  logic [31:0]      tag, read_tag;
  logic [Ports-1:0] m_fire;
  assign m_fire = m_valid_o & m_ready_i;
  hue_ram #(.Words(Cells), .Bits(32)) u_tags (
    .clk_i, .write_i(first_i), .waddr_i(head_i), .wdata_i(tag_i),
    .read_i(1'b1), .raddr_i(e2_first_q), .rdata_o(tag)
  );
  assign read_o = e2_at_q;
  assign read_cell_o = e2_cell_q;
  assign read_place_o = e2_beat_q;
  assign info_o = {e3_q, tag};
  assign {read, read_tag} = info_i;

  always_ff @(posedge clk_i) begin
    e1_last_q <= (grants & last_q) != '0;
    e2_cell_q <= e1_cell;
    e2_beat_q <= e1_beat;
    e2_first_q <= e1_frame.first;
    e2_q.last <= e1_last_q;
    e2_q.bytes <= e1_last_q && e1_rest != '0 ? ByteBits'(e1_rest) : ByteBits'(BusBytes);
    e2_q.len <= e1_frame.len;
    e3_q <= e2_q;
    e4_q <= '{data: data_i, bytes: read.bytes, last: read.last, tag: read_tag, len: read.len};
    back_cell_o <= e1_cell;
    back_cpu_o <= e1_at_q[Ports-1:MacPorts] != '0;
    n_cell_q <= n_cell;
    for (int unsigned p = 0; p < Ports; p++) begin
      ahead_q[p] <= plan[p].frame;
      if (load_q[p]) frame_q[p] <= ahead_q[p];
      if (n_at_q[p]) next_q[p] <= n_cell_q;
      if (load_q[p]) cell_q[p] <= ahead_q[p].first;
      else if (CellBeats == 1) begin
        if (n_v_q && e2_at_q[p]) cell_q[p] <= n_cell;
      end else if (n_at_q[p] && (start_q[p] || (e1_end && e1_at_q[p]))) begin
        cell_q[p] <= n_cell_q;
      end else if (e1_end && e1_at_q[p]) begin
        cell_q[p] <= next_q[p];
      end
      if (load_q[p]) start_q[p] <= 1'b1;
      else if (e1_at_q[p]) start_q[p] <= e1_end;
      if (plan_take[p]) begin
        left_q[p] <= plan[p].beats;
        last_q[p] <= plan[p].beats == 11'd1;
      end else if (grants[p]) begin
        left_q[p] <= left_q[p] - 11'd1;
        last_q[p] <= left_q[p] == 11'd2;
      end
    end
    none_o <= out_q == '0;
    if (!rst_ni) begin
      act_q <= '0;
      load_q <= '0;
      beat_q <= '0;
      out_q <= '0;
      out_room_q <= '1;
      e1_v_q <= 1'b0;
      e1_at_q <= '0;
      e2_at_q <= '0;
      e4_at_q <= '0;
      n_v_q <= 1'b0;
      n_at_q <= '0;
      back_o <= 1'b0;
    end else begin
      load_q <= plan_take;
      e1_v_q <= grant;
      e1_at_q <= grants;
      e2_at_q <= e1_at_q;
      e4_at_q <= data_valid_i;
      n_v_q <= e1_v_q && e1_start && !e1_last_q;
      // The successor of a frame's last cell has no meaning.
      n_at_q <= n_v_q ? e2_at_q & ~(e1_last_q ? e1_at_q : '0) : '0;
      back_o <= e1_v_q && e1_end;
      for (int unsigned p = 0; p < Ports; p++) begin
        if (e1_at_q[p]) beat_q[p] <= e1_end ? '0 : beat_q[p] + 1'b1;
        if (plan_take[p]) act_q[p] <= 1'b1;
        else if (grants[p] && last_q[p]) act_q[p] <= 1'b0;
        out_q[p] <= out_q[p] + OutRoomBits'(grants[p]) - OutRoomBits'(m_fire[p]);
        out_room_q[p] <= m_fire[p] || out_q[p] < OutRoomBits'(OutDepth - 1) + OutRoomBits'(!grants[p]);
      end
    end
  end

  // ---- Out
  logic [Ports-1:0] out_ready;
  for (genvar p = 0; p < Ports; p++) begin : g_out
    out_t                   sent;
    logic [OutRoomBits-1:0] unused_room;
    hue_fifo #(.Depth(OutDepth), .Bits($bits(out_t))) u_out (
      .clk_i, .rst_ni, .valid_i(e4_at_q[p]), .ready_o(out_ready[p]), .data_i(e4_q),
      .valid_o(m_valid_o[p]), .ready_i(m_ready_i[p]), .data_o(sent), .room_o(unused_room)
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

`ifndef SYNTHESIS
  a_plan_has_room: assert property (@(posedge clk_i) disable iff (!rst_ni) (plan_i & ~plan_ready) == '0);
  a_out_has_room: assert property (@(posedge clk_i) disable iff (!rst_ni) (e4_at_q & ~out_ready) == '0);
`endif
endmodule
