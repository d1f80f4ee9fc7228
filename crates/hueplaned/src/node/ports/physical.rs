//! A physical port: its target state, and what is known of it.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use hue_demux::PortId;
use hue_host::netlink::Link;
use hue_intent::{NodePort, PortDriver};
use hue_ports::{CablePlug, Driver};

use crate::api::{Port, PortState};
use crate::node::memory::SLOTS_MAX;
use crate::node::view::PortView;

/// First and longest pause before a port that could not be opened is retried.
const RETRY_MIN: Duration = Duration::from_millis(500);
const RETRY_MAX: Duration = Duration::from_secs(30);

/// A physical port.
pub struct PhysicalPort {
    /// Its id.
    pub id: PortId,
    /// Its document.
    pub want: NodePort,
    /// Index of the interface it is open on.
    pub(super) open: Option<u32>,
    pub(super) driver: Option<String>,
    pub(super) note: Option<String>,
    /// Packets per ring, when rings are shorter than they should be.
    pub(super) short: Option<u32>,
    pub(super) error: Option<String>,
    pub(super) retry: Option<Instant>,
    pub(super) pause: Duration,
    /// State last reported: up, or down. Only changes are reported.
    pub(super) told_up: Option<bool>,
    /// Of an end of a link: its side of the cable.
    pub(super) plug: Option<CablePlug>,
}

impl PhysicalPort {
    pub(super) fn new(id: PortId, want: NodePort) -> Self {
        Self {
            id,
            want,
            open: None,
            driver: None,
            note: None,
            short: None,
            error: None,
            retry: None,
            pause: RETRY_MIN,
            told_up: None,
            plug: None,
        }
    }

    /// Why it is not open.
    pub fn problem(&self) -> Option<&str> {
        self.error.as_deref().filter(|_| self.open.is_none())
    }

    /// Whether a document names the same interface and driver.
    pub fn same_interface(&self, other: &NodePort) -> bool {
        self.want.interface() == other.interface()
            && self.want.driver == other.driver
            && self.want.peer == other.peer
    }

    /// Whether it is open.
    pub fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Whether it is not known yet if the port can be opened.
    pub fn is_undecided(&self) -> bool {
        self.open.is_none() && self.error.is_none()
    }

    /// Its interface, empty if it is an end of a link.
    fn interface_shown(&self) -> &str {
        if self.want.peer.is_some() { "" } else { self.want.interface() }
    }

    /// The kernel's state of its interface; an end of a link has none, even if an interface has its name.
    pub fn kernel_link<'l>(&self, links: &'l HashMap<String, Link>) -> Option<&'l Link> {
        links.get(self.want.interface()).filter(|_| self.want.peer.is_none())
    }

    /// Whether frames can pass.
    pub fn has_wire(&self, links: &HashMap<String, Link>) -> bool {
        self.open.is_some() && self.kernel_link(links).is_none_or(|link| link.carrier || self.is_ours())
    }

    /// Whether it exists only while it is open.
    pub(super) fn is_ours(&self) -> bool {
        self.want.driver == PortDriver::Tap || self.want.peer.is_some()
    }

    /// It is open, on the interface with this index.
    pub(super) fn is_up(&mut self, index: u32, driver: Driver, note: Option<String>) {
        self.open = Some(index);
        self.driver = Some(driver.name().to_owned());
        self.error = None;
        self.retry = None;
        self.pause = RETRY_MIN;
        self.told_up = Some(true);
        self.note = note;
    }

    pub(super) fn try_later(&mut self, now: Instant) {
        self.retry = Some(now + self.pause);
        self.pause = (self.pause * 2).min(RETRY_MAX);
    }

    /// Its public view.
    pub fn view(&self, name: &str, link: Option<&Link>, networks: Vec<String>) -> PortView {
        let state = match (self.open, link) {
            (Some(_), _) => PortState::Up,
            (None, Some(_)) => PortState::Down,
            (None, None) => PortState::Missing,
        };
        let short = link.filter(|link| link.mtu < u32::from(self.want.mtu)).map(|link| {
            let (takes, says) = (link.mtu, self.want.mtu);
            format!(
                "the MTU of its interface is {takes} bytes, less than the {says} bytes in the node's document"
            )
        });
        let rings = self.short.filter(|_| self.open.is_some()).map(|ring| {
            format!(
                "its rings have only {ring} packets, because packet memory was sized for fewer ports (at most \
                 {SLOTS_MAX} slots per worker); restart the daemon to size it again"
            )
        });
        let notes: Vec<String> = self.note.iter().cloned().chain(short).chain(rings).collect();
        PortView {
            id: self.id,
            api: Port {
                name: name.to_owned(),
                interface: self.interface_shown().to_owned(),
                peer: self.want.peer.as_ref().map(ToString::to_string),
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
