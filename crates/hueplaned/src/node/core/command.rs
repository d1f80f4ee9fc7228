//! The core, for requests: the only place where they take effect.

use super::Node;
use crate::node::command::{Command, Frame, Query, Reply, Request, Target};
use crate::node::moves;
use crate::node::networks;

impl Node {
    /// Does a request: the only place where requests take effect.
    pub(in crate::node) fn take_request(&mut self, request: Request) {
        tracing::debug!(?request, "request");
        match request {
            Request::Command(command) => self.take_command(command),
            Request::Query(query) => {
                self.publish_changes();
                self.take_query(query);
            }
            Request::WhenIdle(deferred) => self.when_idle(*deferred),
        }
    }

    /// Does a command and answers it. Callers see the state that their answer reports, so it is published first.
    fn reply<T>(&mut self, reply: Reply<T>, work: impl FnOnce(&mut Self) -> T) {
        let answer = work(self);
        self.publish_changes();
        reply.send(answer);
    }

    fn take_command(&mut self, command: Command) {
        match command {
            Command::Reconcile { prepared, reply } => self.reply(reply, |node| node.reconcile(*prepared)),
            Command::Keep { desired: Target(desired), reply } => {
                self.reply(reply, |node| node.desired = desired);
            }
            Command::Migrate { name, request, reply } => {
                self.reply(reply, |node| node.migrate(&name, &request))
            }
            Command::EndReservation { reply } => {
                self.reply(reply, |node| node.give_moves(moves::Input::EndReservation));
            }
            Command::LoadImage { name, away, reply } => {
                self.reply(reply, |node| node.load_image(&name, away))
            }
            Command::Drain { desired, request, reply } => {
                self.reply(reply, |node| node.drain(desired.map(|Target(desired)| desired), &request));
            }
            Command::Undrain { desired: Target(desired), reply } => {
                self.reply(reply, |node| node.undrain(desired));
            }
            Command::StoreProblem { problem } => self.set_store_problem(problem),
            Command::Measured { reply } => {
                self.reply(reply, |node| node.ask_scheduler_of_traffic());
            }
            Command::BeginLook { names, reply } => self.reply(reply, |node| {
                names.iter().filter_map(|name| node.networks.look_at(name, true)).collect()
            }),
            Command::EndLook { seen, reply } => {
                self.reply(reply, |node| node.give_networks(networks::Input::Looked(seen)));
            }
            Command::Capture { filter, reply } => self.reply(reply, |node| node.start_capture(&filter)),
        }
    }

    fn take_query(&self, query: Query) {
        match query {
            Query::Nothing { reply } => reply.send(Ok(())),
            Query::CanDrain { reply } => reply.send(self.can_drain()),
            Query::Places { reply } => reply.send(Ok(self.places())),
            Query::Names { only, reply } => reply.send(self.names_of(only.as_deref())),
            Query::Routes { at, reply } => reply.send(self.routes_from(at)),
            Query::RoutesHolding { name, address, reply } => reply.send(self.routes_holding(&name, address)),
            Query::Neighbours { name, reply } => reply.send(self.neighbours_of(&name)),
            Query::Macs { name, reply } => reply.send(self.macs_of(&name)),
            Query::Entries { name, reply } => reply.send(self.entries_of(&name)),
            Query::Tables { reply } => reply.send(self.tables()),
            Query::Question { from_traffic, reply } => reply.send(self.question(from_traffic)),
            Query::Images { reply } => reply.send(self.images()),
            Query::Trial { name, reply } => reply.send(self.trial(&name)),
            Query::Trace { port, frame: Frame(frame), reply } => reply.send(self.trace(&port, &frame)),
            Query::ExecInfo { name, reply } => reply.send(self.exec_info_of(&name)),
            Query::CardCounts { only, reply } => reply.send(self.ask_card(only)),
        }
    }
}
