//! Drift: changes that others make in a network's namespace against its document, and their repair.
//!
//! Flow: netlink notifications of the monitor, and a clock → [`Look`] (on a thread for networks) → [`Seen`] → node
//! thread → the network is degraded with the reason → setup, as for any other failed network. Addresses, MAC
//! addresses, MTUs, the state `up` and the namespace's name are repaired; another namespace with that name is never
//! modified. Invariants: a network's namespace is the one that the daemon holds open, whichever namespace has its name;
//! a network is checked at most once per [`LOOK_EACH`]; a network that soon drifts again is repaired after a growing
//! pause, at most [`PAUSE_MAX`].

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hue_host::control::{Difference, Drift};
use hue_host::netns::Standing;
use hue_host::{ControlNamespace, HostError};
use hue_routing::{Change, Event};

use super::NodeHandle;
use super::command::{Command, Query};
use super::core::Node;
use super::jobs::Job;
use super::networks::Entry;
use super::wanted::Wanted;
use crate::api::{ExecInfo, NetworkState, Problem, ProblemKind};

/// Shortest time between two checks.
const LOOK_EACH: Duration = Duration::from_millis(300);
/// How often the names of all namespaces are compared with the open namespaces, because nothing reports their changes.
const NAMES_EACH: Duration = Duration::from_secs(3);
/// First and longest pause before drift is repaired.
const PAUSE_MIN: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(16);
/// A network that has not drifted for this long is repaired after the first pause again.
const QUIET: Duration = Duration::from_secs(60);
/// Most differences that a reason names.
const WORDS_MAX: usize = 4;

/// When networks were checked.
pub struct Looks {
    /// Whether a check is in progress.
    busy: bool,
    /// The last check.
    last: Instant,
    /// The last check of all names.
    names: Instant,
}

impl Default for Looks {
    fn default() -> Self {
        Self { busy: false, last: Instant::now(), names: Instant::now() }
    }
}

/// The drift of a network.
#[derive(Default)]
pub struct Drifting {
    /// Whether a notification says that its interfaces or addresses have changed.
    pub(super) look: bool,
    /// The differences, as text.
    pub(super) reason: Option<String>,
    /// Interfaces of its virtual ports; empty if not known yet.
    pub(super) indices: Vec<u32>,
    pause: Duration,
    /// When drift was last found.
    last: Option<Instant>,
}

impl Drifting {
    /// The pause before drift that is found now is repaired.
    fn pause(&mut self, now: Instant) -> Duration {
        let quiet = self.last.is_none_or(|last| now.saturating_duration_since(last) >= QUIET);
        self.pause = if quiet { PAUSE_MIN } else { (self.pause * 2).clamp(PAUSE_MIN, PAUSE_MAX) };
        self.last = Some(now);
        self.pause
    }
}

/// A network to check.
#[derive(Clone)]
pub struct Look {
    name: String,
    control: Arc<ControlNamespace>,
    want: Arc<Wanted>,
    indices: Vec<u32>,
    /// Whether to check its namespace too, not only the name.
    inside: bool,
}

/// Result of a check of a network.
#[derive(Clone)]
pub struct Seen {
    name: String,
    control: Arc<ControlNamespace>,
    standing: Standing,
    inside: Option<Drift>,
}

impl fmt::Debug for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let drifted = self.inside.as_ref().map_or(0, |inside| inside.ports.len());
        write!(f, "{}: {:?}, {drifted} differences", self.name, self.standing)
    }
}

/// Checks networks. Those that cannot be checked are left out.
pub fn look(looks: Vec<Look>) -> Vec<Seen> {
    let see = |look: Look| -> Result<Seen, HostError> {
        let Look { name, control, want, indices, inside } = look;
        let inside = if inside { Some(control.look(&want.config, &indices)?) } else { None };
        Ok(Seen { standing: control.namespace.standing()?, name, control, inside })
    };
    let seen = looks.into_iter().map(see);
    seen.filter_map(|seen| {
        seen.inspect_err(|error| tracing::warn!(%error, "a network's namespace cannot be checked")).ok()
    })
    .collect()
}

/// Whether an event may mean drift.
pub const fn is_suspect(event: &Event) -> bool {
    matches!(
        event,
        // A snapshot ends here; notifications may have been lost before it.
        Event::End
            | Event::Link(Change::Added | Change::Replaced | Change::Removed, _)
            | Event::Address(Change::Removed, _)
    )
}

impl Entry {
    /// Its namespace, if it should now be as its document says.
    fn settled_control(&self) -> Option<(&Arc<ControlNamespace>, &Arc<Wanted>)> {
        let set_up = self.state == NetworkState::Running
            || (self.state == NetworkState::Degraded && self.drift.reason.is_some());
        let (have, want) = (self.have.as_ref()?, self.want.as_ref()?);
        // Usually they are the same value: a comparison of long documents takes time.
        let as_wanted = || Arc::ptr_eq(have, want) || have == want;
        let settled = set_up && self.taps && !self.is_busy() && as_wanted();
        Some((self.control.as_ref()?, have)).filter(|_| settled)
    }
}

impl Node {
    /// Networks to check: all, or those that notifications concern.
    pub(super) fn looks(&mut self, names: bool, inside: bool) -> Vec<Look> {
        let mut looks = Vec::new();
        for (name, entry) in &mut self.networks {
            let inside = inside || entry.drift.look || entry.drift.reason.is_some();
            if !(names || entry.drift.look) {
                continue;
            }
            let Some((control, want)) = entry.settled_control() else { continue };
            let (control, want) = (Arc::clone(control), Arc::clone(want));
            let indices = entry.drift.indices.clone();
            entry.drift.look = false;
            looks.push(Look { name: name.clone(), control, want, indices, inside });
        }
        looks
    }

    /// Looks for drift, if it is time to.
    pub(super) fn tend_drift(&mut self, now: Instant) {
        if self.looks.busy || now.saturating_duration_since(self.looks.last) < LOOK_EACH {
            return;
        }
        let names = now.saturating_duration_since(self.looks.names) >= NAMES_EACH;
        let looks = self.looks(names, false);
        if names {
            self.looks.names = now;
        }
        if !looks.is_empty() {
            (self.looks.busy, self.looks.last) = (true, now);
            self.jobs.add(Job::Look(looks));
        }
    }

    /// A check has ended.
    pub(super) fn look_done(&mut self, seen: Vec<Seen>) {
        self.looks.busy = false;
        self.looked(seen);
    }

    /// Processes the results of a check.
    pub(super) fn looked(&mut self, seen: Vec<Seen>) {
        for Seen { name, control, standing, inside } in seen {
            let Some(entry) = self.networks.get_mut(&name) else { continue };
            // Results about an earlier setup no longer count.
            let Some((_, want)) = entry.settled_control().filter(|(own, _)| Arc::ptr_eq(own, &control))
            else {
                continue;
            };
            let want = Arc::clone(want);
            let whole = inside.is_some();
            let Drift { ports, indices } = inside.unwrap_or_default();
            let gone =
                ports.iter().find(|(_, what)| matches!(what, Difference::Missing | Difference::Replaced));
            if let Some(port) = gone.and_then(|(at, _)| want.ports.get(*at)) {
                entry.drift.reason = None;
                self.lost_interface(&name, &port.interface);
                continue;
            }
            if entry.drift.indices.is_empty() {
                entry.drift.indices = indices;
            }
            let words = words(&control, &want, standing, &ports);
            match words {
                Some(words) => self.drifted(&name, words),
                // Somebody else has repaired it.
                None if whole && entry.drift.reason.is_some() => self.advance(&name),
                None => {}
            }
        }
    }

    /// A network has drifted: it is degraded, and repaired after a pause.
    fn drifted(&mut self, name: &str, reason: String) {
        let Some(entry) = self.networks.get_mut(name) else { return };
        let before = entry.drift.reason.replace(reason.clone());
        if before.as_ref() == Some(&reason) {
            return; // its repair is already scheduled
        }
        let now = Instant::now();
        let due = now + entry.drift.pause(now);
        let due = entry.retry.filter(|_| before.is_some()).map_or(due, |earlier| earlier.min(due));
        self.degrade(name, reason);
        if let Some(entry) = self.networks.get_mut(name) {
            entry.retry = Some(due);
        }
    }
}

/// The differences, as text.
fn words(
    control: &ControlNamespace,
    want: &Wanted,
    standing: Standing,
    ports: &[(usize, Difference)],
) -> Option<String> {
    let name = control.namespace.name();
    let named = match standing {
        Standing::Own => None,
        Standing::Nothing => Some(format!("namespace {name} was deleted; it gets its name back")),
        Standing::Other => Some(HostError::Replaced(name.to_owned()).to_string()),
    };
    let says = |(at, difference): &(usize, Difference)| {
        let port = want.program.ports.get(*at).map_or("", |port| port.name.as_str());
        format!("port {port} {difference}")
    };
    let mut words: Vec<String> = named.into_iter().chain(ports.iter().map(says)).collect();
    let more = words.len().saturating_sub(WORDS_MAX);
    words.truncate(WORDS_MAX);
    if more > 0 {
        words.push(format!("{more} more"));
    }
    (!words.is_empty()).then(|| words.join("; "))
}

impl NodeHandle {
    /// Checks all networks, so that a change finds drift that nothing has reported yet.
    pub(super) async fn look_now(&self) -> Result<(), Problem> {
        let looks = self.ask(|reply| Command::BeginLook { reply }).await?;
        if looks.is_empty() {
            return Ok(());
        }
        let seen = tokio::task::spawn_blocking(move || look(looks)).await.map_err(Problem::internal)?;
        self.ask(|reply| Command::EndLook { seen, reply }).await
    }

    /// Namespace and control groups for commands in a network, if the name still belongs to its namespace.
    pub(super) async fn exec_info_now(&self, name: String) -> Result<ExecInfo, Problem> {
        let (info, control) = self.ask(|reply| Query::ExecInfo { name, reply }).await??;
        let standing = tokio::task::spawn_blocking(move || control.namespace.standing()).await;
        match standing.map_err(Problem::internal)?.map_err(Problem::internal)? {
            Standing::Own => Ok(info),
            Standing::Nothing => Err(Problem::unavailable(format!(
                "namespace {} was deleted; it gets its name back within seconds: try again",
                info.namespace
            ))),
            Standing::Other => Err(Problem::new(
                ProblemKind::Conflict,
                format!("commands cannot be run in the network: {}", HostError::Replaced(info.namespace)),
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_drift_is_repaired_after_longer_pauses() {
        let mut drifting = Drifting::default();
        let start = Instant::now();
        let seconds = |drifting: &mut Drifting, after: u64| {
            drifting.pause(start + Duration::from_secs(after)).as_secs()
        };
        let pauses: Vec<u64> = (0..6).map(|turn| seconds(&mut drifting, turn * 20)).collect();
        assert_eq!(pauses, [1, 2, 4, 8, 16, 16]);
        assert_eq!(seconds(&mut drifting, 100 + QUIET.as_secs()), 1);
    }
}
