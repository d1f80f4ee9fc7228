//! `new plane` in a copy of the source tree: what it makes is a kind, and what cannot be made leaves the tree as it is.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::Scratch;

/// What the command, the generator and the rules read.
const PARTS: [&str; 10] = [
    "Cargo.toml",
    "CONTRIBUTING.md",
    "Makefile",
    "crates",
    "docs",
    "fuzz/fuzz_targets",
    "labs",
    "rtl",
    "spec",
    "tests",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Copies parts of the source tree.
fn copy(dir: &Scratch, parts: &[&str]) {
    let to = dir.path("tree");
    fs::create_dir_all(&to).unwrap();
    for part in parts {
        let parents = ["-r", "--parents", part, to.to_str().unwrap()];
        assert!(Command::new("cp").args(parents).current_dir(root()).status().unwrap().success(), "{part}");
    }
}

/// All files of the tree with their contents.
fn contents(dir: &Scratch) -> BTreeMap<PathBuf, Vec<u8>> {
    let (mut found, mut open) = (BTreeMap::new(), vec![dir.path("tree")]);
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else {
                let bytes = fs::read(&path).unwrap();
                found.insert(path, bytes);
            }
        }
    }
    found
}

/// Runs cargo; returns what it printed.
fn cargo(folder: &Path, arguments: &[&str], variables: &[(&str, &Path)]) -> String {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(program);
    command.args(arguments).current_dir(folder).envs(variables.iter().copied());
    let output = command.output().unwrap();
    let text = [&output.stdout[..], &output.stderr].map(String::from_utf8_lossy).concat();
    assert!(output.status.success(), "cargo {}: {text}", arguments.join(" "));
    text
}

#[test]
fn a_new_kind_is_complete_and_the_generator_knows_it() {
    let dir = Scratch::new();
    copy(&dir, &PARTS);
    let before = contents(&dir);
    let made = dir.hueplane("new plane sample --dir tree -o json").ok().json();
    let list = |what: &str| {
        let paths = made[what].as_array().unwrap().iter().map(|path| path.as_str().unwrap().to_owned());
        paths.collect::<Vec<_>>()
    };
    let after = contents(&dir);
    let tree = dir.path("tree");
    let new = after.keys().filter(|path| !before.contains_key(*path));
    let changed = before.iter().filter(|(path, bytes)| after[*path] != **bytes).map(|(path, _)| path);
    let relative = |path: &PathBuf| path.strip_prefix(&tree).unwrap().to_str().unwrap().to_owned();
    let sorted = |mut paths: Vec<String>| {
        paths.sort();
        paths
    };
    assert_eq!(sorted(list("made")), sorted(new.map(relative).collect()));
    assert_eq!(sorted(list("changed")), sorted(changed.map(relative).collect()));
    assert!(made["id"].as_u64().unwrap() > 10, "{made}");

    // The generator makes its outcomes, and the rules find nothing that it lacks.
    let path = tree.to_str().unwrap();
    let told =
        cargo(&root(), &["run", "-q", "--locked", "-p", "hue-spec-codegen", "--", "--root", path], &[]);
    assert!(told.contains("crates/planes/src/generated/kinds.rs"), "{told}");
    let complete = ["test", "-q", "--locked", "--workspace", "--test", "rules", "a_kind_is_complete"];
    let told = cargo(&root(), &complete, &[("HUEPLANE_TREE", &tree)]);
    assert!(told.contains("1 passed"), "{told}");

    // Its lab is a document that a program with the kind would accept; this one does not know it.
    let lab = dir.hueplane("validate -f tree/labs/sample/hueplane.yaml");
    assert!(lab.code == 3 && lab.stderr.contains("found \"sample\", expected ipv4"), "{lab:?}");
    assert_eq!(lab.stderr.matches("found").count(), 1, "{lab:?}");

    // The same name again, and other names that cannot be.
    let before = contents(&dir);
    for (name, code, why) in [
        ("sample", 2, "this kind exists already"),
        ("Sample", 2, "expected at most 15 lower-case letters"),
        ("meter", 3, "crates/planes/src/meter.rs: exists already"),
    ] {
        let done = dir.hueplane(&format!("new plane {name} --dir tree"));
        assert!(done.code == code && done.stderr.contains(why), "{done:?}");
    }
    assert!(contents(&dir) == before, "something was written");
    let done = dir.hueplane("new plane other --dir tree/spec");
    assert!(
        done.code == 3 && done.stderr.contains("no source tree of hueplane: Cargo.toml is missing"),
        "{done:?}"
    );
}

#[test]
fn a_tree_in_which_something_cannot_be_made_stays_as_it_is() {
    let dir = Scratch::new();
    copy(&dir, &PARTS);
    let world = dir.path("tree/tests/sim/src/world.rs");
    let text = fs::read_to_string(&world).unwrap();
    fs::write(&world, text.replace("Kind::Echo => None", "_ => None")).unwrap();
    let before = contents(&dir);
    let done = dir.hueplane("new plane sample --dir tree");
    assert!(
        done.code == 3 && done.stderr.contains("tests/sim/src/world.rs: found no list of kinds"),
        "{done:?}"
    );
    assert!(contents(&dir) == before, "something was written");
    fs::write(&world, text).unwrap();
    // A file where a folder should be: the last new file cannot be written, and the others are taken back.
    fs::write(dir.path("tree/labs/sample"), "").unwrap();
    let before = contents(&dir);
    let done = dir.hueplane("new plane sample --dir tree");
    assert!(done.code == 1 && done.stderr.contains("cannot be written"), "{done:?}");
    assert!(contents(&dir) == before, "something was left");
}

#[test]
#[ignore = "long: make test-full"]
fn a_new_kind_builds_and_passes_the_tests_of_all_kinds() {
    let dir = Scratch::new();
    let all = [
        "Cargo.toml",
        "Cargo.lock",
        "rustfmt.toml",
        "clippy.toml",
        "CONTRIBUTING.md",
        "Makefile",
        "README.md",
        "ARCHITECTURE.md",
        "SECURITY.md",
    ];
    let folders = [
        "bench/Cargo.lock",
        "bench/Cargo.toml",
        "bench/README.md",
        "bench/build.rs",
        "bench/card",
        "bench/csrc",
        "bench/live",
        "bench/results",
        "bench/src",
        "crates",
        "docs",
        "fuzz/fuzz_targets",
        "labs",
        "packaging",
        "rtl",
        "scripts",
        "spec",
        "tests",
    ];
    copy(&dir, &[&all[..], &folders].concat());
    let tree = dir.path("tree");
    let _ = dir.hueplane("new plane sample --dir tree").ok();
    // Its own folder for what is built: the other one has this project's files.
    let target = root().join("target/new-plane");
    let built = [("CARGO_TARGET_DIR", target.as_path())];
    let _ = cargo(&tree, &["run", "-q", "--locked", "-p", "hue-spec-codegen"], &built);
    let formatted = ["fmt", "--check", "-p", "hue-planes", "-p", "hue-sim"];
    let _ = cargo(&tree, &formatted, &built);
    let rules = [
        "test",
        "-q",
        "--locked",
        "--workspace",
        "--test",
        "rules",
        "--test",
        "conformance",
        "--test",
        "sim",
        "kinds",
    ];
    let _ = cargo(&tree, &rules, &built);
    let _ = cargo(&tree, &["test", "-q", "--locked", "--workspace", "--test", "conformance"], &built);
    let _ = cargo(&tree, &["test", "-q", "--locked", "--workspace", "--test", "soft", "vectors"], &built);
    // Its page's commands print what the page shows.
    let labs = ["test", "-q", "--locked", "--workspace", "--test", "cli", "labs::commands_of_the_pages"];
    let _ = cargo(&tree, &labs, &built);
}
