// Admission and the output queues, with their external memory if they have one, for the bench. In between is a simple replacement of
// scatter: beats wait for their frame's verdict, and are passed on or dropped.
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
  input  tbl_req_t              tbl_req_i,
  output tbl_rsp_t              tbl_rsp_o,
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
  localparam int unsigned NetBits = Nets > 1 ? $clog2(Nets) : 1;
  localparam int unsigned QueueBits = $clog2(Ports) + NetBits;
  localparam int unsigned CountBits = $clog2(Cells) + 1;
  queue_req_t                  part_req;
  logic                        part_ready, part_rvalid;
  logic [8*QueueWordBytes-1:0] part_rdata;

  // Input: the verdict comes with the first beat. The bench's length of a CPU frame includes the CPU header, that in the verdict
  // does not.
  localparam int unsigned Waiting = 64;
  logic                        inside_q, fire, verdict_ready, beat_ready, admit_valid, admit_ready, admit_idle, admit_empty, none;
  logic                        gone, freed, freed_cpu;
  logic [QueueBits-1:0]        gone_queue;
  logic [CountBits-1:0]        gone_cells;
  hue_verdict_t                verdict, admitted;
  always_comb begin
    verdict = '0;
    verdict.verdict = VerdictForward;
    verdict.net = s_departure_i.net;
    verdict.port_out = s_departure_i.port;
    verdict.len = s_departure_i.len;
    if (32'(s_departure_i.port) >= MacPorts) begin
      verdict.len = s_departure_i.len > 14'(CpuHeaderBytes) ? s_departure_i.len - 14'(CpuHeaderBytes) : '0;
    end
  end
  assign s_ready_o = beat_ready && (inside_q || verdict_ready);
  assign fire = s_valid_i && s_ready_o;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) inside_q <= 1'b0;
    else if (fire) inside_q <= !s_last_i;
  end
  hue_admit #(.Nets(Nets), .Cells(Cells), .CellBytes(CellBytes)) u_admit (
    .clk_i, .rst_ni, .offline_i, .backlog_i(1'b0), .late_i(1'b0), .counts_i(1'b1),
    .s_valid_i(fire && !inside_q), .s_ready_o(verdict_ready), .s_verdict_i(verdict),
    .m_valid_o(admit_valid), .m_ready_i(admit_ready), .m_verdict_o(admitted),
    .gone_i(gone), .gone_queue_i(gone_queue), .gone_cells_i(gone_cells), .freed_i(freed), .freed_cpu_i(freed_cpu),
    .dropped_o, .dropped_port_o, .dropped_net_o, .idle_o(admit_idle), .empty_o(admit_empty)
  );

  logic                  beat_valid, beat_take, beat_last, queue_valid, queue_ready;
  logic [8*BusBytes-1:0] beat_data;
  hue_departure_t        beat_departure;
  logic [$clog2(Waiting+1)-1:0] unused_room;
  hue_fifo #(.Depth(Waiting), .Bits(8 * BusBytes + 1 + $bits(hue_departure_t))) u_beats (
    .clk_i, .rst_ni, .valid_i(fire), .ready_o(beat_ready), .data_i({s_departure_i, s_last_i, s_data_i}),
    .valid_o(beat_valid), .ready_i(beat_take), .data_o({beat_departure, beat_last, beat_data}), .room_o(unused_room)
  );
  assign queue_valid = beat_valid && admit_valid && admitted.verdict == VerdictForward;
  assign beat_take = admit_valid && (admitted.verdict != VerdictForward || queue_ready);
  assign admit_ready = beat_valid && beat_take && beat_last;
  assign idle_o = admit_idle && admit_empty && none && !beat_valid;

  hue_output_queues #(
    .BusBytes(BusBytes), .Nets(Nets), .Cells(Cells), .CellBytes(CellBytes), .External(External != 0)
  ) u_queues (
    .clk_i, .rst_ni, .hold_i, .hold_net_i, .waits_o, .tbl_req_i, .tbl_rsp_o,
    .s_valid_i(queue_valid), .s_ready_o(queue_ready), .s_data_i(beat_data), .s_last_i(beat_last),
    .s_departure_i(beat_departure),
    .gone_o(gone), .gone_queue_o(gone_queue), .gone_cells_o(gone_cells), .freed_o(freed), .freed_cpu_o(freed_cpu),
    .m_valid_o, .m_ready_i, .m_data_o, .m_bytes_o, .m_last_o, .m_tag_o, .sent_o, .sent_len_o, .none_o(none),
    .part_req_o(part_req), .part_ready_i(part_ready), .part_rvalid_i(part_rvalid), .part_rdata_i(part_rdata)
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
