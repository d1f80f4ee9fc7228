//! Reports of moves: from what the card's thread has seen to what a caller gets.
//!
//! Flow: [`Report`] → **here** → event, answer.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

use hue_card::{Report, Seen};

use super::asked::{Arrived, Asked};
use crate::api::{
    EventKind, Migration, MigrationHold, MigrationPhase, MigrationSteering, PacketsSeen, Problem,
    ProblemKind, SubstrateName,
};

/// Time limit for the steps of a move on behalf of a document.
pub const LIMIT: Duration = Duration::from_secs(1);

/// The event about a requested move, and the answer. `bytes_max` is what the card can hold of a network; without it, there is
/// no card any more, and no answer if all went well.
pub fn answered(
    arrived: Arrived,
    steering: Option<MigrationSteering>,
    bytes_max: Option<u64>,
) -> Option<(EventKind, String, Asked, Result<Migration, Problem>)> {
    let Arrived { asked, outcome, prepare_ns, arrived, failed } = arrived;
    let refused = |asked, kind, detail: String| {
        let problem = Problem::new(kind, format!("the network did not move: {detail}"));
        Some((EventKind::MigrationFailed, detail, asked, Err(problem)))
    };
    let report = match outcome {
        Err(why) => return refused(asked, ProblemKind::Full, format!("the card cannot run it: {why}")),
        Ok(report) => report,
    };
    if !arrived {
        let why = failed.unwrap_or_default();
        let seen = report.proof.as_ref().map(|proof| {
            let (lost, doubled, reordered) = (proof.lost(), proof.doubled, proof.reordered);
            format!(" ({lost} lost, {doubled} doubled, {reordered} reordered, {} undecided)", proof.undecided)
        });
        let detail = format!("{why}{}", seen.unwrap_or_default());
        return refused(asked, ProblemKind::Internal, detail);
    }
    let mut migration = migration(&asked, &report, prepare_ns, bytes_max?, failed);
    migration.steering = steering.or_else(|| asked.steering.clone().map(|(steering, _)| steering));
    let text = format!(
        "the network has moved to {} in {} us: {}",
        migration.to.name(),
        migration.duration_us,
        migration.verdict()
    );
    Some((EventKind::Migrated, text, asked, Ok(migration)))
}

fn migration(
    asked: &Asked,
    report: &Report,
    prepare_ns: u64,
    bytes_max: u64,
    trouble: Option<String>,
) -> Migration {
    let to = asked.request.to;
    let prepare = (to == SubstrateName::Card).then_some(("prepare", prepare_ns));
    let steps = report.phases.iter().map(|(phase, ns)| (phase.name(), *ns));
    let phases: Vec<MigrationPhase> = prepare
        .into_iter()
        .chain(steps)
        .map(|(name, ns)| MigrationPhase { name: name.to_owned(), us: ns / 1000 })
        .collect();
    let proof = report.proof.clone().unwrap_or_default();
    let [before, during, after] = proof.seen.map(seen);
    let named = |counts: &BTreeMap<Cow<'static, str>, u64>| -> BTreeMap<String, u64> {
        counts.iter().map(|(name, count)| (name.clone().into_owned(), *count)).collect()
    };
    let mut outcomes = named(&proof.dropped);
    outcomes.append(&mut named(&proof.punted));
    let dropped = match &report.proof {
        Some(proof) => proof.lost.get(hue_card::OUTPUT_FULL).copied().unwrap_or_default(),
        None => report.out_dropped,
    };
    Migration {
        network: asked.name.clone(),
        from: if to == SubstrateName::Card { SubstrateName::Soft } else { SubstrateName::Card },
        to,
        lost: proof.lost(),
        lost_by: named(&proof.lost),
        undecided: proof.undecided,
        doubled: proof.doubled,
        reordered: proof.reordered,
        duration_us: phases.iter().filter(|phase| phase.name != "after").map(|phase| phase.us).sum(),
        gap_us_max: during.gap_us_max,
        gap_us_max_control: before.gap_us_max.max(after.gap_us_max),
        phases,
        before,
        during,
        after,
        outcomes,
        hold: (to == SubstrateName::Card).then_some(MigrationHold { bytes_max, dropped }),
        cycles: report.cycles,
        cut: proof.cut,
        trouble,
        steering: None,
        image: None,
    }
}

fn seen(seen: Seen) -> PacketsSeen {
    PacketsSeen {
        received: seen.received,
        sent: seen.sent,
        us: seen.ns / 1000,
        gap_us_max: seen.gap_ns_max / 1000,
    }
}
