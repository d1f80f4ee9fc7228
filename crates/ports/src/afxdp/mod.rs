//! A port over AF_XDP: rings shared with the kernel, with an XDP program in front of them.
//!
//! Flow: driver → XDP program (class, quota) → receive ring → worker → transmit ring → driver. Each receive queue has
//! a socket. The port's worker serves all of them; the first one also sends. Each socket registers the worker's whole
//! pool as its packet memory, so that a frame received here can leave through any port of the worker without a copy
//! by us. Invariants: a slot that the kernel may write to or has not finished sending is marked as held, and `close`
//! returns held slots; closing a socket waits until the kernel no longer uses the memory. Source: Linux
//! `Documentation/networking/af_xdp.rst`, `net/xdp/xsk.c`.

mod attachment;
mod program;
mod redirect;
mod ring;
mod share;

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

pub use attachment::Attachment;
pub use program::{GroupLimits, prepare};
use program::{Program, QUEUES_MAX, index_of};
pub use redirect::XdpRedirect;
use ring::{BUSY_STEP, Socket};
use share::Share;

use crate::pool::Region;
use crate::sys::{self, Readiness};
use crate::{
    ClassLosses, ClassRule, Driver, DriverCounters, Ending, HEADROOM_BYTES, Keep, Opened, Packet, Pool, Port,
    PortError, Slot,
};

/// Ethernet header and one VLAN tag, bytes.
const LINK_BYTES: u32 = 18;
/// Shorter frames are not handed to the kernel.
const FRAME_BYTES_MIN: u32 = 14;
/// How often an idle port checks that its interface still exists.
const CHECK_NS: u64 = 100_000_000;
/// Maximum number of system calls in one flush while the kernel accepts packets.
const KICKS_MAX: usize = 8;
/// How long to wait until a NIC that writes into our memory releases it. The kernel does not report when it has.
const ZERO_COPY_RELEASE: Duration = Duration::from_millis(50);

/// `struct meta` of the program, right before the frame.
const META_BYTES: usize = 8;
const META_MAGIC: u16 = 0x4855;

/// How to open an [`AfXdp`] port.
#[derive(Clone, Copy, Debug)]
pub struct AfXdpOptions {
    /// Entries of each ring, a power of two.
    pub ring: u32,
    /// Whether frames that belong to no network here are handed to the kernel instead of being dropped.
    pub pass_unknown: bool,
    /// Limits of frames to group addresses.
    pub group: GroupLimits,
    /// Whether only the kernel's generic hook is tried. It is slower, but works with any driver.
    pub generic: bool,
    /// How long to wait for another process to close the interface's queues and detach its program.
    pub busy_for: Duration,
}

impl Default for AfXdpOptions {
    fn default() -> Self {
        let group = GroupLimits::default();
        Self { ring: 2048, pass_unknown: false, group, generic: false, busy_for: Duration::ZERO }
    }
}

/// The slots that the kernel holds.
struct Held(Vec<u64>);

impl Held {
    fn new(slots: u32) -> Self {
        Self(vec![0; (slots as usize).div_ceil(64)])
    }

    #[inline]
    fn set(&mut self, slot: u32) {
        self.0[slot as usize / 64] |= 1 << (slot % 64);
    }

    /// Marks the slot as not held; returns whether it was held.
    #[inline]
    fn clear(&mut self, slot: u32) -> bool {
        let Some(word) = self.0.get_mut(slot as usize / 64) else { return false };
        let bit = 1 << (slot % 64);
        let was = *word & bit != 0;
        *word &= !bit;
        was
    }
}

struct Queue {
    socket: Socket,
    /// Slots that the fill ring should still get.
    wanted: u32,
}

/// A port over AF_XDP.
pub struct AfXdp {
    name: String,
    region: Region,
    queues: Vec<Queue>,
    /// Queue that is served first in the next round.
    first: usize,
    program: Option<Program>,
    share: Share,
    held: Held,
    counters: DriverCounters,
    /// Whether the transmit ring has packets that were not published to the kernel yet.
    unpublished: bool,
    zero_copy: bool,
    failure: Option<i32>,
    checked_ns: u64,
    readiness: Option<Readiness>,
    /// Keeps the interface promiscuous.
    promiscuous: Option<OwnedFd>,
    /// Dropped when another process can have the interface.
    keep: Option<Keep>,
}

impl AfXdp {
    /// Opens `interface`, in the network namespace of the calling thread, over a pool's memory. The native hook is
    /// tried first, then the generic one; the second value says why the native hook is not used.
    ///
    /// The pool's slots are taken by the first [`Port::receive`], so this may run on a thread other than the pool's.
    ///
    /// # Errors
    /// `Gone` if the interface does not exist, `Unfit` if its frames do not fit into a slot, `System` if the kernel
    /// refuses (no permission, no AF_XDP, another program attached, limit of locked memory).
    pub fn open(
        interface: &str,
        options: &AfXdpOptions,
        region: &Region,
    ) -> Result<(Self, Option<String>), PortError> {
        Self::prepare(interface, options, region)?.bind()
    }

    /// Does what is possible while another process has the interface: loads the program, registers the memory.
    ///
    /// # Errors
    /// As [`AfXdp::open`].
    pub fn prepare(interface: &str, options: &AfXdpOptions, region: &Region) -> Result<Prepared, PortError> {
        let found = sys::interface(interface)
            .map_err(|source| PortError::of(interface, "find the interface", source))?;
        let longest = found.mtu + LINK_BYTES;
        if longest > region.frame_bytes_max() {
            return Err(PortError::Unfit {
                interface: interface.to_owned(),
                driver: "afxdp",
                found: format!(
                    "frames of {longest} bytes (MTU {}) do not fit slots for {}",
                    found.mtu,
                    region.frame_bytes_max()
                ),
            });
        }
        let queues = sys::receive_queues(interface)
            .map_err(|source| PortError::of(interface, "count the receive queues", source))?;
        if queues > QUEUES_MAX {
            return Err(PortError::Unfit {
                interface: interface.to_owned(),
                driver: "afxdp",
                found: format!("it has {queues} receive queues, expected at most {QUEUES_MAX}"),
            });
        }
        let program = Program::load(queues, options.pass_unknown, options.group)
            .map_err(|source| PortError::of(interface, "load the XDP program", source))?;
        // Before the process that has the interface ends: the kernel may wait when an interface becomes promiscuous.
        let promiscuous = sys::promiscuous(found.index)
            .map_err(|source| PortError::of(interface, "receive frames to any MAC", source))?;
        let sockets = (0..queues).map(|queue| {
            Socket::open(region, options.ring, queue == 0)
                .map_err(|(action, source)| refused(interface, action, source))
        });
        Ok(Prepared {
            interface: interface.to_owned(),
            index: found.index,
            region: region.clone(),
            options: *options,
            attachment: None,
            program,
            promiscuous,
            sockets: sockets.collect::<Result<_, _>>()?,
        })
    }

    /// Keeps a descriptor open until the port is released.
    #[must_use]
    pub(crate) fn keeping(mut self, keep: Option<Keep>) -> Self {
        self.keep = keep;
        self
    }

    /// Fills the fill rings now instead of at the first [`Port::receive`].
    pub fn fill(&mut self, pool: &mut Pool) {
        if self.region.is_of(pool) {
            for queue in &mut self.queues {
                refill(queue, &mut self.held, pool);
            }
        }
    }

    fn gone(&self, code: i32) -> PortError {
        PortError::of(&self.name, "use the interface", io::Error::from_raw_os_error(code))
    }

    /// Receives packets of a queue, at most `limit`.
    fn receive_queue(
        &mut self,
        number: usize,
        pool: &mut Pool,
        now_ns: u64,
        into: &mut Vec<Packet>,
        limit: u32,
    ) -> usize {
        let queue = &mut self.queues[number];
        let ready = queue.socket.received.ready(limit);
        if ready > 0 {
            let policed = self.program.as_ref().filter(|program| program.describes());
            let before = into.len();
            for ahead in 0..ready {
                let entry = queue.socket.received.read(ahead);
                let index = entry.addr as u32 / self.region.slot_bytes();
                if !self.held.clear(index) {
                    continue; // not an address of ours: there is no slot to keep
                }
                let (start, len) = (entry.addr as u32, entry.len);
                prefetch(pool, start, policed.is_some());
                self.counters.received_bytes += u64::from(len);
                into.push(Packet { slot: Slot::from_index(index), start, len, time_ns: now_ns, class: 0 });
            }
            queue.socket.received.release(ready);
            queue.wanted += ready;
            if let Some(program) = policed {
                for packet in &mut into[before..] {
                    if let Some((class, index, order)) = take_meta(pool, packet.start) {
                        packet.class = class;
                        self.share.arrived(&program.consumed, number, index, order);
                    }
                }
            }
        }
        if queue.wanted > 0 {
            refill(queue, &mut self.held, pool);
        }
        ready as usize
    }

    /// Takes back the slots of packets that were sent.
    fn reap(&mut self, pool: &mut Pool) {
        let Some(queue) = self.queues.first_mut() else { return };
        let done = queue.socket.completed.ready(u32::MAX);
        for ahead in 0..done {
            let index = queue.socket.completed.read(ahead) as u32 / self.region.slot_bytes();
            if self.held.clear(index) {
                pool.give(Slot::from_index(index));
            }
        }
        if done > 0 {
            queue.socket.completed.release(done);
        }
    }

    /// Publishes queued packets to the kernel and makes it send them.
    fn transmit(&mut self) -> Result<(), PortError> {
        let Some(socket) = self.queues.first().map(|queue| &queue.socket) else { return Ok(()) };
        let Some(ring) = &socket.transmit else { return Ok(()) };
        if self.unpublished {
            ring.publish();
            self.unpublished = false;
        }
        let mut waiting = ring.waiting();
        for _ in 0..KICKS_MAX {
            if waiting == 0 || !ring.needs_wakeup() {
                break;
            }
            match socket.kick() {
                Ok(()) => {}
                Err(error) => match error.raw_os_error() {
                    // The kernel used up its budget for one call, has no room at the moment, or did not accept one
                    // packet.
                    Some(libc::EAGAIN | libc::EBUSY | libc::ENOBUFS | libc::EINTR | libc::ENOMEM) => {}
                    code => {
                        self.failure = code;
                        return Err(PortError::of(&self.name, "send", error));
                    }
                },
            }
            let left = ring.waiting();
            if left == waiting {
                break;
            }
            waiting = left;
        }
        Ok(())
    }
}

/// A port that is ready but for the interface's queues.
pub struct Prepared {
    interface: String,
    index: u32,
    region: Region,
    options: AfXdpOptions,
    /// The attachment of the program of the process that has the interface.
    attachment: Option<Attachment>,
    program: Program,
    promiscuous: OwnedFd,
    /// One for each queue.
    sockets: Vec<Socket>,
}

impl Prepared {
    /// Whether it is for the interface with this index, and this packet memory.
    #[must_use]
    pub fn is_for(&self, index: u32, region: &Region) -> bool {
        self.index == index && self.region.is(region)
    }

    /// Takes over the attachment of the program of the process that has the interface, to the driver's hook.
    #[must_use]
    pub fn with_attachment(self, attachment: Option<Attachment>) -> Self {
        Self { attachment, ..self }
    }

    /// The port, once the other process has given the queues back. It keeps a descriptor.
    ///
    /// # Errors
    /// As [`AfXdp::open`].
    pub fn open(self, keep: Option<Keep>) -> Result<Opened, PortError> {
        let (port, note) = self.bind()?;
        Ok(Opened { port: Box::new(port.keeping(keep)), note })
    }

    /// Takes the queues and attaches the program.
    fn bind(self) -> Result<(AfXdp, Option<String>), PortError> {
        let Self { interface, index, region, options, attachment, mut program, promiscuous, sockets } = self;
        let count = sockets.len();
        let mut opened = Vec::with_capacity(count);
        for (mut socket, queue) in sockets.into_iter().zip(0..) {
            socket
                .bind(index, queue, options.busy_for)
                .map_err(|(action, source)| refused(&interface, action, source))?;
            program
                .set_socket(queue, &socket.fd)
                .map_err(|source| PortError::of(&interface, "give the XDP program its socket", source))?;
            opened.push(Queue { socket, wanted: options.ring });
        }
        let note = match attachment {
            Some(attachment) => {
                program.inherit(attachment).map_err(|source| {
                    PortError::of(&interface, "replace the XDP program of the process before", source)
                })?;
                None
            }
            None => attach(&mut program, &interface, index, &options)?,
        };
        let readiness = match &opened[..] {
            [_] => None,
            many => Some(
                Readiness::of(many.iter().map(|queue| queue.socket.fd.as_fd()))
                    .map_err(|source| PortError::of(&interface, "watch the queues", source))?,
            ),
        };
        let port = AfXdp {
            name: interface,
            first: 0,
            program: Some(program),
            share: Share::new(count),
            held: Held::new(region.slots()),
            region,
            counters: DriverCounters::default(),
            unpublished: false,
            zero_copy: opened.iter().all(|queue| queue.socket.zero_copy),
            queues: opened,
            failure: None,
            checked_ns: 0,
            readiness,
            promiscuous: Some(promiscuous),
            keep: None,
        };
        Ok((port, note))
    }
}

/// Takes slots from the pool for a queue's fill ring, as far as it lacks them.
fn refill(queue: &mut Queue, held: &mut Held, pool: &mut Pool) {
    let room = queue.socket.fill.room(queue.wanted);
    let mut filled = 0;
    while filled < room {
        let Some(slot) = pool.take() else { break };
        held.set(slot.index());
        queue.socket.fill.write(u64::from(slot.index()) * u64::from(pool.slot_bytes()));
        filled += 1;
    }
    if filled > 0 {
        queue.wanted -= filled;
        queue.socket.fill.publish();
        if queue.socket.zero_copy && queue.socket.fill.needs_wakeup() {
            sys::poke(queue.socket.fd.as_fd());
        }
    }
}

/// Returns what the program wrote before the frame: its class, its index and the frame's number. Erases it, so that
/// it is not found again when the slot is used on another path.
#[inline]
fn take_meta(pool: &mut Pool, start: u32) -> Option<(u16, usize, u32)> {
    let start = start as usize;
    let meta = pool.bytes_mut().get_mut(start.checked_sub(META_BYTES)?..start)?;
    let magic = u16::from_ne_bytes([meta[0], meta[1]]);
    let class = u16::from_ne_bytes([meta[2], meta[3]]);
    let number = u32::from_ne_bytes([meta[4], meta[5], meta[6], meta[7]]);
    if magic != META_MAGIC {
        return None;
    }
    meta.fill(0);
    Some((class, index_of(class)?, number))
}

/// Prefetches the frame's first bytes, because another CPU has just written them.
#[inline]
fn prefetch(pool: &Pool, start: u32, meta: bool) {
    let start = start as usize;
    if let Some(bytes) = pool.bytes().get(start..) {
        sys::prefetch(bytes);
    }
    if meta && let Some(bytes) = pool.bytes().get(start.saturating_sub(META_BYTES)..) {
        sys::prefetch(bytes);
    }
}

fn refused(interface: &str, action: &'static str, source: io::Error) -> PortError {
    let hint = match source.raw_os_error() {
        Some(libc::ENOBUFS | libc::ENOMEM) => "raise the limit of locked memory or grant CAP_IPC_LOCK",
        Some(libc::EBUSY) => "another program uses this queue with AF_XDP",
        Some(libc::EAFNOSUPPORT) => "this kernel has no AF_XDP",
        _ => return PortError::of(interface, action, source),
    };
    PortError::System { interface: interface.to_owned(), action, source, hint }
}

/// Whether another program is attached, which the kernel reports as either.
fn is_busy(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EBUSY | libc::EEXIST))
}

/// Attaches the program natively if possible, otherwise generically, and says why in the second case.
fn attach(
    program: &mut Program,
    interface: &str,
    index: u32,
    options: &AfXdpOptions,
) -> Result<Option<String>, PortError> {
    let wrong = |source: io::Error| match source.raw_os_error() {
        _ if is_busy(&source) => PortError::System {
            interface: interface.to_owned(),
            action: "attach the XDP program",
            source,
            hint: "another XDP program is attached: ip link set dev IF xdp off",
        },
        _ => PortError::of(interface, "attach the XDP program", source),
    };
    let first = if options.generic {
        "generic XDP was requested".to_owned()
    } else {
        let begin = Instant::now();
        let native = loop {
            match program.attach(index, true) {
                Err(error) if is_busy(&error) && begin.elapsed() < options.busy_for => {
                    std::thread::sleep(BUSY_STEP);
                }
                attached => break attached,
            }
        };
        match native {
            Ok(()) => return Ok(None),
            Err(error) => format!("generic XDP, because the driver does not accept the program: {error}"),
        }
    };
    program.attach(index, false).map_err(wrong)?;
    Ok(Some(first))
}

impl Port for AfXdp {
    fn driver(&self) -> Driver {
        Driver::AfXdp { zero_copy: self.zero_copy }
    }

    fn ending(&self) -> Ending {
        Ending::SlowRelease
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
        debug_assert!(self.region.is_of(pool), "a port is used with the pool it was opened for");
        let mut received = 0;
        let queues = self.queues.len();
        for turn in 0..queues {
            let number = (self.first + turn) % queues;
            let limit = u32::try_from(limit - received).unwrap_or(u32::MAX);
            received += self.receive_queue(number, pool, now_ns, into, limit);
        }
        self.counters.received_packets += received as u64;
        if queues > 1 {
            self.first = (self.first + 1) % queues;
        }
        if received == 0 && now_ns.wrapping_sub(self.checked_ns) > CHECK_NS {
            self.checked_ns = now_ns;
            let error = self.queues.first().and_then(|queue| queue.socket.error());
            if let Some(code) = error.and_then(|error| error.raw_os_error()) {
                self.failure = Some(code);
                return Err(self.gone(code));
            }
            if self.pending() > 0 {
                self.flush(pool)?;
            }
        }
        Ok(received)
    }

    fn send(&mut self, pool: &mut Pool, packet: Packet) -> Result<(), Packet> {
        let base = packet.slot.index() * self.region.slot_bytes();
        let within = packet.start.wrapping_sub(base);
        // The kernel would not return the slot of a packet that it refuses, so such packets are refused here.
        if packet.len < FRAME_BYTES_MIN
            || u64::from(within) + u64::from(packet.len) > u64::from(self.region.slot_bytes())
        {
            self.counters.send_failed += 1;
            pool.give(packet.slot);
            return Ok(());
        }
        let Some(ring) = self.queues.first_mut().and_then(|queue| queue.socket.transmit.as_mut()) else {
            return Err(packet);
        };
        if ring.room(1) == 0 {
            return Err(packet);
        }
        ring.write(libc::xdp_desc { addr: u64::from(packet.start), len: packet.len, options: 0 });
        self.held.set(packet.slot.index());
        self.unpublished = true;
        self.counters.sent_packets += 1;
        self.counters.sent_bytes += u64::from(packet.len);
        Ok(())
    }

    fn flush(&mut self, pool: &mut Pool) -> Result<(), PortError> {
        if let Some(code) = self.failure {
            return Err(self.gone(code));
        }
        self.reap(pool);
        self.transmit()
    }

    fn release(&mut self) {
        self.counters = self.counters();
        self.readiness = None;
        let (program, promiscuous) = (self.program.take(), self.promiscuous.take());
        let queues = std::mem::take(&mut self.queues);
        if queues.is_empty() {
            return; // released before
        }
        // For each, the kernel waits until no processor uses it: together, these take as long as one. Without a thread,
        // what it should drop is dropped here. Nobody has to wait for the promiscuous mode, which is counted.
        let _ = std::thread::Builder::new().spawn(move || drop(promiscuous));
        std::thread::scope(|scope| {
            let _ = std::thread::Builder::new().spawn_scoped(scope, || drop(program));
            drop(queues);
        });
        // Another process can have the interface now.
        self.keep = None;
        if self.zero_copy {
            std::thread::sleep(ZERO_COPY_RELEASE);
        }
    }

    fn close(&mut self, pool: &mut Pool) {
        self.release();
        for slot in 0..self.region.slots() {
            if self.held.clear(slot) {
                pool.give(Slot::from_index(slot));
            }
        }
    }

    fn readiness(&self) -> Option<BorrowedFd<'_>> {
        match &self.readiness {
            Some(many) => Some(many.fd()),
            None => self.queues.first().map(|queue| queue.socket.fd.as_fd()),
        }
    }

    fn pending(&self) -> usize {
        let ring = self.queues.first().and_then(|queue| queue.socket.transmit.as_ref());
        ring.map_or(0, |ring| ring.waiting() as usize)
    }

    fn consumed(&mut self, class: u16, count: u32) {
        if let (Some(program), Some(index)) = (&self.program, index_of(class)) {
            self.share.consume(&program.consumed, index, count);
        }
    }

    fn set_classes(&mut self, rules: &[ClassRule], quotas: &[(u16, u32)]) -> Result<(), PortError> {
        let of_rules = rules.iter().map(|rule| match *rule {
            ClassRule::Mac { class, .. } | ClassRule::Inner { class, .. } | ClassRule::Default { class } => {
                class
            }
        });
        let mut classes = of_rules.chain(quotas.iter().map(|(class, _)| *class));
        if let Some(class) = classes.find(|class| index_of(*class).is_none()) {
            return Err(PortError::Class { interface: self.name.clone(), class });
        }
        let Some(program) = &mut self.program else { return Ok(()) };
        program
            .set_classes(rules, quotas)
            .map_err(|source| PortError::of(&self.name, "change the classes of the XDP program", source))
    }

    fn lost(&self, class: u16) -> ClassLosses {
        match (&self.program, index_of(class)) {
            (Some(program), Some(index)) => {
                ClassLosses { ring_quota: program.policed(index), ring_full: self.share.lost(index) }
            }
            _ => ClassLosses::default(),
        }
    }

    fn counters(&self) -> DriverCounters {
        let mut counters = self.counters;
        for queue in &self.queues {
            let (received, sent) = queue.socket.dropped();
            counters.ring_full += received;
            counters.send_failed += sent;
        }
        if let Some(program) = &self.program {
            program.count(&mut counters);
        }
        counters
    }
}

const _: () = assert!(HEADROOM_BYTES == 256, "what the kernel keeps before a received frame");
