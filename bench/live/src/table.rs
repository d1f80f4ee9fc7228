//! A network with the Internet's table of 2026 moves between card and software: both sides have the table beforehand, so a
//! move copies no routes.
//!
//! Routes are the kernel's, with eight next hops by fnv1a of the first 20 bits of the prefix, mixed. Image `sram`.

use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use hue_e2e::document::all;
use hue_e2e::traffic::Flow;
use hue_e2e::{Cli, Daemon, Lab, Pair, until};
use hue_tables::Prefix4;
use serde_json::{Value, json};

use crate::Settings;
use crate::measure::Spread;
use crate::report::{Report, Section, round};
use crate::rib;

/// Packets of 100 bytes a second that cross the network meanwhile.
const RATE: u32 = 500;

/// Measures.
///
/// # Errors
/// Packets that were lost, duplicated or reordered; or the table is missing.
pub fn run(settings: &Settings, report: &mut Report) -> Result<(), String> {
    let all_of_it =
        rib::prefixes::<u32>(rib::V4_2026).ok_or_else(|| format!("there is no {}", rib::V4_2026))?;
    // Not the lab's own addresses.
    let prefixes: Vec<Prefix4> = all_of_it.into_iter().filter(|prefix| prefix.addr() >> 24 != 10).collect();
    let lab = Lab::new(2);
    let pair = lab.pair("full", 1, 1, [0, 1]);
    let ports = lab.ports().join(", ");
    let bare = lab.node_document("");
    let node = format!("{bare}  card: {{twin: {{image: sram}}, ports: [{ports}]}}\n");
    let network = pair.document.clone().with("placement", "soft").yaml();
    let daemon = Daemon::start_with(&lab, &Cli::new(&lab), &[]);
    daemon.cli.apply(&all(&[node.clone(), network.clone()]), &[]);
    until("it runs", 30, || daemon.cli.json(&["get", "networks", pair.name()])["state"] == "running");
    pair.warm_up();

    let mut section = Section::new(
        &format!("a network with {} routes", prefixes.len()),
        &["what", "times", "ms median", "min", "max"],
    );
    let file = lab.folder().join("routes");
    std::fs::write(&file, batch(&pair, &prefixes)).map_err(|error| format!("{}: {error}", file.display()))?;
    let began = Instant::now();
    let _ = daemon.cli.exec(pair.name(), &["ip", "-batch", &file.display().to_string()]).expect_ok();
    let kernel = began.elapsed();
    let there = |of: &Value| of["routes"].as_u64() >= Some(prefixes.len() as u64);
    until("software has all", 300, || there(&daemon.cli.json(&["get", "networks", pair.name()])));
    let software = began.elapsed();
    let on_card = || {
        let tables = daemon.cli.json(&["get", "tables"]);
        tables.pointer("/card/networks/0").is_some_and(there)
    };
    until("the card has all", 300, on_card);
    let card = began.elapsed();
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    for (what, time) in [
        ("the kernel has taken all routes, by `ip -batch`", kernel),
        ("software has followed", software),
        ("the card has followed, in software as the network is", card),
    ] {
        section.row(row(what, vec![ms(time)]));
    }

    let flow = Flow::start(&pair.left, &pair.right, RATE, 100);
    until("traffic", 20, || flow.received() > 100);
    let mut times: [Vec<f64>; 4] = Default::default();
    let mut wrong = Vec::new();
    for _ in 0..settings.moves.min(20) {
        for (at, to) in ["card", "soft"].into_iter().enumerate() {
            let began = Instant::now();
            let proof = daemon.cli.json(&["migrate", pair.name(), "--to", to]);
            times[2 + at].push(ms(began.elapsed()));
            times[at].push(proof["duration_us"].as_f64().unwrap_or(f64::NAN) / 1e3);
            if proof["lost"] != 0 || proof["doubled"] != 0 || proof["reordered"] != 0 {
                wrong.push(proof.to_string());
            }
        }
    }
    let traffic = flow.stop();
    if traffic.lost() + traffic.duplicated + traffic.reordered > 0 {
        wrong.push(traffic.to_string());
    }
    let [to_card, to_soft, card_asked, soft_asked] = times;
    section.row(row("it moves to the card", to_card));
    section.row(row("the same, from the command to its answer, which looks 40 ms longer", card_asked));
    section.row(row("it moves to software", to_soft));
    section.row(row("the same, from the command to its answer", soft_asked));

    // The card is replaced by another one, which does not have the table.
    daemon.cli.apply(&all(&[bare, network.clone()]), &[]);
    until("there is no card", 30, || daemon.cli.json(&["get", "tables"])["card"].is_null());
    let began = Instant::now();
    daemon.cli.apply(&all(&[node, network]), &[]);
    until("the card has all", 300, on_card);
    section.row(row("a card comes: until it has the table of software", vec![ms(began.elapsed())]));
    let began = Instant::now();
    let proof = daemon.cli.json(&["migrate", pair.name(), "--to", "card"]);
    section.row(row("and the network is on it: what words it lacked are written", vec![ms(began.elapsed())]));
    if proof["lost"] != 0 {
        wrong.push(proof.to_string());
    }
    let tables = daemon.cli.json(&["get", "tables"]);
    let words = |path: &str| tables.pointer(path).and_then(Value::as_u64).unwrap_or(0);
    section.note(&format!(
        "{} next hops by fnv1a of the prefix's first 20 bits, mixed; image sram, {} of {} words in use. {RATE} packets/s of \
         100 bytes cross the network while it moves: {traffic}.",
        rib::DERIVED_HOPS,
        words("/card/memories/0/used"),
        words("/card/memories/0/max")
    ));
    report.push(section);
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
}

fn row(what: &str, times: Vec<f64>) -> Vec<Value> {
    let count = times.len();
    let spread = Spread::new(times);
    let ms = |value| round(value, 1);
    vec![json!(what), json!(count), ms(spread.median()), ms(spread.min()), ms(spread.max())]
}

/// Lines of `ip -batch`: neighbours, which are all one host, and routes to them.
fn batch(pair: &Pair, prefixes: &[Prefix4]) -> String {
    let mac = pair.right.mac.map(|byte| format!("{byte:02x}")).join(":");
    let [a, b, c, host] = pair.right.address.octets();
    let address = |hop: u16| Ipv4Addr::new(a, b, c, host + hop as u8); // below 8
    let neighbour = |hop| format!("neigh replace {} lladdr {mac} dev right nud permanent\n", address(hop));
    let hop = |prefix: &Prefix4| rib::derived_hop(*prefix, 1).get();
    let route = |prefix: &Prefix4| format!("route replace {prefix} via {}\n", address(hop(prefix)));
    (1..rib::DERIVED_HOPS as u16).map(neighbour).chain(prefixes.iter().map(route)).collect()
}
