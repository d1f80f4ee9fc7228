// Proof harness of hue_exact_table: a key gets the result of its row at the index from hue_exact_pkg, in the first bank with such a
// row, and no result if no bank has one.
//
// Place: scripts/formal. Inputs are free except for the rules of accesses. The harness stores the rows that the host wrote, and looks
// each key up in them in the clock in which it leaves the first stage. So rows of other keys have no effect, and a key that is always
// in some row is always found. Isolation in design select relies on this.
module hue_exact_table_formal
  import hue_pkg::*;
#(
  parameter int unsigned Banks = 2,
  parameter int unsigned BankRows = 2,
  parameter int unsigned KeyBits = 2,
  localparam int unsigned IndexBits = $clog2(BankRows),
  localparam int unsigned Rows = Banks * BankRows,
  localparam int unsigned AddrBits = $clog2(Rows)
) (
  input logic               clk_i,
  input logic               rst_ni,
  input tbl_req_t           tbl_req_i,
  input logic               en_i,
  input logic               valid_i,
  input logic [KeyBits-1:0] key_i
);
  localparam logic [7:0] Id = 8'd20;
  typedef struct packed {
    logic               result;
    logic [KeyBits-1:0] key;
    logic               valid;
  } row_t;
  typedef struct packed {
    logic hit;
    logic result;
  } found_t;

  tbl_rsp_t tbl_rsp_o;
  logic     wait_o, hit_o, result_o, error_o;
  hue_exact_table #(.Id(Id), .Banks(Banks), .BankRows(BankRows), .KeyBits(KeyBits), .ResultBits(1)) u_dut (
    .clk_i, .rst_ni, .tbl_req_i, .tbl_rsp_o, .wait_o, .en_i, .valid_i, .key_i, .hit_o, .result_o, .error_o
  );

  logic mine, written, begun_q, valid_q;
  logic [KeyBits-1:0] key_q;
  row_t [Rows-1:0] rows, rows_q;
  found_t found, found2_q, found3_q;
  assign mine = tbl_req_i.valid && tbl_req_i.id == Id;
  assign written = tbl_rsp_o.done && tbl_req_i.write && mine && tbl_rsp_o.error == hue_regs_pkg::TABLE_ERROR_NONE;
  hue_access_rules u_access (.clk_i, .rst_ni, .tbl_req_i, .mine_i(mine), .done_i(tbl_rsp_o.done));

  // A key that moves in the clock of an answer sees the row as written.
  always_comb begin
    rows = rows_q;
    if (written) rows[tbl_req_i.index[AddrBits-1:0]] = tbl_req_i.wdata[$bits(row_t)-1:0];
  end

  row_t row;
  always_comb begin
    found = '0;
    row   = '0;
    for (int unsigned b = 0; b < Banks; b++) begin
      row = rows[AddrBits'(b * BankRows + 32'(hue_exact_pkg::index_of(IndexBits, b, 64'(key_q))))];
      if (valid_q && !found.hit && row.valid && row.key == key_q) found = '{hit: 1'b1, result: row.result};
    end
  end

  initial begun_q = 1'b0;
  initial rows_q = '0;
  always_ff @(posedge clk_i) begin
    begun_q <= 1'b1;
    if (!rst_ni) begin
      valid_q  <= 1'b0;
      found2_q <= '0;
      found3_q <= '0;
    end else begin
      rows_q <= rows;
      if (en_i) begin
        valid_q  <= valid_i;
        found2_q <= found;
        found3_q <= found2_q;
      end
    end
    if (en_i) key_q <= key_i;
  end

  logic wait_q;
  always_ff @(posedge clk_i) wait_q <= rst_ni && wait_o;

  always_comb begin
    assume (rst_ni == begun_q);
    // Memories hold zeros at the start.
    if (!begun_q) assume (tbl_req_i == '0);
    if (wait_q) assume (!en_i);
    if (begun_q) begin
      assert (hit_o == found2_q.hit && !error_o);
      if (found3_q.hit) assert (result_o == found3_q.result);
      // The host reads rows as they are stored.
      if (tbl_rsp_o.done && tbl_rsp_o.error == hue_regs_pkg::TABLE_ERROR_NONE && !tbl_req_i.write) begin
        assert (tbl_rsp_o.rdata == 256'(rows_q[tbl_req_i.index[AddrBits-1:0]]));
      end
      if (tbl_rsp_o.done) assert (mine);
    end
  end
endmodule
