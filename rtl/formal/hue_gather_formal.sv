// Proof harness of hue_gather: every frame gives one record, whose contents depend only on this frame's own bytes, and one tag with
// its first beat.
//
// Place: scripts/formal. Inputs are free, except that a frame has the length in its arrival record, and that the record and the port
// are stable during the frame. `mark_i` picks any one frame. The harness stores its first 128 bytes and parses them itself. Frames
// before and after it, and the bytes on the bus after its end, are arbitrary.
module hue_gather_formal
  import hue_pkg::*;
#(
  parameter int unsigned BusBytes = 64,
  parameter int unsigned RecordDepth = 8,  // as in the module
  parameter bit          Contents = 1      // check the contents of records; 0: their number
) (
  input logic                  clk_i,
  input logic                  rst_ni,
  input logic                  s_valid_i,
  input logic [8*BusBytes-1:0] s_data_i,
  input logic                  s_last_i,
  input logic [2:0]            s_port_i,
  input hue_arrival_t          s_arrival_i,
  input logic                  mark_i,
  input logic                  body_ready_i,
  input logic                  tag_ready_i,
  input logic                  m_ready_i
);
  logic                  s_ready_o, s_first_i, body_valid_o, tag_valid_o, m_valid_o, idle_o;
  logic [8*BusBytes-1:0] body_data_o;
  logic [31:0]           tag_o;
  hue_head_t             m_head_o;
  hue_gather #(.BusBytes(BusBytes)) u_dut (.*);

  // `frames_q`: frames that have begun, less records that have left.
  logic       begun_q, inside_q, stalled_q, fire, leaves;
  logic [5:0] frames_q;
  assign s_first_i = !inside_q;
  assign fire = s_valid_i && s_ready_o;
  assign leaves = m_valid_o && m_ready_i;

  // The marked frame: whether its beats are coming in, the number of records that leave before its own, its bytes (first byte lowest).
  localparam int unsigned Beats = 128 / BusBytes;
  logic                            marked_q, mark, taking_q;
  logic [5:0]                      before_q;
  logic [$clog2(Beats+1)-1:0]      beat_q;
  logic [10:0]                     beats_q;  // beats so far of the frame that comes in, marked or not
  logic [Beats-1:0][8*BusBytes-1:0] bytes_q;
  logic [2:0]                      port_q;
  hue_arrival_t                    arrival_q;
  assign mark = fire && s_first_i && mark_i && !marked_q;

  initial begun_q = 1'b0;
  always_ff @(posedge clk_i) begin
    begun_q <= 1'b1;
    if (fire && s_first_i) begin
      port_q <= s_port_i;
      arrival_q <= s_arrival_i;
    end
    if (!rst_ni) begin
      inside_q <= 1'b0;
      stalled_q <= 1'b0;
      frames_q <= '0;
      marked_q <= 1'b0;
      taking_q <= 1'b0;
      bytes_q <= '0;
      beats_q <= '0;
    end else begin
      if (fire) inside_q <= !s_last_i;
      if (fire) beats_q <= s_last_i ? '0 : beats_q + 11'd1;
      stalled_q <= m_valid_o && !m_ready_i;
      frames_q <= frames_q + 6'(fire && s_first_i) - 6'(leaves);
      if (mark) begin
        marked_q <= 1'b1;
        before_q <= frames_q - 6'(leaves);
        bytes_q[0] <= s_data_i;
        beat_q <= 1;
        taking_q <= !s_last_i;
      end else if (marked_q) begin
        if (leaves) before_q <= before_q - 6'd1;
        if (fire && taking_q && 32'(beat_q) < Beats) begin
          bytes_q[beat_q] <= s_data_i;
          beat_q <= beat_q + 1'b1;
        end
        if (fire && s_last_i) taking_q <= 1'b0;
        if (leaves && before_q == '0) marked_q <= 1'b0;
      end
    end
  end

  // The record that a frame must give.
  typedef logic [127:0][7:0] bytes_t;
  function automatic logic [15:0] half(bytes_t f, logic [6:0] at);
    return {f[at], f[at+7'd1]};
  endfunction

  // Whether the checksum holds: the sum of the header's half words, with zeros for all others. They are added in the module's order,
  // four at a time, so that the solver need not discover that the order does not matter.
  function automatic logic sum_holds(bytes_t f, logic [5:0] end_half);
    logic [20:0] sum, beat_sum;
    logic [17:0] four;
    logic [16:0] folded;
    sum = '0;
    for (int unsigned beat = 0; beat < Beats; beat++) begin
      beat_sum = '0;
      for (int unsigned g = 0; g < BusBytes / 8; g++) begin
        four = '0;
        for (int unsigned t = 0; t < 4; t++) begin
          if (beat * BusBytes / 2 + 4 * g + t >= 7 && beat * BusBytes / 2 + 4 * g + t < 32'(end_half)) begin
            four = four + 18'(half(f, 7'(beat * BusBytes + 8 * g + 2 * t)));
          end
        end
        beat_sum = beat_sum + 21'(four);
      end
      sum = sum + beat_sum;
    end
    folded = 17'(sum[15:0]) + 17'(sum[20:16]);
    return folded == 17'h0ffff;
  endfunction

  function automatic hue_head_t record(bytes_t f, hue_arrival_t arrival, logic [2:0] port);
    hue_head_t   r;
    logic [13:0] len;
    logic [6:0]  payload;  // offset of the payload
    logic [13:0] present;  // bytes of payload in the frame
    logic        has_payload;
    len = arrival.len == LenTooLong ? '0 : arrival.len;
    r = '0;
    r.time_ns = arrival.time_ns;
    r.port = port;
    r.len = arrival.len;
    {r.from_cpu, r.copy, r.net, r.vport, r.cpu_out} = {arrival.from_cpu, arrival.copy, arrival.net, arrival.vport, arrival.cpu_out};
    if (len >= 14'd14) begin
      r.dst_mac = {half(f, 0), half(f, 2), half(f, 4)};
      r.ethertype = half(f, 12);
    end
    if (len >= 14'd34) begin
      {r.version, r.ihl} = f[14];
      r.total = half(f, 16);
      r.ttl = f[22];
      r.checksum = half(f, 24);
      r.src = f[26];
      r.dst = {half(f, 30), half(f, 32)};
    end
    payload = 7'd14 + {1'b0, r.ihl, 2'b00};
    has_payload = r.ihl >= 4'd5 && len >= 14'(payload);
    present = len - 14'(payload);
    r.sum_ok = has_payload && sum_holds(f, payload[6:1]);
    // The inner address by which design select finds the network (crates/demux/src/inner.rs).
    if (len >= 14'd34 && r.ethertype == EthertypeIpv4 && r.version == 4'd4) begin
      if (f[23] == ProtocolIpip) begin
        r.inner_valid = {f[20][4:0], f[21]} == '0 && has_payload && present >= 14'd20 && f[payload][7:4] == 4'd4;
        r.inner = {half(f, payload + 7'd16), half(f, payload + 7'd18)};
      end else if (f[23] == ProtocolUdp && {f[20][4:0], f[21]} == '0) begin
        r.inner_valid = has_payload && present >= 14'd8;
        r.inner = r.dst;
        if (r.inner_valid && half(f, payload + 7'd2) == VxlanPort) begin
          r.inner_valid = present >= 14'd50 && f[payload+7'd8][3] && half(f, payload + 7'd28) == EthertypeIpv4 &&
                          f[payload+7'd30][7:4] == 4'd4;
          r.inner = {half(f, payload + 7'd46), half(f, payload + 7'd48)};
        end
      end else begin
        r.inner_valid = 1'b1;
        r.inner = r.dst;
      end
    end
    if (!r.inner_valid) r.inner = '0;
    return r;
  endfunction

  // Arrival record and port of the marked frame, from its first beat.
  hue_arrival_t marked_arrival_q;
  logic [2:0]   marked_port_q;
  hue_head_t    expected;
  always_ff @(posedge clk_i) if (mark) {marked_arrival_q, marked_port_q} <= {s_arrival_i, s_port_i};
  assign expected = record(bytes_q, marked_arrival_q, marked_port_q);

  // All fields except those that take the solver longest.
  function automatic hue_head_t others(hue_head_t r);
    {r.sum_ok, r.inner_valid, r.inner} = '0;
    return r;
  endfunction

  always_comb begin
    assume (rst_ni == begun_q);
    if (begun_q && s_valid_i) begin
      if (inside_q) assume (s_arrival_i == arrival_q && s_port_i == port_q);
      assume (s_last_i == (beats_q + 11'd1 == beats_of(s_arrival_i.len, BusBytes)));
      assume (s_arrival_i.len <= LenTooLong);
    end
    if (begun_q) begin
      // One record a frame, however long it waits.
      if (!Contents && m_valid_o) assert (frames_q != '0);
      if (!Contents && idle_o) assert (frames_q == '0);
      if (!Contents && stalled_q) assert (m_valid_o);
      // No more frames are taken than there are places for records, plus the one that is coming in.
      if (!Contents) assert (32'(frames_q) <= RecordDepth + 1);
      // Body and tag leave only when there is room, one tag for each frame.
      if (body_valid_o) assert (body_ready_i && body_data_o == s_data_i);
      assert (body_valid_o == fire && tag_valid_o == (fire && s_first_i));
      if (tag_valid_o) assert (tag_ready_i && tag_o == s_arrival_i.tag);
      // The marked frame's record.
      if (Contents && marked_q && before_q == '0 && m_valid_o) begin
        assert (m_head_o.sum_ok == expected.sum_ok);
        assert ({m_head_o.inner_valid, m_head_o.inner} == {expected.inner_valid, expected.inner});
        assert (others(m_head_o) == others(expected));
      end
    end
  end
endmodule
