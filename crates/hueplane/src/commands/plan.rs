//! `hueplane plan`: shows where networks should run.
//!
//! Flow: files or the daemon → plan → text. Both give the same type, that of the API.

use hue_card::Card;
use hue_control::schedule::{CardSite, Demand, Site, TableSite, rate, schedule};
use hue_control::{carriers, compile};
use hue_intent::{Network, Node, SchedulerKind};
use hue_substrate::Program;
use hueplaned::api::{self, PlanQuery, PlannedNetwork, SchedulerName};

use super::documents;
use super::live::client;
use crate::cli::{self, Connection};
use crate::failure::Failure;
use crate::print::{Align, BOLD, DIM, YELLOW, columns, count, grouped, result, styled};

/// Runs the command.
pub fn plan(args: &cli::Plan, connection: &Connection) -> Result<(), Failure> {
    let scheduler = args.scheduler.map(|scheduler| match scheduler {
        cli::Scheduler::Greedy => SchedulerName::Greedy,
        cli::Scheduler::Exact => SchedulerName::Exact,
    });
    let plan = if args.files.is_empty() {
        client(connection)?.plan(&PlanQuery { scheduler, from_traffic: args.from_traffic })?
    } else {
        offline(args, scheduler.map(SchedulerKind::from))?
    };
    result(args.output.format, &plan, || table(&plan))
}

/// The plan for files, in which nothing runs yet.
fn offline(args: &cli::Plan, scheduler: Option<SchedulerKind>) -> Result<api::Plan, Failure> {
    let intent = documents::load(&args.files)?;
    let compiled = compile(&intent)?;
    let site = Site::of(&intent.node, 1, card(&intent.node)?);
    let carriers = carriers(&intent.networks);
    let networks = intent.networks.iter().zip(&compiled.programs);
    let has_banks = site.card.as_ref().is_some_and(|card| matches!(card.table, TableSite::Banks { .. }));
    let demand = |(network, program): (&Network, &Program)| {
        let demand = Demand::of(network, program, carriers.contains(network.name()));
        if has_banks { demand.in_banks(program.entries.lpm32()) } else { demand }
    };
    let demands: Vec<Demand> = networks.map(demand).collect();
    let named = intent.node.spec.scheduler.as_ref().map(|scheduler| scheduler.kind);
    let schedule = schedule(&site, &demands, scheduler.or(named).unwrap_or_default());
    Ok(hueplaned::plan::plan(&schedule, false))
}

/// The card that a node names, with the capacity of its image.
fn card(node: &Node) -> Result<Option<CardSite>, Failure> {
    let Some(want) = &node.spec.card else { return Ok(None) };
    let Some(hue_intent::Twin { image: name }) = &want.twin else {
        return Err(Failure::Input(
            "the capacity of a real card is unknown offline: expected a card with twin".to_owned(),
        ));
    };
    let image = hueplaned::options::images().load(name.as_str())?;
    let mut card = Card::new(image.start()?)?;
    let (ports, max) = (want.ports.len(), card.description().mac_ports as usize);
    if ports > max {
        return Err(Failure::Input(format!("the card has {ports} ports, but image '{name}' has {max}")));
    }
    Ok(Some(hueplaned::plan::card_site(card.description(), &want.ports)))
}

fn table(plan: &api::Plan) -> String {
    let head = [
        ("NETWORK", Align::Left),
        ("PLACEMENT", Align::Left),
        ("NOW", Align::Left),
        ("TO", Align::Left),
        ("NEEDS", Align::Right),
        ("SERVED", Align::Right),
        ("WHY", Align::Left),
        ("WHY NOT ELSEWHERE", Align::Left),
    ];
    let row = |network: &PlannedNetwork| {
        let now = network.now.as_deref();
        let moves = now.is_some_and(|now| now != network.substrate);
        let short = network.served_bps < network.needed_bps;
        let bandwidth = |bps: u64| match network.needed_bps {
            0 => "-".to_owned(),
            _ => rate(bps.into()),
        };
        let served = bandwidth(network.served_bps);
        let low = if network.latency == "low" { ", low latency" } else { "" };
        vec![
            styled(BOLD, &network.network),
            format!("{}{low}", network.placement),
            now.unwrap_or("-").to_owned(),
            if moves { styled(YELLOW, &network.substrate) } else { network.substrate.clone() },
            bandwidth(network.needed_bps),
            if short { styled(YELLOW, served) } else { served },
            network.why.clone(),
            network.why_not.clone(),
        ]
    };
    let mut out = columns(&head, &plan.networks.iter().map(row).collect::<Vec<_>>());
    for one in &plan.moves {
        let way = format!("{} from {} to {}", one.network, one.from, one.to);
        out.push_str(&format!("{} {way}: {}\n", styled(YELLOW, "move:"), one.why));
    }
    let basis = if plan.from_traffic { "measured" } else { "needed" };
    out.push_str(&format!(
        "{}: serves {} of {} {basis}, {} ({} each)\n",
        plan.scheduler.name(),
        rate(plan.served_bps.into()),
        rate(plan.needed_bps.into()),
        count(plan.moves.len() as u64, "move"),
        rate(plan.move_cost_bps.into()),
    ));
    let uses = plan.uses.iter().map(|one| match one.what.strip_suffix(" bit/s") {
        Some(what) => format!("{what} {} of {}", rate(one.used.into()), rate(one.max.into())),
        None => format!("{} {} of {}", one.what, grouped(one.used), grouped(one.max)),
    });
    out.push_str(&styled(DIM, uses.collect::<Vec<_>>().join(", ")));
    out.push('\n');
    if let Some(note) = &plan.note {
        out.push_str(&format!("{} {note}\n", styled(YELLOW, "note:")));
    }
    out
}
