// Exact-match table: the host writes and reads rows, packets look up a key and get the result of its row.
//
// Place: design select (rtl/demux/hue_select), for rows on a port and a destination MAC address. A cuckoo hash (Pagh,
// Rodler 2004; one slot per bucket: Fotakis et al. 2005): `Banks` memories, with one possible row for a key in each
// (hue_exact_pkg). The driver chooses the bank, and moves other keys to make room (crates/tables/src/cuckoo.rs). Row
// `bank * BankRows + index` is row `index` of the bank; it holds, from bit 0, a valid bit, its key and its result.
// If two banks hold a key, the first bank's result is used. So a key that moves is written to its new row, then removed
// from its old one, and is never missed: the rows of a bank are read again when one of them was written (`Again`), and a
// lookup sees all of its rows as they are in its second clock.
//
// A reset does not change the rows: the driver writes all of them when it takes over a card. A row with wrong parity
// matches nothing, and raises `error_o` when a lookup reads it.
//
// Latency: 2 clocks in which `en_i` is 1 until `hit_o`, one more until `result_o`. Throughput: a key a clock; a write or
// a read of a row takes two clocks in which `en_i` must be 0, and `wait_o` announces each one clock before.
module hue_exact_table #(
    parameter logic [7:0]  Id         = 8'd0,
    parameter int unsigned Banks      = 4,
    parameter int unsigned BankRows   = 512,
    parameter int unsigned KeyBits    = 51,
    parameter int unsigned ResultBits = 16
) (
    input  logic                  clk_i,
    input  logic                  rst_ni,
    input  hue_pkg::tbl_req_t     tbl_req_i,
    output hue_pkg::tbl_rsp_t     tbl_rsp_o,
    output logic                  wait_o,
    input  logic                  en_i,      // 0 in the clock after `wait_o`
    input  logic                  valid_i,
    input  logic [KeyBits-1:0]    key_i,
    output logic                  hit_o,     // 0 without `valid_i`
    output logic [ResultBits-1:0] result_o,  // valid one clock after `hit_o`
    output logic                  error_o    // timed as `result_o`
);
  localparam int unsigned IndexBits = $clog2(BankRows);
  if (BankRows < 2 || BankRows != 1 << IndexBits || IndexBits > hue_exact_pkg::IndexBitsMax ||
      KeyBits > hue_exact_pkg::KeyBitsMax || Banks < 1 || Banks > 4) begin : gen_check
    $fatal(1, "hue_exact_table: %0d banks of %0d rows for keys of %0d bits", Banks, BankRows, KeyBits);
  end
  if (hue_exact_pkg::index_of(9, 0, 64'h100000000ca5) != 12'h1b2 ||
      hue_exact_pkg::index_of(9, 1, 64'h100000000ca5) != 12'h1f7 ||
      hue_exact_pkg::index_of(9, 2, 64'h100000000ca5) != 12'h15c ||
      hue_exact_pkg::index_of(9, 3, 64'h100000000ca5) != 12'h09b) begin : gen_check_index
    $fatal(1, "hue_exact_table: a key does not stand where hue_exact_pkg says");
  end

  typedef struct packed {
    logic [ResultBits-1:0] result;
    logic [KeyBits-1:0]    key;
    logic                  valid;
  } row_t;

  hue_pkg::tbl_rsp_t [Banks-1:0] rsp;
  logic [Banks-1:0] waits, parity, hits, errors, counts_q;
  row_t [Banks-1:0] rows;
  logic [Banks-1:0][ResultBits-1:0] results_q;
  logic [KeyBits-1:0] key_q;
  logic valid_q, asked_q;

  // ---- 1: one row of each bank
  for (genvar b = 0; b < Banks; b++) begin : gen_bank
    logic [IndexBits-1:0] index;
    logic unused_write, unused_error;
    logic [IndexBits-1:0] unused_addr;
    row_t unused_data;
    for (genvar i = 0; i < IndexBits; i++) begin : gen_index
      localparam logic [KeyBits-1:0] Summands = KeyBits'(hue_exact_pkg::summands(IndexBits, b, 4'(i)));
`ifdef HUE_PLANT_EXACT_INDEX
      assign index[i] = ^(key_i & (b == 2 && i == 1 ? Summands ^ KeyBits'(8) : Summands));
`else
      assign index[i] = ^(key_i & Summands);
`endif
    end
    hue_table #(
      .Id(Id), .First(b * BankRows), .Rows(BankRows), .Total(Banks * BankRows), .Width($bits(row_t)), .Reset(1'b0),
      .Again(1'b1)
    ) u_rows (
      .clk_i, .rst_ni, .tbl_req_i, .tbl_rsp_o(rsp[b]),
      .write_o(unused_write), .write_addr_o(unused_addr), .write_data_o(unused_data), .wait_o(waits[b]),
      .en_i, .addr_i(index), .data_o(rows[b]), .parity_o(parity[b]), .check_i(1'b0), .error_o(unused_error)
    );
  end
  assign wait_o = waits != '0;
  always_comb begin
    tbl_rsp_o = '0;
    for (int unsigned b = 0; b < Banks; b++) tbl_rsp_o = tbl_rsp_o | rsp[b];
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) valid_q <= 1'b0;
    else if (en_i) valid_q <= valid_i;
  end
  always_ff @(posedge clk_i) begin
    if (en_i) key_q <= key_i;
  end

  // ---- 2: the rows that hold the key. A row is late in its clock, so key and parity are checked only in parts there.
  localparam int unsigned KeyPartBits = 2;
  localparam int unsigned PartBits = 4;
  localparam int unsigned KeyParts = (KeyBits + KeyPartBits - 1) / KeyPartBits;
  localparam int unsigned RowParts = ($bits(row_t) + PartBits) / PartBits;  // with its parity
  logic [Banks-1:0][KeyParts-1:0] agrees_q;
  logic [Banks-1:0][RowParts-1:0] parity_q;
  logic [KeyParts*KeyPartBits-1:0] asked;
  assign asked = (KeyParts * KeyPartBits)'(key_q);
  for (genvar b = 0; b < Banks; b++) begin : gen_parts
    logic [KeyParts*KeyPartBits-1:0] held;
    logic [RowParts*PartBits-1:0] whole;
    assign held  = (KeyParts * KeyPartBits)'(rows[b].key);
    assign whole = (RowParts * PartBits)'({parity[b], rows[b]});
    always_ff @(posedge clk_i) begin
      if (en_i) begin
        for (int unsigned i = 0; i < KeyParts; i++) begin
          agrees_q[b][i] <= held[KeyPartBits*i+:KeyPartBits] == asked[KeyPartBits*i+:KeyPartBits];
        end
        for (int unsigned i = 0; i < RowParts; i++) parity_q[b][i] <= ^whole[PartBits*i+:PartBits];
        results_q[b] <= rows[b].result;
      end
    end
    always_ff @(posedge clk_i) begin
      if (!rst_ni) counts_q[b] <= 1'b0;
      else if (en_i) counts_q[b] <= valid_q && rows[b].valid;
    end
`ifdef HUE_PLANT_EXACT_KEY
    assign hits[b] = counts_q[b] && agrees_q[b][KeyParts-1:4] == '1 && !(^parity_q[b]);
`else
    assign hits[b] = counts_q[b] && agrees_q[b] == '1 && !(^parity_q[b]);
`endif
    assign errors[b] = asked_q && ^parity_q[b];
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni) asked_q <= 1'b0;
    else if (en_i) asked_q <= valid_q;
  end
  assign hit_o = hits != '0;

  // ---- 3: the result of the first of them
  logic [ResultBits-1:0] result;
  always_comb begin
    result = results_q[Banks-1];
    for (int unsigned b = 1; b < Banks; b++) if (hits[Banks-1-b]) result = results_q[Banks-1-b];
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni) error_o <= 1'b0;
    else if (en_i) error_o <= errors != '0;
  end
  always_ff @(posedge clk_i) begin
    if (en_i) result_o <= result;
  end

`ifndef SYNTHESIS
  hue_latency #(.Clocks(2)) u_latency (.clk_i, .rst_ni, .en_i, .in_i(valid_i), .out_i(asked_q));
`endif
endmodule
