// Asserts a latency: `out_i` follows `in_i` after exactly `Clocks` clocks in which `en_i` is 1.
//
// Place: in modules whose stages all advance together; not in synthesis.
// Latency: none; it drives nothing.
`ifndef SYNTHESIS
module hue_latency #(
    parameter int unsigned Clocks = 1
) (
    input logic clk_i,
    input logic rst_ni,
    input logic en_i,
    input logic in_i,
    input logic out_i
);
  logic [Clocks-1:0] inside_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      inside_q <= '0;
    end else if (en_i) begin
      inside_q <= Clocks'({inside_q, in_i});
      assert (inside_q[Clocks-1] == out_i) else $error("%m: not after %0d clocks", Clocks);
    end
  end
endmodule
`endif
