//! `hueplane history`, `hueplane rollback` and `hueplane confirm`.

use clap::Args;
use hueplaned::number::whole;

use super::{Output, Turn};

/// Show the revisions of the configuration
///
/// Every accepted change of the configuration is a revision: `apply`, `delete`, `rollback`, a move, a gate, another
/// image. For each revision, newest first: its number, when and by whom it was made, and which documents it
/// added (+), changed (~) and removed (-). The daemon keeps the latest 100 revisions, and at most 64 MiB.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hueplane history
  hueplane history -o json")]
pub struct History {
    #[command(flatten)]
    pub output: Output,
}

/// Restore the configuration of an earlier revision
///
/// Works like `apply` with the documents of that revision: changes only networks that differ, and if a
/// document is not valid any more, nothing changes. Networks that the revision did not have stay, unless
/// --prune deletes them. A rollback is a revision too, so it can be rolled back.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hueplane rollback
  hueplane rollback 12 --dry-run
  hueplane rollback 12 --prune")]
pub struct Rollback {
    /// Number of the revision, from `hueplane history`; by default the one before the latest change
    #[arg(value_name = "N", value_parser = whole::<u64>(0..), allow_negative_numbers = true)]
    pub revision: Option<u64>,
    /// Show the changes, but change nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Delete networks that the revision did not have
    #[arg(long)]
    pub prune: bool,
    #[command(flatten)]
    pub turn: Turn,
    #[command(flatten)]
    pub output: Output,
}

/// Keep a change that was applied with --confirm-within
///
/// Until then, or until its time is over, no other change is accepted. Without a confirmation, the daemon restores
/// the previous configuration. `hueplane rollback` restores it at once.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hueplane apply -f red.yaml --confirm-within 60s
  hueplane confirm")]
pub struct Confirm {
    #[command(flatten)]
    pub turn: Turn,
    #[command(flatten)]
    pub output: Output,
}
