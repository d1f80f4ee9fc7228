//! The routers of the network and their links: what each says of itself, and the shortest ways.
//!
//! Flow: [`Links`] of all routers → **[`Database`]** → [`Route`]s. Invariants: what a router says counts until something newer, or
//! until [`LIFETIME_INTERVALS`] after it was said, wherever it was meanwhile; a link counts if both its ends say so. All
//! ways have as few links as possible, so while two routers know the same, no packet returns.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use hue_wire::Mac;
use hue_wire::rofl::Label;

use super::body::Links;
use super::drops::Drop;

/// Most routers.
pub const ROUTERS_MAX: usize = 1024;
/// What a router said is forgotten after so many intervals.
pub const LIFETIME_INTERVALS: u32 = 35;

/// A neighbour: at which port, and its MAC address.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Hop {
    /// Number of the port.
    pub port: u16,
    /// The neighbour's address there.
    pub mac: Mac,
}

/// The way to a router.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Route {
    /// The first neighbour on it.
    pub hop: Hop,
    /// How many links it has.
    pub links: u32,
}

/// What a router says of itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// See [`Links::sequence`].
    pub sequence: u64,
    /// Its neighbours.
    pub neighbours: Vec<Label>,
    /// When it was received.
    received: Duration,
    /// How old it was then.
    age: Duration,
}

/// What all routers say.
#[derive(Clone, Default, Debug)]
pub struct Database {
    entries: BTreeMap<Label, Entry>,
    digest: u64,
    /// When it last changed.
    pub changed: Duration,
}

impl Database {
    /// Takes the links of a router. Returns whether they differ from what it said before.
    ///
    /// # Errors
    /// The reason to drop them.
    pub fn accept(&mut self, now: Duration, links: &Links, lifetime: Duration) -> Result<bool, Drop> {
        let age = Duration::from_millis(u64::from(links.age_ds) * 100);
        if age >= lifetime {
            return Err(Drop::Old);
        }
        let known = self.entries.get(&links.origin);
        match known {
            None if self.entries.len() >= ROUTERS_MAX => return Err(Drop::RoutersFull),
            Some(known) if known.sequence == links.sequence => return Err(Drop::Duplicate),
            Some(known) if known.sequence > links.sequence => return Err(Drop::Old),
            _ => {}
        }
        let differs = known.is_none_or(|known| known.neighbours != links.neighbours);
        if let Some(known) = known {
            self.digest ^= mix(links.origin, known.sequence);
        }
        self.digest ^= mix(links.origin, links.sequence);
        self.changed = now;
        let entry =
            Entry { sequence: links.sequence, neighbours: links.neighbours.clone(), received: now, age };
        self.entries.insert(links.origin, entry);
        Ok(differs)
    }

    /// Forgets what is too old. Returns whether there was some.
    pub fn expire(&mut self, now: Duration, lifetime: Duration) -> bool {
        let old: Vec<Label> = self
            .entries
            .iter()
            .filter(|(_, one)| one.age_at(now) >= lifetime)
            .map(|(label, _)| *label)
            .collect();
        for label in &old {
            if let Some(entry) = self.entries.remove(label) {
                self.digest ^= mix(*label, entry.sequence);
                self.changed = now;
            }
        }
        !old.is_empty()
    }

    /// A number that is equal for equal databases, and most likely not for others.
    #[must_use]
    pub const fn digest(&self) -> u64 {
        self.digest
    }

    /// What a router said, to be passed on.
    #[must_use]
    pub fn links(&self, now: Duration, origin: Label) -> Option<Links> {
        let entry = self.entries.get(&origin)?;
        // Rounded up: nothing becomes younger on its way.
        let age_ds = entry.age_at(now).as_millis().div_ceil(100).min(u128::from(u16::MAX)) as u16;
        Some(Links { age_ds, sequence: entry.sequence, origin, neighbours: entry.neighbours.clone() })
    }

    /// All routers, by label.
    pub fn iter(&self) -> impl Iterator<Item = (Label, &Entry)> {
        self.entries.iter().map(|(label, entry)| (*label, entry))
    }

    /// The number of the last links of a router.
    #[must_use]
    pub fn sequence(&self, origin: Label) -> Option<u64> {
        self.entries.get(&origin).map(|entry| entry.sequence)
    }

    /// The shortest way from a router with these neighbours to each other one. Of equally short ones, the one by the
    /// neighbour with the lowest label.
    #[must_use]
    pub fn routes(&self, own: Label, neighbours: &BTreeMap<Label, Hop>) -> BTreeMap<Label, Route> {
        let says = |router: Label, other: Label| {
            self.entries.get(&router).is_some_and(|entry| entry.neighbours.contains(&other))
        };
        let mut routes = BTreeMap::new();
        let mut queue = VecDeque::new();
        for (label, hop) in neighbours {
            if *label != own && says(*label, own) {
                routes.insert(*label, Route { hop: *hop, links: 1 });
                queue.push_back(*label);
            }
        }
        while let Some(router) = queue.pop_front() {
            let Some((entry, way)) = self.entries.get(&router).zip(routes.get(&router).copied()) else {
                continue;
            };
            for next in &entry.neighbours {
                if *next != own && !routes.contains_key(next) && says(*next, router) {
                    routes.insert(*next, Route { links: way.links + 1, ..way });
                    queue.push_back(*next);
                }
            }
        }
        routes
    }
}

impl Entry {
    /// Time since the router said it.
    #[must_use]
    pub fn age_at(&self, now: Duration) -> Duration {
        self.age + now.saturating_sub(self.received)
    }
}

/// A label for a router that was given none, from one of its MAC addresses: the same at every start.
#[must_use]
pub fn derived(mac: Mac, label_bytes: usize) -> Label {
    let half = |number| Label::from(mix(Label::from(mac.to_u64()), number));
    let unused = Label::BITS as usize - 8 * label_bytes.clamp(1, 16);
    (half(1) << 64 | half(2)) >> unused << unused
}

/// Spreads a label and a number over 64 bits (the finalizer of SplitMix64).
fn mix(label: Label, number: u64) -> u64 {
    let mut z =
        (label >> 64) as u64 ^ (label as u64).rotate_left(29) ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
