//! Topologies: the documents of each node are valid, and packets that follow them arrive.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;

use hue_control::topology::{On, Plan, RouterPort, expand, svg};
use hue_intent::topology::{Topology, parse_topology};
use hue_intent::{EntryAction, Intent, LabelAction, LabelPlace, Matching, NetworkSpec, Source, Target};

fn topology(text: &str) -> Topology {
    parse_topology(&Source { name: "topo.yaml".into(), bytes: text.into() })
        .unwrap_or_else(|errors| panic!("{errors}"))
}

fn intent(text: &str) -> Intent {
    let parsed = hue_intent::parse(vec![Source { name: "node.yaml".into(), bytes: text.into() }]);
    let intent = parsed.unwrap_or_else(|errors| panic!("{errors}\n{text}"));
    hue_control::compile(&intent).unwrap_or_else(|error| panic!("{error}\n{text}"));
    intent
}

const SQUARE: &str = "\
apiVersion: hueplane/v1
kind: Topology
metadata: {name: square}
spec:
  nodes: [{name: a}, {name: b}, {name: c}, {name: d}]
  links:
    - {ends: [a, b]}
    - {ends: [b, c], mtu: 1600}
    - {ends: [c, d], interfaces: [enp1s0, enp2s0]}
    - {ends: [d, a], cost: 5}
  networks:
    - name: wan
      colour: \"#1f77b4\"
      kind: dual
      prefixes: [10.0.0.0/16, \"2001:db8::/48\"]
      hosts: [{name: wa, node: a}, {name: wc, node: c}]
    - name: red
      kind: ipv4
      prefixes: [10.9.0.0/16]
      nodes: [a, c, d]
      links:
        - {ends: [a, c], tunnel: vxlan, over: wan}
        - {ends: [c, d], tunnel: ipip, over: wan}
      hosts: [{name: ra, node: a}, {name: rd, node: d}]
";

/// Of a node, its document of a network, as text.
fn document<'p>(plan: &'p Plan, node: &str, network: &str) -> &'p str {
    let node = plan.nodes.iter().find(|one| one.name == node).unwrap();
    let head = format!("metadata: {{name: {network}}}\n");
    node.documents.split("---\n").find(|one| one.contains(&head)).unwrap()
}

#[test]
fn ports_addresses_and_neighbours_follow_from_links() {
    let plan = expand(&topology(SQUARE));
    let b = plan.nodes[1].documents.as_str();
    assert!(b.starts_with("# Node b of topology square.\n"), "{b}");
    assert!(b.contains("    - {name: to-a}\n    - {name: to-c, mtu: 1600}\n"), "{b}");
    let d = plan.nodes[3].documents.as_str();
    assert!(d.contains("{name: to-c, interface: enp2s0}"), "{d}");
    let wan = intent(b).networks[0].clone();
    assert_eq!(wan.name(), "wan");
    let addresses: Vec<String> =
        wan.spec.ports.iter().flat_map(|port| &port.addresses).map(ToString::to_string).collect();
    let wanted = ["10.0.255.1/31", "2001:db8:0:ffff::1/127", "10.0.255.2/31", "2001:db8:0:ffff::2/127"];
    assert_eq!(addresses, wanted);
    // The MAC address of a neighbour is that of its own port.
    let peers: HashMap<IpAddr, hue_wire::Mac> =
        wan.spec.neighbours.iter().map(|one| (one.address, one.mac)).collect();
    let a = document(&plan, "a", "wan");
    assert!(
        a.contains(&format!("name: to-b, port: to-b, mac: \"{}\"", peers[&"10.0.255.0".parse().unwrap()])),
        "{a}"
    );
    assert_eq!(peers.len(), 4);
    // The direct way from a to d costs 5, the other one 3.
    assert!(a.contains("{to: \"10.0.255.4/31\", via: \"10.0.255.1\"}"), "{a}");
    let host = &plan.hosts[1];
    assert_eq!((host.name.as_str(), host.node, host.interface.as_str()), ("wc", 2, "h-wc"));
    assert_eq!(host.addresses[0].to_string(), "10.0.1.2/24");
    assert_eq!(host.routers[1].to_string(), "2001:db8:0:1::1");
    assert_eq!(plan.wires[2].ends[1].interface, "enp2s0");
}

#[test]
fn tunnels_end_at_addresses_of_the_carrier() {
    let plan = expand(&topology(SQUARE));
    let a = document(&plan, "a", "red");
    // a and c have hosts in the carrier: their routers' addresses there. d has none: that of its first link.
    assert!(
        a.contains(
            "tunnel: {type: vxlan, local: \"10.0.0.1\", remote: \"10.0.1.1\", vni: 2}, over: wan, mac:"
        ),
        "{a}"
    );
    assert!(a.contains("{to: \"10.9.1.0/24\", via: \"10.9.255.1\"}"), "{a}");
    assert!(a.contains("{port: to-c, address: \"10.9.255.1\", mac:"), "{a}");
    let d = document(&plan, "d", "red");
    assert!(
        d.contains("tunnel: {type: ipip, local: \"10.0.255.5\", remote: \"10.0.1.1\"}, over: wan"),
        "{d}"
    );
    assert!(!d.contains("neighbours"), "an ipip tunnel has no neighbours: {d}");
    assert!(!plan.nodes[1].documents.contains("name: red"), "red is not on b");
    // Outer IPv4 and UDP, VXLAN and Ethernet headers around what hosts send.
    assert_eq!(plan.hosts.iter().map(|host| host.mtu).collect::<Vec<_>>(), [1500, 1500, 1450, 1450]);
}

#[test]
fn what_is_added_at_the_end_changes_nothing_else() {
    let before = expand(&topology(SQUARE));
    let more = SQUARE
        .replace("{name: d}]", "{name: d}, {name: e}]")
        .replace("    - {ends: [d, a], cost: 5}\n", "    - {ends: [d, a], cost: 5}\n    - {ends: [d, e]}\n")
        .replace("{name: wc, node: c}]", "{name: wc, node: c}, {name: we, node: e}]");
    let after = expand(&topology(&more));
    for (one, other) in before.nodes.iter().zip(&after.nodes) {
        for line in one.documents.lines() {
            assert!(other.documents.contains(line), "{}: {line}", one.name);
        }
    }
}

/// Follows the routes in the documents of the nodes, as packets do: from each node to each host, in each slice.
fn all_arrive(plan: &Plan, (place, network): (usize, &str), slices: u8) -> usize {
    let nodes: Vec<Intent> = plan.nodes.iter().map(|node| intent(&node.documents)).collect();
    let of = |node: usize| nodes[node].networks.iter().find(|one| one.name() == network);
    let mut owner = BTreeMap::new();
    for node in 0..nodes.len() {
        for port in of(node).into_iter().flat_map(|one| &one.spec.ports) {
            for address in &port.addresses {
                assert!(owner.insert(address.address, (node, port.mac)).is_none(), "{address} twice");
            }
        }
    }
    let mut arrived = 0;
    for host in plan.hosts.iter().filter(|host| host.network == place) {
        for address in &host.addresses {
            let starts = (0..nodes.len()).filter(|node| of(*node).is_some());
            for (start, slice) in starts.flat_map(|start| (0..slices).map(move |slice| (start, slice))) {
                let (mut node, mut steps) = (start, 0);
                while node != host.node {
                    let spec = &of(node).unwrap().spec;
                    let routes = spec.routes.iter().filter(|route| route.slice == slice);
                    let routes = routes.filter(|route| route.to.contains(address.address));
                    let route = routes
                        .max_by_key(|route| route.to.len())
                        .unwrap_or_else(|| panic!("node {}: no route to {address}", plan.nodes[node].name));
                    let Target::Via(via) = route.target else { panic!("{route:?}") };
                    let (next, mac) = owner[&via];
                    let neighbour = spec.neighbours.iter().find(|one| one.address == via).unwrap();
                    assert_eq!(neighbour.mac, mac, "the neighbour's own address");
                    node = next;
                    steps += 1;
                    assert!(steps <= nodes.len(), "a loop to {address} from {}", plan.nodes[start].name);
                }
                arrived += 1;
            }
        }
    }
    arrived
}

/// Where the labels or entries of a node lead: of each, port, next MAC address if it has one, and whether that is the last one.
fn leads(spec: &NetworkSpec) -> BTreeMap<String, (String, Option<hue_wire::Mac>, Option<bool>)> {
    let flat = spec.flat_labels.iter().filter_map(|one| match &one.place {
        LabelPlace::Own => None,
        LabelPlace::At { port, neighbour, resident } => {
            Some((one.label.to_string(), (port.to_string(), Some(*neighbour), Some(*resident))))
        }
    });
    let labels = spec.labels.iter().map(|one| match &one.action {
        LabelAction::Forward { port, neighbour, labels } => {
            assert!(labels.is_empty() || *labels == [one.label], "the label stays: {one:?}");
            (one.label.to_string(), (port.to_string(), Some(*neighbour), Some(labels.is_empty())))
        }
        other => panic!("{other:?}"),
    });
    let entries = spec.entries.iter().map(|one| match (&one.action, one.matching) {
        (EntryAction::Forward { port, destination: None, source: None }, Matching::Value(key)) => {
            (key.to_string(), (port.to_string(), None, None))
        }
        other => panic!("{other:?}"),
    });
    flat.chain(labels).chain(entries).collect()
}

/// Follows labels and entries, as packets do: from each node to each host.
fn all_arrive_by_entries(plan: &Plan, (place, network): (usize, &str)) -> usize {
    let nodes: Vec<Intent> = plan.nodes.iter().map(|node| intent(&node.documents)).collect();
    let of = |node: usize| {
        let intent = nodes[node].networks.iter().find(|one| one.name() == network).unwrap();
        let router = plan.nodes[node].routers.iter().find(|router| router.network == place).unwrap();
        (&intent.spec, router)
    };
    // The other end of a port: node and MAC address.
    let peer = |node: usize, name: &str| {
        let port = of(node).1.ports.iter().find(|port| port.name == name).unwrap();
        let On::Link { link, end, .. } = &port.on else { panic!("{name} has no other end") };
        let is_other = |port: &&RouterPort| matches!(&port.on, On::Link { link: same, end: other, .. } if (same, other) == (link, &(1 - end)));
        let mut all = (0..nodes.len()).flat_map(|node| of(node).1.ports.iter().map(move |port| (node, port)));
        let (node, port) = all.find(|(_, port)| is_other(port)).unwrap();
        (node, port.mac)
    };
    let mut arrived = 0;
    for host in plan.hosts.iter().filter(|host| host.network == place) {
        let entry = host.entry.as_ref().unwrap();
        for start in 0..nodes.len() {
            let (mut node, mut steps) = (start, 0);
            loop {
                let (port, mac, is_last) = leads(of(node).0).remove(&entry.label).unwrap();
                assert!(is_last.is_none_or(|last| last == (node == host.node)), "{}", host.name);
                if node == host.node {
                    assert_eq!((port, mac.unwrap_or(entry.mac)), (format!("h-{}", host.name), entry.mac));
                    let last = of(node).0.ports.iter().find(|port| port.mac == entry.router).unwrap();
                    assert_eq!(last.name.as_str(), format!("h-{}", host.name));
                    break;
                }
                let (next, next_mac) = peer(node, &port);
                assert_eq!(mac.unwrap_or(next_mac), next_mac, "the next router's own address");
                (node, steps) = (next, steps + 1);
                assert!(steps <= nodes.len(), "a circle to {} from {start}", host.name);
            }
            arrived += 1;
        }
    }
    arrived
}

#[test]
fn slices_have_shortest_paths_of_their_own() {
    let text = "\
apiVersion: hueplane/v1
kind: Topology
metadata: {name: t}
spec:
  nodes: [{name: a}, {name: b}, {name: c}, {name: d}, {name: e}]
  links: [{ends: [a, b]}, {ends: [b, c]}, {ends: [a, d]}, {ends: [d, c]}, {ends: [a, e]}, {ends: [e, c]}]
  networks:
    - {name: s, kind: splice, settings: {slices: 8}, prefixes: [10.0.0.0/16], hosts: [{name: h, node: c}]}
";
    let plan = expand(&topology(text));
    let a = intent(&plan.nodes[0].documents);
    let to_h = a.networks[0].spec.routes.iter().filter(|route| route.to.to_string() == "10.0.0.0/24");
    let ways: Vec<(u8, String)> = to_h.map(|route| (route.slice, format!("{:?}", route.target))).collect();
    assert_eq!(ways.iter().map(|(slice, _)| *slice).collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5, 6, 7]);
    assert!(ways[0].1.contains("(10.0.255.1)"), "of equal paths, slice 0 has the first: {ways:?}");
    let different: std::collections::BTreeSet<&String> = ways.iter().map(|(_, way)| way).collect();
    assert!(different.len() >= 3, "{ways:?}");
}

/// What links and hosts give the other kinds.
#[test]
fn each_kind_gets_what_it_needs() {
    let plan = |network: &str| {
        let text = format!(
            "apiVersion: hueplane/v1\nkind: Topology\nmetadata: {{name: t}}\nspec:\n  nodes: [{{name: a}}, {{name: b}}]\n  links: \
             [{{ends: [a, b]}}]\n  networks:\n    - {{name: wan, kind: ipv4, prefixes: [10.0.0.0/16]}}\n    - {{name: net, {network}}}\n"
        );
        let plan = expand(&topology(&text));
        plan.nodes.iter().for_each(|node| drop(intent(&node.documents)));
        plan
    };
    // Linux forwards, with addresses, routes and neighbours of both families.
    let both = "prefixes: [10.1.0.0/16, \"fd00::/48\"], hosts: [{name: h, node: a}, {name: i, node: b}]";
    let kernel = plan(&format!("kind: kernel, {both}"));
    let text = document(&kernel, "a", "net");
    for part in [
        "plane: {kind: kernel}\n",
        "\"fd00:0:0:ffff::/127\"",
        "{to: \"10.1.1.0/24\", via: \"10.1.255.1\"}",
        "neighbours:\n",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!((kernel.hosts[1].routers.len(), &kernel.hosts[1].entry), (2, &None));
    // A program forwards: it has interfaces and nothing else, and all hosts are on one prefix.
    let hosts = "prefixes: [192.0.2.0/24], hosts: [{name: h, node: a}, {name: i, node: b}]";
    let process = plan(&format!(
        "kind: process, settings: {{command: [/bin/x, \"-v: y\"], capabilities: [net_admin]}}, {hosts}"
    ));
    let text = document(&process, "a", "net");
    assert!(
        text.contains(
            "plane: {kind: process, capabilities: [\"net_admin\"], command: [\"/bin/x\",\"-v: y\"]}\n"
        ),
        "{text}"
    );
    assert!(!text.contains("addresses") && text.ends_with("}\n"), "{text}");
    assert_eq!(process.hosts[1].addresses[0].to_string(), "192.0.2.2/24");
    // Labels come from the ring, and none are in the documents.
    let ring =
        plan(&format!("kind: rofl, routing: ring, settings: {{label_bits: 32, pointers_max: 0}}, {hosts}"));
    let text = document(&ring, "a", "net");
    assert!(text.contains("label_bits: 32") && !text.contains("flat_labels"), "{text}");
    assert_eq!(ring.hosts[0].entry.as_ref().unwrap().label.len(), 10);
    // Over a tunnel, the neighbour is the other end's own address. A host can have an address of its own.
    let given = hosts.replace("node: b}", "node: b, mac: \"02:00:00:00:00:b1\"}");
    for (kind, last) in [("rofl", "resident: true}"), ("mpls", "pop: true,")] {
        let over =
            plan(&format!("kind: {kind}, links: [{{ends: [a, b], tunnel: vxlan, over: wan}}], {given}"));
        let (a, b) = (document(&over, "a", "net"), document(&over, "b", "net"));
        let mac = &over.nodes[1].routers[1].ports.iter().find(|port| port.name == "to-a").unwrap().mac;
        assert!(a.contains(&format!("port: to-b, neighbour: \"{mac}\"")), "{a}");
        assert!(b.contains("neighbour: \"02:00:00:00:00:b1\"") && b.contains(last), "{b}");
    }
}

#[test]
fn packets_arrive_in_random_networks() {
    let mut state = 11_u64;
    let mut next = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    for round in 0..12 {
        let nodes = 2 + next(12);
        let mut text = format!(
            "apiVersion: hueplane/v1\nkind: Topology\nmetadata: {{name: r{round}}}\nspec:\n  nodes:\n"
        );
        (0..nodes).for_each(|node| text += &format!("    - {{name: n{node}}}\n"));
        text += "  links:\n";
        for node in 1..nodes {
            text += &format!("    - {{ends: [n{node}, n{}], cost: {}}}\n", next(node), 1 + next(4));
        }
        for _ in 0..next(nodes) {
            let (one, other) = (next(nodes), next(nodes));
            if one != other {
                text += &format!("    - {{ends: [n{one}, n{other}], cost: {}}}\n", 1 + next(4));
            }
        }
        text += "  networks:\n";
        let other = ["extract", "mpls", "rofl"][round % 3];
        let key = if other == "extract" { "settings: {key: [{offset: 30, bytes: 4}]}, " } else { "" };
        for (name, fields) in [
            ("d", "kind: dual, prefixes: [10.0.0.0/9, \"fd00::/40\"], ".to_owned()),
            ("s", "kind: splice, settings: {slices: 3}, prefixes: [10.128.0.0/9], ".to_owned()),
            ("o", format!("kind: {other}, {key}prefixes: [192.0.2.0/24], ")),
        ] {
            let host = |node: usize| {
                let wants = name == "o" && other == "extract";
                let key = if wants { format!(", match: \"0x0a0000{node:02x}\"") } else { String::new() };
                format!("{{name: {name}{node}, node: n{node}{key}}}")
            };
            let hosts: Vec<String> = (0..nodes).map(host).collect();
            text += &format!("    - {{name: net{name}, {fields}hosts: [{}]}}\n", hosts.join(", "));
        }
        let plan = expand(&topology(&text));
        assert_eq!(all_arrive(&plan, (0, "netd"), 1), 2 * nodes * nodes, "{text}");
        assert_eq!(all_arrive(&plan, (1, "nets"), 3), 3 * nodes * nodes, "{text}");
        assert_eq!(all_arrive_by_entries(&plan, (2, "neto")), nodes * nodes, "{text}");
    }
}

#[test]
fn a_switch_has_hosts_on_one_prefix_and_no_routes() {
    let text = "\
apiVersion: hueplane/v1
kind: Topology
metadata: {name: lan}
spec:
  nodes: [{name: a}, {name: b}]
  links: [{ends: [a, b]}]
  networks:
    - name: lan
      kind: l2
      prefixes: [192.0.2.0/24]
      hosts: [{name: one, node: a}, {name: two, node: b}]
";
    let plan = expand(&topology(text));
    let a = intent(&plan.nodes[0].documents);
    let spec = &a.networks[0].spec;
    assert!(spec.routes.is_empty() && spec.ports.iter().all(|port| port.addresses.is_empty()));
    assert_eq!(plan.hosts[1].addresses[0].to_string(), "192.0.2.2/24");
    assert!(plan.hosts[1].routers.is_empty());
}

#[test]
fn a_drawing_names_everything() {
    let text = svg(&topology(SQUARE));
    for part in [
        "physical links",
        "network wan (dual)",
        "network red (ipv4, dashed: tunnels over wan)",
        ">a<",
        ">rd<",
        "#1f77b4",
        "stroke-dasharray",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains("NaN") && text.ends_with("</svg>\n"));
    assert_eq!(text.matches("<g ").count(), text.matches("</g>").count());
    assert_eq!(text, svg(&topology(SQUARE)));
}

/// Places of the nodes in the first picture.
fn nodes_of(svg: &str) -> Vec<[f64; 2]> {
    let first = svg.split("</g>").next().unwrap();
    let number = |text: &str, name: &str| -> f64 {
        let rest = text.split_once(&format!("{name}=\"")).unwrap().1;
        rest.split_once('"').unwrap().0.parse().unwrap()
    };
    first.split("<circle").skip(1).map(|text| [number(text, "cx"), number(text, "cy")]).collect()
}

/// As graphs of the Topology Zoo are: some nodes in one place, others without one.
#[test]
fn nodes_of_a_drawing_do_not_cover_each_other() {
    let mut text =
        "apiVersion: hueplane/v1\nkind: Topology\nmetadata: {name: t}\nspec:\n  nodes:\n".to_owned();
    for node in 0..40 {
        let place = match node % 4 {
            0 => String::new(),
            1 => ", at: [9.19, 45.465]".to_owned(),
            _ => format!(", at: [{}, {}]", 7 + node % 7, 40 + node % 5),
        };
        text += &format!("    - {{name: n{node}{place}}}\n");
    }
    text += "  links:\n";
    for node in 1..40 {
        text += &format!("    - {{ends: [n{node}, n{}]}}\n", node / 2);
    }
    text += "  networks:\n    - {name: net, kind: ipv4, prefixes: [10.0.0.0/8]}\n";
    let nodes = nodes_of(&svg(&topology(&text)));
    assert_eq!(nodes.len(), 40);
    for (number, one) in nodes.iter().enumerate() {
        for other in &nodes[..number] {
            let distance = (one[0] - other[0]).hypot(one[1] - other[1]);
            assert!(distance > 20.0, "{one:?} and {other:?} are {distance} apart");
        }
    }
}
