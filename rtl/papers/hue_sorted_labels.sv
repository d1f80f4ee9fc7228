// The closest flat label by the arrangement of Unnikrishnan (FPGA 2010) §3.2.2: a table of labels in sorted order, all of which are
// compared with a key at once, and a second, small one for cached pointers, searched at the same time. No image has it: it is measured beside
// the trie of kind rofl (ADR 0078).
//
// A TCAM compares for equality, so the paper modified its lookup; here each row compares for "not above". Of sorted rows those that are not
// above a key are the first ones, and the last of them is the closest. If none is, the ring continues at the last row. Of an entry and a
// pointer the closer one wins, and of two that are equally close the entry.
// A new label moves all rows behind its place, in one clock; so does one that goes.
//
// Latency: 2 clocks. Throughput: one key a clock.
module hue_sorted_labels #(
    parameter int unsigned Rows        = 32,
    parameter int unsigned PointerRows = 16,
    parameter int unsigned LabelBits   = 32,
    parameter int unsigned HopBits     = 8
) (
    input  logic                 clk_i,
    input  logic                 rst_ni,
    // A label comes or goes. One that comes must be new, one that goes must be there, and there must be room.
    input  logic                 insert_i,
    input  logic                 remove_i,
    input  logic                 pointer_i,  // it is a pointer
    input  logic [LabelBits-1:0] label_i,
    input  logic [HopBits-1:0]   hop_i,
    // A lookup.
    input  logic                 valid_i,
    input  logic [LabelBits-1:0] key_i,
    output logic                 valid_o,
    output logic                 found_o,    // there is any label
    output logic                 exact_o,
    output logic [LabelBits-1:0] label_o,
    output logic [HopBits-1:0]   hop_o
);
  localparam int unsigned Tables = 2;
  typedef struct packed {
    logic [LabelBits-1:0] label;
    logic [HopBits-1:0]   hop;
  } row_t;

  // ---- 1: in each table the last row that is not above the key, or the last row
  row_t [Tables-1:0] best, best_q;
  logic [Tables-1:0] some, some_q;
  for (genvar t = 0; t < Tables; t++) begin : gen_table
    localparam int unsigned Own = t == 0 ? Rows : PointerRows;
    row_t [Own-1:0] rows_q;
    logic [Own-1:0] used_q, not_above, below;
    logic mine;
    assign mine = pointer_i == (t == 1);
    for (genvar r = 0; r < Own; r++) begin : gen_row
      assign not_above[r] = used_q[r] && rows_q[r].label <= key_i;
      assign below[r]     = used_q[r] && rows_q[r].label < label_i;
      row_t under, behind;
      logic under_below, behind_used;
      if (r == 0) begin : gen_first
        assign under       = '{label: label_i, hop: hop_i};
        assign under_below = 1'b1;
      end else begin : gen_other
        assign under       = rows_q[r-1];
        assign under_below = below[r-1];
      end
      if (r == Own - 1) begin : gen_last
        assign behind      = '0;
        assign behind_used = 1'b0;
      end else begin : gen_inner
        assign behind      = rows_q[r+1];
        assign behind_used = used_q[r+1];
      end
      always_ff @(posedge clk_i) begin
        if (!rst_ni) used_q[r] <= 1'b0;
        else if (insert_i && mine && !below[r]) used_q[r] <= r == 0 || under_below || used_q[r > 0 ? r-1 : 0];
        else if (remove_i && mine && !below[r]) used_q[r] <= behind_used;
        if (insert_i && mine && !below[r]) rows_q[r] <= under_below ? '{label: label_i, hop: hop_i} : under;
        else if (remove_i && mine && !below[r]) rows_q[r] <= behind;
      end
    end
    // Rows that are not above are the first ones: one-hot by comparison of neighbours.
    logic [Own-1:0] last, chosen;
    assign last   = not_above == '0 ? used_q : not_above;
    assign chosen = last & ~(last >> 1);
    row_t row;
    always_comb begin
      row = '0;
      for (int unsigned r = 0; r < Own; r++) row = row | (rows_q[r] & {$bits(row_t){chosen[r]}});
    end
    assign best[t] = row;
    assign some[t] = used_q[0];
  end
  logic valid_q;
  logic [LabelBits-1:0] key_q;
  always_ff @(posedge clk_i) begin
    {best_q, some_q, key_q} <= {best, some, key_i};
    valid_q <= rst_ni && valid_i;
  end

  // ---- 2: the closer one
  logic [LabelBits-1:0] way, pointer_way;
  logic by_pointer;
  assign way         = key_q - best_q[0].label;
  assign pointer_way = key_q - best_q[1].label;
`ifdef HUE_PLANT_LABELS_TIE
  assign by_pointer  = some_q[1] && (!some_q[0] || pointer_way <= way);  // for scripts/rtl-test
`else
  assign by_pointer  = some_q[1] && (!some_q[0] || pointer_way < way);
`endif
  always_ff @(posedge clk_i) begin
    valid_o <= rst_ni && valid_q;
    found_o <= some_q != '0;
    exact_o <= (by_pointer ? pointer_way : way) == '0 && some_q != '0;
    label_o <= by_pointer ? best_q[1].label : best_q[0].label;
    hop_o   <= by_pointer ? best_q[1].hop : best_q[0].hop;
  end
endmodule
