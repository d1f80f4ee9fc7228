//! The reference page of outcomes and metrics from the specification.

use std::fmt::Write;

use crate::spec::{Counts, Kind, Setting, Spec, Values, Verdict};

/// The text of `docs/reference/outcomes.md`.
pub fn emit(spec: &Spec) -> String {
    let mut out = String::from(HEAD);
    let limits = &spec.frame_limits;
    let _ = write!(
        out,
        "
A port accepts frames of {} to {} bytes, counted from the destination MAC to the last byte, without preamble and FCS.

## Frames of no network

| reason | code | when | meaning | source |
| --- | --- | --- | --- | --- |
",
        limits.bytes_min, limits.bytes_max
    );
    for one in &spec.unclaimed {
        let _ =
            writeln!(out, "| `{}` | {} | {} | {} | {} |", one.name, one.code, one.when, one.doc, one.source);
    }
    for kind in spec.offered() {
        plane(&mut out, kind);
    }
    losses(&mut out, spec);
    port_losses(&mut out, spec);
    metrics(&mut out, spec);
    out
}

const HEAD: &str = "\
# Outcomes and metrics

<!-- Generated from spec/kinds.toml and spec/kinds/ by spec/codegen: edit those files, then `cargo run -p hue-spec-codegen`. -->

Outcomes are tried in this order. The first one whose condition is true is the packet's outcome, so a condition may assume
that all conditions above it are false. Each packet of a network is counted once, under its outcome:

    received = forward + all punts + all drops

Terms: `n` is the frame's length in bytes, `f[i]` its byte *i*, `be16(i)` the number `f[i] * 256 + f[i+1]`, `present` is
`n - 14`, and `hop` is the row of the network's next-hop table that the lookup names. Each kind has terms of its own.

The class of an outcome says what other parts of hueplane need to know about it:

| class | meaning |
| --- | --- |
| `own` | for the router itself: such packets may use the whole punt limit, others half of it |
| `guard_arp` | the same, and the ARP message must pass the guard against forged claims |
| `guard_nd` | the same, and the packet must pass the guard if it is a message of neighbour discovery |
| `unreachable` | no route of the plane leads to the destination |
| `foreign` | the protocol of the frame (its EtherType) is not one that the kind handles |
| `flood` | the frame is sent to all ports of the network but the one it came from |
| `storm` | such a frame, beyond the network's limit for them |
| `delegated` | the kernel of the network's namespace, or a program there, forwards it: no punt limit applies |
";

fn plane(out: &mut String, kind: &Kind) {
    let limits = &kind.limits;
    let _ = write!(
        out,
        "
## Kind `{}` (id {})

{} It runs on: {}. A network has at most {} next hops. A port's MTU is {} to {} bytes of IP.
",
        kind.name,
        kind.id,
        kind.doc,
        kind.runs_on.join(", "),
        limits.next_hops_max,
        limits.mtu_bytes_min,
        limits.mtu_bytes_max
    );
    if !kind.question.is_empty() {
        out.push_str("\n| looked up | match | bits |\n| --- | --- | --- |\n");
    }
    for one in &kind.question {
        let _ = writeln!(out, "| `{}` | {} | {} |", one.key, one.by.words(), one.key_bits);
    }
    if !kind.setting.is_empty() {
        out.push_str(
            "\n| setting | values | default | meaning | source |\n| --- | --- | --- | --- | --- |\n",
        );
    }
    for one in &kind.setting {
        let (values, default) = values(one);
        let _ = writeln!(out, "| `{}` | {values} | {default} | {} | {} |", one.name, one.doc, one.source);
    }
    if !kind.term.is_empty() {
        out.push_str("\n| term | is | |\n| --- | --- | --- |\n");
    }
    for one in &kind.term {
        let doc = one.doc.as_deref().unwrap_or_default();
        let _ = writeln!(out, "| `{}` | `{}` | {doc} |", one.name, one.means);
    }
    out.push_str(OUTCOMES);
    for (one, code) in kind.outcome.iter().zip(1u8..) {
        let class = one.class.map_or_else(String::new, |class| format!("`{}`", class.word()));
        let _ = writeln!(
            out,
            "| `{}` | {code} | {} | {class} | {} | {} | {} | {} |",
            one.name,
            one.verdict.word(),
            one.stage,
            one.when,
            one.doc,
            one.source
        );
    }
}

const OUTCOMES: &str = "
| outcome | code | verdict | class | stage | when | meaning | source |
| --- | --- | --- | --- | --- | --- | --- | --- |
";

fn losses(out: &mut String, spec: &Spec) {
    out.push_str(LOSSES);
    for one in &spec.loss {
        let _ = writeln!(
            out,
            "| `{}` | {} | {} | {} | {} |",
            one.name,
            one.code,
            one.stage.word(),
            one.when,
            one.doc
        );
    }
}

const LOSSES: &str = "
## Losses outside the plane

A running system can lose a packet before or after its plane:

| stage | when the packet is lost |
| --- | --- |
| `arrival` | before the network's worker counts it as received |
| `queue` | after that, and before the plane decides |
| `departure` | after the plane, or the network's control plane, has chosen its destination |

Frames from the control plane wait in the same queue. For each network, with `control` the frames of its control plane that
left the queue to be sent, these sums hold:

    received + from control  = forward + all punts + all drops + control + queue losses + waiting
    forward + control        = sent + port_full + port_down + handover_send_full + on the way to another worker
    all punts                = to control + arp_forged + punt_limited + control_full + control_absent

| loss | code | stage | when | meaning |
| --- | --- | --- | --- | --- |
";

fn port_losses(out: &mut String, spec: &Spec) {
    out.push_str(PORT_LOSSES);
    for one in &spec.port_loss {
        let _ = writeln!(out, "| `{}` | {} | {} | {} |", one.name, one.code, one.when, one.doc);
    }
}

const PORT_LOSSES: &str = "
## Losses at a port

A port can lose a frame before it is received, or when it is sent. For each port,

    arrived = received + ring_full + ring_quota + shared_quota + no_network + runt

Each loss has an owner:

- `ring_quota` of all ports is the sum of the networks' `ring_quota`, as long as no network is removed. The same holds for `ring_full` of ports
  that police, except for frames that belong to no single network.
- `no_network` and `runt` are included in `hueplane_unclaimed_frames_total`.
- `shared_quota` belongs to no network, because its frames are for several networks, or their network is not yet known.

| loss | code | when | meaning |
| --- | --- | --- | --- |
";

fn metrics(out: &mut String, spec: &Spec) {
    out.push_str("\n## Metrics\n\n| metric | values of the last label | meaning |\n| --- | --- | --- |\n");
    for metric in &spec.metric {
        let values: Vec<String> = match metric.counts {
            Counts::Verdict | Counts::PortVerdict | Counts::FamilyVerdict => {
                Verdict::ALL.into_iter().map(Verdict::word).collect()
            }
            Counts::Drop => names(spec, Verdict::Drop),
            Counts::Punt => names(spec, Verdict::Punt),
            Counts::Unclaimed => spec.unclaimed.iter().map(|one| one.name.clone()).collect(),
            Counts::Loss => spec.loss.iter().map(|one| one.name.clone()).collect(),
            Counts::NetworkBytes | Counts::PortPackets | Counts::PortBytes => words(&["received", "sent"]),
            Counts::PortLoss => spec.port_loss.iter().map(|one| one.name.clone()).collect(),
        };
        let values: Vec<_> = values.iter().map(|value| format!("`{value}`")).collect();
        let _ = writeln!(
            out,
            "| `{}{{{}}}` | {} | {} |",
            metric.name,
            metric.labels.join(","),
            values.join(" "),
            metric.doc
        );
    }
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn names(spec: &Spec, verdict: Verdict) -> Vec<String> {
    let mut names = Vec::new();
    for one in spec.offered().flat_map(|kind| &kind.outcome) {
        if one.verdict == verdict && !names.contains(&one.name) {
            names.push(one.name.clone());
        }
    }
    names
}

/// The values that a setting can have, and what holds without it.
fn values(setting: &Setting) -> (String, String) {
    match &setting.values {
        Values::Number { min, max, multiple_of: 1, default } => {
            (format!("{min} to {max}"), default.to_string())
        }
        Values::Number { min, max, multiple_of, default } => {
            (format!("{min} to {max}, a multiple of {multiple_of}"), default.to_string())
        }
        Values::Flag { default } => ("true, false".to_owned(), default.to_string()),
        Values::Choice(words) => (words.join(", "), words.first().cloned().unwrap_or_default()),
        Values::List { words, default } => (words.join(", "), format!("[{}]", default.join(", "))),
        Values::Other { values, default } => (values.clone(), default.clone()),
    }
}
