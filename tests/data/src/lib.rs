//! Inputs of tests that are not part of the project: real tables, updates and captures, and images of the card. Also
//! random numbers, and the function with which a test reports that it is skipped.
//!
//! The data folder is `../shared/data` beside the project, or the one that `HUEPLANE_DATA` names.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

mod random;

pub use random::Random;

/// A file or folder of the data folder, by its name in it. `None` if it is missing: the test is then skipped.
#[must_use]
pub fn path(name: &str) -> Option<PathBuf> {
    let beside = || root().join("../shared/data");
    let path = std::env::var_os("HUEPLANE_DATA").map_or_else(beside, PathBuf::from).join(name);
    if let Ok(path) = path.canonicalize() {
        return Some(path);
    }
    skipped(name);
    None
}

/// Reports that the calling test does not run, or not all of it, because something is missing. The line goes directly to standard
/// error, past the test harness, which hides the output of passing tests. `scripts/test` counts such tests as skipped, not as
/// passed.
pub fn skipped(missing: &str) {
    say(&format!("skipped: {missing} missing"));
}

/// Prints a figure that a test measured, past the test harness.
pub fn figure(text: &str) {
    say(&format!("measured: {text}"));
}

fn say(what: &str) {
    // The harness runs each test in a thread with the test's name.
    let thread = std::thread::current();
    let line = format!("{what} ({})\n", thread.name().unwrap_or("?"));
    // A closed standard error must not fail a test.
    let _ = std::io::stderr().write_all(line.as_bytes());
}

/// Whether the long tests are enabled (`make test-full`).
#[must_use]
pub fn full() -> bool {
    std::env::var_os("HUEPLANE_FULL").is_some()
}

/// The seed that random experiments begin with: 0, or that of `HUEPLANE_SEED`.
#[must_use]
pub fn first_seed() -> u64 {
    std::env::var("HUEPLANE_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(0)
}

/// The images in every run of the tests: ternary tables with a 64-bit bus, the on-chip trie with a 256-bit bus, and, with 64-bit
/// buses, the trie and the papers' two banks in external memory.
pub const IMAGES: [&str; 4] = ["tcam3", "default", "sram", "dir"];

/// All images; `make test-full` tests each of them.
pub const ALL_IMAGES: [&str; 10] =
    ["tcam1", "tcam2", "tcam3", "tcam4", "tcam5", "default", "wide", "kinds", "sram", "dir"];

/// The images with other sizes for an FPGA (`target` in `rtl/images`), as they are for it.
pub const TARGET_IMAGES: [&str; 3] = ["default.ecp5-85", "kinds.xc7a200t", "tcam4.ecp5-85"];

/// The folder with these images of the card. Images that are missing or stale are compiled, with assertions. All tests share them.
///
/// # Panics
/// When they cannot be made.
#[must_use]
pub fn images(names: &[&str]) -> PathBuf {
    let out = target().join("tmp/images");
    make_images(&out, &[], names);
    out
}

/// A folder with these images and no others, so that a search among all images has the same result everywhere.
///
/// # Panics
/// When they cannot be made.
#[must_use]
pub fn images_alone(names: &[&str]) -> PathBuf {
    let from = images(names);
    let folder = target().join("tmp").join(format!("images-{}", names.join("-")));
    let made = std::fs::create_dir_all(&folder);
    made.unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    for file in names.iter().flat_map(|name| ["so", "json"].map(|end| format!("{name}.{end}"))) {
        match std::os::unix::fs::symlink(from.join(&file), folder.join(&file)) {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => panic!("{file}: {error}"),
            Ok(()) | Err(_) => {}
        }
    }
    folder
}

/// Makes images in a folder; `options` are those of `scripts/images`, for example for sources other than the project's.
///
/// # Panics
/// When they cannot be made.
pub fn make_images(out: &Path, options: &[&Path], names: &[&str]) {
    let mut command = Command::new(root().join("scripts/images"));
    let output = command.arg("--assert").arg("--out").arg(out).args(options).args(names).output();
    let output = output.unwrap_or_else(|error| panic!("scripts/images: {error}"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// The project's folder.
#[must_use]
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap_or_else(|error| panic!("{error}"))
}

/// Cargo's target folder: files that tests make are beside cargo's results.
#[must_use]
pub fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}
