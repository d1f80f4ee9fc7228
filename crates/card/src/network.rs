//! The driver's state of a network on the card: its place, its current program, its part of the shared tables.

use std::borrow::Cow;
use std::collections::HashMap;

use hue_planes::group::Slots;
use hue_planes::{Adjacency, AdjacencyKind, Settings, l2, splice};
use hue_substrate::{Checked, HopChanges, Program, RouteKey};
use hue_tables::{Change, NextHop, Prefix, Prefix4, Prefix6};

use crate::device::Device;
use crate::error::CardError;
use crate::flat;
use crate::generated::{HopRow, NetworkRow};
use crate::patterns;
use crate::plan::{self, NO_PLANE, Place};
use crate::records::Mark;
use crate::registers::Registers;
use crate::routes::{Held, Roots};
use crate::stations::Learner;
use crate::tunnels::Ways;

/// Index of each prefix in a program's routes, so that the cost of a change does not depend on the number of routes.
/// Only the maps of the program's widths have any.
#[derive(Clone, Default)]
pub struct Positions {
    lpm32: HashMap<Prefix4, usize>,
    lpm128: HashMap<Prefix6, usize>,
}

/// A width of keys that routes on the card can have.
pub trait CardKey: RouteKey {
    /// The positions of prefixes of this width.
    fn at(positions: &Positions) -> &HashMap<Prefix<Self>, usize>;
    /// The same, to change them.
    fn at_mut(positions: &mut Positions) -> &mut HashMap<Prefix<Self>, usize>;
    /// The changes if their keys have 32 bits, or none: tables that networks do not share have no other keys.
    fn of_32_bits(changes: &[Change<Self>]) -> &[Change<u32>];
}

impl CardKey for u32 {
    fn at(positions: &Positions) -> &HashMap<Prefix4, usize> {
        &positions.lpm32
    }

    fn at_mut(positions: &mut Positions) -> &mut HashMap<Prefix4, usize> {
        &mut positions.lpm32
    }

    fn of_32_bits(changes: &[Change<Self>]) -> &[Change<u32>] {
        changes
    }
}

impl CardKey for u128 {
    fn at(positions: &Positions) -> &HashMap<Prefix6, usize> {
        &positions.lpm128
    }

    fn at_mut(positions: &mut Positions) -> &mut HashMap<Prefix6, usize> {
        &mut positions.lpm128
    }

    fn of_32_bits(_: &[Change<Self>]) -> &[Change<u32>] {
        &[]
    }
}

/// The positions of a program's routes of one width.
fn positions<K: CardKey>(program: &Program) -> HashMap<Prefix<K>, usize> {
    K::routes(&program.entries).iter().enumerate().map(|(index, (prefix, _))| (*prefix, index)).collect()
}

/// The driver's state of a network on the card.
#[derive(Clone)]
pub struct Loaded {
    pub place: Place,
    /// Software decides its packets.
    pub software: bool,
    program: Program,
    at: Positions,
    /// Its part of the shared tables.
    pub held: Option<Held>,
    /// What it has learnt, if its kind learns and the card decides its packets, or soon will.
    pub learner: Option<Learner>,
    /// When its routes last changed: earlier records may hold a next hop that no route refers to any more.
    pub changed: Option<Mark>,
    /// When its next hops last grew or moved, if earlier records may still be in the stages. Those records hold a
    /// copy of the network's row that does not cover the new next hops.
    pub grown: Option<Mark>,
    /// Its tunnels that are on the card.
    pub ways: Ways,
}

impl Loaded {
    pub fn new(place: Place, software: bool, program: Program, held: Option<Held>) -> Self {
        let at = Positions { lpm32: positions(&program), lpm128: positions(&program) };
        Self {
            place,
            software,
            program,
            at,
            held,
            learner: None,
            changed: None,
            grown: None,
            ways: Ways::default(),
        }
    }

    /// Its program, with all changes.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// Its row; `roots` are its root items where tables are shared.
    pub fn row(&self, roots: Roots) -> NetworkRow {
        let hop_base = self.held.as_ref().map_or(0, |held| held.hops.start);
        let (carries_ipip, carries_vxlan) = self.ways.carries;
        let row = row(self.place, &self.program, hop_base, roots);
        let policies = !self.software && self.held.as_ref().is_some_and(|held| held.policies.is_some());
        let run = self.held.as_ref().and_then(|held| held.patterns.as_ref());
        let root = run.map_or(row.root, patterns::root);
        NetworkRow { software: self.software, carries_ipip, carries_vxlan, policies, root, ..row }
    }

    /// The row of a next hop. One that leads to a tunnel which is not on the card is one that software resolves.
    pub fn hop(&self, hop: &Adjacency) -> HopRow {
        let mut row = plan::hop(hop);
        let vport = self.program.ports.iter().zip(0u16..).find(|(port, _)| port.port == hop.port());
        let way = vport.and_then(|(_, vport)| self.ways.out.get(&vport));
        if let Some(place) = way.filter(|_| hop.kind() == AdjacencyKind::Forward && hop.port().is_tunnel()) {
            row.kind = AdjacencyKind::Forward as u8;
            row.port = plan::TUNNEL_PORT;
            row.src = u64::from(*place);
        }
        row
    }

    /// What an update is checked against.
    pub fn checked(&self) -> Checked<'_> {
        let Program { name, settings, ports, next_hops, groups, .. } = &self.program;
        Checked { name, settings: *settings, ports, hops: next_hops, groups }
    }

    /// Whether changes of next hops change or add any.
    pub fn differs_in(&self, changes: &HopChanges) -> bool {
        let hops = &self.program.next_hops;
        let differs = |(index, hop): &(NextHop, Adjacency)| hops.get(usize::from(index.get())) != Some(hop);
        changes.rows.iter().any(differs)
            || changes.groups.iter().any(|(row, slots)| self.slots(*row) != Some(slots))
    }

    /// The slots of a row that is a group.
    pub fn slots(&self, row: NextHop) -> Option<&Slots> {
        self.program.groups.iter().find(|(of, _)| *of == row).map(|(_, slots)| slots)
    }

    /// The present next hops in the place of these; those of added rows are left out.
    pub fn former_hops(&self, changes: &HopChanges) -> HopChanges {
        let rows = changes.rows.iter().map(|(row, _)| *row).chain(changes.groups.iter().map(|(row, _)| *row));
        let mut former = HopChanges::default();
        for row in rows {
            match (self.slots(row), self.program.next_hops.get(usize::from(row.get()))) {
                (Some(slots), _) => former.groups.push((row, slots.clone())),
                (None, Some(hop)) => former.rows.push((row, *hop)),
                (None, None) => {}
            }
        }
        former
    }

    /// The changes of routes that take these back.
    pub fn former_routes<K: CardKey>(&self, changes: &[Change<K>]) -> Vec<Change<K>> {
        changes.iter().map(|(prefix, _)| (*prefix, self.route(prefix))).collect()
    }

    /// The next hop of exactly this prefix.
    fn route<K: CardKey>(&self, prefix: &Prefix<K>) -> Option<NextHop> {
        let at = K::at(&self.at).get(prefix)?;
        K::routes(&self.program.entries).get(*at).map(|(_, hop)| *hop)
    }

    /// Whether changes of routes change anything. Most changes from a routing protocol do not.
    pub fn differs<K: CardKey>(&self, changes: &[Change<K>]) -> bool {
        changes.iter().any(|(prefix, hop)| self.route(prefix) != *hop)
    }

    /// Applies changes of routes to the program.
    pub fn set_routes<K: CardKey>(&mut self, changes: &[Change<K>]) {
        let routes = K::routes_mut(&mut self.program.entries);
        let positions = K::at_mut(&mut self.at);
        for (prefix, hop) in changes {
            match (hop, positions.get(prefix).copied()) {
                (Some(hop), Some(at)) => {
                    if let Some(route) = routes.get_mut(at) {
                        route.1 = *hop;
                    }
                }
                (Some(hop), None) => {
                    positions.insert(*prefix, routes.len());
                    routes.push((*prefix, *hop));
                }
                (None, Some(at)) => {
                    positions.remove(prefix);
                    routes.swap_remove(at);
                    if let Some((moved, _)) = routes.get(at) {
                        positions.insert(*moved, at);
                    }
                }
                (None, None) => {}
            }
        }
    }

    /// Applies changes of rows of next hops to the program, which has `count` of them then. Those in between that were never
    /// set become "no route". A group whose row is set, or goes, ends.
    pub fn set_hops(&mut self, changes: &[(NextHop, Adjacency)], count: usize) {
        self.program.groups.retain(|(row, _)| !ends_group(*row, changes, count));
        self.program.next_hops.resize(count, Adjacency::NONE);
        for (index, hop) in changes {
            if let Some(place) = self.program.next_hops.get_mut(usize::from(index.get())) {
                *place = *hop;
            }
        }
    }

    /// Makes rows of the program groups.
    pub fn set_groups(&mut self, groups: &[(NextHop, Slots)]) {
        for (row, slots) in groups {
            match self.program.groups.iter_mut().find(|(of, _)| of == row) {
                Some((_, own)) => own.clone_from(slots),
                None => self.program.groups.push((*row, slots.clone())),
            }
            if let Some(hop) = self.program.next_hops.get_mut(usize::from(row.get())) {
                *hop = Adjacency::group(0);
            }
        }
    }
}

/// Whether changes of rows of next hops, after which there are `count`, end the group in a row: it is set, or goes.
pub fn ends_group(row: NextHop, changes: &[(NextHop, Adjacency)], count: usize) -> bool {
    usize::from(row.get()) >= count || changes.iter().any(|(changed, _)| *changed == row)
}

/// What of a program is in the tables of routes: nothing of a network that learns, whose next hops are its ports.
/// Of flat labels it is their routes, unless they are not wanted (`routes`).
pub fn routed(program: &Program, routes: bool) -> Cow<'_, Program> {
    match program.settings {
        Settings::Rofl(settings) => Cow::Owned(flat::routed(program, settings, routes)),
        settings if settings.learning().is_some() => Cow::Owned(program.without_tables()),
        _ => Cow::Borrowed(program),
    }
}

/// How many rows of next hops a program has in these tables.
pub fn hop_count(program: &Program) -> usize {
    match program.settings {
        Settings::Rofl(_) => hue_substrate::flat::hop_count(&program.next_hops),
        settings if settings.learning().is_some() => 0,
        _ => program.next_hops.len(),
    }
}

/// What the row of a network of kind `l2` has in place of a root; see `l2_settings_t` in rtl/planes/hue_stages_pkg.sv.
fn l2_settings(program: &Program, settings: l2::Settings) -> u64 {
    // All ports have the same MTU, which has fewer than 14 bits.
    let mtu = program.ports.first().map_or(0, |port| u64::from(port.mtu_bytes));
    let ports = program.ports.iter().filter_map(|port| 1u64.checked_shl(port.port.get().into()));
    let ports = ports.fold(0, |ports, port| ports | port) & 0xf;
    mtu | ports << 14 | u64::from(settings.sticky) << 18 | 1 << 19
}

/// The row of a network.
pub fn row(place: Place, program: &Program, hop_base: u32, roots: Roots) -> NetworkRow {
    NetworkRow {
        valid: true,
        vid: program.vid.get(),
        // Packets of a network without a plane never reach a plane.
        plane: if place.plane == NO_PLANE { 0 } else { place.plane },
        root: match program.settings {
            Settings::L2(settings) => l2_settings(program, settings),
            // No entries, until the network has a run of rows.
            Settings::Extract(_) | Settings::Mpls(_) => 0,
            _ => roots.root,
        },
        // Neither an image nor a network has more than 65,536 rows of next hops.
        hop_base: hop_base as u16,
        hop_count: hop_count(program) as u16,
        software: false,
        forward_martians: match program.settings {
            Settings::Ipv4(settings) | Settings::Dual(settings) => settings.forward_martians,
            Settings::Splice(settings) => settings.forward_martians,
            _ => false,
        },
        gated: program.gated,
        kind: program.kind() as u8,
        root_ipv6: match program.settings {
            Settings::Dual(_) => roots.ipv6,
            // `rofl_settings_t` in rtl/planes/hue_stages_pkg.sv.
            Settings::Rofl(settings) => settings.label_bytes() as u64,
            // `splice_settings_t` in rtl/planes/hue_stages_pkg.sv.
            Settings::Splice(splice::Settings { slices, bits, .. }) => {
                u64::from(slices.saturating_sub(1)) | u64::from(bits == splice::Bits::Shim) << 4
            }
            _ => 0,
        },
        carries_ipip: false,
        carries_vxlan: false,
        policies: false,
    }
}

/// Whether every record in the stages has the network's current row. A record with an older row must not see a word
/// with a next hop beyond that row's count.
pub fn knows_its_hops<R: Registers>(loaded: &mut Loaded, device: &mut Device<R>) -> Result<bool, CardError> {
    if let Some(mark) = loaded.grown
        && device.records()?.have_passed(mark)
    {
        loaded.grown = None;
    }
    Ok(loaded.grown.is_none())
}

/// Waits until [`knows_its_hops`] returns `true`.
pub fn wait_for_its_hops<R: Registers>(loaded: &mut Loaded, device: &mut Device<R>) -> Result<(), CardError> {
    if let Some(mark) = loaded.grown {
        device.wait_for(mark)?;
        loaded.grown = None;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use hue_planes::Kind;
    use hue_substrate::Entries;
    use hue_tables::Vid;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn routes_follow_their_changes(
            changes in prop::collection::vec((0u32..12, prop::option::of(0u16..9)), 0..60)
        ) {
            let program = Program {
                vid: Vid::new(1).unwrap(),
                name: "red".to_owned(),
                settings: Settings::of(Kind::Ipv4),
                ports: Vec::new(),
                rows: Vec::new(),
                next_hops: Vec::new(),
                groups: Vec::new(),
                entries: Entries::Lpm32(Vec::new()),
                rate_limit: None,
                weight: 1,
                policies: None,
                gated: false,
            };
            let mut loaded = Loaded::new(Place { net: 0, plane: 0 }, false, program, None);
            let mut want = BTreeMap::new();
            for (number, hop) in changes {
                let prefix = Prefix4::containing(number << 24, 8);
                match hop {
                    Some(hop) => _ = want.insert(prefix, NextHop::new(hop).unwrap()),
                    None => _ = want.remove(&prefix),
                }
                loaded.set_routes(&[(prefix, hop.and_then(NextHop::new))]);
                let mut have = loaded.program().entries.lpm32().to_vec();
                have.sort_unstable();
                prop_assert_eq!(have, want.iter().map(|(prefix, hop)| (*prefix, *hop)).collect::<Vec<_>>());
            }
        }
    }
}
