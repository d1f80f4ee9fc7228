//! A kind is complete: who adds `spec/kinds/KIND.toml` adds everything that belongs to it (CONTRIBUTING.md, "Adding a kind
//! of plane"). The kinds are the files there; nothing here names one.

use std::collections::BTreeMap;

use super::{files, root};

/// Something that a kind must have, in the words of a failure, and whether it is there.
type Part = (&'static str, fn(&Kind) -> bool);

/// All that a kind must have.
const PARTS: [Part; 7] = [
    ("a module crates/planes/src/KIND.rs", |kind| exists(&format!("crates/planes/src/{}.rs", kind.name))),
    ("golden cases in spec/vectors/KIND", |kind| !files(&format!("spec/vectors/{}", kind.name)).is_empty()),
    ("a section `KIND` in docs/guide/kinds.md", |kind| has_section(&text("docs/guide/kinds.md"), &kind.name)),
    ("a row in the table of docs/guide/kinds.md", |kind| {
        text("docs/guide/kinds.md").lines().any(|line| line.starts_with(&format!("| `{}` |", kind.name)))
    }),
    ("a lab with such a network", |kind| {
        let yaml = files("labs").into_iter().filter(|path| path.extension().is_some_and(|one| one == "yaml"));
        yaml.map(|path| std::fs::read_to_string(path).unwrap()).any(|text| uses(&text, &kind.name))
    }),
    ("a fuzz target that `make fuzz` runs with it", |kind| {
        let makefile = text("Makefile");
        let targets =
            makefile.lines().filter_map(|line| line.trim().strip_prefix("cargo +nightly fuzz run "));
        let mut names = targets.filter_map(|rest| rest.split(' ').next());
        names.any(|name| fuzzes(&text(&format!("fuzz/fuzz_targets/{name}.rs")), &kind.name))
    }),
    ("a front rtl/planes/hue_KIND_check.sv, since it runs on the card", |kind| {
        !kind.on_card || exists(&format!("rtl/planes/hue_{}_check.sv", kind.name))
    }),
];

/// What `spec/kinds/KIND.toml` says.
struct Kind {
    name: String,
    id: i64,
    on_card: bool,
}

fn kinds() -> Vec<Kind> {
    let kind = |table: toml::Table| Kind {
        name: table["name"].as_str().unwrap().to_owned(),
        id: table["id"].as_integer().unwrap(),
        on_card: table["runs_on"].as_array().unwrap().iter().any(|one| one.as_str() == Some("card")),
    };
    let specs =
        files("spec/kinds").into_iter().filter(|path| path.extension().is_some_and(|one| one == "toml"));
    specs.map(|path| kind(std::fs::read_to_string(path).unwrap().parse().unwrap())).collect()
}

/// What a kind lacks.
fn lacks(kind: &Kind) -> Vec<&'static str> {
    PARTS.iter().filter(|(_, is_there)| !is_there(kind)).map(|(what, _)| *what).collect()
}

fn exists(path: &str) -> bool {
    root().join(path).is_file()
}

/// The text of a file; empty if it does not exist.
fn text(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_default()
}

/// Whether a page has a section about a kind that says something.
fn has_section(page: &str, kind: &str) -> bool {
    let mut sections = page.split("\n## ").skip(1);
    let own = sections.find_map(|section| section.strip_prefix(&format!("`{kind}`\n")));
    own.is_some_and(|section| !section.trim().is_empty())
}

/// Whether documents have a network of a kind. `kind` is a field of `plane`; no document is of such a kind itself.
fn uses(documents: &str, kind: &str) -> bool {
    let code = documents.lines().filter_map(|line| line.split('#').next());
    code.flat_map(|line| line.split("kind: ").skip(1)).any(|rest| {
        rest.strip_prefix(kind).is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric()))
    })
}

/// Whether a fuzz target runs the plane of a kind: that of every kind, or the kind's own.
fn fuzzes(target: &str, kind: &str) -> bool {
    let code: String = target.lines().filter_map(|line| line.split("//").next()).collect();
    let every = code.contains("in Kind::ALL {") && code.contains("with_plane!(kind,");
    every || code.contains(&format!("hue_planes::{kind}::"))
}

#[test]
fn a_kind_is_complete() {
    let kinds = kinds();
    assert!(!kinds.is_empty());
    let missing =
        |kind: &Kind| lacks(kind).into_iter().map(|what| format!("{} lacks {what}", kind.name)).collect();
    let missing: Vec<Vec<String>> = kinds.iter().map(missing).collect();
    assert_eq!(missing.concat(), Vec::<String>::new());
    let mut ids = BTreeMap::new();
    for kind in &kinds {
        assert_eq!(ids.insert(kind.id, &kind.name), None, "{}: id {} is taken", kind.name, kind.id);
    }
}

#[test]
fn an_incomplete_kind_is_noticed() {
    let planted = Kind { name: "nosuch".into(), id: 99, on_card: true };
    // A target for every kind runs this one too, as soon as it is in spec/kinds.
    let generic = "a fuzz target that `make fuzz` runs with it";
    let all: Vec<&str> = PARTS.iter().map(|(what, _)| *what).filter(|what| *what != generic).collect();
    assert_eq!(lacks(&planted), all);

    assert!(fuzzes("for kind in Kind::ALL {\n with_plane!(kind, P => check::<P>(frame));", "nosuch"));
    assert!(fuzzes("use hue_planes::nosuch::Nosuch;", "nosuch"));
    assert!(!fuzzes(
        "// for kind in Kind::ALL { with_plane!(kind, P => 1)\nuse hue_planes::ipv4::Ipv4;",
        "nosuch"
    ));
    assert!(uses("spec:\n  plane: {kind: nosuch, x: 1}", "nosuch") && uses("    kind: nosuch\n", "nosuch"));
    assert!(!uses("# plane: {kind: nosuch}\nkind: nosuch2\nplane: {kind: other}", "nosuch"));
    assert!(has_section("# Page\n\n## `nosuch`\n\nText.\n", "nosuch"));
    assert!(!has_section("# Page\n\n## `nosuch`\n\n## `other`\n\nText `nosuch`.\n", "nosuch"));
}
