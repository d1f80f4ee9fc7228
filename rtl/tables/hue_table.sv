// A table in a memory: rows written and read back by the host, and read by packets, each through a port of its own.
//
// Place: under each stage that looks something up. With `Reset`, a row reads zero after reset until it is written.
// Rows carry a parity bit; a row that packets read with wrong parity raises `error_o`.
//
// Latency: 1 clock in which `en_i` is 1. Throughput: one read a clock. `data_o` stays while `en_i` is 0. A read in the
// clock of a write of the same row gives the old row, whole.
module hue_table #(
    parameter logic [7:0]  Id    = 8'd0,
    parameter int unsigned First = 0,
    parameter int unsigned Rows  = 2,
    parameter int unsigned Total = First + Rows,
    parameter int unsigned Width = 1,
    parameter bit          Reset = 1'b1,
    localparam int unsigned AddrBits = Rows > 1 ? $clog2(Rows) : 1
) (
    input  logic                clk_i,
    input  logic                rst_ni,
    input  hue_pkg::tbl_req_t   tbl_req_i,
    output hue_pkg::tbl_rsp_t   tbl_rsp_o,
    // In the clock of `write_o` row `write_addr_o` becomes `write_data_o`: for what keeps a copy in another form.
    output logic                write_o,
    output logic [AddrBits-1:0] write_addr_o,
    output logic [Width-1:0]    write_data_o,
    input  logic                en_i,
    input  logic [AddrBits-1:0] addr_i,
    output logic [Width-1:0]    data_o,
    output logic                error_o
);
  if (Width < 1 || Width > 256) begin : gen_check
    $fatal(1, "hue_table: Width is %0d, 1 to 256", Width);
  end

  logic [Width:0] rows_q[Rows];
  logic start, read_q, host_known_q, known_q;
  logic [Width:0] host_data_q, data_q;  // parity highest
  logic unused_parity;
  assign unused_parity = host_data_q[Width];
  logic [Width-1:0] host_row;
  assign host_row = host_known_q ? host_data_q[Width-1:0] : '0;

  // Memories of an FPGA hold zeros after configuration.
  initial begin
    for (int unsigned i = 0; i < Rows; i++) rows_q[i] = '0;
  end

  hue_table_port #(.Id(Id), .First(First), .Rows(Rows), .Total(Total)) u_port (
    .clk_i, .rst_ni, .tbl_req_i, .tbl_rsp_o, .start_o(start), .addr_o(write_addr_o),
    .done_i(read_q || write_o), .rdata_i(256'(host_row))
  );
  assign write_o      = start && tbl_req_i.write;
  assign write_data_o = tbl_req_i.wdata[Width-1:0];

  always_ff @(posedge clk_i) begin
    if (start) begin
      if (tbl_req_i.write) rows_q[write_addr_o] <= {^write_data_o, write_data_o};
      else host_data_q <= rows_q[write_addr_o];
    end
  end
  always_ff @(posedge clk_i) begin
    if (en_i) data_q <= rows_q[addr_i];
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni) read_q <= 1'b0;
    else read_q <= start && !tbl_req_i.write;
  end

  if (Reset) begin : gen_reset
    logic [Rows-1:0] written_q;
    always_ff @(posedge clk_i) begin
      if (!rst_ni) written_q <= '0;
      else if (write_o) written_q[write_addr_o] <= 1'b1;
    end
    always_ff @(posedge clk_i) begin
      if (!rst_ni) begin
        known_q      <= 1'b0;
        host_known_q <= 1'b0;
      end else begin
        if (en_i) known_q <= written_q[addr_i];
        if (start) host_known_q <= written_q[write_addr_o];
      end
    end
  end else begin : gen_keep
    assign known_q      = 1'b1;
    assign host_known_q = 1'b1;
  end
  assign data_o  = known_q ? data_q[Width-1:0] : '0;
  assign error_o = known_q && ^data_q;
endmodule
