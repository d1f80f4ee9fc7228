//! Compiles the desired state of a node into the programs of its networks.
//!
//! Flow: [`Intent`] → **compile** → [`Program`]s for substrates, [`Names`] for users. Deterministic: the same
//! intent gives exactly the same programs. Ports are numbered in the order of their names.

use std::collections::HashMap;

use hue_demux::{Match, PortId, Row};
use hue_intent::{Intent, Martians, Mtus, Name, Network, NetworkSpec, On, RateLimit, Select};
use hue_planes::{Adjacency, Keys, Kind, MeterError, Rate, Settings, ipv4, l2, splice};
use hue_substrate::{Entries, Program, VirtualPort};
use hue_tables::slice::SlicedPrefix;
use hue_tables::{Key, NextHop, Policies, Prefix, Prefix6, Vid};
use hue_wire::Mac;

use crate::error::CompileError;
use crate::extract;
use crate::ids::Ids;
use crate::mpls;
use crate::names::{Names, NetworkNames, PhysicalPort, RouteName, palette};
use crate::rofl;
use crate::routes::{self, RouteFault, RouteSet};

/// The programs of a node.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Compiled {
    /// One program for each network, sorted by name.
    pub programs: Vec<Program>,
    /// The names of the ids in the programs.
    pub names: Names,
}

/// Compiles a node's intent.
///
/// # Errors
/// If the intent contradicts itself (a loaded intent never does), or a network has too many next hops.
pub fn compile(intent: &Intent) -> Result<Compiled, CompileError> {
    compile_with(intent, &Ids::default())
}

/// Compiles a node's intent. Ports and networks with an id in `before` keep it.
///
/// # Errors
/// As [`compile`].
pub fn compile_with(intent: &Intent, before: &Ids) -> Result<Compiled, CompileError> {
    let mut compiled = Compiled::default();
    let mut ids = HashMap::new();
    let physical = intent.node.spec.ports.iter().map(|port| (port.name.as_str(), port.mtu)).collect();
    let networks = intent.networks.iter();
    let mtus = Mtus::new(physical, networks.map(|one| (one.name(), one.spec.ports.iter().collect())));
    let numbers = before.ports(&intent.node.spec.ports)?;
    for (port, id) in intent.node.spec.ports.iter().zip(&numbers) {
        ids.insert(port.name.as_str(), *id);
    }
    for index in 0..numbers.iter().map(|id| id.index() + 1).max().unwrap_or(0) {
        // An id without a port stays unused, so that the other ids do not change.
        let port = intent.node.spec.ports.iter().zip(&numbers).find(|(_, id)| id.index() == index);
        compiled.names.ports.push(port.map_or_else(PhysicalPort::default, |(port, _)| PhysicalPort {
            name: port.name.to_string(),
            mtu_bytes: port.mtu,
            peer: port.peer.as_ref().and_then(|peer| ids.get(peer.as_str()).copied()),
        }));
    }
    let vids = before.networks(&intent.networks)?;
    let by_name = intent.networks.iter().map(Network::name).zip(vids.iter().copied()).collect();
    let known = Known { ports: ids, networks: by_name, mtus };
    for (network, vid) in intent.networks.iter().zip(vids) {
        let (program, names) = one(network, vid, &known)?;
        compiled.programs.push(program);
        compiled.names.networks.push(names);
    }
    Ok(compiled)
}

/// What documents of networks refer to by name.
struct Known<'i> {
    ports: HashMap<&'i str, PortId>,
    networks: HashMap<&'i str, Vid>,
    mtus: Mtus<'i>,
}

/// Compiles one network.
fn one(network: &Network, vid: Vid, known: &Known<'_>) -> Result<(Program, NetworkNames), CompileError> {
    let (name, spec) = (network.name().to_owned(), &network.spec);
    let mut ports = Vec::with_capacity(spec.ports.len());
    for port in &spec.ports {
        let unknown = |what: &Name| CompileError::Port { network: name.clone(), port: what.to_string() };
        let (id, tunnel) = match &port.on {
            On::Port(on) => (known.ports.get(on.as_str()).copied().ok_or_else(|| unknown(on))?, None),
            On::Tunnel(tunnel) => {
                let over = known.networks.get(tunnel.over.as_str()).copied();
                let over = over.ok_or_else(|| unknown(&tunnel.over))?;
                let nth = ports.iter().filter(|port: &&VirtualPort| port.tunnel.is_some()).count();
                let id = u8::try_from(nth).ok().and_then(PortId::tunnel);
                (id.ok_or_else(|| unknown(&port.name))?, Some(tunnel.over(over)))
            }
        };
        let mtu_bytes = known.mtus.of(port).ok_or_else(|| unknown(&port.name))?;
        ports.push(VirtualPort { name: port.name.to_string(), port: id, mac: port.mac, mtu_bytes, tunnel });
    }
    let mut set = routes::build(spec, &ports).map_err(|fault| {
        let network = name.clone();
        match fault {
            RouteFault::Via(via) => CompileError::Via { network, via },
            RouteFault::Port => CompileError::VirtualPort { network },
            RouteFault::NextHops => CompileError::NextHops { network },
        }
    })?;
    if !spec.plane.route_by.is_default() {
        set = match spec.plane.kind.limits().keys {
            Keys::V4 => set.by_length::<u32>(),
            _ => set.by_length::<u128>(),
        }
        .ok_or_else(|| CompileError::NextHops { network: name.clone() })?;
    }
    let entries = match Entries::none(spec.plane.kind) {
        Entries::Exact(_) => {
            set.next_hops = ports.iter().map(|port| Adjacency::out(port.port, port.mtu_bytes)).collect();
            Entries::Exact(
                static_macs(spec, &ports)
                    .ok_or_else(|| CompileError::VirtualPort { network: name.clone() })?,
            )
        }
        Entries::Ternary(_) => {
            let rows = if spec.plane.kind == Kind::Mpls {
                mpls::rows(spec, &ports)
            } else {
                extract::rows(spec, &ports)
            };
            let rows = rows.ok_or_else(|| CompileError::VirtualPort { network: name.clone() })?;
            set.next_hops = rows.next_hops;
            Entries::Ternary(rows.entries)
        }
        Entries::Nearest(_) => {
            let rows = rofl::rows(spec, &ports, &[])
                .ok_or_else(|| CompileError::VirtualPort { network: name.clone() })?;
            set.next_hops = rows.next_hops;
            Entries::Nearest(rows.entries)
        }
        // Its routes are those of the kernel in its namespace, if it has some.
        Entries::None => {
            set = RouteSet::default();
            Entries::None
        }
        Entries::Lpm32(_) => Entries::Lpm32(entries(&set.routes)),
        Entries::Lpm128(_) => Entries::Lpm128(entries(&set.routes)),
        Entries::Dual(..) => Entries::Dual(entries(&set.routes), entries(&set.routes)),
        Entries::Sliced(_) => Entries::Sliced(sliced(&set.routes)),
    };
    let wrong_limit = |error| CompileError::RateLimit { network: name.clone(), error };
    let settings = settings(spec).map_err(wrong_limit)?;
    let rate_limit = spec.rate_limit.map(meter).transpose();
    let names = NetworkNames {
        vid,
        name: name.clone(),
        colour: spec.colour.unwrap_or_else(|| palette(vid)),
        kind: spec.plane.kind,
        ports: ports.iter().map(|port| port.name.clone()).collect(),
        routes: set.routes,
    };
    let program = Program {
        vid,
        settings,
        rows: rows(vid, &spec.select, &ports),
        ports,
        next_hops: set.next_hops,
        groups: set.groups,
        entries,
        rate_limit: rate_limit.map_err(|error| CompileError::RateLimit { network: name.clone(), error })?,
        weight: spec.weight,
        policies: policies(spec),
        gated: spec.gated,
        name,
    };
    program.check().map_err(|error| CompileError::Program { network: program.name.clone(), error })?;
    Ok((program, names))
}

/// The network's routes by source, if it has a plane for them.
fn policies(spec: &NetworkSpec) -> Option<Policies> {
    (!spec.plane.route_by.is_default())
        .then(|| hue_intent::policies(spec.plane.route_by, &spec.ports, &spec.routes))
}

/// What the network says about its plane.
fn settings(spec: &NetworkSpec) -> Result<Settings, MeterError> {
    let plane = &spec.plane;
    let ipv4 = ipv4::Settings { forward_martians: plane.martians == Martians::Forward };
    Ok(match Settings::of(plane.kind) {
        Settings::Ipv4(_) => Settings::Ipv4(ipv4),
        Settings::Dual(_) => Settings::Dual(ipv4),
        Settings::L2(default) => Settings::L2(l2::Settings {
            macs_max: plane.macs_max.unwrap_or(default.macs_max),
            ageing_s: plane.ageing_seconds.unwrap_or(default.ageing_s),
            sticky: plane.sticky,
            storm_limit: plane.storm_limit.map(meter).transpose()?,
        }),
        Settings::Splice(default) => Settings::Splice(splice::Settings {
            forward_martians: ipv4.forward_martians,
            slices: plane.slices.unwrap_or(default.slices),
            bits: plane.bits,
        }),
        Settings::Extract(default) => Settings::Extract(plane.key.unwrap_or(default)),
        Settings::Rofl(default) => {
            let new = hue_planes::rofl::Settings::new(
                plane.label_bits.unwrap_or(default.label_bits()),
                plane.pointers_max.unwrap_or(default.pointers_max()),
                plane.pointer_seconds.unwrap_or(default.pointer_seconds()),
            );
            // Documents have only those that exist.
            Settings::Rofl(new.unwrap_or(default))
        }
        Settings::Mpls(_) => Settings::Mpls(hue_planes::mpls::Settings { ttl: plane.ttl }),
        other => other,
    })
}

/// The routes whose keys have this width, as entries.
fn entries<K: Key>(routes: &[RouteName]) -> Vec<(Prefix<K>, NextHop)> {
    routes.iter().filter_map(|route| Some((route.prefix.of()?, route.hop))).collect()
}

/// The routes of all slices, as entries.
fn sliced(routes: &[RouteName]) -> Vec<(Prefix6, NextHop)> {
    let entry = |route: &RouteName| {
        Some((SlicedPrefix { slice: route.slice, prefix: route.prefix.of()? }.wide(), route.hop))
    };
    routes.iter().filter_map(entry).collect()
}

/// The static MAC addresses; `None` if one is at a port that does not exist.
fn static_macs(spec: &NetworkSpec, ports: &[VirtualPort]) -> Option<Vec<(Mac, NextHop)>> {
    let row = |one: &hue_intent::StaticMac| {
        let vport = ports.iter().position(|port| port.name == one.port.as_str())?;
        Some((one.mac, NextHop::new(u16::try_from(vport).ok()?)?))
    };
    spec.static_macs.iter().map(row).collect()
}

/// The claims of a network on frames: one row for each virtual port, or for each of its prefixes.
fn rows(vid: Vid, select: &Select, ports: &[VirtualPort]) -> Vec<Row> {
    let mut rows = Vec::new();
    for (port, vport) in ports.iter().zip(0u16..) {
        let mut add = |select| rows.push(Row { vid, vport, select });
        match select {
            Select::Mac => add(Match::Mac { port: port.port, mac: port.mac }),
            Select::Port => add(Match::Port(port.port)),
            Select::Inner(prefixes) => {
                for prefix in prefixes {
                    add(Match::Inner { port: Some(port.port), prefix: *prefix });
                }
            }
        }
    }
    rows
}

fn meter(limit: RateLimit) -> Result<hue_planes::RateLimit, MeterError> {
    let rate = |bucket: Option<hue_intent::Bucket>| {
        bucket.map(|bucket| Rate::new(bucket.per_second, bucket.burst)).transpose()
    };
    Ok(hue_planes::RateLimit { packets: rate(limit.packets)?, bits: rate(limit.bits)? })
}
