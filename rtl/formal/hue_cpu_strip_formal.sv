// Proof harness of hue_cpu_strip: what leaves is a stream and as many frames as came in, each without its header.
//
// Place: scripts/formal; what comes in obeys the rules of a stream.
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
  input logic                  m_ready_i
);
  logic                  s_ready_o, m_valid_o, m_last_o, idle_o;
  logic [8*BusBytes-1:0] m_data_o;
  logic [ByteBits-1:0]   m_bytes_o;
  hue_arrival_t          m_arrival_o;
  hue_cpu_strip #(.BusBytes(BusBytes)) u_dut (.*);

  hue_stream_rules #(.Assume(1'b1), .Bits(8 * BusBytes + 64 + 32), .BusBytes(BusBytes)) u_in (
    .clk_i, .rst_ni, .valid_i(s_valid_i), .ready_i(s_ready_o), .last_i(s_last_i), .bytes_i(s_bytes_i),
    .payload_i({s_data_i, s_time_i, s_tag_i})
  );
  // Bytes that do not count need not stand still; what is known of the frame counts with its first beat.
  logic [8*BusBytes-1:0] counts;
  logic                  out_inside_q;
  always_comb begin
    for (int unsigned b = 0; b < BusBytes; b++) counts[8*b+:8] = b < 32'(m_bytes_o) ? m_data_o[8*b+:8] : '0;
  end
  hue_stream_rules #(.AllowEmpty(1'b1), .Bits(8 * BusBytes + $bits(hue_arrival_t)), .BusBytes(BusBytes)) u_out (
    .clk_i, .rst_ni, .valid_i(m_valid_o), .ready_i(m_ready_i), .last_i(m_last_o), .bytes_i(m_bytes_o),
    .payload_i({counts, out_inside_q ? '0 : m_arrival_o})
  );

  // Bytes of the present frame, modulo a power of two, and whether they are more than a header.
  logic [7:0]  in_q, in_d, out_q, out_d, whole_q, whole;
  logic        begun_q, more_q, more, ended_more_q, s_fire, m_fire, ended_q, ends;
  assign s_fire = s_valid_i && s_ready_o;
  assign m_fire = m_valid_o && m_ready_i;
  assign in_d = in_q + 8'(s_bytes_i);
  assign out_d = out_q + 8'(m_bytes_o);
  // The frame whose last beat leaves now: it came in now, or before and waits.
  assign ends = m_fire && m_last_o;
  assign whole = ended_q ? whole_q : in_d;
  assign more = ended_q ? ended_more_q : more_q || in_d >= 8'(CpuHeaderBytes);

  initial begun_q = 1'b0;
  always_ff @(posedge clk_i) begin
    begun_q <= 1'b1;
    if (!rst_ni) begin
      in_q <= '0;
      out_q <= '0;
      more_q <= 1'b0;
      ended_q <= 1'b0;
      out_inside_q <= 1'b0;
    end else begin
      if (s_fire) in_q <= s_last_i ? '0 : in_d;
      if (s_fire) more_q <= !s_last_i && (more_q || in_d >= 8'(CpuHeaderBytes));
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
      // A frame leaves with its last beat, or waits alone: none is lost, split or joined.
      if (ended_q) assert (m_valid_o && m_last_o && !s_ready_o);
      if (ends) assert (ended_q || (s_fire && s_last_i));
      if (ends) assert (out_d == (more ? whole - 8'(CpuHeaderBytes) : 8'd0));
    end
  end
endmodule
