//! Images for tests, built if they are missing or stale.
#![allow(dead_code)] // each test binary uses some of it

use std::path::Path;

use hue_card::{Images, Twin};

/// Images that contain the echo card of `rtl/tests/echo`, one for each bus width.
pub const ECHOES: [&str; 3] = ["tcam1", "default", "wide"];

/// Builds images of another card: `rtl/tests/TOP`.
fn make(top: &str, names: &[&str]) -> Images {
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join(top);
    let file = hue_testdata::root().join("rtl/tests").join(top).join("hue_card.sv");
    hue_testdata::make_images(&out, &[Path::new("--top"), &file], names);
    Images::in_folders(vec![out])
}

/// Images of the echo card.
pub fn echoes() -> Images {
    make("echo", &ECHOES)
}

/// An echo card after reset.
pub fn echo(name: &str) -> Twin {
    echoes().load(name).unwrap().start().unwrap()
}

/// A card that does not answer.
pub fn mute() -> Twin {
    make("mute", &["tcam1"]).load("tcam1").unwrap().start().unwrap()
}
