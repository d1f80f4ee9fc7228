// AXI-Lite bridge between two clock domains of any frequency and phase.
//
// Flow: shell's register bus → hue_axil_cross → hue_card's. One access at a time: the request is held on the shell's side,
// a toggle bit announces it to the card's side, and the answer comes back the same way. So only the two toggle bits are
// synchronised, and the data they announce is stable. Reads and writes alternate when both wait. Both sides must be reset
// together.
//
// Latency: an access is offered `Stages` + 1 clocks of the card's side after it is accepted, and its answer is valid
// `Stages` + 1 clocks of the shell's side after the card's answer; each takes one clock more if the clocks are not aligned.
// Throughput: one access at a time.
// Source: AMBA AXI and ACE protocol specification, B1; C. E. Cummings, "Clock domain crossing design & verification
// techniques", 2008, §5.6.

module hue_axil_cross #(
  parameter int unsigned Stages = 2
) (
  // The shell's side.
  input  logic        s_clk_i,
  input  logic        s_rst_ni,
  input  logic        s_axil_awvalid_i,
  output logic        s_axil_awready_o,
  input  logic [23:0] s_axil_awaddr_i,
  input  logic        s_axil_wvalid_i,
  output logic        s_axil_wready_o,
  input  logic [31:0] s_axil_wdata_i,
  input  logic [3:0]  s_axil_wstrb_i,
  output logic        s_axil_bvalid_o,
  input  logic        s_axil_bready_i,
  output logic [1:0]  s_axil_bresp_o,
  input  logic        s_axil_arvalid_i,
  output logic        s_axil_arready_o,
  input  logic [23:0] s_axil_araddr_i,
  output logic        s_axil_rvalid_o,
  input  logic        s_axil_rready_i,
  output logic [31:0] s_axil_rdata_o,
  output logic [1:0]  s_axil_rresp_o,

  // The card's side.
  input  logic        m_clk_i,
  input  logic        m_rst_ni,
  output logic        m_axil_awvalid_o,
  input  logic        m_axil_awready_i,
  output logic [23:0] m_axil_awaddr_o,
  output logic        m_axil_wvalid_o,
  input  logic        m_axil_wready_i,
  output logic [31:0] m_axil_wdata_o,
  output logic [3:0]  m_axil_wstrb_o,
  input  logic        m_axil_bvalid_i,
  output logic        m_axil_bready_o,
  input  logic [1:0]  m_axil_bresp_i,
  output logic        m_axil_arvalid_o,
  input  logic        m_axil_arready_i,
  output logic [23:0] m_axil_araddr_o,
  input  logic        m_axil_rvalid_i,
  output logic        m_axil_rready_o,
  input  logic [31:0] m_axil_rdata_i,
  input  logic [1:0]  m_axil_rresp_i
);

  typedef struct packed {
    logic        write;
    logic [23:0] addr;
    logic [31:0] data;
    logic [3:0]  strb;
  } request_t;

  typedef struct packed {
    logic [31:0] data;
    logic [1:0]  resp;
  } answer_t;

  // The toggle bits, one driven by each side: `asked_q` changes with a request, `answered_q` with the answer to it.
  logic     asked_q, answered_q;
  request_t request_q;
  answer_t  answer_q;

  // ---- The shell's side
  (* ASYNC_REG = "TRUE" *) logic [Stages-1:0] answered_sync_q;
  logic busy_q, bvalid_q, rvalid_q, turn_read_q, can_write, can_read, write, read, free, arrives;

  assign free = !busy_q && !bvalid_q && !rvalid_q;
  assign can_write = s_axil_awvalid_i && s_axil_wvalid_i && free;
  assign can_read = s_axil_arvalid_i && free;
  assign write = can_write && !(can_read && turn_read_q);
  assign read = can_read && !write;
  assign s_axil_awready_o = write;
  assign s_axil_wready_o = write;
  assign s_axil_arready_o = read;
`ifdef HUE_PLANT_CROSS_EARLY
  assign arrives = busy_q;  // for scripts/rtl-test: the bench must find this
`else
  assign arrives = busy_q && answered_sync_q[Stages-1] == asked_q;
`endif
  assign s_axil_bvalid_o = bvalid_q;
  assign s_axil_rvalid_o = rvalid_q;
  assign s_axil_bresp_o = answer_q.resp;
  assign s_axil_rresp_o = answer_q.resp;
  assign s_axil_rdata_o = answer_q.data;

  always_ff @(posedge s_clk_i) begin
    if (write || read) begin
      request_q.write <= write;
      request_q.addr <= write ? s_axil_awaddr_i : s_axil_araddr_i;
      request_q.data <= s_axil_wdata_i;
      request_q.strb <= s_axil_wstrb_i;
    end
    if (!s_rst_ni) begin
      asked_q <= 1'b0;
      busy_q <= 1'b0;
      bvalid_q <= 1'b0;
      rvalid_q <= 1'b0;
      turn_read_q <= 1'b0;
      answered_sync_q <= '0;
    end else begin
      answered_sync_q <= {answered_sync_q[Stages-2:0], answered_q};
      if (write || read) begin
        asked_q <= !asked_q;
        busy_q <= 1'b1;
        turn_read_q <= write;
      end else if (arrives) begin
        busy_q <= 1'b0;
      end
      bvalid_q <= bvalid_q ? !s_axil_bready_i : arrives && request_q.write;
      rvalid_q <= rvalid_q ? !s_axil_rready_i : arrives && !request_q.write;
    end
  end

  // ---- The card's side
  (* ASYNC_REG = "TRUE" *) logic [Stages-1:0] asked_sync_q;
  logic awvalid_q, wvalid_q, arvalid_q, waiting_q, begins, ends;

  assign begins = asked_sync_q[Stages-1] != answered_q && !waiting_q;
  assign ends = waiting_q && (request_q.write ? m_axil_bvalid_i : m_axil_rvalid_i);
  assign m_axil_awvalid_o = awvalid_q;
  assign m_axil_wvalid_o = wvalid_q;
  assign m_axil_arvalid_o = arvalid_q;
  assign m_axil_awaddr_o = request_q.addr;
  assign m_axil_araddr_o = request_q.addr;
  assign m_axil_wdata_o = request_q.data;
  assign m_axil_wstrb_o = request_q.strb;
  assign m_axil_bready_o = waiting_q && request_q.write;
  assign m_axil_rready_o = waiting_q && !request_q.write;

  always_ff @(posedge m_clk_i) begin
    if (ends) begin
      answer_q.data <= m_axil_rdata_i;
      answer_q.resp <= request_q.write ? m_axil_bresp_i : m_axil_rresp_i;
    end
    if (!m_rst_ni) begin
      answered_q <= 1'b0;
      waiting_q <= 1'b0;
      awvalid_q <= 1'b0;
      wvalid_q <= 1'b0;
      arvalid_q <= 1'b0;
      asked_sync_q <= '0;
    end else begin
      asked_sync_q <= {asked_sync_q[Stages-2:0], asked_q};
      if (begins) waiting_q <= 1'b1;
      else if (ends) waiting_q <= 1'b0;
      if (ends) answered_q <= !answered_q;
      awvalid_q <= begins ? request_q.write : awvalid_q && !m_axil_awready_i;
      wvalid_q <= begins ? request_q.write : wvalid_q && !m_axil_wready_i;
      arvalid_q <= begins ? !request_q.write : arvalid_q && !m_axil_arready_i;
    end
  end

`ifndef SYNTHESIS
  a_write_answer_stays: assert property (@(posedge s_clk_i) disable iff (!s_rst_ni)
    (s_axil_bvalid_o && !s_axil_bready_i) |=> (s_axil_bvalid_o && $stable(s_axil_bresp_o)));
  a_read_answer_stays: assert property (@(posedge s_clk_i) disable iff (!s_rst_ni)
    (s_axil_rvalid_o && !s_axil_rready_i) |=> (s_axil_rvalid_o && $stable(s_axil_rdata_o) && $stable(s_axil_rresp_o)));
  a_request_stands_still: assert property (@(posedge m_clk_i) disable iff (!m_rst_ni)
    waiting_q |=> (!waiting_q || $stable(request_q)));
  a_latency: assert property (@(posedge m_clk_i) disable iff (!m_rst_ni)
    $past(asked_sync_q[0] != answered_q, Stages) |-> (waiting_q || answered_q != $past(answered_q, Stages)));
`endif

endmodule
