// Replaces hue_mpls_check in proofs that only need to know that it gets the right head vector and length, and where its result goes: the
// result depends on every bit of the input, and no bit of the result is constant. The proof `mpls_check` covers the real result.
//
// Place: in the sources of proofs that name it.
module hue_mpls_check
  import hue_pkg::*;
  import hue_stages_pkg::*;
(
    input  hue_head_bytes_t head_i,
    input  logic [13:0]     len_i,
    output mpls_t           mpls_o
);
  localparam int unsigned Bits = $bits(mpls_t);
  localparam int unsigned InBits = $bits(hue_head_bytes_t) + 14;
  localparam int unsigned Parts = (InBits + Bits - 1) / Bits;
  logic [Parts*Bits-1:0] padded;
  logic [InBits-1:0] in;
  assign in = {len_i, head_i};
  always_comb begin
    // Repeated, so that no bit of the result is constant if the input is narrower than it.
    for (int unsigned i = 0; i < Parts * Bits; i++) padded[i] = in[i%InBits];
    mpls_o = '0;
    for (int unsigned i = 0; i < Parts; i++) mpls_o = mpls_o ^ padded[Bits*i+:Bits];
  end
endmodule
