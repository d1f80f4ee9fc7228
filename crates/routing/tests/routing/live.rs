//! Monitor and RIB with real kernels. All tests need root.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::time::Duration;

use hue_planes::{Adjacency, AdjacencyKind};
use hue_routing::Rib;
use hue_tables::Prefix4;
use hue_wire::Mac;

use crate::common::answers::{Random, at, forward, glean, kernel_does, lookup, route_get, table};
use crate::common::lab::{Lab, Watch, inside, ip, ip_batch, mac, ports, root};

#[test]
fn addresses_links_routes_and_neighbours_become_a_table() {
    if !root() {
        return;
    }
    let lab = Lab::new();
    let router = lab.router();
    ip(&router, "neigh add 10.1.0.2 lladdr 02:00:00:00:09:02 dev v0");
    ip(&router, "route add 172.16.0.0/12 via 10.1.0.2");
    let mut watch = Watch::new(&router);
    let first = watch.snapshot().unwrap();
    assert!(first.complete);
    let gateway = Mac([2, 0, 0, 0, 9, 2]);
    let expect = |watch: &mut Watch, address: &str, adjacency: Option<Adjacency>| {
        watch.until(&format!("{address} {adjacency:?}"), |rib| at(rib, address) == adjacency);
    };
    for (address, adjacency) in [
        ("10.1.0.1", Some(Adjacency::local())),
        ("10.1.0.255", Some(Adjacency::local())),
        ("10.1.0.3", glean(0)),
        ("10.2.0.2", glean(1)),
        ("10.3.0.9", Some(Adjacency::local())),
        ("10.1.0.2", forward(0, gateway)),
        ("172.20.0.1", forward(0, gateway)),
        ("192.0.2.1", None),
    ] {
        expect(&mut watch, address, adjacency);
    }
    let rows: Vec<_> = watch.rib.routes(None).collect();
    let row = |text: &str| rows.iter().find(|row| row.prefix == text.parse().unwrap()).unwrap();
    assert_eq!(row("10.1.0.0/24").protocol, "kernel");
    assert_eq!(row("10.1.0.2/32").protocol, "neighbour");
    assert_eq!(row("172.16.0.0/12").protocol, "boot");
    assert_eq!(row("172.16.0.0/12").ways[0].interface, "v0");
    assert_eq!(watch.rib.neighbours().collect::<Vec<_>>(), [(0, Ipv4Addr::new(10, 1, 0, 2), gateway)]);

    ip(&router, "route replace 172.16.0.0/12 via 10.2.0.2 proto static metric 0");
    expect(&mut watch, "172.20.0.1", glean(1));
    assert_eq!(watch.rib.unresolved(), [(1, Ipv4Addr::new(10, 2, 0, 2))]);
    watch.monitor.probe(watch.vid, "v1", Ipv4Addr::new(10, 2, 0, 2));
    watch.until("the router is found", |rib| rib.unresolved().is_empty());
    ip(&router, "route add unreachable 172.17.0.0/16");
    expect(&mut watch, "172.17.0.1", Some(Adjacency::local()));
    ip(&router, "route add blackhole 172.18.0.0/16");
    expect(&mut watch, "172.18.0.1", Some(Adjacency::local()));
    ip(&router, "route add 198.51.100.0/24 via inet6 fe80::1 dev v0");
    expect(&mut watch, "198.51.100.1", Some(Adjacency::local()));
    ip(&router, "route add 203.0.113.0/24 nexthop via 10.1.0.9 nexthop via 10.1.0.2");
    expect(&mut watch, "203.0.113.1", forward(0, gateway));
    ip(&router, "neigh del 10.1.0.2 dev v0");
    expect(&mut watch, "203.0.113.1", glean(0));
    expect(&mut watch, "10.1.0.2", glean(0));
    ip(&router, "addr add 10.9.0.1/30 dev v1");
    expect(&mut watch, "10.9.0.2", glean(1));
    let own = (1, Ipv4Addr::new(10, 9, 0, 1), 30);
    assert!(watch.rib.addresses().any(|address| address == own));
    ip(&router, "addr del 10.9.0.1/30 dev v1");
    expect(&mut watch, "10.9.0.2", None);
    // Routes in other tables are ignored.
    ip(&router, "route add 192.0.2.0/24 via 10.1.0.2 table 100");
    ip(&router, "route add 192.0.3.0/24 via 10.1.0.9");
    expect(&mut watch, "192.0.3.1", glean(0));
    assert_eq!(at(&mut watch.rib, "192.0.2.1"), None);
}

#[test]
fn routes_removed_without_notification_are_detected() {
    if !root() {
        return;
    }
    let lab = Lab::new();
    let router = lab.router();
    let mut watch = Watch::new(&router);
    watch.snapshot().unwrap();
    let expect = |watch: &mut Watch, what: &str, adjacency: Option<Adjacency>| {
        watch.until(what, |rib| at(rib, "172.20.0.1") == adjacency);
    };
    ip(&router, "route add 172.20.0.0/16 via 10.1.0.2");
    expect(&mut watch, "a route", glean(0));
    ip(&router, "link set v0 down");
    expect(&mut watch, "its link is down", None);
    ip(&router, "link set v0 up");
    ip(&router, "route add 172.20.0.0/16 via 10.1.0.2");
    expect(&mut watch, "its link is up", glean(0));
    ip(&router, "route del 172.20.0.0/16");
    expect(&mut watch, "it was deleted", None);

    ip(&router, "nexthop add id 9 via 10.1.0.2 dev v0");
    ip(&router, "route add 172.20.0.0/16 nhid 9");
    expect(&mut watch, "a next-hop object", glean(0));
    ip(&router, "nexthop replace id 9 via 10.2.0.2 dev v1");
    expect(&mut watch, "it leads elsewhere", glean(1));
    ip(&router, "nexthop del id 9");
    expect(&mut watch, "it is gone", None);

    ip(&router, "addr add 10.4.0.1/24 dev v1");
    ip(&router, "route add 172.20.0.0/16 via 10.1.0.2 src 10.4.0.1");
    expect(&mut watch, "a preferred source", glean(0));
    ip(&router, "addr del 10.4.0.1/24 dev v1");
    expect(&mut watch, "it is gone", None);

    ip(&router, "route add 172.20.0.0/16 nexthop via 10.1.0.2 nexthop via 10.2.0.2");
    expect(&mut watch, "two ways", glean(0));
    ip(&router, "link set v0 down");
    expect(&mut watch, "one way is dead", glean(1));
    ip(&router, "link del v1");
    expect(&mut watch, "the other is gone", None);
    assert!(watch.rib.neighbours().next().is_none());
    ip(&router, &format!("link add v1 address {} type veth peer name late", mac(1)));
    ip(&router, "addr add 10.2.0.1/24 dev v1");
    ip(&router, "link set v1 up");
    ip(&router, "route add 172.20.0.0/16 dev v1");
    expect(&mut watch, "the port is another interface", glean(1));
}

/// The MAC address of a host, if the network knows it.
fn known(rib: &Rib, address: Ipv4Addr) -> Option<Mac> {
    rib.neighbours().find(|(_, at, _)| *at == address).map(|(_, _, mac)| mac)
}

#[test]
fn neighbours_stay_known_while_they_answer() {
    if !root() {
        return;
    }
    let lab = Lab::new();
    let router = lab.router();
    // Ageing in seconds instead of a minute.
    for key in
        ["base_reachable_time_ms=300", "delay_first_probe_time=1", "retrans_time_ms=100", "gc_stale_time=1"]
    {
        let status = inside(&router, "sysctl").args(["-qw", &format!("net.ipv4.neigh.v0.{key}")]).status();
        assert!(status.unwrap().success(), "sysctl {key}");
    }
    let mut watch = Watch::new(&router);
    watch.snapshot().unwrap();
    let host = Ipv4Addr::new(10, 1, 0, 2);
    watch.monitor.probe(watch.vid, "v0", host);
    watch.until("the host is known", |rib| known(rib, host).is_some());
    let mac = known(&watch.rib, host).unwrap();
    // Without any traffic, the neighbour stays known: stale, probed, answered, again and again.
    let mut asked = 0;
    let (mut before, end) = (watch.events, std::time::Instant::now() + Duration::from_secs(8));
    while std::time::Instant::now() < end {
        watch.pump(Duration::from_millis(20));
        assert_eq!(known(&watch.rib, host), Some(mac), "never unknown for a moment");
        asked += usize::from(watch.events > before);
        before = watch.events;
    }
    assert!(asked >= 3, "{asked} changes of state");
    assert_eq!(at(&mut watch.rib, "10.1.0.2"), forward(0, mac));
    // Another host takes its place: the old one times out without traffic, the new one is resolved by
    // traffic.
    ip(&lab.host(0), "link set e0 address 02:00:00:00:09:77");
    watch.until("the old one is unknown", |rib| known(rib, host).is_none());
    watch.monitor.probe(watch.vid, "v0", host);
    watch.until("the new one", |rib| known(rib, host) == Some(Mac([2, 0, 0, 0, 9, 0x77])));
    // The host disappears, but its link stays up.
    ip(&lab.host(0), "addr flush dev e0");
    watch.until("it is unknown", |rib| known(rib, host).is_none());
    assert_eq!(at(&mut watch.rib, "10.1.0.2"), glean(0));
}

#[test]
fn many_namespaces_one_thread() {
    if !root() {
        return;
    }
    use hue_routing::{Monitor, RibPort};
    use hue_tables::Vid;
    let lab = Lab::new();
    let count = 60u16;
    let namespaces: Vec<_> = (1..=count).map(|n| lab.namespace(&format!("n{n}"))).collect();
    let (mut monitor, batches) = Monitor::channel(4).unwrap();
    let mut ribs: BTreeMap<Vid, (_, Rib, bool)> = BTreeMap::new();
    for (n, namespace) in (1..=count).zip(&namespaces) {
        let vid = Vid::new(n).unwrap();
        let session = monitor.add(vid, namespace).unwrap();
        let port = RibPort { interface: "v0".to_owned(), ..ports()[0].clone() };
        ribs.insert(vid, (session, Rib::new(vec![port]), false));
    }
    for (n, namespace) in (1..=count).zip(&namespaces) {
        let commands = format!(
            "link add v0 type veth peer name b0\naddr add 10.0.0.1/24 dev v0\nlink set v0 up\nlink set b0 up\n\
             route add 172.16.{n}.0/24 via 10.0.0.2\n"
        );
        assert_eq!(ip_batch(namespace, &commands).1, "");
    }
    let end = std::time::Instant::now() + crate::common::lab::PATIENCE;
    while ribs.values().any(|(.., done)| !done) {
        assert!(std::time::Instant::now() < end, "some are not up to date");
        let Ok(batch) = batches.recv_timeout(Duration::from_millis(50)) else { continue };
        let (session, rib, done) = ribs.get_mut(&batch.vid).unwrap();
        assert_eq!(*session, batch.session);
        rib.apply_all(batch.events);
        rib.take_update();
        let own = Prefix4::containing(Ipv4Addr::new(172, 16, batch.vid.get() as u8, 0).to_bits(), 24);
        let seen: Vec<_> =
            rib.routes(None).filter(|row| row.prefix.of::<u32>().unwrap().addr() >> 16 == 0xac10).collect();
        assert!(seen.iter().all(|row| row.prefix == own.into()), "a route of another network");
        *done = seen.iter().any(|row| row.adjacency.kind() == AdjacencyKind::Glean);
    }
    for vid in ribs.keys() {
        monitor.remove(*vid);
    }
    drop(monitor);
    while batches.recv_timeout(Duration::from_secs(5)).is_ok() {}
    assert!(
        matches!(batches.try_recv(), Err(std::sync::mpsc::TryRecvError::Disconnected)),
        "the thread ended"
    );
}

/// Random commands, and what they are about.
struct Commands(Random);

impl Commands {
    /// One of few prefixes, so that collisions occur.
    fn prefix(&mut self) -> Prefix4 {
        let len = [0, 8, 14, 16, 20, 24, 24, 28, 32][self.0.below(9) as usize];
        Prefix4::containing(self.address().to_bits(), len)
    }

    fn address(&mut self) -> Ipv4Addr {
        match self.0.below(3) {
            0 => Ipv4Addr::new(10, 1, 0, self.0.below(6) as u8),
            1 => Ipv4Addr::new(10, 2, 0, self.0.below(6) as u8),
            _ => Ipv4Addr::new(172, 16 + self.0.below(2) as u8, self.0.below(3) as u8, self.0.below(3) as u8),
        }
    }

    /// An address of the router itself, but never one that is a gateway of routes. For the kernel, that is an
    /// old way to say that destinations are on the link, and the result depends on the order; the RIB leaves
    /// such routes to the kernel.
    fn own(&mut self) -> Ipv4Addr {
        let [a, b, c, d] = self.address().octets();
        Ipv4Addr::new(a, b, c, d % 2)
    }

    fn command(&mut self) -> String {
        let port = self.0.below(2) + 1;
        let gateway = self.0.below(4) + 2;
        let way = match self.0.below(6) {
            0 => format!("dev v{}", port - 1),
            1 => "via 10.3.0.2".to_owned(),
            2 => "dev other".to_owned(),
            _ => format!("via 10.{port}.0.{gateway}"),
        };
        let metric = self.0.below(3);
        match self.0.below(20) {
            0..=7 => {
                let verb = self.0.of(&["add", "append", "prepend", "replace", "change"]);
                format!("route {verb} {} {way} metric {metric}", self.prefix())
            }
            8..=9 => {
                let kind = self.0.of(&["unreachable", "prohibit", "blackhole"]);
                format!("route add {kind} {} metric {metric}", self.prefix())
            }
            10..=13 => format!("route del {}", self.prefix()),
            14..=15 => format!(
                "neigh replace 10.{port}.0.{gateway} lladdr 02:00:00:00:09:0{gateway} dev v{} nud {}",
                port - 1,
                self.0.of(&["permanent", "reachable", "stale"])
            ),
            16 => format!("neigh del 10.{port}.0.{gateway} dev v{}", port - 1),
            17 => format!("addr add {}/{} dev v{}", self.own(), 20 + self.0.below(10), port - 1),
            18 => format!("addr del {}/{} dev v{}", self.own(), 20 + self.0.below(10), port - 1),
            _ => format!("link set v{} {}", port - 1, self.0.of(&["up", "down", "up"])),
        }
    }
}

#[test]
fn random_commands_agree_with_the_kernel() {
    if !root() {
        return;
    }
    let seed = std::env::var("HUEPLANE_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(0x5eed_0001);
    println!("random_commands: HUEPLANE_SEED={seed}");
    let mut random = Commands(Random(seed));
    let lab = Lab::new();
    let router = lab.router();
    let mut watch = Watch::new(&router);
    watch.snapshot().unwrap();
    for round in 0..40 {
        let commands: String = (0..15).map(|_| random.command() + "\n").collect();
        ip_batch(&router, &commands);
        let addresses: Vec<Ipv4Addr> = (0..40).map(|_| random.address()).collect();
        watch.until_none(|rib| {
            rib.take_update();
            let table = table(rib);
            let neighbours: Vec<_> = rib.neighbours().collect();
            let answers = route_get(&router, &addresses);
            addresses.iter().zip(&answers).find_map(|(address, answer)| {
                let ours = lookup(&table, *address);
                let good = match answer {
                    // No route, or a route that rejects packets: the kernel must answer.
                    None => ours.is_none() || ours == Some(Adjacency::local()),
                    Some(answer) => ours == Some(kernel_does::<u32>(answer, &neighbours, *address)),
                };
                (!good)
                    .then(|| format!("round {round}\n{commands}{address}: kernel {answer:?}, table {ours:?}"))
            })
        });
    }
    println!("{} events, {} snapshots", watch.events, watch.snapshots);
}
