//! What the engine must do for networks of every kind, side by side; kind `echo`, which exists only in tests; and that a
//! kind that is ignored is noticed. A new kind is tested here without a change of this file.

use hue_demux::{Match, PortId, Row};
use hue_planes::{
    Adjacency, Answer, Counters, Keys, Kind, Plane, Reason, Settings, echo, finish, with_plane,
};
use hue_soft::{Batch, Fate, Soft};
use hue_substrate::planted::{Bug, plant};
use hue_substrate::{Entries, Program, Substrate, VirtualPort};
use hue_tables::{Limits, NextHop, Vid};
use hue_wire::Mac;

fn vid(id: u16) -> Vid {
    Vid::new(id).unwrap()
}

fn soft() -> Soft {
    Soft::new(Limits::default()).unwrap()
}

/// The MAC address of network `id` on a port.
fn mac(id: u16, port: u8) -> Mac {
    let [high, low] = id.to_be_bytes();
    Mac([2, 0, 0, high, low, port])
}

/// A valid UDP packet of 46 bytes over IPv4.
fn packet(to: Mac, address: [u8; 4]) -> Vec<u8> {
    let mut bytes = to.0.to_vec();
    bytes.extend([2, 9, 9, 9, 9, 9, 8, 0, 0x45, 0, 0, 32, 0, 1, 0, 0, 64, 17, 0, 0, 192, 0, 2, 1]);
    bytes.extend(address);
    bytes.extend([7; 12]);
    let checksum = hue_wire::checksum::full(&bytes[14..34]);
    bytes[24..26].copy_from_slice(&checksum.to_be_bytes());
    bytes
}

/// Ports of a network.
const PORTS: u8 = 2;
const HOST: Mac = Mac([2, 0xaa, 0, 0, 0, 1]);
const FIXED: Mac = Mac([2, 0xaa, 0, 0, 0, 9]);

/// A network of a kind, alone on two ports, with an empty table. It gets the frames to its MAC addresses, and all others of
/// its ports.
fn network(kind: Kind, id: u16) -> Program {
    let first = id as u8 * PORTS;
    let ports: Vec<_> = (first..first + PORTS)
        .map(|port| VirtualPort {
            name: format!("v{port}"),
            port: PortId::new(port),
            mac: mac(id, port),
            mtu_bytes: 1500,
            tunnel: None,
        })
        .collect();
    let rows = |(port, vport): (&VirtualPort, u16)| {
        [Match::Mac { port: port.port, mac: port.mac }, Match::Port(port.port)].map(|select| Row {
            vid: vid(id),
            vport,
            select,
        })
    };
    Program {
        vid: vid(id),
        name: kind.name().to_owned(),
        settings: Settings::of(kind),
        rows: ports.iter().zip(0..).flat_map(rows).collect(),
        next_hops: ports
            .iter()
            .map(|port| match kind.limits().keys {
                Keys::Label => port.arrival(),
                _ => Adjacency::out(port.port, port.mtu_bytes),
            })
            .collect(),
        groups: Vec::new(),
        entries: Entries::none(kind),
        ports,
        rate_limit: None,
        weight: 1,
        policies: None,
        gated: false,
    }
}

/// Frames to a network that kinds treat differently: of both families, ARP, of no known protocol, to a group, from one, cut
/// short, empty.
fn frames(own: Mac) -> Vec<Vec<u8>> {
    let ethernet = |destination: Mac, source: Mac, ethertype: u16, payload: &[u8]| {
        let head = [&destination.0[..], &source.0, &ethertype.to_be_bytes()].concat();
        [&head[..], payload].concat()
    };
    let (ipv4, other) = (packet(own, [192, 0, 2, 1]), Mac([2, 0xbb, 0, 0, 0, 1]));
    let mut ipv6 = [0; 40];
    (ipv6[0], ipv6[6], ipv6[7], ipv6[8], ipv6[24]) = (0x60, 59, 64, 0x20, 0x20);
    let mut labels = [0; 40];
    (labels[0], labels[1], labels[2]) = (0x10, 16, 9);
    vec![
        ipv4[..20].to_vec(),
        ipv4,
        packet(other, [192, 0, 2, 1]),
        ethernet(own, HOST, 0x86dd, &ipv6),
        ethernet(Mac::BROADCAST, HOST, 0x0806, &[0; 28]),
        ethernet(other, HOST, 0x1234, &[7; 46]),
        ethernet(Mac([1, 0, 0x5e, 0, 0, 5]), HOST, 0x1234, &[7; 46]),
        ethernet(own, Mac::BROADCAST, 0x1234, &[7; 46]),
        ethernet(own, HOST, 0x1234, &[]),
        ethernet(own, HOST, 0x88b5, &labels),
    ]
}

/// The outcome and the bytes afterwards of a network with an empty table, by its kind's plane alone.
fn expected(program: &Program, frame: &[u8]) -> (Reason, Vec<u8>) {
    fn run<P: Plane>(settings: &Settings, arrival: &Adjacency, frame: &[u8]) -> (Reason, Vec<u8>) {
        let mut bytes = frame.to_vec();
        let answer = Answer { arrival, ..Answer::of(&Adjacency::NONE) };
        let outcome = match P::front(frame, P::settings(settings)) {
            Ok(carried) => finish::<P>(&mut bytes, carried, answer),
            Err(outcome) => outcome,
        };
        (outcome, bytes)
    }
    with_plane!(program.kind(), P => run::<P>(&program.settings, &program.next_hops[0], frame))
}

/// Gives each frame to a fresh network of each kind, and compares outcomes, bytes and counters with what its plane says.
fn compare() -> Result<(), String> {
    let programs: Vec<_> = Kind::ALL.into_iter().zip(1..).map(|(kind, id)| network(kind, id)).collect();
    for nth in 0..frames(HOST).len() {
        let frame = |program: &Program| frames(program.ports[0].mac)[nth].clone();
        let mut soft = soft();
        soft.load(&programs).unwrap();
        let mut batch = Batch::new();
        for program in &programs {
            batch.push(program.ports[0].port, 0, &frame(program));
        }
        let mut found = Vec::new();
        // A flood is one outcome, and with two ports one output too.
        soft.run(&mut batch, |output| found.push((output.fate, output.bytes.to_vec())));
        for (program, (fate, bytes)) in programs.iter().zip(found) {
            let wanted = expected(program, &frame(program));
            let Fate::Network { vid, vport: 0, outcome, .. } = fate else { return Err(format!("{fate:?}")) };
            let mut counters = Counters::new(program.kind());
            counters.count(wanted.0);
            let counted = soft.counters(vid).unwrap() == counters;
            if vid != program.vid || (outcome, &bytes) != (wanted.0, &wanted.1) || !counted {
                return Err(format!(
                    "{}, frame {nth}: expected {wanted:02x?}, found {fate:?} {bytes:02x?}",
                    program.name
                ));
            }
        }
    }
    Ok(())
}

#[test]
fn networks_of_every_kind_go_through_their_own_plane() {
    compare().unwrap();
}

#[test]
fn an_ignored_kind_is_found() {
    plant(Some(Bug::KindIgnored));
    let found = compare();
    plant(None);
    let found = found.unwrap_err();
    assert!(!found.starts_with(Kind::Ipv4.name()), "{found}");
}

/// Every frame comes back to where it came from, or to where its sender is said to be.
#[test]
fn an_echo_network_sends_frames_back() {
    let entries = Entries::Exact(vec![(FIXED, NextHop::new(0).unwrap())]);
    let program = Program { entries, ..network(Kind::Echo, 1) };
    let ports: Vec<_> = program.ports.iter().map(|port| port.port).collect();
    let mut soft = soft();
    soft.load(&[program]).unwrap();
    let mut batch = Batch::new();
    for (at, port) in ports.iter().enumerate() {
        for source in [HOST, FIXED] {
            let frame = [&[2, 0xbb, 0, 0, 0, 1][..], &source.0, &[0x12, 0x34, at as u8]].concat();
            let back = [&source.0, &frame[..6], &frame[12..]].concat();
            let egress = if source == FIXED { ports[0] } else { *port };
            let trace = soft.explain(*port, 0, &frame).networks.remove(0);
            assert_eq!((trace.outcome, trace.egress), (Reason::from(echo::Outcome::Forward), Some(egress)));
            assert_eq!(trace.bytes, back);
            batch.clear();
            batch.push(*port, 0, &frame);
            let (vid, vport, outcome) = (vid(1), at as u16, echo::Outcome::Forward.into());
            soft.run(&mut batch, |output| {
                assert_eq!(output.fate, Fate::Network { vid, vport, outcome, egress });
                assert_eq!(output.bytes, back);
            });
        }
    }
    assert_eq!(soft.macs(vid(1), 0).len(), 1, "it learns nothing");
}
