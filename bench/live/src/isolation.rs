//! One network floods the port and ring that it shares with 14 others: their loss and latency, against the same without it.
//!
//! One thread makes both kinds of frames: the victims' at their pace, and as many hostile ones as there is time for. Victims are
//! counted by the node as they leave it; a timed probe in one of them is measured at the sink.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use hue_e2e::Raw;
use hue_e2e::frame::{self, BROADCAST, Ends};
use serde_json::json;

use crate::Settings;
use crate::contestant::{Contestant, Kind};
use crate::load::{self, Latency, Probe};
use crate::machine::{self, GENERATOR_CORE};
use crate::measure::{Spread, interleave};
use crate::report::{Report, Section, round};
use crate::wires::{self, GENERATOR, Wires};

const NETWORKS: u16 = 15;
/// The network that floods; victims are those before it.
const HOSTILE: u16 = NETWORKS;
/// A victim's share of what the node can carry.
const SHARE: f64 = 0.05;
/// Packets a second of the probe.
const PROBE: u32 = 500;
/// Hostile frames between two looks at the clock.
const BURST: usize = 32;

/// Measures.
pub fn run(settings: &Settings, report: &mut Report) {
    let contestant = Contestant::hueplane("afxdp", NETWORKS);
    let capacity = (0..3)
        .map(|_| {
            load::throughput(&contestant, contestant.frames(3, 64), None, settings.round_seconds()).arrived
        })
        .fold(0.0, f64::max);
    let rate = capacity * SHARE * f64::from(NETWORKS - 1);
    let floods = floods();
    let mut victims: Vec<Vec<f64>> = vec![Vec::new(); floods.len()];
    let mut probes: Vec<Latency> = vec![Latency::default(); floods.len()];
    let mut hostile = vec![0.0; floods.len()];
    let mut offered = vec![0.0; floods.len()];
    let p99 = interleave(floods.len(), settings.rounds(), |i| {
        let outcome = round_of(&contestant, &floods[i].1, rate, settings.round_seconds());
        victims[i].push(outcome.loss);
        hostile[i] = outcome.hostile;
        offered[i] = outcome.victims;
        probes[i].sent += outcome.probe.sent;
        probes[i].ns.extend(&outcome.probe.ns);
        (outcome.probe.us(0.99), 1.0)
    });
    let mut section = Section::new(
        format!(
            "14 networks at 5 % each of {:.0} k packets/s, one hostile network on the same ports",
            capacity / 1e3
        ),
        &[
            "flood",
            "flood k/s",
            "14 together k/s",
            "their loss % median",
            "min",
            "max",
            "probe loss %",
            "p99 us median",
            "min",
            "max",
        ],
    );
    for (i, (name, _)) in floods.iter().enumerate() {
        let loss = Spread::new(victims[i].split_off(1));
        let mut row = vec![json!(name), round(hostile[i] / 1e3, 1), round(offered[i] / 1e3, 1)];
        row.extend([loss.median(), loss.min(), loss.max()].map(|share| round(share * 100.0, 3)));
        row.push(round(probes[i].loss() * 100.0, 3));
        row.extend([p99[i].median(), p99[i].min(), p99[i].max()].map(|us| round(us, 1)));
        section.row(row);
    }
    section.note(
        "Victims and flood are made by one core, so that a flood also takes time from the victims' generator; loss is of what it sent. \
         Loss: what victims sent and their networks did not send on, by the node's own counters. Probe: 500 timed packets a second in \
         one victim network, received by the sink.",
    );
    report.push(section);
}

/// Hostile frames, by name.
fn floods() -> Vec<(&'static str, Vec<Vec<u8>>)> {
    let router = wires::router(HOSTILE, 0);
    let udp = |mac, address, ttl| {
        frame::udp(
            Ends { macs: [mac, GENERATOR], addresses: [wires::left(HOSTILE, 2), address], ttl },
            [9, 9],
            &[0; 18],
        )
    };
    let right = wires::right(HOSTILE, 3);
    let arp = |host| {
        frame::arp(
            [BROADCAST, GENERATOR],
            1,
            (GENERATOR, wires::left(HOSTILE, 2)),
            ([0; 6], wires::left(HOSTILE, host)),
        )
    };
    vec![
        ("none", Vec::new()),
        ("valid packets", vec![udp(router, right, 64)]),
        ("TTL 1", vec![udp(router, right, 1)]),
        ("ARP requests", (1..=254).map(arp).collect()),
        ("broadcast", vec![udp(BROADCAST, [255; 4].into(), 64)]),
        ("for nobody", vec![udp([2, 0xde, 0xad, 0, 0, 1], right, 64)]),
    ]
}

struct Outcome {
    /// Victims' packets a second that were sent.
    victims: f64,
    /// Share of them that was lost.
    loss: f64,
    /// Hostile packets a second that were sent.
    hostile: f64,
    probe: Latency,
}

/// Packets that the victims' networks sent on.
fn sent_on(contestant: &Contestant) -> u64 {
    let Kind::Hueplane(daemon) = &contestant.kind else { return 0 };
    let json = daemon.cli.json(&["stats"]);
    let hostile = contestant.wires.document(HOSTILE).name;
    let all = json["networks"].as_array().into_iter().flatten();
    all.filter(|network| network["network"] != hostile.as_str())
        .filter_map(|network| network["sent"].as_u64())
        .sum()
}

fn round_of(contestant: &Contestant, flood: &[Vec<u8>], rate: f64, seconds: f64) -> Outcome {
    let victims: Vec<Vec<u8>> = (1..HOSTILE).map(|n| Wires::frame(n, 3, 64, contestant.router(n))).collect();
    let before = sent_on(contestant);
    let probe = Probe::start(contestant, 1, 64, PROBE);
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = stop.clone();
    let mut raw = Raw::open(&contestant.wires.generator, "eth0");
    let flood = flood.to_vec();
    let sender = std::thread::spawn(move || {
        machine::pin(0, GENERATOR_CORE);
        mixed(&mut raw, &victims, &flood, rate, &stopped)
    });
    let start = Instant::now();
    std::thread::sleep(Duration::from_secs_f64(seconds));
    stop.store(true, Ordering::Relaxed);
    let (sent, hostile) = sender.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    let elapsed = start.elapsed().as_secs_f64();
    let probe = probe.stop();
    std::thread::sleep(Duration::from_millis(300));
    // The probe's packets are a victim's too, and left by the same counter.
    let arrived = (sent_on(contestant) - before).saturating_sub(probe.ns.len() as u64);
    Outcome {
        victims: sent as f64 / elapsed,
        loss: 1.0 - (arrived as f64 / sent.max(1) as f64).min(1.0),
        hostile: hostile as f64 / elapsed,
        probe,
    }
}

/// Victims' frames at their rate, hostile ones in between; how many of each.
fn mixed(raw: &mut Raw, victims: &[Vec<u8>], flood: &[Vec<u8>], rate: f64, stop: &AtomicBool) -> (u64, u64) {
    let (mut sent, mut hostile, mut due) = (0u64, 0u64, 0.0f64);
    let (mut turn, mut bad) = (victims.iter().cycle(), flood.iter().cycle());
    let mut last = Instant::now();
    while !stop.load(Ordering::Relaxed) {
        let now = Instant::now();
        // A generator that had to wait goes on at its rate; it does not catch up by a burst.
        due += (now.duration_since(last).as_secs_f64() * rate).min(64.0);
        last = now;
        let count = due as usize;
        due -= count as f64;
        sent += raw.send(turn.by_ref().take(count).map(Vec::as_slice));
        if flood.is_empty() {
            std::thread::sleep(Duration::from_micros(20));
        } else {
            hostile += raw.send(bad.by_ref().take(BURST).map(Vec::as_slice));
        }
    }
    (sent, hostile)
}
