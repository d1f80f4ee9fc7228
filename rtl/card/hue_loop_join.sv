// Merges the frames of the loop and the copies of group frames into the arbiter's input of low priority.
//
// Place: hue_tunnel's input queue and hue_flood's copies → **here** → hue_arbiter. Frames leave whole. If both wait, the one begins that has
// sent fewer beats, so neither can stop the other. The arbiter gives either the time of the latest frame of a MAC port. With
// `crowded_i` no copy begins. What is offered may change until its first beat is taken.
// Latency: none, combinational. Throughput: a beat a clock.
module hue_loop_join
  import hue_pkg::*;
#(
  parameter int unsigned BusBytes = 32
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,
  input  logic                  crowded_i,

  input  logic                  l_valid_i,
  output logic                  l_ready_o,
  input  logic [8*BusBytes-1:0] l_data_i,
  input  logic                  l_last_i,
  input  logic [2:0]            l_port_i,
  input  hue_arrival_t          l_arrival_i,

  input  logic                  c_valid_i,
  output logic                  c_ready_o,
  input  logic [8*BusBytes-1:0] c_data_i,
  input  logic                  c_last_i,
  input  logic [2:0]            c_port_i,
  input  hue_arrival_t          c_arrival_i,

  output logic                  m_valid_o,
  input  logic                  m_ready_i,
  output logic [8*BusBytes-1:0] m_data_o,
  output logic                  m_last_o,
  output logic [2:0]            m_port_o,
  output hue_arrival_t          m_arrival_o
);
  localparam int unsigned BeatsMax = (FrameBytesMax + BusBytes - 1) / BusBytes;
  localparam int unsigned LeadBits = $clog2(BeatsMax + 1) + 2;

  logic inside_q, loop_q, loop, copies;
  logic signed [LeadBits-1:0] lead_q;  // beats of the loop less those of copies
  assign copies = c_valid_i && !crowded_i;
`ifdef HUE_PLANT_LOOP_JOIN
  assign loop = l_valid_i && !(inside_q && !loop_q);  // for scripts/rtl-test: the bench must find this
`else
  assign loop = inside_q ? loop_q : l_valid_i && (!copies || lead_q <= 0);
`endif
  always_comb begin
    m_valid_o   = loop ? l_valid_i : c_valid_i && (inside_q || copies);
    m_data_o    = loop ? l_data_i : c_data_i;
    m_last_o    = loop ? l_last_i : c_last_i;
    m_port_o    = loop ? l_port_i : c_port_i;
    m_arrival_o = loop ? l_arrival_i : c_arrival_i;
    l_ready_o   = loop && m_ready_i;
    c_ready_o   = !loop && m_ready_i && m_valid_o;
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      inside_q <= 1'b0;
      loop_q <= 1'b0;
      lead_q <= '0;
    end else if (m_valid_o && m_ready_i) begin
      inside_q <= !m_last_o;
      loop_q <= loop;
      if (loop && lead_q != LeadBits'(BeatsMax)) lead_q <= lead_q + 1'b1;
      if (!loop && lead_q != -LeadBits'(BeatsMax)) lead_q <= lead_q - 1'b1;
    end
  end
endmodule
