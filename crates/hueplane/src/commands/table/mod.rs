//! `hueplane table`: reads route files, measures forwarding tables, and looks up addresses in them.
//!
//! Flow: route files → [`Network`]s → `Stores` (one shared trie for each address family) → size, lookup,
//! replay. Networks get the ids 1, 2, … in the order of the command line.

mod amount;
mod lookup;
mod on_card;
mod replay;
mod size;
mod stores;

use std::collections::HashSet;
use std::time::Instant;

use hue_routing::{Options, Routes, load_routes};
use hue_tables::Vid;

use crate::cli::{TableCommand, Tables};
use crate::failure::Failure;
use crate::print::grouped;
use crate::progress;

/// A network on the command line.
pub struct Network {
    pub name: String,
    pub vid: Vid,
    pub routes: Routes,
}

/// Runs a table command.
pub fn run(command: &TableCommand) -> Result<(), Failure> {
    match command {
        TableCommand::Size(args) => size::run(args),
        TableCommand::Lookup(args) => lookup::run(args),
        TableCommand::Replay(args) => replay::run(args),
    }
}

fn options(tables: &Tables) -> Options {
    Options { skip_bad: tables.skip_bad, derive_hops: tables.derive_hops }
}

/// Reads the route files of all networks.
fn load(tables: &Tables) -> Result<Vec<Network>, Failure> {
    let mut names = HashSet::new();
    if let Some(twice) = tables.routes.iter().find(|named| !names.insert(&named.name)) {
        let name = &twice.name;
        return Err(Failure::Usage(format!(
            "--routes {name}={}: found a second network named '{name}', expected unique names",
            twice.file.display()
        )));
    }
    let options = options(tables);
    let mut networks = Vec::with_capacity(tables.routes.len());
    for (index, named) in tables.routes.iter().enumerate() {
        let vid = u16::try_from(index + 1).ok().and_then(Vid::new).ok_or_else(|| {
            Failure::Full(format!("--routes: found more than {} networks, the limit of a node", Vid::MAX))
        })?;
        let spinner = progress::spinner(&format!("reading {}", named.file.display()));
        let start = Instant::now();
        let routes = load_routes(&named.file, &options)?;
        spinner.finish_and_clear();
        for (what, count) in left_out(&routes) {
            eprintln!("hueplane: {}: {} {what}", named.file.display(), grouped(count));
        }
        if start.elapsed().as_millis() > 200 {
            let seconds = start.elapsed().as_secs_f64();
            eprintln!(
                "hueplane: {}: {} routes read in {seconds:.1} s",
                named.name,
                grouped(routes.len() as u64)
            );
        }
        networks.push(Network { name: named.name.clone(), vid, routes });
    }
    Ok(networks)
}

/// Contents of a file that are not in its routes, with counts above 0.
pub fn left_out(routes: &Routes) -> Vec<(&'static str, u64)> {
    let counts = [
        ("invalid lines skipped", routes.skipped),
        ("records of families other than IPv4 and IPv6 unicast skipped", routes.passed_over),
    ];
    counts.into_iter().filter(|(_, count)| *count > 0).collect()
}

/// Number of invalid lines skipped in all files; `None` without --skip-bad.
fn skipped(tables: &Tables, networks: &[Network]) -> Option<u64> {
    tables.skip_bad.then(|| networks.iter().map(|network| network.routes.skipped).sum())
}

/// Records of other families in all files, `None` where there are none.
fn passed_over(networks: &[Network]) -> Option<u64> {
    let count = networks.iter().map(|network| network.routes.passed_over).sum();
    (count > 0).then_some(count)
}
