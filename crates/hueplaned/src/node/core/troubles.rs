//! What is wrong with the node, and what to do about it.
//!
//! Flow: node thread → **[`Trouble`]s** → `view` → status, `hueplane status`. Invariant: a remedy names nothing of other
//! networks, because a tenant sees it.

use hue_host::netlink::Link;

use super::Node;
use crate::api::{CardState, CardStatus, Part, Trouble};
use crate::node::networks::Entry;
use crate::node::ports::PhysicalPort;

/// Beginning of the text of a card's problem.
const CARD: &str = "card: ";

impl Node {
    /// Everything that is wrong: the store first, then card, ports and networks.
    pub(super) fn all_troubles(&self) -> Vec<Trouble> {
        let node = |part, text: &str, remedy: &str| Trouble {
            part,
            name: None,
            text: text.to_owned(),
            remedy: remedy.to_owned(),
        };
        let mut all = Vec::new();
        for text in &self.troubles {
            let remedy = "compare `hueplane get config` with your own documents and apply what is missing; the next \
                          start of the daemon forgets this problem";
            all.push(node(Part::Store, text, remedy));
        }
        if let Some(text) = &self.store_problem {
            let remedy = "free space on the disk of the state directory, and check that root can write to it; the daemon \
                          tries again by itself";
            all.push(node(Part::Store, text, remedy));
        }
        if let Some(text) = self.card_state.problem() {
            let remedy = "correct `card` in the node's document (`hueplane image list` shows the images) and apply it; \
                          until then all networks run in software";
            all.push(node(Part::Card, text.strip_prefix(CARD).unwrap_or(text), remedy));
        }
        for (name, port) in self.ports.iter() {
            let link = self.ports.link_of(port);
            all.extend(port.problem().map(|text| Trouble {
                part: Part::Port,
                name: Some(name.clone()),
                text: text.to_owned(),
                remedy: port_remedy(port, link),
            }));
        }
        for (name, entry) in self.networks.iter() {
            all.extend(self.condition(entry).1.map(|text| Trouble {
                part: Part::Network,
                name: Some(name.clone()),
                text: text.clone(),
                remedy: network_remedy(
                    name,
                    entry,
                    self.refused_of(entry).is_some(),
                    self.has_bad_program(entry),
                ),
            }));
        }
        all
    }

    fn has_bad_program(&self, entry: &Entry) -> bool {
        entry.vid().is_some_and(|vid| self.programs.problem(vid).is_some())
    }

    /// The desired card.
    pub(super) fn card_status(&self) -> Option<CardStatus> {
        let want = self.desired.intent.node.spec.card.as_ref()?;
        let state = match &self.card {
            None => CardState::Down,
            Some(_) if self.loading.is_under_way() => CardState::Loading,
            Some(_) => CardState::Running,
        };
        let named = want.twin.as_ref().map(|twin| twin.image.to_string());
        let runs = self.card.as_ref().map(|card| card.description().name.clone());
        Some(CardStatus {
            state,
            image: runs.or(named),
            pci: want.pci.map(|address| address.to_string()),
            networks: self.networks.iter().filter(|(_, entry)| entry.is_on_card()).count() as u64,
            drained: want.is_drained(),
        })
    }
}

fn port_remedy(port: &PhysicalPort, link: Option<&Link>) -> String {
    let interface = port.want.interface();
    if port.want.peer.is_some() {
        "the daemon tries again by itself".to_owned()
    } else if link.is_some_and(|link| link.loopback) {
        "name one end of a veth pair in the node's document (`ip link add left type veth peer name right`)"
            .to_owned()
    } else if link.is_some() {
        format!(
            "switch it on (`ip link set dev {interface} up`), or correct the port in the node's document; the daemon tries \
             again by itself"
        )
    } else {
        format!(
            "create interface {interface}, or name another one in the node's document; the port comes up by itself"
        )
    }
}

fn network_remedy(name: &str, entry: &Entry, lacks_room: bool, has_bad_program: bool) -> String {
    if lacks_room {
        format!(
            "see `hueplane get tables {name}`; raise the quota in its document, or let its routing daemons supply fewer routes"
        )
    } else if has_bad_program {
        format!(
            "see what it writes: `hueplane events -n {name}`; correct `plane.command` in its document, or what the program needs; the \
             daemon starts it again by itself"
        )
    } else if entry.has_drifted() {
        format!(
            "the daemon repairs it by itself; if it happens again, find what changes it in the namespace: `hueplane events -n \
             {name}`"
        )
    } else {
        format!(
            "see `hueplane events -n {name}`; the daemon tries again by itself, and at once when its document is applied again"
        )
    }
}
