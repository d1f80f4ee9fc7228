// One level of the on-chip `dag36` walk: takes an item and a byte of the key, gives the item that the byte leads to.
//
// Place: hue_dag36 chains four of them; each has a memory of its own, shared by all networks. The words are described,
// bit by bit, in crates/tables/src/dag36.rs; addresses in items of level l name words of the memory of level l.
// Words lie in two banks by parity, so that both header words of a list come with one access; the memory stands twice,
// once for headers and once for items, so that a lookup enters every clock.
//
// Latency: 6 clocks in which `en_i` is 1. Throughput: one lookup a clock. Nothing moves while `en_i` is 0.
// An item that is a leaf passes unchanged. An address beyond the memory wraps: a wrong table gives a wrong next hop
// index, which the next-hop table bounds to its own network, and never a hang.
module hue_dag36_level #(
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
    // host: one access a clock, `host_data_o` one clock after `host_en_i` without `host_write_i`
    input  logic               host_en_i,
    input  logic               host_write_i,
    /* verilator lint_off UNUSEDSIGNAL */
    input  logic [23:0]        host_index_i,  // below `Words`
    /* verilator lint_on UNUSEDSIGNAL */
    input  logic [35:0]        host_data_i,
    output logic [35:0]        host_data_o
);
  localparam int unsigned BankWords = Words / 2;
  localparam int unsigned BankBits = $clog2(BankWords);
  localparam int unsigned AddrBits = BankBits + 1;
  localparam int unsigned MapWords = 10;
  localparam logic [2:0] FormWide = 3'd0;

  if (Words < 4 || Words % 2 != 0 || Words > 1 << 20) begin : gen_check
    $fatal(1, "hue_dag36_level: Words is %0d, an even number of 4 to 2^20", Words);
  end

  typedef struct packed {
    logic        node;      // 1: the rest names a node; 0: a next-hop word
    logic [2:0]  form;
    logic [11:0] unused;
    logic [19:0] addr;
  } item_t;

  // What a form means.
  typedef struct packed {
    logic wide;
    logic mapped;
    logic second;    // a list with two header words
    logic children;  // items are whole words
  } form_t;

  function automatic form_t form_of(logic [2:0] form);
    form_t what;
    what.wide     = form == FormWide;
    what.mapped      = form == 3'd3 || form == 3'd6;
    what.second   = form == 3'd2 || form == 3'd5;
    what.children = form == FormWide || form >= 3'd4;
    return what;
  endfunction

  // Which of the ten words of a map covers a slot, and the slot's place in it: 28 slots a word.
  function automatic logic [3:0] map_word(logic [7:0] slot);
    logic [3:0] word;
    word = '0;
    for (int unsigned i = 1; i < MapWords; i++) begin
      if (slot >= 8'(28 * i)) word = 4'(i);
    end
    return word;
  endfunction

  function automatic logic [4:0] map_bit(logic [7:0] slot);
    return 5'(slot - 8'd28 * 8'(map_word(slot)));
  endfunction

  // How many of a list's four starts lie at or before the slot; 0 is no start.
  function automatic logic [2:0] starts_up_to(logic [35:0] word, logic [7:0] slot);
    logic [2:0] count;
    count = '0;
    for (int unsigned i = 0; i < 4; i++) begin
      if (word[8*i+:8] != '0 && word[8*i+:8] <= slot) count++;
    end
    return count;
  endfunction

  function automatic logic [4:0] ones(logic [27:0] bits);
    logic [4:0] count;
    count = '0;
    for (int unsigned i = 0; i < 28; i++) count += 5'(bits[i]);
    return count;
  endfunction

  // ---- 0: the header's address
  item_t item;
  /* verilator lint_off UNUSEDSIGNAL */  // each stage looks at what it needs
  form_t form, s1_form, s2_form;
  /* verilator lint_on UNUSEDSIGNAL */
  logic [AddrBits-1:0] header_addr_d;
  assign item = item_t'(item_i);
  assign form = form_of(item.form);
  always_comb begin
    header_addr_d = AddrBits'(item.addr);
    if (form.wide) header_addr_d = AddrBits'(item.addr + 20'(slot_i));
    else if (form.mapped) header_addr_d = AddrBits'(item.addr + 20'(map_word(slot_i)));
  end

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

  // ---- 1: the header's memory
  logic [35:0] even_header, odd_header, even_item, odd_item;
  logic [BankBits-1:0] item_bank_addr_q;
  logic host_odd_q;
  logic [35:0] even_host, odd_host;
  hue_dag36_bank #(.Words(BankWords)) u_even_header (
    .clk_i, .host_en_i(host_en_i && !host_index_i[0]), .host_write_i,
    .host_addr_i(host_index_i[BankBits:1]), .host_data_i, .host_data_o(even_host),
    .en_i, .addr_i(even_addr_q), .data_o(even_header)
  );
  hue_dag36_bank #(.Words(BankWords)) u_odd_header (
    .clk_i, .host_en_i(host_en_i && host_index_i[0]), .host_write_i,
    .host_addr_i(host_index_i[BankBits:1]), .host_data_i, .host_data_o(odd_host),
    .en_i, .addr_i(odd_addr_q), .data_o(odd_header)
  );
  always_ff @(posedge clk_i) begin
    if (host_en_i) host_odd_q <= host_index_i[0];
  end
  assign host_data_o = host_odd_q ? odd_host : even_host;

  // ---- 2: which run
  logic [35:0] first, second;
  logic [7:0] rank_d;
  assign s1_form = form_of(s1_q.item.form);
  assign first   = s1_q.odd ? odd_header : even_header;
  assign second  = s1_q.odd ? even_header : odd_header;
  always_comb begin
    rank_d = 8'(starts_up_to(first, s1_q.slot));
    if (s1_form.second) rank_d = rank_d + 8'(starts_up_to(second, s1_q.slot));
    if (s1_form.mapped) begin
`ifdef HUE_PLANT_DAG36_MAP
      rank_d = 8'd0 + 8'(ones(first[27:0] & ~(28'hffffffe << map_bit(s1_q.slot)))) - 8'd1;
`else
      rank_d = first[35:28] + 8'(ones(first[27:0] & ~(28'hffffffe << map_bit(s1_q.slot)))) - 8'd1;
`endif
    end
  end

  item_t s2_item_q, s3_item_q, s4_item_q;
  logic [35:0] s2_first_q;
  logic [7:0] s2_rank_q;
  assign s2_form = form_of(s2_item_q.form);

  // ---- 3: the item's address
  logic [AddrBits-1:0] item_addr_d;
  logic [3:0] headers;
  logic [7:0] offset;
  always_comb begin
    headers = 4'd1;
    if (s2_form.mapped) headers = 4'(MapWords);
    else if (s2_form.second) headers = 4'd2;
    offset = s2_form.children ? s2_rank_q : {1'b0, s2_rank_q[7:1]};
    item_addr_d = AddrBits'(s2_item_q.addr + 20'(headers) + 20'(offset));
  end

  // A leaf, or what a wide node gave, is known before the item's memory is read.
  logic s3_known_q, s4_known_q, s3_low_half_q, s4_low_half_q, s3_whole_q, s4_whole_q, s4_odd_q, s3_odd_q;
  always_ff @(posedge clk_i) begin
    if (en_i) begin
      s2_item_q  <= s1_q.item;
      s2_first_q <= first;
      s2_rank_q  <= rank_d;

      s3_item_q        <= s2_item_q.node && s2_form.wide ? item_t'(s2_first_q) : s2_item_q;
      s3_known_q       <= !s2_item_q.node || s2_form.wide;
      s3_whole_q       <= s2_form.children;
      s3_low_half_q    <= !s2_rank_q[0];
      s3_odd_q         <= item_addr_d[0];
      item_bank_addr_q <= item_addr_d[AddrBits-1:1];

      s4_item_q     <= s3_item_q;
      s4_known_q    <= s3_known_q;
      s4_whole_q    <= s3_whole_q;
      s4_low_half_q <= s3_low_half_q;
      s4_odd_q      <= s3_odd_q;
    end
  end

  // ---- 4: the item's memory; the host reads the header's copy
  logic [35:0] unused_even, unused_odd;
  hue_dag36_bank #(.Words(BankWords)) u_even_item (
    .clk_i, .host_en_i(host_en_i && host_write_i && !host_index_i[0]), .host_write_i,
    .host_addr_i(host_index_i[BankBits:1]), .host_data_i, .host_data_o(unused_even),
    .en_i, .addr_i(item_bank_addr_q), .data_o(even_item)
  );
  hue_dag36_bank #(.Words(BankWords)) u_odd_item (
    .clk_i, .host_en_i(host_en_i && host_write_i && host_index_i[0]), .host_write_i,
    .host_addr_i(host_index_i[BankBits:1]), .host_data_i, .host_data_o(unused_odd),
    .en_i, .addr_i(item_bank_addr_q), .data_o(odd_item)
  );

  // ---- 5: the item
  logic [35:0] word;
  assign word = s4_odd_q ? odd_item : even_item;
  always_ff @(posedge clk_i) begin
    if (en_i) begin
      if (s4_known_q) item_o <= s4_item_q;
      else if (s4_whole_q) item_o <= word;
      else item_o <= {20'd0, s4_low_half_q ? word[15:0] : word[33:18]};
    end
  end
endmodule
