//! What other encodings follow the store by: [`Delta`]s, and changes that a follower may refuse.

use std::collections::HashMap;
use std::sync::Arc;

use super::{Change, Dag};
use crate::layout::{Ref, Runs};
use crate::limits::{Account, TableError};
use crate::types::{Key, Vid};

/// What an encoding other than `dag64` must do to follow the store. Nodes arrive before anything that refers to them;
/// a root arrives after all its nodes, and `Retire` after the roots that dropped the node.
#[derive(Clone, PartialEq, Debug)]
pub enum Delta {
    /// A new node; refs in it name nodes that came before.
    Node(Ref, Arc<Runs>),
    /// The network's table now begins at this node; `None`: the network is gone.
    Root(Vid, Option<Ref>),
    /// Nobody refers to this node; its words may be reused once no lookup in flight can hold them.
    Retire(Ref),
}

impl<K: Key> Dag<K> {
    /// From now on, keeps the deltas of every change for [`Dag::take_deltas`]; the first of them describe the store
    /// as it is.
    pub fn record_deltas(&mut self) {
        let mut deltas = Vec::new();
        let mut seen = HashMap::new();
        let mut roots: Vec<_> = self.networks.iter().map(|(vid, source)| (*vid, source.compiled)).collect();
        roots.sort_unstable_by_key(|(vid, _)| *vid);
        for (vid, top) in roots {
            self.describe(top, &mut seen, &mut deltas);
            deltas.push(Delta::Root(vid, Some(top)));
        }
        self.deltas = Some(deltas);
    }

    /// [`Dag::record_deltas`] for an encoding in which nodes take what `weigh` says; [`Dag::account_there`] then tells what
    /// networks take there.
    pub fn be_followed(&mut self, weigh: fn(&Runs) -> u64) {
        self.weigh.there = Some(weigh);
        self.weigh_there();
        self.record_deltas();
    }

    /// Nobody follows any more: no deltas are kept.
    pub fn disable_deltas(&mut self) {
        self.deltas = None;
        (self.weigh.there, self.weigh.known) = (None, Vec::new());
        self.networks.keys().for_each(|vid| self.holdings.set_there(*vid, 0, 0));
    }

    /// [`Dag::account`] in the unit of [`Dag::be_followed`]; quotas are not in it. As if all networks were there.
    ///
    /// # Errors
    /// `UnknownNetwork`.
    pub fn account_there(&self, vid: Vid) -> Result<Account, TableError> {
        self.account_in(vid, |weight| weight.there)
    }

    /// Weighs all nodes anew in the unit of who follows.
    fn weigh_there(&mut self) {
        for node in self.nodes().collect::<Vec<_>>() {
            let runs = self.runs(node);
            self.weigh.learn(node, &runs);
        }
        let weight = |node| self.weigh.weight(&self.image, node).there;
        let account = |vid| Some((vid, self.account_by(vid, weight).ok()?));
        let accounts: Vec<(Vid, Account)> = self.networks.keys().copied().filter_map(account).collect();
        for (vid, account) in accounts {
            self.holdings.set_there(vid, account.bytes_own, account.bytes_marginal);
        }
    }

    /// The deltas since the last call (or since [`Dag::record_deltas`]), oldest first.
    pub fn take_deltas(&mut self) -> Vec<Delta> {
        self.deltas.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// [`Dag::apply`] with a follower that may refuse it: once all of the change is known and before any of it takes
    /// effect, `follow` gets the deltas that bring it (those not taken before first, the network's root last;
    /// `take_deltas` does not give them again). When it refuses, the store goes back to what it was, with the same
    /// nodes; the nodes that the follower was told of are retired.
    ///
    /// # Errors
    /// As [`Dag::apply`], and what `follow` says; then nothing has changed.
    pub fn apply_if<E: From<TableError>>(
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
                    deltas.push(Delta::Root(vid, Some(top)));
                    follow(&deltas)?;
                    store.image.set_root(vid, top);
                    Ok(())
                },
                true,
            ),
        )
    }

    /// Appends the nodes below `node` that were not seen yet, children first.
    fn describe(&self, node: Ref, seen: &mut HashMap<Ref, ()>, deltas: &mut Vec<Delta>) {
        if node.is_leaf() || seen.insert(node, ()).is_some() {
            return;
        }
        self.each_child(node, |child| self.describe(child, seen, deltas));
        deltas.push(Delta::Node(node, Arc::new(self.runs(node))));
    }
}
