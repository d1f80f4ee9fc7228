//! Random frames of several networks: only the program of a frame's own network may decide it.

use crate::common::{PORTS, is_frame, mac, program, soft, vid};
use crate::oracle;
use hue_demux::PortId;
use hue_planes::ipv4::{Adjacency, Outcome};
use hue_planes::{Counters, Kind, Verdict};
use hue_soft::{Batch, Fate};
use hue_substrate::{Program, Substrate};
use hue_wire::Mac;
use proptest::prelude::*;

const NETWORKS: u16 = 4;

/// A frame, the port on which it arrives, and the owner of its MAC: a network, or none.
fn arrivals() -> impl Strategy<Value = Vec<(u8, u16, Vec<u8>)>> {
    let address = prop_oneof![
        3 => Just([10, 0, 0]), 2 => Just([10, 1, 0]), 2 => Just([10, 2, 0]), 1 => Just([10, 77, 1]), 1 => any::<[u8; 3]>()
    ];
    let one = (0..PORTS, 0..=NETWORKS, oracle::frame(), address, 0u8..3, any::<bool>());
    let one = one.prop_map(|(port, id, mut frame, address, last, keep)| {
        frame[..6].copy_from_slice(&mac(if id == 0 { 999 } else { id }, port).0);
        if !keep && frame.len() >= 34 {
            frame[30..33].copy_from_slice(&address);
            frame[33] = last;
            let end = (14 + usize::from(frame[14] & 15) * 4).clamp(34, frame.len());
            oracle::fix_checksum(&mut frame[14..end / 2 * 2]);
        }
        (port, id, frame)
    });
    prop::collection::vec(one, 1..600)
}

/// The next-hop row, found by a scan over the program's routes.
fn row(program: &Program, frame: &[u8]) -> Adjacency {
    let Some(dst) = frame.get(30..34) else { return Adjacency::NONE };
    let key = u32::from_be_bytes(dst.try_into().unwrap());
    let routes = program.entries.lpm32().iter().filter(|(prefix, _)| prefix.contains(key));
    let longest = routes.max_by_key(|(prefix, _)| prefix.len());
    longest.map_or(Adjacency::NONE, |(_, hop)| program.next_hops[usize::from(hop.get())])
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn each_frame_is_decided_by_its_own_network(arrivals in arrivals()) {
        let programs: Vec<_> = (1..=NETWORKS).map(program).collect();
        let mut soft = soft();
        soft.load(&programs).unwrap();
        let mut batch = Batch::new();
        let mut wanted = vec![Counters::new(Kind::Ipv4); programs.len()];
        let mut nobody = 0;
        for (port, _, frame) in &arrivals {
            batch.push(PortId::new(*port), 0, frame);
        }
        let mut results = Vec::new();
        soft.run(&mut batch, |output| results.push((output.fate, output.bytes.to_vec())));
        prop_assert_eq!(results.len(), arrivals.len());
        for ((port, id, frame), (fate, bytes)) in arrivals.iter().zip(results) {
            let Some(program) = programs.iter().find(|program| program.vid.get() == *id) else {
                nobody += 1;
                prop_assert!(matches!(fate, Fate::Unclaimed(_)));
                continue;
            };
            prop_assert!(is_frame(frame));
            let hop = row(program, frame);
            let (outcome, expected) = oracle::expected(frame, &hop);
            let egress = if outcome == Outcome::Forward { hop.port() } else { PortId::new(*port) };
            prop_assert_eq!(fate, Fate::Network { vid: program.vid, vport: u16::from(*port), outcome: outcome.into(), egress });
            prop_assert_eq!(&bytes, &expected);
            if outcome == Outcome::Forward {
                let src = Mac(bytes[6..12].try_into().unwrap());
                prop_assert_eq!(src, mac(*id, egress.get()), "sent under the network's own address");
            }
            wanted[usize::from(*id) - 1].count(outcome);
        }
        for (program, wanted) in programs.iter().zip(wanted) {
            let found = soft.counters(program.vid).unwrap();
            prop_assert_eq!(found, wanted);
            let drops: u64 = found.drops().map(|(_, count)| count).sum();
            prop_assert_eq!(found.received(), found.forwarded() + found.punted() + drops);
        }
        prop_assert_eq!(soft.unclaimed().total(), nobody);
    }

    /// Frames of other networks, and the existence of those networks, make no difference.
    #[test]
    fn a_network_does_not_see_the_others(arrivals in arrivals()) {
        let run = |ids: &[u16], frames: &mut dyn Iterator<Item = &(u8, u16, Vec<u8>)>| {
            let mut soft = soft();
            soft.load(&ids.iter().map(|id| program(*id)).collect::<Vec<_>>()).unwrap();
            let mut batch = Batch::new();
            for (port, _, frame) in frames {
                batch.push(PortId::new(*port), 0, frame);
            }
            let mut results = Vec::new();
            soft.run(&mut batch, |output| {
                if let Fate::Network { vid: of, .. } = output.fate && of == vid(1) {
                    results.push((output.fate, output.bytes.to_vec()));
                }
            });
            (results, soft.counters(vid(1)).unwrap())
        };
        let among = run(&[1, 2, 3, 4], &mut arrivals.iter());
        let alone = run(&[1], &mut arrivals.iter().filter(|(_, id, _)| *id == 1));
        prop_assert_eq!(among, alone);
    }

    #[test]
    fn no_bytes_panic(frames in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 0..50), port in any::<u8>()) {
        let mut soft = soft();
        soft.load(&[program(1), program(2)]).unwrap();
        let mut batch = Batch::new();
        for frame in &frames {
            batch.push(PortId::new(port), u64::MAX, frame);
            soft.explain(PortId::new(port), 0, frame);
        }
        let mut count = 0;
        soft.run(&mut batch, |output| {
            assert_ne!(output.fate.verdict(), Some(Verdict::Forward));
            count += 1;
        });
        prop_assert!(count >= frames.len());
    }

    /// A trace predicts what happens, and changes nothing.
    #[test]
    fn traces_say_what_happens(arrivals in arrivals()) {
        let mut soft = soft();
        soft.load(&[program(1), program(2), program(3), program(4)]).unwrap();
        let traces: Vec<_> =
            arrivals.iter().map(|(port, _, frame)| soft.explain(PortId::new(*port), 0, frame)).collect();
        prop_assert_eq!(soft.unclaimed().total() + soft.counters(vid(1)).unwrap().received(), 0);
        let mut batch = Batch::new();
        for (port, _, frame) in &arrivals {
            batch.push(PortId::new(*port), 0, frame);
        }
        let mut wrong = None;
        soft.run(&mut batch, |output| {
            let trace = &traces[output.frame];
            let same = match output.fate {
                Fate::Unclaimed(reason) => trace.unclaimed == Some(reason) && trace.networks.is_empty(),
                Fate::Network { vid, vport, outcome, egress } => match trace.networks.as_slice() {
                    [one] => {
                        (one.vid, one.vport, one.outcome) == (vid, vport, outcome)
                            && one.bytes == output.bytes
                            && one.egress.is_none_or(|port| port == egress)
                            && one.egress.is_some() == (outcome == Outcome::Forward)
                    }
                    _ => false,
                },
                _ => false,
            };
            if !same {
                wrong = Some(format!("{:?} {:?}", output, trace));
            }
        });
        prop_assert_eq!(wrong, None);
    }
}
