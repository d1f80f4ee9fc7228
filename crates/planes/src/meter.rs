//! Token buckets in packets and in bits, with integers, so that hardware can compute exactly the same.
//!
//! Flow: demux → **meter** → checks. One rate, colour-blind: a packet conforms or is dropped (RFC 2697 §3 with one
//! bucket). Time is an argument, nanoseconds from any start.
//!
//! Arithmetic of a bucket, exact: nothing is ever rounded. A metered unit (a packet, or a bit of a frame) costs 10^9
//! tokens. A rate R (40 bits, at least 1) earns R tokens per nanosecond. The bucket holds `cap` = burst × 10^9 tokens
//! (burst 40 bits, at least 1; `cap` 70 bits) and starts full. Its state is its debt: the tokens that it lacks to be
//! full. At a packet at time `now` (64 bits):
//!
//! ```text
//! elapsed  = now - last if now > last else 0      64 bits
//! debt     = max(debt - elapsed × R, 0)           70 bits; the product has 104
//! last     = max(last, now)
//! ```
//!
//! and the packet conforms if for each bucket debt + cost <= cap; the costs are 10^9, and 8 × 10^9 per byte of the
//! frame. Then each debt rises by the cost; otherwise none does. Time that goes backwards earns nothing and loses
//! nothing.
//!
//! Debts can be read and set, so that another meter of the network can continue where this one stopped. A debt may
//! then exceed `cap`: the bucket passes nothing until it has earned the excess.

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Tokens that one metered unit costs: nanoseconds in a second.
const UNIT_TOKENS: u128 = 1_000_000_000;

/// A rate and a burst, in packets or in bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(try_from = "(u64, u64)", into = "(u64, u64)")]
pub struct Rate {
    per_second: u64,
    burst: u64,
}

/// Why numbers are not a valid rate; the caller's fault.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum MeterError {
    /// Rate or burst is above its limit, or is 0, with which no packet would ever pass.
    #[error("{what} is {found}: expected 1 to {max}")]
    Range {
        /// Which of the two.
        what: &'static str,
        /// The number given.
        found: u64,
        /// [`Rate::MAX`].
        max: u64,
    },
}

impl TryFrom<(u64, u64)> for Rate {
    type Error = MeterError;

    fn try_from((per_second, burst): (u64, u64)) -> Result<Self, MeterError> {
        Self::new(per_second, burst)
    }
}

impl From<Rate> for (u64, u64) {
    fn from(rate: Rate) -> Self {
        (rate.per_second, rate.burst)
    }
}

impl Rate {
    /// Highest rate per second, largest burst.
    pub const MAX: u64 = 1_000_000_000_000;

    /// A rate per second, with a burst.
    ///
    /// # Errors
    /// `Range` if one of them is 0 or above [`Rate::MAX`].
    pub const fn new(per_second: u64, burst: u64) -> Result<Self, MeterError> {
        if per_second == 0 || per_second > Self::MAX {
            return Err(MeterError::Range { what: "rate", found: per_second, max: Self::MAX });
        }
        if burst == 0 || burst > Self::MAX {
            return Err(MeterError::Range { what: "burst", found: burst, max: Self::MAX });
        }
        Ok(Self { per_second, burst })
    }

    /// Packets or bits per second.
    #[must_use]
    pub const fn per_second(self) -> u64 {
        self.per_second
    }

    /// Packets or bits at once.
    #[must_use]
    pub const fn burst(self) -> u64 {
        self.burst
    }

    /// Tokens of a full bucket.
    fn cap(self) -> u128 {
        u128::from(self.burst) * UNIT_TOKENS
    }
}

/// Limits on the traffic of a network; without either there is no limit.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
pub struct RateLimit {
    /// In packets.
    pub packets: Option<Rate>,
    /// In bits of frames, destination MAC to last byte.
    pub bits: Option<Rate>,
}

/// State of a meter: the tokens that each bucket lacks to be full; 0 for a bucket that the network does not have.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Debts {
    /// The bucket of packets.
    pub packets: u128,
    /// The bucket of bits.
    pub bits: u128,
    /// Time of the latest packet, nanoseconds. The buckets have earned nothing since.
    pub last_ns: u64,
}

impl Debts {
    /// The largest debt that a meter holds: 70 bits.
    pub const MAX: u128 = (1 << 70) - 1;

    /// Limits the debts to the capacity of the buckets of `limit`. Debts that were read before a change of the limit
    /// then cannot stop the network for longer than an empty bucket does.
    #[must_use]
    pub fn within(self, limit: RateLimit) -> Self {
        let within = |debt: u128, rate: Option<Rate>| debt.min(rate.map_or(0, Rate::cap));
        Self { packets: within(self.packets, limit.packets), bits: within(self.bits, limit.bits), ..self }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Bucket {
    rate: Rate,
    cap: u128,
    debt: u128,
}

impl Bucket {
    fn full(rate: Rate) -> Self {
        Self { rate, cap: rate.cap(), debt: 0 }
    }

    fn earn(&mut self, elapsed_ns: u64) {
        let earned = u128::from(elapsed_ns) * u128::from(self.rate.per_second);
        self.debt = self.debt.saturating_sub(earned);
    }
}

/// The buckets of one network.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Meter {
    packets: Option<Bucket>,
    bits: Option<Bucket>,
    last_ns: u64,
}

impl Meter {
    /// Full buckets.
    #[must_use]
    pub fn new(limit: RateLimit) -> Self {
        Self { packets: limit.packets.map(Bucket::full), bits: limit.bits.map(Bucket::full), last_ns: 0 }
    }

    /// Whether a frame of `frame_bytes` at `now_ns` conforms; if so, it is charged.
    #[must_use]
    pub fn conforms(&mut self, now_ns: u64, frame_bytes: usize) -> bool {
        let elapsed_ns = now_ns.saturating_sub(self.last_ns);
        self.last_ns = self.last_ns.max(now_ns);
        let costs = [UNIT_TOKENS, frame_bytes as u128 * 8 * UNIT_TOKENS];
        let mut conforms = true;
        for (bucket, cost) in [&mut self.packets, &mut self.bits].into_iter().zip(costs) {
            if let Some(bucket) = bucket {
                bucket.earn(elapsed_ns);
                conforms &= bucket.debt + cost <= bucket.cap;
            }
        }
        if conforms {
            for (bucket, cost) in [&mut self.packets, &mut self.bits].into_iter().zip(costs) {
                if let Some(bucket) = bucket {
                    bucket.debt += cost;
                }
            }
        }
        conforms
    }

    /// The debts of its buckets.
    #[must_use]
    pub fn debts(&self) -> Debts {
        let debt = |bucket: &Option<Bucket>| bucket.map_or(0, |bucket| bucket.debt);
        Debts { packets: debt(&self.packets), bits: debt(&self.bits), last_ns: self.last_ns }
    }

    /// Sets the debts of its buckets, each at most [`Debts::MAX`].
    pub fn set_debts(&mut self, debts: Debts) {
        self.last_ns = debts.last_ns;
        for (bucket, debt) in [(&mut self.packets, debts.packets), (&mut self.bits, debts.bits)] {
            if let Some(bucket) = bucket {
                bucket.debt = debt.min(Debts::MAX);
            }
        }
    }

    /// Its limits.
    #[must_use]
    pub fn limit(&self) -> RateLimit {
        RateLimit { packets: self.packets.map(|one| one.rate), bits: self.bits.map(|one| one.rate) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn packets(rate: u64, burst: u64) -> Meter {
        Meter::new(RateLimit { packets: Some(Rate::new(rate, burst).unwrap()), bits: None })
    }

    #[test]
    fn a_burst_passes_then_the_rate() {
        let mut meter = packets(1000, 3);
        let passed = |meter: &mut Meter, now_ns| (0..10).filter(|_| meter.conforms(now_ns, 64)).count();
        assert_eq!(passed(&mut meter, 0), 3);
        assert_eq!(passed(&mut meter, 999_999), 0);
        assert_eq!(passed(&mut meter, 1_000_000), 1);
        assert_eq!(passed(&mut meter, 3_500_000), 2);
        assert_eq!(passed(&mut meter, 4_000_000), 1);
        assert_eq!(passed(&mut meter, u64::MAX), 3);
    }

    #[test]
    fn bits_are_those_of_the_frame_and_nobody_pays_for_a_drop() {
        let rate = |rate, burst| Some(Rate::new(rate, burst).unwrap());
        let mut meter = Meter::new(RateLimit { packets: rate(1, 2), bits: rate(800, 800) });
        assert!(!meter.conforms(0, 101));
        assert!(meter.conforms(0, 60));
        assert!(!meter.conforms(0, 41));
        assert!(meter.conforms(0, 40));
        assert!(!meter.conforms(0, 0), "both packets are used up");
        assert!(meter.conforms(1_000_000_000, 100));
    }

    #[test]
    fn time_that_goes_back_gives_and_takes_nothing() {
        let mut meter = packets(1, 1);
        assert!(meter.conforms(5_000_000_000, 64));
        assert!(!meter.conforms(1, 64));
        assert!(!meter.conforms(5_999_999_999, 64));
        assert!(meter.conforms(6_000_000_000, 64));
    }

    #[test]
    fn a_debt_above_the_burst_is_earned_first() {
        let mut meter = packets(1000, 3);
        meter.set_debts(Debts { packets: 5 * UNIT_TOKENS, bits: 7, last_ns: 1_000_000 });
        assert_eq!(meter.debts(), Debts { packets: 5 * UNIT_TOKENS, bits: 0, last_ns: 1_000_000 });
        assert!(!meter.conforms(3_999_999, 64));
        assert!(meter.conforms(4_000_000, 64), "it lacks two then, and holds one");
        assert!(!meter.conforms(4_000_001, 64));
        assert!(meter.conforms(u64::MAX, 64));
        assert_eq!(meter.debts().packets, UNIT_TOKENS);
    }

    #[test]
    fn debts_are_those_of_the_limit() {
        let debts = Debts { packets: Debts::MAX, bits: 5, last_ns: 9 };
        let limit = packets(1, 4).limit();
        assert_eq!(debts.within(limit), Debts { packets: 4 * UNIT_TOKENS, bits: 0, last_ns: 9 });
        let mut meter = packets(1, 4);
        meter.set_debts(Debts { packets: u128::MAX, ..Debts::default() });
        assert_eq!(meter.debts().packets, Debts::MAX);
    }

    #[test]
    fn limits_hold_at_their_edges() {
        assert!(Rate::new(Rate::MAX, Rate::MAX).is_ok());
        for (rate, burst) in [(0, 1), (1, 0), (Rate::MAX + 1, 1), (1, Rate::MAX + 1)] {
            assert!(Rate::new(rate, burst).is_err(), "{rate} {burst}");
        }
    }

    proptest! {
        /// A network that moves back and forth between two meters passes the same packets as with one.
        #[test]
        fn two_meters_that_hand_their_debts_over_are_one(
            rates in (1..=Rate::MAX, 1..=Rate::MAX),
            bursts in (1..1_000u64, 1..1_000_000u64),
            packets in prop::collection::vec((any::<bool>(), 0..2_000_000u64, 60..1514usize), 1..200),
        ) {
            let rate = |rate, burst| Some(Rate::new(rate, burst).unwrap());
            let limit = RateLimit { packets: rate(rates.0, bursts.0), bits: rate(rates.1, bursts.1) };
            let (mut one, mut there, mut other) = (Meter::new(limit), Meter::new(limit), Meter::new(limit));
            let mut now_ns = 0;
            for (moves, elapsed_ns, bytes) in packets {
                if moves {
                    other.set_debts(there.debts().within(limit));
                    std::mem::swap(&mut there, &mut other);
                }
                now_ns += elapsed_ns;
                prop_assert_eq!(one.conforms(now_ns, bytes), there.conforms(now_ns, bytes));
                prop_assert_eq!(one.debts(), there.debts());
            }
        }

        /// No window of time passes more than burst + rate × window (and nothing overflows on the way).
        #[test]
        fn never_above_the_line(
            rate in prop::sample::select(vec![1, 3, 1_000, 99_999_999, Rate::MAX]),
            burst in prop::sample::select(vec![1, 2, 1_000, Rate::MAX]),
            times in prop::collection::vec(prop_oneof![0..10u64, 0..4_000_000_000u64, any::<u64>()], 1..200),
        ) {
            let mut meter = packets(rate, burst);
            let mut times = times;
            times.sort_unstable();
            let mut passed = Vec::new();
            for now in times {
                if meter.conforms(now, 64) {
                    passed.push(now);
                }
                if let Some(first) = passed.first() {
                    let earned = u128::from(now - first) * u128::from(rate) / UNIT_TOKENS;
                    prop_assert!(passed.len() as u128 <= u128::from(burst) + earned);
                }
            }
        }
    }
}
