//! Lookups a second and bytes held: ours beside each DPDK engine, 1 to 64 networks, in interleaved rounds.
//!
//! Every engine's answers to the whole stream are compared (by checksum) before anything is timed, and a sample with the
//! naive oracle's.

use hue_tables::{Key, Prefix};
use serde_json::json;

use crate::Settings;
use crate::dpdk::fib::{Fib, FibEngine};
use crate::dpdk::lpm::{Lpm, LpmEngine, Mode, tbl8s};
use crate::dpdk::v6::{Engine6, Kind, Mode6, Table6};
use crate::dpdk::{Dpdk, DpdkError};
use crate::engine::{Destinations, LookupEngine, Queries, checksum, hit_rate};
use crate::measure::{interleave, seconds};
use crate::report::{Report, Section, mib, millions, round};
use crate::rib::{self, Relation, Table, derive};
use crate::{Failure, oracle, ours};

const COLUMNS: [&str; 6] = ["engine", "M/s median", "min", "max", "MiB read by lookups", "MiB in all"];
/// Answers compared with the oracle's for each stream.
const SAMPLED: usize = 20_000;
/// IPv6 groups of 256 entries; `rte_lpm6` and `rte_fib6` need about one a route of the 2026 table.
pub const TBL8S_6: u32 = 1 << 18;

/// IPv4: `rte_lpm` for any number of networks, `rte_fib` for one.
///
/// # Errors
/// When DPDK fails, or engines disagree.
pub fn v4(dpdk: &Dpdk, settings: &Settings, report: &mut Report) -> Result<(), Failure> {
    let Some(base) = rib::prefixes::<u32>(rib::V4_2026) else { return Ok(()) };
    let counts: &[usize] = if settings.quick { &[1, 16] } else { &[1, 16, 64] };
    let mut lpms = Vec::new();
    for relation in [Relation::Equal, Relation::Overlap] {
        for &count in counts {
            if relation == Relation::Overlap && count == 1 {
                continue; // one network has nothing to overlap with
            }
            let tables = derived(&base, relation, count);
            fill_lpms(dpdk, &mut lpms, &tables, base.len())?;
            let fibs = if count == 1 { fibs(dpdk, &tables[0])? } else { Vec::new() };
            let modes: &[Mode] = if count == 1 { &Mode::ONE } else { &Mode::MANY };
            let mut engines = our_engines(&tables)?;
            for mode in modes {
                engines.push(Box::new(LpmEngine::new(&lpms[..count], *mode)));
            }
            for fib in &fibs {
                for vector in [false, true] {
                    engines.extend(
                        FibEngine::new(fib, vector).map(|e| Box::new(e) as Box<dyn LookupEngine<u32>>),
                    );
                }
            }
            let title =
                format!("IPv4, {count} x {} routes, {} prefix sets", tables[0].len(), relation.name());
            compare(&title, &tables, &engines, settings, report)?;
        }
    }
    Ok(())
}

/// IPv6: `rte_lpm6` and `rte_fib6`.
///
/// # Errors
/// When DPDK fails, or engines disagree.
pub fn v6(dpdk: &Dpdk, settings: &Settings, report: &mut Report) -> Result<(), Failure> {
    let Some(base) = rib::prefixes::<u128>(rib::V6_2026) else { return Ok(()) };
    let counts: &[usize] = if settings.quick { &[1] } else { &[1, 16] };
    for relation in [Relation::Equal, Relation::Overlap] {
        for &count in counts {
            if relation == Relation::Overlap && count == 1 {
                continue;
            }
            let tables = derived(&base, relation, count);
            let lpms = tables6(dpdk, Kind::Lpm6, &tables)?;
            let fibs = if count == 1 { tables6(dpdk, Kind::Fib6, &tables)? } else { Vec::new() };
            let mut engines = our_engines(&tables)?;
            let peers = match count {
                1 => vec![
                    (&lpms, Mode6::Single),
                    (&lpms, Mode6::Bulk),
                    (&fibs, Mode6::Bulk),
                    (&fibs, Mode6::Vector),
                ],
                _ => vec![(&lpms, Mode6::Single)],
            };
            for (tables, mode) in peers {
                engines
                    .extend(Engine6::new(tables, mode).map(|e| Box::new(e) as Box<dyn LookupEngine<u128>>));
            }
            let title =
                format!("IPv6, {count} x {} routes, {} prefix sets", tables[0].len(), relation.name());
            compare(&title, &tables, &engines, settings, report)?;
        }
    }
    Ok(())
}

/// Our engines over a store of these tables.
fn our_engines<'a, K: Key>(tables: &[Table<K>]) -> Result<Vec<Box<dyn LookupEngine<K> + 'a>>, Failure> {
    Ok(ours::engines(tables)?
        .into_iter()
        .map(|engine| Box::new(engine) as Box<dyn LookupEngine<K>>)
        .collect())
}

/// The tables of `count` networks.
pub fn derived<K: Key>(base: &[Prefix<K>], relation: Relation, count: usize) -> Vec<Table<K>> {
    (0..count).map(|net| derive(base, relation, net as u16)).collect()
}

/// Makes as many `rte_lpm` as there are tables (keeping those there are) and fills them.
fn fill_lpms<'a>(
    dpdk: &'a Dpdk,
    lpms: &mut Vec<Lpm<'a>>,
    tables: &[Table<u32>],
    routes: usize,
) -> Result<(), DpdkError> {
    // Room for 3 % more rules and groups than the base table has, so that every derived table fits.
    let groups = tables.iter().map(tbl8s).max().unwrap_or(0);
    for (i, table) in tables.iter().enumerate() {
        if lpms.len() == i {
            lpms.push(Lpm::new(dpdk, routes + routes / 32, groups + groups / 32 + 8)?);
        }
        lpms[i].fill(table)?;
    }
    Ok(())
}

fn fibs<'a>(dpdk: &'a Dpdk, table: &Table<u32>) -> Result<Vec<Fib<'a>>, DpdkError> {
    let mut out = Vec::new();
    for wide in [false, true] {
        let mut fib = Fib::new(dpdk, table.len(), tbl8s(table) + 8, wide)?;
        fib.fill(table)?;
        out.push(fib);
    }
    Ok(out)
}

fn tables6<'a>(dpdk: &'a Dpdk, kind: Kind, tables: &[Table<u128>]) -> Result<Vec<Table6<'a>>, DpdkError> {
    let fill = |table: &Table<u128>| {
        let mut out = Table6::new(dpdk, kind, table.len() + 1, TBL8S_6)?;
        out.fill(table)?;
        Ok(out)
    };
    tables.iter().map(fill).collect()
}

/// Checks the engines against each other and the oracle, then times them on both kinds of destinations.
fn compare<K: Key>(
    title: &str,
    tables: &[Table<K>],
    engines: &[Box<dyn LookupEngine<K> + '_>],
    settings: &Settings,
    report: &mut Report,
) -> Result<(), Failure> {
    for from in [Destinations::Table, Destinations::Uniform] {
        let title = format!("{title}, destinations {}", from.name());
        eprintln!("{title}");
        let queries = Queries::draw(tables, from, settings.lookups(), 0xD357 + from as u64);
        let hits = check(tables, engines, &queries)?;
        let spreads = interleave(engines.len(), settings.rounds(), |i| {
            (queries.len() as f64, seconds(|| engines[i].run(&queries)))
        });
        let mut section = Section::new(title, &COLUMNS);
        for (engine, spread) in engines.iter().zip(&spreads) {
            let memory = engine.memory();
            let [median, min, max] = millions(spread);
            let sizes = [mib(memory.lookup_bytes), mib(memory.total_bytes)];
            section.row([vec![json!(engine.name()), median, min, max], sizes.to_vec()].concat());
        }
        section.note(format!(
            "{} lookups a round, {} rounds, {} % find a route; all engines gave the same answers.",
            queries.len(),
            settings.rounds(),
            round(hits * 100.0, 1)
        ));
        report.push(section);
    }
    Ok(())
}

/// All engines' answers are equal, and a sample equals the oracle's; returns the share that found a route.
fn check<K: Key>(
    tables: &[Table<K>],
    engines: &[Box<dyn LookupEngine<K> + '_>],
    queries: &Queries<K>,
) -> Result<f64, Failure> {
    let Some(first) = engines.first() else { return Ok(0.0) };
    let expected = first.answers(queries);
    for engine in engines {
        let answers = engine.answers(queries);
        if checksum(&answers) != checksum(&expected) {
            let at = answers.iter().zip(&expected).position(|(a, b)| a != b).unwrap_or(0);
            return Err(Failure::Disagree(format!(
                "{} answers {} where {} answers {} for network {} address {}",
                engine.name(),
                answers[at],
                first.name(),
                expected[at],
                queries.nets[at],
                queries.keys[at].to_ip()
            )));
        }
    }
    for (i, answer) in expected.iter().enumerate().take(SAMPLED) {
        let (net, key) = (queries.nets[i], queries.keys[i]);
        let right = oracle::lookup(&tables[usize::from(net)], key);
        if right != *answer {
            let what = format!("network {net} address {}: {answer} instead of {right}", key.to_ip());
            return Err(Failure::Disagree(format!("all engines are wrong: {what}")));
        }
    }
    Ok(hit_rate(&expected))
}
