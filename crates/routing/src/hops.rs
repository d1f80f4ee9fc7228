//! Maps the next-hop tokens of a network to small indices.
//!
//! Invariant: equal tokens have equal indices, assigned from 0 in the order of first use. The empty token
//! means that the file names no next hop: no line of a text file can contain it.

use std::collections::HashMap;

use hue_tables::NextHop;

/// Most different next hops of a network: the 16-bit word 65535 means "no route" in table images.
pub const HOPS_MAX: usize = NextHop::MAX as usize + 1;

/// The names of a network's next hops, by index.
#[derive(Clone, Default, Debug)]
pub struct HopNames {
    names: Vec<Box<str>>,
    index: HashMap<Box<str>, u16>,
    /// The previous result: tables name the same next hop on many consecutive lines.
    last: Option<NextHop>,
}

impl HopNames {
    /// Returns the index of `token`, and assigns one if the token is new. `None` if all [`HOPS_MAX`] are in
    /// use.
    pub fn intern(&mut self, token: &str) -> Option<NextHop> {
        if let Some(last) = self.last
            && self.name(last) == token
        {
            return Some(last);
        }
        let index = match self.index.get(token) {
            Some(index) => *index,
            None => {
                let index = u16::try_from(self.names.len()).ok()?;
                NextHop::new(index)?;
                self.names.push(token.into());
                self.index.insert(token.into(), index);
                index
            }
        };
        self.last = NextHop::new(index);
        self.last
    }

    /// The token of an index; empty if there is none.
    #[must_use]
    pub fn name(&self, hop: NextHop) -> &str {
        self.names.get(usize::from(hop.get())).map_or("", |name| name)
    }

    /// Number of different next hops.
    #[must_use]
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether there are no next hops.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Derives a next hop for a prefix that has none: 32-bit FNV-1a over the first three bytes of its
    /// address, with the last four bits cleared (20 bits remain), modulo `hops`. With a single next hop, a
    /// table would be compressed unrealistically well.
    #[must_use]
    pub fn derived(bits: u128, hops: u16) -> u16 {
        let bytes = [(bits >> 120) as u8, (bits >> 112) as u8, (bits >> 104) as u8 & 0xf0];
        let hash = bytes
            .iter()
            .fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193));
        (hash % u32::from(hops.max(1))) as u16
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indices_are_consecutive_and_limited() {
        let mut names = HopNames::default();
        for i in 0..HOPS_MAX {
            assert_eq!(names.intern(&i.to_string()).unwrap().get() as usize, i);
        }
        assert_eq!(names.intern("one too many"), None);
        assert_eq!(names.intern("77").map(|hop| hop.get()), Some(77), "known ones still answer");
        assert_eq!(names.name(NextHop::new(77).unwrap()), "77");
    }

    #[test]
    fn derived_hops_follow_the_first_20_bits() {
        let at = |a: u32| HopNames::derived(u128::from(a) << 96, 8);
        assert_eq!(at(0x0a00_0fff), at(0x0a00_0000));
        assert!((0..64u32).any(|i| at(0x0a00_0000 | i << 12) != at(0x0a00_0000)));
    }
}
