//! Local sockets in a directory of the daemon's, by which a process that outlives its daemon is found by the next one.
//!
//! Invariants: only processes of the same user connect; a path of any length works, although an address has 107 bytes.
//! Source: unix(7).

use std::fs::{self, File, Permissions};
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use nix::fcntl::OFlag;
use nix::sys::socket::sockopt::PeerCredentials;
use nix::sys::socket::{Backlog, getsockopt, listen};
use nix::unistd::geteuid;

/// Connections that may wait for the listener.
const WAITING_MAX: i32 = 8;

/// The directory's descriptor, and a short path of a file in it, valid as long as that is open. A socket's address has at most
/// 107 bytes.
pub(crate) fn short(path: &Path) -> io::Result<(File, PathBuf)> {
    let invalid = || io::Error::from(io::ErrorKind::InvalidInput);
    let (directory, name) = path.parent().zip(path.file_name()).ok_or_else(invalid)?;
    let directory = File::open(directory)?;
    let short = Path::new("/proc/self/fd").join(directory.as_raw_fd().to_string()).join(name);
    Ok((directory, short))
}

/// Listens at a path, instead of whoever listened there before. Returns the socket's file, too, for [`is_at`].
///
/// # Errors
/// The kernel's error.
pub fn bind(path: &Path) -> io::Result<(UnixListener, File)> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let (_directory, short) = short(path)?;
    let listener = UnixListener::bind(&short)?;
    fs::set_permissions(&short, Permissions::from_mode(0o600))?;
    // A socket's file cannot be opened otherwise.
    let file = File::options().read(true).custom_flags(OFlag::O_PATH.bits()).open(&short)?;
    Ok((listener, file))
}

/// Whether a path leads to this file, and not to one that has taken its place.
#[must_use]
pub fn is_at(file: &File, path: &Path) -> bool {
    file.metadata().is_ok_and(|own| identity(path) == Some((own.dev(), own.ino())))
}

/// Makes the calling process the one that listens, for [`connect`] to report: a socket can have been passed on.
///
/// # Errors
/// The kernel's error.
pub fn listen_here(listener: &UnixListener) -> io::Result<()> {
    Ok(listen(listener, Backlog::new(WAITING_MAX)?)?)
}

/// Connects to the process that listens at a path. Returns its id, too.
///
/// # Errors
/// `NotFound` or `ConnectionRefused` if there is none; `PermissionDenied` if it belongs to another user.
pub fn connect(path: &Path) -> io::Result<(UnixStream, u32)> {
    let (_directory, short) = short(path)?;
    let socket = UnixStream::connect(short)?;
    let pid = own_peer(&socket)?;
    Ok((socket, pid))
}

/// The id of the process at the other end.
///
/// # Errors
/// `PermissionDenied` if it belongs to another user.
pub fn own_peer(socket: &impl AsFd) -> io::Result<u32> {
    let peer = getsockopt(socket, PeerCredentials)?;
    if peer.uid() != geteuid().as_raw() {
        return Err(io::Error::from(io::ErrorKind::PermissionDenied));
    }
    u32::try_from(peer.pid()).map_err(io::Error::other)
}

/// Whether the process at the other end is root's, or of this process's user.
#[must_use]
pub fn is_trusted(socket: &impl AsFd) -> bool {
    getsockopt(socket, PeerCredentials).is_ok_and(|peer| peer.uid() == 0 || peer.uid() == geteuid().as_raw())
}

/// What identifies a file, whatever its name; `None` if there is none.
#[must_use]
pub(crate) fn identity(path: &Path) -> Option<(u64, u64)> {
    fs::symlink_metadata(path).ok().map(|file| (file.dev(), file.ino()))
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use super::*;

    #[test]
    fn the_process_that_listens_is_found_by_any_path() {
        let folder = tempfile::tempdir().unwrap();
        let deep = folder.path().join("d".repeat(120));
        fs::create_dir(&deep).unwrap();
        let path = deep.join("it.sock");
        assert_eq!(connect(&path).unwrap_err().kind(), io::ErrorKind::NotFound);
        let (first, its_file) = bind(&path).unwrap();
        assert!(is_at(&its_file, &path));
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        listen_here(&first).unwrap();
        let (mut near, pid) = connect(&path).unwrap();
        assert_eq!(pid, std::process::id());
        let (mut far, _) = first.accept().unwrap();
        assert_eq!(own_peer(&far).unwrap(), pid);
        near.write_all(b"x").unwrap();
        far.read_exact(&mut [0]).unwrap();
        drop(first);
        assert_eq!(connect(&path).unwrap_err().kind(), io::ErrorKind::ConnectionRefused);
        // What is left of it is not in the way.
        let (_second, second_file) = bind(&path).unwrap();
        assert!(!is_at(&its_file, &path) && is_at(&second_file, &path) && connect(&path).is_ok());
        fs::remove_file(&path).unwrap();
        assert!(!is_at(&second_file, &path));
    }
}
