//! `hueplane lab tables`: how real tables share a forwarding memory in the papers' layout and in hueplane's
//! (Unnikrishnan §7.5, Table 3).
//!
//! Flow: route files → [`Table`]s, each with its memory in layout `dir`, computed once → experiments →
//! [`Findings`]. A set consists of the tables of one node. IPv4 only, like layout `dir`. Nothing is timed:
//! the same files and seed give the same result.

use std::path::{Path, PathBuf};

use hue_lab::tables::{distribute, overlap};
use hue_routing::{Options, load_routes};
use hue_tables::dag36::{CARD_WORDS, words_total};
use hue_tables::dir::{
    CAM_ROWS, DirError, DirLimits, DirNeeds, DirShape, DirUsage, SET_ENTRIES, SETS, SLOT_BITS, SLOTS,
};
use hue_tables::tcam::ROW_BITS;
use hue_tables::{Change, Dag, Dir, Limits, NextHop, Prefix4, Vid};
use serde_json::{Value, json};

use super::sections::{Findings, Section, percent, round};
use crate::cli::LabTables;
use crate::commands::counts::Counts;
use crate::commands::table::left_out;
use crate::failure::Failure;
use crate::print::{grouped, result};
use crate::progress;

/// Most pairs of a set that are listed individually; of more pairs, minimum, median and maximum are listed.
const PAIRS_SHOWN: usize = 10;
/// Routes added to layout `dir` in one batch, as long as they fit.
const CHUNK_ROUTES: usize = 64;
/// Bytes of a 36-bit word.
const WORD_BYTES: f64 = 4.5;

/// The paper's Table 3: table, prefixes in thousands, percentage of overlapping prefixes.
const PAPER: [(&str, u32, f64); 4] =
    [("rrc12", 339, 13.0), ("rrc13", 346, 12.6), ("rrc15", 339, 15.0), ("rrc16", 345, 13.8)];
/// Bits of a row of the Conflict CAM without the network's id: prefix and index.
const ROW_BITS_CAM: usize = 32 + SLOT_BITS as usize;

/// A table, and its shape in layout `dir`.
struct Table {
    name: String,
    routes: Vec<(Prefix4, NextHop)>,
    prefixes: Vec<Prefix4>,
    shape: DirShape,
}

impl Table {
    fn new(name: String, routes: Vec<(Prefix4, NextHop)>) -> Self {
        let prefixes = routes.iter().map(|(prefix, _)| *prefix).collect();
        let shape = DirShape::of(routes.iter().copied());
        Self { name, routes, prefixes, shape }
    }
}

/// The tables of one node.
struct Set {
    name: String,
    tables: Vec<Table>,
}

/// Runs the command.
pub fn run(args: &LabTables) -> Result<(), Failure> {
    let mut sets: Vec<Set> = Vec::with_capacity(args.sets.len());
    for named in &args.sets {
        let tables = load(&named.file, args)?;
        match sets.iter_mut().find(|set| set.name == named.name) {
            Some(set) => set.tables.extend(tables),
            None => sets.push(Set { name: named.name.clone(), tables }),
        }
    }
    for set in &sets {
        let count = set.tables.len();
        if u16::try_from(count).ok().and_then(Vid::new).is_none() {
            let most = Vid::MAX;
            return Err(Failure::Input(format!(
                "--set {}: found {count} tables, expected 1 to {most}",
                set.name
            )));
        }
    }
    let findings = Findings {
        name: "lab-tables",
        facts: Counts(vec![
            ("sets", json!(sets.iter().map(|set| set.name.as_str()).collect::<Vec<_>>().join(", "))),
            (
                "next hops",
                json!(format!("from the files, otherwise fnv1a(first 20 bits) mod {}", args.derive_hops)),
            ),
            ("seed", json!(args.seed)),
        ]),
        sections: vec![pairs(&sets), dealt(&sets, args), conflicts(&sets), banks(&sets)?, bytes(&sets)?],
    };
    if let Some(folder) = &args.out {
        findings.write(folder)?;
    }
    result(args.output.format, &findings, || findings.text())
}

/// Reads the table of a file, or the tables of all files in a directory, sorted by name.
fn load(path: &Path, args: &LabTables) -> Result<Vec<Table>, Failure> {
    let unreadable = |error| Failure::Input(format!("{}: cannot be read: {error}", path.display()));
    let mut files: Vec<PathBuf> = vec![path.to_owned()];
    if path.is_dir() {
        let entries = std::fs::read_dir(path).map_err(unreadable)?;
        files = entries.map(|entry| Ok(entry?.path())).collect::<Result<_, _>>().map_err(unreadable)?;
        files.sort();
    }
    let options = Options { skip_bad: args.skip_bad, derive_hops: Some(args.derive_hops) };
    let mut tables = Vec::with_capacity(files.len());
    for file in files {
        let spinner = progress::spinner(&format!("reading {}", file.display()));
        let routes = load_routes(&file, &options)?;
        spinner.finish_and_clear();
        let ipv6 = Some(("IPv6 routes omitted", routes.v6.len() as u64)).filter(|(_, count)| *count > 0);
        for (what, count) in ipv6.into_iter().chain(left_out(&routes)) {
            eprintln!("hueplane: {}: {} {what}", file.display(), grouped(count));
        }
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let name = name.split('.').next().unwrap_or_default().to_owned();
        tables.push(Table::new(name, routes.v4));
    }
    Ok(tables)
}

/// Overlap of each table's prefixes with those of each other table in its set.
fn pairs(sets: &[Set]) -> Section {
    let mut section = Section::new(
        "Prefixes of two tables",
        &[
            "set",
            "first",
            "second",
            "prefixes of the second",
            "% the same",
            "% overlap",
            "% at one entry",
            "CAM rows",
            "CAM rows, % of prefixes",
        ],
    );
    for set in sets {
        let mut rows: Vec<(&str, &str, [Value; 6])> = Vec::new();
        for (at, second) in set.tables.iter().enumerate() {
            for first in set.tables.iter().take(at) {
                let meets = overlap(&second.prefixes, &first.prefixes);
                let mut needs = DirNeeds::default();
                needs.add(&first.shape);
                let cam_rows = needs.add(&second.shape).cam_rows;
                let count = second.prefixes.len();
                let share = |part| percent(part, meets.prefixes);
                let figures = [
                    json!(count),
                    share(meets.same),
                    share(meets.any),
                    share(meets.entry),
                    json!(cam_rows),
                    percent(cam_rows, count),
                ];
                rows.push((&first.name, &second.name, figures));
            }
        }
        if rows.len() <= PAIRS_SHOWN {
            for (first, second, figures) in rows {
                section.row([json!(set.name), json!(first), json!(second)].into_iter().chain(figures));
            }
            continue;
        }
        let of = format!("of {} pairs", rows.len());
        for (which, thousandths) in [("least", 0), ("median", 500), ("most", 1000)] {
            let quantile = |column: usize| {
                let mut values: Vec<&Value> =
                    rows.iter().filter_map(|(.., figures)| figures.get(column)).collect();
                values.sort_by(|a, b| a.as_f64().unwrap_or(0.0).total_cmp(&b.as_f64().unwrap_or(0.0)));
                values
                    .get((values.len() - 1) * thousandths / 1000)
                    .map_or(Value::Null, |value| (*value).clone())
            };
            section.row([json!(set.name), json!(of), json!(which)].into_iter().chain((0..6).map(quantile)));
        }
    }
    section.note(
        "% the same: prefixes of the second table that the first also has. % overlap: equal to, inside or covering a prefix of the first; default \
         routes omitted. % at one entry: prefixes that share an entry of layout dir's first bank with the first table. CAM rows: rows for the second table beside \
         the first, including default routes: one for each largest block of entries with one answer. Least, median and most: of each column separately.",
    );
    section
}

/// Tables distributed to networks, as in the paper's Table 3.
fn dealt(sets: &[Set], args: &LabTables) -> Section {
    let mut section = Section::new(
        format!("One table dealt to {} networks", args.parts),
        &[
            "table",
            "prefixes",
            "dealt",
            "% inside another's",
            "% covering another's",
            "% overlap",
            "% at one entry",
            "CAM rows",
            "CAM rows, % of prefixes",
            "CAM kbit",
            "sets",
        ],
    );
    for (table, thousands, overlap) in PAPER {
        let prefixes = format!("{thousands}K");
        let cam = (13_000 * ROW_BITS_CAM / 1000) as u64;
        let cam = if overlap == 13.0 { json!(cam) } else { Value::Null };
        let row = [
            json!(format!("paper: {table}")),
            json!(prefixes),
            json!("100K"),
            Value::Null,
            Value::Null,
            json!(overlap),
        ];
        section.row(row.into_iter().chain([Value::Null, Value::Null, Value::Null, cam, Value::Null]));
    }
    let mut short = 0;
    for table in (0..sets.len()).flat_map(|at| new_in(sets, at)) {
        let parts = usize::from(args.parts);
        for sample in [args.sample, args.sample.saturating_mul(parts)] {
            match distribute(&table.routes, sample, parts, args.seed) {
                Some(parts) => section.row(dealt_row(table, sample, parts)),
                None if sample == args.sample => short += 1,
                None => {}
            }
        }
    }
    section.note(format!(
        "Random prefixes of a table, without repetition, distributed evenly (seed {}): {} in total, as in the paper, and as many for each network if the table has \
         enough. Percentages: mean of the networks, each compared with all others together. The paper does not define overlap; here, no two networks have the \
         same prefix. CAM rows: of all networks, added one after another. CAM kbit: by the paper's formula, rows times (log2(networks) + 32 + 19) bits; its \
         663 kbit are 13,000 times 51.",
        args.seed,
        grouped(args.sample as u64)
    ));
    if short > 0 {
        section.note(format!("Tables omitted because they have fewer prefixes: {short}."));
    }
    section
}

fn dealt_row(table: &Table, sample: usize, parts: Vec<Vec<(Prefix4, NextHop)>>) -> Vec<Value> {
    let count = parts.len();
    let parts: Vec<Table> = parts.into_iter().map(|part| Table::new(String::new(), part)).collect();
    let (mut needs, mut usage) = (DirNeeds::default(), DirUsage::default());
    let (mut counted, mut sums) = (0, [0; 4]);
    for (at, part) in parts.iter().enumerate() {
        let others = parts.iter().enumerate().filter(|(other, _)| *other != at);
        let mut others: Vec<Prefix4> = others.flat_map(|(_, other)| &other.prefixes).copied().collect();
        others.sort_unstable();
        let meets = overlap(&part.prefixes, &others);
        counted += meets.prefixes;
        for (sum, one) in sums.iter_mut().zip([meets.inside, meets.covers, meets.any, meets.entry]) {
            *sum += one;
        }
        usage = needs.add(&part.shape);
    }
    let bits = (count as f64).log2() + ROW_BITS_CAM as f64;
    let mut row = vec![json!(table.name), json!(table.prefixes.len()), json!(sample)];
    row.extend(sums.map(|sum| percent(sum, counted)));
    row.extend([json!(usage.cam_rows), percent(usage.cam_rows, sample)]);
    row.extend([json!((usage.cam_rows as f64 * bits / 1000.0).round() as u64), json!(usage.sets)]);
    row
}

/// Usage of the Conflict CAM as networks are added.
fn conflicts(sets: &[Set]) -> Section {
    let mut section = Section::new(
        "Conflict CAM as networks are added",
        &[
            "set",
            "networks",
            "added",
            "routes",
            "entries of the first bank",
            "CAM rows",
            "% of routes",
            "sets",
        ],
    );
    for set in sets.iter().filter(|set| set.tables.len() > 1) {
        let (mut needs, mut routes) = (DirNeeds::default(), 0);
        for (at, table) in set.tables.iter().enumerate() {
            routes += table.routes.len();
            let usage = needs.add(&table.shape);
            section.row([
                json!(set.name),
                json!(at + 1),
                json!(table.name),
                json!(routes),
                json!(usage.slots + usage.cam_rows),
                json!(usage.cam_rows),
                percent(usage.cam_rows, routes),
                json!(usage.sets),
            ]);
        }
    }
    section.note(format!(
        "Memory of layout dir without limits. The papers' banks have {} entries and {SETS} sets, their Conflict CAM {CAM_ROWS} rows.",
        grouped(SLOTS as u64)
    ));
    section
}

/// Tables of a set that are in no earlier set.
fn new_in(sets: &[Set], at: usize) -> impl Iterator<Item = &Table> {
    let before = sets.iter().take(at).flat_map(|set| &set.tables);
    let tables = sets.iter().skip(at).take(1).flat_map(|set| &set.tables);
    tables.filter(move |table| {
        !before.clone().any(|other| other.name == table.name && other.routes == table.routes)
    })
}

/// Every table on its own, and every set with several tables.
fn single_and_combined(sets: &[Set]) -> impl Iterator<Item = (String, &[Table])> {
    sets.iter().enumerate().flat_map(move |(at, set)| {
        let alone = new_in(sets, at).map(|table| (table.name.clone(), std::slice::from_ref(table)));
        let all = (set.tables.len() > 1).then(|| (format!("{}, all", set.name), set.tables.as_slice()));
        alone.chain(all)
    })
}

/// How much of each table and each set fits into the papers' banks.
fn banks(sets: &[Set]) -> Result<Section, Failure> {
    let mut section = Section::new(
        "The papers' banks: what fits, and what would be needed",
        &[
            "tables",
            "routes",
            "longer than /19",
            "sets needed",
            "CAM rows needed",
            "MB needed",
            "routes that fit",
            "overflow",
        ],
    );
    for (name, tables) in single_and_combined(sets) {
        let usage = together(tables);
        let prefixes = || tables.iter().flat_map(|table| &table.prefixes);
        let (fitted, overflow) = fit(tables)?;
        section.row([
            json!(name),
            json!(prefixes().count()),
            json!(prefixes().filter(|prefix| prefix.len() > SLOT_BITS).count()),
            json!(usage.sets),
            json!(usage.cam_rows),
            round(banks_bytes(usage) / 1e6, 1),
            json!(fitted),
            json!(overflow.unwrap_or("none")),
        ]);
    }
    section.note(format!(
        "MB needed: the entire first bank and the sets, in 36-bit words. Routes that fit: in the order of their addresses, network by network, into {} \
         entries, {SETS} sets and {CAM_ROWS} rows.",
        grouped(SLOTS as u64)
    ));
    Ok(section)
}

/// Bytes per route in each layout.
fn bytes(sets: &[Set]) -> Result<Section, Failure> {
    let mut section = Section::new(
        "Bytes a route",
        &["tables", "routes", "dir", "dir, used entries", "tcam", "dag36", "dag64", "dag36 words"],
    );
    for (name, tables) in single_and_combined(sets) {
        let dag = store(tables)?;
        let (words, usage) = (words_total(&dag), together(tables));
        let routes: usize = tables.iter().map(|table| table.routes.len()).sum();
        let each = |bytes: f64| if routes == 0 { Value::Null } else { round(bytes / routes as f64, 2) };
        section.row([
            json!(name),
            json!(routes),
            each(banks_bytes(usage)),
            each(usage.words() as f64 * WORD_BYTES),
            each(ROW_BITS as f64 / 8.0 * routes as f64),
            each(words as f64 * WORD_BYTES),
            each(dag.bytes_live() as f64),
            json!(words),
        ]);
    }
    section.note(format!(
        "dir: the entire first bank and the sets needed. Used entries: only the used entries of the first bank, and the sets. tcam: {ROW_BITS} bits per row. dag36 and \
         dag64: live nodes. The card has {} words.",
        grouped(CARD_WORDS.into())
    ));
    Ok(section)
}

/// The memory in layout `dir` of all these tables together.
fn together(tables: &[Table]) -> DirUsage {
    let mut needs = DirNeeds::default();
    tables.iter().fold(DirUsage::default(), |_, table| needs.add(&table.shape))
}

/// Bytes of the entire first bank and of the sets.
fn banks_bytes(usage: DirUsage) -> f64 {
    (SLOTS + usage.sets as usize * SET_ENTRIES) as f64 * WORD_BYTES
}

/// The tables as networks, numbered from 1.
fn numbered(tables: &[Table]) -> impl Iterator<Item = (Vid, &Table)> {
    (1..).map_while(Vid::new).zip(tables)
}

fn announced(routes: &[(Prefix4, NextHop)]) -> Vec<Change<u32>> {
    routes.iter().map(|(prefix, hop)| (*prefix, Some(*hop))).collect()
}

/// A store with these tables.
fn store(tables: &[Table]) -> Result<Dag, Failure> {
    let mut dag = Dag::new(Limits::default())?;
    for (vid, table) in numbered(tables) {
        dag.add_network::<u32>(vid)?;
        dag.apply(vid, &announced(&table.routes))?;
    }
    Ok(dag)
}

/// Number of routes that fit into the papers' banks, and the limit that the next route exceeds.
fn fit(tables: &[Table]) -> Result<(usize, Option<&'static str>), Failure> {
    let mut dir = Dir::new(DirLimits::default());
    let mut fitted = 0;
    for (vid, table) in numbered(tables) {
        dir.add_network(vid).map_err(|error| Failure::Broken(error.to_string()))?;
        for chunk in table.routes.chunks(CHUNK_ROUTES) {
            if dir.apply(vid, &announced(chunk)).is_ok() {
                fitted += chunk.len();
                continue;
            }
            // They do not fit together: add them one by one, until one does not fit.
            for route in announced(chunk) {
                match dir.apply(vid, &[route]) {
                    Ok(()) => fitted += 1,
                    Err(DirError::Sets { .. }) => return Ok((fitted, Some("sets of the second bank"))),
                    Err(DirError::Cam { .. }) => return Ok((fitted, Some("rows of the Conflict CAM"))),
                    Err(DirError::Bank { .. }) => return Ok((fitted, Some("entries of the first bank"))),
                    Err(other) => return Err(Failure::Broken(other.to_string())),
                }
            }
        }
    }
    Ok((fitted, None))
}
