// Longest-prefix match over `dag36` in two banks, external or on chip (hue_sram_bank), with host access to their words.
//
// Place: rtl/planes/hue_routes with layout sram. Inside: hue_dag36_walk and a hue_sram_port for each bank. Word i is in
// bank i mod 2, at address i / 2.
//
// Latency and throughput: hue_dag36_walk's; the host waits at most 8 clocks for a bank and takes at most one clock in
// four from lookups that request every clock (hue_sram_port).
module hue_dag36_sram #(
    parameter int unsigned Slots   = 32,
    parameter int unsigned KeyBits = 32,
    parameter int unsigned TagBits = 1,
    parameter int unsigned Latency = 4,  // of the banks: clocks from `sram_en_o` to `sram_rdata_i`
    parameter bit          Twice   = 1'b0,
    localparam int unsigned SlotBits = $clog2(Slots)
) (
    input  logic               clk_i,
    input  logic               rst_ni,
    input  logic               valid_i,
    output logic               ready_o,
    output logic               tight_o,        // room for at most one lookup until an answer is taken
    input  logic [35:0]        item_i,
    input  logic [KeyBits-1:0] key_i,
    input  logic [TagBits-1:0] tag_i,
    // lookups of two rounds, as in hue_dag36_walk
    input  logic                holds_i,
    output logic [SlotBits-1:0] slot_o,
    input  logic [SlotBits-1:0] ask_slot_i,
    output logic                ask_ended_o,
    output logic                ask_error_o,
    output logic [15:0]         ask_hop_o,
    input  logic                judged_i,
    output logic                judged_ready_o,
    input  logic [SlotBits-1:0] judged_slot_i,
    input  logic                again_i,
    input  logic [KeyBits-1:0]  again_key_i,
    output logic               valid_o,
    input  logic               ready_i,
    output logic [15:0]        hop_o,
    output logic               error_o,
    output logic [TagBits-1:0] tag_o,
    // host: inputs held until `host_done_o`, which is 1 for one clock, with the word read
    input  logic               host_valid_i,
    input  logic               host_write_i,
    input  logic [19:0]        host_index_i,
    input  logic [35:0]        host_data_i,    // its parity is generated anew
    output logic               host_done_o,
    output logic [35:0]        host_data_o,    // with even parity, whatever the stored parity was
    // the first word with wrong parity that lookups or the host read since `fault_clear_i`
    input  logic               fault_clear_i,
    output logic               fault_o,
    output logic [19:0]        fault_index_o,
    output logic [31:0]        fault_count_o,
    output logic [1:0]         read_o,         // per bank: a word is read for a lookup
    // the banks
    output logic [1:0]         sram_en_o,
    output logic [1:0]         sram_write_o,
    output logic [1:0][18:0]   sram_addr_o,
    output logic [1:0][35:0]   sram_wdata_o,
    input  logic [1:0][35:0]   sram_rdata_i
);
  localparam int unsigned StepBits = $clog2(Slots) + $clog2(KeyBits / 8) + 28;

  logic [1:0] rd_valid, rd_ready, rsp_valid, rsp_error, host_ready, host_back, fault;
  logic [1:0][18:0] rd_addr, fault_addr;
  logic [1:0][StepBits-1:0] rd_tag, rsp_tag;
  logic [1:0][35:0] rsp_data;
  logic [1:0][34:0] host_data;
  logic [1:0][31:0] fault_count;
  logic asked_q, bank, unused_parity;
  logic [1:0] unused_host_error;
  assign bank = host_index_i[0];
  assign unused_parity = host_data_i[35];

  hue_dag36_walk #(.Slots(Slots), .KeyBits(KeyBits), .TagBits(TagBits), .Twice(Twice)) u_walk (
    .clk_i, .rst_ni, .valid_i, .ready_o, .tight_o, .item_i, .key_i, .tag_i, .valid_o, .ready_i, .hop_o, .error_o, .tag_o,
    .holds_i, .slot_o, .ask_slot_i, .ask_ended_o, .ask_error_o, .ask_hop_o,
    .judged_i, .judged_ready_o, .judged_slot_i, .again_i, .again_key_i,
    .rd_valid_o(rd_valid), .rd_ready_i(rd_ready), .rd_addr_o(rd_addr), .rd_tag_o(rd_tag),
    .rsp_valid_i(rsp_valid), .rsp_data_i(rsp_data), .rsp_tag_i(rsp_tag), .rsp_error_i(rsp_error)
  );

  for (genvar i = 0; i < 2; i++) begin : gen_bank
    hue_sram_port #(.Words(1 << 19), .Latency(Latency), .TagBits(StepBits)) u_port (
      .clk_i, .rst_ni,
      .rd_valid_i(rd_valid[i]), .rd_ready_o(rd_ready[i]), .rd_addr_i(rd_addr[i]), .rd_tag_i(rd_tag[i]),
      .rsp_valid_o(rsp_valid[i]), .rsp_data_o(rsp_data[i]), .rsp_tag_o(rsp_tag[i]), .rsp_error_o(rsp_error[i]),
      .host_valid_i(host_valid_i && !asked_q && bank == 1'(i)), .host_ready_o(host_ready[i]), .host_write_i,
      .host_addr_i(host_index_i[19:1]), .host_data_i(host_data_i[34:0]),
      .host_rsp_valid_o(host_back[i]), .host_rsp_data_o(host_data[i]), .host_rsp_error_o(unused_host_error[i]),
      .error_clear_i(fault_clear_i), .error_valid_o(fault[i]), .error_addr_o(fault_addr[i]),
      .error_count_o(fault_count[i]),
      .sram_en_o(sram_en_o[i]), .sram_write_o(sram_write_o[i]), .sram_addr_o(sram_addr_o[i]),
      .sram_wdata_o(sram_wdata_o[i]), .sram_rdata_i(sram_rdata_i[i])
    );
    assign read_o[i] = rd_valid[i] && rd_ready[i];
  end

  // `asked_q`: a host read was accepted and its answer is awaited.
  logic taken;
  assign taken = host_valid_i && !asked_q && host_ready[bank];
  always_ff @(posedge clk_i) begin
    if (!rst_ni) asked_q <= 1'b0;
    else if (taken && !host_write_i) asked_q <= 1'b1;
    else if (host_back != '0) asked_q <= 1'b0;
  end
  assign host_done_o = (taken && host_write_i) || host_back != '0;
  assign host_data_o = {^host_data[bank], host_data[bank]};

  assign fault_o       = fault != '0;
  assign fault_index_o = fault[0] ? {fault_addr[0], 1'b0} : {fault_addr[1], 1'b1};
  assign fault_count_o = hue_pkg::saturating_sum(fault_count[0], fault_count[1]);
endmodule
