//! Arguments of `new`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::Output;

/// Make the files of something that you add to hueplane
#[derive(Args, Debug)]
pub struct New {
    #[command(subcommand)]
    pub command: NewCommand,
}

#[derive(Subcommand, Debug)]
pub enum NewCommand {
    Plane(NewPlane),
}

/// Make the files of a kind of plane, in a source tree of hueplane
///
/// Writes specification, Rust module, golden cases, page of the guide and lab, and adds the kind to the lists that name all
/// kinds. What it makes builds, passes the tests of all kinds, and forwards: each frame goes to the port of the static entry
/// of its sender, or back. Change it into your plane from there. It runs in software. Nothing is written unless everything
/// can be.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hueplane new plane mirror
  hueplane new plane mirror --dir ~/hueplane")]
pub struct NewPlane {
    /// Name of the kind: lower-case letters, digits and underscores, at most 15 characters, first a letter
    #[arg(value_name = "NAME")]
    pub name: String,
    /// Folder of the source tree
    #[arg(long, value_name = "TREE", default_value = ".")]
    pub dir: PathBuf,
    #[command(flatten)]
    pub output: Output,
}
