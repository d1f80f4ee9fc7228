//! The core, for taking a running daemon's place.

use std::sync::Arc;
use std::time::Instant;

use hue_host::process::Process;

use super::Node;
use crate::node::take_over::TakeOver;

impl Node {
    /// Whether a predecessor still has the ports, by design.
    pub(super) fn is_preparing(&self) -> bool {
        matches!(self.take_over, Some(TakeOver::Preparing(..)))
    }

    /// The predecessor, once it was asked to close its ports.
    pub(super) fn ending_predecessor(&self) -> Option<Arc<Process>> {
        match &self.take_over {
            Some(TakeOver::Opening(process, _)) => Some(Arc::clone(process)),
            _ => None,
        }
    }

    /// Continues when the predecessor has forwarded for too long because a network cannot be set up.
    pub(super) fn tend_take_over(&mut self, now: Instant) {
        if let Some(TakeOver::Preparing(process, until)) = &self.take_over
            && now >= *until
        {
            let process = Arc::clone(process);
            self.open_ports(process);
        }
    }

    /// Everything that is possible without the ports is done. Returns whether nothing is left to take over.
    pub(super) fn goes_on(&mut self) -> bool {
        match self.take_over.take() {
            None => true,
            Some(TakeOver::Preparing(process, _)) => {
                self.open_ports(process);
                false
            }
            Some(TakeOver::Opening(_, since)) => {
                let took = u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX);
                let _ = self.shared.took_over_ms.set(took);
                self.read_taps();
                true
            }
        }
    }

    fn open_ports(&mut self, process: Arc<Process>) {
        // One that has ended has no ports.
        if let Err(error) = process.terminate() {
            tracing::debug!(%error, "the daemon before has ended");
        }
        self.take_over = Some(TakeOver::Opening(process, Instant::now()));
        let names: Vec<String> = self.ports.iter().map(|(name, _)| name.clone()).collect();
        names.iter().for_each(|name| self.tend_port(name));
        self.started();
    }

    /// Gives the workers the TAPs that were opened meanwhile.
    fn read_taps(&mut self) {
        let mut failed = Vec::new();
        for (name, entry) in &mut self.networks {
            let Some(vid) = entry.have.as_ref().map(|have| have.program.vid) else { continue };
            for (vport, tap) in std::mem::take(&mut entry.unread) {
                if let Err(error) = self.live.add_tap(vid, vport, Box::new(tap)) {
                    failed.push((name.clone(), error.to_string()));
                }
            }
        }
        failed.into_iter().for_each(|(name, why)| self.degrade(&name, why));
    }
}
