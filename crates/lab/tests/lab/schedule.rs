//! The exact rate: compares a schedule with the amount that a wire can have carried.

use hue_lab::{Bus, Rate, Schedule, Slot, wire_bytes};
use proptest::prelude::*;

/// Byte times that a wire carries in this many cycles, multiplied by `scale` to avoid rounding.
fn carried(rate: Rate, cycles: u64) -> u128 {
    u128::from(rate.bits()) * u128::from(cycles)
}

/// One byte time in that scale.
fn scale(bus: Bus) -> u128 {
    8 * u128::from(bus.clock_khz) * 1000
}

fn slots(rate: Rate, bus: Bus, frames: &[usize]) -> Vec<Slot> {
    let mut schedule = Schedule::new(rate, bus);
    frames.iter().map_while(|bytes| schedule.next(*bytes).ok()).collect()
}

/// The first window of cycles in which more or less was passed on than the rate allows.
fn breach(rate: Rate, bus: Bus, frames: &[usize], due: &[u64]) -> Option<(u64, u64)> {
    let scale = scale(bus);
    let longest = frames.iter().map(|bytes| u128::from(wire_bytes(*bytes))).max()? * scale;
    let sums: Vec<u128> = std::iter::once(0)
        .chain(frames.iter().scan(0u128, |sum, bytes| {
            *sum += u128::from(wire_bytes(*bytes));
            Some(*sum * scale)
        }))
        .collect();
    // From the start: never more than the wire carried, and never less by a full frame.
    for (at, cycle) in due.iter().enumerate() {
        if *sums.get(at + 1)? > carried(rate, *cycle) {
            return Some((0, *cycle));
        }
        if *cycle > 0 && carried(rate, *cycle - 1) >= *sums.get(at + 1)? {
            return Some((0, *cycle - 1));
        }
    }
    // In any window of frames `from..=to`, inclusive: at most one frame more than the rate.
    for (from, begin) in due.iter().enumerate() {
        for (to, end) in due.iter().enumerate().skip(from) {
            let handed = sums.get(to + 1)? - sums.get(from)?;
            if handed > carried(rate, end - begin) + longest + u128::from(rate.bits()) {
                return Some((*begin, *end));
            }
        }
    }
    None
}

prop_compose! {
    fn buses()(bytes in prop::sample::select(vec![8u32, 32, 64]), clock_khz in 1_000u32..400_000) -> Bus {
        Bus { clock_khz, bytes }
    }
}

proptest! {
    #[test]
    fn the_rate_is_exact_over_any_window(
        bus in buses(),
        share in 1u64..=1000,
        odd in 0u64..997,
        frames in prop::collection::vec(0usize..9300, 1..60),
    ) {
        let bits = (bus.bits_max() / 1000 * share).saturating_sub(odd).max(1);
        let rate = Rate::new(bits).expect("a bus has a rate");
        let slots = slots(rate, bus, &frames);
        prop_assert_eq!(slots.len(), frames.len(), "a rate that the bus carries");
        let due: Vec<u64> = slots.iter().map(|slot| slot.due).collect();
        prop_assert_eq!(breach(rate, bus, &frames, &due), None);
        // The checker detects frames that are a cycle early or late.
        for (planted, at) in [(1i64, 0), (-1, frames.len() - 1)] {
            let mut wrong = due.clone();
            wrong[at] = wrong[at].saturating_add_signed(planted);
            prop_assert!(breach(rate, bus, &frames, &wrong).is_some(), "{planted} at {at}");
        }
    }

    #[test]
    fn frames_follow_each_other_on_the_bus(
        bus in buses(),
        share in 1u64..1500,
        frames in prop::collection::vec(0usize..9300, 1..60),
    ) {
        let rate = Rate::new(bus.bits_max() / 1000 * share).expect("a bus has a rate");
        let slots = slots(rate, bus, &frames);
        for (slot, bytes) in slots.iter().zip(&frames) {
            prop_assert_eq!(slot.beats, (*bytes as u64).div_ceil(u64::from(bus.bytes)).max(1));
            prop_assert!(slot.begin >= slot.due);
            prop_assert!(slot.begin - slot.due <= 2 * 9300u64.div_ceil(u64::from(bus.bytes)), "two frames late");
        }
        for pair in slots.windows(2) {
            let free = pair[0].begin + pair[0].beats;
            prop_assert_eq!(pair[1].begin, pair[1].due.max(free), "no beat is lost and none is shared");
        }
    }
}
