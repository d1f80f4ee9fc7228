//! The target state of a history: networks and the node, as documents.
//!
//! Networks overlap on purpose: on a port all have the same prefix, and all have the same routes; only MAC addresses and
//! the neighbours that routes lead to differ. So a frame that used another network's table, or left with another's MAC
//! addresses, is detected. Ports `p0` to `p2` are the card's, `p3` is the host's. A switch has `p4` to itself, which is the card's, and
//! shares `p1` and `p2` with the routers: it gets what is not for their MAC addresses.

use std::fmt::Write;
use std::net::{IpAddr, Ipv6Addr};

use hue_planes::Kind;
use hue_tables::{AnyPrefix, Prefix4, Prefix6};

use crate::frame::{mac, neighbour_mac, source_of};
use crate::ledger::{SOURCED, SOURCED_FLOWS};
use crate::limits::Limit;

/// Ports of the node.
pub const PORTS: [&str; 5] = ["p0", "p1", "p2", "p3", "p4"];
/// Number of the first ports, which routers have.
pub const ROUTER_PORTS: u8 = 4;
/// Number of the first ports that are the card's.
pub const CARD_PORTS: u8 = 3;
/// Ports of a switch, all of which are the card's.
pub const SWITCH_PORTS: [u8; 3] = [1, 2, 4];
/// Most routers, which have the first numbers.
pub const ROUTERS: u8 = 6;
/// The number of the network that is a switch.
pub const SWITCH: u8 = ROUTERS + 1;
/// Most networks.
pub const NETS: u8 = SWITCH;

/// Puts a route into slice 1.
const SLICE_1: &str = ", slice: 1";

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

/// An address family.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Family {
    /// IPv4.
    Four,
    /// IPv6.
    Six,
}

/// The address families of a network, and so its kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Families {
    /// Only one.
    Only(Family),
    /// Both.
    Both,
    /// IPv4 with two slices: packets choose by the lowest bit of their identification.
    Sliced,
    /// None: it is a switch, and forwards frames of all protocols.
    Frames,
}

impl Families {
    /// Those of networks of a kind; `None`: histories do not know the kind. Networks of kinds that no card runs have
    /// histories of their own (tests/sim/bits.rs, tests/sim/labels.rs), or no histories.
    #[must_use]
    pub fn of(kind: Kind) -> Option<Self> {
        match kind {
            Kind::Ipv4 => Some(Self::Only(Family::Four)),
            Kind::Ipv6 => Some(Self::Only(Family::Six)),
            Kind::Dual => Some(Self::Both),
            Kind::L2 => Some(Self::Frames),
            // What happens to their packets is up to a kernel or a program, which histories do not have.
            Kind::Kernel | Kind::Process => None,
            Kind::Splice => Some(Self::Sliced),
            Kind::Extract | Kind::Rofl | Kind::Mpls | Kind::Echo => None,
        }
    }

    /// Those of all kinds of routers that documents can name.
    #[must_use]
    pub fn of_routers() -> Vec<Self> {
        Kind::OFFERED.into_iter().filter_map(Self::of).filter(|families| *families != Self::Frames).collect()
    }

    /// The kind of such a network.
    ///
    /// # Panics
    /// If documents can name no such kind.
    #[must_use]
    pub fn kind(self) -> &'static str {
        let mut kinds = Kind::OFFERED.into_iter();
        kinds.find(|kind| Self::of(*kind) == Some(self)).expect("a kind for all families").name()
    }

    /// The families.
    #[must_use]
    pub fn list(self) -> &'static [Family] {
        match self {
            Self::Only(Family::Four) | Self::Sliced => &[Family::Four],
            Self::Only(Family::Six) => &[Family::Six],
            Self::Both => &[Family::Four, Family::Six],
            Self::Frames => &[],
        }
    }

    /// The family of a numbered frame: they take turns.
    #[must_use]
    pub fn nth(self, number: u32) -> Family {
        let list = self.list();
        list[number as usize % list.len()]
    }
}

impl Family {
    /// An address in the prefix with this number: in 172.16.0.0/12 or 2001:db8:1000::/36, to which networks have routes.
    #[must_use]
    pub fn address(self, number: u8, host: [u8; 2]) -> IpAddr {
        let [high, low] = host;
        match self {
            Self::Four => [172, number, high, low].into(),
            Self::Six => {
                Ipv6Addr::from([0x20, 1, 0xd, 0xb8, 0x10, number, high, low, 0, 0, 0, 0, 0, 0, 0, high ^ low])
                    .into()
            }
        }
    }

    /// The prefix with this number, or a part of it.
    #[must_use]
    pub fn prefix(self, number: u8, part: Option<u8>) -> AnyPrefix {
        match (self.address(number, [part.unwrap_or(0), 0]), part) {
            (IpAddr::V4(first), part) => {
                AnyPrefix::V4(Prefix4::containing(first.into(), if part.is_some() { 24 } else { 16 }))
            }
            (IpAddr::V6(first), part) => {
                AnyPrefix::V6(Prefix6::containing(first.into(), if part.is_some() { 56 } else { 48 }))
            }
        }
    }

    /// The prefix of the sources of a flow.
    #[must_use]
    pub fn sources(self, flow: u8) -> AnyPrefix {
        let [a, b, part] = source_of(flow);
        match self {
            Self::Four => AnyPrefix::containing([a, b, part, 0].into(), 24),
            Self::Six => {
                let first = Ipv6Addr::new(0x2001, 0xdb8, 0xffff, part.into(), 0, 0, 0, 0);
                AnyPrefix::containing(first.into(), 64)
            }
        }
    }

    /// The address of a host on a port, with the length of the link's prefix.
    #[must_use]
    pub fn on_link(self, port: u8, host: u8) -> (IpAddr, u8) {
        match self {
            Self::Four => ([10, 1 + port, 0, host].into(), 24),
            Self::Six => {
                (Ipv6Addr::new(0x2001, 0xdb8, 1 + u16::from(port), 0, 0, 0, 0, host.into()).into(), 64)
            }
        }
    }
}

/// A network as its document describes it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Net {
    /// Its address families.
    pub families: Families,
    /// The physical ports of a router's virtual ports `a` and `b`. A switch has [`SWITCH_PORTS`].
    pub ports: [u8; 2],
    /// How often they changed.
    pub age: u8,
    /// Where it should run.
    pub place: Place,
    /// Rate limit: packets per second, and burst.
    pub limit: Option<Limit>,
    /// Its weight.
    pub weight: u16,
    /// Number of additional routes of each family, to parts of prefix 18.
    pub extra: u8,
    /// The weights of the neighbours on both ports that share the flows to prefix 19; `None`: it has no route there.
    pub shares: Option<[u8; 2]>,
    /// Whether packets to prefix 20 leave by port `b`, because of a route by source, for each of their sources; `None`: it routes by
    /// destination.
    pub by_source: Option<[bool; SOURCED_FLOWS as usize]>,
    /// Bandwidth that it declares, Mbit/s.
    pub needs: u16,
    /// Whether it requests low latency.
    pub low: bool,
}

/// The target state of a history.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct World {
    /// Networks; the first has number 1, and the last may be a switch.
    pub nets: [Option<Net>; NETS as usize],
    /// The image of the card; `None`: there is no card.
    pub image: Option<&'static str>,
    /// Whether the card is drained.
    pub drained: bool,
    /// Whether the documents say so. Otherwise the node must remember it.
    pub says_drained: bool,
    /// The scheduler, and the bandwidth it assumes for software, Mbit/s.
    pub scheduler: Option<(&'static str, u16)>,
    /// Whether the node has the port for a switch.
    pub switched: bool,
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
pub fn neighbour(family: Family, net: u8, port: u8) -> IpAddr {
    family.on_link(port, 100 + net).0
}

fn colons(mac: [u8; 6]) -> String {
    mac.map(|byte| format!("{byte:02x}")).join(":")
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
        let routers = usize::from(ROUTER_PORTS);
        for port in &PORTS[..if self.switched { PORTS.len() } else { routers }] {
            let _ = writeln!(text, "    - {{name: {port}}}"); // writing to a string does not fail
        }
        if let Some(image) = self.image {
            let mut ports = PORTS[..usize::from(CARD_PORTS)].join(", ");
            if self.switched {
                let _ = write!(ports, ", {}", PORTS[routers]);
            }
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
        let families = Families::Only(Family::Four);
        Self {
            families,
            ports: [0, 1],
            age: 0,
            place,
            limit: None,
            weight: 1,
            extra: 0,
            shares: None,
            by_source: None,
            needs: 0,
            low: false,
        }
    }

    /// The port that packets of a flow to prefix 20 leave by.
    #[must_use]
    pub fn way_of(&self, flow: u8) -> u8 {
        let by_source = self.by_source.is_some_and(|ways| ways[usize::from(flow - SOURCED)]);
        self.ports[usize::from(by_source)]
    }

    /// The port that a numbered packet of flow 0 or 1 leaves by. In slice 1, to which each odd one goes, their routes lead the other way.
    #[must_use]
    pub fn exit_of(&self, flow: u8, number: u32) -> u8 {
        let other = self.families == Families::Sliced && number % 2 == 1;
        self.ports[usize::from((flow == 0) != other)]
    }

    /// A switch.
    #[must_use]
    pub const fn switch(place: Place) -> Self {
        let ports = [SWITCH_PORTS[0], SWITCH_PORTS[1]];
        Self { families: Families::Frames, ports, ..Self::plain(place) }
    }

    /// Whether it is a switch.
    #[must_use]
    pub fn is_switch(&self) -> bool {
        self.families == Families::Frames
    }

    fn document(&self, number: u8) -> String {
        let settings = match self.families {
            Families::Sliced => ", slices: 2",
            _ if self.by_source.is_some() => ", route_by: source_destination",
            _ => "",
        };
        let mut text = format!(
            "---\napiVersion: hueplane/v1\nkind: Network\nmetadata: {{name: {}}}\nspec:\n  plane: {{kind: {}{settings}}}\n",
            name(number),
            self.families.kind()
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
        if self.is_switch() {
            for port in SWITCH_PORTS {
                let (on, mac) = (PORTS[usize::from(port)], colons(mac(number, port)));
                let _ = writeln!(text, "    - {{name: {on}, port: {on}, mac: \"{mac}\"}}");
            }
            return text;
        }
        for (vport, port) in ["a", "b"].into_iter().zip(self.ports) {
            let own = self.families.list().iter().map(|family| family.on_link(port, number));
            let addresses: Vec<String> = own.map(|(own, length)| format!("\"{own}/{length}\"")).collect();
            let addresses = addresses.join(", ");
            let mac = colons(mac(number, port));
            let on = PORTS[usize::from(port)];
            let _ = writeln!(
                text,
                "    - {{name: {vport}, port: {on}, mac: \"{mac}\", addresses: [{addresses}]}}"
            );
        }
        text.push_str("  routes:\n");
        for family in self.families.list() {
            let vias = self.ports.map(|port| neighbour(*family, number, port));
            let mut route = |prefix: AnyPrefix, via: IpAddr, slice: &str| {
                let _ = writeln!(text, "    - {{to: \"{prefix}\", via: \"{via}\"{slice}}}");
            };
            route(family.prefix(16, None), vias[1], "");
            route(family.prefix(17, None), vias[0], "");
            if self.families == Families::Sliced {
                route(family.prefix(16, None), vias[0], SLICE_1);
                route(family.prefix(17, None), vias[1], SLICE_1);
            }
            for extra in 0..self.extra {
                // Other networks' routes with the same prefixes lead the other way.
                route(family.prefix(18, Some(extra)), vias[usize::from((extra + number) % 2)], "");
            }
            if let Some(ways) = self.by_source {
                let to = family.prefix(20, None);
                let _ = writeln!(text, "    - {{to: \"{to}\", via: \"{}\"}}", vias[0]);
                for flow in (SOURCED..).zip(ways).filter_map(|(flow, by_source)| by_source.then_some(flow)) {
                    let from = family.sources(flow);
                    let _ = writeln!(text, "    - {{from: \"{from}\", to: \"{to}\", via: \"{}\"}}", vias[1]);
                }
            }
            if let Some(weights) = self.shares {
                let share = |(via, weight): (IpAddr, u8)| format!("{{via: \"{via}\", weight: {weight}}}");
                let all: Vec<String> = vias.into_iter().zip(weights).map(share).collect();
                let (to, all) = (family.prefix(19, None), all.join(", "));
                let slices = if self.families == Families::Sliced { &["", SLICE_1][..] } else { &[""] };
                for slice in slices {
                    let _ = writeln!(text, "    - {{to: \"{to}\", via: [{all}]{slice}}}");
                }
            }
        }
        text.push_str("  neighbours:\n");
        for (vport, port) in ["a", "b"].into_iter().zip(self.ports) {
            for family in self.families.list() {
                let (address, mac) = (neighbour(*family, number, port), colons(neighbour_mac(number, port)));
                let _ = writeln!(text, "    - {{port: {vport}, address: \"{address}\", mac: \"{mac}\"}}");
            }
        }
        text
    }
}
