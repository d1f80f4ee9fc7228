// The card's data path: from an input port to an output port.
//
// MAC ports ────────────────────────┐             ┌─ flood ─┐                                                            ┌─ MAC ports
// CPU queues ─ cpu_join ─ cpu_strip ┴ input queues ┴ arbiter ┴ gather ─ stages ─ copies ─ admit ─ scatter ─ cpu_insert ─ output queues ─ CPU queues
//                                                       │         └───── packet buffer ─────┘        │
//                                                       └── loop_join ─ input queue ─ tunnel ─ loop ──┘ (images with tunnels)
//
// Streams are AXI-Stream. No beat is empty, with one exception: a frame of no bytes is one beat in which no byte is kept. The
// first byte of a frame is the lowest byte of its first beat. Time and tag of a frame are sampled with its first beat; the tag
// leaves with everything that the frame becomes. Registers and tables: spec/regs.
//
// Latency: that of the parts, plus a clock or two between them. From the first beat in to the first beat out, a lone frame of
// 64 bytes takes 87, 112 and 109 clocks in the images tcam1, default and wide (`hueplane lab run` and `make bench ARGS=card`
// measure it).
// Throughput: a beat a clock through gather and scatter, so a frame of 64 bytes every 8, 2 or 1 clocks on a bus of 64, 256 or
// 512 bits.

module hue_card
  import hue_pkg::*;
#(
  parameter int unsigned ClockKhz = 125000,
  parameter int unsigned BusBytes = 32,
  parameter int unsigned Kinds = 2,
  parameter int unsigned Layout = 2,
  parameter int unsigned Planes = 1,
  parameter int unsigned Nets = 64,
  parameter int unsigned SelectRows = 256,
  parameter int unsigned MacRows = 0,
  parameter int unsigned StationRows = 0,
  parameter int unsigned PatternRows = 0,
  parameter int unsigned TunnelRows = 0,
  parameter int unsigned AttachRows = 256,
  parameter int unsigned RouteRows = 0,
  parameter int unsigned LocalRows = 0,
  parameter int unsigned HopRows = 4096,
  parameter int unsigned Level0Words = 4096,
  parameter int unsigned Level1Words = 4096,
  parameter int unsigned Level2Words = 4096,
  parameter int unsigned Level3Words = 4096,
  // The two banks of layouts sram and dir: words of the two together, clocks from their enable to their data, whether they are
  // on-chip memory instead of external parts, and whether they are 0 after configuration, as the twin's are.
  parameter int unsigned SramWords = 0,
  parameter int unsigned SramLatency = 4,
  parameter int unsigned SramOnChip = 0,
  parameter bit          SramZero = 1'b1,
  parameter int unsigned CamRows = 0,
  // Slots of groups of next hops: a power of two, or 0 for none. They need layout sram and kind ipv6.
  parameter int unsigned SlotRows = 0,
  // Routes by source: ranges of addresses, pairs of ranges, and policies; powers of two, or 0 for none. They need layout sram and kind ipv6.
  parameter int unsigned RangeRows = 0,
  parameter int unsigned PairRows = 0,
  parameter int unsigned RuleRows = 0,
  parameter logic [127:0] ImageName = '0,
  // Capacities: bytes and frames of one input queue, bytes of group frames that wait to be copied, of frames in the loop (with
  // tunnels), of the packet buffer, and of all output queues together.
  parameter int unsigned InputBytes = 16384,
  parameter int unsigned InputFrames = InputBytes / 64,
  parameter int unsigned FloodBytes = 16384,
  parameter int unsigned LoopBytes = 65536,
  parameter int unsigned BufferBytes = 32768,
  parameter int unsigned OutputBytes = 131072,
  // Whether the frames of the output queues are in external memory, in cells of 256 bytes instead of 64.
  parameter int unsigned OutputExternal = 0
) (
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

  input  logic [Ports-1:0]                 s_tvalid_i,
  output logic [Ports-1:0]                 s_tready_o,
  input  logic [Ports-1:0][8*BusBytes-1:0] s_tdata_i,
  input  logic [Ports-1:0][BusBytes-1:0]   s_tkeep_i,
  input  logic [Ports-1:0]                 s_tlast_i,
  input  logic [Ports-1:0][63:0]           s_ttime_i,
  input  logic [Ports-1:0][31:0]           s_ttag_i,

  output logic [Ports-1:0]                 m_tvalid_o,
  input  logic [Ports-1:0]                 m_tready_i,
  output logic [Ports-1:0][8*BusBytes-1:0] m_tdata_o,
  output logic [Ports-1:0][BusBytes-1:0]   m_tkeep_o,
  output logic [Ports-1:0]                 m_tlast_o,
  output logic [Ports-1:0][13:0]           m_tlen_o,   // length of the frame, with its CPU header; stable over the frame
  output logic [Ports-1:0][31:0]           m_ttag_o,   // valid with the first beat

  // The pins of two external memories of 36-bit words, for layouts sram and dir without SramOnChip.
  output logic [1:0]                       sram_en_o,
  output logic [1:0]                       sram_write_o,
  output logic [1:0][18:0]                 sram_addr_o,
  output logic [1:0][35:0]                 sram_wdata_o,
  input  logic [1:0][35:0]                 sram_rdata_i,

  // The pins of the output queues' external memory, for OutputExternal. A word is written or requested in a clock in which valid
  // and ready are 1. Read data comes in the order of the requests, after any number of clocks.
  output logic                             queue_valid_o,
  input  logic                             queue_ready_i,
  output logic                             queue_write_o,
  output logic [23:0]                      queue_addr_o,
  output logic [8*QueueWordBytes-1:0]      queue_wdata_o,
  input  logic                             queue_rvalid_i,
  input  logic [8*QueueWordBytes-1:0]      queue_rdata_i,

  output logic        ingress_idle_o,   // no frame before the stages
  output logic        idle_o,           // no frame inside
  output logic        moves_o,          // a frame left the stages one clock ago
  output logic        irq_o
);

  localparam int unsigned ByteBits = $clog2(BusBytes + 1);
  localparam int unsigned DataBits = 8 * BusBytes;
  localparam int unsigned BufferWords = BufferBytes / BusBytes;
  localparam int unsigned FilledBits = $clog2(BufferWords) + 1;
  localparam int unsigned TagDepth = 256;
  // From BacklogBeats in the packet buffer on, low-priority frames wait. Frames that pass one after the other leave fewer beats
  // there. From LateBeats on no frame that grows by a CPU header is admitted; in between, one frame of each network can grow.
  localparam int unsigned BacklogBeats = 128;
  localparam int unsigned LateBeats = BacklogBeats + Nets * ((CpuHeaderBytes + BusBytes - 1) / BusBytes);
  localparam int unsigned CellBytes = OutputExternal != 0 ? 256 : 64;
  localparam int unsigned QueueBits = $clog2(Ports) + (Nets > 1 ? $clog2(Nets) : 1);
  localparam int unsigned CountBits = $clog2(OutputBytes / CellBytes) + 1;

  // The loop: what it hands to the arbiter, and the queues that may offer frames meanwhile.
  logic                       j_valid, j_ready, j_last, loop_idle, loop_error, loop_waits;
  logic [DataBits-1:0]        j_data;
  logic [2:0]                 j_port;
  hue_arrival_t               j_arrival;
  logic [InputQueues-1:0]     q_offers;

  // Registers
  tbl_req_t    tbl_req;
  logic [15:0] loop_came, loop_left;
  tbl_rsp_t    tbl_rsp, stages_rsp, flood_rsp, queues_rsp, counters_rsp, loop_rsp;
  logic [7:0]  out_hold_net;
  logic [NetsMax-1:0] out_waits;
  logic        offline, pause, gated_to_cpu, hold, out_hold, accepted, retired, stages_error, flood_error, queue_drop;
  logic [31:0] gates;
  sram_req_t   sram_req;
  sram_state_t sram_state;
  logic        sram_fault_clear;
  logic [1:0][35:0] sram_rdata;
  if (SramOnChip != 0) begin : g_banks
    localparam int unsigned BankWords = SramWords / 2;
    logic unused_pins;
    assign unused_pins = ^{sram_rdata_i, sram_req.addr};
    assign {sram_en_o, sram_write_o, sram_addr_o, sram_wdata_o} = '0;
    for (genvar bank = 0; bank < 2; bank++) begin : g_bank
      hue_sram_bank #(.Words(BankWords), .Latency(SramLatency)) u_bank (
        .clk_i, .en_i(sram_req.en[bank]), .write_i(sram_req.write[bank]),
        .addr_i(sram_req.addr[bank][$clog2(BankWords)-1:0]), .wdata_i(sram_req.wdata[bank]), .rdata_o(sram_rdata[bank])
      );
    end
  end else begin : g_pins
    assign sram_en_o    = sram_req.en;
    assign sram_write_o = sram_req.write;
    assign sram_addr_o  = sram_req.addr;
    assign sram_wdata_o = sram_req.wdata;
    assign sram_rdata   = sram_rdata_i;
  end
  queue_req_t  queue_req;
  assign queue_valid_o = queue_req.valid;
  assign queue_write_o = queue_req.write;
  assign queue_addr_o  = queue_req.addr;
  assign queue_wdata_o = queue_req.wdata;

  hue_regs #(
    .ClockKhz(ClockKhz), .BusBytes(BusBytes), .Kinds(Kinds), .Layout(Layout), .Planes(Planes), .Nets(Nets),
    .SelectRows(SelectRows), .MacRows(MacRows), .StationRows(StationRows), .PatternRows(PatternRows), .TunnelRows(TunnelRows), .AttachRows(AttachRows), .RouteRows(RouteRows),
    .LocalRows(LocalRows), .HopRows(HopRows),
    .Level0Words(Level0Words), .Level1Words(Level1Words), .Level2Words(Level2Words), .Level3Words(Level3Words),
    .SramWords(SramWords), .CamRows(CamRows), .SlotRows(SlotRows), .RangeRows(RangeRows), .PairRows(PairRows), .RuleRows(RuleRows),
    .OutputBytes(OutputBytes), .ImageName(ImageName)
  ) u_regs (
    .clk_i, .rst_ni,
    .s_axil_awvalid_i, .s_axil_awready_o, .s_axil_awaddr_i,
    .s_axil_wvalid_i, .s_axil_wready_o, .s_axil_wdata_i, .s_axil_wstrb_i,
    .s_axil_bvalid_o, .s_axil_bready_i, .s_axil_bresp_o,
    .s_axil_arvalid_i, .s_axil_arready_o, .s_axil_araddr_i,
    .s_axil_rvalid_o, .s_axil_rready_i, .s_axil_rdata_o, .s_axil_rresp_o,
    .tbl_req_o(tbl_req), .tbl_rsp_i(tbl_rsp),
    .offline_o(offline), .pause_o(pause), .gates_o(gates), .gated_to_cpu_o(gated_to_cpu), .hold_o(hold),
    .out_hold_o(out_hold), .out_hold_net_o(out_hold_net), .out_waits_i(out_waits),
    .accepted_i(accepted), .retired_i(retired), .loop_came_i(loop_came), .loop_left_i(loop_left), .ingress_idle_i(ingress_idle_o), .idle_i(idle_o),
    .memory_error_i(stages_error || flood_error || loop_error), .sram_state_i(sram_state), .sram_fault_clear_o(sram_fault_clear),
    .queue_drop_i(queue_drop), .irq_o
  );
  assign tbl_rsp = stages_rsp | flood_rsp | queues_rsp | counters_rsp | loop_rsp;

  // Frames are accepted once the counters are cleared.
  logic counters_ready, counters_ready_soon, open_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) open_q <= 1'b0;
    else if (counters_ready) open_q <= 1'b1;
  end

  // Bytes of each beat: the kept bytes are the lowest ones.
  logic [Ports-1:0][ByteBits-1:0] s_bytes;
  always_comb begin
    s_bytes = '0;
    for (int unsigned p = 0; p < Ports; p++) begin
      for (int unsigned b = 0; b < BusBytes; b++) if (s_tkeep_i[p][b]) s_bytes[p] = ByteBits'(b + 1);
    end
  end

  // The CPU queues share an input queue. It stalls them when it has no room, so the host's rings wait and no frame is dropped.
  logic                strip_valid, strip_ready, strip_last, join_valid, join_ready, join_last, join_idle, strip_idle;
  logic [DataBits-1:0] strip_data, join_data;
  logic [ByteBits-1:0] strip_bytes, join_bytes;
  logic [63:0]         join_time;
  logic [31:0]         join_tag;
  logic [1:0]          join_port, strip_port;
  logic [CpuPorts-1:0] cpu_ready;
  hue_arrival_t        strip_arrival;

  hue_cpu_join #(.BusBytes(BusBytes)) u_join (
    .clk_i, .rst_ni,
    .s_valid_i(open_q ? s_tvalid_i[Ports-1:MacPorts] : '0), .s_ready_o(cpu_ready), .s_data_i(s_tdata_i[Ports-1:MacPorts]),
    .s_last_i(s_tlast_i[Ports-1:MacPorts]), .s_bytes_i(s_bytes[Ports-1:MacPorts]), .s_time_i(s_ttime_i[Ports-1:MacPorts]),
    .s_tag_i(s_ttag_i[Ports-1:MacPorts]),
    .m_valid_o(join_valid), .m_ready_i(join_ready), .m_data_o(join_data), .m_last_o(join_last), .m_bytes_o(join_bytes),
    .m_time_o(join_time), .m_tag_o(join_tag), .m_port_o(join_port), .idle_o(join_idle)
  );
  hue_cpu_strip #(.BusBytes(BusBytes)) u_strip (
    .clk_i, .rst_ni,
    .s_valid_i(join_valid), .s_ready_o(join_ready), .s_data_i(join_data), .s_last_i(join_last), .s_bytes_i(join_bytes),
    .s_time_i(join_time), .s_tag_i(join_tag), .s_port_i(join_port),
    .m_valid_o(strip_valid), .m_ready_i(strip_ready), .m_data_o(strip_data), .m_last_o(strip_last), .m_bytes_o(strip_bytes),
    .m_arrival_o(strip_arrival), .m_port_o(strip_port), .idle_o(strip_idle)
  );

  // Ports to input queues
  logic         [InputQueues-1:0]               q_valid, q_ready, q_last, q_taken, q_dropped, queue_idle;
  logic         [InputQueues-1:0][DataBits-1:0] q_data;
  hue_arrival_t [InputQueues-1:0]               q_arrival;
  hue_class_t   [InputQueues-1:0]               q_class;
  logic         [InputQueues-1:0][15:0]         q_bytes;
  logic         [InputQueues-1:0][1:0]          q_port, q_taken_port;
  logic         [Ports-1:0]                     rx_valid, rx_dropped;
  logic         [Ports-1:0][15:0]               rx_bytes;

  for (genvar q = 0; q < InputQueues; q++) begin : g_in
    logic                valid, ready, last;
    logic [DataBits-1:0] data;
    logic [ByteBits-1:0] bytes;
    logic [1:0]          port;
    hue_arrival_t        arrival;

    if (q < MacPorts) begin : g_mac
      assign valid = s_tvalid_i[q] && open_q;
      assign s_tready_o[q] = ready && open_q;
      assign data = s_tdata_i[q];
      assign last = s_tlast_i[q];
      assign bytes = s_bytes[q];
      assign port = '0;
      always_comb begin
        arrival = '0;
        arrival.time_ns = s_ttime_i[q];
        arrival.tag = s_ttag_i[q];
      end
    end else begin : g_cpu
      assign valid = strip_valid;
      assign strip_ready = ready;
      assign data = strip_data;
      assign last = strip_last;
      assign bytes = strip_bytes;
      assign port = strip_port;
      assign arrival = strip_arrival;
    end

    hue_input_queue #(.BusBytes(BusBytes), .Beats(InputBytes / BusBytes), .Frames(InputFrames)) u_queue (
      .clk_i, .rst_ni, .offline_i(pause || q >= MacPorts),
      .s_valid_i(valid), .s_ready_o(ready), .s_data_i(data), .s_bytes_i(bytes), .s_last_i(last), .s_arrival_i(arrival),
      .s_port_i(port),
      .m_valid_o(q_valid[q]), .m_ready_i(q_ready[q]), .m_data_o(q_data[q]), .m_last_o(q_last[q]),
      .m_arrival_o(q_arrival[q]), .m_port_o(q_port[q]), .m_class_o(q_class[q]),
      .taken_o(q_taken[q]), .taken_bytes_o(q_bytes[q]), .taken_port_o(q_taken_port[q]), .dropped_o(q_dropped[q]),
      .idle_o(queue_idle[q])
    );
  end
  assign s_tready_o[Ports-1:MacPorts] = open_q ? cpu_ready : '0;
  always_comb begin
    for (int unsigned p = 0; p < Ports; p++) begin
      if (p < MacPorts) begin
        rx_valid[p] = q_taken[p];
        rx_bytes[p] = q_bytes[p];
        rx_dropped[p] = q_dropped[p];
      end else begin
        rx_valid[p] = q_taken[MacPorts] && 32'(q_taken_port[MacPorts]) == p - MacPorts;
        rx_bytes[p] = q_bytes[MacPorts];
        rx_dropped[p] = 1'b0;
      end
    end
  end
  logic unused_queues;
  assign unused_queues = ^{q_class[MacPorts], q_dropped[MacPorts], q_port[MacPorts-1:0], q_taken_port[MacPorts-1:0]};

  // Arbiter, group frames and gather
  logic                a_valid, a_ready, a_first, a_last, a_group, g_ready, arbiter_idle, flood_idle, gather_idle;
  logic                c_valid, c_ready, c_last, flood_full, backlog_q, late_q;
  logic [DataBits-1:0] a_data, c_data;
  logic [2:0]          a_port, c_port;
  hue_arrival_t        a_arrival, c_arrival;
  logic [MacPorts-1:0] flood_dropped;
  logic                body_valid, body_ready, tag_in_valid, tag_in_ready;
  logic [DataBits-1:0] body_data;
  logic [31:0]         tag_in;
  logic                head_valid, head_ready, a_valid_gather, bytes_ready, bytes_take;
  logic                stages_idle;
  hue_head_bytes_t     bytes;
  hue_head_t           head;

  hue_arbiter #(.BusBytes(BusBytes)) u_arbiter (
    .clk_i, .rst_ni, .hold_i(hold), .pause_i(pause), .backlog_i(backlog_q), .full_i(flood_full),
    .s_valid_i(q_offers), .s_ready_o(q_ready), .s_data_i(q_data), .s_last_i(q_last), .s_arrival_i(q_arrival),
    .s_class_i(q_class[MacPorts-1:0]), .s_cpu_port_i(q_port[MacPorts]), .c_valid_i(j_valid), .c_ready_o(j_ready), .c_data_i(j_data),
    .c_last_i(j_last), .c_port_i(j_port), .c_arrival_i(j_arrival),
    .m_valid_o(a_valid), .m_ready_i(a_ready), .m_data_o(a_data), .m_first_o(a_first), .m_last_o(a_last),
    .m_group_o(a_group), .m_port_o(a_port), .m_arrival_o(a_arrival), .begun_o(accepted), .idle_o(arbiter_idle)
  );
  assign a_valid_gather = a_valid && !a_group && (bytes_ready || !a_first);
  assign a_ready = a_group || (g_ready && (bytes_ready || !a_first));

  hue_flood #(.BusBytes(BusBytes), .Bytes(FloodBytes), .AttachRows(AttachRows)) u_flood (
    .clk_i, .rst_ni, .offline_i(offline), .hold_i(hold), .tbl_req_i(tbl_req), .tbl_rsp_o(flood_rsp), .error_o(flood_error),
    .s_valid_i(a_valid && a_group), .s_data_i(a_data), .s_first_i(a_first), .s_last_i(a_last), .s_port_i(a_port),
    .s_arrival_i(a_arrival), .full_o(flood_full),
    .c_valid_o(c_valid), .c_ready_i(c_ready), .c_data_o(c_data), .c_last_o(c_last), .c_port_o(c_port),
    .c_arrival_o(c_arrival), .dropped_o(flood_dropped), .idle_o(flood_idle)
  );

  hue_gather #(.BusBytes(BusBytes)) u_gather (
    .clk_i, .rst_ni,
    .s_valid_i(a_valid_gather), .s_ready_o(g_ready), .s_data_i(a_data), .s_first_i(a_first), .s_last_i(a_last),
    .s_port_i(a_port), .s_arrival_i(a_arrival),
    .body_valid_o(body_valid), .body_ready_i(body_ready), .body_data_o(body_data),
    .tag_valid_o(tag_in_valid), .tag_ready_i(tag_in_ready), .tag_o(tag_in),
    .m_valid_o(head_valid), .m_ready_i(head_ready), .m_head_o(head), .idle_o(gather_idle)
  );

  // Head vectors, for kinds whose front reads them. The stages take one for each record of gather, in the same order.
  if ((Kinds & ~(1 << hue_kinds_pkg::KIND_IPV4)) != 0) begin : g_head
    localparam int unsigned HeadFrames = 16;
    localparam int unsigned SeqBits = $clog2(HeadFrames);
    logic [SeqBits-1:0] seq_q, next_seq;
    always_ff @(posedge clk_i) begin
      if (!rst_ni) seq_q <= '0;
      else if (bytes_take) seq_q <= seq_q + 1'b1;
    end
    hue_head #(.BusBytes(BusBytes), .Frames(HeadFrames)) u_head (
      .clk_i, .rst_ni, .ready_o(bytes_ready), .write_i(body_valid), .first_i(a_first), .last_i(a_last), .len_i(a_arrival.len),
      .data_i(a_data), .seq_o(next_seq), .read_i(bytes_take), .seq_i(seq_q), .head_o(bytes), .release_i(bytes_take)
    );
`ifndef SYNTHESIS
    // All vectors are taken: they have not come apart from the records.
    a_none_left: assert property (@(posedge clk_i) disable iff (!rst_ni) gather_idle && stages_idle |-> next_seq == seq_q);
`else
    logic unused_seq;
    assign unused_seq = ^next_seq;
`endif
  end else begin : g_no_head
    logic unused_take;
    assign unused_take = bytes_take;
    assign bytes_ready = 1'b1;
    assign bytes       = '0;
  end

  // Bodies and tags
  logic [FilledBits-1:0] filled;
  logic                  body_read, body_release, tag_valid, tag_take;
  logic [10:0]           body_offset, body_beats;
  logic [DataBits-1:0]   body_rdata;
  logic [31:0]           tag;

  hue_packet_buffer #(.Words(BufferWords), .Bits(DataBits)) u_buffer (
    .clk_i, .rst_ni,
    .write_i(body_valid), .ready_o(body_ready), .data_i(body_data), .filled_o(filled),
    .read_i(body_read), .offset_i(body_offset), .data_o(body_rdata), .release_i(body_release), .beats_i(body_beats)
  );
  hue_deep_fifo #(.Depth(TagDepth), .Bits(32)) u_tags (
    .clk_i, .rst_ni, .valid_i(tag_in_valid), .ready_o(tag_in_ready), .data_i(tag_in),
    .valid_o(tag_valid), .ready_i(tag_take), .data_o(tag)
  );
  always_ff @(posedge clk_i) begin
    backlog_q <= rst_ni && 32'(filled) >= BacklogBeats;
    late_q <= rst_ni && 32'(filled) >= LateBeats;
  end

  // Stages
  logic         verdict_valid, verdict_ready;
  hue_verdict_t verdict;

  hue_stages #(
    .Kinds(Kinds), .Layout(Layout), .Planes(Planes), .Nets(Nets), .SelectRows(SelectRows), .MacRows(MacRows),
    .StationRows(StationRows), .PatternRows(PatternRows), .RouteRows(RouteRows), .LocalRows(LocalRows), .HopRows(HopRows), .Level0Words(Level0Words),
    .Level1Words(Level1Words), .Level2Words(Level2Words), .Level3Words(Level3Words),
    .SramWords(SramWords), .SramLatency(SramLatency), .SramZero(SramZero), .CamRows(CamRows), .SlotRows(SlotRows), .RangeRows(RangeRows),
    .PairRows(PairRows), .RuleRows(RuleRows), .Tunnels(TunnelRows != 0)
  ) u_stages (
    .clk_i, .rst_ni,
    .head_valid_i(head_valid), .head_ready_o(head_ready), .head_i(head),
    .head_take_o(bytes_take), .head_bytes_i(bytes),
    .verdict_valid_o(verdict_valid), .verdict_ready_i(verdict_ready), .verdict_o(verdict),
    .tbl_req_i(tbl_req), .tbl_rsp_o(stages_rsp), .gates_i(gates), .gated_to_cpu_i(gated_to_cpu),
    .idle_o(stages_idle), .memory_error_o(stages_error),
    .sram_req_o(sram_req), .sram_rdata_i(sram_rdata), .sram_fault_clear_i(sram_fault_clear), .sram_state_o(sram_state)
  );
  assign retired = verdict_valid && verdict_ready;
  always_ff @(posedge clk_i) moves_o <= rst_ni && retired;

  // Copies
  logic         copy_valid, copy_ready;
  hue_verdict_t copy;
  if (Kinds[hue_kinds_pkg::KIND_L2]) begin : g_copies
    hue_copies u_copies (
      .clk_i, .rst_ni, .s_valid_i(verdict_valid), .s_ready_o(verdict_ready), .s_verdict_i(verdict),
      .m_valid_o(copy_valid), .m_ready_i(copy_ready), .m_verdict_o(copy)
    );
  end else begin : g_no_copies
    assign copy_valid    = verdict_valid;
    assign verdict_ready = copy_ready;
    assign copy          = verdict;
  end

  // Admission
  logic                 admit_valid, admit_ready, admit_idle, admit_empty, counts_q, gone, freed, freed_cpu;
  logic                 refused, out_dropped;
  logic [2:0]           out_dropped_port;
  logic [7:0]           out_dropped_net;
  logic [QueueBits-1:0] gone_queue;
  logic [CountBits-1:0] gone_cells;
  hue_verdict_t         admitted;

  always_ff @(posedge clk_i) counts_q <= rst_ni && counters_ready_soon;
  hue_admit #(.Nets(Nets), .Cells(OutputBytes / CellBytes), .CellBytes(CellBytes)) u_admit (
    .clk_i, .rst_ni, .offline_i(offline), .backlog_i(backlog_q && !pause), .late_i(late_q && !pause), .counts_i(counts_q),
    .s_valid_i(copy_valid), .s_ready_o(copy_ready), .s_verdict_i(copy),
    .m_valid_o(admit_valid), .m_ready_i(admit_ready), .m_verdict_o(admitted), .m_refused_o(refused),
    .gone_i(gone), .gone_queue_i(gone_queue), .gone_cells_i(gone_cells), .freed_i(freed), .freed_cpu_i(freed_cpu),
    .dropped_o(out_dropped), .dropped_port_o(out_dropped_port), .dropped_net_o(out_dropped_net),
    .idle_o(admit_idle), .empty_o(admit_empty)
  );

  // Scatter and CPU header
  logic                d_valid, d_ready, d_last, d_to_cpu, o_valid, o_ready, o_last, scatter_idle;
  logic [DataBits-1:0] d_data, o_data;
  logic [ByteBits-1:0] d_bytes, o_bytes;
  hue_departure_t      d_departure, o_departure;
  hue_cpu_header_t     d_header;
  logic [1:0]          d_tunnel;   // tunnel_e
  logic                d_loop, loop_ready, insert_ready;

  hue_scatter #(.BusBytes(BusBytes), .FilledBits(FilledBits)) u_scatter (
    .clk_i, .rst_ni,
    .verdict_valid_i(admit_valid), .verdict_ready_o(admit_ready), .verdict_i(admitted), .refused_i(refused),
    .tag_i(tag), .tag_take_o(tag_take),
    .filled_i(filled), .read_o(body_read), .offset_o(body_offset), .data_i(body_rdata),
    .release_o(body_release), .release_beats_o(body_beats),
    .m_valid_o(d_valid), .m_ready_i(d_ready), .m_data_o(d_data), .m_last_o(d_last), .m_bytes_o(d_bytes),
    .m_departure_o(d_departure), .m_to_cpu_o(d_to_cpu), .m_tunnel_o(d_tunnel), .m_header_o(d_header), .idle_o(scatter_idle)
  );

  hue_cpu_insert #(.BusBytes(BusBytes)) u_insert (
    .clk_i, .rst_ni,
    .s_valid_i(d_valid && !d_loop), .s_ready_o(insert_ready), .s_data_i(d_data), .s_last_i(d_last), .s_bytes_i(d_bytes),
    .s_departure_i(d_departure), .s_to_cpu_i(d_to_cpu), .s_header_i(d_header),
    .m_valid_o(o_valid), .m_ready_i(o_ready), .m_data_o(o_data), .m_last_o(o_last), .m_bytes_o(o_bytes),
    .m_departure_o(o_departure)
  );

  assign d_ready = d_loop ? loop_ready : insert_ready;

  // The loop: frames that enter tunnels, or may come out of them, pass the stages again.
  if (TunnelRows != 0) begin : g_loop
    localparam int unsigned CountedRows = 4;
    logic                l_valid, l_ready, l_last, t_valid, t_ready, t_last, n_valid, n_ready, n_last;
    logic [DataBits-1:0] l_data, t_data, n_data;
    logic [ByteBits-1:0] t_bytes;
    hue_loop_t           d_item, l_item;
    hue_arrival_t        t_arrival, n_arrival;
    logic [2:0]          t_port, t_port_q, n_port;
    logic                crowded, loop_dropped, loop_loses, fifo_idle, tunnel_idle, queue_idle_n, tunnel_event, t_inside_q;
    logic [7:0]          loop_dropped_net, event_net;
    logic [31:0]         loop_dropped_tag;
    logic [1:0]          event_row;
    tbl_rsp_t            tunnel_rsp, count_rsp;

    assign d_loop = d_tunnel != TunnelNone;
    assign d_item = '{
      tunnel: d_tunnel, net: d_header.net, vport: d_header.vport, port_in: d_header.port_in[2:0], tag: d_departure.tag, len: d_departure.len
    };
    hue_loop #(.BusBytes(BusBytes), .Nets(Nets), .Words(LoopBytes / BusBytes)) u_loop (
      .clk_i, .rst_ni, .offline_i(offline),
      .s_valid_i(d_valid && d_loop), .s_ready_o(loop_ready), .s_data_i(d_data), .s_last_i(d_last), .s_item_i(d_item),
      .m_valid_o(l_valid), .m_ready_i(l_ready), .m_data_o(l_data), .m_last_o(l_last), .m_item_o(l_item),
      .dropped_o(loop_dropped), .dropped_net_o(loop_dropped_net), .dropped_tag_o(loop_dropped_tag), .loses_o(loop_loses), .crowded_o(crowded), .idle_o(fifo_idle)
    );
    hue_tunnel #(.BusBytes(BusBytes), .Rows(TunnelRows)) u_tunnel (
      .clk_i, .rst_ni, .tbl_req_i(tbl_req), .tbl_rsp_o(tunnel_rsp), .error_o(loop_error),
      .s_valid_i(l_valid), .s_ready_o(l_ready), .s_data_i(l_data), .s_last_i(l_last), .s_item_i(l_item),
      .m_valid_o(t_valid), .m_ready_i(t_ready), .m_data_o(t_data), .m_last_o(t_last), .m_bytes_o(t_bytes), .m_arrival_o(t_arrival),
      .m_port_o(t_port), .event_o(tunnel_event), .event_net_o(event_net), .event_row_o(event_row), .idle_o(tunnel_idle)
    );

    // The queue makes a frame whole again before the arbiter takes it. The port needs three bits, so it travels in the place of the time,
    // which the arbiter sets.
    hue_arrival_t t_record, n_record;
    hue_class_t   unused_class;
    logic         unused_taken, unused_dropped;
    logic [15:0]  unused_bytes;
    logic [1:0]   unused_port, unused_port_taken;
    always_comb begin
      t_record = t_arrival;
      t_record.time_ns = 64'(t_port);
      n_arrival = n_record;
      n_arrival.time_ns = '0;
    end
    assign n_port = n_record.time_ns[2:0];
    hue_input_queue #(.BusBytes(BusBytes), .Beats(InputBytes / BusBytes), .Frames(InputFrames)) u_queue (
      .clk_i, .rst_ni, .offline_i(1'b1),
      .s_valid_i(t_valid), .s_ready_o(t_ready), .s_data_i(t_data), .s_bytes_i(t_bytes), .s_last_i(t_last), .s_arrival_i(t_record),
      .s_port_i(2'd0),
      .m_valid_o(n_valid), .m_ready_i(n_ready), .m_data_o(n_data), .m_last_o(n_last), .m_arrival_o(n_record), .m_port_o(unused_port),
      .m_class_o(unused_class), .taken_o(unused_taken), .taken_bytes_o(unused_bytes), .taken_port_o(unused_port_taken),
      .dropped_o(unused_dropped), .idle_o(queue_idle_n)
    );
    hue_loop_join #(.BusBytes(BusBytes)) u_join_loop (
      .clk_i, .rst_ni, .crowded_i(loop_waits),
      .l_valid_i(n_valid), .l_ready_o(n_ready), .l_data_i(n_data), .l_last_i(n_last), .l_port_i(n_port), .l_arrival_i(n_arrival),
      .c_valid_i(c_valid), .c_ready_o(c_ready), .c_data_i(c_data), .c_last_i(c_last), .c_port_i(c_port), .c_arrival_i(c_arrival),
      .m_valid_o(j_valid), .m_ready_i(j_ready), .m_data_o(j_data), .m_last_o(j_last), .m_port_o(j_port), .m_arrival_o(j_arrival)
    );

    // While the loop is crowded and lines can wait, only frames of the loop begin: what is in the stages then finds room in it.
    logic [InputQueues-1:0] q_inside_q;
    always_ff @(posedge clk_i) begin
      loop_waits <= rst_ni && pause && crowded;
      if (!rst_ni) q_inside_q <= '0;
      else for (int unsigned q = 0; q < InputQueues; q++) if (q_offers[q] && q_ready[q]) q_inside_q[q] <= !q_last[q];
    end
    assign q_offers = q_valid & (q_inside_q | {InputQueues{!loop_waits}});
    assign loop_idle = fifo_idle && tunnel_idle && queue_idle_n;

    // Frames that came, and that left in their order: one that is lost counts when no frame before it waits in the queue.
    logic        lost_now;
    logic [15:0] lost_q;
    assign lost_now = tunnel_event && event_row == 2'd3;
    always_ff @(posedge clk_i) begin
      if (!rst_ni) {loop_came, loop_left, lost_q} <= '0;
      else begin
        loop_came <= loop_came + 16'(loop_ready && d_valid && d_loop && d_last && !loop_loses);
        loop_left <= loop_left + 16'(n_valid && n_ready && n_last) + (queue_idle_n ? lost_q : '0);
        lost_q    <= (queue_idle_n ? '0 : lost_q) + 16'(lost_now);
      end
    end

    // Counters. Events wait while the host is at a counter: a frame of the loop has two beats, so there are fewer than clocks.
    logic event_any, event_ready, count_ready, count_q, drop_waits_q, event_valid;
    logic [7:0] drop_net_q;
    logic [9:0] event_in, event_out;
    logic [4:0] unused_room;
    always_ff @(posedge clk_i) begin
      count_q <= rst_ni && count_ready;
      if (!rst_ni) drop_waits_q <= 1'b0;
      else if (loop_dropped) drop_waits_q <= 1'b1;
      else if (!tunnel_event) drop_waits_q <= 1'b0;
      if (loop_dropped) drop_net_q <= loop_dropped_net;
    end
    assign event_any = tunnel_event || drop_waits_q;
    assign event_in  = tunnel_event ? {event_net, event_row} : {drop_net_q, 2'd2};
    hue_fifo #(.Depth(16), .Bits(10)) u_events (
      .clk_i, .rst_ni, .valid_i(event_any), .ready_o(event_ready), .data_i(event_in),
      .valid_o(event_valid), .ready_i(count_q), .data_o(event_out), .room_o(unused_room)
    );
    localparam int unsigned CountBits2 = $clog2(Nets * CountedRows);
    hue_counter_table #(.Id(hue_regs_pkg::TABLE_TUNNEL_COUNT), .Rows(Nets * CountedRows)) u_count (
      .clk_i, .rst_ni, .tbl_req_i(tbl_req), .tbl_rsp_o(count_rsp), .ready_o(count_ready),
      .valid_i(event_valid && count_q), .addr_i(CountBits2'(event_out)), .add_i(16'd1)
    );
    assign loop_rsp = tunnel_rsp | count_rsp;
    logic unused_loop;
    assign unused_loop = ^{unused_room, loop_dropped_tag, unused_class, unused_taken, unused_dropped, unused_bytes, unused_port, unused_port_taken};
`ifndef SYNTHESIS
    a_events_have_room: assert property (@(posedge clk_i) disable iff (!rst_ni) event_any |-> event_ready);
    a_one_drop_waits: assert property (@(posedge clk_i) disable iff (!rst_ni) loop_dropped && drop_waits_q |-> !tunnel_event);
`endif
  end else begin : g_no_loop
    assign {j_valid, j_data, j_last, j_port, j_arrival} = {c_valid, c_data, c_last, c_port, c_arrival};
    assign c_ready    = j_ready;
    assign q_offers   = q_valid;
    assign d_loop     = 1'b0;
    assign loop_ready = 1'b0;
    assign loop_idle  = 1'b1;
    assign loop_error = 1'b0;
    assign loop_waits = 1'b0;
    assign loop_rsp   = '0;
    assign {loop_came, loop_left} = '0;
    logic unused_loop;
    assign unused_loop = ^{d_tunnel, loop_waits, LoopBytes == 0};
  end

  // Output queues to ports
  logic                            out_none;
  logic [Ports-1:0]                tx_valid;
  logic [Ports-1:0][13:0]          tx_len, tx_bytes;
  logic [Ports-1:0][ByteBits-1:0]  m_bytes;

  hue_output_queues #(
    .BusBytes(BusBytes), .Nets(Nets), .Cells(OutputBytes / CellBytes), .CellBytes(CellBytes), .External(OutputExternal != 0)
  ) u_queues (
    .clk_i, .rst_ni, .hold_i(out_hold), .hold_net_i(out_hold_net), .waits_o(out_waits),
    .tbl_req_i(tbl_req), .tbl_rsp_o(queues_rsp),
    .s_valid_i(o_valid), .s_ready_o(o_ready), .s_data_i(o_data), .s_last_i(o_last), .s_departure_i(o_departure),
    .gone_o(gone), .gone_queue_o(gone_queue), .gone_cells_o(gone_cells), .freed_o(freed), .freed_cpu_o(freed_cpu),
    .m_valid_o(m_tvalid_o), .m_ready_i(m_tready_i), .m_data_o(m_tdata_o), .m_bytes_o(m_bytes), .m_last_o(m_tlast_o),
    .m_tag_o(m_ttag_o),
    .sent_o(tx_valid), .sent_len_o(tx_len), .none_o(out_none),
    .part_req_o(queue_req), .part_ready_i(queue_ready_i), .part_rvalid_i(queue_rvalid_i), .part_rdata_i(queue_rdata_i)
  );
  assign m_tlen_o = tx_len;
  for (genvar p = 0; p < Ports; p++) begin : g_out
    assign tx_bytes[p] = p < MacPorts ? tx_len[p] : tx_len[p] - 14'(CpuHeaderBytes);
    always_comb for (int unsigned b = 0; b < BusBytes; b++) m_tkeep_o[p][b] = ByteBits'(b) < m_bytes[p];
  end

  hue_port_counters #(.Nets(Nets)) u_counters (
    .clk_i, .rst_ni, .ready_o(counters_ready), .ready_soon_o(counters_ready_soon),
    .rx_valid_i(rx_valid), .rx_bytes_i(rx_bytes), .rx_dropped_i(rx_dropped), .flood_dropped_i(flood_dropped),
    .tx_valid_i(tx_valid), .tx_bytes_i(tx_bytes),
    .out_dropped_i(out_dropped), .out_dropped_port_i(out_dropped_port), .out_dropped_net_i(out_dropped_net),
    .tbl_req_i(tbl_req), .tbl_rsp_o(counters_rsp)
  );
  assign queue_drop = out_dropped || rx_dropped != '0 || flood_dropped != '0;

  assign ingress_idle_o = &queue_idle && join_idle && strip_idle && arbiter_idle && flood_idle && gather_idle && loop_idle;
  assign idle_o = ingress_idle_o && stages_idle && admit_idle && scatter_idle && !tag_valid && admit_empty && out_none;

  logic unused;
  assign unused = ^o_bytes;

`ifndef SYNTHESIS
  a_tag_with_verdict: assert property (@(posedge clk_i) disable iff (!rst_ni) tag_take |-> tag_valid);
  a_one_answer: assert property (@(posedge clk_i) disable iff (!rst_ni)
    $onehot0({stages_rsp.done, flood_rsp.done, queues_rsp.done, counters_rsp.done, loop_rsp.done}));
`endif

endmodule
