//! The house rules that a machine can check. Each check is itself tested with a planted violation.
#![allow(clippy::unwrap_used)] // a test fails by panicking

#[path = "rules/benches.rs"]
mod benches;
#[path = "rules/kinds.rs"]
mod kinds;
#[path = "rules/modules.rs"]
mod modules;

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// Crates in flow order (docs: ARCHITECTURE.md); a crate uses only crates before it.
const ORDER: [&str; 15] = [
    "wire",
    "tables",
    "demux",
    "planes",
    "host",
    "ports",
    "substrate",
    "soft",
    "card",
    "intent",
    "routing",
    "control",
    "lab",
    "hueplaned",
    "hueplane",
];

/// Licences that are compatible with Apache-2.0 in a distributed binary.
const LICENCES: [&str; 12] = [
    "Apache-2.0",
    "MIT",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "ISC",
    "Zlib",
    "Unicode-3.0",
    "0BSD",
    "CC0-1.0",
    "Unlicense",
    "MIT-0",
    "BSL-1.0",
];

/// Folders that may contain unsafe code: the fences.
const FENCES: [&str; 5] = [
    "crates/host/",
    "crates/ports/",
    "crates/card/src/bar/",
    "crates/card/src/twin/",
    "crates/tables/src/mem/",
];

/// The project's root; that of another tree, if a test names one.
fn root() -> PathBuf {
    if let Some(tree) = std::env::var_os("HUEPLANE_TREE") {
        return tree.into();
    }
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn metadata() -> Value {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--format-version", "1", "--locked"])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Files under a folder of the project, without build output.
fn files(folder: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![root().join(folder)];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() && name != "target" && name != ".git" {
                open.push(path);
            } else if path.is_file() {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// The files of a folder with an extension, as [`files`] lists them.
fn files_of(folder: &str, extension: &str) -> Vec<PathBuf> {
    let mut files = files(folder);
    files.retain(|path| path.extension().is_some_and(|one| one == extension));
    files
}

fn relative(path: &Path) -> String {
    path.strip_prefix(root()).unwrap().to_string_lossy().into_owned()
}

fn place(package: &str) -> Option<usize> {
    let name = package.strip_prefix("hue-").unwrap_or(package);
    ORDER.iter().position(|crate_name| *crate_name == name)
}

/// Uses that violate the order, as "user uses used".
fn against_order(uses: &[(String, String)]) -> Vec<String> {
    uses.iter()
        .filter_map(|(user, used)| {
            let (user_at, used_at) = (place(user)?, place(used)?);
            (used_at >= user_at).then(|| format!("{user} uses {used}"))
        })
        .collect()
}

#[test]
fn a_crate_uses_only_crates_before_it() {
    let metadata = metadata();
    let members: Vec<&Value> = metadata["packages"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|p| p["source"].is_null() && p["manifest_path"].as_str().unwrap().contains("/crates/"))
        .collect();
    let mut uses = Vec::new();
    for package in members {
        let name = package["name"].as_str().unwrap();
        assert!(place(name).is_some(), "crate {name} has no place in the flow order: give it one");
        for dependency in package["dependencies"].as_array().unwrap() {
            uses.push((name.to_owned(), dependency["name"].as_str().unwrap().to_owned()));
        }
    }
    assert!(uses.iter().any(|(_, used)| used == "hue-wire"), "no uses found: the check sees nothing");
    assert_eq!(against_order(&uses), Vec::<String>::new());
    let planted =
        [("hue-wire".to_owned(), "hue-planes".to_owned()), ("hue-planes".to_owned(), "hue-wire".to_owned())];
    assert_eq!(against_order(&planted), ["hue-wire uses hue-planes"]);
}

fn allowed(expression: &str) -> bool {
    let Ok(parsed) = spdx::Expression::parse_mode(expression, spdx::ParseMode::LAX) else { return false };
    parsed.evaluate(|req| {
        req.license.id().is_some_and(|id| LICENCES.contains(&id.name))
            // The LLVM exception only adds permissions.
            && req.addition.is_none()
    })
}

#[test]
fn dependencies_have_licences_we_may_ship() {
    let metadata = metadata();
    let mut refused = Vec::new();
    let packages = metadata["packages"].as_array().unwrap();
    for package in packages {
        let licence = package["license"].as_str().unwrap_or("none");
        if !allowed(licence) {
            refused.push(format!("{} {}: {licence}", package["name"], package["version"]));
        }
    }
    assert!(packages.len() > 20, "the check sees too few packages");
    assert_eq!(refused, Vec::<String>::new());
    assert!(allowed("MIT/Apache-2.0") && allowed("GPL-3.0 OR MIT"));
    assert!(!allowed("GPL-3.0-only") && !allowed("MIT AND AGPL-3.0") && !allowed("none"));
}

#[test]
fn unsafe_code_stays_inside_its_fences() {
    let opened: Vec<String> = ["crates", "spec", "tests"]
        .into_iter()
        .flat_map(|folder| files_of(folder, "rs"))
        .filter(|path| std::fs::read_to_string(path).unwrap().contains(concat!("allow(", "unsafe_code)")))
        .map(|path| relative(&path))
        .collect();
    assert!(!opened.is_empty(), "the check sees no fence");
    for file in opened {
        assert!(
            FENCES.iter().any(|fence| file.starts_with(fence)),
            "{file} opens unsafe code outside the fences"
        );
    }
    for manifest in files("crates").iter().filter(|path| path.ends_with("Cargo.toml")) {
        let text = std::fs::read_to_string(manifest).unwrap();
        assert!(text.contains("[lints]\nworkspace = true"), "{} leaves the lints", relative(manifest));
    }
}

#[test]
fn texts_name_no_people_machines_or_issues() {
    // Paths of a developer's machine; written apart so that this file does not find itself.
    let foreign =
        [concat!("/work", "/main"), concat!("/ro", "ot/"), concat!("/tmp", "/t-"), concat!("/ho", "me/")];
    let texts = ["crates", "spec", "docs", "labs", "scripts", "tests", "bench", "fuzz", ".ci"];
    let top = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "Makefile"];
    let all = texts.into_iter().flat_map(files).chain(top.map(|name| root().join(name)));
    let mut seen = 0;
    for path in all {
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        seen += 1;
        for word in foreign {
            assert!(!text.contains(word), "{} names {word}", relative(&path));
        }
    }
    assert!(seen > 50, "the check sees too few files");
    for file in top {
        assert!(root().join(file).is_file(), "{file} is missing");
    }
}

/// Phrases that users could not understand, and that must not come back.
#[test]
fn texts_are_plain() {
    let clumsy = [
        "to be had",
        "who asks may",
        "none of this name",
        "that mends it",
        "which is about all",
        "whosoever",
        "invalid digit found",
    ];
    let sources = files("crates").into_iter().filter(|path| path.iter().any(|part| part == "src"));
    for path in sources.chain(files("docs")).chain([root().join("README.md")]) {
        // It translates the sentences of a library.
        if path.ends_with("http/plain.rs") || path.ends_with("hueplaned/src/number.rs") {
            continue;
        }
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        let text = text.to_lowercase();
        for phrase in clumsy {
            assert!(!text.contains(phrase), "{} says \"{phrase}\"", relative(&path));
        }
    }
}
