//! The core, for requests: the only place where they take effect.

use super::Node;
use crate::node::command::{Command, Frame, Query, Request, Target};

impl Node {
    /// Does a request: the only place where requests take effect.
    pub(in crate::node) fn take_request(&mut self, request: Request) {
        tracing::debug!(?request, "request");
        match request {
            Request::Command(command) => self.take_command(command),
            Request::Query(query) => self.take_query(query),
            Request::WhenIdle(deferred) => self.when_idle(*deferred),
        }
    }

    fn take_command(&mut self, command: Command) {
        match command {
            Command::Reconcile { prepared, reply } => reply.send(self.reconcile(*prepared)),
            Command::Keep { desired: Target(desired), reply } => {
                self.desired = desired;
                reply.send(());
            }
            Command::Migrate { name, request, reply } => reply.send(self.migrate(&name, &request)),
            Command::EndReservation { reply } => {
                self.end_reservation();
                reply.send(());
            }
            Command::LoadImage { name, away, reply } => reply.send(self.load_image(&name, away)),
            Command::Drain { desired, request, reply } => {
                reply.send(self.drain(desired.map(|Target(desired)| desired), &request));
            }
            Command::Undrain { desired: Target(desired), reply } => {
                self.undrain(desired);
                reply.send(());
            }
            Command::StoreProblem { problem } => self.set_store_problem(problem),
            Command::Measured { reply } => {
                self.ask_scheduler_of_traffic();
                reply.send(());
            }
            Command::BeginLook { reply } => reply.send(self.looks(true, true)),
            Command::EndLook { seen, reply } => {
                self.looked(seen);
                reply.send(());
            }
            Command::Capture { filter, reply } => reply.send(self.start_capture(&filter)),
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
