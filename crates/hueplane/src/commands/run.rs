//! `hueplane run`: captures through networks, captures out.
//!
//! Flow: captures → merged by time → substrate, in batches → a file a port, and one of punted packets. Everything
//! that can be known to be wrong (configuration, port names, output directory, captures) is found before any packet
//! is processed; the files get their names after the last one.

use hue_planes::Verdict;
use hue_ports::{Frame, MergedCaptures, OutputDir, PortError};
use hue_soft::{Batch, Fate, Output};
use hue_substrate::Substrate;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use super::engine::Engine;
use crate::cli::{On, Run};
use crate::failure::Failure;
use crate::print::{Align, DIM, columns, grouped, result, styled};
use crate::progress;

/// Frames handed to the substrate at once.
const BATCH_FRAMES: usize = 1024;

/// The result of the command.
#[derive(Serialize)]
struct Report<'a> {
    networks: Counts<'a, NetworkReport<'a>>,
    unclaimed: Counts<'a, u64>,
}

#[derive(Serialize)]
struct NetworkReport<'a> {
    received: u64,
    forward: u64,
    punt: u64,
    drop: Counts<'a, u64>,
}

/// A map that keeps its order.
struct Counts<'a, T>(Vec<(&'a str, T)>);

impl<T: Serialize> Serialize for Counts<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, value) in &self.0 {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

/// Runs the command.
pub fn run(args: &Run) -> Result<(), Failure> {
    let On::Soft = args.on;
    let mut engine = Engine::load(&args.files.files)?;
    let mut ports = Vec::with_capacity(args.inputs.len());
    for input in &args.inputs {
        ports.push(engine.port(&format!("--in {}={}", input.name, input.file.display()), &input.name)?);
    }
    let mut out = OutputDir::open(&args.out)?;
    let files: Vec<_> = args.inputs.iter().map(|input| &input.file).collect();
    let mut captures = MergedCaptures::open(&files)?;
    for (index, input) in args.inputs.iter().enumerate() {
        let cut = captures.info(index).map_or(0, |info| info.cut);
        if cut > 0 {
            eprintln!(
                "hueplane: {}: {} packets were cut short by the capture; processed as the bytes there are",
                input.file.display(),
                grouped(cut)
            );
        }
    }
    for port in &engine.names.ports {
        out.add(&format!("{}.pcap", port.name), captures.resolution())?;
    }
    let punt = out.add("punt.pcap", captures.resolution())?;
    let bar = progress::bar("running", captures.packets());
    let mut batch = Batch::new();
    loop {
        let mut more = true;
        while more && batch.len() < BATCH_FRAMES {
            let mut fits = true;
            more = captures.next_frame(|merged| {
                if let Some(port) = ports.get(merged.source) {
                    fits = batch.push(*port, merged.frame.time_ns, merged.frame.bytes);
                }
            })?;
            if !fits {
                return Err(Failure::Broken("a batch of frames exceeds 4 GiB".to_owned()));
            }
        }
        let mut written = Ok(());
        engine.soft.run(&mut batch, |output| {
            if written.is_ok() {
                written = write(&mut out, punt, output);
            }
        });
        written?;
        bar.inc(batch.len() as u64);
        batch.clear();
        if !more {
            break;
        }
    }
    bar.finish_and_clear();
    let mut sent = Vec::new();
    for index in 0..=punt {
        sent.push(out.writer(index).map_or(0, |writer| writer.packets()));
    }
    let paths = out.commit()?;
    let report = report(&engine);
    result(args.output.format, &report, || {
        let mut text = table(&engine, &report);
        for (path, packets) in paths.iter().zip(&sent) {
            text.push_str(&format!("{} {}\n", styled(DIM, path.display()), grouped(*packets)));
        }
        text
    })
}

/// Writes one processed frame to where its fate says.
fn write(out: &mut OutputDir, punt: usize, output: Output<'_>) -> Result<(), PortError> {
    let Fate::Network { outcome, egress, .. } = output.fate else { return Ok(()) };
    let index = match outcome.verdict() {
        Verdict::Forward => egress.index(),
        Verdict::Punt => punt,
        Verdict::Drop => return Ok(()),
    };
    let wire_len = u32::try_from(output.bytes.len()).unwrap_or(u32::MAX);
    let frame = Frame { bytes: output.bytes, time_ns: output.time_ns, wire_len };
    out.writer(index).map_or(Ok(()), |writer| writer.write(frame))
}

fn report(engine: &Engine) -> Report<'_> {
    let networks = engine.programs.iter().filter_map(|program| {
        let counters = engine.soft.counters(program.vid)?;
        let drop = Counts(counters.drops().map(|(outcome, count)| (outcome.name(), count)).collect());
        let (received, forward, punt) = (counters.received(), counters.forwarded(), counters.punted());
        Some((program.name.as_str(), NetworkReport { received, forward, punt, drop }))
    });
    let unclaimed = engine.soft.unclaimed();
    let unclaimed =
        unclaimed.iter().filter(|(_, count)| *count > 0).map(|(reason, count)| (reason.name(), count));
    Report { networks: Counts(networks.collect()), unclaimed: Counts(unclaimed.collect()) }
}

fn table(engine: &Engine, report: &Report<'_>) -> String {
    let head = [
        ("NETWORK", Align::Left),
        ("RECEIVED", Align::Right),
        ("FORWARD", Align::Right),
        ("PUNT", Align::Right),
        ("DROP", Align::Right),
        ("WHY", Align::Left),
    ];
    let reasons = |counts: &Counts<'_, u64>| {
        let list: Vec<String> =
            counts.0.iter().map(|(name, count)| format!("{name} {}", grouped(*count))).collect();
        (grouped(counts.0.iter().map(|(_, count)| count).sum()), list.join(", "))
    };
    let rows = engine.programs.iter().zip(&report.networks.0).map(|(program, (_, network))| {
        let (dropped, why) = reasons(&network.drop);
        let numbers = [network.received, network.forward, network.punt].map(grouped);
        [engine.painted(program.vid)].into_iter().chain(numbers).chain([dropped, why]).collect()
    });
    let mut rows: Vec<Vec<String>> = rows.collect();
    if !report.unclaimed.0.is_empty() {
        let (count, why) = reasons(&report.unclaimed);
        rows.push(vec![styled(DIM, "(no network)"), count.clone(), "0".into(), "0".into(), count, why]);
    }
    columns(&head, &rows)
}
