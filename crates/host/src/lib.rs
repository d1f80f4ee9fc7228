//! What the operating system gives: namespaces, cgroups, links.
//!
//! Flow: hueplaned, routing and the command line → **host** → Linux. Everything here is synchronous, names what it makes
//! deterministically, and takes what it finds for what it is: doing a thing twice is doing it once, and a later run finds and
//! removes what a killed one left. One of the fences for unsafe code.

pub mod addresses;
pub mod cgroup;
pub mod control;
pub mod doctor;
mod error;
pub mod ethtool;
pub mod exec;
pub mod links;
pub mod neighbours;
pub mod netlink;
pub mod netns;
pub mod routes;
pub mod scheduling;
pub mod service;
pub mod sysctl;

pub use caps::Capability;
pub use cgroup::Cgroup;
pub use control::ControlNamespace;
pub use error::HostError;
pub use netns::Namespace;
