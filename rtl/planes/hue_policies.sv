// Routes that depend on the source: which policy of its network a packet has, and whether that takes precedence over its destination's route.
//
// Place: in hue_routes, beside the walk (rtl/tables/hue_dag36_walk), in images with policies. In Rust: `PolicyTable::decide` in
// crates/tables/src/policy.rs; the tables are filled by crates/card/src/policies.rs. While the walk looks up a packet's destination,
// this module searches its source and its destination in the network's ranges (RANGE, by bisection). Their values together are the place
// of the pair in PAIR, which names the best policy in RULE. Once the walk has the destination's answer, its length is compared. If the policy
// wins, the walk looks the policy's gateway up instead.
// The length follows from the answer: a network with policies has each row of next hops once for each length of prefixes, so that the length is
// the row modulo 33 (IPv4) or 129 (IPv6). A packet for the router itself, whose row is local and of full length, has no policy.
// Isolation: a packet searches the runs of its own network's row in POLICY. Whatever the tables contain, all that comes out is an address, which
// is looked up in the packet's own network. So no policy makes a packet leave it.
// Changes: the row in POLICY is read once for a packet. A packet has all policies from before a change of it, or all from after.
//
// Four packets are searched at once, in turn: each moves through four stages (address, memory, comparison, next step) and begins again. A
// packet takes a round for its row, one for each step of both searches and the first rows of each, and three for pair, answer and rule.
// Latency: 4 clocks a round. Throughput: a round a clock; so with up to 256 ranges in a run, a packet in 22 clocks.
// Source: ADR 0064.
module hue_policies
  import hue_pkg::*;
  import hue_regs_pkg::*;
  import hue_stages_pkg::*;
#(
    parameter int unsigned Slots     = 64,   // of the walk
    parameter int unsigned RangeRows = 512,
    parameter int unsigned PairRows  = 2048,
    parameter int unsigned RuleRows  = 256,
    parameter int unsigned Nets      = 16,
    parameter int unsigned HopRows   = 32,
    localparam int unsigned SlotBits = $clog2(Slots),
    localparam int unsigned HopBits  = HopRows > 1 ? $clog2(HopRows) : 1
) (
    input  logic                clk_i,
    input  logic                rst_ni,
    input  tbl_req_t            tbl_req_i,
    output tbl_rsp_t            tbl_rsp_o,
    output logic                error_o,
    // a lookup of a packet in a network with policies enters the walk
    input  logic                enter_i,
    input  logic [SlotBits-1:0] slot_i,
    input  logic [7:0]          net_i,
    input  logic                wide_i,        // IPv6
    input  logic [15:0]         hop_base_i,
    input  logic [15:0]         hop_count_i,
    input  logic [127:0]        source_i,      // an IPv4 address is the highest bits; the others are 0
    input  logic [127:0]        destination_i,
    // what the walk found, or not yet
    output logic [SlotBits-1:0] ask_slot_o,
    input  logic                ended_i,
    input  logic                failed_i,      // a word of the lookup had wrong parity
    input  logic [15:0]         hop_i,
    // The packet's answer stands, or the walk looks up another address. Without `ready_i`, it is judged again 4 clocks later.
    output logic                judged_o,
    input  logic                ready_i,
    output logic [SlotBits-1:0] judged_slot_o,
    output logic                again_o,
    output logic [127:0]        key_o,
    // rows of next hops, as they are written
    input  logic                hop_write_i,
    input  logic [HopBits-1:0]  hop_write_addr_i,
    input  logic                hop_write_local_i
);
  localparam int unsigned RangeBits = $clog2(RangeRows);
  localparam int unsigned PairBits = $clog2(PairRows);
  localparam int unsigned RuleBits = $clog2(RuleRows);
  localparam int unsigned NetBits = Nets > 1 ? $clog2(Nets) : 1;
  localparam logic [15:0] NoRoute = '1;
  if ((RangeRows & (RangeRows - 1)) != 0 || (PairRows & (PairRows - 1)) != 0 || (RuleRows & (RuleRows - 1)) != 0 ||
      RangeRows < 2 || RangeRows > 32768 || PairRows < 2 || PairRows > 32768 || RuleRows < 2 || RuleRows > 32768) begin : gen_check
    $fatal(1, "hue_policies: RangeRows is %0d, PairRows %0d, RuleRows %0d: powers of two from 2 to 32768", RangeRows, PairRows, RuleRows);
  end

  typedef enum logic [2:0] {
    PhaseRow,          // the network's row in POLICY
    PhaseSource,       // a step of the search of the source
    PhaseDestination,
    PhasePair,
    PhaseAnswer,       // the walk's answer
    PhaseRule          // the policy; whether it wins
  } phase_e;

  // A packet that is searched.
  typedef struct packed {
    logic                busy;
    phase_e              phase;
    logic [SlotBits-1:0] slot;
    logic [7:0]          net;
    logic                wide;
    logic [15:0]         hop_base;
    logic [15:0]         hop_count;
    row_policy_t         row;
    logic                first;  // the search is at the first row of its run, which every address reaches
    logic [3:0]          step;   // the next step is to the row 2^(step - 1) further on
    logic [15:0]         at;     // the last row of the run that begins at the address or before it
    logic [15:0]         value;  // of the row
    logic [15:0]         sum;    // of the source's value and the destination's
    logic                found;  // there is a policy
    logic [15:0]         rule;
    logic [15:0]         hop;
    logic                failed;
  } entry_t;

  // ---- packets that wait
  typedef struct packed {
    logic [SlotBits-1:0] slot;
    logic [7:0]          net;
    logic                wide;
    logic [15:0]         hop_base;
    logic [15:0]         hop_count;
  } request_t;
  request_t request;
  logic request_valid, request_take, request_room;
  logic [$clog2(Slots+1)-1:0] unused_room;
  hue_fifo #(.Depth(Slots), .Bits($bits(request_t))) u_requests (
    .clk_i, .rst_ni, .valid_i(enter_i), .ready_o(request_room), .data_i({slot_i, net_i, wide_i, hop_base_i, hop_count_i}),
    .valid_o(request_valid), .ready_i(request_take), .data_o(request), .room_o(unused_room)
  );
`ifndef SYNTHESIS
  a_room: assert property (@(posedge clk_i) disable iff (!rst_ni) enter_i |-> request_room);
`else
  logic unused_ready;
  assign unused_ready = request_room;
`endif
  (* ram_style = "distributed" *) logic [127:0] sources_q[Slots];
  (* ram_style = "distributed" *) logic [127:0] destinations_q[Slots];
  always_ff @(posedge clk_i) begin
    if (enter_i) begin
      sources_q[slot_i]      <= source_i;
      destinations_q[slot_i] <= destination_i;
    end
  end

  // ---- stages: everything stands still while the host is at a row
  logic en_q;
  logic [3:0] waits, errors;
  tbl_rsp_t [3:0] rsps;
  assign tbl_rsp_o = rsps[0] | rsps[1] | rsps[2] | rsps[3];
  assign error_o   = errors != '0;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) en_q <= 1'b0;
    else en_q <= waits == '0;
  end

  // 1: addresses
  entry_t a_q, b_q, c_q, d_q;
  logic [15:0] run, offset, run_count;
  logic [16:0] range_at, pair_at, rule_at, hop_at;
  logic in_range, in_pairs, in_rules, own_hop;
  always_comb begin
    run       = a_q.phase == PhaseSource ? a_q.row.source_first : a_q.row.destination_first;
    run_count = a_q.phase == PhaseSource ? a_q.row.source_count : a_q.row.destination_count;
    offset    = a_q.at;
    if (!a_q.first && a_q.step != '0) offset = a_q.at + (16'd1 << (a_q.step - 4'd1));
    range_at = {1'b0, run} + {1'b0, offset};
    pair_at  = {1'b0, a_q.row.pair_first} + {1'b0, a_q.sum};
    rule_at  = {1'b0, a_q.row.rule_first} + {1'b0, a_q.rule};
    hop_at   = {1'b0, a_q.hop_base} + {1'b0, a_q.hop};
    in_range = offset < run_count && 32'(range_at) < RangeRows;
`ifdef HUE_PLANT_POLICIES_PAIRS
    in_pairs = 32'(pair_at) < PairRows;  // for scripts/rtl-test and scripts/formal
`else
    in_pairs = a_q.sum < a_q.row.pair_count && 32'(pair_at) < PairRows;
`endif
    in_rules = a_q.rule < a_q.row.rule_count && 32'(rule_at) < RuleRows;
    own_hop  = a_q.hop < a_q.hop_count && 32'(hop_at) < HopRows;
  end

  // 2: rows
  row_policy_t policy, unused_policy;
  row_range_t range, unused_range;
  row_pair_t pair, unused_pair;
  row_rule_t rule, unused_rule;
  logic [3:0] unused_writes, unused_parity;
  logic [NetBits-1:0] unused_policy_addr;
  logic [RangeBits-1:0] unused_range_addr;
  logic [PairBits-1:0] unused_pair_addr;
  logic [RuleBits-1:0] unused_rule_addr;
  logic b_in_range_q, b_in_pairs_q, b_in_rules_q, b_own_hop_q, b_local_q;
  hue_table #(.Id(TABLE_POLICY), .Rows(Nets), .Width($bits(row_policy_t)), .Reset(1'b0)) u_policy (
    .clk_i, .rst_ni, .tbl_req_i, .tbl_rsp_o(rsps[0]),
    .write_o(unused_writes[0]), .write_addr_o(unused_policy_addr), .write_data_o(unused_policy), .wait_o(waits[0]), .en_i(en_q),
    .addr_i(a_q.net[NetBits-1:0]), .data_o(policy), .parity_o(unused_parity[0]),
    .check_i(en_q && b_q.busy && b_q.phase == PhaseRow), .error_o(errors[0])
  );
  hue_table #(.Id(TABLE_RANGE), .Rows(RangeRows), .Width($bits(row_range_t)), .Reset(1'b0)) u_range (
    .clk_i, .rst_ni, .tbl_req_i, .tbl_rsp_o(rsps[1]),
    .write_o(unused_writes[1]), .write_addr_o(unused_range_addr), .write_data_o(unused_range), .wait_o(waits[1]), .en_i(en_q),
    .addr_i(range_at[RangeBits-1:0]), .data_o(range), .parity_o(unused_parity[1]),
    .check_i(en_q && b_q.busy && (b_q.phase == PhaseSource || b_q.phase == PhaseDestination) && b_in_range_q), .error_o(errors[1])
  );
  hue_table #(.Id(TABLE_PAIR), .Rows(PairRows), .Width($bits(row_pair_t)), .Reset(1'b0)) u_pair (
    .clk_i, .rst_ni, .tbl_req_i, .tbl_rsp_o(rsps[2]),
    .write_o(unused_writes[2]), .write_addr_o(unused_pair_addr), .write_data_o(unused_pair), .wait_o(waits[2]), .en_i(en_q),
    .addr_i(pair_at[PairBits-1:0]), .data_o(pair), .parity_o(unused_parity[2]),
    .check_i(en_q && b_q.busy && b_q.phase == PhasePair && b_in_pairs_q), .error_o(errors[2])
  );
  hue_table #(.Id(TABLE_RULE), .Rows(RuleRows), .Width($bits(row_rule_t)), .Reset(1'b0)) u_rule (
    .clk_i, .rst_ni, .tbl_req_i, .tbl_rsp_o(rsps[3]),
    .write_o(unused_writes[3]), .write_addr_o(unused_rule_addr), .write_data_o(unused_rule), .wait_o(waits[3]), .en_i(en_q),
    .addr_i(rule_at[RuleBits-1:0]), .data_o(rule), .parity_o(unused_parity[3]),
    .check_i(en_q && b_q.busy && b_q.phase == PhaseRule && b_in_rules_q), .error_o(errors[3])
  );
  // Which rows of next hops are local: a copy of that bit, because the rows themselves are read behind the walk.
  (* ram_style = "distributed" *) logic locals_q[HopRows];
  initial begin
    for (int unsigned i = 0; i < HopRows; i++) locals_q[i] = 1'b0;
  end
  always_ff @(posedge clk_i) begin
    if (hop_write_i) locals_q[hop_write_addr_i] <= hop_write_local_i;
    if (en_q) b_local_q <= locals_q[hop_at[HopBits-1:0]];
  end
  assign ask_slot_o = b_q.slot;

  // 3: comparison
  row_policy_t c_policy_q, d_policy_q;
  row_range_t c_range_q;
  row_pair_t c_pair_q;
  row_rule_t c_rule_q, d_rule_q;
  logic [127:0] c_key_q;
  logic c_in_range_q, c_in_pairs_q, c_in_rules_q, c_local_q, c_ended_q, c_failed_q;
  logic d_reached_q, d_found_q, d_rule_known_q, d_local_q, d_ended_q, d_failed_q, d_longer_q;
  logic [15:0] d_value_q, d_rule_at_q, c_hop_q, d_hop_q;

  // The length of the prefix whose route has a row: modulo 33 by digits of 5 bits, as 32 is -1, or modulo 129 by digits of 7 bits.
  function automatic logic [7:0] length_of(logic [15:0] hop, logic wide);
    logic signed [9:0] left;
    if (wide) begin
      left = $signed({3'd0, hop[6:0]}) - $signed({3'd0, hop[13:7]}) + $signed({8'd0, hop[15:14]});
      if (left < 0) left = left + 10'sd129;
      else if (left >= 10'sd129) left = left - 10'sd129;
    end else begin
      left = $signed({5'd0, hop[4:0]}) - $signed({5'd0, hop[9:5]}) + $signed({5'd0, hop[14:10]}) - $signed({9'd0, hop[15]});
      if (left < 0) left = left + 10'sd33;
      else if (left >= 10'sd33) left = left - 10'sd33;
    end
    return left[7:0];
  endfunction

  logic [7:0] c_length;
`ifdef HUE_PLANT_POLICIES_FAMILY
  assign c_length = length_of(c_q.hop, 1'b0);  // likewise
`else
  assign c_length = length_of(c_q.hop, c_q.wide);
`endif

  // 4: the next step
  entry_t next;
  logic wins, done;
  always_comb begin
    next = d_q;
    done = 1'b0;
    // What is for the router itself stays; so does a route at least as long as both prefixes of the policy together.
    wins = d_q.found && d_rule_known_q && !d_q.failed && !d_local_q && (d_q.hop == NoRoute || d_longer_q);
    case (d_q.phase)
      PhaseRow: begin
        next.row   = d_policy_q;
        next.phase = PhaseSource;
        next.first = 1'b1;
        next.at    = '0;
        next.value = '0;
      end
      PhaseSource, PhaseDestination: begin
        next.first = 1'b0;
        if (d_q.first) next.step = d_q.phase == PhaseSource ? d_q.row.source_bits : d_q.row.destination_bits;
        else next.step = d_q.step - 4'd1;
        if (d_reached_q) begin
          next.value = d_value_q;
          if (!d_q.first) next.at = d_q.at + (16'd1 << (d_q.step - 4'd1));
        end
        if (next.step == '0) begin
          next.first = 1'b1;
          next.at    = '0;
          next.value = '0;
          if (d_q.phase == PhaseSource) begin
            next.phase = PhaseDestination;
            next.sum   = d_reached_q ? d_value_q : d_q.value;
          end else begin
            next.phase = PhasePair;
            next.sum   = d_q.sum + (d_reached_q ? d_value_q : d_q.value);
          end
        end
      end
      PhasePair: begin
        next.found = d_found_q;
        next.rule  = d_rule_at_q;
        next.phase = PhaseAnswer;
      end
      PhaseAnswer: begin
        next.hop    = d_hop_q;
        next.failed = d_failed_q;
        if (d_ended_q) next.phase = PhaseRule;
      end
      default: done = d_q.busy;
    endcase
  end
  assign judged_o      = en_q && done;
  assign judged_slot_o = d_q.slot;
  assign again_o       = wins;
  assign key_o         = {d_rule_q.via_high, d_rule_q.via_low};

  logic leaves;
  assign leaves       = !d_q.busy || (done && ready_i);
  assign request_take = en_q && leaves;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      a_q.busy <= 1'b0;
      b_q.busy <= 1'b0;
      c_q.busy <= 1'b0;
      d_q.busy <= 1'b0;
    end else if (en_q) begin
      if (leaves) begin
        a_q           <= '0;
        a_q.busy      <= request_valid;
        a_q.phase     <= PhaseRow;
        a_q.slot      <= request.slot;
        a_q.net       <= request.net;
        a_q.wide      <= request.wide;
        a_q.hop_base  <= request.hop_base;
        a_q.hop_count <= request.hop_count;
      end else begin
        a_q <= next;
      end
      b_q <= a_q;
      c_q <= b_q;
      d_q <= c_q;
    end
  end
  always_ff @(posedge clk_i) begin
    if (en_q) begin
      b_in_range_q   <= in_range;
      b_in_pairs_q   <= in_pairs;
      b_in_rules_q   <= in_rules;
      b_own_hop_q    <= own_hop;
      c_in_range_q   <= b_in_range_q;
      c_in_pairs_q   <= b_in_pairs_q;
      c_in_rules_q   <= b_in_rules_q;
      c_local_q      <= b_local_q && b_own_hop_q;
      c_policy_q     <= policy;
      c_range_q      <= range;
      c_pair_q       <= pair;
      c_rule_q       <= rule;
      c_key_q        <= b_q.phase == PhaseSource ? sources_q[b_q.slot] : destinations_q[b_q.slot];
      c_ended_q      <= ended_i;
      c_failed_q     <= failed_i;
      c_hop_q        <= hop_i;
      d_policy_q     <= c_policy_q;
`ifdef HUE_PLANT_POLICIES_HALF
      d_reached_q    <= c_in_range_q && c_range_q.start_high <= c_key_q[127:64];  // likewise
`else
      d_reached_q    <= c_in_range_q && {c_range_q.start_high, c_range_q.start_low} <= c_key_q;
`endif
      d_value_q      <= c_range_q.value;
      d_found_q      <= c_in_pairs_q;
      d_rule_at_q    <= c_pair_q.rule;
      d_rule_known_q <= c_in_rules_q;
      d_rule_q       <= c_rule_q;
`ifdef HUE_PLANT_POLICIES_LOCAL
      d_local_q      <= 1'b0;  // likewise
`else
      d_local_q      <= c_local_q && c_length == (c_q.wide ? 8'd128 : 8'd32);
`endif
`ifdef HUE_PLANT_POLICIES_EQUAL
      d_longer_q     <= c_rule_q.both >= {1'b0, c_length};  // likewise
`else
      d_longer_q     <= c_rule_q.both > {1'b0, c_length};
`endif
      d_ended_q      <= c_ended_q;
      d_failed_q     <= c_failed_q;
      d_hop_q        <= c_hop_q;
    end
  end
endmodule
