// One memory of 36-bit words with two ports: headers and the host share one, items have the other.
//
// Place: two in each hue_dag36_level, for even and odd words. Maps to true dual-port block RAM, a deep one in columns
// (hue_pkg). A host access takes the clock of `host_en_i`, in which neither port may be read; a read also takes the next one
// (`back_i`), in which the word that lookups had read there is read again, so that they are not affected.
//
// Latency: 1 clock on either port. Throughput: one access a clock per port.
// A lookup never reads a word that is being written: new words are written before anything refers to them, and words
// are reused only after every lookup that could refer to them has left (retire epoch).
module hue_dag36_bank #(
    parameter int unsigned Words = 1024,  // at least 2
    localparam int unsigned AddrBits = $clog2(Words)
) (
    input  logic                clk_i,
    // host
    input  logic                host_en_i,
    input  logic                host_write_i,
    input  logic [AddrBits-1:0] host_addr_i,
    input  logic [35:0]         host_data_i,
    input  logic                back_i,
    // lookups; an output holds while its enable is 0, except that `header_o` is the host's word in the clock of `back_i`
    input  logic                header_en_i,
    input  logic                item_en_i,
    input  logic [AddrBits-1:0] header_addr_i,
    output logic [35:0]         header_o,
    input  logic [AddrBits-1:0] item_addr_i,
    output logic [35:0]         item_o
);
  if (Words < 2) begin : gen_check
    $fatal(1, "hue_dag36_bank: Words is %0d, at least 2", Words);
  end

  logic [AddrBits-1:0] addr, last_addr_q;
  logic write, read;

  assign write = host_en_i && host_write_i;
  assign read  = (header_en_i || host_en_i || back_i) && !write;
  assign addr  = host_en_i ? host_addr_i : back_i ? last_addr_q : header_addr_i;

  always_ff @(posedge clk_i) begin
    if (header_en_i) last_addr_q <= header_addr_i;
  end

  localparam int unsigned ColumnBits = hue_pkg::column_bits(Words, 36);
  for (genvar low = 0; low < 36; low += ColumnBits) begin : gen_column
    logic [ColumnBits-1:0] words_q[Words];
    logic [ColumnBits-1:0] header_q, item_q;
    always_ff @(posedge clk_i) begin
      if (write) words_q[addr] <= host_data_i[low+:ColumnBits];
      else if (read) header_q <= words_q[addr];
    end
    // No read happens in the clock of a write; the 'x says so, so that the block RAM needs no logic around it.
    always_ff @(posedge clk_i) begin
      if (item_en_i) item_q <= write && addr == item_addr_i ? 'x : words_q[item_addr_i];
    end
    assign header_o[low+:ColumnBits] = header_q;
    assign item_o[low+:ColumnBits]   = item_q;
  end

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    assert (!((host_en_i || back_i) && (header_en_i || item_en_i))) else $error("hue_dag36_bank: moved while the host is at a word");
  end
`endif
endmodule
