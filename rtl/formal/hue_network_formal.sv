// Proof harness of hue_network: the result for a network's packet is a function of the packet and of the network's row. Other
// networks' rows and packets do not affect it.
//
// Place: scripts/formal. Two copies run in lockstep and get the same packets of network A and the same accesses to its row. Every
// other packet and access is independent in each copy, and so are the gates of other planes, and the head vectors of other packets.
// A's row is `row_i` or not yet written, or A is beyond the card's networks. The harness has its own description of the result
// (`becomes`). The image has the kinds ipv4, ipv6, l2, dual, extract and rofl, and with `Splice` also splice, with `Mpls` also mpls; the fronts of ipv6, l2,
// extract, rofl and mpls, and the hash, are any/hue_ipv6_check.sv, any/hue_l2_check.sv, any/hue_extract_check.sv, any/hue_rofl_check.sv,
// any/hue_mpls_check.sv and any/hue_toeplitz.sv, unknown functions of the whole vector and of the length, those of extract and rofl also of the network, and that of rofl of the port and of
// its setting.
module hue_network_formal
  import hue_pkg::*;
  import hue_regs_pkg::*;
  import hue_stages_pkg::*;
#(
  parameter int unsigned Nets = 4,
  parameter bit          Tunnels = 1'b0,
  parameter bit          Policies = 1'b0,
  parameter bit          Splice = 1'b0,
  parameter bit          Mpls = 1'b0
) (
  input logic                clk_i,
  input logic                rst_ni,
  // Sampled during reset: any constants.
  input logic [7:0]          net_i,
  input row_network_t        row_i,
  input logic                gate_i,
  input logic                gated_to_cpu_i,
  // Common to both copies.
  input logic                en_i,
  input logic                of_a_i,
  input logic                access_of_a_i,
  input packet_t             packet_a_i,
  input ipv4_t               ipv4_a_i,
  input hue_head_bytes_t     head_a_i,
  input logic [63:0]         time_ns_i,
  input tbl_req_t            request_a_i,
  // One for each copy.
  input logic [1:0]          valid_i,
  input packet_t [1:0]       packet_i,
  input ipv4_t [1:0]         ipv4_i,
  input hue_head_bytes_t [1:0] head_i,
  input tbl_req_t [1:0]      request_i,
  input logic [1:0][31:0]    gates_i
);
  logic         begun_q, gate_q, to_cpu_q;
  logic [7:0]   net_q;
  row_network_t row_q;

  localparam int unsigned Kinds = 1 << hue_kinds_pkg::KIND_IPV4 | 1 << hue_kinds_pkg::KIND_IPV6 | 1 << hue_kinds_pkg::KIND_L2 |
                                  1 << hue_kinds_pkg::KIND_DUAL | 1 << hue_kinds_pkg::KIND_EXTRACT | 1 << hue_kinds_pkg::KIND_ROFL |
                                  32'(Splice) << hue_kinds_pkg::KIND_SPLICE | 32'(Mpls) << hue_kinds_pkg::KIND_MPLS;
  packet_t [1:0]     in, out;
  ipv4_t [1:0]       in_ipv4;
  hue_head_bytes_t [1:0] head;
  logic [1:0]        take;
  logic              of_a_q, of_a2_q, of_a3_q;
  hue_head_bytes_t   head_q;
  tbl_req_t [1:0]    request;
  tbl_rsp_t [1:0]    response;
  logic [1:0][31:0]  gates;
  logic [1:0][63:0]  time_ns;
  logic [1:0]        valid, out_valid, waits, waits_q, stalls, error, mine;
  logic [2:0]        asked_q;  // clocks that A's access has waited
  always_comb begin
    for (int unsigned s = 0; s < 2; s++) begin
      in[s] = packet_i[s];
      valid[s] = valid_i[s];
      in_ipv4[s] = ipv4_i[s];
      // The vector of A's packet is there from the clock after its taking on, until another is taken.
      head[s] = of_a_q ? head_q : head_i[s];
      if (of_a_i) begin
        in_ipv4[s] = ipv4_a_i;
        in[s] = packet_a_i;
        in[s].net = net_q;
        valid[s] = 1'b1;
      end
      request[s] = access_of_a_i ? request_a_i : request_i[s];
      mine[s] = request[s].valid && request[s].id == TABLE_NETWORK && 32'(request[s].index) < Nets;
      // The gate of A's plane is the same for both.
      gates[s] = gates_i[s];
      gates[s][{1'b0, row_q.plane}] = gate_q;
    end
  end

  for (genvar s = 0; s < 2; s++) begin : g_side
    hue_network #(.Nets(Nets), .Kinds(Kinds), .HasGroups(1'b1), .Tunnels(Tunnels), .HasPolicies(Policies)) u_dut (
      .clk_i, .rst_ni, .tbl_req_i(request[s]), .tbl_rsp_o(response[s]), .error_o(error[s]), .wait_o(waits[s]), .stall_o(stalls[s]),
      .gates_i(gates[s]), .gated_to_cpu_i(to_cpu_q), .en_i, .valid_i(valid[s]), .packet_i(in[s]), .ipv4_i(in_ipv4[s]), .time_ns_i,
      .head_take_o(take[s]), .head_i(head[s]),
      .valid_o(out_valid[s]), .packet_o(out[s]), .time_ns_o(time_ns[s])
    );
    hue_access_rules u_access (
      .clk_i, .rst_ni, .tbl_req_i(request[s]), .mine_i(mine[s]), .done_i(response[s].done)
    );
    always_comb begin
      // A copy's own accesses and packets are not A's.
      if (begun_q && mine[s] && !access_of_a_i) assume (32'(request[s].index) != 32'(net_q));
      if (begun_q && waits_q[s]) assume (!en_i);
      if (begun_q && !of_a_i && valid[s]) assume (in[s].net != net_q);
    end
  end

  always_ff @(posedge clk_i) waits_q <= rst_ni ? waits : '0;

  // A packet's row is read when it enters: A's row, or zeros until that is written. It is written only while no packet moves.
  typedef struct packed {
    packet_t      packet;
    ipv4_t        ipv4;
    question_t    ipv6;
    question_t    l2;
    question_t    extract;
    question_t    rofl;
    question_t    mpls;
    row_network_t row;
    logic [63:0]  time_ns;
    logic [HashBits-1:0] ipv4_hash;
    logic [HashBits-1:0] ipv6_hash;
    logic         ipip;   // the packet may be of a tunnel of this type
    logic         vxlan;
    logic [127:0] short_source;  // the address at the place of an IPv4 source, and of an IPv6 source
    logic [127:0] long_source;
    splice_head_t splice;  // what the front of kind splice reads
  } entry_t;
  logic         written_q, wrote;
  entry_t [3:1] entry_q;
  assign wrote = waits_q[0] && access_of_a_i && request_a_i.write;

  function automatic packet_t becomes(entry_t entry, question_t splice_question, splice_edit_t splice_edit, logic gate, logic to_cpu);
    packet_t      p;
    row_network_t r;
    logic         whose;  // the packet belongs to a network
    logic         spliced;  // that is of kind splice
    logic         dual, six;  // that is of kind dual, and the packet is IPv6
    p = entry.packet;
    r = entry.row;
    // A frame that a software plane returned may name a network that does not exist. An unclaimed packet stays unclaimed.
    if (p.decided) whose = p.verdict != VerdictUnclaimed && (p.verdict != VerdictForward || 32'(p.net) < Nets);
    else whose = r.valid && (r.software || r.kind inside {5'(hue_kinds_pkg::KIND_IPV4), 5'(hue_kinds_pkg::KIND_IPV6),
                                                              5'(hue_kinds_pkg::KIND_L2), 5'(hue_kinds_pkg::KIND_DUAL),
                                                              5'(hue_kinds_pkg::KIND_EXTRACT), 5'(hue_kinds_pkg::KIND_ROFL)} || (Splice && r.kind == 5'(hue_kinds_pkg::KIND_SPLICE)) ||
                                                              (Mpls && r.kind == 5'(hue_kinds_pkg::KIND_MPLS)));
    spliced = whose && Splice && r.kind == 5'(hue_kinds_pkg::KIND_SPLICE);
    dual = whose && r.kind == 5'(hue_kinds_pkg::KIND_DUAL);
    six = dual && entry.ipv6.outcome != hue_kinds_pkg::IPV6_ETHERTYPE;
    becomes = '{
      port_in: p.port_in, len: p.len, decided: p.decided, verdict: p.verdict, outcome: p.outcome,
      port_out: p.port_out, net: whose ? p.net : '0, vport: whose ? p.vport : '0, vid: whose ? r.vid : '0,
      plane: whose ? r.plane : '0, root: !whose ? '0 : six ? r.root_ipv6 : r.root, hop_base: whose ? r.hop_base : '0,
      hop_count: whose ? r.hop_count : '0, dual: dual,
      kind: !whose ? '0 : six ? 5'(hue_kinds_pkg::KIND_IPV6) : dual ? 5'(hue_kinds_pkg::KIND_IPV4) : r.kind,
      question: !whose ? '0 : six || r.kind == 5'(hue_kinds_pkg::KIND_IPV6) ? entry.ipv6 : r.kind == 5'(hue_kinds_pkg::KIND_L2) ? entry.l2 :
                r.kind == 5'(hue_kinds_pkg::KIND_EXTRACT) ? entry.extract : r.kind == 5'(hue_kinds_pkg::KIND_ROFL) ? entry.rofl : spliced ? splice_question :
                Mpls && r.kind == 5'(hue_kinds_pkg::KIND_MPLS) ? entry.mpls :
                ipv4_question(entry.ipv4, r.forward_martians),
      flood: p.flood, ports: p.ports, note: p.note, label: p.label, splice: spliced ? splice_edit : '0,
      policies: whose && r.policies, tunnel: whose && ((r.carries_ipip && entry.ipip) || (r.carries_vxlan && entry.vxlan))
    };
    becomes.question.hash = !whose ? '0 : becomes.kind == 5'(hue_kinds_pkg::KIND_IPV6) ? entry.ipv6_hash :
                            becomes.kind == 5'(hue_kinds_pkg::KIND_IPV4) || spliced ? entry.ipv4_hash : '0;
    // Of kind `dual` no network has routes by source; in its place kind `rofl` has the sender.
    if (whose && r.kind == 5'(hue_kinds_pkg::KIND_ROFL)) becomes.question.source = entry.rofl.source;
    else if (whose && Policies) becomes.question.source = r.kind == 5'(hue_kinds_pkg::KIND_IPV6) ? entry.long_source : entry.short_source;
    if (!whose && !(p.decided && p.verdict == VerdictUnclaimed)) begin
      becomes.decided = 1'b1;
      becomes.verdict = VerdictUnclaimed;
      becomes.outcome = hue_kinds_pkg::UNCLAIMED_NO_NETWORK;
    end
    if (whose && !p.decided && (r.software || r.gated || gate)) begin
      becomes.decided = 1'b1;
      becomes.verdict = r.software || (to_cpu && !r.gated) ? VerdictPunt : VerdictDrop;
      becomes.outcome = becomes.verdict == VerdictPunt ? OutcomeNone : hue_kinds_pkg::OUTCOME_GATED;
    end
  endfunction

  // The question of kind ipv4, as crates/planes/src/ipv4.rs asks it.
  function automatic question_t ipv4_question(ipv4_t f, logic forward_martians);
    ipv4_question = '{asks: 1'b0, outcome: f.outcome, total: f.total, ttl: f.ttl, checksum: f.checksum, key: {f.dst, 96'd0}, source: '0, hash: '0};
    if (f.outcome == OutcomeNone) begin
      ipv4_question.asks = !f.group;
      ipv4_question.outcome = f.group ? hue_kinds_pkg::IPV4_LOCAL :
                              f.l2_group ? hue_kinds_pkg::IPV4_L2_GROUP :
                              f.martian_source && !forward_martians ? hue_kinds_pkg::IPV4_MARTIAN_SOURCE :
                              f.martian_destination && !forward_martians ? hue_kinds_pkg::IPV4_MARTIAN_DESTINATION :
                              f.expires ? hue_kinds_pkg::IPV4_TTL :
                              f.options ? hue_kinds_pkg::IPV4_OPTIONS : OutcomeNone;
    end
  endfunction

  // The fronts of kinds ipv6, l2, mpls and extract for A's packet, from its vector and its length. That of extract takes a clock more, and no
  // packet that is decided, or of a network that the card does not have.
  ipv6_t     ipv6;
  l2_t       l2;
  extract_t  extract;
  question_t ipv6_question, l2_question, extract_question, rofl_question, mpls_question;
  hue_ipv6_check u_ipv6 (.head_i(head_q), .len_i(entry_q[1].packet.len), .ipv6_o(ipv6));
  hue_l2_check u_l2 (.head_i(head_q), .len_i(entry_q[1].packet.len), .l2_o(l2));
  assign ipv6_question = '{
    asks: ipv6.asks, outcome: ipv6.outcome, total: 16'(ipv6.total), ttl: ipv6.hop_limit, checksum: '0, key: ipv6.dst,
    source: '0, hash: '0
  };
  assign l2_question = '{
    asks: l2.asks, outcome: l2.outcome, total: 16'(l2.payload), ttl: '0, checksum: '0, key: {l2.dst, l2.src, 32'd0},
    source: '0, hash: '0
  };
  if (Mpls) begin : g_mpls
    mpls_t mpls;
    hue_mpls_check u_mpls (.head_i(head_q), .len_i(entry_q[1].packet.len), .mpls_o(mpls));
    assign mpls_question = '{
      asks: mpls.asks, outcome: mpls.outcome, total: 16'(mpls.payload), ttl: mpls.ttl, checksum: '0, key: {mpls.label, 108'd0},
      source: '0, hash: '0
    };
  end else begin : g_no_mpls
    assign mpls_question = '0;
  end
  localparam int unsigned NetBits = $clog2(Nets);
  tbl_rsp_t unused_rsp;
  logic     unused_error, unused_wait, unused_stall;
  hue_extract_check #(.Nets(Nets)) u_extract (
    .clk_i, .rst_ni, .tbl_req_i('0), .tbl_rsp_o(unused_rsp), .error_o(unused_error), .wait_o(unused_wait), .stall_o(unused_stall),
    .en_i, .valid_i(of_a_i && !packet_a_i.decided && 32'(net_q) < Nets), .net_i(net_q[NetBits-1:0]),
    .head_i(head_q), .len_i(entry_q[1].packet.len), .extract_o(extract)
  );
  assign extract_question = '{
    asks: extract.asks, outcome: extract.outcome, total: 16'(extract.payload), ttl: '0, checksum: '0, key: extract.key, source: '0, hash: '0
  };
  // That of rofl also gets the port, and a setting of A's row.
  tbl_rsp_t unused_macs_rsp;
  logic     unused_macs_error, unused_macs_wait;
  hue_rofl_check #(.Nets(Nets)) u_rofl (
    .clk_i, .rst_ni, .tbl_req_i('0), .tbl_rsp_o(unused_macs_rsp), .error_o(unused_macs_error), .wait_o(unused_macs_wait),
    .en_i, .valid_i(of_a_i), .net_i(net_q[NetBits-1:0]), .port_i(packet_a_i.port_in[1:0]),
    .head_i(head_q), .len_i(entry_q[1].packet.len), .label_bytes_i(entry_q[2].row.root_ipv6[4:0]), .question_o(rofl_question)
  );
  // The type of tunnel that the vector of A's packet says, in an image with tunnels.
  logic ipip, vxlan;
  if (Tunnels) begin : g_tunnels
    logic        wide;
    logic [7:0]  protocol;
    logic [15:0] port;
    assign wide = {head_q.bytes[12], head_q.bytes[13]} == EthertypeIpv6;
    assign protocol = head_q.bytes[wide ? 20 : 23];
    assign port = {head_q.bytes[wide ? 56 : 36], head_q.bytes[wide ? 57 : 37]};
    assign ipip = protocol inside {8'd4, 8'd41};
    assign vxlan = protocol == 8'd17 && port == 16'd4789;
  end else begin : g_no_tunnels
    assign {ipip, vxlan} = '0;
  end
  // The source that the vector of A's packet says, in an image with routes by source.
  logic [127:0] short_source, long_source;
  if (Policies) begin : g_policies
    assign short_source = {head_q.bytes[26], head_q.bytes[27], head_q.bytes[28], head_q.bytes[29], 96'd0};
    always_comb for (int unsigned i = 0; i < 16; i++) long_source[127-8*i-:8] = head_q.bytes[22+i];
  end else begin : g_no_policies
    assign {short_source, long_source} = '0;
  end
  // What the vector of A's packet says to the front of kind splice, and its result for A's row (the proof `splice_check` covers it).
  splice_head_t splice_head;
  question_t    splice_question;
  splice_edit_t splice_edit;
  if (Splice) begin : g_splice
    assign splice_head = '{
      fragment: head_q.bytes[20][5:0] != '0 || head_q.bytes[21] != '0, dont_fragment: head_q.bytes[20][6],
      experiment: head_q.bytes[23] == 8'd253, id: {head_q.bytes[18], head_q.bytes[19]}, shim_version: head_q.bytes[35][7:4],
      shim_low: head_q.bytes[41][3:0]
    };
    hue_splice_check u_splice (
      .ipv4_i(entry_q[3].ipv4), .head_i(entry_q[3].splice),
      .settings_i('{gap: '0, shim: entry_q[3].row.root_ipv6[4], last: entry_q[3].row.root_ipv6[3:0]}),
      .forward_martians_i(entry_q[3].row.forward_martians), .question_o(splice_question), .edit_o(splice_edit)
    );
  end else begin : g_no_splice
    assign splice_head = '0;
    assign splice_question = '0;
    assign splice_edit = '0;
  end
  // The hashes for A's packet, one clock after its vector.
  logic [HashBits-1:0] ipv4_hash, ipv6_hash;
  hue_toeplitz u_hash (.clk_i, .en_i, .head_i(head_q), .ipv4_o(ipv4_hash), .ipv6_o(ipv6_hash));

  initial begun_q = 1'b0;
  always_ff @(posedge clk_i) begin
    begun_q <= 1'b1;
    if (en_i && of_a_i) head_q <= head_a_i;
    if (!rst_ni) written_q <= 1'b0;
    else if (wrote) written_q <= 1'b1;
    asked_q <= rst_ni && mine[0] && access_of_a_i && !response[0].done ? asked_q + 3'd1 : '0;
    if (en_i) begin
      entry_q[3] <= entry_q[2];
      entry_q[3].ipv4_hash <= ipv4_hash;
      entry_q[3].ipv6_hash <= ipv6_hash;
      entry_q[3].extract <= extract_question;
      entry_q[3].rofl <= rofl_question;
      entry_q[2] <= entry_q[1];
      entry_q[2].ipv6 <= ipv6_question;
      entry_q[2].l2 <= l2_question;
      entry_q[2].mpls <= mpls_question;
      {entry_q[2].ipip, entry_q[2].vxlan} <= {ipip, vxlan};
      entry_q[2].splice <= splice_head;
      {entry_q[2].short_source, entry_q[2].long_source} <= {short_source, long_source};
      entry_q[1] <= '{
        packet: in[0], ipv4: in_ipv4[0], ipv6: '0, l2: '0, extract: '0, rofl: '0, mpls: '0,
        row: written_q && 32'(net_q) < Nets ? row_q : '0, time_ns: time_ns_i,
        ipv4_hash: '0, ipv6_hash: '0, ipip: 1'b0, vxlan: 1'b0, short_source: '0, long_source: '0,
        splice: '0
      };
    end
    if (!rst_ni) begin
      net_q <= net_i;
      row_q <= row_i;
      // Only images with tunnels have these fields.
      if (!Tunnels) {row_q.carries_ipip, row_q.carries_vxlan} <= '0;
      if (!Policies) row_q.policies <= 1'b0;
      gate_q <= gate_i;
      to_cpu_q <= gated_to_cpu_i;
      of_a_q <= 1'b0;
      of_a2_q <= 1'b0;
      of_a3_q <= 1'b0;
    end else if (en_i) begin
      of_a_q <= of_a_i;
      of_a2_q <= of_a_q;
      of_a3_q <= of_a2_q;
    end
  end

  // Fields that have no meaning for a packet that belongs to no network.
  packet_t [1:0] counts;
  always_comb begin
    counts = out;
    for (int unsigned s = 0; s < 2; s++) begin
      if (out[s].verdict == VerdictUnclaimed && out[s].decided) begin
        {counts[s].plane, counts[s].root, counts[s].hop_base, counts[s].hop_count, counts[s].kind, counts[s].question, counts[s].tunnel,
         counts[s].policies, counts[s].splice} = '0;
      end
    end
  end

  always_comb begin
    assume (rst_ni == begun_q);
    // Verdicts that design select gives.
    if (of_a_i && packet_a_i.decided) assume (packet_a_i.verdict inside {VerdictForward, VerdictUnclaimed});
    if (begun_q && access_of_a_i) begin
      assume (request_a_i.valid && request_a_i.id == TABLE_NETWORK && 32'(request_a_i.index) == 32'(net_q));
      if (request_a_i.write) assume (request_a_i.wdata[$bits(row_network_t)-1:0] == row_q && !of_a_q);
    end
    if (begun_q && of_a3_q && waits_q == '0) begin
      assert (out_valid == '1);
      assert (counts[0] == counts[1] && time_ns[0] == time_ns[1]);
      assert (counts[0] == becomes(entry_q[3], splice_question, splice_edit, gate_q, to_cpu_q) && time_ns[0] == entry_q[3].time_ns);
    end
    // A vector is taken for each packet.
    if (begun_q) assert (take == (en_i ? valid : '0));
    // The host is answered, with the contents of the row.
    if (begun_q) assert (asked_q < 3'd6);
    if (begun_q && response[0].done && mine[0] && access_of_a_i) begin
      assert (response[0].error == (request_a_i.clear ? TABLE_ERROR_REFUSED : TABLE_ERROR_NONE));
      assert (response[0].rdata == (request_a_i.write || request_a_i.clear || !written_q ? '0 : 256'(row_q)));
    end
  end
  logic unused;
  assign unused = ^{error, stalls, unused_rsp, unused_error, unused_wait, unused_stall, unused_macs_rsp, unused_macs_error, unused_macs_wait};
endmodule
