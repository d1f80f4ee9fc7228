// FIFO of words in block RAM, filled frame by frame: words become visible at the output once their frame is committed.
//
// Place: inside the input queues. The writer discards a frame with `rewind_i`, or all of it but its first word with
// `cut_i`; `commit_i` includes the word written, or the cut made, in the same clock. `rewind_i` comes alone, `cut_i`
// without `write_i` and after at least one word.
// Latency: `Latency` clocks from commit to `valid_o` when empty. Throughput: a word in and a word out a clock.

module hue_frame_fifo #(
  parameter int unsigned Words = 512,
  parameter int unsigned Bits = 64
) (
  input  logic            clk_i,
  input  logic            rst_ni,
  input  logic            write_i,   // only when !full_o
  input  logic [Bits-1:0] data_i,
  input  logic            commit_i,
  input  logic            rewind_i,
  input  logic            cut_i,
  output logic            full_o,
  output logic            valid_o,
  input  logic            ready_i,
  output logic [Bits-1:0] data_o,
  output logic            empty_o    // holds no committed word
);

  if (Words < 4 || (Words & (Words - 1)) != 0) begin : g_words
    $fatal(1, "Words: expected a power of two, at least 4");
  end

  localparam int unsigned Latency = 3;
  localparam int unsigned PtrBits = $clog2(Words) + 1;
  localparam int unsigned Ahead = 4;
  localparam int unsigned AheadBits = $clog2(Ahead + 1);

  // Pointers have one bit more than addresses, to tell full from empty.
  logic [PtrBits-1:0]   wptr_q, wptr_d, wptr_next, committed_q, rptr_q;
  logic [PtrBits-1:0]   whole;   // committed words in the memory
  logic                 full_q, read, read_q, ahead_valid, ahead_ready;
  logic [Bits-1:0]      rdata;
  logic [AheadBits-1:0] ahead_room;

  // A slot is free again once its word has been read from the memory. `full_q` is based on the pointers of the clock before,
  // in which one more slot may have been taken: so the last slot is only filled in the clock right after the one before it.
  assign full_o = full_q;
  assign wptr_next = cut_i ? committed_q + 1'b1 : wptr_q + PtrBits'(write_i);
  assign wptr_d = rewind_i ? committed_q : wptr_next;
  assign whole = committed_q - rptr_q;
  assign read = rptr_q != committed_q && ahead_room > AheadBits'(read_q);

  hue_ram #(.Words(Words), .Bits(Bits)) u_ram (
    .clk_i, .write_i, .waddr_i(wptr_q[PtrBits-2:0]), .wdata_i(data_i),
    .read_i(read), .raddr_i(rptr_q[PtrBits-2:0]), .rdata_o(rdata)
  );

  hue_fifo #(.Depth(Ahead), .Bits(Bits)) u_ahead (
    .clk_i, .rst_ni, .valid_i(read_q), .ready_o(ahead_ready), .data_i(rdata),
    .valid_o(ahead_valid), .ready_i, .data_o, .room_o(ahead_room)
  );
  assign valid_o = ahead_valid;
  assign empty_o = rptr_q == committed_q && !read_q && !ahead_valid;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      wptr_q <= '0;
      full_q <= 1'b0;
      committed_q <= '0;
      rptr_q <= '0;
      read_q <= 1'b0;
    end else begin
      wptr_q <= wptr_d;
      if (rewind_i) full_q <= whole >= PtrBits'(Words - 1);
      else if (cut_i) full_q <= whole >= PtrBits'(Words - 2);
      else full_q <= wptr_q - rptr_q >= PtrBits'(Words - 1);
      if (commit_i) committed_q <= wptr_next;
      rptr_q <= rptr_q + PtrBits'(read);
      read_q <= read;
    end
  end

`ifndef SYNTHESIS
  a_no_overflow: assert property (@(posedge clk_i) disable iff (!rst_ni) write_i |-> !full_o);
  a_ahead_has_room: assert property (@(posedge clk_i) disable iff (!rst_ni) read_q |-> ahead_ready);
  a_one_at_a_time: assert property (@(posedge clk_i) disable iff (!rst_ni)
    !(rewind_i && (commit_i || cut_i || write_i)) && !(cut_i && write_i));
  a_cut_keeps_a_word: assert property (@(posedge clk_i) disable iff (!rst_ni) cut_i |-> wptr_q != committed_q);
  a_latency: assert property (@(posedge clk_i) disable iff (!rst_ni)
    $past(commit_i && write_i && empty_o, Latency) |-> valid_o);
`endif

endmodule
