// Proof harness of hue_head: a read gives the first bytes of the frame with this number, as they came in, and zeros behind its end; or an
// empty vector, if that frame is not wholly here. Nothing of any other frame has an influence.
//
// Place: scripts/formal. `mark_i` picks any one frame, whose bytes the harness keeps. There are two copies of the module. They get
// the same frames at the same times; the bytes of the marked frame are equal in both, and all other bytes on the bus may differ: other
// frames, and those behind a frame's end. So may the contents of the memories at the reset.
module hue_head_formal
  import hue_pkg::*;
#(
    parameter int unsigned BusBytes = 4,
    parameter int unsigned Frames   = 2,
    localparam int unsigned SeqBits = $clog2(Frames),
    localparam int unsigned Beats   = HeadBytes / BusBytes,
    localparam int unsigned BeatBits = $clog2(Beats + 1)
) (
    input logic                  clk_i,
    input logic                  rst_ni,
    input logic                  wants_i,
    input logic                  last_i,
    input logic [13:0]           len_i,
    input logic [8*BusBytes-1:0] data_i,
    input logic [8*BusBytes-1:0] other_data_i,
    input logic                  read_i,
    input logic [SeqBits-1:0]    seq_i,
    input logic                  release_i,
    input logic                  mark_i
);
  logic                write_i, first_i, ready_o, other_ready;
  logic [SeqBits-1:0]  seq_o, other_seq;
  hue_head_bytes_t     head_o, other_head;
  hue_head #(.BusBytes(BusBytes), .Frames(Frames)) u_dut (.*);
  hue_head #(.BusBytes(BusBytes), .Frames(Frames)) u_other (
    .clk_i, .rst_ni, .ready_o(other_ready), .write_i, .first_i, .last_i, .len_i, .data_i(other_data_i), .seq_o(other_seq),
    .read_i, .seq_i, .head_o(other_head), .release_i
  );

  // ---- the stream, and what is inside
  logic               begun_q, inside_q, ends, ends1_q;
  logic [13:0]        len_q;
  logic [BeatBits-1:0] beat_q, beat;  // stops at Beats
  logic [SeqBits-1:0] next_q, oldest_q;
  logic [SeqBits:0]   taken_q, whole_q;
  assign first_i = !inside_q;
  assign write_i = wants_i && (inside_q || ready_o);
  assign beat    = first_i ? '0 : beat_q;
  assign ends    = write_i && beat != BeatBits'(Beats) && (last_i || beat == BeatBits'(Beats - 1));

  // Beats of the frame: as hue_pkg::beats_of, which is too narrow for beats of fewer than 8 bytes.
  int unsigned beats;
  assign beats = len_i == '0 || len_i == LenTooLong ? 1 : (32'(len_i) + BusBytes - 1) / BusBytes;

  // ---- the marked frame
  logic                      marked_q, taking_q, mark, gone;
  logic [SeqBits-1:0]        number_q;
  logic [SeqBits:0]          before_q;  // frames that are released before it
  logic [13:0]               bytes_len_q;
  logic [HeadBytes-1:0][7:0] bytes_q;
  assign mark = write_i && first_i && mark_i && !marked_q;
  assign gone = marked_q && release_i && before_q == '0;

  // What the last read was of: the marked frame, once it could be read, or a number without a frame.
  logic mine_q, all_q, none_q;
  int unsigned have;
  assign have = bytes_len_q == LenTooLong ? 0 : 32'(bytes_len_q) > HeadBytes ? HeadBytes : 32'(bytes_len_q);

  initial begun_q = 1'b0;
  always_ff @(posedge clk_i) begin
    begun_q <= 1'b1;
    if (write_i) len_q <= len_i;
    if (!rst_ni) begin
      {inside_q, ends1_q, marked_q, taking_q, mine_q, all_q, none_q} <= '0;
      beat_q   <= '0;
      next_q   <= '0;
      oldest_q <= '0;
      taken_q  <= '0;
      whole_q  <= '0;
    end else begin
      if (write_i) inside_q <= !last_i;
      if (write_i && beat != BeatBits'(Beats)) beat_q <= beat + 1'b1;
      ends1_q <= ends;
      if (write_i && first_i) next_q <= next_q + 1'b1;
      if (release_i) oldest_q <= oldest_q + 1'b1;
      taken_q <= taken_q + (SeqBits + 1)'(write_i && first_i) - (SeqBits + 1)'(release_i);
      whole_q <= whole_q + (SeqBits + 1)'(ends1_q) - (SeqBits + 1)'(release_i);
      if (mark) begin
        marked_q    <= 1'b1;
        number_q    <= next_q;
        before_q    <= taken_q - (SeqBits + 1)'(release_i);
        bytes_len_q <= len_i;
        taking_q    <= !last_i;
        bytes_q[BusBytes-1:0] <= data_i;
      end else begin
        if (gone) marked_q <= 1'b0;
        else if (release_i) before_q <= before_q - 1'b1;
        if (write_i && taking_q) begin
          if (last_i) taking_q <= 1'b0;
          for (int unsigned b = 1; b < Beats; b++) if (beat == BeatBits'(b)) bytes_q[b*BusBytes+:BusBytes] <= data_i;
        end
      end
      if (read_i) begin
        mine_q <= marked_q && seq_i == number_q;
        all_q  <= marked_q && seq_i == number_q && before_q < whole_q;
        none_q <= {1'b0, SeqBits'(seq_i - oldest_q)} >= whole_q;
      end
      if (gone) {mine_q, all_q} <= '0;
    end
  end

  always_comb begin
    assume (rst_ni == begun_q);
    if (begun_q) begin
      assume (len_i <= LenTooLong);
      if (inside_q) assume (len_i == len_q);
      if (beat != BeatBits'(Beats)) assume (last_i == (32'(beat) + 1 == beats));
      if (release_i) assume (whole_q != '0);
      // Copies agree about the marked frame's bytes.
      if (mark || taking_q) begin
        for (int unsigned i = 0; i < BusBytes; i++) begin
          if (32'(beat) * BusBytes + i < 32'(len_i) && len_i != LenTooLong) assume (other_data_i[8*i+:8] == data_i[8*i+:8]);
        end
      end
      assert (ready_o == (32'(taken_q) != Frames) && seq_o == next_q && other_seq == seq_o && other_ready == ready_o);
      if (none_q) assert (head_o == '0);
      if (mine_q) assert (head_o == other_head);
      for (int unsigned i = 0; i < HeadBytes; i++) begin
        if (all_q) assert (head_o.mask[i] == (i < have) && head_o.bytes[i] == (i < have ? bytes_q[i] : 8'd0));
      end
    end
  end
endmodule
