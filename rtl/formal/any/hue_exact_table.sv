// Replaces hue_exact_table in proofs that must hold for any table. It holds one arbitrary row: a key that equals the row's key gets
// the row's result.
//
// Place: in the sources of proofs that name it. The caller cannot tell rows apart, so one arbitrary row represents each of many. The
// proof `exact_table` shows which of several rows a key gets. Timing and ports are those of the module; its answers to the host are
// free.
module hue_exact_table #(
    parameter logic [7:0]  Id         = 8'd0,
    parameter int unsigned Banks      = 4,
    parameter int unsigned BankRows   = 512,
    parameter int unsigned KeyBits    = 51,
    parameter int unsigned ResultBits = 16
) (
    input  logic                  clk_i,
    input  logic                  rst_ni,
    input  hue_pkg::tbl_req_t     tbl_req_i,
    output hue_pkg::tbl_rsp_t     tbl_rsp_o,
    output logic                  wait_o,
    input  logic                  en_i,
    input  logic                  valid_i,
    input  logic [KeyBits-1:0]    key_i,
    output logic                  hit_o,
    output logic [ResultBits-1:0] result_o,
    output logic                  error_o
);
  typedef struct packed {
    logic [ResultBits-1:0] result;
    logic [KeyBits-1:0]    key;
    logic                  valid;
  } row_t;
  (* anyseq *) row_t any;  // sampled during reset
  row_t row_q;
  (* anyseq *) hue_pkg::tbl_rsp_t rsp;
  (* anyseq *) logic [ResultBits-1:0] nothing;
  logic first_q;
  assign tbl_rsp_o = rsp;
  assign wait_o    = 1'b0;
  assign error_o   = 1'b0;
  always_ff @(posedge clk_i) if (!rst_ni) row_q <= any;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) {hit_o, first_q} <= '0;
    else if (en_i) {hit_o, first_q} <= {first_q, valid_i && row_q.valid && key_i == row_q.key};
    if (en_i) result_o <= hit_o ? row_q.result : nothing;
  end
  logic unused;
  assign unused = &{1'b0, Id, Banks, BankRows, tbl_req_i};
endmodule
