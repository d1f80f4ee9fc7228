//! Compiles intents, with results checked by hand and against a direct evaluation of the document.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use hue_control::{CompileError, Compiled, Origin, compile};
use hue_demux::{Match, PortId};
use hue_intent::{Intent, Network, Source, Target, parse};
use hue_planes::{Adjacency, AdjacencyKind, Kind};
use hue_substrate::{Program, each_routes};
use hue_tables::{AnyPrefix, NextHop, Policy, Prefix4, RouteBy, RowsByLength};
use hue_wire::Mac;
use proptest::prelude::*;

fn load(text: &str) -> Intent {
    parse(vec![Source { name: "a.yaml".to_owned(), bytes: text.as_bytes().to_vec() }]).unwrap()
}

fn compiled(text: &str) -> Compiled {
    compile(&load(text)).unwrap()
}

fn lab(file: &str) -> Compiled {
    compile(&hue_intent::load([format!("{}/../../labs/basic/{file}", env!("CARGO_MANIFEST_DIR"))]).unwrap())
        .unwrap()
}

/// Longest-prefix match by examining every route.
fn lookup(program: &Program, address: IpAddr) -> Option<Adjacency> {
    let routes = routes(program);
    let routes = routes.iter().filter(|(prefix, _)| prefix.contains(address));
    routes.max_by_key(|(prefix, _)| prefix.len()).map(|(_, hop)| program.next_hops[usize::from(hop.get())])
}

fn routes(program: &Program) -> Vec<(AnyPrefix, NextHop)> {
    let mut all = Vec::new();
    each_routes!(&program.entries, routes => all.extend(routes.iter().map(|(prefix, hop)| ((*prefix).into(), *hop))));
    all
}

const RED: &str = r#"
apiVersion: hueplane/v1
kind: Network
metadata: {name: red}
spec:
  plane: {kind: ipv4}
  ports:
    - {name: left,  port: p0, mac: "02:00:00:00:01:01", addresses: [10.1.0.1/24]}
    - {name: right, port: p1, mac: "02:00:00:00:01:02", addresses: [10.2.0.1/24], mtu: 1400}
  routes:
    - {to: 10.9.0.0/16, via: 10.2.0.2}
    - {to: 10.10.0.0/16, via: 10.2.0.3}
    - {to: 10.11.0.0/16, port: left}
    - {to: 10.2.0.128/25, via: 10.1.0.2}
  neighbours:
    - {port: right, address: 10.2.0.2, mac: "02:00:00:00:0a:02"}
    - {port: right, address: 10.2.0.200, mac: "02:00:00:00:0a:c8"}
    - {port: left, address: 10.11.1.1, mac: "02:00:00:00:0a:03"}
  weight: 3
  rate_limit: {packets_per_second: 100000, burst_packets: 1000}
"#;

#[test]
fn each_rule() {
    let compiled = compiled(RED);
    let [program] = compiled.programs.as_slice() else { panic!("{compiled:?}") };
    program.check().unwrap();
    assert_eq!((program.vid.get(), program.name.as_str(), program.weight), (1, "red", 3));
    let rate = program.rate_limit.unwrap().packets.unwrap();
    assert_eq!((rate.per_second(), rate.burst()), (100_000, 1000));
    let (p0, p1) = (PortId::new(0), PortId::new(1));
    let mac = |text: &str| text.parse::<Mac>().unwrap();
    let (left, right) = (mac("02:00:00:00:01:01"), mac("02:00:00:00:01:02"));
    let at = |address: &str| lookup(program, address.parse().unwrap());
    let text = |address: &str| compiled.names.networks[0].explain(address.parse().unwrap());
    for (address, adjacency, words) in [
        ("10.1.0.1", Some(Adjacency::local()), Some("local 10.1.0.1/32 dev left")),
        ("10.1.0.255", Some(Adjacency::local()), Some("broadcast 10.1.0.255/32 dev left")),
        ("10.1.0.7", Some(Adjacency::glean(p0)), Some("10.1.0.0/24 dev left")),
        (
            "10.2.0.2",
            Some(Adjacency::forward(p1, right, mac("02:00:00:00:0a:02"), 1400)),
            Some("10.2.0.2/32 at 02:00:00:00:0a:02 dev right"),
        ),
        (
            "10.9.255.255",
            Some(Adjacency::forward(p1, right, mac("02:00:00:00:0a:02"), 1400)),
            Some("10.9.0.0/16 via 10.2.0.2 at 02:00:00:00:0a:02 dev right"),
        ),
        ("10.10.0.1", Some(Adjacency::glean(p1)), Some("10.10.0.0/16 via 10.2.0.3 dev right")),
        ("10.11.0.1", Some(Adjacency::glean(p0)), Some("10.11.0.0/16 dev left")),
        (
            "10.11.1.1",
            Some(Adjacency::forward(p0, left, mac("02:00:00:00:0a:03"), 1500)),
            Some("10.11.1.1/32 at 02:00:00:00:0a:03 dev left"),
        ),
        // A longer route leads elsewhere, so this neighbour gets no host route.
        ("10.2.0.200", Some(Adjacency::glean(p0)), Some("10.2.0.128/25 via 10.1.0.2 dev left")),
        ("10.2.0.255", Some(Adjacency::local()), Some("broadcast 10.2.0.255/32 dev right")),
        ("10.12.0.1", None, None),
        ("224.0.0.1", None, None),
    ] {
        assert_eq!(at(address), adjacency, "{address}");
        assert_eq!(text(address).as_deref(), words, "{address}");
    }
    let mut hops = program.next_hops.clone();
    hops.dedup();
    assert_eq!(hops.len(), program.next_hops.len(), "equal next hops once");
    assert_eq!(program.next_hops.len(), 5);
}

#[test]
fn ports_and_ids_follow_names_whatever_the_order_of_documents() {
    let network = |name: &str, port: &str, mac: &str, vid: &str| {
        format!(
            "---\napiVersion: hueplane/v1\nkind: Network\nmetadata: {{name: {name}}}\nspec:\n  plane: {{kind: ipv4}}\n{vid}  ports: [{{name: x, port: {port}, mac: '02:00:00:00:00:{mac}'}}]\n"
        )
    };
    let parts = [
        network("d", "p2", "01", ""),
        network("b", "p0", "02", "  vid: 1\n"),
        network("a", "p1", "03", ""),
        network("c", "p0", "04", "  vid: 3\n"),
    ];
    let one = compiled(&parts.concat());
    assert_eq!(one, compiled(&parts.iter().rev().cloned().collect::<String>()));
    let ids: Vec<_> = one.programs.iter().map(|program| (program.name.as_str(), program.vid.get())).collect();
    assert_eq!(ids, [("a", 2), ("b", 1), ("c", 3), ("d", 4)]);
    let ports: Vec<_> = one.names.ports.iter().map(|port| port.name.as_str()).collect();
    assert_eq!(ports, ["p0", "p1", "p2"]);
    assert_eq!(one.programs[3].ports[0].port, PortId::new(2));
    assert_ne!(one.names.networks[0].colour, one.names.networks[1].colour);
    assert_eq!(one.names.network(one.programs[2].vid).unwrap().name, "c");
}

#[test]
fn labs_compile() {
    let basic = lab("hueplane.yaml");
    assert_eq!(basic.programs.len(), 3);
    let [blue, green, red] = basic.programs.as_slice() else { panic!() };
    assert_eq!(red.rows.len(), 2);
    assert!(matches!(red.rows[0].select, Match::Mac { port, .. } if port == PortId::new(0)));
    assert_eq!(green.ports[1].mtu_bytes, 1400);
    let out = |program| lookup(program, "10.9.1.1".parse().unwrap()).unwrap().port().get();
    assert_eq!((out(red), out(green), out(blue)), (1, 3, 2), "one address, three networks, three ways");

    let select = lab("select.yaml");
    let rows: Vec<_> =
        select.programs.iter().flat_map(|program| &program.rows).map(|row| row.select).collect();
    let p0 = PortId::new(0);
    let prefix = |text: &str| text.parse::<Prefix4>().unwrap();
    assert_eq!(
        rows,
        [
            Match::Inner { port: Some(p0), prefix: prefix("198.51.100.0/24") },
            Match::Inner { port: Some(p0), prefix: prefix("203.0.113.0/24") },
            Match::Mac { port: p0, mac: "02:00:00:00:11:01".parse().unwrap() },
            Match::Port(p0),
        ]
    );
}

/// Routes by source become policies; the others keep their meaning, and their lengths are in their rows.
#[test]
fn routes_by_source_are_policies() {
    let text = RED.replace("{kind: ipv4}", "{kind: ipv4, route_by: source_destination}").replace(
        "  routes:\n",
        "  routes:\n    - {from: 10.7.0.0/16, via: 10.2.0.2}\n    - {from: 10.7.0.0/16, to: 10.9.0.0/16, via: 10.1.0.2}\n",
    );
    let compiled = compiled(&text);
    let [program] = compiled.programs.as_slice() else { panic!("{compiled:?}") };
    program.check().unwrap();
    let policies = program.policies.as_ref().unwrap();
    let prefix = |text: &str| text.parse::<AnyPrefix>().unwrap();
    assert_eq!(policies.by, RouteBy::SourceDestination);
    assert_eq!(policies.links, ["10.1.0.0/24", "10.2.0.0/24", "10.11.0.0/16"].map(prefix));
    let policy =
        |to, via: &str| Policy { from: prefix("10.7.0.0/16"), to: prefix(to), via: via.parse().unwrap() };
    assert_eq!(policies.list, [policy("0.0.0.0/0", "10.2.0.2"), policy("10.9.0.0/16", "10.1.0.2")]);
    let plain = &self::compiled(RED).programs[0];
    assert_eq!(routes(program).len(), routes(plain).len());
    for (prefix, hop) in routes(program) {
        assert_eq!(RowsByLength::<u32>::len(hop.get()), Some(prefix.len()));
        assert_eq!(lookup(program, prefix.addr()), lookup(plain, prefix.addr()), "{prefix}");
    }
}

#[test]
fn several_routers_share_the_flows() {
    let text = |neighbours: &str| {
        format!(
            "apiVersion: hueplane/v1\nkind: Network\nmetadata: {{name: red}}\nspec:\n  plane: {{kind: ipv4}}\n  ports:\n    - {{name: left, port: p0, mac: '02:00:00:00:00:01', addresses: [10.1.0.1/24]}}\n    - {{name: right, port: p1, mac: '02:00:00:00:00:02', addresses: [10.2.0.1/24]}}\n  routes:\n    - {{to: 10.9.0.0/16, via: [{{via: 10.1.0.2, weight: 3}}, {{via: 10.2.0.2}}, {{via: 10.2.0.3}}]}}\n    - {{to: 10.8.0.0/16, via: [{{via: 10.1.0.2, weight: 3}}, {{via: 10.2.0.3}}, {{via: 10.2.0.2}}]}}\n  neighbours: [{neighbours}]\n"
        )
    };
    let known = |port: &str, last: u8| {
        let net = if port == "left" { 1 } else { 2 };
        format!("{{port: {port}, address: 10.{net}.0.{last}, mac: '02:00:00:00:0{net}:0{last}'}}")
    };
    let shares = |text: &str| {
        let all = compiled(text);
        let (program, names) = (&all.programs[0], &all.names.networks[0]);
        let route = names.route("10.9.1.1".parse().unwrap()).unwrap();
        assert_eq!(
            names.text(route),
            "10.9.0.0/16 via 10.1.0.2 dev left weight 3, via 10.2.0.2 dev right weight 1, via 10.2.0.3 dev right weight 1"
        );
        let group = program.groups.iter().find(|(row, _)| *row == route.hop);
        let hop = |row: NextHop| program.next_hops[usize::from(row.get())];
        let shares = group.map(|(_, slots)| slots.members()).unwrap_or(vec![(route.hop, 1)]);
        let sum: usize = shares.iter().map(|(_, count)| count).sum();
        let mut shares: Vec<_> = shares
            .into_iter()
            .map(|(row, count)| {
                (hop(row).dst().to_string(), (count as f64 * 10.0 / sum as f64).round() as u32)
            })
            .collect();
        shares.sort();
        (shares, program.groups.len())
    };
    let mac = |net: u8, last: u8| format!("02:00:00:00:0{net}:0{last}");
    let all = [known("left", 2), known("right", 2), known("right", 3)];
    // One group for both routes, whatever the order.
    assert_eq!(shares(&text(&all.join(", "))), (vec![(mac(1, 2), 6), (mac(2, 2), 2), (mac(2, 3), 2)], 1));
    assert_eq!(shares(&text(&all[1..].join(", "))), (vec![(mac(2, 2), 5), (mac(2, 3), 5)], 1));
    assert_eq!(shares(&text(&all[2])), (vec![(mac(2, 3), 10)], 0), "one is a single next hop");
    let none = compiled(&text(""));
    assert_eq!(
        lookup(&none.programs[0], "10.9.1.1".parse().unwrap()),
        Some(Adjacency::glean(PortId::new(0)))
    );
}

#[test]
fn too_many_next_hops_are_an_error() {
    // 255 ports, each with its own glean row, and the most neighbours: below the limit of 65,535.
    let mut text = "apiVersion: hueplane/v1\nkind: Network\nmetadata: {name: big}\nspec:\n  plane: {kind: ipv4}\n  ports: [{name: x, port: p0, mac: '02:00:00:00:00:01', addresses: [10.0.0.1/8]}]\n  neighbours:\n".to_owned();
    for index in 0..hue_intent::limits::NEIGHBOURS_MAX {
        let [_, _, high, low] = (index as u32).to_be_bytes();
        text.push_str(&format!(
            "    - {{port: x, address: 10.1.{high}.{low}, mac: '02:00:00:01:{high:02x}:{low:02x}'}}\n"
        ));
    }
    let intent = load(&text);
    let program = &compile(&intent).unwrap().programs[0];
    assert_eq!(program.next_hops.len(), hue_intent::limits::NEIGHBOURS_MAX + 2);

    // More than documents can contain, but a caller can construct it.
    let mut intent = intent;
    let mut more = intent.networks[0].spec.neighbours.clone();
    for (neighbour, index) in more.iter_mut().zip(0u32..) {
        let IpAddr::V4(address) = neighbour.address else { panic!() };
        neighbour.address = Ipv4Addr::from_bits(address.to_bits() + (1 << 16)).into();
        let [_, _, high, low] = index.to_be_bytes();
        neighbour.mac = Mac([2, 0, 0, 2, high, low]);
    }
    intent.networks[0].spec.neighbours.extend(more);
    assert_eq!(compile(&intent), Err(CompileError::NextHops { network: "big".to_owned() }));
}

#[test]
fn unvalidated_intent_is_an_error() {
    let good = load(RED);
    let with = |change: &dyn Fn(&mut Intent)| {
        let mut intent = good.clone();
        change(&mut intent);
        compile(&intent).unwrap_err().to_string()
    };
    assert_eq!(
        with(&|intent| intent.node.spec.ports.truncate(1)),
        "network 'red': the node has no physical port 'p1'"
    );
    assert_eq!(
        with(&|intent| intent.networks[0].spec.routes[0].target = Target::Via([1, 2, 3, 4].into())),
        "network 'red': gateway 1.2.3.4 is not on any link of the network"
    );
    assert_eq!(
        with(&|intent| intent.networks[0].spec.neighbours[0].port = "up".parse().unwrap()),
        "network 'red': a route or neighbour names an unknown virtual port"
    );
    assert_eq!(
        with(&|intent| intent.networks[0]
            .spec
            .rate_limit
            .as_mut()
            .unwrap()
            .packets
            .as_mut()
            .unwrap()
            .burst = 0),
        "network 'red': rate limit: burst is 0: expected 1 to 1000000000000"
    );
    assert_eq!(
        with(&|intent| intent.networks[0].spec.weight = 0),
        "network 'red': weight 0: expected at least 1"
    );
    assert_eq!(
        with(&|intent| {
            let mut other = intent.networks[0].clone();
            other.spec.vid = hue_tables::Vid::new(9);
            intent.networks[0].spec.vid = other.spec.vid;
            intent.networks.push(other);
        }),
        "network 'red': id 9 already belongs to another network"
    );
    assert_eq!(
        with(&|intent| {
            let port = intent.node.spec.ports[0].clone();
            intent.node.spec.ports = vec![port; 257];
        }),
        "257 physical ports, more than the limit of 192"
    );
}

/// How a document treats an address, evaluated directly, without tables.
#[derive(PartialEq, Debug)]
enum Meaning {
    NoRoute,
    Local,
    Ask(usize),
    Send(usize, Mac),
}

/// Whether all routers of an IPv6 link have this address (RFC 4291 §2.6.1): the first one of the link's prefix.
fn is_anycast(network: &Network, address: IpAddr) -> bool {
    let IpAddr::V6(address) = address else { return false };
    let mut links = network.spec.ports.iter().flat_map(|port| &port.addresses).filter(|own| own.len <= 126);
    links.any(|own| match own.address {
        IpAddr::V6(of) => of.to_bits() >> (128 - own.len) << (128 - own.len) == address.to_bits(),
        IpAddr::V4(_) => false,
    })
}

fn meaning(network: &Network, address: IpAddr) -> Meaning {
    let spec = &network.spec;
    let vport = |name: &str| spec.ports.iter().position(|port| port.name.as_str() == name).unwrap();
    let known = |port: usize, address: IpAddr| {
        let found = spec.neighbours.iter().find(|n| vport(n.port.as_str()) == port && n.address == address);
        found.map_or(Meaning::Ask(port), |n| Meaning::Send(port, n.mac))
    };
    let owns =
        || spec.ports.iter().enumerate().flat_map(|(port, p)| p.addresses.iter().map(move |own| (port, own)));
    if owns().any(|(_, own)| own.address == address || own.broadcast() == Some(address))
        || is_anycast(network, address)
    {
        return Meaning::Local;
    }
    let link_of = |address: IpAddr| {
        let connected = owns().filter(|(_, own)| own.has_link()).map(|(port, own)| (own.link(), port));
        let onto = spec.routes.iter().filter_map(|route| match &route.target {
            Target::Port(name) => Some((route.to, vport(name.as_str()))),
            Target::Via(_) | Target::Vias(_) => None,
        });
        let links = connected.chain(onto).filter(|(prefix, _)| prefix.contains(address));
        // The first of the longest: rules 2 and 3 prefer the link of an address to a route onto a port.
        links.min_by_key(|(prefix, _)| std::cmp::Reverse(prefix.len()))
    };
    let link = link_of(address);
    let via = spec.routes.iter().filter_map(|route| match route.target {
        Target::Via(via) if route.to.contains(address) => Some((route.to, via)),
        _ => None,
    });
    match (link, via.max_by_key(|(prefix, _)| prefix.len())) {
        (None, None) => Meaning::NoRoute,
        (Some((prefix, _)), Some((other, via))) if other.len() > prefix.len() => {
            known(link_of(via).unwrap().1, via)
        }
        (Some((_, port)), _) => known(port, address),
        (None, Some((_, via))) => known(link_of(via).unwrap().1, via),
    }
}

/// A small address space, so that prefixes overlap: 10.0.0.0 to 10.0.3.255.
fn small_address() -> impl Strategy<Value = u32> {
    prop_oneof![0u32..64, 0u32..1024].prop_map(|low| 0x0a00_0000 | low)
}

/// The address with these bits in a family: 2001:db8::/96 before them in IPv6.
fn address(bits: u32, six: bool) -> IpAddr {
    match six {
        false => Ipv4Addr::from_bits(bits).into(),
        true => Ipv6Addr::from_bits(0x2001_0db8_u128 << 96 | u128::from(bits)).into(),
    }
}

prop_compose! {
    fn document()(
        ports in prop::collection::vec(prop::collection::vec((small_address(), 24u8..=32), 0..3), 1..4),
        routes in prop::collection::vec((small_address(), 22u8..=32, prop::option::of(small_address()), 0usize..4), 0..8),
        neighbours in prop::collection::vec((0usize..4, small_address()), 0..12),
        six in any::<bool>(),
    ) -> String {
        let address = |bits| address(bits, six);
        let more = if six { 96 } else { 0 };
        let kind = if six { "ipv6" } else { "ipv4" };
        let count = ports.len();
        let mut text = format!("apiVersion: hueplane/v1\nkind: Network\nmetadata: {{name: a}}\nspec:\n  plane: {{kind: {kind}}}\n  ports:\n");
        for (index, addresses) in ports.iter().enumerate() {
            let list: Vec<String> = addresses.iter().map(|(ip, len)| format!("{}/{}", address(*ip), len + more)).collect();
            text.push_str(&format!("    - {{name: v{index}, port: p{index}, mac: '02:00:00:00:00:{index:02x}', addresses: [{}]}}\n", list.join(", ")));
        }
        text.push_str("  routes:\n");
        for (to, len, via, port) in &routes {
            let to = AnyPrefix::containing(address(*to), len + more);
            match via {
                Some(via) => text.push_str(&format!("    - {{to: {to}, via: {}}}\n", address(*via))),
                None => text.push_str(&format!("    - {{to: {to}, port: v{}}}\n", port % count)),
            }
        }
        text.push_str("  neighbours:\n");
        for (index, (port, ip)) in neighbours.iter().enumerate() {
            text.push_str(&format!("    - {{port: v{}, address: {}, mac: '02:00:00:00:01:{index:02x}'}}\n", port % count, address(*ip)));
        }
        text
    }
}

/// Removes lines that the validator rejects, until it accepts the document.
fn repaired(mut text: String) -> Option<Intent> {
    for _ in 0..40 {
        let errors = match parse(vec![Source { name: "a".to_owned(), bytes: text.clone().into_bytes() }]) {
            Ok(intent) => return Some(intent),
            Err(errors) => errors,
        };
        let line = errors.list.iter().filter_map(|error| Some(error.finding()?.place.line)).max()?;
        let rest = text.lines().zip(1..).filter(|(_, number)| *number != line).map(|(text, _)| text);
        text = rest.collect::<Vec<_>>().join("\n");
    }
    None
}

proptest! {
    #![proptest_config(ProptestConfig { max_global_rejects: 100_000, ..ProptestConfig::with_cases(ProptestConfig::default().cases.max(500)) })]

    #[test]
    fn programs_match_their_documents(text in document(), probes in prop::collection::vec(small_address(), 50)) {
        let intent = repaired(text);
        prop_assume!(intent.is_some());
        let intent = intent.unwrap();
        let network = &intent.networks[0];
        let compiled = compile(&intent).unwrap();
        let program = &compiled.programs[0];
        let names = &compiled.names.networks[0];
        let six = program.kind() == Kind::Ipv6;
        let edges = routes(program).into_iter().flat_map(|(prefix, _)| [prefix.addr(), prefix.last()]);
        for address in probes.into_iter().map(|bits| address(bits, six)).chain(edges) {
            let adjacency = lookup(program, address);
            let got = match adjacency {
                None => Meaning::NoRoute,
                Some(hop) => match hop.kind() {
                    AdjacencyKind::Local => Meaning::Local,
                    AdjacencyKind::Glean => Meaning::Ask(usize::from(hop.port().get())),
                    AdjacencyKind::Forward => Meaning::Send(usize::from(hop.port().get()), hop.dst()),
                    AdjacencyKind::None | AdjacencyKind::Port | AdjacencyKind::Group | AdjacencyKind::Drop | AdjacencyKind::Labels => panic!("a route without a target"),
                },
            };
            // Each virtual port is on the physical port with its number, if that exists.
            let port = |vport: usize| usize::from(program.ports[vport].port.get());
            let expected = match meaning(network, address) {
                Meaning::Ask(vport) => Meaning::Ask(port(vport)),
                Meaning::Send(vport, mac) => Meaning::Send(port(vport), mac),
                other => other,
            };
            prop_assert_eq!(&got, &expected, "{} in {:?}", address, network.spec);
            let route = names.route(address);
            prop_assert_eq!(route.map(|route| program.next_hops[usize::from(route.hop.get())]), adjacency);
            if let Some(route) = route {
                prop_assert_eq!(matches!(route.origin, Origin::Address | Origin::Broadcast | Origin::Anycast), got == Meaning::Local);
            }
        }
    }
}
