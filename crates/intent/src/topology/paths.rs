//! Shortest paths through the links of a network (Dijkstra). Pure, and the same on every run: of paths of equal cost, the one
//! whose first hop comes first in the document wins.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::ResolvedLink;

/// The first hop towards a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hop {
    /// Place of the link in the network's list.
    pub link: usize,
    /// Cost of the whole path.
    pub cost: u64,
}

/// The links of a network, by node.
#[derive(Clone, Debug)]
pub struct Graph {
    /// Of each node: neighbour, place of the link, cost.
    links: Vec<Vec<(usize, usize, u64)>>,
}

impl Graph {
    /// The graph of these links between nodes below `nodes`.
    #[must_use]
    pub fn new(nodes: usize, links: &[ResolvedLink]) -> Self {
        let mut of = vec![Vec::new(); nodes];
        for (place, link) in links.iter().enumerate() {
            let [one, other] = link.ends;
            if one.max(other) < nodes {
                of[one].push((other, place, u64::from(link.cost)));
                of[other].push((one, place, u64::from(link.cost)));
            }
        }
        Self { links: of }
    }

    /// The first hop from `from` to every node; `None` for itself and for nodes without a path.
    #[must_use]
    pub fn hops(&self, from: usize) -> Vec<Option<Hop>> {
        let count = self.links.len();
        let mut best: Vec<Option<Hop>> = vec![None; count];
        let mut done = vec![false; count];
        let mut queue = BinaryHeap::new();
        let Some(own) = self.links.get(from) else { return best };
        done[from] = true;
        for (to, link, cost) in own {
            queue.push(Reverse((*cost, *link, *to)));
        }
        while let Some(Reverse((cost, first, node))) = queue.pop() {
            if std::mem::replace(&mut done[node], true) {
                continue;
            }
            best[node] = Some(Hop { link: first, cost });
            for (to, _, more) in &self.links[node] {
                if !done[*to] {
                    queue.push(Reverse((cost + more, first, *to)));
                }
            }
        }
        best
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::Under;

    fn graph(nodes: usize, links: &[(usize, usize, u32)]) -> Graph {
        let link = |&(one, other, cost): &(usize, usize, u32)| ResolvedLink {
            ends: [one, other],
            on: Under::Link(0),
            cost,
        };
        Graph::new(nodes, &links.iter().map(link).collect::<Vec<_>>())
    }

    #[test]
    fn the_cheapest_path_wins_then_the_first_link() {
        let square = graph(5, &[(0, 1, 1), (1, 2, 1), (0, 3, 1), (3, 2, 1), (0, 2, 3)]);
        let hops = square.hops(0);
        assert_eq!(hops[2], Some(Hop { link: 0, cost: 2 }), "of equal ones, the first");
        assert_eq!((hops[0], hops[4]), (None, None));
        assert_eq!(graph(2, &[(0, 1, 9), (1, 0, 2)]).hops(0)[1], Some(Hop { link: 1, cost: 2 }));
    }

    /// Every hop leads nearer by the cost of its link: following first hops ends, and sums to the cost.
    #[test]
    fn first_hops_lead_to_the_end() {
        let mut state = 7_u64;
        let mut next = |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % below
        };
        for _ in 0..50 {
            let nodes = 2 + next(12);
            let links: Vec<(usize, usize, u32)> = (0..next(30))
                .map(|_| (next(nodes), next(nodes), 1 + next(5) as u32))
                .filter(|(one, other, _)| one != other)
                .collect();
            let graph = graph(nodes, &links);
            let all: Vec<Vec<Option<Hop>>> = (0..nodes).map(|from| graph.hops(from)).collect();
            for from in 0..nodes {
                for to in (0..nodes).filter(|to| *to != from) {
                    let Some(hop) = all[from][to] else { continue };
                    let (one, other, cost) = links[hop.link];
                    let via = if one == from { other } else { one };
                    let rest = if via == to { 0 } else { all[via][to].map_or(u64::MAX, |rest| rest.cost) };
                    assert_eq!(hop.cost, u64::from(cost) + rest);
                }
            }
        }
    }
}
