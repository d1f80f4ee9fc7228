//! The core, for labels that routing daemons of networks of kind `rofl` have learnt.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use super::Node;
use crate::api::EventKind;
use crate::labels::{HOLD, LabelRow};
use crate::node::events::About;
use crate::node::learnt::{Meaning, Report};
use crate::node::message::Message;
use crate::node::networks;

impl Node {
    /// Has the socket for labels in a network's namespace, once this daemon reads the network's virtual ports.
    pub(super) fn open_door(&mut self, name: &str) {
        let entry = self.networks.get(name).filter(|_| self.take_over.is_none());
        let Some((have, control)) = entry.and_then(|entry| entry.have().zip(entry.control())) else { return };
        let sender = self.sender.clone();
        // After the node's end nobody needs reports.
        let kept = self.labels.keep(have, control, move |report| drop(sender.send(Message::Labels(report))));
        if let Err(error) = kept {
            let text = format!("the socket for the network's labels cannot be opened: {error}");
            self.shared.events.add(EventKind::Trouble, About::Network(name), text);
        }
    }

    /// Something happened at the socket for labels of a network.
    pub(super) fn labels_reported(&mut self, report: Report) {
        let vid = report.vid;
        let Some(name) = self.networks.name_of(vid).cloned() else { return };
        let Some(want) = self.networks.get(&name).and_then(|entry| entry.want().cloned()) else { return };
        if self.labels.take(Instant::now(), report, &want) == Meaning::Apply {
            self.apply_labels(&name);
            let entries = self.networks.get(&name).and_then(|entry| entry.program());
            self.labels.applied(vid, entries.map_or(0, |program| program.entries.labels().len()));
        }
    }

    /// Gives networks the labels that they had in the daemon before, until their routing daemons have come back.
    pub(super) fn adopt_labels(&mut self, all: BTreeMap<String, Vec<LabelRow>>) {
        for (name, rows) in all {
            self.labels.adopt(Instant::now(), &name, &rows);
            self.apply_labels(&name);
        }
    }

    /// Labels of routing daemons that are gone.
    pub(super) fn tend_labels(&mut self, now: Instant) {
        for (name, count) in self.labels.expire(now) {
            let seconds = HOLD.as_secs();
            let text =
                format!("its routing daemon has been gone for {seconds} s: {count} labels are removed");
            self.shared.events.add(EventKind::Trouble, About::Network(&name), text);
            self.apply_labels(&name);
        }
    }

    /// Gives a network the labels that it has learnt.
    fn apply_labels(&mut self, name: &str) {
        let Some(want) = self.networks.get(name).and_then(|entry| entry.want()) else { return };
        let over = self.labels.over(want);
        if !Arc::ptr_eq(&over, want) {
            self.give_networks(networks::Input::Relabel(name.to_owned(), over));
            self.give_networks(networks::Input::Advance(name.to_owned()));
        }
    }
}
