//! What a restart of the forwarder costs: the time without forwarding, beside Open vSwitch in user space.
//!
//! Frames arrive at a steady rate; those that are missing at the sink, divided by the rate, are the time without forwarding.

#![allow(unsafe_code)] // packet sockets

use std::time::{Duration, Instant};

use hue_e2e::Cli;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;

use crate::Settings;
use crate::contestant::{Contestant, Kind};
use crate::machine::{FORWARDER_CORE, GENERATOR_CORE, on_core, pin};
use crate::report::{Report, Section};
use crate::rounds::{interleave, three};

/// Packets a second.
const RATE: f64 = 1_000.0;
/// Bytes of a frame.
const BYTES: usize = 128;
/// When the restart begins.
const BEFORE: Duration = Duration::from_millis(300);
/// How long frames are offered, seconds.
const SECONDS: f64 = 3.0;

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
        format!(
            "time without forwarding in a restart, {networks} network{}",
            if networks == 1 { "" } else { "s" }
        ),
        &["what", "ms median", "min", "max"],
    );
    let mut contestants = vec![
        ("hueplane upgrade", Way::Upgrade, Contestant::hueplane("afxdp", networks)),
        ("hueplane: kill -9, then up", Way::Kill, Contestant::hueplane("afxdp", networks)),
        ("hueplane upgrade, networks on the card", Way::Upgrade, Contestant::hueplane("card", networks)),
        (
            "hueplane: kill -9, then up, networks on the card",
            Way::Kill,
            Contestant::hueplane("card", networks),
        ),
    ];
    let peer = Contestant::ovs("system", networks);
    contestants.extend(peer.map(|ovs| {
        (
            "Open vSwitch user space: kill -9 of ovs-vswitchd, then its start with saved flows",
            Way::OpenVSwitch,
            ovs,
        )
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
    let frames: Vec<Vec<u8>> = (1..=contestant.wires.networks).map(|n| contestant.frame(n, BYTES)).collect();
    let index = contestant.wires.generator_index();
    let networks = frames.len();
    let seen = || contestant.sink.seen().frames[1..=networks].iter().sum::<u64>();
    let before = seen();
    let sending = contestant.wires.generator().thread(move || send(&frames, index));
    std::thread::sleep(BEFORE);
    restart(way, contestant);
    // Frames that end before it would hide the time without forwarding.
    assert!(!sending.is_finished(), "the restart took longer than frames were offered");
    let sent = sending.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    std::thread::sleep(Duration::from_millis(200));
    1e3 * (sent as f64 - (seen() - before) as f64) / RATE
}

/// Sends frames in turn at the rate, and returns how many. It sleeps between them: the generator of other measurements stays in
/// the kernel, which then waits for it whenever a socket is closed.
fn send(frames: &[Vec<u8>], index: u32) -> u64 {
    pin(0, GENERATOR_CORE);
    // SAFETY: plain system calls; the address and the frames outlive them.
    let socket = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW, 0) };
    assert!(socket >= 0, "socket: {}", std::io::Error::last_os_error());
    // SAFETY: all zeros is a valid address.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_ifindex = index as i32;
    let (began, mut sent) = (Instant::now(), 0);
    while began.elapsed().as_secs_f64() < SECONDS {
        let frame = &frames[sent as usize % frames.len()];
        // SAFETY: the pointers and sizes are those of a frame and an address that live here.
        let done = unsafe {
            libc::sendto(
                socket,
                frame.as_ptr().cast(),
                frame.len(),
                0,
                (&raw const address).cast(),
                size_of::<libc::sockaddr_ll>() as u32,
            )
        };
        assert!(done >= 0, "send: {}", std::io::Error::last_os_error());
        sent += 1;
        let next = Duration::from_secs_f64(sent as f64 / RATE);
        std::thread::sleep(next.saturating_sub(began.elapsed()));
    }
    // SAFETY: it is ours.
    unsafe { libc::close(socket) };
    sent
}

fn pid(cli: &Cli) -> u32 {
    let status = cli.json(&["get", "nodes"])[0]["status"]["pid"].as_u64();
    status
        .and_then(|pid| pid.try_into().ok())
        .unwrap_or_else(|| panic!("the daemon does not tell its process id"))
}

/// Restarts a forwarder, on its core.
fn restart(way: Way, contestant: &Contestant) {
    match (&contestant.kind, way) {
        (Kind::Hueplane(daemon), Way::Upgrade | Way::Kill) => {
            let run = |arguments: &[&str]| {
                let mut command = on_core(FORWARDER_CORE, &daemon.cli.command(arguments));
                let _ = contestant.wires.lab.node().run_command(&mut command).expect_ok();
            };
            if matches!(way, Way::Upgrade) {
                run(&["upgrade"]);
            } else {
                let _ = kill(Pid::from_raw(pid(&daemon.cli) as i32), Signal::SIGKILL);
                run(&["up", "--detach", "--workers", "1"]);
            }
        }
        (Kind::Ovs(ovs), _) => crate::contestant::restart(ovs, &contestant.wires),
        _ => {}
    }
}
