// Proof harness of hue_table: a row is what was last written to it by an access that names it, to packets and to
// the host.
//
// Place: scripts/formal; inputs are free but for the rules of accesses. `row_i` is any row. That a read of it
// gives what the harness saw written to it, whatever else is written and read, is what isolation rests on.
module hue_table_formal
  import hue_pkg::*;
  import hue_regs_pkg::*;
#(
  parameter int unsigned Rows = 4,
  parameter int unsigned First = 4,  // or 0: then the module also answers for rows that do not exist
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
  localparam int unsigned Total = 8;

  tbl_rsp_t            tbl_rsp_o;
  logic                write_o, wait_o, parity_o, error_o;
  logic [AddrBits-1:0] write_addr_o;
  logic [Width-1:0]    write_data_o, data_o;
  hue_table #(.Id(Id), .First(First), .Rows(Rows), .Total(Total), .Width(Width)) u_dut (.*);

  logic                begun_q, mine, beyond, names, looked_q, wrote_q, can;
  logic [2:0]          asked_q;  // clocks that an access has waited
  logic [AddrBits-1:0] row_q;
  logic [Width-1:0]    now_q;
  logic [2**Width-1:0] since_q;  // which values it had since a packet looked at it
  assign beyond = First == 0 && 32'(tbl_req_i.index) >= Total;
  assign mine = tbl_req_i.valid && tbl_req_i.id == Id &&
                ((32'(tbl_req_i.index) >= First && 32'(tbl_req_i.index) < First + Rows) || beyond);
  assign can = mine && !beyond && !tbl_req_i.clear;
  assign names = mine && 32'(tbl_req_i.index) == First + 32'(row_q);
  hue_access_rules u_access (.clk_i, .rst_ni, .tbl_req_i, .mine_i(mine), .done_i(tbl_rsp_o.done));

  initial begun_q = 1'b0;
  always_ff @(posedge clk_i) begin
    begun_q <= 1'b1;
    if (!rst_ni) begin
      row_q <= row_i;
      now_q <= '0;
      wrote_q <= 1'b0;
      asked_q <= '0;
      looked_q <= 1'b0;
    end else begin
      asked_q <= mine && !tbl_rsp_o.done ? asked_q + 3'(asked_q != '1) : '0;
      wrote_q <= mine && !tbl_rsp_o.done && (wrote_q || write_o);
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
    if (!rst_ni) assume (!tbl_req_i.valid);
    if (wait_q) assume (!en_i);
    if (begun_q) begin
      // It changes only by an access that names it, once, and becomes what the access says.
      if (write_o) assert (can && tbl_req_i.write && !wrote_q && write_data_o == tbl_req_i.wdata[Width-1:0]);
      if (write_o) assert (names == (write_addr_o == row_q));
      // Packets that look at it see it, whole, as it was then, or as it became while they stood still.
      if (looked_q && !wait_q) assert (since_q[data_o]);
      assert (!error_o);
      if (looked_q && !wait_q) assert (parity_o == ^data_o);
      // The host is answered, and sees the row as it is.
      assert (asked_q <= 3'd5);
      if (!tbl_rsp_o.done) assert (tbl_rsp_o == '0);
      if (tbl_rsp_o.done) begin
        assert (mine && wrote_q == (can && tbl_req_i.write));
        assert (tbl_rsp_o.error == (beyond ? TABLE_ERROR_RANGE : tbl_req_i.clear ? TABLE_ERROR_REFUSED : TABLE_ERROR_NONE));
        if (!can || tbl_req_i.write) assert (tbl_rsp_o.rdata == '0);
        else if (names) assert (tbl_rsp_o.rdata == 256'(now_q));
      end
    end
  end
endmodule
