// Delay line beside a pipeline: a word comes out `Clocks` steps after it went in.
//
// Place: records beside stages that use only a part of them. A ring in LUT memory and one register: a sixth of the
// flip-flops of a chain of eight. Block RAM, whose output is late in the clock, is left to tables.
// Latency: `Clocks` clocks in which `en_i` is 1. Throughput: a word a clock. Reset affects only the ring index.
module hue_delay #(
    parameter int unsigned Clocks = 4,
    parameter int unsigned Bits   = 8
) (
    input  logic            clk_i,
    input  logic            rst_ni,
    input  logic            en_i,
    input  logic [Bits-1:0] data_i,
    output logic [Bits-1:0] data_o
);
  localparam int unsigned Words = Clocks - 1;
  localparam int unsigned AddrBits = $clog2(Words);
  if (Clocks < 3) begin : gen_check
    $fatal(1, "hue_delay: Clocks is %0d, at least 3", Clocks);
  end

  (* ram_style = "distributed" *) logic [Bits-1:0] words_q[Words];
  logic [AddrBits-1:0] at_q;

  always_ff @(posedge clk_i) begin
    if (en_i) begin
      data_o        <= words_q[at_q];
      words_q[at_q] <= data_i;
    end
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni) at_q <= '0;
    else if (en_i) at_q <= at_q == AddrBits'(Words - 1) ? '0 : at_q + 1'b1;
  end
endmodule
