//! The plan of the demo: networks, hosts, addresses, and the documents that describe them. Pure.
//!
//! Network *n* (counted from 1) has the link 10.*n*.1.0/24 on its left port and 10.*n*.2.0/24 on its right
//! port, with the router at .1 and one host at .2 on each. Network 2 has the addresses of network 1, each on the
//! other port. Some networks have IPv6 instead: 2001:db8:*n*:1::/64 and 2001:db8:*n*:2::/64, the router at ::1 and
//! the hosts at ::2. These networks share two ports; every second one has left and right exchanged.
//!
//! Of each further kind there is one network. `dual` has addresses of both families. The hosts of networks that are no IP routers
//! have addresses of 10.*n*.1.0/24 from .2, and no router: those of a switch, of a program that forwards and of a network that
//! forwards by bits of frames on one link, those of flat labels and of MPLS behind a program that gives them IP. A network whose
//! frames reach everybody on a port has two ports of its own.

use std::fmt::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use hue_planes::Kind;
use hue_wire::Mac;

use crate::local::endpoint::{EDGE, Endpoint};
use crate::local::space::HOST_INTERFACE;

/// Ports of the node that a card has, `p0` to `p3`. Networks in software with ports of their own have those behind them.
pub const CARD_PORTS: usize = 4;
/// The networks that are no routers for one family, counted from 1: behind those on the card, and the switch as the first.
const FURTHER: [(u16, Kind); 8] = [
    (5, Kind::L2),
    (7, Kind::Dual),
    (8, Kind::Rofl),
    (10, Kind::Mpls),
    (11, Kind::Kernel),
    (12, Kind::Process),
    (13, Kind::Extract),
    (14, Kind::Splice),
];
/// The program of the network of kind `process`: a learning switch.
const PROGRAM: &str = include_str!("switch.py");
/// Labels with which the hosts of the network of kind `mpls` send, in the order of [`SIDES`].
const LABELS: [u32; 2] = [100, 101];
/// Names of a network's ports, and of the hosts behind them.
pub const SIDES: [&str; 2] = ["left", "right"];

/// Number of networks on the card (the first ones); the others run in software.
pub const ON_CARD: usize = 4;
/// Most networks that an image supports; one index stays free for a network that moves.
pub const CARD_MAX: usize = 63;

/// The two ports of a router, in turn.
const PAIRS: [[usize; 2]; 2] = [[0, 1], [1, 0]];
/// The ports of the first network with ports of its own, the switch. Those of the next one follow.
const OWN_PAIR: [usize; 2] = [2, 3];

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

/// The plan of the entire lab.
#[derive(Debug)]
pub struct Plan {
    /// The networks in order.
    pub networks: Vec<Network>,
}

/// One network.
#[derive(Debug)]
pub struct Network {
    /// Name.
    pub name: String,
    /// Colour.
    pub colour: [u8; 3],
    /// Kind of plane.
    pub kind: Kind,
    /// Hosts, in the order of [`SIDES`].
    pub hosts: Vec<Host>,
}

/// A host, and its router if it has one.
#[derive(Debug)]
pub struct Host {
    /// Port of the node that its bridge is connected to.
    pub port: usize,
    /// Address of the host.
    pub address: IpAddr,
    /// MAC address of the host.
    pub mac: Mac,
    /// Address of the router on the host's link. Hosts of networks that are no IP routers have none.
    pub router: Option<IpAddr>,
    /// Its address and its router's of the other family, in a network that routes both.
    pub second: Option<[IpAddr; 2]>,
    /// MAC address of the network on the host's link.
    pub network_mac: Mac,
    /// A foreign host, which is pinged as if it were on the link. It is on the same bridge, if any is.
    pub bridge_target: Option<IpAddr>,
    /// A foreign host, which is pinged through the router.
    pub routed_target: Option<IpAddr>,
}

impl Plan {
    /// A lab with this number of networks, at most 200.
    pub fn new(networks: u16) -> Self {
        let mut plan = Self { networks: (1..=networks).map(Network::new).collect() };
        for at in 0..plan.networks.len() {
            for side in 0..plan.networks[at].hosts.len() {
                let Some((bridge_target, routed_target)) = plan.targets(at, side) else { continue };
                let host = &mut plan.networks[at].hosts[side];
                (host.bridge_target, host.routed_target) = (bridge_target, routed_target);
            }
        }
        plan
    }

    /// The foreign hosts that the host of network `at` on `side` tries to reach: networks after its own, in
    /// turn.
    fn targets(&self, at: usize, side: usize) -> Option<(Option<IpAddr>, Option<IpAddr>)> {
        let own = self.networks.get(at)?;
        let Host { port, router, .. } = *own.hosts.get(side)?;
        let own_address = own.hosts[0].address;
        let others =
            || (1..self.networks.len()).map(|step| &self.networks[(at + step) % self.networks.len()]);
        // Skip networks with the same addresses as its own, and those whose addresses its hosts cannot use.
        let foreign = || {
            let usable =
                |address: IpAddr| address.is_ipv4() == own_address.is_ipv4() && address != own_address;
            others().filter(move |other| usable(other.hosts[0].address))
        };
        let elsewhere = || foreign().next()?.hosts.iter().find(|host| host.port != port);
        let on_bridge = foreign().flat_map(|other| &other.hosts).find(|host| host.port == port);
        // Nobody else is on the bridges of a network with ports of its own: its hosts ask for one on another bridge.
        let bridge_target = on_bridge.or_else(|| if router.is_none() { elsewhere() } else { None });
        let routed_target = router.and_then(|_| elsewhere());
        Some((bridge_target.map(|host| host.address), routed_target.map(|host| host.address)))
    }

    /// The switch, and where it is in `networks`.
    pub fn switch(&self) -> Option<(usize, &Network)> {
        self.networks.iter().enumerate().find(|(_, network)| network.is_switch())
    }

    /// The first network of each of these kinds, if it is none of those that begin on the card, and its ports are the card's.
    pub fn further(&self, kinds: &[String]) -> Vec<usize> {
        let first_of = |kind: &String| self.networks.iter().position(|network| network.kind.name() == kind);
        let is_at_card = |at: &usize| self.networks[*at].hosts.iter().all(|host| host.port < CARD_PORTS);
        let firsts = kinds.iter().filter_map(first_of).filter(|at| *at >= ON_CARD);
        firsts.filter(is_at_card).collect()
    }

    /// Number of the node's ports.
    pub fn ports(&self) -> usize {
        let hosts = self.networks.iter().flat_map(|network| &network.hosts);
        hosts.map(|host| host.port + 1).max().unwrap_or(0).max(CARD_PORTS)
    }

    /// Number of all hosts.
    pub fn hosts(&self) -> usize {
        self.networks.iter().map(|network| network.hosts.len()).sum()
    }

    /// The network of a host's or router's MAC address.
    pub fn owner(&self, mac: Mac) -> Option<&str> {
        let has = |network: &&Network| network.hosts.iter().any(|host| host.own_macs().contains(&mac));
        self.networks.iter().find(has).map(|network| network.name.as_str())
    }

    /// The Node and Network documents; with a card if an image is given, and with NICs `n0`… beside its ports if wanted.
    pub fn documents(&self, node: &str, image: Option<&str>, nics: bool) -> String {
        let mut out =
            format!("apiVersion: hueplane/v1\nkind: Node\nmetadata: {{name: {node}}}\nspec:\n  ports:\n");
        let named =
            |start: &str, count: usize| (0..count).map(|port| format!("{start}{port}")).collect::<Vec<_>>();
        let nics = if nics { named("n", CARD_PORTS) } else { Vec::new() };
        for port in named("p", self.ports()).iter().chain(&nics) {
            let _ = writeln!(out, "    - {{name: {port}}}");
        }
        if let Some(image) = image {
            let (ports, nics) = (named("p", CARD_PORTS).join(", "), nics.join(", "));
            let _ = writeln!(out, "  card: {{twin: {{image: {image}}}, ports: [{ports}], nics: [{nics}]}}");
        }
        for (at, network) in self.networks.iter().enumerate() {
            let [r, g, b] = network.colour;
            let _ = writeln!(
                out,
                "---\napiVersion: hueplane/v1\nkind: Network\nmetadata: {{name: {}}}\nspec:\n  \
                 colour: \"#{r:02x}{g:02x}{b:02x}\"\n  plane: {{kind: {}{}}}",
                network.name,
                network.kind.name(),
                network.settings()
            );
            if image.is_some() {
                let placement = if at < ON_CARD { "card" } else { "soft" };
                let _ = writeln!(out, "  placement: {placement}");
            }
            out.push_str("  ports:\n");
            for (side, host) in SIDES.iter().zip(&network.hosts) {
                let _ =
                    write!(out, "    - {{name: {side}, port: p{}, mac: \"{}\"", host.port, host.network_mac);
                let routers = host.links().filter_map(|(_, router)| router);
                let routers: Vec<String> =
                    routers.map(|router| format!("\"{router}/{}\"", link_len(router))).collect();
                if !routers.is_empty() {
                    let _ = write!(out, ", addresses: [{}]", routers.join(", "));
                }
                out.push_str("}\n");
            }
            out.push_str(&network.entries());
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
        // None of those on the card at first.
        let kind = match FURTHER.iter().find(|(further, _)| *further == number) {
            Some((_, kind)) => *kind,
            None if index >= ON_CARD && number % 6 == 3 => Kind::Ipv6,
            None => Kind::Ipv4,
        };
        let ports = if has_own_ports(kind) {
            let before =
                FURTHER.iter().filter(|(further, kind)| *further < number && has_own_ports(*kind)).count();
            OWN_PAIR.map(|port| port + OWN_PAIR.len() * before)
        } else {
            PAIRS[index % PAIRS.len()]
        };
        let hosts =
            ports.into_iter().zip(0..).map(|(port, side)| Host::new(number, kind, side, port)).collect();
        Self { name, colour, kind, hosts }
    }

    /// Whether it is a switch, which has a table of MAC addresses.
    pub fn is_switch(&self) -> bool {
        self.kind == Kind::L2
    }

    /// Each host's place in `hosts`, and that of its peer, the next host.
    pub fn peers(&self) -> impl Iterator<Item = (usize, usize)> {
        let count = self.hosts.len();
        (0..count).map(move |at| (at, (at + 1) % count))
    }

    /// The settings of its plane, behind its kind.
    fn settings(&self) -> String {
        match self.kind {
            Kind::Process => {
                let command = serde_json::json!(["python3", "-c", PROGRAM]);
                format!(", command: {command}")
            }
            // The source address.
            Kind::Extract => ", key: [{offset: 6, bytes: 6}]".to_owned(),
            Kind::Rofl => ", label_bits: 32".to_owned(),
            _ => String::new(),
        }
    }

    /// The program that gives IP to a host over frames of another protocol, with its arguments, and the interface that it makes.
    pub fn endpoint(&self, side: usize) -> Option<Endpoint> {
        let (host, peer) = (&self.hosts[side], &self.hosts[(side + 1) % self.hosts.len()]);
        let router = host.network_mac.to_string();
        match self.kind {
            Kind::Rofl => {
                let (own, to) = (flat_label(side), flat_label((side + 1) % self.hosts.len()));
                let (address, to) = (format!("{}/24", host.address), format!("{}={to}", peer.address));
                let options = ["--interface", HOST_INTERFACE, "--router", &router, "--label", &own];
                let more = ["--address", &address, "--to", &to];
                let command = ["rofl-host"].iter().chain(&options).chain(&more);
                let command = command.map(|word| (*word).to_owned()).collect();
                Some(Endpoint { program: None, command, interface: "rofl0", configures: true })
            }
            Kind::Mpls => {
                let command = ["-c", EDGE, HOST_INTERFACE, "lsp0", &router, &LABELS[side].to_string()];
                let command = command.map(str::to_owned).to_vec();
                Some(Endpoint { program: Some("python3"), command, interface: "lsp0", configures: false })
            }
            _ => None,
        }
    }

    /// Whether programs give IP to its hosts.
    pub fn has_endpoints(&self) -> bool {
        self.endpoint(0).is_some()
    }

    /// The entries of its document: what a host sends goes to its peer.
    fn entries(&self) -> String {
        let mut out = match self.kind {
            Kind::Extract => "  entries:\n",
            Kind::Mpls => "  labels:\n",
            Kind::Rofl => "  flat_labels:\n    - {label: \"0x10000000\", own: true}\n",
            _ => "",
        }
        .to_owned();
        for (at, peer) in self.peers() {
            let (side, mac) = (SIDES[peer], self.hosts[peer].mac);
            let _ = match self.kind {
                Kind::Extract => {
                    let digits = self.hosts[at].mac.to_string().replace(':', "");
                    writeln!(out, "    - {{match: \"0x{digits}\", port: {side}}}")
                }
                Kind::Mpls => {
                    let (label, next) = (LABELS[at], LABELS[at] + 100);
                    writeln!(
                        out,
                        "    - {{label: {label}, swap: {next}, port: {side}, neighbour: \"{mac}\"}}"
                    )
                }
                Kind::Rofl => {
                    let label = flat_label(peer);
                    writeln!(
                        out,
                        "    - {{label: \"{label}\", port: {side}, neighbour: \"{mac}\", resident: true}}"
                    )
                }
                _ => Ok(()),
            };
        }
        out
    }

    /// The MAC addresses that frames on the link of one of its hosts may have as source.
    pub fn macs_at(&self, host: &Host) -> Vec<Mac> {
        let on_link = self.hosts.iter().filter(|other| has_own_ports(self.kind) || other.mac == host.mac);
        on_link.flat_map(Host::own_macs).collect()
    }
}

impl Host {
    /// The MAC addresses of its network on its port: the host's, and those of the network on the port and on a NIC.
    pub fn own_macs(&self) -> [Mac; 3] {
        [self.mac, self.network_mac, self.network_mac.companion()]
    }

    /// Its addresses, one of each family that it has, and the router of each, if it has one.
    pub fn links(&self) -> impl Iterator<Item = (IpAddr, Option<IpAddr>)> {
        let second = self.second.map(|[address, router]| (address, Some(router)));
        [(self.address, self.router)].into_iter().chain(second)
    }

    fn new(number: u16, kind: Kind, side: u8, port: usize) -> Self {
        let [high, low] = number.to_be_bytes();
        // The second network has the addresses of the first.
        let block = if number == 2 { 1 } else { low };
        let six = |host: u8| {
            let link = u16::from(side) + 1;
            IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, number, link, 0, 0, 0, host.into()))
        };
        let address = |host: u8| match kind {
            Kind::Ipv6 => six(host),
            _ if !has_router(kind) => IpAddr::V4(Ipv4Addr::new(10, block, 1, host + side)),
            _ => IpAddr::V4(Ipv4Addr::new(10, block, side + 1, host)),
        };
        let mac = |role| Mac([0x02, 0x68, role, side, high, low]);
        Self {
            port,
            address: address(2),
            mac: mac(2),
            router: has_router(kind).then(|| address(1)),
            second: (kind == Kind::Dual).then(|| [six(2), six(1)]),
            network_mac: mac(1),
            bridge_target: None,
            routed_target: None,
        }
    }
}

/// Whether a network of this kind routes IP between its hosts.
fn has_router(kind: Kind) -> bool {
    !matches!(kind, Kind::L2 | Kind::Process | Kind::Extract | Kind::Rofl | Kind::Mpls)
}

/// Whether a network of this kind gets whole ports, which it shares with nobody.
fn has_own_ports(kind: Kind) -> bool {
    matches!(kind, Kind::L2 | Kind::Process | Kind::Extract | Kind::Rofl)
}

/// The label of a host in the network of kind `rofl`.
fn flat_label(side: usize) -> String {
    format!("0x{:08x}", 0x2000_0000_u32 << (2 * side))
}

/// The length of the prefix of a link with this address.
pub fn link_len(address: IpAddr) -> u8 {
    if address.is_ipv4() { 24 } else { 64 }
}

/// A different colour for each number: hues separated by the golden angle, fully saturated.
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
    fn every_size_gives_a_valid_configuration() {
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
                    image.map(|_| if nics { CARD_PORTS } else { 0 })
                );
            }
            let names: HashSet<&str> = plan.networks.iter().map(|n| n.name.as_str()).collect();
            assert_eq!(names.len(), usize::from(count), "names differ");
            for network in &plan.networks {
                let ports: HashSet<usize> = network.hosts.iter().map(|host| host.port).collect();
                assert_eq!(ports.len(), network.hosts.len(), "the hosts of a network are on different ports");
                assert_eq!(network.hosts.len(), 2);
                let others = plan.networks.iter().filter(|other| other.name != network.name);
                let shared = others.flat_map(|other| &other.hosts).any(|host| ports.contains(&host.port));
                let alone = has_own_ports(network.kind);
                assert!(!(alone && shared), "{} shares no port", network.name);
            }
            for (number, kind) in FURTHER {
                let found = plan.networks.iter().filter(|network| network.kind == kind).count();
                assert_eq!(found, usize::from(count >= number), "{kind:?}");
            }
            let ports = match count {
                ..8 => 4,
                8..12 => 6,
                12 => 8,
                13.. => 10,
            };
            assert_eq!(plan.ports(), ports);
            if let [one, two, ..] = plan.networks.as_slice() {
                for (a, b) in one.hosts.iter().zip(&two.hosts) {
                    assert_eq!((a.address, a.router), (b.address, b.router));
                    assert_ne!(a.port, b.port, "a host and its double");
                }
            }
        }
    }

    #[test]
    fn networks_move_to_the_card_if_their_ports_are_its() {
        let plan = Plan::new(15);
        let kinds = Kind::OFFERED.map(|kind| kind.name().to_owned());
        let kinds: Vec<String> = kinds.into_iter().filter(|kind| *kind != "mpls").collect();
        let names: Vec<&str> = plan.further(&kinds).iter().map(|at| &*plan.networks[*at].name).collect();
        assert_eq!(names, ["olive", "purple", "pink", "gold", "coral"]);
    }

    #[test]
    fn hosts_try_addresses_that_only_other_networks_have() {
        let plan = Plan::new(15);
        let mut tried = 0;
        for network in &plan.networks {
            let own: Vec<IpAddr> = network.hosts.iter().map(|host| host.address).collect();
            for host in &network.hosts {
                let bridge_target = host.bridge_target.unwrap();
                assert!(!own.contains(&bridge_target));
                assert_eq!(host.routed_target.is_some(), host.router.is_some());
                assert!(host.routed_target.is_none_or(|target| !own.contains(&target)));
                let on_port =
                    |h: &Host| (h.port == host.port || host.router.is_none()) && h.address == bridge_target;
                assert!(plan.networks.iter().flat_map(|n| &n.hosts).any(on_port), "on the same bridge");
                tried += 1 + usize::from(host.routed_target.is_some());
            }
        }
        assert_eq!((plan.hosts(), tried), (30, 50));
        let switch: Vec<IpAddr> = plan.switch().unwrap().1.hosts.iter().map(|host| host.address).collect();
        let targets = plan.networks.iter().flat_map(|network| &network.hosts);
        let wanted = targets.filter_map(|host| host.routed_target).filter(|to| switch.contains(to));
        assert!(wanted.count() > 0, "hosts of a router try to reach those of the switch");
        let six: Vec<_> = plan.networks.iter().filter(|network| network.kind == Kind::Ipv6).collect();
        assert_eq!(six.iter().map(|network| network.name.as_str()).collect::<Vec<_>>(), ["olive", "teal"]);
        assert!(six.iter().flat_map(|network| &network.hosts).all(|host| host.address.is_ipv6()));
        let linux: Vec<_> = plan.networks.iter().filter(|network| network.kind == Kind::Kernel).collect();
        assert_eq!(linux.iter().map(|network| network.name.as_str()).collect::<Vec<_>>(), ["gold"]);
        let alone = Plan::new(1);
        assert!(
            alone.networks[0]
                .hosts
                .iter()
                .all(|host| host.bridge_target.is_none() && host.routed_target.is_none())
        );
    }

    #[test]
    fn the_program_is_that_of_the_lab() {
        let lab = include_str!("../../../../labs/process/hueplane.yaml");
        let lines = lab.lines().map(|line| line.strip_prefix("        ").unwrap_or(line));
        let lines: Vec<&str> = lines.skip_while(|line| !line.starts_with("import")).collect();
        let program: Vec<&str> = PROGRAM.lines().collect();
        assert_eq!(lines[..program.len()], program);
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
