//! Loading, unloading and changing routes: all or nothing, without effect on running networks.

use crate::common::{hop, mac, packet, prefix, program, soft, vid};
use hue_demux::{Match, PortId, Row};
use hue_planes::ipv4::{Adjacency, Outcome};
use hue_planes::{Counters, Kind, Rate, RateLimit, Reason, Settings, Unclaimed};
use hue_soft::{Batch, COPIES_MAX, Fate, Frame, NETWORKS_MAX, Soft};
use hue_substrate::{Entries, Program, Substrate, SubstrateError, Update};
use hue_tables::{Limits, Prefix4, Prefix6};
use hue_wire::Mac;

fn send(soft: &mut Soft, dst: Mac, address: [u8; 4]) -> Fate {
    let mut batch = Batch::new();
    batch.push(PortId::new(0), 0, &packet(dst, address));
    let mut fate = Fate::Pending;
    soft.run(&mut batch, |output| fate = output.fate);
    fate
}

fn outcome(soft: &mut Soft, id: u16, address: [u8; 4]) -> Reason {
    match send(soft, mac(id, 0), address) {
        Fate::Network { vid: of, outcome, .. } if of == vid(id) => outcome,
        fate => panic!("{fate:?}"),
    }
}

fn state(soft: &Soft) -> (Vec<Option<Counters>>, usize) {
    ((1..5).map(|id| soft.counters(vid(id))).collect(), soft.capacity().networks)
}

#[test]
fn a_loaded_network_runs_and_an_unloaded_one_does_not() {
    let mut soft = soft();
    assert_eq!(send(&mut soft, mac(1, 0), [10, 9, 9, 9]), Fate::Unclaimed(Unclaimed::NoNetwork));
    soft.load(&[program(1), program(2)]).unwrap();
    assert_eq!(outcome(&mut soft, 1, [10, 9, 9, 9]), Outcome::Forward);
    assert_eq!(outcome(&mut soft, 2, [11, 9, 9, 9]), Outcome::NoRoute);
    soft.unload(&[vid(1)]).unwrap();
    assert_eq!(soft.counters(vid(1)), None);
    assert_eq!(send(&mut soft, mac(1, 0), [10, 9, 9, 9]), Fate::Unclaimed(Unclaimed::NoNetwork));
    assert_eq!(outcome(&mut soft, 2, [10, 9, 9, 9]), Outcome::Forward);
    assert_eq!(soft.counters(vid(2)).unwrap().received(), 2);
    assert_eq!(soft.unload(&[vid(2), vid(1)]), Err(SubstrateError::Unknown(vid(1))));
    assert_eq!(outcome(&mut soft, 2, [10, 9, 9, 9]), Outcome::Forward);
    soft.load(&[program(1)]).unwrap();
    assert_eq!(soft.counters(vid(1)), Some(Counters::new(Kind::Ipv4)));
}

#[test]
fn a_reload_changes_the_table_and_keeps_the_counters() {
    let mut soft = soft();
    soft.load(&[program(1), program(2)]).unwrap();
    assert_eq!(outcome(&mut soft, 1, [10, 9, 9, 9]), Outcome::Forward);
    let mut changed = program(1);
    changed.entries = Entries::Lpm32(vec![(prefix("10.1.0.0/16"), hop(2)), (prefix("12.0.0.0/8"), hop(1))]);
    soft.load(&[changed]).unwrap();
    assert_eq!(outcome(&mut soft, 1, [10, 9, 9, 9]), Outcome::NoRoute);
    assert_eq!(outcome(&mut soft, 1, [10, 1, 9, 9]), Outcome::Forward);
    assert_eq!(outcome(&mut soft, 1, [12, 1, 9, 9]), Outcome::NoNeighbour);
    assert_eq!(outcome(&mut soft, 2, [10, 9, 9, 9]), Outcome::Forward);
    assert_eq!(soft.counters(vid(1)).unwrap().received(), 4);
}

#[test]
fn a_reload_keeps_the_meter_unless_its_rate_changed() {
    let limited = |burst| {
        let packets = Some(Rate::new(1, burst).unwrap());
        Program { rate_limit: Some(RateLimit { packets, bits: None }), ..program(1) }
    };
    let mut soft = soft();
    soft.load(&[limited(1)]).unwrap();
    assert_eq!(outcome(&mut soft, 1, [10, 9, 9, 9]), Outcome::Forward);
    soft.load(&[limited(1)]).unwrap();
    assert_eq!(outcome(&mut soft, 1, [10, 9, 9, 9]), Outcome::RateLimited);
    soft.load(&[limited(2)]).unwrap();
    assert_eq!(outcome(&mut soft, 1, [10, 9, 9, 9]), Outcome::Forward);
    assert_eq!(outcome(&mut soft, 1, [10, 9, 9, 9]), Outcome::Forward);
    assert_eq!(outcome(&mut soft, 1, [10, 9, 9, 9]), Outcome::RateLimited);
}

/// Every reason to refuse. Each refusal changes nothing, although valid programs come first in the list.
#[test]
fn refused_programs_change_nothing() {
    let mut soft = soft();
    soft.load(&[program(1), program(2)]).unwrap();
    outcome(&mut soft, 1, [10, 9, 9, 9]);
    let before = state(&soft);
    let stolen_mac =
        Row { vid: vid(3), vport: 0, select: Match::Mac { port: PortId::new(0), mac: mac(1, 0) } };
    let refused: [(Program, &str); 5] = [
        (Program { name: "net2".to_owned(), ..program(3) }, "same name"),
        (Program { vid: vid(4), ..program(4) }, "same id"),
        (Program { rows: vec![stolen_mac], ..program(3) }, "networks 'net1' and 'net3'"),
        (Program { weight: 0, ..program(3) }, "'net3': weight 0"),
        (
            Program { entries: Entries::Lpm32(vec![(prefix("0.0.0.0/0"), hop(5))]), ..program(3) },
            "next hop 5 of 5",
        ),
    ];
    for (program_, text) in refused {
        let mut first = program(4);
        first.entries.lpm32_mut().clear();
        let mut changed = program(1);
        changed.entries.lpm32_mut().clear();
        let error = soft.load(&[first, changed, program_]).unwrap_err().to_string();
        assert!(error.contains(text), "{error}");
        assert_eq!(state(&soft), before, "{text}");
    }
    assert_eq!(outcome(&mut soft, 1, [10, 9, 9, 9]), Outcome::Forward, "the table is the old one");
}

/// A network whose table does not fit into 1 MiB.
fn large(id: u16) -> Program {
    let scattered = (0..400_000u32).map(|n| Prefix4::containing(n.wrapping_mul(0x9e37_79b1), 32));
    let distinct: std::collections::BTreeSet<_> = scattered.collect();
    let routes = distinct.into_iter().map(|prefix| (prefix, hop(2 + (prefix.addr() % 3) as u16)));
    Program { entries: Entries::Lpm32(routes.collect()), ..program(id) }
}

#[test]
fn a_network_becomes_one_of_another_kind_or_stays_as_it_was() {
    let mut soft = Soft::new(Limits { image_bytes_max: 1 << 20, ..Limits::default() }).unwrap();
    soft.load(&[program(1)]).unwrap();
    soft.set_quota(vid(1), Some(1 << 16)).unwrap();
    assert_eq!(outcome(&mut soft, 1, [10, 9, 9, 9]), Outcome::Forward);
    let before = state(&soft);
    let routes = vec![("2001:db8::/32".parse().unwrap(), hop(2))];
    let six = Program { settings: Settings::of(Kind::Ipv6), entries: Entries::Lpm128(routes), ..program(1) };
    let error = soft.load(&[six.clone(), large(3)]).unwrap_err();
    assert!(matches!(&error, SubstrateError::Table { name, .. } if name == "net3"), "{error}");
    assert_eq!(state(&soft), before);
    assert_eq!(outcome(&mut soft, 1, [10, 9, 9, 9]), Outcome::Forward, "the table is the old one");

    let wrong = Program { entries: program(1).entries, ..six.clone() };
    assert!(soft.load(&[wrong]).unwrap_err().to_string().contains("keys of 32 bits"));
    soft.load(&[six]).unwrap();
    assert_eq!(soft.counters(vid(1)), Some(Counters::new(Kind::Ipv6)), "counted anew");
    assert_eq!(soft.account(vid(1)).unwrap().bytes_quota, Some(1 << 16));
    assert_eq!(outcome(&mut soft, 1, [10, 9, 9, 9]), hue_planes::ipv6::Outcome::Ethertype);
    let change = [("2001:db8::/32".parse::<Prefix6>().unwrap(), None)];
    soft.update(vid(1), &Update::of_routes(&change)).unwrap();
    let other = soft.update(vid(1), &Update::of_routes(&[(prefix("10.0.0.0/8"), None)]));
    assert!(other.unwrap_err().to_string().ends_with("keys of 32 bits: kind ipv6 has keys of 128 bits"));
}

/// The table becomes full in the middle of a list: earlier entries are removed again.
#[test]
fn a_full_table_changes_nothing() {
    let limits = Limits { image_bytes_max: 1 << 20, ..Limits::default() };
    let mut soft = Soft::new(limits).unwrap();
    soft.load(&[program(1)]).unwrap();
    let bytes = soft.capacity().table_bytes;
    let mut changed = program(1);
    changed.entries = Entries::Lpm32(vec![(prefix("11.0.0.0/8"), hop(2))]);
    let large = large(3);
    for _ in 0..3 {
        let error = soft.load(&[program(2), changed.clone(), large.clone()]).unwrap_err();
        assert!(matches!(&error, SubstrateError::Table { name, .. } if name == "net3"), "{error}");
        assert_eq!(soft.capacity().networks, 1);
        assert_eq!(soft.capacity().table_bytes_max, 1 << 20);
        assert_eq!(outcome(&mut soft, 1, [10, 9, 9, 9]), Outcome::Forward);
        assert_eq!(outcome(&mut soft, 1, [11, 9, 9, 9]), Outcome::NoRoute);
    }
    soft.load(&[program(2), changed]).unwrap();
    assert_eq!(outcome(&mut soft, 1, [11, 9, 9, 9]), Outcome::Forward);
    assert!(bytes <= soft.capacity().table_bytes);
}

#[test]
fn networks_have_a_limit() {
    assert_eq!(NETWORKS_MAX, 4095);
    let limits = Limits { networks_max: 2, ..Limits::default() };
    let mut soft = Soft::new(limits).unwrap();
    soft.load(&[program(1), program(2)]).unwrap();
    assert_eq!(soft.load(&[program(3)]), Err(SubstrateError::Networks { count: 3, max: 2 }));
    soft.load(&[program(2)]).unwrap();
}

#[test]
fn routes_change_while_packets_flow() {
    let mut soft = soft();
    soft.load(&[program(1), program(2)]).unwrap();
    soft.update(
        vid(1),
        &Update::of_routes(&[(prefix("10.0.0.0/8"), None), (prefix("13.0.0.0/8"), Some(hop(1)))]),
    )
    .unwrap();
    assert_eq!(outcome(&mut soft, 1, [10, 9, 9, 9]), Outcome::NoRoute);
    assert_eq!(outcome(&mut soft, 1, [13, 9, 9, 9]), Outcome::NoNeighbour);
    assert_eq!(outcome(&mut soft, 2, [10, 9, 9, 9]), Outcome::Forward);
    let bad = soft.update(
        vid(1),
        &Update::of_routes(&[(prefix("13.0.0.0/8"), None), (prefix("14.0.0.0/8"), Some(hop(5)))]),
    );
    assert!(bad.unwrap_err().to_string().contains("next hop 5 of 5"));
    assert_eq!(outcome(&mut soft, 1, [13, 9, 9, 9]), Outcome::NoNeighbour);
    assert_eq!(soft.update(vid(9), &Update::of_routes::<u32>(&[])), Err(SubstrateError::Unknown(vid(9))));
    assert_eq!(soft.account(vid(1)).unwrap().routes, 4);
    assert_eq!(soft.account(vid(9)), Err(SubstrateError::Unknown(vid(9))));
}

#[test]
fn group_frames_are_copied_in_order_and_within_the_limit() {
    let mut soft = soft();
    let programs: Vec<_> = (1..=200).map(program).collect();
    soft.load(&programs).unwrap();
    let broadcast = packet(Mac::BROADCAST, [10, 9, 9, 9]);
    let mut buffer = Vec::new();
    let mut frames = Vec::new();
    for _ in 0..100 {
        frames.push(Frame::new(PortId::new(0), 0, buffer.len() as u32, broadcast.len() as u32));
        buffer.extend(&broadcast);
    }
    let processed = soft.process(&mut buffer, &mut frames);
    assert_eq!(processed, COPIES_MAX / 200);
    assert_eq!(soft.copies().count(), processed * 200);
    assert!(frames[..processed].iter().all(|frame| frame.fate == Fate::Flooded));
    assert!(frames[processed..].iter().all(|frame| frame.fate == Fate::Pending));
    for (index, copy) in soft.copies().enumerate() {
        let id = (index % 200 + 1) as u16;
        // A unicast packet in a broadcast frame: no network forwards it.
        let (outcome, egress) = (Outcome::L2Group.into(), PortId::new(0));
        let wanted = Fate::Network { vid: vid(id), vport: 0, outcome, egress };
        assert_eq!((copy.frame, copy.fate), (index / 200, wanted));
        assert!(copy.bytes.is_none(), "nothing of it is sent");
    }
    assert_eq!(&buffer[..broadcast.len()], broadcast, "the frame itself is for nobody to change");
    assert_eq!(soft.counters(vid(200)).unwrap().received(), processed as u64);
}

#[test]
fn a_single_frame_may_exceed_the_limit_of_copies() {
    let ids = 1..=u16::try_from(NETWORKS_MAX).unwrap();
    let programs: Vec<_> = ids
        .map(|id| {
            let mut one = program(id);
            one.ports.push(hue_substrate::VirtualPort { name: "again".to_owned(), ..one.ports[0].clone() });
            one.entries.lpm32_mut().clear();
            one
        })
        .collect();
    let mut soft = soft();
    soft.load(&programs).unwrap();
    let mut buffer = packet(Mac::BROADCAST, [10, 9, 9, 9]);
    let mut frames = [Frame::new(PortId::new(0), 0, 0, buffer.len() as u32); 2];
    assert_eq!(soft.process(&mut buffer, &mut frames), 1);
    assert_eq!(soft.copies().count(), 2 * NETWORKS_MAX);
}

#[test]
fn frames_outside_the_buffer_are_runts() {
    let mut soft = soft();
    soft.load(&[program(1)]).unwrap();
    let mut buffer = vec![0; 64];
    let place = |start, len| Frame::new(PortId::new(0), 0, start, len);
    let mut frames = [place(0, 65), place(u32::MAX, u32::MAX), place(64, 1), place(64, 0)];
    assert_eq!(soft.process(&mut buffer, &mut frames), 4);
    assert!(frames.iter().all(|frame| frame.fate == Fate::Unclaimed(Unclaimed::Runt)));
    assert_eq!(soft.unclaimed().get(Unclaimed::Runt), 4);
}

#[test]
fn a_network_without_next_hops_has_no_route() {
    let mut soft = soft();
    soft.load(&[Program { next_hops: Vec::new(), entries: Entries::Lpm32(Vec::new()), ..program(1) }])
        .unwrap();
    assert_eq!(outcome(&mut soft, 1, [10, 9, 9, 9]), Outcome::NoRoute);
    assert_eq!(Adjacency::NONE.mtu_bytes(), 0);
}
