// Proof harness of hue_l2: the result for a packet is a stated function of the packet and of the stations at its two addresses in its
// own network, whatever packets come before and after it.
//
// Place: scripts/formal. Inputs are free. Each copy of the stations holds one arbitrary row (any/hue_exact_table.sv), and the harness
// decides from the row's fields, as spec/regs/tables.rdl has them, whether it is the packet's. The marked packet comes in in clock `Start`;
// any number of packets may come before it.
module hue_l2_formal
  import hue_pkg::*;
  import hue_kinds_pkg::*;
  import hue_regs_pkg::*;
  import hue_stages_pkg::*;
#(
  parameter int unsigned Start = 3
) (
  input logic        clk_i,
  input logic        rst_ni,
  input tbl_req_t    tbl_req_i,
  input logic        en_i,
  input logic        valid_i,
  input packet_t     packet_i,
  input logic [63:0] time_ns_i
);
  tbl_rsp_t    tbl_rsp_o;
  logic        error_o, wait_o, valid_o;
  packet_t     packet_o;
  logic [63:0] time_ns_o;
  hue_l2 #(.StationRows(8)) u_dut (.*);

  // Stages that hold a packet, and the stage of the marked one. They move only in clocks with `en_i`.
  localparam int unsigned Latency = 4;
  logic             begun_q, mark;
  logic [3:0]       clock_q;
  logic [Latency:1] inside_q, mark_q;
  packet_t          packet_q;
  logic [63:0]      time_q;
  assign mark = en_i && valid_i && clock_q == 4'(Start);
  initial begun_q = 1'b0;
  always_ff @(posedge clk_i) begin
    begun_q <= 1'b1;
    if (mark) {packet_q, time_q} <= {packet_i, time_ns_i};
    if (!rst_ni) begin
      {inside_q, mark_q, clock_q} <= '0;
    end else begin
      clock_q <= clock_q + 4'd1;
      if (en_i) {inside_q, mark_q} <= {inside_q[Latency-1:1], valid_i, mark_q[Latency-1:1], mark};
    end
  end

  // The stations of the marked packet's sender and destination.
  row_station_t to_row, from_row;
  tbl_rsp_t     to_rsp, from_rsp;
  logic [47:0]  dst, src;
  logic         to_known, from_known;
  assign to_row     = u_dut.gen_copy[0].u_stations.row_q;
  assign from_row   = u_dut.gen_copy[1].u_stations.row_q;
  assign to_rsp     = u_dut.gen_copy[0].u_stations.rsp;
  assign from_rsp   = u_dut.gen_copy[1].u_stations.rsp;
  assign {dst, src} = packet_q.question.key[127:32];
  assign to_known   = !dst[40] && to_row.valid && to_row.net == packet_q.net && to_row.mac == dst;
  assign from_known = from_row.valid && from_row.net == packet_q.net && from_row.mac == src;

  // The expected result: the first outcome of spec/kinds/l2.toml whose condition holds, among those that need stations.
  l2_settings_t settings;
  logic [L2_FORWARD:L2_WRONG_PORT] when;
  logic         asks, elsewhere;
  packet_t      expected;
  assign settings  = l2_settings_t'(packet_q.root);
  assign asks      = !packet_q.decided && packet_q.kind == 5'(KIND_L2) && packet_q.question.asks;
  assign elsewhere = from_known && from_row.port != packet_q.port_in;
  always_comb begin
    when[L2_WRONG_PORT] = elsewhere && (from_row.fixed || settings.sticky);
    when[L2_SAME_PORT] = to_known && to_row.port == packet_q.port_in;
    when[L2_MTU] = packet_q.question.total > 16'(settings.mtu);
    when[L2_STORM] = 1'b0;  // a meter decides it
    when[L2_FLOOD] = !to_known;
    when[L2_FORWARD] = 1'b1;
    expected = packet_q;
    {expected.flood, expected.ports, expected.note} = '0;
    if (asks) begin
      expected.question.asks = 1'b0;
      for (int unsigned i = 32'(L2_FORWARD); i >= 32'(L2_WRONG_PORT); i--) if (when[i]) expected.question.outcome = 5'(i);
      if (expected.question.outcome == L2_FORWARD) expected.port_out = to_row.port;
      if (expected.question.outcome == L2_FLOOD) begin
        expected.flood = 1'b1;
        for (int unsigned p = 0; p < MacPorts; p++) expected.ports[p] = settings.ports[p] && packet_q.port_in != 3'(p);
      end
      expected.note = settings.learns && expected.question.outcome != L2_WRONG_PORT &&
                      !(from_known && from_row.port == packet_q.port_in && !from_row.old);
    end
  end

  logic wait_q;
  always_ff @(posedge clk_i) wait_q <= rst_ni && wait_o;
  always_comb begin
    assume (rst_ni == begun_q);
    if (wait_q) assume (!en_i);
    // Both copies of the rows answer alike, if they were asked.
    assume (to_rsp == from_rsp);
    if (!tbl_req_i.valid || tbl_req_i.id != TABLE_STATION) assume (to_rsp == '0);
    if (begun_q) begin
      assert (valid_o == inside_q[Latency]);
      if (mark_q[Latency]) assert (packet_o == expected && time_ns_o == time_q);
      assert (u_dut.gen_copy[0].u_stations.tbl_req_i == tbl_req_i && u_dut.gen_copy[1].u_stations.tbl_req_i == tbl_req_i);
      assert (tbl_rsp_o == to_rsp);
    end
  end
  logic unused;
  assign unused = error_o;
endmodule
