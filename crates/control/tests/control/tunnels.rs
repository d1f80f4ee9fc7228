//! Tunnels in compiled programs: what their ports send, and what a change of a document changes.

use std::collections::HashSet;

use hue_control::{Verb, bound_to_software, carriers, compile, peer, plan};
use hue_intent::{Intent, Source, parse};
use hue_planes::AdjacencyKind;

const WAN: &str = "apiVersion: hueplane/v1\nkind: Network\nmetadata: {name: wan}\nspec:\n  plane: {kind: ipv4}\n  ports:\n    \
    - {name: up, port: p0, mac: '02:00:00:00:00:09', addresses: [192.0.2.1/24]}\n";

fn red(tunnel: &str, more: &str) -> String {
    format!(
        "---\napiVersion: hueplane/v1\nkind: Network\nmetadata: {{name: red}}\nspec:\n  plane: {{kind: ipv4}}\n  ports:\n    \
         - {{name: left, port: p1, mac: '02:00:00:00:00:08', addresses: [10.1.0.1/24]}}\n    \
         - {{name: to-b, tunnel: {{local: 192.0.2.1, {tunnel}}}, over: wan, addresses: [10.0.0.1/24]}}\n  \
         routes: [{{to: 10.2.0.0/16, via: 10.0.0.2}}, {{to: 10.3.0.0/16, port: to-b}}]\n{more}"
    )
}

fn intent(documents: &[&str]) -> Intent {
    parse(vec![Source { name: "t".into(), bytes: documents.concat().into_bytes() }]).unwrap()
}

const IPIP: &str = "type: ipip, remote: 192.0.2.2";
const VXLAN: &str = "type: vxlan, remote: 192.0.2.2, vni: 7";

/// An IP tunnel has one router at its other end: its routes need no neighbour. Those of VXLAN do.
#[test]
fn routes_into_a_tunnel() {
    for (tunnel, mtu_bytes, kind) in
        [(IPIP, 1480, AdjacencyKind::Forward), (VXLAN, 1450, AdjacencyKind::Glean)]
    {
        let intent = intent(&[WAN, &red(tunnel, "")]);
        let compiled = compile(&intent).unwrap();
        let (program, names) = (&compiled.programs[0], &compiled.names.networks[0]);
        let (document, port) = (&intent.networks[0].spec.ports[1], &program.ports[1]);
        assert_eq!((port.mtu_bytes, port.mac), (mtu_bytes, document.mac));
        assert_ne!(port.port, program.ports[0].port);
        for address in ["10.0.0.2", "10.0.0.77", "10.2.3.4", "10.3.3.4"] {
            let route = names.route(address.parse().unwrap()).unwrap();
            let hop = program.next_hops[usize::from(route.hop.get())];
            assert_eq!((hop.kind(), hop.port()), (kind, port.port), "{address}");
            if let Some(peer) = peer(document) {
                assert_eq!((hop.dst(), hop.src(), hop.mtu_bytes()), (peer, port.mac, mtu_bytes), "{address}");
            }
        }
        let own = names.route("10.0.0.1".parse().unwrap()).unwrap();
        assert_eq!(program.next_hops[usize::from(own.hop.get())].kind(), AdjacencyKind::Local);
        // The physical ports are those of the wires.
        assert_eq!(
            compiled.names.ports.iter().map(|port| port.name.as_str()).collect::<Vec<_>>(),
            ["p0", "p1"]
        );
    }
}

#[test]
fn networks_that_carry_tunnels() {
    let blue =
        red("type: ipip, remote: 192.0.2.9", "").replace("name: red", "name: blue").replace("p1", "p2");
    let intent = intent(&[WAN, &red(VXLAN, ""), &blue]);
    assert_eq!(carriers(&intent.networks), HashSet::from(["wan"]));
    // One with a tunnel can carry others.
    let mut networks = intent.networks.clone();
    let inner = networks.iter().position(|network| network.name() == "blue").unwrap();
    if let hue_intent::On::Tunnel(tunnel) = &mut networks[inner].spec.ports[1].on {
        tunnel.over = "red".parse().unwrap();
    }
    assert_eq!(carriers(&networks), HashSet::from(["wan", "red"]));
}

#[test]
fn switches_with_tunnels_and_limited_networks_are_bound_to_software() {
    let switch = "---\napiVersion: hueplane/v1\nkind: Network\nmetadata: {name: blue}\nspec:\n  plane: {kind: l2}\n  ports:\n    \
                  - {name: left, port: p2, mac: '02:00:00:00:00:07', mtu: 1450}\n    \
                  - {name: to-b, tunnel: {type: vxlan, remote: 192.0.2.2, vni: 8, local: 192.0.2.1}, over: wan}\n";
    let bound = |limited: bool| {
        let mut intent = intent(&[WAN, &red(VXLAN, ""), switch]);
        let limit = hue_intent::RateLimit { packets: None, bits: None };
        intent.networks.iter_mut().for_each(|network| network.spec.rate_limit = limited.then_some(limit));
        let carriers: HashSet<String> = carriers(&intent.networks).into_iter().map(str::to_owned).collect();
        let why = |network| bound_to_software(network, carriers.contains(network.name()));
        let bound = intent.networks.iter().filter_map(|one| Some((one.name().to_owned(), why(one)?)));
        bound.collect::<Vec<_>>()
    };
    let floods = "it is a switch with tunnels, into which the card cannot flood";
    assert_eq!(bound(false), [("blue".to_owned(), floods)]);
    let [blue, red, wan] = &bound(true)[..] else { panic!("{:?}", bound(true)) };
    assert_eq!(*blue, ("blue".to_owned(), floods));
    assert!(
        [red, wan].iter().all(|(_, why)| why.starts_with("its rate limit also counts")),
        "{red:?} {wan:?}"
    );
}

/// The interface stays when only the tunnel changes, but not when its MAC address or its type does.
#[test]
fn changes_of_tunnels() {
    let fixed = |document: String| document.replace("over: wan,", "over: wan, mac: '02:00:00:00:00:07',");
    let before = intent(&[WAN, &fixed(red(VXLAN, ""))]);
    for (tunnel, verb, field) in [
        ("type: vxlan, remote: 192.0.2.3, vni: 7", Verb::Change, "spec.ports[1].tunnel.remote"),
        ("type: vxlan, remote: 192.0.2.2, vni: 8", Verb::Change, "spec.ports[1].tunnel.vni"),
        ("type: vxlan, remote: 192.0.2.2, vni: 7, dscp: 46", Verb::Change, "spec.ports[1].tunnel.dscp"),
        (IPIP, Verb::Replace, "spec.ports[1].tunnel.type"),
    ] {
        let plan = plan(&before, &intent(&[WAN, &fixed(red(tunnel, ""))]));
        let [step] = plan.networks.as_slice() else { panic!("{plan:?}") };
        assert_eq!((step.verb, step.name.as_str()), (verb, "red"), "{tunnel}");
        assert!(step.changes.iter().any(|change| change.field == field), "{step:?}");
    }
    let other = intent(&[WAN, &red("type: vxlan, remote: 192.0.2.3, vni: 7", "")]);
    assert_eq!(plan(&intent(&[WAN, &red(VXLAN, "")]), &other).networks[0].verb, Verb::Replace);
}
