// Kinds `extract` and `mpls`, second half: the first of the network's entries whose pattern the key has.
//
// Place: hue_network → **here** → hue_l2, hue_meter, for images with one of these kinds; packets of other kinds pass unchanged. The front
// (hue_extract_check, hue_mpls_check) has given the key. The answer replaces the network's root: it is an item of the route tables that has no node
// behind it, so everything from the meter to the next hop is that of all kinds.
// Entries: rows of PATTERN, in four banks: entry e of a network is in bank e mod 4, at row `base` + e / 4 of it. So a run of rows belongs
// to one network, and a group of four entries is compared each clock, in the order of the entries. Row r of PATTERN_HOP has what the
// entry in row r of PATTERN does, and the network that owns it.
// Changes: the driver writes a new run, which no packet uses, and then the network's row of NETWORK, which names it: a packet meets all
// entries of one state.
// Isolation: a packet reads the rows that its own network's row names. An entry that another network owns has no next hop.
//
// Latency: 2 clocks in which `en_i` is 1, which the packets of a network with n groups of entries delay by up to n + 2 clocks (`stall_o`).
// Source: spec/kinds/extract.toml.
module hue_extract
  import hue_pkg::*;
  import hue_regs_pkg::*;
  import hue_kinds_pkg::*;
  import hue_stages_pkg::*;
#(
    parameter int unsigned PatternRows = 2048,
    parameter int unsigned Kinds = 32    // bit KIND_*: the image has this kind
) (
    input  logic        clk_i,
    input  logic        rst_ni,
    input  tbl_req_t    tbl_req_i,
    output tbl_rsp_t    tbl_rsp_o,
    output logic        error_o,
    output logic        wait_o,     // `en_i` must be 0 in the next clock
    output logic        stall_o,    // `en_i` must be 0: the search has not ended
    input  logic        en_i,
    input  logic        valid_i,
    input  packet_t     packet_i,
    input  logic [63:0] time_ns_i,
    output logic        valid_o,
    output packet_t     packet_o,
    output logic [63:0] time_ns_o
);
  localparam int unsigned Banks = 4;
  localparam int unsigned BankRows = PatternRows / Banks;
  localparam int unsigned BankBits = $clog2(BankRows);
  localparam int unsigned RowBits = $clog2(PatternRows);
  localparam logic [35:0] NoRoute = 36'hffff;
  localparam bit HasMpls = Kinds[KIND_MPLS];
  // The label is the last field of a row.
  localparam int unsigned LabelBits = 20;
  localparam int unsigned HopBits = $bits(row_pattern_hop_t) - (HasMpls ? 0 : LabelBits);
  if (PatternRows < 8 || PatternRows > 4096 || PatternRows != 1 << RowBits) begin : gen_check
    $fatal(1, "hue_extract: PatternRows is %0d, a power of two from 8 to 4096", PatternRows);
  end

  // ---- the search
  extract_settings_t settings;
  logic asks, needs, step, pause_q, done_q, found_q, read_q, looks, row1_q, row2_q;
  logic [ExtractGroupBits-1:0] next_q;
  logic [BankBits-1:0] addr, at1_q, at2_q;
  logic [RowBits-1:0] place_q;
  assign settings = extract_settings_t'(packet_i.root);
  assign asks     = packet_i.kind == 5'(KIND_EXTRACT) || (HasMpls && packet_i.kind == 5'(KIND_MPLS));
  assign needs    = valid_i && !packet_i.decided && asks && packet_i.question.asks;
  assign stall_o  = needs && !done_q;
  assign step     = stall_o && !pause_q;
  assign looks    = next_q != settings.groups;
  assign addr     = BankBits'(settings.base) + BankBits'(next_q);

  tbl_rsp_t [Banks-1:0] rsps;
  logic [Banks-1:0] waits, errors, hits;
  for (genvar b = 0; b < Banks; b++) begin : gen_bank
    localparam int unsigned PartBits = 4;
    localparam int unsigned Parts = 128 / PartBits;
    row_pattern_t row, unused_data;
    logic unused_write, unused_parity;
    logic [BankBits-1:0] unused_addr;
    logic [127:0] differs;
    logic [Parts-1:0] agrees_q;
    hue_table #(
      .Id(TABLE_PATTERN), .First(b * BankRows), .Rows(BankRows), .Total(PatternRows), .Width($bits(row_pattern_t)), .Reset(1'b0)
    ) u_rows (
      .clk_i, .rst_ni, .tbl_req_i, .tbl_rsp_o(rsps[b]),
      .write_o(unused_write), .write_addr_o(unused_addr), .write_data_o(unused_data), .wait_o(waits[b]),
      .en_i(step), .addr_i(addr), .data_o(row), .parity_o(unused_parity), .check_i(step && row1_q), .error_o(errors[b])
    );
    // A row is late in its clock, so it is compared in parts.
`ifdef HUE_PLANT_EXTRACT_MASK
    assign differs = packet_i.question.key ^ {row.value_high, row.value_low};  // for scripts/formal
    logic unused_mask;
    assign unused_mask = ^{row.mask_high, row.mask_low};
`else
    assign differs = (packet_i.question.key & {row.mask_high, row.mask_low}) ^ {row.value_high, row.value_low};
`endif
    always_ff @(posedge clk_i) begin
      if (step) for (int unsigned i = 0; i < Parts; i++) agrees_q[i] <= differs[PartBits*i+:PartBits] == '0;
    end
    assign hits[b] = agrees_q == '1;
  end

  // The first bank that matches has the first entry of the group.
  logic [1:0] first;
  always_comb begin
    first = 2'(Banks - 1);
`ifdef HUE_PLANT_EXTRACT_ORDER
    for (int unsigned b = 0; b < Banks; b++) if (hits[b]) first = 2'(b);  // for scripts/formal
`else
    for (int unsigned b = 1; b < Banks; b++) if (hits[Banks-1-b]) first = 2'(Banks - 1 - b);
`endif
  end
  always_ff @(posedge clk_i) pause_q <= rst_ni && (waits != '0);
  always_ff @(posedge clk_i) begin
    if (!rst_ni || en_i) begin
      {done_q, found_q, row1_q, row2_q} <= '0;
      next_q <= '0;
    end else if (step) begin
      row1_q <= looks;
      row2_q <= row1_q;
      if (looks) next_q <= next_q + 1'b1;
      if (row2_q && hits != '0) {found_q, done_q} <= '1;
      else if (!looks && !row1_q) done_q <= 1'b1;
    end
  end
  always_ff @(posedge clk_i) begin
    if (step) begin
      at1_q   <= addr;
      at2_q   <= at1_q;
      place_q <= {first, at2_q};
    end
  end

  // ---- 1: what the entry does
  packet_t packet_q, decided;
  logic valid_q, asked_q;
  logic [63:0] time_q;
  row_pattern_hop_t hop;
  logic [HopBits-1:0] hop_row, hop_data;
  assign hop = row_pattern_hop_t'($bits(row_pattern_hop_t)'(hop_row));
  tbl_rsp_t hop_rsp;
  logic hop_wait, hop_error, hop_write, hop_parity;
  logic [RowBits-1:0] hop_addr;
  hue_table #(.Id(TABLE_PATTERN_HOP), .Rows(PatternRows), .Width(HopBits), .Reset(1'b0)) u_hops (
    .clk_i, .rst_ni, .tbl_req_i, .tbl_rsp_o(hop_rsp), .write_o(hop_write), .write_addr_o(hop_addr), .write_data_o(hop_data),
    .wait_o(hop_wait), .en_i, .addr_i(place_q), .data_o(hop_row), .parity_o(hop_parity),
    .check_i(en_i && valid_q && read_q), .error_o(hop_error)
  );
  always_ff @(posedge clk_i) begin
    if (!rst_ni) {valid_o, valid_q} <= '0;
    else if (en_i) {valid_o, valid_q} <= {valid_q, valid_i};
  end
  always_ff @(posedge clk_i) begin
    if (en_i) begin
      packet_q  <= packet_i;
      time_q    <= time_ns_i;
      asked_q   <= needs;
      read_q    <= needs && found_q;
      packet_o  <= decided;
      time_ns_o <= time_q;
    end
  end

  // ---- 2: the item in place of the root, and the new label
  logic own, gives, is_mpls;
  assign is_mpls = HasMpls && packet_q.kind == 5'(KIND_MPLS);
  always_comb begin
    decided = packet_q;
`ifdef HUE_PLANT_EXTRACT_OWNER
    own = 1'b1;
`else
    own = hop.net == packet_q.net;
`endif
    gives = read_q && own;
    if (asked_q) begin
      decided.root  = gives ? {20'd0, hop.hop} : NoRoute;
      decided.label = gives && is_mpls ? hop.label : '0;
    end
  end

  always_comb begin
    tbl_rsp_o = hop_rsp;
    for (int unsigned b = 0; b < Banks; b++) tbl_rsp_o = tbl_rsp_o | rsps[b];
  end
  assign wait_o  = waits != '0 || hop_wait;
  assign error_o = errors != '0 || hop_error;
  logic unused;
  assign unused = &{1'b0, settings.gap, hop_write, hop_addr, hop_data, hop_parity};

`ifndef SYNTHESIS
  hue_latency #(.Clocks(2)) u_latency (.clk_i, .rst_ni, .en_i, .in_i(valid_i), .out_i(valid_o));
  a_waits: assert property (@(posedge clk_i) disable iff (!rst_ni) stall_o |-> !en_i);
`endif
endmodule
