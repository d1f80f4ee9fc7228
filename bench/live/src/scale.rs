//! Many networks on one node: what each costs to set up, to keep and to change, and what their number costs the packets.

use std::time::Instant;

use serde_json::json;

use crate::Settings;
use crate::contestant::{self, Contestant, Kind};
use crate::load;
use crate::machine::{self, FORWARDER_CORE};
use crate::measure::interleave;
use crate::report::{Report, Section, mib, round};
use crate::wires::Wires;

const SIZES: [u16; 4] = [1, 15, 50, 200];

/// Measures.
pub fn run(settings: &Settings, report: &mut Report) {
    let mut setup = Section::new(
        "Set-up, memory, one change",
        &[
            "networks",
            "set-up ms a network",
            "daemon MiB",
            "daemon KiB a network",
            "machine KiB a network",
            "apply of one change ms median",
            "min",
            "max",
        ],
    );
    let mut contestants: Vec<Contestant> = Vec::new();
    let mut alone_bytes = 0;
    for networks in SIZES {
        let wires = Wires::new(networks);
        let (before, available) = (Instant::now(), machine::available_bytes());
        let daemon = contestant::hueplane(&wires, "afxdp");
        let elapsed = before.elapsed().as_secs_f64();
        let used = available.saturating_sub(machine::available_bytes());
        let memory = daemon.memory_bytes();
        if networks == 1 {
            alone_bytes = memory;
        }
        let each = |bytes: u64, of: u64| round(bytes as f64 / 1024.0 / of as f64, 1);
        let more = u64::from(networks - 1).max(1);
        let changes = interleave(1, settings.rounds(), |_| {
            // Another weight each time.
            let weight = 1 + before.elapsed().as_micros() % 900;
            let document = wires.document(1).with("weight", &weight.to_string()).yaml();
            let start = Instant::now();
            daemon.cli.apply(&document, &[]);
            (start.elapsed().as_secs_f64() * 1e3, 1.0)
        });
        machine::pin_process(daemon.pid(), FORWARDER_CORE);
        let mut row = vec![
            json!(networks),
            round(elapsed * 1e3 / f64::from(networks), 1),
            mib(memory),
            each(memory.saturating_sub(alone_bytes), more),
            each(used, u64::from(networks)),
        ];
        row.extend([changes[0].median(), changes[0].min(), changes[0].max()].map(|ms| round(ms, 1)));
        setup.row(row);
        let name = format!("{networks} networks");
        contestants.push(Contestant { name, wires, kind: Kind::Hueplane(Box::new(daemon)) });
    }
    setup.note("Set-up: from starting the daemon until all networks run. A change is applied by the command line, its start included.");
    report.push(setup);

    let mut section = Section::new(
        "Throughput over all networks in turn, 64-byte frames, AF_XDP",
        &["contestant", "k packets/s median", "min", "max", "of 1 network"],
    );
    let arrived = interleave(contestants.len(), settings.rounds(), |i| {
        let contestant = &contestants[i];
        let frames = contestant.frames(3, 64);
        (load::throughput(contestant, frames, None, settings.round_seconds()).arrived, 1.0)
    });
    for (spread, contestant) in arrived.iter().zip(&contestants) {
        let mut row = vec![json!(contestant.name)];
        row.extend([spread.median(), spread.min(), spread.max()].map(|value| round(value / 1e3, 1)));
        row.push(round(spread.median() / arrived[0].median().max(1.0), 2));
        section.row(row);
    }
    report.push(section);
}
