// Model of an external DRAM with its controller: word-addressed, slow to answer, unavailable during refresh.
//
// Place: outside the card's logic, at the memory pins of hue_card's output queues; benches use this model, the twin has its
// own, a board has the part and its vendor's controller. Accepts one read or write a clock, in order, except during refresh.
// The cost of rows, banks and bus turnarounds is covered by the word width: the queues need at most half of the clocks.
// Latency: read data is on `rdata_o` `Latency` clocks after the read is accepted. Throughput: an access a clock, except for
// `RefreshClocks` of every `RefreshPeriod`. The memory is never cleared.
module hue_dram #(
  parameter int unsigned Words = 1 << 16,
  parameter int unsigned Bits = 256,
  parameter int unsigned Latency = 24,          // at least 2
  parameter int unsigned RefreshPeriod = 488,   // clocks: 7.8 us at 62.5 MHz
  parameter int unsigned RefreshClocks = 22,    // 350 ns
  localparam int unsigned AddrBits = $clog2(Words)
) (
  input  logic            clk_i,
  input  logic            rst_ni,
  input  logic            valid_i,
  output logic            ready_o,
  input  logic            write_i,
  input  logic [23:0]     addr_i,
  input  logic [Bits-1:0] wdata_i,
  output logic            rvalid_o,
  output logic [Bits-1:0] rdata_o
);
  if (Latency < 2 || RefreshClocks >= RefreshPeriod) begin : gen_check
    $fatal(1, "hue_dram: Latency is at least 2, RefreshClocks less than RefreshPeriod");
  end

  logic [Bits-1:0]              words_q [Words];
  logic [Latency-1:0]           reads_q;
  logic [Latency-1:0][Bits-1:0] data_q;
  int unsigned                  clock_q;   // in the refresh period, which begins with the refresh
  logic [AddrBits-1:0]          addr;
  assign addr = addr_i[AddrBits-1:0];
  always_ff @(posedge clk_i) begin
    if (valid_i && ready_o && write_i) words_q[addr] <= wdata_i;
    data_q <= {data_q[Latency-2:0], words_q[addr]};
    if (!rst_ni) begin
      ready_o <= 1'b0;
      clock_q <= 0;
      reads_q <= '0;
    end else begin
      clock_q <= clock_q == RefreshPeriod - 1 ? 0 : clock_q + 1;
      ready_o <= clock_q >= RefreshClocks;
      reads_q <= {reads_q[Latency-2:0], valid_i && ready_o && !write_i};
    end
  end
  assign rvalid_o = reads_q[Latency-1];
  assign rdata_o = data_q[Latency-1];

`ifndef SYNTHESIS
  a_address: assert property (@(posedge clk_i) disable iff (!rst_ni) (valid_i && ready_o) |-> 32'(addr_i) < Words);
`endif
endmodule
