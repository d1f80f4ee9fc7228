// Skid buffer: a register with a spare slot, which cuts every combinational path between its two sides.
//
// Place: between parts of a stream. Latency: 1 clock. Throughput: a word a clock.

module hue_skid #(
  parameter int unsigned Bits = 8
) (
  input  logic            clk_i,
  input  logic            rst_ni,
  input  logic            valid_i,
  output logic            ready_o,
  input  logic [Bits-1:0] data_i,
  output logic            valid_o,
  input  logic            ready_i,
  output logic [Bits-1:0] data_o
);

  logic            valid_q, spare_q;
  logic [Bits-1:0] data_q, spare_data_q;

  assign ready_o = !spare_q;
  assign valid_o = valid_q;
  assign data_o = data_q;

  always_ff @(posedge clk_i) begin
    if (!valid_q || ready_i) data_q <= spare_q ? spare_data_q : data_i;
    if (!spare_q) spare_data_q <= data_i;
    if (!rst_ni) begin
      valid_q <= 1'b0;
      spare_q <= 1'b0;
    end else if (!valid_q || ready_i) begin
      valid_q <= spare_q || valid_i;
      spare_q <= 1'b0;
    end else begin
      spare_q <= spare_q || valid_i;
    end
  end

`ifndef SYNTHESIS
  a_stable: assert property (@(posedge clk_i) disable iff (!rst_ni)
    (valid_o && !ready_i) |=> (valid_o && $stable(data_o)));
  a_latency: assert property (@(posedge clk_i) disable iff (!rst_ni) (valid_i && ready_o) |=> valid_o);
  a_spare_behind: assert property (@(posedge clk_i) disable iff (!rst_ni) spare_q |-> valid_q);
`endif

endmodule
