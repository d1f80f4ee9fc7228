// Proof harness of hue_skid: words leave in the order in which they came in, each once, unaltered, and are stable until they are taken.
//
// Place: scripts/formal. Inputs are free. `mark_i` picks any one word when it enters.
module hue_skid_formal #(
  parameter int unsigned Bits = 2
) (
  input logic            clk_i,
  input logic            rst_ni,
  input logic            valid_i,
  input logic            ready_i,
  input logic [Bits-1:0] data_i,
  input logic            mark_i
);
  logic            ready_o, valid_o;
  logic [Bits-1:0] data_o;
  hue_skid #(.Bits(Bits)) u_dut (.clk_i, .rst_ni, .valid_i, .ready_o, .data_i, .valid_o, .ready_i, .data_o);

  logic [1:0] held;
  hue_skid_rules #(.Bits(Bits)) u_rules (
    .clk_i, .rst_ni, .push_i(valid_i && ready_o), .in_i(data_i), .valid_i(valid_o), .ready_i, .out_i(data_o), .mark_i, .held_o(held),
    .valid_q_i(u_dut.valid_q), .spare_q_i(u_dut.spare_q), .spare_data_q_i(u_dut.spare_data_q)
  );

  logic begun_q;
  initial begun_q = 1'b0;
  always_ff @(posedge clk_i) begun_q <= 1'b1;

  always_comb begin
    if (!begun_q) assume (!rst_ni);
    if (begun_q && rst_ni) assert (ready_o == (held != 2'd2));
  end
endmodule
