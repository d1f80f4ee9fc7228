//! A RIB of either family, for those who hold RIBs of many networks.
//!
//! Flow: [`Event`]s → **[`AnyRib`]** → [`AnyUpdate`]s. Each call is dispatched to the RIB of the network's family once;
//! lists of routes stay in the family's own form ([`Changes`], [`Entries`]).

use std::net::IpAddr;

use hue_planes::Adjacency;
use hue_substrate::Entries;
use hue_tables::{AnyPrefix, Change, Key, NextHop};
use hue_wire::Mac;

use super::{Counts, Family, Rib, RibPort, RibUpdate, RouteRow};
use crate::event::Event;

/// A routing information base of IPv4 or IPv6.
pub enum AnyRib {
    /// IPv4.
    V4(Rib<u32>),
    /// IPv6.
    V6(Rib<u128>),
}

/// Does `$work` with the RIB of either family as `$rib`.
macro_rules! with_rib {
    ($any:expr, $rib:ident => $work:expr) => {
        match $any {
            AnyRib::V4($rib) => $work,
            AnyRib::V6($rib) => $work,
        }
    };
}

/// Changes of routes, as of [`RibUpdate::routes`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Changes {
    /// IPv4.
    V4(Vec<Change<u32>>),
    /// IPv6.
    V6(Vec<Change<u128>>),
}

/// Does `$work` with the changes of either family as `$changes`.
#[macro_export]
macro_rules! with_changes {
    ($any:expr, $changes:ident => $work:expr) => {
        match $any {
            $crate::Changes::V4($changes) => $work,
            $crate::Changes::V6($changes) => $work,
        }
    };
}

/// As [`RibUpdate`].
#[derive(Clone, PartialEq, Debug)]
pub struct AnyUpdate {
    /// See [`RibUpdate::complete`].
    pub complete: bool,
    /// See [`RibUpdate::hops`].
    pub hops: Vec<(u16, Adjacency)>,
    /// See [`RibUpdate::routes`].
    pub routes: Changes,
    /// See [`RibUpdate::neighbours`].
    pub neighbours: Option<Vec<(u16, IpAddr, Mac)>>,
    /// See [`RibUpdate::addresses`].
    pub addresses: Option<Vec<(u16, IpAddr, u8)>>,
}

impl<K: Family> From<RibUpdate<K>> for AnyUpdate
where
    Changes: From<Vec<Change<K>>>,
{
    fn from(update: RibUpdate<K>) -> Self {
        let RibUpdate { complete, hops, routes, neighbours, addresses } = update;
        let neighbour = |(vport, address, mac): (u16, K::Addr, Mac)| (vport, address.into(), mac);
        let address = |(vport, address, len): (u16, K::Addr, u8)| (vport, address.into(), len);
        Self {
            complete,
            hops,
            routes: routes.into(),
            neighbours: neighbours.map(|list| list.into_iter().map(neighbour).collect()),
            addresses: addresses.map(|list| list.into_iter().map(address).collect()),
        }
    }
}

impl AnyRib {
    /// An empty RIB with these virtual ports, for a network whose keys have this many bits (32 or 128).
    #[must_use]
    pub fn new(key_bits: u32, ports: Vec<RibPort>) -> Self {
        if key_bits == u32::BITS { Self::V4(Rib::new(ports)) } else { Self::V6(Rib::new(ports)) }
    }

    /// Width of the keys, bits.
    #[must_use]
    pub const fn key_bits(&self) -> u32 {
        match self {
            Self::V4(_) => u32::BITS,
            Self::V6(_) => u128::BITS,
        }
    }

    /// See [`Rib::set_ports`].
    pub fn set_ports(&mut self, ports: Vec<RibPort>) {
        with_rib!(self, rib => rib.set_ports(ports));
    }

    /// See [`Rib::ports`].
    #[must_use]
    pub fn ports(&self) -> &[RibPort] {
        with_rib!(self, rib => rib.ports())
    }

    /// See [`Rib::is_synchronized`].
    #[must_use]
    pub const fn is_synchronized(&self) -> bool {
        with_rib!(self, rib => rib.is_synchronized())
    }

    /// See [`Rib::take_resync_needed`].
    pub const fn take_resync_needed(&mut self) -> bool {
        with_rib!(self, rib => rib.take_resync_needed())
    }

    /// See [`Rib::apply`].
    pub fn apply(&mut self, event: Event) {
        with_rib!(self, rib => rib.apply(event));
    }

    /// See [`Rib::apply_all`].
    pub fn apply_all(&mut self, events: impl IntoIterator<Item = Event>) {
        with_rib!(self, rib => rib.apply_all(events));
    }

    /// See [`Rib::take_update`].
    pub fn take_update(&mut self) -> Option<AnyUpdate> {
        with_rib!(self, rib => rib.take_update().map(Into::into))
    }

    /// See [`Rib::published`].
    #[must_use]
    pub fn published(&self) -> (Vec<Adjacency>, Entries) {
        with_rib!(self, rib => {
            let (rows, routes) = rib.published();
            (rows, routes.into())
        })
    }

    /// See [`Rib::published_rows`].
    #[must_use]
    pub fn published_rows(&self) -> Vec<Adjacency> {
        with_rib!(self, rib => rib.published_rows())
    }

    /// The published rows of these prefixes, as changes that set them; those of the other family are left out.
    #[must_use]
    pub fn published_changes(&self, prefixes: &[AnyPrefix]) -> Changes {
        fn of<K: Family>(rib: &Rib<K>, prefixes: &[AnyPrefix]) -> Vec<Change<K>> {
            let prefixes = prefixes.iter().filter_map(|prefix| prefix.of());
            prefixes.map(|prefix| (prefix, rib.published_hop(prefix))).collect()
        }
        with_rib!(self, rib => of(rib, prefixes).into())
    }

    /// At most `count` routes after `after`; see [`Rib::routes`].
    #[must_use]
    pub fn routes(&self, after: Option<AnyPrefix>, count: usize) -> Vec<RouteRow> {
        with_rib!(self, rib => {
            let after = after.and_then(AnyPrefix::of);
            rib.routes(after).take(count).collect()
        })
    }

    /// The routes that contain an address, the longest last.
    #[must_use]
    pub fn routes_holding(&self, address: IpAddr) -> Vec<RouteRow> {
        fn of<K: Family>(rib: &Rib<K>, address: IpAddr) -> Vec<RouteRow> {
            let Some(key) = K::from_ip(address) else { return Vec::new() };
            let prefix = |len| hue_tables::Prefix::containing(key, len);
            (0..=K::BITS).filter_map(|len| rib.route(prefix(len))).collect()
        }
        with_rib!(self, rib => of(rib, address))
    }

    /// See [`Rib::neighbours`].
    #[must_use]
    pub fn neighbours(&self) -> Vec<(u16, IpAddr, Mac)> {
        with_rib!(self, rib => rib.neighbours().map(|(vport, address, mac)| (vport, address.into(), mac)).collect())
    }

    /// See [`Rib::addresses`].
    #[must_use]
    pub fn addresses(&self) -> Vec<(u16, IpAddr, u8)> {
        with_rib!(self, rib => rib.addresses().map(|(vport, address, len)| (vport, address.into(), len)).collect())
    }

    /// See [`Rib::unresolved`].
    #[must_use]
    pub fn unresolved(&self) -> Vec<(u16, IpAddr)> {
        with_rib!(self, rib => rib.unresolved().into_iter().map(|(vport, address)| (vport, address.into())).collect())
    }

    /// See [`Rib::counts`].
    #[must_use]
    pub fn counts(&self) -> Counts {
        with_rib!(self, rib => rib.counts())
    }
}

impl From<Vec<Change<u32>>> for Changes {
    fn from(changes: Vec<Change<u32>>) -> Self {
        Self::V4(changes)
    }
}

impl From<Vec<Change<u128>>> for Changes {
    fn from(changes: Vec<Change<u128>>) -> Self {
        Self::V6(changes)
    }
}

impl Changes {
    /// Changes that set all of these routes; entries that are no routes need none.
    #[must_use]
    pub fn setting(entries: Entries) -> Self {
        fn of<K: Key>(routes: Vec<(hue_tables::Prefix<K>, NextHop)>) -> Vec<Change<K>> {
            routes.into_iter().map(|(prefix, hop)| (prefix, Some(hop))).collect()
        }
        match entries {
            Entries::Lpm32(routes) => of(routes).into(),
            Entries::Lpm128(routes) => of(routes).into(),
            Entries::Exact(_) => Self::V4(Vec::new()),
        }
    }

    /// Changes that withdraw all routes that these set.
    #[must_use]
    pub fn withdrawn(mut self) -> Self {
        with_changes!(&mut self, changes => changes.iter_mut().for_each(|(_, hop)| *hop = None));
        self
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        with_changes!(self, changes => changes.len())
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Some of them; none if the range does not exist.
    #[must_use]
    pub fn slice(&self, range: std::ops::Range<usize>) -> Self {
        with_changes!(self, changes => changes.get(range).unwrap_or_default().to_vec().into())
    }

    /// The changes of IPv4 routes; of IPv6 there are none.
    #[must_use]
    pub fn v4(&self) -> &[Change<u32>] {
        match self {
            Self::V4(changes) => changes,
            Self::V6(_) => &[],
        }
    }

    /// Visits each prefix and its next hop.
    pub fn for_each(&mut self, mut visit: impl FnMut(AnyPrefix, &mut Option<NextHop>)) {
        with_changes!(self, changes => {
            changes.iter_mut().for_each(|(prefix, hop)| visit((*prefix).into(), hop));
        });
    }
}
