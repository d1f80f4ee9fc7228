// Replaces hue_ipv6_check in proofs that only need to know that it gets the right head vector and length: its result depends on every
// bit of them, so a wrong bit changes it. The proof `ipv6_check` covers the real result.
//
// Place: in the sources of proofs that name it.
module hue_ipv6_check
  import hue_pkg::*;
  import hue_stages_pkg::*;
(
    input  hue_head_bytes_t head_i,
    input  logic [13:0]     len_i,
    output ipv6_t           ipv6_o
);
  localparam int unsigned Bits = $bits(ipv6_t);
  localparam int unsigned InBits = $bits(hue_head_bytes_t) + 14;
  localparam int unsigned Parts = (InBits + Bits - 1) / Bits;
  logic [Parts*Bits-1:0] padded;
  assign padded = (Parts * Bits)'({len_i, head_i});
  always_comb begin
    ipv6_o = '0;
    for (int unsigned i = 0; i < Parts; i++) ipv6_o = ipv6_o ^ padded[Bits*i+:Bits];
  end
endmodule
