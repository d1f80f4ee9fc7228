//! Topologies: what is accepted has documents for each node that are valid, whatever was damaged.

use hue_control::topology::expand;
use hue_intent::topology::parse_topology;
use hue_intent::{Source, parse};

/// Most nodes whose documents are made: each names all others.
const NODES_MAX: usize = 32;

/// Topologies of the labs, and one with networks of all kinds.
pub fn samples() -> Vec<Vec<u8>> {
    let all = "apiVersion: hueplane/v1\nkind: Topology\nmetadata: {name: t}\nspec:\n  nodes: [{name: a}, {name: b}, {name: c}]\n  links: \
               [{ends: [a, b]}, {ends: [b, c], mtu: 1600}, {ends: [a, c], cost: 5}]\n  networks:\n    - {name: w, kind: splice, settings: \
               {slices: 3, bits: shim}, prefixes: [10.0.0.0/16], hosts: [{name: wa, node: a}]}\n    - {name: k, kind: kernel, prefixes: \
               [10.1.0.0/16, \"fd00::/48\"], routing: frr, hosts: [{name: ka, node: a}, {name: kc, node: c}]}\n    - {name: f, kind: rofl, \
               settings: {label_bits: 32}, prefixes: [10.2.0.0/24], hosts: [{name: fa, node: a, mac: \"02:00:00:00:00:a1\"}]}\n    - {name: \
               m, kind: mpls, settings: {ttl: pipe}, prefixes: [10.3.0.0/24], hosts: [{name: ma, node: a}]}\n    - {name: x, kind: extract, \
               settings: {key: [{offset: 30, bytes: 4}]}, nodes: [a, c], links: [{ends: [a, c], tunnel: vxlan, over: w}], prefixes: \
               [10.4.0.0/24], hosts: [{name: xa, node: a, match: \"0x0a040001\"}]}\n    - {name: p, kind: process, settings: {command: \
               [/bin/true]}, nodes: [a, c], links: [{ends: [a, c], tunnel: vxlan, over: w, vni: 9}], prefixes: [10.5.0.0/24]}\n";
    vec![
        all.as_bytes().to_vec(),
        include_bytes!("../../../labs/topology/topology.yaml").to_vec(),
        include_bytes!("../../../labs/topology/figure1.yaml").to_vec(),
    ]
}

/// Reads one, and the documents of its nodes.
///
/// # Panics
/// If one of these is not valid.
pub fn read(bytes: &[u8]) -> bool {
    let source = |text: Vec<u8>| Source { name: "t.yaml".to_owned(), bytes: text };
    let Ok(topology) = parse_topology(&source(bytes.to_vec())) else { return false };
    if topology.spec.nodes.len() > NODES_MAX {
        return true;
    }
    for node in expand(&topology).nodes {
        if let Err(errors) = parse(vec![source(node.documents.clone().into_bytes())]) {
            panic!("node {}: {errors}\n{}", node.name, node.documents);
        }
    }
    true
}

/// A node with so many hosts of a network of kind `rofl`, each with a label.
pub fn hosts(count: usize) -> Vec<u8> {
    let mut out = "apiVersion: hueplane/v1\nkind: Topology\nmetadata: {name: t}\nspec:\n  nodes: [{name: a}]\n  networks:\n    - name: f\n      \
                   kind: rofl\n      prefixes: [10.0.0.0/16]\n      hosts:\n"
        .to_owned();
    (0..count).for_each(|host| out += &format!("        - {{name: h{host}, node: a}}\n"));
    out.into_bytes()
}
