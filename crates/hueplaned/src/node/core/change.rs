//! The core, for changes: brings networks, card and ports to a desired state.

use std::collections::BTreeSet;
use std::sync::Arc;

use tokio::sync::oneshot;

use super::Node;
use crate::api::{NetworkResult, NetworkState};
use crate::node::change::Prepared;
use crate::node::networks;
use crate::node::ports::Input;

impl Node {
    /// Begins to apply a desired state. The receiver gets the results of the affected networks, once they are as
    /// desired or known not to be.
    pub(super) fn reconcile(&mut self, prepared: Prepared) -> oneshot::Receiver<Vec<NetworkResult>> {
        let Prepared { desired, compiled, networks, .. } = prepared;
        let mut touched = BTreeSet::new();
        self.labels.retain(|name| networks.binary_search_by(|(one, _)| one.as_str().cmp(name)).is_ok());
        let gone = self.networks.iter().filter(|(name, entry)| {
            entry.want().is_some() && networks.binary_search_by(|(one, _)| one.cmp(name)).is_err()
        });
        let gone: Vec<String> = gone.map(|(name, _)| name.clone()).collect();
        for name in gone {
            self.give_networks(networks::Input::Want(name.clone(), None));
            touched.insert(name);
        }
        for (name, want) in networks {
            let want = self.labels.over(&want);
            let same = self
                .networks
                .get(&name)
                .is_some_and(|entry| entry.want() == Some(&want) && entry.state() == NetworkState::Running);
            if !same {
                self.give_networks(networks::Input::Want(name.clone(), Some(want)));
                touched.insert(name);
            }
        }
        let was_drained = self.is_drained();
        self.desired = desired;
        self.compiled = compiled;
        for name in &touched {
            self.give_networks(networks::Input::Release(name.clone()));
        }
        self.reconcile_card();
        if self.is_drained() == was_drained {
            self.ask_scheduler();
        } else {
            self.follow_drained();
        }
        let opening = self.reconcile_ports();
        let answer = self.waiters.add(touched.clone(), opening);
        for name in touched {
            self.give_networks(networks::Input::Advance(name));
        }
        self.changed = true;
        self.settle();
        answer
    }

    /// Returns the interfaces of new ports that are being opened.
    fn reconcile_ports(&mut self) -> BTreeSet<String> {
        let mut new = BTreeSet::new();
        let desired = Arc::clone(&self.desired);
        let ports = &desired.intent.node.spec.ports;
        let gone = self.ports.iter().filter(|(name, port)| {
            !ports.iter().any(|want| want.name.as_str() == name.as_str() && port.same_interface(want))
        });
        let gone: Vec<String> = gone.map(|(name, _)| name.clone()).collect();
        for name in gone {
            let why = "the node's document no longer has it, or gives it another interface or driver";
            self.give_ports(Input::Remove(name, why));
        }
        self.give_ports(Input::FitMemory);
        for want in ports {
            let name = want.name.as_str();
            let Some(id) = desired.ids.ports.get(name) else { continue };
            if self.ports.get(name).is_none() {
                new.insert(want.interface().to_owned());
            }
            self.give_ports(Input::Want(name.to_owned(), *id, want.clone()));
        }
        new.retain(|interface| self.ports.opening().contains(interface));
        new
    }

    /// Applies stored desired state. Networks that an earlier daemon left are adopted or removed.
    pub(in crate::node) fn bring_up(&mut self, prepared: Prepared, left: Vec<String>) {
        self.give_networks(networks::Input::Left(left));
        self.list_links();
        // No caller waits for the results.
        drop(self.reconcile(prepared));
        if self.card.is_none() {
            self.drive.end_left_card(self.take_over.is_none());
        }
        for name in self.networks.unwanted() {
            self.give_networks(networks::Input::Want(name.clone(), None));
            self.give_networks(networks::Input::Advance(name));
        }
        self.started();
    }
}
