//! Properties of both schedulers for random sites and networks, and cases worked out by hand.

use hue_tables::dir::{Dir, DirLimits};
use hue_tables::{Change, NextHop, Prefix4, Vid};
use proptest::prelude::*;

use super::traffic::{Counted, Rates};
use super::*;

const M: u64 = 1_000_000;

fn demand(name: &str, mbps: u64) -> Demand {
    Demand {
        name: name.to_owned(),
        kind: Kind::Ipv4,
        route_by: RouteBy::Destination,
        ports: ["p0", "p1"].map(str::to_owned).into(),
        bound: None,
        bandwidth_bps: mbps * M,
        latency: Latency::Normal,
        placement: Placement::Auto,
        routes: 10,
        locals: 2,
        neighbours: 0,
        hops: 4,
        macs: 0,
        slots: 0,
        entries: 0,
        policies: PolicyRows::default(),
        shape: None,
        now: None,
    }
}

#[test]
fn a_place_without_enough_bandwidth_is_reported() {
    let at = |name: &str, mbps, now| Demand { now: Some(now), ..demand(name, mbps) };
    let site = site(1, 100, 4);
    let demands = [
        at("big", 400, Side::Card),
        at("idle", 0, Side::Card),
        at("one", 60, Side::Soft),
        at("small", 30, Side::Card),
        at("two", 70, Side::Card),
    ];
    let lacks = |name, to| lacks_bandwidth(&site, &demands, name, to);
    assert_eq!(
        lacks("big", Side::Soft).unwrap(),
        "it needs 400 Mbit/s but would get 40 Mbit/s: software forwards 100 Mbit/s on each of 1 cores, shared with other networks"
    );
    assert_eq!(
        (lacks("small", Side::Soft), lacks("idle", Side::Soft), lacks("one", Side::Card)),
        (None, None, None)
    );
    assert!(
        lacks("two", Side::Soft).is_some_and(|why| why.contains("would get 40")),
        "{:?}",
        lacks("two", Side::Soft)
    );
    assert_eq!(lacks("nobody", Side::Soft), None);
    // The message names the network that is served now and would not be then.
    let mut first = demands.clone();
    first[2].bandwidth_bps = 95 * M;
    let why = lacks_bandwidth(&site, &first, "small", Side::Soft).unwrap();
    assert!(why.contains("needs 30") && why.contains("'one'") && why.contains("95"), "{why}");
}

#[test]
fn a_drained_card_gets_no_network_and_loses_those_that_it_has() {
    let drained =
        |site: Site| Site { card: site.card.map(|card| CardSite { drained: true, ..card }), ..site };
    let at = |name: &str, mbps, placement, now| Demand { placement, now, ..demand(name, mbps) };
    let (auto, card) = (Placement::Auto, Placement::Card);
    let demands = [
        at("big", 400, auto, Some(Side::Card)),
        at("kept", 10, card, Some(Side::Card)),
        Demand { latency: Latency::Low, ..at("new", 10, auto, None) },
        at("soft", 10, Placement::Soft, Some(Side::Soft)),
    ];
    let site = site(1, 100, 4);
    for kind in [SchedulerKind::Greedy, SchedulerKind::Exact] {
        let made = schedule(&drained(site.clone()), &demands, kind);
        assert!(made.networks.iter().all(|network| network.side == Side::Soft), "{made:?}");
        let why_not = |name: &str| made.network(name).unwrap().why_not.clone();
        assert_eq!([why_not("big"), why_not("kept"), why_not("new")], [DRAINED; 3]);
        assert_eq!(why_not("soft"), "its document says soft");
        // What undrain does not change is said first.
        let elsewhere = Demand { ports: ["n0".to_owned()].into(), ..demand("elsewhere", 1) };
        let alone = schedule(&drained(site.clone()), &[elsewhere], kind);
        assert_eq!(alone.networks[0].why_not, "its port 'n0' is not a port of the card");
        let moves: Vec<&str> = made.moves.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(moves, ["big", "kept"]);
        // Those that want the card return when it is no longer drained.
        let back = schedule(&site, &moved(&demands, &made), kind);
        let on_card: Vec<&str> =
            sides(&back).into_iter().filter(|one| one.1 == Side::Card).map(|one| one.0).collect();
        assert_eq!(on_card, ["big", "kept", "new"]);
    }
}

/// Also when the document asks for the card (one that an earlier version accepted), or for low latency.
#[test]
fn a_network_that_tunnels_bind_stays_in_software_until_they_do_not() {
    let site = site(1, 100, 4);
    let why = "it is a switch with tunnels";
    let demands = |bound| {
        let with = |demand: Demand| Demand { bound, ..demand };
        let at = |placement, latency, name: &str| Demand { placement, latency, ..demand(name, 400) };
        [
            with(at(Placement::Auto, Latency::Normal, "busy")),
            with(at(Placement::Card, Latency::Normal, "named")),
            with(at(Placement::Auto, Latency::Low, "quick")),
        ]
    };
    for kind in [SchedulerKind::Greedy, SchedulerKind::Exact] {
        let made = schedule(&site, &demands(Some(why)), kind);
        for network in &made.networks {
            assert_eq!((network.side, network.why_not.as_str()), (Side::Soft, why));
        }
        let after = schedule(&site, &moved(&demands(None), &schedule(&site, &demands(None), kind)), kind);
        assert!(after.networks.iter().all(|network| network.side == Side::Card), "{after:?}");
    }
}

#[test]
fn a_network_with_entries_needs_rows_of_the_card() {
    let with = |entries, name: &str| Demand { kind: Kind::Extract, entries, ..demand(name, 400) };
    let mut site = site(1, 100, 4);
    let card = site.card.as_mut().unwrap();
    (card.kinds, card.entries, card.entries_each) = (vec![Kind::Extract], 64, 40);
    let many = schedule(&site, &[with(41, "red")], SchedulerKind::Greedy);
    assert_eq!(many.networks[0].why_not, "it has 41 entries, but a network on image 'test' has at most 40");
    let both = schedule(&site, &[with(37, "red"), with(25, "blue")], SchedulerKind::Greedy);
    let lacks: Vec<&str> =
        both.networks.iter().filter(|one| one.side == Side::Soft).map(|one| &*one.why_not).collect();
    assert_eq!(lacks, ["it needs 40 rows of entries, but the card has 36 of 64 left"]);
}

#[test]
fn a_network_with_groups_needs_slots_of_the_card() {
    let with = |slots, name: &str| Demand { slots, ..demand(name, 400) };
    let demands = [with(256, "spread"), with(0, "plain")];
    let mut site = site(1, 100, 4);
    for kind in [SchedulerKind::Greedy, SchedulerKind::Exact] {
        site.card.as_mut().unwrap().slots = 0;
        let made = schedule(&site, &demands, kind);
        assert_eq!(sides(&made), [("plain", Side::Card), ("spread", Side::Soft)]);
        let why = &made.network("spread").unwrap().why_not;
        assert_eq!(why, "it needs 256 slots of groups of next hops, but image 'test' has 0");
        site.card.as_mut().unwrap().slots = 256;
        let made = schedule(&site, &demands, kind);
        assert!(made.networks.iter().all(|network| network.side == Side::Card), "{made:?}");
    }
}

#[test]
fn a_network_with_routes_by_source_needs_rows_of_the_card() {
    let with = |name: &str, ranges, pairs, rules| Demand {
        route_by: RouteBy::SourceDestination,
        policies: PolicyRows { ranges, pairs, rules },
        ..demand(name, 400)
    };
    let demands = [with("far", 40, 90, 9), with("near", 30, 40, 4), demand("plain", 400)];
    for kind in [SchedulerKind::Greedy, SchedulerKind::Exact] {
        let made = |policies| {
            let mut site = site(1, 100, 4);
            site.card.as_mut().unwrap().policies = policies;
            schedule(&site, &demands, kind)
        };
        let why_not = |made: &Schedule, name: &str| made.network(name).unwrap().why_not.clone();
        let none = made(PolicyRows::default());
        assert_eq!(sides(&none), [("far", Side::Soft), ("near", Side::Soft), ("plain", Side::Card)]);
        let why = "image 'test' has no routes by source (route_by source_destination)";
        assert_eq!(why_not(&none, "far"), why);
        let few = made(PolicyRows { ranges: 128, pairs: 64, rules: 16 });
        assert_eq!(sides(&few), [("far", Side::Soft), ("near", Side::Card), ("plain", Side::Card)]);
        let why = "it needs 90 pairs of ranges of routes by source, but image 'test' has 64";
        assert_eq!(why_not(&few, "far"), why);
        // Each fits alone.
        let one = made(PolicyRows { ranges: 64, pairs: 256, rules: 16 });
        assert_eq!(one.networks.iter().filter(|network| network.side == Side::Card).count(), 2);
        let left = one.networks.iter().find(|network| network.side == Side::Soft).unwrap();
        let whys = [
            "it needs 40 ranges of addresses of routes by source, but the card has 34 of 64 left",
            "it needs 30 ranges of addresses of routes by source, but the card has 24 of 64 left",
        ];
        assert!(whys.contains(&left.why_not.as_str()), "{left:?}");
        let both = made(PolicyRows { ranges: 128, pairs: 256, rules: 16 });
        assert!(both.networks.iter().all(|network| network.side == Side::Card), "{both:?}");
        let uses = |what: &str| both.uses.iter().find(|one| one.what == what).map(|one| (one.used, one.max));
        assert_eq!(uses("card routes by source"), Some((13, 16)));
        assert_eq!(uses("card pairs of ranges of routes by source"), Some((130, 256)));
    }
}

#[test]
fn networks_that_software_cannot_serve_are_named() {
    let at = |name: &str, mbps, now| Demand { now: Some(now), ..demand(name, mbps) };
    let site = site(2, 100, 4);
    let demands = [
        at("big", 400, Side::Card),
        at("idle", 0, Side::Card),
        at("short", 300, Side::Soft), // it does not get its bandwidth now either
        at("small", 60, Side::Card),
    ];
    let lacks = lacks_without_card(&site, &demands);
    assert_eq!(lacks.iter().map(|one| one.0.as_str()).collect::<Vec<_>>(), ["big"], "{lacks:?}");
    assert!(lacks[0].1.starts_with("it needs 400 Mbit/s but would get "), "{lacks:?}");
    assert_eq!(lacks_without_card(&site, &demands[1..2]), []);
}

fn site(cores: u16, core_mbps: u64, places: u32) -> Site {
    Site {
        soft: SoftSite { cores, core_bps: core_mbps * M },
        card: (places > 0).then(|| CardSite {
            image: "test".to_owned(),
            kinds: vec![Kind::Ipv4],
            ports: ["p0", "p1", "p2"].map(str::to_owned).into(),
            networks_max: places,
            table: TableSite::Shared { words: 10_000, hops: 500 },
            macs: 1_000,
            slots: 0,
            entries: 0,
            entries_each: 0,
            policies: PolicyRows::default(),
            bps: 10_000 * M,
            drained: false,
        }),
        ports: BTreeMap::new(),
        move_cost_bps: M,
    }
}

fn sides(schedule: &Schedule) -> Vec<(&str, Side)> {
    schedule.networks.iter().map(|network| (network.name.as_str(), network.side)).collect()
}

/// The same networks at their scheduled places.
fn moved(demands: &[Demand], schedule: &Schedule) -> Vec<Demand> {
    let now = |demand: &Demand| schedule.network(&demand.name).map(|network| network.side);
    demands.iter().map(|demand| Demand { now: now(demand), ..demand.clone() }).collect()
}

#[test]
fn low_throughput_goes_to_software_and_the_rest_to_the_card() {
    let demands = [demand("big", 800), demand("mid", 300), demand("small", 50), demand("tiny", 5)];
    let made = schedule(&site(1, 500, 4), &demands, SchedulerKind::Greedy);
    assert_eq!(
        sides(&made),
        [("big", Side::Card), ("mid", Side::Soft), ("small", Side::Soft), ("tiny", Side::Soft)]
    );
    assert_eq!((made.served_bps(), made.needed_bps()), (1_155 * M, 1_155 * M));
    let big = made.network("big").unwrap();
    assert_eq!(
        big.why,
        "its 800 Mbit/s do not fit in software beside the other networks: a core has 500 Mbit/s"
    );
    assert_eq!(big.why_not, "software would serve 655 Mbit/s less");
    let tiny = made.network("tiny").unwrap();
    assert_eq!(
        (tiny.why.as_str(), tiny.why_not.as_str()),
        ("core 0 serves its 5 Mbit/s", "the card would serve no more")
    );
    assert!(made.moves.is_empty(), "they are all new");
}

#[test]
fn documents_decide_first_and_reasons_name_the_limit() {
    let mut site = site(2, 1_000, 2);
    let pinned = |name: &str, placement| Demand { placement, ..demand(name, 10) };
    let mut wide = demand("wide", 10);
    wide.ports.insert("n0".to_owned());
    let demands = [
        pinned("a", Placement::Card),
        pinned("b", Placement::Soft),
        Demand { latency: Latency::Low, routes: 20, ..demand("c", 0) },
        Demand { latency: Latency::Low, routes: 30, ..demand("d", 0) },
        Demand { routes: 3_000, ..demand("e", 5_000) },
        wide,
        Demand { route_by: RouteBy::Source, ..pinned("f", Placement::Card) },
    ];
    for kind in SchedulerKind::ALL {
        let made = schedule(&site, &demands, kind);
        let why_not = |name: &str| made.network(name).unwrap().why_not.clone();
        assert_eq!(made.network("a").unwrap().side, Side::Card);
        assert_eq!(made.network("c").unwrap().side, Side::Card);
        assert_eq!(made.networks.iter().filter(|network| network.side == Side::Card).count(), 2);
        assert_eq!(why_not("b"), "its document says soft");
        assert_eq!(why_not("d"), "the card has no places for networks left (2 in total)");
        assert_eq!(why_not("e"), "it needs 12032 words, but image 'test' has 10000");
        assert_eq!(why_not("f"), "image 'test' has no routes by source (route_by source)");
        assert_eq!(why_not("wide"), "its port 'n0' is not a port of the card");
    }
    site.card = None;
    let made = schedule(&site, &demands, SchedulerKind::Exact);
    assert!(made.networks.iter().all(|network| network.side == Side::Soft));
    assert_eq!(made.network("a").unwrap().why_not, "the node has no card");
}

#[test]
fn a_move_must_be_worth_its_cost() {
    let mut site = site(1, 100, 1);
    let mut demands = vec![
        Demand { now: Some(Side::Card), ..demand("a", 100) },
        Demand { now: Some(Side::Soft), ..demand("b", 105) },
    ];
    site.move_cost_bps = 3 * M;
    for kind in SchedulerKind::ALL {
        let made = schedule(&site, &demands, kind);
        assert!(made.moves.is_empty(), "two moves for 5 Mbit/s: {:?}", made.moves);
        assert_eq!(
            made.network("b").unwrap().why_not,
            "the card has no places for networks left (1 in total)"
        );
    }
    demands[1].bandwidth_bps = 107 * M;
    for kind in SchedulerKind::ALL {
        let made = schedule(&site, &demands, kind);
        let moves: Vec<_> = made.moves.iter().map(|one| (one.name.as_str(), one.from, one.to)).collect();
        assert_eq!(moves, [("a", Side::Card, Side::Soft), ("b", Side::Soft, Side::Card)]);
    }
}

/// The scheduler must give the same answer again while the moves of its answer are being made.
#[test]
fn networks_that_need_not_move_stay_when_another_must() {
    let site = site(1, 100, 4);
    let at = |name: &str, mbps, now| Demand { now: Some(now), ..demand(name, mbps) };
    let mut demands =
        [at("grows", 600, Side::Soft), at("small", 30, Side::Soft), at("shrinks", 10, Side::Card)];
    for kind in SchedulerKind::ALL {
        let made = schedule(&site, &demands, kind);
        let moves: Vec<_> = made.moves.iter().map(|one| (one.name.as_str(), one.from, one.to)).collect();
        assert_eq!(moves, [("grows", Side::Soft, Side::Card)], "{kind:?}");
        println!("{:?}", made.network("shrinks"));
    }
    demands[0].now = Some(Side::Card);
    for kind in SchedulerKind::ALL {
        assert!(schedule(&site, &demands, kind).moves.is_empty(), "{kind:?}");
    }
    // It makes room when there is none.
    let full = Site { card: site.card.clone().map(|card| CardSite { networks_max: 1, ..card }), ..site };
    demands[0].now = Some(Side::Soft);
    for kind in SchedulerKind::ALL {
        assert_eq!(schedule(&full, &demands, kind).moves.len(), 2, "{kind:?}");
    }
}

#[test]
fn exact_beats_greedy() {
    // Greedy packs the smallest networks first, and then the largest ones do not all fit on the card. Exact
    // puts those on the card.
    let site = site(2, 1_000, 2);
    let demands: Vec<Demand> = [600, 600, 600, 400, 400, 900]
        .iter()
        .zip('a'..)
        .map(|(mbps, name)| demand(&name.to_string(), *mbps))
        .collect();
    let greedy = schedule(&site, &demands, SchedulerKind::Greedy);
    let exact = schedule(&site, &demands, SchedulerKind::Exact);
    assert_eq!(
        (exact.served_bps(), exact.scheduler, exact.note.as_deref()),
        (3_500 * M, SchedulerKind::Exact, None)
    );
    assert!(greedy.served_bps() < exact.served_bps(), "{}", greedy.served_bps());
}

#[test]
fn too_many_networks_are_scheduled_by_greedy() {
    let demands: Vec<Demand> = (0..=NETWORKS_MAX).map(|at| demand(&format!("n{at}"), 1)).collect();
    let made = schedule(&site(2, 100, 8), &demands, SchedulerKind::Exact);
    assert_eq!(made.scheduler, SchedulerKind::Greedy);
    assert_eq!(
        made.note.as_deref(),
        Some("513 networks exceed the solver's limit of 512; this is the greedy schedule")
    );
    assert_eq!(
        schedule(&site(2, 100, 8), &demands[1..], SchedulerKind::Exact).scheduler,
        SchedulerKind::Exact
    );
}

#[test]
fn the_current_placement_is_explained() {
    let now = |side, name: &str, mbps| Demand { now: Some(side), ..demand(name, mbps) };
    let demands = [now(Side::Card, "a", 5), now(Side::Soft, "b", 400), demand("c", 0)];
    let made = current(&site(2, 300, 4), &demands);
    assert_eq!(sides(&made), [("a", Side::Card), ("b", Side::Soft), ("c", Side::Soft)]);
    assert!(made.moves.is_empty());
    let reasons =
        |name: &str| made.network(name).map(|one| (one.why.as_str(), one.why_not.as_str())).unwrap();
    assert_eq!(
        reasons("a"),
        ("it already runs there, and no move is worthwhile", "software would serve no more")
    );
    assert_eq!(
        reasons("b"),
        (
            "core 0 serves 300 Mbit/s of its 400 Mbit/s",
            "the card would serve 100 Mbit/s more, but a move costs 1 Mbit/s"
        )
    );
    assert_eq!(reasons("c"), ("it needs no bandwidth", "the card would serve no more"));
}

#[test]
fn an_empty_schedule() {
    for kind in SchedulerKind::ALL {
        let made = schedule(&site(1, 1, 0), &[], kind);
        assert_eq!((made.networks.len(), made.served_bps(), made.note), (0, 0, None));
    }
}

#[test]
fn rates_are_formatted() {
    for (bps, text) in [
        (0, "0 bit/s"),
        (999, "999 bit/s"),
        (1_500, "1.5 kbit/s"),
        (12_340_000, "12.3 Mbit/s"),
        (100_000_000, "100 Mbit/s"),
        (2_000_000_000, "2 Gbit/s"),
    ] {
        assert_eq!(rate(bps), text);
    }
}

fn any_side() -> impl Strategy<Value = Option<Side>> {
    prop_oneof![Just(None), Just(Some(Side::Card)), Just(Some(Side::Soft))]
}

prop_compose! {
    fn any_demand()(
        mbps in prop_oneof![Just(0u64), 1..50u64, 1..2_000u64],
        ports in prop::collection::btree_set(0..5usize, 1..3),
        (low, placement) in (prop::bool::weighted(0.15), prop_oneof![
            6 => Just(Placement::Auto), 1 => Just(Placement::Card), 1 => Just(Placement::Soft)]),
        routes in prop_oneof![8 => 2..200u32, 1 => 2..4_000u32],
        neighbours in 0..40u32,
        hops in 1..60u32,
        macs in prop_oneof![4 => Just(0u32), 1 => 1..600u32],
        slots in prop_oneof![4 => Just(0u32), 1 => 64..4_096u32],
        (ranges, pairs, rules) in prop_oneof![4 => Just((0u32, 0u32, 0u32)), 1 => (2..60u32, 1..90u32, 0..9u32)],
        now in any_side(),
    ) -> Demand {
        Demand {
            route_by: if ranges > 0 { RouteBy::Source } else { RouteBy::Destination },
            policies: PolicyRows { ranges, pairs, rules },
            ports: ports.into_iter().map(|port| format!("p{port}")).collect(),
            latency: if low { Latency::Low } else { Latency::Normal },
            bandwidth_bps: mbps * M,
            placement, routes, locals: 2, neighbours, hops, macs, slots, now,
            ..demand("", 0)
        }
    }
}

prop_compose! {
    fn any_site()(
        cores in 1..5u16,
        core_mbps in 1..2_000u64,
        card in prop::option::weighted(0.9, (1..8u32, prop_oneof![
            (50..4_000u32, 1..40u32, any::<bool>(), 1..80u32)
                .prop_map(|(routes, locals, neighbours, hops)| TableSite::Each { routes, locals, neighbours, hops }),
            (100..20_000u64, 1..200u32).prop_map(|(words, hops)| TableSite::Shared { words, hops }),
        ], (1..1_000u32, prop_oneof![Just(0u32), 64..5_000u32], prop::bool::ANY), 1..8_000u64, prop::collection::btree_set(0..5usize, 1..5), prop::bool::weighted(0.1))),
        ports in prop::collection::btree_map((0..5usize).prop_map(|port| format!("p{port}")), (1..3_000u64).prop_map(|mbps| mbps * M), 0..3),
        move_cost_bps in prop_oneof![1..5 * M, 1..100 * M],
    ) -> Site {
        Site {
            soft: SoftSite { cores, core_bps: core_mbps * M },
            card: card.map(|(networks_max, table, (macs, slots, policies), mbps, ports, drained)| CardSite {
                ports: ports.into_iter().map(|port| format!("p{port}")).collect(),
                policies: match table {
                    TableSite::Shared { .. } if policies => PolicyRows { ranges: 128, pairs: 128, rules: 16 },
                    _ => PolicyRows::default(),
                },
                networks_max, table, macs, slots, drained, bps: mbps * M,
                image: "test".to_owned(),
                kinds: vec![Kind::Ipv4],
                entries: 0,
                entries_each: 0,
            }),
            ports, move_cost_bps,
        }
    }
}

fn any_demands(most: usize) -> impl Strategy<Value = Vec<Demand>> {
    prop::collection::vec(any_demand(), 0..most).prop_map(|mut demands| {
        let name = |at: usize| format!("n{at:03}");
        demands.iter_mut().enumerate().for_each(|(at, demand)| demand.name = name(at));
        demands
    })
}

/// Checks the invariants of a schedule, recomputed from the site and the networks.
fn check(site: &Site, demands: &[Demand], made: &Schedule) {
    assert_eq!(made.networks.len(), demands.len());
    let mut cores = vec![0; usize::from(site.soft.cores)];
    let (mut on_card, mut card_bps, mut words, mut hops, mut macs) = (0, 0, 0, 0, 0);
    let mut policies = PolicyRows::default();
    let mut ports: BTreeMap<&str, u64> = BTreeMap::new();
    for (network, demand) in made.networks.iter().zip(demands) {
        assert_eq!(network.name, demand.name);
        assert!(network.served_bps <= demand.bandwidth_bps);
        assert!(!network.why.is_empty() && !network.why_not.is_empty());
        demand.ports.iter().for_each(|port| *ports.entry(port).or_default() += network.served_bps);
        if demand.placement == Placement::Soft {
            assert_eq!(network.side, Side::Soft);
        }
        match (network.side, network.core) {
            (Side::Soft, Some(core)) => cores[usize::from(core)] += network.served_bps,
            (Side::Card, None) => {
                let card = site.card.as_ref().unwrap();
                assert!(!card.drained);
                assert!(demand.ports.is_subset(&card.ports));
                (on_card, card_bps) = (on_card + 1, card_bps + network.served_bps);
                macs += demand.macs;
                policies.ranges += demand.policies.ranges;
                policies.pairs += demand.policies.pairs;
                policies.rules += demand.policies.rules;
                if demand.macs == 0 {
                    words += 32 + 4 * u64::from(demand.routes);
                    hops += demand.hops;
                }
                if demand.macs == 0
                    && let TableSite::Each { routes, locals, neighbours, hops } = card.table
                {
                    let room = if neighbours { locals.saturating_sub(demand.locals) } else { 0 };
                    let others = demand.routes.saturating_sub(demand.locals + demand.neighbours.min(room));
                    assert!(others <= routes && demand.locals <= locals && demand.hops <= hops);
                }
            }
            other => panic!("{other:?}"),
        }
    }
    assert!(cores.iter().all(|used| *used <= site.soft.core_bps));
    assert!(ports.iter().all(|(port, used)| site.ports.get(*port).is_none_or(|most| used <= most)));
    if let Some(card) = &site.card {
        assert!(on_card <= card.networks_max && card_bps <= card.bps);
        let PolicyRows { ranges, pairs, rules } = card.policies;
        assert!(policies.ranges <= ranges && policies.pairs <= pairs && policies.rules <= rules);
        if let TableSite::Shared { words: words_max, hops: hops_max } = card.table {
            assert!(words <= words_max && hops <= hops_max && macs <= card.macs);
        }
        // A network whose document requests the card is elsewhere only if it does not fit beside others that
        // also request it.
        let asks = |network: &&Scheduled| network.placement == Placement::Card;
        let left_out = made.networks.iter().filter(asks).any(|network| {
            let whole =
                ["a port of the card", "image 'test'"].iter().any(|word| network.why_not.contains(word));
            network.side == Side::Soft && !whole
        });
        let others = made.networks.iter().any(|network| {
            network.side == Side::Card
                && network.placement == Placement::Auto
                && network.latency == Latency::Normal
        });
        if left_out && others {
            let TableSite::Shared { .. } = card.table else { panic!("{made:?}") };
        }
    }
    assert!(made.uses.iter().all(|one| one.used <= one.max), "{:?}", made.uses);
    let moved = made.networks.iter().filter(|network| network.now.is_some_and(|now| now != network.side));
    assert_eq!(moved.count(), made.moves.len());
}

/// Checks the checker: it must detect a network on the wrong side, a core that serves too much, and a card
/// with too many networks.
#[test]
fn the_check_detects_planted_faults() {
    let site = site(1, 500, 1);
    let demands =
        [demand("a", 900), Demand { placement: Placement::Soft, ..demand("b", 100) }, demand("c", 300)];
    let made = schedule(&site, &demands, SchedulerKind::Greedy);
    check(&site, &demands, &made);
    let plants: [fn(&mut Schedule); 4] = [
        |made| (made.networks[1].side, made.networks[1].core) = (Side::Card, None),
        |made| (made.networks[0].side, made.networks[0].core) = (Side::Soft, Some(0)),
        |made| (made.networks[2].side, made.networks[2].core) = (Side::Card, None),
        |made| made.networks[2].served_bps += 1,
    ];
    for plant in plants {
        let mut planted = made.clone();
        plant(&mut planted);
        let seen = std::panic::catch_unwind(|| check(&site, &demands, &planted));
        assert!(seen.is_err(), "{planted:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Capacities hold, documents are respected, the same input gives the same result, and a second run moves
    /// nothing.
    #[test]
    fn greedy_respects_all_invariants(site in any_site(), demands in any_demands(40)) {
        let made = schedule(&site, &demands, SchedulerKind::Greedy);
        check(&site, &demands, &made);
        prop_assert_eq!(&made, &schedule(&site, &demands, SchedulerKind::Greedy));
        let again = schedule(&site, &moved(&demands, &made), SchedulerKind::Greedy);
        prop_assert_eq!(again.moves, Vec::new());
    }

    /// The same for the exact scheduler, which is never worse than the greedy one.
    #[test]
    fn exact_respects_all_invariants_and_is_never_worse(site in any_site(), demands in any_demands(14)) {
        let greedy = schedule(&site, &demands, SchedulerKind::Greedy);
        let made = schedule(&site, &demands, SchedulerKind::Exact);
        check(&site, &demands, &made);
        prop_assert!(made.value_bps() >= greedy.value_bps(), "{} < {}", made.value_bps(), greedy.value_bps());
        prop_assert_eq!(&made, &schedule(&site, &demands, SchedulerKind::Exact));
        let again = schedule(&site, &moved(&demands, &made), SchedulerKind::Exact);
        if made.note.is_none() && again.note.is_none() {
            prop_assert_eq!(again.moves, Vec::new());
        }
    }

    /// No placement is better than the exact schedule.
    #[test]
    fn exact_is_optimal(site in any_site(), demands in any_demands(7)) {
        let mut site = site;
        // With limited ports, the served bandwidth depends on more than places.
        site.ports.clear();
        site.soft.cores = site.soft.cores.min(2);
        let made = schedule(&site, &demands, SchedulerKind::Exact);
        let best = all(&site, &demands);
        let least = best as f64 - 1e-6 * (best as f64).abs() - 10.0;
        prop_assert!(made.note.is_some() || made.value_bps() as f64 >= least, "{} of {best}", made.value_bps());
    }

    /// Rates that vary by a fifth around their mean move nothing once they are known.
    #[test]
    fn noise_moves_nothing(
        site in any_site(),
        demands in any_demands(12),
        noise in prop::collection::vec(prop::collection::vec(0.8f64..1.2, 12), 150),
        exact in any::<bool>(),
    ) {
        let kind = if exact { SchedulerKind::Exact } else { SchedulerKind::Greedy };
        let mut rates = Rates::default();
        let mut counted = vec![Counted::default(); demands.len()];
        let (mut now, mut moves) = (demands.clone(), Vec::new());
        for (second, noise) in noise.iter().enumerate() {
            for ((demand, counted), noise) in demands.iter().zip(&mut counted).zip(noise) {
                rates.insert(&demand.name, second as u64 * 1_000, *counted);
                counted.bytes += (demand.bandwidth_bps as f64 * noise / 8.0) as u64;
                counted.frames += 1_000;
            }
            if second % 10 == 0 && second >= 40 {
                let measured = |demand: &Demand| rates.rate(&demand.name).unwrap_or(demand.bandwidth_bps);
                let asked: Vec<Demand> =
                    now.iter().map(|demand| Demand { bandwidth_bps: measured(demand), ..demand.clone() }).collect();
                let made = schedule(&site, &asked, kind);
                now = moved(&now, &made);
                moves.push(if made.note.is_some() { 0 } else { made.moves.len() });
            }
        }
        prop_assert_eq!(&moves[1..], &vec![0; moves.len() - 1][..], "{:?}", moves);
    }
}

/// The highest value of all placements that documents allow, by trying all of them.
fn all(site: &Site, demands: &[Demand]) -> i128 {
    let demands: Vec<&Demand> = demands.iter().collect();
    let (fixed, _) = capacity::fixed(site, &demands);
    let cores = usize::from(site.soft.cores);
    let places = cores + 1;
    let mut best = i128::MIN;
    for code in 0..places.pow(demands.len() as u32) {
        let place = |at: usize| code / places.pow(at as u32) % places;
        let sides: Vec<Side> =
            (0..demands.len()).map(|at| if place(at) == cores { Side::Card } else { Side::Soft }).collect();
        if sides.iter().zip(&fixed).any(|(side, fixed)| fixed.is_some_and(|fixed| fixed != *side)) {
            continue;
        }
        let mut room = capacity::CardRoom::new(site);
        let fits = (0..demands.len()).all(|at| sides[at] == Side::Soft || room.take_if(demands[at]));
        if !fits {
            continue;
        }
        let core = |at: usize| (sides[at] == Side::Soft).then(|| place(at) as u16);
        let cores: Vec<Option<u16>> = (0..demands.len()).map(core).collect();
        let choice = serve::serve_at(site, &demands, &sides, &cores, None);
        best = best.max(choice.value(site, &demands));
    }
    best
}

/// A node whose card has two banks with a Conflict CAM.
fn banks(sets: u32, cam_rows: u32) -> Site {
    let mut site = site(1, 1, 64);
    if let Some(card) = &mut site.card {
        card.table = TableSite::Banks { sets, cam_rows, hops: 100 };
    }
    site
}

fn routes(of: &[(&str, u16)]) -> Vec<(Prefix4, NextHop)> {
    of.iter().map(|(prefix, hop)| (prefix.parse().unwrap(), NextHop::new(*hop).unwrap())).collect()
}

#[test]
fn networks_that_conflict_share_a_cam_and_reasons_have_figures() {
    let site = banks(2, 1);
    let on = |name: &str, mbps, of: &[(&str, u16)]| demand(name, mbps).in_banks(&routes(of));
    let demands = [
        on("apart", 600, &[("11.0.0.0/8", 1)]),
        on("first", 400, &[("10.0.0.0/8", 1), ("10.1.1.0/24", 2)]),
        on("large", 900, &[("12.0.1.0/24", 1), ("12.1.1.0/24", 1), ("12.2.1.0/24", 1)]),
        on("same", 500, &[("10.0.0.0/8", 1)]),
        on("third", 700, &[("10.0.0.0/9", 1)]),
        on("sets", 800, &[("13.0.1.0/24", 1), ("13.1.1.0/24", 1)]),
    ];
    for kind in [SchedulerKind::Greedy, SchedulerKind::Exact] {
        let made = schedule(&site, &demands, kind);
        let soft: Vec<_> = made
            .networks
            .iter()
            .filter(|one| one.side == Side::Soft)
            .map(|one| (one.name.as_str(), one.why_not.as_str()))
            .collect();
        assert_eq!(
            soft,
            [
                ("large", "it needs 3 sets of the second bank, but image 'test' has 2"),
                ("sets", "it needs 2 sets of the second bank, but the card has 1 of 2 left"),
                ("third", "the card has no rows of the Conflict CAM left (1 in total)"),
            ]
        );
        let rows = made.uses.iter().find(|one| one.what == "card rows of the Conflict CAM").unwrap();
        assert_eq!((rows.used, rows.max), (1, 1));
        assert_eq!(
            (made.scheduler, made.note.is_some()),
            (SchedulerKind::Greedy, kind == SchedulerKind::Exact)
        );
    }
    // Two default routes: nothing of the first bank is left for the second.
    let all = [on("a", 800, &[("0.0.0.0/0", 1)]), on("b", 900, &[("0.0.0.0/0", 1)])];
    let made = schedule(&banks(2, 32), &all, SchedulerKind::Greedy);
    let b = made.network("b").unwrap();
    assert_eq!(
        (b.side, b.why_not.as_str()),
        (Side::Soft, "the card has no entries of the first bank left (524288 in total)")
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// The model must say that a network fits exactly when the card's own table accepts it.
    #[test]
    fn two_banks_fit_as_on_the_card(
        networks in prop::collection::vec(
            prop::collection::vec((0_u32..3, 0_u32..6, 0_u32..64, 0_u8..=32, 0_u16..3), 1..12), 1..8),
        sets in 1u32..12, cam_rows in 1u32..12,
    ) {
        let site = banks(sets, cam_rows);
        let mut room = capacity::CardRoom::new(&site);
        let mut card = Dir::new(DirLimits { sets, cam_rows: cam_rows as usize });
        for (number, of) in (1..).zip(networks) {
            let vid = Vid::new(number).unwrap();
            let routes: BTreeMap<Prefix4, NextHop> = of
                .into_iter()
                // Prefixes of few bits would fill the bank.
                .map(|(net, slot, host, len, hop)| {
                    let at = (10 + net) << 24 | slot << 13 | host << 7;
                    let len = if len < 8 && len != 0 { 8 } else { len };
                    (Prefix4::containing(at, len), NextHop::new(hop).unwrap())
                })
                .collect();
            let routes: Vec<_> = routes.into_iter().collect();
            let demand = demand("one", 1).in_banks(&routes);
            let says = capacity::barred(&site, &demand).or_else(|| room.lacks(&demand));
            let changes: Vec<Change<u32>> = routes.iter().map(|(prefix, hop)| (*prefix, Some(*hop))).collect();
            card.add_network(vid).unwrap();
            let takes = card.apply(vid, &changes);
            prop_assert_eq!(says.is_none(), takes.is_ok(), "{:?} {:?}", says, takes);
            if takes.is_ok() {
                prop_assert!(room.take_if(&demand));
                let usage = card.usage();
                let uses = room.uses();
                let of = |what: &str| uses.iter().find(|one| one.0 == what).unwrap().1;
                prop_assert_eq!(of("sets of the second bank"), u64::from(usage.sets));
                prop_assert_eq!(of("rows of the Conflict CAM"), usage.cam_rows as u64);
                prop_assert_eq!(of("entries of the first bank"), (usage.slots + usage.cam_rows) as u64);
            }
        }
    }
}
