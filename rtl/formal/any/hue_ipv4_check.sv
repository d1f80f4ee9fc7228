// Stands for hue_ipv4_check where a proof wants to know only that it is asked about the right header: every bit of that is in what
// it says, and which is seen at once. What it really says is what the proof `ipv4_check` is about.
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
