//! Updates of routes: a real day of updates to the software engine in wall time, and to the card in its own clocks while it
//! forwards as much as it can; and four large tables that are rewritten at the same time.
//!
//! Flow: the 2026 table and its day ([`day`]) → engine, or driver → registers ([`ports`]) → the simulated card. Image `sram`.

mod day;
mod ports;
mod store;

use std::collections::HashMap;
use std::time::Instant;

use hue_card::{Card, Images, Registers};
use hue_soft::Soft;
use hue_substrate::{Mode, Substrate, SubstrateError, Update};
use hue_tables::dag36::words_total;
use hue_tables::{Change, Dag, Limits, NextHop, Prefix4, Vid};
use serde_json::{Value, json};

use self::day::{BATCH, Day};
use self::ports::{Ports, Recorded, Stream, program, routes_from, vid};
use crate::measure::Spread;
use crate::report::{Section, round};
use crate::rng::Rng;
use crate::{Settings, Table, machine};

/// The image's name, and its clock in MHz: the papers' card's.
const IMAGE: &str = "sram";
const CLOCK_MHZ: f64 = 62.5;
/// Words of its external memory.
const SRAM_WORDS: f64 = 1_048_576.0;
/// Entries of each table of SwitchBlade's experiment, how many tables, and changes of one of them at a time.
const ENTRIES: usize = 400_000;
const TABLES_AT_ONCE: u16 = 4;
const CHUNK: usize = 4096;
/// Clocks in which the card forwards undisturbed, to compare with.
const BEFORE_CLOCKS: u64 = 400_000;

pub const TABLES: [(&str, Table); 5] = [
    ("To software: the 2026 IPv4 table and its day of updates", software),
    ("One store: software reads it, and the card follows", store::run),
    ("To the card: what the driver makes of the whole day", driver),
    ("To the card: the same through the simulated card, which forwards meanwhile", card),
    ("Four tables of 400,000 entries rewritten at the same time, as SwitchBlade did", four),
];

/// How announcements of existing routes change them, and how changes are passed on.
#[derive(Clone, Copy)]
struct Way {
    name: &'static str,
    /// The announcement has a different next hop.
    fresh: bool,
    batch: usize,
    /// All changes of a batch take effect at once.
    at_once: bool,
}

const WAYS: [Way; 5] = [
    Way { name: "one by one, new next hops", fresh: true, batch: 1, at_once: true },
    Way { name: "batches of 1,000, new next hops", fresh: true, batch: BATCH, at_once: false },
    Way {
        name: "batches of 1,000 seen all at once, new next hops",
        fresh: true,
        batch: BATCH,
        at_once: true,
    },
    Way { name: "one by one, as they are", fresh: false, batch: 1, at_once: true },
    Way { name: "batches of 1,000, as they are", fresh: false, batch: BATCH, at_once: false },
];

/// The columns of [`Run::row`].
const RUN: [&str; 10] = [
    "what",
    "updates",
    "words an update",
    "clocks an update",
    "clocks a word",
    "M updates/s at 62.5 MHz",
    "Mpps before",
    "during",
    "slower by %",
    "packets lost",
];

const RULE: &str = "As they are: the table and the day name no next hops, so each prefix has the one of a rule (fnv1a of its first \
    20 bits, mixed, mod 8), and nearly all of the day's announcements are of routes that are there and change nothing. New next hops: each \
    such announcement brings another of the eight.";

/// Figures of real routers, measured earlier on machines like this one.
const PEERS: [(&str, &str); 4] = [
    ("rte_fib dir24_8 of DPDK 22.11, insertion one by one, measured before", "0.257"),
    ("poptrie, insertion one by one, measured before", "0.184"),
    ("rte_lpm of DPDK 22.11, insertion one by one, measured before", "0.0053"),
    ("DXR-18, measured before: rebuilt in 0.1 s after any change", "-"),
];

fn text(error: impl ToString) -> String {
    error.to_string()
}

/// A table without rows that says why.
fn skipped(title: &str, columns: &[&'static str]) -> Section {
    let mut section = Section::new(title, columns);
    section.note("Skipped: the 2026 table or its day of updates is missing.");
    section
}

/// Words in use in the card's external memory.
fn words_used<R: Registers>(card: &Card<R>) -> u64 {
    card.memory(&HashMap::new()).banks.first().map_or(0, |bank| bank.used)
}

fn apply<R: Registers>(
    card: &mut Card<R>,
    vid: Vid,
    changes: &[Change<u32>],
    at_once: bool,
) -> Result<(), SubstrateError> {
    let mode = if at_once { Mode::Whole } else { Mode::Each };
    card.update(vid, &Update::of_routes(changes).with_mode(mode)).map(drop)
}

fn software(_: &Images, settings: &Settings, title: &str) -> Result<Section, String> {
    let columns = [
        "what",
        "updates",
        "M/s of wall time median",
        "min",
        "max",
        "M/s of processor time median",
        "aim, M/s, above",
    ];
    let Some(day) = Day::read() else { return Ok(skipped(title, &columns)) };
    let mut section = Section::new(title, &columns);
    let ways: Vec<Way> = WAYS.into_iter().filter(|way| !(way.at_once && way.batch > 1)).collect();
    let program = program(1, routes_from(&day.table()));
    let rounds = if settings.quick { 1 } else { settings.rounds.min(5) };
    let mut rates = vec![(Vec::new(), Vec::new()); ways.len()];
    for number in 0..rounds {
        for step in 0..ways.len() {
            let at = if number % 2 == 0 { step } else { ways.len() - 1 - step };
            let changes = day.changes(ways[at].fresh, 0..day.len());
            let mut soft = Soft::new(Limits::default()).map_err(text)?;
            soft.load(std::slice::from_ref(&program)).map_err(text)?;
            let (began, used) = (Instant::now(), machine::thread_seconds());
            for changes in changes.chunks(ways[at].batch) {
                soft.update(program.vid, &Update::of_routes(changes)).map_err(text)?;
            }
            let count = changes.len() as f64;
            rates[at].0.push(count / began.elapsed().as_secs_f64());
            rates[at].1.push(count / (machine::thread_seconds() - used));
        }
    }
    for (way, (wall, used)) in ways.iter().zip(rates) {
        let spread = Spread::new(wall);
        let used = round(Spread::new(used).median() / 1e6, 3);
        let aim = if way.batch == 1 { 0.26 } else { 1.0 };
        let [median, min, max] =
            [spread.median(), spread.min(), spread.max()].map(|rate| round(rate / 1e6, 3));
        section.row(vec![json!(way.name), json!(day.len()), median, min, max, used, json!(aim)]);
    }
    for (name, rate) in PEERS {
        section.row(vec![
            json!(name),
            json!(901_899),
            json!(rate),
            Value::Null,
            Value::Null,
            Value::Null,
            Value::Null,
        ]);
    }
    section.note(RULE);
    section.note(format!(
        "The whole software engine of one network (`Soft::update`) on one core, {rounds} rounds, the table loaded anew before each. \
         Peers inserted the 901,899 routes of another full table into an empty one, in random order, on another day: they are comparable \
         with `one by one` in kind only. Of the same library and the 2026 table in one run with ours: `results/insert.md`."
    ));
    Ok(section)
}

fn driver(images: &Images, settings: &Settings, title: &str) -> Result<Section, String> {
    let columns = [
        "what",
        "updates",
        "words an update",
        "register accesses an update",
        "driver, M updates/s of processor time",
        "words in use, % of 2^20",
    ];
    let Some(day) = Day::read() else { return Ok(skipped(title, &columns)) };
    let mut section = Section::new(title, &columns);
    let routes = routes_from(&day.table());
    for way in WAYS {
        let end = if settings.quick { 100_000 } else { day.len() };
        let changes = day.changes(way.fresh, 0..end);
        let mut card = Card::new(Recorded::of(images, IMAGE)?).map_err(text)?;
        card.load(&[program(1, routes.clone())]).map_err(text)?;
        let before = card.device().registers().counts;
        let used = machine::thread_seconds();
        for changes in changes.chunks(way.batch) {
            apply(&mut card, vid(1), changes, way.at_once).map_err(text)?;
        }
        let seconds = machine::thread_seconds() - used;
        let counts = card.device().registers().counts - before;
        let each = |count: u64| count as f64 / changes.len() as f64;
        let used = words_used(&card);
        section.row(vec![
            json!(way.name),
            json!(changes.len()),
            round(each(counts.words), 2),
            round(each(counts.accesses), 2),
            round(changes.len() as f64 / seconds / 1e6, 3),
            round(used as f64 / SRAM_WORDS * 100.0, 1),
        ]);
    }
    section.note(
        "Registers that answer at once and nothing behind them: what the driver alone takes, and how much it asks for. Words are those \
         of the trie; register accesses are all that there are, reads of results and of the packet counters among them.",
    );
    Ok(section)
}

/// The effect of changes on a card that forwards.
struct Run {
    updates: usize,
    clocks: u64,
    counts: ports::Counts,
    before: f64,
    during: f64,
    lost: u64,
}

/// Makes changes while frames flow as fast as the card takes them.
fn run(
    card: &mut Card<Ports>,
    changes: impl Iterator<Item = (Vid, Vec<Change<u32>>)>,
    at_once: bool,
    mut each: impl FnMut(&Card<Ports>),
) -> Result<Run, String> {
    let ports = card.device().registers();
    ports.warm_up(BEFORE_CLOCKS / 8)?;
    let before = ports.rate(BEFORE_CLOCKS)?;
    let (clocks, counts, left) = (ports.cycles(), ports.counts, ports.left);
    let mut updates = 0;
    for (vid, changes) in changes {
        card.device().registers().feed()?;
        apply(card, vid, &changes, at_once).map_err(text)?;
        updates += changes.len();
        each(card);
        let ports = card.device().registers();
        ports.collect();
    }
    let ports = card.device().registers();
    let ran = ports.cycles() - clocks;
    let during = (ports.left - left) as f64 / ran as f64;
    let counts = ports.counts - counts;
    let lost = ports.drain()?;
    Ok(Run { updates, clocks: ran, counts, before, during, lost })
}

impl Run {
    fn row(&self, name: &str) -> Vec<Value> {
        let each = |count: u64| count as f64 / self.updates as f64;
        let slower = (1.0 - self.during / self.before) * 100.0;
        vec![
            json!(name),
            json!(self.updates),
            round(each(self.counts.words), 2),
            round(each(self.clocks), 1),
            round(self.clocks as f64 / (self.counts.words as f64).max(1.0), 2),
            round(CLOCK_MHZ / each(self.clocks), 3),
            round(self.before * CLOCK_MHZ, 3),
            round(self.during * CLOCK_MHZ, 3),
            round(slower, 2),
            json!(self.lost),
        ]
    }
}

fn forwarding_card(
    images: &Images,
    programs: &[hue_substrate::Program],
    stream: Stream,
    apart: bool,
) -> Result<Card<Ports>, String> {
    let twin = images.load(IMAGE).and_then(|image| image.start()).map_err(text)?;
    let mut card = Card::new(Ports::new(twin, stream, apart)).map_err(text)?;
    card.load(programs).map_err(text)?;
    card.device().registers().hold_back().map_err(text)?;
    Ok(card)
}

fn card(images: &Images, settings: &Settings, title: &str) -> Result<Section, String> {
    let Some(day) = Day::read() else { return Ok(skipped(title, &RUN)) };
    let mut section = Section::new(title, &RUN);
    let slice = |way: &Way| match (way.fresh, way.at_once && way.batch > 1) {
        _ if settings.quick => 4000,
        (_, true) => 20_000,
        (true, _) => 100_000,
        (false, _) => 200_000,
    };
    let mut courses: Vec<(Way, bool, usize)> = WAYS.map(|way| (way, false, slice(&way))).into();
    let apart =
        Way { name: "one by one, new next hops; each word by a command of its own, as before", ..WAYS[0] };
    courses.push((apart, true, 2000));
    for (way, apart, count) in courses {
        let begin = day.len() / 2;
        let table = day.table_at(way.fresh, begin);
        let stream = Stream::of(&[(1, day.lasting(begin..begin + count, &table))], 7);
        let mut card = forwarding_card(images, &[program(1, routes_from(&table))], stream, apart)?;
        let changes = day.changes(way.fresh, begin..begin + count);
        let changes = changes.chunks(way.batch).map(|changes| (vid(1), changes.to_vec()));
        section.row(run(&mut card, changes, way.at_once, |_| {})?.row(way.name));
    }
    section.note(RULE);
    section.note(format!(
        "Image `{IMAGE}`: 64-bit bus, two external memories. The card holds the table as it is after half of the day; so many updates of \
         the middle of the day follow, each handed to the driver as soon as the one before is done. All register accesses go through the \
         card's AXI-Lite port and take their clocks; the driver's own time is none (see the table above for it). Clocks a word are \
         all clocks over all words, so other register accesses are in them. All four ports are offered 64-byte packets (60 on the \
         bus) without a pause, to addresses of the table that the updates leave routed, on whatever port their route says; input queues \
         hold back. Lost: offered, and not forwarded in the end."
    ));
    Ok(section)
}

/// Words of tables in one image.
fn words(tables: impl Iterator<Item = Vec<(Prefix4, NextHop)>>) -> Result<u64, String> {
    let mut dag = Dag::new(Limits::default()).map_err(text)?;
    for (net, table) in (1..).zip(tables) {
        dag.add_network::<u32>(vid(net)).map_err(text)?;
        let changes: Vec<Change<u32>> = table.into_iter().map(|(prefix, hop)| (prefix, Some(hop))).collect();
        dag.apply(vid(net), &changes).map_err(text)?;
    }
    Ok(words_total(&dag))
}

fn four(images: &Images, settings: &Settings, title: &str) -> Result<Section, String> {
    let columns = [&RUN[..], &["milliseconds", "% of 2^20 words before", "at most"]].concat();
    let Some(day) = Day::read() else { return Ok(skipped(title, &columns)) };
    let mut section = Section::new(title, &columns);
    let entries = if settings.quick { ENTRIES / 20 } else { ENTRIES };
    let prefixes = day.table().into_keys();
    let mut prefixes: Vec<Prefix4> = prefixes.collect();
    prefixes.sort_unstable();
    let with_hops = |net: u16, prefixes: &[Prefix4]| -> Vec<(Prefix4, NextHop)> {
        prefixes.iter().map(|prefix| (*prefix, crate::rib::derived_hop(*prefix, net))).collect()
    };
    // This number of neighbouring prefixes, from four places in the table.
    let spare = prefixes.len() - entries;
    let tables: Vec<_> = (0..TABLES_AT_ONCE)
        .map(|at| {
            let start = usize::from(at) * spare / usize::from(TABLES_AT_ONCE - 1);
            with_hops(at + 1, &prefixes[start..start + entries])
        })
        .collect();
    let drawn = (1..=TABLES_AT_ONCE).map(|net| {
        let mut rng = Rng::new(net.into());
        let mut kept = prefixes.clone();
        for at in 0..entries {
            let other = at + rng.below(kept.len() - at);
            kept.swap(at, other);
        }
        kept.truncate(entries);
        with_hops(net, &kept)
    });
    let words_drawn = words(drawn)?;
    let other = |hop: NextHop| NextHop::new((hop.get() + 3) % 8);
    let keys = |table: &[(Prefix4, NextHop)]| table.iter().map(|(prefix, _)| prefix.addr()).collect();
    // Rewritten: each entry gets another next hop; packets of these networks flow. Flushed: all entries are withdrawn,
    // then written with other next hops; packets of a fifth network flow.
    let small = TABLES_AT_ONCE + 1;
    let few: Vec<(Prefix4, NextHop)> =
        tables.first().map_or(&[][..], |table| &table[..entries / 40]).to_vec();
    let of_four = (1..).zip(&tables).map(|(net, table)| (net, keys(table))).collect::<Vec<_>>();
    for (name, stream, flush) in [
        ("rewritten: another next hop for every entry; packets of the four networks", of_four, false),
        (
            "flushed, then written with other next hops; packets of a fifth network",
            vec![(small, keys(&few))],
            true,
        ),
    ] {
        let mut programs: Vec<_> =
            (1..).zip(&tables).map(|(net, table)| program(net, table.clone())).collect();
        programs.push(program(small, few.clone()));
        let mut card = forwarding_card(images, &programs, Stream::of(&stream, 7), false)?;
        let before = words_used(&card);
        let mut most = before;
        let mut passes: Vec<bool> = Vec::from([true]);
        if flush {
            passes.insert(0, false);
        }
        let mut chunks: Vec<(Vid, Vec<Change<u32>>)> = Vec::new();
        for write in passes {
            for start in (0..entries).step_by(CHUNK) {
                for (net, table) in (1..).zip(&tables) {
                    let part = &table[start..(start + CHUNK).min(entries)];
                    let change =
                        |(prefix, hop): &(Prefix4, NextHop)| (*prefix, other(*hop).filter(|_| write));
                    chunks.push((vid(net), part.iter().map(change).collect()));
                }
            }
        }
        let done = run(&mut card, chunks.into_iter(), false, |card| most = most.max(words_used(card)))?;
        let mut row = done.row(name);
        row.extend([
            round(done.clocks as f64 / CLOCK_MHZ / 1e3, 2),
            round(before as f64 / SRAM_WORDS * 100.0, 1),
            round(most as f64 / SRAM_WORDS * 100.0, 1),
        ]);
        section.row(row);
    }
    let share = words_drawn as f64 / SRAM_WORDS * 100.0;
    section.note(format!(
        "{TABLES_AT_ONCE} tables of {entries} neighbouring prefixes of the 2026 table each, from four places of it on, next hops by the rule \
         for each; {CHUNK} changes of one table, then of the next. The other next hop is the old one plus 3 modulo 8, so that neighbours \
         with the same next hop keep that in common: few words change, which favours the first row; the flush is not favoured by it. `sram_words` of the image is 2^20, which is also the most that the \
         words' addresses span; the last column says how much of it the experiment needs. {entries} prefixes drawn at random for each table \
         would take {words_drawn} words ({share:.0} % of 2^20) before anything changes. Clocks as in the table above. SwitchBlade \
         (Anwer et al., SIGCOMM 2010) did this on a NetFPGA-1G by PCI, whose time is of the bus and of its driver: what is comparable \
         is that forwarding goes on, not the milliseconds."
    ));
    Ok(section)
}
