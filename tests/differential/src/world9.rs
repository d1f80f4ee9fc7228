//! Networks and packets of kind `splice` in a random world.

use hue_planes::splice::{Bits, SHIM_VERSION};
use hue_planes::{Settings, splice};
use hue_substrate::{Entries, Program};
use hue_tables::slice::{SlicedPrefix, key};
use hue_wire::checksum;

use crate::{Random, world};

/// Makes a network of kind `ipv4` one of this kind: each of its routes is in some of the slices.
pub(crate) fn turn(program: &mut Program, random: &mut Random) {
    let Settings::Ipv4(ipv4) = program.settings else { return };
    let slices = random.pick(&[1, 2, 3, 4, 4, 5, 8, 11, 16]);
    let bits = random.pick(&Bits::ALL);
    let mut routes = Vec::new();
    for (prefix, hop) in program.entries.lpm32() {
        for slice in 0..slices {
            if random.chance(if slice == 0 { 20 } else { 40 }) {
                continue;
            }
            // The same prefix leads elsewhere in another slice.
            let rows = program.next_hops.len();
            let hop = if random.chance(50) { *hop } else { world::hop(random.below(rows)) };
            routes.push((SlicedPrefix { slice, prefix: *prefix }.wide(), hop));
        }
    }
    program.entries = Entries::Sliced(routes);
    program.settings =
        Settings::Splice(splice::Settings { slices, bits, forward_martians: ipv4.forward_martians });
}

/// A key that routes may be to, of any slice.
pub(crate) fn destination(random: &mut Random) -> u128 {
    key(random.below(16) as u8, world::destination(random))
}

/// The header with splicing bits in front of a payload. Some are cut off, or have another version.
pub(crate) fn shim(random: &mut Random, payload: &[u8]) -> Vec<u8> {
    let version = if random.chance(90) { SHIM_VERSION } else { random.below(16) as u8 };
    let mut out = vec![17, version << 4 | random.below(16) as u8];
    out.extend(&random.word().to_be_bytes()[..6]);
    out.extend(payload);
    if random.chance(10) {
        out.truncate(random.below(10));
    }
    out
}

/// Gives a packet an identification with any bits; most are atomic.
pub(crate) fn identify(random: &mut Random, packet: &mut [u8]) {
    packet[4..6].copy_from_slice(&(random.word() as u16).to_be_bytes());
    if random.chance(60) {
        packet[6..8].copy_from_slice(&[0x40, 0]);
    }
    let header = 4 * usize::from(packet[0] & 15);
    packet[10..12].fill(0);
    let sum = checksum::full(&packet[..header]);
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
}
