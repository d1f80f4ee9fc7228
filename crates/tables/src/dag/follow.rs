//! How other encodings follow the store: [`Delta`]s, and changes that a follower can reject.

use std::collections::HashMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Change, Dag};
use crate::layout::{Ref, Runs};
use crate::limits::{Account, TableError};
use crate::types::{Key, TableId, Vid};

/// A change of the store for encodings other than `dag64`. Nodes come before anything that refers to them; a
/// root comes after all its nodes, and `Retire` after the roots that no longer refer to the node.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Delta {
    /// A new node; its refs name earlier nodes.
    Node(Ref, #[serde(with = "shared")] Arc<Runs>),
    /// The new top node of a network's table; `None` means that the network was removed.
    Root(TableId, Option<Ref>),
    /// The node has no references. Its words can be reused once no lookup in flight can read them.
    Retire(Ref),
}

/// Nodes are shared within a process, and copied to others.
mod shared {
    use std::sync::Arc;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use crate::layout::Runs;

    pub fn serialize<S: Serializer>(runs: &Arc<Runs>, to: S) -> Result<S::Ok, S::Error> {
        Runs::serialize(runs, to)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Arc<Runs>, D::Error> {
        Runs::deserialize(from).map(Arc::new)
    }
}

impl Dag {
    /// Records the deltas of every later change for [`Dag::take_deltas`]. The first deltas describe the
    /// current content of the store.
    pub fn enable_deltas(&mut self) {
        let mut deltas = Vec::new();
        let mut seen = HashMap::new();
        let mut networks: Vec<_> = self.networks.iter().collect();
        networks.sort_unstable_by_key(|(vid, _)| **vid);
        for (vid, tables) in networks {
            for (table, source) in tables.named(*vid) {
                self.describe(source.compiled, &mut seen, &mut deltas);
                deltas.push(Delta::Root(table, Some(source.compiled)));
            }
        }
        self.deltas = Some(deltas);
    }

    /// As [`Dag::enable_deltas`], for a follower in which `weigh` is the size of a node.
    /// [`Dag::follower_account`] then reports the size of networks there.
    pub fn enable_weighed_deltas(&mut self, weigh: fn(&Runs) -> u64) {
        self.weigh.follower = Some(weigh);
        self.weigh_for_follower();
        self.enable_deltas();
    }

    /// Stops recording deltas: the store has no follower.
    pub fn disable_deltas(&mut self) {
        self.deltas = None;
        (self.weigh.follower, self.weigh.follower_weights) = (None, Vec::new());
        self.networks.keys().for_each(|vid| self.holdings.set_follower(*vid, 0, 0));
    }

    /// As [`Dag::account`], in the unit of [`Dag::enable_weighed_deltas`], without quotas, and as if the
    /// follower had all networks.
    ///
    /// # Errors
    /// `UnknownNetwork`.
    pub fn follower_account(&self, vid: Vid) -> Result<Account, TableError> {
        self.account_in(vid, |weight| weight.follower)
    }

    /// Computes the weights of all nodes in the unit of the follower.
    fn weigh_for_follower(&mut self) {
        for node in self.nodes().collect::<Vec<_>>() {
            let runs = self.runs(node);
            self.weigh.add_node(node, &runs);
        }
        let weight = |node| self.weigh.weight(&self.image, node).follower;
        let account = |vid| Some((vid, self.account_by(vid, weight).ok()?));
        let accounts: Vec<(Vid, Account)> = self.networks.keys().copied().filter_map(account).collect();
        for (vid, account) in accounts {
            self.holdings.set_follower(vid, account.bytes_own, account.bytes_marginal);
        }
    }

    /// Returns the deltas since the last call (or since [`Dag::enable_deltas`]), oldest first.
    pub fn take_deltas(&mut self) -> Vec<Delta> {
        self.deltas.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// As [`Dag::apply`], with a follower that can reject the change. Before the change takes effect,
    /// `follow` gets all deltas of it: earlier deltas that were not taken come first, the table's root
    /// last, and `take_deltas` does not return them again. If `follow` fails, the store is restored with the
    /// same nodes, and the new nodes that the follower knows are retired.
    ///
    /// # Errors
    /// As [`Dag::apply`], and the error of `follow`. Nothing has changed then.
    pub fn apply_if<K: Key, E: From<TableError>>(
        &mut self,
        vid: Vid,
        changes: &[Change<K>],
        follow: impl FnOnce(&[Delta]) -> Result<(), E>,
    ) -> Result<(), E> {
        self.apply_checked(
            vid,
            changes,
            |_, _| (),
            (
                |store: &mut Self, top| {
                    let mut deltas = store.take_deltas();
                    deltas.push(Delta::Root(TableId::of::<K>(vid), Some(top)));
                    follow(&deltas)?;
                    store.image.set_root::<K>(vid, top);
                    Ok(())
                },
                true,
            ),
        )
    }

    /// Appends the nodes below `node` that are not in `seen`, children first.
    fn describe(&self, node: Ref, seen: &mut HashMap<Ref, ()>, deltas: &mut Vec<Delta>) {
        if node.is_leaf() || seen.insert(node, ()).is_some() {
            return;
        }
        self.each_child(node, |child| self.describe(child, seen, deltas));
        deltas.push(Delta::Node(node, Arc::new(self.runs(node))));
    }
}
