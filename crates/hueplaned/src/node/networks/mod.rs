//! Networks: brings each from its desired to its running state, independently of the others.
//!
//! Flow: desired state, results of jobs and of the data plane ([`Input`]) → **[`Networks`]** → job (namespace, TAPs) →
//! program to the data plane, TAPs to the workers, namespace to the monitor ([`Effect`]s, which the core applies in
//! their order). Invariants: a network that is as wanted is not affected by changes to others; one that fails is
//! degraded and retried, and the others go on; programs that only fit together (two networks swap addresses) are
//! loaded together. This part knows no other part: it gets what it must know of them as [`Around`].

mod carriers;
mod entry;
mod load;
mod looks;
mod settle;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hue_demux::PortId;
use hue_host::ControlNamespace;
use hue_intent::Placement;
use hue_substrate::Program;
use hue_tables::Vid;

pub use self::entry::Entry;
pub use self::load::Attempt;
use super::drift::{Looks, Seen};
use super::jobs::{Job, Made, Setup};
use super::view::{Counts, NetworkView};
use super::wanted::{Form, Wanted};
use crate::api::{self, EventKind, NetworkState};

/// First and longest pause before a failed network is retried.
const RETRY_MIN: Duration = Duration::from_secs(2);
const RETRY_MAX: Duration = Duration::from_secs(60);
/// How long a network that is set up may take to report its routes; after that it is announced without them.
const SNAPSHOT_MAX: Duration = Duration::from_secs(10);

/// All networks.
#[derive(Default)]
pub struct Networks {
    entries: BTreeMap<String, Entry>,
    /// Names of loaded networks.
    vids: HashMap<Vid, String>,
    /// Names of networks whose remains must be removed at the start.
    leftovers: BTreeSet<String>,
    /// When networks were checked for drift.
    looks: Looks,
}

/// What networks must know of other parts.
pub struct Around<'a> {
    /// Whether a network's table must be loaded as a whole.
    pub is_torn: &'a dyn Fn(Vid) -> bool,
    /// Whether a network's routes lead to an address that is not its own.
    pub reaches: &'a dyn Fn(Vid, IpAddr) -> bool,
    /// Whether a physical port has a link, or the NIC beside it; `None` while it is being opened, for example after a
    /// restart.
    pub has_link: &'a dyn Fn(PortId, bool) -> Option<bool>,
    /// The time.
    pub now: Instant,
}

/// Something that concerns networks.
pub enum Input {
    /// An earlier daemon has left these.
    Left(Vec<String>),
    /// The target state of a network; nothing is done yet.
    Want(String, Option<Arc<Wanted>>),
    /// The same with other labels of its routing daemon, which is no event.
    Relabel(String, Arc<Wanted>),
    /// Release what a network has and will lose, so that others can have it.
    Release(String),
    /// Take the next step towards a network's target state.
    Advance(String),
    /// Retry a failed network.
    Retry(String),
    /// The job that sets a network up has ended: its result is `None` if the operating system is simulated.
    SetUp(String, Result<Option<Box<Made>>, String>),
    /// The job that removes a network has ended: whether there was anything to remove.
    Deleted(String, Result<bool, String>),
    /// Load programs whose namespaces are ready.
    LoadReady,
    /// Go on with that.
    LoadNext(Box<Attempt>),
    /// The data plane has loaded these programs; or why not.
    Tried(Box<Attempt>, Result<(), String>),
    /// The program of a network was loaded: complete the rest.
    Complete(String),
    /// Workers and monitor have the network's namespace, as far as this says.
    Attached(String, Attached),
    /// A simulated operating system has given the workers its TAPs.
    HasTaps(String),
    /// The network's table matches its namespace.
    Through(Vid),
    /// The network's table was loaded as a whole.
    Whole(Vid),
    /// Not all of its table fitted at once.
    Partly(Vid),
    /// The network has failed.
    Degrade(String, String),
    /// An interface of its namespace is gone.
    LostInterface(Vid, String),
    /// Somebody may have changed its namespace.
    Suspect(Vid),
    /// Look for drift, if it is time to.
    TendDrift,
    /// A job has checked networks.
    LookDone(Vec<Seen>),
    /// The results of a check.
    Looked(Vec<Seen>),
    /// One of them.
    Saw(Box<Seen>),
    /// The links of these physical ports may have changed.
    WiresChanged(Vec<PortId>),
    /// Tell the kernel of a network's namespace which of its interfaces have a link.
    TellCarriers(String),
    /// The routes or the state of a network may have changed: tell the networks whose tunnels it carries.
    TellPassengers(String),
    /// The kernel knows whether a virtual port has a link.
    CarrierSet(String, usize, bool),
    /// The network runs on the card, or not and why.
    Placed(String, bool, Option<String>),
    /// Why it does not run on the card.
    WhySoft(String, Option<String>),
    /// Its neighbours send to NICs beside the card's ports, or to these.
    Steered(String, bool),
    /// Its document names this place from now on.
    Pinned(String, Placement),
}

/// How far workers and monitor have a network's namespace.
#[derive(Default)]
pub struct Attached {
    /// How many of its TAPs were given out, if any were to be.
    pub taps: Option<usize>,
    /// The namespace, unless something failed before.
    pub control: Option<Arc<ControlNamespace>>,
    /// What failed, or what the namespace refused.
    pub problem: Option<String>,
    /// Whether all its TAPs were given out.
    pub all_taps: bool,
}

/// What the core must do.
pub enum Effect {
    /// Take this input, once the effects before are applied.
    Then(Input),
    /// Report an event about a network.
    Tell(EventKind, String, String),
    /// Report that the remains of a network were removed.
    TellCleaned(String),
    /// The view of a network has changed.
    Changed,
    /// Give a job to other threads.
    Start(Job),
    /// Empty the table of a network: its rows of next hops will mean something else.
    ClearRoutes(Vid),
    /// Load programs, all or none; the answer is [`Input::Tried`].
    Load(Vec<Program>, Box<Attempt>),
    /// The program of a network was loaded: its limits are set, and its routes may come.
    Loaded(Loaded),
    /// Tell the card how to recognize frames of these networks.
    Seat(Vec<String>),
    /// Give a network's namespace to the workers and the monitor; the answer is [`Input::Attached`].
    Attach(String, Vid, Box<Made>),
    /// Its namespace is no longer monitored.
    Unwatch(Vid),
    /// Remove it from the card.
    Unseat(Vid),
    /// Remove it from the data plane.
    Unload(String, Vid),
    /// Its table is no longer needed.
    ForgetRoutes(Vid),
    /// Take its TAPs from the workers.
    RemoveTaps(String, Vid),
    /// Bring its table up to its namespace.
    CatchUp(Vid),
    /// Load its table as a whole.
    LoadWhole(Vid),
    /// Tell the kernel whether a virtual port has a link; the answer is [`Input::CarrierSet`].
    SetCarrier(String, usize, bool),
    /// What the scheduler was told is no longer so.
    AskScheduler,
    /// Have its program run, if it has one.
    Run(String),
    /// Move it to where it shall run.
    Place(String),
    /// Networks that did not fit the card may fit now.
    TryAgain,
    /// The card may have gained room.
    MakeRoom,
    /// It has reached its target state, has failed, or is gone: answer those who wait for it.
    Settled(String),
    /// The start may be over.
    Started,
}

/// A network whose program was loaded.
pub struct Loaded {
    /// Its name.
    pub name: String,
    /// What was loaded.
    pub have: Arc<Wanted>,
    /// Whether it was loaded before.
    pub is_known: bool,
    /// Its numbers for the view.
    pub counts: Arc<Counts>,
}

impl Networks {
    /// Takes an input.
    pub fn take(&mut self, input: Input, around: &Around<'_>) -> Vec<Effect> {
        let mut out = Vec::new();
        match input {
            Input::Left(names) => self.leftovers = names.into_iter().collect(),
            Input::Want(name, want) => self.want(name, want, &mut out),
            Input::Relabel(name, want) => {
                self.with(&name, |entry| entry.quiet = entry.state == NetworkState::Running);
                self.want(name, Some(want), &mut out);
            }
            Input::Release(name) => self.release(&name, &mut out),
            Input::Advance(name) => self.advance(&name, &mut out),
            Input::Retry(name) => self.retry(&name, around, &mut out),
            Input::SetUp(name, result) => self.set_up(&name, result, around, &mut out),
            Input::Deleted(name, result) => self.deleted(&name, result, around, &mut out),
            Input::LoadReady => self.load_ready(&mut out),
            Input::LoadNext(attempt) => self.load_next(attempt, around, &mut out),
            Input::Tried(attempt, result) => self.tried(attempt, result, around, &mut out),
            Input::Complete(name) => self.complete(&name, around, &mut out),
            Input::Attached(name, attached) => self.attached(&name, attached, around, &mut out),
            Input::HasTaps(name) => self.with(&name, |entry| entry.taps = true),
            Input::Through(vid) => {
                let is_new = |entry: &Entry| entry.state == NetworkState::Pending && entry.is_as_wanted();
                self.announce_if(vid, is_new, &mut out);
            }
            Input::Whole(vid) => self.announce_if(vid, Entry::is_as_wanted, &mut out),
            Input::Partly(vid) => {
                if let Some(entry) = self.loaded_as(vid).filter(|entry| entry.is_as_wanted()) {
                    entry.state = NetworkState::Pending;
                }
            }
            Input::Degrade(name, reason) => self.degrade(&name, reason, around, &mut out),
            Input::LostInterface(vid, interface) => {
                if let Some(name) = self.vids.get(&vid).cloned() {
                    self.lost_interface(&name, &interface, around, &mut out);
                }
            }
            Input::Suspect(vid) => {
                if let Some(entry) = self.loaded_as(vid) {
                    entry.drift.look = true;
                }
            }
            Input::TendDrift => self.tend_drift(around.now, &mut out),
            Input::LookDone(seen) => {
                self.looks.busy = false;
                out.push(Effect::Then(Input::Looked(seen)));
            }
            Input::Looked(seen) => {
                out.extend(seen.into_iter().map(|seen| Effect::Then(Input::Saw(Box::new(seen)))));
            }
            Input::Saw(seen) => self.saw(*seen, around, &mut out),
            Input::WiresChanged(ids) => self.wires_changed(&ids, &mut out),
            Input::TellCarriers(name) => self.tell_carriers(&name, around, &mut out),
            Input::TellPassengers(name) => self.tell_passengers(&name, &mut out),
            Input::CarrierSet(name, vport, on) => self.carrier_set(&name, vport, on, &mut out),
            Input::Placed(name, on_card, why_soft) => {
                self.with(&name, |entry| (entry.on_card, entry.why_soft) = (on_card, why_soft));
            }
            Input::WhySoft(name, why) => self.with(&name, |entry| entry.why_soft = why),
            Input::Steered(name, on_nic) => self.with(&name, |entry| entry.on_nic = on_nic),
            Input::Pinned(name, place) => self.with(&name, |entry| {
                for wanted in [&mut entry.want, &mut entry.have].into_iter().flatten() {
                    Arc::make_mut(wanted).network.spec.placement = place;
                }
            }),
        }
        out
    }

    fn with(&mut self, name: &str, change: impl FnOnce(&mut Entry)) {
        if let Some(entry) = self.entries.get_mut(name) {
            change(entry);
        }
    }

    fn loaded_as(&mut self, vid: Vid) -> Option<&mut Entry> {
        self.entries.get_mut(self.vids.get(&vid)?)
    }

    fn want(&mut self, name: String, want: Option<Arc<Wanted>>, out: &mut Vec<Effect>) {
        let found = self.leftovers.contains(&name);
        let entry = self.entries.entry(name).or_insert_with(Entry::new);
        if let Some(want) = &want
            && entry.want.as_ref() != Some(want)
        {
            entry.pause = RETRY_MIN;
        }
        entry.found |= found;
        entry.want = want;
        out.push(Effect::Changed);
    }

    fn release(&mut self, name: &str, out: &mut Vec<Effect>) {
        let Some(entry) = self.entries.get_mut(name) else { return };
        let Some(have) = &entry.have else { return };
        // A network of another kind starts anew: its counters and table would have another meaning.
        let same = |want: &Arc<Wanted>| {
            want.program.vid == have.program.vid
                && want.program.kind() == have.program.kind()
                // Its rows of next hops are numbered in another way.
                && Form::of(&want.program) == Form::of(&have.program)
        };
        if !entry.want.as_ref().is_some_and(same) {
            self.detach(name, out);
        }
    }

    /// Removes a network from the data plane.
    fn detach(&mut self, name: &str, out: &mut Vec<Effect>) {
        let Some(entry) = self.entries.get_mut(name) else { return };
        let Some(have) = entry.have.take() else { return };
        let vid = have.program.vid;
        entry.carriers.clear();
        entry.taps = false;
        (entry.on_card, entry.on_nic, entry.why_soft) = (false, false, None);
        self.vids.remove(&vid);
        out.extend([
            Effect::Unwatch(vid),
            Effect::Unseat(vid),
            Effect::Unload(name.to_owned(), vid),
            Effect::ForgetRoutes(vid),
            Effect::Then(Input::TellPassengers(name.to_owned())),
            Effect::Changed,
        ]);
    }

    fn advance(&mut self, name: &str, out: &mut Vec<Effect>) {
        let Some(entry) = self.entries.get_mut(name) else { return };
        if entry.job.is_some() {
            return; // continues when the job ends
        }
        entry.retry = None;
        entry.ready = None;
        let Some(want) = entry.want.clone() else {
            entry.job = Some(None);
            let control = entry.control.take();
            self.detach(name, out);
            return out.push(Effect::Start(Job::Delete(name.to_owned(), control)));
        };
        let failed = entry.state == NetworkState::Degraded;
        if entry.have.as_ref() == Some(&want) && !failed && entry.taps {
            return self.announce(name, out);
        }
        self.release(name, out);
        let Some(entry) = self.entries.get_mut(name) else { return };
        let same_ports = entry.have.as_ref().is_some_and(|have| have.ports == want.ports);
        if entry.taps && !same_ports {
            // A TAP can be reopened only while it is not open anywhere.
            Self::remove_taps(name, entry, out);
        }
        let in_place = entry.have.as_ref().is_some_and(|have| {
            have.config == want.config && have.limits == want.limits && have.ports == want.ports
        });
        if entry.taps && in_place && !failed {
            entry.ready = Some((want, None));
            return out.push(Effect::Then(Input::LoadReady));
        }
        let held = entry.control.clone();
        let setup = Setup { limits: want.limits, config: want.config.clone(), taps: !entry.taps, held };
        entry.job = Some(Some(want));
        out.push(Effect::Start(Job::Setup(name.to_owned(), Box::new(setup))));
    }

    fn remove_taps(name: &str, entry: &mut Entry, out: &mut Vec<Effect>) {
        entry.taps = false;
        entry.carriers.clear();
        out.extend(entry.vid().map(|vid| Effect::RemoveTaps(name.to_owned(), vid)));
    }

    fn retry(&mut self, name: &str, around: &Around<'_>, out: &mut Vec<Effect>) {
        let Some(entry) = self.entries.get_mut(name) else { return };
        entry.retry = None;
        if entry.state == NetworkState::Pending && entry.have.is_some() && entry.is_as_wanted() {
            return self.announce(name, out); // its routes are late
        }
        if let Some(vid) = entry.vid()
            && (around.is_torn)(vid)
            && entry.is_as_wanted()
            && entry.taps
        {
            return out.push(Effect::LoadWhole(vid));
        }
        self.advance(name, out);
    }

    fn set_up(
        &mut self,
        name: &str,
        result: Result<Option<Box<Made>>, String>,
        around: &Around<'_>,
        out: &mut Vec<Effect>,
    ) {
        let Some(entry) = self.entries.get_mut(name) else { return };
        let Some(Some(want)) = entry.job.take() else { return };
        if entry.want.as_ref() != Some(&want) {
            return self.advance(name, out);
        }
        match result {
            Ok(made) => {
                entry.ready = Some((want, made));
                self.load_ready(out);
            }
            Err(reason) => self.degrade(name, reason, around, out),
        }
    }

    fn deleted(
        &mut self,
        name: &str,
        result: Result<bool, String>,
        around: &Around<'_>,
        out: &mut Vec<Effect>,
    ) {
        if self.leftovers.remove(name) && result.as_ref().is_ok_and(|was| *was) {
            let text = format!("network {name}, left by an earlier daemon, was removed");
            out.push(Effect::TellCleaned(text));
        }
        let Some(entry) = self.entries.get_mut(name) else { return };
        entry.job = None;
        if entry.want.is_some() {
            return self.advance(name, out);
        }
        match result {
            Ok(_) => {
                let name = name.to_owned();
                if entry.announced {
                    let text = "the network was removed".to_owned();
                    out.push(Effect::Tell(EventKind::NetworkDeleted, name.clone(), text));
                }
                self.entries.remove(&name);
                out.extend([
                    Effect::Changed,
                    Effect::AskScheduler,
                    Effect::Settled(name),
                    Effect::MakeRoom,
                    Effect::Then(Input::LoadReady),
                ]);
            }
            Err(reason) => self.degrade(name, format!("it cannot be removed: {reason}"), around, out),
        }
    }

    /// A program was loaded: completes the rest of the network.
    fn complete(&mut self, name: &str, around: &Around<'_>, out: &mut Vec<Effect>) {
        let Some(entry) = self.entries.get_mut(name) else { return };
        let Some((want, made)) = entry.ready.take() else { return };
        let (vid, is_known) = (want.program.vid, entry.have.is_some());
        self.vids.insert(vid, name.to_owned());
        entry.have = Some(Arc::clone(&want));
        entry.state = NetworkState::Pending;
        entry.reason = None;
        let counts = Arc::clone(&entry.counts);
        let loaded = Loaded { name: name.to_owned(), have: want, is_known, counts };
        out.extend([Effect::Changed, Effect::Loaded(loaded)]);
        match made {
            Some(made) => out.push(Effect::Attach(name.to_owned(), vid, made)),
            None => self.wait_for_routes(name, around, out),
        }
    }

    fn attached(&mut self, name: &str, attached: Attached, around: &Around<'_>, out: &mut Vec<Effect>) {
        let Some(entry) = self.entries.get_mut(name) else { return };
        let Attached { taps, all_taps, control, problem } = attached;
        if let Some(taps) = taps {
            entry.carriers = vec![None; taps];
        }
        if all_taps {
            entry.taps = true;
            entry.drift.indices.clear();
        }
        if control.is_some() {
            entry.control = control;
            self.tell_carriers(name, around, out);
        }
        match problem {
            None => self.wait_for_routes(name, around, out),
            Some(reason) => self.degrade(name, reason, around, out),
        }
    }

    /// A network is as wanted when its table matches its namespace.
    fn wait_for_routes(&mut self, name: &str, around: &Around<'_>, out: &mut Vec<Effect>) {
        let Some(entry) = self.entries.get_mut(name) else { return };
        entry.retry = Some(around.now + SNAPSHOT_MAX);
        out.extend(entry.vid().map(Effect::CatchUp));
    }
}

/// What other parts may know.
impl Networks {
    /// All networks, in the order of names.
    pub fn iter(&self) -> impl Iterator<Item = (&String, &Entry)> {
        self.entries.iter()
    }

    /// Their names, in order.
    pub fn names(&self) -> Vec<String> {
        self.entries.keys().cloned().collect()
    }

    /// Number of networks.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// The network of this name.
    pub fn get(&self, name: &str) -> Option<&Entry> {
        self.entries.get(name)
    }

    /// The name of the network that has this id in the data plane.
    pub fn name_of(&self, vid: Vid) -> Option<&String> {
        self.vids.get(&vid)
    }

    /// The network that has this id in the data plane.
    pub fn with_vid(&self, vid: Vid) -> Option<&Entry> {
        self.entries.get(self.vids.get(&vid)?)
    }

    /// Names of loaded networks, by their ids.
    pub fn vids(&self) -> &HashMap<Vid, String> {
        &self.vids
    }

    /// Names of networks that an earlier daemon has left and that nobody wants.
    pub fn unwanted(&self) -> Vec<String> {
        self.leftovers.iter().filter(|name| !self.entries.contains_key(*name)).cloned().collect()
    }

    /// Whether each has reached its target state or failed, and nothing is left of earlier ones.
    pub fn are_settled(&self) -> bool {
        self.leftovers.is_empty() && !self.entries.values().any(Entry::is_pending)
    }

    /// When the next network is to be retried.
    pub fn due(&self) -> Option<Instant> {
        self.entries.values().filter_map(|entry| entry.retry).min()
    }

    /// The networks that are to be retried by now.
    pub fn due_by(&self, now: Instant) -> Vec<String> {
        let due = |entry: &Entry| entry.retry.is_some_and(|retry| retry <= now);
        self.entries.iter().filter(|(_, entry)| due(entry)).map(|(name, _)| name.clone()).collect()
    }

    /// Loaded networks whose TAPs the workers do not have.
    pub fn without_taps(&self) -> Vec<(String, Arc<Wanted>)> {
        let lacking = self.entries.iter().filter(|(_, entry)| !entry.taps && !entry.is_busy());
        lacking.filter_map(|(name, entry)| Some((name.clone(), Arc::clone(entry.have.as_ref()?)))).collect()
    }

    /// Public views, in the order of names. `problem` says what is wrong with a network that is as wanted, `program` what
    /// forwards for it.
    pub fn views<'a>(
        &mut self,
        problem: impl Fn(Vid) -> Option<&'a String>,
        program: impl Fn(Vid) -> Option<api::Program>,
    ) -> Vec<Arc<NetworkView>> {
        let view = |entry: &mut Entry| {
            let vid = entry.vid();
            entry.view(vid.and_then(&problem), vid.and_then(&program))
        };
        self.entries.values_mut().filter_map(view).collect()
    }
}
