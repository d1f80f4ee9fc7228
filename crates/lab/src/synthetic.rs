//! Generates frames from a seed: networks, addresses, lengths.
//!
//! Flow: traffic + programs → flows → frames. A flow belongs to one network and has one pair of addresses;
//! each frame belongs to a random flow. The payload begins with a [`Mark`] if there is room: the frame's
//! number, flow and stream. Broadcasts, runts and frames for unknown addresses do not depend on the networks,
//! and multicasts only on their families. Hosts on the link of a switch have addresses that follow from their
//! port, so that the streams of its ports talk to each other.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use hue_demux::{Match, PortId};
use hue_planes::AdjacencyKind;
use hue_substrate::{Entries, Program, RouteKey};
use hue_tables::{Prefix, Vid};
use hue_wire::ethernet::{self, EtherType};
use hue_wire::{Mac, arp, ip, ipv4, ipv6, udp};
use zerocopy::IntoBytes;

use crate::mark::{self, Mark};
use crate::random::Random;
use crate::traffic::{Sizes, Sort, Synthetic, To};

/// The benchmarking networks, 198.18.0.0/15 (RFC 2544 §C.2.2) and 2001:2::/48 (RFC 5180 §8): first address, and number of
/// addresses used.
const SOURCES: (u32, u64) = (0xc612_0000, 1 << 17);
const SOURCES6: Ipv6Addr = Ipv6Addr::new(0x2001, 2, 0, 0, 0, 0, 0, 0);
const TTL: u8 = 64;
/// A MAC address that no network has, a group's (224.0.0.5, RFC 1112 §6.4), and an unused destination.
const NOBODY: Mac = Mac([0x02, 0xde, 0xad, 0, 0, 1]);
const GROUP: (Mac, Ipv4Addr) = (Mac([1, 0, 0x5e, 0, 0, 5]), Ipv4Addr::new(224, 0, 0, 5));
/// The same of IPv6 (ff02::5, RFC 2464 §7).
const GROUP6: (Mac, Ipv6Addr) = (Mac([0x33, 0x33, 0, 0, 0, 5]), Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 5));
const STRANGER: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 1);
/// Length of a frame that is too short, in bytes.
const RUNT_BYTES: usize = ethernet::HEADER_BYTES - 1;
/// UDP port of the discard service, and the first of the dynamic ports.
const UDP_DISCARD: u16 = 9;
const UDP_EPHEMERAL: u16 = 49_152;
/// Random addresses tried before a route is considered hidden by longer routes.
const TRIES: usize = 1000;
/// Hosts of a switch on each of its ports.
const HOSTS: u64 = 8;
/// Shortest frame with a mark over IPv6, in bytes.
const MARKED6_BYTES: usize =
    ethernet::HEADER_BYTES + ipv6::HEADER_BYTES + udp::HEADER_BYTES + size_of::<Mark>();

/// Generates the frames of a port.
pub struct Generator {
    sort: Sort,
    sizes: Sizes,
    flows: Vec<Flow>,
    random: Random,
    /// What the next frame carries.
    mark: Mark,
}

struct Flow {
    /// Destination and source of its frames.
    to: Mac,
    host: Mac,
    addresses: ip::Addresses,
    from_port: u16,
}

/// A network on the port, and the destinations of its flows.
struct Site<'a> {
    program: &'a Program,
    router: Mac,
    targets: Targets,
}

/// Where the frames of a network go.
enum Targets {
    V4(Vec<Target<u32>>),
    V6(Vec<Target<u128>>),
    /// Hosts of a switch, which are on its link.
    Hosts(Vec<Mac>),
}

/// A prefix to draw addresses from, and whether the network must forward the address by this very route.
type Target<K> = (Prefix<K>, bool);

impl Generator {
    /// Draws the flows of a port. `ports` are the names of all ports.
    ///
    /// # Errors
    /// If these networks do not support the traffic.
    pub fn new(
        spec: &Synthetic,
        port: PortId,
        programs: &[&Program],
        ports: &[String],
    ) -> Result<Self, String> {
        let mut random = Random::new(spec.seed ^ u64::from(port.get()) << 56);
        let sites = match spec.sort {
            Sort::Forward | Sort::Ttl1 | Sort::Own => sites(spec, port, programs, ports)?,
            Sort::Broadcast | Sort::Multicast | Sort::Runt | Sort::Nobody => Vec::new(),
        };
        let groups = groups(spec, port, programs);
        let mut flows = Vec::with_capacity(spec.flows as usize);
        for index in 0..spec.flows as usize {
            // Assign networks in turn, so that each gets its share even with few flows.
            let site = sites.get(index % sites.len().max(1));
            let (to, destination) = match (spec.sort, site) {
                (Sort::Broadcast, _) => (Mac::BROADCAST, STRANGER.into()),
                (Sort::Multicast, _) => groups[index % groups.len()],
                (_, None) => (NOBODY, STRANGER.into()),
                (_, Some(site)) => site.destination(&mut random)?,
            };
            let [_, _, _, b, c, d, e, f] = random.next().to_be_bytes();
            let host = match site {
                Some(Site { program, targets: Targets::Hosts(_), .. }) => {
                    host(program.vid, port, u64::from(f) % HOSTS)
                }
                // A locally administered unicast address.
                _ => Mac([0x02, b, c, d, e, f]),
            };
            let source = random.below(SOURCES.1) as u32;
            let addresses = match destination {
                IpAddr::V4(to) => ip::Addresses::V4(Ipv4Addr::from_bits(SOURCES.0 + source), to),
                IpAddr::V6(to) => {
                    ip::Addresses::V6(Ipv6Addr::from_bits(SOURCES6.to_bits() + u128::from(source)), to)
                }
            };
            flows.push(Flow { to, host, addresses, from_port: UDP_EPHEMERAL + random.below(1 << 14) as u16 });
        }
        let mark = Mark::new(mark::tag(spec.seed, port));
        Ok(Self { sort: spec.sort, sizes: spec.sizes.clone(), flows, random, mark })
    }

    /// The generator of stream number `stream` of an experiment; without it, of stream 0.
    #[must_use]
    pub fn of_stream(mut self, stream: u16) -> Self {
        self.mark.stream = stream.into();
        self
    }

    /// Generates the next frame. Over IPv6 it is long enough for its mark.
    pub fn next(&mut self, frame: &mut Vec<u8>) {
        let bytes = self.sizes.frame_bytes(&mut self.random);
        let at = self.random.below(self.flows.len() as u64) as usize;
        let flow = &self.flows[at];
        let bytes = match flow.addresses {
            ip::Addresses::V6(..) => bytes.max(MARKED6_BYTES),
            ip::Addresses::V4(..) => bytes,
        };
        frame.clear();
        match self.sort {
            Sort::Broadcast => flow.ask(frame),
            Sort::Ttl1 => flow.datagram(frame, bytes, 1),
            _ => flow.datagram(frame, bytes, TTL),
        }
        self.mark.flow = (at as u16).into();
        frame.extend_from_slice(self.mark.as_bytes());
        frame.resize(if self.sort == Sort::Runt { RUNT_BYTES } else { bytes }, 0);
        flow.sum(frame);
        self.mark.number += 1;
    }
}

impl Flow {
    /// The headers of a datagram in a frame of this many bytes, without the checksum of UDP.
    fn datagram(&self, frame: &mut Vec<u8>, bytes: usize, ttl: u8) {
        let packet = bytes - ethernet::HEADER_BYTES;
        let ethernet = |kind| ethernet::Header::new(self.to, self.host, kind);
        let datagram = match self.addresses {
            ip::Addresses::V4(source, destination) => {
                frame.extend_from_slice(ethernet(EtherType::IPV4).as_bytes());
                let header = ipv4::Header::new(source, destination, ip::Protocol::UDP, ttl, packet as u16);
                frame.extend_from_slice(header.as_bytes());
                packet - ipv4::HEADER_BYTES
            }
            ip::Addresses::V6(source, destination) => {
                let datagram = packet - ipv6::HEADER_BYTES;
                frame.extend_from_slice(ethernet(EtherType::IPV6).as_bytes());
                let header = ipv6::Header::new(source, destination, ip::Protocol::UDP, ttl, datagram as u16);
                frame.extend_from_slice(header.as_bytes());
                datagram
            }
        };
        let udp = udp::Header::new(self.from_port, UDP_DISCARD, datagram as u16);
        frame.extend_from_slice(udp.as_bytes());
    }

    /// Fills in the checksum of UDP where it is not optional (RFC 8200 §8.1).
    fn sum(&self, frame: &mut [u8]) {
        const DATAGRAM: usize = ethernet::HEADER_BYTES + ipv6::HEADER_BYTES;
        if let ip::Addresses::V6(..) = self.addresses
            && let Some(bytes) = frame.get_mut(DATAGRAM..)
            && let Ok(mut datagram) = udp::ViewMut::parse(bytes)
        {
            datagram.fill_checksum(self.addresses);
        }
    }

    /// An ARP request.
    fn ask(&self, frame: &mut Vec<u8>) {
        let ip::Addresses::V4(source, destination) = self.addresses else { return };
        let ethernet = ethernet::Header::new(self.to, self.host, EtherType::ARP);
        frame.extend_from_slice(ethernet.as_bytes());
        frame.extend_from_slice(arp::Header::request(self.host, source, destination).as_bytes());
    }
}

impl Site<'_> {
    /// Draws a destination: the MAC address of the frame, and the address of the packet.
    fn destination(&self, random: &mut Random) -> Result<(Mac, IpAddr), String> {
        match &self.targets {
            Targets::V4(targets) => Ok((self.router, address(self.program, targets, random)?)),
            Targets::V6(targets) => Ok((self.router, address(self.program, targets, random)?)),
            Targets::Hosts(hosts) => Ok((hosts[random.below(hosts.len() as u64) as usize], STRANGER.into())),
        }
    }
}

/// Draws an address of these prefixes.
fn address<K: RouteKey>(
    program: &Program,
    targets: &[Target<K>],
    random: &mut Random,
) -> Result<IpAddr, String> {
    for _ in 0..TRIES {
        let (prefix, routed) = targets[random.below(targets.len() as u64) as usize];
        // Keys are the upper bits, so a host's number is moved there.
        let shift = u128::BITS - u32::from(K::BITS);
        let (first, last) = (prefix.addr().to_bits() >> shift, prefix.last().to_bits() >> shift);
        let number = match u64::try_from(last - first).ok().and_then(|most| most.checked_add(1)) {
            Some(count) => u128::from(random.below(count)),
            None => (u128::from(random.next()) << 64 | u128::from(random.next())) & (last - first),
        };
        let key = K::from_bits((first + number) << shift);
        if !routed || longest(program, key) == Some(prefix) {
            return Ok(key.to_ip());
        }
    }
    Err(format!(
        "network '{}': no address is forwarded by these routes, because longer routes cover them",
        program.name
    ))
}

/// The program with the routes of slice 0 only, in which packets without splicing bits are looked up.
fn slice_0(program: &Program) -> Program {
    let routes = program.entries.sliced().filter(|(one, _)| one.slice == 0);
    Program {
        entries: Entries::Lpm32(routes.map(|(one, hop)| (one.prefix, hop)).collect()),
        ..program.clone()
    }
}

/// The network's longest prefix that contains a key.
fn longest<K: RouteKey>(program: &Program, key: K) -> Option<Prefix<K>> {
    let prefixes = K::routes(&program.entries).iter().map(|(prefix, _)| *prefix);
    prefixes.filter(|prefix| prefix.contains(key)).max_by_key(|prefix| prefix.len())
}

/// A host on the link of a switch, behind a port.
fn host(vid: Vid, port: PortId, number: u64) -> Mac {
    let [high, low] = vid.get().to_be_bytes();
    Mac([0x02, 0x6c, high, low, port.get(), number as u8])
}

/// The multicast groups of the networks on a port.
fn groups(spec: &Synthetic, port: PortId, programs: &[&Program]) -> Vec<(Mac, IpAddr)> {
    let here = programs
        .iter()
        .filter(|program| is_wanted(spec, program) && program.ports.iter().any(|vport| vport.port == port));
    let (mut ipv6, mut others) = (false, false);
    for program in here {
        let is_ipv6 = matches!(program.entries, Entries::Lpm128(_));
        (ipv6, others) = (ipv6 | is_ipv6, others | !is_ipv6);
    }
    let group = (GROUP.0, GROUP.1.into());
    let group6 = (GROUP6.0, GROUP6.1.into());
    match (ipv6, others) {
        (true, true) => vec![group, group6],
        (true, false) => vec![group6],
        (false, _) => vec![group],
    }
}

/// Whether the traffic is for a network.
fn is_wanted(spec: &Synthetic, program: &Program) -> bool {
    spec.networks.is_empty() || spec.networks.contains(&program.name)
}

fn sites<'a>(
    spec: &Synthetic,
    port: PortId,
    programs: &[&'a Program],
    ports: &[String],
) -> Result<Vec<Site<'a>>, String> {
    let known = || list(programs.iter().map(|program| program.name.as_str()));
    for name in &spec.networks {
        if !programs.iter().any(|program| program.name == *name) {
            return Err(format!("found network '{name}', expected one of: {}", known()));
        }
    }
    let mut sites = Vec::new();
    for program in programs.iter().filter(|program| is_wanted(spec, program)) {
        let Some(vport) = program.ports.iter().find(|vport| vport.port == port) else {
            if spec.networks.is_empty() {
                continue;
            }
            return Err(format!("network '{}' has no virtual port on this port", program.name));
        };
        let by_address = |select: &Match| match select {
            Match::Mac { port: at, .. } | Match::Port(at) => *at == port,
            Match::Inner { .. } => false,
        };
        if !program.rows.iter().any(|row| by_address(&row.select)) {
            return Err(format!(
                "network '{}' selects frames by inner destination, which generated frames do not have: use a capture",
                program.name
            ));
        }
        let targets = match &program.entries {
            Entries::Lpm32(_) => Targets::V4(targets(spec, port, program, ports)?),
            Entries::Lpm128(_) => Targets::V6(targets(spec, port, program, ports)?),
            // The frames of a network are of one family: IPv4, unless only IPv6 goes where the traffic should.
            Entries::Dual(..) => match targets(spec, port, program, ports) {
                Ok(found) => Targets::V4(found),
                Err(_) => Targets::V6(targets(spec, port, program, ports)?),
            },
            Entries::Exact(_) => Targets::Hosts(hosts(spec, port, program, ports)?),
            Entries::Sliced(_) => Targets::V4(targets(spec, port, &slice_0(program), ports)?),
            Entries::Ternary(_) | Entries::Nearest(_) | Entries::None => {
                return Err(format!(
                    "network '{}' is of kind {}, which does not say where frames go: use a capture",
                    program.name,
                    program.kind().name()
                ));
            }
        };
        sites.push(Site { program, router: vport.mac, targets });
    }
    if sites.is_empty() { Err("no network has a virtual port on this port".to_owned()) } else { Ok(sites) }
}

/// The destinations of the flows of a network with routes.
fn targets<K: RouteKey>(
    spec: &Synthetic,
    port: PortId,
    program: &Program,
    ports: &[String],
) -> Result<Vec<Target<K>>, String> {
    let network = &program.name;
    let routed = |is_way: &dyn Fn(&hue_planes::Adjacency) -> bool| -> Vec<Target<K>> {
        let hop = |hop: hue_tables::NextHop| program.next_hops.get(usize::from(hop.get()));
        let routes = K::routes(&program.entries);
        let routes = routes.iter().filter(|(_, index)| hop(*index).is_some_and(is_way));
        routes.map(|(prefix, _)| (*prefix, true)).collect()
    };
    let forwarded =
        |by: &dyn Fn(PortId) -> bool| routed(&|hop| hop.kind() == AdjacencyKind::Forward && by(hop.port()));
    if spec.sort == Sort::Own {
        let own = routed(&|hop| hop.kind() == AdjacencyKind::Local);
        return if own.is_empty() { Err(no_address(program)) } else { Ok(own) };
    }
    let mut found = Vec::new();
    for to in &spec.to {
        match to {
            // A prefix of the other family is for other networks.
            To::Prefix(prefix) => found.extend(prefix.of::<K>().map(|prefix| (prefix, false))),
            To::Port(name) => {
                let at = port_of(name, ports)?;
                let routes = forwarded(&|by| by == at);
                if routes.is_empty() {
                    return Err(format!(
                        "network '{network}' forwards nothing by {name} to a known neighbour"
                    ));
                }
                found.extend(routes);
            }
        }
    }
    if spec.to.is_empty() {
        found = forwarded(&|by| by != port);
        if found.is_empty() {
            found = forwarded(&|_| true);
        }
    } else if found.is_empty() {
        let kind = program.kind().name();
        return Err(format!("network '{network}' is of kind {kind}: add a prefix of its family to `to`"));
    }
    if found.is_empty() {
        return Err(format!("network '{network}' forwards nothing to a known neighbour: add to:PREFIX"));
    }
    Ok(found)
}

/// The destinations of the flows of a switch: hosts behind other ports, or behind those that the traffic names. Behind a port
/// with static MAC addresses they have these.
fn hosts(spec: &Synthetic, port: PortId, program: &Program, ports: &[String]) -> Result<Vec<Mac>, String> {
    let (network, kind) = (&program.name, program.kind().name());
    match spec.sort {
        Sort::Ttl1 => {
            return Err(format!("network '{network}' is of kind {kind}, which does not look at a TTL"));
        }
        Sort::Own => return Err(no_address(program)),
        _ => {}
    }
    let mut behind = Vec::new();
    for to in &spec.to {
        let name = match to {
            To::Port(name) => name,
            To::Prefix(_) => {
                return Err(format!(
                    "network '{network}' is of kind {kind}: expected ports in `to`, not prefixes"
                ));
            }
        };
        let at = port_of(name, ports)?;
        if !program.ports.iter().any(|vport| vport.port == at) {
            return Err(format!("network '{network}' has no virtual port on {name}"));
        }
        behind.push(at);
    }
    if spec.to.is_empty() {
        behind = program.ports.iter().map(|vport| vport.port).filter(|other| *other != port).collect();
    }
    let at = |at: PortId| {
        let is_there = |hop: hue_tables::NextHop| {
            program.next_hops.get(usize::from(hop.get())).is_some_and(|hop| hop.port() == at)
        };
        let fixed = program.entries.macs().iter().filter(|(_, hop)| is_there(*hop));
        let fixed: Vec<Mac> = fixed.map(|(mac, _)| *mac).collect();
        if fixed.is_empty() {
            (0..HOSTS).map(|number| host(program.vid, at, number)).collect()
        } else {
            fixed
        }
    };
    let hosts: Vec<Mac> = behind.into_iter().flat_map(at).collect();
    if hosts.is_empty() { Err(format!("network '{network}' has no other port")) } else { Ok(hosts) }
}

fn no_address(program: &Program) -> String {
    format!("network '{}' has no address of its own", program.name)
}

/// The port of a name.
fn port_of(name: &str, ports: &[String]) -> Result<PortId, String> {
    let at = ports.iter().position(|known| known == name).and_then(|at| u8::try_from(at).ok());
    at.map(PortId::new).ok_or_else(|| {
        let known = list(ports.iter().map(String::as_str));
        format!("found to:{name}, expected a prefix or one of: {known}")
    })
}

fn list<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.collect();
    if names.is_empty() { "none at all".to_owned() } else { names.join(", ") }
}
