//! One network floods the port and ring that it shares with 14 others: their loss and latency, compared with those without it.
//!
//! One core sends both: the victims' frames at their rate, each with a timestamp, and hostile frames in the remaining time.
//! The sink counts the victims' losses.

use hue_e2e::frame::{self, BROADCAST, Ends};
use serde_json::json;

use crate::Settings;
use crate::contestant::Contestant;
use crate::load::{self, Offer};
use crate::report::{Report, Section, round};
use crate::rounds::{interleave, three};
use crate::wires::{self, GENERATOR};

const NETWORKS: u16 = 15;
/// The network that floods; victims are those before it.
const HOSTILE: u16 = NETWORKS;
/// A victim's share of what the node can carry.
const SHARE: f64 = 0.05;
/// Bytes of payload for a frame of 60 bytes.
const PAYLOAD_BYTES: usize = 18;

/// Measures.
pub fn run(settings: &Settings, report: &mut Report) -> Result<(), String> {
    for driver in ["afxdp", "packet"] {
        let contestant = Contestant::hueplane(driver, NETWORKS);
        report.push(one(settings, &contestant, driver));
    }
    Ok(())
}

fn one(settings: &Settings, contestant: &Contestant, driver: &str) -> Section {
    let mut capacity =
        [0.0; 3].map(|_: f64| load::offer(contestant, &Offer::full(64, NETWORKS, settings.seconds)).arrived);
    capacity.sort_by(f64::total_cmp);
    let rate = capacity[1] * SHARE * f64::from(NETWORKS - 1);
    let floods = floods();
    let names: Vec<&str> = floods.iter().map(|(name, _)| *name).collect();
    let figures = interleave(&format!("isolation, {driver}"), &names, settings.rounds, |i| {
        let flood = floods[i].1.clone();
        let offer = Offer { flood, ..Offer::steady(64, NETWORKS - 1, rate, settings.seconds) };
        let outcome = load::offer(contestant, &offer);
        vec![
            outcome.loss * 100.0,
            outcome.latency_us(0.5),
            outcome.latency_us(0.99),
            outcome.offered / 1e3,
            outcome.flood / 1e3,
        ]
    });
    let mut section = Section::new(
        format!(
            "{driver}: 14 networks at 5 % each of {:.0} k packets/s, one hostile network on the same ports",
            capacity[1] / 1e3
        ),
        &[
            "flood",
            "flood k/s",
            "14 together k/s",
            "their loss % median",
            "min",
            "max",
            "p50 us median",
            "p99 us median",
            "min",
            "max",
        ],
    );
    for (name, figures) in names.iter().zip(&figures) {
        let [loss, p50, p99, offered, flood] = &figures[..] else { continue };
        let mut row = vec![json!(name), round(flood.median(), 1), round(offered.median(), 1)];
        row.extend(three(loss, 1.0, 3));
        row.push(round(p50.median(), 1));
        row.extend(three(p99, 1.0, 1));
        section.row(row);
    }
    section.note(
        "Loss: frames of the 14 that did not reach the sink, of those that were made. One core makes victims' frames and the flood, and \
         runs the XDP program on both; frames of victims are made when they are due, and never in a burst to catch up.",
    );
    section
}

/// Hostile frames, by name.
fn floods() -> Vec<(&'static str, Vec<Vec<u8>>)> {
    let router = wires::router(HOSTILE, 0);
    let udp = |mac, address, ttl| {
        let ends = Ends { macs: [mac, GENERATOR], addresses: [wires::left(HOSTILE, 2), address], ttl };
        frame::udp(ends, [9, 9], &load::payload(HOSTILE, PAYLOAD_BYTES))
    };
    let right = wires::right(HOSTILE, 2);
    let arp = |host| {
        let (own, other) = (wires::left(HOSTILE, 2), wires::left(HOSTILE, host));
        frame::arp([BROADCAST, GENERATOR], 1, (GENERATOR, own), ([0; 6], other))
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
