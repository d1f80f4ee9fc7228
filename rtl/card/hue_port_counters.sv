// Tables PORT and OUT_DROPS: what each port received, sent and dropped, and by network the packets that found no room.
//
// Place: beside the data path. The access unit can read and clear the counters, but not write them.
// Latency: an answer at most 21 clocks after the request, from registers, because it is ORed with those of all other tables.
// Throughput: an event a clock for each port and kind of event.

module hue_port_counters
  import hue_pkg::*;
#(
  parameter int unsigned Nets = 64
) (
  input  logic                   clk_i,
  input  logic                   rst_ni,
  output logic                   ready_o,       // 0 after reset until the counters are zero, and occasionally for one clock
  output logic                   ready_soon_o,  // `ready_o` in the clock after the next

  input  logic [Ports-1:0]       rx_valid_i,
  input  logic [Ports-1:0][15:0] rx_bytes_i,
  input  logic [Ports-1:0]       rx_dropped_i,
  input  logic [MacPorts-1:0]    flood_dropped_i,
  input  logic [Ports-1:0]       tx_valid_i,
  input  logic [Ports-1:0][13:0] tx_bytes_i,
  input  logic                   out_dropped_i,     // only when ready_o
  input  logic [2:0]             out_dropped_port_i,
  input  logic [7:0]             out_dropped_net_i,

  input  tbl_req_t               tbl_req_i,
  output tbl_rsp_t               tbl_rsp_o
);

  localparam int unsigned Kinds = 8;  // rows of a port in table PORT; the last one stays zero
  localparam int unsigned PortRows = Ports * Kinds;
  // In OUT_DROPS the rows of two ports are NetsMax apart; the first `Nets` rows of each port exist.
  localparam int unsigned NetBits = Nets > 1 ? $clog2(Nets) : 1;
  localparam int unsigned PortLow = $clog2(NetsMax);

  logic [Ports-1:0][Kinds-1:0][15:0] add;
  always_comb begin
    add = '0;
    for (int unsigned p = 0; p < Ports; p++) begin
      add[p][0] = 16'(rx_valid_i[p]);
      add[p][1] = rx_valid_i[p] ? rx_bytes_i[p] : '0;
      add[p][2] = 16'(rx_dropped_i[p]);
      add[p][3] = 16'(tx_valid_i[p]);
      add[p][4] = tx_valid_i[p] ? 16'(tx_bytes_i[p]) : '0;
      add[p][5] = 16'(out_dropped_i && out_dropped_port_i == 3'(p));
      if (p < MacPorts) add[p][6] = 16'(flood_dropped_i[p]);
    end
  end

  logic        asked, port_asked, drops_asked, port_fits, drops_fits, port_done, drops_done, refused, beyond;
  logic [63:0] port_value, drops_value;

  // While the answer is on the bus, the request has ended.
  assign asked = tbl_req_i.valid && !tbl_rsp_o.done;
  assign port_asked = asked && tbl_req_i.id == hue_regs_pkg::TABLE_PORT;
  assign drops_asked = asked && tbl_req_i.id == hue_regs_pkg::TABLE_OUT_DROPS;
  assign port_fits = tbl_req_i.index < 24'(PortRows);
  assign drops_fits = 32'(tbl_req_i.index) < Ports * NetsMax && 32'(tbl_req_i.index[PortLow-1:0]) < Nets;
  assign refused = (port_asked || drops_asked) && tbl_req_i.write;
  assign beyond = (port_asked && !port_fits) || (drops_asked && !drops_fits);

  hue_counters #(.Count(PortRows), .AddBits(16), .PendingBits(18)) u_ports (
    .clk_i, .rst_ni, .add_i(add),
    .host_valid_i(port_asked && port_fits && !refused), .host_clear_i(tbl_req_i.clear),
    .host_index_i(tbl_req_i.index[$clog2(PortRows)-1:0]), .host_done_o(port_done), .host_value_o(port_value)
  );

  hue_counter_ram #(.Words(Ports << NetBits)) u_drops (
    .clk_i, .rst_ni, .ready_o, .ready_soon_o, .valid_i(out_dropped_i),
    .index_i({out_dropped_port_i, out_dropped_net_i[NetBits-1:0]}), .add_i(16'd1),
    .host_valid_i(drops_asked && drops_fits && !refused), .host_clear_i(tbl_req_i.clear),
    .host_index_i({tbl_req_i.index[PortLow+:3], tbl_req_i.index[NetBits-1:0]}), .host_done_o(drops_done), .host_value_o(drops_value)
  );

  tbl_rsp_t answer;
  always_comb begin
    answer = '0;
    if (beyond) begin
      answer.done = 1'b1;
      answer.error = hue_regs_pkg::TABLE_ERROR_RANGE;
    end else if (refused) begin
      answer.done = 1'b1;
      answer.error = hue_regs_pkg::TABLE_ERROR_REFUSED;
    end else begin
      answer.done = port_done || drops_done;
      answer.rdata = port_done ? 256'(port_value) : drops_done ? 256'(drops_value) : '0;
    end
  end
  always_ff @(posedge clk_i) tbl_rsp_o <= rst_ni ? answer : '0;

  logic unused;
  assign unused = ^{tbl_req_i.wdata, out_dropped_net_i};

`ifndef SYNTHESIS
  logic [4:0] waited_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni || !ready_o || !(port_asked || drops_asked) || tbl_rsp_o.done) waited_q <= '0;
    else waited_q <= waited_q + 5'd1;
    assert (!rst_ni || waited_q < 5'd21) else $error("hue_port_counters: latency");
  end
`endif

endmodule
