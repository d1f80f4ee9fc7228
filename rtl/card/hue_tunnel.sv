// Puts frames into tunnels, and takes them out (ADR 0059, ADR 0065).
//
// Place: hue_loop → **here** → an input queue → hue_loop_join → arbiter. In Rust: crates/demux/src/tunnel/packet.rs. One frame
// at a time: its head is stored, the tunnel found, the new headers made, and the frame sent on with other bytes in front.
//
// Out (`TunnelOut`): the lowest byte of the source MAC address names the row; in its place comes that of the
// virtual port. The frame leaves as a copy for the tunnel's carrier. A frame
// that is no IP packet and cannot be in IP in IP, that becomes too long, or whose row is not one of its network is dropped.
// In (`TunnelIn`): addresses, type and VNI are looked up. A packet of a tunnel leaves as a copy for the network with the tunnel. Any
// other packet goes **back**: unchanged, as one that software decides. So do all that need more than a look at fixed places: fragments,
// options, extension headers, UDP checksums, malformed headers, congestion that the inner packet cannot say, strangers. Software does with
// them what it does without a card, and counts why.
//
// The search begins at a row that a hash of what is looked up gives and ends at a row that is not in use, or after all rows.
//
// Latency: 9 clocks from the last beat of a head of up to `HeadBeats` beats to the first beat out, and 3 for each further row of the
// search. Throughput: a frame in these clocks plus its beats in and out; long frames take a beat a clock.
// Source: RFC 2003, RFC 4213, RFC 2473, RFC 7348, RFC 6040, RFC 1624.
module hue_tunnel
  import hue_pkg::*;
  import hue_regs_pkg::*;
#(
  parameter int unsigned BusBytes = 32,
  parameter int unsigned Rows = 256,
  localparam int unsigned ByteBits = $clog2(BusBytes + 1)
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,
  input  tbl_req_t              tbl_req_i,
  output tbl_rsp_t              tbl_rsp_o,
  output logic                  error_o,

  input  logic                  s_valid_i,
  output logic                  s_ready_o,
  input  logic [8*BusBytes-1:0] s_data_i,
  input  logic                  s_last_i,
  input  hue_loop_t             s_item_i,

  output logic                  m_valid_o,
  input  logic                  m_ready_i,
  output logic [8*BusBytes-1:0] m_data_o,
  output logic                  m_last_o,
  output logic [ByteBits-1:0]   m_bytes_o,
  output hue_arrival_t          m_arrival_o,   // valid with each beat; without time and length
  output logic [2:0]            m_port_o,

  output logic                  event_o,       // pulse: what became of a frame, a row of TUNNEL_COUNT of this network
  output logic [7:0]            event_net_o,
  output logic [1:0]            event_row_o,
  output logic                  idle_o
);
  if (BusBytes != 32) begin : g_bus_bytes
    $fatal(1, "hue_tunnel: BusBytes is %0d, not 32", BusBytes);
  end
  if (Rows < 4 || Rows > 256 || (Rows & (Rows - 1)) != 0) begin : g_rows
    $fatal(1, "hue_tunnel: Rows is %0d, a power of two from 4 to 256", Rows);
  end

  localparam int unsigned RowBits = $clog2(Rows);
  localparam int unsigned HeadBeats = 3;
  localparam int unsigned StoredBytes = HeadBeats * BusBytes;
  localparam int unsigned EthernetBytes = 14;
  localparam int unsigned Ipv4Bytes = 20;
  localparam int unsigned Ipv6Bytes = 40;
  localparam int unsigned AboveBytes = 16;     // UDP and VXLAN
  localparam int unsigned PrefixBytes = EthernetBytes + Ipv6Bytes + AboveBytes;
  localparam int unsigned InnerBytes = Ipv6Bytes + 4;
  localparam logic [47:0] Peer = 48'h02_00_00_00_00_01;  // IPIP_PEER of crates/demux/src/tunnel/types.rs
  localparam logic [1:0]  Ce = 2'd3;
  localparam logic [1:0]  Ect1 = 2'd1;
  localparam logic [1:0]  EventLeft = 2'd0;
  localparam logic [1:0]  EventEntered = 2'd1;
  localparam logic [1:0]  EventLost = 2'd3;

  typedef enum logic [3:0] { Fill, Outer, Inner, Ask, Read, Match, Lengths, Sums, Fold, Send, Drain } state_e;
  state_e state_q;

  // The packet inside, or what is known about it.
  typedef struct packed {
    logic        ip;         // a sound IP packet
    logic        has_ecn;    // an IP header, by EtherType and length: what RFC 6040 applies to
    logic        wide;       // IPv6
    logic [7:0]  tos;
    logic [15:0] bytes;      // length, by its header
    logic [15:0] checksum;   // of an IPv4 header
    logic [31:0] hash;
  } inner_t;

  // ---- the frame's head
  logic [StoredBytes-1:0][7:0] head_q;
  hue_loop_t                 item_q;
  logic [1:0]                fill_q;
  logic                      ended_q;
  function automatic logic [15:0] half(logic [StoredBytes-1:0][7:0] bytes, int unsigned at);
    return {bytes[at], bytes[at+1]};
  endfunction

  // ---- the outer packet, of a frame that may come out of a tunnel; and where the inner one begins
  logic         out, o_wide, o_vxlan, o_ok, o_wide_q, o_vxlan_q, o_ok_q, any_q;
  logic [7:0]   o_protocol;
  logic [1:0]   o_ecn, o_ecn_q;
  logic [13:0]  o_end;
  logic [127:0] o_remote, o_local, o_remote_q, o_local_q;
  logic [23:0]  o_vni, o_vni_q;
  logic [15:0]  udp_bytes;
  logic [6:0]   begins, begins_q;         // where the inner packet, or frame, is in the frame
  logic [13:0]  ends, ends_q, present, present_q;
  logic [15:0]  type_in, type_q;
  logic [47:0]  mac_in, mac_q;
  logic [InnerBytes-1:0][7:0] inner_in, inner_bytes_q;
  assign out = item_q.tunnel == TunnelOut;
  always_comb begin
    o_wide     = half(head_q, 12) == EthertypeIpv6;
    o_protocol = o_wide ? head_q[20] : head_q[23];
    o_vxlan    = o_protocol == ProtocolUdp;
    o_ecn      = o_wide ? head_q[15][5:4] : head_q[15][1:0];
    o_end      = 14'(EthernetBytes) + (o_wide ? 14'(Ipv6Bytes) + 14'(half(head_q, 18)) : 14'(half(head_q, 16)));
    o_remote   = '0;
    o_local    = '0;
    for (int unsigned i = 0; i < 16; i++) begin
      if (o_wide) o_remote[8*(15-i)+:8] = head_q[22+i];
      if (o_wide) o_local[8*(15-i)+:8] = head_q[38+i];
    end
    if (!o_wide) o_remote[31:0] = {half(head_q, 26), half(head_q, 28)};
    if (!o_wide) o_local[31:0] = {half(head_q, 30), half(head_q, 32)};
    // Of UDP: length and VNI.
    udp_bytes  = o_wide ? half(head_q, 58) : half(head_q, 38);
    o_vni      = !o_vxlan ? '0 : o_wide ? {half(head_q, 66), head_q[68]} : {half(head_q, 46), head_q[48]};
    begins     = 7'(EthernetBytes) + (o_wide ? 7'(Ipv6Bytes) : 7'(Ipv4Bytes)) + (o_vxlan ? 7'(AboveBytes) : 7'd0);
    ends       = o_end;
    if (o_vxlan) ends = 14'(begins) + 14'(udp_bytes) - 14'(AboveBytes);
    // A look at fixed places is enough, and the lengths are sound.
    o_ok = o_wide ? head_q[14][7:4] == 4'd6 :
                    half(head_q, 12) == EthertypeIpv4 && head_q[14] == 8'h45 && (half(head_q, 20) & 16'h3fff) == '0;
    o_ok = o_ok && o_end <= item_q.len && 14'(begins) <= o_end;
`ifdef HUE_PLANT_TUNNEL_FLAG
    if (o_vxlan) begin  // for scripts/rtl-test: the bench must find each of these
`else
    if (o_vxlan && !(o_wide ? head_q[62][3] : head_q[42][3])) o_ok = 1'b0;
    if (o_vxlan) begin
`endif
      if ((o_wide ? half(head_q, 56) : half(head_q, 36)) != VxlanPort) o_ok = 1'b0;
`ifndef HUE_PLANT_TUNNEL_CHECKSUM
      if ((o_wide ? half(head_q, 60) : half(head_q, 40)) != '0) o_ok = 1'b0;
`endif
`ifndef HUE_PLANT_TUNNEL_LENGTH
      if (udp_bytes > 16'(o_end) - 16'(begins) + 16'(AboveBytes)) o_ok = 1'b0;
`endif
      if (udp_bytes < 16'(AboveBytes + EthernetBytes)) o_ok = 1'b0;
    end else if (o_protocol != ProtocolIpip && o_protocol != ProtocolIpv6) o_ok = 1'b0;
    if (out) begin
      begins = '0;
      ends   = item_q.len;
    end

    // The inner packet is behind an Ethernet header, of which IP in IP has only what the protocol says.
    present = ends - 14'(begins) - (out || o_vxlan ? 14'(EthernetBytes) : 14'd0);
    type_in = half(head_q, 12);
    mac_in  = '0;
    for (int unsigned i = 0; i < InnerBytes; i++) begin
      inner_in[i] = head_q[EthernetBytes+i];
      if (!out && !o_vxlan) inner_in[i] = o_wide ? head_q[54+i > StoredBytes-1 ? StoredBytes-1 : 54+i] : head_q[34+i];
      if (!out && o_vxlan) inner_in[i] = o_wide ? head_q[84+i > StoredBytes-1 ? StoredBytes-1 : 84+i] : head_q[64+i > StoredBytes-1 ? StoredBytes-1 : 64+i];
    end
    if (!out) begin
      type_in = o_protocol == ProtocolIpv6 ? EthertypeIpv6 : EthertypeIpv4;
      if (o_vxlan) type_in = o_wide ? half(head_q, 82) : half(head_q, 62);
      mac_in = o_wide ? {half(head_q, 70), half(head_q, 72), half(head_q, 74)} : {half(head_q, 50), half(head_q, 52), half(head_q, 54)};
    end
  end

  // ---- the inner packet
  inner_t inner, in_q;
  logic [15:0] i_total, i_payload;
  logic [5:0]  i_header;
  logic        i_v4, i_v6, i_ports;
  logic [7:0]  i_protocol;
  logic [295:0] i_key;   // what is hashed: the first byte is the highest
  function automatic logic has_ports(logic [7:0] protocol);
    return protocol inside {8'd6, 8'd17, 8'd33, 8'd132, 8'd136};
  endfunction
  // Toeplitz hash with Microsoft's key, as crates/wire/src/toeplitz.rs.
  localparam logic [319:0] Key = 320'h6d5a56da_255b0ec2_4167253d_43a38fb0_d0ca2bcb_ae7b30b4_77cb2da3_8030f20c_6a42b73b_beac01fa;
  function automatic logic [31:0] toeplitz(logic [295:0] bytes);
    logic [639:0] twice;
    logic [31:0]  sum;
    twice = {Key, Key};
    sum = '0;
    for (int unsigned i = 0; i < 296; i++) if (bytes[295-i]) sum = sum ^ twice[639-i-:32];
    return sum;
  endfunction
  assign i_total    = {inner_bytes_q[2], inner_bytes_q[3]};
  assign i_payload  = {inner_bytes_q[4], inner_bytes_q[5]};
  assign i_header   = {inner_bytes_q[0][3:0], 2'd0};
  assign i_v4 = type_q == EthertypeIpv4 && present_q >= 14'(Ipv4Bytes);
  assign i_v6 = type_q == EthertypeIpv6 && present_q >= 14'(Ipv6Bytes);
  assign i_protocol = i_v6 ? inner_bytes_q[6] : inner_bytes_q[9];
  always_comb begin
    inner = '0;
    inner.wide = i_v6;
    inner.has_ecn = i_v4 || i_v6;
    inner.checksum = {inner_bytes_q[10], inner_bytes_q[11]};
    inner.bytes = i_v6 ? 16'(Ipv6Bytes) + i_payload : i_total;
    if (i_v4) begin
      inner.tos = inner_bytes_q[1];
      inner.ip = inner_bytes_q[0][7:4] == 4'd4 && i_header >= 6'(Ipv4Bytes) && i_total >= 16'(i_header) && i_total <= 16'(present_q);
    end else if (i_v6) begin
      inner.tos = {inner_bytes_q[0][3:0], inner_bytes_q[1][7:4]};
      inner.ip = inner_bytes_q[0][7:4] == 4'd6 && i_payload <= 16'(present_q) - 16'(Ipv6Bytes);
    end
    // Ports count where they follow the fixed header.
    i_ports = has_ports(i_protocol);
    if (i_v6) i_ports = i_ports && i_payload >= 16'd4;
    else i_ports = i_ports && inner_bytes_q[0] == 8'h45 && ({inner_bytes_q[6], inner_bytes_q[7]} & 16'h3fff) == '0 && i_total >= 16'd24;
    i_key = '0;
    if (!inner.ip) begin
      for (int unsigned i = 0; i < EthernetBytes; i++) i_key[295-8*i-:8] = head_q[i];
    end else if (i_v6) begin
      for (int unsigned i = 0; i < 32; i++) i_key[295-8*i-:8] = inner_bytes_q[8+i];
      if (i_ports) for (int unsigned i = 0; i < 4; i++) i_key[295-8*(32+i)-:8] = inner_bytes_q[40+i];
      i_key[295-8*36-:8] = i_protocol;
    end else begin
      for (int unsigned i = 0; i < 8; i++) i_key[295-8*i-:8] = inner_bytes_q[12+i];
      if (i_ports) for (int unsigned i = 0; i < 4; i++) i_key[295-8*(8+i)-:8] = inner_bytes_q[20+i];
      i_key[295-8*12-:8] = i_protocol;
    end
    inner.hash = '0;
  end

  // ---- the tunnel
  logic               far_wait, near_wait, en_q, unused_far, unused_near, unused_far_parity, unused_near_parity, far_error, near_error;
  logic [RowBits-1:0] row_at_q, first_at_q, unused_far_addr, unused_near_addr;
  row_tunnel_t        far, far_q, unused_far_data;
  row_tunnel_near_t   near, near_q, unused_near_data;
  tbl_rsp_t           far_rsp, near_rsp;
  always_ff @(posedge clk_i) en_q <= rst_ni && !far_wait && !near_wait;
  hue_table #(.Id(TABLE_TUNNEL), .Rows(Rows), .Width($bits(row_tunnel_t))) u_far (
    .clk_i, .rst_ni, .tbl_req_i, .tbl_rsp_o(far_rsp),
    .write_o(unused_far), .write_addr_o(unused_far_addr), .write_data_o(unused_far_data),
    .wait_o(far_wait), .en_i(en_q), .addr_i(row_at_q), .data_o(far), .parity_o(unused_far_parity),
    .check_i(en_q && state_q == Read), .error_o(far_error)
  );
  hue_table #(.Id(TABLE_TUNNEL_NEAR), .Rows(Rows), .Width($bits(row_tunnel_near_t)), .Reset(1'b0)) u_near (
    .clk_i, .rst_ni, .tbl_req_i, .tbl_rsp_o(near_rsp),
    .write_o(unused_near), .write_addr_o(unused_near_addr), .write_data_o(unused_near_data),
    .wait_o(near_wait), .en_i(en_q), .addr_i(row_at_q), .data_o(near), .parity_o(unused_near_parity),
    .check_i(en_q && state_q == Read && far.valid), .error_o(near_error)
  );
  assign tbl_rsp_o = far_rsp | near_rsp;
  assign error_o   = far_error || near_error;

  logic found, sound, lost, back_q;
  always_comb begin
    found = far_q.over == item_q.net && far_q.vxlan == o_vxlan_q && far_q.wide == o_wide_q;
`ifndef HUE_PLANT_TUNNEL_VNI
    found = found && far_q.vni == o_vni_q;
`endif
`ifndef HUE_PLANT_TUNNEL_REMOTE
    found = found && {far_q.remote_high, far_q.remote_low} == o_remote_q;
`endif
`ifndef HUE_PLANT_TUNNEL_LOCAL
    found = found && {near_q.local_high, near_q.local_low} == o_local_q;
`endif
    // The inner packet of IP in IP is sound; a frame is for this virtual port; congestion can be handed on.
    sound = o_vxlan_q ? far_q.any_mac || mac_q[40] || mac_q == near_q.mac : in_q.ip;
`ifndef HUE_PLANT_TUNNEL_ECN
    if (in_q.has_ecn && in_q.tos[1:0] == 2'd0 && o_ecn_q == Ce) sound = 1'b0;
`endif
  end

  // ---- the new headers, and the parts of the frame
  logic         vxlan, wide;      // of the tunnel
  logic [6:0]   prefix_bytes_q;   // bytes in front of the frame's part
  logic [6:0]   skip_q;           // where the part begins
  logic [14:0]  length_q;         // of what is sent
  logic [15:0]  above_q;          // bytes behind the outer IP header
  logic [7:0]   tos_q;
  logic [19:0]  sum_q;
  logic [15:0]  sum;
  logic [7:0]   protocol;
  logic [PrefixBytes-1:0][7:0] prefix;
  logic [PrefixBytes*8-1:0]    text;   // byte 0 is the highest
  logic [127:0] local_address, remote;
  logic [15:0]  outer_total;
  assign vxlan = far_q.vxlan;
  assign wide = far_q.wide;
  assign protocol = vxlan ? ProtocolUdp : in_q.wide ? ProtocolIpv6 : ProtocolIpip;
  assign local_address = {near_q.local_high, near_q.local_low};
  assign remote = {far_q.remote_high, far_q.remote_low};
  assign outer_total = above_q + 16'(Ipv4Bytes);
  logic [15:0]  source_port;
  logic [19:0]  flow;
  logic [127:0] above;
  assign source_port = {2'b11, in_q.hash[13:0] ^ in_q.hash[29:16]};
`ifdef HUE_PLANT_TUNNEL_FLOW
  assign flow = in_q.hash[19:0];
`else
  assign flow = in_q.hash[19:0] ^ 20'(in_q.hash[31:20]);
`endif
  assign above = {source_port, VxlanPort, above_q, 16'd0, 32'h0800_0000, far_q.vni, 8'd0};
  always_comb begin
    text = '0;
    if (!out) text[PrefixBytes*8-1-:112] = {near_q.mac, Peer, in_q.wide ? EthertypeIpv6 : EthertypeIpv4};
    else if (wide) begin
      text = {near_q.over_mac, Peer, EthertypeIpv6, 4'd6, tos_q, flow, above_q, protocol, near_q.ttl, local_address, remote, above};
    end else begin
      text[PrefixBytes*8-1-:400] = {near_q.over_mac, Peer, EthertypeIpv4, 8'h45, tos_q, outer_total, 16'd0, 16'h4000, near_q.ttl, protocol, ~sum,
        local_address[31:0], remote[31:0], above};
    end
    for (int unsigned i = 0; i < PrefixBytes; i++) prefix[i] = text[8*(PrefixBytes-1-i)+:8];
  end
  assign sum = sum_q[15:0];

  // Congestion, of a packet that comes out (RFC 6040 §4.2).
  logic [1:0]  ecn, ecn_q;
  logic [15:0] checksum_q;
  logic        edits_q;
  logic [17:0] changed;
  logic [16:0] folded;
  always_comb begin
    ecn = in_q.tos[1:0];
    if (ecn != 2'd0 && ecn != Ce) begin
      if (o_ecn_q == Ce) ecn = Ce;
      else if (o_ecn_q == Ect1) ecn = Ect1;
    end
    // RFC 1624 equation 3, for the word of version and type of service.
    changed = 18'(16'(~in_q.checksum)) + 18'(16'(~{inner_bytes_q[0], in_q.tos})) + 18'({inner_bytes_q[0], in_q.tos[7:2], ecn});
    folded = 17'(changed[15:0]) + 17'(changed[17:16]);
  end

  // ---- sending: the frame is shifted, and what comes before it is put in its place
  logic [7:0]           shift;     // bytes by which the frame moves up, in two's complement: negative if the prefix is longer
  logic [8*BusBytes-1:0] low_q, high, shifted;
  logic [4:0]           bytes_shift_q;
  logic [9:0]           at_q;      // the beat in `low_q`, plus 3
  logic [8:0]           beat_q;    // beat that is sent
  logic [8:0]           beats_q;   // beats of the frame that came
  logic                 needs, last, sends;
  logic [14:0]          left;
  assign shift = 8'(skip_q) - 8'(prefix_bytes_q);
  always_comb begin
    needs = at_q >= 10'd5 && at_q - 10'd2 < 10'(beats_q);
    high = needs ? s_data_i : '0;
    for (int unsigned i = 0; i < HeadBeats; i++) if (at_q == 10'(i + 2)) high = head_q[BusBytes*i+:BusBytes];
    shifted = (8*BusBytes)'({high, low_q} >> {bytes_shift_q, 3'd0});
    m_data_o = shifted;
    for (int unsigned k = 0; k < HeadBeats; k++) begin
      for (int unsigned b = 0; b < BusBytes; b++) begin
        if (BusBytes * k + b < PrefixBytes && beat_q == 9'(k) && 7'(BusBytes * k + b) < prefix_bytes_q) begin
          m_data_o[8*b+:8] = prefix[BusBytes*k+b];
        end
      end
    end
    // The inner packet is behind 14 bytes.
    if (edits_q && beat_q == '0) begin
      if (in_q.wide) m_data_o[8*15+4+:2] = ecn_q;
      else begin
        m_data_o[8*15+:2] = ecn_q;
`ifndef HUE_PLANT_TUNNEL_ECN_SUM
        m_data_o[8*24+:8] = checksum_q[15:8];
        m_data_o[8*25+:8] = checksum_q[7:0];
`endif
      end
    end
  end
  assign left      = length_q - {1'b0, beat_q, 5'd0};
  assign last      = left <= 15'(BusBytes);
  assign m_last_o  = last;
  assign m_bytes_o = last ? ByteBits'(left) : ByteBits'(BusBytes);
  assign m_valid_o = state_q == Send && (!needs || s_valid_i);
  assign sends     = m_valid_o && m_ready_i;
  assign s_ready_o = state_q == Fill || (state_q == Send && needs && m_ready_i) || state_q == Drain;
  assign idle_o    = state_q == Fill && fill_q == '0;

  always_comb begin
    m_arrival_o = '0;
    m_arrival_o.tag = item_q.tag;
    if (back_q) begin
      m_arrival_o.from_cpu = 1'b1;
      m_arrival_o.cpu_out = {1'b1, item_q.net[1:0]};
      m_arrival_o.net = item_q.net;
      m_arrival_o.vport = item_q.vport;
    end else begin
      m_arrival_o.copy = 1'b1;
      m_arrival_o.net = out ? far_q.over : near_q.net;
      m_arrival_o.vport = out ? far_q.over_vport : near_q.vport;
    end
  end
  assign m_port_o = item_q.port_in;

  // A row that another network has by now is not used.
`ifdef HUE_PLANT_TUNNEL_OWNER
  assign lost = out && (!far_q.valid || (!vxlan && !in_q.ip) || length_q > 15'(FrameBytesMax));
`else
  assign lost = out && (!far_q.valid || near_q.net != item_q.net || (!vxlan && !in_q.ip) || length_q > 15'(FrameBytesMax));
`endif
  always_ff @(posedge clk_i) begin
    event_o <= 1'b0;
    event_net_o <= item_q.net;
    event_row_o <= lost ? EventLost : out ? EventLeft : EventEntered;
    case (state_q)
      Fill: if (s_valid_i) begin
        for (int unsigned i = 0; i < HeadBeats; i++) if (fill_q == 2'(i)) head_q[BusBytes*i+:BusBytes] <= s_data_i;
        item_q <= s_item_i;
        fill_q <= fill_q + 1'b1;
        ended_q <= s_last_i;
        if (s_last_i || fill_q == 2'(HeadBeats - 1)) begin
          state_q <= Outer;
          fill_q <= '0;
        end
      end
      Outer: begin
        beats_q <= 9'(beats_of(item_q.len, BusBytes));
        o_wide_q <= o_wide;
        o_vxlan_q <= o_vxlan;
        o_ok_q <= o_ok;
        o_ecn_q <= o_ecn;
        o_remote_q <= o_remote;
        o_local_q <= o_local;
        o_vni_q <= o_vni;
        begins_q <= begins;
        ends_q <= ends;
        present_q <= present;
        type_q <= type_in;
        mac_q <= mac_in;
        inner_bytes_q <= inner_in;
        row_at_q <= out ? head_q[11][RowBits-1:0] : RowBits'(toeplitz({o_remote, o_local, o_vni, item_q.net, 8'd0}));
        any_q <= 1'b0;
        state_q <= out ? Ask : Inner;
      end
      Inner: begin
        in_q <= inner;
        in_q.hash <= toeplitz(i_key);
        first_at_q <= row_at_q;
        back_q <= !out && !o_ok_q;
        state_q <= out || !o_ok_q ? Lengths : Ask;
      end
      Ask: if (en_q) state_q <= Read;
      Read: if (en_q) begin
        far_q <= far;
        near_q <= near;
        state_q <= Match;
      end
      Match: begin
        // The first row is also the last one that is looked at.
        if (out) begin
          // The address named the row; now it is that of the virtual port.
          for (int unsigned i = 0; i < 6; i++) head_q[6+i] <= near_q.mac[8*(5-i)+:8];
          state_q <= Inner;
        end else if (!far_q.valid || (any_q && row_at_q == first_at_q) || (found && !sound)) begin
          back_q <= 1'b1;
          state_q <= Lengths;
        end else if (found) state_q <= Lengths;
        else begin
          any_q <= 1'b1;
          row_at_q <= row_at_q + 1'b1;
          state_q <= Ask;
        end
      end
      Lengths: begin
        tos_q <= near_q.dscp_fixed ? {near_q.dscp, in_q.ip ? in_q.tos[1:0] : 2'd0} : in_q.ip ? in_q.tos : '0;
        edits_q <= !out && !back_q && in_q.has_ecn;
        ecn_q <= ecn;
        prefix_bytes_q <= '0;
        skip_q <= '0;
        length_q <= 15'(item_q.len);
        above_q <= vxlan ? 16'(item_q.len) + 16'(AboveBytes) : in_q.bytes;
        if (!back_q) begin
          if (out) begin
            skip_q <= vxlan ? '0 : 7'(EthernetBytes);
            prefix_bytes_q <= 7'(EthernetBytes) + (wide ? 7'(Ipv6Bytes) : 7'(Ipv4Bytes)) + (vxlan ? 7'(AboveBytes) : '0);
            length_q <= 15'(EthernetBytes) + (wide ? 15'(Ipv6Bytes) : 15'(Ipv4Bytes)) +
                        (vxlan ? 15'(item_q.len) + 15'(AboveBytes) : 15'(in_q.bytes));
          end else begin
            skip_q <= begins_q;
            prefix_bytes_q <= vxlan ? '0 : 7'(EthernetBytes);
            length_q <= vxlan ? 15'(ends_q) - 15'(begins_q) : 15'(EthernetBytes) + 15'(in_q.bytes);
          end
        end
        state_q <= Sums;
      end
      Sums: begin
        // A checksum that does not change stays as it is, whichever of its two zeros it has.
        checksum_q <= ecn == in_q.tos[1:0] ? in_q.checksum : ~(folded[15:0] + 16'(folded[16]));
        bytes_shift_q <= shift[4:0];
        at_q <= 10'd3 + 10'($signed(shift[7:5]));
        sum_q <= 20'({8'h45, tos_q}) + 20'(outer_total) + 20'h4000 + 20'({near_q.ttl, protocol}) + 20'(local_address[31:16]) +
                 20'(local_address[15:0]) + 20'(remote[31:16]) + 20'(remote[15:0]);
        state_q <= Fold;
      end
      Fold: begin
        sum_q <= 20'(sum16(sum_q[15:0], 16'(sum_q[19:16])));
        beat_q <= '0;
        low_q <= '0;
        for (int unsigned i = 0; i < HeadBeats; i++) if (at_q == 10'(i + 3)) low_q <= head_q[BusBytes*i+:BusBytes];
        state_q <= lost ? ended_q ? Fill : Drain : Send;
        event_o <= !back_q;
      end
      Send: if (sends) begin
        low_q <= high;
        at_q <= at_q + 1'b1;
        beat_q <= beat_q + 1'b1;
        if (needs && s_last_i) ended_q <= 1'b1;
        if (last) state_q <= ended_q || (needs && s_last_i) ? Fill : Drain;
      end
      default: if (s_valid_i && s_last_i) state_q <= Fill;
    endcase
    if (!rst_ni) begin
      state_q <= Fill;
      fill_q <= '0;
      event_o <= 1'b0;
    end
  end

`ifndef SYNTHESIS
  a_stable: assert property (@(posedge clk_i) disable iff (!rst_ni)
    (m_valid_o && !m_ready_i) |=> (m_valid_o && $stable(m_data_o) && $stable(m_last_o) && $stable(m_bytes_o)));
  a_item_stays: assert property (@(posedge clk_i) disable iff (!rst_ni)
    s_valid_i && s_ready_o && state_q != Fill |-> s_item_i.tag == item_q.tag);
  a_tunnel: assert property (@(posedge clk_i) disable iff (!rst_ni) s_valid_i |-> s_item_i.tunnel != TunnelNone);
`endif
`ifdef HUE_TWIN
  always_ff @(posedge clk_i) if (rst_ni && state_q == Fold && lost) hue_card_ended(item_q.tag, 32'(item_q.net), EndedRefused);
`endif
endmodule
