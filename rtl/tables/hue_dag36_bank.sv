// One memory of 36-bit words with a port for the host (write or read) and a port for lookups (read).
//
// Maps to true dual-port block RAM. Latency: 1 clock on either port. Throughput: one access a clock a port.
// A lookup never reads a word that is being written: new words are written before anything refers to them, and words
// are reused only after every lookup that could hold them has left (retire epoch).
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
    output logic [35:0]         host_data_o,
    // lookups; `data_o` keeps its value while `en_i` is 0
    input  logic                en_i,
    input  logic [AddrBits-1:0] addr_i,
    output logic [35:0]         data_o
);
  if (Words < 2) begin : gen_check
    $fatal(1, "hue_dag36_bank: Words is %0d, at least 2", Words);
  end

  logic [35:0] words_q[Words];

  always_ff @(posedge clk_i) begin
    if (host_en_i) begin
      if (host_write_i) words_q[host_addr_i] <= host_data_i;
      else host_data_o <= words_q[host_addr_i];
    end
  end

  always_ff @(posedge clk_i) begin
    if (en_i) data_o <= words_q[addr_i];
  end
endmodule
