//! A process by a descriptor, which stays its own even when its id is given to another; the priority of a thread.
//!
//! Source: pidfd_open(2), pidfd_send_signal(2), setpriority(2).

use std::ffi::CStr;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal, setpriority_process};

/// Lowers the priority of the calling thread to this nice value, 1 to 19. Only a privileged process can raise it again.
///
/// # Errors
/// If the system call fails.
pub fn lower_priority(nice: i32) -> io::Result<()> {
    // On Linux, a nice value belongs to a thread, and no id means the calling one.
    Ok(setpriority_process(None, nice)?)
}

/// This program, started again as a helper process that outlives this one: with `argument`, by which it finds that it is one
/// ([`helper`]), and a path. `listed` is its name in lists of processes.
///
/// Signals to this process's group, as by Ctrl-C, do not reach it.
#[must_use]
pub fn again(listed: &str, argument: &str, path: &Path, stdin: impl Into<Stdio>) -> Command {
    // The program that runs, even if its file was replaced.
    let mut command = Command::new("/proc/self/exe");
    command.arg0(listed).arg(argument).arg(path).env_clear().current_dir("/").process_group(0);
    command.stdin(stdin).stdout(Stdio::null());
    command
}

/// The path that this process was started with, if it is such a helper. Its first thread gets the name `listed`, of which at
/// most 15 bytes are used.
#[must_use]
pub fn helper(listed: &CStr, argument: &str) -> Option<PathBuf> {
    let mut arguments = std::env::args_os().skip(1);
    let path = arguments.next().filter(|first| first == argument).and_then(|_| arguments.next())?;
    let _ = nix::sys::prctl::set_name(listed); // it cannot fail with a valid address
    Some(path.into())
}

/// A process.
#[derive(Debug)]
pub struct Process(OwnedFd);

impl Process {
    /// The process that has this id now.
    ///
    /// # Errors
    /// When there is none.
    pub fn of(pid: u32) -> io::Result<Self> {
        let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
        let pid = pid.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
        Ok(Self(pidfd_open(pid, PidfdFlags::empty())?))
    }

    /// Asks it to end (SIGTERM).
    ///
    /// # Errors
    /// When it has ended, or may not be sent a signal.
    pub fn terminate(&self) -> io::Result<()> {
        Ok(pidfd_send_signal(&self.0, Signal::TERM)?)
    }

    /// Ends it (SIGKILL).
    ///
    /// # Errors
    /// When it has ended, or may not be sent a signal.
    pub fn kill(&self) -> io::Result<()> {
        Ok(pidfd_send_signal(&self.0, Signal::KILL)?)
    }

    /// Its descriptor, which becomes readable when it ends.
    #[must_use]
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        use std::os::fd::AsFd;
        self.0.as_fd()
    }

    /// Whether it has ended.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        let mut polled = [PollFd::new(self.as_fd(), PollFlags::POLLIN)];
        poll(&mut polled, PollTimeout::ZERO).is_ok_and(|ready| ready > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_calling_thread_gets_another_priority() {
        let nice = || rustix::process::getpriority_process(None).unwrap();
        let before = nice();
        let there = std::thread::spawn(move || lower_priority(before + 1).map(|()| nice())).join().unwrap();
        assert_eq!((there.unwrap(), nice()), (before + 1, before));
    }

    #[test]
    fn a_process_is_asked_to_end_and_known_to_have_ended() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let process = Process::of(child.id()).unwrap();
        assert!(!process.has_ended());
        process.terminate().unwrap();
        assert!(!child.wait().unwrap().success());
        assert!(process.has_ended() && process.terminate().is_err());
        assert!(Process::of(u32::MAX).is_err());
    }
}
