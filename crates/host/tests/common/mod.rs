//! Helpers for tests of this crate that need root. Everything they create has a unique name and is removed at
//! the end, even if a test fails.
#![allow(dead_code)] // each test binary uses some of them
#![allow(clippy::unwrap_used)] // helpers of tests, which clippy treats as code

use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use hue_host::{Cgroup, Namespace, netns};

/// Whether the test can run; prints why if it cannot.
pub fn root() -> bool {
    let root = nix::unistd::geteuid().is_root();
    if !root {
        hue_testdata::skipped("root");
    }
    root
}

/// Unique names for one test.
pub struct Names {
    pub start: String,
}

impl Names {
    pub fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        Self { start: format!("hte-{}-{}-", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed)) }
    }

    pub fn name(&self, end: &str) -> String {
        format!("{}{end}", self.start)
    }

    pub fn namespace(&self, end: &str) -> Namespace {
        Namespace::create(&self.name(end)).unwrap()
    }
}

impl Drop for Names {
    fn drop(&mut self) {
        let trees = hue_host::cgroup::Trees::detect().unwrap();
        for network in trees.networks(&self.start) {
            if let Ok(Some(cgroup)) = Cgroup::open(&self.start, &network) {
                cgroup.delete().ok();
            }
        }
        for name in netns::list(&self.start).unwrap_or_default() {
            netns::delete(&name).ok();
        }
    }
}

/// Runs `ip` in a namespace and returns its output.
pub fn ip(namespace: &Namespace, arguments: &str) -> String {
    let output =
        Command::new("ip").args(["-n", namespace.name()]).args(arguments.split(' ')).output().unwrap();
    assert!(output.status.success(), "ip {arguments}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}
