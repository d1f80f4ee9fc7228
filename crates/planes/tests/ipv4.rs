//! Compares the `ipv4` plane with its oracle: same outcome, same bytes. Also compares planes with a planted bug,
//! which must differ.

#![allow(clippy::unwrap_used)] // a test may panic: that is how it fails

mod oracle;

use hue_planes::Plane as _;
use hue_planes::ipv4::{self, Adjacency, Outcome, Settings};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

/// Returns the outcome of a frame, and rewrites it.
type Process = fn(&mut [u8], &Adjacency) -> Outcome;

fn plane(frame: &mut [u8], hop: &Adjacency) -> Outcome {
    match ipv4::check(frame) {
        Ok(checked) => ipv4::finish(frame, checked, hop),
        Err(outcome) => outcome,
    }
}

fn compare(plane: Process, frame: &[u8], hop: &Adjacency) -> Result<(), TestCaseError> {
    let (outcome, bytes) = oracle::expected(frame, hop);
    let mut found = frame.to_vec();
    prop_assert_eq!(plane(&mut found, hop), outcome);
    prop_assert_eq!(found, bytes);
    Ok(())
}

proptest! {
    #![proptest_config(Config { cases: 20_000, ..Config::default() })]

    #[test]
    fn agrees_with_the_specification(frame in oracle::frame(), hop in oracle::hop()) {
        compare(plane, &frame, &hop)?;
    }

    #[test]
    fn explanations_say_what_happens(frame in oracle::frame(), hop in oracle::hop()) {
        let explained = ipv4::Plane::explain(&frame, Settings::default(), |_| hue_planes::Looked::of(hop, "matched".to_owned()));
        let (outcome, bytes) = oracle::expected(&frame, &hop);
        prop_assert_eq!(explained.outcome, outcome);
        prop_assert_eq!(explained.bytes, bytes);
        let last = explained.stages.last().unwrap();
        prop_assert_eq!(last.name, outcome.row().stage);
        prop_assert_eq!(last.outcome, Some(outcome.name()));
        prop_assert!(explained.stages.iter().rev().skip(1).all(|stage| stage.outcome.is_none()));
    }

    #[test]
    fn no_bytes_panic(mut frame in prop::collection::vec(any::<u8>(), 0..80), hop in oracle::hop()) {
        plane(&mut frame, &hop);
        ipv4::Plane::explain(&frame, Settings::default(), |_| hue_planes::Looked::of(hop, String::new()));
    }
}

/// A network that forwards martians drops none, and treats all other packets the same.
#[test]
fn martians_are_forwarded_where_wanted() {
    let forward =
        Adjacency::forward(hue_demux::PortId::new(1), hue_wire::Mac([2; 6]), hue_wire::Mac([4; 6]), 1500);
    for (source, destination, outcome) in [
        ([127, 0, 0, 1], [10, 0, 0, 1], Outcome::MartianSource),
        ([0, 1, 2, 3], [10, 0, 0, 1], Outcome::MartianSource),
        ([224, 0, 0, 1], [10, 0, 0, 1], Outcome::MartianSource),
        ([255, 255, 255, 255], [10, 0, 0, 1], Outcome::MartianSource),
        ([10, 0, 0, 2], [0, 0, 0, 1], Outcome::MartianDestination),
        ([10, 0, 0, 2], [127, 255, 255, 255], Outcome::MartianDestination),
        ([10, 0, 0, 2], [240, 0, 0, 1], Outcome::MartianDestination),
        ([10, 0, 0, 2], [255, 255, 255, 255], Outcome::Local),
        ([1, 0, 0, 0], [126, 255, 255, 255], Outcome::Forward),
        ([128, 0, 0, 0], [223, 255, 255, 255], Outcome::Forward),
    ] {
        let mut frame =
            vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 9, 8, 0, 0x45, 0, 0, 20, 0, 0, 0, 0, 64, 17, 0, 0];
        frame.extend(source);
        frame.extend(destination);
        oracle::fix_checksum(&mut frame[14..34]);
        let decide = |forward_martians| {
            ipv4::decide(ipv4::check(&frame).unwrap().with_martians(forward_martians), &forward)
        };
        assert_eq!(decide(false), outcome, "{source:?} to {destination:?}");
        let wanted = if outcome == Outcome::Local { Outcome::Local } else { Outcome::Forward };
        assert_eq!(decide(true), wanted, "{source:?} to {destination:?}");
    }
}

#[test]
fn every_outcome_is_reached() {
    let mut seen = [false; Outcome::COUNT + 1];
    let mut runner = TestRunner::deterministic();
    for _ in 0..20_000 {
        let frame = oracle::frame().new_tree(&mut runner).unwrap().current();
        let hop = oracle::hop().new_tree(&mut runner).unwrap().current();
        seen[usize::from(oracle::expected(&frame, &hop).0.code())] = true;
    }
    let missing: Vec<_> = Outcome::ALL.into_iter().filter(|one| !seen[usize::from(one.code())]).collect();
    assert_eq!(missing, [Outcome::Gated, Outcome::RateLimited], "gate and meter are not the plane's");
}

/// A comparison that cannot fail proves nothing: each of these bugs must make it fail.
#[test]
fn planted_bugs_are_found() {
    let bugs: [(&str, Process); 9] = [
        ("unicast in a group frame is forwarded", |frame, hop| match plane(frame, hop) {
            Outcome::L2Group => Outcome::Forward,
            outcome => outcome,
        }),
        ("a loopback source is forwarded", |frame, hop| match plane(frame, hop) {
            Outcome::MartianSource if frame[26] == 127 => Outcome::Ttl,
            outcome => outcome,
        }),
        ("a reserved destination is forwarded", |frame, hop| match plane(frame, hop) {
            Outcome::MartianDestination if frame[30] >= 240 => Outcome::NoRoute,
            outcome => outcome,
        }),
        ("TTL 1 is forwarded", |frame, hop| match ipv4::check(frame) {
            Ok(_) if frame[22] == 1 => {
                frame[22] = 2;
                oracle::fix_checksum(&mut frame[14..34]);
                plane(frame, hop)
            }
            _ => plane(frame, hop),
        }),
        ("the checksum is not followed up", |frame, hop| {
            let old = frame.get(24..26).map(<[u8]>::to_vec);
            let outcome = plane(frame, hop);
            if let (Outcome::Forward, Some(old)) = (outcome, old) {
                frame[24..26].copy_from_slice(&old);
            }
            outcome
        }),
        ("the MTU counts the Ethernet header", |frame, hop| match plane(&mut frame.to_vec(), hop) {
            Outcome::Forward if frame.len() > usize::from(hop.mtu_bytes()) => Outcome::Mtu,
            _ => plane(frame, hop),
        }),
        ("no route before options", |frame, hop| match plane(frame, hop) {
            Outcome::Options if *hop == Adjacency::NONE => Outcome::NoRoute,
            outcome => outcome,
        }),
        ("multicast is forwarded", |frame, hop| match plane(frame, hop) {
            Outcome::Local if *hop != Adjacency::local() => Outcome::Forward,
            outcome => outcome,
        }),
        ("padding is checked for", |frame, hop| {
            let padded = frame.len() > 34 && frame.ends_with(&[0xee]);
            if padded { Outcome::TotalLength } else { plane(frame, hop) }
        }),
    ];
    for (bug, plane) in bugs {
        let config = Config { cases: 20_000, failure_persistence: None, ..Config::default() };
        // Always uses the same frames, so that a rare frame is always among them, or never.
        let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
        let result =
            runner.run(&(oracle::frame(), oracle::hop()), |(frame, hop)| compare(plane, &frame, &hop));
        assert!(result.is_err(), "not found: {bug}");
    }
}
