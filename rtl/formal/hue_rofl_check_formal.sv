// Proof harness of hue_rofl_check: the question for a frame is that of spec/kinds/rofl.toml, condition by condition, for any length of labels
// and any MAC address of the port, and does not depend on bytes behind the frame's end, whatever frames come before it.
//
// Place: scripts/formal. Inputs are free. The table of MAC addresses has any rows (rows/hue_table.sv), which stay. Each frame is compared
// with the terms of the specification. A second copy gets the same frames with other bytes behind their ends.
module hue_rofl_check_formal
  import hue_pkg::*;
  import hue_kinds_pkg::*;
  import hue_regs_pkg::*;
  import hue_stages_pkg::*;
(
  input logic            clk_i,
  input logic            rst_ni,
  input logic            en_i,
  input logic            valid_i,
  input logic            net_i,
  input logic [1:0]      port_i,
  input hue_head_bytes_t head_any_i,  // of the frame that comes in
  input hue_head_bytes_t other_any_i,
  input logic [13:0]     len_any_i,
  input logic [4:0]      label_bytes_i
);
  localparam int unsigned Nets = 2;
  tbl_req_t        tbl_req_i;
  tbl_rsp_t        tbl_rsp_o, other_rsp;
  hue_head_bytes_t head_i, other_i;
  logic [13:0]     len_i;
  question_t       question_o, other_o;
  logic            error_o, wait_o, other_error, other_wait;
  assign tbl_req_i = '0;
  hue_rofl_check #(.Nets(Nets)) u_dut (.*);
  hue_rofl_check #(.Nets(Nets)) u_other (
    .clk_i, .rst_ni, .tbl_req_i, .tbl_rsp_o(other_rsp), .error_o(other_error), .wait_o(other_wait),
    .en_i, .valid_i, .net_i, .port_i, .head_i(other_i), .len_i, .label_bytes_i, .question_o(other_o)
  );

  // A frame's vector and length stay until the next one comes in.
  logic       begun_q, came_q, done_q, net_q;
  logic [1:0] port_q;
  initial begun_q = 1'b0;
  always_ff @(posedge clk_i) begin
    begun_q <= 1'b1;
    if (en_i) {head_i, other_i, len_i, net_q, port_q} <= {head_any_i, other_any_i, len_any_i, net_i, port_i};
    if (!rst_ni) {came_q, done_q} <= '0;
    else if (en_i) {done_q, came_q} <= {came_q, valid_i};
  end

  // Terms of spec/kinds/rofl.toml, of the frame whose question is there.
  hue_head_bytes_t f;
  logic [13:0]     n;
  logic [47:0]     own;
  always_ff @(posedge clk_i) if (en_i) {f, n, own} <= {head_i, len_i, u_dut.u_macs.rows_q[{net_q, port_q}][47:0]};
  int unsigned  header, payload;
  logic [7:0]   flags, len, route;
  logic [47:0]  dst_mac, sender;
  logic [127:0] dst;
  assign flags = f.bytes[14];
  assign len = f.bytes[15];
  assign route = f.bytes[17];
  assign header = 8 + (2 + 32'(route)) * 32'(len);
  assign payload = 32'({f.bytes[20], f.bytes[21]});
  always_comb begin
    for (int unsigned i = 0; i < 6; i++) begin
      dst_mac[8*(5-i)+:8] = f.bytes[i];
      sender[8*(5-i)+:8] = f.bytes[6+i];
    end
    dst = '0;
    for (int unsigned i = 0; i < 16; i++) if (i < 32'(label_bytes_i)) dst[8*(15-i)+:8] = f.bytes[22+i];
  end

  // The first outcome whose condition holds, among those that the front decides.
  logic [ROFL_OTHER_MAC:ROFL_NOT_ROFL] when;
  logic [4:0] outcome;
  always_comb begin
    when[ROFL_NOT_ROFL] = {f.bytes[12], f.bytes[13]} != 16'h88b5;
    when[ROFL_SHORT] = n < 14'd22;
    when[ROFL_BAD_VERSION] = flags[7:4] != 4'd1;
    when[ROFL_LABEL_LENGTH] = len != 8'(label_bytes_i);
    when[ROFL_BAD_ROUTE] = route > 8'd4;
    when[ROFL_BAD_LENGTH] = 32'(n) < 14 + header + payload;
    when[ROFL_LINK] = flags[0];
    when[ROFL_OTHER_MAC] = dst_mac != own;
    outcome = OutcomeNone;
    for (int unsigned i = 32'(ROFL_OTHER_MAC); i >= 32'(ROFL_NOT_ROFL); i--) if (when[i]) outcome = 5'(i);
  end

  always_comb begin
    assume (rst_ni == begun_q);
    // Lengths that a network can have.
    assume (32'(label_bytes_i) >= 4 && 32'(label_bytes_i) <= 16);
    assume (32'(len_any_i) >= FrameBytesMin && 32'(len_any_i) <= FrameBytesMax);
    for (int unsigned i = 0; i < HeadBytes; i++) begin
      assume (head_any_i.mask[i] == (i < 32'(len_any_i)) && other_any_i.mask[i] == head_any_i.mask[i]);
      if (head_any_i.mask[i]) assume (other_any_i.bytes[i] == head_any_i.bytes[i]);
    end
    for (int unsigned i = 0; i < 4 * Nets; i++) if (begun_q) assume (u_other.u_macs.rows_q[i] == u_dut.u_macs.rows_q[i]);
    if (begun_q && done_q) begin
      assert (question_o.asks == (outcome == OutcomeNone));
      if (!question_o.asks) assert (question_o.outcome == outcome);
      if (question_o.asks) begin
        assert (question_o.outcome == (flags[1] ? ROFL_FOR_CLOSEST : ROFL_UNKNOWN_LABEL));
        assert (32'(question_o.total) == header + payload && question_o.ttl == f.bytes[16] && question_o.key == dst);
        assert (question_o.source == {sender, 80'd0} && question_o.checksum == '0 && question_o.hash == '0);
      end
      assert (other_o.asks == question_o.asks && other_o.outcome == question_o.outcome);
      if (question_o.asks) assert (other_o == question_o);
    end
  end
  logic unused;
  assign unused = ^{error_o, wait_o, tbl_rsp_o, other_rsp, other_error, other_wait, head_i, other_i, f, n};
endmodule
