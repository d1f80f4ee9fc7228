//! The target state of a history: networks and the node, as documents.
//!
//! Networks overlap on purpose: on a port all have the same prefix, and all have the same routes; only MAC addresses and
//! the neighbours that routes lead to differ. So a frame that used another network's table, or left with another's MAC
//! addresses, is detected. Ports `p0` to `p2` are the card's, `p3` is the host's.

use std::fmt::Write;

use crate::frame::{mac, neighbour_mac};
use crate::limits::Limit;

/// Ports of the node.
pub const PORTS: [&str; 4] = ["p0", "p1", "p2", "p3"];
/// Number of the first ports that are the card's.
pub const CARD_PORTS: u8 = 3;
/// Most networks.
pub const NETS: u8 = 6;

/// Where a network should run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// Anywhere.
    Auto,
    /// On the card.
    Card,
    /// In software.
    Soft,
}

/// A network as its document describes it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Net {
    /// The physical ports of its virtual ports `a` and `b`.
    pub ports: [u8; 2],
    /// How often they changed.
    pub age: u8,
    /// Where it should run.
    pub place: Place,
    /// Rate limit: packets per second, and burst.
    pub limit: Option<Limit>,
    /// Its weight.
    pub weight: u16,
    /// Number of additional routes, to 172.18.0.0/24 and following.
    pub extra: u8,
    /// Bandwidth that it declares, Mbit/s.
    pub needs: u16,
    /// Whether it requests low latency.
    pub low: bool,
}

/// The target state of a history.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct World {
    /// Networks; the first has number 1.
    pub nets: [Option<Net>; NETS as usize],
    /// The image of the card; `None`: there is no card.
    pub image: Option<&'static str>,
    /// Whether the card is drained.
    pub drained: bool,
    /// Whether the documents say so. Otherwise the node must remember it.
    pub says_drained: bool,
    /// The scheduler, and the bandwidth it assumes for software, Mbit/s.
    pub scheduler: Option<(&'static str, u16)>,
}

/// Name of a network.
#[must_use]
pub fn name(net: u8) -> String {
    format!("n{net}")
}

/// Number of a network of this name.
#[must_use]
pub fn number(name: &str) -> u8 {
    name.trim_start_matches('n').parse().unwrap_or_default()
}

/// The neighbour of a network on a port.
#[must_use]
pub fn neighbour(net: u8, port: u8) -> [u8; 4] {
    [10, 1 + port, 0, 100 + net]
}

fn colons(mac: [u8; 6]) -> String {
    mac.map(|byte| format!("{byte:02x}")).join(":")
}

fn dots(address: [u8; 4]) -> String {
    address.map(|byte| byte.to_string()).join(".")
}

impl World {
    /// A network.
    #[must_use]
    pub fn net(&self, net: u8) -> Option<&Net> {
        self.nets.get(usize::from(net).wrapping_sub(1))?.as_ref()
    }

    /// A network, mutable.
    pub fn net_mut(&mut self, net: u8) -> Option<&mut Net> {
        self.nets.get_mut(usize::from(net).wrapping_sub(1))?.as_mut()
    }

    /// Numbers of the existing networks.
    #[must_use]
    pub fn numbers(&self) -> Vec<u8> {
        (1..=NETS).filter(|net| self.net(*net).is_some()).collect()
    }

    /// All documents.
    #[must_use]
    pub fn documents(&self) -> String {
        let mut text =
            "apiVersion: hueplane/v1\nkind: Node\nmetadata: {name: sim}\nspec:\n  ports:\n".to_owned();
        for port in PORTS {
            let _ = writeln!(text, "    - {{name: {port}}}"); // writing to a string does not fail
        }
        if let Some(image) = self.image {
            let ports = PORTS[..usize::from(CARD_PORTS)].join(", ");
            let drained =
                if self.says_drained { format!(", drained: {}", self.drained) } else { String::new() };
            let _ = writeln!(text, "  card: {{twin: {{image: {image}}}, ports: [{ports}]{drained}}}");
        }
        if let Some((kind, mbit)) = self.scheduler {
            let _ = writeln!(text, "  scheduler: {{kind: {kind}, soft: {{bandwidth: {mbit}Mbit/s}}}}");
        }
        for (net, number) in self.nets.iter().zip(1..) {
            if let Some(net) = net {
                text.push_str(&net.document(number));
            }
        }
        text
    }
}

impl Net {
    /// A network with few routes and no limits, on the first two ports.
    #[must_use]
    pub const fn plain(place: Place) -> Self {
        Self { ports: [0, 1], age: 0, place, limit: None, weight: 1, extra: 0, needs: 0, low: false }
    }

    fn document(&self, number: u8) -> String {
        let mut text = format!(
            "---\napiVersion: hueplane/v1\nkind: Network\nmetadata: {{name: {}}}\nspec:\n  plane: {{kind: ipv4}}\n",
            name(number)
        );
        match self.place {
            Place::Auto => {}
            Place::Card => text.push_str("  placement: card\n"),
            Place::Soft => text.push_str("  placement: soft\n"),
        }
        let latency = if self.low { ", latency: low" } else { "" };
        if self.needs > 0 {
            let _ = writeln!(text, "  needs: {{bandwidth: {}Mbit/s{latency}}}", self.needs);
        }
        if let Some((rate, burst)) = self.limit {
            let _ = writeln!(text, "  rate_limit: {{packets_per_second: {rate}, burst_packets: {burst}}}");
        }
        let _ = writeln!(text, "  weight: {}\n  ports:", self.weight);
        for (vport, port) in ["a", "b"].into_iter().zip(self.ports) {
            let address = dots([10, 1 + port, 0, number]);
            let mac = colons(mac(number, port));
            let on = PORTS[usize::from(port)];
            let _ = writeln!(
                text,
                "    - {{name: {vport}, port: {on}, mac: \"{mac}\", addresses: [{address}/24]}}"
            );
        }
        text.push_str("  routes:\n");
        let vias = self.ports.map(|port| dots(neighbour(number, port)));
        let _ = writeln!(text, "    - {{to: 172.16.0.0/16, via: {}}}", vias[1]);
        let _ = writeln!(text, "    - {{to: 172.17.0.0/16, via: {}}}", vias[0]);
        for extra in 0..self.extra {
            // Other networks' routes with the same prefixes lead the other way.
            let via = &vias[usize::from((extra + number) % 2)];
            let _ = writeln!(text, "    - {{to: 172.18.{extra}.0/24, via: {via}}}");
        }
        text.push_str("  neighbours:\n");
        for (vport, port) in ["a", "b"].into_iter().zip(self.ports) {
            let address = dots(neighbour(number, port));
            let mac = colons(neighbour_mac(number, port));
            let _ = writeln!(text, "    - {{port: {vport}, address: {address}, mac: \"{mac}\"}}");
        }
        text
    }
}
