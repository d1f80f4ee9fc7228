//! One network, as far as it exists: what it shall be, what it is, and what others may know of it.
//!
//! Flow: [`super::Networks`] changes it → **[`Entry`]** → views, lists, questions of other parts. Invariants: only a network
//! whose program is loaded (`have`) has an id in the data plane, TAPs and carriers.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hue_demux::PortId;
use hue_host::ControlNamespace;
use hue_substrate::Program;
use hue_tables::Vid;

use super::RETRY_MIN;
use crate::api::{self, NetworkResult, NetworkState};
use crate::node::drift::Drifting;
use crate::node::jobs::Made;
use crate::node::view::{Counts, NetworkView};
use crate::node::wanted::Wanted;

/// See the head of this file.
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
    /// Of each of its TAPs, by virtual port: whether its link was reported to the kernel as up.
    pub(super) carriers: Vec<Option<bool>>,
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
    /// Whether its next target state is reached without an event.
    pub(super) quiet: bool,
    /// Whether an event has reported it as degraded.
    pub(super) reported_bad: bool,
    /// Changes by others in its namespace.
    pub(super) drift: Drifting,
    view: Option<Arc<NetworkView>>,
}

impl Entry {
    pub(super) fn new() -> Self {
        Self {
            want: None,
            have: None,
            job: None,
            ready: None,
            control: None,
            taps: false,
            carriers: Vec::new(),
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
            quiet: false,
            reported_bad: false,
            drift: Drifting::default(),
            view: None,
        }
    }

    /// Its target state; `None` if it is to be removed.
    pub fn want(&self) -> Option<&Arc<Wanted>> {
        self.want.as_ref()
    }

    /// What is loaded of it.
    pub fn have(&self) -> Option<&Arc<Wanted>> {
        self.have.as_ref()
    }

    /// Its loaded program.
    pub fn program(&self) -> Option<&Program> {
        self.have.as_ref().map(|have| &have.program)
    }

    /// Its id in the data plane, if it is loaded.
    pub fn vid(&self) -> Option<Vid> {
        self.program().map(|program| program.vid)
    }

    /// Its namespace.
    pub fn control(&self) -> Option<&Arc<ControlNamespace>> {
        self.control.as_ref()
    }

    /// Its state, whatever its routes.
    pub fn state(&self) -> NetworkState {
        self.state
    }

    /// Why it has failed.
    pub fn reason(&self) -> Option<&String> {
        self.reason.as_ref()
    }

    /// Whether it runs on the card.
    pub fn is_on_card(&self) -> bool {
        self.on_card
    }

    /// Whether its neighbours send to NICs beside the card's ports.
    pub fn is_on_nic(&self) -> bool {
        self.on_nic
    }

    /// Why it does not run on the card, if there is a card.
    pub fn why_soft(&self) -> Option<&String> {
        self.why_soft.as_ref()
    }

    /// Numbers that others count.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Whether somebody has changed its namespace, and that is not repaired yet.
    pub fn has_drifted(&self) -> bool {
        self.drift.reason.is_some()
    }

    /// Whether its loaded program is the desired one.
    pub fn is_as_wanted(&self) -> bool {
        self.have == self.want
    }

    /// Whether it is neither as wanted nor known to have failed.
    pub fn is_pending(&self) -> bool {
        self.state == NetworkState::Pending && self.want.is_some()
    }

    /// Whether one of its jobs is in progress.
    pub fn is_busy(&self) -> bool {
        self.job.is_some()
    }

    /// Physical ports of its virtual ports.
    pub fn port_ids(&self) -> BTreeSet<PortId> {
        self.want.iter().flat_map(|want| &want.program.ports).map(|port| port.port).collect()
    }

    /// Its public view; `None` if it is only being removed. `problem` says what is wrong although it is as wanted.
    pub(super) fn view(
        &mut self,
        problem: Option<&String>,
        program: Option<api::Program>,
    ) -> Option<Arc<NetworkView>> {
        let want = self.want.as_ref()?;
        let mut api = want.api.clone();
        for (port, told) in api.ports.iter_mut().zip(&self.carriers) {
            port.up = port.tunnel.is_some() && *told == Some(true);
        }
        let (state, reason) = self.condition(problem);
        api.program = program;
        api.state = state;
        api.reason = reason.cloned();
        (if self.on_card { hue_card::NAME } else { hue_soft::NAME }).clone_into(&mut api.substrate);
        api.why_soft.clone_from(&self.why_soft);
        api.on_nic = self.on_nic;
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

    /// State, and the reason if it is not the desired one. `problem` says what is wrong although it is as wanted.
    pub fn condition<'a>(&'a self, problem: Option<&'a String>) -> (NetworkState, Option<&'a String>) {
        match (self.state, problem) {
            (NetworkState::Running, Some(reason)) => (NetworkState::Degraded, Some(reason)),
            (state, _) => (state, self.reason.as_ref()),
        }
    }

    /// The result for callers that wait for it.
    pub fn result(&self, name: &str, refused: Option<&String>) -> NetworkResult {
        let (state, reason) = self.condition(refused);
        NetworkResult { name: name.to_owned(), state, reason: reason.cloned() }
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
}
