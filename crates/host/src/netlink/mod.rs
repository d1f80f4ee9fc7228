//! Route netlink (RFC 3549, `rtnetlink(7)`) without a runtime: one socket, synchronous requests, dumps, notices.
//!
//! Flow: [`Request`] → **[`Socket`]** → kernel → [`Incoming`] → [`Notice`]s of plain types. Used by `links`, `addresses`,
//! `routes`, `neighbours` here, and by the routing crate, which listens to what changes.
//! Invariants: a socket belongs to the namespace it was opened in, for good, whatever thread uses it later. Attributes that
//! are not known are skipped, so that newer kernels are no problem; messages that are cut short are not read.
//! Own codec because it allocates nothing per attribute (a full table is 318,457 messages) and refuses nothing it does not
//! know.

mod decode;
mod request;
mod socket;

pub use decode::{
    Address, Attributes, Link, Neighbour, NextHop, Notice, Object, Route, RouteKind, Scope, neighbour_state,
    protocol,
};
pub use request::Request;
pub use socket::{Dump, Failure, Groups, Incoming, Message, Received, Socket};
