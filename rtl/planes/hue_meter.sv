// Token buckets of the networks: a packet above its network's rate limit is dropped.
//
// Place: hue_network → **here** → kind. Crate: crates/planes/src/meter.rs, bit for bit: tokens of 10^-9 packets or bits,
// time in nanoseconds, nothing rounded. Whatever does not depend on the packets before is worked out on the way; two
// loops of one clock remain, `last` and `level`, whose newest value is handed on to the next packet, so that packets of
// one network follow each other at one a clock.
//
//     level' = min(level + earned, cap), and less the cost if both buckets hold it
// with `earned` already below `cap`, `full` = cap - earned and `enough` = cost - earned known before, is
//     level >= full:  cap, cap - cost if cap >= cost
//     else:           level + earned, level + (earned - cost) if level >= enough
// so each loop is a comparison beside an addition.
//
// A write of a row is answered after some 35 clocks: the capacity is multiplied bit by bit. It takes effect in one clock
// in which nothing moves (`wait_o`). Packets of the network that are in here then pass and pay nothing.
//
// Latency: 9 clocks in which `en_i` is 1. Throughput: one packet a clock.
module hue_meter
  import hue_pkg::*;
  import hue_regs_pkg::*;
  import hue_stages_pkg::*;
#(
    parameter int unsigned Nets = 16
) (
    input  logic        clk_i,
    input  logic        rst_ni,
    input  tbl_req_t    tbl_req_i,
    output tbl_rsp_t    tbl_rsp_o,
    output logic        error_o,
    output logic        wait_o,     // `en_i` must be 0 in this clock
    input  logic        en_i,
    input  logic        valid_i,
    input  packet_t     packet_i,
    input  logic [63:0] time_ns_i,
    output logic        valid_o,
    output packet_t     packet_o
);
  localparam int unsigned NetBits = Nets > 1 ? $clog2(Nets) : 1;
  localparam int unsigned Latency = 9;
  localparam int unsigned Buckets = 2;  // packets, bits
  localparam logic [29:0] UnitTokens = 30'd1_000_000_000;
  localparam logic [32:0] ByteTokens = 33'd8_000_000_000;

  typedef logic [39:0] rate_t;
  typedef logic [69:0] tokens_t;
  // The sum of 70 bits and a product.
  typedef logic [103:0] wide_t;

  packet_t packet_q[1:Latency];
  logic [Latency:1] valid_q, metered_q, void_q;  // void: its row was written while it was in here
  logic metered, charge;
  packet_t limited;

  // ---- table: the row, and what it becomes
  row_meter_t row, write_row, unused_write_data;
  logic table_write, table_error;
  logic [NetBits-1:0] table_addr;
  tbl_rsp_t table_rsp;
  tbl_req_t table_req;
  tokens_t cap_d[Buckets];
  tokens_t cap_q[Buckets];
  rate_t burst[Buckets];
  logic [4:0] bit_q;
  logic busy_q, commit_q, seen_q;
  tokens_t shifted_q[Buckets];
  logic write_access, unused_write_row;

  assign write_access = tbl_req_i.valid && tbl_req_i.write && tbl_req_i.id == TABLE_METER;
  assign burst = '{rate_t'(write_row.packets_burst), rate_t'(write_row.bits_burst)};
  assign write_row = row_meter_t'(tbl_req_i.wdata[$bits(row_meter_t)-1:0]);
  assign unused_write_row = &{1'b0, write_row, row, metered_q[Latency], void_q[Latency]};
  // The table sees a write when the capacity is ready; a row that does not exist is refused then.
  always_comb begin
    table_req = tbl_req_i;
    if (write_access && !commit_q) table_req.valid = 1'b0;
  end
  assign wait_o = commit_q && !seen_q;

  always_comb begin
    for (int unsigned i = 0; i < Buckets; i++) begin
      cap_d[i] = cap_q[i];
      if (UnitTokens[bit_q]) cap_d[i] = cap_q[i] + shifted_q[i];
    end
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      busy_q   <= 1'b0;
      commit_q <= 1'b0;
      seen_q   <= 1'b0;
      bit_q    <= '0;
    end else begin
      seen_q <= commit_q;
      if (!write_access) begin
        busy_q   <= 1'b0;
        commit_q <= 1'b0;
      end else if (!busy_q) begin
        busy_q <= 1'b1;
        bit_q  <= '0;
      end else if (bit_q == 5'd29) begin
        commit_q <= 1'b1;
      end else begin
        bit_q <= bit_q + 5'd1;
      end
    end
  end
  always_ff @(posedge clk_i) begin
    for (int unsigned i = 0; i < Buckets; i++) begin
      if (!busy_q) begin
        cap_q[i]     <= '0;
        shifted_q[i] <= tokens_t'(burst[i]);
      end else if (!commit_q) begin
        cap_q[i]     <= cap_d[i];
        shifted_q[i] <= shifted_q[i] << 1;
      end
    end
  end

  hue_table #(.Id(TABLE_METER), .Rows(Nets), .Width($bits(row_meter_t))) u_table (
    .clk_i, .rst_ni, .tbl_req_i(table_req), .tbl_rsp_o(table_rsp),
    .write_o(table_write), .write_addr_o(table_addr), .write_data_o(unused_write_data),
    .en_i, .addr_i(packet_i.net[NetBits-1:0]), .data_o(row), .error_o(table_error)
  );
  assign tbl_rsp_o = table_rsp;

  // ---- what runs through
  assign metered = valid_i && !packet_i.decided;
  assign charge  = metered_q[8] && !void_q[8];

  /* verilator lint_off UNUSEDSIGNAL */
  function automatic logic [NetBits-1:0] net_of(packet_t packet);
    return packet.net[NetBits-1:0];
  endfunction
  /* verilator lint_on UNUSEDSIGNAL */

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      valid_q   <= '0;
      metered_q <= '0;
      void_q    <= '0;
    end else if (en_i) begin
      valid_q   <= {valid_q[Latency-1:1], valid_i};
      metered_q <= {metered_q[Latency-1:1], metered};
      void_q    <= {void_q[Latency-1:1], 1'b0};
    end else if (table_write) begin
      for (int unsigned i = 1; i <= Latency; i++) begin
        if (net_of(packet_q[i]) == table_addr) void_q[i] <= 1'b1;
      end
    end
  end
  always_ff @(posedge clk_i) begin
    if (en_i) begin
      packet_q[1] <= packet_i;
      for (int unsigned i = 2; i < Latency; i++) packet_q[i] <= packet_q[i-1];
      packet_q[Latency] <= limited;
    end
  end

  // ---- 1: elapsed time
  logic [63:0] last_q[Nets];
  logic [63:0] m1_now_q, m1_last_q, last_d, m2_elapsed_q;
  logic later;
  assign later  = m1_now_q > m1_last_q;
  assign last_d = later ? m1_now_q : m1_last_q;
  always_ff @(posedge clk_i) begin
    if (table_write) last_q[table_addr] <= '0;
    else if (en_i && metered_q[1] && !void_q[1]) last_q[net_of(packet_q[1])] <= last_d;
  end
  always_ff @(posedge clk_i) begin
    if (en_i && metered) begin
      m1_now_q  <= time_ns_i;
`ifdef HUE_PLANT_METER_LAST
      m1_last_q <= last_q[net_of(packet_i)];
`else
      m1_last_q <= metered_q[1] && !void_q[1] && net_of(packet_q[1]) == net_of(packet_i) ? last_d : last_q[net_of(packet_i)];
`endif
    end
    if (en_i) m2_elapsed_q <= later ? m1_now_q - m1_last_q : '0;
  end

  logic [Buckets-1:0] m1_on, limited_by_d;
  rate_t m1_rate[Buckets];
  assign m1_on   = {row.bits_on, row.packets_on};
  assign m1_rate = '{row.packets_rate, row.bits_rate};
  logic [Latency-1:2][Buckets-1:0] on_q;
  always_ff @(posedge clk_i) begin
    if (en_i) on_q <= {on_q[Latency-2:2], m1_on};
  end

  // ---- 6: cost of the bits; a packet costs a unit
  logic [46:0] m6_cost_q;
  always_ff @(posedge clk_i) begin
    if (en_i && metered_q[5]) m6_cost_q <= 47'(packet_q[5].len) * 47'(ByteTokens);
  end

  for (genvar i = 0; i < Buckets; i++) begin : gen_bucket
    // ---- 2 to 4: elapsed times rate, by 16 bits of the time
    rate_t m2_rate_q;
    logic [3:0][55:0] m3_part_q;
    logic [1:0][72:0] m4_half_q;
    wide_t m5_earned_q;
    always_ff @(posedge clk_i) begin
      if (en_i && metered_q[1]) m2_rate_q <= m1_rate[i];
      if (en_i && metered_q[2]) begin
        for (int unsigned j = 0; j < 4; j++) m3_part_q[j] <= 56'(m2_elapsed_q[16*j+:16]) * 56'(m2_rate_q);
      end
      if (en_i && metered_q[3]) begin
        for (int unsigned j = 0; j < 2; j++) m4_half_q[j] <= 73'(m3_part_q[2*j]) + {1'b0, m3_part_q[2*j+1], 16'd0};
      end
      if (en_i && metered_q[4]) m5_earned_q <= wide_t'(m4_half_q[0]) + {m4_half_q[1][71:0], 32'd0};
    end

    // ---- 5: no more than the bucket holds
    tokens_t caps_q[Nets];
    tokens_t m5_cap_q, m6_cap_q, m6_earned_q;
    always_ff @(posedge clk_i) begin
      if (table_write) caps_q[table_addr] <= cap_q[i];
    end
    always_ff @(posedge clk_i) begin
      if (en_i && metered_q[4]) m5_cap_q <= caps_q[net_of(packet_q[4])];
      if (en_i && metered_q[5]) begin
        m6_cap_q    <= m5_cap_q;
        m6_earned_q <= m5_earned_q >= wide_t'(m5_cap_q) ? m5_cap_q : m5_earned_q[69:0];
      end
    end

    // ---- 6: what the loop compares with and adds
    tokens_t m6_cost, m7_full_q, m7_earned_q, m7_cap_q, m7_cap_less_q;
    logic [70:0] m7_enough_q;  // two's complement
    tokens_t m7_gain_q;        // modulo 2^70
    logic m7_cap_holds_q;
    assign m6_cost = i == 0 ? tokens_t'(UnitTokens) : tokens_t'(m6_cost_q);
    always_ff @(posedge clk_i) begin
      if (en_i && metered_q[6]) begin
        m7_full_q      <= m6_cap_q - m6_earned_q;
        m7_enough_q    <= {1'b0, m6_cost} - {1'b0, m6_earned_q};
        m7_gain_q      <= m6_earned_q - m6_cost;
        m7_earned_q    <= m6_earned_q;
        m7_cap_q       <= m6_cap_q;
        m7_cap_less_q  <= m6_cap_q - m6_cost;
        m7_cap_holds_q <= m6_cap_q >= m6_cost;
      end
    end

    // ---- 7: the level, as the packet before left it
    tokens_t levels_q[Nets];
    tokens_t m8_level_q, m8_full_q, m8_earned_q, m8_cap_q, m8_cap_less_q, level_d;
    logic [70:0] m8_enough_q;
    tokens_t m8_gain_q;
    logic m8_cap_holds_q;
    always_ff @(posedge clk_i) begin
      if (table_write) levels_q[table_addr] <= cap_q[i];
      else if (en_i && charge) levels_q[net_of(packet_q[8])] <= level_d;
    end
    always_ff @(posedge clk_i) begin
      if (en_i && metered_q[7]) begin
`ifdef HUE_PLANT_METER_LEVEL
        m8_level_q     <= levels_q[net_of(packet_q[7])];
`else
        m8_level_q     <= charge && net_of(packet_q[8]) == net_of(packet_q[7]) ? level_d : levels_q[net_of(packet_q[7])];
`endif
        m8_full_q      <= m7_full_q;
        m8_enough_q    <= m7_enough_q;
        m8_gain_q      <= m7_gain_q;
        m8_earned_q    <= m7_earned_q;
        m8_cap_q       <= m7_cap_q;
        m8_cap_less_q  <= m7_cap_less_q;
        m8_cap_holds_q <= m7_cap_holds_q;
      end
    end

    // ---- 8: the decision
    logic full, holds;
    assign full  = m8_level_q >= m8_full_q;
    assign holds = full ? m8_cap_holds_q : m8_enough_q[70] || m8_level_q >= m8_enough_q[69:0];
    assign limited_by_d[i] = on_q[8][i] && !holds;
    always_comb begin
      if (limited_by_d != '0) level_d = full ? m8_cap_q : m8_level_q + m8_earned_q;
      else level_d = full ? m8_cap_less_q : m8_level_q + m8_gain_q;
    end

`ifndef SYNTHESIS
    always_ff @(posedge clk_i) begin
      if (en_i && charge && on_q[8][i]) begin
        assert (level_d <= m8_cap_q) else $error("hue_meter: a bucket holds more than it can");
      end
    end
`endif
  end

  always_comb begin
    limited = packet_q[8];
    if (charge && limited_by_d != '0) begin
      limited.decided = 1'b1;
      limited.verdict = VerdictDrop;
      limited.outcome = hue_kinds_pkg::IPV4_RATE_LIMITED;
    end
  end

  assign valid_o  = valid_q[Latency];
  assign packet_o = packet_q[Latency];
  assign error_o  = en_i && metered_q[1] && table_error;

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      assert (!(wait_o && en_i)) else $error("hue_meter: moved in a clock that it had asked for");
      assert (!(table_write && en_i)) else $error("hue_meter: a row was written while packets moved");
    end
  end
`endif
endmodule
