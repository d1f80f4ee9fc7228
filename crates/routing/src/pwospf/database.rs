//! The topology database: the newest LSU of every other router of the area.
//!
//! Sequence numbers have 16 bits and wrap: of two, the one that is at most 32,767 ahead is newer (RFC 1982 §3.2). The
//! specification only says that equal numbers are duplicates, which would let two copies of different age chase each other
//! around a circle of links.
//!
//! A router that starts again may begin with a number that is not newer. Its neighbours believe it: an LSU that comes from
//! its originator itself replaces an entry that was received a hello interval ago or earlier. Links keep the order of
//! packets, so a late duplicate over a second link comes sooner than that. Routers further away believe it when their entry
//! has expired, or when it overtakes the old number.

use std::collections::BTreeMap;
use std::time::Duration;

use super::drops::Drop;
use super::packet::{Advertisement, Lsu, RouterId};

/// Most routers in the database.
pub const ROUTERS_MAX: usize = 1024;
/// An entry expires this many LSU intervals after its last LSU.
pub const LIFETIME_INTERVALS: u32 = 3;

/// What is known of a router.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// Sequence number of its last LSU.
    pub sequence: u16,
    /// Hops that this LSU may still take after this router.
    pub ttl: u16,
    /// When its last LSU was received.
    pub received: Duration,
    /// Its links.
    pub links: Vec<Advertisement>,
}

/// What an accepted LSU is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Accepted {
    /// It says something new.
    Changed,
    /// It repeats what is known.
    Same,
    /// Its router has started again and lost its number. The LSU that it replaces, to be returned to the router, which may
    /// then continue where it was.
    Restarted(Lsu),
}

/// Whether sequence number `a` is newer than `b`.
#[must_use]
pub const fn is_newer(a: u16, b: u16) -> bool {
    a.wrapping_sub(b) as i16 > 0
}

/// The entries by router.
#[derive(Clone, Default, Debug)]
pub struct Database {
    entries: BTreeMap<RouterId, Entry>,
    /// No entry was received before.
    oldest: Option<Duration>,
}

impl Database {
    /// Takes an LSU. `restart` is given if it comes from its originator itself: entries received then or earlier give way.
    ///
    /// # Errors
    /// The reason to drop it.
    pub fn accept(
        &mut self,
        now: Duration,
        router: RouterId,
        lsu: &Lsu,
        restart: Option<Duration>,
    ) -> Result<Accepted, Drop> {
        let room = self.entries.len() < ROUTERS_MAX;
        let Some(known) = self.entries.get_mut(&router) else {
            if !room {
                return Err(Drop::DatabaseFull);
            }
            self.entries.insert(router, Entry::new(now, lsu));
            self.oldest.get_or_insert(now);
            return Ok(Accepted::Changed);
        };
        if lsu.sequence == known.sequence {
            return Err(Drop::Duplicate);
        }
        let accepted = if !is_newer(lsu.sequence, known.sequence) {
            if restart.is_none_or(|restart| known.received > restart) {
                return Err(Drop::Old);
            }
            Accepted::Restarted(known.lsu())
        } else if known.links == lsu.links {
            Accepted::Same
        } else {
            Accepted::Changed
        };
        *known = Entry::new(now, lsu);
        Ok(accepted)
    }

    /// Removes the entries whose last LSU was received at `before` or earlier. Returns whether there were any.
    pub fn expire(&mut self, before: Duration) -> bool {
        if self.oldest.is_none_or(|oldest| oldest > before) {
            return false;
        }
        let count = self.entries.len();
        self.entries.retain(|_, entry| entry.received > before);
        self.oldest = self.entries.values().map(|entry| entry.received).min();
        self.entries.len() < count
    }

    /// A time before which no entry was received; after [`Database::expire`], that of the oldest one.
    #[must_use]
    pub const fn oldest(&self) -> Option<Duration> {
        self.oldest
    }

    /// The entry of a router.
    #[must_use]
    pub fn get(&self, router: RouterId) -> Option<&Entry> {
        self.entries.get(&router)
    }

    /// All entries, by router.
    pub fn iter(&self) -> impl Iterator<Item = (RouterId, &Entry)> {
        self.entries.iter().map(|(router, entry)| (*router, entry))
    }
}

impl Entry {
    fn new(now: Duration, lsu: &Lsu) -> Self {
        let ttl = lsu.ttl.saturating_sub(1);
        Self { sequence: lsu.sequence, ttl, received: now, links: lsu.links.clone() }
    }

    /// The LSU, to be passed on.
    #[must_use]
    pub fn lsu(&self) -> Lsu {
        Lsu { sequence: self.sequence, ttl: self.ttl, links: self.links.clone() }
    }
}
