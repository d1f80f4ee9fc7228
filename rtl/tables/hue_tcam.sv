// Ternary match: finds the lowest of the rows that agree with a key in all bits of their masks.
//
// Place: hue_ternary_table, which keeps the rows themselves. The key is cut into digits of 4 bits; for each digit a
// memory of 16 words says which rows agree with each value of it (the transposed rows), and a row matches when all
// digits do. So a row takes only one flip-flop, and four rows of one digit are one 16 x 4 memory of an FPGA's LUTs.
// Such a memory is written in words of four rows: after a write the four rows are read again, one a clock, for each
// value of a digit. Lookups continue meanwhile. The row's old content is kept in registers (`take_i`), and keys are compared
// with it directly until the memories hold the new content; from one clock to the next the memories take over. `old_o`
// marks a key that was compared with the old content of row `row_o`. The module is busy until no such key is inside.
//
// Latency: 2 clocks in which `en_i` is 1. Throughput: one key a clock. A write: `WriteClocks` clocks from `write_i` to `done_o`.
// Source: Jiang, Prasanna, "Scalable ternary content addressable memories implemented on FPGA", 2013 (the
// transposition).
module hue_tcam #(
    parameter int unsigned Rows    = 32,
    parameter int unsigned KeyBits = 32,
    localparam int unsigned AddrBits = $clog2(Rows)
) (
    input  logic                clk_i,
    input  logic                rst_ni,
    input  logic                take_i,        // row `write_addr_i` will change; the inputs below are its present content
    input  logic                write_i,       // one clock later: the row is written, and can be read from the next clock on
    input  logic [AddrBits-1:0] write_addr_i,  // stable until `done_o`; so is the next input
    input  logic                write_used_i,
    output logic                busy_o,
    output logic                done_o,        // keys that come from the next clock on are compared with the new row
    output logic                look_o,        // row `look_addr_o` is read; the inputs below belong to the read of the clock before
    output logic [AddrBits-1:0] look_addr_o,
    input  logic [KeyBits-1:0]  value_i,
    input  logic [KeyBits-1:0]  mask_i,        // 1: the bit is compared
    input  logic                en_i,
    input  logic                valid_i,
    input  logic [KeyBits-1:0]  key_i,
    output logic                hit_o,         // 0 without `valid_i`
    output logic [AddrBits-1:0] addr_o,        // of the hit
    output logic                old_o,         // the old content of row `row_o` was compared, if this key met that row
    output logic [AddrBits-1:0] row_o
);
  localparam int unsigned DigitBits = 4;
  localparam int unsigned Digits = (KeyBits + DigitBits - 1) / DigitBits;
  localparam int unsigned Together = 4;  // rows in a word
  localparam int unsigned Words = Rows / Together;
  localparam int unsigned Looks = Together << DigitBits;
  localparam int unsigned WriteClocks = Looks + 3;

  if (Rows < 2 * Together || Rows % Together != 0) begin : gen_check
    $fatal(1, "hue_tcam: Rows is %0d, a multiple of %0d, at least %0d", Rows, Together, 2 * Together);
  end

  typedef logic [Words-1:0][Together-1:0] rows_t;
  typedef logic [Digits-1:0][DigitBits-1:0] digits_t;

  // ---- writing: `at_q` counts the values of a digit in its high bits, the rows of the word in its low ones
  logic busy_q, looked_q, late_q, store_q, busy, store, ready;
  logic [DigitBits+1:0] at_q, looked_at_q, late_at_q;
  logic [AddrBits-3:0] word_q;
  logic [DigitBits-1:0] digit, store_digit_q;
  digits_t value, mask, key;
  assign value = (Digits * DigitBits)'(value_i);
  assign mask  = (Digits * DigitBits)'(mask_i);
  assign key   = (Digits * DigitBits)'(key_i);
  assign busy        = write_i || (busy_q && at_q != '1);
  assign store       = late_q && late_at_q[1:0] == 2'(Together - 1);
  // The last word is stored, and no other is on its way.
  assign done_o      = store_q && !late_q && !looked_q && !busy_q;
  assign look_o      = busy_q;
  assign look_addr_o = {word_q, at_q[1:0]};
  assign digit       = looked_at_q[DigitBits+1:2];

  always_ff @(posedge clk_i) begin
    looked_at_q   <= at_q;
    late_at_q     <= looked_at_q;
    store_digit_q <= late_at_q[DigitBits+1:2];
    if (!rst_ni) begin
      busy_q   <= 1'b0;
      looked_q <= 1'b0;
      late_q   <= 1'b0;
      store_q  <= 1'b0;
      at_q     <= '0;
    end else begin
      looked_q <= busy_q;
      late_q   <= looked_q;
      store_q  <= store;
      busy_q   <= busy;
      if (busy_q) at_q <= at_q + 1'b1;
    end
  end
  always_ff @(posedge clk_i) begin
    if (write_i) word_q <= write_addr_i[AddrBits-1:2];
  end

  // ---- 1: rows that agree in all digits
  rows_t [Digits-1:0] agree;
  for (genvar d = 0; d < Digits; d++) begin : gen_digit
    rows_t words_q[1<<DigitBits];
    logic [DigitBits-1:0] differs_q;  // registered, as a row from block RAM is late in its clock
    logic [Together-1:0] fresh_q;
    always_ff @(posedge clk_i) begin
      differs_q <= (digit ^ value[d]) & mask[d];
      if (late_q) fresh_q <= {differs_q == '0, fresh_q[Together-1:1]};
    end
    always_ff @(posedge clk_i) begin
      if (store_q) words_q[store_digit_q][word_q] <= fresh_q;
    end
    assign agree[d] = words_q[key[d]];
  end

  // `was_q` marks the row that is being written. Its old content is compared meanwhile, and its memory is not used.
  rows_t used_q, was_q, match, match_q;
  logic [KeyBits-1:0] was_value_q, was_mask_q;
  logic valid_q, was_used_q, was_match, was1_q, was2_q;
  assign was_match = was_used_q && ((key_i ^ was_value_q) & was_mask_q) == '0;
  always_comb begin
    match = used_q;
    for (int unsigned d = 0; d < Digits; d++) match = match & agree[d];
`ifdef HUE_PLANT_TCAM_WAS
    match = match | (was_q & {Rows{1'b0}});  // a row that is written matches nothing; for scripts/rtl-test: the bench must find this
`else
    match = match | (was_q & {Rows{was_match}});
`endif
  end

  // ---- 2: the lowest of them, by a tree: the first of each four rows, then of each four groups, and so on, in parallel
  localparam int unsigned Levels = ($clog2(Rows) + 1) / 2;
  typedef logic [2*Levels-1:0] at_t;
  function automatic logic [AddrBits-1:0] lowest(rows_t rows);
    logic [(1<<2*Levels)-1:0] some;
    at_t [(1<<2*Levels)-1:0] at;  // 0 where no row matches
    logic [1:0] first;
    some = (1 << 2*Levels)'(rows);
    at   = '0;
`ifdef HUE_PLANT_TCAM_ORDER
    for (int unsigned i = 0; i < Rows; i++) if (some[i]) at[0] = at_t'(i);
`else
    for (int unsigned l = 0; l < Levels; l++) begin
      for (int unsigned i = 0; i < 1 << 2*(Levels-1-l); i++) begin
        first = some[4*i] ? 2'd0 : some[4*i+1] ? 2'd1 : some[4*i+2] ? 2'd2 : some[4*i+3] ? 2'd3 : 2'd0;
        at[i] = at[4*i+32'(first)] | at_t'(first) << 2*l;
        some[i] = some[4*i+:4] != '0;
      end
    end
`endif
    return AddrBits'(at[0]);
  endfunction

`ifdef VERILATOR
  // The same, but skipping empty groups, which gates cannot do. In a twin the version for gates would take an eighth of the time.
  localparam int unsigned GroupWords = 8;
  localparam int unsigned Groups = (Words + GroupWords - 1) / GroupWords;
  function automatic logic [AddrBits-1:0] lowest_twin(rows_t rows);
    logic [Groups-1:0][GroupWords-1:0][Together-1:0] groups;
    logic [GroupWords-1:0][Together-1:0] group;
    logic [Together-1:0] word;
    logic [31:0] first_group, first_word, first_row;
    groups = (Groups * GroupWords * Together)'(rows);
    group  = '0;
    word   = '0;
    first_group = '0;
    first_word  = '0;
    first_row   = '0;
    for (int unsigned g = 0; g < Groups; g++) begin
      if (groups[Groups-1-g] != '0) begin
        group = groups[Groups-1-g];
        first_group = (Groups - 1 - g) * GroupWords * Together;
      end
    end
    for (int unsigned w = 0; w < GroupWords; w++) begin
      if (group[GroupWords-1-w] != '0) begin
        word = group[GroupWords-1-w];
        first_word = (GroupWords - 1 - w) * Together;
      end
    end
    for (int unsigned r = 0; r < Together; r++) if (word[Together-1-r]) first_row = Together - 1 - r;
    return AddrBits'(first_group + first_word + first_row);
  endfunction
`endif

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      used_q  <= '0;
      valid_q <= 1'b0;
      hit_o   <= 1'b0;
    end else begin
      if (take_i) used_q[write_addr_i[AddrBits-1:2]][write_addr_i[1:0]] <= 1'b0;
      if (done_o) used_q[write_addr_i[AddrBits-1:2]][write_addr_i[1:0]] <= write_used_i;
      if (en_i) begin
        valid_q <= valid_i;
        hit_o   <= valid_q && match_q != '0;
      end
    end
  end

  // ---- the row's old content, and the keys inside that may have met it: those inside when it is taken, and all until the row is new
  assign ready = was_q == '0;
  assign busy_o  = take_i || !ready || (was1_q && valid_q) || (was2_q && hit_o);
  assign old_o   = was2_q;
  always_ff @(posedge clk_i) begin
    if (take_i) begin
      was_value_q <= value_i;
      was_mask_q  <= mask_i;
      was_used_q  <= used_q[write_addr_i[AddrBits-1:2]][write_addr_i[1:0]];
      row_o       <= write_addr_i;
    end
    if (!rst_ni) begin
      was_q  <= '0;
      was1_q <= 1'b0;
      was2_q <= 1'b0;
    end else begin
      if (take_i) was_q[write_addr_i[AddrBits-1:2]][write_addr_i[1:0]] <= 1'b1;
      else if (done_o) was_q <= '0;
      if (take_i) begin
        was1_q <= 1'b1;
        was2_q <= 1'b1;
      end else if (en_i) begin
        was1_q <= !ready;
        was2_q <= was1_q;
      end
    end
  end
  always_ff @(posedge clk_i) begin
    if (en_i && valid_i) match_q <= match;
`ifdef VERILATOR
    if (en_i && valid_q) addr_o <= lowest_twin(match_q);
`else
    if (en_i && valid_q) addr_o <= lowest(match_q);
`endif
  end

`ifndef SYNTHESIS
  hue_latency #(.Clocks(2)) u_latency (.clk_i, .rst_ni, .en_i, .in_i(valid_i && match != '0), .out_i(hit_o));
  logic [6:0] waited_q;
  always_ff @(posedge clk_i) begin
    waited_q <= ready ? '0 : waited_q + 7'd1;
    if (rst_ni) begin
`ifdef VERILATOR
      if (valid_q) assert (lowest_twin(match_q) == lowest(match_q)) else $error("hue_tcam: gates say another row");
`endif
      assert (!(take_i && !ready)) else $error("hue_tcam: written while it is written");
      if (!ready) assert (32'(waited_q) <= WriteClocks) else $error("hue_tcam: clocks of a write");
    end
  end
`endif
endmodule
