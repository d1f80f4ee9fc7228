// Replaces hue_dag36 in proofs that must hold for any trie. It holds one arbitrary route: a lookup with its root and its address gets
// its next hop, every other lookup gets none.
//
// Place: in the sources of proofs that name it. The caller cannot tell routes apart, so one arbitrary route represents each of many.
// It answers after `Latency` clocks, the real module after 44. When it answers the host, and with what, is free.
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
    input  logic               ask_i,
    input  logic [35:0]        item_i,
    input  logic [31:0]        key_i,
    input  logic [TagBits-1:0] tag_i,
    output logic               valid_o,
    output logic [15:0]        hop_o,
    output logic [TagBits-1:0] tag_o,
    output logic               error_o,
    output logic               wait_o,
    input  logic               host_en_i,
    input  logic               host_write_i,
    input  logic [1:0]         host_level_i,
    input  logic [23:0]        host_index_i,
    input  logic [35:0]        host_data_i,
    output logic               host_done_o,
    output logic [35:0]        host_data_o
);
  localparam int unsigned Latency = 2;
  typedef struct packed {
    logic [15:0] hop;
    logic [35:0] item;
    logic [31:0] key;
  } route_t;
  (* anyseq *) route_t any;  // sampled during reset
  route_t route_q;
  (* anyseq *) logic answers;
  (* anyseq *) logic [35:0] data;
  logic [Latency:1] valid_q, hit_q;
  logic [Latency:1][TagBits-1:0] tag_q;
  logic asked_q;
  assign {valid_o, tag_o} = {valid_q[Latency], tag_q[Latency]};
  assign hop_o       = hit_q[Latency] ? route_q.hop : '1;
  assign wait_o      = 1'b0;
  assign error_o     = 1'b0;
  assign host_done_o = asked_q && answers;
  assign host_data_o = data;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      route_q <= any;
      valid_q <= '0;
      asked_q <= 1'b0;
    end else begin
      if (en_i) valid_q <= {valid_q[Latency-1:1], valid_i};
      asked_q <= host_en_i || (asked_q && !answers);
    end
    if (en_i) begin
      hit_q <= {hit_q[Latency-1:1], ask_i && item_i == route_q.item && key_i == route_q.key};
      tag_q <= {tag_q[Latency-1:1], tag_i};
    end
  end
  logic unused;
  assign unused = &{1'b0, Level0Words, Level1Words, Level2Words, Level3Words, host_write_i, host_level_i, host_index_i, host_data_i};
endmodule
