//! Names for the ids in programs: names of networks, ports and routes.
//!
//! Flow: compile → **names** → command line (tables, trace). Substrates do not use them.

use std::fmt;
use std::net::IpAddr;

use hue_demux::PortId;
use hue_intent::Colour;
use hue_planes::Kind;
use hue_tables::{AnyPrefix, NextHop, Vid, slice};
use hue_wire::Mac;

/// A physical port of the node; its index is its `PortId`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PhysicalPort {
    /// Name.
    pub name: String,
    /// Largest IP packet that the link carries, in bytes.
    pub mtu_bytes: u16,
    /// Of an end of a link inside the node: the other end.
    pub peer: Option<PortId>,
}

/// The origin of a route.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Origin {
    /// An address of the network itself.
    Address,
    /// The broadcast address of a link.
    Broadcast,
    /// The subnet-router anycast address of a link.
    Anycast,
    /// The link of an address.
    Connected,
    /// A neighbour on a link, with its MAC address.
    Neighbour(Mac),
    /// A static route through a gateway, with the gateway's MAC address if known.
    Via(IpAddr, Option<Mac>),
    /// A static route through several gateways: their addresses, weights and virtual ports.
    Vias(Vec<(IpAddr, u16, u16)>),
    /// A static route directly onto a link.
    OnLink,
}

/// A route of a network, for display.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RouteName {
    /// The table that it is in, of a network with several; otherwise 0.
    pub slice: u8,
    /// Destination.
    pub prefix: AnyPrefix,
    /// Index into the program's next hops.
    pub hop: NextHop,
    /// Index of the virtual port that it leads to.
    pub vport: u16,
    /// Origin.
    pub origin: Origin,
}

/// Names of one network.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NetworkNames {
    /// Id.
    pub vid: Vid,
    /// Name.
    pub name: String,
    /// Display colour: from the document, or from a palette by id.
    pub colour: Colour,
    /// Kind of plane.
    pub kind: Kind,
    /// Virtual ports by index.
    pub ports: Vec<String>,
    /// Routes sorted by slice and prefix, without duplicates.
    pub routes: Vec<RouteName>,
}

impl NetworkNames {
    /// The longest route that contains `address`; with kind `splice`, `address` is a key of its table
    /// ([`hue_tables::slice`]).
    #[must_use]
    pub fn route(&self, address: IpAddr) -> Option<&RouteName> {
        let (slice, address) = match (self.kind, slice::address_of(address)) {
            (Kind::Splice, Some((slice, address))) => (slice, address.into()),
            _ => (0, address),
        };
        (0..=AnyPrefix::host(address).len()).rev().find_map(|len| {
            let prefix = AnyPrefix::containing(address, len);
            let index = self
                .routes
                .binary_search_by_key(&(slice, prefix), |route| (route.slice, route.prefix))
                .ok()?;
            self.routes.get(index)
        })
    }

    /// A route as text, in the format of `ip route`: `10.9.0.0/16 via 10.2.0.2 dev right`; with the slice, if there are several.
    #[must_use]
    pub fn text(&self, route: &RouteName) -> String {
        let text = self.text_of(route);
        if self.kind == Kind::Splice { format!("{text} slice {}", route.slice) } else { text }
    }

    fn text_of(&self, route: &RouteName) -> String {
        let port = |vport: u16| self.ports.get(usize::from(vport)).map_or("?", String::as_str);
        if let Origin::Vias(vias) = &route.origin {
            let way = |(via, weight, vport): &(IpAddr, u16, u16)| {
                format!("via {via} dev {} weight {weight}", port(*vport))
            };
            return format!("{} {}", route.prefix, vias.iter().map(way).collect::<Vec<_>>().join(", "));
        }
        let port = port(route.vport);
        let RouteText(what, rest) = RouteText::of(&route.origin);
        format!("{what}{} {rest}dev {port}", route.prefix)
    }

    /// The route to `address` as text, see [`NetworkNames::text`]; `None` if there is no route.
    #[must_use]
    pub fn explain(&self, address: IpAddr) -> Option<String> {
        self.route(address).map(|route| self.text(route))
    }
}

struct RouteText(&'static str, String);

impl RouteText {
    fn of(origin: &Origin) -> Self {
        match origin {
            Origin::Address => Self("local ", String::new()),
            Origin::Broadcast => Self("broadcast ", String::new()),
            Origin::Anycast => Self("anycast ", String::new()),
            Origin::Connected | Origin::OnLink | Origin::Vias(_) => Self("", String::new()),
            Origin::Neighbour(mac) => Self("", format!("at {mac} ")),
            Origin::Via(via, Some(mac)) => Self("", format!("via {via} at {mac} ")),
            Origin::Via(via, None) => Self("", format!("via {via} ")),
        }
    }
}

/// Names of all ports and networks of a node.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Names {
    /// Physical ports by `PortId`.
    pub ports: Vec<PhysicalPort>,
    /// Networks sorted by name, in the order of the programs.
    pub networks: Vec<NetworkNames>,
}

impl Names {
    /// Names of the network with an id.
    #[must_use]
    pub fn network(&self, vid: Vid) -> Option<&NetworkNames> {
        self.networks.iter().find(|network| network.vid == vid)
    }
}

/// Ten colours that are easy to distinguish on light and dark backgrounds, for networks without a colour.
const PALETTE: [[u8; 3]; 10] = [
    [0x1f, 0x77, 0xb4],
    [0xff, 0x7f, 0x0e],
    [0x2c, 0xa0, 0x2c],
    [0xd6, 0x27, 0x28],
    [0x94, 0x67, 0xbd],
    [0x8c, 0x56, 0x4b],
    [0xe3, 0x77, 0xc2],
    [0x7f, 0x7f, 0x7f],
    [0xbc, 0xbd, 0x22],
    [0x17, 0xbe, 0xcf],
];

/// The default colour of a network.
pub(crate) fn palette(vid: Vid) -> Colour {
    Colour(PALETTE[(vid.index() - 1) % PALETTE.len()])
}

impl fmt::Display for PhysicalPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}
