//! The model outside a twin's ports: waiting frames, and lines that carry frames no faster than Ethernet does.

use crate::common::echo;
use hue_card::Twin;

const FRAMES: u32 = 200;

/// Pushes frames of these lengths in turn. Returns the cycles in which they left: first and last.
fn through(twin: &mut Twin, lengths: &[usize]) -> Vec<(u64, u64)> {
    for (tag, len) in (0..FRAMES).zip(lengths.iter().cycle()) {
        assert!(twin.push(0, 0, tag, 0, &vec![7; *len]));
    }
    assert_eq!((twin.waiting(0), twin.waiting(1), twin.waiting(200)), (u64::from(FRAMES), 0, 0));
    while !twin.idle() {
        assert!(twin.run(100_000) > 0);
    }
    assert_eq!((twin.failure(), twin.waiting(0)), (None, 0));
    std::iter::from_fn(|| twin.pop().map(|frame| (frame.first_cycle, frame.last_cycle))).collect()
}

#[test]
fn a_line_carries_no_more_than_it_can_and_no_less() {
    let mut twin = echo("tcam1");
    assert!(!twin.set_line(8, Some((1, 1))) && !twin.set_line(0, Some((1, 0))));
    // A gigabit at 62.5 MHz: half a cycle a byte. 60 bytes and 17 take 84 byte times, 61 take 85, that is 42.5 cycles.
    for (lengths, half_cycles) in
        [(&[60][..], &[84][..]), (&[17], &[84]), (&[61], &[85]), (&[61, 1514], &[85, 1538])]
    {
        assert!(twin.set_line(1, Some((1, 2))));
        let left = through(&mut twin, lengths);
        let mut free = 2 * left[0].0;
        for ((first, last), half_cycles) in left.iter().zip(half_cycles.iter().cycle()) {
            // In the first whole cycle in which the line is free, and after that without a gap.
            assert_eq!(*first, free.div_ceil(2), "{lengths:?}");
            assert!(last - first < 190);
            free += half_cycles;
        }
    }
    // Without a line, or with a line only at another port, one beat per cycle.
    assert!(twin.set_line(1, None) && twin.set_line(2, Some((1, 2))));
    let left = through(&mut twin, &[64]);
    assert!(left.windows(2).all(|pair| pair[1].0 - pair[0].0 == 8), "{left:?}");
}

#[test]
fn a_slow_line_is_no_still_card() {
    let mut twin = echo("tcam1");
    // 84 byte times of 1,000 cycles: longer than anything else may stay without movement.
    assert!(twin.set_line(1, Some((1000, 1))));
    for tag in 0..4 {
        assert!(twin.push(0, 0, tag, 0, &[7; 60]));
    }
    let mut stillest = 0;
    while !twin.idle() {
        assert!(twin.run(1_000) > 0);
        stillest = stillest.max(twin.still_cycles());
    }
    assert!(stillest < 1_000, "{stillest}");
    let left: Vec<_> = std::iter::from_fn(|| twin.pop().map(|frame| frame.first_cycle)).collect();
    assert!(left.windows(2).all(|pair| pair[1] - pair[0] == 84_000) && left.len() == 4, "{left:?}");
}
