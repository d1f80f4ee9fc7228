//! Moves of networks between card and software.
//!
//! Flow: a document's `placement`, or a request → **here** → table to the card, piece by piece → the card's thread
//! moves the frames ([`hue_card::Order`]) → [`Moved`] → here. A network's table is on both sides from before the
//! first step until after the last: route changes go to both. A failed move leaves the network where it was, and is
//! reported. Invariants: one move of a network at a time; nobody waits for the card.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

use hue_card::{Report, SeatId, Seen};
use hue_intent::Placement;
use tokio::sync::oneshot;

use crate::api::{
    MigrateRequest, Migration, MigrationHold, MigrationPhase, MigrationSteering, PacketsSeen, Problem,
    SubstrateName,
};

/// Time limit for the steps of a move on behalf of a document.
pub(super) const LIMIT: Duration = Duration::from_secs(1);

/// Whether networks must stay where they are.
#[derive(Default)]
pub struct Hold {
    /// The network for whose requested move the card is reserved. Until then the node moves no other network.
    reserved: Option<String>,
    /// Whether moves were deferred because of a reservation or an image load.
    deferred: bool,
}

impl Hold {
    /// Reserves the card for the move of this network.
    pub fn reserve(&mut self, name: &str) {
        self.reserved = Some(name.to_owned());
    }

    /// Ends the reservation.
    pub fn end_reservation(&mut self) {
        self.reserved = None;
    }

    /// Whether the card is reserved.
    pub fn is_reserved(&self) -> bool {
        self.reserved.is_some()
    }

    /// Whether the card is reserved for this network.
    pub fn is_reserved_for(&self, name: &str) -> bool {
        self.reserved.as_deref() == Some(name)
    }

    /// A move is deferred.
    pub fn defer(&mut self) {
        self.deferred = true;
    }

    /// Whether moves were deferred since the last call.
    pub fn take_deferred(&mut self) -> bool {
        std::mem::take(&mut self.deferred)
    }
}

/// A requested move.
pub struct Asked {
    pub(super) name: String,
    pub(super) request: MigrateRequest,
    /// Whether the network's document names the new place from then on.
    pub(super) pin: bool,
    /// How neighbours were redirected before it began, and how many frames the card had received then.
    pub(super) steering: Option<(MigrationSteering, Option<u64>)>,
    pub(super) reply: oneshot::Sender<Result<Migration, Problem>>,
}

impl Asked {
    /// The same, once neighbours were redirected.
    pub(super) fn steered(self, steering: MigrationSteering, by_card: Option<u64>) -> Self {
        Self { steering: Some((steering, by_card)), ..self }
    }

    /// The same, once it is known how many frames the card had received when the move began. Those that it received
    /// after neighbours were redirected came late.
    pub(super) fn counted(mut self, received: Option<u64>) -> Self {
        if let Some((steering, Some(before))) = &mut self.steering {
            steering.late = received.unwrap_or(*before).saturating_sub(*before);
        }
        self
    }
}

/// Result of a move, for the caller.
pub struct Arrived {
    pub(super) asked: Asked,
    pub(super) outcome: Result<Report, String>,
    pub(super) prepare_ns: u64,
    /// The network is at its destination.
    pub(super) arrived: bool,
    pub(super) failed: Option<String>,
}

/// A move has ended.
pub struct Ended {
    /// The seat of the network.
    pub(super) seat: SeatId,
    /// Why its table is not on the card; or the result from the card's thread.
    pub(super) outcome: Result<Report, String>,
    /// Time to write the table, nanoseconds.
    pub(super) prepare_ns: u64,
    pub(super) asked: Option<Asked>,
}

/// The `placement` for a network at this place.
pub const fn placement(to: SubstrateName) -> Placement {
    match to {
        SubstrateName::Card => Placement::Card,
        SubstrateName::Soft => Placement::Soft,
    }
}

pub(super) fn migration(
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

pub(super) fn seen(seen: Seen) -> PacketsSeen {
    PacketsSeen {
        received: seen.received,
        sent: seen.sent,
        us: seen.ns / 1000,
        gap_us_max: seen.gap_ns_max / 1000,
    }
}
