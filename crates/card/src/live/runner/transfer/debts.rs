//! Moves a network's debts together with the network: its rate limit continues on the other side, and a move does not
//! allow a second burst.
//!
//! Flow: a step before the row changes → **debts** → the meter of the other side. In a move to software, the card's
//! debts take the same ring as frames, so they arrive before the first frame that software decides. In a move to the
//! card, the worker is asked for the debts, and its answer is written before the row changes. Both sides use the same
//! clock, so times need no conversion. Networks without a rate limit skip all of this.

use hue_substrate::handover::{AllDebts, Record};
use hue_substrate::planted::{Bug, planted};
use hue_substrate::{Program, SubstrateError};
use hue_tables::Vid;

use super::super::Runner;
use super::fence::{AGAIN_NS, fence_name};
use crate::error::{CardError, broken};
use crate::live::transfer::{Phase, Side, Transfer};

impl Runner {
    /// Brings the debts to the side that will decide. Returns whether they have arrived; if not, it has to be called
    /// again.
    pub(super) fn bring_debts(&mut self, transfer: &mut Transfer, now_ns: u64) -> Result<bool, CardError> {
        let vid = transfer.order.seat.vid;
        if transfer.at == Side::Card {
            return self.give_debts_to_software(vid);
        }
        if planted(Bug::DebtsStay) || !self.card().tells_debts(vid) || transfer.asked.debts.is_some() {
            return Ok(true);
        }
        self.ask(transfer, now_ns, Record::of_debts);
        Ok(false)
    }

    /// Brings what a network has learnt to the card's memory, where it waits for the network. Returns whether this is done; if
    /// not, it has to be called again.
    pub(super) fn bring_addresses(&mut self, transfer: &mut Transfer, now_ns: u64) -> bool {
        let vid = transfer.order.seat.vid;
        if planted(Bug::AddressesStay) || !self.card().learns(vid) {
            return true;
        }
        if transfer.asked.debts.is_none() {
            self.ask(transfer, now_ns, Record::of_learnt);
            return false;
        }
        !self.card().has_unwritten_stations()
    }

    /// Asks the worker, and again if there is no answer.
    fn ask(&mut self, transfer: &mut Transfer, now_ns: u64, question: impl Fn(Vid, u16, u64) -> Record) {
        let vid = transfer.order.seat.vid;
        let (name, asked_ns) = transfer.asked.question.unzip();
        if asked_ns.is_none_or(|asked_ns| now_ns.saturating_sub(asked_ns) >= AGAIN_NS) {
            let name = name.unwrap_or_else(fence_name);
            if self.give(&question(vid, self.generation(vid), name)) {
                transfer.asked.question = Some((name, now_ns));
            }
        }
    }

    /// As [`Self::bring_debts`], but a move that is late continues without the debts.
    pub(super) fn debts_are_there(
        &mut self,
        transfer: &mut Transfer,
        now_ns: u64,
    ) -> Result<bool, CardError> {
        Ok(transfer.is_late(now_ns) || self.bring_debts(transfer, now_ns)?)
    }

    /// Sends the card's debts of a network to its worker; returns `false` if there is no room in the ring.
    pub(in crate::live::runner) fn give_debts_to_software(&mut self, vid: Vid) -> Result<bool, CardError> {
        if planted(Bug::DebtsStay) {
            return Ok(true);
        }
        if !self.card().tells_debts(vid) {
            return Ok(true);
        }
        let debts = self.card().debts(vid)?;
        let record = Record::of_debts(vid, self.generation(vid), 0);
        Ok(self.give_debts(&record, &debts))
    }

    /// Writes the worker's debts to the card, if the worker has answered.
    pub(super) fn write_debts(&mut self, transfer: &mut Transfer) -> Result<(), CardError> {
        match transfer.asked.debts.take() {
            Some(debts) => self.card().set_debts(transfer.order.seat.vid, debts),
            None => Ok(()),
        }
    }

    /// Moves a network to software immediately, because the card cannot continue with it.
    ///
    /// # Errors
    /// As [`crate::Card::steer`].
    pub(in crate::live) fn fall(&mut self, vid: Vid) -> Result<(), SubstrateError> {
        self.count_load(vid); // a move to the card that is under way must not complete
        self.turn_back(|moving| moving == vid);
        self.give_debts_to_software(vid).map_err(broken)?;
        self.card().steer(vid, true)?;
        self.give_debts_to_software(vid).map_err(broken)?;
        Ok(())
    }

    /// As [`crate::Card::load_in_software`]; the debts of networks that run on the card move with them.
    ///
    /// # Errors
    /// The same.
    pub(in crate::live) fn load_in_software(&mut self, programs: &[Program]) -> Result<(), SubstrateError> {
        for program in programs {
            self.count_load(program.vid);
            if self.card().is_in_software(program.vid) == Some(false) {
                self.give_debts_to_software(program.vid).map_err(broken)?;
            }
        }
        self.card().load_in_software(programs)
    }

    /// Takes a worker's answer with the debts. Before a network that learns moves to the card, its addresses have come before.
    pub(in crate::live) fn debts_answered(&mut self, record: &Record, debts: Option<AllDebts>) {
        let Some(transfer) = self.transfer.as_mut().filter(|transfer| transfer.asked.is_answer(record))
        else {
            return;
        };
        transfer.asked.debts = debts;
        if transfer.phase == Phase::Before && transfer.goal == Side::Card {
            let (vid, known) = (transfer.order.seat.vid, std::mem::take(&mut transfer.asked.known));
            self.card.adopt(vid, &known, self.now_ns);
        }
    }
}
