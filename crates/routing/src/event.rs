//! Events in the kernel of a namespace, from the monitor to the routing information base.
//!
//! Flow: netlink → monitor → **[`Event`]s** in [`Batch`]es → `Rib`. A snapshot of a namespace consists of the
//! items between [`Event::Begin`] and [`Event::End`]. Changes that happen meanwhile are mixed in. If a
//! snapshot is restarted, the first one has no `End`.

use std::fmt;

use hue_host::netlink::{Address, Link, Neighbour, Route};
use hue_tables::Vid;

/// What happened to an item.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Change {
    /// It is in a snapshot.
    Listed,
    /// It is new or has changed. A route comes before the others with the same destination and metric.
    Added,
    /// It is new. A route comes after the others with the same destination and metric.
    Appended,
    /// A route replaces the first one with the same destination and metric.
    Replaced,
    /// It was removed.
    Removed,
}

/// An event in a namespace.
#[derive(Clone, PartialEq, Debug)]
pub enum Event {
    /// A snapshot begins.
    Begin,
    /// The snapshot is complete. Items that were neither in it nor added meanwhile no longer exist.
    End,
    /// An event of an interface.
    Link(Change, Box<Link>),
    /// An event of an address.
    Address(Change, Address),
    /// An event of a route.
    Route(Change, Route),
    /// An event of a neighbour.
    Neighbour(Change, Neighbour),
    /// The namespace can no longer be monitored, with the reason. No event follows.
    Closed(String),
}

impl Event {
    /// The address family that it concerns; `None` if it concerns both.
    pub(crate) fn is_ipv4(&self) -> Option<bool> {
        match self {
            Self::Address(_, address) => Some(address.address.is_ipv4()),
            Self::Route(_, route) => Some(route.prefix.addr().is_ipv4()),
            Self::Neighbour(_, neighbour) => Some(neighbour.address.is_ipv4()),
            Self::Begin | Self::End | Self::Link(..) | Self::Closed(_) => None,
        }
    }
}

/// Identifies one period of monitoring a network.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Session(pub(crate) u64);

impl fmt::Display for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Events of one namespace, in order.
#[derive(Clone, PartialEq, Debug)]
pub struct Batch {
    /// The network it belongs to.
    pub vid: Vid,
    /// The result of [`crate::Monitor::add`]. Discard batches of an older session.
    pub session: Session,
    /// At most [`crate::BATCH_EVENTS_MAX`] events.
    pub events: Vec<Event>,
}
