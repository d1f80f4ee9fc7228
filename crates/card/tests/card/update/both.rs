//! A network with tables of both widths that follow a store: they come and go together, and change one at a time.

use hue_planes::Keys;
use hue_tables::{Key, Prefix};

use super::*;

/// An image with external memory of this many words, for kinds ipv4, ipv6 and dual.
fn sram(words: u32) -> Memory {
    let kinds = [Kind::Ipv4, Kind::Ipv6, Kind::Dual].iter().fold(0, |all, kind| all | 1 << *kind as u32);
    let memory = Memory::new(regs::LAYOUT_SRAM, 4, [0; 4], 64);
    memory.with(regs::KINDS, kinds).with(regs::SRAM_WORDS, words)
}

fn both(number: u16) -> Program {
    let settings = Settings::of(Kind::Dual);
    Program { settings, entries: Entries::Dual(Vec::new(), Vec::new()), ..program(number, 9, Vec::new()) }
}

fn root_rows(card: &mut Card<Memory>) -> Vec<[u64; 2]> {
    let row = |number| {
        let net = card.net(vid(number)).unwrap();
        let row: NetworkRow = card.device().read_row(u32::from(net)).unwrap();
        assert_eq!(row.kind, Kind::Dual as u8);
        [row.root, row.root_ipv6]
    };
    (1..3).map(row).collect()
}

/// A route of one of two networks.
fn change<K: Key>(
    store: &mut Dag,
    oracle: &mut Oracle<K>,
    (number, prefix, to): (u16, Prefix<K>, Option<u16>),
) -> Vec<K> {
    match to.map(hop) {
        Some(to) => oracle.insert(prefix, to),
        None => oracle.remove(prefix),
    };
    store.apply(vid(number), &[(prefix, to.map(hop))]).unwrap();
    vec![prefix.addr(), prefix.last(), prefix.last().next().unwrap_or_default()]
}

proptest! {
    /// With little memory, some networks do not arrive, or fall back. None is ever there with one family only.
    #[test]
    fn both_tables_of_a_network_follow_a_store(
        words in prop::sample::select(vec![120u32, 400, 4096]),
        steps in prop::collection::vec(
            (1u16..3, 0u8..5, 0u32..4, 0u32..20, 0u8..=128, prop::option::weighted(0.75, 0u16..9)), 1..80)
    ) {
        let mut card = Card::new(sram(words)).unwrap();
        card.follow_store().unwrap();
        let mut store = Dag::new(Limits::default()).unwrap();
        store.enable_weighed_deltas(card.description().words_of_node().unwrap());
        card.load_in_software(&[both(1), both(2)]).unwrap();
        (1..3).for_each(|number| store.add_dual_network(vid(number)).unwrap());
        prop_assert!(card.follow(&store.take_deltas()).unwrap().is_empty());
        let mut want: BTreeMap<u16, (Oracle<u32>, Oracle<u128>)> = BTreeMap::new();
        let (mut keys4, mut keys6) = (vec![0u32, u32::MAX], vec![0u128, u128::MAX]);
        for (number, what, high, low, len, to) in steps {
            let (four, six) = want.entry(number).or_default();
            let roots = root_rows(&mut card);
            match what {
                0 => match card.bring_table(vid(number), 2) {
                    Ok(true) => card.steer(vid(number), false).unwrap(),
                    Ok(false) => prop_assert!(!card.has_table(vid(number))),
                    Err(error) => prop_assert!(matches!(error, SubstrateError::Words { .. }), "{}", error),
                },
                1 | 2 => {
                    let address = high << 30 | low << 15 | low << 3 | low;
                    let prefix = Prefix::containing(address, len / 4);
                    keys4.extend(change(&mut store, four, (number, prefix, to)));
                }
                _ => {
                    let address = u128::from(high) << 126 | u128::from(low) << 90 | u128::from(low) << 20;
                    keys6.extend(change(&mut store, six, (number, Prefix::containing(address, len), to)));
                }
            }
            for (lost, error) in card.follow(&store.take_deltas()).unwrap() {
                prop_assert!(matches!(error, SubstrateError::Words { .. }), "{}", error);
                prop_assert!(!card.has_table(lost) && card.is_in_software(lost) == Some(true));
            }
            // A change of one family leaves the other one's root as it is.
            let now = root_rows(&mut card);
            for (number, (before, now)) in (1..3).zip(roots.iter().zip(&now)) {
                if what > 0 && card.is_in_software(vid(number)) == Some(false) {
                    let other = usize::from(what < 3);
                    prop_assert_eq!(before[other], now[other]);
                }
            }
            for (number, (four, six)) in &want {
                let is_there = card.has_table(vid(*number));
                prop_assert!(is_there || card.is_in_software(vid(*number)) == Some(true));
                if is_there {
                    for key in &keys4 {
                        let found = four.lookup(*key).map(|(_, hop)| hop);
                        prop_assert_eq!(card.answer(vid(*number), *key), found);
                    }
                    for key in &keys6 {
                        let found = six.lookup(*key).map(|(_, hop)| hop);
                        prop_assert_eq!(card.answer(vid(*number), *key), found);
                    }
                }
            }
        }
        (1..3).for_each(|number| store.remove_network(vid(number)).unwrap());
        prop_assert!(card.follow(&store.take_deltas()).unwrap().is_empty());
        card.unload(&[vid(1), vid(2)]).unwrap();
        // A load waits for the words that nobody uses any more.
        card.load_in_software(&[both(1)]).unwrap();
        prop_assert_eq!(card.capacity().table_bytes, 0, "words are left");
    }
}

/// If routes of one width have no room, those of the other and the next hops are taken back; or what fits is made.
#[test]
fn an_update_of_both_widths_is_made_as_a_whole_or_as_far_as_there_is_room() {
    let mut card = Card::new(sram(4096)).unwrap();
    let (four, six): (Prefix4, Prefix<u128>) =
        ("10.0.0.0/8".parse().unwrap(), "2001:db8::/32".parse().unwrap());
    let entries = Entries::Dual(vec![(four, hop(2))], vec![(six, hop(3))]);
    card.load(&[Program { entries, ..both(1) }]).unwrap();
    let state = |card: &mut Card<Memory>| {
        let net = card.net(vid(1)).unwrap();
        let row: NetworkRow = card.device().read_row(u32::from(net)).unwrap();
        let share = card.memory(&HashMap::new()).networks[0];
        let program = card.programs().next().unwrap();
        (program.next_hops.clone(), program.entries.clone(), row.hop_count, share.own)
    };
    let before = state(&mut card);
    let hops = [(hop(0), neighbour(1, 77)), (hop(12), neighbour(1, 78))];
    let v4 = [(four, None), ("10.1.0.0/16".parse().unwrap(), Some(hop(12)))];
    let address = |n: u16| u128::from(n).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
    let v6: Vec<_> = (1..400).map(|n| (Prefix::containing(address(n), 128), Some(hop(n % 9)))).collect();
    let update = Update { hops: &hops, groups: &[], v4: &v4, v6: &v6, mode: Mode::Whole };
    for mode in [Mode::Whole, Mode::Each] {
        let refused = card.update(vid(1), &update.with_mode(mode)).unwrap_err();
        assert!(matches!(refused, SubstrateError::Words { .. }) && refused.is_full(), "{refused}");
        assert_eq!(state(&mut card), before, "{mode:?}");
    }
    let refusals = card.update(vid(1), &update.with_mode(Mode::Fitting)).unwrap();
    assert!(refusals.error.as_ref().is_some_and(SubstrateError::is_full), "{refusals:?}");
    let fits: Vec<_> = (0..).zip(&v6).filter(|(at, _)| !refusals.at.contains(&(v4.len() + at))).collect();
    assert!(fits.len() > 20 && fits.len() < v6.len(), "{} fit", fits.len());
    let program = card.programs().next().unwrap();
    assert_eq!((&program.next_hops[0], program.next_hops.len()), (&hops[0].1, 13));
    let Entries::Dual(narrow, wide) = &program.entries else { panic!("{:?}", program.entries) };
    assert_eq!(narrow[..], [(v4[1].0, hop(12))]);
    assert_eq!(wide.len(), 1 + fits.len());
    assert!(fits.iter().all(|(_, (prefix, hop))| wide.contains(&(*prefix, hop.unwrap()))));
    card.unload(&[vid(1)]).unwrap();
    card.load(&[both(1)]).unwrap();
}

/// The card's own tables: one account for both families, and keys of both widths in one network.
#[test]
fn a_dual_network_has_routes_of_both_families() {
    assert_eq!(Kind::Dual.limits().keys, Keys::Dual);
    let mut card = Card::new(sram(4096)).unwrap();
    let (four, six): (Prefix4, Prefix<u128>) =
        ("10.0.0.0/8".parse().unwrap(), "2001:db8::/32".parse().unwrap());
    let entries = Entries::Dual(vec![(four, hop(2))], vec![(six, hop(3))]);
    card.load(&[Program { entries, ..both(1) }]).unwrap();
    let share = card.memory(&HashMap::new()).networks[0];
    assert_eq!((share.vid, share.routes), (vid(1), 2));
    let wide: Prefix<u128> = "2001:db8:1::/48".parse().unwrap();
    card.update(vid(1), &Update::of_routes(&[(wide, Some(hop(1)))])).unwrap();
    card.update(vid(1), &Update::of_routes(&[(four, None)])).unwrap();
    let entries = Entries::Dual(Vec::new(), vec![(six, hop(3)), (wide, hop(1))]);
    assert_eq!(card.programs().next().unwrap().entries, entries);
    assert_eq!(card.memory(&HashMap::new()).networks[0].routes, 2);
    // An image without the kind has no place for it.
    let mut other = Card::new(dag36(4096, 64)).unwrap();
    let error = other.load(&[both(1)]).unwrap_err().to_string();
    assert!(error.contains("has no kind dual; choose an image that has it"), "{error}");
}
