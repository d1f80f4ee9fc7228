//! Images with assertions, compiled if they are missing or stale; and each side with a bug planted in its source.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use hue_card::{Image, Images};
use hue_testdata::{make_images, root, target};

/// The folder of images as a catalogue.
fn catalogue(out: PathBuf) -> Images {
    Images::in_folders(vec![out])
}

/// Images.
#[must_use]
pub fn images(names: &[&str]) -> Images {
    catalogue(hue_testdata::images(names))
}

/// These images and no others.
#[must_use]
pub fn images_alone(names: &[&str]) -> Images {
    catalogue(hue_testdata::images_alone(names))
}

/// An image.
#[must_use]
pub fn image(name: &str) -> Image {
    images(&[name]).load(name).unwrap()
}

/// An image of the RTL with one text of one file replaced by another. Tests that run in parallel use different folders.
#[must_use]
pub fn mutated(folder: &str, name: &str, file: &str, from: &str, to: &str) -> Image {
    let out = target().join("tmp/mutated").join(folder);
    let rtl = out.join("rtl");
    copy(&root().join("rtl"), &rtl);
    replace(&rtl.join(file), from, to);
    make_images(&out, &[Path::new("--rtl"), &rtl], &[name]);
    catalogue(out).load(name).unwrap()
}

/// Whether a test of this crate fails when one text of one Rust file is replaced by another. The workspace is
/// built from a copy, apart from this one.
#[must_use]
pub fn fails_with(file: &str, from: &str, to: &str, test: &str) -> bool {
    let copied = target().join("tmp/mutated/software");
    for entry in fs::read_dir(root()).unwrap() {
        let path = entry.unwrap().path();
        let place = copied.join(path.file_name().unwrap());
        match path.file_name().and_then(|name| name.to_str()) {
            Some("crates" | "rtl" | "scripts" | "spec" | "tests") => copy(&path, &place),
            Some("Cargo.toml" | "Cargo.lock") => _ = fs::copy(&path, &place).unwrap(),
            _ => {}
        }
    }
    replace(&copied.join(file), from, to);
    let cargo = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO"));
        command.args(["test", "--locked", "-j2", "--workspace", "--test", "differential"]);
        command.args(arguments).current_dir(&copied);
        // A separate target folder: otherwise cargo would reuse results from the copy, with the bug, for this workspace.
        command.env("CARGO_TARGET_DIR", target().join("tmp/mutated/target")).env_remove("HUEPLANE_FULL");
        command.output().expect("cargo runs")
    };
    let built = cargo(&["--no-run"]);
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let output = String::from_utf8_lossy(&cargo(&["--", "--exact", test]).stdout).into_owned();
    assert!(output.contains("running 1 test"), "{output}");
    output.contains("test result: FAILED. 0 passed; 1 failed")
}

fn replace(path: &Path, from: &str, to: &str) {
    let text = fs::read_to_string(path).unwrap();
    let planted = text.replacen(from, to, 1);
    assert_ne!(text, planted, "'{from}' is not in {}", path.display());
    fs::write(path, planted).unwrap();
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let place = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &place);
        } else {
            fs::copy(&path, &place).unwrap();
        }
    }
}
