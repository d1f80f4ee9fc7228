//! Help, completions, man pages and the reference all come from one definition and are current.

use std::fs;
use std::path::Path;

use crate::support::Scratch;

const COMMANDS: [&str; 24] = [
    "",
    "demo",
    "doctor",
    "up",
    "down",
    "diff",
    "apply",
    "get",
    "delete",
    "delete network",
    "plan",
    "stats",
    "events",
    "exec",
    "capture",
    "trace",
    "validate",
    "schema",
    "run",
    "table",
    "table size",
    "table lookup",
    "table replay",
    "completions",
];

#[test]
fn every_command_has_help_with_examples_and_exit_codes() {
    let dir = Scratch::new();
    for command in COMMANDS {
        let help = dir.hueplane(&format!("{command} --help")).ok().stdout;
        assert!(help.contains("Usage: hueplane"), "{help}");
        if !["", "table", "delete"].contains(&command) {
            assert!(help.contains("Examples:\n  hueplane "), "{command}: {help}");
        }
    }
    let help = dir.hueplane("--help").ok().stdout;
    assert!(help.contains("Exit codes:") && help.contains("3  bad input"), "{help}");
    assert_eq!(dir.hueplane("").code, 2);
    assert_eq!(dir.hueplane("nonsense").code, 2);
    assert!(dir.hueplane("--version").ok().stdout.starts_with("hueplane "));
}

#[test]
fn completions_and_man_pages_cover_every_command() {
    let dir = Scratch::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = dir.hueplane(&format!("completions {shell}")).ok().stdout;
        assert!(script.contains("replay") && script.contains("skip-bad"), "{shell}");
    }
    assert!(dir.hueplane("man").ok().stdout.contains(".TH hueplane 1"));
    dir.hueplane("man --out man").ok();
    let pages = dir.files("man");
    for page in ["hueplane.1", "hueplane-run.1", "hueplane-table-lookup.1", "hueplane-delete-network.1"] {
        assert!(pages.iter().any(|name| name == page), "{pages:?}");
    }
    dir.write("file", "");
    dir.hueplane("man --out file/man").fails(1, "cannot be written");
}

/// Regenerate with `hueplane reference > docs/reference/cli.md`.
#[test]
fn the_reference_is_current() {
    let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/cli.md"));
    let want = Scratch::new().hueplane("reference").ok().stdout;
    let have = fs::read_to_string(path).unwrap_or_default();
    assert_eq!(
        have, want,
        "docs/reference/cli.md is stale: run `hueplane reference > docs/reference/cli.md`"
    );
}
