//! What a running daemon says of itself: as JSON over its socket, and as text.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::time::Duration;

use hue_routing::pwospf::{Advertisement, Router};
use serde::{Deserialize, Serialize};

use crate::print::{Align, BOLD, count, section, styled};

/// What the state machine does not know.
pub struct Extra {
    pub uptime: Duration,
    pub is_complete: bool,
    pub send_failed: u64,
    pub routes_refused: u64,
    pub routes_inherited: u64,
}

/// All of it.
#[derive(Serialize, Deserialize)]
pub struct Snapshot {
    version: String,
    pid: u32,
    router_id: Ipv4Addr,
    area: Ipv4Addr,
    uptime_s: u64,
    hello_interval_s: u16,
    lsu_interval_s: u16,
    /// Of the last own LSU.
    sequence: u16,
    /// Whether all routers had the time to say what they know since the start.
    complete: bool,
    interfaces: Vec<InterfaceRow>,
    /// What this router advertises.
    links: Vec<LinkRow>,
    database: Vec<RouterRow>,
    routes: Vec<RouteRow>,
    counters: CounterRows,
}

#[derive(Serialize, Deserialize)]
struct InterfaceRow {
    name: String,
    address: Ipv4Addr,
    prefix: String,
    /// Whether hellos are sent; otherwise the subnet is only advertised.
    hellos: bool,
    neighbours: Vec<NeighbourRow>,
}

#[derive(Serialize, Deserialize)]
struct NeighbourRow {
    address: Ipv4Addr,
    router_id: Ipv4Addr,
    /// Seconds since its last hello.
    heard_s: u64,
    /// Seconds since it became a neighbour.
    up_s: u64,
}

#[derive(Serialize, Deserialize)]
struct RouterRow {
    router_id: Ipv4Addr,
    sequence: u16,
    /// Seconds since its last LSU.
    age_s: u64,
    links: Vec<LinkRow>,
}

#[derive(Serialize, Deserialize)]
struct LinkRow {
    prefix: String,
    /// The router at the other end, if there is one.
    router_id: Option<Ipv4Addr>,
}

#[derive(Serialize, Deserialize)]
struct RouteRow {
    prefix: String,
    via: Ipv4Addr,
    interface: String,
    hops: u32,
    /// The router that advertises the subnet.
    router_id: Ipv4Addr,
}

/// `received = hellos + lsus + all drops`.
#[derive(Serialize, Deserialize)]
struct CounterRows {
    received: u64,
    hellos: u64,
    lsus: u64,
    hellos_sent: u64,
    lsus_sent: u64,
    send_failed: u64,
    originated: u64,
    ttl_ended: u64,
    links_left_out: u64,
    computations: u64,
    routes_refused: u64,
    routes_inherited: u64,
    /// Packets dropped, by reason.
    drops: BTreeMap<String, u64>,
}

impl Snapshot {
    /// The state of a router.
    pub fn of(router: &Router, extra: &Extra) -> Self {
        let ago = |then: Duration| extra.uptime.saturating_sub(then).as_secs();
        let names: BTreeMap<u32, &str> =
            router.interfaces().map(|(interface, _)| (interface.link, interface.name.as_str())).collect();
        let config = router.config();
        Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            router_id: config.router.get(),
            area: config.area,
            uptime_s: extra.uptime.as_secs(),
            hello_interval_s: config.hello_interval_s,
            lsu_interval_s: config.lsu_interval_s,
            sequence: router.sequence(),
            complete: extra.is_complete,
            interfaces: router
                .interfaces()
                .map(|(interface, neighbours)| InterfaceRow {
                    name: interface.name.clone(),
                    address: interface.address,
                    prefix: interface.prefix.to_string(),
                    hellos: interface.speaks,
                    neighbours: neighbours
                        .iter()
                        .map(|(address, neighbour)| NeighbourRow {
                            address: *address,
                            router_id: neighbour.router.get(),
                            heard_s: ago(neighbour.heard),
                            up_s: ago(neighbour.since),
                        })
                        .collect(),
                })
                .collect(),
            links: router.own_links().iter().map(LinkRow::of).collect(),
            database: router
                .database()
                .map(|(id, entry)| RouterRow {
                    router_id: id.get(),
                    sequence: entry.sequence,
                    age_s: ago(entry.received),
                    links: entry.links.iter().map(LinkRow::of).collect(),
                })
                .collect(),
            routes: router
                .routes()
                .iter()
                .map(|(prefix, route)| RouteRow {
                    prefix: prefix.to_string(),
                    via: route.next.via,
                    interface: names.get(&route.next.link).copied().unwrap_or_default().to_owned(),
                    hops: route.hops,
                    router_id: route.router.get(),
                })
                .collect(),
            counters: CounterRows::of(router, extra),
        }
    }

    /// As tables.
    pub fn text(&self) -> String {
        let complete = if self.complete { "" } else { ", still learning" };
        let mut out = format!(
            "{} {}, area {}, up {} s{complete}; hellos every {} s, LSUs every {} s, the last one {}\n",
            styled(BOLD, "router"),
            self.router_id,
            self.area,
            self.uptime_s,
            self.hello_interval_s,
            self.lsu_interval_s,
            self.sequence,
        );
        let left = |name| (name, Align::Left);
        let right = |name| (name, Align::Right);
        let neighbours = self.interfaces.iter().flat_map(|interface| {
            let none = interface.neighbours.is_empty();
            let alone = none.then(|| ["-", "-", "-", "-"].map(str::to_owned));
            let some = interface.neighbours.iter().map(|one| {
                [
                    one.address.to_string(),
                    one.router_id.to_string(),
                    one.heard_s.to_string(),
                    one.up_s.to_string(),
                ]
            });
            alone.into_iter().chain(some).map(|cells| {
                let own = [interface.name.clone(), interface.address.to_string(), interface.prefix.clone()];
                own.into_iter().chain(cells).collect()
            })
        });
        let heads = [
            left("INTERFACE"),
            left("ADDRESS"),
            left("SUBNET"),
            left("NEIGHBOUR"),
            left("ROUTER"),
            right("HEARD (s)"),
            right("UP (s)"),
        ];
        section(&mut out, "interfaces", &heads, &neighbours.collect::<Vec<_>>());
        let database = self.database.iter().map(|one| {
            let links: Vec<String> = one.links.iter().map(LinkRow::text).collect();
            vec![one.router_id.to_string(), one.sequence.to_string(), one.age_s.to_string(), links.join(", ")]
        });
        let heads = [left("ROUTER"), right("SEQUENCE"), right("AGE (s)"), left("LINKS")];
        section(&mut out, "other routers", &heads, &database.collect::<Vec<_>>());
        let routes = self.routes.iter().map(|one| {
            let (via, router) = (one.via.to_string(), one.router_id.to_string());
            vec![one.prefix.clone(), via, one.interface.clone(), one.hops.to_string(), router]
        });
        let heads = [left("ROUTE"), left("VIA"), left("INTERFACE"), right("HOPS"), left("ROUTER")];
        section(&mut out, "routes", &heads, &routes.collect::<Vec<_>>());
        out.push('\n');
        out.push_str(&self.counters.text());
        out
    }
}

impl LinkRow {
    fn of(link: &Advertisement) -> Self {
        Self { prefix: link.prefix.to_string(), router_id: link.router.map(|router| router.get()) }
    }

    fn text(&self) -> String {
        match self.router_id {
            Some(router) => format!("{} to {router}", self.prefix),
            None => self.prefix.clone(),
        }
    }
}

impl CounterRows {
    fn of(router: &Router, extra: &Extra) -> Self {
        let counters = router.counters();
        Self {
            received: counters.received,
            hellos: counters.hellos,
            lsus: counters.lsus,
            hellos_sent: counters.hellos_sent,
            lsus_sent: counters.lsus_sent,
            send_failed: extra.send_failed,
            originated: counters.originated,
            ttl_ended: counters.ttl_ended,
            links_left_out: counters.links_left_out,
            computations: counters.computations,
            routes_refused: extra.routes_refused,
            routes_inherited: extra.routes_inherited,
            drops: counters.drops.iter().map(|(reason, count)| (reason.name().to_owned(), count)).collect(),
        }
    }

    fn text(&self) -> String {
        let mut out = format!(
            "received {}: {}, {}, {}\nsent {} and {}, {} failed; {} of its own, {} of paths\n",
            self.received,
            count(self.hellos, "hello"),
            count(self.lsus, "LSU"),
            count(self.drops.values().sum(), "drop"),
            count(self.hellos_sent, "hello"),
            count(self.lsus_sent, "LSU"),
            self.send_failed,
            count(self.originated, "LSU"),
            count(self.computations, "computation"),
        );
        let rare = [
            ("LSUs not passed on, because they may take no further hop", self.ttl_ended),
            ("links left out of LSUs, which were full", self.links_left_out),
            ("routes refused by the kernel", self.routes_refused),
            ("routes of an earlier daemon, not confirmed yet", self.routes_inherited),
        ];
        for (what, number) in rare.into_iter().filter(|(_, number)| *number > 0) {
            out.push_str(&format!("{what}: {number}\n"));
        }
        let drops: Vec<String> = self
            .drops
            .iter()
            .filter(|(_, count)| **count > 0)
            .map(|(reason, count)| format!("{reason} {count}"))
            .collect();
        if !drops.is_empty() {
            out.push_str(&format!("drops: {}\n", drops.join(", ")));
        }
        out
    }
}
