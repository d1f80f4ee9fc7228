// One level of the on-chip `dag36` walk: takes an item and a key byte, returns the item that the byte leads to.
//
// Place: hue_dag36 chains four of them; each has its own memory, shared by all networks. The words are described bit by bit
// in crates/tables/src/dag36/words.rs (pivots do not occur here); addresses in items of level l refer to level l's memory.
// Even and odd words are in separate banks, so that both header words of a list are read in one access; each bank has a port
// for headers and one for items, so that a lookup can enter every clock. The host takes the header port for a clock or two.
//
// Each stage moves only when a lookup comes to it: without lookups, no register or memory switches.
//
// Latency: 11 clocks in which `en_i` is 1. Throughput: one lookup a clock. Nothing moves while `en_i` is 0.
// A leaf item passes unchanged. An address beyond the memory wraps: a wrong table gives a wrong next-hop index, which the
// next-hop table bounds to its own network, but never a hang.
module hue_dag36_level
  import hue_dag36_pkg::*;
#(
    parameter int unsigned Words = 2048  // even, at least 4
) (
    input  logic               clk_i,
    input  logic               rst_ni,
    input  logic               en_i,
    input  logic               valid_i,
    input  logic [35:0]        item_i,
    input  logic [7:0]         slot_i,
    output logic               valid_o,
    output logic [35:0]        item_o,
    output logic               error_o,      // with `valid_o`: a word of the lookup had wrong parity; then `item_o` is "no route"
    // host: `en_i` is 0 in the clock of `host_en_i` and, after a read, of `host_back_i`; `host_data_o` is valid one clock later
    input  logic               host_en_i,
    input  logic               host_write_i,
    input  logic               host_back_i,
    /* verilator lint_off UNUSEDSIGNAL */
    input  logic [23:0]        host_index_i,  // below `Words`
    /* verilator lint_on UNUSEDSIGNAL */
    input  logic [35:0]        host_data_i,
    output logic [35:0]        host_data_o
);
  localparam int unsigned BankWords = Words / 2;
  localparam int unsigned BankBits = $clog2(BankWords);
  localparam int unsigned AddrBits = BankBits + 1;

  if (Words < 4 || Words % 2 != 0 || Words > 1 << 20) begin : gen_check
    $fatal(1, "hue_dag36_level: Words is %0d, an even number of 4 to 2^20", Words);
  end

  // ---- 0: the header's offset from the node
  typedef struct packed {
    item_t       item;
    logic [7:0]  slot;
    logic        odd;    // the first header word is in the odd bank
  } lookup_t;

  localparam int unsigned Latency = 11;
  logic [Latency-2:0] valid_q;
  logic [Latency-1:0] moves;  // by stage: a lookup enters it in this clock
  assign moves = en_i ? {valid_q, valid_i} : '0;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) {valid_o, valid_q} <= '0;
    else if (en_i) {valid_o, valid_q} <= {valid_q, valid_i};
  end

  // ---- 1: the header's address; then, in parallel with the read, what a map needs of the slot
  item_t item_q;
  logic [7:0] slot_q, offset_q;
  logic [3:0] map_word_q;
  logic [4:0] s0_place_q;
  logic [26:0] s1_up_to_q, s2_up_to_q, s3_up_to_q;  // the bits of a map word at or before the slot
  logic [AddrBits-1:0] header_addr_d;
  assign header_addr_d = AddrBits'(item_q.addr + 20'(offset_q));

  lookup_t s0_q, s1_q, s2_q;
  item_t s3_item_q;
  logic [7:0] s3_slot_q;
  logic [BankBits-1:0] even_addr_q, odd_addr_q;
  always_ff @(posedge clk_i) begin
    if (moves[0]) begin
      item_q      <= item_t'(item_i);
      slot_q      <= slot_i;
      offset_q    <= first_offset(item_t'(item_i), slot_i);
      map_word_q  <= map_word(slot_i);
    end
    if (moves[1]) begin
      s0_q        <= '{item: item_q, slot: slot_q, odd: header_addr_d[0]};
      s0_place_q  <= map_place(slot_q, map_word_q);
      even_addr_q <= BankBits'((header_addr_d + 1'b1) >> 1);
      odd_addr_q  <= header_addr_d[AddrBits-1:1];
    end
    if (moves[2]) begin
      s1_q        <= s0_q;
      s1_up_to_q  <= map_up_to(s0_place_q);
    end
    if (moves[3]) begin
      s2_q        <= s1_q;
      s2_up_to_q  <= s1_up_to_q;
    end
    if (moves[4]) begin
      s3_item_q   <= s2_q.item;
      s3_slot_q   <= s2_q.slot;
      s3_up_to_q  <= s2_up_to_q;
    end
  end

  // ---- 2, 3: the header is read from its memory, then registered
  logic [35:0] even_header, odd_header, even_item, odd_item, even_header_q, odd_header_q, even_item_q, odd_item_q;
  logic [35:0] even_host_q, odd_host_q;
  logic [BankBits-1:0] item_bank_addr_q;
  hue_dag36_bank #(.Words(BankWords)) u_even (
    .clk_i, .host_en_i(host_en_i && !host_index_i[0]), .host_write_i,
    .host_addr_i(host_index_i[BankBits:1]), .host_data_i, .back_i(host_back_i && !host_index_i[0]),
    .header_en_i(moves[2]), .item_en_i(moves[8]), .header_addr_i(even_addr_q), .header_o(even_header), .item_addr_i(item_bank_addr_q), .item_o(even_item)
  );
  hue_dag36_bank #(.Words(BankWords)) u_odd (
    .clk_i, .host_en_i(host_en_i && host_index_i[0]), .host_write_i,
    .host_addr_i(host_index_i[BankBits:1]), .host_data_i, .back_i(host_back_i && host_index_i[0]),
    .header_en_i(moves[2]), .item_en_i(moves[8]), .header_addr_i(odd_addr_q), .header_o(odd_header), .item_addr_i(item_bank_addr_q), .item_o(odd_item)
  );
  always_ff @(posedge clk_i) begin
    if (moves[3]) begin
      even_header_q <= even_header;
      odd_header_q  <= odd_header;
    end
    if (moves[9]) begin
      even_item_q   <= even_item;
      odd_item_q    <= odd_item;
    end
    {even_host_q, odd_host_q} <= {even_header, odd_header};
  end
  assign host_data_o = host_index_i[0] ? odd_host_q : even_host_q;

  // ---- 4: which words are the header, and whether their parity is right
  logic [35:0] first_q, second_q;
  // ---- 5: the runs that begin at or before the slot: in a map, in the first header word, in the second
  logic [2:0][3:0] map_ones_q;
  logic [7:0] map_before_q;
  logic [2:0] starts_q, more_starts_q;
  item_t s4_item_q, s5_item_q, s6_item_q, s7_item_q, s8_item_q;
  logic [35:0] s4_first_q, s5_first_q;
  logic s4_bad_q, s5_bad_q, s6_bad_q, s7_bad_q, s8_bad_q, bad;
  always_ff @(posedge clk_i) begin
    if (moves[4]) begin
      first_q  <= s2_q.odd ? odd_header_q : even_header_q;
      second_q <= s2_q.odd ? even_header_q : odd_header_q;
    end
    if (moves[5]) begin
      s4_item_q     <= s3_item_q;
      s4_first_q    <= first_q;
      s4_bad_q      <= s3_item_q.node && (^first_q || (s3_item_q.header == HeaderList2 && ^second_q));
      map_ones_q    <= map_ones(first_q, s3_up_to_q);
      map_before_q  <= map_before(first_q);
      starts_q      <= starts_up_to(first_q, s3_slot_q);
      more_starts_q <= s3_item_q.header == HeaderList2 ? starts_up_to(second_q, s3_slot_q) : '0;
    end
  end

  // ---- 6: the slot's run
  logic [7:0] s5_rank_q;
  always_ff @(posedge clk_i) begin
    if (moves[6]) begin
      s5_item_q  <= s4_item_q;
      s5_first_q <= s4_first_q;
      s5_bad_q   <= s4_bad_q;
      s5_rank_q  <= s4_item_q.header == HeaderMap ? map_rank(map_before_q, map_ones_q) :
                    8'(starts_q) + 8'(more_starts_q);
    end
  end

  // ---- 7: the item's address
  logic [AddrBits-1:0] item_addr_d;
  logic [3:0] headers;
  always_comb begin
    headers = 4'd1;
    if (s5_item_q.header == HeaderMap) headers = 4'(MapWords);
    else if (s5_item_q.header == HeaderList2) headers = 4'd2;
    item_addr_d = AddrBits'(s5_item_q.addr + 20'(headers) + 20'(item_offset(s5_item_q.items, s5_rank_q)));
  end

  // ---- 8, 9: the item is read from its memory, then registered. A leaf, or the item of a wide node, is known before.
  logic s6_known_q, s7_known_q, s8_known_q, s6_odd_q, s7_odd_q, s8_odd_q;
  logic [1:0] s6_place_q, s7_place_q, s8_place_q;
  always_ff @(posedge clk_i) begin
    if (moves[7]) begin
      s6_item_q        <= s5_item_q.node && s5_item_q.items == ItemsWide ? item_t'(s5_first_q) : s5_item_q;
      s6_known_q       <= !s5_item_q.node || s5_item_q.items == ItemsWide;
      s6_place_q       <= s5_rank_q[1:0];
      s6_odd_q         <= item_addr_d[0];
      s6_bad_q         <= s5_bad_q;
      item_bank_addr_q <= item_addr_d[AddrBits-1:1];
    end
    if (moves[8]) begin
      {s7_item_q, s7_known_q, s7_place_q, s7_odd_q, s7_bad_q} <= {s6_item_q, s6_known_q, s6_place_q, s6_odd_q, s6_bad_q};
    end
    if (moves[9]) begin
      {s8_item_q, s8_known_q, s8_place_q, s8_odd_q, s8_bad_q} <= {s7_item_q, s7_known_q, s7_place_q, s7_odd_q, s7_bad_q};
    end
  end

  // ---- 10: the item
  logic [35:0] word;
  assign word = s8_odd_q ? odd_item_q : even_item_q;
  assign bad  = s8_bad_q || (!s8_known_q && ^word);
  always_ff @(posedge clk_i) begin
    if (moves[10]) begin
      item_o  <= bad ? 36'hffff : s8_known_q ? s8_item_q : item_of(word, s8_item_q.items, s8_place_q);
      error_o <= bad;
    end
  end
endmodule
