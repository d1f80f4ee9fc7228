//! What a restart of the forwarder costs: the time without forwarding, beside Open vSwitch in user space.
//!
//! Frames arrive at a steady rate; those that are missing at the sink, divided by the rate, are the time without forwarding.

use std::process::Command;
use std::time::Duration;

use hue_e2e::{Cli, shell};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;

use crate::Settings;
use crate::contestant::{Contestant, Kind};
use crate::load::{Offer, offer};
use crate::machine::{FORWARDER_CORE, pin_process};
use crate::report::{Report, Section};
use crate::rounds::{interleave, three};

/// Packets a second.
const RATE: f64 = 1_000.0;
/// Bytes of a frame.
const BYTES: usize = 128;
/// When the restart begins.
const BEFORE: Duration = Duration::from_millis(300);
/// How long frames are offered, seconds.
const SECONDS: f64 = 4.0;

/// How a forwarder is restarted.
#[derive(Clone, Copy)]
enum Way {
    Upgrade,
    Kill,
    OpenVSwitch,
}

/// Measures.
///
/// # Errors
/// Never: what is lost is the result.
pub fn run(settings: &Settings, report: &mut Report) -> Result<(), String> {
    for networks in [1, 15] {
        report.push(one(settings, networks));
    }
    Ok(())
}

fn one(settings: &Settings, networks: u16) -> Section {
    let mut section = Section::new(
        format!("time without forwarding in a restart, {networks} network{}", if networks == 1 { "" } else { "s" }),
        &["what", "ms median", "min", "max"],
    );
    let mut contestants = vec![
        ("hueplane upgrade", Way::Upgrade, Contestant::hueplane("afxdp", networks)),
        ("hueplane: kill -9, then up", Way::Kill, Contestant::hueplane("afxdp", networks)),
    ];
    let peer = Contestant::ovs("system", networks);
    contestants.extend(peer.map(|ovs| {
        ("Open vSwitch user space: kill -9 of ovs-vswitchd, then its start with saved flows", Way::OpenVSwitch, ovs)
    }));
    contestants.retain(|(name, ..)| settings.wants(name));
    let names: Vec<&str> = contestants.iter().map(|(name, ..)| *name).collect();
    let spreads = interleave(&format!("restart, {networks}"), &names, settings.rounds, |i| {
        let (_, way, contestant) = &contestants[i];
        contestant.alone(|| vec![gap_ms(*way, contestant)])
    });
    for (name, spread) in names.iter().zip(&spreads) {
        let mut row = vec![json!(name)];
        row.extend(three(&spread[0], 1.0, 0));
        section.row(row);
    }
    for (_, _, contestant) in &contestants {
        if let Kind::Hueplane(daemon) = &contestant.kind {
            // Another process by now than the one that was started here.
            let _ = daemon.cli.run(&["down"]);
        }
    }
    section.note(format!(
        "{RATE} frames/s of {BYTES} bytes arrive; frames that are missing at the sink are counted in milliseconds. Open vSwitch is \
         restarted as its own script does, with `flow-restore-wait`. Routing neighbours are not part of this: a test says that none is lost."
    ));
    section
}

/// Restarts a forwarder under traffic: milliseconds of frames that are missing.
fn gap_ms(way: Way, contestant: &Contestant) -> f64 {
    let restart = restart(way, contestant);
    let restarting = std::thread::spawn(move || {
        std::thread::sleep(BEFORE);
        restart();
    });
    let outcome = offer(contestant, &Offer::steady(BYTES, contestant.wires.networks, RATE, SECONDS));
    restarting.join().unwrap_or_else(|_| panic!("the restart failed"));
    if let Kind::Hueplane(daemon) = &contestant.kind {
        pin_process(pid(&daemon.cli), FORWARDER_CORE);
    }
    1e3 * SECONDS * (1.0 - outcome.arrived / outcome.offered)
}

fn pid(cli: &Cli) -> u32 {
    let status = cli.json(&["get", "nodes"])[0]["status"]["pid"].as_u64();
    status.and_then(|pid| pid.try_into().ok()).unwrap_or_else(|| panic!("the daemon does not tell its process id"))
}

/// What restarts a forwarder, for another thread.
fn restart(way: Way, contestant: &Contestant) -> Box<dyn FnOnce() + Send> {
    let space = format!("--net=/run/netns/{}", contestant.wires.lab.node().name());
    match (&contestant.kind, way) {
        (Kind::Hueplane(daemon), Way::Upgrade | Way::Kill) => {
            let cli = daemon.cli.clone();
            Box::new(move || {
                let run = |arguments: &[&str]| {
                    let inner = cli.command(arguments);
                    let mut command = Command::new("nsenter");
                    command.arg(&space).arg(inner.get_program()).args(inner.get_args());
                    let set = inner.get_envs().filter_map(|(name, value)| Some((name, value?)));
                    command.envs(set);
                    let _ = shell::run(&mut command).expect_ok();
                };
                if matches!(way, Way::Upgrade) {
                    run(&["upgrade"]);
                } else {
                    let _ = kill(Pid::from_raw(pid(&cli) as i32), Signal::SIGKILL);
                    run(&["up", "--detach", "--workers", "1"]);
                }
            })
        }
        (Kind::Ovs(ovs), _) => {
            let ovs = ovs.restarter();
            Box::new(move || ovs.restart(&space))
        }
        _ => Box::new(|| {}),
    }
}
