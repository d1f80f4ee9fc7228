//! Monitor and RIB with the IPv6 of real kernels. All tests need root.

use std::net::Ipv6Addr;

use hue_planes::Adjacency;
use hue_routing::Rib;
use hue_tables::{Prefix, Prefix6};
use hue_wire::Mac;

use crate::common::answers::{Random, at, forward, glean, kernel_does, lookup, route_get, table};
use crate::common::lab::{Lab, Watch, ip, ip_batch, mac, root};

fn expect(watch: &mut Watch<u128>, address: &str, adjacency: Option<Adjacency>) {
    watch.until(&format!("{address} {adjacency:?}"), |rib| at(rib, address) == adjacency);
}

const GATEWAY: Mac = Mac([2, 0, 0, 0, 9, 2]);

#[test]
fn addresses_links_routes_and_neighbours_become_an_ipv6_table() {
    if !root() {
        return;
    }
    let lab = Lab::new();
    let router = lab.router6();
    ip(&router, "neigh add fe80::2 lladdr 02:00:00:00:09:02 dev v0");
    ip(&router, "neigh add 2001:db8:1::7 lladdr 02:00:00:00:09:02 dev v0");
    ip(&router, "-6 route add 2001:db8:70::/48 via fe80::2 dev v0");
    let mut watch = Watch::<u128>::of(&router);
    assert!(watch.snapshot().unwrap().complete);
    let local = Some(Adjacency::local());
    for (address, adjacency) in [
        ("2001:db8:1::1", local),
        // The subnet-router address.
        ("2001:db8:1::", local),
        ("2001:db8:1::3", glean(0)),
        ("2001:db8:2::2", glean(1)),
        ("2001:db8:3::9", local),
        ("2001:db8:1::7", forward(0, GATEWAY)),
        ("2001:db8:70::1", forward(0, GATEWAY)),
        ("2001:db8:99::1", None),
        // Decided without routes.
        ("fe80::2", None),
        ("ff02::5", None),
    ] {
        expect(&mut watch, address, adjacency);
    }
    assert!(watch.rib.neighbours().any(|known| known == (0, "fe80::2".parse().unwrap(), GATEWAY)));
    // The same link-local address on another link is another neighbour.
    ip(&router, "-6 route add 2001:db8:71::/48 via fe80::2 dev v1");
    expect(&mut watch, "2001:db8:71::1", glean(1));
    assert_eq!(watch.rib.unresolved(), [(1, "fe80::2".parse().unwrap())]);
    ip(&lab.host(1), "addr add fe80::2/64 dev e0 nodad");
    watch.monitor.probe(watch.vid, "v1", "fe80::2".parse::<Ipv6Addr>().unwrap());
    watch.until("the router is found", |rib| rib.unresolved().is_empty());

    for kind in ["unreachable", "blackhole", "prohibit"] {
        ip(&router, &format!("-6 route add {kind} 2001:db8:72::/48"));
        expect(&mut watch, "2001:db8:72::1", local);
        ip(&router, &format!("-6 route del {kind} 2001:db8:72::/48"));
        expect(&mut watch, "2001:db8:72::1", None);
    }
    // Only some sources: the kernel decides.
    ip(&router, "-6 route add 2001:db8:73::/48 from 2001:db8:2::/48 via fe80::2 dev v0");
    expect(&mut watch, "2001:db8:73::1", local);
    ip(&router, "-6 route add 2001:db8:74::/48 encap seg6 mode encap segs 2001:db8::9 dev v0");
    expect(&mut watch, "2001:db8:74::1", local);
    // A better metric wins, whatever the order.
    ip(&router, "-6 route add 2001:db8:75::/48 via 2001:db8:2::2 metric 50");
    ip(&router, "-6 route add 2001:db8:75::/48 via fe80::2 dev v0 metric 20");
    expect(&mut watch, "2001:db8:75::1", forward(0, GATEWAY));
    // A tentative address is no address of the network yet.
    let has = |rib: &Rib<u128>, address: &str| {
        rib.addresses().any(|(_, own, _)| own == address.parse::<Ipv6Addr>().unwrap())
    };
    ip(&lab.host(0), "addr add 2001:db8:8::1/64 dev e0 nodad");
    ip(&router, "addr add 2001:db8:8::1/64 dev v0");
    ip(&router, "addr add 2001:db8:9::1/64 dev v0 nodad");
    watch.until("the usable one", |rib| has(rib, "2001:db8:9::1"));
    assert!(!has(&watch.rib, "2001:db8:8::1"));
}

#[test]
fn next_hops_of_ipv6_routes_come_and_go_one_by_one() {
    if !root() {
        return;
    }
    let lab = Lab::new();
    let router = lab.router6();
    ip(&router, "neigh add fe80::2 lladdr 02:00:00:00:09:02 dev v0");
    let mut watch = Watch::<u128>::of(&router);
    watch.snapshot().unwrap();
    let to = "2001:db8:70::1";
    let ways = |watch: &Watch<u128>| watch.rib.route("2001:db8:70::/48".parse().unwrap()).unwrap().ways.len();
    // The kernel makes one route with two next hops of two.
    ip(&router, "-6 route append 2001:db8:70::/48 via 2001:db8:2::9");
    expect(&mut watch, to, glean(1));
    ip(&router, "-6 route append 2001:db8:70::/48 via fe80::2 dev v0");
    expect(&mut watch, to, forward(0, GATEWAY));
    assert_eq!(ways(&watch), 2);
    ip(&router, "-6 route del 2001:db8:70::/48 via fe80::2 dev v0");
    expect(&mut watch, to, glean(1));
    assert_eq!(ways(&watch), 1);
    ip(&router, "-6 route replace 2001:db8:70::/48 nexthop via 2001:db8:2::8 nexthop via fe80::2 dev v0");
    expect(&mut watch, to, forward(0, GATEWAY));
    assert_eq!(watch.snapshots, 1, "notifications suffice");
    ip(&router, "link set v0 down");
    expect(&mut watch, to, glean(1));
    ip(&router, "-6 route del 2001:db8:70::/48");
    expect(&mut watch, to, None);
    ip(&router, "link set v0 up");

    ip(&router, "nexthop add id 9 via 2001:db8:2::2 dev v1");
    ip(&router, "-6 route add 2001:db8:70::/48 nhid 9");
    expect(&mut watch, to, glean(1));
    ip(&router, "nexthop del id 9");
    expect(&mut watch, to, None);
    ip(&router, "link del v1");
    expect(&mut watch, "2001:db8:2::7", None);
    ip(&router, &format!("link add v1 address {} type veth peer name late", mac(1)));
    ip(&router, "addr add 2001:db8:2::1/64 dev v1 nodad");
    ip(&router, "link set v1 up");
    expect(&mut watch, "2001:db8:2::7", glean(1));
}

/// Random commands, and what they are about.
struct Commands(Random);

impl Commands {
    /// One of few addresses, so that collisions occur; never one of the router.
    fn address(&mut self) -> Ipv6Addr {
        let last = 2 + self.0.below(5) as u16;
        match self.0.below(3) {
            0 => Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, last),
            1 => Ipv6Addr::new(0x2001, 0xdb8, 2, 0, 0, 0, 0, last),
            _ => Ipv6Addr::new(0x2001, 0xdb8, 0x70 + self.0.below(3) as u16, 0, 0, 0, 0, last),
        }
    }

    fn prefix(&mut self) -> Prefix6 {
        let len = [0, 32, 44, 48, 64, 120, 126, 128][self.0.below(8) as usize];
        Prefix::containing(self.address().to_bits(), len)
    }

    fn command(&mut self) -> String {
        let port = self.0.below(2);
        let way = match self.0.below(7) {
            0 => format!("dev v{port}"),
            1 => "via 2001:db8:3::2".to_owned(),
            2 => "dev other".to_owned(),
            3 | 4 => format!("via fe80::{} dev v{port}", self.0.below(3) + 2),
            _ => format!("via 2001:db8:{}::{}", port + 1, self.0.below(3) + 2),
        };
        let metric = 10 + self.0.below(3);
        let neighbour = match self.0.below(2) {
            0 => format!("fe80::{}", self.0.below(3) + 2),
            _ => format!("2001:db8:{}::{}", port + 1, self.0.below(3) + 2),
        };
        match self.0.below(20) {
            0..=7 => {
                let verb = self.0.of(&["add", "append", "replace", "append"]);
                format!("route {verb} {} {way} metric {metric}", self.prefix())
            }
            8..=9 => {
                let kind = self.0.of(&["unreachable", "prohibit", "blackhole"]);
                format!("route add {kind} {} metric {metric}", self.prefix())
            }
            10..=11 => format!("route del {}", self.prefix()),
            12..=13 => format!("route del {} {way}", self.prefix()),
            14..=16 => format!(
                "neigh replace {neighbour} lladdr 02:00:00:00:09:0{} dev v{port} nud {}",
                self.0.below(3) + 2,
                self.0.of(&["permanent", "reachable", "stale"])
            ),
            17 => format!("neigh del {neighbour} dev v{port}"),
            _ => format!("link set v{port} {}", self.0.of(&["up", "down", "up", "up"])),
        }
    }
}

/// The actions of all next hops of the longest route, if it has several: the kernel uses each for some flows.
fn ways(rib: &Rib<u128>, neighbours: &[(u16, Ipv6Addr, Mac)], address: Ipv6Addr) -> Vec<Adjacency> {
    let longest = (0..=128).rev().find_map(|len| rib.route(Prefix::containing(address.to_bits(), len)));
    let ways = longest.filter(|row| row.ways.len() > 1).map(|row| row.ways).unwrap_or_default();
    let does = |way: &hue_routing::rib::RouteWay| {
        let via = way.via.map_or_else(String::new, |via| format!("via {via} "));
        kernel_does::<u128>(&format!("{address} {via}dev {}", way.interface), neighbours, address)
    };
    ways.iter().map(does).collect()
}

#[test]
fn random_ipv6_commands_agree_with_the_kernel() {
    if !root() {
        return;
    }
    let seed = std::env::var("HUEPLANE_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(0x5eed_0006);
    println!("random_ipv6_commands: HUEPLANE_SEED={seed}");
    let mut random = Commands(Random(seed));
    let lab = Lab::new();
    let router = lab.router6();
    let mut watch = Watch::<u128>::of(&router);
    watch.snapshot().unwrap();
    for round in 0..40 {
        let commands: String = (0..15).map(|_| random.command() + "\n").collect();
        ip_batch(&router, &commands);
        let addresses: Vec<Ipv6Addr> = (0..40).map(|_| random.address()).collect();
        watch.until_none(|rib| {
            rib.take_update();
            let table = table(rib);
            let neighbours: Vec<_> = rib.neighbours().collect();
            let answers = route_get(&router, &addresses);
            addresses.iter().zip(&answers).find_map(|(address, answer)| {
                let ours = lookup(&table, *address);
                let is_group = |ours: &Adjacency| ours.kind() == hue_planes::AdjacencyKind::Group;
                let good = match answer {
                    // No route, or a route that rejects packets: the kernel must answer.
                    None => ours.is_none() || ours == Some(Adjacency::local()),
                    Some(answer) => {
                        let does = kernel_does::<u128>(answer, &neighbours, *address);
                        let ways = ways(rib, &neighbours, *address);
                        ours == Some(does)
                            || (ways.contains(&does)
                                && ours.is_some_and(|ours| is_group(&ours) || ways.contains(&ours)))
                    }
                };
                (!good)
                    .then(|| format!("round {round}\n{commands}{address}: kernel {answer:?}, table {ours:?}"))
            })
        });
    }
    println!("{} events, {} snapshots", watch.events, watch.snapshots);
}
