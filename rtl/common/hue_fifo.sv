// First-word fall-through FIFO of a few words in LUT memory; for many words: hue_deep_fifo.
//
// Place: records, plans and beats beside a path of frames. `room_o` counts free slots, for senders that cannot
// stop at once.
// Latency: 1 clock from push to `valid_o`. Throughput: a push and a pop a clock. No combinational path crosses it.

module hue_fifo #(
  parameter int unsigned Depth = 8,
  parameter int unsigned Bits = 8,
  localparam int unsigned CountBits = $clog2(Depth + 1)
) (
  input  logic                 clk_i,
  input  logic                 rst_ni,
  input  logic                 valid_i,
  output logic                 ready_o,
  input  logic [Bits-1:0]      data_i,
  output logic                 valid_o,
  input  logic                 ready_i,
  output logic [Bits-1:0]      data_o,
  output logic [CountBits-1:0] room_o
);

  localparam int unsigned FewWords = 64;
  if (Depth < 2 || Depth > FewWords || (Depth & (Depth - 1)) != 0) begin : g_depth
    $fatal(1, "Depth: expected a power of two, 2 to 64");
  end

  localparam int unsigned AddrBits = $clog2(Depth);

  logic [AddrBits-1:0]  wptr_q, rptr_q;
  logic [CountBits-1:0] count_q;
  logic                 push, pop;
  logic                 some_q, room_q;  // not empty, not full: registers, as they drive long paths

  assign valid_o = some_q;
  assign ready_o = room_q;
  assign room_o = CountBits'(Depth) - count_q;
  assign push = valid_i && ready_o;
  assign pop = valid_o && ready_i;

  logic [Bits-1:0] words_q [Depth];
  always_ff @(posedge clk_i) if (push) words_q[wptr_q] <= data_i;
  assign data_o = words_q[rptr_q];

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      wptr_q <= '0;
      rptr_q <= '0;
      count_q <= '0;
      some_q <= 1'b0;
      room_q <= 1'b1;
    end else begin
      if (push) wptr_q <= wptr_q + 1'b1;
      if (pop) rptr_q <= rptr_q + 1'b1;
      count_q <= count_q + CountBits'(push) - CountBits'(pop);
      some_q <= push || (some_q && !(pop && count_q == CountBits'(1)));
      room_q <= pop || (room_q && !(push && count_q == CountBits'(Depth - 1)));
    end
  end

`ifndef SYNTHESIS
  a_stable: assert property (@(posedge clk_i) disable iff (!rst_ni)
    (valid_o && !ready_i) |=> (valid_o && $stable(data_o)));
  a_latency: assert property (@(posedge clk_i) disable iff (!rst_ni) push |=> valid_o);
  a_count: assert property (@(posedge clk_i) disable iff (!rst_ni) count_q <= CountBits'(Depth));
  a_some: assert property (@(posedge clk_i) disable iff (!rst_ni) some_q == (count_q != '0));
  a_room: assert property (@(posedge clk_i) disable iff (!rst_ni) room_q == (count_q != CountBits'(Depth)));
`endif

endmodule
