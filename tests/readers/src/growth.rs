//! Whether the work of a reader grows in proportion to its input.
//!
//! Processor time of an input is compared with that of one four times as long, in one run: proportional work takes four
//! times as long, quadratic work sixteen times. How fast or busy the machine is does not matter.

use crate::readers::{Reader, Shape};
use crate::worker::cpu_us;

/// The long input has so many times the elements of the short one.
const TIMES: usize = 4;
/// How many times as long the long input may take: proportional with a logarithm and caches is far below, quadratic is
/// double.
const TIMES_MAX: f64 = 8.0;
/// Least processor time of the short input that is measured, in milliseconds: enough for a measurement. A longer one also
/// finds what matters for long inputs only.
pub const LEAST_MS: u64 = 4;
/// Most elements of the short input.
const ELEMENTS_MAX: usize = 1 << 14;
/// An input that takes this long, in microseconds, and too long for its size, needs no longer one to be judged.
const LONG_US: u64 = 400_000;
/// Each is measured this often; the fastest counts.
const TRIES: usize = 3;

/// Measured growth.
#[derive(Clone, Debug)]
pub struct Growth {
    /// Name of the reader and of the shape of its inputs.
    pub of: String,
    /// Elements of the short input.
    pub elements: usize,
    /// Processor time of the short and of the long one, in microseconds.
    pub us: [u64; 2],
}

impl Growth {
    /// Whether the work grows faster than the input.
    #[must_use]
    pub fn is_too_fast(&self) -> bool {
        self.times() > TIMES_MAX
    }

    /// How many times as long the long input took.
    #[must_use]
    pub fn times(&self) -> f64 {
        self.us[1] as f64 / self.us[0].max(1) as f64
    }
}

/// Measures all shapes of a reader's inputs. Must not run beside other work of this process.
#[must_use]
pub fn growth(reader: &Reader, least_ms: u64) -> Vec<Growth> {
    reader.shapes.iter().map(|shape| growth_of(reader, shape, least_ms)).collect()
}

fn growth_of(reader: &Reader, shape: &Shape, least_ms: u64) -> Growth {
    let least_us = 1_000 * least_ms;
    let mut read = (reader.start)();
    let mut measure = |elements: usize| {
        let input = (shape.of)(elements);
        let mut once = || {
            let begun = cpu_us();
            read(&input);
            cpu_us() - begun
        };
        (0..TRIES).map(|_| once()).min().unwrap_or(0)
    };
    let most = (shape.elements_max / TIMES).min(ELEMENTS_MAX);
    let mut elements = 64.min(most);
    let mut short = measure(elements);
    while short < least_us && elements < most {
        elements = (2 * elements).min(most);
        short = measure(elements);
    }
    // Too short to be measured: nothing of it can be slow.
    let mut us = [short.max(1_000 * LEAST_MS), 0];
    loop {
        us[1] = measure(TIMES * elements);
        let too_fast = us[1] as f64 > TIMES_MAX * us[0] as f64;
        // A step, such as where an input outgrows a cache, is passed by longer inputs; growth is not.
        let longer = (TIMES * elements).min(shape.elements_max / TIMES);
        if !too_fast || us[1] > LONG_US || longer <= elements {
            break;
        }
        elements = longer;
        us[0] = measure(elements);
    }
    Growth { of: format!("{}: {}", reader.name, shape.name), elements, us }
}
