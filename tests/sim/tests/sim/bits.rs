//! Random histories of a network of kind `extract`: its entries change while frames flow, beside a router that has addresses on one
//! of its ports. One of the two moves between card and software. The oracle compares entries one by one.

use std::collections::BTreeMap;

use hue_differential::{Random, images_alone};
use hue_sim::hand::{self, pass, settle};
use hue_substrate::planted::{Bug, plant};
use hue_tables::{Pattern, unreachable};
use hueplaned::node::by_hand::ByHand;

/// Passes without work after which nothing moves.
const IDLE_PASSES: usize = 60;
/// The network's ports. The third is not the card's, unless the network moves.
const PORTS: [&str; 3] = ["p1", "p2", "p3"];
/// The router's address on the first of them.
const ROUTER: [u8; 6] = [2, 0, 0, 0, 4, 1];
const ROUTERS_NEIGHBOUR: [u8; 6] = [2, 0xaa, 0, 0, 4, 0];
const FRAMES_PER_ROUND: usize = 60;
const ROUNDS: usize = 6;
const SEEDS: std::ops::RangeInclusive<u64> = 1..=2;

/// What becomes of a frame: the port by which it leaves and its MAC addresses there, or nothing.
type Fate = Option<(usize, [u8; 12])>;

/// What an entry does.
#[derive(Clone, Debug)]
enum Action {
    Send { to: usize, destination: Option<[u8; 6]>, source: Option<[u8; 6]> },
    Drop,
    Punt,
}

/// An entry: value and mask of 24 bits, and what it does.
type Entry = ((u32, u32), Action);

/// Bits of the key: the EtherType, and half of byte 16.
const KEY_MASK: u32 = 0xff_ff0f;

fn key_of(frame: &[u8]) -> u32 {
    u32::from_be_bytes([0, frame[12], frame[13], frame[16]]) & KEY_MASK
}

/// The first entry that matches, one after the other.
fn oracle(entries: &[Entry], frame: &[u8]) -> (Fate, bool) {
    let key = key_of(frame);
    let Some((_, action)) = entries.iter().find(|((value, mask), _)| key & mask == *value) else {
        return (None, false);
    };
    match action {
        Action::Drop => (None, false),
        Action::Punt => (None, true),
        Action::Send { to, destination, source } => {
            let mut macs: [u8; 12] = frame[..12].try_into().unwrap();
            destination.iter().for_each(|mac| macs[..6].copy_from_slice(mac));
            source.iter().for_each(|mac| macs[6..].copy_from_slice(mac));
            (Some((*to, macs)), false)
        }
    }
}

/// Entries that often overlap, of which each can match a frame.
fn entries(random: &mut Random) -> Vec<Entry> {
    let mut all: Vec<Entry> = Vec::new();
    for _ in 0..random.below(9) {
        let mask = [KEY_MASK, 0xff_ff00, 0x00_000f, 0x00_0300, 0][random.below(5)];
        let value = (0x88_b000 | (random.below(4) as u32) << 8 | random.below(4) as u32) & mask;
        let mac =
            |random: &mut Random| random.chance(50).then(|| [2, 0xcc, 0, 0, 0, random.below(200) as u8 + 1]);
        let action = match random.below(6) {
            0 => Action::Drop,
            1 => Action::Punt,
            _ => Action::Send { to: random.below(3), destination: mac(random), source: mac(random) },
        };
        all.push(((value, mask), action));
    }
    let patterns: Vec<Pattern> =
        all.iter().map(|((value, mask), _)| Pattern::new(u128::from(*value), u128::from(*mask))).collect();
    let gone = unreachable(&patterns);
    let mut index = 0;
    all.retain(|_| {
        index += 1;
        !gone.iter().any(|(at, _)| *at == index - 1)
    });
    all
}

fn text(mac: [u8; 6]) -> String {
    mac.map(|byte| format!("{byte:02x}")).join(":")
}

fn documents(entries: &[Entry], mover: &str) -> String {
    let more = if mover == "bits" { ", p3" } else { "" };
    let ports = PORTS
        .iter()
        .enumerate()
        .map(|(at, port)| format!("    - {{name: v{at}, port: {port}, mac: \"02:00:00:00:50:0{at}\"}}\n"));
    let line = |((value, mask), action): &Entry| {
        let matching = match *mask {
            0 => "match: any".to_owned(),
            KEY_MASK => format!("match: \"0x{value:06x}\""),
            0xff_ff00 => format!("match: \"0x{value:06x}/16\""),
            mask => format!("match: \"0x{value:06x}\", mask: \"0x{mask:06x}\""),
        };
        let action = match action {
            Action::Drop => "action: drop".to_owned(),
            Action::Punt => "action: punt".to_owned(),
            Action::Send { to, destination, source } => {
                let mac = |name: &str, mac: &Option<[u8; 6]>| {
                    mac.map_or_else(String::new, |mac| format!(", {name}: \"{}\"", text(mac)))
                };
                format!("port: v{to}{}{}", mac("destination", destination), mac("source", source))
            }
        };
        format!("    - {{{matching}, {action}}}\n")
    };
    let entries: String = entries.iter().map(line).collect();
    format!(
        "apiVersion: hueplane/v1\nkind: Node\nmetadata: {{name: sim}}\nspec:\n  ports: [{{name: p0}}, {{name: p1}}, {{name: p2}}, {{name: p3}}]\n  \
         card: {{twin: {{image: kinds}}, ports: [p0, p1, p2{more}]}}\n---\napiVersion: hueplane/v1\nkind: Network\nmetadata: {{name: bits}}\nspec:\n  \
         plane: {{kind: extract, key: [{{offset: 12, bytes: 2}}, {{offset: 16, mask: \"0x0f\"}}]}}\n  ports:\n{}  entries:\n{entries}\
         ---\napiVersion: hueplane/v1\nkind: Network\nmetadata: {{name: four}}\nspec:\n  plane: {{kind: ipv4}}\n  ports:\n    \
         - {{name: a, port: p0, mac: \"02:00:00:00:04:00\", addresses: [10.1.0.1/24]}}\n    \
         - {{name: b, port: p1, mac: \"{}\", addresses: [10.2.0.1/24]}}\n  neighbours: [{{port: a, address: 10.1.0.2, mac: \"{}\"}}]\n  \
         routes: [{{to: 172.16.0.0/16, via: 10.1.0.2}}]\n",
        ports.collect::<String>(),
        text(ROUTER),
        text(ROUTERS_NEIGHBOUR),
    )
}

struct World {
    node: ByHand,
    random: Random,
    /// By the number of a frame: what may become of it, and whether it may be punted.
    open: BTreeMap<u32, (Vec<Fate>, bool)>,
    /// Those for the router.
    routed: Vec<u32>,
    /// By port of arrival and departure: the latest frame that left.
    latest: BTreeMap<(u8, usize), u32>,
    number: u32,
    /// How many frames left, were punted, and were routed.
    seen: [u32; 3],
}

impl World {
    /// Sends a frame of the network, or one for the router.
    fn send(&mut self, tables: &[&[Entry]]) {
        self.number += 1;
        let (at, number) = (self.random.below(PORTS.len()), self.number.to_be_bytes());
        if at == 0 && self.random.chance(20) {
            let mut frame = [&ROUTER[..], &[2, 0xdd, 0, 0, 0, 1]].concat();
            frame.extend([8, 0, 0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17, 0, 0, 192, 0, 2, 1, 172, 16, 0, 1]);
            let sum = hue_wire::checksum::full(&frame[14..34]);
            frame[24..26].copy_from_slice(&sum.to_be_bytes());
            frame.extend(number);
            frame.resize(60, 0);
            assert!(self.node.send(PORTS[at], &frame), "the wire is full");
            self.routed.push(self.number);
            return;
        }
        let ethertype = [0x88, 0xb0 | self.random.below(4) as u8];
        let half = (self.random.below(16) << 4 | self.random.below(4)) as u8;
        let mut frame = vec![2, 0xbb, 0, 0, 0, 1, 2, 0xdd, 0, 0, 0, at as u8];
        frame.extend(ethertype);
        frame.extend([7, at as u8, half]);
        frame.extend(number);
        frame.resize(60, 0);
        assert!(self.node.send(PORTS[at], &frame), "the wire is full");
        let fates: Vec<(Fate, bool)> = tables.iter().map(|entries| oracle(entries, &frame)).collect();
        let punted = fates.iter().any(|(_, punted)| *punted);
        self.open.insert(self.number, (fates.into_iter().map(|(fate, _)| fate).collect(), punted));
    }

    fn collect(&mut self) -> Result<(), String> {
        while let Some(frame) = self.node.receive("p0") {
            let number = u32::from_be_bytes(frame[34..38].try_into().unwrap());
            let place = self.routed.iter().position(|one| *one == number);
            let place = place.ok_or(format!("p0: frame {frame:02x?} is not the router's"))?;
            self.routed.swap_remove(place);
            if frame[..6] != ROUTERS_NEIGHBOUR {
                return Err(format!("the router sends {frame:02x?}"));
            }
            self.seen[2] += 1;
        }
        for (at, port) in PORTS.iter().enumerate() {
            while let Some(frame) = self.node.receive(port) {
                let number = u32::from_be_bytes(frame[17..21].try_into().unwrap());
                let fate = Some((at, frame[..12].try_into().unwrap()));
                let Some((fates, _)) = self.open.remove(&number) else {
                    return Err(format!("{port}: {frame:02x?} leaves twice, or is nobody's"));
                };
                if !fates.contains(&fate) {
                    return Err(format!("{port}: frame {number} leaves as {fate:02x?}, not {fates:02x?}"));
                }
                let before = self.latest.insert((frame[15], at), number).unwrap_or(0);
                if before >= number {
                    return Err(format!("{port}: frame {number} comes after {before}"));
                }
                self.seen[0] += 1;
            }
            while let Some(frame) = self.node.receive_control("bits", at) {
                let number = u32::from_be_bytes(frame[17..21].try_into().unwrap());
                let expected = self.open.remove(&number).is_some_and(|(_, punted)| punted);
                if !expected || usize::from(frame[15]) != at {
                    return Err(format!("v{at}: {frame:02x?} is punted"));
                }
                self.seen[1] += 1;
            }
        }
        Ok(())
    }

    /// Frames whose entries are one of these tables; then everything ends.
    fn round(&mut self, tables: &[&[Entry]]) -> Result<(), String> {
        for _ in 0..FRAMES_PER_ROUND {
            self.send(tables);
            for _ in 0..self.random.below(6) {
                pass(&mut self.node);
            }
            self.collect()?;
        }
        settle(&mut self.node, IDLE_PASSES);
        self.collect()?;
        let kept = |(number, (fates, _)): (&u32, &(Vec<Fate>, bool))| {
            (!fates.contains(&None)).then(|| format!("frame {number} is lost: {fates:02x?}"))
        };
        if let Some(lost) = self.open.iter().find_map(kept) {
            return Err(lost);
        }
        if let Some(number) = self.routed.first() {
            return Err(format!("frame {number} for the router is lost"));
        }
        self.open.clear();
        Ok(())
    }
}

/// Plays a history in which one of the networks moves. Returns how many frames left, were punted, and were routed.
fn play(seed: u64, mover: &str) -> Result<[u32; 3], String> {
    let mut random = Random::new(seed);
    let mut now = entries(&mut random);
    let mut node = hand::start(&images_alone(&["kinds"])).unwrap();
    node.apply(&documents(&now, mover), true).unwrap();
    settle(&mut node, IDLE_PASSES);
    if !node.runs("bits") || mover == "four" && node.is_on_card("bits") {
        return Err(format!("{:?}", node.look()));
    }
    let mut world = World {
        node,
        random,
        open: BTreeMap::new(),
        routed: Vec::new(),
        latest: BTreeMap::new(),
        number: 0,
        seen: [0; 3],
    };
    for round in 0..ROUNDS {
        let moves = round % 2 == 1;
        if moves {
            hand::begin_move(&mut world.node, mover);
        }
        world.round(&[&now]).map_err(|why| format!("round {round}: {why}\n{now:02x?}"))?;
        if moves {
            hand::moved(&mut world.node)?;
        }
        let next = entries(&mut world.random);
        world.node.apply(&documents(&next, mover), true).unwrap();
        let changed = world.round(&[&now, &next]);
        changed.map_err(|why| format!("change {round}: {why}\n{now:02x?}\n{next:02x?}"))?;
        now = next;
    }
    Ok(world.seen)
}

#[test]
fn entries_change_while_frames_flow() {
    let mut sum = [0; 3];
    for seed in SEEDS {
        let seen = play(seed, "four").unwrap_or_else(|why| panic!("seed {seed}: {why}"));
        sum = std::array::from_fn(|at| sum[at] + seen[at]);
    }
    assert!(sum.iter().all(|count| *count > 20), "{sum:?}");
}

/// While its frames flow, the network moves, and its entries change on the card and in software.
#[test]
fn a_network_moves_and_its_entries_change() {
    let mut sum = [0; 3];
    for seed in SEEDS {
        let seen = play(seed, "bits").unwrap_or_else(|why| panic!("seed {seed}: {why}"));
        sum = std::array::from_fn(|at| sum[at] + seen[at]);
    }
    assert!(sum.iter().all(|count| *count > 20), "{sum:?}");
}

#[test]
fn a_network_whose_kind_is_ignored_is_found() {
    plant(Some(Bug::KindIgnored));
    let found = SEEDS.map(|seed| play(seed, "four")).find(Result::is_err);
    plant(None);
    assert!(found.is_some());
}
