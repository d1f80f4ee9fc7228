//! The card's thread: frames in, cycles, frames out.
//!
//! A round: one job of control and one step of a move → frames from wires and workers into the twin's queues outside its
//! ports → some cycles → frames that left, to wires and workers. At most [`WAITING_MAX`] frames wait outside a
//! port. The others wait in the rings of sockets and workers, as with a real card that accepts no more frames.

mod attachment;
mod commands;
mod drains;
mod from_workers;
mod learning;
mod leaving;
mod losses;
mod returning;
mod transfer;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::mpsc::{Receiver, TryRecvError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use hue_demux::PortId;
use hue_planes::UnclaimedCounters;
use hue_ports::{ClassRule, Closing, DriverCounters, Packet, Pool, Port, PortError, release_all};
use hue_substrate::Program;
use hue_substrate::clock::Clock;
use hue_substrate::handover::{AllDebts, Crossing, Home, Outgoing, Peer, Record};
use hue_substrate::planted::{Bug, planted};
use hue_substrate::scheduling::Bound;
use hue_substrate::wake::{Poller, Wake};
use hue_tables::Vid;

use super::answers::Answers;
use super::bypass::Bypass;
use super::command::{Attachment, Job};
use super::drain::Drain;
use super::event::CardEvent;
use super::losses::Seen;
use super::seats::{SeatId, Seats};
use super::totals::{CardCounts, CardTotals, LivePortTotals};
use super::transfer::{Order, Ordered, Transfer};
use crate::card::Card;
use crate::twin::Twin;

/// Most frames that wait outside a port of the card.
pub const WAITING_MAX: usize = 64;
/// CPU queues of a card. A network's frames use the queue with the network's number modulo this number.
const CPU_QUEUES: u8 = 4;
/// Maximum number of cycles in one round. It limits how long frames that left wait for their delivery.
const ROUND_CYCLES: u64 = 256;
/// The same limit while a network is moving: frames may wait for the move's next step, and a round at full load takes
/// a millisecond.
const STEP_CYCLES: u64 = 32;
/// Cycles without any moving beat after which the card counts as broken, as in `offline`.
const STILL_CYCLES_MAX: u64 = 200_000;
/// Longest sleep. Between two sleeps, ports report their counters.
const NAP: Duration = Duration::from_millis(250);
/// Longest sleep while a wire has not accepted all frames, or cannot be waited for.
const NAP_SHORT: Duration = Duration::from_micros(100);
/// How long the thread polls for work before it sleeps.
const IDLE_NS: u64 = 20_000;
/// How often totals are published while there is work.
const PUBLISH_NS: u64 = 1_000_000;
/// How often ports are asked for their counters and the card for damaged words while there is work.
const ASK_NS: u64 = 100_000_000;
/// Maximum number of damaged words that are repaired in one round, so that a card that always reports damage does not
/// block its thread.
const REPAIRS_MAX: usize = 64;
/// Number of deferred words of tables of networks in software that are written in one round. This takes about 500
/// cycles, in which frames keep flowing.
const DEFERRED_WORDS: usize = 128;

/// Number of rows of MAC addresses of networks that move that are written in one round.
const DEFERRED_STATIONS: usize = 32;

/// A wire of the card.
pub(super) struct Wire {
    id: PortId,
    pub(super) port: Box<dyn Port>,
    unflushed: bool,
    /// Frames that were queued outside the card's port.
    pushed: u64,
    pub(super) seen: Seen,
}

impl Wire {
    /// Sends a frame; returns `false` if there is no room for it.
    fn send(&mut self, pool: &mut Pool, packet: Packet) -> bool {
        let mut refused = self.port.send(pool, packet).err();
        if let Some(packet) = refused.take() {
            // Try again after the kernel has taken the queued frames. The next flush reports the error.
            let _ = self.port.flush(pool);
            refused = self.port.send(pool, packet).err();
        }
        self.unflushed = true;
        match refused {
            None => true,
            Some(packet) => {
                pool.give(packet.slot);
                false
            }
        }
    }
}

/// See the head of this file.
pub struct Runner {
    pub(super) card: Card<Twin>,
    pool: Pool,
    peers: Vec<Peer>,
    wake: Arc<Wake>,
    poller: Poller,
    /// By the card's port number.
    pub(super) wires: Vec<Option<Wire>>,
    /// Counters of former wires, and losses on the way to a wire.
    pub(super) bases: Vec<DriverCounters>,
    /// Group frames for which earlier cards had no room.
    flood_bases: Vec<u64>,
    /// Cycles of the card at the last read.
    flood_cycles: u64,
    homes: Homes,
    /// The index whose output queues a network's frames from software use, if not the network's own.
    aside: Box<[Option<u8>]>,
    /// How often each network was loaded again, or taken off the card, by VID.
    loads: Box<[u32]>,
    /// The card's number of each port, by id.
    numbers: Box<[u8]>,
    /// Replaces the card while its image changes.
    bypass: Option<Bypass>,
    /// Counters of earlier cards.
    carried: BTreeMap<Vid, CardCounts>,
    carried_unclaimed: UnclaimedCounters,
    /// The control that takes the card over.
    attachment: Option<Box<Attachment>>,
    /// Networks that the control before left on the card, and that this one has not loaded yet.
    left: BTreeSet<Vid>,
    /// What had been counted when this control took the card over.
    bases_of_networks: BTreeMap<Vid, CardCounts>,
    base_unclaimed: UnclaimedCounters,
    pub(super) transfer: Option<Box<Transfer>>,
    /// A job that waits for a step of the move, and since when. Later jobs wait behind it.
    waiting: Option<(Job, u64)>,
    pub(super) orders: VecDeque<(Order, Ordered)>,
    pub(super) drains: Vec<Drain>,
    /// The seats that are valid.
    seats: Arc<Seats>,
    /// The last seat of each network on which work on the table failed, and why.
    tables_failed: BTreeMap<Vid, (SeatId, String)>,
    /// What control is told after the present round.
    told: Vec<CardEvent>,
    /// Where answers go.
    answers: Arc<Answers>,
    counting: Option<commands::Counting>,
    /// Whether a former card is dropped in a thread, because that can take long.
    drops_aside: bool,
    /// Former wires, which the kernel has not closed yet.
    closing: Closing,
    arrivals: Vec<Packet>,
    failed: Vec<(usize, String)>,
    /// Why the card can no longer be used, set by [`Self::give_up`].
    gave_up: Option<String>,
    pub(super) totals: CardTotals,
    published: Arc<Mutex<CardTotals>>,
    clock: Clock,
    /// The last tag that was given to a frame entering the card.
    tag: u32,
    bound: Bound,
    now_ns: u64,
    worked_ns: u64,
    published_ns: u64,
    asked_ns: u64,
    repaired_ns: u64,
    /// When the tables of networks that learn were last brought to the present.
    aged_ns: u64,
    noted: learning::Noted,
}

/// Contents of a running card between two rounds. All numbers must be zero when no work is left.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Inside {
    /// Moves that are under way or waiting.
    pub moves: usize,
    /// Networks whose frames from software use other queues than their own.
    pub aside: usize,
    /// Whether frames bypass the card.
    pub bypass: bool,
    /// Whether no frame is in the card.
    pub idle: bool,
    /// Workers whose handed-over frames have not been taken.
    pub handed: usize,
    /// Whether there are former wires that the kernel has not closed yet.
    pub closing: bool,
    /// Packet slots, and how many are free. Slots that ports hold are not free.
    pub slots: (usize, usize),
}

/// Marks absent entries of `homes` and `numbers`.
pub(super) const NONE: u8 = u8::MAX;

impl Runner {
    pub(super) fn new(
        mut card: Card<Twin>,
        pool: Pool,
        peers: Vec<Peer>,
        wake: Arc<Wake>,
        published: Arc<Mutex<CardTotals>>,
        (seats, answers): (Arc<Seats>, Arc<Answers>),
        clock: Clock,
    ) -> std::io::Result<Self> {
        let ports = card.description().mac_ports as usize;
        Ok(Self {
            poller: Poller::new(&wake)?,
            wires: (0..ports).map(|_| None).collect(),
            bases: vec![DriverCounters::default(); ports],
            flood_bases: vec![0; ports],
            flood_cycles: 0,
            homes: Homes {
                of: vec![NONE; usize::from(Vid::MAX) + 1].into_boxed_slice(),
                generations: vec![0; usize::from(Vid::MAX) + 1].into_boxed_slice(),
                notify: vec![false; peers.len()],
            },
            aside: vec![None; usize::from(Vid::MAX) + 1].into_boxed_slice(),
            loads: vec![0; usize::from(Vid::MAX) + 1].into_boxed_slice(),
            numbers: vec![NONE; PortId::COUNT].into_boxed_slice(),
            bypass: None,
            carried: BTreeMap::new(),
            carried_unclaimed: UnclaimedCounters::default(),
            attachment: None,
            left: BTreeSet::new(),
            bases_of_networks: BTreeMap::new(),
            base_unclaimed: UnclaimedCounters::default(),
            transfer: None,
            waiting: None,
            orders: VecDeque::new(),
            drains: Vec::new(),
            seats,
            tables_failed: BTreeMap::new(),
            told: Vec::new(),
            answers,
            counting: None,
            drops_aside: false,
            closing: Closing::default(),
            arrivals: Vec::with_capacity(WAITING_MAX),
            failed: Vec::new(),
            gave_up: None,
            totals: CardTotals::default(),
            now_ns: clock.now_ns(),
            clock,
            tag: 0,
            bound: Bound::default(),
            worked_ns: 0,
            published_ns: 0,
            asked_ns: 0,
            repaired_ns: 0,
            aged_ns: 0,
            noted: learning::Noted::default(),
            card,
            pool,
            peers,
            wake,
            published,
        })
    }

    /// The card's driver.
    pub fn card(&mut self) -> &mut Card<Twin> {
        &mut self.card
    }

    /// Connects a port of the card, named by the card's number, to a wire. Networks know the port as `id`. A former
    /// wire is closed. Returns `false`, and closes the port, if the card does not have this number.
    pub(super) fn set_port(&mut self, number: u8, id: PortId, port: Box<dyn Port>) -> bool {
        self.take_port(number);
        let Some(place) = self.wires.get_mut(usize::from(number)) else {
            self.closing.retire(None, port, &mut self.pool, Box::new(|| {}));
            return false;
        };
        let driver = port.driver();
        *place = Some(Wire { id, port, unflushed: false, pushed: 0, seen: Seen::default() });
        if let Some(of_id) = self.numbers.get_mut(id.index()) {
            *of_id = number;
        }
        let counters = self.bases.get(usize::from(number)).copied().unwrap_or_default();
        let flood_full = self.flood_full(number);
        self.totals.ports.insert(number, LivePortTotals { id, driver, counters, flood_full });
        true
    }

    /// Closes a port; does nothing if it is not open. The kernel may take longer than this.
    pub(super) fn take_port(&mut self, number: u8) {
        self.look_at_losses();
        let Some(wire) = self.wires.get_mut(usize::from(number)).and_then(Option::take) else { return };
        if let Some(base) = self.bases.get_mut(usize::from(number)) {
            *base = *base + wire.port.counters();
        }
        self.closing.retire(Some(wire.id.get()), wire.port, &mut self.pool, Box::new(|| {}));
        if let Some(of_id) = self.numbers.get_mut(wire.id.index()) {
            *of_id = NONE;
        }
        self.totals.ports.remove(&number);
    }

    /// Sets the limits that a port enforces before its ring, so that networks share the card's capacity. The port
    /// also works without limits.
    ///
    /// # Errors
    /// As [`Port::set_classes`].
    pub(super) fn set_classes(
        &mut self,
        id: PortId,
        rules: &[ClassRule],
        quotas: &[(u16, u32)],
    ) -> Result<(), PortError> {
        match self.wires.iter_mut().flatten().find(|wire| wire.id == id) {
            Some(wire) => wire.port.set_classes(rules, quotas),
            None => Ok(()),
        }
    }

    /// Sets the worker that decides a network's frames if the card does not.
    pub(super) fn set_home(&mut self, vid: Vid, home: Option<Home>) {
        if let Some(place) = self.homes.of.get_mut(vid.index()) {
            *place = home.and_then(|home| u8::try_from(home.worker).ok()).unwrap_or(NONE);
        }
        if let (Some(place), Some(home)) = (self.homes.generations.get_mut(vid.index()), home) {
            *place = home.generation;
        }
    }

    /// The card has a thread of its own: limits its processor time.
    pub(super) fn set_bound(&mut self, bound: Bound) {
        self.bound = bound;
        self.drops_aside = true;
    }

    /// Works until control drops the mailbox. The error says why the card broke.
    pub(super) fn run(&mut self, jobs: &Receiver<Job>, events: &dyn Fn(CardEvent)) -> Result<(), String> {
        let result = loop {
            let worked = match self.turn(jobs, events) {
                Ok(Some(worked)) => worked,
                Ok(None) => break Ok(()),
                Err(reason) => break Err(reason),
            };
            if worked {
                self.worked_ns = self.now_ns;
            } else if self.now_ns.saturating_sub(self.worked_ns) < IDLE_NS {
                std::hint::spin_loop();
            } else if !self.sleep(jobs) {
                break Ok(());
            }
        };
        self.end();
        result
    }

    /// Does one job of control, if there is one, and a round. Returns whether there was work, or `None` if
    /// control has dropped the mailbox. The error says why the card broke.
    pub(super) fn turn(
        &mut self,
        jobs: &Receiver<Job>,
        events: &dyn Fn(CardEvent),
    ) -> Result<Option<bool>, String> {
        let worked = self.job_and_round(jobs, events);
        self.told.drain(..).for_each(events);
        worked
    }

    fn job_and_round(
        &mut self,
        jobs: &Receiver<Job>,
        events: &dyn Fn(CardEvent),
    ) -> Result<Option<bool>, String> {
        // A question that takes several rounds comes before later jobs, and so does a change of control.
        let mut busy = self.tend_attachment() | self.tend_counting();
        if !busy {
            let now_ns = self.now();
            let job = match self.waiting.take() {
                Some(waiting) => Ok(waiting),
                None => jobs.try_recv().map(|job| (job, now_ns)),
            };
            match job {
                Ok((job, since_ns)) => {
                    if self.must_wait(&job, since_ns, now_ns) {
                        self.waiting = Some((job, since_ns));
                    } else {
                        self.execute(job);
                    }
                    // It may take several rounds, and a sleep would take the next one.
                    busy = true;
                }
                Err(TryRecvError::Empty) => {}
                Err(TryRecvError::Disconnected) => return Ok(None),
            }
        }
        if let Some(why) = self.gave_up.take() {
            return Err(why);
        }
        if !self.closing.is_empty() {
            self.closing.end(&mut self.pool, false);
        }
        let worked = self.round()? | busy;
        for (number, error) in std::mem::take(&mut self.failed) {
            let Some(id) = self.wires.get(number).and_then(Option::as_ref).map(|wire| wire.id) else {
                continue;
            };
            self.take_port(number as u8); // below the card's ports
            events(CardEvent::Port { id, error });
        }
        Ok(Some(worked))
    }

    /// Closes the card's ports.
    pub(super) fn end(&mut self) {
        self.look_at_losses();
        release_all(self.wires.iter_mut().flatten().map(|wire| &mut wire.port));
        for number in 0..self.wires.len() as u8 {
            self.take_port(number);
        }
        self.closing.end(&mut self.pool, true);
        self.publish();
    }

    /// Returns its contents between two rounds.
    pub fn inside(&mut self) -> Inside {
        Inside {
            moves: self.orders.len() + usize::from(self.transfer.is_some()),
            aside: self.aside.iter().flatten().count(),
            bypass: self.bypass.is_some(),
            idle: self.card.twin().idle(),
            handed: self.peers.iter().filter(|peer| !peer.into.is_empty()).count(),
            closing: !self.closing.is_empty(),
            slots: (self.pool.slots() as usize, self.pool.free()),
        }
    }

    /// Does one round. Returns whether there was work.
    fn round(&mut self) -> Result<bool, String> {
        self.now_ns = self.now();
        let mut worked = self.tend_transfer()?;
        worked |= self.tend_drains()?;
        worked |= self.card.write_deferred(DEFERRED_WORDS).map_err(|error| error.to_string())?;
        worked |= self.tend_stations()?;
        self.repair()?;
        worked |= self.receive();
        worked |= self.receive_from_workers();
        let twin = self.card.twin();
        if !twin.idle() {
            worked = true;
            let began = Instant::now();
            let ran = twin.run(if self.transfer.is_some() || !self.drains.is_empty() {
                STEP_CYCLES
            } else {
                ROUND_CYCLES
            });
            self.totals.cycles += ran;
            self.totals.clocking_ns += u64::try_from(began.elapsed().as_nanos()).unwrap_or_default();
            self.watch_over()?;
        }
        self.take_endings();
        self.noted.clear();
        worked |= self.deliver();
        if worked {
            self.flush();
        }
        for (peer, notify) in self.peers.iter().zip(&mut self.homes.notify) {
            if std::mem::take(notify) {
                peer.wake.notify();
            }
        }
        if self.now_ns.saturating_sub(self.published_ns) >= PUBLISH_NS {
            self.publish();
        }
        self.bound.keep(self.now_ns);
        Ok(worked)
    }

    /// For each port: the number of frames that were queued outside it, and how many of these the card has begun to
    /// accept.
    pub(super) fn taken(&mut self) -> Vec<(u64, u64)> {
        let twin = self.card.twin();
        let of = |(number, place): (u8, &Option<Wire>)| {
            let pushed = place.as_ref().map_or(0, |wire| wire.pushed);
            (pushed, pushed.saturating_sub(twin.waiting(number)))
        };
        (0..).zip(&self.wires).map(of).collect()
    }

    /// Makes the card and the workers follow the frames of a network that arrive from this time on; `None` ends this.
    pub(super) fn follow(&mut self, following: Option<(Vid, u64)>) {
        self.card.twin().keep_endings(following.is_some());
        self.peers.iter().for_each(|peer| peer.followed.set(following));
    }

    /// Frames whose end workers had no room to report.
    pub(super) fn untold(&self) -> u64 {
        self.peers.iter().map(|peer| u64::from(peer.followed.untold())).sum()
    }

    /// Writes missing words of the tables of networks in software while frames keep flowing, because one of these
    /// networks is about to move to the card.
    ///
    /// # Errors
    /// The reason why the card broke.
    pub(super) fn catch_up(&mut self) -> Result<(), String> {
        while self.card.has_deferred() {
            self.round()?;
        }
        Ok(())
    }

    /// Repairs damaged words of the banks.
    fn repair(&mut self) -> Result<(), String> {
        if self.now_ns.saturating_sub(self.repaired_ns) < ASK_NS {
            return Ok(());
        }
        self.repaired_ns = self.now_ns;
        for _ in 0..REPAIRS_MAX {
            if self.card.repair().map_err(|error| error.to_string())?.is_none() {
                break;
            }
            self.totals.repaired += 1;
        }
        Ok(())
    }

    /// Records that the card is not in its expected state. It fails before the next round.
    pub(super) fn give_up(&mut self, why: String) {
        self.gave_up = Some(why);
    }

    /// Checks that the card still works.
    fn watch_over(&mut self) -> Result<(), String> {
        let twin = self.card.twin();
        if let Some(failure) = twin.failure() {
            return Err(format!("an assertion of the card failed: {failure}"));
        }
        let still = twin.still_cycles();
        if still > STILL_CYCLES_MAX && !twin.idle() {
            return Err(format!(
                "nothing has moved in the card for {still} cycles, although it is not empty"
            ));
        }
        Ok(())
    }

    /// Receives frames from wires.
    fn receive(&mut self) -> bool {
        let mut any = false;
        for (number, place) in self.wires.iter_mut().enumerate() {
            let Some(wire) = place else { continue };
            let twin = self.card.twin();
            let room = WAITING_MAX.saturating_sub(twin.waiting(number as u8) as usize);
            if room == 0 {
                any = true;
                continue;
            }
            if let Err(error) = wire.port.receive(&mut self.pool, self.now_ns, &mut self.arrivals, room) {
                self.failed.push((number, error.to_string()));
            }
            for packet in self.arrivals.drain(..) {
                any = true;
                // The frame has left the wire's ring, so its network's share of the ring is free again.
                if packet.class != 0 {
                    wire.port.consumed(packet.class, 1);
                }
                let bytes = packet.bytes(&self.pool);
                let mut tag = 0;
                if let Some(witness) = self.transfer.as_mut().and_then(|transfer| transfer.witness.as_mut()) {
                    self.tag = self.tag.wrapping_add(1).max(1);
                    if witness.arrived(number as u8, self.tag, bytes, self.now_ns) {
                        tag = self.tag;
                    }
                }
                match &self.bypass {
                    // The port exists on the card, and a slot is shorter than the longest frame.
                    None => {
                        let _ = twin.push(number as u8, packet.time_ns, tag, 0, bytes);
                        wire.pushed += 1;
                    }
                    Some(bypass) => {
                        let mut claimed = false;
                        bypass.targets(number as u8, bytes, &mut |target| {
                            claimed = true;
                            let record = Record {
                                crossing: Crossing::Arrived,
                                port: wire.id,
                                vid: target.vid,
                                generation: self.homes.generation(target.vid),
                                vport: target.vport,
                                time_ns: packet.time_ns,
                                len: packet.len,
                            };
                            if !self.homes.give(&mut self.peers, &record, bytes) {
                                self.totals.crossings.entry(target.vid).or_default().to_software_lost += 1;
                            }
                        });
                        self.totals.unclaimed += u64::from(!claimed);
                    }
                }
                self.pool.give(packet.slot);
            }
        }
        any
    }

    /// Sends a frame of software around the card; `false` if it was lost.
    fn send_past(&mut self, number: u8, packet: Packet) -> bool {
        let Some(Some(wire)) = self.wires.get_mut(usize::from(number)) else {
            self.pool.give(packet.slot);
            return false;
        };
        wire.send(&mut self.pool, packet)
    }

    /// Makes frames bypass the card. Before, all networks on it must be in software; the call waits until no frame is
    /// inside. `programs` are these networks, with the card's port numbers.
    ///
    /// # Errors
    /// A text, if the card does not become empty or the networks contradict each other; nothing has changed then.
    pub(super) fn set_bypass(&mut self, programs: &[Program]) -> Result<(), String> {
        if let Some(vid) = self.on_card().first() {
            return Err(format!("network {vid} is on the card"));
        }
        let bypass = Bypass::new(programs).map_err(|error| error.to_string())?;
        while !planted(Bug::BypassEarly) && !self.card.twin().idle() {
            self.card.twin().run(ROUND_CYCLES);
            self.watch_over()?;
            self.deliver();
        }
        // Even an idle card may have sent frames that were not taken yet, because clocks also run during register
        // accesses.
        self.deliver();
        self.bypass = Some(bypass);
        Ok(())
    }

    /// Ends the bypass: frames pass through the card again, or through `card`, which must have the same networks in
    /// software and as many ports. In the second case the former card is returned. Counters of networks are kept.
    pub(super) fn end_bypass(&mut self, card: Option<Card<Twin>>) -> Option<Card<Twin>> {
        self.bypass = None;
        let card = card?;
        let vids: Vec<Vid> = self.card.programs().map(|program| program.vid).collect();
        for vid in vids {
            if let Some(counts) = self.counts(vid) {
                self.carried.insert(vid, counts);
            }
        }
        self.carried_unclaimed = self.unclaimed();
        self.flood_bases = (0..self.wires.len() as u8).map(|number| self.flood_full(number)).collect();
        // What is carried was counted since this control has the card.
        self.bases_of_networks.clear();
        self.base_unclaimed = UnclaimedCounters::default();
        self.left.clear();
        Some(std::mem::replace(&mut self.card, card))
    }

    /// Counters of a network from this card and former ones; empty if they cannot be read.
    pub fn counts(&mut self, vid: Vid) -> Option<CardCounts> {
        let now = self.card.read_counters(vid).ok()??;
        // Another network may have got the VID since.
        let carried = self.carried.get(&vid).filter(|before| before.outcomes.kind() == now.kind());
        let mut counts = carried.copied().unwrap_or(CardCounts::new(now.kind()));
        for (outcome, count) in now.iter() {
            counts.outcomes.add(outcome, count);
        }
        let (received_bytes, sent_bytes) = self.card.read_bytes(vid).ok()??;
        counts.received_bytes += received_bytes;
        counts.sent_bytes += sent_bytes;
        counts.copies += self.card.read_copies(vid).ok()?.unwrap_or_default();
        let net = self.card.net(vid)?;
        let (port_full, handover_full) = self.card.read_out_drops_apart(net).ok()?;
        counts.port_full += port_full;
        counts.handover_full += handover_full;
        Some(self.bases_of_networks.get(&vid).map_or(counts, |before| counts.since(before)))
    }

    /// Group frames of a port that this card and former ones dropped for lack of room.
    fn flood_full(&mut self, number: u8) -> u64 {
        let before = self.flood_bases.get(usize::from(number)).copied().unwrap_or_default();
        // A card that cannot be read will fail anyway.
        before + self.card.read_flood_drops(u32::from(number)).unwrap_or_default()
    }

    /// Reads the counters of floods, but only if the card has run since the last read: a read takes cycles, and an
    /// idle card should stay idle.
    fn look_at_floods(&mut self) {
        if self.card.twin().cycles() == self.flood_cycles {
            return;
        }
        for number in 0..self.wires.len() as u8 {
            let flood_full = self.flood_full(number);
            if let Some(totals) = self.totals.ports.get_mut(&number) {
                totals.flood_full = flood_full;
            }
        }
        self.flood_cycles = self.card.twin().cycles();
    }

    /// Frames that belong to no network, counted by this card, former cards and the card's thread. Frames dropped
    /// before the rings of its wires are in the wires' counters.
    pub fn unclaimed(&mut self) -> UnclaimedCounters {
        let mut unclaimed = self.carried_unclaimed;
        // A card that cannot be read will fail anyway.
        let here = self.card.read_unclaimed().unwrap_or_default();
        here.iter().for_each(|(reason, count)| unclaimed.add(reason, count));
        unclaimed.since(&self.base_unclaimed)
    }

    /// Discards the counters of a removed network, because another network may get its VID.
    pub(super) fn forget(&mut self, vid: Vid) {
        self.look_at_losses();
        self.carried.remove(&vid);
        self.bases_of_networks.remove(&vid);
        self.left.remove(&vid);
        self.totals.crossings.remove(&vid);
    }

    /// The CPU queue of a network's index, as a port number.
    pub(super) fn cpu_queue(&self, net: u8) -> u8 {
        self.wires.len() as u8 + net % CPU_QUEUES
    }

    /// Makes a network's frames from software use the output queues of another index; `None` means its own.
    pub(super) fn set_aside(&mut self, vid: Vid, net: Option<u8>) {
        if let Some(aside) = self.aside.get_mut(vid.index()) {
            *aside = net;
        }
    }

    /// How often a network was loaded again, or taken off the card. A move ends when this changes.
    pub(super) fn loads(&self, vid: Vid) -> u32 {
        self.loads.get(vid.index()).copied().unwrap_or_default()
    }

    pub(super) fn count_load(&mut self, vid: Vid) {
        if let Some(loads) = self.loads.get_mut(vid.index()) {
            *loads = loads.wrapping_add(1);
        }
    }

    /// The generation of the network that currently has this VID.
    pub(super) fn generation(&self, vid: Vid) -> u16 {
        self.homes.generation(vid)
    }

    /// Hands a record to its network's worker. Returns `false` if the network has no worker or there is no room.
    pub(super) fn give(&mut self, record: &Record) -> bool {
        self.homes.give(&mut self.peers, record, &[])
    }

    /// Hands debts to their network's worker; `false` as for [`Self::give`].
    pub(super) fn give_debts(&mut self, record: &Record, debts: &AllDebts) -> bool {
        self.homes.give_by(&mut self.peers, record.vid, |out| out.push_debts(record, debts))
    }

    /// Whether all records that workers handed over have been taken.
    pub(super) fn rings_are_empty(&self) -> bool {
        self.peers.iter().all(|peer| peer.into.is_empty())
    }

    /// Prepares the counters for a fence that the card will count as a frame of its network.
    pub(super) fn count_fence(&mut self, vid: Vid, bytes: u64) {
        self.totals.crossings.entry(vid).or_default().from_software_bytes += bytes;
    }

    /// Hands frames for wires to the kernel.
    fn flush(&mut self) {
        for (number, place) in self.wires.iter_mut().enumerate() {
            let Some(wire) = place else { continue };
            if !wire.unflushed {
                continue;
            }
            match wire.port.flush(&mut self.pool) {
                Ok(()) => wire.unflushed = wire.port.pending() > 0,
                Err(error) => self.failed.push((number, error.to_string())),
            }
        }
    }

    /// Sleeps until there is work; returns `false` if control has dropped the mailbox.
    fn sleep(&mut self, jobs: &Receiver<Job>) -> bool {
        self.wires.iter_mut().flatten().for_each(|wire| wire.unflushed = true);
        self.flush();
        self.publish();
        let blind = |wire: &Wire| wire.port.readiness().is_none();
        let short =
            !self.closing.is_empty() || self.wires.iter().flatten().any(|wire| wire.unflushed || blind(wire));
        let nap = if short { NAP_SHORT } else { NAP };
        let (mut job, mut gone) = (None, false);
        let Self { poller, wake, peers, wires, .. } = self;
        let sockets = wires.iter().flatten().filter_map(|wire| wire.port.readiness());
        let slept = poller.sleep(wake, nap, sockets, || {
            match jobs.try_recv() {
                Ok(found) => job = Some(found),
                Err(TryRecvError::Empty) => {}
                Err(TryRecvError::Disconnected) => gone = true,
            }
            job.is_some() || gone || peers.iter().any(|peer| !peer.into.is_empty())
        });
        if slept {
            self.totals.sleeps += 1;
        }
        if let Some(job) = job {
            // No network is moving, so it need not wait.
            self.execute(job);
        }
        !gone
    }

    /// Publishes the totals.
    fn publish(&mut self) {
        self.published_ns = self.now_ns;
        if self.now_ns.saturating_sub(self.asked_ns) >= ASK_NS {
            self.asked_ns = self.now_ns;
            self.look_at_losses();
            self.look_at_floods();
            for (number, wire) in (0u8..).zip(&self.wires) {
                let base = self.bases.get(usize::from(number)).copied().unwrap_or_default();
                if let (Some(wire), Some(totals)) = (wire, self.totals.ports.get_mut(&number)) {
                    totals.counters = base + wire.port.counters();
                }
            }
        }
        self.totals.cycles = self.card.twin().cycles();
        self.published.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&self.totals);
    }

    pub(super) fn now(&self) -> u64 {
        self.clock.now_ns()
    }
}

/// The worker of each network, and which workers to wake at the end of a round.
struct Homes {
    /// By VID.
    of: Box<[u8]>,
    /// By VID.
    generations: Box<[u16]>,
    /// By worker.
    notify: Vec<bool>,
}

impl Homes {
    /// The generation of the network that currently has this VID.
    fn generation(&self, vid: Vid) -> u16 {
        self.generations.get(vid.index()).copied().unwrap_or_default()
    }

    /// Hands a frame or a fence to its network's worker. Returns `false` if the network has no worker or there is no
    /// room.
    fn give(&mut self, peers: &mut [Peer], record: &Record, bytes: &[u8]) -> bool {
        self.give_by(peers, record.vid, |out| out.push(record, bytes))
    }

    /// Hands over the record that `push` puts into the ring.
    fn give_by(&mut self, peers: &mut [Peer], vid: Vid, push: impl FnOnce(&mut Outgoing) -> bool) -> bool {
        let home = usize::from(self.of.get(vid.index()).copied().unwrap_or(NONE));
        let (Some(peer), Some(notify)) = (peers.get_mut(home), self.notify.get_mut(home)) else {
            return false;
        };
        let given = push(&mut peer.out);
        *notify |= given;
        given
    }
}
