// The record of a packet that passes through the stages.
//
// Place: hue_stages and the modules below it. Each stage fills in fields. The first stage that can decides the packet's verdict.
/* verilator lint_off UNUSEDPARAM */
package hue_stages_pkg;

  // Outcome code without an entry in the kind's outcomes: packets of a gated plane or of one in software, and frames that a
  // software plane returned.
  localparam logic [4:0] OutcomeNone = 5'd0;

  // Values of the field in table HOP (spec/regs), the same as in crates/planes/src/adjacency.rs.
  localparam logic [1:0] HopNone    = 2'd0;
  localparam logic [1:0] HopLocal   = 2'd1;
  localparam logic [1:0] HopGlean   = 2'd2;
  localparam logic [1:0] HopForward = 2'd3;

  // The header fields that the second half of kind ipv4 needs (crates/planes/src/ipv4.rs, `Checked`).
  typedef struct packed {
    logic [4:0]  outcome;    // of the Ethernet and IPv4 header checks; OutcomeNone: all passed
    logic        group;      // destination is multicast or limited broadcast
    logic        expires;    // TTL 0 or 1
    logic        options;    // header longer than its fixed part
    logic        l2_group;   // the frame is broadcast or multicast
    logic        martian_source;       // the source cannot be a host's address
    logic        martian_destination;  // nor can the destination, and it is no group address
    logic [15:0] total;
    logic [7:0]  ttl;
    logic [15:0] checksum;
    logic [31:0] dst;
  } ipv4_t;

  // What the front of kind ipv6 gives: the outcome, or the question to the routes (`dst`) and what the back needs with its answer.
  typedef struct packed {
    logic         asks;       // the outcome depends on the route; without it, only `outcome` has a meaning
    logic [4:0]   outcome;    // asks: unless the packet is for the router itself, or OutcomeNone if the next hop decides
    logic [13:0]  total;      // length of the IPv6 packet, compared with the MTU of the next hop
    logic [7:0]   hop_limit;
    logic [127:0] dst;
  } ipv6_t;

  typedef struct packed {
    logic [2:0]  port_in;
    logic [13:0] len;
    // The verdict, once decided.
    logic        decided;
    logic [1:0]  verdict;    // hue_pkg::verdict_e
    logic [4:0]  outcome;
    logic [2:0]  port_out;
    // The packet's network: valid from design select on.
    logic [7:0]  net;
    logic [7:0]  vport;
    // Valid once the network's row is read.
    logic [11:0] vid;
    logic [3:0]  plane;
    logic [35:0] root;
    logic [15:0] hop_base;
    logic [15:0] hop_count;
    ipv4_t       ipv4;
  } packet_t;

endpackage
/* verilator lint_on UNUSEDPARAM */
