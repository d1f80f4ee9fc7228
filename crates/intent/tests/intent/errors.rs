//! Every mistake gets a message with file, line, column, field, the value found and the value expected.

use crate::common::{NODE, RED, errors, load, network, red_with};
use hue_intent::Error;
use hue_planes::Kind;

/// The only error of [`RED`] with a part replaced.
fn one(part: &str, other: &str) -> String {
    let errors = errors(&[&red_with(part, other)]);
    assert_eq!(errors.len(), 1, "{errors:#?}");
    errors.into_iter().next().unwrap()
}

/// All kinds that documents can name, as messages list them.
fn kinds() -> String {
    let names = Kind::OFFERED.map(Kind::name);
    let (last, others) = names.split_last().unwrap();
    format!("{} or {last}", others.join(", "))
}

/// An unknown setting is answered with those of the network's kind, and every wrong one is reported.
#[test]
fn settings_are_those_of_the_kind() {
    let of = |plane: &str| errors(&[&red_with("{kind: ipv4}", plane)]);
    assert_eq!(
        of("{kind: ipv4, martian: drop, slices: 4, ttl: pipe, route_by: colour}"),
        [
            "a.yaml:6:23: spec.plane.martian: found an unknown field, expected kind, martians or route_by (did you mean \"martians\"?)",
            "a.yaml:6:46: spec.plane.slices: found slices with kind ipv4, expected none: only kind splice has this setting",
            "a.yaml:6:54: spec.plane.ttl: found ttl with kind ipv4, expected none: only kind mpls has this setting",
            "a.yaml:6:70: spec.plane.route_by: found \"colour\", expected destination, source or source_destination",
        ]
    );
    assert_eq!(
        of("{knd: ipv4}")[1],
        "a.yaml:6:11: spec.plane.knd: found an unknown field, expected kind (did you mean \"kind\"?)"
    );
}

#[test]
fn malformed_yaml() {
    for (text, expected) in [
        (
            "a: [1, 2",
            "a.yaml:2:1: a[2]: found the end of the file, expected ',' or ']' to continue the list of line 1, column 4",
        ),
        (
            "a: {x: 1\nb: 2}",
            "a.yaml:2:2: a: found other text, expected ',' or '}' to continue the mapping of line 1, column 4",
        ),
        (
            "a: b: c",
            "a.yaml:1:5: document: found a second ':', expected quotes around text that contains ': ', or the key on its own line",
        ),
        ("a:\n\tb: 1", "a.yaml:2:2: a: found a tab, expected spaces for indentation"),
        (
            "a:\n  - b: 1\n - c: 2",
            "a.yaml:3:2: document: found other text, expected another key of the mapping of line 1, column 1",
        ),
        ("a: \"x", "a.yaml:1:4: a: found text without an end, expected a closing quote"),
        (
            "a: *x",
            "a.yaml:1:4: a: found an alias of an unknown anchor, expected an anchor (&name) earlier in the document",
        ),
        ("a: 1\nb", "a.yaml:3:1: document: found the end of the file, expected ':' and a value"),
        (
            "a: @b",
            "a.yaml:1:4: a: found malformed YAML: unexpected character: `@', expected a mapping, list or value",
        ),
        ("a: }", "a.yaml:1:4: a: found a closing bracket, expected an opening bracket before it"),
        (
            "a: &x [*x]",
            "a.yaml:1:8: a[0]: found an alias of a key, or of a value that contains it, expected an alias of a complete value",
        ),
        ("a\0b", "a.yaml:1:2: document: found an unprintable character, expected text"),
    ] {
        assert_eq!(errors(&[text]), [expected], "{text:?}");
    }
}

#[test]
fn no_text_and_no_document() {
    let source = |bytes: &[u8]| hue_intent::Source { name: "a.yaml".to_owned(), bytes: bytes.to_vec() };
    let error = hue_intent::parse(vec![source(b"a: 1\nb: \xc3\xa4\xff")]).unwrap_err().to_string();
    assert_eq!(error, "a.yaml:2:5: document: found the byte 0xff, expected UTF-8 text");
    for text in ["", "# only a comment\n", "---\n---\n...\n", "null"] {
        assert_eq!(
            errors(&[text]),
            ["a.yaml:1:1: document: found no document, expected a Node or a Network"]
        );
    }
    assert_eq!(errors(&[]), ["<none>:1:1: document: found no document, expected a Node or a Network"]);
}

#[test]
fn shape_of_a_document() {
    assert_eq!(
        errors(&["- 1"]),
        ["a.yaml:1:1: document: found a list, expected a mapping with apiVersion, kind, metadata, spec"]
    );
    assert_eq!(
        errors(&["spec: {}"]),
        [
            "a.yaml:1:1: apiVersion: found nothing, expected hueplane/v1",
            "a.yaml:1:1: kind: found nothing, expected Node or Network",
        ]
    );
    assert_eq!(
        errors(&["apiVersion: hueplane/v1\nkind: Network"]),
        [
            "a.yaml:1:1: metadata: found nothing, expected a mapping with name",
            "a.yaml:1:1: spec: found nothing, expected a mapping with plane and ports",
        ]
    );
    assert_eq!(
        one("hueplane/v1", "hueplane/v2"),
        "a.yaml:1:13: apiVersion: found \"hueplane/v2\", expected hueplane/v1"
    );
    assert_eq!(
        one("kind: Network", "kind: Netwrok"),
        "a.yaml:2:7: kind: found \"Netwrok\", expected Node or Network (did you mean \"Network\"?)"
    );
    assert_eq!(
        one("kind: Network", "kind: Pod"),
        "a.yaml:2:7: kind: found \"Pod\", expected Node or Network"
    );
}

#[test]
fn unknown_fields_with_a_suggestion() {
    assert_eq!(
        one("  colour:", "  color:"),
        "a.yaml:5:3: spec.color: found an unknown field, expected one of colour, vid, plane, placement, needs, select, ports, routes, neighbours, static_macs, entries, flat_labels, labels, weight, gated, rate_limit, … (19 in all) (did you mean \"colour\"?)"
    );
    assert_eq!(
        one("{name: left,  port:", "{nmae: x, name: left,  port:"),
        "a.yaml:8:8: spec.ports[0].nmae: found an unknown field, expected name, port, tunnel, over, mac, addresses or mtu (did you mean \"name\"?)"
    );
    assert_eq!(
        one("metadata: {", "metadata: {\"a b\": 1, "),
        "a.yaml:3:12: metadata.\"a b\": found an unknown field, expected name"
    );
    assert_eq!(
        one("metadata: {", "metadata: {<<: {}, "),
        "a.yaml:3:12: metadata.\"<<\": found an unknown field, expected name (YAML 1.2 has no merge keys)"
    );
}

#[test]
fn keys() {
    assert_eq!(
        one("  weight: 1", "  weight: 1\n  weight: 2"),
        "a.yaml:15:3: spec.weight: found a duplicate field, expected it only once (first in line 14)"
    );
    assert_eq!(
        one("metadata: {", "metadata: {[a, b]: c, "),
        "a.yaml:3:12: metadata: found a list or mapping as a key, expected the name of a field"
    );
    assert_eq!(
        one("weight: 1", "weight: !x 1"),
        "a.yaml:14:11: spec.weight: found the tag \"!x\", expected a value without a tag"
    );
}

#[test]
fn wrong_types() {
    assert_eq!(
        one("name: red", "name: 5"),
        "a.yaml:3:18: metadata.name: found 5, expected a name of 1 to 63 letters, digits, '-', '_' or '.', beginning with a letter or digit (write \"5\" to use it as text)"
    );
    assert_eq!(
        one("name: red", "name: ../red"),
        "a.yaml:3:18: metadata.name: found \"../red\", expected a name of 1 to 63 letters, digits, '-', '_' or '.', beginning with a letter or digit"
    );
    assert_eq!(
        one("weight: 1", "weight: \"1\""),
        "a.yaml:14:11: spec.weight: found \"1\", expected a whole number from 1 to 1000 (write it without quotes)"
    );
    assert_eq!(
        one("weight: 1", "weight: 0"),
        "a.yaml:14:11: spec.weight: found 0, expected a whole number from 1 to 1000"
    );
    assert_eq!(
        one("weight: 1", "weight: [1]"),
        "a.yaml:14:11: spec.weight: found a list, expected a whole number from 1 to 1000"
    );
    assert_eq!(
        one("[10.1.0.1/24]", "10.1.0.1/24"),
        "a.yaml:8:68: spec.ports[0].addresses: found \"10.1.0.1/24\", expected a list of addresses"
    );
    assert_eq!(
        one("{kind: ipv4}", "ipv4"),
        "a.yaml:6:10: spec.plane: found \"ipv4\", expected a mapping with kind"
    );
    assert_eq!(
        one("\"#d62728\"", "#d62728"),
        "a.yaml:5:9: spec.colour: found nothing, expected a colour such as \"#d62728\" (without quotes, '#' begins a comment)"
    );
    assert_eq!(
        one("\"#d62728\"", "red"),
        "a.yaml:5:11: spec.colour: found \"red\", expected a colour such as \"#d62728\""
    );
    let long = one("name: red", &format!("name: \"\\e[31m{}\"", "x".repeat(100)));
    assert!(long.contains(&format!("found \"\\u{{1b}}[31m{}\"…, expected", "x".repeat(59))), "{long}");
}

/// A network of kind `ipv6`.
const SIX: &str = r#"apiVersion: hueplane/v1
kind: Network
metadata: {name: six}
spec:
  plane: {kind: ipv6}
  ports:
    - {name: left,  port: p0, mac: "02:00:00:00:01:01", addresses: ["2001:db8:1::1/64"]}
    - {name: right, port: p1, mac: "02:00:00:00:01:02", addresses: ["2001:db8:2::1/64"]}
  routes:
    - {to: "2001:db8:9::/48", via: "2001:db8:2::2"}
  neighbours:
    - {port: right, address: "2001:db8:2::2", mac: "02:00:00:00:0a:02"}
"#;

#[test]
fn networks_of_kind_ipv6() {
    assert_eq!(load(&[SIX]).unwrap().networks[0].spec.routes.len(), 1);
    let bad = |part: &str, other: &str| {
        assert!(SIX.contains(part));
        let errors = errors(&[&SIX.replacen(part, other, 1)]);
        assert_eq!(errors.len(), 1, "{errors:#?}");
        errors.into_iter().next().unwrap()
    };
    let at = "a.yaml:7:69: spec.ports[0].addresses[0]: found";
    let host = "expected the address of a host or router";
    let own = |address: &str| bad("2001:db8:1::1/64", address);
    assert_eq!(
        own("10.1.0.1/24"),
        format!(
            "{at} \"10.1.0.1/24\", expected an IPv6 address with prefix length, such as 2001:db8:1::1/64 (this kind of plane has no IPv4)"
        )
    );
    assert!(own("2001:db8:1::1").contains("(the prefix length is missing)"));
    assert!(own("2001:db8:1::1/129").contains("(a prefix length is a number from 1 to 128, not \"129\")"));
    assert_eq!(
        own("2001:db8:1::/64"),
        format!(
            "{at} 2001:db8:1::/64, the address of all routers of the link (subnet-router anycast), expected the address of a router in 2001:db8:1::/64 (such as 2001:db8:1::1/64)"
        )
    );
    for (address, why) in [
        ("::/64", ":: means \"no address\""),
        ("::1/64", "::1 is the loopback address"),
        ("ff02::1/64", "ff00::/8 is reserved for multicast"),
        (
            "fe80::1/64",
            "fe80::/10 is link-local: each port gets such an address from its MAC address by itself",
        ),
        ("::ffff:10.0.0.1/64", "::ffff:0:0/96 is reserved for IPv4 addresses in programs"),
    ] {
        assert_eq!(own(address), format!("{at} {address}, {host} ({why})"));
    }
    assert_eq!(
        bad("2001:db8:9::/48", "2001:db8:9::1/48"),
        "a.yaml:10:12: spec.routes[0].to: found \"2001:db8:9::1/48\", expected 2001:db8:9::/48 (bits beyond the length must be zero)"
    );
    assert_eq!(
        bad("2001:db8:9::/48", "10.0.0.0/8"),
        "a.yaml:10:12: spec.routes[0].to: found \"10.0.0.0/8\", expected an IPv6 prefix such as 2001:db8:9::/48 (this kind of plane has no IPv4)"
    );
    assert_eq!(
        bad("2001:db8:9::/48", "fe80::/64"),
        "a.yaml:10:12: spec.routes[0].to: found fe80::/64, expected a unicast prefix (ff00::/8 and fe80::/10 are reserved for the router itself)"
    );
    assert!(
        bad("2001:db8:9::/48", "2001:db8:1::/128").contains("the subnet-router anycast address of \"left\"")
    );
    assert!(bad("via: \"2001:db8:2::2\"", "via: \"2001:db8:3::2\"").contains("not on any link"));
    assert_eq!(
        bad("{kind: ipv6}", "{kind: ipv6, martians: forward}"),
        "a.yaml:5:33: spec.plane.martians: found martians with kind ipv6, expected none: only kinds ipv4, dual and splice have this setting"
    );
    assert_eq!(
        bad("01:02\", add", "01:02\", mtu: 1279, add"),
        "a.yaml:8:62: spec.ports[1].mtu: found an MTU of 1279, expected at least 1280 (every link of a network of kind ipv6 carries packets of 1280 bytes)"
    );
    assert_eq!(
        bad("  routes", "  select: {by: inner, prefixes: [10.0.0.0/8]}\n  routes"),
        "a.yaml:9:16: spec.select.by: found inner with kind ipv6, expected mac or port (inner is the IPv4 destination of a packet)"
    );
    // With an unknown kind, addresses of neither family are reported.
    assert_eq!(
        bad("{kind: ipv6}", "{kind: openflow}"),
        format!("a.yaml:5:17: spec.plane.kind: found \"openflow\", expected {}", kinds())
    );
}

/// A network of kind `dual`.
const DUAL: &str = r#"apiVersion: hueplane/v1
kind: Network
metadata: {name: both}
spec:
  plane: {kind: dual}
  ports:
    - {name: left,  port: p0, mac: "02:00:00:00:01:01", addresses: [10.0.1.1/24, "2001:db8:1::1/64"]}
    - {name: right, port: p1, mac: "02:00:00:00:01:02", addresses: [10.0.2.1/24, "2001:db8:2::1/64"]}
  routes:
    - {to: 10.0.9.0/24, via: 10.0.2.2}
    - {to: "2001:db8:9::/48", via: "2001:db8:2::2"}
  neighbours:
    - {port: right, address: 10.0.2.2, mac: "02:00:00:00:0a:02"}
    - {port: right, address: "2001:db8:2::2", mac: "02:00:00:00:0a:02"}
"#;

#[test]
fn networks_of_kind_dual() {
    let martians = DUAL.replacen("{kind: dual}", "{kind: dual, martians: forward}", 1);
    for text in [DUAL, &martians] {
        let spec = &load(&[text]).unwrap().networks[0].spec;
        assert_eq!((spec.routes.len(), spec.neighbours.len(), spec.ports[0].addresses.len()), (2, 2, 2));
    }
    let bad = |part: &str, other: &str| {
        assert!(DUAL.contains(part));
        let errors = errors(&[&DUAL.replacen(part, other, 1)]);
        assert_eq!(errors.len(), 1, "{errors:#?}");
        errors.into_iter().next().unwrap()
    };
    let either = "an IPv4 or IPv6 address with prefix length, such as 10.1.0.1/24 or 2001:db8:1::1/64";
    let own = |address: &str| bad("10.0.1.1/24", address);
    let at = "a.yaml:7:69: spec.ports[0].addresses[0]: found";
    assert_eq!(own("here"), format!("{at} \"here\", expected {either}"));
    assert_eq!(
        own("10.0.1.1"),
        format!("{at} \"10.0.1.1\", expected {either} (the prefix length is missing)")
    );
    assert!(own("10.0.1.1/33").ends_with("(a prefix length is a number from 1 to 32, not \"33\")"));
    assert!(own("\"2001:db8::1/129\"").ends_with("(a prefix length is a number from 1 to 128, not \"129\")"));
    assert!(own("10.0.1/24").ends_with("(an IPv4 address has 4 numbers, this one has 3)"));
    assert!(own("fe80::1/64").contains("fe80::/10 is link-local"));
    assert_eq!(
        bad("to: 10.0.9.0/24", "to: 10.0.9.1/24"),
        "a.yaml:10:12: spec.routes[0].to: found \"10.0.9.1/24\", expected 10.0.9.0/24 (bits beyond the length must be zero)"
    );
    assert_eq!(
        bad("to: 10.0.9.0/24", "to: any"),
        "a.yaml:10:12: spec.routes[0].to: found \"any\", expected an IPv4 or IPv6 prefix such as 10.9.0.0/16 or 2001:db8:9::/48"
    );
    // The gateway of a route is of the route's family.
    assert_eq!(
        bad("via: 10.0.2.2", "via: \"2001:db8:2::2\""),
        "a.yaml:10:30: spec.routes[0].via: found 2001:db8:2::2, expected an IPv4 address such as 10.2.0.2 (a route to 10.0.9.0/24 leads through a gateway of its own family)"
    );
    assert_eq!(
        bad("via: \"2001:db8:2::2\"", "via: 10.0.2.2"),
        "a.yaml:11:36: spec.routes[1].via: found 10.0.2.2, expected an IPv6 address such as 2001:db8:2::2 (a route to 2001:db8:9::/48 leads through a gateway of its own family)"
    );
    assert!(bad("via: 10.0.2.2", "via: 10.0.3.2").contains("not on any link"));
    assert_eq!(
        bad("01:02\", add", "01:02\", mtu: 1279, add"),
        "a.yaml:8:62: spec.ports[1].mtu: found an MTU of 1279, expected at least 1280 (every link of a network of kind dual carries packets of 1280 bytes)"
    );
    assert!(
        bad("  routes", "  select: {by: inner, prefixes: [10.0.0.0/8]}\n  routes")
            .contains("inner with kind dual")
    );
    assert!(bad("{kind: dual}", "{kind: dual, sticky: true}").contains("only kind l2 has this setting"));
}

#[test]
fn unknown_kind_of_plane() {
    assert_eq!(
        one("{kind: ipv4}", "{kind: ipv5}"),
        format!(
            "a.yaml:6:17: spec.plane.kind: found \"ipv5\", expected {} (did you mean \"ipv6\"?)",
            kinds()
        )
    );
    assert_eq!(
        one("{kind: ipv4}", "{kind: openflow}"),
        format!("a.yaml:6:17: spec.plane.kind: found \"openflow\", expected {}", kinds())
    );
    assert_eq!(
        one("{kind: ipv4}", "{kind: echo}"),
        format!("a.yaml:6:17: spec.plane.kind: found \"echo\", expected {}", kinds()),
        "a kind that exists only in tests is compiled in here, and refused"
    );
    assert_eq!(
        one("{kind: ipv4}", "{}"),
        format!("a.yaml:6:10: spec.plane.kind: found nothing, expected {}", kinds())
    );
}

#[test]
fn macs() {
    assert_eq!(
        one("02:00:00:00:01:01", "02:00:00:00:01"),
        "a.yaml:8:36: spec.ports[0].mac: found \"02:00:00:00:01\", expected a MAC address such as 02:00:00:00:01:01"
    );
    assert_eq!(
        one("02:00:00:00:01:01", "03:00:00:00:01:01"),
        "a.yaml:8:36: spec.ports[0].mac: found the multicast address 03:00:00:00:01:01, expected the MAC address of one station: an even first byte"
    );
    assert_eq!(
        one("02:00:00:00:0a:02", "ff:ff:ff:ff:ff:ff"),
        "a.yaml:13:45: spec.neighbours[0].mac: found the broadcast address ff:ff:ff:ff:ff:ff, expected the MAC address of one station: an even first byte"
    );
    assert_eq!(
        one("02:00:00:00:01:01", "00:00:00:00:00:00"),
        "a.yaml:8:36: spec.ports[0].mac: found \"00:00:00:00:00:00\", expected a MAC address that is not all zeros"
    );
}

#[test]
fn interface_addresses() {
    let expected = "expected an IPv4 address with prefix length, such as 10.1.0.1/24";
    let at = "a.yaml:8:69: spec.ports[0].addresses[0]:";
    let bad = |address: &str| one("10.1.0.1/24", address);
    assert_eq!(
        bad("10.1.0.1"),
        format!("{at} found \"10.1.0.1\", {expected} (the prefix length is missing)")
    );
    assert_eq!(
        bad("10.1.0.1/33"),
        format!(
            "{at} found \"10.1.0.1/33\", {expected} (a prefix length is a number from 1 to 32, not \"33\")"
        )
    );
    assert_eq!(
        bad("10.1.0.256/24"),
        format!("{at} found \"10.1.0.256/24\", {expected} (256 is not from 0 to 255)")
    );
    assert_eq!(
        bad("fe80::1/64"),
        format!("{at} found \"fe80::1/64\", {expected} (this kind of plane has no IPv6)")
    );
    assert_eq!(
        bad("10.1.0.0/24"),
        format!(
            "{at} found 10.1.0.0/24, the network address of the link, expected the address of a router in 10.1.0.0/24 (such as 10.1.0.1/24)"
        )
    );
    assert_eq!(
        bad("10.1.0.255/24"),
        format!(
            "{at} found 10.1.0.255/24, the broadcast address of the link, expected the address of a router in 10.1.0.0/24 (such as 10.1.0.1/24)"
        )
    );
    for (address, why) in [
        ("0.0.0.1/8", "0.0.0.0/8 means \"this network\""),
        ("127.0.0.1/8", "127.0.0.0/8 is reserved for loopback"),
        ("224.0.0.1/24", "224.0.0.0/4 is reserved for multicast"),
        ("255.255.255.255/32", "240.0.0.0/4 is reserved"),
    ] {
        assert_eq!(
            bad(address),
            format!("{at} found {address}, expected the address of a host or router ({why})")
        );
    }
}

#[test]
fn duplicates() {
    assert_eq!(
        errors(&[RED, RED]),
        [
            "b.yaml:3:18: metadata.name: found duplicate network \"red\", expected a unique name (first used in a.yaml:3)",
            "b.yaml:8:36: spec.ports[0].mac: found duplicate MAC 02:00:00:00:01:01 on port \"p0\", expected a unique MAC (first used in a.yaml:8)",
            "b.yaml:8:69: spec.ports[0].addresses[0]: found duplicate address 10.1.0.1 on port \"p0\", expected a unique address (first used in a.yaml:8)",
            "b.yaml:9:36: spec.ports[1].mac: found duplicate MAC 02:00:00:00:01:02 on port \"p1\", expected a unique MAC (first used in a.yaml:9)",
            "b.yaml:9:69: spec.ports[1].addresses[0]: found duplicate address 10.2.0.1 on port \"p1\", expected a unique address (first used in a.yaml:9)",
        ]
    );
}

#[test]
fn duplicates_in_one_network() {
    let port = |name: &str, port: &str, mac: u8, address: &str| {
        format!("{{name: {name}, port: {port}, mac: '02:00:00:00:00:{mac:02x}', addresses: [{address}]}}")
    };
    let ports = |one: String, two: String| errors(&[&network("a", &[&one, &two], "")]);
    let first = || port("x", "p0", 1, "10.0.0.1/24");
    assert_eq!(ports(first(), port("y", "p1", 1, "10.0.1.1/24")), [""; 0], "equal MACs on two ports");
    assert_eq!(
        ports(first(), port("x", "p1", 2, "10.0.1.1/24")),
        [
            "a.yaml:8:14: spec.ports[1].name: found duplicate virtual port \"x\", expected a unique name (first used in line 7)"
        ]
    );
    assert_eq!(
        ports(first(), port("y", "p0", 1, "10.0.1.1/24")),
        [
            "a.yaml:8:32: spec.ports[1].mac: found duplicate MAC 02:00:00:00:00:01 on port \"p0\", expected a unique MAC (first used in line 7)"
        ]
    );
    assert_eq!(
        ports(first(), port("y", "p0", 2, "10.0.0.1/25")),
        [
            "a.yaml:8:65: spec.ports[1].addresses[0]: found duplicate address 10.0.0.1 on port \"p0\", expected a unique address (first used in line 7)"
        ]
    );
    assert_eq!(
        ports(first(), port("y", "p1", 2, "10.0.0.2/24")),
        [
            "a.yaml:8:65: spec.ports[1].addresses[0]: found 10.0.0.2/24, whose link 10.0.0.0/24 is already the link of \"x\", expected a unique prefix (first in line 7)"
        ]
    );
}

#[test]
fn routes_through_several_routers() {
    let links = "expected an address on a link of the network: 10.1.0.0/24 (left) or 10.2.0.0/24 (right)";
    let via =
        |text: &str| one("{to: 10.9.0.0/16, via: 10.2.0.2}", &format!("{{to: 10.9.0.0/16, via: {text}}}"));
    assert_eq!(
        via("[]"),
        "a.yaml:11:30: spec.routes[0].via: found no gateway, expected the address of a gateway, or a list with at least one"
    );
    assert_eq!(
        via("[{via: 10.2.0.2, weight: 0}, {via: 10.1.0.2}]"),
        "a.yaml:11:55: spec.routes[0].via[0].weight: found 0, expected a whole number from 1 to 256"
    );
    assert_eq!(
        via("[{via: 10.2.0.2}, {via: 10.1.0.2, weight: 257}]"),
        "a.yaml:11:72: spec.routes[0].via[1].weight: found 257, expected a whole number from 1 to 256"
    );
    assert_eq!(
        via("[{via: 10.2.0.2}, {via: 10.1.0.2}, {via: 10.2.0.2, weight: 3}]"),
        "a.yaml:11:71: spec.routes[0].via[2].via: found duplicate gateway 10.2.0.2, expected each gateway once; weights say how much it takes (first used in line 11)"
    );
    assert_eq!(
        via("[{via: 10.2.0.2}, {via: 10.3.0.2}]"),
        format!("a.yaml:11:54: spec.routes[0].via[1].via: found 10.3.0.2, which is not on any link, {links}")
    );
    assert_eq!(
        via("[{via: 10.2.0.1}, {via: 10.1.0.2}]"),
        "a.yaml:11:37: spec.routes[0].via[0].via: found 10.2.0.1, the address of \"right\", expected the address of another router"
    );
    assert!(via("[10.2.0.2, {via: 10.1.0.2}]").starts_with("a.yaml:11:31: spec.routes[0].via[0]: found "));
    // Whether the card has room for groups depends on its image.
    let on_card = red_with(
        "{to: 10.9.0.0/16, via: 10.2.0.2}",
        "{to: 10.9.0.0/16, via: [{via: 10.2.0.2}, {via: 10.1.0.2}]}",
    );
    assert_eq!(errors(&[&(on_card + "  placement: card\n")]), [""; 0]);
    assert!(via("[{weight: 2}, {via: 10.1.0.2}]").contains("spec.routes[0].via[0]"));
    let many: Vec<String> = (0..257).map(|number| format!("{{via: 10.2.0.{}}}", 2 + number % 200)).collect();
    assert_eq!(
        via(&format!("[{}]", many.join(", "))),
        "a.yaml:11:30: spec.routes[0].via: found 257 entries, expected at most 256"
    );
}

/// Two networks on one physical port share a broadcast domain: both would answer ARP requests for the address.
#[test]
fn duplicate_addresses_on_one_port() {
    let one =
        network("one", &["{name: x, port: p0, mac: '02:00:00:00:00:01', addresses: [10.0.0.1/24]}"], "");
    let two = network("two", &["{name: y, port: p0, mac: '02:00:00:00:00:02', addresses: [10.0.0.1/8]}"], "");
    assert_eq!(
        errors(&[&one, &two]),
        [
            "b.yaml:7:65: spec.ports[0].addresses[0]: found duplicate address 10.0.0.1 on port \"p0\", expected a unique address (first used in a.yaml:7)"
        ]
    );
}

#[test]
fn duplicate_ids() {
    let text = |name| network(name, &[], "  vid: 7\n");
    assert_eq!(
        errors(&[&text("a"), &text("b")]),
        ["b.yaml:7:8: spec.vid: found duplicate vid 7, expected a unique id (first used in a.yaml:7)"]
    );
}

#[test]
fn routes_by_source() {
    /// The errors of [`RED`] with this `route_by` and these routes.
    fn by(route_by: &str, routes: &str) -> Vec<String> {
        let text = RED.replacen("{kind: ipv4}", &format!("{{kind: ipv4, route_by: {route_by}}}"), 1);
        errors(&[&text.replacen("{to: 10.9.0.0/16, via: 10.2.0.2}", routes, 1)])
    }
    fn fine(route_by: &str, routes: &str) {
        let text = RED.replacen("{kind: ipv4}", &format!("{{kind: ipv4, route_by: {route_by}}}"), 1);
        load(&[&text.replacen("{to: 10.9.0.0/16, via: 10.2.0.2}", routes, 1)]).unwrap();
    }
    let (from, both) =
        ("{from: 10.7.0.0/16, via: 10.2.0.2}", "{from: 10.7.0.0/16, to: 10.9.0.0/16, via: 10.2.0.2}");
    let all = "{from: 0.0.0.0/0, via: 10.2.0.2}";
    fine("source", &format!("{from}\n    - {{to: 10.9.0.0/16, via: 10.2.0.2}}"));
    fine("source_destination", &format!("{from}\n    - {both}\n    - {{to: 0.0.0.0/0, via: 10.2.0.2}}"));
    for (route_by, routes, expected) in [
        (
            "both",
            from,
            "a.yaml:6:33: spec.plane.route_by: found \"both\", expected destination, source or source_destination",
        ),
        (
            "destination",
            from,
            "a.yaml:11:14: spec.routes[0].from: found \"from\" with route_by destination, expected none: routes are chosen by destination (set route_by of the plane to source or source_destination)",
        ),
        (
            "source",
            both,
            "a.yaml:11:31: spec.routes[0].to: found both \"from\" and \"to\" with route_by source, expected one of them (route_by source_destination uses both)",
        ),
        (
            "source",
            all,
            "a.yaml:11:14: spec.routes[0].from: found 0.0.0.0/0, all sources, expected a longer prefix (a route for all sources has \"to\" only)",
        ),
        (
            "source_destination",
            "{from: 10.7.0.1/16, via: 10.2.0.2}",
            "a.yaml:11:14: spec.routes[0].from: found \"10.7.0.1/16\", expected 10.7.0.0/16 (bits beyond the length must be zero)",
        ),
        (
            "source",
            "{from: 10.7.0.0/16, port: left}",
            "a.yaml:11:33: spec.routes[0].port: found \"port\" in a route by source, expected \"via\", the address of a router (what is on a link is found by its address, whatever the source)",
        ),
        (
            "source",
            "{from: 10.7.0.0/16, via: 10.3.0.2}",
            "a.yaml:11:32: spec.routes[0].via: found 10.3.0.2, which is not on any link, expected an address on a link of the network: 10.1.0.0/24 (left) or 10.2.0.0/24 (right)",
        ),
    ] {
        assert_eq!(by(route_by, routes), [expected], "{route_by} {routes}");
    }
    let twice = by("source_destination", &format!("{both}\n    - {both}"));
    assert!(
        twice[0].contains("found duplicate route from 10.7.0.0/16 to 10.9.0.0/16, expected a unique pair"),
        "{twice:?}"
    );
    let many: Vec<String> = (0..1025)
        .map(|at| format!("{{from: 10.{}.{}.0/24, via: 10.2.0.2}}", 16 + at / 256, at % 256))
        .collect();
    assert_eq!(
        by("source", &many.join("\n    - ")),
        [
            "a.yaml:11:5: spec.routes: found 1025 routes by source: at most 1024, expected fewer routes by source"
        ]
    );
    // Whether the card has such routes depends on its image.
    let card = RED.replacen("{kind: ipv4}", "{kind: ipv4, route_by: source}\n  placement: card", 1);
    load(&[card.as_str()]).unwrap();
    let list = by("source", "{from: 10.7.0.0/16, via: [{via: 10.2.0.2}, {via: 10.2.0.3}]}");
    assert!(
        list[0].contains("found a list of routers in a route by source, expected the address of one router"),
        "{list:?}"
    );
    let dual = RED.replacen("{kind: ipv4}", "{kind: dual, route_by: source}", 1);
    let expected = "a.yaml:6:33: spec.plane.route_by: found route_by with kind dual, expected none: only kinds ipv4 and ipv6 have this setting";
    assert_eq!(errors(&[&dual])[0], expected);
}

#[test]
fn routes() {
    let links = "expected an address on a link of the network: 10.1.0.0/24 (left) or 10.2.0.0/24 (right)";
    let route = |text: &str| one("{to: 10.9.0.0/16, via: 10.2.0.2}", text);
    assert_eq!(
        route("{to: 10.9.0.0/16, via: 10.3.0.2}"),
        format!("a.yaml:11:30: spec.routes[0].via: found 10.3.0.2, which is not on any link, {links}")
    );
    assert_eq!(
        route("{to: 10.9.0.0/16, via: 10.2.0.1}"),
        "a.yaml:11:30: spec.routes[0].via: found 10.2.0.1, the address of \"right\", expected the address of another router"
    );
    assert_eq!(
        route("{to: 10.9.0.0/16, via: 10.2.0.255}"),
        "a.yaml:11:30: spec.routes[0].via: found 10.2.0.255, the broadcast address of \"right\", expected the address of another router"
    );
    assert_eq!(
        route("{to: 10.9.0.0/16, via: 10.2.0.0}"),
        "a.yaml:11:30: spec.routes[0].via: found 10.2.0.0, the first address of 10.2.0.0/24, expected the address of another router"
    );
    assert_eq!(
        route("{to: 10.9.0.1/16, via: 10.2.0.2}"),
        "a.yaml:11:12: spec.routes[0].to: found \"10.9.0.1/16\", expected 10.9.0.0/16 (bits beyond the length must be zero)"
    );
    let prefix = "expected an IPv4 prefix such as 10.9.0.0/16";
    for (to, why) in [
        ("10.0.0.0/33", " (a prefix length is a number from 0 to 32, not \"33\")"),
        ("10.0.0.0/-1", " (a prefix length is a number from 0 to 32, not \"-1\")"),
        ("10.0.0.0/a", " (a prefix length is a number from 0 to 32, not \"a\")"),
        ("10.0.0/24", " (an IPv4 address has 4 numbers, this one has 3)"),
        ("10.0.0.0.0/24", " (an IPv4 address has 4 numbers, this one has 5)"),
        ("10.0.0.256/32", " (256 is not from 0 to 255)"),
        ("10.0.0.01/32", " (its numbers are written without leading zeros)"),
        ("10.0.0.0/", " (the prefix length is missing)"),
        ("fe80::/64", " (this kind of plane has no IPv6)"),
        ("some/24", ""),
    ] {
        assert_eq!(
            route(&format!("{{to: \"{to}\", via: 10.2.0.2}}")),
            format!("a.yaml:11:12: spec.routes[0].to: found \"{to}\", {prefix}{why}")
        );
    }
    assert_eq!(
        route("{to: 10.9.0.1, via: 10.2.0.2}"),
        "a.yaml:11:12: spec.routes[0].to: found \"10.9.0.1\", expected an IPv4 prefix such as 10.9.0.0/16 (the prefix length is missing)"
    );
    assert_eq!(
        route("{to: 10.9.0.0/16}"),
        "a.yaml:11:7: spec.routes[0]: found neither \"via\" nor \"port\", expected one of them"
    );
    assert_eq!(
        route("{to: 10.9.0.0/16, via: 10.2.0.2, port: left}"),
        "a.yaml:11:46: spec.routes[0].port: found both \"via\" and \"port\", expected one of them"
    );
    assert_eq!(
        route("{to: 10.9.0.0/16, port: p0}"),
        "a.yaml:11:31: spec.routes[0].port: found unknown virtual port \"p0\", expected left or right"
    );
    assert_eq!(
        route("{to: 10.9.0.0/16, port: rihgt}"),
        "a.yaml:11:31: spec.routes[0].port: found unknown virtual port \"rihgt\", expected left or right (did you mean \"right\"?)"
    );
    assert_eq!(
        route("{to: 10.1.0.0/24, via: 10.2.0.2}"),
        "a.yaml:11:12: spec.routes[0].to: found 10.1.0.0/24, the link of \"left\", expected a destination outside the network's own addresses and links"
    );
    assert_eq!(
        route("{to: 239.0.0.0/8, via: 10.2.0.2}"),
        "a.yaml:11:12: spec.routes[0].to: found 239.0.0.0/8, expected a unicast prefix (224.0.0.0/4 and 255.255.255.255 are reserved for the router itself)"
    );
    assert_eq!(
        route("{to: 10.9.0.0/16, via: 10.2.0.2}\n    - {to: 10.9.0.0/16, via: 10.1.0.2}"),
        "a.yaml:12:12: spec.routes[1].to: found duplicate route to 10.9.0.0/16, expected a unique destination (first used in line 11)"
    );
    let none = network(
        "a",
        &["{name: x, port: p0, mac: '02:00:00:00:00:01'}"],
        "  routes: [{to: 0.0.0.0/0, via: 10.0.0.1}]\n",
    );
    assert_eq!(
        errors(&[&none]),
        [
            "a.yaml:8:33: spec.routes[0].via: found 10.0.0.1, which is not on any link, expected an address on a link, but the network has no link"
        ]
    );
}

#[test]
fn neighbours() {
    let neighbour = |text: &str| one("port: right, address: 10.2.0.2,", text);
    assert_eq!(
        neighbour("port: right, address: 10.3.0.2,"),
        "a.yaml:13:30: spec.neighbours[0].address: found 10.3.0.2, which is not on any link, expected an address on a link of \"right\": 10.2.0.0/24 (right)"
    );
    assert_eq!(
        neighbour("port: left, address: 10.2.0.2,"),
        "a.yaml:13:29: spec.neighbours[0].address: found 10.2.0.2, which is on link 10.2.0.0/24 of \"right\", expected an address on a link of \"left\": 10.1.0.0/24 (left)"
    );
    assert_eq!(
        neighbour("port: up, address: 10.2.0.2,"),
        "a.yaml:13:14: spec.neighbours[0].port: found unknown virtual port \"up\", expected left or right"
    );
    assert_eq!(
        neighbour("port: right, address: 10.2.0.1,"),
        "a.yaml:13:30: spec.neighbours[0].address: found 10.2.0.1, the address of \"right\", expected the address of a neighbour"
    );
    assert_eq!(
        one("0a:02\"}", "0a:02\"}\n    - {port: right, address: 10.2.0.2, mac: \"02:00:00:00:0a:03\"}"),
        "a.yaml:14:30: spec.neighbours[1].address: found duplicate neighbour 10.2.0.2 of \"right\", expected a unique address (first used in line 13)"
    );
}

#[test]
fn nodes() {
    assert_eq!(
        errors(&[NODE, &red_with("port: p1", "port: p2")]),
        ["b.yaml:9:27: spec.ports[1].port: found unknown port \"p2\", expected a port of the node: p0 or p1"]
    );
    assert_eq!(
        errors(&[NODE, &red_with("[10.2.0.1/24]", "[10.2.0.1/24], mtu: 1401")]),
        ["b.yaml:9:88: spec.ports[1].mtu: found 1401, expected at most 1400 (the MTU of port \"p1\")"]
    );
    assert_eq!(
        errors(&[NODE, NODE]),
        ["b.yaml:1:1: document: found a second Node, expected at most one Node (first in a.yaml:1)"]
    );
    assert_eq!(
        errors(&[&NODE.replace("name: p1", "name: p0")]),
        [
            "a.yaml:5:30: spec.ports[1].name: found duplicate port \"p0\", expected a unique name (first used in line 5)"
        ]
    );
    assert_eq!(
        errors(&[&NODE.replace("name: p1", "name: punt")]),
        [
            "a.yaml:5:30: spec.ports[1].name: found the name \"punt\", expected another name (this name is reserved for punted packets)"
        ]
    );
    assert_eq!(
        errors(&[&NODE.replace("1400", "9203")]),
        ["a.yaml:5:39: spec.ports[1].mtu: found 9203, expected a whole number from 68 to 9202 bytes"]
    );
}

#[test]
fn rate_limits() {
    assert_eq!(
        one(", burst_packets: 1000", ""),
        "a.yaml:15:15: spec.rate_limit.burst_packets: found nothing, expected a whole number from 1 to 1000000000000"
    );
    assert_eq!(
        one("packets_per_second: 100000", "packets_per_second: 1e5"),
        "a.yaml:15:36: spec.rate_limit.packets_per_second: found 1e5, expected a whole number from 1 to 1000000000000"
    );
    assert_eq!(
        one("packets_per_second: 100000, burst_packets: 1000", ""),
        "a.yaml:15:15: spec.rate_limit: found an empty mapping, expected packets_per_second with burst_packets, bits_per_second with burst_bits, or both"
    );
    assert_eq!(
        one("packets_per_second: 100000, burst_packets: 1000", "bits_per_second: 1000000, burst_bits: 12111"),
        "a.yaml:15:54: spec.rate_limit.burst_bits: found 12111, expected at least 12112bit (a frame with 1500 bytes of IP packet)"
    );
    let bits = |rate: &str, burst: &str| {
        let limit = format!("bits_per_second: {rate}, burst_bits: {burst}");
        one("packets_per_second: 100000, burst_packets: 1000", &limit)
    };
    assert_eq!(
        bits("10Mbit/s", "12kbit"),
        "a.yaml:15:55: spec.rate_limit.burst_bits: found \"12kbit\", expected at least 12112bit (a frame with 1500 bytes of IP packet)"
    );
    let rate = "expected a rate from 1bit/s to 1000Gbit/s, such as 10Mbit/s, or a number of bits per second";
    for (text, found) in [
        ("10Mbit", "\"10Mbit\""),
        ("10 Mbit/s", "\"10 Mbit/s\""),
        ("1.5Mbit/s", "\"1.5Mbit/s\""),
        ("1001Gbit/s", "\"1001Gbit/s\""),
        ("-1", "-1"),
        ("0", "0"),
        ("0bit/s", "\"0bit/s\""),
        ("[]", "a list"),
    ] {
        let error = format!("a.yaml:15:33: spec.rate_limit.bits_per_second: found {found}, {rate}");
        assert_eq!(bits(text, "80kbit"), error, "{text}");
    }
    assert_eq!(
        bits("10Mbit/s", "80kbit/s"),
        "a.yaml:15:55: spec.rate_limit.burst_bits: found \"80kbit/s\", expected an amount from 1bit to 1000Gbit, such as 80kbit, or a number of bits"
    );
}

#[test]
fn punt_limits() {
    let punt = |text: &str| one("  weight: 1", &format!("  punt_limit: {text}"));
    assert_eq!(
        punt("{packets_per_second: 10}"),
        "a.yaml:14:15: spec.punt_limit.burst_packets: found nothing, expected a whole number from 1 to 10000000"
    );
    assert_eq!(
        punt("{packets_per_second: 0, burst_packets: 1}"),
        "a.yaml:14:36: spec.punt_limit.packets_per_second: found 0, expected a whole number from 1 to 10000000"
    );
    assert_eq!(
        punt("{packets_per_second: 1, burst_packets: 1, bits_per_second: 1}"),
        "a.yaml:14:57: spec.punt_limit.bits_per_second: found an unknown field, expected packets_per_second or burst_packets (did you mean \"packets_per_second\"?)"
    );
}

#[test]
fn table() {
    let table = |text: &str| one("  weight: 1", &format!("  table: {text}"));
    let expected = "expected an amount of table memory from 4Ki to 64Gi, such as 512Ki or 2Mi";
    assert_eq!(table("{}"), format!("a.yaml:14:10: spec.table.quota: found nothing, {expected}"));
    for (quota, shown) in [("3Ki", "\"3Ki\""), ("65Gi", "\"65Gi\""), ("2MiB", "\"2MiB\""), ("[]", "a list")] {
        let error = format!("a.yaml:14:18: spec.table.quota: found {shown}, {expected}");
        assert_eq!(table(&format!("{{quota: {quota}}}")), error);
    }
    assert_eq!(
        table("{quota: 2Mi, routes: 1}"),
        "a.yaml:14:23: spec.table.routes: found an unknown field, expected quota"
    );
}

#[test]
fn resources() {
    let resources = |text: &str| one("  weight: 1", &format!("  resources: {text}"));
    assert_eq!(
        resources("{}"),
        "a.yaml:14:14: spec.resources: found an empty mapping, expected at least one of cpu, memory and processes"
    );
    for (cpu, shown) in [
        ("0", "0"),
        ("0.009", "0.009"),
        ("1024.001", "1024.001"),
        ("0.5001", "0.5001"),
        ("1e0", "1e0"),
        ("-1", "-1"),
        (".5", ".5"),
        ("1.", "1."),
        ("\"0.5\"", "\"0.5\""),
        ("500m", "\"500m\""),
        ("99999999999", "99999999999"),
        ("[]", "a list"),
    ] {
        let expected = "expected a number of cores from 0.01 to 1024 with at most three decimals";
        let error = format!("a.yaml:14:20: spec.resources.cpu: found {shown}, {expected}");
        assert_eq!(resources(&format!("{{cpu: {cpu}}}")), error);
    }
    assert_eq!(
        resources("{memory: 256MB}"),
        "a.yaml:14:23: spec.resources.memory: found \"256MB\", expected an amount of memory from 4Mi to 1024Gi, such as 256Mi or 2Gi"
    );
    assert_eq!(
        resources("{memory: 268435456}"),
        "a.yaml:14:23: spec.resources.memory: found 268435456, expected an amount of memory from 4Mi to 1024Gi, such as 256Mi or 2Gi (write \"268435456\" to use it as text)"
    );
    assert_eq!(
        resources("{processes: 4194305}"),
        "a.yaml:14:26: spec.resources.processes: found 4194305, expected a whole number from 1 to 4194304"
    );
}

#[test]
fn needs() {
    let needs = |text: &str| one("  weight: 1", &format!("  needs: {text}"));
    assert_eq!(
        needs("{}"),
        "a.yaml:14:10: spec.needs: found an empty mapping, expected at least one of bandwidth, latency and routes"
    );
    for (bandwidth, shown) in [
        ("0Mbit/s", "\"0Mbit/s\""),
        ("200", "200"),
        ("200M", "\"200M\""),
        ("1.5Gbit/s", "\"1.5Gbit/s\""),
        ("1001Gbit/s", "\"1001Gbit/s\""),
        ("-1Mbit/s", "\"-1Mbit/s\""),
        ("[]", "a list"),
    ] {
        let hint = if shown == "200" { " (write \"200\" to use it as text)" } else { "" };
        let expected = "expected a bandwidth from 1kbit/s to 1000Gbit/s, such as 200Mbit/s";
        let error = format!("a.yaml:14:22: spec.needs.bandwidth: found {shown}, {expected}{hint}");
        assert_eq!(needs(&format!("{{bandwidth: {bandwidth}}}")), error);
    }
    assert_eq!(
        needs("{latency: lowest}"),
        "a.yaml:14:20: spec.needs.latency: found \"lowest\", expected normal or low (did you mean \"low\"?)"
    );
    assert_eq!(
        needs("{routes: 0}"),
        "a.yaml:14:19: spec.needs.routes: found 0, expected a whole number from 1 to 2000000"
    );
    assert_eq!(
        needs("{routes: 2000001}"),
        "a.yaml:14:19: spec.needs.routes: found 2000001, expected a whole number from 1 to 2000000"
    );
    assert_eq!(
        needs("{bandwith: 1Mbit/s}"),
        "a.yaml:14:11: spec.needs.bandwith: found an unknown field, expected bandwidth, latency or routes (did you mean \"bandwidth\"?)"
    );
}

#[test]
fn schedulers() {
    let scheduler = |text: &str| errors(&[&format!("{NODE}  scheduler: {text}\n")]);
    assert_eq!(scheduler("{}"), [""; 0]);
    let bandwidth = "expected a bandwidth from 1kbit/s to 1000Gbit/s, such as 200Mbit/s";
    for (text, expected) in [
        (
            "[]",
            "a.yaml:6:14: spec.scheduler: found a list, expected a mapping with kind, from_traffic, soft, card_bandwidth, move_cost",
        ),
        ("{kind: best}", "a.yaml:6:21: spec.scheduler.kind: found \"best\", expected greedy or exact"),
        (
            "{soft: {cores: 0}}",
            "a.yaml:6:29: spec.scheduler.soft.cores: found 0, expected a whole number from 1 to 256",
        ),
        (
            "{soft: {cores: 257}}",
            "a.yaml:6:29: spec.scheduler.soft.cores: found 257, expected a whole number from 1 to 256",
        ),
        (
            "{soft: {bandwith: 1Gbit/s}}",
            "a.yaml:6:22: spec.scheduler.soft.bandwith: found an unknown field, expected cores or bandwidth (did you mean \"bandwidth\"?)",
        ),
        (
            "{card_bandwidth: 10G}",
            &format!("a.yaml:6:31: spec.scheduler.card_bandwidth: found \"10G\", {bandwidth}"),
        ),
        (
            "{move_cost: 0kbit/s}",
            &format!("a.yaml:6:26: spec.scheduler.move_cost: found \"0kbit/s\", {bandwidth}"),
        ),
    ] {
        assert_eq!(scheduler(text), [expected], "{text}");
    }
    let port = NODE.replace("mtu: 1400", "bandwidth: 10");
    assert_eq!(
        errors(&[&port]),
        [format!(
            "a.yaml:5:45: spec.ports[1].bandwidth: found 10, {bandwidth} (write \"10\" to use it as text)"
        )]
    );
}

#[test]
fn interfaces_of_ports() {
    let node = |ports: &str| {
        let errors = errors(&[&format!(
            "apiVersion: hueplane/v1\nkind: Node\nmetadata: {{name: n}}\nspec:\n  ports: {ports}\n"
        )]);
        assert_eq!(errors.len(), 1, "{errors:#?}");
        errors.into_iter().next().unwrap()
    };
    assert_eq!(
        node("[{name: p0, interface: a/b}]"),
        "a.yaml:5:33: spec.ports[0].interface: found \"a/b\", expected the name of a Linux interface: 1 to 15 visible characters, no '/' or ':'"
    );
    assert_eq!(
        node("[{name: p0, driver: dpdk}]"),
        "a.yaml:5:30: spec.ports[0].driver: found \"dpdk\", expected auto, afxdp, packet or tap"
    );
    assert_eq!(
        node("[{name: p0, interface: eth0}, {name: p1, interface: eth0}]"),
        "a.yaml:5:62: spec.ports[1].interface: found duplicate interface \"eth0\", expected a unique interface (first used in line 5)"
    );
    assert_eq!(
        node("[{name: p0}, {name: p1, interface: p0}]"),
        "a.yaml:5:45: spec.ports[1].interface: found duplicate interface \"p0\", expected a unique interface (first used in line 5)"
    );
}

#[test]
fn select() {
    let select = |text: &str| one("  weight: 1", &format!("  select: {text}"));
    assert_eq!(
        select("{by: vlan}"),
        "a.yaml:14:16: spec.select.by: found \"vlan\", expected mac, port or inner"
    );
    assert_eq!(
        select("{by: inner}"),
        "a.yaml:14:11: spec.select.prefixes: found nothing, expected a list of IPv4 prefixes"
    );
    assert_eq!(
        select("{by: inner, prefixes: []}"),
        "a.yaml:14:33: spec.select.prefixes: found an empty list, expected at least one prefix"
    );
    assert_eq!(
        select("{by: mac, prefixes: [10.0.0.0/8]}"),
        "a.yaml:14:31: spec.select.prefixes: found prefixes, expected none with \"by: mac\" (prefixes need \"by: inner\")"
    );
    let port = |mac| format!("{{name: x, port: p0, mac: '02:00:00:00:00:0{mac}'}}");
    let text = |name, mac, more: &str| network(name, &[&port(mac)], more);
    assert_eq!(
        errors(&[&text("a", 1, "  select: {by: port}\n"), &text("b", 2, "  select: {by: port}\n")]),
        [
            "b.yaml:7:23: spec.ports[0].port: found duplicate claim on all frames of port \"p0\", expected only one virtual port that selects by port (first used in a.yaml:7)"
        ]
    );
    let inner = "  select: {by: inner, prefixes: [10.0.0.0/8]}\n";
    assert_eq!(
        errors(&[&text("a", 1, inner), &text("b", 2, inner)]),
        [
            "b.yaml:8:34: spec.select.prefixes[0]: found duplicate claim on 10.0.0.0/8 on port \"p0\", expected a unique prefix (first used in a.yaml:8)"
        ]
    );
}

#[test]
fn all_errors_of_all_files_are_reported_in_order() {
    let bad = red_with("weight: 1", "weight: 0").replace("kind: ipv4", "kind: ipv0");
    let found = errors(&[&format!("{bad}---\n[1, 2"), &bad]);
    let places: Vec<_> = found.iter().map(|error| error.split(": ").next().unwrap()).collect();
    assert_eq!(
        places,
        [
            "a.yaml:6:17",
            "a.yaml:14:11",
            "a.yaml:18:1",
            "b.yaml:3:18",
            "b.yaml:6:17",
            "b.yaml:8:36",
            "b.yaml:8:69",
            "b.yaml:9:36",
            "b.yaml:9:69",
            "b.yaml:14:11"
        ]
    );
}

/// An invalid part causes one error, and no consequential errors.
#[test]
fn one_mistake_gives_one_error() {
    assert_eq!(one("[10.2.0.1/24]", "[10.2.0.1]").matches("found").count(), 1);
    let bad_node = NODE.replace("name: p0", "name: p/0");
    assert_eq!(errors(&[&bad_node, RED]).len(), 1);
}

#[test]
fn findings_serialize() {
    let errors = load(&[&red_with("weight: 1", "weight: 0")]).unwrap_err();
    let Some(Error::Found(finding)) = errors.list.first() else { panic!("{errors}") };
    let json = serde_json::to_value(finding).unwrap();
    assert_eq!(
        json,
        serde_json::json!({
            "file": "a.yaml", "line": 14, "column": 11, "field": "spec.weight",
            "found": "0", "expected": "a whole number from 1 to 1000",
        })
    );
}

#[test]
fn cards_and_placements() {
    let card = |card: &str| errors(&[&format!("{NODE}  card: {card}\n")]);
    assert_eq!(card("{twin: {image: default}, ports: [p0, p1]}"), [""; 0]);
    assert_eq!(card("{twin: {image: default}, ports: [p0, p1], drained: true}"), [""; 0]);
    for (text, expected) in [
        (
            "{twin: {image: default}, ports: [p0, p2]}",
            "a.yaml:6:46: spec.card.ports[1]: found unknown port \"p2\", expected a port of the node: p0 or p1",
        ),
        (
            "{twin: {image: default}, ports: [p0, p0]}",
            "a.yaml:6:46: spec.card.ports[1]: found duplicate port \"p0\", expected a unique port (first used in line 6)",
        ),
        (
            "{twin: {}, ports: [p0]}",
            "a.yaml:6:16: spec.card.twin.image: found nothing, expected the name of an image",
        ),
        (
            "{ports: [p0]}",
            "a.yaml:6:9: spec.card.twin: found nothing, expected a mapping with image, or pci instead",
        ),
        (
            "{drained: maybe, twin: {image: default}, ports: [p0]}",
            "a.yaml:6:19: spec.card.drained: found \"maybe\", expected true or false",
        ),
        (
            "{drain: true, twin: {image: default}, ports: [p0]}",
            "a.yaml:6:10: spec.card.drain: found an unknown field, expected twin, pci, ports, nics or drained (did you mean \"drained\"?)",
        ),
        (
            "{twin: {image: ../x}, ports: [p0]}",
            "a.yaml:6:24: spec.card.twin.image: found \"../x\", expected a name of 1 to 63 letters, digits, '-', '_' or '.', beginning with a letter or digit",
        ),
    ] {
        assert_eq!(card(text), [expected], "{text}");
    }
    // A real card.
    assert_eq!(card("{pci: \"0000:3b:1f.7\", ports: [p0]}"), [""; 0]);
    for address in ["3b:00.0", "0000:3b:20.0", "0000:3b:00.8", "0000:3b:0.0", "+000:3b:00.0", "0000:3b:00"] {
        assert_eq!(
            card(&format!("{{pci: \"{address}\", ports: [p0]}}")),
            [format!(
                "a.yaml:6:15: spec.card.pci: found \"{address}\", expected a PCI address such as \"0000:3b:00.0\""
            )]
        );
    }
    assert_eq!(
        card("{twin: {image: default}, pci: \"0000:3b:00.0\", ports: [p0]}"),
        ["a.yaml:6:39: spec.card.pci: found a second card, expected either twin or pci"]
    );
    // NICs beside the card's ports.
    assert_eq!(card("{twin: {image: default}, ports: [p0], nics: [p1]}"), [""; 0]);
    for (text, expected) in [
        (
            "{twin: {image: default}, ports: [p0], nics: [p9]}",
            "a.yaml:6:54: spec.card.nics[0]: found unknown port \"p9\", expected a port of the node: p0 or p1",
        ),
        (
            "{twin: {image: default}, ports: [p0], nics: [p0]}",
            "a.yaml:6:54: spec.card.nics[0]: found duplicate port \"p0\", expected a unique port (first used in line 6)",
        ),
        (
            "{twin: {image: default}, ports: [], nics: [p0]}",
            "a.yaml:6:52: spec.card.nics[0]: found 1 ports, expected at most 0: one for each port of the card",
        ),
    ] {
        assert_eq!(card(text), [expected], "{text}");
    }
    let node = format!("{NODE}  card: {{twin: {{image: default}}, ports: [p1], nics: [p0]}}\n");
    assert_eq!(
        errors(&[&node, RED]),
        [
            "b.yaml:8:27: spec.ports[0].port: found port \"p0\", which is the NIC of \"p1\", expected \"p1\": its networks use both"
        ]
    );
    let node = format!("{NODE}  card: {{twin: {{image: default}}, ports: [p0], nics: [p1]}}\n");
    let two = |mac: &str| {
        let red = RED.replace("port: p1", "port: p0");
        let other = red.replace("name: red", "name: blue").replace("\"02:", mac).replace("10.", "10.1");
        errors(&[&node, &red, &other])
    };
    assert!(two("\"06:").is_empty(), "{:?}", two("\"06:"));
    let clash = two("\"42:");
    assert!(clash[0].contains("expected an address that differs in more than bit 0x40"), "{clash:?}");
    assert_eq!(
        one("  weight: 1", "  placement: fpga"),
        "a.yaml:14:14: spec.placement: found \"fpga\", expected auto, card or soft"
    );
}

#[test]
fn links_inside_a_node() {
    let node = |more: &str| {
        format!(
            "apiVersion: hueplane/v1\nkind: Node\nmetadata: {{name: n}}\nspec:\n  ports: [{{name: p0}}, {{name: p1}}]\n  {more}\n"
        )
    };
    let one = |more: &str| {
        let errors = errors(&[&node(more)]);
        assert_eq!(errors.len(), 1, "{more}: {errors:#?}");
        errors.into_iter().next().unwrap()
    };
    let ends = "a list of two names, such as [red-blue, blue-red]";
    for (more, expected) in [
        ("links: [{mtu: 1500}]", format!("6:11: spec.links[0].ends: found nothing, expected {ends}")),
        ("links: [{ends: [a]}]", format!("6:18: spec.links[0].ends: found a list of 1, expected {ends}")),
        ("links: [{ends: a}]", format!("6:18: spec.links[0].ends: found \"a\", expected {ends}")),
        (
            "links: [{ends: [a, a]}]",
            "6:22: spec.links[0].ends[1]: found duplicate port \"a\", expected a unique name (first used in line 6)"
                .to_owned(),
        ),
        (
            "links: [{ends: [a, b]}, {ends: [c, b]}]",
            "6:38: spec.links[1].ends[1]: found duplicate port \"b\", expected a unique name (first used in line 6)"
                .to_owned(),
        ),
        (
            "links: [{ends: [a, p1]}]",
            "6:22: spec.links[0].ends[1]: found duplicate port \"p1\", expected a unique name (first used in line 5)"
                .to_owned(),
        ),
        (
            "links: [{ends: [a, punt]}]",
            "6:22: spec.links[0].ends[1]: found the name \"punt\", expected another name (this name is reserved for punted packets)"
                .to_owned(),
        ),
        (
            "links: [{ends: [a, b]}]\n  card: {pci: '0000:01:00.0', ports: [p0, a]}",
            "7:43: spec.card.ports[1]: found port \"a\", an end of a link inside the node, expected a port with an interface (to join two ports of a card, connect them by a cable)"
                .to_owned(),
        ),
        (
            "links: [{ends: [a, b]}]\n  card: {twin: {image: default}, ports: [p0], nics: [b]}",
            "7:54: spec.card.nics[0]: found port \"b\", an end of a link inside the node, expected a port with an interface"
                .to_owned(),
        ),
    ] {
        assert_eq!(one(more), format!("a.yaml:{expected}"));
    }
    let many: Vec<String> = (0..96).map(|n| format!("{{ends: [a{n}, b{n}]}}")).collect();
    let found = one(&format!("links: [{}]", many.join(", ")));
    assert!(
        found.ends_with(
            "spec.links[95]: found 2 ports and 96 links, each with two ports, expected at most 192 ports"
        ),
        "{found}"
    );
    let many: Vec<String> = (0..95).map(|n| format!("{{ends: [a{n}, b{n}]}}")).collect();
    assert_eq!(load(&[&node(&format!("links: [{}]", many.join(", ")))]).unwrap().node.spec.ports.len(), 192);

    let valid = node("links: [{ends: [red-blue, blue-red], mtu: 1400}]");
    let on =
        |mac: u8, more: &str| format!("{{name: up, port: red-blue, mac: '02:00:00:00:00:{mac:02}'{more}}}");
    let (red, blue) = (network("red", &[&on(1, "")], ""), network("blue", &[&on(2, "")], ""));
    assert_eq!(
        errors(&[&valid, &red, &blue]),
        [
            "c.yaml:7:24: spec.ports[0].port: found duplicate virtual port on \"red-blue\", an end of a link inside the node, expected at most one virtual port on each end of a link (first used in b.yaml:7)"
        ]
    );
    let long = network("red", &[&on(1, ", mtu: 1500")], "");
    assert!(errors(&[&valid, &long])[0].contains("expected at most 1400"));
}

/// A network of kind `l2`.
const LAN: &str = "apiVersion: hueplane/v1
kind: Network
metadata: {name: lan}
spec:
  plane: {kind: l2}
  ports:
    - {name: a, port: p0, mac: \"02:00:00:00:07:01\"}
    - {name: b, port: p1, mac: \"02:00:00:00:07:02\"}
";

#[test]
fn networks_of_kind_l2() {
    let node = "apiVersion: hueplane/v1\nkind: Node\nmetadata: {name: box}\nspec:\n  ports: [{name: p0}, {name: p1, mtu: 9000}]\n";
    let only = |text: &str| {
        let errors = errors(&[text]);
        assert_eq!(errors.len(), 1, "{errors:#?}");
        errors[0].clone()
    };
    let bad = |part: &str, other: &str| {
        assert!(LAN.contains(part), "{part}");
        only(&LAN.replacen(part, other, 1))
    };
    let more = |text: &str| only(&format!("{LAN}{text}"));
    let settings = "{kind: l2, macs_max: 60000, ageing_seconds: 10, sticky: true, storm_limit: {packets_per_second: 9, burst_packets: 9}}";
    let full = LAN.replacen("{kind: l2}", settings, 1)
        + "  static_macs: [{mac: \"02:00:00:00:00:0a\", port: b}]\n  select: {by: port}\n";
    let intent = load(&[&full]).unwrap();
    let spec = &intent.networks[0].spec;
    assert_eq!((spec.plane.macs_max, spec.plane.sticky, spec.static_macs.len()), (Some(60_000), true, 1));
    assert_eq!(load(&[LAN]).unwrap().networks[0].spec.select, hue_intent::Select::Port, "by default");
    assert_eq!(
        bad("{kind: l2}", "{kind: l2, martians: forward}"),
        "a.yaml:5:31: spec.plane.martians: found martians with kind l2, expected none: only kinds ipv4, dual and splice have this setting"
    );
    assert_eq!(
        bad("{kind: l2}", "{kind: l2, macs_max: 60001}"),
        "a.yaml:5:31: spec.plane.macs_max: found 60001, expected a whole number from 0 to 60000"
    );
    assert_eq!(
        bad("{kind: l2}", "{kind: l2, ageing_seconds: 9}"),
        "a.yaml:5:37: spec.plane.ageing_seconds: found 9, expected a whole number from 10 to 1000000 seconds"
    );
    assert_eq!(
        bad("07:01\"", "07:01\", addresses: [10.1.0.1/24]"),
        "a.yaml:7:64: spec.ports[0].addresses: found addresses, expected none: this kind does not look at IP"
    );
    assert_eq!(
        more("  routes: [{to: 10.0.0.0/8, via: 10.1.0.2}]\n"),
        "a.yaml:9:11: spec.routes: found routes with kind l2, expected none: this kind does not look at IP (see static_macs)"
    );
    assert_eq!(
        more("  table: {quota: 1Mi}\n"),
        "a.yaml:9:10: spec.table: found table with kind l2, expected none: this kind has no routes (plane.macs_max limits its table)"
    );
    assert_eq!(
        more("  select: {by: mac}\n"),
        "a.yaml:9:16: spec.select.by: found \"mac\" with kind l2, expected port, which is the default of this kind (a switch takes frames to all destinations, so each of its ports is its own)"
    );
    assert_eq!(
        bad("port: p1", "port: p0"),
        "a.yaml:8:23: spec.ports[1].port: found duplicate claim on all frames of port \"p0\", expected only one virtual port that selects by port (first used in line 7)"
    );
    assert_eq!(
        bad("07:02\"", "07:02\", mtu: 1400"),
        "a.yaml:8:58: spec.ports[1].mtu: found an MTU of 1400, expected the same MTU at all ports of a switch (port \"a\" has 1500; set the mtu of both)"
    );
    assert_eq!(
        errors(&[node, LAN]),
        [
            "b.yaml:8:23: spec.ports[1].port: found an MTU of 9000, expected the same MTU at all ports of a switch (port \"a\" has 1500; set the mtu of both)"
        ]
    );
    let twice =
        "  static_macs: [{mac: \"02:00:00:00:00:0a\", port: a}, {mac: \"02:00:00:00:00:0a\", port: b}]\n";
    assert_eq!(
        more(twice),
        "a.yaml:9:60: spec.static_macs[1].mac: found duplicate MAC 02:00:00:00:00:0a, expected a unique MAC (first used in line 9)"
    );
    assert_eq!(
        more("  static_macs: [{mac: \"02:00:00:00:00:0a\", port: c}]\n"),
        "a.yaml:9:50: spec.static_macs[0].port: found unknown virtual port \"c\", expected a or b"
    );
    assert_eq!(
        one("  ports:", "  static_macs: []\n  ports:"),
        "a.yaml:7:16: spec.static_macs: found static_macs with kind ipv4, expected none: only kind l2 has them (neighbours have fixed MAC addresses too)"
    );
}

#[test]
fn kinds_without_tables() {
    const PORTS: &str = "  ports:\n    - {name: a, port: p0, mac: \"02:00:00:00:07:01\"}\n    - {name: b, port: p1, mac: \"02:00:00:00:07:02\"}\n";
    let network = |plane: &str, more: &str| {
        format!(
            "apiVersion: hueplane/v1\nkind: Network\nmetadata: {{name: own}}\nspec:\n  plane: {plane}\n{PORTS}{more}"
        )
    };
    let only = |plane: &str, more: &str| {
        let errors = errors(&[&network(plane, more)]);
        assert_eq!(errors.len(), 1, "{errors:#?}");
        errors[0].clone()
    };
    let process = "{kind: process, command: [socat, \"INTERFACE:a\", \"INTERFACE:b\"]}";
    let loaded = load(&[&network(process, "")]).unwrap();
    let spec = &loaded.networks[0].spec;
    assert_eq!((spec.plane.command.len(), spec.select.clone()), (3, hue_intent::Select::Port));
    assert_eq!(spec.plane.capabilities, [hue_intent::Capability::NetRaw]);
    let both = process.replace('}', ", capabilities: [net_admin, net_raw, net_raw]}");
    assert!(only(&both, "").contains("capabilities"), "three of two");
    let both = process.replace('}', ", capabilities: [net_admin, net_raw]}");
    assert_eq!(
        load(&[&network(&both, "")]).unwrap().networks[0].spec.plane.capabilities,
        hue_intent::Capability::ALL
    );
    assert_eq!(
        only("{kind: process}", ""),
        "a.yaml:5:10: spec.plane.command: found nothing, expected the program that forwards, such as [python3, /opt/hub.py]"
    );
    assert_eq!(
        only("{kind: process, command: []}", ""),
        "a.yaml:5:35: spec.plane.command: found no program, expected a program and its arguments, such as [python3, /opt/hub.py]"
    );
    assert_eq!(
        only("{kind: process, command: [sleep, 5]}", ""),
        "a.yaml:5:43: spec.plane.command[1]: found 5, expected a word of the command (write \"5\" to use it as text)"
    );
    let long = format!("{{kind: process, command: [sh, -c, \"{}\"]}}", "x".repeat(20_000));
    assert_eq!(
        only(&long, ""),
        "a.yaml:5:44: spec.plane.command[2]: found a word of 20000 bytes, expected at most 16384 bytes, without a zero byte"
    );
    assert_eq!(
        only("{kind: process, command: [cat], capabilities: [sys_admin]}", ""),
        "a.yaml:5:57: spec.plane.capabilities[0]: found \"sys_admin\", expected net_raw or net_admin (did you mean \"net_admin\"?)"
    );
    assert_eq!(
        only("{kind: kernel, command: [cat]}", ""),
        "a.yaml:5:34: spec.plane.command: found command with kind kernel, expected none: only kind process has this setting"
    );
    assert_eq!(
        only(process, "  routes: [{to: 10.0.0.0/8, via: 10.1.0.2}]\n"),
        "a.yaml:9:11: spec.routes: found routes with kind process, expected none: this kind does not look at IP"
    );
    for kind in [process, "{kind: kernel}"] {
        assert!(
            only(kind, "  table: {quota: 1Mi}\n")
                .contains("expected none: this kind has no table in hueplane's memory")
        );
        let limit = only(kind, "  punt_limit: {packets_per_second: 5, burst_packets: 5}\n");
        assert!(
            limit.contains("expected none: all packets of this kind go to its namespace (rate_limit limits"),
            "{limit}"
        );
        assert!(
            only(kind, "  static_macs: []\n").ends_with("expected none: only kind l2 has them")
                || only(kind, "  static_macs: []\n").contains("only kind l2 has them")
        );
        assert!(
            load(&[&network(kind, "  select: {by: mac}\n")]).is_ok()
                && load(&[&network(kind, "  select: {by: port}\n")]).is_ok()
        );
        assert!(only(kind, "  select: {by: inner, prefixes: [10.0.0.0/8]}\n").contains("mac or port"));
    }
    // The namespace of kind `kernel` has both families.
    let addresses = PORTS.replacen("07:01\"", "07:01\", addresses: [10.1.0.1/24, \"2001:db8::1/64\"]", 1);
    let whole = network("{kind: kernel}", "  routes: [{to: 10.9.0.0/16, via: 10.1.0.2}]\n")
        .replace(PORTS, &addresses);
    assert_eq!(load(&[&whole]).unwrap().networks[0].spec.ports[0].addresses.len(), 2);
}

#[test]
fn slices_are_checked() {
    let network = |plane: &str, route: &str| {
        format!(
            "apiVersion: hueplane/v1\nkind: Network\nmetadata: {{name: r0}}\nspec:\n  plane: {plane}\n  ports:\n    \
             - {{name: a, port: p0, mac: \"02:00:00:00:07:01\", addresses: [10.1.0.1/24]}}\n  routes:\n    - {route}\n"
        )
    };
    let only = |plane: &str, route: &str| {
        let errors = errors(&[&network(plane, route)]);
        assert_eq!(errors.len(), 1, "{errors:#?}");
        errors[0].clone()
    };
    let route = "{to: 10.9.0.0/16, via: 10.1.0.2, slice: 3}";
    let spec = &load(&[&network("{kind: splice, bits: shim}", route)]).unwrap().networks[0].spec;
    assert_eq!((spec.plane.slices, spec.plane.bits.name(), spec.routes[0].slice), (None, "shim", 3));
    for (plane, route, expected) in [
        (
            "{kind: splice, slices: 17}",
            route,
            "a.yaml:5:33: spec.plane.slices: found 17, expected a whole number from 1 to 16",
        ),
        (
            "{kind: splice, bits: tos}",
            route,
            "a.yaml:5:31: spec.plane.bits: found \"tos\", expected ip_id or shim",
        ),
        (
            "{kind: splice, slices: 3}",
            route,
            "a.yaml:9:47: spec.routes[0].slice: found slice 3, expected a number from 0 to 2 (plane.slices is 3, and the first slice is 0)",
        ),
        (
            "{kind: ipv4}",
            route,
            "a.yaml:9:47: spec.routes[0].slice: found slice with kind ipv4, expected none: only kind splice has several tables",
        ),
        (
            "{kind: splice}",
            "{to: 10.9.0.0/16, port: a, slice: 1}",
            "a.yaml:9:41: spec.routes[0].slice: found \"slice\" in a route onto a port, expected none, or \"via\", the address of a router (what is on a link is there in all slices)",
        ),
        (
            "{kind: splice}",
            "{to: 10.9.0.0/16, via: 10.1.0.2, slice: 16}",
            "a.yaml:9:47: spec.routes[0].slice: found 16, expected a whole number from 0 to 15",
        ),
        (
            "{kind: splice}",
            "{to: 10.9.0.0/16, from: 10.1.0.0/24, via: 10.1.0.2}",
            "a.yaml:9:31: spec.routes[0].from: found \"from\" with route_by destination, expected none: routes are chosen by destination (set route_by of the plane to source or source_destination)",
        ),
    ] {
        assert_eq!(only(plane, route), expected);
    }
    let both = "{to: 10.9.0.0/16, via: 10.1.0.2, slice: 1}\n    - {to: 10.9.0.0/16, via: 10.1.0.3, slice: 2}";
    assert!(load(&[&network("{kind: splice}", both)]).is_ok(), "a route in each slice");
}
