//! The Internet checksum (RFC 1071): full sums, pseudo headers, and incremental updates (RFC 1624 equation
//! 3).
//!
//! Used by every IP header and transport. Per packet, the packet path uses only [`ttl_decremented`] and
//! [`crate::ipv4::verify`].
//!
//! One's complement arithmetic has two representations of zero. A sum of bytes that are not all zero folds to
//! `0x0001..=0xffff`, so a checksum computed in full is `0x0000..=0xfffe` and never `0xffff`. A received
//! `0xffff` is the other representation of `0x0000`: it verifies, and an incremental update of it gives the
//! same result as a full computation (RFC 1624 §4; equation 3 corrects the error in RFC 1141). In UDP,
//! `0x0000` means "no checksum" (RFC 768), and a computed zero is sent as `0xffff`: see [`udp`] and
//! [`udp_updated`].

use core::net::{Ipv4Addr, Ipv6Addr};

use crate::ip;

/// A one's complement sum in progress. Bytes can be added in pieces of any length, including odd lengths.
///
/// Exact for up to 16 GiB in total.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sum {
    /// Sum of 32-bit words in native byte order: byte order does not matter until the end (RFC 1071 §2 B).
    words: u64,
    /// Whether an odd number of bytes has been added; the next byte is then the low half of a 16-bit word.
    odd: bool,
}

impl Sum {
    /// A sum of nothing.
    #[must_use]
    pub const fn new() -> Self {
        Self { words: 0, odd: false }
    }

    /// Starts with the pseudo header of a transport over IPv4 (RFC 9293 §3.1). `length` is the length of
    /// transport header and data, in bytes.
    #[must_use]
    pub fn pseudo_v4(source: Ipv4Addr, destination: Ipv4Addr, protocol: ip::Protocol, length: u16) -> Self {
        Self::new()
            .bytes(&source.octets())
            .bytes(&destination.octets())
            .u16(u16::from(protocol.0))
            .u16(length)
    }

    /// Starts with the pseudo header of a transport over IPv6 (RFC 8200 §8.1). `length` is the length of
    /// transport header and data, in bytes.
    #[must_use]
    pub fn pseudo_v6(source: Ipv6Addr, destination: Ipv6Addr, protocol: ip::Protocol, length: u32) -> Self {
        Self::new()
            .bytes(&source.octets())
            .bytes(&destination.octets())
            .u32(length)
            .u32(u32::from(protocol.0))
    }

    /// Adds bytes, eight at a time.
    #[must_use]
    #[inline]
    pub fn bytes(mut self, bytes: &[u8]) -> Self {
        let (eights, rest) = bytes.as_chunks::<8>();
        let mut words = 0u64;
        for eight in eights {
            let word = u64::from_ne_bytes(*eight);
            words += (word & 0xffff_ffff) + (word >> 32);
        }
        if !rest.is_empty() {
            // A short tail is padded with zeros on the right (RFC 1071 §1), which do not change the sum.
            let mut tail = [0u8; 8];
            tail.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
            let word = u64::from_ne_bytes(tail);
            words += (word & 0xffff_ffff) + (word >> 32);
        }
        if self.odd {
            // Every byte of this piece belongs in the other half of its word, so swap the bytes of the
            // piece's sum (RFC 1071 §2 B).
            words = u64::from(fold(words).swap_bytes());
        }
        self.words += words;
        self.odd ^= bytes.len() % 2 == 1;
        self
    }

    /// Adds a 16-bit field.
    #[must_use]
    #[inline]
    pub fn u16(self, value: u16) -> Self {
        self.bytes(&value.to_be_bytes())
    }

    /// Adds a 32-bit field.
    #[must_use]
    #[inline]
    pub fn u32(self, value: u32) -> Self {
        self.bytes(&value.to_be_bytes())
    }

    /// The folded sum without complement: `0xffff` over data that includes its correct checksum.
    #[must_use]
    #[inline]
    pub fn folded(self) -> u16 {
        u16::from_be(fold(self.words))
    }

    /// The checksum: the complement of the folded sum.
    #[must_use]
    #[inline]
    pub fn checksum(self) -> u16 {
        !self.folded()
    }
}

/// Folds a sum of 32-bit words to 16 bits with end-around carries.
#[inline]
const fn fold(words: u64) -> u16 {
    // Two rounds for each width: the first round can carry once more.
    let words = (words & 0xffff_ffff) + (words >> 32);
    let words = (words & 0xffff_ffff) + (words >> 32);
    let words = (words & 0xffff) + (words >> 16);
    let words = (words & 0xffff) + (words >> 16);
    words as u16
}

/// Computes the checksum of `bytes`. The checksum field in `bytes` must be zero.
#[must_use]
#[inline]
pub fn full(bytes: &[u8]) -> u16 {
    Sum::new().bytes(bytes).checksum()
}

/// Whether `bytes`, including the checksum field, sum to all ones.
#[must_use]
#[inline]
pub fn verify(bytes: &[u8]) -> bool {
    Sum::new().bytes(bytes).folded() == 0xffff
}

/// A computed checksum in the form that UDP sends: zero becomes `0xffff` (RFC 768).
#[must_use]
#[inline]
pub const fn udp(checksum: u16) -> u16 {
    if checksum == 0 { 0xffff } else { checksum }
}

/// Updates a checksum after a 16-bit field changed from `old` to `new` (RFC 1624 equation 3: `HC' = ~(~HC +
/// ~m + m')`).
#[must_use]
#[inline]
pub const fn updated_u16(checksum: u16, old: u16, new: u16) -> u16 {
    refolded(!checksum as u32 + !old as u32 + new as u32)
}

/// Updates a checksum after a 32-bit field, 16-bit aligned in its header, changed from `old` to `new`.
#[must_use]
#[inline]
pub const fn updated_u32(checksum: u16, old: u32, new: u32) -> u16 {
    let removed = (!old >> 16) + (!old & 0xffff);
    let added = (new >> 16) + (new & 0xffff);
    refolded(!checksum as u32 + removed + added)
}

/// Updates a checksum after a 128-bit field (an IPv6 address) changed from `old` to `new`.
#[must_use]
pub fn updated_u128(checksum: u16, old: u128, new: u128) -> u16 {
    let old = Sum::new().bytes(&old.to_be_bytes()).folded();
    let new = Sum::new().bytes(&new.to_be_bytes()).folded();
    updated_u16(checksum, old, new)
}

/// Updates an IPv4 header checksum after the TTL was decremented by one. For the word `TTL, protocol`,
/// equation 3 reduces to adding `0x0100` with an end-around carry and writing `0xffff` as `0x0000`.
#[must_use]
#[inline]
pub const fn ttl_decremented(checksum: u16) -> u16 {
    let sum = checksum as u32 + 0x0100;
    (sum + (sum >= 0xffff) as u32) as u16
}

/// Updates a UDP checksum after a 16-bit field changed. An absent checksum (zero) stays absent; a present one
/// never becomes zero.
#[must_use]
#[inline]
pub const fn udp_updated(checksum: u16, old: u16, new: u16) -> u16 {
    if checksum == 0 { 0 } else { udp(updated_u16(checksum, old, new)) }
}

/// Folds a sum of at most `5 × 0xffff` and complements it.
///
/// The sum is zero only if `HC`, `m` = `0xffff` and `m'` = 0. Then the old data summed to zero with a field
/// that was not zero, and the remaining data sums to zero (`0xffff`). The correct checksum is therefore
/// `0x0000`, not the complement `0xffff`. (`0xffff` would be correct only for data of all zeros, and no
/// header is all zeros.)
#[inline]
const fn refolded(sum: u32) -> u16 {
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = (sum & 0xffff) + (sum >> 16);
    if sum == 0 { 0 } else { !(sum as u16) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::vec::Vec;

    /// RFC 1071 §4.1 word by word: the slow reference that the fast sum is compared with.
    fn naive(bytes: &[u8]) -> u16 {
        let mut sum = 0u32;
        for pair in bytes.chunks(2) {
            sum += u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
            sum = (sum & 0xffff) + (sum >> 16);
        }
        !(sum as u16)
    }

    /// Words near carries and near both zeros, and arbitrary words.
    fn word() -> impl Strategy<Value = u16> {
        prop_oneof![
            Just(0u16),
            Just(1),
            Just(0x00ff),
            Just(0x0100),
            Just(0xfeff),
            Just(0xff00),
            Just(0xfffe),
            Just(0xffff),
            any::<u16>()
        ]
    }

    fn words() -> impl Strategy<Value = Vec<u16>> {
        prop::collection::vec(word(), 2..12)
    }

    fn bytes_of(words: &[u16]) -> Vec<u8> {
        words.iter().flat_map(|w| w.to_be_bytes()).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn full_equals_definition(bytes in prop::collection::vec(any::<u8>(), 0..200), ones in any::<bool>()) {
            let bytes = if ones { std::vec![0xff; bytes.len()] } else { bytes };
            prop_assert_eq!(full(&bytes), naive(&bytes));
        }

        #[test]
        fn pieces_equal_whole(bytes in prop::collection::vec(any::<u8>(), 0..64), a: prop::sample::Index, b: prop::sample::Index) {
            let (a, b) = (a.index(bytes.len() + 1), b.index(bytes.len() + 1));
            let (a, b) = (a.min(b), a.max(b));
            let pieces = Sum::new().bytes(&bytes[..a]).bytes(&bytes[a..b]).bytes(&bytes[b..]);
            prop_assert_eq!(pieces.checksum(), full(&bytes));
        }

        /// For a header with either representation of a zero checksum and a changed field, the update equals
        /// the full computation.
        #[test]
        fn update_u16_equals_full(mut words in words(), at: prop::sample::Index, new in word(), minus_zero: bool) {
            let mut checksum = full(&bytes_of(&words));
            if minus_zero && checksum == 0 {
                checksum = 0xffff;
            }
            let at = at.index(words.len());
            let old = core::mem::replace(&mut words[at], new);
            prop_assume!(words.iter().any(|w| *w != 0));
            let updated = updated_u16(checksum, old, new);
            prop_assert_eq!(updated, full(&bytes_of(&words)));
        }

        #[test]
        fn update_u32_equals_full(mut words in words(), at: prop::sample::Index, new: (u16, u16)) {
            let checksum = full(&bytes_of(&words));
            let at = at.index(words.len() - 1);
            let join = |a: u16, b: u16| u32::from(a) << 16 | u32::from(b);
            let old = join(words[at], words[at + 1]);
            (words[at], words[at + 1]) = new;
            prop_assume!(words.iter().any(|w| *w != 0));
            prop_assert_eq!(updated_u32(checksum, old, join(new.0, new.1)), full(&bytes_of(&words)));
        }

        #[test]
        fn update_u128_equals_full(head: [u8; 8], old: u128, new: u128) {
            prop_assume!(head != [0; 8]);
            let whole = |address: u128| { let mut b = head.to_vec(); b.extend(address.to_be_bytes()); full(&b) };
            prop_assert_eq!(updated_u128(whole(old), old, new), whole(new));
        }
    }

    #[test]
    fn ttl_equals_equation_3_for_every_checksum() {
        for checksum in 0..=u16::MAX {
            for word in [0x0100u16, 0x01ff, 0x4006, 0xff00, 0xffff] {
                assert_eq!(ttl_decremented(checksum), updated_u16(checksum, word, word - 0x0100));
            }
        }
    }

    #[test]
    fn both_zeros() {
        // RFC 1624 §5: HC = 0xDD2F, m = 0x5555, m' = 0x3285 gives 0x0000 where RFC 1141 gave 0xffff.
        assert_eq!(updated_u16(0xdd2f, 0x5555, 0x3285), 0x0000);
        assert_eq!(ttl_decremented(0xfeff), 0x0000);
        assert_eq!(ttl_decremented(0xffff), 0x0100);
        assert_eq!(ttl_decremented(0xff00), 0x0001);
        assert_eq!(updated_u16(0xffff, 0xffff, 0), 0);
        assert_eq!(full(&[0; 20]), 0xffff);
        assert_eq!(udp(0), 0xffff);
        assert_eq!(udp_updated(0, 1, 2), 0);
        assert_eq!(udp_updated(0xdd2f, 0x5555, 0x3285), 0xffff);
    }

    #[test]
    fn rfc_1071_example() {
        assert_eq!(Sum::new().bytes(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]).folded(), 0xddf2);
    }

    /// Checks the checker: RFC 1141's formula must fail the property above.
    #[test]
    fn planted_rfc_1141_bug_is_detected() {
        let rfc_1141 = |checksum: u16, old: u16, new: u16| {
            let sum = u32::from(checksum) + u32::from(old) + u32::from(!new);
            let sum = (sum & 0xffff) + (sum >> 16);
            ((sum & 0xffff) + (sum >> 16)) as u16
        };
        let words = [0x5555u16, !0xdd2fu16.wrapping_add(0x5555)];
        let checksum = full(&bytes_of(&words));
        let differs = (0..=u16::MAX)
            .filter(|new| rfc_1141(checksum, words[0], *new) != full(&bytes_of(&[*new, words[1]])))
            .count();
        assert!(differs > 0);
        let ours = (0..=u16::MAX)
            .filter(|new| updated_u16(checksum, words[0], *new) != full(&bytes_of(&[*new, words[1]])));
        assert_eq!(ours.count(), 0);
    }
}
