//! Another control takes the card over, while frames keep flowing.
//!
//! Flow: [`crate::LiveCard::attach`] → a move that is under way ends → **here**: the rings, wake-ups and seats of the new
//! control → it loads its networks; those that were on the card stay there → it replaces the card.

use hue_planes::{Keys, UnclaimedCounters};
use hue_substrate::Program;
use hue_substrate::wake::Poller;
use hue_tables::Vid;

use super::{NONE, Runner};
use crate::live::command::Attachment;
use crate::live::event::CardEvent;

impl Runner {
    /// Begins to change the control.
    pub(super) fn begin_attachment(&mut self, to: Box<Attachment>) {
        self.orders.clear();
        if let Some(transfer) = &mut self.transfer {
            transfer.hurry();
        }
        self.attachment = Some(to);
    }

    /// Changes the control as soon as no network is moving. Returns whether it is being changed.
    pub(super) fn tend_attachment(&mut self) -> bool {
        if self.transfer.is_none()
            && let Some(to) = self.attachment.take()
        {
            self.attach(*to);
            return true;
        }
        self.attachment.is_some()
    }

    fn attach(&mut self, Attachment { wake, peers, seats }: Attachment) {
        match Poller::new(&wake) {
            Ok(poller) => self.poller = poller,
            Err(error) => return self.give_up(error.to_string()),
        }
        // Nobody wants what the control before has asked for.
        self.drains.clear();
        self.counting = None;
        self.told.clear();
        self.tables_failed.clear();
        drop(self.end_bypass(None));
        self.homes.of.fill(NONE);
        self.homes.notify = vec![false; peers.len()];
        (self.peers, self.wake, self.seats) = (peers, wake, seats);
        self.follow(None);
        self.left = self.on_card().into_iter().collect();
        self.count_anew();
    }

    /// Counters of networks and of unclaimed frames begin anew.
    fn count_anew(&mut self) {
        self.bases_of_networks.clear();
        self.base_unclaimed = UnclaimedCounters::default();
        let vids: Vec<Vid> = self.card.programs().map(|program| program.vid).collect();
        let counts = vids.into_iter().filter_map(|vid| Some((vid, self.counts(vid)?)));
        self.bases_of_networks = counts.collect();
        self.base_unclaimed = self.unclaimed();
        self.totals.crossings.clear();
        self.totals.unclaimed = 0;
    }

    /// The networks that the card decides.
    pub(super) fn on_card(&self) -> Vec<Vid> {
        let vids = self.card.programs().map(|program| program.vid);
        vids.filter(|vid| self.card.is_in_software(*vid) == Some(false)).collect()
    }

    /// Of these networks, those that must be loaded: not those that the control before left on the card, if they have not
    /// changed.
    pub(super) fn without_left(&mut self, mut programs: Vec<Program>) -> Vec<Program> {
        if self.left.is_empty() {
            return programs;
        }
        programs.retain(|program| {
            let was_left = self.left.remove(&program.vid);
            let here = self.card.program(program.vid);
            let stays = was_left
                && here.is_some_and(|here| same_but_table(here, program))
                && self.card.is_in_software(program.vid) == Some(false);
            if stays {
                self.told.push(CardEvent::Stays(program.vid));
            }
            !stays
        });
        programs
    }
}

/// Whether two programs differ in nothing but tables that follow software's. Those of patterns do not, and those of flat labels with
/// rows of their own.
fn same_but_table(one: &Program, other: &Program) -> bool {
    let Program {
        vid,
        name,
        settings,
        ports,
        rows,
        next_hops,
        groups: _,
        entries,
        rate_limit,
        weight,
        policies,
        gated,
    } = one;
    (vid, name, settings, ports, rows)
        == (&other.vid, &other.name, &other.settings, &other.ports, &other.rows)
        && (rate_limit, weight, policies, gated)
            == (&other.rate_limit, &other.weight, &other.policies, &other.gated)
        && entries.patterns() == other.entries.patterns()
        && entries.labels() == other.entries.labels()
        && (!matches!(entries.keys(), Keys::Bits | Keys::Label) || *next_hops == other.next_hops)
}
