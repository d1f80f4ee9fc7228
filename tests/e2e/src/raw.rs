//! Raw frames on a host's interface: sends frames unchanged and receives all frames, whatever their destination.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use hue_ports::{PacketSocket, Pool, Port, SLOT_BYTES};

use crate::space::Space;
use crate::traffic::{Pace, now_ns};
use crate::wait::until;

/// Slots of a socket's memory.
const SLOTS: u32 = 1024;
/// Frames handed to the system at once.
const BATCH: usize = 64;

/// How long a frame may be on its way in [`until_seen`].
const ON_ITS_WAY: Duration = Duration::from_millis(100);

/// Sends a frame until one is seen where `watch` looks: the first ones may come before a link is up again.
///
/// # Panics
/// When none is seen within 20 seconds.
#[track_caller]
pub fn until_seen(socket: &mut Raw, frame: &[u8], watch: impl Fn() -> Sniffer) {
    until("a frame is seen", 20, || {
        let watch = watch();
        let _ = socket.send([frame]);
        std::thread::sleep(ON_ITS_WAY);
        watch.stop().wanted >= 1
    });
}

/// Raw access to an interface of a namespace.
pub struct Raw {
    pool: Pool,
    port: PacketSocket,
}

impl Raw {
    /// Opens an interface.
    ///
    /// # Panics
    /// When there is no such interface.
    #[must_use]
    pub fn open(space: &Space, interface: &str) -> Self {
        let pool =
            Pool::new(SLOTS, SLOT_BYTES[1]).unwrap_or_else(|error| panic!("memory for frames: {error}"));
        let region = pool.region();
        let port = space.inside(|| PacketSocket::open(interface, SLOTS, &region));
        Self { port: port.unwrap_or_else(|error| panic!("{}: {interface}: {error}", space.name())), pool }
    }

    /// Sends frames; returns how many the system accepted.
    pub fn send<'f>(&mut self, frames: impl IntoIterator<Item = &'f [u8]>) -> u64 {
        let before = self.port.counters().sent_packets;
        for (number, frame) in frames.into_iter().enumerate() {
            if number % BATCH == BATCH - 1 {
                // A removed interface accepts nothing; the count shows that.
                let _ = self.port.flush(&mut self.pool);
            }
            let Some(packet) = self.pool.copy_in(frame, 0) else { continue };
            if let Err(packet) = self.port.send(&mut self.pool, packet) {
                self.pool.give(packet.slot);
            }
        }
        let _ = self.port.flush(&mut self.pool);
        self.port.counters().sent_packets - before
    }

    /// Passes each frame that has arrived, at most a batch, to `each`; returns how many.
    pub fn receive(&mut self, mut each: impl FnMut(&[u8])) -> usize {
        let mut packets = Vec::with_capacity(BATCH);
        let got = self.port.receive(&mut self.pool, now_ns(), &mut packets, BATCH).unwrap_or(0);
        for packet in packets {
            each(packet.bytes(&self.pool));
            self.pool.give(packet.slot);
        }
        got
    }
}

/// Watches an interface and counts the frames for which `wanted` is true; keeps the first few of them.
#[derive(Debug)]
pub struct Sniffer {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Seen>,
}

/// What a sniffer saw.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// All frames.
    pub all: u64,
    /// Frames wanted.
    pub wanted: u64,
    /// The first of these.
    pub frames: Vec<Vec<u8>>,
}

/// Wanted frames that a sniffer keeps.
const KEPT: usize = 64;

impl Sniffer {
    /// Starts watching.
    ///
    /// # Panics
    /// When there is no such interface.
    #[must_use]
    pub fn start(space: &Space, interface: &str, wanted: impl Fn(&[u8]) -> bool + Send + 'static) -> Self {
        let mut raw = Raw::open(space, interface);
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = std::thread::spawn(move || {
            let mut seen = Seen::default();
            loop {
                let over = stopped.load(Ordering::Relaxed);
                let got = raw.receive(|frame| {
                    seen.all += 1;
                    if wanted(frame) {
                        seen.wanted += 1;
                        if seen.frames.len() < KEPT {
                            seen.frames.push(frame.to_vec());
                        }
                    }
                });
                if got == 0 {
                    if over {
                        return seen;
                    }
                    std::thread::sleep(Duration::from_millis(5));
                }
            }
        });
        Self { stop, thread }
    }

    /// Stops it and returns what it saw.
    ///
    /// # Panics
    /// When its thread did.
    #[must_use]
    pub fn stop(self) -> Seen {
        // Frames in flight still arrive.
        std::thread::sleep(Duration::from_millis(100));
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

/// Sends frames in turn at a given rate, until it is stopped.
#[derive(Debug)]
pub struct Flood {
    stop: Arc<AtomicBool>,
    sent: Arc<AtomicU64>,
    thread: JoinHandle<()>,
}

impl Flood {
    /// Starts a flood on `eth0` of a host's namespace.
    ///
    /// # Panics
    /// When there is no frame, or no such interface.
    #[must_use]
    pub fn start(space: &Space, frames: Vec<Vec<u8>>, packets_per_second: u32) -> Self {
        assert!(!frames.is_empty(), "a flood of nothing");
        let mut raw = Raw::open(space, "eth0");
        let (stop, sent) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (stopped, count) = (stop.clone(), sent.clone());
        let thread = std::thread::spawn(move || {
            let mut pace = Pace::new(packets_per_second);
            let mut turn = frames.iter().cycle();
            while !stopped.load(Ordering::Relaxed) {
                let due = pace.due() as usize;
                let batch: Vec<&[u8]> = turn.by_ref().take(due).map(Vec::as_slice).collect();
                count.fetch_add(raw.send(batch), Ordering::Relaxed);
                // The socket also receives: discard the frames, so that they do not fill its memory.
                while raw.receive(|_| {}) > 0 {}
            }
        });
        Self { stop, sent, thread }
    }

    /// Frames sent so far.
    #[must_use]
    pub fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    /// Stops it and returns how many frames were sent.
    ///
    /// # Panics
    /// When its thread did.
    #[must_use]
    pub fn stop(self) -> u64 {
        self.stop.store(true, Ordering::Relaxed);
        let joined = self.thread.join();
        joined.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        self.sent.load(Ordering::Relaxed)
    }
}
