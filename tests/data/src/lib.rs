//! Real data for tests: tables, updates and captures that are not part of the project.
//!
//! The folder is `../shared/data` beside the project, or the one that `HUEPLANE_DATA` names.

use std::io::Write;
use std::path::{Path, PathBuf};

/// A file or folder of the data folder, by its name in it. `None` when it is missing, which is said once more for each
/// test that asks: on standard error itself, past the test harness, which keeps what a passing test prints to itself.
#[must_use]
pub fn path(name: &str) -> Option<PathBuf> {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let path = std::env::var_os("HUEPLANE_DATA").map_or_else(beside, PathBuf::from).join(name);
    if let Ok(path) = path.canonicalize() {
        return Some(path);
    }
    // A closed standard error is no reason to fail a test that does not run.
    let _ = std::io::stderr().write_all(format!("skipped: {name} missing\n").as_bytes());
    None
}
