//! A kind is complete: who adds `spec/kinds/KIND.toml` adds everything that belongs to it (CONTRIBUTING.md, "Adding a kind
//! of plane"). The kinds are the files there; nothing here names one.

use std::collections::{BTreeMap, BTreeSet};

use super::{files, files_of, root};

/// Something that a kind must have, in the words of a failure, the file as CONTRIBUTING.md's table names it, and whether it
/// is there.
type Part = (&'static str, &'static str, fn(&Kind) -> bool);

/// All that every kind must have.
const PARTS: [Part; 4] = [
    ("module", "crates/planes/src/KIND.rs", |kind| exists(&format!("crates/planes/src/{}.rs", kind.name))),
    ("declaration of the module", "crates/planes/src/lib.rs", |kind| {
        says("crates/planes/src/lib.rs", &format!("pub mod {};", kind.name))
    }),
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

/// What a kind that networks can be of must have for each of its settings, if it has some.
const SETTING_PARTS: [Part; 4] = [
    ("reader of each setting", "crates/intent/src/document.rs", |kind| {
        kind.settings.iter().all(|name| says("crates/intent/src/document.rs", &format!("\"{name}\"")))
    }),
    ("field for each setting", "crates/intent/src/types.rs", |kind| {
        kind.settings.iter().all(|name| says("crates/intent/src/types.rs", &format!("pub {name}: ")))
    }),
    ("use of each setting", "crates/control/src/compile.rs", |kind| {
        // What happens in the namespace is the daemon's.
        let places = ["crates/control/src/compile.rs", "crates/hueplaned/src/node/programs.rs"];
        let used = |name: &String| places.iter().any(|place| says(place, &format!("plane.{name}")));
        kind.settings.iter().all(used)
    }),
    ("row for each setting", "docs/guide/configuration.md", |kind| {
        kind.settings.iter().all(|name| explains(&text("docs/guide/configuration.md"), name, &kind.name))
    }),
];

/// What a kind that runs on the card must have besides.
const CARD_PARTS: [Part; 6] = [
    ("front", "rtl/planes/hue_KIND_check.sv", |kind| {
        exists(&format!("rtl/planes/hue_{}_check.sv", kind.name))
    }),
    ("instance of the front", "rtl/demux", |kind| {
        let texts =
            files_of("rtl/demux", "sv").into_iter().map(|path| std::fs::read_to_string(path).unwrap());
        texts.into_iter().any(|text| instantiates(&text, &format!("hue_{}_check", kind.name)))
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
    ("random networks", "tests/differential/src/world.rs", |kind| {
        let variant = variant(&kind.name);
        let named = [format!("Kind::{variant}"), format!("Settings::{variant}(")];
        named.iter().any(|name| says("tests/differential/src/world.rs", name))
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
    /// What a network of the kind may say about its plane.
    settings: Vec<String>,
}

fn kinds() -> Vec<Kind> {
    let kind = |table: toml::Table| Kind {
        name: table["name"].as_str().unwrap().to_owned(),
        id: table["id"].as_integer().unwrap(),
        test_only: table.get("test_only").is_some_and(|value| value.as_bool() == Some(true)),
        families: families(&table),
        settings: settings(&table),
        on_card: table["runs_on"].as_array().unwrap().iter().any(|one| one.as_str() == Some("card")),
    };
    tables("spec/kinds").into_iter().map(kind).collect()
}

fn families(table: &toml::Table) -> Vec<String> {
    let all = table.get("family").and_then(toml::Value::as_array).into_iter().flatten();
    all.map(|family| family["kind"].as_str().unwrap().to_owned()).collect()
}

fn settings(table: &toml::Table) -> Vec<String> {
    let all = table.get("setting").and_then(toml::Value::as_array).into_iter().flatten();
    all.map(|setting| setting["name"].as_str().unwrap().to_owned()).collect()
}

/// The TOML files of a folder.
fn tables(folder: &str) -> Vec<toml::Table> {
    let texts = files_of(folder, "toml").into_iter().map(|path| std::fs::read_to_string(path).unwrap());
    texts.map(|text| text.parse().unwrap()).collect()
}

/// What a kind lacks, and where it is looked for.
fn lacks(kind: &Kind) -> Vec<(&'static str, &'static str)> {
    let user = USER_PARTS.iter().chain(&SETTING_PARTS).filter(|_| !kind.test_only);
    let parts = PARTS.iter().chain(user).chain(CARD_PARTS.iter().filter(|_| kind.on_card));
    parts.filter(|(_, _, is_there)| !is_there(kind)).map(|(what, file, _)| (*what, *file)).collect()
}

/// All parts, in the order in which a kind lacks them.
fn all_parts() -> impl Iterator<Item = &'static Part> {
    PARTS.iter().chain(&USER_PARTS).chain(&SETTING_PARTS).chain(&CARD_PARTS)
}

/// The files of the table of CONTRIBUTING.md, and whether they are marked as checked.
fn listed(page: &str) -> Vec<(&str, bool)> {
    let section =
        page.split("\n## ").find(|section| section.starts_with("Adding a kind of plane\n")).unwrap();
    let rows = section.lines().filter(|line| line.starts_with("| `"));
    let files = rows.flat_map(|row| {
        let files = row.split('|').nth(1).unwrap().split(", ");
        files.map(|file| (file.trim().trim_matches('`'), row.ends_with("| ✓ |")))
    });
    files.collect()
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

/// Whether the code of a file has this text.
fn says(path: &str, what: &str) -> bool {
    without_comments(&text(path)).contains(what)
}

/// Whether RTL has an instance of a module.
fn instantiates(code: &str, module: &str) -> bool {
    let code = without_comments(code);
    code.contains(&format!(" {module} u_")) || code.contains(&format!(" {module} #("))
}

/// Whether the guide's table of fields has a row for a setting that names the kind.
fn explains(page: &str, setting: &str, kind: &str) -> bool {
    let mut rows = page.lines().filter(|line| line.starts_with(&format!("| `plane.{setting}`")));
    rows.any(|row| row.contains(&format!("`{kind}`")))
}

/// The Rust name of a kind.
fn variant(kind: &str) -> String {
    let upper = |word: &str| format!("{}{}", word[..1].to_uppercase(), &word[1..]);
    kind.split('_').map(upper).collect()
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
    let mut checked: BTreeSet<&str> = all_parts().map(|(_, file, _)| *file).collect();
    // The list of kinds itself; the proof's entry is checked with its harness.
    checked.extend(["spec/kinds/KIND.toml", "rtl/formal/proofs.toml"]);
    let page = text("CONTRIBUTING.md");
    let listed = listed(&page);
    let marked: BTreeSet<&str> = listed.iter().filter(|(_, marked)| *marked).map(|(file, _)| *file).collect();
    assert_eq!(marked, checked);
    let gone = |file: &&str| !file.contains("KIND") && !root().join(file).exists();
    let gone: Vec<&str> = listed.into_iter().map(|(file, _)| file).filter(gone).collect();
    assert_eq!(gone, Vec::<&str>::new());
}

#[test]
fn an_incomplete_kind_is_noticed() {
    let settings = vec!["nosuch_max".to_owned()];
    let planted = Kind {
        name: "nosuch".into(),
        id: 99,
        on_card: true,
        test_only: false,
        families: Vec::new(),
        settings: settings.clone(),
    };
    // A target for every kind runs this one too, as soon as it is in spec/kinds.
    let all: Vec<(&str, &str)> =
        all_parts().map(|(what, file, _)| (*what, *file)).filter(|(what, _)| *what != GENERIC).collect();
    assert_eq!(lacks(&planted), all);
    let both = Kind { families: vec!["ipv4".into()], ..planted };
    assert_eq!(lacks(&both), all, "its outcomes are not renamed");
    let soft = Kind { on_card: false, ..both };
    assert!(lacks(&soft).iter().all(|(_, file)| !file.starts_with("rtl/")));
    let of_settings: Vec<(&str, &str)> = SETTING_PARTS.iter().map(|(what, file, _)| (*what, *file)).collect();
    // A kind that is there, with one setting more; without settings there is nothing to lack.
    let whole = || kinds().into_iter().find(|kind| !kind.settings.is_empty()).unwrap();
    let more = Kind { settings, ..whole() };
    assert_eq!((lacks(&whole()), lacks(&more)), (Vec::new(), of_settings));
    let test = Kind { test_only: true, ..more };
    assert_eq!(lacks(&test), Vec::new());

    assert!(fuzzes("for kind in Kind::ALL {\n with_plane!(kind, P => check::<P>(frame));", "nosuch"));
    assert!(fuzzes("use hue_planes::nosuch::Nosuch;", "nosuch"));
    assert!(!fuzzes(
        "// for kind in Kind::ALL { with_plane!(kind, P => 1)\nuse hue_planes::ipv4::Ipv4;",
        "nosuch"
    ));
    assert!(uses("spec:\n  plane: {kind: nosuch, x: 1}", "nosuch") && uses("    kind: nosuch\n", "nosuch"));
    assert!(!uses("# plane: {kind: nosuch}\nkind: nosuch2\nplane: {kind: other}", "nosuch"));
    assert!(instantiates("    hue_nosuch_check u_check (.head_i);", "hue_nosuch_check"));
    assert!(instantiates("    hue_nosuch_check #(.Nets(Nets)) u_check (", "hue_nosuch_check"));
    let others =
        " // hue_nosuch_check u_check (\n hue_nosuch_check_formal u_check (\n no_hue_nosuch_check u_check (";
    assert!(!instantiates(others, "hue_nosuch_check"));
    assert!(explains("| `plane.x` | with kinds `ipv4` and `nosuch`: X |", "x", "nosuch"));
    assert!(!explains("| `plane.x` | with kind `ipv4` |\n| `x` | with kind `nosuch` |", "x", "nosuch"));
    assert_eq!((variant("l2"), variant("no_such")), ("L2".to_owned(), "NoSuch".to_owned()));
    assert!(has_section("# Page\n\n## `nosuch`\n\nText.\n", "nosuch"));
    assert!(!has_section("# Page\n\n## `nosuch`\n\n## `other`\n\nText `nosuch`.\n", "nosuch"));
}
