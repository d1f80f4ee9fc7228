//! The netlink socket: requests and their responses, dumps, notifications.
#![allow(unsafe_code)] // two socket options that no safe wrapper has

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, recv, send, setsockopt,
    socket, sockopt,
};

use super::objects::Notice;
use super::request::{HEADER_BYTES, Request};
use crate::error::HostError;
use crate::netns::Namespace;

/// Size of a read in bytes: a part of a dump has at most 32 KiB.
const READ_BYTES: usize = 128 << 10;
/// Requested receive buffer in bytes; the kernel allows root any size.
const RECEIVE_BUFFER_BYTES: usize = 1 << 20;
/// Requests in a batch; the error responses to all of them fit into the receive buffer.
const BATCH_REQUESTS: usize = 128;
/// Bytes in a batch; they fit into the default send buffer.
const BATCH_BYTES: usize = 32 << 10;
/// Attempts at a dump that changes disturb.
const DUMP_TRIES: usize = 16;
/// Flag: a change disturbed the dump, so it may be inconsistent (`NLM_F_DUMP_INTR`).
const DUMP_INTERRUPTED: u16 = 0x10;

/// Multicast groups of notifications that a socket receives.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Groups(pub u32);

impl Groups {
    /// No groups: for requests only.
    pub const NONE: Self = Self(0);
    /// Changes of links.
    pub const LINK: Self = Self(libc::RTMGRP_LINK as u32);
    /// Neighbours of IPv4 and IPv6.
    pub const NEIGHBOUR: Self = Self(libc::RTMGRP_NEIGH as u32);
    /// IPv4 addresses.
    pub const ADDRESS4: Self = Self(libc::RTMGRP_IPV4_IFADDR as u32);
    /// IPv4 routes.
    pub const ROUTE4: Self = Self(libc::RTMGRP_IPV4_ROUTE as u32);
    /// IPv6 addresses.
    pub const ADDRESS6: Self = Self(libc::RTMGRP_IPV6_IFADDR as u32);
    /// IPv6 routes.
    pub const ROUTE6: Self = Self(libc::RTMGRP_IPV6_ROUTE as u32);

    /// Both sets of groups.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// The kind of objects to dump.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Dump {
    /// All links.
    Links,
    /// All IPv4 addresses.
    Addresses4,
    /// All IPv4 routes of all tables.
    Routes4,
    /// All IPv4 neighbours.
    Neighbours4,
    /// All IPv6 addresses.
    Addresses6,
    /// All IPv6 routes of all tables.
    Routes6,
    /// All IPv6 neighbours.
    Neighbours6,
}

impl Dump {
    fn request(self) -> Request {
        let (what, kind, family, fixed) = match self {
            Self::Links => ("list links", libc::RTM_GETLINK, libc::AF_UNSPEC, 16),
            Self::Addresses4 => ("list addresses", libc::RTM_GETADDR, libc::AF_INET, 8),
            Self::Routes4 => ("list routes", libc::RTM_GETROUTE, libc::AF_INET, 12),
            Self::Neighbours4 => ("list neighbours", libc::RTM_GETNEIGH, libc::AF_INET, 12),
            Self::Addresses6 => ("list IPv6 addresses", libc::RTM_GETADDR, libc::AF_INET6, 8),
            Self::Routes6 => ("list IPv6 routes", libc::RTM_GETROUTE, libc::AF_INET6, 12),
            Self::Neighbours6 => ("list IPv6 neighbours", libc::RTM_GETNEIGH, libc::AF_INET6, 12),
        };
        let mut header = vec![0; fixed];
        header[0] = family as u8;
        Request::new(what, kind, libc::NLM_F_DUMP, &header)
    }
}

/// A message from the kernel.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    /// Type (`RTM_…`).
    pub kind: u16,
    /// Flags (`NLM_F_…`).
    pub flags: u16,
    /// Sequence number of the request that it answers; 0 in notifications.
    pub sequence: u32,
    /// Fixed header and attributes.
    pub payload: &'a [u8],
}

impl Message<'_> {
    /// The link, address, route or neighbour in the message; `None` for other objects.
    #[must_use]
    pub fn notice(&self) -> Option<Notice> {
        Notice::read(self.kind, self.payload)
    }
}

/// A message, or the result of a request.
#[derive(Clone, Debug)]
pub enum Incoming<'a> {
    /// A notification, or a part of a dump.
    Message(Message<'a>),
    /// The end of a dump.
    Done {
        /// Sequence number of the dump's request.
        sequence: u32,
        /// Whether changes happened meanwhile, so that the dump may be inconsistent.
        interrupted: bool,
    },
    /// A request was executed.
    Acknowledged {
        /// Sequence number of the request.
        sequence: u32,
    },
    /// A request was rejected.
    Failed {
        /// Sequence number of the request.
        sequence: u32,
        /// Error number.
        errno: Errno,
        /// Reason given by the kernel, often empty.
        reason: String,
    },
}

/// Result of [`Socket::receive`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Received {
    /// Nothing is available (only for non-blocking sockets).
    Nothing,
    /// Messages were passed on.
    Some,
    /// The receive buffer overflowed: notifications are lost, so dump again.
    Overrun,
}

/// A rejected request of a batch.
#[derive(Clone, Debug)]
pub struct Failure {
    /// Index of the request.
    pub index: usize,
    /// Description of the request.
    pub what: String,
    /// Error number.
    pub errno: Errno,
    /// Reason given by the kernel, often empty.
    pub reason: String,
}

impl From<Failure> for HostError {
    fn from(failure: Failure) -> Self {
        refused(failure.what, failure.errno, failure.reason)
    }
}

fn refused(what: String, errno: Errno, reason: String) -> HostError {
    let source = io::Error::from(errno);
    if reason.is_empty() {
        HostError::System { what, source }
    } else {
        HostError::Refused { what, source, reason }
    }
}

/// A route netlink socket.
#[derive(Debug)]
pub struct Socket {
    fd: OwnedFd,
    sequence: u32,
    buffer: Vec<u8>,
}

impl Socket {
    /// Opens a socket in the namespace of the calling thread.
    ///
    /// # Errors
    /// If the system call fails.
    pub fn open(groups: Groups) -> Result<Self, HostError> {
        let what = "open a netlink socket";
        let fd =
            socket(AddressFamily::Netlink, SockType::Raw, SockFlag::SOCK_CLOEXEC, SockProtocol::NetlinkRoute)
                .map_err(|errno| HostError::system(what, errno))?;
        bind(fd.as_raw_fd(), &NetlinkAddr::new(0, groups.0))
            .map_err(|errno| HostError::system(what, errno))?;
        option(&fd, libc::NETLINK_EXT_ACK)?;
        option(&fd, libc::NETLINK_CAP_ACK)?;
        let socket = Self { fd, sequence: 0, buffer: vec![0; READ_BYTES] };
        socket.set_receive_buffer(RECEIVE_BUFFER_BYTES)?;
        Ok(socket)
    }

    /// Opens a socket in a namespace.
    ///
    /// # Errors
    /// If the system call fails.
    pub fn open_in(namespace: &Namespace, groups: Groups) -> Result<Self, HostError> {
        namespace.run(|| Self::open(groups))?
    }

    /// Sets the size of the receive buffer in bytes, beyond the system's limit if permitted.
    ///
    /// # Errors
    /// If the system rejects the size.
    pub fn set_receive_buffer(&self, bytes: usize) -> Result<(), HostError> {
        if setsockopt(&self.fd, sockopt::RcvBufForce, &bytes).is_ok() {
            return Ok(());
        }
        setsockopt(&self.fd, sockopt::RcvBuf, &bytes)
            .map_err(|errno| HostError::system("set the receive buffer of a netlink socket", errno))
    }

    /// Makes [`Socket::receive`] return [`Received::Nothing`] instead of waiting. Requests and dumps still
    /// wait.
    ///
    /// # Errors
    /// If the system call fails.
    pub fn set_nonblocking(&self, nonblocking: bool) -> Result<(), HostError> {
        use nix::fcntl::{FcntlArg, OFlag, fcntl};
        let flags = if nonblocking { OFlag::O_NONBLOCK } else { OFlag::empty() };
        fcntl(&self.fd, FcntlArg::F_SETFL(flags))
            .map(drop)
            .map_err(|errno| HostError::system("change a netlink socket", errno))
    }

    /// Sends a request without waiting. Its response is received by [`Socket::receive`] with the returned
    /// sequence number.
    ///
    /// # Errors
    /// If the system call fails.
    pub fn send(&mut self, mut request: Request) -> Result<u32, HostError> {
        let sequence = self.next();
        send(self.fd.as_raw_fd(), request.seal(sequence, 0), MsgFlags::empty())
            .map_err(|errno| HostError::system(request.what(), errno))?;
        Ok(sequence)
    }

    /// Starts a dump without waiting. Its parts are received by [`Socket::receive`] with the returned
    /// sequence number.
    ///
    /// # Errors
    /// If the system call fails; `EBUSY` while another dump of this socket runs.
    pub fn send_dump(&mut self, dump: Dump) -> Result<u32, HostError> {
        self.send(dump.request())
    }

    /// Reads available messages with one system call. Waits for them unless the socket is non-blocking.
    ///
    /// # Errors
    /// If the system call fails.
    pub fn receive(&mut self, mut each: impl FnMut(Incoming<'_>)) -> Result<Received, HostError> {
        // MSG_TRUNC returns the full length, so that a truncated message is detected.
        let length = match recv(self.fd.as_raw_fd(), &mut self.buffer, MsgFlags::MSG_TRUNC) {
            Ok(length) => length,
            Err(Errno::EAGAIN) => return Ok(Received::Nothing),
            Err(Errno::EINTR) => return Ok(Received::Some),
            Err(Errno::ENOBUFS) => return Ok(Received::Overrun),
            Err(errno) => return Err(HostError::system("read from a netlink socket", errno)),
        };
        let Some(mut rest) = self.buffer.get(..length) else { return Ok(Received::Overrun) };
        while let Some((message, next)) = split(rest) {
            rest = next;
            if let Some(incoming) = incoming(message) {
                each(incoming);
            }
        }
        Ok(Received::Some)
    }

    /// As [`Socket::receive`], but waits even on a non-blocking socket.
    pub(crate) fn wait(&mut self, mut each: impl FnMut(Incoming<'_>)) -> Result<Received, HostError> {
        loop {
            match self.receive(&mut each)? {
                Received::Nothing => {}
                received => return Ok(received),
            }
            match poll(&mut [PollFd::new(self.fd.as_fd(), PollFlags::POLLIN)], PollTimeout::NONE) {
                Ok(_) | Err(Errno::EINTR) => {}
                Err(errno) => return Err(HostError::system("wait for a netlink socket", errno)),
            }
        }
    }

    /// Sends a request and waits until the kernel has executed it.
    ///
    /// # Errors
    /// If the kernel rejects it.
    pub fn execute(&mut self, request: Request) -> Result<(), HostError> {
        let mut failures = self.execute_all([request])?;
        failures.pop().map_or(Ok(()), |failure| Err(failure.into()))
    }

    /// Sends requests in order, many at once, and waits until the kernel has processed all of them. Returns
    /// the rejected ones; the others have been executed.
    ///
    /// # Errors
    /// If the socket itself fails.
    pub fn execute_all(
        &mut self,
        requests: impl IntoIterator<Item = Request>,
    ) -> Result<Vec<Failure>, HostError> {
        let mut requests = requests.into_iter().peekable();
        let (mut failures, mut before) = (Vec::new(), 0);
        let mut batch: Vec<Request> = Vec::with_capacity(BATCH_REQUESTS);
        while requests.peek().is_some() {
            batch.clear();
            let mut bytes = 0;
            while let Some(request) = requests.next_if(|request| {
                batch.len() < BATCH_REQUESTS
                    && (batch.is_empty() || bytes + request.bytes.len() <= BATCH_BYTES)
            }) {
                bytes += request.bytes.len();
                batch.push(request);
            }
            self.batch(&mut batch, before, &mut failures)?;
            before += batch.len();
        }
        Ok(failures)
    }

    /// Only the last request asks for an acknowledgement; the kernel always reports rejected requests.
    fn batch(
        &mut self,
        batch: &mut [Request],
        before: usize,
        failures: &mut Vec<Failure>,
    ) -> Result<(), HostError> {
        if self.sequence > u32::MAX / 2 {
            // Sequence numbers of a batch are consecutive.
            self.sequence = 0;
        }
        let (first, count) = (self.sequence + 1, batch.len());
        let mut bytes = Vec::with_capacity(BATCH_BYTES);
        for (index, request) in batch.iter_mut().enumerate() {
            let flags = if index + 1 == count { libc::NLM_F_ACK } else { 0 };
            bytes.extend_from_slice(request.seal(self.next(), flags));
        }
        let last = self.sequence;
        let what = batch.first().map(|request| request.what().to_owned()).unwrap_or_default();
        send(self.fd.as_raw_fd(), &bytes, MsgFlags::empty())
            .map_err(|errno| HostError::system(what.as_str(), errno))?;
        let mut answered = false;
        while !answered {
            let received = self.wait(|incoming| match incoming {
                Incoming::Acknowledged { sequence } => answered |= sequence == last,
                Incoming::Failed { sequence, errno, reason } => {
                    let index = sequence.wrapping_sub(first) as usize;
                    if let Some(request) = batch.get(index) {
                        let what = request.what().to_owned();
                        failures.push(Failure { index: before + index, what, errno, reason });
                        answered |= sequence == last;
                    }
                }
                Incoming::Message(_) | Incoming::Done { .. } => {}
            })?;
            if received == Received::Overrun {
                return Err(HostError::system(what, Errno::ENOBUFS));
            }
        }
        Ok(())
    }

    /// Dumps all objects of several types, one after the other; see [`Socket::dump`].
    ///
    /// # Errors
    /// If the kernel rejects one.
    pub fn dump_all<T>(
        &mut self,
        dumps: impl IntoIterator<Item = Dump>,
        mut read: impl FnMut(Message<'_>) -> Option<T>,
    ) -> Result<Vec<T>, HostError> {
        let mut found = Vec::new();
        for dump in dumps {
            found.extend(self.dump(dump, &mut read)?);
        }
        Ok(found)
    }

    /// Dumps all objects of a type; `read` selects and converts them. A dump that changes disturb is repeated
    /// a few times.
    ///
    /// # Errors
    /// If the kernel rejects it.
    pub fn dump<T>(
        &mut self,
        dump: Dump,
        mut read: impl FnMut(Message<'_>) -> Option<T>,
    ) -> Result<Vec<T>, HostError> {
        let mut found = Vec::new();
        for _ in 0..DUMP_TRIES {
            found.clear();
            let dumped = self.send_dump(dump)?;
            let (mut end, mut failure) = (None, None);
            let mut disturbed = false;
            while end.is_none() && failure.is_none() {
                let received = self.wait(|incoming| match incoming {
                    Incoming::Message(message) if message.sequence == dumped => {
                        disturbed |= message.flags & DUMP_INTERRUPTED != 0;
                        found.extend(read(message));
                    }
                    Incoming::Done { sequence, interrupted } if sequence == dumped => end = Some(interrupted),
                    Incoming::Failed { sequence, errno, reason } if sequence == dumped => {
                        failure = Some((errno, reason));
                    }
                    _ => {}
                })?;
                if received == Received::Overrun {
                    // A notification on a socket that also receives notifications. The dump waits meanwhile.
                    continue;
                }
            }
            match failure {
                Some((Errno::EINTR | Errno::EAGAIN, _)) => {}
                Some((errno, reason)) => {
                    return Err(refused(dump.request().what().to_owned(), errno, reason));
                }
                None if end == Some(false) && !disturbed => break,
                None => {}
            }
        }
        Ok(found)
    }

    fn next(&mut self) -> u32 {
        // 0 is the sequence number of notifications.
        self.sequence = self.sequence.wrapping_add(1).max(1);
        self.sequence
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Splits off the first message.
fn split(bytes: &[u8]) -> Option<(Message<'_>, &[u8])> {
    let head: [u8; HEADER_BYTES] = bytes.get(..HEADER_BYTES)?.try_into().ok()?;
    let word = |at: usize| u32::from_ne_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    let half = |at: usize| u16::from_ne_bytes([head[at], head[at + 1]]);
    let length = usize::try_from(word(0)).ok()?;
    let payload = bytes.get(HEADER_BYTES..length)?;
    let next = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
    Some((Message { kind: half(4), flags: half(6), sequence: word(8), payload }, next))
}

fn incoming(message: Message<'_>) -> Option<Incoming<'_>> {
    let sequence = message.sequence;
    match i32::from(message.kind) {
        libc::NLMSG_NOOP => None,
        libc::NLMSG_DONE => {
            let code = number(message.payload);
            if code < 0 {
                return Some(Incoming::Failed {
                    sequence,
                    errno: Errno::from_raw(-code),
                    reason: String::new(),
                });
            }
            Some(Incoming::Done { sequence, interrupted: message.flags & DUMP_INTERRUPTED != 0 })
        }
        libc::NLMSG_ERROR => match number(message.payload) {
            0 => Some(Incoming::Acknowledged { sequence }),
            code => {
                let reason = reason(message).unwrap_or_default();
                Some(Incoming::Failed { sequence, errno: Errno::from_raw(code.wrapping_neg()), reason })
            }
        },
        _ => Some(Incoming::Message(message)),
    }
}

fn number(payload: &[u8]) -> i32 {
    payload.first_chunk().map_or(0, |bytes| i32::from_ne_bytes(*bytes))
}

/// The reason in an error message: if present, it follows the error number and the header of the request.
fn reason(message: Message<'_>) -> Option<String> {
    const HAS_ATTRIBUTES: u16 = 0x200;
    const MESSAGE: u16 = 1;
    if message.flags & HAS_ATTRIBUTES == 0 {
        return None;
    }
    let attributes = message.payload.get(4 + HEADER_BYTES..)?;
    let text = super::Attributes(attributes).find(|(kind, _)| *kind == MESSAGE)?.1;
    let text = text.strip_suffix(&[0]).unwrap_or(text);
    Some(String::from_utf8_lossy(text).into_owned())
}

/// Enables a netlink option.
fn option(fd: &OwnedFd, option: i32) -> Result<(), HostError> {
    let on: libc::c_int = 1;
    // SAFETY: the pointer is to a live c_int and the length is its size; the descriptor is open.
    let code = unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            libc::SOL_NETLINK,
            option,
            (&raw const on).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    if code == 0 { Ok(()) } else { Err(HostError::last("set up a netlink socket")) }
}
