//! Networks of kind `splice`: routes of each slice, and what all slices have in common.

use std::net::IpAddr;

use hue_control::{Compiled, compile};
use hue_intent::{Source, parse};
use hue_planes::splice::{Bits, Settings as Splice};
use hue_planes::{AdjacencyKind, Settings};
use hue_tables::slice::{SlicedPrefix, key};

const DOCUMENTS: &str = "apiVersion: hueplane/v1
kind: Node
metadata: {name: n}
spec: {ports: [{name: p0}, {name: p1}]}
---
apiVersion: hueplane/v1
kind: Network
metadata: {name: r0}
spec:
  plane: {kind: splice, slices: 3, bits: shim}
  ports:
    - {name: a, port: p0, mac: \"02:00:00:00:09:01\", addresses: [10.1.0.1/24]}
    - {name: b, port: p1, mac: \"02:00:00:00:09:02\", addresses: [10.2.0.1/24]}
  routes:
    - {to: 10.9.0.0/16, via: 10.1.0.2}
    - {to: 10.9.0.0/16, via: 10.2.0.2, slice: 2}
    - {to: 10.8.0.0/16, port: b}
  neighbours:
    - {port: a, address: 10.1.0.2, mac: \"02:00:00:00:0a:01\"}
    - {port: b, address: 10.2.0.2, mac: \"02:00:00:00:0a:02\"}
";

fn compiled() -> Compiled {
    let source = Source { name: "a.yaml".to_owned(), bytes: DOCUMENTS.as_bytes().to_vec() };
    compile(&parse(vec![source]).unwrap()).unwrap()
}

#[test]
fn each_slice_has_its_routes_and_all_have_links_and_neighbours() {
    let compiled = compiled();
    let program = &compiled.programs[0];
    let settings = Splice { slices: 3, bits: Bits::Shim, forward_martians: false };
    assert_eq!(program.settings, Settings::Splice(settings));
    let find = |slice: u8, prefix: &str| {
        let wanted = SlicedPrefix { slice, prefix: prefix.parse().unwrap() };
        let hop = program.entries.sliced().find(|(one, _)| *one == wanted)?.1;
        Some(program.next_hops[usize::from(hop.get())])
    };
    for slice in 0..3 {
        assert_eq!(find(slice, "10.1.0.1/32").unwrap().kind(), AdjacencyKind::Local);
        assert_eq!(find(slice, "10.2.0.0/24").unwrap().kind(), AdjacencyKind::Glean);
        assert_eq!(find(slice, "10.8.0.0/16").unwrap().kind(), AdjacencyKind::Glean);
        assert_eq!(find(slice, "10.2.0.2/32").unwrap().dst().to_string(), "02:00:00:00:0a:02");
    }
    let to = |slice| find(slice, "10.9.0.0/16").map(|hop| hop.dst().to_string());
    assert_eq!(to(0).as_deref(), Some("02:00:00:00:0a:01"));
    assert_eq!((to(1), to(2).as_deref()), (None, Some("02:00:00:00:0a:02")));
    assert_eq!(find(3, "10.2.0.0/24"), None);

    // A key names the route of its slice; an address, that of slice 0.
    let names = &compiled.names.networks[0];
    let of = |slice: u8| IpAddr::from(std::net::Ipv6Addr::from_bits(key(slice, 0x0a09_0001)));
    let text = |address| names.explain(address);
    assert_eq!(text(of(2)).as_deref(), Some("10.9.0.0/16 via 10.2.0.2 at 02:00:00:00:0a:02 dev b slice 2"));
    assert_eq!(text(of(1)), None);
    assert_eq!(text([10, 9, 0, 1].into()), text(of(0)));
    assert!(text(of(0)).unwrap().ends_with("dev a slice 0"));
}
