//! A second, simple implementation of `run`, written only from `spec/kinds.toml` and the configuration
//! reference: lists instead of tables, one packet at a time.

use crate::support::{checksum, mac};

#[derive(Clone, Debug)]
pub enum Select {
    Mac,
    Port,
    Inner(Vec<(u32, u8)>),
}

#[derive(Clone, Debug)]
pub struct Port {
    pub name: String,
    /// Index of the physical port; `p0` is 0.
    pub port: usize,
    pub mac: String,
    pub addresses: Vec<(u32, u8)>,
    pub mtu: u16,
}

#[derive(Clone, Debug)]
pub enum To {
    Via(u32),
    /// Index of the virtual port.
    Port(usize),
}

#[derive(Clone, Debug)]
pub struct Network {
    pub name: String,
    pub select: Select,
    pub ports: Vec<Port>,
    pub routes: Vec<((u32, u8), To)>,
    /// Virtual port, IPv4 address, MAC address.
    pub neighbours: Vec<(usize, u32, String)>,
    /// Packets per second and burst.
    pub rate: Option<(u64, u64)>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Hop {
    Local,
    /// Virtual port, and whether it comes from a link itself (and can have neighbours).
    Glean(usize, bool),
    Forward(usize, String),
}

pub fn ip(address: u32) -> String {
    std::net::Ipv4Addr::from_bits(address).to_string()
}

fn inside((prefix, len): (u32, u8), address: u32) -> bool {
    len == 0 || (prefix ^ address) >> (32 - len) == 0
}

fn first((address, len): (u32, u8)) -> (u32, u8) {
    (if len == 0 { 0 } else { address & (u32::MAX << (32 - len)) }, len)
}

impl Network {
    pub fn yaml(&self) -> String {
        let mut out = format!(
            "---\napiVersion: hueplane/v1\nkind: Network\nmetadata: {{name: {}}}\nspec:\n  plane: {{kind: ipv4}}\n",
            self.name
        );
        match &self.select {
            Select::Mac => {}
            Select::Port => out += "  select: {by: port}\n",
            Select::Inner(list) => {
                let list: Vec<String> = list.iter().map(|(p, len)| format!("{}/{len}", ip(*p))).collect();
                out += &format!("  select: {{by: inner, prefixes: [{}]}}\n", list.join(", "));
            }
        }
        out += "  ports:\n";
        for port in &self.ports {
            let list: Vec<String> =
                port.addresses.iter().map(|(a, len)| format!("{}/{len}", ip(*a))).collect();
            out += &format!(
                "    - {{name: {}, port: p{}, mac: \"{}\", mtu: {}, addresses: [{}]}}\n",
                port.name,
                port.port,
                port.mac,
                port.mtu,
                list.join(", ")
            );
        }
        out += if self.routes.is_empty() { "" } else { "  routes:\n" };
        for ((prefix, len), to) in &self.routes {
            let to = match to {
                To::Via(via) => format!("via: {}", ip(*via)),
                To::Port(port) => format!("port: {}", self.ports[*port].name),
            };
            out += &format!("    - {{to: {}/{len}, {to}}}\n", ip(*prefix));
        }
        out += if self.neighbours.is_empty() { "" } else { "  neighbours:\n" };
        for (port, address, mac) in &self.neighbours {
            out += &format!(
                "    - {{port: {}, address: {}, mac: \"{mac}\"}}\n",
                self.ports[*port].name,
                ip(*address)
            );
        }
        if let Some((rate, burst)) = self.rate {
            out += &format!("  rate_limit: {{packets_per_second: {rate}, burst_packets: {burst}}}\n");
        }
        out
    }

    /// All routes with their targets; of several with the same prefix, the first counts.
    pub fn table(&self) -> Vec<((u32, u8), Hop)> {
        let mut table = Vec::new();
        for port in &self.ports {
            for (address, _) in &port.addresses {
                table.push(((*address, 32), Hop::Local));
            }
        }
        for (index, port) in self.ports.iter().enumerate() {
            for (address, len) in &port.addresses {
                let link = first((*address, *len));
                if *len <= 30 {
                    table.push(((link.0 | (u32::MAX >> len), 32), Hop::Local));
                }
                table.push((link, Hop::Glean(index, true)));
            }
        }
        for (prefix, to) in &self.routes {
            let hop = match to {
                To::Port(port) => Hop::Glean(*port, true),
                To::Via(via) => {
                    let link = self
                        .links()
                        .into_iter()
                        .filter(|(link, _)| inside(*link, *via))
                        .max_by_key(|((_, len), _)| *len);
                    let (_, port) = link.unwrap();
                    match self.neighbours.iter().find(|(on, address, _)| *on == port && address == via) {
                        Some((_, _, mac)) => Hop::Forward(port, mac.clone()),
                        None => Hop::Glean(port, false),
                    }
                }
            };
            table.push((*prefix, hop));
        }
        let known: Vec<_> = self
            .neighbours
            .iter()
            .filter(|(port, address, _)| lookup(&table, *address) == Some(&Hop::Glean(*port, true)))
            .map(|(port, address, mac)| ((*address, 32), Hop::Forward(*port, mac.clone())))
            .collect();
        // A neighbour replaces an on-link route to the same host.
        known.into_iter().chain(table).collect()
    }

    fn links(&self) -> Vec<((u32, u8), usize)> {
        let own = self.ports.iter().enumerate();
        let own =
            own.flat_map(|(index, port)| port.addresses.iter().map(move |address| (first(*address), index)));
        let on_link = self.routes.iter().filter_map(|(prefix, to)| match to {
            To::Port(port) => Some((*prefix, *port)),
            To::Via(_) => None,
        });
        own.chain(on_link).collect()
    }
}

fn lookup(table: &[((u32, u8), Hop)], address: u32) -> Option<&Hop> {
    // The first of several with the same length: `max_by_key` returns the last, hence the reversal.
    table
        .iter()
        .rev()
        .filter(|(prefix, _)| inside(*prefix, address))
        .max_by_key(|((_, len), _)| *len)
        .map(|(_, hop)| hop)
}

/// Result of a frame in one network, or of a frame that belongs to no network.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum End {
    Unclaimed(&'static str),
    Drop(usize, &'static str),
    Punt(usize),
    /// Network, physical port, bytes.
    Forward(usize, usize, Vec<u8>),
}

/// Tokens in packets times 10^9, and the time of the last update.
struct Bucket {
    level: u128,
    last_ns: u64,
}

pub struct Model {
    networks: Vec<Network>,
    tables: Vec<Vec<((u32, u8), Hop)>>,
    buckets: Vec<Option<Bucket>>,
}

fn be16(frame: &[u8], at: usize) -> usize {
    usize::from(frame[at]) << 8 | usize::from(frame[at + 1])
}

fn be32(bytes: &[u8]) -> u32 {
    u32::from_be_bytes(bytes[..4].try_into().unwrap())
}

impl Model {
    /// Networks sorted by name.
    pub fn new(networks: Vec<Network>) -> Self {
        let tables = networks.iter().map(Network::table).collect();
        let buckets = networks
            .iter()
            .map(|n| n.rate.map(|(_, burst)| Bucket { level: u128::from(burst) * 1_000_000_000, last_ns: 0 }))
            .collect();
        Self { networks, tables, buckets }
    }

    /// The results of a frame, one for every network that receives it.
    pub fn frame(&mut self, port: usize, time_ns: u64, frame: &[u8]) -> Vec<End> {
        if frame.len() < 14 {
            return vec![End::Unclaimed("runt")];
        }
        if frame.len() > 9216 {
            return vec![End::Unclaimed("too_long")];
        }
        let owners = self.owners(port, frame);
        if owners.is_empty() {
            return vec![End::Unclaimed("no_network")];
        }
        owners.into_iter().map(|network| self.network(network, time_ns, frame)).collect()
    }

    fn owners(&self, port: usize, frame: &[u8]) -> Vec<usize> {
        let on_port = |network: &Network| network.ports.iter().any(|own| own.port == port);
        let all = || self.networks.iter().enumerate().filter(|(_, network)| on_port(network));
        if frame[0] & 1 == 1 {
            return all().map(|(index, _)| index).collect();
        }
        let by_mac = all().find(|(_, network)| {
            let is_it = |own: &Port| own.port == port && mac(&own.mac) == frame[..6];
            matches!(network.select, Select::Mac) && network.ports.iter().any(is_it)
        });
        if let Some((index, _)) = by_mac {
            return vec![index];
        }
        let mut best: Option<(u8, usize)> = None;
        for (index, network) in all() {
            if let (Select::Inner(list), Some(address)) = (&network.select, virtual_destination(frame)) {
                for (prefix, len) in list {
                    if inside((*prefix, *len), address) && best.is_none_or(|(longest, _)| *len > longest) {
                        best = Some((*len, index));
                    }
                }
            }
        }
        if let Some((_, index)) = best {
            return vec![index];
        }
        all().filter(|(_, network)| matches!(network.select, Select::Port)).map(|(index, _)| index).collect()
    }

    fn network(&mut self, index: usize, time_ns: u64, frame: &[u8]) -> End {
        let network = &self.networks[index];
        let drop = |reason| End::Drop(index, reason);
        if let (Some(bucket), Some((rate, burst))) = (&mut self.buckets[index], network.rate) {
            let earned = u128::from(time_ns.saturating_sub(bucket.last_ns)) * u128::from(rate);
            bucket.level = (bucket.level + earned).min(u128::from(burst) * 1_000_000_000);
            bucket.last_ns = bucket.last_ns.max(time_ns);
            if bucket.level < 1_000_000_000 {
                return drop("rate_limited");
            }
            bucket.level -= 1_000_000_000;
        }
        match be16(frame, 12) {
            0x0806 => return End::Punt(index),
            0x0800 => {}
            _ => return drop("ethertype"),
        }
        let present = frame.len() - 14;
        if present < 20 {
            return drop("truncated");
        }
        if frame[14] >> 4 != 4 {
            return drop("version");
        }
        let ihl = 4 * usize::from(frame[14] & 15);
        if ihl < 20 || ihl > present {
            return drop("header_length");
        }
        let total = be16(frame, 16);
        if total < ihl || total > present {
            return drop("total_length");
        }
        if checksum(&frame[14..14 + ihl]) != 0 {
            return drop("checksum");
        }
        let dst = be32(&frame[30..34]);
        let hop = lookup(&self.tables[index], dst);
        if dst == u32::MAX || dst >> 28 == 14 || hop == Some(&Hop::Local) {
            return End::Punt(index);
        }
        if frame[0] & 1 == 1 {
            return drop("l2_group");
        }
        if matches!(frame[26], 0 | 127 | 224..) {
            return drop("martian_source");
        }
        if matches!(frame[30], 0 | 127 | 240..) {
            return drop("martian_destination");
        }
        if frame[22] < 2 || ihl > 20 {
            return End::Punt(index);
        }
        match hop {
            None | Some(Hop::Local | Hop::Glean(..)) => End::Punt(index),
            Some(Hop::Forward(out, neighbour)) => {
                let out = &network.ports[*out];
                if total > usize::from(out.mtu) {
                    return End::Punt(index);
                }
                let mut sent = frame.to_vec();
                sent[..6].copy_from_slice(&mac(neighbour));
                sent[6..12].copy_from_slice(&mac(&out.mac));
                sent[22] -= 1;
                sent[24..26].copy_from_slice(&[0, 0]);
                let sum = checksum(&sent[14..34]);
                sent[24..26].copy_from_slice(&sum.to_be_bytes());
                End::Forward(index, out.port, sent)
            }
        }
    }
}

/// The destination inside an IPIP or VXLAN tunnel, otherwise the frame's own; IPv4 only.
fn virtual_destination(frame: &[u8]) -> Option<u32> {
    let packet = packet_of(frame)?;
    let fragment = be16(packet, 6) & 0x1fff;
    let ihl = 4 * usize::from(packet[0] & 15);
    let payload = packet.get(ihl..).filter(|_| ihl >= 20);
    match packet[9] {
        4 if fragment != 0 => None,
        4 => destination(payload?),
        17 if fragment == 0 => {
            let payload = payload?;
            // All eight bytes of the UDP header must be present.
            if be16(payload.get(..8)?, 2) != 4789 {
                return destination(packet);
            }
            let inside = payload.get(16..)?;
            if payload[8] & 8 == 0 { None } else { destination(packet_of(inside)?) }
        }
        _ => destination(packet),
    }
}

fn packet_of(frame: &[u8]) -> Option<&[u8]> {
    frame.get(14..).filter(|packet| packet.len() >= 20 && frame[12..14] == [8, 0])
}

fn destination(packet: &[u8]) -> Option<u32> {
    (packet.len() >= 20 && packet[0] >> 4 == 4).then(|| be32(&packet[16..20]))
}
