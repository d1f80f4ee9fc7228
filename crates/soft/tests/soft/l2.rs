//! Kind `l2` against an oracle of its own: outcomes, egress ports, bytes and the table, frame by frame.

use std::collections::BTreeMap;

use crate::common::{soft, vid};
use hue_demux::{Match, PortId, Row};
use hue_planes::l2::{self, Outcome};
use hue_planes::{Kind, Rate, RateLimit, Reason, Settings};
use hue_soft::{Batch, Fate, SwitchCounts};
use hue_substrate::{Entries, Program, Substrate, VirtualPort};
use hue_tables::NextHop;
use hue_wire::Mac;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

const SECOND_NS: u64 = 1_000_000_000;

/// Network `id`, a switch with `ports` ports from `first` on. Frames are selected by their port.
pub fn switch(id: u16, first: u8, ports: u8, settings: l2::Settings, fixed: &[(Mac, u16)]) -> Program {
    let ports: Vec<_> = (first..first + ports)
        .map(|port| VirtualPort {
            name: format!("v{port}"),
            port: PortId::new(port),
            mac: Mac([2, 0, 0, 0, id as u8, port]),
            mtu_bytes: 1500,
            tunnel: None,
        })
        .collect();
    let row =
        |(port, vport): (&VirtualPort, u16)| Row { vid: vid(id), vport, select: Match::Port(port.port) };
    Program {
        vid: vid(id),
        name: format!("net{id}"),
        settings: Settings::L2(settings),
        rows: ports.iter().zip(0..).map(row).collect(),
        next_hops: ports.iter().map(|port| hue_planes::Adjacency::out(port.port, port.mtu_bytes)).collect(),
        groups: Vec::new(),
        entries: Entries::Exact(fixed.iter().map(|(mac, hop)| (*mac, NextHop::new(*hop).unwrap())).collect()),
        ports,
        rate_limit: None,
        weight: 1,
        policies: None,
        gated: false,
    }
}

/// A frame between two addresses.
pub fn frame(destination: Mac, source: Mac, len: usize) -> Vec<u8> {
    let mut bytes = [destination.octets(), source.octets()].concat();
    bytes.extend([0x12, 0x34]);
    bytes.resize(len.max(14), 7);
    bytes
}

pub fn host(n: u8) -> Mac {
    Mac([2, 0xaa, 0, 0, 0, n])
}

/// What a switch does, in the words of the specification. A port is a virtual port.
#[derive(Clone)]
struct Oracle {
    ports: u16,
    settings: l2::Settings,
    fixed: BTreeMap<Mac, u16>,
    /// Port, and time of the last frame.
    learnt: BTreeMap<Mac, (u16, u64)>,
    counts: SwitchCounts,
    bug: Bug,
}

/// A mistake that the comparison must find.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Bug {
    None,
    GroupSource,
    ZeroDestination,
    Reserved,
    NoLearning,
    ForgetsMoves,
    Sticky,
    StaticMoves,
    SamePort,
    FloodsBack,
    Mtu,
    Tag,
    Ageing,
    Limit,
}

const BUGS: [Bug; 13] = [
    Bug::GroupSource,
    Bug::ZeroDestination,
    Bug::Reserved,
    Bug::NoLearning,
    Bug::ForgetsMoves,
    Bug::Sticky,
    Bug::StaticMoves,
    Bug::SamePort,
    Bug::FloodsBack,
    Bug::Mtu,
    Bug::Tag,
    Bug::Ageing,
    Bug::Limit,
];

impl Oracle {
    fn is(&self, bug: Bug) -> bool {
        self.bug == bug
    }

    /// Port of an address, and whether the entry is static.
    fn find(&self, mac: Mac) -> Option<(u16, bool)> {
        let learnt = self.learnt.get(&mac).map(|(port, _)| (*port, false));
        self.fixed.get(&mac).map(|port| (*port, true)).or(learnt)
    }

    /// The outcome, and the ports on which the frame leaves.
    fn take(&mut self, port: u16, now_ns: u64, frame: &[u8]) -> (Outcome, Vec<u16>) {
        let ageing_ns =
            u64::from(self.settings.ageing_s) * SECOND_NS + u64::from(self.is(Bug::Ageing)) * SECOND_NS;
        self.learnt.retain(|_, (_, seen)| now_ns - *seen <= ageing_ns);
        let to = Mac(frame[..6].try_into().unwrap());
        let from = Mac(frame[6..12].try_into().unwrap());
        if (from.is_multicast() && !self.is(Bug::GroupSource)) || from == Mac::ZERO {
            return (Outcome::BadSource, Vec::new());
        }
        if to == Mac::ZERO && !self.is(Bug::ZeroDestination) {
            return (Outcome::BadDestination, Vec::new());
        }
        let last = if self.is(Bug::Reserved) { 0x0e } else { 0x0f };
        if to.0[..5] == [1, 0x80, 0xc2, 0, 0] && to.0[5] <= last {
            return (Outcome::Reserved, Vec::new());
        }
        let sticky = self.settings.sticky && !self.is(Bug::Sticky);
        if let Some((other, fixed)) = self.find(from).filter(|(other, _)| *other != port)
            && ((fixed && !self.is(Bug::StaticMoves)) || (sticky && !fixed))
        {
            let _ = other;
            return (Outcome::WrongPort, Vec::new());
        }
        let found = self.find(to).map(|(port, _)| port).filter(|_| !to.is_multicast());
        self.learn(from, port, now_ns);
        let tagged = matches!(frame[12..14], [0x81, 0] | [0x88, 0xa8]) && !self.is(Bug::Tag);
        let payload = (frame.len() - 14).saturating_sub(if tagged { 4 } else { 0 });
        if found == Some(port) && !self.is(Bug::SamePort) {
            return (Outcome::SamePort, Vec::new());
        }
        if payload > 1500 + usize::from(self.is(Bug::Mtu)) {
            return (Outcome::Mtu, Vec::new());
        }
        match found {
            Some(port) => (Outcome::Forward, vec![port]),
            None => (
                Outcome::Flood,
                (0..self.ports).filter(|other| *other != port || self.is(Bug::FloodsBack)).collect(),
            ),
        }
    }

    fn learn(&mut self, mac: Mac, port: u16, now_ns: u64) {
        if self.fixed.contains_key(&mac) || self.is(Bug::NoLearning) {
            return;
        }
        let limit = usize::from(self.settings.macs_max) + usize::from(self.is(Bug::Limit));
        let count = self.learnt.len();
        match self.learnt.get_mut(&mac) {
            Some((old, seen)) => {
                if *old != port {
                    self.counts.moved += 1;
                    if self.bug == Bug::ForgetsMoves {
                        return;
                    }
                }
                // A refresh is recorded when it is worth a write: after an eighth of the time, or a second.
                if *old != port
                    || now_ns - *seen >= SECOND_NS.min(u64::from(self.settings.ageing_s) * SECOND_NS / 8)
                {
                    *seen = now_ns;
                }
                *old = port;
            }
            None if count >= limit => self.counts.not_learnt += 1,
            None => {
                self.counts.learnt += 1;
                self.learnt.insert(mac, (port, now_ns));
            }
        }
    }
}

/// A frame of few addresses, and the time since the one before.
fn step() -> impl Strategy<Value = (u16, u64, Vec<u8>)> {
    let unicast = (0u8..6).prop_map(host);
    let odd = prop_oneof![
        Just(Mac::BROADCAST),
        Just(Mac::ZERO),
        Just(Mac([1, 0, 0x5e, 0, 0, 5])),
        (0u8..0x12).prop_map(|last| Mac([1, 0x80, 0xc2, 0, 0, last])),
        any::<[u8; 6]>().prop_map(Mac),
    ];
    let mac = || prop_oneof![8 => unicast.clone(), 1 => odd.clone()];
    let len = prop_oneof![8 => Just(60usize), 1 => 1512usize..1522, 1 => 14usize..20];
    let tag = prop_oneof![4 => Just([8, 0]), 1 => Just([0x81, 0]), 1 => Just([0x88, 0xa8])];
    let wait = prop_oneof![6 => 0u64..SECOND_NS, 1 => 0u64..25 * SECOND_NS];
    (0u16..3, wait, mac(), mac(), len, tag).prop_map(|(port, wait, to, from, len, tag)| {
        let mut bytes = frame(to, from, len);
        bytes[12..14].copy_from_slice(&tag);
        (port, wait, bytes)
    })
}

fn settings() -> impl Strategy<Value = l2::Settings> {
    (0u16..6, prop_oneof![Just(10u32), Just(20)], any::<bool>()).prop_map(|(macs_max, ageing_s, sticky)| {
        l2::Settings { macs_max, ageing_s, sticky, storm_limit: None }
    })
}

/// What became of a frame: its number, outcome, egress port (or that of arrival) and bytes, for each copy.
type Copies = Vec<(usize, Outcome, u8, Vec<u8>)>;
type Steps = Vec<(u16, u64, Vec<u8>)>;

/// Compares the engine with the oracle.
fn compare(bug: Bug, settings: l2::Settings, steps: &Steps, batch: usize) -> Result<(), TestCaseError> {
    let fixed = [(host(5), 2)];
    let mut soft = soft();
    soft.load(&[switch(1, 0, 3, settings, &fixed)]).unwrap();
    let mut oracle = Oracle {
        ports: 3,
        settings,
        fixed: fixed.into(),
        learnt: BTreeMap::new(),
        counts: SwitchCounts::default(),
        bug,
    };
    let mut now_ns = 0;
    for steps in steps.chunks(batch) {
        let (mut frames, mut expected) = (Batch::new(), Vec::new());
        for (port, wait, bytes) in steps {
            now_ns += wait;
            frames.push(PortId::new(*port as u8), now_ns, bytes);
            let (outcome, ports) = oracle.take(*port, now_ns, bytes);
            let explained = (steps.len() == 1)
                .then(|| soft.explain(PortId::new(*port as u8), now_ns, bytes).networks.remove(0).outcome);
            prop_assert!(explained.is_none_or(|found| found == outcome));
            let at = expected.len();
            match outcome {
                Outcome::Forward | Outcome::Flood => {
                    let egress = ports.iter().map(|port| (at, outcome, *port as u8, bytes.clone()));
                    expected.push(egress.collect());
                }
                _ => expected.push(vec![(at, outcome, *port as u8, bytes.clone())]),
            }
        }
        let mut found: Vec<Copies> = vec![Vec::new(); expected.len()];
        soft.run(&mut frames, |output| {
            let Fate::Network { outcome, egress, .. } = output.fate else { panic!("{:?}", output.fate) };
            let outcome = Outcome::ALL.into_iter().find(|one| Reason::from(*one) == outcome).unwrap();
            found[output.frame].push((output.frame, outcome, egress.get(), output.bytes.to_vec()));
        });
        prop_assert_eq!(found, expected);
        let rows: Vec<_> =
            soft.macs(vid(1), now_ns).iter().map(|row| (row.mac, row.vport, row.fixed)).collect();
        let mut known: Vec<_> = oracle.learnt.iter().map(|(mac, (port, _))| (*mac, *port, false)).collect();
        known.extend(oracle.fixed.iter().map(|(mac, port)| (*mac, *port, true)));
        known.sort_unstable();
        prop_assert_eq!(rows, known);
        prop_assert_eq!(soft.switch_counts(vid(1)), Some(oracle.counts));
    }
    let counted = soft.counters(vid(1)).unwrap();
    prop_assert_eq!(counted.received(), steps.len() as u64);
    Ok(())
}

proptest! {
    #![proptest_config(Config { cases: 400, ..Config::default() })]

    #[test]
    fn a_switch_does_what_the_specification_says(
        settings in settings(),
        steps in prop::collection::vec(step(), 1..200),
        batch in prop_oneof![Just(1usize), 1usize..80],
    ) {
        compare(Bug::None, settings, &steps, batch)?;
    }
}

#[test]
fn planted_bugs_are_found() {
    let mut runner =
        TestRunner::new_with_rng(Config::default(), TestRng::from_seed(RngAlgorithm::ChaCha, &[3; 32]));
    let cases: Vec<_> = (0..150)
        .map(|_| {
            let steps = prop::collection::vec(step(), 100..200);
            (settings(), steps).new_tree(&mut runner).unwrap().current()
        })
        .collect();
    for bug in BUGS {
        let found = cases.iter().any(|(settings, steps)| compare(bug, *settings, steps, 32).is_err());
        assert!(found, "{bug:?} was not found");
    }
}

#[test]
fn floods_have_a_limit_and_known_hosts_do_not() {
    let packets = Some(Rate::new(10, 3).unwrap());
    let storm_limit = Some(RateLimit { packets, bits: None });
    let mut soft = soft();
    soft.load(&[switch(1, 0, 3, l2::Settings { storm_limit, ..l2::Settings::default() }, &[])]).unwrap();
    let mut batch = Batch::new();
    batch.push(PortId::new(1), 0, &frame(Mac::BROADCAST, host(1), 60));
    for n in 0..20 {
        batch.push(PortId::new(0), n, &frame(Mac::BROADCAST, host(0), 60));
        batch.push(PortId::new(0), n, &frame(host(1), host(0), 60));
    }
    let traced = |soft: &hue_soft::Soft| {
        soft.explain(PortId::new(0), 30, &frame(Mac::BROADCAST, host(0), 60)).networks[0].clone()
    };
    assert_eq!(traced(&soft).outcome, Outcome::Flood);
    let mut copies = 0;
    soft.run(&mut batch, |output| copies += usize::from(output.fate != Fate::Pending));
    let counters = soft.counters(vid(1)).unwrap();
    let of = |outcome: Outcome| counters.get(outcome);
    assert_eq!((of(Outcome::Flood), of(Outcome::Storm), of(Outcome::Forward)), (3, 18, 20));
    assert_eq!(copies, 3 * 2 + 18 + 20);
    let trace = traced(&soft);
    assert_eq!((trace.outcome, trace.stages.last().unwrap().name), (Reason::from(Outcome::Storm), "storm"));
}

/// A switch shares a port with a router: group frames there have copies for both, which are decided in the order of the frames.
#[test]
fn a_frame_for_several_networks_keeps_its_place() {
    let mut soft = soft();
    let settings = l2::Settings { sticky: true, ..l2::Settings::default() };
    let mut router = switch(2, 1, 1, settings, &[]);
    let select = Match::Mac { port: PortId::new(1), mac: router.ports[0].mac };
    router.rows = vec![Row { vid: vid(2), vport: 0, select }];
    router.settings = Settings::of(Kind::Ipv4);
    (router.entries, router.next_hops) = (Entries::none(Kind::Ipv4), Vec::new());
    soft.load(&[switch(1, 0, 3, settings, &[]), router]).unwrap();
    let mut batch = Batch::new();
    batch.push(PortId::new(0), 0, &frame(host(9), host(1), 60));
    batch.push(PortId::new(1), 0, &frame(Mac::BROADCAST, host(1), 60));
    let mut outcomes = Vec::new();
    soft.run(&mut batch, |output| {
        if let Fate::Network { vid: whose, outcome, .. } = output.fate
            && whose == vid(1)
        {
            outcomes.push((output.frame, outcome));
        }
    });
    let (flood, wrong_port) = (Reason::from(Outcome::Flood), Reason::from(Outcome::WrongPort));
    assert_eq!(outcomes, [(0, flood), (0, flood), (1, wrong_port)]);
}

/// What a network has learnt stays when it is loaded again, as far as its ports are still there.
#[test]
fn a_change_keeps_what_was_learnt() {
    let mut soft = soft();
    let settings = l2::Settings::default();
    soft.load(&[switch(1, 0, 3, settings, &[]), switch(2, 5, 2, settings, &[])]).unwrap();
    let mut batch = Batch::new();
    for port in [0u8, 1, 2, 5, 6] {
        batch.push(PortId::new(port), 0, &frame(Mac::BROADCAST, host(port), 60));
    }
    soft.run(&mut batch, |_| {});
    let macs = |soft: &hue_soft::Soft, id| -> Vec<_> {
        soft.macs(vid(id), 1).iter().map(|row| (row.mac, row.vport, row.fixed)).collect()
    };
    assert_eq!(macs(&soft, 1), [(host(0), 0, false), (host(1), 1, false), (host(2), 2, false)]);
    // Port 0 goes, so the others have other numbers; host 2 gets a static entry at another port.
    soft.load(&[switch(1, 1, 2, settings, &[(host(2), 0)])]).unwrap();
    assert_eq!(macs(&soft, 1), [(host(1), 0, false), (host(2), 0, true)]);
    assert_eq!(macs(&soft, 2), [(host(5), 0, false), (host(6), 1, false)], "the other network's");
    // A kind that learns nothing, and back.
    let ipv4 = Program {
        settings: Settings::of(Kind::Ipv4),
        entries: Entries::none(Kind::Ipv4),
        next_hops: Vec::new(),
        ..switch(1, 1, 2, settings, &[])
    };
    soft.load(&[ipv4]).unwrap();
    assert_eq!(macs(&soft, 1), []);
    soft.load(&[switch(1, 1, 2, settings, &[])]).unwrap();
    assert_eq!((macs(&soft, 1), soft.account(vid(1)).unwrap().routes), (Vec::new(), 0));
}
