// Longest-prefix match over `dag36` in external memory: one trie for all networks in two banks, many lookups in flight.
//
// Place: between the header checks and the next-hop table (rtl/planes/hue_routes), with one hue_sram_port per bank.
// The words: crates/tables/src/dag36/words.rs; word i is in bank i mod 2. A lookup sees the table of the root it entered
// with: new words are written first, then the root (hue_network's row), and old words are reused only after the lookups
// that entered before have left. So no lookup sees half of a change.
// A word changed in place (ADR-0017) is one item, and a lookup reads one item per node.
//
// Each bank has a lane: an answer of the bank passes through it and becomes the lookup's next request, to either bank,
// or its result. A third lane brings in new lookups; the others have priority over it, so that lookups in flight finish.
// Answers leave in the order in which lookups entered. A word with wrong parity, or a node below the last byte of the
// key, gives "no route", but never a hang: a lookup reads at most 3 words per key byte.
//
// A lookup may have two rounds (`Twice`): its first answer is held until the user of the module says whether it stands, or which other key is
// looked up in the same trie. The lookup keeps its place in the order.
//
// Latency: a word read takes RspLatency + 4 clocks when nothing waits; a lookup takes that for each word, plus 4 clocks.
// Throughput: bounded by the banks (a word a clock each) and by `Slots` over the latency; one lookup a clock at most. With keys of
// 128 bits a lookup reads up to 48 words; the bench measures 10.7 clocks a lookup for one of 17.3 words, 9.4 with 64 slots.
module hue_dag36_walk
  import hue_dag36_pkg::*;
#(
    parameter int unsigned Slots    = 32,  // lookups in flight: a power of two, at least 4
    parameter int unsigned KeyBits  = 32,  // a multiple of 8, at least 16
    parameter int unsigned TagBits  = 1,
    parameter bit          Twice    = 1'b0, // lookups may have two rounds
    localparam int unsigned Depth     = KeyBits / 8,
    localparam int unsigned SlotBits  = $clog2(Slots),
    localparam int unsigned LevelBits = $clog2(Depth),
    localparam int unsigned StepBits  = SlotBits + LevelBits + 2 + 2 + 2 + 2 + 20
) (
    input  logic                     clk_i,
    input  logic                     rst_ni,
    input  logic                     valid_i,
    output logic                     ready_o,
    output logic                     tight_o, // room for at most one lookup until an answer is taken
    input  logic [35:0]              item_i,  // root item of the network
    input  logic [KeyBits-1:0]       key_i,   // destination address
    input  logic [TagBits-1:0]       tag_i,   // returned with the answer
    input  logic                     holds_i, // the first answer is held
    output logic [SlotBits-1:0]      slot_o,  // the lookup's number while it is in flight
    // the held answer of a lookup, if it has one yet
    input  logic [SlotBits-1:0]      ask_slot_i,
    output logic                     ask_ended_o,
    output logic                     ask_error_o,
    output logic [15:0]              ask_hop_o,
    // whether a held answer stands, or this key is looked up
    input  logic                     judged_i,
    output logic                     judged_ready_o,
    input  logic [SlotBits-1:0]      judged_slot_i,
    input  logic                     again_i,
    input  logic [KeyBits-1:0]       again_key_i,
    output logic                     valid_o,
    input  logic                     ready_i,
    output logic [15:0]              hop_o,   // next-hop word; 65535: no prefix matches
    output logic                     error_o, // a word of the lookup had wrong parity; then `hop_o` is 65535
    output logic [TagBits-1:0]       tag_o,
    // one port (hue_sram_port) per bank
    output logic [1:0]               rd_valid_o,
    input  logic [1:0]               rd_ready_i,
    output logic [1:0][18:0]         rd_addr_o,
    output logic [1:0][StepBits-1:0] rd_tag_o,
    input  logic [1:0]               rsp_valid_i,
    input  logic [1:0][35:0]         rsp_data_i,
    input  logic [1:0][StepBits-1:0] rsp_tag_i,
    input  logic [1:0]               rsp_error_i
);
  localparam int unsigned Lanes = 3;  // one per bank, and one for new lookups
  localparam int unsigned LaneNew = 2;
  localparam logic [15:0] NoRoute = 16'hffff;

  if (Slots < 4 || (Slots & (Slots - 1)) != 0) begin : gen_check_slots
    $fatal(1, "hue_dag36_walk: Slots is %0d, a power of two from 4", Slots);
  end
  if (KeyBits % 8 != 0 || KeyBits < 16) begin : gen_check_key
    $fatal(1, "hue_dag36_walk: KeyBits is %0d, a multiple of 8 from 16", KeyBits);
  end

  // What a word is to the lookup that reads it.
  typedef enum logic [1:0] {
    PhaseFirst  = 2'd0,  // the first word of a node
    PhaseSecond = 2'd1,  // the second header word of a list, or that of a group
    PhaseItem   = 2'd2
  } phase_e;

  typedef struct packed {
    logic [SlotBits-1:0]  slot;
    logic [LevelBits-1:0] level;  // which byte of the key
    logic [1:0]           phase;  // phase_e
    logic [1:0]           header;
    logic [1:0]           items;
    logic [1:0]           place;  // of the item in its word
    logic [19:0]          base;   // of the node, or of the group in it
  } step_t;

  typedef struct packed {
    step_t       step;
    logic [19:0] addr;
  } request_t;

  typedef struct packed {
    logic [SlotBits-1:0] slot;
    logic                error;
    logic [15:0]         hop;
  } result_t;

  // ---- slots for lookups, in order
  logic [SlotBits-1:0] head_q, tail_q;
  logic [SlotBits:0] count_q;
  logic enter, leave, taken;
  assign ready_o = count_q != (SlotBits + 1)'(Slots);
  assign tight_o = count_q >= (SlotBits + 1)'(Slots - 1);
  assign taken   = valid_o && ready_i;
  assign enter   = valid_i && ready_o;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      head_q  <= '0;
      tail_q  <= '0;
      count_q <= '0;
    end else begin
      if (enter) tail_q <= tail_q + 1'b1;
      if (leave) head_q <= head_q + 1'b1;
      count_q <= count_q + (SlotBits + 1)'(enter) - (SlotBits + 1)'(taken);
    end
  end

  // A lookup's second round begins in a clock in which none enters.
  logic judged, again, begins;
  logic [SlotBits-1:0] begin_slot;
  logic [KeyBits-1:0] begin_key;
  logic [35:0] begin_item;
  assign judged_ready_o = !enter;
  assign judged         = Twice && judged_i && judged_ready_o;
  assign again          = judged && again_i;
  assign begins         = enter || again;
  assign begin_slot     = again ? judged_slot_i : tail_q;
  assign begin_key      = again ? again_key_i : key_i;
  assign slot_o         = tail_q;

  // A copy of the keys for each bank's lane.
  logic [KeyBits-1:0] even_keys_q[Slots];
  logic [KeyBits-1:0] odd_keys_q[Slots];
  logic [TagBits-1:0] tags_q[Slots];
  always_ff @(posedge clk_i) begin
    if (begins) begin
      even_keys_q[begin_slot] <= begin_key;
      odd_keys_q[begin_slot]  <= begin_key;
    end
    if (enter) tags_q[tail_q] <= tag_i;
  end

  // The key byte of a level, the highest first; 0 below the last.
  function automatic logic [7:0] byte_of(logic [KeyBits-1:0] key, logic [LevelBits:0] level);
    logic [7:0] found;
    found = '0;
    for (int unsigned i = 0; i < Depth; i++) begin
      if (level == (LevelBits + 1)'(i)) found = key[8*(Depth-1-i)+:8];
    end
    return found;
  endfunction

  // ---- lanes: word → (1) word and bytes → (2) item or address → (3) request or result
  logic     [Lanes-1:0] arrived;     // (2) holds an item, for the level of its step
  logic     [Lanes-1:0] reads;       // (2) holds an address in the same node
  logic     [Lanes-1:0] failed;      // (2) has wrong parity
  item_t    [Lanes-1:0] item;
  logic     [Lanes-1:0] below;       // the item is below the last level
  logic     [Lanes-1:0][7:0] item_byte;
  request_t [Lanes-1:0] request;
  logic     [Lanes-1:0] asks_q, ends_q;
  request_t [Lanes-1:0] ask_q;
  result_t  [Lanes-1:0] end_q;

  for (genvar bank = 0; bank < 2; bank++) begin : gen_bank
    step_t rsp_step, step_q;
    logic valid_q, error_q;
    logic [35:0] word_q;
    logic [7:0] byte_q, next_byte_q;
    logic [KeyBits-1:0] key;
    assign rsp_step = step_t'(rsp_tag_i[bank]);
    assign key      = bank == 0 ? even_keys_q[rsp_step.slot] : odd_keys_q[rsp_step.slot];
    always_ff @(posedge clk_i) begin
      if (!rst_ni) valid_q <= 1'b0;
      else valid_q <= rsp_valid_i[bank];
    end
    always_ff @(posedge clk_i) begin
      step_q      <= rsp_step;
      word_q      <= rsp_data_i[bank];
      error_q     <= rsp_error_i[bank];
      byte_q      <= byte_of(key, {1'b0, rsp_step.level});
      next_byte_q <= byte_of(key, (LevelBits + 1)'(rsp_step.level) + 1'b1);
    end

    // Decoding of the word: it holds the item, or gives the next address to read.
    logic [2:0] starts;
    logic [7:0] rank;
    logic [19:0] items_at;
    logic has_rank, has_item;
    step_t next;
    logic [19:0] next_addr;
    assign starts = starts_up_to(word_q, byte_q);
    always_comb begin
      next      = step_q;
      next_addr = '0;
      rank      = 8'(starts);
      items_at  = step_q.base + 20'd1;
      has_rank  = 1'b1;
      has_item  = step_q.phase == PhaseItem;
      if (step_q.phase == PhaseFirst) begin
        has_item = step_q.items == ItemsWide;
        case (step_q.header)
          HeaderList2: begin
            items_at = step_q.base + 20'd2;
            // The fifth run or a later one: the other header word says which.
            has_rank = !starts[2];
            next_addr = step_q.base + 20'd1;
          end
          HeaderPivots: begin
            has_rank = 1'b0;
`ifdef HUE_PLANT_DAG36_PIVOT
            case (2'd0)
`else
            case (step_q.items)
`endif
              ItemsByte: next_addr = step_q.base + 20'd1 + 20'({starts, 1'b0});
              ItemsHalf: next_addr = step_q.base + 20'd1 + 20'({starts, 1'b0}) + 20'(starts);
              default:   next_addr = step_q.base + 20'd1 + 20'({starts, 2'b0}) + 20'(starts);
            endcase
            next.base = next_addr;
          end
          HeaderMap: begin
            rank     = map_rank(map_before(word_q), map_ones(word_q, map_up_to(map_place(byte_q, map_word(byte_q)))));
            items_at = step_q.base + 20'(MapWords);
          end
          default: ;
        endcase
      end else if (step_q.header == HeaderList2) begin
        rank     = 8'd4 + 8'(starts);
        items_at = step_q.base + 20'd2;
      end
      next.phase = PhaseSecond;
      if (has_rank) begin
        next.phase = PhaseItem;
        next.place = rank[1:0];
        next_addr  = items_at + 20'(item_offset(step_q.items, rank));
      end
    end

    logic arrived_q, reads_q, failed_q, below_q;
    item_t item_q;
    logic [7:0] item_byte_q;
    request_t request_q;
    always_ff @(posedge clk_i) begin
      if (!rst_ni) {arrived_q, reads_q, failed_q} <= '0;
      else begin
        arrived_q <= valid_q && !error_q && has_item;
        reads_q   <= valid_q && !error_q && !has_item;
        failed_q  <= valid_q && error_q;
      end
    end
    always_ff @(posedge clk_i) begin
      item_q         <= item_of(word_q, step_q.phase == PhaseItem ? step_q.items : ItemsWhole, step_q.place);
      item_byte_q    <= next_byte_q;
`ifdef HUE_PLANT_DAG36_BELOW
      below_q        <= step_q.level == LevelBits'(Depth - 2);  // for scripts/rtl-test and scripts/formal
`else
      below_q        <= step_q.level == LevelBits'(Depth - 1);
`endif
      request_q      <= '{step: next, addr: next_addr};
`ifdef HUE_PLANT_DAG36_LEVEL
      if (has_item) request_q.step.level <= (step_q.level + 1'b1) & LevelBits'(7);  // likewise
`else
      if (has_item) request_q.step.level <= step_q.level + 1'b1;
`endif
    end
    assign arrived[bank]   = arrived_q;
    assign reads[bank]     = reads_q;
    assign failed[bank]    = failed_q;
    assign below[bank]     = below_q;
    assign item[bank]      = item_q;
    assign item_byte[bank] = item_byte_q;
    assign request[bank]   = request_q;
  end

  // New lookups enter with their root item.
  logic new_q;
  item_t new_item_q;
  logic [7:0] new_byte_q;
  logic [SlotBits-1:0] new_slot_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) new_q <= 1'b0;
    else new_q <= begins;
    new_item_q <= item_t'(begin_item);
    new_byte_q <= begin_key[KeyBits-1-:8];
    new_slot_q <= begin_slot;
  end
  assign arrived[LaneNew]   = new_q;
  assign reads[LaneNew]     = 1'b0;
  assign failed[LaneNew]    = 1'b0;
  assign below[LaneNew]     = 1'b0;
  assign item[LaneNew]      = new_item_q;
  assign item_byte[LaneNew] = new_byte_q;
  always_comb begin
    request[LaneNew] = '0;
    request[LaneNew].step.slot = new_slot_q;
  end

  // An item is the result, or leads to a read of the next node's first word.
  for (genvar lane = 0; lane < Lanes; lane++) begin : gen_lane
    always_ff @(posedge clk_i) begin
      if (!rst_ni) {asks_q[lane], ends_q[lane]} <= '0;
      else begin
        asks_q[lane] <= reads[lane] || (arrived[lane] && item[lane].node && !below[lane]);
        ends_q[lane] <= failed[lane] || (arrived[lane] && (!item[lane].node || below[lane]));
      end
    end
    always_ff @(posedge clk_i) begin
      ask_q[lane] <= request[lane];
      if (arrived[lane]) begin
        ask_q[lane].step.phase  <= PhaseFirst;
        ask_q[lane].step.header <= item[lane].header;
        ask_q[lane].step.items  <= item[lane].items;
        ask_q[lane].step.base   <= item[lane].addr;
        ask_q[lane].addr        <= item[lane].addr + 20'(first_offset(item[lane], item_byte[lane]));
      end
      end_q[lane].slot  <= request[lane].step.slot;
      end_q[lane].error <= failed[lane];
      end_q[lane].hop   <= failed[lane] || item[lane].node ? NoRoute : {item[lane].addr[15:0]};
    end
  end

  // ---- requests wait for their bank, in one FIFO per lane: never more than there are lookups
  logic [1:0][Lanes-1:0] waits, goes;
  request_t [1:0][Lanes-1:0] waiting;
  logic turn_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) turn_q <= 1'b0;
    else turn_q <= !turn_q;
  end
  for (genvar bank = 0; bank < 2; bank++) begin : gen_requests
    for (genvar lane = 0; lane < Lanes; lane++) begin : gen_fifo
      logic room;
      logic [$clog2(Slots+1)-1:0] unused_room;
      hue_fifo #(.Depth(Slots), .Bits($bits(request_t))) u_fifo (
        .clk_i, .rst_ni, .valid_i(asks_q[lane] && ask_q[lane].addr[0] == 1'(bank)), .ready_o(room),
        .data_i(ask_q[lane]), .valid_o(waits[bank][lane]), .ready_i(goes[bank][lane]), .data_o(waiting[bank][lane]),
        .room_o(unused_room)
      );
`ifndef SYNTHESIS
      a_room: assert property (@(posedge clk_i) disable iff (!rst_ni) asks_q[lane] |-> room);
`else
      logic unused_ready;
      assign unused_ready = room;
`endif
    end
    // The banks' lanes take turns to go first; new lookups come last.
    logic [1:0] chosen;
    assign chosen = waits[bank][turn_q] ? {1'b0, turn_q} :
                    waits[bank][!turn_q] ? {1'b0, !turn_q} : 2'(LaneNew);
    assign rd_valid_o[bank] = waits[bank] != '0;
    assign rd_addr_o[bank]  = waiting[bank][chosen].addr[19:1];
    assign rd_tag_o[bank]   = waiting[bank][chosen].step;
    for (genvar lane = 0; lane < Lanes; lane++) begin : gen_go
      assign goes[bank][lane] = rd_ready_i[bank] && chosen == 2'(lane);
    end
  end

  // ---- results wait for their turn: one memory per lane, and which lane wrote
  logic [Slots-1:0] done_q, by_new_q, by_odd_q, error_q;
  logic [15:0] hops_even_q[Slots], hops_odd_q[Slots], hops_new_q[Slots];
  always_ff @(posedge clk_i) begin
    if (ends_q[0]) hops_even_q[end_q[0].slot] <= end_q[0].hop;
    if (ends_q[1]) hops_odd_q[end_q[1].slot] <= end_q[1].hop;
    if (ends_q[2]) hops_new_q[end_q[2].slot] <= end_q[2].hop;
    for (int unsigned lane = 0; lane < Lanes; lane++) begin
      if (ends_q[lane]) begin
        by_odd_q[end_q[lane].slot] <= lane == 1;
        by_new_q[end_q[lane].slot] <= lane == LaneNew;
        error_q[end_q[lane].slot]  <= end_q[lane].error;
      end
    end
  end
  logic [Slots-1:0] held_q;  // the lookup's first answer is held; in its second round, or without one, it is not
  always_ff @(posedge clk_i) begin
    if (!rst_ni) done_q <= '0;
    else begin
      for (int unsigned lane = 0; lane < Lanes; lane++) begin
        if (ends_q[lane] && !held_q[end_q[lane].slot]) done_q[end_q[lane].slot] <= 1'b1;
      end
      if (judged && !again_i) done_q[judged_slot_i] <= 1'b1;
      if (leave) done_q[head_q] <= 1'b0;
    end
  end
  function automatic logic [15:0] hop_of(logic [SlotBits-1:0] slot);
    return by_new_q[slot] ? hops_new_q[slot] : by_odd_q[slot] ? hops_odd_q[slot] : hops_even_q[slot];
  endfunction
  if (Twice) begin : gen_twice
    logic [Slots-1:0] ended_q;
    logic [35:0] roots_q[Slots];
    always_ff @(posedge clk_i) begin
      if (!rst_ni) {held_q, ended_q} <= '0;
      else begin
        for (int unsigned lane = 0; lane < Lanes; lane++) begin
          if (ends_q[lane] && held_q[end_q[lane].slot]) ended_q[end_q[lane].slot] <= 1'b1;
        end
        if (enter) held_q[tail_q] <= holds_i;
        if (judged) begin
          held_q[judged_slot_i]  <= 1'b0;
          ended_q[judged_slot_i] <= 1'b0;
        end
      end
    end
    always_ff @(posedge clk_i) if (enter) roots_q[tail_q] <= item_i;
`ifdef HUE_PLANT_DAG36_ROOT
    assign begin_item  = again ? roots_q[tail_q] : item_i;  // for scripts/rtl-test and scripts/formal
`else
    assign begin_item  = again ? roots_q[judged_slot_i] : item_i;
`endif
    assign ask_ended_o = ended_q[ask_slot_i];
    assign ask_error_o = error_q[ask_slot_i];
    assign ask_hop_o   = hop_of(ask_slot_i);
`ifndef SYNTHESIS
    a_judged: assert property (@(posedge clk_i) disable iff (!rst_ni) judged |-> ended_q[judged_slot_i]);
`endif
  end else begin : gen_once_only
    logic unused_twice;
    assign unused_twice = &{1'b0, holds_i, ask_slot_i};
    assign held_q       = '0;
    assign begin_item   = item_i;
    assign ask_ended_o  = 1'b0;
    assign ask_error_o  = 1'b0;
    assign ask_hop_o    = '0;
  end

  assign leave = done_q[head_q] && (!valid_o || ready_i);
  always_ff @(posedge clk_i) begin
    if (!rst_ni) valid_o <= 1'b0;
    else if (!valid_o || ready_i) valid_o <= leave;
  end
  always_ff @(posedge clk_i) begin
    if (leave) begin
      hop_o   <= hop_of(head_q);
      error_o <= error_q[head_q];
      tag_o   <= tags_q[head_q];
    end
  end

`ifndef SYNTHESIS
  // A lookup ends only once, and only while it is in flight.
  for (genvar lane = 0; lane < Lanes; lane++) begin : gen_once
    a_once: assert property (@(posedge clk_i) disable iff (!rst_ni) ends_q[lane] |-> !done_q[end_q[lane].slot]);
  end
  a_stable: assert property (@(posedge clk_i) disable iff (!rst_ni)
    (valid_o && !ready_i) |=> (valid_o && $stable({hop_o, error_o, tag_o})));
`endif
endmodule
