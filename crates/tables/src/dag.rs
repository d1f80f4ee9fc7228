//! The table store: one trie for all networks, in which equal subtrees are stored once and changes copy a
//! path.
//!
//! Flow: routes of a network (control) → `Dag::apply` → `dag64` image words + `Delta`s for other encodings → readers.
//!
//! A change rebuilds the nodes on its path bottom-up. Each new node is compared with the nodes of all
//! networks (hash consing) and written only if no equal one exists. One write of the root word then makes the
//! entire change visible. Nodes without references are retired, and their words are reused once no reader can
//! access them (`epoch`).
//!
//! Invariants: the reference count of a node is the number of source nodes, of all networks, that are
//! compiled to it. References between image nodes are not counted: an image node exists only for a source
//! node, and the children of that source node hold the references to its children. A failed change leaves
//! routes, image and roots unchanged. Source: ADR-0002; for hash-consed prefix DAGs, Rétvári et al., SIGCOMM
//! 2013.

mod both;
mod fitting;
mod follow;
mod holdings;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use crate::layout::{
    GRANULE_BYTES, GRANULES_MAX, Kind, NODE_GRANULES_MAX, Ref, Runs, SLOTS, WIDE_BYTES, encode_wide,
    for_each_child, granules, is_certainly_wide,
};
use crate::limits::{Account, Limits, TableError};
use crate::mem::Writer;
use crate::reader::Reader;
use crate::source::{Child, NodeId, Source, TOP};
use crate::space::Space;
use crate::types::{Key, NextHop, Prefix, TableId, Vid};
use hashbrown::HashTable;
use holdings::{Holdings, Weight};

pub use fitting::{Refusals, apply_fitting};
pub use follow::Delta;

/// One route change: `Some(hop)` announces, `None` withdraws.
pub type Change<K> = (Prefix<K>, Option<NextHop>);

/// The tables of a network.
struct Tables {
    /// By [`Key::TABLE`]; a table that is being changed is missing.
    sources: [Option<Source>; 2],
}

impl Tables {
    fn one<K: Key>(source: Source) -> Self {
        let mut sources = [None, None];
        sources[K::TABLE] = Some(source);
        Self { sources }
    }

    fn iter(&self) -> impl Iterator<Item = &Source> {
        self.sources.iter().flatten()
    }

    /// The tables with their names.
    fn named(&self, vid: Vid) -> impl Iterator<Item = (TableId, &Source)> {
        let sources = self.sources.iter().enumerate();
        sources.filter_map(move |(table, source)| Some((TableId::at(vid, table), source.as_ref()?)))
    }

    fn compiled_refs(&self) -> impl Iterator<Item = Ref> + '_ {
        self.iter().flat_map(Source::compiled_refs)
    }

    /// Routes of all tables.
    fn routes(&self) -> usize {
        self.iter().map(|source| source.routes).sum()
    }
}

/// A live node in the hash table: its ref and 32 bits of the hash of its content.
struct Entry {
    at: Ref,
    hash: u32,
}

impl Entry {
    /// Spreads the hash: the table also needs entropy in the highest bits.
    fn spread(hash: u32) -> u64 {
        u64::from(hash).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }
}

/// The forwarding tables of all networks; see the module documentation. A network has a table with keys of one width, or
/// one of each width. A key finds the table of its own width, and the network has one account and one quota for both.
///
/// ```
/// use hue_tables::{Dag, Limits, NextHop, Vid};
/// let mut dag = Dag::new(Limits::default())?;
/// let red = Vid::new(1).ok_or("zero")?;
/// dag.add_network::<u32>(red)?;
/// dag.insert::<u32>(red, "10.0.0.0/8".parse()?, NextHop::new(7).ok_or("reserved")?)?;
/// let mut reader = dag.reader()?;
/// assert_eq!(reader.pin().lookup(red, 0x0a01_0203_u32), NextHop::new(7));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Dag {
    image: Writer,
    limits: Limits,
    networks: HashMap<Vid, Tables>,
    nodes: HashTable<Entry>,
    hasher: foldhash::fast::FixedState,
    /// Reference counts of all nodes, by network.
    holdings: Holdings,
    /// The weights of nodes.
    weigh: Weigh,
    space: Space,
    retired: VecDeque<(u64, Ref, u8)>,
    retiring: Vec<(Ref, u8)>,
    deltas: Option<Vec<Delta>>,
}

impl Dag {
    /// Creates an empty store.
    ///
    /// # Errors
    /// `NoMemory` if the system cannot reserve address space for `limits.image_bytes_max`.
    pub fn new(limits: Limits) -> Result<Self, TableError> {
        let margin = 4 * NODE_GRANULES_MAX as u64;
        let limit = limits.image_bytes_max / GRANULE_BYTES as u64;
        let granules = limit.saturating_mul(2).saturating_add(margin).min(GRANULES_MAX - INDEX_MARGIN);
        let image = Writer::reserve(granules as u32).map_err(|error| TableError::NoMemory {
            bytes: granules * GRANULE_BYTES as u64,
            reason: error.to_string(),
        })?;
        Ok(Self {
            image,
            limits,
            networks: HashMap::new(),
            nodes: HashTable::new(),
            hasher: foldhash::fast::FixedState::with_seed(0),
            holdings: Holdings::new(),
            weigh: Weigh::default(),
            space: Space::new(granules as u32, limit),
            retired: VecDeque::new(),
            retiring: Vec::new(),
            deltas: None,
        })
    }

    /// Adds a network with keys of this width and no routes.
    ///
    /// # Errors
    /// `DuplicateNetwork`, `TooManyNetworks`, or `Full` if its top node does not fit.
    pub fn add_network<K: Key>(&mut self, vid: Vid) -> Result<(), TableError> {
        self.check_new(vid)?;
        self.holdings.add_network(vid);
        let source = self.new_table::<K>(vid).inspect_err(|_| self.holdings.remove_network(vid))?;
        self.publish::<K>(vid, source.compiled);
        self.networks.insert(vid, Tables::one::<K>(source));
        Ok(())
    }

    /// Adds a network with a table for keys of each width, and no routes.
    ///
    /// # Errors
    /// As [`Dag::add_network`].
    pub fn add_dual_network(&mut self, vid: Vid) -> Result<(), TableError> {
        self.check_new(vid)?;
        self.holdings.add_network(vid);
        let narrow = self.new_table::<u32>(vid);
        let wide = narrow.and_then(|narrow| match self.new_table::<u128>(vid) {
            Ok(wide) => Ok([Some(narrow), Some(wide)]),
            Err(error) => {
                self.release(vid, narrow.compiled);
                self.retire();
                Err(error)
            }
        });
        let sources = wide.inspect_err(|_| self.holdings.remove_network(vid))?;
        let tops = sources.each_ref().map(|source| source.as_ref().map(|source| source.compiled));
        self.networks.insert(vid, Tables { sources });
        if let [Some(narrow), Some(wide)] = tops {
            self.publish::<u32>(vid, narrow);
            self.publish::<u128>(vid, wide);
        }
        Ok(())
    }

    /// Whether a network can be added.
    fn check_new(&self, vid: Vid) -> Result<(), TableError> {
        if self.networks.contains_key(&vid) {
            return Err(TableError::DuplicateNetwork(vid));
        }
        if self.networks.len() >= self.limits.networks_max.min(usize::from(Vid::MAX)) {
            return Err(TableError::TooManyNetworks { vid, networks_max: self.limits.networks_max });
        }
        Ok(())
    }

    /// An empty table of a network that is among the holdings.
    fn new_table<K: Key>(&mut self, vid: Vid) -> Result<Source, TableError> {
        self.collect();
        let mut source = Source::new(K::BITS);
        let slots = source.node(TOP).leaves(NextHop::NONE_WORD);
        source.compiled = self.intern(vid, &slots, true).map_err(|NoSpace| self.full(vid))?;
        if self.space.live > self.space.live_max {
            self.release(vid, source.compiled);
            self.retire();
            return Err(self.full(vid));
        }
        Ok(source)
    }

    /// Removes a network and all its routes. Lookups in it then find no route.
    ///
    /// # Errors
    /// `UnknownNetwork`.
    pub fn remove_network(&mut self, vid: Vid) -> Result<(), TableError> {
        let tables = self.networks.remove(&vid).ok_or(TableError::UnknownNetwork(vid))?;
        self.image.clear_roots(vid);
        if let Some(deltas) = &mut self.deltas {
            deltas.extend(tables.named(vid).map(|(table, _)| Delta::Root(table, None)));
        }
        for node in tables.compiled_refs() {
            self.release(vid, node);
        }
        self.holdings.remove_network(vid);
        self.retire();
        Ok(())
    }

    /// Limits the size of what a network's lookups can reach ([`Account::bytes_own`]), or removes the limit.
    /// Announcements that would exceed it are rejected, unless they reduce the size. Existing routes stay,
    /// and withdrawals are never rejected.
    ///
    /// # Errors
    /// `UnknownNetwork`.
    pub fn set_quota(&mut self, vid: Vid, bytes_max: Option<u64>) -> Result<(), TableError> {
        if self.holdings.set_quota(vid, bytes_max) { Ok(()) } else { Err(TableError::UnknownNetwork(vid)) }
    }

    /// Sets another unit for accounts and quotas than bytes of `dag64`, for example words of another
    /// encoding.
    ///
    /// # Panics
    /// If the store already has a network: its nodes were weighed in the previous unit.
    pub fn set_weight_fn(&mut self, weigh: fn(&Runs) -> u64) {
        assert!(self.networks.is_empty(), "set the unit before adding the first network");
        self.weigh.store = Some(weigh);
    }

    /// Announces one route and returns the next hop it replaces.
    ///
    /// # Errors
    /// As [`Dag::apply`].
    pub fn insert<K: Key>(
        &mut self,
        vid: Vid,
        prefix: Prefix<K>,
        hop: NextHop,
    ) -> Result<Option<NextHop>, TableError> {
        let mut before = None;
        self.apply_each(vid, &[(prefix, Some(hop))], |_, hop| before = hop)?;
        Ok(before)
    }

    /// Withdraws one route and returns its next hop, or `None` if the route does not exist.
    ///
    /// # Errors
    /// As [`Dag::apply`].
    pub fn remove<K: Key>(&mut self, vid: Vid, prefix: Prefix<K>) -> Result<Option<NextHop>, TableError> {
        let mut before = None;
        self.apply_each(vid, &[(prefix, None)], |_, hop| before = hop)?;
        Ok(before)
    }

    /// Applies changes to one network, in order and atomically: readers see all of them or none. Withdrawing
    /// a route that does not exist has no effect.
    ///
    /// # Errors
    /// `UnknownNetwork`, `Width`, `Full`, or `Quota`. Nothing has changed then.
    pub fn apply<K: Key>(&mut self, vid: Vid, changes: &[Change<K>]) -> Result<(), TableError> {
        self.apply_each(vid, changes, |_, _| ())
    }

    /// As [`Dag::apply`], and passes the previous route of each prefix to `each`.
    fn apply_each<K: Key>(
        &mut self,
        vid: Vid,
        changes: &[Change<K>],
        each: impl FnMut(Prefix<K>, Option<NextHop>),
    ) -> Result<(), TableError> {
        let accept = |store: &mut Self, top| {
            store.publish::<K>(vid, top);
            Ok::<(), TableError>(())
        };
        self.apply_checked(vid, changes, each, (accept, false))
    }

    /// Applies a change that takes effect when `accept` publishes its new top node. If the flag is false,
    /// `accept` is not called for changes without effect.
    fn apply_checked<K: Key, E: From<TableError>>(
        &mut self,
        vid: Vid,
        changes: &[Change<K>],
        each: impl FnMut(Prefix<K>, Option<NextHop>),
        accept: (impl FnOnce(&mut Self, Ref) -> Result<(), E>, bool),
    ) -> Result<(), E> {
        self.collect();
        let Some(tables) = self.networks.get_mut(&vid) else {
            return Err(TableError::UnknownNetwork(vid).into());
        };
        let Some(mut source) = tables.sources[K::TABLE].take() else {
            let bits = tables.iter().map(|source| source.bits).next().unwrap_or_default();
            return Err(TableError::Width { vid, bits, given: K::BITS }.into());
        };
        let result = self.change(vid, &mut source, changes, each, accept);
        if let Some(tables) = self.networks.get_mut(&vid) {
            tables.sources[K::TABLE] = Some(source);
        }
        self.finish(vid, result)
    }

    /// Releases what a change replaced, or names the network in its error.
    fn finish<E: From<TableError>>(
        &mut self,
        vid: Vid,
        result: Result<Vec<Ref>, Refused<E>>,
    ) -> Result<(), E> {
        let result = result.map_err(|refused| match refused {
            Refused::NoSpace => self.full(vid).into(),
            Refused::Quota { bytes_needed } => self.over_quota(vid, bytes_needed).into(),
            Refused::By(error) => error,
        });
        for node in result.as_deref().unwrap_or_default() {
            self.release(vid, *node);
        }
        self.retire();
        result.map(drop)
    }

    /// The next hop of exactly this prefix.
    #[must_use]
    pub fn route<K: Key>(&self, vid: Vid, prefix: Prefix<K>) -> Option<NextHop> {
        self.source::<K>(vid)?.get(prefix).and_then(NextHop::new)
    }

    /// All routes of a network, in no particular order; empty for an unknown one, or one without keys of this width.
    pub fn routes<K: Key>(&self, vid: Vid) -> impl Iterator<Item = (Prefix<K>, NextHop)> + '_ {
        let source = self.source::<K>(vid).into_iter();
        source.flat_map(Source::iter).filter_map(|(prefix, hop)| Some((prefix, NextHop::new(hop)?)))
    }

    fn source<K: Key>(&self, vid: Vid) -> Option<&Source> {
        self.networks.get(&vid)?.sources[K::TABLE].as_ref()
    }

    /// Whether a network has a table with keys of this width.
    #[must_use]
    pub fn has_table<K: Key>(&self, vid: Vid) -> bool {
        self.source::<K>(vid).is_some()
    }

    /// Whether the store has a network.
    #[must_use]
    pub fn has_network(&self, vid: Vid) -> bool {
        self.networks.contains_key(&vid)
    }

    /// All networks in the store, in no particular order.
    pub fn networks(&self) -> impl Iterator<Item = Vid> + '_ {
        self.networks.keys().copied()
    }

    /// Creates a reader of this store's image.
    ///
    /// # Errors
    /// `TooManyReaders`.
    pub fn reader(&self) -> Result<Reader, TableError> {
        Reader::new(self.image.share()).ok_or(TableError::TooManyReaders)
    }

    /// Bytes of live nodes in the image, for all networks.
    #[must_use]
    pub fn bytes_live(&self) -> u64 {
        self.space.live * GRANULE_BYTES as u64
    }

    /// Bytes of the image that are not free: live nodes, and retired nodes that readers may still use.
    #[must_use]
    pub fn bytes_used(&self) -> u64 {
        (self.space.live + self.space.waiting) * GRANULE_BYTES as u64
    }

    /// Bytes that the updater itself uses: the routes of all networks, reference counts and the hash table.
    #[must_use]
    pub fn updater_bytes(&self) -> u64 {
        let sources: u64 = self.networks.values().flat_map(Tables::iter).map(Source::bytes).sum();
        let hash = self.nodes.capacity() * (size_of::<Entry>() + 1);
        sources + self.holdings.bytes() + hash as u64
    }

    /// Number of live nodes in the image.
    #[must_use]
    pub fn node_count(&self) -> usize {
        self.nodes.len()
    }

    /// The limits of this store.
    #[must_use]
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// Memory of one network. Takes constant time: it is updated with every change.
    ///
    /// # Errors
    /// `UnknownNetwork`.
    pub fn account(&self, vid: Vid) -> Result<Account, TableError> {
        let account = self.account_in(vid, |weight| weight.store)?;
        Ok(Account { bytes_quota: self.holdings.held(vid).quota, ..account })
    }

    /// Memory of one network in one of the two units, without its quota.
    fn account_in(&self, vid: Vid, unit: fn(Weight) -> u64) -> Result<Account, TableError> {
        let routes = self.networks.get(&vid).ok_or(TableError::UnknownNetwork(vid))?.routes();
        let held = self.holdings.held(vid);
        let (bytes_own, bytes_marginal) = (unit(held.own), unit(held.marginal));
        let bytes_shared = bytes_own - bytes_marginal;
        Ok(Account { routes, bytes_own, bytes_shared, bytes_marginal, bytes_quota: None })
    }

    /// Memory of one network, where `size` is the size of a node in some encoding. Visits all nodes of the
    /// network.
    ///
    /// # Errors
    /// `UnknownNetwork`.
    pub(crate) fn account_by(&self, vid: Vid, size: impl Fn(Ref) -> u64) -> Result<Account, TableError> {
        let tables = self.networks.get(&vid).ok_or(TableError::UnknownNetwork(vid))?;
        let (mut bytes_own, mut bytes_marginal) = (0, 0);
        for (node, held) in tally(tables.compiled_refs()) {
            let bytes = size(node);
            bytes_own += bytes;
            // A node is freed with the network if no source node of another network is compiled to it.
            if self.holdings.refs(node) == held {
                bytes_marginal += bytes;
            }
        }
        let bytes_shared = bytes_own - bytes_marginal;
        Ok(Account { routes: tables.routes(), bytes_own, bytes_shared, bytes_marginal, bytes_quota: None })
    }

    /// All live nodes of the image, in no particular order.
    pub fn nodes(&self) -> impl Iterator<Item = Ref> + '_ {
        self.nodes.iter().map(|entry| entry.at)
    }

    /// The runs of a live node.
    #[must_use]
    pub fn runs(&self, node: Ref) -> Runs {
        crate::layout::decode(node.kind(), self.image.node(node.index(), self.granules(node)))
    }
}

/// Granules that are never used, so that the end of an arena cannot overflow the index of a ref.
const INDEX_MARGIN: u64 = 1 << 16;

/// The arena is full. The caller adds the network to the error.
struct NoSpace;

/// Why a change was rejected. The caller adds the network to the error.
enum Refused<E> {
    /// The arena is full, or the limit on live nodes is reached.
    NoSpace,
    /// The network's quota is exceeded.
    Quota { bytes_needed: u64 },
    /// The follower of the store rejected the change.
    By(E),
}

/// Counts how often each node occurs, without leaves.
fn tally(nodes: impl Iterator<Item = Ref>) -> HashMap<Ref, u32> {
    let mut held = HashMap::new();
    for node in nodes.filter(|node| !node.is_leaf()) {
        *held.entry(node).or_default() += 1;
    }
    held
}

/// A child's state before a compilation, to undo it; its node loses a reference if the compilation is kept.
struct Undo {
    parent: NodeId,
    at: usize,
    before: Child,
}

/// The former routes of changed prefixes, in the order of the changes.
type Before<K> = Vec<(Prefix<K>, Option<u16>)>;

/// Changes the routes of a source, which is not compiled yet. Returns the former ones, and whether any differs.
fn set_routes<K: Key>(source: &mut Source, changes: &[Change<K>]) -> (Before<K>, bool) {
    let mut differs = false;
    let set = |(prefix, hop): &Change<K>| {
        let (is, was) = (hop.map(NextHop::get), source.get(*prefix));
        if is != was {
            differs = true;
            source.set(*prefix, is);
        }
        (*prefix, was)
    };
    let before = changes.iter().map(set).collect();
    (before, differs)
}

/// Removes nodes of the source that only withdrawn routes needed.
fn prune_withdrawn<K: Key>(source: &mut Source, changes: &[Change<K>]) {
    for (prefix, _) in changes.iter().filter(|(_, hop)| hop.is_none()) {
        source.prune(*prefix);
    }
}

/// Whether any change announces a route.
fn announces<K>(changes: &[Change<K>]) -> bool {
    changes.iter().any(|(_, hop)| hop.is_some())
}

impl Dag {
    /// Edits and compiles a source. Returns the nodes that lost a source node's reference. If it fails,
    /// everything is restored.
    fn change<K: Key, E>(
        &mut self,
        vid: Vid,
        source: &mut Source,
        changes: &[Change<K>],
        mut each: impl FnMut(Prefix<K>, Option<NextHop>),
        (accept, always): (impl FnOnce(&mut Self, Ref) -> Result<(), E>, bool),
    ) -> Result<Vec<Ref>, Refused<E>> {
        // Routing protocols often announce routes that exist already. Then nothing is compiled, not even the
        // top node.
        let (before, differs) = set_routes(source, changes);
        if !differs && !always {
            before.iter().for_each(|(prefix, hop)| each(*prefix, hop.and_then(NextHop::new)));
            return Ok(Vec::new());
        }
        let mut undo = Vec::new();
        let size = self.size(vid);
        let compiled = self.compile(vid, source, TOP, NextHop::NONE_WORD, &mut undo);
        let compiled = compiled.map_err(|NoSpace| Refused::NoSpace).and_then(|top| {
            let mut replaced: Vec<Ref> = undo.iter().map(|u: &Undo| u.before.compiled).collect();
            replaced.push(source.compiled);
            // Withdrawals are never rejected for lack of room, because they free memory.
            let room = if announces(changes) { self.has_room(vid, &replaced, size) } else { Ok(()) };
            match room.and_then(|()| accept(self, top).map_err(Refused::By)) {
                Ok(()) => Ok((top, replaced)),
                Err(refused) => {
                    self.release(vid, top);
                    Err(refused)
                }
            }
        });
        match compiled {
            Ok((top, replaced)) => {
                source.compiled = top;
                before.iter().for_each(|(prefix, hop)| each(*prefix, hop.and_then(NextHop::new)));
                prune_withdrawn(source, changes);
                Ok(replaced)
            }
            Err(refused) => {
                self.restore(vid, source, undo, &before);
                Err(refused)
            }
        }
    }

    /// Restores a source after a change that was rejected.
    fn restore<K: Key>(&mut self, vid: Vid, source: &mut Source, undo: Vec<Undo>, before: &Before<K>) {
        for Undo { parent, at, before } in undo.into_iter().rev() {
            let child = &mut source.node_mut(parent).children[at];
            self.release(vid, std::mem::replace(child, before).compiled);
        }
        for (prefix, hop) in before.iter().rev() {
            source.set(*prefix, *hop);
        }
        for (prefix, _) in before {
            source.prune(*prefix);
        }
    }

    /// Live nodes and the network's own size.
    fn size(&self, vid: Vid) -> (u64, u64) {
        (self.space.live, self.holdings.held(vid).own.store)
    }

    /// Whether the live nodes and the network's own size stay within their limits, or at least do not grow,
    /// after `replaced` are released.
    fn has_room<E>(
        &self,
        vid: Vid,
        replaced: &[Ref],
        (live_before, own_before): (u64, u64),
    ) -> Result<(), Refused<E>> {
        let live_max = self.space.live_max.max(live_before);
        let held = self.holdings.held(vid);
        let own_max = held.quota.map_or(u64::MAX, |quota| quota.max(own_before));
        if self.space.live <= live_max && held.own.store <= own_max {
            return Ok(());
        }
        let (mut live, mut own) = (self.space.live, held.own.store);
        for (node, released) in tally(replaced.iter().copied()) {
            if self.holdings.refs(node) == released {
                live -= self.granules(node) as u64;
            }
            if self.holdings.refs_of(vid, node) == released {
                own -= self.weigh.weight(&self.image, node).store;
            }
        }
        match (live <= live_max, own <= own_max) {
            (_, false) => Err(Refused::Quota { bytes_needed: own }),
            (false, true) => Err(Refused::NoSpace),
            (true, true) => Ok(()),
        }
    }

    /// Compiles a source node, and before it every child that changed or inherits a different next hop. The
    /// returned ref includes one reference, the source's.
    fn compile(
        &mut self,
        vid: Vid,
        source: &mut Source,
        id: NodeId,
        inherited: u16,
        undo: &mut Vec<Undo>,
    ) -> Result<Ref, NoSpace> {
        let node = source.node(id);
        let mut slots = node.leaves(inherited);
        // First find the stale children without any other work: most changes affect one of up to 256
        // children.
        let mut stale = Vec::new();
        for (at, child) in node.children.iter().enumerate() {
            let slot = &mut slots[usize::from(child.slot)];
            let inherited = slot.hop_word();
            *slot = child.compiled;
            if child.dirty || child.inherited != inherited {
                stale.push((at, inherited));
            }
        }
        for (at, inherited) in stale {
            let before = source.node(id).children[at];
            let compiled = self.compile(vid, source, before.node, inherited, undo)?;
            slots[usize::from(before.slot)] = compiled;
            source.node_mut(id).children[at] = Child { dirty: false, inherited, compiled, ..before };
            undo.push(Undo { parent: id, at, before });
        }
        self.intern(vid, &slots, id == TOP)
    }

    /// Removes one of a network's references to a node. A node without references is removed from the hash
    /// table and later retired.
    fn release(&mut self, vid: Vid, node: Ref) {
        if node.is_leaf() {
            return;
        }
        let (image, weigh) = (&self.image, &self.weigh);
        if self.holdings.remove(vid, node, || weigh.weight(image, node)) {
            let granules = self.granules(node);
            let hash = self.hash(self.image.node(node.index(), granules));
            if let Ok(entry) = self.nodes.find_entry(Entry::spread(hash), |entry| entry.at == node) {
                entry.remove();
            }
            self.retiring.push((node, granules as u8));
        }
    }

    fn hash(&self, bytes: &[u8]) -> u32 {
        std::hash::BuildHasher::hash_one(&self.hasher, bytes) as u32
    }

    /// Retires the nodes released since the last call, under a new epoch.
    fn retire(&mut self) {
        if self.retiring.is_empty() {
            return;
        }
        let epoch = self.image.epochs.advance();
        for (node, granules) in self.retiring.drain(..) {
            self.space.live -= u64::from(granules);
            self.space.waiting += u64::from(granules);
            self.retired.push_back((epoch, node, granules));
            if let Some(deltas) = &mut self.deltas {
                deltas.push(Delta::Retire(node));
            }
        }
    }

    /// Frees retired nodes that no reader can access.
    fn collect(&mut self) {
        if self.retired.is_empty() {
            return;
        }
        let quiescent = self.image.epochs.quiescent();
        while let Some(&(epoch, node, granules)) = self.retired.front()
            && epoch < quiescent
        {
            self.retired.pop_front();
            self.space.waiting -= u64::from(granules);
            self.space.free(node.index(), usize::from(granules));
        }
    }

    fn allocate(&mut self, granules: usize) -> Option<u32> {
        if let Some(index) = self.space.allocate(granules) {
            return Some(index);
        }
        self.collect();
        self.space.allocate(granules).or_else(|| {
            self.space.merge();
            self.space.allocate(granules)
        })
    }

    fn publish<K: Key>(&mut self, vid: Vid, top: Ref) {
        self.image.set_root::<K>(vid, top);
        if let Some(deltas) = &mut self.deltas {
            deltas.push(Delta::Root(TableId::of::<K>(vid), Some(top)));
        }
    }

    fn full(&self, vid: Vid) -> TableError {
        TableError::Full { vid, bytes_used: self.bytes_used(), bytes_max: self.limits.image_bytes_max }
    }

    fn over_quota(&self, vid: Vid, bytes_needed: u64) -> TableError {
        let held = self.holdings.held(vid);
        let (bytes_own, bytes_quota) = (held.own.store, held.quota.unwrap_or_default());
        TableError::Quota { vid, bytes_own, bytes_needed, bytes_quota }
    }

    fn granules(&self, node: Ref) -> usize {
        granules(node.kind(), self.image.node(node.index(), 1))
    }

    fn each_child(&self, node: Ref, each: impl FnMut(Ref)) {
        for_each_child(node.kind(), self.image.node(node.index(), self.granules(node)), each);
    }

    /// Returns the node with this content and adds a reference of the network. Finds it among the nodes of
    /// all networks, or writes it.
    fn intern(&mut self, vid: Vid, slots: &[Ref; SLOTS], top: bool) -> Result<Ref, NoSpace> {
        let mut bytes = [0; WIDE_BYTES];
        let (kind, granules, runs) = if is_certainly_wide(slots, top) {
            encode_wide(slots, &mut bytes);
            (Kind::Wide, NODE_GRANULES_MAX, None)
        } else {
            let runs = Runs::of(slots);
            if let [only] = runs.items()
                && only.is_leaf()
            {
                return Ok(*only);
            }
            let kind = runs.kind(top);
            (kind, runs.encode(kind, &mut bytes), Some(runs))
        };
        let bytes = &bytes[..granules * GRANULE_BYTES];
        let hash = self.hash(bytes);
        let image = &self.image;
        let same = |entry: &Entry| {
            entry.hash == hash
                && entry.at.kind() == kind
                && image.node(entry.at.index(), 1) == &bytes[..GRANULE_BYTES]
                && image.node(entry.at.index(), granules) == bytes
        };
        if let Some(entry) = self.nodes.find(Entry::spread(hash), same) {
            let node = entry.at;
            self.holdings.add(vid, node, || self.weigh.weight(image, node));
            return Ok(node);
        }
        let index = self.allocate(granules).ok_or(NoSpace)?;
        // Readers may be running: no reader can reach these granules until a root is written.
        self.image.write_node(index, bytes);
        let node = Ref::node(kind, index);
        if let Some(deltas) = &mut self.deltas {
            let runs = runs.unwrap_or_else(|| Runs::of(slots));
            self.weigh.add_node(node, &runs);
            deltas.push(Delta::Node(node, Arc::new(runs)));
        }
        let (image, weigh) = (&self.image, &self.weigh);
        self.holdings.add(vid, node, || weigh.weight(image, node));
        self.nodes.insert_unique(Entry::spread(hash), Entry { at: node, hash }, |e| Entry::spread(e.hash));
        Ok(node)
    }
}

/// How nodes are weighed.
#[derive(Default)]
struct Weigh {
    /// Weight in the unit of accounts and quotas; `None` means bytes of `dag64`.
    store: Option<fn(&Runs) -> u64>,
    /// Weight in the unit of the follower; `None` means that there is no follower.
    follower: Option<fn(&Runs) -> u64>,
    /// Weights in the unit of the follower, indexed by the first granule of a node.
    follower_weights: Vec<u16>,
}

impl Weigh {
    /// The weight of a node.
    fn weight(&self, image: &Writer, node: Ref) -> Weight {
        let granules = granules(node.kind(), image.node(node.index(), 1));
        let runs = || crate::layout::decode(node.kind(), image.node(node.index(), granules));
        let store = self.store.map_or((granules * GRANULE_BYTES) as u64, |weigh| weigh(&runs()));
        let follower = self
            .follower
            .and_then(|_| self.follower_weights.get(node.index() as usize))
            .copied()
            .unwrap_or(0);
        Weight { store, follower: follower.into() }
    }

    /// Stores the weight of a new node.
    fn add_node(&mut self, node: Ref, runs: &Runs) {
        let Some(weigh) = self.follower else { return };
        let index = node.index() as usize;
        if self.follower_weights.len() <= index {
            self.follower_weights.resize(index + 1, 0);
        }
        self.follower_weights[index] = u16::try_from(weigh(runs)).unwrap_or(u16::MAX); // a node has at most 256 items
    }
}
