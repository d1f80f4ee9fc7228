//! Graphs from files: GraphML, as the Internet Topology Zoo publishes it, and Repetita's `.graph`.
//!
//! Both give nodes with names and places, and edges between them. Files are bounded, and every error names the file and line.

use std::collections::HashMap;

/// Largest file, bytes.
pub const FILE_BYTES_MAX: u64 = 16 << 20;

/// A graph.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Graph {
    /// Name and place (to the right, up) of each node.
    pub nodes: Vec<(String, Option<[f64; 2]>)>,
    /// Ends and cost of each edge. An edge of a file with an edge for each direction is here once.
    pub edges: Vec<([usize; 2], u32)>,
}

/// Reads GraphML. The error has the line, from 1, and what is wrong.
pub fn graphml(text: &str) -> Result<Graph, (usize, String)> {
    let document =
        roxmltree::Document::parse(text).map_err(|error| (error.pos().row as usize, error.to_string()))?;
    let line = |node: roxmltree::Node<'_, '_>| document.text_pos_at(node.range().start).row as usize;
    // What the keys of `data` mean.
    let keys: HashMap<&str, &str> = document
        .descendants()
        .filter(|node| node.has_tag_name("key") || node.tag_name().name() == "key")
        .filter_map(|node| Some((node.attribute("id")?, node.attribute("attr.name")?)))
        .collect();
    let data = |node: roxmltree::Node<'_, '_>, name: &str| -> Option<String> {
        let found = node.children().find(|child| {
            child.tag_name().name() == "data"
                && child.attribute("key").and_then(|key| keys.get(key)).is_some_and(|one| *one == name)
        });
        found.and_then(|child| child.text()).map(str::to_owned)
    };
    let mut graph = Graph::default();
    let mut ids: HashMap<String, usize> = HashMap::new();
    for node in document.descendants().filter(|node| node.tag_name().name() == "node") {
        let id = node.attribute("id").ok_or_else(|| (line(node), "a node without an id".to_owned()))?;
        let label = data(node, "label").filter(|label| !label.trim().is_empty());
        let number = |name| data(node, name).and_then(|text| text.trim().parse::<f64>().ok());
        let place = number("Longitude").zip(number("Latitude")).map(|(x, y)| [x, y]);
        if ids.insert(id.to_owned(), graph.nodes.len()).is_some() {
            return Err((line(node), format!("node \"{id}\" a second time")));
        }
        graph.nodes.push((label.unwrap_or_else(|| id.to_owned()), place));
    }
    for edge in document.descendants().filter(|node| node.tag_name().name() == "edge") {
        let end = |name: &str| {
            let id = edge.attribute(name).ok_or_else(|| (line(edge), format!("an edge without {name}")))?;
            ids.get(id).copied().ok_or_else(|| (line(edge), format!("an edge to \"{id}\", which is no node")))
        };
        graph.edges.push(([end("source")?, end("target")?], 1));
    }
    Ok(graph)
}

/// Reads Repetita's format: `NODES n`, a heading, lines `label x y`; `EDGES m`, a heading, lines `label src dest weight bw delay`
/// for each direction.
pub fn repetita(text: &str) -> Result<Graph, (usize, String)> {
    let mut lines =
        text.lines().enumerate().map(|(at, line)| (at + 1, line.trim())).filter(|(_, line)| !line.is_empty());
    let mut graph = Graph::default();
    let nodes = section(lines.next(), "NODES")?;
    lines.next().ok_or((0, "the file ends in a heading".to_owned()))?;
    for _ in 0..nodes {
        let (at, line) = lines.next().ok_or((0, "the file ends among the nodes".to_owned()))?;
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [label, x, y] = fields.as_slice() else {
            return Err((at, format!("{} fields, expected label x y", fields.len())));
        };
        let number = |text: &str| text.parse::<f64>().ok().filter(|number| number.is_finite());
        // Nodes whose place is unknown are at 0, 0.
        let place = number(x).zip(number(y)).filter(|place| *place != (0.0, 0.0));
        graph.nodes.push(((*label).to_owned(), place.map(|(x, y)| [x, y])));
    }
    let edges = section(lines.next(), "EDGES")?;
    lines.next().ok_or((0, "the file ends in a heading".to_owned()))?;
    // Edges of a pair that have no partner of the other direction yet, by their direction.
    let mut single: HashMap<[usize; 2], usize> = HashMap::new();
    for _ in 0..edges {
        let (at, line) = lines.next().ok_or((0, "the file ends among the edges".to_owned()))?;
        let fields: Vec<&str> = line.split_whitespace().collect();
        let number = |field: usize| fields.get(field).and_then(|text| text.parse::<usize>().ok());
        let (Some(from), Some(to), Some(weight)) = (number(1), number(2), number(3)) else {
            return Err((at, format!("found \"{line}\", expected label src dest weight bw delay")));
        };
        if from.max(to) >= graph.nodes.len() {
            return Err((at, format!("an edge to node {}, of {}", from.max(to), graph.nodes.len())));
        }
        match single.get_mut(&[to, from]).filter(|count| **count > 0) {
            Some(count) => *count -= 1,
            None => {
                *single.entry([from, to]).or_default() += 1;
                graph.edges.push(([from, to], u32::try_from(weight).unwrap_or(u32::MAX)));
            }
        }
    }
    Ok(graph)
}

/// The number in the first line of a section.
fn section(line: Option<(usize, &str)>, name: &str) -> Result<usize, (usize, String)> {
    let (at, line) = line.ok_or_else(|| (0, format!("the file ends before {name}")))?;
    let count = line.strip_prefix(name).and_then(|rest| rest.trim().parse::<usize>().ok());
    count.ok_or_else(|| (at, format!("found \"{line}\", expected {name} and a number")))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a test fails by panicking
mod tests {
    use super::*;

    #[test]
    fn repetita_files_have_an_edge_for_each_direction() {
        let text = "NODES 2\nlabel x y\n0_A -1.5 2\n1_B 3 4\n\nEDGES 4\nlabel src dest weight bw delay\ne0 0 1 10 1 1\ne1 1 0 10 1 \
                    1\ne2 0 1 20 1 1\ne3 1 0 20 1 1\n";
        let graph = repetita(text).unwrap();
        assert_eq!(graph.nodes[0], ("0_A".to_owned(), Some([-1.5, 2.0])));
        assert_eq!(graph.edges, [([0, 1], 10), ([0, 1], 20)]);
        assert_eq!(repetita(&text.replace("1_B 3 4", "1_B 0.0 0.0")).unwrap().nodes[1].1, None);
        let error = |text: &str| repetita(text).unwrap_err();
        assert_eq!(error("NODE 2\n"), (1, "found \"NODE 2\", expected NODES and a number".to_owned()));
        assert_eq!(error(&text.replace("1_B 3 4", "1_B 3")).0, 4);
        assert_eq!(error(&text.replace("e2 0 1", "e2 0 9")), (10, "an edge to node 9, of 2".to_owned()));
        assert_eq!(error(&text.replace("EDGES 4", "EDGES 5")).1, "the file ends among the edges");
    }

    #[test]
    fn graphml_of_the_topology_zoo_is_read() {
        let text = r#"<?xml version="1.0" encoding="utf-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
  <key attr.name="Latitude" attr.type="double" for="node" id="d29" />
  <key attr.name="Longitude" attr.type="double" for="node" id="d32" />
  <key attr.name="label" attr.type="string" for="node" id="d33" />
  <graph edgedefault="undirected">
    <node id="0"><data key="d29">40.7</data><data key="d32">-74.0</data><data key="d33">New York</data></node>
    <node id="1" />
    <edge source="0" target="1"><data key="d34">OC-192c</data></edge>
  </graph>
</graphml>
"#;
        let graph = graphml(text).unwrap();
        assert_eq!(graph.nodes, [("New York".to_owned(), Some([-74.0, 40.7])), ("1".to_owned(), None)]);
        assert_eq!(graph.edges, [([0, 1], 1)]);
        assert_eq!(
            graphml(&text.replace("target=\"1\"", "target=\"7\"")).unwrap_err(),
            (9, "an edge to \"7\", which is no node".to_owned())
        );
        assert_eq!(graphml(&text.replace("</graphml>", "</graph>")).unwrap_err().0, 11);
    }
}
