//! What a RIB and a kernel do with packets to an address, to compare them.

use std::collections::BTreeMap;
use std::net::IpAddr;

use hue_planes::Adjacency;
use hue_routing::{Family, Rib};
use hue_tables::Prefix;
use hue_wire::Mac;

use super::lab::{ip_batch, ports};

/// The routes of a RIB.
pub fn table<K: Family>(rib: &Rib<K>) -> BTreeMap<Prefix<K>, Adjacency> {
    rib.routes(None).map(|row| (row.prefix.of().unwrap(), row.adjacency)).collect()
}

/// How the network treats packets to an address: `None` without a route.
pub fn lookup<K: Family>(table: &BTreeMap<Prefix<K>, Adjacency>, address: K::Addr) -> Option<Adjacency> {
    let key = K::from_addr(address);
    (0..=K::BITS).rev().find_map(|len| table.get(&Prefix::containing(key, len)).copied())
}

/// The same after the RIB's latest update.
pub fn at<K: Family>(rib: &mut Rib<K>, address: &str) -> Option<Adjacency> {
    rib.take_update();
    lookup(&table(rib), parsed::<K>(address))
}

fn parsed<K: Family>(address: &str) -> K::Addr {
    K::from_ip(address.parse::<IpAddr>().unwrap()).unwrap().to_addr()
}

pub fn glean(port: usize) -> Option<Adjacency> {
    Some(Adjacency::glean(ports()[port].port))
}

pub fn forward(port: usize, to: Mac) -> Option<Adjacency> {
    let port = &ports()[port];
    Some(Adjacency::forward(port.port, port.mac, to, port.mtu_bytes))
}

/// The action of the kernel according to `ip route get`, for addresses with one next hop.
pub fn kernel_does<K: Family>(
    answer: &str,
    neighbours: &[(u16, K::Addr, Mac)],
    address: K::Addr,
) -> Adjacency {
    let words: Vec<&str> = answer.split_whitespace().collect();
    let after = |word: &str| words.iter().position(|at| *at == word).map(|at| words[at + 1]);
    let vport = match after("dev") {
        Some("v0") => 0,
        Some("v1") => 1,
        _ => return Adjacency::local(),
    };
    let own: &[&str] = match K::BITS {
        32 => &["local", "broadcast"],
        _ => &["local", "anycast", "unreachable", "prohibit", "blackhole"],
    };
    if own.contains(&words[0]) {
        return Adjacency::local();
    }
    let to = after("via").map_or(address, parsed::<K>);
    let port = &ports()[usize::from(vport)];
    match neighbours.iter().find(|(at, neighbour, _)| *at == vport && *neighbour == to) {
        Some((.., mac)) => Adjacency::forward(port.port, port.mac, *mac, port.mtu_bytes),
        None => Adjacency::glean(port.port),
    }
}

/// The answers of `ip route get`; `None` without a route.
pub fn route_get<A: std::fmt::Display>(router: &hue_host::Namespace, addresses: &[A]) -> Vec<Option<String>> {
    let commands: String = addresses.iter().map(|address| format!("route get {address}\n")).collect();
    let (output, errors) = ip_batch(router, &commands);
    let failed: Vec<usize> = errors
        .lines()
        .filter_map(|line| line.strip_prefix("Command failed -:")?.parse::<usize>().ok())
        .collect();
    let mut answers = output.lines().filter(|line| !line.starts_with(' '));
    (1..=addresses.len())
        .map(|line| if failed.contains(&line) { None } else { Some(answers.next().unwrap().to_owned()) })
        .collect()
}

/// A small deterministic generator (xorshift64*): a printed seed replays a test.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11) % bound
    }

    pub fn of<'a>(&mut self, what: &[&'a str]) -> &'a str {
        what[self.below(what.len() as u64) as usize]
    }
}
