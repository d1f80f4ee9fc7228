// Proof harness of hue_mpls_check: its result for a frame is that of spec/kinds/mpls.toml, condition by condition, and does not depend on
// bytes behind the frame's end.
//
// Place: scripts/formal. The head vector is free, and so are the bytes behind the frame's end, which differ between two copies. The
// mask and the length are those of a frame that networks receive. What is expected goes through the stack entry by entry, by the length.
module hue_mpls_check_formal
  import hue_pkg::*;
  import hue_kinds_pkg::*;
  import hue_stages_pkg::*;
(
  input logic            clk_i,
  input logic            rst_ni,
  input hue_head_bytes_t head_i,
  input hue_head_bytes_t other_i,  // the second copy
  input logic [13:0]     len_i
);
  mpls_t mpls_o, other_o;
  hue_mpls_check u_dut (.*);
  hue_mpls_check u_other (.head_i(other_i), .len_i, .mpls_o(other_o));

  // The entry that is the bottom, if the frame has it among the first 16, or where the frame ends before it.
  logic found, cut;
  always_comb begin
    {found, cut} = '0;
    for (int unsigned i = 0; i < 16; i++) begin
      if (!found && !cut) begin
        if (32'(len_i) < 14 + 4 * i + 4) cut = 1'b1;
        else if (head_i.bytes[14+4*i+2] % 2 == 8'd1) found = 1'b1;
      end
    end
  end

  // Terms of spec/kinds/mpls.toml.
  int unsigned label, ttl;
  assign label = 32'({head_i.bytes[14], head_i.bytes[15]}) * 16 + 32'(head_i.bytes[16]) / 16;
  assign ttl = 32'(head_i.bytes[17]);

  // The first outcome whose condition holds, among those that the front decides.
  logic [MPLS_TTL:MPLS_NOT_MPLS] when;
  logic [4:0] outcome;
  logic asks;
  always_comb begin
    when[MPLS_NOT_MPLS] = {head_i.bytes[12], head_i.bytes[13]} != 16'h8847 || head_i.bytes[0] % 2 == 8'd1;
    when[MPLS_SHORT] = cut;
    when[MPLS_TOO_DEEP] = !found && !cut;
    when[MPLS_ROUTER_ALERT] = label == 1;
    when[MPLS_EXPLICIT_NULL] = label == 0 || label == 2;
    when[MPLS_RESERVED] = label < 16;
    when[MPLS_TTL] = ttl < 2;
    outcome = OutcomeNone;
    for (int unsigned i = 32'(MPLS_TTL); i >= 32'(MPLS_NOT_MPLS); i--) if (when[i]) outcome = 5'(i);
    asks = outcome == OutcomeNone;
  end

  logic begun_q;  // ABC needs a register
  initial begun_q = 1'b0;
  always_ff @(posedge clk_i) begun_q <= 1'b1;

  always_comb begin
    if (begun_q) begin
      assume (32'(len_i) >= FrameBytesMin && 32'(len_i) <= FrameBytesMax);
      for (int unsigned i = 0; i < HeadBytes; i++) begin
        assume (head_i.mask[i] == (i < 32'(len_i)) && other_i.mask[i] == head_i.mask[i]);
        if (head_i.mask[i]) assume (other_i.bytes[i] == head_i.bytes[i]);
      end
      assert (mpls_o.outcome == outcome && mpls_o.asks == asks);
      if (asks) assert (32'(mpls_o.payload) == 32'(len_i) - 14 && 32'(mpls_o.label) == label && 32'(mpls_o.ttl) == ttl);
      assert (other_o.outcome == mpls_o.outcome && other_o.asks == mpls_o.asks);
      if (asks) assert (other_o == mpls_o);
    end
  end
  logic unused;
  assign unused = ^{rst_ni, head_i, other_i};
endmodule
