// Proof harness of saturating_sum in hue_pkg: the sum of two counts, or the greatest count if the sum is greater.
//
// Place: scripts/formal. Inputs are free.
module hue_saturating_sum_formal (
  input logic        clk_i,
  input logic [31:0] a_i,
  input logic [31:0] b_i
);
  logic [31:0] sum;
  assign sum = hue_pkg::saturating_sum(a_i, b_i);

  always_ff @(posedge clk_i) begin
    if (a_i <= ~b_i) assert (sum - b_i == a_i);
    else assert (sum == '1);
  end
endmodule
