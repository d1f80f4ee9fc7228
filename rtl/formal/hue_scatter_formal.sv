// Proof harness of hue_scatter: the output for a verdict depends only on this verdict and its frame's body and tag.
//
// Place: scripts/formal. Inputs are free except for what the stages and the buffer guarantee. `mark_i` picks a verdict of the frame
// with number `frame_i`; a frame that leaves several times has a verdict for each copy. That frame's body and tag are constants; all other bodies, tags and verdicts are free.
module hue_scatter_formal
  import hue_pkg::*;
#(
  parameter int unsigned BusBytes = 16,
  parameter int unsigned Beats = 2,
  localparam int unsigned BusBits = 8 * BusBytes
) (
  input logic                    clk_i,
  input logic                    rst_ni,
  // Sampled during reset: any constants.
  input logic [2:0]              frame_i,
  input logic [Beats-1:0][BusBits-1:0]  body_i,
  input logic [31:0]             tag_i,
  // Free.
  input logic                    valid_i,
  input hue_verdict_t            verdict_i,
  input logic                    refused_i,
  input logic                    mark_i,
  input logic                    fill_i,
  input logic [BusBits-1:0]      other_body_i,
  input logic [31:0]             other_tag_i,
  input logic                    ready_i
);
  localparam int unsigned BeatBits = $clog2(Beats);
  localparam int unsigned ByteBits = $clog2(BusBytes + 1);
  localparam int unsigned FilledMax = 8;

  logic            begun_q, verdict_ready, tag_take, idle, read, release_, m_valid, m_last, m_to_cpu, unused;
  logic [2:0]      frame_q, in_frame_q, out_frame_q;
  logic [Beats-1:0][BusBits-1:0] body_q;
  logic [31:0]     tag_q;
  logic [10:0]     offset, release_beats;
  logic [3:0]      filled_q;
  logic [ByteBits-1:0] m_bytes;
  logic [BusBits-1:0]  data_q, m_data;
  hue_departure_t  departure;
  logic [1:0]      tunnel;
  hue_cpu_header_t header;

  hue_scatter #(.BusBytes(BusBytes), .FilledBits(4)) u_dut (
    .clk_i, .rst_ni, .verdict_valid_i(valid_i), .verdict_ready_o(verdict_ready), .verdict_i, .refused_i,
    .tag_i(out_frame_q == frame_q ? tag_q : other_tag_i), .tag_take_o(tag_take), .filled_i(filled_q), .read_o(read),
    .offset_o(offset), .data_i(data_q), .release_o(release_), .release_beats_o(release_beats),
    .m_valid_o(m_valid), .m_ready_i(ready_i), .m_data_o(m_data), .m_last_o(m_last), .m_bytes_o(m_bytes),
    .m_departure_o(departure), .m_to_cpu_o(m_to_cpu), .m_tunnel_o(tunnel), .m_header_o(header), .idle_o(idle)
  );
  hue_stream_rules #(
    .Bits(BusBits + $bits(hue_departure_t) + 1 + $bits(hue_cpu_header_t)), .BusBytes(BusBytes)
  ) u_rules (
    .clk_i, .rst_ni, .valid_i(m_valid), .ready_i, .last_i(m_last), .bytes_i(m_bytes),
    .payload_i({m_data, departure, m_to_cpu, header})
  );

  // Verdicts that send a frame which has not left yet, those before the marked one, and the beat that leaves next.
  logic         take, sends, leaves, marked_q, sent_q, stalled_q, more_q;
  logic [13:0]  len_q;  // of the frame of the verdict before
  logic [3:0]   inside_q, before_q;
  logic [BeatBits-1:0] out_beat_q;
  hue_verdict_t mark_q, verdict_q;
  logic [7:0][10:0] beats_q;  // of frames, by number
  assign take = valid_i && verdict_ready;
  assign sends = verdict_i.verdict == VerdictForward || verdict_i.verdict == VerdictPunt;
  assign leaves = m_valid && ready_i && m_last;

  initial begun_q = 1'b0;
  always_ff @(posedge clk_i) begin
    begun_q <= 1'b1;
    verdict_q <= verdict_i;
    if (read) data_q <= out_frame_q == frame_q ? body_q[offset[BeatBits-1:0]] : other_body_i;
    if (!rst_ni) begin
      frame_q <= frame_i;
      body_q <= body_i;
      tag_q <= tag_i;
      in_frame_q <= '0;
      out_frame_q <= '0;
      filled_q <= '0;
      inside_q <= '0;
      marked_q <= 1'b0;
      sent_q <= 1'b0;
      stalled_q <= 1'b0;
      more_q <= 1'b0;
      out_beat_q <= '0;
    end else begin
      stalled_q <= valid_i && !verdict_ready;
      if (take) {more_q, len_q} <= {verdict_i.more, verdict_i.len};
      in_frame_q <= in_frame_q + 3'(take && !verdict_i.more);
      if (take) beats_q[in_frame_q] <= beats_of(verdict_i.len, BusBytes);
      out_frame_q <= out_frame_q + 3'(release_);
      filled_q <= filled_q + 4'(fill_i && filled_q < 4'(FilledMax)) - (release_ ? release_beats[3:0] : 4'd0);
      inside_q <= inside_q + 4'(take && sends) - 4'(leaves);
      if (m_valid && ready_i) out_beat_q <= m_last ? '0 : out_beat_q + 1'b1;
      if (take && sends && mark_i && !sent_q && in_frame_q == frame_q) begin
        marked_q <= 1'b1;
        sent_q <= 1'b1;
        mark_q <= verdict_i;
        before_q <= inside_q - 4'(leaves);
      end else if (marked_q && leaves) begin
        before_q <= before_q - 1'b1;
        marked_q <= before_q != '0;
      end
    end
  end

  // The 48 splicing bits for the next hop: those of this hop go, and the last hop's are repeated.
  function automatic logic [47:0] field(logic [47:0] bits, logic [2:0] shift);
    logic [47:0] last;
    last = bits & ~(48'hffff_ffff_ffff >> shift);
    return bits >> shift | last;
  endfunction

  // The frame as the verdict requires it to leave: byte 0 of a beat lowest.
  logic [8*BusBytes*Beats-1:0] whole;
  logic [BusBits-1:0] wanted, mask;
  logic [47:0] bits;
  logic [13:0] len;
  assign len = mark_q.note && mark_q.len > 14'd16 ? 14'd16 : mark_q.len;
  always_comb begin
    whole = body_q;
    bits = '0;
    if (mark_q.verdict == VerdictForward && mark_q.edit != EditNone) begin
      for (int unsigned b = 0; b < 6; b++) begin
        // Kind extract keeps an address in whose place its entry has 0.
        if (mark_q.edit != EditMacs || mark_q.dst_mac != '0) whole[8*b+:8] = mark_q.dst_mac[8*(5-b)+:8];
        if (mark_q.edit != EditMacs || mark_q.src_mac != '0) whole[8*(6+b)+:8] = mark_q.src_mac[8*(5-b)+:8];
      end
    end
    if (mark_q.verdict == VerdictForward && mark_q.edit == EditIpv4) begin
      whole[8*22+:8] = mark_q.ttl;
      whole[8*24+:8] = mark_q.checksum[15:8];
      whole[8*25+:8] = mark_q.checksum[7:0];
    end
    if (mark_q.verdict == VerdictForward && mark_q.edit == EditRofl) whole[8*16+:8] = mark_q.ttl;
    // The top of the stack: the new label in place of the old one, traffic class and bottom stay, then the TTL.
    if (mark_q.verdict == VerdictForward && mark_q.edit == EditMpls) begin
      {whole[8*14+:8], whole[8*15+:8], whole[8*16+:8], whole[8*17+:8]} = {mark_q.label, whole[8*16+:4], mark_q.ttl};
    end
    if (mark_q.verdict == VerdictForward && mark_q.edit == EditIpv4 && mark_q.splice.on) begin
      for (int unsigned b = 0; b < 6; b++) bits[8*(5-b)+:8] = whole[8*(SpliceShimByte+b)+:8];
      bits = field(bits, mark_q.splice.shift);
      if (mark_q.splice.shim) begin
        for (int unsigned b = 0; b < 6; b++) whole[8*(SpliceShimByte+b)+:8] = bits[8*(5-b)+:8];
      end else begin
        {whole[8*18+:8], whole[8*19+:8]} = spliced_id({whole[8*18+:8], whole[8*19+:8]}, mark_q.splice.shift);
      end
    end
    if (mark_q.verdict == VerdictForward && mark_q.edit == EditIpv6) whole[8*21+:8] = mark_q.ttl;
    wanted = whole[BusBits*out_beat_q+:BusBits];
    for (int unsigned b = 0; b < BusBytes; b++) mask[8*b+:8] = b < 32'(m_bytes) ? '1 : '0;
  end

  always_comb begin
    assume (rst_ni == begun_q);
    // What the stages guarantee.
    assume (verdict_i.edit inside {EditNone, EditIpv4, EditIpv6, EditMacs, EditRofl, EditMpls});
    assume (verdict_i.splice.shift <= 3'd4);
    if (begun_q && stalled_q) assume (valid_i && verdict_i == verdict_q);
    // A note is no frame's last copy.
    if (begun_q && valid_i && verdict_i.note) assume (verdict_i.more);
    // Copies of one frame have its length.
    if (begun_q && valid_i && more_q) assume (verdict_i.len == len_q);
    if (begun_q && valid_i) assume (verdict_i.len >= 14'(FrameBytesMin) && verdict_i.len <= 14'(Beats * BusBytes));
    if (begun_q) begin
      // Only beats that are in the buffer are read.
      if (read) assert (offset < 11'(filled_q));
      // Exactly the frame's own body is released, and its tag, once and with its last copy: see in_frame_q.
      if (release_) assert (release_beats <= 11'(filled_q) && tag_take && release_beats == beats_q[out_frame_q]);
      // A frame leaves only for a verdict that sends.
      assert (!m_valid || inside_q != '0);
      if (idle) assert (inside_q == '0);
      if (m_valid && marked_q && before_q == '0) begin
        assert (((m_data ^ wanted) & mask) == '0);
        assert (m_last == (14'(out_beat_q) * 14'(BusBytes) + 14'(m_bytes) == len));
        assert (departure.net == mark_q.net && departure.tag == (mark_q.note ? '0 : tag_q) && departure.len == len);
        assert (departure.port == (mark_q.verdict == VerdictPunt ? {1'b1, mark_q.net[1:0]} : mark_q.port_out));
        assert (tunnel == mark_q.tunnel && m_to_cpu == (departure.port[2] && tunnel == TunnelNone));
        assert (header == hue_cpu_header_t'{
          vid: 16'(mark_q.vid), net: mark_q.net, vport: mark_q.vport, outcome: 8'(mark_q.outcome), port_in: 8'(mark_q.port_in),
          port_out: 8'(mark_q.port_out), flags: mark_q.note ? CpuFlagNote : '0, len: 16'(len), reserved: '0
        });
      end
    end
  end
  assign unused = ^header;
endmodule
