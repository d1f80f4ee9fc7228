//! Random histories of a network of kind `rofl`: labels join and leave while frames flow, and pointers that frames taught stay; or, without
//! pointers, the network moves between card and software. The oracle compares all labels, one by one.

use std::collections::BTreeMap;

use hue_differential::{Random, images_alone};
use hue_sim::hand::{self, pass, settle};
use hue_substrate::planted::{Bug, plant};
use hue_wire::rofl::{ETHERTYPE, Packet, ROUTE_MAX};
use hueplaned::node::by_hand::ByHand;

use super::fates::Fates;

/// Passes without work after which nothing moves.
const IDLE_PASSES: usize = 60;
const PORTS: [&str; 2] = ["p0", "p1"];
const FRAMES_PER_ROUND: usize = 80;
const ROUNDS: usize = 8;
const SEEDS: std::ops::RangeInclusive<u64> = 1..=2;

/// Where a label is: the router itself, or a port and a neighbour there, perhaps the host itself.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Place {
    Own,
    At { port: usize, neighbour: u8, resident: bool },
}

/// Labels of 32 bits and their places.
type Labels = BTreeMap<u32, Place>;

/// What becomes of a frame: the port by which it leaves and the neighbour it goes to; or the namespace; or nothing.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Fate {
    Sent(usize, u8),
    Punted,
    Dropped,
}

fn oracle(labels: &Labels, destination: u32) -> Fate {
    let closest = labels.iter().min_by_key(|(label, _)| destination.wrapping_sub(**label));
    match closest {
        None => Fate::Dropped,
        Some((label, Place::Own)) if *label == destination => Fate::Punted,
        Some((_, Place::Own)) => Fate::Dropped,
        Some((label, Place::At { resident: true, .. })) if *label != destination => Fate::Dropped,
        Some((_, Place::At { port, neighbour, .. })) => Fate::Sent(*port, *neighbour),
    }
}

fn label(random: &mut Random) -> u32 {
    (random.below(4) as u32) << 30 | random.below(5) as u32
}

/// Some labels leave, some join.
fn change(labels: &Labels, random: &mut Random) -> Labels {
    let mut next = labels.clone();
    for _ in 0..random.below(5) {
        let label = label(random);
        if random.chance(40) {
            next.remove(&label);
            continue;
        }
        let place = match random.below(4) {
            0 => Place::Own,
            kind => {
                Place::At { port: random.below(2), neighbour: random.below(3) as u8, resident: kind == 1 }
            }
        };
        next.insert(label, place);
    }
    next
}

fn neighbour(port: usize, number: u8) -> [u8; 6] {
    [2, 0xbb, 0, 0, port as u8, number]
}

fn own(port: usize) -> [u8; 6] {
    [2, 0, 0, 0, 8, port as u8]
}

fn text(mac: [u8; 6]) -> String {
    mac.map(|byte| format!("{byte:02x}")).join(":")
}

fn documents(labels: &Labels, moves: bool) -> String {
    let port = |(at, port): (usize, &&str)| {
        format!("    - {{name: v{at}, port: {port}, mac: \"{}\"}}\n", text(own(at)))
    };
    let ports: String = PORTS.iter().enumerate().map(port).collect();
    let line = |(label, place): (&u32, &Place)| match place {
        Place::Own => format!("    - {{label: \"0x{label:08x}\", own: true}}\n"),
        Place::At { port, neighbour: number, resident } => format!(
            "    - {{label: \"0x{label:08x}\", port: v{port}, neighbour: \"{}\", resident: {resident}}}\n",
            text(neighbour(*port, *number))
        ),
    };
    let labels: String = labels.iter().map(line).collect();
    // A network that caches pointers stays in software.
    let (card, pointers) = match moves {
        true => (", card: {twin: {image: kinds}, ports: [p0, p1]}", ", pointers_max: 0"),
        false => ("", ""),
    };
    format!(
        "apiVersion: hueplane/v1\nkind: Node\nmetadata: {{name: sim}}\nspec: {{ports: [{{name: p0}}, {{name: p1}}]{card}}}\n---\n\
         apiVersion: hueplane/v1\nkind: Network\nmetadata: {{name: flat}}\nspec:\n  plane: {{kind: rofl, label_bits: 32{pointers}}}\n  \
         ports:\n{ports}  flat_labels:\n{labels}"
    )
}

fn frame(port: usize, destination: u32, route: Option<u32>, number: u32) -> Vec<u8> {
    let mut labels = [0; ROUTE_MAX];
    labels[0] = u128::from(route.unwrap_or_default()) << 96;
    let packet = Packet {
        flags: 0,
        label_bytes: 4,
        budget: 9,
        destination: u128::from(destination) << 96,
        source: 0,
        route: labels,
        route_len: usize::from(route.is_some()),
        payload_type: 0x0800,
        payload: &number.to_be_bytes(),
    };
    // A host that is nobody's next hop: nothing returns to it.
    let mut frame = [&own(port)[..], &[2, 0xcc, 0, 0, port as u8, 0], &ETHERTYPE.0.to_be_bytes()].concat();
    frame.resize(60, 0);
    packet.write(&mut frame[14..]).unwrap();
    frame
}

struct World {
    node: ByHand,
    random: Random,
    fates: Fates<Fate>,
    number: u32,
    /// How many frames were sent and punted.
    seen: [u32; 2],
}

impl World {
    fn send(&mut self, tables: &[&Labels]) {
        self.number += 1;
        let at = self.number as usize % PORTS.len();
        let to = label(&mut self.random);
        assert!(self.node.send(PORTS[at], &frame(at, to, None, self.number)), "the wire is full");
        self.fates.open(self.number, tables.iter().map(|labels| oracle(labels, to)).collect());
    }

    fn collect(&mut self) -> Result<(), String> {
        let mut ends = Vec::new();
        for (at, port) in PORTS.iter().enumerate() {
            while let Some(frame) = self.node.receive(port) {
                let known = (0..3).find(|number| frame[..6] == neighbour(at, *number));
                let to = known.ok_or(format!("{port}: to nobody: {frame:02x?}"))?;
                if frame[6..12] != own(at) || frame[16] != 8 {
                    return Err(format!("{port}: address or budget: {frame:02x?}"));
                }
                ends.push((frame, Fate::Sent(at, to)));
                self.seen[0] += 1;
            }
            while let Some(frame) = self.node.receive_control("flat", at) {
                ends.push((frame, Fate::Punted));
                self.seen[1] += 1;
            }
        }
        for (frame, fate) in ends {
            let packet = Packet::parse(&frame[14..]).ok_or(format!("damaged: {frame:02x?}"))?;
            let number = u32::from_be_bytes(packet.payload.try_into().unwrap());
            self.fates.end(number, &fate)?;
            if let Fate::Sent(to, _) = fate {
                self.fates.left(number, number as usize % PORTS.len(), to)?;
            }
        }
        Ok(())
    }

    /// Frames whose labels are those of one of these tables; then everything ends.
    fn round(&mut self, tables: &[&Labels]) -> Result<(), String> {
        for _ in 0..FRAMES_PER_ROUND {
            self.send(tables);
            for _ in 0..self.random.below(5) {
                pass(&mut self.node);
            }
            self.collect()?;
        }
        settle(&mut self.node, IDLE_PASSES);
        self.collect()?;
        self.fates.all_ended(&Fate::Dropped)
    }
}

/// Plays a history, in which the network moves, or caches pointers. Returns how many frames were sent and punted.
fn play(seed: u64, card: bool) -> Result<[u32; 2], String> {
    let mut random = Random::new(seed);
    let mut now = change(&Labels::from([(1 << 31, Place::Own)]), &mut random);
    let mut node = hand::start(&images_alone(if card { &["kinds"] } else { &[] })).unwrap();
    node.apply(&documents(&now, card), true).unwrap();
    settle(&mut node, IDLE_PASSES);
    if !node.runs("flat") {
        return Err(format!("{:?}", node.look()));
    }
    let mut world = World { node, random, fates: Fates::default(), number: 0, seen: [0; 2] };
    for round in 0..ROUNDS {
        let moves = card && round % 2 == 1;
        if moves {
            hand::begin_move(&mut world.node, "flat");
        }
        world.round(&[&now]).map_err(|why| format!("round {round}: {why}\n{now:?}"))?;
        if moves {
            hand::moved(&mut world.node)?;
        }
        let next = change(&now, &mut world.random);
        world.node.apply(&documents(&next, card), true).unwrap();
        let changed = world.round(&[&now, &next]);
        changed.map_err(|why| format!("change {round}: {why}\n{now:?}\n{next:?}"))?;
        now = next;
    }
    if card {
        return Ok(world.seen);
    }
    // A pointer stays while labels come and go, and yields to an entry with its label.
    let place = Place::At { port: 0, neighbour: 0, resident: false };
    let mut few = Labels::from([(0x4000_0000, place)]);
    world.node.apply(&documents(&few, false), true).unwrap();
    settle(&mut world.node, IDLE_PASSES);
    let taught = frame(1, 0x4000_0000, Some(0x6000_0000), 1);
    let teacher = [2, 0xcc, 0, 0, 1, 0];
    for (place, wanted) in
        [(None, teacher), (Some(0x1000_0000), teacher), (Some(0x6000_0000), neighbour(0, 1))]
    {
        assert!(world.node.send(PORTS[1], &taught), "the wire is full");
        few.extend(place.map(|label| (label, Place::At { port: 0, neighbour: 1, resident: false })));
        settle(&mut world.node, IDLE_PASSES);
        world.node.apply(&documents(&few, false), true).unwrap();
        settle(&mut world.node, IDLE_PASSES);
        PORTS.iter().for_each(|port| while world.node.receive(port).is_some() {});
        assert!(world.node.send(PORTS[0], &frame(0, 0x6000_0009, None, 1)), "the wire is full");
        settle(&mut world.node, IDLE_PASSES);
        let seen: Vec<Vec<u8>> = PORTS.iter().filter_map(|port| world.node.receive(port)).collect();
        if seen.iter().map(|frame| &frame[..6]).ne([&wanted[..]]) {
            return Err(format!("{place:08x?}: {seen:02x?}, not to {wanted:02x?}"));
        }
    }
    Ok(world.seen)
}

#[test]
fn labels_join_and_leave_while_frames_flow() {
    sum_of(false);
}

/// While its frames flow, the network moves, and its labels change on the card and in software.
#[test]
fn a_network_moves_and_its_labels_change() {
    sum_of(true);
}

fn sum_of(moves: bool) {
    let mut sum = [0; 2];
    for seed in SEEDS {
        let seen = play(seed, moves).unwrap_or_else(|why| panic!("seed {seed}: {why}"));
        sum = std::array::from_fn(|at| sum[at] + seen[at]);
    }
    assert!(sum.iter().all(|count| *count > 20), "{sum:?}");
}

#[test]
fn a_network_whose_kind_is_ignored_is_found() {
    plant(Some(Bug::KindIgnored));
    let found = SEEDS.map(|seed| play(seed, false)).find(Result::is_err);
    plant(None);
    assert!(found.is_some());
}
