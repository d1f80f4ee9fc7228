// Groups of next hops: replaces a packet's next hop that is a group by the member that the packet's hash selects.
//
// Place: in hue_routes, between the lookup and the next hop's row, in images with groups. In Rust: `Hops::through` in
// crates/soft/src/network.rs. Table GROUP says of each row of HOP whether it is a group, and where its slots are: a small table, so that
// the wide rows of HOP are read once a packet, behind this module. Table SLOT has the members.
// Isolation: a packet uses the groups in its own network's run of rows only. A slot has the index of the network that owns it; a packet of
// another network that comes to it has no route. The slot names a row of the packet's own network, relative to its run, and whoever uses
// it compares it with the length of the run, as a word of the lookup. So whatever the tables contain, a packet takes rows of its own
// network only. A member is not looked up in GROUP again: it is never taken as a group.
// Changes: GROUP has a row a group and SLOT a row a slot, so each packet sees the old group or the new one, and the old member or the new one.
//
// Latency: 7 clocks in which `en_i` is 1. Throughput: one packet a clock. A write of a row stops it for one clock, a read for two.
module hue_groups
  import hue_pkg::*;
  import hue_regs_pkg::*;
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
    output logic                wait_o,       // the host accesses a table in the next clock: `en_i` must be 0 then
    input  logic                en_i,
    input  logic                ask_i,        // a packet that uses its next hop
    input  logic [15:0]         hop_i,        // relative to the network's run; any number
    input  logic [15:0]         hop_base_i,   // the network's run of rows
    input  logic [15:0]         hop_count_i,
    input  logic [7:0]          net_i,
    input  logic [HashBits-1:0] hash_i,
    output logic [15:0]         hop_o         // the same, or the member; HopMissing: the slot is not the network's
);
  localparam int unsigned HopBits = HopRows > 1 ? $clog2(HopRows) : 1;
  localparam int unsigned SlotBits = $clog2(SlotRows);
  localparam logic [15:0] HopMissing = '1;
  if (SlotRows < 2 || SlotRows > 65536 || (SlotRows & (SlotRows - 1)) != 0) begin : gen_check
    $fatal(1, "hue_groups: SlotRows is %0d, a power of two from 2 to 65536", SlotRows);
  end

  tbl_rsp_t   group_rsp, slot_rsp;
  logic       group_wait, slot_wait, group_error, slot_error;
  row_group_t group, group3_q;
  row_slot_t  slot, slot6_q;
  assign tbl_rsp_o = group_rsp | slot_rsp;
  assign wait_o    = group_wait || slot_wait;
  assign error_o   = group_error || slot_error;

  // What a packet needs to come through.
  typedef struct packed {
    logic [15:0]         hop;
    logic [7:0]          net;
    logic [HashBits-1:0] hash;
  } entry_t;
  entry_t [6:1] entry_q;
  logic   [3:1] own_q;    // the packet asks, and its next hop is a row of its network
  logic   [6:4] group_q;  // this row is a group

  // ---- 1: the row's place
  logic [16:0]        index;
  logic               own;
  logic [HopBits-1:0] addr1_q;
  assign index = {1'b0, hop_base_i} + {1'b0, hop_i};
  assign own   = ask_i && hop_i < hop_count_i && 32'(index) < HopRows;

  // ---- 2: the row; 3: the same from a register, because a row comes late in its clock; 4: the slot's place
  logic [HopBits-1:0] unused_group_addr;
  row_group_t         unused_group_data;
  logic               unused_group_write, unused_group_parity;
  hue_table #(.Id(TABLE_GROUP), .Rows(HopRows), .Width($bits(row_group_t)), .Reset(1'b0)) u_group (
    .clk_i, .rst_ni, .tbl_req_i, .tbl_rsp_o(group_rsp),
    .write_o(unused_group_write), .write_addr_o(unused_group_addr), .write_data_o(unused_group_data),
    .wait_o(group_wait), .en_i, .addr_i(addr1_q), .data_o(group), .parity_o(unused_group_parity),
    .check_i(en_i && own_q[2]), .error_o(group_error)
  );
  logic [15:0]         place;
  logic [HashBits-1:0] mask, lowest;
  logic [SlotBits-1:0] addr4_q;
  always_comb begin
    for (int unsigned i = 0; i < HashBits; i++) mask[i] = 4'(i) < group3_q.bits;
  end
`ifdef HUE_PLANT_GROUPS_HALF
  assign lowest = entry_q[3].hash & (mask >> 1);  // for scripts/rtl-test and scripts/formal
`else
  assign lowest = entry_q[3].hash & mask;
`endif
  assign place = group3_q.first | 16'(lowest);

  // ---- 5: the slot; 6: from a register; 7: the member
  logic [SlotBits-1:0] unused_slot_addr;
  row_slot_t           unused_slot_data;
  logic                unused_slot_write, unused_slot_parity;
  hue_table #(.Id(TABLE_SLOT), .Rows(SlotRows), .Width($bits(row_slot_t)), .Reset(1'b0)) u_slot (
    .clk_i, .rst_ni, .tbl_req_i, .tbl_rsp_o(slot_rsp),
    .write_o(unused_slot_write), .write_addr_o(unused_slot_addr), .write_data_o(unused_slot_data),
    .wait_o(slot_wait), .en_i, .addr_i(addr4_q), .data_o(slot), .parity_o(unused_slot_parity),
    .check_i(en_i && group_q[5]), .error_o(slot_error)
  );
  logic owner;
`ifdef HUE_PLANT_GROUPS_OWNER
  assign owner = 1'b1;  // likewise
`else
  assign owner = slot6_q.net == entry_q[6].net;
`endif

  always_ff @(posedge clk_i) begin
    if (en_i) begin
      // A packet without a next hop leaves the address as it is, so that the memory does not switch; so does one without a group.
      if (own) addr1_q <= index[HopBits-1:0];
      if (own_q[3] && group3_q.valid) addr4_q <= place[SlotBits-1:0];
      group3_q <= group;
      slot6_q  <= slot;
      entry_q  <= {entry_q[5:1], {hop_i, net_i, hash_i}};
      own_q    <= {own_q[2:1], own};
      group_q  <= {group_q[5:4], own_q[3] && group3_q.valid};
      hop_o    <= !group_q[6] ? entry_q[6].hop : owner ? slot6_q.hop : HopMissing;
    end
  end
  logic unused;
  assign unused = &{1'b0, entry_q, place, slot6_q};
endmodule
