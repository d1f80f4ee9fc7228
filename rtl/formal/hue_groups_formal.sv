// Proof harness of hue_groups: a packet's next hop, or the member of its group, for any contents of the tables, whatever packets come
// before and after it.
//
// Place: scripts/formal. Inputs are free. The tables have any rows (rows/hue_table.sv), which stay. The marked packet comes in in clock
// `Start`.
module hue_groups_formal
  import hue_pkg::*;
  import hue_regs_pkg::*;
  import hue_stages_pkg::*;
#(
  parameter int unsigned Start = 3
) (
  input logic                clk_i,
  input logic                rst_ni,
  input logic                en_i,
  input logic                ask_i,
  input logic [15:0]         hop_i,
  input logic [15:0]         hop_base_i,
  input logic [15:0]         hop_count_i,
  input logic [7:0]          net_i,
  input logic [HashBits-1:0] hash_i
);
  localparam int unsigned HopRows = 4;
  localparam int unsigned SlotRows = 8;
  localparam int unsigned Latency = 7;
  tbl_req_t    tbl_req_i;
  tbl_rsp_t    tbl_rsp_o;
  logic        error_o, wait_o;
  logic [15:0] hop_o;
  assign tbl_req_i = '0;
  hue_groups #(.HopRows(HopRows), .SlotRows(SlotRows)) u_dut (.*);

  typedef struct packed {
    logic                ask;
    logic [15:0]         hop;
    logic [15:0]         hop_base;
    logic [15:0]         hop_count;
    logic [7:0]          net;
    logic [HashBits-1:0] hash;
  } packet_t;
  packet_t          packet_q;
  logic             begun_q, mark;
  logic [3:0]       clock_q;
  logic [Latency:1] mark_q;
  assign mark = en_i && clock_q == 4'(Start);
  initial begun_q = 1'b0;
  always_ff @(posedge clk_i) begin
    begun_q <= 1'b1;
    if (mark) packet_q <= '{ask: ask_i, hop: hop_i, hop_base: hop_base_i, hop_count: hop_count_i, net: net_i, hash: hash_i};
    if (!rst_ni) {mark_q, clock_q} <= '0;
    else begin
      clock_q <= clock_q + 4'd1;
      if (en_i) mark_q <= {mark_q[Latency-1:1], mark};
    end
  end

  int unsigned index, place;
  row_group_t  group;
  row_slot_t   slot;
  logic [15:0] expected;
  assign index = 32'(packet_q.hop_base) + 32'(packet_q.hop);
  assign group = u_dut.u_group.rows_q[index%HopRows];
  // The lowest `bits` bits of the hash, which has no more than it has.
  assign place = 32'(group.first) | (32'(packet_q.hash) % (32'd1 << group.bits));
  assign slot = u_dut.u_slot.rows_q[place%SlotRows];
  always_comb begin
    expected = packet_q.hop;
    if (packet_q.ask && packet_q.hop < packet_q.hop_count && index < HopRows && group.valid) begin
      expected = slot.net == packet_q.net ? slot.hop : '1;
    end
  end
  always_comb begin
    assume (rst_ni == begun_q);
    if (begun_q && mark_q[Latency]) begin
      assert (hop_o == expected);
      // A slot of another network gives no next hop.
      assert (hop_o == packet_q.hop || hop_o == '1 || slot.net == packet_q.net);
    end
  end
  logic unused;
  assign unused = ^{error_o, wait_o, tbl_rsp_o};
endmodule
