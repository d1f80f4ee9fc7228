// The card for a shell with 512-bit streams: the part that the adapters share.
//
//   register bus ─ hue_axil_cross ─┐
//   MAC streams ── time ───────────┤ hue_card ├── padding ─ MAC streams
//   CPU streams ── time ───────────┘          └──────────── CPU streams
//
// Place: hue_opennic and nf_datapath wrap it. hue_image.vh, which scripts/boards writes from rtl/images, selects the image. Ports
// are numbered as in the card: MACs first, then CPU queues. A frame's `source`, the shell's code for its input, passes through the
// card as the tag and leaves with everything that the frame becomes. Timestamps count from reset. A frame for a MAC is padded with
// zeros to 60 bytes: the MACs of these shells do not pad, and may hang on shorter frames (AMD PG203, "Valid Cycles").
//
// Latency: hue_card's; hue_axil_cross's for registers. Throughput: hue_card's.

module hue_board
  import hue_pkg::*;
#(
  localparam int unsigned BusBytes = 64
) (
  input  logic        clk_i,
  input  logic        rst_ni,

  // Registers, in their own clock domain.
  input  logic        axil_clk_i,
  input  logic        axil_rst_ni,
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

  input  logic [Ports-1:0]                 s_tvalid_i,
  output logic [Ports-1:0]                 s_tready_o,
  input  logic [Ports-1:0][8*BusBytes-1:0] s_tdata_i,
  input  logic [Ports-1:0][BusBytes-1:0]   s_tkeep_i,
  input  logic [Ports-1:0]                 s_tlast_i,
  input  logic [Ports-1:0][15:0]           s_source_i,  // sampled with the first beat

  output logic [Ports-1:0]                 m_tvalid_o,
  input  logic [Ports-1:0]                 m_tready_i,
  output logic [Ports-1:0][8*BusBytes-1:0] m_tdata_o,
  output logic [Ports-1:0][BusBytes-1:0]   m_tkeep_o,
  output logic [Ports-1:0]                 m_tlast_o,
  output logic [Ports-1:0][15:0]           m_size_o,    // bytes of the frame; stable over the frame; so is the source
  output logic [Ports-1:0][15:0]           m_source_o
);

  // Without the checksum that the MAC appends (IEEE 802.3 §4.4.2).
  localparam logic [15:0] MacBytesMin = 16'd60;

  // Registers
  logic        axil_awvalid, axil_awready, axil_wvalid, axil_wready, axil_bvalid, axil_bready, axil_arvalid, axil_arready,
               axil_rvalid, axil_rready;
  logic [23:0] axil_awaddr, axil_araddr;
  logic [31:0] axil_wdata, axil_rdata;
  logic [3:0]  axil_wstrb;
  logic [1:0]  axil_bresp, axil_rresp;

  hue_axil_cross u_cross (
    .s_clk_i(axil_clk_i), .s_rst_ni(axil_rst_ni),
    .s_axil_awvalid_i, .s_axil_awready_o, .s_axil_awaddr_i,
    .s_axil_wvalid_i, .s_axil_wready_o, .s_axil_wdata_i, .s_axil_wstrb_i,
    .s_axil_bvalid_o, .s_axil_bready_i, .s_axil_bresp_o,
    .s_axil_arvalid_i, .s_axil_arready_o, .s_axil_araddr_i,
    .s_axil_rvalid_o, .s_axil_rready_i, .s_axil_rdata_o, .s_axil_rresp_o,
    .m_clk_i(clk_i), .m_rst_ni(rst_ni),
    .m_axil_awvalid_o(axil_awvalid), .m_axil_awready_i(axil_awready), .m_axil_awaddr_o(axil_awaddr),
    .m_axil_wvalid_o(axil_wvalid), .m_axil_wready_i(axil_wready), .m_axil_wdata_o(axil_wdata), .m_axil_wstrb_o(axil_wstrb),
    .m_axil_bvalid_i(axil_bvalid), .m_axil_bready_o(axil_bready), .m_axil_bresp_i(axil_bresp),
    .m_axil_arvalid_o(axil_arvalid), .m_axil_arready_i(axil_arready), .m_axil_araddr_o(axil_araddr),
    .m_axil_rvalid_i(axil_rvalid), .m_axil_rready_o(axil_rready), .m_axil_rdata_i(axil_rdata), .m_axil_rresp_i(axil_rresp)
  );

  // The card. These shells have no interrupt for a user's logic, so the driver polls INTERRUPT_STATUS.
  logic [63:0]             now_ns;
  logic [Ports-1:0][31:0]  s_ttag, m_ttag;
  logic [Ports-1:0][13:0]  m_tlen;
  logic [Ports-1:0][8*BusBytes-1:0] m_tdata;
  logic [Ports-1:0][BusBytes-1:0]   m_tkeep;
  logic                    unused_ingress_idle, unused_idle, unused_moves, unused_irq;
  logic [1:0]              unused_sram_en, unused_sram_write;
  logic [1:0][18:0]        unused_sram_addr;
  logic [1:0][35:0]        unused_sram_wdata;
  logic                    unused_queue_valid, unused_queue_write;
  logic [23:0]             unused_queue_addr;
  logic [8*QueueWordBytes-1:0] unused_queue_wdata;

  hue_card #(
    `include "hue_image.vh"
  ) u_card (
    .clk_i, .rst_ni,
    .s_axil_awvalid_i(axil_awvalid), .s_axil_awready_o(axil_awready), .s_axil_awaddr_i(axil_awaddr),
    .s_axil_wvalid_i(axil_wvalid), .s_axil_wready_o(axil_wready), .s_axil_wdata_i(axil_wdata), .s_axil_wstrb_i(axil_wstrb),
    .s_axil_bvalid_o(axil_bvalid), .s_axil_bready_i(axil_bready), .s_axil_bresp_o(axil_bresp),
    .s_axil_arvalid_i(axil_arvalid), .s_axil_arready_o(axil_arready), .s_axil_araddr_i(axil_araddr),
    .s_axil_rvalid_o(axil_rvalid), .s_axil_rready_i(axil_rready), .s_axil_rdata_o(axil_rdata), .s_axil_rresp_o(axil_rresp),
    .s_tvalid_i, .s_tready_o, .s_tdata_i, .s_tkeep_i, .s_tlast_i, .s_ttime_i({Ports{now_ns}}), .s_ttag_i(s_ttag),
    .m_tvalid_o, .m_tready_i, .m_tdata_o(m_tdata), .m_tkeep_o(m_tkeep), .m_tlast_o, .m_tlen_o(m_tlen), .m_ttag_o(m_ttag),
    .sram_en_o(unused_sram_en), .sram_write_o(unused_sram_write), .sram_addr_o(unused_sram_addr),
    .sram_wdata_o(unused_sram_wdata), .sram_rdata_i('0),
    .queue_valid_o(unused_queue_valid), .queue_ready_i(1'b0), .queue_write_o(unused_queue_write),
    .queue_addr_o(unused_queue_addr), .queue_wdata_o(unused_queue_wdata), .queue_rvalid_i(1'b0), .queue_rdata_i('0),
    .ingress_idle_o(unused_ingress_idle), .idle_o(unused_idle), .moves_o(unused_moves), .irq_o(unused_irq)
  );

  hue_board_time #(.ClockKhz(`HUE_IMAGE_CLOCK_KHZ)) u_time (.clk_i, .rst_ni, .time_ns_o(now_ns));

  for (genvar p = 0; p < Ports; p++) begin : g_port
    // The tag is valid with a frame's first beat only; `m_source_o` is valid with every beat.
    logic        inside_q;
    logic [15:0] source_q;
    assign s_ttag[p] = {16'd0, s_source_i[p]};
    assign m_source_o[p] = inside_q ? source_q : m_ttag[p][15:0];
    always_ff @(posedge clk_i) begin
      if (m_tvalid_o[p] && m_tready_i[p]) source_q <= m_source_o[p];
      if (!rst_ni) inside_q <= 1'b0;
      else if (m_tvalid_o[p] && m_tready_i[p]) inside_q <= !m_tlast_o[p];
    end

    if (p < MacPorts) begin : g_mac
      logic is_short;  // must be padded; such a frame is one beat
      assign is_short = 16'(m_tlen[p]) < MacBytesMin;
`ifdef HUE_PLANT_BOARD_SIZE
      assign m_size_o[p] = 16'(m_tlen[p]);  // for scripts/rtl-test: the bench must find this
`else
      assign m_size_o[p] = is_short ? MacBytesMin : 16'(m_tlen[p]);
`endif
      always_comb begin
        m_tdata_o[p] = m_tdata[p];
        m_tkeep_o[p] = m_tkeep[p];
        for (int unsigned b = 0; b < BusBytes; b++) begin
          if (is_short && 16'(b) >= 16'(m_tlen[p])) m_tdata_o[p][8*b+:8] = '0;
          if (is_short) m_tkeep_o[p][b] = 16'(b) < MacBytesMin;
        end
      end
    end else begin : g_cpu
      assign m_size_o[p] = 16'(m_tlen[p]);
      assign m_tdata_o[p] = m_tdata[p];
      assign m_tkeep_o[p] = m_tkeep[p];
    end
  end

`ifndef SYNTHESIS
  // The card relies on a rule that the shells guarantee: only the last beat of a frame has unused bytes, and they come after the
  // used ones.
  logic [Ports-1:0] contiguous;
  always_comb begin
    for (int unsigned p = 0; p < Ports; p++) contiguous[p] = (s_tkeep_i[p] & (s_tkeep_i[p] + 1'b1)) == '0;
  end
  for (genvar p = 0; p < Ports; p++) begin : g_check
    a_bytes_are_lowest: assert property (@(posedge clk_i) disable iff (!rst_ni) s_tvalid_i[p] |-> contiguous[p]);
    a_beats_are_full: assert property (@(posedge clk_i) disable iff (!rst_ni)
      (s_tvalid_i[p] && !s_tlast_i[p]) |-> &s_tkeep_i[p]);
    a_stable: assert property (@(posedge clk_i) disable iff (!rst_ni)
      (m_tvalid_o[p] && !(m_tready_i[p] && m_tlast_o[p])) |=>
      (!m_tvalid_o[p] || ($stable(m_size_o[p]) && $stable(m_source_o[p]))));
  end
`endif

  logic unused;
  assign unused = ^m_ttag;

endmodule
