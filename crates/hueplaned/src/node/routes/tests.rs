//! Inputs and effects of routes, without kernels and tables.

use hue_demux::PortId;
use hue_host::netlink::{Link, NextHop as Way, Route, RouteKind, Scope};
use hue_planes::{Keys, Kind};
use hue_substrate::{Entries, SubstrateError};
use hue_tables::TableError;
use hue_tables::{AnyPrefix, Prefix4};

use super::*;

/// The routes of a test, and what the core would do for them.
struct Bench {
    routes: Routes,
    /// The effects so far, as text.
    seen: Vec<String>,
    follows_max: usize,
    /// Bytes of each network's table.
    own: u64,
    /// How many routes of a piece are refused for lack of room.
    refuses: usize,
    /// Whether software's table fails.
    fails: bool,
    now: Instant,
}

fn vid(vid: u16) -> Vid {
    Vid::new(vid).unwrap()
}

impl Bench {
    fn new() -> Self {
        let (routes, seen, now) = (Routes::default(), Vec::new(), Instant::now());
        Self { routes, seen, follows_max: usize::MAX, own: 100, refuses: 0, fails: false, now }
    }

    fn give(&mut self, input: Input) {
        let (own, max) = (self.own, self.follows_max);
        let account = |_| Account { bytes_own: own, ..Account::default() };
        let around = Around { account: &account, follows_max: &|_| max, now: self.now };
        for effect in self.routes.take(input, &around) {
            self.apply(effect);
        }
    }

    fn apply(&mut self, effect: Effect) {
        let text = match effect {
            Effect::Then(input) => return self.give(input),
            Effect::Update(update) => {
                let at: Vec<usize> = (0..update.routes.len()).take(self.refuses).collect();
                let error = TableError::Full { vid: update.vid, bytes_used: 9, bytes_max: 9 };
                let full = SubstrateError::Table { name: "red".to_owned(), error };
                let error = (!at.is_empty()).then_some(full);
                let result = if self.fails { Err("broken".to_owned()) } else { Ok(Refusals { error, at }) };
                self.seen.push(format!("{} gets {} routes", update.vid, update.routes.len()));
                return self.give(Input::Updated(update, result));
            }
            Effect::LoadWhole(vid, _, _, routes) => {
                self.seen.push(format!("{vid} is loaded with {} routes", routes.len()));
                return self.give(Input::WholeLoaded(vid, Entries::none(Kind::Ipv4), Ok(())));
            }
            Effect::Tell(kind, vid, text) => format!("{kind:?} {vid}: {text}"),
            Effect::Degrade(vid, why) => format!("{vid} fails: {why}"),
            Effect::Through(vid) => format!("{vid} is through"),
            Effect::Whole(vid) => format!("{vid} is whole"),
            Effect::Withdraw(vid, routes) => format!("{vid} loses {} routes", routes.len()),
            Effect::LostInterface(vid, interface) => format!("{vid} has lost {interface}"),
            Effect::Changed
            | Effect::Suspect(_)
            | Effect::Resync(_)
            | Effect::Probe(..)
            | Effect::SetAddresses(..)
            | Effect::SetNeighbours(..)
            | Effect::Mirror(..)
            | Effect::Partly(_)
            | Effect::Replaced(_) => return,
        };
        self.seen.push(text);
    }

    fn load(&mut self, at: u16) {
        self.load_with(at, Keys::V4);
    }

    fn load_with(&mut self, at: u16, keys: Keys) {
        let port = RibPort {
            interface: "a".to_owned(),
            port: PortId::new(1),
            mac: Mac([2, 0, 0, 0, 0, 1]),
            mtu_bytes: 1500,
            peer: None,
        };
        let form = Form { keys, by_length: false, slices: 1 };
        let (name, ports, counts) = (format!("n{at}"), vec![port], Arc::default());
        self.give(Input::Load(
            vid(at),
            Loaded { name, form, gateways: Vec::new(), ports, is_known: false, counts },
        ));
    }

    /// The kernel of a network reports this many routes.
    fn report(&mut self, at: u16, routes: u32) {
        self.report_all(at, (0..routes).map(|n| Prefix4::containing(0x0a00_0000 + (n << 8), 24).into()));
    }

    fn report_all(&mut self, at: u16, routes: impl Iterator<Item = AnyPrefix>) {
        let link =
            Link { index: 2, name: "a".to_owned(), mtu: 1500, up: true, carrier: true, ..Link::default() };
        let route = |prefix: AnyPrefix| Route {
            prefix,
            source: None,
            object: 0,
            table: 254,
            tos: 0,
            metric: 0,
            protocol: 0,
            scope: Scope::Link,
            kind: RouteKind::Unicast,
            hops: vec![Way { link: 2, via: None, weight: 1, dead: false, onlink: false }],
            cloned: false,
        };
        let all = routes.map(|prefix| Event::Route(How::Listed, route(prefix)));
        let events = [Event::Begin, Event::Link(How::Listed, Box::new(link))].into_iter().chain(all);
        self.give(Input::Events(vid(at), events.chain([Event::End]).collect()));
    }

    /// Takes turns until no network has any.
    fn catch_up(&mut self) -> Vec<String> {
        while self.routes.is_behind() {
            self.give(Input::CatchUp);
        }
        std::mem::take(&mut self.seen)
    }
}

#[test]
fn each_network_has_the_routes_of_its_family() {
    let mut bench = Bench::new();
    bench.load(1);
    bench.load_with(2, Keys::V6);
    let both =
        ["10.0.0.0/8", "2001:db8::/32", "2001:db8:1::/48"].map(|text| text.parse::<AnyPrefix>().unwrap());
    let published = |bench: &Bench, at: u16| bench.routes.table(vid(at)).unwrap().published().1;
    bench.load_with(3, Keys::Dual);
    for at in [1, 2, 3] {
        bench.report_all(at, both.into_iter());
        bench.catch_up();
    }
    assert!(matches!(published(&bench, 1), Entries::Lpm32(routes) if routes.len() == 1));
    assert!(matches!(published(&bench, 2), Entries::Lpm128(routes) if routes.len() == 2));
    let Entries::Dual(narrow, wide) = published(&bench, 3) else { panic!("a network of both families") };
    assert_eq!((narrow.len(), wide.len()), (1, 2));
    // A network that becomes one of the other family forgets what it knew.
    bench.load_with(2, Keys::V4);
    assert!(matches!(published(&bench, 2), Entries::Lpm32(routes) if routes.is_empty()));
}

#[test]
fn networks_take_turns_of_a_piece_each() {
    let mut bench = Bench::new();
    bench.load(1);
    bench.load(2);
    bench.report(1, 5000);
    bench.report(2, 3);
    let (one, two) = (vid(1), vid(2));
    let expected = [
        format!("{one} gets 4096 routes"),
        format!("{two} gets 3 routes"),
        format!("{one} gets 904 routes"),
        format!("{two} is through"),
        format!("{one} is through"),
    ];
    assert_eq!(bench.catch_up(), expected);
    // Whoever follows the table takes less at once.
    bench.load(3);
    bench.follows_max = 64;
    bench.report(3, 100);
    let three = vid(3);
    let expected =
        [format!("{three} gets 64 routes"), format!("{three} gets 36 routes"), format!("{three} is through")];
    assert_eq!(bench.catch_up(), expected);
}

#[test]
fn a_network_that_is_loaded_again_has_its_turn() {
    let mut bench = Bench::new();
    bench.load(1);
    bench.report(1, 3);
    bench.give(Input::Unload(vid(1)));
    assert_eq!(bench.catch_up(), Vec::<String>::new());
    bench.load(1);
    bench.report(1, 3);
    assert_eq!(bench.catch_up(), [format!("{} gets 3 routes", vid(1)), format!("{} is through", vid(1))]);
}

#[test]
fn a_table_that_fails_is_loaded_as_a_whole() {
    let mut bench = Bench::new();
    bench.load(1);
    bench.fails = true;
    bench.report(1, 3);
    let one = vid(1);
    let failed = [format!("{one} gets 3 routes"), format!("{one} fails: its routes do not fit: broken")];
    assert_eq!(bench.catch_up(), failed);
    assert!(bench.routes.is_torn(one));
    bench.fails = false;
    bench.give(Input::Behind(one));
    let loaded = [format!("{one} is loaded with 3 routes"), format!("{one} is whole")];
    assert_eq!((bench.catch_up(), bench.routes.is_torn(one)), (loaded.to_vec(), false));
}

#[test]
fn refused_routes_are_told_and_tried_again_when_they_are_due() {
    let mut bench = Bench::new();
    bench.load(1);
    bench.refuses = 2;
    bench.report(1, 3);
    let seen = bench.catch_up();
    assert!(seen.iter().any(|what| what.contains("NetworkDegraded") && what.contains("2 of 3")), "{seen:?}");
    let table = bench.routes.table(vid(1)).unwrap();
    assert_eq!((table.refused().len(), table.published().1.len()), (2, 1));
    let due = bench.routes.due().unwrap();
    bench.give(Input::Tend);
    assert_eq!(bench.catch_up(), Vec::<String>::new(), "it is not due");
    (bench.now, bench.refuses) = (due, 0);
    bench.give(Input::Tend);
    let seen = bench.catch_up();
    assert!(seen.contains(&format!("{} gets 2 routes", vid(1))), "{seen:?}");
    bench.now = bench.routes.due().unwrap();
    bench.give(Input::Tend);
    assert!(bench.catch_up().iter().any(|what| what.contains("NetworkRecovered")));
    assert_eq!(bench.routes.due(), None);
}
