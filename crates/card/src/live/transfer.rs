//! Moves a network between the card and software while its frames flow. No frame is lost, duplicated or overtaken.
//!
//! Flow: order from control → **transfer**, step by step between rounds → report. The network's table is on both
//! sides before the move begins and when it ends. Frames are kept in order as follows (ADR 0013):
//!
//! To software: one row changes. All frames of a network pass the same stages and the same output queue in order;
//! frames that take the path through software return behind earlier ones. Once the records that were accepted before
//! the row changed have left, the card's table is no longer used.
//!
//! To the card: frames on the short path must wait, because they could overtake frames that are still in software:
//! 1. *aside*: frames that come back from software use the queues of a separate index, which are held until the
//!    network's queues are empty;
//! 2. *switch*: the network's queues are held, and the row changes;
//! 3. *drain*: a fence follows the last frame in software on its path: through the card to the CPU queue, through the
//!    worker that is the network's home, and back;
//! 4. *join*: frames from software use the network's own queues again; when the separate queues are empty, the hold
//!    ends.
//!
//! Immediately before the row changes, the debts of the network's meters are sent to the other side (`debts`). A network
//! that learns is known on the card before the first step; its worker always knows it (`learning`).
//!
//! If a step fails, the remaining steps take the network back, in an order that keeps the order of frames. So does a network
//! that control changes meanwhile, before it is loaded again (`returning`).

use std::time::Duration;

use hue_demux::Demux;
use hue_planes::Loss;
use hue_substrate::handover::{AllDebts, Record, Sighting};
use serde::{Deserialize, Serialize};

use super::seats::SeatId;
use super::witness::{Proof, Witness};

/// The two sides between which a network moves.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Side {
    /// The card decides.
    Card,
    /// Software decides.
    Software,
}

/// A step of a move. A step may take several rounds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Phase {
    /// No step yet: frames before the move are observed.
    Before,
    /// Frames from software are diverted.
    Aside,
    /// The row changes.
    Switch,
    /// The old path becomes empty.
    Drain,
    /// Frames from software use the network's own queues again.
    Join,
    /// Done: frames after the move are observed.
    After,
}

impl Phase {
    /// Its name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Before => "before",
            Self::Aside => "aside",
            Self::Switch => "switch",
            Self::Drain => "drain",
            Self::Join => "join",
            Self::After => "after",
        }
    }
}

/// The failure to cause; for tests.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Fail {
    /// This step fails, so the network returns.
    Step(Phase),
    /// The card fails while the old path becomes empty.
    Card,
    /// Not a step: every tenth frame from software is lost, sent twice, or delayed until a later one was sent. The
    /// report must show it.
    Frames(Mishap),
}

/// A fault of single frames, for tests.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Mishap {
    /// Lost.
    Lost,
    /// Sent twice.
    Doubled,
    /// Overtaken by a later frame of its flow.
    Reordered,
}

/// A move that control orders.
pub(super) struct Order {
    /// The network.
    pub seat: SeatId,
    /// The destination.
    pub to: Side,
    /// How long frames are observed before and after; `None` means no observation.
    pub watch: Option<(Demux, Duration)>,
    /// Time limit, without the observation.
    pub limit: Duration,
    /// Least time that the drain step takes; for tests.
    pub drain: Duration,
    /// The failure to cause.
    pub fail: Option<Fail>,
}

/// How an ordered move begins: what control learns besides its result.
#[derive(Clone, Copy, Default)]
pub(super) struct Ordered {
    /// How long the table took to write.
    pub prepared_ns: u64,
    /// Frames of the network that the card had received, if asked.
    pub received: Option<u64>,
}

/// Result of a move.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Report {
    /// Where the network is.
    pub at: Side,
    /// Why it is not at its destination.
    pub failed: Option<String>,
    /// Durations of the steps, in order, in nanoseconds.
    pub phases: Vec<(Phase, u64)>,
    /// Clock cycles of the card from the switch to the end of the hold.
    pub cycles: u64,
    /// Frames of the network that output queues dropped during the move.
    pub out_dropped: u64,
    /// Observations at the wires.
    pub proof: Option<Proof>,
}

/// A frame from software that waits until a later frame of its flow has been sent.
pub(super) struct Late {
    /// Its destination.
    pub queue: u8,
    /// Its tag in the card.
    pub tag: u32,
    /// Its flow.
    pub flow: u64,
    /// The frame, with the CPU header before it.
    pub bytes: Vec<u8>,
}

/// A move in progress.
pub(super) struct Transfer {
    pub(super) order: Order,
    pub(super) ordered: Ordered,
    pub(super) phase: Phase,
    /// Its destination. It is reversed when a step fails.
    pub(super) goal: Side,
    pub(super) at: Side,
    pub(super) began_ns: u64,
    /// How long frames are observed before and after.
    pub(super) watch_ns: u64,
    pub(super) failed: Option<String>,
    pub(super) phases: Vec<(Phase, u64)>,
    /// How often the network had been loaded when the move began.
    pub(super) loads: u32,
    /// The network's index, and the index for diverted frames.
    pub(super) net: u8,
    pub(super) aside: Option<u8>,
    /// Set if the network was changed during the move: frames of this index leave before the held frames.
    pub(super) older: Option<u8>,
    pub(super) fence: u64,
    /// When the fence was last sent, and whether it has returned, first through the card, then through software.
    pub(super) fence_ns: u64,
    pub(super) through_card: bool,
    pub(super) in_software: bool,
    pub(super) through_software: bool,
    /// The debts of the network's meter in software.
    pub(super) asked: Asked,
    pub(super) switched_cycles: u64,
    pub(super) cycles: u64,
    pub(super) drops: u64,
    pub(super) emptying: Emptying,
    /// The network's losses at the card's wires at the start of the observation.
    pub(super) rings: [(Loss, u64); 2],
    /// Number of frames that had been queued outside each port at the end of the observation.
    pub(super) before: Vec<u64>,
    pub(super) witness: Option<Witness>,
    /// Frames from software that were followed, for tests.
    pub(super) followed: u64,
    /// A delayed frame, for tests.
    pub(super) late: Option<Late>,
}

/// The question to a worker, and its answer.
#[derive(Default)]
pub(super) struct Asked {
    /// Name of the question, and when it was last sent.
    pub(super) question: Option<(u64, u64)>,
    /// What the network has learnt, as far as the worker has told it.
    pub(super) known: Vec<Sighting>,
    /// The worker's answer, or the end of it.
    pub(super) debts: Option<AllDebts>,
}

impl Asked {
    /// Whether a record answers the question.
    pub(super) fn is_answer(&self, record: &Record) -> bool {
        self.question.is_some_and(|(name, _)| name == record.time_ns)
    }
}

/// Progress of the check that no followed frame is inside any more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Emptying {
    Not,
    /// Some frames wait outside the card's ports.
    Before,
    /// All frames had begun to enter in this cycle.
    In(u64),
    /// A fence is in the card.
    Card,
    /// A fence is in software.
    Software,
    /// A second fence is in the card.
    Back,
    /// All queues were empty in this cycle.
    Out(u64),
    /// All frames have left the card; the rest of the round delivers them.
    Left,
}

impl Transfer {
    /// The network's index on the card.
    pub(super) fn net(&self) -> u8 {
        self.net
    }

    /// The fault for the next followed frame from software.
    pub(super) fn mishap(&mut self) -> Option<Mishap> {
        let Some(Fail::Frames(mishap)) = self.order.fail else { return None };
        self.followed += 1;
        self.followed.is_multiple_of(10).then_some(mishap)
    }

    /// Notes why the move failed. What goes wrong while it is undone is told as well.
    pub(super) fn fault(&mut self, text: &str) {
        match &mut self.failed {
            Some(before) if before.contains(text) => {}
            Some(before) => *before = format!("{before}; {text}"),
            None => self.failed = Some(text.to_owned()),
        }
    }

    /// Whether this step must fail, because a test wants it or the time limit was exceeded.
    pub(super) fn wants_fault(&mut self, phase: Phase) -> bool {
        if self.order.fail != Some(Fail::Step(phase)) {
            return false;
        }
        self.order.fail = None;
        self.fault(&format!("step '{}' failed, as requested", phase.name()));
        true
    }

    /// Whether the steps have exceeded the time limit.
    pub(super) fn is_late(&self, now_ns: u64) -> bool {
        let spent: u64 = self.phases.iter().skip(1).map(|(_, ns)| ns).sum();
        let spent = spent + now_ns.saturating_sub(self.began_ns);
        u128::from(spent) > self.order.limit.as_nanos()
    }

    /// Reverses a move that has taken too long, if this loses no frame.
    pub(super) fn expect(&mut self, now_ns: u64) {
        if self.goal != self.at && self.is_late(now_ns) {
            self.fault(&format!("it took more than {} ms", self.order.limit.as_millis()));
            self.goal = self.at;
        }
    }

    /// Whether the card decides the network since so recently that the last frame which software decides may still be in the card.
    pub(super) fn has_just_switched(&self) -> bool {
        let entering = self.phase == Phase::Switch || self.phase == Phase::Drain && !self.through_card;
        entering && self.aside.is_some() && self.at == Side::Card
    }

    /// Whether software decides the network again, and its worker has no fence yet behind the frames that came before.
    pub(super) fn owes_fence(&self) -> bool {
        let returned = self.phase == Phase::Drain && self.aside.is_some() && self.at == Side::Software;
        returned && self.through_card && !self.in_software
    }

    /// Nobody waits for it any more, and no worker answers: it ends as if it had taken too long, and is not observed.
    pub(super) fn hurry(&mut self) {
        (self.order.limit, self.order.drain, self.watch_ns) = (Duration::ZERO, Duration::ZERO, 0);
        self.witness = None;
    }

    /// The result.
    pub(super) fn report(self: Box<Self>) -> Report {
        let reported = |(phase, _): &(Phase, u64)| *phase != Phase::Before;
        Report {
            at: self.at,
            failed: self.failed,
            phases: self.phases.into_iter().filter(reported).collect(),
            cycles: self.cycles,
            out_dropped: self.drops,
            proof: self.witness.map(Witness::proof),
        }
    }
}
