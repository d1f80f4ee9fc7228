// Front of kind `rofl`: the checks of the Ethernet header and of that with flat labels, and the destination's label.
//
// Place: inside hue_network, behind the head vector; the trie, in which the driver has the intervals between labels (ADR 0078), and the next
// hop follow. spec/kinds/rofl.toml is the specification, ADR 0070 has the format.
// The outcomes, in the order in which they are tried (the terms are those of spec/kinds.toml and the kind):
//
//     gated                 drop     the network is gated
//     rate_limited          drop     a bucket of the rate limit holds less than the packet costs
//   * not_rofl              drop     be16(12) != 0x88b5
//   * short                 drop     n < 22
//   * bad_version           drop     f[14] / 16 != 1
//   * label_length          drop     8 * len != label_bits
//   * bad_route             drop     route > 4
//   * bad_length            drop     n < 14 + header + payload
//   * link                  punt     f[14] has bit 0x01
//   * other_mac             drop     f[0..6] is not the MAC address of arrival
//     no_entry              drop     there is no closest
//     for_us                punt     closest is dst, and hop is of kind local
//     for_closest           punt     f[14] has bit 0x02, closest is not dst, and hop is of kind local or port
//     unknown_label         drop     closest is not dst, and hop is of kind local or port
//     hop_budget            drop     budget < 2
//     loop                  drop     hop is of kind forward, on the port of arrival, and its MAC address is f[6..12]
//     mtu                   drop     header + payload > mtu of hop
//     forward               forward  otherwise: f[0..12] become the hop's MAC pair, f[16] is decremented
//
// The front decides those with a star. The MAC address of the port is in the network's row of PORT_MAC, beside the checks; the length of the
// network's labels comes with its row of NETWORK.
// Isolation: no result depends on bytes behind the frame's end, or on frames that came before.
//
// Latency: 1 clock in which `en_i` is 1. Source: ADR 0070; Caesar et al. (SIGCOMM 2006) §3.
module hue_rofl_check
  import hue_pkg::*;
  import hue_regs_pkg::*;
  import hue_kinds_pkg::*;
  import hue_stages_pkg::*;
#(
    parameter int unsigned Nets = 16,
    localparam int unsigned NetBits = Nets > 1 ? $clog2(Nets) : 1,
    localparam int unsigned PortBits = $clog2(MacPorts)
) (
    input  logic            clk_i,
    input  logic            rst_ni,
    input  tbl_req_t        tbl_req_i,
    output tbl_rsp_t        tbl_rsp_o,
    output logic            error_o,
    output logic            wait_o,         // `en_i` must be 0 in the next clock
    input  logic            en_i,
    input  logic            valid_i,        // a frame enters
    input  logic [NetBits-1:0] net_i,
    input  logic [PortBits-1:0] port_i,     // of arrival
    // From the next clock on:
    /* verilator lint_off UNUSEDSIGNAL */
    input  hue_head_bytes_t head_i,
    /* verilator lint_on UNUSEDSIGNAL */
    input  logic [13:0]     len_i,
    // One clock with `en_i` later:
    input  logic [4:0]      label_bytes_i,  // of the network's labels
    output question_t       question_o      // combinational
);
  localparam logic [15:0] Ethertype = 16'h88b5;
  localparam logic [3:0]  Version = 4'd1;
  localparam int unsigned LabelBytes = 16;
  localparam logic [7:0]  RouteMax = 8'd4;

  // The headers up to the first label, in the order of the frame: byte 0 is the highest.
  typedef struct packed {
    logic [47:0] dst_mac;
    logic [47:0] src_mac;
    logic [15:0] ethertype;
    logic [3:0]  version;
    logic [1:0]  other_flags;
    logic        closest;
    logic        is_link;
    logic [7:0]  label_bytes;
    logic [7:0]  budget;
    logic [7:0]  route;
    logic [15:0] payload_type;
    logic [15:0] payload;
  } headers_t;
  localparam int unsigned HeadersBytes = $bits(headers_t) / 8;
  localparam int unsigned HeaderBytes = HeadersBytes - FrameBytesMin;

  logic [HeadersBytes-1:0][7:0] ordered;
  /* verilator lint_off UNUSEDSIGNAL */
  headers_t f;
  /* verilator lint_on UNUSEDSIGNAL */
  for (genvar i = 0; i < HeadersBytes; i++) begin : gen_byte
    assign ordered[HeadersBytes-1-i] = head_i.bytes[i];
  end
  assign f = headers_t'(ordered);

  // Bytes of all labels: at most 6 of 16. Other numbers of them are outcomes before this counts.
  logic [7:0]  labels;
  logic [13:0] room;   // behind the header's fixed part
  logic [16:0] rest;   // what should be there
  logic        bad_length;
  assign labels = 8'({f.label_bytes[4:0], 1'b0}) + (f.route[0] ? 8'(f.label_bytes[4:0]) : '0) +
                  (f.route[1] ? 8'({f.label_bytes[4:0], 1'b0}) : '0) + (f.route[2] ? 8'({f.label_bytes[4:0], 2'b0}) : '0);
  assign room   = len_i - 14'(HeadersBytes);
  assign rest   = 17'(f.payload) + 17'(labels);
`ifdef HUE_PLANT_ROFL_ROUTE
  assign bad_length = 17'(f.payload) + 17'({f.label_bytes[4:0], 1'b0}) > 17'(room);  // for scripts/formal
`else
  assign bad_length = rest > 17'(room);
`endif

  // What the header says, until the network's rows are there.
  typedef struct packed {
    logic [4:0]   first;        // the outcome of the checks before that of the labels' length, or OutcomeNone
    logic [4:0]   second;       // of those behind it
    logic [7:0]   label_bytes;  // as the packet says
    logic         closest;      // the router with the closest label takes the packet if nobody has the destination's
    logic [13:0]  total;        // length of header and payload, compared with the MTU of the next hop
    logic [7:0]   budget;
    logic [47:0]  dst_mac;
    logic [47:0]  sender;
    logic [127:0] key;          // the destination's label; bits that it does not have are zero
  } rofl_t;
  rofl_t rofl, rofl_q;
  always_comb begin
    rofl             = '0;
    rofl.label_bytes = f.label_bytes;
    rofl.closest     = f.closest;
    rofl.total       = 14'(rest) + 14'(HeaderBytes);
    rofl.budget      = f.budget;
    rofl.dst_mac     = f.dst_mac;
    rofl.sender      = f.src_mac;
    // The label is as long as the packet says: further bytes are not its own.
    for (int unsigned i = 0; i < LabelBytes; i++) begin
      if (8'(i) < f.label_bytes) rofl.key[8*(LabelBytes-1-i)+:8] = head_i.bytes[HeadersBytes+i];
    end
    if (f.ethertype != Ethertype) rofl.first = ROFL_NOT_ROFL;
    else if (!head_i.mask[HeadersBytes-1]) rofl.first = ROFL_SHORT;
    else if (f.version != Version) rofl.first = ROFL_BAD_VERSION;
    if (f.route > RouteMax) rofl.second = ROFL_BAD_ROUTE;
`ifdef HUE_PLANT_ROFL_ORDER
    else if (f.is_link) rofl.second = ROFL_LINK;
    else if (bad_length) rofl.second = ROFL_BAD_LENGTH;
`else
    else if (bad_length) rofl.second = ROFL_BAD_LENGTH;
    else if (f.is_link) rofl.second = ROFL_LINK;
`endif
  end

  logic valid_q, unused_write, unused_parity;
  logic [NetBits+PortBits-1:0] unused_addr;
  logic [47:0] mac, mac_q, unused_mac;
  hue_table #(.Id(TABLE_PORT_MAC), .Rows(Nets * MacPorts), .Width($bits(row_port_mac_t)), .Reset(1'b0)) u_macs (
    .clk_i, .rst_ni, .tbl_req_i, .tbl_rsp_o,
    .write_o(unused_write), .write_addr_o(unused_addr), .write_data_o(unused_mac),
    .wait_o, .en_i, .addr_i({net_i, port_i}), .data_o(mac), .parity_o(unused_parity), .check_i(en_i && valid_q), .error_o
  );
  always_ff @(posedge clk_i) begin
    if (!rst_ni) valid_q <= 1'b0;
    else if (en_i) valid_q <= valid_i;
  end
  always_ff @(posedge clk_i) if (en_i) {rofl_q, mac_q} <= {rofl, mac};

  // With a question, the outcome is the packet's if its closest label is held by this router and is not the destination.
  always_comb begin
    question_o = '{
      asks: 1'b0, outcome: rofl_q.first, total: 16'(rofl_q.total), ttl: rofl_q.budget, checksum: '0, key: rofl_q.key,
      source: {rofl_q.sender, 80'd0}, hash: '0
    };
    if (rofl_q.first == OutcomeNone) begin
      if (rofl_q.label_bytes != 8'(label_bytes_i)) question_o.outcome = ROFL_LABEL_LENGTH;
      else if (rofl_q.second != OutcomeNone) question_o.outcome = rofl_q.second;
`ifdef HUE_PLANT_ROFL_MAC
      else if (rofl_q.dst_mac[46:0] != mac_q[46:0]) question_o.outcome = ROFL_OTHER_MAC;  // for scripts/formal
`else
      else if (rofl_q.dst_mac != mac_q) question_o.outcome = ROFL_OTHER_MAC;
`endif
      else begin
        question_o.asks    = 1'b1;
        question_o.outcome = rofl_q.closest ? ROFL_FOR_CLOSEST : ROFL_UNKNOWN_LABEL;
      end
    end
  end
endmodule
