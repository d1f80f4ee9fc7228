//! The core, for physical ports.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use hue_demux::PortId;
use hue_host::links::{LinkEvent, Links};
use hue_intent::NodePort;
use hue_ports::{CablePlug, OpenOptions, Opened, PortError, SLOT_BYTES};
use hue_soft::PortEvent;

use super::Node;
use crate::api::EventKind;
use crate::node::events::About;
use crate::node::jobs::{Job, OpenPort, Opening, PortTag};
use crate::node::memory::{Memory, PortNeed, mtu_max};
use crate::node::ports::{PhysicalPort, RETRY_MIN, driver, queues};

impl Node {
    /// Opens or closes a port as its interface requires.
    pub(super) fn tend_port(&mut self, name: &str) {
        let Some(port) = self.ports.get_mut(name) else { return };
        let link = port.kernel_link(&self.links);
        port.retry = None;
        if let Some(index) = port.open {
            let why = match link {
                // Reports about our own interfaces may be about the previous one, or from before it was switched on;
                // if it fails, the data plane reports it.
                _ if port.is_ours() => return,
                Some(link) if link.index != index => "its interface was created again",
                Some(link) if !link.up => "its interface is switched off",
                Some(_) => return,
                None => "its interface is gone",
            };
            self.close_port(name, why);
        }
        let Some(port) = self.ports.get(name) else { return };
        let interface = port.want.interface();
        let missing = match self.links.get(interface) {
            _ if port.is_ours() => None,
            None => Some(format!("interface {interface} does not exist")),
            Some(link) if !link.up => {
                Some(format!("interface {interface} is switched off: ip link set {interface} up"))
            }
            Some(_) => None,
        };
        match missing {
            Some(missing) => self.port_is_down(name, missing),
            None => self.open_port(name),
        }
    }

    /// Closes a port.
    pub(super) fn close_port(&mut self, name: &str, why: &str) {
        let Some(port) = self.ports.get_mut(name) else { return };
        if port.open.take().is_some() {
            port.driver = None;
            port.note = None;
            let id = port.id;
            self.take_from_card(name);
            self.live.remove_port(id);
            self.port_is_down(name, why.to_owned());
        }
    }

    fn port_is_down(&mut self, name: &str, why: String) {
        let Some(port) = self.ports.get_mut(name) else { return };
        self.changed = true;
        if port.error.as_ref() != Some(&why) || port.told_up != Some(false) {
            self.shared.events.add(EventKind::PortDown, About::Port(name), why.clone());
        }
        port.told_up = Some(false);
        port.error = Some(why);
        self.wire_changed(name);
    }

    /// Begins to open a port; see [`Node::port_opened`].
    fn open_port(&mut self, name: &str) {
        let Some(port) = self.ports.get(name) else { return };
        let (id, want) = (port.id, port.want.clone());
        let interface = want.interface().to_owned();
        if self.opening.contains(&interface) {
            return; // continues when the job ends
        }
        let plug = match self.plug(name) {
            Ok(plug) => plug,
            Err(error) => return self.port_refused(name, error.to_string()),
        };
        self.fit_memory();
        let ring =
            self.memory.ring(self.need(&want).queues, self.ports.len().div_ceil(self.shared.workers.max(1)));
        let Some(port) = self.ports.get_mut(name) else { return };
        let make = (port.is_ours() && plug.is_none()).then_some(u32::from(want.mtu));
        let options = OpenOptions { driver: driver(want.driver), ring, ..OpenOptions::default() };
        port.short = (ring < OpenOptions::default().ring).then_some(ring);
        let on_card = self.card_port(name).map(|(_, region)| region);
        match on_card.map_or_else(|| self.live.reserve_port(id), Ok) {
            // The daemon before has the port; what can be done without it is done.
            Ok(region) if self.is_preparing() => region.populate(),
            Ok(region) => {
                self.opening.insert(interface.clone());
                let tag = PortTag { name: name.to_owned(), id, want };
                self.jobs.add(Job::Open(Box::new(Opening {
                    interface,
                    plug,
                    options,
                    make,
                    region,
                    tag,
                    predecessor: self.ending_predecessor(),
                })));
            }
            Err(error) => self.port_refused(name, error.to_string()),
        }
    }

    /// The plug of an end of a link, which both ends share the cable of; `None` for other ports.
    fn plug(&mut self, name: &str) -> Result<Option<CablePlug>, PortError> {
        let Some(port) = self.ports.get(name) else { return Ok(None) };
        let Some(peer) = port.want.peer.as_ref() else { return Ok(None) };
        let plug = match (&port.plug, self.ports.get(peer.as_str()).and_then(|peer| peer.plug.as_ref())) {
            (Some(plug), _) => plug.clone(),
            (None, Some(peer)) => peer.other(),
            (None, None) => CablePlug::new()?,
        };
        if let Some(port) = self.ports.get_mut(name) {
            port.plug = Some(plug.clone());
        }
        Ok(Some(plug))
    }

    /// A port cannot be opened; it is retried later.
    fn port_refused(&mut self, name: &str, why: String) {
        if let Some(port) = self.ports.get_mut(name) {
            port.try_later();
        }
        self.port_is_down(name, why);
    }

    /// The job that opens a port has ended. The port's target state may have changed since.
    pub(super) fn port_opened(&mut self, tag: &PortTag, result: Result<OpenPort, String>) {
        let interface = tag.want.interface();
        let wanted =
            self.ports.get(&tag.name).is_some_and(|port| port.id == tag.id && port.same_interface(&tag.want));
        match result {
            Ok(open) if !wanted => {
                // The interface is free for its next port when this one is closed.
                return self.jobs.add(Job::Close(interface.to_owned(), open.opened.port));
            }
            Ok(open) => self.use_port(&tag.name, open),
            Err(why) if wanted => {
                let more = self.memory_hint(&tag.want);
                self.port_refused(&tag.name, why + more);
            }
            Err(_) => {}
        }
        self.interface_free(interface);
    }

    /// An interface has no job in progress any more.
    pub(super) fn interface_free(&mut self, interface: &str) {
        self.opening.remove(interface);
        let on = self.ports.iter().filter(|(_, port)| port.want.interface() == interface);
        // A port that was just refused waits for its retry.
        let due: Vec<String> =
            on.filter(|(_, port)| port.retry.is_none()).map(|(name, _)| name.clone()).collect();
        due.iter().for_each(|name| self.tend_port(name));
        if !self.opening.contains(interface) {
            for waiter in &mut self.waiters {
                waiter.opening.remove(interface);
            }
            self.settle();
            self.started();
        }
    }

    /// Gives an open port to the data plane.
    fn use_port(&mut self, name: &str, open: OpenPort) {
        let OpenPort { opened: Opened { port: device, note }, index, region } = open;
        let Some(id) = self.ports.get(name).map(|port| port.id) else { return };
        let adopted = match self.card_port(name) {
            None => self.live.adopt_port(id, &region, device).map_err(|error| error.to_string()),
            Some((number, memory)) if memory.is(&region) => self.give_to_card(number, id, device),
            Some(_) => Err("the port was opened for another card; it will be opened again".to_owned()),
        };
        let driver = match adopted {
            Ok(driver) => driver,
            Err(why) => return self.port_refused(name, why),
        };
        let Some(port) = self.ports.get_mut(name) else { return };
        self.changed = true;
        port.open = Some(index);
        port.driver = Some(driver.name().to_owned());
        port.error = None;
        port.retry = None;
        port.pause = RETRY_MIN;
        port.told_up = Some(true);
        let text = match &port.want.peer {
            Some(peer) => format!("linked to {peer}"),
            None => format!("interface {} uses driver {driver}", port.want.interface()),
        };
        self.shared.events.add(EventKind::PortUp, About::Port(name), text);
        if let Some(note) = &note {
            self.shared.events.add(EventKind::PortFallback, About::Port(name), note.clone());
        }
        port.note = note;
        let interface = port.want.interface();
        if !port.is_ours() && self.links.get(interface).is_none_or(|link| link.index != index) {
            // The known links are older or newer than the port: lists them again before judging the port by them.
            self.list_links();
        }
        self.wire_changed(name);
    }

    /// Gives the workers the packet memory that the desired ports need. Possible only while no port is open.
    pub(super) fn fit_memory(&mut self) {
        if !self.opening.is_empty() || self.ports.values().any(|port| port.open.is_some()) {
            return;
        }
        let desired = Arc::clone(&self.desired);
        let needs: Vec<PortNeed> =
            desired.intent.node.spec.ports.iter().map(|want| self.need(want)).collect();
        let wanted = Memory::for_ports(&needs, self.shared.workers, self.memory);
        if self.memory.holds(wanted) {
            return;
        }
        match self.live.set_memory(wanted.slots, wanted.slot_bytes) {
            Ok(()) => self.memory = wanted,
            // Ports get shorter rings, or are refused and say why.
            Err(error) => {
                let text = format!("packet memory cannot be adapted to the ports: {error}");
                tracing::warn!("{text}");
                self.shared.events.add(EventKind::Trouble, About::Node, text);
            }
        }
    }

    /// Advice for a port that cannot be opened with the current packet memory.
    fn memory_hint(&self, want: &NodePort) -> &'static str {
        let have = mtu_max(self.memory.slot_bytes);
        if (have + 1..=mtu_max(SLOT_BYTES[1])).contains(&self.need(want).mtu) {
            "; restart the daemon to adapt packet memory to the ports"
        } else {
            ""
        }
    }

    /// Packet memory that a port needs.
    fn need(&self, want: &NodePort) -> PortNeed {
        let interface = want.interface();
        if want.peer.is_some() {
            return PortNeed { mtu: u32::from(want.mtu), queues: 1 };
        }
        let there = self.links.get(interface).map_or(0, |link| link.mtu);
        // Frames longer than any slot are refused when the port is opened.
        let there = if there > mtu_max(SLOT_BYTES[1]) { 0 } else { there };
        PortNeed { mtu: u32::from(want.mtu).max(there), queues: queues(interface) }
    }

    /// Interfaces of the daemon's namespace have changed.
    pub(in crate::node) fn links_changed(&mut self, events: Vec<LinkEvent>) {
        let (mut touched, mut all) = (HashSet::new(), false);
        for event in events {
            match event {
                LinkEvent::Present(link) => {
                    // It may have been renamed.
                    let renamed =
                        self.links.extract_if(|name, old| old.index == link.index && *name != link.name);
                    touched.extend(renamed.map(|(name, _)| name));
                    touched.insert(link.name.clone());
                    self.links.insert(link.name.clone(), link);
                }
                LinkEvent::Gone(link) => {
                    // A new interface with this name may have been reported before.
                    self.links.retain(|_, old| old.index != link.index);
                    touched.insert(link.name);
                }
                LinkEvent::Lost => {
                    self.list_links();
                    all = true;
                }
            }
        }
        let concerned = |port: &PhysicalPort| all || touched.contains(port.want.interface());
        let names: Vec<String> =
            self.ports.iter().filter(|(_, port)| concerned(port)).map(|(name, _)| name.clone()).collect();
        self.changed |= !names.is_empty();
        for name in names {
            self.tend_port(&name);
            self.wire_changed(&name);
        }
    }

    /// Tells the networks on a port whether it has a link.
    fn wire_changed(&mut self, name: &str) {
        let Some(id) = self.ports.get(name).map(|port| port.id) else { return };
        self.changed = true; // a NIC beside a card's port may have become usable or unusable
        let front = self.front_of(id);
        let concerns =
            |ids: BTreeSet<PortId>| ids.contains(&id) || front.is_some_and(|front| ids.contains(&front));
        let on = self.networks.iter().filter(|(_, entry)| concerns(entry.port_ids()));
        let on: Vec<String> = on.map(|(name, _)| name.clone()).collect();
        on.iter().for_each(|network| self.tell_wires(network));
    }

    /// Lists all interfaces again.
    pub(super) fn list_links(&mut self) {
        match Links::here().and_then(|mut links| links.list()) {
            Ok(links) => self.links = links.into_iter().map(|link| (link.name.clone(), link)).collect(),
            Err(error) => tracing::warn!(%error, "interfaces cannot be listed"),
        }
    }

    /// A running port has failed.
    pub(super) fn port_failed(&mut self, event: &PortEvent) {
        let found = self.ports.iter().find(|(_, port)| port.id == event.id && port.open.is_some());
        if let Some(name) = found.map(|(name, _)| name.clone()) {
            self.port_broke(&name, &event.error);
        }
    }

    /// Closes a failed port; it is retried later.
    pub(super) fn port_broke(&mut self, name: &str, error: &str) {
        self.close_port(name, error);
        if let Some(port) = self.ports.get_mut(name) {
            port.try_later();
        }
    }
}
