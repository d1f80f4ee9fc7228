// Front of kind `extract`: gathers the key of a frame, a byte a clock, and checks that the frame has all of its bytes.
//
// Place: inside hue_network, behind the head vector; hue_extract follows. spec/kinds/extract.toml is the specification, ADR 0076 has
// reasons. The outcomes, in the order in which they are tried:
//
//     gated                 drop     the network is gated
//     rate_limited          drop     a bucket of the rate limit holds less than the packet costs
//   * short                 drop     n < reach
//     no_entry              drop     key differs from each entry in a bit of the entry's mask
//     drop_entry            drop     hop is of kind drop
//     punt_entry            punt     hop is of kind local
//     mtu                   drop     payload > mtu of hop
//     forward               forward  true
//
// The front decides the one with a star. The network's rows of LANE say which bytes are gathered, and with which masks, one in each clock.
// A network of another kind has no lanes, and its frames do not wait.
// Isolation: a lane at or behind the frame's end makes the frame `short`; no bytes behind the end are gathered. A frame without lanes is
// short, so a wrong row never lets a frame pass.
//
// Latency: 1 clock in which `en_i` is 1, which the frames of a network with n lanes delay by n + 1 clocks (`stall_o`).
// Source: Anwer et al. (SIGCOMM 2010) §6 (the variable bit extractor).
module hue_extract_check
  import hue_pkg::*;
  import hue_regs_pkg::*;
  import hue_kinds_pkg::*;
  import hue_stages_pkg::*;
#(
    parameter int unsigned Nets = 16,
    localparam int unsigned NetBits = Nets > 1 ? $clog2(Nets) : 1
) (
    input  logic            clk_i,
    input  logic            rst_ni,
    input  tbl_req_t        tbl_req_i,
    output tbl_rsp_t        tbl_rsp_o,
    output logic            error_o,
    output logic            wait_o,     // `en_i` must be 0 in the next clock
    output logic            stall_o,    // `en_i` must be 0: the key is not complete
    input  logic            en_i,
    input  logic            valid_i,    // a frame enters whose network is not decided by others
    input  logic [NetBits-1:0] net_i,
    // From the next clock on:
    /* verilator lint_off UNUSEDSIGNAL */
    input  hue_head_bytes_t head_i,
    /* verilator lint_on UNUSEDSIGNAL */
    input  logic [13:0]     len_i,
    output extract_t        extract_o   // one clock with `en_i` later
);
  localparam int unsigned OffsetBits = $clog2(HeadBytes);
  localparam int unsigned LaneBits = $clog2(ExtractLanes);

  logic pause_q, needs_q, done_q, pick_q, beyond_q, some_q;
  logic [NetBits-1:0] net_q;
  logic [LaneBits:0] lane_q;        // whose row is there
  logic [LaneBits-1:0] next;
  row_lane_t row, data;
  logic write, step, unused_parity;
  logic [NetBits+LaneBits-1:0] write_addr, addr;
  assign next = LaneBits'(lane_q) + 1'b1;
  assign addr = en_i ? {net_i, LaneBits'(0)} : {net_q, next};
  hue_table #(.Id(TABLE_LANE), .Rows(Nets << LaneBits), .Width($bits(row_lane_t)), .Reset(1'b0)) u_lanes (
    .clk_i, .rst_ni, .tbl_req_i, .tbl_rsp_o,
    .write_o(write), .write_addr_o(write_addr), .write_data_o(data),
    .wait_o, .en_i(en_i || step), .addr_i(addr), .data_o(row), .parity_o(unused_parity), .check_i(step), .error_o
  );
  // Which networks have lanes, to know it before the row is there.
  (* ram_style = "distributed" *) logic has_q[Nets];
  initial for (int unsigned i = 0; i < Nets; i++) has_q[i] = 1'b0;
  always_ff @(posedge clk_i) begin
    if (write && write_addr[LaneBits-1:0] == '0) has_q[write_addr[LaneBits+:NetBits]] <= data.mask != '0;
  end

  // The host's access to a row takes the row away for a clock: nothing moves then.
  always_ff @(posedge clk_i) pause_q <= rst_ni && wait_o;
  assign stall_o = needs_q && !done_q;

  // ---- 1: a lane's offset and mask; 2: its byte
  logic [LaneBits-1:0] at_q;
  logic [OffsetBits-1:0] offset_q;
  logic [7:0] mask_q;
  logic [ExtractLanes-1:0][7:0] key_q;  // lane 0 is the highest
  logic picks, behind;
  assign step   = stall_o && !pause_q;
  assign picks  = row.mask != '0 && !lane_q[LaneBits];
`ifdef HUE_PLANT_EXTRACT_END
  assign behind = 14'(offset_q) > len_i;  // for scripts/formal
`else
  assign behind = 14'(offset_q) >= len_i;
`endif
  always_ff @(posedge clk_i) begin
    if (!rst_ni) needs_q <= 1'b0;
    else if (en_i) needs_q <= valid_i && has_q[net_i];
  end
  always_ff @(posedge clk_i) begin
    if (en_i) begin
      net_q <= net_i;
      {done_q, pick_q, beyond_q, some_q} <= '0;
      lane_q <= '0;
      key_q  <= '0;
    end else if (step) begin
      offset_q <= row.offset;
      mask_q   <= row.mask;
      at_q     <= lane_q[LaneBits-1:0];
      pick_q   <= picks;
      done_q   <= !picks;
      if (picks) lane_q <= lane_q + 1'b1;
      if (pick_q) begin
        key_q[LaneBits'(ExtractLanes - 1) - at_q] <= head_i.bytes[offset_q] & mask_q;
        beyond_q <= beyond_q || behind;
        some_q   <= 1'b1;
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (en_i) begin
      extract_o.asks    <= needs_q && some_q && !beyond_q;
      extract_o.outcome <= needs_q && some_q && !beyond_q ? OutcomeNone : EXTRACT_SHORT;
      extract_o.payload <= payload_of({head_i.bytes[12], head_i.bytes[13]}, len_i);
      extract_o.key     <= key_q;
    end
  end

`ifndef SYNTHESIS
  a_waits: assert property (@(posedge clk_i) disable iff (!rst_ni) stall_o |-> !en_i);
`endif
endmodule
