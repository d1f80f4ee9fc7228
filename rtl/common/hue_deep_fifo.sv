// First-word fall-through FIFO of many words in block RAM, or of up to 64 in LUT memory.
//
// Place: tags, descriptors and free cells beside a path of frames. The output of a block RAM is late in the clock, so it
// feeds only a prefetch FIFO of a few words in LUT memory.
// Latency: `Latency` clocks from push to `valid_o` when empty. Throughput: a push and a pop a clock. No combinational
// path crosses it.

module hue_deep_fifo #(
  parameter int unsigned Depth = 64,
  parameter int unsigned Bits = 8
) (
  input  logic            clk_i,
  input  logic            rst_ni,
  input  logic            valid_i,
  output logic            ready_o,
  input  logic [Bits-1:0] data_i,
  output logic            valid_o,
  input  logic            ready_i,
  output logic [Bits-1:0] data_o
);

  if (Depth < 4 || (Depth & (Depth - 1)) != 0) begin : g_depth
    $fatal(1, "Depth: expected a power of two, at least 4");
  end

  localparam int unsigned Latency = 3;
  localparam int unsigned PtrBits = $clog2(Depth) + 1;
  localparam int unsigned Ahead = 4;
  localparam int unsigned LutDepthMax = 64;
  localparam int unsigned AheadBits = $clog2(Ahead + 1);

  // Pointers have one bit more than addresses, to tell full from empty.
  logic [PtrBits-1:0]   wptr_q, wptr_d, rptr_q;
  logic                 full_q, push, read, read_q, ahead_ready;
  logic [Bits-1:0]      rdata;
  logic [AheadBits-1:0] ahead_room;

  // Prefetched words have left the memory and no longer count. After a clock with a read the memory is never full, even if
  // a word was written in that clock.
  assign ready_o = !full_q;
  assign push = valid_i && ready_o;
  assign wptr_d = wptr_q + PtrBits'(push);
  assign read = rptr_q != wptr_q && ahead_room > AheadBits'(read_q);

  // Few words would take a block RAM for each 36 bits, nearly empty.
  hue_ram #(.Words(Depth), .Bits(Bits), .Lut(Depth <= LutDepthMax)) u_words (
    .clk_i, .write_i(push), .waddr_i(wptr_q[PtrBits-2:0]), .wdata_i(data_i),
    .read_i(read), .raddr_i(rptr_q[PtrBits-2:0]), .rdata_o(rdata)
  );

  hue_fifo #(.Depth(Ahead), .Bits(Bits)) u_ahead (
    .clk_i, .rst_ni, .valid_i(read_q), .ready_o(ahead_ready), .data_i(rdata),
    .valid_o, .ready_i, .data_o, .room_o(ahead_room)
  );

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      wptr_q <= '0;
      full_q <= 1'b0;
      rptr_q <= '0;
      read_q <= 1'b0;
    end else begin
      wptr_q <= wptr_d;
      full_q <= !read && wptr_d - rptr_q == PtrBits'(Depth);
      rptr_q <= rptr_q + PtrBits'(read);
      read_q <= read;
    end
  end

`ifndef SYNTHESIS
  a_stable: assert property (@(posedge clk_i) disable iff (!rst_ni)
    (valid_o && !ready_i) |=> (valid_o && $stable(data_o)));
  a_ahead_has_room: assert property (@(posedge clk_i) disable iff (!rst_ni) read_q |-> ahead_ready);
  a_latency: assert property (@(posedge clk_i) disable iff (!rst_ni)
    ($past(push && rptr_q == wptr_q && !read_q && !valid_o, Latency)) |-> valid_o);
`endif

endmodule
