//! Insertions a second and what tables weigh.

use std::fmt::Display;

use hue_tables::{Change, Dag, Key, Limits, NextHop, Prefix, TableError, Vid};
use serde_json::json;

use crate::dpdk::fib::Fib;
use crate::dpdk::lpm::{Lpm, tbl8s};
use crate::dpdk::v6::{Kind, Table6};
use crate::dpdk::{Dpdk, DpdkError};
use crate::engine::vid;
use crate::lookup::TBL8S_6;
use crate::measure::{Spread, seconds};
use crate::report::{Report, Section, millions};
use crate::rib::{self, Relation, Table, derive};
use crate::rng::Rng;
use crate::{Failure, Settings, ours};

const COLUMNS: [&str; 5] = ["what", "routes", "M/s median", "min", "max"];
/// The first routes that `rte_lpm_add` is timed on: it slows down as its rule list grows, so this flatters it.
const LPM_SAMPLE: usize = 50_000;
/// Routes that both ways of filling an `rte_lpm` are compared on.
const SAME_SAMPLE: usize = 20_000;

/// Changes of a batch: what a busy BGP session delivers at once.
const BATCH: usize = 1000;

/// Routes in the order they are inserted in.
type Routes<K> = Vec<(Prefix<K>, NextHop)>;

/// Everything about insertion and size.
///
/// # Errors
/// When DPDK fails, or its own insertion and our direct filling differ.
pub fn all(dpdk: &Dpdk, settings: &Settings, report: &mut Report) -> Result<(), Failure> {
    if let Some(base) = rib::prefixes::<u32>(rib::V4_2026) {
        let table = derive(&base, Relation::Equal, 0);
        same_fill(dpdk, &table)?;
        report.push(v4(dpdk, settings, &table)?);
    }
    if let Some(base) = rib::prefixes::<u128>(rib::V6_2026) {
        report.push(v6(dpdk, settings, &derive(&base, Relation::Equal, 0))?);
    }
    Ok(())
}

/// The direct filling that the lookup figures use must leave what the library's insertion leaves.
fn same_fill(dpdk: &Dpdk, table: &Table<u32>) -> Result<(), Failure> {
    let mut routes = shuffled(table);
    routes.truncate(SAME_SAMPLE);
    // Real tables hold few routes beyond /24: some of their own make sure that tbl8 is compared too.
    let mut rng = Rng::new(8);
    for i in 0..500 {
        let (prefix, hop) = routes[i];
        routes.push((
            Prefix::containing(prefix.addr() | rng.bits() as u32 & 0xFF, 25 + rng.below(8) as u8),
            hop,
        ));
    }
    let table = Table::from_routes(routes.iter().copied());
    let (mut added, mut filled) = (lpm(dpdk, &table)?, lpm(dpdk, &table)?);
    filled.fill(&table)?;
    let (prefixes, hops): (Vec<_>, Vec<_>) = shuffled(&table).into_iter().unzip();
    prefixes.into_iter().zip(hops).try_for_each(|(prefix, hop)| added.add(prefix, hop))?;
    if added.same(&filled) {
        return Ok(());
    }
    Err(Failure::Disagree("rte_lpm filled directly and by rte_lpm_add hold different entries".into()))
}

fn lpm<'a>(dpdk: &'a Dpdk, table: &Table<u32>) -> Result<Lpm<'a>, DpdkError> {
    Lpm::new(dpdk, table.len() + 1, tbl8s(table) + 1)
}

/// A table's routes in a random order (seed 5).
pub fn shuffled<K: Key>(table: &Table<K>) -> Routes<K> {
    let mut routes: Routes<K> = table.routes().collect();
    let mut rng = Rng::new(5);
    for i in (1..routes.len()).rev() {
        routes.swap(i, rng.below(i + 1));
    }
    routes
}

fn v4(dpdk: &Dpdk, settings: &Settings, table: &Table<u32>) -> Result<Section, Failure> {
    let mut section = Section::new("IPv4 insertion into an empty table", &COLUMNS);
    let orders = [("random order", shuffled(table)), ("file order", table.routes().collect())];
    let sample = &orders[0].1[..LPM_SAMPLE.min(table.len())];
    for (label, part) in
        [("first 20 %", 0..sample.len() / 5), ("last 20 %", sample.len() * 4 / 5..sample.len())]
    {
        let mut rates = Vec::new();
        for _ in 0..rounds(settings) {
            let mut lpm = lpm(dpdk, table)?;
            sample[..part.start].iter().try_for_each(|(prefix, hop)| lpm.add(*prefix, *hop))?;
            rates.push(timed(&sample[part.clone()], |prefix, hop| lpm.add(prefix, hop))?);
        }
        row(
            &mut section,
            format!("rte_lpm_add, {label} of {} in random order", sample.len()),
            part.len(),
            rates,
        );
    }
    for (order, routes) in &orders {
        let mut rates = Vec::new();
        for _ in 0..rounds(settings) {
            let mut fib = Fib::new(dpdk, table.len(), tbl8s(table) + 8, false)?;
            rates.push(timed(routes, |prefix, hop| fib.add(prefix, hop))?);
        }
        row(&mut section, format!("rte_fib_add, {order}"), routes.len(), rates);
        ours(&mut section, settings, order, routes)?;
    }
    beside(&mut section, settings, table)?;
    section.note("`rte_lpm_add` searches a list of rules: its rate falls as the table grows, to about 5,000 a second at its end.");
    Ok(section)
}

fn v6(dpdk: &Dpdk, settings: &Settings, table: &Table<u128>) -> Result<Section, Failure> {
    let mut section = Section::new("IPv6 insertion into an empty table", &COLUMNS);
    for (order, routes) in [("random order", shuffled(table)), ("file order", table.routes().collect())] {
        for kind in [Kind::Lpm6, Kind::Fib6] {
            let mut rates = Vec::new();
            for _ in 0..rounds(settings) {
                // rte_fib6 reserves groups by the worst case of the order it sees: twice what the table needs in the end.
                let mut peer = Table6::new(dpdk, kind, table.len() + 1, 2 * TBL8S_6)?;
                rates.push(timed(&routes, |prefix, hop| peer.add(prefix, hop))?);
            }
            row(&mut section, format!("{}_add, {order}", kind.name()), routes.len(), rates);
        }
        ours(&mut section, settings, order, &routes)?;
    }
    beside(&mut section, settings, table)?;
    Ok(section)
}

/// Our rows into an empty table: one by one, again with every route there already, removal, batches, all at once.
fn ours<K: Key>(
    section: &mut Section,
    settings: &Settings,
    order: &str,
    routes: &[(Prefix<K>, NextHop)],
) -> Result<(), Failure> {
    let me = vid(0);
    let mut rates = [const { Vec::new() }; 4];
    for _ in 0..rounds(settings) {
        let mut dag = Dag::new(Limits::default())?;
        dag.add_network::<K>(me)?;
        rates[0].push(timed(routes, |prefix, hop| dag.insert(me, prefix, hop).map(drop))?);
        rates[1].push(timed(routes, |prefix, _| dag.remove(me, prefix).map(drop))?);
        rates[2].push(batched(&mut dag, me, routes, BATCH)?);
        dag.remove_network(me)?;
        dag.add_network::<K>(me)?;
        rates[3].push(batched(&mut dag, me, routes, routes.len())?);
    }
    let labels = ["insert one by one", "remove one by one", "apply batches of 1,000", "apply one batch"];
    for (label, rates) in labels.into_iter().zip(rates) {
        row(section, format!("hueplane {label}, {order}"), routes.len(), rates);
    }
    Ok(())
}

/// Our rows beside 15 other networks that hold tables alike: sharing must not slow updates down.
fn beside<K: Key>(section: &mut Section, settings: &Settings, table: &Table<K>) -> Result<(), Failure> {
    let others = crate::lookup::derived(&table.prefixes, Relation::Overlap, 15);
    let (me, routes) = (vid(others.len() as u16), shuffled(table));
    let mut dag = ours::store(&others)?;
    dag.add_network::<K>(me)?;
    let mut rates = [const { Vec::new() }; 2];
    for _ in 0..rounds(settings) {
        rates[0].push(timed(&routes, |prefix, hop| dag.insert(me, prefix, hop).map(drop))?);
        rates[1].push(timed(&routes, |prefix, _| dag.remove(me, prefix).map(drop))?);
    }
    for (label, rates) in ["insert one by one", "remove one by one"].into_iter().zip(rates) {
        row(section, format!("hueplane {label}, random order, beside 15 full networks"), routes.len(), rates);
    }
    Ok(())
}

/// Routes a second of inserting in batches.
fn batched<K: Key>(
    dag: &mut Dag,
    vid: Vid,
    routes: &[(Prefix<K>, NextHop)],
    batch: usize,
) -> Result<f64, TableError> {
    let changes: Vec<Change<K>> = routes.iter().map(|(prefix, hop)| (*prefix, Some(*hop))).collect();
    let mut result = Ok(());
    let time = seconds(|| result = changes.chunks(batch).try_for_each(|changes| dag.apply(vid, changes)));
    result.map(|()| routes.len() as f64 / time)
}

/// Rounds of one insertion figure: whole tables take seconds.
fn rounds(settings: &Settings) -> usize {
    if settings.quick { 1 } else { 3 }
}

/// Routes a second of inserting `routes`.
fn timed<K: Key, E>(
    routes: &[(Prefix<K>, NextHop)],
    mut insert: impl FnMut(Prefix<K>, NextHop) -> Result<(), E>,
) -> Result<f64, E> {
    let mut result = Ok(());
    let time = seconds(|| result = routes.iter().try_for_each(|(prefix, hop)| insert(*prefix, *hop)));
    result.map(|()| routes.len() as f64 / time)
}

fn row(section: &mut Section, what: impl Display, routes: usize, rates: Vec<f64>) {
    let [median, min, max] = millions(&Spread::new(rates));
    section.row(vec![json!(what.to_string()), json!(routes), median, min, max]);
}
