// Proof harness of hue_dual_check: a packet gets kind, question and root of one family, those of IPv6 exactly if the check of IPv6 found
// its EtherType; and the outcomes of kind dual have the verdicts that they have in the kinds of the families.
//
// Place: scripts/formal. Both questions and roots are free, and so is the outcome that is renamed.
module hue_dual_check_formal
  import hue_pkg::*;
  import hue_kinds_pkg::*;
  import hue_stages_pkg::*;
(
  input logic        clk_i,
  input logic        rst_ni,
  input question_t   ipv4_i,
  input question_t   ipv6_i,
  input logic [35:0] ipv4_root_i,
  input logic [35:0] ipv6_root_i,
  input logic [4:0]  outcome_i
);
  logic [4:0]  kind_o;
  question_t   question_o;
  logic [35:0] root_o;
  hue_dual_check u_dut (.*);

  logic begun_q;  // ABC needs a register
  initial begun_q = 1'b0;
  always_ff @(posedge clk_i) begun_q <= 1'b1;

  always_comb begin
    if (begun_q) begin
      if (ipv6_i.outcome == IPV6_ETHERTYPE) begin
        assert (kind_o == 5'(KIND_IPV4) && question_o == ipv4_i && root_o == ipv4_root_i);
      end else begin
        assert (kind_o == 5'(KIND_IPV6) && question_o == ipv6_i && root_o == ipv6_root_i);
      end
      if (32'(outcome_i) <= IPV4_COUNT) assert (dual_verdict(dual_of_ipv4(outcome_i)) == ipv4_verdict(outcome_i));
      if (32'(outcome_i) <= IPV6_COUNT) assert (dual_verdict(dual_of_ipv6(outcome_i)) == ipv6_verdict(outcome_i));
      // What is decided before the family is known has one name.
      if (outcome_i inside {OutcomeNone, OUTCOME_GATED, OUTCOME_RATE_LIMITED}) begin
        assert (dual_of_ipv4(outcome_i) == outcome_i && dual_of_ipv6(outcome_i) == outcome_i);
      end
    end
  end
  logic unused;
  assign unused = rst_ni;
endmodule
