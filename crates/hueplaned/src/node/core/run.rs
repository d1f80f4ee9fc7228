//! The core's loop: takes messages, routing events and what is due, and publishes the state.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use hue_demux::PortId;
use hue_host::service;
use hue_substrate::Substrate;

use super::Node;
use super::networks::problem;
use crate::api::{Capacity, EventKind, Health};
use crate::node::events::About;
use crate::node::message::Inbox;
use crate::node::message::Message;
use crate::node::moves;
use crate::node::networks;
use crate::node::routes;
use crate::node::view::View;
use crate::node::waiters::Answer;
use crate::node::wires;

/// Messages handled in a row before routing gets its turn.
const MESSAGES_MAX: usize = 64;
/// Longest sleep: state for which there are no notifications is checked this often.
const LOOK: Duration = Duration::from_millis(500);

impl Node {
    /// Works until it is told to stop, and returns the node.
    pub fn run(mut self, inbox: &Inbox) -> Self {
        let watchdog = service::watchdog().map(|time| time / 3);
        let mut alive = Instant::now();
        let mut more = false;
        self.publish();
        loop {
            let now = Instant::now();
            if watchdog.is_some_and(|every| now.duration_since(alive) >= every) {
                service::alive();
                alive = now;
            }
            let patience = if more { Duration::ZERO } else { self.patience(now, watchdog) };
            let mut next = match inbox.messages.recv_timeout(patience) {
                Ok(message) => Some(message),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => return self,
            };
            for _ in 0..MESSAGES_MAX {
                let Some(message) = next else { break };
                if matches!(message, Message::Stop) {
                    return self;
                }
                self.handle(message, inbox);
                next = inbox.messages.try_recv().ok();
            }
            if let Some(Message::Stop) = next {
                return self;
            } else if let Some(message) = next {
                self.handle(message, inbox);
            }
            more = self.routing(inbox);
            self.tend(Instant::now());
            self.tend_idle(Instant::now());
            self.publish_changes();
        }
    }

    pub(in crate::node) fn handle(&mut self, message: Message, inbox: &Inbox) {
        match message {
            Message::Ask(request) => self.take_request(request),
            Message::Done(done) => self.job_done(done),
            Message::Links(events) => self.links_changed(events),
            Message::Port(event) => self.port_failed(&event),
            Message::Card(news) => self.card_news(news),
            Message::Program(report) => self.program_reported(report),
            Message::Labels(report) => self.labels_reported(report),
            Message::Wake => inbox.woken.store(false, Ordering::SeqCst),
            Message::Stop => {}
        }
    }

    /// Takes a batch of events and applies a piece of a table. Returns whether there is more to do.
    pub(in crate::node) fn routing(&mut self, inbox: &Inbox) -> bool {
        let batch = inbox.batches.try_recv().ok();
        let fed = batch.is_some();
        if let Some(batch) = batch {
            self.give_routes(routes::Input::Batch(batch));
        }
        self.give_routes(routes::Input::CatchUp);
        fed || self.routes.is_behind()
    }

    fn patience(&self, now: Instant, watchdog: Option<Duration>) -> Duration {
        let parts = [self.networks.due(), self.routes.due(), self.ports.due(), self.wires.due()];
        let due = parts.into_iter().chain([self.moves.seats().due(), self.deferred_due()]).flatten().min();
        let due = due.map_or(LOOK, |due| due.saturating_duration_since(now));
        due.min(LOOK).min(watchdog.unwrap_or(LOOK))
    }

    /// Retries failed work that is due.
    pub(in crate::node) fn tend(&mut self, now: Instant) {
        self.ports.due_by(now).iter().for_each(|name| self.tend_port(name));
        for name in self.networks.due_by(now) {
            self.give_networks(networks::Input::Retry(name));
        }
        self.give_routes_at(routes::Input::Tend, now);
        if self.moves.seats().due().is_some_and(|due| due <= now) {
            self.give_moves(moves::Input::Retry);
        }
        self.give_wires(wires::Input::Tend(now));
        self.tend_drift(now);
        self.tend_labels(now);
        self.tend_take_over(now);
    }

    /// Records the problem of the store of the desired state.
    pub(in crate::node) fn set_store_problem(&mut self, problem: Option<String>) {
        if self.store_problem == problem {
            return;
        }
        let text =
            problem.clone().unwrap_or_else(|| "the store of the desired state has room again".to_owned());
        self.shared.events.add(EventKind::Trouble, About::Node, text);
        self.store_problem = problem;
        self.changed = true;
    }

    /// Publishes the state if it has changed.
    pub(in crate::node) fn publish_changes(&mut self) {
        if self.changed {
            self.publish();
        }
    }

    /// Publishes the state. Neighbours are redirected first, because their networks may have moved.
    pub(in crate::node) fn publish(&mut self) {
        self.give_wires(wires::Input::RewireAll);
        self.changed = false;
        let troubles = self.all_troubles();
        if matches!(self.health, Health::Running | Health::Degraded) {
            self.health = if troubles.is_empty() { Health::Running } else { Health::Degraded };
        }
        let capacity = self.live.capacity();
        let mut on: HashMap<PortId, Vec<String>> = HashMap::new();
        for (name, entry) in self.networks.iter() {
            for id in entry.port_ids() {
                let nic = self.wires.nic_of(id).filter(|_| entry.is_on_nic());
                for id in [Some(id), nic].into_iter().flatten() {
                    on.entry(id).or_default().push(name.clone());
                }
            }
        }
        let ports = self.ports.iter().map(|(name, port)| {
            let link = self.ports.link_of(port);
            port.view(name, link, on.get(&port.id).cloned().unwrap_or_default())
        });
        let (routes, programs) = (&self.routes, &self.programs);
        let networks = self.networks.views(|vid| problem(routes, programs, vid), |vid| programs.view(vid));
        let view = View {
            health: self.health,
            troubles,
            store_problem: self.store_problem.clone(),
            card_status: self.card_status(),
            node: self.desired.intent.node.metadata.name.to_string(),
            capacity: Some(Capacity {
                networks: capacity.networks as u64,
                networks_max: capacity.networks_max as u64,
                table_bytes: capacity.table_bytes,
                table_bytes_max: capacity.table_bytes_max,
            }),
            ports: ports.collect(),
            card: self.card.as_ref().map(|card| card.view(self.card_state.ports(), self.is_drained())),
            networks,
        };
        self.shared.set_view(view);
    }

    /// Notifies callers that wait for this network.
    pub(super) fn settled(&mut self, name: &str) {
        let entry = self.networks.get(name);
        let result = entry.map(|entry| entry.result(name, self.refused_of(entry)));
        self.waiters.network_done(name, result.as_ref());
        self.settle();
    }

    /// Answers callers that have nothing left to wait for.
    pub(in crate::node) fn settle(&mut self) {
        let done = self.waiters.take_done();
        if !done.is_empty() {
            // Publish first, so that callers see the state that their answer reports.
            self.publish();
        }
        done.into_iter().for_each(Answer::send);
    }

    /// Whether all networks of the start have reached their desired state or failed.
    pub(in crate::node) fn started(&mut self) {
        if self.health == Health::Starting
            && self.networks.are_settled()
            && self.ports.opening().is_empty()
            && self.goes_on()
        {
            self.health = Health::Running;
            self.changed = true;
            let ports = self.ports.len();
            let text = format!("{} networks on {ports} ports", self.networks.len());
            self.shared.events.add(EventKind::Started, About::Node, format!("the daemon runs: {text}"));
            service::ready(&text);
            self.ask_to_renew();
        }
    }
}
