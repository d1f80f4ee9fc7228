//! A history: steps that a seed chooses, and the checks between them.
//!
//! Between two steps the node, its jobs, the kernels of namespaces, the workers and the card each get some turns, in an
//! order that the seed also chooses, and frames arrive. Sometimes, and at the end, the history waits until nothing moves any
//! more; then everything must be as the documents require.

use std::collections::BTreeSet;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use hue_card::Images;
use hue_differential::Random;
use hueplaned::api::{MigrateRequest, MigrationStep, SubstrateName};
use hueplaned::node::by_hand::{Answer, ByHand, Journal, Seated};

use crate::Sets;
use crate::check;
use crate::frame::{self, Tag, mac, neighbour_mac, tagged};
use crate::hand::{self, US, WORKERS};
use crate::hosts::{EVERYBODY, HOSTS, NOBODY};
use crate::ledger::{CONTROL, FLOWS, Ledger, RESTLESS, SHARED, SHARED_FLOWS, SOURCED, SOURCED_FLOWS, TTL};
use crate::world::{
    Families, Family, NETS, Net, PORTS, Place, ROUTER_PORTS, ROUTERS, SWITCH, SWITCH_PORTS, World, name,
    neighbour, number,
};

/// Most steps of a history.
const STEPS_MAX: usize = 30;
/// Most turns between two steps.
const TURNS_MAX: usize = 200;
/// Most frames of a network that are inside at once: fewer than any queue holds.
const INSIDE_MAX: usize = 48;
/// One seed in so many gives a history of networks with rate limits: a rate and a burst. The rate is low, so that an error in a
/// move is noticed.
pub const LIMITED_SEEDS: u64 = 5;
const LIMITED_RATE: usize = 20;
const LIMITED_BURST: u32 = 30;
/// One seed in so many gives a history in which the card is drained at times.
pub const DRAINED_SEEDS: u64 = 9;
/// One seed in so many, with this remainder, gives a history of networks of both address families, and images without and with
/// their kinds.
const MIXED_SEEDS: (u64, u64) = (6, 5);
/// Of the mixed histories, one in so many, with this remainder, has networks with groups of next hops.
const SHARED_SEEDS: (u64, u64) = (3, 1);
/// Likewise, of routes by source.
const SOURCED_SEEDS: (u64, u64) = (3, 2);
/// Of the histories with a switch, those with this remainder of the seed have a card that is drained at times: none of the others is
/// mixed.
const SWITCH_DRAINED_SEEDS: (u64, u64) = (36, 23);
/// In how many of 100 steps of a history with a switch something happens to it or its hosts.
const SWITCH_STEPS: usize = 25;
/// Likewise, in how many of 100 cases the frames that are sent are those of its hosts, besides its share as a network.
const HOSTS_TALK: usize = 30;
/// Passes between the first frames of two hosts: a card that is busy leaves out notes of hosts.
const INTRODUCTION_PASSES: usize = 8;
/// Passes over all parts after which nothing may move any more.
const PASSES_MAX: usize = 4_000;
/// Passes without work after which nothing moves. The card executes one of control's requests a round, which does not count as work.
const IDLE_PASSES: usize = 60;
/// Events of the node in a failure's message.
const EVENTS_TOLD: usize = 8;

/// The results of a history.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Outcome {
    /// A digest of all frames that left, with place and time, and of all answers.
    pub digest: u64,
    /// Frames that were sent, and frames that left.
    pub frames: (u64, u64),
    /// Requested moves that succeeded, and those that failed.
    pub moves: (u64, u64),
    /// Images that were loaded.
    pub images: u64,
    /// Cards that failed or were removed.
    pub cards_failed: u64,
    /// How often the card was drained, or no longer drained.
    pub drains: u64,
    /// Number of checks in a quiet state.
    pub looks: u64,
    /// Kinds of networks that ran in a quiet state.
    pub kinds: BTreeSet<&'static str>,
    /// Of a switch: hosts that moved to another port, frames to hosts that it knew, and frames to all.
    pub switched: (u64, u64, u64),
    /// The steps and their results.
    pub history: Vec<String>,
}

impl Outcome {
    /// Adds another history's numbers to these.
    pub fn add(&mut self, other: &Self) {
        let both = |one: (u64, u64), two: (u64, u64)| (one.0 + two.0, one.1 + two.1);
        self.digest ^= other.digest;
        self.frames = both(self.frames, other.frames);
        self.moves = both(self.moves, other.moves);
        self.images += other.images;
        self.drains += other.drains;
        self.cards_failed += other.cards_failed;
        self.looks += other.looks;
        self.kinds.extend(&other.kinds);
        self.add_switched(other.switched);
    }

    fn add_switched(&mut self, (moved, known, floods): (u64, u64, u64)) {
        self.switched.0 += moved;
        self.switched.1 += known;
        self.switched.2 += floods;
    }
}

/// A history that violates an invariant.
#[derive(Debug)]
pub struct Failure {
    /// The seed that replays it.
    pub seed: u64,
    /// The invariant that does not hold.
    pub what: String,
    /// The steps until then.
    pub history: Vec<String>,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.history.iter().try_for_each(|line| writeln!(f, "  {line}"))?;
        writeln!(f, "{}", self.what)?;
        write!(
            f,
            "replay: HUE_SIM_SEED={} cargo test --workspace --test sim histories_hold -- --nocapture",
            self.seed
        )
    }
}

/// Whether the networks of a seed's history have both address families.
#[must_use]
pub fn is_mixed(seed: u64) -> bool {
    seed % MIXED_SEEDS.0 == MIXED_SEEDS.1
}

/// Whether networks of a seed's history have groups of next hops.
#[must_use]
pub fn is_shared(seed: u64) -> bool {
    is_mixed(seed) && seed / MIXED_SEEDS.0 % SHARED_SEEDS.0 == SHARED_SEEDS.1
}

/// Whether networks of a seed's history have routes by source.
#[must_use]
pub fn is_sourced(seed: u64) -> bool {
    is_mixed(seed) && seed / MIXED_SEEDS.0 % SOURCED_SEEDS.0 == SOURCED_SEEDS.1
}

/// Whether a seed's history has a switch: if the images with its kind are there. Errors in routes by source are rare enough without
/// one that takes room and time.
#[must_use]
pub fn is_switched(seed: u64) -> bool {
    is_mixed(seed) && !is_sourced(seed)
}

/// Plays the history of a seed.
///
/// # Errors
/// The invariant that does not hold, with the history.
pub fn play(images: &Sets, seed: u64) -> Result<Outcome, Box<Failure>> {
    play_noting(images, seed, false).map(|(outcome, _)| outcome)
}

/// The same, with the journal of the node.
///
/// # Errors
/// As [`play`].
pub fn play_recorded(images: &Sets, seed: u64) -> Result<(Outcome, Journal), Box<Failure>> {
    play_noting(images, seed, true)
}

fn play_noting(images: &Sets, seed: u64, record: bool) -> Result<(Outcome, Journal), Box<Failure>> {
    let mut log = Vec::new();
    let played = catch_unwind(AssertUnwindSafe(|| {
        let mut sim = Sim::start(images.of(seed), seed, &mut log)?;
        if record {
            sim.node.keep_journal();
        }
        sim.play()
    }));
    let panicked = |panic: Box<dyn std::any::Any + Send>| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        Err(format!("it panicked: {}", text.unwrap_or_default()))
    };
    match played.unwrap_or_else(panicked) {
        Ok((outcome, journal)) => Ok((Outcome { history: log, ..outcome }, journal)),
        Err(what) => Err(Box::new(Failure { seed, what, history: log })),
    }
}

struct Sim<'l> {
    node: ByHand,
    random: Random,
    /// For networks' address families; `None` if all have IPv4.
    families: Option<Random>,
    /// For groups of next hops; `None` if networks have none.
    sharing: Option<Random>,
    /// For routes by source; `None` if networks have none.
    sourcing: Option<Random>,
    /// For the switch and its hosts; `None` if there is none.
    switching: Option<Random>,
    /// Copies and frames for which the node counted no room, when it was last quiet.
    full: u64,
    /// The images' names.
    images: Vec<&'static str>,
    world: World,
    ledger: Ledger,
    log: &'l mut Vec<String>,
    /// Turns for which each worker is stalled.
    stalled: [usize; WORKERS],
    had_card: bool,
    /// Whether networks have rate limits.
    limited: bool,
    /// Whether the card is drained at times.
    drains: bool,
    /// A network whose frames a move is made to lose.
    losing: Option<u8>,
    outcome: Outcome,
}

impl<'l> Sim<'l> {
    fn start(
        (images, names): (&Images, Vec<&'static str>),
        seed: u64,
        log: &'l mut Vec<String>,
    ) -> Result<Self, String> {
        let mut random = Random::new(seed);
        let limited = seed.is_multiple_of(LIMITED_SEEDS);
        let node = hand::start(images).map_err(|error| error.to_string())?;
        let mut families = is_mixed(seed).then(|| Random::new(seed));
        let image = if random.chance(30) { names[1] } else { names[0] };
        let mut world = World { image: Some(image), ..World::default() };
        let mut sharing = is_shared(seed).then(|| Random::new(!seed));
        let mut sourcing = is_sourced(seed).then(|| Random::new(!seed));
        for net in 1..=2 + random.below(3) as u8 {
            let shares = sharing.as_mut().and_then(shares);
            let new = Net { shares, ..new_net(&mut random, families.as_mut(), limited) };
            world.nets[usize::from(net) - 1] = Some(sourced(new, sourcing.as_mut()));
        }
        let mut ledger = Ledger::default();
        let mut switching = is_switched(seed).then(|| Random::new(seed.rotate_left(32)));
        if let Some(random) = &mut switching {
            world.switched = true;
            world.nets[usize::from(SWITCH) - 1] = Some(Net::switch(place(random)));
            ledger.hosts.set_up(random);
        }
        let mut sim = Self {
            node,
            random,
            families,
            sharing,
            sourcing,
            switching,
            full: 0,
            images: names,
            world,
            ledger,
            log,
            stalled: [0; WORKERS],
            had_card: false,
            limited,
            drains: seed.is_multiple_of(DRAINED_SEEDS)
                || is_switched(seed) && seed % SWITCH_DRAINED_SEEDS.0 == SWITCH_DRAINED_SEEDS.1,
            losing: None,
            outcome: Outcome::default(),
        };
        sim.say(format!("begins with {:?}", sim.world));
        Ok(sim)
    }

    fn play(mut self) -> Result<(Outcome, Journal), String> {
        self.run().map_err(|what| {
            let events = self.node.events();
            let latest = &events[events.len().saturating_sub(EVENTS_TOLD)..];
            format!("{what}\nwhat the node told last:\n  {}", latest.join("\n  "))
        })?;
        self.outcome.frames = (self.ledger.sent, self.ledger.left);
        Ok((self.outcome, self.node.take_journal()))
    }

    fn run(&mut self) -> Result<(), String> {
        self.apply("first documents")?;
        self.settle()?;
        for _ in 0..6 + self.random.below(STEPS_MAX - 5) {
            self.step()?;
            for _ in 0..self.random.below(TURNS_MAX) {
                self.turn()?;
            }
            check::always(&self.node.look())?;
            if self.random.chance(12) {
                self.settle()?;
            }
        }
        self.settle()
    }

    fn say(&mut self, what: String) {
        self.note(what.as_bytes());
        self.log.push(format!("{:>9} us {what}", self.node.time().now_ns() / US));
    }

    /// Adds bytes to the digest (FNV-1a).
    fn note(&mut self, bytes: &[u8]) {
        for byte in bytes.iter().chain(&self.node.time().now_ns().to_le_bytes()) {
            self.outcome.digest = (self.outcome.digest ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn step(&mut self) -> Result<(), String> {
        if self.drains && self.random.chance(20) {
            return self.change_drained();
        }
        if self.switching.as_mut().is_some_and(|random| random.chance(SWITCH_STEPS)) {
            return self.change_switch();
        }
        match self.random.below(100) {
            0..25 => self.change_a_network(),
            25..65 => self.migrate(),
            65..71 => self.load_image(),
            71..76 => self.change_scheduler(),
            76..84 => self.change_route(),
            84..86 => self.cut_a_port(),
            86..94 => {
                let worker = self.random.below(WORKERS);
                self.stalled[worker] = self.random.below(200);
                self.say(format!("worker {worker} stalls for {} turns", self.stalled[worker]));
                Ok(())
            }
            94..96 => self.change_card(),
            _ => {
                self.say("what failed is tried again".to_owned());
                self.node.retry();
                Ok(())
            }
        }
    }

    fn apply(&mut self, why: &str) -> Result<(), String> {
        self.say(why.to_owned());
        if self.world.image.is_some() && !self.node.has_card() {
            self.ledger.disturb_all(); // ports go to the card
        }
        self.node
            .apply(&self.world.documents(), true)
            .map_err(|problem| format!("documents are refused: {problem:?}"))
    }

    fn change_a_network(&mut self) -> Result<(), String> {
        if self.node.is_busy() {
            return Ok(()); // a change waits for the previous one
        }
        let net = 1 + self.random.below(usize::from(ROUTERS)) as u8;
        let Some(mut now) = self.world.net(net).cloned() else {
            let new = new_net(&mut self.random, self.families.as_mut(), self.limited);
            let new = Net { shares: self.sharing.as_mut().and_then(shares), ..new };
            let new = sourced(new, self.sourcing.as_mut());
            let why = format!("n{net} appears: {new:?}");
            self.ledger.set_up(net);
            // Frames of an earlier network with this name may still be in flight.
            let age = self.node.time().now_ns().to_le_bytes()[2];
            self.world.nets[usize::from(net) - 1] = Some(Net { age, ..new });
            return self.apply(&why);
        };
        let why = match self.random.below(10) {
            0 => {
                self.ledger.disturb(net);
                self.world.nets[usize::from(net) - 1] = None;
                return self.apply(&format!("n{net} goes"));
            }
            1 => {
                self.ledger.set_up(net);
                (now.ports, now.age) = (ports(&mut self.random), now.age.wrapping_add(1));
                format!("n{net} has other ports: {:?}", now.ports)
            }
            2..=4 => {
                now.place = place(&mut self.random);
                format!("n{net} is to be at {:?}", now.place)
            }
            5 => {
                self.ledger.disturb(net);
                now.limit = self.random.chance(50).then(|| (1000 + self.random.below(100_000) as u32, 8));
                format!("n{net} has limit {:?}", now.limit)
            }
            6 => {
                now.weight = 1 + self.random.below(9) as u16;
                format!("n{net} has weight {}", now.weight)
            }
            7 => {
                now.needs = self.random.below(400) as u16;
                now.low = self.random.chance(30);
                format!("n{net} needs {} Mbit/s, low: {}", now.needs, now.low)
            }
            _ => {
                // Without groups, a history is the one that it was before there were any.
                let shared = match &mut self.sharing {
                    Some(random) => random.chance(50).then(|| shares(random)),
                    None => None,
                };
                let ways = match (&mut self.sourcing, now.by_source) {
                    (Some(random), Some(_)) => random.chance(50).then(|| ways(random)),
                    _ => None,
                };
                match (shared, ways) {
                    (Some(shares), _) => {
                        now.shares = shares;
                        self.ledger.share(net);
                        format!("n{net} shares flows {shares:?}")
                    }
                    (None, Some(ways)) => {
                        now.by_source = Some(ways);
                        format!("n{net} routes by source {ways:?}")
                    }
                    (None, None) => {
                        now.extra = extra(&mut self.random);
                        format!("n{net} has {} more routes", now.extra)
                    }
                }
            }
        };
        self.world.nets[usize::from(net) - 1] = Some(now);
        self.ledger.reroute(net);
        self.apply(&why)
    }

    /// Hosts of the switch move, or its document changes.
    fn change_switch(&mut self) -> Result<(), String> {
        let Some(random) = &mut self.switching else { return Ok(()) };
        let what = random.below(10);
        if what < 4 {
            let (host, port) = (random.below(usize::from(HOSTS)) as u8, random.pick(&SWITCH_PORTS));
            self.ledger.hosts.relocate(host, port);
            self.say(format!("host {host} moves to p{port}"));
            return Ok(());
        }
        if self.node.is_busy() {
            return Ok(()); // a change waits for the previous one
        }
        let at = usize::from(SWITCH) - 1;
        let Some(now) = &mut self.world.nets[at] else {
            let age = self.node.time().now_ns().to_le_bytes()[2];
            let new = Net { age, ..Net::switch(place(random)) };
            let why = format!("n{SWITCH} appears: {new:?}");
            self.ledger.set_up(SWITCH);
            self.ledger.hosts.set_up(random);
            self.world.nets[at] = Some(new);
            return self.apply(&why);
        };
        let why = match what {
            4 => {
                self.ledger.set_up(SWITCH);
                self.ledger.hosts.set_up(random);
                self.world.nets[at] = None;
                format!("n{SWITCH} goes")
            }
            5..8 => {
                now.place = place(random);
                format!("n{SWITCH} is to be at {:?}", now.place)
            }
            8 => {
                now.weight = 1 + random.below(9) as u16;
                format!("n{SWITCH} has weight {}", now.weight)
            }
            _ => {
                (now.needs, now.low) = (random.below(400) as u16, random.chance(30));
                format!("n{SWITCH} needs {} Mbit/s, low: {}", now.needs, now.low)
            }
        };
        self.apply(&why)
    }

    fn migrate(&mut self) -> Result<(), String> {
        let nets = self.world.numbers();
        if nets.is_empty() {
            return Ok(());
        }
        let net = self.random.pick(&nets);
        // Mostly to the other place.
        let to = match self.node.is_on_card(&name(net)) == self.random.chance(92) {
            true => SubstrateName::Soft,
            false => SubstrateName::Card,
        };
        let fail = match self.random.below(100) {
            0..55 => None,
            55..65 => Some(MigrationStep::Prepare),
            65..75 => Some(MigrationStep::Aside),
            75..84 => Some(MigrationStep::Switch),
            84..94 => Some(MigrationStep::Drain),
            94..98 => Some(MigrationStep::Packets),
            _ => Some(MigrationStep::Card),
        };
        let watch_ms = self.random.below(3) as u32;
        let load_image = self.random.chance(30);
        let request = MigrateRequest { watch_ms, fail, load_image, ..MigrateRequest::new(to) };
        let answer = self.node.migrate(&name(net), &request);
        if answer.is_ok() && fail == Some(MigrationStep::Packets) {
            self.ledger.disturb(net);
            self.losing = Some(net);
        }
        if answer.is_ok() && net == SWITCH && to == SubstrateName::Soft && fail == Some(MigrationStep::Drain)
        {
            // A switch that has to return to the card after software has taken over comes there without what it has learnt.
            self.ledger.hosts.doubt();
        }
        if answer.is_ok() && fail == Some(MigrationStep::Card) {
            (1..=NETS).for_each(|net| self.ledger.limits.forget(net)); // their meters' debts are lost with the card
        }
        let refused = answer.err().map(|problem| problem.detail);
        self.say(format!("n{net} is to move to {}, fails: {fail:?}, refused: {refused:?}", to.name()));
        Ok(())
    }

    fn load_image(&mut self) -> Result<(), String> {
        let image = self.random.pick(&self.images);
        let refused = self.node.load_image(image).err().map(|problem| problem.detail);
        self.say(format!("image {image} is to be loaded, refused: {refused:?}"));
        Ok(())
    }

    fn change_scheduler(&mut self) -> Result<(), String> {
        if self.node.is_busy() {
            return Ok(());
        }
        let kind = if self.random.chance(50) { "greedy" } else { "exact" };
        let mbit = 100 + 100 * self.random.below(6) as u16;
        self.world.scheduler = self.random.chance(60).then_some((kind, mbit));
        self.apply(&format!("the scheduler is {:?}", self.world.scheduler))
    }

    fn change_route(&mut self) -> Result<(), String> {
        let nets: Vec<u8> = self.world.numbers().into_iter().filter(|net| *net != SWITCH).collect();
        if nets.is_empty() {
            return Ok(());
        }
        let net = self.random.pick(&nets);
        let Some((ports, families)) = self.world.net(net).map(|net| (net.ports, net.families)) else {
            return Ok(());
        };
        let part = self.random.below(8) as u8;
        let port = ports[self.random.below(2)];
        let family = self.family_of(families);
        let via = self.random.chance(60).then(|| neighbour(family, net, port));
        self.ledger.reroute(net);
        let prefix = family.prefix(18, Some(part));
        let heard = self.node.route(&name(net), prefix, via);
        self.say(format!("n{net} learns {prefix} by {via:?}: {heard}"));
        Ok(())
    }

    fn cut_a_port(&mut self) -> Result<(), String> {
        let ports = if self.switching.is_some() { PORTS.len() } else { usize::from(ROUTER_PORTS) };
        let port = self.random.below(ports);
        self.say(format!("p{port} breaks"));
        self.ledger.disturb_all();
        self.node.cut(PORTS[port]);
        Ok(())
    }

    fn change_card(&mut self) -> Result<(), String> {
        if self.node.is_busy() {
            return Ok(());
        }
        self.ledger.disturb_all();
        self.world.image = match self.world.image {
            Some(_) => None,
            None => Some(self.random.pick(&self.images)),
        };
        self.world.drained = false;
        self.apply(&format!("the card is to be {:?}", self.world.image))
    }

    fn change_drained(&mut self) -> Result<(), String> {
        if self.node.is_busy() || self.world.image.is_none() {
            return Ok(());
        }
        self.outcome.drains += 1;
        self.world.drained = !self.world.drained;
        self.world.says_drained = true;
        let applied = self.apply(&format!("the card is to be drained: {}", self.world.drained));
        self.world.says_drained = false;
        applied
    }

    /// Gives a random part a turn.
    fn turn(&mut self) -> Result<(), String> {
        let ns = US + self.random.word() % (10 * US);
        self.node.time().pass(ns);
        match self.random.below(16) {
            0..6 => _ = self.node.step_card(),
            6..10 => self.worker_turn(),
            10..12 => _ = self.node.step_node(),
            12 => _ = self.node.step_job(),
            13 => _ = self.node.step_kernel(),
            14 => self.traffic(),
            _ => {
                self.traffic();
                self.hostile();
            }
        }
        for net in 1..=NETS {
            self.ledger.limits.is_at(net, self.node.is_on_card(&name(net)));
        }
        self.collect()?;
        self.answers()
    }

    fn worker_turn(&mut self) {
        let worker = self.random.below(WORKERS);
        match &mut self.stalled[worker] {
            0 => _ = self.node.step_worker(worker),
            turns => *turns -= 1,
        }
    }

    /// Sends some frames of a network.
    fn traffic(&mut self) {
        let nets = self.world.numbers();
        if nets.is_empty() {
            return;
        }
        let hosts_talk = self.switching.as_mut().is_some_and(|random| random.chance(HOSTS_TALK));
        let number = if hosts_talk { SWITCH } else { self.random.pick(&nets) };
        if !self.node.runs(&name(number)) {
            return; // nothing is guaranteed before it is set up
        }
        let Some(net) = self.world.net(number) else { return };
        if net.is_switch() {
            let age = net.age;
            self.switch_traffic(age);
            return;
        }
        let (ports, age, families) = (net.ports, net.age, net.families);
        let mut flow = self.random.below(usize::from(FLOWS)) as u8;
        if let Some(random) = self.sharing.as_mut().filter(|_| net.shares.is_some())
            && random.chance(50)
        {
            flow = SHARED + random.below(usize::from(SHARED_FLOWS)) as u8;
        }
        if let Some(random) = self.sourcing.as_mut().filter(|_| net.by_source.is_some())
            && random.chance(50)
        {
            flow = SOURCED + random.below(usize::from(SOURCED_FLOWS)) as u8;
        }
        let many = if self.limited { 30 } else { 10 };
        for _ in 0..1 + self.random.below(many) {
            if self.ledger.inside(number) >= INSIDE_MAX {
                if self.limited && self.world.net(number).is_some_and(|net| net.limit.is_some()) {
                    self.ledger.forgo(number);
                }
                return;
            }
            let tag = self.ledger.next(number, age, flow);
            let port = if flow == 1 { ports[1] } else { ports[0] };
            let len = if self.random.chance(10) { 1514 } else { 60 + self.random.below(140) };
            let from = self.random.word().to_le_bytes();
            // All packets of a flow to a group have the same addresses.
            let family = families.nth(if flow < SHARED { tag.number } else { flow.into() });
            let to = match flow {
                0 => family.address(16, [from[0], from[1]]),
                1 => family.address(17, [from[0], from[1]]),
                SOURCED.. => family.address(20, [from[0], from[1]]),
                SHARED.. => family.address(19, [flow, 0]),
                _ => family.address(18, [from[0] % 8, from[1]]),
            };
            let sent = if flow == CONTROL {
                let macs = [neighbour_mac(number, port), mac(number, port)];
                self.node.send_control(&name(number), 0, &tagged(macs, to, TTL, tag, len))
            } else {
                let macs = [mac(number, port), neighbour_mac(number, port)];
                let frame = tagged(macs, to, TTL, tag, len);
                if self.switching.is_some() {
                    // Where the router is not yet, or no more, its frames are the switch's.
                    self.ledger.hosts.stray(port, &frame, Some(number));
                }
                self.node.send(PORTS[usize::from(port)], &frame)
            };
            if sent {
                self.ledger.sent(tag);
            }
        }
    }

    /// A host of the switch sends some frames to another host, to nobody, or to everybody.
    fn switch_traffic(&mut self, age: u8) {
        let Some(random) = &mut self.switching else { return };
        let from = random.below(usize::from(HOSTS)) as u8;
        let (to, many) = match random.below(8) {
            0 => (NOBODY, 3),
            1 => (EVERYBODY, 3),
            _ => ((from + 1 + random.below(usize::from(HOSTS) - 1) as u8) % HOSTS, 10),
        };
        for _ in 0..1 + random.below(many) {
            let len = if random.chance(10) { 1514 } else { 60 + random.below(140) };
            if self.ledger.hosts.inside() < INSIDE_MAX {
                send_switched(&self.node, &mut self.ledger, (age, from, to), len);
            }
        }
    }

    /// Hosts of the switch that it may not know send a frame, each after the other. Returns them.
    fn introduce(&mut self) -> Result<Vec<u8>, String> {
        let Some(age) = self.world.net(SWITCH).map(|net| net.age) else { return Ok(Vec::new()) };
        let hosts = self.ledger.hosts.unknown();
        for host in &hosts {
            send_switched(&self.node, &mut self.ledger, (age, *host, NOBODY), 60);
            for _ in 0..INTRODUCTION_PASSES {
                hand::pass(&mut self.node);
            }
            self.collect()?;
        }
        Ok(hosts)
    }

    /// Copies and frames for which the node has counted no room since it was last quiet: those of the switch, and those to all
    /// networks of a port.
    fn newly_full(&mut self) -> u64 {
        let stats = self.node.stats();
        let networks = stats.networks.iter().filter(|one| one.network == name(SWITCH));
        let of_networks: u64 = networks.flat_map(|one| one.losses.values()).sum();
        let of_ports: u64 = stats.ports.iter().filter_map(|port| port.losses.get("flood_full")).sum();
        let before = std::mem::replace(&mut self.full, of_networks + of_ports);
        // A flood that its port could not copy is missing at two ports.
        2 * self.full.saturating_sub(before)
    }

    /// A family of a network.
    fn family_of(&mut self, families: Families) -> Family {
        match families {
            Families::Only(family) => family,
            Families::Sliced => Family::Four,
            Families::Both | Families::Frames => self.random.pick(families.list()),
        }
    }

    /// Sends an invalid frame.
    fn hostile(&mut self) {
        let mut port = self.random.below(usize::from(ROUTER_PORTS)) as u8;
        let net = 1 + self.random.below(usize::from(ROUTERS)) as u8;
        // A switch forwards it. The report of a move takes frames with the same headers for one flow, and what arrives at two ports is in
        // no order, so each port has its own.
        let age = if self.switching.is_some() { 0xff - port } else { 0xff };
        let tag = Tag { net, age, flow: RESTLESS, number: u32::MAX };
        let (to, from) = (mac(net, port), neighbour_mac(net, port));
        let families = self.world.net(net).map_or(Families::Only(Family::Four), |net| net.families);
        let family = self.family_of(families);
        let mut frame = tagged([to, from], family.address(16, [0, 1]), 1, tag, 60);
        match self.random.below(8) {
            0 => {} // its TTL expires
            1 => frame[..6].copy_from_slice(&[2, 9, 9, 9, 9, 9]),
            2 => frame[..6].copy_from_slice(&[0xff; 6]),
            3 => frame[6..12].copy_from_slice(&to),
            // The header's checksum, or the length: longer than the frame.
            4 => frame[if family == Family::Four { 24 } else { 18 }] ^= 0xff,
            5 => frame.truncate(10 + self.random.below(50)),
            6 => {
                // It looks like a fence inside the card. This is its header, so a switch gets it by one port only.
                if self.switching.is_some() && SWITCH_PORTS.contains(&port) {
                    port = SWITCH_PORTS[0];
                }
                frame[..16].copy_from_slice(b"hueplane fence\0\0");
            }
            _ => {
                let bytes = self.random.word().to_le_bytes();
                frame[12..20].copy_from_slice(&bytes);
            }
        }
        if self.switching.is_some() {
            self.ledger.hosts.stray(port, &frame, None);
        }
        let _ = self.node.send(PORTS[usize::from(port)], &frame);
    }

    /// Collects the frames that left.
    fn collect(&mut self) -> Result<(), String> {
        for (port, interface) in (0u8..).zip(PORTS) {
            while let Some(bytes) = self.node.receive(interface) {
                self.note(&[port]);
                self.note(&bytes);
                if self.ledger.takes_stray(port, &bytes) {
                    continue;
                }
                match frame::read(&bytes).map_err(|what| format!("a frame at p{port}: {what}"))? {
                    Some(left) => {
                        self.ledger.left(&self.world, port, &left)?;
                        self.within_limit(left.tag)?;
                    }
                    None => return Err(format!("a frame that nobody sent left by p{port}: {bytes:02x?}")),
                }
            }
        }
        for net in 1..=NETS {
            for vport in 0..if net == SWITCH { SWITCH_PORTS.len() } else { 2 } {
                while let Some(bytes) = self.node.receive_control(&name(net), vport) {
                    self.note(&bytes);
                    let own = bytes[..5] == mac(net, 0)[..5];
                    if !own && bytes[0] & 1 == 0 {
                        return Err(format!(
                            "the control plane of n{net} got another network's frame: {bytes:02x?}"
                        ));
                    }
                }
            }
        }
        Ok(())
    }

    /// Checks that the rate limit of its network allows a frame that left.
    fn within_limit(&mut self, tag: Tag) -> Result<(), String> {
        match self.world.net(tag.net).and_then(|net| net.limit) {
            Some(limit) if tag.flow != CONTROL => {
                let now_ns = self.node.time().now_ns();
                self.ledger.limits.passed(tag.net, limit, now_ns, || {
                    let half = [Some(Seated::Coming), Some(Seated::Leaving)];
                    let look = self.node.look();
                    look.networks.iter().any(|one| one.name == name(tag.net) && half.contains(&one.seated))
                })
            }
            _ => Ok(()),
        }
    }

    /// Collects the answers to requests.
    fn answers(&mut self) -> Result<(), String> {
        let has_card = self.node.has_card();
        if self.had_card && !has_card {
            self.say("there is no card any more".to_owned());
            self.outcome.cards_failed += 1;
            self.ledger.disturb_all();
        }
        self.had_card = has_card;
        let Some(answer) = self.node.answer() else { return Ok(()) };
        match answer {
            Answer::Moved(network, result) => match *result {
                Ok(moved) => {
                    self.outcome.moves.0 += 1;
                    let to = moved.to.name();
                    let (trouble, report) = (&moved.trouble, moved.verdict());
                    self.say(format!("{network} has moved to {to}, trouble: {trouble:?}, {report}"));
                    if self.world.drained && moved.to == SubstrateName::Card {
                        return Err(format!("{network} has moved to a drained card"));
                    }
                    let net = number(&network);
                    let losing = self.losing.take().is_some();
                    if let Some(net) = self.world.net_mut(net) {
                        // A move changes the document.
                        net.place = if moved.to == SubstrateName::Card { Place::Card } else { Place::Soft };
                    }
                    if let Some(image) = &moved.image {
                        self.outcome.images += 1;
                        self.world.image = self.image(image);
                    }
                    let clean = moved.is_clean() && moved.trouble.is_none();
                    if !clean && !losing && self.ledger.is_calm(net) {
                        return Err(format!("the move's report says what did not happen: {moved:?}"));
                    }
                }
                Err(problem) => {
                    // An image may still have been loaded for it.
                    let image = self.node.look().card.map(|card| card.image);
                    if let Some(image) = image.and_then(|image| self.image(&image)) {
                        self.world.image = Some(image);
                    }
                    self.losing = None;
                    self.outcome.moves.1 += 1;
                    self.ledger.limits.turned_back(number(&network));
                    self.say(format!("{network} has not moved: {}", problem.detail));
                }
            },
            Answer::Loaded(image, Ok(loaded)) => {
                self.outcome.images += 1;
                let on: Vec<&str> = loaded
                    .networks
                    .iter()
                    .filter(|one| one.substrate == "card")
                    .map(|one| one.network.as_str())
                    .collect();
                self.say(format!("image {image} is loaded; on the card: {on:?}"));
                self.world.image = self.image(&image);
                check::loaded(&self.node.look(), &loaded, &self.world)?;
            }
            Answer::Loaded(image, Err(problem)) => {
                self.say(format!("image {image} is not loaded: {}", problem.detail));
            }
        }
        Ok(())
    }

    /// The image of this name.
    fn image(&self, name: &str) -> Option<&'static str> {
        self.images.iter().copied().find(|image| *image == name)
    }

    /// Waits until nothing moves.
    fn wait(&mut self) -> Result<(), String> {
        self.stalled = [0; WORKERS];
        let mut idle = 0;
        for pass in 0.. {
            let busy = hand::pass(&mut self.node);
            for net in 1..=NETS {
                self.ledger.limits.is_at(net, self.node.is_on_card(&name(net)));
            }
            self.collect()?;
            self.answers()?;
            idle = if busy { 0 } else { idle + 1 };
            if idle == IDLE_PASSES {
                self.node.retry();
            } else if idle > 2 * IDLE_PASSES {
                break;
            }
            if pass == PASSES_MAX {
                return Err(format!("it does not come to rest: {:?}", self.node.look()));
            }
        }
        Ok(())
    }

    /// Waits until nothing moves, and makes all checks.
    fn settle(&mut self) -> Result<(), String> {
        self.wait()?;
        let introduced = self.introduce()?;
        if !introduced.is_empty() {
            self.wait()?;
        }
        let look = self.node.look();
        check::always(&look)?;
        check::quiet(&look, &self.world)?;
        let world = &self.world;
        self.ledger.settle(|net| world.net(net).is_some_and(|net| net.limit.is_none()))?;
        if self.switching.is_some() {
            let full = self.newly_full();
            self.outcome.add_switched(self.ledger.hosts.counts);
            self.ledger.hosts.settle(&introduced, full)?;
        }
        self.outcome.kinds.extend(self.world.nets.iter().flatten().map(|net| net.families.kind()));
        self.ledger.limits.settle(self.node.time().now_ns());
        self.outcome.looks += 1;
        let on_card: Vec<&str> =
            look.networks.iter().filter(|one| one.on_card).map(|one| one.name.as_str()).collect();
        self.say(format!("all is quiet; on the card: {on_card:?}"));
        Ok(())
    }
}

fn new_net(random: &mut Random, families: Option<&mut Random>, limited: bool) -> Net {
    let limit = limited && random.chance(70);
    let families = families.map_or(Families::Only(Family::Four), |random| {
        let all = Families::of_routers();
        // The last is chosen twice as often.
        all[random.below(all.len() + 1).min(all.len() - 1)]
    });
    Net {
        families,
        ports: ports(random),
        age: 0,
        place: place(random),
        limit: limit.then(|| (1 + random.below(LIMITED_RATE) as u32, LIMITED_BURST)),
        weight: 1,
        extra: extra(random),
        shares: None,
        by_source: None,
        needs: random.below(200) as u16,
        low: false,
    }
}

/// A host of the switch, in an incarnation, sends a frame to another.
fn send_switched(node: &ByHand, ledger: &mut Ledger, (age, from, to): (u8, u8, u8), len: usize) {
    let (tag, port, macs) = ledger.hosts.next(age, from, to);
    let frame = tagged(macs, Family::Four.address(16, [from, to]), TTL, tag, len);
    if node.send(PORTS[usize::from(port)], &frame) {
        ledger.switched(tag, port);
    }
}

/// Weights of a group of two next hops, sometimes none.
fn shares(random: &mut Random) -> Option<[u8; 2]> {
    let weight = |random: &mut Random| 1 + random.below(4) as u8;
    random.chance(75).then(|| [weight(random), weight(random)])
}

/// A network with routes by source, in histories that have them. Kind `dual` has none, and a network with slices becomes one of kind
/// `ipv4`.
fn sourced(net: Net, random: Option<&mut Random>) -> Net {
    let Some(random) = random else { return net };
    match net.families {
        Families::Both | Families::Frames => net,
        Families::Sliced => {
            Net { families: Families::Only(Family::Four), by_source: Some(ways(random)), ..net }
        }
        Families::Only(_) => Net { by_source: Some(ways(random)), ..net },
    }
}

/// For each source, whether it has a route of its own.
fn ways(random: &mut Random) -> [bool; SOURCED_FLOWS as usize] {
    std::array::from_fn(|_| random.chance(50))
}

/// Two different ports, rarely one that is not on the card.
fn ports(random: &mut Random) -> [u8; 2] {
    let of = if random.chance(15) { 4 } else { 3 };
    let first = random.below(of) as u8;
    let second = (usize::from(first) + 1 + random.below(of - 1)) % of;
    [first, second as u8]
}

fn place(random: &mut Random) -> Place {
    match random.below(4) {
        0 => Place::Soft,
        1 => Place::Card,
        _ => Place::Auto,
    }
}

/// A number of additional routes: few, or more than a ternary plane has rows for.
fn extra(random: &mut Random) -> u8 {
    if random.chance(15) { 40 } else { random.below(6) as u8 }
}
