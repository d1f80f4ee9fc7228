//! The live system from outside: real hosts in namespaces, the built `hueplane`, and its command line. Needs root.
//!
//! Each module covers one topic. Each test makes a lab of its own unless it says otherwise. No test measures wall time: the
//! tests check packets that arrive, and counters.
#![allow(clippy::unwrap_used)] // a test fails by panicking

mod accounts;
mod api;
mod attach;
mod card;
mod card_floods;
mod contention;
mod crash;
mod daemon;
mod drain;
mod drift;
mod dual;
mod extract;
mod faults;
mod forwarding;
mod gates;
mod generator;
mod groups;
mod harness;
mod history;
mod hostile;
mod ipv6;
mod kernel;
mod l2;
mod labs;
mod links;
mod memory;
mod migrate;
mod mpls;
mod multi;
mod observe;
mod outlive;
mod policy;
mod process;
mod pwospf;
mod queue;
mod quota;
mod reconcile;
mod remote;
mod report;
mod ring;
mod rofl;
mod routing;
mod splice;
mod status;
mod topology;
mod tunnels;
mod upgrade;
