// hue_sram_port with its bank, for the bench.
module hue_sram #(
    parameter int unsigned Words     = 256,
    parameter int unsigned Latency   = 4,
    parameter int unsigned HostWait  = 8,
    parameter int unsigned HostShare = 4,
    localparam int unsigned TagBits  = 16,
    localparam int unsigned AddrBits = $clog2(Words)
) (
    input  logic                clk_i,
    input  logic                rst_ni,
    input  logic                rd_valid_i,
    output logic                rd_ready_o,
    input  logic [AddrBits-1:0] rd_addr_i,
    input  logic [TagBits-1:0]  rd_tag_i,
    output logic                rsp_valid_o,
    output logic [35:0]         rsp_data_o,
    output logic [TagBits-1:0]  rsp_tag_o,
    output logic                rsp_error_o,
    input  logic                host_valid_i,
    output logic                host_ready_o,
    input  logic                host_write_i,
    input  logic [AddrBits-1:0] host_addr_i,
    input  logic [34:0]         host_data_i,
    output logic                host_rsp_valid_o,
    output logic [34:0]         host_rsp_data_o,
    output logic                host_rsp_error_o,
    input  logic                error_clear_i,
    output logic                error_valid_o,
    output logic [AddrBits-1:0] error_addr_o,
    output logic [31:0]         error_count_o
);
  logic sram_en, sram_write;
  logic [AddrBits-1:0] sram_addr;
  logic [35:0] sram_wdata, sram_rdata;
  hue_sram_port #(
    .Words(Words), .Latency(Latency), .TagBits(TagBits), .HostWait(HostWait), .HostShare(HostShare)
  ) u_port (
    .sram_en_o(sram_en), .sram_write_o(sram_write), .sram_addr_o(sram_addr), .sram_wdata_o(sram_wdata),
    .sram_rdata_i(sram_rdata), .*
  );
  hue_sram_bank #(.Words(Words), .Latency(Latency)) u_bank (
    .clk_i, .en_i(sram_en), .write_i(sram_write), .addr_i(sram_addr), .wdata_i(sram_wdata), .rdata_o(sram_rdata)
  );
endmodule
