// hue_dir with its two banks and their ports, for the bench.
module hue_dir_sram #(
    parameter int unsigned CamRows      = 32,
    parameter int unsigned InFlight     = 32,
    parameter int unsigned Bank1Latency = 4,
    parameter int unsigned Bank2Latency = 4,
    localparam int unsigned TagBits = 16,
    localparam int unsigned RowBits = $clog2(CamRows)
) (
    input  logic               clk_i,
    input  logic               rst_ni,
    input  logic               valid_i,
    output logic               ready_o,
    input  logic [11:0]        vid_i,
    input  logic [31:0]        key_i,
    input  logic [TagBits-1:0] tag_i,
    output logic               valid_o,
    output logic [15:0]        hop_o,
    output logic               error_o,
    output logic [TagBits-1:0] tag_o,
    input  logic               row_write_i,
    input  logic [RowBits-1:0] row_i,
    input  logic               row_used_i,
    input  logic [11:0]        row_vid_i,
    input  logic [18:0]        row_prefix_i,
    input  logic [4:0]         row_length_i,
    input  logic [18:0]        row_index_i,
    input  logic               drain_i,
    output logic               drained_o,
    input  logic [1:0]         host_valid_i,  // one bit for each bank
    output logic [1:0]         host_ready_o,
    input  logic               host_write_i,
    input  logic [18:0]        host_addr_i,
    input  logic [34:0]        host_data_i,
    output logic [1:0]         host_rsp_valid_o,
    output logic [1:0]         bank_error_o
);
  logic [1:0] valid, ready, rsp_valid, rsp_error, sram_en, sram_write;
  logic [1:0][18:0] addr, sram_addr;
  logic [1:0][35:0] rsp_data, sram_wdata, sram_rdata;
  logic [1:0] unused_read;
  hue_dir #(.CamRows(CamRows), .InFlight(InFlight), .TagBits(TagBits)) u_dir (
    .ask_i(1'b1), .read_o(unused_read),
    .bank1_valid_o(valid[0]), .bank1_ready_i(ready[0]), .bank1_addr_o(addr[0]), .bank1_rsp_valid_i(rsp_valid[0]),
    .bank1_rsp_data_i(rsp_data[0][34:0]), .bank1_rsp_error_i(rsp_error[0]),
    .bank2_valid_o(valid[1]), .bank2_ready_i(ready[1]), .bank2_addr_o(addr[1]), .bank2_rsp_valid_i(rsp_valid[1]),
    .bank2_rsp_data_i(rsp_data[1][34:0]), .bank2_rsp_error_i(rsp_error[1]), .*
  );
  for (genvar i = 0; i < 2; i++) begin : g_bank
    localparam int unsigned Latency = i == 0 ? Bank1Latency : Bank2Latency;
    logic unused_tag, unused_error;
    logic [34:0] unused_data;
    logic [18:0] unused_addr;
    logic [31:0] unused_count;
    hue_sram_port #(.Latency(Latency), .TagBits(1)) u_port (
      .clk_i, .rst_ni,
      .rd_valid_i(valid[i]), .rd_ready_o(ready[i]), .rd_addr_i(addr[i]), .rd_tag_i(1'b0),
      .rsp_valid_o(rsp_valid[i]), .rsp_data_o(rsp_data[i]), .rsp_tag_o(unused_tag), .rsp_error_o(rsp_error[i]),
      .host_valid_i(host_valid_i[i]), .host_ready_o(host_ready_o[i]), .host_write_i, .host_addr_i, .host_data_i,
      .host_rsp_valid_o(host_rsp_valid_o[i]), .host_rsp_data_o(unused_data), .host_rsp_error_o(unused_error),
      .error_clear_i(1'b0), .error_valid_o(bank_error_o[i]), .error_addr_o(unused_addr), .error_count_o(unused_count),
      .sram_en_o(sram_en[i]), .sram_write_o(sram_write[i]), .sram_addr_o(sram_addr[i]), .sram_wdata_o(sram_wdata[i]),
      .sram_rdata_i(sram_rdata[i])
    );
    hue_sram_bank #(.Latency(Latency)) u_bank (
      .clk_i, .en_i(sram_en[i]), .write_i(sram_write[i]), .addr_i(sram_addr[i]), .wdata_i(sram_wdata[i]),
      .rdata_o(sram_rdata[i])
    );
  end
endmodule
