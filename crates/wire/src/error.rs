//! The error type of the crate.
//!
//! [`WireError::Mac`] is the fault of the author of the text; every other variant is the fault of the sender
//! of the frame (or of a device that truncated it). Planes count these errors as drop reasons and never log
//! them per packet.

use core::fmt;

/// The protocol whose header was being read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Layer {
    /// Ethernet II (RFC 894).
    Ethernet,
    /// Address resolution (RFC 826).
    Arp,
    /// IPv4 (RFC 791).
    Ipv4,
    /// An IPv4 option (RFC 791 §3.1).
    Ipv4Option,
    /// IPv6 (RFC 8200).
    Ipv6,
    /// An IPv6 extension header (RFC 8200 §4).
    Ipv6Extension,
    /// ICMP for IPv4 (RFC 792).
    Icmp,
    /// ICMP for IPv6 (RFC 4443).
    Icmpv6,
    /// A neighbour discovery message or option (RFC 4861 §4).
    Ndp,
    /// UDP (RFC 768).
    Udp,
    /// TCP (RFC 9293).
    Tcp,
    /// A TCP option (RFC 9293 §3.1).
    TcpOption,
    /// IP in IP (RFC 2003, RFC 4213).
    Ipip,
    /// VXLAN (RFC 7348).
    Vxlan,
}

impl Layer {
    /// The lower-case name used in messages and traces.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ethernet => "ethernet",
            Self::Arp => "arp",
            Self::Ipv4 => "ipv4",
            Self::Ipv4Option => "ipv4 option",
            Self::Ipv6 => "ipv6",
            Self::Ipv6Extension => "ipv6 extension",
            Self::Icmp => "icmp",
            Self::Icmpv6 => "icmpv6",
            Self::Ndp => "ndp",
            Self::Udp => "udp",
            Self::Tcp => "tcp",
            Self::TcpOption => "tcp option",
            Self::Ipip => "ipip",
            Self::Vxlan => "vxlan",
        }
    }
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Why bytes are not a valid header, or why text is not a MAC address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WireError {
    /// There are fewer bytes than the fixed header has.
    #[error("{layer}: truncated: {have} bytes, expected at least {needed}")]
    Truncated {
        /// Protocol of the header.
        layer: Layer,
        /// Bytes the header needs.
        needed: usize,
        /// Bytes available.
        have: usize,
    },
    /// The version field does not belong to this protocol.
    #[error("{layer}: version {found}, expected {expected}")]
    Version {
        /// Protocol of the header.
        layer: Layer,
        /// The version field.
        found: u8,
        /// The only supported version.
        expected: u8,
    },
    /// The header's own length field (IHL, data offset, option length) is below the minimum or exceeds the
    /// available bytes.
    #[error("{layer}: header length {found} bytes, expected {min} to {max}")]
    HeaderLength {
        /// Protocol of the header.
        layer: Layer,
        /// Length in the field, in bytes.
        found: usize,
        /// Smallest valid length, in bytes.
        min: usize,
        /// Largest length that fits the available bytes.
        max: usize,
    },
    /// The length of header and payload is below the header length or exceeds the available bytes.
    #[error("{layer}: total length {found} bytes, expected {min} to {max}")]
    TotalLength {
        /// Protocol of the header.
        layer: Layer,
        /// Length in the field, in bytes.
        found: usize,
        /// Smallest valid length, in bytes.
        min: usize,
        /// Bytes available.
        max: usize,
    },
    /// A field has an unsupported value.
    #[error("{layer}: {field} is {found}, expected {expected}")]
    Field {
        /// Protocol of the header.
        layer: Layer,
        /// Name of the field.
        field: &'static str,
        /// Value of the field.
        found: u32,
        /// The expected value.
        expected: &'static str,
    },
    /// There are more nested or chained headers than the limit allows.
    #[error("{layer}: more than {max} headers in a chain")]
    TooDeep {
        /// Protocol of the chain.
        layer: Layer,
        /// The limit.
        max: usize,
    },
    /// Text is not a MAC address (the author's fault).
    #[error(
        "{fault} at character {at}, expected six pairs of hexadecimal digits with colons, such as 02:00:00:00:01:01"
    )]
    Mac {
        /// The error in the text.
        fault: MacFault,
        /// Position in characters, counted from 1.
        at: usize,
    },
}

/// Why text is not a MAC address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MacFault {
    /// The text ends inside the address.
    Short,
    /// There is text after the address.
    Long,
    /// The character is not a hexadecimal digit.
    Digit,
    /// The character is not a colon.
    Separator,
}

impl fmt::Display for MacFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Short => "MAC address too short: ends",
            Self::Long => "MAC address too long: extra text",
            Self::Digit => "MAC address: not a hexadecimal digit",
            Self::Separator => "MAC address: not a colon",
        })
    }
}
