//! The ring of a [`Router`]: labels join, know what is behind them, and leave.
//!
//! Each label of this router knows the label behind it: the closest of this router's own, of all routers (whose links say that
//! they are there), and of hosts elsewhere. It asks it every other interval, and learns who is between them. All routers are on
//! the ring, so rings that meet become one: between two routers, all chains of labels end at the second one, which
//! tells each that asks of the closest other.

use std::collections::BTreeMap;
use std::time::Duration;

use hue_tables::clockwise;
use hue_wire::rofl::Label;

use super::body::{Answer, Body, Located};
use super::drops::Drop;
use super::links::Hop;
use super::locals::{Heard, Home, Local, Next, before, behind};
use super::router::{LOCALS_MAX, Router};
use super::types::{Event, Place};

/// Questions without an answer, after which a label is not behind another one any more.
const UNANSWERED_MAX: u32 = 3;
/// A label joins after so many intervals even if nobody answers.
const JOIN_INTERVALS: u32 = 8;

impl Router {
    /// Replaces the labels that a document has: the router's own, besides the one that it is known by, and those of hosts.
    pub fn set_labels(&mut self, now: Duration, labels: &BTreeMap<Label, Home>) {
        let is_other =
            |label: &Label, local: &Local| local.ends.is_none() && labels.get(label) != Some(&local.home);
        let gone = self.locals.iter().filter(|(label, local)| is_other(label, local));
        let gone: Vec<Label> =
            gone.map(|(label, _)| *label).filter(|label| *label != self.config.router).collect();
        gone.into_iter().for_each(|label| self.remove(label));
        for (label, home) in labels {
            let known = self.locals.get(label);
            if *label != self.config.router && known.is_none_or(|known| known.ends.is_some()) {
                self.add(now, *label, *home, None);
            }
        }
        self.tick(now);
    }

    /// What is behind a label of this router.
    #[must_use]
    pub fn next(&self, label: Label) -> Option<Next> {
        let here = behind(&self.locals, label, |local| local.joined).filter(|other| *other != label);
        let here = here.map(Next::Here);
        let router = behind(&self.routes, label, |_| true).map(Next::Router);
        let host = self.hosts_behind(label).next().map(|(other, router)| Next::Host(other, router));
        [here, router, host].into_iter().flatten().min_by_key(|next| clockwise(label, next.label()))
    }

    /// The labels of hosts elsewhere that are known behind one of this router, and whose routers can be reached.
    fn hosts_behind(&self, label: Label) -> impl Iterator<Item = Located> + '_ {
        let is_there = |(other, router): &Located| {
            let is_here = self.locals.get(other).is_some_and(|local| local.joined);
            self.routes.contains_key(router) && !is_here && !self.routes.contains_key(other)
        };
        self.locals.get(&label).into_iter().flat_map(|local| local.group.iter().copied()).filter(is_there)
    }

    /// A host says that it has a label.
    pub(super) fn host(&mut self, now: Duration, hop: Hop, label: Label, hold_ds: u16) -> Result<(), Drop> {
        let is_full = self.locals.len() >= LOCALS_MAX;
        let known = self.locals.get_mut(&label);
        let is_other =
            known.as_ref().is_some_and(|known| known.home != Home::Host(hop) || known.ends.is_none());
        if is_other || self.routes.contains_key(&label) {
            return Err(Drop::Taken);
        }
        if hold_ds == 0 {
            if known.is_some() {
                self.remove(label);
            }
            return Ok(());
        }
        let ends = now + Duration::from_millis(u64::from(hold_ds) * 100);
        match known {
            Some(known) => known.ends = Some(ends),
            None if is_full => return Err(Drop::LabelsFull),
            None => self.add(now, label, Home::Host(hop), Some(ends)),
        }
        Ok(())
    }

    pub(super) fn expire_hosts(&mut self, now: Duration) {
        let gone = self.locals.iter().filter(|(_, local)| local.ends.is_some_and(|ends| ends <= now));
        let gone: Vec<Label> = gone.map(|(label, _)| *label).collect();
        gone.into_iter().for_each(|label| self.remove(label));
    }

    fn add(&mut self, now: Duration, label: Label, home: Home, ends: Option<Duration>) {
        self.locals.insert(label, Local::new(now, home, ends));
        self.is_dirty = true;
        self.look(now, label, false);
    }

    /// A label of this router leaves: those on both sides of it learn it at once.
    fn remove(&mut self, label: Label) {
        let next = self.next(label).map(|next| next.located(self.config.router));
        let Some(gone) = self.locals.remove(&label) else { return };
        self.is_dirty = true;
        if gone.joined {
            self.output.events.push(Event::Left(self.text(label)));
        }
        if let Some(heard) = gone.before {
            self.tell(heard.router, &Body::Leave { label, next });
        }
        if let Some((_, router)) = next {
            self.tell(router, &Body::Leave { label, next: None });
        }
    }

    /// A label looks for its place, or says that it has found it: the message goes to whoever has the closest label before it.
    fn look(&mut self, now: Duration, label: Label, found: bool) {
        let mut entries = self.entries();
        entries.remove(&label);
        let Some(closest) = before(&entries, label, |_, _| true) else { return };
        match entries.get(&closest) {
            Some(Place::Via(hop)) => self.tell_closest(*hop, label, &Body::Join { label, found }),
            // It is before the label on the ring; what is behind it is on both sides of the new one.
            _ => {
                let all = self.all_behind(closest).into_iter().filter(|(other, _)| *other != label).collect();
                self.place(now, label, all);
            }
        }
    }

    /// A label learns its place.
    fn place(&mut self, now: Duration, label: Label, behind: Vec<Located>) {
        if let Some(local) = self.locals.get_mut(&label) {
            local.placed = true;
            self.is_dirty = true;
            behind.into_iter().for_each(|one| self.consider(now, label, one));
        }
    }

    /// The labels that are known behind one of this router, with their routers.
    fn all_behind(&self, label: Label) -> Vec<Located> {
        let next = self.next(label).map(|next| next.located(self.config.router));
        let group = self.locals.get(&label).into_iter().flat_map(|local| &local.group).copied();
        next.into_iter().chain(group.filter(|one| Some(*one) != next)).collect()
    }

    /// A label elsewhere may be the one behind a label of this router: it is asked, and counts when it answers.
    fn consider(&mut self, now: Duration, label: Label, other: Located) {
        let (found, router) = other;
        let is_here = self.locals.get(&found).is_some_and(|local| local.joined);
        let is_elsewhere = found != label && !is_here && self.routes.contains_key(&router);
        let is_nearer = |than: Label| clockwise(label, found) < clockwise(label, than);
        let beats_next = self.next(label).is_none_or(|next| is_nearer(next.label()));
        let patience = 2 * self.interval();
        let Some(local) = self.locals.get_mut(&label).filter(|_| is_elsewhere && beats_next) else { return };
        if local.probe.is_some_and(|probe| !is_nearer(probe.label) && now < probe.time + patience) {
            return;
        }
        local.probe = Some(Heard { label: found, router, time: now });
        self.tell(router, &Body::Ask { asked: found, asker: label });
    }

    /// Somebody may be between a label of this router and the one behind it.
    fn consider_between(&mut self, now: Duration, other: Located) {
        if let Some(label) = before(&self.locals, other.0, |_, local| local.joined) {
            self.consider(now, label, other);
        }
    }

    pub(super) fn join(&mut self, now: Duration, from: Label, label: Label, found: bool) -> Result<(), Drop> {
        let closest = before(&self.locals, label, |_, local| local.joined).ok_or(Drop::Unheld)?;
        if closest == label {
            let taken = Answer { asked: label, asker: label, has: true, taken: true, ..Answer::default() };
            self.tell(from, &Body::Answer(taken));
        } else if found {
            self.consider(now, closest, (label, from));
        } else {
            let behind = self.all_behind(closest).into_iter().filter(|(other, _)| *other != label).collect();
            let before = Some((closest, self.config.router));
            let answer = Answer { asked: label, asker: label, has: true, taken: false, before, behind };
            self.tell(from, &Body::Answer(answer));
        }
        Ok(())
    }

    pub(super) fn ask(&mut self, now: Duration, from: Label, asked: Label, asker: Label) -> Result<(), Drop> {
        let ends = self.hold(now);
        let routes = &self.routes;
        let mut taken = self.locals.get(&asker).is_some_and(|local| local.joined);
        let (mut has, mut passed) = (false, None);
        if let Some(local) = self.locals.get_mut(&asked).filter(|local| local.joined) {
            has = true;
            let known = local.before.filter(|one| one.time > now && routes.contains_key(&one.router));
            taken |= known.is_some_and(|known| known.label == asker && known.router != from);
            let is_closer = |known: Heard| {
                clockwise(asker, asked) <= clockwise(known.label, asked) || known.label == asker
            };
            if !taken && known.is_none_or(is_closer) {
                local.before = Some(Heard { label: asker, router: from, time: ends });
                passed = known.filter(|known| known.label != asker);
            }
        }
        if has && !taken {
            self.consider_between(now, (asker, from));
        }
        // The one that was before it learns that another one is between them, instead of asking some time.
        let others = passed.map(|one| (one.label, one.router, false));
        for (asker, router, taken) in [(asker, from, taken)].into_iter().chain(others) {
            let answer = Answer {
                asked,
                asker,
                has,
                taken,
                before: self.before(now, asked).filter(|(label, _)| *label != asker),
                behind: if has { self.all_behind(asked) } else { Vec::new() },
            };
            self.tell(router, &Body::Answer(answer));
        }
        Ok(())
    }

    /// The closest label that is known before one of this router.
    #[must_use]
    pub fn before(&self, now: Duration, label: Label) -> Option<Located> {
        let local = self.locals.get(&label)?;
        let here = before(&self.locals, label.wrapping_sub(1), |other, one| other != label && one.joined);
        let there = local.before.filter(|one| one.time > now && self.routes.contains_key(&one.router));
        let all = here.map(|here| (here, self.config.router)).into_iter();
        all.chain(there.map(|there| (there.label, there.router)))
            .min_by_key(|(other, _)| clockwise(*other, label))
    }

    pub(super) fn answer(&mut self, now: Duration, from: Label, answer: Answer) -> Result<(), Drop> {
        let Answer { asked, asker, has, taken, before, behind } = answer;
        let ends = self.hold(now);
        let text = self.text(asker);
        let local = self.locals.get_mut(&asker).ok_or(Drop::Unasked)?;
        let is_probe = local.probe.is_some_and(|probe| probe.label == asked && probe.router == from);
        if asked != asker && !is_probe && local.asked != Some(asked) {
            return Err(Drop::Unasked);
        }
        if taken {
            if local.taken.replace(ends).is_none() {
                self.output.events.push(Event::Taken(text));
            }
            (local.joined, local.placed) =
                (local.home == Home::Own && local.ends.is_none() && local.joined, false);
            self.is_dirty = true;
            return Ok(());
        }
        if asked == asker {
            if !local.placed {
                local.before = before.map(|(label, router)| Heard { label, router, time: ends });
                self.place(now, asker, behind);
            }
            return Ok(());
        }
        if is_probe {
            local.probe = None;
        }
        if !has {
            self.is_dirty |= local.group.iter().any(|(label, _)| *label == asked);
            local.group.retain(|(label, _)| *label != asked);
            return Ok(());
        }
        if local.asked == Some(asked) {
            local.unanswered = 0;
        }
        let old = std::mem::take(&mut local.group);
        // What is behind the asker again says nothing of what is between the two.
        let is_behind = |one: &Located| clockwise(asked, one.0) < clockwise(asked, asker);
        local.set_group(asker, std::iter::once((asked, from)).chain(behind.into_iter().filter(is_behind)));
        self.is_dirty |= old.first() != local.group.first();
        let is_between = |label: Label| clockwise(asker, label) < clockwise(asker, asked) && label != asker;
        match before.filter(|(label, _)| is_between(*label)) {
            Some(closer) => self.consider(now, asker, closer),
            None => {
                self.is_dirty |= local.agreed != Some(asked);
                local.agreed = Some(asked);
            }
        }
        Ok(())
    }

    pub(super) fn leave(&mut self, now: Duration, from: Label, label: Label, next: Option<Located>) {
        let mut touched = Vec::new();
        for (own, local) in &mut self.locals {
            local.before = local.before.filter(|one| one.label != label || one.router != from);
            let count = local.group.len();
            local.group.retain(|one| *one != (label, from));
            if local.group.len() < count {
                touched.push(*own);
            }
        }
        self.is_dirty |= !touched.is_empty();
        for own in touched {
            next.into_iter().for_each(|next| self.consider(now, own, next));
        }
    }

    /// Repeats what others would forget.
    pub(super) fn refresh(&mut self, now: Duration) {
        self.pointers.expire(now);
        for (hop, body) in self.pointers.repeat() {
            self.send_link(hop, &body);
        }
        for label in self.locals.keys().copied().collect::<Vec<_>>() {
            self.refresh_label(now, label);
        }
        self.is_dirty = true;
    }

    fn refresh_label(&mut self, now: Duration, label: Label) {
        let patience = 2 * self.interval();
        let next = self.next(label);
        let Some(local) = self.locals.get_mut(&label) else { return };
        local.probe = local.probe.filter(|probe| now < probe.time + patience);
        local.before = local.before.filter(|one| one.time > now && self.routes.contains_key(&one.router));
        if local.taken.is_some_and(|until| until <= now) {
            (local.taken, local.since, local.asked) = (None, now, None);
        }
        if local.taken.is_none() && !local.placed && !local.joined {
            self.look(now, label, false);
        }
        match next {
            Some(Next::Host(other, _)) if self.is_silent(label, other) => {
                if let Some(local) = self.locals.get_mut(&label) {
                    local.group.retain(|(one, _)| *one != other);
                    (local.asked, local.unanswered) = (None, 0);
                }
            }
            Some(Next::Router(other) | Next::Host(other, _)) => self.question(label, other, next),
            Some(Next::Here(other)) => {
                if let Some(found) = self.before(now, other).filter(|(one, _)| *one != label) {
                    self.consider(now, label, found);
                }
            }
            None => {}
        }
    }

    fn is_silent(&self, label: Label, other: Label) -> bool {
        self.locals
            .get(&label)
            .is_some_and(|local| local.asked == Some(other) && local.unanswered >= UNANSWERED_MAX)
    }

    /// Asks the label behind one of this router.
    fn question(&mut self, label: Label, other: Label, next: Option<Next>) {
        let Some(local) = self.locals.get_mut(&label).filter(|local| local.taken.is_none()) else { return };
        if local.asked.replace(other) != Some(other) {
            local.unanswered = 0;
        }
        local.unanswered += 1;
        if let Some((_, router)) = next.map(|next| next.located(self.config.router)) {
            self.tell(router, &Body::Ask { asked: other, asker: label });
        }
    }

    /// Asks labels that are new behind others. Returns the hosts' labels that this router needs pointers to.
    pub(super) fn settle_ring(&mut self) -> BTreeMap<Label, Label> {
        let mut mine = BTreeMap::new();
        for label in self.locals.keys().copied().collect::<Vec<_>>() {
            let next = self.next(label);
            if let Some(Next::Host(..)) = next {
                // Those before stay until the nearest is an entry.
                for (other, router) in self.hosts_behind(label) {
                    mine.insert(other, router);
                    if self.pointers.up().contains_key(&other) {
                        break;
                    }
                }
            }
            if let Some(Next::Router(other) | Next::Host(other, _)) = next
                && self.locals.get(&label).is_some_and(|local| local.asked != Some(other))
            {
                self.question(label, other, next);
            }
        }
        mine
    }

    /// Labels that know their place are entries from now on.
    pub(super) fn settle_joins(&mut self, now: Duration) {
        let late = self.interval() * JOIN_INTERVALS;
        let waiting = self.locals.iter().filter(|(_, local)| !local.joined && local.taken.is_none());
        for label in waiting.map(|(label, _)| *label).collect::<Vec<_>>() {
            let next = self.next(label);
            let Some(local) = self.locals.get_mut(&label) else { continue };
            let agrees = match next {
                None => true,
                Some(Next::Here(_)) => local.placed,
                Some(Next::Router(other)) => local.placed && local.agreed == Some(other),
                Some(Next::Host(other, _)) => {
                    local.placed && local.agreed == Some(other) && self.pointers.up().contains_key(&other)
                }
            };
            if agrees || now >= local.since + late {
                local.joined = true;
                self.is_dirty = true;
                self.output.events.push(Event::Joined(self.text(label)));
                self.look(now, label, true);
            }
        }
    }
}
