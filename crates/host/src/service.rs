//! Integration as a system service: notifications to systemd, and dropping unneeded privileges.

use std::collections::BTreeSet;
use std::io;
use std::time::Duration;

use caps::{CapSet, Capability};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use sd_notify::NotifyState;

use crate::error::HostError;

/// Capabilities that the daemon needs as root; it drops all others. CAP_SYS_ADMIN includes CAP_BPF and
/// CAP_PERFMON.
pub const NEEDED: [Capability; 11] = [
    Capability::CAP_NET_ADMIN, // interfaces, routes, XDP, buffers beyond the usual limits
    Capability::CAP_NET_RAW,   // packet sockets, AF_XDP
    Capability::CAP_SYS_ADMIN, // entering and naming namespaces
    Capability::CAP_IPC_LOCK,  // memory of the rings
    Capability::CAP_SYS_NICE,  // scheduling of the threads that forward packets
    Capability::CAP_KILL,      // processes of a network that is deleted, whoever runs them
    Capability::CAP_CHOWN,     // the group of the API's socket
    Capability::CAP_DAC_OVERRIDE, // files of an earlier run that belong to others
    Capability::CAP_SETUID,    // the user of a network's program,
    Capability::CAP_SETGID,    // its group,
    Capability::CAP_SETPCAP,   // and its rights
];

/// The limit on open files that a process requests: enough for the most networks that a node can have.
const OPEN_FILES_WANTED: u64 = 1 << 20;

/// Raises the limit on open files, because each network needs several: to a million with CAP_SYS_RESOURCE, else to
/// the hard limit. Returns the new limit.
///
/// # Errors
/// If the system call fails.
pub fn raise_open_files() -> Result<u64, HostError> {
    let failed = |errno| HostError::system("raise the limit of open files", errno);
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).map_err(failed)?;
    let system_max = std::fs::read_to_string("/proc/sys/fs/nr_open").ok();
    let system_max = system_max.and_then(|text| text.trim().parse().ok()).unwrap_or(hard);
    let wanted = OPEN_FILES_WANTED.min(system_max);
    if hard < wanted && setrlimit(Resource::RLIMIT_NOFILE, wanted, wanted).is_ok() {
        return Ok(wanted);
    }
    if soft < hard {
        setrlimit(Resource::RLIMIT_NOFILE, hard, hard).map_err(failed)?;
    }
    Ok(hard)
}

/// Files that this process may have open.
///
/// # Errors
/// If the system call fails.
pub fn open_files_max() -> Result<u64, HostError> {
    let (soft, _) = getrlimit(Resource::RLIMIT_NOFILE)
        .map_err(|errno| HostError::system("read the limit of open files", errno))?;
    Ok(soft)
}

/// Capabilities in `wanted` that this thread lacks.
///
/// # Errors
/// If the system call fails.
pub fn missing(wanted: &[Capability]) -> Result<Vec<Capability>, HostError> {
    let has = caps::read(None, CapSet::Effective).map_err(failed)?;
    Ok(wanted.iter().copied().filter(|wanted| !has.contains(wanted)).collect())
}

/// Drops all capabilities except these, permanently and also for started programs. Call it before starting
/// threads, because capabilities are per thread. Capabilities that the thread lacks are ignored.
///
/// # Errors
/// If the system call fails.
pub fn drop_capabilities(keep: &[Capability]) -> Result<(), HostError> {
    let has = caps::read(None, CapSet::Permitted).map_err(failed)?;
    let keep: caps::CapsHashSet = keep.iter().copied().filter(|keep| has.contains(keep)).collect();
    caps::clear(None, CapSet::Ambient).map_err(failed)?;
    // Lowering the bounding set needs CAP_SETPCAP, so do it first.
    if has.contains(&Capability::CAP_SETPCAP) {
        for other in caps::read(None, CapSet::Bounding).map_err(failed)?.difference(&keep) {
            caps::drop(None, CapSet::Bounding, *other).map_err(failed)?;
        }
    }
    caps::set(None, CapSet::Inheritable, &caps::CapsHashSet::default()).map_err(failed)?;
    caps::set(None, CapSet::Effective, &keep).map_err(failed)?;
    caps::set(None, CapSet::Permitted, &keep).map_err(failed)
}

/// Names of capabilities for messages: `CAP_NET_ADMIN, CAP_NET_RAW`.
#[must_use]
pub fn names(capabilities: &[Capability]) -> String {
    let names: BTreeSet<String> = capabilities.iter().map(ToString::to_string).collect();
    names.into_iter().collect::<Vec<_>>().join(", ")
}

/// Tells systemd, if it started this process, that the service is ready, with a status text.
pub fn ready(status: &str) {
    notify(&[NotifyState::Ready, NotifyState::Status(status)]);
}

/// Sends a status text to systemd.
pub fn status(status: &str) {
    notify(&[NotifyState::Status(status)]);
}

/// Tells systemd that the service is stopping.
pub fn stopping() {
    notify(&[NotifyState::Stopping]);
}

/// Sends the watchdog signal to systemd. Must be called more often than [`watchdog`] says.
pub fn alive() {
    notify(&[NotifyState::Watchdog]);
}

/// The watchdog timeout of systemd, if enabled.
#[must_use]
pub fn watchdog() -> Option<Duration> {
    sd_notify::watchdog_enabled()
}

fn notify(state: &[NotifyState<'_>]) {
    // Without systemd there is no receiver, and a failed notification does not matter.
    sd_notify::notify(state).ok();
}

fn failed(error: caps::errors::CapsError) -> HostError {
    HostError::system("change capabilities", io::Error::other(error.to_string()))
}
