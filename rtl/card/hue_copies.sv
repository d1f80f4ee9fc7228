// Makes several verdicts of one: a note for the driver if the frame's sender is to be learnt, and a copy for each port by which it leaves.
//
// Place: hue_stages → **here** → hue_admit, in images with a kind that floods. A frame that leaves once passes as it is. The copies of a
// frame follow each other: first the note, then those for ports, in ascending order. All but the last have `more`, so that scatter keeps
// the body. Each is admitted by itself: a port without room loses its copy, and holds up no other. The note is first, because what another
// copy follows may be refused for lack of time: a frame that leaves by one port must not be lost because of its note.
// A frame that would leave by no port at all becomes a drop with the same outcome. That of a note is the frame's as well.
//
// Latency: none for the first copy. Throughput: a copy a clock.
module hue_copies
  import hue_pkg::*;
(
  input  logic         clk_i,
  input  logic         rst_ni,
  input  logic         s_valid_i,
  output logic         s_ready_o,
  input  hue_verdict_t s_verdict_i,
  output logic         m_valid_o,
  input  logic         m_ready_i,
  output hue_verdict_t m_verdict_o
);
  typedef logic [MacPorts:0] todo_t;  // a copy for each port; the lowest bit: the note
  todo_t todo, rest, left_q;
  logic inside_q, first_only, is_note;
  logic [2:0] port;

  // What is left of the frame; a frame without flood leaves once, in the place of the first port.
  assign first_only = !s_verdict_i.flood || s_verdict_i.ports == '0;
  assign todo = inside_q ? left_q : {first_only ? MacPorts'(1) : s_verdict_i.ports, s_verdict_i.note};
  assign rest = todo & (todo - 1'b1);
  assign is_note = todo[0];
  always_comb begin
    port = '0;
    for (int unsigned p = MacPorts; p > 0; p--) if (todo[p]) port = 3'(p - 1);
  end

  always_comb begin
    m_verdict_o = s_verdict_i;
    m_verdict_o.flood = 1'b0;
    if (!s_verdict_i.flood) m_verdict_o.ports = '0;
    m_verdict_o.note = is_note;
`ifdef HUE_PLANT_COPIES_MORE
    m_verdict_o.more = 1'b0;  // for scripts/formal
`else
    m_verdict_o.more = rest != '0;
`endif
    if (is_note) begin
      m_verdict_o.verdict = VerdictPunt;
      m_verdict_o.port_out = 3'(MacPorts) + 3'(s_verdict_i.net[1:0]);
    end else if (s_verdict_i.flood) begin
      if (first_only) m_verdict_o.verdict = VerdictDrop;
      else m_verdict_o.port_out = port;
    end
  end
  assign m_valid_o = s_valid_i;
  assign s_ready_o = m_ready_i && rest == '0;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      inside_q <= 1'b0;
      left_q <= '0;
    end else if (m_valid_o && m_ready_i) begin
      inside_q <= rest != '0;
      left_q <= rest;
    end
  end

`ifndef SYNTHESIS
  a_has_network: assert property (@(posedge clk_i) disable iff (!rst_ni)
    s_valid_i && (s_verdict_i.flood || s_verdict_i.note) |-> s_verdict_i.verdict != VerdictUnclaimed);
  a_flood_forwards: assert property (@(posedge clk_i) disable iff (!rst_ni)
    s_valid_i && s_verdict_i.flood |-> s_verdict_i.verdict == VerdictForward);
  a_stable: assert property (@(posedge clk_i) disable iff (!rst_ni)
    m_valid_o && !m_ready_i |=> m_valid_o && $stable(m_verdict_o));
`endif
endmodule
