//! Being a well-behaved service: telling systemd, and giving up rights that are not needed.

use std::collections::BTreeSet;
use std::io;
use std::time::Duration;

use caps::{CapSet, Capability};
use sd_notify::NotifyState;

use crate::error::HostError;

/// What the daemon needs to do its work as root: all other rights it gives up. CAP_SYS_ADMIN holds CAP_BPF and CAP_PERFMON.
pub const NEEDED: [Capability; 8] = [
    Capability::CAP_NET_ADMIN, // interfaces, routes, XDP, buffers beyond the usual limits
    Capability::CAP_NET_RAW,   // packet sockets, AF_XDP
    Capability::CAP_SYS_ADMIN, // entering and naming namespaces
    Capability::CAP_IPC_LOCK,  // memory of the rings
    Capability::CAP_SYS_NICE,  // scheduling of the threads that forward packets
    Capability::CAP_KILL,      // processes of a network that is deleted, whoever runs them
    Capability::CAP_CHOWN,     // the group of the API's socket
    Capability::CAP_DAC_OVERRIDE, // files of an earlier run that belong to others
];

/// Lets this process have as many files open as it may at most: each network takes several. Gives that number.
///
/// # Errors
/// When the system refuses.
pub fn raise_open_files() -> Result<u64, HostError> {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    let failed = |errno| HostError::system("raise the limit of open files", errno);
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).map_err(failed)?;
    if soft < hard {
        setrlimit(Resource::RLIMIT_NOFILE, hard, hard).map_err(failed)?;
    }
    Ok(hard)
}

/// Those of `wanted` that this thread has not.
///
/// # Errors
/// When the system does not say.
pub fn missing(wanted: &[Capability]) -> Result<Vec<Capability>, HostError> {
    let has = caps::read(None, CapSet::Effective).map_err(failed)?;
    Ok(wanted.iter().copied().filter(|wanted| !has.contains(wanted)).collect())
}

/// Gives up all rights but those, for good: also for programs that are started. To be called before any thread is started,
/// since threads have rights of their own. Those it has not are no error.
///
/// # Errors
/// When the system refuses.
pub fn drop_capabilities(keep: &[Capability]) -> Result<(), HostError> {
    let has = caps::read(None, CapSet::Permitted).map_err(failed)?;
    let keep: caps::CapsHashSet = keep.iter().copied().filter(|keep| has.contains(keep)).collect();
    caps::clear(None, CapSet::Ambient).map_err(failed)?;
    // The bounding set can be lowered only with CAP_SETPCAP, so before the others.
    if has.contains(&Capability::CAP_SETPCAP) {
        for other in caps::read(None, CapSet::Bounding).map_err(failed)?.difference(&keep) {
            caps::drop(None, CapSet::Bounding, *other).map_err(failed)?;
        }
    }
    caps::set(None, CapSet::Inheritable, &caps::CapsHashSet::default()).map_err(failed)?;
    caps::set(None, CapSet::Effective, &keep).map_err(failed)?;
    caps::set(None, CapSet::Permitted, &keep).map_err(failed)
}

/// Names of rights, for messages: `CAP_NET_ADMIN, CAP_NET_RAW`.
#[must_use]
pub fn names(capabilities: &[Capability]) -> String {
    let names: BTreeSet<String> = capabilities.iter().map(ToString::to_string).collect();
    names.into_iter().collect::<Vec<_>>().join(", ")
}

/// Tells systemd, if it started this, that the service is ready, with a word on its state.
pub fn ready(status: &str) {
    tell(&[NotifyState::Ready, NotifyState::Status(status)]);
}

/// Tells systemd a word on the service's state.
pub fn status(status: &str) {
    tell(&[NotifyState::Status(status)]);
}

/// Tells systemd that the service is ending.
pub fn stopping() {
    tell(&[NotifyState::Stopping]);
}

/// Tells systemd that the service is alive; to be done more often than [`watchdog`] says.
pub fn alive() {
    tell(&[NotifyState::Watchdog]);
}

/// How long systemd waits for a sign of life, if it does.
#[must_use]
pub fn watchdog() -> Option<Duration> {
    sd_notify::watchdog_enabled()
}

fn tell(state: &[NotifyState<'_>]) {
    // Nobody listens when systemd did not start it, and a service that cannot tell runs on.
    sd_notify::notify(state).ok();
}

fn failed(error: caps::errors::CapsError) -> HostError {
    HostError::system("change capabilities", io::Error::other(error.to_string()))
}
