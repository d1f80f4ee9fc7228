//! Builds netlink messages.
//!
//! Layout: `nlmsghdr` (16 bytes: length, type, flags, sequence, port), the fixed header of the type, then
//! attributes of four bytes (length, type) and a value, each padded to four bytes. Numbers are in native byte
//! order, addresses in network byte order.

use std::net::IpAddr;

/// The address family of a message about this address.
pub(crate) const fn family(address: IpAddr) -> u8 {
    match address {
        IpAddr::V4(_) => libc::AF_INET as u8,
        IpAddr::V6(_) => libc::AF_INET6 as u8,
    }
}

/// Length of `nlmsghdr` in bytes.
pub(crate) const HEADER_BYTES: usize = 16;
/// Flag of an attribute that contains attributes.
const NESTED: u16 = 0x8000;

/// A message to the kernel under construction.
#[derive(Clone, Debug)]
pub struct Request {
    pub(crate) bytes: Vec<u8>,
    what: String,
}

impl Request {
    /// Creates a message with type (`RTM_…`), flags (`NLM_F_…`; `NLM_F_REQUEST` is added) and fixed header.
    /// `what` describes the operation for error messages.
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

    /// Adds an attribute with bytes.
    #[must_use]
    pub fn bytes(mut self, kind: u16, value: &[u8]) -> Self {
        // An attribute is at most a name, an address or an alias of 256 bytes. Longer ones are not used here.
        let length = u16::try_from(value.len() + 4).unwrap_or(u16::MAX);
        self.bytes.extend_from_slice(&length.to_ne_bytes());
        self.bytes.extend_from_slice(&kind.to_ne_bytes());
        self.bytes.extend_from_slice(value);
        pad(&mut self.bytes);
        self
    }

    /// Adds a text attribute with a terminating zero byte.
    #[must_use]
    pub fn text(self, kind: u16, value: &str) -> Self {
        let mut bytes = value.as_bytes().to_vec();
        bytes.push(0);
        self.bytes(kind, &bytes)
    }

    /// Adds an 8-bit number.
    #[must_use]
    pub fn u8(self, kind: u16, value: u8) -> Self {
        self.bytes(kind, &[value])
    }

    /// Adds a 32-bit number in native byte order.
    #[must_use]
    pub fn u32(self, kind: u16, value: u32) -> Self {
        self.bytes(kind, &value.to_ne_bytes())
    }

    /// Adds an address of either family.
    #[must_use]
    pub fn address(self, kind: u16, value: impl Into<IpAddr>) -> Self {
        match value.into() {
            IpAddr::V4(address) => self.bytes(kind, &address.octets()),
            IpAddr::V6(address) => self.bytes(kind, &address.octets()),
        }
    }

    /// Adds an attribute that contains the attributes added by `inside`.
    #[must_use]
    pub fn nested(self, kind: u16, inside: impl FnOnce(Self) -> Self) -> Self {
        self.nested_after(kind | NESTED, &[], inside)
    }

    /// Adds an attribute that contains a fixed header, followed by the attributes added by `inside`.
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

    /// Description of the operation, for error messages.
    #[must_use]
    pub fn what(&self) -> &str {
        &self.what
    }

    /// Sets sequence number, additional flags and length. The message is then ready to send.
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
