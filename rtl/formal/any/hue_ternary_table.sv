// Replaces hue_ternary_table in proofs that must hold for any table. It holds one arbitrary row: a key that matches it gets its
// result.
//
// Place: in the sources of proofs that name it. The caller cannot tell rows apart, so one arbitrary row represents each of many. The
// proof `ternary_table` shows which of several rows a key gets. As with the module, the instance extracts value and mask from the row.
// Timing and ports are those of the module; its answers to the host are free.
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
    output logic [ResultBits-1:0] result_o,
    output logic                  error_o
);
  (* anyseq *) logic [Width-1:0] any;  // sampled during reset
  logic [Width-1:0] row_q;
  (* anyseq *) hue_pkg::tbl_rsp_t rsp;
  (* anyseq *) logic [ResultBits-1:0] nothing;
  logic first_q;
  assign tbl_rsp_o = rsp;
  assign row_o     = row_q;
  assign error_o   = 1'b0;
  always_ff @(posedge clk_i) if (!rst_ni) row_q <= any;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) {hit_o, first_q} <= '0;
    else if (en_i) {hit_o, first_q} <= {first_q, valid_i && row_q[0] && ((key_i ^ value_i) & mask_i) == '0};
    if (en_i) result_o <= hit_o ? row_q[Width-1-:ResultBits] : nothing;
  end
  logic unused;
  assign unused = &{1'b0, Id, First, Rows, Total, tbl_req_i};
endmodule
