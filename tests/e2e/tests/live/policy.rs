//! Networks whose routes depend on the source (`route_by`), seen from their hosts.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use hue_e2e::document::{Document, VirtualPort, all};
use hue_e2e::lab::text;
use hue_e2e::traffic::Flow;
use hue_e2e::{Daemon, Host, Lab, can_run, until};

use crate::card::{network, node, runs_on, start};
use crate::migrate::{is_clean, is_whole};

/// The address that both routers behind the network have.
const SERVER: Ipv4Addr = Ipv4Addr::new(10, 99, 0, 1);

/// Ports 0 and 1 lead to sites 1 and 2, ports 2 and 3 to routers 3 and 4, which both reach [`SERVER`].
struct Sites {
    hosts: Vec<Host>,
    document: Document,
}

fn own(port: usize) -> [u8; 6] {
    [2, 0x72, 7, port as u8, 7, 1]
}

impl Sites {
    fn new(lab: &Lab, route_by: &'static str) -> Self {
        let port = |at: usize| VirtualPort {
            name: format!("v{}", at + 1),
            port: lab.ports()[at].clone(),
            mac: text(own(at)),
            addresses: vec![format!("10.7.{}.1/24", at + 1)],
        };
        let hosts: Vec<Host> = (0..4)
            .map(|at| {
                let link = at as u8 + 1;
                let router = Ipv4Addr::new(10, 7, link, 1);
                let mac = [2, 0x68, 7, link, 7, 2];
                lab.host(&format!("s{link}"), at, mac, &format!("10.7.{link}.2/24"), router)
            })
            .collect();
        for router in &hosts[2..] {
            router.space.ip(&["link", "set", "lo", "up"]);
            router.space.ip(&["address", "add", &format!("{SERVER}/32"), "dev", "lo"]);
        }
        let ports = (0..4).map(port).collect();
        Self {
            hosts,
            document: Document { name: lab.name("sites"), kind: route_by, ports, more: Vec::new() },
        }
    }

    /// How many pings of a site to an address are answered, and how many packets each router received meanwhile.
    fn ways(&self, site: usize, to: impl Into<IpAddr>) -> (u32, [u64; 2]) {
        let count = || [2, 3].map(|router: usize| self.hosts[router].space.counter("eth0", "rx_packets"));
        let before = count();
        let answered = self.hosts[site].ping(to, 20);
        let after = count();
        (answered, [after[0] - before[0], after[1] - before[1]])
    }

    /// Waits until a site's packets to an address take a router's way, then checks that all do.
    #[track_caller]
    fn takes(&self, site: usize, to: impl Into<IpAddr> + Copy, router: usize) {
        until("the way works", 20, || self.hosts[site].ping(to, 1) == 1);
        let (answered, ways) = self.ways(site, to);
        assert_eq!(answered, 20, "site {site} by router {router}: {ways:?}");
        // ARP may come besides.
        assert!(ways[router] >= 20 && ways[1 - router] < 10, "site {site} by router {router}: {ways:?}");
    }
}

/// What the node says about a packet to [`SERVER`] that arrives at the first port; `from` is its source in hexadecimal.
fn trace(lab: &Lab, daemon: &Daemon, from: &str) -> String {
    let frame = format!(
        "{}{}0800450000140000000040110000{from}0a630001",
        text(own(0)).replace(':', ""),
        text([2, 0x68, 7, 1, 7, 2]).replace(':', "")
    );
    // The checksum of these two headers.
    let bytes: Vec<u8> =
        (28..68).step_by(2).map(|at| u8::from_str_radix(&frame[at..at + 2], 16).unwrap()).collect();
    let sum = bytes.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1])).sum::<u32>();
    let checksum = !((sum & 0xffff) + (sum >> 16)) as u16;
    let frame = format!("{}{checksum:04x}{}", &frame[..48], &frame[52..]);
    daemon.cli.run(&["trace", "--live", "--in-port", &lab.ports()[0], "--hex", &frame]).expect_ok().stdout
}

#[test]
fn two_sources_to_one_destination_take_two_ways_and_policies_change_live() {
    if !can_run(&[]) {
        return;
    }
    let lab = Lab::new(4);
    let sites = Sites::new(&lab, "ipv4, route_by: source");
    let two = "{from: 10.7.1.0/24, via: 10.7.3.2}, {from: 10.7.2.0/24, via: 10.7.4.2}";
    let with = |routes: &str| {
        all(&[lab.node_document(""), sites.document.clone().with("routes", &format!("[{routes}]")).yaml()])
    };
    let daemon = Daemon::start(&lab, &with(two));
    let name = &sites.document.name;
    // The gateways are found out though no route of the kernel names them.
    sites.takes(0, SERVER, 0);
    sites.takes(1, SERVER, 1);
    // Each site reaches the other one, and the router: what is on a link has no policy.
    assert_eq!(sites.hosts[0].ping(Ipv4Addr::new(10, 7, 2, 2), 3), 3);
    assert_eq!(sites.hosts[0].ping(Ipv4Addr::new(10, 7, 4, 1), 3), 3);

    // The way is shown.
    let shown = trace(&lab, &daemon, "0a070102");
    assert!(shown.contains("from 10.7.1.0/24 to 0.0.0.0/0 via 10.7.3.2"), "{shown}");

    // A route of the kernel is for sources without a policy.
    let add = ["ip", "route", "add", "10.99.0.0/16", "via", "10.7.4.2"];
    let _ = daemon.cli.exec(name, &add).expect_ok();
    sites.takes(0, SERVER, 0);
    // All policies change at once; counters go on.
    let before = daemon.cli.stats(name)["received"].as_u64().unwrap();
    let _ = daemon.cli.apply(&with("{from: 10.7.2.0/24, via: 10.7.3.2}"), &[]);
    sites.takes(0, SERVER, 1);
    sites.takes(1, SERVER, 0);
    assert!(daemon.cli.stats(name)["received"].as_u64().unwrap() > before);
    // A wrong one changes nothing.
    let wrong =
        with("{from: 10.7.2.0/24, via: 10.7.4.2}, {from: 10.7.1.0/24, to: 10.0.0.0/8, via: 10.7.3.2}");
    let refused = daemon.cli.run_with(&["apply", "-f", "-"], &wrong);
    assert!(refused.stderr.contains("both \"from\" and \"to\" with route_by source"), "{}", refused.stderr);
    sites.takes(1, SERVER, 0);

    // By both addresses: the longest pair of prefixes wins.
    let by_both = Document { kind: "ipv4, route_by: source_destination", ..sites.document.clone() };
    let routes = "[{to: 10.99.0.0/24, via: 10.7.3.2}, {from: 10.7.1.0/24, to: 10.99.0.0/16, via: 10.7.4.2}, \
                  {from: 10.7.0.0/16, to: 10.0.0.0/8, via: 10.7.4.2}]";
    let _ =
        daemon.cli.apply(&all(&[lab.node_document(""), by_both.clone().with("routes", routes).yaml()]), &[]);
    sites.takes(0, SERVER, 1);
    // 16 and 8 bits of the last policy equal the 24 of the route, whose prefix of destinations is longer.
    sites.takes(1, SERVER, 0);

    // And back to routes by destination, with a new table.
    let plain = Document { kind: "ipv4", ..sites.document.clone() };
    let routes = "[{to: 10.99.0.0/24, via: 10.7.4.2}]";
    let _ = daemon.cli.apply(&all(&[lab.node_document(""), plain.with("routes", routes).yaml()]), &[]);
    sites.takes(0, SERVER, 1);
    sites.takes(1, SERVER, 1);
}

/// On a card with routes by source, the ways are the same: there, in software, and while the network moves or its policies change.
#[test]
fn sources_keep_their_ways_on_the_card_and_while_the_network_moves() {
    if !can_run(&[]) {
        return;
    }
    let lab = Lab::new(4);
    let sites = Sites::new(&lab, "ipv4, route_by: source_destination");
    let with = |routes: &str| {
        let document = sites.document.clone().with("routes", &format!("[{routes}]"));
        [node(&lab, "kinds"), document.yaml()]
    };
    let name = &sites.document.name;
    let to_server = "{to: 10.99.0.0/24, via: 10.7.3.2}";
    let by_source = "{from: 10.7.2.0/24, to: 10.99.0.0/16, via: 10.7.4.2}";
    let daemon = start(&lab, &["default", "kinds"], &with(&format!("{to_server}, {by_source}")));
    runs_on(&daemon, name, "card");
    sites.takes(0, SERVER, 0);
    sites.takes(1, SERVER, 1);
    assert_eq!(sites.hosts[0].ping(Ipv4Addr::new(10, 7, 2, 2), 3), 3, "what is on a link has no policy");
    assert_eq!(sites.hosts[1].ping(Ipv4Addr::new(10, 7, 4, 1), 3), 3, "nor has the router itself");
    let shown = trace(&lab, &daemon, "0a070202");
    assert!(shown.contains("from 10.7.2.0/24 to 10.99.0.0/16 via 10.7.4.2"), "{shown}");
    let flows: Vec<Flow> = [(0, 2), (1, 3)]
        .iter()
        .map(|(site, router)| Flow::start_to(&sites.hosts[*site], &sites.hosts[*router], SERVER, 200, 200))
        .collect();
    until("traffic", 20, || flows.iter().all(|flow| flow.received() > 50));
    for to in ["soft", "card"].repeat(3) {
        is_clean(&daemon.cli.json(&["migrate", name, "--to", to]));
    }
    // More policies come and go, which concern neither flow.
    let longer = "{from: 10.7.1.0/24, to: 10.98.0.0/16, via: 10.7.4.2}";
    let fewer = format!("{to_server}, {by_source}");
    let more = format!("{fewer}, {longer}");
    for routes in [&more, &fewer, &more, &fewer] {
        let _ = daemon.cli.apply(&all(&with(routes)), &[]);
    }
    runs_on(&daemon, name, "card");
    flows.into_iter().for_each(is_whole);
    // Policies change on the card: site 1 takes the other way, and site 2 too.
    let _ = daemon
        .cli
        .apply(&all(&with(&format!("{to_server}, {}", by_source.replace("10.7.2.0", "10.7.1.0")))), &[]);
    sites.takes(0, SERVER, 1);
    sites.takes(1, SERVER, 0);
    // 16 and 8 bits are not more than the 24 of the route.
    let _ = daemon.cli.apply(
        &all(&with(&format!(
            "{to_server}, {}",
            by_source.replace("10.7.2.0/24, to: 10.99.0.0/16", "10.7.0.0/16, to: 10.0.0.0/8")
        ))),
        &[],
    );
    sites.takes(0, SERVER, 0);
    runs_on(&daemon, name, "card");
    // An image without them leaves the network to software, and says so.
    let _ = daemon.cli.json(&["image", "load", "default"]);
    runs_on(&daemon, name, "soft");
    sites.takes(0, SERVER, 0);
    let refused = daemon.cli.run(&["migrate", name, "--to", "card"]);
    assert!(
        refused.code != 0 && refused.stderr.contains("image default has no routes by source"),
        "{refused}"
    );
    is_clean(&daemon.cli.json(&["migrate", name, "--to", "card", "--load-image"]));
    sites.takes(1, SERVER, 0);
    assert_eq!(network(&daemon, name)["substrate"], "card");
}

#[test]
fn ipv6_sources_take_ways_of_their_own() {
    if !can_run(&[]) {
        return;
    }
    let lab = Lab::new(4);
    let mut sites = Sites::new(&lab, "ipv6, route_by: source_destination");
    let server = Ipv6Addr::new(0x2001, 0xdb8, 0x99, 0, 0, 0, 0, 1);
    let address = |link: usize, host: u16| Ipv6Addr::new(0x2001, 0xdb8, 7, link as u16, 0, 0, 0, host);
    for (at, host) in sites.hosts.iter().enumerate() {
        host.space.enable_ipv6();
        let (address, router) = (format!("{}/64", address(at + 1, 2)), address(at + 1, 1).to_string());
        host.space.ip(&["-6", "address", "add", &address, "dev", "eth0", "nodad"]);
        host.space.ip(&["-6", "route", "add", "default", "via", &router]);
        host.space.ip(&["-4", "address", "flush", "dev", "eth0"]);
    }
    for router in &sites.hosts[2..] {
        router.space.ip(&["-6", "address", "add", &format!("{server}/128"), "dev", "lo"]);
    }
    for (at, port) in sites.document.ports.iter_mut().enumerate() {
        port.addresses = vec![format!("{}/64", address(at + 1, 1))];
    }
    let routes = "[{to: \"2001:db8:99::/48\", via: \"2001:db8:7:3::2\"}, \
                  {from: \"2001:db8:7:2::/64\", to: \"2001:db8::/32\", via: \"2001:db8:7:4::2\"}]";
    let name = &sites.document.name;
    let documents = [node(&lab, "kinds"), sites.document.clone().with("routes", routes).yaml()];
    let daemon = start(&lab, &["kinds"], &documents);
    runs_on(&daemon, name, "card");
    for substrate in ["card", "soft"] {
        let _ = daemon.cli.run(&["migrate", name, "--to", substrate]);
        runs_on(&daemon, name, substrate);
        sites.takes(0, server, 0);
        sites.takes(1, server, 1);
    }
}
