//! Schedules when frames are offered to a port: exact arithmetic without drift.
//!
//! A port behaves as a MAC that stores a frame until its last byte (including the gap) has arrived from the
//! wire, and then passes it to the card, one beat in each clock cycle. At any cycle, the frames passed on are
//! those that the wire has fully carried since the start. Over any window between two cycles, the rate is
//! exact to within one frame.

use thiserror::Error;

use crate::rate::{Rate, wire_bytes};

/// Bits in a byte.
const BYTE_BITS: u128 = 8;
/// Longest frame that a port accepts, in bytes.
const FRAME_BYTES_MAX: u64 = 9216;

/// The card's bus, which receives the frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bus {
    /// Clock in kHz.
    pub clock_khz: u32,
    /// Bytes in a beat.
    pub bytes: u32,
}

impl Bus {
    /// Number of beats of a frame; at least one.
    #[must_use]
    pub const fn beats(self, frame_bytes: usize) -> u64 {
        let beats = (frame_bytes as u64).div_ceil(self.bytes as u64);
        if beats == 0 { 1 } else { beats }
    }

    /// Maximum rate in bits per second.
    #[must_use]
    pub const fn bits_max(self) -> u64 {
        self.bytes as u64 * 8 * self.clock_khz as u64 * 1000
    }

    /// The first cycle at which a wire of this rate has carried `bytes` since the start.
    #[must_use]
    pub const fn cycles(self, rate: Rate, bytes: u64) -> u64 {
        let cycles = bytes as u128 * BYTE_BITS * self.clock_khz as u128 * 1000;
        cycles.div_ceil(rate.bits() as u128) as u64
    }

    /// Duration of `cycles` in nanoseconds, rounded down.
    #[must_use]
    pub const fn nanoseconds(self, cycles: u64) -> u64 {
        (cycles as u128 * 1_000_000 / self.clock_khz as u128) as u64
    }
}

/// The time at which a frame enters the card.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Slot {
    /// Cycle at which the complete frame is available.
    pub due: u64,
    /// Cycle of its first beat: `due`, or the end of the previous frame.
    pub begin: u64,
    /// Number of beats, one in each cycle.
    pub beats: u64,
}

/// The bus is slower than the wire.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[error("{rate} exceeds the port's bus of {bytes} bytes per clock at {mhz} MHz: frame {frame} is {late} cycles late", mhz = f64::from(*clock_khz) / 1e3)]
pub struct TooFast {
    /// The offered rate.
    pub rate: Rate,
    /// Number of the first frame, counted from 1, that is too late.
    pub frame: u64,
    /// Its delay in cycles.
    pub late: u64,
    /// Bytes in a beat.
    pub bytes: u32,
    /// Clock in kHz.
    pub clock_khz: u32,
}

/// The schedule of a port's frames.
#[derive(Clone, Debug)]
pub struct Schedule {
    rate: Rate,
    bus: Bus,
    /// Byte times of all frames so far.
    carried: u64,
    frames: u64,
    /// First cycle at which the bus is free.
    free: u64,
    /// Beats of the longest frame so far.
    longest: u64,
}

impl Schedule {
    /// Creates an empty schedule; the wire starts at cycle 0.
    #[must_use]
    pub const fn new(rate: Rate, bus: Bus) -> Self {
        Self { rate, bus, carried: 0, frames: 0, free: 0, longest: 0 }
    }

    /// Schedules the next frame.
    ///
    /// # Errors
    /// If its delay exceeds the time of the longest frame so far plus one of maximum length: the bus is too
    /// slow for this rate.
    pub fn next(&mut self, frame_bytes: usize) -> Result<Slot, TooFast> {
        self.carried += wire_bytes(frame_bytes);
        self.frames += 1;
        let due = self.bus.cycles(self.rate, self.carried);
        let begin = due.max(self.free);
        let beats = self.bus.beats(frame_bytes);
        let late = begin - due;
        // A long frame that has just begun can delay a short one even on a bus that is fast enough.
        if late > self.longest + FRAME_BYTES_MAX.div_ceil(u64::from(self.bus.bytes)) {
            let Bus { clock_khz, bytes } = self.bus;
            return Err(TooFast { rate: self.rate, frame: self.frames, late, bytes, clock_khz });
        }
        self.free = begin + beats;
        self.longest = self.longest.max(beats);
        Ok(Slot { due, begin, beats })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NARROW: Bus = Bus { clock_khz: 62_500, bytes: 8 };

    fn rate(text: &str) -> Rate {
        text.parse().unwrap()
    }

    #[test]
    fn a_gigabit_of_shortest_frames_is_one_every_42_cycles() {
        let mut schedule = Schedule::new(rate("1G"), NARROW);
        for frame in 1..=1000u64 {
            let slot = schedule.next(60).unwrap();
            assert_eq!(slot, Slot { due: 42 * frame, begin: 42 * frame, beats: 8 });
        }
    }

    #[test]
    fn fractions_of_a_cycle_add_up() {
        // 85 byte times at 1 Gbit/s are 42.5 cycles.
        let mut schedule = Schedule::new(rate("1G"), NARROW);
        let due: Vec<u64> = (0..4).map(|_| schedule.next(61).unwrap().due).collect();
        assert_eq!(due, [43, 85, 128, 170]);
        // A rate that gives no whole number of cycles.
        let odd = rate("999999937");
        assert_eq!(NARROW.cycles(odd, 999_999_937), 500_000_000);
        assert_eq!(NARROW.cycles(odd, 999_999_938), 500_000_001);
    }

    #[test]
    fn a_bus_that_is_too_slow_is_detected() {
        assert_eq!(NARROW.bits_max(), 4_000_000_000);
        let mut schedule = Schedule::new(rate("8G"), NARROW);
        let fault = (0..10_000).find_map(|_| schedule.next(1514).err()).expect("twice what the bus carries");
        assert!(fault.frame > 1 && fault.late > 1152, "{fault}");
        assert!(fault.to_string().contains("8 Gbit/s exceeds the port's bus"), "{fault}");
        // Gaps compensate for the unused bytes in the last beat of a frame.
        let mut schedule = Schedule::new(rate("4G"), NARROW);
        assert!((0..10_000).all(|at| schedule.next(60 + at % 16).is_ok()));
        assert_eq!((NARROW.beats(0), NARROW.beats(8), NARROW.beats(9)), (1, 1, 2));
    }
}
