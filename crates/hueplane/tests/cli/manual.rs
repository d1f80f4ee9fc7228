//! Help, completions, man pages and the reference all come from one definition and are current.

use std::fs;
use std::path::Path;

use crate::support::Scratch;

const COMMANDS: [&str; 26] = [
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
    "certs init",
    "certs add",
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

/// Words that bash offers for the last word of a command line.
fn completed(dir: &Scratch, line: &[&str]) -> Vec<String> {
    let script = r#"
        source <(hueplane completions bash)
        COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMP_TYPE=9
        _clap_complete_hueplane hueplane "${COMP_WORDS[COMP_CWORD]}" ""
        printf '%s\n' "${COMPREPLY[@]}""#;
    let bash = [&["-c", script, "bash"], line].concat();
    let offered = dir.program("bash", &bash).ok();
    assert_eq!(offered.stderr, "");
    offered.stdout.lines().map(|word| word.trim_end().to_owned()).collect()
}

#[test]
fn bash_completes_commands_options_values_and_images() {
    let dir = Scratch::new();
    assert_eq!(completed(&dir, &["hueplane", "tab"]), ["table"]);
    assert_eq!(completed(&dir, &["hueplane", "delete", ""])[0], "network");
    assert!(completed(&dir, &["hueplane", "table", "replay", "--sk"]).contains(&"--skip-bad".to_owned()));
    assert_eq!(completed(&dir, &["hueplane", "run", "--on", ""]), ["soft", "card"]);
    for image in ["left", "right"] {
        dir.write(&format!("images/{image}.so"), "");
    }
    assert_eq!(completed(&dir, &["hueplane", "run", "--image", "l"]), ["left"]);
    // No daemon runs: no names, and no error.
    assert!(
        completed(&dir, &["hueplane", "exec", ""])
            .iter()
            .all(|word| word.starts_with('-') || word.is_empty())
    );
}

#[test]
fn completions_and_man_pages_cover_every_command() {
    let dir = Scratch::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = dir.hueplane(&format!("completions {shell}")).ok().stdout;
        assert!(script.contains("HUEPLANE_COMPLETE") && script.contains("hueplane"), "{shell}: {script}");
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

/// The rows of the table under a heading of the reference.
fn limits(reference: &str, title: &str) -> Vec<String> {
    let (_, after) = reference.split_once(&format!("### {title}\n\n")).unwrap();
    let table = after.lines().take_while(|line| line.starts_with('|')).skip(2);
    let rows: Vec<String> = table.map(str::to_owned).collect();
    assert!(rows.len() > 5, "{title}: {rows:?}");
    rows
}

/// Ranges of numbers in a text: `at most N`, and `M to N`.
fn ranges(text: &str) -> Vec<String> {
    let words: Vec<&str> =
        text.split_whitespace().map(|word| word.trim_matches([',', '.', ';', ':', '|', '('])).collect();
    let is_number = |word: &str| word.starts_with(|c: char| c.is_ascii_digit()) && !word.contains('/');
    let found = words.windows(3).filter_map(|three| match three {
        [a, "to", b] if is_number(a) && is_number(b) => Some(format!("{a} to {b}")),
        [a, "most", b] if a.eq_ignore_ascii_case("at") && is_number(b) => Some(format!("at most {b}")),
        _ => None,
    });
    found.collect()
}

#[test]
fn all_documents_name_the_limits_that_the_program_enforces() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let read = |name: &str| fs::read_to_string(root.join(name)).unwrap();
    let reference = Scratch::new().hueplane("reference").ok().stdout;
    // Whole tables.
    for (name, title) in [("SECURITY.md", "Files and frames"), ("docs/guide/api.md", "The API")] {
        let rows = limits(&reference, title).join("\n");
        assert!(read(name).contains(&rows), "{name} lacks these rows of its table of limits:\n{rows}");
    }
    // Each field's limit stands in its line, and no other limit is claimed.
    let rows = limits(&reference, "Fields of documents");
    let text = read("docs/guide/configuration.md");
    let mut known = Vec::new();
    for row in &rows {
        let parts: Vec<&str> = row.trim_matches('|').split(" | ").map(str::trim).collect();
        let [field, limit] = parts[..] else { panic!("{row}") };
        let field = field.split(" (").next().unwrap();
        let line = |line: &str| line.contains(field) && line.to_lowercase().contains(&limit.to_lowercase());
        assert!(
            text.lines().any(line),
            "docs/guide/configuration.md has no line with '{field}' and '{limit}'"
        );
        known.extend(ranges(limit));
    }
    for range in text.lines().flat_map(ranges) {
        assert!(
            known.contains(&range),
            "docs/guide/configuration.md says '{range}', which is no limit: {known:?}"
        );
    }
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
