//! What control tells a running card, and what the card tells control, as values.
//!
//! Flow: control → [`CardCommand`]s, in order → the card's thread, which executes one between two rounds →
//! [`super::CardEvent`]s and [`CardReply`]s → control. They are values, not functions, so the card's thread need not be in
//! control's process. Invariants: commands are executed in order; a question gets one answer, or none if the card ends
//! before.
//!
//! Most commands name a network's seat ([`SeatId`]). What the card reports about a former seat concerns nobody.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use hue_demux::{Demux, PortId};
use hue_planes::group::Slots;
use hue_planes::{Adjacency, UnclaimedCounters};
use hue_ports::{ClassRule, Port};
use hue_substrate::Program;
use hue_substrate::handover::{Home, Peer};
use hue_substrate::wake::Wake;
use hue_tables::{Account, Change, Delta, NextHop, Vid};
use serde::{Deserialize, Serialize};

use super::seats::{SeatId, Seats};
use super::totals::CardCounts;
use super::transfer::{Fail, Side};
use crate::card::Card;
use crate::memory::CardMemory;
use crate::twin::Twin;

/// A command to a running card.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum CardCommand {
    /// Closes the port with this number.
    TakePort(u8),
    /// Sets the limits before the ring of a port. The port also works without them.
    SetClasses {
        /// The port.
        id: PortId,
        /// Which frames belong to which class.
        rules: Vec<ClassRule>,
        /// The frames of each class that may be in the ring.
        quotas: Vec<(u16, u32)>,
    },
    /// Loads networks, which software decides, and sets their workers. If they cannot be loaded:
    /// [`super::CardEvent::Refused`].
    Load {
        /// The workers.
        homes: Vec<(Vid, Option<Home>)>,
        /// The networks, with the card's port numbers, without tables.
        programs: Vec<Program>,
    },
    /// Removes the table of a loaded network, and software decides it.
    Strip(Box<Program>),
    /// Removes a network.
    Unload(Vid),
    /// One piece of work on a table.
    Table {
        /// The table.
        seat: SeatId,
        /// The work. It is skipped if earlier work on this seat failed.
        work: TableWork,
        /// What follows if it fails.
        on_failure: OnFailure,
    },
    /// Makes the card's tables follow those of software.
    Follow {
        /// The changes.
        deltas: Vec<Delta>,
        /// The seats of the networks that change, and what follows if a table cannot follow.
        seats: BTreeMap<Vid, (SeatId, OnFailure)>,
    },
    /// Moves a network: [`super::CardEvent::Moved`].
    Move(Box<MoveCommand>),
    /// Reports when everything that a network in software has already sent through the card has left it:
    /// [`super::CardEvent::Drained`].
    Drain {
        /// The network.
        seat: SeatId,
        /// When its neighbours were told, nanoseconds of the card's clock ([`super::LiveCard::now_ns`]).
        began_ns: u64,
    },
    /// Makes frames bypass the card: [`super::CardEvent::Bypassed`]. All of these networks must be in software.
    Bypass(Vec<Program>),
    /// Ends the bypass: frames pass through the card again.
    EndBypass,
}

/// A job for the card's thread.
pub(super) enum Job {
    /// A command, with what was prepared for it: how to tell frames of networks apart, if a move is observed.
    Command(Box<CardCommand>, Option<Demux>),
    /// Connects a port of the card, named by the card's number and as networks name it, to a wire. A former wire is
    /// closed.
    SetPort(u8, PortId, Box<dyn Port>),
    /// Ends the bypass with this card, which must have the same networks in software and as many ports.
    Replace(Box<Card<Twin>>),
    /// Asks something, with the number of the answer.
    Ask(u64, CardQuestion),
    /// Another control takes the card over: see [`super::LiveCard::attach`].
    Attach(Box<Attachment>),
}

/// What a control shares with the card's thread.
pub(super) struct Attachment {
    /// Wakes the card's thread.
    pub wake: Arc<Wake>,
    /// The workers.
    pub peers: Vec<Peer>,
    /// The seats that are valid.
    pub seats: Arc<Seats>,
}

/// One piece of work on a network's table.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum TableWork {
    /// Takes a plane for the network, if the image has planes with tables of their own.
    TakePlane,
    /// Makes the card decide the network's packets. For planted faults.
    Decide,
    /// Sets next hops.
    Hops(Vec<(NextHop, Adjacency)>),
    /// Makes next hops groups.
    Groups(Vec<(NextHop, Slots)>),
    /// Sets and withdraws routes.
    Routes(Vec<Change<u32>>),
    /// Places about as many more nodes of software's table.
    Bring(usize),
    /// Places all nodes that are left, in pieces of about as many.
    BringAll(usize),
}

/// What follows when a table is not correct any more.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum OnFailure {
    /// Nothing. The move that follows ends, and reports it.
    EndsMove,
    /// The network goes to software at once: [`super::CardEvent::Fell`].
    Falls,
    /// The network is in software: [`super::CardEvent::NotKept`].
    IsNotKept,
}

/// A move, and what must be true before it begins.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct MoveCommand {
    /// The network.
    pub seat: SeatId,
    /// The destination.
    pub to: Side,
    /// How long frames are observed before and after, and all networks of the card; `None` means no observation.
    pub watch: Option<(Duration, Vec<Program>)>,
    /// Time limit, without the observation.
    pub limit: Duration,
    /// Least time that the drain step takes; for tests.
    pub drain: Duration,
    /// The failure to cause.
    pub fail: Option<Fail>,
    /// For a move to the card: the table must be there.
    pub table: Option<ComingTable>,
    /// Whether to report how many frames of the network the card had received when the move began.
    pub counts: bool,
}

/// A table that was written for a move to the card.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ComingTable {
    /// The network without a table. It is loaded again if the table could not be written.
    pub bare: Program,
    /// When writing began, nanoseconds of the card's clock.
    pub began_ns: u64,
    /// Failure for tests: the table counts as not written.
    pub fails: bool,
}

/// A question to a running card.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum CardQuestion {
    /// The counters of these networks, and of frames that belong to none. One network is read between two rounds.
    Counts(Vec<Vid>),
    /// The networks that the card decides.
    OnCard,
    /// How full the tables are, given the accounts of software's tables.
    Memory(HashMap<Vid, Account>),
}

/// The answer to a [`CardQuestion`].
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum CardReply {
    /// Of `Counts`; without networks that the card does not know.
    Counts(BTreeMap<Vid, CardCounts>, UnclaimedCounters),
    /// Of `OnCard`.
    OnCard(Vec<Vid>),
    /// Of `Memory`.
    Memory(CardMemory),
}
