//! `hueplane lab sweep`: throughput and latency as networks are added, on the card and in software.
//!
//! Flow: numbers of networks and sizes → documents → programs → card and engine → a row for each. The card's figures
//! use the card's time and the engine's this machine's time, so they are listed side by side and never combined.
//! Source: Unnikrishnan (FPGA 2010), §5.1 and §5.2, figures 10 and 12.

use std::collections::HashMap;

use hue_card::Card;
use hue_control::compile;
use hue_demux::PortId;
use hue_intent::Source as Text;
use hue_lab::{Engine, Experiment, Offer, Stream, Traffic, WIRES, run as run_on_card, run_soft};
use hue_substrate::{Program, Substrate};
use serde::Serialize;

use crate::cli::LabSweep;
use crate::failure::Failure;
use crate::print::{Align, columns, result};

/// Ports of the node.
const PORTS: u8 = 4;
/// Each measurement in software is repeated. The fastest one counts, because other programs disturbed it least.
const REPEATS: usize = 3;

/// The result: a row for each size and number of networks.
#[derive(Serialize)]
struct Report {
    rows: Vec<Row>,
}

#[derive(Serialize)]
struct Row {
    size_bytes: u16,
    networks: u8,
    /// The networks on the card.
    card: OnCard,
    /// The other networks, in software; absent if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    rest: Option<InSoftware>,
    /// All networks in software.
    software_only: InSoftware,
}

/// Networks on the card, in the card's time.
#[derive(Clone, Serialize)]
struct OnCard {
    image: String,
    networks: u8,
    offered_gbps: f64,
    received_gbps: f64,
    gbps_per_network: f64,
    dropped: u64,
    first_word_ns_median: f64,
}

/// Networks in the software engine, on one core of this machine.
#[derive(Serialize)]
struct InSoftware {
    networks: u8,
    mpps: f64,
    gbps: f64,
    gbps_per_network: f64,
}

/// Runs the command.
pub fn run(args: &LabSweep) -> Result<(), Failure> {
    let names: Vec<String> = (0..PORTS).map(|port| format!("p{port}")).collect();
    let mut cards: HashMap<(u8, u16), OnCard> = HashMap::new();
    let mut rows = Vec::new();
    for &size in &args.sizes {
        for &networks in &args.networks {
            let on_card = networks.min(args.on_card);
            let card = match cards.get(&(on_card, size)) {
                Some(known) => known.clone(),
                None => {
                    let measured = measure_card(on_card, size, args.duration_us, &names)?;
                    cards.insert((on_card, size), measured.clone());
                    measured
                }
            };
            let in_software = |count: u8| measure_software(count, size, args.frames, &names);
            let rest = (networks > on_card).then(|| in_software(networks - on_card)).transpose()?;
            rows.push(Row { size_bytes: size, networks, card, rest, software_only: in_software(networks)? });
        }
    }
    let report = Report { rows };
    result(args.output.format, &report, || text(&report))
}

/// This many networks. Network n forwards from port n modulo 4 to the next port, and has two routes.
fn programs(count: u8) -> Result<Vec<Program>, Failure> {
    let mut text = "apiVersion: hueplane/v1\nkind: Node\nmetadata: {name: sweep}\nspec: {ports: [".to_owned();
    text += &(0..PORTS).map(|port| format!("{{name: p{port}}}")).collect::<Vec<_>>().join(", ");
    text += "]}\n";
    for n in 1..=count {
        let (left, right) = ((n - 1) % PORTS, n % PORTS);
        text += &format!(
            "---\napiVersion: hueplane/v1\nkind: Network\nmetadata: {{name: n{n}}}\nspec:\n  plane: {{kind: ipv4}}\n  ports:\n\
             \x20   - {{name: left, port: p{left}, mac: '02:00:00:00:{n:02x}:01', addresses: [10.{n}.0.1/24]}}\n\
             \x20   - {{name: right, port: p{right}, mac: '02:00:00:00:{n:02x}:02', addresses: [10.{n}.1.1/24]}}\n\
             \x20 routes: [{{to: 10.{n}.8.0/21, via: 10.{n}.1.2}}, {{to: 10.{n}.16.0/20, via: 10.{n}.1.3}}]\n\
             \x20 neighbours:\n    - {{port: right, address: 10.{n}.1.2, mac: '02:00:00:00:a0:{n:02x}'}}\n\
             \x20   - {{port: right, address: 10.{n}.1.3, mac: '02:00:00:00:a1:{n:02x}'}}\n"
        );
    }
    let source = Text { name: "lab sweep".to_owned(), bytes: text.into_bytes() };
    let intent = hue_intent::parse(vec![source]).map_err(|errors| Failure::Broken(errors.to_string()))?;
    Ok(compile(&intent)?.programs)
}

/// Traffic of each network at `rate`, by its left port.
fn streams(count: u8, size: u16, rate: &str) -> Result<Vec<Stream>, Failure> {
    let stream = |n: u8| {
        let text = format!("rate:{rate},size:{size},networks:n{n},seed:{n}");
        let traffic: Traffic = text.parse().map_err(Failure::Broken)?;
        Ok(Stream { port: PortId::new((n - 1) % PORTS), traffic })
    };
    (1..=count).map(stream).collect()
}

fn measure_card(count: u8, size: u16, duration_us: u64, names: &[String]) -> Result<OnCard, Failure> {
    let image = format!("tcam{count}");
    let mut card = Card::new(hueplaned::options::images().load(&image)?.start()?)?;
    card.load(&programs(count)?)?;
    let experiment = Experiment {
        streams: streams(count, size, "1G")?,
        duration_us: Some(duration_us),
        line: Some("1G".parse().map_err(Failure::Broken)?),
        wave: None,
    };
    let measured = run_on_card(card, names, &experiment, |_| ())?;
    let seconds = measured.offered_cycles as f64 / (f64::from(measured.bus.clock_khz) * 1e3);
    let gbps = |bytes: u64| 8.0 * bytes as f64 / seconds / 1e9;
    let offered_gbps = gbps(measured.ports.iter().map(|port| port.offered_wire_bytes).sum());
    let received_gbps = gbps(measured.window().1);
    let forwarded: u64 = measured.streams.iter().map(|stream| stream.forwarded).sum();
    let offered: u64 = measured.streams.iter().map(|stream| stream.offered).sum();
    let cycles = measured.first_word.quantile(500).unwrap_or_default();
    Ok(OnCard {
        image,
        networks: count,
        offered_gbps: round(offered_gbps),
        received_gbps: round(received_gbps),
        gbps_per_network: round(received_gbps / f64::from(count)),
        dropped: offered - forwarded,
        first_word_ns_median: round(cycles as f64 * 1e6 / f64::from(measured.bus.clock_khz)),
    })
}

fn measure_software(count: u8, size: u16, frames: u32, names: &[String]) -> Result<InSoftware, Failure> {
    let programs = programs(count)?;
    let mut streams = streams(count, size, "1G")?;
    let Some(Stream { traffic: Traffic { offer: Offer::Rate(rate), .. }, .. }) = streams.first() else {
        return Err(Failure::Broken("a sweep without traffic".to_owned()));
    };
    // Preamble and gap take 20 bytes.
    let wire_bits = (u64::from(size) + 20) * 8;
    let duration_us = (u64::from(frames) * wire_bits * 1_000_000).div_ceil(rate.bits() * u64::from(count));
    let mut fastest: Option<f64> = None;
    for _ in 0..REPEATS {
        let experiment = Experiment {
            streams: std::mem::take(&mut streams),
            duration_us: Some(duration_us),
            line: None,
            wave: None,
        };
        let (measured, Engine { frames, took }) = run_soft(&programs, names, &experiment, WIRES, |_| ())?;
        if measured.streams.iter().any(|stream| stream.forwarded != stream.offered) {
            return Err(Failure::Broken("a sweep's frame was not forwarded".to_owned()));
        }
        let per_second = frames as f64 / took.as_secs_f64().max(1e-9);
        fastest = Some(fastest.map_or(per_second, |best| best.max(per_second)));
        streams = experiment.streams;
    }
    let per_second = fastest.unwrap_or_default();
    let gbps = per_second * wire_bits as f64 / 1e9;
    Ok(InSoftware {
        networks: count,
        mpps: round(per_second / 1e6),
        gbps: round(gbps),
        gbps_per_network: round(gbps / f64::from(count)),
    })
}

/// Rounds to three decimals.
fn round(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

fn text(report: &Report) -> String {
    use Align::{Left, Right};
    let head = [
        ("SIZE", Right),
        ("NETWORKS", Right),
        ("ON CARD", Right),
        ("IMAGE", Left),
        ("GBIT/S EACH", Right),
        ("LATENCY NS", Right),
        ("DROPPED", Right),
        ("IN SOFTWARE", Right),
        ("MPPS", Right),
        ("GBIT/S EACH", Right),
        ("SOFTWARE ONLY MPPS", Right),
        ("GBIT/S EACH", Right),
    ];
    let rows = report.rows.iter().map(|row| {
        let rest = row.rest.as_ref().map_or_else(
            || ["0", "-", "-"].map(str::to_owned),
            |rest| {
                [
                    rest.networks.to_string(),
                    format!("{:.2}", rest.mpps),
                    format!("{:.3}", rest.gbps_per_network),
                ]
            },
        );
        let mut cells = vec![
            row.size_bytes.to_string(),
            row.networks.to_string(),
            row.card.networks.to_string(),
            row.card.image.clone(),
            format!("{:.3}", row.card.gbps_per_network),
            format!("{:.0}", row.card.first_word_ns_median),
            row.card.dropped.to_string(),
        ];
        cells.extend(rest);
        cells.push(format!("{:.2}", row.software_only.mpps));
        cells.push(format!("{:.3}", row.software_only.gbps_per_network));
        cells
    });
    columns(&head, &rows.collect::<Vec<_>>())
        + "card: the card's time, lines of 1 Gbit/s; software: one core of this machine, without ports\n"
}
