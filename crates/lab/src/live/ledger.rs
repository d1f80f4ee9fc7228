//! Records which frames of a stream were sent, and which came back.
//!
//! Flow: sender → [`Ledger::sent`] → the node → receiver → [`Ledger::returned`] → [`Returned`]. Each frame has one
//! word, written by the thread that sends the frame and by the thread that receives it, on any interface. Times are
//! nanoseconds since the epoch of the ledger.

use std::sync::atomic::{AtomicU64, Ordering};

use super::StreamFate;

/// Set when a frame has come back; the other bits then hold its latency. Before, they hold the time at which it was
/// sent, plus one. The word of a frame that was not sent is 0.
const BACK: u64 = 1 << 63;

/// The frames of a stream.
pub struct Ledger {
    tag: [u8; 6],
    epoch_ns: u64,
    /// By number.
    frames: Vec<AtomicU64>,
}

/// Kind of a frame that came back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Returned {
    /// It came back for the first time.
    First,
    /// It came back before.
    Again,
    /// It was never sent: left over from another experiment.
    Foreign,
}

impl Ledger {
    /// Creates the ledger of a stream with this tag and at most `frames` frames. `epoch_ns` is the current time of
    /// the clock that all times refer to.
    pub fn new(tag: [u8; 6], frames: usize, epoch_ns: u64) -> Self {
        let frames = std::iter::repeat_with(AtomicU64::default).take(frames).collect();
        Self { tag, epoch_ns, frames }
    }

    /// The tag of its frames.
    pub const fn tag(&self) -> [u8; 6] {
        self.tag
    }

    /// Maximum number of frames.
    pub const fn frames_max(&self) -> usize {
        self.frames.len()
    }

    /// Records that frame `number` is about to be sent.
    pub fn sent(&self, number: u64, now_ns: u64) {
        self.set(number, now_ns.saturating_sub(self.epoch_ns) + 1);
    }

    /// Records that frame `number` was not sent.
    pub fn not_sent(&self, number: u64) {
        self.set(number, 0);
    }

    fn set(&self, number: u64, word: u64) {
        if let Some(frame) = usize::try_from(number).ok().and_then(|number| self.frames.get(number)) {
            frame.store(word, Ordering::Release);
        }
    }

    /// Records that frame `number` was received.
    pub fn returned(&self, number: u64, now_ns: u64) -> Returned {
        let found = usize::try_from(number).ok().and_then(|number| self.frames.get(number));
        let Some(frame) = found else { return Returned::Foreign };
        let elapsed_ns = now_ns.saturating_sub(self.epoch_ns) + 1;
        let latency = |word: u64| {
            let is_waiting = word != 0 && word & BACK == 0;
            is_waiting.then(|| BACK | elapsed_ns.saturating_sub(word) & !BACK)
        };
        match frame.fetch_update(Ordering::AcqRel, Ordering::Acquire, latency) {
            Ok(_) => Returned::First,
            Err(0) => Returned::Foreign,
            Err(_) => Returned::Again,
        }
    }

    /// Returns the number of frames that came back and their latencies. The caller sets the other fields.
    pub fn finish(self) -> StreamFate {
        let words = self.frames.into_iter().map(AtomicU64::into_inner);
        let mut latencies_ns: Vec<u64> =
            words.filter(|word| word & BACK != 0).map(|word| word & !BACK).collect();
        latencies_ns.sort_unstable();
        StreamFate { received: latencies_ns.len() as u64, doubled: 0, reordered: 0, latencies_ns }
    }
}

/// Checks the order in which frames of a stream arrive on an interface. Order matters only within a flow, because
/// routers keep only that.
pub struct Order(Vec<u64>);

impl Order {
    /// Creates the check for a stream with this many flows.
    pub fn new(flows: usize) -> Self {
        Self(vec![0; flows])
    }

    /// Whether a frame arrives after a later one of its flow.
    pub fn is_overtaken(&mut self, flow: u16, number: u64) -> bool {
        let Some(next) = self.0.get_mut(usize::from(flow)) else { return false };
        let is_overtaken = number < *next;
        *next = number.saturating_add(1).max(*next);
        is_overtaken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_frame_has_one_fate() {
        let ledger = Ledger::new([1; 6], 5, 1000);
        for number in 0..4 {
            ledger.sent(number, 2000 + number);
        }
        ledger.not_sent(3);
        let returned: Vec<Returned> = [(0, 2500), (1, 2001), (0, 2600), (3, 2700), (4, 2800), (9, 2900)]
            .map(|(number, now_ns)| ledger.returned(number, now_ns))
            .to_vec();
        use Returned::{Again, First, Foreign};
        assert_eq!(returned, [First, First, Again, Foreign, Foreign, Foreign]);
        // A clock that was set back must not give an invalid result.
        assert_eq!(ledger.returned(2, 0), First);
        let fate = ledger.finish();
        assert_eq!((fate.received, fate.latencies_ns.clone()), (3, vec![0, 0, 500]));
        assert_eq!([0, 500, 990, 1000].map(|of| fate.latency_ns(of)), [0, 0, 500, 500].map(Some));
        assert_eq!(StreamFate::default().latency_ns(500), None);
    }

    #[test]
    fn two_receivers_count_a_frame_once() {
        let ledger = Ledger::new([1; 6], 10_000, 0);
        (0..10_000).for_each(|number| ledger.sent(number, 5));
        let first = |_: usize| (0..10_000).filter(|n| ledger.returned(*n, 9) == Returned::First).count();
        let all: usize = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..2).map(|at| scope.spawn(move || first(at))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!((all, ledger.finish().received), (10_000, 10_000));
    }

    #[test]
    fn order_is_that_of_a_flow() {
        let mut order = Order::new(2);
        let overtaken = [(0, 1), (1, 0), (0, 5), (0, 3), (0, 4), (1, 2), (0, 6), (7, 0)]
            .map(|(flow, number)| order.is_overtaken(flow, number));
        assert_eq!(overtaken, [false, false, false, true, true, false, false, false]);
    }
}
