//! Valid documents, and the values that they load to.

use crate::common::{NODE, RED, errors, load, network, red_with};
use hue_intent::{
    Cores, Intent, Latency, Links, PortDriver, SchedulerKind, Select, Source, Target, limits, parse,
};
use hue_planes::Kind;
use serde_json::Value;

fn names(intent: &Intent) -> Vec<&str> {
    intent.networks.iter().map(|network| network.name()).collect()
}

#[test]
fn the_document_of_the_specification_loads() {
    let intent = load(&[RED]).unwrap();
    assert!(!intent.node_given);
    let ports: Vec<_> = intent.node.spec.ports.iter().map(|port| (port.name.as_str(), port.mtu)).collect();
    assert_eq!(ports, [("p0", 1500), ("p1", 1500)]);
    let [red] = intent.networks.as_slice() else { panic!("{intent:?}") };
    assert_eq!((red.name(), red.spec.plane.kind, red.spec.weight), ("red", Kind::Ipv4, 1));
    assert_eq!(red.spec.colour.unwrap().to_string(), "#d62728");
    assert_eq!(red.spec.select, Select::Mac);
    assert_eq!(red.spec.ports[1].mac.to_string(), "02:00:00:00:01:02");
    assert_eq!(red.spec.ports[1].addresses[0].to_string(), "10.2.0.1/24");
    assert_eq!(red.spec.routes[0].to.to_string(), "10.9.0.0/16");
    assert_eq!(red.spec.routes[0].target, Target::Via("10.2.0.2".parse().unwrap()));
    assert_eq!(red.spec.neighbours[0].mac.to_string(), "02:00:00:00:0a:02");
    let packets = red.spec.rate_limit.unwrap().packets.unwrap();
    assert_eq!((packets.per_second, packets.burst), (100_000, 1000));
}

#[test]
fn documents_load_from_any_number_of_files_in_any_order() {
    let green = network("green", &["{name: up, port: p1, mac: '02:00:00:00:02:01'}"], "");
    let one = load(&[&format!("---\n{RED}\n---\n\n---\n{NODE}...\n---\n{green}")]).unwrap();
    let many = load(&[&green, NODE, RED]).unwrap();
    assert_eq!(one, many);
    assert!(one.node_given);
    assert_eq!(names(&one), ["green", "red"]);
}

#[test]
fn omitted_fields_have_defaults() {
    let intent =
        load(&[NODE, &network("a", &["{name: x, port: p1, mac: '02:00:00:00:00:01'}"], "")]).unwrap();
    let spec = &intent.networks[0].spec;
    assert_eq!((spec.weight, spec.vid, spec.colour, spec.rate_limit), (1, None, None, None));
    assert!(spec.routes.is_empty() && spec.neighbours.is_empty() && spec.ports[0].addresses.is_empty());
    assert_eq!((spec.punt_limit.packets_per_second, spec.punt_limit.burst_packets), (1_000, 200));
    assert_eq!((spec.table, spec.resources), (None, None));
    let port = &intent.node.spec.ports[0];
    assert_eq!((port.mtu, port.driver, port.interface()), (limits::MTU_DEFAULT, PortDriver::Auto, "p0"));
}

#[test]
fn needs_and_schedulers_round_trip() {
    let node = "apiVersion: hueplane/v1\nkind: Node\nmetadata: {name: n}\nspec:\n  ports: [{name: p0, bandwidth: 10Gbit/s}]\n  \
                scheduler: {kind: exact, soft: {cores: 2, bandwidth: 1000Mbit/s}, card_bandwidth: 20Gbit/s, move_cost: 5Mbit/s}\n";
    let more = "  needs: {bandwidth: 200Mbit/s, latency: low, routes: 1000}\n";
    let intent = load(&[node, &network("a", &[], more), &network("b", &[], "")]).unwrap();
    let needs = intent.networks[0].spec.needs.clone().unwrap();
    assert_eq!(needs.bandwidth.unwrap().bps(), 200_000_000);
    assert_eq!((needs.latency, needs.routes), (Some(Latency::Low), Some(1000)));
    assert_eq!(intent.networks[1].spec.needs, None);
    assert_eq!(intent.node.spec.ports[0].bandwidth.unwrap().bps(), 10_000_000_000);
    let scheduler = intent.node.spec.scheduler.clone().unwrap();
    assert_eq!((scheduler.kind, scheduler.soft.cores), (SchedulerKind::Exact, Some(2)));
    let texts: Vec<String> = [
        serde_json::to_string(&intent.node).unwrap(),
        serde_json::to_string(&intent.networks[0]).unwrap(),
        serde_json::to_string(&intent.networks[1]).unwrap(),
    ]
    .into();
    assert!(texts[0].contains(r#""soft":{"cores":2,"bandwidth":"1Gbit/s"}"#), "{}", texts[0]);
    assert!(
        texts[1].contains(r#""needs":{"bandwidth":"200Mbit/s","latency":"low","routes":1000}"#),
        "{}",
        texts[1]
    );
    assert!(!texts[2].contains("needs"), "{}", texts[2]);
    assert_eq!(load(&texts.iter().map(String::as_str).collect::<Vec<_>>()).unwrap(), intent);
}

#[test]
fn fields_of_live_nodes_round_trip() {
    let node = "apiVersion: hueplane/v1\nkind: Node\nmetadata: {name: n}\nspec:\n  ports: [{name: p0, interface: enp3s0f0, driver: afxdp}]\n";
    let more = "  punt_limit: {packets_per_second: 50, burst_packets: 5}\n  resources: {cpu: 0.25, memory: 2048Mi, processes: 64}\n  table: {quota: 2048Ki}\n";
    let intent = load(&[node, &network("a", &[], more)]).unwrap();
    let port = &intent.node.spec.ports[0];
    assert_eq!((port.interface(), port.driver), ("enp3s0f0", PortDriver::AfXdp));
    let spec = &intent.networks[0].spec;
    assert_eq!((spec.punt_limit.packets_per_second, spec.punt_limit.burst_packets), (50, 5));
    let quota = spec.table.unwrap().quota;
    assert_eq!((quota.bytes(), quota.to_string().as_str()), (2 << 20, "2Mi"));
    let resources = spec.resources.unwrap();
    assert_eq!(resources.cpu.unwrap().thousandths(), 250);
    assert_eq!((resources.memory.unwrap().bytes(), resources.processes), (2 << 30, Some(64)));
    let text = serde_json::to_string(&intent.networks[0]).unwrap();
    assert!(text.contains(r#""resources":{"cpu":0.25,"memory":"2Gi","processes":64}"#), "{text}");
    let node = serde_json::to_string(&intent.node).unwrap();
    assert_eq!(load(&[&node, &text]).unwrap(), intent);
}

proptest::proptest! {
    /// Any number of thousandths is written and read exactly.
    #[test]
    fn cores_are_exact(thousandths in limits::CPU_THOUSANDTHS_MIN..=limits::CPU_THOUSANDTHS_MAX) {
        let cores = Cores::from_thousandths(thousandths).unwrap();
        let text = network("a", &[], &format!("  resources: {{cpu: {}}}\n", serde_json::to_string(&cores).unwrap()));
        proptest::prop_assert_eq!(load(&[&text]).unwrap().networks[0].spec.resources.unwrap().cpu, Some(cores));
    }
}

#[test]
fn lists_with_only_comments_are_empty() {
    let text =
        network("a", &["{name: x, port: p0, mac: '02:00:00:00:00:01', addresses: }"], "  routes:\n  # - x\n");
    assert!(load(&[&text]).unwrap().networks[0].spec.routes.is_empty());
}

#[test]
fn select_and_bits_load() {
    let more = "  select: {by: inner, prefixes: [10.0.0.0/8, 0.0.0.0/0]}\n  vid: 4095\n  rate_limit: {bits_per_second: 1000000000000, burst_bits: 0x1_0}\n";
    assert_eq!(errors(&[&network("a", &[], more)]).len(), 1, "YAML 1.2 has no underscores in numbers");
    let more = more.replace("0x1_0", "0xffff");
    let intent = load(&[&network("a", &[], &more)]).unwrap();
    let spec = &intent.networks[0].spec;
    assert!(matches!(&spec.select, Select::Inner(prefixes) if prefixes.len() == 2));
    assert_eq!(spec.rate_limit.unwrap().bits.unwrap().burst, 0xffff);
    assert_eq!(spec.vid.unwrap().get(), 4095);
}

/// Numbers of today mean the same, and documents in force are printed with units.
#[test]
fn bits_load_with_and_without_a_unit() {
    let limit = |rate: &str, burst: &str| {
        let text =
            network("a", &[], &format!("  rate_limit: {{bits_per_second: {rate}, burst_bits: {burst}}}\n"));
        load(&[&text]).unwrap().networks.remove(0)
    };
    let network = limit("10Mbit/s", "80kbit");
    assert_eq!(network, limit("10000000", "80000"));
    assert_eq!(network, limit("\"10000kbit/s\"", "0x13880"));
    let json = serde_json::to_value(&network).unwrap();
    assert_eq!(
        json["spec"]["rate_limit"],
        serde_json::json!({"bits_per_second": "10Mbit/s", "burst_bits": "80kbit"})
    );
    assert_eq!(load(&[&json.to_string()]).unwrap().networks[0], network);
    assert_eq!(limit("1bit/s", "1Gbit").spec.rate_limit.unwrap().bits.unwrap().per_second, 1);
}

/// A daemon must start with what an earlier version accepted.
#[test]
fn the_loopback_is_refused_in_new_documents_only() {
    let node = "apiVersion: hueplane/v1\nkind: Node\nmetadata: {name: n}\nspec:\n  ports: [{name: p0, interface: lo}]\n";
    let expected =
        "expected an Ethernet interface (the loopback has no Ethernet segment; use one end of a veth pair)";
    assert_eq!(
        errors(&[node]),
        [format!("a.yaml:5:33: spec.ports[0].interface: found interface \"lo\", {expected}")]
    );
    let implied =
        network("a", &["{name: x, port: lo, mac: '02:00:00:00:00:01', addresses: [10.1.0.1/24]}"], "");
    assert_eq!(
        errors(&[&implied]),
        [format!("a.yaml:7:23: spec.ports[0].port: found interface \"lo\", {expected}")]
    );
    let named = "apiVersion: hueplane/v1\nkind: Node\nmetadata: {name: n}\nspec:\n  ports: [{name: lo, interface: eth0}]\n";
    assert!(load(&[named, &implied]).is_ok(), "a port may be called lo");
    let stored = |text: &str| Source { name: "stored".to_owned(), bytes: text.as_bytes().to_vec() };
    assert!(hue_intent::parse_accepted(vec![stored(node)]).is_ok());
    assert!(hue_intent::parse_accepted(vec![stored(&implied)]).is_ok());
}

#[test]
fn anchors_and_json_and_a_byte_order_mark_load() {
    let port = "{name: x, port: &p p0, mac: '02:00:00:00:00:01', mtu: &m 1400}";
    let other = "{name: y, port: *p, mac: '02:00:00:00:00:02', mtu: *m}";
    let intent = load(&[&network("a", &[port, other], "")]).unwrap();
    assert_eq!(intent.networks[0].spec.ports[1].mtu, Some(1400));
    let json = serde_json::to_string(&intent.networks[0]).unwrap();
    assert_eq!(load(&[&format!("\u{feff}{json}")]).unwrap().networks, intent.networks);
}

#[test]
fn documents_round_trip() {
    for file in ["hueplane.yaml", "select.yaml"] {
        let path = format!("{}/../../labs/basic/{file}", env!("CARGO_MANIFEST_DIR"));
        let intent = hue_intent::load([&path]).unwrap();
        let mut documents = vec![serde_json::to_value(&intent.node).unwrap()];
        documents.extend(intent.networks.iter().map(|network| serde_json::to_value(network).unwrap()));
        let texts: Vec<String> = documents.iter().map(Value::to_string).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let again = load(&texts).unwrap();
        assert_eq!((&again.node, &again.networks), (&intent.node, &intent.networks), "{file}");
    }
}

#[test]
fn networks_may_share_addresses_on_different_ports() {
    let one =
        network("one", &["{name: x, port: p0, mac: '02:00:00:00:00:01', addresses: [10.0.0.1/24]}"], "");
    let two =
        network("two", &["{name: x, port: p1, mac: '02:00:00:00:00:01', addresses: [10.0.0.1/24]}"], "");
    assert_eq!(errors(&[&one, &two]), [""; 0]);
}

#[test]
fn a_route_onto_a_port_makes_a_link_for_gateways_and_neighbours() {
    let more = "  routes: [{to: 10.0.0.9/32, port: x}, {to: 0.0.0.0/0, via: 10.0.0.9}]\n  neighbours: [{port: x, address: 10.0.0.9, mac: '02:00:00:00:00:09'}]\n";
    let port = "{name: x, port: p0, mac: '02:00:00:00:00:01', addresses: [10.7.7.7/32]}";
    let intent = load(&[&network("a", &[port], more)]).unwrap();
    let spec = &intent.networks[0].spec;
    let links = Links::new(&spec.ports, &spec.routes);
    assert_eq!(links.of("10.0.0.9".parse().unwrap()).unwrap().own, None);
    assert_eq!(links.of("10.7.7.7".parse().unwrap()), None);
}

#[test]
fn links_of_31_bits_have_no_broadcast_address() {
    let more = "  routes: [{to: 0.0.0.0/0, via: 10.0.0.1}]\n";
    let port = "{name: x, port: p0, mac: '02:00:00:00:00:01', addresses: [10.0.0.0/31]}";
    assert_eq!(errors(&[&network("a", &[port], more)]), [""; 0]);
}

#[test]
fn unreadable_files_are_reported() {
    let missing = hue_intent::load(["/nowhere/at-all.yaml"]).unwrap_err().to_string();
    assert!(missing.starts_with("/nowhere/at-all.yaml: cannot be read: "), "{missing}");
    assert!(missing.ends_with("expected a YAML file, or - for standard input"), "{missing}");
    let folder = hue_intent::load([env!("CARGO_MANIFEST_DIR")]).unwrap_err().to_string();
    assert!(folder.contains(": cannot be read: "), "{folder}");
}

#[test]
fn limits_are_exact() {
    let port = |index: usize| {
        format!("{{name: v{index}, port: p{}, mac: '02:00:00:00:{:02x}:01'}}", index % 7, index % 256)
    };
    let ports = |count: usize| (0..count).map(port).collect::<Vec<_>>();
    let text = |count: usize| network("a", &ports(count).iter().map(String::as_str).collect::<Vec<_>>(), "");
    assert_eq!(errors(&[&text(limits::NETWORK_PORTS_MAX)]), [""; 0]);
    assert_eq!(
        errors(&[&text(limits::NETWORK_PORTS_MAX + 1)]),
        ["a.yaml:7:5: spec.ports: found 257 entries, expected at most 256"]
    );

    let nodes = |count: usize| {
        let ports: Vec<String> = (0..count).map(|index| format!("{{name: p{index}}}")).collect();
        format!(
            "apiVersion: hueplane/v1\nkind: Node\nmetadata: {{name: n}}\nspec: {{ports: [{}]}}\n",
            ports.join(", ")
        )
    };
    assert_eq!(errors(&[&nodes(limits::NODE_PORTS_MAX)]), [""; 0]);
    assert_eq!(
        errors(&[&nodes(limits::NODE_PORTS_MAX + 1)]),
        ["a.yaml:4:15: spec.ports: found 193 entries, expected at most 192"]
    );

    let networks = |count: usize| {
        (0..count).map(|index| network(&format!("n{index}"), &[], "") + "---\n").collect::<String>()
    };
    assert_eq!(load(&[&networks(limits::NETWORKS_MAX)]).unwrap().networks.len(), limits::NETWORKS_MAX);
    let over = errors(&[&networks(limits::NETWORKS_MAX + 1)]);
    assert_eq!(over.len(), 1);
    assert!(over[0].ends_with(": document: found 4096 networks, expected at most 4095"), "{over:?}");
}

#[test]
fn list_limits_are_exact() {
    let port = |addresses: &str| {
        format!("{{name: x, port: p0, mac: '02:00:00:00:00:01', addresses: [10.0.0.1/8{addresses}]}}")
    };
    let addresses = |count: usize| {
        let more: String = (1..count).map(|index| format!(", 10.1.{index}.1/24")).collect();
        errors(&[&network("a", &[&port(&more.replace("10.1.256.1", "10.2.0.1"))], "")])
    };
    assert_eq!(addresses(limits::PORT_ADDRESSES_MAX), [""; 0]);
    assert!(
        addresses(limits::PORT_ADDRESSES_MAX + 1)[0].ends_with("found 257 entries, expected at most 256")
    );

    let bytes = |index: usize| (index >> 8, index & 255);
    let neighbours = |count: usize| {
        let line = |index: usize| {
            let (high, low) = bytes(index);
            format!("    - {{port: x, address: 10.1.{high}.{low}, mac: '02:00:00:00:00:02'}}\n")
        };
        let lines: String = (0..count).map(line).collect();
        errors(&[&network("a", &[&port("")], &format!("  neighbours:\n{lines}"))])
    };
    assert_eq!(neighbours(limits::NEIGHBOURS_MAX), [""; 0]);
    assert!(
        neighbours(limits::NEIGHBOURS_MAX + 1)[0].ends_with("found 32769 entries, expected at most 32768")
    );

    let prefixes = |count: usize| {
        let list: Vec<_> =
            (0..count).map(|index| format!("10.{}.{}.0/24", bytes(index).0, bytes(index).1)).collect();
        let select = format!("  select: {{by: inner, prefixes: [{}]}}\n", list.join(", "));
        errors(&[&network("a", &[&port("")], &select)])
    };
    assert_eq!(prefixes(limits::SELECT_PREFIXES_MAX), [""; 0]);
    assert!(
        prefixes(limits::SELECT_PREFIXES_MAX + 1)[0].ends_with("found 4097 entries, expected at most 4096")
    );

    let keys =
        |count: usize| errors(&[&(0..count).map(|key| format!("k{key}: 1\n")).collect::<String>()]).len();
    assert_eq!(keys(limits::KEYS_MAX), limits::KEYS_MAX + 2, "each is unknown, two fields are missing");
    assert_eq!(keys(limits::KEYS_MAX + 1), 1);
}

#[test]
fn too_many_routes_are_rejected() {
    let routes = "  - x\n".repeat(limits::ROUTES_MAX + 1);
    let errors = errors(&[&network("a", &[], &format!("  routes:\n{routes}"))]);
    assert_eq!(errors, ["a.yaml:8:5: spec.routes: found 2000001 entries, expected at most 2000000"]);
}

#[test]
fn errors_beyond_the_limit_are_counted() {
    let routes = "    - {to: x}\n".repeat(limits::ERRORS_MAX);
    let errors = load(&[&network("a", &[], &format!("  routes:\n{routes}"))]).unwrap_err();
    assert_eq!((errors.list.len(), errors.more), (limits::ERRORS_MAX, limits::ERRORS_MAX));
    assert!(errors.to_string().ends_with("\nand 1000 more"));
}

#[test]
fn too_long_files_are_rejected() {
    let bytes = vec![b'#'; limits::FILE_BYTES_MAX + 1];
    let errors = parse(vec![Source { name: "a.yaml".to_owned(), bytes }]).unwrap_err().to_string();
    assert_eq!(errors, "a.yaml:1:1: document: found 67108865 bytes, expected at most 67108864");
}

#[test]
fn deep_nesting_is_rejected() {
    let deep = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    assert!(errors(&[&deep(limits::DEPTH_MAX)])[0].contains("found a list, expected a mapping"));
    assert_eq!(
        errors(&[&deep(limits::DEPTH_MAX + 1)]),
        [
            "a.yaml:1:33: [0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0]: found deeper nesting, expected at most 32 levels"
        ]
    );
    assert_eq!(errors(&[&deep(100_000)]).len(), 1);
    assert_eq!(errors(&[&"- ".repeat(100_000)]).len(), 1);
}

#[test]
fn aliases_of_aliases_use_no_memory() {
    let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..60 {
        let list = vec![format!("*a{}", level - 1); 9].join(", ");
        text.push_str(&format!("a{level}: &a{level} [{list}]\n"));
    }
    assert_eq!(errors(&[&text]).len(), 60 + 2, "unknown fields, missing apiVersion and kind");
}

#[test]
fn names_have_at_most_63_characters() {
    assert_eq!(errors(&[&red_with("name: red", &format!("name: {}", "n".repeat(63)))]), [""; 0]);
    assert_eq!(errors(&[&red_with("name: red", &format!("name: {}", "n".repeat(64)))]).len(), 1);
}

#[test]
fn ends_of_links_are_ports_and_the_document_keeps_its_form() {
    let node = NODE.replace(
        "spec:\n",
        "spec:\n  links: [{ends: [red-blue, blue-red], mtu: 9000, bandwidth: 1Gbit/s}]\n",
    );
    let intent = load(&[&node]).unwrap();
    let ports: Vec<_> = intent
        .node
        .spec
        .ports
        .iter()
        .map(|port| (port.name.as_str(), port.mtu, port.peer.as_ref().map(ToString::to_string)))
        .collect();
    let peer = |name: &str| Some(name.to_owned());
    assert_eq!(
        ports,
        [
            ("blue-red", 9000, peer("red-blue")),
            ("p0", 1500, None),
            ("p1", 1400, None),
            ("red-blue", 9000, peer("blue-red"))
        ]
    );
    let text = serde_json::to_string(&intent.node).unwrap();
    assert!(
        text.contains(r#""links":[{"ends":["red-blue","blue-red"],"mtu":9000,"bandwidth":"1Gbit/s"}]"#),
        "{text}"
    );
    assert!(!text.contains("peer"), "{text}");
    assert_eq!(load(&[&text]).unwrap(), intent);
}
