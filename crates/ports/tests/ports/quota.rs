//! Isolation before the ring: a flood of one class uses up only its own share. Needs root.

use std::time::{Duration, Instant};

use crate::common::{Lab, Raw, collect, frame, may_run, number};
use hue_ports::{
    AfXdp, AfXdpOptions, CLASS_GROUP, CLASS_OTHER, ClassLosses, ClassRule, GroupLimits, Packet, Pool, Port,
    PortError,
};

const FLOOD: [u8; 6] = [2, 0, 0, 0, 1, 1];
const VICTIM: [u8; 6] = [2, 0, 0, 0, 2, 2];
const NOBODY: [u8; 6] = [2, 0, 0, 0, 3, 3];
const ALL: [u8; 6] = [255; 6];
const RULES: [ClassRule; 2] =
    [ClassRule::Mac { mac: FLOOD, class: 10 }, ClassRule::Mac { mac: VICTIM, class: 20 }];
const NO_LIMITS: GroupLimits = GroupLimits {
    source_packets_per_second: 0,
    source_burst_packets: 0,
    packets_per_second: 0,
    burst_packets: 0,
};
/// The program lets a frame of a starved class pass this often; the tests allow for some of them.
const PROBE: Duration = Duration::from_millis(50);

struct Bench {
    lab: Lab,
    pool: Pool,
    port: AfXdp,
    raw: Raw,
    held: Vec<Packet>,
    begin: Instant,
}

impl Bench {
    fn new(generic: bool, ring: u32, group: GroupLimits) -> Self {
        let lab = Lab::new();
        let mut pool = Pool::new(2048, 2048).unwrap();
        let region = pool.region();
        let options = AfXdpOptions { ring, generic, group, ..AfXdpOptions::default() };
        let (mut port, _) = lab.inside("near", || AfXdp::open("near", &options, &region)).unwrap();
        port.fill(&mut pool);
        let raw = lab.raw();
        Self { lab, pool, port, raw, held: Vec::new(), begin: Instant::now() }
    }

    fn flood(&self, to: [u8; 6], count: u32) {
        for i in 0..count {
            self.raw.send(&frame(to, i, 60));
        }
    }

    /// Takes everything from the ring and keeps it, like a queue that is not served.
    fn receive(&mut self) -> usize {
        let before = self.held.len();
        let mut idle = 0;
        // Frames that the far end sent passed the program before `send` returned, or do so immediately.
        while idle < 20 {
            let now_ns = self.begin.elapsed().as_nanos() as u64;
            let got = self.port.receive(&mut self.pool, now_ns, &mut self.held, 64).unwrap();
            if got == 0 {
                idle += 1;
                std::thread::sleep(Duration::from_millis(1));
            } else {
                idle = 0;
            }
        }
        self.held.len() - before
    }

    fn held_of(&self, class: u16) -> usize {
        self.held.iter().filter(|packet| packet.class == class).count()
    }

    /// Reports that the engine has finished with every held packet.
    fn serve(&mut self) {
        for packet in self.held.drain(..) {
            if packet.class != 0 {
                self.port.consumed(packet.class, 1);
            }
            self.pool.give(packet.slot);
        }
    }

    fn end(mut self) {
        self.serve();
        self.port.close(&mut self.pool);
        assert_eq!(self.pool.free(), 2048);
        drop(self.lab);
    }

    /// Maximum number of probes that may have passed since the beginning.
    fn probes(&self) -> usize {
        (self.begin.elapsed().as_nanos() / PROBE.as_nanos()) as usize + 1
    }
}

#[test]
fn a_flood_fills_its_own_share_only() {
    if !may_run() {
        return;
    }
    for generic in [false, true] {
        let mut bench = Bench::new(generic, 256, NO_LIMITS);
        bench.port.set_classes(&RULES, &[(10, 32), (20, 64)]).unwrap();
        for round in 0..5 {
            let begin = bench.probes();
            bench.flood(FLOOD, 2000);
            bench.flood(VICTIM, 60);
            bench.receive();
            let probes = bench.probes() - begin + 1;
            assert_eq!(bench.held_of(20), 60, "round {round}: the victim loses nothing");
            let flood = bench.held_of(10);
            assert!((32..=32 + probes).contains(&flood), "round {round}: {flood} of the flood");
            assert_eq!(bench.port.lost(20).ring_quota, 0);
            bench.serve();
        }
        let counters = bench.port.counters();
        assert_eq!(counters.ring_full, 0);
        assert_eq!(bench.port.lost(10).ring_quota, counters.ring_quota);
        assert_eq!(counters.ring_quota + counters.received_packets, 5 * 2060, "policed and received add up");
        bench.end();
    }
}

#[test]
fn an_idle_class_costs_the_others_nothing() {
    if !may_run() {
        return;
    }
    let mut bench = Bench::new(false, 512, NO_LIMITS);
    // One class may use nearly all of the ring while the other is silent.
    bench.port.set_classes(&RULES, &[(10, 400), (20, 400)]).unwrap();
    bench.flood(FLOOD, 400);
    assert_eq!(bench.receive(), 400);
    bench.flood(FLOOD, 1);
    assert!(bench.receive() <= 1, "the share is used up");
    bench.serve();
    bench.flood(FLOOD, 400);
    assert!(bench.receive() >= 399);
    bench.end();
}

#[test]
fn unclaimed_frames_are_dropped_and_counted_or_passed_on() {
    if !may_run() {
        return;
    }
    let mut bench = Bench::new(false, 256, NO_LIMITS);
    bench.flood(NOBODY, 5);
    assert_eq!(bench.receive(), 5, "before classes are set everything comes");
    bench.port.set_classes(&RULES, &[]).unwrap();
    bench.flood(NOBODY, 100);
    bench.flood(VICTIM, 10);
    assert_eq!(bench.receive(), 10);
    assert!(bench.held.iter().all(|packet| packet.class == 0), "without a quota there is no class");
    assert_eq!(bench.port.counters().no_network, 100);
    bench.port.set_classes(&[ClassRule::Default { class: 30 }], &[(30, 8)]).unwrap();
    bench.flood(NOBODY, 8);
    bench.flood(VICTIM, 100);
    bench.serve();
    bench.receive();
    assert!(bench.held_of(30) >= 8 && bench.port.lost(30).ring_quota > 80);
    assert_eq!(bench.port.counters().no_network, 100);
    bench.end();
}

#[test]
fn rules_follow_what_the_frame_carries() {
    if !may_run() {
        return;
    }
    let mut bench = Bench::new(false, 256, NO_LIMITS);
    let rules = [
        ClassRule::Mac { mac: FLOOD, class: 1 },
        ClassRule::Inner { addr: 0x0a01_0000, len: 16, class: 2 },
        ClassRule::Inner { addr: 0x0a01_0200, len: 24, class: 3 },
        ClassRule::Inner { addr: 0xc0a8_0001, len: 32, class: 4 },
        ClassRule::Default { class: 5 },
    ];
    let quotas: Vec<(u16, u32)> = (1..=5).map(|class| (class, 100)).collect();
    bench.port.set_classes(&rules, &quotas).unwrap();
    let ip = |destination: [u8; 4], protocol: u8, fragment: u16, payload: &[u8]| {
        let mut packet = vec![0x45, 0, 0, 0, 0, 0, 0, 0, 64, protocol, 0, 0, 9, 9, 9, 9];
        packet[2..4].copy_from_slice(&((20 + payload.len()) as u16).to_be_bytes());
        packet[6..8].copy_from_slice(&fragment.to_be_bytes());
        packet.extend(destination);
        packet.extend(payload);
        packet
    };
    let ethernet = |to: [u8; 6], packet: &[u8]| {
        let mut frame = to.to_vec();
        frame.extend([2, 0, 0, 0, 0, 9, 8, 0]);
        frame.extend(packet);
        frame.resize(frame.len().max(60), 0);
        frame
    };
    let udp = |port: u16, payload: &[u8]| {
        let mut datagram = vec![0x30, 0x39];
        datagram.extend(port.to_be_bytes());
        datagram.extend(((8 + payload.len()) as u16).to_be_bytes());
        datagram.extend([0, 0]);
        datagram.extend(payload);
        datagram
    };
    let vxlan = |flags: u8, inner: &[u8]| {
        let mut packet = vec![flags, 0, 0, 0, 0, 0, 7, 0];
        packet.extend(inner);
        packet
    };
    let plain = ip([10, 1, 2, 3], 17, 0, &udp(1000, &[0; 20]));
    let inner_frame = ethernet(NOBODY, &ip([192, 168, 0, 1], 6, 0, &[0; 20]));
    let with_options = {
        let mut packet = ip([9, 9, 9, 8], 4, 0, &[]);
        packet[0] = 0x46;
        packet.extend([1, 1, 1, 1]);
        packet.extend(&plain);
        packet
    };
    let cases = [
        (ethernet(FLOOD, &plain), 1, "the MAC goes first"),
        (ethernet(NOBODY, &plain), 3, "the longest prefix"),
        (ethernet(NOBODY, &ip([10, 1, 9, 9], 6, 0, &[0; 20])), 2, "the shorter prefix"),
        (ethernet(NOBODY, &ip([10, 2, 9, 9], 6, 0, &[0; 20])), 5, "no prefix: the default"),
        (ethernet(NOBODY, &ip([9, 9, 9, 8], 4, 0, &plain)), 3, "inside IPIP"),
        (ethernet(NOBODY, &with_options), 3, "inside IPIP with options"),
        (ethernet(NOBODY, &ip([10, 1, 2, 3], 4, 0, &[0; 20])), 5, "IPIP without a packet inside"),
        (ethernet(NOBODY, &ip([10, 1, 2, 3], 4, 100, &plain)), 5, "a later fragment of IPIP"),
        (ethernet(NOBODY, &ip([9, 9, 9, 8], 17, 0, &udp(4789, &vxlan(8, &inner_frame)))), 4, "in VXLAN"),
        (ethernet(NOBODY, &ip([10, 1, 2, 3], 17, 0, &udp(4789, &vxlan(0, &inner_frame)))), 5, "no VNI"),
        (ethernet(NOBODY, &ip([10, 1, 2, 3], 17, 100, &udp(4789, &vxlan(8, &inner_frame)))), 3, "fragment"),
        (frame(NOBODY, 0, 60), 5, "not IPv4"),
        (frame(ALL, 0, 60), 0, "group frames without a quota"),
    ];
    for (frame, class, what) in cases {
        bench.raw.send(&frame);
        assert_eq!(bench.receive(), 1, "{what}");
        assert_eq!(bench.held[0].class, class, "{what}");
        assert_eq!(bench.held[0].bytes(&bench.pool), frame, "{what}");
        bench.serve();
    }
    // Removed rules no longer apply, and kept rules still do.
    bench.port.set_classes(&rules[..2], &quotas).unwrap();
    for (frame, class) in [(ethernet(FLOOD, &plain), 1), (ethernet(NOBODY, &plain), 2)] {
        bench.raw.send(&frame);
        assert_eq!((bench.receive(), bench.held[0].class), (1, class));
        bench.serve();
    }
    bench.end();
}

#[test]
fn group_frames_have_a_share_and_each_sender_a_rate() {
    if !may_run() {
        return;
    }
    let mut bench = Bench::new(false, 512, NO_LIMITS);
    bench.port.set_classes(&RULES, &[(20, 64), (CLASS_GROUP, 16)]).unwrap();
    bench.flood(ALL, 500);
    bench.flood(VICTIM, 50);
    bench.receive();
    assert_eq!(bench.held_of(20), 50);
    assert!((16..=16 + bench.probes()).contains(&bench.held_of(CLASS_GROUP)));
    bench.end();

    let limits = GroupLimits {
        source_packets_per_second: 1,
        source_burst_packets: 20,
        packets_per_second: 1000,
        burst_packets: 100,
    };
    let mut bench = Bench::new(false, 512, limits);
    bench.port.set_classes(&RULES, &[(CLASS_GROUP, 400)]).unwrap();
    let begin = Instant::now();
    bench.flood(ALL, 300);
    bench.receive();
    let seconds = begin.elapsed().as_secs() as usize + 1;
    let flood = bench.held_of(CLASS_GROUP);
    assert!((20..=20 + seconds).contains(&flood), "{flood} frames of one sender");
    let mut other = frame(ALL, 0, 60);
    other[6..12].copy_from_slice(&[2, 0, 0, 0, 0, 0x99]);
    bench.raw.send(&other);
    bench.receive();
    assert!(bench.held_of(CLASS_GROUP) > flood, "frames of another sender pass");
    assert!(bench.port.lost(CLASS_GROUP).ring_quota > 200);
    bench.end();
}

#[test]
fn frames_lost_after_admission_are_given_back_to_their_class() {
    if !may_run() {
        return;
    }
    // The share is larger than the ring, so most of a burst is admitted and then finds no free slot.
    let mut bench = Bench::new(false, 64, NO_LIMITS);
    bench.port.set_classes(&RULES, &[(10, 200), (20, 64)]).unwrap();
    let mut sent = 0;
    for round in 0..4 {
        bench.flood(FLOOD, 200);
        sent += 200;
        assert!(bench.receive() >= 60, "round {round}");
        bench.serve();
        // At most one frame is needed to detect the gap; if all of the share was lost, a probe shows it.
        let begin = Instant::now();
        while begin.elapsed() < crate::common::PATIENCE {
            std::thread::sleep(PROBE + Duration::from_millis(10));
            bench.flood(FLOOD, 1);
            sent += 1;
            let got = bench.receive();
            bench.serve();
            if got > 0 {
                break;
            }
        }
        // The whole share is available again: portions that fit the ring all pass.
        let policed = bench.port.lost(10).ring_quota;
        for _ in 0..3 {
            bench.flood(FLOOD, 60);
            sent += 60;
            assert_eq!(bench.receive(), 60, "round {round}");
        }
        assert_eq!(bench.port.lost(10).ring_quota, policed, "round {round}");
        bench.serve();
        // Each loss has an owner, and all losses add up.
        let (counters, lost) = (bench.port.counters(), bench.port.lost(10));
        assert!(lost.ring_full > 0 && lost.ring_full == counters.ring_full, "round {round}: {lost:?}");
        assert_eq!(counters.received_packets + lost.ring_full + lost.ring_quota, sent, "round {round}");
        assert_eq!(bench.port.lost(20), ClassLosses::default());
    }
    bench.end();
}

#[test]
fn frames_of_no_single_network_have_their_own_shares_and_counter() {
    if !may_run() {
        return;
    }
    let mut bench = Bench::new(false, 256, NO_LIMITS);
    let others = ClassRule::Default { class: CLASS_OTHER };
    let rules = [&RULES[..], &[others]].concat();
    bench.port.set_classes(&rules, &[(10, 200), (20, 200), (CLASS_OTHER, 16), (CLASS_GROUP, 16)]).unwrap();
    for (mac, sent) in [(NOBODY, 50), (ALL, 70)] {
        let before = bench.port.counters();
        bench.flood(mac, sent);
        let received = bench.receive() as u64;
        let lost = bench.port.counters().shared_quota - before.shared_quota;
        assert!(received >= 16 && lost > 0, "{received} received, {lost} lost");
        assert_eq!(received + lost, sent as u64);
        bench.serve();
    }
    let counters = bench.port.counters();
    assert_eq!((counters.ring_quota, counters.no_network), (0, 0), "none of a network, none of nobody");
    assert!(bench.held.is_empty());
    bench.end();
}

#[test]
fn changing_classes_under_traffic_loses_nothing_of_those_that_stay() {
    if !may_run() {
        return;
    }
    let mut bench = Bench::new(false, 1024, NO_LIMITS);
    bench.port.set_classes(&RULES, &[(20, 1000)]).unwrap();
    let raw = bench.lab.raw();
    let sender = std::thread::spawn(move || {
        for i in 0..3000 {
            raw.send(&frame(VICTIM, i, 60));
            // 1,000 frames, which the receiver's share holds, take at least 100 ms: it may be late by as much.
            if i % 10 == 0 {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    });
    let mut seen = 0;
    for round in 0u32.. {
        let mut rules = RULES.to_vec();
        rules.extend((0..round % 7).map(|i| ClassRule::Mac { mac: [2, 9, 9, 9, 9, i as u8], class: 7 }));
        if round % 2 == 0 {
            rules.remove(0);
        }
        bench.port.set_classes(&rules, &[(20, 1000), (7, round)]).unwrap();
        let now_ns = bench.begin.elapsed().as_nanos() as u64;
        bench.port.receive(&mut bench.pool, now_ns, &mut bench.held, 256).unwrap();
        for packet in &bench.held {
            assert_eq!(number(packet.bytes(&bench.pool)), seen, "nothing is missing");
            seen += 1;
        }
        bench.serve();
        if seen == 3000 || bench.begin.elapsed() > crate::common::PATIENCE {
            break;
        }
    }
    sender.join().unwrap();
    assert_eq!(seen, 3000);
    bench.end();
}

#[test]
fn invalid_classes_are_refused_and_nothing_changes() {
    if !may_run() {
        return;
    }
    let mut bench = Bench::new(false, 64, NO_LIMITS);
    bench.port.set_classes(&RULES, &[(10, 8)]).unwrap();
    for class in [0, 4096, 65533] {
        let error = bench.port.set_classes(&[ClassRule::Default { class }], &[]).unwrap_err();
        assert!(matches!(error, PortError::Class { class: found, .. } if found == class), "{error}");
        assert!(bench.port.set_classes(&RULES, &[(class, 1)]).is_err());
    }
    bench.flood(FLOOD, 4);
    bench.flood(NOBODY, 4);
    assert_eq!(collect(&mut bench.port, &mut bench.pool, 4).len(), 4);
    assert_eq!(bench.port.counters().no_network, 4);
    bench.end();
}
