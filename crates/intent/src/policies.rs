//! Routes by source of a network, as its plane has them.
//!
//! Flow: ports and routes of a document → **[`policies`]** → the validator checks them, control compiles them.

use hue_tables::{AnyPrefix, Policies, Policy, RouteBy};

use crate::types::{NetworkPort, Route, Target};

/// The routes of a network that depend on the source, and its links, for which they do not count: prefixes of its
/// addresses, and routes onto a port.
#[must_use]
pub fn policies<'r>(
    by: RouteBy,
    ports: &[NetworkPort],
    routes: impl IntoIterator<Item = &'r Route>,
) -> Policies {
    let own = ports.iter().flat_map(|port| &port.addresses).filter(|own| own.has_link());
    let mut links: Vec<AnyPrefix> = own.map(|own| own.link()).collect();
    let mut list = Vec::new();
    for route in routes {
        match (route.from, &route.target) {
            (Some(from), Target::Via(via)) => list.push(Policy { from, to: route.to, via: *via }),
            (None, Target::Port(_)) => links.push(route.to),
            _ => {}
        }
    }
    links.sort_unstable();
    links.dedup();
    Policies { by, links, list }
}
