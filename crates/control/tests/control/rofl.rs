//! Networks of kind `rofl`: their programs, and that unsound ones are refused.

use hue_control::{bound_to_software, compile};
use hue_intent::{Source, parse};
use hue_planes::rofl::Settings as Ring;
use hue_planes::{Adjacency, Settings};
use hue_substrate::{Entries, Program};
use hue_tables::NextHop;

const DOCUMENTS: &str = "apiVersion: hueplane/v1
kind: Node
metadata: {name: n}
spec: {ports: [{name: p0}, {name: p1, mtu: 1400}]}
---
apiVersion: hueplane/v1
kind: Network
metadata: {name: flat}
spec:
  plane: {kind: rofl, label_bits: 40, pointers_max: 7}
  ports:
    - {name: a, port: p0, mac: \"02:00:00:00:08:01\"}
    - {name: b, port: p1, mac: \"02:00:00:00:08:02\"}
  flat_labels:
    - {label: \"0x0000000003\", port: b, neighbour: \"02:00:00:00:00:0a\"}
    - {label: \"0x0000000001\", own: true}
    - {label: \"0x0000000002\", port: b, neighbour: \"02:00:00:00:00:0a\"}
    - {label: \"0xff00000000\", port: b, neighbour: \"02:00:00:00:00:0a\", resident: true}
";

fn program() -> Program {
    let source = Source { name: "a.yaml".to_owned(), bytes: DOCUMENTS.as_bytes().to_vec() };
    compile(&parse(vec![source]).unwrap()).unwrap().programs.remove(0)
}

#[test]
fn the_rows_of_ports_come_first_and_labels_at_one_place_share_one() {
    let program = program();
    assert_eq!(program.settings, Settings::Rofl(Ring::new(40, 7, 60).unwrap()));
    let [a, b] = [0, 1].map(|at| program.ports[at].clone());
    let mac = "02:00:00:00:00:0a".parse().unwrap();
    let rows = [
        Adjacency::out_with(a.port, 1500, None, Some(a.mac)),
        Adjacency::out_with(b.port, 1400, None, Some(b.mac)),
        Adjacency::forward(b.port, b.mac, mac, 1400),
        Adjacency::local(),
        Adjacency::out_with(b.port, 1400, Some(mac), Some(b.mac)),
    ];
    assert_eq!(program.next_hops, rows);
    let entries = [(3_u128, 2), (1, 3), (2, 2), (0xff << 32, 4)];
    let entry = |(label, hop)| (label << 88, NextHop::new(hop).unwrap());
    assert_eq!(program.entries, Entries::Nearest(entries.map(entry).to_vec()));
}

#[test]
fn networks_that_cache_pointers_are_bound_to_software() {
    let why = |documents: &str| {
        let source = Source { name: "a.yaml".to_owned(), bytes: documents.as_bytes().to_vec() };
        let intent = parse(vec![source]).unwrap();
        bound_to_software(&intent.networks[0], false)
    };
    let pointers =
        "it caches pointers, which packets on the card cannot teach (pointers_max: 0 turns that off)";
    assert_eq!(why(DOCUMENTS), Some(pointers));
    assert_eq!(why(&DOCUMENTS.replace(", pointers_max: 7", "")), Some(pointers), "that is the default");
    assert_eq!(why(&DOCUMENTS.replace("pointers_max: 7", "pointers_max: 0")), None);
}

/// Words of an error, and what makes a sound program have it.
type Fault = (&'static str, fn(&mut Program));

#[test]
fn an_unsound_program_is_refused() {
    fn labels(program: &mut Program) -> &mut Vec<(u128, NextHop)> {
        let Entries::Nearest(labels) = &mut program.entries else { panic!() };
        labels
    }
    let faults: [Fault; 5] = [
        ("names next hop 5 of 5", |program| labels(program)[0].1 = NextHop::new(5).unwrap()),
        ("two routes to", |program| labels(program)[1].0 = labels(program)[0].0),
        ("is longer than 40 bits", |program| labels(program)[0].0 |= 1),
        ("16385 labels: at most 16384", |program| {
            *labels(program) = (0..16_385).map(|one| (one << 88, NextHop::new(3).unwrap())).collect();
        }),
        ("the first next hops are not the ports in their order", |program| program.next_hops.swap(0, 1)),
    ];
    for (text, plant) in faults {
        let mut unsound = program();
        plant(&mut unsound);
        let error = unsound.check().expect_err(text).to_string();
        assert!(error.contains(text), "expected '{text}', found '{error}'");
    }
}
