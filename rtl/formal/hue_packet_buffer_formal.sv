// Proof harness of hue_packet_buffer: a beat is read as it was written, however often it is read, until it is released.
//
// Place: scripts/formal. Inputs are free except for the rules of the module's ports. `mark_i` picks any one beat.
module hue_packet_buffer_formal #(
  parameter int unsigned Words = 4,
  parameter int unsigned Bits = 2,
  localparam int unsigned PtrBits = $clog2(Words) + 1
) (
  input logic            clk_i,
  input logic            rst_ni,
  input logic            write_i,
  input logic [Bits-1:0] data_i,
  input logic            read_i,
  input logic [10:0]     offset_i,
  input logic            release_i,
  input logic [10:0]     beats_i,
  input logic            mark_i
);
  logic               ready_o;
  logic [PtrBits-1:0] filled_o;
  logic [Bits-1:0]    data_o;
  hue_packet_buffer #(.Words(Words), .Bits(Bits)) u_dut (.*);

  // Number of beats inside; the marked one, and how many are older; whether it was read one clock ago.
  logic               begun_q, marked_q, asked_q;
  logic [PtrBits-1:0] filled_q, gone, older_q;
  logic [Bits-1:0]    kept_q;
  assign gone = release_i ? PtrBits'(beats_i) : '0;

  initial begun_q = 1'b0;
  always_ff @(posedge clk_i) begin
    begun_q <= 1'b1;
    asked_q <= rst_ni && read_i && marked_q && 32'(offset_i) == 32'(older_q);
    if (!rst_ni) begin
      filled_q <= '0;
      marked_q <= 1'b0;
    end else begin
      filled_q <= filled_q + PtrBits'(write_i) - gone;
      if (write_i && mark_i && !marked_q && !asked_q) begin
        marked_q <= 1'b1;
        kept_q <= data_i;
        older_q <= filled_q - gone;
      end else if (marked_q) begin
        older_q <= older_q - gone;
        if (gone > older_q) marked_q <= 1'b0;
      end
    end
  end

  always_comb begin
    assume (rst_ni == begun_q);
    if (begun_q) begin
      if (write_i) assume (32'(filled_q) < Words);
      if (read_i) assume (32'(offset_i) < 32'(filled_q));
      if (release_i) assume (32'(beats_i) <= 32'(filled_q));
      assert (filled_o == filled_q && ready_o == (32'(filled_q) < Words));
      if (asked_q) assert (data_o == kept_q);
    end
  end
endmodule
