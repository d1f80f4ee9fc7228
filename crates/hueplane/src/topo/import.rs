//! `hueplane topo import`: a Topology document from a graph.

use std::collections::{BTreeSet, HashSet};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use hue_intent::limits;
use hue_intent::topology::addresses;

use super::graphml::{FILE_BYTES_MAX, Graph, graphml, repetita};
use crate::cli::{ImportKind, ImportRouting, TopoImport};
use crate::failure::Failure;
use crate::print;

/// Prefixes of the network: with room for a host on each node of the largest topology.
const PREFIX4: &str = "10.0.0.0/8";
const PREFIX6: &str = "\"2001:db8::/32\"";

/// Runs the command.
pub fn import(args: &TopoImport) -> Result<(), Failure> {
    let shown = args.file.display();
    let wrong = |what: String| Failure::Input(format!("{shown}: {what}"));
    let length = fs::metadata(&args.file).map_err(|error| wrong(format!("cannot be read: {error}")))?.len();
    if length > FILE_BYTES_MAX {
        return Err(wrong(format!("found {length} bytes, expected at most {FILE_BYTES_MAX}")));
    }
    let text = fs::read_to_string(&args.file).map_err(|error| wrong(format!("cannot be read: {error}")))?;
    let extension = args.file.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    let read = match extension {
        "graphml" | "xml" => graphml(&text),
        "graph" => repetita(&text),
        other => {
            return Err(wrong(format!(
                "found the extension {other:?}, expected .graphml or .graph (Repetita)"
            )));
        }
    };
    let graph = read.map_err(|(line, what)| match line {
        0 => wrong(what),
        line => Failure::Input(format!("{shown}:{line}: {what}")),
    })?;
    let name = args.name.clone().unwrap_or_else(|| stem(&args.file));
    let name = cleaned(&name, limits::TOPOLOGY_NAME_CHARS_MAX);
    let (document, left) = document(&name, &graph, args.kind, args.routing).map_err(wrong)?;
    // The same checks as of every document: what import writes, `up` reads.
    super::parse(format!("{shown}, imported"), &document)?;
    if left > 0 {
        anstream::eprintln!("hueplane: {left} nodes have no path to the others and were left out");
    }
    print::text(&document)
}

fn stem(file: &Path) -> String {
    file.file_stem().map(|stem| stem.to_string_lossy().to_lowercase()).unwrap_or_default()
}

/// A name of at most `most` characters that a document can have.
fn cleaned(label: &str, most: usize) -> String {
    let good = |char: char| if char.is_ascii_alphanumeric() || "-_.".contains(char) { char } else { '_' };
    let name: String = label.trim().chars().map(good).collect();
    let name = name.trim_start_matches(|char: char| !char.is_ascii_alphanumeric());
    let name: String = name.chars().take(most).collect();
    if name.is_empty() { "node".to_owned() } else { name }
}

/// Room for the beginning of a host's name, and for a number that makes a name unique.
const HOST: &str = "h-";
const NUMBER_CHARS: usize = 5;

/// Names of all nodes, all different: without the number that Repetita puts in front, if possible.
fn names(graph: &Graph) -> Vec<String> {
    let most = limits::TOPOLOGY_NAME_CHARS_MAX - HOST.len() - NUMBER_CHARS;
    let mut used = HashSet::new();
    let labels = graph.nodes.iter().enumerate().map(|(number, (label, _))| {
        let plain = label.strip_prefix(&format!("{number}_")).filter(|rest| !rest.is_empty());
        let name = cleaned(plain.unwrap_or(label), most);
        let mut names = std::iter::once(name.clone()).chain((2..).map(|more| format!("{name}.{more}")));
        let free = names.find(|name| !used.contains(name)).unwrap_or(name);
        used.insert(free.clone());
        free
    });
    labels.collect()
}

/// The nodes of the largest connected part.
fn largest_part(graph: &Graph) -> BTreeSet<usize> {
    let mut neighbours = vec![Vec::new(); graph.nodes.len()];
    for ([one, other], _) in &graph.edges {
        neighbours[*one].push(*other);
        neighbours[*other].push(*one);
    }
    let (mut best, mut seen) = (BTreeSet::new(), HashSet::new());
    for start in 0..graph.nodes.len() {
        let (mut part, mut todo) = (BTreeSet::new(), vec![start]);
        while let Some(node) = todo.pop() {
            if seen.insert(node) {
                part.insert(node);
                todo.extend(&neighbours[node]);
            }
        }
        if part.len() > best.len() {
            best = part;
        }
    }
    best
}

/// The document, and the number of nodes that are not in it.
fn document(
    name: &str,
    graph: &Graph,
    kind: ImportKind,
    routing: ImportRouting,
) -> Result<(String, usize), String> {
    let part = largest_part(graph);
    if part.len() < 2 {
        return Err("no two nodes with an edge between them".to_owned());
    }
    let names = names(graph);
    let mut out =
        format!("apiVersion: hueplane/v1\nkind: Topology\nmetadata: {{name: \"{name}\"}}\nspec:\n  nodes:\n");
    for node in &part {
        let _ = write!(out, "    - {{name: \"{}\"", names[*node]);
        // Without a place, the tool that draws chooses.
        if let Some([x, y]) = graph.nodes[*node].1 {
            let _ = write!(out, ", at: [{x:.3}, {y:.3}]");
        }
        out.push_str("}\n");
    }
    out.push_str("  links:\n");
    let mut links = 0;
    for ([one, other], cost) in &graph.edges {
        // A node's edge to itself is nothing that a network could use.
        if one == other || !part.contains(one) {
            continue;
        }
        links += 1;
        let cost = (*cost).clamp(1, limits::TOPOLOGY_COST_MAX);
        let _ = write!(out, "    - {{ends: [\"{}\", \"{}\"]", names[*one], names[*other]);
        out.push_str(&if cost == 1 { "}\n".to_owned() } else { format!(", cost: {cost}}}\n") });
    }
    let (kind, prefixes) = match kind {
        ImportKind::Ipv4 => ("ipv4", PREFIX4.to_owned()),
        ImportKind::Ipv6 => ("ipv6", PREFIX6.to_owned()),
        ImportKind::Dual => ("dual", format!("{PREFIX4}, {PREFIX6}")),
    };
    debug_assert!(addresses::longest(true, part.len(), links).is_some());
    let routing = match routing {
        ImportRouting::Static => "static",
        ImportRouting::Frr => "frr",
        ImportRouting::Pwospf => "pwospf",
        ImportRouting::None => "none",
    };
    let _ = write!(
        out,
        "  networks:\n    - name: net\n      colour: \"#1f77b4\"\n      kind: {kind}\n      prefixes: [{prefixes}]\n      routing: \
         {routing}\n      hosts:\n"
    );
    for node in &part {
        let _ = writeln!(out, "        - {{name: \"{HOST}{0}\", node: \"{0}\"}}", names[*node]);
    }
    Ok((out, graph.nodes.len() - part.len()))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a test fails by panicking
mod tests {
    use super::*;

    #[test]
    fn names_are_clean_and_different() {
        let node = |label: &str| (label.to_owned(), None);
        let labels = ["0_Zürich (HB)", "1_A", "A", "3_", "-x", "a very long name that does not fit anywhere"];
        let graph = Graph { nodes: labels.map(node).to_vec(), edges: Vec::new() };
        let wanted = ["Z_rich__HB_", "A", "A.2", "3_", "x", "a_very_long_name_that_doe"];
        assert_eq!(names(&graph), wanted);
    }

    #[test]
    fn the_largest_part_is_taken() {
        let nodes = (0..6).map(|number| (format!("n{number}"), None)).collect();
        let edges = vec![([0, 1], 1), ([2, 3], 1), ([3, 4], 70_000), ([4, 4], 1)];
        let graph = Graph { nodes, edges };
        let (text, left) = document("t", &graph, ImportKind::Dual, ImportRouting::Static).unwrap();
        assert_eq!(left, 3);
        let topology = crate::topo::parse("t.yaml".to_owned(), &text).unwrap();
        assert_eq!((topology.spec.nodes.len(), topology.spec.links.len()), (3, 2));
        assert_eq!(topology.spec.links[1].cost, 65_535);
        let none = Graph { nodes: vec![("a".into(), None)], edges: Vec::new() };
        assert!(document("t", &none, ImportKind::Ipv4, ImportRouting::None).is_err());
    }
}
