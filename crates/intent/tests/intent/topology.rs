//! `Topology` documents: what is refused, and where.

use hue_intent::Source;
use hue_intent::topology::{is_topology, labels, parse_topology};
use serde_json::json;

use crate::evaluate::valid;

const GOOD: &str = "\
apiVersion: hueplane/v1
kind: Topology
metadata: {name: t}
spec:
  nodes: [{name: a, at: [8.5, -47.375]}, {name: b}, {name: c}]
  links:
    - {ends: [a, b]}
    - {ends: [b, c], interfaces: [x1, x2], mtu: 9000, cost: 3}
  networks:
    - name: wan
      kind: ipv4
      prefixes: [10.0.0.0/16]
      hosts: [{name: h1, node: a}, {name: h2, node: c, interface: x9}]
    - name: red
      colour: \"#d62728\"
      kind: l2
      prefixes: [192.0.2.0/29]
      nodes: [a, c]
      links: [{ends: [a, c], tunnel: vxlan, over: wan, vni: 7, cost: 2}]
";

fn errors(text: &str) -> Vec<String> {
    match parse_topology(&Source { name: "t.yaml".into(), bytes: text.into() }) {
        Ok(_) => Vec::new(),
        Err(errors) => errors.list.iter().map(ToString::to_string).collect(),
    }
}

#[test]
fn a_good_one_is_read_and_valid_by_the_schema() {
    let topology = parse_topology(&Source { name: "t.yaml".into(), bytes: GOOD.into() }).unwrap();
    assert_eq!(topology.spec.nodes[0].at, Some([8_500, -47_375]));
    assert!(is_topology(GOOD.as_bytes()) && !is_topology(b"kind: Node\n") && !is_topology(b"\xff"));
    let schema = hue_intent::schema();
    let value = serde_json::to_value(&topology).unwrap();
    assert!(valid(&schema, &schema, &value), "{value}");
    let again = parse_topology(&Source { name: "t.json".into(), bytes: value.to_string().into_bytes() });
    assert_eq!(again.unwrap(), topology, "what is written is read again");
    for (pointer, bad) in [
        ("/spec/nodes", json!([])),
        ("/spec/links/0/cost", json!(0)),
        ("/spec/links/1/interfaces", json!(["x1"])),
        ("/spec/networks/1/links/0/vni", json!(0)),
        ("/spec/networks/1/links/0/tunnel", json!("ipip")),
        ("/spec/networks/0/prefixes", json!([])),
        ("/spec/nodes/0/at", json!([1])),
        ("/spec/nodes/0/name", json!("a".repeat(33))),
    ] {
        let mut value = value.clone();
        *value.pointer_mut(pointer).unwrap() = bad.clone();
        assert!(!valid(&schema, &schema, &value), "schema: {pointer} {bad}");
        assert!(!errors(&value.to_string()).is_empty(), "reader: {pointer} {bad}");
    }
}

#[test]
fn errors_name_the_place() {
    let cases: &[(&str, &str, &str)] = &[
        (
            "{name: b}, {name: c}",
            "{name: b}, {name: c}, {name: a}",
            "t.yaml:5:71: spec.nodes[3].name: found duplicate node \"a\", expected a unique name (first used in line 5)",
        ),
        (
            "- {ends: [a, b]}",
            "- {ends: [a, bb]}",
            "t.yaml:7:18: spec.links[0].ends[1]: found unknown node \"bb\", expected a, b or c",
        ),
        (
            "- {ends: [a, b]}",
            "- {ends: [a, a]}",
            "t.yaml:7:14: spec.links[0].ends: found a link from \"a\" to itself",
        ),
        (
            "- {ends: [a, b]}",
            "- {ends: [a]}",
            "t.yaml:7:14: spec.links[0].ends: found a list of 1, expected a list of two different nodes",
        ),
        (
            "mtu: 9000",
            "mtu: 117",
            "t.yaml:19:51: spec.networks[1].links[0].over: found an MTU of 67, expected at least 68 (every link of network \"red\" of kind l2",
        ),
        (
            "    - {ends: [a, b]}\n",
            "",
            "spec.networks[0]: found no path from node \"a\" to \"b\", \"c\", expected links that connect all nodes",
        ),
        (
            "over: wan",
            "over: wam",
            "t.yaml:19:51: spec.networks[1].links[0].over: found unknown network \"wam\", expected wan or red",
        ),
        ("over: wan", "over: red", "spec.networks[1].links[0].over: found the network itself"),
        (
            "tunnel: vxlan, over: wan, vni: 7",
            "tunnel: ipip, over: wan",
            "spec.networks[1].links[0].tunnel: found ipip for a network of kind l2, expected vxlan",
        ),
        (
            "tunnel: vxlan, over: wan, vni: 7, ",
            "",
            "spec.networks[1].links[0].ends: found a link of nodes without a physical one: \"a\" and \"c\", expected a physical link for each link without a tunnel (a tunnel joins",
        ),
        ("tunnel: vxlan, over", "over", "spec.networks[1].links[0].over: found over without a tunnel"),
        (
            "tunnel: vxlan, over: wan, ",
            "tunnel: vxlan, ",
            "spec.networks[1].links[0].over: found nothing, expected the name of the network that carries the tunnel",
        ),
        (
            "192.0.2.0/29",
            "192.0.2.0/31",
            "spec.networks[1].prefixes[0]: found \"192.0.2.0/31\", expected a prefix of at most 30 bits",
        ),
        (
            "10.0.0.0/16",
            "10.0.0.0/23",
            "spec.networks[0].prefixes[0]: found a prefix of 23 bits for 2 hosts and 2 links, expected at most 22 bits",
        ),
        (
            "10.0.0.0/16",
            "\"fd00::/48\"",
            "spec.networks[0].prefixes[0]: found \"fd00::/48\", expected an IPv4 prefix",
        ),
        (
            "10.0.0.0/16",
            "10.0.0.0/16, 10.1.0.0/16",
            "spec.networks[0].prefixes: found 2 of IPv4 and 0 of IPv6, expected one prefix with kind ipv4",
        ),
        (
            "node: c, interface: x9",
            "node: c, interface: x2",
            "t.yaml:13:67: spec.networks[0].hosts[1].interface: found duplicate interface \"x2\" of node \"c\", expected a unique interface (first used in line 8)",
        ),
        ("name: h2", "name: h1", "spec.networks[0].hosts[1].name: found duplicate host \"h1\""),
        ("name: red", "name: wan", "spec.networks[1].name: found duplicate network \"wan\""),
        (
            "nodes: [a, c]",
            "nodes: [a, b]",
            "spec.networks[1].links[0].ends[1]: found node \"c\", which network \"red\" is not on, expected a or b",
        ),
        (
            "      kind: l2\n",
            "      kind: l2\n      routing: static\n",
            "spec.networks[1].routing: found static with kind l2, expected none",
        ),
        (
            ", cost: 2}]",
            "}, {ends: [c, a], tunnel: vxlan, over: wan, vni: 9}]",
            "spec.networks[1].links[1]: found a link that closes a circle of switches",
        ),
        (
            "      prefixes: [10.0.0.0/16]\n",
            "      prefixes: [10.0.0.0/16]\n      nodes: [a, b]\n",
            "found node \"c\", which network \"wan\" is not on",
        ),
        ("metadata: {name: t}", "metadata: {name: t}\n---\nkind: Node", "found a mapping"),
    ];
    let mut wrong = Vec::new();
    for (part, other, expected) in cases {
        assert!(GOOD.contains(part), "{part}");
        let found = errors(&GOOD.replacen(part, other, 1));
        if *expected == "found a mapping" {
            assert!(
                found.iter().any(|one| one.contains("a second document, expected a Topology alone")),
                "{found:#?}"
            );
            continue;
        }
        if !found.iter().any(|one| one.contains(expected)) {
            wrong.push(format!("{part} -> {other}: {expected}\n{found:#?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A topology with this network, and whatever else is on the link of its two nodes.
fn with(networks: &[&str]) -> String {
    let list: String = networks.iter().map(|one| format!("    - {{{one}}}\n")).collect();
    format!(
        "apiVersion: hueplane/v1\nkind: Topology\nmetadata: {{name: t}}\nspec:\n  nodes: [{{name: a}}, {{name: b}}]\n  links: [{{ends: [a, \
         b]}}]\n  networks:\n{list}"
    )
}

const WAN: &str = "name: wan, kind: ipv4, prefixes: [10.0.0.0/16]";

#[test]
fn networks_of_every_kind_are_read_and_written() {
    let schema = hue_intent::schema();
    let hosts = "hosts: [{name: h, node: a}]";
    let keyed = "hosts: [{name: h, node: a, match: \"0x0a000001\", mac: \"02:00:00:00:00:a1\"}]";
    for network in [
        format!("name: n, kind: kernel, prefixes: [10.1.0.0/16, \"fd00::/48\"], routing: frr, {hosts}"),
        format!("name: n, kind: kernel, prefixes: [\"fd00::/48\"], {hosts}"),
        format!(
            "name: n, kind: splice, settings: {{slices: 8, bits: shim}}, prefixes: [10.1.0.0/16], {hosts}"
        ),
        format!(
            "name: n, kind: rofl, settings: {{label_bits: 32}}, prefixes: [10.1.0.0/30], routing: ring, {hosts}"
        ),
        format!("name: n, kind: rofl, prefixes: [\"fd00::/126\"], {hosts}"),
        format!("name: n, kind: mpls, settings: {{ttl: pipe}}, prefixes: [10.1.0.0/30], {hosts}"),
        format!(
            "name: n, kind: extract, settings: {{key: [{{offset: 30, bytes: 4}}]}}, prefixes: [10.1.0.0/30], {keyed}"
        ),
        format!(
            "name: n, kind: process, settings: {{command: [/bin/true]}}, prefixes: [10.1.0.0/30], {hosts}"
        ),
        "name: n, kind: mpls, prefixes: [10.1.0.0/30], links: [{ends: [a, b], tunnel: vxlan, over: wan}]"
            .to_owned(),
        "name: n, kind: splice, prefixes: [10.1.0.0/16], links: [{ends: [a, b], tunnel: ipip, over: wan}]"
            .to_owned(),
    ] {
        let text = with(&[WAN, &network]);
        assert_eq!(errors(&text), Vec::<String>::new(), "{network}");
        let topology = parse_topology(&Source { name: "t.yaml".into(), bytes: text.into() }).unwrap();
        let value = serde_json::to_value(&topology).unwrap();
        assert!(valid(&schema, &schema, &value), "{value}");
        let again = parse_topology(&Source { name: "t.json".into(), bytes: value.to_string().into_bytes() });
        assert_eq!(again.unwrap(), topology, "what is written is read again");
    }
}

#[test]
fn what_a_kind_cannot_have_is_refused() {
    let one = |network: &str| errors(&with(&[WAN, network]));
    let pair = "prefixes: [10.1.0.0/16]";
    let key = "settings: {key: [{offset: 30, mask: \"0xf0\"}]}";
    let cases: &[(String, &str)] = &[
        (
            format!("name: n, kind: process, {pair}"),
            "spec.networks[1].settings: found nothing, expected a mapping with command",
        ),
        (
            format!("name: n, kind: extract, {pair}"),
            "spec.networks[1].settings: found nothing, expected a mapping with key",
        ),
        (
            format!("name: n, kind: ipv4, settings: {{slices: 4}}, {pair}"),
            "spec.networks[1].settings.slices: found slices with kind ipv4, expected none: only kind splice has this setting",
        ),
        (
            format!("name: n, kind: ipv4, settings: {{route_by: source}}, {pair}"),
            "spec.networks[1].settings.route_by: found routes by source",
        ),
        (
            format!("name: n, kind: rofl, settings: {{label_bits: 33}}, {pair}"),
            "spec.networks[1].settings.label_bits: found 33 bits, expected a multiple of 8",
        ),
        (
            format!("name: n, kind: splice, routing: frr, {pair}"),
            "spec.networks[1].routing: found frr with kind splice, expected static or none (one routing daemon fills one slice",
        ),
        (
            format!("name: n, kind: rofl, routing: pwospf, {pair}"),
            "spec.networks[1].routing: found pwospf with kind rofl, expected static, ring or none (PW-OSPF is for IPv4",
        ),
        (
            format!("name: n, kind: ipv4, routing: ring, {pair}"),
            "spec.networks[1].routing: found ring with kind ipv4, expected static, frr, pwospf or none (the ring",
        ),
        (
            format!("name: n, kind: process, settings: {{command: [x]}}, routing: static, {pair}"),
            "spec.networks[1].routing: found static with kind process, expected none (its program forwards)",
        ),
        (
            "name: n, kind: kernel, prefixes: [10.1.0.0/16, 10.2.0.0/16]".to_owned(),
            "spec.networks[1].prefixes: found 2 of IPv4 and 0 of IPv6, expected one prefix, or one of each family, with kind kernel",
        ),
        (
            format!("name: n, kind: mpls, {pair}, links: [{{ends: [a, b], tunnel: ipip, over: wan}}]"),
            "spec.networks[1].links[0].tunnel: found ipip for a network of kind mpls, expected vxlan",
        ),
        (
            format!(
                "name: n, kind: kernel, {pair}, hosts: [{{name: h, node: a, mac: \"02:00:00:00:00:01\"}}]"
            ),
            "spec.networks[1].hosts[0].mac: found mac with kind kernel, expected none",
        ),
        (
            format!("name: n, kind: rofl, {pair}, hosts: [{{name: h, node: a, match: \"0x01\"}}]"),
            "spec.networks[1].hosts[0].match: found match with kind rofl, expected none: only kind extract has keys",
        ),
        (
            format!("name: n, kind: extract, {key}, {pair}, hosts: [{{name: h, node: a}}]"),
            "spec.networks[1].hosts[0]: found nothing, expected match: the key of frames to the host",
        ),
        (
            format!(
                "name: n, kind: extract, {key}, {pair}, hosts: [{{name: h, node: a, match: \"0x1020\"}}]"
            ),
            "hosts[0].match: found 4 digits, expected 2, as the key has",
        ),
        (
            format!("name: n, kind: extract, {key}, {pair}, hosts: [{{name: h, node: a, match: \"0x11\"}}]"),
            "hosts[0].match: found 0x11, with bits that no frame has",
        ),
        (
            format!(
                "name: n, kind: extract, {key}, {pair}, hosts: [{{name: h, node: a, match: \"0x10\"}}, {{name: i, node: b, match: \"0x10\"}}]"
            ),
            "hosts[1].match: found duplicate match 0x10, expected a key of its own (first used in line 9)",
        ),
    ];
    for (network, wanted) in cases {
        let found = one(network);
        assert!(found.len() == 1 && found[0].contains(wanted), "{network}\n{wanted}\n{found:#?}");
    }
    // What the kind needs has no room.
    let narrow = with(&[WAN, &format!("name: n, kind: rofl, {pair}")]).replace("b]}]\n", "b], mtu: 255}]\n");
    let found = errors(&narrow);
    assert!(
        found.len() == 1
            && found[0].starts_with("t.yaml:6:31: spec.links[0].mtu: found an MTU of 255, expected at least 256 (every link of network \"n\""),
        "{found:#?}"
    );
    // Networks that take whole ports cannot share a link; tunnels have ports of their own.
    let flat = |name: &str, more: &str| {
        format!("name: {name}, kind: rofl, prefixes: [10.1.{}.0/24]{more}", name.len())
    };
    let found = errors(&with(&[WAN, &flat("n", ""), &flat("nn", "")]));
    assert!(
        found.len() == 1
            && found[0].starts_with("t.yaml:10:")
            && found[0].contains(
                "spec.networks[2].kind: found kind rofl, which takes all frames of ports, on the physical link \"a\" to \"b\", as network \
                 \"n\" does, expected one such network on a physical link (a tunnel"
            ),
        "{found:#?}"
    );
    let over = ", links: [{ends: [a, b], tunnel: vxlan, over: wan}]";
    assert_eq!(errors(&with(&[WAN, &flat("n", ""), &flat("nn", over)])), Vec::<String>::new());
    // hueplane has no routes of a network in which Linux forwards, so it cannot carry.
    let found = errors(&with(&[
        "name: k, kind: kernel, prefixes: [10.0.0.0/16]",
        &flat("n", &over.replace("wan", "k")),
    ]));
    assert!(
        found.len() == 1
            && found[0].contains("found network \"k\" of kind kernel, expected a network whose routes"),
        "{found:#?}"
    );
}

/// Labels are hashes of names, which can be equal.
#[test]
fn hosts_with_equal_labels_are_refused() {
    let network = |hosts: &str| {
        with(&[&format!(
            "name: n, kind: rofl, settings: {{label_bits: 32}}, prefixes: [10.0.0.0/16], hosts: [{hosts}]"
        )])
    };
    let source = Source { name: "t.yaml".into(), bytes: network("{name: h, node: a}").into() };
    let topology = parse_topology(&source).unwrap();
    let mut seen = std::collections::HashMap::new();
    let equal = (0..1_000_000).find_map(|number| {
        let name = format!("h{number}");
        let label = labels::host(&topology, &topology.spec.networks[0], &name);
        seen.insert(label.bits, name.clone()).map(|first| (first, name, label))
    });
    let (first, second, label) = equal.unwrap();
    let found = errors(&network(&format!("{{name: {first}, node: a}}, {{name: {second}, node: b}}")));
    let wanted = format!(
        "spec.networks[0].hosts[1].name: found host \"{second}\" with label {label}, as host \"{first}\" has"
    );
    assert!(found.len() == 1 && found[0].contains(&wanted) && found[0].contains("label_bits"), "{found:#?}");
}

#[test]
fn networks_that_carry_each_other_or_share_a_link_are_refused() {
    let network = |name: &str, prefix: &str, over: &str| {
        format!(
            "    - {{name: {name}, kind: ipv4, prefixes: [{prefix}], links: [{{ends: [a, b], tunnel: ipip, over: {over}}}]}}\n"
        )
    };
    let head = "apiVersion: hueplane/v1\nkind: Topology\nmetadata: {name: t}\nspec:\n  nodes: [{name: a}, {name: b}]\n  \
                links: [{ends: [a, b]}]\n  networks:\n";
    let circle = [("x", "y"), ("y", "z"), ("z", "x")].map(|(name, over)| network(name, "10.0.0.0/16", over));
    let found = errors(&format!("{head}{}", circle.concat()));
    assert_eq!(found.len(), 1, "{found:#?}");
    assert!(
        found[0].starts_with("t.yaml:8:")
            && found[0].contains(
                "spec.networks[0].links[0].over: found network \"y\", which is itself carried by \"x\""
            ),
        "{found:#?}"
    );
    let direct =
        |name: &str, prefix: &str| format!("    - {{name: {name}, kind: ipv4, prefixes: [{prefix}]}}\n");
    let found = errors(&format!("{head}{}{}", direct("x", "10.0.0.0/16"), direct("y", "10.0.0.0/8")));
    assert!(
        found.len() == 1
            && found[0].starts_with("t.yaml:9:")
            && found[0].contains("found 10.0.0.0/8, which overlaps 10.0.0.0/16 of network \"x\" on the same physical link, \"a\" to \"b\"")
            && found[0].ends_with("(the other is in line 8)"),
        "{found:#?}"
    );
    // Networks that are apart can have the same prefixes, but not one and its carrier.
    let (x, y) = (direct("x", "10.0.0.0/16"), network("y", "10.1.0.0/16", "x"));
    assert_eq!(errors(&format!("{head}{x}{y}")), Vec::<String>::new());
    let found = errors(&format!("{head}{x}{}", network("y", "10.0.0.0/16", "x")));
    assert!(
        found.len() == 1 && found[0].contains("overlaps 10.0.0.0/16 of network \"x\" which carries it"),
        "{found:#?}"
    );
    let again = network("z", "10.2.0.0/16", "x");
    let found = errors(&format!("{head}{x}{y}{again}"));
    assert!(
        found.len() == 1
            && found[0].contains("found a second time an ipip tunnel between \"a\" and \"b\" over \"x\""),
        "{found:#?}"
    );
}

#[test]
fn limits_have_edges() {
    let topology = |nodes: usize| {
        let list: Vec<String> = (0..nodes).map(|node| format!("{{name: n{node}}}")).collect();
        format!(
            "apiVersion: hueplane/v1\nkind: Topology\nmetadata: {{name: t}}\nspec:\n  nodes: [{}]\n  networks:\n    - {{name: x, kind: \
             ipv4, prefixes: [10.0.0.0/8], nodes: [n0]}}\n",
            list.join(", ")
        )
    };
    let most = hue_intent::limits::TOPOLOGY_NODES_MAX;
    assert_eq!(errors(&topology(most)), Vec::<String>::new());
    let found = errors(&topology(most + 1));
    assert!(found[0].contains("spec.nodes: found 1025 entries, expected at most 1024"), "{found:#?}");
    let name = |chars: usize| GOOD.replace("name: h1", &format!("name: {}", "h".repeat(chars)));
    assert_eq!(errors(&name(32)), Vec::<String>::new());
    assert!(errors(&name(33))[0].contains("expected a name of 1 to 32 letters"));
    let cost = |cost: u32| GOOD.replace("cost: 3", &format!("cost: {cost}"));
    assert_eq!(errors(&cost(65_535)), Vec::<String>::new());
    assert!(errors(&cost(65_536))[0].contains("expected a whole number from 1 to 65535"));
    let vni = |vni: u32| GOOD.replace("vni: 7", &format!("vni: {vni}"));
    assert_eq!(errors(&vni(16_777_215)), Vec::<String>::new());
    assert!(errors(&vni(16_777_216))[0].contains("expected a whole number from 1 to 16777215"));
    // A node has a limited number of ports.
    let star = |leaves: usize| {
        let mut text = topology(leaves + 1).replace(", nodes: [n0]", "");
        let links: Vec<String> = (1..=leaves).map(|leaf| format!("{{ends: [n0, n{leaf}]}}")).collect();
        text = text.replace("  networks:\n", &format!("  links: [{}]\n  networks:\n", links.join(", ")));
        text
    };
    let ports = hue_intent::limits::NODE_PORTS_MAX;
    assert_eq!(errors(&star(ports)), Vec::<String>::new());
    let found = errors(&star(ports + 1));
    let wanted =
        format!("spec.nodes[0]: found a node with {} links and hosts, expected at most {ports}", ports + 1);
    assert!(found[0].contains(&wanted), "{found:#?}");
}

#[test]
fn the_reader_of_nodes_says_what_to_do_with_one() {
    let found = hue_intent::parse(vec![Source { name: "t.yaml".into(), bytes: GOOD.into() }]).unwrap_err();
    let text = found.to_string();
    assert!(
        text.contains("t.yaml:2:7: kind: found a Topology, expected a Node or a Network of this node"),
        "{text}"
    );
}
