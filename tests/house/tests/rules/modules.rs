//! Modules import each other in one direction.
//!
//! Flow: source files of a folder → imports → graph of its modules → circles. A module of the folder, with everything
//! below it, is one node of the graph, and so is the folder's own `mod.rs` or `lib.rs`. Declaring a module is not an
//! import. Tests inside files may import what they like. Calls of methods are not imports: the check does not see them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::{files_of, relative, root};

/// Folders whose modules have no circles, from the root of the project.
const FOLDERS: [&str; 11] = [
    "crates/card/src",
    "crates/card/src/live",
    "crates/card/src/live/runner",
    "crates/card/src/live/runner/transfer",
    "crates/hueplaned/src/node",
    "crates/hueplaned/src/node/apart",
    "crates/hueplaned/src/node/ports",
    "crates/hueplaned/src/node/routes",
    "crates/hueplaned/src/node/by_hand",
    "crates/hueplaned/src/node/core",
    "crates/hueplaned/src/node/handle",
];
/// The name of a folder's own file in the graph.
const OWN: &str = "mod";

/// Which module imports which others.
type Graph = BTreeMap<String, BTreeSet<String>>;

/// The text without comments, literals, and the tests at its end.
fn code(text: &str) -> String {
    let text = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
    let mut code = String::new();
    for line in text.lines() {
        let line = line.split("//").next().unwrap_or_default();
        // A visibility names a module, but does not use it.
        let line = line.replace("pub(in crate::", "pub(");
        // Every other part of a line is inside quotes. Literals over several lines contain no imports.
        code.extend(line.split('"').step_by(2));
        code.push('\n');
    }
    code
}

/// All paths of a `use` declaration, without its braces.
fn expanded(declaration: &str) -> Vec<String> {
    let declaration = declaration.trim();
    let Some((prefix, rest)) = declaration.split_once('{') else {
        return vec![declaration.split_whitespace().next().unwrap_or_default().to_owned()];
    };
    let group = rest.rsplit_once('}').map_or(rest, |(group, _)| group);
    let (mut depth, mut part, mut parts) = (0, String::new(), Vec::new());
    for letter in group.chars() {
        match letter {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(std::mem::take(&mut part));
                continue;
            }
            _ => {}
        }
        part.push(letter);
    }
    parts.push(part);
    let parts = parts.iter().filter(|part| !part.trim().is_empty());
    parts.flat_map(|part| expanded(&format!("{}{}", prefix.trim(), part.trim()))).collect()
}

/// The paths that a file names: in its imports, and in other places from `crate` or `super`.
fn paths(code: &str) -> Vec<String> {
    let mut found = Vec::new();
    for item in code.split(';') {
        let start = item.rfind("\nuse ").map(|at| at + 5);
        let start = start
            .or_else(|| item.rfind(" use ").map(|at| at + 5))
            .or_else(|| item.strip_prefix("use ").map(|_| 4));
        if let Some(declaration) = start.and_then(|at| item.get(at..)) {
            found.extend(expanded(declaration));
        }
    }
    let word = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == ':';
    // A path that ends before a brace is the beginning of a group, which is above.
    let from = |path: &&str| path.starts_with("crate::") || path.starts_with("super::");
    let inline = code.split(|letter| !word(letter)).filter(from);
    found.extend(inline.filter(|path| !path.ends_with(':')).map(str::to_owned));
    found
}

/// The absolute path that a file of module `at` names by `path`; `None` if it leads out of the crate.
fn absolute<'p>(at: &[&'p str], path: &'p str, children: &BTreeSet<&str>) -> Option<Vec<&'p str>> {
    let mut place = at.to_vec();
    let mut parts = path.split("::").peekable();
    match parts.peek().copied()? {
        "crate" => {
            parts.next();
            place.clear();
        }
        "self" => drop(parts.next()),
        "super" => {
            while parts.next_if_eq(&"super").is_some() {
                place.pop();
            }
        }
        first if children.contains(first) => {}
        _ => return None,
    }
    place.extend(parts);
    Some(place)
}

/// The imports between the modules of `folder`, whose files are named from the root of the crate.
fn graph(folder: &[&str], sources: &[(String, String)]) -> Graph {
    let module = |file: &str| -> Vec<String> {
        let file = file.trim_end_matches(".rs");
        let parts = file.split('/').filter(|part| !matches!(*part, "mod" | "lib" | "main"));
        parts.map(str::to_owned).collect()
    };
    let modules: Vec<(Vec<String>, &String)> =
        sources.iter().map(|(file, text)| (module(file), text)).collect();
    let unit = |path: &[&str]| -> Option<String> {
        let rest = path.strip_prefix(folder)?;
        let own = OWN.to_owned();
        let Some(first) = rest.first() else { return Some(own) };
        let is_module = modules
            .iter()
            .any(|(module, _)| module.iter().map(String::as_str).eq(folder.iter().copied().chain([*first])));
        Some(if is_module { (*first).to_owned() } else { own })
    };
    let mut graph = Graph::new();
    for (module, text) in &modules {
        let at: Vec<&str> = module.iter().map(String::as_str).collect();
        let Some(user) = unit(&at) else { continue };
        let below =
            modules.iter().filter(|(other, _)| other.len() == at.len() + 1 && other.starts_with(module));
        let children: BTreeSet<&str> =
            below.filter_map(|(other, _)| other.last().map(String::as_str)).collect();
        let code = code(text);
        let paths = paths(&code);
        let used = paths
            .iter()
            .filter_map(|path| unit(&absolute(&at, path, &children)?))
            .filter(|used| *used != user);
        graph.entry(user.clone()).or_default().extend(used);
    }
    graph
}

/// A circle of each set of modules that import each other, as "a → b → a".
fn circles(graph: &Graph) -> Vec<String> {
    let reach = |from: &str| {
        let (mut found, mut open) = (BTreeMap::new(), vec![from.to_owned()]);
        while let Some(at) = open.pop() {
            for next in graph.get(&at).into_iter().flatten() {
                if !found.contains_key(next) {
                    found.insert(next.clone(), at.clone());
                    open.push(next.clone());
                }
            }
        }
        found
    };
    let (mut told, mut circles) = (BTreeSet::new(), Vec::new());
    for module in graph.keys() {
        let found = reach(module);
        if !found.contains_key(module) || told.contains(module) {
            continue;
        }
        let mut path = vec![module.clone()];
        let mut at = module;
        while let Some(before) = found.get(at) {
            path.push(before.clone());
            at = before;
            if at == module {
                break;
            }
        }
        let same = found.keys().filter(|other| reach(other).contains_key(module)).cloned();
        told.extend(same);
        path.reverse();
        circles.push(path.join(" → "));
    }
    circles
}

/// The source files of the crate that a folder belongs to, named from its `src`, and the folder's module.
fn sources(folder: &str) -> (Vec<String>, Vec<(String, String)>) {
    let at = folder.find("/src").unwrap() + "/src".len();
    let (krate, inside) = folder.split_at(at);
    let module = inside.split('/').filter(|part| !part.is_empty()).map(str::to_owned).collect();
    let read = |path: &Path| {
        let name = relative(path);
        let name = name.strip_prefix(krate)?.strip_prefix('/')?.to_owned();
        Some((name, std::fs::read_to_string(path).unwrap()))
    };
    (module, files_of(krate, "rs").iter().filter_map(|path| read(path)).collect())
}

#[test]
fn modules_import_each_other_in_one_direction() {
    let mut found = Vec::new();
    for folder in FOLDERS {
        assert!(root().join(folder).is_dir(), "{folder} is missing");
        let (module, sources) = sources(folder);
        let module: Vec<&str> = module.iter().map(String::as_str).collect();
        let graph = graph(&module, &sources);
        let imports: usize = graph.values().map(BTreeSet::len).sum();
        assert!(imports >= graph.len() / 2, "{folder}: the check sees too few imports: {graph:?}");
        found.extend(circles(&graph).into_iter().map(|circle| format!("{folder}: {circle}")));
    }
    assert_eq!(found, Vec::<String>::new(), "modules import each other in circles");
}

#[test]
fn a_planted_circle_is_found() {
    let source = |file: &str, text: &str| (file.to_owned(), text.to_owned());
    let mut planted = vec![
        source("node/mod.rs", "mod a;\nmod b;\nmod c;\npub use c::Third;\n"),
        source("node/a.rs", "//! See [`super::b`].\nuse super::b::{self, Second, deep::{One, Two}};\n"),
        source(
            "node/b/mod.rs",
            "mod deep;\nfn f() { \"super::a::x()\" }\n#[cfg(test)]\nmod tests {\n use super::a;\n}\n",
        ),
        source("node/b/deep.rs", "use super::Second;\nuse std::fmt;\n"),
        source("node/c.rs", "pub struct Third;\n"),
        source("other.rs", "use crate::node::a::First;\n"),
    ];
    let found = |sources: &[(String, String)]| circles(&graph(&["node"], sources));
    assert_eq!(found(&planted), Vec::<String>::new());
    let edges = graph(&["node"], &planted);
    assert_eq!(edges["a"], BTreeSet::from(["b".to_owned()]));
    assert_eq!(edges[OWN], BTreeSet::from(["c".to_owned()]));

    planted[3].1 = "fn f() {\n    crate::node::a::f();\n}\n".to_owned();
    assert_eq!(found(&planted), ["a → b → a"], "a path without an import, in a module below");
    planted[3].1 = "pub(in crate::node::a) struct Seen;\nuse super::Second;\n".to_owned();
    assert_eq!(found(&planted), Vec::<String>::new(), "a visibility");
    planted[4].1 = "use super::{\n    a::First,\n};\nuse super::b::Second;\n".to_owned();
    planted[2].1 = "use crate::{node::c::Third, other};\n".to_owned();
    assert_eq!(found(&planted), ["a → b → c → a"], "imports in groups");
    planted[2].1 = String::new();
    planted[4].1 = "use super::Third;\n".to_owned();
    assert_eq!(found(&planted), ["c → mod → c"], "a name that the folder's own file passes on");
}
