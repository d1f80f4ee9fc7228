//! What happens in the kernel of a namespace, as the monitor tells it and the routing information base takes it.
//!
//! Flow: netlink → monitor → **[`Event`]s** in [`Batch`]es → `Rib`. A snapshot of a namespace is the items between
//! [`Event::Begin`] and [`Event::End`], mixed with changes that happen meanwhile; one that is begun anew has no end.

use std::fmt;

use hue_host::netlink::{Address, Link, Neighbour, Route};
use hue_tables::Vid;

/// How a thing came to be told.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Change {
    /// Is there, says a snapshot.
    Listed,
    /// Is new or has changed. A route: before those of the same destination and metric.
    Added,
    /// Is new; a route behind those of the same destination and metric.
    Appended,
    /// A route in the place of the first of the same destination and metric.
    Replaced,
    /// Is gone.
    Gone,
}

/// One event of a namespace.
#[derive(Clone, PartialEq, Debug)]
pub enum Event {
    /// A snapshot begins.
    Begin,
    /// The snapshot is complete: what was not in it and did not come meanwhile is gone.
    End,
    /// About an interface.
    Link(Change, Box<Link>),
    /// About an address.
    Address(Change, Address),
    /// About a route.
    Route(Change, Route),
    /// About a neighbour.
    Neighbour(Change, Neighbour),
    /// The namespace cannot be listened to any more, and why. Nothing follows.
    Closed(String),
}

/// Tells one time of listening to a network from the one before it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Session(pub(crate) u64);

impl fmt::Display for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Events of one namespace in their order.
#[derive(Clone, PartialEq, Debug)]
pub struct Batch {
    /// The network it belongs to.
    pub vid: Vid,
    /// What [`crate::Monitor::add`] gave; a batch of an older one is to be thrown away.
    pub session: Session,
    /// At most [`crate::BATCH_EVENTS_MAX`].
    pub events: Vec<Event>,
}
