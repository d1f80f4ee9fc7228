//! In the engine: what became of each frame, its bytes, and the counters.

use std::collections::BTreeSet;

use hue_differential::{Case, Random, Together, first_seed, full};
use hue_planes::{Counters, Kind, Plane, Reason, UnclaimedCounters, Verdict, with_plane};
use hue_soft::{Batch, Fate, Soft};
use hue_substrate::Substrate;
use hue_substrate::follow::FrameKey;
use hue_substrate::planted::{Bug, plant};

use super::{FREE_PORTS, all_cases, difference, let_in, limits, of_case};

/// More than one round of the engine.
const BATCH_MAX: usize = 400;

/// What became of a frame in a network of its case. A network or port that the case does not have is `None`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Event {
    frame: usize,
    network: Option<usize>,
    vport: u16,
    outcome: Reason,
    /// If it left.
    port: Option<Option<u8>>,
    bytes: Vec<u8>,
}

/// Where a frame went, in a form that the card has too.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum To {
    Port(Option<u8>),
    /// The control plane of a network, from a virtual port, with the code of the outcome.
    Control(Option<usize>, u16, u8),
}

pub type Departure = (usize, To, Vec<u8>);

/// What the networks of a case did in the engine.
#[derive(Clone, PartialEq, Debug)]
pub struct Deeds {
    /// By frame, then by network and port.
    events: Vec<Event>,
    /// Frames that belong to no network.
    pub unclaimed: Vec<(usize, &'static str)>,
    /// By network.
    pub counters: Vec<Counters>,
}

impl Deeds {
    fn of(&self, network: usize) -> impl Iterator<Item = &Event> {
        self.events.iter().filter(move |event| event.network == Some(network))
    }

    /// Frames, each once, that a network got.
    fn got(&self, network: usize) -> BTreeSet<(usize, Reason)> {
        self.of(network).map(|event| (event.frame, event.outcome)).collect()
    }

    fn floods(&self, network: usize) -> usize {
        self.got(network).iter().filter(|(_, outcome)| outcome.is_flood()).count()
    }

    /// Copies of floods, as many as the network has other ports.
    pub fn copies(&self, case: &Case, network: usize) -> u64 {
        (self.floods(network) * (case.programs[network].ports.len() - 1)) as u64
    }

    pub fn departures(&self) -> Vec<Departure> {
        let departure = |event: &Event| {
            let to = match (event.port, event.outcome.verdict()) {
                (Some(port), _) => To::Port(port),
                (None, Verdict::Punt) => To::Control(event.network, event.vport, event.outcome.code()),
                (None, _) => return None,
            };
            Some((event.frame, to, event.bytes.clone()))
        };
        let mut all: Vec<_> = self.events.iter().filter_map(departure).collect();
        all.sort();
        all
    }

    /// Bytes that a network received and sent. A flood counts once.
    pub fn bytes(&self, network: usize) -> (u64, u64) {
        let (mut received, mut sent, mut last) = (0, 0, None);
        for event in self.of(network).filter(|event| last.replace(event.frame) != Some(event.frame)) {
            received += event.bytes.len() as u64;
            sent += if event.port.is_some() { event.bytes.len() as u64 } else { 0 };
        }
        (received, sent)
    }

    /// Checks the sums of `spec/kinds.toml` against what was seen, and that nothing of the case reached another one.
    fn check(&self, case: &Case) -> Result<(), String> {
        let far = |event: &&Event| event.network.is_none() || event.port == Some(None);
        if let Some(event) = self.events.iter().find(far) {
            return Err(format!("it reached another case: {event:02x?}"));
        }
        // A frame that leaves is recognised as the one that came, unless its kind makes frames longer (no card runs such a kind).
        let is_known = |event: &Event| {
            let key = |bytes: &[u8]| FrameKey::of(case.kind, bytes);
            let came = key(&case.frames[event.frame].bytes).frame;
            with_plane!(case.kind, P => P::RESIZES) || came == key(&event.bytes).frame
        };
        let mut left = self.events.iter().filter(|event| event.port.is_some());
        if let Some(event) = left.find(|event| !is_known(event)) {
            return Err(format!("it has another key than the frame that came: {event:02x?}"));
        }
        for (network, counters) in self.counters.iter().enumerate() {
            let got = self.got(network);
            let sent = self.of(network).filter(|event| event.port.is_some()).count() as u64;
            let mut sums = vec![
                ("received", counters.received(), got.len() as u64),
                (
                    "forward - floods + copies",
                    counters.forwarded() - counters.flooded() + self.copies(case, network),
                    sent,
                ),
            ];
            sums.extend(counters.iter().map(|(outcome, count)| {
                let seen = got.iter().filter(|(_, one)| *one == outcome).count();
                (outcome.name(), count, seen as u64)
            }));
            if let Some((what, counted, seen)) = sums.into_iter().find(|(_, counted, seen)| counted != seen) {
                let name = &case.programs[network].name;
                return Err(format!("{name}, {what}: counted {counted}, seen {seen}"));
            }
        }
        Ok(())
    }
}

/// What each case's networks do in an engine with this world, and the frames without a network. `next` gives the size of a batch.
fn engine(
    world: &Together,
    count: usize,
    mut next: impl FnMut() -> usize,
) -> Result<(Vec<Deeds>, UnclaimedCounters), String> {
    let mut soft = Soft::new(limits()).unwrap();
    soft.load(&world.programs).unwrap();
    let mut all: Vec<Deeds> = (0..count)
        .map(|_| Deeds { events: Vec::new(), unclaimed: Vec::new(), counters: Vec::new() })
        .collect();
    let (mut done, mut strays) = (0, Vec::new());
    while done < world.frames.len() {
        let mut batch = Batch::new();
        for frame in world.frames[done..].iter().take(next()) {
            assert!(batch.push(frame.port, frame.time_ns, &frame.bytes));
        }
        soft.run(&mut batch, |output| match (world.of[done + output.frame], output.fate) {
            (Some((case, frame)), Fate::Unclaimed(why)) => all[case].unclaimed.push((frame, why.name())),
            (Some((case, frame)), Fate::Network { vid, vport, outcome, egress }) => {
                let sent = outcome.verdict() == Verdict::Forward;
                all[case].events.push(Event {
                    frame,
                    network: world.network(case, vid),
                    vport,
                    outcome,
                    port: sent.then(|| world.port(case, egress)),
                    bytes: output.bytes.to_vec(),
                });
            }
            (None, Fate::Unclaimed(_)) => {}
            (_, fate) => strays.push(format!("at a free port: {fate:?}")),
        });
        done += batch.len();
    }
    if let Some(stray) = strays.into_iter().next() {
        return Err(stray);
    }
    for (case, deeds) in all.iter_mut().enumerate() {
        // Networks get a frame in the order of their ids.
        deeds.events.sort_by_key(|event| (event.frame, event.network, event.port));
        deeds.counters = world.vids(case).iter().map(|vid| soft.counters(*vid).unwrap()).collect();
    }
    Ok((all, soft.unclaimed()))
}

/// What a case does alone, frame by frame.
pub fn alone(case: &Case) -> Deeds {
    let (deeds, _) = engine(&Together::alone(case), 1, || 1).unwrap();
    let deeds = deeds.into_iter().next().unwrap();
    deeds.check(case).unwrap_or_else(|why| panic!("{}", of_case(case, &why)));
    deeds
}

/// Compares what cases do in an engine with this world with what each does alone.
fn compare(cases: &[&Case], alone: &[Deeds], world: &Together, random: &mut Random) -> Result<(), String> {
    let (among, unclaimed) = engine(world, cases.len(), || 1 + random.below(BATCH_MAX))?;
    for ((case, alone), among) in cases.iter().zip(alone).zip(&among) {
        among.check(case).map_err(|why| of_case(case, &why))?;
        let found = difference(&alone.events, &among.events)
            .or_else(|| difference(&alone.unclaimed, &among.unclaimed))
            .or_else(|| difference(&alone.counters, &among.counters));
        if let Some(found) = found {
            return Err(of_case(case, &found));
        }
    }
    let free = world.of.iter().filter(|of| of.is_none()).count();
    let wanted = free + alone.iter().map(|deeds| deeds.unclaimed.len()).sum::<usize>();
    match unclaimed.total() == wanted as u64 {
        true => Ok(()),
        false => Err(format!("{wanted} frames belong to nobody, counted {unclaimed:?}")),
    }
}

#[test]
fn a_network_does_the_same_alone_and_among_all_kinds() {
    let cases = all_cases();
    let alone: Vec<Deeds> = cases.iter().map(alone).collect();
    for kind in Kind::ALL {
        let mut own = cases.iter().zip(&alone).filter(|(case, _)| case.kind == kind).map(|(_, deeds)| deeds);
        let outcomes: BTreeSet<Reason> =
            own.clone().flat_map(|deeds| &deeds.events).map(|event| event.outcome).collect();
        let missing: Vec<Reason> = Reason::all(kind).filter(|outcome| !outcomes.contains(outcome)).collect();
        assert!(missing.is_empty() && own.any(|deeds| !deeds.unclaimed.is_empty()), "{missing:?}");
    }
    for seed in first_seed()..first_seed() + if full() { 1000 } else { 40 } {
        let mut random = Random::new(seed);
        let every: Vec<&Case> = cases.iter().collect();
        let world = Together::new(&mut random, &every, FREE_PORTS);
        compare(&every, &alone, &world, &mut random).unwrap_or_else(|why| panic!("seed {seed}: {why}"));
        for kind in Kind::ALL {
            let own: Vec<usize> = (0..cases.len()).filter(|at| cases[*at].kind == kind).collect();
            let alone: Vec<Deeds> = own.iter().map(|at| alone[*at].clone()).collect();
            let own: Vec<&Case> = own.iter().map(|at| &cases[*at]).collect();
            let world = Together::new(&mut random, &own, FREE_PORTS);
            let same = compare(&own, &alone, &world, &mut random);
            same.unwrap_or_else(|why| panic!("seed {seed}, of one kind: {why}"));
        }
    }
}

/// The comparison must find networks whose kind is ignored, and frames that reach other networks; the sums, counters that
/// differ from what was seen.
#[test]
fn planted_errors_are_found() {
    let cases = all_cases();
    let alone: Vec<Deeds> = cases.iter().map(alone).collect();
    let every: Vec<&Case> = cases.iter().collect();
    for (at, case) in cases.iter().enumerate() {
        let mut random = Random::new(1);
        let name = case.kind.name();
        let mut world = Together::new(&mut random, &every, FREE_PORTS);
        let other = (at + cases.len() / 2) % cases.len();
        let_in(&mut world, at, other);
        let found = compare(&every, &alone, &world, &mut random).unwrap_err();
        // The guest, too, does what it does not do alone.
        let errors = [of_case(case, "it reached another case"), of_case(&cases[other], "")];
        assert!(errors.iter().any(|error| found.starts_with(error)), "{found}");

        if case.kind != Kind::Ipv4 {
            let world = Together::new(&mut random, &[case], FREE_PORTS);
            plant(Some(Bug::KindIgnored));
            let found = compare(&[case], &alone[at..=at], &world, &mut random);
            plant(None);
            assert!(
                found.is_err_and(|found| found.starts_with(name)),
                "{name}: not found: its kind is ignored"
            );
        }

        let sound = &alone[at];
        let mut wrong = sound.clone();
        wrong.counters[0].count(Reason::gated(case.programs[0].kind()));
        assert!(wrong.check(case).unwrap_err().contains("received"));
        let sent = sound.events.iter().position(|event| event.port.is_some());
        let Some(sent) = sent else { continue };
        let mut wrong = sound.clone();
        let copy = Event { port: Some(Some(0)), ..wrong.events[sent].clone() };
        wrong.events.insert(sent, copy);
        assert!(wrong.check(case).unwrap_err().contains("forward - floods + copies"));
    }
}
