// Proof harness of hue_table: packets and the host read from a row the value that was last written to it by an access to this row.
//
// Place: scripts/formal. Inputs are free except for the rules of accesses. `row_i` is any row. Isolation relies on this: a read of the
// row gives the value that the harness saw written to it, whatever other rows are written and read.
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
  input logic [AddrBits-1:0] row_i  // sampled during reset
);
  localparam logic [7:0] Id = 8'd4;
  localparam int unsigned Total = 8;

  tbl_rsp_t            tbl_rsp_o;
  logic                write_o, wait_o, parity_o, error_o;
  logic [AddrBits-1:0] write_addr_o;
  logic [Width-1:0]    write_data_o, data_o;
  hue_table #(.Id(Id), .First(First), .Rows(Rows), .Total(Total), .Width(Width)) u_dut (.*);

  logic                begun_q, mine, beyond, names, looked_q, wrote_q, can;
  logic [2:0]          asked_q;  // clocks for which an access has waited
  logic [AddrBits-1:0] row_q;
  logic [Width-1:0]    now_q;
  logic [2**Width-1:0] since_q;  // values that the row has had since a packet read it
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
      // A row changes only by an access to it, once, and gets the value of the access.
      if (write_o) assert (can && tbl_req_i.write && !wrote_q && write_data_o == tbl_req_i.wdata[Width-1:0]);
      if (write_o) assert (names == (write_addr_o == row_q));
      // A packet that reads the row gets one of the row's values: that of the clock of the read, or a later one while the packet stalls.
      if (looked_q && !wait_q) assert (since_q[data_o]);
      assert (!error_o);
      if (looked_q && !wait_q) assert (parity_o == ^data_o);
      // The host is answered, and reads the row as it is.
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
