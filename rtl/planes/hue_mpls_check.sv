// Front of kind `mpls`: the checks of a frame's label stack, and the label at its top.
//
// Place: inside hue_network, behind the head vector; hue_extract follows, whose entries have labels as keys. spec/kinds/mpls.toml is the
// specification, ADR 0074 and ADR 0079 have reasons. The outcomes, in the order in which they are tried:
//
//     gated                 drop     the network is gated
//     rate_limited          drop     a bucket of the rate limit holds less than the packet costs
//   * not_mpls              drop     be16(12) != 0x8847, or f[0] is odd
//   * short                 drop     the frame ends within the first 16 entries, and none that is whole is the bottom
//   * too_deep              drop     none of the first 16 entries is the bottom
//   * router_alert          punt     label = 1
//   * explicit_null         punt     label = 0, or label = 2
//   * reserved              drop     label < 16
//   * ttl                   punt     ttl < 2
//     no_entry              drop     label has no entry
//     drop_entry            drop     hop is of kind drop
//     punt_entry            punt     hop is of kind local
//     not_ip                drop     never: entries of networks on the card replace the top by one label
//     mtu                   drop     present > mtu of hop
//     forward               forward  true
//
// The front decides those with a star.
// Isolation: no result depends on bytes behind the frame's end, or on frames that came before.
//
// Latency: none, combinational. Source: RFC 3032 §2.1.
module hue_mpls_check
  import hue_pkg::*;
  import hue_kinds_pkg::*;
  import hue_stages_pkg::*;
(
    /* verilator lint_off UNUSEDSIGNAL */
    input  hue_head_bytes_t head_i,
    /* verilator lint_on UNUSEDSIGNAL */
    input  logic [13:0]     len_i,
    output mpls_t           mpls_o
);
  localparam int unsigned StackByte = 14;
  localparam int unsigned EntryBytes = 4;
  localparam int unsigned DepthMax = 16;
  localparam int unsigned BottomBit = 0;  // of an entry's third byte
  localparam logic [15:0] Ethertype = 16'h8847;
  localparam logic [19:0] RouterAlert = 20'd1;
  localparam logic [19:0] Ipv4Null = 20'd0;
  localparam logic [19:0] Ipv6Null = 20'd2;
  localparam logic [19:0] LabelMin = 20'd16;

  // Which entries are whole, and which of them say that they are the bottom.
  logic [DepthMax-1:0] whole, bottom;
  for (genvar i = 0; i < DepthMax; i++) begin : gen_entry
    localparam int unsigned First = StackByte + EntryBytes * i;
    assign whole[i]  = head_i.mask[First+EntryBytes-1];
    assign bottom[i] = whole[i] && head_i.bytes[First+2][BottomBit];
  end

  logic [15:0] ethertype;
  logic [19:0] label;
  logic [7:0]  ttl;
  assign ethertype = {head_i.bytes[12], head_i.bytes[13]};
  assign label     = {head_i.bytes[StackByte], head_i.bytes[StackByte+1], head_i.bytes[StackByte+2][7:4]};
  assign ttl       = head_i.bytes[StackByte+3];

  always_comb begin
    mpls_o = '{asks: 1'b0, outcome: OutcomeNone, payload: len_i - 14'(StackByte), label: label, ttl: ttl};
    if (ethertype != Ethertype || head_i.bytes[0][0]) mpls_o.outcome = MPLS_NOT_MPLS;
`ifdef HUE_PLANT_MPLS_DEPTH
    else if (bottom[7:0] == '0) mpls_o.outcome = whole[DepthMax-1] ? MPLS_TOO_DEEP : MPLS_SHORT;  // for scripts/formal
`else
    else if (bottom == '0) mpls_o.outcome = whole[DepthMax-1] ? MPLS_TOO_DEEP : MPLS_SHORT;
`endif
    else if (label == RouterAlert) mpls_o.outcome = MPLS_ROUTER_ALERT;
    else if (label == Ipv4Null || label == Ipv6Null) mpls_o.outcome = MPLS_EXPLICIT_NULL;
    else if (label < LabelMin) mpls_o.outcome = MPLS_RESERVED;
    else if (ttl < 8'd2) mpls_o.outcome = MPLS_TTL;
    else mpls_o.asks = 1'b1;
  end
endmodule
