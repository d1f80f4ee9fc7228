// Proof harness of hue_ternary_table: a key gets the result of the lowest row that matches it, and no result if no row matches.
//
// Place: scripts/formal. Inputs are free except for the rules of accesses. The harness stores the rows that the host wrote, and looks
// each key up in them. So rows that do not match have no effect; isolation in design select relies on this. A new row takes effect
// in the clock of the answer to its write; keys come before, during and after the write.
module hue_ternary_table_formal
  import hue_pkg::*;
#(
  parameter int unsigned Rows = 8,
  parameter int unsigned First = 8,
  parameter int unsigned KeyBits = 2,
  localparam int unsigned AddrBits = $clog2(Rows)
) (
  input logic               clk_i,
  input logic               rst_ni,
  input tbl_req_t           tbl_req_i,
  input logic               en_i,
  input logic               valid_i,
  input logic [KeyBits-1:0] key_i
);
  localparam logic [7:0] Id = 8'd1;
  typedef struct packed {
    logic               result;
    logic [KeyBits-1:0] value;
    logic [KeyBits-1:0] mask;
    logic               valid;
  } row_t;
  typedef struct packed {
    logic                hit;
    logic                result;
    logic [AddrBits-1:0] addr;
  } found_t;

  tbl_rsp_t tbl_rsp_o;
  logic     hit_o, result_o, error_o;
  row_t     row;
  hue_ternary_table #(
    .Id(Id), .First(First), .Rows(Rows), .Total(2 * First), .Width($bits(row_t)), .KeyBits(KeyBits), .ResultBits(1)
  ) u_dut (
    .clk_i, .rst_ni, .tbl_req_i, .tbl_rsp_o, .row_o(row), .value_i(row.value), .mask_i(row.mask),
    .en_i, .valid_i, .key_i, .hit_o, .result_o, .error_o
  );

  logic mine, written, begun_q;
  assign written = tbl_rsp_o.done && tbl_req_i.write && tbl_rsp_o.error == hue_regs_pkg::TABLE_ERROR_NONE;
  row_t [Rows-1:0] rows_q, rows;
  found_t found, found1_q, found2_q, found3_q;
  assign mine = tbl_req_i.valid && tbl_req_i.id == Id && 32'(tbl_req_i.index) >= First
                && 32'(tbl_req_i.index) < First + Rows;
  hue_access_rules u_access (.clk_i, .rst_ni, .tbl_req_i, .mine_i(mine), .done_i(tbl_rsp_o.done));

  always_comb begin
    rows = rows_q;
    if (written) rows[tbl_req_i.index[AddrBits-1:0]] = tbl_req_i.wdata[$bits(row_t)-1:0];
    found = '0;
    for (int unsigned r = 0; r < Rows; r++) begin
      if (valid_i && !found.hit && rows[r].valid && ((key_i ^ rows[r].value) & rows[r].mask) == '0) begin
        found = '{hit: 1'b1, result: rows[r].result, addr: AddrBits'(r)};
      end
    end
  end

  initial begun_q = 1'b0;
  always_ff @(posedge clk_i) begin
    begun_q <= 1'b1;
    if (!rst_ni) begin
      rows_q <= '0;
      found1_q <= '0;
      found2_q <= '0;
      found3_q <= '0;
    end else begin
      rows_q <= rows;
      if (en_i) begin
        found1_q <= found;
        found2_q <= found1_q;
        found3_q <= found2_q;
      end
    end
  end

  always_comb begin
    assume (rst_ni == begun_q);
    if (begun_q) begin
      assert (hit_o == found2_q.hit);
      if (found3_q.hit) assert (result_o == found3_q.result && !error_o);
    end
  end
  logic unused;
  assign unused = ^row;
endmodule
