// Replaces hue_table in proofs that must hold for any rows: the rows are arbitrary after reset, and the host writes a row in the clock
// of its request.
//
// Place: in the sources of proofs that name it. Ports and the timing of reads are those of the module.
module hue_table #(
    parameter logic [7:0]  Id    = 8'd0,
    parameter int unsigned First = 0,
    parameter int unsigned Rows  = 2,
    parameter int unsigned Total = First + Rows,
    parameter int unsigned Width = 1,
    parameter bit          Reset = 1'b1,
    parameter bit          Again = 1'b0,
    localparam int unsigned AddrBits = Rows > 1 ? $clog2(Rows) : 1
) (
    input  logic                clk_i,
    input  logic                rst_ni,
    input  hue_pkg::tbl_req_t   tbl_req_i,
    output hue_pkg::tbl_rsp_t   tbl_rsp_o,
    output logic                write_o,
    output logic [AddrBits-1:0] write_addr_o,
    output logic [Width-1:0]    write_data_o,
    output logic                wait_o,
    input  logic                en_i,
    input  logic [AddrBits-1:0] addr_i,
    output logic [Width-1:0]    data_o,
    output logic                parity_o,
    input  logic                check_i,
    output logic                error_o
);
  (* anyseq *) logic [Rows-1:0][Width-1:0] any;  // sampled during reset
  logic [Rows-1:0][Width-1:0] rows_q;
  assign tbl_rsp_o    = '0;
  assign write_o      = tbl_req_i.valid && tbl_req_i.write && tbl_req_i.id == Id;
  assign write_addr_o = tbl_req_i.index[AddrBits-1:0];
  assign write_data_o = tbl_req_i.wdata[Width-1:0];
  assign wait_o       = 1'b0;
  assign parity_o     = ^data_o;
  assign error_o      = 1'b0;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) rows_q <= any;
    else if (write_o) rows_q[write_addr_o] <= write_data_o;
    if (en_i) data_o <= rows_q[addr_i];
  end
  logic unused;
  assign unused = &{1'b0, Total, Reset, Again, check_i, tbl_req_i};
endmodule
