//! A lab for end-to-end tests and benches: real hosts in namespaces, bridges between them and the node, the node's
//! daemon, traffic with sequence numbers and times, and third-party routing daemons.
//!
//! Flow: [`Lab`] (node, switch) → [`Host`]s → [`Daemon`] (the built `hueplane`, driven by its command line) → [`traffic`].
//! Everything is removed when its owner is dropped, also when a test panics; the next test removes what a killed test
//! left. The lab is built with iproute2, and results are read from the command line, so that the tests do not depend on
//! the code under test; only raw frames use the product's packet socket and TAP device.
//! A failure is a panic with the action that was tried and its result.

pub mod bird;
pub mod burner;
pub mod daemon;
pub mod document;
pub mod frame;
pub mod frr;
pub mod http;
pub mod lab;
pub mod machine;
pub mod ovs;
pub mod raw;
pub mod shell;
pub mod space;
pub mod traffic;
pub mod wait;

pub use burner::Burners;
pub use daemon::{Cli, Daemon, two_networks};
pub use document::{Document, VirtualPort};
pub use lab::{Host, Lab, Pair};
pub use machine::Machine;
pub use ovs::Ovs;
pub use raw::{Flood, Raw, Sniffer};
pub use shell::{Output, run};
pub use space::Space;
pub use wait::{Deadline, until, until_some};

/// Whether this test can run: as root, with the programs that it needs. Reports what is missing, past the test harness.
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
