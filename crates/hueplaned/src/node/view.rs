//! State that all threads can read without asking the node's thread: networks, ports and the daemon's state, as last
//! published.
//!
//! Flow: node thread → **[`View`]** → API. The node's thread makes a new view when something has changed; unchanged
//! parts are shared. Counters are not in it: they come from the workers ([`super::stats`]).

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use hue_card::CardTotals;
use hue_demux::PortId;
use hue_host::Cgroup;
use hue_planes::Kind;
use hue_tables::Vid;

use crate::api;

/// Snapshot of the node.
#[derive(Clone, Debug)]
pub struct View {
    /// State of the daemon.
    pub health: api::Health,
    /// Problems.
    pub troubles: Vec<api::Trouble>,
    /// The problem of the store, if it has one.
    pub store_problem: Option<String>,
    /// The desired card, if there is one.
    pub card_status: Option<api::CardStatus>,
    /// Name of the node.
    pub node: String,
    /// Capacity of the substrate.
    pub capacity: Option<api::Capacity>,
    /// Networks, sorted by name.
    pub networks: Vec<Arc<NetworkView>>,
    /// Physical ports, sorted by name.
    pub ports: Vec<PortView>,
    /// The card, while one is running.
    pub card: Option<CardView>,
}

/// A running card.
#[derive(Clone, Debug)]
pub struct CardView {
    /// Its description in the API; numbers that change continually are filled in on request.
    pub api: api::CardInfo,
    /// When it started.
    pub started: Instant,
    /// The same by the system's clock.
    pub since: api::Timestamp,
    /// Its counters.
    pub totals: Arc<Mutex<CardTotals>>,
}

impl CardView {
    /// Its counters now.
    #[must_use]
    pub fn totals(&self) -> CardTotals {
        self.totals.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Everything, as of now.
    #[must_use]
    pub fn info(&self) -> api::CardInfo {
        let totals = self.totals();
        api::CardInfo {
            cycles: totals.cycles,
            simulated_seconds: totals.cycles as f64 / (f64::from(self.api.clock_khz) * 1e3),
            clocking_seconds: totals.clocking_ns as f64 / 1e9,
            wall_seconds: self.started.elapsed().as_secs_f64(),
            repaired_words: totals.repaired,
            ..self.api.clone()
        }
    }
}

impl Default for View {
    fn default() -> Self {
        Self {
            health: api::Health::Starting,
            troubles: Vec::new(),
            store_problem: None,
            card_status: None,
            node: "node".to_owned(),
            capacity: None,
            networks: Vec::new(),
            ports: Vec::new(),
            card: None,
        }
    }
}

impl View {
    /// Whether the node has published it. The default view, in which a daemon starts, has no networks.
    #[must_use]
    pub const fn is_published(&self) -> bool {
        self.capacity.is_some()
    }

    /// The network of this name.
    #[must_use]
    pub fn network(&self, name: &str) -> Option<&Arc<NetworkView>> {
        let at = self.networks.binary_search_by(|network| network.api.name.as_str().cmp(name)).ok()?;
        self.networks.get(at)
    }

    /// Name of a physical port.
    #[must_use]
    pub fn port_name(&self, id: PortId) -> Option<&str> {
        self.ports.iter().find(|port| port.id == id).map(|port| port.api.name.as_str())
    }
}

/// A network.
#[derive(Debug)]
pub struct NetworkView {
    /// Its id.
    pub vid: Vid,
    /// The kind of its plane.
    pub kind: Kind,
    /// Its description in the API; `routes`, `neighbours`, `usage` and `up` of its ports are filled in on request.
    pub api: api::Network,
    /// Numbers that change continually.
    pub counts: Arc<Counts>,
    /// Its control group.
    pub cgroup: Option<Cgroup>,
}

/// How much a network's control plane has supplied.
#[derive(Default, Debug)]
pub struct Counts {
    /// Routes in the data plane.
    pub routes: AtomicU64,
    /// Routes that its table has no room for.
    pub refused: AtomicU64,
    /// Neighbours whose MAC address is known.
    pub neighbours: AtomicU64,
    /// When the numbers that a card had counted were lost with it, in microseconds since 1970; 0: never.
    pub card_lost_us: AtomicU64,
}

/// A physical port.
#[derive(Clone, Debug)]
pub struct PortView {
    /// Its id.
    pub id: PortId,
    /// Its description in the API, without counters.
    pub api: api::Port,
}
