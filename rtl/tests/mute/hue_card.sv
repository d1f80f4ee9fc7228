// A card that answers no register access and sends no frame. For tests of the driver, which must report this and not wait for ever.

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

  assign s_axil_awready_o = 1'b0;
  assign s_axil_wready_o = 1'b0;
  assign s_axil_bvalid_o = 1'b0;
  assign s_axil_bresp_o = 2'b00;
  assign s_axil_arready_o = 1'b0;
  assign s_axil_rvalid_o = 1'b0;
  assign s_axil_rdata_o = '0;
  assign s_axil_rresp_o = 2'b00;
  assign s_tready_o = '0;
  assign m_tvalid_o = '0;
  assign m_tdata_o = '0;
  assign m_tkeep_o = '0;
  assign m_tlast_o = '0;
  assign m_ttag_o = '0;
  assign ingress_idle_o = 1'b1;
  assign idle_o = 1'b1;
  assign moves_o = 1'b0;
  assign irq_o = 1'b0;
endmodule
