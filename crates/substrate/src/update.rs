//! Changes of one network while it runs: rows of its next-hop table, and routes.
//!
//! Flow: routing information base, or any other source of routes → **[`Update`]** →
//! [`Substrate::update`](crate::Substrate::update) → tables. An update borrows its lists, which can be long.
//!
//! Invariants, on every substrate:
//! - Next hops come first: no packet sees a new route before the next hops of the same update.
//! - A row changes as a whole; rows change one by one. Groups change after the other rows, so a slot never names a row
//!   that is not there yet.
//! - Routes of each width change by themselves, short keys first. No packet of a network is looked up in both.
//! - An update is checked as a whole before anything changes. If a substrate then has no room, it takes back what it has
//!   changed, and the former next hops apply again.
//! - Static MAC addresses, patterns and labels are in the program, and change when it is loaded.

use std::collections::HashMap;

use hue_planes::group::{GROUPS_MAX, Slots};
use hue_planes::{Adjacency, AdjacencyKind, Keys, Settings};
use hue_tables::{AnyPrefix, Change, Key, NextHop, Prefix};

use crate::SubstrateError;
use crate::entries::{Entries, RouteKey};
use crate::program::{NO_GROUPS, ProgramError, VirtualPort, check_hop_of, check_members};

/// The announcements of an update that were left out, by their places in the list of changes: those of 32-bit keys are
/// followed by those of 128-bit keys.
pub type Refusals = hue_tables::Refusals<SubstrateError>;

/// What happens to routes for which there is no room, and how packets see the others.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Mode {
    /// All changes or none, and each packet sees all changes of its width or none. (On a card with layout dir, it sees
    /// either the old or the new route of its address.)
    #[default]
    Whole,
    /// All changes or none; they are independent, such as a routing protocol's, so packets may see some earlier than
    /// others. A batch costs the card a fraction of a whole change. Software changes as with [`Mode::Whole`].
    Each,
    /// Independent changes, of which those that fit are made. Announcements that do not fit are left out and reported;
    /// their prefixes have no route afterwards, not even the former one, because its next hop may be another one now.
    Fitting,
}

/// Changes of one network. The default changes nothing.
///
/// ```
/// use hue_substrate::{Mode, Update};
/// use hue_tables::{Change, NextHop};
/// let routes: [Change<u32>; 2] = [("10.0.0.0/8".parse()?, NextHop::new(1)), ("0.0.0.0/0".parse()?, None)];
/// let update = Update::of_routes(&routes).with_mode(Mode::Each);
/// assert_eq!((update.v4.len(), update.v6.len(), update.hops.len()), (2, 0, 0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Update<'a> {
    /// Rows to set or add, in order. Rows between the former last one and an added one become "no route". A row may be
    /// reused for another purpose once an update that leaves no route to it has returned.
    pub hops: &'a [(NextHop, Adjacency)],
    /// Rows to set or add as groups of others, after `hops`, with their slots. A group ends when `hops` sets its row. What is
    /// said about reusing a row holds for slots that name it, too.
    pub groups: &'a [(NextHop, Slots)],
    /// Routes of 32-bit keys to set or, without a next hop, to withdraw, in order. A withdrawn route need not exist.
    pub v4: &'a [Change<u32>],
    /// The same for 128-bit keys.
    pub v6: &'a [Change<u128>],
    /// See there.
    pub mode: Mode,
}

/// What an update is checked against: a loaded network.
pub struct Checked<'a> {
    /// Its name.
    pub name: &'a str,
    /// How its packets are processed.
    pub settings: Settings,
    /// Its virtual ports.
    pub ports: &'a [VirtualPort],
    /// Its next hops.
    pub hops: &'a [Adjacency],
    /// The slots of its groups.
    pub groups: &'a [(NextHop, Slots)],
}

impl<'a> Update<'a> {
    /// Changes of routes of one width.
    #[must_use]
    pub fn of_routes<K: RouteKey>(changes: &'a [Change<K>]) -> Self {
        K::update(changes)
    }

    /// Changes of next hops.
    #[must_use]
    pub const fn of_hops(hops: &'a [(NextHop, Adjacency)]) -> Self {
        Self { hops, groups: &[], v4: &[], v6: &[], mode: Mode::Whole }
    }

    /// The same in another mode.
    #[must_use]
    pub const fn with_mode(self, mode: Mode) -> Self {
        Self { mode, ..self }
    }

    /// The same routes with these next hops, which come first.
    #[must_use]
    pub const fn with_hops(self, hops: &'a [(NextHop, Adjacency)]) -> Self {
        Self { hops, ..self }
    }

    /// The same with these groups.
    #[must_use]
    pub const fn with_groups(self, groups: &'a [(NextHop, Slots)]) -> Self {
        Self { groups, ..self }
    }

    /// Whether it changes next hops or groups of them.
    #[must_use]
    pub const fn has_hops(&self) -> bool {
        !self.hops.is_empty() || !self.groups.is_empty()
    }

    /// Whether it changes no routes.
    #[must_use]
    pub const fn has_no_routes(&self) -> bool {
        self.v4.is_empty() && self.v6.is_empty()
    }

    /// Checks whether a network can be changed so; returns the number of its next hops afterwards.
    ///
    /// # Errors
    /// `Program`: `Width` for routes of keys that its kind does not have, `NextHops` for too many next hops, `NextHop`
    /// for one that it cannot use, `Ways` for one that is not the port of the same number in a network that learns, `Groups` and `Group` for groups that cannot be;
    /// `Hop` for a route to a next hop that it does not have.
    pub fn check(&self, of: &Checked<'_>) -> Result<usize, SubstrateError> {
        let program = |error| SubstrateError::Program { name: of.name.to_owned(), error };
        let kind = of.settings.kind();
        for (bits, is_empty) in [(u32::BITS, self.v4.is_empty()), (u128::BITS, self.v6.is_empty())] {
            let bits = bits as u8;
            if !is_empty && !kind.limits().keys.has_bits(bits) {
                return Err(program(ProgramError::Width { found: Keys::of_bits(bits), kind }));
            }
        }
        let rows = self.hops.iter().map(|(index, _)| index).chain(self.groups.iter().map(|(index, _)| index));
        let last = rows.map(|index| usize::from(index.get()) + 1).max().unwrap_or_default();
        let (count, max) = (of.hops.len().max(last), kind.limits().next_hops_max);
        if count > max {
            return Err(program(ProgramError::NextHops { count, max }));
        }
        self.hops.iter().try_for_each(|row| check_row(row, of).map_err(program))?;
        self.check_groups(of).map_err(program)?;
        check_routes(self.v4, of.name, count)?;
        check_routes(self.v6, of.name, count)?;
        Ok(count)
    }
}

impl Update<'_> {
    fn check_groups(&self, of: &Checked<'_>) -> Result<(), ProgramError> {
        let Some((first, _)) = self.groups.first() else { return Ok(()) };
        let fault = |row: NextHop, what| Err(ProgramError::Group { row: row.get(), what });
        if of.settings.learning().is_some() {
            return fault(*first, "the next hops of a network that learns are its ports");
        }
        if of.settings.kind().limits().keys == Keys::Bits {
            return fault(*first, NO_GROUPS);
        }
        let mut changed: HashMap<NextHop, AdjacencyKind> =
            self.hops.iter().map(|(row, hop)| (*row, hop.kind())).collect();
        let ends = |row: &NextHop| changed.contains_key(row);
        let mut kept: Vec<_> = of.groups.iter().filter(|(row, _)| !ends(row)).collect();
        changed.extend(self.groups.iter().map(|(row, _)| (*row, AdjacencyKind::Group)));
        kept.retain(|(row, _)| !self.groups.iter().any(|(changed, _)| changed == row));
        let count = kept.len() + self.groups.len();
        if count > GROUPS_MAX {
            return Err(ProgramError::Groups(count));
        }
        let was = |row: NextHop| of.hops.get(usize::from(row.get())).map(Adjacency::kind);
        let kind = |row: NextHop| changed.get(&row).copied().or_else(|| was(row));
        for (row, slots) in self.groups {
            check_members(slots, kind).or_else(|what| fault(*row, what))?;
        }
        // A row that becomes a group is no member of another one.
        if self.groups.iter().all(|(row, _)| was(*row) == Some(AdjacencyKind::Group)) {
            return Ok(());
        }
        // Members that became "no route" may stay.
        let kind = |row: NextHop| {
            kind(row).map(|kind| if kind == AdjacencyKind::None { AdjacencyKind::Local } else { kind })
        };
        kept.into_iter()
            .try_for_each(|(row, slots)| check_members(slots, kind).or_else(|what| fault(*row, what)))
    }
}

/// Checks a changed next hop. "No route" is allowed: packets with routes to it are dropped.
fn check_row((index, hop): &(NextHop, Adjacency), of: &Checked<'_>) -> Result<(), ProgramError> {
    let index = usize::from(index.get());
    if of.settings.learning().is_some() {
        let port = of.ports.get(index).map(|port| Adjacency::out(port.port, port.mtu_bytes));
        return if port == Some(*hop) { Ok(()) } else { Err(ProgramError::Ways) };
    }
    if of.settings.caching().is_some() && of.ports.get(index).is_some_and(|port| port.arrival() != *hop) {
        return Err(ProgramError::Arrivals);
    }
    if hop.kind() == AdjacencyKind::None {
        return Ok(());
    }
    check_hop_of(of.settings.kind(), of.ports, hop).map_err(|what| ProgramError::NextHop {
        index,
        hop: *hop,
        what,
    })
}

fn check_routes<K: Key>(changes: &[Change<K>], name: &str, count: usize) -> Result<(), SubstrateError> {
    let is_missing = |hop: &NextHop| usize::from(hop.get()) >= count;
    match changes.iter().find_map(|(prefix, hop)| Some((prefix, hop.filter(is_missing)?))) {
        None => Ok(()),
        Some((prefix, hop)) => Err(SubstrateError::Hop {
            name: name.to_owned(),
            prefix: prefix.to_string(),
            hop: hop.get(),
            count,
        }),
    }
}

/// Changes of next hops that somebody owns.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct HopChanges {
    /// See [`Update::hops`].
    pub rows: Vec<(NextHop, Adjacency)>,
    /// See [`Update::groups`].
    pub groups: Vec<(NextHop, Slots)>,
}

/// Changes of routes that somebody owns: those of 32-bit keys, followed by those of 128-bit keys.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Changes {
    /// Those of 32-bit keys.
    pub v4: Vec<Change<u32>>,
    /// Those of 128-bit keys.
    pub v6: Vec<Change<u128>>,
}

impl From<Vec<Change<u32>>> for Changes {
    fn from(v4: Vec<Change<u32>>) -> Self {
        Self { v4, v6: Vec::new() }
    }
}

impl From<Vec<Change<u128>>> for Changes {
    fn from(v6: Vec<Change<u128>>) -> Self {
        Self { v4: Vec::new(), v6 }
    }
}

impl Changes {
    /// Changes that set all of these routes; entries that are no routes need none.
    #[must_use]
    pub fn setting(entries: Entries) -> Self {
        fn of<K: Key>(routes: Vec<(Prefix<K>, NextHop)>) -> Vec<Change<K>> {
            routes.into_iter().map(|(prefix, hop)| (prefix, Some(hop))).collect()
        }
        match entries {
            Entries::Lpm32(routes) => of(routes).into(),
            Entries::Lpm128(routes) | Entries::Sliced(routes) => of(routes).into(),
            Entries::Dual(narrow, wide) => Self { v4: of(narrow), v6: of(wide) },
            Entries::Exact(_) | Entries::Ternary(_) | Entries::Nearest(_) | Entries::None => Self::default(),
        }
    }

    /// Changes that withdraw all routes that these set.
    #[must_use]
    pub fn withdrawn(mut self) -> Self {
        self.for_each(|_, hop| *hop = None);
        self
    }

    /// How many there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.v4.len() + self.v6.len()
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Some of them; none if the range does not exist.
    #[must_use]
    pub fn slice(&self, range: std::ops::Range<usize>) -> Self {
        if range.end > self.len() {
            return Self::default();
        }
        let (first, count) = (range.start, self.v4.len());
        let part = |from: usize, to: usize| from.min(to)..to;
        let v4 = self.v4.get(part(first, range.end.min(count))).unwrap_or_default();
        let v6 = self.v6.get(part(first.saturating_sub(count), range.end.saturating_sub(count)));
        Self { v4: v4.to_vec(), v6: v6.unwrap_or_default().to_vec() }
    }

    /// An update with these changes.
    #[must_use]
    pub fn update(&self) -> Update<'_> {
        Update { v4: &self.v4, v6: &self.v6, ..Update::default() }
    }

    /// Visits each prefix and its next hop.
    pub fn for_each(&mut self, mut visit: impl FnMut(AnyPrefix, &mut Option<NextHop>)) {
        self.v4.iter_mut().for_each(|(prefix, hop)| visit((*prefix).into(), hop));
        self.v6.iter_mut().for_each(|(prefix, hop)| visit((*prefix).into(), hop));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_of_changes_may_have_both_widths() {
        let four: Vec<Change<u32>> = (0..3).map(|n| (Prefix::containing(n << 24, 8), None)).collect();
        let six: Vec<Change<u128>> = (0..2).map(|n| (Prefix::containing(n << 120, 8), None)).collect();
        let all = Changes { v4: four.clone(), v6: six.clone() };
        let parts = |range| {
            let slice = all.slice(range);
            (slice.v4, slice.v6)
        };
        assert_eq!(all.len(), 5);
        assert_eq!(parts(0..2), (four[..2].to_vec(), vec![]));
        assert_eq!(parts(2..4), (four[2..].to_vec(), six[..1].to_vec()));
        assert_eq!(parts(4..5), (vec![], six[1..].to_vec()));
        assert_eq!(parts(0..5), (four.clone(), six.clone()));
        assert!(all.slice(5..5).is_empty() && all.slice(0..6).is_empty());
    }
}
