// One bank of route words: on-chip memory, or the model of an external SRAM, a pipelined ZBT part of 18 Mbit (512K words of 36
// bits) with the FPGA's I/O registers.
//
// Place: at the memory ports of hue_sram_port. With on-chip banks (hue_card's SramOnChip) it is part of the card. With external
// ones it is outside the card's logic: simulation uses this model, the twin has its own, a board has the part.
// Accesses are performed in order, a read after a write of the same word returns what was written, and reads and writes
// may alternate every clock: there is no turnaround cost. All words are 0 after configuration.
// Latency: read data is on `rdata_o` `Latency` clocks after the access (2: the block RAMs' output register, and one behind the
// multiplexer of many of them; 4: the FPGA's output register, the part's address register, its output register, the FPGA's input
// register). Throughput: one access a clock.
// Tests flip bits in `words_q`, which Verilator makes accessible to them; this adds nothing to the logic.
// Source: Unnikrishnan §3 (two banks of 2^19 words of 36 bits on the NetFPGA).
module hue_sram_bank #(
    parameter int unsigned Words   = 1 << 19,  // a power of two
    parameter int unsigned Latency = 4,        // at least 2
    localparam int unsigned AddrBits = $clog2(Words)
) (
    input  logic                clk_i,
    input  logic                en_i,
    input  logic                write_i,
    input  logic [AddrBits-1:0] addr_i,
    input  logic [35:0]         wdata_i,
    output logic [35:0]         rdata_o
);
  if (Words < 2 || (Words & (Words - 1)) != 0) begin : gen_check_words
    $fatal(1, "hue_sram_bank: Words is %0d, a power of two of at least 2", Words);
  end
  if (Latency < 2) begin : gen_check_latency
    $fatal(1, "hue_sram_bank: Latency is %0d, at least 2", Latency);
  end

  // For synthesis of on-chip banks. Without it, Yosys takes LUT memory for UltraScale+, and fails.
  (* ram_style = "block" *)
  logic [35:0] words_q[Words] /* verilator public_flat_rw */;
  initial words_q = '{default: '0};

  logic [Latency-1:0][35:0] data_q;
  always_ff @(posedge clk_i) begin
    if (en_i && write_i) words_q[addr_i] <= wdata_i;
    if (en_i && !write_i) data_q[0] <= words_q[addr_i];
    data_q[Latency-1:1] <= data_q[Latency-2:0];
  end
  assign rdata_o = data_q[Latency-1];
endmodule
