//! Hand-built frames that a normal kernel would not send.

use std::net::Ipv4Addr;

/// A MAC address.
pub type Mac = [u8; 6];

/// The broadcast address.
pub const BROADCAST: Mac = [0xff; 6];

/// An Ethernet header.
#[must_use]
pub fn ethernet(destination: Mac, source: Mac, ethertype: u16) -> Vec<u8> {
    let mut frame = Vec::with_capacity(64);
    frame.extend_from_slice(&destination);
    frame.extend_from_slice(&source);
    frame.extend_from_slice(&ethertype.to_be_bytes());
    frame
}

/// Source and destination of an IPv4 packet.
#[derive(Clone, Copy, Debug)]
pub struct Ends {
    /// Destination and source MAC.
    pub macs: [Mac; 2],
    /// Source and destination address.
    pub addresses: [Ipv4Addr; 2],
    /// Time to live.
    pub ttl: u8,
}

/// A UDP packet with a payload; the UDP checksum is omitted, as IPv4 allows.
#[must_use]
pub fn udp(ends: Ends, ports: [u16; 2], payload: &[u8]) -> Vec<u8> {
    udp_behind(&[], ends, ports, payload)
}

/// The same with IPv4 options that have no effect: four times "no operation" (RFC 791 §3.1).
#[must_use]
pub fn udp_with_option(ends: Ends, ports: [u16; 2], payload: &[u8]) -> Vec<u8> {
    udp_behind(&[1; 4], ends, ports, payload)
}

fn udp_behind(options: &[u8], ends: Ends, ports: [u16; 2], payload: &[u8]) -> Vec<u8> {
    let mut frame = ethernet(ends.macs[0], ends.macs[1], 0x0800);
    let length = (8 + payload.len()) as u16;
    let mut header = vec![0x45, 0, 0, 0, 0, 0, 0x40, 0, ends.ttl, 17, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    header.extend_from_slice(options);
    header[0] += (options.len() / 4) as u8;
    let total = length + header.len() as u16;
    header[2..4].copy_from_slice(&total.to_be_bytes());
    header[12..16].copy_from_slice(&ends.addresses[0].octets());
    header[16..20].copy_from_slice(&ends.addresses[1].octets());
    let checksum = checksum(&header);
    header[10..12].copy_from_slice(&checksum.to_be_bytes());
    frame.extend_from_slice(&header);
    frame.extend_from_slice(&ports[0].to_be_bytes());
    frame.extend_from_slice(&ports[1].to_be_bytes());
    frame.extend_from_slice(&length.to_be_bytes());
    frame.extend_from_slice(&[0, 0]);
    frame.extend_from_slice(payload);
    frame
}

/// An ARP packet: a request (`operation` 1) or a reply (2). `macs` are the Ethernet destination and source; `sender` and
/// `target` are the fields of the packet itself.
#[must_use]
pub fn arp(macs: [Mac; 2], operation: u16, sender: (Mac, Ipv4Addr), target: (Mac, Ipv4Addr)) -> Vec<u8> {
    let mut frame = ethernet(macs[0], macs[1], 0x0806);
    frame.extend_from_slice(&[0, 1, 8, 0, 6, 4]);
    frame.extend_from_slice(&operation.to_be_bytes());
    for (mac, address) in [sender, target] {
        frame.extend_from_slice(&mac);
        frame.extend_from_slice(&address.octets());
    }
    frame.resize(60, 0);
    frame
}

/// The Internet checksum.
#[must_use]
pub fn checksum(bytes: &[u8]) -> u16 {
    let mut sum: u32 =
        bytes.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0))).sum();
    while sum >> 16 != 0 {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_that_of_rfc_1071() {
        assert_eq!(checksum(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]), !0xddf2);
        let ends = Ends {
            macs: [BROADCAST; 2],
            addresses: [Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::BROADCAST],
            ttl: 9,
        };
        assert_eq!(checksum(&udp(ends, [1, 2], b"x")[14..34]), 0);
    }
}
