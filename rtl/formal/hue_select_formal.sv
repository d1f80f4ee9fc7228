// Proof harness of hue_select: a frame goes to the network that its own row says, a copy of a group frame to the network that
// it comes with, and neither to anybody else, whatever frames are around it.
//
// Place: scripts/formal; inputs are free. The tables of rows are any tables (any/hue_ternary_table.sv and
// any/hue_exact_table.sv). `mark_i` picks any one frame.
module hue_select_formal
  import hue_pkg::*;
  import hue_regs_pkg::*;
  import hue_stages_pkg::*;
(
  input logic      clk_i,
  input logic      rst_ni,
  input tbl_req_t  tbl_req_i,
  input logic      en_i,
  input logic      valid_i,
  input hue_head_t head_i,
  input logic      mark_i
);
  tbl_rsp_t    tbl_rsp_o;
  logic        error_o, wait_o, valid_o;
  packet_t     packet_o;
  logic [63:0] time_ns_o;
  hue_select #(.SelectRows(8), .MacRows(1024)) u_dut (.*);

  // Frames inside, and those before the marked one.
  logic       begun_q, accept, leaves, marked_q, mine_now, plain, group, hit, exact;
  logic [3:0] inside_q, before_q;
  hue_head_t  head_q;
  assign accept = valid_i && en_i;
  assign leaves = en_i && valid_o;
  assign mine_now = marked_q && before_q == '0 && valid_o;
  assign plain = !head_q.from_cpu && 32'(head_q.len) >= FrameBytesMin && 32'(head_q.len) <= FrameBytesMax;
  assign group = head_q.dst_mac[40];
  assign hit = head_q.inner[16];
  assign exact = head_q.dst_mac[13];

  initial begun_q = 1'b0;
  always_ff @(posedge clk_i) begin
    begun_q <= 1'b1;
    if (!rst_ni) begin
      inside_q <= '0;
      marked_q <= 1'b0;
    end else begin
      inside_q <= inside_q + 4'(accept) - 4'(leaves);
      if (accept && mark_i && !marked_q) begin
        marked_q <= 1'b1;
        head_q <= head_i;
        before_q <= inside_q - 4'(leaves);
      end else if (marked_q && leaves) begin
        before_q <= before_q - 1'b1;
        if (before_q == '0) marked_q <= 1'b0;
      end
    end
  end

  logic wait_q;
  always_ff @(posedge clk_i) wait_q <= rst_ni && wait_o;

  always_comb begin
    assume (rst_ni == begun_q);
    if (wait_q) assume (!en_i);
    // Only group frames are copied.
    if (valid_i && head_i.copy) assume (head_i.dst_mac[40] && !head_i.from_cpu);
    if (begun_q && mine_now) begin
      if (plain && head_q.copy) begin
        assert (!packet_o.decided && packet_o.net == head_q.net && packet_o.vport == head_q.vport);
      end else if (plain && !group && exact) begin
        assert (!packet_o.decided && {packet_o.vport, packet_o.net} == {head_q.dst_mac[12:0], head_q.port});
      end else if (plain && !group && hit) begin
        assert (!packet_o.decided && {packet_o.vport, packet_o.net} == head_q.inner[15:0]);
      end else begin
        assert (packet_o.decided);
        if (!head_q.from_cpu) assert (packet_o.verdict == VerdictUnclaimed);
        else assert (packet_o.verdict == VerdictUnclaimed || packet_o.net == head_q.net);
      end
      assert (packet_o.port_in == head_q.port && packet_o.len == head_q.len && time_ns_o == head_q.time_ns);
    end
    if (begun_q && valid_o) assert (inside_q != '0);
  end
  logic unused;
  assign unused = ^{error_o, tbl_rsp_o};
endmodule
