//! Route netlink (RFC 3549, `rtnetlink(7)`) without an async runtime: a socket with synchronous requests,
//! dumps and notifications.
//!
//! Flow: [`Request`] → **[`Socket`]** → kernel → [`Incoming`] → [`Notice`]s of plain types. Used by `links`,
//! `addresses`, `routes`, `neighbours` in this crate, and by the routing crate for notifications. Invariants:
//! a socket belongs permanently to the namespace in which it was opened, whatever thread uses it later.
//! Unknown attributes are skipped, for compatibility with newer kernels; truncated messages are not decoded.
//! The codec is our own, because it must not allocate for each attribute (a full table is 318,457 messages)
//! and must accept unknown attributes.

mod decode;
mod objects;
mod request;
mod socket;

pub use decode::Attributes;
pub use objects::{
    Address, AddressState, Link, Neighbour, NextHop, Notice, Object, Route, RouteKind, Scope,
    neighbour_state, protocol,
};
pub use request::Request;
pub(crate) use request::family;
pub use socket::{Dump, Failure, Groups, Incoming, Message, Received, Socket};
