// Proof harness of hue_scatter: what leaves under a network is the same whatever the frames of other networks are.
//
// Place: scripts/formal. Two sides get the same frames of network A, at times of their own, and different frames of
// others; A is any network. Any one beat of what leaves under A must be the same at both, and as many must leave.
module hue_scatter_formal
  import hue_pkg::*;
#(
  parameter int unsigned Frames = 2,
  parameter int unsigned Beats = 4
) (
  input logic                            clk_i,
  input logic                            rst_ni,
  // Taken while in reset: any constants.
  input logic [5:0]                      net_i,
  input hue_verdict_t [Frames-1:0]       verdict_i,
  input logic [Frames-1:0][31:0]         tag_i,
  input logic [Frames-1:0][Beats-1:0][63:0] body_i,
  input logic [3:0]                      beat_i,
  // Of each side.
  input logic [1:0]                      offer_i,
  input logic [1:0]                      other_i,
  input logic [1:0]                      joint_i,
  input hue_verdict_t [1:0]              other_verdict_i,
  input logic [1:0][63:0]                other_body_i,
  input logic [1:0][31:0]                other_tag_i,
  input logic [1:0]                      fill_i,
  input logic [1:0]                      ready_i
);
  logic                            begun_q;
  logic [5:0]                      net_q;
  hue_verdict_t [Frames-1:0]       verdict_q;
  logic [Frames-1:0][31:0]         tag_q;
  logic [Frames-1:0][Beats-1:0][63:0] body_q;
  logic [3:0]                      beat_q;
  initial begun_q = 1'b0;
  always_ff @(posedge clk_i) begin
    begun_q <= 1'b1;
    if (!rst_ni) begin
      net_q <= net_i;
      tag_q <= tag_i;
      body_q <= body_i;
      beat_q <= beat_i;
      for (int unsigned f = 0; f < Frames; f++) begin
        verdict_q[f] <= verdict_i[f];
        verdict_q[f].net <= net_i;
        verdict_q[f].last <= 1'b1;
      end
    end
  end

  logic [1:0]                kept, last, to_cpu, done;
  logic [1:0][63:0]          data;
  hue_departure_t [1:0]      departure;
  hue_cpu_header_t [1:0]     header;
  logic [1:0][3:0]           count;
  for (genvar s = 0; s < 2; s++) begin : g_side
    hue_scatter_side #(.Frames(Frames), .Beats(Beats)) u_side (
      .clk_i, .rst_ni, .net_i(net_q), .verdict_i(verdict_q), .tag_i(tag_q), .body_i(body_q), .beat_i(beat_q),
      .offer_i(offer_i[s]), .other_i(other_i[s]), .joint_i(joint_i[s]), .other_verdict_i(other_verdict_i[s]),
      .other_body_i(other_body_i[s]), .other_tag_i(other_tag_i[s]), .fill_i(fill_i[s]), .ready_i(ready_i[s]),
      .kept_o(kept[s]), .data_o(data[s]), .last_o(last[s]), .departure_o(departure[s]), .to_cpu_o(to_cpu[s]),
      .header_o(header[s]), .done_o(done[s]), .count_o(count[s])
    );
  end

  always_comb begin
    assume (rst_ni == begun_q);
    for (int unsigned f = 0; f < Frames; f++) begin
      if (begun_q) assume (verdict_q[f].len >= 14'(FrameBytesMin) && verdict_q[f].len <= 14'(Beats * 8));
    end
    if (begun_q) begin
      if (kept == '1) begin
        assert ({data[0], last[0], departure[0], to_cpu[0], header[0]} == {data[1], last[1], departure[1], to_cpu[1], header[1]});
      end
      if (done == '1) assert (count[0] == count[1]);
    end
  end
endmodule
