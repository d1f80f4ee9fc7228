//! Building netlink messages.
//!
//! Layout: `nlmsghdr` (16 bytes: length, type, flags, sequence, port), the fixed header of the type, attributes of four bytes
//! (length, type) and a value, each padded to four. Numbers are in the machine's byte order, addresses in network order.

use std::net::Ipv4Addr;

/// Bytes of `nlmsghdr`.
pub(crate) const HEADER_BYTES: usize = 16;
/// An attribute that holds attributes.
const NESTED: u16 = 0x8000;

/// A message to the kernel that is being written.
#[derive(Clone, Debug)]
pub struct Request {
    pub(crate) bytes: Vec<u8>,
    what: String,
}

impl Request {
    /// A message of a type (`RTM_…`) with flags (`NLM_F_…`; `NLM_F_REQUEST` is added), beginning with its fixed header.
    /// `what` says what it does, for errors.
    #[must_use]
    pub fn new(what: impl Into<String>, kind: u16, flags: i32, fixed: &[u8]) -> Self {
        let mut bytes = Vec::with_capacity(128);
        bytes.extend_from_slice(&[0; 4]);
        bytes.extend_from_slice(&kind.to_ne_bytes());
        bytes.extend_from_slice(&((flags | libc::NLM_F_REQUEST) as u16).to_ne_bytes());
        bytes.extend_from_slice(&[0; 8]);
        bytes.extend_from_slice(fixed);
        pad(&mut bytes);
        Self { bytes, what: what.into() }
    }

    /// Adds an attribute of bytes.
    #[must_use]
    pub fn bytes(mut self, kind: u16, value: &[u8]) -> Self {
        // An attribute is at most a name, an address or an alias of 256 bytes; a longer one would not be ours.
        let length = u16::try_from(value.len() + 4).unwrap_or(u16::MAX);
        self.bytes.extend_from_slice(&length.to_ne_bytes());
        self.bytes.extend_from_slice(&kind.to_ne_bytes());
        self.bytes.extend_from_slice(value);
        pad(&mut self.bytes);
        self
    }

    /// Adds a text with the zero byte at its end.
    #[must_use]
    pub fn text(self, kind: u16, value: &str) -> Self {
        let mut bytes = value.as_bytes().to_vec();
        bytes.push(0);
        self.bytes(kind, &bytes)
    }

    /// Adds a number of 8 bits.
    #[must_use]
    pub fn u8(self, kind: u16, value: u8) -> Self {
        self.bytes(kind, &[value])
    }

    /// Adds a number of 32 bits in the machine's byte order.
    #[must_use]
    pub fn u32(self, kind: u16, value: u32) -> Self {
        self.bytes(kind, &value.to_ne_bytes())
    }

    /// Adds an IPv4 address.
    #[must_use]
    pub fn address(self, kind: u16, value: Ipv4Addr) -> Self {
        self.bytes(kind, &value.octets())
    }

    /// Adds an attribute that holds what `inside` adds.
    #[must_use]
    pub fn nested(self, kind: u16, inside: impl FnOnce(Self) -> Self) -> Self {
        self.nested_after(kind | NESTED, &[], inside)
    }

    /// Adds an attribute that holds a fixed header and then what `inside` adds.
    #[must_use]
    pub fn nested_after(mut self, kind: u16, fixed: &[u8], inside: impl FnOnce(Self) -> Self) -> Self {
        let start = self.bytes.len();
        self = self.bytes(kind, fixed);
        self = inside(self);
        let length = u16::try_from(self.bytes.len() - start).unwrap_or(u16::MAX);
        if let Some(place) = self.bytes.get_mut(start..start + 2) {
            place.copy_from_slice(&length.to_ne_bytes());
        }
        self
    }

    /// What it does, for errors.
    #[must_use]
    pub fn what(&self) -> &str {
        &self.what
    }

    /// Sets sequence, flags to add and the length: ready to send.
    pub(crate) fn seal(&mut self, sequence: u32, flags: i32) -> &[u8] {
        let length = u32::try_from(self.bytes.len()).unwrap_or(u32::MAX);
        let (head, _) = self.bytes.split_at_mut(HEADER_BYTES);
        head[..4].copy_from_slice(&length.to_ne_bytes());
        let flags = u16::from_ne_bytes([head[6], head[7]]) | flags as u16;
        head[6..8].copy_from_slice(&flags.to_ne_bytes());
        head[8..12].copy_from_slice(&sequence.to_ne_bytes());
        &self.bytes
    }
}

fn pad(bytes: &mut Vec<u8>) {
    bytes.resize(bytes.len().next_multiple_of(4), 0);
}
