// The loop's queue: frames that pass the stages again, because they enter a tunnel or may come out of one.
//
// Place: hue_scatter → **here** → hue_tunnel → hue_loop_join → arbiter. Frames leave in the order in which they came.
// A frame is taken if the frames of its network in the queue would then use no more words than are free. So a network that sends more
// than the loop carries uses at most half of what the others leave free, and loses only its own frames. A frame without room is taken
// from scatter and dropped. With `offline_i` nothing is dropped: the frame waits. So that it cannot wait for itself, frames from outside
// begin only while `crowded_o` is 0: then what is in the stages always finds room (ADR 0065).
//
// Latency: 5 clocks from the only beat of a frame in to the same beat out. Throughput: a beat a clock, and one clock a frame.
module hue_loop
  import hue_pkg::*;
#(
  parameter int unsigned BusBytes = 32,
  parameter int unsigned Nets = 64,
  parameter int unsigned Words = 2048,            // a power of two
  localparam int unsigned NetBits = Nets > 1 ? $clog2(Nets) : 1
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,
  input  logic                  offline_i,

  input  logic                  s_valid_i,
  output logic                  s_ready_o,
  input  logic [8*BusBytes-1:0] s_data_i,
  input  logic                  s_last_i,
  input  hue_loop_t             s_item_i,         // stable over the frame

  output logic                  m_valid_o,
  input  logic                  m_ready_i,
  output logic [8*BusBytes-1:0] m_data_o,
  output logic                  m_last_o,
  output hue_loop_t             m_item_o,         // stable over the frame

  output logic                  dropped_o,        // pulse: a frame of this network found no room
  output logic [7:0]            dropped_net_o,
  output logic [31:0]           dropped_tag_o,
  output logic                  loses_o,          // the frame that comes is dropped
  output logic                  crowded_o,        // a quarter of the words is in use
  output logic                  idle_o
);
  localparam int unsigned CountBits = $clog2(Words) + 1;
  // The FIFO leaves a word free, and counts those that it has fetched ahead as free already.
  localparam int unsigned Usable = Words - 4;
  typedef logic [CountBits-1:0] count_t;

  if (Usable < 2 * ((FrameBytesMax + BusBytes - 1) / BusBytes)) begin : g_words
    $fatal(1, "Words: expected room for two frames of the greatest length");
  end

  // ---- In. Words taken and words given back are counted modulo for each network, each by one side only.
  logic              clearing_q, open_q, lose_q, fits, decides, commit, full, items_ready, leaves, words_empty, item_valid;
  logic [NetBits-1:0] clear_q, net, gone_net;
  count_t            put_q [1 << NetBits];
  count_t            gone_q [1 << NetBits];
  count_t            free_q, need, used, back;
  assign net     = s_item_i.net[NetBits-1:0];
  assign need    = count_t'(beats_of(s_item_i.len, BusBytes));
  assign used    = put_q[net] - gone_q[net] + need;
`ifdef HUE_PLANT_LOOP_SHARE
  assign fits    = items_ready && need <= free_q;  // for scripts/rtl-test: the bench must find this
`else
  assign fits    = items_ready && (offline_i ? need : used) <= free_q;
`endif
  assign decides = s_valid_i && !open_q && !lose_q && !clearing_q;
  assign s_ready_o = open_q || lose_q;
  assign loses_o = lose_q;
  assign commit  = open_q && s_valid_i && s_last_i;

  always_ff @(posedge clk_i) begin
    dropped_net_o <= s_item_i.net;
    dropped_tag_o <= s_item_i.tag;
    crowded_o     <= rst_ni && free_q < count_t'(Usable - Words / 4);
    if (!rst_ni) begin
      {open_q, lose_q, dropped_o} <= '0;
      clearing_q <= 1'b1;
      clear_q <= '0;
      free_q <= count_t'(Usable);
    end else begin
      clear_q <= clear_q + 1'b1;
      if (clear_q == '1) clearing_q <= 1'b0;
      dropped_o <= decides && !fits && !offline_i;
      if (decides) begin
        open_q <= fits;
        lose_q <= !fits && !offline_i;
      end else if (s_valid_i && s_last_i) begin
        {open_q, lose_q} <= '0;
      end
      free_q <= free_q - (decides && fits ? need : '0) + (leaves ? back : '0);
    end
  end
  always_ff @(posedge clk_i) begin
    if (clearing_q) put_q[clear_q] <= '0;
    else if (decides && fits) put_q[net] <= put_q[net] + need;
    if (clearing_q) gone_q[clear_q] <= '0;
    else if (leaves) gone_q[gone_net] <= gone_q[gone_net] + back;
  end

  // ---- Words and descriptors; both take the same time, so a descriptor is there with its words.
  hue_frame_fifo #(.Words(Words), .Bits(8 * BusBytes + 1)) u_words (
    .clk_i, .rst_ni, .write_i(open_q && s_valid_i), .data_i({s_last_i, s_data_i}), .commit_i(commit), .rewind_i(1'b0), .cut_i(1'b0),
    .full_o(full), .valid_o(m_valid_o), .ready_i(m_ready_i), .data_o({m_last_o, m_data_o}), .empty_o(words_empty)
  );
  hue_deep_fifo #(.Depth(Words / 2), .Bits($bits(hue_loop_t))) u_items (
    .clk_i, .rst_ni, .valid_i(commit), .ready_o(items_ready), .data_i(s_item_i),
    .valid_o(item_valid), .ready_i(leaves), .data_o(m_item_o)
  );
  assign leaves   = m_valid_o && m_ready_i && m_last_o;
  assign gone_net = m_item_o.net[NetBits-1:0];
  assign back     = count_t'(beats_of(m_item_o.len, BusBytes));
  assign idle_o   = words_empty && !open_q && !lose_q && !clearing_q;

  logic unused;
  assign unused = ^{full, item_valid};

`ifdef HUE_TWIN
  always_ff @(posedge clk_i) if (rst_ni && dropped_o) hue_card_ended(dropped_tag_o, 32'(dropped_net_o), EndedRefused);
`endif
`ifndef SYNTHESIS
  a_room: assert property (@(posedge clk_i) disable iff (!rst_ni) open_q && s_valid_i |-> !full);
  a_item: assert property (@(posedge clk_i) disable iff (!rst_ni) m_valid_o |-> item_valid);
  a_free: assert property (@(posedge clk_i) disable iff (!rst_ni) free_q <= count_t'(Usable));
  a_offline_loses_nothing: assert property (@(posedge clk_i) disable iff (!rst_ni) $past(offline_i) |-> !dropped_o);
  a_ends_as_long_as_it_said: assert property (@(posedge clk_i) disable iff (!rst_ni)
    m_valid_o && !m_ready_i |=> m_valid_o && $stable(m_data_o) && $stable(m_item_o));
`endif
endmodule
