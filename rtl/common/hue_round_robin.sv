// Round-robin selection: the winner is the first requesting position after the last winner, wrapping around.
//
// Place: arbiter over input queues, reader of output queues. Purely combinational except for the last winner, which is
// updated when `take_i` is 1. So if N positions always request, each wins every N-th turn.
// Latency: 0 clocks.

module hue_round_robin #(
  parameter int unsigned Count = 8,
  localparam int unsigned IndexBits = Count > 1 ? $clog2(Count) : 1
) (
  input  logic                 clk_i,
  input  logic                 rst_ni,
  input  logic [Count-1:0]     asks_i,
  input  logic                 take_i,   // the winner of this clock has had its turn
  output logic                 any_o,
  output logic [IndexBits-1:0] winner_o
);

  // 1 at the positions after the last winner (at all positions after reset): these have priority.
  logic [Count-1:0]     first_q, first_asks;
  logic [IndexBits-1:0] winner_first, winner_any;

  assign first_asks = asks_i & first_q;
  assign any_o = asks_i != '0;

  always_comb begin
    winner_first = '0;
    winner_any = '0;
    for (int unsigned i = 0; i < Count; i++) begin
      if (first_asks[Count-1-i]) winner_first = IndexBits'(Count - 1 - i);
      if (asks_i[Count-1-i]) winner_any = IndexBits'(Count - 1 - i);
    end
  end
  assign winner_o = first_asks != '0 ? winner_first : winner_any;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      first_q <= '1;
    end else if (take_i && any_o) begin
      for (int unsigned i = 0; i < Count; i++) first_q[i] <= IndexBits'(i) > winner_o;
    end
  end

`ifndef SYNTHESIS
  a_winner_asks: assert property (@(posedge clk_i) disable iff (!rst_ni) any_o |-> asks_i[winner_o]);
`endif

endmodule
