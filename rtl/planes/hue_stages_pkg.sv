// What runs through the stages with a packet.
//
// Place: hue_stages and the modules below it. Stages fill fields in and, the first that can, decide what becomes of the
// packet.
/* verilator lint_off UNUSEDPARAM */
package hue_stages_pkg;

  // Outcome code of what no table of outcomes knows: packets of a gated plane or of one in
  // software, frames that a software plane returned.
  localparam logic [4:0] OutcomeNone = 5'd0;

  // Numbers of spec/regs, table HOP; those of crates/planes/src/adjacency.rs.
  localparam logic [1:0] HopNone    = 2'd0;
  localparam logic [1:0] HopLocal   = 2'd1;
  localparam logic [1:0] HopGlean   = 2'd2;
  localparam logic [1:0] HopForward = 2'd3;

  // What the second half of kind ipv4 needs of a header (crates/planes/src/ipv4.rs, `Checked`).
  typedef struct packed {
    logic [4:0]  outcome;    // of the checks of Ethernet and IPv4 header; OutcomeNone: sound
    logic        group;      // to multicast or limited broadcast
    logic        expires;    // TTL 0 or 1
    logic        options;    // header longer than its fixed part
    logic        l2_group;   // in a broadcast or multicast frame
    logic        martian_source;       // no host can have the source
    logic        martian_destination;  // nor the destination, which is no group's either
    logic [15:0] total;
    logic [7:0]  ttl;
    logic [15:0] checksum;
    logic [31:0] dst;
  } ipv4_t;

  typedef struct packed {
    logic [2:0]  port_in;
    logic [13:0] len;
    // What becomes of it, once decided.
    logic        decided;
    logic [1:0]  verdict;    // hue_pkg::verdict_e
    logic [4:0]  outcome;
    logic [2:0]  port_out;
    // Whose it is: from design select on.
    logic [7:0]  net;
    logic [7:0]  vport;
    // From the network's row on.
    logic [11:0] vid;
    logic [3:0]  plane;
    logic [35:0] root;
    logic [15:0] hop_base;
    logic [15:0] hop_count;
    ipv4_t       ipv4;
  } packet_t;

endpackage
/* verilator lint_on UNUSEDPARAM */
