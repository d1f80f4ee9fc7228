// The stages: compute the verdict on a frame from its header.
//
// Place: header gather → **here** → header scatter. Inside: hue_select (which network) → hue_network (the network's parameters) →
// hue_meter (rate limit) → hue_routes (lookup, next hop, decision) → counters. With kind extract, hue_extract (the network's entries)
// follows hue_network. With kind l2, hue_l2 (both addresses of a frame) is in front
// of the meter, and a second meter (storm limit) behind it. The order of frames is kept, and each frame gives one verdict.
//
// All stages move together (`en`). They stop while more than two verdicts wait to be taken; for one clock when the host
// reads a counter under load or writes a meter; for two when it reads a row or writes an exact one; and after reset until
// the counters are zero (a clock for each network and outcome). Accesses to ternary rows stop nothing.
//
// Latency: 25 clocks with layout tcam, 68 with dag36, and 24 plus the lookup's with sram and dir, when nothing stalls;
// kind extract adds 2 and what its frames take, kind l2 adds 15, and groups of next hops add 7.
// Throughput: one verdict a clock, or that of the lookup. Frames of kind extract take up to 19 clocks each.
module hue_stages
  import hue_pkg::*;
  import hue_regs_pkg::*;
  import hue_stages_pkg::*;
#(
    parameter int unsigned Kinds       = 2,
    parameter int unsigned Layout      = 1,
    parameter int unsigned Planes      = 1,
    parameter int unsigned Nets        = 16,
    parameter int unsigned SelectRows  = 32,
    parameter int unsigned MacRows     = 0,
    parameter int unsigned StationRows = 0,
    parameter int unsigned PatternRows = 0,
    parameter int unsigned RouteRows   = 32,
    parameter int unsigned LocalRows   = 32,
    parameter int unsigned HopRows     = 32,
    parameter int unsigned Level0Words = 0,
    parameter int unsigned Level1Words = 0,
    parameter int unsigned Level2Words = 0,
    parameter int unsigned Level3Words = 0,
    parameter int unsigned SramWords   = 0,
    parameter int unsigned SramLatency = 4,
    parameter bit          SramZero    = 1'b1,
    parameter int unsigned CamRows     = 0,
    parameter int unsigned SlotRows    = 0,
    parameter int unsigned RangeRows   = 0,
    parameter int unsigned PairRows    = 0,
    parameter int unsigned RuleRows    = 0,
    parameter bit          Tunnels     = 1'b0
) (
    input  logic         clk_i,
    input  logic         rst_ni,
    input  logic         head_valid_i,
    output logic         head_ready_o,
    input  hue_head_t    head_i,
    output logic         head_take_o,     // the head vector of the next record: see hue_network
    input  hue_head_bytes_t head_bytes_i,
    output logic         verdict_valid_o,
    input  logic         verdict_ready_i,
    output hue_verdict_t verdict_o,
    input  tbl_req_t     tbl_req_i,
    output tbl_rsp_t     tbl_rsp_o,
    input  logic [31:0]  gates_i,
    input  logic         gated_to_cpu_i,
    output logic         idle_o,          // no record inside
    output logic         memory_error_o,
    // external memory (layouts sram and dir)
    output sram_req_t        sram_req_o,
    input  logic [1:0][35:0] sram_rdata_i,
    input  logic             sram_fault_clear_i,
    output sram_state_t      sram_state_o
);
  localparam int unsigned NetBits = $clog2(Nets);
  localparam int unsigned UnclaimedRows = hue_kinds_pkg::UNCLAIMED_COUNT + 1;
  localparam int unsigned UnclaimedBits = $clog2(UnclaimedRows);

  if (hue_kinds_pkg::VERDICT_DROP != VerdictDrop || hue_kinds_pkg::VERDICT_FORWARD != VerdictForward ||
      hue_kinds_pkg::VERDICT_PUNT != VerdictPunt) begin : gen_check
    $fatal(1, "hue_stages: hue_pkg and hue_kinds_pkg name verdicts differently");
  end

  logic en;
  localparam bit HasL2 = Kinds[hue_kinds_pkg::KIND_L2];
  localparam bit HasExtract = Kinds[hue_kinds_pkg::KIND_EXTRACT];
  logic select_valid, network_valid, entry_valid, station_valid, limit_valid, meter_valid, done_valid;
  packet_t select_packet, network_packet, entry_packet, station_packet, limit_packet, meter_packet;
  ipv4_t select_ipv4;
  logic [63:0] select_time, network_time, entry_time, station_time;
  hue_verdict_t done;
  tbl_rsp_t select_rsp, network_rsp, entry_rsp, station_rsp, meter_rsp, storm_rsp, routes_rsp, count_rsp, bytes_rsp, unclaimed_rsp, copies_rsp;
  logic select_error, network_error, entry_error, station_error, meter_error, storm_error, routes_error;
  logic select_wait, network_wait, entry_wait, station_wait, meter_wait, storm_wait, routes_wait, network_stall, entry_stall, routes_stall;
  logic count_ready, bytes_ready, unclaimed_ready, copies_ready;
  logic [31:0] gates_q;
  logic gated_to_cpu_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      gates_q        <= '0;
      gated_to_cpu_q <= 1'b0;
    end else begin
      gates_q        <= gates_i;
      gated_to_cpu_q <= gated_to_cpu_i;
    end
  end

  hue_select #(.SelectRows(SelectRows), .MacRows(MacRows)) u_select (
    .clk_i, .rst_ni, .tbl_req_i, .tbl_rsp_o(select_rsp), .error_o(select_error), .wait_o(select_wait),
    .en_i(en), .valid_i(head_valid_i), .head_i,
    .valid_o(select_valid), .packet_o(select_packet), .ipv4_o(select_ipv4), .time_ns_o(select_time)
  );
  assign head_ready_o = en;

  hue_network #(.Nets(Nets), .Kinds(Kinds), .HasGroups(SlotRows != 0), .Tunnels(Tunnels), .HasPolicies(RangeRows != 0)) u_network (
    .clk_i, .rst_ni, .tbl_req_i, .tbl_rsp_o(network_rsp), .error_o(network_error), .wait_o(network_wait), .stall_o(network_stall),
    .gates_i(gates_q), .gated_to_cpu_i(gated_to_cpu_q),
    .en_i(en), .valid_i(select_valid), .packet_i(select_packet), .ipv4_i(select_ipv4), .time_ns_i(select_time),
    .head_take_o, .head_i(head_bytes_i),
    .valid_o(network_valid), .packet_o(network_packet), .time_ns_o(network_time)
  );

  if (HasExtract) begin : gen_extract
    hue_extract #(.PatternRows(PatternRows), .Kinds(Kinds)) u_extract (
      .clk_i, .rst_ni, .tbl_req_i, .tbl_rsp_o(entry_rsp), .error_o(entry_error), .wait_o(entry_wait), .stall_o(entry_stall),
      .en_i(en), .valid_i(network_valid), .packet_i(network_packet), .time_ns_i(network_time),
      .valid_o(entry_valid), .packet_o(entry_packet), .time_ns_o(entry_time)
    );
  end else begin : gen_no_extract
    logic unused_patterns;
    assign unused_patterns = PatternRows == 0;
    assign {entry_valid, entry_packet, entry_time} = {network_valid, network_packet, network_time};
    assign entry_rsp = '0;
    assign {entry_error, entry_wait, entry_stall} = '0;
  end

  hue_meter #(.Nets(Nets)) u_meter (
    .clk_i, .rst_ni, .tbl_req_i, .tbl_rsp_o(meter_rsp), .error_o(meter_error), .wait_o(meter_wait),
    .en_i(en), .valid_i(station_valid), .packet_i(station_packet), .time_ns_i(station_time),
    .valid_o(limit_valid), .packet_o(limit_packet)
  );

  if (HasL2) begin : gen_l2
    hue_l2 #(.StationRows(StationRows)) u_l2 (
      .clk_i, .rst_ni, .tbl_req_i, .tbl_rsp_o(station_rsp), .error_o(station_error), .wait_o(station_wait),
      .en_i(en), .valid_i(entry_valid), .packet_i(entry_packet), .time_ns_i(entry_time),
      .valid_o(station_valid), .packet_o(station_packet), .time_ns_o(station_time)
    );
    // The time of arrival goes around the first meter.
    localparam int unsigned MeterLatency = 11;
    logic [63:0] limit_time;
    hue_delay #(.Clocks(MeterLatency), .Bits(64)) u_time (
      .clk_i, .rst_ni, .en_i(en), .data_i(station_time), .data_o(limit_time)
    );
    hue_meter #(.Nets(Nets), .Storm(1'b1)) u_storm (
      .clk_i, .rst_ni, .tbl_req_i, .tbl_rsp_o(storm_rsp), .error_o(storm_error), .wait_o(storm_wait),
      .en_i(en), .valid_i(limit_valid), .packet_i(limit_packet), .time_ns_i(limit_time),
      .valid_o(meter_valid), .packet_o(meter_packet)
    );
  end else begin : gen_no_l2
    logic unused_rows;
    assign unused_rows = StationRows == 0;
    assign {station_valid, station_packet, station_time} = {entry_valid, entry_packet, entry_time};
    assign {meter_valid, meter_packet} = {limit_valid, limit_packet};
    assign {station_rsp, storm_rsp} = '0;
    assign {station_error, station_wait, storm_error, storm_wait} = '0;
  end

  hue_routes #(
    .Kinds(Kinds), .Layout(Layout), .Planes(Planes), .RouteRows(RouteRows), .LocalRows(LocalRows), .HopRows(HopRows),
    .Level0Words(Level0Words), .Level1Words(Level1Words), .Level2Words(Level2Words), .Level3Words(Level3Words),
    .SramWords(SramWords), .SramLatency(SramLatency), .SramZero(SramZero), .CamRows(CamRows), .SlotRows(SlotRows), .Tunnels(Tunnels),
    .Nets(Nets), .RangeRows(RangeRows), .PairRows(PairRows), .RuleRows(RuleRows)
  ) u_routes (
    .clk_i, .rst_ni, .tbl_req_i, .tbl_rsp_o(routes_rsp), .error_o(routes_error), .wait_o(routes_wait),
    .stall_o(routes_stall),
    .gates_i(gates_q), .en_i(en), .valid_i(meter_valid), .packet_i(meter_packet), .valid_o(done_valid), .verdict_o(done),
    .sram_req_o, .sram_rdata_i, .sram_fault_clear_i, .sram_state_o
  );

  // ---- the way out. `en` has a high fan-out, which takes most of a clock, so it is decided one clock ahead. One more verdict may
  // come in that clock. (The room of a walk is not known ahead; images with external memory are slower.)
  localparam int unsigned OutDepth = 4;
  logic en_q, out_ready, leaves;
  logic [$clog2(OutDepth+1)-1:0] out_room;
  always_ff @(posedge clk_i) begin
    en_q <= rst_ni && out_room > 1 && !select_wait && !network_wait && !entry_wait && !station_wait && !meter_wait && !storm_wait &&
            !routes_wait && count_ready && bytes_ready && unclaimed_ready && copies_ready;
  end
  assign en     = en_q && !network_stall && !entry_stall && !routes_stall;
  assign leaves = en && done_valid;
  hue_fifo #(.Depth(OutDepth), .Bits($bits(hue_verdict_t))) u_out (
    .clk_i, .rst_ni, .valid_i(leaves), .ready_o(out_ready), .data_i(done),
    .valid_o(verdict_valid_o), .ready_i(verdict_ready_i), .data_o(verdict_o), .room_o(out_room)
  );

  // ---- counters, one clock later, because their memories are far away
  logic claimed, returned, sent, back, received_q, sent_q, unclaimed_q;
  logic [NetBits-1:0] net_q;
  logic [4:0]  outcome_q;
  logic [13:0] len_q;
  assign claimed  = leaves && done.verdict != VerdictUnclaimed;
  // A flood of a network with a single port is sent nowhere.
  assign sent     = claimed && done.verdict == VerdictForward && !(done.flood && done.ports == '0) && !back;
  // By a software plane, or a punt that came by no tunnel and goes on to the CPU: it was received and counted before.
  assign returned = back || (sent && done.outcome == OutcomeNone);
  assign back     = Tunnels && claimed && done.verdict == VerdictForward && done.outcome == OutcomeNone && done.port_out[2];
  always_ff @(posedge clk_i) begin
    if (!rst_ni) {received_q, sent_q, unclaimed_q} <= '0;
    else {received_q, sent_q, unclaimed_q} <= {claimed && !returned, sent, leaves && !claimed};
  end
  always_ff @(posedge clk_i) begin
    net_q     <= done.net[NetBits-1:0];
    outcome_q <= done.outcome;
    len_q     <= done.len;
  end

  // Outcome 0 is counted for planes in software.
  hue_counter_table #(.Id(TABLE_COUNT), .Rows(Nets * 32), .GroupRows(32), .Counters(hue_kinds_pkg::outcomes_max(Kinds) + 1)) u_count (
    .clk_i, .rst_ni, .tbl_req_i, .tbl_rsp_o(count_rsp), .ready_o(count_ready),
    .valid_i(received_q), .addr_i({net_q, outcome_q}), .add_i(16'd1)
  );
  hue_byte_counters #(.Nets(Nets)) u_bytes (
    .clk_i, .rst_ni, .tbl_req_i, .tbl_rsp_o(bytes_rsp), .ready_o(bytes_ready),
    .received_i(received_q), .sent_i(sent_q), .net_i(net_q), .len_i(len_q)
  );
  hue_counter_table #(.Id(TABLE_UNCLAIMED), .Rows(UnclaimedRows)) u_unclaimed (
    .clk_i, .rst_ni, .tbl_req_i, .tbl_rsp_o(unclaimed_rsp), .ready_o(unclaimed_ready),
    .valid_i(unclaimed_q), .addr_i(outcome_q[UnclaimedBits-1:0]), .add_i(16'd1)
  );

  if (HasL2) begin : gen_copies
    logic copied_q;
    logic [2:0] copies_q;
    always_ff @(posedge clk_i) begin
      copied_q <= rst_ni && leaves && done.flood;
      copies_q <= 3'($countones(done.ports));
    end
    hue_counter_table #(.Id(TABLE_COPIES), .Rows(Nets)) u_copies (
      .clk_i, .rst_ni, .tbl_req_i, .tbl_rsp_o(copies_rsp), .ready_o(copies_ready),
      .valid_i(copied_q), .addr_i(net_q), .add_i(16'(copies_q))
    );
  end else begin : gen_no_copies
    assign copies_rsp   = '0;
    assign copies_ready = 1'b1;
  end

  assign tbl_rsp_o = select_rsp | network_rsp | entry_rsp | station_rsp | meter_rsp | storm_rsp | routes_rsp | count_rsp | bytes_rsp |
                     unclaimed_rsp | copies_rsp;
  assign memory_error_o = select_error || network_error || entry_error || station_error || meter_error || storm_error || routes_error;

  // ---- frames inside: at most one in each stage
  logic [6:0] frames_q;
  logic enters, out;
  assign enters = head_valid_i && head_ready_o;
  assign out    = verdict_valid_o && verdict_ready_i;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) frames_q <= '0;
    else frames_q <= frames_q + 7'(enters) - 7'(out);
  end
  assign idle_o = frames_q == '0;

`ifndef SYNTHESIS
  // The latency without the lookup's, with kind l2 and groups; the verdicts that wait; and lookups in flight (hue_routes). With layout dag36 it is
  // less: 68 + 15 + 4.
  localparam int unsigned FramesMax = 24 + 2 + 15 + 7 + OutDepth + 64;
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      if (leaves) assert (out_ready) else $error("hue_stages: no room for a verdict");
      if (out) assert (frames_q != '0) else $error("hue_stages: a verdict of no frame");
      if (enters) assert (32'(frames_q) < FramesMax) else $error("hue_stages: frames do not leave");
      if (leaves && (done.verdict == VerdictForward || done.verdict == VerdictPunt)) begin
        assert (32'(done.len) <= FrameBytesMax) else $error("hue_stages: too long a frame goes on");
      end
    end
  end
`endif
endmodule
