// Proof harness of hue_fifo: words leave in the order in which they came in, each once, unaltered.
//
// Place: scripts/formal. Inputs are free. `mark_i` picks any one word when it enters; the harness counts the words before it. The
// property is: once none is before it, the word that leaves is the marked one, whichever was marked.
module hue_fifo_formal #(
  parameter int unsigned Depth = 4,
  parameter int unsigned Bits = 2
) (
  input logic            clk_i,
  input logic            rst_ni,
  input logic            valid_i,
  input logic            ready_i,
  input logic [Bits-1:0] data_i,
  input logic            mark_i
);
  localparam int unsigned CountBits = $clog2(Depth + 1);
  localparam int unsigned AddrBits = $clog2(Depth);

  logic                 ready_o, valid_o;
  logic [Bits-1:0]      data_o;
  logic [CountBits-1:0] room_o;
  hue_fifo #(.Depth(Depth), .Bits(Bits)) u_dut (
    .clk_i, .rst_ni, .valid_i, .ready_o, .data_i, .valid_o, .ready_i, .data_o, .room_o
  );

  logic                 push, pop, begun_q, marked_q, stalled_q;
  logic [CountBits-1:0] inside_q, before_q;
  logic [Bits-1:0]      word_q, data_q;
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
      stalled_q <= valid_o && !ready_i;
      inside_q <= inside_q + CountBits'(push) - CountBits'(pop);
      if (marked_q) begin
        if (pop) begin
          before_q <= before_q - 1'b1;
          marked_q <= before_q != '0;
        end
      end else if (push && mark_i) begin
        marked_q <= 1'b1;
        before_q <= inside_q - CountBits'(pop);
        word_q <= data_i;
      end
    end
  end

  // Where the marked word is stored.
  logic [AddrBits-1:0] place;
  logic [Bits-1:0]     stored;
  assign place = AddrBits'(CountBits'(u_dut.rptr_q) + before_q);
  assign stored = u_dut.words_q[place];

  always_comb begin
    if (!begun_q) assume (!rst_ni);
    if (begun_q && rst_ni) begin
      assert (valid_o == (inside_q != '0));
      assert (ready_o == (inside_q != CountBits'(Depth)));
      assert (room_o == CountBits'(Depth) - inside_q);
      if (marked_q && before_q == '0) assert (valid_o && data_o == word_q);
      if (stalled_q) assert (valid_o && data_o == data_q);
      // For the induction: where the words are stored.
      assert (u_dut.count_q == inside_q && inside_q <= CountBits'(Depth));
      assert (u_dut.wptr_q == u_dut.rptr_q + AddrBits'(inside_q));
      if (marked_q) begin
        assert (before_q < inside_q);
        assert (stored == word_q);
      end
    end
  end
endmodule
