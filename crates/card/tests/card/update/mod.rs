//! Changes of running networks, over a model of a card's memories. After every row that is written, a packet must get
//! the result of either the table before or the table after the change, and records inside must get a result that was
//! allowed since they entered.
#![allow(clippy::unwrap_used)] // a test fails by panicking

mod both;
mod debts;
mod flat;
mod gates;
mod mapped;
mod memory;
mod patterns;
mod policies;
mod weights;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use hue_card::generated as regs;
use hue_card::generated::{HopRow, NetworkRow};
use hue_card::{AccessError, Card, Registers};
use hue_demux::{Match, PortId, Row as Claim};
use hue_planes::group::Slots;
use hue_planes::{Adjacency, Kind, Settings};
use hue_substrate::{Entries, Mode, Program, Refusals, Substrate, SubstrateError, Update, VirtualPort};
use hue_tables::{Dag, Limits, NextHop, Oracle, Policies, Prefix4, RouteBy, Vid};
use hue_wire::Mac;
use memory::{Hold, Memory, PLANE_ROWS, Rows, get, lookup, match_rows};
use proptest::prelude::*;

const PORT: PortId = PortId::new(1);

fn vid(number: u16) -> Vid {
    Vid::new(number).unwrap()
}

fn own(number: u16) -> Mac {
    Mac([2, 0, 0, 0, 0, number as u8])
}

fn hop(number: u16) -> NextHop {
    NextHop::new(number).unwrap()
}

/// Usually a neighbour; for a few seeds the router itself.
fn neighbour(network: u16, seed: u16) -> Adjacency {
    if seed >= 35 {
        return Adjacency::local();
    }
    let [high, low] = seed.to_be_bytes();
    Adjacency::forward(PORT, own(network), Mac([2, 1, network as u8, 0, high, low]), 1500)
}

fn program(number: u16, hops: u16, routes: Vec<(Prefix4, NextHop)>) -> Program {
    let vid = vid(number);
    let select = Match::Mac { port: PORT, mac: own(number) };
    Program {
        vid,
        name: format!("net{number}"),
        settings: Settings::of(Kind::Ipv4),
        ports: vec![VirtualPort {
            name: "v".to_owned(),
            port: PORT,
            mac: own(number),
            mtu_bytes: 1500,
            tunnel: None,
        }],
        rows: vec![Claim { vid, vport: 0, select }],
        next_hops: (0..hops).map(|seed| neighbour(number, seed)).collect(),
        groups: Vec::new(),
        entries: Entries::Lpm32(routes),
        rate_limit: None,
        weight: 1,
        policies: None,
        gated: false,
    }
}

/// The expected state of a network.
#[derive(Clone, Default)]
struct Want {
    routes: Oracle<u32>,
    hops: Vec<Adjacency>,
}

impl Want {
    /// The destination MAC with which a packet leaves, 0 for packets to the router itself; `None` means no route.
    fn lookup(&self, key: u32) -> Option<u64> {
        let (_, hop) = self.routes.lookup(key)?;
        let hop = self.hops.get(usize::from(hop.get()))?;
        (*hop != Adjacency::NONE).then(|| hop.dst().to_u64())
    }

    fn program(&self, number: u16) -> Program {
        let mut program = program(number, 0, self.routes.iter().collect());
        program.next_hops.clone_from(&self.hops);
        program
    }
}

fn dst(found: memory::Found) -> Option<u64> {
    found.map(|(_, row)| row).filter(|row| row.kind != 0).map(|row: HopRow| row.dst)
}

/// A step of a test.
#[derive(Clone, Debug)]
enum Step {
    Routes(u16, Vec<(u32, u8, Option<u16>)>),
    Each(u16, Vec<(u32, u8, Option<u16>)>),
    Hops(u16, Vec<(u16, u16)>),
    Load(u16),
    Unload(u16),
    /// If tables follow a store: brings a part of a network's table to the card. When all of it is there, the card
    /// decides the network's packets.
    Bring(u16),
    Enter(u16),
    Slow(Option<u32>),
}

fn steps(most: usize) -> impl Strategy<Value = Vec<Step>> {
    let change = (0u32..4, 0u32..20, 0u8..=32, prop::option::weighted(0.7, 0u16..9))
        .prop_map(|(high, low, len, hop)| (high << 30 | low << 15 | low << 3 | low, len, hop));
    let changes = (1u16..4, prop::collection::vec(change, 1..4));
    let step = prop_oneof![
        5 => changes.clone().prop_map(|(n, all)| Step::Routes(n, all)),
        3 => changes.prop_map(|(n, all)| Step::Each(n, all)),
        3 => (1u16..4, prop::collection::vec((0u16..14, 0u16..40), 1..3)).prop_map(|(n, all)| Step::Hops(n, all)),
        1 => (1u16..4).prop_map(Step::Load),
        1 => (1u16..4).prop_map(Step::Unload),
        4 => (1u16..4).prop_map(Step::Bring),
        6 => (1u16..4).prop_map(Step::Enter),
        1 => prop::option::weighted(0.9, 1u32..4).prop_map(Step::Slow),
    ];
    prop::collection::vec(step, 1..most)
}

/// A record inside: the row that it read and, by key, the next hops that it may find and its allowed results. Both
/// grow as routes and next hops change after it entered.
struct Record {
    number: u64,
    network: u16,
    row: NetworkRow,
    expect: Vec<(u32, Vec<u16>, Vec<Option<u64>>)>,
}

/// A card of the model, and its expected contents.
struct World {
    card: Card<Memory>,
    want: BTreeMap<u16, Want>,
    keys: Vec<u32>,
    records: Vec<Record>,
    entered: u64,
    tcam: bool,
    /// The store that tables follow; `None` if they are the card's own.
    store: Option<Dag>,
}

impl World {
    /// A card whose tables follow a store.
    fn following(memory: Memory) -> Self {
        let mut world = Self::new(memory, false);
        world.card.follow_store().unwrap();
        let mut store = Dag::new(Limits::default()).unwrap();
        store.enable_weighed_deltas(hue_tables::dag36::words_of_level);
        Self { store: Some(store), ..world }
    }

    /// Makes the card follow; `after` is the current content of the store.
    fn follow(&mut self, after: BTreeMap<u16, Want>, one_by_one: bool) {
        let deltas = self.store.as_mut().unwrap().take_deltas();
        let lost = self.change(after, one_by_one, |card| {
            for (vid, error) in card.follow(&deltas)? {
                // There is no room, or there will be none until packets leave.
                assert!(
                    matches!(error, SubstrateError::Words { .. } | SubstrateError::Broken { .. }),
                    "{error}"
                );
                assert_eq!(card.is_in_software(vid), Some(true), "{error}");
            }
            Ok(())
        });
        lost.unwrap();
    }

    fn bring(&mut self, number: u16) {
        let vid = vid(number);
        if self.card.is_in_software(vid) != Some(true) {
            return;
        }
        let after = self.want.clone();
        let _ = self.change(after, false, |card| {
            let there = card.bring_table(vid, 3)?;
            card.write_deferred(2).unwrap();
            if there { card.steer(vid, false) } else { Ok(()) }
        });
    }

    fn new(memory: Memory, tcam: bool) -> Self {
        let card = Card::new(memory).unwrap();
        let (want, keys) = (BTreeMap::new(), vec![0, u32::MAX]);
        Self { card, want, keys, records: Vec::new(), entered: 0, tcam, store: None }
    }

    fn memory(&mut self) -> &mut Memory {
        self.card.device().registers()
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Routes(number, changes) => self.routes(*number, changes, false),
            Step::Each(number, changes) => self.routes(*number, changes, true),
            Step::Hops(number, changes) => self.hops(*number, changes),
            Step::Load(number) => {
                let fresh = || Want { hops: program(*number, 4, Vec::new()).next_hops, ..Want::default() };
                let mut after = self.want.clone();
                let want = after.entry(*number).or_insert_with(fresh).clone();
                let Some(store) = &mut self.store else {
                    let _ = self.change(after, false, |card| card.load(&[want.program(*number)]));
                    return;
                };
                // Usually the network exists already.
                let _ = store.add_network::<u32>(vid(*number));
                let bare = Program { entries: Entries::Lpm32(Vec::new()), ..want.program(*number) };
                if self.change(after.clone(), false, |card| card.load_in_software(&[bare])).is_ok() {
                    self.follow(after, false);
                }
            }
            Step::Unload(number) => {
                let mut after = self.want.clone();
                if after.remove(number).is_some() {
                    let gone = self.change(after.clone(), false, |card| card.unload(&[vid(*number)]));
                    if let Some(store) = self.store.as_mut().filter(|_| gone.is_ok()) {
                        store.remove_network(vid(*number)).unwrap();
                        self.follow(after, false);
                    }
                }
            }
            Step::Bring(number) => {
                if self.store.is_some() {
                    self.bring(*number);
                }
            }
            Step::Enter(number) => self.enter(*number),
            Step::Slow(slow) => self.memory().slow = *slow,
        }
    }

    fn routes(&mut self, number: u16, changes: &[(u32, u8, Option<u16>)], each: bool) {
        let mut after = self.want.clone();
        let Some(want) = after.get_mut(&number) else { return };
        let changes: Vec<_> =
            changes.iter().map(|(addr, len, to)| (Prefix4::containing(*addr, *len), to.map(hop))).collect();
        for (prefix, to) in &changes {
            match to {
                Some(hop) => want.routes.insert(*prefix, *hop),
                None => want.routes.remove(*prefix),
            };
            self.keys.extend([prefix.addr(), prefix.last(), prefix.last().wrapping_add(1)]);
        }
        self.keys.sort_unstable();
        self.keys.dedup();
        let known = self.want.get(&number).map_or(0, |want| want.hops.len());
        let unknown = changes.iter().flat_map(|(_, hop)| hop).any(|hop| usize::from(hop.get()) >= known);
        if !unknown {
            // It may get the new route or the old one, depending on how much was written when it looked it up.
            let want = &after[&number];
            for record in self.records.iter_mut().filter(|record| record.network == number) {
                for (key, words, allowed) in &mut record.expect {
                    words.extend(want.routes.lookup(*key).map(|(_, hop)| hop.get()));
                    allowed.push(want.lookup(*key));
                }
            }
        }
        if let Some(store) = &mut self.store {
            // Whoever changes the store knows the next hops, so unknown ones are not tried.
            if !unknown {
                store.apply(vid(number), &changes).unwrap();
                self.follow(after, true);
            }
            return;
        }
        let mode = if each { Mode::Each } else { Mode::Whole };
        let update = Update::of_routes(&changes).with_mode(mode);
        let result = self.change(after, each, |card| card.update(vid(number), &update).map(drop));
        assert_eq!(matches!(result, Err(SubstrateError::Hop { .. })), unknown, "{result:?}");
    }

    fn hops(&mut self, number: u16, changes: &[(u16, u16)]) {
        let mut after = self.want.clone();
        let Some(want) = after.get_mut(&number) else { return };
        let changes: Vec<_> =
            changes.iter().map(|(index, seed)| (hop(*index), neighbour(number, *seed))).collect();
        for (index, to) in &changes {
            let index = usize::from(index.get());
            want.hops.resize(want.hops.len().max(index + 1), Adjacency::NONE);
            want.hops[index] = *to;
        }
        for record in self.records.iter_mut().filter(|record| record.network == number) {
            for (_, words, allowed) in &mut record.expect {
                let to = changes.iter().filter(|(index, _)| words.contains(&index.get()));
                allowed.extend(to.map(|(_, hop)| Some(hop.dst().to_u64())));
            }
        }
        let _ =
            self.change(after, true, |card| card.update(vid(number), &Update::of_hops(&changes)).map(drop));
    }

    fn enter(&mut self, number: u16) {
        let Some(net) = self.card.net(vid(number)) else { return };
        if self.card.is_in_software(vid(number)) == Some(true) {
            return;
        }
        let (want, keys) = (&self.want[&number], &self.keys);
        let expect = keys.iter().map(|key| {
            let word = want.routes.lookup(*key).map(|(_, hop)| hop.get());
            (*key, Vec::from_iter(word), vec![want.lookup(*key)])
        });
        let expect = expect.collect();
        let row = get(self.memory().rows(), u32::from(net));
        self.records.push(Record { number: self.entered, network: number, row, expect });
        self.entered += 1;
        self.memory().enter();
    }

    /// Makes a change and checks the state after each row that was written.
    fn change(
        &mut self,
        after: BTreeMap<u16, Want>,
        one_by_one: bool,
        change: impl FnOnce(&mut Card<Memory>) -> Result<(), SubstrateError>,
    ) -> Result<(), SubstrateError> {
        let mut rows = self.memory().rows().clone();
        let nets: Vec<_> = (1..4).map(|number| (number, self.card.net(vid(number)))).collect();
        let before = self.want.clone();
        let result = change(&mut self.card);
        let after = if result.is_ok() { after } else { before.clone() };
        for write in self.memory().take_journal() {
            rows.insert(write.row, write.words);
            self.records.retain(|record| record.number >= write.left);
            // A record keeps nothing of a plane with tables of its own, which is why its rows change only when no
            // record is inside.
            for record in self.records.iter().filter(|_| !self.tcam) {
                for (key, _, allowed) in &record.expect {
                    let found = dst(lookup(&rows, &record.row, *key));
                    assert!(allowed.contains(&found), "a record of net{}: {key:08x}", record.network);
                }
            }
            if write.held {
                continue;
            }
            for (number, net) in nets.iter().filter_map(|(number, net)| Some((number, (*net)?))) {
                let (Some(was), Some(is)) = (before.get(number), after.get(number)) else { continue };
                if get::<NetworkRow>(&rows, u32::from(net)).software {
                    continue;
                }
                // Next hops may change one by one; all else must change as a whole.
                let (was, is) = (self.agreeing(&rows, net, was), self.agreeing(&rows, net, is));
                let each = one_by_one && was.union(&is).count() == self.keys.len();
                let whole = [was, is].iter().any(|keys| keys.len() == self.keys.len());
                assert!(
                    each || whole,
                    "net{number}: neither the table before the change nor the one after it"
                );
            }
        }
        assert_eq!(&rows, self.memory().rows());
        self.want = after;
        for (number, want) in &self.want {
            if self.card.is_in_software(vid(*number)) == Some(true) {
                continue;
            }
            let net = self.card.net(vid(*number)).unwrap();
            assert_eq!(self.agreeing(&rows, net, want).len(), self.keys.len(), "net{number} in the end");
            let mut routes: Vec<_> = want.routes.iter().collect();
            let program = self.card.programs().find(|program| program.vid == vid(*number)).unwrap();
            let mut kept = program.entries.lpm32().to_vec();
            routes.sort_unstable();
            kept.sort_unstable();
            if self.store.is_some() {
                kept.clone_from(&routes); // it has none of its own
            }
            assert_eq!((&kept, &program.next_hops), (&routes, &want.hops));
        }
        result
    }

    /// The keys for which a network's rows give the expected result.
    fn agreeing(&self, rows: &Rows, net: u8, want: &Want) -> BTreeSet<u32> {
        let row: NetworkRow = get(rows, u32::from(net));
        let find = if self.tcam { match_rows } else { lookup };
        self.keys.iter().filter(|key| dst(find(rows, &row, **key)) == want.lookup(**key)).copied().collect()
    }
}

fn dag36(level_words: u32, hop_rows: u32) -> Memory {
    Memory::new(regs::LAYOUT_DAG36, 4, [level_words; 4], hop_rows)
}

proptest! {
    #[test]
    fn packets_meet_the_old_or_the_new_table(steps in steps(60)) {
        let mut world = World::new(dag36(4096, 64), false);
        (1..4).for_each(|number| world.step(&Step::Load(number)));
        steps.iter().for_each(|step| world.step(step));
    }

    /// There is so little room that many changes are refused. A refused change must change nothing.
    #[test]
    fn what_does_not_fit_changes_nothing(steps in steps(60)) {
        let mut world = World::new(dag36(64, 16), false);
        (1..4).for_each(|number| world.step(&Step::Load(number)));
        steps.iter().for_each(|step| world.step(step));
    }

    /// Tables arrive in steps, follow the store, and are removed.
    #[test]
    fn packets_meet_the_old_or_the_new_table_of_a_store(steps in steps(80)) {
        let mut world = World::following(dag36(4096, 64));
        (1..4).for_each(|number| world.step(&Step::Load(number)));
        steps.iter().for_each(|step| world.step(step));
    }

    /// There is so little room that some networks cannot move to the card, or fall back to software while they run.
    #[test]
    fn what_cannot_follow_a_store_runs_in_software(steps in steps(80)) {
        let mut world = World::following(dag36(48, 32));
        (1..4).for_each(|number| world.step(&Step::Load(number)));
        steps.iter().for_each(|step| world.step(step));
    }

    #[test]
    fn planes_of_their_own_meet_it_too(steps in steps(40)) {
        let mut world = World::new(Memory::new(regs::LAYOUT_TCAM, 3, [0; 4], PLANE_ROWS), true);
        (1..4).for_each(|number| world.step(&Step::Load(number)));
        steps.iter().for_each(|step| world.step(step));
    }
}

/// The tests above must fail for a card that does not hold packets when it is told to.
#[test]
#[should_panic(expected = "neither the table before the change nor the one after it")]
fn a_card_that_does_not_hold_is_found() {
    let mut world = World::new(Memory::new(regs::LAYOUT_TCAM, 3, [0; 4], PLANE_ROWS), true);
    world.memory().hold = Hold::Leaky;
    world.step(&Step::Load(1));
    let route = |len: u8, hop: u16| (1 << 30, len, Some(hop));
    world.step(&Step::Routes(1, vec![route(8, 1), route(16, 2), route(24, 3)]));
    world.step(&Step::Routes(1, vec![route(8, 2), route(16, 1), route(24, 0)]));
}

#[test]
fn a_hold_that_ends_too_early_is_an_error() {
    let mut card = Card::new(dag36(4096, 8)).unwrap();
    card.device().registers().hold = Hold::Deaf;
    let error = card.load(&[program(1, 2, Vec::new())]).unwrap_err().to_string();
    assert!(
        error.starts_with("substrate card: the card's hold ended while its tables were changed"),
        "{error}"
    );
}

#[test]
fn networks_that_a_card_cannot_hold_are_refused_by_name() {
    let text = |memory: Memory, program: &Program| {
        let mut card = Card::new(memory).unwrap();
        drop(card.device().registers().take_journal());
        let error = card.load(std::slice::from_ref(program)).unwrap_err().to_string();
        assert_eq!(card.programs().count(), 0);
        assert!(card.device().registers().take_journal().is_empty());
        error
    };
    let sound = program(1, 2, vec![("10.0.0.0/8".parse().unwrap(), hop(1))]);
    let kinds = dag36(4096, 64).with(regs::KINDS, 0);
    assert_eq!(
        text(kinds, &sound),
        "network 'net1': image memo has no kind ipv4; choose an image that has it, or substrate soft"
    );
    // An image that says it has the kind does not help: the tables of this layout have keys of 32 bits.
    let wide = Program {
        settings: Settings::of(Kind::Ipv6),
        entries: Entries::none(Kind::Ipv6),
        ..program(1, 2, Vec::new())
    };
    let lacks = "network 'net1': image memo has no kind ipv6; choose an image that has it, or substrate soft";
    for kinds in [1 << Kind::Ipv4 as u32, 1 << Kind::Ipv4 as u32 | 1 << Kind::Ipv6 as u32] {
        let memory = dag36(4096, 64).with(regs::KINDS, kinds);
        assert_eq!(text(memory, &wide), lacks);
    }
    let policies = Policies { by: RouteBy::Source, links: Vec::new(), list: Vec::new() };
    let by_source = Program { policies: Some(policies), ..program(1, 2, Vec::new()) };
    let by = "network 'net1': image memo has no routes by source (route_by source); choose an image that has them, or substrate soft";
    assert_eq!(text(dag36(4096, 64), &by_source), by);
    // In software they run, behind the card, and stay there.
    for (network, refused) in [(&wide, lacks), (&by_source, by)] {
        let mut card = Card::new(dag36(4096, 64)).unwrap();
        card.load_in_software(std::slice::from_ref(network)).unwrap();
        let error = card.steer(vid(1), false).unwrap_err().to_string();
        assert_eq!(error, refused);
        assert_eq!(card.is_in_software(vid(1)), Some(true));
        let update = [("10.0.0.0/8".parse::<Prefix4>().unwrap(), Some(hop(0)))];
        assert!(
            card.update(vid(1), &Update::of_routes(&update)).unwrap().at.is_empty(),
            "software has its routes"
        );
    }
    let hops = program(1, 65, Vec::new());
    assert_eq!(text(dag36(4096, 64), &hops), "network 'net1' needs 65 next hops: image memo has 64");
    let rows = dag36(4096, 64).with(regs::SELECT_ROWS, 1).with(regs::MAC_ROWS, 0);
    let mut two = sound.clone();
    two.rows.push(Claim { vid: vid(1), vport: 0, select: Match::Port(PORT) });
    assert_eq!(text(rows, &two), "network 'net1' needs 2 rows of design select: image memo has 1");
    let rows = dag36(4096, 64).with(regs::SELECT_ROWS, 1);
    two.rows.push(Claim {
        vid: vid(1),
        vport: 0,
        select: Match::Inner { port: None, prefix: "10.0.0.0/8".parse().unwrap() },
    });
    assert_eq!(text(rows, &two), "network 'net1' needs 2 ternary rows of design select: image memo has 1");
    // The error for a route table that does not fit names the level. A refused load takes no room from the next one.
    let (routes, _) = table(400);
    let full = text(dag36(100, 64), &program(1, 4, routes.clone()));
    assert!(
        full.starts_with("network 'net1' needs ") && full.contains(" more route words in level2 of "),
        "{full}"
    );
    let mut card = Card::new(dag36(100, 4)).unwrap();
    for _ in 0..10 {
        assert!(card.load(&[program(1, 4, routes.clone())]).is_err());
        card.load(&[program(1, 4, routes[..3].to_vec())]).unwrap();
        card.unload(&[vid(1)]).unwrap();
    }
    assert_eq!(card.capacity().table_bytes, 0);
}

#[test]
fn a_card_knows_how_full_it_is_and_who_has_what() {
    let (mut routes, _) = table(300);
    routes.truncate(50); // few enough that no node stands in two levels, where the network's account has it once
    let mut card = Card::new(dag36(4096, 64)).unwrap();
    let empty = card.memory(&HashMap::new());
    assert!(empty.networks.is_empty() && empty.banks.iter().all(|bank| bank.used == 0 && bank.max > 0));
    card.load(&[program(1, 4, routes.clone())]).unwrap();
    let one = card.memory(&HashMap::new());
    let share = one.networks[0];
    assert_eq!(
        (one.unit.as_str(), share.vid, share.routes, share.marginal),
        ("words", vid(1), 50, share.own)
    );
    let words = |memory: &hue_card::CardMemory| -> u64 {
        memory.banks.iter().filter(|bank| bank.name != "next hops").map(|bank| bank.used).sum()
    };
    assert_eq!(words(&one), share.own);
    assert_eq!(one.banks.iter().find(|bank| bank.name == "next hops").map(|bank| bank.used), Some(4));
    // An equal network needs next hops but no words. A change of one of them affects only that one.
    card.load(&[program(2, 4, routes.clone())]).unwrap();
    let twins = card.memory(&HashMap::new());
    assert_eq!(words(&twins), words(&one));
    assert!(twins.networks.iter().all(|twin| (twin.own, twin.marginal) == (share.own, 0)));
    card.update(vid(2), &Update::of_routes(&[("192.0.2.0/24".parse::<Prefix4>().unwrap(), Some(hop(3)))]))
        .unwrap();
    let apart = card.memory(&HashMap::new());
    assert!(apart.networks.iter().all(|twin| twin.marginal > 0 && twin.marginal < twin.own), "{apart:?}");
    card.unload(&[vid(1), vid(2)]).unwrap();
    assert_eq!(card.memory(&HashMap::new()), empty);
    // Rows of planes with tables of their own.
    let mut card = Card::new(Memory::new(regs::LAYOUT_TCAM, 2, [0; 4], 16)).unwrap();
    card.load(&[program(1, 4, routes[..5].to_vec())]).unwrap();
    let rows = card.memory(&HashMap::new());
    assert_eq!((rows.unit.as_str(), rows.networks[0].own, rows.networks[0].marginal), ("rows", 5, 5));
    let bank = &rows.banks[0];
    assert_eq!((bank.used, bank.network_max.map(|each| each * 2)), (5, Some(bank.max)));
}

#[test]
fn updates_of_missing_routes_change_nothing() {
    let mut card = Card::new(dag36(4096, 8)).unwrap();
    card.load(&[program(1, 2, vec![("10.0.0.0/8".parse().unwrap(), hop(1))])]).unwrap();
    card.device().registers().take_journal();
    let prefix: Prefix4 = "10.1.0.0/16".parse().unwrap();
    let text = |result: Result<Refusals, SubstrateError>| result.unwrap_err().to_string();
    assert_eq!(text(card.update(vid(2), &Update::of_routes::<u32>(&[]))), "network 2 is not loaded");
    assert_eq!(text(card.update(vid(2), &Update::of_hops(&[]))), "network 2 is not loaded");
    assert_eq!(
        text(card.update(vid(1), &Update::of_routes(&[(prefix, Some(hop(2)))]))),
        "network 'net1': route 10.1.0.0/16 names next hop 2 of 2"
    );
    let far = Adjacency::forward(PORT, own(9), own(3), 1500);
    let refused = text(card.update(vid(1), &Update::of_hops(&[(hop(0), neighbour(1, 7)), (hop(1), far)])));
    assert!(refused.ends_with("the network does not have this address on that port"), "{refused}");
    let refused = text(card.update(vid(1), &Update::of_hops(&[(hop(8), neighbour(1, 7))])));
    assert_eq!(
        refused,
        "network 'net1' needs 9 next hops in one run, beside other networks' runs: image memo has 8"
    );
    card.update(vid(1), &Update::of_routes(&[(prefix, None)])).unwrap();
    assert!(card.device().registers().take_journal().is_empty());
    // No image has slots of groups.
    let groups = [(hop(1), Slots::new(vec![hop(0), hop(0)]).unwrap())];
    assert_eq!(
        text(card.update(vid(1), &Update::of_hops(&[(hop(0), neighbour(1, 7))]).with_groups(&groups))),
        "network 'net1' needs 2 slots of groups of next hops: image memo has 0"
    );
    let mut grouped = program(2, 2, Vec::new());
    grouped.next_hops[1] = Adjacency::group(0);
    grouped.groups = groups.to_vec();
    assert_eq!(
        card.load(&[grouped]).unwrap_err().to_string(),
        "network 'net2' needs 2 slots of groups of next hops: image memo has 0"
    );
    assert!(card.device().registers().take_journal().is_empty());
    // Up to the last row; the rows between were never set.
    card.update(vid(1), &Update::of_hops(&[(hop(7), neighbour(1, 7))])).unwrap();
    assert_eq!(card.programs().next().unwrap().next_hops[6], Adjacency::NONE);
}

/// This many routes, from /9 to /32, and one more.
fn table(count: u32) -> (Vec<(Prefix4, NextHop)>, impl Iterator<Item = Prefix4>) {
    let mut state = 1u32;
    let mut random = move || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state >> 8
    };
    let mut prefix = move || {
        let addr = (10 << 24) + random() % (1 << 24);
        Prefix4::containing(addr, 9 + (random() % 24) as u8)
    };
    let mut routes = BTreeMap::new();
    while routes.len() < count as usize {
        routes.insert(prefix(), hop(routes.len() as u16 % 4));
    }
    (routes.into_iter().collect(), std::iter::from_fn(move || Some(prefix())))
}

/// The register writes of a change grow with the number of nodes on its path, not with the table.
#[test]
fn the_cost_of_a_change_follows_its_size() {
    const CHANGES: u64 = 200;
    let mut costs = Vec::new();
    for count in [250, 4000] {
        let (routes, others) = table(count);
        let mut card = Card::new(dag36(1 << 16, 64)).unwrap();
        card.device().registers().writes = 0;
        card.load(&[program(1, 4, routes)]).unwrap();
        let load = std::mem::take(&mut card.device().registers().writes);
        for prefix in others.take(CHANGES as usize) {
            card.device().registers().take_journal();
            card.update(vid(1), &Update::of_routes(&[(prefix, Some(hop(3)))])).unwrap();
            let rows = card.device().registers().take_journal().len();
            assert!(rows <= 4 * 256 + 1, "{count} routes, {prefix}: {rows} rows");
        }
        let change = std::mem::take(&mut card.device().registers().writes) / CHANGES;
        card.update(vid(1), &Update::of_hops(&[(hop(2), neighbour(1, 9))])).unwrap();
        let one = card.device().registers().writes;
        assert!(one <= 8, "a next hop: {one} register writes");
        costs.push((load, change));
    }
    let [(_, small), (load, large)] = costs[..] else { panic!("{costs:?}") };
    assert!(large < 3 * small, "16 times the routes: {costs:?}");
    assert!(load > 40 * large, "a whole table against a change: {costs:?}");
}

/// A card that sometimes returns arbitrary answers.
struct Babble {
    memory: Memory,
    random: u64,
    /// One answer in this many is arbitrary.
    rare: u64,
}

impl Registers for Babble {
    fn read(&mut self, address: u32) -> Result<u32, AccessError> {
        let sound = self.memory.read(address)?;
        // xorshift64
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        let value = (self.random >> 32) as u32;
        Ok(match (self.random % self.rare, self.random >> 20 & 3) {
            (0, 0) => value,
            (0, 1) => sound ^ 1 << (value & 31),
            (0, 2) => u32::MAX,
            (0, _) => 0,
            _ => sound,
        })
    }

    fn write(&mut self, address: u32, value: u32) -> Result<(), AccessError> {
        self.memory.write(address, value)
    }
}

proptest! {
    /// Whatever a card answers, the result is a value or an error, after no more reads than the driver allows, and
    /// never a panic.
    #[test]
    fn no_answer_panics(seed in 1..u64::MAX, rare in prop::sample::select(vec![3u64, 10, 100, 1_000]), tcam: bool) {
        let memory = || if tcam { Memory::new(regs::LAYOUT_TCAM, 3, [0; 4], PLANE_ROWS) } else { dag36(4096, 64) };
        let babble = Babble { memory: memory(), random: seed, rare: u64::MAX };
        let mut card = Card::new(babble).unwrap();
        card.device().registers().rare = rare;
        for number in 1..4 {
            let routes = vec![("10.0.0.0/8".parse().unwrap(), hop(1)), ("10.1.0.0/16".parse().unwrap(), hop(0))];
            let _ = card.load(&[program(number, 2, routes)]);
            let _ = card.update(vid(number), &Update::of_routes(&[("10.2.0.0/16".parse::<Prefix4>().unwrap(), Some(hop(1)))]));
            let _ = card.update(vid(number), &Update::of_hops(&[(hop(0), neighbour(number, 5))]));
            let _ = card.read_counters(vid(number));
            let _ = (card.read_bytes(vid(number)), card.read_passed_by(vid(number)));
            let _ = (card.read_unclaimed(), card.take_events(), card.repair(), card.reads());
            let _ = card.set_gates(number.into(), true);
            let _ = card.device().read_row::<HopRow>(0);
        }
        for number in 1..4 {
            let _ = card.unload(&[vid(number)]);
        }
        // A new driver takes over the card; most of these cards are not recognised.
        let _ = Card::new(Babble { memory: memory(), random: seed, rare: rare * 100 });
    }
}
