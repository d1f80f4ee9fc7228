// Replaces hue_toeplitz in proofs that only need to know that it gets the right head vector, and where its results go: the results depend on
// every bit of the vector, and are not equal. Its bench covers the real results.
//
// Place: in the sources of proofs that name it.
module hue_toeplitz
  import hue_pkg::*;
  import hue_stages_pkg::*;
(
    input  logic                clk_i,
    input  logic                en_i,
    input  hue_head_bytes_t     head_i,
    output logic [HashBits-1:0] ipv4_o,
    output logic [HashBits-1:0] ipv6_o
);
  localparam int unsigned InBits = $bits(hue_head_bytes_t);
  localparam int unsigned Parts = (InBits + HashBits - 1) / HashBits;
  logic [Parts*HashBits-1:0] padded;
  logic [HashBits-1:0] sum;
  always_comb begin
    for (int unsigned i = 0; i < Parts * HashBits; i++) padded[i] = head_i[i%InBits];
    sum = '0;
    for (int unsigned i = 0; i < Parts; i++) sum = sum ^ padded[HashBits*i+:HashBits];
  end
  always_ff @(posedge clk_i) begin
    if (en_i) begin
      ipv4_o <= sum;
      ipv6_o <= ~sum;
    end
  end
endmodule
