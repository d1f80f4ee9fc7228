//! Networks of kind `rofl` on the card: their labels become routes of the trie, and each port's own MAC address a row of PORT_MAC.
//!
//! Flow: program → **flat** → routes and rows of next hops, as those of other kinds → device. The front takes frames to the network's own
//! MAC address only. Source: ADR 0078.
//!
//! Rows of HOP: local, for the router's own labels; forward, for other routers' labels; forward by port 4 + n, for a host at port n
//! that has the label; and at the end one of kind glean, for packets whose closest label this router holds, and which is not the destination's.
//! Invariant: packets of networks that cache pointers are never decided on the card.

use hue_demux::PortId;
use hue_planes::rofl::Settings;
use hue_planes::{Adjacency, AdjacencyKind, Kind};
use hue_substrate::{Entries, Program, SubstrateError, flat};

use crate::device::{Description, Device, PORT_MACS};
use crate::error::CardError;
use crate::generated::PortMacRow;
use crate::registers::Registers;
use crate::room::room;

/// A network of this kind as one with routes; `routes`: with them, or only with its rows of next hops.
pub fn routed(program: &Program, settings: Settings, routes: bool) -> Program {
    let entries = match routes {
        true => flat::routes(program.entries.labels(), &program.next_hops, settings),
        false => Vec::new(),
    };
    let held = Adjacency::glean(PortId::new(0));
    let next_hops = program.next_hops.iter().map(hop).chain([held]).collect();
    Program { next_hops, entries: Entries::Lpm128(entries), ..program.without_tables() }
}

/// A row of next hops as one of a network with routes.
fn hop(row: &Adjacency) -> Adjacency {
    let port = row.port().get();
    match row.kind() {
        AdjacencyKind::Local | AdjacencyKind::Glean => Adjacency::local(),
        AdjacencyKind::Forward if u32::from(port) < PORT_MACS => *row,
        AdjacencyKind::Port if u32::from(port) < PORT_MACS => {
            Adjacency::forward(PortId::new(PORT_MACS as u8 + port), row.src(), row.dst(), row.mtu_bytes())
        }
        // No label names the others; and on a port that the card does not have: its network stays in software.
        _ => Adjacency::NONE,
    }
}

/// Writes the network's own MAC addresses. No packet may use them meanwhile.
pub fn write_macs<R: Registers>(net: u8, program: &Program, device: &mut Device<R>) -> Result<(), CardError> {
    if program.kind() != Kind::Rofl || device.description().rows(crate::generated::PORT_MAC) == 0 {
        return Ok(());
    }
    for port in 0..PORT_MACS {
        let own = program.ports.iter().find(|one| u32::from(one.port.get()) == port);
        let row = PortMacRow { mac: own.map_or(0, |port| port.mac.to_u64()) };
        device.write_row(u32::from(net) * PORT_MACS + port, &row)?;
    }
    Ok(())
}

/// Checks whether a card may decide the packets of a network: it caches no pointers, and has not too many labels.
pub fn check(program: &Program, description: &Description) -> Result<(), SubstrateError> {
    let hue_planes::Settings::Rofl(settings) = program.settings else { return Ok(()) };
    let name = &program.name;
    room(description, name, "cached pointers", settings.pointers_max().into(), 0)?;
    let bytes = flat::bytes_of(program.entries.labels().len(), settings);
    room(description, name, "bytes of flat labels", bytes, flat::BYTES_MAX as u32)
}
