//! `hueplane lab`: sends traffic through the simulated card and reports the results. Experiments on tables
//! are in [`tables`], those on real interfaces in [`live`].
//!
//! Flow: documents → networks on the twin; traffic → `hue_lab` → measurements → a report. Output files get
//! their names after the last frame.

mod live;
mod power;
mod sections;
mod sweep;
mod tables;

use hue_card::{Card, Way};
use hue_lab::{
    Bus, Captured, Engine, Experiment, LabError, Latency, Measured, NetworkCounts, PortMeasured, Stream,
    StreamMeasured, WIRES, Wave,
};
use hue_planes::Loss;
use hue_ports::{Frame, OutputDir, Resolution};
use hue_substrate::Substrate;
use serde::Serialize;

use super::counts::Counts;
use super::engine::Networks;
use super::run::within_run;
use crate::cli::{LabCommand, LabRun, NamedTraffic, On};
use crate::failure::Failure;
use crate::print::{Align, DIM, columns, grouped, result, styled};

/// What to do with networks that have tunnels.
const NO_TUNNELS: &str = "`hueplane lab` measures networks without them: use `hueplane run`";

/// The result of `lab run`.
#[derive(Serialize)]
struct Report<'a> {
    /// `card` or `soft`.
    on: &'static str,
    offered_ns: u64,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    card: Option<CardReport<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    engine: Option<EngineReport>,
    total: Total,
    ports: Counts<'a, PortReport<'a>>,
    /// As given.
    traffic: Vec<StreamReport<'a>>,
    networks: Counts<'a, NetworkReport<'a>>,
    unclaimed: Counts<'a, u64>,
    latency: Option<LatencyReport>,
}

/// The clock of the card.
#[derive(Serialize)]
struct CardReport<'a> {
    image: &'a str,
    clock_khz: u32,
    /// Duration of the traffic in clock cycles.
    offered_cycles: u64,
    /// Clock cycles from the first frame until the card was empty.
    cycles: u64,
    simulated_ns: u64,
}

/// The speed of the software engine on one core of this machine, without receiving and sending.
#[derive(Serialize)]
struct EngineReport {
    mpps: f64,
    ns_per_packet: f64,
}

/// Totals of all ports. Rates are averages over the duration of the traffic. Gbit/s are rates on the wire,
/// including preambles and gaps.
#[derive(Serialize)]
struct Total {
    offered: u64,
    offered_mpps: f64,
    offered_gbps: f64,
    received: u64,
    received_mpps: f64,
    received_gbps: f64,
    punted: u64,
    dropped: u64,
    cycles_per_packet: Option<f64>,
}

#[derive(Serialize)]
struct PortReport<'a> {
    offered: u64,
    offered_gbps: f64,
    taken: u64,
    sent: u64,
    sent_gbps: f64,
    drop: Counts<'a, u64>,
}

/// Outcomes of the frames of one `--traffic`.
#[derive(Serialize)]
struct StreamReport<'a> {
    port: &'a str,
    offered: u64,
    forwarded: u64,
    punted: u64,
    dropped: u64,
    first_word: Option<Spread>,
}

#[derive(Serialize)]
struct NetworkReport<'a> {
    received: u64,
    forward: u64,
    punt: u64,
    drop: Counts<'a, u64>,
    /// Lost outside the plane: before it, or after its decision to forward or punt.
    lost: Counts<'a, u64>,
}

#[derive(Serialize)]
struct LatencyReport {
    frames: u64,
    first_word: Spread,
    last_word: Spread,
}

#[derive(Serialize)]
struct Spread {
    cycles: Quantiles<u64>,
    ns: Quantiles<f64>,
}

#[derive(Serialize)]
struct Quantiles<T> {
    min: T,
    median: T,
    p99: T,
    max: T,
}

/// Runs the command.
pub fn run(command: &LabCommand) -> Result<(), Failure> {
    match command {
        LabCommand::Run(args) if !args.live.is_empty() => live::run(args),
        LabCommand::Run(args) => run_card(args),
        LabCommand::Power(args) => power::run(args),
        LabCommand::Sweep(args) => sweep::run(args),
        LabCommand::Tables(args) => tables::run(args),
    }
}

fn run_card(args: &LabRun) -> Result<(), Failure> {
    let networks = Networks::compile(&args.files.files)?.without_tunnels(NO_TUNNELS)?;
    let streams = streams(&networks, args)?;
    let wave = args.wave.clone().map(|file| Wave { file, cycles: args.wave_cycles.unwrap_or((0, u64::MAX)) });
    let experiment = Experiment { streams, duration_us: args.duration_us, line: args.line, wave };
    let names = port_names(&networks);
    let mut card = match args.on {
        On::Soft => None,
        On::Card => {
            let mut card = Card::new(hueplaned::options::images().load(&args.image)?.start()?)?;
            card.load(&networks.programs)?;
            Some(card)
        }
    };
    let bus = card.as_mut().map_or(WIRES, |card| {
        let description = card.description();
        Bus { clock_khz: description.clock_khz, bytes: description.bus_bytes }
    });
    let mut out = Out::open(args, &names)?;
    let mut written = Ok(());
    let each = |captured: Captured<'_>| {
        if let (Some(out), Ok(())) = (&mut out, &written) {
            written = out.write(captured, bus);
        }
    };
    let (measured, engine) = match card {
        Some(card) => (hue_lab::run(card, &names, &experiment, each)?, None),
        None => {
            let (measured, engine) = hue_lab::run_soft(&networks.programs, &names, &experiment, bus, each)?;
            (measured, Some(engine))
        }
    };
    written?;
    within_run(args.wave_cycles, Some(measured.cycles))?;
    for (name, port) in names.iter().zip(&measured.ports) {
        warn_of_cut(name, port.cut);
    }
    let files = out.map(Out::commit).transpose()?.unwrap_or_default();
    let given: Vec<&str> = args.traffic.iter().map(|one| one.port.as_str()).collect();
    let mut report = report(&args.image, &networks, &names, &given, &measured);
    if let Some(Engine { frames, took }) = engine {
        let seconds = took.as_secs_f64().max(1e-9);
        let (mpps, ns_per_packet) = (frames as f64 / seconds / 1e6, seconds * 1e9 / (frames as f64).max(1.0));
        report.on = "soft";
        report.total.cycles_per_packet = None;
        report.card = None;
        report.engine = Some(EngineReport { mpps: round(mpps), ns_per_packet: round(ns_per_packet) });
    }
    result(args.output.format, &report, || text(&networks, &report) + &files)
}

/// The traffic that the command line names.
fn streams(networks: &Networks, args: &LabRun) -> Result<Vec<Stream>, Failure> {
    let stream = |one: &NamedTraffic| {
        let port = networks.port("--traffic", &one.port)?;
        Ok(Stream { port, traffic: one.traffic.clone() })
    };
    args.traffic.iter().map(stream).collect()
}

/// Names of the ports, by number.
fn port_names(networks: &Networks) -> Vec<String> {
    networks.names.ports.iter().map(|port| port.name.clone()).collect()
}

fn warn_of_cut(port: &str, cut: u64) {
    if cut > 0 {
        let cut = grouped(cut);
        eprintln!("hueplane: {port}: {cut} packets are truncated in the capture; sent as they are");
    }
}

/// Capture files being written.
struct Out {
    dir: OutputDir,
    punt: usize,
}

impl Out {
    fn open(args: &LabRun, ports: &[String]) -> Result<Option<Self>, Failure> {
        let Some(folder) = &args.out else { return Ok(None) };
        let mut dir = OutputDir::open(folder)?;
        for port in ports {
            dir.add(&format!("{port}.pcap"), Resolution::Nano)?;
        }
        let punt = dir.add("punt.pcap", Resolution::Nano)?;
        Ok(Some(Self { dir, punt }))
    }

    fn write(&mut self, captured: Captured<'_>, bus: Bus) -> Result<(), Failure> {
        let index = match captured.way {
            Way::Port(port) => port.index(),
            Way::Control { .. } => self.punt,
        };
        let wire_len = u32::try_from(captured.bytes.len()).unwrap_or(u32::MAX);
        let frame = Frame { bytes: captured.bytes, time_ns: bus.nanoseconds(captured.first_cycle), wire_len };
        match self.dir.writer(index) {
            Some(writer) => Ok(writer.write(frame)?),
            None => Ok(()),
        }
    }

    /// Completes the files. Returns their names and packet counts as text.
    fn commit(self) -> Result<String, Failure> {
        commit(self.dir, self.punt + 1)
    }
}

/// Completes these files. Returns their names and packet counts as text.
fn commit(mut dir: OutputDir, files: usize) -> Result<String, Failure> {
    let packets: Vec<u64> =
        (0..files).map(|index| dir.writer(index).map_or(0, |writer| writer.packets())).collect();
    let paths = dir.commit()?;
    let lines = paths.iter().zip(packets);
    Ok(lines
        .map(|(path, packets)| format!("{} {}\n", styled(DIM, path.display()), grouped(packets)))
        .collect())
}

/// Converts counts to rates over the duration of the traffic.
struct Rates {
    seconds: f64,
}

impl Rates {
    /// Units per second.
    fn of(&self, count: u64, unit: f64) -> f64 {
        if self.seconds > 0.0 { round(count as f64 / self.seconds / unit) } else { 0.0 }
    }

    fn gbps(&self, bytes: u64) -> f64 {
        self.of(8 * bytes, 1e9)
    }
}

fn report<'a>(
    image: &'a str,
    networks: &'a Networks,
    names: &'a [String],
    given: &[&'a str],
    measured: &Measured,
) -> Report<'a> {
    let bus = measured.bus;
    let rates = Rates { seconds: measured.offered_cycles as f64 / (f64::from(bus.clock_khz) * 1e3) };
    let ports =
        names.iter().zip(&measured.ports).map(|(name, port)| (name.as_str(), port_report(port, &rates)));
    let by_network = measured.networks.iter().filter_map(|network| {
        Some((networks.names.network(network.vid)?.name.as_str(), network_report(network)))
    });
    let ports = Counts(ports.collect());
    let by_network = Counts(by_network.collect::<Vec<_>>());
    let unclaimed = reasons(measured.unclaimed.iter().map(|(reason, count)| (reason.name(), count)));
    let lost_inside: u64 =
        by_network.0.iter().map(|(_, network)| network.drop.total() + network.lost.total()).sum();
    Report {
        on: "card",
        offered_ns: bus.nanoseconds(measured.offered_cycles),
        card: Some(CardReport {
            image,
            clock_khz: bus.clock_khz,
            offered_cycles: measured.offered_cycles,
            cycles: measured.cycles,
            simulated_ns: bus.nanoseconds(measured.cycles),
        }),
        engine: None,
        total: total(measured, &rates, lost_inside + unclaimed.total()),
        ports,
        traffic: given.iter().zip(&measured.streams).map(|(port, one)| stream(port, one, bus)).collect(),
        networks: by_network,
        unclaimed,
        latency: latency(measured),
    }
}

fn port_report(port: &PortMeasured, rates: &Rates) -> PortReport<'static> {
    let counts = &port.counts;
    let drop = [
        ("input_queue_full", counts.input_queue_full),
        ("flood_memory_full", counts.flood_memory_full),
        ("output_queue_full", counts.output_queue_full),
    ];
    PortReport {
        offered: port.offered,
        offered_gbps: rates.gbps(port.offered_wire_bytes),
        taken: counts.received,
        sent: counts.sent,
        sent_gbps: rates.gbps(port.window_wire_bytes),
        drop: reasons(drop),
    }
}

fn network_report(network: &NetworkCounts) -> NetworkReport<'static> {
    let counters = &network.counters;
    let outcomes = counters.drops().map(|(outcome, count)| (outcome.name(), count));
    let lost = [(Loss::PortFull, network.port_full), (Loss::HandoverFull, network.handover_full)];
    NetworkReport {
        received: counters.received(),
        forward: counters.forwarded(),
        punt: counters.punted(),
        drop: reasons(outcomes),
        lost: reasons(lost.map(|(reason, count)| (reason.name(), count))),
    }
}

/// Totals; `lost_inside` is the number of frames lost after the input queues.
fn total(measured: &Measured, rates: &Rates, lost_inside: u64) -> Total {
    let sum = |of: fn(&PortMeasured) -> u64| measured.ports.iter().map(of).sum::<u64>();
    let (window, window_bytes) = measured.window();
    let offered = sum(|port| port.offered);
    Total {
        offered,
        offered_mpps: rates.of(offered, 1e6),
        offered_gbps: rates.gbps(sum(|port| port.offered_wire_bytes)),
        received: sum(|port| port.counts.sent),
        received_mpps: rates.of(window, 1e6),
        received_gbps: rates.gbps(window_bytes),
        punted: measured.punted,
        dropped: sum(|port| port.counts.input_queue_full + port.counts.flood_memory_full) + lost_inside,
        cycles_per_packet: measured.cycles_a_packet().map(round),
    }
}

fn stream<'a>(port: &'a str, stream: &StreamMeasured, bus: Bus) -> StreamReport<'a> {
    let StreamMeasured { offered, forwarded, punted, dropped, first_word } = stream;
    let (offered, forwarded, punted, dropped) = (*offered, *forwarded, *punted, *dropped);
    StreamReport { port, offered, forwarded, punted, dropped, first_word: spread(first_word, bus) }
}

fn latency(measured: &Measured) -> Option<LatencyReport> {
    Some(LatencyReport {
        frames: measured.first_word.frames(),
        first_word: spread(&measured.first_word, measured.bus)?,
        last_word: spread(&measured.last_word, measured.bus)?,
    })
}

fn spread(latency: &Latency, bus: Bus) -> Option<Spread> {
    let ns = |cycles: u64| round(cycles as f64 * 1e6 / f64::from(bus.clock_khz));
    let at = |thousandths| latency.quantile(thousandths);
    let cycles = Quantiles { min: at(0)?, median: at(500)?, p99: at(990)?, max: at(1000)? };
    let Quantiles { min, median, p99, max } = cycles;
    let ns = Quantiles { min: ns(min), median: ns(median), p99: ns(p99), max: ns(max) };
    Some(Spread { cycles, ns })
}

/// Reasons with a count other than zero.
fn reasons<'a>(all: impl IntoIterator<Item = (&'a str, u64)>) -> Counts<'a, u64> {
    Counts(all.into_iter().filter(|(_, count)| *count > 0).collect())
}

/// Rounds to three decimals.
fn round(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

fn why(counts: &Counts<'_, u64>) -> String {
    let list: Vec<String> =
        counts.0.iter().map(|(name, count)| format!("{name} {}", grouped(*count))).collect();
    list.join(", ")
}

fn text(networks: &Networks, report: &Report<'_>) -> String {
    let parts =
        [ports_text(report), streams_text(report), networks_text(networks, report), latency_text(report)];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n") + &summary(report)
}

fn ports_text(report: &Report<'_>) -> String {
    use Align::{Left, Right};
    let head = [
        ("PORT", Left),
        ("OFFERED", Right),
        ("GBIT/S", Right),
        ("TAKEN", Right),
        ("SENT", Right),
        ("GBIT/S", Right),
        ("DROP", Right),
        ("WHY", Left),
    ];
    let rate = |gbps: f64| format!("{gbps:.3}");
    let rows = report.ports.0.iter().map(|(name, port)| {
        vec![
            (*name).to_owned(),
            grouped(port.offered),
            rate(port.offered_gbps),
            grouped(port.taken),
            grouped(port.sent),
            rate(port.sent_gbps),
            grouped(port.drop.total()),
            why(&port.drop),
        ]
    });
    columns(&head, &rows.collect::<Vec<_>>())
}

/// Empty if there is only one.
fn streams_text(report: &Report<'_>) -> String {
    use Align::{Left, Right};
    if report.traffic.len() < 2 {
        return String::new();
    }
    let head = [
        ("TRAFFIC", Left),
        ("OFFERED", Right),
        ("FORWARDED", Right),
        ("PUNTED", Right),
        ("DROPPED", Right),
        ("MEDIAN", Right),
        ("P99", Right),
        ("MAX", Right),
    ];
    let rows = report.traffic.iter().map(|one| {
        let cycles = one.first_word.as_ref().map(|spread| &spread.cycles);
        let cycles = cycles.map(|all| [all.median, all.p99, all.max].map(grouped));
        let counts = [one.offered, one.forwarded, one.punted, one.dropped].map(grouped);
        let cycles = cycles.unwrap_or_else(|| ["-"; 3].map(str::to_owned));
        [one.port.to_owned()].into_iter().chain(counts).chain(cycles).collect()
    });
    columns(&head, &rows.collect::<Vec<_>>())
}

fn networks_text(networks: &Networks, report: &Report<'_>) -> String {
    use Align::{Left, Right};
    let head = [
        ("NETWORK", Left),
        ("RECEIVED", Right),
        ("FORWARD", Right),
        ("PUNT", Right),
        ("DROP", Right),
        ("LOST", Right),
        ("WHY", Left),
    ];
    let painted = |name: &str| {
        let vid = networks.programs.iter().find(|program| program.name == name).map(|program| program.vid);
        vid.map_or_else(String::new, |vid| networks.painted(vid))
    };
    let rows = report.networks.0.iter().map(|(name, network)| {
        let numbers =
            [network.received, network.forward, network.punt, network.drop.total(), network.lost.total()];
        let why = [why(&network.drop), why(&network.lost)];
        let why = why.into_iter().filter(|why| !why.is_empty()).collect::<Vec<_>>().join(", ");
        [painted(name)].into_iter().chain(numbers.map(grouped)).chain([why]).collect()
    });
    let mut rows: Vec<Vec<String>> = rows.collect();
    if !report.unclaimed.0.is_empty() {
        let (count, zero) = (grouped(report.unclaimed.total()), "0".to_owned());
        let name = styled(DIM, "(no network)");
        rows.push(vec![name, count.clone(), zero.clone(), zero.clone(), count, zero, why(&report.unclaimed)]);
    }
    columns(&head, &rows)
}

/// Latencies as text; empty if ports had to wait.
fn latency_text(report: &Report<'_>) -> String {
    use Align::{Left, Right};
    let Some(latency) = &report.latency else { return String::new() };
    let head = [("LATENCY", Left), ("MIN", Right), ("MEDIAN", Right), ("P99", Right), ("MAX", Right)];
    let row = |name: &str, values: [String; 4]| [name.to_owned()].into_iter().chain(values).collect();
    let cycles = |q: &Quantiles<u64>| [q.min, q.median, q.p99, q.max].map(grouped);
    let ns = |q: &Quantiles<f64>| [q.min, q.median, q.p99, q.max].map(|ns| format!("{ns}"));
    let rows = [
        row("first word, cycles", cycles(&latency.first_word.cycles)),
        row("first word, ns", ns(&latency.first_word.ns)),
        row("last word, cycles", cycles(&latency.last_word.cycles)),
        row("last word, ns", ns(&latency.last_word.ns)),
    ];
    columns(&head, &rows) + "\n"
}

/// Totals as text.
fn summary(report: &Report<'_>) -> String {
    let total = &report.total;
    let line = format!(
        "offered {} Mpps, {} Gbit/s; received {} Mpps, {} Gbit/s{}; dropped {} of {}",
        total.offered_mpps,
        total.offered_gbps,
        total.received_mpps,
        total.received_gbps,
        total.cycles_per_packet.map_or_else(String::new, |cycles| format!(", {cycles} cycles per packet")),
        grouped(total.dropped),
        grouped(total.offered),
    );
    let card = report.card.as_ref().map(|card| {
        format!(
            "image {}: {} cycles, {} us on the card",
            card.image,
            grouped(card.cycles),
            grouped(card.simulated_ns / 1000)
        )
    });
    let engine = report.engine.as_ref().map(|engine| {
        format!(
            "software: {} Mpps, {} ns per packet on one core, without ports",
            engine.mpps, engine.ns_per_packet
        )
    });
    let last = card.or(engine).unwrap_or_default();
    format!("{line}\n{}\n", styled(DIM, last))
}

impl From<LabError> for Failure {
    fn from(error: LabError) -> Self {
        let text = error.to_string();
        match error {
            LabError::Card(error) => error.into(),
            LabError::Capture(error) => error.into(),
            LabError::Traffic { .. } | LabError::TooFast { .. } | LabError::Plan(_) => Self::Usage(text),
            LabError::Engine(_) | LabError::Interface { .. } => Self::Input(text),
            LabError::Frames => Self::Full(text),
            LabError::Unbalanced(_) | LabError::Wave(_) => Self::Broken(text),
        }
    }
}
