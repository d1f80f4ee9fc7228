// Input queue of a MAC port, or of all CPU queues: a frame waits until it is complete, then leaves without gaps.
//
// Place: MAC port (or hue_cpu_strip) → input queue → arbiter. A frame for which there is no room is dropped and counted, or held
// back while `offline_i` is 1. A frame longer than FrameBytesMax is truncated to its first beat and has length LenTooLong.
// Latency: 3 clocks from the last beat in to the first beat out. Throughput: a beat a clock each way.

module hue_input_queue
  import hue_pkg::*;
#(
  parameter int unsigned BusBytes = 8,
  parameter int unsigned Beats = 2048,
  parameter int unsigned Frames = 256,
  localparam int unsigned ByteBits = $clog2(BusBytes + 1)
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,
  input  logic                  offline_i,

  input  logic                  s_valid_i,
  output logic                  s_ready_o,
  input  logic [8*BusBytes-1:0] s_data_i,
  input  logic [ByteBits-1:0]   s_bytes_i,    // BusBytes unless last
  input  logic                  s_last_i,
  input  hue_arrival_t          s_arrival_i,  // sampled with the first beat; its len is ignored
  input  logic [1:0]            s_port_i,     // which of the ports that share the queue; sampled with the first beat

  output logic                  m_valid_o,
  input  logic                  m_ready_i,
  output logic [8*BusBytes-1:0] m_data_o,
  output logic                  m_last_o,
  output hue_arrival_t          m_arrival_o,  // stable over the frame
  output logic [1:0]            m_port_o,     // likewise
  output hue_class_t            m_class_o,    // likewise; computed on arrival, as the arbiter has no time for it

  // Pulses: a frame was taken, with its length in bytes (saturating) and its port, or dropped because there was no room.
  output logic                  taken_o,
  output logic [15:0]           taken_bytes_o,
  output logic [1:0]            taken_port_o,
  output logic                  dropped_o,
  output logic                  idle_o        // holds no frame, complete or not
);

  if ((Beats - 1) * BusBytes < FrameBytesMax) begin : g_beats
    $fatal(1, "Beats: expected room for a frame of the greatest length");
  end

  // Writing
  logic         inside_q, lost_q, cut_q, lose, cut, store, fire, room, fifo_full, frames_ready;
  logic         first_bit_q;
  logic [15:0]  bytes_q, bytes;       // of the frame, before this beat and with it
  logic [16:0]  bytes_wide;
  logic [13:0]  left_q, left;         // bytes the frame may still have, before this beat and after it
  logic         much_q;               // left_q exceeds any beat
  logic         over_q, too_long, commit, rewind;
  hue_arrival_t arrival_q, arrival;
  logic [1:0]   port_q;

  assign room = !fifo_full && frames_ready;
  // A frame that is being dropped needs no room, and a truncated one needs none for its data.
  assign s_ready_o = !offline_i || lost_q || (cut_q ? frames_ready : room);
  assign fire = s_valid_i && s_ready_o;

  assign bytes_wide = 17'(bytes_q) + 17'(s_bytes_i);
  assign bytes = bytes_wide[16] ? '1 : bytes_wide[15:0];
`ifdef HUE_PLANT_INPUT_LENGTH
  assign too_long = over_q || 14'(s_bytes_i) >= left_q;  // for scripts/rtl-test: the bench must find this
`else
  // This result is late in the clock, so only the low bits are compared.
  assign too_long = over_q || (!much_q && s_bytes_i > left_q[ByteBits-1:0]);
`endif
  assign left = left_q - 14'(s_bytes_i);

  always_comb begin
    lose = lost_q;
    cut = 1'b0;
    store = 1'b0;
    if (fire && !lost_q) begin
      if (cut_q) lose = s_last_i && !frames_ready;
      else if (!room) lose = 1'b1;
      else if (too_long) cut = 1'b1;
      else store = 1'b1;
    end
  end
  assign commit = fire && s_last_i && !lose;
  assign rewind = fire && s_last_i && lose;

  always_comb begin
    arrival = inside_q ? arrival_q : s_arrival_i;
    arrival.len = too_long ? LenTooLong : bytes[13:0];
  end

  assign taken_o = commit;
  assign taken_bytes_o = bytes;
  assign taken_port_o = inside_q ? port_q : s_port_i;
  assign dropped_o = rewind;

  always_ff @(posedge clk_i) begin
    if (fire && !inside_q) arrival_q <= s_arrival_i;
    if (fire && !inside_q) port_q <= s_port_i;
    if (fire && !inside_q) first_bit_q <= s_data_i[0];
    if (!rst_ni) begin
      inside_q <= 1'b0;
      lost_q <= 1'b0;
      cut_q <= 1'b0;
      bytes_q <= '0;
      left_q <= 14'(FrameBytesMax);
      much_q <= 1'b1;
      over_q <= 1'b0;
    end else begin
      if (fire) begin
        bytes_q <= s_last_i ? '0 : bytes;
        left_q <= s_last_i ? 14'(FrameBytesMax) : too_long ? '0 : left;
        much_q <= s_last_i || (!too_long && left[13:ByteBits] != '0);
        over_q <= too_long && !s_last_i;
        inside_q <= !s_last_i;
        lost_q <= lose && !s_last_i;
        cut_q <= (cut_q || cut) && !s_last_i;
      end
    end
  end

  // Reading
  logic         words_valid, words_empty, frame_valid, leave, ends;

  hue_frame_fifo #(.Words(Beats), .Bits(8 * BusBytes + 1)) u_words (
    .clk_i, .rst_ni, .write_i(store), .data_i({s_last_i, s_data_i}), .commit_i(commit), .rewind_i(rewind), .cut_i(cut),
    .full_o(fifo_full), .valid_o(words_valid), .ready_i(m_ready_i), .data_o({ends, m_data_o}), .empty_o(words_empty)
  );

  // Same latency as the words, so the descriptor arrives with them.
  hue_class_t frame_class;
  assign frame_class = class_of(inside_q ? first_bit_q : s_data_i[0], arrival.len);
  hue_deep_fifo #(.Depth(Frames), .Bits($bits(hue_class_t) + 2 + $bits(hue_arrival_t))) u_frames (
    .clk_i, .rst_ni, .valid_i(taken_o), .ready_o(frames_ready), .data_i({frame_class, taken_port_o, arrival}),
    .valid_o(frame_valid), .ready_i(leave), .data_o({m_class_o, m_port_o, m_arrival_o})
  );

  assign m_valid_o = words_valid;
  // Only the first beat of a truncated frame is left.
  assign m_last_o = ends || m_arrival_o.len == LenTooLong;
  assign leave = m_valid_o && m_ready_i && m_last_o;
  assign idle_o = words_empty && !inside_q;

`ifndef SYNTHESIS
  a_stable: assert property (@(posedge clk_i) disable iff (!rst_ni)
    (m_valid_o && !m_ready_i) |=> (m_valid_o && $stable(m_data_o) && $stable(m_last_o) && $stable({m_class_o, m_port_o, m_arrival_o})));
  a_words_have_a_frame: assert property (@(posedge clk_i) disable iff (!rst_ni) words_valid |-> frame_valid);
  a_descriptor_has_room: assert property (@(posedge clk_i) disable iff (!rst_ni) taken_o |-> frames_ready);
  a_no_gap: assert property (@(posedge clk_i) disable iff (!rst_ni)
    (m_valid_o && m_ready_i && !m_last_o) |=> m_valid_o);
  a_offline_loses_nothing: assert property (@(posedge clk_i) disable iff (!rst_ni)
    (offline_i && !lost_q) |-> !dropped_o);
`endif

endmodule
