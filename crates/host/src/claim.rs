//! Interfaces that this daemon uses as ports, so that no other daemon takes them too: both would answer ARP, and forward
//! each frame twice.
//!
//! Flow: the job that opens a port → [`Claims::take`] → the port, which keeps the descriptor until it is closed. A claim
//! is an abstract Unix socket in the network namespace of the calling thread, named by the interface's index: the kernel
//! closes it with the process, however that ends. Invariants: a claim never waits for its holder; only a process of the
//! same user can refuse a port, because any user may bind an abstract name. Source: unix(7), `SO_PEERCRED`; ADR-0040.

use std::collections::HashMap;
use std::fmt;
use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::sockopt::PeerCredentials;
use nix::sys::socket::{
    AddressFamily, Backlog, SockFlag, SockType, UnixAddr, bind, connect, getsockopt, listen, socket,
};
use nix::unistd::geteuid;

/// File name of a daemon's socket, by which the holder's is found.
const API_SOCKET: &str = "hueplane.sock";
/// Attempts to claim an interface, whose holder may come or go just now, and the pause between them.
const TRIES_MAX: usize = 25;
const PAUSE: Duration = Duration::from_millis(2);

/// Most connections that wait in a claim's queue. Nobody accepts them, so each daemon that is refused has one there, and keeps
/// it; those of refused daemons that have ended stay.
const BACKLOG: i32 = 4_096;

/// The claims of a process.
#[derive(Debug, Default)]
pub struct Claims(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    own: HashMap<u32, Weak<OwnedFd>>,
    /// Connections to other daemons' claims, with their processes. One hangs up when its claim ends.
    others: HashMap<u32, (OwnedFd, Option<u32>)>,
}

/// An interface that the caller may use.
#[derive(Clone, Debug)]
pub enum Claimed {
    /// No other daemon can claim it while a handle of this descriptor is open.
    Ours(Arc<OwnedFd>),
    /// The claim was not possible, for this reason; another daemon on the interface would not be noticed.
    Unguarded(String),
}

/// Another daemon uses the interface.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub struct Taken {
    /// Name of the interface.
    pub interface: String,
    /// Process of the daemon; `None` if it is in another PID namespace.
    pub pid: Option<u32>,
    /// Socket of the daemon's API, if it is known.
    pub socket: Option<PathBuf>,
}

impl fmt::Display for Taken {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "another hueplane daemon uses interface {} (", self.interface)?;
        match self.pid {
            Some(pid) => write!(to, "process {pid}")?,
            None => write!(to, "a process in another PID namespace")?,
        }
        if let Some(socket) = &self.socket {
            write!(to, ", socket {}", socket.display())?;
        }
        write!(to, "); stop that daemon, or remove the port from one of the two node documents")
    }
}

/// Who has the name of a claim.
enum Holder {
    /// A process of this user.
    Daemon(Option<u32>),
    /// A process of another user, or one that cannot be a daemon of ours; described.
    Stranger(String),
    /// Nobody any more, or nobody that listens yet.
    Unsure,
}

impl Claims {
    /// Claims an interface in the network namespace of the calling thread. A claim that this process already has is
    /// shared: its previous port may not be closed yet.
    ///
    /// # Errors
    /// If another daemon of the same user has it.
    pub fn take(&self, interface: &str, index: u32) -> Result<Claimed, Taken> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let State { own, others } = &mut *state;
        own.retain(|_, claim| claim.strong_count() > 0);
        if let Some(claim) = own.get(&index).and_then(Weak::upgrade) {
            return Ok(Claimed::Ours(claim));
        }
        let name = name(index);
        let unguarded =
            |why: String| Ok(Claimed::Unguarded(format!("{why}; another daemon on it would not be noticed")));
        let mut taken = None;
        for attempt in 0..TRIES_MAX {
            if attempt > 0 {
                std::thread::sleep(PAUSE);
            }
            match hold(&name) {
                Ok(claim) => {
                    others.remove(&index);
                    let claim = Arc::new(claim);
                    own.insert(index, Arc::downgrade(&claim));
                    return Ok(Claimed::Ours(claim));
                }
                Err(Errno::EADDRINUSE) => {}
                Err(error) => return unguarded(format!("the interface cannot be claimed: {error}")),
            }
            match holder(&name, index, others) {
                // It may be about to end, as the one that this daemon replaces.
                Holder::Daemon(pid) => taken = Some(pid),
                Holder::Stranger(who) => {
                    return unguarded(format!("{who} has the name @{name}, which only daemons should bind"));
                }
                Holder::Unsure => taken = None,
            }
        }
        if let Some(pid) = taken {
            let socket = pid.and_then(api_socket);
            return Err(Taken { interface: interface.to_owned(), pid, socket });
        }
        unguarded(format!(
            "a process that does not listen has the name @{name}, which only daemons should bind"
        ))
    }
}

/// Abstract name of the claim on an interface.
fn name(index: u32) -> String {
    format!("hueplane-port-{index}")
}

fn unix_socket() -> Result<OwnedFd, Errno> {
    socket(AddressFamily::Unix, SockType::Stream, SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK, None)
}

fn hold(name: &str) -> Result<OwnedFd, Errno> {
    let socket = unix_socket()?;
    bind(socket.as_raw_fd(), &UnixAddr::new_abstract(name.as_bytes())?)?;
    // Its credentials are those of this moment; nobody is ever accepted.
    listen(&socket, Backlog::new(BACKLOG)?)?;
    Ok(socket)
}

fn holder(name: &str, index: u32, others: &mut HashMap<u32, (OwnedFd, Option<u32>)>) -> Holder {
    if let Some((_, pid)) = others.get(&index).filter(|(connection, _)| !has_hung_up(connection)) {
        return Holder::Daemon(*pid);
    }
    others.remove(&index);
    let asked = unix_socket().and_then(|socket| {
        connect(socket.as_raw_fd(), &UnixAddr::new_abstract(name.as_bytes())?)?;
        Ok((getsockopt(&socket, PeerCredentials)?, socket))
    });
    match asked {
        Ok((peer, socket)) if peer.uid() == geteuid().as_raw() => {
            let pid = u32::try_from(peer.pid()).ok().filter(|pid| *pid != 0);
            others.insert(index, (socket, pid));
            Holder::Daemon(pid)
        }
        Ok((peer, _)) => Holder::Stranger(format!("process {} of user {}", peer.pid(), peer.uid())),
        Err(Errno::ECONNREFUSED) => Holder::Unsure,
        // A full queue, above all: any user could fill it, so it must not refuse the port.
        Err(error) => Holder::Stranger(format!("a process that cannot be identified ({error})")),
    }
}

fn has_hung_up(connection: &OwnedFd) -> bool {
    let mut fds = [PollFd::new(connection.as_fd(), PollFlags::POLLIN)];
    !matches!(poll(&mut fds, PollTimeout::ZERO), Ok(0))
}

/// The socket on which a daemon in this network namespace answers.
fn api_socket(pid: u32) -> Option<PathBuf> {
    let files = fs::read_dir(format!("/proc/{pid}/fd")).ok()?;
    let links = files.filter_map(|file| fs::read_link(file.ok()?.path()).ok());
    let inodes: Vec<String> = links
        .filter_map(|link| Some(link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned()))
        .collect();
    let table = fs::read("/proc/thread-self/net/unix").ok()?;
    let path = path_of(&String::from_utf8_lossy(&table), &inodes)?;
    // As the process sees it.
    if path.is_absolute() { Some(path) } else { Some(in_directory_of(pid, &path).unwrap_or(path)) }
}

fn in_directory_of(pid: u32, path: &Path) -> io::Result<PathBuf> {
    Ok(fs::read_link(format!("/proc/{pid}/cwd"))?.join(path))
}

/// Path of an API socket with one of these inodes in `/proc/net/unix`: number, references, protocol, flags, type,
/// state, inode, path.
fn path_of(table: &str, inodes: &[String]) -> Option<PathBuf> {
    table.lines().find_map(|line| {
        let mut rest = line;
        let mut fields = Vec::with_capacity(7);
        for _ in 0..7 {
            let (field, after) = rest.trim_start().split_once(' ')?;
            fields.push(field);
            rest = after;
        }
        let path = Path::new(rest);
        (path.file_name()? == API_SOCKET && inodes.iter().any(|inode| inode == fields[6]))
            .then(|| path.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An index that no interface of this machine has.
    fn unused(salt: u32) -> u32 {
        0x4000_0000 + std::process::id() * 16 + salt
    }

    #[test]
    fn a_claim_is_shared_within_a_process_refused_to_others_and_free_when_its_last_handle_is_closed() {
        let index = unused(0);
        let (first, second) = (Claims::default(), Claims::default());
        let Ok(Claimed::Ours(claim)) = first.take("p0", index) else { panic!("nobody has it") };
        let Ok(Claimed::Ours(again)) = first.take("p0", index) else { panic!("it is our own") };
        drop(claim);
        // A second set of claims stands for a second daemon.
        let taken = second.take("p0", index).unwrap_err();
        assert_eq!((taken.pid, taken.socket.clone()), (Some(std::process::id()), None));
        let text = taken.to_string();
        assert!(text.contains("interface p0") && text.contains("stop that daemon"), "{text}");
        // However often it is asked for, the other daemon has one connection to it: a queue that fills would hide the holder.
        (0..3).for_each(|_| assert!(second.take("p0", index).is_err()));
        let waits = || nix::sys::socket::accept(again.as_raw_fd()).map(drop);
        assert_eq!((waits(), waits()), (Ok(()), Err(Errno::EAGAIN)));
        drop(again);
        // A process that another test starts has the descriptor too, until it becomes its program.
        let free = (0..200).any(|_| {
            std::thread::sleep(PAUSE);
            matches!(second.take("p0", index), Ok(Claimed::Ours(_)))
        });
        assert!(free);
    }

    #[test]
    fn a_name_that_nobody_answers_for_does_not_refuse_the_port() {
        let index = unused(1);
        // Bound, and never listening: credentials cannot be read.
        let squatter = unix_socket().unwrap();
        bind(squatter.as_raw_fd(), &UnixAddr::new_abstract(name(index).as_bytes()).unwrap()).unwrap();
        let Ok(Claimed::Unguarded(why)) = Claims::default().take("p0", index) else {
            panic!("it has the name")
        };
        assert!(why.contains("does not listen") && why.contains("would not be noticed"), "{why}");
        // Nor does a full queue.
        listen(&squatter, Backlog::new(0).unwrap()).unwrap();
        let other = unix_socket().unwrap();
        connect(other.as_raw_fd(), &UnixAddr::new_abstract(name(index).as_bytes()).unwrap()).unwrap();
        let Ok(Claimed::Unguarded(why)) = Claims::default().take("p0", index) else {
            panic!("it has the name")
        };
        assert!(why.contains("cannot be identified"), "{why}");
    }

    #[test]
    fn the_holders_socket_is_found_by_its_inode() {
        let table = "Num       RefCount Protocol Flags    Type St Inode Path\n\
                     0000000000000000: 00000002 00000000 00010000 0001 01 401 /run/a b/hueplane.sock\n\
                     0000000000000000: 00000002 00000000 00010000 0001 01   52 @hueplane-port-2\n\
                     0000000000000000: 00000003 00000000 00000000 0001 03 53\n\
                     0000000000000000: 00000002 00000000 00010000 0001 01 54 /run/c/hueplane.sock\n";
        let of = |inodes: &[&str]| path_of(table, &inodes.iter().map(|&i| i.to_owned()).collect::<Vec<_>>());
        assert_eq!(of(&["53", "401"]), Some("/run/a b/hueplane.sock".into()));
        assert_eq!(of(&["52", "54"]), Some("/run/c/hueplane.sock".into()));
        assert_eq!(of(&["52", "53"]), None);
    }
}
