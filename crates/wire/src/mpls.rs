//! MPLS label stack entries (RFC 3032 §2.1; RFC 5462 for the name of the traffic class).
//!
//! A stack stands between the Ethernet header, whose type is 0x8847, and the payload, whose protocol no field names. Its
//! entries come from the top to the bottom; the last one has a bit that says so.

/// Length of an entry in bytes.
pub const ENTRY_BYTES: usize = 4;
/// Largest label.
pub const LABEL_MAX: u32 = (1 << 20) - 1;
/// Least label without a meaning of its own (RFC 7274 §5).
pub const LABEL_MIN: u32 = 16;

/// Below it is a packet of IPv4 for this router (RFC 3032 §2.1).
pub const IPV4_EXPLICIT_NULL: u32 = 0;
/// The packet is for the router itself (RFC 3032 §2.1).
pub const ROUTER_ALERT: u32 = 1;
/// Below it is a packet of IPv6 for this router (RFC 3032 §2.1).
pub const IPV6_EXPLICIT_NULL: u32 = 2;
/// Stands for no label in messages of routing protocols; never in a packet (RFC 3032 §2.1).
pub const IMPLICIT_NULL: u32 = 3;

/// An entry of a label stack.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entry {
    /// The label, at most [`LABEL_MAX`].
    pub label: u32,
    /// Traffic class, 0 to 7.
    pub class: u8,
    /// Whether it is the last entry.
    pub bottom: bool,
    /// Time to live.
    pub ttl: u8,
}

impl Entry {
    /// The entry with these bytes.
    #[inline(always)]
    #[must_use]
    pub const fn parse(bytes: [u8; ENTRY_BYTES]) -> Self {
        let word = u32::from_be_bytes(bytes);
        let [_, _, third, ttl] = bytes;
        Self { label: word >> 12, class: third >> 1 & 7, bottom: third & 1 != 0, ttl }
    }

    /// The first entry of a stack; `None` if the bytes end before its end.
    #[inline(always)]
    #[must_use]
    pub fn first(stack: &[u8]) -> Option<Self> {
        stack.first_chunk().copied().map(Self::parse)
    }

    /// Its bytes.
    #[inline(always)]
    #[must_use]
    pub const fn to_bytes(self) -> [u8; ENTRY_BYTES] {
        let word = self.label << 12 | (self.class as u32 & 7) << 9 | (self.bottom as u32) << 8;
        (word | self.ttl as u32).to_be_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_has_its_fields_where_the_standard_says() {
        let entry = Entry { label: 0xabcde, class: 5, bottom: true, ttl: 0x3f };
        assert_eq!(entry.to_bytes(), [0xab, 0xcd, 0xeb, 0x3f]);
        assert_eq!(Entry::parse([0xab, 0xcd, 0xeb, 0x3f]), entry);
        assert_eq!(Entry::first(&[0xab, 0xcd, 0xeb]), None);
        let least = Entry { label: 16, class: 0, bottom: false, ttl: 255 };
        assert_eq!(least.to_bytes(), [0, 1, 0, 255]);
        assert_eq!(Entry::first(&[0, 1, 0, 255, 7]), Some(least));
    }
}
