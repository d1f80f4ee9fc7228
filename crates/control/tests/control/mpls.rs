//! Networks of kind `mpls`: their programs, and that unsound ones are refused.

use hue_control::{bound_to_software, compile};
use hue_intent::{Source, parse};
use hue_planes::mpls::{self, Ttl};
use hue_planes::{Adjacency, Settings};
use hue_substrate::{Entries, Program};
use hue_tables::NextHop;
use hue_wire::Mac;

const DOCUMENTS: &str = "apiVersion: hueplane/v1
kind: Node
metadata: {name: n}
spec: {ports: [{name: p0}, {name: p1, mtu: 1400}]}
---
apiVersion: hueplane/v1
kind: Network
metadata: {name: red}
spec:
  plane: {kind: mpls, ttl: pipe}
  ports:
    - {name: a, port: p0, mac: \"02:00:00:00:09:01\"}
    - {name: b, port: p1, mac: \"02:00:00:00:09:02\"}
  labels:
    - {label: 100, swap: 200, push: [300], port: b, neighbour: \"02:00:00:00:00:0b\"}
    - {label: 101, push: [300], port: b, neighbour: \"02:00:00:00:00:0b\"}
    - {label: 102, pop: true, port: b, neighbour: \"02:00:00:00:00:0b\"}
    - {label: 103, pop: true, port: b, neighbour: \"02:00:00:00:00:0b\"}
    - {label: 104, action: drop}
    - {label: 105, action: punt}
";

fn program() -> Program {
    let source = Source { name: "a.yaml".to_owned(), bytes: DOCUMENTS.as_bytes().to_vec() };
    compile(&parse(vec![source]).unwrap()).unwrap().programs.remove(0)
}

#[test]
fn labels_name_rows_that_name_neighbours() {
    let program = program();
    assert_eq!(program.settings, Settings::Mpls(mpls::Settings { ttl: Ttl::Pipe }));
    let [to, from] = ["02:00:00:00:00:0b", "02:00:00:00:09:02"].map(|mac| mac.parse::<Mac>().ok());
    let labels = |labels: &[u32]| Adjacency::labels(labels, 0).unwrap();
    let rows = [
        Adjacency::out_with(program.ports[1].port, 1400, to, from),
        labels(&[200, 300]),
        labels(&[101, 300]),
        labels(&[]),
        Adjacency::drop(),
        Adjacency::local(),
    ];
    assert_eq!(program.next_hops, rows);
    let entry = |(label, row)| (mpls::pattern_of(label), NextHop::new(row).unwrap());
    let entries = [(100, 1), (101, 2), (102, 3), (103, 3), (104, 4), (105, 5)].map(entry);
    assert_eq!(program.entries, Entries::Ternary(entries.to_vec()));
}

#[test]
fn unsound_rows_are_refused() {
    let wrong = |plant: fn(&mut Program)| {
        let mut program = program();
        plant(&mut program);
        program.check().unwrap_err().to_string()
    };
    assert_eq!(program().check(), Ok(()));
    for plant in [
        (|program| program.next_hops[1] = Adjacency::labels(&[16], 6).unwrap()) as fn(&mut Program),
        |program| program.next_hops[1] = Adjacency::labels(&[16], 2).unwrap(),
        |program| program.next_hops[1] = Adjacency::labels(&[16], 4).unwrap(),
    ] {
        assert!(wrong(plant).contains("the next hop after its labels is no port"), "{}", wrong(plant));
    }
    // No other kind has such rows.
    let mut other = program();
    other.settings = Settings::Extract(hue_planes::extract::Settings::default());
    assert_eq!(other.next_hops[1], Adjacency::labels(&[200, 300], 0).unwrap());
    let error = other.check().unwrap_err().to_string();
    assert!(error.contains("a network of this kind has no rows with labels"), "{error}");
}

#[test]
fn networks_that_push_or_pop_are_bound_to_software() {
    let why = |text: &str| {
        let source = Source { name: "a.yaml".to_owned(), bytes: text.as_bytes().to_vec() };
        bound_to_software(&parse(vec![source]).unwrap().networks[0], false)
    };
    let swaps: Vec<&str> =
        DOCUMENTS.lines().filter(|line| !line.contains("push:") && !line.contains("pop:")).collect();
    assert_eq!(why(&swaps.join("\n")), None);
    for line in DOCUMENTS.lines().filter(|line| line.contains("push:") || line.contains("pop:")) {
        let text = [&swaps[..], &[line]].concat().join("\n");
        assert!(why(&text).unwrap().contains("push or pop"), "{line}");
    }
}
