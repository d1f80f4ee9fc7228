//! Limits answers to what the caller may see. Everyone except a tenant sees everything. A tenant sees its own
//! network. It also sees that shared objects exist, but not how others use them.
//!
//! Invariant: nothing in the answer to a tenant depends on another network, apart from sequence and generation numbers.

use serde_json::Value;

use super::access::Caller;
use crate::api::{
    Config, Event, Health, History, Network, NetworkState, Node, ObjectKind, Part, Pending, Placement, Port,
    Problem, Stats, Status, Summary, TableShare, Tables, Trace, Trouble,
};
use crate::backend::MetricsSnapshot;
use crate::history::changes;

/// The network that a query is about; for a tenant, always its own.
///
/// # Errors
/// `not_found` if it requests another one: for a tenant, no other network exists.
pub(super) fn network(caller: &Caller, asked: Option<String>) -> Result<Option<String>, Problem> {
    match (caller.only(), asked) {
        (Some(only), Some(asked)) if only != asked => Err(Problem::no_network(&asked)),
        (Some(only), _) => Ok(Some(only.to_owned())),
        (None, asked) => Ok(asked),
    }
}

/// Fails unless a caller may see a network.
///
/// # Errors
/// `not_found`, as for a network that does not exist.
pub(super) fn named(caller: &Caller, name: &str) -> Result<(), Problem> {
    if caller.sees(name) { Ok(()) } else { Err(Problem::no_network(name)) }
}

pub(super) fn networks(caller: &Caller, mut networks: Vec<Network>) -> Vec<Network> {
    networks.retain(|network| caller.sees(&network.name));
    networks
}

/// The status; `networks` holds all networks.
pub(super) fn status(caller: &Caller, status: Status, networks: Vec<Network>) -> Status {
    if caller.only().is_none() {
        return status;
    }
    let own = self::networks(caller, networks);
    let networks = Summary::of(own.iter().map(|network| network.state.name()), NetworkState::Running.name());
    let mine = |trouble: &Trouble| {
        trouble.part == Part::Network && trouble.name.as_ref().is_some_and(|name| caller.sees(name))
    };
    let troubles: Vec<Trouble> = status.troubles.into_iter().filter(mine).collect();
    let problems: Vec<String> = own
        .iter()
        .filter_map(|network| Some(format!("network {}: {}", network.name, network.reason.as_ref()?)))
        .collect();
    let health = match status.health {
        Health::Starting | Health::Stopping => status.health,
        Health::Running | Health::Degraded if networks.up < networks.total => Health::Degraded,
        Health::Running | Health::Degraded => Health::Running,
    };
    let pending = status.pending.and_then(|one| pending(caller, one));
    Status {
        health,
        problems,
        troubles,
        pid: None,
        applied: None,
        store: None,
        card: None,
        log: None,
        networks,
        ports: None,
        pending,
        ..status
    }
}

pub(super) fn node(caller: &Caller, node: Node, networks: Vec<Network>) -> Node {
    if caller.only().is_none() {
        return node;
    }
    let own = self::networks(caller, networks);
    let ports = node.ports.into_iter().filter(|port| uses(&own, port)).collect();
    let networks = own.into_iter().map(|network| network.name).collect();
    Node { ports, networks, capacity: None, card: None, ..node }
}

pub(super) fn config(caller: &Caller, mut config: Config) -> Config {
    if let Some(only) = caller.only() {
        config.documents.retain(|document| is_network(document, only));
    }
    config
}

/// A change that waits, if it changed a network that the caller sees; to a tenant, only that part.
fn pending(caller: &Caller, mut pending: Pending) -> Option<Pending> {
    pending.changes.retain(|change| change.object == ObjectKind::Network && caller.sees(&change.name));
    // No tenant makes such a change.
    pending.by.name = None;
    (!pending.changes.is_empty()).then_some(pending)
}

/// The history. A tenant sees only revisions of its network, of these only that part, and who made them only if that
/// was a tenant of the network.
pub(super) fn history(caller: &Caller, mut history: History) -> History {
    if let Some(only) = caller.only() {
        history.revisions.retain(|revision| changes(revision, only));
        for revision in &mut history.revisions {
            revision.changes.retain(|change| change.object == ObjectKind::Network && change.name == only);
            if revision.by.role != caller.role.name() {
                revision.by.name = None;
            }
        }
        history.pending = history.pending.and_then(|one| pending(caller, one));
        // It is about all networks.
        history.problem = None;
    }
    history
}

/// Whether a document is that of the network `name`.
pub(super) fn is_network(document: &Value, name: &str) -> bool {
    document["kind"] == "Network" && document["metadata"]["name"] == name
}

pub(super) fn ports(caller: &Caller, mut ports: Vec<Port>, networks: &[Network]) -> Vec<Port> {
    if caller.only().is_none() {
        return ports;
    }
    let own: Vec<Network> = networks.iter().filter(|network| caller.sees(&network.name)).cloned().collect();
    ports.retain(|port| uses(&own, &port.name));
    for port in &mut ports {
        port.networks.retain(|network| caller.sees(network));
        port.stats = None;
    }
    ports
}

/// Whether one of the networks has a virtual port on a physical port.
pub(super) fn uses(networks: &[Network], port: &str) -> bool {
    networks.iter().flat_map(|network| &network.ports).any(|virtual_port| virtual_port.port == port)
}

pub(super) fn tables(caller: &Caller, mut tables: Tables) -> Tables {
    if caller.only().is_some() {
        tables.networks.retain(|share| caller.sees(&share.network));
        // What is shared depends on other networks.
        let alone = |share: &mut TableShare| (share.bytes_shared, share.bytes_marginal) = (None, None);
        tables.networks.iter_mut().for_each(alone);
        (tables.bytes_total, tables.bytes_max, tables.bytes_free) = (None, None, None);
        if let Some(card) = &mut tables.card {
            card.memories.clear();
            card.networks.retain(|share| caller.sees(&share.network));
            card.networks.iter_mut().for_each(|share| (share.shared, share.marginal) = (None, None));
        }
    }
    tables
}

pub(super) fn placements(caller: &Caller, mut placements: Vec<Placement>) -> Vec<Placement> {
    if caller.only().is_some() {
        placements.retain(|placement| caller.sees(&placement.network));
        // Reasons depend on other networks.
        placements.iter_mut().for_each(|placement| (placement.why, placement.why_not) = (None, None));
    }
    placements
}

pub(super) fn stats(caller: &Caller, mut stats: Stats) -> Stats {
    if caller.only().is_some() {
        stats.networks.retain(|network| caller.sees(&network.network));
        stats.ports.clear();
        stats.unclaimed.clear();
        stats.workers.clear();
    }
    stats
}

pub(super) fn metrics(caller: &Caller, snapshot: MetricsSnapshot) -> MetricsSnapshot {
    if caller.only().is_none() {
        return snapshot;
    }
    MetricsSnapshot {
        stats: stats(caller, snapshot.stats),
        status: status(caller, snapshot.status, snapshot.networks.clone()),
        networks: networks(caller, snapshot.networks),
        ports: Vec::new(),
        tables: tables(caller, snapshot.tables),
    }
}

/// Whether a caller may see an event.
pub(super) fn event(caller: &Caller, event: &Event) -> bool {
    caller.only().is_none() || event.network.as_deref().is_some_and(|network| caller.sees(network))
}

/// A trace; to a tenant, another network's frame looks like one that belongs to no network.
pub(super) fn trace(caller: &Caller, mut trace: Trace) -> Trace {
    if caller.only().is_none() {
        return trace;
    }
    trace.networks.retain(|network| caller.sees(&network.network));
    let unseen = trace.networks.is_empty();
    trace
        .passages
        .retain(|passage| !unseen && passage.networks.iter().any(|network| caller.sees(&network.network)));
    match trace.networks.as_slice() {
        [] => {
            trace.stages.truncate(1);
            trace.stages.iter_mut().for_each(|stage| stage.decided = None);
            trace.unclaimed = Some(hue_planes::Unclaimed::NoNetwork.name().to_owned());
            trace.verdict = Some(hue_planes::Verdict::Drop.name().to_owned());
            trace.reason.clone_from(&trace.unclaimed);
        }
        [one] => (trace.verdict, trace.reason) = (Some(one.verdict.clone()), Some(one.reason.clone())),
        _ => {}
    }
    trace
}
