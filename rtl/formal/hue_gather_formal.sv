// Proof harness of hue_gather: every frame gives one record, which waits until it is taken, and one tag with its
// first beat.
//
// Place: scripts/formal; inputs are free but that frames are framed. That a record stands still while it waits is
// hue_fifo's to prove, where it waits; what stands in it is the benches' to compare (rtl/tests/gather).
module hue_gather_formal
  import hue_pkg::*;
#(
  parameter int unsigned BusBytes = 64,
  parameter int unsigned RecordDepth = 8  // as in the module
) (
  input logic                  clk_i,
  input logic                  rst_ni,
  input logic                  s_valid_i,
  input logic [8*BusBytes-1:0] s_data_i,
  input logic                  s_last_i,
  input logic [2:0]            s_port_i,
  input hue_arrival_t          s_arrival_i,
  input logic                  body_ready_i,
  input logic                  tag_ready_i,
  input logic                  m_ready_i
);
  logic                  s_ready_o, s_first_i, body_valid_o, tag_valid_o, m_valid_o, idle_o;
  logic [8*BusBytes-1:0] body_data_o;
  logic [31:0]           tag_o;
  hue_head_t             m_head_o;
  hue_gather #(.BusBytes(BusBytes)) u_dut (.*);

  // Frames that began, less records that left.
  logic       begun_q, inside_q, stalled_q, fire;
  logic [5:0] frames_q;
  assign s_first_i = !inside_q;
  assign fire = s_valid_i && s_ready_o;

  initial begun_q = 1'b0;
  always_ff @(posedge clk_i) begin
    begun_q <= 1'b1;
    if (!rst_ni) begin
      inside_q <= 1'b0;
      stalled_q <= 1'b0;
      frames_q <= '0;
    end else begin
      if (fire) inside_q <= !s_last_i;
      stalled_q <= m_valid_o && !m_ready_i;
      frames_q <= frames_q + 6'(fire && s_first_i) - 6'(m_valid_o && m_ready_i);
    end
  end

  always_comb begin
    assume (rst_ni == begun_q);
    if (begun_q) begin
      // One record a frame, however long records wait.
      if (m_valid_o) assert (frames_q != '0);
      if (idle_o) assert (frames_q == '0);
      if (stalled_q) assert (m_valid_o);
      // No more frames are taken than there is room for records, but the one that is coming.
      assert (32'(frames_q) <= RecordDepth + 1);
      // Body and tag leave only where there is room, a tag a frame.
      if (body_valid_o) assert (body_ready_i && body_data_o == s_data_i);
      assert (body_valid_o == fire && tag_valid_o == (fire && s_first_i));
      if (tag_valid_o) assert (tag_ready_i && tag_o == s_arrival_i.tag);
    end
  end
  logic unused;
  assign unused = ^m_head_o;
endmodule
