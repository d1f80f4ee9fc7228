//! Labels of networks whose kinds forward by labels. They follow from names, and from places in lists.
//!
//! Kind `rofl`: a hash of the names of topology, network, and node or host. Kind `mpls`: labels from the first one that is free, in the
//! order of the network's hosts. Pure functions.

use hue_planes::rofl::Settings;
use hue_wire::mpls::LABEL_MIN;

use super::{Topology, TopologyNetwork};
use crate::extract::Digits;

/// The flat label of a node's router.
#[must_use]
pub fn router(topology: &Topology, network: &TopologyNetwork, node: &str) -> Digits {
    flat(&[topology.name(), network.name.as_str(), "node", node], bytes(network))
}

/// The flat label of a host.
#[must_use]
pub fn host(topology: &Topology, network: &TopologyNetwork, host: &str) -> Digits {
    flat(&[topology.name(), network.name.as_str(), "host", host], bytes(network))
}

/// The label of packets to the host with this number, counted from 0, in a network of kind `mpls`.
#[must_use]
pub fn of_path(number: usize) -> u32 {
    LABEL_MIN.saturating_add(u32::try_from(number).unwrap_or(u32::MAX))
}

/// Bytes of a flat label.
fn bytes(network: &TopologyNetwork) -> usize {
    let given = network.settings.as_ref().and_then(|plane| plane.label_bits);
    usize::from(given.unwrap_or(Settings::default().label_bits()) / 8)
}

/// The first bytes of a hash of names (FNV-1a, 128 bits), mixed so that all of its bits depend on all names.
fn flat(names: &[&str], bytes: usize) -> Digits {
    const PRIME: u128 = 0x0100_0000_0000_0000_0000_013b;
    let mut hash = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d_u128;
    for byte in names.iter().flat_map(|name| name.bytes().chain([0])) {
        hash = (hash ^ u128::from(byte)).wrapping_mul(PRIME);
    }
    // The first bits of such a hash depend little on the last name, and its last bits little on all others.
    for _ in 0..2 {
        hash = (hash ^ (hash >> 61)).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
    }
    let bits = 8 * bytes;
    Digits { bits: (hash ^ (hash >> 64)) << (u128::BITS as usize - bits), bytes }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn labels_of_names_lie_all_over_the_ring_and_are_different() {
        let names: Vec<String> = (0..2_000).map(|number| format!("host{number}")).collect();
        for bytes in [4, 8, 16] {
            let labels: Vec<u128> = names.iter().map(|name| flat(&["t", "n", name], bytes).bits).collect();
            let first: BTreeSet<u128> = labels.iter().map(|label| label >> 120).collect();
            assert!(first.len() > 250, "{bytes} bytes: {} first bytes", first.len());
            assert_eq!(labels.iter().collect::<BTreeSet<_>>().len(), labels.len(), "{bytes} bytes");
            assert!(labels.iter().all(|label| bytes == 16 || label << (8 * bytes) == 0));
        }
    }
}
