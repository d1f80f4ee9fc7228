//! Networks whose routes depend on sources, against their definition: which of all routes and policies is the best one.

use std::net::IpAddr;

use hue_demux::PortId;
use hue_planes::ipv4::Adjacency;
use hue_planes::{Kind, Settings};
use hue_soft::{BATCH_MAX, Batch, Fate, Soft};
use hue_substrate::{Entries, Program, ProgramError, Substrate, SubstrateError, Update};
use hue_tables::{
    AnyPrefix, Key, Limits, NextHop, Policies, Policy, PolicyError, Prefix, RouteBy, RowsByLength,
};
use hue_wire::Mac;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use crate::common::{mac, program, soft, vid};

/// An address of a family, from four bytes.
fn address(v6: bool, [a, b, c, d]: [u8; 4]) -> IpAddr {
    let wide = |high: u8, low: u8| u16::from(high) << 8 | u16::from(low);
    if v6 {
        IpAddr::from([0x2001, wide(a, b), 0, wide(c, 0), 0, 0, 0, wide(0, d)])
    } else {
        IpAddr::from([a, b, c, d])
    }
}

/// The prefix of an address whose length is `bytes` bytes of an IPv4 address, or as much of an IPv6 address.
fn prefix(v6: bool, of: [u8; 4], quarter: u8) -> AnyPrefix {
    let len = if v6 { [0, 24, 32, 64, 128][usize::from(quarter)] } else { quarter * 8 };
    AnyPrefix::containing(address(v6, of), len)
}

/// Where a route leads: rows of [`program`], 0 for the router itself, 1 for an unknown neighbour, 2 to 4 for ports 0 to 2.
const LOCAL: u16 = 0;
const GLEAN: u16 = 1;

/// The network's own address, on a link with three routers behind ports 0 to 2.
const OWN: [u8; 4] = [192, 168, 0, 1];

fn gateway(port: u8) -> [u8; 4] {
    [192, 168, 0, 10 + port]
}

/// A network as its document would describe it.
#[derive(Clone, Debug)]
struct World {
    v6: bool,
    by: RouteBy,
    /// Routes to ports.
    routes: Vec<(AnyPrefix, u8)>,
    /// Policies: from, to, port of the gateway.
    policies: Vec<(AnyPrefix, AnyPrefix, u8)>,
}

impl World {
    fn link(&self) -> AnyPrefix {
        prefix(self.v6, OWN, 3)
    }

    /// All routes of the table: prefix and row.
    fn table(&self) -> Vec<(AnyPrefix, u16)> {
        let host = |address: [u8; 4]| prefix(self.v6, address, 4);
        let mut all = vec![(host(OWN), LOCAL), (self.link(), GLEAN)];
        all.extend((0..3u8).map(|port| (host(gateway(port)), 2 + u16::from(port))));
        all.extend(self.routes.iter().map(|(to, port)| (*to, 2 + u16::from(*port))));
        all
    }

    fn policies(&self) -> Option<Policies> {
        let list = self.policies.iter().map(|(from, to, port)| Policy {
            from: *from,
            to: *to,
            via: address(self.v6, gateway(*port)),
        });
        let policies = Policies { by: self.by, links: vec![self.link()], list: list.collect() };
        (!self.by.is_default()).then_some(policies)
    }

    fn program(&self) -> Program {
        fn entries<K: Key>(world: &World) -> Vec<(Prefix<K>, NextHop)> {
            let row = |own: u16, len: u8| match world.by {
                RouteBy::Destination => NextHop::new(own),
                _ => RowsByLength::<K>::row(own, len),
            };
            let routes = world.table().into_iter();
            routes.map(|(to, own)| (to.of().unwrap(), row(own, to.len()).unwrap())).collect()
        }
        let bare = program(1);
        let each = match (self.by, self.v6) {
            (RouteBy::Destination, _) => 1,
            (_, false) => RowsByLength::<u32>::EACH,
            (_, true) => RowsByLength::<u128>::EACH,
        };
        let rows = bare.next_hops.iter().flat_map(|hop| std::iter::repeat_n(*hop, each.into()));
        Program {
            settings: Settings::of(if self.v6 { Kind::Ipv6 } else { Kind::Ipv4 }),
            next_hops: rows.collect(),
            entries: if self.v6 { Entries::Lpm128(entries(self)) } else { Entries::Lpm32(entries(self)) },
            policies: self.policies(),
            ..bare
        }
    }

    /// The row by which a packet leaves; `None` if it has no route.
    fn expected(&self, source: IpAddr, destination: IpAddr, mistake: Mistake) -> Option<u16> {
        let table = self.table();
        let route = table.iter().filter(|(to, _)| to.contains(destination)).max_by_key(|(to, _)| to.len());
        let by_destination = route.map(|(_, row)| *row);
        let connected = self.link().contains(destination) && mistake != Mistake::LinksToo;
        if self.by.is_default() || connected {
            return by_destination;
        }
        let policies =
            self.policies.iter().filter(|(from, to, _)| from.contains(source) && to.contains(destination));
        let rank = |from: &AnyPrefix, to: &AnyPrefix| match mistake {
            Mistake::SourceFirst => (u16::from(from.len()), to.len()),
            Mistake::TiesToSource => (u16::from(from.len()) + u16::from(to.len()), 128 - to.len()),
            _ => (u16::from(from.len()) + u16::from(to.len()), to.len()),
        };
        let best = policies.max_by_key(|(from, to, _)| rank(from, to));
        let Some((from, to, port)) = best else { return by_destination };
        let row = Some(2 + u16::from(*port));
        match (self.by, route) {
            (RouteBy::SourceDestination, Some((all, _))) => {
                let whole = AnyPrefix::containing(all.addr(), 0);
                let equal_goes_to_policy =
                    mistake == Mistake::EqualToPolicy && rank(from, to).0 == u16::from(all.len());
                if rank(from, to) > rank(&whole, all) || equal_goes_to_policy { row } else { by_destination }
            }
            _ => row,
        }
    }
}

/// A bug in the definition, which must be noticed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mistake {
    None,
    /// The longest source wins, whatever the destination.
    SourceFirst,
    /// Of two policies of equal length, the one with the longer source wins.
    TiesToSource,
    /// A policy wins against a route of equal length.
    EqualToPolicy,
    /// Policies also decide about packets to links.
    LinksToo,
}

fn frame(v6: bool, source: IpAddr, destination: IpAddr) -> Vec<u8> {
    let Mac(own) = mac(1, 0);
    let mut bytes = own.to_vec();
    bytes.extend([2, 9, 9, 9, 9, 9]);
    let octets = |address: IpAddr| match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    };
    if v6 {
        bytes.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0, 8, 17, 64]);
    } else {
        bytes.extend([8, 0, 0x45, 0, 0, 28, 0, 1, 0, 0, 64, 17, 0, 0]);
    }
    bytes.extend(octets(source));
    bytes.extend(octets(destination));
    bytes.extend([7; 8]);
    if !v6 {
        let checksum = hue_wire::checksum::full(&bytes[14..34]);
        bytes[24..26].copy_from_slice(&checksum.to_be_bytes());
    }
    bytes
}

/// What happens to packets that arrive together: the row by which each leaves.
fn rows(soft: &mut Soft, frames: &[Vec<u8>]) -> Vec<Option<u16>> {
    let mut batch = Batch::new();
    frames.iter().for_each(|frame| assert!(batch.push(PortId::new(0), 0, frame)));
    let mut found = vec![None; frames.len()];
    soft.run(&mut batch, |output| {
        let Fate::Network { outcome, egress, .. } = output.fate else { panic!("{:?}", output.fate) };
        found[output.frame] = match outcome.name() {
            "forward" => Some(2 + u16::from(egress.get())),
            "local" => Some(LOCAL),
            "no_neighbour" => Some(GLEAN),
            "no_route" => None,
            other => panic!("{other}"),
        };
    });
    found
}

/// Loads a world and compares what it does with packets with the definition. Traces must say the same.
fn compare(world: &World, packets: &[([u8; 4], [u8; 4])], mistake: Mistake) -> Result<(), String> {
    let mut soft = soft();
    soft.load(&[world.program()]).map_err(|error| error.to_string())?;
    check(&mut soft, world, packets, mistake)
}

fn check(
    soft: &mut Soft,
    world: &World,
    packets: &[([u8; 4], [u8; 4])],
    mistake: Mistake,
) -> Result<(), String> {
    let address = |of: [u8; 4]| address(world.v6, of);
    let frames: Vec<_> =
        packets.iter().map(|(from, to)| frame(world.v6, address(*from), address(*to))).collect();
    let found = rows(soft, &frames);
    for (((from, to), frame), found) in packets.iter().zip(&frames).zip(found) {
        let expected = world.expected(address(*from), address(*to), mistake);
        let what =
            || format!("{} to {}: {found:?}, not {expected:?}, in {world:?}", address(*from), address(*to));
        if found != expected {
            return Err(what());
        }
        let trace = soft.explain(PortId::new(0), 0, frame);
        let [network] = &trace.networks[..] else { return Err(what()) };
        let said = network.egress.map(|port| 2 + u16::from(port.get()));
        if network.outcome.is_forward() != found.is_some_and(|row| row > GLEAN)
            || said != found.filter(|row| *row > GLEAN)
        {
            return Err(format!("trace: {} ({trace:?})", what()));
        }
    }
    Ok(())
}

fn bytes() -> impl Strategy<Value = [u8; 4]> + Clone {
    let first = prop::sample::select(vec![10u8, 10, 10, 11, 172]);
    let byte = || prop::sample::select(vec![0u8, 1, 2]);
    (first, byte(), byte(), prop::sample::select(vec![1u8, 2])).prop_map(|(a, b, c, d)| [a, b, c, d])
}

fn world() -> impl Strategy<Value = World> {
    let routes = prop::collection::vec((bytes(), 0..=4u8, 0..3u8), 0..6);
    let policies = prop::collection::vec((bytes(), 1..=4u8, bytes(), 0..=4u8, 0..3u8), 0..10);
    (any::<bool>(), prop::sample::select(RouteBy::ALL.to_vec()), routes, policies).prop_map(
        |(v6, by, routes, policies)| {
            let mut routes: Vec<_> =
                routes.into_iter().map(|(to, len, port)| (prefix(v6, to, len), port)).collect();
            routes.sort_unstable();
            routes.dedup_by_key(|(to, _)| *to);
            let mut policies: Vec<_> = policies
                .into_iter()
                .map(|(from, from_len, to, to_len, port)| {
                    let to_len = if by == RouteBy::Source { 0 } else { to_len };
                    (prefix(v6, from, from_len), prefix(v6, to, to_len), port)
                })
                .collect();
            policies.sort_unstable();
            policies.dedup_by_key(|(from, to, _)| (*from, *to));
            World { v6, by, routes, policies }
        },
    )
}

/// Packets between addresses of [`world`], and to the router and its link.
fn packets() -> impl Strategy<Value = Vec<([u8; 4], [u8; 4])>> {
    let to = prop_oneof![8 => bytes(), 1 => Just(OWN), 1 => Just(gateway(1)), 1 => Just([192, 168, 0, 77])];
    prop::collection::vec((bytes(), to), 1..BATCH_MAX + 40)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn routes_by_source_agree_with_their_definition(world in world(), packets in packets()) {
        compare(&world, &packets, Mistake::None).map_err(TestCaseError::fail)?;
    }

    /// Policies, and their absence, change in one load, and leave the routes as they are. A refused load changes nothing.
    #[test]
    fn policies_change_as_a_whole(
        before in world(), after in world(), packets in packets(),
    ) {
        let (mut before, mut after) = (before, after);
        before.by = if before.by.is_default() { RouteBy::SourceDestination } else { before.by };
        after.by = before.by;
        (after.v6, after.routes) = (before.v6, before.routes.clone());
        after.policies = Vec::new();
        let mut soft = soft();
        soft.load(&[before.program()]).unwrap();
        check(&mut soft, &before, &packets, Mistake::None).map_err(TestCaseError::fail)?;
        let mut wrong = before.program();
        let all = prefix(before.v6, [0; 4], 0);
        wrong.policies.as_mut().unwrap().list.push(Policy { from: all, to: all, via: address(before.v6, OWN) });
        prop_assert!(soft.load(&[wrong]).is_err());
        check(&mut soft, &before, &packets, Mistake::None).map_err(TestCaseError::fail)?;
        soft.load(&[after.program()]).unwrap();
        check(&mut soft, &after, &packets, Mistake::None).map_err(TestCaseError::fail)?;
    }
}

#[test]
fn mistakes_in_the_definition_are_noticed() {
    let mut runner =
        TestRunner::new_with_rng(Config::default(), TestRng::from_seed(RngAlgorithm::ChaCha, &[5; 32]));
    let cases: Vec<_> =
        (0..200).map(|_| (world(), packets()).new_tree(&mut runner).unwrap().current()).collect();
    for mistake in [Mistake::SourceFirst, Mistake::TiesToSource, Mistake::EqualToPolicy, Mistake::LinksToo] {
        let is_noticed = cases.iter().any(|(world, packets)| compare(world, packets, mistake).is_err());
        assert!(is_noticed, "{mistake:?}");
    }
}

/// Routes from 10.1.0.0/16 go to port 1, from 10.2.0.0/16 to port 2, all others to port 0.
fn two_ways(by: RouteBy) -> World {
    let all = prefix(false, [0; 4], 0);
    let policy = |site: u8| (prefix(false, [10, site, 0, 0], 2), all, site);
    World { v6: false, by, routes: vec![(all, 0)], policies: vec![policy(1), policy(2)] }
}

#[test]
fn two_sources_to_one_destination_take_two_ways() {
    for by in [RouteBy::Source, RouteBy::SourceDestination] {
        let mut soft = soft();
        soft.load(&[two_ways(by).program()]).unwrap();
        let to = IpAddr::from([172, 16, 0, 1]);
        let from = [[10, 1, 0, 5], [10, 2, 0, 5], [10, 3, 0, 5]].map(|from| frame(false, from.into(), to));
        assert_eq!(rows(&mut soft, &from), [Some(3), Some(4), Some(2)], "{by:?}");
        // The gateway's neighbour is lost: its packets wait for it, and no others.
        let row = RowsByLength::<u32>::row(3, 32).unwrap();
        soft.update(vid(1), &Update::of_hops(&[(row, Adjacency::glean(PortId::new(1)))])).unwrap();
        assert_eq!(rows(&mut soft, &from), [Some(GLEAN), Some(4), Some(2)], "{by:?}");
        // Its route is lost: the gateway is a host of the link.
        let host: Prefix<u32> = "192.168.0.12/32".parse().unwrap();
        soft.update(vid(1), &Update::of_routes(&[(host, None)])).unwrap();
        assert_eq!(rows(&mut soft, &from), [Some(GLEAN), Some(GLEAN), Some(2)], "{by:?}");
        // Packets to the router itself, and broken ones, are what they are without policies.
        let own = frame(false, [10, 1, 0, 5].into(), IpAddr::from(OWN));
        assert_eq!(rows(&mut soft, &[own]), [Some(LOCAL)]);
    }
}

/// The same networks beside each other, with opposite policies, do not affect each other, in batches of both.
#[test]
fn networks_have_policies_of_their_own() {
    let mut soft = soft();
    let red = two_ways(RouteBy::Source).program();
    let plain = Program { policies: None, ..program(2) };
    soft.load(&[red.clone(), plain]).unwrap();
    let to = IpAddr::from([10, 9, 9, 9]);
    let frames: Vec<_> = (0..200u16)
        .map(|n| {
            let mut frame = frame(false, [10, 1 + (n % 2) as u8, 0, 5].into(), to);
            if n % 3 == 0 {
                frame[..6].copy_from_slice(&mac(2, 0).0);
            }
            frame
        })
        .collect();
    for (n, row) in rows(&mut soft, &frames).into_iter().enumerate() {
        // Network 2 routes 10.0.0.0/8 to port 2.
        let expected = if n % 3 == 0 { 4 } else { 3 + (n % 2) as u16 };
        assert_eq!(row, Some(expected), "{n}");
    }
    let counters = soft.counters(vid(1)).unwrap();
    assert_eq!((counters.received(), counters.forwarded()), (133, 133));
}

#[test]
fn programs_with_wrong_policies_are_refused() {
    let good = two_ways(RouteBy::Source).program();
    let refused = |program: Program| match Soft::new(Limits::default()).unwrap().load(&[program]) {
        Err(SubstrateError::Program { error, .. }) => error,
        other => panic!("{other:?}"),
    };
    let mut twice = good.clone();
    let policies = twice.policies.as_mut().unwrap();
    policies.list.push(policies.list[0]);
    let ProgramError::Policies(error) = refused(twice) else { panic!() };
    assert!(matches!(*error, PolicyError::Twice { .. }));
    let dual = Program {
        settings: Settings::of(Kind::Dual),
        entries: Entries::none(Kind::Dual),
        next_hops: Vec::new(),
        ..good.clone()
    };
    assert_eq!(refused(dual), ProgramError::PoliciesOfKind(Kind::Dual));
    let mut short = good;
    let routes = short.entries.lpm32_mut();
    let first = routes[0].0;
    routes[0].1 = RowsByLength::<u32>::row(0, first.len() - 1).unwrap();
    let (len, hop) = (first.len() - 1, routes[0].1.get());
    assert_eq!(refused(short), ProgramError::RouteLength { prefix: first.to_string(), hop, len });
}
