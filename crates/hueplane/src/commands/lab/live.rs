//! `hueplane lab run --live`: sends traffic through real interfaces to a running node, and reports what comes
//! back.
//!
//! Flow: documents and traffic → `hue_lab::run_live` → a report. No request is sent to the node.

use hue_lab::{
    Cable, CableMeasured, Experiment, LiveMeasured, Offer, Received, StreamFate, StreamSent, run_live,
};
use hue_ports::{Frame, OutputDir, Resolution};
use serde::Serialize;

use super::{NO_TUNNELS, Quantiles, Rates, commit, port_names, round, streams, warn_of_cut};
use crate::cli::{LabRun, NamedInterface, NamedTraffic};
use crate::commands::counts::Counts;
use crate::commands::engine::Networks;
use crate::commands::interrupted;
use crate::failure::Failure;
use crate::print::{Align, DIM, columns, count, grouped, result, styled};

/// The result. Rates are averages over the actual duration of the traffic; Gbit/s are rates on the wire,
/// including preambles and gaps.
#[derive(Serialize)]
struct Report<'a> {
    /// `live`.
    on: &'static str,
    /// Actual and planned duration of the traffic; the latter is absent for captures that are sent once.
    offered_ns: u64,
    planned_ns: Option<u64>,
    /// Ctrl-C ended it.
    stopped: bool,
    total: Total,
    ports: Counts<'a, PortReport<'a>>,
    /// As given.
    traffic: Vec<StreamReport<'a>>,
}

#[derive(Serialize)]
struct Total {
    wanted_gbps: Option<f64>,
    sent: u64,
    sent_mpps: f64,
    sent_gbps: f64,
    /// This and the next three numbers count only frames that carry a number.
    received: u64,
    lost: u64,
    doubled: u64,
    reordered: u64,
    others: u64,
    missed: u64,
}

#[derive(Serialize)]
struct PortReport<'a> {
    interface: &'a str,
    /// `null` without traffic, and for `max`.
    wanted_gbps: Option<f64>,
    sent: u64,
    sent_mpps: f64,
    sent_gbps: f64,
    /// How much later than planned the latest frame was sent.
    late_us: f64,
    /// Frames that the interface cannot send: longer than its MTU, or shorter than a header.
    refused: u64,
    received: u64,
    /// Received frames that do not belong to this traffic.
    others: u64,
    /// Frames that were lost because they arrived faster than this program could receive them.
    missed: u64,
}

/// Outcomes of one `--traffic`; `null` if unknown, because its frames carry no number.
#[derive(Serialize)]
struct StreamReport<'a> {
    port: &'a str,
    sent: u64,
    received: Option<u64>,
    lost: Option<u64>,
    doubled: Option<u64>,
    reordered: Option<u64>,
    latency_us: Option<Quantiles<f64>>,
}

/// Runs the command.
pub fn run(args: &LabRun) -> Result<(), Failure> {
    let networks = Networks::compile(&args.files.files)?.without_tunnels(NO_TUNNELS)?;
    let streams = streams(&networks, args)?;
    let cable = |one: &NamedInterface| {
        let port = networks.port("--live", &one.port)?;
        Ok(Cable { port, interface: one.interface.clone() })
    };
    let cables = args.live.iter().map(cable).collect::<Result<Vec<Cable>, Failure>>()?;
    let experiment = Experiment { streams, duration_us: args.duration_us, line: None, wave: None };
    let names = port_names(&networks);
    let mut out = open(args)?;
    let stop = interrupted()?;
    let mut written = Ok(());
    let mut each = |frame: Received<'_>| {
        if let (Some(out), Ok(())) = (&mut out, &written) {
            written = write(out, frame);
        }
    };
    let each = args.out.is_some().then_some(&mut each as &mut hue_lab::Each<'_>);
    let measured = run_live(&networks.programs, &names, &experiment, &cables, &stop, each)?;
    written?;
    warn(args, &measured);
    let files = out.map(|dir| commit(dir, args.live.len())).transpose()?.unwrap_or_default();
    let report = report(args, &measured);
    result(args.output.format, &report, || text(&report) + &files)?;
    if measured.is_stopped { Err(Failure::Interrupted) } else { Ok(()) }
}

/// Capture files, one for each interface.
fn open(args: &LabRun) -> Result<Option<OutputDir>, Failure> {
    let Some(folder) = &args.out else { return Ok(None) };
    let mut dir = OutputDir::open(folder)?;
    for one in &args.live {
        dir.add(&format!("{}.pcap", one.port), Resolution::Nano)?;
    }
    Ok(Some(dir))
}

fn write(dir: &mut OutputDir, frame: Received<'_>) -> Result<(), Failure> {
    let wire_len = u32::try_from(frame.bytes.len()).unwrap_or(u32::MAX);
    let Some(writer) = dir.writer(frame.cable) else { return Ok(()) };
    Ok(writer.write(Frame { bytes: frame.bytes, time_ns: frame.time_ns, wire_len })?)
}

/// Prints why the result covers less than was requested.
fn warn(args: &LabRun, measured: &LiveMeasured) {
    for (one, cable) in args.live.iter().zip(&measured.cables) {
        let NamedInterface { port, interface } = one;
        warn_of_cut(port, cable.cut);
        if cable.refused > 0 {
            let frames = count(cable.refused, "frame");
            eprintln!(
                "hueplane: {port}: {interface} cannot send {frames}: longer than its MTU, or shorter than a header"
            );
        }
        if cable.missed > 0 {
            let frames = count(cable.missed, "frame");
            eprintln!(
                "hueplane: {port}: {frames} arrived faster than this program could receive them and count as lost; use a lower rate"
            );
        }
    }
}

/// The planned rate of the streams, Gbit/s; `None` if one of them has no rate.
fn wanted<'a>(streams: impl Iterator<Item = &'a NamedTraffic>) -> Option<f64> {
    let bits = streams.map(|one| match one.traffic.offer {
        Offer::Rate(rate) => Some(rate.bits()),
        Offer::Max => None,
    });
    let sum: u64 = bits.sum::<Option<u64>>()?;
    (sum > 0).then(|| round(sum as f64 / 1e9))
}

fn report<'a>(args: &'a LabRun, measured: &LiveMeasured) -> Report<'a> {
    let offered_ns = measured.cables.iter().map(|cable| cable.took_ns).max().unwrap_or(0);
    let rates = Rates { seconds: offered_ns as f64 / 1e9 };
    let traffic: Vec<StreamReport<'a>> =
        args.traffic.iter().zip(&measured.streams).map(|(one, stream)| stream_report(one, stream)).collect();
    let sum = |of: fn(&CableMeasured) -> u64| measured.cables.iter().map(of).sum::<u64>();
    let known = |of: fn(&StreamReport<'_>) -> Option<u64>| traffic.iter().filter_map(of).sum::<u64>();
    let sent = sum(|cable| cable.sent);
    let total = Total {
        wanted_gbps: wanted(args.traffic.iter()),
        sent,
        sent_mpps: rates.of(sent, 1e6),
        sent_gbps: rates.gbps(sum(|cable| cable.sent_wire_bytes)),
        received: known(|one| one.received),
        lost: known(|one| one.lost),
        doubled: known(|one| one.doubled),
        reordered: known(|one| one.reordered),
        others: sum(|cable| cable.others),
        missed: sum(|cable| cable.missed),
    };
    let ports = args.live.iter().zip(&measured.cables).map(|(one, cable)| {
        let streams = args.traffic.iter().filter(|traffic| traffic.port == one.port);
        (one.port.as_str(), port_report(&one.interface, wanted(streams), cable))
    });
    Report {
        on: "live",
        offered_ns,
        planned_ns: measured.planned_ns,
        stopped: measured.is_stopped,
        total,
        ports: Counts(ports.collect()),
        traffic,
    }
}

fn port_report<'a>(interface: &'a str, wanted_gbps: Option<f64>, cable: &CableMeasured) -> PortReport<'a> {
    let rates = Rates { seconds: cable.took_ns as f64 / 1e9 };
    PortReport {
        interface,
        wanted_gbps,
        sent: cable.sent,
        sent_mpps: rates.of(cable.sent, 1e6),
        sent_gbps: rates.gbps(cable.sent_wire_bytes),
        late_us: round(cable.late_ns as f64 / 1e3),
        refused: cable.refused,
        received: cable.received,
        others: cable.others,
        missed: cable.missed,
    }
}

fn stream_report<'a>(one: &'a NamedTraffic, stream: &StreamSent) -> StreamReport<'a> {
    let fate = stream.fate.as_ref();
    StreamReport {
        port: &one.port,
        sent: stream.sent,
        received: fate.map(|fate| fate.received),
        lost: fate.map(|fate| stream.sent.saturating_sub(fate.received)),
        doubled: fate.map(|fate| fate.doubled),
        reordered: fate.map(|fate| fate.reordered),
        latency_us: fate.and_then(latency),
    }
}

fn latency(fate: &StreamFate) -> Option<Quantiles<f64>> {
    let at = |thousandths| fate.latency_ns(thousandths).map(|ns| round(ns as f64 / 1e3));
    Some(Quantiles { min: at(0)?, median: at(500)?, p99: at(990)?, max: at(1000)? })
}

fn text(report: &Report<'_>) -> String {
    format!("{}\n{}\n{}", ports_text(report), streams_text(report), summary(report))
}

fn ports_text(report: &Report<'_>) -> String {
    use Align::{Left, Right};
    let head = [
        ("PORT", Left),
        ("INTERFACE", Left),
        ("WANTED", Right),
        ("SENT", Right),
        ("GBIT/S", Right),
        ("LATE US", Right),
        ("REFUSED", Right),
        ("RECEIVED", Right),
        ("OTHERS", Right),
        ("MISSED", Right),
    ];
    let rate = |gbps: f64| format!("{gbps:.3}");
    let rows = report.ports.0.iter().map(|(name, port)| {
        vec![
            (*name).to_owned(),
            port.interface.to_owned(),
            port.wanted_gbps.map_or_else(|| "-".to_owned(), rate),
            grouped(port.sent),
            rate(port.sent_gbps),
            format!("{:.0}", port.late_us),
            grouped(port.refused),
            grouped(port.received),
            grouped(port.others),
            grouped(port.missed),
        ]
    });
    columns(&head, &rows.collect::<Vec<_>>())
}

fn streams_text(report: &Report<'_>) -> String {
    use Align::{Left, Right};
    let head = [
        ("TRAFFIC", Left),
        ("SENT", Right),
        ("RECEIVED", Right),
        ("LOST", Right),
        ("DOUBLED", Right),
        ("REORDERED", Right),
        ("MIN US", Right),
        ("MEDIAN", Right),
        ("P99", Right),
        ("MAX", Right),
    ];
    let rows = report.traffic.iter().map(|one| {
        let counts = [Some(one.sent), one.received, one.lost, one.doubled, one.reordered]
            .map(|count| count.map_or_else(|| "-".to_owned(), grouped));
        let latency = one.latency_us.as_ref().map(|all| [all.min, all.median, all.p99, all.max]);
        let latency =
            latency.map_or_else(|| ["-"; 4].map(str::to_owned), |all| all.map(|us| format!("{us:.1}")));
        [one.port.to_owned()].into_iter().chain(counts).chain(latency).collect()
    });
    columns(&head, &rows.collect::<Vec<_>>())
}

fn summary(report: &Report<'_>) -> String {
    let total = &report.total;
    let line = format!(
        "sent {} Mpps, {} Gbit/s{}; received {} of {} frames that carry a number",
        total.sent_mpps,
        total.sent_gbps,
        total.wanted_gbps.map_or_else(String::new, |gbps| format!(" of {gbps} wanted")),
        grouped(total.received),
        grouped(total.received + total.lost),
    );
    let us = |ns: u64| grouped(ns / 1000);
    let planned = report.planned_ns.filter(|planned_ns| *planned_ns != report.offered_ns);
    let planned = planned.map_or_else(String::new, |ns| format!(" instead of {}", us(ns)));
    let last = format!("{} us of traffic{planned}", us(report.offered_ns));
    format!("{line}\n{}\n", styled(DIM, last))
}
