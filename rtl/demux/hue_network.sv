// What a network is: its id, its plane, where its routes and next hops lie.
//
// Place: hue_select → **here** → hue_meter. A packet of a network that does not exist is nobody's. One of a network
// whose plane runs in software is handed to the CPU. A packet of a gated plane is decided here, so that nothing of the
// plane moves: dropped, or handed to the CPU.
//
// Latency: 1 clock in which `en_i` is 1. Throughput: one packet a clock.
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
    output logic        wait_o,          // the host is at the table: `en_i` must be 0
    input  logic [31:0] gates_i,         // a bit a plane: 1 gated
    input  logic        gated_to_cpu_i,  // what becomes of their packets: 1 to the CPU, 0 dropped
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

  row_network_t row, unused_data;
  logic unused_write, unused_bad, in_range_q;
  logic [NetBits-1:0] unused_addr;
  packet_t packet_q;

  hue_table #(.Id(TABLE_NETWORK), .Rows(Nets), .Width($bits(row_network_t))) u_table (
    .clk_i, .rst_ni, .tbl_req_i, .tbl_rsp_o,
    .write_o(unused_write), .write_addr_o(unused_addr), .write_data_o(unused_data),
    .wait_o, .en_i, .addr_i(packet_i.net[NetBits-1:0]), .data_o(row), .bad_o(unused_bad), .check_i(en_i && valid_o), .error_o
  );

  always_ff @(posedge clk_i) begin
    if (!rst_ni) valid_o <= 1'b0;
    else if (en_i) valid_o <= valid_i;
  end
  always_ff @(posedge clk_i) begin
    if (en_i) begin
      packet_q   <= packet_i;
      time_ns_o  <= time_ns_i;
      in_range_q <= 32'(packet_i.net) < Nets;
    end
  end

  always_comb begin
    packet_o           = packet_q;
    packet_o.vid       = row.vid;
    packet_o.plane     = row.plane;
    packet_o.root      = row.root;
    packet_o.hop_base  = row.hop_base;
    packet_o.hop_count = row.hop_count;
    if (packet_q.decided) begin
      // A frame that a software plane returned under a net that cannot be.
      if (packet_q.verdict == VerdictForward && !in_range_q) begin
        packet_o.verdict = VerdictUnclaimed;
        packet_o.outcome = hue_kinds_pkg::UNCLAIMED_NO_NETWORK;
      end
    end else if (!row.valid || !in_range_q) begin
      packet_o.decided = 1'b1;
      packet_o.verdict = VerdictUnclaimed;
      packet_o.outcome = hue_kinds_pkg::UNCLAIMED_NO_NETWORK;
    end else if (row.software) begin
      packet_o.decided = 1'b1;
      packet_o.verdict = VerdictPunt;
      packet_o.outcome = OutcomeNone;
    end else if (gates_i[{1'b0, row.plane}]) begin
      packet_o.decided = 1'b1;
      packet_o.verdict = gated_to_cpu_i ? VerdictPunt : VerdictDrop;
      packet_o.outcome = OutcomeNone;
    end
    if (packet_o.decided && packet_o.verdict == VerdictUnclaimed) begin
      packet_o.net   = '0;
      packet_o.vport = '0;
      packet_o.vid   = '0;
    end
  end

`ifndef SYNTHESIS
  logic inside_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      inside_q <= 1'b0;
    end else if (en_i) begin
      inside_q <= valid_i;
      assert (inside_q == valid_o) else $error("hue_network: latency");
    end
  end
`endif
endmodule
