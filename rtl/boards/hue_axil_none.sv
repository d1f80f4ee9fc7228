// AXI-Lite slave with no registers behind it: answers every access with an error, so that none hangs.
//
// Place: address windows of a shell that the card does not use.
// Latency: 1 clock. Throughput: a read and a write every 2 clocks.
// Source: AMBA AXI and ACE protocol specification, B1.

module hue_axil_none (
  input  logic        clk_i,
  input  logic        rst_ni,
  input  logic        s_axil_awvalid_i,
  output logic        s_axil_awready_o,
  input  logic        s_axil_wvalid_i,
  output logic        s_axil_wready_o,
  output logic        s_axil_bvalid_o,
  input  logic        s_axil_bready_i,
  output logic [1:0]  s_axil_bresp_o,
  input  logic        s_axil_arvalid_i,
  output logic        s_axil_arready_o,
  output logic        s_axil_rvalid_o,
  input  logic        s_axil_rready_i,
  output logic [31:0] s_axil_rdata_o,
  output logic [1:0]  s_axil_rresp_o
);

  localparam logic [1:0] RespSlaveError = 2'b10;

  logic bvalid_q, rvalid_q, write, read;

  assign write = s_axil_awvalid_i && s_axil_wvalid_i && !bvalid_q;
  assign read = s_axil_arvalid_i && !rvalid_q;
  assign s_axil_awready_o = write;
  assign s_axil_wready_o = write;
  assign s_axil_arready_o = read;
  assign s_axil_bvalid_o = bvalid_q;
  assign s_axil_rvalid_o = rvalid_q;
  assign s_axil_bresp_o = RespSlaveError;
  assign s_axil_rresp_o = RespSlaveError;
  assign s_axil_rdata_o = '0;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      bvalid_q <= 1'b0;
      rvalid_q <= 1'b0;
    end else begin
      bvalid_q <= bvalid_q ? !s_axil_bready_i : write;
      rvalid_q <= rvalid_q ? !s_axil_rready_i : read;
    end
  end

`ifndef SYNTHESIS
  a_write_latency: assert property (@(posedge clk_i) disable iff (!rst_ni) write |=> bvalid_q);
  a_read_latency: assert property (@(posedge clk_i) disable iff (!rst_ni) read |=> rvalid_q);
`endif

endmodule
