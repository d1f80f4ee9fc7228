//! [`Substrate::update`] has one meaning on every substrate: the same updates, good and bad, of networks of every kind, give
//! the same results, and an error changes nothing.
//!
//! Flow: [`cases`] of a kind → each [`Place`] where the kind runs → results, and what becomes of some frames → compared with
//! those of the software engine. Places are the software engine alone, with workers and ports, and cards of all layouts.

use std::collections::BTreeMap;

use hue_card::{Card, Offered, Twin, Way};
use hue_demux::{Match, PortId, Row};
use hue_differential::{card, image, images};
use hue_planes::group::Slots;
use hue_planes::{Adjacency, Keys, Kind, Settings, rofl};
use hue_ports::{MemoryHandle, MemoryPort};
use hue_soft::live::{Live, LiveConfig};
use hue_soft::{Batch, Fate, Soft};
use hue_substrate::clock::{Clock, Hand};
use hue_substrate::planted::{Bug, plant};
use hue_substrate::{Changes, Entries, Mode, Program, Substrate, SubstrateError, VirtualPort, flat};
use hue_tables::slice::SlicedPrefix;
use hue_tables::{AnyPrefix, Limits, NextHop, Prefix4, Prefix6, Vid};
use hue_wire::Mac;

const PORTS: u8 = 2;
const MTU_BYTES: u16 = 1500;
const SECOND_NS: u64 = 1_000_000_000;
/// A static address of networks that learn, on the second port.
const FIXED: Mac = Mac([2, 0xbb, 0, 0, 0, 9]);
/// An image of each layout.
const IMAGES: [&str; 4] = ["tcam3", "default", "dir", "kinds"];

fn vid(number: u16) -> Vid {
    Vid::new(number).unwrap()
}

fn hop(index: u16) -> NextHop {
    NextHop::new(index).unwrap()
}

fn port(number: u8) -> PortId {
    PortId::new(number)
}

fn own(number: u8) -> Mac {
    Mac([2, 0, 0, 0, 1, number])
}

/// The neighbour of a number, behind the second port.
fn to(number: u8) -> Adjacency {
    Adjacency::forward(port(1), own(1), Mac([2, 0xbb, 0, 0, 0, number]), MTU_BYTES)
}

/// Settings of a kind that differ in what a card can hold: the defaults, and of kinds that cache pointers those without.
fn variants(kind: Kind) -> Vec<Settings> {
    let without = match Settings::of(kind) {
        Settings::Rofl(of) => rofl::Settings::new(of.label_bits(), 0, of.pointer_seconds()).ok(),
        _ => None,
    };
    [Settings::of(kind)].into_iter().chain(without.map(Settings::Rofl)).collect()
}

/// A network with these settings on two ports, with three next hops if its kind has routes.
fn program(settings: Settings) -> Program {
    let kind = settings.kind();
    let at = |number| VirtualPort {
        name: format!("v{number}"),
        port: port(number),
        mac: own(number),
        mtu_bytes: MTU_BYTES,
        tunnel: None,
    };
    let ports: Vec<_> = (0..PORTS).map(at).collect();
    let keys = kind.limits().keys;
    let select = |of: &VirtualPort| match keys {
        Keys::Mac | Keys::Bits | Keys::Label | Keys::None => Match::Port(of.port),
        Keys::V4 | Keys::V6 | Keys::Dual | Keys::Slices => Match::Mac { port: of.port, mac: of.mac },
    };
    let rows = ports.iter().zip(0..).map(|(of, vport)| Row { vid: vid(1), vport, select: select(of) });
    let (next_hops, entries) = match keys {
        Keys::Mac => {
            let out = ports.iter().map(|of| Adjacency::out(of.port, of.mtu_bytes)).collect();
            (out, Entries::Exact(vec![(FIXED, hop(1))]))
        }
        Keys::Bits => (vec![Adjacency::out(port(1), MTU_BYTES), Adjacency::drop()], Entries::none(kind)),
        Keys::Label => {
            let arrivals = ports.iter().map(VirtualPort::arrival);
            (arrivals.chain([Adjacency::local(), to(2)]).collect(), Entries::none(kind))
        }
        Keys::None => (Vec::new(), Entries::None),
        Keys::V4 | Keys::V6 | Keys::Dual | Keys::Slices => {
            (vec![Adjacency::local(), Adjacency::glean(port(0)), to(2)], Entries::none(kind))
        }
    };
    Program {
        vid: vid(1),
        name: "red".to_owned(),
        settings,
        rows: rows.collect(),
        next_hops,
        groups: Vec::new(),
        entries,
        ports,
        rate_limit: None,
        weight: 1,
        policies: None,
        gated: false,
    }
}

/// A prefix of a width, by its number.
fn prefix(keys: Keys, number: u8) -> AnyPrefix {
    let narrow = Prefix4::containing(10 << 24 | u32::from(number) << 16, 16);
    match keys {
        Keys::V6 => Prefix6::containing(0x2001_0db8 << 96 | u128::from(number) << 80, 48).into(),
        Keys::Slices => SlicedPrefix { slice: 0, prefix: narrow }.wide().into(),
        _ => narrow.into(),
    }
}

/// A frame to an address in such a prefix.
fn frame(keys: Keys, number: u8) -> Vec<u8> {
    let source = Mac([2, 0xbb, 0, 0, 0, 1]);
    let mut bytes = [&own(0).0[..], &source.0].concat();
    match keys {
        Keys::V6 => {
            bytes.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0, 12, 17, 64]);
            bytes.extend((0x2001_0db8_u128 << 96 | 1).to_be_bytes());
            bytes.extend((0x2001_0db8_u128 << 96 | u128::from(number) << 80 | 9).to_be_bytes());
        }
        Keys::Mac | Keys::Bits | Keys::Label | Keys::None => {
            bytes[..6].copy_from_slice(&if number == 0 { FIXED } else { Mac::BROADCAST }.0);
            bytes.extend([0x12, 0x34]);
        }
        // Without splicing bits, so in slice 0.
        Keys::V4 | Keys::Dual | Keys::Slices => {
            bytes.extend([8, 0, 0x45, 0, 0, 32, 0, 1, 0, 0, 64, 17, 0, 0, 192, 0, 2, 1, 10, number, 0, 9]);
            let checksum = hue_wire::checksum::full(&bytes[14..34]);
            bytes[24..26].copy_from_slice(&checksum.to_be_bytes());
        }
    }
    bytes.extend([7; 12]);
    bytes
}

/// The widths of routes that a kind has.
fn widths(kind: Kind) -> Vec<Keys> {
    let keys = kind.limits().keys;
    if keys == Keys::Slices {
        return vec![keys];
    }
    let both = [(Keys::V4, keys.has_v4()), (Keys::V6, keys.has_v6())];
    both.into_iter().filter(|(_, has)| *has).map(|(width, _)| width).collect()
}

/// A substrate, and a way to send it frames.
trait Place {
    fn substrate(&mut self) -> &mut dyn Substrate;

    /// Limits the room of the network, if there is more than a test can fill.
    fn limit(&mut self) {}

    /// Sends frames to the first port; returns those that leave.
    fn send(&mut self, frames: &[Vec<u8>]) -> Vec<(PortId, Vec<u8>)>;

    /// How many routes the network has.
    fn routes(&mut self) -> usize;

    /// Whether it has groups of next hops. Without them it refuses updates by name.
    fn has_groups(&self) -> bool {
        true
    }

    /// How many routes of a width, all over the addresses, have no room; `None` if it takes too long to find out. With
    /// [`Mode::Fitting`], all that have room are entered.
    fn too_many(&self, keys: Keys, mode: Mode) -> Option<u32>;
}

/// The network's quota in software, bytes.
const QUOTA: Option<u64> = Some(64 << 10);
/// Routes that exceed it.
const MANY: u32 = 3_000;

impl Place for Soft {
    fn substrate(&mut self) -> &mut dyn Substrate {
        self
    }

    fn limit(&mut self) {
        self.set_quota(vid(1), QUOTA).unwrap();
    }

    fn send(&mut self, frames: &[Vec<u8>]) -> Vec<(PortId, Vec<u8>)> {
        let (mut batch, mut left) = (Batch::new(), Vec::new());
        frames.iter().for_each(|frame| assert!(batch.push(port(0), 0, frame)));
        self.run(&mut batch, |out| match out.fate {
            Fate::Network { outcome, egress, .. } if outcome.is_forward() || outcome.is_flood() => {
                left.push((egress, out.bytes.to_vec()));
            }
            _ => {}
        });
        left
    }

    fn routes(&mut self) -> usize {
        self.account(vid(1)).unwrap().routes
    }

    fn too_many(&self, _: Keys, _: Mode) -> Option<u32> {
        Some(MANY)
    }
}

/// The software engine with a worker and ports.
struct Running {
    live: Live,
    wires: Vec<MemoryHandle>,
    time: Hand,
}

impl Running {
    fn new() -> Self {
        let config = LiveConfig { workers: 1, slots: 1024, ..LiveConfig::default() };
        let (clock, time) = Clock::by_hand(1);
        let mut live = Live::by_hand(config, &clock).unwrap();
        let wires = (0..PORTS).map(|number| {
            let (memory, wire) = MemoryPort::pair(&format!("p{number}"), 64).unwrap();
            live.add_port(port(number), |_| Ok(Box::new(memory))).unwrap();
            wire
        });
        let wires = wires.collect();
        Self { live, wires, time }
    }
}

impl Place for Running {
    fn substrate(&mut self) -> &mut dyn Substrate {
        &mut self.live
    }

    fn limit(&mut self) {
        self.live.set_quota(vid(1), QUOTA).unwrap();
    }

    fn send(&mut self, frames: &[Vec<u8>]) -> Vec<(PortId, Vec<u8>)> {
        frames.iter().for_each(|frame| assert!(self.wires[0].feed(frame)));
        while self.live.round(0) {}
        // Counters are published from time to time.
        self.time.pass(SECOND_NS);
        self.live.round(0);
        let left = (0..PORTS).zip(&self.wires);
        left.flat_map(|(number, wire)| wire.collect().into_iter().map(move |one| (port(number), one)))
            .collect()
    }

    fn routes(&mut self) -> usize {
        self.live.account(vid(1)).unwrap().routes
    }

    fn too_many(&self, _: Keys, _: Mode) -> Option<u32> {
        Some(MANY)
    }
}

/// A card of an image.
struct OnCard {
    card: Card<Twin>,
    image: &'static str,
}

impl Place for OnCard {
    fn substrate(&mut self) -> &mut dyn Substrate {
        &mut self.card
    }

    fn send(&mut self, frames: &[Vec<u8>]) -> Vec<(PortId, Vec<u8>)> {
        let mut left = Vec::new();
        let offered: Vec<_> =
            frames.iter().map(|bytes| Offered { port: port(0), time_ns: 0, bytes }).collect();
        let sent = self.card.run(&offered, |sent| {
            if let Way::Port(to) = sent.way {
                left.push((to, sent.bytes.to_vec()));
            }
        });
        sent.unwrap();
        left
    }

    fn routes(&mut self) -> usize {
        let routes = |entries: &Entries| entries.len() - entries.macs().len() - entries.patterns().len();
        self.card.programs().map(|program| routes(&program.entries)).sum()
    }

    fn has_groups(&self) -> bool {
        self.image == "kinds"
    }

    fn too_many(&self, keys: Keys, mode: Mode) -> Option<u32> {
        match (self.image, keys, mode) {
            ("tcam3", ..) => Some(100),
            (_, _, Mode::Fitting) => None,
            ("kinds", Keys::V6 | Keys::Slices, _) => Some(5_000),
            ("kinds", _, _) => Some(30_000),
            _ => Some(8_500),
        }
    }
}

/// The expected result of an update.
#[derive(Clone, Copy, Debug)]
enum Expect {
    /// It is made as a whole.
    Made,
    /// An error with these words.
    Error(&'static str),
    /// There is no room, or for some of its routes.
    Full,
}

/// An update.
struct Case {
    name: String,
    vid: Vid,
    hops: Vec<(NextHop, Adjacency)>,
    /// Rows to make groups.
    groups: Vec<(NextHop, Slots)>,
    /// Routes to set or withdraw.
    routes: Vec<(AnyPrefix, Option<NextHop>)>,
    mode: Mode,
    /// Routes of this width that have no room follow.
    filled: Option<Keys>,
    expect: Expect,
}

/// Routes to pairs of addresses all over those of a width, with next hops such that few pairs look alike; or their withdrawals.
fn filler(changes: &mut Changes, keys: Keys, count: u32, withdrawn: bool) {
    let hop =
        |n: u32| if withdrawn { None } else { NextHop::new((n.wrapping_mul(0x85eb_ca6b) >> 30) as u16) };
    let last = |n: u32| n.wrapping_mul(0xc2b2_ae35) >> 24;
    match keys {
        Keys::V6 | Keys::Slices => {
            let pair = |n: u32| u128::from(n / 2).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
            let key = |n: u32| pair(n) & !0xff | u128::from(last(n));
            changes.v6.extend((2..count + 2).map(|n| (Prefix6::containing(key(n), 128), hop(n))));
        }
        _ => {
            let key = |n: u32| (n / 2).wrapping_mul(0x9e37_79b1) & !0xff | last(n);
            changes.v4.extend((2..count + 2).map(|n| (Prefix4::containing(key(n), 32), hop(n))));
        }
    }
}

/// What becomes of some frames: which leave, and how many have each outcome. And how many routes there are.
type Seen = (Vec<(PortId, Vec<u8>)>, Vec<(&'static str, u64)>, usize);

fn see(place: &mut dyn Place, kind: Kind) -> Seen {
    let keys = match kind.limits().keys {
        Keys::Dual => vec![Keys::V4, Keys::V6],
        one => vec![one],
    };
    let frames = keys.into_iter().flat_map(|keys| (0..5).map(move |number| frame(keys, number)));
    let frames: Vec<_> = frames.collect();
    let counters = |place: &mut dyn Place| place.substrate().counters(vid(1)).unwrap();
    let before = counters(place);
    let mut left = place.send(&frames);
    left.sort_unstable();
    let after = counters(place);
    let counts =
        before.iter().zip(after.iter()).map(|((outcome, one), (_, other))| (outcome.name(), other - one));
    (left, counts.filter(|(_, count)| *count > 0).collect(), place.routes())
}

/// Updates of a network with these settings in one mode. In the end it has no routes again.
fn cases(settings: Settings, mode: Mode) -> Vec<Case> {
    let kind = settings.kind();
    let widths = widths(kind);
    let mut all = Vec::new();
    let mut add = |name: &str, hops: &[(u16, Adjacency)], routes: &[(Keys, u8, Option<u16>)], expect| {
        let routes = routes.iter().map(|(keys, number, to)| (prefix(*keys, *number), to.map(hop)));
        all.push(Case {
            name: format!("{mode:?}: {name}"),
            vid: vid(1),
            hops: hops.iter().map(|(index, to)| (hop(*index), *to)).collect(),
            groups: Vec::new(),
            routes: routes.collect(),
            mode,
            filled: None,
            expect,
        });
    };
    let each = |changes: &[(u8, Option<u16>)]| -> Vec<(Keys, u8, Option<u16>)> {
        let one = |keys| changes.iter().map(move |(number, to)| (keys, *number, *to));
        widths.iter().flat_map(|keys| one(*keys)).collect()
    };
    let has = [kind.limits().keys.has_v4(), kind.limits().keys.has_v6()];
    let missing = [Keys::V4, Keys::V6].into_iter().zip(has).filter(|(_, has)| !has).map(|(keys, _)| keys);
    let good = each(&[(1, Some(2)), (4, Some(2))]);
    for keys in missing {
        let routes = [&good[..], &[(keys, 1, Some(2))]].concat();
        let words = if keys == Keys::V4 { "keys of 32 bits: kind" } else { "keys of 128 bits: kind" };
        add(&format!("routes of {keys}"), &[], &routes, Expect::Error(words));
        add(&format!("a withdrawal of {keys}"), &[], &[(keys, 1, None)], Expect::Error(words));
    }
    add("nothing", &[], &[], Expect::Made);
    if kind.limits().next_hops_max < usize::from(NextHop::MAX) + 1 {
        let beyond = [(kind.limits().next_hops_max as u16, to(9))];
        add("too many next hops", &beyond, &good, Expect::Error("next hops: at most"));
    }
    if settings.learning().is_some() {
        let ways = Expect::Error("the next hops are not the ports in their order");
        add("another way", &[(1, Adjacency::out(port(0), MTU_BYTES))], &[], ways);
        add("one way more", &[(2, Adjacency::out(port(1), MTU_BYTES))], &[], ways);
        add("the same way", &[(1, Adjacency::out(port(1), MTU_BYTES))], &[], Expect::Made);
    }
    if settings.caching().is_some() {
        let ways = Expect::Error("the first next hops are not the ports in their order");
        add("another arrival", &[(1, to(3))], &[], ways);
    }
    if kind.limits().keys == Keys::Label {
        add("another label's way", &[(3, to(3))], &[], Expect::Made);
    }
    if widths.is_empty() {
        return all;
    }
    let refused = |what| Expect::Error(what);
    let foreign = Adjacency::glean(port(3));
    let stolen = Adjacency::forward(port(1), own(7), FIXED, MTU_BYTES);
    let large = Adjacency::forward(port(1), own(1), FIXED, MTU_BYTES + 1);
    add("a next hop and routes", &[(3, to(3))], &each(&[(1, Some(3)), (2, Some(2))]), Expect::Made);
    add("a row in use", &[(3, to(4))], &[], Expect::Made);
    add("in order", &[], &each(&[(1, None), (1, Some(2)), (2, Some(2)), (2, None), (9, None)]), Expect::Made);
    add("rows between", &[(7, to(7))], &each(&[(2, Some(7)), (3, Some(5))]), Expect::Made);
    add("a foreign port", &[(2, to(8)), (3, foreign)], &good, refused("the network is not on that port"));
    add("a foreign address", &[(2, to(8)), (8, stolen)], &good, refused("does not have this address"));
    add("too large an MTU", &[(2, large)], &good, refused("the MTU is above the MTU of the port"));
    let beyond = [&good[..], &each(&[(3, Some(9))])].concat();
    add("a missing next hop", &[(2, to(8)), (8, to(8))], &beyond, refused("names next hop 9 of 9"));
    add("its next hop", &[], &each(&[(3, Some(8))]), refused("names next hop 8 of 8"));
    add("without a next hop", &[(2, Adjacency::NONE)], &[], Expect::Made);
    add("with one again", &[(2, to(2))], &[], Expect::Made);
    add(
        "no room",
        &[(3, to(5)), (2, to(6)), (20, to(7))],
        &each(&[(1, Some(20)), (2, Some(2))]),
        Expect::Full,
    );
    let filled = all.len() - 1;
    let after = if mode == Mode::Fitting { Expect::Made } else { refused("names next hop 20 of 8") };
    let mut add = |name: &str, routes: Vec<(Keys, u8, Option<u16>)>, expect| {
        let routes = routes.iter().map(|(keys, number, to)| (prefix(*keys, *number), to.map(hop)));
        let name = format!("{mode:?}: {name}");
        let routes = routes.collect();
        let (hops, groups) = (Vec::new(), Vec::new());
        all.push(Case { name, vid: vid(1), hops, groups, routes, mode, filled: None, expect });
    };
    add("the next hop of what had no room", each(&[(4, Some(20))]), after);
    add("nothing left", each(&[(1, None), (2, None), (3, None), (4, None)]), Expect::Made);
    all[filled].filled = widths.last().copied();
    let unknown = Expect::Error("network 9 is not loaded");
    let (name, routes) = (format!("{mode:?}: another network"), Vec::new());
    let (hops, groups) = (Vec::new(), Vec::new());
    all.push(Case { name, vid: vid(9), hops, groups, routes, mode, filled: None, expect: unknown });
    all
}

/// Updates of groups of next hops. In the end there are no routes again.
fn group_cases(kind: Kind, mode: Mode) -> Vec<Case> {
    let (mut all, widths) = (Vec::new(), widths(kind));
    if widths.is_empty() {
        return all;
    }
    let slots = |rows: &[u16]| Slots::new(rows.iter().map(|row| hop(*row)).collect::<Vec<_>>()).unwrap();
    type Groups<'a> = &'a [(u16, &'a [u16])];
    let mut add =
        |name: &str, hops: &[(u16, Adjacency)], groups: Groups<'_>, to: Option<Option<u16>>, expect| {
            let to = to.into_iter().flat_map(|to| (1..5).map(move |number| (number, to.map(hop))));
            let routes =
                to.flat_map(|(number, to)| widths.iter().map(move |keys| (prefix(*keys, number), to)));
            all.push(Case {
                name: format!("{mode:?}: groups: {name}"),
                vid: vid(1),
                hops: hops.iter().map(|(index, to)| (hop(*index), *to)).collect(),
                groups: groups.iter().map(|(row, rows)| (hop(*row), slots(rows))).collect(),
                routes: routes.collect(),
                mode,
                filled: None,
                expect,
            });
        };
    let many: Vec<u16> = (0..256).map(|slot| 2 + slot % 3).collect();
    let gleans = [(3, to(33)), (4, Adjacency::glean(port(0))), (2, to(32))];
    add("a group and routes", &gleans, &[(9, &[2, 3])], Some(Some(9)), Expect::Made);
    add("another member", &[], &[(9, &[4, 3])], None, Expect::Made);
    add("more slots", &[], &[(9, &many)], None, Expect::Made);
    add("a member changes", &[(3, Adjacency::local())], &[], None, Expect::Made);
    add("a new member", &[(10, to(40))], &[(9, &[10, 2, 10, 3])], None, Expect::Made);
    add("two groups", &[], &[(9, &[3]), (11, &[2, 4, 10, 10])], Some(Some(11)), Expect::Made);
    let refused = Expect::Error("a slot names a group");
    add("a group in a group", &[(2, to(50))], &[(9, &[11, 2])], None, refused);
    let refused = Expect::Error("a slot names a next hop that does not exist");
    add("a missing member", &[(2, to(50))], &[(9, &[2, 77])], None, refused);
    add("a member that becomes a group", &[], &[(2, &[3])], None, Expect::Error("a slot names a group"));
    add("a group that ends", &[(11, to(60))], &[], None, Expect::Made);
    add("a row that becomes a group", &[(3, to(61))], &[(11, &[3, 2, 3, 4])], None, Expect::Made);
    add("set and a group at once", &[(11, to(62))], &[(11, &[4, 3])], None, Expect::Made);
    let more: Vec<u16> = (0..2048).map(|slot| 2 + slot % 2).collect();
    add("a large one", &[], &[(11, &more), (9, &[2])], None, Expect::Made);
    add("no groups again", &[(9, to(2)), (11, to(2))], &[], Some(None), Expect::Made);
    all
}

/// Results that are no errors.
const MADE: &str = "made";
const PARTLY: &str = "some have no room";
const NOT_TRIED: &str = "no room is not tried";

/// The result of a case, without what differs between substrates: how much room there is.
fn make(place: &mut dyn Place, case: &Case) -> Result<String, String> {
    let mut changes = Changes::default();
    for (prefix, hop) in &case.routes {
        match (prefix.of(), prefix.of()) {
            (Some(prefix), _) => changes.v4.push((prefix, *hop)),
            (None, Some(prefix)) => changes.v6.push((prefix, *hop)),
            (None, None) => return Err(format!("{prefix}")),
        }
    }
    let listed = changes.len();
    if let Some(keys) = case.filled {
        match place.too_many(keys, case.mode) {
            Some(count) => filler(&mut changes, keys, count, false),
            // Only what has room is made here.
            None if case.mode == Mode::Fitting => {
                let update =
                    changes.update().with_mode(case.mode).with_hops(&case.hops).with_groups(&case.groups);
                let made = place.substrate().update(case.vid, &update);
                return made.map(|_| NOT_TRIED.to_owned()).map_err(|error| error.to_string());
            }
            None => return Ok(NOT_TRIED.to_owned()),
        }
    }
    let before = place.routes();
    let update = changes.update().with_mode(case.mode).with_hops(&case.hops).with_groups(&case.groups);
    let result = place.substrate().update(case.vid, &update);
    let text = match &result {
        Ok(refusals) if refusals.at.is_empty() && refusals.error.is_none() => MADE.to_owned(),
        Ok(refusals) => {
            let is_full = refusals.error.as_ref().is_some_and(SubstrateError::is_full);
            let in_order = refusals.at.is_sorted_by(|one, other| one < other);
            let last = refusals.at.last().is_some_and(|last| *last < changes.len());
            let (some, all) = (place.routes() - before, changes.len() - listed);
            if !is_full || !in_order || !last || some + refusals.at.len() < all || some == 0 {
                return Err(format!("{some} of {all} routes came in, and these are refused: {refusals:?}"));
            }
            PARTLY.to_owned()
        }
        Err(error) if error.is_full() => "no room".to_owned(),
        Err(error) => error.to_string(),
    };
    if let (Some(keys), Ok(_)) = (case.filled, &result) {
        let mut gone = Changes::default();
        filler(&mut gone, keys, changes.len() as u32 - listed as u32, true);
        place.substrate().update(case.vid, &gone.update()).map_err(|error| error.to_string())?;
    }
    let as_expected = match case.expect {
        Expect::Made => text == MADE,
        Expect::Error(words) => result.is_err() && text.contains(words),
        Expect::Full if case.mode == Mode::Fitting => text == PARTLY,
        Expect::Full => text == "no room",
    };
    if as_expected { Ok(text) } else { Err(format!("{:?} was expected, not '{text}'", case.expect)) }
}

/// Results and what was seen, by the name of the case.
type Log = BTreeMap<String, (String, Seen)>;

/// Makes all updates of a network with these settings. An error must change nothing.
fn run(place: &mut dyn Place, settings: Settings) -> Result<Log, String> {
    let kind = settings.kind();
    place.substrate().load(&[program(settings)]).map_err(|error| error.to_string())?;
    place.limit();
    let mut log = Log::new();
    let mut before = see(place, kind);
    let modes = [Mode::Whole, Mode::Each, Mode::Fitting];
    // Groups come last, because they add rows.
    let all = modes.iter().flat_map(|mode| cases(settings, *mode)).map(|case| (case, false));
    let groups = modes.iter().flat_map(|mode| group_cases(kind, *mode)).map(|case| (case, true));
    for (mut case, of_groups) in all.chain(groups) {
        let refuses = of_groups && !place.has_groups();
        if refuses {
            // Without the first group, others of the cases would be faulty.
            if !case.name.ends_with("a group and routes") {
                continue;
            }
            (case.expect, case.mode) = (Expect::Full, Mode::Whole);
        }
        let told = |what: String| format!("{}: {what}", case.name);
        let result = make(place, &case).map_err(told)?;
        let now = see(place, kind);
        if ![MADE, PARTLY, NOT_TRIED].contains(&&*result) && now != before {
            return Err(told(format!("'{result}' changed something: {before:?} {now:?}")));
        }
        before = now.clone();
        if result != NOT_TRIED && !refuses {
            log.insert(case.name, (result, now));
        }
    }
    Ok(log)
}

fn soft(settings: Settings) -> Result<Log, String> {
    run(&mut Soft::new(Limits::default()).unwrap(), settings)
}

/// Compares a place with the software engine alone.
fn compare(place: &mut dyn Place, settings: Settings, expected: &Log) -> Result<(), String> {
    for (name, found) in run(place, settings)? {
        let expected = expected.get(&name).ok_or_else(|| format!("{name}: not in software"))?;
        if found != *expected {
            return Err(format!("{name}:\nsoftware {expected:?}\nhere     {found:?}"));
        }
    }
    Ok(())
}

#[test]
fn updates_mean_the_same_on_every_substrate() {
    let images = images(&IMAGES);
    // A kind without tables has nothing to update.
    let kinds = Kind::ALL.into_iter().filter(|kind| kind.limits().keys != Keys::None);
    for settings in kinds.flat_map(variants) {
        let kind = settings.kind();
        let expected = soft(settings).unwrap_or_else(|error| panic!("{}, software: {error}", kind.name()));
        assert!(expected.len() >= 5, "{}: {} updates", kind.name(), expected.len());
        let check = |place: &mut dyn Place, name: &str| {
            if let Err(error) = compare(place, settings, &expected) {
                panic!("{}, {name}: {error}", kind.name());
            }
        };
        check(&mut Running::new(), "workers");
        for image in IMAGES {
            let mut on_card = OnCard { card: card(&images.load(image).unwrap(), &[]), image };
            if !on_card.card.description().kinds.contains(&kind) {
                continue;
            }
            if !flat::caches(&settings) {
                check(&mut on_card, image);
                continue;
            }
            let refused = on_card.substrate().load(&[program(settings)]).unwrap_err().to_string();
            assert!(refused.contains("cached pointers"), "{}, {image}: {refused}", kind.name());
        }
    }
}

#[test]
fn planted_bugs_of_updates_are_found() {
    let fails = |bug, place: &mut dyn Place, kind| {
        let expected = soft(Settings::of(kind)).unwrap();
        plant(Some(bug));
        let found = compare(place, Settings::of(kind), &expected).err();
        plant(None);
        let found = found.unwrap_or_else(|| panic!("{bug:?} is not found"));
        println!("{bug:?} of kind {}: {}", kind.name(), found.chars().take(100).collect::<String>());
    };
    fails(Bug::RowsStay, &mut Soft::new(Limits::default()).unwrap(), Kind::Ipv4);
    fails(Bug::RowsStay, &mut Running::new(), Kind::Ipv6);
    let tcam = card(&image("tcam3"), &[]);
    fails(Bug::RowsStay, &mut OnCard { card: tcam, image: "tcam3" }, Kind::Ipv4);
    fails(Bug::OneWidth, &mut Soft::new(Limits::default()).unwrap(), Kind::Dual);
}
