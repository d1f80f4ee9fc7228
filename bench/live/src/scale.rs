//! Many networks on one node: the cost of each to set up, keep and change, and the effect of their number on packets.

use std::time::Instant;

use serde_json::json;

use crate::Settings;
use crate::contestant::{self, Contestant, Kind, names};
use crate::load::{self, Offer};
use crate::machine::{self, FORWARDER_CORE, Memory};
use crate::report::{Report, Section, mib, round};
use crate::rounds::{interleave, three};
use crate::wires::Wires;

const SIZES: [u16; 4] = [1, 15, 50, 200];

/// Measures.
pub fn run(settings: &Settings, report: &mut Report) -> Result<(), String> {
    let mut setup = Section::new(
        "Set-up and memory, AF_XDP",
        &[
            "networks",
            "set-up s",
            "ms a network",
            "daemon RSS MiB",
            "KiB a network",
            "kernel KiB a network",
            "machine KiB a network",
        ],
    );
    let mut contestants: Vec<Contestant> = Vec::new();
    let mut alone_bytes = 0;
    for networks in SIZES {
        eprintln!("  set up: {networks} networks");
        let wires = Wires::veth(networks);
        let (start, before) = (Instant::now(), Memory::now());
        let daemon = contestant::hueplane(&wires, "afxdp");
        let elapsed = start.elapsed().as_secs_f64();
        let after = Memory::now();
        let memory = daemon.memory_bytes();
        if networks == 1 {
            alone_bytes = memory;
        }
        let each = |bytes: u64, of: u16| round(bytes as f64 / 1024.0 / f64::from(of), 1);
        setup.row(vec![
            json!(networks),
            round(elapsed, 2),
            round(elapsed * 1e3 / f64::from(networks), 1),
            mib(memory),
            each(memory.saturating_sub(alone_bytes), (networks - 1).max(1)),
            each(after.kernel.saturating_sub(before.kernel), networks),
            each(before.available.saturating_sub(after.available), networks),
        ]);
        contestants.push(Contestant::running(format!("{networks} networks"), wires, daemon));
    }
    setup.note(
        "Set-up: from starting the daemon until all networks run, with the daemon's own start. RSS a network: what the daemon has more \
         than with one network. Kernel: growth of slabs, per-processor areas, stacks and page tables of the whole machine; machine: of \
         what is not available any more. Both take in what else happens on the machine meanwhile, and with one network the daemon itself.",
    );
    report.push(setup);
    report.push(changes(settings, &contestants));
    report.push(throughput(settings, &contestants));
    Ok(())
}

fn changes(settings: &Settings, contestants: &[Contestant]) -> Section {
    let mut weight = 0;
    let figures = interleave("one change", &names(contestants), settings.rounds, |i| {
        let Kind::Hueplane(daemon) = &contestants[i].kind else { return vec![0.0] };
        weight += 1;
        let document =
            contestants[i].wires.document(1).with("weight", &(1 + weight % 900).to_string()).yaml();
        let start = Instant::now();
        daemon.cli.apply(&document, &[]);
        let elapsed = start.elapsed().as_secs_f64();
        machine::pin_process(daemon.pid(), FORWARDER_CORE);
        vec![elapsed * 1e3]
    });
    let mut section = Section::new("One change", &["networks", "apply ms median", "min", "max"]);
    for (contestant, figures) in contestants.iter().zip(&figures) {
        let mut row = vec![json!(contestant.wires.networks)];
        row.extend(three(&figures[0], 1.0, 1));
        section.row(row);
    }
    section.note("Another weight for one network: `hueplane apply` from its start to its end, which is when the change is in force.");
    section
}

fn throughput(settings: &Settings, contestants: &[Contestant]) -> Section {
    let figures = interleave("throughput", &names(contestants), settings.rounds, |i| {
        let offer = Offer::full(64, contestants[i].wires.networks, settings.seconds);
        vec![load::offer(&contestants[i], &offer).arrived]
    });
    let mut section = Section::new(
        "Throughput over all networks in turn, 64-byte frames, AF_XDP",
        &["networks", "k packets/s median", "min", "max", "of 1 network"],
    );
    for (contestant, rates) in contestants.iter().zip(&figures) {
        let mut row = vec![json!(contestant.wires.networks)];
        row.extend(three(&rates[0], 1e-3, 1));
        row.push(round(rates[0].median() / figures[0][0].median().max(1.0), 2));
        section.row(row);
    }
    section
}
