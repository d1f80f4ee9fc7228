//! veth to veth: throughput under overload, cost at a steady rate, one-way latency; each contestant in turn.

use serde_json::{Value, json};

use crate::Settings;
use crate::contestant::Contestant;
use crate::load::{self, Probe};
use crate::measure::{Spread, interleave};
use crate::report::{Report, Section, round};

/// Packets a second of the steady rate: all contestants carry it without loss.
const STEADY: u32 = 50_000;
/// Packets a second of the latency probe.
const PROBE: u32 = 5_000;

/// Measures.
pub fn run(settings: &Settings, report: &mut Report) {
    let mut contestants = vec![Contestant::linux(1), Contestant::linux(15)];
    if !settings.peers {
        contestants.push(Contestant::hueplane("afxdp", 1));
        contestants.push(Contestant::hueplane("afxdp", 15));
        contestants.push(Contestant::hueplane("packet", 1));
    }
    contestants.extend(Contestant::ovs("afxdp", 1));
    contestants.extend(Contestant::ovs("system", 1));
    contestants.push(Contestant::wire());
    contestants.iter().for_each(|contestant| contestant.run(false));
    for bytes in [64, 1500] {
        report.push(throughput(settings, &contestants, bytes));
    }
    for bytes in [64, 1500] {
        report.push(latency(settings, &contestants, bytes));
    }
}

/// Runs one contestant, the others stopped.
fn alone<T>(contestant: &Contestant, work: impl FnOnce() -> T) -> T {
    contestant.run(true);
    let result = work();
    contestant.run(false);
    result
}

fn throughput(settings: &Settings, contestants: &[Contestant], bytes: usize) -> Section {
    let mut section = Section::new(
        format!("Throughput, {bytes}-byte frames"),
        &[
            "contestant",
            "k packets/s median",
            "min",
            "max",
            "of Linux",
            "offered k/s",
            "core us a packet",
            "min",
            "max",
        ],
    );
    let mut offered = vec![0.0; contestants.len()];
    let arrived = interleave(contestants.len(), settings.rounds(), |i| {
        let contestant = &contestants[i];
        let measured = alone(contestant, || {
            load::throughput(contestant, contestant.frames(3, bytes), None, settings.round_seconds())
        });
        offered[i] = measured.offered;
        (measured.arrived, 1.0)
    });
    let cost = interleave(contestants.len(), settings.rounds(), |i| {
        let contestant = &contestants[i];
        let measured = alone(contestant, || {
            load::throughput(contestant, contestant.frames(3, bytes), Some(STEADY), settings.round_seconds())
        });
        (measured.core_us, 1.0)
    });
    let linux = arrived.first().map_or(1.0, Spread::median);
    for (i, contestant) in contestants.iter().enumerate() {
        let thousand = |value: f64| round(value / 1e3, 1);
        let mut row = vec![json!(contestant.name)];
        row.extend([arrived[i].median(), arrived[i].min(), arrived[i].max()].map(thousand));
        row.push(round(arrived[i].median() / linux.max(1.0), 2));
        row.push(thousand(offered[i]));
        row.extend([cost[i].median(), cost[i].min(), cost[i].max()].map(|us| round(us, 2)));
        section.row(row);
    }
    section.note(format!(
        "One core generates as much as it can, one forwards; what the sink's interface receives counts. Core microseconds a packet: \
         processor time of the whole machine while {STEADY} packets a second pass, generator and sink included; the wire's is what \
         they take without a forwarder."
    ));
    section
}

fn latency(settings: &Settings, contestants: &[Contestant], bytes: usize) -> Section {
    let mut section = Section::new(
        format!("One-way latency, {bytes}-byte frames, {PROBE} packets/s"),
        &["contestant", "p50 us median", "min", "max", "p99 us median", "min", "max", "lost"],
    );
    let mut lost = vec![(0u64, 0u64); contestants.len()];
    let mut p99: Vec<Vec<f64>> = vec![Vec::new(); contestants.len()];
    let p50 = interleave(contestants.len(), settings.rounds(), |i| {
        let contestant = &contestants[i];
        let latency = alone(contestant, || {
            let probe = Probe::start(contestant, 1, bytes, PROBE);
            std::thread::sleep(std::time::Duration::from_secs_f64(settings.round_seconds()));
            probe.stop()
        });
        lost[i].0 += latency.sent - (latency.ns.len() as u64).min(latency.sent);
        lost[i].1 += latency.sent;
        p99[i].push(latency.us(0.99));
        (latency.us(0.5), 1.0)
    });
    for (i, contestant) in contestants.iter().enumerate() {
        // The first round warmed up.
        let p99 = Spread::new(p99[i].split_off(1));
        let mut row = vec![json!(contestant.name)];
        row.extend(p50_p99(&p50[i], &p99));
        row.push(json!(format!("{} of {}", lost[i].0, lost[i].1)));
        section.row(row);
    }
    section.note("From before the generator's system call to the kernel's time of receipt at the sink.");
    section
}

fn p50_p99(p50: &Spread, p99: &Spread) -> impl Iterator<Item = Value> {
    [p50.median(), p50.min(), p50.max(), p99.median(), p99.min(), p99.max()]
        .map(|us| round(us, 1))
        .into_iter()
}
