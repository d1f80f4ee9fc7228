// Proof harness of hue_extract: what replaces a packet's root is the next hop of the first of its network's entries that its key has, or
// none, and its new label is that of this entry, for any contents of the tables, whatever packets come before and after it.
//
// Place: scripts/formal. The image has the kinds extract and mpls. Inputs are free. The tables have any rows (rows/hue_table.sv), which
// stay. The marked packet comes in in clock `Start`.
module hue_extract_formal
  import hue_pkg::*;
  import hue_kinds_pkg::*;
  import hue_regs_pkg::*;
  import hue_stages_pkg::*;
#(
  parameter int unsigned Start = 2
) (
  input logic        clk_i,
  input logic        rst_ni,
  input logic        en_i,
  input logic        valid_any_i,
  input packet_t     packet_any_i,
  input logic [63:0] time_any_i
);
  localparam int unsigned PatternRows = 8;
  localparam int unsigned Banks = 4;
  localparam int unsigned GroupsMax = 2;
  localparam int unsigned Kinds = 1 << KIND_EXTRACT | 1 << KIND_MPLS;
  tbl_req_t    tbl_req_i;
  tbl_rsp_t    tbl_rsp_o;
  logic        error_o, wait_o, stall_o, valid_i, valid_o;
  packet_t     packet_i, packet_o;
  logic [63:0] time_ns_i, time_ns_o;
  assign tbl_req_i = '0;

  // The packet comes from a register that moves with `en_i`.
  // Reset and `en` are driven, not assumed, so that the solver need not find out that rows and packet stay.
  logic       begun_q, mark, en;
  logic [3:0] clock_q;
  assign en = clock_q == 4'(Start) || (en_i && !stall_o);
  hue_extract #(.PatternRows(PatternRows), .Kinds(Kinds)) u_dut (.rst_ni(begun_q), .en_i(en), .*);
  logic [3:1] mark_q, inside_q;
  packet_t    expected, expected_q, expected2_q;
  logic [63:0] time_q, time2_q;
  initial begun_q = 1'b0;
  assign mark = valid_any_i && clock_q == 4'(Start);
  always_ff @(posedge clk_i) begin
    begun_q <= 1'b1;
    if (en) {packet_i, time_ns_i} <= {packet_any_i, time_any_i};
    if (en) {expected2_q, expected_q, time2_q, time_q} <= {expected_q, expected, time_q, time_ns_i};
    if (!begun_q) {clock_q, mark_q, inside_q, valid_i} <= '0;
    else begin
      if (clock_q != '1) clock_q <= clock_q + 4'd1;
      if (en) begin
        valid_i  <= valid_any_i;
        mark_q   <= {mark_q[2:1], mark};
        inside_q <= {inside_q[2:1], valid_any_i};
      end
    end
  end

  row_pattern_t [Banks-1:0][1:0] rows;
  for (genvar b = 0; b < Banks; b++) begin : gen_rows
    assign rows[b][0] = u_dut.gen_bank[b].u_rows.rows_q[0];
    assign rows[b][1] = u_dut.gen_bank[b].u_rows.rows_q[1];
  end
  extract_settings_t settings;
  row_pattern_t      row;
  row_pattern_hop_t  hop;
  logic              asks;
  assign settings = extract_settings_t'(packet_i.root);
  assign asks     = !packet_i.decided && packet_i.kind inside {5'(KIND_EXTRACT), 5'(KIND_MPLS)} && packet_i.question.asks;
  always_comb begin
    expected = packet_i;
    row = '0;
    hop = '0;
    if (asks) begin
      expected.root = 36'hffff;
      expected.label = '0;
      // The last one first, so that the first one that matches remains.
      for (int unsigned e = GroupsMax * Banks; e > 0; e--) begin
        automatic logic at = settings.base[0] ^ 1'((e - 1) / Banks);
        row = rows[(e-1)%Banks][at];
        hop = u_dut.u_hops.rows_q[{2'((e - 1) % Banks), at}];
        if ((e - 1) / Banks < 32'(settings.groups) &&
            ((packet_i.question.key & {row.mask_high, row.mask_low}) ^ {row.value_high, row.value_low}) == '0) begin
          expected.root = hop.net == packet_i.net ? {20'd0, hop.hop} : 36'hffff;
          expected.label = hop.net == packet_i.net && packet_i.kind == 5'(KIND_MPLS) ? hop.label : '0;
        end
      end
    end
  end

  always_comb begin
    if (clock_q == 4'(Start)) assume (!stall_o);
    if (asks) assume (32'(settings.groups) <= GroupsMax);
    if (begun_q) begin
      assert (valid_o == inside_q[3]);
      if (mark_q[3]) assert (packet_o == expected2_q && time_ns_o == time2_q);
    end
  end
  // A packet waits for its groups, and no longer.
  logic [4:0] waited_q;
  always_ff @(posedge clk_i) begin
    if (!begun_q || en) waited_q <= '0;
    else if (stall_o) waited_q <= waited_q + 5'd1;
  end
  always_comb if (begun_q && stall_o) assert (32'(waited_q) <= GroupsMax + 1);
  logic unused;
  assign unused = ^{rst_ni, error_o, wait_o, tbl_rsp_o};
endmodule
