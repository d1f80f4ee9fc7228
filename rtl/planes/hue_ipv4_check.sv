// First half of kind `ipv4`: the checks of the Ethernet and IPv4 headers, which need no table.
//
// Place: before design select, so that only what the second half needs passes through the stages. In Rust: `check` in
// crates/planes/src/ipv4.rs. Conditions are in the order of spec/kinds/ipv4.toml. The outcome of a frame below 14 bytes is
// meaningless here: the frame belongs to no network.
//
// Latency: none, combinational. Source: RFC 1812 §5.2.2.
module hue_ipv4_check
  import hue_pkg::*;
  import hue_kinds_pkg::*;
  import hue_stages_pkg::*;
(
    /* verilator lint_off UNUSEDSIGNAL */
    input  hue_head_t head_i,
    /* verilator lint_on UNUSEDSIGNAL */
    output ipv4_t     ipv4_o
);
  localparam int unsigned EthernetBytes = 14;
  localparam int unsigned HeaderBytes = 20;

  logic [13:0] present;
  logic [5:0]  header_bytes;
  assign present      = head_i.len - 14'(EthernetBytes);
  assign header_bytes = {head_i.ihl, 2'd0};

  always_comb begin
    ipv4_o          = '0;
    ipv4_o.group    = head_i.dst[31:28] == 4'he || head_i.dst == '1;
    ipv4_o.expires  = head_i.ttl < 8'd2;
    ipv4_o.options  = header_bytes > 6'(HeaderBytes);
    ipv4_o.l2_group = head_i.dst_mac[40];
    // 0/8, 127/8, and 224/3 as source or 240/4 as destination; limited broadcast as destination counts as `group` first.
    ipv4_o.martian_source      = head_i.src == 8'd0 || head_i.src == 8'd127 || head_i.src[7:5] == 3'b111;
    ipv4_o.martian_destination = head_i.dst[31:24] == 8'd0 || head_i.dst[31:24] == 8'd127 || head_i.dst[31:28] == 4'hf;
    ipv4_o.total    = head_i.total;
    ipv4_o.ttl      = head_i.ttl;
    ipv4_o.checksum = head_i.checksum;
    ipv4_o.dst      = head_i.dst;
    ipv4_o.outcome  = OutcomeNone;
    if (head_i.ethertype == EthertypeArp) ipv4_o.outcome = IPV4_ARP;
    else if (head_i.ethertype != EthertypeIpv4) ipv4_o.outcome = IPV4_ETHERTYPE;
    else if (present < 14'(HeaderBytes)) ipv4_o.outcome = IPV4_TRUNCATED;
    else if (head_i.version != 4'd4) ipv4_o.outcome = IPV4_VERSION;
    else if (header_bytes < 6'(HeaderBytes) || 14'(header_bytes) > present) ipv4_o.outcome = IPV4_HEADER_LENGTH;
    else if (head_i.total < 16'(header_bytes) || head_i.total > 16'(present)) ipv4_o.outcome = IPV4_TOTAL_LENGTH;
    else if (!head_i.sum_ok) ipv4_o.outcome = IPV4_CHECKSUM;
  end
endmodule
