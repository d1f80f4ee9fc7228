//! What a source tree will be with a new kind of plane: which files are made, and which change.
//!
//! The template is the kind `echo` of the same tree. Tests compile and run it, so it cannot become stale; `tests/cli/new.rs` runs
//! this command on a copy of the tree. Invariant: nothing here writes.

use std::fs;
use std::path::{Path, PathBuf};

use super::pages;
use crate::failure::Failure;

/// Longest name, so that no line of the template becomes too long.
const NAME_CHARS_MAX: usize = 15;
/// The kind whose files are the template.
const TEMPLATE: &str = "echo";
/// Its id; those of kinds that networks can be of are below.
const TEMPLATE_ID: u8 = 255;
/// Words that cannot be the name of a module (Rust reference, "Keywords").
const KEYWORDS: [&str; 50] = [
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "crate", "do", "dyn",
    "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let", "loop",
    "macro", "match", "mod", "move", "mut", "override", "priv", "pub", "ref", "return", "self", "static",
    "struct", "super", "trait", "true", "try", "type", "typeof", "unsafe", "unsized", "use", "virtual",
    "where", "while",
];

const SPEC: &str = "spec/kinds";
const LIB: &str = "crates/planes/src/lib.rs";
const PAGE: &str = "docs/guide/kinds.md";
const WORLD: &str = "tests/sim/src/world.rs";

/// A file as it will be.
pub struct File {
    /// In the tree.
    pub path: PathBuf,
    /// Its text now; `None` if it is new.
    pub before: Option<String>,
    /// Its text then.
    pub text: String,
}

/// All files that are made or changed.
pub struct Plan {
    /// The kind's id.
    pub id: u8,
    /// Files, in the order in which they are written.
    pub files: Vec<File>,
}

impl Plan {
    /// The files of a kind of this name in a tree.
    pub fn new(tree: &Path, name: &str) -> Result<Self, Failure> {
        let tree = Tree(tree);
        tree.must_be_one()?;
        let kinds = tree.kinds()?;
        check_name(name, &kinds)?;
        let ids = kinds.iter().map(|kind| kind.id).filter(|id| *id != TEMPLATE_ID);
        let id = ids.max().unwrap_or(0) + 1;
        if id == TEMPLATE_ID {
            return Err(wrong(SPEC, format!("all ids up to {} are taken", id - 1)));
        }
        let of = Names { name, variant: variant(name), id };
        let mut files = Vec::new();
        for (path, text) in [
            (format!("{SPEC}/{name}.toml"), of.spec(&tree)?),
            (format!("crates/planes/src/{name}.rs"), of.module(&tree)?),
            (format!("spec/vectors/{name}/{name}.toml"), of.cases(&tree)?),
            (format!("labs/{name}/hueplane.yaml"), pages::document(name)),
            (format!("labs/{name}/README.md"), pages::lab(name)),
        ] {
            if tree.path(&path).exists() {
                return Err(wrong(&path, "exists already; choose another name".to_owned()));
            }
            files.push(File { path: path.into(), before: None, text });
        }
        let mut change = |path: &str, expected: &str, change: &dyn Fn(&str) -> Option<String>| {
            let before = tree.read(path)?;
            let missing = || wrong(path, format!("found no list of kinds, expected {expected}"));
            let text = change(&before).ok_or_else(missing)?;
            files.push(File { path: path.into(), before: Some(before), text });
            Ok::<(), Failure>(())
        };
        change(LIB, "a list of `mod NAME;`", &|text| of.in_lib(text))?;
        change(PAGE, "a table of kinds", &|text| of.in_page(text))?;
        change(WORLD, "an arm `Kind::Echo => None`", &|text| of.in_world(text))?;
        Ok(Self { id, files })
    }
}

/// A kind of the tree.
struct Kind {
    name: String,
    id: u8,
}

/// A source tree.
struct Tree<'a>(&'a Path);

impl Tree<'_> {
    fn path(&self, file: &str) -> PathBuf {
        self.0.join(file)
    }

    fn read(&self, file: &str) -> Result<String, Failure> {
        fs::read_to_string(self.path(file)).map_err(|error| wrong(file, format!("cannot be read: {error}")))
    }

    fn must_be_one(&self) -> Result<(), Failure> {
        let files = [
            "Cargo.toml",
            "CONTRIBUTING.md",
            "spec/kinds.toml",
            "crates/hueplane/Cargo.toml",
            LIB,
            PAGE,
            WORLD,
        ];
        match files.into_iter().find(|file| !self.path(file).is_file()) {
            Some(file) => Err(Failure::Input(format!(
                "{}: no source tree of hueplane: {file} is missing; run this in one, or name it with --dir",
                self.0.display()
            ))),
            None => Ok(()),
        }
    }

    /// All kinds. Their files are read line by line: both fields are at the start of a line.
    fn kinds(&self) -> Result<Vec<Kind>, Failure> {
        let folder = self.path(SPEC);
        let entries =
            fs::read_dir(&folder).map_err(|error| wrong(SPEC, format!("cannot be read: {error}")))?;
        let mut kinds = Vec::new();
        for entry in entries {
            let path = entry.map_err(|error| wrong(SPEC, format!("cannot be read: {error}")))?.path();
            let Some(name) = path.file_stem().and_then(|name| name.to_str()) else { continue };
            if path.extension().is_none_or(|end| end != "toml") {
                continue;
            }
            let file = format!("{SPEC}/{name}.toml");
            let text = self.read(&file)?;
            let id = text.lines().find_map(|line| line.strip_prefix("id = "));
            let id = id.and_then(|id| id.trim().parse().ok());
            let id = id.ok_or_else(|| wrong(&file, "no line `id = NUMBER`".to_owned()))?;
            kinds.push(Kind { name: name.to_owned(), id });
        }
        Ok(kinds)
    }
}

fn wrong(file: &str, what: String) -> Failure {
    Failure::Input(format!("{file}: {what}"))
}

fn check_name(name: &str, kinds: &[Kind]) -> Result<(), Failure> {
    let no = |what: String| Err(Failure::Usage(format!("{name:?}: {what}")));
    let is_snake = name.starts_with(|first: char| first.is_ascii_lowercase())
        && name.chars().all(|one| one.is_ascii_lowercase() || one.is_ascii_digit() || one == '_')
        && !name.contains("__")
        && !name.ends_with('_');
    if !is_snake || name.len() > NAME_CHARS_MAX {
        return no(format!(
            "expected at most {NAME_CHARS_MAX} lower-case letters, digits and single underscores, first a letter, such as mirror"
        ));
    }
    if KEYWORDS.contains(&name) {
        return no("a keyword of Rust cannot be the name of a module".to_owned());
    }
    match kinds.iter().find(|kind| variant(&kind.name) == variant(name)) {
        Some(kind) if kind.name == name => no("this kind exists already".to_owned()),
        Some(kind) => no(format!("in Rust it would have the name of kind {}", kind.name)),
        None => Ok(()),
    }
}

/// The Rust name of a kind.
fn variant(name: &str) -> String {
    let upper = |word: &str| {
        let mut chars = word.chars();
        chars.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(chars).collect::<String>()
    };
    name.split('_').map(upper).collect()
}

/// What a kind is called.
struct Names<'a> {
    name: &'a str,
    variant: String,
    id: u8,
}

impl Names<'_> {
    /// The specification: the template's, for documents too.
    fn spec(&self, tree: &Tree<'_>) -> Result<String, Failure> {
        let file = format!("{SPEC}/{TEMPLATE}.toml");
        let text = tree.read(&file)?;
        let text = without_head(&text, "#");
        let name = self.name;
        let head = format!(
            "# The kind `{name}`. Its rules and the outcomes before these are in spec/kinds.toml. The list of outcomes is in the order in\n\
             # which they are tried, and says what the plane does: change it first.\n"
        );
        let pairs = [
            (format!("name = \"{TEMPLATE}\"\n"), format!("name = \"{name}\"\n")),
            (format!("id = {TEMPLATE_ID}\n"), format!("id = {}\n", self.id)),
            ("test_only = true\n".to_owned(), String::new()),
        ];
        Ok(head + &replaced(text, &file, &pairs)?)
    }

    /// The plane.
    fn module(&self, tree: &Tree<'_>) -> Result<String, Failure> {
        let file = format!("crates/planes/src/{TEMPLATE}.rs");
        let text = tree.read(&file)?;
        let text = without_head(&text, "//!");
        let name = self.name;
        let head = format!(
            "//! The `{name}` kind: sends each frame to the port of its sender's static entry, or back to its sender.\n//!\n\
             //! Flow: demux → meter → [`check`] → table lookup of the sender → [`finish`] → port. Outcomes and their order:\n\
             //! `spec/kinds/{name}.toml`.\n"
        );
        let pairs = [
            (format!("generated::{TEMPLATE}::"), format!("generated::{name}::")),
            ("Kind::Echo;".to_owned(), format!("Kind::{};", self.variant)),
        ];
        Ok(head + &replaced(text, &file, &pairs)?)
    }

    /// The golden cases.
    fn cases(&self, tree: &Tree<'_>) -> Result<String, Failure> {
        let file = format!("spec/vectors/{TEMPLATE}/{TEMPLATE}.toml");
        let text = tree.read(&file)?;
        let pairs = [
            (format!("\"{TEMPLATE}\""), format!("\"{}\"", self.name)),
            (format!("[counters.{TEMPLATE}]"), format!("[counters.{}]", self.name)),
        ];
        replaced(&text, &file, &pairs)
    }

    /// The module in the list of modules, after the last one whose name comes before it: what is above a module of the
    /// list, such as an attribute, stays there.
    fn in_lib(&self, text: &str) -> Option<String> {
        let module = |line: &str| {
            let rest = line.strip_prefix("pub ").unwrap_or(line).strip_prefix("mod ")?;
            rest.strip_suffix(';').map(str::to_owned)
        };
        let mods = || text.lines().enumerate().filter_map(|(at, line)| Some((at, module(line)?)));
        let line = format!("pub mod {};", self.name);
        let place = match mods().filter(|(_, other)| other.as_str() < self.name).last() {
            Some((at, _)) => at + 1,
            // First of all: before the attributes of the first one.
            None => {
                let (first, _) = mods().next()?;
                let attributes = text.lines().take(first).collect::<Vec<_>>();
                first - attributes.iter().rev().take_while(|line| line.starts_with("#[")).count()
            }
        };
        Some(with_line(text, place, &line))
    }

    /// The kind in the guide: a row of the first table, and a section at the end.
    fn in_page(&self, text: &str) -> Option<String> {
        let rows = text.lines().enumerate().skip_while(|(_, line)| !line.starts_with("| `"));
        let (last, _) = rows.take_while(|(_, line)| line.starts_with("| `")).last()?;
        let with_row = with_line(text, last + 1, &pages::row(self.name));
        Some(format!("{}\n\n{}", with_row.trim_end(), pages::section(self.name)))
    }

    /// The kind among those that random histories do not know.
    fn in_world(&self, text: &str) -> Option<String> {
        const ARM: &str = "Kind::Echo => None";
        (text.matches(ARM).count() == 1)
            .then(|| text.replace(ARM, &format!("Kind::{} | {ARM}", self.variant)))
    }
}

/// The text without the comment at its head.
fn without_head<'t>(text: &'t str, comment: &str) -> &'t str {
    let mut rest = text;
    while rest.starts_with(comment) {
        rest = rest.split_once('\n').map_or("", |(_, rest)| rest);
    }
    rest
}

/// The text with another line before that with this index.
fn with_line(text: &str, place: usize, line: &str) -> String {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.insert(place.min(lines.len()), line);
    lines.join("\n") + "\n"
}

/// The text with each of these replaced; all must occur.
fn replaced(text: &str, file: &str, pairs: &[(String, String)]) -> Result<String, Failure> {
    let mut text = text.to_owned();
    for (from, to) in pairs {
        if !text.contains(from.as_str()) {
            return Err(wrong(file, format!("the template has changed: no {from:?}")));
        }
        text = text.replace(from.as_str(), to);
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(name: &str) -> Names<'_> {
        Names { name, variant: variant(name), id: 42 }
    }

    #[test]
    fn names_are_those_of_modules_and_new() {
        let kinds = [Kind { name: "l2".to_owned(), id: 3 }, Kind { name: "mpls".to_owned(), id: 10 }];
        for name in ["mirror", "a", "a_b2", "fifteen_letters"] {
            assert!(check_name(name, &kinds).is_ok(), "{name}");
        }
        for (name, why) in [
            ("", "expected at most"),
            ("Mirror", "expected at most"),
            ("2l", "expected at most"),
            ("a-b", "expected at most"),
            ("../x", "expected at most"),
            ("a__b", "expected at most"),
            ("a_", "expected at most"),
            ("sixteen__letters", "expected at most"),
            ("match", "a keyword of Rust"),
            ("mpls", "exists already"),
            ("l_2", "name of kind l2"),
        ] {
            let found = check_name(name, &kinds).unwrap_err().to_string();
            assert!(found.contains(why), "{name}: {found}");
        }
    }

    #[test]
    fn a_module_does_not_come_between_an_attribute_and_its_module() {
        let text = "//! Head.\n\n#[cfg(feature = \"x\")]\npub mod echo;\nmod explain;\n\npub use a::b;\n";
        let with = |name: &str| names(name).in_lib(text).unwrap();
        assert_eq!(with("drop"), text.replace("#[cfg", "pub mod drop;\n#[cfg"));
        assert_eq!(
            with("edge"),
            text.replace("#[cfg", "pub mod edge;\n#[cfg").replace("pub mod edge;\n#", "pub mod edge;\n#")
        );
        assert_eq!(with("evil"), text.replace("pub mod echo;\n", "pub mod echo;\npub mod evil;\n"));
        assert_eq!(with("zebra"), text.replace("mod explain;\n", "mod explain;\npub mod zebra;\n"));
        assert_eq!(names("drop").in_lib("no modules\n"), None);
    }

    #[test]
    fn lists_that_are_not_there_are_noticed() {
        assert_eq!(names("a").in_page("# Kinds\n\ntext\n"), None);
        assert_eq!(names("a").in_world("match kind { _ => None }"), None);
        let page = names("a").in_page("# Kinds\n\n| `b` | x |\n\n## `b`\n\nText.\n").unwrap();
        assert!(
            page.starts_with("# Kinds\n\n| `b` | x |\n| `a` |") && page.contains("\n\n## `a`\n"),
            "{page}"
        );
        let pairs = [("gone".to_owned(), String::new())];
        let found = replaced("text", "a.rs", &pairs).unwrap_err().to_string();
        assert_eq!(found, "a.rs: the template has changed: no \"gone\"");
        assert_eq!(without_head("//! a\n//! b\n\ncode\n", "//!"), "\ncode\n");
    }
}
