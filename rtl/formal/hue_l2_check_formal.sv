// Proof harness of hue_l2_check: its result for a frame is that of spec/kinds/l2.toml, condition by condition, and does not depend on
// bytes behind the frame's end.
//
// Place: scripts/formal. The head vector is free, and so are the bytes behind the frame's end, which differ between two copies. The
// mask and the length are those of a frame that networks receive.
module hue_l2_check_formal
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
  l2_t l2_o, other_o;
  hue_l2_check u_dut (.*);
  hue_l2_check u_other (.head_i(other_i), .len_i, .l2_o(other_o));

  // Terms of spec/kinds/l2.toml.
  int unsigned present, payload;
  logic [47:0] src, dst;
  logic [15:0] ethertype;
  assign ethertype = {head_i.bytes[12], head_i.bytes[13]};
  assign present = 32'(len_i) - 32'd14;
  always_comb begin
    for (int unsigned i = 0; i < 6; i++) begin
      dst[8*(5-i)+:8] = head_i.bytes[i];
      src[8*(5-i)+:8] = head_i.bytes[6+i];
    end
    payload = present;
    if (ethertype inside {16'h8100, 16'h88a8}) payload = present < 4 ? 0 : present - 4;
  end

  // The first outcome whose condition holds, among those that the front decides.
  logic [L2_RESERVED:L2_BAD_SOURCE] when;
  logic [4:0] outcome;
  always_comb begin
    when[L2_BAD_SOURCE] = head_i.bytes[6][0] || src == 48'd0;
    when[L2_BAD_DESTINATION] = dst == 48'd0;
    when[L2_RESERVED] = dst >= 48'h0180c2000000 && dst <= 48'h0180c200000f;
    outcome = OutcomeNone;
    for (int unsigned i = 32'(L2_RESERVED); i >= 32'(L2_BAD_SOURCE); i--) if (when[i]) outcome = 5'(i);
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
      assert (l2_o.outcome == outcome && l2_o.asks == (outcome == OutcomeNone));
      if (l2_o.asks) assert (32'(l2_o.payload) == payload && l2_o.dst == dst && l2_o.src == src);
      assert (other_o == l2_o);
    end
  end
  logic unused;
  assign unused = ^{rst_ni, head_i, other_i};
endmodule
