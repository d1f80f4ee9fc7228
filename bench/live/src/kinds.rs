//! Kinds other than `ipv4`, veth to veth: `ipv6` beside Linux's IPv6 forwarding, `l2` beside Linux's bridge and Open
//! vSwitch, `kernel` beside Linux without hueplane, and `ipv4` for reference. Throughput under overload at 64 bytes, and of one TCP connection; contestants
//! in turn.

use std::net::IpAddr;
use std::process::Stdio;

use hue_e2e::shell;
use serde_json::{Value, json};

use crate::Settings;
use crate::bpf;
use crate::contestant::{Contestant, Kind, names};
use crate::load::{self, Offer};
use crate::machine::{GENERATOR_CORE, on_core};
use crate::report::{Report, Section, round};
use crate::rounds::{interleave, three};
use crate::wires::Traffic;

/// Networks of the measurements with several, and pairs of bridged hosts.
const NETWORKS: u16 = 15;
/// Pairs of hosts behind a switch.
const PAIRS: u16 = 64;
const FRAME_BYTES: usize = 64;

/// Measures.
pub fn run(settings: &Settings, report: &mut Report) -> Result<(), String> {
    let mut contestants: Vec<Contestant> = Vec::new();
    let mut add = |name: &str, make: &dyn Fn() -> Option<Contestant>| {
        if settings.wants(name) {
            eprintln!("  set up: {name}");
            contestants.extend(make());
        }
    };
    for networks in [1, NETWORKS] {
        let label = |name: &str| format!("{name}, {networks} ");
        add(&label("Linux forwarding"), &|| Some(Contestant::linux(networks)));
        add(&label("hueplane ipv4"), &|| Some(Contestant::hueplane_for(Traffic::Ipv4, networks)));
        add(&label("hueplane kernel"), &|| Some(Contestant::hueplane_kernel(networks)));
        add(&label("Linux IPv6 forwarding"), &|| Some(Contestant::linux6(networks)));
        add(&label("hueplane ipv6"), &|| Some(Contestant::hueplane_for(Traffic::Ipv6, networks)));
    }
    add("Linux bridge", &|| Some(Contestant::bridge(PAIRS)));
    for ports in ["afxdp", "system"] {
        add(&format!("Open vSwitch user space {ports}"), &|| Contestant::ovs_bridge(ports, PAIRS));
    }
    add("hueplane l2", &|| Some(Contestant::hueplane_for(Traffic::Bridged, PAIRS)));
    let sinks: Vec<IpAddr> = contestants.iter().map(|contestant| contestant.wires.give_addresses()).collect();
    contestants.iter().for_each(|contestant| contestant.run(false));
    throughput(settings, &contestants, report);
    if shell::find("iperf3").is_none() {
        eprintln!("skipped: iperf3 missing");
        return Ok(());
    }
    tcp(settings, &contestants, &sinks, report);
    Ok(())
}

/// The peer of a contestant that is hueplane's kernel counterpart: Linux with the same traffic and as many networks.
fn linux_of(contestants: &[Contestant], at: usize) -> Option<usize> {
    let wires = &contestants[at].wires;
    contestants.iter().position(|other| {
        let theirs = &other.wires;
        matches!(other.kind, Kind::Linux)
            && (theirs.traffic, theirs.networks) == (wires.traffic, wires.networks)
    })
}

fn throughput(settings: &Settings, contestants: &[Contestant], report: &mut Report) {
    let (mut wrong, mut flooded) = (vec![0; contestants.len()], vec![0; contestants.len()]);
    let figures = interleave("throughput, 64-byte frames", &names(contestants), settings.rounds, |i| {
        let contestant = &contestants[i];
        let offer = Offer::full(FRAME_BYTES, contestant.wires.networks, settings.seconds);
        let outcome = contestant.alone(|| {
            // Addresses age out while other contestants are measured.
            if contestant.wires.traffic == Traffic::Bridged {
                contestant.wires.introduce_hosts();
                std::thread::sleep(std::time::Duration::from_millis(100));
            }
            load::offer(contestant, &offer)
        });
        wrong[i] += outcome.wrong;
        flooded[i] = contestant.bystander.as_ref().map_or(0, |sink| sink.seen().frames.iter().sum::<u64>());
        vec![outcome.arrived, outcome.offered]
    });
    let mut section = Section::new(
        "Throughput, 64-byte frames",
        &["contestant", "k packets/s median", "min", "max", "of Linux", "offered k/s", "wrong", "flooded"],
    );
    for (i, contestant) in contestants.iter().enumerate() {
        let mut row = vec![json!(contestant.name)];
        row.extend(three(&figures[i][0], 1e-3, 1));
        row.push(of_linux(contestants, i, |at| figures[at][0].median()));
        row.push(round(figures[i][1].median() / 1e3, 1));
        row.extend([json!(wrong[i]), json!(flooded[i])]);
        section.row(row);
    }
    section.note(
        "Delivered rate while one core offers as many frames as it can, measured as in live-forwarding. What counts is what the sink \
         got with TTL and checksum, or hop limit, right. 64 bytes of IPv6 have no room for UDP: the payload is of the type \"no next \
         header\". Bridged frames go from 64 hosts to 64 others, whose addresses were learnt from a frame of each; `flooded` \
         counts frames at a third port. Open vSwitch learns as well (action NORMAL).",
    );
    report.push(section);
}

/// A contestant's figure, of that of Linux with the same traffic.
fn of_linux(contestants: &[Contestant], at: usize, figure: impl Fn(usize) -> f64) -> Value {
    linux_of(contestants, at).map_or(json!(null), |linux| round(figure(at) / figure(linux).max(1.0), 2))
}

fn tcp(settings: &Settings, contestants: &[Contestant], sinks: &[IpAddr], report: &mut Report) {
    let figures = interleave("TCP, one connection", &names(contestants), settings.rounds, |i| {
        contestants[i].alone(|| transfer(&contestants[i], sinks[i], settings.seconds))
    });
    let mut section = Section::new(
        "TCP, one connection",
        &["contestant", "Gbit/s median", "min", "max", "of Linux", "retransmitted segments"],
    );
    for (i, contestant) in contestants.iter().enumerate().filter(|(_, one)| has_tcp(one)) {
        let mut row = vec![json!(contestant.name)];
        row.extend(three(&figures[i][0], 1e-9, 2));
        row.push(of_linux(contestants, i, |at| figures[at][0].median()));
        row.push(round(figures[i][1].median(), 0));
        section.row(row);
    }
    section.note(
        "iperf3 from the generator's host to the sink's, both on the generator's core. MTU 1,500, hosts without segmentation offload, \
         as over a real wire without it. Linux merges the segments of a connection when it receives them (GRO) and handles them as one \
         packet until they leave; the other contestants handle each.",
    );
    report.push(section);
}

/// Hosts of one network are enough for one connection.
fn has_tcp(contestant: &Contestant) -> bool {
    contestant.wires.traffic == Traffic::Bridged || contestant.wires.networks == 1
}

/// Bits a second that arrived, and segments that were sent again.
fn transfer(contestant: &Contestant, sink: IpAddr, seconds: f64) -> Vec<f64> {
    bpf::step();
    if !has_tcp(contestant) {
        return vec![0.0, 0.0];
    }
    let address = sink.to_string();
    let iperf = |arguments: &[&str]| {
        let mut command = shell::command("iperf3");
        command.args(arguments);
        on_core(GENERATOR_CORE, &command)
    };
    let mut server = iperf(&["--server", "--bind", &address]);
    let mut server = contestant.wires.sink().spawn(server.stdout(Stdio::null()));
    let time = seconds.ceil().to_string();
    let mut result = Value::Null;
    // The server listens a moment later.
    hue_e2e::until("iperf3 measures", 60, || {
        let mut client = iperf(&["--client", &address, "--time", &time, "--omit", "1", "--json"]);
        let output = contestant.wires.generator().run_command(&mut client);
        if output.ok() {
            result = output.json();
        }
        output.ok() && result["end"]["sum_received"]["bits_per_second"].as_f64() > Some(0.0)
    });
    // It serves until it is told to end, and may have ended.
    let _ = server.kill();
    let _ = server.wait();
    let number = |part: &str, field: &str| result["end"][part][field].as_f64().unwrap_or(0.0);
    vec![number("sum_received", "bits_per_second"), number("sum_sent", "retransmits")]
}
