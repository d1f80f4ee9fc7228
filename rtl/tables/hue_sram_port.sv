// Controller of one external SRAM: lookups and the host share it, every word has parity.
//
// Place: between a walker (such as hue_dir) and the pins of the part (hue_sram_bank); one per bank.
// A word is 35 bits of data and, as bit 35, even parity over all 36: generated here when the host writes, checked here
// whenever a word is read. A word with wrong parity is answered with `rsp_error_o` and counted, and the address of the
// first is kept until `error_clear_i`, so that the host can rewrite the word from its copy.
// Order: accesses are performed in the order in which they are accepted. A lookup may read a word just before or just after
// the host writes it; this needs no lock, because the host writes new words before anything refers to them, and changes a
// word that lookups in flight may still read only between values that are both right for them.
// Arbitration: a lookup goes first, but the host waits at most HostWait clocks (HostShare - 1 if that is more), and while
// lookups request every clock it takes at most one in HostShare. `host_valid_i` stays until it is accepted.
// Latency: an answer comes `RspLatency` clocks after its request is accepted, without back-pressure; host reads are
// answered likewise, host writes are not answered. Throughput: one access a clock.
// Source: Unnikrishnan §3 and §5.1 (the part and its use); parity and bounds are ours.
module hue_sram_port #(
    parameter int unsigned Words     = 1 << 19,  // of the bank: a power of two
    parameter int unsigned Latency   = 4,        // of the bank: clocks from `sram_en_o` to `sram_rdata_i`, at least 2
    parameter int unsigned TagBits   = 8,
    parameter int unsigned HostWait  = 8,        // clocks, at least 1
    parameter int unsigned HostShare = 4,        // at most one clock in this many, at least 2
    localparam int unsigned AddrBits   = $clog2(Words),
    localparam int unsigned RspLatency = Latency + 2  // a register before the pins, one after
) (
    input  logic                clk_i,
    input  logic                rst_ni,
    // lookups
    input  logic                rd_valid_i,
    output logic                rd_ready_o,
    input  logic [AddrBits-1:0] rd_addr_i,
    input  logic [TagBits-1:0]  rd_tag_i,
    output logic                rsp_valid_o,
    output logic [35:0]         rsp_data_o,   // with its parity
    output logic [TagBits-1:0]  rsp_tag_o,
    output logic                rsp_error_o,
    // host
    input  logic                host_valid_i,
    output logic                host_ready_o,
    input  logic                host_write_i,
    input  logic [AddrBits-1:0] host_addr_i,
    input  logic [34:0]         host_data_i,
    output logic                host_rsp_valid_o,
    output logic [34:0]         host_rsp_data_o,
    output logic                host_rsp_error_o,
    // words with wrong parity, read by a lookup or the host
    input  logic                error_clear_i,  // clears `error_valid_o`, unless another error comes in this clock
    output logic                error_valid_o,
    output logic [AddrBits-1:0] error_addr_o,
    output logic [31:0]         error_count_o,  // since reset; saturates
    // the bank
    output logic                sram_en_o,
    output logic                sram_write_o,
    output logic [AddrBits-1:0] sram_addr_o,
    output logic [35:0]         sram_wdata_o,
    input  logic [35:0]         sram_rdata_i
);
  if (HostWait < 1 || HostShare < 2) begin : gen_check
    $fatal(1, "hue_sram_port: HostWait is %0d, at least 1; HostShare is %0d, at least 2", HostWait, HostShare);
  end

  // ---- arbitration
  localparam int unsigned WaitBits = $clog2(HostWait + 1);
  localparam int unsigned ShareBits = $clog2(HostShare);
  logic rd_go, host_go, due_q, late;
  logic [WaitBits-1:0] waited_q;   // clocks that the host has waited, up to HostWait - 1
  logic [ShareBits-1:0] since_q;   // clocks since the host last had priority, up to HostShare - 2

  assign rd_ready_o   = !due_q;
  assign host_ready_o = due_q || !rd_valid_i;
  assign rd_go        = rd_valid_i && rd_ready_o;
  assign host_go      = host_valid_i && host_ready_o;
  assign late         = waited_q == WaitBits'(HostWait - 1) && since_q == ShareBits'(HostShare - 2);
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      due_q    <= 1'b0;
      waited_q <= '0;
      since_q  <= ShareBits'(HostShare - 2);
    end else begin
      due_q <= host_valid_i && !host_go && late;
      if (!host_valid_i || host_go) waited_q <= '0;
      else if (waited_q != WaitBits'(HostWait - 1)) waited_q <= waited_q + 1'b1;
      if (due_q) since_q <= '0;
      else if (since_q != ShareBits'(HostShare - 2)) since_q <= since_q + 1'b1;
    end
  end

  // ---- to the bank
  always_ff @(posedge clk_i) begin
    sram_en_o    <= rst_ni && (rd_go || host_go);
    sram_write_o <= host_go && host_write_i;
    sram_addr_o  <= host_go ? host_addr_i : rd_addr_i;
`ifdef HUE_PLANT_SRAM_PARITY
    sram_wdata_o <= {1'b0, host_data_i};
`else
    sram_wdata_o <= {^host_data_i, host_data_i};
`endif
  end

  // ---- from the bank
  typedef struct packed {
    logic [TagBits-1:0]  tag;
    logic [AddrBits-1:0] addr;
  } asked_t;
  asked_t asked;
  logic [AddrBits-1:0] read_addr;
  logic [RspLatency-1:0] rd_q, host_q;  // which side is answered, clock by clock
  logic wrong;
  hue_delay #(.Clocks(RspLatency), .Bits($bits(asked_t))) u_asked (
    .clk_i, .rst_ni, .en_i(1'b1), .data_i({rd_tag_i, host_go ? host_addr_i : rd_addr_i}), .data_o(asked)
  );
  assign read_addr = asked.addr;
  assign rsp_tag_o = asked.tag;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      rd_q   <= '0;
      host_q <= '0;
    end else begin
      rd_q   <= {rd_q[RspLatency-2:0], rd_go};
      host_q <= {host_q[RspLatency-2:0], host_go && !host_write_i};
    end
    rsp_data_o <= sram_rdata_i;
    wrong      <= ^sram_rdata_i;
  end
  assign rsp_valid_o      = rd_q[RspLatency-1];
  assign rsp_error_o      = wrong;
  assign host_rsp_valid_o = host_q[RspLatency-1];
  assign host_rsp_data_o  = rsp_data_o[34:0];
  assign host_rsp_error_o = wrong;

  // ---- errors
  logic error;
  assign error = wrong && (rsp_valid_o || host_rsp_valid_o);
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      error_valid_o <= 1'b0;
      error_count_o <= '0;
    end else begin
      error_valid_o <= error || (error_valid_o && !error_clear_i);
      if (error && error_count_o != '1) error_count_o <= error_count_o + 1'b1;
    end
    if (error && (!error_valid_o || error_clear_i)) error_addr_o <= read_addr;
  end

`ifndef SYNTHESIS
  // The bounds stated in the head, counted independently of the arbiter.
  localparam int unsigned WaitMax = HostWait > HostShare - 1 ? HostWait : HostShare - 1;
  int unsigned waits_q;
  logic [HostShare-2:0] before_q;  // of the clocks before: the host went although a lookup was waiting
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      waits_q  <= 0;
      before_q <= '0;
    end else begin
      waits_q  <= host_valid_i && !host_ready_o ? waits_q + 1 : 0;
      before_q <= (HostShare - 1)'({before_q, host_go && rd_valid_i});
    end
  end
  a_wait: assert property (@(posedge clk_i) disable iff (!rst_ni) waits_q <= WaitMax);
  a_share: assert property (@(posedge clk_i) disable iff (!rst_ni)
    (host_go && rd_valid_i) |-> (before_q == '0));
  a_alone: assert property (@(posedge clk_i) disable iff (!rst_ni) !(rd_go && host_go));
  a_host_stays: assert property (@(posedge clk_i) disable iff (!rst_ni)
    (host_valid_i && !host_ready_o) |=> host_valid_i);
`endif
endmodule
