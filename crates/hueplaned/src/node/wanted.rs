//! Target state of a network, for all parts that use it: data plane, namespace, routing, API.
//!
//! Flow: document and compiled program → **[`Wanted`]** → node thread. If two values are equal, no part has to change
//! anything.

use std::collections::HashMap;
use std::sync::Arc;

use hue_control::{Compiled, bound_to_software, carriers, peer};
use hue_host::cgroup::Limits;
use hue_host::control::{Config, Families, Owner, PortConfig, StaticRoute, StaticTarget, interface_names};
use hue_intent::{Dscp, Encapsulation, Network, Select, Target, Tunnel};
use hue_planes::{Keys, Kind, Settings};
use hue_routing::{AnyRib, RibPort};
use hue_substrate::Program;

use crate::api;

/// Memory of a network's program and of what it starts, unless its document says otherwise, bytes.
const PROGRAM_BYTES_MAX: u64 = 512 << 20;
/// Processes and threads of a network's program, unless its document says otherwise.
const PROGRAM_PROCESSES_MAX: u64 = 256;

/// Target state of a network.
#[derive(Clone, PartialEq, Debug)]
pub struct Wanted {
    /// Its document.
    pub network: Network,
    /// Its program, without routes and next hops: those come from its namespace.
    pub program: Program,
    /// Limits of its processes.
    pub limits: Limits,
    /// Contents of its namespace.
    pub config: Config,
    /// Its virtual ports, as its routes name them.
    pub ports: Vec<RibPort>,
    /// The part of its description in the API that documents determine.
    pub api: api::Network,
}

impl Wanted {
    /// Why its document binds it to software, if it does.
    pub fn bound(&self) -> Option<&'static str> {
        bound_to_software(&self.network, self.config.carries)
    }
}

/// What a RIB has to be like for a network's table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Form {
    /// What the table is keyed by.
    pub keys: Keys,
    /// Whether routes depend on sources, so that its rows are numbered by the lengths of routes.
    pub by_length: bool,
    /// How many slices it has, if it is keyed by them.
    pub slices: u8,
}

impl Form {
    /// That of a program.
    pub fn of(program: &Program) -> Self {
        let slices = match program.settings {
            Settings::Splice(settings) => settings.slices,
            _ => 1,
        };
        Self { keys: program.kind().limits().keys, by_length: program.policies.is_some(), slices }
    }

    /// An empty RIB.
    pub fn rib(self, ports: Vec<RibPort>) -> AnyRib {
        match self {
            Self { keys: Keys::Slices, slices, .. } => AnyRib::sliced(slices, ports),
            Self { keys, by_length: true, .. } => AnyRib::by_length(keys, ports),
            Self { keys, .. } => AnyRib::new(keys, ports),
        }
    }
}

/// All networks of a desired state, sorted by name.
pub fn all(networks: &[Network], compiled: &Compiled, owner: &Owner) -> Vec<(String, Arc<Wanted>)> {
    let programs: HashMap<&str, &Program> =
        compiled.programs.iter().map(|program| (program.name.as_str(), program)).collect();
    let carriers = carriers(networks);
    networks
        .iter()
        .filter_map(|network| {
            let program = *programs.get(network.name())?;
            let mut wanted = wanted(network, program, compiled, owner);
            wanted.config.carries = carriers.contains(network.name());
            Some((network.name().to_owned(), Arc::new(wanted)))
        })
        .collect()
}

fn wanted(network: &Network, program: &Program, compiled: &Compiled, owner: &Owner) -> Wanted {
    let program = match has_routes(program.entries.keys()) {
        // Its next hops and entries come from the namespace.
        true => program.without_tables(),
        false => program.clone(),
    };
    let names: Vec<&str> = program.ports.iter().map(|port| port.name.as_str()).collect();
    let interfaces = interface_names(&names);
    let ports = network.spec.ports.iter().zip(&program.ports).zip(&interfaces);
    let ports = ports.map(|((document, port), interface)| RibPort {
        interface: interface.clone(),
        port: port.port,
        mac: port.mac,
        mtu_bytes: port.mtu_bytes,
        peer: peer(document),
    });
    let ports = ports.collect();
    Wanted {
        config: config(network, &program, &interfaces),
        limits: limits(program.kind(), network.spec.resources.as_ref()),
        api: described(network, &program, &interfaces, compiled, owner),
        ports,
        network: network.clone(),
        program,
    }
}

fn config(network: &Network, program: &Program, interfaces: &[String]) -> Config {
    let index: HashMap<&str, usize> =
        program.ports.iter().zip(0..).map(|(port, at)| (port.name.as_str(), at)).collect();
    let ports = network.spec.ports.iter().zip(&program.ports).zip(interfaces);
    let ports = ports.map(|((document, port), interface)| PortConfig {
        interface: interface.clone(),
        mac: port.mac,
        mtu_bytes: port.mtu_bytes,
        no_arp: peer(document).is_some(),
        addresses: document.addresses.iter().map(|own| (own.address, own.len)).collect(),
    });
    // Routes by source are the plane's; the kernel has those by destination.
    let routes = network.spec.routes.iter().filter(|route| route.from.is_none()).filter_map(|route| {
        let target = match &route.target {
            Target::Via(via) => StaticTarget::Via(*via),
            Target::Port(name) => StaticTarget::Port(*index.get(name.as_str())?),
            Target::Vias(members) => {
                StaticTarget::Vias(members.iter().map(|member| (member.via, member.weight)).collect())
            }
        };
        Some(StaticRoute { slice: route.slice, prefix: route.to, target })
    });
    let neighbours = network.spec.neighbours.iter();
    let neighbours =
        neighbours.filter_map(|known| Some((*index.get(known.port.as_str())?, known.address, known.mac)));
    Config {
        families: families_of(program.kind()),
        ports: ports.collect(),
        routes: routes.collect(),
        neighbours: neighbours.collect(),
        carries: false,
    }
}

/// The address families of the kernel in the namespace of a network of this kind.
pub const fn families_of(kind: Kind) -> Families {
    let hue_planes::Families { v4, v6 } = kind.limits().families;
    Families { v4, v6 }
}

/// Whether a network's next hops and entries are the routes and neighbours of its namespace. Those of a kind without IP are
/// in its document.
pub const fn has_routes(keys: Keys) -> bool {
    keys.has_routes()
}

fn described(
    network: &Network,
    program: &Program,
    interfaces: &[String],
    compiled: &Compiled,
    owner: &Owner,
) -> api::Network {
    let spec = &network.spec;
    let bucket =
        |bucket: hue_intent::Bucket| api::Bucket { per_second: bucket.per_second, burst: bucket.burst };
    let limit = spec.rate_limit;
    let resources = spec.resources.map(|resources| api::Resources {
        cpu_cores: resources.cpu.map(|cpu| cpu.cores()),
        memory_bytes: resources.memory.map(|memory| memory.bytes()),
        processes: resources.processes.map(u64::from),
    });
    let ports = spec.ports.iter().zip(&program.ports).zip(interfaces);
    let ports = ports.map(|((document, port), interface)| api::VirtualPort {
        name: port.name.clone(),
        port: document.physical().map_or_else(String::new, ToString::to_string),
        tunnel: document.tunnel().map(described_tunnel),
        interface: interface.clone(),
        mac: port.mac.to_string(),
        mtu: port.mtu_bytes,
        addresses: document.addresses.iter().map(ToString::to_string).collect(),
        up: false,
    });
    let select = match spec.select {
        Select::Mac => "mac",
        Select::Port => "port",
        Select::Inner(_) => "inner",
    };
    let punt = spec.punt_limit;
    api::Network {
        name: network.name().to_owned(),
        vid: program.vid.get(),
        kind: program.kind().name().to_owned(),
        colour: compiled.names.network(program.vid).map(|names| names.colour.to_string()),
        state: api::NetworkState::Pending,
        reason: None,
        substrate: hue_soft::NAME.to_owned(),
        why_soft: None,
        gated: spec.gated,
        on_nic: false,
        program: None,
        select: select.to_owned(),
        namespace: owner.namespace(network.name()),
        ports: ports.collect(),
        routes: 0,
        routes_refused: 0,
        neighbours: 0,
        limits: api::Limits {
            weight: spec.weight,
            packets: limit.and_then(|limit| limit.packets).map(bucket),
            bits: limit.and_then(|limit| limit.bits).map(bucket),
            punt: Some(api::Bucket { per_second: punt.packets_per_second, burst: punt.burst_packets }),
            table_bytes: spec.table.map(|table| table.quota.bytes()),
            resources,
        },
        usage: None,
    }
}

fn described_tunnel(tunnel: &Tunnel) -> api::Tunnel {
    let (vni, udp_port) = match tunnel.encapsulation {
        Encapsulation::Ipip => (None, None),
        Encapsulation::Vxlan { vni, port } => (Some(vni.get()), Some(port)),
    };
    api::Tunnel {
        kind: tunnel.type_name().to_owned(),
        over: tunnel.over.to_string(),
        local: tunnel.local,
        remote: tunnel.remote,
        vni,
        udp_port,
        ttl: tunnel.ttl,
        dscp: match tunnel.dscp {
            Dscp::Inherit => None,
            Dscp::Fixed(dscp) => Some(dscp),
        },
    }
}

/// Limits of a network's processes, in the host's type. A program that forwards has some in any case.
fn limits(kind: Kind, resources: Option<&hue_intent::Resources>) -> Limits {
    let default = match kind {
        Kind::Process => Limits {
            memory_bytes: Some(PROGRAM_BYTES_MAX),
            processes: Some(PROGRAM_PROCESSES_MAX),
            ..Limits::default()
        },
        _ => Limits::default(),
    };
    resources.map_or(default, |resources| Limits {
        cpu_cores: resources.cpu.map(|cpu| cpu.cores()),
        memory_bytes: resources.memory.map(|memory| memory.bytes()).or(default.memory_bytes),
        processes: resources.processes.map(u64::from).or(default.processes),
    })
}
