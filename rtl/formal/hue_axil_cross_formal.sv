// Proof harness of hue_axil_cross: every access of the shell reaches the card once, unchanged, and every answer of the card reaches
// the shell once, unchanged, for any two clocks.
//
// Place: scripts/formal. Both clocks are free, so their edges come in any order and also together. The shell's inputs are free; the
// card answers each access once.
module hue_axil_cross_formal (
  input logic        s_clk_i,
  input logic        m_clk_i,
  input logic        rst_ni,
  input logic        s_axil_awvalid_i,
  input logic [23:0] s_axil_awaddr_i,
  input logic        s_axil_wvalid_i,
  input logic [31:0] s_axil_wdata_i,
  input logic [3:0]  s_axil_wstrb_i,
  input logic        s_axil_bready_i,
  input logic        s_axil_arvalid_i,
  input logic [23:0] s_axil_araddr_i,
  input logic        s_axil_rready_i,
  input logic        m_axil_awready_i,
  input logic        m_axil_wready_i,
  input logic        m_axil_arready_i,
  input logic        m_axil_bvalid_i,
  input logic [1:0]  m_axil_bresp_i,
  input logic        m_axil_rvalid_i,
  input logic [31:0] m_axil_rdata_i,
  input logic [1:0]  m_axil_rresp_i
);
  localparam int unsigned Stages = 2;
  logic        s_axil_awready_o, s_axil_wready_o, s_axil_bvalid_o, s_axil_arready_o, s_axil_rvalid_o;
  logic        m_axil_awvalid_o, m_axil_wvalid_o, m_axil_bready_o, m_axil_arvalid_o, m_axil_rready_o;
  logic [1:0]  s_axil_bresp_o, s_axil_rresp_o;
  logic [31:0] s_axil_rdata_o, m_axil_wdata_o;
  logic [23:0] m_axil_awaddr_o, m_axil_araddr_o;
  logic [3:0]  m_axil_wstrb_o;
  logic        s_rst_ni, m_rst_ni;
  assign s_rst_ni = rst_ni;
  assign m_rst_ni = rst_ni;
  hue_axil_cross #(.Stages(Stages)) u_dut (.*);

  typedef struct packed {
    logic        write;
    logic [23:0] addr;
    logic [31:0] data;
    logic [3:0]  strb;
  } request_t;
  typedef struct packed {
    logic [1:0]  resp;
    logic [31:0] data;
  } answer_t;

  // The shell's side: the last access, and bits that change with each access and each answer.
  logic     begun_s_q, asked_q, told_q, write, read, ends_write, ends_read, b_waits_q, r_waits_q;
  request_t request_q;
  assign write = s_axil_awvalid_i && s_axil_awready_o;
  assign read = s_axil_arvalid_i && s_axil_arready_o;
  assign ends_write = s_axil_bvalid_o && s_axil_bready_i;
  assign ends_read = s_axil_rvalid_o && s_axil_rready_i;
  initial begun_s_q = 1'b0;
  always_ff @(posedge s_clk_i) begin
    begun_s_q <= 1'b1;
    if (write) request_q <= '{write: 1'b1, addr: s_axil_awaddr_i, data: s_axil_wdata_i, strb: s_axil_wstrb_i};
    if (read) request_q <= '{write: 1'b0, addr: s_axil_araddr_i, default: '0};
    if (!rst_ni) begin
      {asked_q, told_q, b_waits_q, r_waits_q} <= '0;
    end else begin
      if (write || read) asked_q <= !asked_q;
      if (ends_write || ends_read) told_q <= !told_q;
      b_waits_q <= s_axil_bvalid_o && !s_axil_bready_i;
      r_waits_q <= s_axil_rvalid_o && !s_axil_rready_i;
    end
  end

  // The card's side: the parts of the access that it took, and its answer. `late_q`: clocks for which an access has not been offered.
  logic       begun_m_q, answered_q, aw_q, w_q, ar_q, aw, w, ar, b, r, complete;
  logic [2:0] late_q;
  answer_t    answer_q;
  assign aw = m_axil_awvalid_o && m_axil_awready_i;
  assign w = m_axil_wvalid_o && m_axil_wready_i;
  assign ar = m_axil_arvalid_o && m_axil_arready_i;
  assign b = m_axil_bvalid_i && m_axil_bready_o;
  assign r = m_axil_rvalid_i && m_axil_rready_o;
  assign complete = request_q.write ? aw_q && w_q : ar_q;
  initial begun_m_q = 1'b0;
  always_ff @(posedge m_clk_i) begin
    begun_m_q <= 1'b1;
    if (b) answer_q <= '{resp: m_axil_bresp_i, data: '0};
    if (r) answer_q <= '{resp: m_axil_rresp_i, data: m_axil_rdata_i};
    if (!rst_ni) begin
      {answered_q, aw_q, w_q, ar_q, late_q} <= '0;
    end else begin
      if (b || r) answered_q <= !answered_q;
      {aw_q, w_q, ar_q} <= b || r ? '0 : {aw_q || aw, w_q || w, ar_q || ar};
      late_q <= asked_q == answered_q || m_axil_bready_o || m_axil_rready_o ? '0 : late_q + 3'(late_q != '1);
    end
  end

  // And on the shell's side, clocks for which an answer has not been offered.
  logic [2:0] untold_q;
  always_ff @(posedge s_clk_i) begin
    untold_q <= !rst_ni || answered_q != asked_q || told_q == asked_q || s_axil_bvalid_o || s_axil_rvalid_o
                ? '0 : untold_q + 3'(untold_q != '1);
  end

  always_comb begin
    // Both sides are reset together, until each has had a clock edge.
    assume (rst_ni == (begun_s_q && begun_m_q));
    if (rst_ni) begin
      // The card answers accesses that it has taken, and a write once it has both parts.
      if (m_axil_bvalid_i) assume (aw_q && w_q);
      if (m_axil_rvalid_i) assume (ar_q);

      // Accesses are taken one at a time, address and data of a write together.
      assert (s_axil_awready_o == s_axil_wready_o);
      if (s_axil_awready_o) assert (s_axil_awvalid_i && s_axil_wvalid_i);
      assert (!(write && read));
      if (write || read) assert (told_q == asked_q && answered_q == asked_q);

      // Each access is offered once, unchanged.
      if (m_axil_awvalid_o) assert (answered_q != asked_q && request_q.write && !aw_q && m_axil_awaddr_o == request_q.addr);
      if (m_axil_wvalid_o) begin
        assert (answered_q != asked_q && request_q.write && !w_q);
        assert (m_axil_wdata_o == request_q.data && m_axil_wstrb_o == request_q.strb);
      end
      if (m_axil_arvalid_o) assert (answered_q != asked_q && !request_q.write && !ar_q && m_axil_araddr_o == request_q.addr);
      // A part that has not been taken is still offered.
      if (m_axil_bready_o) assert (request_q.write && (aw_q || m_axil_awvalid_o) && (w_q || m_axil_wvalid_o));
      if (m_axil_rready_o) assert (!request_q.write && (ar_q || m_axil_arvalid_o));
      if (complete) assert (request_q.write ? m_axil_bready_o : m_axil_rready_o);

      // Each answer is reported once, unchanged, until it is taken.
      assert (!(s_axil_bvalid_o && s_axil_rvalid_o));
      if (s_axil_bvalid_o) assert (told_q != asked_q && answered_q == asked_q && request_q.write && s_axil_bresp_o == answer_q.resp);
      if (s_axil_rvalid_o) begin
        assert (told_q != asked_q && answered_q == asked_q && !request_q.write);
        assert ({s_axil_rresp_o, s_axil_rdata_o} == answer_q);
      end
      if (b_waits_q) assert (s_axil_bvalid_o);
      if (r_waits_q) assert (s_axil_rvalid_o);

      // Within the number of clocks in the module's head.
      assert (late_q <= 3'(Stages + 1) && untold_q <= 3'(Stages + 1));
    end
  end
endmodule
