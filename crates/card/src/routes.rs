//! Routes and next hops of images that share them: the trie in words of its levels (`dag36`), and one table of next
//! hops.
//!
//! Flow: program, or changes of it → **routes** → writes → device. A change is computed completely, against models of
//! the card's memories, before a word is written. A network's new program becomes a separate table beside the old
//! one. Equal parts are stored once, so only differences are written; then one write points the network's row to the
//! new root. Changes of routes become words that are patched in place, or new nodes up to the level where a patch is
//! enough (ADR-0017). Words and rows that are no longer referred to are kept until the card has retired every record
//! that it had accepted by that time.
//!
//! The trie belongs to the driver, or follows the store that software reads ([`crate::follow`]). In the second case,
//! a network's table has the network's id, and programs contain no routes.

use std::collections::HashMap;
use std::ops::Range;

use hue_planes::Kind;
use hue_planes::group::Slots;
use hue_substrate::{Entries, Program, SubstrateError};
use hue_tables::dag36::{Dag36Error, words_of, words_of_level};
use hue_tables::dag36_levels::{Patch, Retired, Write};
use hue_tables::layout::{Ref, Runs};
use hue_tables::{
    Account, Change, Dag, Dag36Levels, Delta, Key, Limits, NextHop, Prefix, Prefix4, Prefix6, TableError,
    TableId, Vid,
};
use thiserror::Error;

use crate::device::{Description, Device, Layout};
use crate::error::{CardError, NAME, broken};
use crate::generated::{Level0Row, Level1Row, Level2Row, Level3Row, SramRow};
use crate::groups::{GroupRun, Groups, write_slots};
use crate::patterns::{self, Patterns};
use crate::plan;
use crate::policies::{self, Encoded, Policies, PolicyRuns};
use crate::records::Mark;
use crate::registers::Registers;
use crate::rows::{Row, Table};
use crate::runs::Rows;

/// Memories of the levels.
const MEMORIES: [Table; 4] = [Level0Row::TABLE, Level1Row::TABLE, Level2Row::TABLE, Level3Row::TABLE];
/// Names of the levels' memories.
pub const LEVELS: [&str; 4] =
    [Level0Row::TABLE.name, Level1Row::TABLE.name, Level2Row::TABLE.name, Level3Row::TABLE.name];
/// The item of "no route".
const NO_ROUTE: u64 = 0xffff;
/// Size limit of the store that the levels follow, in bytes: more than any card's levels hold.
const STORE_BYTES_MAX: u64 = 256 << 20;

impl Description {
    /// Words that a node of a trie takes in this image's tables; `None` if planes have tables of their own.
    pub fn words_of_node(&self) -> Option<fn(&Runs) -> u64> {
        match self.layout {
            Layout::Tcam | Layout::Dir => None,
            Layout::Dag36 => Some(words_of_level),
            Layout::Sram => Some(words_of),
        }
    }
}

/// The store of the trie.
enum Store {
    /// The driver's own.
    Own(Box<Dag>),
    /// An external one, with the root of each table.
    Followed(HashMap<TableId, Ref>),
}

/// The tables of all networks.
pub struct Shared {
    store: Store,
    levels: Dag36Levels,
    hops: Rows,
    groups: Groups,
    policies: Policies,
    patterns: Patterns,
    /// Words of each memory.
    words_max: Vec<u32>,
    /// Retired items, each with the mark after which no new record could refer to it.
    waiting: Vec<(Mark, Retired, Freed)>,
}

/// The root items of a network's tables, for its row.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Roots {
    /// Of its table, or of the one with short keys.
    pub root: u64,
    /// Of its table with long keys, if it has both.
    pub ipv6: u64,
}

impl Roots {
    /// No routes.
    const NONE: Self = Self { root: NO_ROUTE, ipv6: NO_ROUTE };
}

/// A network's part of the shared tables.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Held {
    /// Its id in the store, which is used only there. One id names its tables of both widths.
    pub table: Vid,
    /// Rows for its next hops; the last may not be in use yet.
    pub hops: Range<u32>,
    /// Runs of slots of those next hops that are groups.
    pub groups: Vec<GroupRun>,
    /// Runs of its routes by source, if the card decides its packets, or soon will.
    pub policies: Option<PolicyRuns>,
    /// The run of its entries (kind `extract`), likewise.
    pub patterns: Option<Range<u32>>,
}

/// Rows and slots that a change gives back.
#[derive(Default)]
struct Freed {
    hops: Range<u32>,
    slots: Vec<Range<u32>>,
    policies: Option<PolicyRuns>,
    patterns: Option<Range<u32>>,
}

/// One network's new program, computed but not written.
#[must_use = "write it and call `switched`, or call `undo`"]
pub struct Switch {
    /// Route words, to be written first.
    pub writes: Vec<Write>,
    /// The network's part of the tables after the change.
    pub held: Held,
    before: Option<Held>,
    /// The contents for the network's row.
    pub roots: Roots,
    /// Whether the rows of next hops were allocated for this change. Groups may keep their slots then.
    pub hops_new: bool,
}

impl Switch {
    /// Runs of routes by source that were allocated for this change.
    pub fn new_policies(&self) -> Option<&PolicyRuns> {
        policies_besides(&self.held, self.before.as_ref())
    }

    /// The run of entries that was allocated for this change.
    fn new_patterns(&self) -> Option<&Range<u32>> {
        patterns_besides(&self.held, self.before.as_ref())
    }
}

/// Why a change of routes was refused; nothing has changed.
#[derive(Debug, Error)]
pub enum Refusal {
    /// The driver's own store refused it.
    #[error(transparent)]
    Store(#[from] TableError),
    /// The card's memories refused it.
    #[error(transparent)]
    Level(#[from] Dag36Error),
    /// The card does not answer.
    #[error(transparent)]
    Card(#[from] CardError),
    /// The caller does not own the tables.
    #[error("tables follow an external store: change routes there")]
    Followed,
}

impl Refusal {
    /// Whether the reason is lack of room.
    fn is_full(&self) -> bool {
        matches!(self, Self::Level(Dag36Error::LevelFull { .. } | Dag36Error::Full { .. }))
    }

    /// Converts to a substrate error about a network of an image.
    pub fn of(self, name: &str, image: &str) -> SubstrateError {
        let name = name.to_owned();
        match self {
            Self::Store(error) => SubstrateError::Table { name, error },
            Self::Level(
                Dag36Error::LevelFull { words, words_used, words_max, .. }
                | Dag36Error::Full { words, words_used, words_max },
            ) => SubstrateError::Words {
                name,
                substrate: format!("image {image}"),
                place: match self {
                    Self::Level(Dag36Error::LevelFull { level, .. }) => {
                        LEVELS.get(level).copied().unwrap_or("a level")
                    }
                    _ => "the banks",
                },
                needed: words,
                free: u64::from(words_max).saturating_sub(words_used),
                max: words_max.into(),
            },
            Self::Card(error) => broken(error),
            Self::Level(_) | Self::Followed => {
                SubstrateError::Broken { substrate: NAME, reason: self.to_string() }
            }
        }
    }
}

/// Tables in which networks have runs of rows for next hops.
pub trait HopRows {
    /// Makes room for more next hops than a run has: extends the run or finds another one, with rows to spare.
    ///
    /// # Errors
    /// `Room`, `Broken`.
    fn grow_hops<R: Registers>(
        &mut self,
        run: &Range<u32>,
        needed: usize,
        name: &str,
        device: &mut Device<R>,
    ) -> Result<Range<u32>, SubstrateError>;

    /// A run for slots of a group.
    ///
    /// # Errors
    /// `Room`, `Broken`.
    fn take_slots<R: Registers>(
        &mut self,
        slots: &Slots,
        name: &str,
        device: &mut Device<R>,
    ) -> Result<Range<u32>, SubstrateError>;

    /// Groups, if the tables have any.
    fn groups(&mut self) -> Option<&mut Groups>;

    /// After `mark`, no new record refers to these rows and slots.
    fn wait(&mut self, mark: Mark, hops: Range<u32>, slots: Vec<Range<u32>>);

    /// The root items of a network's tables, for its row.
    fn roots(&self, table: Vid) -> Roots;
}

impl Shared {
    /// Empty tables.
    pub fn new(of: &Description) -> Result<Self, CardError> {
        let limits = Limits { image_bytes_max: STORE_BYTES_MAX, ..Limits::default() };
        let mut dag = Dag::new(limits).map_err(CardError::Memory)?;
        if let Some(weigh) = of.words_of_node() {
            dag.set_weight_fn(weigh);
        }
        let (levels, words_max) = match of.layout {
            Layout::Sram => {
                let is_wide = of.kinds.iter().any(|kind: &Kind| kind.limits().keys.has_v6());
                let key_bits = if is_wide { u128::BITS } else { u32::BITS };
                (Dag36Levels::flat(of.sram_words, key_bits as usize / 8), Vec::from([of.sram_words]))
            }
            _ => (Dag36Levels::new(&of.level_words), of.level_words.to_vec()),
        };
        dag.enable_deltas();
        let store = Store::Own(Box::new(dag));
        Ok(Self {
            store,
            levels,
            hops: Rows::of_hops(of.hop_rows),
            groups: Groups::new(of.group_slots),
            policies: Policies::new(of.policy_rows),
            patterns: Patterns::new(of.pattern_rows),
            words_max,
            waiting: Vec::new(),
        })
    }

    /// Makes the tables follow an external store from now on. There must be no networks yet.
    pub fn follow_store(&mut self) {
        self.store = Store::Followed(HashMap::new());
    }

    /// Whether they follow an external store.
    pub fn follows(&self) -> bool {
        matches!(self.store, Store::Followed(_))
    }

    /// A network's words in the levels: each node counts once, even if it is in several levels. `None` if the network
    /// has no table, or an external store keeps the accounts.
    pub fn account(&self, held: &Held) -> Option<Account> {
        match &self.store {
            Store::Own(dag) => dag.account(held.table).ok(),
            Store::Followed(_) => None,
        }
    }

    /// Whether all tables of a network are there, and any.
    pub fn has(&self, of: Vid) -> bool {
        let is_there = |table: &TableId| self.has_table(*table);
        let is_missing = |table: &TableId| self.top(*table).is_some() && !self.has_table(*table);
        TableId::all(of).iter().any(is_there) && !TableId::all(of).iter().any(is_missing)
    }

    /// Whether a table is there.
    pub fn has_table(&self, table: TableId) -> bool {
        self.levels.root(table).is_some()
    }

    /// Whether the store that the tables follow has this one.
    pub fn offers(&self, table: TableId) -> bool {
        self.top(table).is_some()
    }

    /// The result of a lookup: a next-hop word.
    pub fn answer<K: Key>(&self, table: Vid, key: K) -> u16 {
        self.levels.lookup(table, key)
    }

    /// Handles the store's next delta: changes of nodes, and of tables that are not on the card.
    pub fn apply_delta(&mut self, delta: &Delta) -> Result<(), Refusal> {
        if let (Delta::Root(table, top), Store::Followed(tops)) = (delta, &mut self.store) {
            match top {
                Some(top) => tops.insert(*table, *top),
                None => tops.remove(table),
            };
            return Ok(());
        }
        Ok(self.levels.apply(delta, &mut Vec::new())?)
    }

    /// Call it before the store removes nodes. Returns whether words wait for the next mark.
    pub fn before_retired(&mut self, deltas: &[Delta]) -> bool {
        self.levels.before_retired(deltas);
        self.levels.has_retired()
    }

    /// Makes a table on the card follow the store. Returns the writes for the card, except the network's row.
    pub fn turn<R: Registers>(
        &mut self,
        table: TableId,
        how: (bool, Patch),
        device: &mut Device<R>,
    ) -> Result<Vec<Write>, Refusal> {
        let top = self.top(table);
        let change = Delta::Root(table, top);
        self.in_levels(how, device, |shared, writes| Ok(shared.levels.apply(&change, writes)?))
    }

    /// Places about this many nodes of a network's arriving tables, one table after the other. Returns whether all are
    /// complete, and the writes for the card. After a refusal nothing of them is left.
    pub fn bring<R: Registers>(
        &mut self,
        of: Vid,
        nodes: usize,
        device: &mut Device<R>,
    ) -> Result<(bool, Vec<Write>), Refusal> {
        let next = |shared: &Self| {
            let tables = TableId::all(of).into_iter().filter(|table| !shared.has_table(*table));
            tables.filter_map(|table| Some((table, shared.top(table)?))).next()
        };
        let Some((table, top)) = next(self) else { return Err(TableError::UnknownNetwork(of).into()) };
        let brought = self.in_levels((true, Patch::Never), device, |shared, writes| {
            shared.levels.place_step(table, top, nodes, writes)?;
            Ok(())
        });
        let writes = brought.inspect_err(|_| self.lose(of))?;
        Ok((next(self).is_none(), writes))
    }

    fn top(&self, table: TableId) -> Option<Ref> {
        match &self.store {
            Store::Own(_) => None,
            Store::Followed(tops) => tops.get(&table).copied(),
        }
    }

    /// Removes a network's followed tables. Their words wait for the next mark. No new record may refer to them.
    pub fn lose(&mut self, of: Vid) {
        for table in TableId::all(of) {
            self.levels.end_arrival(table);
            let gone = self.levels.apply(&Delta::Root(table, None), &mut Vec::new());
            assert!(gone.is_ok(), "a removal needs no room: {gone:?}");
        }
    }

    /// Words in use in each level, including words that wait for records; and allocated rows of next hops and slots of groups.
    pub fn used(&self, levels: usize) -> (Vec<u64>, u64, u64) {
        let words = (0..levels).map(|level| self.levels.words_used(level)).collect();
        (words, self.hops.used(), self.groups.used())
    }

    /// Allocated rows of routes by source: ranges, pairs, rules.
    pub fn policies_used(&self) -> [u64; 3] {
        self.policies.used()
    }

    /// Allocated rows of entries.
    pub fn patterns_used(&self) -> u64 {
        self.patterns.used()
    }

    /// Bytes of route words: in use, and the maximum.
    pub fn bytes(&self) -> (u64, u64) {
        let used: u64 = (0..self.words_max.len()).map(|memory| self.levels.words_used(memory)).sum();
        let max: u64 = self.words_max.iter().copied().map(u64::from).sum();
        (used * 36 / 8, max * 36 / 8)
    }

    /// Computes the changes for a program, whose packets software decides or the card. On an error nothing has changed.
    pub fn change(
        &mut self,
        program: &Program,
        before: Option<(&Program, &Held)>,
        software: bool,
        image: &str,
    ) -> Result<Switch, SubstrateError> {
        let is_same = |old: &Program| old.next_hops == program.next_hops && old.groups == program.groups;
        let same_hops = before.filter(|(old, _)| is_same(old));
        let ((hops, groups), hops_new) = match same_hops {
            Some((_, held)) => ((held.hops.clone(), held.groups.clone()), false),
            None => (self.allocate_hops(program, before, image)?, true),
        };
        let runs = match software {
            true => Ok((None, None)),
            false => self.own_runs_of(program, before, image),
        };
        let mut writes = Vec::new();
        let before = before.map(|(_, held)| held.clone());
        let mut held = Held { table: program.vid, hops, groups, policies: None, patterns: None };
        let built = match runs {
            Ok(runs) => {
                (held.policies, held.patterns) = runs;
                match self.follows() {
                    true => Ok((program.vid, Roots::NONE)),
                    false => {
                        let built = self.build(program, &mut writes);
                        let built = built.map(|table| (table, self.roots(table)));
                        built.map_err(|refusal| refusal.of(&program.name, image))
                    }
                }
            }
            Err(error) => Err(error),
        };
        match built {
            Ok((table, roots)) => {
                Ok(Switch { writes, held: Held { table, ..held }, before, roots, hops_new })
            }
            Err(error) => {
                let freed = besides(held, before.as_ref(), hops_new);
                self.free(freed);
                Err(error)
            }
        }
    }

    /// Runs for a program's routes by source, and for its entries. On an error none is taken.
    fn own_runs_of(
        &mut self,
        program: &Program,
        before: Option<(&Program, &Held)>,
        image: &str,
    ) -> Result<(Option<PolicyRuns>, Option<Range<u32>>), SubstrateError> {
        // No kind has both.
        if let Some(rows) = patterns::Encoded::of(program) {
            let same = |old: &Program| patterns::Encoded::of(old).is_some_and(|old| old == rows);
            let kept = before.filter(|(old, _)| same(old)).and_then(|(_, held)| held.patterns.clone());
            let run = kept.map_or_else(|| self.patterns.allocate(&rows, &program.name, image), Ok);
            return Ok((None, Some(run?)));
        }
        Ok((self.policies_of(program, before, image)?, None))
    }

    /// Runs for a program's routes by source; those of the program before if it has the same ones.
    fn policies_of(
        &mut self,
        program: &Program,
        before: Option<(&Program, &Held)>,
        image: &str,
    ) -> Result<Option<PolicyRuns>, SubstrateError> {
        let same = |old: &Program| old.policies == program.policies && old.kind() == program.kind();
        let kept = before.filter(|(old, _)| same(old)).and_then(|(_, held)| held.policies.clone());
        if kept.is_some() {
            return Ok(kept);
        }
        let rows = Encoded::of(program);
        rows.map(|rows| self.policies.allocate(&rows, &program.name, image)).transpose()
    }

    /// Writes the rows of a switch's routes by source that are new. No record can refer to them yet.
    pub fn write_policies<R: Registers>(
        &self,
        switch: &Switch,
        program: &Program,
        device: &mut Device<R>,
    ) -> Result<(), CardError> {
        match switch.new_policies().zip(Encoded::of(program)) {
            Some((runs, rows)) => policies::write(runs, &rows, device),
            None => Ok(()),
        }
    }

    /// Writes the rows of a switch's entries that are new. No record can refer to them yet.
    pub fn write_patterns<R: Registers>(
        &self,
        switch: &Switch,
        program: &Program,
        net: u8,
        device: &mut Device<R>,
    ) -> Result<(), CardError> {
        match switch.new_patterns().zip(patterns::Encoded::of(program)) {
            Some((run, rows)) => patterns::write(run, &rows, net, device),
            None => Ok(()),
        }
    }

    /// A run for the entries of a network that comes to the card. If there is no room, waits until rows of networks that left are
    /// free, and tries once more.
    ///
    /// # Errors
    /// `Room`, `Broken`.
    pub fn take_patterns<R: Registers>(
        &mut self,
        rows: &patterns::Encoded,
        name: &str,
        device: &mut Device<R>,
    ) -> Result<Range<u32>, SubstrateError> {
        self.take_runs(device, |shared, image| shared.patterns.allocate(rows, name, image))
    }

    /// After `mark`, no new record refers to this run.
    pub fn leave_patterns(&mut self, mark: Mark, run: Range<u32>) {
        let freed = Freed { patterns: Some(run), ..Freed::default() };
        self.waiting.push((mark, Retired::default(), freed));
    }

    /// Runs for the routes by source of a network that comes to the card. If there is no room, waits until rows of networks that
    /// left are free, and tries once more.
    ///
    /// # Errors
    /// `Room`, `Broken`.
    pub fn take_policies<R: Registers>(
        &mut self,
        rows: &Encoded,
        name: &str,
        device: &mut Device<R>,
    ) -> Result<PolicyRuns, SubstrateError> {
        self.take_runs(device, |shared, image| shared.policies.allocate(rows, name, image))
    }

    fn take_runs<R: Registers, T>(
        &mut self,
        device: &mut Device<R>,
        allocate: impl Fn(&mut Self, &str) -> Result<T, SubstrateError>,
    ) -> Result<T, SubstrateError> {
        self.reclaim(device).map_err(broken)?;
        let runs = allocate(self, &device.description().name);
        if runs.is_ok() || self.waiting.is_empty() {
            return runs;
        }
        self.reclaim_all(device).map_err(broken)?;
        allocate(self, &device.description().name)
    }

    /// After `mark`, no new record refers to these runs.
    pub fn leave_policies(&mut self, mark: Mark, runs: PolicyRuns) {
        let freed = Freed { policies: Some(runs), ..Freed::default() };
        self.waiting.push((mark, Retired::default(), freed));
    }

    /// Rows for a program's next hops, and slots for its groups. Groups whose slots are those of a group before keep them.
    fn allocate_hops(
        &mut self,
        program: &Program,
        before: Option<(&Program, &Held)>,
        image: &str,
    ) -> Result<(Range<u32>, Vec<GroupRun>), SubstrateError> {
        let needed = program.next_hops.len();
        let hops = u32::try_from(needed).ok().and_then(|count| self.hops.allocate(count));
        let hops = hops.ok_or_else(|| self.hops.lacks(&program.name, image, needed))?;
        let mut groups: Vec<GroupRun> = Vec::with_capacity(program.groups.len());
        for (row, slots) in &program.groups {
            let same = before.and_then(|(old, held)| {
                let alike = old.groups.iter().filter(|(_, old)| old == slots);
                let mut runs = alike.filter_map(|(row, _)| run_of(&held.groups, *row));
                runs.find(|run| !groups.iter().any(|(_, taken)| taken == *run)).cloned()
            });
            let Some(run) = same.or_else(|| self.groups.allocate(slots)) else {
                let slots_new = slots_besides(&groups, before.map(|(_, held)| held));
                self.free(Freed { hops, slots: slots_new, ..Freed::default() });
                return Err(self.groups.lacks(&program.name, image, slots.len()));
            };
            groups.push((*row, run));
        }
        Ok((hops, groups))
    }

    /// Writes the rows of next hops of a switch that has new ones, and its groups. No record can refer to them yet.
    pub fn write_hops<R: Registers>(
        &mut self,
        switch: &Switch,
        program: &Program,
        net: u8,
        device: &mut Device<R>,
    ) -> Result<(), CardError> {
        let Held { hops, groups, .. } = &switch.held;
        for (index, hop) in hops.clone().zip(&program.next_hops) {
            device.write_row(index, &plan::hop(hop))?;
        }
        let kept = |run: &Range<u32>| {
            switch.before.as_ref().is_some_and(|before| before.groups.iter().any(|(_, old)| old == run))
        };
        for (row, slots) in &program.groups {
            if let Some(run) = run_of(groups, *row).filter(|run| !kept(run)) {
                write_slots(run, slots, None, net, device)?;
            }
        }
        self.groups.mark_all(hops, groups, device)
    }

    /// Creates tables with the program's routes under an unused id, and appends the writes for the card.
    fn build(&mut self, program: &Program, writes: &mut Vec<Write>) -> Result<Vid, Refusal> {
        let dag = self.own()?;
        let used: Vec<Vid> = dag.networks().collect();
        let unused = (1..=Vid::MAX).filter_map(Vid::new).find(|id| !used.contains(id));
        let networks_max = usize::from(Vid::MAX);
        let id = unused.ok_or(TableError::TooManyNetworks { vid: program.vid, networks_max })?;
        let built = match &program.entries {
            Entries::Lpm32(routes) => self.build_as(id, routes, writes),
            Entries::Lpm128(routes) | Entries::Sliced(routes) => self.build_as(id, routes, writes),
            Entries::Dual(narrow, wide) => self.build_both(id, narrow, wide, writes),
            // Such entries are no routes.
            Entries::Exact(_) | Entries::Ternary(_) | Entries::Nearest(_) | Entries::None => {
                self.build_as::<u32>(id, &[], writes)
            }
        };
        match built {
            Ok(()) => {
                // The words of the initially empty table: no record has seen them.
                self.reclaim_unseen();
                Ok(id)
            }
            Err(refusal) => {
                self.forget(id, Freed::default());
                Err(refusal)
            }
        }
    }

    fn build_as<K: Key>(
        &mut self,
        id: Vid,
        routes: &[(Prefix<K>, NextHop)],
        writes: &mut Vec<Write>,
    ) -> Result<(), Refusal> {
        self.own()?.add_network::<K>(id)?;
        self.fill(id, routes, writes)
    }

    fn build_both(
        &mut self,
        id: Vid,
        narrow: &[(Prefix4, NextHop)],
        wide: &[(Prefix6, NextHop)],
        writes: &mut Vec<Write>,
    ) -> Result<(), Refusal> {
        self.own()?.add_dual_network(id)?;
        self.fill(id, narrow, writes)?;
        self.fill(id, wide, writes)
    }

    /// Adds routes to an empty table.
    fn fill<K: Key>(
        &mut self,
        id: Vid,
        routes: &[(Prefix<K>, NextHop)],
        writes: &mut Vec<Write>,
    ) -> Result<(), Refusal> {
        let changes: Vec<_> = routes.iter().map(|(prefix, hop)| (*prefix, Some(*hop))).collect();
        self.follow(id, &changes, writes)
    }

    /// Changes a table in the store and the models, and appends the writes for the card.
    fn follow<K: Key>(
        &mut self,
        table: Vid,
        changes: &[Change<K>],
        writes: &mut Vec<Write>,
    ) -> Result<(), Refusal> {
        let Store::Own(dag) = &mut self.store else { return Err(Refusal::Followed) };
        let levels = &mut self.levels;
        let result = dag.apply_if(table, changes, |deltas| {
            deltas.iter().try_for_each(|delta| levels.apply(delta, writes)).map_err(Refusal::Level)
        });
        // Removed nodes, and after a refusal the deltas before it: neither needs room.
        self.drain_deltas();
        result
    }

    fn own(&mut self) -> Result<&mut Dag, Refusal> {
        match &mut self.store {
            Store::Own(dag) => Ok(dag),
            Store::Followed(_) => Err(Refusal::Followed),
        }
    }

    fn drain_deltas(&mut self) {
        let mut writes = Vec::new();
        let deltas = self.own().map(Dag::take_deltas).unwrap_or_default();
        for delta in deltas {
            let applied = self.levels.apply(&delta, &mut writes);
            assert!(applied.is_ok(), "a removal needs no room: {applied:?}");
        }
    }

    /// Changes routes of a table in use. Returns the writes for the card, except the network's row. For a network in
    /// `software`, words are deferred. For other networks, the writes of `patch` are included.
    pub fn update<R: Registers, K: Key>(
        &mut self,
        table: Vid,
        changes: &[Change<K>],
        (software, patch): (bool, Patch),
        device: &mut Device<R>,
    ) -> Result<Vec<Write>, Refusal> {
        self.in_levels((software, patch), device, |shared, writes| shared.follow(table, changes, writes))
    }

    /// Changes the levels. If there is no room, waits until retired words are free, and tries once more.
    fn in_levels<R: Registers>(
        &mut self,
        (software, patch): (bool, Patch),
        device: &mut Device<R>,
        mut change: impl FnMut(&mut Self, &mut Vec<Write>) -> Result<(), Refusal>,
    ) -> Result<Vec<Write>, Refusal> {
        let mut writes = Vec::new();
        self.reclaim(device)?;
        self.levels.set_deferring(software);
        self.levels.set_patch(patch);
        let mut result = change(self, &mut writes);
        if result.as_ref().is_err_and(Refusal::is_full) {
            // A refused change may leave words that have to wait too.
            self.wait_from_now(device)?;
            if !self.waiting.is_empty() {
                result = self.reclaim_all(device).map_err(Refusal::Card);
                result = result.and_then(|()| change(self, &mut writes));
            }
        }
        self.levels.set_deferring(false);
        self.levels.set_patch(Patch::Never);
        result.map(|()| writes)
    }

    /// Deferred words of a network's tables, which are not on the card yet.
    pub fn settle(&mut self, of: Vid) -> Vec<Write> {
        let mut writes = Vec::new();
        TableId::all(of).into_iter().for_each(|table| self.levels.flush_deferred(table, &mut writes));
        writes
    }

    /// Returns about `words` of the deferred words.
    pub fn deferred(&mut self, words: usize) -> Vec<Write> {
        let mut writes = Vec::new();
        self.levels.take_deferred(words, &mut writes);
        writes
    }

    /// Whether words may be deferred.
    pub fn has_deferred(&self) -> bool {
        self.levels.has_deferred()
    }

    /// The expected contents of a word of the banks; 0 if it was never written.
    pub fn word(&self, index: u32) -> u64 {
        self.levels.words(0).get(index as usize).copied().unwrap_or(0)
    }

    /// Removes a table from the store and the levels. Its words stay in the levels' list of retired words.
    fn drop_table(&mut self, table: Vid) {
        let Store::Own(dag) = &mut self.store else { return self.lose(table) };
        let dropped = dag.remove_network(table);
        assert!(dropped.is_ok(), "the driver's table is missing from its store: {dropped:?}");
        self.drain_deltas();
    }

    /// Makes rows and slots free.
    fn free(&mut self, freed: Freed) {
        self.hops.release(freed.hops);
        self.groups.release(freed.slots);
        freed.policies.into_iter().for_each(|runs| self.policies.release(runs));
        freed.patterns.into_iter().for_each(|run| self.patterns.release(run));
    }

    /// Removes a table that no record can refer to, and its rows of next hops.
    fn forget(&mut self, table: Vid, freed: Freed) {
        let waiting = self.levels.take_retired();
        assert!(waiting.is_empty(), "words that an earlier change retired must already wait");
        self.drop_table(table);
        self.reclaim_unseen();
        self.free(freed);
    }

    /// Frees words that the latest change retired and that no record can refer to.
    fn reclaim_unseen(&mut self) {
        let retired = self.levels.take_retired();
        self.levels.reclaim(retired);
    }

    /// Undoes a change that the card has not seen, because the network's row was not written.
    pub fn undo(&mut self, switch: Switch) {
        let table = switch.held.table;
        let freed = besides(switch.held, switch.before.as_ref(), switch.hops_new);
        if self.follows() {
            return self.free(freed);
        }
        self.forget(table, freed);
    }

    /// Frees what a change replaced, after it was written and the network's row was written in a hold.
    pub fn switched(&mut self, switch: Switch) -> Held {
        if let Some(before) = switch.before {
            let table = before.table;
            let freed = besides(before, Some(&switch.held), switch.hops_new);
            self.forget(table, freed);
        }
        switch.held
    }

    /// Frees a network's tables, after its row was cleared in a hold.
    pub fn remove(&mut self, held: Held) {
        let table = held.table;
        self.forget(table, besides(held, None, true));
    }

    /// Makes words that the latest change retired wait for the records accepted before the returned mark.
    pub fn wait_from_now<R: Registers>(&mut self, device: &mut Device<R>) -> Result<Mark, CardError> {
        let mark = device.mark()?;
        self.wait(mark, 0..0, Vec::new());
        Ok(mark)
    }

    /// Frees items that no record can refer to any more.
    pub fn reclaim<R: Registers>(&mut self, device: &mut Device<R>) -> Result<(), CardError> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        let records = device.records()?;
        let (passed, waiting) =
            self.waiting.drain(..).partition::<Vec<_>, _>(|(mark, ..)| records.have_passed(*mark));
        self.waiting = waiting;
        for (_, words, freed) in passed {
            self.levels.reclaim(words);
            self.free(freed);
        }
        Ok(())
    }

    /// The same for all waiting items; waits until the records have left.
    pub fn reclaim_all<R: Registers>(&mut self, device: &mut Device<R>) -> Result<(), CardError> {
        if let Some((latest, ..)) = self.waiting.last() {
            device.wait_for(*latest)?;
        }
        self.reclaim(device)
    }
}

impl HopRows for Shared {
    fn grow_hops<R: Registers>(
        &mut self,
        run: &Range<u32>,
        needed: usize,
        name: &str,
        device: &mut Device<R>,
    ) -> Result<Range<u32>, SubstrateError> {
        self.reclaim(device).map_err(broken)?;
        let mut longer = self.hops.grow(run, needed);
        if longer.is_none() && !self.waiting.is_empty() {
            self.reclaim_all(device).map_err(broken)?;
            longer = self.hops.grow(run, needed);
        }
        longer.ok_or_else(|| self.hops.lacks(name, &device.description().name, needed))
    }

    fn take_slots<R: Registers>(
        &mut self,
        slots: &Slots,
        name: &str,
        device: &mut Device<R>,
    ) -> Result<Range<u32>, SubstrateError> {
        self.reclaim(device).map_err(broken)?;
        let mut run = self.groups.allocate(slots);
        if run.is_none() && !self.waiting.is_empty() {
            self.reclaim_all(device).map_err(broken)?;
            run = self.groups.allocate(slots);
        }
        run.ok_or_else(|| self.groups.lacks(name, &device.description().name, slots.len()))
    }

    fn groups(&mut self) -> Option<&mut Groups> {
        Some(&mut self.groups)
    }

    /// Also makes words that the levels retired wait.
    fn wait(&mut self, mark: Mark, hops: Range<u32>, slots: Vec<Range<u32>>) {
        let retired = self.levels.take_retired();
        if !retired.is_empty() || !hops.is_empty() || !slots.is_empty() {
            self.waiting.push((mark, retired, Freed { hops, slots, ..Freed::default() }));
        }
    }

    fn roots(&self, table: Vid) -> Roots {
        let [narrow, wide] = TableId::all(table).map(|table| self.levels.root(table));
        match (narrow, wide) {
            (Some(root), Some(ipv6)) => Roots { root, ipv6 },
            (Some(root), None) | (None, Some(root)) => Roots { root, ..Roots::NONE },
            (None, None) => Roots::NONE,
        }
    }
}

/// The run of a row that is a group.
pub fn run_of(groups: &[GroupRun], row: NextHop) -> Option<&Range<u32>> {
    groups.iter().find(|(of, _)| *of == row).map(|(_, run)| run)
}

/// The runs of these groups that `other` does not have.
fn slots_besides(groups: &[GroupRun], other: Option<&Held>) -> Vec<Range<u32>> {
    let kept = |run: &&Range<u32>| other.is_some_and(|other| other.groups.iter().any(|(_, one)| one == *run));
    groups.iter().map(|(_, run)| run).filter(|run| !kept(run)).cloned().collect()
}

/// A network's runs of routes by source, unless `other` has them.
fn policies_besides<'h>(held: &'h Held, other: Option<&Held>) -> Option<&'h PolicyRuns> {
    held.policies.as_ref().filter(|runs| other.is_none_or(|other| other.policies.as_ref() != Some(runs)))
}

/// The run of a network's entries, unless `other` has it.
fn patterns_besides<'h>(held: &'h Held, other: Option<&Held>) -> Option<&'h Range<u32>> {
    held.patterns.as_ref().filter(|run| other.is_none_or(|other| other.patterns.as_ref() != Some(run)))
}

/// What `held` has and `other` does not. They have the same next hops and slots, unless those are `hops_new`.
fn besides(held: Held, other: Option<&Held>, hops_new: bool) -> Freed {
    let (policies, patterns) =
        (policies_besides(&held, other).cloned(), patterns_besides(&held, other).cloned());
    match hops_new {
        true => Freed { slots: slots_besides(&held.groups, other), hops: held.hops, policies, patterns },
        false => Freed { policies, patterns, ..Freed::default() },
    }
}

/// Writes route words in order. Roots are written by the caller.
pub fn write_words<R: Registers>(device: &mut Device<R>, writes: &[Write]) -> Result<(), CardError> {
    let external = device.description().layout == Layout::Sram;
    let table =
        |level: usize| if external { SramRow::TABLE } else { *MEMORIES.get(level).unwrap_or(&MEMORIES[3]) };
    let word = |write: &Write| match *write {
        Write::Word { level, index, word } => Some((table(level), index, word)),
        Write::Root { .. } => None,
    };
    let words: Vec<_> = writes.iter().filter_map(word).collect();
    device.write_burst(&words)
}
