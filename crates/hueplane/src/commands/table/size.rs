//! `hueplane table size`: memory of tables, in total and by network.

use serde::Serialize;

use super::amount::Amount;
use super::stores::Stores;
use super::{Network, load, skipped};
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
    #[serde(skip_serializing_if = "Option::is_none")]
    derived_next_hops: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    skipped: Option<u64>,
    overflow: Option<String>,
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
        layout: tables.layout.name(),
        encoding: tables.encoding.name(),
        bytes_total: stores.total(),
        networks: rows,
        derived_next_hops: tables.derive_hops.map(|hops| format!("fnv1a(first 20 bits) mod {hops}")),
        skipped: skipped(tables, &networks),
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
    if let Some(how) = &report.derived_next_hops {
        out.push_str(&format!("next hops derived: {how}\n"));
    }
    if let Some(overflow) = &report.overflow {
        out.push_str(&format!("{overflow}\n"));
    }
    out
}
