//! The steps of a move, between two rounds. See [`crate::live::transfer`] for their order.

mod debts;
mod fence;

use hue_substrate::SubstrateError;
use hue_substrate::planted::{Bug, planted};

pub(super) use self::fence::{AGAIN_NS, fence_name};
use super::Runner;
use crate::error::CardError;
use crate::live::transfer::{Asked, Emptying, Fail, Late, Order, Ordered, Phase, Report, Side, Transfer};
use crate::live::witness::Witness;

/// How long frames that are inside at the end may take to leave. The limit is reached only if a wire accepts no
/// frames or a worker is stuck; otherwise a fence returns long before.
const SETTLE_NS: u64 = 5_000_000_000;
/// How long frames may take to leave after their index was returned.
const CLEAR_UP_NS: u64 = 100_000_000;
const HOLD_ENDED: &str =
    "the card's hold ended too early: packets that left out of order are counted as reordered";

impl Runner {
    /// Queues a move of a network after earlier orders.
    pub(super) fn transfer(&mut self, order: Order, ordered: Ordered) {
        self.orders.push_back((order, ordered));
    }

    fn end_transfer(&mut self, transfer: Box<Transfer>) {
        self.follow(None);
        let (seat, ordered) = (transfer.order.seat, transfer.ordered);
        self.tell_moved(seat, ordered, Ok(transfer.report()));
    }

    /// Takes the next step of a move. Returns whether there is a move.
    pub(super) fn tend_transfer(&mut self) -> Result<bool, String> {
        let mut transfer = match self.transfer.take() {
            Some(transfer) => transfer,
            None => match self.orders.pop_front() {
                None => return Ok(false),
                Some((order, ordered)) => match self.begin(order, ordered) {
                    None => return Ok(true),
                    Some(transfer) => transfer,
                },
            },
        };
        match self.step(&mut transfer) {
            Err(error) => {
                // The card itself no longer works, so all of its networks go to software.
                transfer.failed = Some(error.clone());
                transfer.at = match transfer.order.to {
                    Side::Card => Side::Software,
                    Side::Software => Side::Card,
                };
                self.end_transfer(transfer);
                Err(error)
            }
            Ok(true) => {
                self.end_transfer(transfer);
                Ok(true)
            }
            Ok(false) => {
                self.transfer = Some(transfer);
                Ok(true)
            }
        }
    }

    /// Begins a move; `None` if it ended at once.
    fn begin(&mut self, mut order: Order, ordered: Ordered) -> Option<Box<Transfer>> {
        let place = self.card().net(order.seat.vid).zip(self.card().kind(order.seat.vid));
        let known = place.zip(self.card().is_in_software(order.seat.vid));
        let stays =
            |at, failed| Report { at, failed, phases: Vec::new(), cycles: 0, out_dropped: 0, proof: None };
        let Some(((net, kind), software)) = known else {
            let why = "the card does not know the network".to_owned();
            self.tell_moved(order.seat, ordered, Ok(stays(Side::Software, Some(why))));
            return None;
        };
        let at = if software { Side::Software } else { Side::Card };
        if at == order.to {
            self.tell_moved(order.seat, ordered, Ok(stays(at, None)));
            return None;
        }
        let now_ns = self.now();
        let vid = order.seat.vid;
        let witness = order.watch.take().map(|(demux, time)| (Witness::new(vid, kind, demux, now_ns), time));
        let (witness, time) = witness.unzip();
        if let Some(witness) = &witness {
            self.follow(Some(witness.following()));
        }
        let (rings, drops) = (self.lost_at_rings(vid), self.card().read_out_drops(net).unwrap_or_default());
        Some(Box::new(Transfer {
            phase: Phase::Before,
            goal: order.to,
            at,
            began_ns: now_ns,
            watch_ns: u64::try_from(time.unwrap_or_default().as_nanos()).unwrap_or(u64::MAX),
            failed: None,
            phases: Vec::new(),
            loads: self.loads(vid),
            net,
            aside: None,
            older: None,
            fence: 0,
            fence_ns: 0,
            through_card: false,
            in_software: false,
            through_software: false,
            asked: Asked::default(),
            switched_cycles: 0,
            cycles: 0,
            drops,
            emptying: Emptying::Not,
            rings,
            before: Vec::new(),
            witness,
            followed: 0,
            late: None,
            order,
            ordered,
        }))
    }

    /// Does one step. Returns whether the move has ended. The error says why the card broke.
    fn step(&mut self, transfer: &mut Transfer) -> Result<bool, String> {
        let now_ns = self.now();
        let text = |error: CardError| error.to_string();
        if let Some(older) = transfer.older {
            return self.clear_up(transfer, older, now_ns).map_err(text);
        }
        if !self.is_as_known(transfer) {
            // Control loaded the network again, took it off the card, or removed it.
            transfer.fault("the network was changed meanwhile");
            let Some(aside) = transfer.aside else { return Ok(true) };
            // Held frames have to wait for those of the other index. What software still sends belongs to another
            // network.
            transfer.older = Some(if transfer.phase == Phase::Aside { transfer.net } else { aside });
            transfer.began_ns = now_ns;
            self.set_aside(transfer.order.seat.vid, None);
            self.send_fence(transfer, now_ns);
            return Ok(false);
        }
        match transfer.phase {
            Phase::Before => {
                let waited = now_ns.saturating_sub(transfer.began_ns);
                if waited < transfer.watch_ns {
                    return Ok(false);
                }
                let late = u128::from(waited - transfer.watch_ns) > transfer.order.limit.as_nanos();
                if transfer.goal == Side::Software
                    && !late
                    && !self.bring_debts(transfer, now_ns).map_err(text)?
                {
                    return Ok(false);
                }
                if transfer.goal == Side::Card && !late && !self.bring_addresses(transfer, now_ns) {
                    return Ok(false);
                }
                if let Some(witness) = &mut transfer.witness {
                    witness.turn(now_ns);
                }
                let next = if transfer.goal == Side::Card { Phase::Aside } else { Phase::Switch };
                self.enter(transfer, next, now_ns)?;
            }
            Phase::Aside => {
                self.send_again(transfer, now_ns);
                if transfer.through_card && !self.card().waits_out(transfer.net).map_err(text)? {
                    if !self.debts_are_there(transfer, now_ns).map_err(text)? {
                        return Ok(false);
                    }
                    if !self.card().end_out_hold().map_err(text)? {
                        transfer.fault(HOLD_ENDED);
                    }
                    transfer.expect(now_ns);
                    let next = if transfer.goal == Side::Card { Phase::Switch } else { Phase::Join };
                    self.enter(transfer, next, now_ns)?;
                }
            }
            // This step takes no time.
            Phase::Switch => self.enter(transfer, Phase::Drain, now_ns)?,
            Phase::Drain => return self.drain(transfer, now_ns),
            Phase::Join => {
                self.send_again(transfer, now_ns);
                let aside = transfer.aside.unwrap_or(transfer.net);
                if transfer.through_card && !self.card().waits_out(aside).map_err(text)? {
                    if !planted(Bug::HoldStays) && !self.card().end_out_hold().map_err(text)? {
                        transfer.fault(HOLD_ENDED);
                    }
                    if !planted(Bug::NetStays) {
                        self.card().return_net();
                    }
                    transfer.aside = None;
                    self.enter(transfer, Phase::After, now_ns)?;
                }
            }
            Phase::After => {
                let waited = now_ns.saturating_sub(transfer.began_ns);
                let Some(witness) = &mut transfer.witness else { return Ok(true) };
                if waited < transfer.watch_ns {
                    return Ok(false);
                }
                if witness.close(now_ns) {
                    let rings = self.lost_at_rings(transfer.order.seat.vid);
                    for ((loss, now), (_, before)) in rings.into_iter().zip(transfer.rings) {
                        witness.lost_unseen(loss, now.saturating_sub(before));
                    }
                }
                if let Some(Late { queue, tag, bytes, .. }) = transfer.late.take() {
                    self.card().twin().push(queue, now_ns, tag, 0, &bytes);
                    return Ok(false);
                }
                if witness.is_done() || waited >= transfer.watch_ns.saturating_add(SETTLE_NS) {
                    return Ok(true);
                }
                return self.run_empty(transfer, now_ns).map_err(text);
            }
        }
        Ok(false)
    }

    fn drain(&mut self, transfer: &mut Transfer, now_ns: u64) -> Result<bool, String> {
        self.send_again(transfer, now_ns);
        if transfer.order.fail == Some(Fail::Card) {
            return Err("it failed as requested".to_owned());
        }
        if transfer.goal == Side::Software && transfer.at == Side::Software && transfer.aside.is_none() {
            // Behind the fence, no frame of the network that the card had decided is in the stages.
            if transfer.through_card {
                if transfer.wants_fault(Phase::Drain) {
                    // Go back through all steps, because frames are in software by now.
                    transfer.goal = Side::Card;
                    self.enter(transfer, Phase::Aside, now_ns)?;
                } else {
                    self.enter(transfer, Phase::After, now_ns)?;
                }
            }
            return Ok(false);
        }
        let spent = u128::from(now_ns.saturating_sub(transfer.began_ns));
        if transfer.through_card && !transfer.in_software && spent >= transfer.order.drain.as_nanos() {
            transfer.in_software = self.give_fence(transfer);
            transfer.fence_ns = now_ns;
        }
        if transfer.in_software && transfer.at == Side::Card {
            if transfer.wants_fault(Phase::Drain) {
                transfer.goal = Side::Software;
            }
            if transfer.goal == Side::Software {
                if !self.debts_are_there(transfer, now_ns).map_err(|error| error.to_string())? {
                    return Ok(false);
                }
                // Frames that go to software from now on are behind the fence.
                self.steer(transfer)?;
            }
        }
        if transfer.through_software || transfer.is_late(now_ns) {
            if !transfer.through_software {
                transfer
                    .fault("software did not return the fence in time: packets that left out of order are counted as reordered");
            }
            self.enter(transfer, Phase::Join, now_ns)?;
        }
        Ok(false)
    }

    /// Whether the network on the card is still as the move left it.
    fn is_as_known(&mut self, transfer: &Transfer) -> bool {
        let vid = transfer.order.seat.vid;
        // A network that was loaded again, or taken off the card, has no table there to switch to.
        let comes = transfer.goal == Side::Card && transfer.at == Side::Software;
        !(comes && self.loads(vid) != transfer.loads)
            && self.card().net(vid) == Some(transfer.net)
            && self.card().is_in_software(vid) == Some(transfer.at == Side::Software)
    }

    /// Cleans up after a move whose network was changed meanwhile, once the frames of the older index have left.
    /// Returns whether this is complete. The wait is limited, because another network may already have the index and
    /// keep it busy.
    fn clear_up(&mut self, transfer: &mut Transfer, older: u8, now_ns: u64) -> Result<bool, CardError> {
        if now_ns.saturating_sub(transfer.began_ns) < CLEAR_UP_NS {
            self.send_again(transfer, now_ns);
            if !transfer.through_card || self.card().waits_out(older)? {
                return Ok(false);
            }
        }
        self.card().end_out_hold()?;
        self.card().return_net();
        transfer.aside = None;
        Ok(true)
    }

    /// Begins a step.
    fn enter(&mut self, transfer: &mut Transfer, phase: Phase, now_ns: u64) -> Result<(), String> {
        let text = |error: CardError| error.to_string();
        let took = now_ns.saturating_sub(transfer.began_ns);
        transfer.phases.push((transfer.phase, took));
        (transfer.phase, transfer.began_ns) = (phase, now_ns);
        match phase {
            Phase::Before => {}
            Phase::Aside => {
                if transfer.wants_fault(Phase::Aside) {
                    transfer.goal = transfer.at;
                    return self.enter(transfer, Phase::After, now_ns);
                }
                let aside = match self.card().borrow_net(transfer.order.seat.vid) {
                    Ok(aside) => aside,
                    Err(error) => {
                        transfer.fault(&format!("no index is free for the move: {error}"));
                        transfer.goal = transfer.at;
                        return self.enter(transfer, Phase::After, now_ns);
                    }
                };
                self.card().out_hold(aside).map_err(text)?;
                transfer.aside = Some(aside);
                transfer.asked = Asked::default();
                transfer.switched_cycles = 0; // an earlier switch held nothing
                self.set_aside(transfer.order.seat.vid, Some(aside));
                self.send_fence(transfer, now_ns);
            }
            Phase::Switch => {
                if transfer.wants_fault(Phase::Switch) {
                    transfer.goal = transfer.at;
                }
                if transfer.goal == transfer.at {
                    let next = if transfer.aside.is_some() { Phase::Join } else { Phase::After };
                    return self.enter(transfer, next, now_ns);
                }
                if transfer.goal == Side::Card {
                    self.card().out_hold(transfer.net).map_err(text)?;
                }
                transfer.switched_cycles = self.card().twin().cycles();
                self.steer(transfer)?;
            }
            Phase::Drain => self.send_fence(transfer, now_ns),
            Phase::Join => {
                if transfer.at == Side::Software && transfer.switched_cycles == 0 {
                    // The row was not switched: the network's own queues wait for the diverted frames.
                    self.card().out_hold(transfer.net).map_err(text)?;
                }
                self.set_aside(transfer.order.seat.vid, None);
                self.send_fence(transfer, now_ns);
            }
            Phase::After => {
                if transfer.at == Side::Software {
                    self.card().forget_learnt(transfer.order.seat.vid);
                }
                if transfer.switched_cycles != 0 {
                    transfer.cycles = self.card().twin().cycles() - transfer.switched_cycles;
                }
                let drops = self.card().read_out_drops(transfer.net).map_err(text)?;
                transfer.drops = drops.saturating_sub(transfer.drops);
                if let Some(witness) = &mut transfer.witness {
                    witness.turn(now_ns);
                }
            }
        }
        Ok(())
    }

    /// Makes the other side decide the network's packets.
    pub(super) fn steer(&mut self, transfer: &mut Transfer) -> Result<(), String> {
        let software = transfer.at == Side::Card;
        let text = |error: CardError| error.to_string();
        if !software {
            self.write_debts(transfer).map_err(text)?;
        }
        match self.card().steer(transfer.order.seat.vid, software) {
            Ok(()) if software => {
                // Send the debts again, because the card has charged frames since. No frame for software is on its
                // way to the worker yet.
                self.give_debts_to_software(transfer.order.seat.vid).map_err(text)?;
                transfer.at = Side::Software;
            }
            Ok(()) => transfer.at = Side::Card,
            Err(error @ SubstrateError::Broken { .. }) => return Err(error.to_string()),
            Err(error) => {
                transfer.fault(&error.to_string());
                transfer.goal = transfer.at;
            }
        }
        Ok(())
    }
}
