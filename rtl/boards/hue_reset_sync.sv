// A reset of any clock, as a clock sees it: begins at once, ends with the clock.
//
// Place: between a shell's resets and the parts of an adapter, one for each clock.
// Latency: begins in 0 clocks, ends `Stages` clocks after the reset did.

module hue_reset_sync #(
  parameter int unsigned Stages = 3
) (
  input  logic clk_i,
  input  logic rst_ni,  // of any clock
  output logic rst_no
);

  (* ASYNC_REG = "TRUE" *) logic [Stages-1:0] stage_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) stage_q <= '0;
    else stage_q <= {stage_q[Stages-2:0], 1'b1};
  end
  assign rst_no = stage_q[Stages-1];

endmodule
