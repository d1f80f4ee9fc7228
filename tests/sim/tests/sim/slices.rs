//! Random histories of a network of kind `splice`: routes of its slices change while packets with random bits flow, beside a
//! router with the same prefixes that moves between card and software. The oracle reads bits as digits.

use std::collections::BTreeMap;

use hue_differential::{Random, images_alone};
use hue_sim::hand::{self, pass, settle};
use hue_substrate::planted::{Bug, plant};
use hueplaned::node::by_hand::ByHand;

/// Passes without work after which nothing moves.
const IDLE_PASSES: usize = 60;
const FRAMES_PER_ROUND: usize = 60;
const ROUNDS: usize = 4;
const SEEDS: std::ops::RangeInclusive<u64> = 1..=2;
/// Slices: 3 bits a hop, of which some name no slice.
const SLICES: usize = 6;
/// Destinations: 10.`FIRST` to 10.`FIRST` + `PREFIXES` - 1.
const FIRST: u8 = 40;
const PREFIXES: usize = 3;

/// The port by which packets to a prefix leave, by slice and prefix; `None` without a route.
type Table = [[Option<usize>; PREFIXES]; SLICES];
/// Where a packet leaves, and with which identification.
type Fate = Option<(usize, u16)>;

fn table(random: &mut Random) -> Table {
    std::array::from_fn(|_| std::array::from_fn(|_| [None, Some(1), Some(2), Some(2)][random.below(4)]))
}

/// What becomes of a packet, and whether it may be punted. Bits are octal digits here.
fn oracle(table: &Table, id: u16, has_bits: bool, prefix: usize) -> (Fate, bool) {
    let digits: Vec<u16> = (0..5).map(|hop| id / 8u16.pow(hop) % 8).collect();
    let slice = if has_bits { usize::from(digits[0]) } else { 0 };
    let Some(row) = table.get(slice) else { return (None, false) };
    let Some(port) = row[prefix] else { return (None, true) };
    let next = digits[1..].iter().chain(&digits[4..]).rev().fold(id >> 15, |all, digit| all << 3 | digit);
    (Some((port, if has_bits { next } else { id })), false)
}

fn documents(table: &Table) -> String {
    let mut routes = String::new();
    for (slice, row) in table.iter().enumerate() {
        for (at, port) in row.iter().enumerate() {
            let Some(port) = port else { continue };
            let to = usize::from(FIRST) + at;
            routes += &format!("    - {{to: 10.{to}.0.0/16, via: 10.{}.0.2, slice: {slice}}}\n", 10 + port);
        }
    }
    let routes = if routes.is_empty() { String::new() } else { format!("  routes:\n{routes}") };
    let network = |name: &str, number: u8, plane: &str, routes: &str| {
        let ports: String = (0..3u8)
            .map(|at| {
                let mac = format!("02:00:00:00:{number:02x}:0{at}");
                format!("    - {{name: v{at}, port: p{at}, mac: \"{mac}\", addresses: [10.1{at}.0.{number}/24]}}\n")
            })
            .collect();
        let neighbours: String = (1..3u8)
            .map(|at| {
                format!(
                    "    - {{port: v{at}, address: 10.1{at}.0.2, mac: \"02:aa:00:00:{number:02x}:0{at}\"}}\n"
                )
            })
            .collect();
        format!(
            "---\napiVersion: hueplane/v1\nkind: Network\nmetadata: {{name: {name}}}\nspec:\n  plane: {plane}\n  \
             ports:\n{ports}  neighbours:\n{neighbours}{routes}"
        )
    };
    let other = "  routes:\n    - {to: 10.40.0.0/14, via: 10.11.0.2}\n";
    format!(
        "apiVersion: hueplane/v1\nkind: Node\nmetadata: {{name: sim}}\nspec:\n  ports: [{{name: p0}}, {{name: p1}}, {{name: p2}}]\n  \
         card: {{twin: {{image: kinds}}, ports: [p0, p1, p2]}}\n{}{}",
        network("splice", 7, &format!("{{kind: splice, slices: {SLICES}}}"), &routes),
        network("four", 9, "{kind: ipv4}", other),
    )
}

struct World {
    node: ByHand,
    random: Random,
    /// By the number of a packet: what may become of it, and whether it may be punted.
    open: BTreeMap<u32, (Vec<Fate>, bool)>,
    number: u32,
    /// How many packets left, were punted, and left the other router.
    seen: [u32; 3],
}

impl World {
    fn send(&mut self, tables: &[&Table]) {
        self.number += 1;
        let to_other = self.random.chance(20);
        let (id, has_bits) = (self.random.below(1 << 16) as u16, self.random.chance(80));
        let prefix = self.random.below(PREFIXES);
        let mut frame =
            vec![2, 0, 0, 0, if to_other { 9 } else { 7 }, 0, 2, 0xdd, 0, 0, 0, 1, 8, 0, 0x45, 0, 0, 46];
        frame.extend(id.to_be_bytes());
        frame.extend([if has_bits { 0x40 } else { 0 }, 0, 64, 17, 0, 0, 192, 0, 2, 1]);
        frame.extend([10, FIRST + prefix as u8, 0, 1]);
        let sum = hue_wire::checksum::full(&frame[14..34]);
        frame[24..26].copy_from_slice(&sum.to_be_bytes());
        frame.extend(self.number.to_be_bytes());
        frame.resize(60, 0);
        assert!(self.node.send("p0", &frame), "the wire is full");
        let fates: Vec<(Fate, bool)> = match to_other {
            true => vec![(Some((1, id)), false)],
            false => tables.iter().map(|table| oracle(table, id, has_bits, prefix)).collect(),
        };
        let punted = fates.iter().any(|(_, punted)| *punted);
        self.open.insert(self.number, (fates.into_iter().map(|(fate, _)| fate).collect(), punted));
    }

    fn collect(&mut self) -> Result<(), String> {
        for port in 1..3usize {
            while let Some(frame) = self.node.receive(&format!("p{port}")) {
                if frame[12..14] != [8, 0] {
                    continue;
                }
                let number = u32::from_be_bytes(frame[34..38].try_into().unwrap());
                let fate = Some((port, u16::from_be_bytes([frame[18], frame[19]])));
                let Some((fates, _)) = self.open.remove(&number) else {
                    return Err(format!("p{port}: {frame:02x?} leaves twice, or is nobody's"));
                };
                let network = frame[10];
                let neighbour = [2, 0xaa, 0, 0, network, port as u8];
                if !fates.contains(&fate)
                    || frame[..6] != neighbour
                    || !hue_wire::checksum::verify(&frame[14..34])
                {
                    return Err(format!(
                        "p{port}: {number} leaves as {fate:02x?} {frame:02x?}, not {fates:02x?}"
                    ));
                }
                self.seen[if network == 9 { 2 } else { 0 }] += 1;
            }
        }
        while let Some(frame) = self.node.receive_control("splice", 0) {
            let number = u32::from_be_bytes(frame[34..38].try_into().unwrap());
            if !self.open.remove(&number).is_some_and(|(_, punted)| punted) {
                return Err(format!("{frame:02x?} is punted"));
            }
            self.seen[1] += 1;
        }
        Ok(())
    }

    /// Packets whose routes are those of one of these tables; then everything ends.
    fn round(&mut self, tables: &[&Table]) -> Result<(), String> {
        for _ in 0..FRAMES_PER_ROUND {
            self.send(tables);
            for _ in 0..self.random.below(6) {
                pass(&mut self.node);
            }
            self.collect()?;
        }
        settle(&mut self.node, IDLE_PASSES);
        self.collect()?;
        let lost = self.open.iter().find(|(_, (fates, _))| !fates.contains(&None));
        if let Some((number, (fates, _))) = lost {
            return Err(format!("packet {number} is lost: {fates:02x?}"));
        }
        self.open.clear();
        Ok(())
    }
}

/// Plays a history. Returns how many packets left, were punted, and left the other router.
fn play(seed: u64) -> Result<[u32; 3], String> {
    let mut random = Random::new(seed);
    let mut now = table(&mut random);
    let mut node = hand::start(&images_alone(&["kinds"])).unwrap();
    node.apply(&documents(&now), true).unwrap();
    settle(&mut node, IDLE_PASSES);
    if !node.runs("splice") || !node.runs("four") {
        return Err(format!("{:?}", node.look()));
    }
    let mut world = World { node, random, open: BTreeMap::new(), number: 0, seen: [0; 3] };
    for round in 0..ROUNDS {
        let moves = round % 2 == 1;
        if moves {
            hand::begin_move(&mut world.node, "four");
        }
        world.round(&[&now]).map_err(|why| format!("round {round}: {why}\n{now:?}"))?;
        if moves {
            hand::moved(&mut world.node)?;
        }
        let next = table(&mut world.random);
        world.node.apply(&documents(&next), true).unwrap();
        let changed = world.round(&[&now, &next]);
        changed.map_err(|why| format!("change {round}: {why}\n{now:?}\n{next:?}"))?;
        now = next;
    }
    Ok(world.seen)
}

#[test]
fn routes_of_slices_change_while_packets_flow() {
    let mut sum = [0; 3];
    for seed in SEEDS {
        let seen = play(seed).unwrap_or_else(|why| panic!("seed {seed}: {why}"));
        sum = std::array::from_fn(|at| sum[at] + seen[at]);
    }
    assert!(sum.iter().all(|count| *count > 20), "{sum:?}");
}

#[test]
fn a_splice_network_whose_kind_is_ignored_is_found() {
    plant(Some(Bug::KindIgnored));
    let found = SEEDS.map(play).find(Result::is_err);
    plant(None);
    assert!(found.is_some());
}
