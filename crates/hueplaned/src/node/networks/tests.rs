//! Inputs and effects of networks, without an operating system and a data plane.

use std::collections::BTreeSet;

use super::*;
use crate::node::samples::{plain, wanted};

/// The networks of a test, and what the core would do for them.
struct Bench {
    networks: Networks,
    /// The effects so far, as text.
    seen: Vec<String>,
    jobs: Vec<Job>,
    /// Networks that the data plane takes only together with all others of this set.
    conflict: BTreeSet<String>,
    /// Whether a network's table must be loaded as a whole.
    torn: bool,
    /// Whether the far ends of tunnels can be reached, and ports have a link.
    reaches: bool,
    now: Instant,
}

impl Bench {
    fn new() -> Self {
        let (networks, seen, jobs, now) = (Networks::default(), Vec::new(), Vec::new(), Instant::now());
        Self { networks, seen, jobs, conflict: BTreeSet::new(), torn: false, reaches: true, now }
    }

    fn give(&mut self, input: Input) {
        let (torn, reaches) = (self.torn, self.reaches);
        let around = Around {
            is_torn: &|_| torn,
            reaches: &|_, _| reaches,
            has_link: &|_, _| Some(reaches),
            now: self.now,
        };
        for effect in self.networks.take(input, &around) {
            self.apply(effect);
        }
    }

    fn apply(&mut self, effect: Effect) {
        let text = match effect {
            Effect::Then(input) => return self.give(input),
            Effect::Tell(kind, name, text) => format!("{kind:?} {name}: {text}"),
            Effect::TellCleaned(text) => text,
            Effect::Start(job) => {
                let text = match &job {
                    Job::Setup(name, setup) if setup.taps => format!("set up {name} with TAPs"),
                    Job::Setup(name, _) => format!("set up {name}"),
                    Job::Delete(name, _) => format!("delete {name}"),
                    _ => "another job".to_owned(),
                };
                self.jobs.push(job);
                text
            }
            Effect::Load(programs, attempt) => {
                let names: BTreeSet<String> = programs.iter().map(|program| program.name.clone()).collect();
                let fits = names.is_disjoint(&self.conflict) || self.conflict.is_subset(&names);
                let names = Vec::from_iter(names).join("+");
                let result = if fits { Ok(()) } else { Err(format!("{names} does not fit")) };
                self.seen.push(format!("load {names}{}", if fits { "" } else { ": refused" }));
                return self.give(Input::Tried(attempt, result));
            }
            Effect::Loaded(loaded) => format!("{} is loaded", loaded.name),
            Effect::Unload(name, _) => format!("unload {name}"),
            Effect::ClearRoutes(_) => "clear routes".to_owned(),
            Effect::RemoveTaps(name, _) => format!("remove TAPs of {name}"),
            Effect::CatchUp(_) => "catch up".to_owned(),
            Effect::LoadWhole(_) => "load the whole table".to_owned(),
            Effect::SetCarrier(name, vport, on) => {
                self.seen.push(format!("{name} {vport} {}", if on { "up" } else { "down" }));
                return self.give(Input::CarrierSet(name, vport, on));
            }
            Effect::MakeRoom => "make room".to_owned(),
            Effect::Run(name) => format!("run {name}"),
            Effect::Place(name) => format!("place {name}"),
            Effect::Settled(name) => {
                let state = self.networks.get(&name).map_or("gone", |entry| entry.state().name());
                format!("{name} is settled: {state}")
            }
            Effect::Changed
            | Effect::Seat(_)
            | Effect::Attach(..)
            | Effect::Unwatch(_)
            | Effect::Unseat(_)
            | Effect::ForgetRoutes(_)
            | Effect::AskScheduler
            | Effect::TryAgain
            | Effect::Started => return,
        };
        self.seen.push(text);
    }

    fn want(&mut self, all: &[(String, Arc<Wanted>)]) {
        for (name, want) in all {
            self.give(Input::Want(name.clone(), Some(Arc::clone(want))));
        }
        for (name, _) in all {
            self.give(Input::Release(name.clone()));
        }
        for (name, _) in all {
            self.give(Input::Advance(name.clone()));
        }
    }

    fn unwant(&mut self, name: &str) {
        self.give(Input::Want(name.to_owned(), None));
        self.give(Input::Release(name.to_owned()));
        self.give(Input::Advance(name.to_owned()));
    }

    /// The oldest job ends like this.
    fn job(&mut self, result: Result<(), &str>) {
        let result = result.map_err(str::to_owned);
        match self.jobs.remove(0) {
            Job::Setup(name, _) => self.give(Input::SetUp(name, result.map(|()| None))),
            Job::Delete(name, _) => self.give(Input::Deleted(name, result.map(|()| true))),
            _ => panic!("a job of networks"),
        }
    }

    fn entry(&self, name: &str) -> &Entry {
        self.networks.get(name).unwrap()
    }

    /// All that is missing to a running network whose job has ended.
    fn run(&mut self, name: &str) {
        self.give(Input::HasTaps(name.to_owned()));
        self.give(Input::Through(self.entry(name).vid().unwrap()));
    }

    fn seen(&mut self) -> Vec<String> {
        std::mem::take(&mut self.seen)
    }

    /// Time passes until the next retry.
    fn retry(&mut self) -> Duration {
        let due = self.networks.due().unwrap();
        let after = due - self.now;
        self.now = due;
        for name in self.networks.due_by(due) {
            self.give(Input::Retry(name));
        }
        after
    }
}

/// A bench with running networks of these names.
fn running(names: &[&str]) -> Bench {
    let mut bench = Bench::new();
    bench.want(&plain(names));
    for name in names {
        bench.job(Ok(()));
        bench.run(name);
    }
    bench.seen();
    bench
}

#[test]
fn a_network_is_set_up_loaded_and_announced_when_its_routes_are_complete() {
    let mut bench = Bench::new();
    bench.want(&plain(&["red"]));
    assert_eq!(bench.seen(), ["set up red with TAPs"]);
    bench.job(Ok(()));
    assert_eq!(bench.seen(), ["load red", "red is loaded", "catch up"]);
    assert!(bench.entry("red").is_pending() && !bench.networks.are_settled());
    bench.run("red");
    let expected =
        ["NetworkCreated red: the network is set up", "run red", "place red", "red is settled: running"];
    assert_eq!(bench.seen(), expected);
    // Another report that its table is complete is no news, but its whole table may be.
    bench.run("red");
    assert_eq!(bench.seen(), Vec::<String>::new());
    bench.want(&plain(&["red"]));
    assert_eq!(bench.seen(), ["run red", "place red", "red is settled: running"]);
}

#[test]
fn a_network_whose_routes_are_late_is_announced_without_them() {
    let mut bench = Bench::new();
    bench.want(&plain(&["red"]));
    bench.job(Ok(()));
    bench.seen();
    assert_eq!(bench.retry(), SNAPSHOT_MAX);
    assert_eq!(bench.seen()[0], "NetworkCreated red: the network is set up");
    assert_eq!(bench.networks.due(), None);
}

#[test]
fn a_network_that_fails_is_retried_after_growing_pauses() {
    let mut bench = Bench::new();
    bench.want(&plain(&["red"]));
    let mut pauses = Vec::new();
    for _ in 0..7 {
        bench.job(Err("no memory"));
        pauses.push(bench.retry().as_secs());
    }
    assert_eq!(pauses, [2, 4, 8, 16, 32, 60, 60]);
    let told = |seen: &[String], what: &str| seen.iter().filter(|text| text.contains(what)).count();
    let seen = bench.seen();
    assert_eq!(told(&seen, "NetworkDegraded red: no memory"), 1, "the same reason is told once: {seen:?}");
    bench.job(Ok(()));
    bench.run("red");
    assert_eq!(told(&bench.seen(), "NetworkRecovered red"), 1);
    // After that, the first pause is short again.
    bench.give(Input::Degrade("red".to_owned(), "broken".to_owned()));
    assert_eq!(bench.retry(), RETRY_MIN);
}

#[test]
fn programs_that_fit_only_together_are_loaded_together() {
    let mut bench = Bench::new();
    bench.conflict = ["blue", "red"].map(str::to_owned).into();
    bench.want(&plain(&["blue", "green", "red"]));
    bench.seen();
    bench.job(Ok(()));
    assert_eq!(bench.seen(), ["load blue: refused"], "a job in progress may make room");
    bench.job(Ok(()));
    let expected = ["load blue: refused", "load green", "green is loaded", "catch up", "load blue: refused"];
    assert_eq!(bench.seen(), expected);
    bench.job(Ok(()));
    let expected = [
        "load blue: refused",
        "load red: refused",
        "load blue+red",
        "blue is loaded",
        "catch up",
        "red is loaded",
        "catch up",
    ];
    assert_eq!(bench.seen(), expected);
}

#[test]
fn the_last_of_programs_that_never_fit_is_degraded_then_the_others() {
    let mut bench = Bench::new();
    bench.conflict = ["blue", "nobody", "red"].map(str::to_owned).into();
    bench.want(&plain(&["blue", "red"]));
    bench.job(Ok(()));
    bench.seen();
    bench.job(Ok(()));
    let expected = [
        "load blue: refused",
        "load red: refused",
        "load blue+red: refused",
        "NetworkDegraded red: red does not fit",
        "red is settled: degraded",
        "load blue: refused",
        "NetworkDegraded blue: blue does not fit",
        "blue is settled: degraded",
    ];
    assert_eq!(bench.seen(), expected);
}

#[test]
fn a_change_that_no_namespace_has_is_loaded_in_place_or_set_up_again() {
    let mut bench = running(&["blue", "red"]);
    let mut changed = plain(&["blue", "red"]);
    for (_, want) in &mut changed {
        Arc::make_mut(want).program.weight = 7;
    }
    bench.conflict = ["nobody", "red"].map(str::to_owned).into();
    bench.want(&changed);
    let expected = [
        "load blue",
        "blue is loaded",
        "catch up",
        "load red: refused",
        "NetworkDegraded red: red does not fit",
        "red is settled: degraded",
    ];
    assert_eq!(bench.seen(), expected);
    bench.conflict.clear();
    bench.retry();
    assert_eq!(bench.seen(), ["set up red"], "after a failure its namespace is made sure of");
    bench.job(Ok(()));
    assert_eq!(bench.seen()[..2], ["load red", "red is loaded"]);
    assert!(["blue", "red"].iter().all(|name| bench.entry(name).is_as_wanted()));
}

#[test]
fn a_network_is_unloaded_before_its_namespace_is_removed() {
    let mut bench = running(&["blue", "red"]);
    let vid = bench.entry("red").vid().unwrap();
    assert_eq!(bench.networks.name_of(vid).map(String::as_str), Some("red"));
    bench.unwant("red");
    assert_eq!(bench.seen(), ["unload red", "delete red"]);
    assert_eq!((bench.networks.name_of(vid), bench.entry("red").is_busy()), (None, true));
    bench.job(Ok(()));
    let expected = ["NetworkDeleted red: the network was removed", "red is settled: gone", "make room"];
    assert_eq!(
        (bench.seen(), bench.networks.names()),
        (expected.map(str::to_owned).to_vec(), vec!["blue".to_owned()])
    );
}

#[test]
fn a_network_that_is_wanted_again_is_set_up_when_its_removal_has_ended() {
    let mut bench = running(&["red"]);
    bench.unwant("red");
    bench.want(&plain(&["red"]));
    assert_eq!(bench.seen(), ["unload red", "delete red"]);
    bench.job(Ok(()));
    assert_eq!(bench.seen(), ["set up red with TAPs"]);
    // The result of a job for another target state does not count.
    bench.unwant("red");
    bench.job(Ok(()));
    assert_eq!(bench.seen(), ["delete red"]);
    bench.job(Err("busy"));
    let expected = ["NetworkDegraded red: it cannot be removed: busy", "red is settled: degraded"];
    assert_eq!(bench.seen(), expected);
    bench.retry();
    assert_eq!(bench.seen(), ["delete red"]);
}

#[test]
fn a_lost_interface_is_created_again() {
    let mut bench = running(&["red"]);
    let (vid, have) = (bench.entry("red").vid().unwrap(), Arc::clone(bench.entry("red").have().unwrap()));
    bench.give(Input::LostInterface(vid, "foreign".to_owned()));
    assert_eq!(bench.seen(), Vec::<String>::new());
    let interface = have.ports[0].interface.clone();
    bench.give(Input::LostInterface(vid, interface.clone()));
    let reason = format!("interface {interface} of its namespace was removed; it is created again");
    let expected = ["remove TAPs of red".to_owned(), format!("NetworkDegraded red: {reason}")];
    assert_eq!(bench.seen()[..2], expected);
    bench.retry();
    assert_eq!(bench.seen(), ["set up red with TAPs"]);
    bench.job(Ok(()));
    bench.run("red");
    assert!(bench.seen().contains(&"NetworkRecovered red: the network is as desired again".to_owned()));
}

#[test]
fn a_torn_table_is_loaded_as_a_whole() {
    let mut bench = running(&["red"]);
    let vid = bench.entry("red").vid().unwrap();
    bench.give(Input::Degrade("red".to_owned(), "its routes do not fit".to_owned()));
    bench.torn = true;
    bench.seen();
    bench.retry();
    assert_eq!(bench.seen(), ["load the whole table"]);
    bench.give(Input::Partly(vid));
    assert!(bench.entry("red").is_pending());
    bench.give(Input::Whole(vid));
    assert!(bench.seen().contains(&"red is settled: running".to_owned()));
}

#[test]
fn what_an_earlier_daemon_left_is_adopted_or_removed() {
    let mut bench = Bench::new();
    bench.give(Input::Left(vec!["old".to_owned(), "red".to_owned()]));
    bench.want(&plain(&["red"]));
    assert_eq!(bench.networks.unwanted(), ["old"]);
    bench.unwant("old");
    bench.job(Ok(()));
    bench.run("red");
    assert!(!bench.networks.are_settled(), "something is left");
    bench.job(Ok(()));
    assert!(bench.networks.are_settled());
    let seen = bench.seen();
    let adopted = "Adopted red: the network continues in the namespace of an earlier daemon".to_owned();
    let cleaned = "network old, left by an earlier daemon, was removed".to_owned();
    assert!(seen.contains(&adopted) && seen.contains(&cleaned), "{seen:?}");
    assert!(!seen.iter().any(|text| text.starts_with("NetworkDeleted")), "nobody knew it: {seen:?}");
}

#[test]
fn a_tunnel_has_a_link_while_its_carrier_reaches_the_far_end() {
    let port = "{name: x, port: p0, mac: '02:00:00:00:00:01', addresses: [192.0.2.1/24]}";
    let tunnel = "{name: t, tunnel: {type: ipip, local: 192.0.2.1, remote: 192.0.2.2}, over: wan, addresses: [10.0.0.1/24]}";
    let all = wanted(&[("lan", &format!("ports: [{tunnel}]")), ("wan", &format!("ports: [{port}]"))]);
    let mut bench = Bench::new();
    bench.want(&all);
    bench.job(Ok(()));
    let attached = |taps| Attached { taps: Some(taps), all_taps: true, ..Attached::default() };
    bench.give(Input::Attached("lan".to_owned(), attached(1)));
    bench.give(Input::TellCarriers("lan".to_owned()));
    assert!(!bench.seen().contains(&"lan 0 up".to_owned()), "its carrier is being set up");
    bench.job(Ok(()));
    bench.run("wan");
    assert!(bench.seen().contains(&"lan 0 up".to_owned()));
    bench.give(Input::TellPassengers("wan".to_owned()));
    assert_eq!(bench.seen(), Vec::<String>::new(), "the kernel knows it already");
    bench.reaches = false;
    bench.give(Input::TellPassengers("wan".to_owned()));
    assert_eq!(bench.seen(), ["lan 0 down"]);
    bench.reaches = true;
    bench.give(Input::TellPassengers("wan".to_owned()));
    bench.seen();
    bench.unwant("wan");
    assert_eq!(
        bench.seen(),
        ["unload wan", "delete wan"],
        "its passengers are told nothing before it is gone"
    );
}

#[test]
fn what_a_namespace_refuses_degrades_the_network_but_it_keeps_its_taps() {
    let mut bench = running(&["red"]);
    let problem = Some("address 10.0.1.1 (and 1 more)".to_owned());
    let attached = Attached { taps: Some(1), all_taps: true, control: None, problem };
    bench.give(Input::Attached("red".to_owned(), attached));
    assert_eq!(bench.entry("red").reason().map(String::as_str), Some("address 10.0.1.1 (and 1 more)"));
    assert!(bench.networks.without_taps().is_empty());
    bench.seen();
    bench.retry();
    assert_eq!(bench.seen(), ["set up red"], "its TAPs stay open");
}

#[test]
fn repeated_drift_is_told_once_and_repaired() {
    let mut bench = running(&["red"]);
    let now = bench.now;
    let drifted = |bench: &mut Bench| {
        let around =
            Around { is_torn: &|_| false, reaches: &|_, _| true, has_link: &|_, _| None, now: bench.now };
        let mut out = Vec::new();
        bench.networks.drifted("red", "port x is down".to_owned(), &around, &mut out);
        out.into_iter().for_each(|effect| bench.apply(effect));
    };
    drifted(&mut bench);
    assert_eq!(bench.seen(), ["Drifted red: port x is down", "red is settled: degraded"]);
    drifted(&mut bench);
    assert_eq!((bench.seen(), bench.networks.due()), (Vec::new(), Some(now + Duration::from_secs(1))));
    bench.retry();
    bench.job(Ok(()));
    bench.run("red");
    let repaired = "Repaired red: the network is as desired again, after: port x is down".to_owned();
    assert!(bench.seen().contains(&repaired));
}
