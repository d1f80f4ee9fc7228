//! `topo render`, `svg` and `import`, and `validate` of a topology: without privileges.

use crate::support::Scratch;

const TOPOLOGY: &str = "\
apiVersion: hueplane/v1
kind: Topology
metadata: {name: t}
spec:
  nodes: [{name: a}, {name: b}]
  links: [{ends: [a, b]}]
  networks:
    - {name: red, kind: ipv4, prefixes: [10.0.0.0/16], hosts: [{name: ha, node: a}, {name: hb, node: b}]}
";

#[test]
fn a_topology_is_validated_with_the_documents_of_its_nodes() {
    let dir = Scratch::new();
    dir.write("t.yaml", TOPOLOGY);
    let json = dir.hueplane("validate -f t.yaml -o json").ok().json();
    assert_eq!((&json["topology"], &json["networks"][0]["hosts"]), (&"t".into(), &2.into()), "{json}");
    assert!(
        dir.hueplane("validate -f t.yaml").ok().stdout.starts_with("valid: topology t, 2 nodes, 1 link\n")
    );
    let of_a = dir.hueplane("validate -f t.yaml --node a -o json").ok().json();
    assert_eq!((&of_a["node"]["name"], &of_a["networks"][0]["routes"]), (&"a".into(), &1.into()), "{of_a}");
    dir.write("bad.yaml", TOPOLOGY.replace("node: b", "node: x"));
    let bad = dir.hueplane("validate -f bad.yaml");
    assert_eq!(bad.code, 3);
    assert!(
        bad.stderr.contains(
            "bad.yaml:8:102: spec.networks[0].hosts[1].node: found unknown node \"x\", expected a or b"
        ),
        "{}",
        bad.stderr
    );
    dir.write("bad.yaml", TOPOLOGY.replace("10.0.0.0/16", "127.0.0.0/16"));
    let bad = dir.hueplane("validate -f bad.yaml");
    assert_eq!(bad.code, 3, "{}", bad.stdout);
    assert!(
        bad.stderr.contains("bad.yaml:8:42: spec.networks[0].prefixes[0]: found 127.0.0.0/16"),
        "{}",
        bad.stderr
    );
}

#[test]
fn rendered_documents_are_valid_and_name_the_node() {
    let dir = Scratch::new();
    dir.write("t.yaml", TOPOLOGY);
    let text = dir.hueplane("topo render t.yaml --node b").ok().stdout;
    dir.write("b.yaml", &text);
    let json = dir.hueplane("validate -f b.yaml -o json").ok().json();
    assert_eq!(
        (&json["node"]["name"], &json["node"]["ports"]),
        (&"b".into(), &serde_json::json!(["h-hb", "to-a"]))
    );
    let both = dir.hueplane("topo render t.yaml").ok().stdout;
    assert_eq!(both.matches("kind: Node").count(), 2);
    let none = dir.hueplane("topo render t.yaml --node c");
    assert_eq!(none.code, 2);
    assert!(none.stderr.contains("it has no node \"c\", expected one of a, b"), "{}", none.stderr);
    let svg = dir.hueplane("topo svg t.yaml").ok().stdout;
    assert!(svg.starts_with("<svg ") && svg.contains("network red"), "{svg}");
}

#[test]
fn graphs_are_imported() {
    let dir = Scratch::new();
    dir.write(
        "Small.graph",
        "NODES 3\nlabel x y\n0_A 1 2\n1_B 3 4\n2_C 5 6\n\nEDGES 4\nlabel src dest weight bw delay\ne0 0 1 10 1 1\ne1 1 0 10 1 1\ne2 1 2 \
         3 1 1\ne3 2 1 3 1 1\n",
    );
    let text = dir.hueplane("topo import Small.graph --kind dual").ok().stdout;
    dir.write("t.yaml", &text);
    let json = dir.hueplane("validate -f t.yaml -o json").ok().json();
    assert_eq!(
        (&json["topology"], &json["nodes"], &json["links"]),
        (&"small".into(), &3.into(), &2.into()),
        "{json}"
    );
    dir.write("bad.graph", "NODES x\n");
    let bad = dir.hueplane("topo import bad.graph");
    assert_eq!(bad.code, 3);
    assert!(
        bad.stderr.contains("bad.graph:1: found \"NODES x\", expected NODES and a number"),
        "{}",
        bad.stderr
    );
    dir.write("bad.graphml", "<graphml><graph><node/></graph></graphml>");
    assert!(dir.hueplane("topo import bad.graphml").stderr.contains("bad.graphml:1: a node without an id"));
    dir.write("bad.txt", "");
    assert!(dir.hueplane("topo import bad.txt").stderr.contains("expected .graphml or .graph"));
}
