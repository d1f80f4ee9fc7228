// Engine `exact`: answers questions (table, key) of the planes from rows that the host writes.
//
// Place: between the fronts and the backs of kinds. Not yet in a card: hue_l2 uses hue_exact_table in line. The
// rows are those of hue_exact_table, with the table's number above the key: bit 0 valid, then key, table and index. So a question never
// gets a row of another table.
// Questions wait in a queue of their own while the host accesses a row, so that frames that ask other engines go on.
//
// Latency: 4 clocks from a question to its answer, and 2 more for each access of the host to a row. Throughput: a question a clock, except
// for 2 clocks of each such access. Answers leave in the order of the questions, with their numbers; they cannot be held up.
module hue_exact #(
    parameter logic [7:0]  Id        = 8'd0,
    parameter int unsigned Banks     = 4,
    parameter int unsigned BankRows  = 512,
    parameter int unsigned TableBits = 12,
    parameter int unsigned KeyBits   = 48,
    parameter int unsigned IndexBits = 16,
    parameter int unsigned SeqBits   = 4,
    parameter int unsigned Depth     = 8   // questions that wait: a power of two
) (
    input  logic                 clk_i,
    input  logic                 rst_ni,
    input  hue_pkg::tbl_req_t    tbl_req_i,
    output hue_pkg::tbl_rsp_t    tbl_rsp_o,
    output logic                 error_o,    // a row with wrong parity was read for a question; it counts as absent
    // questions
    input  logic                 valid_i,
    output logic                 ready_o,
    input  logic [SeqBits-1:0]   seq_i,
    input  logic [TableBits-1:0] table_i,
    input  logic [KeyBits-1:0]   key_i,
    // answers
    output logic                 valid_o,
    output logic [SeqBits-1:0]   seq_o,
    output logic                 found_o,
    output logic [IndexBits-1:0] index_o     // if `found_o`
);
  localparam int unsigned Latency = 3;  // of the table
  typedef struct packed {
    logic [SeqBits-1:0]   seq;
    logic [TableBits-1:0] table_id;
    logic [KeyBits-1:0]   key;
  } question_t;

  // ---- the queue
  question_t asked, first;
  logic [$clog2(Depth+1)-1:0] unused_room;
  logic waits, wait_q, en, first_valid;
  assign asked = '{seq: seq_i, table_id: table_i, key: key_i};
  hue_fifo #(.Depth(Depth), .Bits($bits(question_t))) u_questions (
    .clk_i, .rst_ni, .valid_i, .ready_o, .data_i(asked), .valid_o(first_valid), .ready_i(en), .data_o(first),
    .room_o(unused_room)
  );

  // ---- the rows. They stop in the clock after `waits`.
  always_ff @(posedge clk_i) begin
    if (!rst_ni) wait_q <= 1'b0;
    else wait_q <= waits;
  end
`ifdef HUE_PLANT_EXACT_WAIT
  assign en = 1'b1;  // for scripts/rtl-test and scripts/formal
`else
  assign en = !wait_q;
`endif

  logic [TableBits+KeyBits-1:0] whole;
`ifdef HUE_PLANT_EXACT_TABLE
  assign whole = {TableBits'(first.table_id >> 1 << 1), first.key};  // likewise
`else
  assign whole = {first.table_id, first.key};
`endif
  logic hit;
  hue_exact_table #(
    .Id(Id), .Banks(Banks), .BankRows(BankRows), .KeyBits(TableBits + KeyBits), .ResultBits(IndexBits)
  ) u_rows (
    .clk_i, .rst_ni, .tbl_req_i, .tbl_rsp_o, .wait_o(waits), .en_i(en), .valid_i(first_valid), .key_i(whole),
    .hit_o(hit), .result_o(index_o), .error_o
  );

  // ---- the questions in the table. A hit is known one clock before its index.
  logic [Latency-1:1] inside_q;
  logic [Latency-1:1][SeqBits-1:0] seq_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      inside_q <= '0;
      valid_o  <= 1'b0;
    end else begin
      if (en) inside_q <= (Latency - 1)'({inside_q, first_valid});
      valid_o <= en && inside_q[Latency-1];
    end
  end
  always_ff @(posedge clk_i) begin
    if (en) begin
      seq_q   <= ((Latency - 1) * SeqBits)'({seq_q, first.seq});
      seq_o   <= seq_q[Latency-1];
      found_o <= hit;
    end
  end

`ifndef SYNTHESIS
  a_found: assert property (@(posedge clk_i) disable iff (!rst_ni) hit |-> inside_q[Latency-1]);
`endif
endmodule
