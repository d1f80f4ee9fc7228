//! What real tables weigh: our image and its updater beside the `rte_lpm` tables that would hold the same.

use serde_json::json;

use crate::dpdk::Dpdk;
use crate::dpdk::lpm;
use crate::report::{Report, Section, mib, round};
use crate::rib::{self, Relation, Table, derive};
use crate::{Failure, Settings, ours};

const COLUMNS: [&str; 8] = [
    "tables",
    "networks",
    "routes",
    "dag64 MiB",
    "bytes a route",
    "updater MiB",
    "rte_lpm MiB read by lookups",
    "times smaller",
];

/// Every set of real tables.
///
/// # Errors
/// When our table is full.
pub fn all(_dpdk: &Dpdk, settings: &Settings, report: &mut Report) -> Result<(), Failure> {
    let mut section = Section::new("Memory, real tables", &COLUMNS);
    let mut old = Vec::new();
    for (file, label) in rib::OLD.iter().zip(["AS2497 2010", "AS4777 2010", "RouteViews 2008", "AS1853 2002"])
    {
        if let Some(table) = rib::real(file) {
            row(&mut section, label, std::slice::from_ref(&table))?;
            old.push(table);
        }
    }
    if let [as2497, as4777, ..] = old.as_slice() {
        row(&mut section, "AS2497 and AS4777 2010", &[as2497.clone(), as4777.clone()])?;
        row(&mut section, "all of these", &old)?;
    }
    let fibs: Vec<_> = rib::fibs().into_iter().flatten().map(|(_, table)| table).collect();
    if !fibs.is_empty() {
        row(&mut section, "FIBs of 21 routers", &fibs)?;
    }
    if let Some(base) = rib::prefixes::<u32>(rib::V4_2026) {
        let one = derive(&base, Relation::Equal, 0);
        row(&mut section, "2026, derived next hops", std::slice::from_ref(&one))?;
        let with: Vec<_> = fibs.into_iter().chain([one]).collect();
        row(&mut section, "2026 and the FIBs of 21 routers", &with)?;
        for relation in [Relation::Equal, Relation::Overlap] {
            let counts: &[usize] = if settings.quick { &[16] } else { &[16, 64] };
            for &count in counts {
                let tables = crate::lookup::derived(&base, relation, count);
                row(
                    &mut section,
                    &format!("2026, {} prefix sets, unlike next hops", relation.name()),
                    &tables,
                )?;
            }
        }
    }
    section.note("Real next hops except where derived. The updater's memory (routes, counts, hash table) is not read by lookups.");
    report.push(section);
    Ok(())
}

fn row(section: &mut Section, label: &str, tables: &[Table<u32>]) -> Result<(), Failure> {
    let dag = ours::store(tables)?;
    let routes: usize = tables.iter().map(Table::len).sum();
    let peers: u64 = tables.iter().map(|table| lpm::lookup_bytes(lpm::tbl8s(table))).sum();
    section.row(vec![
        json!(label),
        json!(tables.len()),
        json!(routes),
        mib(dag.bytes_used()),
        round(dag.bytes_used() as f64 / routes as f64, 2),
        mib(dag.updater_bytes()),
        mib(peers),
        round(peers as f64 / dag.bytes_used() as f64, 1),
    ]);
    Ok(())
}
