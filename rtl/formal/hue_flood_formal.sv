// Proof harness of hue_flood: a group frame leaves once for each valid row of its port's run, in the order of the rows, with the
// network and virtual port that the row has when the copy begins, whole and unaltered, and for no other network. If the run has no
// valid row, the frame leaves once and belongs to no network. The frames of a port leave one after the other.
//
// Place: scripts/formal. Inputs are free, except that frames are whole, and that no copy is taken during a hold unless it has begun.
// Rows are arbitrary (rows/hue_table.sv), and the host writes them during holds. `mark_i` picks any one frame.
module hue_flood_formal
  import hue_pkg::*;
  import hue_regs_pkg::*;
#(
  parameter int unsigned BusBytes = 1,
  parameter int unsigned Bytes = 32,
  parameter int unsigned AttachRows = 4,
  parameter int unsigned Coming = 6    // frames begin only in the first `Coming` clocks
) (
  input logic                  clk_i,
  input logic                  rst_ni,
  input logic                  offline_i,  // sampled during reset
  input logic                  hold_i,
  input tbl_req_t              tbl_req_i,
  input logic                  s_valid_i,
  input logic [8*BusBytes-1:0] s_data_i,
  input logic                  port_i,
  input logic [1:0]            len_i,      // length less one
  input logic [1:0]            tag_i,
  input logic                  c_ready_i,
  input logic                  mark_i
);
  localparam int unsigned BeatsMax = 4;
  localparam int unsigned DropClocks = 2;
  tbl_rsp_t              rsp;
  logic                  error, full, full_q, s_first, s_last, c_valid, c_last, idle, offline_q, begun_q, inside_q;
  hue_arrival_t          arrival, arrival_q, c_arrival;
  logic [2:0]            port, port_q, c_port;
  logic [8*BusBytes-1:0] c_data;
  logic [MacPorts-1:0]   dropped;
  logic [1:0]            beat_q, out_beat_q;

  always_comb begin
    arrival = arrival_q;
    port = port_q;
    if (!inside_q) begin
      arrival = '0;
      arrival.len = 14'(len_i) + 14'd1;
      arrival.tag = $bits(arrival.tag)'(tag_i);
      port = 3'(port_i);
    end
  end
  assign s_first = !inside_q;
  assign s_last = 14'(beat_q) + 14'd1 == arrival.len;
  hue_flood #(.BusBytes(BusBytes), .Bytes(Bytes), .AttachRows(AttachRows)) u_dut (
    .clk_i, .rst_ni, .offline_i(offline_q), .hold_i, .tbl_req_i, .tbl_rsp_o(rsp), .error_o(error),
    .s_valid_i, .s_data_i, .s_first_i(s_first), .s_last_i(s_last), .s_port_i(port), .s_arrival_i(arrival), .full_o(full),
    .c_valid_o(c_valid), .c_ready_i, .c_data_o(c_data), .c_last_o(c_last), .c_port_o(c_port), .c_arrival_o(c_arrival),
    .dropped_o(dropped), .idle_o(idle)
  );

  // Frames inside by port; the marked one, those of its port before it, and how much of it has left.
  logic                                enters, marks, marked_q, coming_q, fire, begins, mine, mine_q, out_inside_q, sent_q, ends;
  logic [MacPorts-1:0][3:0]            inside_count_q;
  logic [DropClocks-1:0]               marks_q;
  logic [3:0]                          before_q, clocks_q;
  hue_arrival_t                        mark_q;
  logic [2:0]                          mark_port_q;
  logic [BeatsMax-1:0][8*BusBytes-1:0] words_q;
  logic [2:0]                          slot_q, slot;   // row where the search for the marked frame's next copy starts; row that it finds
  row_attach_head_t                    run;
  row_attach_t                         row;
  logic                                found;
  assign enters = s_valid_i && s_first;
  assign marks = enters && mark_i && !marked_q;
  assign fire = c_valid && c_ready_i;
  assign begins = fire && !out_inside_q;
  assign mine = marked_q && before_q == '0 && c_port == mark_port_q;
  // The marked frame is finished: with this copy, or without one.
  assign ends = marked_q && before_q == '0 && u_dut.begins_last[mark_port_q[0]];
  assign run = u_dut.u_runs.rows_q[mark_port_q[0]];
  always_comb begin
    found = 1'b0;
    slot = '0;
    row = '0;
    for (int unsigned i = 0; i < AttachRows; i++) begin
      if (!found && 3'(i) >= slot_q && 16'(i) < run.count && u_dut.u_attach.rows_q[2'(run.start + 16'(i))][0]) begin
        found = 1'b1;
        slot = 3'(i);
        row = u_dut.u_attach.rows_q[2'(run.start + 16'(i))];
      end
    end
  end
  logic more;  // there is a valid row after that one
  always_comb begin
    more = 1'b0;
    for (int unsigned i = 0; i < AttachRows; i++) begin
      if (3'(i) > slot && 16'(i) < run.count && u_dut.u_attach.rows_q[2'(run.start + 16'(i))][0]) more = 1'b1;
    end
  end

  initial begun_q = 1'b0;
  always_ff @(posedge clk_i) begin
    begun_q <= 1'b1;
    arrival_q <= arrival;
    port_q <= port;
    full_q <= full;
    if (!rst_ni) begin
      offline_q <= offline_i;
      inside_q <= 1'b0;
      beat_q <= '0;
      out_beat_q <= '0;
      out_inside_q <= 1'b0;
      mine_q <= 1'b0;
      inside_count_q <= '0;
      marked_q <= 1'b0;
      coming_q <= 1'b0;
      sent_q <= 1'b0;
      slot_q <= '0;
      marks_q <= '0;
      clocks_q <= '0;
    end else begin
      if (clocks_q != 4'(Coming)) clocks_q <= clocks_q + 1'b1;
      marks_q <= {marks_q[DropClocks-2:0], marks};
      if (s_valid_i) begin
        inside_q <= !s_last;
        beat_q <= s_last ? '0 : beat_q + 1'b1;
        if (marks || (coming_q && inside_q)) words_q[beat_q] <= s_data_i;
        coming_q <= (marks || coming_q) && !s_last;
      end
      if (fire) begin
        out_inside_q <= !c_last;
        out_beat_q <= c_last ? '0 : out_beat_q + 1'b1;
        if (begins) mine_q <= mine;
      end
      for (int unsigned p = 0; p < MacPorts; p++) begin
        inside_count_q[p] <= inside_count_q[p] + 4'(enters && port == 3'(p)) - 4'(dropped[p]) - 4'(u_dut.begins_last[p]);
      end
      if (marks) begin
        marked_q <= 1'b1;
        mark_q <= arrival;
        mark_port_q <= port;
        before_q <= inside_count_q[port[0]] - 4'(dropped[port[0]]) - 4'(u_dut.begins_last[port[0]]);
        slot_q <= '0;
        sent_q <= 1'b0;
      end else if (marked_q) begin
        if (before_q != '0) begin
          before_q <= before_q - 4'(u_dut.begins_last[mark_port_q[0]]) - 4'(dropped[mark_port_q[0]] && |marks_q[DropClocks-2:0]);
        end
        if (begins && mine) begin
          sent_q <= 1'b1;
          slot_q <= slot + 3'd1;
        end
        if ((dropped[mark_port_q[0]] && marks_q[DropClocks-1]) || ends) marked_q <= 1'b0;
      end
    end
  end

  always_comb begin
    assume (rst_ni == begun_q);
    // Group frames of MAC ports, whole. Offline, no frame begins while `full` is 1, nor in the clock after.
    if (s_valid_i && s_first) assume (s_data_i[0]);
    if (begun_q && clocks_q == 4'(Coming) && !inside_q) assume (!s_valid_i);
    if (begun_q && offline_q && (full || full_q)) assume (!(s_valid_i && s_first));
    // Runs are inside the table, and change only during holds.
    if (tbl_req_i.valid && tbl_req_i.write) assume (hold_i);
    for (int unsigned p = 0; p < MacPorts; p++) begin
      assume (u_dut.u_runs.rows_q[p][15:0] < 16'(AttachRows) && u_dut.u_runs.rows_q[p][31:16] <= 16'(AttachRows));
    end
    // As the arbiter does: no frame begins during a hold.
    if (hold_i && !out_inside_q) assume (!c_ready_i);
    if (begun_q) begin
      // A copy of the marked frame: for the next valid row, or for no network if there was no valid row at all.
      if (begins && mine) begin
        assert (c_arrival.copy == found && (found || !sent_q));
        if (found) assert (c_arrival.net == row.net && c_arrival.vport == row.vport);
        if (!ends) assert (found);
      end
      if (ends) assert ((begins && mine) ? !(found && more) : !found && sent_q);
      // The copy is whole and unaltered.
      if (fire && (begins ? mine : mine_q)) begin
        assert (c_data == words_q[out_beat_q] && c_arrival.tag == mark_q.tag && c_arrival.len == mark_q.len);
        assert (c_last == (14'(out_beat_q) + 14'd1 == mark_q.len));
      end
      for (int unsigned p = 0; p < MacPorts; p++) begin
        if (u_dut.begins_last[p]) assert (inside_count_q[p] != '0);
        if (begins && c_port == 3'(p)) assert (inside_count_q[p] != '0);
      end
      if (c_valid) assert (32'(c_port) < MacPorts && !c_arrival.from_cpu);
      if (offline_q) assert (dropped == '0);
      if (idle) assert (inside_count_q == '0 && !out_inside_q);
    end
  end
  logic unused;
  assign unused = ^{rsp, error};
endmodule
