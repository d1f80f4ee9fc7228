//! The tunnels of the loaded networks: their rows, and the next hops and carriers that refer to these, follow every change.
//!
//! Flow: load, steer, update → **carrying** → [`Tunnels`](crate::tunnels::Tunnels) → rows → device. See ADR 0065.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;

use hue_tables::Vid;

use crate::card::Card;
use crate::device::TUNNEL_COUNTED_ROWS;
use crate::error::CardError;
use crate::generated::TunnelCountRow;
use crate::network::Loaded;
use crate::registers::Registers;
use crate::routes::{HopRows, Roots};
use crate::tunnels::{End, Pair, Place, Ways, key, pair};

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

impl<R: Registers> Card<R> {
    /// Sets the virtual ports that have the networks' addresses. A packet in a tunnel enters the carrier at the one that has the
    /// tunnel's near address; if none is known, at the first.
    ///
    /// # Errors
    /// `Access`, `Table`; `Busy` if frames do not leave the loop.
    pub fn join_tunnels(&mut self, near: HashMap<(Vid, IpAddr), u16>) -> Result<(), CardError> {
        self.near = near;
        self.settle_tunnels(None)
    }

    /// Leaves what enters and leaves tunnels to software in any placement, as a live card does: so no packet overtakes another when
    /// a network moves (ADR 0067). To be called before networks are loaded.
    pub(crate) fn leave_tunnels_to_software(&mut self) {
        self.tunnels_in_software = true;
    }

    /// The tunnels whose packets the card can decide on both sides, if it decides those of `coming` too.
    fn wanted_tunnels(&self, coming: Option<Vid>) -> BTreeMap<End, Pair> {
        let on_card = |loaded: &Loaded| !loaded.software || coming == Some(loaded.program().vid);
        let mut wanted = BTreeMap::new();
        let mut keys = BTreeMap::new();
        for (vid, loaded) in self.networks.iter().filter(|(_, loaded)| on_card(loaded)) {
            let program = loaded.program();
            for (vport, tunnel) in program.tunnels() {
                let carrier = self.networks.get(&tunnel.over).filter(|carrier| on_card(carrier));
                let Some(pair) = carrier.and_then(|over| {
                    let near = self.near.get(&(tunnel.over, tunnel.local)).copied().unwrap_or(0);
                    pair((program, loaded.place.net), vport, tunnel, (over.program(), over.place.net, near))
                }) else {
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
        if self.tunnels_in_software || self.device.get_mut().description().tunnel_rows == 0 {
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
            let row = u32::from(loaded.place.net) * TUNNEL_COUNTED_ROWS + row;
            Ok::<_, CardError>(device.read_row::<TunnelCountRow>(row)?.value)
        };
        Ok(Some(TunnelCounts { left: read(0)?, entered: read(1)?, full: read(2)?, lost: read(3)? }))
    }
}
