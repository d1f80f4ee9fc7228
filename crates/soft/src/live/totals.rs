//! Counters of a running system: workers write them and any thread reads them, without locks.
//!
//! Flow: a worker counts in its own plain numbers and publishes them into a [`Block`] from time to time, so that a
//! reader sees one moment of that worker, whose numbers add up. A network has a block at each worker (its frames
//! arrive at one worker and are decided at another); readers add them. The registry of blocks has a lock that only
//! control and readers take. Units: packets, bytes.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::SystemTime;

use hue_demux::PortId;
use hue_planes::{Counters, Kind, Loss, Losses, OUTCOMES_MAX, Reason, Unclaimed, UnclaimedCounters};
use hue_ports::{Driver, DriverCounters};
use hue_substrate::SwitchCounts;
use hue_tables::Vid;

use super::block::Block;

/// Counters of a network since it was loaded. `docs/reference/outcomes.md` has their sums.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NetworkTotals {
    /// Packets that the plane decided, by outcome.
    pub outcomes: Counters,
    /// Packets lost outside the plane, by reason.
    pub losses: Losses,
    /// By virtual port, in the order of the program; longer while ports that a reload removed are remembered.
    pub ports: Vec<VportTotals>,
    /// Frames that the control plane sent.
    pub from_control_packets: u64,
    /// Their bytes.
    pub from_control_bytes: u64,
    /// How many of them left the queue to be sent on a port.
    pub control_packets: u64,
    /// Packets that the control plane received.
    pub to_control_packets: u64,
    /// Their bytes.
    pub to_control_bytes: u64,
    /// Frames in the network's queue.
    pub waiting_packets: u64,
    /// Frames between the network's worker and the worker of the port by which they leave.
    pub crossing_packets: u64,
    /// Received frames that arrived on NICs beside the card's ports, without group frames.
    pub nic_packets: u64,
    /// Copies of frames that the network sent to several ports.
    pub copies: u64,
    /// Punted packets that were those of tunnels, and went on to the networks with the tunnels.
    pub to_tunnel_packets: u64,
    /// What happened to MAC addresses; zeros if the network's kind does not learn.
    pub switch: SwitchCounts,
}

/// Counters of a network at one of its virtual ports.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct VportTotals {
    /// Frames received there that design select assigned to the network.
    pub received_packets: u64,
    /// Their bytes.
    pub received_bytes: u64,
    /// Frames sent there, forwarded or from the control plane.
    pub sent_packets: u64,
    /// Their bytes.
    pub sent_bytes: u64,
    /// Packets received there and forwarded.
    pub forwarded: u64,
    /// Packets received there and punted.
    pub punted: u64,
    /// Packets received there and dropped by the plane.
    pub dropped: u64,
    /// Frames received there, or from the control plane, lost before the plane.
    pub lost: u64,
}

const VPORT_WORDS: usize = 8;

impl VportTotals {
    fn words(&self) -> [u64; VPORT_WORDS] {
        [
            self.received_packets,
            self.received_bytes,
            self.sent_packets,
            self.sent_bytes,
            self.forwarded,
            self.punted,
            self.dropped,
            self.lost,
        ]
    }

    fn add(&mut self, words: &[u64]) {
        let fields = [
            &mut self.received_packets,
            &mut self.received_bytes,
            &mut self.sent_packets,
            &mut self.sent_bytes,
            &mut self.forwarded,
            &mut self.punted,
            &mut self.dropped,
            &mut self.lost,
        ];
        fields.into_iter().zip(words).for_each(|(field, word)| *field += word);
    }
}

impl NetworkTotals {
    /// Those of a network of this kind that has not had a frame.
    #[must_use]
    pub fn new(kind: Kind) -> Self {
        Self {
            outcomes: Counters::new(kind),
            losses: Losses::default(),
            ports: Vec::new(),
            from_control_packets: 0,
            from_control_bytes: 0,
            control_packets: 0,
            to_control_packets: 0,
            to_control_bytes: 0,
            waiting_packets: 0,
            crossing_packets: 0,
            nic_packets: 0,
            copies: 0,
            to_tunnel_packets: 0,
            switch: SwitchCounts::default(),
        }
    }

    /// Frames received on the wire, all virtual ports.
    #[must_use]
    pub fn received_packets(&self) -> u64 {
        self.ports.iter().map(|port| port.received_packets).sum()
    }

    /// Their bytes.
    #[must_use]
    pub fn received_bytes(&self) -> u64 {
        self.ports.iter().map(|port| port.received_bytes).sum()
    }

    /// Frames sent on the wire, all virtual ports.
    #[must_use]
    pub fn sent_packets(&self) -> u64 {
        self.ports.iter().map(|port| port.sent_packets).sum()
    }

    /// Their bytes.
    #[must_use]
    pub fn sent_bytes(&self) -> u64 {
        self.ports.iter().map(|port| port.sent_bytes).sum()
    }

    /// Checks the sums of `docs/reference/outcomes.md`. The numbers of one worker are consistent at any moment; with
    /// several workers, the sums for frames between two of them hold once nothing is moving.
    ///
    /// # Errors
    /// The first sum that does not hold, as text.
    pub fn check(&self) -> Result<(), String> {
        let lost = |reasons: &[Loss]| -> u64 { reasons.iter().map(|reason| self.losses.get(*reason)).sum() };
        let sums = [
            (
                "received + from control = outcomes + control + queue losses + waiting",
                self.received_packets() + self.from_control_packets,
                self.outcomes.received()
                    + self.control_packets
                    + self.losses.at("queue")
                    + self.waiting_packets,
            ),
            (
                "forward - floods + copies + control = sent + port losses + crossing",
                self.outcomes.forwarded() - self.outcomes.flooded() + self.copies + self.control_packets,
                self.sent_packets()
                    + lost(&[Loss::PortFull, Loss::PortDown, Loss::HandoverSendFull, Loss::CopyFull])
                    + lost(&[Loss::TunnelNotIp, Loss::TunnelNested])
                    + self.crossing_packets,
            ),
            (
                "punts = to control + to tunnels + control losses + tunnel losses",
                self.outcomes.punted(),
                self.to_control_packets
                    + self.to_tunnel_packets
                    + lost(&[Loss::ArpForged, Loss::PuntLimited, Loss::ControlFull, Loss::ControlAbsent])
                    + lost(&[Loss::TunnelStranger, Loss::TunnelFragment, Loss::TunnelHeader])
                    + lost(&[Loss::TunnelEcn, Loss::TunnelChecksum, Loss::TunnelOptions]),
            ),
            (
                "drops by reason = drops by port",
                self.outcomes.drops().map(|(_, count)| count).sum(),
                self.ports.iter().map(|port| port.dropped).sum(),
            ),
            (
                "punts by reason = punts by port",
                self.outcomes.punted(),
                self.ports.iter().map(|port| port.punted).sum(),
            ),
            (
                "forwarded = forwarded by port",
                self.outcomes.forwarded(),
                self.ports.iter().map(|port| port.forwarded).sum(),
            ),
        ];
        match sums.into_iter().find(|(_, one, other)| one != other) {
            Some((name, one, other)) => Err(format!("{name}: {one} is not {other}")),
            None => Ok(()),
        }
    }

    fn add(&mut self, words: &[u64]) {
        let Some((head, vports)) = words.split_at_checked(HEAD_WORDS) else { return };
        for reason in Reason::all(self.outcomes.kind()) {
            self.outcomes.add(reason, head[usize::from(reason.code())]);
        }
        for loss in Loss::ALL {
            self.losses.add(loss, head[LOSSES_AT + usize::from(loss.code())]);
        }
        let misc = &head[MISC_AT..];
        self.from_control_packets += misc[0];
        self.from_control_bytes += misc[1];
        self.control_packets += misc[2];
        self.to_control_packets += misc[3];
        self.to_control_bytes += misc[4];
        self.waiting_packets += misc[5];
        // Counted at one worker when handed over and at another when taken; the two are read at different times.
        self.crossing_packets = self.crossing_packets.wrapping_add(misc[6]).wrapping_sub(misc[7]);
        self.nic_packets += misc[8];
        self.copies += misc[9];
        self.switch.learnt += misc[10];
        self.switch.moved += misc[11];
        self.switch.not_learnt += misc[12];
        self.to_tunnel_packets += misc[13];
        let count = vports.len() / VPORT_WORDS;
        if self.ports.len() < count {
            self.ports.resize(count, VportTotals::default());
        }
        let ports = self.ports.iter_mut().zip(vports.chunks_exact(VPORT_WORDS));
        ports.for_each(|(port, words)| port.add(words));
    }
}

const LOSSES_AT: usize = OUTCOMES_MAX + 1;
const MISC_AT: usize = 64;
const MISC_WORDS: usize = 14;
const HEAD_WORDS: usize = MISC_AT + MISC_WORDS;
const _: () = assert!(LOSSES_AT + Loss::COUNT < MISC_AT);

/// One worker's counters of one network; see the head of this file.
#[derive(Default, Debug)]
pub(crate) struct Ledger {
    pub losses: Losses,
    pub vports: Vec<VportTotals>,
    pub from_control_packets: u64,
    pub from_control_bytes: u64,
    pub control_packets: u64,
    pub to_control_packets: u64,
    pub to_control_bytes: u64,
    pub handed_packets: u64,
    pub taken_packets: u64,
    pub nic_packets: u64,
    pub copies: u64,
    pub to_tunnel_packets: u64,
}

impl Ledger {
    /// The counters of a virtual port; `None` if it does not exist.
    #[inline(always)]
    pub fn vport(&mut self, vport: u16) -> Option<&mut VportTotals> {
        self.vports.get_mut(usize::from(vport))
    }

    /// Makes room for virtual ports; removed ones stay.
    pub fn reserve_vports(&mut self, count: usize) {
        if self.vports.len() < count {
            self.vports.resize(count, VportTotals::default());
        }
    }

    /// A packet lost before the plane.
    pub fn lose(&mut self, reason: Loss, vport: u16) {
        self.losses.add(reason, 1);
        if let Some(port) = self.vport(vport) {
            port.lost += 1;
        }
    }

    pub fn publish(&self, outcomes: &Counters, switch: SwitchCounts, waiting_packets: u64, block: &Block) {
        block.publish(|words| {
            let put = |at: usize, value: u64| {
                if let Some(word) = words.get(at) {
                    word.store(value, Ordering::Relaxed);
                }
            };
            // By code, from 1.
            outcomes.counts().iter().zip(1..).for_each(|(count, at)| put(at, *count));
            self.losses.iter().for_each(|(loss, count)| put(LOSSES_AT + usize::from(loss.code()), count));
            let misc: [u64; MISC_WORDS] = [
                self.from_control_packets,
                self.from_control_bytes,
                self.control_packets,
                self.to_control_packets,
                self.to_control_bytes,
                waiting_packets,
                self.handed_packets,
                self.taken_packets,
                self.nic_packets,
                self.copies,
                switch.learnt,
                switch.moved,
                switch.not_learnt,
                self.to_tunnel_packets,
            ];
            misc.into_iter().zip(MISC_AT..).for_each(|(value, at)| put(at, value));
            let vports = self.vports.iter().flat_map(VportTotals::words);
            vports.zip(HEAD_WORDS..).for_each(|(value, at)| put(at, value));
        });
    }

    /// A block for this many virtual ports.
    pub fn block(vports: usize) -> Arc<Block> {
        Arc::new(Block::new(HEAD_WORDS + vports * VPORT_WORDS))
    }
}

/// Counters of a physical port since the system started, over all times that it was open.
pub type PortTotals = DriverCounters;

/// Adds the frames that belong to no network and that a port dropped before its ring.
pub fn add_unclaimed(sum: &mut UnclaimedCounters, port: &PortTotals) {
    sum.add(Unclaimed::NoNetwork, port.no_network);
    sum.add(Unclaimed::Runt, port.runt);
}

pub(crate) const PORT_WORDS: usize = 10;

pub(crate) fn port_words(totals: &PortTotals) -> [u64; PORT_WORDS] {
    [
        totals.received_packets,
        totals.received_bytes,
        totals.sent_packets,
        totals.sent_bytes,
        totals.ring_full,
        totals.ring_quota,
        totals.shared_quota,
        totals.no_network,
        totals.runt,
        totals.send_failed,
    ]
}

pub(crate) fn port_totals(words: &[u64]) -> PortTotals {
    let word = |at: usize| words.get(at).copied().unwrap_or_default();
    PortTotals {
        received_packets: word(0),
        received_bytes: word(1),
        sent_packets: word(2),
        sent_bytes: word(3),
        ring_full: word(4),
        ring_quota: word(5),
        shared_quota: word(6),
        no_network: word(7),
        runt: word(8),
        send_failed: word(9),
    }
}

/// Counters of a worker since it started.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct WorkerTotals {
    /// Rounds of its loop in which it had work.
    pub rounds: u64,
    /// Packets that went through the plane's stages.
    pub packets: u64,
    /// Times it went to sleep because there was nothing to do.
    pub sleeps: u64,
    /// Frames it handed to other workers.
    pub handed_over: u64,
    /// Slots of its packet memory.
    pub slots: u64,
    /// Free slots.
    pub slots_free: u64,
    /// Frames that belong to no network.
    pub unclaimed: UnclaimedCounters,
}

const WORKER_HEAD: usize = 6;
pub(crate) const WORKER_WORDS: usize = WORKER_HEAD + Unclaimed::COUNT + 1;

impl WorkerTotals {
    pub(crate) fn words(&self) -> [u64; WORKER_WORDS] {
        let mut words = [0; WORKER_WORDS];
        let head = [self.rounds, self.packets, self.sleeps, self.handed_over, self.slots, self.slots_free];
        words[..WORKER_HEAD].copy_from_slice(&head);
        for (reason, count) in self.unclaimed.iter() {
            words[WORKER_HEAD + usize::from(reason.code())] = count;
        }
        words
    }

    fn from_words(words: &[u64]) -> Self {
        let word = |at: usize| words.get(at).copied().unwrap_or_default();
        let mut unclaimed = UnclaimedCounters::default();
        for reason in Unclaimed::ALL {
            unclaimed.add(reason, word(WORKER_HEAD + usize::from(reason.code())));
        }
        Self {
            rounds: word(0),
            packets: word(1),
            sleeps: word(2),
            handed_over: word(3),
            slots: word(4),
            slots_free: word(5),
            unclaimed,
        }
    }
}

/// All blocks.
#[derive(Default, Debug)]
pub(crate) struct Registry {
    pub networks: BTreeMap<Vid, NetworkEntry>,
    pub ports: BTreeMap<PortId, PortEntry>,
    pub workers: Vec<Arc<Block>>,
}

#[derive(Clone, Debug)]
pub(crate) struct NetworkEntry {
    pub name: String,
    pub kind: Kind,
    /// By worker.
    pub blocks: Vec<Arc<Block>>,
}

#[derive(Clone, Debug)]
pub(crate) struct PortEntry {
    pub block: Arc<Block>,
    pub state: PortState,
}

/// State of a physical port.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PortState {
    /// Its driver.
    pub driver: Driver,
    /// Whether it is in use; a port that failed is closed until it is added again.
    pub up: bool,
    /// Why it is not up.
    pub error: Option<String>,
}

/// Reads the counters of everything from any thread, without asking the control thread or a worker.
#[derive(Clone, Default, Debug)]
pub struct TotalsReader {
    registry: Arc<RwLock<Registry>>,
}

impl TotalsReader {
    fn read(&self) -> RwLockReadGuard<'_, Registry> {
        // Every part of the registry is consistent even after a panic elsewhere.
        self.registry.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn write(&self) -> RwLockWriteGuard<'_, Registry> {
        self.registry.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Networks that are loaded, with their names.
    #[must_use]
    pub fn networks(&self) -> Vec<(Vid, String)> {
        self.read().networks.iter().map(|(vid, entry)| (*vid, entry.name.clone())).collect()
    }

    /// Counters of a network; `None` if it is not loaded.
    #[must_use]
    pub fn network(&self, vid: Vid) -> Option<NetworkTotals> {
        let (kind, blocks) =
            self.read().networks.get(&vid).map(|entry| (entry.kind, entry.blocks.clone()))?;
        let mut totals = NetworkTotals::new(kind);
        blocks.iter().for_each(|block| totals.add(&block.read()));
        // Frames may be counted as taken here although the block with their handover was read before they were
        // counted there.
        if totals.crossing_packets > u64::MAX / 2 {
            totals.crossing_packets = 0;
        }
        Some(totals)
    }

    /// Since when the counters of a network count; `None` if it is not loaded.
    #[must_use]
    pub fn network_since(&self, vid: Vid) -> Option<SystemTime> {
        // All its blocks are made together.
        self.read().networks.get(&vid)?.blocks.iter().map(|block| block.since).max()
    }

    /// Since when the counters of a port count; `None` if it was never added.
    #[must_use]
    pub fn port_since(&self, id: PortId) -> Option<SystemTime> {
        self.read().ports.get(&id).map(|entry| entry.block.since)
    }

    /// Ports that were ever added, with their states.
    #[must_use]
    pub fn ports(&self) -> Vec<(PortId, PortState)> {
        self.read().ports.iter().map(|(id, entry)| (*id, entry.state.clone())).collect()
    }

    /// State of a port; `None` if it was never added.
    #[must_use]
    pub fn port_state(&self, id: PortId) -> Option<PortState> {
        self.read().ports.get(&id).map(|entry| entry.state.clone())
    }

    /// Counters of a port; `None` if it was never added.
    #[must_use]
    pub fn port(&self, id: PortId) -> Option<PortTotals> {
        let block = self.read().ports.get(&id)?.block.clone();
        Some(port_totals(&block.read()))
    }

    /// Counters of each worker.
    #[must_use]
    pub fn workers(&self) -> Vec<WorkerTotals> {
        let blocks = self.read().workers.clone();
        blocks.iter().map(|block| WorkerTotals::from_words(&block.read())).collect()
    }

    /// Frames that belong to no network: at all workers, and before the rings of their ports.
    #[must_use]
    pub fn unclaimed(&self) -> UnclaimedCounters {
        let mut sum = UnclaimedCounters::default();
        for worker in self.workers() {
            worker.unclaimed.iter().for_each(|(reason, count)| sum.add(reason, count));
        }
        for (id, _) in self.ports() {
            add_unclaimed(&mut sum, &self.port(id).unwrap_or_default());
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_of_workers_add_up() {
        let (mut here, mut there) = (Ledger::default(), Ledger::default());
        here.reserve_vports(2);
        there.reserve_vports(2);
        let mut outcomes = Counters::new(Kind::Ipv4);
        outcomes.add(Reason::last(Kind::Ipv4), 7);
        here.vports[1].received_packets = 9;
        here.vports[1].forwarded = 7;
        here.handed_packets = 7;
        here.lose(Loss::QueueFull, 1);
        there.taken_packets = 5;
        there.vports[0].sent_packets = 4;
        there.losses.add(Loss::PortFull, 1);
        let blocks = vec![Ledger::block(2), Ledger::block(2)];
        here.publish(&outcomes, SwitchCounts::default(), 1, &blocks[0]);
        there.publish(&Counters::new(Kind::Ipv4), SwitchCounts::default(), 0, &blocks[1]);
        let reader = TotalsReader::default();
        let vid = Vid::new(1).unwrap();
        reader
            .write()
            .networks
            .insert(vid, NetworkEntry { name: "red".to_owned(), kind: Kind::Ipv4, blocks });
        let totals = reader.network(vid).unwrap();
        assert_eq!((totals.crossing_packets, totals.waiting_packets), (2, 1));
        assert_eq!((totals.received_packets(), totals.sent_packets()), (9, 4));
        totals.check().unwrap();
        let wrong = NetworkTotals { control_packets: 1, ..totals };
        assert!(wrong.check().unwrap_err().contains("outcomes + control"));
    }

    #[test]
    fn words_come_back_as_they_were() {
        let mut unclaimed = UnclaimedCounters::default();
        unclaimed.add(Unclaimed::TooLong, 9);
        let worker = WorkerTotals {
            rounds: 1,
            packets: 2,
            sleeps: 3,
            handed_over: 4,
            slots: 5,
            slots_free: 6,
            unclaimed,
        };
        assert_eq!(WorkerTotals::from_words(&worker.words()), worker);
        let port = port_totals(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
        assert_eq!(port_words(&port), [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    }
}
