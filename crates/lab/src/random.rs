//! Random numbers from a seed, reproducible everywhere (SplitMix64, Steele, Lea and Flood 2014).

/// A sequence of random numbers.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Starts the sequence of a seed.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns the next number.
    pub const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number below `end`, or 0 if `end` is 0.
    pub const fn below(&mut self, end: u64) -> u64 {
        // The multiplication has a bias below 2^-32 for the ranges used here.
        ((self.next() as u128 * end as u128) >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_equals_the_published_one() {
        // The first numbers for seed 1234567, from the test of the reference implementation.
        let mut random = Random::new(1_234_567);
        assert_eq!(random.next(), 6_457_827_717_110_365_317);
        assert_eq!(random.next(), 3_203_168_211_198_807_973);
        let mut seen = [false; 7];
        for _ in 0..200 {
            seen[random.below(7) as usize] = true;
        }
        assert_eq!((seen, random.below(0)), ([true; 7], 0));
    }
}
