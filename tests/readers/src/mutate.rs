//! Damages an input, in ways that formats are sensitive to: lengths, counts, cuts, repetitions.

use hue_testdata::Random;

/// Longest input. A fault that depends on size shows in the comparison of long inputs.
pub const INPUT_BYTES_MAX: usize = 64 << 10;
/// Most edits of one input.
const EDITS_MAX: usize = 8;
/// Numbers at which lengths and counts overflow.
const NUMBERS: [u32; 12] =
    [0, 1, 0x7f, 0x80, 0xff, 0x7fff, 0x8000, 0xffff, 0x10_0000, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff];

/// A damaged copy of one of the samples; one in sixteen is whole.
pub fn mutate(samples: &[Vec<u8>], words: &[&str], random: &mut Random) -> Vec<u8> {
    let mut bytes = samples[random.below(samples.len())].clone();
    if random.below(16) > 0 {
        for _ in 0..=random.below(EDITS_MAX) {
            edit(&mut bytes, samples, words, random);
        }
    }
    bytes.truncate(INPUT_BYTES_MAX);
    bytes
}

fn edit(bytes: &mut Vec<u8>, samples: &[Vec<u8>], words: &[&str], random: &mut Random) {
    let at = random.below(bytes.len() + 1);
    let len = random.below(64).min(bytes.len() - at);
    match random.below(9) {
        0 => bytes.truncate(at),
        1 => drop(bytes.drain(at..at + len)),
        2 if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
        3 if at < bytes.len() => bytes[at] = random.below(256) as u8,
        // A number, in either byte order.
        4 | 5 => {
            let number = NUMBERS[random.below(NUMBERS.len())];
            let all = if random.below(2) == 0 { number.to_be_bytes() } else { number.to_le_bytes() };
            let width = [1, 2, 4][random.below(3)];
            let part = if random.below(2) == 0 { &all[..width] } else { &all[4 - width..] };
            let end = (at + width).min(bytes.len());
            bytes.splice(at..end, part.iter().copied());
        }
        // A piece again, many times.
        6 => {
            let piece = bytes[at..at + len].repeat(1 + random.below(200));
            bytes.splice(at..at, piece);
        }
        // A piece of another sample.
        7 => {
            let other = &samples[random.below(samples.len())];
            let start = random.below(other.len() + 1);
            let end = (start + random.below(512)).min(other.len());
            bytes.splice(at..at + len, other[start..end].iter().copied());
        }
        _ if !words.is_empty() => {
            bytes.splice(at..at, words[random.below(words.len())].bytes());
        }
        _ => {}
    }
    bytes.truncate(2 * INPUT_BYTES_MAX);
}
