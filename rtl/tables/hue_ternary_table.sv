// Ternary table: the host writes and reads rows, packets look up a key and get the result of the lowest matching row.
//
// Place: design select (rtl/demux/hue_select), routes and local addresses of a tcam plane (hue_tcam_plane). The
// lowest bit of a row is its valid bit; its highest `ResultBits` bits are its result. The parent module defines what a
// row matches: it gets the row at `row_o` and returns value and mask in the same clock.
// After reset no row is valid and all read as zero. A result is stored with a parity bit.
// Keys are looked up while a row is written. Each key is compared with either the whole old row or the whole new row. A key that
// comes before the clock of the answer meets the old row, and gets its result even if that is after the answer.
//
// Latency: 2 clocks in which `en_i` is 1 until `hit_o`, one more until `result_o`. Throughput: a key a clock. A write of a row is
// answered after 72 clocks; the next access waits until keys that may have met the old row have left.
module hue_ternary_table #(
    parameter logic [7:0]  Id         = 8'd0,
    parameter int unsigned First      = 0,
    parameter int unsigned Rows       = 32,
    parameter int unsigned Total      = First + Rows,
    parameter int unsigned Width      = 33,
    parameter int unsigned KeyBits    = 32,
    parameter int unsigned ResultBits = 1
) (
    input  logic                  clk_i,
    input  logic                  rst_ni,
    input  hue_pkg::tbl_req_t     tbl_req_i,
    output hue_pkg::tbl_rsp_t     tbl_rsp_o,
    output logic [Width-1:0]      row_o,
    input  logic [KeyBits-1:0]    value_i,
    input  logic [KeyBits-1:0]    mask_i,
    input  logic                  en_i,
    input  logic                  valid_i,
    input  logic [KeyBits-1:0]    key_i,
    output logic                  hit_o,
    output logic [ResultBits-1:0] result_o,  // valid one clock after `hit_o`
    output logic                  error_o    // parity of `result_o` is wrong
);
  localparam int unsigned AddrBits = $clog2(Rows);
  if (Width < 2 || Width > 256 || ResultBits > Width) begin : gen_check
    $fatal(1, "hue_ternary_table: Width is %0d, 2 to 256; ResultBits %0d", Width, ResultBits);
  end

  // ---- the rows as the host writes them
  (* ram_style = "block" *) logic [Width-1:0] rows_q[Rows];
  logic start, take_q, write_q, read_q, told_q, known, look, busy, written, old, served_q;
  logic [AddrBits-1:0] host_addr, look_addr, addr, hit_addr, old_addr;
  logic [Width-1:0] data, row_q, host_row_q;
  hue_pkg::tbl_req_t req;

  always_comb begin
    req = tbl_req_i;
    // An access waits while the TCAM is busy with the access before.
    if (busy && !served_q) req.valid = 1'b0;
  end
  hue_table_port #(.Id(Id), .First(First), .Rows(Rows), .Total(Total), .Late(1'b1)) u_port (
    .clk_i, .rst_ni, .tbl_req_i(req), .tbl_rsp_o, .start_o(start), .addr_o(host_addr),
    .done_i(told_q || written), .rdata_i(256'(host_row_q))
  );
  // A write: the old row is read, taken, then overwritten.
  assign data     = tbl_req_i.wdata[Width-1:0];
  assign addr     = look ? look_addr : host_addr;
  assign row_o    = row_q;

  always_ff @(posedge clk_i) begin
    if (write_q) rows_q[addr] <= data;
    else if (look || start) row_q <= rows_q[addr];
    host_row_q <= known ? row_q : '0;  // registered, as a row is late in its clock
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni) {told_q, read_q, write_q, take_q, served_q} <= '0;
    else begin
      {told_q, read_q} <= {read_q, start && !tbl_req_i.write};
      {write_q, take_q} <= {take_q, start && tbl_req_i.write};
      served_q <= tbl_req_i.valid && (served_q || (start && tbl_req_i.write));
    end
  end
  hue_written #(.Rows(Rows)) u_written (
    .clk_i, .rst_ni, .set_i(write_q), .set_addr_i(host_addr), .read_i(start), .addr_i(host_addr), .bit_o(known)
  );

  hue_tcam #(.Rows(Rows), .KeyBits(KeyBits)) u_match (
    .clk_i, .rst_ni, .take_i(take_q), .write_i(write_q), .write_addr_i(host_addr), .write_used_i(data[0]), .busy_o(busy),
    .done_o(written), .look_o(look), .look_addr_o(look_addr), .value_i, .mask_i,
    .en_i, .valid_i, .key_i, .hit_o, .addr_o(hit_addr), .old_o(old), .row_o(old_addr)
  );

  // ---- the results of the rows, parity in the highest bit
  logic [ResultBits-1:0] result;
  logic [ResultBits:0] results_q[Rows];
  logic [ResultBits:0] result_q, old_result_q;
  logic [ResultBits-1:0] row_result;
  assign result     = data[Width-1-:ResultBits];
  assign row_result = row_q[Width-1-:ResultBits];
  always_ff @(posedge clk_i) begin
    if (take_q) old_result_q <= {^row_result, row_result};
    if (write_q) results_q[host_addr] <= {^result, result};
`ifdef HUE_PLANT_TCAM_RESULT
    if (en_i) result_q <= results_q[hit_addr];  // the new row's result for the old row; for scripts/rtl-test: the bench must find this
`else
    if (en_i) result_q <= old && hit_addr == old_addr ? old_result_q : results_q[hit_addr];
`endif
  end
  assign result_o = result_q[ResultBits-1:0];
  assign error_o  = ^result_q;
endmodule
