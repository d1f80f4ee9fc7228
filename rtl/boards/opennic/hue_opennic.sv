// The card in the 250 MHz user box of OpenNIC shell.
//
// Place: the box's wrapper of user plugins; same ports as p2p_250mhz, the shell's own plugin, except for the single register bus.
// MAC port i of the shell is the card's p<i>. CPU queue q<k> leaves by PCIe function k mod NumPhysFunc; function f enters
// as q<f>. The CPU header of a frame names its output, so any function reaches any port. Frames for a MAC port that the
// shell does not have are discarded.
// `tuser_size` is the length, `tuser_src` the source and `tuser_dst` the destination, in the shell's code (function f is
// bit f, MAC port i is bit 6 + i). The size and destination that the shell gives are ignored: the card counts bytes itself.
//
// Latency: hue_board's; one clock more towards the functions. Throughput: hue_board's.
// Source: Xilinx/open-nic-shell, README.md "Shell Interface"; src/utility/generic_reset.sv, src/system_config.

module hue_opennic
  import hue_pkg::*;
#(
  parameter int unsigned NumPhysFunc = 1,
  parameter int unsigned NumCmacPort = 1,
  // Duration of a reset in clocks of axil_aclk.
  parameter int unsigned ResetClocks = 100
) (
  input  logic        s_axil_awvalid,
  input  logic [31:0] s_axil_awaddr,
  output logic        s_axil_awready,
  input  logic        s_axil_wvalid,
  input  logic [31:0] s_axil_wdata,
  output logic        s_axil_wready,
  output logic        s_axil_bvalid,
  output logic [1:0]  s_axil_bresp,
  input  logic        s_axil_bready,
  input  logic        s_axil_arvalid,
  input  logic [31:0] s_axil_araddr,
  output logic        s_axil_arready,
  output logic        s_axil_rvalid,
  output logic [31:0] s_axil_rdata,
  output logic [1:0]  s_axil_rresp,
  input  logic        s_axil_rready,

  input  logic [NumPhysFunc-1:0]        s_axis_qdma_h2c_tvalid,
  input  logic [NumPhysFunc-1:0][511:0] s_axis_qdma_h2c_tdata,
  input  logic [NumPhysFunc-1:0][63:0]  s_axis_qdma_h2c_tkeep,
  input  logic [NumPhysFunc-1:0]        s_axis_qdma_h2c_tlast,
  input  logic [NumPhysFunc-1:0][15:0]  s_axis_qdma_h2c_tuser_size,
  input  logic [NumPhysFunc-1:0][15:0]  s_axis_qdma_h2c_tuser_src,
  input  logic [NumPhysFunc-1:0][15:0]  s_axis_qdma_h2c_tuser_dst,
  output logic [NumPhysFunc-1:0]        s_axis_qdma_h2c_tready,

  output logic [NumPhysFunc-1:0]        m_axis_qdma_c2h_tvalid,
  output logic [NumPhysFunc-1:0][511:0] m_axis_qdma_c2h_tdata,
  output logic [NumPhysFunc-1:0][63:0]  m_axis_qdma_c2h_tkeep,
  output logic [NumPhysFunc-1:0]        m_axis_qdma_c2h_tlast,
  output logic [NumPhysFunc-1:0][15:0]  m_axis_qdma_c2h_tuser_size,
  output logic [NumPhysFunc-1:0][15:0]  m_axis_qdma_c2h_tuser_src,
  output logic [NumPhysFunc-1:0][15:0]  m_axis_qdma_c2h_tuser_dst,
  input  logic [NumPhysFunc-1:0]        m_axis_qdma_c2h_tready,

  output logic [NumCmacPort-1:0]        m_axis_adap_tx_250mhz_tvalid,
  output logic [NumCmacPort-1:0][511:0] m_axis_adap_tx_250mhz_tdata,
  output logic [NumCmacPort-1:0][63:0]  m_axis_adap_tx_250mhz_tkeep,
  output logic [NumCmacPort-1:0]        m_axis_adap_tx_250mhz_tlast,
  output logic [NumCmacPort-1:0][15:0]  m_axis_adap_tx_250mhz_tuser_size,
  output logic [NumCmacPort-1:0][15:0]  m_axis_adap_tx_250mhz_tuser_src,
  output logic [NumCmacPort-1:0][15:0]  m_axis_adap_tx_250mhz_tuser_dst,
  input  logic [NumCmacPort-1:0]        m_axis_adap_tx_250mhz_tready,

  input  logic [NumCmacPort-1:0]        s_axis_adap_rx_250mhz_tvalid,
  input  logic [NumCmacPort-1:0][511:0] s_axis_adap_rx_250mhz_tdata,
  input  logic [NumCmacPort-1:0][63:0]  s_axis_adap_rx_250mhz_tkeep,
  input  logic [NumCmacPort-1:0]        s_axis_adap_rx_250mhz_tlast,
  input  logic [NumCmacPort-1:0][15:0]  s_axis_adap_rx_250mhz_tuser_size,
  input  logic [NumCmacPort-1:0][15:0]  s_axis_adap_rx_250mhz_tuser_src,
  input  logic [NumCmacPort-1:0][15:0]  s_axis_adap_rx_250mhz_tuser_dst,
  output logic [NumCmacPort-1:0]        s_axis_adap_rx_250mhz_tready,

  input  logic        mod_rstn,
  output logic        mod_rst_done,
  input  logic        axil_aclk,
  input  logic        axis_aclk
);

  localparam int unsigned Queues = Ports - MacPorts;
  localparam int unsigned FirstMacBit = 6;

  if (NumPhysFunc < 1 || NumPhysFunc > Queues) begin : g_functions
    $fatal(1, "NumPhysFunc: expected 1 to 4");
  end
  if (NumCmacPort < 1 || NumCmacPort > MacPorts) begin : g_macs
    $fatal(1, "NumCmacPort: expected 1 to 4");
  end
  if (ResetClocks < 8 || ResetClocks > 65535) begin : g_reset
    $fatal(1, "ResetClocks: expected 8 to 65535");
  end

  // The shell requests a reset with mod_rstn low for one clock, also at power-up, and waits for mod_rst_done.
  logic [15:0] reset_clocks_q;
  logic        done_q, axil_rst_nq, axis_rst_n;
  always_ff @(posedge axil_aclk) begin
    axil_rst_nq <= mod_rstn && reset_clocks_q == '0;
    if (!mod_rstn) begin
      reset_clocks_q <= 16'(ResetClocks);
      done_q <= 1'b0;
    end else if (reset_clocks_q != '0) begin
      reset_clocks_q <= reset_clocks_q - 16'd1;
    end else if (axil_rst_nq) begin
      done_q <= 1'b1;
    end
  end
  assign mod_rst_done = done_q && mod_rstn;
  hue_reset_sync u_reset (.clk_i(axis_aclk), .rst_ni(axil_rst_nq), .rst_no(axis_rst_n));

  logic [Ports-1:0]        s_tvalid, s_tready, s_tlast, m_tvalid, m_tready, m_tlast;
  logic [Ports-1:0][511:0] s_tdata, m_tdata;
  logic [Ports-1:0][63:0]  s_tkeep, m_tkeep;
  logic [Ports-1:0][15:0]  s_source, m_size, m_source;

  hue_board u_board (
    .clk_i(axis_aclk), .rst_ni(axis_rst_n), .axil_clk_i(axil_aclk), .axil_rst_ni(axil_rst_nq),
    .s_axil_awvalid_i(s_axil_awvalid), .s_axil_awready_o(s_axil_awready), .s_axil_awaddr_i(s_axil_awaddr[23:0]),
    .s_axil_wvalid_i(s_axil_wvalid), .s_axil_wready_o(s_axil_wready), .s_axil_wdata_i(s_axil_wdata), .s_axil_wstrb_i(4'hf),
    .s_axil_bvalid_o(s_axil_bvalid), .s_axil_bready_i(s_axil_bready), .s_axil_bresp_o(s_axil_bresp),
    .s_axil_arvalid_i(s_axil_arvalid), .s_axil_arready_o(s_axil_arready), .s_axil_araddr_i(s_axil_araddr[23:0]),
    .s_axil_rvalid_o(s_axil_rvalid), .s_axil_rready_i(s_axil_rready), .s_axil_rdata_o(s_axil_rdata),
    .s_axil_rresp_o(s_axil_rresp),
    .s_tvalid_i(s_tvalid), .s_tready_o(s_tready), .s_tdata_i(s_tdata), .s_tkeep_i(s_tkeep), .s_tlast_i(s_tlast),
    .s_source_i(s_source),
    .m_tvalid_o(m_tvalid), .m_tready_i(m_tready), .m_tdata_o(m_tdata), .m_tkeep_o(m_tkeep), .m_tlast_o(m_tlast),
    .m_size_o(m_size), .m_source_o(m_source)
  );

  // MAC ports
  for (genvar p = 0; p < MacPorts; p++) begin : g_mac
    if (p < NumCmacPort) begin : g_here
      assign s_tvalid[p] = s_axis_adap_rx_250mhz_tvalid[p];
      assign s_axis_adap_rx_250mhz_tready[p] = s_tready[p];
      assign s_tdata[p] = s_axis_adap_rx_250mhz_tdata[p];
      assign s_tkeep[p] = s_axis_adap_rx_250mhz_tkeep[p];
      assign s_tlast[p] = s_axis_adap_rx_250mhz_tlast[p];
      assign s_source[p] = s_axis_adap_rx_250mhz_tuser_src[p];
      assign m_axis_adap_tx_250mhz_tvalid[p] = m_tvalid[p];
      assign m_tready[p] = m_axis_adap_tx_250mhz_tready[p];
      assign m_axis_adap_tx_250mhz_tdata[p] = m_tdata[p];
      assign m_axis_adap_tx_250mhz_tkeep[p] = m_tkeep[p];
      assign m_axis_adap_tx_250mhz_tlast[p] = m_tlast[p];
      assign m_axis_adap_tx_250mhz_tuser_size[p] = m_size[p];
      assign m_axis_adap_tx_250mhz_tuser_src[p] = m_source[p];
      assign m_axis_adap_tx_250mhz_tuser_dst[p] = 16'(1 << (FirstMacBit + p));
    end else begin : g_missing
      assign s_tvalid[p] = 1'b0;
      assign s_tdata[p] = '0;
      assign s_tkeep[p] = '0;
      assign s_tlast[p] = 1'b0;
      assign s_source[p] = '0;
      assign m_tready[p] = 1'b1;
    end
  end

  // From the PCIe functions to the card
  for (genvar k = 0; k < Queues; k++) begin : g_queue
    if (k < NumPhysFunc) begin : g_here
      assign s_tvalid[MacPorts+k] = s_axis_qdma_h2c_tvalid[k];
      assign s_axis_qdma_h2c_tready[k] = s_tready[MacPorts+k];
      assign s_tdata[MacPorts+k] = s_axis_qdma_h2c_tdata[k];
      assign s_tkeep[MacPorts+k] = s_axis_qdma_h2c_tkeep[k];
      assign s_tlast[MacPorts+k] = s_axis_qdma_h2c_tlast[k];
      assign s_source[MacPorts+k] = s_axis_qdma_h2c_tuser_src[k];
    end else begin : g_missing
      assign s_tvalid[MacPorts+k] = 1'b0;
      assign s_tdata[MacPorts+k] = '0;
      assign s_tkeep[MacPorts+k] = '0;
      assign s_tlast[MacPorts+k] = 1'b0;
      assign s_source[MacPorts+k] = '0;
    end
  end

  // From the card to the PCIe functions: the queues of a function take turns.
  typedef struct packed {
    logic [511:0] data;
    logic [63:0]  keep;
    logic [15:0]  size;
    logic [15:0]  source;
  } beat_t;
  beat_t [Queues-1:0] queue_beat;
  logic [NumPhysFunc-1:0][Queues-1:0] queue_ready;
  always_comb begin
    for (int unsigned k = 0; k < Queues; k++) begin
      queue_beat[k].data = m_tdata[MacPorts+k];
      queue_beat[k].keep = m_tkeep[MacPorts+k];
      queue_beat[k].size = m_size[MacPorts+k];
      queue_beat[k].source = m_source[MacPorts+k];
      m_tready[MacPorts+k] = queue_ready[k%NumPhysFunc][k];
    end
  end
  for (genvar f = 0; f < NumPhysFunc; f++) begin : g_function
    logic [Queues-1:0]         mine;
    logic [$clog2(Queues)-1:0] unused_index;
    beat_t                     beat;
    for (genvar k = 0; k < Queues; k++) begin : g_mine
      assign mine[k] = k % NumPhysFunc == f;
    end
    hue_board_join #(.Count(Queues), .Bits($bits(beat_t))) u_join (
      .clk_i(axis_aclk), .rst_ni(axis_rst_n),
      .s_valid_i(m_tvalid[Ports-1:MacPorts] & mine), .s_ready_o(queue_ready[f]), .s_last_i(m_tlast[Ports-1:MacPorts]),
      .s_data_i(queue_beat),
      .m_valid_o(m_axis_qdma_c2h_tvalid[f]), .m_ready_i(m_axis_qdma_c2h_tready[f]), .m_last_o(m_axis_qdma_c2h_tlast[f]),
      .m_data_o(beat), .m_index_o(unused_index)
    );
    assign m_axis_qdma_c2h_tdata[f] = beat.data;
    assign m_axis_qdma_c2h_tkeep[f] = beat.keep;
    assign m_axis_qdma_c2h_tuser_size[f] = beat.size;
    assign m_axis_qdma_c2h_tuser_src[f] = beat.source;
    assign m_axis_qdma_c2h_tuser_dst[f] = 16'(1 << f);
  end

  logic unused;
  assign unused = ^{s_axil_awaddr[31:24], s_axil_araddr[31:24], s_tready, m_tvalid, m_tlast, m_tdata, m_tkeep, m_size,
                    m_source, s_axis_qdma_h2c_tuser_size, s_axis_qdma_h2c_tuser_dst, s_axis_adap_rx_250mhz_tuser_size,
                    s_axis_adap_rx_250mhz_tuser_dst};

endmodule
