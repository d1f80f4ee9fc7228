//! The control side of a running system. One thread owns it, and changes workers with jobs that they run between two
//! rounds.
//!
//! Flow: node thread → [`Live`] → the model, which checks everything and keeps the tables → workers. The model is a
//! [`Soft`] without packets: a change that it refuses never reaches a worker. Every method returns when all workers
//! concerned have made the change.
//!
//! A network's program defines ports, design select, limits and weight. Its routes come with the program when it is
//! first loaded, and later from [`Substrate::update`]: a program without routes and next hops, loaded over an existing
//! network, keeps the network's routes and next hops.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::mpsc::{Receiver, Sender, channel, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use hue_demux::{PortId, Target};
use hue_planes::Adjacency;
use hue_ports::{Driver, Pool, Port, PortError, Region};
use hue_substrate::SubstrateError;
use hue_substrate::clock::Clock;
use hue_substrate::handover::{Home, Peer, RING_RECORDS_MAX};
use hue_substrate::scheduling::{self, Granted};
use hue_substrate::wake::{Poller, Wake, pin};
use hue_tables::layout::Runs;
use hue_tables::{Account, Delta, Pointer, Vid};
use hue_wire::Mac;

use super::announce::announcements;
use super::beside::{Beside, OnNics};
use super::block::Block;
use super::by_hand;
use super::capture::{CaptureFilter, CaptureStream, capture};
use super::classes::{self, Classes};
use super::config::{LiveConfig, LiveError, WORKERS_MAX};
use super::steering::{Link, NO_HOME, Steering, VportLinks};
use super::totals::{
    NetworkTotals, PORT_WORDS, PortEntry, PortState, PortTotals, TotalsReader, WORKER_WORDS, WorkerTotals,
};
use super::worker::{Job, Parts, Worker};
use crate::engine::Soft;
use crate::switch::MacRow;
use crate::tunnels::Tunnels;

/// A port that failed while it ran; it is closed, and down until it is added again.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PortEvent {
    /// The port.
    pub id: PortId,
    /// Whether its interface was removed or is down, so that it may come back; otherwise the system refused an
    /// operation.
    pub gone: bool,
    /// The error.
    pub error: String,
}

/// The control thread's handle of the running system. Implements [`Substrate`](hue_substrate::Substrate). Dropping it
/// stops the system.
pub struct Live {
    pub(super) model: Soft,
    pub(super) workers: Vec<Handle>,
    scheduling: Vec<Granted>,
    pub(super) networks: BTreeMap<Vid, NetworkControl>,
    /// Number of the network loaded last; see [`Home`].
    pub(super) generation: u16,
    pub(super) settings: BTreeMap<Vid, Settings>,
    ports: BTreeMap<PortId, PortControl>,
    pub(super) totals: TotalsReader,
    pub(super) steering: Arc<Steering>,
    /// Whether the tunnels in `steering` are not those of the present networks and addresses.
    pub(super) tunnels_stale: bool,
    /// NICs beside ports: pairs of port and NIC.
    nics: Vec<(PortId, PortId)>,
    /// Networks that use the NICs.
    pub(super) on_nics: OnNics,
    pub(super) events: Option<Receiver<PortEvent>>,
}

/// Control's handle of a worker.
pub(super) struct Handle {
    /// `None` once the worker must stop.
    jobs: Option<Sender<Job>>,
    wake: Arc<Wake>,
    region: Region,
    thread: Option<JoinHandle<()>>,
    /// The worker itself, when it has no thread.
    pub(super) own: Option<Mutex<Worker>>,
}

/// Where a network lives.
pub(super) struct NetworkControl {
    pub home: usize,
    /// See [`Home`].
    pub generation: u16,
    /// Number of virtual ports for which its blocks have room.
    pub vports: usize,
    pub blocks: Vec<Arc<Block>>,
}

/// Settings of a network that are not in its program.
#[derive(Clone, Default)]
pub(super) struct Settings {
    pub punt: Option<(u64, u64)>,
    pub neighbours: Vec<(u16, IpAddr, Mac)>,
    pub addresses: Option<Vec<(u16, IpAddr, u8)>>,
}

/// Where a port lives.
struct PortControl {
    home: usize,
    block: Arc<Block>,
    open: bool,
    classes: Classes,
}

impl PortControl {
    /// A port that is not open.
    fn new(home: usize) -> Self {
        let block = Arc::new(Block::new(PORT_WORDS));
        Self { home, block, open: false, classes: Classes::default() }
    }
}

impl Live {
    /// Starts workers, without ports and networks.
    ///
    /// # Errors
    /// `Workers`, `Start`, `Table`.
    pub fn start(config: LiveConfig) -> Result<Self, LiveError> {
        Self::begin(config, &Clock::host(), true)
    }

    /// The same, with threads or without ([`Live::by_hand`]).
    pub(super) fn begin(config: LiveConfig, clock: &Clock, threads: bool) -> Result<Self, LiveError> {
        let count = match config.workers {
            0 => (std::thread::available_parallelism().map_or(1, usize::from) / 2).clamp(1, 4),
            count => count,
        };
        if count > WORKERS_MAX {
            return Err(LiveError::Workers(count));
        }
        let model = Soft::new(config.limits)?;
        let totals = TotalsReader::default();
        let (failures, events) = channel();
        let mut live = Self {
            model,
            workers: Vec::with_capacity(count),
            scheduling: Vec::with_capacity(count),
            networks: BTreeMap::new(),
            generation: 0,
            settings: BTreeMap::new(),
            ports: BTreeMap::new(),
            totals,
            steering: Arc::new(Steering::empty()),
            tunnels_stale: false,
            nics: Vec::new(),
            on_nics: OnNics::default(),
            events: Some(events),
        };
        let wakes = (0..count)
            .map(|worker| Wake::new().map(Arc::new).map_err(|error| start_error(worker, &error)))
            .collect::<Result<Vec<_>, _>>()?;
        for (index, peers) in peers(&wakes)?.into_iter().enumerate() {
            let wake = wakes[index].clone();
            let block = Arc::new(Block::new(WORKER_WORDS));
            live.totals.write().workers.push(block.clone());
            let (jobs, mailbox) = channel();
            let pool =
                Pool::new(config.slots, config.slot_bytes).map_err(|error| start_error(index, &error))?;
            let region = pool.region();
            let parts = Parts {
                index,
                pool,
                reader: live.model.dag.reader()?,
                jobs: mailbox,
                poller: Poller::new(&wake).map_err(|error| start_error(index, &error))?,
                wake: wake.clone(),
                peers,
                failures: failures.clone(),
                block,
                registry: live.totals.clone(),
                clock: clock.clone(),
            };
            if !threads {
                let own = Some(Mutex::new(Worker::new(parts)));
                live.workers.push(Handle { jobs: Some(jobs), wake, region, thread: None, own });
                continue;
            }
            let (granted, grant) = sync_channel(1);
            let thread = std::thread::Builder::new()
                .name(format!("hue-worker-{index}"))
                .spawn(move || {
                    let (bound, got) = scheduling::enter(config.scheduling);
                    let _ = granted.send(got); // the caller waits for it
                    Worker::new(parts).run(bound);
                })
                .map_err(|error| start_error(index, &error))?;
            live.workers.push(Handle { jobs: Some(jobs), wake, region, thread: Some(thread), own: None });
            live.scheduling.push(grant.recv().map_err(|error| start_error(index, &error))?);
            if config.pin {
                live.ask(index, move |_| pin(index))?.map_err(|error| start_error(index, &error))?;
            }
        }
        Ok(live)
    }

    /// Ends the workers, closes all ports and TAPs.
    pub fn stop(self) {}

    /// Number of running workers.
    #[must_use]
    pub fn workers(&self) -> usize {
        self.workers.len()
    }

    /// Scheduling of each worker that has a thread.
    #[must_use]
    pub fn scheduling(&self) -> &[Granted] {
        &self.scheduling
    }

    /// Gives a worker a job, which it runs between two rounds, and waits for the result.
    pub(super) fn ask<R: Send + 'static>(
        &self,
        worker: usize,
        job: impl FnOnce(&mut Worker) -> R + Send + 'static,
    ) -> Result<R, LiveError> {
        let (answer, wait) = sync_channel(1);
        let ended = || LiveError::Ended { worker };
        let handle = self.workers.get(worker).ok_or_else(ended)?;
        let job: Job = Box::new(move |worker| {
            let _ = answer.send(job(worker)); // we wait for it
        });
        handle.jobs.as_ref().ok_or_else(ended)?.send(job).map_err(|_| ended())?;
        handle.wake.notify();
        if let Some(own) = &handle.own {
            by_hand::lock(own).work_off_jobs();
        }
        wait.recv().map_err(|_| ended())
    }

    /// Gives a network's home a job.
    pub(super) fn ask_home<R: Send + 'static>(
        &self,
        vid: Vid,
        job: impl FnOnce(&mut Worker) -> R + Send + 'static,
    ) -> Result<R, LiveError> {
        let home = self.networks.get(&vid).ok_or(LiveError::Unknown(vid))?.home;
        self.ask(home, job)
    }

    /// Opens a port and starts to use it. `open` runs on the port's home worker, with its packet memory; that worker
    /// moves no packets meanwhile.
    ///
    /// # Errors
    /// `PortOpen`, `Port`, `Ended`.
    pub fn add_port(
        &mut self,
        id: PortId,
        open: impl FnOnce(&mut Pool) -> Result<Box<dyn Port>, PortError> + Send + 'static,
    ) -> Result<Driver, LiveError> {
        let home = self.port_home(id)?;
        self.add_port_at(home, id, open)
    }

    /// The same for ports that can be opened elsewhere: `open` runs on the calling thread, and the worker only takes
    /// over the port.
    ///
    /// # Errors
    /// `PortOpen`, `Port`, `Ended`.
    pub fn open_port(
        &mut self,
        id: PortId,
        open: impl FnOnce(&Region) -> Result<Box<dyn Port>, PortError>,
    ) -> Result<Driver, LiveError> {
        let region = self.reserve_port(id)?;
        let port = open(&region).map_err(|error| LiveError::Port { id, error })?;
        self.adopt_port(id, &region, port)
    }

    /// The first half of [`Live::open_port`], for callers that open ports on a thread without this handle: chooses
    /// the port's home, permanently, and returns its packet memory. [`Live::adopt_port`] is the second half, which is
    /// optional.
    ///
    /// # Errors
    /// `PortOpen`, `Ended`.
    pub fn reserve_port(&mut self, id: PortId) -> Result<Region, LiveError> {
        let home = self.port_home(id)?;
        let region = self.workers.get(home).ok_or(LiveError::Ended { worker: home })?.region.clone();
        self.ports.entry(id).or_insert_with(|| PortControl::new(home));
        Ok(region)
    }

    /// Starts to use a port that was opened with `region`, which [`Live::reserve_port`] returned for it.
    ///
    /// # Errors
    /// `PortOpen`, `Port`, `Ended`, and `Memory` if the worker's memory has been replaced since; then the port is
    /// closed.
    pub fn adopt_port(
        &mut self,
        id: PortId,
        region: &Region,
        port: Box<dyn Port>,
    ) -> Result<Driver, LiveError> {
        let home = self.port_home(id)?;
        let here = &self.workers.get(home).ok_or(LiveError::Ended { worker: home })?.region;
        if !here.is(region) {
            let reason = "the port was opened with memory that has been replaced; open it again".to_owned();
            let (slots, slot_bytes) = (region.slots(), region.slot_bytes());
            return Err(LiveError::Memory { worker: home, slots, slot_bytes, reason });
        }
        self.add_port_at(home, id, |_| Ok(port))
    }

    /// Replaces the packet memory of each worker. Sockets have the old memory registered and packets are stored in
    /// it, so this requires that no port is open and no packet is under way. Workers are changed one by one: after an
    /// error, the workers before the named one have the new memory.
    ///
    /// # Errors
    /// `Memory`, `Ended`.
    pub fn set_memory(&mut self, slots: u32, slot_bytes: u32) -> Result<(), LiveError> {
        for worker in 0..self.workers.len() {
            let refuse = |reason| LiveError::Memory { worker, slots, slot_bytes, reason };
            let pool = Pool::new(slots, slot_bytes).map_err(|error| refuse(error.to_string()))?;
            let region = pool.region();
            let set = self.ask(worker, move |worker| worker.set_pool(pool))?;
            set.map_err(|busy| refuse(busy.to_owned()))?;
            if let Some(handle) = self.workers.get_mut(worker) {
                handle.region = region;
            }
        }
        Ok(())
    }

    /// The home worker for a port.
    fn port_home(&self, id: PortId) -> Result<usize, LiveError> {
        if self.port_state(id).is_some_and(|state| state.up) {
            return Err(LiveError::PortOpen(id));
        }
        Ok(match self.ports.get(&id) {
            // A port that was lent gets a new home.
            Some(port) if port.home < self.workers.len() => port.home,
            _ => self.emptiest(self.ports.values().map(|port| port.home)),
        })
    }

    fn add_port_at(
        &mut self,
        home: usize,
        id: PortId,
        open: impl FnOnce(&mut Pool) -> Result<Box<dyn Port>, PortError> + Send + 'static,
    ) -> Result<Driver, LiveError> {
        let known = self.ports.get(&id).map(|port| port.block.clone());
        let block = known.unwrap_or_else(|| Arc::new(Block::new(PORT_WORDS)));
        let here = block.clone();
        let driver = self
            .ask(home, move |worker| worker.add_port(id, open, here))?
            .map_err(|error| LiveError::Port { id, error })?;
        self.ports.insert(id, PortControl { block, open: true, ..PortControl::new(home) });
        self.steer()?;
        self.police()?;
        Ok(driver)
    }

    /// Connects the thread of another substrate as a guest. The guest hands over frames that networks here decide,
    /// and gets the frames that leave through ports lent to it ([`Live::lend_port`]). Returns its end of each
    /// worker's rings, in order. There is one guest at a time; an earlier one is disconnected.
    ///
    /// # Errors
    /// `Ended`; `Start` if the system has no memory or descriptor left.
    pub fn invite(&mut self, guest: &Arc<Wake>) -> Result<Vec<Peer>, LiveError> {
        let mut peers = Vec::with_capacity(self.workers.len());
        for (index, worker) in self.workers.iter().enumerate() {
            let pair = Peer::pair(&worker.wake, guest);
            let (of_guest, of_worker) = pair.map_err(|error| start_error(index, &error))?;
            self.ask(index, move |worker| worker.set_guest(Some(of_guest)))?;
            peers.push(of_worker);
        }
        Ok(peers)
    }

    /// Disconnects the guest. Its ports are down until they are added or lent again.
    pub fn dismiss(&mut self) {
        let guest = self.workers.len();
        let lent: Vec<PortId> =
            self.ports.iter().filter(|(_, port)| port.home == guest).map(|(id, _)| *id).collect();
        lent.into_iter().for_each(|id| self.remove_port(id));
        for worker in 0..guest {
            // A worker that has ended has no guest.
            let _ = self.ask(worker, |worker| worker.set_guest(None));
        }
    }

    /// Makes workers hand frames for a port to the guest, which has the port.
    ///
    /// # Errors
    /// `PortOpen`, `Ended`.
    pub fn lend_port(&mut self, id: PortId, driver: Driver) -> Result<(), LiveError> {
        if self.port_state(id).is_some_and(|state| state.up) {
            return Err(LiveError::PortOpen(id));
        }
        let mut port = PortControl::new(self.workers.len());
        port.open = true;
        let state = PortState { driver, up: true, error: None };
        self.totals.write().ports.insert(id, PortEntry { block: port.block.clone(), state });
        self.ports.insert(id, port);
        self.steer()
    }

    /// The home worker of a network, for callers that hand it frames.
    #[must_use]
    pub fn home(&self, vid: Vid) -> Option<Home> {
        self.networks.get(&vid).map(|network| Home { worker: network.home, generation: network.generation })
    }

    /// Closes a port; packets for it are then lost as `port_down`. Does nothing if it is not open.
    pub fn remove_port(&mut self, id: PortId) {
        let Some(port) = self.ports.get_mut(&id) else { return };
        port.open = false;
        let home = port.home;
        let (closed, free) = sync_channel(1);
        let tell = move || {
            let _ = closed.send(()); // we wait for it
        };
        // A worker that has ended has already closed it.
        let _ = self.ask(home, move |worker| worker.remove_port(id, Box::new(tell)));
        // The other workers first take what this worker received on the port, before frames that arrive there later
        // on another path, such as a card.
        for other in (0..self.workers.len()).filter(|worker| *worker != home) {
            let _ = self.ask(other, move |worker| worker.receive_from(home, RING_RECORDS_MAX));
        }
        if let Some(entry) = self.totals.write().ports.get_mut(&id) {
            (entry.state.up, entry.state.error) = (false, None);
        }
        let _ = self.steer();
        let _ = free.recv(); // an error if the port was not open
    }

    /// State of a port; `None` if it was never added.
    #[must_use]
    pub fn port_state(&self, id: PortId) -> Option<PortState> {
        self.totals.port_state(id)
    }

    /// Gives a network's control plane its end of a virtual port. Replaces an earlier one.
    ///
    /// # Errors
    /// `Unknown`, `Vport`, `Ended`, `Port` if it cannot be waited for.
    pub fn add_tap(&mut self, vid: Vid, vport: u16, tap: Box<dyn Port>) -> Result<(), LiveError> {
        let network = self.model.network(vid).ok_or(LiveError::Unknown(vid))?;
        let Some(port) = network.shape.ports.get(usize::from(vport)) else {
            return Err(LiveError::Vport { vid, vport });
        };
        let (id, interface) = (port.port, port.name.clone());
        self.ask_home(vid, move |worker| worker.add_tap(vid, vport, tap))?.map_err(|source| LiveError::Port {
            id,
            error: PortError::System { interface, action: "wait for the TAP", source, hint: "" },
        })
    }

    /// Closes all TAPs of a network, if there are any.
    pub fn remove_taps(&mut self, vid: Vid) {
        let (closed, all_closed) = sync_channel(1);
        let _ = self.ask_home(vid, move |worker| worker.remove_taps(vid, &closed));
        let _ = all_closed.recv(); // an error, when the last one is
    }

    /// Limits the table memory that a loaded network's lookups can reach, in bytes. Existing routes stay.
    ///
    /// # Errors
    /// `Unknown`.
    pub fn set_quota(&mut self, vid: Vid, bytes_max: Option<u64>) -> Result<(), SubstrateError> {
        self.model.set_quota(vid, bytes_max)
    }

    /// Sets the neighbours that the guard of a network knows. The list replaces the former one. A message of ARP or
    /// neighbour discovery that claims one of these addresses for another MAC is dropped.
    pub fn neighbours<A: Into<IpAddr> + Copy>(&mut self, vid: Vid, known: &[(u16, A, Mac)]) {
        let known: Vec<_> =
            known.iter().map(|(vport, address, mac)| (*vport, (*address).into(), *mac)).collect();
        let settings = self.settings.entry(vid).or_default();
        if settings.neighbours == known {
            return;
        }
        settings.neighbours.clone_from(&known);
        // The settings are applied when the network is loaded.
        let _ = self.ask_home(vid, move |worker| worker.set_neighbours(vid, &known));
    }

    /// Sets a network's addresses on its virtual ports, with the prefix lengths of their links; the list replaces the
    /// former one. The network then gets only broadcasts that concern it. Before the first call it gets all.
    pub fn set_addresses<A: Into<IpAddr> + Copy>(&mut self, vid: Vid, addresses: &[(u16, A, u8)]) {
        let addresses: Vec<_> =
            addresses.iter().map(|(vport, address, len)| (*vport, (*address).into(), *len)).collect();
        let settings = self.settings.entry(vid).or_default();
        if settings.addresses.as_ref() == Some(&addresses) {
            return;
        }
        settings.addresses = Some(addresses.clone());
        self.tunnels_stale = true;
        let _ = self.ask_home(vid, move |worker| worker.set_own(vid, &addresses));
        let _ = self.steer();
    }

    /// Limits the packets to a network's control plane. Without a call, the limit is 1,000 packets per second and 200
    /// at once. Packets that are not for the router itself get at most half of the limit. Zeros count as 1.
    pub fn set_punt_limit(&mut self, vid: Vid, packets_per_second: u64, burst: u64) {
        let limit = (packets_per_second, burst);
        let settings = self.settings.entry(vid).or_default();
        if settings.punt.replace(limit) == Some(limit) {
            return; // its bucket stays as it is
        }
        let _ = self.ask_home(vid, move |worker| worker.set_punt_limit(vid, limit));
    }

    /// Sets the NICs beside ports, as pairs of port and NIC; the list replaces the former one. Neighbours of networks
    /// may then send to the NICs ([`Live::use_nic`]).
    ///
    /// # Errors
    /// `Ended`.
    pub fn set_nics(&mut self, pairs: &[(PortId, PortId)]) -> Result<(), LiveError> {
        if self.nics == pairs {
            return Ok(());
        }
        self.nics = pairs.to_vec();
        self.steer()?;
        self.police()
    }

    /// Sets whether a network sends by the NICs beside its ports and accepts group frames from there. Unicast frames
    /// are accepted from both, each with its own MAC address. Neighbours are not notified; see [`Live::announce`]. A
    /// network that keeps its MAC addresses ([`hue_substrate::keeps_macs`]) accepts frames from one wire only, and unicast frames
    /// of others from the old one too until [`Live::end_turn`]. A network that is selected in another way does not change.
    ///
    /// # Errors
    /// `Ended`.
    pub fn use_nic(&mut self, vid: Vid, nic: bool) -> Result<(), LiveError> {
        let on = &mut self.on_nics.on;
        if !if nic { on.insert(vid) } else { on.remove(&vid) } {
            return Ok(());
        }
        if self.steering.beside.keeps_macs(vid) {
            self.on_nics.turning.insert(vid);
        }
        self.steer()
    }

    /// The addresses of a network that keeps them have moved to its present wire: it accepts nothing more from the other one.
    ///
    /// # Errors
    /// `Ended`.
    pub fn end_turn(&mut self, vid: Vid) -> Result<(), LiveError> {
        if self.on_nics.turning.remove(&vid) { self.steer() } else { Ok(()) }
    }

    /// Whether [`Live::announce`] is not finished: a switch with many hosts takes time for it.
    pub fn is_announcing(&self, vid: Vid) -> bool {
        self.ask_home(vid, move |worker| worker.is_announcing(vid)).unwrap_or(false)
    }

    /// Frames that a network has accepted on its old wire, in all turns so far. Between two calls, every worker looks at its ports,
    /// so if nothing came in between, nothing waits there either.
    pub fn late_frames(&self, vid: Vid) -> u64 {
        for worker in 0..self.workers.len() {
            let _ = self.ask(worker, |_| ());
        }
        self.ask_home(vid, move |worker| worker.late_frames(vid)).unwrap_or(0)
    }

    /// Tells the neighbours that a network knows ([`Live::neighbours`]), and only these, the MAC addresses of its
    /// addresses ([`Live::set_addresses`]). Returns the number of neighbours. A network that keeps its MAC addresses tells the outside
    /// switches where they are, those of a switch's hosts or its own, and returns their number.
    pub fn announce(&self, vid: Vid) -> usize {
        if self.steering.beside.keeps_macs(vid) {
            return self.ask_home(vid, move |worker| worker.announce_macs(vid)).unwrap_or(0);
        }
        let Some(settings) = self.settings.get(&vid) else { return 0 };
        let addresses = settings.addresses.as_deref().unwrap_or_default();
        let messages = announcements(addresses, &settings.neighbours);
        let _ = self.ask_home(vid, move |worker| worker.announce(vid, &messages));
        settings.neighbours.len()
    }

    /// Counters of a network.
    #[must_use]
    pub fn totals(&self, vid: Vid) -> Option<NetworkTotals> {
        self.totals.network(vid)
    }

    /// Counters of a port.
    #[must_use]
    pub fn port_totals(&self, id: PortId) -> Option<PortTotals> {
        self.totals.port(id)
    }

    /// Counters of each worker.
    #[must_use]
    pub fn worker_totals(&self) -> Vec<WorkerTotals> {
        self.totals.workers()
    }

    /// Reads all counters from any thread.
    #[must_use]
    pub fn totals_reader(&self) -> TotalsReader {
        self.totals.clone()
    }

    /// The table of MAC addresses of a network that learns, sorted by address; empty for other networks.
    ///
    /// # Errors
    /// `Unknown`, `Ended`.
    pub fn macs(&self, vid: Vid) -> Result<Vec<MacRow>, LiveError> {
        let mut rows = self.ask_home(vid, move |worker| worker.macs(vid))?;
        rows.sort_unstable();
        Ok(rows)
    }

    /// Enters MAC addresses that a network had learnt elsewhere, as far as it has room and does not know them. The virtual ports
    /// are those of the network; ages are those of now.
    ///
    /// # Errors
    /// `Unknown`, `Ended`.
    pub fn adopt_macs(&self, vid: Vid, rows: Vec<MacRow>) -> Result<(), LiveError> {
        self.ask_home(vid, move |worker| worker.adopt_macs(vid, &rows))
    }

    /// Number of MAC addresses that a network has learnt and not forgotten; 0 if its kind does not learn.
    ///
    /// # Errors
    /// `Unknown`, `Ended`.
    pub fn macs_learnt(&self, vid: Vid) -> Result<usize, LiveError> {
        self.ask_home(vid, move |worker| worker.macs_learnt(vid))
    }

    /// The pointers that a network has cached, ascending; none if its kind caches none.
    ///
    /// # Errors
    /// `Unknown`, `Ended`.
    pub fn pointers(&self, vid: Vid) -> Result<Vec<Pointer<Adjacency>>, LiveError> {
        self.ask_home(vid, move |worker| worker.pointers(vid))
    }

    /// Starts a capture.
    pub fn capture(&mut self, filter: CaptureFilter) -> CaptureStream {
        let (tap, stream) = capture(filter);
        for worker in 0..self.workers.len() {
            let tap = tap.clone();
            let _ = self.ask(worker, move |worker| worker.capture(tap));
        }
        stream
    }

    /// Events of failing ports. The first call gets them; later calls get a closed channel.
    pub fn port_events(&mut self) -> Receiver<PortEvent> {
        self.events.take().unwrap_or_else(|| channel().1)
    }

    /// Table memory of a network.
    ///
    /// # Errors
    /// `Unknown`.
    pub fn account(&self, vid: Vid) -> Result<Account, SubstrateError> {
        self.model.account(vid)
    }

    /// Records changes of the tables from now on for a follower, beginning with a description of their state; see
    /// [`hue_tables::Dag::enable_weighed_deltas`].
    pub fn enable_weighed_deltas(&mut self, weigh: fn(&Runs) -> u64) {
        self.model.enable_weighed_deltas(weigh);
    }

    /// Stops recording changes of the tables.
    pub fn disable_deltas(&mut self) {
        self.model.disable_deltas();
    }

    /// Changes of the tables since the last call, oldest first.
    pub fn take_deltas(&mut self) -> Vec<Delta> {
        self.model.take_deltas()
    }

    /// Table memory of a loaded network in the follower's unit.
    ///
    /// # Errors
    /// `Unknown`.
    pub fn follower_account(&self, vid: Vid) -> Result<Account, SubstrateError> {
        self.model.follower_account(vid)
    }

    /// The worker that occurs least often among these.
    pub(super) fn emptiest(&self, homes: impl Iterator<Item = usize>) -> usize {
        let mut counts = vec![0u32; self.workers.len()];
        for home in homes {
            if let Some(count) = counts.get_mut(home) {
                *count += 1;
            }
        }
        counts.iter().enumerate().min_by_key(|(_, count)| **count).map_or(0, |(worker, _)| worker)
    }

    /// Sends the current steering to all workers.
    pub(super) fn steer(&mut self) -> Result<(), LiveError> {
        let mut network_homes = vec![NO_HOME; usize::from(Vid::MAX) + 1].into_boxed_slice();
        for (vid, network) in &self.networks {
            network_homes[vid.index()] = network.home as u8; // below WORKERS_MAX
        }
        let mut port_homes = vec![NO_HOME; PortId::COUNT].into_boxed_slice();
        for (id, port) in self.ports.iter().filter(|(_, port)| port.open) {
            port_homes[id.index()] = port.home as u8;
        }
        let vports = self.model.engine.networks.iter().flat_map(|network| {
            let ports = network.shape.ports.iter().zip(0u16..).filter(|(port, _)| !port.port.is_tunnel());
            ports.map(|(port, vport)| (port.port, port.mac, Target { vid: network.vid, vport }))
        });
        let demux = self.model.engine.demux.clone();
        let beside = Beside::new(&self.nics, &self.model.engine.networks, &self.on_nics);
        let tunnels = match std::mem::take(&mut self.tunnels_stale) {
            true => Arc::new(Tunnels::of(&self.model.engine.networks, |vid, own| self.near(vid, own))),
            false => self.steering.tunnels.clone(),
        };
        let steering = Steering::new(demux, network_homes, port_homes, beside, tunnels, vports, self.links());
        self.steering = Arc::new(steering);
        for worker in 0..self.workers.len() {
            let steering = self.steering.clone();
            self.ask(worker, move |worker| worker.steer(steering))?;
        }
        Ok(())
    }

    /// The virtual port of a network that has an address.
    fn near(&self, vid: Vid, address: IpAddr) -> Option<u16> {
        let known = self.settings.get(&vid)?.addresses.as_ref()?;
        known.iter().find(|(_, own, _)| *own == address).map(|(vport, ..)| *vport)
    }

    fn links(&self) -> impl Iterator<Item = (Vid, VportLinks)> + '_ {
        self.settings.iter().filter_map(|(vid, settings)| {
            let addresses = settings.addresses.as_ref()?;
            let network = self.model.network(*vid)?;
            let mut links: VportLinks = vec![Vec::new(); network.shape.ports.len()].into_boxed_slice();
            for (vport, address, len) in addresses {
                if let Some(links) = links.get_mut(usize::from(*vport)) {
                    links.push(Link::new(*address, *len));
                }
            }
            Some((*vid, links))
        })
    }

    /// The limits that the guest's ports must enforce ([`Port::set_classes`]), as far as they changed since the last
    /// call.
    pub fn lent_classes(&mut self) -> Vec<(PortId, Classes)> {
        self.changed_classes(true).into_iter().map(|(id, _, classes)| (id, classes)).collect()
    }

    /// The limits that ports of the guest or of workers must enforce, as far as they changed.
    fn changed_classes(&mut self, lent: bool) -> Vec<(PortId, usize, Classes)> {
        let mut changed = Vec::new();
        let guest = self.workers.len();
        for (id, port) in self.ports.iter_mut().filter(|(_, port)| port.open && (port.home == guest) == lent)
        {
            let networks = &self.model.engine.networks;
            let beside = self.steering.beside.classes(*id, networks);
            let classes = beside.unwrap_or_else(|| classes::of_port(*id, networks));
            if classes != port.classes {
                port.classes = classes.clone();
                changed.push((*id, port.home, classes));
            }
        }
        changed
    }

    /// Sends changed limits to ports.
    pub(super) fn police(&mut self) -> Result<(), LiveError> {
        for (id, home, (rules, quotas)) in self.changed_classes(false) {
            let set = self.ask(home, move |worker| worker.set_classes(id, &rules, &quotas))?;
            // The port works without limits; floods are then cut only after the ring.
            if let Err(error) = set
                && let Some(entry) = self.totals.write().ports.get_mut(&id)
            {
                entry.state.error =
                    Some(format!("rates can be limited only after the receive ring: {error}"));
            }
        }
        Ok(())
    }
}

/// The handle can be used by a thread other than the one that started it.
const _: fn() = || {
    fn send<T: Send>() {}
    send::<Live>();
};

impl Drop for Live {
    fn drop(&mut self) {
        for worker in &mut self.workers {
            worker.jobs = None;
            worker.wake.notify();
        }
        for worker in &mut self.workers {
            if let Some(thread) = worker.thread.take() {
                let _ = thread.join(); // a panic has already been reported
            }
        }
    }
}

/// Each worker's ends of the rings to the others, and room for a guest.
fn peers(wakes: &[Arc<Wake>]) -> Result<Vec<Vec<Option<Peer>>>, LiveError> {
    let mut all: Vec<Vec<Option<Peer>>> =
        wakes.iter().map(|_| (0..=wakes.len()).map(|_| None).collect()).collect();
    for (first, wake) in wakes.iter().enumerate() {
        for (second, other) in wakes.iter().enumerate().skip(first + 1) {
            let pair = Peer::pair(wake, other);
            let (of_second, of_first) = pair.map_err(|error| start_error(first, &error))?;
            (all[first][second], all[second][first]) = (Some(of_second), Some(of_first));
        }
    }
    Ok(all)
}

fn start_error(worker: usize, error: &dyn std::fmt::Display) -> LiveError {
    LiveError::Start { worker, reason: error.to_string() }
}

/// Converts the error of a worker that has ended.
pub(super) fn broken(error: LiveError) -> SubstrateError {
    match error {
        LiveError::Unknown(vid) => SubstrateError::Unknown(vid),
        LiveError::Substrate(error) => error,
        error => SubstrateError::Broken { substrate: "soft", reason: error.to_string() },
    }
}
