// Merges the frames of the CPU queues into one stream, so that they share one input queue.
//
// Place: CPU ports → hue_cpu_join → hue_cpu_strip → input queue. Frames leave whole, in the order of each port, one frame of each
// port in turn. A port whose frame has begun keeps its turn until the frame's last beat, as the host sends frames without
// pauses; the other ports wait meanwhile, and lose nothing.
// Latency: 1 clock. Throughput: a beat a clock.

module hue_cpu_join
  import hue_pkg::*;
#(
  parameter int unsigned BusBytes = 8,
  localparam int unsigned ByteBits = $clog2(BusBytes + 1)
) (
  input  logic                                clk_i,
  input  logic                                rst_ni,

  input  logic [CpuPorts-1:0]                 s_valid_i,
  output logic [CpuPorts-1:0]                 s_ready_o,
  input  logic [CpuPorts-1:0][8*BusBytes-1:0] s_data_i,
  input  logic [CpuPorts-1:0]                 s_last_i,
  input  logic [CpuPorts-1:0][ByteBits-1:0]   s_bytes_i,   // BusBytes unless last
  input  logic [CpuPorts-1:0][63:0]           s_time_i,
  input  logic [CpuPorts-1:0][31:0]           s_tag_i,

  output logic                                m_valid_o,
  input  logic                                m_ready_i,
  output logic [8*BusBytes-1:0]               m_data_o,
  output logic                                m_last_o,
  output logic [ByteBits-1:0]                 m_bytes_o,
  output logic [63:0]                         m_time_o,
  output logic [31:0]                         m_tag_o,
  output logic [1:0]                          m_port_o,    // CPU queue of the frame; stable over it
  output logic                                idle_o
);

  typedef struct packed {
    logic [63:0]           time_ns;
    logic [31:0]           tag;
    logic [1:0]            port;
    logic                  last;
    logic [ByteBits-1:0]   bytes;
    logic [8*BusBytes-1:0] data;
  } beat_t;

  logic       inside_q, any, valid, ready, fire;
  logic [1:0] port_q, winner, port;
  beat_t      beat, out;

  hue_round_robin #(.Count(CpuPorts)) u_turns (
    .clk_i, .rst_ni, .asks_i(s_valid_i), .take_i(fire && !inside_q), .any_o(any), .winner_o(winner)
  );
`ifdef HUE_PLANT_JOIN_TURN
  assign port = winner;  // for scripts/rtl-test and scripts/formal: the bench and the proof must find this
`else
  assign port = inside_q ? port_q : winner;
`endif
  assign valid = inside_q ? s_valid_i[port_q] : any;
  assign fire = valid && ready;
  always_comb begin
    beat.time_ns = s_time_i[port];
    beat.tag = s_tag_i[port];
    beat.port = port;
    beat.last = s_last_i[port];
    beat.bytes = s_bytes_i[port];
    beat.data = s_data_i[port];
    s_ready_o = '0;
    s_ready_o[port] = fire;
  end

  hue_skid #(.Bits($bits(beat_t))) u_out (
    .clk_i, .rst_ni, .valid_i(valid), .ready_o(ready), .data_i(beat),
    .valid_o(m_valid_o), .ready_i(m_ready_i), .data_o(out)
  );
  assign m_data_o = out.data;
  assign m_last_o = out.last;
  assign m_bytes_o = out.bytes;
  assign m_time_o = out.time_ns;
  assign m_tag_o = out.tag;
  assign m_port_o = out.port;
  assign idle_o = !inside_q && !m_valid_o;

  always_ff @(posedge clk_i) begin
    if (fire) port_q <= port;
    if (!rst_ni) inside_q <= 1'b0;
    else if (fire) inside_q <= !beat.last;
  end

`ifndef SYNTHESIS
  a_one_port: assert property (@(posedge clk_i) disable iff (!rst_ni) $onehot0(s_ready_o));
  a_latency: assert property (@(posedge clk_i) disable iff (!rst_ni) fire |=> m_valid_o);
`endif

endmodule
