// Network lookup: a network's VID, its plane, and where its routes and next hops are.
//
// Place: hue_select → **here** → hue_meter. A packet of a network that does not exist is unclaimed. One of a network
// whose plane runs in software goes to the CPU. A packet of a gated network is dropped here, and one of a gated plane is dropped or
// sent to the CPU, so that nothing in the plane moves for it.
//
// Latency: 3 clocks in which `en_i` is 1. Throughput: one packet a clock.
module hue_network
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
    output logic        wait_o,          // the host accesses the table in the next clock: `en_i` must be 0 then
    input  logic [31:0] gates_i,         // one bit per plane: 1 gated
    input  logic        gated_to_cpu_i,  // packets of gated planes: 1 to the CPU, 0 dropped
    input  logic        en_i,
    input  logic        valid_i,
    input  packet_t     packet_i,
    input  logic [63:0] time_ns_i,
    output logic        valid_o,
    output packet_t     packet_o,
    output logic [63:0] time_ns_o
);
  localparam int unsigned NetBits = Nets > 1 ? $clog2(Nets) : 1;
  if (Nets < 1 || Nets > NetsMax) begin : gen_check
    $fatal(1, "hue_network: Nets is %0d, 1 to %0d", Nets, NetsMax);
  end

  row_network_t row, row_q, unused_data;
  logic unused_write, unused_parity, in1_range_q, in_range_q, valid1_q, valid2_q;
  logic [NetBits-1:0] unused_addr;
  packet_t packet1_q, packet_q, named;
  logic nobody, claimed;
  logic [63:0] time1_ns_q, time2_ns_q;

  hue_table #(.Id(TABLE_NETWORK), .Rows(Nets), .Width($bits(row_network_t))) u_table (
    .clk_i, .rst_ni, .tbl_req_i, .tbl_rsp_o,
    .write_o(unused_write), .write_addr_o(unused_addr), .write_data_o(unused_data),
    .wait_o, .en_i, .addr_i(packet_i.net[NetBits-1:0]), .data_o(row), .parity_o(unused_parity), .check_i(en_i && valid1_q), .error_o
  );

  always_ff @(posedge clk_i) begin
    if (!rst_ni) {valid_o, valid2_q, valid1_q} <= '0;
    else if (en_i) {valid_o, valid2_q, valid1_q} <= {valid2_q, valid1_q, valid_i};
  end
  // The row is late in its clock, so it goes straight into a register.
  always_ff @(posedge clk_i) begin
    if (en_i) begin
      packet1_q   <= packet_i;
      time1_ns_q  <= time_ns_i;
      in1_range_q <= 32'(packet_i.net) < Nets;
      row_q         <= row;
      packet_q    <= packet1_q;
      time2_ns_q  <= time1_ns_q;
      in_range_q  <= in1_range_q;
    end
  end

  always_comb begin
    // A frame returned by a software plane needs only a network in range; an undecided one also a valid row.
    nobody  = packet_q.decided ? packet_q.verdict == VerdictForward && !in_range_q : !row_q.valid || !in_range_q;
    claimed = !nobody && !(packet_q.decided && packet_q.verdict == VerdictUnclaimed);
    named           = packet_q;
    named.vid       = row_q.vid;
    named.plane     = row_q.plane;
    named.root      = row_q.root;
    named.hop_base  = row_q.hop_base;
    named.hop_count = row_q.hop_count;
    if (row_q.forward_martians) begin
      named.ipv4.martian_source      = 1'b0;
      named.ipv4.martian_destination = 1'b0;
    end
    if (nobody) begin
      named.decided = 1'b1;
      named.verdict = VerdictUnclaimed;
      named.outcome = hue_kinds_pkg::UNCLAIMED_NO_NETWORK;
    end else if (!packet_q.decided && row_q.software) begin
      named.decided = 1'b1;
      named.verdict = VerdictPunt;
      named.outcome = OutcomeNone;
    end else if (!packet_q.decided && row_q.gated) begin
      named.decided = 1'b1;
      named.verdict = VerdictDrop;
      named.outcome = hue_kinds_pkg::IPV4_GATED;
    end else if (!packet_q.decided && gates_i[{1'b0, row_q.plane}]) begin
      named.decided = 1'b1;
      named.verdict = gated_to_cpu_i ? VerdictPunt : VerdictDrop;
      named.outcome = gated_to_cpu_i ? OutcomeNone : hue_kinds_pkg::IPV4_GATED;
    end
    if (!claimed) begin
      named.net   = '0;
      named.vport = '0;
      named.vid   = '0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (en_i) begin
      packet_o  <= named;
      time_ns_o <= time2_ns_q;
    end
  end

`ifndef SYNTHESIS
  hue_latency #(.Clocks(3)) u_latency (.clk_i, .rst_ni, .en_i, .in_i(valid_i), .out_i(valid_o));
`endif
endmodule
