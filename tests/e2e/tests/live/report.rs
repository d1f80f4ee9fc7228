//! The report of a move agrees with the counts of the receiving hosts, whatever happens to packets, whatever other traffic
//! the network has, and however busy the processors are.

use std::time::Duration;

use hue_e2e::frame::{self, BROADCAST, Ends};
use hue_e2e::lab::{Host, Pair};
use hue_e2e::raw::Flood;
use hue_e2e::traffic::{Flow, Report};
use hue_e2e::{Burners, Daemon, Lab, burner, can_run, until};
use serde_json::Value;

use crate::migrate::two_on_card_without_arp;

/// MAC address of the router of a pair's left host.
const ROUTER: [u8; 6] = [2, 0x72, 1, 0, 1, 1];

/// Frames of a network that no host receives: for the network itself, for no network, or dropped by a rule. With `answered`
/// also frames that are answered; the answers are not counted.
fn noise(host: &Host, answered: bool) -> Vec<Vec<u8>> {
    let to = |mac, address: &str, ttl| {
        let ends = Ends { macs: [mac, host.mac], addresses: [host.address, address.parse().unwrap()], ttl };
        frame::udp(ends, [9, 9], &[0; 18])
    };
    let ask = (host.mac, host.address);
    let mut bad = to(ROUTER, "10.1.2.2", 64);
    bad[24] ^= 1;
    let mut frames = vec![
        to([1, 0, 0x5e, 0, 0, 5], "224.0.0.5", 1),
        to([1, 0, 0x5e, 1, 2, 3], "239.1.2.3", 16),
        to(BROADCAST, "10.1.1.255", 64),
        to(BROADCAST, "255.255.255.255", 64),
        to(ROUTER, "127.0.0.1", 64),
        bad,
        frame::arp([BROADCAST, host.mac], 2, ask, (ROUTER, host.router)),
        frame::ethernet(ROUTER, host.mac, 0x86dd).into_iter().chain([0x60; 46]).collect(),
    ];
    if answered {
        frames.extend([
            to(ROUTER, "10.1.2.2", 1),
            to(ROUTER, "10.1.1.1", 64),
            to(ROUTER, "192.0.2.9", 64),
            frame::arp([BROADCAST, host.mac], 1, ask, ([0; 6], host.router)),
        ]);
    }
    frames
}

/// Pings of a host to its router while it moves.
const PINGS: u64 = 100;

/// Answers to pings that were missed, and those that came twice. (`ping` does not count late ones.)
fn pings(host: &Host) -> [u64; 3] {
    let count = PINGS.to_string();
    let router = host.router.to_string();
    let output = host.space.run("ping", &["-n", "-q", "-i", "0.01", "-W", "1", "-c", &count, &router]);
    let number = |after: &str| {
        let words = output.stdout.split(", ").find(|words| words.ends_with(after))?;
        words.strip_suffix(after)?.trim_start_matches('+').parse::<u64>().ok()
    };
    let received = number(" received").unwrap_or_else(|| panic!("{}", output.stdout));
    [PINGS - received, number(" duplicates").unwrap_or(0), 0]
}

/// Moves a network there and back, with a fault to packets while software has them. Returns the sums of both reports.
fn there_and_back(daemon: &Daemon, name: &str, mishap: Option<&str>) -> [u64; 4] {
    let mut sums = [0; 4];
    for to in ["soft", "card"] {
        let mut words = vec!["migrate", name, "--to", to, "--look-ms", "400"];
        words.extend(mishap.iter().flat_map(|mishap| ["--fail", mishap]));
        let report = daemon.cli.json(&words);
        let number = |field: &str| report[field].as_u64().unwrap_or_else(|| panic!("{field}: {report}"));
        for (sum, field) in sums.iter_mut().zip(["lost", "doubled", "reordered", "undecided"]) {
            *sum += number(field);
        }
        by_reason(&report, number("lost"));
        std::thread::sleep(Duration::from_millis(50));
    }
    sums
}

/// Each lost packet has one reason.
fn by_reason(report: &Value, lost: u64) {
    let reasons = report["lost_by"].as_object().unwrap();
    assert_eq!(reasons.values().filter_map(Value::as_u64).sum::<u64>(), lost, "{report}");
}

/// Packets that hosts missed, got twice and got late.
fn counted(reports: &[Report]) -> [u64; 3] {
    reports.iter().fold([0; 3], |[lost, doubled, late], report| {
        [lost + report.lost(), doubled + report.duplicated, late + report.reordered]
    })
}

fn all_classes_flow(red: &Pair, daemon: &Daemon, mishap: Option<&str>) {
    let flows = [
        Flow::start(&red.left, &red.right, 600, 64),
        Flow::start(&red.right, &red.left, 200, 1_400),
        Flow::start_with_option(&red.left, &red.right, ROUTER, 100),
    ];
    let noise = Flood::start(&red.left.space, noise(&red.left, mishap.is_none()), 300);
    until("traffic", 20, || flows.iter().all(|flow| flow.received() > 20));
    // The control plane's own frames are answers to pings.
    let ([lost, doubled, late, undecided], pings) = std::thread::scope(|scope| {
        let pings = scope.spawn(|| pings(&red.left));
        (there_and_back(daemon, red.name(), mishap), pings.join().unwrap())
    });
    let reports = flows.map(Flow::stop);
    assert!(noise.stop() > 0);
    let all = reports.iter().map(Report::to_string).collect::<Vec<_>>().join("; ");
    let all = format!("{mishap:?}: {all}; pings {pings:?}");
    assert_eq!(undecided, 0, "{all}");
    let expected: Vec<u64> =
        counted(&reports).iter().zip(pings).map(|(flows, pings)| flows + pings).collect();
    // `ping` ends with its last answer, and does not see a copy of that one. It waits for that answer for two round trips
    // only, and a delayed one can take longer.
    let unseen = |of| u64::from(mishap == Some(of));
    assert!((lost..=lost + unseen("reordered")).contains(&expected[0]), "{lost} lost: {all}");
    assert!((expected[1]..=expected[1] + unseen("doubled")).contains(&doubled), "{doubled} doubled: {all}");
    // `ping` does not report late answers.
    let pings_late = if mishap == Some("reordered") { PINGS / 10 } else { 0 };
    assert!(late >= expected[2] && late <= expected[2] + pings_late, "{late} late: {all}");
    let happened = match mishap {
        None => [lost, doubled, late] == [0; 3],
        Some("packets") => lost > 10 && doubled + late == 0,
        Some("doubled") => doubled > 10 && lost + late == 0,
        _ => late > 10 && lost + doubled == 0,
    };
    assert!(happened, "{lost} lost, {doubled} doubled, {late} late: {all}");
}

#[test]
fn reports_of_moves_match_the_counts_of_hosts() {
    if !can_run(&[]) {
        return;
    }
    let lab = Lab::new(2);
    let (red, blue, daemon) = two_on_card_without_arp(&lab);
    let beside = Flow::start(&blue.left, &blue.right, 200, 200);
    for mishap in [None, Some("packets"), Some("doubled"), Some("reordered")] {
        all_classes_flow(&red, &daemon, mishap);
    }
    // The other network was not affected.
    let report = beside.stop();
    assert_eq!(counted(std::slice::from_ref(&report)), [0; 3], "{report}");
}

#[test]
fn reports_of_moves_hold_on_a_busy_machine() {
    if !can_run(&burner::PROGRAMS) {
        return;
    }
    let lab = Lab::new(2);
    let (red, _blue, daemon) = two_on_card_without_arp(&lab);
    let burners = Burners::start(2);
    until("the busy processes are", 20, || burners.cpu_seconds() > 0.2);
    for mishap in [None, Some("packets")] {
        all_classes_flow(&red, &daemon, mishap);
    }
    drop(burners);
}
