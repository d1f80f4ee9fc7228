//! The core, for physical ports: gives them their inputs, and applies their effects.

use std::time::Instant;

use hue_demux::PortId;
use hue_host::ethtool;
use hue_host::links::{LinkEvent, Links};
use hue_host::netlink::Link;
use hue_soft::PortEvent;

use super::Node;
use crate::api::EventKind;
use crate::node::events::About;
use crate::node::networks;
use crate::node::ports::{Adopt, Around, Effect, Input, LinkChange};
use crate::node::site::Site;

impl Node {
    /// Gives ports an input. Its effects are applied before this returns, each with all that follows from it before the
    /// next one.
    pub(in crate::node) fn give_ports(&mut self, input: Input) {
        let around = Around {
            desired: &self.desired.intent.node.spec.ports,
            workers: self.shared.workers,
            is_preparing: self.is_preparing(),
            predecessor: self.ending_predecessor(),
            queues,
            now: Instant::now(),
        };
        for effect in self.ports.take(input, &around) {
            self.apply_to_ports(effect);
        }
    }

    fn apply_to_ports(&mut self, effect: Effect) {
        match effect {
            Effect::Then(input) => self.give_ports(input),
            Effect::Tell(kind, name, text) => self.shared.events.add(kind, About::Port(&name), text),
            Effect::TellTrouble(text) => {
                tracing::warn!("{text}");
                self.shared.events.add(EventKind::Trouble, About::Node, text);
            }
            Effect::WireChanged(id) => self.wire_changed(id),
            Effect::Withdraw(name, id) => {
                self.take_from_card(&name);
                self.live.remove_port(id);
            }
            Effect::SetMemory(memory) => {
                let set = self.live.set_memory(memory.slots, memory.slot_bytes);
                self.give_ports(Input::MemoryFits(set.map(|()| memory).map_err(|error| error.to_string())));
            }
            Effect::Reserve(name, id) => {
                let on_card = self.card_port(&name).map(|(_, site)| site);
                let memory = || self.live.reserve_port(id).map(Site::Memory);
                let reserved = on_card.map_or_else(memory, Ok);
                self.give_ports(Input::Reserved(name, reserved.map_err(|error| error.to_string())));
            }
            Effect::Populate(region) => region.populate(),
            Effect::Prepare(interface, ring, region) => self.prepare_port(interface, ring, &region),
            Effect::Start(job) => self.jobs.add(job),
            Effect::Adopt(adopt) => self.adopt_port(*adopt),
            Effect::ListLinks => self.list_links(),
            Effect::Free(interface) => {
                self.waiters.interface_done(&interface);
                self.settle();
                self.started();
            }
        }
    }

    /// Gives an open port to the workers or the card.
    fn adopt_port(&mut self, adopt: Adopt) {
        let Adopt { name, id, port, site, index, note } = adopt;
        let adopted = match self.card_port(&name) {
            None => match site.memory() {
                Some(memory) => self.live.adopt_port(id, memory, port).map_err(|error| error.to_string()),
                None => Err("the port was opened for the card; it will be opened again".to_owned()),
            },
            Some((number, its)) if its.is(&site) => self.give_to_card(number, id, port),
            Some(_) => Err("the port was opened for another card; it will be opened again".to_owned()),
        };
        self.give_ports(Input::Adopted(name, index, note, adopted));
    }

    /// Opens or closes a port as its interface requires.
    pub(super) fn tend_port(&mut self, name: &str) {
        self.give_ports(Input::Tend(name.to_owned()));
    }

    /// Closes a port.
    pub(super) fn close_port(&mut self, name: &str, why: &str) {
        self.give_ports(Input::Close(name.to_owned(), why.to_owned()));
    }

    /// Interfaces of the daemon's namespace have changed.
    pub(in crate::node) fn links_changed(&mut self, events: Vec<LinkEvent>) {
        let change = |event| match event {
            LinkEvent::Present(link) => LinkChange::Present(link),
            LinkEvent::Gone(link) => LinkChange::Gone(link),
            LinkEvent::Lost => LinkChange::Lost(listed()),
        };
        self.give_ports(Input::Links(events.into_iter().map(change).collect()));
    }

    /// Tells the networks on a port whether it has a link.
    fn wire_changed(&mut self, id: PortId) {
        self.changed = true; // a NIC beside a card's port may have become usable or unusable
        let ids = [Some(id), self.wires.front_of(id)].into_iter().flatten().collect();
        self.give_networks(networks::Input::WiresChanged(ids));
    }

    /// Lists all interfaces again.
    pub(super) fn list_links(&mut self) {
        if let Some(links) = listed() {
            self.give_ports(Input::AllLinks(links));
        }
    }

    /// A running port has failed.
    pub(super) fn port_failed(&mut self, event: &PortEvent) {
        self.give_ports(Input::Failed(event.id, event.error.clone()));
    }
}

/// All interfaces of the daemon's namespace.
fn listed() -> Option<Vec<Link>> {
    let listed = Links::here().and_then(|mut links| links.list());
    listed.inspect_err(|error| tracing::warn!(%error, "interfaces cannot be listed")).ok()
}

/// Receive queues of an interface.
fn queues(interface: &str) -> u32 {
    ethtool::channels(interface).map_or(1, |channels| channels.receiving().max(1))
}
