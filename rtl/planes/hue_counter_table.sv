// A table of counters: hue_counter_ram behind the access unit.
//
// Place: at the end of hue_stages. The host reads a whole counter, or reads and clears it without losing a packet.
// Reset sets all counters to zero; no event may come before that is done, nor in a clock given to a waiting host. `ready_o`
// announces both two clocks before. Rows may come in groups, in which only the first few rows have a counter; the other rows
// take no memory, have no events, and read as 0.
//
// Latency: an event counts 4 clocks later, and a host read includes all events before it. Throughput: one event a clock.
module hue_counter_table #(
    parameter logic [7:0]  Id   = 8'd0,
    parameter int unsigned Rows = 2,
    parameter int unsigned GroupRows = 1,         // a power of two that divides `Rows`
    parameter int unsigned Counters = GroupRows,  // counters of a group, in its first rows
    localparam int unsigned AddrBits = $clog2(Rows)
) (
    input  logic                clk_i,
    input  logic                rst_ni,
    input  hue_pkg::tbl_req_t   tbl_req_i,
    output hue_pkg::tbl_rsp_t   tbl_rsp_o,
    output logic                ready_o,  // events may come two clocks later
    input  logic                valid_i,
    input  logic [AddrBits-1:0] addr_i,   // a row that has a counter
    input  logic [15:0]         add_i
);
  if (Rows < 2 || Rows % GroupRows != 0 || Counters < 1 || Counters > GroupRows) begin : gen_check
    $fatal(1, "hue_counter_table: Rows is %0d, GroupRows %0d, Counters %0d", Rows, GroupRows, Counters);
  end

  // The first counters of all groups, then the second ones, and so on, without gaps.
  localparam int unsigned Groups = Rows / GroupRows;
  localparam int unsigned Words = Groups * Counters;
  localparam int unsigned IndexBits = $clog2(Words);
  function automatic logic [IndexBits-1:0] index_of(logic [AddrBits-1:0] row);
    return IndexBits'(32'(row) % GroupRows * Groups + 32'(row) / GroupRows);
  endfunction

  logic start, wait_q, done, exists, counted, unused_ready;
  logic [AddrBits-1:0] host_addr;
  logic [63:0] value;

  hue_table_port #(.Id(Id), .Rows(Rows), .Writable(1'b0), .Clearable(1'b1)) u_port (
    .clk_i, .rst_ni, .tbl_req_i, .tbl_rsp_o, .start_o(start), .addr_o(host_addr),
    .done_i(done), .rdata_i(exists ? 256'(value) : '0)
  );
  assign exists = 32'(host_addr) % GroupRows < Counters;
  assign done   = exists ? counted : start;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) wait_q <= 1'b0;
    else wait_q <= (start && exists) || (wait_q && !done && tbl_req_i.valid);
  end
  hue_counter_ram #(.Words(Words)) u_ram (
    .clk_i, .rst_ni, .ready_o(unused_ready), .ready_soon_o(ready_o), .valid_i, .index_i(index_of(addr_i)), .add_i,
    .host_valid_i(wait_q && !done), .host_clear_i(tbl_req_i.clear), .host_index_i(index_of(host_addr)),
    .host_done_o(counted), .host_value_o(value)
  );

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni && valid_i) begin
      assert (32'(addr_i) < Rows && 32'(addr_i) % GroupRows < Counters) else $error("hue_counter_table: no counter %0d", addr_i);
    end
  end
`endif
endmodule
