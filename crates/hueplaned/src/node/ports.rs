//! Physical ports: opened when their interface is there and on, closed when it goes, opened again when it is back.
//!
//! Flow: documents and changes of interfaces → **here** → data plane. Invariants: a port that cannot be opened harms no
//! other; ids of ports stay with their names.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use hue_demux::PortId;
use hue_host::ethtool;
use hue_host::links::{LinkEvent, Links};
use hue_host::netlink::Link;
use hue_intent::{NodePort, PortDriver};
use hue_ports::{OpenOptions, Wanted as Driver};
use hue_soft::PortEvent;

use super::About;
use super::core::Node;
use super::view::PortView;
use crate::api::{EventKind, Port, PortState};

/// First and longest pause before a port that could not be opened is tried again.
const RETRY_MIN: Duration = Duration::from_millis(500);
const RETRY_MAX: Duration = Duration::from_secs(30);

/// Packets of the smallest ring.
const RING_MIN: u32 = 64;

/// A physical port.
pub struct PhysicalPort {
    pub(super) id: PortId,
    pub(super) want: NodePort,
    /// Index of the interface it is open on.
    open: Option<u32>,
    driver: Option<String>,
    note: Option<String>,
    error: Option<String>,
    retry: Option<Instant>,
    pause: Duration,
    /// What was told last: up, or down. Only changes are told.
    told_up: Option<bool>,
}

impl PhysicalPort {
    pub(super) fn new(id: PortId, want: NodePort) -> Self {
        Self {
            id,
            want,
            open: None,
            driver: None,
            note: None,
            error: None,
            retry: None,
            pause: RETRY_MIN,
            told_up: None,
        }
    }

    /// When it is to be tried again.
    pub(super) fn due(&self) -> Option<Instant> {
        self.retry
    }

    /// Why it is not as it should be.
    pub(super) fn problem(&self) -> Option<&str> {
        self.error.as_deref().filter(|_| self.open.is_none())
    }

    /// Whether a document means the same interface, opened in the same way.
    pub(super) fn same_interface(&self, other: &NodePort) -> bool {
        self.want.interface() == other.interface() && self.want.driver == other.driver
    }

    /// Whether frames can come and go.
    pub(super) fn has_wire(&self, links: &HashMap<String, Link>) -> bool {
        self.open.is_some()
            && links.get(self.want.interface()).is_none_or(|link| link.carrier || self.is_ours())
    }

    fn is_ours(&self) -> bool {
        self.want.driver == PortDriver::Tap
    }

    fn try_later(&mut self) {
        self.retry = Some(Instant::now() + self.pause);
        self.pause = (self.pause * 2).min(RETRY_MAX);
    }

    /// What everybody may see of it.
    pub(super) fn view(&self, name: &str, link: Option<&Link>, networks: Vec<String>) -> PortView {
        let state = match (self.open, link) {
            (Some(_), _) => PortState::Up,
            (None, Some(_)) => PortState::Down,
            (None, None) => PortState::Missing,
        };
        let short = link.filter(|link| link.mtu < u32::from(self.want.mtu)).map(|link| {
            let (takes, says) = (link.mtu, self.want.mtu);
            format!("its interface takes packets of {takes} bytes, the node's document says {says}")
        });
        let notes: Vec<String> = self.note.iter().cloned().chain(short).collect();
        PortView {
            id: self.id,
            api: Port {
                name: name.to_owned(),
                interface: self.want.interface().to_owned(),
                state,
                driver: self.driver.clone(),
                note: (!notes.is_empty()).then(|| notes.join("; ")),
                error: self.problem().map(str::to_owned),
                mtu: self.want.mtu,
                mac: link.and_then(|link| link.mac).map(|mac| mac.to_string()),
                worker: None,
                networks,
                stats: None,
            },
        }
    }
}

impl Node {
    /// Brings a port to where it should be.
    pub(super) fn tend_port(&mut self, name: &str) {
        let Some(port) = self.ports.get_mut(name) else { return };
        let link = self.links.get(port.want.interface());
        port.retry = None;
        if let Some(index) = port.open {
            let why = match link {
                // What is told of one of ours may be about the one before it, or from before it was switched on; if it
                // fails, the data plane says so.
                _ if port.is_ours() => return,
                Some(link) if link.index != index => "its interface was made anew",
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
            None => Some(format!("there is no interface {interface}")),
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
            self.live.remove_port(port.id);
            self.port_is_down(name, why.to_owned());
            self.wire_changed(name);
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
    }

    fn open_port(&mut self, name: &str) {
        let Some(port) = self.ports.get(name) else { return };
        let (id, interface) = (port.id, port.want.interface().to_owned());
        let mtu = port.is_ours().then_some(u32::from(port.want.mtu));
        let ring = self.ring(&interface);
        let options = OpenOptions { driver: driver(port.want.driver), ring, ..OpenOptions::default() };
        let note = Arc::new(Mutex::new(None));
        let (slot, named) = (Arc::clone(&note), interface.clone());
        let opened = self.live.add_port(id, move |pool| {
            let opened = hue_ports::open(&named, &options, pool)?;
            *slot.lock().unwrap_or_else(PoisonError::into_inner) = opened.note;
            Ok(opened.port)
        });
        let opened = opened.map_err(|error| error.to_string()).and_then(|driver| {
            let index = interface_on(&interface, mtu).map_err(|error| error.to_string());
            if index.is_err() {
                self.live.remove_port(id);
            }
            Ok((driver, index?))
        });
        let note = note.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(port) = self.ports.get_mut(name) else { return };
        self.changed = true;
        match opened {
            Ok((driver, index)) => {
                port.open = Some(index);
                port.driver = Some(driver.name().to_owned());
                port.error = None;
                port.pause = RETRY_MIN;
                port.told_up = Some(true);
                let text = format!("interface {interface} is driven by {driver}");
                self.shared.events.add(EventKind::PortUp, About::Port(name), text);
                if let Some(note) = &note {
                    self.shared.events.add(EventKind::PortFallback, About::Port(name), note.clone());
                }
                port.note = note;
                self.wire_changed(name);
            }
            Err(why) => {
                port.try_later();
                self.port_is_down(name, why);
            }
        }
    }

    /// Packets of each ring of a port: all ports of a worker together leave half of its slots to packets under way.
    fn ring(&self, interface: &str) -> u32 {
        let queues = ethtool::channels(interface).map_or(1, |channels| channels.receiving().max(1));
        let ports = self.ports.len().div_ceil(self.shared.workers.max(1));
        let rings = u32::try_from(ports).unwrap_or(u32::MAX).saturating_mul(queues);
        let mut ring = OpenOptions::default().ring;
        while ring > RING_MIN && ring.saturating_mul(rings) > self.slots / 2 {
            ring /= 2;
        }
        ring
    }

    /// Interfaces of the daemon's namespace changed.
    pub(super) fn links_changed(&mut self, events: Vec<LinkEvent>) {
        let (mut touched, mut all) = (HashSet::new(), false);
        for event in events {
            match event {
                LinkEvent::Present(link) => {
                    // It may have had another name.
                    let renamed =
                        self.links.extract_if(|name, old| old.index == link.index && *name != link.name);
                    touched.extend(renamed.map(|(name, _)| name));
                    touched.insert(link.name.clone());
                    self.links.insert(link.name.clone(), link);
                }
                LinkEvent::Gone(link) => {
                    // One made anew under the name may have been told of before.
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

    /// Tells networks on a port whether it has a wire.
    fn wire_changed(&mut self, name: &str) {
        let Some(id) = self.ports.get(name).map(|port| port.id) else { return };
        let on = self.networks.iter().filter(|(_, entry)| entry.port_ids().contains(&id));
        let on: Vec<String> = on.map(|(name, _)| name.clone()).collect();
        on.iter().for_each(|network| self.tell_wires(network));
    }

    /// Looks at all interfaces anew.
    pub(super) fn list_links(&mut self) {
        match Links::here().and_then(|mut links| links.list()) {
            Ok(links) => self.links = links.into_iter().map(|link| (link.name.clone(), link)).collect(),
            Err(error) => tracing::warn!(%error, "interfaces cannot be listed"),
        }
    }

    /// A port failed while it ran.
    pub(super) fn port_failed(&mut self, event: &PortEvent) {
        let found = self.ports.iter().find(|(_, port)| port.id == event.id && port.open.is_some());
        let Some(name) = found.map(|(name, _)| name.clone()) else { return };
        self.close_port(&name, &event.error);
        if let Some(port) = self.ports.get_mut(&name) {
            port.try_later();
        }
    }
}

/// Index of an interface; one of ours gets its MTU and is switched on.
fn interface_on(name: &str, mtu: Option<u32>) -> Result<u32, hue_host::HostError> {
    let mut links = Links::here()?;
    if let Some(mtu) = mtu {
        links.set_mtu(name, mtu)?;
        links.set_up(name, true)?;
    }
    links.index_of(name)
}

fn driver(driver: PortDriver) -> Driver {
    match driver {
        PortDriver::Auto => Driver::Auto,
        PortDriver::AfXdp => Driver::AfXdp,
        PortDriver::Packet => Driver::Packet,
        PortDriver::Tap => Driver::Tap,
    }
}
