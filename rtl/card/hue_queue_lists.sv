// Lists: for each port, in order, the networks that wait and have no turn. The first ones are read ahead, with what their turn
// needs.
//
// Place: inside hue_output_queues, between hue_queue_join and hue_queue_turns. A network whose turn ended goes on its list
// before one that begins to wait. While a network moves to one of its port's slots, its credit and its queue's last frame are
// read; a frame that joins the queue meanwhile becomes the last frame.
//
// Latency: 8 clocks from the clock in which a network begins to wait until it is in a slot, if its list is empty. Throughput: a
// network a clock over all ports, one in three clocks for a port.
module hue_queue_lists
  import hue_pkg::*;
#(
  parameter int unsigned Nets = 64,
  parameter int unsigned CellBits = 10,
  parameter int unsigned CreditBits = 17,
  localparam int unsigned NetBits = Nets > 1 ? $clog2(Nets) : 1,
  localparam int unsigned QueueBits = $clog2(Ports) + NetBits,
  localparam int unsigned CountBits = CellBits + 1,
  // A network that waits, with its queue's first frame: network, phase, cell, length.
  localparam int unsigned EntryBits = NetBits + 1 + CellBits + 14,
  // What is kept about a queue between its turns: credit, and the number of cells ever taken (modulo).
  localparam int unsigned ServedBits = CreditBits + CountBits
) (
  input  logic                 clk_i,
  input  logic                 rst_ni,
  input  logic                 clearing_i,      // after reset, the memories indexed by queue are cleared
  input  logic [QueueBits-1:0] clear_i,
  input  logic [ServedBits-1:0] fresh_i,        // the initial state of a queue

  // From hue_queue_join.
  input  logic                 joins_i,
  input  logic [Ports-1:0]     joins_at_i,
  input  logic [2:0]           port_i,
  input  logic [NetBits-1:0]   net_i,
  input  logic [CellBits-1:0]  cell_i,
  input  logic                 waited_i,
  input  logic                 phase_i,
  input  logic [EntryBits-1:0] entry_i,         // the list entry of the network
  output logic                 room_o,          // room for the networks that are on their way here

  // From hue_queue_turns: what was decided one clock ago about a queue; the network goes back on its list.
  input  logic                 served_i,
  input  logic                 again_i,
  input  logic [EntryBits-1:0] again_entry_i,
  input  logic [QueueBits-1:0] served_queue_i,
  input  logic [ServedBits-1:0] served_state_i,
  input  logic [Ports-1:0]     take_i,          // the network in a slot gets its turn
  input  logic [Ports-1:0]     back_i,          // a network whose turn ends will go back on its list

  output logic [Ports-1:0]                 slot_o,
  output logic [Ports-1:0][EntryBits-1:0]  slot_entry_o,
  output logic [Ports-1:0][ServedBits-1:0] slot_served_o,
  output logic [Ports-1:0][CellBits-1:0]   slot_tail_o,
  output logic [Ports-1:0]                 others_o        // another network waits beside the one that has its turn
);

  localparam int unsigned Queues = 1 << QueueBits;
  localparam int unsigned ActDepth = 16;
  localparam int unsigned ActsComing = 4;  // networks that may still arrive after `room_o` was read
  localparam int unsigned RoomBits = $clog2(ActDepth + 1);
  localparam int unsigned Slots = 2;       // networks of a port that are looked up ahead

  typedef logic [QueueBits-1:0] queue_t;
  typedef logic [CellBits-1:0]  cell_t;
  typedef logic [NetBits-1:0]   net_t;
  typedef logic [NetBits:0]     list_t;
  typedef struct packed {
    net_t                net;
    logic [EntryBits-NetBits-1:0] rest;
  } entry_t;
  typedef struct packed {
    logic [2:0] port;
    entry_t     entry;
  } act_t;
  typedef struct packed {
    logic  phase;
    cell_t tail;
  } joined_t;
  typedef struct packed {
    entry_t                entry;
    logic [ServedBits-1:0] served;
  } turn_t;

  logic [2:0] again_port;
  assign again_port = 3'(served_queue_i >> NetBits);
  function automatic queue_t queue_of(logic [2:0] port, net_t net);
    return queue_t'({port, net});
  endfunction

  // ---- In: networks that go back on a list have priority over networks that begin to wait.
  act_t                act_in, act, write_q;
  logic                act_new, act_ready, act_valid, act_take, write_v_q;
  logic [RoomBits-1:0] act_room;
  assign act_new = joins_i && !waited_i;
  assign act_in = '{port: port_i, entry: entry_i};
  hue_fifo #(.Depth(ActDepth), .Bits($bits(act_t))) u_acts (
    .clk_i, .rst_ni, .valid_i(act_new), .ready_o(act_ready), .data_i(act_in),
    .valid_o(act_valid), .ready_i(act_take), .data_o(act), .room_o(act_room)
  );
  assign act_take = act_valid && !again_i;
  assign room_o = act_room > RoomBits'(ActsComing);
  always_ff @(posedge clk_i) begin
    write_v_q <= rst_ni && (act_valid || again_i);
    write_q <= again_i ? '{port: again_port, entry: again_entry_i} : act;
  end

  // ---- The lists. That a list is empty shows two clocks after it was popped.
  list_t [Ports-1:0]     put_q, got_q, member_q;
  logic [Ports-1:0][1:0] ahead_q;    // networks of a port that are in a slot or on their way to one
  logic [Ports-1:0]      some_q, asks, p1_at_q, p2_at_q, p4_at_q, p5_at_q;
  logic                  pop, p3_v_q, p4_by_q, p5_joins;
  logic [2:0]            pop_port, p1_port_q, p2_port_q, p3_port_q;
  queue_t                p3_queue, p4_queue_q, p5_queue_q, joins_queue;
  entry_t                p2_entry, p3_entry_q, p4_entry_q;
  logic [ServedBits-1:0] p4_served;
  joined_t               p4_joined, joined;
  cell_t                 p4_by_tail_q, p5_tail_q;
  turn_t                 p5_turn_q;

  hue_ram #(.Words(Queues), .Bits($bits(entry_t))) u_lists (
    .clk_i, .write_i(write_v_q), .waddr_i(queue_of(write_q.port, put_q[write_q.port][NetBits-1:0])),
    .wdata_i(write_q.entry), .read_i(1'b1), .raddr_i(queue_of(p1_port_q, got_q[p1_port_q][NetBits-1:0])),
    .rdata_o(p2_entry)
  );
  always_comb begin
    for (int unsigned p = 0; p < Ports; p++) begin
      asks[p] = some_q[p] && ahead_q[p] != 2'(Slots) && !p1_at_q[p] && !p2_at_q[p];
    end
  end
  hue_round_robin #(.Count(Ports)) u_pop (
    .clk_i, .rst_ni, .asks_i(asks), .take_i(1'b1), .any_o(pop), .winner_o(pop_port)
  );

  // ---- On the way to a slot: the queue's state is read.
  assign p3_queue = queue_of(p3_port_q, p3_entry_q.net);
  assign joins_queue = queue_of(port_i, net_i);
  assign joined = '{phase: phase_i, tail: cell_i};
  hue_ram #(.Words(Queues), .Bits(ServedBits)) u_served (
    .clk_i, .write_i(clearing_i || served_i), .waddr_i(clearing_i ? clear_i : served_queue_i),
    .wdata_i(clearing_i ? fresh_i : served_state_i), .read_i(1'b1), .raddr_i(p3_queue), .rdata_o(p4_served)
  );
  hue_ram #(.Words(Queues), .Bits($bits(joined_t))) u_tails (
    .clk_i, .write_i(joins_i), .waddr_i(joins_queue), .wdata_i(joined),
    .read_i(1'b1), .raddr_i(p3_queue), .rdata_o(p4_joined)
  );
  assign p5_joins = joins_i && joins_queue == p5_queue_q;
  always_ff @(posedge clk_i) begin
    p1_port_q <= pop_port;
    p2_port_q <= p1_port_q;
    p3_port_q <= p2_port_q;
    p3_entry_q <= p2_entry;
    p4_entry_q <= p3_entry_q;
    p4_queue_q <= p3_queue;
    p4_by_q <= joins_i && joins_queue == p3_queue;
    p4_by_tail_q <= cell_i;
    p5_queue_q <= p4_queue_q;
    p5_turn_q <= '{entry: p4_entry_q, served: p4_served};
    if (joins_i && joins_queue == p4_queue_q) p5_tail_q <= cell_i;
    else p5_tail_q <= p4_by_q ? p4_by_tail_q : p4_joined.tail;
    if (!rst_ni) begin
      p1_at_q <= '0;
      p2_at_q <= '0;
      p3_v_q <= 1'b0;
      p4_at_q <= '0;
      p5_at_q <= '0;
      put_q <= '0;
      got_q <= '0;
      some_q <= '0;
      ahead_q <= '0;
      member_q <= '0;
      others_o <= '0;
    end else begin
      p2_at_q <= p1_at_q;
      p3_v_q <= p2_at_q != '0;
      p5_at_q <= p4_at_q;
      for (int unsigned p = 0; p < Ports; p++) begin
        p1_at_q[p] <= pop && pop_port == 3'(p);
        p4_at_q[p] <= p3_v_q && p3_port_q == 3'(p);
        if (write_v_q && write_q.port == 3'(p)) put_q[p] <= put_q[p] + 1'b1;
        if (p1_at_q[p]) got_q[p] <= got_q[p] + 1'b1;
        some_q[p] <= put_q[p] != got_q[p];
        ahead_q[p] <= ahead_q[p] + 2'(p1_at_q[p]) - 2'(take_i[p]);
        // A network that goes back counts before it is on the list.
        member_q[p] <= member_q[p] + list_t'(act_take && act.port == 3'(p)) + list_t'(back_i[p]) - list_t'(take_i[p]);
        others_o[p] <= member_q[p] != '0;
      end
    end
  end

  // ---- Slots of a port, in turn
  for (genvar p = 0; p < Ports; p++) begin : g_slot
    turn_t [Slots-1:0] turns_q;
    cell_t [Slots-1:0] tails_q;
    logic              wslot_q, rslot_q;
    logic [1:0]        count_q;
    assign slot_o[p] = count_q != '0;
    assign slot_entry_o[p] = turns_q[rslot_q].entry;
    assign slot_served_o[p] = turns_q[rslot_q].served;
    assign slot_tail_o[p] = tails_q[rslot_q];
    always_ff @(posedge clk_i) begin
      for (int unsigned s = 0; s < Slots; s++) begin
        if (p5_at_q[p] && wslot_q == 1'(s)) begin
          turns_q[s] <= p5_turn_q;
          tails_q[s] <= p5_joins ? cell_i : p5_tail_q;
        end else if (joins_at_i[p] && net_i == turns_q[s].entry.net) begin
          tails_q[s] <= cell_i;
        end
      end
      if (!rst_ni) begin
        wslot_q <= 1'b0;
        rslot_q <= 1'b0;
        count_q <= '0;
      end else begin
        wslot_q <= wslot_q ^ p5_at_q[p];
        rslot_q <= rslot_q ^ take_i[p];
        count_q <= count_q + 2'(p5_at_q[p]) - 2'(take_i[p]);
      end
    end
  end

  logic unused;
  assign unused = p4_joined.phase;

`ifndef SYNTHESIS
  a_act_has_room: assert property (@(posedge clk_i) disable iff (!rst_ni) act_new |-> act_ready);
  a_slot_is_there: assert property (@(posedge clk_i) disable iff (!rst_ni) (take_i & ~slot_o) == '0);
`endif
endmodule
