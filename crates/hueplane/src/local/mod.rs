//! Nodes and hosts on this machine, in network namespaces: what the demo and topologies have in common; and what programs that run
//! until a signal do.
//!
//! Flow: `space` (namespaces, hosts) → `daemon` (a daemon in a node's namespace) → `probe`, `endpoint` (programs on hosts) → `remains` (removing
//! everything). Invariant: everything is found again by the prefix of its names, so that a later process can remove it.

pub mod daemon;
pub mod endpoint;
pub mod probe;
pub mod questions;
pub mod remains;
pub mod space;
pub mod stop;
