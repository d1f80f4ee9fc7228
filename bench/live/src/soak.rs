//! Minutes under faults: no packets are lost that must not be, and memory does not grow.
//!
//! Five networks: two on ports without faults, one whose interface is deleted and created again, one that is changed, deleted
//! and created again, and one that floods. From half of the time on, the daemon is killed and restarted repeatedly.

use std::time::{Duration, Instant};

use hue_e2e::document::all;
use hue_e2e::frame::{self, BROADCAST, Ends};
use hue_e2e::traffic::{Flow, Report as Traffic};
use hue_e2e::{Daemon, Flood, Lab, Pair, http, until};
use serde_json::json;

use crate::Settings;
use crate::report::{Report, Section, mib, round};

/// Packets a second of each flow.
const RATE: u32 = 1000;
/// Additional memory that the daemon may use at the end, compared with a fifth of the time: a margin for the allocator, not for leaks.
const GROWTH_MAX: u64 = 8 << 20;

struct World {
    lab: Lab,
    quiet: [Pair; 2],
    cut: Pair,
    changed: Pair,
    hostile: Pair,
    daemon: Daemon,
}

/// Measures.
///
/// # Errors
/// Packets lost that must not be, and memory that grew.
pub fn run(settings: &Settings, report: &mut Report) -> Result<(), String> {
    let mut world = world();
    let half = Duration::from_secs_f64(settings.minutes * 30.0);
    let flows: Vec<(String, Flow)> = flows(&world);
    let mut memory = Vec::new();
    let start = Instant::now();
    let mut rounds = 0u64;
    while start.elapsed() < half {
        disturb(&world, rounds);
        rounds += 1;
        let now = (start.elapsed().as_secs_f64(), world.daemon.memory_bytes());
        eprintln!("  {:.0} s: {rounds} rounds of faults, daemon {} MiB", now.0, mib(now.1));
        memory.push(now);
    }
    let mut section = Section::new(
        format!("{} s of faults, {rounds} rounds of them, the daemon running through", half.as_secs()),
        &["flow", "sent", "lost", "longest gap", "twice", "late", "p50 us", "p99 us"],
    );
    let mut wrong = Vec::new();
    for (name, flow) in flows {
        let traffic = flow.stop();
        section.row(row(&name, &traffic));
        if name.starts_with("quiet") && traffic.lost() > 0 || traffic.duplicated > 0 || traffic.received == 0
        {
            wrong.push(format!("{name}: {traffic}"));
        }
    }
    let settled =
        memory.iter().find(|(at, _)| *at > half.as_secs_f64() / 5.0).or(memory.first()).map_or(0, |m| m.1);
    let end = memory.last().map_or(0, |m| m.1);
    section.note(format!(
        "Daemon's memory: {} MiB after a fifth of the time, {} MiB at the end, {} MiB at most.",
        mib(settled),
        mib(end),
        mib(memory.iter().map(|m| m.1).max().unwrap_or(0))
    ));
    section.note(
        "Tolerated: what `cut` loses while its interface is gone, and `changed` while its network is deleted, because there is no way \
         for these packets then. Not tolerated: one packet lost by a quiet flow, any packet twice, a flow that does not arrive at all, \
         and a daemon that takes 8 MiB more at the end than after a fifth of the time.",
    );
    if end > settled + GROWTH_MAX {
        wrong.push(format!("memory grew from {settled} to {end} bytes"));
    }
    report.push(section);
    report.push(killed(&mut world, half));
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
}

fn world() -> World {
    let lab = Lab::new(5);
    let quiet = [lab.pair("quiet1", 1, 1, [0, 1]), lab.pair("quiet2", 2, 2, [0, 1])];
    let cut = lab.pair("cut", 3, 3, [0, 2]);
    let changed = lab.pair("changed", 4, 4, [0, 1]);
    let hostile = lab.pair("hostile", 5, 5, [3, 4]);
    let mut documents = vec![lab.node_document("")];
    documents.extend([&quiet[0], &quiet[1], &cut, &changed, &hostile].map(|pair| pair.document.yaml()));
    let daemon = Daemon::start(&lab, &all(&documents));
    for pair in [&quiet[0], &quiet[1], &cut, &changed, &hostile] {
        pair.warm_up();
    }
    World { lab, quiet, cut, changed, hostile, daemon }
}

fn flows(world: &World) -> Vec<(String, Flow)> {
    let pairs = [
        ("quiet 1", &world.quiet[0]),
        ("quiet 2", &world.quiet[1]),
        ("cut", &world.cut),
        ("changed", &world.changed),
    ];
    let both = pairs.into_iter().flat_map(|(name, pair)| {
        [
            (format!("{name}, to the right"), &pair.left, &pair.right),
            (format!("{name}, to the left"), &pair.right, &pair.left),
        ]
    });
    both.map(|(name, from, to)| (name, Flow::start(from, to, RATE, 200))).collect()
}

fn row(name: &str, traffic: &Traffic) -> Vec<serde_json::Value> {
    vec![
        json!(name),
        json!(traffic.sent),
        json!(traffic.lost()),
        json!(traffic.gap),
        json!(traffic.duplicated),
        json!(traffic.reordered),
        round(traffic.latency_us(0.5), 1),
        round(traffic.latency_us(0.99), 1),
    ]
}

/// One fault after the other; about five seconds.
fn disturb(world: &World, round: u64) {
    crate::bpf::step();
    let cli = &world.daemon.cli;
    // An interface is deleted and created again.
    world.lab.unplug(2);
    std::thread::sleep(Duration::from_millis(200));
    world.lab.plug(2);
    until("the port is up again", 30, || cli.json(&["get", "ports", "p2"])["state"] == "up");
    // A network is changed, and every fourth time deleted and made again.
    let weight = (1 + round % 9).to_string();
    let routes = format!("[{{to: 10.{}.0.0/16, via: 10.4.2.2}}]", 100 + round % 100);
    if round % 4 == 3 {
        let _ = cli.run(&["delete", "network", world.changed.name()]).expect_ok();
    }
    cli.apply(&world.changed.document.clone().with("weight", &weight).with("routes", &routes).yaml(), &[]);
    world.changed.warm_up();
    // A host floods, each time something else.
    let (host, mac) = (&world.hostile.left, world.hostile.left.mac);
    let router = [2, 0x72, 5, 0, 5, 1];
    let udp = |to: [u8; 6], address: [u8; 4], ttl| {
        frame::udp(Ends { macs: [to, mac], addresses: [host.address, address.into()], ttl }, [9, 9], &[0; 18])
    };
    let flood = match round % 4 {
        0 => udp(router, [10, 5, 2, 2], 64),
        1 => udp(router, [10, 5, 2, 2], 1),
        2 => udp(BROADCAST, [255; 4], 64),
        _ => frame::arp([BROADCAST, mac], 1, (mac, host.address), ([0; 6], host.router)),
    };
    let flood = Flood::start(&host.space, vec![flood], 20_000);
    // Malformed calls, and a reader that does not read.
    for n in 0..50 {
        let call =
            format!("GET /v1/networks/{n}%00 HTTP/1.1\r\nContent-Length: x\r\n\r\n{}", "x".repeat(n * 100));
        let _ = http::raw(&cli.socket(), call.as_bytes(), Duration::from_millis(20));
    }
    let mut capture = cli.command(&["capture", "-w", "-"]);
    let reader = capture.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::null()).spawn();
    std::thread::sleep(Duration::from_secs(1));
    let _ = flood.stop();
    if let Ok(mut reader) = reader {
        // It may have ended.
        let _ = reader.kill();
        let _ = reader.wait();
    }
}

/// Kills and restarts the daemon repeatedly.
fn killed(world: &mut World, time: Duration) -> Section {
    let flows = flows(world);
    let (start, mut kills) = (Instant::now(), 0u64);
    while start.elapsed() < time {
        std::thread::sleep(Duration::from_millis(500 + kills * 37 % 400));
        crate::bpf::step();
        world.daemon.kill();
        world.daemon.replace(&world.lab);
        for pair in [&world.quiet[0], &world.quiet[1], &world.cut, &world.changed, &world.hostile] {
            pair.warm_up();
        }
        kills += 1;
    }
    let mut section = Section::new(
        format!("{} s of killing the daemon, {kills} times", time.as_secs()),
        &["flow", "sent", "lost", "longest gap", "twice", "late", "p50 us", "p99 us"],
    );
    for (name, flow) in flows {
        section.row(row(&name, &flow.stop()));
    }
    section.note("Packets stop while no daemon runs; everything works again after each start, which is checked by pings both ways.");
    section
}
