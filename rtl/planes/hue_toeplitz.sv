// The hash that selects a packet's member of a group of next hops: Toeplitz with Microsoft's published key.
//
// Place: beside the fronts in hue_network, in images with groups (hue_groups uses the result). In Rust: crates/wire/src/toeplitz.rs. Fields,
// in this order: source address, destination address, source port, destination port, protocol (IPv6: Next Header of the fixed header). The
// ports are those of TCP, UDP, DCCP, SCTP and UDP-Lite, if they follow the fixed header of a packet that is no fragment and reaches that
// far; otherwise they count as zeros, which do not change the hash. Groups have at most 4,096 slots, so only the lowest bits are computed.
// Isolation: the result depends on bytes of the packet only. It has a meaning if the packet has a whole header of its family.
//
// Latency: 1 clock in which `en_i` is 1. Throughput: one packet a clock. Source: Microsoft, "RSS hashing types"; ADR 0061.
module hue_toeplitz
  import hue_pkg::*;
  import hue_stages_pkg::*;
(
    input  logic                clk_i,
    input  logic                en_i,
    /* verilator lint_off UNUSEDSIGNAL */
    input  hue_head_bytes_t     head_i,
    /* verilator lint_on UNUSEDSIGNAL */
    output logic [HashBits-1:0] ipv4_o,
    output logic [HashBits-1:0] ipv6_o
);
  // The key's first bit is the highest. It has 320 bits, and repeats.
  localparam logic [319:0] Key =
    320'h6d5a56da_255b0ec2_4167253d_43a38fb0_d0ca2bcb_ae7b30b4_77cb2da3_8030f20c_6a42b73b_beac01fa;
  localparam logic [639:0] Keys = {Key, Key};
  localparam int unsigned HashMost = 31;
  localparam int unsigned Ethernet = 14;
  localparam int unsigned Ipv4Bytes = 20, Ipv6Bytes = 40, PortsBytes = 4;

  // For scripts/rtl-test: the number of the field that is left out.
`ifdef HUE_PLANT_HASH_WITHOUT
  localparam int unsigned Without = `HUE_PLANT_HASH_WITHOUT;
`else
  localparam int unsigned Without = 0;
`endif

  // The headers in the order of the frame: byte 0 is the highest.
  typedef struct packed {
    logic [7:0]  version_ihl;
    logic [7:0]  service;
    logic [15:0] total;
    logic [15:0] id;
    logic [1:0]  flags;
    logic        more;
    logic [12:0] offset;
    logic [7:0]  ttl;
    logic [7:0]  protocol;
    logic [15:0] checksum;
    logic [31:0] src;
    logic [31:0] dst;
    logic [15:0] src_port;
    logic [15:0] dst_port;
  } ipv4_header_t;
  typedef struct packed {
    logic [31:0]  version;
    logic [15:0]  payload;
    logic [7:0]   next_header;
    logic [7:0]   hop_limit;
    logic [127:0] src;
    logic [127:0] dst;
    logic [15:0]  src_port;
    logic [15:0]  dst_port;
  } ipv6_header_t;
  if ($bits(ipv4_header_t) != 8 * (Ipv4Bytes + PortsBytes) || $bits(ipv6_header_t) != 8 * (Ipv6Bytes + PortsBytes)) begin : gen_check
    $fatal(1, "hue_toeplitz: a header has %0d and %0d bits", $bits(ipv4_header_t), $bits(ipv6_header_t));
  end
  logic [Ipv4Bytes+PortsBytes-1:0][7:0] ipv4_ordered;
  logic [Ipv6Bytes+PortsBytes-1:0][7:0] ipv6_ordered;
  /* verilator lint_off UNUSEDSIGNAL */
  ipv4_header_t v4;
  ipv6_header_t v6;
  /* verilator lint_on UNUSEDSIGNAL */
  for (genvar i = 0; i < Ipv4Bytes + PortsBytes; i++) begin : gen_ipv4_byte
    assign ipv4_ordered[Ipv4Bytes+PortsBytes-1-i] = head_i.bytes[Ethernet+i];
  end
  for (genvar i = 0; i < Ipv6Bytes + PortsBytes; i++) begin : gen_ipv6_byte
    assign ipv6_ordered[Ipv6Bytes+PortsBytes-1-i] = head_i.bytes[Ethernet+i];
  end
  assign v4 = ipv4_header_t'(ipv4_ordered);
  assign v6 = ipv6_header_t'(ipv6_ordered);

  function automatic logic has_ports(logic [7:0] protocol);
    return protocol == 8'd6 || protocol == 8'd17 || protocol == 8'd33 || protocol == 8'd132 || (protocol == 8'd136 && Without != 10);
  endfunction

  // ---- 1: the parts of the sum, and whether the ports count
  logic [HashBits-1:0] v4_fixed, v4_ports, v6_src, v6_dst, v6_ports, v4_fixed_q, v4_ports_q, v6_src_q, v6_dst_q, v6_ports_q;
  logic                v4_counts, v6_counts, v4_counts_q, v6_counts_q;
  logic [63:0]         v4_addresses;
  logic [7:0]          v4_protocol, v6_protocol;
  logic [31:0]         v4_pair, v6_pair;
  logic [127:0]        v6_from, v6_to;
  assign v4_addresses = {Without == 1 ? '0 : v4.src, Without == 2 ? '0 : v4.dst};
  assign v4_pair      = {Without == 3 ? '0 : v4.src_port, Without == 4 ? '0 : v4.dst_port};
  assign v4_protocol  = Without == 5 ? '0 : v4.protocol;
  assign v6_from      = Without == 1 ? '0 : v6.src;
  assign v6_to        = Without == 2 ? '0 : v6.dst;
  assign v6_pair      = {Without == 3 ? '0 : v6.src_port, Without == 4 ? '0 : v6.dst_port};
  assign v6_protocol  = Without == 5 ? '0 : v6.next_header;
  // Bit j of the hash is the sum of the input bits where the key, from its bit 31 - j on, has ones.
  for (genvar j = 0; j < HashBits; j++) begin : gen_bit
    localparam int unsigned First = 639 - (HashMost - j);
    assign v4_fixed[j] = ^(v4_addresses & Keys[First-:64]) ^ ^(v4_protocol & Keys[First-96-:8]);
    assign v4_ports[j] = ^(v4_pair & Keys[First-64-:32]);
    assign v6_src[j]   = ^(v6_from & Keys[First-:128]);
    assign v6_dst[j]   = ^(v6_to & Keys[First-128-:128]) ^ ^(v6_protocol & Keys[First-288-:8]);
    assign v6_ports[j] = ^(v6_pair & Keys[First-256-:32]);
  end
  // `counts`: the packet has the ports where they are read.
  assign v4_counts = has_ports(v4.protocol) && (v4.version_ihl == 8'h45 || Without == 6) && ((!v4.more && v4.offset == '0) || Without == 7) &&
                     (v4.total >= 16'(Ipv4Bytes + PortsBytes) || Without == 8) &&
                     (head_i.mask[Ethernet+Ipv4Bytes+PortsBytes-1] || Without == 9);
  assign v6_counts = has_ports(v6.next_header) && (v6.payload >= 16'(PortsBytes) || Without == 8) &&
                     (head_i.mask[Ethernet+Ipv6Bytes+PortsBytes-1] || Without == 9);
  always_ff @(posedge clk_i) begin
    if (en_i) begin
      v4_fixed_q  <= v4_fixed;
      v4_ports_q  <= v4_ports;
      v4_counts_q <= v4_counts;
      v6_src_q    <= v6_src;
      v6_dst_q    <= v6_dst;
      v6_ports_q  <= v6_ports;
      v6_counts_q <= v6_counts;
    end
  end

  // ---- 2
  assign ipv4_o = v4_fixed_q ^ (v4_counts_q ? v4_ports_q : '0);
  assign ipv6_o = v6_src_q ^ v6_dst_q ^ (v6_counts_q ? v6_ports_q : '0);
endmodule
