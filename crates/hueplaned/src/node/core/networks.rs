//! The core, for networks: gives them their inputs, and applies their effects.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use hue_ports::Tap;
use hue_substrate::Substrate;
use hue_tables::{Policies, Vid};

use super::Node;
use crate::api::{EventKind, NetworkState};
use crate::node::events::About;
use crate::node::jobs::{Done, Made};
use crate::node::moves;
use crate::node::networks::{Around, Attached, Effect, Entry, Input, Loaded};
use crate::node::ports::{self, PhysicalPort};
use crate::node::programs::Programs;
use crate::node::routes::{self, Routes, Table};
use crate::node::wanted::Form;

impl Node {
    /// Gives networks an input. Its effects are applied before this returns, each with all that follows from it before the
    /// next one.
    pub(in crate::node) fn give_networks(&mut self, input: Input) {
        let take = |node: &mut Self, input| node.take_networks(input, Instant::now());
        self.apply_all(input, take, Self::apply_to_networks);
    }

    /// Has networks looked at for drift, if it is time to.
    pub(super) fn tend_drift(&mut self, now: Instant) {
        let take = |node: &mut Self, input| node.take_networks(input, now);
        self.apply_all(Input::TendDrift, take, Self::apply_to_networks);
    }

    fn take_networks(&mut self, input: Input, now: Instant) -> Vec<Effect> {
        let Self { networks, routes, wires, ports, .. } = self;
        let around = Around {
            is_torn: &|vid| routes.is_torn(vid),
            reaches: &|vid, address| routes.table(vid).is_some_and(|table| table.reaches(address)),
            has_link: &|port, on_nic| {
                let id = wires.nic_of(port).filter(|_| on_nic).unwrap_or(port);
                let physical = ports.with_id(id).map(|(_, physical)| physical);
                (!physical.is_some_and(PhysicalPort::is_undecided)).then(|| ports.has_wire(id))
            },
            now,
        };
        networks.take(input, &around)
    }

    /// Returns the input that follows, if there is one.
    fn apply_to_networks(&mut self, effect: Effect) -> Option<Input> {
        match effect {
            Effect::Then(input) => return Some(input),
            Effect::Tell(kind, name, text) => self.shared.events.add(kind, About::Network(&name), text),
            Effect::TellCleaned(text) => self.shared.events.add(EventKind::Cleaned, About::Node, text),
            Effect::Changed => self.changed = true,
            Effect::Start(job) => self.jobs.add(job),
            Effect::ClearRoutes(vid) => self.give_routes(routes::Input::Clear(vid)),
            Effect::Load(programs, attempt) => {
                let loaded = self.live.load(&programs).map_err(|error| error.to_string());
                return Some(Input::Tried(attempt, loaded));
            }
            Effect::Loaded(loaded) => self.loaded(loaded),
            Effect::Seat(names) => self.seat(&names),
            Effect::Attach(name, vid, made) => {
                let attached = self.attach(&name, vid, *made);
                return Some(Input::Attached(name, attached));
            }
            Effect::Unwatch(vid) => self.monitor.remove(vid),
            Effect::Unseat(vid) => self.give_moves(moves::Input::Unseat(vid)),
            Effect::Unload(name, vid) => {
                self.programs.end(vid);
                self.labels.end(vid);
                self.remove_taps(&name, vid);
                if let Err(error) = self.live.unload(&[vid]) {
                    tracing::error!(network = name, %error, "a network cannot be unloaded from the data plane");
                }
                self.forward();
            }
            Effect::ForgetRoutes(vid) => self.give_routes(routes::Input::Unload(vid)),
            Effect::RemoveTaps(name, vid) => self.remove_taps(&name, vid),
            Effect::CatchUp(vid) => self.give_routes(routes::Input::Behind(vid)),
            Effect::LoadWhole(vid) => self.give_routes(routes::Input::LoadWhole(vid)),
            Effect::SetCarrier(name, vport, on) => match self.taps.set_carrier(&name, vport, on) {
                Ok(true) => return Some(Input::CarrierSet(name, vport, on)),
                Ok(false) => {}
                Err(error) => {
                    tracing::warn!(network = name, %error, "the carrier of a virtual port cannot be switched");
                }
            },
            Effect::AskScheduler => self.ask_scheduler(),
            Effect::Run(name) => {
                self.run_program(&name);
                self.open_door(&name);
            }
            Effect::Place(name) => self.give_moves(moves::Input::Place(name)),
            Effect::TryAgain => self.give_moves(moves::Input::TryAgain),
            Effect::MakeRoom => self.give_moves(moves::Input::MakeRoom),
            Effect::Settled(name) => self.settled(&name),
            Effect::Started => self.started(),
        }
        None
    }

    /// A job has ended.
    pub(super) fn job_done(&mut self, done: Done) {
        match done {
            Done::Setup(name, result) => self.give_networks(Input::SetUp(name, result)),
            Done::Delete(name, result) => self.give_networks(Input::Deleted(name, result)),
            Done::Open(tag, result) => self.give_ports(ports::Input::Opened(tag, result)),
            Done::Close(interface) => self.give_ports(ports::Input::Free(interface)),
            Done::Look(seen) => self.give_networks(Input::LookDone(seen)),
        }
        self.started();
    }

    /// A program was loaded: sets its limits, and takes its routes.
    fn loaded(&mut self, loaded: Loaded) {
        let Loaded { name, have, is_known, counts } = loaded;
        let vid = have.program.vid;
        let limit = have.network.spec.punt_limit;
        self.live.set_punt_limit(vid, limit.packets_per_second, limit.burst_packets);
        let policies = have.program.policies.as_ref();
        let loaded = routes::Loaded {
            name: name.clone(),
            form: Form::of(&have.program),
            gateways: gateways(policies),
            ports: have.ports.clone(),
            is_known,
            counts,
        };
        self.give_routes(routes::Input::Load(vid, loaded));
        self.set_quota(&name);
    }

    /// Gives a network's namespace to the workers and the monitor.
    fn attach(&mut self, name: &str, vid: Vid, made: Made) -> Attached {
        let Made { control, created, changes, taps } = made;
        let mut attached = Attached::default();
        if let Some(taps) = taps {
            self.taps.remove(name);
            self.programs.set_stale(vid);
            let given = self.give_taps(name, vid, taps);
            attached.taps = Some(self.taps.count(name));
            if let Err(why) = given {
                return Attached { problem: Some(why), ..attached };
            }
            attached.all_taps = true;
        }
        let control = Arc::new(control);
        if created {
            self.give_routes(routes::Input::Renew(vid));
        }
        if !self.routes.table(vid).is_some_and(Table::is_monitored) {
            match self.monitor.add(vid, &control.namespace) {
                Ok(session) => self.give_routes(routes::Input::Monitored(vid, session)),
                Err(error) => return Attached { problem: Some(error.to_string()), ..attached },
            }
        }
        let problem = changes.refused.first().map(|first| match changes.refused.len() - 1 {
            0 => first.clone(),
            more => format!("{first} (and {more} more)"),
        });
        Attached { control: Some(control), problem, ..attached }
    }

    /// Gives TAPs to the workers, or keeps them while the daemon before reads them.
    fn give_taps(&mut self, name: &str, vid: Vid, taps: Vec<Tap>) -> Result<(), String> {
        for (tap, vport) in taps.into_iter().zip(0u16..) {
            self.taps.add(name, tap.try_clone().map_err(|error| error.to_string())?);
            if self.take_over.is_some() {
                self.taps.add_unread(name, vport, tap);
                continue;
            }
            self.live.add_tap(vid, vport, Box::new(tap)).map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    fn remove_taps(&mut self, name: &str, vid: Vid) {
        self.taps.remove(name);
        self.live.remove_taps(vid);
    }

    /// Why some routes of a network have no room.
    pub(super) fn refused_of(&self, entry: &Entry) -> Option<&String> {
        self.table_of(entry)?.refused().reason()
    }

    /// What is wrong with a network that is as wanted: its routes, or its program.
    fn problem_of(&self, entry: &Entry) -> Option<&String> {
        problem(&self.routes, &self.programs, entry.vid()?)
    }

    /// State of a network, and the reason if it is not the desired one.
    pub(in crate::node) fn condition<'a>(&'a self, entry: &'a Entry) -> (NetworkState, Option<&'a String>) {
        entry.condition(self.problem_of(entry))
    }

    /// The network with this id, for work that needs its name.
    pub(super) fn with_name(&mut self, vid: Vid, work: impl FnOnce(&mut Self, String)) {
        if let Some(name) = self.networks.name_of(vid).cloned() {
            work(self, name);
        }
    }

    /// The routes of a network may have changed: the networks whose tunnels it carries learn whether it reaches the far ends.
    pub(super) fn tell_passengers(&mut self, vid: Vid) {
        self.with_name(vid, |node, name| node.give_networks(Input::TellPassengers(name)));
    }
}

/// What is wrong with a network that is as wanted: its routes, or its program.
pub(super) fn problem<'a>(routes: &'a Routes, programs: &'a Programs, vid: Vid) -> Option<&'a String> {
    let refused = routes.table(vid).and_then(|table| table.refused().reason());
    refused.or_else(|| programs.problem(vid))
}

/// The gateways of routes by source, each once.
fn gateways(policies: Option<&Policies>) -> Vec<IpAddr> {
    let all: BTreeSet<IpAddr> =
        policies.into_iter().flat_map(|policies| &policies.list).map(|policy| policy.via).collect();
    all.into_iter().collect()
}
