//! The core, for networks: brings each from its desired to its running state.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use hue_demux::PortId;
use hue_intent::{NetworkPort, Tunnel};
use hue_substrate::{Substrate, SubstrateError};
use hue_tables::{Policies, Vid};

use super::Node;
use crate::api::{EventKind, NetworkState, RouteKind};
use crate::node::events::About;
use crate::node::jobs::{Done, Job, Made, Setup};
use crate::node::networks::{Entry, RETRY_MAX, RETRY_MIN, SNAPSHOT_MAX};
use crate::node::ports::{Input, PhysicalPort};
use crate::node::routes::{self, Loaded, Table};
use crate::node::wanted::Wanted;

impl Node {
    /// Sets a network's target state. Nothing is done yet; see [`Node::advance`].
    pub(super) fn want(&mut self, name: &str, want: Option<Arc<Wanted>>) {
        let entry = self.networks.entry(name.to_owned()).or_insert_with(Entry::new);
        if let Some(want) = &want
            && entry.want.as_ref() != Some(want)
        {
            entry.pause = RETRY_MIN;
        }
        entry.found |= self.leftovers.contains(name);
        entry.want = want;
        self.changed = true;
    }

    /// Releases what a network has and will lose, so that others can have it.
    pub(super) fn release(&mut self, name: &str) {
        let Some(entry) = self.networks.get_mut(name) else { return };
        let Some(have) = &entry.have else { return };
        // A network of another kind starts anew: its counters and table would have another meaning.
        let same = |want: &Arc<Wanted>| {
            want.program.vid == have.program.vid
                && want.program.kind() == have.program.kind()
                // Its rows of next hops are numbered in another way.
                && want.program.policies.is_some() == have.program.policies.is_some()
        };
        if !entry.want.as_ref().is_some_and(same) {
            self.detach(name);
        }
    }

    /// Removes a network from the data plane.
    fn detach(&mut self, name: &str) {
        let Some(entry) = self.networks.get_mut(name) else { return };
        let Some(have) = entry.have.take() else { return };
        let vid = have.program.vid;
        entry.wires.clear();
        (entry.on_card, entry.on_nic, entry.why_soft) = (false, false, None);
        entry.forwarder = None;
        self.monitor.remove(vid);
        self.unseat(vid);
        self.live.remove_taps(vid);
        if let Err(error) = self.live.unload(&[vid]) {
            tracing::error!(network = name, %error, "a network cannot be unloaded from the data plane");
        }
        self.forward();
        self.vids.remove(&vid);
        let Some(entry) = self.networks.get_mut(name) else { return };
        entry.unread.clear();
        entry.taps = false;
        self.give_routes(routes::Input::Unload(vid));
        self.tell_passengers(name);
        self.changed = true;
    }

    /// Takes the next step towards a network's target state.
    pub(super) fn advance(&mut self, name: &str) {
        let Some(entry) = self.networks.get_mut(name) else { return };
        if entry.job.is_some() {
            return; // continues when the job ends
        }
        entry.retry = None;
        entry.ready = None;
        let Some(want) = entry.want.clone() else {
            self.detach(name);
            if let Some(entry) = self.networks.get_mut(name) {
                entry.job = Some(None);
                self.jobs.add(Job::Delete(name.to_owned(), entry.control.take()));
            }
            return;
        };
        let failed = entry.state == NetworkState::Degraded;
        let have = entry.have.as_ref();
        if have == Some(&want) && !failed && entry.taps {
            return self.announce(name);
        }
        self.release(name);
        let Some(entry) = self.networks.get_mut(name) else { return };
        let same_ports = entry.have.as_ref().is_some_and(|have| have.ports == want.ports);
        if entry.taps && !same_ports {
            // A TAP can be reopened only while it is not open anywhere.
            entry.wires.clear();
            entry.unread.clear();
            if let Some(have) = &entry.have {
                self.live.remove_taps(have.program.vid);
            }
            entry.taps = false;
        }
        let in_place = entry.have.as_ref().is_some_and(|have| {
            have.config == want.config && have.limits == want.limits && have.ports == want.ports
        });
        if entry.taps && in_place && !failed {
            entry.ready = Some((want, None));
            return self.load_ready();
        }
        let held = entry.control.clone();
        let setup = Setup { limits: want.limits, config: want.config.clone(), taps: !entry.taps, held };
        entry.job = Some(Some(want));
        self.jobs.add(Job::Setup(name.to_owned(), Box::new(setup)));
    }

    /// Retries a failed network.
    pub(super) fn retry(&mut self, name: &str) {
        let Some(entry) = self.networks.get_mut(name) else { return };
        entry.retry = None;
        if entry.state == NetworkState::Pending && entry.have.is_some() && entry.have == entry.want {
            return self.announce(name); // its routes are late
        }
        if let Some(have) = &entry.have
            && self.routes.is_torn(have.program.vid)
            && entry.have == entry.want
            && entry.taps
        {
            let vid = have.program.vid;
            return self.give_routes(routes::Input::LoadWhole(vid));
        }
        self.advance(name);
    }

    /// A job has ended.
    pub(super) fn job_done(&mut self, done: Done) {
        match done {
            Done::Setup(name, result) => self.setup_done(&name, result),
            Done::Delete(name, result) => self.delete_done(&name, result),
            Done::Open(tag, result) => self.give_ports(Input::Opened(tag, result)),
            Done::Close(interface) => self.give_ports(Input::Free(interface)),
            Done::Look(seen) => self.look_done(seen),
        }
        self.started();
    }

    fn setup_done(&mut self, name: &str, result: Result<Option<Box<Made>>, String>) {
        let Some(entry) = self.networks.get_mut(name) else { return };
        let Some(Some(want)) = entry.job.take() else { return };
        if entry.want.as_ref() != Some(&want) {
            return self.advance(name);
        }
        match result {
            Ok(made) => {
                entry.ready = Some((want, made));
                self.load_ready();
            }
            Err(reason) => self.degrade(name, reason),
        }
    }

    fn delete_done(&mut self, name: &str, result: Result<bool, String>) {
        let is_leftover = self.leftovers.remove(name);
        if is_leftover && result.as_ref().is_ok_and(|was| *was) {
            let text = format!("network {name}, left by an earlier daemon, was removed");
            self.shared.events.add(EventKind::Cleaned, About::Node, text);
        }
        let Some(entry) = self.networks.get_mut(name) else { return };
        entry.job = None;
        if entry.want.is_some() {
            return self.advance(name);
        }
        match result {
            Ok(_) => {
                if entry.announced {
                    let text = "the network was removed";
                    self.shared.events.add(EventKind::NetworkDeleted, About::Network(name), text);
                }
                self.networks.remove(name);
                self.changed = true;
                self.ask_scheduler();
                self.settled(name, None);
                self.make_room();
                self.load_ready();
            }
            Err(reason) => self.degrade(name, format!("it cannot be removed: {reason}")),
        }
    }

    /// Loads programs whose namespaces are ready: each alone, and conflicting ones together.
    fn load_ready(&mut self) {
        let is_ready = |node: &Self| -> Vec<String> {
            node.networks.iter().filter(|(_, e)| e.ready.is_some()).map(|(name, _)| name.clone()).collect()
        };
        loop {
            let names = is_ready(self);
            let (mut progress, mut clash) = (false, None);
            for name in &names {
                match self.load(&[name.as_str()]) {
                    Ok(()) => progress = true,
                    Err(error) => clash = Some((name.clone(), error)),
                }
            }
            let Some((name, error)) = clash else { return };
            let rest = is_ready(self);
            let together: Vec<&str> = rest.iter().map(String::as_str).collect();
            if progress || (together.len() > 1 && self.load(&together).is_ok()) {
                continue;
            }
            if self.networks.values().any(|entry| entry.job.is_some()) {
                return; // a job in progress may make room
            }
            self.degrade(&name, error.to_string());
        }
    }

    /// Loads the programs of ready networks, all or none.
    fn load(&mut self, names: &[&str]) -> Result<(), SubstrateError> {
        let mut programs = Vec::with_capacity(names.len());
        for name in names {
            let Some(entry) = self.networks.get(*name) else { continue };
            let Some((want, _)) = &entry.ready else { continue };
            if entry.have.as_ref().is_some_and(|have| have.program == want.program) {
                continue;
            }
            // Next-hop rows contain ports and addresses: if these change, all routes are loaded again.
            let others = entry.have.as_ref().is_some_and(|have| have.ports != want.ports);
            let vid = want.program.vid;
            programs.push(want.program.clone());
            if others {
                self.give_routes(routes::Input::Clear(vid));
            }
        }
        if !programs.is_empty() {
            self.live.load(&programs)?;
        }
        for name in names {
            self.loaded(name);
        }
        self.seat(names);
        Ok(())
    }

    /// A program was loaded: completes the rest of the network.
    fn loaded(&mut self, name: &str) {
        let Some(entry) = self.networks.get_mut(name) else { return };
        let Some((want, made)) = entry.ready.take() else { return };
        let vid = want.program.vid;
        let known = entry.have.is_some();
        self.vids.insert(vid, name.to_owned());
        let limit = want.network.spec.punt_limit;
        self.live.set_punt_limit(vid, limit.packets_per_second, limit.burst_packets);
        let (ports, counts) = (want.ports.clone(), Arc::clone(&entry.counts));
        let keys = want.program.entries.keys();
        let policies = want.program.policies.as_ref();
        let by_length = policies.is_some();
        let gateways = gateways(policies);
        entry.have = Some(want);
        entry.state = NetworkState::Pending;
        entry.reason = None;
        self.changed = true;
        let loaded =
            Loaded { name: name.to_owned(), keys, by_length, gateways, ports, is_known: known, counts };
        self.give_routes(routes::Input::Load(vid, loaded));
        self.set_quota(name);
        let attached = match made {
            Some(made) => self.attach(name, vid, *made),
            None => Ok(()),
        };
        match attached {
            Ok(()) => self.wait_for_routes(name),
            Err(reason) => self.degrade(name, reason),
        }
    }

    /// Gives a network's namespace to the workers and the monitor.
    fn attach(&mut self, name: &str, vid: Vid, made: Made) -> Result<(), String> {
        let Some(entry) = self.networks.get_mut(name) else { return Ok(()) };
        let Made { control, created, changes, taps } = made;
        if let Some(taps) = taps {
            entry.wires.clear();
            entry.unread.clear();
            for (tap, vport) in taps.into_iter().zip(0u16..) {
                entry.wires.push((tap.try_clone().map_err(|error| error.to_string())?, None));
                if self.take_over.is_some() {
                    entry.unread.push((vport, tap));
                    continue;
                }
                self.live.add_tap(vid, vport, Box::new(tap)).map_err(|error| error.to_string())?;
            }
            entry.taps = true;
            if let Some(forwarder) = &mut entry.forwarder {
                forwarder.set_stale();
            }
            entry.drift.indices.clear();
        }
        let control = Arc::new(control);
        if created {
            self.give_routes(routes::Input::Renew(vid));
        }
        if !self.routes.table(vid).is_some_and(Table::is_monitored) {
            let session = self.monitor.add(vid, &control.namespace).map_err(|error| error.to_string())?;
            self.give_routes(routes::Input::Monitored(vid, session));
        }
        let Some(entry) = self.networks.get_mut(name) else { return Ok(()) };
        entry.control = Some(control);
        self.tell_wires(name);
        if changes.refused.is_empty() {
            return Ok(());
        }
        let more = changes.refused.len() - 1;
        let more = if more > 0 { format!(" (and {more} more)") } else { String::new() };
        Err(format!("{}{more}", changes.refused.first().map_or("", String::as_str)))
    }

    /// A network is as wanted when its table matches its namespace.
    fn wait_for_routes(&mut self, name: &str) {
        let Some(entry) = self.networks.get_mut(name) else { return };
        entry.retry = Some(Instant::now() + SNAPSHOT_MAX);
        let vid = entry.have.as_ref().map(|have| have.program.vid);
        if let Some(vid) = vid {
            self.give_routes(routes::Input::Behind(vid));
        }
    }

    /// A network has reached its target state.
    pub(super) fn announce(&mut self, name: &str) {
        let Some(entry) = self.networks.get_mut(name) else { return };
        let was = std::mem::replace(&mut entry.state, NetworkState::Running);
        entry.retry = None;
        entry.pause = RETRY_MIN;
        let recovered = std::mem::take(&mut entry.reported_bad);
        entry.reason = None;
        if let Some(drift) = entry.drift.reason.take().filter(|_| recovered) {
            let text = format!("the network is as desired again, after: {drift}");
            self.shared.events.add(EventKind::Repaired, About::Network(name), text);
            self.changed = true;
        } else if was != NetworkState::Running {
            let first = !std::mem::replace(&mut entry.announced, true);
            let (kind, text) = match (first, entry.found, recovered) {
                (true, true, _) => {
                    (EventKind::Adopted, "the network continues in the namespace of an earlier daemon")
                }
                (true, false, _) => (EventKind::NetworkCreated, "the network is set up"),
                (false, _, true) => (EventKind::NetworkRecovered, "the network is as desired again"),
                (false, _, false) => (EventKind::NetworkChanged, "the network is as desired"),
            };
            self.shared.events.add(kind, About::Network(name), text);
            self.changed = true;
        }
        self.leftovers.remove(name);
        if was != NetworkState::Running {
            self.ask_scheduler();
        }
        self.run_program(name);
        self.place(name);
        self.tell_passengers(name);
        self.try_again();
        let entry = self.networks.get(name);
        let result = entry.map(|entry| entry.result(name, self.table_of(entry)));
        self.settled(name, result);
        self.started();
    }

    /// A network has not reached its target state; it is retried later.
    pub(super) fn degrade(&mut self, name: &str, reason: String) {
        let Some(entry) = self.networks.get_mut(name) else { return };
        entry.ready = None;
        entry.retry = Some(Instant::now() + entry.pause);
        entry.pause = (entry.pause * 2).min(RETRY_MAX);
        entry.state = NetworkState::Degraded;
        entry.announced = true;
        entry.reported_bad = true;
        if entry.reason.as_ref() != Some(&reason) {
            let kind =
                if entry.drift.reason.is_some() { EventKind::Drifted } else { EventKind::NetworkDegraded };
            self.shared.events.add(kind, About::Network(name), reason.clone());
            entry.reason = Some(reason);
        }
        self.changed = true;
        self.leftovers.remove(name);
        let entry = self.networks.get(name);
        let result = entry.map(|entry| entry.result(name, self.table_of(entry)));
        self.settled(name, result);
        self.started();
    }

    /// Tells the kernel of a network's namespace which of its interfaces have a link: without one it forgets its
    /// neighbours there, and routing daemons use other paths.
    pub(super) fn tell_wires(&mut self, name: &str) {
        let Some(entry) = self.networks.get(name) else { return };
        let Some(have) = &entry.have else { return };
        let ports = have.network.spec.ports.iter().zip(&have.program.ports);
        let states = ports.map(|(document, port)| match document.tunnel() {
            Some(tunnel) => self.reaches(tunnel),
            None => self.has_link(port.port, entry.on_nic),
        });
        let states: Vec<Option<bool>> = states.collect();
        let Some(entry) = self.networks.get_mut(name) else { return };
        for ((tap, told), on) in entry.wires.iter_mut().zip(states) {
            let Some(on) = on.filter(|on| *told != Some(*on)) else { continue };
            match tap.set_carrier(on) {
                Ok(()) => (*told, self.changed) = (Some(on), true),
                Err(error) => {
                    tracing::warn!(network = name, %error, "the carrier of a virtual port cannot be switched")
                }
            }
        }
    }

    /// Whether a physical port has a link; `None` while it is being opened, for example after a restart.
    fn has_link(&self, port: PortId, on_nic: bool) -> Option<bool> {
        let id = self.wires.nic_of(port).filter(|_| on_nic).unwrap_or(port);
        let physical = self.ports.with_id(id).map(|(_, physical)| physical);
        (!physical.is_some_and(PhysicalPort::is_undecided)).then(|| self.ports.has_wire(id))
    }

    /// Whether the network that carries a tunnel has a route to its far end; `None` while that network is being set up.
    fn reaches(&self, tunnel: &Tunnel) -> Option<bool> {
        let over = tunnel.over.as_str();
        let carrier = self.networks.get(over)?;
        if carrier.is_pending() {
            return None;
        }
        let route = self.routes_holding(over, tunnel.remote).pop();
        Some(carrier.have.is_some() && route.is_some_and(|route| route.kind != RouteKind::Local))
    }

    /// The routes or the state of a network may have changed: tells the networks whose tunnels it carries whether it reaches
    /// the far ends.
    pub(super) fn tell_passengers(&mut self, name: &str) {
        let Some(entry) = self.networks.get(name) else { return };
        let known = entry.have.as_ref().or(entry.want.as_ref());
        if known.is_none_or(|known| !known.config.carries) {
            return;
        }
        let over = |entry: &Entry| {
            let ports = entry.have.iter().flat_map(|have| &have.network.spec.ports);
            ports.filter_map(NetworkPort::tunnel).any(|tunnel| tunnel.over.as_str() == name)
        };
        let passengers = self.networks.iter().filter(|(_, entry)| over(entry));
        let passengers: Vec<String> = passengers.map(|(name, _)| name.clone()).collect();
        passengers.iter().for_each(|passenger| self.tell_wires(passenger));
    }

    /// An interface of a network's namespace is gone: creates it again.
    pub(super) fn lost_interface(&mut self, name: &str, interface: &str) {
        let Some(entry) = self.networks.get_mut(name) else { return };
        let ours =
            entry.have.as_ref().is_some_and(|have| have.ports.iter().any(|port| port.interface == interface));
        if ours && entry.taps && entry.job.is_none() {
            entry.taps = false;
            entry.wires.clear();
            entry.unread.clear();
            if let Some(have) = &entry.have {
                self.live.remove_taps(have.program.vid);
            }
            self.degrade(
                name,
                format!("interface {interface} of its namespace was removed; it is created again"),
            );
        }
    }
}

/// The gateways of routes by source, each once.
fn gateways(policies: Option<&Policies>) -> Vec<IpAddr> {
    let all: BTreeSet<IpAddr> =
        policies.into_iter().flat_map(|policies| &policies.list).map(|policy| policy.via).collect();
    all.into_iter().collect()
}
