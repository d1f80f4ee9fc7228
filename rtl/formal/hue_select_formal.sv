// Proof harness of hue_select: a frame goes to the network in its own row, a copy of a group frame to the network that comes with it,
// and neither to any other network, whatever frames come before and after it. The frame's other fields are passed along.
//
// Place: scripts/formal. Inputs are free. The tables hold one arbitrary row each (any/hue_ternary_table.sv and any/hue_exact_table.sv),
// and the harness decides from the row's fields which frames match it. `mark_i` picks any one frame.
module hue_select_formal
  import hue_pkg::*;
  import hue_regs_pkg::*;
  import hue_stages_pkg::*;
(
  input logic      clk_i,
  input logic      rst_ni,
  input tbl_req_t  tbl_req_i,
  input logic      en_i,
  input logic      valid_i,
  input hue_head_t head_i,
  input logic      mark_i
);
  tbl_rsp_t    tbl_rsp_o;
  logic        error_o, wait_o, valid_o;
  packet_t     packet_o;
  ipv4_t       ipv4_o;
  logic [63:0] time_ns_o;
  hue_select #(.SelectRows(8), .MacRows(1024)) u_dut (.*);

  // The row of each table, and whether it matches a frame.
  row_select_t select_row;
  row_mac_t    mac_row;
  tbl_rsp_t    tables_rsp;
  assign select_row = u_dut.u_select.row_q;
  assign mac_row    = u_dut.gen_mac.u_mac.row_q;
  assign tables_rsp = u_dut.u_select.rsp | u_dut.gen_mac.u_mac.rsp;
  function automatic logic is_selected(row_select_t r, hue_head_t h);
    return r.valid && (!r.port_care || h.port == r.port) && (!r.mac_care || h.dst_mac == r.mac) &&
           (!r.inner_care || (h.inner_valid && (h.inner & r.inner_mask) == (r.inner & r.inner_mask))) &&
           (!r.arp_care || h.ethertype == EthertypeArp);
  endfunction
  function automatic logic is_named(row_mac_t r, hue_head_t h);
    return r.valid && h.port == r.port && h.dst_mac == r.mac;
  endfunction

  // Frames inside, and those before the marked one.
  logic       begun_q, accept, leaves, marked_q, mine_now, plain, claimed;
  logic [3:0] inside_q, before_q;
  hue_head_t  head_q;
  assign accept = valid_i && en_i;
  assign leaves = en_i && valid_o;
  assign mine_now = marked_q && before_q == '0 && valid_o;
  assign plain = !head_q.from_cpu && 32'(head_q.len) >= FrameBytesMin && 32'(head_q.len) <= FrameBytesMax;
  // No row assigns a group frame to a network.
  assign claimed = !head_q.dst_mac[40] && (is_named(mac_row, head_q) || is_selected(select_row, head_q));

  // The expected result for the marked frame, from its head and the rows that it matches.
  ipv4_t   checked;
  packet_t expected;
  hue_ipv4_check u_check (.head_i(head_q), .ipv4_o(checked));
  always_comb begin
    expected = '{
      port_in: head_q.port, len: head_q.len, port_out: head_q.cpu_out,
      decided: 1'b1, verdict: VerdictUnclaimed, outcome: hue_kinds_pkg::UNCLAIMED_NO_NETWORK, default: '0
    };
    if (32'(head_q.len) < FrameBytesMin) begin
      expected.outcome = hue_kinds_pkg::UNCLAIMED_RUNT;
    end else if (32'(head_q.len) > FrameBytesMax) begin
      expected.outcome = hue_kinds_pkg::UNCLAIMED_TOO_LONG;
    end else if (head_q.from_cpu) begin
      {expected.verdict, expected.outcome, expected.net, expected.vport} = {VerdictForward, OutcomeNone, head_q.net, head_q.vport};
    end else if (head_q.copy) begin
      {expected.vport, expected.net} = {head_q.vport, head_q.net};
    end else if (claimed) begin
      {expected.vport, expected.net} = is_named(mac_row, head_q) ? {mac_row.vport, mac_row.net} : {select_row.vport, select_row.net};
    end
    if (plain && (head_q.copy || claimed)) begin
      {expected.decided, expected.verdict, expected.outcome} = {1'b0, VerdictUnclaimed, 5'd0};
    end
  end

  // Fields without a meaning are ignored: verdict and outcome of an undecided frame, network and ports of an unclaimed one. The fields
  // of the network's row are not known yet.
  function automatic packet_t counts(packet_t p);
    counts = p;
    {counts.vid, counts.plane, counts.root, counts.hop_base, counts.hop_count, counts.kind, counts.dual, counts.question, counts.tunnel,
     counts.policies} = '0;
    if (!p.decided) {counts.verdict, counts.outcome} = {VerdictUnclaimed, 5'd0};
    if (p.decided && p.verdict == VerdictUnclaimed) {counts.net, counts.vport, counts.port_out} = '0;
  endfunction

  initial begun_q = 1'b0;
  always_ff @(posedge clk_i) begin
    begun_q <= 1'b1;
    if (!rst_ni) begin
      inside_q <= '0;
      marked_q <= 1'b0;
    end else begin
      inside_q <= inside_q + 4'(accept) - 4'(leaves);
      if (accept && mark_i && !marked_q) begin
        marked_q <= 1'b1;
        head_q <= head_i;
        before_q <= inside_q - 4'(leaves);
      end else if (marked_q && leaves) begin
        before_q <= before_q - 1'b1;
        if (before_q == '0) marked_q <= 1'b0;
      end
    end
  end

  logic wait_q;
  always_ff @(posedge clk_i) wait_q <= rst_ni && wait_o;

  always_comb begin
    assume (rst_ni == begun_q);
    if (wait_q) assume (!en_i);
    // Only group frames are copied.
    // A copy of a group frame, or a frame of a tunnel.
    if (valid_i && head_i.copy) assume (!head_i.from_cpu);
    if (begun_q && mine_now) assert (counts(packet_o) == counts(expected) && time_ns_o == head_q.time_ns);
    // The front of a packet that belongs to no network has no meaning.
    if (begun_q && mine_now && !(packet_o.decided && packet_o.verdict == VerdictUnclaimed)) assert (ipv4_o == checked);
    if (begun_q && valid_o) assert (inside_q != '0);
    // The tables get the host's requests, and their answers reach the host.
    if (!tbl_req_i.valid || !(tbl_req_i.id inside {TABLE_SELECT, TABLE_MAC})) assume (tables_rsp == '0);
    assert (u_dut.u_select.tbl_req_i == tbl_req_i && u_dut.gen_mac.u_mac.tbl_req_i == tbl_req_i);
    if (begun_q && tables_rsp.done) assert (tbl_rsp_o == tables_rsp);
  end
  logic unused;
  assign unused = ^error_o;
endmodule
