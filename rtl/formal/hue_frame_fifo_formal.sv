// Proof harness of hue_frame_fifo: committed words leave in order, each once, unaltered. No word of a discarded frame leaves.
//
// Place: scripts/formal. Inputs are free except for the rules for the writer in the module's head. `mark_i` picks any one word when it
// is written. The harness counts the words before it, and unmarks it when its frame is discarded. Any word can be the marked one,
// so every word that leaves is accounted for.
module hue_frame_fifo_formal #(
  parameter int unsigned Words = 4,
  parameter int unsigned Bits = 2
) (
  input logic            clk_i,
  input logic            rst_ni,
  input logic            write_i,
  input logic [Bits-1:0] data_i,
  input logic            commit_i,
  input logic            rewind_i,
  input logic            cut_i,
  input logic            ready_i,
  input logic            mark_i
);
  localparam int unsigned Ahead = 4;  // words that may be read ahead from the memory, as in the module
  localparam int unsigned ShowsMax = 2;  // clocks for which committed words wait while none is visible
  localparam int unsigned AddrBits = $clog2(Words);
  localparam int unsigned AheadBits = $clog2(Ahead);
  typedef logic [$clog2(Words + Ahead + 2):0] count_t;

  logic            full_o, valid_o, empty_o;
  logic [Bits-1:0] data_o;
  hue_frame_fifo #(.Words(Words), .Bits(Bits)) u_dut (
    .clk_i, .rst_ni, .write_i, .data_i, .commit_i, .rewind_i, .cut_i, .full_o, .valid_o, .ready_i, .data_o, .empty_o
  );

  // Committed words that have not left, and words of the frame that is being written. `inside_q`: all words of the clock before,
  // without those discarded then.
  count_t          committed_q, pending_q, pending, before_q, before_d, inside_q;
  logic            begun_q, pop, marked_q, kept;
  logic [Bits-1:0] word_q;
  logic [1:0]      shows_q;
  assign pop = valid_o && ready_i;
  assign pending = cut_i ? count_t'(1) : pending_q + count_t'(write_i);
  assign before_d = before_q - count_t'(pop);
  // The marked word is already committed, or is not discarded in this clock.
  assign kept = before_q < committed_q || (!rewind_i && (!cut_i || before_q == committed_q));

  initial begun_q = 1'b0;
  always_ff @(posedge clk_i) begin
    begun_q <= 1'b1;
    if (!rst_ni) begin
      committed_q <= '0;
      pending_q <= '0;
      inside_q <= '0;
      marked_q <= 1'b0;
      shows_q <= '0;
    end else begin
      committed_q <= committed_q - count_t'(pop) + (commit_i ? pending : count_t'(0));
      pending_q <= commit_i || rewind_i ? '0 : pending;
      inside_q <= committed_q + (rewind_i ? '0 : cut_i ? count_t'(1) : pending_q);
      shows_q <= committed_q == '0 || valid_o ? '0 : shows_q + 1'b1;
      if (marked_q) begin
        marked_q <= kept && !(pop && before_q == '0);
        before_q <= before_d;
      end else if (write_i && mark_i) begin
        marked_q <= 1'b1;
        before_q <= committed_q + pending_q - count_t'(pop);
        word_q <= data_i;
      end
    end
  end

  always_comb begin
    if (!begun_q) assume (!rst_ni);
    // The module's rules for its writer.
    assume (!(write_i && full_o));
    assume (!(rewind_i && (commit_i || cut_i || write_i)) && !(cut_i && write_i));
    assume (!cut_i || pending_q != '0);
  end

  // The property.
  logic leaves, places;
  assign leaves = empty_o == (committed_q == '0) && (committed_q != '0 || !valid_o)
                  && (shows_q < 2'(ShowsMax) || valid_o)
                  && (!(marked_q && before_q == '0 && valid_o && committed_q != '0) || data_o == word_q)
                  && (!full_o || inside_q >= count_t'(Words - 1));

  // For the induction: where the words are stored, and in which of the three places the marked one is.
  count_t in_memory, in_ahead, in_flight, place;
  logic [AheadBits-1:0] ahead_addr;
  logic [AddrBits-1:0] memory_addr;
  logic [Bits-1:0] found;
  assign in_memory = count_t'((AddrBits+1)'(u_dut.committed_q - u_dut.rptr_q));
  assign in_flight = count_t'(u_dut.read_q);
  assign in_ahead = count_t'(u_dut.u_ahead.count_q);
  assign place = before_q - in_ahead - in_flight;
  assign ahead_addr = u_dut.u_ahead.rptr_q + AheadBits'(before_q);
  assign memory_addr = u_dut.rptr_q[AddrBits-1:0] + AddrBits'(place);
  assign places = committed_q == in_memory + in_flight + in_ahead
                  && pending_q == count_t'((AddrBits+1)'(u_dut.wptr_q - u_dut.committed_q))
                  && (full_o || in_memory + pending_q < count_t'(Words))
                  && in_memory + pending_q <= count_t'(Words) && in_ahead + in_flight <= count_t'(Ahead)
                  && u_dut.u_ahead.wptr_q == u_dut.u_ahead.rptr_q + AheadBits'(in_ahead)
                  && shows_q <= 2'(ShowsMax) && (shows_q != 2'd1 || in_ahead + in_flight != '0)
                  && (!marked_q || (before_q < committed_q + pending_q && found == word_q));
  always_comb begin
    if (before_q < in_ahead) found = u_dut.u_ahead.words_q[ahead_addr];
    else if (before_q < in_ahead + in_flight) found = u_dut.u_ram.rdata_o;
    else found = u_dut.u_ram.gen_part[0].gen_column[0].gen_block.words_q[memory_addr];
    // One assertion, so that the induction can assume all of it.
    if (begun_q && rst_ni) assert (leaves && places);
  end
endmodule
