// A table's port to the access unit: recognises accesses to the table, refuses invalid ones, and answers.
//
// Place: hue_regs → request → **here** → the table that owns this instance → answer, ORed with those of all others.
// A table may be split over several instances, each with a run of its rows (`First`, `Rows`) of `Total`; the one with row
// 0 also answers for rows that do not exist.
//
// Latency: `start_o` in the clock of the request, or with `Late` in the next, from a register, as stopping packets for it is
// a long path. The answer comes one clock after `done_i`, or after the request if refused.
module hue_table_port
  import hue_regs_pkg::*;
#(
    parameter logic [7:0]  Id        = 8'd0,
    parameter int unsigned First     = 0,
    parameter int unsigned Rows      = 1,
    parameter int unsigned Total     = First + Rows,
    parameter bit          Writable  = 1'b1,
    parameter bit          Clearable = 1'b0,
    parameter bit          Late      = 1'b0,
    localparam int unsigned AddrBits = Rows > 1 ? $clog2(Rows) : 1
) (
    input  logic                clk_i,
    input  logic                rst_ni,
    /* verilator lint_off UNUSEDSIGNAL */
    input  hue_pkg::tbl_req_t   tbl_req_i,
    /* verilator lint_on UNUSEDSIGNAL */
    output hue_pkg::tbl_rsp_t   tbl_rsp_o,
    // 1 for one clock: a valid access. The request stays at `tbl_req_i` until the answer.
    output logic                start_o,
    output logic [AddrBits-1:0] addr_o,
    // 1 for one clock, that of `start_o` or a later one.
    input  logic                done_i,
    input  logic [255:0]        rdata_i
);
  if (Rows < 1 || First + Rows > Total || Total > 1 << 24) begin : gen_check
    $fatal(1, "hue_table_port: rows %0d + %0d of %0d", First, Rows, Total);
  end

  logic in_range, beyond, mine, refused, fresh, can;
  logic served_q, done_q;
  logic [1:0] error_q;
  logic [255:0] rdata_q;
  /* verilator lint_off UNUSEDSIGNAL */
  logic [23:0] offset;
  /* verilator lint_on UNUSEDSIGNAL */

  /* verilator lint_off UNSIGNED */
  assign in_range = 32'(tbl_req_i.index) >= First && 32'(tbl_req_i.index) < First + Rows;
  /* verilator lint_on UNSIGNED */
  assign beyond   = First == 0 && 32'(tbl_req_i.index) >= Total;
  assign mine     = tbl_req_i.valid && tbl_req_i.id == Id && (in_range || beyond);
  assign refused  = (tbl_req_i.write && !Writable) || (tbl_req_i.clear && !Clearable);
  assign fresh    = mine && !served_q;
  assign can      = fresh && in_range && !refused;
  assign offset   = tbl_req_i.index - 24'(First);
  assign addr_o   = offset[AddrBits-1:0];

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      served_q <= 1'b0;
      done_q   <= 1'b0;
    end else begin
      served_q <= tbl_req_i.valid && (served_q || mine);
      done_q   <= tbl_req_i.valid && (done_i || (fresh && !can));
    end
  end

  if (Late) begin : gen_late
    always_ff @(posedge clk_i) start_o <= rst_ni && can;
  end else begin : gen_now
    assign start_o = can;
  end

  always_ff @(posedge clk_i) begin
    error_q <= TABLE_ERROR_NONE;
    if (fresh && beyond) error_q <= TABLE_ERROR_RANGE;
    else if (fresh && refused) error_q <= TABLE_ERROR_REFUSED;
    rdata_q <= tbl_req_i.valid && done_i && !tbl_req_i.write ? rdata_i : '0;
  end

  // `rdata_q` is zero unless `done_q`: it is gated by the register's own reset.
  assign tbl_rsp_o = '{done: done_q, error: done_q ? error_q : TABLE_ERROR_NONE, rdata: rdata_q};
endmodule
