//! The core, for the programs of networks of kind `process`.

use super::Node;
use crate::api::EventKind;
use crate::node::events::About;
use crate::node::message::Message;
use crate::node::programs::Report;

impl Node {
    /// Has the program of a network run, once this daemon reads the network's virtual ports: until then, that of the daemon before
    /// forwards.
    pub(super) fn run_program(&mut self, name: &str) {
        let entry = self.networks.get(name).filter(|_| self.take_over.is_none());
        let Some((have, control)) = entry.and_then(|entry| entry.have().zip(entry.control())) else { return };
        let sender = self.sender.clone();
        // After the node's end nobody needs reports.
        let kept =
            self.programs.keep(have, control, move |report| drop(sender.send(Message::Program(report))));
        self.changed = true;
        if let Err(error) = kept {
            let text = format!("the network's program cannot be started: {error}");
            self.shared.events.add(EventKind::Trouble, About::Network(name), text);
        }
    }

    /// Starts the programs that have waited for the virtual ports, and opens the sockets for labels.
    pub(super) fn run_programs(&mut self) {
        let names: Vec<String> = self.networks.iter().map(|(name, _)| name.clone()).collect();
        for name in &names {
            self.run_program(name);
            self.open_door(name);
        }
    }

    /// Something happened to a program.
    pub(super) fn program_reported(&mut self, report: Report) {
        let Some(name) = self.networks.name_of(report.vid).cloned() else { return };
        let Some(told) = self.programs.take(report) else { return };
        self.changed = true;
        if let Some((kind, text)) = told.event {
            self.shared.events.add(kind, About::Network(&name), text);
        }
        if told.recovered {
            let text = "the network's program runs again";
            self.shared.events.add(EventKind::NetworkRecovered, About::Network(&name), text);
        }
    }
}
