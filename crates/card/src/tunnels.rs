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
use hue_planes::AdjacencyKind;
use hue_substrate::{Program, RouteKey};
use hue_tables::{NextHop, Prefix, Vid};
use hue_wire::{toeplitz, vxlan};

use crate::card::Card;
use crate::device::{Description, Device};
use crate::error::CardError;
use crate::generated::{self as regs, TunnelCountRow, TunnelNearRow, TunnelRow};
use crate::network::Loaded;
use crate::plan;
use crate::registers::Registers;
use crate::routes::{HopRows, Roots};
use crate::twin::FRAME_BYTES_MAX;

/// Rows of TUNNEL_COUNT of a network.
const COUNTED_ROWS: u32 = 4;
/// Of a hundred rows of TUNNEL, those that may be in use, so that searches are short.
const USABLE_PERCENT: u32 = 75;
/// Reads of the loop's counters before the card counts as broken.
const POLLS_MAX: usize = 100_000;

/// A virtual port that is the end of a tunnel.
type End = (Vid, u16);
/// The rows of a tunnel.
type Pair = (TunnelRow, TunnelNearRow);

/// What a row of TUNNEL has.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Place {
    Free,
    /// It was in use, and searches must pass it.
    Passed,
    Of(End, Pair),
}

/// The rows of TUNNEL.
#[derive(Debug)]
pub struct Tunnels {
    places: Vec<Place>,
}

/// What of a network's tunnels is on the card.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Ways {
    /// Row by virtual port, of those that it has.
    pub out: BTreeMap<u16, u8>,
    /// Whether it carries tunnels of IP in IP, and VXLAN.
    pub carries: (bool, bool),
}

/// Packets of a network in tunnels.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct TunnelCounts {
    /// Packets that left by a tunnel.
    pub left: u64,
    /// Packets for the network itself that came out of tunnels which it carries.
    pub entered: u64,
    /// Packets for which its share of the loop had no room.
    pub full: u64,
    /// Packets that could not enter their tunnel.
    pub lost: u64,
}

const fn wide(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => address.to_bits() as u128,
        IpAddr::V6(address) => address.to_bits(),
    }
}

/// The virtual port of a carrier that the near end of a tunnel is at: the one of the longest prefix that leads to a link.
fn near_vport(carrier: &Program, local: IpAddr) -> u16 {
    let found = match local {
        IpAddr::V4(local) => link_to(carrier, local.to_bits()),
        IpAddr::V6(local) => link_to(carrier, local.to_bits()),
    };
    found.unwrap_or(0) as u16 // at most 256 virtual ports
}

fn link_to<K: RouteKey>(program: &Program, address: K) -> Option<usize> {
    let link = |hop: &NextHop| {
        let hop = program.next_hops.get(usize::from(hop.get()))?;
        let leads = matches!(hop.kind(), AdjacencyKind::Glean | AdjacencyKind::Forward);
        program.ports.iter().position(|vport| leads && vport.port == hop.port())
    };
    let routes = K::routes(&program.entries).iter();
    let covers = routes.filter(|(prefix, _)| Prefix::containing(address, prefix.len()) == *prefix);
    let linked = covers.filter_map(|(prefix, hop)| Some((prefix.len(), link(hop)?)));
    linked.max_by_key(|(len, vport)| (*len, std::cmp::Reverse(*vport))).map(|(_, vport)| vport)
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

/// The rows of a tunnel, if the card can do what it needs.
fn pair(program: &Program, vport: u16, net: u8, tunnel: &Tunnel, carrier: &Loaded) -> Option<Pair> {
    let port = program.ports.get(usize::from(vport))?;
    let any_mac = accepts(program, vport, tunnel)?;
    let vni = match tunnel.encapsulation {
        Encapsulation::Ipip => 0,
        Encapsulation::Vxlan { vni, port: vxlan::PORT } => vni.get(),
        Encapsulation::Vxlan { .. } => return None,
    };
    // What a plane lets pass must be a frame in the tunnel too.
    let longest = usize::from(port.mtu_bytes) + hue_wire::ethernet::HEADER_BYTES + tunnel.overhead_bytes();
    let learns = program.settings.learning().is_some() || carrier.program().settings.learning().is_some();
    if longest > FRAME_BYTES_MAX || learns {
        return None;
    }
    let over_vport = near_vport(carrier.program(), tunnel.local);
    let over_mac = carrier.program().ports.get(usize::from(over_vport))?.mac;
    let (remote, local) = (wide(tunnel.remote), wide(tunnel.local));
    let (dscp_fixed, dscp) = match tunnel.dscp {
        hue_demux::tunnel::Dscp::Inherit => (false, 0),
        hue_demux::tunnel::Dscp::Fixed(value) => (true, value),
    };
    let far = TunnelRow {
        valid: true,
        over: carrier.place.net,
        over_vport: over_vport as u8,
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
fn key((far, near): &Pair) -> (u8, bool, bool, u32, [u64; 4]) {
    let ends = [far.remote_low, far.remote_high, near.local_low, near.local_high];
    (far.over, far.vxlan, far.wide, far.vni, ends)
}

impl Tunnels {
    /// Of an image with this many rows.
    pub fn new(rows: u32) -> Self {
        Self { places: vec![Place::Free; rows as usize] }
    }

    /// Most tunnels of an image with this many rows.
    pub const fn usable(rows: u32) -> u32 {
        rows * USABLE_PERCENT / 100
    }

    fn first_place(&self, (far, near): &Pair) -> usize {
        let wide = |high: u64, low: u64| (u128::from(high) << 64 | u128::from(low)).to_be_bytes();
        let ends = [wide(far.remote_high, far.remote_low), wide(near.local_high, near.local_low)].concat();
        let [_, vni @ ..] = far.vni.to_be_bytes();
        toeplitz::hash(&[&ends[..], &vni, &[far.over]].concat()) as usize % self.places.len().max(1)
    }

    fn of(&self, end: End) -> Option<u8> {
        let found =
            self.places.iter().position(|place| matches!(place, Place::Of(other, _) if *other == end));
        found.map(|place| place as u8) // at most 256 rows
    }

    /// Puts a tunnel at the first place of its search that is not in use. Returns the place, or `None` without room.
    fn put(&mut self, end: End, pair: Pair) -> Option<usize> {
        let free = self.places.iter().filter(|place| **place == Place::Free).count();
        let first = self.first_place(&pair);
        let places = (first..first + self.places.len()).map(|place| place % self.places.len());
        let at = places.into_iter().find(|at| !matches!(self.places.get(*at), Some(Place::Of(..))))?;
        let place = self.places.get_mut(at)?;
        // One place stays free, so that every search ends.
        if *place == Place::Free && free <= 1 {
            return None;
        }
        *place = Place::Of(end, pair);
        Some(at)
    }

    /// Takes tunnels away. Returns the places whose rows change.
    fn take(&mut self, ends: &BTreeSet<End>) -> Vec<usize> {
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

    fn write<R: Registers>(&self, at: usize, device: &mut Device<R>) -> Result<(), CardError> {
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

impl<R: Registers> Card<R> {
    /// The tunnels whose packets the card can decide on both sides, if it decides those of `coming` too.
    fn wanted_tunnels(&self, coming: Option<Vid>) -> BTreeMap<End, Pair> {
        let on_card = |loaded: &Loaded| !loaded.software || coming == Some(loaded.program().vid);
        let mut wanted = BTreeMap::new();
        let mut keys = BTreeMap::new();
        for (vid, loaded) in self.networks.iter().filter(|(_, loaded)| on_card(loaded)) {
            let program = loaded.program();
            for (vport, tunnel) in program.tunnels() {
                let carrier = self.networks.get(&tunnel.over).filter(|carrier| on_card(carrier));
                let Some(pair) =
                    carrier.and_then(|over| pair(program, vport, loaded.place.net, tunnel, over))
                else {
                    continue;
                };
                *keys.entry(key(&pair)).or_insert(0u32) += 1;
                wanted.insert((*vid, vport), pair);
            }
        }
        // Networks that share a pair of addresses select by what is inside, which only software reads.
        wanted.retain(|_, pair| keys.get(&key(pair)) == Some(&1));
        wanted
    }

    /// Makes the rows of tunnels, and what refers to them, those of the loaded networks; also of one that is about to come to the card.
    ///
    /// # Errors
    /// `Access`, `Table`; `Busy` if frames do not leave the loop.
    pub(crate) fn settle_tunnels(&mut self, coming: Option<Vid>) -> Result<(), CardError> {
        if self.device.get_mut().description().tunnel_rows == 0 {
            return Ok(());
        }
        let wanted = self.wanted_tunnels(coming);
        let stays = |end: &End, pair: &Pair| wanted.get(end) == Some(pair);
        let gone: BTreeSet<End> = self
            .tunnels
            .places
            .iter()
            .filter_map(|place| match place {
                Place::Of(end, pair) if !stays(end, pair) => Some(*end),
                _ => None,
            })
            .collect();
        if !gone.is_empty() {
            self.refer(|end| !gone.contains(end))?;
            let changed = self.tunnels.take(&gone);
            let device = self.device.get_mut();
            let mark = device.mark()?;
            device.wait_for(mark)?;
            device.wait_for_loop()?;
            for at in changed {
                self.tunnels.write(at, device)?;
            }
        }
        for (end, pair) in wanted {
            if self.tunnels.of(end).is_none()
                && let Some(at) = self.tunnels.put(end, pair)
            {
                self.tunnels.write(at, self.device.get_mut())?;
            }
        }
        self.refer(|_| true)
    }

    /// Lets next hops and carriers refer to the tunnels that have rows, of these ends.
    fn refer(&mut self, which: impl Fn(&End) -> bool) -> Result<(), CardError> {
        let Self { device, networks, shared, tunnels, .. } = self;
        let mut ways: BTreeMap<Vid, Ways> = BTreeMap::new();
        let nets: BTreeMap<u8, Vid> = networks.iter().map(|(vid, loaded)| (loaded.place.net, *vid)).collect();
        for (at, place) in tunnels.places.iter().enumerate() {
            let Place::Of(end, (far, _)) = place else { continue };
            if !which(end) {
                continue;
            }
            ways.entry(end.0).or_default().out.insert(end.1, at as u8);
            if let Some(over) = nets.get(&far.over) {
                let carries = &mut ways.entry(*over).or_default().carries;
                *carries = (carries.0 || !far.vxlan, carries.1 || far.vxlan);
            }
        }
        for (vid, loaded) in networks.iter_mut() {
            let next = ways.remove(vid).unwrap_or_default();
            if loaded.ways == next {
                continue;
            }
            let before = std::mem::replace(&mut loaded.ways, next);
            if before.out != loaded.ways.out
                && let Some(held) = &loaded.held
            {
                for (index, hop) in held.hops.clone().zip(&loaded.program().next_hops) {
                    if hop.port().is_tunnel() {
                        device.get_mut().write_row(index, &loaded.hop(hop))?;
                    }
                }
            }
            if before.carries != loaded.ways.carries {
                let table = loaded.held.as_ref().map(|held| held.table);
                let roots = shared
                    .as_ref()
                    .zip(table)
                    .map_or_else(Roots::default, |(shared, table)| shared.roots(table));
                device.get_mut().write_row(u32::from(loaded.place.net), &loaded.row(roots))?;
            }
        }
        Ok(())
    }

    /// Packets of a network in tunnels; `None` if it is not loaded.
    ///
    /// # Errors
    /// `Access`, `Table`.
    pub fn read_tunnel_counts(&self, vid: Vid) -> Result<Option<TunnelCounts>, CardError> {
        let Some(loaded) = self.networks.get(&vid) else { return Ok(None) };
        let mut device = self.device.borrow_mut();
        if device.description().tunnel_rows == 0 {
            return Ok(Some(TunnelCounts::default()));
        }
        let mut read = |row: u32| {
            let row = u32::from(loaded.place.net) * COUNTED_ROWS + row;
            Ok::<_, CardError>(device.read_row::<TunnelCountRow>(row)?.value)
        };
        Ok(Some(TunnelCounts { left: read(0)?, entered: read(1)?, full: read(2)?, lost: read(3)? }))
    }
}

impl Loaded {
    /// The row of a next hop. One that leads to a tunnel which is not on the card is one that software resolves.
    pub fn hop(&self, hop: &hue_planes::Adjacency) -> regs::HopRow {
        let mut row = plan::hop(hop);
        let vport = self.program().ports.iter().zip(0u16..).find(|(port, _)| port.port == hop.port());
        let way = vport.and_then(|(_, vport)| self.ways.out.get(&vport));
        if let Some(place) = way.filter(|_| hop.kind() == AdjacencyKind::Forward && hop.port().is_tunnel()) {
            row.kind = AdjacencyKind::Forward as u8;
            row.port = plan::TUNNEL_PORT;
            row.src = u64::from(*place);
        }
        row
    }
}

/// Clears the counters of an index that another network may have used before.
pub fn forget_tunnel_counts<R: Registers>(device: &mut Device<R>, net: u8) -> Result<(), CardError> {
    if device.description().tunnel_rows > 0 {
        for row in 0..COUNTED_ROWS {
            device.take_row::<TunnelCountRow>(u32::from(net) * COUNTED_ROWS + row)?;
        }
    }
    Ok(())
}

/// Rows of the table of counters of an image.
pub const fn count_rows(description: &Description) -> u32 {
    if description.tunnel_rows == 0 { 0 } else { description.nets * COUNTED_ROWS }
}

impl<R: Registers> Device<R> {
    /// Waits until the frames that are in the loop have left it.
    fn wait_for_loop(&mut self) -> Result<(), CardError> {
        let frames = |word: u32| (word as u16, (word >> 16) as u16);
        let (came, _) = frames(self.read(regs::LOOP_FRAMES)?);
        for _ in 0..POLLS_MAX {
            let (_, left) = frames(self.read(regs::LOOP_FRAMES)?);
            if left.wrapping_sub(came) as i16 >= 0 {
                return Ok(());
            }
        }
        Err(CardError::Busy)
    }
}
