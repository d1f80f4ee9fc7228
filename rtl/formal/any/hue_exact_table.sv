// Stands for hue_exact_table where a proof wants any table: what a key gets is any function of the key.
//
// Place: in the sources of proofs that name it. The lowest bits of the key are the result and whether there is one, so
// that free keys give every answer at every time; timing and ports are those of the module.
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
  logic [ResultBits:0] first_q, second_q;
  assign tbl_rsp_o = '0;
  assign wait_o    = 1'b0;
  assign error_o   = 1'b0;
  assign hit_o     = second_q[ResultBits];
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      first_q  <= '0;
      second_q <= '0;
    end else if (en_i) begin
      first_q  <= valid_i ? key_i[ResultBits:0] : '0;
      second_q <= first_q;
    end
    if (en_i) result_o <= second_q[ResultBits-1:0];
  end
  logic unused;
  assign unused = &{1'b0, Id, Banks, BankRows, tbl_req_i, key_i};
endmodule
