//! Several routers of PW-OSPF in one thread and simulated time: random topologies with links of two and more routers, losses,
//! cuts that are reported and cuts that are not, and routers that start again. A seed gives the same history every time. At
//! the end, nothing is lost for a while; then routes are compared with an oracle that knows the topology, and databases with
//! what each router says of itself.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::net::Ipv4Addr;
use std::time::Duration;

use hue_routing::pwospf::packet::{ALL_ROUTERS, Body, Packet, RouterId};
use hue_routing::pwospf::{Config, Interface, Router};
use hue_tables::{Prefix, Prefix4};

/// Hellos in seconds.
pub const HELLO_S: u16 = 2;
/// LSUs in seconds.
pub const LSU_S: u16 = 10;

/// Random numbers (SplitMix64).
pub struct Random(pub u64);

impl Random {
    /// A number below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % end
    }

    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

/// Whether a router is on a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wire {
    /// Frames pass.
    Up,
    /// Frames vanish, and the router does not know.
    Cut,
    /// The router knows: it does not have the interface.
    Gone,
}

/// When a packet arrives, its number, router and link, and its bytes.
type Arrival = (Duration, u64, usize, usize, Vec<u8>);

/// The routers and their links.
pub struct World {
    pub now: Duration,
    pub routers: Vec<Router>,
    /// By router and link.
    pub wires: BTreeMap<(usize, usize), Wire>,
    delays_ms: Vec<u64>,
    queue: BinaryHeap<Reverse<Arrival>>,
    sent: u64,
    pub loss_percent: u64,
    /// A router that does not receive LSUs: a planted fault.
    pub deaf: Option<usize>,
    random: Random,
}

pub fn id(router: usize) -> RouterId {
    RouterId::new(Ipv4Addr::new(9, 9, 9, router as u8 + 1)).unwrap()
}

pub fn prefix(link: usize) -> Prefix4 {
    Prefix::new(Ipv4Addr::new(10, 0, link as u8, 0).to_bits(), 24).unwrap()
}

/// The subnet behind a router, without other routers.
pub fn stub(router: usize) -> Prefix4 {
    Prefix::new(Ipv4Addr::new(192, 168, router as u8, 0).to_bits(), 24).unwrap()
}

fn address(router: usize, link: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, link as u8, router as u8 + 1)
}

/// The links of a random topology in which each of so many routers can reach every other one.
pub fn topology(random: &mut Random, routers: usize) -> Vec<Vec<usize>> {
    let mut links: Vec<Vec<usize>> =
        (1..routers).map(|router| vec![router, random.below(router as u64) as usize]).collect();
    for _ in 0..random.below(routers as u64) {
        let (a, b) = (random.below(routers as u64) as usize, random.below(routers as u64) as usize);
        if a != b {
            links.push(vec![a, b]);
        }
    }
    if random.chance(50) {
        // A link of several routers.
        let many: BTreeSet<usize> = (0..4).map(|_| random.below(routers as u64) as usize).collect();
        links.push(many.into_iter().collect());
    }
    links
}

/// The number that an interface of a router has for the stub; links have their own number and 1.
const STUB: u32 = 1000;

impl World {
    /// Routers on these links. They start at once.
    pub fn new(seed: u64, links: &[Vec<usize>]) -> Self {
        let count = links.iter().flatten().max().unwrap() + 1;
        let mut random = Random(seed);
        let mut world = Self {
            now: Duration::from_secs(1),
            routers: Vec::new(),
            wires: BTreeMap::new(),
            delays_ms: links.iter().map(|_| 1 + random.below(40)).collect(),
            queue: BinaryHeap::new(),
            sent: 0,
            loss_percent: 0,
            deaf: None,
            random,
        };
        for (link, routers) in links.iter().enumerate() {
            world.wires.extend(routers.iter().map(|router| ((*router, link), Wire::Up)));
        }
        for router in 0..count {
            world.routers.push(Router::new(world.now, config(router, 100)));
            world.configure(router);
        }
        world
    }

    /// A random topology in which every router can reach every other one.
    pub fn random(seed: u64) -> Self {
        let mut random = Random(seed ^ 0x7077);
        let count = 2 + random.below(8) as usize;
        Self::new(seed, &topology(&mut random, count))
    }

    fn configure(&mut self, router: usize) {
        let mine = self.wires.iter().filter(|((one, _), wire)| *one == router && **wire != Wire::Gone);
        let mut interfaces: Vec<Interface> = mine
            .map(|((_, link), _)| Interface {
                link: *link as u32 + 1,
                name: format!("l{link}"),
                address: address(router, *link),
                prefix: prefix(*link),
                speaks: true,
            })
            .collect();
        let prefix = stub(router);
        let address = Ipv4Addr::from_bits(prefix.addr() + 1);
        interfaces.push(Interface { link: STUB, name: "stub".into(), address, prefix, speaks: true });
        self.routers[router].set_interfaces(self.now, interfaces);
        self.send(router);
    }

    pub fn set_wire(&mut self, router: usize, link: usize, wire: Wire) {
        self.wires.insert((router, link), wire);
        self.configure(router);
    }

    /// A router ends without a word and starts again.
    pub fn restart(&mut self, router: usize, sequence: u16) {
        self.routers[router] = Router::new(self.now, config(router, sequence));
        self.configure(router);
    }

    /// Puts the packets that a router has sent on their links.
    pub fn send(&mut self, router: usize) {
        for sent in self.routers[router].take().packets {
            if sent.link == STUB {
                continue;
            }
            let link = sent.link as usize - 1;
            assert_eq!(sent.source, address(router, link));
            if self.wires[&(router, link)] != Wire::Up {
                continue;
            }
            let mut bytes = vec![0x45, 0, 0, 0, 0, 0, 0, 0, 1, 89, 0, 0];
            bytes.extend(sent.source.octets());
            bytes.extend(sent.destination.octets());
            bytes.extend(&sent.bytes);
            let others: Vec<usize> = self
                .wires
                .keys()
                .filter(|(one, on)| *on == link && *one != router)
                .map(|(one, _)| *one)
                .collect();
            for other in others {
                let is_for = sent.destination == ALL_ROUTERS || sent.destination == address(other, link);
                if !is_for || self.random.chance(self.loss_percent) {
                    continue;
                }
                // Links keep the order of packets.
                self.sent += 1;
                let at = self.now + Duration::from_millis(self.delays_ms[link]);
                self.queue.push(Reverse((at, self.sent, other, link, bytes.clone())));
            }
        }
    }

    /// Runs for some time.
    pub fn run(&mut self, for_ms: u64) {
        let end = self.now + Duration::from_millis(for_ms);
        loop {
            let due = self.routers.iter().map(Router::due).min().unwrap_or(end);
            let arrival = self.queue.peek().map_or(end, |Reverse((at, ..))| *at);
            let next = due.min(arrival);
            if next >= end {
                break;
            }
            self.now = self.now.max(next);
            if arrival <= due {
                let Some(Reverse((_, _, router, link, bytes))) = self.queue.pop() else { break };
                let is_lsu =
                    Packet::read(&bytes[20..]).is_ok_and(|packet| matches!(packet.body, Body::Lsu(_)));
                if self.wires[&(router, link)] == Wire::Up && !(is_lsu && self.deaf == Some(router)) {
                    self.routers[router].receive(self.now, link as u32 + 1, &bytes);
                    self.send(router);
                }
            } else {
                for router in 0..self.routers.len() {
                    if self.routers[router].due() <= self.now {
                        self.routers[router].tick(self.now);
                        assert!(self.routers[router].due() > self.now, "a router that is always due");
                        self.send(router);
                    }
                }
            }
        }
        self.now = end;
    }

    /// Random cuts, repairs, losses and restarts.
    pub fn trouble(&mut self, steps: u64) {
        for _ in 0..steps {
            self.loss_percent = self.random.below(40);
            let wires: Vec<(usize, usize)> = self.wires.keys().copied().collect();
            let (router, link) = wires[self.random.below(wires.len() as u64) as usize];
            match self.random.below(10) {
                0..=2 => self.set_wire(router, link, Wire::Cut),
                3 | 4 => self.set_wire(router, link, Wire::Gone),
                5..=7 => self.set_wire(router, link, Wire::Up),
                8 => self.restart(router, 100 + self.now.as_secs() as u16),
                // It does not know its old number.
                _ => self.restart(router, 0),
            }
            let pause = self.random.below(15_000);
            self.run(pause);
        }
        self.loss_percent = 0;
    }

    /// Long enough for everything that is wrong to expire and to be learnt again.
    pub fn calm(&mut self) {
        self.run(1000 * u64::from(4 * LSU_S + 4 * HELLO_S));
        // LSUs that are on their way arrive.
        while !self.queue.is_empty() {
            self.run(10);
        }
    }

    fn adjacent(&self, a: usize, b: usize) -> bool {
        let up = |router, link| self.wires.get(&(router, link)) == Some(&Wire::Up);
        a != b && (0..self.delays_ms.len()).any(|link| up(a, link) && up(b, link))
    }

    /// Distances between all routers (Floyd and Warshall).
    pub fn distances(&self) -> Vec<Vec<Option<u32>>> {
        let count = self.routers.len();
        let mut far = vec![vec![None; count]; count];
        for (a, row) in far.iter_mut().enumerate() {
            for (b, one) in row.iter_mut().enumerate() {
                *one = if a == b { Some(0) } else { self.adjacent(a, b).then_some(1) };
            }
        }
        for via in 0..count {
            for a in 0..count {
                for b in 0..count {
                    if let (Some(x), Some(y)) = (far[a][via], far[via][b]) {
                        far[a][b] = Some(far[a][b].map_or(x + y, |known: u32| known.min(x + y)));
                    }
                }
            }
        }
        far
    }

    fn attached(&self, router: usize) -> BTreeSet<Prefix4> {
        let mine = self.wires.iter().filter(|((one, _), wire)| *one == router && **wire != Wire::Gone);
        mine.map(|((_, link), _)| prefix(*link)).chain([stub(router)]).collect()
    }

    /// The router that has an address.
    fn owner(&self, address: Ipv4Addr) -> usize {
        usize::from(address.octets()[3]) - 1
    }

    /// What differs from the oracle.
    pub fn wrong(&self) -> Option<String> {
        let far = self.distances();
        for (own, router) in self.routers.iter().enumerate() {
            let mut expected = BTreeMap::new();
            for (other, hops) in far[own].iter().enumerate() {
                let Some(hops) = hops.filter(|hops| *hops > 0) else { continue };
                for prefix in self.attached(other).difference(&self.attached(own)) {
                    let best = expected.entry(*prefix).or_insert(hops);
                    *best = hops.min(*best);
                }
            }
            let got: BTreeMap<_, _> =
                router.routes().iter().map(|(prefix, route)| (*prefix, route.hops)).collect();
            if got != expected {
                return Some(format!("router {own} has routes {got:?}, expected {expected:?}"));
            }
            for (prefix, route) in router.routes() {
                let (next, last) = (self.owner(route.next.via), self.owner(route.router.get()));
                if !self.adjacent(own, next) || far[next][last] != Some(route.hops - 1) {
                    return Some(format!("router {own} sends {prefix} to {next}: {route:?}"));
                }
            }
            let component: Vec<usize> = (0..self.routers.len())
                .filter(|other| far[own][*other].is_some_and(|hops| hops > 0))
                .collect();
            let known: BTreeMap<_, _> =
                router.database().map(|(id, entry)| (id, (entry.sequence, entry.links.clone()))).collect();
            let said: BTreeMap<_, _> = component
                .iter()
                .map(|other| {
                    (id(*other), (self.routers[*other].sequence(), self.routers[*other].own_links()))
                })
                .collect();
            if known != said {
                return Some(format!("router {own} knows {known:?}, expected {said:?}"));
            }
            let counters = router.counters();
            if counters.received != counters.hellos + counters.lsus + counters.drops.sum() {
                return Some(format!("router {own}: counters do not add up: {counters:?}"));
            }
        }
        None
    }
}

pub fn config(router: usize, sequence: u16) -> Config {
    Config {
        router: id(router),
        area: Ipv4Addr::UNSPECIFIED,
        hello_interval_s: HELLO_S,
        lsu_interval_s: LSU_S,
        advertised: Vec::new(),
        any_source: false,
        sequence,
    }
}

#[test]
fn routes_are_the_oracles_after_random_histories() {
    for seed in 0..if hue_testdata::full() { 2_000 } else { 120 } {
        let mut world = World::random(seed);
        world.trouble(4 + seed % 16);
        world.calm();
        assert_eq!(world.wrong(), None, "seed {seed}");
    }
}

#[test]
fn a_router_that_misses_lsus_is_noticed() {
    for seed in 0..8 {
        let mut world = World::random(seed);
        world.deaf = Some(1);
        world.calm();
        assert!(world.wrong().is_some(), "seed {seed}");
    }
}

/// A circle of four routers.
fn circle() -> World {
    let mut world = World::new(7, &[vec![0, 1], vec![1, 2], vec![2, 3], vec![3, 0]]);
    // Until the first LSUs, and a little longer.
    world.run(1000 * u64::from(HELLO_S) + 3_000);
    assert_eq!(world.wrong(), None);
    world
}

#[test]
fn a_reported_cut_needs_one_flood_and_a_silent_one_three_hellos() {
    let mut world = circle();
    world.run(5_000);
    let floods =
        |world: &World| world.routers.iter().map(|one| one.counters().originated).collect::<Vec<_>>();
    let before = floods(&world);
    world.set_wire(0, 0, Wire::Gone);
    world.run(400);
    let routes =
        |world: &World, router: usize, to| world.routers[router].routes().get(&to).map(|route| route.hops);
    assert_eq!(routes(&world, 0, stub(1)), Some(3));
    assert_eq!(routes(&world, 2, stub(0)), Some(2));
    let after = floods(&world);
    // The routers' own schedule can add one.
    assert!(after[0] - before[0] <= 2, "{before:?} {after:?}");
    assert_eq!(
        after[0] - before[0] + after[1] - before[1],
        1,
        "router 1 does not know yet: {before:?} {after:?}"
    );
    world.set_wire(0, 0, Wire::Up);
    world.run(2_000);
    assert_eq!(routes(&world, 0, stub(1)), Some(1));
    world.set_wire(0, 0, Wire::Cut);
    world.run(1000 * u64::from(2 * HELLO_S));
    assert_eq!(routes(&world, 0, stub(1)), Some(1), "two hellos may get lost");
    world.run(1000 * u64::from(HELLO_S) + 1_500);
    assert_eq!(routes(&world, 0, stub(1)), Some(3));
    assert_eq!(world.wrong(), None);
}

#[test]
fn a_restart_within_the_neighbours_patience_changes_no_route_of_others() {
    let mut world = circle();
    let before: Vec<_> = world.routers.iter().map(|one| one.routes().clone()).collect();
    world.run(1_700);
    world.restart(1, 100 + world.now.as_secs() as u16);
    for _ in 0..300 {
        world.run(100);
        for other in [0, 2, 3] {
            assert_eq!(world.routers[other].routes(), &before[other], "at {:?}", world.now);
        }
    }
    assert!(world.now > world.routers[1].complete_at());
    assert_eq!(world.routers[1].routes(), &before[1]);
    assert_eq!(world.wrong(), None);
}

#[test]
fn a_router_that_says_good_bye_is_left_at_once() {
    let mut world = circle();
    let now = world.now;
    world.routers[1].end(now);
    world.send(1);
    world.run(400);
    assert_eq!(world.routers[0].routes()[&prefix(1)].hops, 3 - 1);
    assert!(!world.routers[0].routes().contains_key(&stub(1)), "{:?}", world.routers[0].routes());
}

#[test]
fn the_newest_of_two_lives_wins_whatever_its_number() {
    let mut world = circle();
    world.run(60_000);
    for sequence in [0, 99, 0x7fff, 0x8000, 0xfffe] {
        world.restart(2, sequence);
        world.calm();
        assert_eq!(world.wrong(), None, "{sequence:#x}");
    }
    // Numbers wrap on the way.
    world.restart(2, 0xfffd);
    world.run(1000 * u64::from(LSU_S) * 8);
    assert_eq!(world.wrong(), None);
    assert!(world.routers[2].sequence() < 100, "{}", world.routers[2].sequence());
}

/// A row of more routers than an LSU may take hops: the area is as far as the hops reach, and nobody fails.
#[test]
fn an_lsu_ends_with_its_hops() {
    let count = 80;
    let links: Vec<Vec<usize>> = (1..count).map(|router| vec![router - 1, router]).collect();
    let mut world = World::new(3, &links);
    world.run(8_000);
    let known = world.routers[0].database().count();
    assert_eq!(known, usize::from(hue_routing::pwospf::TTL));
    assert!(world.routers[64].counters().ttl_ended > 0);
}
