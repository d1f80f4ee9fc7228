// Weights: how many bytes a turn adds to the credit of a network at each output port.
//
// Place: inside hue_output_queues, beside hue_queue_turns, which looks up a network's quantum during its turn. The driver writes
// a row for each network; until then the row is `QuantumBytes`. A read by the driver takes a clock in which no port has a step.
// The table has no parity: a wrong bit changes shares, never a frame.
//
// Latency: 1 clock from `net_i` to `quantum_o`. Throughput: one lookup a clock, except for `wait_o`.
module hue_queue_weights
  import hue_pkg::*;
  import hue_regs_pkg::*;
#(
  parameter int unsigned Nets = 64,
  parameter int unsigned QuantumBytes = 2048,
  localparam int unsigned NetBits = Nets > 1 ? $clog2(Nets) : 1
) (
  input  logic               clk_i,
  input  logic               rst_ni,
  input  logic               clearing_i,   // after reset: row `clear_i` gets its initial value
  input  logic [NetBits-1:0] clear_i,

  input  tbl_req_t           tbl_req_i,
  output tbl_rsp_t           tbl_rsp_o,
  output logic               wait_o,       // the driver reads in the next clock: `net_i` must be 0 then

  input  logic [NetBits-1:0] net_i,
  output logic [15:0]        quantum_o
);

  logic               start, want_q, serve, write, reads_q, read_q;
  logic [NetBits-1:0] row, addr;
  row_quantum_t       rows_q [1 << NetBits];
  row_quantum_t       row_q;

  hue_table_port #(.Id(TABLE_QUANTUM), .Rows(Nets), .Late(1'b1)) u_port (
    .clk_i, .rst_ni, .tbl_req_i, .tbl_rsp_o, .start_o(start), .addr_o(row), .done_i(write || read_q), .rdata_i(256'(row_q))
  );
  // An access that comes too early waits until all rows have their initial value.
  assign serve = (start || want_q) && !clearing_i;
  assign write = serve && tbl_req_i.write;
  assign wait_o = serve && !tbl_req_i.write;
  assign addr = reads_q ? row : net_i;
  // In LUT memory, so that a row is in a register before it is added to a credit.
  always_ff @(posedge clk_i) begin
    if (clearing_i) rows_q[clear_i] <= row_quantum_t'(QuantumBytes);
    else if (write) rows_q[row] <= tbl_req_i.wdata[$bits(row_quantum_t)-1:0];
    row_q <= rows_q[addr];
    if (!rst_ni) {want_q, reads_q, read_q} <= '0;
    else {want_q, reads_q, read_q} <= {(start || want_q) && clearing_i, wait_o, reads_q};
  end
`ifdef HUE_PLANT_QUEUES_WEIGHT
  assign quantum_o = 16'(QuantumBytes);  // for scripts/rtl-test: the bench must find this
`else
  assign quantum_o = row_q.bytes;
`endif

`ifndef SYNTHESIS
  a_waits: assert property (@(posedge clk_i) disable iff (!rst_ni) reads_q |-> net_i == '0);
`endif
endmodule
