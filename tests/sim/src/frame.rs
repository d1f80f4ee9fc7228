//! Frames tagged with network, flow and number in the payload, so that a checker can identify each one.
//!
//! Layout after the Ethernet, IPv4 or IPv6, and UDP headers: mark, network, incarnation of its ports, flow, number.

use std::net::IpAddr;

use crate::ledger::SOURCED;

/// Length of the Ethernet header.
const ETHERNET: usize = 14;
/// Lengths of the headers of IPv4, IPv6 and UDP.
const IPV4: usize = 20;
const IPV6: usize = 40;
const UDP: usize = 8;
const ETHERTYPE_IPV6: [u8; 2] = [0x86, 0xdd];
const MARK: [u8; 4] = *b"HSIM";
/// Length of mark and tag.
const TAG: usize = 11;

/// Identifies a frame.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Tag {
    /// The network.
    pub net: u8,
    /// How often its ports had changed when it was sent.
    pub age: u8,
    /// The flow.
    pub flow: u8,
    /// The number in the flow.
    pub number: u32,
}

/// A frame that left the node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Left {
    /// Its tag.
    pub tag: Tag,
    /// Destination and source MAC.
    pub macs: [[u8; 6]; 2],
    /// Its TTL or hop limit.
    pub ttl: u8,
}

/// The network's own MAC on a port.
#[must_use]
pub fn mac(net: u8, port: u8) -> [u8; 6] {
    [2, 0, 0, 0, net, port + 1]
}

/// The MAC of a network's neighbour on a port.
#[must_use]
pub fn neighbour_mac(net: u8, port: u8) -> [u8; 6] {
    [2, 0xaa, 0, 0, net, port + 1]
}

/// The first parts of a flow's source address (IPv6: the last of them): flows to routes by source have sources of their own.
#[must_use]
pub const fn source_of(flow: u8) -> [u8; 3] {
    if flow < SOURCED { [192, 0, 2] } else { [198, 18, flow] }
}

/// A UDP frame with a tag, of the destination's address family.
#[must_use]
pub fn tagged(macs: [[u8; 6]; 2], to: IpAddr, ttl: u8, tag: Tag, len: usize) -> Vec<u8> {
    let [b0, b1, b2, b3] = tag.number.to_be_bytes();
    let mut frame = [macs[0], macs[1]].concat();
    let len = match to {
        IpAddr::V4(to) => {
            let len = len.max(60);
            let [high, low] = ((len - ETHERNET) as u16).to_be_bytes();
            // The number is also the IPv4 identification: in networks of kind `splice` it chooses the way.
            frame.extend([8, 0, 0x45, 0, high, low, b2, b3, 0x40, 0, ttl, 17, 0, 0]);
            frame.extend(source_of(tag.flow));
            frame.push(tag.net);
            frame.extend(to.octets());
            let sum = hue_wire::checksum::full(&frame[ETHERNET..]);
            frame[ETHERNET + 10..ETHERNET + 12].copy_from_slice(&sum.to_be_bytes());
            len
        }
        IpAddr::V6(to) => {
            let len = len.max(ETHERNET + IPV6 + UDP + TAG);
            let [high, low] = ((len - ETHERNET - IPV6) as u16).to_be_bytes();
            frame.extend(ETHERTYPE_IPV6);
            // The number is also the flow label.
            frame.extend([0x60, b1 & 0xf, b2, b3, high, low, 17, ttl]);
            let [.., part] = source_of(tag.flow);
            frame.extend([0x20, 1, 0xd, 0xb8, 0xff, 0xff, 0, part, 0, 0, 0, 0, 0, 0, 0, tag.net]);
            frame.extend(to.octets());
            len
        }
    };
    let [high, low] = ((len - frame.len()) as u16).to_be_bytes();
    frame.extend([0x10, tag.flow, 0x20, tag.age, high, low, 0, 0]);
    frame.extend(MARK);
    frame.extend([tag.net, tag.age, tag.flow, b0, b1, b2, b3]);
    frame.resize(len, 0x5a);
    frame
}

/// Reads a tagged frame; `None` when it has no tag.
///
/// # Errors
/// When it has a tag and is damaged.
pub fn read(frame: &[u8]) -> Result<Option<Left>, String> {
    let six = frame.get(12..ETHERNET) == Some(&ETHERTYPE_IPV6);
    let (header, ttl_at) = if six { (IPV6, 7) } else { (IPV4, 8) };
    let Some(payload) = frame.get(ETHERNET + header + UDP..).and_then(|rest| rest.get(..TAG)) else {
        return Ok(None);
    };
    if payload[..4] != MARK {
        return Ok(None);
    }
    if !six && hue_wire::checksum::full(&frame[ETHERNET..ETHERNET + IPV4]) != 0 {
        return Err("its header's checksum is wrong".to_owned());
    }
    let number = u32::from_be_bytes([payload[7], payload[8], payload[9], payload[10]]);
    let tag = Tag { net: payload[4], age: payload[5], flow: payload[6], number };
    let mac = |at: usize| std::array::from_fn(|byte| frame[at + byte]);
    Ok(Some(Left { tag, macs: [mac(0), mac(6)], ttl: frame[ETHERNET + ttl_at] }))
}
