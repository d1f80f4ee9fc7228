// Joins several streams into one: whole frames, one from each waiting stream in turn.
//
// Place: hue_card's CPU queues → hue_board_join → a DMA stream of a shell that has fewer streams than the card has queues.
// Latency: 1 clock. Throughput: a beat a clock.

module hue_board_join #(
  parameter int unsigned Count = 4,
  parameter int unsigned Bits = 8,
  localparam int unsigned IndexBits = Count > 1 ? $clog2(Count) : 1
) (
  input  logic                       clk_i,
  input  logic                       rst_ni,
  input  logic [Count-1:0]           s_valid_i,
  output logic [Count-1:0]           s_ready_o,
  input  logic [Count-1:0]           s_last_i,
  input  logic [Count-1:0][Bits-1:0] s_data_i,
  output logic                       m_valid_o,
  input  logic                       m_ready_i,
  output logic                       m_last_o,
  output logic [Bits-1:0]            m_data_o,
  output logic [IndexBits-1:0]       m_index_o   // input stream of the frame
);

  logic                 inside_q, any, valid, ready;
  logic [IndexBits-1:0] index_q, index, winner;

  hue_round_robin #(.Count(Count)) u_turn (
    .clk_i, .rst_ni, .asks_i(s_valid_i), .take_i(!inside_q && ready), .any_o(any), .winner_o(winner)
  );
  assign index = inside_q ? index_q : winner;
  assign valid = inside_q ? s_valid_i[index_q] : any;
  always_comb begin
    s_ready_o = '0;
    s_ready_o[index] = ready && valid;
  end

  hue_skid #(.Bits(Bits + IndexBits + 1)) u_out (
    .clk_i, .rst_ni, .valid_i(valid), .ready_o(ready), .data_i({index, s_last_i[index], s_data_i[index]}),
    .valid_o(m_valid_o), .ready_i(m_ready_i), .data_o({m_index_o, m_last_o, m_data_o})
  );

  always_ff @(posedge clk_i) begin
    if (valid && ready) index_q <= index;
    if (!rst_ni) inside_q <= 1'b0;
    else if (valid && ready) inside_q <= !s_last_i[index];
  end

`ifndef SYNTHESIS
  logic                 m_inside_q;
  logic [IndexBits-1:0] m_index_q;
  always_ff @(posedge clk_i) begin
    if (m_valid_o && m_ready_i) m_index_q <= m_index_o;
    if (!rst_ni) m_inside_q <= 1'b0;
    else if (m_valid_o && m_ready_i) m_inside_q <= !m_last_o;
  end
  a_frames_stay_whole: assert property (@(posedge clk_i) disable iff (!rst_ni)
    (m_valid_o && m_inside_q) |-> m_index_o == m_index_q);
  a_latency: assert property (@(posedge clk_i) disable iff (!rst_ni) (valid && ready) |=> m_valid_o);
`endif

endmodule
