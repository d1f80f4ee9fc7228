//! The packets of the plane measurements: those sent, and those expected.

use hue_tables::NextHop;

use crate::engine::Queries;
use crate::oracle;
use crate::rib::Table;

/// Bytes of a frame as it lies in memory.
pub const FRAME: usize = 64;
/// MTU of every next hop: nothing here exceeds it.
pub const MTU: u16 = 1500;

/// MAC of network `net`'s router on the receiving port.
pub fn router_mac(net: u16) -> [u8; 6] {
    let [high, low] = net.to_be_bytes();
    [0x02, 0x00, 0x00, 0x01, high, low]
}

/// MAC of network `net`'s router on the sending port.
pub fn egress_mac(net: u16) -> [u8; 6] {
    let [high, low] = net.to_be_bytes();
    [0x02, 0x00, 0x00, 0x0B, high, low]
}

/// MAC of neighbour `hop` of network `net`.
pub fn neighbour_mac(net: u16, hop: u16) -> [u8; 6] {
    let [high, low] = net.to_be_bytes();
    [0x02, 0x00, 0x0A, hop as u8, high, low]
}

/// Destination and source MAC that next hop `hop` of network `net` writes.
pub fn macs(net: u16, hop: u16) -> [u8; 12] {
    let mut macs = [0; 12];
    macs[..6].copy_from_slice(&neighbour_mac(net, hop));
    macs[6..].copy_from_slice(&egress_mac(net));
    macs
}

/// Writes one frame a lookup of `queries` from `first` on.
pub fn write(buffer: &mut [u8], queries: &Queries<u32>, first: usize) {
    for (frame, i) in buffer.chunks_exact_mut(FRAME).zip(first..) {
        frame.copy_from_slice(&packet(router_mac(queries.nets[i]), queries.keys[i]));
    }
}

/// A UDP packet of 50 bytes in a frame of 64, TTL 64, to `destination`.
fn packet(router: [u8; 6], destination: u32) -> [u8; FRAME] {
    let mut frame = [0; FRAME];
    frame[..6].copy_from_slice(&router);
    frame[6..12].copy_from_slice(&[0x02, 0, 0, 0x0C, 0, 1]);
    frame[12..14].copy_from_slice(&[0x08, 0x00]);
    frame[14..24].copy_from_slice(&[0x45, 0, 0, 50, 0, 0, 0x40, 0, 64, 17]);
    frame[26..30].copy_from_slice(&[198, 18, 0, 1]);
    frame[30..34].copy_from_slice(&destination.to_be_bytes());
    let sum = header_sum(&frame[14..34]);
    frame[24..26].copy_from_slice(&(!sum).to_be_bytes());
    frame[34..38].copy_from_slice(&[0x30, 0x39, 0x00, 0x09]);
    frame[38..40].copy_from_slice(&[0, 30]);
    frame
}

/// Ones-complement sum of a header's 16-bit words.
fn header_sum(header: &[u8]) -> u16 {
    let sum: u32 = header.chunks_exact(2).map(|word| u32::from(word[0]) << 8 | u32::from(word[1])).sum();
    let sum = (sum & 0xFFFF) + (sum >> 16);
    ((sum & 0xFFFF) + (sum >> 16)) as u16
}

/// Turns frames into those that their networks must send, with a recomputed checksum.
///
/// # Errors
/// Names a packet without a route.
pub fn forward(buffer: &mut [u8], queries: &Queries<u32>, tables: &[Table<u32>]) -> Result<(), String> {
    for (i, frame) in buffer.chunks_exact_mut(FRAME).enumerate() {
        let net = queries.nets[i];
        let hop = oracle::lookup(&tables[usize::from(net)], queries.keys[i]);
        if hop == NextHop::NONE_WORD {
            return Err(format!("packet {i} has no route"));
        }
        frame[..12].copy_from_slice(&macs(net, hop));
        frame[22] -= 1;
        frame[24..26].fill(0);
        let sum = header_sum(&frame[14..34]);
        frame[24..26].copy_from_slice(&(!sum).to_be_bytes());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_written_header_sums_to_minus_zero() {
        assert_eq!(header_sum(&packet(router_mac(7), 0xC0A8_0001)[14..34]), 0xFFFF);
    }
}
