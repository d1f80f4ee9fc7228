//! Services of the operating system: namespaces, cgroups, links.
//!
//! Flow: hueplaned, routing and the command line → **host** → Linux. All functions are synchronous and
//! idempotent, and use deterministic names, so that a later run finds and removes everything that a killed
//! run left. One of the few crates with unsafe code.

pub mod addresses;
pub mod cgroup;
pub mod claim;
pub mod control;
pub mod doctor;
mod error;
pub mod ethtool;
pub mod exec;
pub mod holder;
pub mod links;
pub mod local;
pub mod neighbours;
pub mod netlink;
pub mod netns;
pub mod process;
pub mod program;
pub mod rights;
pub mod routes;
pub mod scheduling;
pub mod service;
pub mod sysctl;

pub use caps::Capability;
pub use cgroup::Cgroup;
pub use control::ControlNamespace;
pub use error::HostError;
pub use netns::Namespace;
