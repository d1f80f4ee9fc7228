// Proof harness of hue_cpu_insert: the output is a stream. Every frame leaves once, with the same bytes; a frame for the CPU leaves
// with the CPU header in front of it.
//
// Place: scripts/formal. The input obeys the rules of a stream; departure, header and destination are stable during a frame.
// `place_i` picks any byte of the frame that leaves.
module hue_cpu_insert_formal
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
  input hue_departure_t        s_departure_i,
  input logic                  s_to_cpu_i,
  input hue_cpu_header_t       s_header_i,
  input logic                  m_ready_i,
  input logic [8:0]            place_i  // sampled during reset: any constant
);
  logic                  s_ready_o, m_valid_o, m_last_o;
  logic [8*BusBytes-1:0] m_data_o;
  logic [ByteBits-1:0]   m_bytes_o;
  hue_departure_t        m_departure_o;
  hue_cpu_insert #(.BusBytes(BusBytes)) u_dut (.*);

  logic begun_q, inside_q;
  typedef logic [$bits(hue_departure_t)+$bits(hue_cpu_header_t):0] side_t;
  side_t side, side_q;
  assign side = {s_departure_i, s_header_i, s_to_cpu_i};
  hue_stream_rules #(.Assume(1'b1), .Bits(8 * BusBytes + $bits(side_t)), .BusBytes(BusBytes)) u_in (
    .clk_i, .rst_ni, .valid_i(s_valid_i), .ready_i(s_ready_o), .last_i(s_last_i), .bytes_i(s_bytes_i),
    .payload_i({s_data_i, side})
  );
  hue_stream_rules #(.Bits(8 * BusBytes + $bits(hue_departure_t)), .BusBytes(BusBytes)) u_out (
    .clk_i, .rst_ni, .valid_i(m_valid_o), .ready_i(m_ready_i), .last_i(m_last_o), .bytes_i(m_bytes_o),
    .payload_i({m_data_o, m_departure_o})
  );

  // Bytes of the present frame: taken from the input, and sent.
  logic [8:0] in_q, in_d, out_q, out_d;
  logic       s_fire, m_fire;
  assign s_fire = s_valid_i && s_ready_o;
  assign m_fire = m_valid_o && m_ready_i;
  assign in_d = in_q + (s_fire ? 9'(s_bytes_i) : 9'd0);
  assign out_d = out_q + (m_fire ? 9'(m_bytes_o) : 9'd0);

  // A byte of a beat.
  function automatic logic [7:0] byte_of(logic [BusBytes-1:0][7:0] beat, logic [8:0] at);
    byte_of = '0;
    for (int unsigned b = 0; b < BusBytes; b++) if (at == 9'(b)) byte_of = beat[b];
  endfunction

  // The byte that must leave at `place_q`: from the header, from the beat at the input, or from an earlier beat.
  logic [8:0] place_q, from, at, left;
  logic [7:0] wanted, kept_q;
  logic       here;
  logic [CpuHeaderBytes-1:0][7:0] header;
  assign header = s_header_i;  // first byte highest
  assign from = s_to_cpu_i ? place_q - 9'(CpuHeaderBytes) : place_q;
  assign at = from - in_q;
  assign here = s_valid_i && at < 9'(s_bytes_i);
  assign left = place_q - out_q;
  always_comb begin
    wanted = here ? byte_of(s_data_i, at) : kept_q;
    if (s_to_cpu_i && place_q < 9'(CpuHeaderBytes)) wanted = header[4'd15-place_q[3:0]];
  end

  hue_departure_t departure;
  always_comb begin
    departure = s_departure_i;
    if (s_to_cpu_i) departure.len = s_departure_i.len + 14'(CpuHeaderBytes);
  end

  initial begun_q = 1'b0;
  always_ff @(posedge clk_i) begin
    begun_q <= 1'b1;
    if (s_valid_i && !inside_q) side_q <= side;
    if (!begun_q) place_q <= place_i;
    if (here) kept_q <= byte_of(s_data_i, at);
    if (!rst_ni) begin
      inside_q <= 1'b0;
      in_q <= '0;
      out_q <= '0;
    end else begin
      if (s_fire) inside_q <= !s_last_i;
      in_q <= s_fire && s_last_i ? '0 : in_d;
      out_q <= m_fire && m_last_o ? '0 : out_d;
    end
  end

  always_comb begin
    if (!begun_q) assume (!rst_ni);
    if (begun_q && rst_ni && s_valid_i && inside_q) assume (side == side_q);
    if (begun_q && rst_ni) begin
      // The last beat of a frame leaves when its last beat is taken: no frame is lost, split or joined.
      assert ((s_fire && s_last_i) == (m_fire && m_last_o));
      if (m_fire && m_last_o) assert (out_d == in_d + (s_to_cpu_i ? 9'(CpuHeaderBytes) : 9'd0));
      if (m_valid_o) assert (m_departure_o == departure);
      if (m_valid_o && left < 9'(m_bytes_o)) assert (byte_of(m_data_o, left) == wanted);
    end
  end
endmodule
