// The card as the data path of NetFPGA-PLUS.
//
// Place: replaces nf_datapath of the reference projects; name, parameters and ports are those that NetFPGA-PLUS' top.v
// connects. Streams 0 and 1 are the MAC ports nf0 and nf1, the card's p0 and p1; stream 2 is the DMA with its two functions:
// frames that function f sends enter as q<f>, CPU queue q<k> leaves for function k mod 2. Frames for p2 and p3 are discarded.
// tuser, valid on every beat: 15:0 length, 23:16 source, 31:24 destination, the rest 0; source and destination are one-hot
// in the project's code (nf0 1, function 0 2, nf1 4, function 1 8). Of the tuser that comes in only the source is used.
// Registers are in window S0; S1 and S2 answer every access with an error.
//
// Latency: hue_board's; one clock more towards the DMA. Throughput: hue_board's.
// Source: NetFPGA/NetFPGA-PLUS, hw/lib/common/hdl/top.v and nf_attachment.sv.

module nf_datapath
  import hue_pkg::*;
#(
  parameter int unsigned C_S_AXI_DATA_WIDTH = 32,
  parameter int unsigned C_S_AXI_ADDR_WIDTH = 32,
  parameter logic [31:0] C_BASEADDR = '0,
  parameter int unsigned C_M_AXIS_DATA_WIDTH = 512,
  parameter int unsigned C_S_AXIS_DATA_WIDTH = 512,
  parameter int unsigned C_M_AXIS_TUSER_WIDTH = 128,
  parameter int unsigned C_S_AXIS_TUSER_WIDTH = 128,
  parameter int unsigned NUM_QUEUES = 5
) (
  input  logic         axis_aclk,
  input  logic         axis_resetn,
  input  logic         axi_aclk,
  input  logic         axi_resetn,

  input  logic [31:0]  S0_AXI_AWADDR,
  input  logic         S0_AXI_AWVALID,
  input  logic [31:0]  S0_AXI_WDATA,
  input  logic [3:0]   S0_AXI_WSTRB,
  input  logic         S0_AXI_WVALID,
  input  logic         S0_AXI_BREADY,
  input  logic [31:0]  S0_AXI_ARADDR,
  input  logic         S0_AXI_ARVALID,
  input  logic         S0_AXI_RREADY,
  output logic         S0_AXI_ARREADY,
  output logic [31:0]  S0_AXI_RDATA,
  output logic [1:0]   S0_AXI_RRESP,
  output logic         S0_AXI_RVALID,
  output logic         S0_AXI_WREADY,
  output logic [1:0]   S0_AXI_BRESP,
  output logic         S0_AXI_BVALID,
  output logic         S0_AXI_AWREADY,

  input  logic [31:0]  S1_AXI_AWADDR,
  input  logic         S1_AXI_AWVALID,
  input  logic [31:0]  S1_AXI_WDATA,
  input  logic [3:0]   S1_AXI_WSTRB,
  input  logic         S1_AXI_WVALID,
  input  logic         S1_AXI_BREADY,
  input  logic [31:0]  S1_AXI_ARADDR,
  input  logic         S1_AXI_ARVALID,
  input  logic         S1_AXI_RREADY,
  output logic         S1_AXI_ARREADY,
  output logic [31:0]  S1_AXI_RDATA,
  output logic [1:0]   S1_AXI_RRESP,
  output logic         S1_AXI_RVALID,
  output logic         S1_AXI_WREADY,
  output logic [1:0]   S1_AXI_BRESP,
  output logic         S1_AXI_BVALID,
  output logic         S1_AXI_AWREADY,

  input  logic [31:0]  S2_AXI_AWADDR,
  input  logic         S2_AXI_AWVALID,
  input  logic [31:0]  S2_AXI_WDATA,
  input  logic [3:0]   S2_AXI_WSTRB,
  input  logic         S2_AXI_WVALID,
  input  logic         S2_AXI_BREADY,
  input  logic [31:0]  S2_AXI_ARADDR,
  input  logic         S2_AXI_ARVALID,
  input  logic         S2_AXI_RREADY,
  output logic         S2_AXI_ARREADY,
  output logic [31:0]  S2_AXI_RDATA,
  output logic [1:0]   S2_AXI_RRESP,
  output logic         S2_AXI_RVALID,
  output logic         S2_AXI_WREADY,
  output logic [1:0]   S2_AXI_BRESP,
  output logic         S2_AXI_BVALID,
  output logic         S2_AXI_AWREADY,

  input  logic [511:0] s_axis_0_tdata,
  input  logic [63:0]  s_axis_0_tkeep,
  input  logic [127:0] s_axis_0_tuser,
  input  logic         s_axis_0_tvalid,
  output logic         s_axis_0_tready,
  input  logic         s_axis_0_tlast,
  input  logic [511:0] s_axis_1_tdata,
  input  logic [63:0]  s_axis_1_tkeep,
  input  logic [127:0] s_axis_1_tuser,
  input  logic         s_axis_1_tvalid,
  output logic         s_axis_1_tready,
  input  logic         s_axis_1_tlast,
  input  logic [511:0] s_axis_2_tdata,
  input  logic [63:0]  s_axis_2_tkeep,
  input  logic [127:0] s_axis_2_tuser,
  input  logic         s_axis_2_tvalid,
  output logic         s_axis_2_tready,
  input  logic         s_axis_2_tlast,

  output logic [511:0] m_axis_0_tdata,
  output logic [63:0]  m_axis_0_tkeep,
  output logic [127:0] m_axis_0_tuser,
  output logic         m_axis_0_tvalid,
  input  logic         m_axis_0_tready,
  output logic         m_axis_0_tlast,
  output logic [511:0] m_axis_1_tdata,
  output logic [63:0]  m_axis_1_tkeep,
  output logic [127:0] m_axis_1_tuser,
  output logic         m_axis_1_tvalid,
  input  logic         m_axis_1_tready,
  output logic         m_axis_1_tlast,
  output logic [511:0] m_axis_2_tdata,
  output logic [63:0]  m_axis_2_tkeep,
  output logic [127:0] m_axis_2_tuser,
  output logic         m_axis_2_tvalid,
  input  logic         m_axis_2_tready,
  output logic         m_axis_2_tlast
);

  localparam int unsigned Queues = Ports - MacPorts;
  localparam int unsigned Macs = 2;

  if (C_M_AXIS_DATA_WIDTH != 512 || C_S_AXIS_DATA_WIDTH != 512) begin : g_data
    $fatal(1, "C_NF_DATA_WIDTH of the project: expected 512");
  end
  if (C_M_AXIS_TUSER_WIDTH != 128 || C_S_AXIS_TUSER_WIDTH != 128) begin : g_user
    $fatal(1, "C_NF_TUSER_WIDTH of the project: expected 128");
  end
  if (C_S_AXI_DATA_WIDTH != 32 || C_S_AXI_ADDR_WIDTH != 32 || C_BASEADDR != '0 || NUM_QUEUES != 5) begin : g_registers
    $fatal(1, "nf_datapath: expected the parameters of NetFPGA-PLUS' top.v");
  end

  // tuser
  typedef struct packed {
    logic [95:0] reserved;
    logic [7:0]  destination;
    logic [7:0]  source;
    logic [15:0] size;
  } user_t;
  // One-hot codes of NetFPGA-PLUS: MAC ports have the even bits, functions the odd ones.
  function automatic logic [7:0] code_of_mac(int unsigned mac);
    return 8'(1 << (2 * mac));
  endfunction
  function automatic logic [7:0] code_of_function(logic second);
    return second ? 8'h08 : 8'h02;
  endfunction
  localparam int unsigned SecondBit = 3;  // set in the code of function 1

  // Either reset resets both clock domains.
  logic axis_rst_n, axi_rst_n;
  hue_reset_sync u_axis_reset (.clk_i(axis_aclk), .rst_ni(axis_resetn && axi_resetn), .rst_no(axis_rst_n));
  hue_reset_sync u_axi_reset (.clk_i(axi_aclk), .rst_ni(axis_resetn && axi_resetn), .rst_no(axi_rst_n));

  logic [Ports-1:0]        s_tvalid, s_tready, s_tlast, m_tvalid, m_tready, m_tlast;
  logic [Ports-1:0][511:0] s_tdata, m_tdata;
  logic [Ports-1:0][63:0]  s_tkeep, m_tkeep;
  logic [Ports-1:0][15:0]  s_source, m_size, m_source;

  hue_board u_board (
    .clk_i(axis_aclk), .rst_ni(axis_rst_n), .axil_clk_i(axi_aclk), .axil_rst_ni(axi_rst_n),
    .s_axil_awvalid_i(S0_AXI_AWVALID), .s_axil_awready_o(S0_AXI_AWREADY), .s_axil_awaddr_i({8'd0, S0_AXI_AWADDR[15:0]}),
    .s_axil_wvalid_i(S0_AXI_WVALID), .s_axil_wready_o(S0_AXI_WREADY), .s_axil_wdata_i(S0_AXI_WDATA),
    .s_axil_wstrb_i(S0_AXI_WSTRB),
    .s_axil_bvalid_o(S0_AXI_BVALID), .s_axil_bready_i(S0_AXI_BREADY), .s_axil_bresp_o(S0_AXI_BRESP),
    .s_axil_arvalid_i(S0_AXI_ARVALID), .s_axil_arready_o(S0_AXI_ARREADY), .s_axil_araddr_i({8'd0, S0_AXI_ARADDR[15:0]}),
    .s_axil_rvalid_o(S0_AXI_RVALID), .s_axil_rready_i(S0_AXI_RREADY), .s_axil_rdata_o(S0_AXI_RDATA),
    .s_axil_rresp_o(S0_AXI_RRESP),
    .s_tvalid_i(s_tvalid), .s_tready_o(s_tready), .s_tdata_i(s_tdata), .s_tkeep_i(s_tkeep), .s_tlast_i(s_tlast),
    .s_source_i(s_source),
    .m_tvalid_o(m_tvalid), .m_tready_i(m_tready), .m_tdata_o(m_tdata), .m_tkeep_o(m_tkeep), .m_tlast_o(m_tlast),
    .m_size_o(m_size), .m_source_o(m_source)
  );

  // The windows of two modules of the reference projects that the card does not have.
  hue_axil_none u_s1 (
    .clk_i(axi_aclk), .rst_ni(axi_rst_n),
    .s_axil_awvalid_i(S1_AXI_AWVALID), .s_axil_awready_o(S1_AXI_AWREADY), .s_axil_wvalid_i(S1_AXI_WVALID),
    .s_axil_wready_o(S1_AXI_WREADY), .s_axil_bvalid_o(S1_AXI_BVALID), .s_axil_bready_i(S1_AXI_BREADY),
    .s_axil_bresp_o(S1_AXI_BRESP), .s_axil_arvalid_i(S1_AXI_ARVALID), .s_axil_arready_o(S1_AXI_ARREADY),
    .s_axil_rvalid_o(S1_AXI_RVALID), .s_axil_rready_i(S1_AXI_RREADY), .s_axil_rdata_o(S1_AXI_RDATA),
    .s_axil_rresp_o(S1_AXI_RRESP)
  );
  hue_axil_none u_s2 (
    .clk_i(axi_aclk), .rst_ni(axi_rst_n),
    .s_axil_awvalid_i(S2_AXI_AWVALID), .s_axil_awready_o(S2_AXI_AWREADY), .s_axil_wvalid_i(S2_AXI_WVALID),
    .s_axil_wready_o(S2_AXI_WREADY), .s_axil_bvalid_o(S2_AXI_BVALID), .s_axil_bready_i(S2_AXI_BREADY),
    .s_axil_bresp_o(S2_AXI_BRESP), .s_axil_arvalid_i(S2_AXI_ARVALID), .s_axil_arready_o(S2_AXI_ARREADY),
    .s_axil_rvalid_o(S2_AXI_RVALID), .s_axil_rready_i(S2_AXI_RREADY), .s_axil_rdata_o(S2_AXI_RDATA),
    .s_axil_rresp_o(S2_AXI_RRESP)
  );

  // Input: frames from function f enter as q<f>.
  user_t user_0, user_1, user_2, m_user_0, m_user_1, m_user_2;
  assign user_0 = s_axis_0_tuser;
  assign user_1 = s_axis_1_tuser;
  assign user_2 = s_axis_2_tuser;
  logic inside_q, second_q, second;
`ifdef HUE_PLANT_NF_FUNCTION
  assign second = user_2.source[SecondBit];  // for scripts/rtl-test: the bench must find this
`else
  assign second = inside_q ? second_q : user_2.source[SecondBit];
`endif
  always_ff @(posedge axis_aclk) begin
    if (s_axis_2_tvalid && s_axis_2_tready) second_q <= second;
    if (!axis_rst_n) inside_q <= 1'b0;
    else if (s_axis_2_tvalid && s_axis_2_tready) inside_q <= !s_axis_2_tlast;
  end
  always_comb begin
    s_tvalid = '0;
    s_tdata = '0;
    s_tkeep = '0;
    s_tlast = '0;
    s_source = '0;
    s_tvalid[0] = s_axis_0_tvalid;
    s_tdata[0] = s_axis_0_tdata;
    s_tkeep[0] = s_axis_0_tkeep;
    s_tlast[0] = s_axis_0_tlast;
    s_source[0] = 16'(user_0.source);
    s_tvalid[1] = s_axis_1_tvalid;
    s_tdata[1] = s_axis_1_tdata;
    s_tkeep[1] = s_axis_1_tkeep;
    s_tlast[1] = s_axis_1_tlast;
    s_source[1] = 16'(user_1.source);
    for (int unsigned f = 0; f < 2; f++) begin
      s_tvalid[MacPorts+f] = s_axis_2_tvalid && second == 1'(f);
      s_tdata[MacPorts+f] = s_axis_2_tdata;
      s_tkeep[MacPorts+f] = s_axis_2_tkeep;
      s_tlast[MacPorts+f] = s_axis_2_tlast;
      s_source[MacPorts+f] = 16'(user_2.source);
    end
  end
  assign s_axis_0_tready = s_tready[0];
  assign s_axis_1_tready = s_tready[1];
  assign s_axis_2_tready = second ? s_tready[MacPorts+1] : s_tready[MacPorts];

  // Output
  typedef struct packed {
    logic [511:0] data;
    logic [63:0]  keep;
    logic [15:0]  size;
    logic [7:0]   source;
  } beat_t;
  beat_t [Queues-1:0]        queue_beat;
  beat_t                     beat;
  logic [$clog2(Queues)-1:0] queue;
  for (genvar k = 0; k < Queues; k++) begin : g_queue
    assign queue_beat[k].data = m_tdata[MacPorts+k];
    assign queue_beat[k].keep = m_tkeep[MacPorts+k];
    assign queue_beat[k].size = m_size[MacPorts+k];
    assign queue_beat[k].source = m_source[MacPorts+k][7:0];
  end
  hue_board_join #(.Count(Queues), .Bits($bits(beat_t))) u_join (
    .clk_i(axis_aclk), .rst_ni(axis_rst_n),
    .s_valid_i(m_tvalid[Ports-1:MacPorts]), .s_ready_o(m_tready[Ports-1:MacPorts]), .s_last_i(m_tlast[Ports-1:MacPorts]),
    .s_data_i(queue_beat),
    .m_valid_o(m_axis_2_tvalid), .m_ready_i(m_axis_2_tready), .m_last_o(m_axis_2_tlast), .m_data_o(beat), .m_index_o(queue)
  );
  assign m_user_0 = '{reserved: '0, destination: code_of_mac(0), source: m_source[0][7:0], size: m_size[0]};
  assign m_user_1 = '{reserved: '0, destination: code_of_mac(1), source: m_source[1][7:0], size: m_size[1]};
  assign m_user_2 = '{reserved: '0, destination: code_of_function(queue[0]), source: beat.source, size: beat.size};
  assign m_axis_0_tvalid = m_tvalid[0];
  assign m_axis_0_tdata = m_tdata[0];
  assign m_axis_0_tkeep = m_tkeep[0];
  assign m_axis_0_tlast = m_tlast[0];
  assign m_axis_0_tuser = m_user_0;
  assign m_axis_1_tvalid = m_tvalid[1];
  assign m_axis_1_tdata = m_tdata[1];
  assign m_axis_1_tkeep = m_tkeep[1];
  assign m_axis_1_tlast = m_tlast[1];
  assign m_axis_1_tuser = m_user_1;
  assign m_axis_2_tdata = beat.data;
  assign m_axis_2_tkeep = beat.keep;
  assign m_axis_2_tuser = m_user_2;
  assign m_tready[MacPorts-1:0] = {{(MacPorts - Macs) {1'b1}}, m_axis_1_tready, m_axis_0_tready};

  logic unused;
  assign unused = ^{S0_AXI_AWADDR[31:16], S0_AXI_ARADDR[31:16], S1_AXI_AWADDR, S1_AXI_ARADDR, S1_AXI_WDATA, S1_AXI_WSTRB,
                    S2_AXI_AWADDR, S2_AXI_ARADDR, S2_AXI_WDATA, S2_AXI_WSTRB, user_0, user_1, user_2, s_tready, m_source,
                    m_tvalid, m_tlast, m_tdata, m_tkeep, m_size, queue};

endmodule
