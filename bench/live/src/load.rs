//! Load: paced frames over all networks, or as many as one core can make, floods beside them, and the results at the sink.
//!
//! Generator and sink are XDP programs (`bpf/load.c`). Frames are made in the kernel and passed to the wire like a driver
//! does. Arriving frames are checked (TTL, checksum), counted and dropped before the sink's kernel sees them. The timestamp is
//! taken when a frame is made, and compared when the sink's driver receives it: so it covers only wires and forwarder.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::bpf::{self, BUCKETS, Generator, NETWORKS, Seen, Settings, TEMPLATE_BYTES};
use crate::contestant::Contestant;
use crate::machine::{self, FORWARDER_CORE, GENERATOR_CORE};
use crate::tunnels::Type;

/// Frames that are passed on at once without a rate.
const BATCH_FULL: u32 = 64;
/// The same with a rate: the more frames, the longer a frame waits for those after it.
const BATCH_PACED: u32 = 8;
/// Time until queues have reached their final length.
const WARM: Duration = Duration::from_millis(300);
/// Time until frames in flight have arrived.
const DRAIN: Duration = Duration::from_millis(300);

/// A load to offer.
#[derive(Clone)]
pub struct Offer {
    /// Bytes of a frame on the wire, with FCS.
    pub bytes: usize,
    /// Networks that get paced frames, from 1.
    pub networks: u16,
    /// Packets a second; `None`: as many as one core can make.
    pub rate: Option<f64>,
    /// Frames that fill the remaining time.
    pub flood: Vec<Vec<u8>>,
    /// Whether latencies are measured.
    pub timed: bool,
    /// The duration.
    pub seconds: f64,
}

impl Offer {
    /// As much as one core can make.
    pub fn full(bytes: usize, networks: u16, seconds: f64) -> Self {
        Self { bytes, networks, rate: None, flood: Vec::new(), timed: false, seconds }
    }

    /// A steady rate with a time in each frame.
    pub fn steady(bytes: usize, networks: u16, rate: f64, seconds: f64) -> Self {
        Self { rate: Some(rate), timed: true, ..Self::full(bytes, networks, seconds) }
    }
}

/// The results of a load.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Packets a second that were offered, without floods.
    pub offered: f64,
    /// Valid packets a second that arrived.
    pub arrived: f64,
    /// Packets a second of the flood.
    pub flood: f64,
    /// Share of the paced packets that did not arrive, from the first to the last, 0 to 1.
    pub loss: f64,
    /// Invalid packets.
    pub wrong: u64,
    /// Share of time that the forwarder's core was busy, 0 to 1.
    pub busy: f64,
    /// Nanoseconds per packet of the watched counter.
    pub watched_ns: f64,
    latencies: Vec<u64>,
}

impl Outcome {
    /// A latency that `share` of the packets did not exceed, microseconds: the middle of its bucket.
    pub fn latency_us(&self, share: f64) -> f64 {
        quantile_us(&self.latencies, share)
    }
}

/// Offers load to a contestant and waits for the results.
///
/// # Panics
/// As [`offer_watched`].
pub fn offer(contestant: &Contestant, offer: &Offer) -> Outcome {
    offer_watched(contestant, offer, || (0, 0))
}

/// The same, and reads a counter of packets and nanoseconds during the load.
///
/// # Panics
/// When the kernel refuses to run the generator, or the measurement was told to end.
pub fn offer_watched(contestant: &Contestant, offer: &Offer, watched: impl Fn() -> (u64, u64)) -> Outcome {
    bpf::step();
    let frames: Vec<(u16, Vec<u8>)> =
        (1..=offer.networks).map(|n| (n, contestant.frame(n, offer.bytes))).collect();
    let settings = Settings {
        interface: u64::from(contestant.wires.generator_index()),
        packets_per_second: offer.rate.map_or(0, |rate| rate.max(1.0) as u64),
        paced: frames.len() as u64,
        fillers: offer.flood.len() as u64,
        stamped: u64::from(offer.timed),
        inner: contestant.wires.arrives_in.map_or(0, Type::bytes) as u64,
    };
    let mut generator = Generator::new(settings, &frames, &offer.flood);
    let runner = generator.runner(&frames[0].1);
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = stop.clone();
    // With fillers every run makes a frame, so batches are as without a rate.
    let batch = if offer.rate.is_some() && offer.flood.is_empty() { BATCH_PACED } else { BATCH_FULL };
    let thread = contestant.wires.generator().thread(move || {
        machine::pin(0, GENERATOR_CORE);
        while !stopped.load(Ordering::Relaxed) {
            runner.run(batch)?;
        }
        Ok::<(), std::io::Error>(())
    });
    let first = contestant.sink.seen();
    std::thread::sleep(WARM);
    let look = || {
        let (seen, sent) = (contestant.sink.seen(), generator.sent());
        (seen, sent, machine::busy_seconds(Some(FORWARDER_CORE)), Instant::now(), watched())
    };
    let before = look();
    std::thread::sleep(Duration::from_secs_f64(offer.seconds));
    let after = look();
    stop.store(true, Ordering::Relaxed);
    bpf::interrupt(&thread);
    let ran = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    ran.unwrap_or_else(|error| panic!("run the generator: {error}"));
    std::thread::sleep(DRAIN);
    let (last, sent) = (contestant.sink.seen(), generator.sent());

    let elapsed = after.3.duration_since(before.3).as_secs_f64();
    let paced = |counts: &[u64]| counts[..NETWORKS].iter().sum::<u64>();
    let ours = |seen: &Seen| (1..=offer.networks).map(|n| seen.frames[usize::from(n)]).sum::<u64>();
    let arrived = ours(&last) - ours(&first);
    Outcome {
        offered: (paced(&after.1) - paced(&before.1)) as f64 / elapsed,
        arrived: (ours(&after.0) - ours(&before.0)) as f64 / elapsed,
        flood: (after.1[NETWORKS] - before.1[NETWORKS]) as f64 / elapsed,
        loss: 1.0 - arrived as f64 / paced(&sent).max(1) as f64,
        wrong: last.frames[NETWORKS] - first.frames[NETWORKS],
        busy: (after.2 - before.2) / elapsed,
        watched_ns: (after.4.1 - before.4.1) as f64 / (after.4.0 - before.4.0).max(1) as f64,
        latencies: after.0.latencies.iter().zip(&before.0.latencies).map(|(a, b)| a - b).collect(),
    }
}

/// The middle of a bucket, nanoseconds: the inverse of `bucket_of` in `bpf/load.c`.
fn bucket_ns(bucket: usize) -> f64 {
    if bucket < 64 {
        return bucket as f64;
    }
    let step = (1u64 << (bucket / 64 - 1)) as f64;
    (64 + bucket % 64) as f64 * step + step / 2.0
}

fn quantile_us(counts: &[u64], share: f64) -> f64 {
    let all: u64 = counts.iter().sum();
    let wanted = (all as f64 * share).ceil() as u64;
    let mut passed = 0;
    for (bucket, count) in counts.iter().enumerate() {
        passed += count;
        if *count > 0 && passed >= wanted {
            return bucket_ns(bucket) / 1000.0;
        }
    }
    0.0
}

/// The payload of a measurement's frame: a mark, its network, and room for a timestamp.
pub fn payload(n: u16, bytes: usize) -> Vec<u8> {
    let mut payload = vec![0; bytes];
    payload[..2].copy_from_slice(&0x4855u16.to_ne_bytes());
    payload[2..4].copy_from_slice(&n.to_ne_bytes());
    payload
}

const _: () = assert!(TEMPLATE_BYTES == 60 && BUCKETS.is_multiple_of(64));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_narrow_and_in_order() {
        for bucket in 65..BUCKETS {
            let (low, high) = (bucket_ns(bucket - 1), bucket_ns(bucket));
            assert!(high > low && high < low * 1.02, "{bucket}: {low} {high}");
        }
        // 1,000 ns is 125 x 8: the fourth power above 64, offset 61.
        assert_eq!(bucket_ns(4 * 64 + 61), 1004.0);
    }

    #[test]
    fn quantiles_are_those_of_the_counts() {
        let mut counts = vec![0; BUCKETS];
        (counts[10], counts[20], counts[30]) = (50, 49, 1);
        assert_eq!(quantile_us(&counts, 0.5), 0.010);
        assert_eq!(quantile_us(&counts, 0.99), 0.020);
        assert_eq!(quantile_us(&counts, 1.0), 0.030);
        assert_eq!(quantile_us(&[0; BUCKETS], 0.5), 0.0);
    }
}
