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

use super::wanted::Wanted;

/// Shortest time between two checks.
pub(super) const LOOK_EACH: Duration = Duration::from_millis(300);
/// How often the names of all namespaces are compared with the open namespaces, because nothing reports their changes.
pub(super) const NAMES_EACH: Duration = Duration::from_secs(3);
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
    pub(super) busy: bool,
    /// The last check.
    pub(super) last: Instant,
    /// The last check of all names.
    pub(super) names: Instant,
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
    pub(super) fn pause(&mut self, now: Instant) -> Duration {
        let quiet = self.last.is_none_or(|last| now.saturating_duration_since(last) >= QUIET);
        self.pause = if quiet { PAUSE_MIN } else { (self.pause * 2).clamp(PAUSE_MIN, PAUSE_MAX) };
        self.last = Some(now);
        self.pause
    }
}

/// A network to check.
#[derive(Clone)]
pub struct Look {
    pub(super) name: String,
    pub(super) control: Arc<ControlNamespace>,
    pub(super) want: Arc<Wanted>,
    pub(super) indices: Vec<u32>,
    /// Whether to check its namespace too, not only the name.
    pub(super) inside: bool,
}

/// Result of a check of a network.
#[derive(Clone)]
pub struct Seen {
    pub(super) name: String,
    pub(super) control: Arc<ControlNamespace>,
    pub(super) standing: Standing,
    pub(super) inside: Option<Drift>,
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

/// The differences, as text.
pub(super) fn words(
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
