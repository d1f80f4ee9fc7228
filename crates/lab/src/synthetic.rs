//! Generates frames from a seed: networks, addresses, lengths.
//!
//! Flow: traffic + programs → flows → frames. A flow belongs to one network and has one pair of addresses;
//! each frame belongs to a random flow. The payload begins with a [`Mark`] if there is room: the frame's
//! number, flow and stream. Broadcasts, multicasts, runts and frames for unknown addresses do not depend on
//! the networks.

use std::net::Ipv4Addr;

use hue_demux::{Match, PortId};
use hue_planes::AdjacencyKind;
use hue_substrate::Program;
use hue_tables::Prefix4;
use hue_wire::ethernet::{self, EtherType};
use hue_wire::{Mac, arp, ip, ipv4, udp};
use zerocopy::IntoBytes;

use crate::mark::{self, Mark};
use crate::random::Random;
use crate::traffic::{Sizes, Sort, Synthetic, To};

/// The benchmarking network, 198.18.0.0/15 (RFC 2544 §C.2.2): first address, and number of addresses.
const SOURCES: (u32, u64) = (0xc612_0000, 1 << 17);
const TTL: u8 = 64;
/// A MAC address that no network has, a group's (224.0.0.5, RFC 1112 §6.4), and an unused destination.
const NOBODY: Mac = Mac([0x02, 0xde, 0xad, 0, 0, 1]);
const GROUP: (Mac, Ipv4Addr) = (Mac([1, 0, 0x5e, 0, 0, 5]), Ipv4Addr::new(224, 0, 0, 5));
const STRANGER: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 1);
/// Length of a frame that is too short, in bytes.
const RUNT_BYTES: usize = ethernet::HEADER_BYTES - 1;
/// UDP port of the discard service, and the first of the dynamic ports.
const UDP_DISCARD: u16 = 9;
const UDP_EPHEMERAL: u16 = 49_152;
/// Random addresses tried before a route is considered hidden by longer routes.
const TRIES: usize = 1000;

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
    router: Mac,
    host: Mac,
    source: Ipv4Addr,
    destination: Ipv4Addr,
    from_port: u16,
}

/// A network on the port, and the destinations of its flows.
struct Site<'a> {
    program: &'a Program,
    router: Mac,
    /// Prefixes to draw addresses from, and whether the network must forward the address by this very route.
    targets: Vec<(Prefix4, bool)>,
}

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
        let mut flows = Vec::with_capacity(spec.flows as usize);
        for index in 0..spec.flows as usize {
            let (router, destination) = match spec.sort {
                Sort::Broadcast => (Mac::BROADCAST, STRANGER),
                Sort::Multicast => GROUP,
                Sort::Runt | Sort::Nobody => (NOBODY, STRANGER),
                Sort::Forward | Sort::Ttl1 | Sort::Own => {
                    // Assign networks in turn, so that each gets its share even with few flows.
                    let site = &sites[index % sites.len()];
                    (site.router, site.destination(&mut random)?)
                }
            };
            let [_, _, _, b, c, d, e, f] = random.next().to_be_bytes();
            flows.push(Flow {
                router,
                // A locally administered unicast address.
                host: Mac([0x02, b, c, d, e, f]),
                source: Ipv4Addr::from_bits(SOURCES.0 + random.below(SOURCES.1) as u32),
                destination,
                from_port: UDP_EPHEMERAL + random.below(1 << 14) as u16,
            });
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

    /// Generates the next frame.
    pub fn next(&mut self, frame: &mut Vec<u8>) {
        let bytes = self.sizes.frame_bytes(&mut self.random);
        let at = self.random.below(self.flows.len() as u64) as usize;
        let flow = &self.flows[at];
        frame.clear();
        match self.sort {
            Sort::Broadcast => flow.ask(frame),
            Sort::Ttl1 => flow.datagram(frame, bytes, 1),
            _ => flow.datagram(frame, bytes, TTL),
        }
        self.mark.flow = (at as u16).into();
        frame.extend_from_slice(self.mark.as_bytes());
        frame.resize(if self.sort == Sort::Runt { RUNT_BYTES } else { bytes }, 0);
        self.mark.number += 1;
    }
}

impl Flow {
    /// The headers of a datagram in a frame of this many bytes.
    fn datagram(&self, frame: &mut Vec<u8>, bytes: usize, ttl: u8) {
        let total = bytes - ethernet::HEADER_BYTES;
        let datagram = total - ipv4::HEADER_BYTES;
        let ethernet = ethernet::Header::new(self.router, self.host, EtherType::IPV4);
        let ipv4 = ipv4::Header::new(self.source, self.destination, ip::Protocol::UDP, ttl, total as u16);
        let udp = udp::Header::new(self.from_port, UDP_DISCARD, datagram as u16);
        frame.extend_from_slice(ethernet.as_bytes());
        frame.extend_from_slice(ipv4.as_bytes());
        frame.extend_from_slice(udp.as_bytes());
    }

    /// An ARP request.
    fn ask(&self, frame: &mut Vec<u8>) {
        let ethernet = ethernet::Header::new(self.router, self.host, EtherType::ARP);
        frame.extend_from_slice(ethernet.as_bytes());
        frame.extend_from_slice(arp::Header::request(self.host, self.source, self.destination).as_bytes());
    }
}

impl Site<'_> {
    fn destination(&self, random: &mut Random) -> Result<Ipv4Addr, String> {
        for _ in 0..TRIES {
            let (prefix, routed) = self.targets[random.below(self.targets.len() as u64) as usize];
            let count = u64::from(prefix.last() - prefix.addr()) + 1;
            let address = prefix.addr() + random.below(count) as u32;
            if !routed || longest(self.program, address) == Some(prefix) {
                return Ok(Ipv4Addr::from_bits(address));
            }
        }
        Err(format!(
            "network '{}': no address is forwarded by these routes, because longer routes cover them",
            self.program.name
        ))
    }
}

/// The network's longest prefix that contains an address.
fn longest(program: &Program, address: u32) -> Option<Prefix4> {
    let prefixes = program.entries.lpm32().iter().map(|(prefix, _)| *prefix);
    prefixes.filter(|prefix| prefix.contains(address)).max_by_key(|prefix| prefix.len())
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
    let is_wanted = |program: &Program| spec.networks.is_empty() || spec.networks.contains(&program.name);
    let mut sites = Vec::new();
    for program in programs.iter().filter(|program| is_wanted(program)) {
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
        sites.push(Site { program, router: vport.mac, targets: targets(spec, port, program, ports)? });
    }
    if sites.is_empty() { Err("no network has a virtual port on this port".to_owned()) } else { Ok(sites) }
}

/// The destinations of a network's flows.
fn targets(
    spec: &Synthetic,
    port: PortId,
    program: &Program,
    ports: &[String],
) -> Result<Vec<(Prefix4, bool)>, String> {
    let routed = |is_way: &dyn Fn(&hue_planes::Adjacency) -> bool| -> Vec<(Prefix4, bool)> {
        let hop = |hop: hue_tables::NextHop| program.next_hops.get(usize::from(hop.get()));
        let routes = program.entries.lpm32().iter().filter(|(_, index)| hop(*index).is_some_and(is_way));
        routes.map(|(prefix, _)| (*prefix, true)).collect()
    };
    let forwarded =
        |by: &dyn Fn(PortId) -> bool| routed(&|hop| hop.kind() == AdjacencyKind::Forward && by(hop.port()));
    if spec.sort == Sort::Own {
        let own = routed(&|hop| hop.kind() == AdjacencyKind::Local);
        let none = || format!("network '{}' has no address of its own", program.name);
        return if own.is_empty() { Err(none()) } else { Ok(own) };
    }
    let mut found = Vec::new();
    for to in &spec.to {
        match to {
            To::Prefix(prefix) => found.push((*prefix, false)),
            To::Port(name) => {
                let Some(at) = ports.iter().position(|known| known == name) else {
                    let known = list(ports.iter().map(String::as_str));
                    return Err(format!("found to:{name}, expected a prefix or one of: {known}"));
                };
                let routes = forwarded(&|by| by.index() == at);
                if routes.is_empty() {
                    let network = &program.name;
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
    }
    if found.is_empty() {
        return Err(format!(
            "network '{}' forwards nothing to a known neighbour: add to:PREFIX",
            program.name
        ));
    }
    Ok(found)
}

fn list<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.collect();
    if names.is_empty() { "none at all".to_owned() } else { names.join(", ") }
}
