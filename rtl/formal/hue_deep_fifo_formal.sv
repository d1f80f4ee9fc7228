// Proof harness of hue_deep_fifo: words leave in the order in which they came in, each once, unaltered, and are visible in time.
//
// Place: scripts/formal. Inputs are free. `mark_i` picks any one word when it enters; the harness counts the words before it. The
// property is: once none is before it, the word that leaves is the marked one, whichever was marked.
module hue_deep_fifo_formal #(
  parameter int unsigned Depth = 4,
  parameter int unsigned Bits = 1
) (
  input logic            clk_i,
  input logic            rst_ni,
  input logic            valid_i,
  input logic            ready_i,
  input logic [Bits-1:0] data_i,
  input logic            mark_i
);
  localparam int unsigned Ahead = 4;
  localparam int unsigned AddrBits = $clog2(Depth);
  localparam int unsigned AheadBits = $clog2(Ahead);
  localparam int unsigned CountBits = $clog2(Depth + Ahead + 1) + 1;
  localparam int unsigned ShowsMax = 2;
  typedef logic [CountBits-1:0] count_t;

  logic            ready_o, valid_o;
  logic [Bits-1:0] data_o;
  hue_deep_fifo #(.Depth(Depth), .Bits(Bits)) u_dut (
    .clk_i, .rst_ni, .valid_i, .ready_o, .data_i, .valid_o, .ready_i, .data_o
  );

  logic            push, pop, begun_q, marked_q;
  count_t          inside_q, before_q;
  logic [1:0]      shows_q;   // clocks for which the present first word has been first, up to ShowsMax
  logic [Bits-1:0] word_q;
  assign push = valid_i && ready_o;
  assign pop = valid_o && ready_i;

  initial begun_q = 1'b0;
  always_ff @(posedge clk_i) begin
    begun_q <= 1'b1;
    if (!rst_ni) begin
      inside_q <= '0;
      marked_q <= 1'b0;
      shows_q <= '0;
    end else begin
      inside_q <= inside_q + count_t'(push) - count_t'(pop);
      if (inside_q == '0 || pop) shows_q <= '0;
      else if (shows_q != 2'(ShowsMax)) shows_q <= shows_q + 2'd1;
      if (marked_q) begin
        if (pop) begin
          before_q <= before_q - 1'b1;
          marked_q <= before_q != '0;
        end
      end else if (push && mark_i) begin
        marked_q <= 1'b1;
        before_q <= inside_q - count_t'(pop);
        word_q <= data_i;
      end
    end
  end

  // The property. The queue holds at least Depth words, and is ready until then.
  logic leaves, places;
  assign leaves = (inside_q != '0 || !valid_o)
                  && (shows_q < 2'(ShowsMax) || valid_o)
                  && (!(marked_q && before_q == '0 && valid_o) || data_o == word_q)
                  && (ready_o || inside_q >= count_t'(Depth));

  // For the induction: where the words are stored, and in which of the three places the marked one is.
  count_t in_memory, in_ahead, in_flight, place;
  logic [AheadBits-1:0] ahead_addr;
  logic [AddrBits-1:0] memory_addr;
  logic [Bits-1:0] found;
  assign in_memory = count_t'((AddrBits+1)'(u_dut.wptr_q - u_dut.rptr_q));
  assign in_flight = count_t'(u_dut.read_q);
  assign in_ahead = count_t'(u_dut.u_ahead.count_q);
  assign place = before_q - in_ahead - in_flight;
  assign ahead_addr = u_dut.u_ahead.rptr_q + AheadBits'(before_q);
  assign memory_addr = u_dut.rptr_q[AddrBits-1:0] + AddrBits'(place);
  assign places = inside_q == in_memory + in_flight + in_ahead
                  && in_memory <= count_t'(Depth) && in_ahead + in_flight <= count_t'(Ahead)
                  && u_dut.u_ahead.wptr_q == u_dut.u_ahead.rptr_q + AheadBits'(in_ahead)
                  && shows_q <= 2'(ShowsMax) && (shows_q != 2'd1 || in_ahead + in_flight != '0)
                  && (!marked_q || (before_q < inside_q && found == word_q));
  always_comb begin
    if (before_q < in_ahead) found = u_dut.u_ahead.words_q[ahead_addr];
    else if (before_q < in_ahead + in_flight) found = u_dut.u_words.rdata_o;
    else found = u_dut.u_words.gen_part[0].gen_column[0].gen_lut.words_q[memory_addr];
    if (!begun_q) assume (!rst_ni);
    // One assertion, so that the induction can assume all of it.
    if (begun_q && rst_ni) assert (leaves && places);
  end
endmodule
