//! Networks of kind `rofl` on a card: their labels in the trie, their rows of next hops and MAC addresses, and which ones are refused.

use hue_card::generated::PortMacRow;
use hue_planes::{AdjacencyKind, rofl};
use hue_substrate::flat;
use hue_tables::LabelTable;

use super::*;

fn image() -> Memory {
    let kinds =
        [Kind::Ipv4, Kind::Ipv6, Kind::Dual, Kind::Rofl].iter().fold(0, |all, kind| all | 1 << *kind as u32);
    Memory::new(regs::LAYOUT_SRAM, 4, [0; 4], 1024).with(regs::KINDS, kinds).with(regs::SRAM_WORDS, 8192)
}

/// Rows of next hops: the port, the router itself, a host, two routers.
fn network(number: u16, labels: &[u32], pointers_max: u16) -> Program {
    let program = program(number, 0, Vec::new());
    let (port, away) = (program.ports[0].clone(), |last| Mac([2, 1, 0, 0, 0, last]));
    let hops = [
        port.arrival(),
        Adjacency::local(),
        Adjacency::out_with(PORT, 1500, Some(away(1)), Some(port.mac)),
        Adjacency::forward(PORT, port.mac, away(2), 1500),
        Adjacency::forward(PORT, port.mac, away(3), 1500),
    ];
    let entry = |(label, at): (&u32, u16)| (u128::from(*label) << 96, hop(1 + at % 4));
    Program {
        settings: Settings::Rofl(rofl::Settings::new(32, pointers_max, 60).unwrap()),
        rows: vec![Claim { vid: program.vid, vport: 0, select: Match::Port(PORT) }],
        next_hops: hops.to_vec(),
        entries: Entries::Nearest(labels.iter().zip(0..).map(entry).collect()),
        ..program
    }
}

/// Gives the store a network's labels, as software does, and the card what changed.
fn store(card: &mut Card<Memory>, dag: &mut Dag, program: &Program) {
    let Settings::Rofl(settings) = program.settings else { panic!() };
    let routes = flat::routes(program.entries.labels(), &program.next_hops, settings);
    let mut changes: Vec<_> = dag.routes::<u128>(program.vid).map(|(prefix, _)| (prefix, None)).collect();
    changes.extend(routes.iter().map(|(prefix, hop)| (*prefix, Some(*hop))));
    dag.apply(program.vid, &changes).unwrap();
    assert!(card.follow(&dag.take_deltas()).unwrap().is_empty());
}

fn bring(card: &mut Card<Memory>, number: u16) -> Result<(), SubstrateError> {
    while !card.bring_table(vid(number), 16)? {}
    card.steer(vid(number), false)
}

/// The card has the row of each key's closest label; if the network holds that, and it is not the key, the row behind all others.
fn agrees(card: &Card<Memory>, program: &Program, keys: &[u32]) {
    let table = LabelTable::new(program.entries.labels());
    for key in keys.iter().flat_map(|key| [*key, key.wrapping_add(1), key.wrapping_sub(1)]) {
        let key = u128::from(key) << 96;
        let wanted = table.closest(key).map(|(label, word)| {
            let held = program.next_hops[usize::from(word)].kind() != AdjacencyKind::Forward;
            if held && label != key { hop(program.next_hops.len() as u16) } else { hop(word) }
        });
        assert_eq!(card.answer(program.vid, key), wanted, "{key:032x}");
    }
}

#[test]
fn labels_are_in_the_trie_and_addresses_beside_it() {
    let mut card = Card::new(image()).unwrap();
    card.follow_store().unwrap();
    let mut dag = Dag::new(Limits::default()).unwrap();
    dag.enable_weighed_deltas(card.description().words_of_node().unwrap());
    let program = network(3, &[5, 0x8000_0000, 0x8000_0003, u32::MAX], 0);
    card.load_in_software(std::slice::from_ref(&program)).unwrap();
    // Without a table of its labels the network stays where it is.
    let why = bring(&mut card, 3).unwrap_err().to_string();
    assert_eq!(why, "network 'net3' needs 1 tables of flat labels in software's store: image memo has 0");
    dag.add_network::<u128>(vid(3)).unwrap();
    store(&mut card, &mut dag, &program);
    bring(&mut card, 3).unwrap();
    let keys = [0, 5, 0x1000_0000, 0x8000_0000, 0x8000_0003, 0xf000_0000, u32::MAX];
    agrees(&card, &program, &keys);

    let net = u32::from(card.net(vid(3)).unwrap());
    let row: NetworkRow = card.device().read_row(net).unwrap();
    assert_eq!((row.kind, row.software, row.root_ipv6, row.hop_count), (Kind::Rofl as u8, false, 4, 6));
    let mac =
        |card: &mut Card<Memory>, port| card.device().read_row::<PortMacRow>(net * 4 + port).unwrap().mac;
    assert_eq!([0, 1].map(|port| mac(&mut card, port)), [0, own(3).to_u64()]);
    let rows: Vec<HopRow> =
        (0..6).map(|at| card.device().read_row(u32::from(row.hop_base) + at).unwrap()).collect();
    let found: Vec<(u8, u8)> = rows.iter().map(|row| (row.kind, row.port)).collect();
    assert_eq!(found[1..], [(1, 0), (3, 5), (3, 1), (3, 1), (2, 0)], "own, host, routers, held");

    // Other labels come in software; then the network is back.
    let next = network(3, &[0x4000_0000, 5, 0x8000_0003], 0);
    card.load_in_software(std::slice::from_ref(&next)).unwrap();
    store(&mut card, &mut dag, &next);
    bring(&mut card, 3).unwrap();
    agrees(&card, &next, &keys);
    agrees(&card, &next, &[0x4000_0000]);
}

#[test]
fn tables_of_the_cards_own_have_the_labels_too_and_next_hops_may_change() {
    let mut card = Card::new(image()).unwrap();
    let program = network(1, &[5, 0x8000_0000], 0);
    card.load(std::slice::from_ref(&program)).unwrap();
    let moved = Adjacency::forward(PORT, own(1), Mac([2, 9, 0, 0, 0, 9]), 1500);
    card.update(vid(1), &Update::of_hops(&[(hop(3), moved)])).unwrap();
    let changed = card.program(vid(1)).unwrap();
    assert_eq!((changed.next_hops[3], &changed.entries), (moved, &program.entries));
    let net = u32::from(card.net(vid(1)).unwrap());
    let row: NetworkRow = card.device().read_row(net).unwrap();
    let hop: HopRow = card.device().read_row(u32::from(row.hop_base) + 3).unwrap();
    assert_eq!((row.hop_count, hop.dst), (6, moved.dst().to_u64()));
}

#[test]
fn networks_that_cache_pointers_or_have_many_labels_are_refused_by_name() {
    let mut card = Card::new(image()).unwrap();
    let text = |result: Result<(), SubstrateError>| result.unwrap_err().to_string();
    let caches = text(card.load(&[network(1, &[5], 7)]));
    assert_eq!(caches, "network 'net1' needs 7 cached pointers: image memo has 0");
    card.load_in_software(&[network(1, &[5], 7)]).unwrap();
    assert_eq!(text(card.steer(vid(1), false)), caches);
    let labels: Vec<u32> = (0..8193).collect();
    let many = text(card.load(&[network(2, &labels, 0)]));
    assert_eq!(many, "network 'net2' needs 32772 bytes of flat labels: image memo has 32768");
    // Earlier layouts do not have the table, and no image of theirs has the kind.
    let old = image().with(regs::KINDS, 1 << Kind::Ipv4 as u32);
    let error = text(Card::new(old).unwrap().load(&[network(1, &[5], 0)]));
    assert!(error.contains("has no kind rofl"), "{error}");
}
