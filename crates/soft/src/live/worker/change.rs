//! Changes that control makes at a worker between two rounds. Control waits for them, so errors are returned
//! directly.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;

use hue_demux::PortId;
use hue_planes::group::Slots;
use hue_planes::{Adjacency, Loss};
use hue_ports::{CLASS_MAX, ClassLosses, ClassRule, Driver, Pool, Port, PortError, Then, release_all};
use hue_substrate::Program;
use hue_substrate::handover::Peer;
use hue_tables::{LabelTable, NextHop, Pointer, TernaryTable, Vid};
use hue_wire::Mac;

use super::super::announce::{Announcement, MESSAGE_BYTES_MAX};
use super::super::block::Block;
use super::super::capture::Tap;
use super::super::control::PortEvent;
use super::super::network::{LiveNetwork, NO_TAP, PuntLimit, Queued, Waiting};
use super::super::steering::Steering;
use super::super::totals::{PortEntry, PortState, port_totals, port_words};
use super::{LivePort, LiveTap, NO_PORT, RECEIVE_MAX, RECEIVE_OPEN_MAX, TAP_TOKENS, Worker};
use crate::explain::State;
use crate::network::{Hops, Network};
use crate::switch::MacRow;
use crate::tunnels::FROM_TUNNEL;

/// A network to install: its program without routes and next hops, and the remaining data.
pub(crate) struct Installation {
    pub program: Arc<Program>,
    /// Only at its home.
    pub hops: Option<Hops>,
    /// The same, of a network with patterns.
    pub patterns: Option<Arc<TernaryTable>>,
    /// The same, of a network with flat labels.
    pub labels: Option<Arc<LabelTable>>,
    /// See [`hue_substrate::handover::Home`].
    pub generation: u16,
    pub home: bool,
    pub block: Arc<Block>,
}

impl Worker {
    /// Opens a port and starts to use it.
    pub fn add_port(
        &mut self,
        id: PortId,
        open: impl FnOnce(&mut Pool) -> Result<Box<dyn Port>, PortError>,
        block: Arc<Block>,
    ) -> Result<Driver, PortError> {
        self.remove_port(id, Box::new(|| {}));
        let mut port = open(&mut self.pool)?;
        let driver = port.driver();
        // All other ports have rings in memory; asking a TAP costs a system call.
        let polled = driver != Driver::Tap || port.readiness().is_none();
        if !polled
            && let Some(fd) = port.readiness()
            && let Err(source) = self.poller.add(fd, u64::from(id.get()))
        {
            port.close(&mut self.pool);
            let interface = format!("port {id}");
            return Err(PortError::System { interface, action: "wait for it", source, hint: "" });
        }
        let polices = matches!(driver, Driver::AfXdp { .. });
        let classes = if polices { usize::from(CLASS_MAX) + 1 } else { 0 };
        let limit = if driver == Driver::Packet { RECEIVE_OPEN_MAX } else { RECEIVE_MAX };
        self.port_at[id.index()] = self.ports.len() as u16; // at most PortId::COUNT
        let base = port_totals(&block.read());
        let state = PortState { driver, up: true, error: None };
        self.registry.write().ports.insert(id, PortEntry { block: block.clone(), state });
        self.ports.push(LivePort {
            id,
            port,
            polled,
            ready: true,
            limit,
            unflushed: false,
            full: false,
            base,
            block,
            lost: vec![ClassLosses::default(); classes],
        });
        Ok(driver)
    }

    /// Stops to use a port and closes it; `then` follows. It is dropped if the port is not here.
    pub fn remove_port(&mut self, id: PortId, then: Then) {
        let at = usize::from(self.port_at[id.index()]);
        if at >= self.ports.len() {
            return self.closing.follow(id.get(), then);
        }
        self.ask_port(at);
        let live = self.ports.swap_remove(at);
        if let Some(fd) = live.port.readiness() {
            self.poller.remove(fd);
        }
        self.port_at[id.index()] = NO_PORT;
        if let Some(moved) = self.ports.get(at) {
            self.port_at[moved.id.index()] = at as u16;
        }
        // The queued packets no longer count at this port, nor at the next one with its id.
        for queued in self.networks.iter_mut().flat_map(|network| &mut network.queue) {
            if queued.port == id {
                queued.packet.class = 0;
            }
        }
        self.closing.retire(Some(id.get()), live.port, &mut self.pool, then);
    }

    /// Closes ports that failed in this round, and reports them to control.
    #[cold]
    pub(super) fn take_down_broken(&mut self) {
        for (id, error) in std::mem::take(&mut self.broken) {
            if self.port_at[id.index()] == NO_PORT {
                continue; // its failure is handled already
            }
            if let Some(entry) = self.registry.write().ports.get_mut(&id) {
                (entry.state.up, entry.state.error) = (false, Some(error.to_string()));
            }
            let event = PortEvent { id, gone: error.is_gone(), error: error.to_string() };
            let failures = self.failures.clone();
            let tell = move || {
                let _ = failures.send(event); // control has ended, and the worker ends soon
            };
            self.remove_port(id, Box::new(tell));
        }
    }

    /// Replaces the packet memory, none of which may be in use.
    pub fn set_pool(&mut self, pool: Pool) -> Result<(), &'static str> {
        self.closing.end(&mut self.pool, false);
        if !self.ports.is_empty() {
            return Err("a port uses the current memory");
        }
        if self.pool.free() < self.pool.slots() as usize {
            return Err("packets are stored in the current memory");
        }
        self.pool = pool;
        Ok(())
    }

    /// Place of the guest among the peers.
    pub(super) fn guest(&self) -> usize {
        self.peers.len() - 1
    }

    /// Connects or disconnects a guest. When it is disconnected, frames that it has handed over are lost.
    pub fn set_guest(&mut self, guest: Option<Peer>) {
        let at = self.guest();
        if let Some(place) = self.peers.get_mut(at) {
            *place = guest;
        }
    }

    /// Sets the limits that a port enforces.
    pub fn set_classes(
        &mut self,
        id: PortId,
        rules: &[ClassRule],
        quotas: &[(u16, u32)],
    ) -> Result<(), PortError> {
        match self.ports.get_mut(usize::from(self.port_at[id.index()])) {
            Some(live) => live.port.set_classes(rules, quotas),
            None => Ok(()),
        }
    }

    /// Asks all ports for their counters.
    pub(super) fn ask_ports(&mut self) {
        self.asked_ns = self.now_ns;
        (0..self.ports.len()).for_each(|at| self.ask_port(at));
        for slot in std::mem::take(&mut self.dirty) {
            // Makes policed frames visible at once.
            if let Some((network, plane)) =
                self.networks.get_mut(usize::from(slot)).zip(self.engine.networks.get(usize::from(slot)))
            {
                network.dirty = false;
                network.ledger.publish(
                    &plane.counters,
                    plane.switch_counts(),
                    network.frames_waiting(),
                    &network.block,
                );
            }
        }
    }

    fn ask_port(&mut self, at: usize) {
        let Some(live) = self.ports.get_mut(at) else { return };
        live.block.publish_all(&port_words(&(live.base + live.port.counters())));
        if live.lost.is_empty() {
            return;
        }
        for (slot, network) in self.networks.iter_mut().enumerate() {
            let class = network.vid.get();
            let Some(seen) = live.lost.get_mut(usize::from(class)) else { continue };
            let more = live.port.lost(class).since(seen);
            if more == ClassLosses::default() {
                continue;
            }
            let losses = &mut network.ledger.losses;
            losses.add(Loss::RingQuota, more.ring_quota);
            losses.add(Loss::RingFull, more.ring_full);
            if !std::mem::replace(&mut network.dirty, true) {
                self.dirty.push(slot as u16);
            }
        }
    }

    /// Sets the steering, which assigns frames to networks and ports from now on.
    pub fn steer(&mut self, steering: Arc<Steering>) {
        self.engine.demux = steering.demux.clone();
        for network in &mut self.networks {
            network.on_nic = steering.beside.is_on(network.vid);
            network.set_on_two_wires(steering.beside.keeps_macs(network.vid));
            network.carries_tunnels = steering.tunnels.has(network.vid);
        }
        self.steering = steering;
    }

    /// Installs a network, or gives an installed network a new program: counters, queue and TAPs stay, and so does
    /// the meter unless the limit changed.
    pub fn install(&mut self, installation: Installation) {
        let Installation { program, hops, patterns, labels, generation, home, block } = installation;
        self.publish();
        match self.slot(program.vid) {
            Some(slot) => {
                let orphans = self.networks[slot].replace(&program, block);
                for (vport, tap) in self.networks[slot].taps.iter().zip(0u16..).map(|(tap, at)| (at, *tap)) {
                    if let Some(Some(live)) = self.taps.get_mut(tap as usize) {
                        live.vport = vport;
                    }
                }
                orphans.into_iter().for_each(|tap| self.close_tap(tap, Box::new(|| {})));
                let mut plane = Network::new(&program, self.engine.networks.get(slot));
                plane.take(hops, patterns, labels);
                self.engine.networks[slot] = plane;
                self.show(slot);
            }
            None => {
                let mut plane = Network::new(&program, None);
                plane.take(hops, patterns, labels);
                self.networks.push(LiveNetwork::new(&program, generation, home, block));
                self.engine.networks.push(plane);
                let count = self.networks.len();
                self.schedule.reserve(count - self.schedule.len().min(count));
                self.dirty.reserve(count);
            }
        }
        self.engine.index();
    }

    /// Publishes the counters of one network.
    fn show(&mut self, slot: usize) {
        if let Some((network, plane)) = self.networks.get(slot).zip(self.engine.networks.get(slot)) {
            network.ledger.publish(
                &plane.counters,
                plane.switch_counts(),
                network.frames_waiting(),
                &network.block,
            );
        }
    }

    /// Forgets a network and the frames it has here. Drops the copies of `closed` when its TAPs are closed.
    pub fn remove(&mut self, vid: Vid, closed: &SyncSender<()>) {
        let Some(slot) = self.slot(vid) else { return };
        self.remove_taps(vid, closed);
        // Earlier losses must not count for the next network with this VID.
        self.ask_ports();
        self.publish();
        let gone = self.networks.swap_remove(slot);
        self.engine.networks.swap_remove(slot);
        let (slot, moved) = (slot as u16, self.networks.len() as u16);
        self.schedule.retain(|other| *other != slot);
        self.schedule.iter_mut().filter(|other| **other == moved).for_each(|other| *other = slot);
        self.engine.index();
        for queued in gone.queue {
            let mut packet = queued.packet;
            if queued.port == FROM_TUNNEL {
                self.left_carrier(packet.class, 1);
            }
            self.consumed(usize::from(self.port_at[queued.port.index()]), &mut packet);
            self.pool.give(packet.slot);
        }
    }

    /// Holds a network's frames in its queue; frames that do not fit are lost.
    pub fn hold(&mut self, vid: Vid) {
        let Some(slot) = self.slot(vid) else { return };
        self.networks[slot].held = true;
        self.networks[slot].scheduled = false;
        self.networks[slot].served = false;
        self.schedule.retain(|other| usize::from(*other) != slot);
    }

    /// Releases them.
    pub fn release(&mut self, vid: Vid) {
        let Some(slot) = self.slot(vid) else { return };
        let network = &mut self.networks[slot];
        network.held = false;
        if !network.queue.is_empty() && !network.scheduled {
            network.scheduled = true;
            self.schedule.push_back(slot as u16);
        }
    }

    /// Changes rows and groups of a network's next-hop table, which has `count` of them then.
    pub fn set_hops(
        &mut self,
        vid: Vid,
        rows: &[(NextHop, Adjacency)],
        groups: &[(NextHop, Slots)],
        count: usize,
    ) {
        if let Some(slot) = self.slot(vid) {
            self.engine.networks[slot].hops.set(rows, groups, count);
        }
    }

    /// Replaces the guard's list of neighbours.
    pub fn set_neighbours(&mut self, vid: Vid, known: &[(u16, IpAddr, Mac)]) {
        if let Some(slot) = self.slot(vid) {
            self.networks[slot].guard.set_neighbours(known);
        }
    }

    /// Replaces the guard's list of the network's own addresses.
    pub fn set_own(&mut self, vid: Vid, own: &[(u16, IpAddr, u8)]) {
        if let Some(slot) = self.slot(vid) {
            self.networks[slot].guard.set_own(own);
        }
    }

    /// Replaces a network's punt limit.
    pub fn set_punt_limit(&mut self, vid: Vid, limit: (u64, u64)) {
        if let Some(slot) = self.slot(vid) {
            self.networks[slot].punt = PuntLimit::new(limit);
        }
    }

    /// Tells a network's neighbours its MAC addresses: each gets a unicast announcement, behind the frames that wait.
    /// Announcements for which there is no room are omitted: they are optional.
    pub fn announce(&mut self, vid: Vid, messages: &[Announcement]) {
        let Some(slot) = self.slot(vid) else { return };
        for message in messages {
            Self::touch(&mut self.networks, &mut self.dirty, slot);
            let free = self.pool.free();
            let Some(network) = self.networks.get(slot).filter(|network| network.has_room(free)) else {
                return;
            };
            let vport = message.vport;
            let Some(own) = network.vports.get(usize::from(vport)) else { continue };
            let (port, mut frame) = (own.port, [0; MESSAGE_BYTES_MAX]);
            let bytes = message.frame(own.mac, &mut frame);
            let frame = frame.get(..bytes).unwrap_or_default();
            if !self.queue_own(slot, vport, port, frame) {
                return;
            }
        }
    }

    /// Queues a frame that the engine itself sends for a network. It counts as one from the namespace. Returns whether there was
    /// room for it.
    pub(super) fn queue_own(&mut self, slot: usize, vport: u16, port: PortId, frame: &[u8]) -> bool {
        let Some(network) = self.networks.get_mut(slot) else { return false };
        let Some(packet) = self.pool.copy_in(frame, self.now_ns) else { return false };
        network.ledger.from_control_packets += 1;
        network.ledger.from_control_bytes += u64::from(packet.len);
        let queued = Queued { packet, port, what: Waiting::Control, vport };
        network.line_up(queued, slot, &mut self.schedule);
        true
    }

    /// A copy of what a network's decision about a frame depends on.
    pub fn state(&self, vid: Vid, frame: &[u8]) -> State {
        let network = self.slot(vid).and_then(|slot| self.engine.networks.get(slot));
        network.map(|network| State::of(network, frame)).unwrap_or_default()
    }

    /// Enters MAC addresses that a network's home before had learnt.
    pub fn adopt_macs(&mut self, vid: Vid, rows: &[MacRow]) {
        let now_ns = self.now_ns;
        let network = self.slot(vid).and_then(|slot| self.engine.networks.get_mut(slot));
        if let Some(switch) = network.and_then(|network| network.switch.as_deref_mut()) {
            switch.adopt(rows, now_ns);
        }
    }

    /// A network's table of MAC addresses, in no order.
    pub fn macs(&self, vid: Vid) -> Vec<MacRow> {
        let network = self.slot(vid).and_then(|slot| self.engine.networks.get(slot));
        let switch = network.and_then(|network| network.switch.as_deref());
        switch.map(|switch| switch.rows(self.now_ns)).unwrap_or_default()
    }

    /// The pointers that a network has cached, ascending.
    pub fn pointers(&self, vid: Vid) -> Vec<Pointer<Adjacency>> {
        let network = self.slot(vid).and_then(|slot| self.engine.networks.get(slot));
        let pointers = network.and_then(|network| network.shape.pointers.as_ref());
        pointers.map(|pointers| pointers.list(self.now_ns).collect()).unwrap_or_default()
    }

    /// Number of MAC addresses that a network has learnt and not forgotten.
    pub fn macs_learnt(&self, vid: Vid) -> usize {
        let network = self.slot(vid).and_then(|slot| self.engine.networks.get(slot));
        let switch = network.and_then(|network| network.switch.as_deref());
        switch.map_or(0, |switch| switch.addresses.macs.learnt_count(self.now_ns))
    }

    /// Gives a network's control plane its end of a virtual port.
    pub fn add_tap(&mut self, vid: Vid, vport: u16, port: Box<dyn Port>) -> std::io::Result<()> {
        let Some(slot) = self.slot(vid) else { return Ok(()) };
        let Some(old) = self.networks[slot].taps.get(usize::from(vport)).copied() else { return Ok(()) };
        self.close_tap(old, Box::new(|| {}));
        let at = match self.taps.iter().position(Option::is_none) {
            Some(free) => free,
            None => {
                self.taps.push(None);
                self.taps.len() - 1
            }
        };
        if let Some(fd) = port.readiness() {
            self.poller.add(fd, TAP_TOKENS + at as u64)?;
        }
        self.taps[at] = Some(LiveTap { vid, vport, port, ready: true });
        self.networks[slot].taps[usize::from(vport)] = at as u32;
        self.ready_taps.push_back(at as u32);
        self.ready_taps.reserve(self.taps.len());
        Ok(())
    }

    /// Closes all TAPs of a network. Drops the copies of `closed` when they are.
    pub fn remove_taps(&mut self, vid: Vid, closed: &SyncSender<()>) {
        let Some(slot) = self.slot(vid) else { return };
        for vport in 0..self.networks[slot].taps.len() {
            let tap = std::mem::replace(&mut self.networks[slot].taps[vport], NO_TAP);
            let closed = closed.clone();
            self.close_tap(tap, Box::new(move || drop(closed)));
        }
    }

    fn close_tap(&mut self, at: u32, then: Then) {
        let Some(live) = self.taps.get_mut(at as usize).and_then(Option::take) else { return };
        if let Some(fd) = live.port.readiness() {
            self.poller.remove(fd);
        }
        self.ready_taps.retain(|other| *other != at);
        self.closing.retire(None, live.port, &mut self.pool, then);
    }

    /// Starts to show frames to a capture.
    pub fn capture(&mut self, tap: Tap) {
        self.watch.add(tap);
    }

    /// All ports, which are no longer polled and have given their interfaces back.
    fn released(&mut self) -> Vec<LivePort> {
        let mut ports = std::mem::take(&mut self.ports);
        for live in &ports {
            if let Some(fd) = live.port.readiness() {
                self.poller.remove(fd);
            }
        }
        release_all(ports.iter_mut().map(|live| &mut live.port));
        ports
    }

    /// Returns everything that the worker does not own.
    pub(super) fn close(&mut self) {
        self.flush(true);
        (0..self.ports.len()).for_each(|at| self.ask_port(at));
        for mut live in self.released() {
            live.port.close(&mut self.pool);
            self.port_at[live.id.index()] = NO_PORT;
        }
        self.closing.end(&mut self.pool, true);
        for tap in &mut self.taps.drain(..).flatten() {
            let mut port = tap.port;
            port.close(&mut self.pool);
        }
        self.publish();
    }
}
