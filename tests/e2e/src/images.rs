//! Images of the card for daemons under test: with assertions on, made when they are missing or stale.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::shell;

/// The folder with these images. Tests of the card without a daemon use the same ones.
///
/// # Panics
/// When they cannot be made.
#[must_use]
pub fn folder(names: &[&str]) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let out = target.join("tmp/differential");
    let mut command = Command::new(root.join("scripts/images"));
    let _ = shell::run(command.arg("--assert").arg("--out").arg(&out).args(names)).expect_ok();
    out
}
