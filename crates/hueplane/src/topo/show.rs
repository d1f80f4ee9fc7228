//! `hueplane topo show` and `ping`: the state of a running topology, and whether its hosts reach each other.

use std::time::Instant;

use hue_control::topology::{HostPlan, Plan, expand};
use hue_host::netns::Namespace;
use hue_intent::topology::{Topology, Under};
use hueplaned::api::{NetworkState, PortState};
use hueplaned::client::{Client, socket_in};
use serde::Serialize;

use super::place::{self, host_space, node_space, places};
use super::root;
use crate::cli::{Format, TopoPing};
use crate::failure::Failure;
use crate::local::probe::{self, Ping, all};
use crate::local::stop;
use crate::print::{Align, GREEN, RED, columns, count, painted, result, styled};
use crate::progress;

/// One request of a ping, and attempts of a pair.
const PING: Ping =
    Ping { count: 1, gap: std::time::Duration::from_millis(200), wait: std::time::Duration::from_secs(1) };
const ATTEMPTS: usize = 3;
/// Pairs that do not reach each other, of those that are shown.
const SHOWN_MAX: usize = 20;

#[derive(Serialize)]
struct Shown {
    topology: String,
    nodes: Vec<NodeRow>,
    links: Vec<LinkRow>,
    networks: Vec<NetworkRow>,
    hosts: Vec<HostRow>,
}

#[derive(Serialize)]
struct NodeRow {
    name: String,
    /// Health of its daemon; `down` if it does not answer.
    health: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pid: Option<u32>,
    namespace: String,
    socket: String,
}

#[derive(Serialize)]
struct LinkRow {
    ends: [String; 2],
    interfaces: [String; 2],
    /// `up` if both ends are.
    state: &'static str,
}

#[derive(Serialize)]
struct NetworkRow {
    name: String,
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    colour: Option<String>,
    routing: &'static str,
    nodes: usize,
    /// Nodes on which it runs.
    running: usize,
    links: Vec<VirtualRow>,
    hosts: usize,
}

#[derive(Serialize)]
struct VirtualRow {
    ends: [String; 2],
    /// `direct`, `ipip` or `vxlan`.
    on: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    over: Option<String>,
    cost: u32,
}

#[derive(Serialize)]
struct HostRow {
    name: String,
    network: String,
    node: String,
    addresses: Vec<String>,
    /// With kinds whose entries name hosts: its label, or the key of frames to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<String>,
    namespace: String,
}

/// What a node's daemon says.
#[derive(Default)]
struct Answer {
    health: Option<String>,
    pid: Option<u32>,
    running: Vec<String>,
    up: Vec<String>,
}

/// Shows a running topology.
pub fn show(name: Option<&str>, format: Format) -> Result<(), Failure> {
    let name = name.map_or_else(place::only, |name| Ok(name.to_owned()))?;
    let topology = place::document(&name)?;
    let plan = expand(&topology);
    let answers = all(&plan.nodes, |node| Ok(ask(&name, &node.name)))?;
    let shown = shown(&topology, &plan, &answers);
    result(format, &shown, || table(&shown))
}

/// Asks a node's daemon. One that does not answer is down.
fn ask(topology: &str, node: &str) -> Answer {
    let socket = socket_in(&places(topology, node).run_dir);
    let asked = Client::unix(socket).and_then(|client| {
        let (status, networks, ports) = (client.status()?, client.networks()?, client.ports()?);
        let running = networks.into_iter().filter(|network| network.state == NetworkState::Running);
        let up = ports.into_iter().filter(|port| port.state == PortState::Up);
        Ok(Answer {
            health: Some(status.health.name().to_owned()),
            pid: status.pid,
            running: running.map(|network| network.name).collect(),
            up: up.map(|port| port.interface).collect(),
        })
    });
    asked.unwrap_or_default()
}

fn shown(topology: &Topology, plan: &Plan, answers: &[Answer]) -> Shown {
    let (spec, name) = (&topology.spec, topology.name());
    let nodes = plan.nodes.iter().zip(answers).map(|(node, answer)| NodeRow {
        name: node.name.clone(),
        health: answer.health.clone().unwrap_or_else(|| "down".to_owned()),
        pid: answer.pid,
        namespace: node_space(name, &node.name),
        socket: socket_in(&places(name, &node.name).run_dir).display().to_string(),
    });
    let links = plan.wires.iter().map(|wire| LinkRow {
        ends: wire.ends.each_ref().map(|end| plan.nodes[end.node].name.clone()),
        interfaces: wire.ends.each_ref().map(|end| end.interface.clone()),
        state: if wire.ends.iter().all(|end| answers[end.node].up.contains(&end.interface)) {
            "up"
        } else {
            "down"
        },
    });
    let networks = spec.networks.iter().enumerate().map(|(at, network)| {
        let on = spec.nodes_of(network);
        let links = spec.links_of(at).into_iter().map(|link| VirtualRow {
            ends: link.ends.map(|end| plan.nodes[end].name.clone()),
            on: match link.on {
                Under::Link(_) => "direct",
                Under::Tunnel { kind, .. } => kind.name(),
            },
            over: match link.on {
                Under::Link(_) => None,
                Under::Tunnel { over, .. } => Some(spec.networks[over].name.to_string()),
            },
            cost: link.cost,
        });
        let name = network.name.to_string();
        NetworkRow {
            kind: network.kind.name(),
            colour: network.colour.map(|colour| colour.to_string()),
            routing: network.routing.name(),
            nodes: on.len(),
            running: on.iter().filter(|node| answers[**node].running.contains(&name)).count(),
            links: links.collect(),
            hosts: network.hosts.len(),
            name,
        }
    });
    let hosts = plan.hosts.iter().map(|host| HostRow {
        name: host.name.clone(),
        network: spec.networks[host.network].name.to_string(),
        node: plan.nodes[host.node].name.clone(),
        addresses: host.addresses.iter().map(ToString::to_string).collect(),
        label: host.entry.as_ref().map(|entry| entry.label.clone()),
        namespace: host_space(name, &host.name),
    });
    Shown {
        topology: name.to_owned(),
        nodes: nodes.collect(),
        links: links.collect(),
        networks: networks.collect(),
        hosts: hosts.collect(),
    }
}

fn table(shown: &Shown) -> String {
    const LEFT: Align = Align::Left;
    let state = |text: &str, good: bool| styled(if good { GREEN } else { RED }, text);
    let nodes: Vec<Vec<String>> = shown
        .nodes
        .iter()
        .map(|node| {
            let pid = node.pid.map_or_else(String::new, |pid| pid.to_string());
            vec![node.name.clone(), state(&node.health, node.health == "running"), pid, node.socket.clone()]
        })
        .collect();
    let links: Vec<Vec<String>> = shown
        .links
        .iter()
        .map(|link| {
            let interfaces = link.interfaces.join(" - ");
            vec![link.ends.join(" - "), interfaces, state(link.state, link.state == "up")]
        })
        .collect();
    let networks: Vec<Vec<String>> = shown
        .networks
        .iter()
        .map(|network| {
            let tunnels = network.links.iter().filter(|link| link.over.is_some()).count();
            let links = match (tunnels, network.links.len() - tunnels) {
                (0, direct) => format!("{direct} direct"),
                (tunnels, 0) => count(tunnels as u64, "tunnel"),
                (tunnels, direct) => format!("{direct} direct, {}", count(tunnels as u64, "tunnel")),
            };
            vec![
                painted(&network.name, network.colour.as_deref()),
                network.kind.to_owned(),
                network.routing.to_owned(),
                links,
                network.hosts.to_string(),
                state(&format!("{} of {}", network.running, network.nodes), network.running == network.nodes),
            ]
        })
        .collect();
    let hosts: Vec<Vec<String>> = shown
        .hosts
        .iter()
        .map(|host| {
            let addresses = host.addresses.join(" ");
            vec![
                host.name.clone(),
                host.network.clone(),
                host.node.clone(),
                addresses,
                host.label.clone().unwrap_or_default(),
                host.namespace.clone(),
            ]
        })
        .collect();
    let heads: [&[(&str, Align)]; 4] = [
        &[("NODE", LEFT), ("HEALTH", LEFT), ("PID", Align::Right), ("SOCKET", LEFT)],
        &[("LINK", LEFT), ("INTERFACES", LEFT), ("STATE", LEFT)],
        &[
            ("NETWORK", LEFT),
            ("KIND", LEFT),
            ("ROUTING", LEFT),
            ("LINKS", LEFT),
            ("HOSTS", Align::Right),
            ("RUNS ON", LEFT),
        ],
        &[
            ("HOST", LEFT),
            ("NETWORK", LEFT),
            ("NODE", LEFT),
            ("ADDRESSES", LEFT),
            ("LABEL", LEFT),
            ("NAMESPACE", LEFT),
        ],
    ];
    let tables = heads.into_iter().zip([nodes, links, networks, hosts]);
    let tables: Vec<String> =
        tables.filter(|(_, rows)| !rows.is_empty()).map(|(head, rows)| columns(head, &rows)).collect();
    format!("topology {}\n\n{}", shown.topology, tables.join("\n"))
}

#[derive(Serialize)]
struct Pinged {
    network: String,
    /// Pairs of hosts, each tried once in one direction with each address: an answer crosses both.
    pairs: usize,
    reached: usize,
    /// The first pairs without an answer.
    failed: Vec<[String; 2]>,
}

/// Runs `hueplane topo ping`.
pub fn ping(args: &TopoPing) -> Result<(), Failure> {
    root("ping")?;
    let name = args.named.name.as_deref().map_or_else(place::only, |name| Ok(name.to_owned()))?;
    let topology = place::document(&name)?;
    if let Some(network) = &args.network
        && topology.spec.network(network).is_none()
    {
        let names: Vec<&str> = topology.spec.networks.iter().map(|one| one.name.as_str()).collect();
        return Err(Failure::Usage(format!(
            "network {network:?} does not exist, expected one of {}",
            names.join(", ")
        )));
    }
    stop::install_handlers()?;
    let plan = expand(&topology);
    let mut rows = Vec::new();
    for (at, network) in topology.spec.networks.iter().enumerate() {
        if args.network.as_deref().is_some_and(|wanted| wanted != network.name.as_str()) {
            continue;
        }
        let hosts: Vec<&HostPlan> = plan.hosts.iter().filter(|host| host.network == at).collect();
        rows.push(pairs(&name, network.name.as_str(), &hosts, args.wait)?);
    }
    result(args.output.format, &rows, || {
        rows.iter().map(|row| text(row, &topology)).collect::<Vec<_>>().join("")
    })?;
    if rows.iter().all(|row| row.reached == row.pairs) {
        return Ok(());
    }
    Err(Failure::Broken("topo ping: some hosts do not reach each other".to_owned()))
}

fn text(row: &Pinged, topology: &Topology) -> String {
    let networks = &topology.spec.networks;
    let colour = networks.iter().find(|one| one.name.as_str() == row.network).and_then(|one| one.colour);
    let colour = colour.map(|colour| colour.to_string());
    let count = styled(
        if row.reached == row.pairs { GREEN } else { RED },
        format!("{} of {}", row.reached, row.pairs),
    );
    let mut out = format!(
        "network {}: {count} pairs of hosts reach each other\n",
        painted(&row.network, colour.as_deref())
    );
    for [from, to] in &row.failed {
        out.push_str(&format!("  {from} does not reach {to}\n"));
    }
    let more = row.pairs - row.reached - row.failed.len();
    if more > 0 {
        out.push_str(&format!("  and {more} more\n"));
    }
    out
}

/// Pings between all pairs of hosts.
fn pairs(
    topology: &str,
    network: &str,
    hosts: &[&HostPlan],
    wait: std::time::Duration,
) -> Result<Pinged, Failure> {
    let spaces: Vec<Namespace> = hosts
        .iter()
        .map(|host| Namespace::open(&host_space(topology, &host.name)))
        .collect::<Result<_, _>>()?;
    let mut todo: Vec<(usize, usize)> =
        (0..hosts.len()).flat_map(|one| (one + 1..hosts.len()).map(move |other| (one, other))).collect();
    let count = todo.len();
    let deadline = Instant::now() + wait;
    let bar = progress::bar(network, count as u64);
    let mut attempt = 1;
    loop {
        let results = all(&todo, |(one, other)| {
            let mut good = true;
            for address in &hosts[*other].addresses {
                good &= probe::ping(&spaces[*one], address.address, PING)?.received > 0;
            }
            bar.inc(u64::from(good));
            Ok(good)
        })?;
        let mut results = results.into_iter();
        todo.retain(|_| !results.next().unwrap_or_default());
        if todo.is_empty() || attempt >= ATTEMPTS && Instant::now() > deadline {
            break;
        }
        attempt += 1;
    }
    bar.finish_and_clear();
    let failed = todo.iter().take(SHOWN_MAX);
    let failed = failed.map(|(one, other)| [hosts[*one].name.clone(), hosts[*other].name.clone()]);
    Ok(Pinged {
        network: network.to_owned(),
        pairs: count,
        reached: count - todo.len(),
        failed: failed.collect(),
    })
}
