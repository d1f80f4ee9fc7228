//! Shortest paths: links of this router and the database → routes.
//!
//! The distance is the number of links. A link is used only if both ends claim it, with the same subnet and mask. A subnet
//! is reached through the nearest router that advertises it, also if the other end of its link does not claim it (yet): the
//! router is on the subnet all the same. Ties go to the path found first, in the order of router ids and addresses, so all
//! is determined by the input.

use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};
use std::net::Ipv4Addr;

use hue_tables::Prefix4;

use super::database::Database;
use super::packet::{Advertisement, RouterId};

/// The next hop of a route.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct NextHop {
    /// Index of the interface.
    pub link: u32,
    /// The neighbour's address.
    pub via: Ipv4Addr,
}

/// A route.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Route {
    /// Where packets go.
    pub next: NextHop,
    /// The router that advertises the subnet.
    pub router: RouterId,
    /// Links between this router and that one.
    pub hops: u32,
}

/// A neighbour of this router: the link to it, and how it is reached.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Adjacency {
    /// The neighbour.
    pub router: RouterId,
    /// The link's subnet.
    pub prefix: Prefix4,
    /// How it is reached.
    pub next: NextHop,
}

/// Computes the routes of router `own` with these neighbours. Subnets in `attached` get none.
#[must_use]
pub fn routes(
    own: RouterId,
    neighbours: &[Adjacency],
    attached: &BTreeSet<Prefix4>,
    database: &Database,
) -> BTreeMap<Prefix4, Route> {
    let claims: HashSet<(RouterId, Advertisement)> = database
        .iter()
        .flat_map(|(router, entry)| entry.links.iter().map(move |link| (router, *link)))
        .collect();
    let claimed_by =
        |router, prefix, other| claims.contains(&(router, Advertisement { prefix, router: Some(other) }));

    let mut sorted = neighbours.to_vec();
    sorted.sort_unstable();
    let mut reached: HashSet<RouterId> = HashSet::from([own]);
    let mut queue = VecDeque::new();
    for one in sorted {
        if claimed_by(one.router, one.prefix, own) && reached.insert(one.router) {
            queue.push_back((one.router, one.next, 1));
        }
    }
    let mut found = BTreeMap::new();
    while let Some((router, next, hops)) = queue.pop_front() {
        let Some(entry) = database.get(router) else { continue };
        let mut others = Vec::new();
        for link in &entry.links {
            if !attached.contains(&link.prefix) {
                // Routers come in the order of their distance, so the first one is the nearest.
                found.entry(link.prefix).or_insert(Route { next, router, hops });
            }
            others.extend(link.router.filter(|other| claimed_by(*other, link.prefix, router)));
        }
        others.sort_unstable();
        for other in others {
            if reached.insert(other) {
                queue.push_back((other, next, hops + 1));
            }
        }
    }
    found
}
