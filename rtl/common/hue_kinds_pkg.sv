// Generated from spec/kinds.toml and spec/kinds/ by spec/codegen: edit those files, then `cargo run -p hue-spec-codegen`.
/* verilator lint_off UNUSEDPARAM */
package hue_kinds_pkg;

  // Shortest and longest frame that a port accepts, bytes.
  localparam int unsigned FRAME_BYTES_MIN = 14;
  localparam int unsigned FRAME_BYTES_MAX = 9216;

  // Verdicts on a packet. hue_pkg::verdict_e has the same codes, and one more for frames of no network.
  localparam logic [1:0] VERDICT_FORWARD = 2'd1;
  localparam logic [1:0] VERDICT_PUNT = 2'd2;
  localparam logic [1:0] VERDICT_DROP = 2'd0;

  // Reasons why a frame belongs to no network, in the order in which they are tried.
  localparam logic [4:0] UNCLAIMED_RUNT = 5'd1;  // Too short for an Ethernet header.
  localparam logic [4:0] UNCLAIMED_TOO_LONG = 5'd2;  // Longer than the longest frame a port takes.
  localparam logic [4:0] UNCLAIMED_NO_NETWORK = 5'd3;  // Design select found no network for the frame.
  localparam int unsigned UNCLAIMED_COUNT = 3;

  // The first outcomes of every kind.
  localparam logic [4:0] OUTCOME_GATED = 5'd1;  // The network's plane is stopped by its clock gate, and processes no packets.
  localparam logic [4:0] OUTCOME_RATE_LIMITED = 5'd2;  // The packet exceeds the network's rate limit.

  // Kind `ipv4`: outcomes of a packet, in the order in which they are tried: the first whose condition holds.
  localparam int unsigned KIND_IPV4 = 1;
  localparam logic [4:0] IPV4_GATED = 5'd1;  // The network's plane is stopped by its clock gate, and processes no packets.
  localparam logic [4:0] IPV4_RATE_LIMITED = 5'd2;  // The packet exceeds the network's rate limit.
  localparam logic [4:0] IPV4_ARP = 5'd3;  // ARP, which the network's control plane handles.
  localparam logic [4:0] IPV4_ETHERTYPE = 5'd4;  // Neither IPv4 nor ARP. A frame with a VLAN tag or an 802.3 length is neither.
  localparam logic [4:0] IPV4_TRUNCATED = 5'd5;  // The frame ends within the fixed part of the IPv4 header.
  localparam logic [4:0] IPV4_VERSION = 5'd6;  // The version field is not 4.
  localparam logic [4:0] IPV4_HEADER_LENGTH = 5'd7;  // The header length is below 20 bytes or extends beyond the frame.
  localparam logic [4:0] IPV4_TOTAL_LENGTH = 5'd8;  // The total length is below the header length or extends beyond the frame.
  localparam logic [4:0] IPV4_CHECKSUM = 5'd9;  // The header checksum is wrong.
  localparam logic [4:0] IPV4_LOCAL = 5'd10;  // For the router itself: its addresses, subnet broadcasts, limited broadcast, multicast.
  localparam logic [4:0] IPV4_L2_GROUP = 5'd11;  // A packet to a unicast address in a broadcast or multicast frame.
  localparam logic [4:0] IPV4_MARTIAN_SOURCE = 5'd12;  // The source cannot be the address of a host: this network, loopback, multicast, reserved or limited broadcast.
  localparam logic [4:0] IPV4_MARTIAN_DESTINATION = 5'd13;  // The destination cannot be the address of a host: this network, loopback or reserved.
  localparam logic [4:0] IPV4_TTL = 5'd14;  // The TTL has expired; the control plane answers time exceeded.
  localparam logic [4:0] IPV4_OPTIONS = 5'd15;  // The packet has IPv4 options, which the control plane handles.
  localparam logic [4:0] IPV4_NO_ROUTE = 5'd16;  // No route of the plane matches the destination; the control plane answers unreachable, or forwards by a route that a quota refused.
  localparam logic [4:0] IPV4_NO_NEIGHBOUR = 5'd17;  // The next hop's MAC address is not known yet; the control plane sends an ARP request.
  localparam logic [4:0] IPV4_MTU = 5'd18;  // The packet exceeds the egress port's MTU; the control plane fragments it or answers fragmentation needed.
  localparam logic [4:0] IPV4_FORWARD = 5'd19;  // Sent with the next hop's MAC addresses, the TTL lower by one and an updated checksum; all other bytes stay.
  localparam int unsigned IPV4_COUNT = 19;

  // The verdict of an outcome. Code 0, no outcome, gives a drop.
  function automatic logic [1:0] ipv4_verdict(logic [4:0] outcome);
    case (outcome)
      IPV4_FORWARD: return VERDICT_FORWARD;
      IPV4_ARP, IPV4_LOCAL, IPV4_TTL, IPV4_OPTIONS, IPV4_NO_ROUTE, IPV4_NO_NEIGHBOUR, IPV4_MTU: return VERDICT_PUNT;
      default: return VERDICT_DROP;
    endcase
  endfunction

  // Kind `ipv6`: outcomes of a packet, in the order in which they are tried: the first whose condition holds.
  localparam int unsigned KIND_IPV6 = 2;
  localparam logic [4:0] IPV6_GATED = 5'd1;  // The network's plane is stopped by its clock gate, and processes no packets.
  localparam logic [4:0] IPV6_RATE_LIMITED = 5'd2;  // The packet exceeds the network's rate limit.
  localparam logic [4:0] IPV6_ETHERTYPE = 5'd3;  // Not IPv6. A frame with a VLAN tag or an 802.3 length, and ARP, are not either.
  localparam logic [4:0] IPV6_TRUNCATED = 5'd4;  // The frame ends within the IPv6 header.
  localparam logic [4:0] IPV6_VERSION = 5'd5;  // The version field is not 6.
  localparam logic [4:0] IPV6_PAYLOAD_LENGTH = 5'd6;  // The payload extends beyond the frame.
  localparam logic [4:0] IPV6_LOCAL = 5'd7;  // For the router itself or its links: its addresses, multicast, link-local addresses. Neighbour discovery is among them.
  localparam logic [4:0] IPV6_L2_GROUP = 5'd8;  // A packet to a unicast address in a broadcast or multicast frame.
  localparam logic [4:0] IPV6_MARTIAN_SOURCE = 5'd9;  // The source cannot be the address of a host on another link: unspecified, loopback or multicast.
  localparam logic [4:0] IPV6_MARTIAN_DESTINATION = 5'd10;  // The destination cannot be the address of a host on another link: unspecified or loopback.
  localparam logic [4:0] IPV6_HOP_LIMIT = 5'd11;  // The hop limit has expired; the control plane answers time exceeded.
  localparam logic [4:0] IPV6_SCOPE = 5'd12;  // The source is link-local, so the packet may not leave its link; the control plane answers beyond scope of source address.
  localparam logic [4:0] IPV6_OPTIONS = 5'd13;  // The packet has hop-by-hop options, which the control plane handles. A jumbogram is such a packet.
  localparam logic [4:0] IPV6_NO_ROUTE = 5'd14;  // No route of the plane matches the destination; the control plane answers unreachable, or forwards by a route that a quota refused.
  localparam logic [4:0] IPV6_NO_NEIGHBOUR = 5'd15;  // The next hop's MAC address is not known yet; the control plane sends a neighbour solicitation.
  localparam logic [4:0] IPV6_MTU = 5'd16;  // The packet exceeds the egress port's MTU; the control plane answers packet too big.
  localparam logic [4:0] IPV6_FORWARD = 5'd17;  // Sent with the next hop's MAC addresses and the hop limit lower by one; all other bytes stay.
  localparam int unsigned IPV6_COUNT = 17;

  // The verdict of an outcome. Code 0, no outcome, gives a drop.
  function automatic logic [1:0] ipv6_verdict(logic [4:0] outcome);
    case (outcome)
      IPV6_FORWARD: return VERDICT_FORWARD;
      IPV6_LOCAL, IPV6_HOP_LIMIT, IPV6_SCOPE, IPV6_OPTIONS, IPV6_NO_ROUTE, IPV6_NO_NEIGHBOUR, IPV6_MTU: return VERDICT_PUNT;
      default: return VERDICT_DROP;
    endcase
  endfunction

  // Kind `l2`: outcomes of a packet, in the order in which they are tried: the first whose condition holds.
  localparam int unsigned KIND_L2 = 3;
  localparam logic [4:0] L2_GATED = 5'd1;  // The network's plane is stopped by its clock gate, and processes no packets.
  localparam logic [4:0] L2_RATE_LIMITED = 5'd2;  // The packet exceeds the network's rate limit.
  localparam logic [4:0] L2_BAD_SOURCE = 5'd3;  // The source MAC address is a group address or zero.
  localparam logic [4:0] L2_BAD_DESTINATION = 5'd4;  // The destination MAC address is zero.
  localparam logic [4:0] L2_RESERVED = 5'd5;  // For the switch itself: protocols of a single link, which a switch never forwards (STP, LACP, LLDP).
  localparam logic [4:0] L2_WRONG_PORT = 5'd6;  // The sender's address belongs to another port: it is static, or learnt and the network is sticky.
  localparam logic [4:0] L2_SAME_PORT = 5'd7;  // The destination is behind the port at which the frame arrived.
  localparam logic [4:0] L2_MTU = 5'd8;  // The frame exceeds the MTU of the network's ports.
  localparam logic [4:0] L2_STORM = 5'd9;  // The frame would be sent to all ports, and exceeds the network's limit for such frames.
  localparam logic [4:0] L2_FLOOD = 5'd10;  // Sent, unchanged, to all ports of the network but the one at which it arrived.
  localparam logic [4:0] L2_FORWARD = 5'd11;  // Sent, unchanged, to the port of the destination's entry.
  localparam int unsigned L2_COUNT = 11;

  // The verdict of an outcome. Code 0, no outcome, gives a drop.
  function automatic logic [1:0] l2_verdict(logic [4:0] outcome);
    case (outcome)
      L2_FLOOD, L2_FORWARD: return VERDICT_FORWARD;
      L2_RESERVED: return VERDICT_PUNT;
      default: return VERDICT_DROP;
    endcase
  endfunction

  // Kind `dual`: outcomes of a packet, in the order in which they are tried: the first whose condition holds.
  localparam int unsigned KIND_DUAL = 4;
  localparam logic [4:0] DUAL_GATED = 5'd1;  // The network's plane is stopped by its clock gate, and processes no packets.
  localparam logic [4:0] DUAL_RATE_LIMITED = 5'd2;  // The packet exceeds the network's rate limit.
  localparam logic [4:0] DUAL_IPV4_ARP = 5'd3;  // ARP, which the network's control plane handles. It counts as IPv4.
  localparam logic [4:0] DUAL_ETHERTYPE = 5'd4;  // Neither IPv4, IPv6 nor ARP. A frame with a VLAN tag or an 802.3 length is none of them.
  localparam logic [4:0] DUAL_TRUNCATED = 5'd5;  // The frame ends within the fixed part of the IPv4 header, or within the IPv6 header.
  localparam logic [4:0] DUAL_VERSION = 5'd6;  // The version field is not that of the EtherType.
  localparam logic [4:0] DUAL_IPV4_HEADER_LENGTH = 5'd7;  // IPv4: The header length is below 20 bytes or extends beyond the frame.
  localparam logic [4:0] DUAL_IPV4_TOTAL_LENGTH = 5'd8;  // IPv4: The total length is below the header length or extends beyond the frame.
  localparam logic [4:0] DUAL_IPV4_CHECKSUM = 5'd9;  // IPv4: The header checksum is wrong.
  localparam logic [4:0] DUAL_IPV4_LOCAL = 5'd10;  // IPv4: For the router itself: its addresses, subnet broadcasts, limited broadcast, multicast.
  localparam logic [4:0] DUAL_IPV4_L2_GROUP = 5'd11;  // IPv4: A packet to a unicast address in a broadcast or multicast frame.
  localparam logic [4:0] DUAL_IPV4_MARTIAN_SOURCE = 5'd12;  // IPv4: The source cannot be the address of a host: this network, loopback, multicast, reserved or limited broadcast.
  localparam logic [4:0] DUAL_IPV4_MARTIAN_DESTINATION = 5'd13;  // IPv4: The destination cannot be the address of a host: this network, loopback or reserved.
  localparam logic [4:0] DUAL_IPV4_TTL = 5'd14;  // IPv4: The TTL has expired; the control plane answers time exceeded.
  localparam logic [4:0] DUAL_IPV4_OPTIONS = 5'd15;  // IPv4: The packet has IPv4 options, which the control plane handles.
  localparam logic [4:0] DUAL_IPV4_NO_ROUTE = 5'd16;  // IPv4: No route of the plane matches the destination; the control plane answers unreachable, or forwards by a route that a quota refused.
  localparam logic [4:0] DUAL_IPV4_NO_NEIGHBOUR = 5'd17;  // IPv4: The next hop's MAC address is not known yet; the control plane sends an ARP request.
  localparam logic [4:0] DUAL_IPV4_MTU = 5'd18;  // IPv4: The packet exceeds the egress port's MTU; the control plane fragments it or answers fragmentation needed.
  localparam logic [4:0] DUAL_IPV6_PAYLOAD_LENGTH = 5'd19;  // IPv6: The payload extends beyond the frame.
  localparam logic [4:0] DUAL_IPV6_LOCAL = 5'd20;  // IPv6: For the router itself or its links: its addresses, multicast, link-local addresses. Neighbour discovery is among them.
  localparam logic [4:0] DUAL_IPV6_L2_GROUP = 5'd21;  // IPv6: A packet to a unicast address in a broadcast or multicast frame.
  localparam logic [4:0] DUAL_IPV6_MARTIAN_SOURCE = 5'd22;  // IPv6: The source cannot be the address of a host on another link: unspecified, loopback or multicast.
  localparam logic [4:0] DUAL_IPV6_MARTIAN_DESTINATION = 5'd23;  // IPv6: The destination cannot be the address of a host on another link: unspecified or loopback.
  localparam logic [4:0] DUAL_IPV6_HOP_LIMIT = 5'd24;  // IPv6: The hop limit has expired; the control plane answers time exceeded.
  localparam logic [4:0] DUAL_IPV6_SCOPE = 5'd25;  // IPv6: The source is link-local, so the packet may not leave its link; the control plane answers beyond scope of source address.
  localparam logic [4:0] DUAL_IPV6_OPTIONS = 5'd26;  // IPv6: The packet has hop-by-hop options, which the control plane handles. A jumbogram is such a packet.
  localparam logic [4:0] DUAL_IPV6_NO_ROUTE = 5'd27;  // IPv6: No route of the plane matches the destination; the control plane answers unreachable, or forwards by a route that a quota refused.
  localparam logic [4:0] DUAL_IPV6_NO_NEIGHBOUR = 5'd28;  // IPv6: The next hop's MAC address is not known yet; the control plane sends a neighbour solicitation.
  localparam logic [4:0] DUAL_IPV6_MTU = 5'd29;  // IPv6: The packet exceeds the egress port's MTU; the control plane answers packet too big.
  localparam logic [4:0] DUAL_IPV4_FORWARD = 5'd30;  // IPv4: Sent with the next hop's MAC addresses, the TTL lower by one and an updated checksum; all other bytes stay.
  localparam logic [4:0] DUAL_IPV6_FORWARD = 5'd31;  // IPv6: Sent with the next hop's MAC addresses and the hop limit lower by one; all other bytes stay.
  localparam int unsigned DUAL_COUNT = 31;

  // The verdict of an outcome. Code 0, no outcome, gives a drop.
  function automatic logic [1:0] dual_verdict(logic [4:0] outcome);
    case (outcome)
      DUAL_IPV4_FORWARD, DUAL_IPV6_FORWARD: return VERDICT_FORWARD;
      DUAL_IPV4_ARP, DUAL_IPV4_LOCAL, DUAL_IPV4_TTL, DUAL_IPV4_OPTIONS, DUAL_IPV4_NO_ROUTE, DUAL_IPV4_NO_NEIGHBOUR, DUAL_IPV4_MTU, DUAL_IPV6_LOCAL, DUAL_IPV6_HOP_LIMIT, DUAL_IPV6_SCOPE, DUAL_IPV6_OPTIONS, DUAL_IPV6_NO_ROUTE, DUAL_IPV6_NO_NEIGHBOUR, DUAL_IPV6_MTU: return VERDICT_PUNT;
      default: return VERDICT_DROP;
    endcase
  endfunction

  // The outcome of kind `dual` that a packet has which kind `ipv4` gives this one. Code 0, no outcome, stays.
  function automatic logic [4:0] dual_of_ipv4(logic [4:0] outcome);
    case (outcome)
      5'd1: return DUAL_GATED;
      5'd2: return DUAL_RATE_LIMITED;
      5'd3: return DUAL_IPV4_ARP;
      5'd4: return DUAL_ETHERTYPE;
      5'd5: return DUAL_TRUNCATED;
      5'd6: return DUAL_VERSION;
      5'd7: return DUAL_IPV4_HEADER_LENGTH;
      5'd8: return DUAL_IPV4_TOTAL_LENGTH;
      5'd9: return DUAL_IPV4_CHECKSUM;
      5'd10: return DUAL_IPV4_LOCAL;
      5'd11: return DUAL_IPV4_L2_GROUP;
      5'd12: return DUAL_IPV4_MARTIAN_SOURCE;
      5'd13: return DUAL_IPV4_MARTIAN_DESTINATION;
      5'd14: return DUAL_IPV4_TTL;
      5'd15: return DUAL_IPV4_OPTIONS;
      5'd16: return DUAL_IPV4_NO_ROUTE;
      5'd17: return DUAL_IPV4_NO_NEIGHBOUR;
      5'd18: return DUAL_IPV4_MTU;
      5'd19: return DUAL_IPV4_FORWARD;
      default: return 5'd0;
    endcase
  endfunction

  // The outcome of kind `dual` that a packet has which kind `ipv6` gives this one. Code 0, no outcome, stays.
  function automatic logic [4:0] dual_of_ipv6(logic [4:0] outcome);
    case (outcome)
      5'd1: return DUAL_GATED;
      5'd2: return DUAL_RATE_LIMITED;
      5'd3: return DUAL_ETHERTYPE;
      5'd4: return DUAL_TRUNCATED;
      5'd5: return DUAL_VERSION;
      5'd6: return DUAL_IPV6_PAYLOAD_LENGTH;
      5'd7: return DUAL_IPV6_LOCAL;
      5'd8: return DUAL_IPV6_L2_GROUP;
      5'd9: return DUAL_IPV6_MARTIAN_SOURCE;
      5'd10: return DUAL_IPV6_MARTIAN_DESTINATION;
      5'd11: return DUAL_IPV6_HOP_LIMIT;
      5'd12: return DUAL_IPV6_SCOPE;
      5'd13: return DUAL_IPV6_OPTIONS;
      5'd14: return DUAL_IPV6_NO_ROUTE;
      5'd15: return DUAL_IPV6_NO_NEIGHBOUR;
      5'd16: return DUAL_IPV6_MTU;
      5'd17: return DUAL_IPV6_FORWARD;
      default: return 5'd0;
    endcase
  endfunction

  // Kind `extract`: outcomes of a packet, in the order in which they are tried: the first whose condition holds.
  localparam int unsigned KIND_EXTRACT = 5;
  localparam logic [4:0] EXTRACT_GATED = 5'd1;  // The network's plane is stopped by its clock gate, and processes no packets.
  localparam logic [4:0] EXTRACT_RATE_LIMITED = 5'd2;  // The packet exceeds the network's rate limit.
  localparam logic [4:0] EXTRACT_SHORT = 5'd3;  // The frame ends before the last byte of the key.
  localparam logic [4:0] EXTRACT_NO_ENTRY = 5'd4;  // No entry matches.
  localparam logic [4:0] EXTRACT_DROP_ENTRY = 5'd5;  // The entry says: drop.
  localparam logic [4:0] EXTRACT_PUNT_ENTRY = 5'd6;  // The entry says: to the network's control plane.
  localparam logic [4:0] EXTRACT_MTU = 5'd7;  // The frame exceeds the MTU of the port.
  localparam logic [4:0] EXTRACT_FORWARD = 5'd8;  // Sent to the port of the entry, with the entry's MAC addresses if it has some; all other bytes stay.
  localparam int unsigned EXTRACT_COUNT = 8;

  // The verdict of an outcome. Code 0, no outcome, gives a drop.
  function automatic logic [1:0] extract_verdict(logic [4:0] outcome);
    case (outcome)
      EXTRACT_FORWARD: return VERDICT_FORWARD;
      EXTRACT_PUNT_ENTRY: return VERDICT_PUNT;
      default: return VERDICT_DROP;
    endcase
  endfunction

  // Kind `rofl`: outcomes of a packet, in the order in which they are tried: the first whose condition holds.
  localparam int unsigned KIND_ROFL = 8;
  localparam logic [4:0] ROFL_GATED = 5'd1;  // The network's plane is stopped by its clock gate, and processes no packets.
  localparam logic [4:0] ROFL_RATE_LIMITED = 5'd2;  // The packet exceeds the network's rate limit.
  localparam logic [4:0] ROFL_NOT_ROFL = 5'd3;  // No packet with flat labels.
  localparam logic [4:0] ROFL_SHORT = 5'd4;  // The frame ends before the first label.
  localparam logic [4:0] ROFL_BAD_VERSION = 5'd5;  // The version is not 1.
  localparam logic [4:0] ROFL_LABEL_LENGTH = 5'd6;  // The labels are not as long as those of the network.
  localparam logic [4:0] ROFL_BAD_ROUTE = 5'd7;  // The source route has more than 4 labels.
  localparam logic [4:0] ROFL_BAD_LENGTH = 5'd8;  // The frame ends before the last label, or before the end of the payload.
  localparam logic [4:0] ROFL_LINK = 5'd9;  // Between neighbours: for the network's control plane, whatever its labels.
  localparam logic [4:0] ROFL_OTHER_MAC = 5'd10;  // The frame is for another MAC address, or for a group.
  localparam logic [4:0] ROFL_NO_ENTRY = 5'd11;  // The network has neither entries nor cached pointers.
  localparam logic [4:0] ROFL_FOR_US = 5'd12;  // For a label of the router itself.
  localparam logic [4:0] ROFL_FOR_CLOSEST = 5'd13;  // For the router that has the closest label, which is this one: how a label that joins finds its place in the ring.
  localparam logic [4:0] ROFL_UNKNOWN_LABEL = 5'd14;  // The closest label is resident here and not the destination, so nobody has the destination.
  localparam logic [4:0] ROFL_HOP_BUDGET = 5'd15;  // The hop budget is used up; packets on a circular way end here.
  localparam logic [4:0] ROFL_LOOP = 5'd16;  // The packet would return to the neighbour that sent it.
  localparam logic [4:0] ROFL_MTU = 5'd17;  // The packet exceeds the MTU of the port.
  localparam logic [4:0] ROFL_FORWARD = 5'd18;  // Sent to the neighbour of the closest label, with one hop less in its budget; all other bytes stay.
  localparam int unsigned ROFL_COUNT = 18;

  // The verdict of an outcome. Code 0, no outcome, gives a drop.
  function automatic logic [1:0] rofl_verdict(logic [4:0] outcome);
    case (outcome)
      ROFL_FORWARD: return VERDICT_FORWARD;
      ROFL_LINK, ROFL_FOR_US, ROFL_FOR_CLOSEST: return VERDICT_PUNT;
      default: return VERDICT_DROP;
    endcase
  endfunction

  // Kind `splice`: outcomes of a packet, in the order in which they are tried: the first whose condition holds.
  localparam int unsigned KIND_SPLICE = 9;
  localparam logic [4:0] SPLICE_GATED = 5'd1;  // The network's plane is stopped by its clock gate, and processes no packets.
  localparam logic [4:0] SPLICE_RATE_LIMITED = 5'd2;  // The packet exceeds the network's rate limit.
  localparam logic [4:0] SPLICE_ARP = 5'd3;  // ARP, which the network's control plane handles.
  localparam logic [4:0] SPLICE_ETHERTYPE = 5'd4;  // Neither IPv4 nor ARP. A frame with a VLAN tag or an 802.3 length is neither.
  localparam logic [4:0] SPLICE_TRUNCATED = 5'd5;  // The frame ends within the fixed part of the IPv4 header.
  localparam logic [4:0] SPLICE_VERSION = 5'd6;  // The version field is not 4.
  localparam logic [4:0] SPLICE_HEADER_LENGTH = 5'd7;  // The header length is below 20 bytes or extends beyond the frame.
  localparam logic [4:0] SPLICE_TOTAL_LENGTH = 5'd8;  // The total length is below the header length or extends beyond the frame.
  localparam logic [4:0] SPLICE_CHECKSUM = 5'd9;  // The header checksum is wrong.
  localparam logic [4:0] SPLICE_SHIM = 5'd10;  // The header with the splicing bits is cut off, or its version is not 1.
  localparam logic [4:0] SPLICE_NO_SLICE = 5'd11;  // The splicing bits name a slice that the network does not have.
  localparam logic [4:0] SPLICE_LOCAL = 5'd12;  // For the router itself: its addresses, subnet broadcasts, limited broadcast, multicast.
  localparam logic [4:0] SPLICE_L2_GROUP = 5'd13;  // A packet to a unicast address in a broadcast or multicast frame.
  localparam logic [4:0] SPLICE_MARTIAN_SOURCE = 5'd14;  // The source cannot be the address of a host: this network, loopback, multicast, reserved or limited broadcast.
  localparam logic [4:0] SPLICE_MARTIAN_DESTINATION = 5'd15;  // The destination cannot be the address of a host: this network, loopback or reserved.
  localparam logic [4:0] SPLICE_TTL = 5'd16;  // The TTL has expired; the control plane answers time exceeded.
  localparam logic [4:0] SPLICE_OPTIONS = 5'd17;  // The packet has IPv4 options, which the control plane handles.
  localparam logic [4:0] SPLICE_NO_ROUTE = 5'd18;  // No route of the slice matches the destination; the control plane answers unreachable, or forwards by a route that a quota refused.
  localparam logic [4:0] SPLICE_NO_NEIGHBOUR = 5'd19;  // The next hop's MAC address is not known yet; the control plane sends an ARP request.
  localparam logic [4:0] SPLICE_MTU = 5'd20;  // The packet exceeds the egress port's MTU; the control plane fragments it or answers fragmentation needed.
  localparam logic [4:0] SPLICE_FORWARD = 5'd21;  // Sent with the next hop's MAC addresses, the TTL lower by one, the splicing bits of this hop consumed and an updated checksum; all other bytes stay.
  localparam int unsigned SPLICE_COUNT = 21;

  // The verdict of an outcome. Code 0, no outcome, gives a drop.
  function automatic logic [1:0] splice_verdict(logic [4:0] outcome);
    case (outcome)
      SPLICE_FORWARD: return VERDICT_FORWARD;
      SPLICE_ARP, SPLICE_LOCAL, SPLICE_TTL, SPLICE_OPTIONS, SPLICE_NO_ROUTE, SPLICE_NO_NEIGHBOUR, SPLICE_MTU: return VERDICT_PUNT;
      default: return VERDICT_DROP;
    endcase
  endfunction

  // Kind `mpls`: outcomes of a packet, in the order in which they are tried: the first whose condition holds.
  localparam int unsigned KIND_MPLS = 10;
  localparam logic [4:0] MPLS_GATED = 5'd1;  // The network's plane is stopped by its clock gate, and processes no packets.
  localparam logic [4:0] MPLS_RATE_LIMITED = 5'd2;  // The packet exceeds the network's rate limit.
  localparam logic [4:0] MPLS_NOT_MPLS = 5'd3;  // Not a unicast packet of MPLS. A frame with a VLAN tag is none.
  localparam logic [4:0] MPLS_SHORT = 5'd4;  // The frame ends before the bottom of the stack.
  localparam logic [4:0] MPLS_TOO_DEEP = 5'd5;  // The stack has more than 16 entries, or there is no room before the frame for the labels to be pushed.
  localparam logic [4:0] MPLS_ROUTER_ALERT = 5'd6;  // The label says that the packet is for the router itself.
  localparam logic [4:0] MPLS_EXPLICIT_NULL = 5'd7;  // The label says that this router forwards the IP packet below it; the network's control plane does.
  localparam logic [4:0] MPLS_RESERVED = 5'd8;  // A label with a special purpose that no entry can have.
  localparam logic [4:0] MPLS_TTL = 5'd9;  // The TTL is used up; the control plane may answer.
  localparam logic [4:0] MPLS_NO_ENTRY = 5'd10;  // No entry has this label.
  localparam logic [4:0] MPLS_DROP_ENTRY = 5'd11;  // The entry says: drop.
  localparam logic [4:0] MPLS_PUNT_ENTRY = 5'd12;  // The entry says: to the network's control plane.
  localparam logic [4:0] MPLS_NOT_IP = 5'd13;  // The entry pops the last label, and what is below it is no IPv4 or IPv6 packet with a whole header.
  localparam logic [4:0] MPLS_MTU = 5'd14;  // The frame with its new labels exceeds the MTU of the port.
  localparam logic [4:0] MPLS_FORWARD = 5'd15;  // Sent to the neighbour of the entry, with the entry's labels in place of the top one.
  localparam int unsigned MPLS_COUNT = 15;

  // The verdict of an outcome. Code 0, no outcome, gives a drop.
  function automatic logic [1:0] mpls_verdict(logic [4:0] outcome);
    case (outcome)
      MPLS_FORWARD: return VERDICT_FORWARD;
      MPLS_ROUTER_ALERT, MPLS_EXPLICIT_NULL, MPLS_TTL, MPLS_PUNT_ENTRY: return VERDICT_PUNT;
      default: return VERDICT_DROP;
    endcase
  endfunction

  // Outcomes of the kind that has most of them, among those of an image: bit KIND_* of `kinds`.
  function automatic int unsigned outcomes_max(int unsigned kinds);
    int unsigned most;
    most = 0;
    if (kinds[KIND_IPV4] && IPV4_COUNT > most) most = IPV4_COUNT;
    if (kinds[KIND_IPV6] && IPV6_COUNT > most) most = IPV6_COUNT;
    if (kinds[KIND_L2] && L2_COUNT > most) most = L2_COUNT;
    if (kinds[KIND_DUAL] && DUAL_COUNT > most) most = DUAL_COUNT;
    if (kinds[KIND_EXTRACT] && EXTRACT_COUNT > most) most = EXTRACT_COUNT;
    if (kinds[KIND_ROFL] && ROFL_COUNT > most) most = ROFL_COUNT;
    if (kinds[KIND_SPLICE] && SPLICE_COUNT > most) most = SPLICE_COUNT;
    if (kinds[KIND_MPLS] && MPLS_COUNT > most) most = MPLS_COUNT;
    return most;
  endfunction
endpackage
/* verilator lint_on UNUSEDPARAM */
