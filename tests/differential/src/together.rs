//! Golden cases of several kinds together. Each case keeps its networks and its frames, but has ports and network ids of its
//! own, so whatever the others do must make no difference to it.
//!
//! Flow: `spec/vectors` → [`golden`] → [`cases`], or [`pieces`] for a card, which has few ports → [`Together`] → engine,
//! running system and card, which `tests/differential/kinds` compares with each case alone.

use std::collections::BTreeSet;

use hue_demux::{Match, PortId};
use hue_planes::{FRAME_BYTES_MAX, Kind};
use hue_substrate::Program;
use hue_tables::Vid;
use hue_wire::Mac;

use crate::Random;
use crate::golden::{Golden, apart, as_on_card, golden};
use crate::world::Frame;

const SECOND_NS: u64 = 1_000_000_000;

/// A golden case and some frames more, on ports from 0 on.
#[derive(Clone, Debug)]
pub struct Case {
    /// The kind in whose folder it is.
    pub kind: Kind,
    /// The name of its file, and for a piece that of its network.
    pub name: String,
    /// Its networks.
    pub programs: Vec<Program>,
    /// Its frames, in the order of their times.
    pub frames: Vec<Frame>,
    /// How many ports it has.
    pub ports: u8,
}

/// The golden cases of a kind.
#[must_use]
pub fn cases(kind: Kind) -> Vec<Case> {
    golden(&[kind]).into_iter().map(|golden| case(kind, golden)).collect()
}

/// The same, each network with the frames of its ports as a case, without what a card cannot do.
#[must_use]
pub fn pieces(kind: Kind) -> Vec<Case> {
    let apart = golden(&[kind]).into_iter().flat_map(apart);
    apart.map(|golden| case(kind, as_on_card(golden))).collect()
}

fn case(kind: Kind, golden: Golden) -> Case {
    let Golden { name, programs, mut frames } = golden;
    let of_networks = programs.iter().flat_map(|program| program.ports.iter().map(|port| port.port));
    let ports: BTreeSet<PortId> = of_networks.chain(frames.iter().map(|frame| frame.port)).collect();
    let count = u8::try_from(ports.len()).unwrap();
    let number = |port: PortId| PortId::new(ports.iter().position(|one| *one == port).unwrap() as u8);
    frames.iter_mut().for_each(|frame| frame.port = number(frame.port));
    let end_ns = frames.last().map_or(0, |frame| frame.time_ns);
    frames.extend((0..count).flat_map(|port| more(port, end_ns)));
    let programs = programs.iter().map(|program| narrowed(program).renumbered(number)).collect();
    Case { kind, name, programs, frames, ports: count }
}

/// The same network, with inner prefixes of any port only on the port of their virtual port. Otherwise frames of other cases
/// would rightly belong to it.
fn narrowed(program: &Program) -> Program {
    let mut program = program.clone();
    for row in &mut program.rows {
        if let Match::Inner { port: port @ None, .. } = &mut row.select {
            *port = Some(program.ports[usize::from(row.vport)].port);
        }
    }
    program
}

/// Frames at a port that not every kind's golden cases have there: to groups, for the bridge, for nobody, too long, too short.
fn more(port: u8, time_ns: u64) -> impl Iterator<Item = Frame> {
    let heads = [
        (Mac::BROADCAST, [0x08, 0x06]),
        (Mac::BROADCAST, [0x12, 0x34]),
        (Mac([1, 0, 0x5e, 0, 0, 5]), [0x08, 0x00]),
        (Mac([0x33, 0x33, 0, 0, 0, 5]), [0x86, 0xdd]),
        (Mac([1, 0x80, 0xc2, 0, 0, 0]), [0x00, 0x27]),
        (Mac([2, 0xde, 0xad, 0, 0, 1]), [0x08, 0x00]),
    ];
    let frame = move |(destination, ethertype): (Mac, [u8; 2]), len: usize| {
        let mut bytes = [&destination.0[..], &[2, 0xee, 0, 0, 0, port], &ethertype].concat();
        bytes.resize(len, port);
        Frame { port: PortId::new(port), time_ns, bytes }
    };
    let lengths = [13, FRAME_BYTES_MAX + 1];
    heads.map(|head| frame(head, 60)).into_iter().chain(lengths.map(|len| frame(heads[0], len)))
}

/// Cases in one world.
pub struct Together {
    /// The networks of all cases.
    pub programs: Vec<Program>,
    /// The frames of all cases in the order of their times, those of the same time mixed; and frames at free ports.
    pub frames: Vec<Frame>,
    /// Of each frame: its case, and which of that case's frames it is. `None` at a free port.
    pub of: Vec<Option<(usize, usize)>>,
    /// Ports of the world, the free ones included.
    pub ports: u8,
    /// By case.
    places: Vec<Place>,
}

struct Place {
    /// The first of its ports.
    first: u8,
    ports: u8,
    vids: Vec<Vid>,
}

impl Together {
    /// A case alone.
    #[must_use]
    pub fn alone(case: &Case) -> Self {
        let vids = case.programs.iter().map(|program| program.vid).collect();
        let place = Place { first: 0, ports: case.ports, vids };
        Self {
            programs: placed(&place, 0, case),
            frames: case.frames.clone(),
            of: (0..case.frames.len()).map(|frame| Some((0, frame))).collect(),
            ports: case.ports,
            places: vec![place],
        }
    }

    /// Cases on ports and with ids in an order of chance, and this many free ports.
    pub fn new(random: &mut Random, cases: &[&Case], free: u8) -> Self {
        let mut order: Vec<usize> = (0..cases.len()).collect();
        shuffle(random, &mut order);
        let mut firsts = vec![0; cases.len()];
        let mut used = 0;
        for at in order {
            firsts[at] = used;
            used += cases[at].ports;
        }
        assert!(usize::from(used) + usize::from(free) <= PortId::PHYSICAL, "more ports than a node has");
        let mut taken = BTreeSet::new();
        let mut vid = |random: &mut Random| loop {
            let vid = Vid::new(1 + random.below(usize::from(Vid::MAX) - 1) as u16).unwrap();
            if taken.insert(vid) {
                return vid;
            }
        };
        let place = |(case, first): (&&Case, u8)| Place {
            first,
            ports: case.ports,
            vids: case.programs.iter().map(|_| vid(random)).collect(),
        };
        let places: Vec<Place> = cases.iter().zip(firsts).map(place).collect();
        let programs =
            places.iter().zip(cases).enumerate().flat_map(|(at, (place, case))| placed(place, at, case));
        let programs = programs.collect();
        let mut together = Self { programs, frames: Vec::new(), of: Vec::new(), ports: used + free, places };
        together.mix(random, cases, free);
        together
    }

    /// Mixes the frames of cases. The times of a case keep their distances.
    fn mix(&mut self, random: &mut Random, cases: &[&Case], free: u8) {
        let begin: Vec<u64> = cases.iter().map(|_| random.below(3) as u64 * SECOND_NS).collect();
        let mut next = vec![0; cases.len()];
        let time = |at: usize, next: usize| cases[at].frames.get(next).map(|frame| begin[at] + frame.time_ns);
        while let Some(time_ns) = (0..cases.len()).filter_map(|at| time(at, next[at])).min() {
            // A case with many frames comes more often, so that none is left alone at the end.
            let now = (0..cases.len()).filter(|at| time(*at, next[*at]) == Some(time_ns));
            let turns: Vec<usize> =
                now.flat_map(|at| std::iter::repeat_n(at, cases[at].frames.len() - next[at])).collect();
            let at = random.pick(&turns);
            let mut frame = Frame { time_ns, ..cases[at].frames[next[at]].clone() };
            if free > 0 && random.chance(10) {
                let port = self.ports - 1 - random.below(usize::from(free)) as u8;
                self.frames.push(Frame { port: PortId::new(port), ..frame.clone() });
                self.of.push(None);
            }
            frame.port = PortId::new(self.places[at].first + frame.port.get());
            self.frames.push(frame);
            self.of.push(Some((at, next[at])));
            next[at] += 1;
        }
    }

    /// The ids of a case's networks.
    #[must_use]
    pub fn vids(&self, case: usize) -> &[Vid] {
        &self.places[case].vids
    }

    /// A case's ports.
    pub fn ports_of(&self, case: usize) -> impl Iterator<Item = PortId> + use<> {
        let Place { first, ports, .. } = self.places[case];
        (first..first + ports).map(PortId::new)
    }

    /// Which of a case's networks this is; `None` if it is another's.
    #[must_use]
    pub fn network(&self, case: usize, vid: Vid) -> Option<usize> {
        self.places[case].vids.iter().position(|own| *own == vid)
    }

    /// Which of a case's ports this is; `None` if it is another's.
    #[must_use]
    pub fn port(&self, case: usize, port: PortId) -> Option<u8> {
        let Place { first, ports, .. } = self.places[case];
        port.get().checked_sub(first).filter(|own| *own < ports)
    }
}

/// The networks of a case at its place; `at` makes their names unique.
fn placed(place: &Place, at: usize, case: &Case) -> Vec<Program> {
    let networks = case.programs.iter().zip(&place.vids).map(|(program, vid)| {
        let mut program = program.renumbered(|port| PortId::new(place.first + port.get()));
        program.vid = *vid;
        program.rows.iter_mut().for_each(|row| row.vid = *vid);
        program.name = format!("{} of {} {at}", program.name, case.kind.name());
        program
    });
    networks.collect()
}

fn shuffle(random: &mut Random, order: &mut [usize]) {
    for at in (1..order.len()).rev() {
        order.swap(at, random.below(at + 1));
    }
}
