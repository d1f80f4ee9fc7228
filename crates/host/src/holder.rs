//! A small process that keeps descriptors open while no daemon runs.
//!
//! A TAP device loses its carrier when its last descriptor is closed, and routing daemons then lose their neighbours.
//! Flow: daemon → [`Holder::put`] → the process ([`run_if_asked`]) → the next daemon: [`Holder::start`], [`Holder::get`].
//! Invariants: the process only keeps descriptors and never reads from them; it ends when its socket's file is gone, when
//! it is told to, and when no daemon is connected and it holds nothing; a daemon that gives a holder up, because it fails or
//! stalls, removes its socket's file, so none is left behind; that costs a daemon at most [`TIMEOUT`] at its start, and once
//! later. Source: unix(7), `SCM_RIGHTS`.
//!
//! Protocol, on a socket of type `SOCK_SEQPACKET` in a directory of the daemon's: a request is a letter and a name. `P`
//! (put) carries a descriptor; `F` (forget) closes the one of this name; `L` (list) is answered by an `H` with name and
//! descriptor for each; `Q` (quit) ends the process. An `E` ends each answer. Names are `NETWORK/INTERFACE`, which cannot
//! contain further slashes.

#![allow(unsafe_code)] // descriptors that system calls have just made

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Mutex, PoisonError};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::sockopt::{ReceiveTimeout, SendTimeout};
use nix::sys::socket::{
    AddressFamily, Backlog, ControlMessage, ControlMessageOwned, MsgFlags, SockFlag, SockType, UnixAddr,
    accept4, bind, connect, listen, recvmsg, sendmsg, setsockopt, socket,
};
use nix::sys::time::{TimeVal, TimeValLike};

use crate::local::{self, identity, own_peer};
use crate::process;

/// First argument of a program that is to be a holder; the path of its socket follows. Its standard input is the
/// listening socket.
pub const ARGUMENT: &str = "hold-descriptors";
/// The socket's file.
pub const SOCKET: &str = "holder.sock";
/// Longest time that a daemon waits for an answer, in seconds.
pub const TIMEOUT: i64 = 2;
/// Longest message: a letter, a network, a slash, an interface.
const MESSAGE_BYTES_MAX: usize = 512;
/// How often the process checks that its socket's file is there, in milliseconds.
const LOOK_MS: u16 = 1000;

/// Descriptors that outlive the daemon, by network and interface.
#[derive(Debug, Default)]
pub struct Holder(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// The connection; `None` without a holder.
    socket: Option<OwnedFd>,
    /// The file of the holder's socket.
    file: Option<SocketFile>,
    /// The same descriptors in this process.
    held: BTreeMap<String, OwnedFd>,
}

/// The file of a socket. Its holder ends soon after it is gone.
#[derive(Debug)]
struct SocketFile {
    path: PathBuf,
    identity: Option<(u64, u64)>,
}

impl SocketFile {
    fn at(path: &Path) -> Self {
        Self { path: path.to_owned(), identity: identity(path) }
    }

    /// Removes it, unless another one has its place.
    fn remove(&self) -> io::Result<()> {
        match self.identity.is_some() && identity(&self.path) == self.identity {
            true => fs::remove_file(&self.path),
            false => Ok(()),
        }
    }
}

impl Holder {
    /// Connects to the holder of an earlier daemon, or starts one, from this program. One that does not answer ends as soon as
    /// it can. `directory` must belong to the daemon alone.
    ///
    /// # Errors
    /// When neither is possible. The daemon can work without it, and no holder is left then.
    pub fn start(directory: &Path) -> io::Result<Self> {
        let path = std::path::absolute(directory)?.join(SOCKET);
        let state = match State::connect(&path) {
            Ok(state) => state,
            Err(_) => {
                spawn(&path)?;
                State::connect(&path)?
            }
        };
        Ok(Self(Mutex::new(state)))
    }

    /// Ends the holder that an earlier daemon has left, as soon as it can: this daemon uses none.
    pub fn end_left(directory: &Path) {
        let _ = fs::remove_file(directory.join(SOCKET)); // there may be none
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A handle of the descriptor that is held for this interface.
    #[must_use]
    pub fn get(&self, network: &str, interface: &str) -> Option<OwnedFd> {
        self.state().held.get(&format!("{network}/{interface}"))?.try_clone().ok()
    }

    /// Holds a descriptor for this interface, instead of one before. It is closed with [`Holder::forget`].
    ///
    /// # Errors
    /// When the holder has failed: from then on nothing is held.
    pub fn put(&self, network: &str, interface: &str, fd: BorrowedFd<'_>) -> io::Result<()> {
        let mut state = self.state();
        if state.socket.is_none() {
            return Ok(());
        }
        let name = format!("{network}/{interface}");
        let own = fd.try_clone_to_owned()?;
        state.tell(b'P', &name, Some(fd))?;
        state.held.insert(name, own);
        Ok(())
    }

    /// Closes the descriptors of a network for which `unwanted` holds, given the interface.
    ///
    /// # Errors
    /// As for [`Holder::put`].
    pub fn forget(&self, network: &str, unwanted: impl Fn(&str) -> bool) -> io::Result<()> {
        let mut state = self.state();
        let prefix = format!("{network}/");
        let of = |name: &String| name.strip_prefix(&prefix).is_some_and(&unwanted);
        let names: Vec<String> = state.held.keys().filter(|name| of(name)).cloned().collect();
        for name in names {
            state.held.remove(&name);
            state.tell(b'F', &name, None)?;
        }
        Ok(())
    }

    /// Leaves the holder to the next daemon. It serves one daemon at a time.
    pub fn leave(&self) {
        *self.state() = State::default();
    }

    /// Ends the holder: nothing is kept.
    pub fn end(&self) {
        let mut state = self.state();
        // One that does not answer has ended, or ends when it is not connected.
        let _ = state.tell(b'Q', "", None);
        *state = State::default();
    }
}

impl State {
    /// Connects to a holder, and gets what it holds. If that fails, the holder is given up.
    fn connect(path: &Path) -> io::Result<Self> {
        let file = SocketFile::at(path);
        let connected = connected(path);
        let mut state = Self { socket: None, file: Some(file), held: BTreeMap::new() };
        match connected {
            Ok(socket) => state.socket = Some(socket),
            Err(error) => {
                state.give_up();
                return Err(error);
            }
        }
        state.held = state.ask(b'L', "", None)?;
        Ok(state)
    }

    /// Nothing is held any more. The process may still run, and would wait for the next daemon.
    fn give_up(&mut self) {
        let before = std::mem::take(self);
        if let Some(file) = before.file {
            let _ = file.remove(); // it may just have ended
        }
    }

    /// Sends a request whose answer has no contents.
    fn tell(&mut self, letter: u8, name: &str, fd: Option<BorrowedFd<'_>>) -> io::Result<()> {
        self.ask(letter, name, fd).map(drop)
    }

    /// Sends a request: the descriptors of the answer. After a failure there is no holder.
    fn ask(
        &mut self,
        letter: u8,
        name: &str,
        fd: Option<BorrowedFd<'_>>,
    ) -> io::Result<BTreeMap<String, OwnedFd>> {
        let Some(socket) = self.socket.as_ref() else { return Ok(BTreeMap::new()) };
        let answer = answer(socket.as_fd(), letter, name, fd);
        if answer.is_err() {
            self.give_up();
        }
        answer
    }
}

fn answer(
    socket: BorrowedFd<'_>,
    letter: u8,
    name: &str,
    fd: Option<BorrowedFd<'_>>,
) -> io::Result<BTreeMap<String, OwnedFd>> {
    send(socket, letter, name, fd)?;
    let mut found = BTreeMap::new();
    loop {
        match receive(socket)? {
            Some((b'E', ..)) => return Ok(found),
            Some((b'H', name, Some(fd))) => drop(found.insert(name, fd)),
            Some(_) => return Err(io::Error::other("the holder of descriptors answers something else")),
            None => return Err(io::Error::other("the holder of descriptors has ended")),
        }
    }
}

fn connected(path: &Path) -> io::Result<OwnedFd> {
    let (_directory, short) = local::short(path)?;
    let socket = seqpacket()?;
    let timeout = TimeVal::seconds(TIMEOUT);
    setsockopt(&socket, SendTimeout, &timeout)?;
    setsockopt(&socket, ReceiveTimeout, &timeout)?;
    connect(socket.as_raw_fd(), &UnixAddr::new(&short)?)?;
    own_peer(&socket).map(|_| socket)
}

fn seqpacket() -> io::Result<OwnedFd> {
    Ok(socket(AddressFamily::Unix, SockType::SeqPacket, SockFlag::SOCK_CLOEXEC, None)?)
}

/// Starts the process.
fn spawn(path: &Path) -> io::Result<()> {
    let (_directory, short) = local::short(path)?;
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let listener = seqpacket()?;
    bind(listener.as_raw_fd(), &UnixAddr::new(&short)?)?;
    listen(&listener, Backlog::new(1)?)?;
    let mut command = process::again("hueplane-holder", ARGUMENT, path, listener);
    command.stderr(Stdio::null()).spawn().map(drop)
}

fn send(socket: BorrowedFd<'_>, letter: u8, name: &str, fd: Option<BorrowedFd<'_>>) -> io::Result<()> {
    let mut message = vec![letter];
    message.extend_from_slice(name.as_bytes());
    if message.len() > MESSAGE_BYTES_MAX {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    }
    let fds: Vec<RawFd> = fd.iter().map(AsRawFd::as_raw_fd).collect();
    let rights = [ControlMessage::ScmRights(&fds)];
    let control = if fds.is_empty() { &[][..] } else { &rights };
    sendmsg::<()>(socket.as_raw_fd(), &[IoSlice::new(&message)], control, MsgFlags::MSG_NOSIGNAL, None)?;
    Ok(())
}

/// A message: letter, name, descriptor. `None` at the end of the connection.
fn receive(socket: BorrowedFd<'_>) -> io::Result<Option<(u8, String, Option<OwnedFd>)>> {
    let mut bytes = [0; MESSAGE_BYTES_MAX];
    let mut space = nix::cmsg_space!(RawFd);
    let mut into = [IoSliceMut::new(&mut bytes)];
    let flags = MsgFlags::MSG_CMSG_CLOEXEC;
    let received = recvmsg::<()>(socket.as_raw_fd(), &mut into, Some(&mut space), flags)?;
    let mut fd = None;
    for message in received.cmsgs()? {
        if let ControlMessageOwned::ScmRights(fds) = message {
            // SAFETY: the kernel has just made these descriptors, and nothing else has them.
            fds.into_iter().for_each(|raw| fd = Some(unsafe { OwnedFd::from_raw_fd(raw) }));
        }
    }
    let len = received.bytes;
    let Some((letter, name)) = bytes[..len].split_first() else { return Ok(None) };
    Ok(Some((*letter, String::from_utf8_lossy(name).into_owned(), fd)))
}

/// Is the holder, if this program was started as one (see [`ARGUMENT`]); must be called first in `main`. Returns whether
/// it was.
#[must_use]
pub fn run_if_asked() -> bool {
    let Some(path) = process::helper(c"hueplane-holder", ARGUMENT) else { return false };
    // Nothing that it does needs a right, and nobody reads its errors.
    let _ = crate::service::drop_capabilities(&[]);
    let _ = hold(io::stdin().as_fd(), &path);
    true
}

/// Holds descriptors until there is a reason to end.
fn hold(listener: BorrowedFd<'_>, path: &Path) -> io::Result<()> {
    let own = SocketFile::at(path);
    let mut held = BTreeMap::new();
    let mut client: Option<OwnedFd> = None;
    loop {
        let on = client.as_ref().map_or(listener, AsFd::as_fd);
        let mut fds = [PollFd::new(on, PollFlags::POLLIN)];
        let ready = match poll(&mut fds, PollTimeout::from(LOOK_MS)) {
            Err(nix::errno::Errno::EINTR) => 0,
            ready => ready?,
        };
        if own.identity.is_none() || identity(path) != own.identity {
            return Ok(());
        }
        if ready == 0 {
            continue;
        }
        let Some(socket) = &client else {
            let accepted = accept4(listener.as_raw_fd(), SockFlag::SOCK_CLOEXEC)?;
            // SAFETY: the kernel has just made this descriptor, and nothing else has it.
            let accepted = unsafe { OwnedFd::from_raw_fd(accepted) };
            client = own_peer(&accepted).is_ok().then_some(accepted);
            continue;
        };
        match serve(socket.as_fd(), &mut held) {
            Ok(true) => {}
            Ok(false) => {
                // Before the answer: whoever gets it finds everything closed, and no socket.
                own.remove()?;
                return send(socket.as_fd(), b'E', "", None);
            }
            // The next daemon may be connected already.
            Err(_) if held.is_empty() && !is_wanted(listener) => return own.remove(),
            Err(_) => client = None,
        }
    }
}

/// Whether somebody waits for an answer.
fn is_wanted(listener: BorrowedFd<'_>) -> bool {
    poll(&mut [PollFd::new(listener, PollFlags::POLLIN)], PollTimeout::ZERO).is_ok_and(|ready| ready > 0)
}

/// Answers a request. `false`: the process should end.
fn serve(socket: BorrowedFd<'_>, held: &mut BTreeMap<String, OwnedFd>) -> io::Result<bool> {
    let ended = || io::Error::from(io::ErrorKind::UnexpectedEof);
    match receive(socket)?.ok_or_else(ended)? {
        (b'P', name, Some(fd)) => drop(held.insert(name, fd)),
        (b'F', name, _) => held.retain(|one, _| *one != name),
        (b'L', ..) => {
            for (name, fd) in held.iter() {
                send(socket, b'H', name, Some(fd.as_fd()))?;
            }
        }
        (b'Q', ..) => {
            held.clear();
            return Ok(false);
        }
        // A later daemon's request.
        _ => {}
    }
    send(socket, b'E', "", None)?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use std::thread;

    use nix::sys::socket::{Shutdown, shutdown, socketpair};

    use super::*;

    /// A holder on a thread of this process, and what connects to it.
    fn holder(directory: &Path) -> thread::JoinHandle<io::Result<()>> {
        let path = directory.join(SOCKET);
        let listener = seqpacket().unwrap();
        bind(listener.as_raw_fd(), &UnixAddr::new(&path).unwrap()).unwrap();
        listen(&listener, Backlog::new(1).unwrap()).unwrap();
        thread::spawn(move || hold(listener.as_fd(), &path))
    }

    fn pair() -> (OwnedFd, OwnedFd) {
        socketpair(AddressFamily::Unix, SockType::Stream, None, SockFlag::SOCK_CLOEXEC).unwrap()
    }

    /// Whether all handles of the other end of a pair are closed.
    fn closed(end: &OwnedFd) -> bool {
        let mut fds = [PollFd::new(end.as_fd(), PollFlags::POLLIN)];
        poll(&mut fds, PollTimeout::ZERO).unwrap() > 0
    }

    #[test]
    fn stored_values_are_there_for_the_next_daemon() {
        let folder = tempfile::tempdir().unwrap();
        let process = holder(folder.path());
        let first = Holder::start(folder.path()).unwrap();
        assert!(first.get("red", "v0").is_none());
        let (kept, other) = pair();
        let (more, more_other) = pair();
        first.put("red", "v0", other.as_fd()).unwrap();
        first.put("red", "v1", more_other.as_fd()).unwrap();
        first.put("reddish", "v0", more_other.as_fd()).unwrap();
        drop((first, other, more_other));
        assert!(!closed(&kept), "the daemon is gone, and it is held");

        let second = Holder::start(folder.path()).unwrap();
        let again = second.get("red", "v0").unwrap();
        assert_eq!(nix::unistd::write(&again, b"x"), Ok(1));
        let mut byte = [0];
        assert_eq!(nix::unistd::read(&kept, &mut byte), Ok(1));
        drop(again);
        // Only the named ones are closed.
        second.forget("red", |interface| interface == "v0").unwrap();
        assert!(closed(&kept) && second.get("red", "v0").is_none() && second.get("red", "v1").is_some());
        second.forget("red", |_| true).unwrap();
        assert!(!closed(&more) && second.get("reddish", "v0").is_some());
        // One that is put again replaces the one before.
        let (newer, newer_other) = pair();
        second.put("reddish", "v0", newer_other.as_fd()).unwrap();
        drop(newer_other);
        assert!(closed(&more) && !closed(&newer));
        second.end();
        assert!(closed(&newer) && !folder.path().join(SOCKET).exists());
        process.join().unwrap().unwrap();
        assert!(second.put("red", "v0", kept.as_fd()).is_ok() && second.get("red", "v0").is_none());
    }

    #[test]
    fn no_holder_is_left_behind() {
        let folder = tempfile::tempdir().unwrap();
        // With nothing to hold, it ends with its daemon.
        let process = holder(folder.path());
        drop(Holder::start(folder.path()).unwrap());
        process.join().unwrap().unwrap();
        assert!(!folder.path().join(SOCKET).exists());
        // With something, when its socket's file is gone.
        let process = holder(folder.path());
        let first = Holder::start(folder.path()).unwrap();
        let (kept, other) = pair();
        first.put("red", "v0", other.as_fd()).unwrap();
        drop((first, other));
        assert!(!closed(&kept) && !process.is_finished());
        fs::remove_file(folder.path().join(SOCKET)).unwrap();
        process.join().unwrap().unwrap();
        assert!(closed(&kept));
    }

    #[test]
    fn one_that_is_given_up_ends_although_it_holds_something() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(SOCKET);
        let process = holder(folder.path());
        let first = Holder::start(folder.path()).unwrap();
        let (kept, other) = pair();
        first.put("red", "v0", other.as_fd()).unwrap();
        // As if it had not answered in time.
        shutdown(first.state().socket.as_ref().unwrap().as_raw_fd(), Shutdown::Both).unwrap();
        assert!(first.put("red", "v1", other.as_fd()).is_err());
        drop(other);
        assert!(!path.exists());
        process.join().unwrap().unwrap();
        assert!(closed(&kept));
        // Another one with this path is none of its business.
        let process = holder(folder.path());
        first.end();
        assert!(path.exists() && !process.is_finished());
        Holder::end_left(folder.path());
        process.join().unwrap().unwrap();
    }

    #[test]
    fn one_that_has_nothing_stays_for_a_daemon_that_is_connected_already() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(SOCKET);
        let listener = seqpacket().unwrap();
        bind(listener.as_raw_fd(), &UnixAddr::new(&path).unwrap()).unwrap();
        listen(&listener, Backlog::new(1).unwrap()).unwrap();
        // Its daemon was killed before it was ready, and the next one has begun.
        drop(connected(&path).unwrap());
        let next = connected(&path).unwrap();
        let its = path.clone();
        let process = thread::spawn(move || hold(listener.as_fd(), &its));
        assert!(answer(next.as_fd(), b'L', "", None).unwrap().is_empty());
        drop(next);
        process.join().unwrap().unwrap();
        assert!(!path.exists());
    }
}
