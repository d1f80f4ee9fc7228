// Front of kind `ipv6`: the checks of the Ethernet and IPv6 headers, which need no table.
//
// Place: behind the head vector; the routes and the next hop follow. spec/kinds/ipv6.toml is the specification, ADR 0047 has reasons. The
// outcomes, in the order in which they are tried (the terms are those of spec/kinds.toml; `payload` is be16(18), `next_header` f[20],
// `hop_limit` f[21], `src` f[22..38], `dst` f[38..54]):
//
//     gated                 drop     the network is gated
//     rate_limited          drop     a bucket of the rate limit holds less than the packet costs
//   * ethertype             drop     be16(12) != 0x86dd
//   * truncated             drop     present < 40
//   * version               drop     f[14] >> 4 != 6
//   * payload_length        drop     40 + payload > present
//   * local                 punt     dst is in ff00::/8 or fe80::/10, or hop exists and is of kind local
//   * l2_group              drop     f[0] is odd
//   * martian_source        drop     src is :: or ::1, or in ff00::/8
//   * martian_destination   drop     dst is :: or ::1
//   * hop_limit             punt     hop_limit < 2
//   * scope                 punt     src is in fe80::/10
//   * options               punt     next_header = 0
//     no_route              punt     no prefix of the network's table matches dst
//     no_neighbour          punt     hop is of kind glean
//     mtu                   punt     40 + payload > mtu of hop
//     forward               forward  otherwise: f[0..12] become the hop's MAC pair, hop_limit is decremented
//
// The front decides those with a star, except that `local` may also come from the route: then `asks` is 1, and `outcome` is the
// packet's if it is not for the router itself. A jumbogram has payload 0 and next header 0: it is never too short, and is punted as
// `options`.
// Isolation: no result depends on bytes behind the frame's end, except the fields that have no meaning without a question.
//
// Latency: none, combinational. Source: RFC 8200 §3, RFC 4291 §2.5 and §2.7, RFC 2464 §3.
module hue_ipv6_check
  import hue_pkg::*;
  import hue_kinds_pkg::*;
  import hue_stages_pkg::*;
(
    /* verilator lint_off UNUSEDSIGNAL */
    input  hue_head_bytes_t head_i,  // of a frame with at least 14 bytes
    /* verilator lint_on UNUSEDSIGNAL */
    input  logic [13:0]     len_i,   // of the frame
    output ipv6_t           ipv6_o
);
  // The headers in the order of the frame: byte 0 is the highest.
  typedef struct packed {
    logic [47:0]  dst_mac;
    logic [47:0]  src_mac;
    logic [15:0]  ethertype;
    logic [3:0]   version;
    logic [7:0]   traffic_class;
    logic [19:0]  flow_label;
    logic [15:0]  payload;
    logic [7:0]   next_header;
    logic [7:0]   hop_limit;
    logic [127:0] src;
    logic [127:0] dst;
  } headers_t;
  localparam int unsigned HeadersBytes = $bits(headers_t) / 8;
  localparam int unsigned HeaderBytes = 40;
  localparam logic [7:0] NextHeaderHopByHop = 8'd0;

  logic [HeadersBytes-1:0][7:0] ordered;
  /* verilator lint_off UNUSEDSIGNAL */
  headers_t f;
  /* verilator lint_on UNUSEDSIGNAL */
  for (genvar i = 0; i < HeadersBytes; i++) begin : gen_byte
    assign ordered[HeadersBytes-1-i] = head_i.bytes[i];
  end
  assign f = headers_t'(ordered);

  /* verilator lint_off UNUSEDSIGNAL */  // each function uses only the bits that it needs
  function automatic logic is_multicast(logic [127:0] addr);   // ff00::/8
    return addr[127:120] == 8'hff;
  endfunction
  function automatic logic is_link_local(logic [127:0] addr);  // fe80::/10
    return addr[127:118] == 10'h3fa;
  endfunction
  function automatic logic is_no_host(logic [127:0] addr);     // :: and ::1
    return addr[127:1] == '0;
  endfunction
  /* verilator lint_on UNUSEDSIGNAL */

  logic        too_short;
  logic [13:0] room;  // for the payload, if the frame has an IPv6 header
  assign room = len_i - 14'(HeadersBytes);
`ifdef HUE_PLANT_IPV6_PAYLOAD
  assign too_short = 17'(HeaderBytes) + 17'(f.payload) > 17'(len_i);  // for scripts/rtl-test
`else
  assign too_short = f.payload > 16'(room);
`endif

  always_comb begin
    ipv6_o           = '0;
    ipv6_o.total     = 14'(f.payload) + 14'(HeaderBytes);
    ipv6_o.hop_limit = f.hop_limit;
    ipv6_o.dst       = f.dst;
    ipv6_o.outcome   = OutcomeNone;
    if (f.ethertype != EthertypeIpv6) ipv6_o.outcome = IPV6_ETHERTYPE;
    else if (!head_i.mask[HeadersBytes-1]) ipv6_o.outcome = IPV6_TRUNCATED;
    else if (f.version != 4'd6) ipv6_o.outcome = IPV6_VERSION;
    else if (too_short) ipv6_o.outcome = IPV6_PAYLOAD_LENGTH;
    else if (is_multicast(f.dst) || is_link_local(f.dst)) ipv6_o.outcome = IPV6_LOCAL;
    else begin
      ipv6_o.asks = 1'b1;
      if (f.dst_mac[40]) ipv6_o.outcome = IPV6_L2_GROUP;
      else if (is_no_host(f.src) || is_multicast(f.src)) ipv6_o.outcome = IPV6_MARTIAN_SOURCE;
      else if (is_no_host(f.dst)) ipv6_o.outcome = IPV6_MARTIAN_DESTINATION;
`ifdef HUE_PLANT_IPV6_ORDER
      else if (f.next_header == NextHeaderHopByHop) ipv6_o.outcome = IPV6_OPTIONS;
      else if (f.hop_limit < 8'd2) ipv6_o.outcome = IPV6_HOP_LIMIT;
      else if (is_link_local(f.src)) ipv6_o.outcome = IPV6_SCOPE;
`else
      else if (f.hop_limit < 8'd2) ipv6_o.outcome = IPV6_HOP_LIMIT;
      else if (is_link_local(f.src)) ipv6_o.outcome = IPV6_SCOPE;
      else if (f.next_header == NextHeaderHopByHop) ipv6_o.outcome = IPV6_OPTIONS;
`endif
    end
  end
endmodule
