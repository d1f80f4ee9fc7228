// Several 64-bit counters that can all be incremented in the same clock, at the cost of a memory and a few bits each.
//
// Place: per-port counters. Each counter accumulates events in a few pending bits; a visitor goes round the counters, adds
// these bits to the counter's word and clears them. Host reads are visits too, so they include every event before them.
// After reset the visitor's first round sets all words to zero; events in that time are counted.
// Latency: a host read is done at most 2 clocks after its start. Throughput: one event a clock for each counter, as long as
// the events of one counter sum up to less than 2^PendingBits in 2 * Count + 4 clocks.

module hue_counters #(
  parameter int unsigned Count = 64,
  parameter int unsigned AddBits = 16,
  parameter int unsigned PendingBits = 18,
  localparam int unsigned IndexBits = $clog2(Count)
) (
  input  logic                          clk_i,
  input  logic                          rst_ni,
  input  logic [Count-1:0][AddBits-1:0] add_i,

  // Held until `host_done_o`, which is 1 for one clock, with the value.
  input  logic                 host_valid_i,
  input  logic                 host_clear_i,
  input  logic [IndexBits-1:0] host_index_i,
  output logic                 host_done_o,
  output logic [63:0]          host_value_o
);

  // A visit: clock 0 reads, clock 1 adds the pending bits and writes.
  logic [Count-1:0][PendingBits-1:0] pending_q;
  logic                              fresh_q, fresh, busy_q, host_q, clear_q, empties;
  logic [IndexBits-1:0]              round_q, index, index_q;
  logic [63:0]                       stored, value;

  assign index = host_valid_i ? host_index_i : round_q;
  // The first round has not reached this counter yet: the stored word is invalid.
  assign fresh = fresh_q && index_q >= round_q;
  // In that case a host read writes nothing, unless it also clears: the round sets the word later.
  assign empties = busy_q && !(host_q && fresh && !clear_q);

  hue_ram #(.Words(Count), .Bits(64)) u_ram (
    .clk_i, .write_i(empties), .waddr_i(index_q), .wdata_i(host_q && clear_q ? '0 : value),
    .read_i(!busy_q), .raddr_i(index), .rdata_o(stored)
  );
  assign value = (fresh ? '0 : stored) + 64'(pending_q[index_q]);
  assign host_done_o = busy_q && host_q;
  assign host_value_o = host_done_o ? value : '0;

  always_ff @(posedge clk_i) begin
    if (!busy_q) begin
      index_q <= index;
      host_q <= host_valid_i;
      clear_q <= host_clear_i;
    end
    if (!rst_ni) begin
      pending_q <= '0;
      fresh_q <= 1'b1;
      busy_q <= 1'b0;
      round_q <= '0;
    end else begin
      busy_q <= !busy_q;
      for (int unsigned c = 0; c < Count; c++) begin
        pending_q[c] <= (empties && index_q == IndexBits'(c) ? '0 : pending_q[c]) + PendingBits'(add_i[c]);
      end
      if (busy_q && !host_q) begin
        round_q <= round_q == IndexBits'(Count - 1) ? '0 : round_q + 1'b1;
        if (round_q == IndexBits'(Count - 1)) fresh_q <= 1'b0;
      end
    end
  end

`ifndef SYNTHESIS
  logic waits;
  assign waits = host_valid_i && !host_done_o;
  a_host_latency: assert property (@(posedge clk_i) disable iff (!rst_ni) !(waits && $past(waits) && $past(waits, 2)));
  for (genvar c = 0; c < Count; c++) begin : g_check
    a_pending_has_room: assert property (@(posedge clk_i) disable iff (!rst_ni)
      64'(pending_q[c]) + 64'(add_i[c]) < (64'd1 << PendingBits));
  end
`endif

endmodule
