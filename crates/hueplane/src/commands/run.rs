//! `hueplane run`: runs captures through networks, and writes captures.
//!
//! Flow: captures → merged by time → runner, in batches → a file for each port, and one for punted packets. What leaves
//! through an end of a link also enters again at its other end. Tunnels are the engine's: a packet is through all of its
//! tunnels before the next one.
//! Errors that can be detected early (configuration, port names, output directory, captures) are reported
//! before any packet is processed. The files get their names after the last packet.

use hue_demux::PortId;
use hue_ports::{Frame, MergedCaptures, OutputDir};
use hue_soft::TunnelCounts;
use hue_substrate::Program;
use serde::Serialize;

use super::counts::Counts;
use super::engine::Networks;
use super::runner::{CardReport, Runner};
use crate::cli::{On, Run};
use crate::failure::Failure;
use crate::print::{Align, DIM, columns, grouped, result, styled};
use crate::progress;

/// Frames in a batch.
const BATCH_FRAMES: usize = 1024;
/// Links that a captured frame and its copies cross at most. Switches that links join in a circle would flood it without an end.
const CROSSINGS_MAX: usize = 4096;

/// The result of the command.
#[derive(Serialize)]
struct Report<'a> {
    networks: Counts<'a, NetworkReport<'a>>,
    unclaimed: Counts<'a, u64>,
    /// Frames that links lost: beyond [`CROSSINGS_MAX`].
    #[serde(skip_serializing_if = "is_zero")]
    lost_on_links: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    card: Option<CardReport>,
}

#[derive(Serialize)]
struct NetworkReport<'a> {
    received: u64,
    forward: u64,
    punt: u64,
    drop: Counts<'a, u64>,
    /// Of the punted packets, those that went on into the networks of tunnels.
    #[serde(skip_serializing_if = "is_zero")]
    to_tunnels: u64,
    /// Packets that tunnels lost, by reason.
    #[serde(skip_serializing_if = "Counts::is_empty")]
    losses: Counts<'a, u64>,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Runs the command.
pub fn run(args: &Run) -> Result<(), Failure> {
    let mut networks = Networks::compile(&args.files.files)?;
    if args.on == On::Card {
        let learns = |program: &Program| program.settings.learning().is_some();
        networks = networks.without_tunnels_of(learns, "the card cannot flood into one: use `--on soft`")?;
    }
    let mut runner = Runner::start(args, &networks)?;
    let mut ports = Vec::with_capacity(args.inputs.len());
    for input in &args.inputs {
        ports.push(networks.port(&format!("--in {}={}", input.name, input.file.display()), &input.name)?);
    }
    let mut out = OutputDir::open(&args.out)?;
    let files: Vec<_> = args.inputs.iter().map(|input| &input.file).collect();
    let mut captures = MergedCaptures::open(&files)?;
    for (index, input) in args.inputs.iter().enumerate() {
        let cut = captures.info(index).map_or(0, |info| info.cut);
        if cut > 0 {
            eprintln!(
                "hueplane: {}: {} packets are truncated in the capture; processed as they are",
                input.file.display(),
                grouped(cut)
            );
        }
    }
    if let Some(packet) = args.wave_packet.filter(|packet| *packet > captures.packets()) {
        let packets = grouped(captures.packets());
        return Err(Failure::Usage(format!("--wave-packet {packet}: the captures have {packets} packets")));
    }
    for port in &networks.names.ports {
        out.add(&format!("{}.pcap", port.name), captures.resolution())?;
    }
    let punt = out.add("punt.pcap", captures.resolution())?;
    let peers: Vec<Option<PortId>> = networks.names.ports.iter().map(|port| port.peer).collect();
    // A frame on a link must not be overtaken by frames that arrived later.
    let batch = if peers.iter().any(Option::is_some) { 1 } else { BATCH_FRAMES };
    let mut crossing: Vec<(PortId, u64, Vec<u8>)> = Vec::new();
    let mut lost_on_links = 0;
    let bar = progress::bar("running", captures.packets());
    loop {
        let mut more = true;
        while more && runner.held() < batch {
            let mut pushed = Ok(());
            more = captures.next_frame(|merged| {
                if let Some(port) = ports.get(merged.source) {
                    pushed = runner.push(*port, merged.frame.time_ns, merged.frame.bytes);
                }
            })?;
            pushed?;
        }
        let frames = runner.held() as u64;
        let mut written = Ok(());
        let mut crossed = 0;
        while runner.held() > 0 {
            runner.run(|left| {
                if written.is_err() {
                    return;
                }
                let index = left.port.map_or(punt, PortId::index);
                if let Some(peer) = left.port.and_then(|port| *peers.get(port.index())?) {
                    crossing.push((peer, left.time_ns, left.bytes.to_vec()));
                }
                let wire_len = u32::try_from(left.bytes.len()).unwrap_or(u32::MAX);
                let frame = Frame { bytes: left.bytes, time_ns: left.time_ns, wire_len };
                written = out.writer(index).map_or(Ok(()), |writer| writer.write(frame));
            })?;
            for (port, time_ns, bytes) in crossing.drain(..) {
                crossed += 1;
                if crossed > CROSSINGS_MAX {
                    lost_on_links += 1;
                    continue;
                }
                runner.push(port, time_ns, &bytes)?;
            }
        }
        written?;
        bar.inc(frames);
        if !more {
            break;
        }
    }
    bar.finish_and_clear();
    within_run(args.wave_cycles, runner.clock())?;
    let mut sent = Vec::new();
    for index in 0..=punt {
        sent.push(out.writer(index).map_or(0, |writer| writer.packets()));
    }
    let paths = out.commit()?;
    let report = report(&networks, &mut runner, lost_on_links)?;
    result(args.output.format, &report, || {
        let mut text = table(&networks, &report);
        if lost_on_links > 0 {
            let lost = grouped(lost_on_links);
            text.push_str(&format!(
                "links lost {lost} frames: a frame crosses {} links at most, and some went in a circle\n",
                grouped(CROSSINGS_MAX as u64)
            ));
        }
        if let Some(card) = &report.card {
            text.push_str(&styled(DIM, card.text()));
            text.push('\n');
        }
        for (path, packets) in paths.iter().zip(&sent) {
            text.push_str(&format!("{} {}\n", styled(DIM, path.display()), grouped(*packets)));
        }
        text
    })
}

/// Fails if the waveform would be empty because the run ended before its first cycle.
pub fn within_run(wave_cycles: Option<(u64, u64)>, end: Option<u64>) -> Result<(), Failure> {
    match (wave_cycles, end) {
        (Some((from, to)), Some(end)) if from >= end => {
            Err(Failure::Usage(format!("--wave-cycles {from}-{to}: the run ended after {end} cycles")))
        }
        _ => Ok(()),
    }
}

fn report<'a>(
    networks: &'a Networks,
    runner: &mut Runner,
    lost_on_links: u64,
) -> Result<Report<'a>, Failure> {
    let mut list = Vec::with_capacity(networks.programs.len());
    for program in &networks.programs {
        let Some(counters) = runner.counters(program.vid)? else { continue };
        let drop = Counts(counters.drops().map(|(outcome, count)| (outcome.name(), count)).collect());
        let (received, forward, punt) = (counters.received(), counters.forwarded(), counters.punted());
        let TunnelCounts { to_tunnels, losses } = runner.tunnel_counts(program.vid)?;
        let losses = losses.iter().filter(|(_, count)| *count > 0).map(|(loss, count)| (loss.name(), count));
        let losses = Counts(losses.collect());
        let report = NetworkReport { received, forward, punt, drop, to_tunnels, losses };
        list.push((program.name.as_str(), report));
    }
    let unclaimed = runner.unclaimed()?;
    let unclaimed =
        unclaimed.iter().filter(|(_, count)| *count > 0).map(|(reason, count)| (reason.name(), count));
    let (networks, unclaimed) = (Counts(list), Counts(unclaimed.collect()));
    Ok(Report { networks, unclaimed, lost_on_links, card: runner.card_report() })
}

fn table(networks: &Networks, report: &Report<'_>) -> String {
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
        (grouped(counts.total()), list.join(", "))
    };
    let rows = networks.programs.iter().zip(&report.networks.0).map(|(program, (_, network))| {
        let (dropped, mut why) = reasons(&network.drop);
        let (_, lost) = reasons(&network.losses);
        let tunnels = grouped(network.to_tunnels);
        for (text, has) in [
            (format!("punted into tunnels {tunnels}"), network.to_tunnels > 0),
            (format!("lost: {lost}"), !network.losses.is_empty()),
        ] {
            if has {
                why = if why.is_empty() { text } else { format!("{why}; {text}") };
            }
        }
        let numbers = [network.received, network.forward, network.punt].map(grouped);
        [networks.painted(program.vid)].into_iter().chain(numbers).chain([dropped, why]).collect()
    });
    let mut rows: Vec<Vec<String>> = rows.collect();
    if !report.unclaimed.0.is_empty() {
        let (count, why) = reasons(&report.unclaimed);
        rows.push(vec![styled(DIM, "(no network)"), count.clone(), "0".into(), "0".into(), count, why]);
    }
    columns(&head, &rows)
}
