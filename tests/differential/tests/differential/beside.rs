//! A network whose routes change continuously takes no clock from another network on the same card.

use std::collections::BTreeMap;

use hue_card::{Card, Twin};
use hue_demux::{Match, PortId, Row};
use hue_differential::{card, image};
use hue_planes::{Adjacency, Kind, Settings};
use hue_substrate::{Entries, Mode, Program, Substrate, Update, VirtualPort};
use hue_tables::{Change, NextHop, Prefix4, Vid};
use hue_wire::{Mac, checksum};

/// Cycles from one frame of the victim to the next, and the number of frames.
const EVERY_CYCLES: u64 = 50;
const FRAMES: u32 = 1_000;

const fn mac(net: u8, port: u8) -> Mac {
    Mac([2, 0, 0, 0, net, port])
}

/// A network from port 0 to port 1.
fn network(net: u8) -> Program {
    let vid = Vid::new(u16::from(net)).unwrap();
    let port = |id: u8| VirtualPort {
        name: format!("v{id}"),
        port: PortId::new(id),
        mac: mac(net, id),
        mtu_bytes: 1500,
        tunnel: None,
    };
    let row = |id: u8| {
        let select = Match::Mac { port: PortId::new(id), mac: mac(net, id) };
        Row { vid, vport: u16::from(id), select }
    };
    let hop = |last| Adjacency::forward(PortId::new(1), mac(net, 1), Mac([2, 0xaa, 0, 0, net, last]), 1500);
    Program {
        vid,
        name: format!("n{net}"),
        settings: Settings::of(Kind::Ipv4),
        ports: vec![port(0), port(1)],
        rows: vec![row(0), row(1)],
        next_hops: vec![hop(0), hop(1)],
        groups: Vec::new(),
        entries: Entries::Lpm32(
            (0..20)
                .map(|n| (Prefix4::containing(10 << 24 | n << 16, 16), NextHop::new(0).unwrap()))
                .collect(),
        ),
        rate_limit: None,
        weight: 1,
        policies: None,
        gated: false,
    }
}

fn frame(net: u8) -> Vec<u8> {
    let mut frame = Vec::new();
    frame.extend(mac(net, 0).0);
    frame.extend([2, 0xbb, 0, 0, net, 0]);
    frame.extend([8, 0, 0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17, 0, 0, 10, 1, 0, 1, 10, 2, 0, 1]);
    let sum = checksum::full(&frame[14..34]);
    frame[24..26].copy_from_slice(&sum.to_be_bytes());
    frame.resize(60, 0);
    frame
}

/// A histogram of latencies: for each number of cycles from the due time of a victim's frame until its first beat left, the number
/// of frames. `work` runs repeatedly meanwhile; also returns how often.
fn latencies(card: &mut Card<Twin>, mut work: impl FnMut(&mut Card<Twin>, u32)) -> (BTreeMap<u64, u32>, u32) {
    let start = card.twin().cycles() + 1_000;
    for tag in 0..FRAMES {
        let due = start + EVERY_CYCLES * u64::from(tag);
        assert!(card.twin().push(0, 0, tag, due, &frame(1)));
    }
    let (mut seen, mut done, mut left) = (BTreeMap::new(), 0, 0);
    while left < FRAMES {
        work(card, done);
        done += 1;
        card.twin().run_exactly(10);
        while let Some(out) = card.twin().pop() {
            assert_eq!(out.port, 1);
            *seen.entry(out.first_cycle - start - EVERY_CYCLES * u64::from(out.tag)).or_default() += 1;
            left += 1;
        }
    }
    (seen, done)
}

#[test]
fn routes_that_change_without_end_take_no_clock_from_others() {
    let route = |n: u32, len: u8, hop: u16| (Prefix4::containing(10 << 24 | n << 16, len), NextHop::new(hop));
    let mut card = card(&image("tcam3"), &[network(1), network(2)]);
    let (quiet, _) = latencies(&mut card, |_, _| ());
    assert_eq!(quiet.len(), 1, "{quiet:?}");
    let vid = Vid::new(2).unwrap();
    let (busy, updates) = latencies(&mut card, |card, round| {
        // One route is added before all others, one changes, one is removed.
        let changes: [Change<u32>; 3] = match round % 2 {
            0 => [route(40, 24, 1), route(3, 16, 1), (route(7, 16, 0).0, None)],
            _ => [(route(40, 24, 0).0, None), route(3, 16, 0), route(7, 16, 0)],
        };
        card.update(vid, &Update::of_routes(&changes).with_mode(Mode::Each)).unwrap();
    });
    assert!(updates > 10, "{updates} updates");
    assert_eq!(busy, quiet, "{updates} updates");
}
