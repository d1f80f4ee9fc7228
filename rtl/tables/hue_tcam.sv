// Ternary match: which row, of those that agree with a key in the bits they care about, stands lowest.
//
// Place: design select (rtl/demux/hue_select) and the routes and local addresses of a tcam plane (hue_tcam_plane).
// Rows are registers. A row is written in one clock; a key in that clock meets the old row, whole.
//
// Latency: 2 clocks in which `en_i` is 1. Throughput: one key a clock.
module hue_tcam #(
    parameter int unsigned Rows    = 32,
    parameter int unsigned KeyBits = 32,
    localparam int unsigned AddrBits = Rows > 1 ? $clog2(Rows) : 1
) (
    input  logic                clk_i,
    input  logic                rst_ni,
    input  logic                write_i,
    input  logic [AddrBits-1:0] write_addr_i,
    input  logic                write_used_i,
    input  logic [KeyBits-1:0]  write_value_i,
    input  logic [KeyBits-1:0]  write_mask_i,  // 1: the row cares
    input  logic                en_i,
    input  logic                valid_i,
    input  logic [KeyBits-1:0]  key_i,
    output logic                hit_o,   // 0 without `valid_i`
    output logic [AddrBits-1:0] addr_o   // of the hit
);
  // Keys are compared in words and rows looked through in groups, so that a simulator needs no wide arithmetic.
  localparam int unsigned WordBits = 64;
  localparam int unsigned Words = (KeyBits + WordBits - 1) / WordBits;
  localparam int unsigned GroupRows = 32;
  localparam int unsigned Groups = (Rows + GroupRows - 1) / GroupRows;

  typedef logic [Groups-1:0][GroupRows-1:0] rows_t;

  logic [Words*WordBits-1:0] key, value, mask;
  rows_t [Words-1:0] agree_q;
  rows_t used_q, used1_q, match;
  logic valid_q;

  assign key   = (Words * WordBits)'(key_i);
  assign value = (Words * WordBits)'(write_value_i);
  assign mask  = (Words * WordBits)'(write_mask_i);

  // ---- 1: rows that agree in a word
  for (genvar word = 0; word < Words; word++) begin : gen_word
    logic [WordBits-1:0] value_q[Rows];
    logic [WordBits-1:0] mask_q[Rows];

    function automatic rows_t agree(logic [WordBits-1:0] sought);
      rows_t rows;
      logic [GroupRows-1:0] group;
      rows = '0;
      for (int unsigned g = 0; g < Groups; g++) begin
        group = '0;
        for (int unsigned i = 0; i < GroupRows; i++) begin
          if (g * GroupRows + i < Rows) begin
            group[i] = ((sought ^ value_q[g*GroupRows+i]) & mask_q[g*GroupRows+i]) == '0;
          end
        end
        rows[g] = group;
      end
      return rows;
    endfunction

    always_ff @(posedge clk_i) begin
      if (write_i) begin
        value_q[write_addr_i] <= value[word*WordBits+:WordBits];
        mask_q[write_addr_i]  <= mask[word*WordBits+:WordBits];
      end
    end
    always_ff @(posedge clk_i) begin
      if (en_i && valid_i) agree_q[word] <= agree(key[word*WordBits+:WordBits]);
    end
  end

  // ---- 2: the lowest of them
  always_comb begin
    match = used1_q;
    for (int unsigned word = 0; word < Words; word++) match = match & agree_q[word];
  end

  function automatic logic [AddrBits-1:0] lowest(rows_t rows);
    logic [GroupRows-1:0] group;
    logic [31:0] base, place;
    group = '0;
    base  = '0;
    place = '0;
    for (int unsigned g = 0; g < Groups; g++) begin
      if (rows[Groups-1-g] != '0) begin
        group = rows[Groups-1-g];
        base  = (Groups - 1 - g) * GroupRows;
      end
    end
    for (int unsigned i = 0; i < GroupRows; i++) begin
`ifdef HUE_PLANT_TCAM_ORDER
      if (group[i]) place = i;
`else
      if (group[GroupRows-1-i]) place = GroupRows - 1 - i;
`endif
    end
    return AddrBits'(base + place);
  endfunction

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      used_q  <= '0;
      valid_q <= 1'b0;
      hit_o   <= 1'b0;
    end else begin
      if (write_i) used_q[32'(write_addr_i)/GroupRows][32'(write_addr_i)%GroupRows] <= write_used_i;
      if (en_i) begin
        valid_q <= valid_i;
        hit_o   <= valid_q && match != '0;
      end
    end
  end
  always_ff @(posedge clk_i) begin
    if (en_i && valid_i) used1_q <= used_q;
    if (en_i && valid_q) addr_o <= lowest(match);
  end
endmodule
