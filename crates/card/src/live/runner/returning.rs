//! A network that is changed while it moves to the card returns first, so that its frames keep their order.
//!
//! Flow: a job of control that takes a network off the card → **wait** until the fence of the switch has passed the card →
//! **return** by the steps of a move that fails → the job, while the move goes on. Until its last step, frames that the card
//! has decided are held, and older ones are on their way through software. Frames that software gets from now on have to
//! leave behind both. So the fence must be between them and the older ones. A worker whose ring has no room for the fence
//! gets no frame of the network before it has: frames that find no room are lost and counted, as always.
//!
//! The wait needs no worker, only the card, and takes some hundred clocks, or [`WAIT_NS`] if the fence is lost.

use hue_substrate::handover::{Peer, Record};
use hue_tables::Vid;

use super::transfer::AGAIN_NS;
use super::{Homes, Runner};
use crate::live::command::{CardCommand, Job};
use crate::live::transfer::{Phase, Side, Transfer};

/// Longest time that a job waits: the second fence is sent after half of it. After that, frames that left out of order count as
/// reordered.
const WAIT_NS: u64 = 2 * AGAIN_NS;

impl Runner {
    /// Whether a job, which came at `since_ns`, has to wait.
    pub(super) fn must_wait(&self, job: &Job, since_ns: u64, now_ns: u64) -> bool {
        let (Some(transfer), Job::Command(command, _)) = (&self.transfer, job) else { return false };
        // The bypass would wait for frames that this move holds.
        if matches!(**command, CardCommand::Bypass(_)) {
            return transfer.aside.is_some();
        }
        transfer.has_just_switched()
            && may_take_off(command, transfer.order.seat.vid)
            && now_ns.saturating_sub(since_ns) < WAIT_NS
    }

    /// Makes software decide the network that is moving to the card, if it is one of these, and the move end there.
    pub(super) fn turn_back(&mut self, is_one: impl Fn(Vid) -> bool) {
        let moves = |transfer: &Transfer| {
            transfer.aside.is_some() && transfer.goal == Side::Card && is_one(transfer.order.seat.vid)
        };
        if !self.transfer.as_deref().is_some_and(moves) {
            return;
        }
        let Some(mut transfer) = self.transfer.take() else { return };
        transfer.fault("the network was changed meanwhile");
        transfer.goal = Side::Software;
        if let Err(why) = self.leave_early(&mut transfer) {
            self.give_up(why);
        }
        self.transfer = Some(transfer);
    }

    fn leave_early(&mut self, transfer: &mut Transfer) -> Result<(), String> {
        let vid = transfer.order.seat.vid;
        if transfer.at == Side::Software || self.card().is_in_software(vid).is_none() {
            return Ok(());
        }
        self.give_debts_to_software(vid).map_err(|error| error.to_string())?;
        if transfer.phase == Phase::Drain && transfer.through_card && !transfer.in_software {
            transfer.in_software = self.give_fence(transfer);
            transfer.fence_ns = self.now_ns;
        }
        self.steer(transfer)
    }

    /// Whether a frame of this network may go to its worker: not before a fence for which there was no room.
    pub(super) fn is_behind_fence(
        transfer: &mut Option<Box<Transfer>>,
        (homes, peers): (&mut Homes, &mut [Peer]),
        vid: Vid,
    ) -> bool {
        let owes = |transfer: &&mut Box<Transfer>| transfer.order.seat.vid == vid && transfer.owes_fence();
        let Some(transfer) = transfer.as_mut().filter(owes) else { return true };
        transfer.in_software =
            homes.give(peers, &Record::of_fence(vid, homes.generation(vid), transfer.fence), &[]);
        transfer.in_software
    }
}

/// Whether a command may make software decide this network.
fn may_take_off(command: &CardCommand, vid: Vid) -> bool {
    match command {
        CardCommand::Load { programs, .. } => programs.iter().any(|program| program.vid == vid),
        CardCommand::Strip(program) => program.vid == vid,
        CardCommand::Table { seat, .. } => seat.vid == vid,
        CardCommand::Follow { seats, .. } => seats.contains_key(&vid),
        _ => false,
    }
}
