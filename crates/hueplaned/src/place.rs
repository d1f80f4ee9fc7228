//! The run directory of a daemon: the lock that shows that it runs, and its socket.
//!
//! Invariants: the lock is held until the process ends, however it ends; the socket of a dead daemon is replaced, that of
//! a running one never; only root can use a socket before it has its mode and group.

use std::fs::{self, File, OpenOptions, Permissions, TryLockError};
use std::io::Write;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::unistd::{Group, chown};

use crate::client::socket_in;
use crate::error::DaemonError;
use crate::options::GROUP;

/// The lock in the run directory; it holds the process id.
pub const LOCK: &str = "hueplaned.pid";
/// How long to wait for a daemon that was killed, and how often to look.
const END_MAX: Duration = Duration::from_secs(1);
const END_POLL: Duration = Duration::from_millis(2);
/// Mode of the socket: its owner and its group may use it.
const SOCKET_MODE: u32 = 0o660;

/// The run directory of a running daemon.
#[derive(Debug)]
pub struct Place {
    lock: File,
    socket: PathBuf,
}

impl Place {
    /// Takes the run directory, which is created when missing.
    ///
    /// # Errors
    /// [`DaemonError::Running`] if another daemon uses it, or if a system call fails.
    pub fn take(run_dir: &Path) -> Result<Self, DaemonError> {
        fs::create_dir_all(run_dir).map_err(DaemonError::file(run_dir, "made"))?;
        let path = run_dir.join(LOCK);
        let mut lock = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(DaemonError::file(&path, "opened"))?;
        let until = Instant::now() + END_MAX;
        loop {
            match lock.try_lock() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) => {
                    let text = fs::read_to_string(&path).unwrap_or_default();
                    let pid = text.trim().parse().ok();
                    if !pid.is_some_and(is_ending) || Instant::now() >= until {
                        return Err(DaemonError::Running { lock: path, pid });
                    }
                    std::thread::sleep(END_POLL);
                }
                Err(TryLockError::Error(source)) => return Err(DaemonError::file(path, "locked")(source)),
            }
        }
        let written = lock.set_len(0).and_then(|()| writeln!(lock, "{}", std::process::id()));
        written.map_err(DaemonError::file(&path, "written"))?;
        Ok(Self { lock, socket: socket_in(run_dir) })
    }

    /// Whether no daemon has the run directory. Does not change it.
    pub fn is_free(run_dir: &Path) -> bool {
        File::open(run_dir.join(LOCK)).is_ok_and(|lock| lock.try_lock_shared().is_ok())
    }

    /// Opens the socket, replacing one that an earlier daemon left.
    ///
    /// # Errors
    /// When something other than a socket is in its place, or the system refuses.
    pub fn listen(&self) -> Result<UnixListener, DaemonError> {
        let path = &self.socket;
        if let Ok(found) = fs::symlink_metadata(path) {
            if !found.file_type().is_socket() {
                let source = std::io::Error::other("a file that is not a socket is in its place; remove it");
                return Err(DaemonError::file(path, "listened to")(source));
            }
            fs::remove_file(path).map_err(DaemonError::file(path, "removed"))?;
        }
        let listener = UnixListener::bind(path).map_err(DaemonError::file(path, "listened to"))?;
        if let Ok(Some(group)) = Group::from_name(GROUP) {
            let given = chown(path, None, Some(group.gid)).map_err(std::io::Error::from);
            given.map_err(DaemonError::file(path, "given to group hueplane"))?;
        }
        let mode = Permissions::from_mode(SOCKET_MODE);
        fs::set_permissions(path, mode).map_err(DaemonError::file(path, "given its mode"))?;
        listener.set_nonblocking(true).map_err(DaemonError::file(path, "listened to"))?;
        Ok(listener)
    }
}

/// Whether a process is being ended, as after `kill -9`: the kernel takes tens of milliseconds to close its sockets, and then
/// its lock. Source: proc_pid_stat(5); `PF_EXITING` in the kernel's `sched.h`.
fn is_ending(pid: u32) -> bool {
    const EXITING: u64 = 4;
    const KILL: u64 = 1 << (9 - 1);
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The name in brackets may contain anything.
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ends = fields.first().is_none_or(|state| matches!(*state, "Z" | "X"));
    let exits =
        fields.get(6).and_then(|flags| flags.parse().ok()).is_some_and(|flags: u64| flags & EXITING != 0);
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let pending = status.lines().find_map(|line| line.strip_prefix("ShdPnd:"));
    let killed =
        pending.and_then(|set| u64::from_str_radix(set.trim(), 16).ok()).is_some_and(|set| set & KILL != 0);
    ends || exits || killed
}

impl Drop for Place {
    fn drop(&mut self) {
        // If it cannot be removed, the next daemon finds it stale.
        let _ = fs::remove_file(&self.socket);
        let _ = self.lock.set_len(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_daemon_takes_a_folder() {
        let folder = tempfile::tempdir().unwrap();
        let place = Place::take(folder.path()).unwrap();
        let refused = Place::take(folder.path()).unwrap_err();
        let own = std::process::id();
        assert!(!is_ending(own) && !is_ending(1) && is_ending(u32::MAX));
        assert!(matches!(refused, DaemonError::Running { pid: Some(pid), .. } if pid == own), "{refused}");
        assert!(!Place::is_free(folder.path()));
        drop(place);
        assert!(Place::is_free(folder.path()));
        Place::take(folder.path()).unwrap();
    }

    #[test]
    fn a_stale_socket_is_replaced_and_something_else_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = socket_in(folder.path());
        let place = Place::take(folder.path()).unwrap();
        drop(UnixListener::bind(&path).unwrap());
        let listener = place.listen().unwrap();
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, SOCKET_MODE);
        drop(listener);
        fs::remove_file(&path).unwrap();
        fs::write(&path, "a file").unwrap();
        assert!(place.listen().unwrap_err().to_string().contains("not a socket"));
    }
}
