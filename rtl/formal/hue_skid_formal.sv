// Proof harness of hue_skid: words leave in the order they came in, each once, unaltered, and stand still while
// they wait.
//
// Place: scripts/formal; inputs are free. `mark_i` picks any one word as it enters.
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

  logic            push, pop, begun_q, marked_q, before_q, stalled_q;
  logic [1:0]      inside_q;
  logic [Bits-1:0] word_q, data_q;
  assign push = valid_i && ready_o;
  assign pop = valid_o && ready_i;

  initial begun_q = 1'b0;
  always_ff @(posedge clk_i) begin
    begun_q <= 1'b1;
    data_q <= data_o;
    if (!rst_ni) begin
      inside_q <= '0;
      marked_q <= 1'b0;
      stalled_q <= 1'b0;
    end else begin
      inside_q <= inside_q + 2'(push) - 2'(pop);
      stalled_q <= valid_o && !ready_i;
      if (marked_q) begin
        if (pop) before_q <= 1'b0;
        if (pop) marked_q <= before_q;
      end else if (push && mark_i) begin
        marked_q <= 1'b1;
        before_q <= inside_q != 2'(pop);
        word_q <= data_i;
      end
    end
  end

  always_comb begin
    if (!begun_q) assume (!rst_ni);
    if (begun_q && rst_ni) begin
      assert (valid_o == (inside_q != '0));
      assert (ready_o == (inside_q != 2'd2));
      if (marked_q && !before_q) assert (valid_o && data_o == word_q);
      if (stalled_q) assert (valid_o && data_o == data_q);
      // For the induction: where the words lie.
      assert (inside_q <= 2'd2 && 2'(u_dut.valid_q) + 2'(u_dut.spare_q) == inside_q);
      assert (u_dut.valid_q || !u_dut.spare_q);
      if (marked_q) assert (2'(before_q) < inside_q);
      if (marked_q && before_q) assert (u_dut.spare_data_q == word_q);
    end
  end
endmodule
