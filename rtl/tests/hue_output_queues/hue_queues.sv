// The output queues, with their external memory if they have one, for the bench.
module hue_queues
  import hue_pkg::*;
#(
  parameter int unsigned BusBytes = 8,
  parameter int unsigned Nets = 64,
  parameter int unsigned Cells = 1024,
  parameter int unsigned CellBytes = 64,
  parameter int unsigned External = 0,
  parameter int unsigned PartLatency = 24,
  parameter int unsigned RefreshPeriod = 488,
  parameter int unsigned RefreshClocks = 22,
  localparam int unsigned ByteBits = $clog2(BusBytes + 1)
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,
  input  logic                  offline_i,
  input  logic                  hold_i,
  input  logic [7:0]            hold_net_i,
  output logic [NetsMax-1:0]    waits_o,
  input  logic                  s_valid_i,
  output logic                  s_ready_o,
  input  logic [8*BusBytes-1:0] s_data_i,
  input  logic                  s_last_i,
  input  hue_departure_t        s_departure_i,
  output logic [Ports-1:0]                 m_valid_o,
  input  logic [Ports-1:0]                 m_ready_i,
  output logic [Ports-1:0][8*BusBytes-1:0] m_data_o,
  output logic [Ports-1:0][ByteBits-1:0]   m_bytes_o,
  output logic [Ports-1:0]                 m_last_o,
  output logic [Ports-1:0][31:0]           m_tag_o,
  output logic                   dropped_o,
  output logic [2:0]             dropped_port_o,
  output logic [7:0]             dropped_net_o,
  output logic [Ports-1:0]       sent_o,
  output logic [Ports-1:0][13:0] sent_len_o,
  output logic                   idle_o
);
  queue_req_t                  part_req;
  logic                        part_ready, part_rvalid;
  logic [8*QueueWordBytes-1:0] part_rdata;
  hue_output_queues #(
    .BusBytes(BusBytes), .Nets(Nets), .Cells(Cells), .CellBytes(CellBytes), .External(External != 0)
  ) u_queues (
    .part_req_o(part_req), .part_ready_i(part_ready), .part_rvalid_i(part_rvalid), .part_rdata_i(part_rdata), .*
  );
  if (External != 0) begin : g_part
    hue_dram #(
      .Words(Cells * CellBytes / QueueWordBytes), .Bits(8 * QueueWordBytes), .Latency(PartLatency),
      .RefreshPeriod(RefreshPeriod), .RefreshClocks(RefreshClocks)
    ) u_part (
      .clk_i, .rst_ni, .valid_i(part_req.valid), .ready_o(part_ready), .write_i(part_req.write), .addr_i(part_req.addr),
      .wdata_i(part_req.wdata), .rvalid_o(part_rvalid), .rdata_o(part_rdata)
    );
  end else begin : g_none
    logic unused;
    assign unused = ^part_req;
    assign {part_ready, part_rvalid, part_rdata} = '0;
  end
endmodule
