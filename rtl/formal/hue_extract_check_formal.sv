// Proof harness of hue_extract_check: the key of a frame and its outcome are those of spec/kinds/extract.toml, for any lanes of its
// network, and do not depend on bytes behind the frame's end, whatever frames come before it.
//
// Place: scripts/formal. Inputs are free. The table of lanes has any rows (rows/hue_table.sv), which stay. The marked frame comes in in
// clock `Start`. A second copy gets the same frames with other bytes behind their ends.
module hue_extract_check_formal
  import hue_pkg::*;
  import hue_kinds_pkg::*;
  import hue_regs_pkg::*;
  import hue_stages_pkg::*;
#(
  parameter int unsigned Start = 2,
  parameter int unsigned LanesMax = 2
) (
  input logic            clk_i,
  input logic            rst_ni,
  input logic            en_i,
  input logic            valid_i,
  input logic            net_i,
  input hue_head_bytes_t head_any_i,  // of the frame that comes in
  input hue_head_bytes_t other_any_i,
  input logic [13:0]     len_any_i
);
  localparam int unsigned Nets = 2;
  tbl_req_t        tbl_req_i;
  tbl_rsp_t        tbl_rsp_o, other_rsp;
  hue_head_bytes_t head_i, other_i;
  logic [13:0]     len_i;
  extract_t        extract_o, other_o;
  logic            error_o, wait_o, stall_o, other_error, other_wait, other_stall;
  assign tbl_req_i = '0;
  hue_extract_check #(.Nets(Nets)) u_dut (.*);
  hue_extract_check #(.Nets(Nets)) u_other (
    .clk_i, .rst_ni, .tbl_req_i, .tbl_rsp_o(other_rsp), .error_o(other_error), .wait_o(other_wait), .stall_o(other_stall),
    .en_i, .valid_i, .net_i, .head_i(other_i), .len_i, .extract_o(other_o)
  );

  // A frame's vector and length stay until the next one comes in.
  logic       begun_q, mark, marked_q, done_q, valid_q;
  logic       net_q;
  logic [3:0] clock_q;
  assign mark = en_i && valid_i && clock_q == 4'(Start);
  initial begun_q = 1'b0;
  always_ff @(posedge clk_i) begin
    begun_q <= 1'b1;
    if (en_i) {head_i, other_i, len_i, net_q} <= {head_any_i, other_any_i, len_any_i, net_i};
    if (!rst_ni) {clock_q, marked_q, done_q, valid_q} <= '0;
    else begin
      if (clock_q != '1) clock_q <= clock_q + 4'd1;
      if (en_i) {done_q, marked_q, valid_q} <= {marked_q, mark, valid_i};
    end
  end

  row_lane_t    row;
  logic         short, more;
  logic [127:0] key;
  always_comb begin
    key   = '0;
    short = 1'b1;
    more  = 1'b1;
    row   = '0;
    for (int unsigned i = 0; i < LanesMax; i++) begin
      row = u_dut.u_lanes.rows_q[{net_q, 4'(i)}];
      if (row.mask == '0) more = 1'b0;
      if (more) begin
        if (i == 0) short = 1'b0;
        key[127-8*i-:8] = head_i.bytes[row.offset] & row.mask;
        if (32'(row.offset) >= 32'(len_i)) short = 1'b1;
      end
    end
  end
  logic         short_q;
  logic [127:0] key_q;
  logic [13:0]  rest, rest_q;
  always_comb begin
    rest = len_i - 14'd14;
    if ({head_i.bytes[12], head_i.bytes[13]} inside {16'h8100, 16'h88a8}) rest = rest < 14'd4 ? '0 : rest - 14'd4;
  end
  always_ff @(posedge clk_i) if (en_i) {short_q, key_q, rest_q} <= {short, key, rest};

  always_comb begin
    assume (rst_ni == begun_q);
    if (stall_o) assume (!en_i);
    assume (32'(len_any_i) >= FrameBytesMin && 32'(len_any_i) <= FrameBytesMax);
    for (int unsigned i = 0; i < HeadBytes; i++) begin
      assume (head_any_i.mask[i] == (i < 32'(len_any_i)) && other_any_i.mask[i] == head_any_i.mask[i]);
      if (head_any_i.mask[i]) assume (other_any_i.bytes[i] == head_any_i.bytes[i]);
    end
    for (int unsigned n = 0; n < Nets; n++) begin
      assume (u_dut.u_lanes.rows_q[16*n+LanesMax][14:7] == '0);
      for (int unsigned i = 0; i < 16; i++) if (begun_q) assume (u_other.u_lanes.rows_q[16*n+i] == u_dut.u_lanes.rows_q[16*n+i]);
    end
    if (begun_q) begin
      assert (stall_o == other_stall);
      // A frame that others have decided waits for no lanes.
      if (!valid_q) assert (!stall_o);
      if (done_q) begin
        assert (extract_o.asks == !short_q && extract_o.outcome == (short_q ? EXTRACT_SHORT : OutcomeNone));
        if (!short_q) assert (extract_o.key == key_q && extract_o.payload == rest_q);
        assert (other_o.asks == extract_o.asks && other_o.outcome == extract_o.outcome && (short_q || other_o == extract_o));
      end
    end
  end
  // A frame waits for its lanes, and no longer.
  logic [4:0] waited_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni || en_i) waited_q <= '0;
    else if (stall_o) waited_q <= waited_q + 5'd1;
  end
  always_comb if (begun_q && stall_o) assert (32'(waited_q) <= LanesMax);
  logic unused;
  assign unused = ^{error_o, wait_o, tbl_rsp_o, other_rsp, other_error, other_wait, head_i, other_i};
endmodule
