//! `hueplane topo up`: builds the topology, starts the daemons in parallel, and waits until all networks run.

use std::ffi::OsStr;
use std::fs;
use std::time::{Duration, Instant};

use hue_control::topology::{NodePlan, Plan, expand};
use hue_host::netns::Namespace;
use hue_intent::topology::Topology;
use hueplaned::api::{ApplyRequest, NetworkState, SourceText, TurnQuery};
use hueplaned::client::Client;
use serde::Serialize;

use super::place::{Place, node_folder, places};
use super::{build, check, hosts, load, root, routing};
use crate::cli::TopoUp;
use crate::failure::Failure;
use crate::local::daemon::Daemon;
use crate::local::probe::{all, all_of};
use crate::local::stop;
use crate::print::{count, result};
use crate::progress;

/// Daemons that start at the same time: each needs a core for a moment.
const PARALLEL: usize = 8;
/// Longest time until all networks run.
const SETTLE_MAX: Duration = Duration::from_secs(180);
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Memory of a node, bytes: the program, its tables and its stacks, without packet slots; with some to spare.
const NODE_BYTES: u64 = 24 << 20;
/// Bytes of a packet slot.
const SLOT_BYTES: u64 = 2_048;

/// What `up` made.
#[derive(Serialize)]
struct Made<'a> {
    topology: &'a str,
    nodes: usize,
    links: usize,
    networks: usize,
    hosts: usize,
}

/// Runs the command.
pub fn up(args: &TopoUp) -> Result<(), Failure> {
    let (topology, text) = load(&args.file)?;
    root("up")?;
    let plan = expand(&topology);
    check(&plan)?;
    routing::check(&topology)?;
    hosts::check(&topology)?;
    warn_memory(&plan, args);
    stop::install_handlers()?;
    let place = Place::make(topology.name(), &text)?;
    let done = start(&topology, &plan, args).and_then(|()| place.complete());
    if let Err(failure) = done {
        let faults = place.clear();
        let failure = if stop::requested() { Failure::Interrupted } else { failure };
        faults.iter().for_each(|fault| anstream::eprintln!("{fault}"));
        return Err(failure);
    }
    let made = Made {
        topology: topology.name(),
        nodes: plan.nodes.len(),
        links: plan.wires.len(),
        networks: topology.spec.networks.len(),
        hosts: plan.hosts.len(),
    };
    result(args.output.format, &made, || {
        format!(
            "topology {} is up: {}, {}, {}, {}\n",
            made.topology,
            count(made.nodes as u64, "node"),
            count(made.links as u64, "link"),
            count(made.networks as u64, "network"),
            count(made.hosts as u64, "host")
        )
    })
}

/// Warns if the nodes need more memory than is free.
fn warn_memory(plan: &Plan, args: &TopoUp) {
    let packets = u64::from(args.packet_slots) * SLOT_BYTES * args.workers as u64;
    let needed = plan.nodes.len() as u64 * (NODE_BYTES + packets);
    let Some(free) = fs::read_to_string("/proc/meminfo").ok().and_then(|text| available(&text)) else {
        return;
    };
    if needed > free {
        anstream::eprintln!(
            "hueplane: warning: {} need about {} MiB of memory, and {} MiB are available: use fewer nodes, or a smaller --packet-slots",
            count(plan.nodes.len() as u64, "node"),
            needed >> 20,
            free >> 20
        );
    }
}

/// `MemAvailable` of `/proc/meminfo`, in bytes.
fn available(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

fn start(topology: &Topology, plan: &Plan, args: &TopoUp) -> Result<(), Failure> {
    let name = topology.name();
    let spinner = progress::spinner("namespaces and wires");
    let spaces = build::build(topology, plan)?;
    spinner.finish_and_clear();
    let bar = progress::bar("nodes", plan.nodes.len() as u64);
    let nodes: Vec<(&NodePlan, &Namespace)> = plan.nodes.iter().zip(&spaces).collect();
    let started = all_of(PARALLEL, &nodes, |(node, space)| {
        let client = node_up(name, node, space, args)?;
        bar.inc(1);
        Ok(client)
    });
    bar.finish_and_clear();
    let clients = started?;
    let pairs: Vec<(&NodePlan, &Client)> = plan.nodes.iter().zip(&clients).collect();
    all(&pairs, |(node, client)| settled(node, client))?;
    routing::start(topology, plan)?;
    hosts::start(topology, plan)
}

/// Starts the daemon of a node, and gives it its documents.
fn node_up(topology: &str, node: &NodePlan, space: &Namespace, args: &TopoUp) -> Result<Client, Failure> {
    let folder = node_folder(topology, &node.name);
    fs::create_dir_all(&folder).map_err(|source| Failure::Output { path: folder.clone(), source })?;
    let (workers, slots) = (args.workers.to_string(), args.packet_slots.to_string());
    let more = ["--workers", &workers, "--packet-slots", &slots, "--scheduling", "fair"].map(OsStr::new);
    let named = |failure: Failure| Failure::Broken(format!("node {}: {failure}", node.name));
    let daemon = Daemon::start(space, &places(topology, &node.name), true, &more).map_err(named)?;
    let source = SourceText { name: format!("node {}", node.name), text: node.documents.clone() };
    let request = ApplyRequest { sources: vec![source], prune: true, ..ApplyRequest::default() };
    daemon.client.apply(&request, TurnQuery::default()).map_err(|error| named(error.into()))?;
    Ok(daemon.client)
}

/// Waits until all networks of a node run.
fn settled(node: &NodePlan, client: &Client) -> Result<(), Failure> {
    let deadline = Instant::now() + SETTLE_MAX;
    loop {
        stop::check()?;
        let networks = client.networks()?;
        let Some(network) = networks.iter().find(|network| network.state != NetworkState::Running) else {
            return Ok(());
        };
        if Instant::now() > deadline {
            let reason = network.reason.as_deref().unwrap_or("the daemon gives no reason");
            return Err(Failure::Broken(format!(
                "node {}: network {} does not run: {reason}",
                node.name, network.name
            )));
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn available_memory_is_read() {
        let text = "MemTotal:       24683856 kB\nMemFree:         123 kB\nMemAvailable:   11158000 kB\n";
        assert_eq!(available(text), Some(11_158_000 * 1024));
        assert_eq!(available("MemTotal: 1 kB\n"), None);
    }
}
