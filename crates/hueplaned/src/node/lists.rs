//! Routes, neighbours and tables in API terms. Long lists come in pieces, each from a separate call, so that the
//! node's thread does other work between them.

use std::collections::HashMap;
use std::sync::Arc;

use hue_host::links::Links;
use hue_host::netlink::neighbour_state;
use hue_host::{ControlNamespace, HostError, neighbours};
use hue_planes::{Adjacency, AdjacencyKind, Settings, mpls};
use hue_routing::RouteRow;
use hue_substrate::Program;
use hue_tables::slice::SlicedPrefix;
use hue_tables::{AnyPrefix, NextHop, Pattern, Pointer, Vid};
use hue_wire::Mac;

use super::networks::Entry;
use super::routes::Table;
use crate::api::{
    CardMemory, CardShare, CardTables, EntryAction, Neighbour, Route, RouteKind, RouteWay, TableEntry,
};

/// Entries per piece.
pub(super) const PIECE: usize = 2048;

/// Where a list of routes continues: the remaining networks, and the last prefix listed of the first one.
pub type RoutesAt = (Vec<String>, Option<AnyPrefix>);

/// A card's tables in API terms.
pub(super) fn card_tables(
    image: String,
    memory: &hue_card::CardMemory,
    names: &HashMap<Vid, String>,
) -> CardTables {
    let memories = memory.banks.iter().map(|bank| CardMemory {
        name: bank.name.clone(),
        used: bank.used,
        max: bank.max,
        free: bank.max.saturating_sub(bank.used),
        network_max: bank.network_max,
    });
    let share = |share: &hue_card::CardShare| {
        Some(CardShare {
            network: names.get(&share.vid)?.clone(),
            routes: share.routes,
            own: share.own,
            shared: Some(share.own - share.marginal),
            marginal: Some(share.marginal),
        })
    };
    let mut networks: Vec<CardShare> = memory.networks.iter().filter_map(share).collect();
    networks.sort_by(|a, b| (b.own, b.marginal, &a.network).cmp(&(a.own, a.marginal, &b.network)));
    CardTables {
        image,
        layout: memory.layout.name().to_owned(),
        unit: memory.unit.clone(),
        memories: memories.collect(),
        networks,
    }
}

/// A list of neighbours to be read: the kernel knows more of them than the data plane.
pub struct NeighbourList {
    pub(super) network: String,
    pub(super) control: Arc<ControlNamespace>,
    /// Interface and virtual port.
    pub(super) ports: Vec<(String, String)>,
}

impl NeighbourList {
    /// Asks the kernel of the namespace. Slow: not for the node's thread.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn read(&self) -> Result<Vec<Neighbour>, HostError> {
        let mut links = Links::inside(&self.control.namespace)?;
        let index: HashMap<u32, usize> = links
            .list()?
            .into_iter()
            .filter_map(|link| {
                Some((link.index, self.ports.iter().position(|(name, _)| *name == link.name)?))
            })
            .collect();
        let mut known: Vec<(usize, hue_host::netlink::Neighbour)> = neighbours::list(links.socket())?
            .into_iter()
            .filter_map(|neighbour| Some((*index.get(&neighbour.link)?, neighbour)))
            .collect();
        known.sort_by_key(|(vport, neighbour)| (*vport, neighbour.address));
        let neighbour = |(vport, known): (usize, hue_host::netlink::Neighbour)| Neighbour {
            network: self.network.clone(),
            port: self.ports.get(vport).map(|(_, port)| port.clone()).unwrap_or_default(),
            address: known.address,
            mac: known.usable().map(|mac| mac.to_string()),
            state: state_name(known.state).to_owned(),
        };
        Ok(known.into_iter().map(neighbour).collect())
    }
}

/// State name as in `ip neighbour`.
fn state_name(state: u16) -> &'static str {
    const NAMES: [(u16, &str); 8] = [
        (neighbour_state::PERMANENT, "permanent"),
        (neighbour_state::REACHABLE, "reachable"),
        (neighbour_state::STALE, "stale"),
        (neighbour_state::DELAY, "delay"),
        (neighbour_state::PROBE, "probe"),
        (neighbour_state::FAILED, "failed"),
        (neighbour_state::INCOMPLETE, "incomplete"),
        (neighbour_state::NOARP, "noarp"),
    ];
    NAMES.iter().find(|(bit, _)| state & bit != 0).map_or("none", |(_, name)| *name)
}

/// Names of a network's virtual ports, by index.
pub(super) fn port_names(entry: &Entry) -> Vec<String> {
    entry.program().iter().flat_map(|program| &program.ports).map(|port| port.name.clone()).collect()
}

pub(super) fn route(entry: &Entry, table: &Table, network: &str, row: RouteRow) -> Route {
    let adjacency = row.adjacency;
    let kind = match adjacency.kind() {
        AdjacencyKind::Forward | AdjacencyKind::Port | AdjacencyKind::Group | AdjacencyKind::Labels => {
            RouteKind::Forward
        }
        AdjacencyKind::Glean => RouteKind::Glean,
        AdjacencyKind::Local | AdjacencyKind::None | AdjacencyKind::Drop => RouteKind::Local,
    };
    let names: HashMap<&str, usize> =
        table.rib().ports().iter().zip(0..).map(|(port, vport)| (port.interface.as_str(), vport)).collect();
    let way = row.ways.iter().find(|way| !way.dead).or(row.ways.first());
    // A neighbour's own route shows its port only by its next hop.
    let by_hop = || {
        let ports = table.rib().ports().iter();
        let own = |port: &hue_routing::RibPort| port.port == adjacency.port() && port.mac == adjacency.src();
        (kind == RouteKind::Forward).then(|| ports.clone().position(own)).flatten()
    };
    let vport = way.and_then(|way| names.get(way.interface.as_str()).copied()).or_else(by_hop);
    let port_of = |vport: usize| Some(entry.program()?.ports.get(vport)?.name.clone());
    let several = row.ways.iter().filter(|_| row.ways.len() > 1).map(|way| RouteWay {
        via: way.via,
        port: names.get(way.interface.as_str()).copied().and_then(port_of),
        weight: way.weight,
        dead: way.dead,
    });
    let ways = several.collect();
    let sliced = SlicedPrefix::of_any(row.prefix).filter(|_| table.has_slices());
    Route {
        network: network.to_owned(),
        prefix: sliced.map_or_else(|| row.prefix.to_string(), |one| one.prefix.to_string()),
        slice: sliced.map(|one| one.slice),
        kind,
        via: way.and_then(|way| way.via),
        port: vport.and_then(port_of),
        mac: (adjacency.kind() == AdjacencyKind::Forward).then(|| adjacency.dst().to_string()),
        ways,
        protocol: row.protocol,
        metric: row.metric,
        refused: table.refused().contains(row.prefix),
    }
}

/// The labels of a program, then the cached pointers, both in the order of labels.
pub(super) fn labels(network: &str, program: &Program, pointers: &[Pointer<Adjacency>]) -> Vec<TableEntry> {
    let Settings::Rofl(settings) = program.settings else { return Vec::new() };
    let mut rows: Vec<(u128, Adjacency, Option<u64>)> = program
        .entries
        .labels()
        .iter()
        .filter_map(|(label, hop)| Some((*label, *program.next_hops.get(usize::from(hop.get()))?, None)))
        .collect();
    rows.sort_by_key(|(label, ..)| *label);
    rows.extend(pointers.iter().map(|one| (one.label, one.value, Some(one.age_ns / 1_000_000_000))));
    let entry = |(index, (label, row, age_seconds)): (u64, (u128, Adjacency, Option<u64>))| {
        let port = program.ports.iter().find(|port| port.port == row.port());
        let is_sent = row.kind() != AdjacencyKind::Local;
        TableEntry {
            network: network.to_owned(),
            index,
            matches: settings.label_text(label),
            action: if is_sent { EntryAction::Forward } else { EntryAction::Punt },
            port: port.filter(|_| is_sent).map(|port| port.name.clone()),
            destination: is_sent.then(|| row.dst().to_string()),
            source: is_sent.then(|| row.src().to_string()),
            resident: row.kind() == AdjacencyKind::Port,
            age_seconds,
            labels: None,
        }
    };
    (0..).zip(rows).map(entry).collect()
}

/// The entries of a program that compare bits of frames, or labels.
pub(super) fn entries(network: &str, program: &Program) -> Vec<TableEntry> {
    let matches = |pattern: &Pattern| match program.settings {
        Settings::Extract(key) => key.pattern_text(pattern),
        _ => mpls::label_of(pattern.value()).to_string(),
    };
    let entry = |(index, (pattern, hop)): (u64, &(Pattern, NextHop))| {
        let at = |row: u16| program.next_hops.get(usize::from(row));
        let found = at(hop.get())?;
        let has_labels = found.kind() == AdjacencyKind::Labels;
        let row = if has_labels { at(found.then())? } else { found };
        let port = program.ports.iter().find(|port| port.port == row.port());
        let is_sent = row.kind() == AdjacencyKind::Port;
        let mac = |mac: Mac| (is_sent && mac != Mac::ZERO).then(|| mac.to_string());
        Some(TableEntry {
            network: network.to_owned(),
            index,
            matches: matches(pattern),
            action: match row.kind() {
                AdjacencyKind::Port => EntryAction::Forward,
                AdjacencyKind::Local => EntryAction::Punt,
                _ => EntryAction::Drop,
            },
            port: port.filter(|_| is_sent).map(|port| port.name.clone()),
            destination: mac(row.dst()),
            source: mac(row.src()),
            resident: false,
            age_seconds: None,
            labels: has_labels.then(|| (0..found.label_count()).rev().map(|at| found.label(at)).collect()),
        })
    };
    (0..).zip(program.entries.patterns()).filter_map(entry).collect()
}
