//! Compares the `ipv6` plane with its oracle: same outcome, same bytes. Also compares planes with a planted bug,
//! which must differ.

#![allow(clippy::unwrap_used)] // a test may panic: that is how it fails

mod oracle_ipv6;

use hue_demux::PortId;
use hue_planes::ipv6::{self, Adjacency, Outcome, Settings};
use hue_planes::{FRAME_BYTES_MAX, Looked, Plane as _};
use hue_wire::Mac;
use oracle_ipv6 as oracle;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

/// Returns the outcome of a frame, and rewrites it.
type Process = fn(&mut [u8], &Adjacency) -> Outcome;

fn plane(frame: &mut [u8], hop: &Adjacency) -> Outcome {
    match ipv6::check(frame) {
        Ok(checked) => ipv6::finish(frame, checked, hop),
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
        let explained = ipv6::Plane::explain(&frame, Settings::default(), |_| Looked::of(hop, "matched".to_owned()));
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
        ipv6::Plane::explain(&frame, Settings::default(), |_| Looked::of(hop, String::new()));
    }

    /// The fixed header decides: what follows it does not matter.
    #[test]
    fn nothing_behind_the_header_matters(frame in oracle::frame(), hop in oracle::hop(), other in any::<u8>()) {
        let outcome = plane(&mut frame.clone(), &hop);
        let mut changed = frame;
        changed.iter_mut().skip(54).for_each(|byte| *byte = other);
        prop_assert_eq!(plane(&mut changed, &hop), outcome);
    }
}

fn forward(mtu_bytes: u16) -> Adjacency {
    Adjacency::forward(PortId::new(1), Mac([2; 6]), Mac([4; 6]), mtu_bytes)
}

/// A packet of this next header and payload, between global addresses.
fn packet(next_header: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 9, 0x86, 0xdd, 0x60, 0, 0, 0];
    frame.extend((payload.len() as u16).to_be_bytes());
    frame.extend([next_header, 64]);
    frame.extend([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    frame.extend([0x20, 1, 0xd, 0xb8, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
    frame.extend(payload);
    frame
}

fn outcome(frame: &[u8]) -> Outcome {
    plane(&mut frame.to_vec(), &forward(9202))
}

/// A frame cut at each byte has the outcome of its part: never more than the headers allow.
#[test]
fn a_frame_truncated_at_each_byte_is_dropped() {
    let frame = packet(17, &[7; 20]);
    for cut in 0..=frame.len() {
        let wanted = match cut {
            0..14 => Outcome::Ethertype,
            14..54 => Outcome::Truncated,
            54..74 => Outcome::PayloadLength,
            _ => Outcome::Forward,
        };
        assert_eq!(outcome(&frame[..cut]), wanted, "{cut} bytes");
    }
}

/// The payload length is compared with the frame, not with the port's minimum or the chain of headers.
#[test]
fn the_payload_ends_within_the_frame() {
    let with = |payload: usize, present: usize| {
        let mut frame = packet(17, &vec![0; present]);
        frame[18..20].copy_from_slice(&(payload as u16).to_be_bytes());
        outcome(&frame)
    };
    for present in [0, 1, 46, FRAME_BYTES_MAX - 54] {
        assert_eq!(with(present, present), Outcome::Forward);
        assert_eq!(with(present + 1, present), Outcome::PayloadLength);
        assert_eq!(with(0xffff, present), Outcome::PayloadLength);
        assert_eq!(with(0, present), Outcome::Forward, "padding");
    }
}

/// Chains of extension headers up to the frame's end, and beyond, go where their address says.
#[test]
fn extension_headers_are_the_destinations_affair() {
    for first in [43u8, 44, 50, 51, 59, 60, 135, 139, 140] {
        for count in [1, 8, 100, (FRAME_BYTES_MAX - 54) / 8] {
            let mut chain = [first, 0, 0, 0, 0, 0, 0, 0].repeat(count);
            assert_eq!(outcome(&packet(first, &chain)), Outcome::Forward);
            if let Some(length) = chain.get_mut(1) {
                *length = 255;
            }
            assert_eq!(outcome(&packet(first, &chain)), Outcome::Forward, "longer than the frame");
        }
    }
    // Hop-by-hop options count only where RFC 8200 §4.1 permits them: directly behind the header.
    assert_eq!(outcome(&packet(0, &[58, 0, 5, 2, 0, 0, 1, 0])), Outcome::Options);
    assert_eq!(outcome(&packet(60, &[0, 0, 1, 4, 0, 0, 0, 0])), Outcome::Forward);
}

/// RFC 2675: payload length 0, and the length in hop-by-hop options.
#[test]
fn a_jumbogram_is_an_option() {
    let mut jumbogram = packet(0, &[17, 0, 0xc2, 4, 0, 1, 0, 0]);
    jumbogram[18..20].copy_from_slice(&[0, 0]);
    jumbogram.resize(FRAME_BYTES_MAX, 0);
    assert_eq!(outcome(&jumbogram), Outcome::Options);
    assert_eq!(plane(&mut jumbogram, &Adjacency::NONE), Outcome::Options);
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
    let bugs: [(&str, Process); 12] = [
        ("unicast in a group frame is forwarded", |frame, hop| match plane(frame, hop) {
            Outcome::L2Group => Outcome::Forward,
            outcome => outcome,
        }),
        ("a loopback source is forwarded", |frame, hop| match plane(frame, hop) {
            Outcome::MartianSource if frame[37] == 1 => Outcome::Forward,
            outcome => outcome,
        }),
        ("an unspecified destination is forwarded", |frame, hop| match plane(frame, hop) {
            Outcome::MartianDestination if frame[53] == 0 => Outcome::NoRoute,
            outcome => outcome,
        }),
        ("only fe80::/16 is link-local", |frame, hop| match plane(frame, hop) {
            Outcome::Local if frame[38] == 0xfe && frame[39] != 0x80 => Outcome::NoRoute,
            outcome => outcome,
        }),
        ("a link-local source leaves its link", |frame, hop| match plane(frame, hop) {
            Outcome::Scope => Outcome::Forward,
            outcome => outcome,
        }),
        ("scope before the hop limit", |frame, hop| match plane(frame, hop) {
            Outcome::HopLimit if frame[22] == 0xfe && frame[23] >> 6 == 2 => Outcome::Scope,
            outcome => outcome,
        }),
        ("the hop limit is not lowered", |frame, hop| {
            let old = frame.get(21).copied();
            let outcome = plane(frame, hop);
            if let (Outcome::Forward, Some(old)) = (outcome, old) {
                frame[21] = old;
            }
            outcome
        }),
        ("hop limit 1 is forwarded", |frame, hop| match plane(frame, hop) {
            Outcome::HopLimit if frame[21] == 1 => Outcome::Forward,
            outcome => outcome,
        }),
        ("the MTU does not count the header", |frame, hop| match plane(&mut frame.to_vec(), hop) {
            Outcome::Mtu => Outcome::Forward,
            _ => plane(frame, hop),
        }),
        ("the payload is compared with the frame", |frame, hop| {
            let payload = frame.get(18..20).map_or(0, |two| usize::from(two[0]) << 8 | usize::from(two[1]));
            match plane(frame, hop) {
                Outcome::PayloadLength if 40 + payload <= frame.len() => Outcome::Forward,
                outcome => outcome,
            }
        }),
        ("no route before options", |frame, hop| match plane(frame, hop) {
            Outcome::Options if *hop == Adjacency::NONE => Outcome::NoRoute,
            outcome => outcome,
        }),
        ("a routing header is an option", |frame, hop| match plane(&mut frame.to_vec(), hop) {
            Outcome::Forward if frame[20] == 43 => Outcome::Options,
            _ => plane(frame, hop),
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
