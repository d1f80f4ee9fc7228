//! Tunnels in documents: what they become, their defaults, and every mistake with its place and that of what it contradicts.

use hue_intent::{Dscp, Encapsulation, Intent, Mtus, limits};
use hue_wire::vxlan::Vni;

use serde_json::{Value, json};

use crate::common::{NODE, errors, load};
use crate::evaluate::valid;

/// A network of a kind, with ports that have one line each.
fn network(name: &str, kind: &str, ports: &[&str], more: &str) -> String {
    let ports: String = ports.iter().map(|port| format!("    - {port}\n")).collect();
    format!(
        "apiVersion: hueplane/v1\nkind: Network\nmetadata: {{name: {name}}}\nspec:\n  plane: {{kind: {kind}}}\n  ports:\n{ports}{more}"
    )
}

const WAN: &str =
    "{name: up, port: p0, mac: '02:00:00:00:00:01', addresses: [192.0.2.1/24, '2001:db8::1/64']}";
const VXLAN: &str = "type: vxlan, local: 192.0.2.1, remote: 192.0.2.2, vni: 7";
const IPIP: &str = "type: ipip, local: 192.0.2.1, remote: 192.0.2.2";

fn wan() -> String {
    network("wan", "dual", &[WAN], "")
}

/// A network `red` with one tunnel over `wan`.
fn red(tunnel: &str) -> String {
    network(
        "red",
        "ipv4",
        &[&format!("{{name: to-b, tunnel: {{{tunnel}}}, over: wan, addresses: [10.0.0.1/24]}}")],
        "",
    )
}

/// The errors of `red` beside `wan`; `red` is `b.yaml`.
fn with(tunnel: &str) -> Vec<String> {
    errors(&[&wan(), &red(tunnel)])
}

fn mtu_of(intent: &Intent, network: &str) -> Vec<Option<u16>> {
    let physical = intent.node.spec.ports.iter().map(|port| (port.name.as_str(), port.mtu)).collect();
    let networks = &intent.networks;
    let mtus = Mtus::new(physical, networks.iter().map(|one| (one.name(), one.spec.ports.iter().collect())));
    let network = networks.iter().find(|one| one.name() == network).unwrap();
    network.spec.ports.iter().map(|port| mtus.of(port)).collect()
}

#[test]
fn what_a_document_says_and_what_it_leaves_out() {
    let intent = load(&[&wan(), &red(VXLAN)]).unwrap();
    let port = &intent.networks[0].spec.ports[0];
    let tunnel = port.tunnel().unwrap();
    assert_eq!(tunnel.encapsulation, Encapsulation::Vxlan { vni: Vni::new(7).unwrap(), port: 4789 });
    assert_eq!((tunnel.ttl, tunnel.dscp, tunnel.over.as_str()), (64, Dscp::Inherit, "wan"));
    assert!(port.physical().is_none() && !tunnel.is_ip());
    assert_eq!(port.mac, tunnel.default_mac());
    assert_eq!(port.mac.0[0] & 3, 2, "a local address of one station");
    // Only physical ports are ports of the node.
    assert_eq!(intent.node.spec.ports.len(), 1);

    let all = load(&[&wan(), &red(&format!("{VXLAN}, port: 8472, ttl: 3, dscp: 46"))]).unwrap();
    let tunnel = all.networks[0].spec.ports[0].tunnel().unwrap();
    assert_eq!(tunnel.encapsulation, Encapsulation::Vxlan { vni: Vni::new(7).unwrap(), port: 8472 });
    assert_eq!((tunnel.ttl, tunnel.dscp), (3, Dscp::Fixed(46)));

    // Written and read again, a document is the same.
    for intent in [intent, all] {
        let texts: Vec<String> =
            intent.networks.iter().map(|network| serde_json::to_string(network).unwrap()).collect();
        let again = load(&texts.iter().map(String::as_str).collect::<Vec<_>>()).unwrap();
        assert_eq!(again.networks, intent.networks);
    }
}

/// Else both ends of a link would have the same MAC address.
#[test]
fn both_ends_of_a_tunnel_have_different_default_macs() {
    let near = load(&[&wan(), &red(VXLAN)]).unwrap().networks[0].spec.ports[0].mac;
    let there = wan().replace("192.0.2.1", "192.0.2.2");
    let far = load(&[&there, &red("type: vxlan, local: 192.0.2.2, remote: 192.0.2.1, vni: 7")]).unwrap();
    assert_ne!(near, far.networks[0].spec.ports[0].mac);
}

#[test]
fn a_tunnel_has_the_mtu_that_its_carrier_leaves() {
    for (tunnel, overhead) in [
        (VXLAN, 50),
        (IPIP, 20),
        ("type: ipip, local: '2001:db8::1', remote: '2001:db8::2'", 40),
        ("type: vxlan, local: '2001:db8::1', remote: '2001:db8::2', vni: 0", 70),
    ] {
        let intent = load(&[&wan(), &red(tunnel)]).unwrap();
        assert_eq!(mtu_of(&intent, "red"), [Some(1500 - overhead)], "{tunnel}");
    }
    // The smallest of the carrier's ports counts, and tunnels can be in each other.
    let right = "{name: right, port: p1, mac: '02:00:00:00:00:02', addresses: [198.51.100.1/24]}";
    let wan = network("wan", "dual", &[WAN, right], "");
    let blue = network(
        "blue",
        "ipv4",
        &[
            "{name: v, tunnel: {type: ipip, local: 10.0.0.1, remote: 10.0.0.2}, over: red, addresses: [172.16.0.1/24]}",
        ],
        "",
    );
    let intent = load(&[NODE, &wan, &red(VXLAN), &blue]).unwrap();
    assert_eq!(mtu_of(&intent, "red"), [Some(1350)]);
    assert_eq!(mtu_of(&intent, "blue"), [Some(1330)]);
}

#[test]
fn shape_of_a_tunnel() {
    let port = |fields: &str| {
        errors(&[&wan(), &network("red", "ipv4", &[&format!("{{name: to-b, {fields}}}")], "")])
    };
    assert_eq!(
        port("mac: '02:00:00:00:00:02'"),
        [
            "b.yaml:7:7: spec.ports[0].port: found nothing, expected the name of a physical port, or tunnel and over instead"
        ]
    );
    assert_eq!(
        port(&format!("port: p0, tunnel: {{{VXLAN}}}, over: wan, mac: '02:00:00:00:00:02'")),
        ["b.yaml:7:38: spec.ports[0].tunnel: found both \"port\" and \"tunnel\", expected one of them"]
    );
    assert_eq!(
        port("port: p0, over: wan, mac: '02:00:00:00:00:02'"),
        [
            "b.yaml:7:36: spec.ports[0].over: found over without tunnel, expected none (over is the network that carries a tunnel)"
        ]
    );
    assert_eq!(
        port(&format!("tunnel: {{{VXLAN}}}")),
        [
            "b.yaml:7:7: spec.ports[0].over: found nothing, expected the name of the network that carries the tunnel"
        ]
    );
    // Without a tunnel, the MAC address is required.
    assert_eq!(
        port("port: p0"),
        ["b.yaml:7:7: spec.ports[0].mac: found nothing, expected a MAC address such as 02:00:00:00:01:01"]
    );
}

#[test]
fn fields_of_a_tunnel() {
    for (tunnel, expected) in [
        (
            "type: gre, local: 192.0.2.1, remote: 192.0.2.2",
            "b.yaml:7:35: spec.ports[0].tunnel.type: found \"gre\", expected ipip or vxlan",
        ),
        (
            "local: 192.0.2.1, remote: 192.0.2.2",
            "b.yaml:7:28: spec.ports[0].tunnel.type: found nothing, expected ipip or vxlan",
        ),
        (
            "type: ipip, local: 192.0.2.1",
            "b.yaml:7:28: spec.ports[0].tunnel.remote: found nothing, expected an IPv4 or IPv6 address such as 10.2.0.2 or 2001:db8:2::2",
        ),
        (
            "type: ipip, local: 192.0.2.1, remote: 224.0.0.5",
            "b.yaml:7:67: spec.ports[0].tunnel.remote: found 224.0.0.5, expected the address of a host or router (224.0.0.0/4 is reserved for multicast)",
        ),
        (
            "type: ipip, local: 192.0.2.1, remote: 0.0.0.0",
            "b.yaml:7:67: spec.ports[0].tunnel.remote: found 0.0.0.0, expected the address of a host or router (0.0.0.0/8 means \"this network\")",
        ),
        (
            "type: ipip, local: 192.0.2.1, remote: 127.0.0.1",
            "b.yaml:7:67: spec.ports[0].tunnel.remote: found 127.0.0.1, expected the address of a host or router (127.0.0.0/8 is reserved for loopback)",
        ),
        (
            "type: ipip, local: 192.0.2.1, remote: '::'",
            "b.yaml:7:67: spec.ports[0].tunnel.remote: found ::, expected the address of a host or router (:: means \"no address\")",
        ),
        (
            "type: ipip, local: 192.0.2.1, remote: 'ff02::5'",
            "b.yaml:7:67: spec.ports[0].tunnel.remote: found ff02::5, expected the address of a host or router (ff00::/8 is reserved for multicast)",
        ),
        (
            "type: vxlan, local: 192.0.2.1, remote: 192.0.2.2",
            "b.yaml:7:28: spec.ports[0].tunnel.vni: found nothing, expected a whole number from 0 to 16777215",
        ),
        (
            "type: vxlan, local: 192.0.2.1, remote: 192.0.2.2, vni: 16777216",
            "b.yaml:7:84: spec.ports[0].tunnel.vni: found 16777216, expected a whole number from 0 to 16777215",
        ),
        (
            "type: vxlan, local: 192.0.2.1, remote: 192.0.2.2, vni: 7, port: 0",
            "b.yaml:7:93: spec.ports[0].tunnel.port: found 0, expected a whole number from 1 to 65535",
        ),
        (
            "type: ipip, local: 192.0.2.1, remote: 192.0.2.2, vni: 7",
            "b.yaml:7:83: spec.ports[0].tunnel.vni: found vni with type ipip, expected none: only type vxlan has it",
        ),
        (
            "type: ipip, local: 192.0.2.1, remote: 192.0.2.2, ttl: 0",
            "b.yaml:7:83: spec.ports[0].tunnel.ttl: found 0, expected a whole number from 1 to 255",
        ),
        (
            "type: ipip, local: 192.0.2.1, remote: 192.0.2.2, ttl: 256",
            "b.yaml:7:83: spec.ports[0].tunnel.ttl: found 256, expected a whole number from 1 to 255",
        ),
        (
            "type: ipip, local: 192.0.2.1, remote: 192.0.2.2, dscp: 64",
            "b.yaml:7:84: spec.ports[0].tunnel.dscp: found 64, expected inherit, or a whole number from 0 to 63",
        ),
        (
            "type: ipip, local: 192.0.2.1, remote: 192.0.2.2, dscp: ef",
            "b.yaml:7:84: spec.ports[0].tunnel.dscp: found \"ef\", expected inherit, or a whole number from 0 to 63",
        ),
        (
            "type: ipip, local: 192.0.2.1, remote: 192.0.2.2, via: p0",
            "b.yaml:7:78: spec.ports[0].tunnel.via: found an unknown field, expected type, local, remote, vni, port, ttl or dscp",
        ),
    ] {
        assert_eq!(with(tunnel), [expected], "{tunnel}");
    }
}

#[test]
fn ends_of_a_tunnel() {
    for (tunnel, expected) in [
        (
            "type: ipip, local: 192.0.2.1, remote: 192.0.2.1",
            "b.yaml:7:67: spec.ports[0].tunnel.remote: found 192.0.2.1, which is also the local end, expected the address of another node",
        ),
        (
            "type: ipip, local: 192.0.2.1, remote: '2001:db8::2'",
            "b.yaml:7:67: spec.ports[0].tunnel.remote: found 2001:db8::2, expected an address of the family of 192.0.2.1",
        ),
        (
            "type: ipip, local: 192.0.2.9, remote: 192.0.2.2",
            "b.yaml:7:48: spec.ports[0].tunnel.local: found 192.0.2.9, expected an address of network \"wan\": 192.0.2.1 (network \"wan\" is in a.yaml:1)",
        ),
        (
            "type: ipip, local: 192.0.2.1, remote: 10.0.0.1",
            "b.yaml:7:67: spec.ports[0].tunnel.remote: found 10.0.0.1, the network's own address at \"to-b\", expected an address outside the network in the tunnel (that address is in line 7)",
        ),
    ] {
        assert_eq!(with(tunnel), [expected], "{tunnel}");
    }
    let v4 = network("wan", "ipv4", &[&WAN.replace(", '2001:db8::1/64'", ", 198.51.100.1/24")], "");
    assert_eq!(
        errors(&[&v4, &red("type: ipip, local: '2001:db8::1', remote: '2001:db8::2'")]),
        [
            "b.yaml:7:48: spec.ports[0].tunnel.local: found 2001:db8::1, expected an address of network \"wan\", but it has none of this family (network \"wan\" is in a.yaml:1)"
        ]
    );
    assert_eq!(
        errors(&[&v4, &red("type: ipip, local: 192.0.2.1, remote: 198.51.100.1")]),
        [
            "b.yaml:7:67: spec.ports[0].tunnel.remote: found 198.51.100.1, an address of network \"wan\", expected the address of another node (that address is in a.yaml:7)"
        ]
    );
}

#[test]
fn the_carrier_of_a_tunnel() {
    let over = |name: &str| red(VXLAN).replace("over: wan", &format!("over: {name}"));
    assert_eq!(
        errors(&[&wan(), &over("wann")]),
        ["b.yaml:7:94: spec.ports[0].over: found unknown network \"wann\", expected another network: wan"]
    );
    assert_eq!(
        errors(&[&wan(), &over("red")]),
        [
            "b.yaml:7:94: spec.ports[0].over: found the network itself, expected another network, which carries the tunnel"
        ]
    );
    let switch = network("wan", "l2", &["{name: up, port: p0, mac: '02:00:00:00:00:01'}"], "");
    assert_eq!(
        errors(&[&switch, &red(VXLAN)]),
        [
            "b.yaml:7:94: spec.ports[0].over: found network \"wan\" of kind l2, expected a network that routes IP packets: kind ipv4, ipv6 or dual (network \"wan\" is in a.yaml:1)"
        ]
    );
    // The name of a carrier that is wrong itself is one mistake.
    assert_eq!(errors(&[&wan().replace("{name: wan}", "{name: '-'}"), &red(VXLAN)]).len(), 1);
}

#[test]
fn a_switch_has_frames_and_no_packets() {
    let switch = |tunnel: &str| {
        network("red", "l2", &[&format!("{{name: to-b, tunnel: {{{tunnel}}}, over: wan}}")], "")
    };
    assert!(load(&[&wan(), &switch(VXLAN)]).is_ok());
    assert_eq!(
        errors(&[&wan(), &switch(IPIP)]),
        [
            "b.yaml:7:35: spec.ports[0].tunnel.type: found ipip with kind l2, expected vxlan (a switch forwards frames, and type ipip carries only IP packets)"
        ]
    );
    let both = network(
        "red",
        "l2",
        &[
            "{name: a, port: p1, mac: '02:00:00:00:00:03'}",
            &format!("{{name: to-b, tunnel: {{{VXLAN}}}, over: wan}}"),
        ],
        "",
    );
    assert_eq!(
        errors(&[&wan(), &both]),
        [
            "b.yaml:8:94: spec.ports[1].over: found an MTU of 1450, expected the same MTU at all ports of a switch (port \"a\" has 1500; set the mtu of both)"
        ]
    );
}

#[test]
fn mtu_of_a_tunnel() {
    let mtu = |kind: &str, tunnel: &str, mtu: u16| {
        let port = format!("{{name: to-b, tunnel: {{{tunnel}}}, over: wan, mtu: {mtu}}}");
        errors(&[&wan(), &network("red", kind, &[&port], "")])
    };
    assert!(mtu("ipv4", VXLAN, 1450).is_empty());
    assert_eq!(
        mtu("ipv4", VXLAN, 1451),
        [
            "b.yaml:7:104: spec.ports[0].mtu: found 1451, expected at most 1450 (the ports of network \"wan\" carry 1500, and the tunnel adds 50)"
        ]
    );
    assert_eq!(mtu("ipv6", VXLAN, 1279).len(), 1);
    // The carrier leaves less than the kind needs.
    let small =
        wan().replace("dual", "ipv4").replace(", '2001:db8::1/64'", "").replace("]}", "], mtu: 1300}");
    let six = network("red", "ipv6", &[&format!("{{name: to-b, tunnel: {{{VXLAN}}}, over: wan}}")], "");
    assert_eq!(
        errors(&[&small, &six]),
        [
            "b.yaml:7:94: spec.ports[0].over: found an MTU of 1250, expected at least 1280 (every link of a network of kind ipv6 carries packets of 1280 bytes)"
        ]
    );
}

/// A packet that arrives for a tunnel belongs to one virtual port.
#[test]
fn tunnels_that_could_be_confused() {
    let blue = |tunnel: &str, more: &str| red(tunnel).replace("{name: red}", "{name: blue}") + more;
    assert_eq!(
        errors(&[&wan(), &red(VXLAN), &blue(VXLAN, "")]),
        [
            "c.yaml:7:84: spec.ports[0].tunnel.vni: found duplicate VNI 7 from 192.0.2.1 to 192.0.2.2 over network \"wan\", expected a unique VNI (first used in b.yaml:7)"
        ]
    );
    for other in ["vni: 8", "vni: 7, port: 4790"] {
        assert!(load(&[&wan(), &red(VXLAN), &blue(&VXLAN.replace("vni: 7", other), "")]).is_ok(), "{other}");
    }
    let far = VXLAN.replace("192.0.2.2", "192.0.2.3");
    assert!(load(&[&wan(), &red(VXLAN), &blue(&far, "")]).is_ok(), "another far end");
    assert!(load(&[&wan(), &red(VXLAN), &blue(IPIP, "")]).is_ok(), "another type");

    let twice = "b.yaml:7:67: spec.ports[0].tunnel.remote: found duplicate tunnel from 192.0.2.1 to 192.0.2.2 over network \"wan\", expected a pair of addresses of its own, or two networks that select by inner prefixes";
    let twice =
        |at: &str, first: &str| format!("{} (first used in {first})", twice.replace("b.yaml:7:67", at));
    assert_eq!(errors(&[&wan(), &red(IPIP), &blue(IPIP, "")]), [twice("c.yaml:7:67", "b.yaml:7")]);
    let inner = |prefixes: &str| format!("  select: {{by: inner, prefixes: [{prefixes}]}}\n");
    let red_inner = red(IPIP) + &inner("10.1.0.0/16, 10.3.0.0/16");
    assert_eq!(errors(&[&wan(), &red_inner, &blue(IPIP, "")]), [twice("c.yaml:7:67", "b.yaml:7")]);
    assert_eq!(
        errors(&[&wan(), &red(IPIP), &blue(IPIP, &inner("10.1.0.0/16"))]),
        [twice("c.yaml:7:67", "b.yaml:7")]
    );
    assert!(load(&[&wan(), &red_inner, &blue(IPIP, &inner("10.2.0.0/16"))]).is_ok());
    for (prefix, column, other) in [
        ("10.3.0.0/16", 34, "10.3.0.0/16"),
        ("10.3.9.0/24", 34, "10.3.0.0/16"),
        ("10.0.0.0/8", 34, "10.1.0.0/16"),
    ] {
        let found = errors(&[&wan(), &red_inner, &blue(IPIP, &inner(prefix))]);
        let expected = format!(
            "c.yaml:8:{column}: spec.select.prefixes[0]: found {prefix}, which overlaps {other} of another network, expected a prefix of its own in the tunnel from 192.0.2.1 to 192.0.2.2 over network \"wan\" (first used in b.yaml:8)"
        );
        assert_eq!(found[0], expected);
    }
    // Two ports of one network on the same pair.
    let port = |name: &str, address: &str| {
        format!("{{name: {name}, tunnel: {{{IPIP}}}, over: wan, addresses: [{address}]}}")
    };
    let two =
        network("red", "ipv4", &[&port("a", "10.0.0.1/24"), &port("b", "10.0.1.1/24")], &inner("10.0.0.0/8"));
    assert_eq!(errors(&[&wan(), &two]), [twice("b.yaml:8:64", "line 7").replace("ports[0]", "ports[1]")]);
}

/// A network whose only port is a tunnel over another one.
fn over(name: &str, carrier: &str, number: u8) -> String {
    let port = format!(
        "{{name: v, tunnel: {{type: ipip, local: 10.0.{carrier}.1, remote: 10.0.{carrier}.{}}}, over: n{carrier}, addresses: [10.0.{number}.1/24]}}",
        number + 2
    );
    network(name, "ipv4", &[&port], "")
}

#[test]
fn no_network_carries_itself() {
    // n1 over n2 over n3 over n1, and n4 over n1, which is not at fault.
    let texts = [over("n1", "2", 1), over("n2", "3", 2), over("n3", "1", 3), over("n4", "1", 4)];
    let found = errors(&texts.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(
        found,
        [
            "c.yaml:7:80: spec.ports[0].over: found a circle: network \"n3\" would carry itself, expected a network that is not carried by n1, n2 or n3 (\"n1\" is over \"n2\" in a.yaml:7, \"n2\" is over \"n3\" in b.yaml:7)"
        ]
    );
    // Two circles are two errors.
    let texts = [over("n1", "2", 1), over("n2", "1", 2), over("n3", "4", 3), over("n4", "3", 4)];
    assert_eq!(errors(&texts.iter().map(String::as_str).collect::<Vec<_>>()).len(), 2);
}

#[test]
fn tunnels_in_each_other_have_a_limit() {
    let most = limits::TUNNELS_NESTED_MAX as u8;
    let first = network(
        "n0",
        "ipv4",
        &["{name: up, port: p0, mac: '02:00:00:00:00:01', addresses: [10.0.0.1/24]}"],
        "",
    );
    let texts = |last: u8| {
        let others = (1..=last).map(|number| over(&format!("n{number}"), &(number - 1).to_string(), number));
        std::iter::once(first.clone()).chain(others).collect::<Vec<_>>()
    };
    let check = |last: u8| errors(&texts(last).iter().map(String::as_str).collect::<Vec<_>>());
    assert!(check(most).is_empty());
    for last in [most + 1, most + 2] {
        let found = check(last);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(
            found[0].contains(&format!("found {} tunnels in each other, expected at most {most}", most + 1)),
            "{found:?}"
        );
    }
}

#[test]
fn a_network_has_a_limit_of_tunnels() {
    let many = |count: usize| {
        let port = |n: usize| {
            format!(
                "{{name: t{n}, tunnel: {{type: ipip, local: 192.0.2.1, remote: 192.0.2.{}}}, over: wan}}",
                n + 2
            )
        };
        let ports: Vec<String> = (0..count).map(port).collect();
        network("red", "ipv4", &ports.iter().map(String::as_str).collect::<Vec<_>>(), "")
    };
    assert!(load(&[&wan(), &many(limits::TUNNELS_MAX)]).is_ok());
    assert_eq!(
        errors(&[&wan(), &many(limits::TUNNELS_MAX + 1)]),
        ["b.yaml:71:27: spec.ports[64].tunnel: found tunnel 65 of the network, expected at most 64"]
    );
}

#[test]
fn a_limited_network_with_tunnels_cannot_be_on_the_card() {
    let limited = |text: String, placement: &str| {
        format!(
            "{text}  rate_limit: {{packets_per_second: 1000, burst_packets: 10}}\n  placement: {placement}\n"
        )
    };
    assert!(load(&[&limited(wan(), "auto"), &limited(red(VXLAN), "soft")]).is_ok());
    let found = errors(&[&limited(wan(), "card"), &limited(red(VXLAN), "card")]);
    assert_eq!(found.len(), 2, "{found:?}");
    for (error, file) in found.iter().zip(["a.yaml", "b.yaml"]) {
        let why = "spec.placement: found card for a network with a rate limit and tunnels, expected soft or auto (the limit also counts what \
                   comes by tunnels, which the card does not see: see the one in ";
        assert!(error.starts_with(file) && error.contains(why), "{error}");
    }
}

#[test]
fn a_switch_with_tunnels_cannot_be_on_the_card() {
    let card = |text: String| text + "  placement: card\n";
    assert!(load(&[&card(wan()), &card(red(VXLAN))]).is_ok());
    let switch = format!("{{name: to-b, tunnel: {{{VXLAN}}}, over: wan}}");
    let switch = card(network("red", "l2", &[&switch], ""));
    assert_eq!(
        errors(&[&card(wan()), &switch]),
        [
            "b.yaml:8:14: spec.placement: found card for a switch with tunnels, expected soft or auto (the card cannot flood into tunnels: see the one in line 7)"
        ]
    );
}

#[test]
fn an_ip_tunnel_has_no_neighbours() {
    let more = "  neighbours: [{port: to-b, address: 10.0.0.2, mac: '02:00:00:00:0a:02'}]\n";
    assert!(load(&[&wan(), &(red(VXLAN) + more)]).is_ok());
    assert_eq!(
        errors(&[&wan(), &(red(IPIP) + more)]),
        [
            "b.yaml:8:23: spec.neighbours[0].port: found a neighbour at \"to-b\", a tunnel of type ipip, expected a port with MAC addresses (an IP tunnel leads to one router only, and has no MAC addresses)"
        ]
    );
}

/// Schema and reader agree on the shape of a virtual port with a tunnel.
#[test]
fn schema_and_reader_agree_on_tunnels() {
    let schema = hue_intent::schema();
    let wan = wan();
    let document = |port: Value| {
        json!({
            "apiVersion": "hueplane/v1", "kind": "Network", "metadata": {"name": "red"},
            "spec": {"plane": {"kind": "ipv4"}, "ports": [port]},
        })
    };
    let port = || {
        json!({
            "name": "to-b", "over": "wan",
            "tunnel": {"type": "vxlan", "local": "192.0.2.1", "remote": "192.0.2.2", "vni": 7},
        })
    };
    let check = |port: &Value, good: bool| {
        let document = document(port.clone());
        assert_eq!(valid(&schema, &schema, &document), good, "schema: {port}");
        assert_eq!(load(&[&wan, &document.to_string()]).is_ok(), good, "reader: {port}");
    };
    check(&port(), true);
    let changed = |pointer: &str, value: Option<Value>| {
        let mut port = port();
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        let fields = port.pointer_mut(parent).unwrap().as_object_mut().unwrap();
        match value {
            Some(value) => drop(fields.insert(key.to_owned(), value)),
            None => drop(fields.remove(key).unwrap()),
        }
        port
    };
    for (pointer, value) in [
        ("/mac", json!("02:00:00:00:00:09")),
        ("/mtu", json!(1400)),
        ("/tunnel/vni", json!(0)),
        ("/tunnel/vni", json!(16_777_215)),
        ("/tunnel/port", json!(1)),
        ("/tunnel/port", json!(65_535)),
        ("/tunnel/ttl", json!(1)),
        ("/tunnel/ttl", json!(255)),
        ("/tunnel/dscp", json!(0)),
        ("/tunnel/dscp", json!(63)),
        ("/tunnel/dscp", json!("inherit")),
        ("/tunnel", json!({"type": "ipip", "local": "192.0.2.1", "remote": "192.0.2.2"})),
    ] {
        check(&changed(pointer, Some(value)), true);
    }
    for (pointer, value) in [
        ("/over", None),
        ("/tunnel", None),
        ("/port", Some(json!("p0"))),
        ("/tunnel", Some(json!("vxlan"))),
        ("/tunnel/type", None),
        ("/tunnel/type", Some(json!("gre"))),
        ("/tunnel/type", Some(json!("ipip"))),
        ("/tunnel/local", None),
        ("/tunnel/remote", Some(json!("b.example"))),
        ("/tunnel/vni", None),
        ("/tunnel/vni", Some(json!(16_777_216))),
        ("/tunnel/port", Some(json!(0))),
        ("/tunnel/ttl", Some(json!(0))),
        ("/tunnel/ttl", Some(json!("inherit"))),
        ("/tunnel/dscp", Some(json!(64))),
        ("/tunnel/dscp", Some(json!("ef"))),
        ("/tunnel/key", Some(json!(1))),
    ] {
        check(&changed(pointer, value), false);
    }
    check(&json!({"name": "a", "port": "p1"}), false);
    check(&json!({"name": "a", "port": "p1", "mac": "02:00:00:00:00:09", "over": "wan"}), false);
}
