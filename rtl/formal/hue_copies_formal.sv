// Proof harness of hue_copies: each verdict gives a stated list of verdicts, in order, each once: a copy for each port of a flood or the
// frame itself, then the note.
//
// Place: scripts/formal. Verdicts are free, and stable until they are taken. The harness counts the copies of the present verdict that
// have left, and lists them all (`want`) from the verdict alone.
module hue_copies_formal
  import hue_pkg::*;
(
  input logic         clk_i,
  input logic         rst_ni,
  input logic         s_valid_i,
  input hue_verdict_t s_verdict_i,
  input logic         m_ready_i
);
  logic         s_ready_o, m_valid_o;
  hue_verdict_t m_verdict_o;
  hue_copies u_dut (.*);

  // The list of a verdict's copies.
  localparam int unsigned CopiesMax = MacPorts + 1;
  hue_verdict_t [CopiesMax-1:0] want;
  int unsigned count, first;
  always_comb begin
    want = '0;
    count = 0;
    if (s_verdict_i.note) begin
      want[0] = s_verdict_i;
      want[0].verdict = VerdictPunt;
      want[0].port_out = {1'b1, s_verdict_i.net[1:0]};
      count = 1;
    end
    first = count;
    for (int unsigned p = 0; p < MacPorts; p++) begin
      if (s_verdict_i.flood && s_verdict_i.ports[p]) begin
        want[count] = s_verdict_i;
        want[count].port_out = 3'(p);
        want[count].note = 1'b0;
        count++;
      end
    end
    if (count == first) begin
      want[count] = s_verdict_i;
      want[count].note = 1'b0;
      if (s_verdict_i.flood) want[count].verdict = VerdictDrop;
      count++;
    end
    for (int unsigned i = 0; i < CopiesMax; i++) begin
      want[i].flood = 1'b0;
      if (!s_verdict_i.flood) want[i].ports = '0;
      want[i].more = i + 1 < count;
    end
  end

  logic         begun_q, stalled_q;
  logic [2:0]   sent_q;  // copies of the present verdict
  hue_verdict_t verdict_q;
  initial begun_q = 1'b0;
  always_ff @(posedge clk_i) begin
    begun_q <= 1'b1;
    verdict_q <= s_verdict_i;
    if (!rst_ni) begin
      sent_q <= '0;
      stalled_q <= 1'b0;
    end else begin
      stalled_q <= s_valid_i && !s_ready_o;
      if (m_valid_o && m_ready_i) sent_q <= s_ready_o ? '0 : sent_q + 3'd1;
    end
  end

  always_comb begin
    assume (rst_ni == begun_q);
    if (begun_q && stalled_q) assume (s_valid_i && s_verdict_i == verdict_q);
    if (begun_q) begin
      assert (m_valid_o == s_valid_i);
      // The verdict is taken with its last copy.
      if (s_valid_i) begin
        assert (32'(sent_q) < count);
        assert (s_ready_o == (m_ready_i && 32'(sent_q) + 1 == count));
        assert (m_verdict_o == want[sent_q]);
      end
    end
  end
endmodule
