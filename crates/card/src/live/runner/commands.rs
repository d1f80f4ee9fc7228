//! Executes the commands of control.

use std::collections::BTreeMap;

use hue_demux::Demux;
use hue_substrate::{Mode, Substrate, SubstrateError, Update};
use hue_tables::{Delta, Vid};

use super::Runner;
use crate::live::command::{
    CardCommand, CardQuestion, CardReply, ComingTable, Job, MoveCommand, OnFailure, TableWork,
};
use crate::live::event::{CardEvent, Moved};
use crate::live::seats::SeatId;
use crate::live::totals::CardCounts;
use crate::live::transfer::{Order, Ordered, Report};

/// A question whose answer takes several rounds.
pub(super) struct Counting {
    number: u64,
    /// The networks that are left, the next one last.
    left: Vec<Vid>,
    counts: BTreeMap<Vid, CardCounts>,
}

impl Runner {
    /// Does one job of control.
    pub(super) fn execute(&mut self, job: Job) {
        match job {
            Job::Command(command, demux) => self.obey(*command, demux),
            Job::SetPort(number, id, port) => {
                // The card has this port: this was checked when the card was started.
                let _ = self.set_port(number, id, port);
            }
            Job::Replace(card) => {
                let before = self.end_bypass(Some(*card));
                let spawn = || std::thread::Builder::new().name("hue-image".to_owned());
                // Without a thread, it is dropped here.
                let _ = self.drops_aside.then(|| spawn().spawn(move || drop(before)));
            }
            Job::Attach(to) => self.begin_attachment(to),
            Job::Ask(number, CardQuestion::OnCard) => {
                let on_card = self.on_card();
                self.answers.give(number, CardReply::OnCard(on_card));
            }
            Job::Ask(number, CardQuestion::Memory(accounts)) => {
                let memory = self.card().memory(&accounts);
                self.answers.give(number, CardReply::Memory(memory));
            }
            Job::Ask(number, CardQuestion::Counts(mut left)) => {
                left.reverse();
                self.counting = Some(Counting { number, left, counts: BTreeMap::new() });
            }
        }
    }

    fn obey(&mut self, command: CardCommand, demux: Option<Demux>) {
        match command {
            CardCommand::TakePort(number) => self.take_port(number),
            CardCommand::SetClasses { id, rules, quotas } => {
                if let Err(error) = self.set_classes(id, &rules, &quotas) {
                    self.tell(CardEvent::NotLimited(id, error.to_string()));
                }
            }
            CardCommand::Load { homes, programs } => {
                // Before it has another worker: the mark behind the older frames goes to the one that has these.
                self.turn_back(|vid| programs.iter().any(|program| program.vid == vid));
                homes.into_iter().for_each(|(vid, home)| self.set_home(vid, home));
                let programs = self.without_left(programs);
                if let Err(error) = self.load_in_software(&programs) {
                    let vids = programs.iter().map(|program| program.vid).collect();
                    self.tell(CardEvent::Refused(vids, error.to_string()));
                }
            }
            CardCommand::Strip(program) => {
                self.turn_back(|vid| vid == program.vid);
                // This fits, because the network was on the card with its table before.
                let _ = self.card().load_in_software(&[*program]);
            }
            CardCommand::Unload(vid) => {
                self.set_home(vid, None);
                self.forget(vid);
                // A network that was refused is not on the card.
                let _ = self.card().unload(&[vid]);
            }
            CardCommand::Table { seat, work, on_failure } => self.work_on(seat, work, on_failure),
            CardCommand::Follow { deltas, seats } => self.follow_software(&deltas, &seats),
            CardCommand::Move(wanted) => self.order(*wanted, demux),
            CardCommand::Drain { seat, began_ns } => {
                let received = self.received(seat.vid);
                self.begin_drain(seat, began_ns, received);
            }
            CardCommand::Bypass(programs) => {
                let result = self.set_bypass(&programs);
                self.tell(CardEvent::Bypassed(result));
            }
            CardCommand::EndBypass => drop(self.end_bypass(None)),
        }
    }

    /// Reports to control, after the present round.
    pub(super) fn tell(&mut self, event: CardEvent) {
        self.told.push(event);
    }

    /// Reads the counters of one network, or answers if there is none left. Returns whether a question was open.
    pub(super) fn tend_counting(&mut self) -> bool {
        let Some(mut counting) = self.counting.take() else { return false };
        match counting.left.pop() {
            Some(vid) => {
                counting.counts.extend(self.counts(vid).map(|counts| (vid, counts)));
                self.counting = Some(counting);
            }
            None => {
                let unclaimed = self.unclaimed();
                self.answers.give(counting.number, CardReply::Counts(counting.counts, unclaimed));
            }
        }
        true
    }

    /// Frames of a network that the card has received.
    fn received(&mut self, vid: Vid) -> Option<u64> {
        self.counts(vid).map(|counts| counts.outcomes.received())
    }

    /// Why work on this seat is void, if it is.
    fn void(&self, seat: SeatId) -> Option<String> {
        if !self.seats.is_valid(seat) {
            return Some("the network has changed meanwhile".to_owned());
        }
        let failed = self.tables_failed.get(&seat.vid).filter(|(failed, _)| *failed == seat);
        failed.map(|(_, why)| why.clone())
    }

    fn table_failed(&mut self, seat: SeatId, why: &str) {
        self.tables_failed.insert(seat.vid, (seat, why.to_owned()));
    }

    fn work_on(&mut self, seat: SeatId, work: TableWork, on_failure: OnFailure) {
        if self.void(seat).is_some() {
            return;
        }
        let Err(error) = self.work(seat.vid, work) else { return };
        self.table_failed(seat, &error.to_string());
        match on_failure {
            OnFailure::EndsMove => {}
            OnFailure::Falls => {
                // Software has the complete table. A card that cannot do this fails at its next round.
                let _ = self.fall(seat.vid);
                self.tell(CardEvent::Fell(seat, error.to_string()));
            }
            OnFailure::IsNotKept => self.tell(CardEvent::NotKept(seat)),
        }
    }

    fn work(&mut self, vid: Vid, work: TableWork) -> Result<(), SubstrateError> {
        let card = self.card();
        match work {
            TableWork::TakePlane => card.take_plane(vid),
            TableWork::Decide => card.steer(vid, false),
            TableWork::Groups(groups) => {
                let update = Update::default().with_groups(&groups);
                card.update(vid, &update).map(drop)
            }
            TableWork::Hops(hops) => card.update(vid, &Update::of_hops(&hops)).map(drop),
            TableWork::Routes(routes) => {
                let update = Update::of_routes(&routes).with_mode(Mode::Each);
                card.update(vid, &update).map(drop)
            }
            TableWork::Bring(nodes) => card.bring_table(vid, nodes).map(drop),
            TableWork::BringAll(nodes) => {
                while !card.bring_table(vid, nodes)? {}
                Ok(())
            }
        }
    }

    fn follow_software(&mut self, deltas: &[Delta], seats: &BTreeMap<Vid, (SeatId, OnFailure)>) {
        let lost = match self.card().follow(deltas) {
            Ok(lost) => lost,
            Err(error) => return self.give_up(error.to_string()),
        };
        for (vid, error) in lost {
            // Software decides its packets already.
            self.turn_back(|moving| moving == vid);
            let Some((seat, on_failure)) = seats.get(&vid).copied() else { continue };
            self.table_failed(seat, &error.to_string());
            self.tell(match on_failure {
                OnFailure::IsNotKept => CardEvent::NotKept(seat),
                OnFailure::EndsMove | OnFailure::Falls => CardEvent::Fell(seat, error.to_string()),
            });
        }
    }

    /// Orders a move, if its table is there.
    fn order(&mut self, wanted: MoveCommand, demux: Option<Demux>) {
        let MoveCommand { seat, to, watch, limit, drain, fail, table, counts } = wanted;
        let mut ordered = Ordered::default();
        if let Some(ComingTable { bare, began_ns, fails }) = table {
            if fails && self.void(seat).is_none() {
                self.table_failed(seat, "step 'prepare' failed, as requested");
            }
            // A card that has failed reports this at its next round.
            let fails = self.void(seat).or_else(|| self.catch_up().err());
            if let Some(why) = fails {
                // Discard the partly written table. This fits, because the network was on the card without one before.
                let _ = self.card().load_in_software(&[bare]);
                return self.tell_moved(seat, ordered, Err(why));
            }
            ordered.prepared_ns = self.now().saturating_sub(began_ns);
        }
        if counts {
            ordered.received = self.received(seat.vid);
        }
        let watch = demux.zip(watch.map(|(time, _)| time));
        self.transfer(Order { seat, to, watch, limit, drain, fail }, ordered);
    }

    /// Reports how an ordered move ended.
    pub(super) fn tell_moved(&mut self, seat: SeatId, ordered: Ordered, outcome: Result<Report, String>) {
        let Ordered { prepared_ns, received } = ordered;
        self.tell(CardEvent::Moved(Box::new(Moved { seat, outcome, prepared_ns, received })));
    }
}
