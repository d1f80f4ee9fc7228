// One level of the on-chip `dag36` walk: takes an item and a byte of the key, gives the item that the byte leads to.
//
// Place: hue_dag36 chains four of them; each has a memory of its own, shared by all networks. The words are described,
// bit by bit, in crates/tables/src/dag36/words.rs (pivots do not occur here); addresses in items of level l name words of the memory of level l.
// Words lie in two banks by parity, so that both header words of a list come with one access; each has a port for headers
// and one for items, so that a lookup enters every clock. The host takes the headers' port for a clock or two.
//
// Latency: 6 clocks in which `en_i` is 1. Throughput: one lookup a clock. Nothing moves while `en_i` is 0.
// An item that is a leaf passes unchanged. An address beyond the memory wraps: a wrong table gives a wrong next hop
// index, which the next-hop table bounds to its own network, and never a hang.
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
    output logic               error_o,      // with `valid_o`: a word of it had wrong parity; then `item_o` is "no route"
    // host: in the clock of `host_en_i`, and after a read that of `host_back_i`, `en_i` is 0; then `host_data_o` counts
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

  // ---- 0: the header's address
  item_t item;
  logic [AddrBits-1:0] header_addr_d;
  assign item = item_t'(item_i);
  assign header_addr_d = AddrBits'(item.addr + 20'(first_offset(item, slot_i)));

  typedef struct packed {
    item_t      item;
    logic [7:0] slot;
    logic       odd;  // the first header word lies in the odd bank
  } lookup_t;

  logic [4:0] valid_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) {valid_o, valid_q} <= '0;
    else if (en_i) {valid_o, valid_q} <= {valid_q, valid_i};
  end

  lookup_t s0_q, s1_q;
  logic [BankBits-1:0] even_addr_q, odd_addr_q;
  always_ff @(posedge clk_i) begin
    if (en_i) begin
      s0_q        <= '{item: item, slot: slot_i, odd: header_addr_d[0]};
      even_addr_q <= BankBits'((header_addr_d + 1'b1) >> 1);
      odd_addr_q  <= header_addr_d[AddrBits-1:1];
      s1_q        <= s0_q;
    end
  end

  // ---- 1: the header comes from its memory
  logic [35:0] even_header, odd_header, even_item, odd_item;
  logic [BankBits-1:0] item_bank_addr_q;
  hue_dag36_bank #(.Words(BankWords)) u_even (
    .clk_i, .host_en_i(host_en_i && !host_index_i[0]), .host_write_i,
    .host_addr_i(host_index_i[BankBits:1]), .host_data_i, .back_i(host_back_i && !host_index_i[0]),
    .en_i, .header_addr_i(even_addr_q), .header_o(even_header), .item_addr_i(item_bank_addr_q), .item_o(even_item)
  );
  hue_dag36_bank #(.Words(BankWords)) u_odd (
    .clk_i, .host_en_i(host_en_i && host_index_i[0]), .host_write_i,
    .host_addr_i(host_index_i[BankBits:1]), .host_data_i, .back_i(host_back_i && host_index_i[0]),
    .en_i, .header_addr_i(odd_addr_q), .header_o(odd_header), .item_addr_i(item_bank_addr_q), .item_o(odd_item)
  );
  assign host_data_o = host_index_i[0] ? odd_header : even_header;

  // ---- 2: which run
  logic [35:0] first, second;
  logic [7:0] rank_d;
  assign first   = s1_q.odd ? odd_header : even_header;
  assign second  = s1_q.odd ? even_header : odd_header;
  always_comb begin
    rank_d = 8'(starts_up_to(first, s1_q.slot));
    if (s1_q.item.header == HeaderList2) rank_d = rank_d + 8'(starts_up_to(second, s1_q.slot));
    if (s1_q.item.header == HeaderMap) rank_d = map_rank(first, s1_q.slot);
  end

  item_t s2_item_q, s3_item_q, s4_item_q;
  logic [35:0] s2_first_q;
  logic [7:0] s2_rank_q;

  // ---- 3: the item's address
  logic [AddrBits-1:0] item_addr_d;
  logic [3:0] headers;
  always_comb begin
    headers = 4'd1;
    if (s2_item_q.header == HeaderMap) headers = 4'(MapWords);
    else if (s2_item_q.header == HeaderList2) headers = 4'd2;
    item_addr_d = AddrBits'(s2_item_q.addr + 20'(headers) + 20'(item_offset(s2_item_q.items, s2_rank_q)));
  end

  // A leaf, or what a wide node gave, is known before the item's memory is read.
  logic s2_bad_q, s3_bad_q, s4_bad_q, bad;
  logic s3_known_q, s4_known_q, s3_odd_q, s4_odd_q;
  logic [1:0] s3_place_q, s4_place_q;
  always_ff @(posedge clk_i) begin
    if (en_i) begin
      s2_item_q  <= s1_q.item;
      s2_first_q <= first;
      s2_rank_q  <= rank_d;
      s2_bad_q   <= s1_q.item.node && (^first || (s1_q.item.header == HeaderList2 && ^second));

      s3_item_q        <= s2_item_q.node && s2_item_q.items == ItemsWide ? item_t'(s2_first_q) : s2_item_q;
      s3_known_q       <= !s2_item_q.node || s2_item_q.items == ItemsWide;
      s3_place_q       <= s2_rank_q[1:0];
      s3_odd_q         <= item_addr_d[0];
      s3_bad_q         <= s2_bad_q;
      item_bank_addr_q <= item_addr_d[AddrBits-1:1];

      s4_item_q  <= s3_item_q;
      s4_known_q <= s3_known_q;
      s4_place_q <= s3_place_q;
      s4_odd_q   <= s3_odd_q;
      s4_bad_q   <= s3_bad_q;
    end
  end

  // ---- 4: the item comes from its memory
  logic [35:0] word;
  assign word = s4_odd_q ? odd_item : even_item;
  assign bad  = s4_bad_q || (!s4_known_q && ^word);
  always_ff @(posedge clk_i) begin
    if (en_i) begin
      item_o  <= bad ? 36'hffff : s4_known_q ? s4_item_q : item_of(word, s4_item_q.items, s4_place_q);
      error_o <= bad;
    end
  end
endmodule
