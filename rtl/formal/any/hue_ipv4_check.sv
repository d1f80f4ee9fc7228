// Replaces hue_ipv4_check in proofs that only need to know that it gets the right header: its result depends on every bit of the
// header, so a wrong bit changes it. The proof `ipv4_check` covers the real result.
//
// Place: in the sources of proofs that name it.
module hue_ipv4_check
  import hue_pkg::*;
  import hue_stages_pkg::*;
(
    input  hue_head_t head_i,
    output ipv4_t     ipv4_o
);
  localparam int unsigned Bits = $bits(ipv4_t);
  localparam int unsigned Parts = ($bits(hue_head_t) + Bits - 1) / Bits;
  logic [Parts*Bits-1:0] padded;
  assign padded = (Parts * Bits)'(head_i);
  always_comb begin
    ipv4_o = '0;
    for (int unsigned i = 0; i < Parts; i++) ipv4_o = ipv4_o ^ padded[Bits*i+:Bits];
  end
endmodule
