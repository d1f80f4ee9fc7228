//! The table of a network that learns: which port a MAC address is behind.
//!
//! One worker owns it, looks addresses up and enters what frames teach, so there is no lock; nothing is allocated
//! after it is made. Layout: an index with open addressing, at most half full, and a slab of entries. Learnt entries
//! are in a list in the order in which they were last seen, so that those whose time is up are found at its head. The
//! hash has random keys: nobody can choose addresses that collide.
//!
//! The index is an array of buckets of one cache line. A search begins at the first way of a bucket, and nearly
//! always ends there: the bucket also says where the address is, and until when this is certain. Only later is the
//! slab read.
//!
//! Time is an argument, nanoseconds from any origin. A time before the latest one counts as the latest.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;

/// A MAC address in the low 48 bits.
pub type MacKey = u64;

/// End of a list of entries.
const NONE: u32 = u32::MAX;
const SECOND_NS: u64 = 1_000_000_000;
/// Addresses in a bucket of the index.
const WAYS: usize = 4;
/// In a key of the index, below the address: it is in use. An empty one is 0.
const USED: u64 = 1;
/// [`Fact::fresh_until`] of a static entry, which is always fresh.
const ALWAYS: u32 = u32::MAX;
/// Unit of [`Fact::fresh_until`], as a power of two of nanoseconds: 17 ms, so that 32 bits are more than two years.
const TICK_NS_LOG2: u32 = 24;

/// A part of the index.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
struct Bucket {
    /// MAC address above 16 bits of [`USED`]; those in use come first.
    keys: [u64; WAYS],
    facts: [Fact; WAYS],
}

const _: () = assert!(size_of::<Bucket>() == 64);

/// What the index knows about an entry.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct Fact {
    /// Before this time, ticks, nothing needs to be recorded about another frame from the same place; perhaps also
    /// for a part of the tick. [`ALWAYS`] says that the entry is static. 0 once times exceed 32 bits.
    fresh_until: u32,
    /// Place of the entry in the slab.
    place: u16,
    hop: u16,
}

const EMPTY: Bucket = Bucket { keys: [0; WAYS], facts: [Fact { fresh_until: 0, place: 0, hop: 0 }; WAYS] };

/// Place of a key in the index: bucket and way.
#[derive(Clone, Copy)]
struct Slot {
    bucket: usize,
    way: usize,
}

/// See the head of this file.
#[derive(Clone, Debug)]
pub struct MacTable {
    /// A power of two of buckets.
    index: Box<[Bucket]>,
    /// Buckets - 1.
    mask: usize,
    keys: [u64; 2],
    slab: Vec<Entry>,
    /// List of unused entries of the slab.
    free: u32,
    /// Learnt entries by the time they were seen, oldest first.
    oldest: u32,
    newest: u32,
    learnt: usize,
    learnt_max: usize,
    ageing_ns: u64,
    /// Least time after which it is worth recording that an address was seen again.
    refresh_ns: u64,
    latest_ns: u64,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    mac: MacKey,
    seen_ns: u64,
    previous: u32,
    next: u32,
    hop: u16,
    fixed: bool,
}

/// An entry that was found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Found {
    /// Where the address is.
    pub hop: u16,
    /// Whether the entry is static, not learnt.
    pub fixed: bool,
    /// Whether there is nothing to record about another frame from the same place, see [`MacTable::learn`].
    pub is_fresh: bool,
}

/// What became of an address that a frame taught.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Learnt {
    /// It was entered.
    New,
    /// It was there.
    Known,
    /// It was somewhere else; its entry was changed.
    Moved,
    /// It has a static entry, which stays.
    Fixed,
    /// It was not entered: there are as many entries as there may be.
    Full,
}

/// An entry of the table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MacEntry {
    /// The address.
    pub mac: MacKey,
    /// Where it is.
    pub hop: u16,
    /// Whether the entry is static, not learnt.
    pub fixed: bool,
    /// Time since the address was seen, as far as recorded; meaningless for a static entry.
    pub age_ns: u64,
}

impl MacTable {
    /// Most entries, static and learnt ones together.
    pub const ENTRIES_MAX: usize = 65_535;

    /// A table with static entries, and room for `learnt_max` learnt ones; static entries beyond
    /// [`MacTable::ENTRIES_MAX`] are left out. A learnt entry is gone when its address has not been seen for more than
    /// `ageing_ns`.
    #[must_use]
    pub fn new(fixed: &[(MacKey, u16)], learnt_max: usize, ageing_ns: u64) -> Self {
        let fixed = fixed.get(..Self::ENTRIES_MAX).unwrap_or(fixed);
        let learnt_max = learnt_max.min(Self::ENTRIES_MAX - fixed.len());
        let entries = fixed.len() + learnt_max;
        let buckets = (2 * entries).next_power_of_two().div_ceil(WAYS).max(2);
        let random = RandomState::new();
        let mut table = Self {
            index: vec![EMPTY; buckets].into_boxed_slice(),
            mask: buckets - 1,
            keys: [random.hash_one(0u8), random.hash_one(1u8) | 1],
            slab: Vec::with_capacity(entries),
            free: NONE,
            oldest: NONE,
            newest: NONE,
            learnt: 0,
            learnt_max,
            ageing_ns,
            refresh_ns: SECOND_NS.min(ageing_ns / 8),
            latest_ns: 0,
        };
        for (mac, hop) in fixed {
            table.fix(*mac, *hop);
        }
        table
    }

    /// This table with other settings and static entries. Learnt entries stay as far as there is room, those seen last
    /// first; `keep` gives where an entry's address is now, or `None` to forget it.
    #[must_use]
    pub fn with(
        &self,
        fixed: &[(MacKey, u16)],
        learnt_max: usize,
        ageing_ns: u64,
        keep: impl Fn(u16) -> Option<u16>,
    ) -> Self {
        let mut table = Self::new(fixed, learnt_max, ageing_ns);
        table.latest_ns = self.latest_ns;
        let mut kept: Vec<Entry> = Vec::new();
        let mut at = self.newest;
        while let Some(entry) = self.slab.get(at as usize) {
            if kept.len() == table.learnt_max || self.latest_ns - entry.seen_ns > ageing_ns {
                break;
            }
            if let Some(hop) = keep(entry.hop).filter(|_| table.find(entry.mac).is_none()) {
                kept.push(Entry { hop, ..*entry });
            }
            at = entry.previous;
        }
        for entry in kept.into_iter().rev() {
            table.enter(entry.mac, entry.hop, entry.seen_ns);
        }
        table
    }

    /// This table with the entries of these addresses only.
    #[must_use]
    pub fn only(&self, macs: &[MacKey]) -> Self {
        let found = macs.iter().filter_map(|mac| self.entry(*mac));
        let (fixed, learnt): (Vec<Entry>, Vec<Entry>) = found.copied().partition(|entry| entry.fixed);
        self.rebuilt(
            &fixed.iter().map(|entry| (entry.mac, entry.hop)).collect::<Vec<_>>(),
            learnt.len(),
            learnt,
        )
    }

    /// Enters what another table had learnt, and forgets nothing for it: entries whose addresses have none here, as far as there
    /// is room, those seen last first. Their ages are those at `now_ns`.
    pub fn adopt(&mut self, others: &[MacEntry], now_ns: u64) {
        self.latest_ns = self.latest_ns.max(now_ns);
        self.forget_old();
        let is_missing =
            |one: &&MacEntry| !one.fixed && one.age_ns <= self.ageing_ns && self.find(one.mac).is_none();
        let missing = others.iter().filter(is_missing).map(|one| Entry {
            mac: one.mac,
            seen_ns: self.latest_ns.saturating_sub(one.age_ns),
            previous: NONE,
            next: NONE,
            hop: one.hop,
            fixed: false,
        });
        let mut missing: Vec<Entry> = missing.collect();
        // Of an address that occurs twice, the entry that was seen last.
        missing.sort_unstable_by_key(|entry| (entry.mac, std::cmp::Reverse(entry.seen_ns)));
        missing.dedup_by_key(|entry| entry.mac);
        missing.sort_unstable_by_key(|entry| std::cmp::Reverse(entry.seen_ns));
        missing.truncate(self.learnt_max - self.learnt);
        let (fixed, mut learnt): (Vec<Entry>, Vec<Entry>) =
            self.held().copied().partition(|entry| entry.fixed);
        learnt.append(&mut missing);
        let fixed: Vec<_> = fixed.iter().map(|entry| (entry.mac, entry.hop)).collect();
        *self = self.rebuilt(&fixed, self.learnt_max, learnt);
    }

    /// A table with these entries; an address that occurs twice is entered once.
    fn rebuilt(&self, fixed: &[(MacKey, u16)], learnt_max: usize, mut learnt: Vec<Entry>) -> Self {
        let mut table = Self::new(fixed, learnt_max, self.ageing_ns);
        table.latest_ns = self.latest_ns;
        learnt.sort_unstable_by_key(|entry| entry.seen_ns);
        for entry in learnt {
            if table.find(entry.mac).is_none() {
                table.enter(entry.mac, entry.hop, entry.seen_ns);
            }
        }
        table
    }

    /// The entry of an address.
    #[inline]
    #[must_use]
    pub fn get(&self, mac: MacKey, now_ns: u64) -> Option<Found> {
        let Fact { fresh_until, hop, place } = self.fact(self.find(mac)?)?;
        let now_ns = now_ns.max(self.latest_ns);
        if now_ns >> TICK_NS_LOG2 < u64::from(fresh_until) {
            return Some(Found { hop, fixed: fresh_until == ALWAYS, is_fresh: true });
        }
        self.get_rest(place, now_ns)
    }

    /// Where an address is, if its entry is static or so new that there is nothing to record ([`Found::is_fresh`]).
    /// `None`: use [`MacTable::get`].
    #[inline(always)]
    #[must_use]
    pub fn fresh(&self, mac: MacKey, now_ns: u64) -> Option<u16> {
        let Fact { fresh_until, hop, .. } = self.fact(self.find(mac)?)?;
        let now_ns = now_ns.max(self.latest_ns);
        (now_ns >> TICK_NS_LOG2 < u64::from(fresh_until)).then_some(hop)
    }

    /// The entry at a place of the slab.
    #[inline(never)]
    fn get_rest(&self, place: u16, now_ns: u64) -> Option<Found> {
        let Entry { hop, fixed, seen_ns, .. } = *self.slab.get(usize::from(place))?;
        let age_ns = now_ns - seen_ns;
        let is_fresh = fixed || age_ns < self.refresh_ns;
        (fixed || age_ns <= self.ageing_ns).then_some(Found { hop, fixed, is_fresh })
    }

    /// Enters where an address is. That it was seen again where it was is recorded only after an eighth of the ageing
    /// time, or a second if that is less, so that most frames write nothing.
    #[inline]
    pub fn learn(&mut self, mac: MacKey, hop: u16, now_ns: u64) -> Learnt {
        match self.get(mac, now_ns) {
            Some(Found { fixed: true, .. }) => Learnt::Fixed,
            Some(found) if found.is_fresh && found.hop == hop => Learnt::Known,
            _ => self.learn_rest(mac, hop, now_ns),
        }
    }

    #[inline(never)]
    fn learn_rest(&mut self, mac: MacKey, hop: u16, now_ns: u64) -> Learnt {
        self.latest_ns = self.latest_ns.max(now_ns);
        let now_ns = self.latest_ns;
        self.forget_old();
        let fresh_until = self.fresh_until(now_ns);
        if let Some(slot) = self.find(mac)
            && let Some(bucket) = self.index.get_mut(slot.bucket)
        {
            let fact = &mut bucket.facts[slot.way];
            let (place, moved) = (u32::from(fact.place), fact.hop != hop);
            (fact.hop, fact.fresh_until) = (hop, fresh_until);
            self.unlink(place);
            if let Some(entry) = self.slab.get_mut(place as usize) {
                (entry.hop, entry.seen_ns) = (hop, now_ns);
            }
            self.link(place);
            return if moved { Learnt::Moved } else { Learnt::Known };
        }
        if self.learnt == self.learnt_max {
            return Learnt::Full;
        }
        self.enter(mac, hop, now_ns);
        Learnt::New
    }

    /// Its entries, in no order.
    pub fn entries(&self, now_ns: u64) -> impl Iterator<Item = MacEntry> + '_ {
        let now_ns = now_ns.max(self.latest_ns);
        self.held().map(move |entry| (entry, now_ns - entry.seen_ns)).filter_map(|(entry, age_ns)| {
            let Entry { mac, hop, fixed, .. } = *entry;
            (fixed || age_ns <= self.ageing_ns).then_some(MacEntry { mac, hop, fixed, age_ns })
        })
    }

    /// All entries, in no order, those whose time is up too.
    fn held(&self) -> impl Iterator<Item = &Entry> {
        let ways = self.index.iter().flat_map(|bucket| bucket.keys.iter().zip(&bucket.facts));
        let used = ways.filter(|(key, _)| **key & USED != 0);
        used.filter_map(|(_, fact)| self.slab.get(usize::from(fact.place)))
    }

    /// The entry of an address, whose time may be up.
    fn entry(&self, mac: MacKey) -> Option<&Entry> {
        let Slot { bucket, way } = self.find(mac)?;
        let fact = self.index.get(bucket)?.facts.get(way)?;
        self.slab.get(usize::from(fact.place))
    }

    /// Time since an address was seen, as far as recorded; `None` if it has no learnt entry.
    #[must_use]
    pub fn age_ns(&self, mac: MacKey, now_ns: u64) -> Option<u64> {
        let entry = self.entry(mac).filter(|entry| !entry.fixed)?;
        Some(now_ns.max(self.latest_ns) - entry.seen_ns).filter(|age_ns| *age_ns <= self.ageing_ns)
    }

    /// Number of learnt entries.
    #[must_use]
    pub fn learnt_count(&self, now_ns: u64) -> usize {
        let now_ns = now_ns.max(self.latest_ns);
        // Entries whose time is up stay at the head of the list until a frame teaches something.
        let old = std::iter::successors(self.slab.get(self.oldest as usize), |entry| {
            self.slab.get(entry.next as usize)
        });
        self.learnt - old.take_while(|entry| now_ns - entry.seen_ns > self.ageing_ns).count()
    }

    /// Time after which an entry whose address has not been seen is gone, nanoseconds.
    #[must_use]
    pub fn ageing_ns(&self) -> u64 {
        self.ageing_ns
    }

    /// Least time after which a frame from an entry's place is recorded, nanoseconds; see [`MacTable::learn`].
    #[must_use]
    pub fn refresh_ns(&self) -> u64 {
        self.refresh_ns
    }

    /// Removes a learnt entry whose time is up, and returns its address; `None` if there is no such entry. For a copy of
    /// the table elsewhere: entries that nobody removes are found no more in any case.
    pub fn expire(&mut self, now_ns: u64) -> Option<MacKey> {
        self.latest_ns = self.latest_ns.max(now_ns);
        self.forget_oldest()
    }

    /// Removes learnt entries whose time is up.
    fn forget_old(&mut self) {
        while self.forget_oldest().is_some() {}
    }

    /// Removes the learnt entry that was seen first, if its time is up.
    fn forget_oldest(&mut self) -> Option<MacKey> {
        let entry = self.slab.get(self.oldest as usize)?;
        if self.latest_ns - entry.seen_ns <= self.ageing_ns {
            return None;
        }
        let (place, mac) = (self.oldest, entry.mac);
        self.unlink(place);
        self.unindex(mac);
        if let Some(entry) = self.slab.get_mut(place as usize) {
            entry.next = self.free;
        }
        self.free = place;
        self.learnt -= 1;
        Some(mac)
    }

    /// Enters a static address.
    fn fix(&mut self, mac: MacKey, hop: u16) {
        if self.find(mac).is_none() {
            self.place(Entry { mac, seen_ns: 0, previous: NONE, next: NONE, hop, fixed: true });
        }
    }

    /// Enters a learnt address, which has no entry; there is room for it.
    fn enter(&mut self, mac: MacKey, hop: u16, seen_ns: u64) {
        let place = self.place(Entry { mac, seen_ns, previous: NONE, next: NONE, hop, fixed: false });
        self.link(place);
        self.learnt += 1;
    }

    /// Stores an entry, and indexes it.
    fn place(&mut self, entry: Entry) -> u32 {
        let place = self.free;
        let place = match self.slab.get_mut(place as usize) {
            Some(unused) => {
                self.free = unused.next;
                *unused = entry;
                place
            }
            None => {
                self.slab.push(entry);
                self.slab.len() as u32 - 1 // at most ENTRIES_MAX
            }
        };
        let key = entry.mac << 16 | USED;
        let fresh_until = if entry.fixed { ALWAYS } else { self.fresh_until(entry.seen_ns) };
        // At most ENTRIES_MAX places.
        let fact = Fact { fresh_until, place: place as u16, hop: entry.hop };
        let mut at = self.home(entry.mac);
        // The index is at most half full.
        while let Some(bucket) = self.index.get_mut(at) {
            if let Some(way) = bucket.keys.iter().position(|key| *key == 0) {
                (bucket.keys[way], bucket.facts[way]) = (key, fact);
                break;
            }
            at = (at + 1) & self.mask;
        }
        place
    }

    /// Appends an entry to the list.
    fn link(&mut self, place: u32) {
        let before = std::mem::replace(&mut self.newest, place);
        if let Some(entry) = self.slab.get_mut(place as usize) {
            (entry.previous, entry.next) = (before, NONE);
        }
        match self.slab.get_mut(before as usize) {
            Some(entry) => entry.next = place,
            None => self.oldest = place,
        }
    }

    /// Takes an entry off the list.
    fn unlink(&mut self, place: u32) {
        let Some(Entry { previous, next, .. }) = self.slab.get(place as usize).copied() else { return };
        match self.slab.get_mut(previous as usize) {
            Some(entry) => entry.next = next,
            None => self.oldest = next,
        }
        match self.slab.get_mut(next as usize) {
            Some(entry) => entry.previous = previous,
            None => self.newest = previous,
        }
    }

    /// Removes an address from the index, and moves those behind it so that each is still found from its home, and
    /// those in use come first in a bucket.
    fn unindex(&mut self, mac: MacKey) {
        let Some(mut hole) = self.find(mac) else { return };
        let mut at = hole;
        loop {
            at = if at.way + 1 < WAYS {
                Slot { way: at.way + 1, ..at }
            } else {
                Slot { bucket: (at.bucket + 1) & self.mask, way: 0 }
            };
            let Some(bucket) = self.index.get(at.bucket) else { break };
            let (key, fact) = (bucket.keys[at.way], bucket.facts[at.way]);
            if key == 0 {
                break;
            }
            // It may move into the hole unless its home is behind the hole.
            let from_home = at.bucket.wrapping_sub(self.home(key >> 16)) & self.mask;
            let from_hole = at.bucket.wrapping_sub(hole.bucket) & self.mask;
            if from_home >= from_hole {
                self.set(hole, key, fact);
                hole = at;
            }
        }
        self.set(hole, 0, EMPTY.facts[0]);
    }

    #[inline(always)]
    fn fact(&self, slot: Slot) -> Option<Fact> {
        self.index.get(slot.bucket).map(|bucket| bucket.facts[slot.way])
    }

    fn set(&mut self, slot: Slot, key: u64, fact: Fact) {
        if let Some(bucket) = self.index.get_mut(slot.bucket) {
            (bucket.keys[slot.way], bucket.facts[slot.way]) = (key, fact);
        }
    }

    /// [`Fact::fresh_until`] of an entry.
    fn fresh_until(&self, seen_ns: u64) -> u32 {
        let ticks = seen_ns.saturating_add(self.refresh_ns) >> TICK_NS_LOG2;
        u32::try_from(ticks).ok().filter(|ticks| *ticks != ALWAYS).unwrap_or(0)
    }

    /// The bucket at which the search for an address begins.
    #[inline(always)]
    fn home(&self, mac: MacKey) -> usize {
        let product = u128::from(mac ^ self.keys[0]) * u128::from(self.keys[1]);
        ((product >> 64) as u64 ^ product as u64) as usize & self.mask
    }

    /// Where an address is in the index; its entry may be old. Compares all ways of a bucket without a branch,
    /// because a branch on the matching way would be unpredictable.
    #[inline(always)]
    fn find(&self, mac: MacKey) -> Option<Slot> {
        let wanted = mac << 16 | USED;
        let mut at = self.home(mac);
        // The index is at most half full, so there is a bucket with an empty way.
        loop {
            let keys = &self.index.get(at)?.keys;
            let is_at = |way: usize| keys[way] == wanted;
            let way = usize::from(is_at(1));
            let way = if is_at(2) { 2 } else { way };
            let way = if is_at(3) { 3 } else { way };
            if is_at(way) {
                return Some(Slot { bucket: at, way });
            }
            if keys[WAYS - 1] == 0 {
                return None;
            }
            at = (at + 1) & self.mask;
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a test may panic: that is how it fails
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    /// The same in the simplest form.
    struct Model {
        fixed: HashMap<MacKey, u16>,
        /// Hop, time seen, and a number that rises with each record.
        learnt: HashMap<MacKey, (u16, u64, u64)>,
        learnt_max: usize,
        ageing_ns: u64,
        latest_ns: u64,
        records: u64,
    }

    impl Model {
        fn forget_old(&mut self) {
            self.learnt.retain(|_, (_, seen, _)| self.latest_ns - *seen <= self.ageing_ns);
        }

        fn get(&self, mac: MacKey, now_ns: u64) -> Option<Found> {
            let now_ns = now_ns.max(self.latest_ns);
            let learnt = self.learnt.get(&mac).filter(|(_, seen, _)| now_ns - seen <= self.ageing_ns);
            let fixed = self.fixed.get(&mac).map(|hop| Found { hop: *hop, fixed: true, is_fresh: true });
            let is_fresh = |seen| now_ns - seen < SECOND_NS.min(self.ageing_ns / 8);
            let found = |(hop, seen, _): &(u16, u64, u64)| Found {
                hop: *hop,
                fixed: false,
                is_fresh: is_fresh(*seen),
            };
            fixed.or(learnt.map(found))
        }

        fn learn(&mut self, mac: MacKey, hop: u16, now_ns: u64) -> Learnt {
            if self.fixed.contains_key(&mac) {
                return Learnt::Fixed;
            }
            let refresh_ns = SECOND_NS.min(self.ageing_ns / 8);
            let now_ns = now_ns.max(self.latest_ns);
            if self.learnt.get(&mac).is_some_and(|(old, seen, _)| *old == hop && now_ns - seen < refresh_ns) {
                return Learnt::Known;
            }
            self.latest_ns = now_ns;
            self.forget_old();
            self.records += 1;
            let count = self.learnt.len();
            match self.learnt.get_mut(&mac) {
                Some(entry) => {
                    let moved = entry.0 != hop;
                    *entry = (hop, now_ns, self.records);
                    if moved { Learnt::Moved } else { Learnt::Known }
                }
                None if count == self.learnt_max => Learnt::Full,
                None => {
                    self.learnt.insert(mac, (hop, now_ns, self.records));
                    Learnt::New
                }
            }
        }

        fn configure(&mut self, fixed: HashMap<MacKey, u16>, learnt_max: usize, ageing_ns: u64) {
            (self.fixed, self.learnt_max, self.ageing_ns) = (fixed, learnt_max, ageing_ns);
            self.forget_old();
            let mut kept: Vec<_> = self.learnt.drain().collect();
            kept.retain(|(mac, (hop, ..))| !self.fixed.contains_key(mac) && *hop != 3);
            kept.sort_unstable_by_key(|(_, (_, _, record))| std::cmp::Reverse(*record));
            kept.truncate(learnt_max);
            let now = |(mac, (hop, seen, record)): (MacKey, (u16, u64, u64))| (mac, (hop ^ 1, seen, record));
            self.learnt = kept.into_iter().map(now).collect();
        }
    }

    #[derive(Clone, Debug)]
    enum Step {
        Learn(MacKey, u16, i64),
        Configure(HashMap<MacKey, u16>, usize, u64),
    }

    fn mac() -> impl Strategy<Value = MacKey> {
        // The least, the largest, and some of both.
        prop_oneof![0u64..12, (0u64..4).prop_map(|n| (1 << 48) - 1 - n)]
    }

    fn step() -> impl Strategy<Value = Step> {
        let wait = prop_oneof![8 => 0i64..400_000_000, 1 => 0..30_000_000_000i64, 1 => -2_000_000_000i64..0];
        let learn = (mac(), 0u16..4, wait).prop_map(|(mac, hop, wait)| Step::Learn(mac, hop, wait));
        let fixed = prop::collection::hash_map(mac(), 0u16..4, 0..3);
        let ageing = prop_oneof![Just(4_000_000_000), Just(20_000_000_000)];
        let configure =
            (fixed, 0usize..8, ageing).prop_map(|(fixed, max, ageing)| Step::Configure(fixed, max, ageing));
        prop_oneof![60 => learn, 1 => configure]
    }

    proptest! {
        #[test]
        fn agrees_with_a_map(steps in prop::collection::vec(step(), 1..300)) {
            let (max, ageing_ns) = (5, 10_000_000_000);
            let mut table = MacTable::new(&[(1, 2)], max, ageing_ns);
            let mut model = Model {
                fixed: [(1, 2)].into(),
                learnt: HashMap::new(),
                learnt_max: max,
                ageing_ns,
                latest_ns: 0,
                records: 0,
            };
            let mut now_ns = 5_000_000_000_u64;
            for step in steps {
                match step {
                    Step::Learn(mac, hop, wait) => {
                        now_ns = now_ns.saturating_add_signed(wait);
                        prop_assert_eq!(table.get(mac, now_ns), model.get(mac, now_ns));
                        let short = table.fresh(mac, now_ns);
                        let found = model.get(mac, now_ns).filter(|found| found.is_fresh);
                        prop_assert!(short.is_none() || short == found.map(|found| found.hop));
                        let learnt = table.learn(mac, hop, now_ns);
                        prop_assert_eq!(learnt, model.learn(mac, hop, now_ns));
                        // What was entered just now is fresh for more than a tick.
                        if matches!(learnt, Learnt::New | Learnt::Moved) {
                            prop_assert_eq!(table.fresh(mac, now_ns), Some(hop));
                        }
                    }
                    Step::Configure(fixed, max, ageing_ns) => {
                        let list: Vec<_> = fixed.iter().map(|(mac, hop)| (*mac, *hop)).collect();
                        table = table.with(&list, max, ageing_ns, |hop| (hop != 3).then_some(hop ^ 1));
                        model.configure(fixed, max, ageing_ns);
                    }
                }
                let mut found: Vec<_> = table.entries(now_ns).map(|one| (one.mac, one.hop, one.fixed)).collect();
                let all = model.fixed.keys().chain(model.learnt.keys());
                let all = all.filter_map(|mac| Some((*mac, model.get(*mac, now_ns)?)));
                let mut expected: Vec<_> = all.map(|(mac, one)| (mac, one.hop, one.fixed)).collect();
                prop_assert_eq!(table.learnt_count(now_ns), found.iter().filter(|(.., fixed)| !fixed).count());
                found.sort_unstable();
                expected.sort_unstable();
                prop_assert_eq!(found, expected);
            }
        }
    }

    /// Address, hop, and whether it is static.
    fn rows(table: &MacTable, now_ns: u64) -> Vec<(MacKey, u16, bool)> {
        let mut rows: Vec<_> = table.entries(now_ns).map(|one| (one.mac, one.hop, one.fixed)).collect();
        rows.sort_unstable();
        rows
    }

    #[test]
    fn what_another_table_had_learnt_is_adopted() {
        let mut before = MacTable::new(&[(1, 0)], 9, 100 * SECOND_NS);
        for (mac, hop, at) in [(2, 1, 10), (3, 1, 80), (4, 2, 90), (5, 2, 95), (6, 3, 99)] {
            assert_eq!(before.learn(mac, hop, at * SECOND_NS), Learnt::New);
        }
        let left: Vec<_> = before.entries(100 * SECOND_NS).collect();
        // Its clock is another one. Address 5 is static there, and 6 has moved.
        let mut after = MacTable::new(&[(5, 7)], 4, 60 * SECOND_NS);
        assert_eq!(after.learn(6, 1, 1_000 * SECOND_NS), Learnt::New);
        after.adopt(&left, 1_000 * SECOND_NS);
        // Address 1 was static, and 2 is too old.
        assert_eq!(
            rows(&after, 1_000 * SECOND_NS),
            [(3, 1, false), (4, 2, false), (5, 7, true), (6, 1, false)]
        );
        // Their ages count on: 20 and 10 seconds then, 60 at most.
        assert_eq!(rows(&after, 1_045 * SECOND_NS), [(4, 2, false), (5, 7, true), (6, 1, false)]);
        // With less room, those seen last.
        let mut small = MacTable::new(&[], 2, 60 * SECOND_NS);
        small.adopt(&[left.clone(), left].concat(), 50 * SECOND_NS);
        assert_eq!(rows(&small, 50 * SECOND_NS), [(5, 2, false), (6, 3, false)]);
        assert_eq!(small.learn(9, 0, 50 * SECOND_NS), Learnt::Full);
    }

    #[test]
    fn a_part_has_only_what_was_asked_for() {
        let mut table = MacTable::new(&[(1, 0)], 9, 60 * SECOND_NS);
        assert!((2..8).all(|mac| table.learn(mac, mac as u16, SECOND_NS) == Learnt::New));
        let part = table.only(&[1, 4, 40, 4]);
        assert_eq!(rows(&part, SECOND_NS), [(1, 0, true), (4, 4, false)]);
        for mac in [1, 4] {
            assert_eq!(part.get(mac, 2 * SECOND_NS), table.get(mac, 2 * SECOND_NS));
        }
        assert_eq!(rows(&part, 62 * SECOND_NS), [(1, 0, true)]);
    }

    #[test]
    fn times_beyond_the_ticks_are_exact_too() {
        let mut table = MacTable::new(&[(1, 2)], 5, 300 * SECOND_NS);
        let late_ns = u64::from(u32::MAX) << TICK_NS_LOG2;
        let times = [(late_ns - SECOND_NS, Learnt::New), (late_ns, Learnt::Known)];
        for (now_ns, learnt) in times.into_iter().chain([(u64::MAX - 400 * SECOND_NS, Learnt::New)]) {
            assert_eq!(table.learn(7, 3, now_ns), learnt);
            assert_eq!(table.get(7, now_ns), Some(Found { hop: 3, fixed: false, is_fresh: true }));
            assert_eq!(table.get(7, now_ns + 2 * SECOND_NS).map(|found| found.is_fresh), Some(false));
            assert_eq!(table.get(1, now_ns), Some(Found { hop: 2, fixed: true, is_fresh: true }));
            assert_eq!(table.learn(1, 4, now_ns), Learnt::Fixed);
            if now_ns == late_ns {
                assert_eq!((table.fresh(7, now_ns), table.fresh(1, now_ns)), (None, None));
            }
        }
    }

    #[test]
    fn the_largest_table_fills_empties_and_fills_again() {
        let max = MacTable::ENTRIES_MAX;
        let mut table = MacTable::new(&[], max + 7, SECOND_NS);
        let mac = |n: usize| (n as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 16;
        for pass in [0u64, 10] {
            let now_ns = pass * SECOND_NS;
            assert!((0..max).all(|n| table.learn(mac(n + pass as usize), n as u16, now_ns) == Learnt::New));
            assert_eq!(table.learn(mac(max + 20), 0, now_ns), Learnt::Full);
            assert!((0..max).all(|n| table.get(mac(n + pass as usize), now_ns).unwrap().hop == n as u16));
            assert_eq!(table.entries(now_ns).count(), max);
        }
    }
}
