//! veth to veth: throughput under overload, and one-way latency at a low rate and at half of what each contestant carries;
//! contestants in turn.

use serde_json::json;

use crate::Settings;
use crate::contestant::{Contestant, names};
use crate::load::{self, Offer};
use crate::measure::Spread;
use crate::report::{Report, Section, round};
use crate::rounds::{interleave, three};

/// Packets a second of the low rate.
const LOW: f64 = 10_000.0;

/// Measures.
pub fn run(settings: &Settings, report: &mut Report) -> Result<(), String> {
    let mut contestants = Vec::new();
    for networks in [1, 15] {
        let mut add = |name: &str, make: &dyn Fn() -> Option<Contestant>| {
            if settings.wants(&format!("{name}, {networks} ")) {
                eprintln!("  set up: {name}, {networks}");
                contestants.extend(make());
            }
        };
        add("Linux forwarding", &|| Some(Contestant::linux(networks)));
        for driver in ["afxdp", "packet", "tap", "card"] {
            add(&format!("hueplane {driver}"), &|| Some(Contestant::hueplane(driver, networks)));
        }
        for ports in ["afxdp", "system"] {
            add(&format!("Open vSwitch user space {ports}"), &|| Contestant::ovs(ports, networks));
        }
        add("XDP devmap", &|| Some(Contestant::fast_path(networks)));
    }
    contestants.push(Contestant::wire());
    contestants.iter().for_each(|contestant| contestant.run(false));
    for bytes in [64, 1500] {
        let rates = throughput(settings, &contestants, bytes, report);
        let rates: Vec<f64> = rates.iter().map(Spread::median).collect();
        latencies(settings, &contestants, bytes, report, &rates);
    }
    Ok(())
}

fn throughput(
    settings: &Settings,
    contestants: &[Contestant],
    bytes: usize,
    report: &mut Report,
) -> Vec<Spread> {
    let what = format!("throughput, {bytes}-byte frames");
    let mut wrong = vec![0; contestants.len()];
    let figures = interleave(&what, &names(contestants), settings.rounds, |i| {
        let contestant = &contestants[i];
        let offer = Offer::full(bytes, contestant.wires.networks, settings.seconds);
        let outcome = contestant.alone(|| load::offer(contestant, &offer));
        wrong[i] += outcome.wrong;
        vec![outcome.arrived, outcome.offered]
    });
    let mut section = Section::new(
        format!("Throughput, {bytes}-byte frames"),
        &["contestant", "k packets/s median", "min", "max", "of Linux", "offered k/s", "wrong"],
    );
    for (i, contestant) in contestants.iter().enumerate() {
        let linux = contestants.iter().position(|other| {
            matches!(other.kind, crate::contestant::Kind::Linux)
                && other.wires.networks == contestant.wires.networks
        });
        let mut row = vec![json!(contestant.name)];
        row.extend(three(&figures[i][0], 1e-3, 1));
        row.push(linux.map_or(json!(null), |linux| {
            round(figures[i][0].median() / figures[linux][0].median().max(1.0), 2)
        }));
        row.push(round(figures[i][1].median() / 1e3, 1));
        row.push(json!(wrong[i]));
        section.row(row);
    }
    section.note(
        "Delivered rate while one core offers as many frames as it can; not the highest rate without loss. What counts is what the \
         sink got with TTL and checksum right. Frames are made in the kernel and handed to the wire by XDP; the generator's core also \
         runs what the kernel does on reception up to where a contestant takes over (AF_XDP: the XDP program and the copy into the \
         ring; packet socket and Open vSwitch's system ports: the same into theirs; Linux: up to the queue of the other core; \
         TAP: into its ring). Contestants run on the other core, and so does the sink's program.",
    );
    report.push(section);
    figures.into_iter().map(|mut figures| figures.swap_remove(0)).collect()
}

/// Measures latency at a low rate, and at half of each contestant's throughput.
pub fn latencies(
    settings: &Settings,
    contestants: &[Contestant],
    bytes: usize,
    report: &mut Report,
    throughput: &[f64],
) {
    latency(settings, contestants, bytes, report, "low rate", &vec![LOW; contestants.len()]);
    let half: Vec<f64> = throughput.iter().map(|rate| rate / 2.0).collect();
    latency(settings, contestants, bytes, report, "half of its throughput", &half);
}

fn latency(
    settings: &Settings,
    contestants: &[Contestant],
    bytes: usize,
    report: &mut Report,
    load: &str,
    rates: &[f64],
) {
    let what = format!("latency, {bytes}-byte frames, {load}");
    let figures = interleave(&what, &names(contestants), settings.rounds, |i| {
        let contestant = &contestants[i];
        let offer = Offer::steady(bytes, contestant.wires.networks, rates[i], settings.seconds);
        let outcome = contestant.alone(|| load::offer(contestant, &offer));
        vec![outcome.latency_us(0.5), outcome.latency_us(0.99), outcome.loss * 100.0, outcome.busy * 100.0]
    });
    let mut section = Section::new(
        format!("One-way latency, {bytes}-byte frames, {load}"),
        &[
            "contestant",
            "k packets/s",
            "p50 us median",
            "min",
            "max",
            "p99 us median",
            "min",
            "max",
            "lost % median",
            "max",
            "forwarder's core busy %",
        ],
    );
    for (i, contestant) in contestants.iter().enumerate() {
        let [p50, p99, loss, busy] = &figures[i][..] else { continue };
        let mut row = vec![json!(contestant.name), round(rates[i] / 1e3, 1)];
        row.extend(three(p50, 1.0, 1));
        row.extend(three(p99, 1.0, 1));
        row.extend([loss.median(), loss.max()].map(|share| round(share, 3)));
        row.push(round(busy.median(), 0));
        section.row(row);
    }
    section.note(
        "From where the generator makes a frame to where the sink's network stack has it, every frame timed, within 1.6 %. Frames are \
         paced one by one by the clock; up to eight go together when the generator was held up.",
    );
    report.push(section);
}
