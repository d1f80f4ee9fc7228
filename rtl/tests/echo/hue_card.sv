// A card with registers and tables but without a data path: a frame that comes in by a port leaves by the neighbouring port (the
// port number with the lowest bit inverted). For tests of the twin, the driver, the registers and the access unit.
//
// Table HOP has 64 rows and answers after 3 clocks. COUNT has 4 rows that hold 1000 plus their index until they are read and
// cleared. BYTES takes 110 clocks to answer, which is too long. No other table has an owner.

module hue_card #(
  parameter int unsigned ClockKhz = 125000,
  parameter int unsigned BusBytes = 32,
  parameter int unsigned Kinds = 2,
  parameter int unsigned Layout = 2,
  parameter int unsigned Planes = 1,
  parameter int unsigned Nets = 64,
  parameter int unsigned SelectRows = 256,
  parameter int unsigned MacRows = 0,
  parameter int unsigned StationRows = 0,
  parameter int unsigned PatternRows = 0,
  parameter int unsigned TunnelRows = 0,
  parameter int unsigned AttachRows = 256,
  parameter int unsigned RouteRows = 0,
  parameter int unsigned LocalRows = 0,
  parameter int unsigned HopRows = 4096,
  parameter int unsigned Level0Words = 4096,
  parameter int unsigned Level1Words = 4096,
  parameter int unsigned Level2Words = 4096,
  parameter int unsigned Level3Words = 4096,
  parameter int unsigned SramWords = 0,
  parameter int unsigned SramLatency = 4,
  parameter int unsigned SramOnChip = 0,
  parameter int unsigned CamRows = 0,
  parameter int unsigned SlotRows = 0,
  parameter int unsigned RangeRows = 0,
  parameter int unsigned PairRows = 0,
  parameter int unsigned RuleRows = 0,
  parameter int unsigned OutputBytes = 131072,
  parameter int unsigned OutputExternal = 0,
  parameter logic [127:0] ImageName = '0
) (
  input  logic        clk_i,
  input  logic        rst_ni,
  input  logic        s_axil_awvalid_i,
  output logic        s_axil_awready_o,
  input  logic [23:0] s_axil_awaddr_i,
  input  logic        s_axil_wvalid_i,
  output logic        s_axil_wready_o,
  input  logic [31:0] s_axil_wdata_i,
  input  logic [3:0]  s_axil_wstrb_i,
  output logic        s_axil_bvalid_o,
  input  logic        s_axil_bready_i,
  output logic [1:0]  s_axil_bresp_o,
  input  logic        s_axil_arvalid_i,
  output logic        s_axil_arready_o,
  input  logic [23:0] s_axil_araddr_i,
  output logic        s_axil_rvalid_o,
  input  logic        s_axil_rready_i,
  output logic [31:0] s_axil_rdata_o,
  output logic [1:0]  s_axil_rresp_o,
  input  logic [7:0]                 s_tvalid_i,
  output logic [7:0]                 s_tready_o,
  input  logic [7:0][8*BusBytes-1:0] s_tdata_i,
  input  logic [7:0][BusBytes-1:0]   s_tkeep_i,
  input  logic [7:0]                 s_tlast_i,
  input  logic [7:0][63:0]           s_ttime_i,
  input  logic [7:0][31:0]           s_ttag_i,
  output logic [7:0]                 m_tvalid_o,
  input  logic [7:0]                 m_tready_i,
  output logic [7:0][8*BusBytes-1:0] m_tdata_o,
  output logic [7:0][BusBytes-1:0]   m_tkeep_o,
  output logic [7:0]                 m_tlast_o,
  output logic [7:0][31:0]           m_ttag_o,
  output logic        ingress_idle_o,
  output logic        idle_o,
  output logic        moves_o,
  output logic        irq_o
);

  import hue_regs_pkg::*;

  localparam int unsigned HopRowsHere = 64;

  hue_pkg::tbl_req_t req;
  hue_pkg::tbl_rsp_t rsp;
  logic [7:0]  out_hold_net;
  logic        offline, pause, gated_to_cpu, hold, out_hold, sram_fault_clear, begin_frame, end_frame;
  logic [31:0] gates;
  logic [7:0]  inside_q, moved;
  logic        unused;
  assign unused = ^{sram_fault_clear, offline, pause, gates, gated_to_cpu, hold, out_hold, out_hold_net, s_ttime_i};

  hue_regs #(
    .ClockKhz(ClockKhz), .BusBytes(BusBytes), .Kinds(Kinds), .Layout(Layout), .Planes(Planes),
    .Nets(Nets), .SelectRows(SelectRows), .MacRows(MacRows), .StationRows(StationRows), .PatternRows(PatternRows), .TunnelRows(TunnelRows), .AttachRows(AttachRows), .RouteRows(RouteRows), .LocalRows(LocalRows),
    .HopRows(HopRowsHere), .Level0Words(Level0Words), .Level1Words(Level1Words),
    .Level2Words(Level2Words), .Level3Words(Level3Words), .SramWords(SramWords), .CamRows(CamRows), .SlotRows(SlotRows), .RangeRows(RangeRows), .PairRows(PairRows), .RuleRows(RuleRows), .OutputBytes(OutputBytes),
    .ImageName(ImageName)
  ) u_regs (
    .clk_i, .rst_ni,
    .s_axil_awvalid_i, .s_axil_awready_o, .s_axil_awaddr_i,
    .s_axil_wvalid_i, .s_axil_wready_o, .s_axil_wdata_i, .s_axil_wstrb_i,
    .s_axil_bvalid_o, .s_axil_bready_i, .s_axil_bresp_o,
    .s_axil_arvalid_i, .s_axil_arready_o, .s_axil_araddr_i,
    .s_axil_rvalid_o, .s_axil_rready_i, .s_axil_rdata_o, .s_axil_rresp_o,
    .tbl_req_o(req), .tbl_rsp_i(rsp),
    .offline_o(offline), .pause_o(pause), .gates_o(gates), .gated_to_cpu_o(gated_to_cpu), .hold_o(hold),
    .out_hold_o(out_hold), .out_hold_net_o(out_hold_net), .out_waits_i('0),
    .accepted_i(begin_frame), .retired_i(end_frame), .loop_came_i('0), .loop_left_i('0),
    .ingress_idle_i(ingress_idle_o), .idle_i(idle_o),
    .memory_error_i(1'b0), .sram_state_i('0), .sram_fault_clear_o(sram_fault_clear), .queue_drop_i(1'b0), .irq_o
  );

  // Streams: a wire to the neighbour.
  always_comb begin
    for (int unsigned p = 0; p < 8; p++) begin
      m_tvalid_o[p] = s_tvalid_i[p ^ 1];
      m_tdata_o[p] = s_tdata_i[p ^ 1];
      m_tkeep_o[p] = s_tkeep_i[p ^ 1];
      m_tlast_o[p] = s_tlast_i[p ^ 1];
      m_ttag_o[p] = s_ttag_i[p ^ 1];
      s_tready_o[p] = m_tready_i[p ^ 1];
    end
  end
  assign moved = s_tvalid_i & s_tready_o;
  // Correct for one port at a time: tests of the record counters never send by two at once.
  assign begin_frame = |(moved & ~inside_q);
  assign end_frame = |(moved & s_tlast_i);
  assign ingress_idle_o = inside_q == '0;
  assign idle_o = inside_q == '0;
  assign moves_o = 1'b0;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) inside_q <= '0;
    else inside_q <= (inside_q & ~moved) | (moved & ~s_tlast_i);
  end

  // Tables.
  row_hop_t    hops_q [HopRowsHere];
  logic [3:0]  cleared_q;
  logic [6:0]  wait_q, wait_needed;
  logic        mine, answer;
  always_comb begin
    mine = 1'b0;
    wait_needed = 7'd0;
    unique case (req.id)
      TABLE_HOP: begin mine = 1'b1; wait_needed = 7'd3; end
      TABLE_COUNT: mine = 1'b1;
      TABLE_BYTES: begin mine = 1'b1; wait_needed = 7'd110; end
      default: ;
    endcase
    answer = req.valid && mine && wait_q == wait_needed;
    rsp = '0;
    rsp.done = answer;
    if (answer && req.id == TABLE_HOP) begin
      if (req.index >= 24'(HopRowsHere)) rsp.error = TABLE_ERROR_RANGE;
      else if (req.clear) rsp.error = TABLE_ERROR_REFUSED;
      else rsp.rdata = 256'(hops_q[req.index[5:0]]);
    end else if (answer && req.id == TABLE_COUNT) begin
      if (req.index >= 24'd4) rsp.error = TABLE_ERROR_RANGE;
      else if (req.write) rsp.error = TABLE_ERROR_REFUSED;
      else rsp.rdata = cleared_q[req.index[1:0]] ? '0 : 256'd1000 + 256'(req.index);
    end
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      wait_q <= '0;
      cleared_q <= '0;
    end else begin
      wait_q <= req.valid && mine && !answer ? wait_q + 7'd1 : '0;
      if (answer && req.id == TABLE_HOP && req.write && req.index < 24'(HopRowsHere)) begin
        hops_q[req.index[5:0]] <= row_hop_t'(req.wdata[$bits(row_hop_t)-1:0]);
      end
      if (answer && req.id == TABLE_COUNT && req.clear && req.index < 24'd4) cleared_q[req.index[1:0]] <= 1'b1;
    end
  end

endmodule
