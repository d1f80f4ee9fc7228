// Proof harness of hue_loop: frames leave in the order in which they came, each once and whole, with what is known about them. A frame
// is lost only if its network's frames would use more words than are free, so only by what its own network has there beyond its share.
//
// Place: scripts/formal. Inputs are free, except that a frame is as long as it says and has at least two beats, as every frame that the
// stages let pass. `mark_i` picks any one beat when it is taken. The harness counts words by what passes the ports.
module hue_loop_formal
  import hue_pkg::*;
#(
  parameter int unsigned BusBytes = 4,
  parameter int unsigned Nets = 2,
  parameter int unsigned Words = 8
) (
  input logic                  clk_i,
  input logic                  rst_ni,
  input logic                  offline_i,
  input logic                  s_valid_i,
  input logic [8*BusBytes-1:0] s_data_i,
  input logic                  s_last_i,
  input hue_loop_t             s_item_i,
  input logic                  m_ready_i,
  input logic                  mark_i
);
  localparam int unsigned Usable = Words - 4;  // as in the module
  typedef logic [3:0] count_t;
  typedef struct packed {
    hue_loop_t             item;
    logic                  last;
    logic [8*BusBytes-1:0] data;
  } beat_t;

  logic                  s_ready_o, m_valid_o, m_last_o, dropped_o, loses_o, crowded_o, idle_o;
  logic [8*BusBytes-1:0] m_data_o;
  hue_loop_t             m_item_o;
  logic [7:0]            dropped_net_o;
  logic [31:0]           dropped_tag_o;
  hue_loop #(.BusBytes(BusBytes), .Nets(Nets), .Words(Words)) u_dut (.*);

  // ---- the frame that comes
  logic   begun_q, inside_q, takes, stalled_q, loses_q, offline_q, alone_q;
  count_t beat_q;       // beats of it that were taken
  beat_t  in, out, in_q;
  assign in = '{item: s_item_i, last: s_last_i, data: s_data_i};
  assign out = '{item: m_item_o, last: m_last_o, data: m_data_o};
  assign takes = s_valid_i && s_ready_o;

  // ---- words of each network that were taken and have not left; and one clock earlier, when it was decided
  count_t [1:0] used_q, used_before_q;
  count_t       need, free, free_before, of_net_before;
  logic         accepts, leaves, net;
  assign net = s_item_i.net[0];
  assign need = count_t'(beats_of(s_item_i.len, BusBytes));
  assign accepts = takes && !inside_q && !loses_o;
  assign leaves = m_valid_o && m_ready_i && m_last_o;
  assign free = count_t'(Usable) - used_q[0] - used_q[1];
  assign free_before = count_t'(Usable) - used_before_q[0] - used_before_q[1];
  assign of_net_before = used_before_q[net];

  // ---- the marked beat
  logic   marked_q;
  count_t held_q, before_q;
  beat_t  word_q;
  logic   push, pop;
  assign push = takes && !loses_o;
  assign pop = m_valid_o && m_ready_i;

  initial begun_q = 1'b0;
  always_ff @(posedge clk_i) begin
    begun_q <= 1'b1;
    in_q <= in;
    if (!rst_ni) begin
      {inside_q, stalled_q, loses_q, marked_q, alone_q} <= '0;
      beat_q <= '0;
      used_q <= '0;
      used_before_q <= '0;
      held_q <= '0;
      offline_q <= offline_i;
    end else begin
      stalled_q <= s_valid_i && !s_ready_o;
      loses_q <= loses_o;
      // It waited in the clock before, and so was decided there.
      alone_q <= s_valid_i && !s_ready_o;
      if (takes) inside_q <= !s_last_i;
      if (takes) beat_q <= s_last_i ? '0 : beat_q + 4'd1;
      used_before_q <= used_q;
      for (int unsigned n = 0; n < 2; n++) begin
        used_q[n] <= used_q[n] + (accepts && net == 1'(n) ? need : '0)
                     - (leaves && m_item_o.net[0] == 1'(n) ? count_t'(beats_of(m_item_o.len, BusBytes)) : '0);
      end
      held_q <= held_q + count_t'(push) - count_t'(pop);
      if (marked_q) begin
        if (pop) before_q <= before_q - 4'd1;
        if (pop && before_q == '0) marked_q <= 1'b0;
      end else if (push && mark_i) begin
        marked_q <= 1'b1;
        before_q <= held_q - count_t'(pop);
        word_q <= in;
      end
    end
  end

  always_comb begin
    assume (rst_ni == begun_q);
    if (begun_q) assume (offline_i == offline_q);
    // A stream, whose frames are as long as they say.
    if (begun_q && stalled_q) assume (s_valid_i && in == in_q);
    if (begun_q && s_valid_i) begin
      assume (32'(s_item_i.net) < Nets);
      assume (32'(s_item_i.len) > BusBytes && 32'(s_item_i.len) <= FrameBytesMax);
      assume (s_last_i == (beat_q + 4'd1 == need));
      if (inside_q) assume (s_item_i == in_q.item);
    end
    // Between two beats of a frame nothing is offered that belongs to another.
    if (begun_q && inside_q) assume (s_valid_i);
    if (begun_q) begin
      assert (held_q != '0 || !m_valid_o);
      if (marked_q && before_q == '0 && m_valid_o) assert (out == word_q);
      // A frame is decided in the clock before its first beat is taken, by the words that are used then.
      if (takes && !inside_q) begin
        assert (alone_q);
        if (loses_o) assert (!offline_i && of_net_before + need > free_before);
        else assert ((offline_i ? need : of_net_before + need) <= free_before);
      end
      if (inside_q && takes) assert (loses_o == loses_q);
      assert (dropped_o == (loses_o && !loses_q));
      if (dropped_o) assert (dropped_net_o == s_item_i.net && dropped_tag_o == s_item_i.tag);
      if (idle_o) assert (held_q == '0 && !inside_q);
      // In the clock after next at the latest, it is known that a quarter is in use.
      if (!crowded_o && !takes) assert (free_before + 4'd4 >= count_t'(Usable - Words / 4));
    end
  end
  logic unused;
  assign unused = ^{free, stalled_q};
endmodule
