// Proof harness of hue_input_queue: each frame that is taken leaves once, whole, in order, with its arrival record. Of a frame that is
// dropped, nothing leaves; of a frame that is too long, only the first beat.
//
// Place: scripts/formal. The input obeys the rules of a stream. The harness stores the beats of the frame that begins in clock
// `Start`; any number of frames may come before it.
module hue_input_queue_formal
  import hue_pkg::*;
#(
  parameter int unsigned BusBytes = 2,
  parameter int unsigned Beats = 4,
  parameter int unsigned Frames = 4,
  parameter int unsigned Start = 4,
  localparam int unsigned ByteBits = $clog2(BusBytes + 1)
) (
  input logic                  clk_i,
  input logic                  rst_ni,
  input logic                  offline_i,
  input logic                  s_valid_i,
  input logic [8*BusBytes-1:0] s_data_i,
  input logic [ByteBits-1:0]   s_bytes_i,
  input logic                  s_last_i,
  input hue_arrival_t          s_arrival_i,
  input logic [1:0]            s_port_i,
  input logic                  m_ready_i
);
  logic                  s_ready_o, m_valid_o, m_last_o, taken_o, dropped_o, idle_o;
  logic [8*BusBytes-1:0] m_data_o;
  hue_arrival_t          m_arrival_o;
  hue_class_t            m_class_o;
  logic [15:0]           taken_bytes_o;
  logic [1:0]            m_port_o, taken_port_o;
  hue_input_queue #(.BusBytes(BusBytes), .Beats(Beats), .Frames(Frames)) u_dut (.*);

  hue_stream_rules #(.Assume(1'b1), .AllowEmpty(1'b1), .Bits(8 * BusBytes + 2 + $bits(hue_arrival_t)), .BusBytes(BusBytes)) u_in (
    .clk_i, .rst_ni, .valid_i(s_valid_i), .ready_i(s_ready_o), .last_i(s_last_i), .bytes_i(s_bytes_i),
    .payload_i({s_data_i, s_port_i, s_arrival_i})
  );
  hue_stream_rules #(.Bits(8 * BusBytes + 2 + $bits(hue_arrival_t)), .BusBytes(BusBytes)) u_out (
    .clk_i, .rst_ni, .valid_i(m_valid_o), .ready_i(m_ready_i), .last_i(m_last_o), .bytes_i(ByteBits'(BusBytes)),
    .payload_i({m_data_o, m_port_o, m_arrival_o})
  );

  // The frame that comes in: its bytes including this beat; whether the card was offline, and no other frame inside, in all its beats.
  logic        begun_q, in_q, s_fire, m_fire, ends, leaves, offline_q, alone_q, alone;
  logic [15:0] bytes_q, bytes;
  logic [3:0]  frames_q;  // frames taken that have not left
  assign s_fire = s_valid_i && s_ready_o;
  assign m_fire = m_valid_o && m_ready_i;
  assign ends = s_fire && s_last_i;
  assign leaves = m_fire && m_last_o;
  assign bytes = (in_q ? bytes_q : '0) + 16'(s_bytes_i);
  assign alone = frames_q == '0 && (!in_q || alone_q);

  // The marked frame and its progress: how many frames are older, and which of its beats leaves next.
  localparam int unsigned Kept = (FrameBytesMax + BusBytes - 1) / BusBytes;
  typedef logic [$clog2(Kept+1)-1:0] at_t;
  logic                            marked_q, mark, coming_q;
  logic [4:0]                      clock_q;
  logic [3:0]                      older_q;
  logic [Kept-1:0][8*BusBytes-1:0] beats_q;
  at_t                             in_at_q, out_at_q, last_at;
  hue_arrival_t                    arrival_q, arrival;
  logic [15:0]                     marked_bytes_q;
  logic [1:0]                      port_q, in_port_q;
  logic                            now;  // the marked frame is at the output
  assign mark = s_fire && !in_q && clock_q == 5'(Start);
  assign now = marked_q && !coming_q && older_q == '0 && m_valid_o;
  always_comb begin
    arrival = arrival_q;
    arrival.len = 32'(marked_bytes_q) > FrameBytesMax ? LenTooLong : marked_bytes_q[13:0];
    last_at = '0;
    if (32'(marked_bytes_q) <= FrameBytesMax && marked_bytes_q != '0) last_at = at_t'((32'(marked_bytes_q) - 1) / BusBytes);
  end

  initial begun_q = 1'b0;
  always_ff @(posedge clk_i) begin
    begun_q <= 1'b1;
    if (s_fire) bytes_q <= bytes;
    if (s_fire && !in_q) in_port_q <= s_port_i;
    if (s_fire) offline_q <= offline_i && (!in_q || offline_q);
    if (!rst_ni) begin
      in_q <= 1'b0;
      frames_q <= '0;
      marked_q <= 1'b0;
      clock_q <= '0;
    end else begin
      clock_q <= clock_q + 5'd1;
      if (s_fire) in_q <= !s_last_i;
      if (s_valid_i) alone_q <= alone;
      frames_q <= frames_q + 4'(taken_o) - 4'(leaves);
      if (mark) begin
        marked_q <= !dropped_o;
        coming_q <= !s_last_i;
        arrival_q <= s_arrival_i;
        port_q <= s_port_i;
        beats_q[0] <= s_data_i;
        in_at_q <= 1;
        out_at_q <= '0;
        marked_bytes_q <= bytes;
        older_q <= frames_q - 4'(leaves);
      end else if (marked_q) begin
        if (coming_q && s_fire) begin
          if (32'(in_at_q) < Kept) begin
            beats_q[in_at_q] <= s_data_i;
            in_at_q <= in_at_q + 1'b1;
          end
          marked_bytes_q <= bytes;
          coming_q <= !s_last_i;
          if (dropped_o) marked_q <= 1'b0;
        end
        if (leaves && older_q != '0) older_q <= older_q - 4'd1;
        if (m_fire && now) out_at_q <= out_at_q + 1'b1;
        if (leaves && now) marked_q <= 1'b0;
      end
    end
  end

  always_comb begin
    if (!begun_q) assume (!rst_ni);
    if (begun_q) assume (rst_ni);
    if (begun_q) begin
      // Each frame is either taken or dropped, once. It is dropped only if others are inside, and never while offline.
      assert ((taken_o || dropped_o) == ends && !(taken_o && dropped_o));
      if (!offline_i) assert (s_ready_o);
      if (taken_o) assert (taken_bytes_o == bytes && taken_port_o == (in_q ? in_port_q : s_port_i));
      if (dropped_o) assert (!alone && !(offline_i && (!in_q || offline_q)));
      if (m_valid_o) assert (frames_q != '0);
      assert (idle_o == (frames_q == '0 && !in_q) || (!idle_o && frames_q != '0));
      if (now) assert (m_port_o == port_q);
      if (now) assert (m_class_o == class_of(beats_q[0][0], arrival.len));
      if (now) assert (m_data_o == beats_q[out_at_q] && m_last_o == (out_at_q == last_at) && m_arrival_o == arrival);
    end
  end
endmodule
