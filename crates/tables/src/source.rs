//! The routes of one network as the updater stores them: an uncompiled trie with 8-bit steps.
//!
//! Flow: `Dag::apply` edits the trie, then compiles the nodes marked dirty. Each node stores the routes that
//! end in it (1 to 8 bits longer than its depth; the default route in the top node) and the compiled ref of
//! each child, so a change rebuilds only its own path. Prefix lengths and depths are in bits; depths are
//! multiples of 8.

use crate::layout::{Ref, SLOTS};
use crate::types::{Key, NextHop, Prefix};

/// Index of a node in [`Source`].
pub(crate) type NodeId = u32;
/// The top node.
pub(crate) const TOP: NodeId = 0;

/// A child of a node, with everything needed to rebuild the parent without visiting the child.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Child {
    pub(crate) slot: u8,
    /// Whether routes in or below it have changed since it was compiled.
    pub(crate) dirty: bool,
    /// Next-hop word that it was compiled with, for addresses that none of its routes cover.
    pub(crate) inherited: u16,
    pub(crate) node: NodeId,
    pub(crate) compiled: Ref,
}

/// A node: routes by heap position (`1 << bits | value`), so that shorter ones come first.
#[derive(Default, Debug)]
pub(crate) struct Node {
    pub(crate) routes: Vec<(u16, u16)>,
    pub(crate) children: Vec<Child>,
}

impl Node {
    pub(crate) fn child(&self, slot: u8) -> Result<usize, usize> {
        if self.children.len() == SLOTS {
            return Ok(usize::from(slot));
        }
        self.children.binary_search_by_key(&slot, |child| child.slot)
    }

    /// Sets or clears the next-hop word at a heap position and returns the previous one.
    pub(crate) fn set(&mut self, position: u16, hop: Option<u16>) -> Option<u16> {
        match (self.routes.binary_search_by_key(&position, |route| route.0), hop) {
            (Ok(at), Some(hop)) => Some(std::mem::replace(&mut self.routes[at].1, hop)),
            (Ok(at), None) => Some(self.routes.remove(at).1),
            (Err(at), Some(hop)) => {
                self.routes.insert(at, (position, hop));
                None
            }
            (Err(_), None) => None,
        }
    }

    /// The leaves of the 256 slots: the longest matching route of this node, or the inherited word.
    pub(crate) fn leaves(&self, inherited: u16) -> [Ref; SLOTS] {
        let mut slots = [Ref::leaf(inherited); SLOTS];
        for &(position, hop) in &self.routes {
            let free_bits = 8 - position.ilog2();
            let first = (usize::from(position) << free_bits) & (SLOTS - 1);
            slots[first..first + (1 << free_bits)].fill(Ref::leaf(hop));
        }
        slots
    }
}

/// All routes of one network.
pub(crate) struct Source {
    nodes: Vec<Node>,
    free: Vec<NodeId>,
    pub(crate) routes: usize,
    /// The width of its keys.
    pub(crate) bits: u8,
    /// The compiled top node.
    pub(crate) compiled: Ref,
}

/// The place of a prefix: the path from the top, the node's depth, and the position in the node.
struct Place {
    depth: u8,
    position: u16,
}

impl Place {
    fn of<K: Key>(prefix: Prefix<K>) -> Self {
        let depth = prefix.len().saturating_sub(1) / 8 * 8;
        let bits = prefix.len() - depth;
        let value = u16::from(prefix.addr().byte_at(depth)) >> (8 - bits);
        Self { depth, position: (1 << bits) | value }
    }
}

impl Source {
    /// No routes, for keys of this width.
    pub(crate) fn new(bits: u8) -> Self {
        Self { nodes: vec![Node::default()], free: Vec::new(), routes: 0, bits, compiled: Ref::NONE }
    }

    pub(crate) fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id as usize]
    }

    pub(crate) fn node_mut(&mut self, id: NodeId) -> &mut Node {
        &mut self.nodes[id as usize]
    }

    /// The route for exactly this prefix.
    pub(crate) fn get<K: Key>(&self, prefix: Prefix<K>) -> Option<u16> {
        let place = Place::of(prefix);
        let mut id = TOP;
        for depth in (0..place.depth).step_by(8) {
            let node = self.node(id);
            id = node.children[node.child(prefix.addr().byte_at(depth)).ok()?].node;
        }
        let routes = &self.node(id).routes;
        routes.binary_search_by_key(&place.position, |route| route.0).ok().map(|at| routes[at].1)
    }

    /// Sets or clears a route, marks its path dirty, and returns the previous next-hop word. Clearing a route
    /// that does not exist marks nothing.
    pub(crate) fn set<K: Key>(&mut self, prefix: Prefix<K>, hop: Option<u16>) -> Option<u16> {
        if hop.is_none() {
            self.get(prefix)?;
        }
        let place = Place::of(prefix);
        let mut id = TOP;
        for depth in (0..place.depth).step_by(8) {
            let slot = prefix.addr().byte_at(depth);
            let at = match self.node(id).child(slot) {
                Ok(at) => at,
                Err(at) => {
                    let node = self.fresh();
                    let child =
                        Child { slot, dirty: true, inherited: NextHop::NONE_WORD, node, compiled: Ref::NONE };
                    self.node_mut(id).children.insert(at, child);
                    at
                }
            };
            let child = &mut self.node_mut(id).children[at];
            child.dirty = true;
            id = child.node;
        }
        let before = self.node_mut(id).set(place.position, hop);
        self.routes = self.routes + usize::from(hop.is_some()) - usize::from(before.is_some());
        before
    }

    /// Removes the nodes on the path to `prefix` that have neither routes nor children. Their compiled refs
    /// must already be leaves, as they are after a compilation without routes below.
    pub(crate) fn prune<K: Key>(&mut self, prefix: Prefix<K>) {
        let mut path = [(TOP, 0_usize); 16];
        let mut len = 0;
        let mut id = TOP;
        for depth in (0..Place::of(prefix).depth).step_by(8) {
            let Ok(at) = self.node(id).child(prefix.addr().byte_at(depth)) else { break };
            path[len] = (id, at);
            len += 1;
            id = self.node(id).children[at].node;
        }
        for &(parent, at) in path[..len].iter().rev() {
            let node = self.node(id);
            if !node.routes.is_empty() || !node.children.is_empty() {
                return;
            }
            debug_assert!(self.node(parent).children[at].compiled.is_leaf());
            self.node_mut(parent).children.remove(at);
            self.nodes[id as usize] = Node::default();
            self.free.push(id);
            id = parent;
        }
    }

    /// The compiled ref of every node of this source.
    pub(crate) fn compiled_refs(&self) -> impl Iterator<Item = Ref> + '_ {
        let children = self.nodes.iter().flat_map(|node| node.children.iter().map(|child| child.compiled));
        children.chain([self.compiled])
    }

    /// All routes, in no particular order.
    pub(crate) fn iter<K: Key>(&self) -> impl Iterator<Item = (Prefix<K>, u16)> + '_ {
        let mut stack = vec![(TOP, 0_u128, 0_u8)];
        std::iter::from_fn(move || {
            let (id, bits, depth) = stack.pop()?;
            let node = self.node(id);
            for child in &node.children {
                let slot = u128::from(child.slot) << (120 - depth);
                stack.push((child.node, bits | slot, depth + 8));
            }
            Some(node.routes.iter().map(move |&(position, hop)| {
                let len = position.ilog2() as u8;
                let value = u128::from(position) & ((1 << len) - 1);
                let addr = bits | (value << (120 - depth) << (8 - len));
                (Prefix::containing(K::from_bits(addr), depth + len), hop)
            }))
        })
        .flatten()
    }

    /// Bytes that the updater uses for these routes (an estimate of the allocations, not part of the image).
    pub(crate) fn bytes(&self) -> u64 {
        let nodes = self.nodes.capacity() * size_of::<Node>();
        let inside: usize = self
            .nodes
            .iter()
            .map(|n| {
                n.routes.capacity() * size_of::<(u16, u16)>() + n.children.capacity() * size_of::<Child>()
            })
            .sum();
        (nodes + inside) as u64
    }

    fn fresh(&mut self) -> NodeId {
        if let Some(id) = self.free.pop() {
            return id;
        }
        self.nodes.push(Node::default());
        (self.nodes.len() - 1) as NodeId
    }
}
