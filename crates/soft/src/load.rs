//! Loading and unloading: everything that can fail comes first, then all changes take effect at once.
//!
//! Tables are the exception, because they are changed in place: each network's change is atomic, and when a later one
//! fails the earlier ones are undone. Undoing a change needs no more room than the change did. An update of a running
//! network changes one network only, and the store undoes it.

use std::collections::HashMap;
use std::sync::Arc;

use hue_planes::group::Slots;
use hue_planes::{Adjacency, AdjacencyKind, Counters, Keys, Settings, UnclaimedCounters, rofl};
use hue_substrate::planted::{Bug, planted};
use hue_substrate::{
    Capacity, Checked, Claims, Entries, Mode, Program, Refusals, Substrate, SubstrateError, Update,
    check_programs, demux_of, each_routes, flat,
};
use hue_tables::{Change, Dag, Key, NextHop, Prefix, TableError, Vid};

use crate::engine::{NETWORKS_MAX, NO_SLOT, Soft, place};
use crate::network::Network;

/// Name of the substrate in `spec/kinds.toml`, intent and output.
pub const NAME: &str = "soft";

/// What the store has of a network with flat labels that no card follows.
const NO_LABELS: Entries = Entries::Nearest(Vec::new());

/// Undoes one network's table change.
type Undo = Box<dyn FnOnce(&mut Dag) -> Result<(), TableError>>;

impl Substrate for Soft {
    fn name(&self) -> &'static str {
        NAME
    }

    fn load(&mut self, programs: &[Program]) -> Result<(), SubstrateError> {
        self.load_keeping(programs, &[])
    }

    fn unload(&mut self, vids: &[Vid]) -> Result<(), SubstrateError> {
        if let Some(vid) = vids.iter().find(|vid| self.network(**vid).is_none()) {
            return Err(SubstrateError::Unknown(*vid));
        }
        let kept: Vec<&Network> =
            self.engine.networks.iter().filter(|network| !vids.contains(&network.vid)).collect();
        self.engine.demux = Arc::new(demux_of(kept.into_iter().map(claims), &[])?);
        self.engine.networks.retain(|network| !vids.contains(&network.vid));
        self.engine.index();
        for vid in vids {
            // Already removed when the list names it twice.
            let _ = self.dag.remove_network(*vid);
        }
        Ok(())
    }

    fn update(&mut self, vid: Vid, update: &Update<'_>) -> Result<Refusals, SubstrateError> {
        let before = self.set_hops(vid, update)?;
        let changed = self.set_routes(vid, update);
        if changed.is_err() {
            self.restore_hops(vid, &before, update);
        }
        changed
    }

    fn counters(&self, vid: Vid) -> Option<Counters> {
        self.network(vid).map(|network| network.counters)
    }

    fn unclaimed(&self) -> UnclaimedCounters {
        self.engine.unclaimed
    }

    fn capacity(&self) -> Capacity {
        let limits = self.dag.limits();
        Capacity {
            networks: self.engine.networks.len(),
            networks_max: NETWORKS_MAX.min(limits.networks_max),
            table_bytes: self.dag.bytes_used(),
            table_bytes_max: limits.image_bytes_max,
        }
    }
}

/// The rows that an update replaces.
pub(crate) struct FormerHops {
    pub rows: Vec<(NextHop, Adjacency)>,
    pub groups: Vec<(NextHop, Slots)>,
    /// How many rows there were.
    count: usize,
}

impl Soft {
    /// Checks an update and changes the next hops. Returns the former ones.
    pub(crate) fn set_hops(&mut self, vid: Vid, update: &Update<'_>) -> Result<FormerHops, SubstrateError> {
        let network = self.network_mut(vid).ok_or(SubstrateError::Unknown(vid))?;
        let count = network.hops.count();
        let shape = &network.shape;
        let hops = &network.hops;
        let checked = Checked {
            name: &shape.name,
            settings: network.settings,
            ports: &shape.ports,
            hops: hops.rows(),
            groups: hops.groups(),
        };
        let needed = update.check(&checked)?;
        if !update.has_hops() {
            return Ok(FormerHops { rows: Vec::new(), groups: Vec::new(), count });
        }
        let changed =
            update.hops.iter().map(|(index, _)| index).chain(update.groups.iter().map(|(index, _)| index));
        let row = |index: &NextHop| Some((*index, *hops.rows().get(usize::from(index.get()))?));
        let is_plain = |(_, row): &(NextHop, Adjacency)| row.kind() != AdjacencyKind::Group;
        let rows = changed.clone().filter_map(row).filter(is_plain).collect();
        let is_changed = |(index, _): &&(NextHop, Slots)| changed.clone().any(|changed| changed == index);
        let groups = hops.groups().iter().filter(is_changed).cloned().collect();
        network.hops.set(update.hops, update.groups, needed);
        Ok(FormerHops { rows, groups, count })
    }

    /// Takes back the next hops of an update whose routes were refused, unless some of its routes may name them.
    pub(crate) fn restore_hops(&mut self, vid: Vid, former: &FormerHops, update: &Update<'_>) {
        let stay = update.mode == Mode::Fitting || planted(Bug::RowsStay);
        if let Some(network) = self.network_mut(vid).filter(|_| !stay) {
            network.hops.set(&former.rows, &former.groups, former.count);
        }
    }

    /// Changes the routes of an update that was checked.
    pub(crate) fn set_routes(&mut self, vid: Vid, update: &Update<'_>) -> Result<Refusals, SubstrateError> {
        if update.has_no_routes() {
            return Ok(Refusals::default());
        }
        let wide = if planted(Bug::OneWidth) && !update.v4.is_empty() { &[] } else { update.v6 };
        let engine = &self.engine;
        let named = |error| {
            let name = engine.network(vid).map(|network| network.shape.name.clone()).unwrap_or_default();
            SubstrateError::Table { name, error }
        };
        match update.mode {
            Mode::Whole | Mode::Each => {
                self.dag.apply_both(vid, update.v4, wide).map_err(named)?;
                Ok(Refusals::default())
            }
            Mode::Fitting => {
                let refusals = self.dag.apply_both_fitting(vid, update.v4, wide).map_err(named)?;
                Ok(Refusals { at: refusals.at, error: refusals.error.map(named) })
            }
        }
    }

    /// As [`Substrate::load`], but the networks in `keep`, which are loaded already, keep their routes and next hops.
    pub(crate) fn load_keeping(&mut self, programs: &[Program], keep: &[Vid]) -> Result<(), SubstrateError> {
        check_programs(programs, NAME)?;
        let replaced = |vid: Vid| programs.iter().any(|program| program.vid == vid);
        let kept: Vec<&Network> =
            self.engine.networks.iter().filter(|network| !replaced(network.vid)).collect();
        let count = kept.len() + programs.len();
        let max = NETWORKS_MAX.min(self.dag.limits().networks_max);
        if count > max {
            return Err(SubstrateError::Networks { count, max });
        }
        let demux = demux_of(kept.into_iter().map(claims), programs)?;
        self.load_tables(programs, keep)?;
        self.engine.demux = Arc::new(demux);
        for program in programs {
            let before = self.network(program.vid);
            let mut network = Network::new(program, before);
            if let Some(before) = before.filter(|_| keep.contains(&program.vid)) {
                network.hops = before.hops.clone();
                network.shape.patterns = before.shape.patterns.clone();
                network.shape.labels = before.shape.labels.clone();
            }
            match self.engine.slots.get(program.vid.index()).copied() {
                Some(slot) if slot != NO_SLOT => self.engine.networks[place(slot)] = network,
                _ => self.engine.networks.push(network),
            }
            self.engine.index();
        }
        Ok(())
    }

    fn load_tables(&mut self, programs: &[Program], keep: &[Vid]) -> Result<(), SubstrateError> {
        let mut undos = Vec::with_capacity(programs.len());
        for program in programs.iter().filter(|program| !keep.contains(&program.vid)) {
            if let Err(error) = self.load_table(program, &mut undos) {
                for undo in undos.into_iter().rev() {
                    // The previous contents fit: see the head of this file.
                    let undone = undo(&mut self.dag);
                    assert!(undone.is_ok(), "a table change could not be undone: {undone:?}");
                }
                return Err(SubstrateError::Table { name: program.name.clone(), error });
            }
        }
        Ok(())
    }

    fn load_table(&mut self, program: &Program, undos: &mut Vec<Undo>) -> Result<(), TableError> {
        match (&program.entries, program.settings) {
            (Entries::Nearest(labels), Settings::Rofl(settings)) => {
                let entries = self.for_follower(labels, &program.next_hops, settings);
                self.load_for_follower(program.vid, &entries, undos)
            }
            (entries, _) => self.load_entries(program.vid, entries, undos),
        }
    }

    /// Loads what the store has of a network with flat labels. Software has its own table of labels: what does not fit is missing for the
    /// follower only.
    fn load_for_follower(
        &mut self,
        vid: Vid,
        entries: &Entries,
        undos: &mut Vec<Undo>,
    ) -> Result<(), TableError> {
        let loaded = self.load_entries(vid, entries, undos);
        loaded.or_else(|_| self.load_entries(vid, &NO_LABELS, undos))
    }

    /// What the store has of a network with flat labels: their routes if a card follows the store, and may have them.
    fn for_follower(
        &self,
        labels: &[(u128, NextHop)],
        hops: &[Adjacency],
        settings: rofl::Settings,
    ) -> Entries {
        let fits = settings.pointers_max() == 0 && flat::bytes_of(labels.len(), settings) <= flat::BYTES_MAX;
        match self.followed && fits {
            true => Entries::Lpm128(flat::routes(labels, hops, settings)),
            false => NO_LABELS,
        }
    }

    /// Whether a card follows the store, which needs the routes of flat labels then.
    pub(crate) fn set_followed(&mut self, on: bool) {
        if self.followed == on {
            return;
        }
        self.followed = on;
        let mut tables = Vec::new();
        for network in &self.engine.networks {
            let Settings::Rofl(settings) = network.settings else { continue };
            let labels: Vec<_> = network.shape.labels.iter().flat_map(|table| table.entries()).collect();
            tables.push((network.vid, self.for_follower(&labels, network.hops.rows(), settings)));
        }
        for (vid, entries) in tables {
            let loaded = self.load_for_follower(vid, &entries, &mut Vec::new());
            assert!(loaded.is_ok(), "an empty table does not fit in the place of a larger one: {loaded:?}");
        }
    }

    fn load_entries(&mut self, vid: Vid, entries: &Entries, undos: &mut Vec<Undo>) -> Result<(), TableError> {
        let Some(now) = self.keys(vid) else {
            add_tables(&mut self.dag, vid, entries.keys())?;
            undos.push(Box::new(move |dag| dag.remove_network(vid)));
            return announce(&mut self.dag, vid, entries);
        };
        if now == table_keys(entries.keys()) {
            each_routes!(entries, routes => self.change_routes(vid, routes, undos)?);
            return Ok(());
        }
        let mut before = Entries::empty(now);
        each_routes!(&mut before, routes => *routes = self.dag.routes(vid).collect());
        let quota = self.dag.account(vid)?.bytes_quota;
        undos.push(Box::new(move |dag| replace_tables(dag, vid, &before, quota)));
        replace_tables(&mut self.dag, vid, entries, quota)
    }

    /// What the tables of a network in the store are keyed by.
    fn keys(&self, vid: Vid) -> Option<Keys> {
        match (self.dag.has_table::<u32>(vid), self.dag.has_table::<u128>(vid)) {
            (true, true) => Some(Keys::Dual),
            (true, false) => Some(Keys::V4),
            (false, true) => Some(Keys::V6),
            (false, false) => None,
        }
    }

    fn change_routes<K: Key>(
        &mut self,
        vid: Vid,
        routes: &[(Prefix<K>, NextHop)],
        undos: &mut Vec<Undo>,
    ) -> Result<(), TableError> {
        let mut before: HashMap<_, _> = self.dag.routes(vid).collect();
        let (mut changes, mut back) = (Vec::new(), Vec::new());
        for (prefix, hop) in routes {
            let old = before.remove(prefix);
            if old != Some(*hop) {
                changes.push((*prefix, Some(*hop)));
                back.push((*prefix, old));
            }
        }
        changes.extend(before.keys().map(|prefix| (*prefix, None)));
        back.extend(before.iter().map(|(prefix, hop)| (*prefix, Some(*hop))));
        self.dag.apply(vid, &changes)?;
        undos.push(Box::new(move |dag| dag.apply(vid, &back)));
        Ok(())
    }
}

/// What the tables of a network are keyed by in the store. A network without routes has a table too, so that it has an
/// account and a quota like the others.
const fn table_keys(keys: Keys) -> Keys {
    match keys {
        Keys::Mac | Keys::Bits | Keys::Label | Keys::None => Keys::V4,
        Keys::Slices => Keys::V6,
        Keys::V4 | Keys::V6 | Keys::Dual => keys,
    }
}

/// Adds a network with empty tables.
fn add_tables(dag: &mut Dag, vid: Vid, keys: Keys) -> Result<(), TableError> {
    match table_keys(keys) {
        Keys::V6 => dag.add_network::<u128>(vid),
        Keys::Dual => dag.add_dual_network(vid),
        _ => dag.add_network::<u32>(vid),
    }
}

/// Gives a network tables for these entries, in place of those for other keys. Its quota stays.
fn replace_tables(dag: &mut Dag, vid: Vid, entries: &Entries, quota: Option<u64>) -> Result<(), TableError> {
    if dag.has_network(vid) {
        dag.remove_network(vid)?;
    }
    add_tables(dag, vid, entries.keys())?;
    dag.set_quota(vid, quota)?;
    announce(dag, vid, entries)
}

fn announce(dag: &mut Dag, vid: Vid, entries: &Entries) -> Result<(), TableError> {
    each_routes!(entries, routes => dag.apply(vid, &announced(routes))?);
    Ok(())
}

fn announced<K: Key>(routes: &[(Prefix<K>, NextHop)]) -> Vec<Change<K>> {
    routes.iter().map(|(prefix, hop)| (*prefix, Some(*hop))).collect()
}

fn claims(network: &Network) -> Claims<'_> {
    let shape = &network.shape;
    Claims { vid: network.vid, name: &shape.name, ports: &shape.ports, rows: &shape.rows }
}
