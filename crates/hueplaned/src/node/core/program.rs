//! The core, for the programs of networks of kind `process`.

use super::Node;
use crate::api::EventKind;
use crate::node::events::About;
use crate::node::message::Message;
use crate::node::program::{Forwarder, Report};

impl Node {
    /// Starts a network's program, if it has one that does not run; ends one that it should not have.
    pub(super) fn run_program(&mut self, name: &str) {
        let preparing = self.take_over.is_some();
        let Some(entry) = self.networks.get_mut(name) else { return };
        // While the daemon before has the virtual ports, its program forwards.
        let ready = entry.taps && entry.unread.is_empty() && !preparing;
        let wanted = entry.have.as_ref().filter(|_| ready).and_then(|have| Forwarder::spec(have));
        let (Some(spec), Some(control)) = (wanted, &entry.control) else {
            if ready {
                entry.forwarder = None;
            }
            return;
        };
        let done = match &mut entry.forwarder {
            Some(forwarder) => forwarder.ensure(control, spec),
            None => {
                self.runs += 1;
                let sender = self.sender.clone();
                // After the node's end nobody needs reports.
                let tell = move |report| drop(sender.send(Message::Program(report)));
                let started = Forwarder::start(control, spec, self.runs, tell);
                started.map(|forwarder| entry.forwarder = Some(forwarder))
            }
        };
        self.changed = true;
        if let Err(error) = done {
            let text = format!("the network's program cannot be started: {error}");
            self.shared.events.add(EventKind::Trouble, About::Network(name), text);
        }
    }

    /// Starts the programs that have waited for the virtual ports.
    pub(super) fn run_programs(&mut self) {
        let names: Vec<String> = self.networks.keys().cloned().collect();
        names.iter().for_each(|name| self.run_program(name));
    }

    /// Something happened to a program.
    pub(super) fn program_reported(&mut self, report: Report) {
        let name = report.network.clone();
        let Some(entry) = self.networks.get_mut(&name) else { return };
        let Some(forwarder) = &mut entry.forwarder else { return };
        let before = forwarder.problem().is_some();
        let event = forwarder.take(report);
        let after = forwarder.problem().is_some();
        self.changed = true;
        if let Some((kind, text)) = event {
            self.shared.events.add(kind, About::Network(&name), text);
        }
        if before && !after {
            let text = "the network's program runs again";
            self.shared.events.add(EventKind::NetworkRecovered, About::Network(&name), text);
        }
    }
}
