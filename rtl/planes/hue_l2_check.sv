// Front of kind `l2`: the checks of the Ethernet header, which need no table.
//
// Place: behind the head vector; hue_l2 follows. spec/kinds/l2.toml is the specification, ADR 0050 has reasons. The outcomes, in the order
// in which they are tried (the terms are those of spec/kinds.toml and the kind):
//
//     gated                 drop     the network is gated
//     rate_limited          drop     a bucket of the rate limit holds less than the packet costs
//   * bad_source            drop     f[6] is odd, or src is 0
//   * bad_destination       drop     dst is 0
//   * reserved              punt     dst is in 01:80:c2:00:00:00 to 01:80:c2:00:00:0f
//     wrong_port            drop     the entry of src names another port than arrival, and it is static or the network is sticky
//     same_port             drop     dst is no group address, and its entry names arrival
//     mtu                   drop     payload > mtu
//     storm                 drop     the frame would flood, and a bucket of storm_limit holds less than it costs
//     flood                 forward  dst is a group address or has no entry: by all ports of the network but arrival
//     forward               forward  otherwise, by the port of the entry of dst
//
// The front decides those with a star.
// Isolation: no result depends on bytes behind the frame's end.
//
// Latency: none, combinational. Source: IEEE 802.3 §3.2.3, IEEE 802.1Q §8.6.
module hue_l2_check
  import hue_pkg::*;
  import hue_kinds_pkg::*;
  import hue_stages_pkg::*;
(
    /* verilator lint_off UNUSEDSIGNAL */
    input  hue_head_bytes_t head_i,  // of a frame with at least 14 bytes
    /* verilator lint_on UNUSEDSIGNAL */
    input  logic [13:0]     len_i,   // of the frame
    output l2_t             l2_o
);
  localparam int unsigned HeaderBytes = FrameBytesMin;
  localparam logic [43:0] Reserved = 44'h0180c200000;  // the first 44 bits of an address
  localparam logic [15:0] EthertypeVlan = 16'h8100;
  localparam logic [15:0] EthertypeService = 16'h88a8;

  // The header in the order of the frame: byte 0 is the highest.
  typedef struct packed {
    logic [47:0] dst;
    logic [47:0] src;
    logic [15:0] ethertype;
  } header_t;
  logic [HeaderBytes-1:0][7:0] ordered;
  header_t f;
  for (genvar i = 0; i < HeaderBytes; i++) begin : gen_byte
    assign ordered[HeaderBytes-1-i] = head_i.bytes[i];
  end
  assign f = header_t'(ordered);

  logic        has_tag;
  logic [13:0] rest;  // bytes behind the header
  assign has_tag = f.ethertype == EthertypeVlan || f.ethertype == EthertypeService;
  assign rest   = len_i - 14'(HeaderBytes);

  always_comb begin
    l2_o         = '0;
    l2_o.outcome = OutcomeNone;
    l2_o.dst     = f.dst;
    l2_o.src     = f.src;
`ifdef HUE_PLANT_L2_TAG
    l2_o.payload = rest;  // for scripts/formal
`else
    if (!has_tag) l2_o.payload = rest;
    else if (rest > 14'd4) l2_o.payload = rest - 14'd4;
`endif
    // The lowest bit of an address's first byte tells a group address (IEEE 802 §8.2).
    if (f.src[40] || f.src == '0) l2_o.outcome = L2_BAD_SOURCE;
    else if (f.dst == '0) l2_o.outcome = L2_BAD_DESTINATION;
    else if (f.dst[47:4] == Reserved) l2_o.outcome = L2_RESERVED;
    else l2_o.asks = 1'b1;
  end
endmodule
