//! What stands for the card while its image is changed: frames go from wires to workers and back without it.
//!
//! Flow: wire → **bypass** (whose is it) → worker → wire. The card was empty before, and all its networks in software,
//! so that frames keep their order; the new card begins behind the last frame that went this way.

use std::collections::HashMap;

use hue_demux::{Demux, PortId, Selection, Target};
use hue_substrate::{Program, SubstrateError, demux_of};
use hue_wire::ethernet::EtherType;

/// How frames are found, ports in the card's numbers. See the head of this file.
pub struct Bypass {
    demux: Demux,
    /// ARP to a router's own MAC address is its network's also where its other frames are found otherwise.
    arp: HashMap<(PortId, [u8; 6]), Target>,
}

impl Bypass {
    /// The bypass of these networks.
    ///
    /// # Errors
    /// `Same`, `Claim`, `Demux`: not of networks that a card has.
    pub fn new(programs: &[Program]) -> Result<Self, SubstrateError> {
        let demux = demux_of(std::iter::empty(), programs)?;
        let owner = |program: &Program| -> Vec<((PortId, [u8; 6]), Target)> {
            let ports = program.ports.iter().zip(0u16..);
            ports.map(|(port, vport)| ((port.port, port.mac.0), Target { vid: program.vid, vport })).collect()
        };
        Ok(Self { demux, arp: programs.iter().flat_map(owner).collect() })
    }

    /// Who gets a frame: each of them a copy.
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
