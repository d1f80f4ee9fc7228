//! Physical ports: opened when their interface exists and is up, closed when it goes away, reopened when it is back.
//!
//! Flow: documents, interface changes, results of jobs and of the data plane ([`Input`]) → **[`Ports`]** → [`Effect`]s,
//! which the core applies in their order. Invariants: a port that cannot be opened does not affect others; while one is
//! opened, neither the node nor its worker waits; at most one job per interface is in progress, so that a socket never
//! meets another of our own; port ids stay with their names. This part knows no other part: it gets what it must know
//! of them as [`Around`].

mod physical;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::time::Instant;

use hue_demux::PortId;
use hue_host::netlink::Link;
use hue_intent::{NodePort, PortDriver};
use hue_ports::{CablePlug, Driver, OpenOptions, Opened, Port, PortError, Region, SLOT_BYTES, Wanted};

pub use self::physical::PhysicalPort;
use super::jobs::{Job, OpenPort, Opening, PortTag};
use super::memory::{Memory, PortNeed, SLOTS_MAX, mtu_max};
use super::site::Site;
use super::take_over::Ending;
use crate::api::EventKind;

/// The physical ports of the node, and the interfaces of its namespace.
pub struct Ports {
    ports: BTreeMap<String, PhysicalPort>,
    /// Interfaces that a job opens or closes now.
    opening: BTreeSet<String>,
    links: HashMap<String, Link>,
    memory: Memory,
    /// Most slots of a worker.
    slots_max: u32,
}

/// What ports must know of other parts.
pub struct Around<'a> {
    /// Ports of the documents in force.
    pub desired: &'a [NodePort],
    /// Number of workers.
    pub workers: usize,
    /// Whether the daemon before still has the ports, by design.
    pub is_preparing: bool,
    /// The daemon before, while it closes its ports.
    pub predecessor: Option<Ending>,
    /// Receive queues of an interface.
    pub queues: fn(&str) -> u32,
    /// The time.
    pub now: Instant,
}

/// Something that concerns ports.
pub enum Input {
    /// Documents name this port.
    Want(String, PortId, NodePort),
    /// Documents no longer name it, or name another interface, for this reason.
    Remove(String, &'static str),
    /// Forget a closed port.
    Forget(String),
    /// Open or close it as its interface requires.
    Tend(String),
    /// Close it, for this reason.
    Close(String, String),
    /// It failed.
    Broke(String, String),
    /// The port with this id failed while it was open.
    Failed(PortId, String),
    /// Adapt packet memory to the desired ports, if possible.
    FitMemory,
    /// Packet memory was adapted; or why not.
    MemoryFits(Result<Memory, String>),
    /// Packet memory is reserved for a port; or why not.
    Reserved(String, Result<Site, String>),
    /// The job that opens a port has ended.
    Opened(PortTag, Result<OpenPort, String>),
    /// The data plane has an opened port, with the index of its interface and a note; or why not.
    Adopted(String, u32, Option<String>, Result<Driver, String>),
    /// An interface has no job in progress any more.
    Free(String),
    /// Report that, unless another job is in progress by now.
    TellFree(String),
    /// Interfaces changed.
    Links(Vec<LinkChange>),
    /// These are all interfaces.
    AllLinks(Vec<Link>),
}

/// A change of an interface.
pub enum LinkChange {
    /// It is there, or has changed.
    Present(Link),
    /// It is gone.
    Gone(Link),
    /// Changes were lost; these are all interfaces, if they could be listed.
    Lost(Option<Vec<Link>>),
}

/// What the core must do.
pub enum Effect {
    /// Take this input, once the effects before are applied.
    Then(Input),
    /// Report an event about a port.
    Tell(EventKind, String, String),
    /// Report trouble of the node.
    TellTrouble(String),
    /// A port's link may have changed: tell the networks on it.
    WireChanged(PortId),
    /// Take a closed port from the data plane.
    Withdraw(String, PortId),
    /// Give the workers this packet memory; the answer is [`Input::MemoryFits`].
    SetMemory(Memory),
    /// Reserve packet memory for a port; the answer is [`Input::Reserved`].
    Reserve(String, PortId),
    /// Have packet memory ready; the port is not opened yet.
    Populate(Region),
    /// Prepare a port on AF_XDP, on this interface with rings of this size, while the daemon before has it.
    Prepare(String, u32, Region),
    /// Give a job to other threads.
    Start(Job),
    /// Give an opened port to the data plane; the answer is [`Input::Adopted`].
    Adopt(Box<Adopt>),
    /// List all interfaces; the answer is [`Input::AllLinks`].
    ListLinks,
    /// No job for this interface is in progress.
    Free(String),
}

/// A port for the data plane.
pub struct Adopt {
    /// Its name.
    pub name: String,
    /// Its id.
    pub id: PortId,
    /// The port.
    pub port: Box<dyn Port>,
    /// Packet memory that it was opened with.
    pub site: Site,
    /// Index of its interface.
    pub index: u32,
    /// What is to be said about it.
    pub note: Option<String>,
}

impl Ports {
    /// No ports, with this packet memory, and at most so many slots of a worker.
    pub fn new(memory: Memory, slots_max: u32) -> Self {
        Self { ports: BTreeMap::new(), opening: BTreeSet::new(), links: HashMap::new(), memory, slots_max }
    }

    /// Takes an input.
    pub fn take(&mut self, input: Input, around: &Around<'_>) -> Vec<Effect> {
        let mut out = Vec::new();
        match input {
            Input::Want(name, id, want) => match self.ports.get_mut(&name) {
                Some(port) => port.want = want,
                None => {
                    self.ports.insert(name.clone(), PhysicalPort::new(id, want));
                    out.push(Effect::Then(Input::Tend(name)));
                }
            },
            Input::Remove(name, why) => {
                self.close(&name, why, &mut out);
                out.push(Effect::Then(Input::Forget(name)));
            }
            Input::Forget(name) => drop(self.ports.remove(&name)),
            Input::Tend(name) => self.tend(&name, around, &mut out),
            Input::Close(name, why) => self.close(&name, &why, &mut out),
            Input::Broke(name, why) => self.broke(&name, &why, around.now, &mut out),
            Input::Failed(id, why) => {
                let found = self.ports.iter().find(|(_, port)| port.id == id && port.is_open());
                if let Some(name) = found.map(|(name, _)| name.clone()) {
                    self.broke(&name, &why, around.now, &mut out);
                }
            }
            Input::FitMemory => out.extend(self.fit_memory(around)),
            Input::MemoryFits(Ok(memory)) => self.memory = memory,
            // Ports get shorter rings, or are refused and say why.
            Input::MemoryFits(Err(why)) => {
                out.push(Effect::TellTrouble(format!("packet memory cannot be adapted to the ports: {why}")));
            }
            Input::Reserved(name, result) => self.reserved(&name, result, around, &mut out),
            Input::Opened(tag, result) => self.opened(&tag, result, around, &mut out),
            Input::Adopted(name, index, note, result) => {
                let adopted = (index, note, result);
                self.adopted(&name, adopted, around.now, &mut out);
            }
            Input::Free(interface) => self.free(interface, &mut out),
            Input::TellFree(interface) => {
                if !self.opening.contains(&interface) {
                    out.push(Effect::Free(interface));
                }
            }
            Input::Links(changes) => self.links_changed(changes, &mut out),
            Input::AllLinks(links) => self.set_links(links),
        }
        out
    }

    fn tend(&mut self, name: &str, around: &Around<'_>, out: &mut Vec<Effect>) {
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
            self.close(name, why, out);
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
            Some(missing) => self.is_down(name, missing, out),
            None => self.open(name, around, out),
        }
    }

    fn close(&mut self, name: &str, why: &str, out: &mut Vec<Effect>) {
        let Some(port) = self.ports.get_mut(name) else { return };
        if port.open.take().is_some() {
            port.driver = None;
            port.note = None;
            out.push(Effect::Withdraw(name.to_owned(), port.id));
            self.is_down(name, why.to_owned(), out);
        }
    }

    fn is_down(&mut self, name: &str, why: String, out: &mut Vec<Effect>) {
        let Some(port) = self.ports.get_mut(name) else { return };
        if port.error.as_ref() != Some(&why) || port.told_up != Some(false) {
            out.push(Effect::Tell(EventKind::PortDown, name.to_owned(), why.clone()));
        }
        port.told_up = Some(false);
        port.error = Some(why);
        out.push(Effect::WireChanged(port.id));
    }

    /// Closes a failed port; it is retried later.
    fn broke(&mut self, name: &str, why: &str, now: Instant, out: &mut Vec<Effect>) {
        self.close(name, why, out);
        if let Some(port) = self.ports.get_mut(name) {
            port.try_later(now);
        }
    }

    /// Begins to open a port; see [`Self::reserved`].
    fn open(&mut self, name: &str, around: &Around<'_>, out: &mut Vec<Effect>) {
        let Some(port) = self.ports.get(name) else { return };
        if self.opening.contains(port.want.interface()) {
            return; // continues when the job ends
        }
        let id = port.id;
        if let Err(error) = self.plug(name) {
            return self.refused(name, error.to_string(), around.now, out);
        }
        out.extend(self.fit_memory(around));
        out.push(Effect::Reserve(name.to_owned(), id));
    }

    /// Opens a port with this packet memory; see [`Self::opened`].
    fn reserved(
        &mut self,
        name: &str,
        result: Result<Site, String>,
        around: &Around<'_>,
        out: &mut Vec<Effect>,
    ) {
        let plug = match self.plug(name) {
            Ok(plug) => plug,
            Err(error) => return self.refused(name, error.to_string(), around.now, out),
        };
        // Those that come later need their share too.
        let each = self.ports.len().max(around.desired.len()).div_ceil(around.workers.max(1));
        let Some(queues) = self.ports.get(name).map(|port| self.need(&port.want, around).queues) else {
            return;
        };
        let ring = self.memory.ring(queues, each);
        let Some(port) = self.ports.get_mut(name) else { return };
        let (id, want) = (port.id, port.want.clone());
        let interface = want.interface().to_owned();
        let make = (port.is_ours() && plug.is_none()).then_some(u32::from(want.mtu));
        let options = OpenOptions { driver: driver(want.driver), ring, ..OpenOptions::default() };
        // A user who wants a small pool wants short rings.
        let wanted = self.memory.slots < self.slots_max || self.slots_max == SLOTS_MAX;
        port.short = (ring < OpenOptions::default().ring && wanted).then_some(ring);
        match result {
            // The daemon before has the port; what can be done without it is done.
            Ok(Site::Card(_)) if around.is_preparing => {} // the card's process opens it
            Ok(Site::Memory(region)) if around.is_preparing => {
                out.push(Effect::Populate(region.clone()));
                if plug.is_none() && make.is_none() && matches!(options.driver, Wanted::Auto | Wanted::AfXdp)
                {
                    out.push(Effect::Prepare(interface, ring, region));
                }
            }
            Ok(site) => {
                self.opening.insert(interface.clone());
                let tag = PortTag { name: name.to_owned(), id, want };
                let predecessor = around.predecessor.clone();
                let opening = Opening { interface, plug, options, make, site, tag, predecessor };
                out.push(Effect::Start(Job::Open(Box::new(opening))));
            }
            Err(why) => self.refused(name, why, around.now, out),
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
    fn refused(&mut self, name: &str, why: String, now: Instant, out: &mut Vec<Effect>) {
        if let Some(port) = self.ports.get_mut(name) {
            port.try_later(now);
        }
        self.is_down(name, why, out);
    }

    /// The job that opens a port has ended. The port's target state may have changed since.
    fn opened(
        &mut self,
        tag: &PortTag,
        result: Result<OpenPort, String>,
        around: &Around<'_>,
        out: &mut Vec<Effect>,
    ) {
        let interface = tag.want.interface().to_owned();
        let wanted =
            self.ports.get(&tag.name).is_some_and(|port| port.id == tag.id && port.same_interface(&tag.want));
        match result {
            Ok(open) if !wanted => {
                // The interface is free for its next port when this one is closed.
                return out.push(Effect::Start(Job::Close(interface, open.opened.port)));
            }
            Ok(open) => {
                let OpenPort { opened: Opened { port, note }, index, site } = open;
                let (name, id) = (tag.name.clone(), tag.id);
                out.push(Effect::Adopt(Box::new(Adopt { name, id, port, site, index, note })));
            }
            Err(why) if wanted => {
                let more = self.memory_hint(&tag.want, around);
                self.refused(&tag.name, why + more, around.now, out);
            }
            Err(_) => {}
        }
        out.push(Effect::Then(Input::Free(interface)));
    }

    /// An interface has no job in progress any more.
    fn free(&mut self, interface: String, out: &mut Vec<Effect>) {
        self.opening.remove(&interface);
        let on = self.ports.iter().filter(|(_, port)| port.want.interface() == interface);
        // A port that was just refused waits for its retry.
        let due = on.filter(|(_, port)| port.retry.is_none()).map(|(name, _)| name.clone());
        out.extend(due.map(|name| Effect::Then(Input::Tend(name))));
        out.push(Effect::Then(Input::TellFree(interface)));
    }

    /// The data plane has an open port, or refuses it.
    fn adopted(
        &mut self,
        name: &str,
        (index, note, result): (u32, Option<String>, Result<Driver, String>),
        now: Instant,
        out: &mut Vec<Effect>,
    ) {
        let driver = match result {
            Ok(driver) => driver,
            Err(why) => return self.refused(name, why, now, out),
        };
        let Some(port) = self.ports.get_mut(name) else { return };
        let text = match &port.want.peer {
            Some(peer) => format!("linked to {peer}"),
            None => format!("interface {} uses driver {driver}", port.want.interface()),
        };
        out.push(Effect::Tell(EventKind::PortUp, name.to_owned(), text));
        if let Some(note) = &note {
            out.push(Effect::Tell(EventKind::PortFallback, name.to_owned(), note.clone()));
        }
        port.is_up(index, driver, note);
        let interface = port.want.interface();
        if !port.is_ours() && self.links.get(interface).is_none_or(|link| link.index != index) {
            // The known links are older or newer than the port: lists them again before judging the port by them.
            out.push(Effect::ListLinks);
        }
        out.push(Effect::WireChanged(port.id));
    }

    /// The packet memory that the desired ports need, if it can and must be changed: it can only while no port is open.
    fn fit_memory(&self, around: &Around<'_>) -> Option<Effect> {
        if !self.opening.is_empty() || self.ports.values().any(PhysicalPort::is_open) {
            return None;
        }
        let needs: Vec<PortNeed> = around.desired.iter().map(|want| self.need(want, around)).collect();
        let wanted = Memory::for_ports(&needs, around.workers, self.memory, self.slots_max);
        (!self.memory.holds(wanted)).then_some(Effect::SetMemory(wanted))
    }

    /// Advice for a port that cannot be opened with the current packet memory.
    fn memory_hint(&self, want: &NodePort, around: &Around<'_>) -> &'static str {
        let have = mtu_max(self.memory.slot_bytes);
        if (have + 1..=mtu_max(SLOT_BYTES[1])).contains(&self.need(want, around).mtu) {
            "; restart the daemon to adapt packet memory to the ports"
        } else {
            ""
        }
    }

    /// Packet memory that a port needs.
    fn need(&self, want: &NodePort, around: &Around<'_>) -> PortNeed {
        let interface = want.interface();
        if want.peer.is_some() {
            return PortNeed { mtu: u32::from(want.mtu), queues: 1 };
        }
        let there = self.links.get(interface).map_or(0, |link| link.mtu);
        // Frames longer than any slot are refused when the port is opened.
        let there = if there > mtu_max(SLOT_BYTES[1]) { 0 } else { there };
        PortNeed { mtu: u32::from(want.mtu).max(there), queues: (around.queues)(interface) }
    }

    fn links_changed(&mut self, changes: Vec<LinkChange>, out: &mut Vec<Effect>) {
        let (mut touched, mut all) = (HashSet::new(), false);
        for change in changes {
            match change {
                LinkChange::Present(link) => {
                    // It may have been renamed.
                    let renamed =
                        self.links.extract_if(|name, old| old.index == link.index && *name != link.name);
                    touched.extend(renamed.map(|(name, _)| name));
                    touched.insert(link.name.clone());
                    self.links.insert(link.name.clone(), link);
                }
                LinkChange::Gone(link) => {
                    // A new interface with this name may have been reported before.
                    self.links.retain(|_, old| old.index != link.index);
                    touched.insert(link.name);
                }
                LinkChange::Lost(links) => {
                    if let Some(links) = links {
                        self.set_links(links);
                    }
                    all = true;
                }
            }
        }
        for (name, port) in &self.ports {
            if all || touched.contains(port.want.interface()) {
                out.push(Effect::Then(Input::Tend(name.clone())));
                out.push(Effect::WireChanged(port.id));
            }
        }
    }

    fn set_links(&mut self, links: Vec<Link>) {
        self.links = links.into_iter().map(|link| (link.name.clone(), link)).collect();
    }
}

/// What other parts may know.
impl Ports {
    /// All ports, in the order of names.
    pub fn iter(&self) -> impl Iterator<Item = (&String, &PhysicalPort)> {
        self.ports.iter()
    }

    /// Number of ports.
    pub fn len(&self) -> usize {
        self.ports.len()
    }

    /// The port of this name.
    pub fn get(&self, name: &str) -> Option<&PhysicalPort> {
        self.ports.get(name)
    }

    /// The port with this id, and its name.
    pub fn with_id(&self, id: PortId) -> Option<(&String, &PhysicalPort)> {
        self.ports.iter().find(|(_, port)| port.id == id)
    }

    /// Whether frames can pass the port with this id.
    pub fn has_wire(&self, id: PortId) -> bool {
        self.ports.values().any(|port| port.id == id && port.has_wire(&self.links))
    }

    /// The kernel's state of a port's interface.
    pub fn link_of(&self, port: &PhysicalPort) -> Option<&Link> {
        port.kernel_link(&self.links)
    }

    /// The interface of this name.
    pub fn link(&self, interface: &str) -> Option<&Link> {
        self.links.get(interface)
    }

    /// Interfaces that a job opens or closes now.
    pub fn opening(&self) -> &BTreeSet<String> {
        &self.opening
    }

    /// Packet memory of each worker.
    pub fn memory(&self) -> Memory {
        self.memory
    }

    /// When the next port is to be retried.
    pub fn due(&self) -> Option<Instant> {
        self.ports.values().filter_map(|port| port.retry).min()
    }

    /// The ports that are to be retried by now.
    pub fn due_by(&self, now: Instant) -> Vec<String> {
        let due = |port: &PhysicalPort| port.retry.is_some_and(|due| due <= now);
        self.ports.iter().filter(|(_, port)| due(port)).map(|(name, _)| name.clone()).collect()
    }
}

fn driver(driver: PortDriver) -> Wanted {
    match driver {
        PortDriver::Auto => Wanted::Auto,
        PortDriver::AfXdp => Wanted::AfXdp,
        PortDriver::Packet => Wanted::Packet,
        PortDriver::Tap => Wanted::Tap,
    }
}
