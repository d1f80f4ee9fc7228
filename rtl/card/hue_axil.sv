// AXI-Lite slave in front of a bus of registers that answer in the same clock. Registers stand before and behind that clock.
//
// Flow: driver → hue_axil → hue_regs. One access at a time; a write needs its address and data together, and reads and
// writes take turns when both wait. A write of single bytes is answered with an error and never reaches the registers,
// as is an address that is no multiple of 4. A write for which the registers have no room waits and lets reads pass.
//
// Latency: an access reaches the registers one clock after it is taken; its answer is valid two clocks later. Throughput: an
// access a clock when the master takes answers at once; so many accesses of a direction are taken before it must: `Answers`.
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
  // The write that `s_axil_awaddr_i` and `s_axil_wdata_i` ask for has to wait; the registers have one more before it when
  // `reg_valid_o` is 1.
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

  // Taken and not answered yet: each has a place for its answer.
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

  // The access that is at the registers
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

  // Answers: which register it is takes most of a clock, so what it says is made an answer in the next one.
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
