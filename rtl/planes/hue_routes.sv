// The kinds with routes (`ipv4`, `ipv6`, `dual`), second half, those of kind `rofl`, and the end of kinds `extract` and `mpls`: longest-prefix match, next hop, last checks, what is written into the frame.
//
// Place: hue_meter → **here** → verdict. In Rust: `decide` and `finish` in crates/planes/src/ipv4.rs and ipv6.rs. The front of a
// packet's kind has already given its question (`question_t`); the order of the outcomes is that of spec/kinds. A packet of kind `dual` is
// treated as one of its family's kind, and its outcome is renamed at the end. Layouts: with dag36 all
// networks share one trie, and one table of next hops in which each network has a run of rows. With sram that trie is in two banks,
// external or on chip, and has the routes of both kinds: a node belongs to a byte of the address, so an IPv4 address is looked up as
// the first four bytes of a longer one. With dir the two banks of the papers replace the trie; the next hops are the same. With tcam each plane
// has its own tables. A next hop may be a group (hue_groups). In networks whose routes
// depend on the source, hue_policies may have the gateway of a policy looked up instead of the destination.
//
// Latency: `Latency` clocks in which `en_i` is 1; with layouts sram and dir, the lookup's latency plus 5, and 7 more
// in images with groups of next hops. Throughput: one packet a clock.
// Source: RFC 1812 §5.2, RFC 8200 §3, RFC 1141.
module hue_routes
  import hue_pkg::*;
  import hue_regs_pkg::*;
  import hue_kinds_pkg::*;
  import hue_stages_pkg::*;
#(
    parameter int unsigned Kinds       = 2,    // bit KIND_*: the image has this kind
    parameter int unsigned Layout      = 1,
    parameter int unsigned Planes      = 1,
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
    parameter int unsigned SlotRows    = 0,    // slots of groups of next hops; 0: the image has no groups
    parameter int unsigned Nets        = 16,
    parameter int unsigned RangeRows   = 0,    // ranges of routes that depend on the source; 0: the image has no such routes
    parameter int unsigned PairRows    = 0,
    parameter int unsigned RuleRows    = 0,
    parameter bit          Tunnels     = 1'b0
) (
    input  logic         clk_i,
    input  logic         rst_ni,
    input  tbl_req_t     tbl_req_i,
    output tbl_rsp_t     tbl_rsp_o,
    output logic         error_o,
    output logic         wait_o,   // the host accesses a table in the next clock: `en_i` must be 0 then
    output logic         stall_o,  // no room for a lookup in external memory: `en_i` must be 0
    input  logic [31:0]  gates_i,
    input  logic         en_i,
    input  logic         valid_i,
    input  packet_t      packet_i,
    output logic         valid_o,
    output hue_verdict_t verdict_o,
    // the banks of layouts sram and dir
    output sram_req_t        sram_req_o,
    input  logic [1:0][35:0] sram_rdata_i,
    input  logic             sram_fault_clear_i,
    output sram_state_t      sram_state_o
);
  localparam bit Tcam = Layout == 32'(LAYOUT_TCAM);
  localparam bit Sram = Layout == 32'(LAYOUT_SRAM);
  localparam bit Dir = Layout == 32'(LAYOUT_DIR);
  localparam int unsigned LookupLatency = Tcam ? 5 : 48;
  localparam int unsigned Latency = LookupLatency + 1;
  if (!Tcam && !Sram && !Dir && Layout != 32'(LAYOUT_DAG36)) begin : gen_check
    $fatal(1, "hue_routes: Layout is %0d, not tcam, dag36, sram or dir", Layout);
  end
  // Long keys need the walk; the other layouts have keys of 32 bits.
  localparam bit HasIpv6 = Kinds[KIND_IPV6];
  localparam bit HasL2 = Kinds[KIND_L2];
  localparam int unsigned KeyBits = HasIpv6 ? 128 : 32;
  if (HasIpv6 && !Sram) begin : gen_check_kinds
    $fatal(1, "hue_routes: kind ipv6 needs layout sram");
  end
  if (Kinds[KIND_EXTRACT] && !(Sram && HasIpv6)) begin : gen_check_extract
    $fatal(1, "hue_routes: kind extract needs layout sram and kind ipv6");
  end
  localparam bit HasRofl = Kinds[KIND_ROFL];
  localparam bit HasMpls = Kinds[KIND_MPLS];
  if (HasMpls && !Kinds[KIND_EXTRACT]) begin : gen_check_mpls
    $fatal(1, "hue_routes: kind mpls needs kind extract, whose tables it uses");
  end
  if (HasRofl && !(Sram && HasIpv6)) begin : gen_check_rofl
    $fatal(1, "hue_routes: kind rofl needs layout sram and kind ipv6");
  end
  localparam bit HasDual = Kinds[KIND_DUAL];
  localparam bit HasGroups = SlotRows != 0;
  if (HasGroups && !(Sram && HasIpv6)) begin : gen_check_groups
    $fatal(1, "hue_routes: groups of next hops need layout sram and kind ipv6");
  end
  localparam bit HasPolicies = RangeRows != 0;
  if (HasPolicies && !(Sram && HasIpv6)) begin : gen_check_policies
    $fatal(1, "hue_routes: routes by source need layout sram and kind ipv6");
  end
  if (!HasPolicies) begin : gen_no_policies
    logic unused_policies;
    assign unused_policies = &{1'b0, Nets == 0, PairRows == 0, RuleRows == 0};
  end
  if (!Sram && !Dir) begin : gen_no_sram
    logic unused_sram;
    assign unused_sram  = &{1'b0, sram_rdata_i, sram_fault_clear_i, SramWords == 0, SramLatency == 0, SramZero, CamRows == 0};
    assign sram_req_o   = '0;
    assign sram_state_o = '0;
  end

  // The fields of a packet that are needed after the lookup.
  typedef struct packed {
    logic [2:0]  port_in;
    logic [13:0] len;
    logic        decided;
    logic [1:0]  verdict;
    logic [4:0]  outcome;   // before the decision: the packet's outcome if it is not for the router itself, or OutcomeNone
    logic [2:0]  port_out;
    logic [7:0]  net;
    logic [7:0]  vport;
    logic [11:0] vid;
    logic [4:0]  kind;
    logic        dual;
    logic [15:0] total;
    logic [7:0]  ttl;
    logic [15:0] checksum;
    logic                flood;
    logic [MacPorts-1:0] ports;
    logic                note;
    logic                tunnel;
    logic [47:0]         sender;  // kind rofl: the MAC address that the frame came from
    splice_edit_t        splice;
    logic [19:0]         label;   // kind mpls: the new one
  } wait_t;

  // Next hop and packet as the tables return them, and after a register, because a row comes late in its clock.
  wait_t in, found_d, found;
  logic  found_valid_d, found_valid, too_long, returns, lookup, error_d;
  row_hop_t hop_d, hop;
  logic unused_packet;
  assign unused_packet = &{1'b0, packet_i, gates_i, found, hop};  // not all of their fields are used

  always_comb begin
    in.port_in  = packet_i.port_in;
    in.len      = packet_i.len;
    in.decided  = packet_i.decided;
    in.verdict  = packet_i.verdict;
    in.outcome  = packet_i.outcome;
    in.port_out = packet_i.port_out;
    in.net      = packet_i.net;
    in.vport    = packet_i.vport;
    in.vid      = packet_i.vid;
    // An image with one kind has no register for it.
    in.kind     = HasIpv6 || HasL2 ? packet_i.kind : 5'(KIND_IPV4);
    in.dual     = HasDual && packet_i.dual;
    in.total    = packet_i.question.total;
    in.ttl      = packet_i.question.ttl;
    in.checksum = packet_i.question.checksum;
    in.flood    = HasL2 && packet_i.flood;
    in.ports    = HasL2 ? packet_i.ports : '0;
    in.note     = HasL2 && packet_i.note;
    in.tunnel   = Tunnels && packet_i.tunnel;
    in.sender   = HasRofl ? packet_i.question.source[127:80] : '0;
    in.label    = HasMpls ? packet_i.label : '0;
    in.splice   = Kinds[KIND_SPLICE] ? packet_i.splice : '0;
    if (!packet_i.decided) begin
      in.outcome = packet_i.question.outcome;
      if (!packet_i.question.asks) begin
        in.decided = 1'b1;
        in.verdict = verdict_of(in.kind, packet_i.question.outcome);
      end
    end
  end
  assign lookup = valid_i && !in.decided;

  if (Tcam) begin : gen_tcam
    row_hop_t [Planes-1:0] hops;
    tbl_rsp_t [Planes-1:0] rsps;
    logic [Planes-1:0] errors, waits;
    for (genvar plane = 0; plane < Planes; plane++) begin : gen_plane
      hue_tcam_plane #(
        .Plane(plane), .Planes(Planes), .RouteRows(RouteRows), .LocalRows(LocalRows), .HopRows(HopRows)
      ) u_plane (
        .clk_i, .rst_ni, .tbl_req_i, .tbl_rsp_o(rsps[plane]), .error_o(errors[plane]), .wait_o(waits[plane]),
        .gate_i(gates_i[plane]), .en_i, .valid_i(lookup && packet_i.plane == 4'(plane)),
        .key_i(packet_i.question.key[127:96]), .hop_o(hops[plane])
      );
    end
    // The next hop of a plane that has no packet is zero.
    always_comb begin
      hop_d = '0;
      tbl_rsp_o = '0;
      for (int unsigned plane = 0; plane < Planes; plane++) begin
        hop_d = hop_d | hops[plane];
        tbl_rsp_o = tbl_rsp_o | rsps[plane];
      end
    end
    assign error_d = errors != '0;
    assign wait_o  = waits != '0;
    assign stall_o = 1'b0;

    localparam int unsigned TableLatency = LookupLatency - 1;
    wait_t wait_q[1:TableLatency];
    logic [TableLatency:1] valid_q;
    always_ff @(posedge clk_i) begin
      if (!rst_ni) valid_q <= '0;
      else if (en_i) valid_q <= {valid_q[TableLatency-1:1], valid_i};
    end
    always_ff @(posedge clk_i) begin
      if (en_i) begin
        wait_q[1] <= in;
        for (int unsigned i = 2; i <= TableLatency; i++) wait_q[i] <= wait_q[i-1];
      end
    end
    assign found_d       = wait_q[TableLatency];
    assign found_valid_d = valid_q[TableLatency];
  end else begin : gen_shared
    localparam int unsigned HopBits = HopRows > 1 ? $clog2(HopRows) : 1;
    // An image without groups keeps no hash.
    localparam int unsigned TagHashBits = HasGroups ? HashBits : 1;
    typedef struct packed {
      wait_t       packet;
      logic [15:0] hop_base;
      logic [15:0] hop_count;
      logic [TagHashBits-1:0] hash;
    } tag_t;

    // ---- the trie
    logic [TagHashBits-1:0] hash;
    assign hash = HasGroups ? packet_i.question.hash[TagHashBits-1:0] : '0;
    tag_t tag;
    logic tag_valid, trie_error;
    logic [15:0] word;
    tbl_rsp_t trie_rsp, policy_rsp;
    logic trie_wait, policy_error;
    logic hop_write;
    logic [HopBits-1:0] hop_write_addr;
    row_hop_t hop_write_data;
    if (Sram) begin : gen_sram
      // Packets wait in the walk for as long as their lookup takes; behind it they move with all others again. They stop only when
      // there is no room and no answer that would make room.
      logic tight, ready, walk_error, host_start, host_waits_q, host_done;
      logic [35:0] host_data;
      logic [$clog2(SramWords)-1:0] host_addr;
      assign stall_o = valid_i && tight && !tag_valid;
      assign trie_wait = 1'b0;
      hue_table_port #(.Id(TABLE_SRAM), .Rows(SramWords)) u_port (
        .clk_i, .rst_ni, .tbl_req_i, .tbl_rsp_o(trie_rsp), .start_o(host_start), .addr_o(host_addr),
        .done_i(host_done), .rdata_i(256'(host_data))
      );
      always_ff @(posedge clk_i) begin
        if (!rst_ni) host_waits_q <= 1'b0;
        else host_waits_q <= (host_start || host_waits_q) && !host_done;
      end
      // Lookups with long keys read more words, so more of them are in flight.
      localparam int unsigned Slots = HasIpv6 ? 64 : 32;
      localparam int unsigned SlotBits = $clog2(Slots);
      logic holds, ended, failed, judged, judged_ready, again;
      logic [SlotBits-1:0] slot, ask_slot, judged_slot;
      logic [15:0] ended_hop;
      logic [KeyBits-1:0] again_key;
      assign holds = HasPolicies && packet_i.policies && !in.decided;
      hue_dag36_sram #(
        .Slots(Slots), .KeyBits(KeyBits), .TagBits($bits(tag_t)), .Latency(SramLatency), .Twice(HasPolicies)
      ) u_dag36 (
        .clk_i, .rst_ni,
        .valid_i(valid_i && en_i), .ready_o(ready), .tight_o(tight),
        .item_i(in.decided ? 36'hffff : packet_i.root), .key_i(packet_i.question.key[127-:KeyBits]),
        .tag_i({in, packet_i.hop_base, packet_i.hop_count, hash}),
        .holds_i(holds), .slot_o(slot), .ask_slot_i(ask_slot), .ask_ended_o(ended), .ask_error_o(failed), .ask_hop_o(ended_hop),
        .judged_i(judged), .judged_ready_o(judged_ready), .judged_slot_i(judged_slot), .again_i(again), .again_key_i(again_key),
        .valid_o(tag_valid), .ready_i(en_i), .hop_o(word), .error_o(walk_error), .tag_o(tag),
        .host_valid_i(host_start || host_waits_q), .host_write_i(tbl_req_i.write), .host_index_i(20'(host_addr)),
        .host_data_i(tbl_req_i.wdata[35:0]), .host_done_o(host_done), .host_data_o(host_data),
        .fault_clear_i(sram_fault_clear_i), .fault_o(sram_state_o.fault), .fault_index_o(sram_state_o.fault_index),
        .fault_count_o(sram_state_o.fault_count), .read_o(sram_state_o.read),
        .sram_en_o(sram_req_o.en), .sram_write_o(sram_req_o.write), .sram_addr_o(sram_req_o.addr),
        .sram_wdata_o(sram_req_o.wdata), .sram_rdata_i
      );
      assign sram_state_o.lookup = lookup && en_i;
      assign trie_error = tag_valid && walk_error;
      if (HasPolicies) begin : gen_policies
        hue_policies #(
          .Slots(Slots), .RangeRows(RangeRows), .PairRows(PairRows), .RuleRows(RuleRows), .Nets(Nets), .HopRows(HopRows)
        ) u_policies (
          .clk_i, .rst_ni, .tbl_req_i, .tbl_rsp_o(policy_rsp), .error_o(policy_error),
          .enter_i(valid_i && en_i && holds), .slot_i(slot), .net_i(packet_i.net), .wide_i(in.kind == 5'(KIND_IPV6)),
          .hop_base_i(packet_i.hop_base), .hop_count_i(packet_i.hop_count),
          .source_i(packet_i.question.source), .destination_i(packet_i.question.key),
          .ask_slot_o(ask_slot), .ended_i(ended), .failed_i(failed), .hop_i(ended_hop),
          .judged_o(judged), .ready_i(judged_ready), .judged_slot_o(judged_slot), .again_o(again), .key_o(again_key),
          .hop_write_i(hop_write), .hop_write_addr_i(hop_write_addr), .hop_write_local_i(hop_write_data.kind == HopLocal)
        );
      end else begin : gen_destination_only
        logic unused_answers;
        assign unused_answers = &{1'b0, slot, ended, failed, ended_hop, judged_ready};
        assign {ask_slot, judged, judged_slot, again, again_key} = '0;
        assign policy_rsp     = '0;
        assign policy_error   = 1'b0;
      end
`ifndef SYNTHESIS
      a_room: assert property (@(posedge clk_i) disable iff (!rst_ni) (valid_i && en_i) |-> ready);
`else
      logic unused_ready;
      assign unused_ready = ready;
`endif
    end else if (Dir) begin : gen_dir
      // As above, except that each lookup reads one word or two, and that a word is owned by its network.
      logic room, walk_error;
      sram_state_t state;
      assign stall_o = valid_i && !room;
      assign trie_wait = 1'b0;
      hue_dir_banks #(
        .CamRows(CamRows), .Words(SramWords), .TagBits($bits(tag_t)), .Latency(SramLatency), .Zero(SramZero)
      ) u_dir (
        .clk_i, .rst_ni, .tbl_req_i, .tbl_rsp_o(trie_rsp),
        .valid_i(valid_i && en_i), .room_o(room), .ask_i(!in.decided), .vid_i(packet_i.vid), .key_i(packet_i.question.key[127:96]),
        .tag_i({in, packet_i.hop_base, packet_i.hop_count, hash}),
        .valid_o(tag_valid), .ready_i(en_i), .hop_o(word), .error_o(walk_error), .tag_o(tag),
        .fault_clear_i(sram_fault_clear_i), .state_o(state), .sram_req_o, .sram_rdata_i
      );
      always_comb begin
        sram_state_o        = state;
        sram_state_o.lookup = lookup && en_i;
      end
      assign trie_error = tag_valid && walk_error;
    end else begin : gen_dag36
      logic host_en, host_done;
      assign stall_o = 1'b0;
      logic [3:0] level_start;
      logic [35:0] level_data;
      tbl_rsp_t [3:0] level_rsp;
      localparam int unsigned LevelWords[4] = '{Level0Words, Level1Words, Level2Words, Level3Words};
      for (genvar level = 0; level < 4; level++) begin : gen_level
        localparam int unsigned Words = LevelWords[level];
        logic [$clog2(Words)-1:0] unused_addr;
        hue_table_port #(.Id(TABLE_LEVEL0 + 8'(level)), .Rows(Words)) u_port (
          .clk_i, .rst_ni, .tbl_req_i, .tbl_rsp_o(level_rsp[level]),
          .start_o(level_start[level]), .addr_o(unused_addr),
          .done_i(host_done && tbl_req_i.id == TABLE_LEVEL0 + 8'(level)),
          .rdata_i(256'(level_data))
        );
      end
      assign host_en = level_start != '0;

      hue_dag36 #(
        .Level0Words(Level0Words), .Level1Words(Level1Words), .Level2Words(Level2Words), .Level3Words(Level3Words),
        .TagBits($bits(tag_t))
      ) u_dag36 (
        .clk_i, .rst_ni, .en_i,
        .valid_i, .ask_i(!in.decided), .item_i(packet_i.root), .key_i(packet_i.question.key[127:96]),
        .tag_i({in, packet_i.hop_base, packet_i.hop_count, hash}),
        .valid_o(tag_valid), .hop_o(word), .tag_o(tag), .error_o(trie_error),
        .wait_o(trie_wait), .host_done_o(host_done),
        .host_en_i(host_en), .host_write_i(tbl_req_i.write), .host_level_i(tbl_req_i.id[1:0]),
        .host_index_i(tbl_req_i.index), .host_data_i(tbl_req_i.wdata[35:0]), .host_data_o(level_data)
      );
      assign trie_rsp = level_rsp[0] | level_rsp[1] | level_rsp[2] | level_rsp[3];
    end

    if (!Sram) begin : gen_no_walk
      assign policy_rsp   = '0;
      assign policy_error = 1'b0;
    end
    logic unused_hop_write;
    assign unused_hop_write = &{1'b0, hop_write, hop_write_addr, hop_write_data};

    // ---- groups: the member's row instead of the group's
    tag_t        hop_tag;
    logic        hop_tag_valid, group_wait, group_error;
    logic [15:0] hop_word;
    tbl_rsp_t    group_rsp;
    if (HasGroups) begin : gen_groups
      localparam int unsigned GroupLatency = 7;
      logic [GroupLatency:1] valid_q;
      hue_groups #(.HopRows(HopRows), .SlotRows(SlotRows)) u_groups (
        .clk_i, .rst_ni, .tbl_req_i, .tbl_rsp_o(group_rsp), .error_o(group_error), .wait_o(group_wait), .en_i,
        .ask_i(tag_valid && !tag.packet.decided), .hop_i(word), .hop_base_i(tag.hop_base), .hop_count_i(tag.hop_count),
        .net_i(tag.packet.net), .hash_i(tag.hash), .hop_o(hop_word)
      );
      hue_delay #(.Clocks(GroupLatency), .Bits($bits(tag_t))) u_tag (.clk_i, .rst_ni, .en_i, .data_i(tag), .data_o(hop_tag));
      always_ff @(posedge clk_i) begin
        if (!rst_ni) valid_q <= '0;
        else if (en_i) valid_q <= {valid_q[GroupLatency-1:1], tag_valid};
      end
      assign hop_tag_valid = valid_q[GroupLatency];
      logic unused_hash;
      assign unused_hash = ^hop_tag.hash;
    end else begin : gen_no_groups
      logic unused_hash;
      assign unused_hash   = &{1'b0, tag.hash, hop_tag.hash, SlotRows == 0};
      assign hop_tag       = tag;
      assign hop_tag_valid = tag_valid;
      assign hop_word      = word;
      assign group_rsp     = '0;
      assign {group_wait, group_error} = '0;
    end

    // ---- the next hop's row: a network reaches only its own rows
    wait_t h1_q, h2_q, h3_q;
    logic h1_valid_q, h2_valid_q, h3_valid_q, h1_known_q, h2_known_q, h3_known_q, hop_error;
    logic hop_wait;
    logic [HopBits-1:0] h1_addr_q;
    assign wait_o = hop_wait || trie_wait || group_wait;
    logic unused_parity;
    row_hop_t row, row_q;
    tbl_rsp_t hop_rsp;
    hue_table #(.Id(TABLE_HOP), .Rows(HopRows), .Width($bits(row_hop_t)), .Reset(1'b0)) u_hop (
      .clk_i, .rst_ni, .tbl_req_i, .tbl_rsp_o(hop_rsp),
      .write_o(hop_write), .write_addr_o(hop_write_addr), .write_data_o(hop_write_data),
      .wait_o(hop_wait), .en_i, .addr_i(h1_addr_q), .data_o(row), .parity_o(unused_parity),
      .check_i(en_i && h2_valid_q && !h2_q.decided && h2_known_q), .error_o(hop_error)
    );
    always_ff @(posedge clk_i) begin
      if (!rst_ni) {h3_valid_q, h2_valid_q, h1_valid_q} <= '0;
      else if (en_i) {h3_valid_q, h2_valid_q, h1_valid_q} <= {h2_valid_q, h1_valid_q, hop_tag_valid};
    end
    logic [16:0] hop_index;
    logic h1_known;
    assign h1_known  = hop_word < hop_tag.hop_count && 32'(hop_index) < HopRows;
    assign hop_index = {1'b0, hop_tag.hop_base} + {1'b0, hop_word};
    always_ff @(posedge clk_i) begin
      if (en_i) begin
        h1_q       <= hop_tag.packet;
        // A packet without a next hop leaves the address as it is, so that the memory does not switch.
        if (h1_known) h1_addr_q <= hop_index[HopBits-1:0];
        h1_known_q <= h1_known;
        h2_q       <= h1_q;
        h2_known_q <= h1_known_q;
        h3_q       <= h2_q;
        h3_known_q <= h2_known_q;
        row_q      <= row;  // a separate register, beside its block RAM
      end
    end
    assign hop_d         = h3_known_q ? row_q : '0;
    assign found_d       = h3_q;
    assign found_valid_d = h3_valid_q;
    assign error_d       = hop_error || group_error || policy_error || (en_i && trie_error);
    assign tbl_rsp_o     = trie_rsp | policy_rsp | group_rsp | hop_rsp;
    logic unused_lookup;
    assign unused_lookup = &{1'b0, lookup};
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) {error_o, found_valid} <= '0;
    else begin
      error_o <= error_d;
      if (en_i) found_valid <= found_valid_d;
    end
  end
  always_ff @(posedge clk_i) begin
    if (en_i) begin
      found    <= found_d;
      hop      <= hop_d;
      too_long <= found_d.total > hop_d.mtu;
      // Kind rofl: to the neighbour that sent it. A host that has the label may send to itself: its port is 4 more, which no frame came by.
      returns  <= HasRofl && hop_d.port == found_d.port_in && hop_d.dst == found_d.sender;
    end
  end

  // ---- the decision
  logic [1:0] verdict;
  logic [4:0] outcome, named;  // of the packet's kind, and of its network's
  logic [16:0] sum;
  assign sum = {1'b0, found.checksum} + 17'h0100;
  hop_outcomes_t outcomes;
  logic is_rofl;
  assign is_rofl = HasRofl && found.kind == 5'(KIND_ROFL);
  assign outcomes = hop_outcomes(found.kind);
  always_comb begin
    if (hop.kind == HopLocal) outcome = outcomes.is_local;
    // Of kind rofl, it is that of packets whose closest label this router holds.
    else if (is_rofl ? hop.kind == HopGlean : found.outcome != OutcomeNone) outcome = found.outcome;
    else if (hop.kind == HopNone) outcome = outcomes.no_route;
    else if (hop.kind == HopGlean) outcome = outcomes.no_neighbour;
`ifdef HUE_PLANT_ROFL_LOOP
    else if (is_rofl && returns) outcome = ROFL_LOOP;  // for scripts/formal
`endif
    else if (is_rofl && found.ttl < 8'd2) outcome = ROFL_HOP_BUDGET;
    else if (is_rofl && returns) outcome = ROFL_LOOP;
    else if (too_long) outcome = outcomes.mtu;
    else outcome = outcomes.forward;
    verdict = verdict_of(found.kind, outcome);
    if (found.decided) begin
      outcome = found.outcome;
      verdict = found.verdict;
    end
  end
  // Both kinds have the same verdict for an outcome.
  always_comb begin
    if (!found.dual) named = outcome;
    else if (found.kind == 5'(KIND_IPV6)) named = dual_of_ipv6(outcome);
    else named = dual_of_ipv4(outcome);
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) valid_o <= 1'b0;
    else if (en_i) valid_o <= found_valid;
  end
  always_ff @(posedge clk_i) begin
    if (en_i) begin
      verdict_o          <= '0;
      verdict_o.verdict  <= verdict;
      verdict_o.outcome  <= named;
      verdict_o.net      <= found.net;
      verdict_o.vid      <= found.vid;
      verdict_o.vport    <= found.vport;
      verdict_o.port_in  <= found.port_in;
      verdict_o.len      <= found.len;
      // Unless forwarded or punted, the port of arrival: nothing is sent there.
      verdict_o.port_out <= found.port_in;
      if (verdict == VerdictPunt) verdict_o.port_out <= {1'b1, found.net[1:0]};
      if (verdict == VerdictForward) begin
        verdict_o.port_out <= found.decided ? found.port_out : is_rofl ? {1'b0, hop.port[1:0]} : hop.port;
        if (!found.decided) begin
          verdict_o.edit <= found.kind == 5'(KIND_IPV6) ? EditIpv6 : EditIpv4;
          if (Kinds[KIND_EXTRACT] && found.kind == 5'(KIND_EXTRACT)) verdict_o.edit <= EditMacs;
          if (is_rofl) verdict_o.edit <= EditRofl;
          if (HasMpls && found.kind == 5'(KIND_MPLS)) verdict_o.edit <= EditMpls;
          verdict_o.splice <= found.splice;
          verdict_o.label  <= found.label;
        end
      end
      verdict_o.flood    <= found.flood;
      verdict_o.ports    <= found.ports;
      verdict_o.note     <= found.note;
      if (Tunnels && !found.decided) begin
        if (verdict == VerdictForward && hop.port[2] && !is_rofl) begin
          verdict_o.tunnel   <= TunnelOut;
          verdict_o.port_out <= found.port_in;
        end
        if (outcome == outcomes.is_local && found.tunnel && !is_rofl) verdict_o.tunnel <= TunnelIn;
      end
      // What is written; without an edit these fields have no meaning.
      verdict_o.dst_mac  <= hop.dst;
      verdict_o.src_mac  <= hop.src;
      verdict_o.ttl      <= found.ttl - 8'd1;
      // RFC 1624 eqn. 3, as hue_wire's `ttl_decremented`.
      verdict_o.checksum <= sum[15:0] + 16'(sum >= 17'h0ffff);
    end
  end

`ifndef SYNTHESIS
  if (!Sram && !Dir) begin : gen_latency
    hue_latency #(.Clocks(Latency)) u_latency (.clk_i, .rst_ni, .en_i, .in_i(valid_i), .out_i(valid_o));
  end
`endif
endmodule
