// Longest-prefix match over on-chip `dag36`: one trie for all networks, one memory per level, one lookup a clock.
//
// Place: rtl/planes/hue_routes, between the header checks and the next-hop table. Encoding: crates/tables/src/dag36/words.rs;
// the words are written by crates/tables/src/dag36_levels.rs through the card's table access.
// A lookup sees the table of the root it entered with: new words are written first, then the root (hue_network's row),
// and old words are reused only after the lookups that entered before have left. So no lookup sees half of a change.
// A word changed in place (ADR-0017) is one item, and a lookup reads one item per node.
//
// A packet that is decided already only passes: `ask_i` is 0, and no register or memory of the levels moves for it.
//
// Latency: `Latency` clocks in which `en_i` is 1. Throughput: one lookup a clock. Nothing moves while `en_i` is 0.
module hue_dag36 #(
    parameter int unsigned Level0Words = 2048,
    parameter int unsigned Level1Words = 4096,
    parameter int unsigned Level2Words = 8192,
    parameter int unsigned Level3Words = 8192,
    parameter int unsigned TagBits     = 1
) (
    input  logic               clk_i,
    input  logic               rst_ni,
    input  logic               en_i,
    input  logic               valid_i,
    input  logic               ask_i,   // with `valid_i`: a lookup; otherwise the answer is 65535
    input  logic [35:0]        item_i,  // root item of the network
    input  logic [31:0]        key_i,   // destination address
    input  logic [TagBits-1:0] tag_i,   // returned with the answer
    output logic               valid_o,
    output logic [15:0]        hop_o,   // next-hop word; 65535: no prefix matches
    output logic [TagBits-1:0] tag_o,
    output logic               error_o, // while `en_i` is 1: a lookup read a word with wrong parity; its answer is 65535
    // host: `host_en_i` for one clock, the other inputs until `host_done_o`, when `host_data_o` is valid. `en_i` is 0 in each
    // clock after one in which `wait_o` is 1: one clock for a write, two for a read.
    output logic               wait_o,
    input  logic               host_en_i,
    input  logic               host_write_i,
    input  logic [1:0]         host_level_i,
    input  logic [23:0]        host_index_i,  // below the level's number of words
    input  logic [35:0]        host_data_i,
    output logic               host_done_o,
    output logic [35:0]        host_data_o
);
  localparam int unsigned Levels = 4;
  localparam int unsigned LevelLatency = 11;
  localparam int unsigned Latency = Levels * LevelLatency;

  function automatic int unsigned words_of(int unsigned level);
    case (level)
      0: return Level0Words;
      1: return Level1Words;
      2: return Level2Words;
      default: return Level3Words;
    endcase
  endfunction

  logic [Levels:0] valid;
  logic [Levels:0][35:0] item;
  logic [Levels-1:0][35:0] host_data;
  logic [Levels-1:0] bad;
  logic asked_q, back_q, read_q, back;

  assign valid[0] = valid_i && ask_i;
  assign item[0]  = item_i;

  for (genvar level = 0; level < Levels; level++) begin : gen_level
    // Each key byte is delayed until its level needs it; the highest is not.
    logic [7:0] byte_in, slot;
    assign byte_in = key_i[8*(Levels-1-level)+:8];
    if (level == 0) begin : gen_now
      assign slot = byte_in;
    end else begin : gen_later
      hue_delay #(.Clocks(level * LevelLatency), .Bits(8)) u_slot (
        .clk_i, .rst_ni, .en_i, .data_i(byte_in), .data_o(slot)
      );
    end
    hue_dag36_level #(
      .Words(words_of(level))
    ) u_level (
      .clk_i, .rst_ni, .en_i,
      .valid_i(valid[level]), .item_i(item[level]), .slot_i(slot),
      .valid_o(valid[level+1]), .item_o(item[level+1]), .error_o(bad[level]),
      .host_en_i(asked_q && host_level_i == 2'(level)), .host_write_i,
      .host_back_i(back_q && host_level_i == 2'(level)), .host_index_i, .host_data_i,
      .host_data_o(host_data[level])
    );
  end

  assign error_o = (bad & valid[Levels:1]) != '0;
  // A node below the last level means a wrong table: no route.
  assign hop_o   = !valid[Levels] || item[Levels][34] ? 16'hffff : item[Levels][15:0];
  logic [Latency-1:0] passing_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) passing_q <= '0;
    else if (en_i) passing_q <= {passing_q[Latency-2:0], valid_i};
  end
  assign valid_o = passing_q[Latency-1];
  hue_delay #(.Clocks(Latency), .Bits(TagBits)) u_tag (
    .clk_i, .rst_ni, .en_i, .data_i(tag_i), .data_o(tag_o)
  );

  always_ff @(posedge clk_i) begin
    if (!rst_ni) {read_q, back_q, asked_q} <= '0;
    else {read_q, back_q, asked_q} <= {back_q, back, host_en_i};
  end
  assign back        = asked_q && !host_write_i;
  assign wait_o      = host_en_i || back;
  assign host_done_o = read_q || (asked_q && host_write_i);
  assign host_data_o = host_data[host_level_i];

`ifndef SYNTHESIS
  hue_latency #(.Clocks(Latency)) u_latency (.clk_i, .rst_ni, .en_i, .in_i(valid_i), .out_i(valid_o));
  always_ff @(posedge clk_i) begin
    if (rst_ni && host_en_i) begin
      assert (32'(host_index_i) < words_of(32'(host_level_i))) else $error("hue_dag36: index");
    end
  end
`endif
endmodule
