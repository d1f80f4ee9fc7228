//! A lab for end-to-end tests and benches: real hosts in namespaces, bridges between them and the node, the node's
//! daemon, traffic with sequence numbers and times, and routing daemons of others.
//!
//! Flow: [`Lab`] (node, switch) → [`Host`]s → [`Daemon`] (the built `hueplane`, driven by its command line) → [`traffic`].
//! Everything is removed when its owner is dropped, also when a test panics; what a killed test left is removed by the
//! next one. The lab is made by iproute2 and results are read from the command line, so that what is tested is not what tests;
//! only raw frames go by the product's packet socket.
//! A failure is a panic that says what was tried and what came back.

pub mod bird;
pub mod burner;
pub mod daemon;
pub mod document;
pub mod frame;
pub mod frr;
pub mod http;
pub mod lab;
pub mod raw;
pub mod shell;
pub mod space;
pub mod traffic;
pub mod wait;

pub use burner::Burners;
pub use daemon::{Cli, Daemon, two_networks};
pub use document::{Document, VirtualPort};
pub use lab::{Host, Lab, Pair};
pub use raw::{Flood, Raw, Sniffer};
pub use shell::{Output, run};
pub use space::Space;
pub use wait::{Deadline, until, until_some};

/// Whether this test can run: as root, with what it needs installed. Says what is missing, past the test harness.
#[must_use]
pub fn can_run(programs: &[&str]) -> bool {
    let missing = |what: &str| {
        hue_testdata::skipped(what);
        false
    };
    if !nix::unistd::geteuid().is_root() {
        return missing("root");
    }
    match ["ip", "ethtool", "ping"].iter().chain(programs).find(|program| shell::find(program).is_none()) {
        Some(program) => missing(program),
        None => true,
    }
}
