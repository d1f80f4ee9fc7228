//! A port over packet sockets, for interfaces where AF_XDP does not work.
//!
//! Flow: driver → ring of the receiving socket → copied into slots → worker → `sendmmsg` → driver. The receiving
//! socket does not receive the frames that we send; the sending socket bypasses the queueing discipline. Data that
//! the kernel keeps outside a frame is put back into it: a VLAN tag, and the checksum that a sender on the same
//! machine left to its NIC. A segment longer than a slot (NICs and kernels merge segments) is dropped and counted:
//! disable segmentation offload at the other end. Invariants: arrays of message headers are made once; their pointers
//! are set right before each call. Source: packet(7), Linux `net/packet/af_packet.c`,
//! `include/uapi/linux/virtio_net.h`.

#![allow(unsafe_code)]

mod receive;

use std::cell::Cell;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use receive::{Next, Receiver};

use crate::pool::Region;
use crate::{Driver, DriverCounters, Ending, Keep, Packet, Pool, Port, PortError, sys};

/// Maximum number of packets in one system call.
const BATCH: usize = 64;
/// Bytes that the kernel may queue for sending.
const SEND_BUFFER_BYTES: i32 = 16 << 20;
/// How often an idle port checks that its interface still exists.
const CHECK_NS: u64 = 100_000_000;
/// Ethernet header, bytes.
const LINK_BYTES: u32 = 14;

/// Arguments of `sendmmsg`, one entry per packet.
struct Messages {
    heads: Vec<libc::mmsghdr>,
    parts: Vec<libc::iovec>,
}

// SAFETY: the pointers inside are set from borrowed memory right before each system call and not used after it.
unsafe impl Send for Messages {}

impl Messages {
    fn new() -> Self {
        // SAFETY: C structures of integers and pointers: all zero is valid.
        let head: libc::mmsghdr = unsafe { std::mem::zeroed() };
        let part = libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 };
        Self { heads: vec![head; BATCH], parts: vec![part; BATCH] }
    }

    /// Entry `at` sends `frame`.
    fn offer(&mut self, at: usize, frame: &[u8]) {
        let part = &mut self.parts[at];
        *part = libc::iovec { iov_base: frame.as_ptr().cast_mut().cast(), iov_len: frame.len() };
        let head = &mut self.heads[at].msg_hdr;
        head.msg_iov = part;
        head.msg_iovlen = 1;
    }

    /// Sends the first packets in one system call. Returns how many the system accepted.
    fn send(&mut self, socket: &OwnedFd, pool: &Pool, packets: &[Packet]) -> io::Result<usize> {
        let count = packets.len().min(BATCH);
        for (at, packet) in packets.iter().take(count).enumerate() {
            self.offer(at, packet.bytes(pool));
        }
        // SAFETY: `count` entries were set just above to frames in the pool, which is borrowed.
        let sent = sys::check(unsafe {
            libc::sendmmsg(socket.as_raw_fd(), self.heads.as_mut_ptr(), count as u32, libc::MSG_DONTWAIT)
        })?;
        Ok(sent as usize)
    }
}

/// How many of the frames given to [`PacketSocket::offer`] the system accepted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Offered {
    /// This many of the first frames, at least one.
    Taken(usize),
    /// None at the moment, because its queue is full.
    Full,
    /// None, because the first frame can never be sent: it is longer than the MTU or shorter than an Ethernet header.
    Unfit,
}

/// A port over packet sockets.
pub struct PacketSocket {
    name: String,
    receiver: Receiver,
    sender: OwnedFd,
    outgoing: Messages,
    queued: Vec<Packet>,
    counters: DriverCounters,
    failure: Option<i32>,
    checked_ns: u64,
    kernel_times: bool,
    /// Frames lost because the ring was full. Reading the kernel's count resets it, so it is summed up here.
    lost: Cell<u64>,
    /// Dropped last.
    _keep: Option<Keep>,
}

impl PacketSocket {
    /// Opens `interface` in the network namespace of the calling thread. In each direction, `ring` packets may be
    /// queued.
    ///
    /// # Errors
    /// `Gone` if the interface does not exist, `Unfit` if its frames do not fit into a slot, `System` without
    /// permission.
    pub fn open(interface: &str, ring: u32, region: &Region) -> Result<Self, PortError> {
        let wrong = |action| move |source| PortError::of(interface, action, source);
        let found = sys::interface(interface).map_err(wrong("find the interface"))?;
        let longest = found.mtu + LINK_BYTES;
        if longest > region.frame_bytes_max() {
            return Err(PortError::Unfit {
                interface: interface.to_owned(),
                driver: "packet",
                found: format!(
                    "frames of {longest} bytes (MTU {}) do not fit slots for {}",
                    found.mtu,
                    region.frame_bytes_max()
                ),
            });
        }
        let ring = ring.max(1);
        Ok(Self {
            name: interface.to_owned(),
            receiver: Receiver::open(found.index, ring, region.slot_bytes())
                .map_err(wrong("open a packet socket to receive"))?,
            sender: sender(found.index).map_err(wrong("open a packet socket to send"))?,
            outgoing: Messages::new(),
            queued: Vec::with_capacity(ring as usize),
            counters: DriverCounters::default(),
            failure: None,
            checked_ns: 0,
            kernel_times: false,
            lost: Cell::new(0),
            _keep: None,
        })
    }

    /// Keeps a descriptor open until the port itself is dropped.
    #[must_use]
    pub(crate) fn keeping(mut self, keep: Option<Keep>) -> Self {
        self._keep = keep;
        self
    }

    /// Gives received packets the time at which the kernel received them, nanoseconds since the Unix epoch, instead
    /// of the caller's.
    #[must_use]
    pub fn with_kernel_times(self) -> Self {
        Self { kernel_times: true, ..self }
    }

    /// Sends packets immediately in one system call, at most a batch. The caller keeps the packets and their slots,
    /// because the system copies the packets that it accepts.
    ///
    /// # Errors
    /// `Gone` if the interface was removed.
    pub fn offer(&mut self, pool: &Pool, packets: &[Packet]) -> Result<Offered, PortError> {
        if let Some(code) = self.failure {
            return Err(self.gone(code));
        }
        if packets.is_empty() {
            return Ok(Offered::Full);
        }
        match self.outgoing.send(&self.sender, pool, packets) {
            Ok(sent) => {
                self.counters.count_sent(&packets[..sent]);
                Ok(Offered::Taken(sent))
            }
            Err(error) => match error.raw_os_error() {
                Some(libc::EAGAIN | libc::EINTR | libc::ENOBUFS | libc::ENOMEM) => Ok(Offered::Full),
                Some(libc::EMSGSIZE | libc::EINVAL) => Ok(Offered::Unfit),
                _ => Err(self.failed("send", error)),
            },
        }
    }

    fn gone(&self, code: i32) -> PortError {
        PortError::of(&self.name, "use the interface", io::Error::from_raw_os_error(code))
    }

    /// Records a permanent failure.
    fn failed(&mut self, action: &'static str, error: io::Error) -> PortError {
        let code = error.raw_os_error();
        let error = PortError::of(&self.name, action, error);
        if error.is_gone() {
            self.failure = code;
        }
        error
    }

    /// Sends queued packets from index `from` in one system call. Returns how many are finished, sent or not.
    fn send_batch(&mut self, pool: &Pool, from: usize) -> Result<usize, PortError> {
        match self.outgoing.send(&self.sender, pool, &self.queued[from..]) {
            Ok(sent) => {
                self.counters.count_sent(&self.queued[from..from + sent]);
                Ok(sent)
            }
            Err(error) => match error.raw_os_error() {
                Some(libc::EAGAIN | libc::EINTR) => Ok(0),
                // The first packet was not accepted: it is longer than the MTU, or the driver's queue is full.
                Some(libc::EMSGSIZE | libc::ENOBUFS | libc::EINVAL | libc::ENOMEM) => {
                    self.counters.send_failed += 1;
                    Ok(1)
                }
                _ => Err(self.failed("send", error)),
            },
        }
    }
}

fn sender(interface: u32) -> io::Result<OwnedFd> {
    let socket = sys::socket(libc::AF_PACKET, libc::SOCK_RAW, 0)?;
    sys::set_option(&socket, libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, &1i32)?;
    sys::grow_buffer(&socket, libc::SO_SNDBUFFORCE, libc::SO_SNDBUF, SEND_BUFFER_BYTES);
    bind(&socket, interface, 0)?; // with protocol 0 it receives nothing
    Ok(socket)
}

fn bind(socket: &OwnedFd, interface: u32, protocol: u16) -> io::Result<()> {
    // SAFETY: a C structure of integers: all zero is valid.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = protocol.to_be();
    address.sll_ifindex = interface as i32;
    let size = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    // SAFETY: `address` is a socket address of `size` bytes.
    sys::check(unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), size) }).map(|_| ())
}

impl Port for PacketSocket {
    fn driver(&self) -> Driver {
        Driver::Packet
    }

    fn ending(&self) -> Ending {
        Ending::SlowDrop
    }

    fn receive(
        &mut self,
        pool: &mut Pool,
        now_ns: u64,
        into: &mut Vec<Packet>,
        limit: usize,
    ) -> Result<usize, PortError> {
        if let Some(code) = self.failure {
            return Err(self.gone(code));
        }
        let mut received = 0;
        for _ in 0..limit {
            match self.receiver.next(pool, now_ns, self.kernel_times) {
                Next::Packet(packet) => {
                    self.counters.received_bytes += u64::from(packet.len);
                    into.push(packet);
                    received += 1;
                }
                Next::Unusable => self.counters.ring_full += 1,
                Next::NoSlot | Next::Nothing => break,
            }
        }
        self.counters.received_packets += received as u64;
        if received == 0 && now_ns.wrapping_sub(self.checked_ns) > CHECK_NS {
            self.checked_ns = now_ns;
            if let Some(error) = self.receiver.error() {
                return Err(self.failed("receive", error));
            }
        }
        Ok(received)
    }

    fn send(&mut self, _pool: &mut Pool, packet: Packet) -> Result<(), Packet> {
        if self.queued.len() == self.queued.capacity() {
            return Err(packet);
        }
        self.queued.push(packet);
        Ok(())
    }

    fn flush(&mut self, pool: &mut Pool) -> Result<(), PortError> {
        if let Some(code) = self.failure {
            return Err(self.gone(code));
        }
        let mut done = 0;
        let mut outcome = Ok(());
        while done < self.queued.len() {
            match self.send_batch(pool, done) {
                Ok(0) => break,
                Ok(count) => done += count,
                Err(error) => {
                    outcome = Err(error);
                    break;
                }
            }
        }
        for packet in self.queued.drain(..done) {
            pool.give(packet.slot);
        }
        outcome
    }

    fn close(&mut self, pool: &mut Pool) {
        for packet in self.queued.drain(..) {
            pool.give(packet.slot);
        }
        self.failure = Some(libc::EBADF);
    }

    fn readiness(&self) -> Option<BorrowedFd<'_>> {
        Some(self.receiver.fd.as_fd())
    }

    fn pending(&self) -> usize {
        self.queued.len()
    }

    fn counters(&self) -> DriverCounters {
        self.lost.set(self.lost.get() + self.receiver.dropped());
        let mut counters = self.counters;
        counters.ring_full += self.lost.get();
        counters
    }
}
