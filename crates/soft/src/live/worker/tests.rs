//! Tests of a worker, run round by round in the test's own thread: shares, limits, allocations.

use std::sync::Arc;
use std::sync::mpsc::{Sender, channel, sync_channel};

use hue_demux::{Match, PortId, Row};
use hue_planes::{Adjacency, Kind, Loss, Rate, RateLimit, Settings, ipv4::Outcome};
use hue_ports::{Ending, MemoryHandle, MemoryPort, Pool, SlowEnd};
use hue_substrate::{Entries, Program, Substrate, VirtualPort};
use hue_tables::{Limits, NextHop, Vid};
use hue_wire::Mac;

use super::super::block::Block;
use super::super::network::QUEUE_FRAMES_MAX;
use super::super::steering::Steering;
use super::super::totals::{Ledger, PORT_WORDS, TotalsReader, WORKER_WORDS};
use super::{Installation, Job, Parts, Worker};
use crate::engine::{BATCH_MAX, Soft};
use hue_substrate::clock::Clock;
use hue_substrate::wake::{Poller, Wake};

const P0: PortId = PortId::new(0);
const P1: PortId = PortId::new(1);

fn vid(id: u16) -> Vid {
    Vid::new(id).unwrap()
}

fn mac(id: u16, port: u8) -> Mac {
    let [high, low] = id.to_be_bytes();
    Mac([2, 0, 0, high, low, port])
}

/// A network on two ports: 10.0.0.0/8 goes to port 1 except its own address, 10.0.0.1; there is no other route.
fn program(id: u16, weight: u16) -> Program {
    let port = |port: u8| VirtualPort {
        name: format!("v{port}"),
        port: PortId::new(port),
        mac: mac(id, port),
        mtu_bytes: 1500,
        tunnel: None,
    };
    let row = |port: u8| Row {
        vid: vid(id),
        vport: u16::from(port),
        select: Match::Mac { port: PortId::new(port), mac: mac(id, port) },
    };
    let hop = |index| NextHop::new(index).unwrap();
    Program {
        vid: vid(id),
        name: format!("net{id}"),
        settings: Settings::of(Kind::Ipv4),
        ports: vec![port(0), port(1)],
        rows: vec![row(0), row(1)],
        next_hops: vec![
            Adjacency::local(),
            Adjacency::forward(P1, mac(id, 1), Mac([2, 0xaa, 0, 0, 0, 1]), 1500),
        ],
        groups: Vec::new(),
        entries: Entries::Lpm32(vec![
            ("10.0.0.0/8".parse().unwrap(), hop(1)),
            ("10.0.0.1/32".parse().unwrap(), hop(0)),
        ]),
        rate_limit: None,
        weight,
        policies: None,
        gated: false,
    }
}

fn packet(dst: Mac, address: [u8; 4], len: usize) -> Vec<u8> {
    let mut bytes = dst.0.to_vec();
    bytes.extend([2, 9, 9, 9, 9, 9, 8, 0, 0x45, 0, 0, 46, 0, 1, 0, 0, 64, 17, 0, 0, 192, 0, 2, 1]);
    bytes.extend(address);
    bytes.resize(len.max(60), 7);
    let checksum = hue_wire::checksum::full(&bytes[14..34]);
    bytes[24..26].copy_from_slice(&checksum.to_be_bytes());
    bytes
}

/// A worker with two memory ports, a TAP for virtual port 0 of each network, and no thread.
struct Solo {
    worker: Worker,
    totals: TotalsReader,
    wires: Vec<MemoryHandle>,
    taps: Vec<MemoryHandle>,
    /// Kept open: without it the worker would end.
    _jobs: Sender<Job>,
}

impl Solo {
    fn new(programs: &[Program], slots: u32, room: usize) -> Self {
        let mut model = Soft::new(Limits::default()).unwrap();
        model.load(programs).unwrap();
        let wake = Arc::new(Wake::new().unwrap());
        let (jobs, mailbox) = channel();
        let registry = TotalsReader::default();
        let block = Arc::new(Block::new(WORKER_WORDS));
        registry.write().workers.push(block.clone());
        let mut worker = Worker::new(Parts {
            index: 0,
            pool: Pool::new(slots, 2048).unwrap(),
            reader: model.dag.reader().unwrap(),
            jobs: mailbox,
            poller: Poller::new(&wake).unwrap(),
            wake,
            peers: vec![None, None],
            failures: channel().0,
            block,
            registry: registry.clone(),
            clock: Clock::host(),
        });
        let mut wires = Vec::new();
        for id in [P0, P1] {
            let (port, handle) = MemoryPort::pair("wire", room).unwrap();
            worker.add_port(id, |_| Ok(Box::new(port)), Arc::new(Block::new(PORT_WORDS))).unwrap();
            handle.discard_sent();
            wires.push(handle);
        }
        let mut taps = Vec::new();
        for program in programs {
            let network = model.network(program.vid).unwrap();
            let block = Ledger::block(program.ports.len());
            let entry = super::super::totals::NetworkEntry {
                name: program.name.clone(),
                kind: program.kind(),
                blocks: vec![block.clone()],
            };
            registry.write().networks.insert(program.vid, entry);
            worker.install(Installation {
                program: Arc::new(program.clone()),
                hops: Some(network.hops.clone()),
                patterns: None,
                labels: None,
                generation: 0,
                home: true,
                block,
            });
            let (tap, handle) = MemoryPort::pair("tap", room).unwrap();
            worker.add_tap(program.vid, 0, Box::new(tap)).unwrap();
            taps.push(handle);
        }
        let empty = Steering::empty();
        let demux = model.engine.demux.clone();
        let none = (std::iter::empty(), std::iter::empty());
        worker.steer(Arc::new(Steering::new(
            demux,
            empty.network_homes,
            empty.port_homes,
            empty.beside,
            empty.tunnels,
            none.0,
            none.1,
        )));
        // The model owns the tables; their images live as long as a reader does.
        Self { worker, totals: registry, wires, taps, _jobs: jobs }
    }

    /// Receives frames of a port into the queues, without dispatching any.
    fn queue(&mut self, port: usize, frame: &[u8], count: usize) {
        for _ in 0..count {
            assert!(self.wires[port].feed(frame));
            self.worker.receive();
        }
    }

    fn run(&mut self) {
        while self.worker.round() {}
        self.worker.publish();
    }

    fn check(&self, id: u16) -> super::super::totals::NetworkTotals {
        let totals = self.totals.network(vid(id)).unwrap();
        totals.check().unwrap();
        totals
    }
}

#[test]
fn shares_follow_weights() {
    let mut solo = Solo::new(&[program(1, 3), program(2, 1), program(3, 1)], 8192, 256);
    for id in 1..=3 {
        // Large frames cost more: network 3 gets fewer of them.
        let frame = packet(mac(id, 0), [10, 1, 1, 1], if id == 3 { 1216 } else { 64 });
        solo.queue(0, &frame, 1000);
    }
    for _ in 0..4 {
        assert!(solo.worker.dispatch());
        solo.worker.flush(true);
    }
    solo.worker.publish();
    let bytes = |id: u16| {
        let totals = solo.check(id);
        totals.outcomes.forwarded() * if id == 3 { 1216 + 192 } else { 64 + 192 }
    };
    let (one, two, three) = (bytes(1) as f64, bytes(2) as f64, bytes(3) as f64);
    assert!((one / two - 3.0).abs() < 0.15, "{one} {two}");
    assert!((two / three - 1.0).abs() < 0.15, "{two} {three}");
    // When one has no frames, the others share all the time.
    while solo.worker.dispatch() {
        solo.worker.flush(true);
    }
    solo.worker.publish();
    assert!((1..=3).all(|id| solo.check(id).outcomes.forwarded() == 1000));
}

#[test]
fn a_queue_is_bounded_and_no_network_takes_all_slots() {
    let mut solo = Solo::new(&[program(1, 1), program(2, 1)], 256, 16);
    solo.queue(0, &packet(mac(1, 0), [10, 1, 1, 1], 64), 400);
    solo.worker.publish();
    let flood = solo.check(1);
    assert!(flood.losses.get(Loss::QueueFull) > 0);
    assert!(flood.waiting_packets < 100, "{}", flood.waiting_packets);
    solo.queue(0, &packet(mac(2, 0), [10, 1, 1, 1], 64), 30);
    solo.run();
    assert_eq!(solo.check(2).outcomes.forwarded(), 30);
    assert_eq!(solo.worker.pool.free(), 256);
    let mut deep = Solo::new(&[program(1, 1)], 8192, 16);
    deep.queue(0, &packet(mac(1, 0), [10, 1, 1, 1], 64), QUEUE_FRAMES_MAX + 5);
    deep.worker.publish();
    assert_eq!(deep.check(1).losses.get(Loss::QueueFull), 5);
    assert_eq!(deep.check(1).waiting_packets, QUEUE_FRAMES_MAX as u64);
}

#[test]
fn a_held_network_waits_and_loses_nothing() {
    let mut solo = Solo::new(&[program(1, 1), program(2, 1)], 1024, 64);
    solo.queue(0, &packet(mac(1, 0), [10, 1, 1, 1], 64), 20);
    solo.worker.hold(vid(1));
    solo.queue(0, &packet(mac(1, 0), [10, 1, 1, 1], 64), 20);
    solo.queue(0, &packet(mac(2, 0), [10, 1, 1, 1], 64), 20);
    solo.run();
    solo.worker.networks[0].dirty = true;
    solo.worker.dirty.push(0);
    solo.worker.publish();
    assert_eq!((solo.check(1).outcomes.received(), solo.check(1).waiting_packets), (0, 40));
    assert_eq!(solo.check(2).outcomes.forwarded(), 20);
    solo.worker.release(vid(1));
    solo.run();
    assert_eq!(solo.check(1).outcomes.forwarded(), 40);
}

#[test]
fn networks_come_and_go_while_others_have_frames() {
    let programs: Vec<_> = (1..=4).map(|id| program(id, 1)).collect();
    let mut solo = Solo::new(&programs, 1024, 64);
    for id in 1..=4 {
        solo.queue(0, &packet(mac(id, 0), [10, 1, 1, 1], 64), 10);
    }
    solo.worker.remove(vid(2), &sync_channel(1).0);
    solo.worker.remove(vid(1), &sync_channel(1).0);
    solo.run();
    for id in [3, 4] {
        assert_eq!(solo.check(id).outcomes.forwarded(), 10, "network {id}");
    }
    assert_eq!(solo.worker.pool.free(), 1024);
    solo.queue(0, &packet(mac(1, 0), [10, 1, 1, 1], 64), 3);
    assert_eq!(solo.worker.engine.unclaimed.total(), 3);
}

#[test]
fn control_planes_are_served_within_limits() {
    let mut solo = Solo::new(&[program(1, 1)], 1024, 64);
    solo.worker.set_punt_limit(vid(1), (1, 5));
    // Packets for the router, then without a route, then for a port without a TAP.
    solo.queue(0, &packet(mac(1, 0), [10, 0, 0, 1], 64), 4);
    solo.run();
    solo.queue(0, &packet(mac(1, 0), [99, 0, 0, 1], 64), 8);
    solo.run();
    solo.queue(0, &packet(mac(1, 0), [10, 0, 0, 1], 64), 2);
    solo.queue(1, &packet(mac(1, 1), [10, 0, 0, 1], 64), 1);
    solo.run();
    let totals = solo.check(1);
    assert_eq!(totals.outcomes.get(Outcome::Local), 7);
    assert_eq!(totals.outcomes.get(Outcome::NoRoute), 8);
    assert_eq!(totals.to_control_packets, 5);
    assert_eq!(totals.losses.get(Loss::PuntLimited), 10);
    assert_eq!(solo.taps[0].sent(), 5);
    solo.worker.set_punt_limit(vid(1), (1_000_000, 1000));
    solo.queue(1, &packet(mac(1, 1), [10, 0, 0, 1], 64), 1);
    solo.run();
    assert_eq!(solo.check(1).losses.get(Loss::ControlAbsent), 1);
    solo.taps[0].fail(Some(5));
    solo.queue(0, &packet(mac(1, 0), [10, 0, 0, 1], 64), 1);
    solo.run();
    assert_eq!(solo.check(1).losses.get(Loss::ControlFull), 1);
}

#[test]
fn a_control_plane_sends_under_its_own_address_only() {
    let mut solo = Solo::new(&[program(1, 1)], 1024, 64);
    let mut frame = packet(Mac::BROADCAST, [1, 2, 3, 4], 64);
    assert!(solo.taps[0].feed(&frame));
    frame[6..12].copy_from_slice(&mac(1, 0).0);
    assert!(solo.taps[0].feed(&frame) && solo.taps[0].feed(&frame));
    for _ in 0..100 {
        solo.worker.round();
    }
    solo.run();
    let totals = solo.check(1);
    assert_eq!((totals.from_control_packets, totals.control_packets), (3, 2));
    assert_eq!(totals.losses.get(Loss::ForgedSource), 1);
    assert_eq!((totals.ports[0].sent_packets, solo.wires[0].sent()), (2, 2));
}

#[test]
fn a_warm_worker_does_not_allocate() {
    let mut metered = program(2, 1);
    let rate = Rate::new(1000, 20).unwrap();
    metered.rate_limit = Some(RateLimit { packets: Some(rate), bits: Some(rate) });
    let mut solo = Solo::new(&[program(1, 1), metered, program(3, 2)], 4096, 512);
    let mut own = packet(Mac::BROADCAST, [1, 2, 3, 4], 64);
    own[6..12].copy_from_slice(&mac(1, 0).0);
    let frames = [
        packet(mac(1, 0), [10, 1, 1, 1], 64),
        packet(mac(2, 0), [10, 1, 1, 1], 64),
        packet(mac(3, 0), [10, 1, 1, 1], 1500),
        packet(mac(1, 0), [10, 0, 0, 1], 64),
        packet(mac(1, 0), [99, 1, 1, 1], 64),
        packet(mac(9, 0), [10, 1, 1, 1], 64),
        packet(Mac::BROADCAST, [255, 255, 255, 255], 64),
        vec![0xff; 60],
        vec![1; 3],
    ];
    let mut pass = || {
        for n in 0..2000 {
            let _ = solo.wires[0].feed(&frames[n % frames.len()]);
            if n % 50 == 0 {
                let _ = solo.taps[0].feed(&own);
                solo.worker.round();
                let _ = solo.taps.iter().map(MemoryHandle::sent).max();
            }
        }
        while solo.worker.round() {}
        solo.worker.publish();
        solo.taps.iter().for_each(MemoryHandle::discard_sent);
    };
    pass();
    let allocated = allocation_counter::measure(&mut pass);
    assert_eq!(allocated.count_total, 0);
    for id in 1..=3 {
        assert!(solo.check(id).outcomes.received() > 0);
    }
    assert!(solo.check(1).from_control_packets > 10 && solo.check(1).to_control_packets > 10);
    assert!(solo.check(1).outcomes.received() > 2 * BATCH_MAX as u64);
}

#[test]
fn a_port_that_the_kernel_closes_slowly_stalls_nobody() {
    const P2: PortId = PortId::new(2);
    for ending in [Ending::SlowDrop, Ending::SlowRelease] {
        let mut solo = Solo::new(&[program(1, 1)], 256, 64);
        let ((open, gate), (told, closed)) = (channel(), channel());
        let (port, _handle) = MemoryPort::pair("slow", 64).unwrap();
        let slow = SlowEnd::new(port, ending, gate);
        solo.worker.add_port(P2, |_| Ok(Box::new(slow)), Arc::new(Block::new(PORT_WORDS))).unwrap();
        // Who closes it while it is being closed waits too.
        for _ in 0..2 {
            let told = told.clone();
            solo.worker.remove_port(P2, Box::new(move || told.send(()).unwrap()));
        }
        solo.queue(0, &packet(mac(1, 0), [10, 1, 1, 1], 64), 30);
        solo.run();
        assert_eq!(solo.check(1).outcomes.forwarded(), 30, "{ending:?}");
        assert!(closed.try_recv().is_err(), "{ending:?}: the kernel has not closed it");
        open.send(()).unwrap();
        solo.worker.closing.end(&mut solo.worker.pool, true);
        assert_eq!((closed.try_recv(), closed.try_recv()), (Ok(()), Ok(())), "{ending:?}");
        let told = told.clone();
        solo.worker.remove_port(P2, Box::new(move || told.send(()).unwrap()));
        assert!(closed.try_recv().is_err(), "nothing follows for a port that is not here");
    }
}
