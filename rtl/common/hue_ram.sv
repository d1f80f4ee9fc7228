// Memory with one write port and one read port, as in block RAM.
//
// Place: queues, packet buffer, counters. A deep one is built of columns (hue_pkg). Reading a word in the clock in which it
// is written returns an undefined value, so a block RAM needs no logic around it.
// Latency: data one clock after the address. Throughput: a read and a write a clock. Nothing is cleared by reset.

module hue_ram #(
  parameter int unsigned Words = 16,
  parameter int unsigned Bits = 8,
  localparam int unsigned AddrBits = Words > 1 ? $clog2(Words) : 1
) (
  input  logic                clk_i,
  input  logic                write_i,
  input  logic [AddrBits-1:0] waddr_i,
  input  logic [Bits-1:0]     wdata_i,
  input  logic                read_i,   // rdata_o holds when 0
  input  logic [AddrBits-1:0] raddr_i,
  output logic [Bits-1:0]     rdata_o
);

  localparam int unsigned ColumnBits = hue_pkg::column_bits(Words, Bits);
  for (genvar low = 0; low < Bits; low += ColumnBits) begin : gen_column
    localparam int unsigned Own = Bits - low < ColumnBits ? Bits - low : ColumnBits;
    logic [Own-1:0] words_q [Words];
    logic [Own-1:0] rdata_q;
    always_ff @(posedge clk_i) begin
      if (write_i) words_q[waddr_i] <= wdata_i[low+:Own];
      if (read_i) rdata_q <= write_i && waddr_i == raddr_i ? 'x : words_q[raddr_i];
    end
    assign rdata_o[low+:Own] = rdata_q;
  end

endmodule
