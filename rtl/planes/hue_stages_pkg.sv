// The record of a packet that passes through the stages.
//
// Place: hue_stages and the modules below it. Each stage fills in fields. The first stage that can decides the packet's verdict.
/* verilator lint_off UNUSEDPARAM */
package hue_stages_pkg;
  import hue_pkg::MacPorts;

  // Outcome code without an entry in the kind's outcomes: packets of a gated plane or of one in software, and frames that a
  // software plane returned.
  localparam logic [4:0] OutcomeNone = 5'd0;

  // Values of the field in table HOP (spec/regs), the same as in crates/planes/src/adjacency.rs.
  localparam logic [1:0] HopNone    = 2'd0;
  localparam logic [1:0] HopLocal   = 2'd1;
  localparam logic [1:0] HopGlean   = 2'd2;
  localparam logic [1:0] HopForward = 2'd3;

  // Bits of a packet's hash that are computed: a group of next hops has at most 2^HashBits slots (crates/planes/src/group.rs).
  localparam int unsigned HashBits = 12;

  // The header fields that the second half of kind ipv4 needs (crates/planes/src/ipv4.rs, `Checked`).
  typedef struct packed {
    logic [4:0]  outcome;    // of the Ethernet and IPv4 header checks; OutcomeNone: all passed
    logic        group;      // destination is multicast or limited broadcast
    logic        expires;    // TTL 0 or 1
    logic        options;    // header longer than its fixed part
    logic        l2_group;   // the frame is broadcast or multicast
    logic        martian_source;       // the source cannot be a host's address
    logic        martian_destination;  // nor can the destination, and it is no group address
    logic [15:0] total;
    logic [7:0]  ttl;
    logic [15:0] checksum;
    logic [31:0] dst;
  } ipv4_t;

  // What the front of kind ipv6 gives: the outcome, or the question to the routes (`dst`) and what the back needs with its answer.
  typedef struct packed {
    logic         asks;       // the outcome depends on the route; without it, only `outcome` has a meaning
    logic [4:0]   outcome;    // asks: unless the packet is for the router itself, or OutcomeNone if the next hop decides
    logic [13:0]  total;      // length of the IPv6 packet, compared with the MTU of the next hop
    logic [7:0]   hop_limit;
    logic [127:0] dst;
  } ipv6_t;

  // What the front of kind l2 gives: the outcome, or the question to the network's stations.
  typedef struct packed {
    logic         asks;       // the outcome depends on the stations; without it, only `outcome` has a meaning
    logic [4:0]   outcome;
    logic [13:0]  payload;    // bytes behind the header and the first VLAN tag, compared with the MTU of the network's ports
    logic [47:0]  dst;
    logic [47:0]  src;
  } l2_t;

  // Bytes behind the header and the first VLAN tag of a frame with this EtherType.
  function automatic logic [13:0] payload_of(logic [15:0] ethertype, logic [13:0] len);
    logic [13:0] rest;
    rest = len - 14'd14;
    if (ethertype != 16'h8100 && ethertype != 16'h88a8) return rest;
    return rest > 14'd4 ? rest - 14'd4 : '0;
  endfunction

  // What the front of kind extract gives: the outcome, or the question to the network's entries.
  localparam int unsigned ExtractLanes = 16;
  localparam int unsigned ExtractGroupBits = 5;
  typedef struct packed {
    logic         asks;
    logic [4:0]   outcome;
    logic [13:0]  payload;    // as that of l2_t, compared with the MTU of the entry's port
    logic [127:0] key;        // lane 0 is the highest byte, and lanes that the network does not have are zero
  } extract_t;

  // What the front of kind mpls gives: the outcome, or the question to the network's entries.
  typedef struct packed {
    logic         asks;
    logic [4:0]   outcome;
    logic [13:0]  payload;    // bytes behind the Ethernet header, compared with the MTU of the entry's port
    logic [19:0]  label;      // of the top of the stack
    logic [7:0]   ttl;
  } mpls_t;

  // What the network's row says to kinds extract and mpls, in place of the root of routes.
  typedef struct packed {
    logic [18:0]                 gap;
    logic [ExtractGroupBits-1:0] groups;  // of four entries
    logic [11:0]                 base;    // of the network's run of rows, in each bank of PATTERN
  } extract_settings_t;

  // What the network's row says to kind rofl, in place of a second root.
  typedef struct packed {
    logic [30:0] gap;
    logic [4:0]  label_bytes;
  } rofl_settings_t;

  // What the front of kind splice reads of a packet's head, in the clock before the network's row is there.
  typedef struct packed {
    logic        fragment;     // more fragments, or not the first one
    logic        dont_fragment;
    logic        experiment;   // the protocol is that of the header with splicing bits
    logic [15:0] id;
    logic [3:0]  shim_version;
    logic [3:0]  shim_low;     // the lowest splicing bits behind the header
  } splice_head_t;

  // What the network's row says to kind splice, in place of a second root.
  typedef struct packed {
    logic [30:0] gap;
    logic        shim;  // the splicing bits are behind the header
    logic [3:0]  last;  // the highest slice
  } splice_settings_t;

  // What the network's row says to kind l2, in place of the root of routes.
  typedef struct packed {
    logic [15:0]         gap;
    logic                learns;   // frames whose sender is not in the table, or elsewhere, leave a note for the driver
    logic                sticky;   // a sender that is elsewhere than in the table is refused
    logic [MacPorts-1:0] ports;    // the network's ports
    logic [13:0]         mtu;      // of its ports
  } l2_settings_t;

  // What a kind's front gives once the network is known: an outcome, or a question to the network's routes.
  typedef struct packed {
    logic         asks;       // the outcome depends on the route of `key`, or on the stations; without it, only `outcome` has a meaning
    logic [4:0]   outcome;    // asks: unless the packet is for the router itself, or OutcomeNone if the next hop decides
    logic [15:0]  total;      // length of the IP packet (l2: of the payload), compared with the MTU of the next hop (of the network)
    logic [7:0]   ttl;        // or hop limit
    logic [15:0]  checksum;   // of the header, if it has one
    logic [127:0] key;        // destination address (l2: and source): the first bit is the highest, and bits that it does not have are zero
    logic [127:0] source;     // source address, as `key`, in images with routes by source; kind rofl: the sender's MAC address, highest bit first; else zero
    logic [HashBits-1:0] hash;  // selects the member of a group of next hops; zero in images without groups
  } question_t;

  // The question of kind ipv4: with the header's fields, it needs the network's setting.
  function automatic question_t question_of_ipv4(ipv4_t header, logic forward_martians);
    question_t question;
    question = '{
      asks: header.outcome == OutcomeNone && !header.group, outcome: header.outcome, total: header.total, ttl: header.ttl,
      checksum: header.checksum, key: {header.dst, 96'd0}, source: '0, hash: '0
    };
    if (header.outcome == OutcomeNone) begin
      if (header.group) question.outcome = hue_kinds_pkg::IPV4_LOCAL;
      else if (header.l2_group) question.outcome = hue_kinds_pkg::IPV4_L2_GROUP;
      else if (header.martian_source && !forward_martians) question.outcome = hue_kinds_pkg::IPV4_MARTIAN_SOURCE;
      else if (header.martian_destination && !forward_martians) question.outcome = hue_kinds_pkg::IPV4_MARTIAN_DESTINATION;
`ifdef HUE_PLANT_IPV4_ORDER
      else if (header.options) question.outcome = hue_kinds_pkg::IPV4_OPTIONS;
      else if (header.expires) question.outcome = hue_kinds_pkg::IPV4_TTL;
`else
      else if (header.expires) question.outcome = hue_kinds_pkg::IPV4_TTL;
      else if (header.options) question.outcome = hue_kinds_pkg::IPV4_OPTIONS;
`endif
    end
    return question;
  endfunction

  // The outcomes of a kind with routes that depend on the next hop.
  typedef struct packed {
    logic [4:0] is_local;
    logic [4:0] no_route;
    logic [4:0] no_neighbour;
    logic [4:0] mtu;
    logic [4:0] forward;
  } hop_outcomes_t;

  function automatic hop_outcomes_t hop_outcomes(logic [4:0] kind);
    if (kind == 5'(hue_kinds_pkg::KIND_IPV6)) begin
      return '{
        is_local: hue_kinds_pkg::IPV6_LOCAL, no_route: hue_kinds_pkg::IPV6_NO_ROUTE,
        no_neighbour: hue_kinds_pkg::IPV6_NO_NEIGHBOUR, mtu: hue_kinds_pkg::IPV6_MTU, forward: hue_kinds_pkg::IPV6_FORWARD
      };
    end
    // A label's row is of kind local (the router's own), or forward. Glean: this router holds the closest label, which is not the
    // destination's; then the question has the outcome.
    if (kind == 5'(hue_kinds_pkg::KIND_ROFL)) begin
      return '{
        is_local: hue_kinds_pkg::ROFL_FOR_US, no_route: hue_kinds_pkg::ROFL_NO_ENTRY,
        no_neighbour: hue_kinds_pkg::ROFL_UNKNOWN_LABEL, mtu: hue_kinds_pkg::ROFL_MTU, forward: hue_kinds_pkg::ROFL_FORWARD
      };
    end
    if (kind == 5'(hue_kinds_pkg::KIND_SPLICE)) begin
      return '{
        is_local: hue_kinds_pkg::SPLICE_LOCAL, no_route: hue_kinds_pkg::SPLICE_NO_ROUTE,
        no_neighbour: hue_kinds_pkg::SPLICE_NO_NEIGHBOUR, mtu: hue_kinds_pkg::SPLICE_MTU, forward: hue_kinds_pkg::SPLICE_FORWARD
      };
    end
    // An entry's row is of kind local (punt), glean (drop) or forward.
    if (kind == 5'(hue_kinds_pkg::KIND_EXTRACT)) begin
      return '{
        is_local: hue_kinds_pkg::EXTRACT_PUNT_ENTRY, no_route: hue_kinds_pkg::EXTRACT_NO_ENTRY,
        no_neighbour: hue_kinds_pkg::EXTRACT_DROP_ENTRY, mtu: hue_kinds_pkg::EXTRACT_MTU, forward: hue_kinds_pkg::EXTRACT_FORWARD
      };
    end
    if (kind == 5'(hue_kinds_pkg::KIND_MPLS)) begin
      return '{
        is_local: hue_kinds_pkg::MPLS_PUNT_ENTRY, no_route: hue_kinds_pkg::MPLS_NO_ENTRY,
        no_neighbour: hue_kinds_pkg::MPLS_DROP_ENTRY, mtu: hue_kinds_pkg::MPLS_MTU, forward: hue_kinds_pkg::MPLS_FORWARD
      };
    end
    return '{
      is_local: hue_kinds_pkg::IPV4_LOCAL, no_route: hue_kinds_pkg::IPV4_NO_ROUTE,
      no_neighbour: hue_kinds_pkg::IPV4_NO_NEIGHBOUR, mtu: hue_kinds_pkg::IPV4_MTU, forward: hue_kinds_pkg::IPV4_FORWARD
    };
  endfunction

  // The verdict of a kind's outcome.
  function automatic logic [1:0] verdict_of(logic [4:0] kind, logic [4:0] outcome);
`ifdef HUE_PLANT_VERDICT_KIND
    return hue_kinds_pkg::ipv4_verdict(outcome);  // for scripts/rtl-test and scripts/formal: the kind is ignored
`else
    if (kind == 5'(hue_kinds_pkg::KIND_IPV6)) return hue_kinds_pkg::ipv6_verdict(outcome);
    if (kind == 5'(hue_kinds_pkg::KIND_L2)) return hue_kinds_pkg::l2_verdict(outcome);
    if (kind == 5'(hue_kinds_pkg::KIND_EXTRACT)) return hue_kinds_pkg::extract_verdict(outcome);
    if (kind == 5'(hue_kinds_pkg::KIND_ROFL)) return hue_kinds_pkg::rofl_verdict(outcome);
    if (kind == 5'(hue_kinds_pkg::KIND_SPLICE)) return hue_kinds_pkg::splice_verdict(outcome);
    if (kind == 5'(hue_kinds_pkg::KIND_MPLS)) return hue_kinds_pkg::mpls_verdict(outcome);
    return hue_kinds_pkg::ipv4_verdict(outcome);
`endif
  endfunction

  typedef struct packed {
    logic [2:0]  port_in;
    logic [13:0] len;
    // The verdict, once decided.
    logic        decided;
    logic [1:0]  verdict;    // hue_pkg::verdict_e
    logic [4:0]  outcome;
    logic [2:0]  port_out;
    // The packet's network: valid from design select on.
    logic [7:0]  net;
    logic [7:0]  vport;
    // Valid once the network's row is read.
    logic [11:0] vid;
    logic [3:0]  plane;
    logic [35:0] root;
    logic [15:0] hop_base;
    logic [15:0] hop_count;
    logic [4:0]  kind;       // hue_kinds_pkg::KIND_*; that of the packet's family in a network of kind dual
    logic        dual;       // the network is of kind dual
    question_t   question;
    hue_pkg::splice_edit_t splice;  // zero but for kind splice
    logic        policies;   // the network's routes depend on the source
    logic        tunnel;     // if it is for the router itself, it may come out of a tunnel that the network carries
    // Valid behind hue_extract; zero but for kind mpls.
    logic [19:0] label;      // the new one
    // Valid behind hue_l2; zero for other kinds.
    logic                flood;   // as in hue_pkg::hue_verdict_t
    logic [MacPorts-1:0] ports;
    logic                note;
  } packet_t;

endpackage
/* verilator lint_on UNUSEDPARAM */
