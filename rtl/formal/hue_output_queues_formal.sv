// Proof harness of hue_output_queues: the frames of a network leave by their port in the order in which they came, each once, whole
// and unaltered, whatever other networks send.
//
// Place: scripts/formal. Inputs are free, except that a frame has the length in its departure record, and comes only when there are
// cells for it. `mark_i` picks any one frame. Tags carry the network, so that the harness knows the network of a frame that leaves.
module hue_output_queues_formal
  import hue_pkg::*;
#(
  parameter int unsigned BusBytes = 2,
  parameter int unsigned Nets = 2,
  parameter int unsigned Cells = 4,
  parameter int unsigned CellBytes = 2,
  parameter int unsigned QuantumBytes = 4,
  parameter int unsigned Coming = 9,   // beats are first offered only in the first `Coming` clocks
  localparam int unsigned ByteBits = $clog2(BusBytes + 1)
) (
  input logic                          clk_i,
  input logic                          rst_ni,
  input logic                          s_valid_i,
  input logic [8*BusBytes-1:0]         s_data_i,
  input logic [$clog2(Ports)-1:0]      port_i,
  input logic                          net_i,
  input logic                          tag_i,
  input logic [$clog2(FrameBytesMax):0] len_i,
  input logic [Ports-1:0]              m_ready_i,
  input logic                          hold_i,
  input logic                          hold_net_i,
  input logic                          mark_i,
  input logic                          write_i,       // the driver writes a network's quantum, or reads it
  input logic                          read_i,
  input logic                          row_i,
  input logic [2:0]                    quantum_i
);
  localparam int unsigned BeatsMax = FrameBytesMax / BusBytes;
  localparam int unsigned BeatBits = $clog2(BeatsMax);
  localparam int unsigned Joining = 4;   // clocks from a frame's last beat until its network is reported as waiting
  localparam int unsigned QueueBits = $clog2(Ports) + $clog2(Nets);
  typedef logic [$clog2(Cells)+2:0] count_t;  // counts frames in cells and in the ports' FIFOs
  typedef logic [BeatBits-1:0]    beat_t;

  logic                             s_ready, s_last, none, gone, freed, freed_cpu, begun_q, stalled_q, inside_q;
  logic [QueueBits-1:0]             gone_queue;
  logic [$clog2(Cells):0]           gone_cells;
  logic                             hold_q, hold_net_q;  // one clock ago
  logic                             held_q;   // the marked frame's network has been held since before the frame came
  logic [NetsMax-1:0]               waits;
  hue_departure_t                   departure, departure_q;
  logic [Ports-1:0]                 m_valid, m_last, sent;
  logic [Ports-1:0][8*BusBytes-1:0] m_data;
  logic [Ports-1:0][ByteBits-1:0]   m_bytes;
  logic [Ports-1:0][31:0]           m_tag;
  logic [Ports-1:0][13:0]           sent_len;
  beat_t                            beat_q;
  logic [8*BusBytes-1:0]            data_q;

  // The frame that is offered. Its departure record is chosen with its first beat.
  always_comb begin
    departure = departure_q;
    if (!inside_q) departure = '{port: 3'(port_i), net: 8'(net_i), tag: {30'd0, tag_i, net_i}, len: 14'(len_i)};
  end
  assign s_last = (32'(beat_q) + 1) * BusBytes >= 32'(departure.len);

  queue_req_t                       unused_part_req;
  tbl_req_t                         tbl_req;
  tbl_rsp_t                         unused_tbl_rsp;
  always_comb begin
    tbl_req = '0;
    tbl_req.valid = (write_i || read_i) && begun_q;
    tbl_req.write = write_i;
    tbl_req.id = hue_regs_pkg::TABLE_QUANTUM;
    tbl_req.index = 24'(row_i);
    tbl_req.wdata = 256'(quantum_i);
  end
  hue_output_queues #(
    .BusBytes(BusBytes), .Nets(Nets), .Cells(Cells), .CellBytes(CellBytes), .QuantumBytes(QuantumBytes)
  ) u_dut (
    .clk_i, .rst_ni, .hold_i, .hold_net_i({7'd0, hold_net_i}), .waits_o(waits), .tbl_req_i(tbl_req), .tbl_rsp_o(unused_tbl_rsp), .s_valid_i, .s_ready_o(s_ready), .s_data_i, .s_last_i(s_last),
    .s_departure_i(departure), .m_valid_o(m_valid), .m_ready_i, .m_data_o(m_data), .m_bytes_o(m_bytes),
    .m_last_o(m_last), .m_tag_o(m_tag), .gone_o(gone), .gone_queue_o(gone_queue), .gone_cells_o(gone_cells), .freed_o(freed),
    .freed_cpu_o(freed_cpu), .sent_o(sent), .sent_len_o(sent_len), .none_o(none),
    .part_req_o(unused_part_req), .part_ready_i(1'b0), .part_rvalid_i(1'b0), .part_rdata_i('0)
  );
  for (genvar p = 0; p < Ports; p++) begin : g_rules
    hue_stream_rules #(.Bits(8 * BusBytes + 32), .BusBytes(BusBytes)) u_out (
      .clk_i, .rst_ni, .valid_i(m_valid[p]), .ready_i(m_ready_i[p]), .last_i(m_last[p]), .bytes_i(m_bytes[p]),
      .payload_i({m_data[p], m_tag[p]})
    );
  end

  // Frames inside, by port and network; the marked one, how many of its queue are before it, and how much of it has left.
  count_t [Ports-1:0][1:0]              inside_count_q;
  logic                                 marked_q, coming_q, fire, enters, marks, out, mine, empty_q;
  count_t                               free_q, cpu_q, need;  // cells: free, taken by CPU queues, needed by the offered frame
  hue_departure_t                       mark_q;
  count_t                               before_q;
  logic [BeatsMax-1:0][8*BusBytes-1:0]  words_q;
  logic [Ports-1:0][BeatBits-1:0]       out_beat_q;
  logic [8*BusBytes-1:0]                mask;
  assign fire = s_valid_i && s_ready;
  assign enters = fire && !inside_q;
  assign marks = enters && mark_i && !marked_q;
  assign need = count_t'((32'(departure.len) + CellBytes - 1) / CellBytes);
  logic [3:0]          joining_q, clocks_q;
  logic [1:0]          quiet_q;   // clocks for which nothing has been inside
  logic [1:0]          some;
  // `mine`: the marked frame is leaving: it is the first of its queue, and its port sends a frame of its network.
  assign out = m_valid[mark_q.port] && m_tag[mark_q.port][0] == mark_q.net[0];
  assign mine = marked_q && out && before_q == '0;
  always_comb begin
    for (int unsigned b = 0; b < BusBytes; b++) mask[8*b+:8] = b < 32'(m_bytes[mark_q.port]) ? '1 : '0;
  end

  // The frame that comes in is the marked one.
  always_ff @(posedge clk_i) begin
    if (!rst_ni || (fire && s_last)) coming_q <= 1'b0;
    else if (enters) coming_q <= marks;
  end

  initial begun_q = 1'b0;
  always_ff @(posedge clk_i) begin
    begun_q <= 1'b1;
    departure_q <= departure;
    hold_q <= hold_i;
    hold_net_q <= hold_net_i;
    data_q <= s_data_i;
    if (!rst_ni) begin
      stalled_q <= 1'b0;
      inside_q <= 1'b0;
      quiet_q <= '0;
      free_q <= count_t'(Cells);
      cpu_q <= '0;
      empty_q <= 1'b1;
      clocks_q <= '0;
      beat_q <= '0;
      marked_q <= 1'b0;
      held_q <= 1'b0;
      inside_count_q <= '0;
      out_beat_q <= '0;
    end else begin
      stalled_q <= s_valid_i && !s_ready;
      free_q <= free_q + count_t'(freed) - (enters ? need : '0);
      cpu_q <= cpu_q - count_t'(freed_cpu) + (enters && 32'(departure.port) >= MacPorts ? need : '0);
      empty_q <= free_q == count_t'(Cells);
      quiet_q <= inside_count_q == '0 && !s_valid_i ? quiet_q + 2'(quiet_q != '1) : '0;
      if (clocks_q != 4'(Coming)) clocks_q <= clocks_q + 1'b1;
      if (marks || coming_q) joining_q <= '0;
      else if (joining_q != 4'(Joining)) joining_q <= joining_q + 1'b1;
      if (fire) begin
        inside_q <= !s_last;
        beat_q <= s_last ? '0 : beat_q + 1'b1;
      end
      for (int unsigned p = 0; p < Ports; p++) begin
        if (m_valid[p] && m_ready_i[p]) out_beat_q[p] <= m_last[p] ? '0 : out_beat_q[p] + 1'b1;
        for (int unsigned n = 0; n < 2; n++) begin
          inside_count_q[p][n] <= inside_count_q[p][n]
            + count_t'(enters && departure.port == 3'(p) && departure.net == 8'(n))
            - count_t'(m_valid[p] && m_ready_i[p] && m_last[p] && m_tag[p][0] == 1'(n));
        end
      end
      if (marks) begin
        marked_q <= 1'b1;
        held_q <= hold_i && hold_net_i == departure.net[0] && 32'(departure.port) < MacPorts;
        mark_q <= departure;
        before_q <= inside_count_q[departure.port][departure.net[0]]
          - count_t'(sent[departure.port] && m_tag[departure.port][0] == departure.net[0]);
        words_q[0] <= s_data_i;
      end else if (marked_q) begin
        held_q <= held_q && hold_i && hold_net_i == mark_q.net[0];
        // Later beats, while the marked frame is still coming in.
        if (fire && inside_q && coming_q) words_q[beat_q] <= s_data_i;
        before_q <= before_q - count_t'(out && m_ready_i[mark_q.port] && m_last[mark_q.port]);
        if (mine && m_ready_i[mark_q.port] && m_last[mark_q.port]) marked_q <= 1'b0;
      end
    end
  end
  always_comb begin
    some = '0;
    assume (rst_ni == begun_q);
    assume (32'(port_i) < Ports && len_i != '0 && 32'(len_i) <= FrameBytesMax);
    if (begun_q && clocks_q == 4'(Coming) && !stalled_q) assume (!s_valid_i);
    if (begun_q && s_valid_i && !inside_q) assume (need <= free_q);
    if (begun_q && stalled_q) assume (s_valid_i && s_data_i == data_q && departure == departure_q);
    if (begun_q) begin
      // Only frames that came in leave.
      for (int unsigned p = 0; p < Ports; p++) begin
        if (m_valid[p]) assert (inside_count_q[p][m_tag[p][0]] != '0);
      end
      // The marked frame leaves in its turn, unaltered.
      if (mine) begin
        assert (m_tag[mark_q.port] == mark_q.tag && sent_len[mark_q.port] == mark_q.len);
        assert (((m_data[mark_q.port] ^ words_q[out_beat_q[mark_q.port]]) & mask) == '0);
        assert (m_last[mark_q.port] == ((32'(out_beat_q[mark_q.port]) + 1) * BusBytes >= 32'(mark_q.len)));
        if (m_last[mark_q.port]) begin
          assert (14'(32'(out_beat_q[mark_q.port]) * BusBytes) + 14'(m_bytes[mark_q.port]) == mark_q.len);
        end
      end
      // It does not leave while its network is held, and the network is reported as waiting.
      if (held_q && hold_i && hold_net_i == mark_q.net[0]) assert (!mine);
      if (marked_q && held_q && joining_q == 4'(Joining)) assert (waits[mark_q.net]);
      // From the second clock of a hold on, no frame of its network is taken.
      if (hold_q && u_dut.u_turns.s2_takes_q && 32'(u_dut.u_turns.s2_port_q) < MacPorts) begin
        assert (u_dut.u_turns.s2_q.entry.net[0] != hold_net_q);
      end
      // A network that has no frame for MAC ports is not reported as waiting.
      for (int unsigned n = 0; n < 2; n++) begin
        some[n] = 1'b0;
        for (int unsigned p = 0; p < MacPorts; p++) if (inside_count_q[p][n] != '0) some[n] = 1'b1;
        if (!some[n]) assert (!waits[n]);
      end
      // No frame stays behind. Each cell is returned once, and those of CPU queues as such.
      if (empty_q && none && free_q == count_t'(Cells)) assert (inside_count_q == '0);
      assert (free_q <= count_t'(Cells) && cpu_q <= count_t'(Cells));
      if (quiet_q == '1) assert (free_q == count_t'(Cells) && cpu_q == '0);
    end
  end
  logic unused;
  assign unused = ^{gone, gone_queue, gone_cells, unused_tbl_rsp};
endmodule
