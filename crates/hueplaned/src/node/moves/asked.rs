//! Requested moves, and how moves end.
//!
//! Flow: request → **[`Asked`]** → move → **[`Ended`]** → **[`Arrived`]** → [`answered`](super::answered) → caller.

use hue_card::{Report, SeatId, Side};
use hue_intent::Placement;
use tokio::sync::oneshot;

use crate::api::{MigrateRequest, Migration, MigrationSteering, Problem, SubstrateName};

/// A requested move.
pub struct Asked {
    /// The network.
    pub name: String,
    /// Where and how.
    pub request: MigrateRequest,
    /// Whether the network's document names the new place from then on.
    pub pin: bool,
    /// How neighbours were redirected before it began, and how many frames the card had received then.
    pub steering: Option<(MigrationSteering, Option<u64>)>,
    /// Who waits for it.
    pub reply: oneshot::Sender<Result<Migration, Problem>>,
}

impl Asked {
    /// The same, once neighbours were redirected.
    pub fn steered(self, steering: MigrationSteering, by_card: Option<u64>) -> Self {
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
    /// The request.
    pub asked: Asked,
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

impl Ended {
    pub(super) fn at(&self) -> Side {
        self.outcome.as_ref().map_or(Side::Software, |report| report.at)
    }

    pub(super) fn failed(&self) -> Option<String> {
        match &self.outcome {
            Err(why) => Some(why.clone()),
            Ok(report) => report.failed.clone(),
        }
    }

    /// Whether the network is at its destination.
    pub(super) fn has_arrived(&self) -> bool {
        match self.asked.as_ref().map(|asked| asked.request.to) {
            Some(SubstrateName::Card) => self.at() == Side::Card,
            Some(SubstrateName::Soft) => self.at() == Side::Software,
            None => self.failed().is_none(),
        }
    }

    /// The place that the network's document names from now on, if the move changes it.
    pub(super) fn pinned(&self) -> Option<Placement> {
        let asked = self.asked.as_ref().filter(|asked| asked.pin && self.has_arrived());
        asked.map(|asked| placement(asked.request.to))
    }
}

/// The `placement` for a network at this place.
pub const fn placement(to: SubstrateName) -> Placement {
    match to {
        SubstrateName::Card => Placement::Card,
        SubstrateName::Soft => Placement::Soft,
    }
}
