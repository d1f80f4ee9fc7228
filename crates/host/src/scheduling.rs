//! Scheduling of a thread relative to the rest of the machine.
//!
//! Flow: a thread that forwards packets → [`real_time`] → the kernel. If the kernel refuses, [`RealTimeRefused`] says
//! why, and `hueplane doctor` shows the remedy.
//! Invariants: threads and processes that a real-time thread starts are ordinary ones.
//! Source: sched(7); Linux `Documentation/scheduler/sched-rt-group.rst`.
#![allow(unsafe_code)] // system calls that no safe wrapper has

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use caps::Capability;
use thiserror::Error;

use crate::cgroup::Trees;
use crate::service;

/// The lowest real-time priority: before every ordinary thread, behind every other real-time one.
const PRIORITY: i32 = 1;
/// Nice value of our ordinary threads, -20 to 19.
const NICE: i32 = -10;

/// Why a thread cannot be a real-time thread.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum RealTimeRefused {
    /// The process lacks a right.
    #[error("the right CAP_SYS_NICE is missing")]
    Right,
    /// Its control group (version 1) has no real-time budget.
    #[error("the control group {} gives no real-time budget", .0.display())]
    Group(PathBuf),
    /// Another reason: systemd's `RestrictRealtime=` and filters of containers return this error.
    #[error("the system refuses ({0}), as systemd's RestrictRealtime= or a container's filter does")]
    Other(String),
}

/// Makes the calling thread a real-time thread: ordinary threads run on its processor only while this thread does
/// not. The caller must leave them time.
///
/// # Errors
/// The reason; the thread is unchanged.
pub fn real_time() -> Result<(), RealTimeRefused> {
    let parameters = libc::sched_param { sched_priority: PRIORITY };
    // SAFETY: the kernel reads the live structure; 0 is the calling thread.
    match unsafe {
        libc::sched_setscheduler(0, libc::SCHED_RR | libc::SCHED_RESET_ON_FORK, &raw const parameters)
    } {
        0 => Ok(()),
        _ => Err(why_refused(io::Error::last_os_error())),
    }
}

/// Gives the calling thread, an ordinary one, priority over others of its session or control group.
///
/// # Errors
/// If the right `CAP_SYS_NICE` is missing; the thread is unchanged.
pub fn hurry() -> io::Result<()> {
    // SAFETY: no pointers; 0 is the calling thread.
    match unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, NICE) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Processor time that the calling thread has used, in nanoseconds.
#[must_use]
pub fn thread_time_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes the live structure.
    let _ = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap_or(0)
}

fn why_refused(error: io::Error) -> RealTimeRefused {
    if error.raw_os_error() != Some(libc::EPERM) {
        return RealTimeRefused::Other(error.to_string());
    }
    if !service::missing(&[Capability::CAP_SYS_NICE]).is_ok_and(|missing| missing.is_empty()) {
        return RealTimeRefused::Right;
    }
    match group_without_budget() {
        Some(group) => RealTimeRefused::Group(group),
        None => RealTimeRefused::Other(error.to_string()),
    }
}

/// The folder of this process's control group, if that group has no real-time budget.
fn group_without_budget() -> Option<PathBuf> {
    let root = Trees::detect().ok()?.processor_root()?;
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let folder = root.join(group_of(&groups)?.trim_start_matches('/'));
    is_without_budget(&folder).then_some(folder)
}

/// The group of the controller `cpu`, version 1, in a list of groups in the format of `/proc/self/cgroup`.
fn group_of(groups: &str) -> Option<&str> {
    groups.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        fields.next()?.split(',').any(|name| name == "cpu").then(|| fields.next())?
    })
}

fn is_without_budget(folder: &Path) -> bool {
    fs::read_to_string(folder.join("cpu.rt_runtime_us")).is_ok_and(|text| text.trim() == "0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_group_of_the_processor_controller_is_found() {
        let groups = "9:name=systemd:/\n2:cpuacct:/a\n1:cpu,foo:/b:c\n0::/d\n";
        assert_eq!(group_of(groups), Some("/b:c"));
        assert_eq!(group_of("0::/d\n"), None);
        assert!(!is_without_budget(Path::new("/nowhere")));
    }

    #[test]
    fn a_refusal_says_what_is_missing() {
        let other = why_refused(io::Error::from_raw_os_error(libc::EINVAL));
        assert!(matches!(&other, RealTimeRefused::Other(why) if why.contains("nvalid")), "{other}");
    }

    #[test]
    fn time_of_a_thread_rises_while_it_works() {
        let before = thread_time_ns();
        while thread_time_ns() < before + 1_000_000 {
            std::hint::spin_loop();
        }
    }
}
