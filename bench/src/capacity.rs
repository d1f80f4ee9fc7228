//! What fits the card's two SRAM banks: `dag36` in 2^20 words of 36 bits, after loading and after a day of updates.
//!
//! Flow: real tables → `Dag` → deltas → `Dag36`, as the card's driver applies them: the words of a change, its root, and only
//! then the old words free again. Nothing is timed. Units: words of 36 bits; a percentage is of 2^20 words.

use std::collections::HashMap;
use std::io::{BufRead, BufReader};

use hue_tables::dag36::{CARD_WORDS, Dag36, Dag36Error, account_words, words_total};
use hue_tables::{Change, Dag, Limits, NextHop, Oracle, Prefix4, TableId, Vid};
use serde_json::{Value, json};

use crate::dpdk::Dpdk;
use crate::engine::vid;
use crate::report::{Report, Section, round};
use crate::rib::{self, Relation, Table};
use crate::rng::{Rng, fnv1a, mix};
use crate::rtl::{self, Rtl};
use crate::{Failure, Settings};

/// The day of changes to [`rib::V4_2026`]: `A` or `W` and a prefix a line.
const DAY: &str = "updates/ris-as3333-2026-05-11.mutations.v4.txt.xz";
/// Routes of a change while a table is loaded.
const LOAD: usize = 8192;
/// Changes of the day that take effect together: what a busy BGP session delivers at once.
const BATCH: usize = 1000;
/// Parts of the day after which is measured.
const PARTS: usize = 4;
/// Bytes of a word.
const WORD_BYTES: f64 = 4.5;

/// A rule for next hops of tables that have none: `mix(fnv1a(network as 2 bytes, bits of the prefix)) mod hops`.
#[derive(Clone, Copy)]
struct Rule {
    name: &'static str,
    /// Which bits: the first 20 of the address, or all of them and the length.
    first20: bool,
    hops: u64,
}

/// The four rules; the first is that of the other benches. The last is the worst there is: no two next hops are alike but by
/// chance.
const RULES: [Rule; 4] = [
    Rule { name: "first 20 bits mod 8", first20: true, hops: rib::DERIVED_HOPS },
    Rule { name: "first 20 bits mod 256", first20: true, hops: 256 },
    Rule { name: "whole prefix mod 256", first20: false, hops: 256 },
    Rule { name: "random 16 bit", first20: false, hops: NextHop::NONE_WORD as u64 },
];

impl Rule {
    /// The next hop of a prefix in network `net` after it was announced again `times` times.
    fn hop(self, prefix: Prefix4, net: u16, times: u32) -> NextHop {
        let bits = if self.first20 { prefix.addr() & !0xfff } else { prefix.addr() };
        // As `rib::derived_hop` has it: an address is the first 4 of 16 bytes.
        let key = (u128::from(bits) << 96).to_be_bytes();
        let len = (!self.first20).then_some(prefix.len());
        let again = times.to_be_bytes().into_iter().filter(|_| times > 0);
        let hash = mix(fnv1a(net.to_be_bytes().into_iter().chain(key).chain(len).chain(again)));
        NextHop::new((hash % self.hops) as u16).unwrap_or_else(|| unreachable!("below 65535"))
    }

    fn table(self, prefixes: &[Prefix4], net: u16) -> Table<u32> {
        let hops = prefixes.iter().map(|prefix| self.hop(*prefix, net, 0)).collect();
        Table { prefixes: prefixes.to_vec(), hops }
    }
}

/// A store and the card's image that follows it.
struct Bank {
    dag: Dag,
    card: Dag36,
    /// Most words in use, those that wait to be free again included, since it was last asked.
    words_most: u64,
}

impl Bank {
    fn new() -> Result<Self, Failure> {
        let mut dag = Dag::new(Limits::default())?;
        dag.enable_deltas();
        Ok(Self { dag, card: Dag36::new(CARD_WORDS), words_most: 0 })
    }

    /// Changes a network, in the store and in the image or in neither.
    fn apply(&mut self, vid: Vid, changes: &[Change<u32>]) -> Result<(), Failure> {
        let card = &mut self.card;
        let result = self.dag.apply_if(vid, changes, |deltas| {
            deltas.iter().try_for_each(|delta| card.apply(delta)).map_err(Failure::from)
        });
        self.words_most = self.words_most.max(self.card.words_used());
        for delta in self.dag.take_deltas() {
            match self.card.apply(&delta) {
                // A node that did not fit goes again without ever having been there.
                Err(Dag36Error::Unknown(_)) if result.is_err() => {}
                other => other?,
            }
        }
        // The new root is written and the lookups that began before it are over.
        self.card.reclaim();
        result
    }

    /// Adds a network with a table; false, and the network is not there, when it does not fit.
    fn add(&mut self, net: u16, table: &Table<u32>) -> Result<bool, Failure> {
        let vid = vid(net);
        self.dag.add_network::<u32>(vid)?;
        let routes: Vec<Change<u32>> = table.routes().map(|(prefix, hop)| (prefix, Some(hop))).collect();
        match routes.chunks(LOAD).try_for_each(|routes| self.apply(vid, routes)) {
            Ok(()) => Ok(true),
            Err(Failure::Card(Dag36Error::Full { .. })) => {
                self.dag.remove_network(vid)?;
                for delta in self.dag.take_deltas() {
                    self.card.apply(&delta)?;
                }
                self.card.reclaim();
                Ok(false)
            }
            Err(other) => Err(other),
        }
    }

    /// Looks up the first and the last address of every prefix; answers must be the oracle's. Returns how many.
    fn verify(
        &self,
        net: u16,
        oracle: &Oracle<u32>,
        prefixes: impl Iterator<Item = Prefix4>,
    ) -> Result<u64, Failure> {
        let vid = vid(net);
        let mut lookups = 0;
        for prefix in prefixes {
            for key in [prefix.addr(), prefix.last()] {
                let right = NextHop::word(oracle.lookup(key).map(|(_, hop)| hop));
                let (word, _) = self.card.lookup(vid, key);
                if word != right {
                    return Err(Failure::Disagree(format!(
                        "network {vid} at {prefix}: the card's image says {word}, the oracle {right}"
                    )));
                }
                lookups += 1;
            }
        }
        Ok(lookups)
    }

    /// Words in use, the most there were since the last call, and what is left in what pieces.
    fn room(&mut self) -> [Value; 6] {
        let room = self.card.room();
        let most = std::mem::take(&mut self.words_most).max(room.words_used);
        [
            json!(room.words_used),
            percent(room.words_used),
            percent(most),
            percent(room.words_high.into()),
            json!(room.blocks_free),
            json!(room.words_fit),
        ]
    }
}

/// Of all words, in percent.
fn percent(words: u64) -> Value {
    round(words as f64 / f64::from(CARD_WORDS) * 100.0, 1)
}

/// Bytes a route.
fn a_route(words: u64, routes: usize) -> Value {
    round(words as f64 * WORD_BYTES / routes as f64, 2)
}

fn oracle(table: &Table<u32>) -> Oracle<u32> {
    let mut oracle = Oracle::default();
    table.routes().for_each(|(prefix, hop)| {
        oracle.insert(prefix, hop);
    });
    oracle
}

/// Everything about what fits.
///
/// # Errors
/// When the card's image and the oracle differ, or our table refuses what it should not.
pub fn all(_dpdk: &Dpdk, settings: &Settings, report: &mut Report) -> Result<(), Failure> {
    let fibs: Option<Vec<Table<u32>>> =
        rib::fibs().map(|fibs| fibs.into_iter().map(|(_, table)| table).collect());
    let base = rib::prefixes::<u32>(rib::V4_2026);
    if let (Some(fibs), Some(base)) = (&fibs, &base) {
        report.push(weights(fibs, base)?);
        if let Some(day) = day() {
            let mut walks = Section::new(
                "The same in the card's logic, after the day",
                &[
                    "next hops",
                    "lookups",
                    "M lookups/s at 62.5 MHz",
                    "clocks a lookup",
                    "words a lookup",
                    "latency, clocks",
                    "at most",
                ],
            );
            report.push(days(settings, fibs, base, &day, &mut walks)?);
            if let Some(rtl) = Rtl::new()? {
                walks.row(walk("deepest there can be", &worst(&rtl)?));
            }
            walks.note(
                "The first address of every prefix of all 22 networks, one network after the other, as fast as the logic takes \
                 them, each answer compared. Image `sram`: two banks, 32 lookups in flight, words 4 clocks from their address. Deepest: a \
                 table in which a lookup reads three words at each of the four bytes, twelve in all. Four ports of 1 Gbit/s with 64-byte \
                 packets ask for 5.95 M/s.",
            );
            report.push(walks);
        }
    }
    report.push(counts(settings, base.as_deref())?);
    Ok(())
}

/// What the 2026 table and the 21 FIBs weigh, alone and together.
fn weights(fibs: &[Table<u32>], base: &[Prefix4]) -> Result<Section, Failure> {
    let mut section = Section::new(
        "2026 table and FIBs of 21 routers in one image",
        &[
            "next hops",
            "routes",
            "words",
            "% of 2^20",
            "bytes a route",
            "2026 alone",
            "2026 added",
            "FIBs alone",
            "FIBs added",
        ],
    );
    let of_fibs: usize = fibs.iter().map(Table::len).sum();
    let net = fibs.len() as u16;
    for rule in RULES {
        let mut dag = crate::ours::store(fibs)?;
        let fibs_alone = words_total(&dag);
        let table = rule.table(base, 0);
        dag.add_network::<u32>(vid(net))?;
        let routes: Vec<Change<u32>> = table.routes().map(|(prefix, hop)| (prefix, Some(hop))).collect();
        dag.apply(vid(net), &routes)?;
        let account = account_words(&dag, vid(net))?;
        let words = words_total(&dag);
        section.row(vec![
            json!(rule.name),
            json!(of_fibs + base.len()),
            json!(words),
            percent(words),
            a_route(words, of_fibs + base.len()),
            a_route(account.bytes_own, base.len()),
            a_route(account.bytes_marginal, base.len()),
            a_route(fibs_alone, of_fibs),
            a_route(words - account.bytes_own, of_fibs),
        ]);
    }
    section.note(
        "Live nodes of a fresh store, not what loading and updates leave between them. Next hops of the 2026 table are fnv1a of what is \
         named, mixed; the FIBs have their own. The last four columns are bytes a route; \
         added: what would be free without the table, or without all 21.",
    );
    Ok(section)
}

/// The day's changes: announced or not.
fn day() -> Option<Vec<(bool, Prefix4)>> {
    let text = BufReader::new(rib::open(DAY)?);
    let change = |line: String| {
        let (verb, prefix) = line.split_once(' ')?;
        Some((verb == "A", prefix.trim().parse().ok()?))
    };
    Some(text.lines().map_while(Result::ok).filter_map(change).collect())
}

/// One way to live through the day.
struct Course {
    rule: Rule,
    /// An announcement brings a next hop that the route did not have before.
    moves: bool,
    batch: usize,
}

/// All tables through the day of updates, under each rule.
fn days(
    settings: &Settings,
    fibs: &[Table<u32>],
    base: &[Prefix4],
    day: &[(bool, Prefix4)],
    walks: &mut Section,
) -> Result<Section, Failure> {
    let rtl = Rtl::new()?;
    let mut section = Section::new(
        format!("The same through a day of {} updates", day.len()),
        &[
            "next hops",
            "announced again",
            "changes at once",
            "updates done",
            "refused",
            "routes of 2026",
            "words",
            "% of 2^20",
            "% at most",
            "% ever written",
            "free blocks",
            "largest that fits",
            "lookups compared",
        ],
    );
    let mut courses: Vec<Course> = Vec::new();
    for rule in RULES {
        courses.extend([false, true].map(|moves| Course { rule, moves, batch: BATCH }));
    }
    courses.push(Course { rule: RULES[3], moves: true, batch: 1 });
    if settings.quick {
        courses.retain(|course| course.moves && course.batch == BATCH);
    }
    for course in &courses {
        let Some((bank, oracles)) = live(&mut section, course, fibs, base, day)? else { continue };
        let Some(rtl) = rtl.as_ref().filter(|_| course.moves && course.batch == BATCH) else { continue };
        let lookups = (0..).zip(&oracles).flat_map(|(net, oracle)| {
            let item = bank.card.root(TableId::of::<u32>(vid(net))).unwrap_or(NextHop::NONE_WORD.into());
            oracle.iter().map(move |(prefix, _)| {
                let key = prefix.addr();
                rtl::Lookup { item, key, hop: oracle.lookup(key).map(|(_, hop)| hop) }
            })
        });
        walks.row(walk(course.rule.name, &rtl.run(bank.card.words(), lookups)?));
    }
    section.note(
        "Announced again: `same` next hop, so that only routes that come and go change the trie, or `new`: the rule's for this prefix and \
         the number of its announcement. % at most: with the words of replaced nodes, which are free again only after the change; since the \
         row before. % ever written: up to the last word that was ever used; what is not used below it lies in the free blocks. Largest that \
         fits: words of one node; none has more than 256. Lookups compared: the first and last address of every prefix that any of the 22 \
         networks has or had, in the image and in the naive oracle.",
    );
    Ok(section)
}

/// An image at the day's end, and what each network's lookups are to find.
type Lived = (Bank, Vec<Oracle<u32>>);

fn live(
    section: &mut Section,
    course: &Course,
    fibs: &[Table<u32>],
    base: &[Prefix4],
    day: &[(bool, Prefix4)],
) -> Result<Option<Lived>, Failure> {
    let mut bank = Bank::new()?;
    let net = fibs.len() as u16;
    let table = course.rule.table(base, 0);
    let tables = fibs.iter().chain([&table]);
    let mut fits = true;
    for (net, table) in (0..).zip(tables.clone()) {
        fits = fits && bank.add(net, table)?;
    }
    let mut row = |bank: &mut Bank, done: Value, refused: usize, lookups: Value| {
        let routes = bank.dag.account(vid(net)).map_or(0, |account| account.routes);
        let again = if course.moves { "new" } else { "same" };
        let mut row = vec![json!(course.rule.name), json!(again), json!(course.batch), done];
        row.extend([json!(refused), json!(routes)]);
        row.extend(bank.room());
        row.push(lookups);
        section.row(row);
    };
    if !fits {
        row(&mut bank, json!("does not fit"), 0, Value::Null);
        return Ok(None);
    }
    let mut oracles: Vec<Oracle<u32>> = tables.map(oracle).collect();
    // How often each prefix of the last network was announced.
    let mut times: HashMap<Prefix4, u32> = base.iter().map(|prefix| (*prefix, 0)).collect();
    let compared = |bank: &Bank, oracles: &[Oracle<u32>], times: &HashMap<Prefix4, u32>| {
        let Some((last, others)) = oracles.split_last() else { return Ok(json!(0)) };
        let mut lookups = bank.verify(net, last, times.keys().copied())?;
        for (net, oracle) in (0..).zip(others) {
            lookups += bank.verify(net, oracle, oracle.iter().map(|(prefix, _)| prefix))?;
        }
        Ok::<_, Failure>(json!(lookups))
    };
    let lookups = compared(&bank, &oracles, &times)?;
    row(&mut bank, json!(0), 0, lookups);
    let mut refused = 0;
    for (part, updates) in day.chunks(day.len().div_ceil(PARTS)).enumerate() {
        for updates in updates.chunks(course.batch) {
            let changes: Vec<Change<u32>> = updates
                .iter()
                .map(|(announced, prefix)| {
                    let times = times.entry(*prefix).or_insert(0);
                    *times += u32::from(*announced && course.moves);
                    (*prefix, announced.then(|| course.rule.hop(*prefix, 0, *times)))
                })
                .collect();
            match bank.apply(vid(net), &changes) {
                Err(Failure::Card(Dag36Error::Full { .. })) => {
                    refused += changes.len();
                    continue;
                }
                other => other?,
            }
            let Some(oracle) = oracles.last_mut() else { continue };
            for (prefix, hop) in changes {
                match hop {
                    Some(hop) => oracle.insert(prefix, hop),
                    None => oracle.remove(prefix),
                };
            }
        }
        let lookups = if part + 1 == PARTS { compared(&bank, &oracles, &times)? } else { Value::Null };
        let done = (part + 1) * day.len().div_ceil(PARTS);
        row(&mut bank, json!(done.min(day.len())), refused, lookups);
    }
    Ok(Some((bank, oracles)))
}

/// A row of what the card's logic did.
fn walk(what: &str, rate: &rtl::Rate) -> Vec<Value> {
    vec![
        json!(what),
        json!(rate.lookups),
        round(rate.millions(), 2),
        round(rate.clocks, 2),
        round(rate.words, 2),
        round(rate.latency, 1),
        json!(rate.latency_max),
    ]
}

/// Lookups that read as many words as there can be: a list of two words, beyond its first four runs, at each byte.
fn worst(rtl: &Rtl) -> Result<rtl::Rate, Failure> {
    const RUNS: u32 = 6;
    let mut bank = Bank::new()?;
    let mut oracle = Oracle::default();
    bank.dag.add_network::<u32>(vid(0))?;
    let place = |run: u32| 16 * run + 8;
    let mut changes: Vec<Change<u32>> = Vec::new();
    for depth in 0..4_u32 {
        for run in 1..RUNS {
            let above = (0..depth).fold(0, |addr, _| addr << 8 | place(RUNS - 1));
            let addr = (above << 8 | place(run)) << (24 - 8 * depth);
            let prefix = Prefix4::containing(addr, 8 * (depth as u8 + 1));
            changes.push((prefix, NextHop::new((depth * RUNS + run) as u16)));
        }
    }
    for (prefix, hop) in &changes {
        hop.map(|hop| oracle.insert(*prefix, hop));
    }
    bank.apply(vid(0), &changes)?;
    let key = (0..4).fold(0, |addr, _| addr << 8 | place(RUNS - 1));
    let item = bank.card.root(TableId::of::<u32>(vid(0))).unwrap_or_default();
    let hop = oracle.lookup(key).map(|(_, hop)| hop);
    let all = (0..200_000).map(|_| rtl::Lookup { item, key, hop });
    rtl.run(bank.card.words(), all)
}

/// How many tables of a kind fit.
fn counts(settings: &Settings, base: Option<&[Prefix4]>) -> Result<Section, Failure> {
    let mut section = Section::new(
        "How many tables fit",
        &[
            "tables",
            "next hops",
            "fit",
            "routes",
            "words",
            "% of 2^20",
            "bytes a route, the first",
            "each further one",
            "all",
        ],
    );
    let old: Vec<Table<u32>> = rib::OLD[..2].iter().filter_map(|file| rib::real(file)).collect();
    if let [first, second] = old.as_slice() {
        let peers = "2010, AS2497 and AS4777";
        fill(&mut section, peers, "real", [first.clone(), second.clone()].into_iter())?;
        let unlike = (0..).zip(old.iter().cycle()).map(|(net, table)| renumbered(table, net));
        fill(&mut section, &format!("{peers} in turn"), "real, numbered anew in each", unlike)?;
    }
    for rule in RULES {
        let Some(base) = base else { break };
        let unlike = (0..).map(|net| rule.table(base, net));
        fill(&mut section, "2026", &format!("{}, unlike in each", rule.name), unlike)?;
        if !settings.quick {
            let overlap = (0..).map(|net| rule.table(&rib::derive(base, Relation::Overlap, net).prefixes, 0));
            fill(
                &mut section,
                "2026, 3 % of the prefixes their own",
                &format!("{}, alike", rule.name),
                overlap,
            )?;
        }
    }
    section.note(
        "Tables are loaded one after another, 8,192 routes at a time, until one does not fit; as they are, without updates. Numbered anew: a \
         random permutation of the table's next hops (seed: the network's number). Unlike: the network's number is hashed too; alike: it is \
         not. Further ones: what they add on average.",
    );
    Ok(section)
}

fn fill(
    section: &mut Section,
    tables: &str,
    hops: &str,
    each: impl Iterator<Item = Table<u32>>,
) -> Result<(), Failure> {
    let mut bank = Bank::new()?;
    let (mut routes, mut words) = (Vec::new(), Vec::new());
    let mut more = false;
    for (net, table) in (0..).zip(each) {
        more = !bank.add(net, &table)?;
        if more {
            break;
        }
        routes.push(table.len());
        words.push(bank.card.words_used());
    }
    let (all, total) = (routes.iter().sum::<usize>(), words.last().copied().unwrap_or(0));
    let (first, first_words) = (routes.first().copied().unwrap_or(0), words.first().copied().unwrap_or(0));
    let bytes = |words: u64, routes: usize| if routes > 0 { a_route(words, routes) } else { Value::Null };
    let fit = if more { json!(routes.len()) } else { json!(format!("all {}", routes.len())) };
    section.row(vec![
        json!(tables),
        json!(hops),
        fit,
        json!(all),
        json!(total),
        percent(total),
        bytes(first_words, first),
        bytes(total - first_words, all - first),
        bytes(total, all),
    ]);
    Ok(())
}

/// The same table with its next hops permuted.
fn renumbered(table: &Table<u32>, net: u16) -> Table<u32> {
    let count = table.hops.iter().map(|hop| usize::from(hop.get()) + 1).max().unwrap_or(0);
    let mut numbers: Vec<u16> = (0..count as u16).collect();
    let mut rng = Rng::new(u64::from(net));
    for i in (1..count).rev() {
        numbers.swap(i, rng.below(i + 1));
    }
    let hops = table.hops.iter().filter_map(|hop| NextHop::new(numbers[usize::from(hop.get())])).collect();
    Table { prefixes: table.prefixes.clone(), hops }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_rule_is_that_of_the_other_benches() {
        for i in 0..1000_u32 {
            let prefix = Prefix4::containing(i.wrapping_mul(0x9e37_79b9), 8 + (i % 17) as u8);
            assert_eq!(RULES[0].hop(prefix, 3, 0), rib::derived_hop(prefix, 3));
        }
    }

    #[test]
    fn what_is_announced_again_has_another_next_hop() {
        let moved = (0..1000_u32).filter(|i| {
            let prefix = Prefix4::containing(i << 12, 20);
            RULES[3].hop(prefix, 0, 0) != RULES[3].hop(prefix, 0, 1)
        });
        assert!(moved.count() >= 998);
    }

    #[test]
    fn numbered_anew_is_the_same_partition() {
        let prefix = |i: u32| Prefix4::containing(i << 8, 24);
        let table = Table::from_routes((0..300).map(|i| (prefix(i), NextHop::new((i % 7) as u16).unwrap())));
        let other = renumbered(&table, 1);
        assert_ne!(table.hops, other.hops);
        let pairs: HashMap<u16, u16> =
            table.hops.iter().zip(&other.hops).map(|(a, b)| (a.get(), b.get())).collect();
        assert!(table.hops.iter().zip(&other.hops).all(|(a, b)| pairs[&a.get()] == b.get()));
        assert_eq!(pairs.values().collect::<std::collections::BTreeSet<_>>().len(), 7);
    }

    /// The comparison itself is compared: one wrong route must show. And what is refused leaves both sides as they were.
    #[test]
    fn a_planted_error_shows_and_a_refusal_changes_nothing() {
        let prefixes: Vec<Prefix4> = (0..20_000_u32).map(|i| Prefix4::containing(i << 13, 20)).collect();
        let table = RULES[3].table(&prefixes, 0);
        let mut bank = Bank::new().unwrap();
        assert!(bank.add(0, &table).unwrap());
        let mut right = oracle(&table);
        let all = || prefixes.iter().copied();
        assert_eq!(bank.verify(0, &right, all()).unwrap(), 40_000);
        let words = bank.card.words_used();
        bank.card = {
            let mut small = Dag36::new(words as u32 + 300);
            bank.dag.enable_deltas();
            bank.dag.take_deltas().iter().for_each(|delta| small.apply(delta).unwrap());
            small
        };
        let unlike: Vec<Change<u32>> =
            all().map(|prefix| (prefix, Some(RULES[3].hop(prefix, 0, 1)))).collect();
        assert!(matches!(bank.apply(vid(0), &unlike), Err(Failure::Card(Dag36Error::Full { .. }))));
        assert_eq!(bank.verify(0, &right, all()).unwrap(), 40_000);
        assert_eq!(bank.card.words_used(), words);
        assert!(!bank.add(1, &RULES[3].table(&prefixes, 1)).unwrap());
        assert_eq!(bank.card.words_used(), words);
        right.insert(prefixes[7], NextHop::new(65_534).unwrap());
        assert!(matches!(bank.verify(0, &right, all()), Err(Failure::Disagree(_))));
    }
}
