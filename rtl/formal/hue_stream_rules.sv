// The rules of a stream at a module's port: asserted for an output, assumed for an input.
//
// Place: harnesses in this folder. An offered beat is stable until it is taken (AXI-Stream §2.2.1). It carries all bytes unless it is
// the last beat of a frame, which carries at least one. `AllowEmpty`: a frame of no bytes is one beat.
module hue_stream_rules #(
  parameter bit          Assume = 1'b0,
  parameter bit          AllowEmpty = 1'b0,
  parameter int unsigned Bits = 1,
  parameter int unsigned BusBytes = 8,
  localparam int unsigned ByteBits = $clog2(BusBytes + 1)
) (
  input logic                clk_i,
  input logic                rst_ni,
  input logic                valid_i,
  input logic                ready_i,
  input logic                last_i,
  input logic [ByteBits-1:0] bytes_i,
  input logic [Bits-1:0]     payload_i
);
  logic                     stalled_q, inside_q, stays, whole;
  logic [Bits+ByteBits:0]   beat_q;
  assign stays = !stalled_q || (valid_i && {last_i, bytes_i, payload_i} == beat_q);
  assign whole = !valid_i || bytes_i == ByteBits'(BusBytes) ||
                 (last_i && bytes_i < ByteBits'(BusBytes) && (bytes_i != '0 || (AllowEmpty && !inside_q)));

  initial stalled_q = 1'b0;
  always_ff @(posedge clk_i) begin
    beat_q <= {last_i, bytes_i, payload_i};
    stalled_q <= rst_ni && valid_i && !ready_i;
    if (!rst_ni) inside_q <= 1'b0;
    else if (valid_i && ready_i) inside_q <= !last_i;
  end

  if (Assume) begin : g_assume
    always_comb begin
      if (rst_ni) assume (stays && whole);
    end
  end else begin : g_assert
    always_comb begin
      if (rst_ni) assert (stays);
      if (rst_ni) assert (whole);
    end
  end
endmodule
