// Puts the CPU header in front of frames for the CPU queues.
//
// Place: scatter → hue_cpu_insert → output queues. Other frames pass unchanged.
// Latency: 0 clocks. Throughput: a beat a clock, including the beats that the header adds.

module hue_cpu_insert
  import hue_pkg::*;
#(
  parameter int unsigned BusBytes = 8,
  localparam int unsigned ByteBits = $clog2(BusBytes + 1)
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,

  input  logic                  s_valid_i,
  output logic                  s_ready_o,
  input  logic [8*BusBytes-1:0] s_data_i,
  input  logic                  s_last_i,
  input  logic [ByteBits-1:0]   s_bytes_i,
  input  hue_departure_t        s_departure_i,
  input  logic                  s_to_cpu_i,    // stable over the frame; so is the header
  input  hue_cpu_header_t       s_header_i,

  output logic                  m_valid_o,
  input  logic                  m_ready_i,
  output logic [8*BusBytes-1:0] m_data_o,
  output logic                  m_last_o,
  output logic [ByteBits-1:0]   m_bytes_o,
  output hue_departure_t        m_departure_o  // len includes the header
);

  localparam int unsigned HeaderBits = 8 * CpuHeaderBytes;

  // In the byte order of the bus: first byte lowest.
  logic [HeaderBits-1:0] header;
  always_comb begin
    for (int unsigned b = 0; b < CpuHeaderBytes; b++) begin
      header[8*b+:8] = s_header_i[8*(CpuHeaderBytes-1-b)+:8];
    end
  end

  always_comb begin
    m_departure_o = s_departure_i;
    if (s_to_cpu_i) m_departure_o.len = s_departure_i.len + 14'(CpuHeaderBytes);
  end

  assign m_valid_o = s_valid_i;

  if (BusBytes < CpuHeaderBytes) begin : g_narrow
    // The header takes whole beats.
    localparam int unsigned HeaderBeats = CpuHeaderBytes / BusBytes;
    localparam int unsigned CountBits = $clog2(HeaderBeats + 1);
    logic [CountBits-1:0] count_q;
    logic                 in_header;

    assign in_header = s_to_cpu_i && count_q != CountBits'(HeaderBeats);
    assign s_ready_o = m_ready_i && !in_header;
    always_comb begin
      m_data_o = s_data_i;
      m_last_o = s_last_i && !in_header;
      m_bytes_o = s_bytes_i;
      if (in_header) begin
        m_bytes_o = ByteBits'(BusBytes);
        m_data_o = header[0+:8*BusBytes];
        for (int unsigned n = 1; n < HeaderBeats; n++) begin
          if (count_q == CountBits'(n)) m_data_o = header[8*BusBytes*n+:8*BusBytes];
        end
      end
    end
    always_ff @(posedge clk_i) begin
      if (!rst_ni) count_q <= '0;
      else if (s_valid_i && m_ready_i) count_q <= in_header ? count_q + 1'b1 : s_last_i ? '0 : count_q;
    end
  end else begin : g_wide
    // The frame is shifted up by the header; bytes that no longer fit begin the next beat.
    localparam int unsigned Rest = BusBytes - CpuHeaderBytes;
    logic                  inside_q, tail_q, fits;
    logic [HeaderBits-1:0] carry_q;
    logic [HeaderBits-1:0] front;

    assign front = inside_q ? carry_q : header;
`ifdef HUE_PLANT_INSERT_TAIL
    assign fits = s_bytes_i <= ByteBits'(Rest + 1);  // for scripts/rtl-test: the bench must find this
`else
    assign fits = s_bytes_i <= ByteBits'(Rest);
`endif
    // A last beat that does not fit stays at the input until its tail is sent.
    assign s_ready_o = m_ready_i && (!s_to_cpu_i || !s_last_i || fits || tail_q);
    always_comb begin
      m_data_o = s_data_i;
      m_last_o = s_last_i;
      m_bytes_o = s_bytes_i;
      if (s_to_cpu_i) begin
        m_data_o = {s_data_i[8*Rest-1:0], front};
        m_last_o = s_last_i && (fits || tail_q);
        m_bytes_o = ByteBits'(BusBytes);
        if (s_last_i && fits) m_bytes_o = s_bytes_i + ByteBits'(CpuHeaderBytes);
        if (tail_q) m_bytes_o = s_bytes_i - ByteBits'(Rest);
      end
    end
    always_ff @(posedge clk_i) begin
      if (s_valid_i && m_ready_i) carry_q <= s_data_i[8*BusBytes-1-:HeaderBits];
      if (!rst_ni) begin
        inside_q <= 1'b0;
        tail_q <= 1'b0;
      end else if (s_valid_i && m_ready_i && s_to_cpu_i) begin
        inside_q <= !m_last_o;
        tail_q <= s_last_i && !m_last_o;
      end
    end
  end

`ifndef SYNTHESIS
  a_stable: assert property (@(posedge clk_i) disable iff (!rst_ni)
    (m_valid_o && !m_ready_i) |=> (m_valid_o && $stable(m_data_o) && $stable(m_last_o) && $stable(m_bytes_o)));
`endif

endmodule
