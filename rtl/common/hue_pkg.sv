// Types and sizes that the modules of the card's data path share.
//
// Place: everywhere between input and output ports. `hue_head_t` is what gather passes to the stages about a frame, and
// `hue_verdict_t` their answer. `tbl_req_t` and `tbl_rsp_t` connect the access unit (hue_regs) with the tables.
// Units: lengths in bytes from the destination MAC to the last byte, times in nanoseconds.
// Source: spec/kinds.toml (frame limits, order of outcomes), docs/reference/outcomes.md.
/* verilator lint_off UNUSEDPARAM */
package hue_pkg;

  // Ports 0..3 are MACs, 4..7 CPU queues.
  localparam int unsigned Ports = 8;
  localparam int unsigned MacPorts = 4;
  localparam int unsigned CpuPorts = Ports - MacPorts;
  // One input queue for each MAC port, and one that the CPU queues share.
  localparam int unsigned InputQueues = MacPorts + 1;
  localparam int unsigned NetsMax = 256;

  localparam int unsigned FrameBytesMin = 14;
  localparam int unsigned FrameBytesMax = 9216;
  // The length given to every frame above FrameBytesMax.
  localparam logic [13:0] LenTooLong = 14'(FrameBytesMax + 1);

  localparam logic [15:0] EthertypeIpv4 = 16'h0800;
  localparam logic [15:0] EthertypeArp  = 16'h0806;
  localparam logic [15:0] EthertypeIpv6 = 16'h86dd;
  localparam logic [7:0]  ProtocolIpip = 8'd4;
  localparam logic [7:0]  ProtocolUdp = 8'd17;
  localparam logic [7:0]  ProtocolIpv6 = 8'd41;
  localparam logic [7:0]  ProtocolExperiment = 8'd253;  // of the header with splicing bits (kind splice)
  localparam logic [15:0] VxlanPort = 16'd4789;

  // What an input queue knows about a frame, and hue_flood about a copy, beside the body.
  typedef struct packed {
    logic [63:0] time_ns;      // arrival of the first beat
    logic [31:0] tag;          // leaves with everything that the frame becomes; the card does not interpret it
    logic [13:0] len;          // saturates at LenTooLong
    logic        from_cpu;     // as in hue_head_t
    logic        copy;
    logic [7:0]  net;
    logic [7:0]  vport;
    logic [2:0]  cpu_out;
  } hue_arrival_t;

  // What the arbiter needs to choose the next frame.
  typedef struct packed {
    logic group;     // is_group
    logic is_long;   // LongBytes or more; 0 for a frame that is too long
  } hue_class_t;
  localparam int unsigned LongBytes = 2048;   // a power of two

  // What gather passes to the stages: one record a frame, in the order in which the frames were taken. The fields of a header that
  // the frame does not contain in full (14 bytes, or 34) are zero, and so are all of a frame that is too long: nothing here comes
  // from another frame.
  typedef struct packed {
    logic [63:0] time_ns;      // arrival; the clock of the meters
    logic [2:0]  port;         // ingress
    logic [13:0] len;          // saturates at LenTooLong
    logic [47:0] dst_mac;
    logic [15:0] ethertype;
    logic [3:0]  version;
    logic [3:0]  ihl;          // in 4-byte words
    logic [15:0] total;
    logic [7:0]  ttl;
    logic [15:0] checksum;
    logic [7:0]  src;          // first byte of the source
    logic [31:0] dst;
    logic        sum_ok;       // ones' complement sum of the header is 0xffff, and 20 <= 4*ihl <= len - 14
    logic        inner_valid;  // crates/demux/src/inner.rs: the frame has an address that identifies its network
    logic [31:0] inner;        // zero unless `inner_valid`
    logic        from_cpu;     // a software plane returned it: leaves by cpu_out without a lookup
    logic        copy;         // copy of a group frame, for one network
    logic [7:0]  net;          // the frame's network, if `from_cpu` or `copy`
    logic [7:0]  vport;        // the virtual port, if `copy`
    logic [2:0]  cpu_out;
  } hue_head_t;

  // The head vector: the first bytes of a frame, which the front of a kind reads. Byte i of the frame is `bytes[i]`, if `mask[i]` is 1.
  // Bytes that the frame does not have are zero: anything else there would come from another frame, perhaps of another network.
  localparam int unsigned HeadBytes = 128;
  typedef struct packed {
    logic [HeadBytes-1:0]      mask;
    logic [HeadBytes-1:0][7:0] bytes;
  } hue_head_bytes_t;

  typedef enum logic [1:0] {
    VerdictDrop      = 2'd0,
    VerdictForward   = 2'd1,
    VerdictPunt      = 2'd2,  // to CPU queue MacPorts + net mod 4
    VerdictUnclaimed = 2'd3   // no network claims the frame: dropped
  } verdict_e;

  // What scatter does to the splicing bits of a forwarded frame (kind splice), beside the edit of kind ipv4.
  localparam int unsigned SpliceIdByte = 18;
  localparam int unsigned SpliceShimByte = 36;
  localparam int unsigned SpliceShimBytes = 6;
  typedef struct packed {
    logic       on;     // the frame has splicing bits
    logic       shim;   // behind the header; else in its identification
    logic [2:0] shift;  // by how many bits they move down, at most 4
  } splice_edit_t;

  // The identification for the next hop: shifted right, and the highest bits that a hop can have stay. Sixteen bits are five slices of
  // three bits, and one that has no meaning.
  function automatic logic [15:0] spliced_id(logic [15:0] id, logic [2:0] shift);
    case (shift)
      3'd1:    return {id[15], id[15:1]};
      3'd2:    return {id[15:14], id[15:2]};
      3'd3:    return {id[15], id[14:12], id[14:3]};
      3'd4:    return {id[15:12], id[15:4]};
      default: return id;
    endcase
  endfunction

  // What the stages answer: one verdict a frame.
  typedef struct packed {
    logic [1:0]  verdict;      // verdict_e
    logic [4:0]  outcome;      // code in spec/kinds.toml
    logic [7:0]  net;
    logic [11:0] vid;
    logic [7:0]  vport;
    logic [2:0]  port_in;
    logic [2:0]  port_out;
    logic [13:0] len;
    logic [2:0]  edit;         // edit_e
    logic [47:0] dst_mac;
    logic [47:0] src_mac;
    logic [7:0]  ttl;
    logic [15:0] checksum;
    // Frames of a network that floods and learns (kind l2). hue_copies makes one verdict of each copy.
    logic                flood;   // it leaves by each of `ports` instead of port_out
    logic [MacPorts-1:0] ports;   // of a copy of a flood: all ports that get one
    logic                note;    // the driver gets a copy, because the table does not say where the sender is; for one copy: it is this
    logic                more;    // of a copy: another copy of the same frame follows
    logic [1:0]          tunnel;  // tunnel_e: where a frame goes that does not leave the card now
    splice_edit_t        splice;  // with edit EditIpv4
    logic [19:0]         label;   // with edit EditMpls
  } hue_verdict_t;

  // Tunnels (ADR 0065). A frame that enters one, or may come out of one, goes to the loop (hue_loop, hue_tunnel) and passes the stages
  // again.
  typedef enum logic [1:0] {
    TunnelNone = 2'd0,
    TunnelOut  = 2'd1,  // forwarded by a tunnel, whose row is the lowest byte of the source MAC address that scatter wrote
    TunnelIn   = 2'd2   // punted, for the router itself: perhaps a packet of a tunnel that the network carries
  } tunnel_e;

  // What the loop knows about a frame, beside the body.
  typedef struct packed {
    logic [1:0]  tunnel;
    logic [7:0]  net;          // the network that it comes from, whose share of the loop it uses
    logic [7:0]  vport;
    logic [2:0]  port_in;
    logic [31:0] tag;
    logic [13:0] len;
  } hue_loop_t;

  // What scatter writes into a forwarded frame.
  typedef enum logic [2:0] {
    EditNone = 3'd0,
    EditIpv4 = 3'd1,  // the MAC pair, TTL and header checksum
    EditIpv6 = 3'd2,  // the MAC pair and the hop limit
    EditMacs = 3'd3,  // each of the MAC addresses that is not 0
    EditRofl = 3'd4,  // the MAC pair and the hop budget
    EditMpls = 3'd5   // the MAC pair, and label and TTL of the top of the stack
  } edit_e;

  // Header in front of a frame on a CPU queue, in both directions. Big endian: the highest byte comes first.
  localparam int unsigned CpuHeaderBytes = 16;
  typedef struct packed {
    logic [15:0] vid;
    logic [7:0]  net;
    logic [7:0]  vport;
    logic [7:0]  outcome;
    logic [7:0]  port_in;
    logic [7:0]  port_out;     // from the CPU: the port by which the frame leaves
    logic [7:0]  flags;        // CpuFlag*
    logic [15:0] len;          // of the frame, without this header
    logic [47:0] reserved;
  } hue_cpu_header_t;
  localparam logic [7:0] CpuFlagFromPlane = 8'h01;
  localparam logic [7:0] CpuFlagNote = 8'h02;       // to the CPU: only the start of a frame; its sender is to be learnt
  // Bytes of a frame that a note has, at most.
  localparam int unsigned NoteBytes = 16;
  // Length of what leaves of a frame.
  function automatic logic [13:0] sent_len(logic note, logic [13:0] len);
    return note && len > 14'(NoteBytes) ? 14'(NoteBytes) : len;
  endfunction

  // A table access, held from its start until the answer or for 100 clocks. It is a read unless `write` or `clear` is 1.
  typedef struct packed {
    logic         valid;
    logic         write;
    logic         clear;       // read, then set to zero
    logic [7:0]   id;          // hue_regs_pkg::TABLE_*
    logic [23:0]  index;
    logic [255:0] wdata;
  } tbl_req_t;
  // All zero unless `done`, so that the answers of several owners can be ORed.
  typedef struct packed {
    logic         done;        // for one clock
    logic [1:0]   error;       // hue_regs_pkg::TABLE_ERROR_*
    logic [255:0] rdata;
  } tbl_rsp_t;

  // Pins of the card's two external memories. Row i of table SRAM is in bank i mod 2, or i / 2^19 with layout dir.
  typedef struct packed {
    logic [1:0]       en;
    logic [1:0]       write;
    logic [1:0][18:0] addr;
    logic [1:0][35:0] wdata;
  } sram_req_t;
  // State of the external memories, for the registers.
  typedef struct packed {
    logic        fault;        // a word with wrong parity was read
    logic [19:0] fault_index;
    logic [31:0] fault_count;
    logic [1:0]  read;         // pulses: words read for lookups
    logic        lookup;       // pulse: a lookup began
  } sram_state_t;

  // An access to the output queues' external memory, which is addressed by words.
  localparam int unsigned QueueWordBytes = 32;
  typedef struct packed {
    logic                        valid;
    logic                        write;
    logic [23:0]                 addr;
    logic [8*QueueWordBytes-1:0] wdata;
  } queue_req_t;

  // What the output side knows about a frame, beside its body.
  typedef struct packed {
    logic [2:0]  port;         // the port by which it leaves
    logic [7:0]  net;          // the network whose share of the port it uses
    logic [31:0] tag;
    logic [13:0] len;          // includes the CPU header, if any
  } hue_departure_t;

  // Width in bits of the columns of a deep memory. Each column is one block RAM (ECP5: 16,384 words by 1 bit, 8,192 by 2, 4,096 by 4,
  // 2,048 by 9), so the word read, which comes late in its clock, needs no multiplexer between several of them.
  // A simulator reads a whole word at once however it is built, and columns would cost it a third of its speed.
  function automatic int unsigned column_bits(int unsigned words, int unsigned bits);
`ifndef VERILATOR
    if (words > 8192) return 1;
    if (words > 4096) return bits < 2 ? bits : 2;
    if (words > 2048) return bits < 4 ? bits : 4;
    if (words > 1024) return bits < 9 ? bits : 9;
`endif
    return words > 0 ? bits : 0;
  endfunction

  // Words of a memory's first part: all words, except that a large memory whose number of words is not a power of two has two
  // parts. A block RAM is 1024 words of 18 bits.
  function automatic int unsigned low_words(int unsigned words);
    int unsigned power = 1 << ($clog2(words + 1) - 1);
    return words > 1024 ? power : words;
  endfunction

  // A group frame (IEEE 802 §8.2): the lowest bit of its first byte is 1. Runts and frames that are too long do not count.
  function automatic logic is_group(logic first_bit, logic [13:0] len);
    return first_bit && 32'(len) >= FrameBytesMin && len != LenTooLong;
  endfunction

  function automatic hue_class_t class_of(logic first_bit, logic [13:0] len);
    return '{group: is_group(first_bit, len), is_long: 32'(len) >= LongBytes && len != LenTooLong};
  endfunction

  // The port by which a frame with this verdict leaves, if it leaves: `queue` is the CPU queue of its network, net[1:0].
  function automatic logic [2:0] departs_by(logic [1:0] verdict, logic [1:0] queue, logic [2:0] port_out);
    return verdict == VerdictPunt ? 3'(MacPorts) + 3'(queue) : port_out;
  endfunction

  // Beats of a frame in queues and in the packet buffer: at least one; exactly one for a frame that is too long.
  function automatic logic [10:0] beats_of(logic [13:0] len, int unsigned bus_bytes);
    return len == '0 || len == LenTooLong ? 11'd1 : 11'((32'(len) + bus_bytes - 1) >> $clog2(bus_bytes));
  endfunction

  // Number of cells of `cell_bytes` (a power of two) for this many bytes.
  function automatic logic [14:0] cells_of(logic [14:0] bytes, int unsigned cell_bytes);
    return 15'((32'(bytes) + cell_bytes - 1) >> $clog2(cell_bytes));
  endfunction

`ifdef HUE_TWIN
  // Reports to the twin why a frame ended inside the card (rtl/twin/hue_twin.h): EndedDropped or a higher value.
  import "DPI-C" function void hue_card_ended(input int tag, input int net, input int cause);
  localparam int EndedDropped   = 0;    // plus the outcome: the plane dropped it
  localparam int EndedUnclaimed = 256;  // plus the reason: no network claims it
  localparam int EndedRefused   = 512;  // hue_admit refused it
  localparam int EndedFlooded   = 768;  // plus a number: it has not ended; each of this many copies ends by itself
  // For group frames, whatever networks they are for.
  localparam int EndedFlood     = 513;  // hue_flood had no room for it, so there will be no copies
  localparam int EndedCopied    = 514;  // its last copy is on its way to the stages
`endif

  // Sum of two counts that saturate.
  function automatic logic [31:0] saturating_sum(logic [31:0] a, logic [31:0] b);
    logic [32:0] wide;
    wide = {1'b0, a} + {1'b0, b};
    return wide[32] ? '1 : wide[31:0];
  endfunction

  // Ones' complement sum of 16-bit words (RFC 1071).
  function automatic logic [15:0] sum16(logic [15:0] a, logic [15:0] b);
    logic [16:0] wide;
    wide = {1'b0, a} + {1'b0, b};
    return wide[15:0] + 16'(wide[16]);
  endfunction

endpackage
/* verilator lint_on UNUSEDPARAM */
