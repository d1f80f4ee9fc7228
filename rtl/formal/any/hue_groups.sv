// Replaces hue_groups in proofs that must hold for any groups. One arbitrary packet (its next hop, run of rows, network and hash) gets an
// arbitrary next hop, all others keep theirs.
//
// Place: in the sources of proofs that name it. The caller cannot tell groups apart, so one arbitrary packet represents all.
// It answers after `Clocks` clocks in which `en_i` is 1.
module hue_groups
  import hue_pkg::*;
  import hue_stages_pkg::*;
#(
    parameter int unsigned HopRows  = 32,
    parameter int unsigned SlotRows = 64
) (
    input  logic                clk_i,
    input  logic                rst_ni,
    input  tbl_req_t            tbl_req_i,
    output tbl_rsp_t            tbl_rsp_o,
    output logic                error_o,
    output logic                wait_o,
    input  logic                en_i,
    input  logic                ask_i,
    input  logic [15:0]         hop_i,
    input  logic [15:0]         hop_base_i,
    input  logic [15:0]         hop_count_i,
    input  logic [7:0]          net_i,
    input  logic [HashBits-1:0] hash_i,
    output logic [15:0]         hop_o
);
  localparam int unsigned Clocks = 3;
  typedef struct packed {
    logic [15:0]         hop;
    logic [15:0]         hop_base;
    logic [15:0]         hop_count;
    logic [7:0]          net;
    logic [HashBits-1:0] hash;
    logic [15:0]         member;
  } chosen_t;
  (* anyseq *) chosen_t any;  // sampled during reset
  chosen_t chosen_q;
  logic [Clocks:1][15:0] hop_q;
  logic hit;
  assign hit = ask_i && {hop_i, hop_base_i, hop_count_i, net_i, hash_i} ==
               {chosen_q.hop, chosen_q.hop_base, chosen_q.hop_count, chosen_q.net, chosen_q.hash};
  always_ff @(posedge clk_i) begin
    if (!rst_ni) chosen_q <= any;
    if (en_i) hop_q <= {hop_q[Clocks-1:1], hit ? chosen_q.member : hop_i};
  end
  assign hop_o = hop_q[Clocks];
  assign {tbl_rsp_o, error_o, wait_o} = '0;
  logic unused;
  assign unused = &{1'b0, tbl_req_i, HopRows, SlotRows};
endmodule
