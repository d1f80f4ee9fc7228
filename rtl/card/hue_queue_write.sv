// Placement of frames in the output queues' memory: gives each beat its place in a cell, and links each cell to the next.
//
// Place: inside hue_output_queues: hue_cpu_insert → **here** → hue_queue_memory, hue_queue_join. hue_admit has reserved the
// cells, so there is always a free one. Cells never used yet are allocated first, then those given back by hue_queue_read.
// A frame's cells and its tag are written before hue_queue_join gets the frame, with its last beat.
//
// Latency: 1 clock from a beat in to its write. Throughput: a beat a clock, while the modules behind have room.
module hue_queue_write
  import hue_pkg::*;
#(
  parameter int unsigned BusBytes = 8,
  parameter int unsigned Cells = 1024,
  parameter int unsigned CellBeats = 8,
  parameter int unsigned CellBytes = 64,
  localparam int unsigned CellBits = $clog2(Cells),
  localparam int unsigned BeatBits = CellBeats > 1 ? $clog2(CellBeats) : 1
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,

  input  logic                  s_valid_i,
  output logic                  s_ready_o,
  input  logic [8*BusBytes-1:0] s_data_i,
  input  logic                  s_last_i,
  input  hue_departure_t        s_departure_i,  // stable over the frame
  input  logic                  room_i,         // hue_queue_join and the memory have room for one more beat

  // A cell that is no longer used, and, later, a pulse that it can be allocated again.
  input  logic                  back_i,
  input  logic                  back_cpu_i,     // it was a CPU queue's
  input  logic [CellBits-1:0]   back_cell_i,
  output logic                  freed_o,
  output logic                  freed_cpu_o,

  // A beat, and its place.
  output logic                  beat_o,
  output logic [CellBits-1:0]   cell_o,
  output logic [BeatBits-1:0]   place_o,
  output logic [8*BusBytes-1:0] data_o,
  // Its cell follows another one of the same frame.
  output logic                  link_o,
  output logic [CellBits-1:0]   before_o,
  // The beat is the first of its frame, or the last.
  output logic                  first_o,
  output logic                  last_o,
  output logic [CellBits-1:0]   head_o,         // first cell of the frame
  output hue_departure_t        departure_o
);

  localparam int unsigned CountBits = CellBits + 1;
  localparam int unsigned FreeClocks = 3;  // from the clock in which a cell is given back until it can be allocated again

  typedef logic [CellBits-1:0]  cell_t;
  typedef logic [CountBits-1:0] count_t;

  // ---- Free cells
  logic                  alloc, back_valid, back_ready, fresh;
  cell_t                 back_cell, alloc_cell;
  count_t                fresh_q;
  logic [FreeClocks-1:0] freed_q, freed_cpu_q;
  assign fresh = !fresh_q[CellBits];
  assign alloc_cell = fresh ? fresh_q[CellBits-1:0] : back_cell;
  assign freed_o = freed_q[FreeClocks-1];
  assign freed_cpu_o = freed_cpu_q[FreeClocks-1];
  hue_deep_fifo #(.Depth(Cells), .Bits(CellBits)) u_back (
    .clk_i, .rst_ni, .valid_i(back_i), .ready_o(back_ready), .data_i(back_cell_i),
    .valid_o(back_valid), .ready_i(alloc && !fresh), .data_o(back_cell)
  );
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      freed_q <= '0;
      freed_cpu_q <= '0;
      fresh_q <= '0;
    end else begin
      freed_q <= {freed_q[FreeClocks-2:0], back_i};
      freed_cpu_q <= {freed_cpu_q[FreeClocks-2:0], back_i && back_cpu_i};
      if (alloc && fresh) fresh_q <= fresh_q + 1'b1;
    end
  end

  // ---- Places. `s_ready_o` is a register, as it drives all beats; one more beat may come after room has ended.
  logic                fire, first_q, starts;
  logic [BeatBits-1:0] beat_q;
  cell_t               cell_q, head_q;
  assign fire = s_valid_i && s_ready_o;
  assign starts = beat_q == '0;
  assign alloc = fire && starts;

  always_ff @(posedge clk_i) begin
    if (alloc) cell_q <= alloc_cell;
    if (alloc && first_q) head_q <= alloc_cell;
    departure_o <= s_departure_i;
    data_o <= s_data_i;
    place_o <= beat_q;
    cell_o <= starts ? alloc_cell : cell_q;
    head_o <= first_q ? alloc_cell : head_q;
    before_o <= cell_q;
    if (!rst_ni) begin
      s_ready_o <= 1'b0;
      first_q <= 1'b1;
      beat_q <= '0;
      beat_o <= 1'b0;
      first_o <= 1'b0;
      link_o <= 1'b0;
      last_o <= 1'b0;
    end else begin
      s_ready_o <= room_i;
      if (fire) begin
        first_q <= s_last_i;
        beat_q <= CellBeats == 1 || s_last_i ? '0 : beat_q + 1'b1;
      end
      beat_o <= fire;
      first_o <= fire && first_q;
      link_o <= alloc && !first_q;
      last_o <= fire && s_last_i;
    end
  end

`ifndef SYNTHESIS
  count_t cells_q;         // cells of the present frame so far
  logic   used_q [Cells];  // 1 while a cell is in use; meaningful once it was used
  logic   alloc_used, back_used;
  assign alloc_used = !fresh && used_q[alloc_cell];
  assign back_used = used_q[back_cell_i];
  always_ff @(posedge clk_i) begin
    if (alloc) used_q[alloc_cell] <= 1'b1;
    if (back_i) used_q[back_cell_i] <= 1'b0;
    if (!rst_ni || (fire && s_last_i)) cells_q <= '0;
    else if (alloc) cells_q <= cells_q + 1'b1;
  end
  // Not properties: Verilator copies a whole memory in every evaluation if a property depends on one of its words.
  always_ff @(posedge clk_i) begin
    if (rst_ni && alloc) a_not_in_use: assert (!alloc_used);
    if (rst_ni && back_i) a_in_use: assert (back_used);
  end
  a_cell_when_set_aside: assert property (@(posedge clk_i) disable iff (!rst_ni) alloc |-> (fresh || back_valid));
  a_back_has_room: assert property (@(posedge clk_i) disable iff (!rst_ni) back_i |-> back_ready);
  a_frames_end_as_announced: assert property (@(posedge clk_i) disable iff (!rst_ni)
    (fire && s_last_i) |-> 32'(cells_q) + 32'(alloc) == (32'(s_departure_i.len) + CellBytes - 1) / CellBytes);
  a_latency: assert property (@(posedge clk_i) disable iff (!rst_ni) fire |=> beat_o);
`endif
endmodule
