//! The papers' table in two SRAM banks (Unnikrishnan §5.1), reproduced faithfully for comparison with
//! [`crate::dag36`].
//!
//! Flow: routes → **Dir** → words of two banks and rows of the Conflict CAM. The card reads them
//! (rtl/tables/hue_dir.sv), and [`Dir::lookup`] is the specification of how; [`words`] has the bits and the
//! steps of a change.
//!
//! ```text
//! bank 1  2^19 entries, by the first 19 bits of the address (a slot) or by the index of a CAM row
//! bank 2  sets of 2^13 entries, by the last 13 bits
//! entry   35      parity, put on and checked by the memory's controller; 0 here
//!         34      flag: 15..0 is a set of bank 2, not a next hop
//!         33..31  output port of the next hop; 0 here, where a next hop's index names its port
//!         30      the entry is reached by a CAM row, not by its own slot
//!         27..16  the network that owns it; 0: none
//!         15..0   next-hop word (65535 = no route), or set
//! CAM     network, prefix of at most 19 bits → index into bank 1
//! ```
//!
//! All networks share both banks. A slot belongs to the first network that has a route there. Routes of other
//! networks in the same slot *conflict*: they are stored at an unused slot elsewhere in bank 1, found
//! first-fit, and a CAM row gives its index. The paper does not say what a network without a route reads in
//! another network's slot, nor how routes are removed. Here, bits 30 to 16 of an entry say which network it
//! belongs to and how it is reached, so no network uses another's entry. If the owner of a slot loses its
//! routes there, a conflicting network takes over the slot. The CAM has the fewest rows possible: one for
//! each largest block of slots with the same answer. Invariants: a slot has an owner if and only if some
//! network has a route there; a change that does not fit changes nothing. Cost: a change rewrites the slots
//! of its prefix and scans all slots of the network (about 0.5 ms).

mod needs;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use thiserror::Error;

use crate::dag::Change;
use crate::types::{NextHop, Prefix4, Vid};

mod place;
pub mod words;

pub use needs::{DirNeeds, DirShape};
use words::{DirEntry, DirWrite};

/// Number of address bits that index bank 1.
pub const SLOT_BITS: u8 = 19;
/// Entries of bank 1.
pub const SLOTS: usize = 1 << SLOT_BITS;
/// Entries of a set in bank 2.
pub const SET_ENTRIES: usize = 1 << (32 - SLOT_BITS);
/// Sets of a bank of 2^19 entries.
pub const SETS: u32 = (SLOTS / SET_ENTRIES) as u32;
/// Rows of the paper's Conflict CAM.
pub const CAM_ROWS: usize = 32;
/// Most sets that an entry can name.
pub const SETS_MAX: u32 = 1 << 16;

/// In [`Network::slots`]: `EMPTY` means no route, `SET` marks a set, and other values are the next-hop index
/// plus one.
const EMPTY: u32 = 0;
const SET: u32 = 1 << 31;

/// Size limits of a table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DirLimits {
    /// Sets in bank 2, at most [`SETS_MAX`].
    pub sets: u32,
    /// Rows of the Conflict CAM.
    pub cam_rows: usize,
}

impl Default for DirLimits {
    /// The paper's limits: two banks of 2^19 entries, 32 rows.
    fn default() -> Self {
        Self { sets: SETS, cam_rows: CAM_ROWS }
    }
}

/// Why a change was rejected. The table is unchanged.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum DirError {
    /// Bank 2 has no free set for a network's longer prefixes.
    #[error(
        "network {vid}: prefixes longer than {SLOT_BITS} bits need {needed} sets of bank 2, which has {max}"
    )]
    Sets {
        /// Network of the rejected change.
        vid: Vid,
        /// Sets of all networks after the change.
        needed: u32,
        /// The limit.
        max: u32,
    },
    /// The Conflict CAM is full.
    #[error(
        "network {vid}: prefixes that conflict with other networks need {needed} rows of the Conflict CAM, which has {max}"
    )]
    Cam {
        /// Network of the rejected change.
        vid: Vid,
        /// Rows of all networks after the change.
        needed: usize,
        /// The limit.
        max: usize,
    },
    /// Bank 1 has no unused slot for conflicting routes.
    #[error(
        "network {vid}: routes and conflicting prefixes need {needed} entries of bank 1, which has {SLOTS}"
    )]
    Bank {
        /// Network of the rejected change.
        vid: Vid,
        /// Entries of all networks after the change.
        needed: usize,
    },
    /// The network is not in the table (the caller's fault).
    #[error("network {0} has no table: add it first")]
    UnknownNetwork(Vid),
    /// The network already is in the table (the caller's fault).
    #[error("network {0} has a table already")]
    DuplicateNetwork(Vid),
}

/// Memory that a table uses.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct DirUsage {
    /// Entries of bank 1 at their own slots.
    pub slots: usize,
    /// Sets of bank 2.
    pub sets: u32,
    /// Rows of the Conflict CAM, each with an entry of bank 1.
    pub cam_rows: usize,
}

impl DirUsage {
    /// Words in use in both banks; sets count as a whole.
    #[must_use]
    pub const fn words(&self) -> u64 {
        self.slots as u64 + self.cam_rows as u64 + self.sets as u64 * SET_ENTRIES as u64
    }
}

/// Result of a lookup.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DirFound {
    /// Next-hop word.
    pub word: u16,
    /// Number of words read from the banks.
    pub reads: u8,
    /// Whether a row of the CAM matched.
    pub by_cam: bool,
}

/// A network's longer prefixes in one slot.
#[derive(Clone, Debug)]
struct Placed {
    /// Next-hop words.
    words: Box<[u16]>,
    set: Option<u32>,
}

/// Routes of a network, and the result for each slot.
#[derive(Clone)]
struct Network {
    /// Prefixes of up to [`SLOT_BITS`] bits, by length.
    short: Vec<HashMap<u32, NextHop>>,
    /// Longer prefixes, by slot.
    long: BTreeMap<u32, BTreeMap<Prefix4, NextHop>>,
    /// The answer for each slot.
    slots: Vec<u32>,
    sets: BTreeMap<u32, Placed>,
}

/// A CAM row and the entry that it leads to.
#[derive(Clone, Copy)]
struct Row {
    row: u32,
    index: u32,
}

/// The state of a slot before a change.
struct Undo {
    slot: u32,
    code: u32,
    placed: Option<Placed>,
    owner: u16,
}

/// A change of a network that is in force except for its words.
struct Planned {
    /// Routes before.
    before: Vec<Change<u32>>,
    undo: Vec<Undo>,
    /// All CAM rows of the networks whose rows may change.
    rows: BTreeMap<Vid, Vec<Prefix4>>,
}

/// The table; see the module documentation.
#[derive(Clone)]
pub struct Dir {
    limits: DirLimits,
    networks: BTreeMap<Vid, Network>,
    /// Owner of each slot; 0 means none.
    owners: Vec<u16>,
    /// Rows of the CAM.
    cam: BTreeMap<(Vid, Prefix4), Row>,
    /// Free rows below `rows_used`.
    rows_free: BTreeSet<u32>,
    rows_used: u32,
    /// Unowned slots that rows lead to, or led to before the change in progress.
    indirect: BTreeMap<u32, (Vid, Prefix4)>,
    sets_free: BTreeSet<u32>,
    bank1: Vec<u64>,
    bank2: Vec<u64>,
    /// No slot below this one is unused.
    lowest: u32,
    /// Steps of the changes, if they are recorded.
    writes: Option<Vec<DirWrite>>,
    interruptions: u64,
}

const fn slot_of(address: u32) -> u32 {
    address >> (32 - SLOT_BITS)
}

impl Network {
    fn new() -> Self {
        Self {
            short: vec![HashMap::new(); usize::from(SLOT_BITS) + 1],
            long: BTreeMap::new(),
            slots: vec![EMPTY; SLOTS],
            sets: BTreeMap::new(),
        }
    }

    fn route(&self, prefix: Prefix4) -> Option<NextHop> {
        match self.short.get(usize::from(prefix.len())) {
            Some(same_length) => same_length.get(&prefix.addr()).copied(),
            None => self.long.get(&slot_of(prefix.addr()))?.get(&prefix).copied(),
        }
    }

    fn set_route(&mut self, prefix: Prefix4, hop: Option<NextHop>) {
        if let Some(same_length) = self.short.get_mut(usize::from(prefix.len())) {
            match hop {
                Some(hop) => same_length.insert(prefix.addr(), hop),
                None => same_length.remove(&prefix.addr()),
            };
            return;
        }
        let slot = slot_of(prefix.addr());
        let inside = self.long.entry(slot).or_default();
        match hop {
            Some(hop) => inside.insert(prefix, hop),
            None => inside.remove(&prefix),
        };
        if inside.is_empty() {
            self.long.remove(&slot);
        }
    }

    /// The answer for a slot, computed from the routes.
    fn answer(&self, slot: u32) -> (u32, Option<Box<[u16]>>) {
        let address = slot << (32 - SLOT_BITS);
        let lengths = (0..=SLOT_BITS).zip(&self.short).rev();
        let mut covering = lengths
            .filter_map(|(len, same_length)| same_length.get(&Prefix4::containing(address, len).addr()));
        let base = covering.next().copied();
        let Some(inside) = self.long.get(&slot) else {
            return (base.map_or(EMPTY, |hop| u32::from(hop.get()) + 1), None);
        };
        let mut words = vec![NextHop::word(base); SET_ENTRIES].into_boxed_slice();
        let mut longer: Vec<_> = inside.iter().collect();
        longer.sort_by_key(|(prefix, _)| prefix.len());
        for (prefix, hop) in longer {
            let first = prefix.addr() as usize % SET_ENTRIES;
            let count = 1 << (32 - prefix.len());
            words.iter_mut().skip(first).take(count).for_each(|word| *word = hop.get());
        }
        (SET, Some(words))
    }

    fn code(&self, slot: u32) -> u32 {
        self.slots.get(slot as usize).copied().unwrap_or(EMPTY)
    }
}

/// The largest blocks of slots with the same answer that contain a slot of another network.
fn conflicts(slots: &[u32], vid: u16, owners: &[u16]) -> Vec<Prefix4> {
    let mut blocks = Vec::new();
    let mut first = 0;
    while first < SLOTS {
        let Some(code) = slots.get(first).copied() else { break };
        let alike = |slot: &u32| *slot == code && code != SET;
        let run = slots.get(first + 1..).unwrap_or_default().iter().take_while(|slot| alike(slot)).count();
        let end = first + 1 + run;
        while code != EMPTY && first < end {
            // The largest aligned block that starts here and fits into the run.
            let mut bits = first.trailing_zeros().min(u32::from(SLOT_BITS));
            while first + (1 << bits) > end {
                bits -= 1;
            }
            let whose = owners.get(first..first + (1 << bits)).unwrap_or_default();
            if whose.iter().any(|owner| *owner != vid) {
                let address = (first as u32) << (32 - SLOT_BITS);
                blocks.push(Prefix4::containing(address, SLOT_BITS - bits as u8));
            }
            first += 1 << bits;
        }
        first = end;
    }
    blocks
}

impl Dir {
    /// Creates an empty table.
    #[must_use]
    pub fn new(limits: DirLimits) -> Self {
        let limits = DirLimits { sets: limits.sets.min(SETS_MAX), ..limits };
        Self {
            limits,
            networks: BTreeMap::new(),
            owners: vec![0; SLOTS],
            cam: BTreeMap::new(),
            rows_free: BTreeSet::new(),
            rows_used: 0,
            indirect: BTreeMap::new(),
            sets_free: (0..limits.sets).collect(),
            bank1: vec![0; SLOTS],
            bank2: Vec::new(),
            lowest: 0,
            writes: None,
            interruptions: 0,
        }
    }

    /// Adds a network without routes.
    ///
    /// # Errors
    /// `DuplicateNetwork`.
    pub fn add_network(&mut self, vid: Vid) -> Result<(), DirError> {
        if self.networks.contains_key(&vid) {
            return Err(DirError::DuplicateNetwork(vid));
        }
        self.networks.insert(vid, Network::new());
        Ok(())
    }

    /// Removes a network and all of its routes.
    ///
    /// # Errors
    /// `UnknownNetwork`.
    pub fn remove_network(&mut self, vid: Vid) -> Result<(), DirError> {
        let network = self.networks.get(&vid).ok_or(DirError::UnknownNetwork(vid))?;
        let lengths = (0..=SLOT_BITS).zip(&network.short);
        let short =
            lengths.flat_map(|(len, same)| same.keys().map(move |addr| Prefix4::containing(*addr, len)));
        let long = network.long.values().flat_map(BTreeMap::keys).copied();
        let all: Vec<Change<u32>> = short.chain(long).map(|prefix| (prefix, None)).collect();
        self.apply(vid, &all)?;
        self.networks.remove(&vid);
        Ok(())
    }

    /// The next hop of exactly this prefix.
    #[must_use]
    pub fn route(&self, vid: Vid, prefix: Prefix4) -> Option<NextHop> {
        self.networks.get(&vid)?.route(prefix)
    }

    /// Applies changes to one network: all of them or none.
    ///
    /// # Errors
    /// `UnknownNetwork`; `Sets`, `Cam` or `Bank` if the change does not fit.
    pub fn apply(&mut self, vid: Vid, changes: &[Change<u32>]) -> Result<(), DirError> {
        let planned = self.plan(vid, changes, &BTreeMap::new())?;
        self.place(vid, &planned.undo, &planned.rows);
        Ok(())
    }

    /// Whether these changes of networks would fit one after the other, in this order; nothing is changed.
    /// Networks that are not in the table count as new.
    ///
    /// # Errors
    /// The error of the first change that does not fit.
    pub fn check(&mut self, changes: &[(Vid, Vec<Change<u32>>)]) -> Result<(), DirError> {
        let mut new = Vec::new();
        for (vid, _) in changes {
            if !self.networks.contains_key(vid) {
                self.networks.insert(*vid, Network::new());
                new.push(*vid);
            }
        }
        let mut done = Vec::with_capacity(changes.len());
        let mut rows: BTreeMap<Vid, Vec<Prefix4>> = BTreeMap::new();
        let mut result = Ok(());
        for (vid, changes) in changes {
            match self.plan(*vid, changes, &rows) {
                Ok(planned) => {
                    rows.extend(planned.rows);
                    done.push((*vid, planned.undo, planned.before));
                }
                Err(error) => {
                    result = Err(error);
                    break;
                }
            }
        }
        for (vid, undo, before) in done.into_iter().rev() {
            self.restore(vid, undo, &before);
        }
        for vid in new {
            self.networks.remove(&vid);
        }
        result
    }

    /// Changes routes, answers and owners of slots, but no word: [`Self::place`] or [`Self::restore`] must follow.
    /// `earlier` has the CAM rows of networks after the changes planned before this one. On an error, nothing has
    /// changed.
    fn plan(
        &mut self,
        vid: Vid,
        changes: &[Change<u32>],
        earlier: &BTreeMap<Vid, Vec<Prefix4>>,
    ) -> Result<Planned, DirError> {
        let network = self.networks.get_mut(&vid).ok_or(DirError::UnknownNetwork(vid))?;
        let mut before: Vec<Change<u32>> = Vec::with_capacity(changes.len());
        let mut touched = BTreeSet::new();
        for (prefix, hop) in changes {
            before.push((*prefix, network.route(*prefix)));
            network.set_route(*prefix, *hop);
            touched.extend(slot_of(prefix.addr())..=slot_of(prefix.last()));
        }
        // Check this before the words of sets are computed: the words of a large table would take gigabytes.
        let needed: usize = self.networks.values().map(|network| network.long.len()).sum();
        let needed = u32::try_from(needed).unwrap_or(u32::MAX);
        if needed > self.limits.sets {
            self.restore(vid, Vec::new(), &before);
            return Err(DirError::Sets { vid, needed, max: self.limits.sets });
        }
        let undo = self.answer_slots(vid, touched);
        let affected = self.own_slots(vid, &undo);
        let rows: BTreeMap<Vid, Vec<Prefix4>> = affected
            .iter()
            .filter_map(|vid| {
                Some((*vid, conflicts(&self.networks.get(vid)?.slots, vid.get(), &self.owners)))
            })
            .collect();
        if let Err(error) = self.fits(vid, &rows, earlier) {
            self.restore(vid, undo, &before);
            return Err(error);
        }
        Ok(Planned { before, undo, rows })
    }

    /// Computes the answers of these slots again. Returns the previous states of those that differ.
    fn answer_slots(&mut self, vid: Vid, touched: BTreeSet<u32>) -> Vec<Undo> {
        let mut undo = Vec::new();
        let Some(network) = self.networks.get_mut(&vid) else { return undo };
        for slot in touched {
            let (code, words) = network.answer(slot);
            let same_set = network.sets.get(&slot).map(|placed| &placed.words) == words.as_ref();
            if network.code(slot) == code && same_set {
                continue;
            }
            let owner = self.owners.get(slot as usize).copied().unwrap_or(0);
            let placed = network.sets.remove(&slot);
            undo.push(Undo { slot, code: network.code(slot), placed, owner });
            if let Some(words) = words {
                network.sets.insert(slot, Placed { words, set: None });
            }
            if let Some(place) = network.slots.get_mut(slot as usize) {
                *place = code;
            }
        }
        undo
    }

    /// Changes the owners of slots whose answers have changed. Returns the networks whose rows may change.
    fn own_slots(&mut self, vid: Vid, undo: &[Undo]) -> BTreeSet<Vid> {
        let mut affected = BTreeSet::from([vid]);
        for change in undo {
            let has = self.networks.get(&vid).is_some_and(|network| network.code(change.slot) != EMPTY);
            let owner = match (has, change.owner) {
                (true, 0) => vid.get(),
                (false, owner) if owner == vid.get() => {
                    let next = self.networks.iter().find(|(_, other)| other.code(change.slot) != EMPTY);
                    next.map_or(0, |(other, _)| {
                        affected.insert(*other);
                        other.get()
                    })
                }
                (_, owner) => owner,
            };
            if let Some(place) = self.owners.get_mut(change.slot as usize) {
                *place = owner;
            }
        }
        affected
    }

    /// Whether everything fits, with these CAM rows of the affected networks.
    fn fits(
        &self,
        vid: Vid,
        rows: &BTreeMap<Vid, Vec<Prefix4>>,
        earlier: &BTreeMap<Vid, Vec<Prefix4>>,
    ) -> Result<(), DirError> {
        let planned = |owner: &Vid| rows.contains_key(owner) || earlier.contains_key(owner);
        let others = self.cam.keys().filter(|(owner, _)| !planned(owner)).count();
        let before = earlier.iter().filter(|(owner, _)| !rows.contains_key(owner));
        let cam = others + rows.iter().chain(before).map(|(_, rows)| rows.len()).sum::<usize>();
        if cam > self.limits.cam_rows {
            return Err(DirError::Cam { vid, needed: cam, max: self.limits.cam_rows });
        }
        let needed = self.owners.iter().filter(|owner| **owner != 0).count() + cam;
        if needed > SLOTS {
            return Err(DirError::Bank { vid, needed });
        }
        Ok(())
    }

    /// Restores the previous state. No word has been written yet.
    fn restore(&mut self, vid: Vid, undo: Vec<Undo>, before: &[Change<u32>]) {
        let Some(network) = self.networks.get_mut(&vid) else { return };
        for (prefix, hop) in before.iter().rev() {
            network.set_route(*prefix, *hop);
        }
        for Undo { slot, code, placed, owner } in undo {
            if let Some(place) = network.slots.get_mut(slot as usize) {
                *place = code;
            }
            match placed {
                Some(placed) => network.sets.insert(slot, placed),
                None => network.sets.remove(&slot),
            };
            if let Some(place) = self.owners.get_mut(slot as usize) {
                *place = owner;
            }
        }
    }

    /// Records the steps of all later changes for [`take_writes`](Self::take_writes). Call it on an empty
    /// table to record all.
    pub fn record_writes(&mut self) {
        self.writes.get_or_insert_default();
    }

    /// Returns the steps recorded since the last call, for memories that were all 0. After every step, each
    /// lookup gets either the old answer or the new one for its address, and never another network's. There
    /// is one exception: if new rows, sets or entries do not fit beside the old ones, lookups of these routes
    /// may find no route for a while. [`interruptions`](Self::interruptions) counts such changes.
    pub fn take_writes(&mut self) -> Vec<DirWrite> {
        self.writes.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Looks up an address: in the CAM first, then in one bank or both.
    #[must_use]
    pub fn lookup(&self, vid: Vid, address: u32) -> DirFound {
        let row = |len| self.cam.get(&(vid, Prefix4::containing(address, len)));
        let index = (0..=SLOT_BITS).rev().find_map(row).map(|row| row.index);
        let by_cam = index.is_some();
        let word = self.bank1.get(index.unwrap_or(slot_of(address)) as usize).copied().unwrap_or(0);
        let entry = DirEntry::decode(word);
        if (entry.vid, entry.by_cam) != (Some(vid), by_cam) {
            return DirFound { word: NextHop::NONE_WORD, reads: 1, by_cam };
        }
        if !entry.set {
            return DirFound { word: entry.value, reads: 1, by_cam };
        }
        let at = usize::from(entry.value) * SET_ENTRIES + address as usize % SET_ENTRIES;
        let entry = DirEntry::decode(self.bank2.get(at).copied().unwrap_or(0));
        let word = if entry.vid == Some(vid) { entry.value } else { NextHop::NONE_WORD };
        DirFound { word, reads: 2, by_cam }
    }

    /// Number of changes so far that removed old words before the new ones had room.
    #[must_use]
    pub const fn interruptions(&self) -> u64 {
        self.interruptions
    }

    /// The memory in use.
    #[must_use]
    pub fn usage(&self) -> DirUsage {
        DirUsage {
            slots: self.owners.iter().filter(|owner| **owner != 0).count(),
            sets: self.networks.values().map(|network| network.sets.len() as u32).sum(),
            cam_rows: self.cam.len(),
        }
    }

    /// Words that a network's table would use on its own, and words that its removal would free (about a
    /// millisecond).
    #[must_use]
    pub fn words_of(&self, vid: Vid) -> (u64, u64) {
        let Some(network) = self.networks.get(&vid) else { return (0, 0) };
        let sets = network.sets.len() as u64 * SET_ENTRIES as u64;
        let slots = network.slots.iter().filter(|code| **code != EMPTY).count() as u64;
        // Its slots go to others that have a route there. Those then need fewer rows.
        let mut owners = self.owners.clone();
        let (mut slots_freed, mut affected) = (0, BTreeSet::new());
        for (slot, owner) in (0u32..).zip(&mut owners).filter(|(_, owner)| **owner == vid.get()) {
            let next = self
                .networks
                .iter()
                .find(|(other, at)| **other != vid && at.code(slot) != EMPTY)
                .map(|(other, _)| *other);
            slots_freed += u64::from(next.is_none());
            *owner = next.map_or(0, Vid::get);
            affected.extend(next);
        }
        let of = |which: Vid| self.cam.keys().filter(|(owner, _)| *owner == which).count() as u64;
        let fewer = affected.iter().filter_map(|other| {
            let after = conflicts(&self.networks.get(other)?.slots, other.get(), &owners).len() as u64;
            Some(of(*other).saturating_sub(after))
        });
        (slots + sets, sets + slots_freed + of(vid) + fewer.sum::<u64>())
    }

    /// Number of routes of a network.
    #[must_use]
    pub fn routes_of(&self, vid: Vid) -> usize {
        self.networks.get(&vid).map_or(0, |network| {
            network.short.iter().map(HashMap::len).sum::<usize>()
                + network.long.values().map(BTreeMap::len).sum::<usize>()
        })
    }

    /// Words of bank 1, by index.
    #[must_use]
    pub fn bank1(&self) -> &[u64] {
        &self.bank1
    }

    /// Words of bank 2, by index, up to the last one used.
    #[must_use]
    pub fn bank2(&self) -> &[u64] {
        &self.bank2
    }

    /// Whether the network is in the table.
    #[must_use]
    pub fn has(&self, vid: Vid) -> bool {
        self.networks.contains_key(&vid)
    }

    /// Rows of the Conflict CAM, in arbitrary order: at most one row matches an address.
    pub fn cam(&self) -> impl Iterator<Item = (Vid, Prefix4, u32)> + '_ {
        self.cam.iter().map(|((vid, prefix), row)| (*vid, *prefix, row.index))
    }
}
