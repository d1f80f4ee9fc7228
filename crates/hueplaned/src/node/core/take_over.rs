//! The core, for taking a running daemon's place.

use std::collections::BTreeMap;
use std::time::Instant;

use hue_ports::Region;
use hue_soft::MacRow;

use super::Node;
use crate::api::MacAddress;
use crate::node::networks::{Entry, Input};
use crate::node::take_over::{
    Ending, Predecessor, PreparedPorts, TakeOver, prepare_port, take_labels, take_learnt,
};

impl Node {
    /// Whether a predecessor still has the ports, by design.
    pub(super) fn is_preparing(&self) -> bool {
        matches!(self.take_over, Some(TakeOver::Preparing(..)))
    }

    /// The predecessor, once it was asked to close its ports.
    pub(super) fn ending_predecessor(&self) -> Option<Ending> {
        match &self.take_over {
            Some(TakeOver::Opening(ending, _)) => Some(ending.clone()),
            _ => None,
        }
    }

    /// Continues when the predecessor has forwarded for too long because a network cannot be set up.
    pub(super) fn tend_take_over(&mut self, now: Instant) {
        if matches!(&self.take_over, Some(TakeOver::Preparing(_, until, _)) if now >= *until)
            && let Some(TakeOver::Preparing(predecessor, _, prepared)) = self.take_over.take()
        {
            self.open_ports(predecessor, prepared);
        }
    }

    /// Everything that is possible without the ports is done. Returns whether nothing is left to take over.
    pub(super) fn goes_on(&mut self) -> bool {
        match self.take_over.take() {
            None => true,
            Some(TakeOver::Preparing(predecessor, _, prepared)) => {
                self.open_ports(predecessor, prepared);
                false
            }
            Some(TakeOver::Opening(ending, since)) => {
                let took = u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX);
                let _ = self.shared.took_over_ms.set(took);
                self.read_taps();
                self.run_programs();
                match take_learnt(&ending.predecessor.learnt) {
                    Ok(learnt) => self.adopt_learnt(learnt),
                    Err(error) => tracing::warn!(%error, "what networks had learnt cannot be read"),
                }
                match take_labels(&ending.predecessor.learnt) {
                    Ok(labels) => self.adopt_labels(labels),
                    Err(error) => tracing::warn!(%error, "labels of networks cannot be read"),
                }
                true
            }
        }
    }

    /// Prepares a port that the predecessor still has, once: ports are tended often, and this takes milliseconds. What
    /// cannot be prepared is done, and reported, when it is opened.
    pub(super) fn prepare_port(&mut self, interface: String, ring: u32, region: &Region) {
        let Some(TakeOver::Preparing(_, _, ready)) = &mut self.take_over else { return };
        ready.entry(interface).or_insert_with_key(|interface| {
            let prepared = prepare_port(interface, ring, region);
            prepared.inspect_err(|why| tracing::debug!(interface, why, "the port is not prepared")).ok()
        });
    }

    fn open_ports(&mut self, predecessor: Predecessor, prepared: PreparedPorts) {
        let ending = Ending::of(predecessor, prepared);
        // One that has ended has no ports.
        if let Err(error) = ending.predecessor.process.terminate() {
            tracing::debug!(%error, "the daemon before has ended");
        }
        self.take_over = Some(TakeOver::Opening(ending, Instant::now()));
        let names: Vec<String> = self.ports.iter().map(|(name, _)| name.clone()).collect();
        names.iter().for_each(|name| self.tend_port(name));
        self.started();
    }

    /// What all networks have learnt, for the next daemon.
    pub(in crate::node) fn learnt(&self) -> impl Iterator<Item = MacAddress> + '_ {
        self.networks.iter().flat_map(|(name, _)| self.macs_of(name))
    }

    /// Gives networks what they had learnt in the daemon before. The short interruption is not counted in its age.
    fn adopt_learnt(&self, learnt: Vec<MacAddress>) {
        let mut rows: BTreeMap<String, Vec<MacAddress>> = BTreeMap::new();
        learnt.into_iter().for_each(|one| rows.entry(one.network.clone()).or_default().push(one));
        for (name, macs) in rows {
            let Some(program) = self.networks.get(&name).and_then(Entry::program) else { continue };
            let row = |one: MacAddress| {
                let ports = program.ports.iter().zip(0u16..);
                let (_, vport) = ports.into_iter().find(|(port, _)| port.name == one.port)?;
                let age_ns = one.age_seconds.unwrap_or(0).saturating_mul(1_000_000_000);
                Some(MacRow { mac: one.mac.parse().ok()?, vport, fixed: one.fixed, age_ns })
            };
            if let Err(error) = self.live.adopt_macs(program.vid, macs.into_iter().filter_map(row).collect())
            {
                tracing::warn!(network = name, %error, "what the network had learnt is lost");
            }
        }
    }

    /// Gives the workers the TAPs that were opened meanwhile.
    fn read_taps(&mut self) {
        let mut failed = Vec::new();
        for (name, taps) in self.taps.take_unread() {
            let Some(vid) = self.networks.get(&name).and_then(Entry::vid) else { continue };
            for (vport, tap) in taps {
                if let Err(error) = self.live.add_tap(vid, vport, Box::new(tap)) {
                    failed.push((name.clone(), error.to_string()));
                }
            }
        }
        for (name, why) in failed {
            self.give_networks(Input::Degrade(name, why));
        }
    }
}
