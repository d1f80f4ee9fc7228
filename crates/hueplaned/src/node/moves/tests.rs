//! Inputs and effects of moves, without a card and a data plane.

use std::time::Duration;

use hue_card::{Report, Seats as Numbers, Side};

use super::*;
use crate::api::{ProblemKind, SubstrateName};
use crate::node::samples::plain;

/// The moves of a test, and what the core would do for them.
struct Bench {
    moves: Moves,
    /// Loaded networks, by name.
    networks: BTreeMap<String, Arc<Wanted>>,
    /// Why networks are not on the card, as was told.
    why_soft: BTreeMap<String, Option<String>>,
    /// The effects so far, as text.
    seen: Vec<String>,
    /// Numbers of seats.
    numbers: Numbers,
    card: Option<Card>,
    /// Answers of the scheduler, if there is one.
    scheduled: Option<BTreeMap<String, schedule::Side>>,
    drained: bool,
    /// An image is being loaded; whether networks settle, and those that the card had, which return.
    load: Option<(bool, Vec<String>)>,
    now: Instant,
}

impl Bench {
    /// Running networks that the card knows.
    fn new(names: &[&str]) -> Self {
        let mut bench = Self {
            moves: Moves::default(),
            networks: plain(names).into_iter().collect(),
            why_soft: BTreeMap::new(),
            seen: Vec::new(),
            numbers: Numbers::new().unwrap(),
            card: Some(Card { is_stale: false, keeps: false }),
            scheduled: None,
            drained: false,
            load: None,
            now: Instant::now(),
        };
        bench.seat(names);
        bench.seen();
        bench
    }

    fn vid(&self, name: &str) -> Vid {
        self.networks[name].program.vid
    }

    fn id(&self, name: &str) -> SeatId {
        self.moves.seats().id(self.vid(name)).unwrap()
    }

    fn stage(&self, name: &str) -> Stage {
        self.moves.seats().stage(self.vid(name)).unwrap()
    }

    fn name(&self, vid: Vid) -> String {
        let found = self.networks.iter().find(|(_, have)| have.program.vid == vid);
        found.map(|(name, _)| name.clone()).unwrap_or_default()
    }

    fn seat(&mut self, names: &[&str]) {
        let seat = |name: &&str| {
            let program = self.networks[*name].program.clone();
            let id = self.numbers.take(program.vid);
            NewSeat { name: (*name).to_owned(), program, id }
        };
        let seats = names.iter().map(seat).collect();
        self.give(Input::Seat(seats));
    }

    fn give(&mut self, input: Input) {
        let mut moves = std::mem::take(&mut self.moves);
        let Self { networks, why_soft, scheduled, .. } = &*self;
        let returning = self.load.clone().map(|(_, names)| names).unwrap_or_default();
        let had = |name: &str| returning.iter().any(|one| one == name);
        let settles = self.load.as_ref().is_some_and(|(settles, _)| *settles);
        let returns = |name: &str| !settles && had(name);
        let around = Around {
            card: self.card,
            network: &|name| {
                let why_soft = why_soft.get(name).cloned().flatten();
                let have = Arc::clone(networks.get(name)?);
                Some(Network { have, is_running: true, is_torn: false, why_soft })
            },
            name_of: &|vid| {
                networks.iter().find(|(_, have)| have.program.vid == vid).map(|(name, _)| name.clone())
            },
            order: &|| networks.keys().cloned().collect(),
            elsewhere: &|_| None,
            scheduled: &|name| {
                let side = *scheduled.as_ref()?.get(name)?;
                Some((side, "it is busy".to_owned()))
            },
            schedules: scheduled.is_some(),
            is_drained: self.drained,
            load: self.load.as_ref().map(|_| ImageLoad { settles, returns: &returns, had: &had }),
            now: self.now,
        };
        let effects = moves.take(input, &around);
        self.moves = moves;
        for effect in effects {
            self.apply(effect);
        }
    }

    fn apply(&mut self, effect: Effect) {
        let text = match effect {
            Effect::Then(input) => return self.give(input),
            Effect::Tell(kind, name, text) => format!("{kind:?} {name}: {text}"),
            Effect::Placed(name, on_card, why) => {
                let text = format!("{name} is on {}", if on_card { "the card" } else { "software" });
                self.why_soft.insert(name, why);
                text
            }
            Effect::WhySoft(name, why) => {
                let text = format!("{name} stays: {}", why.clone().unwrap_or_default());
                self.why_soft.insert(name, why);
                text
            }
            Effect::Pinned(name, place) => {
                let have = self.networks.get_mut(&name).unwrap();
                Arc::make_mut(have).network.spec.placement = place;
                format!("pin {name}")
            }
            Effect::Lost(name) => format!("{name} loses its numbers"),
            Effect::TakeSeat(vid) => {
                let id = self.numbers.take(vid);
                return self.give(Input::SeatTaken(vid, id));
            }
            Effect::SeatAnew(names) => {
                self.seen.push(format!("seat {} anew", names.join("+")));
                return self.seat(&names.iter().map(String::as_str).collect::<Vec<_>>());
            }
            Effect::LoadOnCard(vids) => format!("load {} networks", vids.len()),
            Effect::EndSeat(vid) => format!("end the seat of {}", self.name(vid)),
            Effect::Write(id) => format!("keep {}", self.name(id.vid)),
            Effect::WriteChanges(id, _, _, on_failure) => {
                format!("{} follows, {on_failure:?}", self.name(id.vid))
            }
            Effect::Strip(vid) => format!("strip {}", self.name(vid)),
            Effect::Rewire(name, id, then) => match then {
                Then::Nothing => format!("rewire {name}"),
                Then::Answer(arrived) => {
                    let (kind, text, asked, result) = answered(*arrived, None, Some(1)).unwrap();
                    let _ = asked.reply.send(result);
                    format!("{kind:?} {name}: {}", text.split(" in ").next().unwrap())
                }
                Then::Come(asked) => return self.give(Input::ComeOn(Some(id), *asked, None)),
                Then::Leave(asked) => return self.give(Input::LeaveOn(Some(id), *asked)),
            },
            Effect::Order(order) => {
                let name = self.name(order.seat.vid);
                match order.coming {
                    Some(Coming { kept: true, .. }) => format!("{name} comes, its table is there"),
                    Some(_) => format!("{name} comes"),
                    None => format!("{name} leaves"),
                }
            }
            Effect::Refuse(reply, problem) => return drop(reply.send(Err(problem))),
            Effect::Changed | Effect::Police | Effect::Forward | Effect::Moved => return,
        };
        self.seen.push(text);
    }

    fn seen(&mut self) -> Vec<String> {
        std::mem::take(&mut self.seen)
    }

    fn place(&mut self, name: &str) -> Vec<String> {
        self.give(Input::Place(name.to_owned()));
        self.seen()
    }

    /// The card's thread has ended the move of a network there, or says why its table is not on the card.
    fn end(&mut self, name: &str, at: Result<Side, &str>) -> Vec<String> {
        self.end_of(self.id(name), at, None);
        self.seen()
    }

    fn end_of(&mut self, seat: SeatId, at: Result<Side, &str>, failed: Option<&str>) {
        let outcome = at.map_err(str::to_owned).map(|at| Report {
            at,
            failed: failed.map(str::to_owned),
            phases: Vec::new(),
            cycles: 0,
            out_dropped: 0,
            proof: None,
        });
        self.give(Input::Moved(Box::new(Moved { seat, outcome, prepared_ns: 0, received: None })));
    }

    /// Somebody asks for the move of a network.
    fn ask(&mut self, name: &str, to: SubstrateName) -> oneshot::Receiver<Result<Migration, Problem>> {
        let (reply, answer) = oneshot::channel();
        let (request, pin, steering) = (MigrateRequest::new(to), true, None);
        let asked = Some(Asked { name: name.to_owned(), request, pin, steering, reply });
        self.give(match to {
            SubstrateName::Card => Input::Come(name.to_owned(), asked),
            SubstrateName::Soft => Input::Leave(name.to_owned(), asked),
        });
        answer
    }
}

#[test]
fn a_network_comes_to_the_card_and_what_it_was_told_there_counts_for_its_seat_only() {
    let mut bench = Bench::new(&["red"]);
    assert_eq!(bench.place("red"), ["red comes"]);
    assert_eq!((bench.stage("red"), bench.moves.any()), (Stage::Coming, true));
    assert!(bench.place("red").is_empty(), "one move at a time");
    let expected = ["red is on the card", "Placed red: the network runs on the card", "rewire red"];
    assert_eq!(bench.end("red", Ok(Side::Card)), expected);
    assert!(bench.place("red").is_empty() && !bench.moves.any());
    // A report about a former seat changes nothing.
    let former = bench.id("red");
    bench.seat(&["red"]);
    bench.seen();
    bench.end_of(former, Ok(Side::Card), None);
    assert_eq!((bench.seen(), bench.stage("red")), (Vec::new(), Stage::Software));
}

#[test]
fn a_network_that_does_not_fit_is_told_once_and_tried_again_when_there_may_be_room() {
    let mut bench = Bench::new(&["blue", "red"]);
    bench.place("red");
    let expected = [
        "red is on software",
        "Placed red: the network runs in software: the card cannot run it: full",
        "rewire red",
    ];
    assert_eq!(bench.end("red", Err("full")), expected);
    // It had all the room that there is.
    bench.give(Input::TryAgain);
    assert!(bench.seen().is_empty());
    bench.give(Input::MakeRoom);
    let seen = bench.seen();
    assert_eq!(seen, ["blue comes", "red comes"], "all in software may fit now");
    assert_eq!(bench.end("red", Err("full")), ["red is on software", "rewire red"], "no news");
    // The other one held room that it did not keep, so the first to fail is tried again.
    let seen = bench.end("blue", Err("full"));
    assert_eq!(seen.last().unwrap(), "red comes");
    assert_eq!(bench.end("red", Err("full")).last().unwrap(), "rewire red");
    assert!(!bench.moves.any(), "and now it had all the room");
}

#[test]
fn a_failed_move_of_a_card_that_keeps_tables_takes_them_away() {
    let mut bench = Bench::new(&["blue", "red"]);
    bench.card = Some(Card { is_stale: false, keeps: true });
    bench.give(Input::Keep(["blue", "red"].map(str::to_owned).to_vec()));
    assert_eq!(bench.seen(), ["keep blue", "keep red"]);
    let before = bench.id("blue");
    assert_eq!(bench.place("red"), ["red comes, its table is there"]);
    let seen = bench.end("red", Err("full"));
    // The room that this made may be enough for it, and for the other one.
    assert_eq!(seen[..3], ["strip blue", "blue comes", "red comes"]);
    assert_ne!(bench.id("blue"), before, "what was queued for its kept table is void");
}

#[test]
fn a_requested_move_is_pinned_and_answered() {
    let mut bench = Bench::new(&["red"]);
    let mut answer = bench.ask("red", SubstrateName::Card);
    assert_eq!(bench.seen(), ["red comes"]);
    assert_eq!(
        bench.end("red", Ok(Side::Card)),
        ["pin red", "red is on the card", "Migrated red: the network has moved to card"]
    );
    assert_eq!(answer.try_recv().unwrap().unwrap().to, SubstrateName::Card);
    let mut answer = bench.ask("red", SubstrateName::Soft);
    bench.end_of(bench.id("red"), Ok(Side::Card), Some("the drain took too long"));
    let expected = ["red leaves", "red is on the card", "MigrationFailed red: the drain took too long"];
    assert_eq!(bench.seen(), expected);
    assert_eq!(answer.try_recv().unwrap().unwrap_err().kind, ProblemKind::Internal);
    let mut answer = bench.ask("red", SubstrateName::Soft);
    let seen = bench.end("red", Ok(Side::Software));
    assert_eq!(seen[1..4], ["pin red", "strip red", "red is on software"]);
    assert_eq!(bench.why_soft["red"].as_deref(), Some("its document says so"));
    assert!(answer.try_recv().unwrap().is_ok());
    assert!(bench.place("red").contains(&"red stays: its document says so".to_owned()));
}

#[test]
fn a_request_for_a_network_that_changes_meanwhile_is_refused() {
    let mut bench = Bench::new(&["red"]);
    let mut answer = bench.ask("red", SubstrateName::Card);
    let seat = bench.id("red");
    bench.seat(&["red"]);
    bench.seen();
    bench.end_of(seat, Ok(Side::Card), None);
    let text = "MigrationFailed red: the network or the card has changed meanwhile";
    assert_eq!(bench.seen(), [text]);
    assert_eq!(answer.try_recv().unwrap().unwrap_err().kind, ProblemKind::Conflict);
    // The card fails: whoever waits learns it, and networks are in software.
    let mut answer = bench.ask("red", SubstrateName::Card);
    bench.seen();
    bench.card = None;
    bench.give(Input::CardGone);
    assert_eq!(bench.seen(), ["red is on software", "red loses its numbers"]);
    assert!(matches!(answer.try_recv(), Err(oneshot::error::TryRecvError::Closed)));
    assert!(bench.place("red").is_empty());
}

#[test]
fn a_reserved_card_is_for_one_network_and_the_others_move_afterwards() {
    let mut bench = Bench::new(&["blue", "red"]);
    bench.give(Input::Reserve("red".to_owned()));
    assert!(bench.place("blue").is_empty());
    drop(bench.ask("red", SubstrateName::Card));
    bench.end("red", Ok(Side::Card));
    assert!(bench.moves.is_reserved());
    bench.give(Input::EndReservation);
    assert_eq!(bench.seen(), ["blue comes"]);
    bench.end("blue", Ok(Side::Card));
    bench.give(Input::EndReservation);
    assert!(bench.seen().is_empty(), "nothing was deferred");
}

#[test]
fn networks_stay_while_an_image_is_loaded_except_those_that_return() {
    let mut bench = Bench::new(&["blue", "red"]);
    bench.load = Some((false, vec!["red".to_owned()]));
    assert!(bench.place("blue").is_empty());
    assert_eq!(bench.place("red"), ["red comes"]);
    bench.end("red", Err("full"));
    bench.load = Some((true, vec!["red".to_owned()]));
    bench.give(Input::Resume);
    assert_eq!(bench.seen(), ["blue comes"], "the image load has just placed the other");
}

#[test]
fn a_drained_card_is_left_and_the_reason_is_told() {
    let mut bench = Bench::new(&["red"]);
    bench.place("red");
    bench.end("red", Ok(Side::Card));
    bench.drained = true;
    assert_eq!(bench.place("red"), ["red leaves"]);
    let seen = bench.end("red", Ok(Side::Software));
    assert!(seen.contains(&format!("red stays: {DRAINED}")), "{seen:?}");
    bench.drained = false;
    assert_eq!(bench.place("red"), ["red comes"]);
}

#[test]
fn networks_go_where_the_scheduler_says() {
    let mut bench = Bench::new(&["red"]);
    bench.scheduled = Some(BTreeMap::new());
    assert!(bench.place("red").is_empty(), "it has not answered");
    bench.scheduled = Some(BTreeMap::from([("red".to_owned(), schedule::Side::Soft)]));
    assert_eq!(bench.place("red"), ["red stays: the scheduler: it is busy"]);
    bench.scheduled = Some(BTreeMap::from([("red".to_owned(), schedule::Side::Card)]));
    assert_eq!(bench.place("red"), ["red comes"]);
    bench.end("red", Ok(Side::Card));
    bench.scheduled = Some(BTreeMap::from([("red".to_owned(), schedule::Side::Soft)]));
    assert_eq!(bench.place("red"), ["red leaves"]);
}

#[test]
fn a_table_on_the_card_follows_and_a_smaller_one_lets_others_try_again() {
    let mut bench = Bench::new(&["blue", "red"]);
    bench.place("red");
    bench.end("red", Ok(Side::Card));
    bench.place("blue");
    bench.end("blue", Err("full"));
    let withdrawn = || {
        let mut changes = Changes::default();
        changes.v4.push(("10.0.0.0/8".parse().unwrap(), None));
        changes
    };
    let start = bench.now;
    let mut pauses = Vec::new();
    for _ in 0..7 {
        bench.give(Input::Follow(bench.vid("red"), HopChanges::default(), withdrawn()));
        assert_eq!(bench.seen(), ["red follows, Falls"]);
        let due = bench.moves.seats().due().unwrap();
        pauses.push((due - bench.now).as_secs());
        bench.now = due;
        bench.give(Input::Retry);
        assert_eq!(bench.seen(), ["blue comes"]);
        bench.end("blue", Err("full"));
    }
    assert_eq!(pauses, [2, 4, 8, 16, 32, 60, 60]);
    assert!(bench.now > start + Duration::from_secs(60) && bench.moves.seats().due().is_none());
    // One that fits ends the long pauses.
    bench.give(Input::MakeRoom);
    bench.end("blue", Ok(Side::Card));
    bench.give(Input::Follow(bench.vid("red"), HopChanges::default(), withdrawn()));
    assert_eq!(bench.moves.seats().due(), Some(bench.now + Duration::from_secs(2)));
    // A card that was taken over does not follow.
    bench.card = Some(Card { is_stale: true, keeps: false });
    bench.seen();
    bench.give(Input::Follow(bench.vid("red"), HopChanges::default(), withdrawn()));
    assert!(bench.seen().is_empty());
}

#[test]
fn a_network_whose_routes_no_longer_fit_falls_to_software_and_gives_its_room() {
    let mut bench = Bench::new(&["blue", "red"]);
    bench.place("red");
    bench.end("red", Ok(Side::Card));
    bench.place("blue");
    bench.end("blue", Err("full"));
    bench.give(Input::Fell(bench.id("red"), "too many routes".to_owned()));
    let seen = bench.seen();
    assert_eq!(seen[..2], ["seat red anew", "load 1 networks"]);
    assert_eq!(bench.why_soft["red"].as_deref(), Some("too many routes"));
    assert!(seen.contains(&"blue comes".to_owned()), "{seen:?}");
    // It leaves the card altogether.
    bench.give(Input::Unseat(bench.vid("red")));
    bench.give(Input::Unseat(bench.vid("red")));
    assert_eq!(bench.seen(), ["end the seat of red"]);
}

#[test]
fn networks_on_a_card_that_was_taken_over_are_known_to_be_there() {
    let mut bench = Bench::new(&["red"]);
    bench.give(Input::Stays(bench.vid("red")));
    assert!(bench.seen().is_empty(), "it was not taken over");
    bench.card = Some(Card { is_stale: true, keeps: false });
    bench.give(Input::Stays(bench.vid("red")));
    assert_eq!((bench.seen(), bench.stage("red")), (vec!["red is on the card".to_owned()], Stage::Card));
}
