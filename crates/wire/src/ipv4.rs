//! IPv4 (RFC 791): header, options, fragments, checksum.
//!
//! Planes decide on this header. There are two ways to read it. [`View::parse`] checks everything except the
//! checksum, in the order of the plane's drop reasons (truncated, version, header length, total length). The
//! forwarding path makes the same checks itself, with [`Header::over`] and [`verify`].
//!
//! Units: lengths and fragment offsets are in bytes (the header counts them in 4-byte and 8-byte units).

use core::net::Ipv4Addr;

use zerocopy::byteorder::network_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::checksum;
use crate::error::{Layer, WireError};
use crate::ip;

/// Length of a header without options, in bytes.
pub const HEADER_BYTES: usize = 20;
/// Length of the longest header, in bytes: IHL has four bits and counts 4-byte words.
pub const HEADER_BYTES_MAX: usize = 60;
/// `version_ihl` of a header without options.
pub const VERSION_IHL_PLAIN: u8 = 0x45;
/// "Do not fragment" (RFC 791 §3.1), in `flags_fragment`.
pub const FLAG_DONT_FRAGMENT: u16 = 0x4000;
/// "More fragments" (RFC 791 §3.1), in `flags_fragment`.
pub const FLAG_MORE_FRAGMENTS: u16 = 0x2000;
/// Fragment offset in `flags_fragment`, in units of 8 bytes.
pub const FRAGMENT_OFFSET_MASK: u16 = 0x1fff;

/// The fixed header (RFC 791 §3.1): 20 bytes at any alignment.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(C)]
pub struct Header {
    /// Version in the upper four bits, header length in 4-byte words in the lower.
    pub version_ihl: u8,
    /// DSCP (upper six bits, RFC 2474) and ECN (lower two, RFC 3168).
    pub tos: u8,
    /// Length of header and payload, in bytes.
    pub total_length: U16,
    /// Identification: the same in all fragments of a datagram.
    pub identification: U16,
    /// Flags in the upper three bits, fragment offset in 8-byte units in the lower 13.
    pub flags_fragment: U16,
    /// Remaining hops.
    pub ttl: u8,
    /// Protocol of the payload.
    pub protocol: ip::Protocol,
    /// Header checksum.
    pub checksum: U16,
    /// Source address; see [`Header::source`].
    pub source: U32,
    /// Destination address; see [`Header::destination`].
    pub destination: U32,
}

const _: () = assert!(size_of::<Header>() == HEADER_BYTES && align_of::<Header>() == 1);

impl Header {
    /// Builds a header without options and with a correct checksum.
    ///
    /// `total_length` is in bytes and includes the header.
    #[must_use]
    pub fn new(
        source: Ipv4Addr,
        destination: Ipv4Addr,
        protocol: ip::Protocol,
        ttl: u8,
        total_length: u16,
    ) -> Self {
        let mut header = Self {
            version_ihl: VERSION_IHL_PLAIN,
            total_length: total_length.into(),
            ttl,
            protocol,
            source: U32::new(source.to_bits()),
            destination: U32::new(destination.to_bits()),
            ..Self::default()
        };
        header.fill_checksum_plain();
        header
    }

    /// Computes the checksum of a header without options, and ignores the previous one.
    pub fn fill_checksum_plain(&mut self) {
        self.checksum = U16::ZERO;
        self.checksum = checksum::full(self.as_bytes()).into();
    }

    /// Reads the fixed header at the start of a packet. Checks only the length; `None` if the packet has
    /// fewer than 20 bytes.
    #[must_use]
    #[inline]
    pub fn over(packet: &[u8]) -> Option<(&Self, &[u8])> {
        Self::ref_from_prefix(packet).ok()
    }

    /// As [`Header::over`], mutable.
    #[must_use]
    #[inline]
    pub fn over_mut(packet: &mut [u8]) -> Option<(&mut Self, &mut [u8])> {
        Self::mut_from_prefix(packet).ok()
    }

    /// Version field: 4 for IPv4.
    #[must_use]
    #[inline]
    pub const fn version(&self) -> u8 {
        self.version_ihl >> 4
    }

    /// Length of header and options in bytes: 0 to 60; at least 20 in a valid header.
    #[must_use]
    #[inline]
    pub const fn header_bytes(&self) -> usize {
        (self.version_ihl & 0x0f) as usize * 4
    }

    /// Differentiated services code point (RFC 2474 §3).
    #[must_use]
    pub const fn dscp(&self) -> u8 {
        self.tos >> 2
    }

    /// Explicit congestion notification (RFC 3168 §5).
    #[must_use]
    pub const fn ecn(&self) -> u8 {
        self.tos & 3
    }

    /// Source address.
    #[must_use]
    #[inline]
    pub const fn source(&self) -> Ipv4Addr {
        Ipv4Addr::from_bits(self.source.get())
    }

    /// Destination address.
    #[must_use]
    #[inline]
    pub const fn destination(&self) -> Ipv4Addr {
        Ipv4Addr::from_bits(self.destination.get())
    }

    /// Whether routers must not fragment the packet.
    #[must_use]
    #[inline]
    pub const fn dont_fragment(&self) -> bool {
        self.flags_fragment.get() & FLAG_DONT_FRAGMENT != 0
    }

    /// Whether more fragments of the datagram follow this one.
    #[must_use]
    #[inline]
    pub const fn more_fragments(&self) -> bool {
        self.flags_fragment.get() & FLAG_MORE_FRAGMENTS != 0
    }

    /// Offset of this fragment's payload in the payload of the datagram, in bytes (a multiple of 8, below
    /// 65,536).
    #[must_use]
    #[inline]
    pub const fn fragment_offset_bytes(&self) -> u32 {
        (self.flags_fragment.get() & FRAGMENT_OFFSET_MASK) as u32 * 8
    }

    /// Whether the packet is a fragment: more fragments follow, or its offset is not zero.
    #[must_use]
    #[inline]
    pub const fn is_fragment(&self) -> bool {
        self.flags_fragment.get() & (FLAG_MORE_FRAGMENTS | FRAGMENT_OFFSET_MASK) != 0
    }

    /// Whether the payload begins with the transport header: an unfragmented datagram or its first fragment.
    #[must_use]
    #[inline]
    pub const fn starts_transport(&self) -> bool {
        self.flags_fragment.get() & FRAGMENT_OFFSET_MASK == 0
    }

    /// Decrements the TTL and updates the checksum (RFC 1624). Returns `false`, without a change, if the TTL
    /// is zero.
    #[inline]
    pub const fn decrement_ttl(&mut self) -> bool {
        let Some(ttl) = self.ttl.checked_sub(1) else { return false };
        self.ttl = ttl;
        self.checksum = U16::new(checksum::ttl_decremented(self.checksum.get()));
        true
    }
}

/// The fixed header as three words in network byte order, for the forwarding path: loaded once, then fields
/// and checksum are computed in registers. The layout is that of [`Header`].
#[derive(Clone, Copy, Debug)]
pub struct Words {
    /// Bytes 0 to 7; the first byte is the least significant.
    start: u64,
    /// Bytes 8 to 15.
    middle: u64,
    /// Bytes 16 to 19.
    end: u32,
}

impl Words {
    /// Loads the words of a header.
    #[must_use]
    #[inline(always)]
    pub const fn of(header: &[u8; HEADER_BYTES]) -> Self {
        // Copies whole chunks: byte by byte, the compiler would load each field separately.
        let Some((start, rest)) = header.split_first_chunk() else { unreachable!() };
        let Some((middle, rest)) = rest.split_first_chunk() else { unreachable!() };
        let Some(end) = rest.first_chunk() else { unreachable!() };
        Self {
            start: u64::from_le_bytes(*start),
            middle: u64::from_le_bytes(*middle),
            end: u32::from_le_bytes(*end),
        }
    }

    /// Version and header length, as in the header.
    #[must_use]
    #[inline(always)]
    pub const fn version_ihl(self) -> u8 {
        self.start as u8
    }

    /// Length of header and payload, in bytes.
    #[must_use]
    #[inline(always)]
    pub const fn total_length(self) -> u16 {
        ((self.start >> 16) as u16).swap_bytes()
    }

    /// Remaining hops.
    #[must_use]
    #[inline(always)]
    pub const fn ttl(self) -> u8 {
        self.middle as u8
    }

    /// Source address.
    #[must_use]
    #[inline(always)]
    pub const fn source(self) -> u32 {
        ((self.middle >> 32) as u32).swap_bytes()
    }

    /// Destination address.
    #[must_use]
    #[inline(always)]
    pub const fn destination(self) -> u32 {
        self.end.swap_bytes()
    }

    /// Whether the checksum is correct, for a header without options.
    #[must_use]
    #[inline(always)]
    pub const fn checksum_ok(self) -> bool {
        // One's complement sums do not depend on word size or byte order (RFC 1071 §2). Add two 64-bit words
        // and a 32-bit word with end-around carries, then fold the halves. Adding a rotated copy folds both
        // halves at once and leaves the sum, carry included, in the upper half.
        let (sum, carry) = self.start.overflowing_add(self.middle);
        // Add the first carry to the last word, not to the sum: the last word is below 2^32, so this cannot
        // overflow.
        let (sum, carry) = sum.overflowing_add(self.end as u64 + carry as u64);
        let sum = sum.wrapping_add(carry as u64);
        let sum = (sum.wrapping_add(sum.rotate_right(32)) >> 32) as u32;
        sum.wrapping_add(sum.rotate_right(16)) >> 16 == 0xffff
    }
}

/// Whether the checksum of a header without options is correct. Takes only a few instructions.
#[must_use]
#[inline(always)]
pub fn verify(header: &Header) -> bool {
    Words::of(zerocopy::transmute_ref!(header)).checksum_ok()
}

/// Whether the checksum of a header with options is correct. `header` is all bytes before the payload.
#[must_use]
#[inline]
pub fn verify_bytes(header: &[u8]) -> bool {
    checksum::verify(header)
}

/// A packet whose version and lengths are valid for its bytes. The checksum is not checked; see
/// [`View::checksum_ok`].
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    header: &'a Header,
    /// Header and options.
    header_bytes: &'a [u8],
    options: &'a [u8],
    payload: &'a [u8],
}

impl<'a> View<'a> {
    /// Checks, in this order: 20 bytes, version, header length, total length. Bytes after the total length
    /// (Ethernet padding) are not part of the view.
    ///
    /// # Errors
    /// [`WireError::Truncated`], [`WireError::Version`], [`WireError::HeaderLength`] (below 20 or more than
    /// the available bytes), [`WireError::TotalLength`] (below the header length or more than the available
    /// bytes).
    #[inline]
    pub fn parse(packet: &'a [u8]) -> Result<Self, WireError> {
        let (header, _) = Header::over(packet).ok_or_else(|| truncated(packet.len()))?;
        let (head, total) = check_lengths(header, packet.len())?;
        let broken = || total_length(total, head, packet.len());
        let packet = packet.get(..total).ok_or_else(broken)?;
        let (header_bytes, payload) = packet.split_at_checked(head).ok_or_else(broken)?;
        let options = header_bytes.get(HEADER_BYTES..).unwrap_or_default();
        Ok(Self { header, header_bytes, options, payload })
    }

    /// The fixed header.
    #[must_use]
    #[inline]
    pub const fn header(&self) -> &'a Header {
        self.header
    }

    /// Header and options: 20 to 60 bytes.
    #[must_use]
    #[inline]
    pub const fn header_bytes(&self) -> &'a [u8] {
        self.header_bytes
    }

    /// The payload, as delimited by the total length.
    #[must_use]
    #[inline]
    pub const fn payload(&self) -> &'a [u8] {
        self.payload
    }

    /// The options: 0 to 40 bytes, a multiple of 4.
    #[must_use]
    #[inline]
    pub const fn options_bytes(&self) -> &'a [u8] {
        self.options
    }

    /// An iterator over the options.
    #[must_use]
    pub const fn options(&self) -> Options<'a> {
        Options { rest: self.options }
    }

    /// Whether the header checksum is correct.
    #[must_use]
    #[inline]
    pub fn checksum_ok(&self) -> bool {
        verify_bytes(self.header_bytes)
    }
}

/// A packet that can be edited. Every edit updates the checksum (RFC 1624), so a correct one stays correct.
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
    pub fn parse(packet: &'a mut [u8]) -> Result<Self, WireError> {
        let have = packet.len();
        let (header, rest) = Header::over_mut(packet).ok_or_else(|| truncated(have))?;
        let (head, total) = check_lengths(header, have)?;
        let broken = || total_length(total, head, have);
        let rest = rest.get_mut(..total - HEADER_BYTES).ok_or_else(broken)?;
        let (options, payload) = rest.split_at_mut_checked(head - HEADER_BYTES).ok_or_else(broken)?;
        Ok(Self { header, options, payload })
    }

    /// The fixed header in its current state.
    #[must_use]
    pub const fn header(&self) -> &Header {
        self.header
    }

    /// The payload, mutable.
    pub const fn payload_mut(&mut self) -> &mut [u8] {
        self.payload
    }

    /// The payload, with the lifetime of the packet.
    #[must_use]
    pub const fn into_payload(self) -> &'a mut [u8] {
        self.payload
    }

    /// Decrements the TTL. Returns `false`, without a change, if it is zero.
    pub const fn decrement_ttl(&mut self) -> bool {
        self.header.decrement_ttl()
    }

    /// Sets the TTL.
    pub const fn set_ttl(&mut self, ttl: u8) {
        let protocol = self.header.protocol.0;
        self.update(word_of(self.header.ttl, protocol), word_of(ttl, protocol));
        self.header.ttl = ttl;
    }

    /// Sets DSCP and ECN.
    pub const fn set_tos(&mut self, tos: u8) {
        let first = self.header.version_ihl;
        self.update(word_of(first, self.header.tos), word_of(first, tos));
        self.header.tos = tos;
    }

    /// Sets the identification.
    pub const fn set_identification(&mut self, identification: u16) {
        self.update(self.header.identification.get(), identification);
        self.header.identification = U16::new(identification);
    }

    /// Sets or clears "do not fragment".
    pub const fn set_dont_fragment(&mut self, on: bool) {
        let old = self.header.flags_fragment.get();
        let new = if on { old | FLAG_DONT_FRAGMENT } else { old & !FLAG_DONT_FRAGMENT };
        self.update(old, new);
        self.header.flags_fragment = U16::new(new);
    }

    /// Sets the source address. Transport checksums also cover it: see `udp` and `tcp`.
    pub const fn set_source(&mut self, address: Ipv4Addr) {
        let checksum =
            checksum::updated_u32(self.header.checksum.get(), self.header.source.get(), address.to_bits());
        self.header.checksum = U16::new(checksum);
        self.header.source = U32::new(address.to_bits());
    }

    /// Sets the destination address. Transport checksums also cover it: see `udp` and `tcp`.
    pub const fn set_destination(&mut self, address: Ipv4Addr) {
        let checksum = checksum::updated_u32(
            self.header.checksum.get(),
            self.header.destination.get(),
            address.to_bits(),
        );
        self.header.checksum = U16::new(checksum);
        self.header.destination = U32::new(address.to_bits());
    }

    /// Computes the checksum in full, and ignores the previous one.
    pub fn fill_checksum(&mut self) {
        self.header.checksum = U16::ZERO;
        let sum = checksum::Sum::new().bytes(self.header.as_bytes()).bytes(self.options);
        self.header.checksum = U16::new(sum.checksum());
    }

    const fn update(&mut self, old: u16, new: u16) {
        self.header.checksum = U16::new(checksum::updated_u16(self.header.checksum.get(), old, new));
    }
}

/// One option (RFC 791 §3.1 "Options").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opt<'a> {
    /// The type byte: copied flag, class, number.
    pub kind: u8,
    /// The bytes after type and length.
    pub data: &'a [u8],
}

impl Opt<'_> {
    /// Padding between options.
    pub const NO_OPERATION: u8 = 1;
    /// Record route.
    pub const RECORD_ROUTE: u8 = 7;
    /// Internet timestamp.
    pub const TIMESTAMP: u8 = 68;
    /// Loose source and record route.
    pub const LOOSE_SOURCE_ROUTE: u8 = 131;
    /// Strict source and record route.
    pub const STRICT_SOURCE_ROUTE: u8 = 137;
    /// Router alert (RFC 2113).
    pub const ROUTER_ALERT: u8 = 148;

    /// Whether every fragment carries the option, not only the first.
    #[must_use]
    pub const fn copied(&self) -> bool {
        self.kind & 0x80 != 0
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
        let taken = ip::next_option(core::mem::take(&mut self.rest), Layer::Ipv4Option)?;
        Some(taken.map(|(kind, data, rest)| {
            self.rest = rest;
            Opt { kind, data }
        }))
    }
}

/// Checks version and lengths against the `have` available bytes. Returns the header length and the total
/// length, in bytes.
#[inline]
fn check_lengths(header: &Header, have: usize) -> Result<(usize, usize), WireError> {
    if header.version() != 4 {
        return Err(WireError::Version { layer: Layer::Ipv4, found: header.version(), expected: 4 });
    }
    let head = header.header_bytes();
    if head < HEADER_BYTES || head > have {
        let max = have.min(HEADER_BYTES_MAX);
        return Err(WireError::HeaderLength { layer: Layer::Ipv4, found: head, min: HEADER_BYTES, max });
    }
    let total = usize::from(header.total_length.get());
    if total < head || total > have { Err(total_length(total, head, have)) } else { Ok((head, total)) }
}

const fn word_of(high: u8, low: u8) -> u16 {
    u16::from_be_bytes([high, low])
}

const fn truncated(have: usize) -> WireError {
    WireError::Truncated { layer: Layer::Ipv4, needed: HEADER_BYTES, have }
}

const fn total_length(found: usize, min: usize, max: usize) -> WireError {
    WireError::TotalLength { layer: Layer::Ipv4, found, min, max }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::vec::Vec;

    const A: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
    const B: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 1);

    fn packet(options: &[u8], data: &[u8]) -> Vec<u8> {
        let head = HEADER_BYTES + options.len();
        let mut header = Header::new(A, B, ip::Protocol::UDP, 64, (head + data.len()) as u16);
        header.version_ihl = 0x40 | (head / 4) as u8;
        let mut packet = header.as_bytes().to_vec();
        packet.extend(options);
        packet.extend(data);
        ViewMut::parse(&mut packet).expect("own packet").fill_checksum();
        packet
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        /// The fast check equals the definition, for correct headers and for headers with flipped bits.
        #[test]
        fn verify_equals_definition(bytes: [u8; 20], flips in prop::collection::vec(0..160usize, 0..3)) {
            let mut header = Header::read_from_bytes(&bytes).expect("20 bytes");
            prop_assert_eq!(verify(&header), checksum::verify(&bytes));
            header.fill_checksum_plain();
            prop_assert!(verify(&header));
            let mut bytes = [0; 20];
            bytes.copy_from_slice(header.as_bytes());
            for flip in flips {
                bytes[flip / 8] ^= 1 << (flip % 8);
            }
            let header = Header::read_from_bytes(&bytes).expect("20 bytes");
            prop_assert_eq!(verify(&header), checksum::verify(&bytes));
        }

        /// After any sequence of edits, the checksum equals a full computation.
        #[test]
        fn edits_equal_recomputing(
            options in prop::collection::vec(any::<[u8; 4]>(), 0..=10),
            edits in prop::collection::vec((0..7u8, any::<u32>()), 0..12),
        ) {
            let mut bytes = packet(&options.concat(), &[1, 2, 3]);
            let mut view = ViewMut::parse(&mut bytes).expect("own packet");
            for (edit, value) in edits {
                match edit {
                    0 => { view.decrement_ttl(); }
                    1 => view.set_ttl(value as u8),
                    2 => view.set_tos(value as u8),
                    3 => view.set_identification(value as u16),
                    4 => view.set_dont_fragment(value & 1 == 1),
                    5 => view.set_source(Ipv4Addr::from_bits(value)),
                    _ => view.set_destination(Ipv4Addr::from_bits(value)),
                }
            }
            let incremental = view.header().checksum;
            view.fill_checksum();
            prop_assert_eq!(incremental, view.header().checksum);
            prop_assert!(View::parse(&bytes).is_ok_and(|view| view.checksum_ok()));
        }
    }

    #[test]
    fn verify_at_carries() {
        for fill in [0x00u8, 0xff] {
            for value in [0u16, 1, 0xfffe, 0xffff, 0x8000] {
                for at in 0..10 {
                    let mut bytes = [fill; 20];
                    bytes[at * 2..at * 2 + 2].copy_from_slice(&value.to_be_bytes());
                    let header = Header::read_from_bytes(&bytes).expect("20 bytes");
                    assert_eq!(verify(&header), checksum::verify(&bytes), "{bytes:02x?}");
                }
            }
        }
    }

    #[test]
    fn errors_in_order() {
        let good = packet(&[], &[0; 8]);
        let with = |at: usize, byte: u8| {
            let mut bytes = good.clone();
            bytes[at] = byte;
            let error = View::parse(&bytes).err();
            assert_eq!(ViewMut::parse(&mut bytes).err(), error);
            error
        };
        let layer = Layer::Ipv4;
        assert_eq!(View::parse(&good[..19]).err(), Some(truncated(19)));
        assert_eq!(with(0, 0x61), Some(WireError::Version { layer, found: 6, expected: 4 }));
        assert_eq!(with(0, 0x44), Some(WireError::HeaderLength { layer, found: 16, min: 20, max: 28 }));
        assert_eq!(with(0, 0x48), Some(WireError::HeaderLength { layer, found: 32, min: 20, max: 28 }));
        assert_eq!(with(3, 19), Some(total_length(19, 20, 28)));
        assert_eq!(with(3, 29), Some(total_length(29, 20, 28)));
        assert_eq!(with(3, 28), None);
        assert!(View::parse(&good).is_ok_and(|view| view.payload().len() == 8));
    }

    #[test]
    fn options_and_fragments() {
        let bytes = packet(&[148, 4, 0, 0, 1, 7, 3, 4, 0, 9, 9, 9], &[]);
        let options: Vec<_> =
            View::parse(&bytes).expect("own packet").options().map(Result::unwrap).collect();
        let kinds: Vec<_> = options.iter().map(|option| option.kind).collect();
        assert_eq!(kinds, [Opt::ROUTER_ALERT, Opt::NO_OPERATION, Opt::RECORD_ROUTE]);
        assert!(options[0].copied() && !options[2].copied());
        let bad = packet(&[1, 7, 1, 0], &[]);
        let last = View::parse(&bad).expect("own packet").options().last();
        assert!(matches!(last, Some(Err(WireError::HeaderLength { found: 1, .. }))));

        let with =
            |flags_fragment: u16| Header { flags_fragment: flags_fragment.into(), ..Header::default() };
        assert!(!with(FLAG_DONT_FRAGMENT).is_fragment() && with(FLAG_DONT_FRAGMENT).dont_fragment());
        assert!(with(FLAG_MORE_FRAGMENTS).is_fragment() && with(FLAG_MORE_FRAGMENTS).starts_transport());
        assert!(with(0x1fff).is_fragment() && !with(0x1fff).starts_transport());
        assert_eq!(with(0xffff).fragment_offset_bytes(), 65_528);
    }
}
