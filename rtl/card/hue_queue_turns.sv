// Turns: chooses the frame, and so the network, that each port sends next.
//
// Place: inside hue_output_queues: hue_queue_lists → **here** → plans of hue_queue_read. A port serves its networks in the order
// in which they began to wait. A turn lasts while the network's credit is positive; each turn adds the network's quantum, and
// each frame costs its bytes (surplus round robin). So over any time two networks that always wait get bytes in proportion to
// their quanta, to within a quantum and two frames of each. The quanta are in hue_queue_weights.
// Hold: the frames of one network for MAC ports can be held (`hold_i`). They wait in its queues and take no share until the hold
// ends. From the second clock of a hold on none of them is taken.
//
// Latency: 3 clocks a step: choose the port; read its network's state and look up the queue's next frame; take the frame and
// charge it. Throughput: a step a clock, for one port every second clock at most. A network that begins its turn in debt costs
// the port 2 clocks.
// Source: H. Adiseshu, G. Parulkar, G. Varghese, "A reliable and scalable striping protocol", 1996.
module hue_queue_turns
  import hue_pkg::*;
#(
  parameter int unsigned Nets = 64,
  parameter int unsigned CellBits = 10,
  parameter int unsigned CellBytes = 64,
  parameter int unsigned CreditBits = 17,
  localparam int unsigned NetBits = Nets > 1 ? $clog2(Nets) : 1,
  localparam int unsigned QueueBits = $clog2(Ports) + NetBits,
  localparam int unsigned CountBits = CellBits + 1,
  localparam int unsigned EntryBits = NetBits + 1 + CellBits + 14,   // as hue_queue_lists has them
  localparam int unsigned ServedBits = CreditBits + CountBits
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,
  input  logic                  hold_i,
  input  logic [NetBits-1:0]    hold_net_i,

  // To hue_queue_weights: the network of this step, 0 if there is no step; its quantum one clock later. No step begins with `wait_i`.
  output logic [NetBits-1:0]    look_net_o,
  input  logic [15:0]           quantum_i,
  input  logic                  wait_i,

  // From hue_queue_join.
  input  logic                  comes_i,
  input  logic [2:0]            comes_port_i,
  input  logic [NetBits-1:0]    comes_net_i,
  input  logic                  joins_i,
  input  logic [Ports-1:0]      joins_at_i,
  input  logic [NetBits-1:0]    net_i,
  input  logic                  waited_i,
  input  logic [CellBits-1:0]   cell_i,
  input  logic [13:0]           len_i,
  input  logic [CellBits-1:0]   tail_i,
  input  logic [CellBits-1:0]   before_cell_i,
  input  logic [13:0]           before_len_i,

  // From hue_queue_lists.
  input  logic [Ports-1:0]                 slot_i,
  input  logic [Ports-1:0][EntryBits-1:0]  slot_entry_i,
  input  logic [Ports-1:0][ServedBits-1:0] slot_served_i,
  input  logic [Ports-1:0][CellBits-1:0]   slot_tail_i,
  input  logic [Ports-1:0]                 others_i,
  output logic [Ports-1:0]                 take_o,
  output logic [Ports-1:0]                 back_o,

  // A queue is emptied. One clock later the decision about a queue: a frame was taken, the queue is empty, it goes back on its list.
  output logic                  empties_o,
  output logic [QueueBits-1:0]  empties_queue_o,
  output logic                  decided_o,
  output logic                  taken_o,
  output logic                  emptied_o,
  output logic                  again_o,
  output logic [QueueBits-1:0]  queue_o,
  output logic [EntryBits-1:0]  entry_o,
  output logic [ServedBits-1:0] served_o,

  // The frame that is taken, for its port's plan.
  input  logic [Ports-1:0]      room_i,          // room for two more plans
  output logic [Ports-1:0]      plan_o,
  output logic [CellBits-1:0]   plan_cell_o,
  output logic [13:0]           plan_len_o
);

  localparam int unsigned Cells = 1 << CellBits;
  typedef logic [CellBits-1:0]  cell_t;
  typedef logic [CountBits-1:0] count_t;
  typedef logic [QueueBits-1:0] queue_t;
  typedef logic [NetBits-1:0]   net_t;
  typedef logic signed [CreditBits-1:0] credit_t;
  typedef struct packed {
    cell_t       first;
    logic [13:0] len;
  } frame_t;
  typedef struct packed {
    net_t   net;
    logic   phase;
    frame_t frame;
  } entry_t;
  typedef struct packed {
    credit_t credit;
    count_t  taken;
  } served_t;
  typedef struct packed {
    entry_t  entry;
    served_t served;
  } turn_t;

  logic [Ports-1:0]  asks, has_q, waits_held_q, s1_at_q, s1_of_q, s2_at_q, s2_ends_q, stays, r_stays_q, room_q;
  logic [Ports-1:0]  held, only, joins, joins_next;
  turn_t [Ports-1:0] turn_q;
  cell_t [Ports-1:0] tail_q;
  logic              step, s1_v_q, s1_again_q, s1_debt, s1_spent, s1_held, s1_only, s1_joins;
  logic [2:0]        s1_next, s1_port_q, s2_port_q;
  turn_t             s1, s2_q;
  logic              s2_v_q, s2_takes_q, s2_debt_q, s2_spent_q, s2_held_q, s2_last_q, s2_by_q, s2_joins_q, leaves;
  credit_t           s1_left, s1_below, s1_owes, s2_left_q, quantum, credit_next;
  cell_t             s1_tail, s2_tail_q, r_tail_q;
  count_t            s2_cells_q;
  frame_t            linked, follows, beside, joining;
  logic [Ports-1:0]  leaves_at;
  served_t           served_next, r_served_q;
  entry_t            r_entry_q;
  assign joining = '{first: cell_i, len: len_i};
  assign look_net_o = s1.entry.net;

  // About the network whose turn it is at each port: it is held, its queue has one frame, a frame joins it, or will in the next
  // clock. Each port has its own comparators, as choosing a port first would take longer.
  always_comb begin
    for (int unsigned p = 0; p < Ports; p++) begin
      held[p] = hold_i && p < MacPorts && turn_q[p].entry.net == hold_net_i;
      only[p] = tail_q[p] == turn_q[p].entry.frame.first;
      joins[p] = joins_at_i[p] && net_i == turn_q[p].entry.net;
      joins_next[p] = comes_i && comes_port_i == 3'(p) && comes_net_i == turn_q[p].entry.net;
    end
  end

  // ---- s0: choose the port. A step may begin while the one before is decided, if there will certainly be a network that has the
  // turn: the same one, or one in a slot. A held network gives way to others, and when alone it requests no step.
  assign asks = has_q & room_q & ~s1_at_q & ~s2_ends_q & ~waits_held_q & ~{Ports{wait_i}};
  hue_round_robin #(.Count(Ports)) u_step (
    .clk_i, .rst_ni, .asks_i(asks), .take_i(1'b1), .any_o(step), .winner_o(s1_next)
  );

  // ---- s1: the state of its network
  always_comb begin
    // The decision of the clock before has not reached the port's registers yet.
    s1 = s1_again_q ? {r_entry_q, r_served_q} : '0;
    s1_tail = '0;
    for (int unsigned p = 0; p < Ports; p++) begin
      if (s1_of_q[p]) s1 |= turn_q[p];
      if (s1_of_q[p]) s1_tail |= tail_q[p];
    end
  end
`ifdef HUE_PLANT_QUEUES_CREDIT
  assign s1_left = s1.served.credit - credit_t'(64);  // counts frames, not bytes; for scripts/rtl-test: the bench must find this
  assign s1_below = s1_left - 1'b1;
`else
  assign s1_left = s1.served.credit - credit_t'({2'b00, s1.entry.frame.len});
  assign s1_below = s1.served.credit + ~credit_t'({2'b00, s1.entry.frame.len});
`endif
  // Not positive: each has its own carry chain, as long as that of the difference.
  assign s1_spent = s1_below[CreditBits-1];
  assign s1_debt = s1_owes[CreditBits-1];
  assign s1_owes = s1.served.credit + '1;
`ifdef HUE_PLANT_QUEUES_HOLD
  assign s1_held = 1'b0;  // a network whose turn had begun continues; for scripts/rtl-test: the bench must find this
`else
  assign s1_held = (s1_at_q & held) != '0;
`endif
  assign s1_only = (s1_of_q & only) != '0 || (s1_again_q && r_tail_q == r_entry_q.frame.first);
  assign s1_joins = (s1_at_q & joins) != '0;
  hue_ram #(.Words(Cells), .Bits($bits(frame_t))) u_links (
    .clk_i, .write_i(joins_i && waited_i), .waddr_i(tail_i), .wdata_i(joining),
    .read_i(1'b1), .raddr_i(s1.entry.frame.first), .rdata_o(linked)
  );
  always_ff @(posedge clk_i) begin
    s1_port_q <= s1_next;
    s2_port_q <= s1_port_q;
    s2_q <= s1;
    empties_queue_o <= queue_t'({s1_port_q, s1.entry.net});
    s2_debt_q <= s1_debt;
    s2_spent_q <= s1_spent;
    s2_held_q <= s1_held;
    s2_left_q <= s1_left;
    s2_cells_q <= count_t'(cells_of(15'(s1.entry.frame.len), CellBytes));
    // A frame that joins the queue in this clock or in the next follows the frame of this step, if that is the queue's only one.
    s2_last_q <= s1_only && !s1_joins;
    s2_by_q <= s1_only && s1_joins;
    s2_joins_q <= (s1_at_q & joins_next) != '0;
    if (s1_joins) s2_tail_q <= cell_i;
    else s2_tail_q <= s1_again_q ? r_tail_q : s1_tail;
    for (int unsigned p = 0; p < Ports; p++) waits_held_q[p] <= held[p] && !slot_i[p];
    room_q <= room_i;
    if (!rst_ni) begin
      s1_v_q <= 1'b0;
      s1_at_q <= '0;
      s1_of_q <= '0;
      s1_again_q <= 1'b0;
      r_stays_q <= '0;
      s2_v_q <= 1'b0;
      s2_takes_q <= 1'b0;
      s2_at_q <= '0;
      s2_ends_q <= '0;
    end else begin
      s1_v_q <= step;
      s1_again_q <= step && stays[s1_next];
      r_stays_q <= stays;
      s2_v_q <= s1_v_q && has_q[s1_port_q];
      s2_takes_q <= s1_v_q && has_q[s1_port_q] && !s1_debt && !s1_held;
      for (int unsigned p = 0; p < Ports; p++) begin
        s1_at_q[p] <= step && s1_next == 3'(p);
        s1_of_q[p] <= step && s1_next == 3'(p) && !stays[p];
        s2_at_q[p] <= s1_at_q[p] && has_q[p];
        s2_ends_q[p] <= s1_at_q[p] && !slot_i[p] && (s1_only || others_i[p]);
      end
    end
  end

  // ---- s2: the frame is taken or not, and charged
`ifdef HUE_PLANT_QUEUES_JOIN
  assign empties_o = s2_takes_q && s2_last_q;  // for scripts/rtl-test: the bench must find this
`else
  assign empties_o = s2_takes_q && s2_last_q && !s2_joins_q;
`endif
  // The turn ends when the credit is used up or the queue is empty; a network that is alone continues.
  // Decided for each port, without choosing one by its number first: the path behind is long.
  always_comb begin
    for (int unsigned p = 0; p < Ports; p++) begin
      leaves_at[p] = s2_at_q[p] && (empties_o || (others_i[p] && (!s2_takes_q || s2_spent_q)));
    end
  end
  assign leaves = leaves_at != '0;
  assign quantum = credit_t'({1'b0, quantum_i});
  always_comb begin
    beside = s2_by_q ? '{first: before_cell_i, len: before_len_i} : joining;
    follows = s2_by_q || s2_last_q ? beside : linked;
    // An emptied queue loses the rest of its credit, but keeps its debt.
    credit_next = (s2_held_q || s2_debt_q ? s2_q.served.credit : s2_left_q)
                  + ((s2_debt_q || s2_spent_q) && !s2_held_q ? quantum : credit_t'(0));
    if (empties_o && !s2_spent_q) credit_next = quantum;
    served_next.credit = credit_next;
    served_next.taken = s2_takes_q ? s2_q.served.taken + s2_cells_q : s2_q.served.taken;
    for (int unsigned p = 0; p < Ports; p++) begin
      take_o[p] = slot_i[p] && (s2_at_q[p] ? leaves_at[p] : !has_q[p]);
      back_o[p] = leaves_at[p] && !empties_o;
      stays[p] = s2_at_q[p] && !take_o[p];
    end
  end
  always_ff @(posedge clk_i) begin
    queue_o <= empties_queue_o;
    r_entry_q <= s2_q.entry;
    if (s2_takes_q) r_entry_q.frame <= follows;
    r_served_q <= served_next;
    r_tail_q <= s2_joins_q ? cell_i : s2_tail_q;
    for (int unsigned p = 0; p < Ports; p++) begin
      if (take_o[p]) begin
        turn_q[p] <= {slot_entry_i[p], slot_served_i[p]};
        tail_q[p] <= joins_at_i[p] && net_i == slot_entry_i[p][EntryBits-1-:NetBits] ? cell_i : slot_tail_i[p];
      end else begin
        if (r_stays_q[p]) turn_q[p].entry.frame <= r_entry_q.frame;
        if (r_stays_q[p]) turn_q[p].served <= r_served_q;
        if (joins[p]) tail_q[p] <= cell_i;
      end
    end
    if (!rst_ni) begin
      has_q <= '0;
      decided_o <= 1'b0;
      taken_o <= 1'b0;
      emptied_o <= 1'b0;
      again_o <= 1'b0;
    end else begin
      decided_o <= s2_v_q;
      taken_o <= s2_takes_q;
      emptied_o <= empties_o;
      again_o <= leaves && !empties_o;
      for (int unsigned p = 0; p < Ports; p++) begin
        if (take_o[p]) has_q[p] <= 1'b1;
        else if (leaves_at[p]) has_q[p] <= 1'b0;
      end
    end
  end
  assign entry_o = r_entry_q;
  assign served_o = r_served_q;
  assign plan_o = s2_takes_q ? s2_at_q : '0;
  assign plan_cell_o = s2_q.entry.frame.first;
  assign plan_len_o = s2_q.entry.frame.len;

  // Only the sign of some sums is used.
  logic unused;
  assign unused = ^{s1_below, s1_owes, s2_port_q};

`ifndef SYNTHESIS
  a_held: assert property (@(posedge clk_i) disable iff (!rst_ni)
    (s2_takes_q && $past(hold_i) && 32'(s2_port_q) < MacPorts) |-> s2_q.entry.net != $past(hold_net_i));
`endif
endmodule
