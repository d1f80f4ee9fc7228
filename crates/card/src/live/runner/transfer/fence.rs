//! Fences: marks that follow frames. When a fence returns, all frames before it have passed.
//!
//! Flow: a step of a move, or its end → **fence** → the card's stages and the network's CPU queue → its worker →
//! back. A fence is lost if there is no room for it, so it is sent again until one returns. Its name is random, so
//! that no other sender can forge it.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};

use hue_substrate::handover::Record;
use hue_substrate::planted::{Bug, planted};
use hue_tables::Vid;

use super::super::Runner;
use crate::cpu::{self, HEADER_BYTES};
use crate::error::CardError;
use crate::live::drain::Drain;
use crate::live::transfer::{Emptying, Transfer};
use crate::live::witness::Witness;

/// Bytes of a fence's frame in the card.
const FENCE_BYTES: usize = 60;
const FENCE_MARK: &[u8; 16] = b"hueplane fence\0\0";
/// Time after which a fence that has not returned is sent again. It may have been lost for lack of room.
pub(in crate::live) const AGAIN_NS: u64 = 50_000_000;
/// Cycles in which the narrowest bus empties all input queues of 16 KiB and the frame that is entering, together with
/// as many bytes of frames that take precedence.
const ENTER_CYCLES: u64 = 65_536;
/// Cycles in which a frame that was taken from its queue has left the card, behind the longest frames of all ports.
const LEAVE_CYCLES: u64 = 16_384;

impl Runner {
    /// Sends a step's fence through the card to the network's CPU queue.
    pub(super) fn send_fence(&mut self, transfer: &mut Transfer, now_ns: u64) {
        transfer.fence = fence_name();
        let none = planted(Bug::NoFence);
        (transfer.through_card, transfer.in_software, transfer.through_software) = (none, none, none);
        self.push_fence(transfer, now_ns);
    }

    fn push_fence(&mut self, transfer: &mut Transfer, now_ns: u64) {
        transfer.fence_ns = now_ns;
        let queue = self.cpu_queue(transfer.net);
        match transfer.aside.filter(|_| transfer.older.is_some()) {
            // The network may have been removed and its index reused. The new network's counters do not expect a
            // fence.
            Some(aside) => self.push_fence_to(queue, aside, transfer.fence, now_ns),
            None => self.push_fence_of(transfer.order.seat.vid, transfer.net, transfer.fence, now_ns),
        }
    }

    /// Sends a fence through the card to the network's CPU queue, behind the frames that the network has sent from
    /// software.
    pub(in crate::live) fn push_fence_of(&mut self, vid: Vid, net: u8, name: u64, now_ns: u64) {
        let queue = self.cpu_queue(net);
        self.count_fence(vid, FENCE_BYTES as u64);
        self.push_fence_to(queue, net, name, now_ns);
    }

    /// The same through any queue. The card counts the fence as sent by the network with index `net`.
    fn push_fence_to(&mut self, queue: u8, net: u8, name: u64, now_ns: u64) {
        let mut bytes = [0; HEADER_BYTES + FENCE_BYTES];
        let (header, frame) = bytes.split_at_mut(HEADER_BYTES);
        header.copy_from_slice(&cpu::from_plane(net, queue));
        frame.copy_from_slice(&fence_frame(name));
        self.card().twin().push(queue, now_ns, 0, 0, &bytes);
    }

    pub(super) fn send_again(&mut self, transfer: &mut Transfer, now_ns: u64) {
        if now_ns.saturating_sub(transfer.fence_ns) < AGAIN_NS {
            return;
        }
        if !transfer.through_card {
            self.push_fence(transfer, now_ns);
        } else if transfer.in_software && !transfer.through_software {
            transfer.fence_ns = now_ns;
            self.give_fence(transfer);
        }
    }

    /// Hands the fence to the network's worker, behind all frames of the network; returns `false` while there is no
    /// room.
    pub(in crate::live::runner) fn give_fence(&mut self, transfer: &Transfer) -> bool {
        let vid = transfer.order.seat.vid;
        self.give(&Record::of_fence(vid, self.generation(vid), transfer.fence))
    }

    /// Returns whether a frame that has left a CPU queue is a fence: of this move, of one of these drains, or a late
    /// fence that was sent again. Ports from `ports` on are CPU queues. Frames from wires are never fences, whatever
    /// they contain.
    pub(in crate::live) fn is_fence(
        transfer: &mut Option<Box<Transfer>>,
        drains: &mut [Drain],
        bytes: &[u8],
        ports: usize,
    ) -> bool {
        let Some((header, frame)) = bytes.split_first_chunk::<HEADER_BYTES>() else { return false };
        if usize::from(cpu::port_in(header)) < ports || !frame.starts_with(FENCE_MARK) {
            return false;
        }
        if let Some(transfer) = transfer.as_mut().filter(|transfer| frame == fence_frame(transfer.fence)) {
            transfer.through_card = true;
        }
        if let Some(drain) = drains.iter_mut().find(|drain| frame == fence_frame(drain.name)) {
            drain.through = true;
        }
        true
    }

    /// Takes a fence that has returned from a worker.
    pub(in crate::live) fn fence_back(&mut self, name: u64) {
        let Some(transfer) = self.transfer.as_mut().filter(|transfer| transfer.fence == name) else { return };
        if transfer.in_software {
            transfer.through_software = true;
            // Frames behind the fence come after those that bypassed the card meanwhile.
            let vid = transfer.order.seat.vid;
            self.set_aside(vid, None);
        }
    }

    /// Waits until a fence has taken every path behind the last followed frame: through the card, through software,
    /// and through the card again with frames from software. Frames that have not left by then are lost. Returns
    /// whether all of this is done.
    pub(super) fn run_empty(&mut self, transfer: &mut Transfer, now_ns: u64) -> Result<bool, CardError> {
        match transfer.emptying {
            Emptying::Not => {
                transfer.before = self.taken().into_iter().map(|(pushed, _)| pushed).collect();
                transfer.emptying = Emptying::Before;
            }
            Emptying::Before => {
                let taken = self.taken();
                // A port that was closed and opened again counts from zero, and its earlier frames were lost.
                let entered =
                    |((pushed, taken), before): (&(u64, u64), &u64)| taken >= before || pushed < before;
                if taken.iter().zip(&transfer.before).all(entered) {
                    transfer.emptying = Emptying::In(self.card().twin().cycles());
                }
            }
            Emptying::In(since) => {
                let twin = self.card().twin();
                // Copies of group frames wait behind frames that came later. Until all copies are made, a fence would
                // pass them.
                let copying = transfer.witness.as_ref().is_some_and(Witness::is_copying);
                if twin.idle() || (twin.cycles() >= since + ENTER_CYCLES && !copying) {
                    self.send_fence(transfer, now_ns);
                    transfer.emptying = Emptying::Card;
                }
            }
            Emptying::Card => {
                self.send_again(transfer, now_ns);
                if transfer.through_card {
                    transfer.emptying = Emptying::Software;
                }
            }
            Emptying::Software => {
                if !transfer.in_software {
                    transfer.in_software = self.give_fence(transfer);
                    transfer.fence_ns = now_ns;
                }
                self.send_again(transfer, now_ns);
                if transfer.through_software {
                    self.send_fence(transfer, now_ns);
                    transfer.emptying = Emptying::Back;
                }
            }
            Emptying::Back => {
                self.send_again(transfer, now_ns);
                if transfer.through_card && !self.card().waits_out(transfer.net)? {
                    transfer.emptying = Emptying::Out(self.card().twin().cycles());
                }
            }
            Emptying::Out(since) => {
                let twin = self.card().twin();
                if twin.idle() || twin.cycles() >= since + LEAVE_CYCLES {
                    transfer.emptying = Emptying::Left;
                }
            }
            Emptying::Left => {
                let untold = self.untold();
                if let Some(witness) = &mut transfer.witness {
                    witness.vanished(untold);
                }
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Returns a name for a fence that other senders cannot guess.
pub(in crate::live) fn fence_name() -> u64 {
    RandomState::new().build_hasher().finish()
}

fn fence_frame(name: u64) -> [u8; FENCE_BYTES] {
    let mut bytes = [0; FENCE_BYTES];
    bytes[..16].copy_from_slice(FENCE_MARK);
    bytes[16..24].copy_from_slice(&name.to_be_bytes());
    bytes
}
