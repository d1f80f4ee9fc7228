// Proof harness of hue_admit: verdicts leave in the order in which they came, each once, unaltered or as a drop that is reported. For
// an admitted frame there are cells. A frame is dropped only if its queue would then hold more cells than are free, or if the frame
// grows, or is a copy that others follow, while bodies wait. None of these is admitted while many wait.
//
// Place: scripts/formal. Inputs are free, except that only cells that were taken are returned. `mark_i` picks any one verdict.
module hue_admit_formal
  import hue_pkg::*;
#(
  parameter int unsigned Nets = 2,
  parameter int unsigned Cells = 4,
  parameter int unsigned CellBytes = 2,
  parameter int unsigned Window = 4,
  localparam int unsigned QueueBits = $clog2(Ports) + $clog2(Nets),
  localparam int unsigned CountBits = $clog2(Cells) + 1,
  localparam int unsigned Queues = 1 << QueueBits
) (
  input logic                 clk_i,
  input logic                 rst_ni,
  input logic                 offline_i,   // sampled during reset
  input logic                 backlog_i,
  input logic                 late_i,
  input logic                 counts_i,
  input logic                 s_valid_i,
  input hue_verdict_t         s_verdict_i,
  input logic                 m_ready_i,
  input logic                 gone_i,
  input logic [QueueBits-1:0] gone_queue_i,
  input logic                 freed_i,
  input logic                 mark_i
);
  localparam int unsigned GoneClocks = 3;  // from sampling a queue's count to the decision that uses it
  typedef logic [CountBits-1:0] count_t;
  typedef logic [QueueBits-1:0] queue_t;
  logic         begun_q, offline_q, s_ready, m_valid, refused, dropped, idle, empty, freed_cpu;
  hue_verdict_t m_verdict;
  logic [2:0]   dropped_port;
  logic [7:0]   dropped_net;
  count_t [Queues-1:0] put_q, gone_q;
  hue_admit #(.Nets(Nets), .Cells(Cells), .CellBytes(CellBytes), .Window(Window)) u_dut (
    .clk_i, .rst_ni, .offline_i(offline_q), .backlog_i, .late_i, .counts_i,
    .s_valid_i, .s_ready_o(s_ready), .s_verdict_i, .m_valid_o(m_valid), .m_ready_i, .m_verdict_o(m_verdict), .m_refused_o(refused),
    .gone_i, .gone_queue_i, .gone_cells_i(gone_q[gone_queue_i] + 1'b1), .freed_i, .freed_cpu_i(freed_cpu),
    .dropped_o(dropped), .dropped_port_o(dropped_port), .dropped_net_o(dropped_net), .idle_o(idle), .empty_o(empty)
  );

  // Cells in queues, free cells, and cells that left a queue and are not yet free; those of CPU queues are counted apart. One cell
  // leaves a queue at a time.
  count_t [GoneClocks-1:0][Queues-1:0] past_q;   // gone_q in the clocks before, the latest first
  count_t                       free_q, cpu_free_q, out_q, cpu_out_q, need;
  queue_t                       queue;
  logic                         admits, drops, grows, extra;
  logic [7:0]                   notes_q;   // of verdicts inside, by place
  logic [7:0]                   extras_q;  // of verdicts inside, by place: the frame grows, is a copy of a flood, or a copy of it follows
  logic [2:0]                   come_q, decided_q;
  assign admits = u_dut.admit;
  assign drops = u_dut.drop;
  assign queue = u_dut.d_queue;
  assign need = u_dut.d_q.need;
  assign grows = u_dut.d_q.grows;
  assign extra = extras_q[decided_q];
  assign freed_cpu = freed_i && cpu_out_q != '0;

  // Verdicts inside; the marked one, and those before it. `waited_q`: frames that grow had to wait one clock ago.
  logic         take, leaves, marked_q, stalled_q, told_q, waited_q, late_q;
  count_t       free_before_q;
  logic [4:0]   inside_q, before_q;
  hue_verdict_t mark_q, verdict_q;
  logic [7:0]   told_net_q;
  assign take = s_valid_i && s_ready;
  assign leaves = m_valid && m_ready_i;

  initial begun_q = 1'b0;
  always_ff @(posedge clk_i) begin
    begun_q <= 1'b1;
    verdict_q <= s_verdict_i;
    told_net_q <= 8'(u_dut.d_q.net);
    waited_q <= late_i || backlog_i;
    late_q <= late_i;
    free_before_q <= rst_ni ? free_q : count_t'(Cells);
    if (!rst_ni) begin
      offline_q <= offline_i;
      put_q <= '0;
      gone_q <= '0;
      past_q <= '0;
      free_q <= count_t'(Cells);
      cpu_free_q <= count_t'(Cells / 2);
      out_q <= '0;
      cpu_out_q <= '0;
      inside_q <= '0;
      {come_q, decided_q} <= '0;
      marked_q <= 1'b0;
      stalled_q <= 1'b0;
      told_q <= 1'b0;
    end else begin
      stalled_q <= s_valid_i && !s_ready;
      told_q <= drops && !notes_q[decided_q];
      past_q <= {past_q[GoneClocks-2:0], gone_q};
      if (admits) put_q[queue] <= put_q[queue] + need;
      if (gone_i) gone_q[gone_queue_i] <= gone_q[gone_queue_i] + 1'b1;
      free_q <= free_q - (admits ? need : '0) + count_t'(freed_i);
      cpu_free_q <= cpu_free_q - (admits && grows ? need : '0) + count_t'(freed_cpu);
      out_q <= out_q + count_t'(gone_i) - count_t'(freed_i);
      cpu_out_q <= cpu_out_q + count_t'(gone_i && gone_queue_i[QueueBits-1]) - count_t'(freed_cpu);
      inside_q <= inside_q + 5'(take) - 5'(leaves);
      come_q <= come_q + 3'(take);
      decided_q <= decided_q + 3'(u_dut.d_v_q && !u_dut.again);
      if (take) begin
        notes_q[come_q] <= s_verdict_i.note;
        extras_q[come_q] <= s_verdict_i.more || s_verdict_i.ports != '0 || 32'(departs_by(s_verdict_i.verdict, s_verdict_i.net[1:0], s_verdict_i.port_out)) >= MacPorts;
      end
      if (take && mark_i && !marked_q) begin
        marked_q <= 1'b1;
        mark_q <= s_verdict_i;
        before_q <= inside_q - 5'(leaves);
      end else if (marked_q && leaves) begin
        before_q <= before_q - 1'b1;
        marked_q <= before_q != '0;
      end
    end
  end

  logic sends;
  hue_verdict_t as_came;
  assign sends = (mark_q.verdict == VerdictForward || mark_q.verdict == VerdictPunt) && mark_q.tunnel == TunnelNone;
  always_comb begin
    assume (rst_ni == begun_q);
    if (begun_q && stalled_q) assume (s_valid_i && s_verdict_i == verdict_q);
    if (s_valid_i) assume (32'(s_verdict_i.net) < Nets && 32'(departs_by(s_verdict_i.verdict, s_verdict_i.net[1:0], s_verdict_i.port_out)) < Ports && 32'(s_verdict_i.len) <= FrameBytesMax);
    if (gone_i) assume (put_q[gone_queue_i] != gone_q[gone_queue_i]);
    if (freed_i) assume (out_q != '0);
    as_came = m_verdict;
    if (sends && m_verdict.verdict == VerdictDrop) as_came.verdict = mark_q.verdict;
    if (begun_q) begin
      if (m_valid && marked_q && before_q == '0) assert (as_came == mark_q && refused == (as_came != m_verdict));
      assert (!m_valid || inside_q != '0);
      assert (idle == (inside_q == '0));
      if (empty) assert (free_before_q == count_t'(Cells));
      // For an admitted frame there are cells: as many are free as its queue then holds.
      if (admits) assert (put_q[queue] - gone_q[queue] + need <= free_q && need <= free_q);
      if (admits && grows) assert (need <= cpu_free_q);
      if (admits && extra) assert (!late_q);
      // A dropped frame would take too many, or is written more than once, or grows, while bodies wait. The drop is reported,
      // unless it is a note's.
      if (drops) begin
        assert (!offline_q && counts_i);
        assert (put_q[queue] - past_q[GoneClocks-1][queue] + need > free_q
                || (grows && put_q[queue] - past_q[GoneClocks-1][queue] + need > cpu_free_q) || (extra && waited_q));
      end
      assert (dropped == told_q);
      if (dropped) assert (dropped_net == told_net_q && 32'(dropped_port) < Ports);
    end
  end
endmodule
