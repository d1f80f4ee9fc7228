// Replaces hue_table in proofs that must hold for any contents of a table: rows are arbitrary, and stay. The proof `table` covers the host's
// accesses.
//
// Place: in the sources of proofs that name it.
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
  always_ff @(posedge clk_i) begin
    if (!rst_ni) rows_q <= any;
    if (en_i) data_o <= rows_q[addr_i];
  end
  assign {tbl_rsp_o, write_o, write_addr_o, write_data_o, wait_o, parity_o, error_o} = '0;
  logic unused;
  assign unused = &{1'b0, Id, First, Total, Reset, Again, tbl_req_i, check_i};
endmodule
