// Header gather: reads a frame as it passes, gives the stages the fields they need, and stores the body in the packet buffer.
//
// Place: arbiter → gather → stages; body and tag → packet buffer, where scatter takes them in the same order. The
// record leaves when the last byte that can matter has passed (byte 123: the destination inside VXLAN behind an IPv4
// header of 60 bytes), or with the frame's last beat if that comes first; the rest of the body may still be on its way.
// `inner` is exactly crates/demux/src/inner.rs. Bytes behind a frame's end are ignored, and so are bytes of the frame before
// that are still in registers: the fields of a header that the frame does not contain in full are zero.
//
// Latency: `Latency` clocks from that beat to `m_valid_o`. Throughput: a beat a clock, so a frame of 64 bytes every
// 8, 2 or 1 clocks, while the stages take the records and the buffer has room.
// Source: RFC 791 §3.1, RFC 1071, RFC 2003, RFC 7348 §5.

module hue_gather
  import hue_pkg::*;
#(
  parameter int unsigned BusBytes = 8
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,

  input  logic                  s_valid_i,
  output logic                  s_ready_o,
  input  logic [8*BusBytes-1:0] s_data_i,
  input  logic                  s_first_i,
  input  logic                  s_last_i,
  input  logic [2:0]            s_port_i,
  input  hue_arrival_t          s_arrival_i,

  // Body, a beat a clock. `body_valid_o` is 1 only while `body_ready_i` says that there is room for a beat.
  output logic                  body_valid_o,
  input  logic                  body_ready_i,
  output logic [8*BusBytes-1:0] body_data_o,
  // Tag, with the first beat.
  output logic                  tag_valid_o,
  input  logic                  tag_ready_i,
  output logic [31:0]           tag_o,

  output logic                  m_valid_o,
  input  logic                  m_ready_i,
  output hue_head_t             m_head_o,
  output logic                  idle_o        // no frame in progress, no record waiting
);

  if (BusBytes != 8 && BusBytes != 32 && BusBytes != 64) begin : g_bus_bytes
    $fatal(1, "BusBytes: expected 8, 32 or 64");
  end

  localparam int unsigned Latency = 5;
  localparam int unsigned ParseBytes = 128;
  localparam int unsigned ParseBeats = ParseBytes / BusBytes;
  localparam int unsigned BeatBits = $clog2(ParseBeats) + 1;
  localparam int unsigned HalfWords = BusBytes / 2;  // 16-bit half words in a beat
  localparam int unsigned LaneBits = $clog2(HalfWords);
  localparam int unsigned Groups = HalfWords / 4;    // groups of four half words, each summed at once
  localparam int unsigned EthernetBytes = 14;
  localparam int unsigned Ipv4BytesMin = 20;
  localparam int unsigned UdpBytes = 8;
  localparam int unsigned VxlanBytes = 8;

  // Offsets of the fields behind the outer IPv4 header, in half words from its end.
  localparam int unsigned Extras = 9;
  localparam int unsigned ExtraIpVersion = 0;
  localparam int unsigned ExtraIpDst = 1;         // this half word and the next
  localparam int unsigned ExtraUdpDst = 3;
  localparam int unsigned ExtraVxlanFlags = 4;
  localparam int unsigned ExtraEthertype = 5;
  localparam int unsigned ExtraVxlanVersion = 6;
  localparam int unsigned ExtraVxlanDst = 7;      // this half word and the next
  function automatic logic [5:0] extra_offset(int unsigned extra);
    case (extra)
      ExtraIpVersion:    return 6'd0;
      ExtraIpDst:        return 6'd8;
      ExtraIpDst + 1:    return 6'd9;
      ExtraUdpDst:       return 6'd1;
      ExtraVxlanFlags:   return 6'd4;
      ExtraEthertype:    return 6'd14;
      ExtraVxlanVersion: return 6'd15;
`ifdef HUE_PLANT_GATHER_VXLAN
      ExtraVxlanDst:     return 6'd22;  // for scripts/rtl-test: the bench must find this
`else
      ExtraVxlanDst:     return 6'd23;
`endif
      default:           return 6'd24;
    endcase
  endfunction

  // Fields at fixed offsets, in the order of the frame: byte 0 is the highest.
  localparam int unsigned FixedBytes = 34;
  typedef struct packed {
    logic [47:0] dst_mac;
    logic [47:0] src_mac;
    logic [15:0] ethertype;
    logic [3:0]  version;
    logic [3:0]  ihl;
    logic [7:0]  tos;
    logic [15:0] total;
    logic [15:0] id;
    logic [2:0]  fragment_flags;
    logic [12:0] fragment_offset;
    logic [7:0]  ttl;
    logic [7:0]  protocol;
    logic [15:0] checksum;
    logic [31:0] src;
    logic [31:0] dst;
  } fixed_t;

  // A beat is taken if there is room for body and record. Records still in the pipeline count.
  localparam int unsigned RecordDepth = 16;
  localparam int unsigned RoomBits = $clog2(RecordDepth + 1);
  logic                room_q, fire, out_ready;
  logic [RoomBits-1:0] record_room;

  assign s_ready_o = room_q && body_ready_i && tag_ready_i;
  assign fire = s_valid_i && s_ready_o;
  assign body_valid_o = fire;
  assign body_data_o = s_data_i;
  assign tag_valid_o = fire && s_first_i;
  assign tag_o = s_arrival_i.tag;

  // Clock 1: the beat, its number, and the header length.
  logic [BeatBits-1:0]            beat_q, beat;       // stops at ParseBeats after the parsed part
  logic                           v1_q, first1_q, end1_q, inside_q;
  logic [BeatBits-1:0]            beat1_q;
  logic [HalfWords-1:0][15:0]     half1_q;            // big endian half words
  logic [5:0]                     words1_q;           // half words up to the end of the IPv4 header, from byte 0
  hue_arrival_t                   arrival1_q;
  logic [2:0]                     port1_q;
  localparam int unsigned IhlByte = EthernetBytes;

  assign beat = s_first_i ? '0 : beat_q;

  always_ff @(posedge clk_i) begin
    if (fire) begin
      for (int unsigned h = 0; h < HalfWords; h++) half1_q[h] <= {s_data_i[16*h+:8], s_data_i[16*h+8+:8]};
      if (beat == BeatBits'(IhlByte / BusBytes)) begin
        words1_q <= 6'(EthernetBytes / 2) + {1'b0, s_data_i[8*(IhlByte%BusBytes)+:4], 1'b0};
      end
      first1_q <= s_first_i;
      beat1_q <= beat;
      arrival1_q <= s_arrival_i;
      port1_q <= s_port_i;
    end
    if (!rst_ni) begin
      beat_q <= '0;
      v1_q <= 1'b0;
      end1_q <= 1'b0;
      inside_q <= 1'b0;
      room_q <= 1'b0;
    end else begin
      v1_q <= fire && beat != BeatBits'(ParseBeats);
      end1_q <= fire && beat != BeatBits'(ParseBeats) && (s_last_i || beat == BeatBits'(ParseBeats - 1));
      if (fire) begin
        beat_q <= beat == BeatBits'(ParseBeats) ? beat : beat + 1'b1;
        inside_q <= !s_last_i;
      end
      // When the queue's room is checked, up to Latency records are on their way to it.
      room_q <= record_room > RoomBits'(Latency + 1);
    end
  end

  // Clock 2: fields at fixed places, half words behind the header, sums of four.
  logic                       v2_q, first2_q, end2_q;
  logic [FixedBytes*8-1:0]    fixed2_q;
  logic [Extras-1:0][15:0]    extra2_q;
  logic [Groups-1:0][17:0]    sums2_q;
  hue_arrival_t               arrival2_q;
  logic [2:0]                 port2_q;
  logic                       has_ethernet2_q, has_ipv4_2_q;  // the frame contains the header, without options

  for (genvar b = 0; b < FixedBytes; b++) begin : g_fixed
    localparam int unsigned Lane = b % BusBytes;
    always_ff @(posedge clk_i) begin
      if (v1_q && beat1_q == BeatBits'(b / BusBytes)) begin
        fixed2_q[8*(FixedBytes-1-b)+:8] <= Lane % 2 == 0 ? half1_q[Lane/2][15:8] : half1_q[Lane/2][7:0];
      end
    end
  end

  for (genvar e = 0; e < Extras; e++) begin : g_extra
    logic [6:0] place;   // half word of the frame
    assign place = 7'(words1_q) + 7'(extra_offset(e));
    always_ff @(posedge clk_i) begin
      if (v1_q && 7'(beat1_q) == 7'(place >> LaneBits)) extra2_q[e] <= half1_q[place[LaneBits-1:0]];
    end
  end

  for (genvar g = 0; g < Groups; g++) begin : g_sum
    logic [3:0][15:0] term;
    for (genvar t = 0; t < 4; t++) begin : g_term
      logic [6:0] place;
      assign place = 7'({beat1_q, LaneBits'(4 * g + t)});
`ifdef HUE_PLANT_GATHER_SUM
      // For scripts/rtl-test.
      assign term[t] = place >= 7'(EthernetBytes / 2) && place <= 7'(words1_q) ? half1_q[4*g+t] : '0;
`else
      assign term[t] = place >= 7'(EthernetBytes / 2) && place < 7'(words1_q) ? half1_q[4*g+t] : '0;
`endif
    end
    always_ff @(posedge clk_i) begin
      sums2_q[g] <= v1_q ? 18'(term[0]) + 18'(term[1]) + 18'(term[2]) + 18'(term[3]) : '0;
    end
  end

  always_ff @(posedge clk_i) begin
    arrival2_q <= arrival1_q;
    has_ethernet2_q <= arrival1_q.len >= 14'(EthernetBytes) && arrival1_q.len != LenTooLong;
    has_ipv4_2_q <= arrival1_q.len >= 14'(EthernetBytes + Ipv4BytesMin) && arrival1_q.len != LenTooLong;
    port2_q <= port1_q;
    first2_q <= first1_q;
    if (!rst_ni) begin
      v2_q <= 1'b0;
      end2_q <= 1'b0;
    end else begin
      v2_q <= v1_q;
      end2_q <= end1_q;
    end
  end

  // Clock 3: the whole sum (at most 30 half words: 21 bits), and what does not depend on it.
  logic                    end3_q;
  logic [20:0]             sum3_q, sum2;
  fixed_t                  fixed3_q;
  logic [Extras-1:0][15:0] extra3_q;
  hue_arrival_t            arrival3_q;
  logic [2:0]              port3_q;
  // Bytes behind the outer IPv4 header; valid if the header ends inside the frame.
  fixed_t                  fixed2;
  logic [13:0]             header_end, behind3_q;
  logic                    has_ipv4_3_q, has_payload3_q;
  assign header_end = 14'(EthernetBytes) + 14'({fixed2.ihl, 2'b00});

`ifdef HUE_PLANT_GATHER_BEHIND
  assign fixed2 = fixed_t'(fixed2_q);  // for scripts/rtl-test
`else
  always_comb begin
    fixed2 = '0;
    if (has_ipv4_2_q) fixed2 = fixed_t'(fixed2_q);
    {fixed2.dst_mac, fixed2.src_mac, fixed2.ethertype} = has_ethernet2_q ? fixed2_q[8*FixedBytes-1-:8*EthernetBytes] : '0;
  end
`endif

  always_comb begin
    sum2 = '0;
    for (int unsigned g = 0; g < Groups; g++) sum2 = sum2 + 21'(sums2_q[g]);
  end

  always_ff @(posedge clk_i) begin
    if (v2_q) sum3_q <= first2_q ? sum2 : sum3_q + sum2;
    fixed3_q <= fixed2;
    behind3_q <= arrival2_q.len - header_end;
    has_ipv4_3_q <= has_ipv4_2_q;
    has_payload3_q <= has_ipv4_2_q && fixed2.ihl >= 4'd5 && arrival2_q.len >= header_end;
    extra3_q <= extra2_q;
    arrival3_q <= arrival2_q;
    port3_q <= port2_q;
    if (!rst_ni) end3_q <= 1'b0;
    else end3_q <= end2_q;
  end

  // Clock 4: which headers the frame contains.
  logic [16:0] folded;

  // Folded once. A second carry cannot make 0xffff: that would take a first part of at least 0xffff to carry.
  assign folded = 17'(sum3_q[15:0]) + 17'(sum3_q[20:16]);

  localparam logic [13:0] VxlanMin = 14'(UdpBytes + VxlanBytes + EthernetBytes + Ipv4BytesMin);
  // For each protocol, whether the frame contains the fields needed. The I flag is bit 3 of the first byte.
  logic        end4_q, is_ipv4_q, is_ipip_q, is_udp_q, ipip_ok_q, udp_ok_q, is_vxlan_q, vxlan_ok_q;
  logic        starts;
  logic [31:0] ipip_dst_q, vxlan_dst_q;
  hue_head_t   head3, head4_q, head4;
  assign starts = fixed3_q.fragment_offset == '0;

  always_comb begin
    head3 = '0;
    head3.time_ns = arrival3_q.time_ns;
    head3.port = port3_q;
    head3.len = arrival3_q.len;
    head3.dst_mac = fixed3_q.dst_mac;
    head3.ethertype = fixed3_q.ethertype;
    head3.version = fixed3_q.version;
    head3.ihl = fixed3_q.ihl;
    head3.total = fixed3_q.total;
    head3.ttl = fixed3_q.ttl;
    head3.checksum = fixed3_q.checksum;
    head3.src = fixed3_q.src[31:24];
    head3.dst = fixed3_q.dst;
    head3.sum_ok = folded == 17'h0ffff && has_payload3_q;
    head3.from_cpu = arrival3_q.from_cpu;
    head3.copy = arrival3_q.copy;
    head3.net = arrival3_q.net;
    head3.vport = arrival3_q.vport;
    head3.cpu_out = arrival3_q.cpu_out;
  end
  always_ff @(posedge clk_i) begin
    head4_q <= head3;
    is_ipv4_q <= has_ipv4_3_q && fixed3_q.ethertype == EthertypeIpv4 && fixed3_q.version == 4'd4;
    is_ipip_q <= fixed3_q.protocol == ProtocolIpip;
    is_udp_q <= fixed3_q.protocol == ProtocolUdp && starts;
    ipip_ok_q <= starts && has_payload3_q && behind3_q >= 14'(Ipv4BytesMin) && extra3_q[ExtraIpVersion][15:12] == 4'd4;
    udp_ok_q <= has_payload3_q && behind3_q >= 14'(UdpBytes);
    is_vxlan_q <= extra3_q[ExtraUdpDst] == VxlanPort;
    vxlan_ok_q <= behind3_q >= VxlanMin && extra3_q[ExtraVxlanFlags][11] && extra3_q[ExtraEthertype] == EthertypeIpv4
                  && extra3_q[ExtraVxlanVersion][15:12] == 4'd4;
    ipip_dst_q <= {extra3_q[ExtraIpDst], extra3_q[ExtraIpDst+1]};
    vxlan_dst_q <= {extra3_q[ExtraVxlanDst], extra3_q[ExtraVxlanDst+1]};
    if (!rst_ni) end4_q <= 1'b0;
    else end4_q <= end3_q;
  end

  // Clock 5: the record, into its queue.
  logic        by_ipip, by_vxlan;
  logic [31:0] inner;
  assign by_ipip  = is_ipip_q;
  assign by_vxlan = is_udp_q && udp_ok_q && is_vxlan_q;
  assign inner    = by_ipip ? ipip_dst_q : by_vxlan ? vxlan_dst_q : head4_q.dst;
  always_comb begin
    head4 = head4_q;
    head4.inner_valid = is_ipv4_q && (!is_ipip_q || ipip_ok_q) && (!is_udp_q || udp_ok_q) && (!by_vxlan || vxlan_ok_q);
    head4.inner = inner & {32{head4.inner_valid}};
  end

  hue_fifo #(.Depth(RecordDepth), .Bits($bits(hue_head_t))) u_records (
    .clk_i, .rst_ni, .valid_i(end4_q), .ready_o(out_ready), .data_i(head4),
    .valid_o(m_valid_o), .ready_i(m_ready_i), .data_o(m_head_o), .room_o(record_room)
  );

  assign idle_o = !inside_q && !v1_q && !v2_q && !end3_q && !end4_q && !m_valid_o;

  logic unused;
  assign unused = ^{fixed3_q.src_mac, fixed3_q.tos, fixed3_q.id, fixed3_q.fragment_flags, fixed3_q.src[23:0], arrival3_q.tag,
                    head4_q.inner_valid, head4_q.inner, extra3_q[ExtraIpVersion][11:0], extra3_q[ExtraVxlanVersion][11:0], extra3_q[ExtraVxlanFlags][15:12],
                    extra3_q[ExtraVxlanFlags][10:0]};

`ifndef SYNTHESIS
  a_records_have_room: assert property (@(posedge clk_i) disable iff (!rst_ni) end4_q |-> out_ready);
  a_frames_are_framed: assert property (@(posedge clk_i) disable iff (!rst_ni)
    s_valid_i |-> s_first_i == !inside_q);
  a_latency: assert property (@(posedge clk_i) disable iff (!rst_ni) $past(end1_q, Latency - 1) |-> m_valid_o);
  a_stable: assert property (@(posedge clk_i) disable iff (!rst_ni)
    (m_valid_o && !m_ready_i) |=> (m_valid_o && $stable(m_head_o)));
`endif

endmodule
