// Bytes of each network, received and sent: table BYTES, row net * 2 + (0 received, 1 sent).
//
// Place: at the end of hue_stages. A packet may count as both in one clock, so each has its own memory.
// Latency and throughput: those of hue_counter_table.
module hue_byte_counters
  import hue_pkg::*;
#(
    parameter int unsigned Nets = 16,
    localparam int unsigned NetBits = $clog2(Nets)
) (
    input  logic               clk_i,
    input  logic               rst_ni,
    input  tbl_req_t           tbl_req_i,
    output tbl_rsp_t           tbl_rsp_o,
    output logic               ready_o,
    input  logic               received_i,  // 1 only if `ready_o` was 1 two clocks before; so is sent_i
    input  logic               sent_i,
    input  logic [NetBits-1:0] net_i,
    input  logic [13:0]        len_i
);
  // Each memory sees its own half of the rows.
  tbl_req_t [1:0] req;
  tbl_rsp_t [1:0] rsp;
  logic [1:0] ready, valid;
  assign valid = {sent_i, received_i};
  for (genvar i = 0; i < 2; i++) begin : gen_way
    always_comb begin
      req[i]       = tbl_req_i;
      req[i].index = tbl_req_i.index >> 1;
      req[i].valid = tbl_req_i.valid && tbl_req_i.index[0] == 1'(i);
    end
    hue_counter_table #(.Id(hue_regs_pkg::TABLE_BYTES), .Rows(Nets)) u_counters (
      .clk_i, .rst_ni, .tbl_req_i(req[i]), .tbl_rsp_o(rsp[i]), .ready_o(ready[i]),
      .valid_i(valid[i]), .addr_i(net_i), .add_i(16'(len_i))
    );
  end
  assign tbl_rsp_o = rsp[0] | rsp[1];
  assign ready_o   = ready == '1;
endmodule
