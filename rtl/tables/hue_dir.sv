// The papers' longest-prefix match in two external SRAMs, shared by all networks: the Conflict CAM, then one word or two.
//
// Place: hue_dir_banks, with a hue_sram_port for each bank. The words and the steps of a change: crates/tables/src/dir/words.rs;
// Dir (crates/tables/src/dir.rs) generates them.
// A lookup searches the CAM for VID and address; the index of the row found, or else the first 19 bits of the address,
// selects a word of bank 1; if that has the flag, its set and the last 13 bits of the address select a word of bank 2. A
// word is used only if it belongs to this network and was reached as it states, so that no network gets another's.
// Changes: the host writes words through the SRAM ports and rows here, one after the other, in the order that Dir gives. At a
// `Drain` it raises `drain_i` for one clock and waits for `drained_o`, or it waits in another way until the lookups accepted so
// far have left, as the card's driver does. So every lookup gets either the old or the new answer for its address. (A /8 is
// 2^11 words: until all are written, some addresses get the new answer and others the old one.)
// Latency: with both ports free, Bank1Latency + 4 clocks for one word, Bank1Latency + Bank2Latency + 5 for two (the ports'
// `RspLatency`). Throughput: one lookup a clock, whatever it reads, less the clocks that the host takes; answers in order;
// at most InFlight lookups in flight. A word with wrong parity gives `error_o` and no route.
// Source: Unnikrishnan §5.1; the owner in each entry is our addition.
module hue_dir #(
    parameter int unsigned CamRows  = 32,  // a power of two, at least 2
    parameter int unsigned InFlight = 32,  // a power of two; more than the latency, for one lookup a clock
    parameter int unsigned TagBits  = 8,
    localparam int unsigned SlotBits = 19,  // address bits that index bank 1
    localparam int unsigned RowBits  = $clog2(CamRows)
) (
    input  logic                clk_i,
    input  logic                rst_ni,
    // lookups
    input  logic                valid_i,
    output logic                ready_o,
    input  logic                ask_i,    // 0: what is read does not matter; the answer is no route, without an error
    input  logic [11:0]         vid_i,
    input  logic [31:0]         key_i,    // destination address
    input  logic [TagBits-1:0]  tag_i,
    output logic                valid_o,
    output logic [15:0]         hop_o,    // next-hop word; 65535: no prefix matches
    output logic                error_o,  // a word had wrong parity
    output logic [TagBits-1:0]  tag_o,
    // host: a whole row of the CAM; lookups accepted from the next clock on see it
    input  logic                row_write_i,
    input  logic [RowBits-1:0]  row_i,
    input  logic                row_used_i,
    input  logic [11:0]         row_vid_i,
    input  logic [SlotBits-1:0] row_prefix_i,
    input  logic [4:0]          row_length_i,  // at most 19
    input  logic [SlotBits-1:0] row_index_i,
    // host: whether the lookups in flight have left
    input  logic                drain_i,
    output logic                drained_o,  // valid from the next clock on: lookups accepted before `drain_i` have been answered
    output logic [1:0]          read_o,     // per bank: a word is read for a lookup that asks
    // the banks' ports (hue_sram_port), whose answers come in order
    output logic                bank1_valid_o,
    input  logic                bank1_ready_i,
    output logic [SlotBits-1:0] bank1_addr_o,
    input  logic                bank1_rsp_valid_i,
    input  logic [34:0]         bank1_rsp_data_i,
    input  logic                bank1_rsp_error_i,
    output logic                bank2_valid_o,
    input  logic                bank2_ready_i,
    output logic [18:0]         bank2_addr_o,
    input  logic                bank2_rsp_valid_i,
    input  logic [34:0]         bank2_rsp_data_i,
    input  logic                bank2_rsp_error_i
);
  localparam int unsigned SetBits = 32 - SlotBits;  // address bits that index a set
  localparam int unsigned SetsBits = 19 - SetBits;  // bits of a set's number
  localparam int unsigned CountBits = $clog2(InFlight + 1);
  localparam logic [15:0] NoRoute = 16'hffff;

  if (CamRows < 2 || (CamRows & (CamRows - 1)) != 0) begin : gen_check
    $fatal(1, "hue_dir: CamRows is %0d, a power of two of at least 2", CamRows);
  end

  // An entry of either bank: DirEntry in crates/tables/src/dir/words.rs.
  typedef struct packed {
    logic        deeper;  // `value` names a set of bank 2
    logic [2:0]  unused_port;
    logic        by_cam;
    logic [1:0]  unused;
    logic [11:0] vid;  // 0: no owner
    logic [15:0] value;
  } entry_t;

  // ---- lookups in flight
  logic accept;
  logic [CountBits-1:0] inside_q, drain_q;
  assign accept = valid_i && ready_o;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      inside_q <= '0;
      drain_q  <= '0;
    end else begin
      inside_q <= inside_q + CountBits'(accept) - CountBits'(valid_o);
      // Answers come in order: after this many, the lookups accepted before have left.
      if (drain_i) drain_q <= inside_q - CountBits'(valid_o);
      else if (drain_q != '0) drain_q <= drain_q - CountBits'(valid_o);
    end
  end
  assign drained_o = drain_q == '0;

  // ---- 0: the Conflict CAM
  typedef struct packed {
    logic [11:0]         vid;
    logic [SlotBits-1:0] prefix;
    logic [SlotBits-1:0] mask;  // 1: the bit is compared
  } row_t;
  logic [CamRows-1:0] used_q, match_d, match_q;
  row_t rows_q[CamRows];
  always_ff @(posedge clk_i) begin
    if (!rst_ni) used_q <= '0;
    else if (row_write_i) used_q[row_i] <= row_used_i;
    if (row_write_i) begin
      rows_q[row_i] <= '{vid: row_vid_i, prefix: row_prefix_i,
                         mask: ~(SlotBits'('1) >> row_length_i)};
    end
  end
  for (genvar i = 0; i < CamRows; i++) begin : gen_match
    assign match_d[i] = used_q[i] && rows_q[i].vid == vid_i &&
                        ((rows_q[i].prefix ^ key_i[31-:SlotBits]) & rows_q[i].mask) == '0;
  end

  typedef struct packed {
    logic               ask;
    logic [11:0]        vid;
    logic [31:0]        key;
    logic [TagBits-1:0] tag;
  } lookup_t;
  logic s1_valid_q, s2_valid_q, s1_ready, s2_ready;
  lookup_t s1_q;
  assign s2_ready = !s2_valid_q || bank1_ready_i;
  assign s1_ready = !s1_valid_q || s2_ready;
  assign ready_o  = s1_ready && inside_q != CountBits'(InFlight);
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      s1_valid_q <= 1'b0;
      s2_valid_q <= 1'b0;
    end else begin
      if (s1_ready) s1_valid_q <= accept;
      if (s2_ready) s2_valid_q <= s1_valid_q;
    end
    if (s1_ready) begin
      match_q <= match_d;
      s1_q    <= '{ask: ask_i, vid: vid_i, key: key_i, tag: tag_i};
    end
  end

  // ---- 1: the row's index. Several rows match only while a change is being written; then each is right.
  logic [RowBits-1:0] row;
  logic [SlotBits-1:0] indices_q[CamRows];
  always_comb begin
    row = '0;
    for (int unsigned i = 0; i < CamRows; i++) if (match_q[CamRows-1-i]) row = RowBits'(CamRows - 1 - i);
  end
  typedef struct packed {
    logic               ask;
    logic [11:0]        vid;
    logic               by_cam;
    logic [SetBits-1:0] low;
    logic [TagBits-1:0] tag;
  } asked_t;
  asked_t s2_q;
  always_ff @(posedge clk_i) begin
    if (row_write_i) indices_q[row_i] <= row_index_i;
    if (s2_ready) begin
      bank1_addr_o <= match_q != '0 ? indices_q[row] : s1_q.key[31-:SlotBits];
      s2_q         <= '{ask: s1_q.ask, vid: s1_q.vid, by_cam: match_q != '0, low: s1_q.key[SetBits-1:0], tag: s1_q.tag};
    end
  end

  // ---- 2: bank 1
  assign bank1_valid_o = s2_valid_q;
  assign read_o        = {bank2_valid_o && bank2_ready_i, s2_valid_q && bank1_ready_i && s2_q.ask};
  asked_t asked;
  logic asked_valid, asked_ready;
  logic [CountBits-1:0] unused_asked_room, unused_step_room, unused_set_room, unused_found_room;
  hue_fifo #(.Depth(InFlight), .Bits($bits(asked_t))) u_asked (
    .clk_i, .rst_ni, .valid_i(s2_valid_q && bank1_ready_i), .ready_o(asked_ready), .data_i(s2_q),
    .valid_o(asked_valid), .ready_i(bank1_rsp_valid_i), .data_o(asked), .room_o(unused_asked_room)
  );

  /* verilator lint_off UNUSEDSIGNAL */  // the port follows from the next hop's index
  entry_t first;
  /* verilator lint_on UNUSEDSIGNAL */
  logic own;
  assign first = entry_t'(bank1_rsp_data_i);
`ifdef HUE_PLANT_DIR_OWNER
  assign own = asked.ask && first.vid != '0 && first.by_cam == asked.by_cam;
`else
  assign own = asked.ask && first.vid == asked.vid && first.by_cam == asked.by_cam;
`endif

  // ---- 3: bank 2, for some lookups. Each of these queues holds InFlight entries, so none is full when an entry comes.
  typedef struct packed {
    logic               deeper;
    logic               error;
    logic [15:0]        hop;
    logic [11:0]        vid;
    logic [TagBits-1:0] tag;
  } step_t;
  step_t step_d, step;
  logic step_valid, step_ready, step_go, set_ready, deeper;
  assign deeper = own && first.deeper && !bank1_rsp_error_i;
  assign step_d = '{deeper: deeper, error: asked.ask && bank1_rsp_error_i,
                    hop: own && !bank1_rsp_error_i ? first.value : NoRoute, vid: asked.vid, tag: asked.tag};
  hue_fifo #(.Depth(InFlight), .Bits($bits(step_t))) u_steps (
    .clk_i, .rst_ni, .valid_i(bank1_rsp_valid_i), .ready_o(step_ready), .data_i(step_d),
    .valid_o(step_valid), .ready_i(step_go), .data_o(step), .room_o(unused_step_room)
  );
  hue_fifo #(.Depth(InFlight), .Bits(19)) u_sets (
    .clk_i, .rst_ni, .valid_i(bank1_rsp_valid_i && deeper), .ready_o(set_ready),
    .data_i({first.value[SetsBits-1:0], asked.low}),
    .valid_o(bank2_valid_o), .ready_i(bank2_ready_i), .data_o(bank2_addr_o), .room_o(unused_set_room)
  );

  typedef struct packed {
    logic        error;
    logic [11:0] vid;
    logic [15:0] value;
  } found_t;
  /* verilator lint_off UNUSEDSIGNAL */  // bank 2 uses neither the flag nor `by_cam`
  entry_t second;
  /* verilator lint_on UNUSEDSIGNAL */
  found_t found;
  logic found_valid, found_ready;
  assign second = entry_t'(bank2_rsp_data_i);
  hue_fifo #(.Depth(InFlight), .Bits($bits(found_t))) u_found (
    .clk_i, .rst_ni, .valid_i(bank2_rsp_valid_i), .ready_o(found_ready),
    .data_i({bank2_rsp_error_i, second.vid, second.value}),
    .valid_o(found_valid), .ready_i(step_go && step.deeper), .data_o(found), .room_o(unused_found_room)
  );

  // ---- 4: answers, in order
  logic second_own;
  assign step_go    = step_valid && (!step.deeper || found_valid);
  assign second_own = found.vid == step.vid && !found.error;
  always_ff @(posedge clk_i) begin
    valid_o <= rst_ni && step_go;
    tag_o   <= step.tag;
    error_o <= step.deeper ? found.error : step.error;
    if (step.deeper) hop_o <= second_own ? found.value : NoRoute;
    else hop_o <= step.hop;
  end

`ifndef SYNTHESIS
  a_room: assert property (@(posedge clk_i) disable iff (!rst_ni)
    !(s2_valid_q && !asked_ready) && !(bank1_rsp_valid_i && !(step_ready && set_ready)) &&
    !(bank2_rsp_valid_i && !found_ready));
  a_asked: assert property (@(posedge clk_i) disable iff (!rst_ni) bank1_rsp_valid_i |-> asked_valid);
  a_inside: assert property (@(posedge clk_i) disable iff (!rst_ni)
    inside_q <= CountBits'(InFlight) && !(valid_o && inside_q == '0));
  // No network reads a set or gets a next hop through an entry of another.
  a_own: assert property (@(posedge clk_i) disable iff (!rst_ni)
    (bank1_rsp_valid_i && (step_d.deeper || step_d.hop != NoRoute)) |-> (first.vid == asked.vid));
  a_own_set: assert property (@(posedge clk_i) disable iff (!rst_ni)
    (bank1_rsp_valid_i && deeper) |-> (first.value >> SetsBits == '0));
`endif
endmodule
