// Proof harness of hue_ipv6_check: its result for a frame is that of ADR 0047, condition by condition, and does not depend on bytes
// behind the frame's end.
//
// Place: scripts/formal. The head vector is free, and so are the bytes behind the frame's end, which differ between two copies. The
// mask and the length are those of a frame that networks receive.
module hue_ipv6_check_formal
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
  ipv6_t ipv6_o, other_o;
  hue_ipv6_check u_dut (.*);
  hue_ipv6_check u_other (.head_i(other_i), .len_i, .ipv6_o(other_o));

  // Terms of ADR 0047.
  int unsigned  present, payload;
  logic [127:0] src, dst;
  assign present = 32'(len_i) - 32'd14;
  assign payload = 32'({head_i.bytes[18], head_i.bytes[19]});
  always_comb begin
    for (int unsigned i = 0; i < 16; i++) begin
      src[8*(15-i)+:8] = head_i.bytes[22+i];
      dst[8*(15-i)+:8] = head_i.bytes[38+i];
    end
  end

  // Whether the highest `bits` bits of an address are those of a prefix, given by its highest 16 bits.
  function automatic logic in_prefix(logic [127:0] addr, logic [15:0] prefix, int unsigned bits);
    return ((addr[127:112] ^ prefix) >> (16 - bits)) == '0;
  endfunction

  // The first outcome whose condition holds, among those that the front decides. `local` from the route is not among them.
  logic [IPV6_OPTIONS:IPV6_ETHERTYPE] when;
  logic [4:0] outcome;
  logic asks;
  always_comb begin
    when[IPV6_ETHERTYPE] = {head_i.bytes[12], head_i.bytes[13]} != 16'h86dd;
    when[IPV6_TRUNCATED] = present < 40;
    when[IPV6_VERSION] = head_i.bytes[14] >> 4 != 8'd6;
    when[IPV6_PAYLOAD_LENGTH] = 40 + payload > present;
    when[IPV6_LOCAL] = in_prefix(dst, 16'hff00, 8) || in_prefix(dst, 16'hfe80, 10);
    when[IPV6_L2_GROUP] = head_i.bytes[0][0];
    when[IPV6_MARTIAN_SOURCE] = src == 128'd0 || src == 128'd1 || in_prefix(src, 16'hff00, 8);
    when[IPV6_MARTIAN_DESTINATION] = dst == 128'd0 || dst == 128'd1;
    when[IPV6_HOP_LIMIT] = head_i.bytes[21] inside {8'd0, 8'd1};
    when[IPV6_SCOPE] = in_prefix(src, 16'hfe80, 10);
    when[IPV6_OPTIONS] = head_i.bytes[20] == 8'd0;
    outcome = OutcomeNone;
    for (int unsigned i = 32'(IPV6_OPTIONS); i >= 32'(IPV6_ETHERTYPE); i--) if (when[i]) outcome = 5'(i);
    asks = outcome == OutcomeNone || outcome > IPV6_LOCAL;
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
      assert (ipv6_o.outcome == outcome && ipv6_o.asks == asks);
      if (asks) assert (32'(ipv6_o.total) == 40 + payload && ipv6_o.hop_limit == head_i.bytes[21] && ipv6_o.dst == dst);
      assert (other_o.outcome == ipv6_o.outcome && other_o.asks == ipv6_o.asks);
      if (asks) assert (other_o == ipv6_o);
    end
  end
  logic unused;
  assign unused = ^{rst_ni, head_i, other_i};
endmodule
