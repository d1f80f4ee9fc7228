// Memory with one write port and one read port, as in block RAM or LUT memory.
//
// Place: queues, packet buffer, counters. A deep memory is built of columns (hue_pkg), and of two parts if its number of words is
// not a power of two, because block RAMs have such sizes. Reading a word in the clock in which it is written returns an undefined
// value, so a block RAM needs no logic around it.
// Latency: data one clock after the address. Throughput: a read and a write a clock. Reset clears nothing.

module hue_ram #(
  parameter int unsigned Words = 16,
  parameter int unsigned Bits = 8,
  parameter bit          Lut = 1'b0,  // in LUT memory, even where a block RAM would cost less
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

  // The first part, and the words after it.
  localparam int unsigned Low = hue_pkg::low_words(Words);
  localparam int unsigned High = Words - Low;
  localparam int unsigned Parts = High != 0 ? 2 : 1;

  logic [Parts-1:0]           write, read;
  logic [Parts-1:0][Bits-1:0] rdata;
  if (Parts == 2) begin : gen_two
    logic high_q;
    assign write = {write_i && waddr_i[AddrBits-1], write_i && !waddr_i[AddrBits-1]};
    assign read  = {read_i && raddr_i[AddrBits-1], read_i && !raddr_i[AddrBits-1]};
    always_ff @(posedge clk_i) if (read_i) high_q <= raddr_i[AddrBits-1];
    assign rdata_o = rdata[high_q];
  end else begin : gen_one
    assign write   = write_i;
    assign read    = read_i;
    assign rdata_o = rdata[0];
  end

  for (genvar part = 0; part < Parts; part++) begin : gen_part
    localparam int unsigned PartWords = part == 0 ? Low : High;
    localparam int unsigned PartBits = PartWords > 1 ? $clog2(PartWords) : 1;
    localparam int unsigned ColumnBits = hue_pkg::column_bits(PartWords, Bits);
    logic [PartBits-1:0] waddr, raddr;
    assign waddr = waddr_i[PartBits-1:0];
    assign raddr = raddr_i[PartBits-1:0];
    for (genvar low = 0; low < Bits; low += ColumnBits) begin : gen_column
      localparam int unsigned Own = Bits - low < ColumnBits ? Bits - low : ColumnBits;
      logic [Own-1:0] rdata_q;
      assign rdata[part][low+:Own] = rdata_q;
      if (Lut) begin : gen_lut
        (* ram_style = "distributed" *) logic [Own-1:0] words_q [PartWords];
        always_ff @(posedge clk_i) begin
          if (write[part]) words_q[waddr] <= wdata_i[low+:Own];
          if (read[part]) rdata_q <= write[part] && waddr == raddr ? 'x : words_q[raddr];
        end
      end else begin : gen_block
        logic [Own-1:0] words_q [PartWords];
        always_ff @(posedge clk_i) begin
          if (write[part]) words_q[waddr] <= wdata_i[low+:Own];
          if (read[part]) rdata_q <= write[part] && waddr == raddr ? 'x : words_q[raddr];
        end
      end
    end
  end

endmodule
