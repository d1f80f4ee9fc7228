// Proof harness of hue_exact: every question gets one answer, in the order of the questions and with its number. The answer is that of
// the row with the question's table and key, whatever rows of other tables and keys are written meanwhile.
//
// Place: scripts/formal. Inputs are free except for the rules of accesses. The harness stores the rows that the host wrote. `mark_i`
// picks any one question. While the rows do not change what they say about its table and key, its answer must say the same.
module hue_exact_formal
  import hue_pkg::*;
#(
    parameter int unsigned Depth = 2,
    localparam int unsigned Banks = 2,
    localparam int unsigned BankRows = 2,
    localparam int unsigned Rows = Banks * BankRows,
    localparam int unsigned AddrBits = $clog2(Rows)
) (
    input logic     clk_i,
    input logic     rst_ni,
    input tbl_req_t tbl_req_i,
    input logic     valid_i,
    input logic     seq_i,
    input logic     table_i,
    input logic     key_i,
    input logic     mark_i
);
  localparam logic [7:0] Id = 8'd20;
  typedef struct packed {
    logic index;
    logic table_id;
    logic key;
    logic valid;
  } row_t;
  typedef struct packed {
    logic found;
    logic index;
  } answer_t;

  tbl_rsp_t tbl_rsp_o;
  logic error_o, ready_o, valid_o, seq_o, found_o, index_o;
  hue_exact #(
    .Id(Id), .Banks(Banks), .BankRows(BankRows), .TableBits(1), .KeyBits(1), .IndexBits(1), .SeqBits(1), .Depth(Depth)
  ) u_dut (.*);

  // ---- the rows, as the host wrote them
  logic mine, written, asked, begun_q;
  row_t [Rows-1:0] rows, rows_q;
  assign mine = tbl_req_i.valid && tbl_req_i.id == Id;
  assign written = tbl_rsp_o.done && tbl_req_i.write && mine && tbl_rsp_o.error == hue_regs_pkg::TABLE_ERROR_NONE;
  hue_access_rules u_access (.clk_i, .rst_ni, .tbl_req_i, .mine_i(mine), .done_i(tbl_rsp_o.done));
  // A row is written before its access is answered: while an access waits, its row may already be the new one.
  logic writes;
  assign writes = mine && tbl_req_i.write && 32'(tbl_req_i.index) < Rows;
  always_comb begin
    rows = rows_q;
    if (writes) rows[tbl_req_i.index[AddrBits-1:0]] = tbl_req_i.wdata[$bits(row_t)-1:0];
  end

  function automatic answer_t answer_of(row_t [Rows-1:0] held, logic table_id, logic key);
    answer_t answer;
    row_t    row;
    answer = '0;
    for (int unsigned b = 0; b < Banks; b++) begin
      row = held[AddrBits'(b * BankRows + 32'(hue_exact_pkg::index_of(1, b, 64'({table_id, key}))))];
      if (!answer.found && row.valid && row.table_id == table_id && row.key == key) answer = '{found: 1'b1, index: row.index};
    end
    return answer;
  endfunction

  // ---- the marked question
  localparam int unsigned InsideBits = $clog2(Depth + 6);
  logic    marked_q, steady_q, mark, its, table_q, key_q, number_q;
  answer_t answer_q;
  logic [InsideBits-1:0] inside_q, before_q;  // questions without an answer; those before the marked one
  assign asked = valid_i && ready_o;
  assign mark  = asked && mark_i && !marked_q;
  assign its   = marked_q && valid_o && before_q == '0;

  initial begun_q = 1'b0;
  initial rows_q = '0;
  always_ff @(posedge clk_i) begin
    begun_q <= 1'b1;
    if (!rst_ni) begin
      marked_q <= 1'b0;
      inside_q <= '0;
    end else begin
      if (written) rows_q <= rows;
      inside_q <= inside_q + InsideBits'(asked) - InsideBits'(valid_o);
      if (mark) begin
        marked_q <= 1'b1;
        {number_q, table_q, key_q} <= {seq_i, table_i, key_i};
        before_q <= inside_q - InsideBits'(valid_o);
        answer_q <= answer_of(rows_q, table_i, key_i);
        steady_q <= answer_of(rows_q, table_i, key_i) == answer_of(rows, table_i, key_i);
      end else if (marked_q) begin
        if (its) marked_q <= 1'b0;
        if (valid_o) before_q <= before_q - 1'b1;
        steady_q <= steady_q && answer_of(rows, table_q, key_q) == answer_q && answer_of(rows_q, table_q, key_q) == answer_q;
      end
    end
  end

  always_comb begin
    assume (rst_ni == begun_q);
    // Memories hold zeros at the start.
    if (!begun_q) assume (tbl_req_i == '0);
    if (begun_q) begin
      assert (!error_o);
      if (valid_o) assert (inside_q != '0);
      if (its) assert (seq_o == number_q);
      if (its && steady_q) assert (found_o == answer_q.found && (!found_o || index_o == answer_q.index));
      // Questions wait only while the queue is full.
      if (inside_q < InsideBits'(Depth)) assert (ready_o);
      if (tbl_rsp_o.done) assert (mine);
      // The host reads rows as they are stored.
      if (tbl_rsp_o.done && tbl_rsp_o.error == hue_regs_pkg::TABLE_ERROR_NONE && !tbl_req_i.write) begin
        assert (tbl_rsp_o.rdata == 256'(rows_q[tbl_req_i.index[AddrBits-1:0]]));
      end
    end
  end
endmodule
