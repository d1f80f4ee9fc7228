//! A network on the card, as its driver keeps it: its place, its program as it is now, what it has of shared tables.

use std::collections::HashMap;

use hue_planes::{Adjacency, AdjacencyKind, ipv4};
use hue_substrate::{Program, ProgramError, SubstrateError, check_hop};
use hue_tables::{Change, NextHop, Prefix4};

use crate::generated::NetworkRow;
use crate::plan::{NO_PLANE, Place};
use crate::records::Mark;
use crate::routes::Held;

/// See the head of this file.
#[derive(Clone)]
pub struct Loaded {
    pub place: Place,
    /// Software decides its packets.
    pub software: bool,
    program: Program,
    /// Where in the program's routes a prefix stands, so that a change costs what it changes.
    at: HashMap<Prefix4, usize>,
    /// What it has of the shared tables.
    pub held: Option<Held>,
    /// When its routes changed last: records before it may hold a next hop that no route names any more.
    pub changed: Option<Mark>,
    /// When its next hops became more, or came to stand elsewhere, if records of before may be inside: what they know of the
    /// network has not those.
    pub grown: Option<Mark>,
}

impl Loaded {
    pub fn new(place: Place, software: bool, program: Program, held: Option<Held>) -> Self {
        let at = program.routes.iter().enumerate().map(|(index, (prefix, _))| (*prefix, index)).collect();
        Self { place, software, program, at, held, changed: None, grown: None }
    }

    /// Its program, with all changes.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// Its row, with this root item where tables are shared.
    pub fn row(&self, root: u64) -> NetworkRow {
        let hop_base = self.held.as_ref().map_or(0, |held| held.hops.start);
        NetworkRow { software: self.software, ..row(self.place, &self.program, hop_base, root) }
    }

    /// Whether routes may change so.
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

    /// Whether next hops may change so; says how many there are then.
    ///
    /// # Errors
    /// `Program`.
    pub fn check_hops(&self, changes: &[(NextHop, Adjacency)]) -> Result<usize, SubstrateError> {
        let refuse = |error| SubstrateError::Program { name: self.program.name.clone(), error };
        let mut count = self.program.next_hops.len();
        for (index, hop) in changes {
            let index = usize::from(index.get());
            count = count.max(index + 1);
            if count > ipv4::NEXT_HOPS_MAX {
                return Err(refuse(ProgramError::NextHops(count)));
            }
            // One that does nothing is no fault: routes that name it drop their packets.
            if hop.kind() != AdjacencyKind::None {
                check_hop(&self.program.ports, hop)
                    .map_err(|what| refuse(ProgramError::NextHop { index, hop: *hop, what }))?;
            }
        }
        Ok(count)
    }

    /// Whether changes of routes change anything: most of what a routing protocol brings does not.
    pub fn differs(&self, changes: &[Change<u32>]) -> bool {
        let is =
            |prefix| self.at.get(prefix).and_then(|at| self.program.routes.get(*at)).map(|(_, hop)| *hop);
        changes.iter().any(|(prefix, hop)| is(prefix) != *hop)
    }

    /// Takes changes of routes into the program.
    pub fn set_routes(&mut self, changes: &[Change<u32>]) {
        let routes = &mut self.program.routes;
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

    /// Takes changes of next hops into the program; those between are "no route".
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
        // Without one its packets never come to a plane.
        plane: if place.plane == NO_PLANE { 0 } else { place.plane },
        root,
        // An image has at most 65,536 rows of next hops, and a network as many.
        hop_base: hop_base as u16,
        hop_count: program.next_hops.len() as u16,
        software: false,
        forward_martians: program.forward_martians,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use hue_planes::Kind;
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
                kind: Kind::Ipv4,
                ports: Vec::new(),
                rows: Vec::new(),
                next_hops: Vec::new(),
                routes: Vec::new(),
                rate_limit: None,
                weight: 1,
                forward_martians: false,
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
                let mut have = loaded.program().routes.clone();
                have.sort_unstable();
                prop_assert_eq!(have, want.iter().map(|(prefix, hop)| (*prefix, *hop)).collect::<Vec<_>>());
            }
        }
    }
}
