//! `hueplane table size`: the memory of tables, in total and by network.

use serde::Serialize;

use super::amount::Amount;
use super::stores::{Store, Stores};
use super::{Network, load, passed_over, skipped};
use crate::cli::Size;
use crate::failure::Failure;
use crate::print::{Align, columns, grouped, result};

/// The result of the command.
#[derive(Serialize)]
struct Report<'a> {
    layout: &'static str,
    encoding: &'static str,
    bytes_total: Amount,
    networks: Vec<NetworkReport<'a>>,
    /// For layout dir only.
    #[serde(skip_serializing_if = "Option::is_none")]
    banks: Option<Banks>,
    #[serde(skip_serializing_if = "Option::is_none")]
    derived_next_hops: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    skipped: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    passed_over: Option<u64>,
    overflow: Option<String>,
}

/// Usage of the papers' banks.
#[derive(Serialize)]
struct Banks {
    /// Entries of the first bank at their own slots.
    slots: u64,
    slots_max: u64,
    /// Sets of the second bank.
    sets: u32,
    sets_max: u32,
    /// Rows of the Conflict CAM, each with an entry of the first bank.
    conflicts: u64,
    conflicts_max: u64,
}

#[derive(Serialize)]
struct NetworkReport<'a> {
    name: &'a str,
    routes: u64,
    bytes_own: Amount,
    bytes_marginal: Amount,
}

/// Runs the command.
pub fn run(args: &Size) -> Result<(), Failure> {
    let tables = &args.tables;
    let networks = load(tables)?;
    let stores = Stores::build(tables, &networks, (None, None))?;
    let mut rows = Vec::with_capacity(networks.len());
    for network in &networks {
        rows.push(measure(&stores, network)?);
    }
    let report = Report {
        layout: tables.layout_name(),
        encoding: tables.words(),
        bytes_total: stores.total(),
        networks: rows,
        banks: stores.v4.as_ref().and_then(Store::banks).map(|usage| Banks {
            slots: usage.slots as u64,
            slots_max: hue_tables::dir::SLOTS as u64,
            sets: usage.sets,
            sets_max: tables.sets,
            conflicts: usage.cam_rows as u64,
            conflicts_max: tables.cam_rows as u64,
        }),
        derived_next_hops: tables.derive_hops.map(|hops| format!("fnv1a(first 20 bits) mod {hops}")),
        skipped: skipped(tables, &networks),
        passed_over: passed_over(&networks),
        overflow: stores.overflow,
    };
    result(tables.output.format, &report, || table(&report))?;
    report.overflow.map_or(Ok(()), |text| Err(Failure::Full(text)))
}

fn measure<'a>(stores: &Stores, network: &'a Network) -> Result<NetworkReport<'a>, Failure> {
    let (routes, bytes_own, bytes_marginal) = stores.account(network.vid)?;
    Ok(NetworkReport { name: &network.name, routes, bytes_own, bytes_marginal })
}

fn table(report: &Report<'_>) -> String {
    let head = [
        ("NETWORK", Align::Left),
        ("ROUTES", Align::Right),
        ("BYTES ALONE", Align::Right),
        ("BYTES ADDED", Align::Right),
    ];
    let mut rows: Vec<Vec<String>> = report
        .networks
        .iter()
        .map(|n| vec![n.name.to_owned(), grouped(n.routes), n.bytes_own.text(), n.bytes_marginal.text()])
        .collect();
    let routes = report.networks.iter().map(|network| network.routes).sum();
    rows.push(vec!["total".to_owned(), grouped(routes), String::new(), report.bytes_total.text()]);
    let mut out = columns(&head, &rows);
    out.push_str(&format!("layout {}, encoding {}\n", report.layout, report.encoding));
    if let Some(banks) = &report.banks {
        out.push_str(&format!(
            "first bank {} of {} entries, second {} of {} sets, Conflict CAM {} of {} rows\n",
            grouped(banks.slots + banks.conflicts),
            grouped(banks.slots_max),
            grouped(u64::from(banks.sets)),
            grouped(u64::from(banks.sets_max)),
            grouped(banks.conflicts),
            grouped(banks.conflicts_max)
        ));
    }
    if let Some(how) = &report.derived_next_hops {
        out.push_str(&format!("next hops derived: {how}\n"));
    }
    if let Some(overflow) = &report.overflow {
        out.push_str(&format!("{overflow}\n"));
    }
    out
}
