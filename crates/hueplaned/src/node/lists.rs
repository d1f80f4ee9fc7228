//! Routes, neighbours and tables in API terms. Long lists come in pieces, each from a separate call, so that the
//! node's thread does other work between them.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::sync::Arc;

use hue_host::links::Links;
use hue_host::netlink::neighbour_state;
use hue_host::{ControlNamespace, HostError, neighbours};
use hue_planes::AdjacencyKind;
use hue_routing::RouteRow;
use hue_substrate::Substrate;
use hue_tables::{Prefix4, Vid};
use tokio::sync::oneshot;

use super::core::Node;
use super::networks::Entry;
use crate::api::{
    CardMemory, CardShare, CardTables, ExecInfo, Neighbour, Problem, Route, RouteKind, TableShare, Tables,
};

/// Entries per piece.
const PIECE: usize = 2048;
/// Number of prefix lengths, 0 to 32.
const LENGTHS: u8 = 33;

/// Where a list of routes continues: the remaining networks, and the last prefix listed of the first one.
pub type RoutesAt = (Vec<String>, Option<Prefix4>);

impl Node {
    /// Names of the networks that a list covers.
    pub(super) fn names_of(&self, only: Option<&str>) -> Result<Vec<String>, Problem> {
        let there = |entry: &Entry| entry.want.is_some();
        match only {
            None => {
                Ok(self.networks.iter().filter(|(_, e)| there(e)).map(|(name, _)| name.clone()).collect())
            }
            Some(name) if self.networks.get(name).is_some_and(there) => Ok(vec![name.to_owned()]),
            Some(name) => Err(Problem::no_network(name)),
        }
    }

    /// Some routes, and where the list continues.
    pub(super) fn routes_from(&self, (mut names, after): RoutesAt) -> (Vec<Route>, Option<RoutesAt>) {
        let Some(name) = names.first() else { return (Vec::new(), None) };
        let mut list = Vec::new();
        let mut last = None;
        if let Some(entry) = self.networks.get(name) {
            for row in entry.rib.routes(after).take(PIECE) {
                last = Some(row.prefix);
                list.push(route(entry, name, row));
            }
        }
        if list.len() < PIECE {
            names.remove(0);
            last = None;
        }
        let more = (!names.is_empty()).then_some((names, last));
        (list, more)
    }

    /// A network's routes that contain an address, the longest last.
    pub(super) fn routes_holding(&self, name: &str, address: Ipv4Addr) -> Vec<Route> {
        let Some(entry) = self.networks.get(name) else { return Vec::new() };
        let prefix = |len| Prefix4::containing(address.to_bits(), len);
        let rows = (0..LENGTHS).filter_map(|len| entry.rib.route(prefix(len)));
        rows.map(|row| route(entry, name, row)).collect()
    }

    /// The inputs to list a network's neighbours; `None` while it has no namespace.
    pub(super) fn neighbours_of(&self, name: &str) -> Option<NeighbourList> {
        let entry = self.networks.get(name)?;
        let interfaces = entry.rib.ports().iter().map(|port| port.interface.clone());
        Some(NeighbourList {
            network: name.to_owned(),
            control: Arc::clone(entry.control.as_ref()?),
            ports: interfaces.zip(port_names(entry)).collect(),
        })
    }

    /// Software's tables, and a receiver for those of the card.
    pub(super) fn tables(&self) -> (Tables, Option<oneshot::Receiver<CardTables>>) {
        let capacity = self.live.capacity();
        let mut networks = Vec::with_capacity(self.networks.len());
        for (name, entry) in &self.networks {
            let Some(have) = &entry.have else { continue };
            let Ok(account) = self.live.account(have.program.vid) else { continue };
            networks.push(TableShare {
                network: name.clone(),
                routes: account.routes as u64,
                next_hops: entry.rib.counts().rows as u64,
                bytes_own: account.bytes_own,
                bytes_shared: Some(account.bytes_shared),
                bytes_marginal: Some(account.bytes_marginal),
                bytes_quota: account.bytes_quota,
                routes_refused: entry.refused.len() as u64,
                refusals: entry.refused.count(),
            });
        }
        // The sort is stable: equal entries stay in the order of names.
        networks.sort_by_key(|share| Reverse((share.bytes_own, share.bytes_marginal)));
        let tables = Tables {
            layout: "dag".to_owned(),
            bytes_total: Some(capacity.table_bytes),
            bytes_max: Some(capacity.table_bytes_max),
            bytes_free: Some(capacity.table_bytes_max.saturating_sub(capacity.table_bytes)),
            networks,
            card: None,
        };
        (tables, self.card_tables())
    }

    /// Asks the card's thread how full its tables are. It knows without walking tables or reading registers.
    fn card_tables(&self) -> Option<oneshot::Receiver<CardTables>> {
        let card = self.card.as_ref()?;
        let (reply, answer) = oneshot::channel();
        let (image, names) = (card.description().name.clone(), self.vids.clone());
        // Where the card's tables follow software's, software knows their sizes.
        let account = |vid: &Vid| Some((*vid, self.live.follower_account(*vid).ok()?));
        let accounts: HashMap<_, _> = names.keys().filter_map(account).collect();
        // The caller may have disconnected.
        card.live.tell(move |runner| {
            drop(reply.send(card_tables(image, &runner.card().memory(&accounts), &names)));
        });
        Some(answer)
    }

    /// Namespace and control groups for commands in a network.
    pub(super) fn exec_info_of(&self, name: &str) -> Result<(ExecInfo, Arc<ControlNamespace>), Problem> {
        self.names_of(Some(name))?;
        let control = self.networks.get(name).and_then(|entry| entry.control.as_ref());
        let control = control.ok_or_else(|| {
            Problem::unavailable(format!("network {name} is not set up; `hueplane get networks` says why"))
        })?;
        let folders = control.cgroup.iter().flat_map(|cgroup| cgroup.folders().collect::<Vec<_>>());
        let namespace = control.namespace.name().to_owned();
        let (device, inode) = control.namespace.identity().map_err(Problem::internal)?;
        let info = ExecInfo {
            network: name.to_owned(),
            namespace_path: format!("{}/{namespace}", hue_host::netns::FOLDER),
            namespace,
            device,
            inode,
            cgroups: folders.map(|folder| folder.display().to_string()).collect(),
        };
        Ok((info, Arc::clone(control)))
    }
}

/// A card's tables in API terms.
fn card_tables(image: String, memory: &hue_card::CardMemory, names: &HashMap<Vid, String>) -> CardTables {
    let memories = memory.banks.iter().map(|bank| CardMemory {
        name: bank.name.to_owned(),
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
        unit: memory.unit.to_owned(),
        memories: memories.collect(),
        networks,
    }
}

/// A list of neighbours to be read: the kernel knows more of them than the data plane.
pub struct NeighbourList {
    network: String,
    control: Arc<ControlNamespace>,
    /// Interface and virtual port.
    ports: Vec<(String, String)>,
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
fn port_names(entry: &Entry) -> Vec<String> {
    entry.have.iter().flat_map(|have| &have.program.ports).map(|port| port.name.clone()).collect()
}

fn route(entry: &Entry, network: &str, row: RouteRow) -> Route {
    let adjacency = row.adjacency;
    let kind = match adjacency.kind() {
        AdjacencyKind::Forward => RouteKind::Forward,
        AdjacencyKind::Glean => RouteKind::Glean,
        AdjacencyKind::Local | AdjacencyKind::None => RouteKind::Local,
    };
    let names: HashMap<&str, usize> =
        entry.rib.ports().iter().zip(0..).map(|(port, vport)| (port.interface.as_str(), vport)).collect();
    let way = row.ways.iter().find(|way| !way.dead).or(row.ways.first());
    // A neighbour's own route shows its port only by its next hop.
    let by_hop = || {
        let ports = entry.rib.ports().iter();
        let own = |port: &hue_routing::RibPort| port.port == adjacency.port() && port.mac == adjacency.src();
        (kind == RouteKind::Forward).then(|| ports.clone().position(own)).flatten()
    };
    let vport = way.and_then(|way| names.get(way.interface.as_str()).copied()).or_else(by_hop);
    let port = vport.and_then(|vport| Some(entry.have.as_ref()?.program.ports.get(vport)?.name.clone()));
    Route {
        network: network.to_owned(),
        prefix: row.prefix.to_string(),
        kind,
        via: way.and_then(|way| way.via),
        port,
        mac: (kind == RouteKind::Forward).then(|| adjacency.dst().to_string()),
        protocol: row.protocol,
        metric: row.metric,
        refused: entry.refused.contains(row.prefix),
    }
}
