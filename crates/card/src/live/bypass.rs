//! Replaces the card while its image is changed: frames go from wires to workers and back without passing the card.
//!
//! Flow: wire → **bypass** (which network) → worker → wire. Before the bypass starts, all networks move to software
//! and the card is drained; the new card starts after the last bypassed frame. Therefore frames keep their order.

use std::collections::HashMap;

use hue_demux::{Demux, PortId, Selection, Target};
use hue_substrate::{Program, SubstrateError, demux_of};
use hue_wire::ethernet::EtherType;

/// Assigns frames to networks. Ports have the card's numbers.
pub struct Bypass {
    demux: Demux,
    /// ARP to a router's own MAC address belongs to its network even where another rule selects the network's other
    /// frames.
    arp: HashMap<(PortId, [u8; 6]), Target>,
}

impl Bypass {
    /// Creates the bypass for these networks.
    ///
    /// # Errors
    /// `Same`, `Claim`, `Demux`; none of them occurs for networks that are loaded on a card.
    pub fn new(programs: &[Program]) -> Result<Self, SubstrateError> {
        let demux = demux_of(std::iter::empty(), programs)?;
        let owner = |program: &Program| -> Vec<((PortId, [u8; 6]), Target)> {
            let ports = program.ports.iter().zip(0u16..);
            ports.map(|(port, vport)| ((port.port, port.mac.0), Target { vid: program.vid, vport })).collect()
        };
        Ok(Self { demux, arp: programs.iter().flat_map(owner).collect() })
    }

    /// Calls `each` for every network that gets a copy of the frame.
    pub fn targets(&self, port: u8, bytes: &[u8], each: &mut impl FnMut(Target)) {
        let port = PortId::new(port);
        match self.demux.select(port, bytes) {
            Selection::One(target, _) => each(target),
            Selection::Several(targets) => {
                targets.iter().for_each(|target| each(*target));
            }
            Selection::Nobody => {
                let arp = bytes.get(12..14) == Some(&EtherType::ARP.0.to_be_bytes());
                let mac = bytes.first_chunk::<6>().filter(|_| arp);
                if let Some(target) = mac.and_then(|mac| self.arp.get(&(port, *mac))) {
                    each(*target);
                }
            }
        }
    }
}
