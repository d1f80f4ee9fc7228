//! Networks that together send too much share the capacity by their weights: that of an output port on the card, and a worker's
//! time in software. Both sides get the same networks and frames.

use std::collections::BTreeMap;

use hue_card::Way;
use hue_demux::{Match, PortId, Row};
use hue_differential::{card, image};
use hue_lab::{Experiment, Stream};
use hue_planes::{Adjacency, Kind, Settings};
use hue_ports::{Driver, MemoryHandle, MemoryPort};
use hue_soft::{Live, LiveConfig};
use hue_substrate::clock::Clock;
use hue_substrate::{Entries, Program, Substrate, VirtualPort};
use hue_tables::{NextHop, Prefix4, Vid};
use hue_testdata::{IMAGES, full};
use hue_wire::{Mac, checksum};

/// Weights of three networks that always have frames.
const WEIGHTS: [[u16; 3]; 4] = [[1, 1, 1], [1, 2, 4], [10, 5, 1], [20, 1, 20]];
/// Bytes of a frame, without FCS: 7 frames are more than the default quantum.
const BYTES: usize = 300;
/// Frames that a line of 1 Gbit/s takes in the 8 ms in which all send: each takes 324 byte times.
const LINE_FRAMES: usize = 3086;
/// Tolerance of a share, in percent of the share by weight: one turn among those of the run.
const PERCENT: f64 = 6.0;

fn own(net: usize, port: PortId) -> Mac {
    Mac([2, 0, 0, 0, net as u8, port.get()])
}

/// A network that forwards from some ports to one.
fn network(net: usize, from: &[PortId], to: PortId, weight: u16) -> Program {
    let vid = Vid::new(1 + net as u16).unwrap();
    let ports = || from.iter().copied().chain([to]);
    let vport = |port| VirtualPort {
        name: format!("v{port}"),
        port,
        mac: own(net, port),
        mtu_bytes: 1500,
        tunnel: None,
    };
    let row = |(port, vport)| Row { vid, vport, select: Match::Mac { port, mac: own(net, port) } };
    Program {
        vid,
        name: format!("n{net}"),
        settings: Settings::of(Kind::Ipv4),
        ports: ports().map(vport).collect(),
        rows: ports().zip(0..).map(row).collect(),
        next_hops: vec![Adjacency::forward(to, own(net, to), Mac([2, 0xaa, 0, 0, net as u8, 0]), 1500)],
        groups: Vec::new(),
        entries: Entries::Lpm32(vec![(Prefix4::containing(10 << 24, 8), NextHop::new(0).unwrap())]),
        rate_limit: None,
        weight,
        policies: None,
        gated: false,
    }
}

/// Three networks, each with `each` ports of its own, and the port to which all send.
fn world(weights: [u16; 3], each: usize) -> (Vec<Program>, PortId) {
    let to = PortId::new(3 * each as u8);
    let ports =
        |net: usize| (net * each..(net + 1) * each).map(|port| PortId::new(port as u8)).collect::<Vec<_>>();
    ((0..3).map(|net| network(net, &ports(net), to, weights[net])).collect(), to)
}

/// Each network's share of the frames that left, in percent. The first third, in which queues fill, is left out.
fn shares(left: &[usize]) -> [f64; 3] {
    let left = &left[left.len() / 3..];
    [0, 1, 2].map(|net| 100.0 * left.iter().filter(|of| **of == net).count() as f64 / left.len() as f64)
}

/// The network that sent a frame.
fn sender(bytes: &[u8]) -> usize {
    usize::from(bytes[10])
}

/// Each network sends as much as the port to which all send can take.
fn on_card(name: &str, weights: [u16; 3]) -> [f64; 3] {
    let (programs, to) = world(weights, 1);
    let traffic = |net: usize| Stream {
        port: PortId::new(net as u8),
        traffic: format!("rate:1G,size:{},networks:n{net},to:10.0.0.0/8", BYTES + 4).parse().unwrap(),
    };
    let experiment = Experiment {
        streams: (0..3).map(traffic).collect(),
        duration_us: Some(8_000),
        line: Some("1G".parse().unwrap()),
        wave: None,
    };
    let names: Vec<String> = (0..4).map(|port| format!("p{port}")).collect();
    let mut left = Vec::new();
    let measured = hue_lab::run(card(&image(name), &programs), &names, &experiment, |captured| {
        if captured.way == Way::Port(to) {
            left.push(sender(captured.bytes));
        }
    });
    let measured = measured.unwrap();
    assert!(measured.queue_drops() > 100, "{name}: nothing is contended");
    // Later frames leave without competition, because queues run empty.
    left.truncate(LINE_FRAMES);
    shares(&left)
}

/// Each network sends more than the worker processes in a round.
fn in_software(weights: [u16; 3]) -> [f64; 3] {
    let (programs, to) = world(weights, 3);
    let (clock, hand) = Clock::by_hand(1);
    let config = LiveConfig { workers: 1, slots: 8192, ..LiveConfig::default() };
    let mut live = Live::by_hand(config, &clock).unwrap();
    let wires: BTreeMap<u8, MemoryHandle> = (0..=to.get())
        .map(|id| {
            let (port, wire) = MemoryPort::pair(&format!("p{id}"), 1024).unwrap();
            let driver = live.add_port(PortId::new(id), move |_| Ok(Box::new(port))).unwrap();
            assert_eq!(driver, Driver::Memory);
            (id, wire)
        })
        .collect();
    live.load(&programs).unwrap();
    let mut left = Vec::new();
    while left.len() < 40_000 {
        for (id, wire) in wires.iter().filter(|(id, _)| **id != to.get()) {
            while wire.feed(&frame(usize::from(id / 3), PortId::new(*id))) {}
        }
        assert!(live.round(0));
        hand.pass(1_000);
        while let Some(frame) = wires[&to.get()].take() {
            left.push(sender(&frame));
        }
    }
    shares(&left)
}

fn frame(net: usize, port: PortId) -> Vec<u8> {
    let mut frame = Vec::with_capacity(BYTES);
    frame.extend(own(net, port).0);
    frame.extend([2, 0xbb, 0, 0, net as u8, 0]);
    let [high, low] = (BYTES as u16 - 14).to_be_bytes();
    frame.extend([8, 0, 0x45, 0, high, low, 0, 0, 0, 0, 64, 17, 0, 0, 10, 1, 0, 1, 10, 2, 0, 1]);
    let sum = checksum::full(&frame[14..34]);
    frame[24..26].copy_from_slice(&sum.to_be_bytes());
    frame.resize(BYTES, 0);
    frame
}

/// Checks that the shares on a substrate follow the weights.
fn follow(weights: [u16; 3], on: &str, shares: [f64; 3]) {
    let all: f64 = weights.iter().map(|weight| f64::from(*weight)).sum();
    let want = weights.map(|weight| 100.0 * f64::from(weight) / all);
    let text = format!("weights {weights:?}, {on}: {shares:.2?} of {want:.2?} percent");
    println!("{text}");
    assert!(
        shares.iter().zip(want).all(|(share, want)| (share - want).abs() <= want * PERCENT / 100.0),
        "{text}"
    );
}

#[test]
fn shares_follow_weights_on_both_substrates() {
    for (round, weights) in WEIGHTS.into_iter().enumerate() {
        follow(weights, "software", in_software(weights));
        // Each image with one of the weights; in long runs with all of them.
        for (at, image) in IMAGES.into_iter().enumerate() {
            if full() || round == at + 1 {
                follow(weights, image, on_card(image, weights));
            }
        }
    }
}
