//! Networks of kind `extract`: their programs, and that unsound ones are refused.

use hue_control::compile;
use hue_intent::{Source, parse};
use hue_planes::extract::{Lane, Settings as Key};
use hue_planes::{Adjacency, Settings};
use hue_substrate::{Entries, Program};
use hue_tables::{NextHop, Pattern};

const DOCUMENTS: &str = "apiVersion: hueplane/v1
kind: Node
metadata: {name: n}
spec: {ports: [{name: p0}, {name: p1, mtu: 1400}]}
---
apiVersion: hueplane/v1
kind: Network
metadata: {name: bits}
spec:
  plane: {kind: extract, key: [{offset: 12, bytes: 2}, {offset: 14, mask: \"0xf0\"}]}
  ports:
    - {name: a, port: p0, mac: \"02:00:00:00:09:01\"}
    - {name: b, port: p1, mac: \"02:00:00:00:09:02\"}
  entries:
    - {match: \"0x080040\", port: b}
    - {match: \"0x080050\", port: b, destination: \"02:00:00:00:00:0a\"}
    - {match: \"0x080000/16\", action: drop}
    - {match: \"0x000010\", mask: \"0x000010\", port: b}
    - {match: \"0x86dd00/16\", action: drop}
    - {match: any, action: punt}
";

fn program() -> Program {
    let source = Source { name: "a.yaml".to_owned(), bytes: DOCUMENTS.as_bytes().to_vec() };
    compile(&parse(vec![source]).unwrap()).unwrap().programs.remove(0)
}

#[test]
fn entries_that_do_the_same_share_a_next_hop() {
    let program = program();
    let lanes = [(12, 0xff), (13, 0xff), (14, 0xf0)].map(|(offset, mask)| Lane { offset, mask });
    assert_eq!(program.settings, Settings::Extract(Key::new(&lanes).unwrap()));
    let (out, mac) = (program.ports[1].port, "02:00:00:00:00:0a".parse().unwrap());
    let rows = [
        Adjacency::out(out, 1400),
        Adjacency::out_with(out, 1400, Some(mac), None),
        Adjacency::drop(),
        Adjacency::local(),
    ];
    assert_eq!(program.next_hops, rows);
    let entry =
        |value: u128, mask: u128, hop| (Pattern::new(value << 104, mask << 104), NextHop::new(hop).unwrap());
    let entries = vec![
        entry(0x08_0040, 0xff_fff0, 0),
        entry(0x08_0050, 0xff_fff0, 1),
        entry(0x08_0000, 0xff_ff00, 2),
        entry(0x00_0010, 0x00_0010, 0),
        entry(0x86_dd00, 0xff_ff00, 2),
        entry(0, 0, 3),
    ];
    assert_eq!(program.entries, Entries::Ternary(entries));
}

/// Words of an error, and what makes a sound program have it.
type Fault = (&'static str, fn(&mut Program));

#[test]
fn an_unsound_program_is_refused() {
    let faults: [Fault; 5] = [
        ("names next hop 4 of 4", |program| {
            let Entries::Ternary(entries) = &mut program.entries else { panic!() };
            entries[0].1 = NextHop::new(4).unwrap();
        }),
        ("two routes to", |program| {
            let Entries::Ternary(entries) = &mut program.entries else { panic!() };
            entries[1].0 = entries[0].0;
        }),
        ("17 different masks: at most 16384 and 16", |program| {
            let masks = (0..17).map(|bit| (Pattern::new(0, 1 << bit), NextHop::new(0).unwrap()));
            program.entries = Entries::Ternary(masks.collect());
        }),
        ("16385 entries with 1 different masks", |program| {
            let all = (0..16_385).map(|number| (Pattern::new(number, u128::MAX), NextHop::new(0).unwrap()));
            program.entries = Entries::Ternary(all.collect());
        }),
        ("the network is not on that port", |program| {
            program.next_hops[0] = Adjacency::out(hue_demux::PortId::new(9), 1400);
        }),
    ];
    for (text, plant) in faults {
        let mut unsound = program();
        plant(&mut unsound);
        let error = unsound.check().expect_err(text).to_string();
        assert!(error.contains(text), "expected '{text}', found '{error}'");
    }
    let router = Program {
        settings: Settings::of(hue_planes::Kind::Ipv4),
        entries: Entries::none(hue_planes::Kind::Ipv4),
        ..program()
    };
    let error = router.check().unwrap_err().to_string();
    assert!(error.contains("a network of this kind has no rows that drop"), "{error}");
}
