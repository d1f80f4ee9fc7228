//! Loading and unloading networks of a running system, and explaining its frames.
//!
//! A network that changes is held at its home worker: its frames wait in its queue. Then the model loads the new programs
//! (all or none), the workers install them, and the network resumes. Frames of other networks never wait. A new network
//! is installed on all workers before it gets any frame; one that is unloaded is removed from design select first.

use std::sync::Arc;
use std::sync::mpsc::sync_channel;

use hue_demux::{By, PortId, Selection};
use hue_planes::group::Slots;
use hue_planes::{Adjacency, AdjacencyKind, Class, Counters, Loss, Unclaimed, UnclaimedCounters, Verdict};
use hue_substrate::{Capacity, Entries, Program, Refusals, Substrate, SubstrateError, Update, check_hop};
use hue_tables::{NextHop, Vid};

use super::beside;
use super::control::{Live, NetworkControl, Settings, broken};
use super::steering::GroupFrame;
use super::totals::{Ledger, NetworkEntry};
use super::worker::Installation;
use crate::carry::Passage;
use crate::explain::{NetworkTrace, State, Trace, stage};

impl Live {
    /// Holds or releases networks that change.
    fn hold(&self, vids: &[Vid], hold: bool) -> Result<(), SubstrateError> {
        for vid in vids.iter().copied() {
            self.ask_home(vid, move |worker| if hold { worker.hold(vid) } else { worker.release(vid) })
                .map_err(broken)?;
        }
        Ok(())
    }

    /// Replaces next hops that a network kept but that its new virtual ports do not allow. Their packets go to its
    /// control plane.
    fn repair_hops(&mut self, vid: Vid) {
        let Some(network) = self.model.network_mut(vid) else { return };
        let ports = &network.shape.ports;
        // "No route" is no fault, and the members of a group are rows too.
        let is_fine = |hop: &Adjacency| matches!(hop.kind(), AdjacencyKind::None | AdjacencyKind::Group);
        let is_wrong = |hop: &Adjacency| !is_fine(hop) && check_hop(ports, hop).is_err();
        let rows = network.hops.rows().iter().zip(0u16..).filter(|(hop, _)| is_wrong(hop));
        let wrong: Vec<_> =
            rows.filter_map(|(_, index)| Some((NextHop::new(index)?, Adjacency::local()))).collect();
        network.hops.set(&wrong, &[], network.hops.count());
    }

    /// Changes rows of a network's next-hop table at its home worker to those of the model.
    fn tell_hops(
        &self,
        vid: Vid,
        rows: &[(NextHop, Adjacency)],
        groups: &[(NextHop, Slots)],
    ) -> Result<(), SubstrateError> {
        let count = self.model.network(vid).map_or(0, |network| network.hops.count());
        let (rows, groups) = (rows.to_vec(), groups.to_vec());
        self.ask_home(vid, move |worker| worker.set_hops(vid, &rows, &groups, count)).map_err(broken)
    }

    /// Installs a network on all workers, as the model has it.
    fn install(&mut self, program: &Program) -> Result<(), SubstrateError> {
        let vid = program.vid;
        let (home, generation) = match self.networks.get(&vid) {
            Some(network) => (network.home, network.generation),
            None => {
                self.generation = self.generation.wrapping_add(1);
                (self.emptiest(self.networks.values().map(|network| network.home)), self.generation)
            }
        };
        let vports = program.ports.len();
        let control = self.networks.remove(&vid).filter(|control| control.vports >= vports);
        let control = control.unwrap_or_else(|| {
            let blocks = (0..self.workers()).map(|_| Ledger::block(vports)).collect();
            NetworkControl { home, generation, vports, blocks }
        });
        let program = Arc::new(Program {
            vid,
            name: program.name.clone(),
            settings: program.settings,
            ports: program.ports.clone(),
            rows: program.rows.clone(),
            next_hops: Vec::new(),
            groups: Vec::new(),
            entries: match &program.entries {
                Entries::Exact(macs) => Entries::Exact(macs.clone()),
                Entries::Lpm32(_)
                | Entries::Lpm128(_)
                | Entries::Dual(..)
                | Entries::Sliced(_)
                | Entries::Ternary(_)
                | Entries::Nearest(_)
                | Entries::None => Entries::none(program.kind()),
            },
            rate_limit: program.rate_limit,
            weight: program.weight,
            policies: program.policies.clone(),
            gated: program.gated,
        });
        let blocks = control.blocks.clone();
        self.networks.insert(vid, control);
        for (worker, block) in blocks.iter().cloned().enumerate() {
            let home = worker == home;
            let loaded = self.model.network(vid).filter(|_| home);
            let hops = loaded.map(|network| network.hops.clone());
            let patterns = loaded.and_then(|network| network.shape.patterns.clone());
            let labels = loaded.and_then(|network| network.shape.labels.clone());
            let program = program.clone();
            let installation = Installation { program, hops, patterns, labels, generation, home, block };
            self.ask(worker, move |worker| worker.install(installation)).map_err(broken)?;
        }
        let entry = NetworkEntry { name: program.name.clone(), kind: program.kind(), blocks };
        self.totals.write().networks.insert(vid, entry);
        Ok(())
    }

    /// Passes settings that control received before the network was loaded to its home worker.
    fn apply_settings(&mut self, vid: Vid) {
        let Some(Settings { punt, neighbours, addresses }) = self.settings.get(&vid).cloned() else { return };
        let _ = self.ask_home(vid, move |worker| {
            if let Some(limit) = punt {
                worker.set_punt_limit(vid, limit);
            }
            worker.set_neighbours(vid, &neighbours);
            worker.set_own(vid, &addresses.unwrap_or_default());
        });
    }

    /// Explains what would happen to a frame that arrives on `port` now. Counts nothing and charges no meter.
    #[must_use]
    pub fn explain(&self, port: PortId, frame: &[u8], now_ns: u64) -> Trace {
        let group = hue_wire::ethernet::is_group(frame);
        let beside = self.steering.beside.front(port);
        let mut as_front = Vec::new();
        let nobody = |why: &str| Trace {
            stages: vec![
                stage("frame", format!("{} bytes on port {port}", frame.len()), None),
                stage("demux", why.to_owned(), None),
            ],
            unclaimed: Some(Unclaimed::NoNetwork),
            networks: Vec::new(),
        };
        let (port, frame) = match beside {
            None => match self.steering.demux.select(port, frame) {
                Selection::One(target, By::Port)
                    if self.steering.is_for_another(target, port, false, frame) =>
                {
                    return nobody("another network has this MAC address on the NIC beside the port");
                }
                _ => (port, frame),
            },
            Some(front) if group => (front, frame),
            Some(front) => match self.steering.beside.target(port, frame) {
                None => match self.steering.beside.whole(port) {
                    None => return nobody("no network has this MAC address on the NIC"),
                    Some(whole) if self.steering.is_for_another(whole, front, true, frame) => {
                        return nobody("another network has this address on the card's port");
                    }
                    Some(_) => (front, frame),
                },
                Some(target) if !self.steering.beside.keeps_macs(target.vid) => {
                    as_front.extend_from_slice(frame);
                    beside::inwards(&mut as_front);
                    (front, as_front.as_slice())
                }
                _ => (front, frame),
            },
        };
        let state = |vid| self.state_for(vid, frame);
        let mut trace = match self.steering.arp_owner(port, frame) {
            None => self.model.explain_with(port, now_ns, frame, state),
            Some(target) => Trace {
                stages: vec![
                    stage("frame", format!("{} bytes on port {port}", frame.len()), None),
                    stage("demux", "ARP to the MAC of a virtual port".to_owned(), None),
                ],
                unclaimed: None,
                networks: self.model.explain_one(target, now_ns, frame, state).into_iter().collect(),
            },
        };
        let (kind, mut stages) = (GroupFrame::of(frame), Vec::new());
        trace.networks.retain(|network| {
            let target = hue_demux::Target { vid: network.vid, vport: network.vport };
            let one_wire = group || self.steering.beside.keeps_macs(network.vid);
            let other_wire = self.steering.beside.is_other_wire(network.vid, port, beside.is_some());
            let other_wire = (one_wire && other_wire).then_some(Loss::OtherWire);
            let handled = group && network.outcome.class() != Some(Class::Foreign);
            let foreign =
                other_wire.or_else(|| if handled { self.steering.foreign(target, kind) } else { None });
            if let Some(loss) = foreign {
                let detail = format!("network '{}': {}", network.name, loss.row().doc);
                stages.push(stage(if group { "group" } else { "wire" }, detail, Some(loss.name())));
            }
            foreign.is_none()
        });
        trace.stages.extend(stages);
        for network in trace.networks.iter_mut().filter(|network| network.outcome.verdict() == Verdict::Punt)
        {
            let detail = "to the network's control plane, within its punt limit".to_owned();
            network.stages.push(stage("control", detail, Some(network.outcome.name())));
        }
        trace
    }

    /// Explains what tunnels would do now with a packet that a network sent or accepted as its own; see [`Soft::explain_tunnels`].
    ///
    /// [`Soft::explain_tunnels`]: crate::Soft::explain_tunnels
    #[must_use]
    pub fn explain_tunnels(&self, trace: &NetworkTrace, now_ns: u64) -> Vec<Passage> {
        let state = |vid, frame: &[u8]| self.state_for(vid, frame);
        self.model.explain_passages(&self.steering.tunnels, trace, now_ns, state)
    }

    /// What a network's home worker knows that a frame's way depends on.
    fn state_for(&self, vid: Vid, frame: &[u8]) -> State {
        let frame = frame.to_vec();
        self.ask_home(vid, move |worker| worker.state(vid, &frame)).unwrap_or_default()
    }
}

impl Substrate for Live {
    fn name(&self) -> &'static str {
        self.model.name()
    }

    fn load(&mut self, programs: &[Program]) -> Result<(), SubstrateError> {
        let loaded = |program: &&Program| self.networks.contains_key(&program.vid);
        for program in programs {
            // Its frames that wait, and its counters, are those of its present kind.
            let now = self.model.network(program.vid).map(crate::network::Network::kind);
            if let Some(now) = now.filter(|now| *now != program.kind()) {
                let (name, to) = (program.name.clone(), program.kind());
                return Err(SubstrateError::OtherKind { name, now, to });
            }
            // The rows of next hops, which it keeps, are numbered in another way.
            let now = self.model.network(program.vid).map(crate::network::Network::route_by);
            if let Some(now) = now.filter(|now| now.is_default() != program.route_by().is_default()) {
                let (name, to) = (program.name.clone(), program.route_by());
                return Err(SubstrateError::OtherRouteBy { name, now, to });
            }
        }
        let changed: Vec<Vid> = programs.iter().filter(loaded).map(|program| program.vid).collect();
        let bare = |program: &&Program| program.entries.is_empty() && program.next_hops.is_empty();
        let keep: Vec<Vid> = programs.iter().filter(loaded).filter(bare).map(|program| program.vid).collect();
        self.hold(&changed, true)?;
        let taken = self.model.load_keeping(programs, &keep);
        if taken.is_ok() {
            self.tunnels_stale = true;
            keep.iter().for_each(|vid| self.repair_hops(*vid));
            for program in programs {
                self.install(program)?;
            }
            self.steer().map_err(broken)?;
            for program in programs.iter().filter(|program| !changed.contains(&program.vid)) {
                self.apply_settings(program.vid);
            }
            self.police().map_err(broken)?;
        }
        self.hold(&changed, false)?;
        taken
    }

    fn unload(&mut self, vids: &[Vid]) -> Result<(), SubstrateError> {
        if let Some(vid) = vids.iter().find(|vid| !self.networks.contains_key(vid)) {
            return Err(SubstrateError::Unknown(*vid));
        }
        self.hold(vids, true)?;
        self.model.unload(vids).inspect_err(|_| {
            let _ = self.hold(vids, false);
        })?;
        self.tunnels_stale = true;
        self.steer().map_err(broken)?;
        let (closed, all_closed) = sync_channel(1);
        for vid in vids.iter().copied() {
            for worker in 0..self.workers() {
                let closed = closed.clone();
                self.ask(worker, move |worker| worker.remove(vid, &closed)).map_err(broken)?;
            }
            self.networks.remove(&vid);
            self.on_nics.on.remove(&vid);
            self.on_nics.turning.remove(&vid);
            self.settings.remove(&vid);
            self.totals.write().networks.remove(&vid);
        }
        drop(closed);
        let _ = all_closed.recv(); // an error, when the last TAP is
        self.police().map_err(broken)
    }

    fn update(&mut self, vid: Vid, update: &Update<'_>) -> Result<Refusals, SubstrateError> {
        let before = self.model.set_hops(vid, update)?;
        if update.has_hops() {
            self.tell_hops(vid, update.hops, update.groups)?;
        }
        self.model.set_routes(vid, update).inspect_err(|_| {
            self.model.restore_hops(vid, &before, update);
            if update.has_hops() {
                // A worker that has ended has no packets.
                let _ = self.tell_hops(vid, &before.rows, &before.groups);
            }
        })
    }

    fn counters(&self, vid: Vid) -> Option<Counters> {
        self.totals.network(vid).map(|totals| totals.outcomes)
    }

    fn unclaimed(&self) -> UnclaimedCounters {
        self.totals.unclaimed()
    }

    fn capacity(&self) -> Capacity {
        self.model.capacity()
    }
}
