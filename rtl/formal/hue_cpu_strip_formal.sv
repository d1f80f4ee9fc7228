// Proof harness of hue_cpu_strip: the output is a stream. Every frame leaves once, with the same bytes but without its header, and
// with the fields of the header in its arrival record.
//
// Place: scripts/formal. The input obeys the rules of a stream. `place_i` picks any byte of the frame that leaves.
module hue_cpu_strip_formal
  import hue_pkg::*;
#(
  parameter int unsigned BusBytes = 8,
  localparam int unsigned ByteBits = $clog2(BusBytes + 1)
) (
  input logic                  clk_i,
  input logic                  rst_ni,
  input logic                  s_valid_i,
  input logic [8*BusBytes-1:0] s_data_i,
  input logic                  s_last_i,
  input logic [ByteBits-1:0]   s_bytes_i,
  input logic [63:0]           s_time_i,
  input logic [31:0]           s_tag_i,
  input logic [1:0]            s_port_i,
  input logic                  m_ready_i,
  input logic [8:0]            place_i  // sampled during reset: any constant
);
  logic                  s_ready_o, m_valid_o, m_last_o, idle_o;
  logic [8*BusBytes-1:0] m_data_o;
  logic [ByteBits-1:0]   m_bytes_o;
  hue_arrival_t          m_arrival_o;
  logic [1:0]            m_port_o;
  hue_cpu_strip #(.BusBytes(BusBytes)) u_dut (.*);

  hue_stream_rules #(.Assume(1'b1), .Bits(8 * BusBytes + 64 + 32 + 2), .BusBytes(BusBytes)) u_in (
    .clk_i, .rst_ni, .valid_i(s_valid_i), .ready_i(s_ready_o), .last_i(s_last_i), .bytes_i(s_bytes_i),
    .payload_i({s_data_i, s_time_i, s_tag_i, s_port_i})
  );
  // Bytes behind the end of a frame need not be stable. The arrival record is valid with the first beat, and its length never.
  logic [8*BusBytes-1:0] counts;
  logic                  out_inside_q;
  hue_arrival_t          known;
  always_comb begin
    known = m_arrival_o;
    known.len = '0;
    for (int unsigned b = 0; b < BusBytes; b++) counts[8*b+:8] = b < 32'(m_bytes_o) ? m_data_o[8*b+:8] : '0;
  end
  hue_stream_rules #(.AllowEmpty(1'b1), .Bits(8 * BusBytes + 2 + $bits(hue_arrival_t)), .BusBytes(BusBytes)) u_out (
    .clk_i, .rst_ni, .valid_i(m_valid_o), .ready_i(m_ready_i), .last_i(m_last_o), .bytes_i(m_bytes_o),
    .payload_i({counts, out_inside_q ? '0 : {m_port_o, known}})
  );

  // Bytes of the present frame, and whether the header is complete.
  logic [8:0]  in_q, in_d, out_q, out_d, whole_q, whole;
  logic        begun_q, more_q, more, ended_more_q, s_fire, m_fire, ended_q, ends;
  assign s_fire = s_valid_i && s_ready_o;
  assign m_fire = m_valid_o && m_ready_i;
  assign in_d = in_q + 9'(s_bytes_i);
  assign out_d = out_q + 9'(m_bytes_o);
  // The frame whose last beat leaves now: that beat came in in this clock, or earlier and has waited.
  assign ends = m_fire && m_last_o;
  assign whole = ended_q ? whole_q : in_d;
  assign more = ended_q ? ended_more_q : more_q || in_d >= 9'(CpuHeaderBytes);

  // A byte of a beat.
  function automatic logic [7:0] byte_of(logic [BusBytes-1:0][7:0] beat, logic [8:0] at);
    byte_of = '0;
    for (int unsigned b = 0; b < BusBytes; b++) if (at == 9'(b)) byte_of = beat[b];
  endfunction

  // The expected output, from this clock's beat and those before: the byte at `place_q`, and the fields of the header. While a frame's
  // end waits to leave (`ended_q`), the next frame is ignored.
  logic [8:0]                     place_q, at, left;
  logic [7:0]                     wanted, kept_q;
  logic                           here;
  logic [CpuHeaderBytes-1:0][7:0] header, header_q;  // first byte lowest
  logic [63:0]                    time_q;
  logic [31:0]                    tag_q;
  logic [1:0]                     from_q;
  logic                           inside_q;
  hue_arrival_t                   arrival;
  assign at = place_q + 9'(CpuHeaderBytes) - in_q;
  assign here = s_valid_i && !ended_q && at < 9'(s_bytes_i);
  assign left = place_q - out_q;
  assign wanted = here ? byte_of(s_data_i, at) : kept_q;
  always_comb begin
    header = header_q;
    for (int unsigned b = 0; b < CpuHeaderBytes; b++) begin
      if (!ended_q && s_valid_i && 9'(b) - in_q < 9'(BusBytes)) header[b] = byte_of(s_data_i, 9'(b) - in_q);
    end
    arrival = '0;
    arrival.time_ns = inside_q || ended_q ? time_q : s_time_i;
    arrival.tag = inside_q || ended_q ? tag_q : s_tag_i;
    if (more) begin
      // Byte offsets of hue_cpu_header_t on the wire: VID 0, network 2, … output port 6, flags 7.
      arrival.from_cpu = header[7][0];
      arrival.net = header[2];
      arrival.cpu_out = header[6][2:0];
    end
  end

  initial begun_q = 1'b0;
  always_ff @(posedge clk_i) begin
    begun_q <= 1'b1;
    if (!begun_q) place_q <= place_i;
    if (here) kept_q <= byte_of(s_data_i, at);
    if (s_fire) header_q <= header;
    if (s_fire && !inside_q) {time_q, tag_q, from_q} <= {s_time_i, s_tag_i, s_port_i};
    if (!rst_ni) inside_q <= 1'b0;
    else if (s_fire) inside_q <= !s_last_i;
    if (!rst_ni) begin
      in_q <= '0;
      out_q <= '0;
      more_q <= 1'b0;
      ended_q <= 1'b0;
      out_inside_q <= 1'b0;
    end else begin
      if (s_fire) in_q <= s_last_i ? '0 : in_d;
      if (s_fire) more_q <= !s_last_i && (more_q || in_d >= 9'(CpuHeaderBytes));
      if (s_fire && s_last_i) whole_q <= in_d;
      if (s_fire && s_last_i) ended_more_q <= more;
      if (m_fire) out_q <= m_last_o ? '0 : out_d;
      if (m_fire) out_inside_q <= !m_last_o;
      ended_q <= (ended_q || (s_fire && s_last_i)) && !ends;
    end
  end

  always_comb begin
    if (!begun_q) assume (!rst_ni);
    if (begun_q && rst_ni) begin
      // A frame's end leaves when its last beat is taken, or waits while nothing else is taken: no frame is lost, split or joined.
      if (ended_q) assert (m_valid_o && m_last_o && !s_ready_o);
      if (ends) assert (ended_q || (s_fire && s_last_i));
      if (m_valid_o && left < 9'(m_bytes_o)) assert (byte_of(m_data_o, left) == wanted);
      if (m_valid_o && !out_inside_q) assert (known == arrival && m_port_o == (inside_q || ended_q ? from_q : s_port_i));
      if (ends) assert (out_d == (more ? whole - 9'(CpuHeaderBytes) : 9'd0));
    end
  end
endmodule
