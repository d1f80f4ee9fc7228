// Many 64-bit counters in one memory, of which one can be incremented each clock.
//
// Place: per-network counters, with at most one event a clock. The host reads (and clears) a counter in a clock without an
// event, after HostWaitMax + 2 clocks at the latest: then `ready_o` is 0 for one clock.
// After reset all counters are set to zero, one a clock; until that is done, `ready_o` is 0 and the host reads zeros.
// Latency: an event counts 4 clocks later; a host read is done two clocks after it starts and includes all events before it.
// Throughput: an event a clock, also for the same counter.

module hue_counter_ram #(
  parameter int unsigned Words = 512,
  localparam int unsigned IndexBits = $clog2(Words)
) (
  input  logic                 clk_i,
  input  logic                 rst_ni,

  output logic                 ready_o,
  output logic                 ready_soon_o,  // `ready_o` two clocks later
  input  logic                 valid_i,       // only when ready_o
  input  logic [IndexBits-1:0] index_i,
  input  logic [15:0]          add_i,

  // Held until `host_done_o`, which is 1 for one clock, with the value.
  input  logic                 host_valid_i,
  input  logic                 host_clear_i,
  input  logic [IndexBits-1:0] host_index_i,
  output logic                 host_done_o,
  output logic [63:0]          host_value_o
);

  localparam int unsigned HostWaitMax = 16;
  localparam int unsigned WaitBits = $clog2(HostWaitMax + 1);

  // Clock 0: read; clock 1: the word leaves the memory, late in the clock; clock 2: add; clock 3: write. Words in flight are
  // forwarded; clock 1 selects the source.
  localparam logic [1:0] FromMemory = 2'd0;
  localparam logic [1:0] From3 = 2'd1;  // being written
  localparam logic [1:0] From4 = 2'd2;  // written one clock before
  localparam logic [1:0] From5 = 2'd3;  // written two clocks before
  logic                 clearing_q, clearing1_q, clearing2_q, force_next_q, force_q;
  logic [IndexBits-1:0] clear_q;
  logic [WaitBits-1:0]  wait_q;
  logic                 clearing, force_soon, host_start, host_busy, read, host1_q, clear1_q, host2_q, clear2_q;
  logic                 v1_q, v2_q, v3_q, v4_q, writes2;
  logic [IndexBits-1:0] index, index1_q, index2_q, index3_q, index4_q;
  logic [15:0]          add1_q, add2_q;
  logic [1:0]           from2_q, from1;
  logic [63:0]          stored, stored2_q, present, next, value3_q, value4_q, value5_q;
  logic                 write;

  assign ready_o = !clearing_q && !force_q;
  assign clearing = clearing_q && clear_q != IndexBits'(Words - 1);
  assign force_soon = wait_q == WaitBits'(HostWaitMax) && !force_next_q && !force_q;
  assign ready_soon_o = !(clearing && clear_q != IndexBits'(Words - 2)) && !force_soon;
  assign host_busy = host1_q || host2_q;
  assign host_start = host_valid_i && !host_busy && !valid_i;
  assign read = valid_i || host_start;
  assign index = valid_i ? index_i : host_index_i;

  hue_ram #(.Words(Words), .Bits(64)) u_ram (
    .clk_i, .write_i(write), .waddr_i(clearing_q ? clear_q : index3_q), .wdata_i(value3_q),
    .read_i(read), .raddr_i(index), .rdata_o(stored)
  );
  assign write = clearing_q || v3_q;
  assign writes2 = v2_q && !clearing2_q;

  always_comb begin
    from1 = FromMemory;
    if (v4_q && index4_q == index1_q) from1 = From5;
    if (v3_q && index3_q == index1_q) from1 = From4;
`ifndef HUE_PLANT_COUNTER_FORWARD  // for scripts/rtl-test: the bench must find this
    if (writes2 && index2_q == index1_q) from1 = From3;
`endif
    case (from2_q)
      From3:   present = value3_q;
      From4:   present = value4_q;
      From5:   present = value5_q;
      default: present = stored2_q;
    endcase
    next = present + 64'(add2_q);  // adds zero for the host
  end

  assign host_done_o = host2_q;
  // A read while the memory is being cleared returns zero and is not written back.
  assign host_value_o = clearing2_q ? '0 : present;

  always_ff @(posedge clk_i) begin
    index1_q <= index;
    index2_q <= index1_q;
    index3_q <= index2_q;
    index4_q <= index3_q;
    clearing1_q <= clearing_q;
    clearing2_q <= clearing1_q;
    add1_q <= valid_i ? add_i : '0;
    add2_q <= add1_q;
    clear1_q <= host_clear_i;
    clear2_q <= clear1_q;
    from2_q <= from1;
    stored2_q <= stored;
    // Zero while clearing and when the host clears: by the register's own reset.
    value3_q <= !rst_ni || clearing_q || (host2_q && clear2_q) ? '0 : next;
    value4_q <= value3_q;
    value5_q <= value4_q;
    if (!rst_ni) begin
      clearing_q <= 1'b1;
      clear_q <= '0;
      wait_q <= '0;
      {force_q, force_next_q} <= '0;
      {v4_q, v3_q, v2_q, v1_q} <= '0;
      {host2_q, host1_q} <= '0;
    end else begin
      if (clearing_q) clear_q <= clear_q + 1'b1;
      clearing_q <= clearing;
      wait_q <= host_valid_i && !host_start && !host_busy ? wait_q + WaitBits'(wait_q != WaitBits'(HostWaitMax)) : '0;
      {force_q, force_next_q} <= {force_next_q, force_soon};
      {v4_q, v3_q, v2_q, v1_q} <= {v3_q, writes2, v1_q, read};
      {host2_q, host1_q} <= {host1_q, host_start};
    end
  end

`ifndef SYNTHESIS
  a_event_when_ready: assert property (@(posedge clk_i) disable iff (!rst_ni) valid_i |-> ready_o);
  a_host_latency: assert property (@(posedge clk_i) disable iff (!rst_ni) $past(host_start, 2) |-> host_done_o);
`endif

endmodule
