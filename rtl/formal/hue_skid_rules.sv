// The rules for words that pass through a hue_skid at a module's output: they leave in the order in which they were taken, each once,
// unaltered, and are stable until they are taken.
//
// Place: harnesses in this folder, of hue_skid itself and of modules with a skid in front of their output. `mark_i` picks any one word
// when it is taken. The last three inputs are the registers of the skid, for the induction.
module hue_skid_rules #(
  parameter int unsigned Bits = 1
) (
  input  logic            clk_i,
  input  logic            rst_ni,
  input  logic            push_i,        // a word is taken
  input  logic [Bits-1:0] in_i,
  input  logic            valid_i,       // a word is offered at the output
  input  logic            ready_i,
  input  logic [Bits-1:0] out_i,
  input  logic            mark_i,
  output logic [1:0]      held_o,      // words inside
  input  logic            valid_q_i,
  input  logic            spare_q_i,
  input  logic [Bits-1:0] spare_data_q_i
);
  logic            pop, begun_q, marked_q, before_q, stalled_q;
  logic [1:0]      inside_q;
  logic [Bits-1:0] word_q, out_q;
  assign pop = valid_i && ready_i;
  assign held_o = inside_q;

  initial begun_q = 1'b0;
  always_ff @(posedge clk_i) begin
    begun_q <= 1'b1;
    out_q <= out_i;
    if (!rst_ni) begin
      inside_q <= '0;
      marked_q <= 1'b0;
      stalled_q <= 1'b0;
    end else begin
      inside_q <= inside_q + 2'(push_i) - 2'(pop);
      stalled_q <= valid_i && !ready_i;
      if (marked_q) begin
        if (pop) before_q <= 1'b0;
        if (pop) marked_q <= before_q;
      end else if (push_i && mark_i) begin
        marked_q <= 1'b1;
        before_q <= inside_q != 2'(pop);
        word_q <= in_i;
      end
    end
  end

  always_comb begin
    if (begun_q && rst_ni) begin
      assert (valid_i == (inside_q != '0));
      if (marked_q && !before_q) assert (valid_i && out_i == word_q);
      if (stalled_q) assert (valid_i && out_i == out_q);
      // For the induction: where the words are stored.
      assert (inside_q <= 2'd2 && 2'(valid_q_i) + 2'(spare_q_i) == inside_q);
      assert (valid_q_i || !spare_q_i);
      if (marked_q) assert (2'(before_q) < inside_q);
      if (marked_q && before_q) assert (spare_data_q_i == word_q);
    end
  end
endmodule
