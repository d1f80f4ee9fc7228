//! Traffic between hosts with a sequence number and a time in every packet: loss, duplication, order and one-way latency.
//!
//! Flow: sender (a thread in one host) → the network → receiver (a thread in the other) → [`Report`]. All times are of one
//! clock, because all hosts are on one machine. A packet has arrived when the receiving host's kernel has it, not when the
//! receiving thread runs. The sender keeps its rate. If the machine delays it, it does not catch up with a burst, so that
//! the network is measured, not the machine.

use std::io::IoSliceMut;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg, setsockopt, sockopt};

use crate::frame::{self, Ends, Mac};
use crate::lab::Host;
use crate::raw::Raw;
use crate::space::Space;

/// Bytes of the stamp in a payload: flow, sequence number, time.
pub const STAMP_BYTES: usize = 24;
/// A sender that is this far behind its rate starts its schedule anew, without the packets that it missed.
const LATE: Duration = Duration::from_millis(20);
/// Silence after which a receiver ends, once the sender has ended and all its packets have come: a packet may come twice.
const QUIET: Duration = Duration::from_millis(400);
/// The same while packets are missing. A busy machine may delay a packet this long.
const MISSING: Duration = Duration::from_millis(1500);
/// The sender has not ended yet.
const SENDING: u64 = u64::MAX;

/// The stamp in every packet of a flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stamp {
    /// Number of the flow.
    pub flow: u64,
    /// Number of the packet, from 0.
    pub sequence: u64,
    /// When it was sent, nanoseconds of [`now_ns`].
    pub sent_ns: u64,
}

impl Stamp {
    /// Writes the stamp.
    pub fn write(&self, to: &mut [u8]) {
        for (place, word) in to.chunks_exact_mut(8).zip([self.flow, self.sequence, self.sent_ns]) {
            place.copy_from_slice(&word.to_be_bytes());
        }
    }

    /// Reads a stamp.
    #[must_use]
    pub fn read(from: &[u8]) -> Option<Self> {
        let word = |at: usize| Some(u64::from_be_bytes(from.get(at..at + 8)?.try_into().ok()?));
        Some(Self { flow: word(0)?, sequence: word(8)?, sent_ns: word(16)? })
    }
}

/// Nanoseconds since 1970: the kernel's timestamps of arriving packets are of the same clock.
#[must_use]
pub fn now_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64)
}

/// A packet that was received after a packet that was sent later.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Late {
    /// Its number in the flow.
    pub sequence: u64,
    /// By how many numbers the packets that overtook it were ahead, at most.
    pub behind: u64,
    /// Its one-way latency, nanoseconds.
    pub latency_ns: u64,
}

/// The results of a flow.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Packets sent.
    pub sent: u64,
    /// Different packets received.
    pub received: u64,
    /// Packets received again.
    pub duplicated: u64,
    /// Packets that were received after a packet that was sent later.
    pub reordered: u64,
    /// The first of them: where it is in the flow shows what delayed it.
    pub first_late: Option<Late>,
    /// Packets received that belong to no flow or to another one.
    pub foreign: u64,
    /// Most packets lost in succession.
    pub gap: u64,
    /// The longest time without a packet: from one that arrived to the next one, nanoseconds of [`now_ns`].
    pub silence_ns: (u64, u64),
    /// One-way latencies, nanoseconds, sorted.
    pub latencies_ns: Vec<u64>,
}

impl Report {
    /// Packets that never arrived.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.sent.saturating_sub(self.received)
    }

    /// Milliseconds from `since_ns` to the end of the longest time without a packet: how long after an event that interrupted
    /// the flow the first packet arrived again.
    #[must_use]
    pub fn back_after_ms(&self, since_ns: u64) -> f64 {
        self.silence_ns.1.saturating_sub(since_ns) as f64 / 1e6
    }

    /// Share of the packets that arrived, 0 to 1.
    #[must_use]
    pub fn delivered(&self) -> f64 {
        if self.sent == 0 { 0.0 } else { self.received as f64 / self.sent as f64 }
    }

    /// A latency that `share` of the packets did not exceed, microseconds.
    #[must_use]
    pub fn latency_us(&self, share: f64) -> f64 {
        let last = self.latencies_ns.len().saturating_sub(1);
        self.latencies_ns.get((last as f64 * share) as usize).map_or(0.0, |ns| *ns as f64 / 1000.0)
    }
}

impl std::fmt::Display for Report {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} sent, {} received, {} lost (at most {} in a row), {} twice, {} late, {} foreign, p50 {:.0} us, p99 {:.0} us",
            self.sent,
            self.received,
            self.lost(),
            self.gap,
            self.duplicated,
            self.reordered,
            self.foreign,
            self.latency_us(0.5),
            self.latency_us(0.99)
        )?;
        match self.first_late {
            None => Ok(()),
            Some(Late { sequence, behind, latency_ns }) => {
                let us = latency_ns / 1000;
                write!(f, ", the first late one is number {sequence}, {behind} behind, {us} us under way")
            }
        }
    }
}

/// Makes a report of stamps as they arrive.
#[derive(Debug, Default)]
pub struct Counter {
    flow: u64,
    seen: Vec<u64>,
    next: u64,
    /// When the last packet arrived.
    last_ns: u64,
    report: Report,
}

impl Counter {
    /// For one flow.
    #[must_use]
    pub fn new(flow: u64) -> Self {
        Self { flow, ..Self::default() }
    }

    /// Counts a packet.
    pub fn count(&mut self, payload: &[u8], now_ns: u64) {
        let Some(stamp) = Stamp::read(payload).filter(|stamp| stamp.flow == self.flow) else {
            self.report.foreign += 1;
            return;
        };
        let (word, bit) = ((stamp.sequence / 64) as usize, 1 << (stamp.sequence % 64));
        if self.seen.len() <= word {
            self.seen.resize(word + 1, 0);
        }
        if self.seen[word] & bit != 0 {
            self.report.duplicated += 1;
            return;
        }
        self.seen[word] |= bit;
        self.report.received += 1;
        let last_ns = std::mem::replace(&mut self.last_ns, now_ns);
        let (begin, end) = self.report.silence_ns;
        if last_ns > 0 && now_ns.saturating_sub(last_ns) > end - begin {
            self.report.silence_ns = (last_ns, now_ns);
        }
        let latency_ns = now_ns.saturating_sub(stamp.sent_ns);
        if stamp.sequence < self.next {
            self.report.reordered += 1;
            let behind = self.next - 1 - stamp.sequence;
            self.report.first_late.get_or_insert(Late { sequence: stamp.sequence, behind, latency_ns });
        }
        self.next = self.next.max(stamp.sequence + 1);
        self.report.latencies_ns.push(latency_ns);
    }

    /// Different packets received until now.
    #[must_use]
    pub fn received(&self) -> u64 {
        self.report.received
    }

    /// The report of a flow of which `sent` packets were sent.
    #[must_use]
    pub fn finish(mut self, sent: u64) -> Report {
        self.report.sent = sent;
        let mut run = 0;
        for sequence in 0..sent {
            let there =
                self.seen.get((sequence / 64) as usize).is_some_and(|word| word >> (sequence % 64) & 1 == 1);
            run = if there { 0 } else { run + 1 };
            self.report.gap = self.report.gap.max(run);
        }
        self.report.latencies_ns.sort_unstable();
        self.report
    }
}

/// Packets at a constant rate.
#[derive(Debug)]
pub struct Pace {
    rate: f64,
    start: Instant,
    done: u64,
}

impl Pace {
    /// Packets at this rate per second, from now on.
    #[must_use]
    pub fn new(packets_per_second: u32) -> Self {
        Self { rate: f64::from(packets_per_second), start: Instant::now(), done: 0 }
    }

    /// Waits until a packet is due, and returns how many are due.
    pub fn due(&mut self) -> u64 {
        loop {
            let elapsed = self.start.elapsed();
            let due = (elapsed.as_secs_f64() * self.rate) as u64 + 1;
            if due > self.done {
                let late = Duration::from_secs_f64((due - self.done) as f64 / self.rate);
                if late > LATE && due - self.done > 1 {
                    self.start = Instant::now();
                    self.done = 1;
                    return 1;
                }
                let count = due - self.done;
                self.done = due;
                return count;
            }
            let next = Duration::from_secs_f64(self.done as f64 / self.rate);
            std::thread::sleep(next.saturating_sub(elapsed).max(Duration::from_micros(50)));
        }
    }
}

/// A flow of UDP packets from one host to another, until it is stopped.
#[derive(Debug)]
pub struct Flow {
    stop: Arc<AtomicBool>,
    /// How many packets were sent, or [`SENDING`].
    all: Arc<AtomicU64>,
    received: Arc<AtomicU64>,
    sender: JoinHandle<u64>,
    receiver: JoinHandle<Counter>,
}

static FLOWS: AtomicU16 = AtomicU16::new(0);

impl Flow {
    /// Starts a flow: each packet has `bytes` of payload, at least [`STAMP_BYTES`].
    ///
    /// # Panics
    /// When a socket cannot be opened.
    #[must_use]
    pub fn start(from: &Host, to: &Host, packets_per_second: u32, bytes: usize) -> Self {
        Self::start_to(from, to, to.ip(), packets_per_second, bytes)
    }

    /// The same with another destination address than the receiver's first.
    ///
    /// # Panics
    /// When a socket cannot be opened.
    #[must_use]
    pub fn start_to(
        from: &Host,
        to: &Host,
        address: impl Into<IpAddr>,
        packets_per_second: u32,
        bytes: usize,
    ) -> Self {
        let address = address.into();
        Self::between((&from.space, Some(from.ip())), (&to.space, address), packets_per_second, bytes)
    }

    /// The same between namespaces: from one, with an address or the one that its kernel chooses, to an address in the other.
    ///
    /// # Panics
    /// When a socket cannot be opened.
    #[must_use]
    pub fn between(
        (from, own): (&Space, Option<IpAddr>),
        (to, address): (&Space, IpAddr),
        packets_per_second: u32,
        bytes: usize,
    ) -> Self {
        let (flow, port) = numbers();
        // A host of a network of both families has a further address, which its kernel chooses.
        let any = if address.is_ipv6() { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
        let own = own.filter(|own| own.is_ipv6() == address.is_ipv6()).unwrap_or(any);
        let output = from.inside(|| open(own, 0));
        output.connect((address, port)).unwrap_or_else(|error| panic!("connect to {address}: {error}"));
        // An error comes from an ICMP message about an earlier packet; this packet was not sent then.
        let send = move |payload: &[u8]| {
            if output.send(payload).is_err() {
                let _ = output.send(payload);
            }
        };
        Self::start_by(to, (flow, any, port), (packets_per_second, bytes), send)
    }

    /// The same between IPv4 hosts with an option in every packet, so that routers process it in their control plane. `router` is the MAC
    /// address of the sender's router.
    ///
    /// # Panics
    /// When a socket cannot be opened.
    #[must_use]
    pub fn start_with_option(from: &Host, to: &Host, router: Mac, packets_per_second: u32) -> Self {
        let (flow, port) = numbers();
        let mut raw = Raw::open(&from.space, "eth0");
        let ends = Ends { macs: [router, from.mac], addresses: [from.address, to.address], ttl: 64 };
        let send = move |payload: &[u8]| {
            raw.send([frame::udp_with_option(ends, [9, port], payload).as_slice()]);
            // The socket also receives: discard the frames, so that they do not fill its memory.
            while raw.receive(|_| {}) > 0 {}
        };
        let any = Ipv4Addr::UNSPECIFIED.into();
        Self::start_by(&to.space, (flow, any, port), (packets_per_second, STAMP_BYTES), send)
    }

    fn start_by(
        to: &Space,
        (flow, at, port): (u64, IpAddr, u16),
        (packets_per_second, bytes): (u32, usize),
        send: impl FnMut(&[u8]) + Send + 'static,
    ) -> Self {
        let input = to.inside(|| open(at, port));
        // A large buffer for packets that arrive while this machine is busy. Root may set it.
        let _ = setsockopt(&input, sockopt::RcvBufForce, &(16 << 20));
        let stamps = setsockopt(&input, sockopt::ReceiveTimestampns, &true);
        stamps.unwrap_or_else(|error| panic!("times of arrival: {error}"));
        let stop = Arc::new(AtomicBool::new(false));
        let all = Arc::new(AtomicU64::new(SENDING));
        let received = Arc::new(AtomicU64::new(0));
        let (stopped, over, live) = (stop.clone(), all.clone(), received.clone());
        let receiver = std::thread::spawn(move || receive(&input, flow, &over, &live));
        let sender = std::thread::spawn(move || stamped(flow, packets_per_second, bytes, &stopped, send));
        Self { stop, all, received, sender, receiver }
    }

    /// Different packets received until now.
    #[must_use]
    pub fn received(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }

    /// Stops it and waits for packets in flight.
    ///
    /// # Panics
    /// When one of its threads did.
    #[must_use]
    pub fn stop(self) -> Report {
        self.stop.store(true, Ordering::Relaxed);
        let sent = self.sender.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        self.all.store(sent, Ordering::Relaxed);
        let counter = self.receiver.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        counter.finish(sent)
    }
}

/// A number for a flow, and its UDP port.
fn numbers() -> (u64, u16) {
    let number = FLOWS.fetch_add(1, Ordering::Relaxed);
    (u64::from(std::process::id()) << 16 | u64::from(number), 20_000 + number % 20_000)
}

fn open(at: IpAddr, port: u16) -> UdpSocket {
    UdpSocket::bind((at, port)).unwrap_or_else(|error| panic!("a socket at {at}:{port}: {error}"))
}

/// Sends payloads with stamps at a rate. Returns how many.
fn stamped(
    flow: u64,
    packets_per_second: u32,
    bytes: usize,
    stop: &AtomicBool,
    mut send: impl FnMut(&[u8]),
) -> u64 {
    let mut payload = vec![0u8; bytes.max(STAMP_BYTES)];
    let mut pace = Pace::new(packets_per_second);
    let mut sequence = 0;
    while !stop.load(Ordering::Relaxed) {
        for _ in 0..pace.due() {
            Stamp { flow, sequence, sent_ns: now_ns() }.write(&mut payload[..STAMP_BYTES]);
            send(&payload);
            sequence += 1;
        }
    }
    sequence
}

/// Receives until the sender has stopped, as `all` shows, and there is silence.
fn receive(socket: &UdpSocket, flow: u64, all: &AtomicU64, live: &AtomicU64) -> Counter {
    let mut counter = Counter::new(flow);
    let mut buffer = vec![0u8; 65_536];
    let timeout = socket.set_read_timeout(Some(Duration::from_millis(50)));
    timeout.unwrap_or_else(|error| panic!("a socket's timeout: {error}"));
    let mut last = Instant::now();
    loop {
        match take(socket, &mut buffer) {
            Ok((length, arrived_ns)) => {
                last = Instant::now();
                counter.count(&buffer[..length], arrived_ns);
                live.store(counter.received(), Ordering::Relaxed);
            }
            Err(_) => match all.load(Ordering::Relaxed) {
                SENDING => last = Instant::now(),
                sent => {
                    let silence = if counter.received() < sent { MISSING } else { QUIET };
                    if last.elapsed() > silence {
                        return counter;
                    }
                }
            },
        }
    }
}

/// Receives a packet. Returns its length, and when the kernel received it: this thread may have waited for a processor since.
fn take(socket: &UdpSocket, buffer: &mut [u8]) -> nix::Result<(usize, u64)> {
    let mut parts = [IoSliceMut::new(buffer)];
    let mut space = nix::cmsg_space!(nix::sys::time::TimeSpec);
    let message = recvmsg::<()>(socket.as_raw_fd(), &mut parts, Some(&mut space), MsgFlags::empty())?;
    let stamp = message.cmsgs()?.find_map(|part| match part {
        ControlMessageOwned::ScmTimestampns(time) => Some(time),
        _ => None,
    });
    let arrived_ns = stamp.map_or_else(now_ns, |at| at.tv_sec() as u64 * 1_000_000_000 + at.tv_nsec() as u64);
    Ok((message.bytes, arrived_ns))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamped(flow: u64, sequence: u64) -> [u8; STAMP_BYTES] {
        let mut bytes = [0; STAMP_BYTES];
        Stamp { flow, sequence, sent_ns: 1000 }.write(&mut bytes);
        bytes
    }

    #[test]
    fn arriving_frames_are_classified() {
        let mut counter = Counter::new(7);
        for (sequence, arrived_ns) in [(0, 3000), (1, 3000), (3, 3000), (2, 3000), (2, 3000), (8, 1_003_000)]
        {
            counter.count(&stamped(7, sequence), arrived_ns);
        }
        counter.count(&stamped(8, 0), 3000);
        counter.count(b"short", 3000);
        let report = counter.finish(10);
        assert_eq!((report.received, report.lost(), report.gap), (5, 5, 4), "{report}");
        assert_eq!((report.duplicated, report.reordered, report.foreign), (1, 1, 2), "{report}");
        assert_eq!(report.first_late, Some(Late { sequence: 2, behind: 1, latency_ns: 2000 }));
        assert!((report.latency_us(0.5) - 2.0).abs() < 1e-9 && (report.delivered() - 0.5).abs() < 1e-9);
        assert_eq!(report.silence_ns, (3000, 1_003_000));
        assert!((report.back_after_ms(503_000) - 0.5).abs() < 1e-9);
    }

    #[test]
    fn a_late_sender_does_not_burst() {
        let mut pace = Pace::new(10_000);
        assert!(pace.due() >= 1);
        std::thread::sleep(Duration::from_millis(40));
        assert_eq!(pace.due(), 1);
    }
}
