//! Damages an input, in ways that formats are sensitive to: lengths, counts, cuts, repetitions.

/// Longest input. A fault that depends on size shows in the comparison of long inputs.
pub const INPUT_BYTES_MAX: usize = 64 << 10;
/// Most edits of one input.
const EDITS_MAX: u64 = 8;
/// Numbers at which lengths and counts overflow.
const NUMBERS: [u32; 12] =
    [0, 1, 0x7f, 0x80, 0xff, 0x7fff, 0x8000, 0xffff, 0x10_0000, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff];

/// Random numbers from a seed (splitmix64).
pub struct Random(pub u64);

impl Random {
    /// A number below `below`, 0 if that is 0.
    pub fn below(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % below.max(1)
    }

    fn index(&mut self, len: usize) -> usize {
        self.below(len as u64) as usize
    }
}

/// A damaged copy of one of the samples; one in sixteen is whole.
pub fn mutate(samples: &[Vec<u8>], words: &[&str], random: &mut Random) -> Vec<u8> {
    let mut bytes = samples[random.index(samples.len())].clone();
    if random.below(16) > 0 {
        for _ in 0..=random.below(EDITS_MAX) {
            edit(&mut bytes, samples, words, random);
        }
    }
    bytes.truncate(INPUT_BYTES_MAX);
    bytes
}

fn edit(bytes: &mut Vec<u8>, samples: &[Vec<u8>], words: &[&str], random: &mut Random) {
    let at = random.index(bytes.len() + 1);
    let len = random.index(64).min(bytes.len() - at);
    match random.below(9) {
        0 => bytes.truncate(at),
        1 => drop(bytes.drain(at..at + len)),
        2 if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
        3 if at < bytes.len() => bytes[at] = random.below(256) as u8,
        // A number, in either byte order.
        4 | 5 => {
            let number = NUMBERS[random.index(NUMBERS.len())];
            let all = if random.below(2) == 0 { number.to_be_bytes() } else { number.to_le_bytes() };
            let width = [1, 2, 4][random.index(3)];
            let part = if random.below(2) == 0 { &all[..width] } else { &all[4 - width..] };
            let end = (at + width).min(bytes.len());
            bytes.splice(at..end, part.iter().copied());
        }
        // A piece again, many times.
        6 => {
            let piece = bytes[at..at + len].repeat(1 + random.index(200));
            bytes.splice(at..at, piece);
        }
        // A piece of another sample.
        7 => {
            let other = &samples[random.index(samples.len())];
            let start = random.index(other.len() + 1);
            let end = (start + random.index(512)).min(other.len());
            bytes.splice(at..at + len, other[start..end].iter().copied());
        }
        _ if !words.is_empty() => {
            bytes.splice(at..at, words[random.index(words.len())].bytes());
        }
        _ => {}
    }
    bytes.truncate(2 * INPUT_BYTES_MAX);
}
