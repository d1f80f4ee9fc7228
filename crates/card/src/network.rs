//! The driver's state of a network on the card: its place, its current program, its part of the shared tables.

use std::collections::HashMap;

use hue_planes::{Adjacency, AdjacencyKind, Settings};
use hue_substrate::{Program, ProgramError, SubstrateError, check_hop};
use hue_tables::{Change, NextHop, Prefix4};

use crate::device::Device;
use crate::error::CardError;
use crate::generated::NetworkRow;
use crate::plan::{NO_PLANE, Place};
use crate::records::Mark;
use crate::registers::Registers;
use crate::routes::Held;

/// The driver's state of a network on the card.
#[derive(Clone)]
pub struct Loaded {
    pub place: Place,
    /// Software decides its packets.
    pub software: bool,
    program: Program,
    /// Index of each prefix in the program's routes, so that the cost of a change does not depend on the number of
    /// routes.
    at: HashMap<Prefix4, usize>,
    /// Its part of the shared tables.
    pub held: Option<Held>,
    /// When its routes last changed: earlier records may hold a next hop that no route refers to any more.
    pub changed: Option<Mark>,
    /// When its next hops last grew or moved, if earlier records may still be in the stages. Those records hold a
    /// copy of the network's row that does not cover the new next hops.
    pub grown: Option<Mark>,
}

impl Loaded {
    pub fn new(place: Place, software: bool, program: Program, held: Option<Held>) -> Self {
        let at =
            program.entries.lpm32().iter().enumerate().map(|(index, (prefix, _))| (*prefix, index)).collect();
        Self { place, software, program, at, held, changed: None, grown: None }
    }

    /// Its program, with all changes.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// Its row; `root` is its root item where tables are shared.
    pub fn row(&self, root: u64) -> NetworkRow {
        let hop_base = self.held.as_ref().map_or(0, |held| held.hops.start);
        NetworkRow { software: self.software, ..row(self.place, &self.program, hop_base, root) }
    }

    /// Checks that these changes of routes are allowed.
    ///
    /// # Errors
    /// `Hop`.
    pub fn check_routes(&self, changes: &[Change<u32>]) -> Result<(), SubstrateError> {
        let count = self.program.next_hops.len();
        let names = |hop: &NextHop| usize::from(hop.get()) >= count;
        match changes.iter().find_map(|(prefix, hop)| Some((prefix, hop.filter(names)?))) {
            None => Ok(()),
            Some((prefix, hop)) => Err(SubstrateError::Hop {
                name: self.program.name.clone(),
                prefix: prefix.to_string(),
                hop: hop.get(),
                count,
            }),
        }
    }

    /// Checks that these changes of next hops are allowed; returns the number of next hops after them.
    ///
    /// # Errors
    /// `Program`.
    pub fn check_hops(&self, changes: &[(NextHop, Adjacency)]) -> Result<usize, SubstrateError> {
        let refuse = |error| SubstrateError::Program { name: self.program.name.clone(), error };
        let mut count = self.program.next_hops.len();
        for (index, hop) in changes {
            let index = usize::from(index.get());
            count = count.max(index + 1);
            let max = self.program.kind().limits().next_hops_max;
            if count > max {
                return Err(refuse(ProgramError::NextHops { count, max }));
            }
            // "No route" is allowed: routes with this next hop drop their packets.
            if hop.kind() != AdjacencyKind::None {
                check_hop(&self.program.ports, hop)
                    .map_err(|what| refuse(ProgramError::NextHop { index, hop: *hop, what }))?;
            }
        }
        Ok(count)
    }

    /// Whether changes of routes change anything. Most changes from a routing protocol do not.
    pub fn differs(&self, changes: &[Change<u32>]) -> bool {
        let is = |prefix| {
            self.at.get(prefix).and_then(|at| self.program.entries.lpm32().get(*at)).map(|(_, hop)| *hop)
        };
        changes.iter().any(|(prefix, hop)| is(prefix) != *hop)
    }

    /// Applies changes of routes to the program.
    pub fn set_routes(&mut self, changes: &[Change<u32>]) {
        let routes = self.program.entries.lpm32_mut();
        for (prefix, hop) in changes {
            match (hop, self.at.get(prefix).copied()) {
                (Some(hop), Some(at)) => {
                    if let Some(route) = routes.get_mut(at) {
                        route.1 = *hop;
                    }
                }
                (Some(hop), None) => {
                    self.at.insert(*prefix, routes.len());
                    routes.push((*prefix, *hop));
                }
                (None, Some(at)) => {
                    self.at.remove(prefix);
                    routes.swap_remove(at);
                    if let Some((moved, _)) = routes.get(at) {
                        self.at.insert(*moved, at);
                    }
                }
                (None, None) => {}
            }
        }
    }

    /// Applies changes of next hops to the program. Indices in between that were never set become "no route".
    pub fn set_hops(&mut self, changes: &[(NextHop, Adjacency)], count: usize) {
        self.program.next_hops.resize(count, Adjacency::NONE);
        for (index, hop) in changes {
            if let Some(place) = self.program.next_hops.get_mut(usize::from(index.get())) {
                *place = *hop;
            }
        }
    }
}

/// The row of a network.
pub fn row(place: Place, program: &Program, hop_base: u32, root: u64) -> NetworkRow {
    NetworkRow {
        valid: true,
        vid: program.vid.get(),
        // Packets of a network without a plane never reach a plane.
        plane: if place.plane == NO_PLANE { 0 } else { place.plane },
        root,
        // Neither an image nor a network has more than 65,536 rows of next hops.
        hop_base: hop_base as u16,
        hop_count: program.next_hops.len() as u16,
        software: false,
        forward_martians: matches!(program.settings, Settings::Ipv4(settings) if settings.forward_martians),
        gated: program.gated,
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
                entries: Entries::Lpm32(Vec::new()),
                rate_limit: None,
                weight: 1,
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
