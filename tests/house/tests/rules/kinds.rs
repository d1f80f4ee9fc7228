//! A kind is complete: who adds `spec/kinds/KIND.toml` adds everything that belongs to it (CONTRIBUTING.md, "Adding a kind
//! of plane"). The kinds are the files there; nothing here names one.

use std::collections::{BTreeMap, BTreeSet};

use super::{files, files_of, root};

/// Something that a kind must have, in the words of a failure, the file as CONTRIBUTING.md's table names it, and whether it
/// is there.
type Part = (&'static str, &'static str, fn(&Kind) -> bool);

/// All that every kind must have.
const PARTS: [Part; 3] = [
    ("module", "crates/planes/src/KIND.rs", |kind| exists(&format!("crates/planes/src/{}.rs", kind.name))),
    ("golden cases", "spec/vectors/KIND", |kind| !files(&format!("spec/vectors/{}", kind.name)).is_empty()),
    (GENERIC, "fuzz/fuzz_targets", |kind| {
        let makefile = text("Makefile");
        let targets =
            makefile.lines().filter_map(|line| line.trim().strip_prefix("cargo +nightly fuzz run "));
        let mut names = targets.filter_map(|rest| rest.split(' ').next());
        names.any(|name| fuzzes(&text(&format!("fuzz/fuzz_targets/{name}.rs")), &kind.name))
    }),
];

/// What a kind that networks can be of must have besides.
const USER_PARTS: [Part; 3] = [
    ("section `KIND`", "docs/guide/kinds.md", |kind| has_section(&text("docs/guide/kinds.md"), &kind.name)),
    ("row of the table", "docs/guide/kinds.md", |kind| {
        text("docs/guide/kinds.md").lines().any(|line| line.starts_with(&format!("| `{}` |", kind.name)))
    }),
    ("lab with such a network", "labs", |kind| {
        files_of("labs", "yaml")
            .into_iter()
            .map(|path| std::fs::read_to_string(path).unwrap())
            .any(|text| uses(&text, &kind.name))
    }),
];

/// What a kind that runs on the card must have besides.
const CARD_PARTS: [Part; 4] = [
    ("front", "rtl/planes/hue_KIND_check.sv", |kind| {
        exists(&format!("rtl/planes/hue_{}_check.sv", kind.name))
    }),
    ("verdicts", "rtl/planes/hue_stages_pkg.sv", |kind| {
        let calls = format!("{}_verdict(", kind.name);
        let named = |family: &String| {
            let calls = format!("{}_of_{family}(", kind.name);
            without_comments(&text("rtl/planes/hue_routes.sv")).contains(&calls)
        };
        // Packets of a kind with families have the verdicts of these, under other numbers.
        match kind.families.as_slice() {
            [] => without_comments(&text("rtl/planes/hue_stages_pkg.sv")).contains(&calls),
            families => families.iter().all(named),
        }
    }),
    ("proof of its front", "rtl/formal/hue_KIND_check_formal.sv", |kind| {
        let top = format!("top = \"hue_{}_check_formal\"", kind.name);
        exists(&format!("rtl/formal/hue_{}_check_formal.sv", kind.name))
            && text("rtl/formal/proofs.toml").lines().any(|line| line == top)
    }),
    ("image that has it", "rtl/images", |kind| {
        tables("rtl/images").iter().any(|image| {
            image["kinds"].as_array().unwrap().iter().any(|one| one.as_str() == Some(&*kind.name))
        })
    }),
];

/// The part that one file has for all kinds.
const GENERIC: &str = "fuzz target that `make fuzz` runs with it";

/// What `spec/kinds/KIND.toml` says.
struct Kind {
    name: String,
    id: i64,
    on_card: bool,
    test_only: bool,
    /// The kinds of its families of packets.
    families: Vec<String>,
}

fn kinds() -> Vec<Kind> {
    let kind = |table: toml::Table| Kind {
        name: table["name"].as_str().unwrap().to_owned(),
        id: table["id"].as_integer().unwrap(),
        test_only: table.get("test_only").is_some_and(|value| value.as_bool() == Some(true)),
        families: families(&table),
        on_card: table["runs_on"].as_array().unwrap().iter().any(|one| one.as_str() == Some("card")),
    };
    tables("spec/kinds").into_iter().map(kind).collect()
}

fn families(table: &toml::Table) -> Vec<String> {
    let all = table.get("family").and_then(toml::Value::as_array).into_iter().flatten();
    all.map(|family| family["kind"].as_str().unwrap().to_owned()).collect()
}

/// The TOML files of a folder.
fn tables(folder: &str) -> Vec<toml::Table> {
    let texts = files_of(folder, "toml").into_iter().map(|path| std::fs::read_to_string(path).unwrap());
    texts.map(|text| text.parse().unwrap()).collect()
}

/// What a kind lacks, and where it is looked for.
fn lacks(kind: &Kind) -> Vec<(&'static str, &'static str)> {
    let user = USER_PARTS.iter().filter(|_| !kind.test_only);
    let parts = PARTS.iter().chain(user).chain(CARD_PARTS.iter().filter(|_| kind.on_card));
    parts.filter(|(_, _, is_there)| !is_there(kind)).map(|(what, file, _)| (*what, *file)).collect()
}

/// The files that the table of CONTRIBUTING.md marks as checked.
fn marked(page: &str) -> BTreeSet<&str> {
    let section =
        page.split("\n## ").find(|section| section.starts_with("Adding a kind of plane\n")).unwrap();
    let rows = section.lines().filter(|line| line.starts_with("| `") && line.ends_with("| ✓ |"));
    let files = rows.flat_map(|row| row.split('|').nth(1).unwrap().split(", "));
    files.map(|file| file.trim().trim_matches('`')).collect()
}

fn without_comments(code: &str) -> String {
    code.lines().filter_map(|line| line.split("//").next()).collect()
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
    let code = without_comments(target);
    let every = code.contains("in Kind::ALL {") && code.contains("with_plane!(kind,");
    every || code.contains(&format!("hue_planes::{kind}::"))
}

#[test]
fn a_kind_is_complete() {
    let kinds = kinds();
    assert!(!kinds.is_empty());
    let missing = |kind: &Kind| {
        lacks(kind).into_iter().map(|(what, file)| format!("{}: {file}: no {what}", kind.name)).collect()
    };
    let missing: Vec<Vec<String>> = kinds.iter().map(missing).collect();
    assert_eq!(missing.concat(), Vec::<String>::new());
    let mut ids = BTreeMap::new();
    for kind in &kinds {
        assert_eq!(ids.insert(kind.id, &kind.name), None, "{}: id {} is taken", kind.name, kind.id);
    }
}

#[test]
fn the_guide_marks_what_is_checked() {
    let mut checked: BTreeSet<&str> =
        PARTS.iter().chain(&USER_PARTS).chain(&CARD_PARTS).map(|(_, file, _)| *file).collect();
    // The list of kinds itself; the proof's entry is checked with its harness.
    checked.extend(["spec/kinds/KIND.toml", "rtl/formal/proofs.toml"]);
    assert_eq!(marked(&text("CONTRIBUTING.md")), checked);
}

#[test]
fn an_incomplete_kind_is_noticed() {
    let planted = Kind { name: "nosuch".into(), id: 99, on_card: true, test_only: false, families: vec![] };
    // A target for every kind runs this one too, as soon as it is in spec/kinds.
    let all: Vec<(&str, &str)> = PARTS
        .iter()
        .chain(&USER_PARTS)
        .chain(&CARD_PARTS)
        .map(|(what, file, _)| (*what, *file))
        .filter(|(what, _)| *what != GENERIC)
        .collect();
    assert_eq!(lacks(&planted), all);
    let both = Kind { families: vec!["ipv4".into()], ..planted };
    assert_eq!(lacks(&both), all, "its outcomes are not renamed");
    let soft = Kind { on_card: false, ..both };
    assert!(lacks(&soft).iter().all(|(_, file)| !file.starts_with("rtl/")));

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
