// Reset synchroniser: asserts at once, deasserts synchronously to the clock.
//
// Place: between a shell's resets and the parts of an adapter, one for each clock.
// Latency: asserts in 0 clocks, deasserts `Stages` clocks after its input.

module hue_reset_sync #(
  parameter int unsigned Stages = 3
) (
  input  logic clk_i,
  input  logic rst_ni,  // of any clock domain
  output logic rst_no
);

  (* ASYNC_REG = "TRUE" *) logic [Stages-1:0] stage_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) stage_q <= '0;
    else stage_q <= {stage_q[Stages-2:0], 1'b1};
  end
  assign rst_no = stage_q[Stages-1];

endmodule
