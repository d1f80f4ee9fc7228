// The papers' longest-prefix match (hue_dir) in the card's two external SRAM banks, with the host's access to words and rows.
//
// Place: rtl/planes/hue_routes with layout dir. Inside: hue_dir and a hue_sram_port for each bank. Row i of SRAM is the word at
// address i mod 2^19 of bank i / 2^19; the paper's first bank is bank 0 here. CONFLICT is the Conflict CAM. FILL writes one word
// to a run of rows, because a route is up to 2^19 equal words of the first bank, or 2^12 of the second. A lookup may read a word
// of the first bank that was never written, so the driver sets all of them to 0 before it adds the first network.
//
// Latency: that of hue_dir plus 1 clock. Throughput: a lookup a clock, less the clocks that the host takes (hue_sram_port).
// Answers wait, in order, until they are taken; `room_o` says whether a lookup may come.
module hue_dir_banks
  import hue_pkg::*;
  import hue_regs_pkg::*;
#(
    parameter int unsigned CamRows  = 32,   // a power of two
    parameter int unsigned Words    = 1 << 20,  // of both banks
    parameter int unsigned InFlight = 32,   // lookups inside, a power of two; more than the latency
    parameter int unsigned TagBits  = 8,
    parameter int unsigned Latency  = 4,    // of the banks: clocks from `en` to their data
    parameter bit          Zero     = 1'b1  // the banks are 0 after configuration
) (
    input  logic               clk_i,
    input  logic               rst_ni,
    input  tbl_req_t           tbl_req_i,
    output tbl_rsp_t           tbl_rsp_o,
    // lookups
    input  logic               valid_i,
    output logic               room_o,    // a lookup may come, if an answer that waits is taken in the same clock
    input  logic               ask_i,     // 0: the answer is no route, whatever is read
    input  logic [11:0]        vid_i,
    input  logic [31:0]        key_i,
    input  logic [TagBits-1:0] tag_i,
    output logic               valid_o,
    input  logic               ready_i,
    output logic [15:0]        hop_o,
    output logic               error_o,
    output logic [TagBits-1:0] tag_o,
    // the banks
    input  logic               fault_clear_i,
    output sram_state_t        state_o,   // all but `lookup`, which the parent module sets
    output sram_req_t          sram_req_o,
    input  logic [1:0][35:0]   sram_rdata_i
);
  localparam int unsigned RowBits = $clog2(CamRows);
  localparam int unsigned WordBits = $clog2(Words);
  localparam int unsigned CountBits = $clog2(InFlight + 1);
  if (Words != 1 << 20) begin : gen_check
    $fatal(1, "hue_dir_banks: Words is %0d, not two banks of 2^19", Words);
  end

  // ---- rows of the CAM; the host reads them back from a separate table
  logic row_write, unused_wait, unused_parity, unused_error;
  logic [RowBits-1:0] row;
  row_conflict_t row_data, unused_row;
  tbl_rsp_t rows_rsp, fill_rsp, sram_rsp;
  hue_table #(.Id(TABLE_CONFLICT), .Rows(CamRows), .Width($bits(row_conflict_t))) u_rows (
    .clk_i, .rst_ni, .tbl_req_i, .tbl_rsp_o(rows_rsp), .write_o(row_write), .write_addr_o(row), .write_data_o(row_data),
    .wait_o(unused_wait), .en_i(1'b0), .addr_i('0), .data_o(unused_row), .parity_o(unused_parity), .check_i(1'b0),
    .error_o(unused_error)
  );

  // ---- the lookups
  logic dir_ready, answer_valid, answer_ready, answer_error, unused_drained;
  logic [15:0] answer_hop;
  logic [TagBits-1:0] answer_tag;
  logic [1:0] rd_valid, rd_ready, rsp_valid, rsp_error;
  logic [1:0][18:0] rd_addr;
  logic [1:0][35:0] rsp_data;
  hue_dir #(.CamRows(CamRows), .InFlight(InFlight), .TagBits(TagBits)) u_dir (
    .clk_i, .rst_ni, .valid_i, .ready_o(dir_ready), .ask_i, .vid_i, .key_i, .tag_i,
    .valid_o(answer_valid), .hop_o(answer_hop), .error_o(answer_error), .tag_o(answer_tag),
`ifdef HUE_PLANT_DIR_CAM
    .row_write_i(1'b0),  // no row is ever in use; for scripts/rtl-test: the bench must find this
`else
    .row_write_i(row_write),
`endif
    .row_i(row), .row_used_i(row_data.valid), .row_vid_i(row_data.vid), .row_prefix_i(row_data.prefix),
    .row_length_i(row_data.length), .row_index_i(row_data.index),
    // Not used: the driver waits until the records in the stages have left, which includes these lookups.
    .drain_i(1'b0), .drained_o(unused_drained), .read_o(state_o.read),
    .bank1_valid_o(rd_valid[0]), .bank1_ready_i(rd_ready[0]), .bank1_addr_o(rd_addr[0]),
    .bank1_rsp_valid_i(rsp_valid[0]), .bank1_rsp_data_i(rsp_data[0][34:0]), .bank1_rsp_error_i(rsp_error[0]),
    .bank2_valid_o(rd_valid[1]), .bank2_ready_i(rd_ready[1]), .bank2_addr_o(rd_addr[1]),
    .bank2_rsp_valid_i(rsp_valid[1]), .bank2_rsp_data_i(rsp_data[1][34:0]), .bank2_rsp_error_i(rsp_error[1])
  );

  // ---- answers that wait: together with the lookups in hue_dir there are at most InFlight, so there is room for each
  logic [CountBits-1:0] inside_q, unused_room;
  assign room_o = dir_ready && (inside_q != CountBits'(InFlight) || valid_o);
  hue_fifo #(.Depth(InFlight), .Bits(TagBits + 17)) u_answers (
    .clk_i, .rst_ni, .valid_i(answer_valid), .ready_o(answer_ready), .data_i({answer_tag, answer_error, answer_hop}),
    .valid_o, .ready_i, .data_o({tag_o, error_o, hop_o}), .room_o(unused_room)
  );
  always_ff @(posedge clk_i) begin
    if (!rst_ni) inside_q <= '0;
    else inside_q <= inside_q + CountBits'(valid_i && dir_ready) - CountBits'(valid_o && ready_i);
  end

  // ---- FILL: writes one word to a run of rows
  logic fill_start, unused_fill_addr, fill_q, fill_bank_q, fill_zero_q, written_q, host_write, fill_go;
  logic [18:0] fill_addr_q;
  logic [19:0] fill_left_q;
  logic [34:0] fill_word_q;
  row_fill_t fill_in, fill_row;
  assign fill_in  = row_fill_t'(tbl_req_i.wdata[$bits(row_fill_t)-1:0]);
  assign fill_row = '{running: fill_q, written: written_q, index: {fill_bank_q, fill_addr_q}, count: fill_left_q,
                      word: {^fill_word_q, fill_word_q}};
  hue_table_port #(.Id(TABLE_FILL), .Rows(1)) u_fill_port (
    .clk_i, .rst_ni, .tbl_req_i, .tbl_rsp_o(fill_rsp), .start_o(fill_start), .addr_o(unused_fill_addr),
    .done_i(fill_start), .rdata_i(256'(fill_row))
  );
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      fill_q      <= 1'b0;
      fill_left_q <= '0;
    end else if (fill_start && tbl_req_i.write) begin
      fill_q      <= fill_in.count != '0;
      fill_left_q <= fill_in.count;
    end else if (fill_go) begin
      // A run stops at the end of its bank, even if its count is larger.
      fill_q      <= fill_left_q != 20'd1 && fill_addr_q != '1;
      fill_left_q <= fill_left_q - 1'b1;
    end
    if (fill_start && tbl_req_i.write) begin
      {fill_bank_q, fill_addr_q} <= fill_in.index;
      fill_word_q <= fill_in.word[34:0];
      fill_zero_q <= fill_in.index == '0 && fill_in.count[19] && fill_in.word[34:0] == '0;
    end else if (fill_go) begin
      fill_addr_q <= fill_addr_q + 1'b1;
    end
  end
  // A reset changes no word, so `written` is kept over resets: it counts from configuration.
  initial written_q = !Zero;
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      if (host_write || (fill_go && !fill_zero_q)) written_q <= 1'b1;
      else if (fill_go && fill_addr_q == '1) written_q <= 1'b0;
    end
  end

  // ---- the host's words: one access at a time, with priority over those of a run
  logic host_start, host_waits_q, host_valid, host_done, asked_q, taken, bank;
  logic [WordBits-1:0] host_index;
  logic [1:0] host_ready, host_back, fault, unused_host_error, unused_tag;
  logic [1:0][34:0] host_data;
  logic [1:0][18:0] fault_addr;
  logic [1:0][31:0] fault_count;
  hue_table_port #(.Id(TABLE_SRAM), .Rows(Words)) u_sram_port (
    .clk_i, .rst_ni, .tbl_req_i, .tbl_rsp_o(sram_rsp), .start_o(host_start), .addr_o(host_index), .done_i(host_done),
    .rdata_i(256'({^host_data[bank], host_data[bank]}))
  );
  always_ff @(posedge clk_i) begin
    if (!rst_ni) {asked_q, host_waits_q} <= '0;
    else begin
      host_waits_q <= (host_start || host_waits_q) && !host_done;
      asked_q      <= (asked_q || (taken && !tbl_req_i.write)) && host_back == '0;
    end
  end
  assign bank       = host_index[WordBits-1];
  assign host_valid = (host_start || host_waits_q) && !asked_q;
  assign taken      = host_valid && host_ready[bank];
  assign host_write = taken && tbl_req_i.write;
  assign host_done  = host_write || host_back != '0;
  assign fill_go    = fill_q && !(host_valid && bank == fill_bank_q) && host_ready[fill_bank_q];

  for (genvar i = 0; i < 2; i++) begin : gen_bank
    logic mine, fills;
    assign mine   = host_valid && bank == 1'(i);
    assign fills  = fill_q && fill_bank_q == 1'(i) && !mine;
    hue_sram_port #(.Words(1 << 19), .Latency(Latency), .TagBits(1)) u_port (
      .clk_i, .rst_ni,
      .rd_valid_i(rd_valid[i]), .rd_ready_o(rd_ready[i]), .rd_addr_i(rd_addr[i]), .rd_tag_i(1'b0),
      .rsp_valid_o(rsp_valid[i]), .rsp_data_o(rsp_data[i]), .rsp_tag_o(unused_tag[i]), .rsp_error_o(rsp_error[i]),
      .host_valid_i(mine || fills), .host_ready_o(host_ready[i]), .host_write_i(fills || tbl_req_i.write),
      .host_addr_i(fills ? fill_addr_q : host_index[18:0]), .host_data_i(fills ? fill_word_q : tbl_req_i.wdata[34:0]),
      .host_rsp_valid_o(host_back[i]), .host_rsp_data_o(host_data[i]), .host_rsp_error_o(unused_host_error[i]),
      .error_clear_i(fault_clear_i), .error_valid_o(fault[i]), .error_addr_o(fault_addr[i]),
      .error_count_o(fault_count[i]),
      .sram_en_o(sram_req_o.en[i]), .sram_write_o(sram_req_o.write[i]), .sram_addr_o(sram_req_o.addr[i]),
      .sram_wdata_o(sram_req_o.wdata[i]), .sram_rdata_i(sram_rdata_i[i])
    );
  end
  assign state_o.fault       = fault != '0;
  assign state_o.fault_index = fault[0] ? {1'b0, fault_addr[0]} : {1'b1, fault_addr[1]};
  assign state_o.fault_count = saturating_sum(fault_count[0], fault_count[1]);
  assign state_o.lookup      = 1'b0;
  assign tbl_rsp_o = rows_rsp | fill_rsp | sram_rsp;

  logic unused;
  assign unused = &{1'b0, rsp_data[0][35], rsp_data[1][35], answer_ready, fill_in.running, fill_in.written, fill_in.word[35]};

`ifndef SYNTHESIS
  a_room: assert property (@(posedge clk_i) disable iff (!rst_ni) valid_i |-> (room_o && dir_ready));
  a_answers: assert property (@(posedge clk_i) disable iff (!rst_ni) answer_valid |-> answer_ready);
  a_inside: assert property (@(posedge clk_i) disable iff (!rst_ni) inside_q <= CountBits'(InFlight));
  a_kept: assert property (@(posedge clk_i) disable iff (!rst_ni)
    (valid_i && inside_q == CountBits'(InFlight)) |-> (valid_o && ready_i));
`endif
endmodule
