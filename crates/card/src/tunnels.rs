//! Tunnels on the card: which have rows in TUNNEL and TUNNEL_NEAR, and the next hops and carriers that refer to these.
//!
//! Flow: programs of the loaded networks → **tunnels** → rows → device. A tunnel is on the card while the card decides the packets of
//! its network and of its carrier. Otherwise next hops that lead to it are written as ones that software has to resolve, and the
//! carrier's packets for it are punted: software then does what it does without a card (ADR 0065). A row is written before anything
//! names it. It is taken away only once nothing names it and the loop has let go of the frames that might.
//!
//! TUNNEL is a hash table with open addressing: a row that leaves a gap in a search becomes a placeholder that nothing matches, because
//! next hops name the other rows by their places.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use hue_demux::Match;
use hue_demux::tunnel::{Encapsulation, Tunnel};
use hue_substrate::Program;
use hue_tables::Vid;
use hue_wire::{toeplitz, vxlan};

use crate::device::{Device, TUNNEL_COUNTED_ROWS};
use crate::error::CardError;
use crate::generated::{TunnelCountRow, TunnelNearRow, TunnelRow};
use crate::registers::Registers;
use crate::twin::FRAME_BYTES_MAX;

/// Of a hundred rows, those that may be in use.
const USABLE_PERCENT: usize = 75;

/// A virtual port that is the end of a tunnel.
pub type End = (Vid, u16);
/// The rows of a tunnel.
pub type Pair = (TunnelRow, TunnelNearRow);

/// What a row of TUNNEL has.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Place {
    /// Nothing; searches end here.
    Free,
    /// It was in use, and searches must pass it.
    Passed,
    /// A tunnel.
    Of(End, Pair),
}

/// The rows of TUNNEL.
#[derive(Debug)]
pub struct Tunnels {
    pub places: Vec<Place>,
}

/// What of a network's tunnels is on the card.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Ways {
    /// Row by virtual port, of those that it has.
    pub out: BTreeMap<u16, u8>,
    /// Whether it carries tunnels of IP in IP, and VXLAN.
    pub carries: (bool, bool),
}

const fn wide(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => address.to_bits() as u128,
        IpAddr::V6(address) => address.to_bits(),
    }
}

/// How frames of a tunnel are assigned to a virtual port, as far as the card can: `Some(any)` says whether their MAC address matters.
fn accepts(program: &Program, vport: u16, tunnel: &Tunnel) -> Option<bool> {
    let mac = program.ports.get(usize::from(vport))?.mac;
    let mut rows = program.rows.iter().filter(|row| row.vport == vport).peekable();
    rows.peek()?;
    let mut any = tunnel.encapsulation == Encapsulation::Ipip;
    for row in rows {
        match row.select {
            Match::Mac { mac: to, .. } if to == mac => {}
            Match::Port(_) => any = true,
            _ => return None,
        }
    }
    Some(any)
}

/// The rows of a tunnel, if the card can do what it needs. Both networks with their indices; the carrier with the virtual port that
/// has the near address.
pub fn pair(
    (program, net): (&Program, u8),
    vport: u16,
    tunnel: &Tunnel,
    (carrier, over, over_vport): (&Program, u8, u16),
) -> Option<Pair> {
    let port = program.ports.get(usize::from(vport))?;
    let any_mac = accepts(program, vport, tunnel)?;
    let vni = match tunnel.encapsulation {
        Encapsulation::Ipip => 0,
        Encapsulation::Vxlan { vni, port: vxlan::PORT } => vni.get(),
        Encapsulation::Vxlan { .. } => return None,
    };
    // What a plane lets pass must be a frame in the tunnel too.
    let longest = usize::from(port.mtu_bytes) + hue_wire::ethernet::HEADER_BYTES + tunnel.overhead_bytes();
    let learns = program.settings.learning().is_some() || carrier.settings.learning().is_some();
    if longest > FRAME_BYTES_MAX || learns {
        return None;
    }
    let over_mac = carrier.ports.get(usize::from(over_vport))?.mac;
    let (remote, local) = (wide(tunnel.remote), wide(tunnel.local));
    let (dscp_fixed, dscp) = match tunnel.dscp {
        hue_demux::tunnel::Dscp::Inherit => (false, 0),
        hue_demux::tunnel::Dscp::Fixed(value) => (true, value),
    };
    let far = TunnelRow {
        valid: true,
        over,
        over_vport: over_vport as u8, // at most 256 virtual ports
        vxlan: tunnel.encapsulation != Encapsulation::Ipip,
        wide: tunnel.local.is_ipv6(),
        vni,
        remote_low: remote as u64,
        remote_high: (remote >> 64) as u64,
        any_mac,
    };
    let near = TunnelNearRow {
        local_low: local as u64,
        local_high: (local >> 64) as u64,
        mac: port.mac.to_u64(),
        over_mac: over_mac.to_u64(),
        net,
        vport: vport as u8,
        ttl: tunnel.ttl.saturating_add(1),
        dscp_fixed,
        dscp,
    };
    Some((far, near))
}

/// What a search compares.
pub fn key((far, near): &Pair) -> (u8, bool, bool, u32, [u64; 4]) {
    let ends = [far.remote_low, far.remote_high, near.local_low, near.local_high];
    (far.over, far.vxlan, far.wide, far.vni, ends)
}

impl Tunnels {
    /// Of an image with this many rows.
    pub fn new(rows: u32) -> Self {
        Self { places: vec![Place::Free; rows as usize] }
    }

    fn first_place(&self, (far, near): &Pair) -> usize {
        let wide = |high: u64, low: u64| (u128::from(high) << 64 | u128::from(low)).to_be_bytes();
        let ends = [wide(far.remote_high, far.remote_low), wide(near.local_high, near.local_low)].concat();
        let [_, vni @ ..] = far.vni.to_be_bytes();
        toeplitz::hash(&[&ends[..], &vni, &[far.over]].concat()) as usize % self.places.len().max(1)
    }

    /// The place of a tunnel.
    pub fn of(&self, end: End) -> Option<u8> {
        let found =
            self.places.iter().position(|place| matches!(place, Place::Of(other, _) if *other == end));
        found.map(|place| place as u8) // at most 256 rows
    }

    /// Puts a tunnel at the first place of its search that is not in use. Returns the place, or `None` without room.
    pub fn put(&mut self, end: End, pair: Pair) -> Option<usize> {
        let free = self.places.iter().filter(|place| **place == Place::Free).count();
        let used = self.places.iter().filter(|place| matches!(place, Place::Of(..))).count();
        let first = self.first_place(&pair);
        let places = (first..first + self.places.len()).map(|place| place % self.places.len());
        let at = places.into_iter().find(|at| !matches!(self.places.get(*at), Some(Place::Of(..))))?;
        let full = used * 100 >= self.places.len() * USABLE_PERCENT;
        let place = self.places.get_mut(at)?;
        // So that searches are short, and that every search ends: at least one place stays free.
        if full || *place == Place::Free && free <= 1 {
            return None;
        }
        *place = Place::Of(end, pair);
        Some(at)
    }

    /// Takes tunnels away. Returns the places whose rows change.
    pub fn take(&mut self, ends: &BTreeSet<End>) -> Vec<usize> {
        let mut changed = Vec::new();
        for (at, place) in self.places.iter_mut().enumerate() {
            if matches!(place, Place::Of(end, _) if ends.contains(end)) {
                *place = Place::Passed;
                changed.push(at);
            }
        }
        // A search that ends behind a placeholder can end before it.
        let count = self.places.len();
        for at in (0..2 * count).rev().map(|at| at % count) {
            let next = self.places.get((at + 1) % count) == Some(&Place::Free);
            if let Some(place) = self.places.get_mut(at).filter(|place| next && **place == Place::Passed) {
                *place = Place::Free;
                changed.push(at);
            }
        }
        changed.sort_unstable();
        changed.dedup();
        changed
    }

    /// Writes the rows of a place.
    pub fn write<R: Registers>(&self, at: usize, device: &mut Device<R>) -> Result<(), CardError> {
        let row = at as u32; // at most 256 rows
        match self.places.get(at) {
            Some(Place::Of(_, (far, near))) => {
                device.write_row(row, near)?;
                device.write_row(row, far)
            }
            // No packet is from 0.0.0.0 to 0.0.0.0.
            Some(Place::Passed) => {
                device.write_row(row, &TunnelRow { valid: true, ..TunnelRow::default() })?;
                device.write_row(row, &TunnelNearRow::default())
            }
            _ => device.write_row(row, &TunnelRow::default()),
        }
    }
}

/// Clears the counters of an index that another network may have used before.
pub fn forget_tunnel_counts<R: Registers>(device: &mut Device<R>, net: u8) -> Result<(), CardError> {
    if device.description().tunnel_rows > 0 {
        for row in 0..TUNNEL_COUNTED_ROWS {
            device.take_row::<TunnelCountRow>(u32::from(net) * TUNNEL_COUNTED_ROWS + row)?;
        }
    }
    Ok(())
}
