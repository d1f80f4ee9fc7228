//! Control: compiles desired state into programs for substrates, and schedules networks.
//!
//! Flow: intent → **control** → [`hue_substrate::Program`] → substrate. Pure functions: no I/O, threads, clock or randomness.

mod compile;
mod error;
mod extract;
mod ids;
mod mpls;
mod names;
mod plan;
mod rofl;
mod routes;
pub mod schedule;
pub mod topology;
mod tunnels;

pub use compile::{Compiled, compile, compile_with};
pub use error::CompileError;
pub use ids::{Ids, assign};
pub use names::{Names, NetworkNames, Origin, PhysicalPort, RouteName};
pub use plan::{CHANGES_MAX, FieldChange, Plan, Step, Verb, plan};
pub use rofl::with_labels;
pub use tunnels::{bound_to_software, carriers, peer};
