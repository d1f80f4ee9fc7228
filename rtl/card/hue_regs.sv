// Registers of the card, and the access unit of its tables.
//
// Flow: driver → AXI-Lite → hue_regs → tables. The registers are described in spec/regs/card.rdl. A table access is held at
// `tbl_req_o` from the clock after the command until the table's owner answers, or 100 clocks pass without an answer (no
// such table); table, row and row data cannot be changed meanwhile. Words of a burst wait in a FIFO, each with its table
// and row, and are written one after the other in the same way; a word for which there is no room, or that comes while a
// command waits or runs, is held at AXI-Lite. A command starts when the FIFO is empty. So accesses happen in the order of
// their requests, and a write waits for at most `BurstWords` + 1 accesses. In the request of a burst word only the lowest
// 36 data bits are stable and valid.
//
// Latency: hue_axil's; a table access takes its owner's time plus 2 clocks. Throughput of a burst: one word in its owner's
// time plus 2 clocks, so 3 clocks if the table is free (ADR-0017).

module hue_regs #(
  parameter int unsigned ClockKhz = 125000,
  parameter int unsigned BusBytes = 32,
  parameter int unsigned Kinds = 2,
  parameter int unsigned Layout = 2,
  parameter int unsigned Planes = 1,
  parameter int unsigned Nets = 64,
  parameter int unsigned SelectRows = 256,
  parameter int unsigned MacRows = 0,
  parameter int unsigned AttachRows = 256,
  parameter int unsigned RouteRows = 0,
  parameter int unsigned LocalRows = 0,
  parameter int unsigned HopRows = 4096,
  parameter int unsigned Level0Words = 4096,
  parameter int unsigned Level1Words = 4096,
  parameter int unsigned Level2Words = 4096,
  parameter int unsigned Level3Words = 4096,
  parameter int unsigned SramWords = 0,
  parameter int unsigned CamRows = 0,
  parameter int unsigned SlotRows = 0,
  parameter int unsigned RangeRows = 0,
  parameter int unsigned PairRows = 0,
  parameter int unsigned RuleRows = 0,
  parameter int unsigned StationRows = 0,
  parameter int unsigned PatternRows = 0,
  parameter int unsigned TunnelRows = 0,
  parameter int unsigned OutputBytes = 131072,
  // Up to 16 ASCII characters, the first in the low byte.
  parameter logic [127:0] ImageName = '0
) (
  input  logic        clk_i,
  input  logic        rst_ni,

  input  logic        s_axil_awvalid_i,
  output logic        s_axil_awready_o,
  input  logic [23:0] s_axil_awaddr_i,
  input  logic        s_axil_wvalid_i,
  output logic        s_axil_wready_o,
  input  logic [31:0] s_axil_wdata_i,
  input  logic [3:0]  s_axil_wstrb_i,
  output logic        s_axil_bvalid_o,
  input  logic        s_axil_bready_i,
  output logic [1:0]  s_axil_bresp_o,
  input  logic        s_axil_arvalid_i,
  output logic        s_axil_arready_o,
  input  logic [23:0] s_axil_araddr_i,
  output logic        s_axil_rvalid_o,
  input  logic        s_axil_rready_i,
  output logic [31:0] s_axil_rdata_o,
  output logic [1:0]  s_axil_rresp_o,

  output hue_pkg::tbl_req_t tbl_req_o,
  input  hue_pkg::tbl_rsp_t tbl_rsp_i,

  output logic        offline_o,
  output logic        pause_o,          // input queues hold frames back
  output logic [31:0] gates_o,
  output logic        gated_to_cpu_o,
  output logic        hold_o,           // no record may enter the stages
  output logic        out_hold_o,       // no frame of network `out_hold_net_o` may start at a MAC port
  output logic [7:0]  out_hold_net_o,
  input  logic [hue_pkg::NetsMax-1:0] out_waits_i,
  // Pulses: a record entered the stages; the last verdict of a record left them.
  input  logic        accepted_i,
  input  logic        retired_i,
  input  logic [15:0] loop_came_i,      // frames that entered the loop, and that left it
  input  logic [15:0] loop_left_i,
  input  logic        ingress_idle_i,
  input  logic        idle_i,
  input  logic        memory_error_i,
  input  hue_pkg::sram_state_t sram_state_i,
  output logic        sram_fault_clear_o,
  input  logic        queue_drop_i,
  output logic        irq_o
);

  import hue_regs_pkg::*;

  if (BusBytes != 8 && BusBytes != 32 && BusBytes != 64) begin : g_bus_bytes
    $fatal(1, "BusBytes: expected 8, 32 or 64");
  end
  if (Planes < 1 || Planes > 16) begin : g_planes
    $fatal(1, "Planes: expected 1 to 16");
  end
  if (Nets < 1 || Nets > hue_pkg::NetsMax) begin : g_nets
    $fatal(1, "Nets: expected 1 to %0d", hue_pkg::NetsMax);
  end

  localparam int unsigned MacPorts = 4;
  localparam int unsigned CpuQueues = 4;
  localparam logic [6:0] TableClocksMax = 7'd100;
  // Burst words that can wait: room for what a host sends while a lookup holds the table for some clocks.
  localparam int unsigned BurstWords = 16;
  localparam logic [31:0] PlanesMask = 32'((64'd1 << Planes) - 64'd1);

  logic        reg_valid, reg_write, reg_error, reg_bad, wen, ren;
  logic [23:0] reg_addr;
  logic [31:0] reg_wdata, reg_rdata;
  logic        write_wait;

  hue_axil u_axil (
    .clk_i, .rst_ni,
    .s_axil_awvalid_i, .s_axil_awready_o, .s_axil_awaddr_i,
    .s_axil_wvalid_i, .s_axil_wready_o, .s_axil_wdata_i, .s_axil_wstrb_i,
    .s_axil_bvalid_o, .s_axil_bready_i, .s_axil_bresp_o,
    .s_axil_arvalid_i, .s_axil_arready_o, .s_axil_araddr_i,
    .s_axil_rvalid_o, .s_axil_rready_i, .s_axil_rdata_o, .s_axil_rresp_o,
    .reg_valid_o(reg_valid), .reg_write_o(reg_write), .reg_addr_o(reg_addr), .reg_wdata_o(reg_wdata),
    .reg_rdata_i(reg_rdata), .reg_error_i(reg_error), .reg_bad_o(reg_bad), .write_wait_i(write_wait)
  );

  assign wen = reg_valid && reg_write;
  assign ren = reg_valid && !reg_write;

  // State
  logic [31:0]           scratch_q, scratch_d, gates_q, gates_d;
  reg_control_t          control_q, control_d;
  reg_gated_t            gated_q, gated_d;
  reg_hold_t             hold_q, hold_d;
  reg_out_hold_t         out_hold_q, out_hold_d;
  reg_interrupt_status_t status_q, status_d, happened, cleared;
  reg_interrupt_enable_t enable_q, enable_d;
  reg_table_id_t         id_q, id_d;
  reg_table_index_t      index_q, index_d;
  logic [7:0][31:0]      data_q, data_d;
  logic                  busy_q, busy_d;      // a command waits or runs
  logic                  run_q, run_d;        // a request is at the tables
  logic                  burst_q, burst_d;    // it is a word of the burst
  reg_burst_place_t      place_q, place_d;
  logic [1:0]            burst_error_q, burst_error_d;
  logic [23:0]           burst_row_q, burst_row_d;
  logic [1:0]            command_q, command_d, error_q, error_d;
  logic [6:0]            clocks_q, clocks_d;
  logic [63:0]           cycles_q;
  logic [31:0]           cycles_high_q, cycles_high_d, accepted_q, retired_q;

  logic [31:0]       sram_reads_q, sram_lookups_q;
  reg_sram_fault_t   sram_fault;
  reg_bus_t          bus;
  reg_table_status_t table_status;
  reg_activity_t     activity;
  logic [1:0]        command;
  logic              table_failed, ended;
  logic [1:0]        ended_error;
  logic [2:0]        data_word;
  reg_burst_status_t burst_status;

  assign command = reg_wdata[1:0];
  assign data_word = 3'((reg_addr - ADDR_TABLE_DATA) >> 2);

  // Words of the burst
  typedef struct packed {
    logic [7:0]  id;
    logic [23:0] index;
    logic [35:0] word;
  } burst_t;
  localparam int unsigned RoomBits = $clog2(BurstWords + 1);
  burst_t burst_in, burst;
  logic   burst_push, burst_ready, burst_valid, burst_pop, burst_refused;
  logic [RoomBits-1:0] burst_room;
  logic   burst_full, command_ahead;

  // Arrays of registers are aligned to their size, so that decoding an address needs no carry chain.
  localparam int unsigned BurstBits = $clog2(4 * COUNT_BURST_WORD);
  localparam int unsigned DataBits = $clog2(4 * COUNT_TABLE_DATA);
  localparam int unsigned WaitsBits = $clog2(4 * COUNT_OUT_WAITS);
  if (32'(ADDR_BURST_WORD) % (1 << BurstBits) != 0 || 4 * COUNT_BURST_WORD != 1 << BurstBits ||
      32'(ADDR_TABLE_DATA) % (1 << DataBits) != 0 || 4 * COUNT_TABLE_DATA != 1 << DataBits ||
      32'(ADDR_OUT_WAITS) % (1 << WaitsBits) != 0 || 4 * COUNT_OUT_WAITS != 1 << WaitsBits) begin : g_arrays
    $fatal(1, "hue_regs: an array of registers does not stand at a multiple of its size");
  end
  function automatic logic is_burst_word(logic [23:0] addr);
    return addr >> BurstBits == ADDR_BURST_WORD >> BurstBits;
  endfunction
  function automatic logic is_data_word(logic [23:0] addr);
    return addr >> DataBits == ADDR_TABLE_DATA >> DataBits;
  endfunction
  function automatic logic takes_bursts(logic [7:0] id);
    return id inside {TABLE_LEVEL0, TABLE_LEVEL1, TABLE_LEVEL2, TABLE_LEVEL3, TABLE_SRAM, TABLE_SLOT};
  endfunction

  assign burst_in = '{id: place_q.id, index: place_q.index, word: {reg_addr[5:2], reg_wdata}};
  assign burst_push = wen && is_burst_word(reg_addr);
  // Includes the word pushed in this clock.
  assign burst_full = burst_room <= RoomBits'(burst_push);
  assign command_ahead = busy_q || (wen && reg_addr == ADDR_TABLE_COMMAND);
`ifdef HUE_PLANT_BURST_ROOM
  assign write_wait = is_burst_word(s_axil_awaddr_i) && command_ahead;
`elsif HUE_PLANT_BURST_ORDER
  assign write_wait = is_burst_word(s_axil_awaddr_i) && burst_full;
`else
  assign write_wait = is_burst_word(s_axil_awaddr_i) && (burst_full || command_ahead);
`endif
  hue_fifo #(.Depth(BurstWords), .Bits($bits(burst_t))) u_burst (
    .clk_i, .rst_ni, .valid_i(burst_push), .ready_o(burst_ready), .data_i(burst_in),
    .valid_o(burst_valid), .ready_i(burst_pop), .data_o(burst), .room_o(burst_room)
  );
  assign burst_refused = burst_valid && !run_q && !takes_bursts(burst.id);
  assign burst_pop = burst_refused || (run_q && !run_d && burst_q);

  always_comb begin
    bus = '0;
    bus.bytes = 8'(BusBytes);
    bus.mac_ports = 8'(MacPorts);
    bus.cpu_queues = 8'(CpuQueues);
    table_status = '0;
    table_status.busy = busy_q;
    table_status.error = error_q;
    sram_fault = '0;
    sram_fault.valid = sram_state_i.fault;
    sram_fault.index = sram_state_i.fault_index;
    burst_status = '0;
    burst_status.index = burst_row_q;
    burst_status.error = burst_error_q;
    burst_status.busy = burst_valid;
    activity = '0;
    activity.ingress_idle = ingress_idle_i;
    activity.idle = idle_i;
  end

  // Reads
  always_comb begin
    reg_rdata = '0;
    reg_error = 1'b0;
    unique case (reg_addr)
      ADDR_IDENT:            reg_rdata = RESET_IDENT;
      ADDR_VERSION:          reg_rdata = RESET_VERSION;
      ADDR_CLOCK:            reg_rdata = 32'(ClockKhz);
      ADDR_BUS:              reg_rdata = bus;
      ADDR_KINDS:            reg_rdata = 32'(Kinds);
      ADDR_LAYOUT:           reg_rdata = 32'(Layout);
      ADDR_PLANES:           reg_rdata = 32'(Planes);
      ADDR_NETS:             reg_rdata = 32'(Nets);
      ADDR_SELECT_ROWS:      reg_rdata = 32'(SelectRows);
      ADDR_MAC_ROWS:         reg_rdata = 32'(MacRows);
      ADDR_ATTACH_ROWS:      reg_rdata = 32'(AttachRows);
      ADDR_ROUTE_ROWS:       reg_rdata = 32'(RouteRows);
      ADDR_LOCAL_ROWS:       reg_rdata = 32'(LocalRows);
      ADDR_HOP_ROWS:         reg_rdata = 32'(HopRows);
      ADDR_LEVEL_WORDS:          reg_rdata = 32'(Level0Words);
      ADDR_LEVEL_WORDS + 24'd4:  reg_rdata = 32'(Level1Words);
      ADDR_LEVEL_WORDS + 24'd8:  reg_rdata = 32'(Level2Words);
      ADDR_LEVEL_WORDS + 24'd12: reg_rdata = 32'(Level3Words);
      ADDR_IMAGE_NAME:           reg_rdata = ImageName[31:0];
      ADDR_IMAGE_NAME + 24'd4:   reg_rdata = ImageName[63:32];
      ADDR_IMAGE_NAME + 24'd8:   reg_rdata = ImageName[95:64];
      ADDR_IMAGE_NAME + 24'd12:  reg_rdata = ImageName[127:96];
      ADDR_SCRATCH:          reg_rdata = scratch_q;
      ADDR_CONTROL:          reg_rdata = control_q;
      ADDR_CYCLES_LOW:       reg_rdata = cycles_q[31:0];
      ADDR_CYCLES_HIGH:      reg_rdata = cycles_high_q;
      ADDR_GATES:            reg_rdata = gates_q;
      ADDR_GATED:            reg_rdata = gated_q;
      ADDR_INTERRUPT_STATUS: reg_rdata = status_q;
      ADDR_INTERRUPT_ENABLE: reg_rdata = enable_q;
      ADDR_ACCEPTED:         reg_rdata = accepted_q;
      ADDR_RETIRED:          reg_rdata = retired_q;
      ADDR_ACTIVITY:         reg_rdata = activity;
      ADDR_HOLD:             reg_rdata = hold_q;
      ADDR_OUT_HOLD:         reg_rdata = out_hold_q;
      ADDR_OUT_BYTES:        reg_rdata = 32'(OutputBytes);
      ADDR_SRAM_WORDS:       reg_rdata = 32'(SramWords);
      ADDR_CAM_ROWS:         reg_rdata = 32'(CamRows);
      ADDR_SLOT_ROWS:        reg_rdata = 32'(SlotRows);
      ADDR_STATION_ROWS:     reg_rdata = 32'(StationRows);
      ADDR_PATTERN_ROWS:     reg_rdata = 32'(PatternRows);
      ADDR_POLICY_ROWS:      if (RangeRows != 0) reg_rdata = {8'd0, 8'($clog2(RuleRows)), 8'($clog2(PairRows)), 8'($clog2(RangeRows))};
      ADDR_TUNNEL_ROWS:      reg_rdata = 32'(TunnelRows);
      ADDR_LOOP_FRAMES:      reg_rdata = {loop_left_i, loop_came_i};
      ADDR_SRAM_FAULT:       reg_rdata = 32'(sram_fault);
      ADDR_SRAM_FAULTS:      reg_rdata = sram_state_i.fault_count;
      ADDR_SRAM_READS:       reg_rdata = sram_reads_q;
      ADDR_SRAM_LOOKUPS:     reg_rdata = sram_lookups_q;
      ADDR_TABLE_ID:         reg_rdata = id_q;
      ADDR_TABLE_INDEX:      reg_rdata = index_q;
      ADDR_TABLE_STATUS:     reg_rdata = table_status;
      ADDR_TABLE_COMMAND:    reg_error = !reg_write;
      ADDR_BURST_PLACE:      reg_rdata = place_q;
      ADDR_BURST_STATUS:     reg_rdata = 32'(burst_status);
      default: begin
        if (is_burst_word(reg_addr)) begin
          reg_error = !reg_write;
        end else if (is_data_word(reg_addr)) begin
          reg_rdata = data_q[data_word];
        end else if (reg_addr >> WaitsBits == ADDR_OUT_WAITS >> WaitsBits) begin
          reg_rdata = out_waits_i[32*reg_addr[4:2]+:32];
        end else begin
          reg_error = 1'b1;
        end
      end
    endcase
    // Writes to addresses that cannot be written, or cannot be written while the access unit is busy.
    if (reg_write) begin
      unique case (reg_addr)
        ADDR_SCRATCH, ADDR_CONTROL, ADDR_GATES, ADDR_GATED, ADDR_HOLD, ADDR_OUT_HOLD, ADDR_INTERRUPT_STATUS,
        ADDR_INTERRUPT_ENABLE, ADDR_SRAM_FAULT, ADDR_BURST_PLACE, ADDR_BURST_STATUS: ;
        ADDR_TABLE_ID, ADDR_TABLE_INDEX: reg_error = busy_q;
        ADDR_TABLE_COMMAND: reg_error = busy_q || command == 2'd0;
        default: reg_error = !is_burst_word(reg_addr) && (busy_q || !is_data_word(reg_addr));
      endcase
    end
  end

  // Writes, and state that changes without a write
  always_comb begin
    scratch_d = scratch_q;
    control_d = control_q;
    gates_d = gates_q;
    gated_d = gated_q;
    hold_d = hold_q;
    if (hold_q.clocks != '0) hold_d.clocks = hold_q.clocks - 1'b1;
    out_hold_d = out_hold_q;
    if (out_hold_q.clocks != '0) out_hold_d.clocks = out_hold_q.clocks - 1'b1;
    enable_d = enable_q;
    id_d = id_q;
    index_d = index_q;
    data_d = data_q;
    busy_d = busy_q;
    run_d = run_q;
    burst_d = burst_q;
    place_d = place_q;
    burst_error_d = burst_error_q;
    burst_row_d = burst_row_q;
    command_d = command_q;
    error_d = error_q;
    clocks_d = clocks_q;
    cycles_high_d = cycles_high_q;
    cleared = '0;
    sram_fault_clear_o = 1'b0;
    table_failed = 1'b0;

    ended = run_q && (tbl_rsp_i.done || clocks_q == TableClocksMax);
    ended_error = tbl_rsp_i.done ? tbl_rsp_i.error : TABLE_ERROR_NO_TABLE;
    if (run_q) clocks_d = clocks_q + 7'd1;
    if (ended) begin
      run_d = 1'b0;
      table_failed = ended_error != TABLE_ERROR_NONE;
      if (!burst_q) begin
        busy_d = 1'b0;
        error_d = ended_error;
        if (tbl_rsp_i.done && command_q != TABLE_COMMAND_WRITE && !table_failed) data_d = tbl_rsp_i.rdata;
      end
    end
    if (burst_refused) begin
      table_failed = 1'b1;
      ended_error = TABLE_ERROR_REFUSED;
    end

    if (ren && reg_addr == ADDR_CYCLES_LOW) cycles_high_d = cycles_q[63:32];
    // `reg_error` is too late in the clock to be used here, so its conditions for writes are repeated.
    if (wen) begin
      unique case (reg_addr)
        ADDR_SCRATCH: scratch_d = reg_wdata;
        ADDR_CONTROL: begin
          control_d.offline = reg_wdata[0];
          control_d.pause = reg_wdata[1];
        end
        ADDR_GATES: gates_d = reg_wdata & PlanesMask;
        ADDR_GATED: gated_d.to_cpu = reg_wdata[0];
        ADDR_HOLD: hold_d.clocks = reg_wdata[23:0];
        ADDR_OUT_HOLD: begin
          out_hold_d.clocks = reg_wdata[23:0];
          out_hold_d.net = reg_wdata[31:24];
        end
        ADDR_INTERRUPT_STATUS: cleared = reg_interrupt_status_t'(reg_wdata);
        ADDR_INTERRUPT_ENABLE: enable_d.mask = reg_wdata[3:0];
        ADDR_SRAM_FAULT: sram_fault_clear_o = reg_wdata[20];
        ADDR_TABLE_ID: if (!busy_q) id_d.id = reg_wdata[7:0];
        ADDR_TABLE_INDEX: if (!busy_q) index_d.index = reg_wdata[23:0];
        ADDR_TABLE_COMMAND: if (!busy_q && command != 2'd0) begin
          busy_d = 1'b1;
          command_d = command;
        end
        ADDR_BURST_PLACE: place_d = reg_burst_place_t'(reg_wdata);
        ADDR_BURST_STATUS: if (reg_wdata[25:24] != 2'd0) burst_error_d = TABLE_ERROR_NONE;
        default: begin
          if (is_burst_word(reg_addr)) place_d.index = place_q.index + 24'd1;
          else if (is_data_word(reg_addr) && !busy_q) data_d[data_word] = reg_wdata;
        end
      endcase
    end
    // The first error is kept, also one that comes in the clock in which the previous one is cleared.
`ifdef HUE_PLANT_BURST_LATEST
    if (table_failed && (burst_q || burst_refused)) begin
`else
    if (table_failed && (burst_q || burst_refused) && burst_error_d == TABLE_ERROR_NONE) begin
`endif
      burst_error_d = ended_error;
      burst_row_d = burst.index;
    end

    // The next access: burst words were requested before the waiting command.
    if (!run_q) begin
      clocks_d = '0;
`ifdef HUE_PLANT_COMMAND_FIRST
      run_d = burst_valid ? !burst_refused : busy_d;
      burst_d = burst_valid && !busy_d;
`else
      run_d = burst_valid ? !burst_refused : busy_d;
      burst_d = burst_valid;
`endif
    end

    happened = '0;
    happened.table_error = table_failed;
    happened.access_error = reg_bad || (reg_valid && reg_error);
    happened.memory_error = memory_error_i;
    happened.queue_drop = queue_drop_i;
    status_d = (status_q & ~cleared) | happened;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      scratch_q <= RESET_SCRATCH;
      control_q <= RESET_CONTROL;
      gates_q <= RESET_GATES;
      gated_q <= RESET_GATED;
      hold_q <= RESET_HOLD;
      out_hold_q <= RESET_OUT_HOLD;
      status_q <= RESET_INTERRUPT_STATUS;
      enable_q <= RESET_INTERRUPT_ENABLE;
      id_q <= RESET_TABLE_ID;
      index_q <= RESET_TABLE_INDEX;
      data_q <= '0;
      busy_q <= 1'b0;
      run_q <= 1'b0;
      burst_q <= 1'b0;
      place_q <= RESET_BURST_PLACE;
      burst_error_q <= TABLE_ERROR_NONE;
      burst_row_q <= '0;
      command_q <= '0;
      error_q <= TABLE_ERROR_NONE;
      clocks_q <= '0;
      cycles_q <= '0;
      cycles_high_q <= '0;
      accepted_q <= '0;
      retired_q <= '0;
      sram_reads_q <= '0;
      sram_lookups_q <= '0;
    end else begin
      scratch_q <= scratch_d;
      control_q <= control_d;
      gates_q <= gates_d;
      gated_q <= gated_d;
      hold_q <= hold_d;
      out_hold_q <= out_hold_d;
      status_q <= status_d;
      enable_q <= enable_d;
      id_q <= id_d;
      index_q <= index_d;
      data_q <= data_d;
      busy_q <= busy_d;
      run_q <= run_d;
      burst_q <= burst_d;
      place_q <= place_d;
      burst_error_q <= burst_error_d;
      burst_row_q <= burst_row_d;
      command_q <= command_d;
      error_q <= error_d;
      clocks_q <= clocks_d;
      cycles_q <= cycles_q + 64'd1;
      cycles_high_q <= cycles_high_d;
      accepted_q <= accepted_q + 32'(accepted_i);
      retired_q <= retired_q + 32'(retired_i);
      sram_reads_q <= sram_reads_q + 32'(sram_state_i.read[0]) + 32'(sram_state_i.read[1]);
      sram_lookups_q <= sram_lookups_q + 32'(sram_state_i.lookup);
    end
  end

  always_comb begin
    tbl_req_o = '0;
    tbl_req_o.valid = run_q;
    tbl_req_o.write = burst_q || command_q == TABLE_COMMAND_WRITE;
    tbl_req_o.clear = !burst_q && command_q == TABLE_COMMAND_CLEAR;
    tbl_req_o.id = burst_q ? burst.id : id_q.id;
    tbl_req_o.index = burst_q ? burst.index : index_q.index;
    tbl_req_o.wdata = data_q;
    if (burst_q) tbl_req_o.wdata[35:0] = burst.word;
  end

  assign offline_o = control_q.offline;
  assign pause_o = control_q.offline || control_q.pause;
  assign gates_o = gates_q;
  assign gated_to_cpu_o = gated_q.to_cpu;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) hold_o <= 1'b0;
    else hold_o <= hold_d.clocks != '0;
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni) out_hold_o <= 1'b0;
    else out_hold_o <= out_hold_d.clocks != '0;
  end
  assign out_hold_net_o = out_hold_q.net;
  assign irq_o = |(4'(status_q) & enable_q.mask);

`ifndef SYNTHESIS
  hue_pkg::tbl_req_t counts;
  always_comb begin
    counts = tbl_req_o;
    if (burst_q) counts.wdata[255:36] = '0;
  end
  a_request_stays: assert property (@(posedge clk_i) disable iff (!rst_ni)
    (tbl_req_o.valid && !tbl_rsp_i.done && clocks_q != TableClocksMax) |=> $stable(counts));
  a_clock_between: assert property (@(posedge clk_i) disable iff (!rst_ni)
    (tbl_req_o.valid && tbl_rsp_i.done) |=> !tbl_req_o.valid);
  a_room: assert property (@(posedge clk_i) disable iff (!rst_ni) burst_push |-> burst_ready);
  a_answer_only_when_asked: assert property (@(posedge clk_i) disable iff (!rst_ni)
    tbl_rsp_i.done |-> tbl_req_o.valid);
  a_access_ends: assert property (@(posedge clk_i) disable iff (!rst_ni) clocks_q <= TableClocksMax + 7'd1);
`endif

endmodule
