// Replaces hue_tcam_plane in proofs that must hold for any plane. It holds one arbitrary route: an address that matches it gets its
// next hop, every other address gets none.
//
// Place: in the sources of proofs that name it. The caller cannot tell routes apart, so one arbitrary route represents each of many.
// Timing and ports are those of the module; its answers to the host are free.
module hue_tcam_plane
  import hue_regs_pkg::*;
#(
    parameter int unsigned Plane     = 0,
    parameter int unsigned Planes    = 1,
    parameter int unsigned RouteRows = 32,
    parameter int unsigned LocalRows = 32,
    parameter int unsigned HopRows   = 32
) (
    input  logic              clk_i,
    input  logic              rst_ni,
    input  hue_pkg::tbl_req_t tbl_req_i,
    output hue_pkg::tbl_rsp_t tbl_rsp_o,
    output logic              error_o,
    output logic              wait_o,
    input  logic              gate_i,
    input  logic              en_i,
    input  logic              valid_i,
    input  logic [31:0]       key_i,
    output row_hop_t          hop_o
);
  typedef struct packed {
    row_hop_t    hop;
    logic [31:0] mask;
    logic [31:0] value;
  } route_t;
  (* anyseq *) route_t any;  // sampled during reset
  route_t route_q;
  (* anyseq *) hue_pkg::tbl_rsp_t rsp;
  logic [3:1] hit_q;
  assign tbl_rsp_o = rsp;
  assign wait_o    = 1'b0;
  assign error_o   = 1'b0;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      route_q <= any;
      hit_q <= '0;
      hop_o <= '0;
    end else if (en_i) begin
      hit_q <= {hit_q[2:1], valid_i && ((key_i ^ route_q.value) & route_q.mask) == '0};
      hop_o <= hit_q[3] ? route_q.hop : '0;
    end
  end
  logic unused;
  assign unused = &{1'b0, Plane, Planes, RouteRows, LocalRows, HopRows, tbl_req_i, gate_i};
endmodule
