// AXI-Lite slave in front of a bus of registers that answer in the same clock.
//
// Flow: driver → hue_axil → hue_regs. One access at a time; a write needs its address and data together, and reads and
// writes take turns when both wait. A write of single bytes is answered with an error and never reaches the registers,
// as is an address that is no multiple of 4. A write for which the registers have no room waits and lets reads pass.
//
// Latency: an access reaches the registers in the clock in which it is taken; its answer is valid in the next one.
// Throughput: an access a clock when the master takes answers at once.
// Source: AMBA AXI and ACE protocol specification, B1.

module hue_axil (
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

  // The registers: `reg_valid_o` for one clock an access, the answer in that same clock. `reg_bad_o` is an access that
  // the slave refused by itself.
  output logic        reg_valid_o,
  output logic        reg_write_o,
  output logic [23:0] reg_addr_o,
  output logic [31:0] reg_wdata_o,
  input  logic [31:0] reg_rdata_i,
  input  logic        reg_error_i,
  output logic        reg_bad_o,
  // The write that `s_axil_awaddr_i` and `s_axil_wdata_i` ask for has to wait.
  input  logic        write_wait_i
);

  localparam logic [1:0] RespOkay = 2'b00;
  localparam logic [1:0] RespSlaveError = 2'b10;

  logic        bvalid_q, bvalid_d, rvalid_q, rvalid_d, turn_read_q, turn_read_d;
  logic [1:0]  bresp_q, bresp_d, rresp_q, rresp_d;
  logic [31:0] rdata_q, rdata_d;
  logic        can_write, can_read, write, read, bad;
  logic [23:0] addr;

  assign can_write = s_axil_awvalid_i && s_axil_wvalid_i && (!bvalid_q || s_axil_bready_i) && !write_wait_i;
  assign can_read = s_axil_arvalid_i && (!rvalid_q || s_axil_rready_i);
  assign write = can_write && !(can_read && turn_read_q);
  assign read = can_read && !write;
  assign addr = write ? s_axil_awaddr_i : s_axil_araddr_i;
  assign bad = addr[1:0] != 2'b00 || (write && s_axil_wstrb_i != 4'hf);

  assign reg_valid_o = (write || read) && !bad;
  assign reg_write_o = write;
  assign reg_addr_o = addr;
  assign reg_wdata_o = s_axil_wdata_i;
  assign reg_bad_o = (write || read) && bad;

  assign s_axil_awready_o = write;
  assign s_axil_wready_o = write;
  assign s_axil_arready_o = read;
  assign s_axil_bvalid_o = bvalid_q;
  assign s_axil_bresp_o = bresp_q;
  assign s_axil_rvalid_o = rvalid_q;
  assign s_axil_rdata_o = rdata_q;
  assign s_axil_rresp_o = rresp_q;

  always_comb begin
    bvalid_d = bvalid_q && !s_axil_bready_i;
    rvalid_d = rvalid_q && !s_axil_rready_i;
    bresp_d = bresp_q;
    rresp_d = rresp_q;
    rdata_d = rdata_q;
    turn_read_d = turn_read_q;
    if (write) begin
      bvalid_d = 1'b1;
      bresp_d = bad || reg_error_i ? RespSlaveError : RespOkay;
      turn_read_d = 1'b1;
    end
    if (read) begin
      rvalid_d = 1'b1;
      rresp_d = bad || reg_error_i ? RespSlaveError : RespOkay;
      rdata_d = bad || reg_error_i ? '0 : reg_rdata_i;
      turn_read_d = 1'b0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      bvalid_q <= 1'b0;
      rvalid_q <= 1'b0;
      turn_read_q <= 1'b0;
      bresp_q <= RespOkay;
      rresp_q <= RespOkay;
      rdata_q <= '0;
    end else begin
      bvalid_q <= bvalid_d;
      rvalid_q <= rvalid_d;
      turn_read_q <= turn_read_d;
      bresp_q <= bresp_d;
      rresp_q <= rresp_d;
      rdata_q <= rdata_d;
    end
  end

`ifndef SYNTHESIS
  a_write_answer_stays: assert property (@(posedge clk_i) disable iff (!rst_ni)
    (s_axil_bvalid_o && !s_axil_bready_i) |=> (s_axil_bvalid_o && $stable(s_axil_bresp_o)));
  a_read_answer_stays: assert property (@(posedge clk_i) disable iff (!rst_ni)
    (s_axil_rvalid_o && !s_axil_rready_i) |=> (s_axil_rvalid_o && $stable(s_axil_rdata_o) && $stable(s_axil_rresp_o)));
  a_answer_next_clock: assert property (@(posedge clk_i) disable iff (!rst_ni)
    s_axil_awready_o |=> s_axil_bvalid_o);
  a_one_at_a_time: assert property (@(posedge clk_i) disable iff (!rst_ni)
    !(s_axil_awready_o && s_axil_arready_o));
`endif

endmodule
