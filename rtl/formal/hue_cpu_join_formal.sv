// Proof harness of hue_cpu_join: beats leave in the order in which they were taken, each once, unaltered, under the number of their
// queue. Frames are not interleaved. A queue that waits waits for at most CpuPorts - 1 frames of others.
//
// Place: scripts/formal. Inputs are free, except that the queue `who_i` keeps offering a frame until it begins. `mark_i` picks any one
// beat when it is taken, `who_i` is any queue.
module hue_cpu_join_formal
  import hue_pkg::*;
#(
  parameter int unsigned BusBytes = 1,
  localparam int unsigned ByteBits = $clog2(BusBytes + 1)
) (
  input logic                                clk_i,
  input logic                                rst_ni,
  input logic [CpuPorts-1:0]                 s_valid_i,
  input logic [CpuPorts-1:0][8*BusBytes-1:0] s_data_i,
  input logic [CpuPorts-1:0]                 s_last_i,
  input logic [CpuPorts-1:0][ByteBits-1:0]   s_bytes_i,
  input logic [CpuPorts-1:0][63:0]           s_time_i,
  input logic [CpuPorts-1:0][31:0]           s_tag_i,
  input logic                                m_ready_i,
  input logic                                mark_i,
  input logic [1:0]                          who_i
);
  // As in the module.
  typedef struct packed {
    logic [63:0]           time_ns;
    logic [31:0]           tag;
    logic [1:0]            port;
    logic                  last;
    logic [ByteBits-1:0]   bytes;
    logic [8*BusBytes-1:0] data;
  } beat_t;

  logic [CpuPorts-1:0]   s_ready_o;
  logic                  m_valid_o, m_last_o, idle_o;
  logic [8*BusBytes-1:0] m_data_o;
  logic [ByteBits-1:0]   m_bytes_o;
  logic [63:0]           m_time_o;
  logic [31:0]           m_tag_o;
  logic [1:0]            m_port_o;
  hue_cpu_join #(.BusBytes(BusBytes)) u_dut (.*);

  beat_t      in, out, spare;
  logic       push, pop, in_inside_q, out_inside_q, begun_q, waits_q, begins, waits, follows;
  logic [1:0] in_port_q, out_port_q, held, who_q, last_q, left;
  logic [2:0] turns_q;
  assign out = '{time_ns: m_time_o, tag: m_tag_o, port: m_port_o, last: m_last_o, bytes: m_bytes_o, data: m_data_o};
  assign push = (s_valid_i & s_ready_o) != '0;
  assign pop = m_valid_o && m_ready_i;
  always_comb begin
    in = '0;
    for (int unsigned p = 0; p < CpuPorts; p++) begin
      if (s_valid_i[p] && s_ready_o[p]) begin
        in = '{time_ns: s_time_i[p], tag: s_tag_i[p], port: 2'(p), last: s_last_i[p], bytes: s_bytes_i[p], data: s_data_i[p]};
      end
    end
  end
  assign begins = push && !in_inside_q;
  assign waits = s_valid_i[who_i] && !(in_inside_q && in_port_q == who_i) && !(begins && in.port == who_i);
  assign left = who_i - last_q - 2'd1;

  initial begun_q = 1'b0;
  always_ff @(posedge clk_i) begin
    begun_q <= 1'b1;
    who_q <= who_i;
    if (!rst_ni) begin
      in_inside_q <= 1'b0;
      out_inside_q <= 1'b0;
      waits_q <= 1'b0;
      turns_q <= '0;
      last_q <= 2'(CpuPorts - 1);
    end else begin
      if (push) in_inside_q <= !in.last;
      if (push) in_port_q <= in.port;
      if (pop) out_inside_q <= !out.last;
      if (pop) out_port_q <= out.port;
      waits_q <= waits;
      turns_q <= !waits ? '0 : turns_q + 3'(begins);
      if (begins) last_q <= in.port;
    end
  end

  assign spare = u_dut.u_out.spare_data_q;
  hue_skid_rules #(.Bits($bits(beat_t))) u_rules (
    .clk_i, .rst_ni, .push_i(push), .in_i(in), .valid_i(m_valid_o), .ready_i(m_ready_i), .out_i(out), .mark_i, .held_o(held),
    .valid_q_i(u_dut.u_out.valid_q), .spare_q_i(u_dut.u_out.spare_q), .spare_data_q_i(spare)
  );
  always_comb begin
    follows = 1'b1;
    if (held == 2'd0) follows = in_inside_q == out_inside_q && (!in_inside_q || in_port_q == out_port_q);
    if (held == 2'd1) follows = in_inside_q == !out.last && (!in_inside_q || in_port_q == out.port);
    if (held == 2'd2) begin
      follows = in_inside_q == !spare.last && (!in_inside_q || in_port_q == spare.port) && (out.last || spare.port == out.port);
    end
    if (!begun_q) assume (!rst_ni);
    if (begun_q) assume (who_i == who_q);
    if (begun_q && rst_ni && waits_q) assume (s_valid_i[who_i]);
    if (begun_q && rst_ni) begin
      assert ((s_ready_o & (s_ready_o - 1'b1)) == '0 && (s_ready_o & ~s_valid_i) == '0);
      // Whole frames, each from one queue.
      if (push && in_inside_q) assert (in.port == in_port_q);
      if (m_valid_o && out_inside_q) assert (out.port == out_port_q);
      assert (idle_o == (!in_inside_q && held == '0));
      // Fairness.
      assert (turns_q <= 3'(CpuPorts - 1));
      // For the induction: the words in the skid continue the words that left, and precede the next one taken; whose turn it is.
      assert (follows);
      assert (u_dut.inside_q == in_inside_q);
      if (in_inside_q) assert (u_dut.port_q == in_port_q);
      assert (turns_q + 3'(left) <= 3'(CpuPorts - 1));
      for (int unsigned i = 0; i < CpuPorts; i++) begin
        assert (u_dut.u_turns.first_q[i] == (2'(i) > last_q) || (u_dut.u_turns.first_q == '1 && 32'(last_q) == CpuPorts - 1));
      end
    end
  end
endmodule
