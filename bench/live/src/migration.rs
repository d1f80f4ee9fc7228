//! A network moves between card and software under traffic: losses at the receiving hosts, the duration, the gap in the traffic
//! compared with one without a move, the effect on other networks, TCP, and a change of the card's image.
//!
//! Hosts count packets that are lost, duplicated and reordered; times and gaps come from the proof that the command prints.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use hue_e2e::document::all;
use hue_e2e::traffic::{Flow, Report as Traffic};
use hue_e2e::{Cli, Daemon, Lab, Pair, until};
use serde_json::{Value, json};

use crate::Settings;
use crate::measure::Spread;
use crate::migration_kinds;
use crate::report::{Report, Section, round};

/// What flows carry beside what they are measured with: UDP payload bytes of frames of 64 and 1,500 bytes (with FCS).
const SIZES: [(&str, usize, u32); 2] = [("64", 24, 4_000), ("1,500", 1_454, 1_000)];
/// Share of the capacity that flows offer.
const SHARE: f64 = 0.9;
/// How often a rate is tried that loses something: neighbours on the machine do that, too.
const TRIES: usize = 3;

/// Measures.
///
/// # Errors
/// What was lost, doubled or reordered.
pub fn run(settings: &Settings, report: &mut Report) -> Result<(), String> {
    let mut wrong = Vec::new();
    if !settings.only.is_empty() {
        if settings.wants("receivers") {
            report.push(two_wires(settings, &mut wrong));
        }
        if settings.wants("kinds") {
            report.push(migration_kinds::section(settings, &mut wrong));
        }
        return if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) };
    }
    let lab = Lab::new(4);
    let pairs: Vec<Pair> = (1..=15).map(|n| lab.pair(&format!("n{n}"), n, n, [0, 1])).collect();
    let ports = lab.ports().join(", ");
    let node = format!("{}  card: {{twin: {{image: default}}, ports: [{ports}]}}\n", lab.node_document(""));
    let routes: Vec<String> =
        (0..1_000).map(|n| format!("{{to: 10.{}.{}.0/24, via: 10.2.2.2}}", 100 + n / 250, n % 250)).collect();
    let mut documents = vec![node];
    for (at, pair) in pairs.iter().enumerate() {
        let mut document = pair.document.clone();
        if at == 1 {
            document = document.with("routes", &format!("[{}]", routes.join(", ")));
        }
        documents.push(document.with("placement", if at < 4 { "card" } else { "soft" }).yaml());
    }
    let daemon = Daemon::start_with(&lab, &Cli::new(&lab), &[]);
    daemon.cli.apply(&all(&documents), &[]);
    for (at, pair) in pairs.iter().enumerate() {
        let on = if at < 4 { "card" } else { "soft" };
        until("networks are where they shall be", 30, || {
            daemon.cli.json(&["get", "networks", pair.name()])["substrate"] == on
        });
        pair.warm_up();
    }
    report.push(alone(settings, &daemon, &pairs[0], &mut wrong));
    report.push(beside(settings, &daemon, &pairs, &mut wrong));
    report.push(large(settings, &daemon, &pairs[1]));
    report.push(tcp(settings, &daemon, &pairs[0]));
    report.push(images(settings, &daemon, &pairs, &mut wrong));
    report.push(periods(settings, &daemon, &pairs));
    drop((daemon, pairs, lab));
    report.push(two_wires(settings, &mut wrong));
    report.push(migration_kinds::section(settings, &mut wrong));
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
}

/// Moves a network; returns the report.
pub fn migrate(daemon: &Daemon, network: &str, to: &str) -> Value {
    daemon.cli.json(&["migrate", network, "--to", to])
}

/// A number of an answer; 0 if it is not there.
pub fn number(value: &Value, path: &str) -> f64 {
    value.pointer(path).and_then(Value::as_f64).unwrap_or(0.0)
}

/// Adds to `wrong` what a receiver missed.
pub fn check(what: &str, traffic: &Traffic, wrong: &mut Vec<String>) {
    if traffic.lost() + traffic.duplicated + traffic.reordered > 0 {
        wrong.push(format!("{what}: {traffic}"));
    }
}

/// The highest rate that arrives whole (RFC 2544 §26.1), packets a second, where the network is.
fn capacity(pair: &Pair, bytes: usize, from: u32, seconds: f64) -> f64 {
    let (mut rate, mut good) = (f64::from(from), 0.0);
    loop {
        let whole = (0..TRIES).find_map(|_| {
            let flow = Flow::start(&pair.left, &pair.right, rate as u32, bytes);
            std::thread::sleep(Duration::from_secs_f64(seconds));
            let traffic = flow.stop();
            let sent = traffic.sent as f64 / seconds;
            // A sender that does not keep up says nothing of the network.
            (traffic.lost() == 0 && sent >= rate * 0.8).then_some(sent)
        });
        let Some(sent) = whole else { return good };
        (good, rate) = (sent, rate * 1.2);
    }
}

fn alone(settings: &Settings, daemon: &Daemon, pair: &Pair, wrong: &mut Vec<String>) -> Section {
    let mut section = Section::new(
        format!(
            "one network, {} round trips at {:.0} % of the slower side's capacity",
            settings.moves,
            SHARE * 100.0
        ),
        &[
            "bytes",
            "card k/s",
            "soft k/s",
            "offered k/s",
            "what",
            "sent",
            "lost",
            "most in a row",
            "doubled",
            "reordered",
            "to soft us median",
            "max",
            "to card us median",
            "max",
            "gap us median",
            "max",
            "gap without us median",
            "max",
        ],
    );
    for (name, bytes, from) in SIZES {
        let on_card = capacity(pair, bytes, from, settings.seconds);
        migrate(daemon, pair.name(), "soft");
        let on_soft = capacity(pair, bytes, from, settings.seconds);
        migrate(daemon, pair.name(), "card");
        let rate = on_card.min(on_soft) * SHARE;
        let k = |rate: f64| round(rate / 1e3, 1);
        let row = |what: &str, traffic: &Traffic| {
            let mut row =
                vec![json!(name), k(on_card), k(on_soft), k(rate), json!(what), json!(traffic.sent)];
            let counts = [traffic.lost(), traffic.gap, traffic.duplicated, traffic.reordered];
            row.extend(counts.map(|count| json!(count)));
            row
        };
        // The same for as long, and as busy, without a move, half of it on either side.
        for (where_it_is, there) in [("on the card", "card"), ("in software", "soft")] {
            if there == "soft" {
                migrate(daemon, pair.name(), "soft");
            }
            let flow = Flow::start(&pair.left, &pair.right, rate as u32, bytes);
            std::thread::sleep(Duration::from_millis(500));
            for _ in 0..settings.moves {
                let _ = daemon.cli.json(&["get", "networks", pair.name()]);
                std::thread::sleep(Duration::from_millis(45));
            }
            let mut row = row(&format!("stays {where_it_is}"), &flow.stop());
            row.extend((0..8).map(|_| json!("-")));
            section.row(row);
        }
        migrate(daemon, pair.name(), "card");
        let flow = Flow::start(&pair.left, &pair.right, rate as u32, bytes);
        std::thread::sleep(Duration::from_millis(500));
        let (mut soft, mut card, mut gaps, mut calm) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for _ in 0..settings.moves {
            for (to, times) in [("soft", &mut soft), ("card", &mut card)] {
                let proof = migrate(daemon, pair.name(), to);
                times.push(number(&proof, "/duration_us"));
                let gap = |path: &str| number(&proof, path);
                gaps.push(gap("/during/gap_us_max").max(gap("/after/gap_us_max")));
                calm.push(gap("/before/gap_us_max"));
            }
        }
        let traffic = flow.stop();
        check(&format!("{name} bytes"), &traffic, wrong);
        let mut row = row("moves", &traffic);
        for values in [soft, card, gaps, calm] {
            let spread = Spread::new(values);
            row.extend([round(spread.median(), 0), round(spread.max(), 0)]);
        }
        section.row(row);
    }
    section.note(
        "Packets are counted by the host that receives them. A move's time is that of all its steps, the table's way to the \
         card among them; the papers' took 12 s to software and 3 s back. Gaps are between two packets that leave the card: \
         the longest while the network moves and 20 ms after, beside the longest in the 20 ms before.",
    );
    section
}

fn beside(settings: &Settings, daemon: &Daemon, pairs: &[Pair], wrong: &mut Vec<String>) -> Section {
    let mut section = Section::new(
        format!(
            "one network moves {} times there and back, 14 others carry 100 packets/s each",
            settings.moves
        ),
        &["the 14", "sent", "lost", "doubled", "reordered", "p50 us", "p99 us"],
    );
    for moving in [false, true] {
        let mover = Flow::start(&pairs[0].left, &pairs[0].right, 1_000, 100);
        let flows: Vec<Flow> =
            pairs[1..].iter().map(|pair| Flow::start(&pair.left, &pair.right, 100, 100)).collect();
        let began = Instant::now();
        for _ in 0..settings.moves {
            for to in ["soft", "card"] {
                if moving {
                    migrate(daemon, pairs[0].name(), to);
                } else {
                    // The same work on this machine, without a move.
                    let _ = daemon.cli.json(&["get", "networks", pairs[0].name()]);
                    std::thread::sleep(Duration::from_millis(45));
                }
            }
        }
        eprintln!("  {:.1} s", began.elapsed().as_secs_f64());
        check("the network that moves", &mover.stop(), wrong);
        let mut latencies = Vec::new();
        let (mut sent, mut lost, mut doubled, mut reordered) = (0, 0, 0, 0);
        for flow in flows {
            let traffic = flow.stop();
            check("a network beside", &traffic, wrong);
            sent += traffic.sent;
            lost += traffic.lost();
            doubled += traffic.duplicated;
            reordered += traffic.reordered;
            latencies.extend(traffic.latencies_ns);
        }
        latencies.sort_unstable();
        let at = |part: f64| {
            latencies.get((latencies.len() as f64 * part) as usize).map_or(0.0, |ns| *ns as f64 / 1e3)
        };
        let what = if moving { "while it moves" } else { "while nothing moves" };
        let counts = [sent, lost, doubled, reordered].map(|count| json!(count));
        let mut row = vec![json!(what)];
        row.extend(counts);
        row.extend([round(at(0.5), 0), round(at(0.99), 0)]);
        section.row(row);
    }
    section
}

fn large(settings: &Settings, daemon: &Daemon, pair: &Pair) -> Section {
    let mut section = Section::new(
        "a network with 1,000 routes, no other traffic",
        &["to", "ms median", "min", "max", "of it the table ms median"],
    );
    let (mut all, mut table) = ([Vec::new(), Vec::new()], [Vec::new(), Vec::new()]);
    for _ in 0..settings.moves.min(20) {
        for (at, to) in ["soft", "card"].into_iter().enumerate() {
            let proof = migrate(daemon, pair.name(), to);
            all[at].push(number(&proof, "/duration_us") / 1e3);
            let prepare = number(&proof, "/phases/0/us") / 1e3;
            table[at].push(if to == "card" { prepare } else { 0.0 });
        }
    }
    for ((to, all), table) in ["soft", "card"].into_iter().zip(all).zip(table) {
        let (all, table) = (Spread::new(all), Spread::new(table));
        let ms = |value| round(value, 2);
        section.row(vec![json!(to), ms(all.median()), ms(all.min()), ms(all.max()), ms(table.median())]);
    }
    section
}

/// Measures one TCP connection during moves: bytes received, and the longest time without a byte.
fn tcp(settings: &Settings, daemon: &Daemon, pair: &Pair) -> Section {
    const CHUNK: usize = 14_600;
    const PORT: u16 = 9_000;
    let mut section = Section::new(
        format!("one TCP connection at 20 Mbit/s, {} round trips", settings.moves),
        &["", "MB received", "longest time without a byte, ms"],
    );
    for moving in [false, true] {
        let listener = pair.right.space.inside(|| TcpListener::bind((Ipv4Addr::UNSPECIFIED, PORT)));
        let listener = listener.unwrap_or_else(|error| panic!("a TCP socket: {error}"));
        let out = pair.left.space.inside(|| TcpStream::connect((pair.right.address, PORT)));
        let mut out = out.unwrap_or_else(|error| panic!("a TCP connection: {error}"));
        let (mut into, _) = listener.accept().unwrap_or_else(|error| panic!("a TCP connection: {error}"));
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let sender = std::thread::spawn(move || {
            let chunk = [7u8; CHUNK];
            while !stopped.load(Ordering::Relaxed) {
                if out.write_all(&chunk).is_err() {
                    return;
                }
                std::thread::sleep(Duration::from_secs_f64(CHUNK as f64 * 8.0 / 20e6));
            }
        });
        let receiver = std::thread::spawn(move || {
            let mut buffer = vec![0u8; 65_536];
            let (mut sum, mut longest, mut last) = (0, Duration::ZERO, Instant::now());
            while let Ok(count @ 1..) = into.read(&mut buffer) {
                sum += count;
                longest = longest.max(last.elapsed());
                last = Instant::now();
            }
            (sum, longest)
        });
        std::thread::sleep(Duration::from_millis(300));
        for _ in 0..settings.moves {
            for to in ["soft", "card"] {
                if moving {
                    migrate(daemon, pair.name(), to);
                } else {
                    let _ = daemon.cli.json(&["get", "networks", pair.name()]);
                    std::thread::sleep(Duration::from_millis(45));
                }
            }
        }
        stop.store(true, Ordering::Relaxed);
        drop(sender.join());
        let (sum, longest) = receiver.join().unwrap_or_default();
        let what = if moving { "while it moves" } else { "while nothing moves" };
        section.row(vec![json!(what), round(sum as f64 / 1e6, 1), round(longest.as_secs_f64() * 1e3, 1)]);
    }
    section
}

/// Equation (1) of the papers' section 7.3: average throughput by how often the card is reconfigured. The card's time is
/// simulated time, software's that of this machine.
fn periods(settings: &Settings, daemon: &Daemon, pairs: &[Pair]) -> Section {
    /// Periods in times of reconfiguration: the paper's 15, 30, 60 and 120 s for 12 s.
    const PERIODS: [f64; 4] = [1.25, 2.5, 5.0, 10.0];
    /// What software carries too.
    const RATE: u32 = 20_000;
    let mut section = Section::new(
        "average throughput by period of reconfiguration, four networks on the card, 64 bytes",
        &[
            "period / reconfiguration",
            "card, simulated s",
            "reconfiguration, s",
            "on the card k/s",
            "in software k/s",
            "average measured k/s",
            "by equation (1) k/s",
            "share of the card's",
        ],
    );
    let load = |name: &str| number(&daemon.cli.json(&["image", "load", name]), "/duration_us") / 1e6;
    let flows: Vec<Flow> =
        pairs[..4].iter().map(|pair| Flow::start(&pair.left, &pair.right, RATE / 4, 24)).collect();
    let received = || flows.iter().map(Flow::received).sum::<u64>() as f64;
    let simulated = || number(&daemon.cli.json(&["get", "nodes"]), "/0/card/simulated_seconds");
    // What each side carries by itself: the card without a change, software in changes that are in no period.
    let count = if settings.moves < 20 { 2 } else { PERIODS.len() };
    let (mut changes, mut sw) = (Vec::new(), Vec::new());
    for name in ["tcam4", "default", "tcam4", "default", "tcam4"] {
        std::thread::sleep(Duration::from_millis(300));
        let (before, clock) = (received(), Instant::now());
        changes.push(load(name));
        sw.push((received() - before) / clock.elapsed().as_secs_f64());
    }
    std::thread::sleep(Duration::from_millis(500));
    let (before, began) = (received(), simulated());
    std::thread::sleep(Duration::from_secs(3));
    let hw = (received() - before) / (simulated() - began);
    let (usual, sw) = (Spread::new(changes).median(), Spread::new(sw).median());
    for period in &PERIODS[..count] {
        let (from, began, mut on_card) = (received(), simulated(), 0.0);
        while on_card < usual * (period - 1.0) {
            std::thread::sleep(Duration::from_millis(20));
            on_card = simulated() - began;
        }
        let clock = Instant::now();
        load("default");
        let change = clock.elapsed().as_secs_f64();
        let whole = on_card + change;
        let average = (received() - from) / whole;
        let computed = (sw * change + hw * (whole - change)) / whole;
        let k = |rate: f64| round(rate / 1e3, 1);
        section.row(vec![
            round(whole / change, 2),
            round(on_card, 3),
            round(change, 3),
            k(hw),
            k(sw),
            k(average),
            k(computed),
            round(average / hw, 2),
        ]);
        load("tcam4");
        std::thread::sleep(Duration::from_millis(300));
    }
    drop(flows.into_iter().map(Flow::stop).collect::<Vec<_>>());
    section.note(
        "Image tcam4, 64 bits at 62.5 MHz. The card's seconds are those that it takes for the clocks the twin was given: what it \
         carries in them is what such a card does while it has packets. What each side carries was measured by itself; the \
         equation puts the two together, and the average is counted by the hosts over whole periods. The papers' cards took 12 s \
         to be reconfigured and software carried 1/90 of the card's rate: 20 % of it at a period of 1.25 times that, 90 % at 10.",
    );
    section
}

/// Single receiver and multi receiver: the same segments, with NICs beside the card's ports or without.
fn two_wires(settings: &Settings, wrong: &mut Vec<String>) -> Section {
    let mut section = Section::new(
        format!(
            "single receiver and multi receiver: one network, {} round trips at {:.0} % of the slower side's capacity",
            settings.moves,
            SHARE * 100.0
        ),
        &[
            "receivers",
            "bytes",
            "card k/s",
            "soft k/s",
            "offered k/s",
            "sent",
            "lost",
            "doubled",
            "reordered",
            "reported late",
            "overlap us median",
            "max",
        ],
    );
    let mut lab = Lab::new(2);
    lab.plug_nics();
    let pair = lab.pair("red", 1, 1, [0, 1]);
    let daemon = Daemon::start_with(&lab, &Cli::new(&lab), &[]);
    for (receivers, nics) in [("single", ""), ("multi", ", nics: [n0, n1]")] {
        let card = format!("card: {{twin: {{image: default}}, ports: [p0, p1]{nics}}}");
        let node = format!("{}  {card}\n", lab.node_document(""));
        let document = pair.document.clone().with("placement", "card");
        daemon.cli.apply(&all(&[node, document.yaml()]), &[]);
        until("it runs on the card", 30, || {
            daemon.cli.json(&["get", "networks", pair.name()])["substrate"] == "card"
        });
        pair.warm_up();
        for (name, bytes, from) in SIZES {
            let on_card = capacity(&pair, bytes, from, settings.seconds);
            migrate(&daemon, pair.name(), "soft");
            let on_soft = capacity(&pair, bytes, from, settings.seconds);
            migrate(&daemon, pair.name(), "card");
            let rate = on_card.min(on_soft) * SHARE;
            let flow = Flow::start(&pair.left, &pair.right, rate as u32, bytes);
            std::thread::sleep(Duration::from_millis(500));
            let (mut late, mut overlaps) = (0.0, Vec::new());
            for _ in 0..settings.moves {
                for to in ["soft", "card"] {
                    let proof = migrate(&daemon, pair.name(), to);
                    late += number(&proof, "/steering/late");
                    overlaps.extend(proof.pointer("/steering/overlap_us").and_then(Value::as_f64));
                }
            }
            let traffic = flow.stop();
            if traffic.lost() + traffic.duplicated > 0 {
                wrong.push(format!("{receivers} receiver, {name} bytes: {traffic}"));
            }
            let k = |rate: f64| round(rate / 1e3, 1);
            let mut row = vec![json!(receivers), json!(name), k(on_card), k(on_soft), k(rate)];
            row.extend([traffic.sent, traffic.lost(), traffic.duplicated].map(|count| json!(count)));
            row.extend([json!(traffic.reordered), round(late, 0)]);
            if overlaps.is_empty() {
                row.extend([json!("-"), json!("-")]);
            } else {
                let spread = Spread::new(overlaps);
                row.extend([round(spread.median(), 0), round(spread.max(), 0)]);
            }
            section.row(row);
        }
    }
    section.note(
        "Late: frames that came the old way within 20 ms after neighbours were told. Overlap: how long frames that had been sent \
         by the card took to leave, while others left by the NIC. In both, frames may overtake one another outside the node.",
    );
    section
}

fn images(settings: &Settings, daemon: &Daemon, pairs: &[Pair], wrong: &mut Vec<String>) -> Section {
    let mut section = Section::new(
        "another image for the card: four networks on it, eleven in software, 300 packets/s each",
        &[
            "image",
            "ms median",
            "max",
            "leave ms",
            "swap ms",
            "return ms",
            "sent",
            "lost",
            "doubled",
            "reordered",
        ],
    );
    let flows: Vec<Flow> = pairs.iter().map(|pair| Flow::start(&pair.left, &pair.right, 300, 100)).collect();
    std::thread::sleep(Duration::from_millis(300));
    let rounds = settings.rounds.min(5);
    let names = ["tcam4", "default"];
    let mut loads = names.map(|_| Vec::new());
    for _ in 0..rounds {
        for (name, loads) in names.into_iter().zip(&mut loads) {
            loads.push(daemon.cli.json(&["image", "load", name]));
        }
    }
    let (mut sent, mut lost, mut doubled, mut reordered) = (0, 0, 0, 0);
    for flow in flows {
        let traffic = flow.stop();
        check("an image is loaded", &traffic, wrong);
        sent += traffic.sent;
        lost += traffic.lost();
        doubled += traffic.duplicated;
        reordered += traffic.reordered;
    }
    for (name, loads) in names.into_iter().zip(&loads) {
        let of = |path: &str| Spread::new(loads.iter().map(|load| number(load, path) / 1e3).collect());
        let whole = of("/duration_us");
        let mut row = vec![json!(name), round(whole.median(), 0), round(whole.max(), 0)];
        row.extend([0, 1, 2].map(|at| round(of(&format!("/phases/{at}/us")).median(), 1)));
        row.extend([sent, lost, doubled, reordered].map(|count: u64| json!(count)));
        section.row(row);
    }
    section.note(format!(
        "{rounds} loads of each, one after the other; packets are those of all of them together."
    ));
    section
}
