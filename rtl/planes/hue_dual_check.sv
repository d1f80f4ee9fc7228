// Front of kind `dual`: the EtherType selects the family of a packet, and with it the question and the routes.
//
// Place: in hue_network, behind the fronts of kinds ipv4 and ipv6. In Rust: `is_ipv6` in crates/planes/src/dual.rs. ADR 0052 has reasons.
// What is not IPv6 is for the checks of IPv4: ARP and foreign protocols too. Behind this module a packet is one of its family's kind;
// hue_routes renames its outcome at the end (`dual_of_ipv4` and `dual_of_ipv6` of hue_kinds_pkg).
// Isolation of the families: a key is looked up from the root of its own family only.
//
// Latency: none, combinational.
module hue_dual_check
  import hue_kinds_pkg::*;
  import hue_stages_pkg::*;
(
    input  question_t   ipv4_i,
    input  question_t   ipv6_i,
    input  logic [35:0] ipv4_root_i,
    input  logic [35:0] ipv6_root_i,
    output logic [4:0]  kind_o,
    output question_t   question_o,
    output logic [35:0] root_o
);
  logic of_ipv6;
`ifdef HUE_PLANT_DUAL_FAMILY
  assign of_ipv6 = ipv6_i.asks;  // for scripts/rtl-test and scripts/formal
`else
  assign of_ipv6 = ipv6_i.outcome != IPV6_ETHERTYPE;
`endif
  assign kind_o     = of_ipv6 ? 5'(KIND_IPV6) : 5'(KIND_IPV4);
  assign question_o = of_ipv6 ? ipv6_i : ipv4_i;
`ifdef HUE_PLANT_DUAL_ROOT
  assign root_o     = ipv6_root_i;  // for the same and for tests/differential
`else
  assign root_o     = of_ipv6 ? ipv6_root_i : ipv4_root_i;
`endif
endmodule
