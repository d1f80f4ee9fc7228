//! `hueplane lab power`: compares the switching activity of the card's blocks between states of its networks.
//!
//! Flow: documents and traffic → a card for each state → `hue_lab::activity` → percent of the card at work.

use hue_card::Card;
use hue_lab::activity::{Activity, measure};
use hue_lab::{Experiment, Stream};
use hue_substrate::{Program, Substrate};
use serde::Serialize;

use super::NO_TUNNELS;
use crate::cli::LabPower;
use crate::commands::counts::Counts;
use crate::commands::engine::Networks;
use crate::failure::Failure;
use crate::print::{Align, columns, result};

/// The result.
#[derive(Serialize)]
struct Report<'a> {
    image: &'a str,
    cycles: u64,
    /// Changes of all signals per clock cycle, with all networks at work.
    changes_per_cycle: f64,
    states: Vec<State<'a>>,
}

/// A state of the card. Figures are percent of all changes with all networks at work.
#[derive(Serialize)]
struct State<'a> {
    /// `idle`, `at work` or `gated`.
    state: &'static str,
    /// The network that is gated.
    #[serde(skip_serializing_if = "Option::is_none")]
    network: Option<&'a str>,
    total: f64,
    blocks: Counts<'a, f64>,
}

/// Runs the command.
pub fn run(args: &LabPower) -> Result<(), Failure> {
    let networks = Networks::compile(&args.files.files)?.without_tunnels(NO_TUNNELS)?;
    let mut streams = Vec::with_capacity(args.traffic.len());
    for one in &args.traffic {
        let port = networks.port("--traffic", &one.port)?;
        streams.push(Stream { port, traffic: one.traffic.clone() });
    }
    let image = hueplaned::options::images().load(&args.image)?;
    let names: Vec<String> = networks.names.ports.iter().map(|port| port.name.clone()).collect();
    let activity = |streams: &[Stream], programs: &[Program]| -> Result<Activity, Failure> {
        let mut card = Card::new(image.start()?)?;
        card.load(programs)?;
        let experiment = Experiment { streams: streams.to_vec(), duration_us: None, line: None, wave: None };
        Ok(measure(card, &names, &experiment, args.cycles)?)
    };
    let ungated: Vec<Program> =
        networks.programs.iter().map(|program| Program { gated: false, ..program.clone() }).collect();
    let at_work = activity(&streams, &ungated)?;
    let mut measured = vec![("idle", None, activity(&[], &ungated)?), ("at work", None, at_work.clone())];
    for (at, program) in ungated.iter().enumerate() {
        let mut gated = ungated.clone();
        if let Some(program) = gated.get_mut(at) {
            program.gated = true;
        }
        measured.push(("gated", Some(program.name.as_str()), activity(&streams, &gated)?));
    }
    let whole = at_work.total().max(1) as f64;
    let percent = |changes: u64| (changes as f64 / whole * 1e4).round() / 100.0;
    let blocks: Vec<&str> = at_work.blocks.keys().map(String::as_str).collect();
    let states = measured.iter().map(|(state, network, activity)| State {
        state,
        network: *network,
        total: percent(activity.total()),
        blocks: Counts(blocks.iter().map(|name| (*name, percent(activity.block(name)))).collect()),
    });
    let report = Report {
        image: &args.image,
        cycles: at_work.cycles,
        changes_per_cycle: (whole / at_work.cycles as f64 * 10.0).round() / 10.0,
        states: states.collect(),
    };
    result(args.output.format, &report, || text(&report, &blocks))
}

fn text(report: &Report<'_>, blocks: &[&str]) -> String {
    let names: Vec<String> = report
        .states
        .iter()
        .map(|state| state.network.map_or_else(|| state.state.to_owned(), |name| format!("{name} gated")))
        .collect();
    let mut head = vec![("BLOCK", Align::Left)];
    head.extend(names.iter().map(|name| (name.as_str(), Align::Right)));
    let figure = |value: f64| format!("{value:.2}");
    let row = |name: &&str| {
        let of = |state: &State<'_>| {
            state.blocks.0.iter().find(|(block, _)| block == name).map_or(0.0, |one| one.1)
        };
        std::iter::once((*name).to_owned())
            .chain(report.states.iter().map(|state| figure(of(state))))
            .collect()
    };
    let mut rows: Vec<Vec<String>> = blocks.iter().map(row).collect();
    let totals = report.states.iter().map(|state| figure(state.total));
    rows.push(std::iter::once("total".to_owned()).chain(totals).collect());
    format!(
        "image {}, {} cycles; percent of the switching activity of the whole card at work ({} bits a cycle)\n{}",
        report.image,
        report.cycles,
        report.changes_per_cycle,
        columns(&head, &rows)
    )
}
