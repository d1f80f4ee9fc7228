//! Another control takes a running card over.

use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};

use hue_card::{CardCommand, CardEvent, CardQuestion, CardReply, LiveCard, Seats};
use hue_differential::{Random, card, image, programs};
use hue_planes::Verdict;
use hue_substrate::clock::Clock;
use hue_substrate::handover::Home;
use hue_substrate::wake::Wake;
use hue_substrate::{Entries, Program};
use hue_tables::Vid;

/// A running card, and what it reports.
struct Bench {
    live: LiveCard,
    events: Receiver<CardEvent>,
}

impl Bench {
    fn new(programs: &[Program]) -> Self {
        let (told, events) = channel();
        let told = Mutex::new(told);
        let tell = move |event| told.lock().unwrap().send(event).unwrap();
        let (wake, seats) = (Arc::new(Wake::new().unwrap()), Arc::new(Seats::new().unwrap()));
        let (clock, _) = Clock::by_hand(1);
        let card = card(&image("default"), programs);
        let live = LiveCard::by_hand(card, wake, Vec::new(), (64, 2048), seats, clock, tell).unwrap();
        Self { live, events }
    }

    fn rest(&self) {
        while self.live.round() {}
    }

    fn attach(&mut self) {
        let (wake, seats) = (Arc::new(Wake::new().unwrap()), Arc::new(Seats::new().unwrap()));
        assert!(self.live.attach(wake, Vec::new(), seats));
    }

    fn ask(&self, question: CardQuestion) -> CardReply {
        let (told, answer) = channel();
        self.live.ask(question, move |reply| told.send(reply).unwrap());
        self.rest();
        answer.recv().unwrap()
    }

    fn on_card(&self) -> Vec<Vid> {
        let CardReply::OnCard(mut vids) = self.ask(CardQuestion::OnCard) else { panic!("another answer") };
        vids.sort();
        vids
    }

    fn received(&self, vid: Vid) -> u64 {
        let CardReply::Counts(counts, _) = self.ask(CardQuestion::Counts(vec![vid])) else {
            panic!("another answer")
        };
        counts.get(&vid).map_or(0, |counts| counts.outcomes.received())
    }

    fn load(&self, programs: &[Program]) {
        // As control loads them: without tables.
        let bare = |program: &Program| {
            let entries = Entries::none(program.kind());
            Program { next_hops: Vec::new(), entries, ..program.clone() }
        };
        let homes: Vec<(Vid, Option<Home>)> = programs.iter().map(|program| (program.vid, None)).collect();
        self.live.tell(CardCommand::Load { homes, programs: programs.iter().map(bare).collect() });
    }

    fn stays(&self) -> Vec<Vid> {
        self.rest();
        let events = self.events.try_iter();
        events.filter_map(|event| if let CardEvent::Stays(vid) = event { Some(vid) } else { None }).collect()
    }
}

#[test]
fn networks_stay_on_the_card_if_they_are_loaded_without_a_change() {
    let programs = programs(&mut Random::new(5), 4, 20);
    let vids: Vec<Vid> = programs.iter().map(|program| program.vid).collect();
    let mut bench = Bench::new(&programs);
    assert_eq!(bench.on_card(), vids);
    // With the same control, loading brings a network to software.
    bench.load(&programs[3..]);
    assert_eq!((bench.stays(), bench.on_card()), (vec![], vids[..3].to_vec()));

    bench.attach();
    let mut changed = programs.clone();
    changed[1].weight += 1;
    // The first one twice: it stays once, and the second time it is to be loaded anew.
    bench.load(&changed);
    assert_eq!((bench.stays(), bench.on_card()), (vec![vids[0], vids[2]], vec![vids[0], vids[2]]));
    // Frames must not pass a card that decides some of them.
    bench.live.tell(CardCommand::Bypass(programs.clone()));
    bench.rest();
    let refused = bench.events.try_iter().any(
        |event| matches!(event, CardEvent::Bypassed(Err(why)) if why == format!("network {} is on the card", vids[0])),
    );
    assert!(refused);
    bench.load(&changed[..1]);
    assert_eq!((bench.stays(), bench.on_card()), (vec![], vec![vids[2]]));
    // A third control finds what is left.
    bench.attach();
    bench.load(&programs[2..3]);
    assert_eq!((bench.stays(), bench.on_card()), (vec![vids[2]], vec![vids[2]]));
}

#[test]
fn counters_begin_anew_with_each_control() {
    let mut random = Random::new(7);
    let programs = programs(&mut random, 1, 20);
    let vid = programs[0].vid;
    let mut bench = Bench::new(&programs);
    let frames = hue_differential::frames(&mut random, &programs, 50);
    let push = |bench: &Bench| {
        bench.live.look(|runner| {
            for frame in &frames {
                assert!(runner.card().twin().push(frame.port.get(), 1, 0, 0, &frame.bytes));
            }
        });
        bench.rest();
    };
    push(&bench);
    let first = bench.received(vid);
    assert!(first > 0);
    bench.attach();
    assert_eq!(bench.received(vid), 0);
    push(&bench);
    assert_eq!(bench.received(vid), first, "the same frames");
    let CardReply::Counts(counts, unclaimed) = bench.ask(CardQuestion::Counts(vec![vid])) else {
        panic!("another answer")
    };
    let forwarded = counts[&vid].outcomes.of(Verdict::Forward);
    assert!(forwarded <= first && unclaimed.total() <= frames.len() as u64);
    // A network that is loaded anew keeps its place on the card, and with it what the card has counted.
    bench.attach();
    let mut changed = programs.clone();
    changed[0].weight += 1;
    bench.load(&changed);
    assert_eq!((bench.stays(), bench.received(vid)), (vec![], 0));
}
