// hue_gather with hue_head beside it, for the bench: a vector is read and released in the clock in which its frame's record is taken.
module hue_head_stream
  import hue_pkg::*;
#(
    parameter int unsigned BusBytes = 32,
    parameter int unsigned Frames   = 16
) (
    input  logic                  clk_i,
    input  logic                  rst_ni,
    input  logic                  s_valid_i,
    output logic                  s_ready_o,
    input  logic [8*BusBytes-1:0] s_data_i,
    input  logic                  s_first_i,
    input  logic                  s_last_i,
    input  logic [13:0]           s_len_i,
    input  logic                  body_ready_i,
    output logic                  m_valid_o,
    input  logic                  m_ready_i,
    output logic [13:0]           m_len_o,
    output hue_head_bytes_t       head_o    // in the clock after its record was taken
);
  localparam int unsigned SeqBits = $clog2(Frames);
  hue_arrival_t arrival;
  hue_head_t    record;
  logic room, write, taken, unused_tag_valid, unused_idle;
  logic [8*BusBytes-1:0] data;
  logic [31:0] unused_tag;
  logic [SeqBits-1:0] seq_q, unused_seq;
  always_comb begin
    arrival     = '0;
    arrival.len = s_len_i;
  end
  hue_gather #(.BusBytes(BusBytes)) u_gather (
    .clk_i, .rst_ni, .s_valid_i, .s_ready_o, .s_data_i, .s_first_i, .s_last_i, .s_port_i('0), .s_arrival_i(arrival),
    .body_valid_o(write), .body_ready_i(body_ready_i && (room || !s_first_i)), .body_data_o(data),
    .tag_valid_o(unused_tag_valid), .tag_ready_i(1'b1), .tag_o(unused_tag),
    .m_valid_o, .m_ready_i, .m_head_o(record), .idle_o(unused_idle)
  );
  assign m_len_o = record.len;
  assign taken   = m_valid_o && m_ready_i;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) seq_q <= '0;
    else if (taken) seq_q <= seq_q + 1'b1;
  end
  hue_head #(.BusBytes(BusBytes), .Frames(Frames)) u_head (
    .clk_i, .rst_ni, .ready_o(room), .write_i(write), .first_i(s_first_i), .last_i(s_last_i), .len_i(s_len_i), .data_i(data),
    .seq_o(unused_seq), .read_i(taken), .seq_i(seq_q), .head_o, .release_i(taken)
  );
  logic unused;
  assign unused = ^record;
endmodule
