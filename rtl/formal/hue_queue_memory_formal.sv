// Proof harness of hue_queue_memory with an external chip: every read is answered once, in order, with the value written last.
//
// Place: scripts/formal. Inputs are free except for the rules of the module's head. The model of the chip takes an access when
// `part_ready_i` is 1, and answers when `answer_i` is 1, each at least every second clock. `mark_i` picks any one read. The property
// is: its answer comes in its turn, with the value that its address had when it was requested, whichever read was marked. Words have
// two beats.
module hue_queue_memory_formal #(
  parameter int unsigned Words = 4,
  parameter bit Timed = 1'b0,   // check the time of the answer; 0: its contents
  localparam int unsigned Ports = 2,
  localparam int unsigned AddrBits = $clog2(Words)
) (
  input logic                clk_i,
  input logic                rst_ni,
  input logic                write_i,
  input logic [AddrBits-1:0] waddr_i,
  input logic                wdata_i,
  input logic                wlast_i,
  input logic                read_i,
  input logic                port_i,
  input logic [AddrBits-1:0] raddr_i,
  input logic                rinfo_i,
  input logic                part_ready_i,
  input logic                answer_i,
  input logic                mark_i
);
  logic             wroom, rroom, rdata, rinfo, part_valid, part_write, part_rvalid;
  logic [Ports-1:0] rvalid;
  logic [23:0]      part_addr;
  logic [1:0]       part_wdata, part_rdata;
  hue_queue_memory #(.External(1'b1), .Words(Words), .Bits(1), .InfoBits(1), .Ports(Ports), .PartBits(2)) u_dut (
    .clk_i, .rst_ni, .write_i, .waddr_i, .wdata_i, .wlast_i, .wroom_o(wroom),
    .read_i({read_i && port_i, read_i && !port_i}), .raddr_i, .rinfo_i, .rroom_o(rroom), .rvalid_o(rvalid), .rdata_o(rdata),
    .rinfo_o(rinfo), .part_valid_o(part_valid), .part_ready_i, .part_write_o(part_write), .part_addr_o(part_addr),
    .part_wdata_o(part_wdata), .part_rvalid_i(part_rvalid), .part_rdata_i(part_rdata)
  );

  // The model of the chip.
  localparam int unsigned Asked = 4;
  logic       asked_ready, asked_valid;
  logic [1:0] part_q [Words / 2];
  logic [2:0] asked_room;
  hue_fifo #(.Depth(Asked), .Bits(2)) u_asked (
    .clk_i, .rst_ni, .valid_i(part_valid && part_ready_i && !part_write), .ready_o(asked_ready),
    .data_i(part_q[part_addr[AddrBits-2:0]]), .valid_o(asked_valid), .ready_i(answer_i), .data_o(part_rdata),
    .room_o(asked_room)
  );
  assign part_rvalid = asked_valid && answer_i;
  always_ff @(posedge clk_i) if (part_valid && part_ready_i && part_write) part_q[part_addr[AddrBits-2:0]] <= part_wdata;

  // The values written, by beat, and whether a port may read further beats of its word.
  logic [Words-1:0]            shadow, shadow_q, there, there_q;
  logic                        begun_q, gathers_q, ready_q, answer_q, accesses, fetches, writes;
  logic [1:0]                  wroom_q, rroom_q;
  logic [AddrBits-2:0]         gather_q;
  logic [Ports-1:0]            open_q;
  logic [1:0][AddrBits-2:0]    opened_q;
  always_comb begin
    shadow = shadow_q;
    there = there_q;
    if (write_i) begin
      if (!waddr_i[0]) there[{waddr_i[AddrBits-1:1], 1'b1}] = 1'b0;
      shadow[waddr_i] = wdata_i;
      there[waddr_i] = 1'b1;
    end
  end

  // The marked read: answers before it, accesses and words in progress when it came, clocks for which it has waited.
  typedef logic [6:0] count_t;
  logic   answered, marks, marked_q, new_q, mport_q, mdata_q, minfo_q, mine;
  count_t inside_q, before_q, commands_q, bound_q, waited_q;
  assign answered = rvalid != '0;
  assign marks = read_i && mark_i && !marked_q;
  assign accesses = part_valid && part_ready_i;
  assign writes = write_i && (wlast_i || waddr_i[0]);
  assign fetches = read_i && !raddr_i[0];
  assign mine = marked_q && answered && before_q == '0;

  initial begun_q = 1'b0;
  always_ff @(posedge clk_i) begin
    begun_q <= 1'b1;
    shadow_q <= shadow;
    ready_q <= part_ready_i;
    answer_q <= answer_i;
    if (write_i) gather_q <= waddr_i[AddrBits-1:1];
    if (read_i) opened_q[port_i] <= raddr_i[AddrBits-1:1];
    if (!rst_ni) begin
      there_q <= '0;
      gathers_q <= 1'b0;
      open_q <= '0;
      wroom_q <= '0;
      rroom_q <= '0;
      inside_q <= '0;
      commands_q <= '0;
      marked_q <= 1'b0;
      new_q <= 1'b0;
    end else begin
      there_q <= there;
      wroom_q <= {wroom_q[0], wroom};
      rroom_q <= {rroom_q[0], rroom};
      if (write_i) gathers_q <= !writes;
      for (int unsigned p = 0; p < Ports; p++) begin
        if (read_i && port_i == 1'(p)) open_q[p] <= !raddr_i[0];
        else if (write_i && opened_q[p] == waddr_i[AddrBits-1:1]) open_q[p] <= 1'b0;
      end
      inside_q <= inside_q + count_t'(read_i) - count_t'(answered);
      commands_q <= commands_q + count_t'(writes) + count_t'(fetches) - count_t'(accesses);
      new_q <= marks;
      if (marks) begin
        marked_q <= 1'b1;
        mport_q <= port_i;
        mdata_q <= shadow[raddr_i];
        before_q <= inside_q - count_t'(answered);
        waited_q <= '0;
        // Two clocks for each access and each answer before it, one for each beat before it, and those of the registers in between.
        bound_q <= count_t'(2 * commands_q + 2 * (count_t'(Asked) - count_t'(asked_room)) + inside_q + 9);
      end else if (marked_q) begin
        waited_q <= waited_q + 1'b1;
        before_q <= before_q - count_t'(answered);
        if (new_q) minfo_q <= rinfo_i;
        if (mine) marked_q <= 1'b0;
      end
    end
  end

  always_comb begin
    if (!begun_q) assume (!rst_ni);
    if (begun_q) begin
      assume (rst_ni);
      assume (part_ready_i || ready_q);
      assume (answer_i || answer_q);
      // Room was reported two clocks before a write or a read.
      assume (!write_i || wroom_q[1]);
      assume (!read_i || rroom_q[1]);
      // The beats of a word are written in order. A port reads them in order too, and only beats that were written.
      assume (!write_i || (gathers_q ? waddr_i == {gather_q, 1'b1} : !waddr_i[0]));
      if (read_i) assume (there[raddr_i] && !(gathers_q && !(write_i && writes) && gather_q == raddr_i[AddrBits-1:1]));
      if (read_i) assume (!(write_i && !writes && waddr_i[AddrBits-1:1] == raddr_i[AddrBits-1:1]));
      if (read_i && raddr_i[0]) assume (open_q[port_i] && opened_q[port_i] == raddr_i[AddrBits-1:1]);
      if (read_i && raddr_i[0]) assume (!(write_i && waddr_i[AddrBits-1:1] == raddr_i[AddrBits-1:1]));

      assert (!answered || inside_q != '0);
      assert (rvalid != 2'b11);
      if (!Timed && mine) assert (rvalid[mport_q] && rdata == mdata_q && rinfo == minfo_q);
      if (Timed && marked_q) assert (waited_q <= bound_q);
      if (part_valid && part_ready_i && !part_write) assert (asked_ready);
    end
  end
endmodule
