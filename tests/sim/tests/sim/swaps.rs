//! Random histories of a network of kind `mpls`: labels are swapped, pushed and popped while they change; or they are swapped only, and the
//! network moves between card and software. The oracle makes each frame that leaves from the frame that came, byte by byte.

use std::collections::BTreeMap;

use hue_differential::{Random, images_alone};
use hue_sim::hand::{self, pass, settle};
use hue_substrate::planted::{Bug, plant};
use hue_wire::Mac;
use hueplaned::node::by_hand::ByHand;

use super::fates::Fates;

/// Passes without work after which nothing moves.
const IDLE_PASSES: usize = 60;
const PORTS: [&str; 2] = ["p0", "p1"];
const FRAMES_PER_ROUND: usize = 80;
const ROUNDS: usize = 8;
const SEEDS: std::ops::RangeInclusive<u64> = 1..=2;
const MPLS: [u8; 2] = [0x88, 0x47];
const LABEL_MIN: u32 = 16;

/// What a network does with a label.
#[derive(Clone, PartialEq, Debug)]
enum Action {
    /// These labels replace it, the outermost one first; then the packet goes to a neighbour at a port.
    Send {
        labels: Vec<u32>,
        port: usize,
        neighbour: u8,
    },
    Punt,
    Drop,
}

type Labels = BTreeMap<u32, Action>;

/// What becomes of a frame: what leaves, and by which port; or the namespace gets it, as it came; or nothing.
#[derive(Clone, PartialEq, Debug)]
enum Fate {
    Sent(usize, Vec<u8>),
    Punted(usize, Vec<u8>),
    Dropped,
}

fn entry(label: u32, class: u32, bottom: u32, ttl: u32) -> [u8; 4] {
    (label << 12 | class << 9 | bottom << 8 | ttl).to_be_bytes()
}

fn oracle(labels: &Labels, pipe: bool, at: usize, frame: &[u8]) -> Fate {
    let top = u32::from_be_bytes(frame[14..18].try_into().unwrap());
    let (label, class, bottom, ttl) = (top >> 12, top >> 9 & 7, top >> 8 & 1, top & 255);
    if ttl < 2 {
        return Fate::Punted(at, frame.to_vec());
    }
    let (labels, port, to) = match labels.get(&label) {
        None | Some(Action::Drop) => return Fate::Dropped,
        Some(Action::Punt) => return Fate::Punted(at, frame.to_vec()),
        Some(Action::Send { labels, port, neighbour }) => (labels, *port, *neighbour),
    };
    let (ttl, mut below) = (ttl - 1, frame[18..].to_vec());
    let mut ethertype = MPLS;
    let mut above = Vec::new();
    for (depth, label) in labels.iter().enumerate() {
        let last = depth + 1 == labels.len();
        above.extend(entry(
            *label,
            class,
            if last { bottom } else { 0 },
            if last || !pipe { ttl } else { 255 },
        ));
    }
    if labels.is_empty() && bottom == 1 {
        ethertype = [8, 0];
        if !pipe {
            below[8] = below[8].min(ttl as u8);
            below[10..12].fill(0);
            let sum = hue_wire::checksum::full(&below[..20]);
            below[10..12].copy_from_slice(&sum.to_be_bytes());
        }
    } else if labels.is_empty() && !pipe {
        below[3] = below[3].min(ttl as u8);
    }
    Fate::Sent(port, [&neighbour(port, to)[..], &own(port), &ethertype, &above, &below].concat())
}

fn label(random: &mut Random) -> u32 {
    LABEL_MIN + random.below(8) as u32
}

fn action(label_itself: u32, swaps_only: bool, random: &mut Random) -> Action {
    let kind = if swaps_only { random.pick(&[0, 1, 3, 3, 3]) } else { random.below(6) };
    let labels = match kind {
        0 => return Action::Punt,
        1 => return Action::Drop,
        2 => vec![],
        3 => vec![label(random)],
        4 => vec![label(random), label(random)],
        _ => vec![label(random), label(random), label_itself],
    };
    Action::Send { labels, port: random.below(2), neighbour: random.below(3) as u8 }
}

/// Some labels leave, some get another action.
fn change(labels: &Labels, swaps_only: bool, random: &mut Random) -> Labels {
    let mut next = labels.clone();
    for _ in 0..random.below(6) {
        let label = label(random);
        if random.chance(25) {
            next.remove(&label);
        } else {
            next.insert(label, action(label, swaps_only, random));
        }
    }
    next
}

fn neighbour(port: usize, number: u8) -> [u8; 6] {
    [2, 0xbb, 0, 0, port as u8, number]
}

fn own(port: usize) -> [u8; 6] {
    [2, 0, 0, 0, 9, port as u8]
}

/// `push` names the labels from the inner one to the outermost; without `swap` the label itself stays below them.
fn line((label, action): (&u32, &Action)) -> String {
    let Action::Send { labels, port, neighbour: to } = action else {
        let name = if *action == Action::Punt { "punt" } else { "drop" };
        return format!("    - {{label: {label}, action: {name}}}\n");
    };
    let what = match labels.split_last() {
        None => "pop: true".to_owned(),
        Some((lowest, above)) => {
            let push: Vec<String> = above.iter().rev().map(u32::to_string).collect();
            let push = if push.is_empty() { String::new() } else { format!("push: [{}]", push.join(", ")) };
            let swap =
                if lowest == label && !push.is_empty() { String::new() } else { format!("swap: {lowest}") };
            [swap, push].into_iter().filter(|one| !one.is_empty()).collect::<Vec<_>>().join(", ")
        }
    };
    let to = Mac(neighbour(*port, *to));
    format!("    - {{label: {label}, {what}, port: v{port}, neighbour: \"{to}\"}}\n")
}

fn documents(labels: &Labels, pipe: bool, has_card: bool) -> String {
    let port = |(at, port): (usize, &&str)| {
        format!("    - {{name: v{at}, port: {port}, mac: \"{}\"}}\n", Mac(own(at)))
    };
    let ports: String = PORTS.iter().enumerate().map(port).collect();
    let labels: String = labels.iter().map(line).collect();
    let ttl = if pipe { "pipe" } else { "uniform" };
    let card = if has_card { ", card: {twin: {image: kinds}, ports: [p0, p1]}" } else { "" };
    format!(
        "apiVersion: hueplane/v1\nkind: Node\nmetadata: {{name: sim}}\nspec: {{ports: [{{name: p0}}, {{name: p1}}]{card}}}\n---\n\
         apiVersion: hueplane/v1\nkind: Network\nmetadata: {{name: core}}\nspec:\n  plane: {{kind: mpls, ttl: {ttl}}}\n  \
         ports:\n{ports}  labels:\n{labels}"
    )
}

/// A frame with one label or two above an IPv4 packet, which has its number.
fn frame(port: usize, random: &mut Random, number: u32) -> Vec<u8> {
    let mut frame = [&own(port)[..], &[2, 0xcc, 0, 0, 0, port as u8], &MPLS].concat();
    let ttl = |random: &mut Random| [1, 2, 9, 64, 64, 64, 64, 200][random.below(8)];
    let class = random.below(8) as u32;
    let deep = random.chance(50);
    frame.extend(entry(label(random), class, u32::from(!deep), ttl(random)));
    if deep {
        frame.extend(entry(label(random), class, 1, ttl(random)));
    }
    let at = frame.len();
    frame.extend([0x45, 0, 0, 24, 0, 0, 0, 0, ttl(random) as u8, 253, 0, 0, 192, 0, 2, 1, 198, 51, 100, 9]);
    let sum = hue_wire::checksum::full(&frame[at..]);
    frame[at + 10..at + 12].copy_from_slice(&sum.to_be_bytes());
    frame.extend(number.to_be_bytes());
    // Longer than the least frame without its labels, so that nobody pads it.
    frame.resize(80, 0);
    frame
}

/// The number of a frame.
fn number_of(frame: &[u8]) -> Option<u32> {
    let mut rest = frame.get(14..)?;
    if frame[12..14] == MPLS {
        let stack = rest.chunks_exact(4).position(|entry| entry[2] & 1 == 1)?;
        rest = rest.get(4 * (stack + 1)..)?;
    }
    Some(u32::from_be_bytes(*rest.get(20..)?.first_chunk()?))
}

struct World {
    node: ByHand,
    random: Random,
    pipe: bool,
    fates: Fates<Fate>,
    number: u32,
    /// How many frames were sent and punted.
    seen: [u32; 2],
}

impl World {
    fn send(&mut self, tables: &[&Labels]) {
        self.number += 1;
        let at = self.number as usize % PORTS.len();
        let frame = frame(at, &mut self.random, self.number);
        assert!(self.node.send(PORTS[at], &frame), "the wire is full");
        let fates = tables.iter().map(|labels| oracle(labels, self.pipe, at, &frame)).collect();
        self.fates.open(self.number, fates);
    }

    fn collect(&mut self) -> Result<(), String> {
        let mut ends = Vec::new();
        for (at, port) in PORTS.iter().enumerate() {
            while let Some(frame) = self.node.receive(port) {
                let number = number_of(&frame).ok_or(format!("{port}: damaged: {frame:02x?}"))?;
                ends.push((number, Fate::Sent(at, frame)));
                self.seen[0] += 1;
            }
            while let Some(frame) = self.node.receive_control("core", at) {
                let number = number_of(&frame).ok_or(format!("v{at}: damaged: {frame:02x?}"))?;
                ends.push((number, Fate::Punted(at, frame)));
                self.seen[1] += 1;
            }
        }
        for (number, fate) in ends {
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

/// Plays a history; `has_card`: in which the network moves, and its entries only swap labels until they push some in the end. Returns how
/// many frames were sent and punted.
fn play(seed: u64, has_card: bool) -> Result<[u32; 2], String> {
    let mut random = Random::new(seed);
    let pipe = seed % 2 == 1;
    let some = (LABEL_MIN..LABEL_MIN + 6).map(|label| (label, action(label, has_card, &mut random)));
    let mut now: Labels = some.collect();
    let mut node = hand::start(&images_alone(if has_card { &["kinds"] } else { &[] })).unwrap();
    node.apply(&documents(&now, pipe, has_card), true).unwrap();
    settle(&mut node, IDLE_PASSES);
    if !node.runs("core") || node.is_on_card("core") != has_card {
        return Err(format!("{:?}", node.look()));
    }
    let mut world = World { node, random, pipe, fates: Fates::default(), number: 0, seen: [0; 2] };
    for round in 0..ROUNDS {
        let moves = has_card && round % 2 == 1;
        if moves {
            hand::begin_move(&mut world.node, "core");
        }
        world.round(&[&now]).map_err(|why| format!("round {round}: {why}\n{now:?}"))?;
        if moves {
            hand::moved(&mut world.node)?;
        }
        let mut next = change(&now, has_card, &mut world.random);
        if has_card && round == ROUNDS - 1 {
            next.insert(
                LABEL_MIN,
                Action::Send { labels: vec![LABEL_MIN, LABEL_MIN], port: 0, neighbour: 0 },
            );
        }
        world.node.apply(&documents(&next, pipe, has_card), true).unwrap();
        let changed = world.round(&[&now, &next]);
        changed.map_err(|why| format!("change {round}: {why}\n{now:?}\n{next:?}"))?;
        now = next;
    }
    if world.node.is_on_card("core") {
        return Err("a network that pushes labels is on the card".to_owned());
    }
    Ok(world.seen)
}

#[test]
fn labels_change_while_frames_flow() {
    all_hold(false);
}

/// While its frames flow, the network moves, and its labels change on the card and in software.
#[test]
fn a_network_moves_and_its_labels_change() {
    all_hold(true);
}

fn all_hold(has_card: bool) {
    let mut sum = [0; 2];
    for seed in SEEDS {
        let seen = play(seed, has_card).unwrap_or_else(|why| panic!("seed {seed}: {why}"));
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
