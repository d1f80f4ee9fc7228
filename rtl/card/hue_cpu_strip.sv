// Takes the CPU header off frames that come from a CPU queue.
//
// Place: CPU ports → hue_cpu_join → hue_cpu_strip → input queue. A frame shorter than the header becomes an empty frame, which the
// stages call a runt.
// Latency: 0 clocks from the beat that holds a frame's bytes; a beat that ends a frame waits a clock when its bytes
// take two beats without the header. Throughput: a beat a clock, less these waits.

module hue_cpu_strip
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
  input  logic [63:0]           s_time_i,
  input  logic [31:0]           s_tag_i,
  input  logic [1:0]            s_port_i,     // CPU queue; sampled with the first beat, like time and tag

  output logic                  m_valid_o,
  input  logic                  m_ready_i,
  output logic [8*BusBytes-1:0] m_data_o,
  output logic                  m_last_o,
  output logic [ByteBits-1:0]   m_bytes_o,
  output hue_arrival_t          m_arrival_o,
  output logic [1:0]            m_port_o,     // valid with the first beat
  output logic                  idle_o
);

  localparam int unsigned HeaderBits = 8 * CpuHeaderBytes;

  // The header in bus byte order, and its fields.
  logic [HeaderBits-1:0] wire_header;
  hue_cpu_header_t       header;
  logic                  short_frame, inside_q;
  logic [63:0]           time_q;
  logic [31:0]           tag_q;
  logic [1:0]            port_q;

  always_comb begin
    for (int unsigned b = 0; b < CpuHeaderBytes; b++) begin
      header[8*(CpuHeaderBytes-1-b)+:8] = wire_header[8*b+:8];
    end
  end
  always_comb begin
    m_arrival_o = '0;
    m_arrival_o.time_ns = inside_q ? time_q : s_time_i;
    m_arrival_o.tag = inside_q ? tag_q : s_tag_i;
    if (!short_frame) begin
      m_arrival_o.from_cpu = (header.flags & CpuFlagFromPlane) != '0;
      m_arrival_o.net = header.net;
      m_arrival_o.cpu_out = header.port_out[2:0];
    end
  end
  assign m_port_o = inside_q ? port_q : s_port_i;
  logic unused;
  assign unused = ^{header.vid, header.vport, header.outcome, header.port_in, header.port_out[7:3],
                    header.len, header.reserved};

  always_ff @(posedge clk_i) begin
    if (s_valid_i && s_ready_o && !inside_q) begin
      time_q <= s_time_i;
      tag_q <= s_tag_i;
      port_q <= s_port_i;
    end
    if (!rst_ni) inside_q <= 1'b0;
    else if (s_valid_i && s_ready_o) inside_q <= !s_last_i;
  end

  if (BusBytes < CpuHeaderBytes) begin : g_narrow
    localparam int unsigned HeaderBeats = CpuHeaderBytes / BusBytes;
    localparam int unsigned CountBits = $clog2(HeaderBeats + 1);
    logic [CountBits-1:0]  count_q;   // beats of the header received
    logic [HeaderBits-1:0] header_q;
    logic                  in_header, ends;

    assign in_header = count_q != CountBits'(HeaderBeats);
    // The frame is the header alone, or shorter: one empty beat is sent for it.
    assign ends = s_last_i && in_header;
    assign short_frame = in_header && !(count_q == CountBits'(HeaderBeats - 1) && s_bytes_i == ByteBits'(BusBytes));
    always_comb begin
      wire_header = header_q;
      if (in_header) wire_header[HeaderBits-1-:8*BusBytes] = s_data_i;
    end
    assign m_valid_o = s_valid_i && (!in_header || ends);
    assign s_ready_o = m_ready_i || (in_header && !ends);
    assign m_data_o = s_data_i;
    assign m_last_o = s_last_i;
    assign m_bytes_o = in_header ? '0 : s_bytes_i;
    assign idle_o = !inside_q;
    always_ff @(posedge clk_i) begin
      if (s_valid_i && s_ready_o && in_header) begin
        for (int unsigned n = 0; n < HeaderBeats; n++) begin
          if (count_q == CountBits'(n)) header_q[8*BusBytes*n+:8*BusBytes] <= s_data_i;
        end
      end
      if (!rst_ni) count_q <= '0;
      else if (s_valid_i && s_ready_o) count_q <= s_last_i ? '0 : in_header ? count_q + 1'b1 : count_q;
    end
  end else begin : g_wide
    // The frame is shifted down by the header: a beat out is the rest of the last beat and the first bytes of the next.
    localparam int unsigned Rest = BusBytes - CpuHeaderBytes;
    logic [HeaderBits-1:0] header_q;
    logic [8*Rest-1:0]     left_q;
    logic                  tail_q;    // the frame's last beat has been taken, and the rest of it is sent now
    logic [ByteBits-1:0]   tail_bytes_q;
    logic                  alone;     // the frame's only beat

    assign alone = s_last_i && !inside_q;
`ifdef HUE_PLANT_STRIP_SHORT
    assign short_frame = alone && s_bytes_i <= ByteBits'(CpuHeaderBytes);  // for scripts/rtl-test: the bench must find this
`else
    assign short_frame = alone && s_bytes_i < ByteBits'(CpuHeaderBytes);
`endif
    assign wire_header = inside_q ? header_q : s_data_i[HeaderBits-1:0];

    always_comb begin
      m_valid_o = 1'b0;
      m_last_o = 1'b0;
      m_bytes_o = ByteBits'(BusBytes);
      m_data_o = {s_data_i[HeaderBits-1:0], left_q};
      s_ready_o = 1'b0;
      if (tail_q) begin
        m_valid_o = 1'b1;
        m_last_o = 1'b1;
        m_bytes_o = tail_bytes_q;
        m_data_o = {{HeaderBits{1'b0}}, left_q};
      end else if (inside_q) begin
        m_valid_o = s_valid_i;
        s_ready_o = m_ready_i;
        if (s_last_i && s_bytes_i <= ByteBits'(CpuHeaderBytes)) begin
          m_last_o = 1'b1;
          m_bytes_o = s_bytes_i + ByteBits'(Rest);
        end
      end else if (alone) begin
        m_valid_o = s_valid_i;
        s_ready_o = m_ready_i;
        m_last_o = 1'b1;
        m_bytes_o = short_frame ? '0 : s_bytes_i - ByteBits'(CpuHeaderBytes);
        m_data_o = {{HeaderBits{1'b0}}, s_data_i[8*BusBytes-1:HeaderBits]};
      end else begin
        s_ready_o = 1'b1;
      end
    end
    assign idle_o = !inside_q && !tail_q;

    always_ff @(posedge clk_i) begin
      if (s_valid_i && s_ready_o) begin
        left_q <= s_data_i[8*BusBytes-1:HeaderBits];
        tail_bytes_q <= s_bytes_i - ByteBits'(CpuHeaderBytes);
        if (!inside_q) header_q <= s_data_i[HeaderBits-1:0];
      end
      if (!rst_ni) tail_q <= 1'b0;
      else if (tail_q) tail_q <= !m_ready_i;
      else tail_q <= s_valid_i && s_ready_o && s_last_i && inside_q && !m_last_o;
    end
  end

`ifndef SYNTHESIS
  a_stable: assert property (@(posedge clk_i) disable iff (!rst_ni)
    (m_valid_o && !m_ready_i) |=> (m_valid_o && $stable(m_data_o) && $stable(m_last_o) && $stable(m_bytes_o)));
  a_empty_is_alone: assert property (@(posedge clk_i) disable iff (!rst_ni)
    (m_valid_o && m_bytes_o == '0) |-> m_last_o);
`endif

endmodule
