//! Advances drains.

use std::time::Duration;

use super::Runner;
use super::transfer::{AGAIN_NS, fence_name};
use crate::live::drain::Drain;
use crate::live::event::CardEvent;
use crate::live::seats::SeatId;

/// Time limit of a drain. It does not wait for frames that are queued for a wire that accepts none.
const LIMIT_NS: u64 = 1_000_000_000;

impl Runner {
    /// Reports when every frame that a network in software has already sent through the card has left it. The report
    /// includes `received`, and how long that took since `asked_ns`.
    pub(super) fn begin_drain(&mut self, seat: SeatId, asked_ns: u64, received: Option<u64>) {
        let (began_ns, name) = (self.now(), fence_name());
        let (fence_ns, through) = (None, false);
        self.drains.push(Drain { seat, asked_ns, received, began_ns, fence_ns, name, through });
    }

    fn tell_drained(&mut self, drain: &Drain, have_left: bool) {
        let ns = self.now().saturating_sub(drain.asked_ns);
        let took = have_left.then(|| Duration::from_nanos(ns));
        self.tell(CardEvent::Drained { seat: drain.seat, took, received: drain.received });
    }

    /// Advances the running drains; returns whether there were any.
    pub(super) fn tend_drains(&mut self) -> Result<bool, String> {
        if self.drains.is_empty() {
            return Ok(false);
        }
        let now_ns = self.now();
        let rings_empty = self.rings_are_empty();
        for mut drain in std::mem::take(&mut self.drains) {
            let spent = now_ns.saturating_sub(drain.began_ns);
            let net = self.card().net(drain.seat.vid).filter(|_| spent < LIMIT_NS);
            let Some(net) = net else {
                self.tell_drained(&drain, false);
                continue;
            };
            match drain.fence_ns {
                None if !rings_empty => {}
                Some(sent) if drain.through || now_ns.saturating_sub(sent) < AGAIN_NS => {}
                _ => {
                    self.push_fence_of(drain.seat.vid, net, drain.name, now_ns);
                    drain.fence_ns = Some(now_ns);
                }
            }
            if drain.through && !self.card().waits_out(net).map_err(|error| error.to_string())? {
                self.tell_drained(&drain, true);
            } else {
                self.drains.push(drain);
            }
        }
        Ok(true)
    }
}
