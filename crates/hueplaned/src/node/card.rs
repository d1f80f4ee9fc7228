//! The running card: commands for its thread, in its own numbers.
//!
//! Flow: [`moves`](super::moves), changes of tables → **here** → commands to the card's thread → rows of its tables;
//! results → messages → moves. [`card_state`](super::card_state) says which card it is. Every network is in software too,
//! with the same routes: software gets the packets that the card's planes do not decide, and runs the networks that the
//! card cannot hold. A network with a port on the card is *seated*: the card recognizes its frames and hands them to
//! software. Once the network's table is complete, it is also written to the card, piece by piece; then one row gives
//! the decision to the card. If networks of the card share tables, these follow software's tables: one trie, two
//! encodings (`Node::forward`). Planes with tables of their own get each change of routes. Software changes first.
//! Invariants: nobody waits for the card; a network that does not fit runs in software, and so do all networks if the
//! card fails.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

use hue_card::{Bar, CardCommand, CardCounts, CardEvent, Device, OnFailure, SeatId, TableWork};
use hue_control::schedule::Schedule;
use hue_demux::{Match, PortId};
use hue_intent::PciAddress;
use hue_planes::{Adjacency, AdjacencyKind, UnclaimedCounters};
use hue_substrate::{Changes, HopChanges, Program};
use hue_tables::{Change, Delta, NextHop, Vid};

use super::routes::Table;
use super::running_card::{Made, RunningCard};
use super::view::CardView;
use crate::api::{CardInfo, Timestamp};

/// Groups of next hops that one command to the card writes.
const PIECE_GROUPS: usize = 4;
/// Routes or next hops that one command to the card writes. Frames wait no longer than this takes.
pub(super) const PIECE_ROWS: usize = 64;
/// Changed nodes, or nodes of an arriving table, that one command handles.
pub(super) const PIECE_NODES: usize = 512;
/// Route words from which a card keeps the tables of networks in software: a quarter of the papers' two banks. On-chip memory has fewer,
/// and is for the networks on the card.
const KEEPING_WORDS_MIN: u32 = 1 << 18;
/// Packet slots of the card's thread.
pub(super) const SLOTS: u32 = 16_384;

/// In programs for the card, replaces ports that do not belong to the card.
const ELSEWHERE: PortId = PortId::new(PortId::PHYSICAL as u8 - 1);

/// The card and its networks.
pub struct CardSide {
    pub(super) live: RunningCard,
    pub(super) started: Instant,
    /// The same by the system's clock.
    pub(super) since: Timestamp,
    /// The card's own number of each of its ports.
    pub(super) numbers: BTreeMap<PortId, u8>,
    /// It was taken over from the daemon before, and has tables that do not follow software's.
    pub(super) is_stale: bool,
}

/// A message about the card.
pub enum CardNews {
    /// The card's thread reports.
    Event(CardEvent),
    /// Which networks are on a card that was taken over: all of this node's networks are set up.
    Left,
    /// Where the scheduler places networks.
    Scheduled(Box<Schedule>),
    /// A card with another image and all networks in software; or why there is none.
    Image(Result<Made, String>),
}

/// A card's counters of networks, and of frames that belong to none.
pub type CardAnswer = (BTreeMap<Vid, CardCounts>, UnclaimedCounters);

impl CardSide {
    /// Whether tables of networks in software stay on the card: only if it has room for many.
    pub(super) fn keeps(&self) -> bool {
        let card = self.live.description();
        !self.is_stale && card.layout == hue_card::Layout::Sram && card.sram_words >= KEEPING_WORDS_MIN
    }

    /// The public view of it, with the names of its ports.
    pub(super) fn view(&self, ports: Vec<String>, drained: bool) -> CardView {
        let description = self.live.description();
        let api = CardInfo {
            image: description.name.clone(),
            bus_bits: 8 * description.bus_bytes,
            clock_khz: description.clock_khz,
            layout: description.layout.name().to_owned(),
            networks_max: description.indices(true),
            ports,
            drained,
            scheduling: self.live.scheduling().scheduling.name().to_owned(),
            cycles: 0,
            simulated_seconds: 0.0,
            clocking_seconds: 0.0,
            wall_seconds: 0.0,
            repaired_words: 0,
        };
        CardView { api, started: self.started, since: self.since, totals: self.live.totals_reader() }
    }

    /// Description of its image.
    pub(super) fn description(&self) -> &hue_card::Description {
        self.live.description()
    }

    /// The card's number of a port; tunnels keep theirs.
    pub(super) fn number(&self, port: PortId) -> PortId {
        if port.is_tunnel() {
            return port;
        }
        self.numbers.get(&port).copied().map_or(ELSEWHERE, PortId::new)
    }

    /// A program in the card's own numbers.
    pub(super) fn on_card(&self, program: &Program) -> Program {
        let mut program = program.renumbered(|port| self.number(port));
        // Frames of other ports never reach the card.
        program.rows.retain(|row| match row.select {
            Match::Mac { port, .. } | Match::Port(port) | Match::Inner { port: Some(port), .. } => {
                port != ELSEWHERE
            }
            Match::Inner { port: None, .. } => true,
        });
        program
    }

    /// Makes the card write changes of a table, piece by piece, until one fails.
    pub(super) fn write(
        &self,
        seat: SeatId,
        hops: &HopChanges,
        routes: &[Change<u32>],
        on_failure: OnFailure,
    ) {
        let here = |(index, hop): &(NextHop, Adjacency)| (*index, hop.on_port(self.number(hop.port())));
        for piece in hops.rows.chunks(PIECE_ROWS) {
            self.work(seat, TableWork::Hops(piece.iter().map(here).collect()), on_failure);
        }
        for piece in hops.groups.chunks(PIECE_GROUPS) {
            self.work(seat, TableWork::Groups(piece.to_vec()), on_failure);
        }
        for piece in routes.chunks(PIECE_ROWS).map(<[_]>::to_vec) {
            self.work(seat, TableWork::Routes(piece), on_failure);
        }
    }

    /// Whether its tables follow those of software. Shared tables do.
    pub(super) fn follows(&self) -> bool {
        !self.is_stale && self.description().words_of_node().is_some()
    }

    /// Makes the card write a network's table, piece by piece: its next hops, then its routes or, if tables follow
    /// those of software, the nodes of software's table.
    pub(super) fn write_table(
        &self,
        seat: SeatId,
        table: &Table,
        live: &hue_soft::Live,
        on_failure: OnFailure,
    ) {
        let numbered = |hops: Vec<Adjacency>| {
            let plain = (0u16..).zip(hops).filter(|(_, hop)| hop.kind() != AdjacencyKind::Group);
            let rows = plain.filter_map(|(index, hop)| Some((NextHop::new(index)?, hop))).collect();
            HopChanges { rows, groups: table.published_groups() }
        };
        if !self.follows() {
            let (hops, routes) = table.published();
            let routes = Changes::setting(routes);
            return self.write(seat, &numbered(hops), &routes.v4, on_failure);
        }
        self.write(seat, &numbered(table.published_rows()), &[], on_failure);
        let words = live.follower_account(seat.vid).map_or(0, |account| account.bytes_own);
        for _ in 0..=words / PIECE_NODES as u64 {
            self.work(seat, TableWork::Bring(PIECE_NODES), on_failure);
        }
        // Usually nothing is left.
        self.work(seat, TableWork::BringAll(PIECE_NODES), on_failure);
    }

    /// Makes the card's tables follow those of software, each by its network's seat, if it has one.
    pub(super) fn tell_deltas(&self, deltas: Vec<Delta>, seat: impl Fn(Vid) -> Option<(SeatId, OnFailure)>) {
        let seat = |delta: &Delta| {
            let Delta::Root(table, _) = delta else { return None };
            Some((table.vid(), seat(table.vid())?))
        };
        let seats = deltas.iter().filter_map(seat).collect();
        self.live.tell(CardCommand::Follow { deltas, seats });
    }

    /// Makes the card do one piece of work on a table, if nothing failed before.
    pub(super) fn work(&self, seat: SeatId, work: TableWork, on_failure: OnFailure) {
        self.live.tell(CardCommand::Table { seat, work, on_failure });
    }
}

/// Message about a real card: hueplane reads its registers, and does not use it otherwise yet.
pub(super) fn plugged_in(address: PciAddress) -> Result<String, String> {
    let path = format!("/sys/bus/pci/devices/{address}/resource0");
    if !Path::new(&path).exists() {
        return Err(format!("PCI device {address} does not exist (lspci -D lists the existing ones)"));
    }
    let text = |error: &dyn std::fmt::Display| format!("PCI device {address}: {error}");
    let bar = Bar::open(Path::new(&path)).map_err(|error| text(&error))?;
    let device = Device::discover(bar).map_err(|error| text(&error))?;
    let description = device.description();
    Ok(format!(
        "PCI device {address} is a card with image '{}' ({}), but it passes frames to software through DMA queues, which \
         hueplane does not support yet",
        description.name,
        words(description)
    ))
}

/// Description of a card, for people.
pub(super) fn words(description: &hue_card::Description) -> String {
    format!(
        "{} bits at {} MHz, {}, up to {} networks",
        8 * description.bus_bytes,
        f64::from(description.clock_khz) / 1000.0,
        description.layout.name(),
        description.indices(true)
    )
}
