//! What the examples that measure a running worker share: ports that never end, and its processor time.

use std::collections::HashSet;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use hue_ports::{Driver, DriverCounters, Packet, Pool, Port, PortError};
use hue_soft::live::{Live, LiveConfig};

pub type Error = Box<dyn std::error::Error>;

/// xorshift64*: the same packets in every run.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) % limit
    }
}

/// Always has frames to receive while it is on, and accepts all frames to send.
pub struct Null {
    /// Different frames of one length, one behind the other.
    frames: Vec<u8>,
    frame_bytes: usize,
    /// Where the next one begins.
    next: usize,
    on: Arc<AtomicBool>,
    /// Frames that were sent, of all ports with this counter.
    left: Arc<AtomicU64>,
    counters: DriverCounters,
    sent: Vec<Packet>,
}

impl Null {
    /// Without frames it receives nothing.
    pub fn new(frames: &[Vec<u8>], on: &Arc<AtomicBool>, left: &Arc<AtomicU64>) -> Self {
        Self {
            frames: frames.concat(),
            frame_bytes: frames.first().map_or(0, Vec::len),
            next: 0,
            on: on.clone(),
            left: left.clone(),
            counters: DriverCounters::default(),
            sent: Vec::with_capacity(1024),
        }
    }
}

impl Port for Null {
    fn driver(&self) -> Driver {
        Driver::Memory
    }

    fn receive(
        &mut self,
        pool: &mut Pool,
        now_ns: u64,
        into: &mut Vec<Packet>,
        limit: usize,
    ) -> Result<usize, PortError> {
        if self.frames.is_empty() || !self.on.load(Ordering::Relaxed) {
            return Ok(0);
        }
        for count in 0..limit {
            let Some(slot) = pool.take() else { return Ok(count) };
            self.counters.received_packets += 1;
            let start = pool.start(&slot);
            let (at, end) = (start as usize, start as usize + self.frame_bytes);
            let frame = &self.frames[self.next..self.next + self.frame_bytes];
            pool.bytes_mut()[at..end].copy_from_slice(frame);
            self.next += self.frame_bytes;
            if self.next == self.frames.len() {
                self.next = 0;
            }
            into.push(Packet { slot, start, len: self.frame_bytes as u32, time_ns: now_ns, class: 0 });
        }
        Ok(limit)
    }

    fn send(&mut self, _pool: &mut Pool, packet: Packet) -> Result<(), Packet> {
        self.sent.push(packet);
        Ok(())
    }

    fn flush(&mut self, pool: &mut Pool) -> Result<(), PortError> {
        self.counters.sent_packets += self.sent.len() as u64;
        self.left.fetch_add(self.sent.len() as u64, Ordering::Relaxed);
        self.sent.drain(..).for_each(|packet| pool.give(packet.slot));
        Ok(())
    }

    fn close(&mut self, pool: &mut Pool) {
        let _ = self.flush(pool);
    }

    fn readiness(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn counters(&self) -> DriverCounters {
        self.counters
    }
}

/// Threads of this process.
fn threads() -> Result<HashSet<String>, Error> {
    let tasks = std::fs::read_dir("/proc/self/task")?;
    Ok(tasks.filter_map(|task| task.ok()?.file_name().into_string().ok()).collect())
}

/// Starts an engine of one worker; returns the worker's directory below `/proc` too.
pub fn one_worker() -> Result<(Live, String), Error> {
    let before = threads()?;
    let live = Live::start(LiveConfig { workers: 1, slots: 8192, ..LiveConfig::default() })?;
    let worker = threads()?.difference(&before).next().cloned().ok_or("no worker")?;
    Ok((live, format!("self/task/{worker}")))
}

/// Processor time of a thread, nanoseconds. The kernel updates it when the thread sleeps.
pub fn processor_ns(thread: &str) -> Result<u64, Error> {
    let text = std::fs::read_to_string(format!("/proc/{thread}/schedstat"))?;
    Ok(text.split_whitespace().next().ok_or("no processor time")?.parse()?)
}

/// Median, and a text with the tenth and ninetieth percentile too.
pub fn spread(values: &mut [f64]) -> (f64, String) {
    values.sort_by(f64::total_cmp);
    if values.is_empty() {
        return (f64::NAN, "nothing measured: the machine is too busy".to_owned());
    }
    let at = |tenth: usize| values[(values.len() - 1) * tenth / 10];
    (at(5), format!("{:6.1} ns ({:.1} to {:.1})", at(5), at(1), at(9)))
}
