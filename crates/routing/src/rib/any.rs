//! The RIB of a network, whatever its address families, for those who hold RIBs of many networks.
//!
//! Flow: [`Event`]s → **[`AnyRib`]** → [`AnyUpdate`]s. Each call is dispatched to the RIB of the network's family, or to
//! those of both families; lists of routes stay in the family's own form ([`Changes`], [`Entries`]).
//!
//! A network of both families has one table of next hops. Its RIBs number their rows independently, so IPv4's row *n* is row
//! 2 *n* of the table, and IPv6's row *n* is row 2 *n* + 1. Each family can then use half of the rows.

use std::collections::HashSet;
use std::net::IpAddr;

use hue_planes::group::{GROUPS_MAX, Slots};
use hue_planes::splice::SLICES;
use hue_planes::{Adjacency, Keys};
use hue_substrate::{Changes, Entries};
use hue_tables::{AnyPrefix, Change, Key, NextHop, Prefix, RowsByLength};
use hue_wire::Mac;

use super::slices::Slices as SliceRibs;
use super::{Counts, Family, Rib, RibPort, RibUpdate, RouteRow};
use crate::event::Event;

/// A routing information base of IPv4, IPv6 or both.
pub struct AnyRib {
    families: Families,
    /// Whether rows are numbered by the lengths of routes ([`RowsByLength`]), of a network of one family.
    by_length: bool,
}

/// The RIBs of the network's families.
enum Families {
    V4(Rib<u32>),
    V6(Rib<u128>),
    Dual(Box<(Rib<u32>, Rib<u128>)>),
    Slices(Box<SliceRibs>),
}

/// Does `$work` with each RIB as `$rib`, and makes one result of two by `$join`.
macro_rules! each_rib {
    ($any:expr, $rib:ident => $work:expr, $join:expr) => {
        match $any {
            Families::V4($rib) => $work,
            Families::V6($rib) => $work,
            Families::Dual(both) => {
                let first = {
                    let $rib = &both.0;
                    $work
                };
                let $rib = &both.1;
                let join = $join;
                join(first, $work)
            }
            Families::Slices(slices) => {
                let first = {
                    let $rib = &slices.first;
                    $work
                };
                let join = $join;
                slices.rest.iter().fold(first, |all, $rib| join(all, $work))
            }
        }
    };
}

/// The same, to change the RIBs.
macro_rules! each_rib_mut {
    ($any:expr, $rib:ident => $work:expr) => {
        match $any {
            Families::V4($rib) => $work,
            Families::V6($rib) => $work,
            Families::Dual(both) => {
                {
                    let $rib = &mut both.0;
                    $work;
                }
                let $rib = &mut both.1;
                $work
            }
            Families::Slices(slices) => slices.each_mut().for_each(|(_, $rib)| $work),
        }
    };
}

/// As [`RibUpdate`].
#[derive(Clone, PartialEq, Debug)]
pub struct AnyUpdate {
    /// See [`RibUpdate::complete`]; of two families, that of either.
    pub complete: bool,
    /// See [`RibUpdate::hops`].
    pub hops: Vec<(NextHop, Adjacency)>,
    /// See [`RibUpdate::groups`].
    pub groups: Vec<(NextHop, Slots)>,
    /// See [`RibUpdate::routes`].
    pub routes: Changes,
    /// See [`RibUpdate::neighbours`].
    pub neighbours: Option<Vec<(u16, IpAddr, Mac)>>,
    /// See [`RibUpdate::addresses`].
    pub addresses: Option<Vec<(u16, IpAddr, u8)>>,
}

/// Rows of a family that shares the table of next hops with the other one.
#[derive(Clone, Copy)]
struct Half(u16);

impl Half {
    const V4: Self = Self(0);
    const V6: Self = Self(1);
    /// How many rows a family has.
    const ROWS_MAX: usize = NextHop::MAX as usize / 2;
    /// How many groups a family has.
    const GROUPS_MAX: usize = GROUPS_MAX / 2;

    /// The row of the table, given the family's own.
    const fn row(self, own: u16) -> u16 {
        2 * own + self.0
    }

    fn hop(self, own: NextHop) -> Option<NextHop> {
        NextHop::new(self.row(own.get()))
    }

    fn route_row(self, row: RouteRow) -> RouteRow {
        RouteRow { hop: self.hop(row.hop).unwrap_or(row.hop), ..row }
    }

    fn update<K: Family>(self, update: RibUpdate<K>) -> RibUpdate<K> {
        let hops = update.hops.into_iter().filter_map(|(own, hop)| Some((self.hop(own)?, hop))).collect();
        let groups = self.groups(update.groups);
        RibUpdate { hops, groups, routes: self.changes(update.routes), ..update }
    }

    fn groups(self, groups: Vec<(NextHop, Slots)>) -> Vec<(NextHop, Slots)> {
        let renumbered =
            |(own, slots): (NextHop, Slots)| Some((self.hop(own)?, slots.renumbered(|own| self.hop(own))?));
        groups.into_iter().filter_map(renumbered).collect()
    }

    fn changes<K: Key>(self, changes: Vec<Change<K>>) -> Vec<Change<K>> {
        changes.into_iter().map(|(prefix, hop)| (prefix, hop.and_then(|own| self.hop(own)))).collect()
    }

    fn routes<K: Key>(self, routes: Vec<(Prefix<K>, NextHop)>) -> Vec<(Prefix<K>, NextHop)> {
        routes.into_iter().filter_map(|(prefix, own)| Some((prefix, self.hop(own)?))).collect()
    }
}

/// A family's own rows, numbered by the lengths of routes or not.
#[derive(Clone, Copy)]
struct Numbering(bool);

impl Numbering {
    fn hop<K: Key>(self, own: NextHop, len: u8) -> Option<NextHop> {
        if self.0 { RowsByLength::<K>::row(own.get(), len) } else { Some(own) }
    }

    fn update<K: Family>(self, update: RibUpdate<K>) -> RibUpdate<K> {
        if !self.0 {
            return update;
        }
        let each = |(own, hop): (NextHop, Adjacency)| {
            (0..=K::BITS).filter_map(move |len| Some((self.hop::<K>(own, len)?, hop)))
        };
        let hops = update.hops.into_iter().flat_map(each).collect();
        let groups = self.groups::<K>(update.groups);
        RibUpdate { hops, groups, routes: self.changes(update.routes), ..update }
    }

    /// How many groups a network with rows by length has of its own.
    const fn groups_max<K: Key>() -> usize {
        GROUPS_MAX / RowsByLength::<K>::EACH as usize
    }

    fn groups<K: Key>(self, groups: Vec<(NextHop, Slots)>) -> Vec<(NextHop, Slots)> {
        if !self.0 {
            return groups;
        }
        let each = |(own, slots): (NextHop, Slots)| {
            (0..=K::BITS).filter_map(move |len| {
                let row = |own| RowsByLength::<K>::row(own, len);
                Some((row(own.get())?, slots.renumbered(|member| row(member.get()))?))
            })
        };
        groups.into_iter().flat_map(each).collect()
    }

    fn changes<K: Key>(self, mut changes: Vec<Change<K>>) -> Vec<Change<K>> {
        for (prefix, hop) in &mut changes {
            *hop = hop.and_then(|own| self.hop::<K>(own, prefix.len()));
        }
        changes
    }

    fn routes<K: Key>(self, mut routes: Vec<(Prefix<K>, NextHop)>) -> Vec<(Prefix<K>, NextHop)> {
        for (prefix, hop) in &mut routes {
            *hop = self.hop::<K>(*hop, prefix.len()).unwrap_or(*hop);
        }
        routes
    }

    fn rows<K: Key>(self, rows: Vec<Adjacency>) -> Vec<Adjacency> {
        let each = if self.0 { usize::from(RowsByLength::<K>::EACH) } else { 1 };
        rows.into_iter().flat_map(|row| std::iter::repeat_n(row, each)).collect()
    }

    fn listed<K: Key>(self, mut rows: Vec<RouteRow>) -> Vec<RouteRow> {
        for row in &mut rows {
            row.hop = self.hop::<K>(row.hop, row.prefix.len()).unwrap_or(row.hop);
        }
        rows
    }
}

/// Both families' rows as one table. Rows that only one of them has yet do nothing in the other.
fn interleaved(v4: Vec<Adjacency>, v6: Vec<Adjacency>) -> Vec<Adjacency> {
    let filled = |rows: Vec<Adjacency>| rows.into_iter().chain(std::iter::repeat(Adjacency::local()));
    let count = v4.len().max(v6.len());
    filled(v4).zip(filled(v6)).take(count).flat_map(|(one, other)| [one, other]).collect()
}

fn joined<T>(mut first: Vec<T>, second: Vec<T>) -> Vec<T> {
    first.extend(second);
    first
}

impl<K: Family> From<RibUpdate<K>> for AnyUpdate
where
    Changes: From<Vec<Change<K>>>,
{
    fn from(update: RibUpdate<K>) -> Self {
        let RibUpdate { complete, hops, groups, routes, neighbours, addresses } = update;
        let neighbour = |(vport, address, mac): (u16, K::Addr, Mac)| (vport, address.into(), mac);
        let address = |(vport, address, len): (u16, K::Addr, u8)| (vport, address.into(), len);
        Self {
            complete,
            hops,
            groups,
            routes: routes.into(),
            neighbours: neighbours.map(|list| list.into_iter().map(neighbour).collect()),
            addresses: addresses.map(|list| list.into_iter().map(address).collect()),
        }
    }
}

impl AnyRib {
    /// An empty RIB with these virtual ports, for a network whose tables have these keys.
    #[must_use]
    pub fn new(keys: Keys, ports: Vec<RibPort>) -> Self {
        let families = match keys {
            Keys::V4 => Families::V4(Rib::new(ports)),
            // Of a network without routes, only drift is monitored.
            Keys::V6 | Keys::Mac | Keys::Bits | Keys::Label | Keys::None => Families::V6(Rib::new(ports)),
            Keys::Dual => Families::Dual(Box::new((
                Rib::with_rows(ports.clone(), Half::ROWS_MAX, Half::GROUPS_MAX),
                Rib::with_rows(ports, Half::ROWS_MAX, Half::GROUPS_MAX),
            ))),
            Keys::Slices => return Self::sliced(SLICES.default, ports),
        };
        Self { families, by_length: false }
    }

    /// The same for a network with this many slices.
    #[must_use]
    pub fn sliced(count: u8, ports: Vec<RibPort>) -> Self {
        Self { families: Families::Slices(Box::new(SliceRibs::new(count, &ports))), by_length: false }
    }

    /// The same for a network whose routes depend on sources: the length of a route follows from its row
    /// ([`RowsByLength`]). Such a network has one family; one of both is as with [`AnyRib::new`].
    #[must_use]
    pub fn by_length(keys: Keys, ports: Vec<RibPort>) -> Self {
        let families = match keys {
            Keys::V4 => Families::V4(Rib::with_rows(
                ports,
                RowsByLength::<u32>::ROWS_MAX,
                Numbering::groups_max::<u32>(),
            )),
            Keys::V6 => Families::V6(Rib::with_rows(
                ports,
                RowsByLength::<u128>::ROWS_MAX,
                Numbering::groups_max::<u128>(),
            )),
            Keys::Dual | Keys::Slices | Keys::Mac | Keys::Bits | Keys::Label | Keys::None => {
                return Self::new(keys, ports);
            }
        };
        Self { families, by_length: true }
    }

    const fn numbering(&self) -> Numbering {
        Numbering(self.by_length)
    }

    /// Which of these gateways are on a link but have no known MAC address: index of the port, and address.
    #[must_use]
    pub fn unresolved_of(&self, gateways: &[IpAddr]) -> Vec<(u16, IpAddr)> {
        fn of<K: Family>(rib: &Rib<K>, gateways: &[IpAddr]) -> Vec<(u16, IpAddr)> {
            let unresolved = |gateway: &IpAddr| Some((rib.unresolved_at(K::from_ip(*gateway)?)?, *gateway));
            gateways.iter().filter_map(unresolved).collect()
        }
        match &self.families {
            Families::V4(rib) => of(rib, gateways),
            Families::V6(rib) => of(rib, gateways),
            Families::Dual(both) => joined(of(&both.0, gateways), of(&both.1, gateways)),
            Families::Slices(slices) => of(&slices.first, gateways),
        }
    }

    /// See [`Rib::set_ports`].
    pub fn set_ports(&mut self, ports: Vec<RibPort>) {
        each_rib_mut!(&mut self.families, rib => rib.set_ports(ports.clone()));
    }

    /// See [`Rib::ports`].
    #[must_use]
    pub fn ports(&self) -> &[RibPort] {
        each_rib!(&self.families, rib => rib.ports(), |first, _| first)
    }

    /// See [`Rib::is_synchronized`].
    #[must_use]
    pub fn is_synchronized(&self) -> bool {
        each_rib!(&self.families, rib => rib.is_synchronized(), |one, other| one && other)
    }

    /// See [`Rib::take_resync_needed`].
    pub fn take_resync_needed(&mut self) -> bool {
        let mut needed = false;
        each_rib_mut!(&mut self.families, rib => needed |= rib.take_resync_needed());
        needed
    }

    /// See [`Rib::apply`].
    pub fn apply(&mut self, event: Event) {
        match &mut self.families {
            Families::V4(rib) => rib.apply(event),
            Families::V6(rib) => rib.apply(event),
            Families::Dual(both) => {
                let (v4, v6) = &mut **both;
                match event.is_ipv4() {
                    Some(true) => v4.apply(event),
                    Some(false) => v6.apply(event),
                    None => {
                        v4.apply(event.clone());
                        v6.apply(event);
                    }
                }
            }
            Families::Slices(slices) => slices.apply(event),
        }
    }

    /// See [`Rib::apply_all`].
    pub fn apply_all(&mut self, events: impl IntoIterator<Item = Event>) {
        events.into_iter().for_each(|event| self.apply(event));
    }

    /// See [`Rib::take_update`].
    pub fn take_update(&mut self) -> Option<AnyUpdate> {
        let numbering = self.numbering();
        let both = match &mut self.families {
            Families::V4(rib) => return rib.take_update().map(|update| numbering.update(update).into()),
            Families::V6(rib) => return rib.take_update().map(|update| numbering.update(update).into()),
            Families::Slices(slices) => return slices.take_update(),
            Families::Dual(both) => both,
        };
        let (v4, v6) = &mut **both;
        if !v4.is_synchronized() || !v6.is_synchronized() {
            return None;
        }
        let updates = (v4.take_update(), v6.take_update());
        if let (None, None) = updates {
            return None;
        }
        let first: AnyUpdate = Half::V4.update(updates.0.unwrap_or_default()).into();
        let second: AnyUpdate = Half::V6.update(updates.1.unwrap_or_default()).into();
        // These lists are complete, so that of one family needs that of the other.
        let neighbours = first.neighbours.is_some() || second.neighbours.is_some();
        let addresses = first.addresses.is_some() || second.addresses.is_some();
        Some(AnyUpdate {
            complete: first.complete || second.complete,
            hops: joined(first.hops, second.hops),
            groups: joined(first.groups, second.groups),
            routes: Changes { v4: first.routes.v4, v6: second.routes.v6 },
            neighbours: neighbours.then(|| self.neighbours()),
            addresses: addresses.then(|| self.addresses()),
        })
    }

    /// See [`Rib::published`].
    #[must_use]
    pub fn published(&self) -> (Vec<Adjacency>, Entries) {
        let numbering = self.numbering();
        match &self.families {
            Families::V4(rib) => {
                let (rows, routes) = rib.published();
                (numbering.rows::<u32>(rows), numbering.routes(routes).into())
            }
            Families::V6(rib) => {
                let (rows, routes) = rib.published();
                (numbering.rows::<u128>(rows), numbering.routes(routes).into())
            }
            Families::Dual(both) => {
                let ((rows4, routes4), (rows6, routes6)) = (both.0.published(), both.1.published());
                let entries = Entries::Dual(Half::V4.routes(routes4), Half::V6.routes(routes6));
                (interleaved(rows4, rows6), entries)
            }
            Families::Slices(slices) => slices.published(),
        }
    }

    /// See [`Rib::published_groups`].
    #[must_use]
    pub fn published_groups(&self) -> Vec<(NextHop, Slots)> {
        let numbering = self.numbering();
        match &self.families {
            Families::V4(rib) => numbering.groups::<u32>(rib.published_groups()),
            Families::V6(rib) => numbering.groups::<u128>(rib.published_groups()),
            Families::Dual(both) => {
                joined(Half::V4.groups(both.0.published_groups()), Half::V6.groups(both.1.published_groups()))
            }
            Families::Slices(slices) => slices.published_groups(),
        }
    }

    /// See [`Rib::published_rows`].
    #[must_use]
    pub fn published_rows(&self) -> Vec<Adjacency> {
        let numbering = self.numbering();
        match &self.families {
            Families::V4(rib) => numbering.rows::<u32>(rib.published_rows()),
            Families::V6(rib) => numbering.rows::<u128>(rib.published_rows()),
            Families::Dual(both) => interleaved(both.0.published_rows(), both.1.published_rows()),
            Families::Slices(slices) => slices.rows(),
        }
    }

    /// The published rows of these prefixes, as changes that set them; those of a family that the network does not have are
    /// left out.
    #[must_use]
    pub fn published_changes(&self, prefixes: &[AnyPrefix]) -> Changes {
        fn of<K: Family>(rib: &Rib<K>, prefixes: &[AnyPrefix]) -> Vec<Change<K>> {
            let prefixes = prefixes.iter().filter_map(|prefix| prefix.of());
            prefixes.map(|prefix| (prefix, rib.published_hop(prefix))).collect()
        }
        match &self.families {
            Families::V4(rib) => self.numbering().changes(of(rib, prefixes)).into(),
            Families::V6(rib) => self.numbering().changes(of(rib, prefixes)).into(),
            Families::Dual(both) => Changes {
                v4: Half::V4.changes(of(&both.0, prefixes)),
                v6: Half::V6.changes(of(&both.1, prefixes)),
            },
            Families::Slices(slices) => slices.published_changes(prefixes),
        }
    }

    /// At most `count` routes after `after`, those of IPv4 first; see [`Rib::routes`].
    #[must_use]
    pub fn routes(&self, after: Option<AnyPrefix>, count: usize) -> Vec<RouteRow> {
        fn of<K: Family>(rib: &Rib<K>, after: Option<AnyPrefix>, count: usize) -> Vec<RouteRow> {
            rib.routes(after.and_then(AnyPrefix::of)).take(count).collect()
        }
        let both = match &self.families {
            Families::V4(rib) => return self.numbering().listed::<u32>(of(rib, after, count)),
            Families::V6(rib) => return self.numbering().listed::<u128>(of(rib, after, count)),
            Families::Slices(slices) => return slices.routes(after, count),
            Families::Dual(both) => both,
        };
        let is_past_ipv4 = after.is_some_and(|after| after.addr().is_ipv6());
        let first = if is_past_ipv4 { Vec::new() } else { of(&both.0, after, count) };
        let second = of(&both.1, after, count - first.len());
        let rows = first.into_iter().map(|row| Half::V4.route_row(row));
        rows.chain(second.into_iter().map(|row| Half::V6.route_row(row))).collect()
    }

    /// The routes that contain an address, the longest last.
    #[must_use]
    pub fn routes_holding(&self, address: IpAddr) -> Vec<RouteRow> {
        fn of<K: Family>(rib: &Rib<K>, address: IpAddr) -> Vec<RouteRow> {
            let Some(key) = K::from_ip(address) else { return Vec::new() };
            let prefix = |len| Prefix::containing(key, len);
            (0..=K::BITS).filter_map(|len| rib.route(prefix(len))).collect()
        }
        match &self.families {
            Families::V4(rib) => self.numbering().listed::<u32>(of(rib, address)),
            Families::V6(rib) => self.numbering().listed::<u128>(of(rib, address)),
            Families::Dual(both) => {
                let v4 = of(&both.0, address).into_iter().map(|row| Half::V4.route_row(row));
                v4.chain(of(&both.1, address).into_iter().map(|row| Half::V6.route_row(row))).collect()
            }
            Families::Slices(slices) => slices.routes_holding(address),
        }
    }

    /// See [`Rib::neighbours`].
    #[must_use]
    pub fn neighbours(&self) -> Vec<(u16, IpAddr, Mac)> {
        fn of<K: Family>(rib: &Rib<K>) -> Vec<(u16, IpAddr, Mac)> {
            rib.neighbours().map(|(vport, address, mac)| (vport, address.into(), mac)).collect()
        }
        match &self.families {
            Families::Slices(slices) => of(&slices.first),
            families => each_rib!(families, rib => of(rib), joined),
        }
    }

    /// See [`Rib::addresses`].
    #[must_use]
    pub fn addresses(&self) -> Vec<(u16, IpAddr, u8)> {
        fn of<K: Family>(rib: &Rib<K>) -> Vec<(u16, IpAddr, u8)> {
            rib.addresses().map(|(vport, address, len)| (vport, address.into(), len)).collect()
        }
        match &self.families {
            Families::Slices(slices) => of(&slices.first),
            families => each_rib!(families, rib => of(rib), joined),
        }
    }

    /// See [`Rib::unresolved`].
    #[must_use]
    pub fn unresolved(&self) -> Vec<(u16, IpAddr)> {
        let mut all: Vec<(u16, IpAddr)> = each_rib!(&self.families, rib => {
            rib.unresolved().into_iter().map(|(vport, address)| (vport, address.into())).collect()
        }, joined);
        // Slices may lead to the same gateway.
        let mut seen = HashSet::new();
        all.retain(|one| seen.insert(*one));
        all
    }

    /// See [`Rib::counts`]; sums over the families.
    #[must_use]
    pub fn counts(&self) -> Counts {
        if let Families::Slices(slices) = &self.families {
            return slices.counts();
        }
        each_rib!(&self.families, rib => rib.counts(), |one: Counts, other: Counts| one + other)
    }

    /// How often tables have each row of [`Self::counts`], and each slot: once, or once for each length of prefixes.
    #[must_use]
    pub fn rows_of_each(&self) -> usize {
        match &self.families {
            Families::V4(_) if self.by_length => usize::from(RowsByLength::<u32>::EACH),
            Families::V6(_) if self.by_length => usize::from(RowsByLength::<u128>::EACH),
            _ => 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use hue_demux::PortId;
    use hue_host::netlink::{Link, Neighbour, NextHop as Way, Route, RouteKind, Scope, neighbour_state};
    use proptest::prelude::*;

    use super::super::samples::ports;
    use super::*;
    use crate::event::Change as How;

    /// A destination and a gateway of a family, by numbers.
    fn addresses(v6: bool, to: u8, via: u8) -> (AnyPrefix, IpAddr) {
        let (to, via) = if v6 {
            (format!("2001:db8:{to:x}::/48"), format!("2001:db8::{via:x}"))
        } else {
            (format!("10.{to}.0.0/16"), format!("10.0.0.{via}"))
        };
        (to.parse().unwrap(), via.parse().unwrap())
    }

    fn route(how: How, v6: bool, to: u8, via: u8) -> Event {
        let (prefix, via) = addresses(v6, to, via);
        let route = Route {
            prefix,
            source: None,
            object: 0,
            table: 254,
            tos: 0,
            metric: 0,
            protocol: 0,
            scope: Scope::Universe,
            kind: RouteKind::Unicast,
            hops: vec![Way { link: 2, via: Some(via), weight: 1, dead: false, onlink: false }],
            cloned: false,
        };
        Event::Route(how, route)
    }

    fn neighbour(how: How, v6: bool, number: u8) -> Event {
        let (_, address) = addresses(v6, 1, number);
        let mac = Some(Mac([2, 1, 0, 0, u8::from(v6), number]));
        let state = neighbour_state::REACHABLE;
        Event::Neighbour(how, Neighbour { link: 2, address, mac, state, flags: 0, protocol: 0 })
    }

    fn event() -> impl Strategy<Value = Event> {
        let how = || prop_oneof![3 => Just(How::Added), 1 => Just(How::Removed)];
        prop_oneof![
            (how(), any::<bool>(), 1..6u8, 1..5u8).prop_map(|(how, v6, to, via)| route(how, v6, to, via)),
            (how(), any::<bool>(), 1..5u8).prop_map(|(how, v6, number)| neighbour(how, v6, number)),
        ]
    }

    fn listed() -> [Event; 3] {
        let link =
            Link { index: 2, name: "v0".to_owned(), mtu: 1500, up: true, carrier: true, ..Link::default() };
        [Event::Begin, Event::Link(How::Listed, Box::new(link)), Event::End]
    }

    /// What the routes of a published table do.
    fn actions((rows, entries): (Vec<Adjacency>, Entries)) -> BTreeMap<AnyPrefix, Adjacency> {
        let mut all = BTreeMap::new();
        hue_substrate::each_routes!(entries, routes => {
            all.extend(routes.into_iter().map(|(prefix, hop)| (prefix.into(), rows[usize::from(hop.get())])));
        });
        all
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

        /// The RIB of both families publishes what those of each family publish, all at once and step by step.
        #[test]
        fn both_families_are_the_sum_of_each(steps in prop::collection::vec(prop::collection::vec(event(), 0..6), 1..8)) {
            let mut ribs = [Keys::Dual, Keys::V4, Keys::V6].map(|keys| AnyRib::new(keys, ports()));
            ribs.iter_mut().for_each(|rib| rib.apply_all(listed()));
            let (mut rows, mut table) = (Vec::new(), BTreeMap::new());
            for events in steps {
                for rib in &mut ribs {
                    rib.apply_all(events.clone());
                }
                if let Some(mut update) = ribs[0].take_update() {
                    for (row, hop) in update.hops {
                        let row = usize::from(row.get());
                        rows.resize(rows.len().max(row + 1), Adjacency::NONE);
                        rows[row] = hop;
                    }
                    let mut seen = 0;
                    update.routes.for_each(|prefix, hop| {
                        seen += 1;
                        match *hop {
                            Some(hop) => table.insert(prefix, hop),
                            None => table.remove(&prefix),
                        };
                    });
                    prop_assert_eq!(seen, update.routes.len());
                    if let Some(neighbours) = update.neighbours {
                        prop_assert_eq!(neighbours, ribs[0].neighbours());
                    }
                }
                let [_, four, six] = &mut ribs;
                let _ = (four.take_update(), six.take_update());
                let [both, four, six] = &ribs;
                let mut expected = actions(four.published());
                expected.extend(actions(six.published()));
                prop_assert_eq!(&actions(both.published()), &expected, "as a whole");
                let stepwise: BTreeMap<_, _> =
                    table.iter().map(|(prefix, hop): (&AnyPrefix, &NextHop)| (*prefix, rows[usize::from(hop.get())])).collect();
                prop_assert_eq!(&stepwise, &expected, "step by step");
                prop_assert_eq!(both.counts().routes, four.counts().routes + six.counts().routes);
                // Lists name the row of the table, page by page.
                let (mut pages, mut after) = (Vec::new(), None);
                while let Some(last) = { let page = both.routes(after, 3); pages.extend(page.clone()); page.last().map(|row| row.prefix) } {
                    after = Some(last);
                }
                prop_assert_eq!(pages.iter().map(|row| (row.prefix, row.hop)).collect::<BTreeMap<_, _>>(), table.clone());
                prop_assert_eq!(pages.len(), table.len());
                let prefixes: Vec<AnyPrefix> = table.keys().copied().collect();
                let mut again = both.published_changes(&prefixes);
                let mut set = BTreeMap::new();
                again.for_each(|prefix, hop| _ = hop.map(|hop| set.insert(prefix, hop)));
                prop_assert_eq!(set, table.clone());
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

        /// With rows by length, the same routes lead to the same places, step by step and as a whole, and each row says how
        /// long its routes are. Gateways of others are found out.
        #[test]
        fn rows_by_length_change_nothing_else(steps in prop::collection::vec(prop::collection::vec(event(), 0..6), 1..8)) {
            let mut ribs = [AnyRib::new(Keys::V6, ports()), AnyRib::by_length(Keys::V6, ports())];
            ribs.iter_mut().for_each(|rib| rib.apply_all(listed()));
            let (mut rows, mut table) = (Vec::new(), BTreeMap::new());
            for events in steps {
                ribs.iter_mut().for_each(|rib| rib.apply_all(events.clone()));
                ribs[0].take_update();
                if let Some(mut update) = ribs[1].take_update() {
                    for (row, hop) in update.hops {
                        let row = usize::from(row.get());
                        rows.resize(rows.len().max(row + 1), Adjacency::NONE);
                        rows[row] = hop;
                    }
                    update.routes.for_each(|prefix, hop| match *hop {
                        Some(hop) => _ = table.insert(prefix, hop),
                        None => _ = table.remove(&prefix),
                    });
                }
                let expected = actions(ribs[0].published());
                prop_assert_eq!(&actions(ribs[1].published()), &expected, "as a whole");
                prop_assert_eq!(ribs[1].published_rows(), ribs[1].published().0);
                let stepwise: BTreeMap<_, _> =
                    table.iter().map(|(prefix, hop): (&AnyPrefix, &NextHop)| (*prefix, rows[usize::from(hop.get())])).collect();
                prop_assert_eq!(&stepwise, &expected, "step by step");
                for (prefix, hop) in &table {
                    prop_assert_eq!(RowsByLength::<u128>::len(hop.get()), Some(prefix.len()));
                }
                let listed = ribs[1].routes(None, 100).into_iter().map(|row| (row.prefix, row.hop));
                prop_assert_eq!(listed.collect::<BTreeMap<_, _>>(), table.clone());
                // 2001:db8::1 is on no link here, so nobody can find it out.
                prop_assert!(ribs[1].unresolved_of(&["2001:db8::1".parse().unwrap(), "10.0.0.1".parse().unwrap()]).is_empty());
            }
        }
    }

    /// A gateway on a link is found out until its MAC address is known.
    #[test]
    fn gateways_on_links_are_found_out() {
        let gateway: IpAddr = "10.0.0.1".parse().unwrap();
        let mut rib = AnyRib::by_length(Keys::V4, ports());
        rib.apply_all(listed());
        assert_eq!(rib.unresolved_of(&[gateway]), []);
        let Event::Route(how, mut link) = route(How::Added, false, 1, 1) else { panic!() };
        (link.prefix, link.hops[0].via) = ("10.0.0.0/24".parse().unwrap(), None);
        rib.apply(Event::Route(how, link));
        assert_eq!(rib.unresolved_of(&[gateway]), [(0, gateway)]);
        rib.apply(neighbour(How::Added, false, 1));
        assert_eq!(rib.unresolved_of(&[gateway]), []);
    }

    /// A family's groups have rows of that family only, in the update and as a whole.
    #[test]
    fn groups_of_the_families_name_their_own_rows() {
        let mut rib = AnyRib::new(Keys::Dual, ports());
        rib.apply_all(listed());
        for v6 in [false, true] {
            for via in 1..=2 {
                rib.apply(neighbour(How::Added, v6, via));
            }
            let Event::Route(how, mut both) = route(How::Added, v6, 1, 1) else { unreachable!() };
            let (_, second) = addresses(v6, 1, 2);
            both.hops.push(Way { via: Some(second), ..both.hops[0] });
            rib.apply(Event::Route(how, both));
        }
        let update = rib.take_update().unwrap();
        assert_eq!(update.groups, rib.published_groups());
        let (rows, _) = rib.published();
        let mut parities = Vec::new();
        for (row, slots) in &update.groups {
            assert_eq!(rows[usize::from(row.get())], Adjacency::group(0));
            parities.push(row.get() % 2);
            assert_eq!(slots.members().len(), 2);
            for (member, count) in slots.members() {
                assert_eq!(member.get() % 2, row.get() % 2, "a row of the other family");
                assert_eq!(rows[usize::from(member.get())].dst().0[4], (row.get() % 2) as u8);
                assert_eq!(count * 2, slots.len());
            }
        }
        assert_eq!(parities, [0, 1]);
    }

    /// Both families have the same number of rows, and their rows never meet.
    #[test]
    fn rows_of_the_families_differ() {
        let last = Half::ROWS_MAX as u16 - 1;
        assert_eq!([Half::V4.row(0), Half::V6.row(0), Half::V4.row(1)], [0, 1, 2]);
        assert_eq!(
            (Half::V6.row(last), hue_planes::dual::NEXT_HOPS_MAX),
            (NextHop::MAX - 1, 2 * Half::ROWS_MAX)
        );
        let (a, b) = (Adjacency::glean(PortId::new(1)), Adjacency::glean(PortId::new(2)));
        assert_eq!(interleaved(vec![a, a], vec![b]), [a, b, a, Adjacency::local()]);
    }
}
