//! A busy machine: losses of a network at a modest rate, and the waiting time of its packets, for each way of scheduling the
//! threads that forward (decision 0025), and the processor time that is left for other processes.
//!
//! Except for the product's own two ways, the scheduling is set from outside, on a daemon that runs with `--scheduling fair`.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use hue_e2e::document::all;
use hue_e2e::traffic::Flow;
use hue_e2e::{Burners, Cli, Daemon, Lab, Pair, until};
use serde_json::json;

use crate::Settings;
use crate::report::{Report, Section, round};
use crate::rounds::{interleave, three};

/// Networks on the two ports; one of them is active.
const NETWORKS: u8 = 15;
/// Packets a second.
const RATE: u32 = 2_500;
/// Busy processes beside it.
const BURNERS: [usize; 3] = [2, 4, 8];
/// How threads are scheduled: the name, and the option of the daemon.
const WAYS: [(&str, &str); 5] = [
    ("fair, nice -10 (--scheduling fair)", "fair"),
    ("fair, 256 times the weight (control group)", "fair"),
    ("round robin without a bound", "fair"),
    ("deadline, 0.9 of each ms", "fair"),
    ("round robin, 15/16 at most (--scheduling realtime)", "realtime"),
];
/// The control group of the second way, where controllers are of version 1.
const GROUP: &str = "/sys/fs/cgroup/cpu/hueplane-bench";
/// That weight.
const SHARES: &str = "262144";

/// Where the network runs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Software,
    Card,
    BehindCard,
}

/// Measures.
///
/// # Errors
/// Never: losses are the result.
pub fn run(settings: &Settings, report: &mut Report) -> Result<(), String> {
    for (place, title) in [
        (Place::Software, "in software"),
        (Place::Card, "on the card's twin"),
        (Place::BehindCard, "in software behind the card's twin"),
    ] {
        for burners in BURNERS {
            report.push(one(settings, place, title, burners));
        }
    }
    Ok(())
}

fn one(settings: &Settings, place: Place, title: &str, burners: usize) -> Section {
    let mut section = Section::new(
        format!("{RATE} packets/s of one network of {NETWORKS} {title}, {burners} busy processes"),
        &[
            "scheduling",
            "lost % median",
            "min",
            "max",
            "longest wait ms median",
            "min",
            "max",
            "cores of the others",
        ],
    );
    let ways: Vec<_> = WAYS.iter().filter(|(name, _)| settings.wants(name) && is_possible(name)).collect();
    let names: Vec<&str> = ways.iter().map(|(name, _)| *name).collect();
    let figures = interleave(&format!("{title}, {burners}"), &names, settings.rounds, |i| {
        let (name, option) = ways[i];
        measure(settings, place, name, option, burners)
    });
    for (name, figures) in names.iter().zip(&figures) {
        let [lost, wait, others] = &figures[..] else { continue };
        let mut row = vec![json!(name)];
        row.extend(three(lost, 1.0, 3));
        row.extend(three(wait, 1.0, 1));
        row.push(round(others.median(), 2));
        section.row(row);
    }
    section.note(
        "The longest wait is that of the packet that took longest from its sender to the receiving host's kernel. Sender and receiver \
         compete with the busy processes, too: what is not sent is not lost.",
    );
    section
}

/// Whether this machine supports a way.
fn is_possible(name: &str) -> bool {
    !name.contains("control group")
        || Path::new(GROUP).parent().is_some_and(|root| root.join("cpu.shares").exists())
}

/// Percent lost, the longest wait in milliseconds, cores that the busy processes had.
fn measure(settings: &Settings, place: Place, name: &str, option: &str, burners: usize) -> Vec<f64> {
    let lab = Lab::new(2);
    let (pair, daemon) = start(&lab, place, option);
    schedule(&daemon, name);
    let burning = Burners::start(burners);
    until("the busy processes are", 20, || burning.cpu_seconds() > 0.2);
    let (before, began) = (burning.cpu_seconds(), Instant::now());
    let flow = Flow::start(&pair.left, &pair.right, RATE, 64);
    std::thread::sleep(Duration::from_secs_f64(settings.seconds));
    let cores = (burning.cpu_seconds() - before) / began.elapsed().as_secs_f64();
    let traffic = flow.stop();
    drop((burning, daemon));
    let _ = std::fs::remove_dir(GROUP);
    vec![100.0 * (1.0 - traffic.delivered()), traffic.latency_us(1.0) / 1e3, cores]
}

fn start(lab: &Lab, place: Place, option: &str) -> (Pair, Daemon) {
    let pair = lab.pair("n1", 1, 1, [0, 1]);
    let ports = lab.ports().join(", ");
    let mut documents = vec![lab.node_document("")];
    if place != Place::Software {
        documents[0].push_str(&format!("  card: {{twin: {{image: default}}, ports: [{ports}]}}\n"));
    }
    let on = if place == Place::Card { "card" } else { "soft" };
    documents.push(pair.document.clone().with("placement", on).yaml());
    let silent = |n| lab.pair_document(&format!("n{n}"), n, n, [0, 1]).with("placement", "soft").yaml();
    documents.extend((2..=NETWORKS).map(silent));
    // A session of its own, like a service.
    let cli = Cli { through: vec!["setsid".to_owned()], ..Cli::new(lab) };
    let daemon = Daemon::start_with(lab, &cli, &["--scheduling", option]);
    daemon.cli.apply(&all(&documents), &[]);
    until("the network is where it shall be", 30, || {
        daemon.cli.json(&["get", "networks", pair.name()])["substrate"] == on
    });
    pair.warm_up();
    (pair, daemon)
}

/// Schedules the threads that forward from outside.
fn schedule(daemon: &Daemon, name: &str) {
    for thread in forwarding(daemon.pid()) {
        if name.contains("control group") {
            let group = PathBuf::from(GROUP);
            let _ = std::fs::create_dir(&group);
            let moved = std::fs::write(group.join("cpu.shares"), SHARES)
                .and_then(|()| std::fs::write(group.join("tasks"), thread.to_string()));
            moved.unwrap_or_else(|error| panic!("{GROUP}: {error}"));
        } else if name.contains("without a bound") {
            chrt(&["-r", "-p", "1", &thread.to_string()]);
        } else if name.contains("deadline") {
            let times = ["-T", "900000", "-D", "1000000", "-P", "1000000"];
            chrt(&[&["-d"], &times[..], &["-p", "0", &thread.to_string()]].concat());
        }
    }
}

fn chrt(arguments: &[&str]) {
    let done = Command::new("chrt").args(arguments).status();
    assert!(done.is_ok_and(|status| status.success()), "chrt {arguments:?} failed");
}

/// Threads of a daemon that forward.
fn forwarding(pid: u32) -> Vec<u32> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let forwards = |task: &std::fs::DirEntry| {
        let name = std::fs::read_to_string(task.path().join("comm")).unwrap_or_default();
        name.starts_with("hue-worker") || name.starts_with("hue-card")
    };
    tasks.filter(forwards).filter_map(|task| task.file_name().to_str()?.parse().ok()).collect()
}
