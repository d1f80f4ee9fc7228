// Proof harness of hue_routes: the verdict on a packet depends only on the packet, its route and that route's next hop, whatever packets
// come before and after it.
//
// Place: scripts/formal. Inputs are free. Routes are arbitrary (any/hue_tcam_plane.sv, any/hue_dag36.sv, any/hue_dag36_sram.sv),
// and so are groups, which layout sram has (any/hue_groups.sv). The host
// writes the rows of next hops, and the harness stores them too. With layout sram, packets are of kind ipv4, ipv6, l2, extract, rofl, splice or mpls; those of kind
// l2 ask no route. The marked packet comes in in clock `Start`; any number of packets may come before it.
module hue_routes_formal
  import hue_pkg::*;
  import hue_kinds_pkg::*;
  import hue_regs_pkg::*;
  import hue_stages_pkg::*;
#(
  parameter int unsigned Layout = 32'(LAYOUT_DAG36),
  parameter int unsigned Start = 5
) (
  input logic             clk_i,
  input logic             rst_ni,
  input tbl_req_t         tbl_req_i,
  input logic [31:0]      gates_i,
  input logic             en_i,
  input logic             valid_i,
  input packet_t          packet_i,
  input logic [1:0][35:0] sram_rdata_i,
  input logic             sram_fault_clear_i
);
  localparam bit Tcam = Layout == 32'(LAYOUT_TCAM);
  localparam bit Sram = Layout == 32'(LAYOUT_SRAM);
  localparam int unsigned Kinds = Sram ? 1 << KIND_IPV4 | 1 << KIND_IPV6 | 1 << KIND_L2 | 1 << KIND_DUAL | 1 << KIND_EXTRACT | 1 << KIND_ROFL |
                                         1 << KIND_SPLICE | 1 << KIND_MPLS : 1 << KIND_IPV4;
  localparam int unsigned Planes = Tcam ? 2 : 1;
  localparam int unsigned HopRows = 2;
  localparam int unsigned LevelWords = 2;
  tbl_rsp_t     tbl_rsp_o;
  logic         error_o, wait_o, stall_o, valid_o;
  hue_verdict_t verdict_o;
  sram_req_t    sram_req_o;
  sram_state_t  sram_state_o;
  hue_routes #(
    .Kinds(Kinds), .Layout(Layout), .Planes(Planes), .HopRows(HopRows), .SramWords(4), .Level0Words(LevelWords), .Level1Words(LevelWords),
    .Level2Words(LevelWords), .Level3Words(LevelWords), .SlotRows(Sram ? 2 : 0), .Tunnels(Sram)
  ) u_dut (.*);

  // Stages that hold a packet, and the stage of the marked one. They move only in clocks with `en_i`.
  localparam int unsigned GroupLatency = 3;  // of any/hue_groups.sv
  localparam int unsigned Latency = Tcam ? 6 : Sram ? 7 + GroupLatency : 7;
  logic             begun_q, mark;
  logic [3:0]       clock_q;
  logic [Latency:1] inside_q, mark_q;
  packet_t          packet_q;
  assign mark = en_i && valid_i && clock_q == 4'(Start);
  initial begun_q = 1'b0;
  always_ff @(posedge clk_i) begin
    begun_q <= 1'b1;
    if (mark) packet_q <= packet_i;
    if (!rst_ni) begin
      {inside_q, mark_q, clock_q} <= '0;
    end else begin
      clock_q <= clock_q + 4'd1;
      if (en_i) {inside_q, mark_q} <= {inside_q[Latency-1:1], valid_i, mark_q[Latency-1:1], mark};
    end
  end

  // The marked packet's next hop, by its route; zero if it has no route.
  row_hop_t hop;
  logic     has_hop;        // the row of this next hop was written, or there is none
  logic     mine;           // the access is to a table of this module
  tbl_rsp_t planes_rsp;
  if (Tcam) begin : g_tcam
    row_hop_t [Planes-1:0] hops;
    tbl_rsp_t [Planes-1:0] rsps;
    for (genvar p = 0; p < Planes; p++) begin : g_plane
      assign hops[p] = packet_q.plane == 4'(p) && ((packet_q.question.key[127:96] ^ u_dut.gen_tcam.gen_plane[p].u_plane.route_q.value) &
                       u_dut.gen_tcam.gen_plane[p].u_plane.route_q.mask) == '0 ? u_dut.gen_tcam.gen_plane[p].u_plane.route_q.hop : '0;
      assign rsps[p] = u_dut.gen_tcam.gen_plane[p].u_plane.rsp;
      always_comb begin
        if (begun_q) assert (u_dut.gen_tcam.gen_plane[p].u_plane.tbl_req_i == tbl_req_i);
        if (begun_q) assert (u_dut.gen_tcam.gen_plane[p].u_plane.gate_i == gates_i[p]);
        if (!mine) assume (rsps[p] == '0);
      end
    end
    assign hop = hops[0] | hops[1];
    assign planes_rsp = rsps[0] | rsps[1];
    assign mine = tbl_req_i.valid && tbl_req_i.id inside {TABLE_ROUTE, TABLE_LOCAL, TABLE_HOP};
    assign has_hop = 1'b1;
  end else if (Sram) begin : g_sram
    row_hop_t [HopRows-1:0] rows_q;
    logic     [HopRows-1:0] known_q;  // rows that were written
    logic [15:0] found, word;
    logic [16:0] at;
    logic        own, writes;
    // The route's next hop, or the member of its group.
    assign word = {found, packet_q.hop_base, packet_q.hop_count, packet_q.net, packet_q.question.hash} == {
                  u_dut.gen_shared.gen_groups.u_groups.chosen_q.hop, u_dut.gen_shared.gen_groups.u_groups.chosen_q.hop_base,
                  u_dut.gen_shared.gen_groups.u_groups.chosen_q.hop_count, u_dut.gen_shared.gen_groups.u_groups.chosen_q.net,
                  u_dut.gen_shared.gen_groups.u_groups.chosen_q.hash} ?
                  u_dut.gen_shared.gen_groups.u_groups.chosen_q.member : found;
    assign found = u_dut.gen_shared.gen_sram.u_dag36.route_q.item == packet_q.root &&
                  u_dut.gen_shared.gen_sram.u_dag36.route_q.key == packet_q.question.key ?
                  u_dut.gen_shared.gen_sram.u_dag36.route_q.hop : '1;
    assign at = 17'(packet_q.hop_base) + 17'(word);
    assign own = word < packet_q.hop_count && 32'(at) < HopRows;
    assign hop = own ? rows_q[at[0]] : '0;
    assign has_hop = !own || known_q[at[0]];
    assign mine = tbl_req_i.valid && tbl_req_i.id == TABLE_HOP;
    assign writes = mine && 32'(tbl_req_i.index) < HopRows && !tbl_req_i.clear && tbl_req_i.write;
    assign planes_rsp = '0;
    always_ff @(posedge clk_i) begin
      if (!rst_ni) known_q <= '0;
      else if (writes) known_q[tbl_req_i.index[0]] <= 1'b1;
      if (rst_ni && writes) rows_q[tbl_req_i.index[0]] <= tbl_req_i.wdata[$bits(row_hop_t)-1:0];
    end
    always_comb begin
      // Rows are not written while the packet is inside. The proof `routes_dag36` covers the host's other accesses.
      if (mine && tbl_req_i.write) assume (inside_q == '0 && !valid_i);
      if (tbl_req_i.valid) assume (tbl_req_i.id != TABLE_SRAM);
    end
  end else begin : g_dag36
    row_hop_t [HopRows-1:0] rows_q;
    logic     [HopRows-1:0] known_q;  // rows that were written
    logic [15:0] word;
    logic [16:0] at;
    logic        of_hops, of_level, found, can, own;
    logic        started;  // an access is passed to the trie
    logic [2:0]  asked_q;
    logic [35:0] word_q;
    assign found = u_dut.gen_shared.gen_dag36.u_dag36.route_q.item == packet_q.root &&
                   u_dut.gen_shared.gen_dag36.u_dag36.route_q.key == packet_q.question.key[127:96];
    assign word = found ? u_dut.gen_shared.gen_dag36.u_dag36.route_q.hop : '1;
    assign at = 17'(packet_q.hop_base) + 17'(word);
    assign own = word < packet_q.hop_count && 32'(at) < HopRows;
    assign hop = own ? rows_q[at[0]] : '0;
    assign has_hop = !own || known_q[at[0]];
    assign of_hops = tbl_req_i.valid && tbl_req_i.id == TABLE_HOP;
    assign of_level = tbl_req_i.valid && tbl_req_i.id inside {TABLE_LEVEL0, TABLE_LEVEL1, TABLE_LEVEL2, TABLE_LEVEL3};
    assign mine = of_hops || of_level;
    assign can = 32'(tbl_req_i.index) < (of_hops ? HopRows : LevelWords) && !tbl_req_i.clear;
    assign started = u_dut.gen_shared.gen_dag36.host_en;
    assign planes_rsp = '0;
    // What the host must be answered: the rows it wrote, or the word that the trie gave.
    always_ff @(posedge clk_i) begin
      asked_q <= rst_ni && mine && !tbl_rsp_o.done ? asked_q + 3'(asked_q != '1) : '0;
      if (!rst_ni) known_q <= '0;
      else if (of_hops && can && tbl_req_i.write) known_q[tbl_req_i.index[0]] <= 1'b1;
      if (rst_ni && of_hops && can && tbl_req_i.write) rows_q[tbl_req_i.index[0]] <= tbl_req_i.wdata[$bits(row_hop_t)-1:0];
      if (u_dut.gen_shared.gen_dag36.u_dag36.host_done_o) word_q <= u_dut.gen_shared.gen_dag36.u_dag36.host_data_o;
    end
    always_comb begin
      // Rows are not written while the packet is inside.
      if (of_hops && tbl_req_i.write) assume (inside_q == '0 && !valid_i);
      if (begun_q && started) begin
        assert (of_level && can && asked_q == '0);
        assert (u_dut.gen_shared.gen_dag36.u_dag36.host_write_i == tbl_req_i.write);
        assert (u_dut.gen_shared.gen_dag36.u_dag36.host_level_i == 2'(tbl_req_i.id - TABLE_LEVEL0));
        assert (u_dut.gen_shared.gen_dag36.u_dag36.host_index_i == tbl_req_i.index);
        assert (u_dut.gen_shared.gen_dag36.u_dag36.host_data_i == tbl_req_i.wdata[35:0]);
      end
      if (begun_q && of_level && can && asked_q == '0) assert (started);
      if (begun_q && (of_hops || (mine && !can))) assert (asked_q < 3'd6);
      if (begun_q && tbl_rsp_o.done) begin
        assert (mine);
        assert (tbl_rsp_o.error == (32'(tbl_req_i.index) >= LevelWords ? TABLE_ERROR_RANGE :
                                    tbl_req_i.clear ? TABLE_ERROR_REFUSED : TABLE_ERROR_NONE));
        if (tbl_req_i.write || !can) assert (tbl_rsp_o.rdata == '0);
        else if (of_hops && known_q[tbl_req_i.index[0]]) assert (tbl_rsp_o.rdata == 256'(rows_q[tbl_req_i.index[0]]));
        else if (of_level) assert (tbl_rsp_o.rdata == 256'(word_q));
      end
    end
  end
  hue_access_rules u_access (.clk_i, .rst_ni, .tbl_req_i, .mine_i(mine), .done_i(tbl_rsp_o.done));

  // The expected verdict, as in crates/planes/src/ipv4.rs, ipv6.rs, l2.rs, dual.rs, extract.rs, rofl.rs, splice.rs and mpls.rs. An image with one kind ignores the packet's.
  hue_verdict_t expected;
  logic         is_ipv6, is_l2, is_extract, is_splice, is_rofl, is_mpls, in_ipv6, in_l2, in_extract, in_splice, in_rofl, in_mpls, returns;
  assign is_ipv6 = Sram && packet_q.kind == 5'(KIND_IPV6);
  assign is_l2 = Sram && packet_q.kind == 5'(KIND_L2);
  assign in_ipv6 = Sram && packet_i.kind == 5'(KIND_IPV6);
  assign in_l2 = Sram && packet_i.kind == 5'(KIND_L2);
  assign is_extract = Sram && packet_q.kind == 5'(KIND_EXTRACT);
  assign is_splice = Sram && packet_q.kind == 5'(KIND_SPLICE);
  assign in_splice = Sram && packet_i.kind == 5'(KIND_SPLICE);
  assign in_extract = Sram && packet_i.kind == 5'(KIND_EXTRACT);
  assign is_rofl = Sram && packet_q.kind == 5'(KIND_ROFL);
  assign in_rofl = Sram && packet_i.kind == 5'(KIND_ROFL);
  assign is_mpls = Sram && packet_q.kind == 5'(KIND_MPLS);
  assign in_mpls = Sram && packet_i.kind == 5'(KIND_MPLS);
  assign returns = hop.port == packet_q.port_in && hop.dst == packet_q.question.source[127:80];
  int unsigned  sum;
  always_comb begin
    sum = 32'(packet_q.question.checksum) + 32'h100;
    if (sum >= 32'hffff) sum = sum - 32'hffff;
    expected = '{
      net: packet_q.net, vid: packet_q.vid, vport: packet_q.vport, port_in: packet_q.port_in, len: packet_q.len,
      dst_mac: hop.dst, src_mac: hop.src, ttl: packet_q.question.ttl - 8'd1, checksum: 16'(sum), port_out: packet_q.port_in,
      flood: Sram && packet_q.flood, ports: Sram ? packet_q.ports : '0, note: Sram && packet_q.note, default: '0
    };
    if (packet_q.decided) expected.outcome = packet_q.outcome;
    else if (!packet_q.question.asks) expected.outcome = packet_q.question.outcome;
    else if (is_rofl && hop.kind == HopGlean) expected.outcome = packet_q.question.outcome;
    else if (is_rofl && hop.kind == HopLocal) expected.outcome = ROFL_FOR_US;
    else if (is_rofl && hop.kind == HopNone) expected.outcome = ROFL_NO_ENTRY;
    else if (is_rofl) begin
      expected.outcome = packet_q.question.ttl < 8'd2 ? ROFL_HOP_BUDGET : returns ? ROFL_LOOP :
                         packet_q.question.total > hop.mtu ? ROFL_MTU : ROFL_FORWARD;
    end else if (hop.kind == HopLocal) expected.outcome = is_mpls ? MPLS_PUNT_ENTRY : is_extract ? EXTRACT_PUNT_ENTRY : is_ipv6 ? IPV6_LOCAL : is_splice ? SPLICE_LOCAL : IPV4_LOCAL;
    else if (packet_q.question.outcome != OutcomeNone) expected.outcome = packet_q.question.outcome;
    else if (hop.kind == HopNone) expected.outcome = is_mpls ? MPLS_NO_ENTRY : is_extract ? EXTRACT_NO_ENTRY : is_ipv6 ? IPV6_NO_ROUTE : is_splice ? SPLICE_NO_ROUTE : IPV4_NO_ROUTE;
    else if (hop.kind == HopGlean) expected.outcome = is_mpls ? MPLS_DROP_ENTRY : is_extract ? EXTRACT_DROP_ENTRY : is_ipv6 ? IPV6_NO_NEIGHBOUR : is_splice ? SPLICE_NO_NEIGHBOUR : IPV4_NO_NEIGHBOUR;
    else if (packet_q.question.total > hop.mtu) expected.outcome = is_mpls ? MPLS_MTU : is_extract ? EXTRACT_MTU : is_ipv6 ? IPV6_MTU : is_splice ? SPLICE_MTU : IPV4_MTU;
    else expected.outcome = is_mpls ? MPLS_FORWARD : is_extract ? EXTRACT_FORWARD : is_ipv6 ? IPV6_FORWARD : is_splice ? SPLICE_FORWARD : IPV4_FORWARD;
    expected.verdict = packet_q.decided ? packet_q.verdict :
                       is_ipv6 ? ipv6_verdict(expected.outcome) : is_l2 ? l2_verdict(expected.outcome) :
                       is_extract ? extract_verdict(expected.outcome) :
                       is_rofl ? rofl_verdict(expected.outcome) :
                       is_mpls ? mpls_verdict(expected.outcome) :
                       is_splice ? splice_verdict(expected.outcome) :
                       ipv4_verdict(expected.outcome);
    // A packet for the router itself may come out of a tunnel.
    if (Sram && !is_rofl && packet_q.tunnel && !packet_q.decided && packet_q.question.asks &&
        expected.outcome == (is_mpls ? MPLS_PUNT_ENTRY : is_extract ? EXTRACT_PUNT_ENTRY : is_ipv6 ? IPV6_LOCAL : is_splice ? SPLICE_LOCAL : IPV4_LOCAL)) begin
      expected.tunnel = TunnelIn;
    end
    if (Sram && packet_q.dual) expected.outcome = is_ipv6 ? dual_of_ipv6(expected.outcome) : dual_of_ipv4(expected.outcome);
    if (expected.verdict == VerdictPunt) expected.port_out = {1'b1, packet_q.net[1:0]};
    if (expected.verdict == VerdictForward) begin
      expected.edit = packet_q.decided || is_l2 ? EditNone : is_extract ? EditMacs : is_mpls ? EditMpls : is_rofl ? EditRofl : is_ipv6 ? EditIpv6 : EditIpv4;
      // Splicing bits are those of the packet's own network, whatever the kind: no other kind's front gives any.
      if (Sram && !packet_q.decided && !is_l2) expected.splice = packet_q.splice;
      // So is the label: only the entries of kinds extract and mpls have one.
      if (Sram && !packet_q.decided && !is_l2) expected.label = packet_q.label;
      expected.port_out = packet_q.decided || is_l2 ? packet_q.port_out : is_rofl ? {1'b0, hop.port[1:0]} : hop.port;
      // A next hop on a port that the card does not have leads into a tunnel: the frame goes to the loop, and to no port.
      if (Sram && !packet_q.decided && !is_l2 && !is_rofl && hop.port[2]) begin
        expected.tunnel = TunnelOut;
        expected.port_out = packet_q.port_in;
      end
    end
  end

  // Without an edit, the fields to write have no meaning; only an IPv4 header has a checksum.
  function automatic hue_verdict_t counts(hue_verdict_t v);
    counts = v;
    if (v.edit == EditNone) {counts.dst_mac, counts.src_mac, counts.ttl, counts.checksum} = '0;
    if (v.edit inside {EditIpv6, EditRofl, EditMpls}) counts.checksum = '0;
  endfunction

  logic wait_q;
  always_ff @(posedge clk_i) wait_q <= rst_ni && wait_o;
  always_comb begin
    assume (rst_ni == begun_q);
    if (wait_q) assume (!en_i);
    // No front of a kind with routes forwards: that takes a next hop. hue_l2 has answered the questions of kind l2.
    if (in_l2) assume (packet_i.decided || !packet_i.question.asks);
    else if (in_rofl) assume (rofl_verdict(packet_i.question.outcome) != VerdictForward);
    else if (in_splice) assume (splice_verdict(packet_i.question.outcome) != VerdictForward);
    else if (in_mpls) assume (mpls_verdict(packet_i.question.outcome) != VerdictForward);
    else if (in_extract) assume (extract_verdict(packet_i.question.outcome) != VerdictForward);
    else assume ((in_ipv6 ? ipv6_verdict(packet_i.question.outcome) : ipv4_verdict(packet_i.question.outcome)) != VerdictForward);
    if (begun_q) begin
      assert (valid_o == inside_q[Latency]);
      if (mark_q[Latency] && has_hop) assert (counts(verdict_o) == counts(expected));
      if (Tcam && planes_rsp.done) assert (tbl_rsp_o == planes_rsp);
      if (Tcam && !planes_rsp.done && planes_rsp == '0) assert (tbl_rsp_o == '0);
      if (!Sram) assert (sram_req_o == '0 && sram_state_o == '0);
    end
  end
  logic unused;
  assign unused = ^{error_o, stall_o};
endmodule
