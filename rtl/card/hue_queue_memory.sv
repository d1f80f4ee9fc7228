// Memory of the output queues' beats: on chip, or in an external part that answers slowly and is unavailable at times (DRAM).
//
// Place: inside hue_output_queues, which chooses the address of each beat. On chip it is one block RAM. A word of the external
// part is several beats, because reads and writes share its pins: a word to write is gathered as its beats come, and a word to
// read is fetched once, when its first beat is requested, and kept for the port's other beats of it.
//   write → gather ─┐                                    ┌→ words ─┐
//   read ── fetch ──┴→ commands, in order of arrival → part        ├→ answer, in order
//        └─ order: port, beat of the word, accompanying info ──────┘
// Order: commands reach the part in the order in which they came. So a read sees what was written in its clock or before, and
// nothing that is written later, and neither side can starve the other.
// Requirements: the beats of a word are written in order from its first one, a frame's last beat with `wlast_i`. A port reads a
// word from its first beat on, and the word is not written again before the port has read all that it needs of it. A read or a
// write comes two clocks after its room signal was read.
//
// Latency: one clock on chip. Outside, 4 clocks more than the part's when nothing waits. A command is sent when the commands
// before it (at most 2 * Commands) have been sent, at most `Fetched` words are in flight, and the part accepts it.
// Throughput: a beat a clock each way; outside, as long as the part has a free clock for each access that this takes.

module hue_queue_memory #(
  parameter bit External = 1'b0,
  parameter int unsigned Words = 1024,     // beats
  parameter int unsigned Bits = 64,        // of a beat
  parameter int unsigned InfoBits = 8,
  parameter int unsigned Ports = 8,
  parameter int unsigned PartBits = 256,   // of the part's word
  localparam int unsigned AddrBits = $clog2(Words)
) (
  input  logic                clk_i,
  input  logic                rst_ni,

  input  logic                write_i,
  input  logic [AddrBits-1:0] waddr_i,
  input  logic [Bits-1:0]     wdata_i,
  input  logic                wlast_i,
  output logic                wroom_o,

  input  logic [Ports-1:0]    read_i,        // at most one port
  input  logic [AddrBits-1:0] raddr_i,
  input  logic [InfoBits-1:0] rinfo_i,       // one clock after the read address
  output logic                rroom_o,
  output logic [Ports-1:0]    rvalid_o,
  output logic [Bits-1:0]     rdata_o,
  output logic [InfoBits-1:0] rinfo_o,

  output logic                part_valid_o,  // stays until the part accepts the command
  input  logic                part_ready_i,
  output logic                part_write_o,
  output logic [23:0]         part_addr_o,
  output logic [PartBits-1:0] part_wdata_o,
  input  logic                part_rvalid_i, // in the order of the reads
  input  logic [PartBits-1:0] part_rdata_i
);

  if (!External) begin : g_chip
    logic [Ports-1:0] at_q;
    logic             unused;
    hue_ram #(.Words(Words), .Bits(Bits)) u_words (
      .clk_i, .write_i, .waddr_i, .wdata_i, .read_i(1'b1), .raddr_i, .rdata_o
    );
    always_ff @(posedge clk_i) at_q <= rst_ni ? read_i : '0;
    assign rvalid_o = at_q;
    assign rinfo_o = rinfo_i;
    assign wroom_o = 1'b1;
    assign rroom_o = 1'b1;
    assign {part_valid_o, part_write_o, part_addr_o, part_wdata_o} = '0;
    assign unused = ^{wlast_i, part_ready_i, part_rvalid_i, part_rdata_i};
  end else begin : g_part
    localparam int unsigned Beats = PartBits / Bits;  // beats in a word
    localparam int unsigned Commands = 32;
    localparam int unsigned Order = 64;
    localparam int unsigned Fetched = 32;
    // Commands that may still come after a sender read the room: from the two clocks before, this one, the next, and the one after
    // that, in which a write or a read follows; plus one as reserve.
    localparam int unsigned Coming = 6;
    localparam int unsigned LowBits = $clog2(Beats);
    localparam int unsigned WordBits = AddrBits - LowBits;
    localparam int unsigned PortBits = $clog2(Ports);
    localparam int unsigned CommandBits = $clog2(Commands + 1);
    localparam int unsigned OrderBits = $clog2(Order + 1);
    localparam int unsigned FetchedBits = $clog2(Fetched + 1);
    if (Beats < 2 || (1 << LowBits) != Beats || Beats * Bits != PartBits || WordBits > 24) begin : g_word
      $fatal(1, "PartBits: expected a power of two of beats, at least 2, and 2^24 words at most");
    end

    typedef logic [WordBits-1:0] word_t;
    typedef logic [LowBits-1:0]  low_t;
    // The commands of one clock: the write is sent first.
    typedef struct packed {
      logic                       write;
      logic                       fetch;
      word_t                      waddr;
      logic [Beats-1:0][Bits-1:0] wdata;
      word_t                      raddr;
    } command_t;
    typedef struct packed {
      logic [PortBits-1:0] port;
      low_t                low;
      logic [InfoBits-1:0] info;
    } order_t;

    // ---- In
    logic                       push_q, reads_q;
    word_t                      waddr_q;
    logic [Beats-1:0][Bits-1:0] gather_q;
    logic [PortBits-1:0]        rport, rport_q;
    logic [AddrBits-1:0]        raddr_q;
    logic                       fetch;
    always_comb begin
      rport = '0;
      for (int unsigned p = 0; p < Ports; p++) if (read_i[p]) rport |= PortBits'(p);
    end
    assign fetch = reads_q && raddr_q[LowBits-1:0] == '0;
    always_ff @(posedge clk_i) begin
      if (write_i) gather_q[waddr_i[LowBits-1:0]] <= wdata_i;
      waddr_q <= waddr_i[AddrBits-1:LowBits];
      rport_q <= rport;
      raddr_q <= raddr_i;
      if (!rst_ni) begin
        push_q <= 1'b0;
        reads_q <= 1'b0;
      end else begin
        push_q <= write_i && (wlast_i || waddr_i[LowBits-1:0] == '1);
        reads_q <= read_i != '0;
      end
    end

    command_t               command_in, command;
    logic                   command_new, command_ready, command_valid, command_take;
    logic [CommandBits-1:0] command_room;
`ifdef HUE_PLANT_QUEUES_OVERTAKE
    // Reads overtake writes; for scripts/rtl-test: the bench must find this.
    hue_delay #(.Clocks(48), .Bits($bits(word_t) + PartBits + 1)) u_late (
      .clk_i, .rst_ni, .en_i(1'b1), .data_i({push_q, waddr_q, gather_q}),
      .data_o({command_in.write, command_in.waddr, command_in.wdata})
    );
`else
    assign command_in.write = push_q;
    assign command_in.waddr = waddr_q;
    assign command_in.wdata = gather_q;
`endif
    assign command_in.fetch = fetch;
    assign command_in.raddr = raddr_q[AddrBits-1:LowBits];
    assign command_new = command_in.write || command_in.fetch;
    hue_fifo #(.Depth(Commands), .Bits($bits(command_t))) u_commands (
      .clk_i, .rst_ni, .valid_i(command_new), .ready_o(command_ready), .data_i(command_in),
      .valid_o(command_valid), .ready_i(command_take), .data_o(command), .room_o(command_room)
    );

    order_t               order_in, order;
    logic                 order_ready, order_valid, order_take;
    logic [OrderBits-1:0] order_room;
    assign order_in.port = rport_q;
    assign order_in.low = raddr_q[LowBits-1:0];
    assign order_in.info = rinfo_i;
    hue_fifo #(.Depth(Order), .Bits($bits(order_t))) u_order (
      .clk_i, .rst_ni, .valid_i(reads_q), .ready_o(order_ready), .data_i(order_in),
      .valid_o(order_valid), .ready_i(order_take), .data_o(order), .room_o(order_room)
    );
    always_ff @(posedge clk_i) begin
      wroom_o <= rst_ni && command_room >= CommandBits'(Coming);
      rroom_o <= rst_ni && command_room >= CommandBits'(Coming) && order_room >= OrderBits'(Coming);
    end

    // ---- To the part
    word_t                  part_word;
    logic                   written_q, go, fetches, word_take;
    logic [FetchedBits-1:0] fetched_q;   // words that are requested and not taken by their ports yet
    assign part_write_o = command.write && !written_q;
    assign part_valid_o = command_valid && (part_write_o || fetched_q != FetchedBits'(Fetched));
    assign part_word = part_write_o ? command.waddr : command.raddr;
    assign part_addr_o = 24'(part_word);
    assign part_wdata_o = command.wdata;
`ifdef HUE_PLANT_QUEUES_REFRESH
    assign go = part_valid_o && (part_ready_i || part_write_o);  // for scripts/rtl-test: the bench must find this
`else
    assign go = part_valid_o && part_ready_i;
`endif
    assign fetches = go && !part_write_o;
    assign command_take = go && !(part_write_o && command.fetch);
    always_ff @(posedge clk_i) begin
      if (!rst_ni) begin
        written_q <= 1'b0;
        fetched_q <= '0;
      end else begin
        if (go) written_q <= part_write_o && command.fetch;
        fetched_q <= fetched_q + FetchedBits'(fetches) - FetchedBits'(word_take);
      end
    end

    // ---- Out: a port's word arrives with the first of its beats and is kept for the others.
    logic                                  words_ready, word_valid, first;
    logic [Beats-1:0][Bits-1:0]            word, kept;
    logic [Ports-1:0][Beats-1:0][Bits-1:0] kept_q;
    logic [FetchedBits-1:0]                unused_words_room;
    hue_fifo #(.Depth(Fetched), .Bits(PartBits)) u_fetched (
      .clk_i, .rst_ni, .valid_i(part_rvalid_i), .ready_o(words_ready), .data_i(part_rdata_i),
      .valid_o(word_valid), .ready_i(word_take), .data_o(word), .room_o(unused_words_room)
    );
    assign first = order.low == '0;
    assign order_take = order_valid && (word_valid || !first);
    assign word_take = order_valid && word_valid && first;
    assign kept = first ? word : kept_q[order.port];
    always_ff @(posedge clk_i) begin
      if (word_take) kept_q[order.port] <= word;
      rdata_o <= kept[order.low];
      rinfo_o <= order.info;
      for (int unsigned p = 0; p < Ports; p++) rvalid_o[p] <= rst_ni && order_take && order.port == PortBits'(p);
    end

`ifndef SYNTHESIS
    a_commands_have_room: assert property (@(posedge clk_i) disable iff (!rst_ni) command_new |-> command_ready);
    a_order_has_room: assert property (@(posedge clk_i) disable iff (!rst_ni) reads_q |-> order_ready);
    a_words_have_room: assert property (@(posedge clk_i) disable iff (!rst_ni) part_rvalid_i |-> words_ready);
    a_words_are_asked_for: assert property (@(posedge clk_i) disable iff (!rst_ni) part_rvalid_i |-> fetched_q != '0);
    a_one_port: assert property (@(posedge clk_i) disable iff (!rst_ni) $onehot0(read_i));
    a_stable: assert property (@(posedge clk_i) disable iff (!rst_ni)
      (part_valid_o && !part_ready_i) |=> (part_valid_o && $stable(part_write_o) && $stable(part_addr_o)));
    // With a part that answers within 128 clocks and is available, a command is sent soon, whatever else is requested.
    localparam int unsigned WaitMax = 128 + Order + 8;
    int unsigned waited_q;   // clocks in which a command waited although the part was ready
    always_ff @(posedge clk_i) waited_q <= !rst_ni || go || !command_valid ? 0 : waited_q + 32'(part_ready_i);
    a_wait: assert property (@(posedge clk_i) disable iff (!rst_ni) waited_q <= WaitMax);
`endif
  end

endmodule
