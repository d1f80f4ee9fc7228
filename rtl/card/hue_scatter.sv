// Header scatter: carries out the stages' verdicts on the bodies in the packet buffer.
//
// Place: hue_admit and packet buffer → scatter → hue_cpu_insert → output queues. A body is read once for each copy, or not at all. Edits of
// a forwarded frame, by its kind: the MAC pair, TTL, hop limit or hop budget, header checksum, label. A frame that leaves several times has a verdict for
// each copy (hue_copies), and its body stays until the last. Of a note, only the start leaves.
// Latency: 3 clocks from `verdict_valid_i` to the first beat out. Throughput: a beat out a clock; a verdict that drops
// takes 1 clock. So 64-byte frames every 8, 2 or 1 clocks.

module hue_scatter
  import hue_pkg::*;
#(
  parameter int unsigned BusBytes = 8,
  parameter int unsigned FilledBits = 13,
  localparam int unsigned ByteBits = $clog2(BusBytes + 1)
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,

  input  logic                  verdict_valid_i,
  output logic                  verdict_ready_o,
  input  hue_verdict_t          verdict_i,
  input  logic                  refused_i,      // refused by hue_admit: dropped because there was no room
  // Tags in the order of frames: a frame's tag is available when its verdict is.
  input  logic [31:0]           tag_i,
  output logic                  tag_take_o,

  input  logic [FilledBits-1:0] filled_i,
  output logic                  read_o,
  output logic [10:0]           offset_o,
  input  logic [8*BusBytes-1:0] data_i,
  output logic                  release_o,
  output logic [10:0]           release_beats_o,

  output logic                  m_valid_o,
  input  logic                  m_ready_i,
  output logic [8*BusBytes-1:0] m_data_o,
  output logic                  m_last_o,
  output logic [ByteBits-1:0]   m_bytes_o,      // BusBytes unless last
  output hue_departure_t        m_departure_o,  // stable over the frame; len without the CPU header
  output logic                  m_to_cpu_o,
  output logic [1:0]            m_tunnel_o,     // tunnel_e: the frame is for the loop, whatever its port
  output hue_cpu_header_t       m_header_o,     // sent before the frame when m_to_cpu_o
  output logic                  idle_o
);

  localparam int unsigned OutDepth = 8;
  localparam int unsigned RoomBits = $clog2(OutDepth + 1);

  // A skid buffer keeps the verdicts' timing apart from that of the stages.
  logic         v_valid, v_refused, done;
  hue_verdict_t v;
  logic [10:0]  beats, beats_in, sent_in, last_index;
  assign beats_in = beats_of(verdict_i.len, BusBytes);
  assign sent_in  = beats_of(sent_len(verdict_i.note, verdict_i.len), BusBytes);
  hue_skid #(.Bits($bits(hue_verdict_t) + 23)) u_verdict (
    .clk_i, .rst_ni, .valid_i(verdict_valid_i), .ready_o(verdict_ready_o), .data_i({refused_i, verdict_i, beats_in, sent_in - 11'd1}),
    .valid_o(v_valid), .ready_i(done), .data_o({v_refused, v, beats, last_index})
  );

  // What accompanies a beat while it is read. Edits are in the order of the frame: byte 0 is the highest.
  typedef struct packed {
    logic        last;
    logic [10:0] index;
    logic [31:0] tag;
    logic [1:0]  verdict;
    logic [4:0]  outcome;
    logic [7:0]  net;
    logic [11:0] vid;
    logic [7:0]  vport;
    logic [2:0]  port_in;
    logic [2:0]  port_out;
    logic [13:0] len;
    logic        note;
    logic [1:0]  tunnel;
    logic [2:0]  edit;      // EditNone unless forwarded
    logic [1:0]  macs_on;   // which of the MAC addresses are written, destination first
    logic [95:0] macs;
    logic [7:0]  ttl;
    logic [15:0] checksum;
    splice_edit_t splice;
    logic [19:0]  label;
  } read_t;
  logic  r_valid_q;
  read_t r_q;

  // Reading
  logic                sends, last_beat, out_ready;
  logic [10:0]         index_q;
  logic [RoomBits-1:0] room;

  assign sends = v.verdict == VerdictForward || v.verdict == VerdictPunt;
  assign last_beat = index_q == last_index;
  assign read_o = v_valid && sends && 32'(filled_i) > 32'(index_q) && room > RoomBits'(r_valid_q);
  assign offset_o = index_q;
  assign done = v_valid && (sends ? read_o && last_beat : v.more || 32'(filled_i) >= 32'(beats));
`ifdef HUE_PLANT_SCATTER_SHIFT
  assign release_beats_o = sends || beats == 11'd1 ? beats : beats - 11'd1;  // for scripts/rtl-test: the bench must find this
`else
  assign release_beats_o = beats;
`endif
`ifdef HUE_PLANT_SCATTER_MORE
  assign release_o = done;  // for scripts/rtl-test and scripts/formal
`else
  assign release_o = done && !v.more;  // the next copy reads the same body
`endif
  assign tag_take_o = release_o;

  always_ff @(posedge clk_i) begin
    if (read_o) begin
      r_q.last <= last_beat;
      r_q.index <= index_q;
      r_q.tag <= v.note ? '0 : tag_i;  // a note is no packet of the network
      r_q.note <= v.note;
      r_q.tunnel <= v.tunnel;
      r_q.verdict <= v.verdict;
      r_q.outcome <= v.outcome;
      r_q.net <= v.net;
      r_q.vid <= v.vid;
      r_q.vport <= v.vport;
      r_q.port_in <= v.port_in;
      r_q.port_out <= v.port_out;
`ifdef HUE_PLANT_SCATTER_NOTE
      r_q.len <= v.len;  // for scripts/formal
`else
      r_q.len <= sent_len(v.note, v.len);
`endif
      r_q.edit <= v.verdict == VerdictForward ? v.edit : EditNone;
      r_q.macs_on <= v.edit != EditMacs ? '1 : {v.dst_mac != '0, v.src_mac != '0};
      r_q.macs <= {v.dst_mac, v.src_mac};
      r_q.ttl <= v.ttl;
      r_q.checksum <= v.checksum;
      r_q.label <= v.label;
      r_q.splice <= v.verdict == VerdictForward && v.edit == EditIpv4 ? v.splice : '0;
    end
    if (!rst_ni) begin
      index_q <= '0;
      r_valid_q <= 1'b0;
    end else begin
      r_valid_q <= read_o;
      if (read_o) index_q <= last_beat ? '0 : index_q + 11'd1;
    end
  end

  // Applying the edits
  localparam int unsigned MacBytes = 12;
  localparam int unsigned LabelByte = 14;  // three bytes; the lower half of the last one stays: traffic class and bottom of the stack
  localparam int unsigned BudgetByte = 16;
  localparam int unsigned LabelTtlByte = 17;
  localparam int unsigned HopLimitByte = 21;
  localparam int unsigned TtlByte = 22;
  localparam int unsigned ChecksumByte = 24;
  localparam int unsigned EditBytes = 26;
  logic [8*BusBytes-1:0] edited;
  // Splicing bits move down within their field, and the highest ones stay. A narrow bus divides the field behind the header.
  logic [7:0]  before_q;  // the last byte of the beat before
  logic [15:0] pair;
  logic [7:0]  stay;
  always_ff @(posedge clk_i) if (r_valid_q) before_q <= data_i[8*BusBytes-1-:8];
  always_comb begin
    edited = data_i;
    pair   = '0;
    stay   = ~(8'hff >> r_q.splice.shift);
    for (int unsigned b = SpliceIdByte; b < SpliceIdByte + 2; b++) begin
      if (r_q.index == 11'(b / BusBytes) && r_q.splice.on && !r_q.splice.shim) begin
        pair = spliced_id({data_i[8*(SpliceIdByte%BusBytes)+:8], data_i[8*((SpliceIdByte+1)%BusBytes)+:8]}, r_q.splice.shift);
        edited[8*(b%BusBytes)+:8] = b == SpliceIdByte ? pair[15:8] : pair[7:0];
      end
    end
    for (int unsigned b = SpliceShimByte; b < SpliceShimByte + SpliceShimBytes; b++) begin
      if (r_q.index == 11'(b / BusBytes) && r_q.splice.on && r_q.splice.shim) begin
        pair[15:8] = b % BusBytes == 0 ? before_q : data_i[8*((b+BusBytes-1)%BusBytes)+:8];
        pair[7:0]  = data_i[8*(b%BusBytes)+:8];
        if (b == SpliceShimByte) edited[8*(b%BusBytes)+:8] = pair[7:0] >> r_q.splice.shift | pair[7:0] & stay;
        else edited[8*(b%BusBytes)+:8] = 8'(pair >> r_q.splice.shift);
      end
    end
    for (int unsigned b = 0; b < EditBytes; b++) begin
      if (r_q.index == 11'(b / BusBytes)) begin
        if (b < MacBytes && r_q.edit != EditNone && r_q.macs_on[b < MacBytes / 2]) edited[8*(b%BusBytes)+:8] = r_q.macs[8*((2*MacBytes-1-b)%MacBytes)+:8];
        if (b == BudgetByte && r_q.edit == EditRofl) edited[8*(b%BusBytes)+:8] = r_q.ttl;
        if (r_q.edit == EditMpls) begin
          if (b == LabelByte) edited[8*(b%BusBytes)+:8] = r_q.label[19:12];
          if (b == LabelByte + 1) edited[8*(b%BusBytes)+:8] = r_q.label[11:4];
          if (b == LabelByte + 2) edited[8*(b%BusBytes)+4+:4] = r_q.label[3:0];
          if (b == LabelTtlByte) edited[8*(b%BusBytes)+:8] = r_q.ttl;
        end
        if (b == HopLimitByte && r_q.edit == EditIpv6) edited[8*(b%BusBytes)+:8] = r_q.ttl;
        if (b == TtlByte && r_q.edit == EditIpv4) edited[8*(b%BusBytes)+:8] = r_q.ttl;
        if (b == ChecksumByte && r_q.edit == EditIpv4) edited[8*(b%BusBytes)+:8] = r_q.checksum[15:8];
        if (b == ChecksumByte + 1 && r_q.edit == EditIpv4) edited[8*(b%BusBytes)+:8] = r_q.checksum[7:0];
      end
    end
  end

  // Bytes of the last beat: 1 .. BusBytes, or 0 for an empty frame.
  localparam int unsigned LaneBits = $clog2(BusBytes);
  logic [LaneBits-1:0] rest;
  assign rest = r_q.len[LaneBits-1:0];

  typedef struct packed {
    logic [8*BusBytes-1:0] data;
    logic                  last;
    logic [ByteBits-1:0]   bytes;
    logic [31:0]           tag;
    logic [1:0]            verdict;
    logic [4:0]            outcome;
    logic [7:0]            net;
    logic [11:0]           vid;
    logic [7:0]            vport;
    logic [2:0]            port_in;
    logic [2:0]            port_out;
    logic [13:0]           len;
    logic                  note;
    logic [1:0]            tunnel;
  } out_t;
  out_t out, sent;
  always_comb begin
    out.data = edited;
    out.last = r_q.last;
    out.bytes = r_q.last && (rest != '0 || r_q.len == '0) ? ByteBits'(rest) : ByteBits'(BusBytes);
    out.tag = r_q.tag;
    out.verdict = r_q.verdict;
    out.outcome = r_q.outcome;
    out.net = r_q.net;
    out.vid = r_q.vid;
    out.vport = r_q.vport;
    out.port_in = r_q.port_in;
    out.port_out = r_q.port_out;
    out.len = r_q.len;
    out.note = r_q.note;
    out.tunnel = r_q.tunnel;
  end

  hue_fifo #(.Depth(OutDepth), .Bits($bits(out_t))) u_out (
    .clk_i, .rst_ni, .valid_i(r_valid_q), .ready_o(out_ready), .data_i(out),
    .valid_o(m_valid_o), .ready_i(m_ready_i), .data_o(sent), .room_o(room)
  );

  assign m_data_o = sent.data;
  assign m_last_o = sent.last;
  assign m_bytes_o = sent.bytes;
  assign m_tunnel_o = sent.tunnel;
  assign m_to_cpu_o = m_departure_o.port >= 3'(MacPorts) && sent.tunnel == TunnelNone;
  always_comb begin
    m_departure_o.port = sent.verdict == VerdictPunt ? 3'(MacPorts) + 3'(sent.net[1:0]) : sent.port_out;
    m_departure_o.net = sent.net;
    m_departure_o.tag = sent.tag;
    m_departure_o.len = sent.len;
    m_header_o = '0;
    m_header_o.vid = 16'(sent.vid);
    m_header_o.net = sent.net;
    m_header_o.vport = sent.vport;
    m_header_o.outcome = 8'(sent.outcome);
    m_header_o.port_in = 8'(sent.port_in);
    m_header_o.port_out = 8'(sent.port_out);
    m_header_o.flags = sent.note ? CpuFlagNote : '0;
    m_header_o.len = 16'(sent.len);
  end
  assign idle_o = !v_valid && !r_valid_q && !m_valid_o;
`ifndef HUE_TWIN
  logic unused;
  assign unused = ^{v_refused, v.flood, v.ports};
`else
  logic first_copy, unused_flood;
  assign unused_flood = v.flood;
  assign first_copy = (v.ports & (MacPorts'(1) << v.port_out)) != '0 && (v.ports & ((MacPorts'(1) << v.port_out) - 1'b1)) == '0;
  always_ff @(posedge clk_i) begin
    if (rst_ni && done && !v.note && first_copy && 32'($countones(v.ports)) > 1) begin
      hue_card_ended(tag_i, 32'(v.net), EndedFlooded + 32'($countones(v.ports)));
    end
    if (rst_ni && done && !sends && !v.note) begin
      if (v_refused) hue_card_ended(tag_i, 32'(v.net), EndedRefused);
      else if (v.verdict == VerdictUnclaimed) hue_card_ended(tag_i, 32'(v.net), EndedUnclaimed + 32'(v.outcome));
      else hue_card_ended(tag_i, 32'(v.net), EndedDropped + 32'(v.outcome));
    end
  end
`endif

`ifndef SYNTHESIS
  a_out_has_room: assert property (@(posedge clk_i) disable iff (!rst_ni) r_valid_q |-> out_ready);
  a_note_comes_first: assert property (@(posedge clk_i) disable iff (!rst_ni) v_valid && v.note |-> v.more);
  a_whole_frames_only: assert property (@(posedge clk_i) disable iff (!rst_ni)
    (v_valid && sends) |-> v.len >= 14'(FrameBytesMin) && v.len <= 14'(FrameBytesMax));
  a_stable: assert property (@(posedge clk_i) disable iff (!rst_ni)
    (m_valid_o && !m_ready_i) |=> (m_valid_o && $stable(m_data_o) && $stable(m_last_o) && $stable(m_departure_o)));
  a_latency: assert property (@(posedge clk_i) disable iff (!rst_ni)
    $past(read_o, 2) |-> m_valid_o || $past(m_valid_o));
`endif

endmodule
