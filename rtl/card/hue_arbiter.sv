// Brings the frames of all ports into one stream, a frame of each waiting port in turn.
//
// Place: input queues → arbiter → gather. Frames leave whole and without gaps between or inside them as long as queues
// have some. Turns go round by frames: bytes are made fair where they leave, in the output queues.
// Latency: 1 clock. Throughput: a beat a clock.

module hue_arbiter
  import hue_pkg::*;
#(
  parameter int unsigned BusBytes = 8
) (
  input  logic                             clk_i,
  input  logic                             rst_ni,

  input  logic         [Ports-1:0]                 s_valid_i,
  output logic         [Ports-1:0]                 s_ready_o,
  input  logic         [Ports-1:0][8*BusBytes-1:0] s_data_i,
  input  logic         [Ports-1:0]                 s_last_i,
  input  hue_arrival_t [Ports-1:0]                 s_arrival_i,

  output logic                  m_valid_o,
  input  logic                  m_ready_i,
  output logic [8*BusBytes-1:0] m_data_o,
  output logic                  m_first_o,
  output logic                  m_last_o,
  output logic [2:0]            m_port_o,
  output hue_arrival_t          m_arrival_o,
  output logic                  idle_o
);

  typedef struct packed {
    hue_arrival_t          arrival;
    logic [2:0]            port;
    logic                  first;
    logic                  last;
    logic [8*BusBytes-1:0] data;
  } beat_t;

  logic       inside_q, valid, ready, any;
  logic [2:0] port_q, port, winner;
  beat_t      beat, out;

  logic take;
`ifdef HUE_PLANT_ARBITER_TURN
  assign take = 1'b0;  // for scripts/rtl-test: the bench must find this
`else
  assign take = !inside_q && ready;
`endif
  hue_round_robin #(.Count(Ports)) u_turn (
    .clk_i, .rst_ni, .asks_i(s_valid_i), .take_i(take), .any_o(any), .winner_o(winner)
  );

  assign port = inside_q ? port_q : winner;
  assign valid = inside_q ? s_valid_i[port_q] : any;
  always_comb begin
    beat.arrival = s_arrival_i[port];
    beat.port = port;
    beat.first = !inside_q;
    beat.last = s_last_i[port];
    beat.data = s_data_i[port];
    s_ready_o = '0;
    s_ready_o[port] = ready && valid;
  end

  hue_skid #(.Bits($bits(beat_t))) u_out (
    .clk_i, .rst_ni, .valid_i(valid), .ready_o(ready), .data_i(beat),
    .valid_o(m_valid_o), .ready_i(m_ready_i), .data_o(out)
  );
  assign m_arrival_o = out.arrival;
  assign m_port_o = out.port;
  assign m_first_o = out.first;
  assign m_last_o = out.last;
  assign m_data_o = out.data;
  assign idle_o = !inside_q && !m_valid_o;

  always_ff @(posedge clk_i) begin
    if (valid && ready) port_q <= port;
    if (!rst_ni) inside_q <= 1'b0;
    else if (valid && ready) inside_q <= !beat.last;
  end

`ifndef SYNTHESIS
  a_one_port: assert property (@(posedge clk_i) disable iff (!rst_ni) $onehot0(s_ready_o));
  a_no_bubble: assert property (@(posedge clk_i) disable iff (!rst_ni)
    (!inside_q && any && ready) |=> m_valid_o);
  a_latency: assert property (@(posedge clk_i) disable iff (!rst_ni) (valid && ready) |=> m_valid_o);
`endif

endmodule
