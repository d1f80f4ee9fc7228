// Proof harness of hue_loop_join: each beat that leaves is one that an input offers, and is taken from it in the same clock. Frames leave
// whole. An input that offers a frame waits for a bounded number of frames of the other.
//
// Place: scripts/formal. Inputs are free, except that both are streams once a frame's first beat was taken.
module hue_loop_join_formal
  import hue_pkg::*;
#(
  parameter int unsigned BusBytes = 1
) (
  input logic                  clk_i,
  input logic                  rst_ni,
  input logic                  crowded_i,
  input logic                  l_valid_i,
  input logic [8*BusBytes-1:0] l_data_i,
  input logic                  l_last_i,
  input logic [2:0]            l_port_i,
  input hue_arrival_t          l_arrival_i,
  input logic                  c_valid_i,
  input logic [8*BusBytes-1:0] c_data_i,
  input logic                  c_last_i,
  input logic [2:0]            c_port_i,
  input hue_arrival_t          c_arrival_i,
  input logic                  m_ready_i
);
  logic                  l_ready_o, c_ready_o, m_valid_o, m_last_o;
  logic [8*BusBytes-1:0] m_data_o;
  logic [2:0]            m_port_o;
  hue_arrival_t          m_arrival_o;
  hue_loop_join #(.BusBytes(BusBytes)) u_dut (.*);

  logic       begun_q, inside_q, loop_q, fire, from_loop, begins;
  logic [2:0] waits_l_q, waits_c_q;  // beats of the other input while this one waited for a frame to begin
  localparam int unsigned BeatsMax = (FrameBytesMax + BusBytes - 1) / BusBytes;
  assign fire = m_valid_o && m_ready_i;
  assign from_loop = l_ready_o;
  assign begins = fire && !inside_q;

  initial begun_q = 1'b0;
  always_ff @(posedge clk_i) begin
    begun_q <= 1'b1;
    if (!rst_ni) begin
      {inside_q, loop_q} <= '0;
      {waits_l_q, waits_c_q} <= '0;
    end else begin
      if (fire) inside_q <= !m_last_o;
      if (fire) loop_q <= from_loop;
      // Frames of the other input that began while this one offered its own.
      waits_l_q <= !l_valid_i || (fire && from_loop) ? '0 : waits_l_q + 3'(begins && !from_loop && waits_l_q != '1);
      waits_c_q <= !c_valid_i || crowded_i || (fire && !from_loop) ? '0 : waits_c_q + 3'(begins && from_loop && waits_c_q != '1);
    end
  end

  always_comb begin
    if (!begun_q) assume (!rst_ni);
    if (begun_q && rst_ni) begin
      assert (!(l_ready_o && c_ready_o));
      assert (fire == ((l_valid_i && l_ready_o) || (c_valid_i && c_ready_o)));
      if (m_valid_o && from_loop) begin
        assert (m_data_o == l_data_i && m_last_o == l_last_i && m_port_o == l_port_i && m_arrival_o == l_arrival_i);
      end
      if (m_valid_o && c_ready_o) begin
        assert (m_data_o == c_data_i && m_last_o == c_last_i && m_port_o == c_port_i && m_arrival_o == c_arrival_i);
      end
      // What leaves is taken from an input.
      if (fire) assert (l_ready_o || c_ready_o);
      // Whole frames, each from one input.
      if (fire && inside_q) assert (from_loop == loop_q);
      // No copy begins while the loop is crowded, and nothing that comes is kept waiting for nothing.
      if (begins && !from_loop) assert (!crowded_i);
      if (l_valid_i && !inside_q) assert (m_valid_o);
      if (c_valid_i && !crowded_i && !inside_q) assert (m_valid_o);
      // Frames have at most BeatsMax beats, so an input that is ahead by as many has its turn taken.
      assert (32'(waits_l_q) <= 2 * BeatsMax + 1 && 32'(waits_c_q) <= 2 * BeatsMax + 1);
      // For the induction.
      assert (u_dut.inside_q == inside_q);
      if (inside_q) assert (u_dut.loop_q == loop_q);
    end
  end
endmodule
