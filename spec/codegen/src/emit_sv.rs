//! The SystemVerilog package of outcomes from the specification: the names of codes in the card's modules.

use std::fmt::Write;

use crate::spec::{Kind, Spec, Verdict};

/// The text of `rtl/common/hue_kinds_pkg.sv`.
pub fn emit(spec: &Spec) -> String {
    let mut out = String::from(HEAD);
    let limits = &spec.frame_limits;
    let _ = write!(
        out,
        "
  // Shortest and longest frame that a port accepts, bytes.
  localparam int unsigned FRAME_BYTES_MIN = {};
  localparam int unsigned FRAME_BYTES_MAX = {};

  // Verdicts on a packet. hue_pkg::verdict_e has the same codes, and one more for frames of no network.
",
        limits.bytes_min, limits.bytes_max
    );
    for verdict in Verdict::ALL {
        let _ = writeln!(out, "  localparam logic [1:0] {} = 2'd{};", constant(verdict), code(verdict));
    }
    out.push_str("\n  // Reasons why a frame belongs to no network, in the order in which they are tried.\n");
    let unclaimed = spec.unclaimed.iter().map(|one| (one.name.as_str(), one.code, one.doc.as_str()));
    codes(&mut out, "UNCLAIMED", unclaimed);
    out.push_str("\n  // The first outcomes of every kind.\n");
    for (one, code) in spec.first.iter().zip(1u8..) {
        let name = one.name.to_uppercase();
        let _ = writeln!(out, "  localparam logic [4:0] OUTCOME_{name} = 5'd{code};  // {}", one.doc);
    }
    for kind in spec.on_card() {
        plane(&mut out, kind);
    }
    outcomes_max(&mut out, spec);
    out.push_str("endpackage\n/* verilator lint_on UNUSEDPARAM */\n");
    out
}

const HEAD: &str = "\
// Generated from spec/kinds.toml and spec/kinds/ by spec/codegen: edit those files, then `cargo run -p hue-spec-codegen`.
/* verilator lint_off UNUSEDPARAM */
package hue_kinds_pkg;
";

const fn code(verdict: Verdict) -> u8 {
    match verdict {
        Verdict::Drop => 0,
        Verdict::Forward => 1,
        Verdict::Punt => 2,
    }
}

fn constant(verdict: Verdict) -> String {
    format!("VERDICT_{}", verdict.word().to_uppercase())
}

fn codes<'a>(out: &mut String, prefix: &str, rows: impl Iterator<Item = (&'a str, u8, &'a str)>) {
    let mut count = 0;
    for (name, code, doc) in rows {
        let _ =
            writeln!(out, "  localparam logic [4:0] {prefix}_{} = 5'd{code};  // {doc}", name.to_uppercase());
        count += 1;
    }
    let _ = writeln!(out, "  localparam int unsigned {prefix}_COUNT = {count};");
}

fn plane(out: &mut String, kind: &Kind) {
    let prefix = kind.name.to_uppercase();
    let _ = write!(
        out,
        "
  // Kind `{}`: outcomes of a packet, in the order in which they are tried: the first whose condition holds.
  localparam int unsigned KIND_{prefix} = {};
",
        kind.name, kind.id
    );
    codes(
        out,
        &prefix,
        kind.outcome.iter().zip(1u8..).map(|(one, code)| (one.name.as_str(), code, one.doc.as_str())),
    );
    let _ = write!(
        out,
        "
  // The verdict of an outcome. Code 0, no outcome, gives a drop.
  function automatic logic [1:0] {}_verdict(logic [4:0] outcome);
    case (outcome)
",
        kind.name
    );
    for verdict in Verdict::ALL.into_iter().filter(|verdict| *verdict != Verdict::Drop) {
        let names: Vec<_> = kind.outcome.iter().filter(|one| one.verdict == verdict).collect();
        let names: Vec<_> = names.iter().map(|one| format!("{prefix}_{}", one.name.to_uppercase())).collect();
        if !names.is_empty() {
            let _ = writeln!(out, "      {}: return {};", names.join(", "), constant(verdict));
        }
    }
    let _ = write!(
        out,
        "      default: return {};
    endcase
  endfunction
",
        constant(Verdict::Drop)
    );
    for family in &kind.family {
        let name = &family.kind;
        let _ = write!(
            out,
            "
  // The outcome of kind `{kind}` that a packet has which kind `{name}` gives this one. Code 0, no outcome, stays.
  function automatic logic [4:0] {kind}_of_{name}(logic [4:0] outcome);
    case (outcome)
",
            kind = kind.name
        );
        for (own, code) in family.outcomes.iter().zip(1u8..) {
            let _ = writeln!(out, "      5'd{code}: return {prefix}_{};", own.to_uppercase());
        }
        out.push_str("      default: return 5'd0;\n    endcase\n  endfunction\n");
    }
}

/// How many outcomes an image with some of the kinds has to count.
fn outcomes_max(out: &mut String, spec: &Spec) {
    out.push_str(
        "
  // Outcomes of the kind that has most of them, among those of an image: bit KIND_* of `kinds`.
  function automatic int unsigned outcomes_max(int unsigned kinds);
    int unsigned most;
    most = 0;
",
    );
    for kind in spec.on_card() {
        let prefix = kind.name.to_uppercase();
        let _ =
            writeln!(out, "    if (kinds[KIND_{prefix}] && {prefix}_COUNT > most) most = {prefix}_COUNT;");
    }
    out.push_str("    return most;\n  endfunction\n");
}
