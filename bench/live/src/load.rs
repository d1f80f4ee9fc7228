//! Load: as many frames as one core can make, or a steady rate with a time in each, and what arrives at the sink.

use std::io::IoSliceMut;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use hue_e2e::traffic::Pace;
use hue_e2e::{Raw, Space};
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg, setsockopt, sockopt};

use crate::contestant::Contestant;
use crate::machine::{self, GENERATOR_CORE};
use crate::wires::{PAYLOAD, PORT};

/// Frames handed to the system at once.
const BATCH: usize = 64;

/// Sends as much as it can until it is dropped.
pub struct Generator {
    stop: Arc<AtomicBool>,
    sent: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

impl Generator {
    /// Starts on the generator's core, with these frames in turn; at a rate when one is given.
    pub fn start(contestant: &Contestant, frames: Vec<Vec<u8>>, packets_per_second: Option<u32>) -> Self {
        let mut raw = Raw::open(&contestant.wires.generator, "eth0");
        let (stop, sent) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (stopped, count) = (stop.clone(), sent.clone());
        let thread = std::thread::spawn(move || {
            machine::pin(0, GENERATOR_CORE);
            let mut pace = packets_per_second.map(Pace::new);
            let mut turn = frames.iter().cycle();
            while !stopped.load(Ordering::Relaxed) {
                let due = pace.as_mut().map_or(BATCH, |pace| pace.due() as usize);
                count.fetch_add(raw.send(turn.by_ref().take(due).map(Vec::as_slice)), Ordering::Relaxed);
            }
        });
        Self { stop, sent, thread: Some(thread) }
    }

    /// Frames that the system took until now.
    pub fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }
}

impl Drop for Generator {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // Its panic was printed.
            let _ = thread.join();
        }
    }
}

/// What one measurement of throughput gives.
#[derive(Clone, Copy, Debug)]
pub struct Throughput {
    /// Packets a second offered.
    pub offered: f64,
    /// Packets a second that arrived.
    pub arrived: f64,
    /// Microseconds of all cores that a packet took which arrived.
    pub core_us: f64,
}

/// Offers frames for so many seconds and counts what the sink gets.
pub fn throughput(
    contestant: &Contestant,
    frames: Vec<Vec<u8>>,
    rate: Option<u32>,
    seconds: f64,
) -> Throughput {
    let generator = Generator::start(contestant, frames, rate);
    // Until queues are as full as they get.
    std::thread::sleep(Duration::from_millis(200));
    let look = || {
        let arrived = contestant.wires.sink.counter("eth0", "rx_packets");
        (arrived, generator.sent(), machine::busy_seconds(None), Instant::now())
    };
    let before = look();
    std::thread::sleep(Duration::from_secs_f64(seconds));
    let after = look();
    let elapsed = after.3.duration_since(before.3).as_secs_f64();
    let arrived = (after.0 - before.0) as f64;
    Throughput {
        offered: (after.1 - before.1) as f64 / elapsed,
        arrived: arrived / elapsed,
        core_us: (after.2 - before.2) * 1e6 / arrived.max(1.0),
    }
}

/// Nanoseconds since 1970.
fn now_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos() as u64)
}

/// A steady stream of timed packets to the sink's own address in a network.
pub struct Probe {
    stop: Arc<AtomicBool>,
    sender: JoinHandle<u64>,
    receiver: JoinHandle<Vec<u64>>,
}

/// What came of a probe.
#[derive(Clone, Debug, Default)]
pub struct Latency {
    /// Packets sent.
    pub sent: u64,
    /// One-way latencies of those that arrived, nanoseconds, sorted.
    pub ns: Vec<u64>,
}

impl Latency {
    /// A latency that `share` of the packets did not exceed, microseconds.
    pub fn us(&self, share: f64) -> f64 {
        let last = self.ns.len().saturating_sub(1);
        self.ns.get((last as f64 * share) as usize).map_or(0.0, |ns| *ns as f64 / 1000.0)
    }

    /// Share that was lost, 0 to 1.
    pub fn loss(&self) -> f64 {
        if self.sent == 0 { 0.0 } else { 1.0 - self.ns.len() as f64 / self.sent as f64 }
    }
}

impl Probe {
    /// Starts one: frames as they are, but for a number and a time at the beginning of their payload.
    pub fn start(contestant: &Contestant, n: u16, bytes: usize, packets_per_second: u32) -> Self {
        let address = crate::wires::right(n, 2);
        let mut frame = crate::wires::Wires::frame(n, 2, bytes, contestant.router(n));
        let mut raw = Raw::open(&contestant.wires.generator, "eth0");
        let socket = receiver(&contestant.wires.sink, address);
        let stop = Arc::new(AtomicBool::new(false));
        let (stopped, over) = (stop.clone(), stop.clone());
        let sender = std::thread::spawn(move || {
            machine::pin(0, GENERATOR_CORE);
            let mut pace = Pace::new(packets_per_second);
            let mut sent = 0;
            while !stopped.load(Ordering::Relaxed) {
                for _ in 0..pace.due() {
                    frame[PAYLOAD..PAYLOAD + 8].copy_from_slice(&now_ns().to_be_bytes());
                    sent += raw.send([frame.as_slice()]);
                }
            }
            sent
        });
        let receiver = std::thread::spawn(move || receive(&socket, &over));
        Self { stop, sender, receiver }
    }

    /// Ends it.
    pub fn stop(self) -> Latency {
        self.stop.store(true, Ordering::Relaxed);
        let sent = self.sender.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let mut ns = self.receiver.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        ns.sort_unstable();
        Latency { sent, ns }
    }
}

fn receiver(space: &Space, address: Ipv4Addr) -> UdpSocket {
    let opened = space.inside(|| UdpSocket::bind((address, PORT)));
    let socket = opened.unwrap_or_else(|error| panic!("a socket at {address}:{PORT}: {error}"));
    let set = socket.set_read_timeout(Some(Duration::from_millis(100)));
    set.unwrap_or_else(|error| panic!("a socket's timeout: {error}"));
    // Without them the time is that of reading, which is later for all contestants alike.
    let _ = setsockopt(&socket, sockopt::RcvBufForce, &(16 << 20));
    let _ = setsockopt(&socket, sockopt::ReceiveTimestampns, &true);
    socket
}

/// Receives until a timeout after the end; the times are those of the kernel's receipt.
fn receive(socket: &UdpSocket, over: &AtomicBool) -> Vec<u64> {
    let mut latencies = Vec::new();
    let mut buffer = [0u8; 2048];
    let mut control = nix::cmsg_space!(nix::sys::time::TimeSpec);
    loop {
        let mut parts = [IoSliceMut::new(&mut buffer)];
        let got = recvmsg::<()>(socket.as_raw_fd(), &mut parts, Some(&mut control), MsgFlags::empty());
        let Ok(message) = got else {
            if over.load(Ordering::Relaxed) {
                return latencies;
            }
            continue;
        };
        let stamps = message.cmsgs().into_iter().flatten();
        let at = stamps.filter_map(|stamp| match stamp {
            ControlMessageOwned::ScmTimestampns(time) => {
                Some(time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64)
            }
            _ => None,
        });
        let at = at.last().unwrap_or_else(now_ns);
        let length = message.bytes;
        if let Some(sent) =
            buffer.get(..length.min(8)).and_then(|bytes| bytes.try_into().ok().map(u64::from_be_bytes))
        {
            latencies.push(at.saturating_sub(sent));
        }
    }
}
