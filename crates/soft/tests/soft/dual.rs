//! Networks of kind `dual` in the engine: large batches of both families and of other kinds, one quota, changes of kind.

use hue_demux::PortId;
use hue_planes::ipv4::Adjacency;
use hue_planes::{Kind, Reason, Settings, dual, ipv4, ipv6};
use hue_soft::{BATCH_MAX, Batch, Fate, Soft};
use hue_substrate::{Entries, Mode, Program, Substrate, SubstrateError, Update};
use hue_tables::{Limits, NextHop, Prefix4, Prefix6, TableError};
use proptest::prelude::*;

use crate::common::{hop, mac, packet, prefix, program, soft, vid};

fn prefix6(text: &str) -> Prefix6 {
    text.parse().unwrap()
}

fn routes6() -> Vec<(Prefix6, NextHop)> {
    vec![
        (prefix6("2001:db8::/32"), hop(2)),
        (prefix6("2001:db8:1::/48"), hop(1)),
        (prefix6("2001:db8::1/128"), hop(0)),
    ]
}

/// A network with the routes of [`program`] and those of IPv6.
fn dual(id: u16) -> Program {
    let program = program(id);
    let entries = Entries::Dual(program.entries.lpm32().to_vec(), routes6());
    Program { settings: Settings::of(Kind::Dual), entries, ..program }
}

fn six(id: u16) -> Program {
    Program { settings: Settings::of(Kind::Ipv6), entries: Entries::Lpm128(routes6()), ..program(id) }
}

/// A valid UDP packet to an IPv6 address.
fn packet6(dst: hue_wire::Mac, address: u128) -> Vec<u8> {
    let mut bytes = dst.0.to_vec();
    bytes.extend([2, 9, 9, 9, 9, 9, 0x86, 0xdd, 0x60, 0, 0, 0, 0, 8, 17, 64]);
    bytes.extend((0x2001_0db9_u128 << 96 | 9).to_be_bytes());
    bytes.extend(address.to_be_bytes());
    bytes.extend([7; 8]);
    bytes
}

/// What happens to frames that arrive together: network, outcome and port, and the bytes.
fn run(soft: &mut Soft, frames: &[Vec<u8>]) -> Vec<(u16, Reason, PortId, Vec<u8>)> {
    let mut batch = Batch::new();
    frames.iter().for_each(|frame| assert!(batch.push(PortId::new(0), 0, frame)));
    let mut found = vec![None; frames.len()];
    soft.run(&mut batch, |output| {
        let Fate::Network { vid, outcome, egress, .. } = output.fate else { panic!("{:?}", output.fate) };
        found[output.frame] = Some((vid.get(), outcome, egress, output.bytes.to_vec()));
    });
    found.into_iter().map(Option::unwrap).collect()
}

fn outcome(soft: &mut Soft, frame: Vec<u8>) -> Reason {
    run(soft, &[frame])[0].1
}

const ADDRESSES6: [u128; 5] = [
    0x2001_0db8_0009 << 80 | 9,
    0x2001_0db8_0001 << 80 | 9,
    0x2001_0db8 << 96 | 1,
    0x2001_0dba << 96,
    // Its first 32 bits have a route of IPv4.
    0x0a09_0909 << 96,
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    /// Frames of a dual network, in batches with those of networks of one family, have the outcomes of networks of their family
    /// with the same routes.
    #[test]
    fn batches_of_all_kinds_give_each_packet_its_own_familys_result(
        picks in prop::collection::vec((1..4u16, any::<bool>(), 0..5usize), 1..2 * BATCH_MAX),
    ) {
        let (mut mixed, mut alone) = (soft(), soft());
        // Network 1 is the dual one. Alone, it is two networks.
        mixed.load(&[dual(1), program(2), six(3)]).unwrap();
        let same_hops = |program: Program| Program { next_hops: dual(1).next_hops, ..program };
        alone.load(&[program(1), program(2), six(3)]).unwrap();
        let frame = |id: u16, v6: bool, at: usize| match v6 {
            true => packet6(mac(id, 0), ADDRESSES6[at]),
            false => packet(mac(id, 0), [[10, 9, 9, 9], [10, 1, 0, 1], [10, 0, 0, 1], [11, 0, 0, 1], [32, 1, 13, 184]][at]),
        };
        let frames: Vec<_> = picks.iter().map(|(id, v6, at)| frame(*id, *v6, *at)).collect();
        let found = run(&mut mixed, &frames);
        let four = run(&mut alone, &frames);
        let as_six = Program { name: "net1".to_owned(), ..same_hops(six(1)) };
        alone.load(&[as_six]).unwrap();
        let wide = run(&mut alone, &frames);
        for (((id, v6, _), found), (four, wide)) in picks.iter().zip(&found).zip(four.iter().zip(&wide)) {
            let expected = if *id == 1 && *v6 { wide } else { four };
            prop_assert_eq!((found.0, found.2, &found.3), (*id, expected.2, &expected.3));
            prop_assert_eq!(found.1.verdict(), expected.1.verdict());
            let name = expected.1.name();
            let named = if *id == 1 { format!("{}_{name}", expected.1.kind().name()) } else { name.to_owned() };
            prop_assert_eq!(found.1.name(), named);
        }
        let counters = mixed.counters(vid(1)).unwrap();
        prop_assert_eq!(counters.received(), picks.iter().filter(|(id, ..)| *id == 1).count() as u64);
    }
}

#[test]
fn routes_of_each_family_change_by_themselves_under_one_quota() {
    let mut soft = soft();
    soft.load(&[dual(1), dual(2)]).unwrap();
    let to6 = |id| packet6(mac(id, 0), ADDRESSES6[3]);
    assert_eq!(outcome(&mut soft, to6(1)), dual::Outcome::Ipv6NoRoute);
    soft.update(vid(1), &Update::of_routes(&[(prefix6("2001:dba::/32"), Some(hop(3)))])).unwrap();
    assert_eq!(outcome(&mut soft, to6(1)), dual::Outcome::Ipv6Forward);
    assert_eq!(outcome(&mut soft, to6(2)), dual::Outcome::Ipv6NoRoute, "another network");
    let to4 = |id| packet(mac(id, 0), [10, 9, 9, 9]);
    soft.update(vid(1), &Update::of_routes(&[(prefix("10.0.0.0/8"), None)])).unwrap();
    assert_eq!(outcome(&mut soft, to4(1)), dual::Outcome::Ipv4NoRoute);
    assert_eq!(outcome(&mut soft, to4(2)), dual::Outcome::Ipv4Forward);

    // What IPv4 uses is not there for IPv6.
    let none = soft.account(vid(1)).unwrap();
    assert_eq!(none.routes, 7);
    let four = |n: u16| (Prefix4::containing(0x0b00_0000 | u32::from(n) << 12, 20), Some(hop(2 + n % 3)));
    let six =
        |n: u16| (Prefix6::containing(0x2001_0dbb << 96 | u128::from(n) << 70, 58), Some(hop(2 + n % 3)));
    let (many4, many6): (Vec<_>, Vec<_>) = ((0..64).map(four).collect(), (0..64).map(six).collect());
    let gone4: Vec<_> = many4.iter().map(|(prefix, _)| (*prefix, None)).collect();
    let gone6: Vec<_> = many6.iter().map(|(prefix, _)| (*prefix, None)).collect();
    soft.update(vid(1), &Update::of_routes(&many6)).unwrap();
    let only_six = soft.account(vid(1)).unwrap().bytes_own;
    assert!(only_six > none.bytes_own);
    soft.update(vid(1), &Update::of_routes(&gone6)).unwrap();
    soft.set_quota(vid(1), Some(only_six)).unwrap();
    let fitting =
        |soft: &mut Soft, routes: Update<'_>| soft.update(vid(1), &routes.with_mode(Mode::Fitting)).unwrap();
    assert_eq!(fitting(&mut soft, Update::of_routes(&many4)).at, []);
    let refused = fitting(&mut soft, Update::of_routes(&many6));
    let is_quota = |error: &_| matches!(error, SubstrateError::Table { error: TableError::Quota { .. }, .. });
    assert!(!refused.at.is_empty() && refused.error.as_ref().is_some_and(is_quota), "{refused:?}");
    let now = soft.account(vid(1)).unwrap();
    assert!(now.bytes_own <= only_six);
    assert_eq!(now.routes, 7 + 128 - refused.at.len());
    // Withdrawals of one family make room for the other.
    soft.update(vid(1), &Update::of_routes(&gone4)).unwrap();
    assert_eq!(fitting(&mut soft, Update::of_routes(&many6)).at, []);
}

#[test]
fn a_network_becomes_dual_and_back_or_stays_as_it_was() {
    let mut soft = Soft::new(Limits { image_bytes_max: 1 << 20, ..Limits::default() }).unwrap();
    soft.load(&[program(1)]).unwrap();
    soft.set_quota(vid(1), Some(1 << 16)).unwrap();
    let (to4, to6) = (|| packet(mac(1, 0), [10, 9, 9, 9]), || packet6(mac(1, 0), ADDRESSES6[0]));
    // Its other family does not fit, so that it keeps what it had.
    let large: Vec<_> = (0..20_000u128)
        .map(|n| {
            (
                Prefix6::containing((0x2001_0dbc << 96) | n.wrapping_mul(0x9e37_79b9_7f4a) << 16, 112),
                hop(2 + n as u16 % 3),
            )
        })
        .collect();
    let too_large = Program { entries: Entries::Dual(dual(1).entries.lpm32().to_vec(), large), ..dual(1) };
    for before in [program(1), dual(1), six(1)] {
        soft.load(std::slice::from_ref(&before)).unwrap();
        let account = soft.account(vid(1)).unwrap();
        let refused = soft.load(std::slice::from_ref(&too_large)).unwrap_err();
        assert!(matches!(refused, SubstrateError::Table { .. }), "{refused}");
        assert_eq!(soft.account(vid(1)).unwrap(), account, "of kind {}", before.kind().name());
        let [four, wide] = [to4(), to6()].map(|frame| outcome(&mut soft, frame).is_forward());
        assert_eq!((four, wide), (before.kind() != Kind::Ipv6, before.kind() != Kind::Ipv4));
    }
    soft.load(&[program(1)]).unwrap();
    assert_eq!(outcome(&mut soft, to6()), ipv4::Outcome::Ethertype);
    soft.load(&[dual(1)]).unwrap();
    assert_eq!(outcome(&mut soft, to6()), dual::Outcome::Ipv6Forward);
    assert_eq!(soft.account(vid(1)).unwrap().bytes_quota, Some(1 << 16));
    soft.load(&[six(1)]).unwrap();
    assert_eq!(outcome(&mut soft, to4()), ipv6::Outcome::Ethertype);
    assert_eq!(outcome(&mut soft, to6()), ipv6::Outcome::Forward);
    let other = soft.update(vid(1), &Update::of_routes(&[(prefix("10.0.0.0/8"), None)]));
    assert!(other.unwrap_err().to_string().ends_with("keys of 32 bits: kind ipv6 has keys of 128 bits"));
    let wrong = Program { entries: program(1).entries, ..dual(1) };
    assert!(
        soft.load(&[wrong]).unwrap_err().to_string().contains("kind dual has keys of 32 and of 128 bits")
    );
    let hop = Program { next_hops: vec![Adjacency::local()], ..dual(1) };
    let text = soft.load(&[hop]).unwrap_err().to_string();
    assert!(text.contains("names next hop"), "{text}");
}
