//! Frames tagged with network, flow and number in the payload, so that a checker can identify each one.
//!
//! Layout after the Ethernet, IPv4 and UDP headers: mark, network, incarnation of its ports, flow, number.

/// Length of the Ethernet header.
const ETHERNET: usize = 14;
/// Offset of the payload.
const PAYLOAD: usize = ETHERNET + 20 + 8;
const MARK: [u8; 4] = *b"HSIM";

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
    /// Its TTL.
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

/// A UDP/IPv4 frame with a tag.
#[must_use]
pub fn tagged(macs: [[u8; 6]; 2], to: [u8; 4], ttl: u8, tag: Tag, len: usize) -> Vec<u8> {
    let len = len.max(60);
    let mut frame = Vec::with_capacity(len);
    frame.extend(macs[0]);
    frame.extend(macs[1]);
    let total = (len - ETHERNET) as u16;
    let [high, low] = total.to_be_bytes();
    let [b0, b1, b2, b3] = tag.number.to_be_bytes();
    // The number is also the IPv4 identification: the product identifies packets by it.
    frame.extend([8, 0, 0x45, 0, high, low, b2, b3, 0, 0, ttl, 17, 0, 0, 192, 0, 2, tag.net]);
    frame.extend(to);
    let [udp_high, udp_low] = (total - 20).to_be_bytes();
    frame.extend([0x10, tag.flow, 0x20, tag.age, udp_high, udp_low, 0, 0]);
    frame.extend(MARK);
    frame.extend([tag.net, tag.age, tag.flow, b0, b1, b2, b3]);
    frame.resize(len, 0x5a);
    let sum = hue_wire::checksum::full(&frame[ETHERNET..ETHERNET + 20]);
    frame[ETHERNET + 10..ETHERNET + 12].copy_from_slice(&sum.to_be_bytes());
    frame
}

/// Reads a tagged frame; `None` when it has no tag.
///
/// # Errors
/// When it has a tag and is damaged.
pub fn read(frame: &[u8]) -> Result<Option<Left>, String> {
    let Some(payload) = frame.get(PAYLOAD..PAYLOAD + 11) else { return Ok(None) };
    if payload[..4] != MARK {
        return Ok(None);
    }
    if hue_wire::checksum::full(&frame[ETHERNET..ETHERNET + 20]) != 0 {
        return Err("its header's checksum is wrong".to_owned());
    }
    let number = u32::from_be_bytes([payload[7], payload[8], payload[9], payload[10]]);
    let tag = Tag { net: payload[4], age: payload[5], flow: payload[6], number };
    let mac = |at: usize| std::array::from_fn(|byte| frame[at + byte]);
    Ok(Some(Left { tag, macs: [mac(0), mac(6)], ttl: frame[ETHERNET + 8] }))
}
