// Proof harness of hue_table: a row is what was last written to it by an access that names it, to packets and to
// the host.
//
// Place: scripts/formal; inputs are free but for the rules of accesses. `row_i` is any row. That a read of it
// gives what the harness saw written to it, whatever else is written and read, is what isolation rests on.
module hue_table_formal
  import hue_pkg::*;
#(
  parameter int unsigned Rows = 4,
  parameter int unsigned First = 4,
  parameter int unsigned Width = 2,
  localparam int unsigned AddrBits = $clog2(Rows)
) (
  input logic                clk_i,
  input logic                rst_ni,
  input tbl_req_t            tbl_req_i,
  input logic                en_i,
  input logic [AddrBits-1:0] addr_i,
  input logic                check_i,
  input logic [AddrBits-1:0] row_i  // taken while in reset
);
  localparam logic [7:0] Id = 8'd4;

  tbl_rsp_t            tbl_rsp_o;
  logic                write_o, wait_o, parity_o, error_o;
  logic [AddrBits-1:0] write_addr_o;
  logic [Width-1:0]    write_data_o, data_o;
  hue_table #(.Id(Id), .First(First), .Rows(Rows), .Total(2 * First), .Width(Width)) u_dut (.*);

  logic                begun_q, mine, names, looked_q;
  logic [AddrBits-1:0] row_q;
  logic [Width-1:0]    now_q;
  logic [2**Width-1:0] since_q;  // which values it had since a packet looked at it
  assign mine = tbl_req_i.valid && tbl_req_i.id == Id && 32'(tbl_req_i.index) >= First
                && 32'(tbl_req_i.index) < First + Rows;
  assign names = mine && 32'(tbl_req_i.index) == First + 32'(row_q);
  hue_access_rules u_access (.clk_i, .rst_ni, .tbl_req_i, .mine_i(mine), .done_i(tbl_rsp_o.done));

  initial begun_q = 1'b0;
  always_ff @(posedge clk_i) begin
    begun_q <= 1'b1;
    if (!rst_ni) begin
      row_q <= row_i;
      now_q <= '0;
      looked_q <= 1'b0;
    end else begin
      if (write_o && write_addr_o == row_q) begin
        now_q <= write_data_o;
        since_q[write_data_o] <= 1'b1;
      end
      if (en_i) begin
        looked_q <= addr_i == row_q;
        since_q <= (2**Width)'(1) << now_q;
      end
    end
  end

  logic wait_q;
  always_ff @(posedge clk_i) wait_q <= rst_ni && wait_o;

  always_comb begin
    assume (rst_ni == begun_q);
    if (wait_q) assume (!en_i);
    if (begun_q) begin
      // It changes only by an access that names it, and becomes what the access says.
      if (write_o) assert (mine && tbl_req_i.write && write_data_o == tbl_req_i.wdata[Width-1:0]);
      if (write_o) assert (names == (write_addr_o == row_q));
      // Packets that look at it see it, whole, as it was then, or as it became while they stood still.
      if (looked_q && !wait_q) assert (since_q[data_o]);
      assert (!error_o);
      if (looked_q && !wait_q) assert (parity_o == ^data_o);
      // The host sees it as it is.
      if (tbl_rsp_o.done && names && !tbl_req_i.write && !tbl_req_i.clear) assert (tbl_rsp_o.rdata == 256'(now_q));
      if (tbl_rsp_o.done) assert (mine);
    end
  end
endmodule
