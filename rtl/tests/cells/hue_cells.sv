// The small cells of rtl/common together in one module, for one bench: a register and a queue in series, an arbiter, counters.

module hue_cells #(
  parameter int unsigned Depth = 8,
  parameter bit          Deep = 1'b0,  // a queue in block RAM
  parameter int unsigned Askers = 5
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,

  input  logic                  valid_i,
  output logic                  ready_o,
  input  logic [31:0]           data_i,
  output logic                  valid_o,
  input  logic                  ready_i,
  output logic [31:0]           data_o,

  input  logic                  frame_write_i,
  input  logic                  frame_commit_i,
  input  logic                  frame_rewind_i,
  input  logic                  frame_cut_i,
  input  logic [31:0]           frame_data_i,
  output logic                  frame_full_o,
  output logic                  frame_valid_o,
  input  logic                  frame_ready_i,
  output logic [31:0]           frame_data_o,
  output logic                  frame_empty_o,

  input  logic [Askers-1:0]     asks_i,
  input  logic                  take_i,
  output logic                  any_o,
  output logic [2:0]            winner_o,

  input  logic [7:0][15:0]      adds_i,
  input  logic                  adds_host_valid_i,
  input  logic                  adds_host_clear_i,
  input  logic [2:0]            adds_host_index_i,
  output logic                  adds_host_done_o,
  output logic [63:0]           adds_host_value_o,

  output logic                  ram_ready_o,
  output logic                  ram_ready_soon_o,
  input  logic                  ram_valid_i,
  input  logic [3:0]            ram_index_i,
  input  logic [15:0]           ram_add_i,
  input  logic                  ram_host_valid_i,
  input  logic                  ram_host_clear_i,
  input  logic [3:0]            ram_host_index_i,
  output logic                  ram_host_done_o,
  output logic [63:0]           ram_host_value_o
);

  logic                       skid_valid, skid_ready;
  logic [31:0]                skid_data;
  logic [$clog2(Depth+1)-1:0] unused_room;

  hue_skid #(.Bits(32)) u_skid (
    .clk_i, .rst_ni, .valid_i, .ready_o, .data_i, .valid_o(skid_valid), .ready_i(skid_ready), .data_o(skid_data)
  );
  if (Deep) begin : g_deep
    assign unused_room = '0;
    hue_deep_fifo #(.Depth(Depth), .Bits(32)) u_fifo (
      .clk_i, .rst_ni, .valid_i(skid_valid), .ready_o(skid_ready), .data_i(skid_data), .valid_o, .ready_i, .data_o
    );
  end else begin : g_few
    hue_fifo #(.Depth(Depth), .Bits(32)) u_fifo (
      .clk_i, .rst_ni, .valid_i(skid_valid), .ready_o(skid_ready), .data_i(skid_data), .valid_o, .ready_i, .data_o,
      .room_o(unused_room)
    );
  end
  hue_frame_fifo #(.Words(16), .Bits(32)) u_frames (
    .clk_i, .rst_ni, .write_i(frame_write_i), .data_i(frame_data_i), .commit_i(frame_commit_i),
    .rewind_i(frame_rewind_i), .cut_i(frame_cut_i), .full_o(frame_full_o), .valid_o(frame_valid_o),
    .ready_i(frame_ready_i), .data_o(frame_data_o), .empty_o(frame_empty_o)
  );
  hue_round_robin #(.Count(Askers)) u_turn (.clk_i, .rst_ni, .asks_i, .take_i, .any_o, .winner_o);
  hue_counters #(.Count(8), .AddBits(16), .PendingBits(21)) u_counters (
    .clk_i, .rst_ni, .add_i(adds_i), .host_valid_i(adds_host_valid_i), .host_clear_i(adds_host_clear_i),
    .host_index_i(adds_host_index_i), .host_done_o(adds_host_done_o), .host_value_o(adds_host_value_o)
  );
  hue_counter_ram #(.Words(16)) u_ram (
    .clk_i, .rst_ni, .ready_o(ram_ready_o), .ready_soon_o(ram_ready_soon_o), .valid_i(ram_valid_i), .index_i(ram_index_i), .add_i(ram_add_i),
    .host_valid_i(ram_host_valid_i), .host_clear_i(ram_host_clear_i), .host_index_i(ram_host_index_i),
    .host_done_o(ram_host_done_o), .host_value_o(ram_host_value_o)
  );

endmodule
