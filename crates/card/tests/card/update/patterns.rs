//! Entries of networks of kinds `extract` and `mpls` on a card: where their rows are, in which order they change, and who finds no room.

use hue_card::generated::{LaneRow, PatternHopRow, PatternRow};
use hue_planes::extract::{self, Lane};
use hue_planes::mpls;
use hue_tables::Pattern;

use super::*;

/// An image with so many rows for entries.
fn image(rows: u32) -> Memory {
    let kinds = [Kind::Ipv4, Kind::Extract, Kind::Mpls].iter().fold(0, |all, kind| all | 1 << *kind as u32);
    let memory = Memory::new(regs::LAYOUT_SRAM, 4, [0; 4], 1024);
    memory.with(regs::KINDS, kinds).with(regs::SRAM_WORDS, 4096).with(regs::PATTERN_ROWS, rows)
}

/// A network whose entries compare a byte with 0, 1 and so on. Those of odd values send.
fn network(number: u16, entries: u8) -> Program {
    let lanes = [Lane { offset: number as u8, mask: 0xff }];
    let entry = |value: u8| (Pattern::new(u128::from(value) << 120, 0xff << 120), hop(u16::from(value) % 2));
    Program {
        settings: Settings::Extract(extract::Settings::new(&lanes).unwrap()),
        next_hops: vec![Adjacency::drop(), Adjacency::out(PORT, 1500)],
        entries: Entries::Ternary((0..entries).map(entry).collect()),
        ..program(number, 0, Vec::new())
    }
}

fn root(card: &mut Card<Memory>, number: u16) -> u64 {
    let net = card.net(vid(number)).unwrap();
    card.device().read_row::<NetworkRow>(u32::from(net)).unwrap().root
}

#[test]
fn rows_are_where_the_card_looks_for_them() {
    let mut card = Card::new(image(32)).unwrap();
    card.load(&[network(3, 1), network(1, 5)]).unwrap();
    let net = card.net(vid(1)).unwrap();
    // A network's first group is behind those of the network before. Four banks have eight rows each.
    let start = root(&mut card, 1) as u32 & 0xfff;
    assert_eq!(root(&mut card, 1), u64::from(start) | 2 << 12);
    for at in 0..8 {
        let place = at % 4 * 8 + start + at / 4;
        let pattern: PatternRow = card.device().read_row(place).unwrap();
        let action: PatternHopRow = card.device().read_row(place).unwrap();
        let expected = match at {
            0..5 => {
                let (value_high, mask_high) = (u64::from(at) << 56, 0xff << 56);
                PatternRow { value_high, mask_high, ..PatternRow::default() }
            }
            // A value with a bit that is not compared: no key has it.
            _ => PatternRow { value_low: 1, ..PatternRow::default() },
        };
        assert_eq!((pattern, action.net), (expected, net), "entry {at}");
        assert_eq!(action.hop, if at < 5 { at as u16 % 2 } else { u16::MAX });
    }
    let lanes = [0, 1].map(|lane| card.device().read_row::<LaneRow>(u32::from(net) * 16 + lane).unwrap());
    assert_eq!(lanes, [LaneRow { offset: 1, mask: 0xff }, LaneRow::default()]);
    // Without its network, an index has no lanes.
    card.unload(&[vid(1)]).unwrap();
    assert_eq!(card.device().read_row::<LaneRow>(u32::from(net) * 16).unwrap(), LaneRow::default());
}

#[test]
fn changed_entries_are_a_new_run_that_a_hold_makes_valid() {
    let mut card = Card::new(image(32)).unwrap();
    card.load(&[network(1, 5)]).unwrap();
    let old = root(&mut card, 1) as u32 & 0xfff;
    drop(card.device().registers().take_journal());
    card.load(&[network(1, 6)]).unwrap();
    let new = root(&mut card, 1) as u32 & 0xfff;
    let in_run = |index: u32, start| (start..start + 2).contains(&(index % 8));
    for one in card.device().registers().take_journal() {
        let (table, index) = one.row;
        if [regs::PATTERN.id, regs::PATTERN_HOP.id].contains(&table) {
            assert!(in_run(index, new) && !in_run(index, old) && !one.held, "row {index}");
        } else if [regs::LANE.id, regs::NETWORK.id].contains(&table) {
            assert!(one.held, "table {table}, row {index}");
        }
    }
    // The same entries keep their rows.
    card.load(&[network(1, 6)]).unwrap();
    assert_eq!(root(&mut card, 1) as u32 & 0xfff, new);
}

/// A network that swaps label 16 for another one, and drops the next one.
fn swapping(label: &[u32]) -> Program {
    Program {
        settings: Settings::Mpls(mpls::Settings::default()),
        next_hops: vec![
            Adjacency::drop(),
            Adjacency::labels(label, 2).unwrap(),
            Adjacency::out_with(PORT, 1500, Some(Mac([2, 0, 0, 0, 0, 9])), Some(Mac([2, 0, 0, 0, 0, 1]))),
        ],
        entries: Entries::Ternary(vec![(mpls::pattern_of(16), hop(1)), (mpls::pattern_of(17), hop(0))]),
        ..program(1, 0, Vec::new())
    }
}

#[test]
fn a_label_is_beside_the_row_by_which_its_packets_leave() {
    let mut card = Card::new(image(32)).unwrap();
    let action = |card: &mut Card<Memory>, entry: u32| {
        let start = root(card, 1) as u32 & 0xfff;
        card.device().read_row::<PatternHopRow>(entry * 8 + start).unwrap()
    };
    card.load(&[swapping(&[200])]).unwrap();
    let net = card.net(vid(1)).unwrap();
    assert_eq!(action(&mut card, 0), PatternHopRow { net, hop: 2, label: 200 });
    assert_eq!(action(&mut card, 1), PatternHopRow { net, hop: 0, label: 0 });
    let start = root(&mut card, 1) as u32 & 0xfff;
    let pattern: PatternRow = card.device().read_row(start).unwrap();
    assert_eq!((pattern.value_high, pattern.mask_high), (16 << 44, 0xfffff << 44));
    // The same pattern with another label is a new run, also if only the row of the label changes.
    let old = root(&mut card, 1);
    card.load(&[swapping(&[201])]).unwrap();
    assert_ne!(root(&mut card, 1), old);
    let label = Adjacency::labels(&[202], 2).unwrap();
    card.update(vid(1), &Update { hops: &[(hop(1), label)], ..Update::default() }).unwrap();
    assert_eq!(action(&mut card, 0).label, 202);
    // Others are refused by name, and nothing changes.
    for labels in [&[][..], &[200, 300], &[200, 300, 301]] {
        let error = card.load(&[swapping(labels)]).unwrap_err().to_string();
        assert!(error.contains("needs 1 entries that push or pop labels: image memo has 0"), "{error}");
        assert_eq!(action(&mut card, 0).label, 202);
    }
    // Entries that name the neighbour's row have no label to send.
    let mut direct = swapping(&[200]);
    direct.entries = Entries::Ternary(vec![(mpls::pattern_of(16), hop(2))]);
    assert!(card.load(&[direct]).is_err());
}

#[test]
fn networks_that_find_no_rows_are_refused_by_name() {
    let mut card = Card::new(image(32)).unwrap();
    let text = |result: Result<(), SubstrateError>| result.unwrap_err().to_string();
    let many = text(card.load(&[network(1, 33)]));
    assert_eq!(many, "network 'net1' needs 33 entries of one network: image memo has 32");
    card.load(&[network(1, 20)]).unwrap();
    let full = text(card.load(&[network(2, 13)]));
    let lacks = "needs 4 groups of four entries in one run, beside other networks' runs: image memo has 8";
    assert_eq!(full, format!("network 'net2' {lacks}"));
    // A network in software has none, and comes back when there are some.
    card.steer(vid(1), true).unwrap();
    card.load(&[network(2, 13)]).unwrap();
    let error = card.steer(vid(1), false).unwrap_err().to_string();
    assert!(error.contains("network 'net1' needs 5 groups of four entries"), "{error}");
    card.unload(&[vid(2)]).unwrap();
    card.steer(vid(1), false).unwrap();
}

#[test]
fn rows_for_entries_are_checked() {
    for rows in [4, 12, 8192] {
        let error = Card::new(image(rows)).err().unwrap().to_string();
        assert!(error.contains("rows of PATTERN") && error.contains(&rows.to_string()), "{error}");
    }
    // Earlier layouts do not have the register.
    let old = image(32).with(regs::VERSION, regs::VERSION_RESET & regs::VERSION_MAJOR | 9);
    let mut card = Card::new(old).unwrap();
    assert_eq!(card.description().pattern_rows, 0);
    let error = card.load(&[network(1, 1)]).unwrap_err().to_string();
    assert!(error.contains("has no kind extract"), "{error}");
}
