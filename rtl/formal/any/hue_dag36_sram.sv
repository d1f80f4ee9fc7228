// Replaces hue_dag36_sram in proofs that must hold for any trie. It holds one arbitrary route: a lookup with its root and its address
// gets its next hop, every other lookup gets none.
//
// Place: in the sources of proofs that name it. The caller cannot tell routes apart, so one arbitrary route represents each of many.
// It answers after `Clocks` clocks in which answers are taken; the real module takes as many clocks as a lookup reads words, and more.
module hue_dag36_sram #(
    parameter int unsigned Slots   = 32,
    parameter int unsigned KeyBits = 32,
    parameter int unsigned TagBits = 1,
    parameter int unsigned Latency = 4,
    parameter bit          Twice   = 1'b0,
    localparam int unsigned SlotBits = $clog2(Slots)
) (
    input  logic               clk_i,
    input  logic               rst_ni,
    input  logic               valid_i,
    output logic               ready_o,
    output logic               tight_o,
    input  logic [35:0]        item_i,
    input  logic [KeyBits-1:0] key_i,
    input  logic [TagBits-1:0] tag_i,
    input  logic                holds_i,
    output logic [SlotBits-1:0] slot_o,
    input  logic [SlotBits-1:0] ask_slot_i,
    output logic                ask_ended_o,
    output logic                ask_error_o,
    output logic [15:0]         ask_hop_o,
    input  logic                judged_i,
    output logic                judged_ready_o,
    input  logic [SlotBits-1:0] judged_slot_i,
    input  logic                again_i,
    input  logic [KeyBits-1:0]  again_key_i,
    output logic               valid_o,
    input  logic               ready_i,
    output logic [15:0]        hop_o,
    output logic               error_o,
    output logic [TagBits-1:0] tag_o,
    input  logic               host_valid_i,
    input  logic               host_write_i,
    input  logic [19:0]        host_index_i,
    input  logic [35:0]        host_data_i,
    output logic               host_done_o,
    output logic [35:0]        host_data_o,
    input  logic               fault_clear_i,
    output logic               fault_o,
    output logic [19:0]        fault_index_o,
    output logic [31:0]        fault_count_o,
    output logic [1:0]         read_o,
    output logic [1:0]         sram_en_o,
    output logic [1:0]         sram_write_o,
    output logic [1:0][18:0]   sram_addr_o,
    output logic [1:0][35:0]   sram_wdata_o,
    input  logic [1:0][35:0]   sram_rdata_i
);
  localparam int unsigned Clocks = 2;
  typedef struct packed {
    logic [15:0]        hop;
    logic [35:0]        item;
    logic [KeyBits-1:0] key;
  } route_t;
  (* anyseq *) route_t any;  // sampled during reset
  route_t route_q;
  logic [Clocks:1] valid_q, hit_q;
  logic [Clocks:1][TagBits-1:0] tag_q;
  assign {valid_o, tag_o} = {valid_q[Clocks], tag_q[Clocks]};
  assign hop_o   = hit_q[Clocks] ? route_q.hop : '1;
  assign ready_o = 1'b1;
  assign {tight_o, error_o, host_done_o, host_data_o, fault_o, fault_index_o, fault_count_o, read_o} = '0;
  assign {sram_en_o, sram_write_o, sram_addr_o, sram_wdata_o} = '0;
  assign {slot_o, ask_ended_o, ask_error_o, ask_hop_o, judged_ready_o} = '0;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      route_q <= any;
      valid_q <= '0;
    end else if (ready_i) begin
      valid_q <= {valid_q[Clocks-1:1], valid_i};
    end
    if (ready_i) begin
      hit_q <= {hit_q[Clocks-1:1], item_i == route_q.item && key_i == route_q.key};
      tag_q <= {tag_q[Clocks-1:1], tag_i};
    end
  end
  logic unused;
  assign unused = &{1'b0, Slots, Latency, Twice, holds_i, ask_slot_i, judged_i, judged_slot_i, again_i, again_key_i, host_valid_i, host_write_i, host_index_i, host_data_i, fault_clear_i, sram_rdata_i};
endmodule
