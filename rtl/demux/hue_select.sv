// Design select: which network a frame belongs to.
//
// Place: header gather → **here** → hue_network. Software: crates/demux/src/select.rs. Rows are ternary over ingress port,
// destination MAC and inner destination; the lowest row that matches wins. The driver puts rows with MACs before inner
// prefixes, longer prefixes before shorter ones, and whole ports last. Most rows name only a port and a MAC. They are in a
// table of exact rows if the image has one (`MacRows`), which has priority over all ternary rows. A copy of a group frame
// comes with its network (hue_flood); a group frame that is not a copy belongs to no network.
//
// Latency: 4 clocks in which `en_i` is 1. Throughput: one packet a clock. Source: Unnikrishnan §4.2 (design select by
// virtual destination address).
module hue_select
  import hue_pkg::*;
  import hue_regs_pkg::*;
  import hue_stages_pkg::*;
#(
    parameter int unsigned SelectRows = 32,
    parameter int unsigned MacRows    = 0
) (
    input  logic      clk_i,
    input  logic      rst_ni,
    input  tbl_req_t  tbl_req_i,
    output tbl_rsp_t  tbl_rsp_o,
    output logic      error_o,
    output logic      wait_o,    // the host accesses a table in the next clock: `en_i` must be 0 then
    input  logic      en_i,
    input  logic      valid_i,
    input  hue_head_t head_i,
    output logic      valid_o,
    output packet_t   packet_o,
    output ipv4_t     ipv4_o,    // the front of kind ipv4, which needs no network
    output logic [63:0] time_ns_o
);
  localparam int unsigned MacBanks = 4;

  // The fields that a row compares.
  typedef struct packed {
    logic        arp;
    logic        inner_valid;
    logic [2:0]  port;
    logic [47:0] mac;
    logic [31:0] inner;
  } key_t;

  typedef struct packed {
    packet_t     packet;
    ipv4_t       ipv4;
    logic [63:0] time_ns;
    logic        asks;       // its network is looked up in the tables
    logic        copy;       // a copy, whose network is known
  } entry_t;

  // ---- 0: decisions that need no table
  ipv4_t checked;
  hue_ipv4_check u_check (.head_i, .ipv4_o(checked));

  entry_t s0;
  always_comb begin
    s0 = '0;
    s0.time_ns          = head_i.time_ns;
    s0.packet.port_in   = head_i.port;
    s0.packet.port_out  = head_i.cpu_out;
    s0.packet.net       = head_i.from_cpu || head_i.copy ? head_i.net : '0;
    s0.packet.vport     = head_i.from_cpu || head_i.copy ? head_i.vport : '0;
    s0.packet.len       = head_i.len;
    s0.ipv4             = checked;
    s0.packet.decided   = 1'b1;
    s0.packet.verdict   = VerdictUnclaimed;
    if (32'(head_i.len) < FrameBytesMin) begin
      s0.packet.outcome = hue_kinds_pkg::UNCLAIMED_RUNT;
    end else if (32'(head_i.len) > FrameBytesMax) begin
      s0.packet.outcome = hue_kinds_pkg::UNCLAIMED_TOO_LONG;
    end else if (head_i.from_cpu) begin
      s0.packet.verdict = VerdictForward;
      s0.packet.outcome = OutcomeNone;
    end else begin
      s0.packet.decided = 1'b0;
`ifdef HUE_PLANT_SELECT_COPY
      s0.copy           = 1'b0;  // for scripts/rtl-test: the bench must find this
`else
      s0.copy           = head_i.copy;
`endif
      // The first byte's lowest bit (IEEE 802 §8.2). A frame of a tunnel comes with its network like a copy, whatever its address.
      s0.asks           = !head_i.dst_mac[40] && !head_i.copy;
    end
  end

  // ---- 1, 2: rows
  key_t key, row_value, row_mask;
  typedef struct packed {
    logic [7:0] vport;
    logic [7:0] net;
  } whose_t;  // the highest bits of row_select_t
  row_select_t row;
  whose_t select_result, mac_result;
  logic select_hit, select_hit_q, mac_hit, mac_hit_q, asks;
  tbl_rsp_t select_rsp, mac_rsp;
  logic select_error, mac_error;

  assign key = '{
    arp: head_i.ethertype == EthertypeArp,
    inner_valid: head_i.inner_valid,
    port: head_i.port,
    mac: head_i.dst_mac,
    inner: head_i.inner
  };
  assign row_value = '{arp: 1'b1, inner_valid: 1'b1, port: row.port, mac: row.mac, inner: row.inner};
  assign row_mask = '{
    arp: row.arp_care,
    inner_valid: row.inner_care,
    port:  {3{row.port_care}},
    mac:   {48{row.mac_care}},
    inner: row.inner_mask & {32{row.inner_care}}
  };

  logic unused_row;
  assign unused_row = &{1'b0, row};
  hue_ternary_table #(
    .Id(TABLE_SELECT), .Rows(SelectRows), .Width($bits(row_select_t)), .KeyBits($bits(key_t)),
    .ResultBits($bits(whose_t))
  ) u_select (
    .clk_i, .rst_ni, .tbl_req_i, .tbl_rsp_o(select_rsp),
    .row_o(row), .value_i(row_value), .mask_i(row_mask),
    .en_i, .valid_i(asks), .key_i(key),
    .hit_o(select_hit), .result_o(select_result), .error_o(select_error)
  );
  assign asks = valid_i && s0.asks;

  // Key and result have the order of row_mac_t.
  if (MacRows > 0) begin : gen_mac
    hue_exact_table #(
      .Id(TABLE_MAC), .Banks(MacBanks), .BankRows(MacRows / MacBanks), .KeyBits($bits({head_i.dst_mac, head_i.port})),
      .ResultBits($bits(whose_t))
    ) u_mac (
      .clk_i, .rst_ni, .tbl_req_i, .tbl_rsp_o(mac_rsp), .wait_o,
      .en_i, .valid_i(asks), .key_i({head_i.dst_mac, head_i.port}),
      .hit_o(mac_hit), .result_o(mac_result), .error_o(mac_error)
    );
  end else begin : gen_no_mac
    assign mac_rsp    = '0;
    assign wait_o     = 1'b0;
    assign mac_hit    = 1'b0;
    assign mac_result = '0;
    assign mac_error  = 1'b0;
  end
  // Registered, to come in the same clock as the results: selecting one of many rows takes most of a clock.
  always_ff @(posedge clk_i) begin
    if (en_i) {mac_hit_q, select_hit_q} <= {mac_hit, select_hit};
  end

  entry_t s1_q, s2_q, s3_q;
  logic s1_valid_q, s2_valid_q, s3_valid_q, nobody;
  whose_t whose;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) {s3_valid_q, s2_valid_q, s1_valid_q} <= '0;
    else if (en_i) {s3_valid_q, s2_valid_q, s1_valid_q} <= {s2_valid_q, s1_valid_q, valid_i};
  end
  always_ff @(posedge clk_i) begin
    if (en_i) {s3_q, s2_q, s1_q} <= {s2_q, s1_q, s0};
  end

  // ---- 3, 4: the frame's network. A frame that was not looked up has no hit.
  always_comb begin
    nobody = !(s3_q.copy || mac_hit_q || select_hit_q);
    if (mac_hit_q) whose = mac_result;
    else if (select_hit_q) whose = select_result;
    else whose = '{vport: s3_q.packet.vport, net: s3_q.packet.net};
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni) valid_o <= 1'b0;
    else if (en_i) valid_o <= s3_valid_q;
  end
  always_ff @(posedge clk_i) begin
    if (en_i) begin
      packet_o       <= s3_q.packet;
      ipv4_o         <= s3_q.ipv4;
      packet_o.net   <= whose.net;
      packet_o.vport <= whose.vport;
      time_ns_o <= s3_q.time_ns;
      if (!s3_q.packet.decided && nobody) begin
        packet_o.decided <= 1'b1;
        packet_o.verdict <= VerdictUnclaimed;
        packet_o.outcome <= hue_kinds_pkg::UNCLAIMED_NO_NETWORK;
      end
    end
  end

  assign tbl_rsp_o = select_rsp | mac_rsp;
  assign error_o   = en_i && s3_valid_q && s3_q.asks && (mac_error || (select_error && !mac_hit_q));

`ifndef SYNTHESIS
  hue_latency #(.Clocks(4)) u_latency (.clk_i, .rst_ni, .en_i, .in_i(valid_i), .out_i(valid_o));
  always_ff @(posedge clk_i) begin
    if (rst_ni && en_i && s3_valid_q) begin
      assert (!((mac_hit_q || select_hit_q) && !s3_q.asks)) else $error("hue_select: a row for what asked none");
    end
  end
`endif
endmodule
