//! The run directory of a daemon: the lock that shows that it runs, and its socket.
//!
//! Invariants: the lock is held until the process ends, however it ends; the socket of a dead daemon is replaced, that of
//! a running one never; only root can use a socket before it has its mode and group.

use std::fs::{self, File, OpenOptions, Permissions, TryLockError};
use std::io::{Read, Write};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use nix::unistd::{Group, chown};

use crate::client::socket_in;
use crate::error::DaemonError;
use crate::options::GROUP;

/// The lock in the run directory; it holds the process id.
pub const LOCK: &str = "hueplaned.pid";
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
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut text = String::new();
                let pid = lock.read_to_string(&mut text).ok().and_then(|_| text.trim().parse().ok());
                return Err(DaemonError::Running { lock: path, pid });
            }
            Err(TryLockError::Error(source)) => return Err(DaemonError::file(path, "locked")(source)),
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
