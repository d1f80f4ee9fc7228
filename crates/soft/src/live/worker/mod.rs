//! One worker: a thread with its ports, its networks and its packet memory, and the loop that moves frames.
//!
//! A round of the loop: jobs of control → frames of ports, namespaces and other workers into the queues of their
//! networks (`arrive`) → a batch from the queues by deficit round robin (`schedule`) → plane → ports, namespaces,
//! other workers (`depart`) → frames queued at ports go to the kernel. A worker without work sleeps in the kernel.
//!
//! Invariants: a worker waits for other threads only while it sleeps; a packet costs no allocation, no lock and no
//! system call of its own (except for TAPs, which take one frame per call); each slot of the packet memory is in one
//! place. Times are nanoseconds since the Unix epoch as of the start, and never decrease.

mod arrive;
mod change;
mod depart;
mod follow;
mod hosts;
mod inside;
mod learnt;
mod schedule;
#[cfg(test)]
mod tests;
mod tunnels;
mod watch;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, TryRecvError};
use std::time::Duration;

use hue_demux::PortId;
use hue_ports::{ClassLosses, Closing, Packet, Pool, Port, PortError};
use hue_substrate::clock::Clock;
use hue_substrate::handover::Peer;
use hue_substrate::scheduling::Bound;
use hue_substrate::wake::{Poller, Wake};
use hue_tables::{Reader, Vid};

pub(crate) use self::change::Installation;
pub use self::inside::Inside;
use self::watch::Watch;
use super::block::Block;
use super::control::PortEvent;
use super::network::LiveNetwork;
use super::steering::Steering;
use super::totals::{PortTotals, TotalsReader, WorkerTotals};
use crate::engine::{BATCH_MAX, Claimed, Engine, place, slot_of};
use crate::frame::Frame;

/// Frames taken in one round from a port or another worker.
const RECEIVE_MAX: usize = 64;
/// Frames taken in one round from a port that cannot police its ring: more than the plane takes in a round, so that
/// under overload frames are lost in the queues, which each network has for itself, and not in the shared ring. This
/// assumes, without measurement, that taking a frame out of the ring costs much less than the rest of its path.
const RECEIVE_OPEN_MAX: usize = 2 * BATCH_MAX;
/// How often descriptors that are not polled in every round are checked while there is work.
const LOOK_NS: u64 = 25_000;
/// How long a worker without work polls for some before it sleeps.
const IDLE_NS: u64 = 10_000;
/// How often counters are published while there is work.
const PUBLISH_NS: u64 = 200_000;
/// How often ports are asked for their counters.
const PORT_COUNTERS_NS: u64 = 20_000_000;
/// Longest times of the first sleeps after work; later sleeps take the last value. Between sleeps, ports recover sent
/// slots and report their counters.
const NAPS: [Duration; 4] =
    [Duration::from_millis(1), Duration::from_millis(25), Duration::from_millis(250), Duration::from_secs(2)];
/// The same while the system has not accepted all frames to be sent, or a port cannot be waited for.
const NAP_SHORT: Duration = Duration::from_micros(100);
/// In [`Worker::port_at`]: the port is not here.
const NO_PORT: u16 = u16::MAX;
/// Tokens of TAPs begin here; those of ports are their ids.
const TAP_TOKENS: u64 = 1 << 32;

/// A job of control, done between two rounds.
pub(crate) type Job = Box<dyn FnOnce(&mut Worker) + Send>;

/// Parts of a worker.
pub(crate) struct Parts {
    pub index: usize,
    pub pool: Pool,
    pub reader: Reader,
    pub jobs: Receiver<Job>,
    pub wake: Arc<Wake>,
    pub poller: Poller,
    /// By worker, `None` for itself; the last is the guest.
    pub peers: Vec<Option<Peer>>,
    pub failures: Sender<PortEvent>,
    pub block: Arc<Block>,
    pub registry: TotalsReader,
    pub clock: Clock,
}

/// A port at its home.
struct LivePort {
    id: PortId,
    port: Box<dyn Port>,
    /// Whether it is polled in every round; otherwise only when its descriptor is readable.
    polled: bool,
    ready: bool,
    /// Frames taken in one round.
    limit: usize,
    /// Whether something was queued to be sent since the last flush.
    unflushed: bool,
    /// Whether a full transmit ring was flushed in this round already.
    full: bool,
    /// Counters of former ports with this id.
    base: PortTotals,
    block: Arc<Block>,
    /// Losses of each network at the port that were already counted, by VID; empty if the port enforces no limits.
    lost: Vec<ClassLosses>,
}

/// A TAP at the home of its network.
struct LiveTap {
    vid: Vid,
    vport: u16,
    port: Box<dyn Port>,
    /// Whether it is in the list of TAPs to read.
    ready: bool,
}

/// The frames that pass through the plane together.
#[derive(Default)]
struct Batch {
    packets: Vec<Packet>,
    frames: Vec<Frame>,
    claims: Vec<Claimed>,
}

/// See the head of this file.
pub(crate) struct Worker {
    index: usize,
    engine: Engine,
    pool: Pool,
    clock: Clock,
    now_ns: u64,
    steering: Arc<Steering>,
    /// Parallel to [`Engine::networks`].
    networks: Vec<LiveNetwork>,
    /// Places of networks with frames, in the order of their turns.
    schedule: VecDeque<u16>,
    /// Batches that were collected.
    batches: u64,
    /// Places of networks whose counters changed.
    dirty: Vec<u16>,
    ports: Vec<LivePort>,
    /// Place in `ports`, by id.
    port_at: Box<[u16]>,
    taps: Vec<Option<LiveTap>>,
    ready_taps: VecDeque<u32>,
    /// By worker, `None` for itself; the last is the guest, if there is one.
    peers: Vec<Option<Peer>>,
    /// Peers that got work in this round.
    notify: Vec<bool>,
    watch: Watch,
    /// The network whose frames the guest follows.
    followed: Option<(Vid, u64)>,
    /// The network that tells the guest what its frames teach.
    telling: Option<usize>,
    /// Whether there may be switches with hosts to be announced.
    announces: bool,
    batch: Batch,
    arrivals: Vec<Packet>,
    broken: Vec<(PortId, PortError)>,
    /// Ports that threads close.
    closing: Closing,
    jobs: Receiver<Job>,
    wake: Arc<Wake>,
    poller: Poller,
    failures: Sender<PortEvent>,
    totals: WorkerTotals,
    block: Arc<Block>,
    /// Channel for reports of failed ports.
    registry: TotalsReader,
    looked_ns: u64,
    /// Time of the last work.
    worked_ns: u64,
    naps: usize,
    published_ns: u64,
    asked_ns: u64,
}

impl Worker {
    pub fn new(parts: Parts) -> Self {
        let Parts { index, pool, reader, jobs, wake, poller, peers, failures, block, registry, clock } =
            parts;
        Self {
            index,
            engine: Engine::new(reader),
            pool,
            now_ns: clock.now_ns(),
            clock,
            steering: Arc::new(Steering::empty()),
            networks: Vec::new(),
            schedule: VecDeque::new(),
            batches: 0,
            dirty: Vec::new(),
            ports: Vec::new(),
            port_at: vec![NO_PORT; PortId::COUNT].into_boxed_slice(),
            taps: Vec::new(),
            ready_taps: VecDeque::new(),
            notify: vec![false; peers.len()],
            peers,
            watch: Watch::default(),
            followed: None,
            telling: None,
            announces: false,
            batch: Batch {
                packets: Vec::with_capacity(BATCH_MAX),
                frames: Vec::with_capacity(BATCH_MAX),
                claims: Vec::with_capacity(BATCH_MAX),
            },
            arrivals: Vec::with_capacity(RECEIVE_OPEN_MAX),
            broken: Vec::new(),
            closing: Closing::default(),
            jobs,
            wake,
            poller,
            failures,
            totals: WorkerTotals::default(),
            block,
            registry,
            looked_ns: 0,
            worked_ns: 0,
            naps: 0,
            published_ns: 0,
            asked_ns: 0,
        }
    }

    /// Works until control drops the mailbox, then closes everything.
    pub fn run(mut self, mut bound: Bound) {
        while self.work_off_jobs() {
            if self.round() {
                (self.worked_ns, self.naps) = (self.now_ns, 0);
            } else if self.now_ns.saturating_sub(self.worked_ns) < IDLE_NS {
                std::hint::spin_loop();
            } else if !self.sleep() {
                break;
            }
            bound.keep(self.now_ns);
        }
        self.close();
    }

    /// Runs control's jobs; returns `false` if control has dropped the mailbox.
    pub(super) fn work_off_jobs(&mut self) -> bool {
        loop {
            match self.jobs.try_recv() {
                Ok(job) => job(self),
                Err(TryRecvError::Empty) => return true,
                Err(TryRecvError::Disconnected) => return false,
            }
        }
    }

    /// Does one round. Returns whether there was anything to do.
    pub fn round(&mut self) -> bool {
        self.now_ns = self.clock.now_ns();
        if self.now_ns.saturating_sub(self.looked_ns) >= LOOK_NS {
            self.poller.look();
            self.take_tokens();
            self.ask_followed();
        }
        let arrived = self.receive() | (self.announces && self.announce_some());
        let dispatched = self.dispatch();
        let worked = arrived || dispatched;
        if worked {
            self.flush(false);
            self.totals.rounds += 1;
        }
        for (peer, notify) in self.peers.iter().zip(&mut self.notify) {
            if std::mem::take(notify)
                && let Some(peer) = peer
            {
                peer.wake.notify();
            }
        }
        if !self.broken.is_empty() {
            self.take_down_broken();
        }
        if !self.closing.is_empty() {
            self.closing.end(&mut self.pool, false);
        }
        if self.now_ns.saturating_sub(self.published_ns) >= PUBLISH_NS {
            self.publish();
        }
        worked
    }

    /// Hands the frames queued at ports to the kernel: at ports with new frames, or at all.
    fn flush(&mut self, all: bool) {
        for live in &mut self.ports {
            live.full = false;
            if !all && !std::mem::take(&mut live.unflushed) {
                continue;
            }
            match live.port.flush(&mut self.pool) {
                Ok(()) => live.unflushed = live.port.pending() > 0,
                Err(error) => self.broken.push((live.id, error)),
            }
        }
    }

    /// Marks the descriptors that were readable at the last poll.
    fn take_tokens(&mut self) {
        self.looked_ns = self.now_ns;
        for index in 0.. {
            let Some(token) = self.poller.token(index) else { return };
            if let Some(tap) = token.checked_sub(TAP_TOKENS) {
                if let Some(Some(live)) = usize::try_from(tap).ok().and_then(|tap| self.taps.get_mut(tap))
                    && !live.ready
                {
                    live.ready = true;
                    self.ready_taps.push_back(tap as u32);
                }
            } else if let Ok(id) = u8::try_from(token)
                && let Some(live) = self.ports.get_mut(usize::from(self.port_at[usize::from(id)]))
            {
                live.ready = true;
            }
        }
    }

    /// Sleeps until there is work; returns `false` if control has dropped the mailbox.
    fn sleep(&mut self) -> bool {
        self.flush(true);
        self.publish();
        if self.now_ns.saturating_sub(self.asked_ns) >= PORT_COUNTERS_NS {
            self.ask_ports();
        }
        if !self.broken.is_empty() {
            self.take_down_broken();
        }
        if !self.closing.is_empty() {
            self.closing.end(&mut self.pool, false);
        }
        let blind = |live: &LivePort| live.port.readiness().is_none() && !live.port.ended();
        let is_waiting = !self.closing.is_empty();
        let nap = match is_waiting || self.ports.iter().any(|live| live.unflushed || blind(live)) {
            true => NAP_SHORT,
            false => NAPS[self.naps.min(NAPS.len() - 1)],
        };
        self.naps += 1;
        let (mut job, mut gone) = (None, false);
        let Self { poller, wake, jobs, peers, ports, .. } = self;
        let polled = ports.iter().filter(|live| live.polled).filter_map(|live| live.port.readiness());
        let slept = poller.sleep(wake, nap, polled, || {
            match jobs.try_recv() {
                Ok(found) => job = Some(found),
                Err(TryRecvError::Empty) => {}
                Err(TryRecvError::Disconnected) => gone = true,
            }
            job.is_some() || gone || peers.iter().flatten().any(|peer| !peer.into.is_empty())
        });
        if slept {
            self.totals.sleeps += 1;
            self.take_tokens();
        }
        if let Some(job) = job {
            job(self);
        }
        !gone
    }

    /// Publishes counters.
    fn publish(&mut self) {
        self.published_ns = self.now_ns;
        for slot in self.dirty.drain(..) {
            let slot = usize::from(slot);
            if let Some((network, plane)) = self.networks.get_mut(slot).zip(self.engine.networks.get(slot)) {
                network.dirty = false;
                network.ledger.publish(
                    &plane.counters,
                    plane.switch_counts(),
                    network.frames_waiting(),
                    &network.block,
                );
            }
        }
        self.totals.slots = u64::from(self.pool.slots());
        self.totals.slots_free = self.pool.free() as u64;
        self.totals.unclaimed = self.engine.unclaimed;
        self.block.publish_all(&self.totals.words());
        self.watch.tidy();
        if self.now_ns.saturating_sub(self.asked_ns) >= PORT_COUNTERS_NS * 5 {
            self.ask_ports();
        }
    }

    /// Notes that counters of a network are about to change.
    #[inline(always)]
    fn touch(networks: &mut [LiveNetwork], dirty: &mut Vec<u16>, slot: usize) {
        if let Some(network) = networks.get_mut(slot)
            && !network.dirty
        {
            network.dirty = true;
            dirty.push(slot as u16); // below NETWORKS_MAX
        }
    }

    /// Place of a network.
    fn slot(&self, vid: Vid) -> Option<usize> {
        let slot = place(slot_of(&self.engine.slots, vid));
        (slot < self.networks.len()).then_some(slot)
    }
}
