//! Networks: brings each from its desired to its running state, independently of the others.
//!
//! Flow: desired state → [`Wanted`] → job (namespace, TAPs) → program to the data plane, TAPs to the workers,
//! namespace to the monitor. Invariants: a network that is as wanted is not affected by changes to others; one that
//! fails is degraded and retried, and the others go on; programs that only fit together (two networks swap addresses)
//! are loaded together.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hue_demux::PortId;
use hue_host::ControlNamespace;
use hue_ports::Tap;

use super::drift::Drifting;
use super::jobs::Made;
use super::program::Forwarder;
use super::routes::Table;
use super::view::{Counts, NetworkView};
use super::wanted::Wanted;
use crate::api::{NetworkResult, NetworkState};

/// First and longest pause before a failed network is retried.
pub(super) const RETRY_MIN: Duration = Duration::from_secs(2);
pub(super) const RETRY_MAX: Duration = Duration::from_secs(60);
/// How long a network that is set up may take to report its routes; after that it is announced without them.
pub(super) const SNAPSHOT_MAX: Duration = Duration::from_secs(10);

/// A network, as far as it exists.
pub struct Entry {
    /// Target state; `None` means remove it.
    pub(super) want: Option<Arc<Wanted>>,
    /// The loaded program.
    pub(super) have: Option<Arc<Wanted>>,
    /// Job in progress, with its target state.
    pub(super) job: Option<Option<Arc<Wanted>>>,
    /// Its namespace is as wanted, but its program is not loaded yet: it conflicts with one that will change too.
    pub(super) ready: Option<(Arc<Wanted>, Option<Box<Made>>)>,
    pub(super) control: Option<Arc<ControlNamespace>>,
    /// Whether the workers have its TAPs.
    pub(super) taps: bool,
    /// Second handles of its TAPs, by virtual port, and whether the link is reported to the kernel as up.
    pub(super) wires: Vec<(Tap, Option<bool>)>,
    /// Its TAPs while the daemon before reads them, with their virtual ports.
    pub(super) unread: Vec<(u16, Tap)>,
    pub(super) state: NetworkState,
    pub(super) reason: Option<String>,
    /// Whether it runs on the card.
    pub(super) on_card: bool,
    /// Whether its neighbours send to NICs beside the card's ports.
    pub(super) on_nic: bool,
    /// Why it does not run on the card, if there is a card.
    pub(super) why_soft: Option<String>,
    pub(super) retry: Option<Instant>,
    pub(super) pause: Duration,
    pub(super) counts: Arc<Counts>,
    /// Whether its namespace is older than this daemon.
    pub(super) found: bool,
    /// Whether an event has reported it.
    pub(super) announced: bool,
    /// Whether an event has reported it as degraded.
    pub(super) reported_bad: bool,
    /// The program that forwards its packets, if its kind is `process`.
    pub(super) forwarder: Option<Forwarder>,
    /// Changes by others in its namespace.
    pub(super) drift: Drifting,
    pub(super) view: Option<Arc<NetworkView>>,
}

impl Entry {
    pub(super) fn new() -> Self {
        Self {
            want: None,
            have: None,
            job: None,
            ready: None,
            control: None,
            unread: Vec::new(),
            taps: false,
            wires: Vec::new(),
            state: NetworkState::Pending,
            reason: None,
            on_card: false,
            on_nic: false,
            why_soft: None,
            retry: None,
            pause: RETRY_MIN,
            counts: Arc::default(),
            found: false,
            announced: false,
            reported_bad: false,
            forwarder: None,
            drift: Drifting::default(),
            view: None,
        }
    }

    /// Whether something of it failed and is due for a retry.
    pub(super) fn is_to_be_retried(&self, now: Instant) -> bool {
        self.retry.is_some_and(|retry| retry <= now)
    }

    /// Whether it is neither as wanted nor known to have failed.
    pub(super) fn is_pending(&self) -> bool {
        self.state == NetworkState::Pending && self.want.is_some()
    }

    /// Whether one of its jobs is in progress.
    pub(super) fn is_busy(&self) -> bool {
        self.job.is_some()
    }

    /// Physical ports of its virtual ports.
    pub(super) fn port_ids(&self) -> BTreeSet<PortId> {
        self.want.iter().flat_map(|want| &want.program.ports).map(|port| port.port).collect()
    }

    /// Its public view; `None` if it is only being removed. `table` are its routes, if it is loaded.
    pub(super) fn view(&mut self, table: Option<&Table>) -> Option<Arc<NetworkView>> {
        let want = self.want.as_ref()?;
        let mut api = want.api.clone();
        for (port, (_, told)) in api.ports.iter_mut().zip(&self.wires) {
            port.up = port.tunnel.is_some() && *told == Some(true);
        }
        let (state, reason) = self.condition(table);
        api.state = state;
        api.reason = reason.cloned();
        (if self.on_card { hue_card::NAME } else { hue_soft::NAME }).clone_into(&mut api.substrate);
        api.why_soft.clone_from(&self.why_soft);
        api.on_nic = self.on_nic;
        api.program = self.forwarder.as_ref().map(Forwarder::view);
        let cgroup = self.control.as_ref().and_then(|control| control.cgroup.clone());
        let same = self.view.as_ref().filter(|view| {
            view.api == api
                && view.vid == want.program.vid
                && view.kind == want.program.kind()
                && view.cgroup.is_some() == cgroup.is_some()
        });
        if same.is_none() {
            let (vid, kind, counts) = (want.program.vid, want.program.kind(), Arc::clone(&self.counts));
            self.view = Some(Arc::new(NetworkView { vid, kind, api, counts, cgroup }));
        }
        self.view.clone()
    }

    /// State, and the reason if it is not the desired one.
    pub(super) fn condition<'a>(&'a self, table: Option<&'a Table>) -> (NetworkState, Option<&'a String>) {
        let refused = table.and_then(|table| table.refused().reason());
        let problem = refused.or_else(|| self.forwarder.as_ref().and_then(Forwarder::problem));
        match (self.state, problem) {
            (NetworkState::Running, Some(reason)) => (NetworkState::Degraded, Some(reason)),
            (state, _) => (state, self.reason.as_ref()),
        }
    }

    /// Its namespace, if it should now be as its document says.
    pub(super) fn settled_control(&self) -> Option<(&Arc<ControlNamespace>, &Arc<Wanted>)> {
        let set_up = self.state == NetworkState::Running
            || (self.state == NetworkState::Degraded && self.drift.reason.is_some());
        let (have, want) = (self.have.as_ref()?, self.want.as_ref()?);
        // Usually they are the same value: a comparison of long documents takes time.
        let as_wanted = || Arc::ptr_eq(have, want) || have == want;
        let settled = set_up && self.taps && !self.is_busy() && as_wanted();
        Some((self.control.as_ref()?, have)).filter(|_| settled)
    }

    pub(super) fn result(&self, name: &str, table: Option<&Table>) -> NetworkResult {
        let (state, reason) = self.condition(table);
        NetworkResult { name: name.to_owned(), state, reason: reason.cloned() }
    }
}
