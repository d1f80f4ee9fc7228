// Proof harness of hue_meter: other networks' rows and packets do not affect whether packets of network A are limited.
//
// Place: scripts/formal. Two copies run in lockstep. They get the same packets of A, at the same times, and the same accesses to A's
// row and debts, at any time; every other packet and access is independent in each copy. Only those fields of a packet that the meter
// reads or changes are not constant.
// An invariant of both copies says where their states are equal. scripts/formal proves in one step that it is preserved.
module hue_meter_formal
  import hue_pkg::*;
  import hue_regs_pkg::*;
  import hue_stages_pkg::*;
#(
  parameter int unsigned Nets = 2,
  parameter bit Storm = 1'b0
) (
  input logic             clk_i,
  input logic             rst_ni,
  // Sampled during reset: any constant.
  input logic [7:0]       net_i,
  // Common to both copies.
  input logic             en_i,
  input logic             of_a_i,
  input logic             access_of_a_i,
  input logic [1:0]       len_a_i,
  input logic             decided_a_i,
  input logic             flood_a_i,
  input logic [63:0]      time_a_i,
  input tbl_req_t         request_a_i,
  // One for each copy.
  input logic [1:0]       valid_i,
  input logic [1:0][7:0]  net_of_i,
  input logic [1:0][1:0]  len_i,
  input logic [1:0]       decided_i,
  input logic [1:0]       flood_i,
  input logic [1:0][63:0] time_ns_i,
  input tbl_req_t [1:0]   request_i
);
  localparam int unsigned Latency = 11;
  localparam int unsigned AddrBits = Nets > 1 ? $clog2(Nets) : 1;
  localparam logic [7:0] Table = Storm ? TABLE_STORM : TABLE_METER;
  localparam logic [7:0] DebtTable = Storm ? TABLE_STORM_DEBT : TABLE_DEBT;
  logic             begun_q;
  logic [7:0]       net_q;
  packet_t [1:0]    in, out;
  logic [1:0][63:0] times;
  tbl_req_t [1:0]   request;
  tbl_rsp_t [1:0]   response;
  logic [1:0]       valid, out_valid, waits, waits_q, error, mine;
  always_comb begin
    for (int unsigned s = 0; s < 2; s++) begin
      in[s] = '0;
      in[s].net = of_a_i ? net_q : net_of_i[s];
      in[s].len = 14'(of_a_i ? len_a_i : len_i[s]);
      in[s].decided = of_a_i ? decided_a_i : decided_i[s];
      in[s].flood = of_a_i ? flood_a_i : flood_i[s];
      in[s].note = in[s].flood;
      in[s].verdict = VerdictForward;
      times[s] = of_a_i ? time_a_i : time_ns_i[s];
      valid[s] = of_a_i || valid_i[s];
      request[s] = access_of_a_i ? request_a_i : request_i[s];
      mine[s] = request[s].valid && (request[s].id == Table || request[s].id == DebtTable)
                && 32'(request[s].index) < Nets;
    end
  end

  logic [Latency:1] of_a_q;
  // Corresponding registers of the two copies: [copy].
  typedef logic [639:0] state_t;
  state_t [1:0]                   access_state, row, row_read, written, last_word;
  state_t [Latency-1:1][1:0]      value;    // state of the packet in a stage
  state_t [Latency-1:1][1:0][1:0] bucket;   // the same for one bucket: [stage][bucket][copy]
  state_t [1:0][1:0]              cap_word, debt_word, third_debt;
  state_t [1:0]                   fourth_last;
  logic [1:0][Latency-1:1][3:0]   asks;     // buckets that the row turns on, and results derived from this
  logic [1:0][Latency:1]          dut_valid, dut_metered, dut_void;
  logic [1:0][Latency-1:1][7:0]   dut_net;
  logic [1:0][4:1][13:0]          dut_len;
  packet_t [1:0][Latency:1]       dut_packet;
  logic [1:0][3:0]                ring_at;
  // Stages of a host's read of debts: they are in the registers for packets' debts; they are in the answer's register; answered.
  logic [1:0]                     back, told, told_debts;
  state_t [1:0]                   stored_last, debts_read;
  state_t [1:0][1:0]              stored_debt;
  logic [1:0]                     keeps, access_was_a, m1_two, m1_three, m2_same, m8_two, m8_three, m9_same;

  for (genvar s = 0; s < 2; s++) begin : g_side
    hue_meter #(.Nets(Nets), .Storm(Storm)) u_dut (
      .clk_i, .rst_ni, .tbl_req_i(request[s]), .tbl_rsp_o(response[s]), .error_o(error[s]), .wait_o(waits[s]),
      .en_i, .valid_i(valid[s]), .packet_i(in[s]), .time_ns_i(times[s]), .valid_o(out_valid[s]), .packet_o(out[s])
    );
    hue_access_rules u_access (
      .clk_i, .rst_ni, .tbl_req_i(request[s]), .mine_i(mine[s]), .done_i(response[s].done)
    );
    always_comb begin
      if (rst_ni && mine[s] && !access_of_a_i) assume (32'(request[s].index) != 32'(net_q));
      if (rst_ni && waits_q[s]) assume (!en_i);
      if (rst_ni && !of_a_i && valid[s]) assume (in[s].net != net_q && 32'(in[s].net) < Nets);
    end

    // For the induction: the state of the copy.
    logic is_write, idle, was_mine, is_row;
    logic [4:0] turn, debt_turn;
    assign is_row = u_access.req_q.id == Table;
    assign is_write = u_access.req_q.valid && u_access.req_q.write && is_row;
    assign idle = !u_access.req_q.valid;
    assign was_mine = !idle && (is_row || u_access.req_q.id == DebtTable) && 32'(u_access.req_q.index) < Nets;
    assign turn = {u_dut.u_table.start, u_dut.u_table.asked_q, u_dut.u_table.back_q, u_dut.u_table.read_q,
                   u_dut.u_table.u_port.done_q};
    assign debt_turn = {u_dut.debt_start, u_dut.debt_asked_q, u_dut.debt_back_q, u_dut.debt_read_q,
                        u_dut.u_debt_port.done_q};
    always_comb begin
      // An access proceeds from its start to its answer, one at a time.
      keeps[s] = (turn & (turn - 5'd1)) == '0 && (turn == '0 || u_dut.u_table.u_port.served_q)
                 && (turn[4:1] == '0 || (was_mine && is_row && !u_access.done_q))
                 && (!u_access.done_q || turn == '0)
                 && (debt_turn & (debt_turn - 5'd1)) == '0 && (debt_turn == '0 || u_dut.u_debt_port.served_q)
                 && (debt_turn[4:1] == '0 || (was_mine && !is_row && !u_access.done_q))
                 && (!u_access.done_q || debt_turn == '0) && (turn == '0 || debt_turn == '0)
                 && (debt_turn[2:1] == '0 || !u_access.req_q.write)
                 && (idle || u_access.mine_q == was_mine)
                 && (!u_dut.u_table.u_port.served_q || (!idle && is_row))
                 && (!u_dut.u_debt_port.served_q || (!idle && u_access.req_q.id == DebtTable))
                 && (!u_dut.busy_q || (is_write && u_dut.bit_q <= 5'd20)) && (!u_dut.commit_q || u_dut.busy_q)
                 && (!is_write || !u_dut.u_table.u_port.served_q || u_dut.commit_q)
                 && waits_q[s] == (turn[3] || turn[2] || debt_turn[3] || debt_turn[2])
                 && ring_at[s] < 4'(Latency - 2) && (!of_a_q[1] || 8'(u_dut.u_table.last_addr_q) == net_q);
      access_was_a[s] = was_mine && u_access.req_q.index == 24'(net_q);
      back[s] = debt_turn[2];
      told[s] = debt_turn[1];
      told_debts[s] = debt_turn[0];
      debts_read[s] = back[s] ? {u_dut.m1_stored, u_dut.m8_stored[0], u_dut.m8_stored[1]}
                      : told[s] ? u_dut.debt_out_q : response[s].rdata;
      // While the host's word is in this register, the packet's word is read again.
      stored_last[s] = back[s] ? last_word[s] : u_dut.m1_stored;
      access_state[s] = {u_access.req_q, u_access.done_q, turn, debt_turn, u_dut.u_debt_port.served_q,
                         u_dut.u_table.u_port.served_q, u_dut.busy_q, u_dut.commit_q,
                         u_dut.busy_q ? {u_dut.bit_q, u_dut.cap_q[0], u_dut.cap_q[1]} : '0};
      written[s] = u_dut.u_table.gen_reset.u_written.counts_q[0] &&
                   u_dut.u_table.gen_reset.u_written.words_q[0][net_q[AddrBits-1:0]];
      row[s] = written[s][0] ? u_dut.u_table.gen_column[0].rows_q[net_q[AddrBits-1:0]] : '0;
      // While the host's row is in this register, the packet's row is read again.
      row_read[s] = turn[2] ? row[s] : u_dut.u_table.known ? u_dut.u_table.data_q : '0;
      last_word[s] = u_dut.u_last.gen_part[0].gen_column[0].gen_block.words_q[net_q[AddrBits-1:0]];
      fourth_last[s] = u_dut.m4_last_q;
      {m1_two[s], m1_three[s], m2_same[s]} = {u_dut.m1_two_q, u_dut.m1_three_q, u_dut.m2_same_q};
      {m8_two[s], m8_three[s], m9_same[s]} = {u_dut.m8_two_q, u_dut.m8_three_q, u_dut.m9_same_q};
      {dut_valid[s], dut_metered[s], dut_void[s]} = {u_dut.valid_q, u_dut.metered_q, u_dut.void_q};
      ring_at[s] = u_dut.u_packet.at_q;
      for (int unsigned i = 1; i < Latency; i++) begin
        dut_net[s][i] = 8'(u_dut.net_q[i]);
        asks[s][i] = '0;
        value[i][s] = '0;
      end
      for (int unsigned i = 1; i <= 4; i++) dut_len[s][i] = u_dut.len_q[i];
      for (int unsigned i = 1; i <= Latency - 2; i++) begin
        dut_packet[s][i] = u_dut.u_packet.words_q[32'(ring_at[s]) >= i ? 32'(ring_at[s]) - i : 32'(ring_at[s]) + Latency - 2 - i];
      end
      dut_packet[s][Latency-1] = u_dut.u_packet.data_o;
      dut_packet[s][Latency] = out[s];
      for (int unsigned i = 2; i <= 7; i++) asks[s][i] = 4'(u_dut.on_q[i]);
      asks[s][8] = {u_dut.on_q[8], u_dut.m8_nevers};
      asks[s][9] = {1'b0, u_dut.m9_never_q, u_dut.m9_asked_q};
      asks[s][10] = 4'({u_dut.m10_never_q, u_dut.m10_lacks_q});
      value[1][s] = u_dut.m1_now_q;
      value[2][s] = {u_dut.m2_now_q, u_dut.m2_stored_q};
      value[3][s] = {u_dut.m3_before_q, u_dut.m3_now_q, u_dut.m3_late_q, u_dut.m3_elapsed_q, u_dut.late_q[3]};
      value[4][s] = {fourth_last[s], u_dut.late_q[4]};
      value[5][s] = {u_dut.late_q[5], u_dut.m5_cost_low_q, u_dut.m5_cost_high_q};
      value[6][s] = {u_dut.late_q[6], u_dut.m6_cost_q};
    end
    for (genvar b = 0; b < 2; b++) begin : g_bucket
      always_comb begin
        for (int unsigned i = 1; i < Latency; i++) bucket[i][b][s] = '0;
        bucket[2][b][s] = u_dut.gen_bucket[b].m2_rate_q;
        bucket[3][b][s] = u_dut.gen_bucket[b].m3_rate_q;
        bucket[4][b][s] = {u_dut.gen_bucket[b].m4_even_q, u_dut.gen_bucket[b].m4_odd_q, u_dut.gen_bucket[b].m4_two_low_q,
                           u_dut.gen_bucket[b].m4_two_high_q, u_dut.gen_bucket[b].m4_three_q, u_dut.gen_bucket[b].m4_over_q};
        bucket[5][b][s] = {u_dut.gen_bucket[b].m5_low_q, u_dut.gen_bucket[b].m5_two_q, u_dut.gen_bucket[b].m5_three_q,
                           u_dut.gen_bucket[b].m5_over_q, u_dut.gen_bucket[b].m5_cap};
        bucket[6][b][s] = {u_dut.gen_bucket[b].m6_low_q, u_dut.gen_bucket[b].m6_high_q, u_dut.gen_bucket[b].m6_over_q,
                           u_dut.gen_bucket[b].m6_cap_q};
        bucket[7][b][s] = {u_dut.gen_bucket[b].m7_earned_q, u_dut.gen_bucket[b].m7_over_q, u_dut.gen_bucket[b].m7_slack_q,
                           u_dut.gen_bucket[b].cost_q[7]};
        bucket[8][b][s] = {u_dut.gen_bucket[b].m8_limit_q, u_dut.gen_bucket[b].m8_earned_q, u_dut.gen_bucket[b].cost_q[8]};
        stored_debt[b][s] = back[s] ? debt_word[b][s] : u_dut.m8_stored[b];
        bucket[9][b][s] = {u_dut.gen_bucket[b].m9_stored_q, u_dut.gen_bucket[b].m9_limit_q[0],
                           u_dut.gen_bucket[b].m9_earned_q[0], u_dut.gen_bucket[b].cost_q[9],
                           m9_same[s] ? {u_dut.gen_bucket[b].m9_limit_q[1], u_dut.gen_bucket[b].m9_earned_q[1]} : '0};
        bucket[10][b][s] = {u_dut.gen_bucket[b].m10_left_q, u_dut.gen_bucket[b].m10_clear_q, u_dut.gen_bucket[b].cost_q[10]};
        third_debt[b][s] = u_dut.gen_bucket[b].m11_debt_q;
        cap_word[b][s] = u_dut.gen_bucket[b].u_caps.gen_part[0].gen_column[0].gen_block.words_q[net_q[AddrBits-1:0]];
        debt_word[b][s] = u_dut.gen_bucket[b].u_debts.gen_part[0].gen_column[0].gen_block.words_q[net_q[AddrBits-1:0]];
      end
    end
  end

  always_ff @(posedge clk_i) waits_q <= rst_ni ? waits : '0;

  initial begun_q = 1'b0;
  always_ff @(posedge clk_i) begin
    begun_q <= 1'b1;
    if (!rst_ni) begin
      net_q  <= net_i;
      of_a_q <= '0;
    end else if (en_i) begin
      of_a_q <= {of_a_q[Latency-1:1], of_a_i};
    end
  end

  // A run starts with a reset, or in any state in which the invariant holds, so that one clock is the step of an induction.
  // Counterexamples of planted faults must start with a reset.
  logic holds;
  always_comb begin
`ifdef HUE_FROM_RESET
    assume (rst_ni == begun_q);
`else
    assume (rst_ni || !begun_q);
    if (!begun_q && rst_ni) assume (holds);
`endif
    assume (32'(net_q) < Nets || !rst_ni);
    if (rst_ni && access_of_a_i) begin
      assume (request_a_i.valid && (request_a_i.id == Table || request_a_i.id == DebtTable));
      assume (32'(request_a_i.index) == 32'(net_q));
    end
  end

  // The property: for packets, and for debts that the host reads.
  logic known, leaves, tells;
  assign leaves = !of_a_q[Latency] || (out_valid == '1 && out[0] == out[1]);
  assign tells = !known || !access_was_a[0] || (back[0] || told[0] || told_debts[0] ? debts_read[0] == debts_read[1] : 1'b1);

  // For the induction. A packet of A that is charged finds and leaves the same state in both copies. Exception: the contents of
  // memories before A's row is first written, which are not used.
  logic [Latency:1] charged;
  logic             accesses, table_same, passes, memories;
  logic [Latency:1] stage;
  assign known = written[0][0];
  assign charged = of_a_q & dut_metered[0] & ~dut_void[0];
  assign accesses = keeps == '1 && access_was_a[0] == access_was_a[1]
                    && (!access_was_a[0] || access_state[0] == access_state[1]);
  assign table_same = written[0] == written[1] && row[0] == row[1];
  always_comb begin
    passes = ring_at[0] == ring_at[1];
    for (int unsigned i = 1; i <= Latency; i++) begin
      if (of_a_q[i] && (!dut_valid[0][i] || !dut_valid[1][i])) passes = 1'b0;
      if (of_a_q[i] && (dut_metered[0][i] != dut_metered[1][i] || dut_void[0][i] != dut_void[1][i])) passes = 1'b0;
      if (of_a_q[i] && dut_packet[0][i] != dut_packet[1][i]) passes = 1'b0;
      for (int unsigned s = 0; s < 2; s++) begin
        if (i < Latency && of_a_q[i] && dut_net[s][i] != net_q) passes = 1'b0;
        if (i < Latency && !of_a_q[i] && dut_metered[s][i] && dut_net[s][i] == net_q) passes = 1'b0;
      end
      if (i <= 4 && of_a_q[i] && dut_len[0][i] != dut_len[1][i]) passes = 1'b0;
    end
    memories = !known || last_word[0] == last_word[1];
    for (int unsigned b = 0; b < 2; b++) begin
      if (known && cap_word[b][0] != cap_word[b][1]) memories = 1'b0;
      if (known && debt_word[b][0] != debt_word[b][1]) memories = 1'b0;
    end
    stage = '1;
    for (int unsigned i = 1; i < Latency; i++) begin
      if (charged[i]) begin
        if (asks[0][i] != asks[1][i] || (!known && asks[0][i] != '0)) stage[i] = 1'b0;
        if (known && value[i][0] != value[i][1]) stage[i] = 1'b0;
        for (int unsigned b = 0; b < 2; b++) begin
          if (known && bucket[i][b][0] != bucket[i][b][1]) stage[i] = 1'b0;
        end
      end
    end
    // While a packet waits, it reads the present contents of the memory.
    for (int unsigned s = 0; s < 2; s++) begin
      if (charged[1] && known && !m1_two[s] && !m1_three[s] && stored_last[s] != last_word[s]) stage[1] = 1'b0;
      for (int unsigned b = 0; b < 2; b++) begin
        if (charged[8] && known && !m8_two[s] && !m8_three[s] && stored_debt[b][s] != debt_word[b][s]) stage[8] = 1'b0;
      end
    end
    for (int unsigned s = 0; s < 2; s++) begin
      if (charged[1] && row_read[s] != row[0]) stage[1] = 1'b0;
      if (charged[1] && (m1_two[s] != charged[3] || m1_three[s] != charged[4])) stage[1] = 1'b0;
      if (charged[2] && m2_same[s] != charged[3]) stage[2] = 1'b0;
      if (charged[8] && (m8_two[s] != charged[10] || m8_three[s] != charged[11])) stage[8] = 1'b0;
      if (charged[9] && m9_same[s] != charged[10]) stage[9] = 1'b0;
    end
    for (int unsigned b = 0; b < 2; b++) begin
      if (charged[8] && known && m8_three[0] && third_debt[b][0] != third_debt[b][1]) stage[8] = 1'b0;
    end
    // One assertion, so that the induction can assume all of it.
    holds = leaves && tells && accesses && table_same && passes && memories && stage == '1;
    if (begun_q) assert (holds);
  end
  logic unused;
  assign unused = ^error;
endmodule
