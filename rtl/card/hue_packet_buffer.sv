// Ring buffer of beats that holds the bodies of frames while the stages decide.
//
// Place: between gather, which writes, and scatter, which reads any beats of the oldest frame, any number of times, and
// releases them.
// Latency: a beat can be read one clock after it is written; read data comes one clock after its address. Throughput: a
// beat in and a beat out a clock.

module hue_packet_buffer #(
  parameter int unsigned Words = 4096,
  parameter int unsigned Bits = 64,
  localparam int unsigned PtrBits = $clog2(Words) + 1
) (
  input  logic               clk_i,
  input  logic               rst_ni,
  input  logic               write_i,     // only when ready_o
  output logic               ready_o,
  input  logic [Bits-1:0]    data_i,
  output logic [PtrBits-1:0] filled_o,    // beats written and not yet released
  input  logic               read_i,
  input  logic [10:0]        offset_i,    // from the oldest beat; below filled_o
  output logic [Bits-1:0]    data_o,
  input  logic               release_i,
  input  logic [10:0]        beats_i      // to release: at most filled_o; may still be read in the same clock
);

  if (Words < 2048 / (Bits / 8) || (Words & (Words - 1)) != 0) begin : g_words
    $fatal(1, "Words: expected a power of two");
  end

  logic [PtrBits-1:0] wptr_q, rptr_q, raddr;

  assign filled_o = wptr_q - rptr_q;
  assign ready_o = filled_o != PtrBits'(Words);
  assign raddr = rptr_q + PtrBits'(offset_i);

  hue_ram #(.Words(Words), .Bits(Bits)) u_ram (
    .clk_i, .write_i, .waddr_i(wptr_q[PtrBits-2:0]), .wdata_i(data_i),
    .read_i, .raddr_i(raddr[PtrBits-2:0]), .rdata_o(data_o)
  );

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      wptr_q <= '0;
      rptr_q <= '0;
    end else begin
      wptr_q <= wptr_q + PtrBits'(write_i);
      if (release_i) rptr_q <= rptr_q + PtrBits'(beats_i);
    end
  end

  logic unused;
  assign unused = raddr[PtrBits-1];

`ifndef SYNTHESIS
  a_no_overflow: assert property (@(posedge clk_i) disable iff (!rst_ni) write_i |-> ready_o);
  a_reads_what_is_there: assert property (@(posedge clk_i) disable iff (!rst_ni)
    read_i |-> 32'(offset_i) < 32'(filled_o));
  a_releases_what_is_there: assert property (@(posedge clk_i) disable iff (!rst_ni)
    release_i |-> 32'(beats_i) <= 32'(filled_o));
`endif

endmodule
