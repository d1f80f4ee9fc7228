//! Counts the references of each network to each image node, and sums up the weight of each network's nodes.
//! Updated with every reference that is added or removed.
//!
//! Flow: `Dag` adds and removes references → **[`Holdings`]** → accounts and quotas, without visiting nodes.
//!
//! Most nodes belong to a single network. Then the network's count equals the node's count, and nothing else
//! is stored. A node of several networks has a count in the map of each. The XOR of their ids gives the id of
//! the last remaining network. Invariants: a network's `own` is the weight of all nodes it refers to; its
//! `marginal` is the weight of the nodes that no other network refers to. The weight of a node does not
//! change while it has references. Weights are in the unit of the store, counts are numbers of source nodes.
//! A weight has two parts: one for the store, one for its follower.

use std::collections::HashMap;
use std::ops::{AddAssign, SubAssign};

use crate::layout::Ref;
use crate::types::Vid;

type Counts = HashMap<u32, u32, foldhash::fast::FixedState>;

/// Reference counts of all nodes and weights of all networks.
pub(super) struct Holdings {
    /// By the first granule of the node.
    nodes: Vec<Node>,
    /// By network id; networks that are not in the store have no references.
    networks: Vec<Held>,
}

/// The references to a node of the image.
#[derive(Clone, Copy, Default)]
struct Node {
    /// Source nodes of all networks that are compiled to it.
    refs: u32,
    /// Number of networks that they belong to.
    networks: u16,
    /// The XOR of the ids of these networks.
    vids_xor: u16,
}

/// The weight of a node: in the unit of the store, and in that of its follower.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Weight {
    pub(super) store: u64,
    pub(super) follower: u64,
}

impl AddAssign for Weight {
    fn add_assign(&mut self, other: Self) {
        self.store += other.store;
        self.follower += other.follower;
    }
}

impl SubAssign for Weight {
    fn sub_assign(&mut self, other: Self) {
        self.store -= other.store;
        self.follower -= other.follower;
    }
}

/// The nodes that a network refers to.
pub(super) struct Held {
    /// Weight of all its nodes.
    pub(super) own: Weight,
    /// Weight of the nodes that only this network refers to.
    pub(super) marginal: Weight,
    /// Limit on `own.store`.
    pub(super) quota: Option<u64>,
    /// Its reference counts of nodes that other networks also refer to, by granule.
    shared: Counts,
}

impl Held {
    const fn none() -> Self {
        let shared = HashMap::with_hasher(foldhash::fast::FixedState::with_seed(0));
        let none = Weight { store: 0, follower: 0 };
        Self { own: none, marginal: none, quota: None, shared }
    }
}

impl Holdings {
    pub(super) fn new() -> Self {
        Self { nodes: Vec::new(), networks: Vec::new() }
    }

    /// Adds a network without references.
    pub(super) fn add_network(&mut self, vid: Vid) {
        if self.networks.len() <= vid.index() {
            self.networks.resize_with(vid.index() + 1, Held::none);
        }
    }

    /// Removes a network.
    pub(super) fn remove_network(&mut self, vid: Vid) {
        let held = std::mem::replace(&mut self.networks[vid.index()], Held::none());
        debug_assert!((held.own, held.marginal, held.shared.len()) == Default::default());
    }

    /// The nodes of a network in the store.
    pub(super) fn held(&self, vid: Vid) -> &Held {
        &self.networks[vid.index()]
    }

    /// Sets the quota of a network. Returns whether the network exists.
    pub(super) fn set_quota(&mut self, vid: Vid, quota: Option<u64>) -> bool {
        // Every network in the store has a top node.
        let held = self.networks.get_mut(vid.index()).filter(|held| held.own.store > 0);
        held.map(|held| held.quota = quota).is_some()
    }

    /// Sets the weights of a network in the unit of the follower, after that unit changed.
    pub(super) fn set_follower(&mut self, vid: Vid, own: u64, marginal: u64) {
        let held = &mut self.networks[vid.index()];
        (held.own.follower, held.marginal.follower) = (own, marginal);
    }

    /// Number of source nodes compiled to a node.
    pub(super) fn refs(&self, node: Ref) -> u32 {
        self.nodes[node.index() as usize].refs
    }

    /// Number of source nodes of one network compiled to a node.
    pub(super) fn refs_of(&self, vid: Vid, node: Ref) -> u32 {
        let at = self.nodes[node.index() as usize];
        match at.networks {
            1 if at.vids_xor == vid.get() => at.refs,
            0 | 1 => 0,
            _ => self.held(vid).shared.get(&node.index()).copied().unwrap_or(0),
        }
    }

    /// Adds a network's reference to a node.
    pub(super) fn add(&mut self, vid: Vid, node: Ref, weight: impl FnOnce() -> Weight) {
        let index = node.index() as usize;
        if self.nodes.len() <= index {
            self.nodes.resize(index + 1, Node::default());
        }
        let at = &mut self.nodes[index];
        at.refs += 1;
        match at.networks {
            0 => {
                (at.networks, at.vids_xor) = (1, vid.get());
                let (held, weight) = (&mut self.networks[vid.index()], weight());
                held.own += weight;
                held.marginal += weight;
            }
            1 if at.vids_xor == vid.get() => {}
            networks => {
                let counts = &mut self.networks[vid.index()].shared;
                let count = counts.entry(node.index()).or_default();
                *count += 1;
                if *count > 1 {
                    return;
                }
                let weight = weight();
                if networks == 1 {
                    let owner = &mut self.networks[usize::from(at.vids_xor)];
                    owner.shared.insert(node.index(), at.refs - 1);
                    owner.marginal -= weight;
                }
                at.networks += 1;
                at.vids_xor ^= vid.get();
                self.networks[vid.index()].own += weight;
            }
        }
    }

    /// Removes a network's reference to a node. Returns whether it was the last one of all networks.
    pub(super) fn remove(&mut self, vid: Vid, node: Ref, weight: impl FnOnce() -> Weight) -> bool {
        let at = &mut self.nodes[node.index() as usize];
        at.refs -= 1;
        if at.networks == 1 {
            if at.refs > 0 {
                return false;
            }
            *at = Node::default();
            let (held, weight) = (&mut self.networks[vid.index()], weight());
            held.own -= weight;
            held.marginal -= weight;
            return true;
        }
        let held = &mut self.networks[vid.index()];
        let count = held.shared.entry(node.index()).or_default();
        *count -= 1;
        if *count > 0 {
            return false;
        }
        held.shared.remove(&node.index());
        let weight = weight();
        held.own -= weight;
        at.networks -= 1;
        at.vids_xor ^= vid.get();
        if at.networks == 1 {
            let owner = &mut self.networks[usize::from(at.vids_xor)];
            owner.shared.remove(&node.index());
            owner.marginal += weight;
        }
        false
    }

    /// Memory of this structure in bytes (an estimate of the allocations).
    pub(super) fn bytes(&self) -> u64 {
        let counts: usize = self.networks.iter().map(|held| held.shared.capacity()).sum();
        let counts = counts * (size_of::<(u32, u32)>() + 1);
        let networks = self.networks.capacity() * size_of::<Held>();
        (self.nodes.capacity() * size_of::<Node>() + networks + counts) as u64
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, HashSet};

    use proptest::prelude::*;

    use super::super::{Change, Dag};
    use crate::dag36::words_of;
    use crate::limits::{Account, Limits, TableError};
    use crate::types::{Key, NextHop, Prefix, Vid};

    const NETWORKS: u16 = 4;

    fn vid(n: u16) -> Vid {
        Vid::new(n + 1).unwrap()
    }

    /// Computes accounts by visiting all tables, without reference counts.
    fn naive(dag: &Dag) -> Vec<(Vid, u64, u64)> {
        let nodes = |tables: &super::super::Tables| -> HashSet<_> {
            tables.compiled_refs().filter(|node| !node.is_leaf()).collect()
        };
        let sets: Vec<_> = dag.networks.iter().map(|(vid, tables)| (*vid, nodes(tables))).collect();
        let weigh = |node: &_| dag.weigh.weight(&dag.image, *node).store;
        let account = |(vid, own): &(Vid, HashSet<_>)| {
            let others = sets.iter().filter(|(other, _)| other != vid);
            let others: HashSet<_> = others.flat_map(|(_, nodes)| nodes).collect();
            let alone = own.iter().filter(|node| !others.contains(node));
            (*vid, own.iter().map(weigh).sum(), alone.map(weigh).sum())
        };
        sets.iter().map(account).collect()
    }

    fn agree(dag: &Dag) -> Result<(), TestCaseError> {
        for (vid, own, marginal) in naive(dag) {
            let Account { bytes_own, bytes_marginal, bytes_shared, .. } = dag.account(vid).unwrap();
            prop_assert_eq!((bytes_own, bytes_marginal, bytes_shared), (own, marginal, own - marginal));
            if let Some(weigh) = dag.weigh.follower {
                let walked = dag.account_by(vid, |node| weigh(&dag.runs(node))).unwrap();
                prop_assert_eq!(dag.follower_account(vid).unwrap(), walked);
            }
        }
        Ok(())
    }

    /// Few prefixes and next hops, so that networks share many nodes and then diverge.
    fn changes() -> impl Strategy<Value = Vec<Change<u32>>> {
        let byte = || prop_oneof![3 => Just(10_u8), 1 => Just(11), 1 => any::<u8>()];
        let one = ([byte(), byte(), byte(), byte()], 0..=32_u8, proptest::option::weighted(0.7, 0..3_u16));
        let change = one.prop_map(|(addr, len, hop)| {
            (Prefix::containing(u32::from_be_bytes(addr), len), hop.and_then(NextHop::new))
        });
        proptest::collection::vec(change, 1..40)
    }

    /// The network that has a table of each width.
    const DUAL: u16 = NETWORKS - 1;

    #[derive(Clone, Debug)]
    enum Step {
        Apply(u16, Vec<Change<u32>>),
        /// To the wide table of the network that has one: the same bits, so that it shares nodes with all others.
        Widen(Vec<Change<u32>>),
        /// To both tables of that network at once, the second list to the wide one.
        Both(Vec<Change<u32>>, Vec<Change<u32>>),
        Fit(u16, Vec<Change<u32>>),
        Copy(u16, u16),
        Quota(u16, Option<u64>),
        Renew(u16),
        Follow(bool),
    }

    fn step() -> impl Strategy<Value = Step> {
        let n = || 0..NETWORKS;
        prop_oneof![
            4 => (n(), changes()).prop_map(|(n, changes)| Step::Apply(n, changes)),
            4 => (n(), changes()).prop_map(|(n, changes)| Step::Fit(n, changes)),
            4 => changes().prop_map(Step::Widen),
            4 => (changes(), changes()).prop_map(|(narrow, wide)| Step::Both(narrow, wide)),
            2 => (n(), n()).prop_map(|(from, to)| Step::Copy(from, to)),
            2 => (n(), proptest::option::of(256..4_096_u64)).prop_map(|(n, quota)| Step::Quota(n, quota)),
            1 => n().prop_map(Step::Renew),
            1 => any::<bool>().prop_map(Step::Follow),
        ]
    }

    fn add(dag: &mut Dag, n: u16) -> Result<(), TableError> {
        if n == DUAL { dag.add_dual_network(vid(n)) } else { dag.add_network::<u32>(vid(n)) }
    }

    /// The same changes of wide keys.
    fn widened(changes: &[Change<u32>]) -> Vec<Change<u128>> {
        let wide =
            |prefix: Prefix<u32>| Prefix::<u128>::containing(u128::from(prefix.addr()) << 96, prefix.len());
        changes.iter().map(|(prefix, hop)| (wide(*prefix), *hop)).collect()
    }

    fn put<K: Key>(table: &mut BTreeMap<Prefix<K>, NextHop>, changes: &[Change<K>]) {
        for (prefix, hop) in changes {
            match hop {
                Some(hop) => table.insert(*prefix, *hop),
                None => table.remove(prefix),
            };
        }
    }

    /// Changes both tables or none. Whether the quota allows it depends on the sum only.
    fn change_both(
        dag: &mut Dag,
        narrow: &[Change<u32>],
        wide: &[Change<u128>],
    ) -> Result<(), TestCaseError> {
        type Tables = (BTreeMap<Prefix<u32>, NextHop>, BTreeMap<Prefix<u128>, NextHop>);
        let of = vid(DUAL);
        let tables = |dag: &Dag| -> Tables { (dag.routes(of).collect(), dag.routes(of).collect()) };
        let (before, account) = (tables(dag), dag.account(of).unwrap());
        let announces =
            narrow.iter().any(|(_, hop)| hop.is_some()) || wide.iter().any(|(_, hop)| hop.is_some());
        let allowed = account.bytes_quota.map_or(u64::MAX, |quota| quota.max(account.bytes_own));
        let mut result = dag.apply_both(of, narrow, wide);
        if let Err(TableError::Quota { bytes_needed, .. }) = result {
            prop_assert!(announces && bytes_needed > allowed);
            prop_assert_eq!((tables(dag), dag.account(of).unwrap()), (before.clone(), account));
            agree(dag)?;
            dag.set_quota(of, None).unwrap();
            result = dag.apply_both(of, narrow, wide);
            prop_assert!(result.is_err() || dag.account(of).unwrap().bytes_own == bytes_needed);
        } else if result.is_ok() && announces {
            prop_assert!(dag.account(of).unwrap().bytes_own <= allowed);
        }
        let mut expected = before;
        match result {
            Ok(()) => {
                put(&mut expected.0, narrow);
                put(&mut expected.1, wide);
            }
            Err(error) => prop_assert!(matches!(error, TableError::Full { .. }), "{}", error),
        }
        prop_assert_eq!(tables(dag), expected);
        let mut reader = dag.reader().unwrap();
        let guard = reader.pin();
        for (prefix, _) in wide {
            let oracle = dag.routes::<u128>(of).filter(|(other, _)| other.contains(prefix.addr()));
            let oracle = oracle.max_by_key(|(other, _)| other.len()).map(|(_, hop)| hop);
            prop_assert_eq!(guard.lookup(of, prefix.addr()), oracle);
        }
        Ok(())
    }

    /// Applies changes to the wide table; what does not fit is left out.
    fn widen(dag: &mut Dag, changes: &[Change<u32>]) -> Result<(), TestCaseError> {
        let changes = widened(changes);
        let narrow: Vec<_> = dag.routes::<u32>(vid(DUAL)).collect();
        let refusals = dag.apply_fitting(vid(DUAL), &changes).unwrap();
        let mut expected = BTreeMap::new();
        for (at, (prefix, hop)) in changes.iter().enumerate() {
            expected.insert(*prefix, hop.filter(|_| refusals.at.binary_search(&at).is_err()));
        }
        for (prefix, hop) in expected {
            prop_assert_eq!(dag.route(vid(DUAL), prefix), hop);
        }
        prop_assert_eq!(dag.routes::<u32>(vid(DUAL)).collect::<Vec<_>>(), narrow, "the other table");
        Ok(())
    }

    fn run(mut dag: Dag, steps: Vec<Step>) -> Result<(), TestCaseError> {
        (0..NETWORKS).for_each(|n| add(&mut dag, n).unwrap());
        for step in steps {
            let (who, changes) = match &step {
                Step::Apply(n, changes) | Step::Fit(n, changes) => (*n, changes.clone()),
                Step::Copy(from, to) => {
                    (*to, dag.routes(vid(*from)).map(|(prefix, hop)| (prefix, Some(hop))).collect())
                }
                Step::Quota(n, quota) => {
                    dag.set_quota(vid(*n), *quota).unwrap();
                    (*n, Vec::new())
                }
                Step::Follow(on) => {
                    if *on {
                        dag.enable_weighed_deltas(words_of)
                    } else {
                        dag.disable_deltas()
                    }
                    continue;
                }
                Step::Widen(changes) => {
                    widen(&mut dag, changes)?;
                    agree(&dag)?;
                    continue;
                }
                Step::Both(narrow, wide) => {
                    change_both(&mut dag, narrow, &widened(wide))?;
                    agree(&dag)?;
                    continue;
                }
                Step::Renew(n) => {
                    dag.remove_network(vid(*n)).unwrap();
                    match add(&mut dag, *n) {
                        Ok(()) => (*n, Vec::new()),
                        // Other networks use all the memory.
                        Err(_) => return Ok(()),
                    }
                }
            };
            let before = dag.account(vid(who)).unwrap();
            let others: Vec<_> = (0..NETWORKS).filter(|n| *n != who).collect();
            let table = |dag: &Dag, n: u16| -> BTreeMap<_, _> { dag.routes(vid(n)).collect() };
            let neighbours: Vec<_> = others.iter().map(|n| table(&dag, *n)).collect();
            let mut expected = table(&dag, who);
            let announces = changes.iter().any(|(_, hop)| hop.is_some());
            let allowed = before.bytes_quota.map_or(u64::MAX, |quota| quota.max(before.bytes_own));
            let mut put = |(prefix, hop): &Change<u32>| match hop {
                Some(hop) => expected.insert(*prefix, *hop),
                None => expected.remove(prefix),
            };
            if let Step::Fit(..) = step {
                let refusals = dag.apply_fitting(vid(who), &changes).unwrap();
                for (at, change) in changes.iter().enumerate() {
                    let refused = refusals.at.binary_search(&at).is_ok();
                    put(&(change.0, change.1.filter(|_| !refused)));
                }
                prop_assert_eq!(refusals.at.is_empty(), refusals.error.is_none());
                let withdraws = changes.iter().any(|(_, hop)| hop.is_none()) || !refusals.at.is_empty();
                prop_assert!(withdraws || dag.account(vid(who)).unwrap().bytes_own <= allowed);
            } else {
                match dag.apply(vid(who), &changes) {
                    Ok(()) => changes.iter().for_each(|change| _ = put(change)),
                    Err(TableError::Quota { bytes_own, bytes_needed, bytes_quota, .. }) => {
                        prop_assert_eq!(
                            (bytes_own, Some(bytes_quota)),
                            (before.bytes_own, before.bytes_quota)
                        );
                        prop_assert!(announces && bytes_needed > allowed);
                        prop_assert_eq!(dag.account(vid(who)).unwrap(), before);
                    }
                    Err(error) => {
                        prop_assert!(matches!(error, TableError::Full { .. }), "{}", error);
                        prop_assert_eq!(dag.account(vid(who)).unwrap(), before);
                    }
                }
                prop_assert!(!announces || dag.account(vid(who)).unwrap().bytes_own <= allowed);
            }
            prop_assert_eq!(table(&dag, who), expected);
            let after: Vec<_> = others.iter().map(|n| table(&dag, *n)).collect();
            prop_assert_eq!(after, neighbours, "no other network changes");
            agree(&dag)?;
        }
        (0..NETWORKS).for_each(|n| dag.remove_network(vid(n)).unwrap());
        prop_assert_eq!((dag.bytes_live(), dag.node_count()), (0, 0));
        Ok(())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]
        #[test]
        fn accounts_equal_a_full_walk(
            steps in proptest::collection::vec(step(), 1..25),
            limit in prop_oneof![Just(1_u64 << 20), Just(12 << 10)],
        ) {
            let dag = Dag::new(Limits { image_bytes_max: limit, ..Limits::default() }).unwrap();
            run(dag, steps)?;
        }

        #[test]
        fn accounts_in_words_equal_a_full_walk(steps in proptest::collection::vec(step(), 1..15)) {
            let mut dag = Dag::new(Limits { image_bytes_max: 1 << 20, ..Limits::default() }).unwrap();
            dag.set_weight_fn(words_of);
            run(dag, steps)?;
        }
    }

    #[test]
    fn a_quota_is_exact_and_freed_memory_is_reused() {
        let route = |n: u32| (Prefix::containing(n << 16, 16), NextHop::new(n as u16 + 1));
        let mut dag = Dag::new(Limits::default()).unwrap();
        dag.add_network::<u32>(vid(0)).unwrap();
        let all: Vec<Change<u32>> = (0..600).map(route).collect();
        dag.apply(vid(0), &all).unwrap();
        let full = dag.account(vid(0)).unwrap().bytes_own;
        // Announcing an existing route needs no memory. A quota of the current size is sufficient, one byte
        // less is not.
        dag.set_quota(vid(0), Some(full)).unwrap();
        assert_eq!(dag.apply(vid(0), &all), Ok(()));
        dag.apply(vid(0), &[(all[0].0, None)]).unwrap();
        dag.set_quota(vid(0), Some(full - 1)).unwrap();
        let more: Change<u32> = (Prefix::containing(0x0900_0100, 24), NextHop::new(7));
        let refusals = dag.apply_fitting(vid(0), &[all[0], more]).unwrap();
        assert!(refusals.at.contains(&1), "{refusals:?}");
        assert!(
            matches!(refusals.error, Some(TableError::Quota { bytes_needed, .. }) if bytes_needed > full - 1)
        );
        // A quota below the current size keeps existing routes and rejects new ones.
        dag.set_quota(vid(0), Some(64)).unwrap();
        let routes = dag.account(vid(0)).unwrap().routes;
        assert_eq!(dag.apply_fitting(vid(0), &[more]).unwrap().at, [0]);
        assert_eq!(dag.account(vid(0)).unwrap().routes, routes);
        dag.set_quota(vid(0), None).unwrap();
        assert_eq!(dag.apply_fitting(vid(0), &[more]).unwrap().at, []);
        assert_eq!(dag.set_quota(vid(1), None), Err(TableError::UnknownNetwork(vid(1))));
    }

    #[test]
    fn a_route_whose_new_next_hop_does_not_fit_is_withdrawn() {
        let mut dag = Dag::new(Limits::default()).unwrap();
        dag.add_network::<u32>(vid(0)).unwrap();
        let wide: Vec<Change<u32>> =
            (0..256).map(|n| (Prefix::containing(0x0a00_0000 | n << 8, 24), NextHop::new(1))).collect();
        dag.apply(vid(0), &wide).unwrap();
        dag.set_quota(vid(0), Some(dag.account(vid(0)).unwrap().bytes_own)).unwrap();
        let changed: Vec<Change<u32>> =
            wide.iter().zip(0..).map(|((prefix, _), n)| (*prefix, NextHop::new(2 + n))).collect();
        let refusals = dag.apply_fitting(vid(0), &changed).unwrap();
        assert!(!refusals.at.is_empty());
        for (at, (prefix, hop)) in changed.iter().enumerate() {
            let refused = refusals.at.binary_search(&at).is_ok();
            assert_eq!(dag.route(vid(0), *prefix), hop.filter(|_| !refused), "never the old one");
        }
    }
}
