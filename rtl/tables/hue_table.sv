// A table in one memory: the host writes rows and reads them back, packets read them.
//
// The memory does one access a clock: a host write takes one clock in which `en_i` must be 0, a host read two, and `data_o`
// stays as it was. With `Again` a write takes two as well, and `data_o` becomes the row as it is then, also for a packet
// that read it before. `wait_o` announces each such clock one clock before, so that `en_i` can come from a register.
//
// Place: in each stage that looks something up. With `Reset`, a row reads zero after reset until it is written.
// Rows carry a parity bit; a row with wrong parity that a packet uses raises `error_o`, three clocks after `check_i`: a
// row from block RAM is too late in its clock to check its parity there.
//
// Latency: 1 clock in which `en_i` is 1. Throughput: one read a clock. `data_o` stays while `en_i` is 0.
module hue_table #(
    parameter logic [7:0]  Id    = 8'd0,
    parameter int unsigned First = 0,
    parameter int unsigned Rows  = 2,
    parameter int unsigned Total = First + Rows,
    parameter int unsigned Width = 1,
    parameter bit          Reset = 1'b1,
    parameter bit          Again = 1'b0,
    localparam int unsigned AddrBits = Rows > 1 ? $clog2(Rows) : 1
) (
    input  logic                clk_i,
    input  logic                rst_ni,
    input  hue_pkg::tbl_req_t   tbl_req_i,
    output hue_pkg::tbl_rsp_t   tbl_rsp_o,
    // In the clock of `write_o` row `write_addr_o` becomes `write_data_o`: for modules that keep a copy in another form.
    output logic                write_o,
    output logic [AddrBits-1:0] write_addr_o,
    output logic [Width-1:0]    write_data_o,
    output logic                wait_o,   // the host accesses a row in the next clock: `en_i` must be 0 then
    input  logic                en_i,
    input  logic [AddrBits-1:0] addr_i,
    output logic [Width-1:0]    data_o,
    output logic                parity_o, // of `data_o`: together they have an even number of ones, or the row is wrong
    input  logic                check_i,  // a packet uses `data_o`
    output logic                error_o
);
  if (Width < 1 || Width > 256) begin : gen_check
    $fatal(1, "hue_table: Width is %0d, 1 to 256", Width);
  end

  // A small table is also in block RAM if its rows are wide.
  /* verilator lint_off UNUSEDPARAM */
  localparam bit Wide = Width >= 64;
  /* verilator lint_on UNUSEDPARAM */
  logic start, asked_q, back_q, back, busy, read_q, known, move;
  logic [Width:0] data_q, late_q, written;  // parity in the highest bit
  logic [AddrBits-1:0] addr, last_addr_q;

  hue_table_port #(.Id(Id), .First(First), .Rows(Rows), .Total(Total), .Late(1'b1)) u_port (
    .clk_i, .rst_ni, .tbl_req_i, .tbl_rsp_o, .start_o(start), .addr_o(write_addr_o),
    .done_i(Again && tbl_req_i.write ? back_q : write_o || read_q), .rdata_i(256'(late_q[Width-1:0]))
  );
  // The host writes and reads while packets are stopped, so the memory never serves both at once. Both use the same read
  // port, so the row that a packet had read is read again afterwards.
  assign write_o      = asked_q && tbl_req_i.write;
  assign write_data_o = tbl_req_i.wdata[Width-1:0];
  assign busy         = asked_q || back_q;
  assign back         = asked_q && (Again || !tbl_req_i.write);
  assign wait_o       = start || back;
  assign move         = (en_i || busy) && !write_o;
  assign addr         = asked_q ? write_addr_o : back_q ? last_addr_q : addr_i;
  assign written      = {^write_data_o, write_data_o};

  localparam int unsigned ColumnBits = hue_pkg::column_bits(Rows, Width + 1);
  for (genvar low = 0; low <= Width; low += ColumnBits) begin : gen_column
    localparam int unsigned Bits = Width + 1 - low < ColumnBits ? Width + 1 - low : ColumnBits;
    (* ram_style = Wide ? "block" : "auto" *) logic [Bits-1:0] rows_q[Rows];
    logic [Bits-1:0] word_q;
    // FPGA memories are zero after configuration.
    initial begin
      for (int unsigned i = 0; i < Rows; i++) rows_q[i] = '0;
    end
    always_ff @(posedge clk_i) begin
      if (write_o) rows_q[write_addr_o] <= written[low+:Bits];
      else if (move) word_q <= rows_q[addr];
    end
    assign data_q[low+:Bits] = word_q;
  end
  always_ff @(posedge clk_i) begin
    if (en_i) last_addr_q <= addr_i;
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni) {read_q, back_q, asked_q} <= '0;
    else {read_q, back_q, asked_q} <= {back_q && !tbl_req_i.write, back, start};
  end

  if (Reset) begin : gen_reset
    hue_written #(.Rows(Rows)) u_written (
      .clk_i, .rst_ni, .set_i(write_o), .set_addr_i(write_addr_o), .read_i(move), .addr_i(addr), .bit_o(known)
    );
  end else begin : gen_keep
    assign known = 1'b1;
  end
  assign data_o   = known ? data_q[Width-1:0] : '0;
  assign parity_o = known && data_q[Width];

  // Host read data and the parity check come from registers, as a row is late in its clock.
  localparam int unsigned PartBits = 16;
  localparam int unsigned Parts = (Width + PartBits) / PartBits;
  logic [1:0] check_q;
  logic [Parts-1:0] parts_q;
  logic [Parts*PartBits-1:0] padded;
  assign padded = (Parts * PartBits)'(late_q);
  always_ff @(posedge clk_i) begin
    late_q <= known ? data_q : '0;
    for (int unsigned i = 0; i < Parts; i++) parts_q[i] <= ^padded[PartBits*i+:PartBits];
    if (!rst_ni) {error_o, check_q} <= '0;
    else {error_o, check_q} <= {check_q[1] && ^parts_q, check_q[0], check_i};
  end

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni) assert (!(busy && en_i)) else $error("hue_table: moved while the host is at a row");
  end
`endif
endmodule
