//! In the running system: what left on the wires and went to the control planes, and the counters.

use hue_demux::PortId;
use hue_differential::{Case, Frame, Random, Together, first_seed, full};
use hue_planes::{Keys, Kind, Loss, Reason, Verdict};
use hue_ports::{MemoryHandle, MemoryPort};
use hue_soft::live::{Live, LiveConfig, NetworkTotals, PortTotals};
use hue_substrate::clock::Clock;
use hue_substrate::{Program, Substrate};
use hue_tables::Vid;

use super::{FREE_PORTS, all_cases, difference, let_in, limits, of_case};

const SECOND_NS: u64 = 1_000_000_000;

type Frames = Vec<Vec<u8>>;

/// What the networks of a case did in a running system.
#[derive(PartialEq, Debug)]
struct Sent {
    /// By port.
    wires: Vec<Frames>,
    /// By network and virtual port: what the control plane got.
    taps: Vec<Vec<Frames>>,
    totals: Vec<NetworkTotals>,
    ports: Vec<PortTotals>,
}

impl Sent {
    /// Checks the sums of `spec/kinds.toml`, and the counters against what was seen outside.
    fn check(&self, case: &Case) -> Result<(), String> {
        let mut sent = 0;
        for ((totals, taps), program) in self.totals.iter().zip(&self.taps).zip(&case.programs) {
            totals.check().map_err(|why| format!("{}: {why}", program.name))?;
            let lost_to_ports = [Loss::PortFull, Loss::PortDown, Loss::HandoverSendFull, Loss::CopyFull];
            let lost: u64 = lost_to_ports.iter().map(|loss| totals.losses.get(*loss)).sum();
            let outcomes = &totals.outcomes;
            let to_control = taps.iter().map(Vec::len).sum::<usize>() as u64;
            let others = (program.ports.len() - 1) as u64;
            let sums = [
                ("received", totals.received_packets(), outcomes.received() + totals.losses.at("queue")),
                ("copies", totals.copies, outcomes.flooded() * others),
                (
                    "forward - floods + copies",
                    outcomes.forwarded() - outcomes.flooded() + totals.copies,
                    totals.sent_packets() + lost,
                ),
                ("to control", totals.to_control_packets, to_control),
                ("lost at a port", lost, 0),
            ];
            if let Some((what, one, other)) = sums.into_iter().find(|(_, one, other)| one != other) {
                return Err(format!("{}, {what}: {one}, not {other}", program.name));
            }
            sent += totals.sent_packets();
        }
        let seen = self.wires.iter().map(Vec::len).sum::<usize>() as u64;
        if sent != seen {
            return Err(format!("sent: counted {sent}, seen {seen}"));
        }
        for (port, totals) in (0u8..).zip(&self.ports) {
            let came = case.frames.iter().filter(|frame| frame.port.get() == port).count() as u64;
            let taken = totals.received_packets + totals.ring_full;
            if came != taken {
                return Err(format!("port {port}: {came} frames came, {taken} counted"));
            }
        }
        Ok(())
    }
}

/// A running system with a world, whose owner runs its workers, and what is connected to it.
struct Running {
    live: Live,
    workers: usize,
    wires: Vec<MemoryHandle>,
    /// By network, in the order of the world's programs, and virtual port.
    taps: Vec<(Vid, Vec<MemoryHandle>)>,
}

/// Frames that a wire holds.
const ROOM: usize = 64;
/// Longest frame on a wire in memory; too long for the system's slots.
const WIRE_BYTES_MAX: usize = 4096;
/// Most frames between two turns of the workers.
const BURST: usize = 24;

impl Running {
    fn new(world: &Together, workers: usize, clock: &Clock) -> Self {
        let config =
            LiveConfig { workers, slots: 2048, slot_bytes: 4096, limits: limits(), ..LiveConfig::default() };
        let mut live = Live::by_hand(config, clock).unwrap();
        let wires = (0..world.ports).map(|port| {
            let (memory, wire) = MemoryPort::pair(&format!("p{port}"), ROOM).unwrap();
            live.add_port(PortId::new(port), |_| Ok(Box::new(memory))).unwrap();
            wire
        });
        let wires = wires.collect();
        live.load(&world.programs).unwrap();
        let mut tap = |program: &Program| {
            let taps = (0..program.ports.len() as u16).map(|vport| {
                let (memory, tap) = MemoryPort::pair("tap", ROOM).unwrap();
                live.add_tap(program.vid, vport, Box::new(memory)).unwrap();
                tap
            });
            (program.vid, taps.collect())
        };
        let taps = world.programs.iter().map(&mut tap).collect();
        Self { live, workers, wires, taps }
    }

    /// Lets the workers take turns until none has work.
    fn settle(&self) {
        while (0..self.workers).filter(|worker| self.live.round(*worker)).count() > 0 {}
    }
}

/// The source address of a frame.
fn source(frame: &[u8]) -> &[u8] {
    frame.get(6..12).unwrap_or_default()
}

/// What each case's networks do in a running system with this world. `next` gives the most frames that come at once.
fn running(world: &Together, cases: &[&Case], workers: usize, mut next: impl FnMut() -> usize) -> Vec<Sent> {
    let (clock, time) = Clock::by_hand(SECOND_NS);
    let running = Running::new(world, workers, &clock);
    let empty = |case: &&Case| Sent {
        wires: vec![Vec::new(); usize::from(case.ports)],
        taps: case.programs.iter().map(|one| vec![Vec::new(); one.ports.len()]).collect(),
        totals: Vec::new(),
        ports: Vec::new(),
    };
    let mut all: Vec<Sent> = cases.iter().map(empty).collect();
    let mut frames = world.frames.iter().zip(&world.of).peekable();
    while let Some((frame, _)) = frames.peek() {
        let time_ns = SECOND_NS + frame.time_ns;
        // One golden case sets its time back, which the system's clock never does.
        time.pass(time_ns.saturating_sub(time.now_ns()));
        // A case's frames of different ports do not come at once: which is first would be for the worker to say.
        let mut first = vec![None; cases.len()];
        let burst = next();
        for _ in 0..burst {
            let at_once = |(frame, of): &(&Frame, &Option<(usize, usize)>)| {
                SECOND_NS + frame.time_ns == time_ns
                    && of.is_none_or(|(case, _)| *first[case].get_or_insert(frame.port) == frame.port)
            };
            let Some((frame, _)) = frames.next_if(at_once) else { break };
            let bytes = frame.bytes.get(..WIRE_BYTES_MAX).unwrap_or(&frame.bytes);
            assert!(running.wires[frame.port.index()].feed(bytes));
        }
        running.settle();
        for (at, sent) in all.iter_mut().enumerate() {
            for (port, wire) in world.ports_of(at).zip(&mut sent.wires) {
                wire.extend(running.wires[port.index()].collect());
            }
            for (vid, taps) in world.vids(at).iter().zip(&mut sent.taps) {
                let (_, own) = running.taps.iter().find(|(whose, _)| whose == vid).unwrap();
                taps.iter_mut().zip(own).for_each(|(seen, tap)| seen.extend(tap.collect()));
            }
        }
    }
    // Counters are published from time to time.
    time.pass(SECOND_NS);
    running.settle();
    for (at, sent) in all.iter_mut().enumerate() {
        sent.totals = world.vids(at).iter().map(|vid| running.live.totals(*vid).unwrap()).collect();
        sent.ports = world.ports_of(at).map(|port| running.live.port_totals(port).unwrap()).collect();
        // A port takes frames of networks that share it in the order of their turns, so only those of one sender have an order.
        sent.wires.iter_mut().for_each(|wire| wire.sort_by(|one, other| source(one).cmp(source(other))));
    }
    all
}

/// Compares what cases do in a running system with this world with what each does alone.
fn compare_running(
    cases: &[&Case],
    alone: &[Sent],
    world: &Together,
    workers: usize,
    random: &mut Random,
) -> Result<(), String> {
    let among = running(world, cases, workers, || 1 + random.below(BURST));
    for ((case, alone), among) in cases.iter().zip(alone).zip(&among) {
        among.check(case).map_err(|why| of_case(case, &why))?;
        let found = difference(&alone.wires, &among.wires)
            .or_else(|| difference(&alone.taps, &among.taps))
            .or_else(|| difference(&alone.totals, &among.totals))
            .or_else(|| difference(&alone.ports, &among.ports));
        if let Some(found) = found {
            return Err(of_case(case, &found));
        }
    }
    Ok(())
}

#[test]
fn a_network_runs_the_same_alone_and_among_all_kinds() {
    let cases = all_cases();
    let alone = |case: &Case| {
        let sent = running(&Together::alone(case), &[case], 1, || 1).remove(0);
        sent.check(case).unwrap_or_else(|why| panic!("{}", of_case(case, &why)));
        sent
    };
    let alone: Vec<Sent> = cases.iter().map(alone).collect();
    for kind in Kind::ALL {
        let own = || cases.iter().zip(&alone).filter(|(case, _)| case.kind == kind).map(|(_, sent)| sent);
        // The namespaces of kinds that delegate send nothing here.
        let sends = kind.limits().keys != Keys::None;
        let sent = own().any(|sent| sent.wires.concat().len() > 1);
        assert_eq!(sent, sends, "{}: whether it sends", kind.name());
        let punts = Reason::all(kind).any(|outcome| outcome.verdict() == Verdict::Punt);
        let told = own().any(|sent| !sent.taps.concat().concat().is_empty());
        assert_eq!(punts, told, "{}: whether a control plane gets frames", kind.name());
    }
    let every: Vec<&Case> = cases.iter().collect();
    for seed in first_seed()..first_seed() + if full() { 40 } else { 4 } {
        let mut random = Random::new(seed);
        let workers = 1 + (seed % 3) as usize;
        let world = Together::new(&mut random, &every, FREE_PORTS);
        let same = compare_running(&every, &alone, &world, workers, &mut random);
        same.unwrap_or_else(|why| panic!("seed {seed}, {workers} workers: {why}"));
    }
    // It must find frames that reach other networks.
    let mut random = Random::new(1);
    let mut world = Together::new(&mut random, &every, FREE_PORTS);
    let_in(&mut world, 0, cases.len() - 1);
    let found = compare_running(&every, &alone, &world, 1, &mut random).unwrap_err();
    assert!(found.starts_with(cases[cases.len() - 1].kind.name()), "{found}");
}
