// What the access unit guarantees to the tables: an access is stable until it is answered, and is followed by a clock without an
// access.
//
// Place: harnesses in this folder assume these rules. An access to another table may end at any time.
module hue_access_rules (
  input logic              clk_i,
  input logic              rst_ni,
  input hue_pkg::tbl_req_t tbl_req_i,
  input logic              mine_i,   // the module under test must answer the access
  input logic              done_i
);
  hue_pkg::tbl_req_t req_q;
  logic              mine_q, done_q;
  initial req_q = '0;
  always_ff @(posedge clk_i) begin
    req_q <= rst_ni ? tbl_req_i : '0;
    mine_q <= mine_i;
    done_q <= done_i;
  end
  always_comb begin
    if (rst_ni && req_q.valid) begin
      if (done_q) assume (!tbl_req_i.valid);
      if (!done_q && mine_q) assume (tbl_req_i == req_q);
      if (!done_q && !mine_q) assume (!tbl_req_i.valid || tbl_req_i == req_q);
    end
  end
endmodule
