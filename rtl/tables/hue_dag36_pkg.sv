// Decodes the words of `dag36` (bit by bit: crates/tables/src/dag36/words.rs): a node's form, a slot's run, a run's item.
//
// Place: hue_dag36_level (one memory per level) and hue_dag36_walk (one memory). Pure functions.
/* verilator lint_off UNUSEDPARAM */
/* verilator lint_off UNUSEDSIGNAL */  // each function uses only the fields that it needs
package hue_dag36_pkg;

  localparam int unsigned MapWords = 10;
  localparam int unsigned MapSlots = 27;
  localparam int unsigned GroupRuns = 4;

  typedef struct packed {
    logic        parity;  // of a word; unused in a root item
    logic        node;    // 1: the rest refers to a node; 0: it is a next-hop word
    logic [1:0]  header;
    logic [1:0]  items;
    logic [9:0]  unused;
    logic [19:0] addr;
  } item_t;

  localparam logic [1:0] HeaderList1  = 2'd0;
  localparam logic [1:0] HeaderList2  = 2'd1;
  localparam logic [1:0] HeaderPivots = 2'd2;
  localparam logic [1:0] HeaderMap    = 2'd3;

  localparam logic [1:0] ItemsByte  = 2'd0;  // four per word
  localparam logic [1:0] ItemsHalf  = 2'd1;  // two per word
  localparam logic [1:0] ItemsWhole = 2'd2;  // one per word
  localparam logic [1:0] ItemsWide  = 2'd3;  // no header, one item per slot

  // Which of the ten words of a map covers a slot.
  function automatic logic [3:0] map_word(logic [7:0] slot);
    logic [3:0] word;
    word = '0;
    for (int unsigned i = 1; i < MapWords; i++) begin
      if (slot >= 8'(MapSlots * i)) word = 4'(i);
    end
    return word;
  endfunction

  // The slot's position in that word, and the bits of the word at or before it.
  function automatic logic [4:0] map_place(logic [7:0] slot, logic [3:0] word);
    return 5'(slot - 8'(MapSlots) * 8'(word));
  endfunction

  function automatic logic [26:0] map_up_to(logic [4:0] place);
    return ~(27'h7fffffe << place);
  endfunction

  // Offset of a slot's first word from the node's address.
  function automatic logic [7:0] first_offset(item_t item, logic [7:0] slot);
    if (item.items == ItemsWide) return slot;
    return item.header == HeaderMap ? 8'(map_word(slot)) : 8'd0;
  endfunction

  // How many of a header word's four starts are at or before the slot; a start of 0 does not count.
  function automatic logic [2:0] starts_up_to(logic [35:0] word, logic [7:0] slot);
    logic [2:0] count;
    count = '0;
    for (int unsigned i = 0; i < 4; i++) begin
      if (word[8*i+:8] != '0 && word[8*i+:8] <= slot) count++;
    end
    return count;
  endfunction

  // The run of a slot, from the map word that covers it: the runs that begin before the word, plus those that begin in it at
  // or before the slot, counted in thirds so that a register fits between.
  function automatic logic [7:0] map_before(logic [35:0] word);
    return word[34:27];
  endfunction

  function automatic logic [2:0][3:0] map_ones(logic [35:0] word, logic [26:0] up_to);
    logic [2:0][3:0] ones;
    ones = '0;
    for (int unsigned third = 0; third < 3; third++) begin
      for (int unsigned i = 0; i < 9; i++) ones[third] += 4'(word[9*third+i] && up_to[9*third+i]);
    end
    return ones;
  endfunction

  function automatic logic [7:0] map_rank(logic [7:0] earlier, logic [2:0][3:0] ones);
`ifdef HUE_PLANT_DAG36_MAP
    return 8'(ones[0]) + 8'(ones[1]) + 8'(ones[2]) - 8'd1;
`else
    return earlier + 8'(ones[0]) + 8'(ones[1]) + 8'(ones[2]) - 8'd1;
`endif
  endfunction

  // Number of words before the one that holds the item of run `rank`.
  function automatic logic [7:0] item_offset(logic [1:0] items, logic [7:0] rank);
    case (items)
      ItemsByte: return {2'd0, rank[7:2]};
      ItemsHalf: return {1'b0, rank[7:1]};
      default:   return rank;
    endcase
  endfunction

  // The item of a run in its word; `place` is the low bits of the run's number.
  function automatic item_t item_of(logic [35:0] word, logic [1:0] items, logic [1:0] place);
    logic [7:0] hop;
    hop = word[8*place+:8];
    case (items)
      ItemsByte: return item_t'({20'd0, hop == 8'hff ? 8'hff : 8'h00, hop});
      ItemsHalf: return item_t'({20'd0, place[0] ? word[31:16] : word[15:0]});
      default:   return item_t'({1'b0, word[34:0]});
    endcase
  endfunction

endpackage
/* verilator lint_on UNUSEDSIGNAL */
/* verilator lint_on UNUSEDPARAM */
