//! Removing namespaces, the processes in them, and control groups of daemons.

use std::fs;
use std::time::{Duration, Instant};

use hue_host::cgroup::{Cgroup, Trees};
use hue_host::netns::{self, Namespace};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// Longest time until killed processes have ended.
const END_MAX: Duration = Duration::from_secs(10);

/// Removes everything whose names begin with `prefix`: the processes in such namespaces, then the namespaces. Returns what
/// could not be removed.
pub fn namespaces(prefix: &str) -> Vec<String> {
    // Also remove names whose namespace no longer exists. Therefore, list files instead of using
    // `netns::list`.
    let entries = fs::read_dir(netns::FOLDER).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let names: Vec<String> = names.filter(|name| name.starts_with(prefix)).collect();
    kill_all(&names);
    names.iter().filter_map(|name| netns::delete(name).err()).map(|error| error.to_string()).collect()
}

/// Removes the control groups of the daemon with this owner's name. Returns what could not be removed.
pub fn cgroups(owner: &str) -> Vec<String> {
    let networks = Trees::detect().map(|trees| trees.networks(owner)).unwrap_or_default();
    let deleted = networks.iter().map(|network| {
        Cgroup::open(owner, network).and_then(|group| group.map_or(Ok(false), |group| group.delete()))
    });
    deleted.filter_map(Result::err).map(|error| error.to_string()).collect()
}

/// Kills the processes in namespaces, and waits until they have ended.
fn kill_all(namespaces: &[String]) {
    let inside: Vec<(u64, u64)> = namespaces
        .iter()
        .filter_map(|name| Namespace::open(name).and_then(|namespace| namespace.identity()).ok())
        .collect();
    let deadline = Instant::now() + END_MAX;
    loop {
        let found: Vec<Pid> = netns::processes()
            .filter(|(_, place)| inside.contains(place))
            .filter_map(|(pid, _)| i32::try_from(pid).ok().map(Pid::from_raw))
            .collect();
        if found.is_empty() || Instant::now() > deadline {
            return;
        }
        for pid in found {
            // It may have ended by itself.
            let _ = kill(pid, Signal::SIGKILL);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}
