//! The thread of an interface: sends its streams, and receives the frames that come back.
//!
//! Invariants: every slot taken from the pool is in one of the two lists, or returned to the pool; frames in the
//! queue are recorded in the ledger before they are given to the system.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Barrier, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use hue_card::FRAME_BYTES_MAX;
use hue_ports::{Offered, Packet, PacketSocket, Pool, Port};

use super::ledger::{Ledger, Order, Returned};
use super::pace::Pace;
use super::{CableMeasured, Each, Received, unix_ns};
use crate::error::LabError;
use crate::feed::Feed;
use crate::mark::Mark;
use crate::rate::wire_bytes;
use crate::schedule::Schedule;

/// Number of frames in one system call.
const BATCH_FRAMES: usize = 64;
/// The experiment ends when no new frame has come back for this long. [`MISSING`] applies while frames are missing,
/// which are then lost (RFC 2544 §23); [`COMPLETE`] applies when none is missing, because a frame may come twice.
const MISSING: Duration = Duration::from_secs(2);
const COMPLETE: Duration = Duration::from_millis(100);
/// If a queue accepts no frames for this long, the state of the interface is checked: without a carrier it never
/// will.
const FULL_NS: u64 = 100_000_000;
/// A thread sleeps until this long before the next frame is due, and then polls the clock. The system wakes it up
/// late, but by less than this time.
const WAKE: Duration = Duration::from_micros(100);
/// Longest sleep of a thread that may receive.
const NAP: Duration = Duration::from_micros(500);

/// State that the threads of an experiment share.
pub struct Common<'a> {
    /// By stream; `None` if its frames carry no number.
    pub ledgers: Vec<Option<Ledger>>,
    /// Number of flows of each stream.
    pub flows: Vec<usize>,
    /// When traffic ends, nanoseconds since the beginning; `u64::MAX` when captures end by themselves.
    pub end_ns: u64,
    /// When the traffic began.
    pub begin: OnceLock<Instant>,
    /// All threads wait here before the traffic begins.
    pub barrier: Barrier,
    /// Threads that have not sent everything yet.
    pub sending: AtomicUsize,
    /// When a frame was last sent, or last came back for the first time.
    pub active_ns: AtomicU64,
    /// Frames with numbers that were sent and did not come back.
    pub under_way: AtomicU64,
    /// Whether the user wants to end the experiment.
    pub stop: &'a AtomicBool,
    /// Whether a thread failed.
    pub failed: AtomicBool,
    /// Called for each received frame.
    pub each: Option<Mutex<&'a mut Each<'a>>>,
}

/// A stream of frames for an interface.
pub struct Sending {
    stream: usize,
    port: String,
    feed: Feed,
    /// `None` means as many as the system accepts.
    schedule: Option<Schedule>,
    /// When the next frame is due; `None` at the end.
    next_ns: Option<u64>,
    /// When the last frame was due.
    last_ns: u64,
    frame: Vec<u8>,
    /// Number of the next frame.
    number: u64,
}

impl Sending {
    /// A stream, by number, for a port with a name.
    pub fn new(stream: usize, port: String, feed: Feed, schedule: Option<Schedule>) -> Self {
        let frame = Vec::with_capacity(FRAME_BYTES_MAX);
        Self { stream, port, feed, schedule, next_ns: Some(0), last_ns: 0, frame, number: 0 }
    }

    /// Fetches the next frame if it is due before the end. Uses the same rules as the software experiment, so that
    /// the frames are the same.
    fn advance(&mut self, end_ns: u64) -> Result<(), LabError> {
        self.last_ns = self.next_ns.take().unwrap_or(self.last_ns);
        if !self.feed.next(&mut self.frame)? {
            return Ok(());
        }
        self.frame.truncate(FRAME_BYTES_MAX);
        let Some(schedule) = &mut self.schedule else {
            self.next_ns = Some(0);
            return Ok(());
        };
        let slot = schedule.next(self.frame.len());
        let slot = slot.map_err(|fault| LabError::TooFast { port: self.port.clone(), fault })?;
        self.next_ns = (slot.due < end_ns).then_some(slot.begin);
        Ok(())
    }
}

/// One thread's part of the results of a stream.
#[derive(Clone, Copy, Default)]
pub struct Part {
    pub sent: u64,
    pub sent_wire_bytes: u64,
    pub doubled: u64,
    pub reordered: u64,
}

/// The thread's state.
pub struct Worker<'c, 'a> {
    cable: usize,
    interface: &'c str,
    socket: PacketSocket,
    pool: Pool,
    sources: Vec<Sending>,
    /// Frames to be sent, and the stream and number of each.
    queue: Vec<Packet>,
    owners: Vec<(usize, u64)>,
    received: Vec<Packet>,
    pace: Pace,
    /// By stream.
    orders: Vec<Order>,
    parts: Vec<Part>,
    measured: CableMeasured,
    last_sent_ns: u64,
    /// Time since which the system has accepted nothing.
    full_since_ns: Option<u64>,
    common: &'c Common<'a>,
}

impl<'c, 'a> Worker<'c, 'a> {
    pub fn new(
        (cable, interface): (usize, &'c str),
        socket: PacketSocket,
        pool: Pool,
        sources: Vec<Sending>,
        measured: CableMeasured,
        common: &'c Common<'a>,
    ) -> Self {
        Self {
            cable,
            interface,
            socket,
            pool,
            sources,
            queue: Vec::with_capacity(BATCH_FRAMES),
            owners: Vec::with_capacity(BATCH_FRAMES),
            received: Vec::with_capacity(BATCH_FRAMES),
            pace: Pace::default(),
            orders: common.flows.iter().map(|flows| Order::new(*flows)).collect(),
            parts: vec![Part::default(); common.flows.len()],
            measured,
            last_sent_ns: 0,
            full_since_ns: None,
            common,
        }
    }

    /// Sends and receives until the experiment is over.
    pub fn run(mut self) -> Result<(CableMeasured, Vec<Part>), LabError> {
        let done = self.prepare();
        // The others wait for this thread, even if it has failed.
        self.common.barrier.wait();
        let done = done.and_then(|()| self.work());
        if done.is_err() {
            self.common.failed.store(true, Ordering::Relaxed);
        }
        self.socket.close(&mut self.pool);
        done?;
        self.measured.missed = self.socket.counters().ring_full;
        Ok((self.measured, self.parts))
    }

    fn prepare(&mut self) -> Result<(), LabError> {
        self.sources.iter_mut().try_for_each(|source| source.advance(self.common.end_ns))
    }

    fn work(&mut self) -> Result<(), LabError> {
        let begin = *self.common.begin.get_or_init(Instant::now);
        let is_silent = self.sources.is_empty();
        let mut is_sending = true;
        loop {
            let now_ns = begin.elapsed().as_nanos() as u64;
            let mut wait = Some(NAP);
            if is_sending {
                wait = self.send(now_ns, begin)?;
                if wait.is_none() && self.queue.is_empty() && self.next().is_none() {
                    is_sending = false;
                    if !is_silent {
                        self.finish();
                    }
                    self.common.sending.fetch_sub(1, Ordering::AcqRel);
                }
            }
            let is_busy = self.receive(now_ns)?;
            if self.is_over(begin) {
                return Ok(());
            }
            match wait {
                _ if is_busy => {}
                Some(wait) if wait > WAKE => std::thread::sleep((wait - WAKE).min(NAP)),
                Some(_) => std::hint::spin_loop(),
                None => {}
            }
        }
    }

    /// The stream whose frame is due next, by number, and its time.
    fn next(&self) -> Option<(u64, usize)> {
        self.sources.iter().zip(0..).filter_map(|(source, at)| Some((source.next_ns?, at))).min()
    }

    /// Sends the frames that are due. Returns the time until the next frame is due; `None` if frames are due now, or
    /// no frames are left.
    fn send(&mut self, now_ns: u64, begin: Instant) -> Result<Option<Duration>, LabError> {
        if self.common.stop.load(Ordering::Relaxed) || self.common.failed.load(Ordering::Relaxed) {
            self.abandon();
            return Ok(None);
        }
        let wait_ns = self.fill(now_ns)?;
        if self.queue.is_empty() {
            return Ok(wait_ns.map(Duration::from_nanos));
        }
        let stamp_ns = unix_ns();
        let mut numbered = 0;
        for (stream, number) in &self.owners {
            if let Some(Some(ledger)) = self.common.ledgers.get(*stream) {
                ledger.sent(*number, stamp_ns);
                numbered += 1;
            }
        }
        // Count before sending, so that the number never falls below that of returned frames.
        self.common.under_way.fetch_add(numbered, Ordering::AcqRel);
        let offered = self.socket.offer(&self.pool, &self.queue);
        let (sent, done) = match offered {
            Ok(Offered::Taken(count)) => (count, count),
            Ok(Offered::Unfit) => (0, 1),
            Ok(Offered::Full) | Err(_) => (0, 0),
        };
        if sent > 0 {
            self.last_sent_ns = begin.elapsed().as_nanos() as u64;
            self.common.active_ns.fetch_max(self.last_sent_ns, Ordering::Relaxed);
            self.count_sent(sent);
        }
        self.measured.refused += (done - sent) as u64;
        self.forget(sent..done);
        let left = self.owners.iter().skip(sent).filter(|(stream, _)| self.is_numbered(*stream)).count();
        self.common.under_way.fetch_sub(left as u64, Ordering::AcqRel);
        for packet in self.queue.drain(..done) {
            self.pool.give(packet.slot);
        }
        self.owners.drain(..done);
        if offered? != Offered::Full {
            self.full_since_ns = None;
            return Ok(None);
        }
        // Give the processor to other threads, so that the queue can become empty.
        std::thread::yield_now();
        let since_ns = *self.full_since_ns.get_or_insert(now_ns);
        if now_ns.saturating_sub(since_ns) > FULL_NS {
            self.full_since_ns = None;
            super::usable(self.interface)?;
        }
        Ok(None)
    }

    fn is_numbered(&self, stream: usize) -> bool {
        matches!(self.common.ledgers.get(stream), Some(Some(_)))
    }

    /// Fills the queue with frames that are due. Returns the nanoseconds until the next frame is due.
    fn fill(&mut self, now_ns: u64) -> Result<Option<u64>, LabError> {
        while self.queue.len() < BATCH_FRAMES {
            let Some((due_ns, at)) = self.next() else { return Ok(None) };
            let Some(source) = self.sources.get_mut(at) else { return Ok(None) };
            if source.schedule.is_some() {
                if let Err(wait_ns) = self.pace.admit(due_ns, now_ns) {
                    return Ok(Some(wait_ns));
                }
            } else {
                let ledger = self.common.ledgers.get(source.stream).and_then(Option::as_ref);
                let is_full = ledger.is_some_and(|ledger| source.number >= ledger.frames_max() as u64);
                if now_ns >= self.common.end_ns || is_full {
                    source.next_ns = None;
                    continue;
                }
            }
            match self.pool.copy_in(&source.frame, 0) {
                Some(packet) => {
                    self.queue.push(packet);
                    self.owners.push((source.stream, source.number));
                }
                // Longer than the interface accepts.
                None => self.measured.refused += 1,
            }
            source.number += 1;
            source.advance(self.common.end_ns)?;
        }
        Ok(None)
    }

    /// Counts the first frames of the queue as sent.
    fn count_sent(&mut self, count: usize) {
        for (packet, (stream, _)) in self.queue.iter().zip(&self.owners).take(count) {
            let wire_bytes = wire_bytes(packet.len as usize);
            self.measured.sent += 1;
            self.measured.sent_wire_bytes += wire_bytes;
            if let Some(part) = self.parts.get_mut(*stream) {
                part.sent += 1;
                part.sent_wire_bytes += wire_bytes;
            }
        }
    }

    /// Removes frames of the queue from the ledger.
    fn forget(&self, which: std::ops::Range<usize>) {
        for (stream, number) in self.owners.get(which).unwrap_or_default() {
            if let Some(Some(ledger)) = self.common.ledgers.get(*stream) {
                ledger.not_sent(*number);
            }
        }
    }

    /// Stops sending.
    fn abandon(&mut self) {
        self.forget(0..self.owners.len());
        self.owners.clear();
        for packet in self.queue.drain(..) {
            self.pool.give(packet.slot);
        }
        for source in &mut self.sources {
            source.next_ns = None;
        }
    }

    /// Measures how long sending took.
    fn finish(&mut self) {
        let scheduled = self.sources.iter().filter(|source| source.schedule.is_some());
        let last_due_ns = scheduled.map(|source| source.last_ns).max();
        let planned_ns = match last_due_ns {
            Some(_) if self.common.stop.load(Ordering::Relaxed) => 0,
            Some(last_due_ns) if self.common.end_ns == u64::MAX => last_due_ns,
            Some(_) => self.common.end_ns,
            None => 0,
        };
        self.measured.took_ns = planned_ns.max(self.last_sent_ns);
        self.measured.late_ns = self.pace.late_ns_max();
    }

    /// Receives a batch of frames. Returns whether there may be more.
    fn receive(&mut self, now_ns: u64) -> Result<bool, LabError> {
        let count = self.socket.receive(&mut self.pool, now_ns, &mut self.received, BATCH_FRAMES)?;
        if count == 0 {
            return Ok(false);
        }
        let each = self.common.each.as_ref();
        let mut each = each.map(|each| each.lock().unwrap_or_else(PoisonError::into_inner));
        let mut first = 0;
        for packet in self.received.drain(..) {
            let (bytes, time_ns) = (packet.bytes(&self.pool), packet.time_ns);
            match take(self.common, &mut self.orders, &mut self.parts, bytes, time_ns) {
                Returned::First => {
                    self.measured.received += 1;
                    first += 1;
                }
                Returned::Again => self.measured.received += 1,
                Returned::Foreign => self.measured.others += 1,
            }
            if let Some(each) = &mut each {
                each(Received { cable: self.cable, bytes, time_ns });
            }
            self.pool.give(packet.slot);
        }
        // Repeated frames do not count: a loop in the network would otherwise keep the experiment running forever.
        if first > 0 {
            self.common.active_ns.fetch_max(now_ns, Ordering::Relaxed);
            self.common.under_way.fetch_sub(first, Ordering::AcqRel);
        }
        Ok(true)
    }

    /// Whether everything was sent, and every frame has come back or is lost.
    fn is_over(&self, begin: Instant) -> bool {
        let common = self.common;
        if common.failed.load(Ordering::Relaxed) {
            return true;
        }
        if common.sending.load(Ordering::Acquire) > 0 {
            return false;
        }
        let is_complete =
            common.under_way.load(Ordering::Acquire) == 0 && common.ledgers.iter().all(Option::is_some);
        let active = Duration::from_nanos(common.active_ns.load(Ordering::Relaxed));
        begin.elapsed().saturating_sub(active) > if is_complete { COMPLETE } else { MISSING }
    }
}

/// Classifies a received frame and counts it for its stream.
fn take(
    common: &Common<'_>,
    orders: &mut [Order],
    parts: &mut [Part],
    frame: &[u8],
    time_ns: u64,
) -> Returned {
    let Some(mark) = Mark::of(frame) else { return Returned::Foreign };
    let (stream, number) = (usize::from(mark.stream.get()), mark.number.get());
    let ledger = common.ledgers.get(stream).and_then(Option::as_ref);
    let Some(ledger) = ledger.filter(|ledger| ledger.tag() == mark.tag) else { return Returned::Foreign };
    let returned = ledger.returned(number, time_ns);
    let (Some(order), Some(part)) = (orders.get_mut(stream), parts.get_mut(stream)) else { return returned };
    match returned {
        Returned::First => part.reordered += u64::from(order.is_overtaken(mark.flow.get(), number)),
        Returned::Again => part.doubled += 1,
        Returned::Foreign => {}
    }
    returned
}
