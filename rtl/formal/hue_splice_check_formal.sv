// Proof harness of hue_splice_check: its result for a header is that of spec/kinds/splice.toml, condition by condition, and the checksum
// is that of the header with the identification for the next hop.
//
// Place: scripts/formal. The record of hue_ipv4_check is free except for its outcome, which is one that it can have, and so are the
// fields of the packet's head. What is expected is written by integers and by the rules of ADR 0072, not by cases as in the module.
module hue_splice_check_formal
  import hue_pkg::*;
  import hue_kinds_pkg::*;
  import hue_stages_pkg::*;
(
  input logic             clk_i,
  input logic             rst_ni,
  input ipv4_t            ipv4_i,
  input splice_head_t     head_i,
  input splice_settings_t settings_i,
  input logic             forward_martians_i
);
  question_t    question_o;
  splice_edit_t edit_o;
  hue_splice_check u_dut (.*);

  // Bits of a hop: the smallest number with which every slice has a number.
  int unsigned slices, bits;
  assign slices = 32'(settings_i.last) + 1;
  always_comb begin
    bits = 4;
    for (int unsigned i = 4; i > 0; i--) if (slices <= 32'd1 << (i - 1)) bits = i - 1;
  end

  // The identification for the next hop: the bits of whole hops move down by those of one, and the last hop's stay.
  int unsigned used, low, stays, next;
  always_comb begin
    used = bits == 3 ? 15 : 16;
    low = 32'(head_i.id) & ((32'd1 << used) - 1);
    stays = low >> (used - bits) << (used - bits);
    next = bits == 0 ? 32'(head_i.id) : 32'(head_i.id) - low + (low >> bits | stays);
  end

  logic spliced, in_id;
  int unsigned slice, sum;
  always_comb begin
    spliced = !ipv4_i.options && !head_i.fragment && (settings_i.shim ? head_i.experiment : head_i.dont_fragment);
    in_id = spliced && !settings_i.shim;
    slice = spliced ? (settings_i.shim ? 32'(head_i.shim_low) : 32'(head_i.id)) % (32'd1 << bits) : 32'd0;
    // RFC 1624 eqn. 3, in ones' complement of 16 bits.
    sum = 32'hffff - 32'(ipv4_i.checksum) + 32'hffff - 32'(head_i.id) + next;
    for (int unsigned i = 0; i < 2; i++) if (sum > 32'hffff) sum = sum - 32'hffff;
  end

  // The first outcome whose condition holds, among those that the front decides. `local` from the route is not among them.
  logic [SPLICE_OPTIONS:SPLICE_SHIM] when;
  logic [4:0] outcome;
  logic asks;
  always_comb begin
    when[SPLICE_SHIM] = spliced && settings_i.shim && (ipv4_i.total < 16'd28 || head_i.shim_version != 4'd1);
    when[SPLICE_NO_SLICE] = slice >= slices;
    when[SPLICE_LOCAL] = ipv4_i.group;
    when[SPLICE_L2_GROUP] = ipv4_i.l2_group;
    when[SPLICE_MARTIAN_SOURCE] = ipv4_i.martian_source && !forward_martians_i;
    when[SPLICE_MARTIAN_DESTINATION] = ipv4_i.martian_destination && !forward_martians_i;
    when[SPLICE_TTL] = ipv4_i.expires;
    when[SPLICE_OPTIONS] = ipv4_i.options;
    outcome = OutcomeNone;
    for (int unsigned i = 32'(SPLICE_OPTIONS); i >= 32'(SPLICE_SHIM); i--) if (when[i]) outcome = 5'(i);
    asks = outcome == OutcomeNone || outcome > SPLICE_LOCAL;
    // The checks of kind ipv4 come first, and their outcomes have its numbers.
    if (ipv4_i.outcome != OutcomeNone) begin
      outcome = ipv4_i.outcome;
      asks = 1'b0;
    end
  end

  logic begun_q;  // ABC needs a register
  initial begun_q = 1'b0;
  always_ff @(posedge clk_i) begun_q <= 1'b1;

  always_comb begin
    if (begun_q) begin
      assume (ipv4_i.outcome == OutcomeNone || (ipv4_i.outcome >= IPV4_ARP && ipv4_i.outcome <= IPV4_CHECKSUM));
      assert (question_o.asks == asks && question_o.outcome == outcome);
      if (asks) begin
        assert (question_o.key == {8'(slice), ipv4_i.dst, 88'd0});
        assert ({question_o.total, question_o.ttl} == {ipv4_i.total, ipv4_i.ttl});
        // Where no bit changes, the checksum keeps also the form in which it was sent.
        assert (question_o.checksum == (in_id && next != 32'(head_i.id) ? ~16'(sum) : ipv4_i.checksum));
        assert (question_o.source == '0 && question_o.hash == '0);
        assert (edit_o.on == spliced && 32'(edit_o.shift) == bits);
        if (spliced) assert (edit_o.shim == settings_i.shim);
        // Scatter writes the identification that the checksum is for.
        assert (32'(spliced_id(head_i.id, edit_o.shift)) == next);
      end
    end
  end
  logic unused;
  assign unused = ^{rst_ni, settings_i};
endmodule
