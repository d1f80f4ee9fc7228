//! Switches on a card: where a frame goes does not depend on where the network runs, nor on its moves.

use std::collections::{BTreeMap, BTreeSet};

use hue_differential::{Random, images_alone};
use hue_sim::hand::{self, is_clean, pass, settle};
use hue_substrate::planted::{Bug, plant};
use hueplaned::api::{MigrateRequest, Migration, SubstrateName};
use hueplaned::node::by_hand::{Answer, ByHand};

/// Passes without work after which nothing moves.
const IDLE_PASSES: usize = 60;
const PORTS: [&str; 3] = ["p0", "p1", "p2"];
/// A host that does not exist.
const NOBODY: u8 = 99;
/// All hosts.
const EVERYBODY: u8 = 255;

/// A node with a switch on the three ports of its card.
struct World {
    node: ByHand,
    sent: u32,
    /// By the number of a frame: the ports by which it left.
    left: BTreeMap<u32, Vec<usize>>,
    /// By sender, destination and port: the latest frame that left.
    latest: BTreeMap<(u8, u8, usize), u32>,
}

impl World {
    fn start(settings: &str) -> Self {
        let mut node = hand::start(&images_alone(&["kinds"])).unwrap();
        let ports: String = (0..PORTS.len())
            .map(|at| format!("    - {{name: v{at}, port: p{at}, mac: \"02:00:00:00:70:0{at}\"}}\n"))
            .collect();
        let documents = format!(
            "apiVersion: hueplane/v1\nkind: Node\nmetadata: {{name: sim}}\nspec:\n  ports: [{{name: p0}}, {{name: p1}}, {{name: p2}}]\n  \
             card: {{twin: {{image: kinds}}, ports: [p0, p1, p2]}}\n---\napiVersion: hueplane/v1\nkind: Network\nmetadata: {{name: lan}}\n\
             spec:\n  plane: {{kind: l2{settings}}}\n  placement: card\n  ports:\n{ports}"
        );
        node.apply(&documents, true).unwrap();
        settle(&mut node, IDLE_PASSES);
        assert!(node.is_on_card("lan"), "{:?}", node.look());
        Self { node, sent: 0, left: BTreeMap::new(), latest: BTreeMap::new() }
    }

    /// Sends a frame from one host, which is behind a port, to another; returns its number.
    fn send(&mut self, port: usize, from: u8, to: u8) -> u32 {
        self.sent += 1;
        let host = |host: u8| if host == EVERYBODY { [0xff; 6] } else { [2, 0xaa, 0, 0, 0, host] };
        let number = self.sent.to_be_bytes();
        let mut frame = [&host(to)[..], &host(from), &[0x12, 0x34], &number, &[from, to]].concat();
        frame.resize(60, 0);
        assert!(self.node.send(PORTS[port], &frame), "the wire is full");
        self.sent
    }

    /// Takes the frames that have left. The error says what is wrong with one.
    fn collect(&mut self) -> Result<(), String> {
        for (at, name) in PORTS.iter().enumerate() {
            while let Some(frame) = self.node.receive(name) {
                let number = u32::from_be_bytes(frame[14..18].try_into().unwrap());
                let [from, to] = [frame[18], frame[19]];
                self.left.entry(number).or_default().push(at);
                let before = self.latest.insert((from, to, at), number).unwrap_or(0);
                if before >= number {
                    return Err(format!("at p{at}, frame {number} comes after {before}"));
                }
            }
        }
        Ok(())
    }

    /// Lets everything end, and says by which ports a frame left.
    fn ports_of(&mut self, number: u32) -> Result<Vec<usize>, String> {
        settle(&mut self.node, IDLE_PASSES);
        self.collect()?;
        Ok(self.left.get(&number).cloned().unwrap_or_default())
    }

    fn expect(
        &mut self,
        (port, from, to): (usize, u8, u8),
        ports: &[usize],
        when: &str,
    ) -> Result<(), String> {
        let number = self.send(port, from, to);
        let found = self.ports_of(number)?;
        let good = found == ports;
        good.then_some(())
            .ok_or(format!("{when}: from {from} at p{port} to {to}: left by {found:?}, not {ports:?}"))
    }

    fn begin_move(&mut self, to: SubstrateName) {
        self.node.migrate("lan", &MigrateRequest { watch_ms: 2, ..MigrateRequest::new(to) }).unwrap();
    }

    /// The report of a move, if it has ended.
    fn moved(&mut self) -> Option<Migration> {
        match self.node.answer()? {
            Answer::Moved(_, result) => Some(result.unwrap()),
            other => panic!("{other:?}"),
        }
    }

    fn move_to(&mut self, to: SubstrateName) -> Result<(), String> {
        self.begin_move(to);
        for _ in 0..20_000 {
            pass(&mut self.node);
            if let Some(report) = self.moved() {
                return is_clean(&report);
            }
        }
        Err(format!("the move to {to:?} does not end: {:?}", self.node.look()))
    }
}

/// What hosts teach on one side is known on the other, and ages there.
fn addresses_move() -> Result<(), String> {
    use SubstrateName::{Card, Soft};
    let mut world = World::start("");
    world.expect((0, 1, NOBODY), &[1, 2], "on the card, unknown")?;
    world.expect((1, 2, 1), &[0], "on the card, learnt there")?;
    world.move_to(Soft)?;
    world.expect((2, 3, 1), &[0], "in software, learnt on the card")?;
    world.expect((0, 1, 2), &[1], "in software, learnt on the card")?;
    world.move_to(Card)?;
    world.expect((0, 1, 3), &[2], "on the card, learnt in software")?;
    world.expect((1, 2, 1), &[0], "on the card, learnt there before")?;
    // A host moves while the network is on the card.
    world.expect((2, 1, 2), &[1], "from another port")?;
    world.move_to(Soft)?;
    world.expect((1, 2, 1), &[2], "in software, moved on the card")?;
    Ok(())
}

#[test]
fn what_a_switch_knows_moves_with_it() {
    addresses_move().unwrap();
}

#[test]
fn addresses_that_stay_are_found() {
    plant(Some(Bug::AddressesStay));
    let found = addresses_move();
    plant(None);
    assert!(found.unwrap_err().starts_with("on the card, learnt in software"));
}

/// A storm that has used up its limit on one side has used it up on the other.
fn storms_stay_limited() -> Result<(), String> {
    let mut world = World::start(", storm_limit: {packets_per_second: 1, burst_packets: 8}");
    let flood = |world: &mut World| -> Result<usize, String> {
        let numbers: Vec<u32> = (0..12).map(|_| world.send(0, 1, NOBODY)).collect();
        settle(&mut world.node, IDLE_PASSES);
        world.collect()?;
        Ok(numbers.iter().filter(|number| world.left.contains_key(number)).count())
    };
    for (to, passes) in [(SubstrateName::Soft, 8), (SubstrateName::Card, 0), (SubstrateName::Soft, 0)] {
        let passed = flood(&mut world)?;
        // A second gives another packet.
        if !(passes..=passes + 2).contains(&passed) {
            return Err(format!("{passed} of a storm pass before the move to {to:?}, not {passes}"));
        }
        world.move_to(to)?;
    }
    Ok(())
}

#[test]
fn a_storm_is_limited_across_moves() {
    storms_stay_limited().unwrap();
}

#[test]
fn storm_limits_that_restart_are_found() {
    plant(Some(Bug::DebtsStay));
    let found = storms_stay_limited();
    plant(None);
    assert!(found.unwrap_err().contains("of a storm pass"));
}

/// Hosts talk, appear and move while the network moves between card and software.
fn play(seed: u64) -> Result<(), String> {
    let mut random = Random::new(seed);
    let mut world = World::start("");
    // Hosts 1 to 3 stay at their ports; 4 to 9 move.
    let mut at: BTreeMap<u8, usize> = (1..=9).map(|host| (host, usize::from(host) % 3)).collect();
    for (host, port) in at.clone() {
        world.send(port, host, NOBODY);
    }
    settle(&mut world.node, IDLE_PASSES);
    world.collect()?;
    let (mut moving, mut moves, mut new) = (false, 0, 20);
    let (mut to_known, mut to_all) = (Vec::new(), BTreeSet::new());
    while moves < 6 {
        if world.sent < 5_000 {
            let from = 1 + random.below(9) as u8;
            match random.below(12) {
                0 if from > 3 => _ = at.insert(from, random.below(3)),
                1 => {
                    new += 1;
                    world.send(random.below(3), new % 100 + 100, 1);
                }
                kind @ 2..=3 => {
                    let to = if kind == 2 { NOBODY } else { EVERYBODY };
                    to_all.insert((world.send(at[&from], from, to), at[&from]));
                }
                _ => {
                    let to = 1 + random.below(3) as u8;
                    let number = world.send(at[&from], from, to);
                    to_known.push((number, at[&from], at[&to]));
                }
            }
        }
        for _ in 0..random.below(12) {
            pass(&mut world.node);
        }
        world.collect()?;
        if !moving {
            let to = if world.node.is_on_card("lan") { SubstrateName::Soft } else { SubstrateName::Card };
            world.begin_move(to);
            moving = true;
        } else if let Some(report) = world.moved() {
            is_clean(&report)?;
            (moving, moves) = (false, moves + 1);
        }
    }
    settle(&mut world.node, IDLE_PASSES);
    world.collect()?;
    for (number, port, to) in to_known {
        let found = world.left.get(&number).cloned().unwrap_or_default();
        let wanted: &[usize] = if port == to { &[] } else { &[to] };
        if found != wanted {
            return Err(format!("frame {number} from p{port} for p{to} left by {found:?}"));
        }
    }
    for (number, port) in to_all {
        let mut found = world.left.get(&number).cloned().unwrap_or_default();
        found.sort_unstable();
        let others: Vec<usize> = (0..3).filter(|other| *other != port).collect();
        if found != others {
            return Err(format!("frame {number} from p{port} for all left by {found:?}"));
        }
    }
    Ok(())
}

#[test]
fn hosts_of_a_switch_notice_no_move() {
    for seed in 1..=4 {
        play(seed).unwrap_or_else(|why| panic!("seed {seed}: {why}"));
    }
}
