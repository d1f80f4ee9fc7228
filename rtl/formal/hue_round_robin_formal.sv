// Proof harness of hue_round_robin: a requester that keeps requesting waits for at most Count - 1 grants to others.
//
// Place: scripts/formal. Inputs are free, except that the position `who_i` keeps requesting until its grant. `who_i` is any position.
module hue_round_robin_formal #(
  parameter int unsigned Count = 8,
  localparam int unsigned IndexBits = Count > 1 ? $clog2(Count) : 1
) (
  input logic                 clk_i,
  input logic                 rst_ni,
  input logic [Count-1:0]     asks_i,
  input logic                 take_i,
  input logic [IndexBits-1:0] who_i
);
  logic                 any_o;
  logic [IndexBits-1:0] winner_o;
  hue_round_robin #(.Count(Count)) u_dut (.clk_i, .rst_ni, .asks_i, .take_i, .any_o, .winner_o);

  // Grants to others while `who_i` waits, and the last winner.
  logic                 begun_q, waits_q;
  logic [IndexBits-1:0] who_q, last_q;
  logic [IndexBits:0]   turns_q, left;
  // Positions between the last winner and `who_i`, in cyclic order.
  assign left = who_i > last_q ? (IndexBits+1)'(who_i - last_q - 1'b1)
                               : (IndexBits+1)'(Count - 1) - (IndexBits+1)'(last_q - who_i);

  initial begun_q = 1'b0;
  always_ff @(posedge clk_i) begin
    begun_q <= 1'b1;
    who_q <= who_i;
    if (!rst_ni) begin
      waits_q <= 1'b0;
      turns_q <= '0;
      last_q <= IndexBits'(Count - 1);
    end else begin
      waits_q <= asks_i[who_i] && !(take_i && winner_o == who_i);
      if (!asks_i[who_i] || (take_i && winner_o == who_i)) turns_q <= '0;
      else if (take_i) turns_q <= turns_q + 1'b1;
      if (take_i && any_o) last_q <= winner_o;
    end
  end

  always_comb begin
    if (!begun_q) assume (!rst_ni);
    if (begun_q) assume (who_i == who_q);
    assume (32'(who_i) < Count);
    if (begun_q && rst_ni && waits_q) assume (asks_i[who_i]);
    if (begun_q && rst_ni) begin
      assert (any_o == (asks_i != '0));
      if (any_o) assert (32'(winner_o) < Count && asks_i[winner_o]);
      assert (32'(turns_q) <= Count - 1);
      // For the induction: every grant to another brings `who_i` nearer to its own.
      assert (32'(last_q) < Count);
      assert (32'(turns_q) + 32'(left) <= Count - 1);
      for (int unsigned i = 0; i < Count; i++) begin
        assert (u_dut.first_q[i] == (IndexBits'(i) > last_q) || (u_dut.first_q == '1 && 32'(last_q) == Count - 1));
      end
    end
  end
endmodule
