//! The core, for lists: routes, neighbours and tables in API terms.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use hue_card::{CardQuestion, CardReply};
use hue_host::ControlNamespace;
use hue_soft::MacRow;
use hue_substrate::Substrate;
use hue_tables::Vid;
use tokio::sync::oneshot;

use super::Node;
use crate::api::{CardTables, ExecInfo, MacAddress, Problem, Route, TableEntry, TableShare, Tables};
use crate::node::lists::{NeighbourList, PIECE, RoutesAt, card_tables, entries, labels, port_names, route};
use crate::node::networks::Entry;

impl Node {
    /// Names of the networks that a list covers.
    pub(super) fn names_of(&self, only: Option<&str>) -> Result<Vec<String>, Problem> {
        let there = |entry: &Entry| entry.want().is_some();
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
        if let Some((entry, table)) =
            self.networks.get(name).and_then(|entry| Some((entry, self.table_of(entry)?)))
            && table.has_routes()
        {
            for row in table.rib().routes(after, PIECE) {
                last = Some(row.prefix);
                list.push(route(entry, table, name, row));
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
    pub(super) fn routes_holding(&self, name: &str, address: IpAddr) -> Vec<Route> {
        let Some(entry) = self.networks.get(name) else { return Vec::new() };
        let Some(table) = self.table_of(entry).filter(|table| table.has_routes()) else { return Vec::new() };
        let rows = table.rib().routes_holding(address).into_iter();
        let mut list: Vec<Route> = rows.map(|row| route(entry, table, name, row)).collect();
        list.sort_by_key(|route| route.slice);
        list
    }

    /// The inputs to list a network's neighbours; `None` while it has no namespace.
    pub(super) fn neighbours_of(&self, name: &str) -> Option<NeighbourList> {
        let entry = self.networks.get(name)?;
        let interfaces = self.table_of(entry).map_or(&[][..], |table| table.rib().ports());
        let interfaces = interfaces.iter().map(|port| port.interface.clone());
        Some(NeighbourList {
            network: name.to_owned(),
            control: Arc::clone(entry.control()?),
            ports: interfaces.zip(port_names(entry)).collect(),
        })
    }

    /// A network's table of MAC addresses.
    pub(super) fn macs_of(&self, name: &str) -> Vec<MacAddress> {
        let Some(entry) = self.networks.get(name) else { return Vec::new() };
        let Some(have) = entry.have() else { return Vec::new() };
        if have.program.settings.learning().is_none() {
            return Vec::new();
        }
        let rows = self.live.macs(have.program.vid).unwrap_or_default();
        let address = |row: MacRow| {
            Some(MacAddress {
                network: name.to_owned(),
                mac: row.mac.to_string(),
                port: have.program.ports.get(usize::from(row.vport))?.name.clone(),
                fixed: row.fixed,
                age_seconds: (!row.fixed).then_some(row.age_ns / 1_000_000_000),
            })
        };
        rows.into_iter().filter_map(address).collect()
    }

    /// A network's entries that compare bits of frames, or its flat labels with the pointers that it has cached.
    pub(super) fn entries_of(&self, name: &str) -> Vec<TableEntry> {
        let have = self.networks.get(name).and_then(Entry::have);
        let Some(program) = have.map(|have| &have.program) else { return Vec::new() };
        if program.settings.caching().is_none() {
            return entries(name, program);
        }
        let pointers = self.live.pointers(program.vid).unwrap_or_default();
        labels(name, program, &pointers)
    }

    /// Software's tables, and a receiver for those of the card.
    pub(in crate::node) fn tables(&self) -> (Tables, Option<oneshot::Receiver<CardTables>>) {
        let capacity = self.live.capacity();
        let mut networks = Vec::with_capacity(self.networks.len());
        for (name, entry) in self.networks.iter() {
            let Some(have) = entry.have() else { continue };
            let Ok(account) = self.live.account(have.program.vid) else { continue };
            let Some(table) = self.routes.table(have.program.vid) else { continue };
            let learning = have.program.settings.learning();
            let macs_learnt = learning.and_then(|_| self.live.macs_learnt(have.program.vid).ok());
            networks.push(TableShare {
                network: name.clone(),
                routes: account.routes as u64,
                next_hops: table.rib().counts().rows as u64,
                bytes_own: account.bytes_own,
                bytes_shared: Some(account.bytes_shared),
                bytes_marginal: Some(account.bytes_marginal),
                bytes_quota: account.bytes_quota,
                routes_refused: table.refused().len() as u64,
                refusals: table.refused().count(),
                macs_learnt: macs_learnt.map(|count| count as u64),
                macs_max: learning.map(|learning| learning.entries_max as u64),
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
        let (image, names) = (card.description().name.clone(), self.networks.vids().clone());
        // Where the card's tables follow software's, software knows their sizes.
        let account = |vid: &Vid| Some((*vid, self.live.follower_account(*vid).ok()?));
        let accounts: HashMap<_, _> = names.keys().filter_map(account).collect();
        // The caller may have disconnected.
        card.live.ask(CardQuestion::Memory(accounts), move |answer| {
            if let CardReply::Memory(memory) = answer {
                drop(reply.send(card_tables(image, &memory, &names)));
            }
        });
        Some(answer)
    }

    /// Namespace and control groups for commands in a network.
    pub(super) fn exec_info_of(&self, name: &str) -> Result<(ExecInfo, Arc<ControlNamespace>), Problem> {
        self.names_of(Some(name))?;
        let control = self.networks.get(name).and_then(Entry::control);
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
