// The closest flat label by the arrangement of Unnikrishnan (FPGA 2010) §5.2: a word of memory for each label of a small name space. A word
// of a label that exists names itself; the words of all other labels name the closest one before. No image has it: it is measured beside the
// trie of kind rofl (ADR 0078).
//
// Networks share the memory: the place of a label is a hash of the network's VID and the base of its name space, and the label. Here the base is
// a row of a small table, and the hash its sum with the label: it must give each label of a network its own word.
// A label that comes or goes changes its word, and those behind it up to the next label: one each clock, during which no key is looked up.
// That of the paper stores egress ports; these words also have the closest label, without which a cached pointer cannot be compared with it.
//
// Latency: 4 clocks (base, address, word, result), as in the paper. Throughput: one key a clock, while no label changes.
module hue_name_space #(
    parameter int unsigned LabelBits = 12,   // of a name space
    parameter int unsigned WordsLog2 = 14,   // of the memory
    parameter int unsigned Nets      = 4,
    parameter int unsigned HopBits   = 8,
    localparam int unsigned NetBits  = Nets > 1 ? $clog2(Nets) : 1
) (
    input  logic                 clk_i,
    input  logic                 rst_ni,
    input  logic                 base_write_i,
    input  logic [NetBits-1:0]   base_net_i,
    input  logic [WordsLog2-1:0] base_i,
    // A label comes, changes or goes. `closest_i` and `closest_hop_i` are what its words become: of one that comes itself, of one that goes
    // the label before. The network's words must be cleared first (`clear_i`, with any label: all of its words).
    input  logic                 change_i,
    input  logic                 exists_i,
    input  logic                 clear_i,
    input  logic [NetBits-1:0]   change_net_i,
    input  logic [LabelBits-1:0] change_label_i,
    input  logic [LabelBits-1:0] closest_i,
    input  logic [HopBits-1:0]   closest_hop_i,
    output logic                 busy_o,
    // A lookup, unless busy.
    input  logic                 valid_i,
    input  logic [NetBits-1:0]   net_i,
    input  logic [LabelBits-1:0] key_i,
    output logic                 valid_o,
    output logic                 found_o,
    output logic                 exact_o,
    output logic [LabelBits-1:0] label_o,
    output logic [HopBits-1:0]   hop_o
);
  typedef struct packed {
    logic                 some;    // the network has any label
    logic                 exists;  // the word's own label exists
    logic [LabelBits-1:0] closest;
    logic [HopBits-1:0]   hop;
  } word_t;
  word_t words_q[1<<WordsLog2];
  (* ram_style = "distributed" *) logic [WordsLog2-1:0] bases_q[Nets];
  always_ff @(posedge clk_i) if (base_write_i) bases_q[base_net_i] <= base_i;

  // ---- changes: read a word, then write it, until the next label that exists, or around the ring
  typedef enum logic [1:0] {Idle, Read, Write} state_e;
  state_e state_q;
  logic first_q, clear_q, exists_q;
  logic [NetBits-1:0] at_net_q;
  logic [LabelBits-1:0] at_q, from_q, closest_q;
  logic [HopBits-1:0] hop_q;
  word_t word_q;
  logic ends;
  assign busy_o = state_q != Idle;
  assign ends   = !first_q && (at_q == from_q || (!clear_q && word_q.exists));
  always_ff @(posedge clk_i) begin
    if (!rst_ni) state_q <= Idle;
    else begin
      case (state_q)
        Idle: if (change_i) state_q <= Read;
        Read: state_q <= Write;
        default: state_q <= ends ? Idle : Read;
      endcase
    end
    if (state_q == Idle && change_i) begin
      {first_q, clear_q, exists_q} <= {1'b1, clear_i, exists_i};
      {at_net_q, at_q, from_q}     <= {change_net_i, change_label_i, change_label_i};
      {closest_q, hop_q}           <= {closest_i, closest_hop_i};
    end else if (state_q == Write) begin
      first_q <= 1'b0;
      at_q    <= at_q + 1'b1;
    end
  end

  // ---- 1: the base; 2: the address; 3: the word; 4: the result
  logic valid1_q, valid2_q, valid3_q;
  logic [WordsLog2-1:0] base1_q, address_q, change_address;
  logic [LabelBits-1:0] key1_q, key2_q, key3_q;
  word_t read_q;
  assign change_address = bases_q[at_net_q] + WordsLog2'(at_q);
  always_ff @(posedge clk_i) begin
    base1_q   <= bases_q[net_i];
    key1_q    <= key_i;
    address_q <= base1_q + WordsLog2'(key1_q);
    key2_q    <= key1_q;
    key3_q    <= key2_q;
    {valid3_q, valid2_q, valid1_q} <= rst_ni ? {valid2_q, valid1_q, valid_i && !busy_o} : '0;
  end
  // One port for both: lookups inside end before a change writes.
  always_ff @(posedge clk_i) begin
    if (state_q == Write && !ends) begin
`ifdef HUE_PLANT_NAMES_EXISTS
      words_q[change_address] <= '{some: !clear_q, exists: exists_q && !clear_q, closest: closest_q, hop: hop_q};  // for scripts/rtl-test
`else
      words_q[change_address] <= '{some: !clear_q, exists: first_q && exists_q && !clear_q, closest: closest_q, hop: hop_q};
`endif
    end
    word_q <= words_q[change_address];
    read_q <= words_q[address_q];
  end
  always_ff @(posedge clk_i) begin
    valid_o <= rst_ni && valid3_q;
    found_o <= read_q.some;
    exact_o <= read_q.some && read_q.exists && read_q.closest == key3_q;
    label_o <= read_q.closest;
    hop_o   <= read_q.hop;
  end
endmodule
