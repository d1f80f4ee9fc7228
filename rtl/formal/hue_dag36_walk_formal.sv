// Proof harness of hue_dag36_walk: a lookup reads exactly the words that follow from its root, its key and the words read before, and
// its answer is that of the last word, whatever other lookups are inside.
//
// Place: scripts/formal. Inputs are free: other lookups, the banks' answers, and when the banks take requests. `mark_i` picks any
// one lookup. With `Twice`, answers are held and judged at any time: the marked lookup then begins again with another key. The harness makes the same walk, one word at a time, as in crates/tables/src/dag36/words.rs; both sides compute
// positions inside a word with hue_dag36_pkg. The driver keeps the words below a root unchanged until the lookups with this root have
// left (crates/tables/src/dag36_levels.rs). Together these two properties mean that a lookup sees one table.
module hue_dag36_walk_formal
  import hue_dag36_pkg::*;
#(
    parameter int unsigned Slots      = 4,
    parameter int unsigned KeyBits    = 16,
    parameter int unsigned RspLatency = 1,
    parameter bit          Twice      = 1'b0,
    localparam int unsigned Depth     = KeyBits / 8,
    localparam int unsigned SlotBits  = $clog2(Slots),
    localparam int unsigned LevelBits = $clog2(Depth),
    localparam int unsigned AtBits    = $clog2(Depth + 1),  // of a level, or of the one below the last
    localparam int unsigned StepBits  = SlotBits + LevelBits + 2 + 2 + 2 + 2 + 20
) (
    input logic               clk_i,
    input logic               rst_ni,
    input logic               valid_i,
    input logic [35:0]        item_i,
    input logic [KeyBits-1:0] key_i,
    input logic               tag_i,
    input logic               ready_i,
    input logic [1:0]         rd_ready_i,
    input logic [1:0][35:0]   rsp_data_i,
    input logic [1:0]         rsp_error_i,
    input logic               mark_i,
    input logic                holds_i,
    input logic [SlotBits-1:0] ask_slot_i,
    input logic                judged_i,
    input logic [SlotBits-1:0] judged_slot_i,
    input logic                again_i,
    input logic [KeyBits-1:0]  again_key_i
);
  logic [SlotBits-1:0]      slot_o;
  logic                     ask_ended_o, ask_error_o, judged_ready_o;
  logic [15:0]              ask_hop_o;
  logic                     ready_o, tight_o, valid_o, error_o, tag_o;
  logic [15:0]              hop_o;
  logic [1:0]               rd_valid_o;
  logic [1:0][18:0]         rd_addr_o;
  logic [1:0][StepBits-1:0] rd_tag_o, rsp_tag_i;
  logic [1:0]               rsp_valid_i;
  hue_dag36_walk #(.Slots(Slots), .KeyBits(KeyBits), .TagBits(1), .Twice(Twice)) u_dut (.*);

  // Banks: they answer accepted requests in order, with any words, `RspLatency` clocks later.
  logic [1:0][RspLatency-1:0] asked_q;
  logic [1:0][RspLatency-1:0][StepBits-1:0] tags_q;
  always_ff @(posedge clk_i) begin
    for (int unsigned b = 0; b < 2; b++) begin
      asked_q[b] <= rst_ni ? RspLatency'({asked_q[b], rd_valid_o[b] && rd_ready_i[b]}) : '0;
      tags_q[b]  <= (RspLatency * StepBits)'({tags_q[b], rd_tag_o[b]});
    end
  end
  for (genvar b = 0; b < 2; b++) begin : gen_answer
    assign rsp_valid_i[b] = asked_q[b][RspLatency-1];
    assign rsp_tag_i[b]   = tags_q[b][RspLatency-1];
  end

  // ---- the marked lookup
  typedef enum logic [1:0] {First, Second, Item} phase_e;
  typedef struct packed {
    logic        ended;
    logic        error;
    logic [15:0] hop;
    logic [1:0]  phase;
    logic [AtBits-1:0] level;
    item_t       node;
    logic [19:0] base;   // address of the node, or of the group in it
    logic [1:0]  place;
    logic [19:0] addr;   // address of the next word to read
  } walk_t;

  function automatic walk_t arrive(item_t item, logic [AtBits-1:0] level, logic [KeyBits-1:0] key);
    walk_t w;
    w = '0;
    w.level = level;
    w.node  = item;
    w.base  = item.addr;
    w.phase = First;
    w.ended = !item.node || 32'(level) == Depth;
    w.hop   = item.node ? 16'hffff : item.addr[15:0];
    w.addr  = item.addr + 20'(first_offset(item, byte_at(key, level)));
    return w;
  endfunction

  function automatic logic [7:0] byte_at(logic [KeyBits-1:0] key, logic [AtBits-1:0] level);
    logic [7:0] found;
    found = '0;
    for (int unsigned i = 0; i < Depth; i++) if (level == AtBits'(i)) found = key[8*(Depth-1-i)+:8];
    return found;
  endfunction

  // Reads the item of run `run`, in the items of a node that begin at `items_at`.
  function automatic walk_t ask_item(walk_t was, logic [19:0] items_at, logic [7:0] run);
    walk_t w;
    w = was;
    w.phase = Item;
    w.place = run[1:0];
    w.addr  = items_at + 20'(item_offset(was.node.items, run));
    return w;
  endfunction

  function automatic walk_t read(walk_t was, logic [35:0] word, logic [KeyBits-1:0] key);
    walk_t w;
    logic [7:0] slot;
    logic [2:0] starts;
    w = was;
    slot = byte_at(key, was.level);
    starts = starts_up_to(word, slot);
    case (was.phase)
      First: begin
        if (was.node.items == ItemsWide) begin
          w = arrive(item_of(word, ItemsWhole, '0), was.level + AtBits'(1), key);
        end else if (was.node.header == HeaderList1) begin
          w = ask_item(was, was.base + 20'd1, 8'(starts));
        end else if (was.node.header == HeaderMap) begin
          w = ask_item(was, was.base + 20'(MapWords),
                       map_rank(map_before(word), map_ones(word, map_up_to(map_place(slot, map_word(slot))))));
        end else if (was.node.header == HeaderList2 && starts != 3'd4) begin
          w = ask_item(was, was.base + 20'd2, 8'(starts));
        end else if (was.node.header == HeaderList2) begin
          w.phase = Second;
          w.addr  = was.base + 20'd1;
        end else begin
          // Groups: each is a header word and the items of five runs.
          case (was.node.items)
            ItemsByte: w.base = was.base + 20'd1 + 20'({starts, 1'b0});
            ItemsHalf: w.base = was.base + 20'd1 + 20'({starts, 1'b0}) + 20'(starts);
            default:   w.base = was.base + 20'd1 + 20'({starts, 2'b0}) + 20'(starts);
          endcase
          w.phase = Second;
          w.addr  = w.base;
        end
      end
      Second: begin
        if (was.node.header == HeaderList2) w = ask_item(was, was.base + 20'd2, 8'd4 + 8'(starts));
        else w = ask_item(was, was.base + 20'd1, 8'(starts));
      end
      default: w = arrive(item_of(word, was.node.items, was.place), was.level + AtBits'(1), key);
    endcase
    return w;
  endfunction

  logic                begun_q, inside_q, asked, waits_q, tag_q, enter, taken, mine_out;
  logic [1:0]          asks, answers;
  logic [SlotBits-1:0] slot_q;
  logic [SlotBits:0]   ahead_q;  // answers that leave before that of the marked lookup
  logic [KeyBits-1:0]  key_q;
  walk_t               walk_q;
  // Twice: the marked lookup's answer is held, its root, and whether it is judged.
  logic                held_q, judged_mine;
  logic [35:0]         root_q;
  assign judged_mine = Twice && inside_q && judged_i && judged_ready_o && judged_slot_i == slot_q;
  if (Twice) begin : gen_twice
    always_comb begin
      // Only a lookup whose first answer is there is judged.
      if (begun_q && rst_ni && judged_i) assume (u_dut.gen_twice.ended_q[judged_slot_i]);
      if (begun_q && rst_ni && inside_q && u_dut.gen_twice.ended_q[slot_q]) begin
        assert (held_q && walk_q.ended && !waits_q);
        if (ask_slot_i == slot_q) assert (ask_ended_o && ask_hop_o == walk_q.hop && ask_error_o == walk_q.error);
      end
      if (begun_q && rst_ni && mine_out) assert (!held_q);
    end
  end
  assign enter = valid_i && ready_o;
  assign taken = valid_o && ready_i;
  assign mine_out = inside_q && valid_o && ahead_q == '0;
  always_comb begin
    for (int unsigned b = 0; b < 2; b++) begin
      asks[b]    = inside_q && rd_valid_o[b] && rd_tag_o[b][StepBits-1-:SlotBits] == slot_q;
      answers[b] = inside_q && rsp_valid_i[b] && rsp_tag_i[b][StepBits-1-:SlotBits] == slot_q;
    end
    asked = (asks & rd_ready_i) != '0;
  end

  // One clock after the answer, the lane holds the word and the step that it was read for. Both must equal the harness's, which then
  // continues from the lane's values, so that the solver compares functions of the same arguments.
  logic [35:0] word_q;
  logic        error_q;
  logic [1:0]  looks;
  logic [1:0][35:0] word_of;
  walk_t [1:0] looks_walk;
  for (genvar b = 0; b < 2; b++) begin : gen_look
    always_comb begin
      looks[b] = inside_q && u_dut.gen_bank[b].valid_q && u_dut.gen_bank[b].step_q.slot == slot_q;
      word_of[b] = u_dut.gen_bank[b].word_q;
      looks_walk[b] = walk_q;
      looks_walk[b].base  = u_dut.gen_bank[b].step_q.base;
      looks_walk[b].place = u_dut.gen_bank[b].step_q.place;
      looks_walk[b].phase = u_dut.gen_bank[b].step_q.phase;
      looks_walk[b].level = AtBits'(u_dut.gen_bank[b].step_q.level);
      looks_walk[b].node.header = u_dut.gen_bank[b].step_q.header;
      looks_walk[b].node.items  = u_dut.gen_bank[b].step_q.items;
      if (begun_q && rst_ni && looks[b]) begin
        assert (word_of[b] == word_q && u_dut.gen_bank[b].error_q == error_q);
        assert (looks_walk[b].base == walk_q.base || walk_q.phase == Item);
        assert (looks_walk[b].place == walk_q.place || walk_q.phase != Item);
        assert (looks_walk[b].phase == walk_q.phase && looks_walk[b].level == walk_q.level);
        assert (looks_walk[b].node.header == walk_q.node.header && looks_walk[b].node.items == walk_q.node.items);
        assert (u_dut.gen_bank[b].byte_q == byte_at(key_q, walk_q.level));
        assert (32'(walk_q.level) + 1 == Depth || u_dut.gen_bank[b].next_byte_q == byte_at(key_q, walk_q.level + AtBits'(1)));
      end
    end
  end

  initial begun_q = 1'b0;
  always_ff @(posedge clk_i) begin
    begun_q <= 1'b1;
    if (!rst_ni) begin
      inside_q <= 1'b0;
      waits_q  <= 1'b0;
    end else if (!inside_q) begin
      if (mark_i && enter) begin
        inside_q <= 1'b1;
        waits_q  <= 1'b0;
        slot_q   <= u_dut.tail_q;
        ahead_q  <= u_dut.count_q - (SlotBits + 1)'(taken);
        key_q    <= key_i;
        tag_q    <= tag_i;
        walk_q   <= arrive(item_t'(item_i), '0, key_i);
        held_q   <= Twice && holds_i;
        root_q   <= item_i;
      end
    end else begin
      if (taken) ahead_q <= ahead_q - 1'b1;
      if (taken && ahead_q == '0) inside_q <= 1'b0;
      if (asked) waits_q <= 1'b1;
      for (int unsigned b = 0; b < 2; b++) begin
        if (answers[b]) begin
          waits_q <= 1'b0;
          word_q  <= rsp_data_i[b];
          error_q <= rsp_error_i[b];
        end
        if (looks[b]) begin
          walk_q <= read(looks_walk[b], word_of[b], key_q);
          if (error_q) begin
            walk_q.ended <= 1'b1;
            walk_q.error <= 1'b1;
            walk_q.hop   <= 16'hffff;
          end
        end
      end
      if (judged_mine) begin
        held_q <= 1'b0;
        if (again_i) begin
          key_q  <= again_key_i;
          walk_q <= arrive(item_t'(root_q), '0, again_key_i);
        end
      end
    end
  end

  always_comb begin
    if (!begun_q) assume (!rst_ni);
    if (begun_q && rst_ni) begin
      // The lookup reads the expected word, once.
      assert (asks != 2'b11);
      for (int unsigned b = 0; b < 2; b++) begin
        if (asks[b]) begin
          assert (!waits_q && !walk_q.ended && {rd_addr_o[b], 1'(b)} == walk_q.addr);
          assert (rd_tag_o[b][StepBits-1-SlotBits-:LevelBits] == LevelBits'(walk_q.level));
        end
        if (answers[b]) assert (waits_q);
      end
      // It answers after it has ended, in its turn, with its result.
      if (mine_out) begin
        assert (walk_q.ended && !waits_q);
        assert (hop_o == walk_q.hop && error_o == walk_q.error && tag_o == tag_q);
      end
    end
  end
endmodule
