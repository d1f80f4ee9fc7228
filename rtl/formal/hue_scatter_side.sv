// One of the two sides of hue_scatter_formal: a hue_scatter, the buffer before it, and what leaves of network `net_i`.
//
// Place: harness. The frames of network A come in the order of `verdict_i`, with the bodies and tags of `body_i` and
// `tag_i`; in between come frames of others, as many and whatever the free inputs say. A group frame of A and others has
// the others' verdicts first. Of what leaves under A the beat with number `beat_i` is kept.
module hue_scatter_side
  import hue_pkg::*;
#(
  parameter int unsigned Frames = 2,
  parameter int unsigned Beats = 4,
  localparam int unsigned BusBytes = 8
) (
  input  logic                            clk_i,
  input  logic                            rst_ni,
  input  logic [5:0]                      net_i,
  input  hue_verdict_t [Frames-1:0]       verdict_i,
  input  logic [Frames-1:0][31:0]         tag_i,
  input  logic [Frames-1:0][Beats-1:0][63:0] body_i,
  input  logic [3:0]                      beat_i,
  // Free.
  input  logic                            offer_i,
  input  logic                            other_i,
  input  logic                            joint_i,
  input  hue_verdict_t                    other_verdict_i,
  input  logic [63:0]                     other_body_i,
  input  logic [31:0]                     other_tag_i,
  input  logic                            fill_i,
  input  logic                            ready_i,
  output logic                            kept_o,
  output logic [63:0]                     data_o,
  output logic                            last_o,
  output hue_departure_t                  departure_o,
  output logic                            to_cpu_o,
  output hue_cpu_header_t                 header_o,
  output logic                            done_o,
  output logic [3:0]                      count_o
);
  localparam int unsigned FrameBits = $clog2(Frames + 1);
  localparam int unsigned FilledMax = 8;
  typedef logic [FrameBits-1:0] frame_t;

  // What is offered: A's next frame, another's, or another's verdict on a frame that A has too (`joint`).
  typedef struct packed {
    logic   of_a;      // whose body
    frame_t frame;
  } group_t;
  logic         valid, verdict_ready, of_other, joint, inside_q, begun_q, stalled_q, last_frame;
  hue_verdict_t verdict, other, verdict_q;
  frame_t       next_q;
  group_t       group, front;
  logic         tag_take, idle, read, release_, m_valid, m_last;
  logic [10:0]  offset, release_beats;
  logic [3:0]   m_bytes, filled_q;
  logic [63:0]  data, m_data;
  logic [31:0]  tag;
  hue_departure_t  departure;
  logic            to_cpu;
  hue_cpu_header_t header;

  assign last_frame = next_q == frame_t'(Frames);
  assign of_other = other_i || last_frame;
  // Once a frame is shared with A, A's verdict on it comes next, or another's.
  assign joint = (joint_i || inside_q) && !last_frame;
  assign valid = offer_i;
  always_comb begin
    other = other_verdict_i;
    other.last = !joint;
    if (joint) other.len = verdict_i[next_q[0]].len;
    verdict = of_other ? other : verdict_i[next_q[0]];
    group = '{of_a: !of_other || joint, frame: next_q};
  end

  logic [2:0]  unused_room;
  logic        unused_ready, unused_valid;
  hue_fifo #(.Depth(4), .Bits($bits(group_t))) u_groups (
    .clk_i, .rst_ni, .valid_i(valid && verdict_ready), .ready_o(unused_ready), .data_i(group),
    .valid_o(unused_valid), .ready_i(u_dut.done), .data_o(front), .room_o(unused_room)
  );
  assign tag = front.of_a ? tag_i[front.frame[0]] : other_tag_i;

  hue_scatter #(.BusBytes(BusBytes), .FilledBits(4)) u_dut (
    .clk_i, .rst_ni, .verdict_valid_i(valid), .verdict_ready_o(verdict_ready), .verdict_i(verdict),
    .tag_i(tag), .tag_take_o(tag_take), .filled_i(filled_q), .read_o(read), .offset_o(offset), .data_i(data),
    .release_o(release_), .release_beats_o(release_beats), .m_valid_o(m_valid), .m_ready_i(ready_i), .m_data_o(m_data),
    .m_last_o(m_last), .m_bytes_o(m_bytes), .m_departure_o(departure), .m_to_cpu_o(to_cpu), .m_header_o(header), .idle_o(idle)
  );
  hue_stream_rules #(
    .Bits(64 + $bits(hue_departure_t) + 1 + $bits(hue_cpu_header_t)), .BusBytes(BusBytes)
  ) u_rules (
    .clk_i, .rst_ni, .valid_i(m_valid), .ready_i, .last_i(m_last), .bytes_i(m_bytes),
    .payload_i({m_data, departure, to_cpu, header})
  );

  // Bytes that count.
  logic [63:0] counts;
  always_comb begin
    for (int unsigned b = 0; b < BusBytes; b++) counts[8*b+:8] = b < 32'(m_bytes) ? m_data[8*b+:8] : '0;
  end

  logic hit;
  assign hit = m_valid && ready_i && departure.net == net_i;
  initial begun_q = 1'b0;
  always_ff @(posedge clk_i) begin
    begun_q <= 1'b1;
    verdict_q <= verdict;
    if (read) data <= front.of_a ? body_i[front.frame[0]][offset[1:0]] : other_body_i;
    if (!rst_ni) begin
      next_q <= '0;
      inside_q <= 1'b0;
      stalled_q <= 1'b0;
      filled_q <= '0;
      count_o <= '0;
      kept_o <= 1'b0;
    end else begin
      stalled_q <= valid && !verdict_ready;
      if (valid && verdict_ready) inside_q <= joint && of_other;
      if (valid && verdict_ready && !of_other) next_q <= next_q + 1'b1;
      filled_q <= filled_q + 4'(fill_i && filled_q < 4'(FilledMax)) - (release_ ? release_beats[3:0] : 4'd0);
      if (hit) count_o <= count_o + 1'b1;
      if (hit && count_o == beat_i) begin
        kept_o <= 1'b1;
        data_o <= counts;
        last_o <= m_last;
        departure_o <= departure;
        to_cpu_o <= to_cpu;
        header_o <= to_cpu ? header : '0;
      end
    end
  end
  assign done_o = last_frame && idle && !valid;

  always_comb begin
    // What the stages promise: a verdict that is offered stays; others' verdicts name others; whole frames only.
    if (begun_q && rst_ni && stalled_q) assume (valid && verdict == verdict_q);
    if (rst_ni && valid) begin
      assume (other.net != net_i);
      assume (other.len >= 14'(FrameBytesMin) && other.len <= 14'(Beats * BusBytes));
    end
    // What the buffer is asked for is there.
    if (begun_q && rst_ni) begin
      if (read) assert (offset < 11'(filled_q));
      if (release_) assert (release_beats <= 11'(filled_q));
    end
  end
  logic unused;
  assign unused = ^{tag_take, unused_room, unused_ready, unused_valid};
endmodule
