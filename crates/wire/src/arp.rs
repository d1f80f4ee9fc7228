//! ARP for IPv4 over Ethernet (RFC 826), with the probes and announcements of RFC 5227.
//!
//! Planes punt ARP messages to the control plane, which answers requests. When a network moves, it informs
//! the neighbours with [`Header::announcement`].

use core::net::Ipv4Addr;

use zerocopy::byteorder::network_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::error::{Layer, WireError};
use crate::ethernet::EtherType;
use crate::mac::Mac;

/// Length of a message for IPv4 over Ethernet, in bytes.
pub const MESSAGE_BYTES: usize = 28;
/// Hardware type of Ethernet (IANA "ARP Parameters").
pub const HARDWARE_ETHERNET: u16 = 1;

/// Operation code (RFC 826 "opcode").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Operation(pub u16);

impl Operation {
    /// Asks for the MAC address of the target IPv4 address.
    pub const REQUEST: Self = Self(1);
    /// Gives the MAC address of the sender's IPv4 address.
    pub const REPLY: Self = Self(2);
    /// Asks for one's own IPv4 address (RFC 903 "request reverse").
    pub const REVERSE_REQUEST: Self = Self(3);
}

/// An ARP message for IPv4 over Ethernet (RFC 826 "Packet format").
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(C)]
pub struct Header {
    /// Hardware type: [`HARDWARE_ETHERNET`].
    pub hardware: U16,
    /// Protocol type: the EtherType of IPv4.
    pub protocol: U16,
    /// Length of a hardware address in bytes: 6.
    pub hardware_bytes: u8,
    /// Length of a protocol address in bytes: 4.
    pub protocol_bytes: u8,
    /// Operation code; see [`Header::operation`].
    pub operation: U16,
    /// MAC address of the sender.
    pub sender_mac: Mac,
    /// IPv4 address of the sender; see [`Header::sender`].
    pub sender: U32,
    /// MAC address of the target; all zeros in a request.
    pub target_mac: Mac,
    /// IPv4 address of the target; see [`Header::target`].
    pub target: U32,
}

const _: () = assert!(size_of::<Header>() == MESSAGE_BYTES && align_of::<Header>() == 1);

impl Header {
    const fn new(operation: Operation, sender: (Mac, Ipv4Addr), target: (Mac, Ipv4Addr)) -> Self {
        Self {
            hardware: U16::new(HARDWARE_ETHERNET),
            protocol: U16::new(EtherType::IPV4.0),
            hardware_bytes: 6,
            protocol_bytes: 4,
            operation: U16::new(operation.0),
            sender_mac: sender.0,
            sender: U32::new(sender.1.to_bits()),
            target_mac: target.0,
            target: U32::new(target.1.to_bits()),
        }
    }

    /// Builds the request of a host for its own address (RFC 903), which nobody answers today. Switches learn from it where the
    /// host is: so it announces a host that has moved, without a word about its addresses.
    #[must_use]
    pub const fn reverse_request(host: Mac) -> Self {
        let nowhere = Ipv4Addr::UNSPECIFIED;
        Self::new(Operation::REVERSE_REQUEST, (host, nowhere), (host, nowhere))
    }

    /// Builds a request for the MAC address of `target`.
    #[must_use]
    pub const fn request(sender_mac: Mac, sender: Ipv4Addr, target: Ipv4Addr) -> Self {
        Self::new(Operation::REQUEST, (sender_mac, sender), (Mac::ZERO, target))
    }

    /// Builds the reply to this request: `mac` has the requested address.
    #[must_use]
    pub const fn reply(&self, mac: Mac) -> Self {
        Self::new(Operation::REPLY, (mac, self.target()), (self.sender_mac, self.sender()))
    }

    /// Builds an announcement (gratuitous ARP, RFC 5227 §3) that `mac` has `address`.
    #[must_use]
    pub const fn announcement(mac: Mac, address: Ipv4Addr) -> Self {
        Self::new(Operation::REQUEST, (mac, address), (Mac::ZERO, address))
    }

    /// The operation code.
    #[must_use]
    pub const fn operation(&self) -> Operation {
        Operation(self.operation.get())
    }

    /// IPv4 address of the sender.
    #[must_use]
    pub const fn sender(&self) -> Ipv4Addr {
        Ipv4Addr::from_bits(self.sender.get())
    }

    /// IPv4 address of the target: the requested or announced address.
    #[must_use]
    pub const fn target(&self) -> Ipv4Addr {
        Ipv4Addr::from_bits(self.target.get())
    }

    /// Whether this is an announcement: sender and target address are the same (RFC 5227 §1.1).
    #[must_use]
    pub fn is_announcement(&self) -> bool {
        self.sender == self.target
    }

    fn check(&self) -> Result<(), WireError> {
        let field = |field, found: u16, expected| {
            Err(WireError::Field { layer: Layer::Arp, field, found: found.into(), expected })
        };
        if self.hardware.get() != HARDWARE_ETHERNET {
            return field("hardware type", self.hardware.get(), "1 (Ethernet)");
        }
        if self.protocol.get() != EtherType::IPV4.0 {
            return field("protocol type", self.protocol.get(), "2048 (IPv4)");
        }
        if self.hardware_bytes != 6 {
            return field("hardware address length", self.hardware_bytes.into(), "6");
        }
        if self.protocol_bytes != 4 {
            return field("protocol address length", self.protocol_bytes.into(), "4");
        }
        Ok(())
    }
}

/// A parsed ARP message for IPv4 over Ethernet.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    header: &'a Header,
}

impl<'a> View<'a> {
    /// Checks the length, and that types and address lengths are those of IPv4 over Ethernet. Bytes after the
    /// message (padding) are ignored.
    ///
    /// # Errors
    /// [`WireError::Truncated`] below 28 bytes, [`WireError::Field`] for other hardware or protocol types or
    /// lengths.
    pub fn parse(message: &'a [u8]) -> Result<Self, WireError> {
        let Ok((header, _)) = Header::ref_from_prefix(message) else { return Err(truncated(message.len())) };
        header.check()?;
        Ok(Self { header })
    }

    /// The message.
    #[must_use]
    pub const fn header(&self) -> &'a Header {
        self.header
    }
}

/// An ARP message that can be edited. No field depends on another, so the header is edited directly.
#[derive(Debug)]
pub struct ViewMut<'a> {
    header: &'a mut Header,
}

impl<'a> ViewMut<'a> {
    /// Checks as [`View::parse`] does.
    ///
    /// # Errors
    /// The same.
    pub fn parse(message: &'a mut [u8]) -> Result<Self, WireError> {
        let have = message.len();
        let Ok((header, _)) = Header::mut_from_prefix(message) else { return Err(truncated(have)) };
        header.check()?;
        Ok(Self { header })
    }

    /// The message, to edit.
    pub const fn header_mut(&mut self) -> &mut Header {
        self.header
    }

    /// Turns a request into its reply in place: `mac` has the requested address.
    pub const fn make_reply(&mut self, mac: Mac) {
        *self.header = self.header.reply(mac);
    }
}

const fn truncated(have: usize) -> WireError {
    WireError::Truncated { layer: Layer::Arp, needed: MESSAGE_BYTES, have }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: (Mac, Ipv4Addr) = (Mac([2, 0, 0, 0, 0, 1]), Ipv4Addr::new(10, 0, 0, 1));
    const B: (Mac, Ipv4Addr) = (Mac([2, 0, 0, 0, 0, 2]), Ipv4Addr::new(10, 0, 0, 2));

    #[test]
    fn question_and_answer() {
        let mut message = Header::request(A.0, A.1, B.1);
        assert!(!message.is_announcement());
        let mut view = ViewMut::parse(message.as_mut_bytes()).expect("own request");
        view.make_reply(B.0);
        let view = View::parse(message.as_bytes()).expect("own reply");
        assert_eq!(view.header().operation(), Operation::REPLY);
        assert_eq!((view.header().sender_mac, view.header().sender()), B);
        assert_eq!((view.header().target_mac, view.header().target()), A);
        assert!(Header::announcement(A.0, A.1).is_announcement());
    }

    #[test]
    fn other_hardware_is_named() {
        let request = Header::request(A.0, A.1, B.1);
        assert_eq!(View::parse(&request.as_bytes()[..27]).expect_err("27 bytes"), truncated(27));
        for (change, expected) in [
            (Header { hardware: U16::new(6), ..request }, "hardware type"),
            (Header { protocol: U16::new(0x86dd), ..request }, "protocol type"),
            (Header { hardware_bytes: 8, ..request }, "hardware address length"),
            (Header { protocol_bytes: 16, ..request }, "protocol address length"),
        ] {
            let error = View::parse(change.as_bytes()).expect_err(expected);
            assert!(matches!(error, WireError::Field { field, .. } if field == expected), "{error}");
        }
    }
}
