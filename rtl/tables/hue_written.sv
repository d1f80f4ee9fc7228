// Tracks which rows of a memory were written since reset: one bit per row, all cleared at once by reset.
//
// Place: beside the memory of a hue_table or a hue_ternary_table. The bits are in LUT memory, one group per word, and one
// flip-flop per group says whether its word is valid: a sixteenth or less of the flip-flops and of the multiplexers. The bit
// in the word is selected after a register, while the row itself comes out of its block RAM.
// Latency: 1 clock; the next read sees a bit that was set. Throughput: a read or a write a clock.
module hue_written #(
    parameter int unsigned Rows = 2,
    localparam int unsigned AddrBits = Rows > 1 ? $clog2(Rows) : 1
) (
    input  logic                clk_i,
    input  logic                rst_ni,
    input  logic                set_i,
    input  logic [AddrBits-1:0] set_addr_i,
    input  logic                read_i,  // `bit_o` holds when 0
    input  logic [AddrBits-1:0] addr_i,
    output logic                bit_o    // zero after reset, until a read
);
  localparam int unsigned Group = Rows > 256 ? 32 : 16;
  localparam int unsigned Groups = (Rows + Group - 1) / Group;
  localparam int unsigned GroupBits = Groups > 1 ? $clog2(Groups) : 1;
  localparam int unsigned PlaceBits = $clog2(Group);

  logic [GroupBits-1:0] group, set_group;
  logic [PlaceBits-1:0] place_q;
  assign group     = GroupBits'(32'(addr_i) / Group);
  assign set_group = GroupBits'(32'(set_addr_i) / Group);

  // The word in which a bit is set has its own read path, as the address of the other read is late.
  logic [Group-1:0] words_q[Groups];
  logic [Group-1:0] word, set_word, word_q;
  logic [Groups-1:0] counts_q;
  assign word     = counts_q[group] ? words_q[group] : '0;
  assign set_word = counts_q[set_group] ? words_q[set_group] : '0;
  assign bit_o    = word_q[place_q];
  always_ff @(posedge clk_i) if (set_i) words_q[set_group] <= set_word | Group'(1) << PlaceBits'(set_addr_i);
  always_ff @(posedge clk_i) begin
    if (!rst_ni) counts_q <= '0;
    else if (set_i) counts_q[set_group] <= 1'b1;
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni) word_q <= '0;
    else if (read_i) word_q <= word;
  end
  always_ff @(posedge clk_i) if (read_i) place_q <= PlaceBits'(addr_i);
endmodule
