//! `hueplane new plane`: the files of a kind of plane.
//!
//! Flow: name and source tree → [`plan::Plan`], what each file will be → files. All is planned before anything is written; if a
//! file cannot be written, those before it are taken back.

mod pages;
mod plan;

use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::cli::{New, NewCommand, NewPlane};
use crate::failure::Failure;
use crate::print;
use plan::Plan;

/// The result: files of the tree.
#[derive(Serialize)]
struct Made {
    kind: String,
    id: u8,
    made: Vec<PathBuf>,
    changed: Vec<PathBuf>,
}

/// Runs the command.
pub fn new(args: &New) -> Result<(), Failure> {
    match &args.command {
        NewCommand::Plane(args) => plane(args),
    }
}

fn plane(args: &NewPlane) -> Result<(), Failure> {
    let plan = Plan::new(&args.dir, &args.name)?;
    write(&args.dir, &plan)?;
    let paths = |is_new: bool| {
        plan.files
            .iter()
            .filter(move |file| file.before.is_none() == is_new)
            .map(|file| file.path.clone())
            .collect()
    };
    let made = Made { kind: args.name.clone(), id: plan.id, made: paths(true), changed: paths(false) };
    print::result(args.output.format, &made, || {
        let list = |paths: &[PathBuf]| -> String {
            paths.iter().map(|path| format!("  {}\n", path.display())).collect()
        };
        let name = &args.name;
        format!(
            "kind {name} has id {}\nmade:\n{}changed:\n{}next, in {}:\n  cargo run -p hue-spec-codegen\n  cargo fmt\n  \
             cargo test --workspace --test conformance --test rules\n  cargo test --workspace --test soft vectors\n  \
             cargo run -p hueplane -- trace -f labs/{name}/hueplane.yaml --in-port p0 --hex {}\n\
             then change it into your plane: docs/guide/write-a-plane.md\n",
            made.id,
            list(&made.made),
            list(&made.changed),
            args.dir.display(),
            pages::FRAME,
        )
    })
}

/// Writes all files, or none.
fn write(tree: &Path, plan: &Plan) -> Result<(), Failure> {
    for (done, file) in plan.files.iter().enumerate() {
        let path = tree.join(&file.path);
        let folder = path.parent().map_or(Ok(()), fs::create_dir_all);
        if let Err(source) = folder.and_then(|()| fs::write(&path, &file.text)) {
            for file in &plan.files[..=done] {
                take_back(tree, file);
            }
            return Err(Failure::Output { path, source });
        }
    }
    Ok(())
}

/// Makes a file what it was before; what cannot be taken back stays.
fn take_back(tree: &Path, file: &plan::File) {
    let path = tree.join(&file.path);
    match &file.before {
        Some(before) => {
            let _ = fs::write(&path, before);
        }
        None => {
            let _ = fs::remove_file(&path);
            // Its folder, if it is new and so empty.
            if let Some(folder) = path.parent() {
                let _ = fs::remove_dir(folder);
            }
        }
    }
}
