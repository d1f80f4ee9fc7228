// Proof harness of hue_ipv4_check: its result for a header is that of spec/kinds/ipv4.toml, condition by condition.
//
// Place: scripts/formal. The record is free except for its length, which is that of a valid frame.
module hue_ipv4_check_formal
  import hue_pkg::*;
  import hue_kinds_pkg::*;
  import hue_stages_pkg::*;
(
  input logic      clk_i,
  input logic      rst_ni,
  input hue_head_t head_i
);
  ipv4_t ipv4_o;
  hue_ipv4_check u_dut (.*);

  // Terms of spec/kinds/ipv4.toml, as integers.
  int unsigned present, ihl, total;
  assign present = 32'(head_i.len) - 32'd14;
  assign ihl = 32'd4 * 32'(head_i.ihl);
  assign total = 32'(head_i.total);

  // The first outcome whose condition holds, in the order of spec/kinds/ipv4.toml, among the outcomes that need no table.
  logic [IPV4_CHECKSUM:IPV4_ARP] when;
  logic [4:0] outcome;
  always_comb begin
    when[IPV4_ARP] = head_i.ethertype == 16'h0806;
    when[IPV4_ETHERTYPE] = head_i.ethertype != 16'h0800;
    when[IPV4_TRUNCATED] = present < 20;
    when[IPV4_VERSION] = head_i.version != 4'd4;
    when[IPV4_HEADER_LENGTH] = ihl < 20 || ihl > present;
    when[IPV4_TOTAL_LENGTH] = total < ihl || total > present;
    when[IPV4_CHECKSUM] = !head_i.sum_ok;
    outcome = OutcomeNone;
    for (int unsigned i = 32'(IPV4_CHECKSUM); i >= 32'(IPV4_ARP); i--) if (when[i]) outcome = 5'(i);
  end

  // Whether the highest `bits` bits of an address are those of a prefix.
  function automatic logic in_prefix(logic [31:0] addr, logic [31:0] prefix, int unsigned bits);
    return ((addr ^ prefix) >> (32 - bits)) == '0;
  endfunction
  logic [31:0] src;  // source address; the record has only its first byte
  assign src = {head_i.src, 24'd0};

  logic begun_q;  // ABC needs a register
  initial begun_q = 1'b0;
  always_ff @(posedge clk_i) begun_q <= 1'b1;

  always_comb begin
    if (begun_q) begin
      assume (32'(head_i.len) >= FrameBytesMin && 32'(head_i.len) <= FrameBytesMax);
      assert (ipv4_o.outcome == outcome);
      assert (ipv4_o.group == (head_i.dst == '1 || in_prefix(head_i.dst, 32'he0000000, 4)));
      assert (ipv4_o.l2_group == head_i.dst_mac[40]);
      assert (ipv4_o.martian_source == (in_prefix(src, 32'h00000000, 8) || in_prefix(src, 32'h7f000000, 8) ||
                                        in_prefix(src, 32'he0000000, 3)));
      assert (ipv4_o.martian_destination == (in_prefix(head_i.dst, 32'h00000000, 8) || in_prefix(head_i.dst, 32'h7f000000, 8) ||
                                             in_prefix(head_i.dst, 32'hf0000000, 4)));
      assert (ipv4_o.expires == (head_i.ttl inside {8'd0, 8'd1}));
      if (outcome == OutcomeNone) assert (ipv4_o.options == (ihl > 20));
      assert ({ipv4_o.total, ipv4_o.ttl, ipv4_o.checksum, ipv4_o.dst} == {head_i.total, head_i.ttl, head_i.checksum, head_i.dst});
    end
  end
  logic unused;
  assign unused = ^{rst_ni, head_i};
endmodule
