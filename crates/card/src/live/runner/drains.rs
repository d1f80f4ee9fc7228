//! Advances drains.

use hue_tables::Vid;

use super::Runner;
use super::transfer::{AGAIN_NS, fence_name};
use crate::live::drain::{Done, Drain};

/// Time limit of a drain. It does not wait for frames that are queued for a wire that accepts none.
const LIMIT_NS: u64 = 1_000_000_000;

impl Runner {
    /// Calls `done` when every frame that a network in software has already sent through the card has left it.
    pub fn drained(&mut self, vid: Vid, done: Done) {
        let (began_ns, name) = (self.now(), fence_name());
        let drain = Drain { vid, began_ns, fence_ns: None, name, through: false, done: Some(done) };
        self.drains.push(drain);
    }

    /// Advances the running drains; returns whether there were any.
    pub(super) fn tend_drains(&mut self) -> Result<bool, String> {
        if self.drains.is_empty() {
            return Ok(false);
        }
        let now_ns = self.now();
        let rings_empty = self.rings_are_empty();
        let mut drains = std::mem::take(&mut self.drains);
        for drain in &mut drains {
            let spent = now_ns.saturating_sub(drain.began_ns);
            let net = self.card().net(drain.vid).filter(|_| spent < LIMIT_NS);
            let Some(net) = net else {
                drain.end(false);
                continue;
            };
            match drain.fence_ns {
                None if !rings_empty => {}
                Some(sent) if drain.through || now_ns.saturating_sub(sent) < AGAIN_NS => {}
                _ => {
                    self.push_fence_of(drain.vid, net, drain.name, now_ns);
                    drain.fence_ns = Some(now_ns);
                }
            }
            if drain.through && !self.card().waits_out(net).map_err(|error| error.to_string())? {
                drain.end(true);
            }
        }
        drains.retain(|drain| drain.done.is_some());
        self.drains.append(&mut drains);
        Ok(true)
    }
}
