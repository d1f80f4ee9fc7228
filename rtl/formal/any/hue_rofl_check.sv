// Replaces hue_rofl_check in proofs that only need to know that it gets the right network, port, head vector, length and setting, and where
// its result goes: the result depends on every bit of the input, and no bit of the result is constant. The proof `rofl_check` covers the
// real result.
//
// Place: in the sources of proofs that name it.
module hue_rofl_check
  import hue_pkg::*;
  import hue_stages_pkg::*;
#(
    parameter int unsigned Nets = 16,
    localparam int unsigned NetBits = Nets > 1 ? $clog2(Nets) : 1,
    localparam int unsigned PortBits = $clog2(MacPorts)
) (
    input  logic            clk_i,
    input  logic            rst_ni,
    input  tbl_req_t        tbl_req_i,
    output tbl_rsp_t        tbl_rsp_o,
    output logic            error_o,
    output logic            wait_o,
    input  logic            en_i,
    input  logic            valid_i,
    input  logic [NetBits-1:0] net_i,
    input  logic [PortBits-1:0] port_i,
    input  hue_head_bytes_t head_i,
    input  logic [13:0]     len_i,
    input  logic [4:0]      label_bytes_i,
    output question_t       question_o
);
  localparam int unsigned Bits = $bits(question_t);
  localparam int unsigned InBits = $bits(hue_head_bytes_t) + 14 + NetBits + PortBits + 1;
  localparam int unsigned Parts = (InBits + Bits - 1) / Bits;
  logic                  valid_q;
  logic [NetBits-1:0]    net_q;
  logic [PortBits-1:0]   port_q;
  logic [Parts*Bits-1:0] padded;
  logic [InBits-1:0]     in;
  question_t             sum, sum_q;
  assign in = {valid_q, net_q, port_q, len_i, head_i};
  always_comb begin
    for (int unsigned i = 0; i < Parts * Bits; i++) padded[i] = in[i%InBits];
    sum = '0;
    for (int unsigned i = 0; i < Parts; i++) sum = sum ^ padded[Bits*i+:Bits];
  end
  always_ff @(posedge clk_i) begin
    if (en_i) begin
      valid_q <= valid_i;
      net_q   <= net_i;
      port_q  <= port_i;
      sum_q   <= sum;
    end
  end
  assign question_o = sum_q ^ Bits'(label_bytes_i);
  assign tbl_rsp_o = '0;
  assign {error_o, wait_o} = '0;
  logic unused;
  assign unused = &{1'b0, rst_ni, tbl_req_i};
endmodule
