// Proof harness of hue_meter: a packet passes unaltered, and is dropped exactly when its network's buckets lack the tokens for it.
//
// Place: scripts/formal, with the small numbers in proofs.toml. The harness computes in one clock, for any one network, what the
// module computes in a pipeline. A packet is judged by the row at the time it comes in; packets that are inside while the row is
// written pass. The marked packet comes in in clock `Start`; any number of packets may come before it.
module hue_meter_tokens_formal
  import hue_pkg::*;
  import hue_regs_pkg::*;
  import hue_stages_pkg::*;
#(
  parameter int unsigned Nets = 2,
  parameter bit Storm = 1'b0,
  parameter int unsigned Packets = 4,  // most packets of the network in a run
  parameter int unsigned Start = 7
) (
  input logic        clk_i,
  input logic        rst_ni,
  input logic [7:0]  net_i,  // sampled during reset: any constant
  input tbl_req_t    tbl_req_i,
  input logic        en_i,
  input logic        valid_i,
  input packet_t     packet_i,
  input logic [63:0] time_ns_i
);
  tbl_rsp_t tbl_rsp_o;
  packet_t  packet_o;
  logic     error_o, wait_o, valid_o;
  hue_meter #(.Nets(Nets), .Storm(Storm)) u_dut (.*);

  // Accesses, and the row that the host wrote. A write takes effect in the clock after `wait_o`.
  logic       begun_q, mine, beyond, of_a, writes, wait_q, known_q;
  logic [2:0] asked_q;
  logic [7:0] net_q;
  row_meter_t row_q;
  assign beyond = 32'(tbl_req_i.index) >= Nets;
  assign mine = tbl_req_i.valid && tbl_req_i.id == (Storm ? TABLE_STORM : TABLE_METER);
  assign of_a = mine && tbl_req_i.index == 24'(net_q);
  assign writes = wait_q && of_a && tbl_req_i.write;
  hue_access_rules u_access (.clk_i, .rst_ni, .tbl_req_i, .mine_i(mine), .done_i(tbl_rsp_o.done));

  // For each bucket, packets and then bits: its debt, the tokens it earns, and its capacity less a packet's cost.
  typedef logic signed [9:0] tokens_t;
  tokens_t [1:0] debt_q, earned, slack, cost, left;
  logic    [1:0] on, holds;
  logic    [2:0] now, last_q;
  logic          late, limited, meets;
  assign now = time_ns_i[2:0];
  assign late = now < last_q;
  assign on = {row_q.bits_on, row_q.packets_on} & {2{known_q}};
  assign cost = {tokens_t'({1'b0, packet_i.len[1:0]}), 10'sd1};
  assign slack[0] = tokens_t'($signed(4'(row_q.packets_burst[3:0] - 4'd5)));  // 1 packet, with the bits of 5^9 that are left
  assign slack[1] = tokens_t'($signed(row_q.bits_burst[3:0])) - cost[1];
  assign earned[0] = late ? '0 : tokens_t'(6'(row_q.packets_rate[1:0]) * 6'(now - last_q));
  assign earned[1] = late ? '0 : tokens_t'(6'(row_q.bits_rate[1:0]) * 6'(now - last_q));
  always_comb begin
    for (int unsigned b = 0; b < 2; b++) begin
      holds[b] = !on[b] || (slack[b] >= 0 && debt_q[b] <= slack[b] + earned[b]);
      left[b] = debt_q[b] > earned[b] ? debt_q[b] - earned[b] : '0;
    end
  end
  assign limited = holds != '1;
  assign meets = en_i && valid_i && !packet_i.decided && (packet_i.flood || !Storm) && packet_i.net == net_q;

  // Stages that hold a packet, and the stage of the marked one, with its expected result.
  localparam int unsigned Latency = 11;
  logic             mark, limited_q;
  logic [4:0]       clock_q;
  logic [Latency:1] inside_q, mark_q;
  logic [2:0]       met_q;
  packet_t          packet_q, expected;
  assign mark = en_i && valid_i && clock_q == 5'(Start);
  always_comb begin
    expected = packet_q;
    if (limited_q) begin
      {expected.decided, expected.verdict} = {1'b1, VerdictDrop};
      expected.outcome = Storm ? hue_kinds_pkg::L2_STORM : hue_kinds_pkg::OUTCOME_RATE_LIMITED;
      {expected.flood, expected.ports} = '0;
      if (!Storm) expected.note = 1'b0;
    end
  end

  initial begun_q = 1'b0;
  always_ff @(posedge clk_i) begin
    begun_q <= 1'b1;
    wait_q <= rst_ni && wait_o;
    asked_q <= rst_ni && mine && !tbl_rsp_o.done ? asked_q + 3'(asked_q != '1) : '0;
    if (mark) packet_q <= packet_i;
    if (!rst_ni) begin
      net_q <= net_i;
      known_q <= 1'b0;
      {inside_q, mark_q, clock_q} <= '0;
      met_q <= '0;
    end else begin
      if (en_i) {inside_q, mark_q} <= {inside_q[Latency-1:1], valid_i, mark_q[Latency-1:1], mark};
      clock_q <= clock_q + 5'd1;
      if (mark) limited_q <= meets && limited;
      if (meets) begin
        met_q <= met_q + 3'd1;
        if (!late) last_q <= now;
        for (int unsigned b = 0; b < 2; b++) debt_q[b] <= left[b] + (limited ? '0 : cost[b]);
      end
      if (writes) begin
        known_q <= 1'b1;
        row_q <= row_meter_t'(tbl_req_i.wdata[$bits(row_meter_t)-1:0]);
        {last_q, debt_q} <= '0;
        if (!mark_q[Latency]) limited_q <= 1'b0;
      end
    end
  end

  always_comb begin
    assume (rst_ni == begun_q);
    if (!rst_ni) assume (!tbl_req_i.valid);
    if (rst_ni) assume (32'(net_q) < Nets);
    if (wait_q) assume (!en_i);
    if (tbl_req_i.valid) assume (tbl_req_i.id inside {Storm ? TABLE_STORM : TABLE_METER, TABLE_NETWORK});
    if (begun_q && valid_i) assume (packet_i.len <= 14'd3 && (packet_i.decided || 32'(packet_i.net) < Nets));
    if (mark) assume (packet_i.decided || packet_i.net == net_q);
    if (meets) assume (32'(met_q) < Packets);
    if (begun_q) begin
      assert (valid_o == inside_q[Latency]);
      if (mark_q[Latency]) assert (packet_o == expected);
      // The host is answered, and reads the row that it wrote.
      assert (asked_q < 3'd7);
      if (!tbl_rsp_o.done) assert (tbl_rsp_o == '0);
      if (tbl_rsp_o.done) begin
        assert (mine);
        assert (tbl_rsp_o.error == (beyond ? TABLE_ERROR_RANGE : tbl_req_i.clear ? TABLE_ERROR_REFUSED : TABLE_ERROR_NONE));
        if (beyond || tbl_req_i.clear || tbl_req_i.write) assert (tbl_rsp_o.rdata == '0);
        else if (of_a) assert (tbl_rsp_o.rdata == (known_q ? 256'(row_q) : '0));
      end
    end
  end
  logic unused;
  assign unused = error_o;
endmodule
