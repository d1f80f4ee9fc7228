//! TCP (RFC 9293 §3.1): header, flags, options.

use core::fmt;
use core::net::IpAddr;

use zerocopy::byteorder::network_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::checksum;
use crate::error::{Layer, WireError};
use crate::ip::{self, Addresses, with_address};

/// Length of a header without options, in bytes.
pub const HEADER_BYTES: usize = 20;
/// Length of the longest header, in bytes: the data offset has four bits and counts 4-byte words.
pub const HEADER_BYTES_MAX: usize = 60;

/// The header without options.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(C)]
pub struct Header {
    /// Source port.
    pub source: U16,
    /// Destination port.
    pub destination: U16,
    /// Sequence number of the first data byte.
    pub sequence: U32,
    /// Next sequence number expected.
    pub acknowledgment: U32,
    /// Data offset in 4-byte words (4 bits), reserved (4), flags (8).
    pub offset_flags: U16,
    /// Receive window, unscaled.
    pub window: U16,
    /// Checksum of pseudo header, header and data.
    pub checksum: U16,
    /// Offset of urgent data.
    pub urgent: U16,
}

const _: () = assert!(size_of::<Header>() == HEADER_BYTES && align_of::<Header>() == 1);

impl Header {
    /// Length of header and options in bytes: 0 to 60; at least 20 in a valid header.
    #[must_use]
    pub const fn header_bytes(&self) -> usize {
        (self.offset_flags.get() >> 12) as usize * 4
    }

    /// The control flags.
    #[must_use]
    pub const fn flags(&self) -> Flags {
        Flags(self.offset_flags.get() as u8)
    }
}

/// Control flags (RFC 9293 §3.1; CWR and ECE: RFC 3168 §6.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Flags(pub u8);

impl Flags {
    /// The sender has no more data.
    pub const FIN: Self = Self(0x01);
    /// Synchronise sequence numbers.
    pub const SYN: Self = Self(0x02);
    /// Reset the connection.
    pub const RST: Self = Self(0x04);
    /// Push buffered data to the receiver.
    pub const PSH: Self = Self(0x08);
    /// The acknowledgment number is valid.
    pub const ACK: Self = Self(0x10);
    /// The urgent pointer is valid.
    pub const URG: Self = Self(0x20);
    /// ECN echo: congestion was experienced.
    pub const ECE: Self = Self(0x40);
    /// Congestion window reduced.
    pub const CWR: Self = Self(0x80);

    /// Whether all flags in `flags` are set.
    #[must_use]
    pub const fn has(self, flags: Self) -> bool {
        self.0 & flags.0 == flags.0
    }
}

impl fmt::Display for Flags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const NAMES: [&str; 8] = ["FIN", "SYN", "RST", "PSH", "ACK", "URG", "ECE", "CWR"];
        let mut names =
            NAMES.iter().enumerate().filter(|(bit, _)| self.0 >> bit & 1 != 0).map(|(_, name)| name);
        f.write_str(names.next().unwrap_or(&"none"))?;
        names.try_for_each(|name| write!(f, ",{name}"))
    }
}

/// A segment whose data offset is valid for its bytes.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    header: &'a Header,
    segment: &'a [u8],
    options: &'a [u8],
    payload: &'a [u8],
}

impl<'a> View<'a> {
    /// Checks header and data offset.
    ///
    /// # Errors
    /// [`WireError::Truncated`] below 20 bytes, [`WireError::HeaderLength`] (below 20 or more than the
    /// available bytes).
    pub fn parse(segment: &'a [u8]) -> Result<Self, WireError> {
        let Ok((header, rest)) = Header::ref_from_prefix(segment) else {
            return Err(truncated(segment.len()));
        };
        let length = header_length(header, segment.len());
        let options = options_length(header).ok_or(length)?;
        let (options, payload) = rest.split_at_checked(options).ok_or(length)?;
        Ok(Self { header, segment, options, payload })
    }

    /// The fixed header.
    #[must_use]
    pub const fn header(&self) -> &'a Header {
        self.header
    }

    /// The data.
    #[must_use]
    pub const fn payload(&self) -> &'a [u8] {
        self.payload
    }

    /// The options: 0 to 40 bytes, a multiple of 4.
    #[must_use]
    pub const fn options_bytes(&self) -> &'a [u8] {
        self.options
    }

    /// An iterator over the options.
    #[must_use]
    pub const fn options(&self) -> Options<'a> {
        Options { rest: self.options }
    }

    /// Whether the checksum is correct for these addresses.
    #[must_use]
    pub fn checksum_ok(&self, addresses: Addresses) -> bool {
        addresses.pseudo(ip::Protocol::TCP, self.segment.len()).bytes(self.segment).folded() == 0xffff
    }
}

/// A segment that can be edited. Every edit updates the checksum, so a correct one stays correct.
#[derive(Debug)]
pub struct ViewMut<'a> {
    header: &'a mut Header,
    options: &'a mut [u8],
    payload: &'a mut [u8],
}

impl<'a> ViewMut<'a> {
    /// Checks as [`View::parse`] does.
    ///
    /// # Errors
    /// The same.
    pub fn parse(segment: &'a mut [u8]) -> Result<Self, WireError> {
        let have = segment.len();
        let Ok((header, rest)) = Header::mut_from_prefix(segment) else { return Err(truncated(have)) };
        let length = header_length(header, have);
        let options = options_length(header).ok_or(length)?;
        let (options, payload) = rest.split_at_mut_checked(options).ok_or(length)?;
        Ok(Self { header, options, payload })
    }

    /// The fixed header in its current state.
    #[must_use]
    pub const fn header(&self) -> &Header {
        self.header
    }

    /// The data, mutable. Call [`ViewMut::fill_checksum`] after changing it.
    pub const fn payload_mut(&mut self) -> &mut [u8] {
        self.payload
    }

    /// Sets the source port.
    pub const fn set_source(&mut self, port: u16) {
        self.update(self.header.source.get(), port);
        self.header.source = U16::new(port);
    }

    /// Sets the destination port.
    pub const fn set_destination(&mut self, port: u16) {
        self.update(self.header.destination.get(), port);
        self.header.destination = U16::new(port);
    }

    /// Updates the checksum after an address of the IP header changed from `old` to `new` (same family).
    pub fn address_changed(&mut self, old: IpAddr, new: IpAddr) {
        self.header.checksum = U16::new(with_address(self.header.checksum.get(), old, new));
    }

    /// Computes the checksum in full.
    pub fn fill_checksum(&mut self, addresses: Addresses) {
        self.header.checksum = U16::ZERO;
        let length = HEADER_BYTES + self.options.len() + self.payload.len();
        let sum = addresses.pseudo(ip::Protocol::TCP, length).bytes(self.header.as_bytes());
        self.header.checksum = U16::new(sum.bytes(self.options).bytes(self.payload).checksum());
    }

    const fn update(&mut self, old: u16, new: u16) {
        self.header.checksum = U16::new(checksum::updated_u16(self.header.checksum.get(), old, new));
    }
}

/// One option (RFC 9293 §3.1 "Options").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opt<'a> {
    /// Option kind.
    pub kind: u8,
    /// The bytes after kind and length.
    pub data: &'a [u8],
}

impl Opt<'_> {
    /// Padding between options.
    pub const NO_OPERATION: u8 = 1;
    /// Maximum segment size.
    pub const MAXIMUM_SEGMENT_SIZE: u8 = 2;
    /// Window scale (RFC 7323 §2).
    pub const WINDOW_SCALE: u8 = 3;
    /// Selective acknowledgments permitted (RFC 2018 §2).
    pub const SACK_PERMITTED: u8 = 4;
    /// Selective acknowledgment (RFC 2018 §3).
    pub const SACK: u8 = 5;
    /// Timestamps (RFC 7323 §3).
    pub const TIMESTAMPS: u8 = 8;

    /// The maximum segment size in bytes, if this is that option.
    #[must_use]
    pub const fn maximum_segment_bytes(&self) -> Option<u16> {
        match (self.kind, self.data) {
            (Self::MAXIMUM_SEGMENT_SIZE, &[high, low]) => Some(u16::from_be_bytes([high, low])),
            _ => None,
        }
    }
}

/// Iterates over the options of a header, up to the end-of-list option, the last byte, or the first error.
#[derive(Clone, Debug)]
pub struct Options<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Options<'a> {
    type Item = Result<Opt<'a>, WireError>;

    fn next(&mut self) -> Option<Self::Item> {
        let taken = ip::next_option(core::mem::take(&mut self.rest), Layer::TcpOption)?;
        Some(taken.map(|(kind, data, rest)| {
            self.rest = rest;
            Opt { kind, data }
        }))
    }
}

const fn options_length(header: &Header) -> Option<usize> {
    header.header_bytes().checked_sub(HEADER_BYTES)
}

fn header_length(header: &Header, have: usize) -> WireError {
    let max = have.min(HEADER_BYTES_MAX);
    WireError::HeaderLength { layer: Layer::Tcp, found: header.header_bytes(), min: HEADER_BYTES, max }
}

const fn truncated(have: usize) -> WireError {
    WireError::Truncated { layer: Layer::Tcp, needed: HEADER_BYTES, have }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::Ipv4Addr;
    use proptest::prelude::*;
    use std::string::ToString;
    use std::vec::Vec;

    fn segment(options: &[u8], data: &[u8]) -> Vec<u8> {
        let words = (HEADER_BYTES + options.len()) as u16 / 4;
        let header = Header { offset_flags: U16::new(words << 12 | 0x12), ..Header::default() };
        let mut segment = header.as_bytes().to_vec();
        segment.extend(options);
        segment.extend(data);
        segment
    }

    proptest! {
        #[test]
        fn edits_keep_the_checksum(
            data in prop::collection::vec(any::<u8>(), 0..40),
            [a, b, c] in any::<[Ipv4Addr; 3]>(),
            ports in any::<(u16, u16)>(),
        ) {
            let mut bytes = segment(&[2, 4, 5, 180], &data);
            let mut edit = ViewMut::parse(&mut bytes).expect("own segment");
            edit.fill_checksum(Addresses::V4(a, b));
            edit.set_source(ports.0);
            edit.set_destination(ports.1);
            edit.address_changed(b.into(), c.into());
            let view = View::parse(&bytes).expect("own segment");
            prop_assert!(view.checksum_ok(Addresses::V4(a, c)));
            prop_assert_eq!(view.payload(), &data[..]);
        }
    }

    #[test]
    fn options_and_flags() {
        let bytes = segment(&[2, 4, 5, 180, 1, 3, 3, 7, 4, 2, 0, 0], &[9]);
        let view = View::parse(&bytes).expect("own segment");
        let options: Vec<_> = view.options().map(|option| option.expect("good option")).collect();
        assert_eq!(options.iter().map(|option| option.kind).collect::<Vec<_>>(), [2, 1, 3, 4]);
        assert_eq!(options[0].maximum_segment_bytes(), Some(1460));
        assert_eq!(options[2].data, [7]);
        assert_eq!(view.header().flags().to_string(), "SYN,ACK");
        assert!(view.header().flags().has(Flags::SYN) && !view.header().flags().has(Flags::FIN));
        for bad in [[2, 1, 0, 0], [2, 5, 0, 0], [1, 1, 1, 2]] {
            let bytes = segment(&bad, &[]);
            let options = View::parse(&bytes).expect("own segment").options();
            assert!(options.last().is_some_and(|option| option.is_err()), "{bad:?}");
        }
    }

    #[test]
    fn data_offset() {
        let mut bytes = segment(&[0; 4], &[]);
        for (words, ok) in [(4u8, false), (5, true), (6, true), (7, false), (15, false)] {
            bytes[12] = words << 4;
            let error = View::parse(&bytes).err();
            assert_eq!(error.is_none(), ok);
            assert_eq!(ViewMut::parse(&mut bytes).err(), error);
        }
        assert_eq!(View::parse(&bytes[..19]).expect_err("19 bytes"), truncated(19));
    }
}
