// Token buckets of the networks: a packet above its network's rate limit is dropped.
//
// Place: hue_network → **here** → kind. In Rust: crates/planes/src/meter.rs, with bit-exact results: tokens of 10^-9 packets or
// bits, time in nanoseconds, no rounding. Everything that does not depend on the packets before is computed in the pipeline.
// Two loops of one clock remain: the time of the last packet, and the debt. Their newest values are forwarded to the next
// three packets, so packets of one network can follow each other at one a clock.
//
// For each bucket the meter keeps its debt instead of its level: the tokens that it lacks to be full.
//   debt' = max(debt - earned, 0), plus the cost if both buckets hold it, which is if debt <= capacity - cost + earned
// The result of a comparison comes late, and 70 multiplexers behind it later still. So a packet's result is kept in two parts:
// `left` = debt - earned with its sign, and the decision. The next packet combines them before its own subtraction and comparison:
//   the packet before passed:      left' = max(left, 0) - (earned - cost), held if max(left, 0) <= limit - cost
//   the packet before was dropped: left' = max(left, 0) - earned,          held if max(left, 0) <= limit
// where `cost` is that of the packet before, and both right sides are known in advance. The time of the last packet is kept in
// the same way. If more than 70 bits are earned (`over`), that exceeds any debt.
//
// A write of a row is answered after about 25 clocks, because the capacity is multiplied bit by bit. It takes effect in one
// clock in which nothing moves (`wait_o` announces it). Packets of the network that are in here then pass without being charged.
// The same holds for a write of debts, which a network brings along when it moves to this card. A read of debts takes two clocks:
// it uses the packets' read port, and the words that the packets had read there are read again.
//
// With `Storm`, this is the limit on the frames that kind l2 would send to all ports: behind the meter of the network, charged by them only.
//
// Latency: 11 clocks in which `en_i` is 1. Throughput: one packet a clock.
module hue_meter
  import hue_pkg::*;
  import hue_regs_pkg::*;
  import hue_stages_pkg::*;
#(
    parameter int unsigned Nets = 16,
    parameter bit Storm = 1'b0
) (
    input  logic        clk_i,
    input  logic        rst_ni,
    input  tbl_req_t    tbl_req_i,
    output tbl_rsp_t    tbl_rsp_o,
    output logic        error_o,
    output logic        wait_o,     // `en_i` must be 0 in the next clock
    input  logic        en_i,
    input  logic        valid_i,
    input  packet_t     packet_i,
    input  logic [63:0] time_ns_i,
    output logic        valid_o,
    output packet_t     packet_o
);
  localparam int unsigned NetBits = Nets > 1 ? $clog2(Nets) : 1;
  localparam int unsigned Latency = 11;
  localparam logic [7:0] Table = Storm ? TABLE_STORM : TABLE_METER;
  localparam logic [7:0] DebtTable = Storm ? TABLE_STORM_DEBT : TABLE_DEBT;
  localparam int unsigned Buckets = 2;  // packets, bits
  // Tokens are counted in units of 10^-9. 10^9 is 2^9 * 5^9, and capacities are kept without their lowest nine zeros. A byte costs
  // 8 * 10^9, which is 2^12 * 5^9.
  localparam logic [46:0] UnitTokens = 47'd1_000_000_000;
  localparam logic [20:0] FiveToNine = 21'd1_953_125;
  localparam int unsigned Zeros = 9;
  localparam int unsigned TimeBits = 64;
  localparam int unsigned TokenBits = 70;

  typedef logic [39:0] rate_t;
  typedef logic [TokenBits-1:0] tokens_t;
  typedef logic [TimeBits-1:0] time_t;
  typedef logic signed [TokenBits+1:0] signed_t;  // sums and differences of tokens
  typedef logic signed [62:0] capacity_t;

  packet_t packet10;
  logic [NetBits-1:0] net_q[1:Latency-1];
  logic [13:0] len_q[1:4];
  logic [Latency:1] valid_q, metered_q, void_q;  // void: the row was written while the packet was in here
  logic metered, charge2, charge3, charge9, charge10;
  packet_t limited;

  // ---- table: the row, and the capacity computed from it
  row_meter_t row, write_row, unused_write_data;
  logic table_write, table_wait, unused_parity;
  logic [NetBits-1:0] table_addr;
  tbl_rsp_t table_rsp, debt_rsp;
  tbl_req_t table_req;
  capacity_t cap_q[Buckets];  // the packets' bucket: capacity less a packet's cost
  logic signed [41:0] cap_sum[Buckets];
  rate_t burst[Buckets];
  logic [4:0] bit_q;
  logic busy_q, commit_q;
  logic write_access, unused_write_row;

  assign write_access = tbl_req_i.valid && tbl_req_i.write && tbl_req_i.id == Table;
  assign burst = '{rate_t'(write_row.packets_burst), rate_t'(write_row.bits_burst)};
  assign write_row = row_meter_t'(tbl_req_i.wdata[$bits(row_meter_t)-1:0]);
  assign unused_write_row = &{1'b0, write_row, row, metered_q[Latency], void_q[Latency]};
  // The table sees a write when the capacity is ready; a row that does not exist is refused only then.
  always_comb begin
    table_req = tbl_req_i;
    if (write_access && !commit_q) table_req.valid = 1'b0;
  end

  // burst * 5^9, one bit of 5^9 a clock: the addend stays in place, and the sum is shifted down.
  always_comb begin
    for (int unsigned i = 0; i < Buckets; i++) begin
      cap_sum[i] = cap_q[i][62:21] + (FiveToNine[bit_q] ? 42'(burst[i]) : '0);
    end
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      busy_q   <= 1'b0;
      commit_q <= 1'b0;
      bit_q    <= '0;
    end else begin
      if (!write_access) begin
        busy_q   <= 1'b0;
        commit_q <= 1'b0;
      end else if (!busy_q) begin
        busy_q <= 1'b1;
        bit_q  <= '0;
      end else if (bit_q == 5'd20) begin
        commit_q <= 1'b1;
      end else begin
        bit_q <= bit_q + 5'd1;
      end
    end
  end
  always_ff @(posedge clk_i) begin
    for (int unsigned i = 0; i < Buckets; i++) begin
      if (!busy_q) cap_q[i] <= {i == 0 ? -42'(FiveToNine) : 42'd0, 21'd0};
      else if (!commit_q) cap_q[i] <= {cap_sum[i][41], cap_sum[i], cap_q[i][20:1]};
    end
  end

  hue_table #(.Id(Table), .Rows(Nets), .Width($bits(row_meter_t))) u_table (
    .clk_i, .rst_ni, .tbl_req_i(table_req), .tbl_rsp_o(table_rsp),
    .write_o(table_write), .write_addr_o(table_addr), .write_data_o(unused_write_data),
    .wait_o(table_wait), .en_i, .addr_i(packet_i.net[NetBits-1:0]), .data_o(row), .parity_o(unused_parity), .check_i(en_i && metered_q[1]), .error_o
  );
  assign tbl_rsp_o = table_rsp | debt_rsp;

  // ---- debts, for the host. A write takes one clock. A read takes two: in the second, the words that packets had read are read
  // again.
  logic debt_start, debt_asked_q, debt_back_q, debt_read_q, debt_write, debt_read, debt_again, write_state;
  logic [NetBits-1:0] debt_addr, write_addr;
  row_debt_t debt_in, debt_out_q;
  time_t m1_stored;
  tokens_t m8_stored[Buckets], debts_in[Buckets];
  assign debt_in     = row_debt_t'(tbl_req_i.wdata[$bits(row_debt_t)-1:0]);
  assign debts_in    = '{tokens_t'({debt_in.packets_high, debt_in.packets_low}), tokens_t'({debt_in.bits_high, debt_in.bits_low})};
  assign debt_write  = debt_asked_q && tbl_req_i.write;
  assign debt_read   = debt_asked_q && !tbl_req_i.write;
`ifdef HUE_PLANT_METER_AGAIN
  assign debt_again  = 1'b0;
`else
  assign debt_again  = debt_back_q;
`endif
  assign write_state = table_write || debt_write;
  assign write_addr  = table_write ? table_addr : debt_addr;
  assign wait_o      = table_wait || debt_start || debt_read;
  hue_table_port #(.Id(DebtTable), .Rows(Nets), .Late(1'b1)) u_debt_port (
    .clk_i, .rst_ni, .tbl_req_i, .tbl_rsp_o(debt_rsp), .start_o(debt_start), .addr_o(debt_addr),
    .done_i(debt_write || debt_read_q), .rdata_i(256'(debt_out_q))
  );
  always_ff @(posedge clk_i) begin
    if (!rst_ni) {debt_read_q, debt_back_q, debt_asked_q} <= '0;
    else {debt_read_q, debt_back_q, debt_asked_q} <= {debt_back_q, debt_read, debt_start};
    if (debt_back_q) begin
      debt_out_q.time_ns <= 64'(m1_stored);
      {debt_out_q.packets_high, debt_out_q.packets_low} <= 70'(m8_stored[0]);
      {debt_out_q.bits_high, debt_out_q.bits_low} <= 70'(m8_stored[1]);
    end
  end

  // ---- the packets in the pipeline
  assign metered = valid_i && !packet_i.decided && (!Storm || packet_i.flood);
  assign charge2 = metered_q[2] && !void_q[2];
  assign charge3 = metered_q[3] && !void_q[3];
  assign charge9 = metered_q[9] && !void_q[9];
  assign charge10 = metered_q[10] && !void_q[10];

  logic [NetBits-1:0] net;
  assign net = packet_i.net[NetBits-1:0];

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      valid_q   <= '0;
      metered_q <= '0;
      void_q    <= '0;
    end else if (en_i) begin
      valid_q   <= {valid_q[Latency-1:1], valid_i};
      metered_q <= {metered_q[Latency-1:1], metered};
      void_q    <= {void_q[Latency-1:1], 1'b0};
    end else if (write_state) begin
      for (int unsigned i = 1; i < Latency; i++) begin
        if (net_q[i] == write_addr) void_q[i] <= 1'b1;
      end
    end
  end
  always_ff @(posedge clk_i) begin
    if (en_i) begin
      net_q[1] <= net;
      len_q[1] <= packet_i.len;
      for (int unsigned i = 2; i < Latency; i++) net_q[i] <= net_q[i-1];
      for (int unsigned i = 2; i <= 4; i++) len_q[i] <= len_q[i-1];
      packet_o <= limited;
    end
  end
  hue_delay #(.Clocks(Latency - 1), .Bits($bits(packet_t))) u_packet (
    .clk_i, .rst_ni, .en_i, .data_i(packet_i), .data_o(packet10)
  );

  // ---- 1: the time of the packet before, from the memory or from one of the three packets before; 2: elapsed time; 3: the later
  // of the two times
  time_t m1_now_q, m2_now_q, m2_stored_q, base2, m3_before_q, m3_now_q, last3, m4_last_q;
  logic [63:0] m3_elapsed_q;
  logic [TimeBits:0] elapsed;
  logic m1_two_q, m1_three_q, m2_same_q, same2, m3_late_q;
  logic [6:3] late_q;  // the packet's time is before that of the packet before: nothing is earned
`ifdef HUE_PLANT_METER_LAST
  assign same2 = 1'b0;
`else
  assign same2 = m2_same_q;
`endif
  assign last3   = m3_late_q ? m3_before_q : m3_now_q;
  assign base2   = same2 ? last3 : m2_stored_q;
  assign elapsed = {1'b0, m2_now_q} - {1'b0, base2};
  // A write of a row also sets its last time and its debts to zero.
  hue_ram #(.Words(Nets), .Bits(TimeBits)) u_last (
    .clk_i, .write_i(write_state || (en_i && charge3)), .waddr_i(write_state ? write_addr : net_q[3]),
    .wdata_i(table_write ? '0 : debt_write ? time_t'(debt_in.time_ns) : last3),
    .read_i((en_i && metered) || debt_read || debt_again),
    .raddr_i(debt_asked_q ? debt_addr : debt_back_q ? net_q[1] : net), .rdata_o(m1_stored)
  );
  always_ff @(posedge clk_i) begin
    if (en_i && metered) begin
      m1_now_q   <= time_t'(time_ns_i);
      m1_two_q   <= charge2 && net_q[2] == net;
      m1_three_q <= charge3 && net_q[3] == net;
    end
    if (en_i && metered_q[1]) begin
      m2_now_q    <= m1_now_q;
      m2_stored_q <= m1_two_q ? last3 : m1_three_q ? m4_last_q : m1_stored;
      m2_same_q   <= charge2 && net_q[2] == net_q[1];
    end
    if (en_i && charge2) begin
      m3_before_q <= base2;
      m3_now_q    <= m2_now_q;
      m3_late_q   <= elapsed[TimeBits];
    end
    if (en_i && charge3) m4_last_q <= last3;
    if (en_i) begin
      m3_elapsed_q <= 64'(elapsed[TimeBits-1:0]);
      late_q       <= {late_q[5:3], elapsed[TimeBits]};
    end
  end

  logic [Buckets-1:0] m1_on;
  rate_t m1_rate[Buckets];
  assign m1_on   = {row.bits_on, row.packets_on};
  assign m1_rate = '{row.packets_rate, row.bits_rate};
  logic [8:2][Buckets-1:0] on_q;
  always_ff @(posedge clk_i) begin
    if (en_i) on_q <= {on_q[7:2], m1_on};
  end

  // ---- 5, 6: cost in bits; the cost in packets is one unit
  logic [31:0] m5_cost_low_q;
  logic [16:0] m5_cost_high_q;
  logic [46:0] m6_cost_q;
  always_ff @(posedge clk_i) begin
    if (en_i && metered_q[4]) begin
      m5_cost_low_q  <= 32'(len_q[4]) * 32'(FiveToNine[17:0]);
      m5_cost_high_q <= 17'(len_q[4]) * 17'(FiveToNine[20:18]);
    end
    if (en_i && metered_q[5]) m6_cost_q <= {35'(m5_cost_low_q) + {m5_cost_high_q, 18'd0}, 12'd0};
  end

  // ---- 8, 9: the source of the debt: the memory, or one of the three packets before
  logic m8_two_q, m8_three_q, m9_same_q, same9;
  always_ff @(posedge clk_i) begin
    if (en_i) begin
      m8_two_q   <= charge9 && net_q[9] == net_q[7];
`ifdef HUE_PLANT_METER_THIRD
      m8_three_q <= 1'b0;
`else
      m8_three_q <= charge10 && net_q[10] == net_q[7];
`endif
      m9_same_q  <= charge9 && net_q[9] == net_q[8];
    end
  end
`ifdef HUE_PLANT_METER_LEVEL
  assign same9 = 1'b0;
`else
  assign same9 = m9_same_q;
`endif

  // ---- 9: the decision: a bucket drops the packet if it could never hold its cost, or if it lacks too much now
  logic m9_never_q, m10_never_q, m10_limited;
  logic [Buckets-1:0] m8_nevers, m9_asked_q, fits, m10_lacks_q;
  always_ff @(posedge clk_i) begin
    if (en_i) m9_never_q <= m8_nevers != '0;
    if (en_i && charge9) begin
      m10_never_q <= m9_never_q;
      m10_lacks_q <= m9_asked_q & ~fits;
    end
  end
  assign m10_limited = m10_never_q || m10_lacks_q != '0;

  for (genvar i = 0; i < Buckets; i++) begin : gen_bucket
    // ---- 3 to 7: elapsed time times rate, in digits of 18 bits, up to 70 bits; `over`: the product has more bits
    rate_t m2_rate_q, m3_rate_q;
    logic [1:0][57:0] m4_even_q, m5_low_q;  // of time digits 0 and 1: the products with rate digits 0 and 2 side by side
    logic [1:0][35:0] m4_odd_q;             // and with rate digit 1
    logic [35:0] m4_two_low_q, m4_two_high_q;
    logic [27:0] m4_three_q;
    logic m4_over_q, m5_over_q, m6_over_q;
    logic [53:0] m5_two_q;
    logic [34:0] m6_high_q;
    logic [27:0] m5_three_q;
    logic [75:0] m6_low_q;
    logic m7_over_q;
    tokens_t m7_earned_q;
    logic [35:0] top;
    assign top = 36'(m6_low_q[69:36]) + 36'(m6_high_q);
    always_ff @(posedge clk_i) begin
      if (en_i && metered_q[1]) m2_rate_q <= m1_rate[i];
      if (en_i && metered_q[2]) m3_rate_q <= m2_rate_q;
      if (en_i && metered_q[3]) begin
        for (int unsigned j = 0; j < 2; j++) begin
          m4_even_q[j][35:0]  <= 36'(m3_elapsed_q[18*j+:18]) * 36'(m3_rate_q[17:0]);
          m4_even_q[j][57:36] <= 22'(m3_elapsed_q[18*j+:18]) * 22'(m3_rate_q[39:36]);
          m4_odd_q[j]         <= 36'(m3_elapsed_q[18*j+:18]) * 36'(m3_rate_q[35:18]);
        end
        m4_two_low_q  <= 36'(m3_elapsed_q[53:36]) * 36'(m3_rate_q[17:0]);
        m4_two_high_q <= 36'(m3_elapsed_q[53:36]) * 36'(m3_rate_q[35:18]);
        m4_three_q    <= 28'(m3_elapsed_q[63:54]) * 28'(m3_rate_q[17:0]);
        m4_over_q     <= (m3_elapsed_q[53:36] != '0 && m3_rate_q[39:36] != '0) ||
                         (m3_elapsed_q[63:54] != '0 && m3_rate_q[39:18] != '0);
      end
      if (en_i && metered_q[4]) begin
        for (int unsigned j = 0; j < 2; j++) m5_low_q[j] <= m4_even_q[j] + {4'd0, m4_odd_q[j], 18'd0};
        m5_two_q   <= 54'(m4_two_low_q) + {m4_two_high_q, 18'd0};
        m5_three_q <= m4_three_q;
        m5_over_q  <= m4_over_q;
      end
      if (en_i && metered_q[5]) begin
        m6_low_q  <= 76'(m5_low_q[0]) + {m5_low_q[1], 18'd0};
        m6_high_q <= 35'(m5_two_q[33:0]) + {1'b0, m5_three_q[15:0], 18'd0};
        m6_over_q <= m5_over_q || m5_two_q[53:34] != '0 || m5_three_q[27:16] != '0;
      end
      if (en_i && metered_q[6]) begin
        m7_earned_q <= tokens_t'({top[33:0], m6_low_q[35:0]});
        m7_over_q   <= m6_over_q || m6_low_q[75:70] != '0 || top[35:34] != '0;
        if (late_q[6]) {m7_over_q, m7_earned_q} <= '0;
      end
    end

    // ---- 7 to 9: the limit and the earned tokens for the loop; [1]: if the packet before passes
    capacity_t m5_cap, m6_cap_q;
    signed_t m7_slack_q, m8_limit_q;  // capacity less cost; the same plus what is earned
    logic [TokenBits:0] m8_earned_q;
    signed_t [1:0] m9_limit_q, m9_earned_q;
    logic [46:0] cost_q[7:10];
    logic [46:0] cost6;
    assign cost6 = i == 0 ? UnitTokens : m6_cost_q;
    hue_ram #(.Words(Nets), .Bits($bits(capacity_t))) u_caps (
      .clk_i, .write_i(table_write), .waddr_i(table_addr), .wdata_i(cap_q[i]),
      .read_i(en_i && metered_q[4]), .raddr_i(net_q[4]), .rdata_o(m5_cap)
    );
    always_ff @(posedge clk_i) begin
      if (en_i && metered_q[5]) m6_cap_q <= m5_cap;
      if (en_i && metered_q[6]) begin
        m7_slack_q <= signed_t'({m6_cap_q, {Zeros{1'b0}}}) - (i == 0 ? '0 : signed_t'({1'b0, cost6}));
        cost_q[7]  <= cost6;
      end
      if (en_i && metered_q[7]) begin
        m8_limit_q  <= m7_slack_q + signed_t'({2'd0, m7_earned_q});
        m8_nevers[i] <= m7_slack_q[TokenBits+1] && on_q[7][i];
        m8_earned_q <= {m7_over_q, m7_earned_q};
        cost_q[8]   <= cost_q[7];
      end
      if (en_i && metered_q[8]) begin
        m9_limit_q  <= {m8_limit_q - signed_t'({1'b0, cost_q[9]}), m8_limit_q};
        m9_earned_q <= {signed_t'({1'b0, m8_earned_q}) - signed_t'({1'b0, cost_q[9]}), signed_t'({1'b0, m8_earned_q})};
        m9_asked_q[i] <= on_q[8][i] && !m8_earned_q[TokenBits];
        cost_q[9]   <= cost_q[8];
      end
      if (en_i && charge9) cost_q[10] <= cost_q[9];
    end

    // ---- 9: the debt as the packet before left it; 10: the new debt
    tokens_t m9_stored_q, m10_left_q, base, debt, m11_debt_q;
    signed_t left;
    signed_t [1:0] room;  // if the packet before was dropped, and if it passed: its decision comes late
    logic m10_clear_q, paid, unused_bits;
    assign paid = same9 && !m10_limited;
    assign base = same9 ? (m10_clear_q ? '0 : m10_left_q) : m9_stored_q;
    assign left = signed_t'({2'd0, base}) - m9_earned_q[paid];
    assign room = {m9_limit_q[1] - signed_t'({2'd0, base}), m9_limit_q[0] - signed_t'({2'd0, base})};
    assign fits[i] = !room[paid][TokenBits+1];
    assign debt = (m10_clear_q ? '0 : m10_left_q) + (m10_limited ? '0 : tokens_t'(cost_q[10]));
    assign unused_bits = &{1'b0, left[TokenBits], room};
    hue_ram #(.Words(Nets), .Bits($bits(tokens_t))) u_debts (
      .clk_i, .write_i(write_state || (en_i && charge10)), .waddr_i(write_state ? write_addr : net_q[10]),
      .wdata_i(table_write ? '0 : debt_write ? debts_in[i] : debt),
      .read_i((en_i && metered_q[7]) || debt_read || debt_again),
      .raddr_i(debt_asked_q ? debt_addr : debt_back_q ? net_q[8] : net_q[7]), .rdata_o(m8_stored[i])
    );
    always_ff @(posedge clk_i) begin
      if (en_i && metered_q[8]) begin
        m9_stored_q <= m8_two_q ? debt : m8_three_q ? m11_debt_q : m8_stored[i];
      end
      if (en_i && charge9) begin
        m10_left_q  <= left[TokenBits-1:0];
        m10_clear_q <= left[TokenBits+1];
      end
      if (en_i && charge10) m11_debt_q <= debt;
    end

`ifndef SYNTHESIS
    signed_t m10_cap_q;
    logic m10_checked_q;
    always_ff @(posedge clk_i) begin
      if (en_i) begin
        m10_cap_q     <= m9_limit_q[0] - m9_earned_q[0] + signed_t'({1'b0, cost_q[9]});
        m10_checked_q <= m9_asked_q[i] && !m9_never_q;
      end
      if (en_i && charge10 && m10_checked_q && !m10_limited) begin
        assert (signed_t'({2'd0, debt}) <= m10_cap_q) else $error("hue_meter: a bucket lacks more than it can hold");
      end
    end
`endif
  end

  always_comb begin
    limited = packet10;
    if (charge10 && m10_limited) begin
      limited.decided = 1'b1;
      limited.verdict = VerdictDrop;
      limited.outcome = Storm ? hue_kinds_pkg::L2_STORM : hue_kinds_pkg::IPV4_RATE_LIMITED;
      limited.flood   = 1'b0;
      limited.ports   = '0;
      // A frame above the network's limit teaches nothing.
      limited.note    = Storm && packet10.note;
    end
  end

  assign valid_o = valid_q[Latency];

`ifndef SYNTHESIS
  hue_latency #(.Clocks(Latency)) u_latency (.clk_i, .rst_ni, .en_i, .in_i(valid_i), .out_i(valid_o));
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      assert (!(write_state && en_i)) else $error("hue_meter: a row was written while packets moved");
      assert (!((debt_asked_q || debt_back_q) && en_i)) else $error("hue_meter: debts were read while packets moved");
    end
  end
`endif
endmodule
