//! What the demo builds: networks, hosts, addresses and the documents that say so. Pure.
//!
//! Network *n* (from 1) has the links 10.*n*.1.0/24 on its left and 10.*n*.2.0/24 on its right port, the router .1 and one
//! host .2 on each. Network 2 has the addresses of network 1, on the two other ports. Six pairs of the four ports
//! take turns, so that every port is shared by half of the networks.

use std::fmt::Write;
use std::net::Ipv4Addr;

use hue_wire::Mac;

/// Ports of the node, `p0` to `p3`.
pub const PORTS: usize = 4;

/// Networks that run on the card, the first ones; the others run in software beside it.
pub const ON_CARD: usize = 4;
/// Networks that a card's image knows at most, with one index free for one that moves.
pub const CARD_MAX: usize = 63;

/// The prefix length of every link.
pub const LINK_LEN: u8 = 24;

/// Which two ports a network is on, by turns: the first two pairs have no port in common.
const PAIRS: [[usize; 2]; 6] = [[0, 1], [2, 3], [0, 2], [1, 3], [0, 3], [1, 2]];

/// Names and colours of the first networks.
const PALETTE: [(&str, [u8; 3]); 15] = [
    ("red", [0xd6, 0x27, 0x28]),
    ("blue", [0x1f, 0x77, 0xb4]),
    ("green", [0x2c, 0xa0, 0x2c]),
    ("orange", [0xff, 0x7f, 0x0e]),
    ("purple", [0x94, 0x67, 0xbd]),
    ("brown", [0x8c, 0x56, 0x4b]),
    ("pink", [0xe3, 0x77, 0xc2]),
    ("grey", [0x7f, 0x7f, 0x7f]),
    ("olive", [0xbc, 0xbd, 0x22]),
    ("cyan", [0x17, 0xbe, 0xcf]),
    ("gold", [0xd4, 0xa0, 0x17]),
    ("lime", [0x7c, 0xcd, 0x3a]),
    ("navy", [0x3a, 0x5f, 0xcd]),
    ("coral", [0xff, 0x6f, 0x61]),
    ("teal", [0x00, 0x80, 0x80]),
];

/// The whole lab.
#[derive(Debug)]
pub struct Plan {
    /// Networks in order.
    pub networks: Vec<Network>,
}

/// One network.
#[derive(Debug)]
pub struct Network {
    /// Its name.
    pub name: String,
    /// Its colour.
    pub colour: [u8; 3],
    /// Its hosts: left, right.
    pub hosts: [Host; 2],
}

/// One host, and its router.
#[derive(Debug)]
pub struct Host {
    /// Which port of the node its bridge leads to.
    pub port: usize,
    /// Its address.
    pub address: Ipv4Addr,
    /// Its MAC address.
    pub mac: Mac,
    /// The router's address on its link.
    pub router: Ipv4Addr,
    /// The router's MAC address on its link.
    pub router_mac: Mac,
    /// A foreign host on the same bridge, tried as if it were on the link.
    pub beside: Option<Ipv4Addr>,
    /// A foreign host, tried through the router.
    pub beyond: Option<Ipv4Addr>,
}

impl Plan {
    /// A lab of so many networks, 200 at most.
    pub fn new(networks: u16) -> Self {
        let mut plan = Self { networks: (1..=networks).map(Network::new).collect() };
        for at in 0..plan.networks.len() {
            for side in 0..2 {
                let Some((beside, beyond)) = plan.targets(at, side) else { continue };
                let host = &mut plan.networks[at].hosts[side];
                (host.beside, host.beyond) = (beside, beyond);
            }
        }
        plan
    }

    /// Whom the host of network `at` on `side` tries to reach: networks after its own, in turn.
    fn targets(&self, at: usize, side: usize) -> Option<(Option<Ipv4Addr>, Option<Ipv4Addr>)> {
        let own = self.networks.get(at)?;
        let port = own.hosts.get(side)?.port;
        let others =
            || (1..self.networks.len()).map(|step| &self.networks[(at + step) % self.networks.len()]);
        // Addresses of its own network's twin are its own network's.
        let foreign = || others().filter(|other| other.hosts[0].address != own.hosts[0].address);
        let beside = foreign().flat_map(|other| &other.hosts).find(|host| host.port == port);
        let beyond = foreign().next().and_then(|other| other.hosts.iter().find(|host| host.port != port));
        Some((beside.map(|host| host.address), beyond.map(|host| host.address)))
    }

    /// The network that a MAC address belongs to, a host's or a router's.
    pub fn owner(&self, mac: Mac) -> Option<&str> {
        let has = |network: &&Network| network.hosts.iter().any(|host| host.own_macs().contains(&mac));
        self.networks.iter().find(has).map(|network| network.name.as_str())
    }

    /// The Node and Network documents; with a card that runs this image, and NICs `n0`… beside its ports.
    pub fn documents(&self, node: &str, image: Option<&str>, nics: bool) -> String {
        let mut out =
            format!("apiVersion: hueplane/v1\nkind: Node\nmetadata: {{name: {node}}}\nspec:\n  ports:\n");
        let named = |start: &str| (0..PORTS).map(|port| format!("{start}{port}")).collect::<Vec<_>>();
        let nics = if nics { named("n") } else { Vec::new() };
        for port in named("p").iter().chain(&nics) {
            let _ = writeln!(out, "    - {{name: {port}}}");
        }
        if let Some(image) = image {
            let (ports, nics) = (named("p").join(", "), nics.join(", "));
            let _ = writeln!(out, "  card: {{twin: {{image: {image}}}, ports: [{ports}], nics: [{nics}]}}");
        }
        for (at, network) in self.networks.iter().enumerate() {
            let [r, g, b] = network.colour;
            let _ = write!(
                out,
                "---\napiVersion: hueplane/v1\nkind: Network\nmetadata: {{name: {}}}\nspec:\n  \
                 colour: \"#{r:02x}{g:02x}{b:02x}\"\n  plane: {{kind: ipv4}}\n  ports:\n",
                network.name
            );
            if image.is_some() {
                out.truncate(out.len() - "  ports:\n".len());
                let placement = if at < ON_CARD { "card" } else { "soft" };
                let _ = writeln!(out, "  placement: {placement}\n  ports:");
            }
            for (side, host) in ["left", "right"].iter().zip(&network.hosts) {
                let _ = writeln!(
                    out,
                    "    - {{name: {side}, port: p{}, mac: \"{}\", addresses: [{}/{LINK_LEN}]}}",
                    host.port, host.router_mac, host.router
                );
            }
        }
        out
    }
}

impl Network {
    fn new(number: u16) -> Self {
        let index = usize::from(number) - 1;
        let (name, colour) = match PALETTE.get(index) {
            Some((name, colour)) => ((*name).to_owned(), *colour),
            None => (format!("net{number}"), colour(index)),
        };
        let [left, right] = PAIRS[index % PAIRS.len()];
        Self { name, colour, hosts: [Host::new(number, 0, left), Host::new(number, 1, right)] }
    }
}

impl Host {
    /// The MAC addresses of its network on its link: its own, and the router's, which has another one on a NIC.
    pub fn own_macs(&self) -> [Mac; 3] {
        [self.mac, self.router_mac, self.router_mac.beside()]
    }

    fn new(number: u16, side: u8, port: usize) -> Self {
        let [high, low] = number.to_be_bytes();
        // The second network has the addresses of the first.
        let block = if number == 2 { 1 } else { low };
        let address = |host| Ipv4Addr::new(10, block, side + 1, host);
        let mac = |role| Mac([0x02, 0x68, role, side, high, low]);
        Self {
            port,
            address: address(2),
            mac: mac(2),
            router: address(1),
            router_mac: mac(1),
            beside: None,
            beyond: None,
        }
    }
}

/// A colour of its own for each number: hues a golden angle apart, at full strength.
fn colour(index: usize) -> [u8; 3] {
    let hue = (index * 222_492 / 1000) % 360;
    let rise = u8::try_from((hue % 60) * 200 / 60).unwrap_or(200);
    let (top, low) = (240, 40);
    match hue / 60 {
        0 => [top, low + rise, low],
        1 => [top - rise, top, low],
        2 => [low, top, low + rise],
        3 => [low, top - rise, top],
        4 => [low + rise, low, top],
        _ => [top, low, top - rise],
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a test fails by panicking
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_size_is_a_valid_configuration_with_the_twins_on_other_ports() {
        for count in [1, 2, 3, 6, 15, 16, 50, 200] {
            let plan = Plan::new(count);
            for (image, nics) in [(None, false), (Some("default"), false), (Some("default"), true)] {
                let text = plan.documents("demo", image, nics);
                let source = hue_intent::Source { name: "demo.yaml".into(), bytes: text.into_bytes() };
                let intent = hue_intent::parse(vec![source]).unwrap();
                assert_eq!(intent.networks.len(), usize::from(count));
                let card = intent.node.spec.card;
                assert_eq!(
                    card.as_ref().map(|card| card.nics.len()),
                    image.map(|_| if nics { PORTS } else { 0 })
                );
            }
            let names: HashSet<&str> = plan.networks.iter().map(|n| n.name.as_str()).collect();
            assert_eq!(names.len(), usize::from(count), "names differ");
            for network in &plan.networks {
                let [left, right] = &network.hosts;
                assert_ne!(left.port, right.port, "the hosts of a network are on different ports");
            }
            if let [one, two, ..] = plan.networks.as_slice() {
                for (a, b) in one.hosts.iter().zip(&two.hosts) {
                    assert_eq!((a.address, a.router), (b.address, b.router));
                    assert!(one.hosts.iter().all(|host| host.port != b.port));
                }
            }
        }
    }

    #[test]
    fn hosts_try_addresses_that_only_other_networks_have() {
        let plan = Plan::new(15);
        let mut tried = 0;
        for network in &plan.networks {
            let own: Vec<Ipv4Addr> = network.hosts.iter().map(|host| host.address).collect();
            for host in &network.hosts {
                let beside = host.beside.unwrap();
                assert!(!own.contains(&beside) && !own.contains(&host.beyond.unwrap()));
                let on_port = |h: &Host| h.port == host.port && h.address == beside;
                assert!(plan.networks.iter().flat_map(|n| &n.hosts).any(on_port), "on the same bridge");
                tried += 2;
            }
        }
        assert_eq!(tried, 60);
        let alone = Plan::new(1);
        assert!(alone.networks[0].hosts.iter().all(|host| host.beside.is_none() && host.beyond.is_none()));
    }

    #[test]
    fn macs_and_colours_differ() {
        let plan = Plan::new(200);
        let macs: HashSet<Mac> =
            plan.networks.iter().flat_map(|n| &n.hosts).flat_map(Host::own_macs).collect();
        assert_eq!(macs.len(), 1_200);
        let colours: HashSet<[u8; 3]> = plan.networks.iter().map(|n| n.colour).collect();
        assert!(colours.len() > 150, "{}", colours.len());
    }
}
