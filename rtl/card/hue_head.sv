// Head vectors: keeps the first bytes of the frames that are between gather and the fronts of their kinds.
//
// Place: beside hue_gather, whose stream it reads, in images with kinds whose fronts need more than gather gives. hue_network takes a
// vector for each packet, in the order of the packets. A vector costs no register in the stages.
// Isolation: a vector contains bytes of its own frame, or zeros. The bus carries anything behind a frame's end, so those bytes are
// cleared on their way in; beats that the frame does not have were written by a frame that had the place before, perhaps of another
// network, so they are cleared on their way out. A sequence number whose frame is not wholly here (its first HeadBytes bytes), or not
// any more, reads as an empty frame. The mask says which bytes the frame has; a frame that is too long has none, as in hue_gather.
//
// Latency: a vector can be read 2 clocks after the beat that completes it; it is there 1 clock after its number.
// Throughput: a beat and a read a clock. Up to `Frames` frames are between their first beat and their release, in order.
module hue_head
  import hue_pkg::*;
#(
    parameter int unsigned BusBytes = 32,
    parameter int unsigned Frames   = 16,  // a power of two
    localparam int unsigned SeqBits = $clog2(Frames)
) (
    input  logic                  clk_i,
    input  logic                  rst_ni,
    // the stream: each beat that is taken
    output logic                  ready_o,    // room for another frame; only first beats need it
    input  logic                  write_i,
    input  logic                  first_i,
    input  logic                  last_i,
    input  logic [13:0]           len_i,      // of the frame, with each of its beats; LenTooLong: one beat
    input  logic [8*BusBytes-1:0] data_i,
    output logic [SeqBits-1:0]    seq_o,      // of the frame that begins next
    // the fronts
    input  logic                  read_i,     // `head_o` holds when 0
    input  logic [SeqBits-1:0]    seq_i,
    output hue_head_bytes_t       head_o,
    input  logic                  release_i   // of the oldest frame
);
  localparam int unsigned Beats = HeadBytes / BusBytes;
  localparam int unsigned BeatBits = $clog2(Beats + 1);
  localparam int unsigned ByteBits = $clog2(BusBytes);
  localparam int unsigned LenBits = $clog2(HeadBytes + 1);

  if ((HeadBytes & (HeadBytes - 1)) != 0) begin : gen_check_head
    $fatal(1, "hue_head: HeadBytes is %0d, a power of two", HeadBytes);
  end
  if (BusBytes < 2 || BusBytes > HeadBytes || (BusBytes & (BusBytes - 1)) != 0) begin : gen_check_bus
    $fatal(1, "hue_head: BusBytes is %0d, a power of two from 2 to %0d", BusBytes, HeadBytes);
  end
  if (Frames < 2 || (Frames & (Frames - 1)) != 0) begin : gen_check_frames
    $fatal(1, "hue_head: Frames is %0d, a power of two from 2", Frames);
  end

  // The first `count` bits are ones. Built from halves: comparisons with constants would become a carry chain for each bit.
  function automatic logic [HeadBytes-1:0] first_bits(logic [LenBits-1:0] count);
    logic [HeadBytes-1:0] ones;
    ones = '0;
    for (int unsigned bit_at = 0; bit_at < LenBits; bit_at++) begin
      if (count[bit_at]) ones = (ones << (1 << bit_at)) | ~({HeadBytes{1'b1}} << (1 << bit_at));
    end
    return ones;
  endfunction

  // ---- sequence numbers. `taken_q` frames have begun, `whole_q` of them can be read; both are without those released.
  logic [SeqBits-1:0] next_q, oldest_q;
  logic [SeqBits:0]   taken_q, whole_q;
  logic               begins, whole;
  assign begins  = write_i && first_i;
  assign ready_o = taken_q != (SeqBits + 1)'(Frames);
  assign seq_o   = next_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      next_q   <= '0;
      oldest_q <= '0;
      taken_q  <= '0;
      whole_q  <= '0;
    end else begin
      if (begins) next_q <= next_q + 1'b1;
      if (release_i) oldest_q <= oldest_q + 1'b1;
      taken_q <= taken_q + (SeqBits + 1)'(begins) - (SeqBits + 1)'(release_i);
      whole_q <= whole_q + (SeqBits + 1)'(whole) - (SeqBits + 1)'(release_i);
    end
  end

  // ---- clock 1: the beat, cleared behind the frame's end
  logic [BeatBits-1:0] beat_q, beat, full;   // beat_q stops at Beats; `full`: beats that the frame fills
  logic [LenBits-1:0]  len;                  // bytes of the vector
  logic [BusBytes-1:0] keep, rest;           // `rest`: bytes of the beat that the frame fills in part
  logic                in_head;
  assign beat    = first_i ? '0 : beat_q;
  assign in_head = beat != BeatBits'(Beats);
  assign len     = len_i == LenTooLong ? '0 : (len_i >> $clog2(HeadBytes)) != '0 ? LenBits'(HeadBytes) : LenBits'(len_i);
  assign full    = BeatBits'(len >> ByteBits);
  assign rest    = BusBytes'(first_bits(LenBits'(len[ByteBits-1:0])));
`ifdef HUE_PLANT_HEAD_BEHIND
  assign keep    = '1;  // for scripts/rtl-test and scripts/formal
`else
  assign keep    = beat < full ? '1 : beat == full ? rest : '0;
`endif

  logic                     write1_q, whole1_q;
  logic [BeatBits-1:0]      beat1_q;
  logic [SeqBits-1:0]       seq1_q;
  logic [LenBits-1:0]       len1_q;
  logic [BusBytes-1:0][7:0] data1_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      beat_q   <= '0;
      write1_q <= 1'b0;
      whole1_q <= 1'b0;
    end else begin
      if (write_i && in_head) beat_q <= beat + 1'b1;
      write1_q <= write_i && in_head;
      whole1_q <= write_i && in_head && (last_i || beat == BeatBits'(Beats - 1));
    end
    beat1_q <= beat;
    len1_q  <= len;
    if (begins) seq1_q <= next_q;
    for (int unsigned i = 0; i < BusBytes; i++) data1_q[i] <= keep[i] ? data_i[8*i+:8] : '0;
  end

  // ---- clock 2: into the memories, one for each beat of a vector, and one for the lengths
  assign whole = whole1_q;
  (* ram_style = "distributed" *) logic [LenBits-1:0] lens_q[Frames];
  always_ff @(posedge clk_i) if (write1_q) lens_q[seq1_q] <= len1_q;

  // ---- reads
  logic                 here;
  logic [LenBits-1:0]   len_read, len_q;
  logic [HeadBytes-1:0] mask_read;
  assign here     = {1'b0, SeqBits'(seq_i - oldest_q)} < whole_q;
  assign len_read = here ? lens_q[seq_i] : '0;
  always_ff @(posedge clk_i) if (read_i) len_q <= len_read;
  assign mask_read   = first_bits(len_read);  // only the bit of each beat's first byte is used
  assign head_o.mask = first_bits(len_q);
  for (genvar b = 0; b < Beats; b++) begin : gen_beat
    (* ram_style = "distributed" *) logic [8*BusBytes-1:0] words_q[Frames];
    logic [8*BusBytes-1:0] word_q;
    always_ff @(posedge clk_i) begin
      if (write1_q && beat1_q == BeatBits'(b)) words_q[seq1_q] <= data1_q;
    end
    // The flip-flops' reset clears the word, without logic in its way.
    always_ff @(posedge clk_i) begin
`ifdef HUE_PLANT_HEAD_STALE
      if (read_i) word_q <= !here ? '0 : words_q[seq_i];  // likewise
`else
      if (read_i) word_q <= !mask_read[b*BusBytes] ? '0 : words_q[seq_i];
`endif
    end
    assign head_o.bytes[b*BusBytes+:BusBytes] = word_q;
  end

`ifndef SYNTHESIS
  logic inside_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) inside_q <= 1'b0;
    else if (write_i) inside_q <= !last_i;
  end
  a_frames_are_framed: assert property (@(posedge clk_i) disable iff (!rst_ni) write_i |-> first_i == !inside_q);
  a_room: assert property (@(posedge clk_i) disable iff (!rst_ni) begins |-> ready_o);
  a_releases_what_is_there: assert property (@(posedge clk_i) disable iff (!rst_ni) release_i |-> whole_q != '0);
`endif
endmodule
