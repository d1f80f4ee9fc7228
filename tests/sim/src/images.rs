//! Images of the card with their assertions on, made when they are missing or stale.

use std::path::{Path, PathBuf};
use std::process::Command;

use hue_card::Images;

/// The images that histories go through: ternary tables for three networks at a time, and the trie for many.
pub const IMAGES: [&str; 2] = ["tcam3", "default"];

/// Where they are.
///
/// # Panics
/// When they cannot be made.
#[must_use]
pub fn images() -> Images {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    // Tests that compare the card with software use the same ones.
    let out = target.join("tmp/differential");
    let mut command = Command::new(root.join("scripts/images"));
    command.arg("--assert").arg("--out").arg(&out).args(IMAGES);
    let output = command.output().unwrap_or_else(|error| panic!("scripts/images: {error}"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Images::in_folders(vec![out])
}
