// Front of kind `splice`: the number of a packet's slice, and what forwarding does to the packet's splicing bits.
//
// Place: inside hue_network, behind the head vector and the network's row; the routes of the slice follow. hue_ipv4_check has checked the
// header. spec/kinds/splice.toml is the specification, ADR 0072 and ADR 0077 have reasons. The outcomes, in the order in which they are
// tried; the front decides those with a star:
//
//   * arp, ethertype, truncated, version, header_length, total_length, checksum    as in kind ipv4
//   * shim                  drop     bits: shim, the packet is spliced, and total < 28 or f[35] >> 4 != 1
//   * no_slice              drop     slice >= slices
//   * local, l2_group, martian_source, martian_destination, ttl, options           as in kind ipv4; `local` may also come from the route
//     no_route, no_neighbour, mtu, forward                                         as in kind ipv4
//
// The checksum that it hands on is that of the header with the identification for the next hop. What comes later treats it as that of
// kind ipv4.
// Isolation: no result depends on bytes behind the frame's end, because the length in the header was checked.
//
// Latency: none, combinational. Source: Motiwala et al. (SIGCOMM 2008) §3, RFC 6864 §4, RFC 1624 §3.
module hue_splice_check
  import hue_pkg::*;
  import hue_kinds_pkg::*;
  import hue_stages_pkg::*;
(
    input  ipv4_t            ipv4_i,
    input  splice_head_t     head_i,
    /* verilator lint_off UNUSEDSIGNAL */
    input  splice_settings_t settings_i,
    /* verilator lint_on UNUSEDSIGNAL */
    input  logic             forward_martians_i,
    output question_t        question_o,
    output splice_edit_t     edit_o
);
  localparam int unsigned ShimEnd = 28;  // of the header with splicing bits, from that of IPv4 on
  localparam logic [3:0] ShimVersion = 4'd1;
  // Two outcomes of this kind are between those of ipv4 (a check below).
  localparam logic [4:0] More = SPLICE_LOCAL - IPV4_LOCAL;
  if (SPLICE_CHECKSUM != IPV4_CHECKSUM || SPLICE_OPTIONS != IPV4_OPTIONS + More || SPLICE_L2_GROUP != IPV4_L2_GROUP + More) begin : gen_check
    $fatal(1, "hue_splice_check: the outcomes of kinds ipv4 and splice are not in the same order");
  end

  // Bits of a hop: as many as the highest slice needs.
  logic [2:0] shift;
  always_comb begin
    if (settings_i.last[3]) shift = 3'd4;
    else if (settings_i.last[2]) shift = 3'd3;
    else if (settings_i.last[1]) shift = 3'd2;
    else shift = 3'(settings_i.last[0]);
  end

  logic spliced, cut_off;
  logic [3:0] low, slice, ones;
  assign spliced = !head_i.fragment && !ipv4_i.options && (settings_i.shim ? head_i.experiment : head_i.dont_fragment);
  assign cut_off = spliced && settings_i.shim && (ipv4_i.total < 16'(ShimEnd) || head_i.shim_version != ShimVersion);
  assign low     = settings_i.shim ? head_i.shim_low : head_i.id[3:0];
  assign ones    = 4'((5'd1 << shift) - 5'd1);
`ifdef HUE_PLANT_SPLICE_ALL
  assign slice   = low & ones;  // for scripts/formal
`else
  assign slice   = spliced ? low & ones : '0;
`endif

  logic [15:0] id;
  logic [17:0] sum;
  logic [16:0] folded;
  question_t   plain;
  assign plain  = question_of_ipv4(ipv4_i, forward_martians_i);
  assign id     = spliced && !settings_i.shim ? spliced_id(head_i.id, shift) : head_i.id;
  // RFC 1624 eqn. 3.
  assign sum    = {2'd0, ~ipv4_i.checksum} + {2'd0, ~head_i.id} + {2'd0, id};
  assign folded = 17'(sum[15:0]) + 17'(sum[17:16]);
  always_comb begin
    question_o          = plain;
    question_o.key      = {4'd0, slice, ipv4_i.dst, 88'd0};
    question_o.checksum = id == head_i.id ? ipv4_i.checksum : ~(folded[15:0] + 16'(folded[16]));
    if (ipv4_i.outcome == OutcomeNone) begin
      if (plain.outcome != OutcomeNone) question_o.outcome = plain.outcome + More;
`ifdef HUE_PLANT_SPLICE_SLICE
      if (cut_off) begin  // for scripts/formal
`else
      if (cut_off || slice > settings_i.last) begin
`endif
        question_o.asks    = 1'b0;
        question_o.outcome = cut_off ? SPLICE_SHIM : SPLICE_NO_SLICE;
      end
    end
  end
  assign edit_o = '{on: spliced, shim: settings_i.shim, shift: shift};
endmodule
