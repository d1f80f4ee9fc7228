//! Generates files from `spec/kinds.toml` and `spec/kinds/*.toml`: `crates/planes/src/generated/kinds.rs`,
//! `rtl/common/hue_kinds_pkg.sv` and `docs/reference/outcomes.md`.
//!
//! `cargo run -p hue-spec-codegen` writes them. With `--check` it writes nothing and fails if one is stale; `make check`
//! tests the same. `--root DIR` names the project's root (default: two folders above this crate).
//! Exit codes: 0 success, 1 stale, 2 an error in the specification or a file.

mod emit_docs;
mod emit_rust;
mod emit_sv;
mod spec;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use thiserror::Error;

use crate::spec::Spec;

const SPEC: &str = "spec/kinds.toml";
const KINDS: &str = "spec/kinds";
const RUST: &str = "crates/planes/src/generated/kinds.rs";
const RTL: &str = "rtl/common/hue_kinds_pkg.sv";
const DOCS: &str = "docs/reference/outcomes.md";

#[derive(Debug, Error)]
enum Error {
    #[error("{path}: {source}")]
    File { path: PathBuf, source: std::io::Error },
    #[error("spec: {0}")]
    Spec(#[from] spec::SpecError),
    #[error("unknown argument '{0}': expected --check or --root DIR")]
    Argument(String),
}

fn outputs(spec: &Spec) -> [(&'static str, String); 3] {
    [(RUST, emit_rust::emit(spec)), (RTL, emit_sv::emit(spec)), (DOCS, emit_docs::emit(spec))]
}

/// Reads the specification: the file for all kinds, and the file of each kind.
fn read(root: &Path) -> Result<(String, Vec<(String, String)>), Error> {
    let at = |path: &Path| {
        let path = path.to_owned();
        move |source| Error::File { path, source }
    };
    let text = |path: &Path| fs::read_to_string(path).map_err(at(path));
    let folder = root.join(KINDS);
    let mut kinds = Vec::new();
    for entry in fs::read_dir(&folder).map_err(at(&folder))? {
        let path = entry.map_err(at(&folder))?.path();
        let (Some(name), Some("toml")) = (path.file_stem(), path.extension().and_then(|one| one.to_str()))
        else {
            continue;
        };
        kinds.push((name.to_string_lossy().into_owned(), text(&path)?));
    }
    kinds.sort_unstable();
    Ok((text(&root.join(SPEC))?, kinds))
}

/// Writes the outputs, or compares them. A comparison returns the stale ones.
fn generate(root: &Path, check: bool) -> Result<Vec<&'static str>, Error> {
    let (common, kinds) = read(root)?;
    let spec = Spec::parse(&common, &kinds)?;
    let mut stale = Vec::new();
    for (name, wanted) in outputs(&spec) {
        let path = root.join(name);
        let fresh = fs::read_to_string(&path).is_ok_and(|found| found == wanted);
        if fresh {
            continue;
        }
        if check {
            stale.push(name);
            continue;
        }
        let at = |source| Error::File { path: path.clone(), source };
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(at)?;
        }
        fs::write(&path, wanted).map_err(at)?;
        println!("wrote {name}");
    }
    Ok(stale)
}

fn run() -> Result<Vec<&'static str>, Error> {
    let mut root = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let mut check = false;
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--check" => check = true,
            "--root" => root = args.next().ok_or(Error::Argument(arg))?.into(),
            _ => return Err(Error::Argument(arg)),
        }
    }
    generate(&root, check)
}

fn main() -> ExitCode {
    match run() {
        Ok(stale) if stale.is_empty() => ExitCode::SUCCESS,
        Ok(stale) => {
            for name in stale {
                eprintln!("{name} is stale: run `cargo run -p hue-spec-codegen`");
            }
            ExitCode::from(1)
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root() -> PathBuf {
        PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
    }

    #[test]
    fn generated_files_are_fresh() {
        assert_eq!(generate(&root(), true).unwrap(), Vec::<&str>::new());
    }

    #[test]
    fn a_changed_row_makes_every_file_stale() {
        let (common, kinds) = read(&root()).unwrap();
        let mut changed = kinds.clone();
        for (_, text) in &mut changed {
            *text = text.replace("name = \"no_route\"", "name = \"no_path\"");
        }
        assert_ne!(kinds, changed);
        let (old, new) = (Spec::parse(&common, &kinds).unwrap(), Spec::parse(&common, &changed).unwrap());
        for ((name, old), (_, new)) in outputs(&old).into_iter().zip(outputs(&new)) {
            assert_ne!(old, new, "{name} does not depend on the outcome's name");
        }
    }

    /// A kind is a file of the specification, a module of its name and a folder of golden cases.
    #[test]
    fn every_kind_has_a_module_and_cases() {
        let (_, kinds) = read(&root()).unwrap();
        assert!(!kinds.is_empty());
        for (kind, _) in kinds {
            let module = format!("crates/planes/src/{kind}.rs");
            assert!(root().join(&module).is_file(), "{module} is missing");
            let folder = format!("spec/vectors/{kind}");
            let cases =
                fs::read_dir(root().join(&folder)).unwrap_or_else(|error| panic!("{folder}: {error}"));
            assert!(cases.count() > 0, "{folder} is empty");
        }
    }
}
