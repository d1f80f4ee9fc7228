// Generated from spec/regs by spec/regs/generate.py: edit those files, then `make generate`.
/* verilator lint_off UNUSEDPARAM */
package hue_regs_pkg;
  // Byte addresses of registers, and their values after reset.
  localparam logic [23:0] ADDR_IDENT = 24'h000000;
  localparam logic [31:0] RESET_IDENT = 32'h48554543;
  localparam logic [23:0] ADDR_VERSION = 24'h000004;
  localparam logic [31:0] RESET_VERSION = 32'h0004000c;
  localparam logic [23:0] ADDR_CLOCK = 24'h000008;
  localparam logic [31:0] RESET_CLOCK = 32'h00000000;
  localparam logic [23:0] ADDR_BUS = 24'h00000c;
  localparam logic [31:0] RESET_BUS = 32'h00000000;
  localparam logic [23:0] ADDR_KINDS = 24'h000010;
  localparam logic [31:0] RESET_KINDS = 32'h00000000;
  localparam logic [23:0] ADDR_LAYOUT = 24'h000014;
  localparam logic [31:0] RESET_LAYOUT = 32'h00000000;
  localparam logic [23:0] ADDR_PLANES = 24'h000018;
  localparam logic [31:0] RESET_PLANES = 32'h00000000;
  localparam logic [23:0] ADDR_NETS = 24'h00001c;
  localparam logic [31:0] RESET_NETS = 32'h00000000;
  localparam logic [23:0] ADDR_SELECT_ROWS = 24'h000020;
  localparam logic [31:0] RESET_SELECT_ROWS = 32'h00000000;
  localparam logic [23:0] ADDR_ATTACH_ROWS = 24'h000024;
  localparam logic [31:0] RESET_ATTACH_ROWS = 32'h00000000;
  localparam logic [23:0] ADDR_ROUTE_ROWS = 24'h000028;
  localparam logic [31:0] RESET_ROUTE_ROWS = 32'h00000000;
  localparam logic [23:0] ADDR_LOCAL_ROWS = 24'h00002c;
  localparam logic [31:0] RESET_LOCAL_ROWS = 32'h00000000;
  localparam logic [23:0] ADDR_HOP_ROWS = 24'h000030;
  localparam logic [31:0] RESET_HOP_ROWS = 32'h00000000;
  localparam logic [23:0] ADDR_LEVEL_WORDS = 24'h000034;
  localparam int unsigned COUNT_LEVEL_WORDS = 4;
  localparam logic [31:0] RESET_LEVEL_WORDS = 32'h00000000;
  localparam logic [23:0] ADDR_IMAGE_NAME = 24'h000044;
  localparam int unsigned COUNT_IMAGE_NAME = 4;
  localparam logic [31:0] RESET_IMAGE_NAME = 32'h00000000;
  localparam logic [23:0] ADDR_SCRATCH = 24'h000080;
  localparam logic [31:0] RESET_SCRATCH = 32'h00000000;
  localparam logic [23:0] ADDR_CONTROL = 24'h000084;
  localparam logic [31:0] RESET_CONTROL = 32'h00000000;
  localparam logic [23:0] ADDR_CYCLES_LOW = 24'h000088;
  localparam logic [31:0] RESET_CYCLES_LOW = 32'h00000000;
  localparam logic [23:0] ADDR_CYCLES_HIGH = 24'h00008c;
  localparam logic [31:0] RESET_CYCLES_HIGH = 32'h00000000;
  localparam logic [23:0] ADDR_GATES = 24'h000090;
  localparam logic [31:0] RESET_GATES = 32'h00000000;
  localparam logic [23:0] ADDR_GATED = 24'h000094;
  localparam logic [31:0] RESET_GATED = 32'h00000000;
  localparam logic [23:0] ADDR_INTERRUPT_STATUS = 24'h000098;
  localparam logic [31:0] RESET_INTERRUPT_STATUS = 32'h00000000;
  localparam logic [23:0] ADDR_INTERRUPT_ENABLE = 24'h00009c;
  localparam logic [31:0] RESET_INTERRUPT_ENABLE = 32'h00000000;
  localparam logic [23:0] ADDR_ACCEPTED = 24'h0000a0;
  localparam logic [31:0] RESET_ACCEPTED = 32'h00000000;
  localparam logic [23:0] ADDR_RETIRED = 24'h0000a4;
  localparam logic [31:0] RESET_RETIRED = 32'h00000000;
  localparam logic [23:0] ADDR_ACTIVITY = 24'h0000a8;
  localparam logic [31:0] RESET_ACTIVITY = 32'h00000000;
  localparam logic [23:0] ADDR_HOLD = 24'h0000ac;
  localparam logic [31:0] RESET_HOLD = 32'h00000000;
  localparam logic [23:0] ADDR_OUT_HOLD = 24'h0000b0;
  localparam logic [31:0] RESET_OUT_HOLD = 32'h00000000;
  localparam logic [23:0] ADDR_SLOT_ROWS = 24'h0000b4;
  localparam logic [31:0] RESET_SLOT_ROWS = 32'h00000000;
  localparam logic [23:0] ADDR_OUT_BYTES = 24'h0000bc;
  localparam logic [31:0] RESET_OUT_BYTES = 32'h00000000;
  localparam logic [23:0] ADDR_SRAM_WORDS = 24'h0000c0;
  localparam logic [31:0] RESET_SRAM_WORDS = 32'h00000000;
  localparam logic [23:0] ADDR_SRAM_FAULT = 24'h0000c4;
  localparam logic [31:0] RESET_SRAM_FAULT = 32'h00000000;
  localparam logic [23:0] ADDR_SRAM_FAULTS = 24'h0000c8;
  localparam logic [31:0] RESET_SRAM_FAULTS = 32'h00000000;
  localparam logic [23:0] ADDR_SRAM_READS = 24'h0000cc;
  localparam logic [31:0] RESET_SRAM_READS = 32'h00000000;
  localparam logic [23:0] ADDR_SRAM_LOOKUPS = 24'h0000d0;
  localparam logic [31:0] RESET_SRAM_LOOKUPS = 32'h00000000;
  localparam logic [23:0] ADDR_MAC_ROWS = 24'h0000d4;
  localparam logic [31:0] RESET_MAC_ROWS = 32'h00000000;
  localparam logic [23:0] ADDR_CAM_ROWS = 24'h0000d8;
  localparam logic [31:0] RESET_CAM_ROWS = 32'h00000000;
  localparam logic [23:0] ADDR_STATION_ROWS = 24'h0000dc;
  localparam logic [31:0] RESET_STATION_ROWS = 32'h00000000;
  localparam logic [23:0] ADDR_OUT_WAITS = 24'h0000e0;
  localparam int unsigned COUNT_OUT_WAITS = 8;
  localparam logic [31:0] RESET_OUT_WAITS = 32'h00000000;
  localparam logic [23:0] ADDR_TABLE_ID = 24'h000100;
  localparam logic [31:0] RESET_TABLE_ID = 32'h00000000;
  localparam logic [23:0] ADDR_TABLE_INDEX = 24'h000104;
  localparam logic [31:0] RESET_TABLE_INDEX = 32'h00000000;
  localparam logic [23:0] ADDR_TABLE_COMMAND = 24'h000108;
  localparam logic [31:0] RESET_TABLE_COMMAND = 32'h00000000;
  localparam logic [23:0] ADDR_TABLE_STATUS = 24'h00010c;
  localparam logic [31:0] RESET_TABLE_STATUS = 32'h00000000;
  localparam logic [23:0] ADDR_TABLE_DATA = 24'h000120;
  localparam int unsigned COUNT_TABLE_DATA = 8;
  localparam logic [31:0] RESET_TABLE_DATA = 32'h00000000;
  localparam logic [23:0] ADDR_BURST_PLACE = 24'h000140;
  localparam logic [31:0] RESET_BURST_PLACE = 32'h00000000;
  localparam logic [23:0] ADDR_BURST_STATUS = 24'h000144;
  localparam logic [31:0] RESET_BURST_STATUS = 32'h00000000;
  localparam logic [23:0] ADDR_TUNNEL_ROWS = 24'h000150;
  localparam logic [31:0] RESET_TUNNEL_ROWS = 32'h00000000;
  localparam logic [23:0] ADDR_LOOP_FRAMES = 24'h000154;
  localparam logic [31:0] RESET_LOOP_FRAMES = 32'h00000000;
  localparam logic [23:0] ADDR_POLICY_ROWS = 24'h000158;
  localparam logic [31:0] RESET_POLICY_ROWS = 32'h00000000;
  localparam logic [23:0] ADDR_PATTERN_ROWS = 24'h00015c;
  localparam logic [31:0] RESET_PATTERN_ROWS = 32'h00000000;
  localparam logic [23:0] ADDR_BURST_WORD = 24'h000180;
  localparam int unsigned COUNT_BURST_WORD = 16;
  localparam logic [31:0] RESET_BURST_WORD = 32'h00000000;

  // Layout.
  localparam logic [7:0] LAYOUT_TCAM = 8'd1;
  localparam logic [7:0] LAYOUT_DAG36 = 8'd2;
  localparam logic [7:0] LAYOUT_SRAM = 8'd3;
  localparam logic [7:0] LAYOUT_DIR = 8'd4;

  // TableCommand.
  localparam logic [1:0] TABLE_COMMAND_READ = 2'd1;
  localparam logic [1:0] TABLE_COMMAND_WRITE = 2'd2;
  localparam logic [1:0] TABLE_COMMAND_CLEAR = 2'd3;

  // TableError.
  localparam logic [1:0] TABLE_ERROR_NONE = 2'd0;
  localparam logic [1:0] TABLE_ERROR_NO_TABLE = 2'd1;
  localparam logic [1:0] TABLE_ERROR_RANGE = 2'd2;
  localparam logic [1:0] TABLE_ERROR_REFUSED = 2'd3;

  // Registers, 32 bits.
  typedef struct packed {
    logic [31:0] id;
  } reg_ident_t;
  typedef struct packed {
    logic [15:0] major;
    logic [15:0] minor;
  } reg_version_t;
  typedef struct packed {
    logic [31:0] khz;
  } reg_clock_t;
  typedef struct packed {
    logic [7:0]  gap24;
    logic [7:0]  cpu_queues;
    logic [7:0]  mac_ports;
    logic [7:0]  bytes;
  } reg_bus_t;
  typedef struct packed {
    logic [31:0] bitmap;
  } reg_kinds_t;
  typedef struct packed {
    logic [23:0] gap8;
    logic [7:0]  kind;
  } reg_layout_t;
  typedef struct packed {
    logic [23:0] gap8;
    logic [7:0]  count;
  } reg_planes_t;
  typedef struct packed {
    logic [15:0] gap16;
    logic [15:0] count;
  } reg_nets_t;
  typedef struct packed {
    logic [31:0] rows;
  } reg_select_rows_t;
  typedef struct packed {
    logic [31:0] rows;
  } reg_attach_rows_t;
  typedef struct packed {
    logic [31:0] rows;
  } reg_route_rows_t;
  typedef struct packed {
    logic [31:0] rows;
  } reg_local_rows_t;
  typedef struct packed {
    logic [31:0] rows;
  } reg_hop_rows_t;
  typedef struct packed {
    logic [31:0] words;
  } reg_level_words_t;
  typedef struct packed {
    logic [31:0] text;
  } reg_image_name_t;
  typedef struct packed {
    logic [31:0] value;
  } reg_scratch_t;
  typedef struct packed {
    logic [29:0] gap2;
    logic        pause;
    logic        offline;
  } reg_control_t;
  typedef struct packed {
    logic [31:0] value;
  } reg_cycles_low_t;
  typedef struct packed {
    logic [31:0] value;
  } reg_cycles_high_t;
  typedef struct packed {
    logic [31:0] planes;
  } reg_gates_t;
  typedef struct packed {
    logic [30:0] gap1;
    logic        to_cpu;
  } reg_gated_t;
  typedef struct packed {
    logic [27:0] gap4;
    logic        queue_drop;
    logic        memory_error;
    logic        access_error;
    logic        table_error;
  } reg_interrupt_status_t;
  typedef struct packed {
    logic [27:0] gap4;
    logic [3:0]  mask;
  } reg_interrupt_enable_t;
  typedef struct packed {
    logic [31:0] count;
  } reg_accepted_t;
  typedef struct packed {
    logic [31:0] count;
  } reg_retired_t;
  typedef struct packed {
    logic [29:0] gap2;
    logic        idle;
    logic        ingress_idle;
  } reg_activity_t;
  typedef struct packed {
    logic [7:0]  gap24;
    logic [23:0] clocks;
  } reg_hold_t;
  typedef struct packed {
    logic [7:0]  net;
    logic [23:0] clocks;
  } reg_out_hold_t;
  typedef struct packed {
    logic [31:0] rows;
  } reg_slot_rows_t;
  typedef struct packed {
    logic [31:0] bytes;
  } reg_out_bytes_t;
  typedef struct packed {
    logic [31:0] words;
  } reg_sram_words_t;
  typedef struct packed {
    logic [10:0] gap21;
    logic        valid;
    logic [19:0] index;
  } reg_sram_fault_t;
  typedef struct packed {
    logic [31:0] count;
  } reg_sram_faults_t;
  typedef struct packed {
    logic [31:0] count;
  } reg_sram_reads_t;
  typedef struct packed {
    logic [31:0] count;
  } reg_sram_lookups_t;
  typedef struct packed {
    logic [31:0] rows;
  } reg_mac_rows_t;
  typedef struct packed {
    logic [31:0] rows;
  } reg_cam_rows_t;
  typedef struct packed {
    logic [31:0] rows;
  } reg_station_rows_t;
  typedef struct packed {
    logic [31:0] nets;
  } reg_out_waits_t;
  typedef struct packed {
    logic [23:0] gap8;
    logic [7:0]  id;
  } reg_table_id_t;
  typedef struct packed {
    logic [7:0]  gap24;
    logic [23:0] index;
  } reg_table_index_t;
  typedef struct packed {
    logic [29:0] gap2;
    logic [1:0]  command;
  } reg_table_command_t;
  typedef struct packed {
    logic [28:0] gap3;
    logic [1:0]  error;
    logic        busy;
  } reg_table_status_t;
  typedef struct packed {
    logic [31:0] value;
  } reg_table_data_t;
  typedef struct packed {
    logic [7:0]  id;
    logic [23:0] index;
  } reg_burst_place_t;
  typedef struct packed {
    logic [4:0]  gap27;
    logic        busy;
    logic [1:0]  error;
    logic [23:0] index;
  } reg_burst_status_t;
  typedef struct packed {
    logic [31:0] rows;
  } reg_tunnel_rows_t;
  typedef struct packed {
    logic [15:0] left;
    logic [15:0] came;
  } reg_loop_frames_t;
  typedef struct packed {
    logic [7:0]  gap24;
    logic [7:0]  rules;
    logic [7:0]  pairs;
    logic [7:0]  ranges;
  } reg_policy_rows_t;
  typedef struct packed {
    logic [31:0] rows;
  } reg_pattern_rows_t;
  typedef struct packed {
    logic [31:0] value;
  } reg_burst_word_t;

  // Tables behind the access unit: numbers, and rows without the unused bits above them.
  localparam logic [7:0] TABLE_SELECT = 8'd1;
  localparam logic [7:0] TABLE_ATTACH = 8'd2;
  localparam logic [7:0] TABLE_ATTACH_HEAD = 8'd3;
  localparam logic [7:0] TABLE_NETWORK = 8'd4;
  localparam logic [7:0] TABLE_METER = 8'd5;
  localparam logic [7:0] TABLE_ROUTE = 8'd6;
  localparam logic [7:0] TABLE_HOP = 8'd7;
  localparam logic [7:0] TABLE_LEVEL0 = 8'd8;
  localparam logic [7:0] TABLE_LEVEL1 = 8'd9;
  localparam logic [7:0] TABLE_LEVEL2 = 8'd10;
  localparam logic [7:0] TABLE_LEVEL3 = 8'd11;
  localparam logic [7:0] TABLE_COUNT = 8'd12;
  localparam logic [7:0] TABLE_BYTES = 8'd13;
  localparam logic [7:0] TABLE_PORT = 8'd14;
  localparam logic [7:0] TABLE_UNCLAIMED = 8'd15;
  localparam logic [7:0] TABLE_OUT_DROPS = 8'd16;
  localparam logic [7:0] TABLE_LOCAL = 8'd18;
  localparam logic [7:0] TABLE_SRAM = 8'd19;
  localparam logic [7:0] TABLE_MAC = 8'd20;
  localparam logic [7:0] TABLE_DEBT = 8'd21;
  localparam logic [7:0] TABLE_QUANTUM = 8'd22;
  localparam logic [7:0] TABLE_CONFLICT = 8'd23;
  localparam logic [7:0] TABLE_FILL = 8'd24;
  localparam logic [7:0] TABLE_STATION = 8'd25;
  localparam logic [7:0] TABLE_STORM = 8'd26;
  localparam logic [7:0] TABLE_STORM_DEBT = 8'd27;
  localparam logic [7:0] TABLE_COPIES = 8'd28;
  localparam logic [7:0] TABLE_GROUP = 8'd29;
  localparam logic [7:0] TABLE_SLOT = 8'd30;
  localparam logic [7:0] TABLE_TUNNEL = 8'd31;
  localparam logic [7:0] TABLE_TUNNEL_NEAR = 8'd32;
  localparam logic [7:0] TABLE_TUNNEL_COUNT = 8'd33;
  localparam logic [7:0] TABLE_POLICY = 8'd34;
  localparam logic [7:0] TABLE_RANGE = 8'd35;
  localparam logic [7:0] TABLE_PAIR = 8'd36;
  localparam logic [7:0] TABLE_RULE = 8'd37;
  localparam logic [7:0] TABLE_LANE = 8'd38;
  localparam logic [7:0] TABLE_PATTERN = 8'd39;
  localparam logic [7:0] TABLE_PATTERN_HOP = 8'd40;
  localparam logic [7:0] TABLE_PORT_MAC = 8'd41;
  typedef struct packed {
    logic [7:0]  vport;
    logic [7:0]  net;
    logic        arp_care;
    logic        inner_care;
    logic [31:0] inner;
    logic [31:0] inner_mask;
    logic [47:0] mac;
    logic        mac_care;
    logic [2:0]  port;
    logic        port_care;
    logic        valid;
  } row_select_t;
  typedef struct packed {
    logic [7:0]  vport;
    logic [7:0]  net;
    logic        valid;
  } row_attach_t;
  typedef struct packed {
    logic [15:0] count;
    logic [15:0] start;
  } row_attach_head_t;
  typedef struct packed {
    logic        policies;
    logic        carries_vxlan;
    logic        carries_ipip;
    logic [35:0] root_ipv6;
    logic [4:0]  kind;
    logic        gated;
    logic        forward_martians;
    logic        software;
    logic [15:0] hop_count;
    logic [15:0] hop_base;
    logic [35:0] root;
    logic [3:0]  plane;
    logic [11:0] vid;
    logic        valid;
  } row_network_t;
  typedef struct packed {
    logic [39:0] bits_burst;
    logic [39:0] bits_rate;
    logic        bits_on;
    logic [39:0] packets_burst;
    logic [39:0] packets_rate;
    logic        packets_on;
  } row_meter_t;
  typedef struct packed {
    logic [15:0] hop;
    logic [31:0] mask;
    logic [31:0] value;
    logic        valid;
  } row_route_t;
  typedef struct packed {
    logic [47:0] src;
    logic [47:0] dst;
    logic [15:0] mtu;
    logic [2:0]  port;
    logic [1:0]  kind;
  } row_hop_t;
  typedef struct packed {
    logic [35:0] word;
  } row_level0_t;
  typedef struct packed {
    logic [35:0] word;
  } row_level1_t;
  typedef struct packed {
    logic [35:0] word;
  } row_level2_t;
  typedef struct packed {
    logic [35:0] word;
  } row_level3_t;
  typedef struct packed {
    logic [63:0] value;
  } row_count_t;
  typedef struct packed {
    logic [63:0] value;
  } row_bytes_t;
  typedef struct packed {
    logic [63:0] value;
  } row_port_t;
  typedef struct packed {
    logic [63:0] value;
  } row_unclaimed_t;
  typedef struct packed {
    logic [63:0] value;
  } row_out_drops_t;
  typedef struct packed {
    logic [15:0] hop;
    logic        neighbour;
    logic [31:0] addr;
    logic        valid;
  } row_local_t;
  typedef struct packed {
    logic [35:0] word;
  } row_sram_t;
  typedef struct packed {
    logic [7:0]  vport;
    logic [7:0]  net;
    logic [47:0] mac;
    logic [2:0]  port;
    logic        valid;
  } row_mac_t;
  typedef struct packed {
    logic [63:0] time_ns;
    logic [5:0]  bits_high;
    logic [63:0] bits_low;
    logic [5:0]  packets_high;
    logic [63:0] packets_low;
  } row_debt_t;
  typedef struct packed {
    logic [15:0] bytes;
  } row_quantum_t;
  typedef struct packed {
    logic [18:0] index;
    logic [4:0]  length;
    logic [18:0] prefix;
    logic [11:0] vid;
    logic        valid;
  } row_conflict_t;
  typedef struct packed {
    logic [35:0] word;
    logic [19:0] count;
    logic [19:0] index;
    logic        written;
    logic        running;
  } row_fill_t;
  typedef struct packed {
    logic        old;
    logic        fixed;
    logic [2:0]  port;
    logic [7:0]  net;
    logic [47:0] mac;
    logic        valid;
  } row_station_t;
  typedef struct packed {
    logic [39:0] bits_burst;
    logic [39:0] bits_rate;
    logic        bits_on;
    logic [39:0] packets_burst;
    logic [39:0] packets_rate;
    logic        packets_on;
  } row_storm_t;
  typedef struct packed {
    logic [63:0] time_ns;
    logic [5:0]  bits_high;
    logic [63:0] bits_low;
    logic [5:0]  packets_high;
    logic [63:0] packets_low;
  } row_storm_debt_t;
  typedef struct packed {
    logic [63:0] value;
  } row_copies_t;
  typedef struct packed {
    logic [3:0]  bits;
    logic [15:0] first;
    logic        valid;
  } row_group_t;
  typedef struct packed {
    logic [15:0] hop;
    logic [7:0]  net;
  } row_slot_t;
  typedef struct packed {
    logic        any_mac;
    logic [63:0] remote_high;
    logic [63:0] remote_low;
    logic [23:0] vni;
    logic        wide;
    logic        vxlan;
    logic [7:0]  over_vport;
    logic [7:0]  over;
    logic        valid;
  } row_tunnel_t;
  typedef struct packed {
    logic [5:0]  dscp;
    logic        dscp_fixed;
    logic [7:0]  ttl;
    logic [7:0]  vport;
    logic [7:0]  net;
    logic [47:0] over_mac;
    logic [47:0] mac;
    logic [63:0] local_high;
    logic [63:0] local_low;
  } row_tunnel_near_t;
  typedef struct packed {
    logic [63:0] value;
  } row_tunnel_count_t;
  typedef struct packed {
    logic [15:0] rule_count;
    logic [15:0] rule_first;
    logic [15:0] pair_count;
    logic [15:0] pair_first;
    logic [3:0]  destination_bits;
    logic [15:0] destination_count;
    logic [15:0] destination_first;
    logic [3:0]  source_bits;
    logic [15:0] source_count;
    logic [15:0] source_first;
  } row_policy_t;
  typedef struct packed {
    logic [15:0] value;
    logic [63:0] start_high;
    logic [63:0] start_low;
  } row_range_t;
  typedef struct packed {
    logic [15:0] rule;
  } row_pair_t;
  typedef struct packed {
    logic [8:0]  both;
    logic [63:0] via_high;
    logic [63:0] via_low;
  } row_rule_t;
  typedef struct packed {
    logic [7:0]  mask;
    logic [6:0]  offset;
  } row_lane_t;
  typedef struct packed {
    logic [63:0] mask_high;
    logic [63:0] mask_low;
    logic [63:0] value_high;
    logic [63:0] value_low;
  } row_pattern_t;
  typedef struct packed {
    logic [19:0] label;
    logic [15:0] hop;
    logic [7:0]  net;
  } row_pattern_hop_t;
  typedef struct packed {
    logic [47:0] mac;
  } row_port_mac_t;
endpackage
/* verilator lint_on UNUSEDPARAM */
