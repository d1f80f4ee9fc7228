// Design select: which network a frame belongs to; a group frame belongs to every network attached to its port.
//
// Place: header gather → **here** → hue_network. Crates: crates/demux/src/select.rs. Rows are ternary over ingress
// port, destination MAC and inner destination, the lowest that matches wins; the driver puts MACs before inner
// prefixes, longer prefixes before shorter ones, whole ports last. Rows on a port and a MAC and nothing else, which are
// most, stand in a table of exact rows, where the image has one (`MacRows`), and go before all ternary ones. Group
// destination MACs go by the port's run of ATTACH instead, one packet a row, in the order of rows.
//
// Latency: 4 clocks in which `en_i` is 1, for the first packet of a frame. Throughput: one packet a clock; a frame that
// goes to n networks takes n. Source: Unnikrishnan §4.2 (design select by virtual destination address).
module hue_select
  import hue_pkg::*;
  import hue_regs_pkg::*;
  import hue_stages_pkg::*;
#(
    parameter int unsigned SelectRows = 32,
    parameter int unsigned MacRows    = 0,
    parameter int unsigned AttachRows = 32
) (
    input  logic      clk_i,
    input  logic      rst_ni,
    input  tbl_req_t  tbl_req_i,
    output tbl_rsp_t  tbl_rsp_o,
    output logic      error_o,
    output logic      wait_o,    // the host is at a table in the next clock: `en_i` must be 0 then
    input  logic      en_i,
    input  logic      valid_i,
    output logic      ready_o,   // only with `en_i`
    input  hue_head_t head_i,
    output logic      valid_o,
    output packet_t   packet_o,
    output logic [63:0] time_ns_o
);
  localparam int unsigned MacBanks = 4;
  localparam int unsigned AttachBits = AttachRows > 1 ? $clog2(AttachRows) : 1;

  // What a row compares.
  typedef struct packed {
    logic        arp;
    logic        inner_valid;
    logic [2:0]  port;
    logic [47:0] mac;
    logic [31:0] inner;
  } key_t;

  typedef struct packed {
    packet_t     packet;
    logic [63:0] time_ns;
    logic        group;      // to a group MAC, and not decided yet
  } entry_t;

  logic step;    // the stages before the copies move
  logic more_q;  // a copy of stage 2's frame follows its next: from a register, it stops everything before
  assign step    = en_i && !more_q;
  assign ready_o = step;

  // ---- 0: what needs no table
  ipv4_t checked;
  hue_ipv4_check u_check (.head_i, .ipv4_o(checked));

  entry_t s0;
  always_comb begin
    s0 = '0;
    s0.time_ns          = head_i.time_ns;
    s0.packet.port_in   = head_i.port;
    s0.packet.port_out  = head_i.cpu_out;
    s0.packet.net       = head_i.from_cpu ? head_i.cpu_net : '0;
    s0.packet.len       = head_i.len;
    s0.packet.last      = 1'b1;
    s0.packet.ipv4      = checked;
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
      s0.group          = head_i.dst_mac[40];  // the first byte's lowest bit (IEEE 802 §8.2)
    end
  end

  // ---- 1, 2: rows, and the port's run of ATTACH
  key_t key, row_value, row_mask;
  typedef struct packed {
    logic [7:0] vport;
    logic [7:0] net;
  } whose_t;  // as it stands in row_select_t, highest
  row_select_t row;
  whose_t select_result, mac_result;
  logic select_hit, select_hit_q, mac_hit, mac_hit_q, asks;
  tbl_rsp_t select_rsp, mac_rsp, attach_rsp, head_rsp;
  logic select_error, mac_error, attach_error, head_error, select_wait, mac_wait, attach_wait, head_wait;
  assign wait_o = select_wait || mac_wait || attach_wait || head_wait;

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

  // A frame that is not copied leaves stage 2 in the clock of a step, so its result moves with it.
  logic unused_row;
  assign unused_row = &{1'b0, row};
  hue_ternary_table #(
    .Id(TABLE_SELECT), .Rows(SelectRows), .Width($bits(row_select_t)), .KeyBits($bits(key_t)),
    .ResultBits($bits(whose_t))
  ) u_select (
    .clk_i, .rst_ni, .tbl_req_i, .tbl_rsp_o(select_rsp), .wait_o(select_wait),
    .row_o(row), .value_i(row_value), .mask_i(row_mask),
    .en_i(step), .valid_i(asks), .key_i(key),
    .hit_o(select_hit), .result_o(select_result), .error_o(select_error)
  );
  assign asks = valid_i && !s0.packet.decided && !s0.group;

  // As they stand in row_mac_t.
  if (MacRows > 0) begin : gen_mac
    hue_exact_table #(
      .Id(TABLE_MAC), .Banks(MacBanks), .BankRows(MacRows / MacBanks), .KeyBits($bits({head_i.dst_mac, head_i.port})),
      .ResultBits($bits(whose_t))
    ) u_mac (
      .clk_i, .rst_ni, .tbl_req_i, .tbl_rsp_o(mac_rsp), .wait_o(mac_wait),
      .en_i(step), .valid_i(asks), .key_i({head_i.dst_mac, head_i.port}),
      .hit_o(mac_hit), .result_o(mac_result), .error_o(mac_error)
    );
  end else begin : gen_no_mac
    assign mac_rsp    = '0;
    assign mac_wait   = 1'b0;
    assign mac_hit    = 1'b0;
    assign mac_result = '0;
    assign mac_error  = 1'b0;
  end
  // One clock later, as the results: which of many rows it is takes most of a clock.
  always_ff @(posedge clk_i) begin
    if (en_i) {mac_hit_q, select_hit_q} <= {mac_hit, select_hit};
  end

  entry_t s1_q, s2_q, s3_q;
  logic s1_valid_q, s2_valid_q, s3_valid_q;
  row_attach_head_t run, run_q;  // of the frame in stage 1, in stage 2
  logic unused_head_write, unused_attach_write, unused_head_parity, unused_attach_parity;
  logic [2:0] unused_head_addr;
  row_attach_head_t unused_head_data;
  hue_table #(.Id(TABLE_ATTACH_HEAD), .Rows(Ports), .Width($bits(row_attach_head_t))) u_attach_head (
    .clk_i, .rst_ni, .tbl_req_i, .tbl_rsp_o(head_rsp),
    .write_o(unused_head_write), .write_addr_o(unused_head_addr), .write_data_o(unused_head_data),
    .wait_o(head_wait), .en_i(step), .addr_i(head_i.port), .data_o(run), .parity_o(unused_head_parity),
    .check_i(step && s1_valid_q), .error_o(head_error)
  );

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      s1_valid_q <= 1'b0;
      s2_valid_q <= 1'b0;
    end else if (step) begin
      s1_valid_q <= valid_i;
      s2_valid_q <= s1_valid_q;
    end
  end
  always_ff @(posedge clk_i) begin
    if (step) begin
      s1_q  <= s0;
      s2_q  <= s1_q;
      run_q <= run;
    end
  end

  // ---- 3: one packet a network
  logic [15:0] copy_q, next_q;  // the copy of stage 2, and the one behind
  logic [AttachBits-1:0] attach_addr;
  row_attach_t attached, unused_attach_data;
  logic [AttachBits-1:0] unused_attach_addr;
  logic named_q, nobody, more_d;  // stage 3: a group frame that goes to somebody; any that does not
  whose_t whose;

  // `HUE_PLANT_SELECT_COPIES` is for scripts/formal.
  always_comb begin
`ifdef HUE_PLANT_SELECT_COPIES
    if (more_q) more_d = next_q + 16'd2 < run_q.count;
    else more_d = s1_valid_q && s1_q.group && run.count > 16'd2;
`else
    if (more_q) more_d = next_q + 16'd1 < run_q.count;
    else more_d = s1_valid_q && s1_q.group && run.count > 16'd1;
`endif
    nobody = !(named_q || mac_hit_q || select_hit_q);
    // Of a group frame no row was asked, so none hit. Its row of ATTACH comes late in its clock.
    if (mac_hit_q) whose = mac_result;
    else if (select_hit_q) whose = select_result;
    else whose = '{vport: '0, net: s3_q.packet.net};
    whose = whose | (attached & {$bits(whose_t){named_q}});
  end
  assign attach_addr = AttachBits'(run_q.start + copy_q);

  // No run names a row that was not written since reset.
  hue_table #(
    .Id(TABLE_ATTACH), .Rows(AttachRows), .Width($bits(row_attach_t)), .Reset(1'b0)
  ) u_attach (
    .clk_i, .rst_ni, .tbl_req_i, .tbl_rsp_o(attach_rsp),
    .write_o(unused_attach_write), .write_addr_o(unused_attach_addr), .write_data_o(unused_attach_data),
    .wait_o(attach_wait), .en_i, .addr_i(attach_addr), .data_o(attached), .parity_o(unused_attach_parity),
    .check_i(en_i && s3_valid_q && s3_q.group), .error_o(attach_error)
  );

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      s3_valid_q <= 1'b0;
      more_q     <= 1'b0;
      copy_q     <= '0;
      next_q     <= 16'd1;
    end else if (en_i) begin
      s3_valid_q <= s2_valid_q;
      more_q     <= more_d;
      copy_q     <= more_q ? next_q : '0;
      next_q     <= more_q ? next_q + 16'd1 : 16'd1;
    end
  end
  always_ff @(posedge clk_i) begin
    if (en_i) begin
      s3_q <= s2_q;
      s3_q.packet.last <= !more_q;
      named_q <= s2_q.group && run_q.count != '0;
    end
  end

  // ---- 4: whose it is
  always_ff @(posedge clk_i) begin
    if (!rst_ni) valid_o <= 1'b0;
    else if (en_i) valid_o <= s3_valid_q;
  end
  always_ff @(posedge clk_i) begin
    if (en_i) begin
      packet_o       <= s3_q.packet;
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

  assign tbl_rsp_o = select_rsp | mac_rsp | attach_rsp | head_rsp;
  assign error_o   = head_error || attach_error ||
                     (en_i && s3_valid_q && !s3_q.group && (mac_error || (select_error && !mac_hit_q)));

`ifndef SYNTHESIS
  // Frames inside: none is lost, doubled or split. First packets that no copies have held up are out after four clocks.
  logic [2:0] frames_q;
  logic [3:0] first_q;
  logic s3_last, s4_last;
  assign s3_last = s3_valid_q && s3_q.packet.last;
  assign s4_last = valid_o && packet_o.last;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      frames_q <= '0;
      first_q  <= '0;
    end else begin
      if (en_i) begin
        first_q <= {first_q[2:1], more_q ? 2'b0 : {first_q[0], valid_i}};
        assert (valid_o || !first_q[3]) else $error("hue_select: latency");
      end
      frames_q <= frames_q + 3'(step && valid_i) - 3'(en_i && s4_last);
      assert (frames_q == 3'(s1_valid_q) + 3'(s2_valid_q) + 3'(s3_last) + 3'(s4_last))
      else $error("hue_select: frames lost or doubled");
      // A run of n rows gives n packets.
      if (en_i && s2_valid_q && s2_q.group && !more_q) begin
        assert (copy_q == '0 || copy_q == run_q.count - 16'd1) else $error("hue_select: copies");
      end
    end
  end
`endif
endmodule
