// The tables of one plane as in the papers: a TCAM for routes, another for single addresses (the router's own and its
// neighbours'), and the next hops with their MAC addresses.
//
// Place: hue_routes, one instance per plane. A connected prefix takes one route row; an address of the router or of a neighbour
// takes none. An address takes precedence over every route.
// `gate_i` stops the plane once the packets in it have left; its rows can still be written.
//
// Latency: 4 clocks in which `en_i` is 1. Throughput: one lookup a clock. `hop_o` is zero (no route) without a match.
// Source: Unnikrishnan §5 (planes of 32 routes).
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
    output logic              wait_o,  // the host accesses a table in the next clock: `en_i` must be 0 then
    input  logic              gate_i,
    input  logic              en_i,
    input  logic              valid_i,
    input  logic [31:0]       key_i,
    output row_hop_t          hop_o
);
  localparam int unsigned HopBits = HopRows > 1 ? $clog2(HopRows) : 1;

  hue_pkg::tbl_rsp_t route_rsp, local_rsp, hop_rsp;
  row_route_t route_row;
  row_local_t local_row;
  row_hop_t unused_hop_data, hop;
  typedef struct packed {
    logic [15:0] hop;
    logic        neighbour;
  } address_t;
  address_t address;           // the result of the matching address
  logic [15:0] route, index;   // the next hop of the matching route; the next hop that is read
  logic unused_hop_write, unused_parity, route_error, hop_error, address_error;
  logic [HopBits-1:0] unused_hop_addr;
  logic route_hit, address_hit, to_neighbour, move, unused_rows;
  logic [4:1] valid_q;

  // Gated only when empty: packets inside would be lost.
  assign move = en_i && !(gate_i && valid_q == '0);

  // The key is 0 unless the packet is this plane's, so packets of other planes switch no comparator.
  logic [31:0] key;
  assign key = valid_i ? key_i : '0;

  // ---- 1 to 3: which rows match, and their next hops
  assign unused_rows = &{1'b0, route_row, local_row};
  hue_ternary_table #(
    .Id(TABLE_ROUTE), .First(Plane * RouteRows), .Rows(RouteRows), .Total(Planes * RouteRows),
    .Width($bits(row_route_t)), .KeyBits(32), .ResultBits(16)
  ) u_route (
    .clk_i, .rst_ni, .tbl_req_i, .tbl_rsp_o(route_rsp),
    .row_o(route_row), .value_i(route_row.value), .mask_i(route_row.mask),
    .en_i(move), .valid_i, .key_i(key), .hit_o(route_hit), .result_o(route), .error_o(route_error)
  );
  hue_ternary_table #(
    .Id(TABLE_LOCAL), .First(Plane * LocalRows), .Rows(LocalRows), .Total(Planes * LocalRows),
    .Width($bits(row_local_t)), .KeyBits(32), .ResultBits($bits(address_t))
  ) u_local (
    .clk_i, .rst_ni, .tbl_req_i, .tbl_rsp_o(local_rsp),
    .row_o(local_row), .value_i(local_row.addr), .mask_i('1),
    .en_i(move), .valid_i, .key_i(key), .hit_o(address_hit), .result_o(address), .error_o(address_error)
  );

  // ---- 4: the next hop's row
  logic [4:3] hit_q;
  logic address_q, local_q;  // clocks 3 and 4
`ifdef HUE_PLANT_PLANE_NEIGHBOUR
  assign to_neighbour = address_q && address.neighbour && !hit_q[3];  // for scripts/rtl-test: the bench must find this
`else
  assign to_neighbour = address_q && address.neighbour;
`endif
  assign index = to_neighbour ? address.hop : route;
  hue_table #(
    .Id(TABLE_HOP), .First(Plane * HopRows), .Rows(HopRows), .Total(Planes * HopRows), .Width($bits(row_hop_t))
  ) u_hop (
    .clk_i, .rst_ni, .tbl_req_i, .tbl_rsp_o(hop_rsp),
    .write_o(unused_hop_write), .write_addr_o(unused_hop_addr), .write_data_o(unused_hop_data),
    .wait_o, .en_i(move), .addr_i(index[HopBits-1:0]), .data_o(hop), .parity_o(unused_parity),
    .check_i(move && valid_q[4] && hit_q[4]), .error_o(hop_error)
  );

  always_ff @(posedge clk_i) begin
    if (!rst_ni) valid_q <= '0;
    else if (move) valid_q <= {valid_q[3:1], valid_i};
  end
  always_ff @(posedge clk_i) begin
    if (move) begin
      hit_q     <= {(hit_q[3] || to_neighbour) && 32'(index) < HopRows, route_hit};
      address_q <= address_hit;
      local_q   <= address_q && !address.neighbour;
    end
  end
  always_comb begin
    hop_o = '0;
    if (valid_q[4]) begin
      if (hit_q[4]) hop_o = hop;
      if (local_q) hop_o.kind = hue_stages_pkg::HopLocal;
    end
  end
  assign tbl_rsp_o = route_rsp | local_rsp | hop_rsp;
  assign error_o   = hop_error || (move && valid_q[3]
    && ((address_q && address_error) || (hit_q[3] && !address_q && route_error)));

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni) assert (!(en_i && valid_i && !move)) else $error("hue_tcam_plane: a packet for a gated plane");
  end
`endif
endmodule
