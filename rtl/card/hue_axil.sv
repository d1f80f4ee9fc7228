// AXI-Lite slave for registers that answer in the clock of the access, with a pipeline stage before and after that clock.
//
// Flow: driver → hue_axil → hue_regs. Accepts one access at a time; a write needs its address and data together, and reads
// and writes alternate when both wait. A write of single bytes, or an access to an address that is not a multiple of 4, is
// answered with an error and never reaches the registers. A write for which the registers have no room waits; reads pass it.
//
// Latency: an access reaches the registers one clock after it is accepted; its answer is valid two clocks later. Throughput:
// one access a clock if the master takes answers at once; up to `Answers` of a direction are accepted before it has to.
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

  // The registers: `reg_valid_o` is 1 for one clock per access, and the answer comes in that clock. `reg_bad_o` reports an
  // access that the slave itself refused.
  output logic        reg_valid_o,
  output logic        reg_write_o,
  output logic [23:0] reg_addr_o,
  output logic [31:0] reg_wdata_o,
  input  logic [31:0] reg_rdata_i,
  input  logic        reg_error_i,
  output logic        reg_bad_o,
  // The write that `s_axil_awaddr_i` and `s_axil_wdata_i` request must wait. While `reg_valid_o` is 1, the registers have
  // another access before it.
  input  logic        write_wait_i
);

  localparam logic [1:0] RespOkay = 2'b00;
  localparam logic [1:0] RespSlaveError = 2'b10;

  localparam int unsigned Answers = 4;
  localparam int unsigned CountBits = $clog2(Answers + 1);

  typedef struct packed {
    logic [1:0]  resp;
    logic [31:0] data;
  } answer_t;

  // Accepted and not answered yet: a slot is reserved for each answer.
  logic [CountBits-1:0] writes_q, reads_q;
  logic                 can_write, can_read, write, read, bad, turn_read_q, ends_write, ends_read;
  logic [23:0]          addr;

  assign can_write = s_axil_awvalid_i && s_axil_wvalid_i && writes_q != CountBits'(Answers) && !write_wait_i;
  assign can_read = s_axil_arvalid_i && reads_q != CountBits'(Answers);
  assign write = can_write && !(can_read && turn_read_q);
  assign read = can_read && !write;
  assign addr = write ? s_axil_awaddr_i : s_axil_araddr_i;
  assign bad = addr[1:0] != 2'b00 || (write && s_axil_wstrb_i != 4'hf);

  assign s_axil_awready_o = write;
  assign s_axil_wready_o = write;
  assign s_axil_arready_o = read;
  assign ends_write = s_axil_bvalid_o && s_axil_bready_i;
  assign ends_read = s_axil_rvalid_o && s_axil_rready_i;

  // The access at the registers
  logic taken_q, bad_q;
  assign reg_valid_o = taken_q && !bad_q;
  assign reg_bad_o = taken_q && bad_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      taken_q <= 1'b0;
      turn_read_q <= 1'b0;
      writes_q <= '0;
      reads_q <= '0;
    end else begin
      taken_q <= write || read;
      if (write || read) turn_read_q <= write;
      writes_q <= writes_q + CountBits'(write) - CountBits'(ends_write);
      reads_q <= reads_q + CountBits'(read) - CountBits'(ends_read);
    end
  end
  always_ff @(posedge clk_i) begin
    bad_q <= bad;
    reg_write_o <= write;
    reg_addr_o <= addr;
    reg_wdata_o <= s_axil_wdata_i;
  end

  // Answers: decoding the register address takes most of a clock, so the answer is formed in the next one.
  answer_t answer, read_answer;
  logic write_room, read_room, failed_q, wrote_q, asked_q;
  logic [31:0] rdata_q;
  logic [CountBits-1:0] unused_write_room, unused_read_room;
  always_ff @(posedge clk_i) begin
    rdata_q <= reg_rdata_i;
    failed_q <= bad_q || reg_error_i;
    if (!rst_ni) {wrote_q, asked_q} <= '0;
    else {wrote_q, asked_q} <= {taken_q && reg_write_o, taken_q && !reg_write_o};
  end
  assign answer = failed_q ? '{resp: RespSlaveError, data: '0} : '{resp: RespOkay, data: rdata_q};
  hue_fifo #(.Depth(Answers), .Bits(2)) u_writes (
    .clk_i, .rst_ni, .valid_i(wrote_q), .ready_o(write_room), .data_i(answer.resp),
    .valid_o(s_axil_bvalid_o), .ready_i(s_axil_bready_i), .data_o(s_axil_bresp_o), .room_o(unused_write_room)
  );
  hue_fifo #(.Depth(Answers), .Bits($bits(answer_t))) u_reads (
    .clk_i, .rst_ni, .valid_i(asked_q), .ready_o(read_room), .data_i(answer),
    .valid_o(s_axil_rvalid_o), .ready_i(s_axil_rready_i), .data_o(read_answer), .room_o(unused_read_room)
  );
  assign s_axil_rresp_o = read_answer.resp;
  assign s_axil_rdata_o = read_answer.data;

`ifdef SYNTHESIS
  logic unused_ready;
  assign unused_ready = write_room && read_room;
`else
  a_write_answer_stays: assert property (@(posedge clk_i) disable iff (!rst_ni)
    (s_axil_bvalid_o && !s_axil_bready_i) |=> (s_axil_bvalid_o && $stable(s_axil_bresp_o)));
  a_read_answer_stays: assert property (@(posedge clk_i) disable iff (!rst_ni)
    (s_axil_rvalid_o && !s_axil_rready_i) |=> (s_axil_rvalid_o && $stable(s_axil_rdata_o) && $stable(s_axil_rresp_o)));
  a_answer: assert property (@(posedge clk_i) disable iff (!rst_ni)
    $past(s_axil_awready_o && rst_ni, 3) |-> s_axil_bvalid_o);
  a_room: assert property (@(posedge clk_i) disable iff (!rst_ni)
    (!wrote_q || write_room) && (!asked_q || read_room));
  a_one_at_a_time: assert property (@(posedge clk_i) disable iff (!rst_ni)
    !(s_axil_awready_o && s_axil_arready_o));
`endif

endmodule
