//! What can be wrong with bytes: one enum for the crate.
//!
//! Every variant but [`WireError::Mac`] blames the sender of the frame (or whoever cut it); that one blames
//! whoever wrote the text. A plane turns these into counted drop reasons; they are never logged per packet.

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

/// Why bytes are not the header they should be, or text is not a MAC address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WireError {
    /// Fewer bytes than the fixed header.
    #[error("{layer}: truncated: {have} bytes, expected at least {needed}")]
    Truncated {
        /// Whose header.
        layer: Layer,
        /// Bytes the header needs.
        needed: usize,
        /// Bytes there were.
        have: usize,
    },
    /// The version field is another protocol's.
    #[error("{layer}: version {found}, expected {expected}")]
    Version {
        /// Whose header.
        layer: Layer,
        /// The version field.
        found: u8,
        /// The only version understood.
        expected: u8,
    },
    /// The header's own length field (IHL, data offset, option length) is below its minimum or beyond the
    /// bytes.
    #[error("{layer}: header length {found} bytes, expected {min} to {max}")]
    HeaderLength {
        /// Whose header.
        layer: Layer,
        /// The length it claims, in bytes.
        found: usize,
        /// Smallest legal length, in bytes.
        min: usize,
        /// Largest length that the bytes allow.
        max: usize,
    },
    /// The length of header and payload together is below the header's or beyond the bytes.
    #[error("{layer}: total length {found} bytes, expected {min} to {max}")]
    TotalLength {
        /// Whose header.
        layer: Layer,
        /// The length it claims, in bytes.
        found: usize,
        /// Smallest legal length, in bytes.
        min: usize,
        /// Bytes there were.
        max: usize,
    },
    /// A field has a value that this project does not read further.
    #[error("{layer}: {field} is {found}, expected {expected}")]
    Field {
        /// Whose header.
        layer: Layer,
        /// The field's name.
        field: &'static str,
        /// Its value.
        found: u32,
        /// What was expected of it.
        expected: &'static str,
    },
    /// More nested or chained headers than the named limit.
    #[error("{layer}: more than {max} headers in a chain")]
    TooDeep {
        /// The chain's protocol.
        layer: Layer,
        /// The limit.
        max: usize,
    },
    /// Text is not a MAC address (the writer's fault).
    #[error(
        "{fault} at character {at}, expected six pairs of hexadecimal digits with colons, such as 02:00:00:00:01:01"
    )]
    Mac {
        /// What is wrong.
        fault: MacFault,
        /// Where, in characters from 1.
        at: usize,
    },
}

/// What is wrong with the text of a MAC address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MacFault {
    /// The text ends inside the address.
    Short,
    /// Something follows the address.
    Long,
    /// This character is not a hexadecimal digit.
    Digit,
    /// A colon should be here.
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
