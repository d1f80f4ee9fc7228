// Nanoseconds since reset, counted in clocks: the timestamp of frames where the MAC provides none.
//
// Place: beside hue_card's streams. Exact over any time: the fraction of a nanosecond in each clock is accumulated.
// Latency: none. Wraps after 584 years.

module hue_board_time #(
  parameter int unsigned ClockKhz = 250000
) (
  input  logic        clk_i,
  input  logic        rst_ni,
  output logic [63:0] time_ns_o
);

  localparam int unsigned NsKhz = 1_000_000;  // period of a 1 kHz clock in nanoseconds
  localparam int unsigned WholeNs = NsKhz / ClockKhz;
  localparam int unsigned Rest = NsKhz % ClockKhz;

  if (ClockKhz < 1 || ClockKhz > NsKhz / 2) begin : g_clock
    $fatal(1, "ClockKhz: expected 1 to 500000");
  end

  logic [63:0] time_q;
  logic [19:0] rest_q, rest;
  logic        carry;

  assign rest = rest_q + 20'(Rest);
  assign carry = 32'(rest) >= ClockKhz;
  assign time_ns_o = time_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      time_q <= '0;
      rest_q <= '0;
    end else begin
      time_q <= time_q + 64'(WholeNs) + 64'(carry);
      rest_q <= carry ? rest - 20'(ClockKhz) : rest;
    end
  end

endmodule
