// Network lookup: a network's VID, its kind, its plane, and where its routes and next hops are; and the front of its kind.
//
// Place: hue_select → **here** → hue_meter. A packet of a network that does not exist is unclaimed. One of a network
// whose plane runs in software goes to the CPU. A packet of a gated network is dropped here, and one of a gated plane is dropped or
// sent to the CPU, so that nothing in the plane moves for it.
// The fronts of kinds ipv6, l2, extract, mpls and rofl read the frame's head vector, which is fetched while the network's row is read; that of extract
// takes several clocks. That of rofl needs the MAC address of the port of arrival, from a table beside. The front of kind ipv4 had all it needs before. The row says whose question counts; a packet of kind dual becomes one of its family's kind (hue_dual_check).
// With groups of next hops, hue_toeplitz computes the packet's hash from the same vector.
// Isolation: a packet gets the question of its own network's kind; the vectors come in the order of the packets.
//
// Latency: 3 clocks in which `en_i` is 1. Throughput: one packet a clock, or what hue_extract_check says.
module hue_network
  import hue_pkg::*;
  import hue_regs_pkg::*;
  import hue_stages_pkg::*;
#(
    parameter int unsigned Nets  = 16,
    parameter int unsigned Kinds = 2,   // bit KIND_*: the image has this kind
    parameter bit          HasGroups = 1'b0, // the image has groups of next hops, for which packets need a hash
    parameter bit          Tunnels = 1'b0,  // the image has tunnels
    parameter bit          HasPolicies = 1'b0 // the image has routes by source
) (
    input  logic        clk_i,
    input  logic        rst_ni,
    input  tbl_req_t    tbl_req_i,
    output tbl_rsp_t    tbl_rsp_o,
    output logic        error_o,
    output logic        wait_o,          // the host accesses a table in the next clock: `en_i` must be 0 then
    output logic        stall_o,         // a front has not ended: `en_i` must be 0
    input  logic [31:0] gates_i,         // one bit per plane: 1 gated
    input  logic        gated_to_cpu_i,  // packets of gated planes: 1 to the CPU, 0 dropped
    input  logic        en_i,
    input  logic        valid_i,
    input  packet_t     packet_i,
    input  ipv4_t       ipv4_i,
    input  logic [63:0] time_ns_i,
    // Head vectors: `head_take_o` takes the oldest, which `head_i` is from the next clock on until another is taken.
    output logic            head_take_o,
    input  hue_head_bytes_t head_i,
    output logic        valid_o,
    output packet_t     packet_o,
    output logic [63:0] time_ns_o
);
  localparam int unsigned NetBits = Nets > 1 ? $clog2(Nets) : 1;
  if (Nets < 1 || Nets > NetsMax) begin : gen_check
    $fatal(1, "hue_network: Nets is %0d, 1 to %0d", Nets, NetsMax);
  end
  localparam bit HasDual = Kinds[hue_kinds_pkg::KIND_DUAL];
  localparam bit HasRofl = Kinds[hue_kinds_pkg::KIND_ROFL];
  localparam bit HasSplice = Kinds[hue_kinds_pkg::KIND_SPLICE];
  localparam bit HasMpls = Kinds[hue_kinds_pkg::KIND_MPLS];
  if (HasMpls && !Kinds[hue_kinds_pkg::KIND_EXTRACT]) begin : gen_check_mpls
    $fatal(1, "hue_network: kind mpls needs kind extract, whose entries hold its labels");
  end
  if (HasDual && !(Kinds[hue_kinds_pkg::KIND_IPV4] && Kinds[hue_kinds_pkg::KIND_IPV6])) begin : gen_check_dual
    $fatal(1, "hue_network: kind dual needs kinds ipv4 and ipv6");
  end

  row_network_t row, row_q;
  // The last fields of a row are in images that need them: the second root with kind dual, behind it the two for tunnels, and then that
  // for routes by source.
  localparam int unsigned RowBits = $bits(row_network_t) -
                                    (HasPolicies ? 0 : 1 + (Tunnels ? 0 : 2 + (HasDual ? 0 : $bits(row.root_ipv6))));
  if (Tunnels && !HasDual) begin : gen_check_tunnels
    $fatal(1, "hue_network: tunnels need kind dual, whose head vectors they read");
  end
  if (HasRofl && !HasDual) begin : gen_check_rofl
    $fatal(1, "hue_network: kind rofl needs kind dual, in the place of whose second root its settings are");
  end
  if (HasSplice && !HasDual) begin : gen_check_splice
    $fatal(1, "hue_network: kind splice needs kind dual, in the place of whose second root its settings are");
  end
  if (HasPolicies && !Kinds[hue_kinds_pkg::KIND_IPV6]) begin : gen_check_policies
    $fatal(1, "hue_network: routes by source need kind ipv6, whose head vectors they read");
  end
  logic [RowBits-1:0] data, unused_data;
  assign row = row_network_t'($bits(row_network_t)'(data));
  logic unused_write, unused_parity, in1_range_q, in_range_q, valid1_q, valid2_q;
  logic [NetBits-1:0] unused_addr;
  packet_t packet1_q, packet_q, named;
  ipv4_t ipv4_1_q, ipv4_q;
  logic nobody, claimed, known;
  logic [63:0] time1_ns_q, time2_ns_q;

  tbl_rsp_t table_rsp, lanes_rsp, macs_rsp;
  logic table_wait, lanes_wait, macs_wait, table_error, lanes_error, macs_error;
  assign tbl_rsp_o = table_rsp | lanes_rsp | macs_rsp;
  assign wait_o    = table_wait || lanes_wait || macs_wait;
  assign error_o   = table_error || lanes_error || macs_error;
  hue_table #(.Id(TABLE_NETWORK), .Rows(Nets), .Width(RowBits)) u_table (
    .clk_i, .rst_ni, .tbl_req_i, .tbl_rsp_o(table_rsp),
    .write_o(unused_write), .write_addr_o(unused_addr), .write_data_o(unused_data),
    .wait_o(table_wait), .en_i, .addr_i(packet_i.net[NetBits-1:0]), .data_o(data), .parity_o(unused_parity), .check_i(en_i && valid1_q),
    .error_o(table_error)
  );

  always_ff @(posedge clk_i) begin
    if (!rst_ni) {valid_o, valid2_q, valid1_q} <= '0;
    else if (en_i) {valid_o, valid2_q, valid1_q} <= {valid2_q, valid1_q, valid_i};
  end
  // The row is late in its clock, so it goes straight into a register.
  always_ff @(posedge clk_i) begin
    if (en_i) begin
      packet1_q   <= packet_i;
      ipv4_1_q    <= ipv4_i;
      time1_ns_q  <= time_ns_i;
      in1_range_q <= 32'(packet_i.net) < Nets;
      row_q         <= row;
      packet_q    <= packet1_q;
      ipv4_q      <= ipv4_1_q;
      time2_ns_q  <= time1_ns_q;
      in_range_q  <= in1_range_q;
    end
  end

  // ---- fronts
  question_t ipv6_question, l2_question, extract_question, rofl_question, mpls_question, question;
  assign head_take_o = en_i && valid_i;
  if (Kinds[hue_kinds_pkg::KIND_IPV6]) begin : gen_ipv6
    ipv6_t ipv6, ipv6_q;
    hue_ipv6_check u_check (.head_i, .len_i(packet1_q.len), .ipv6_o(ipv6));
    always_ff @(posedge clk_i) if (en_i) ipv6_q <= ipv6;
    assign ipv6_question = '{
      asks: ipv6_q.asks, outcome: ipv6_q.outcome, total: 16'(ipv6_q.total), ttl: ipv6_q.hop_limit, checksum: '0, key: ipv6_q.dst,
      source: '0, hash: '0
    };
  end else begin : gen_no_ipv6
    assign ipv6_question = '0;
  end
  if (Kinds[hue_kinds_pkg::KIND_L2]) begin : gen_l2
    l2_t l2, l2_q;
    hue_l2_check u_check (.head_i, .len_i(packet1_q.len), .l2_o(l2));
    always_ff @(posedge clk_i) if (en_i) l2_q <= l2;
    assign l2_question = '{
      asks: l2_q.asks, outcome: l2_q.outcome, total: 16'(l2_q.payload), ttl: '0, checksum: '0, key: {l2_q.dst, l2_q.src, 32'd0},
      source: '0, hash: '0
    };
  end else begin : gen_no_l2
    assign l2_question = '0;
  end
  if (Kinds[hue_kinds_pkg::KIND_EXTRACT]) begin : gen_extract
    extract_t extract;
    hue_extract_check #(.Nets(Nets)) u_check (
      .clk_i, .rst_ni, .tbl_req_i, .tbl_rsp_o(lanes_rsp), .error_o(lanes_error), .wait_o(lanes_wait), .stall_o,
      .en_i, .valid_i(valid_i && !packet_i.decided && 32'(packet_i.net) < Nets), .net_i(packet_i.net[NetBits-1:0]),
      .head_i, .len_i(packet1_q.len), .extract_o(extract)
    );
    assign extract_question = '{
      asks: extract.asks, outcome: extract.outcome, total: 16'(extract.payload), ttl: '0, checksum: '0, key: extract.key, source: '0,
      hash: '0
    };
  end else begin : gen_no_extract
    assign extract_question = '0;
    assign lanes_rsp        = '0;
    assign {lanes_error, lanes_wait, stall_o} = '0;
  end
  if (HasMpls) begin : gen_mpls
    mpls_t mpls, mpls_q;
    hue_mpls_check u_check (.head_i, .len_i(packet1_q.len), .mpls_o(mpls));
    always_ff @(posedge clk_i) if (en_i) mpls_q <= mpls;
    assign mpls_question = '{
      asks: mpls_q.asks, outcome: mpls_q.outcome, total: 16'(mpls_q.payload), ttl: mpls_q.ttl, checksum: '0, key: {mpls_q.label, 108'd0},
      source: '0, hash: '0
    };
  end else begin : gen_no_mpls
    assign mpls_question = '0;
  end
  if (HasRofl) begin : gen_rofl
    rofl_settings_t settings;
    logic unused_gap;
    assign settings   = rofl_settings_t'(row_q.root_ipv6);
    assign unused_gap = ^settings.gap;
    hue_rofl_check #(.Nets(Nets)) u_check (
      .clk_i, .rst_ni, .tbl_req_i, .tbl_rsp_o(macs_rsp), .error_o(macs_error), .wait_o(macs_wait),
      .en_i, .valid_i, .net_i(packet_i.net[NetBits-1:0]), .port_i(packet_i.port_in[$clog2(MacPorts)-1:0]),
      .head_i, .len_i(packet1_q.len), .label_bytes_i(settings.label_bytes), .question_o(rofl_question)
    );
  end else begin : gen_no_rofl
    assign rofl_question = '0;
    assign macs_rsp      = '0;
    assign {macs_error, macs_wait} = '0;
  end
  if ((Kinds & ~(1 << hue_kinds_pkg::KIND_IPV4)) == 0) begin : gen_no_head
    logic unused_head;
    assign unused_head = ^head_i;
  end
  logic [HashBits-1:0] ipv4_hash, ipv6_hash;
  if (HasGroups) begin : gen_hash
    hue_toeplitz u_hash (.clk_i, .en_i, .head_i, .ipv4_o(ipv4_hash), .ipv6_o(ipv6_hash));
  end else begin : gen_no_hash
    assign {ipv4_hash, ipv6_hash} = '0;
  end
  // Sources, by fixed places too: in a packet with a question the header is where it should be.
  logic [127:0] source;
  if (HasPolicies) begin : gen_sources
    logic [127:0] long_q;
    logic [31:0] short_q;
    always_ff @(posedge clk_i) begin
      if (en_i) begin
        for (int unsigned i = 0; i < 16; i++) long_q[8*(15-i)+:8] <= head_i.bytes[22+i];
        for (int unsigned i = 0; i < 4; i++) short_q[8*(3-i)+:8] <= head_i.bytes[26+i];
      end
    end
    assign source = row_q.kind == 5'(hue_kinds_pkg::KIND_IPV6) ? long_q : {short_q, 96'd0};
  end else begin : gen_no_sources
    logic unused_policies;
    assign unused_policies = row_q.policies;
    assign source = '0;
  end
  // Packets that may come out of a tunnel, by fixed places: others go to software. hue_tunnel reads the rest.
  logic tunnel;
  if (Tunnels) begin : gen_tunnels
    logic wide, vxlan, ipip, vxlan_q, ipip_q;
    logic [7:0] protocol;
    logic [15:0] port;
    assign wide     = {head_i.bytes[12], head_i.bytes[13]} == EthertypeIpv6;
    assign protocol = wide ? head_i.bytes[20] : head_i.bytes[23];
    assign port     = wide ? {head_i.bytes[56], head_i.bytes[57]} : {head_i.bytes[36], head_i.bytes[37]};
    assign ipip     = protocol == ProtocolIpip || protocol == ProtocolIpv6;
    assign vxlan    = protocol == ProtocolUdp && port == VxlanPort;
    always_ff @(posedge clk_i) if (en_i) {vxlan_q, ipip_q} <= {vxlan, ipip};
    assign tunnel   = (vxlan_q && row_q.carries_vxlan) || (ipip_q && row_q.carries_ipip);
  end else begin : gen_no_tunnels
    logic unused_carries;
    assign unused_carries = row_q.carries_vxlan ^ row_q.carries_ipip;
    assign tunnel = 1'b0;
  end
  question_t ipv4_question, dual_question, splice_question;
  splice_edit_t splice_edit;
  logic [35:0] dual_root;
  logic [4:0] dual_kind;
  assign ipv4_question = question_of_ipv4(ipv4_q, row_q.forward_martians);
  if (HasDual) begin : gen_dual
    hue_dual_check u_dual (
      .ipv4_i(ipv4_question), .ipv6_i(ipv6_question), .ipv4_root_i(row_q.root), .ipv6_root_i(row_q.root_ipv6),
      .kind_o(dual_kind), .question_o(dual_question), .root_o(dual_root)
    );
  end else begin : gen_no_dual
    logic unused_root;
    assign unused_root   = ^row_q.root_ipv6;
    assign dual_question = '0;
    assign dual_root     = '0;
    assign dual_kind     = '0;
  end
  if (HasSplice) begin : gen_splice
    splice_head_t splice_q;
    always_ff @(posedge clk_i) begin
      if (en_i) begin
        splice_q <= '{
          fragment: {head_i.bytes[20][5:0], head_i.bytes[21]} != '0, dont_fragment: head_i.bytes[20][6],
          experiment: head_i.bytes[23] == ProtocolExperiment, id: {head_i.bytes[18], head_i.bytes[19]},
          shim_version: head_i.bytes[35][7:4], shim_low: head_i.bytes[41][3:0]
        };
      end
    end
    hue_splice_check u_check (
      .ipv4_i(ipv4_q), .head_i(splice_q), .settings_i(splice_settings_t'(row_q.root_ipv6)), .forward_martians_i(row_q.forward_martians),
      .question_o(splice_question), .edit_o(splice_edit)
    );
  end else begin : gen_no_splice
    assign splice_question = '0;
    assign splice_edit     = '0;
  end
  logic is_dual, is_splice;
  assign is_splice = HasSplice && row_q.kind == 5'(hue_kinds_pkg::KIND_SPLICE);
  assign is_dual = HasDual && row_q.kind == 5'(hue_kinds_pkg::KIND_DUAL);
  always_comb begin
    case (row_q.kind)
      5'(hue_kinds_pkg::KIND_IPV6): question = ipv6_question;
      5'(hue_kinds_pkg::KIND_L2):   question = l2_question;
      5'(hue_kinds_pkg::KIND_EXTRACT): question = extract_question;
      5'(hue_kinds_pkg::KIND_ROFL): question = rofl_question;
      5'(hue_kinds_pkg::KIND_MPLS): question = HasMpls ? mpls_question : ipv4_question;
      5'(hue_kinds_pkg::KIND_SPLICE): question = HasSplice ? splice_question : ipv4_question;
      5'(hue_kinds_pkg::KIND_DUAL): question = HasDual ? dual_question : ipv4_question;
      default:                      question = ipv4_question;
    endcase
  end

  assign known = Kinds[row_q.kind];
  always_comb begin
    // A frame returned by a software plane needs only a network in range; an undecided one also a valid row.
    nobody  = packet_q.decided ? packet_q.verdict == VerdictForward && !in_range_q :
                                !row_q.valid || !in_range_q || !(known || row_q.software);
    claimed = !nobody && !(packet_q.decided && packet_q.verdict == VerdictUnclaimed);
    named           = packet_q;
    named.vid       = row_q.vid;
    named.plane     = row_q.plane;
    named.root      = is_dual ? dual_root : row_q.root;
    named.hop_base  = row_q.hop_base;
    named.hop_count = row_q.hop_count;
    named.tunnel    = tunnel;
    named.policies  = HasPolicies && row_q.policies;
    named.kind      = is_dual ? dual_kind : row_q.kind;
    named.dual      = is_dual && claimed;
`ifdef HUE_PLANT_NETWORK_KIND
    named.question  = ipv4_question;  // for scripts/rtl-test and scripts/formal
`else
    named.question  = question;
`endif
    named.splice    = is_splice ? splice_edit : '0;
    if (!HasRofl || named.kind != 5'(hue_kinds_pkg::KIND_ROFL)) named.question.source = source;
    named.question.hash = '0;
    if (HasGroups && named.kind == 5'(hue_kinds_pkg::KIND_IPV6)) named.question.hash = ipv6_hash;
    else if (HasGroups && (is_splice || named.kind == 5'(hue_kinds_pkg::KIND_IPV4))) named.question.hash = ipv4_hash;
    if (nobody) begin
      named.decided = 1'b1;
      named.verdict = VerdictUnclaimed;
      named.outcome = hue_kinds_pkg::UNCLAIMED_NO_NETWORK;
    end else if (!packet_q.decided && row_q.software) begin
      named.decided = 1'b1;
      named.verdict = VerdictPunt;
      named.outcome = OutcomeNone;
    end else if (!packet_q.decided && row_q.gated) begin
      named.decided = 1'b1;
      named.verdict = VerdictDrop;
      named.outcome = hue_kinds_pkg::OUTCOME_GATED;
    end else if (!packet_q.decided && gates_i[{1'b0, row_q.plane}]) begin
      named.decided = 1'b1;
      named.verdict = gated_to_cpu_i ? VerdictPunt : VerdictDrop;
      named.outcome = gated_to_cpu_i ? OutcomeNone : hue_kinds_pkg::OUTCOME_GATED;
    end
    if (!claimed) begin
      named.net   = '0;
      named.vport = '0;
      named.vid   = '0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (en_i) begin
      packet_o  <= named;
      time_ns_o <= time2_ns_q;
    end
  end

`ifndef SYNTHESIS
  hue_latency #(.Clocks(3)) u_latency (.clk_i, .rst_ni, .en_i, .in_i(valid_i), .out_i(valid_o));
`endif
endmodule
