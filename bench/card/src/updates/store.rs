//! One store of tables, and two readers: software's lookups, and a card that follows the store.
//!
//! Flow: the day's changes → store → software sees them at once; deltas → the card's driver → registers that answer at
//! once. Meanwhile a reader on the other core makes lookups as fast as it can.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use hue_card::{Card, Images, Registers};
use hue_substrate::SubstrateError;
use hue_tables::dag36::words_of;
use hue_tables::{Change, Dag, Limits, NextHop, Oracle, Reader, Vid};
use serde_json::json;

use super::day::Day;
use super::ports::{Recorded, program, routes_from, vid};
use super::{IMAGE, RULE, SRAM_WORDS, WAYS, Way, skipped, text, words_used};
use crate::report::{Section, round};
use crate::rng::Rng;
use crate::{Settings, machine};

/// Updates of one way.
const UPDATES: usize = 200_000;
/// Keys that are looked up repeatedly.
const KEYS: usize = 1 << 20;
/// Keys of a batch.
const BATCH: usize = 256;
/// Nodes of a table that come at a time.
const NODES: usize = 512;

/// Rates of one way, per second.
struct Seen {
    store: f64,
    card: f64,
    words: f64,
    lookups: f64,
}

/// Measures.
///
/// # Errors
/// A wrong result: first those of lookups by the card and by software.
pub fn run(images: &Images, settings: &Settings, title: &str) -> Result<Section, String> {
    let columns = [
        "what",
        "updates",
        "store, M updates/s of processor time",
        "the same without a card",
        "the card's driver, M updates/s of processor time",
        "words an update",
        "software looks up, M/s",
        "the same without updates",
    ];
    let Some(day) = Day::read() else { return Ok(skipped(title, &columns)) };
    let mut section = Section::new(title, &columns);
    let updates = if settings.quick { UPDATES / 10 } else { UPDATES };
    let mut words = 0;
    for way in WAYS.into_iter().filter(|way| !(way.at_once && way.batch > 1)) {
        let changes = day.changes(way.fresh, 0..updates);
        let mut alone = store(&day)?;
        let quiet = looking_up(&mut alone, |_| Ok(()))?.1;
        let used = machine::thread_seconds();
        changes.chunks(way.batch).try_for_each(|changes| alone.apply(vid(1), changes)).map_err(text)?;
        let alone = updates as f64 / (machine::thread_seconds() - used);
        let (mut store, mut card) = (store(&day)?, card(images)?);
        store.enable_weighed_deltas(words_of);
        follow(&mut card, &mut store)?;
        while !card.bring_table(vid(1), NODES).map_err(text)? {}
        card.steer(vid(1), false).map_err(text)?;
        let seen = both(way, &changes, &mut store, &mut card)?;
        agree(&day, way, updates, &mut store, &card)?;
        words = words_used(&card);
        section.row(vec![
            json!(way.name),
            json!(updates),
            round(seen.store / 1e6, 3),
            round(alone / 1e6, 3),
            round(seen.card / 1e6, 3),
            round(seen.words, 2),
            round(seen.lookups / 1e6, 1),
            round(quiet / 1e6, 1),
        ]);
    }
    section.note(RULE);
    section.note(format!(
        "One store (`Dag`), which software reads and the card's driver follows; the card's registers answer at once. Both are done by one \
         thread here, one after the other; in the daemon each by its own. Meanwhile another thread looks up destinations that are uniform \
         over all addresses, {BATCH} at once. In the end every prefix of the table is asked of both, and of the oracle: all answers are \
         the same. {:.1} % of 2^20 words in use after the last.",
        words as f64 / SRAM_WORDS * 100.0
    ));
    Ok(section)
}

/// The table before the day.
fn store(day: &Day) -> Result<Dag, String> {
    let mut dag = Dag::new(Limits::default()).map_err(text)?;
    dag.add_network::<u32>(vid(1)).map_err(text)?;
    let all: Vec<Change<u32>> =
        routes_from(&day.table()).into_iter().map(|(prefix, hop)| (prefix, Some(hop))).collect();
    dag.apply(vid(1), &all).map_err(text)?;
    Ok(dag)
}

/// A card that follows a store.
fn card(images: &Images) -> Result<Card<Recorded>, String> {
    let mut card = Card::new(Recorded::of(images, IMAGE)?).map_err(text)?;
    card.follow_store().map_err(text)?;
    card.load_in_software(&[program(1, Vec::new())]).map_err(text)?;
    Ok(card)
}

fn follow<R: Registers>(card: &mut Card<R>, store: &mut Dag) -> Result<(), String> {
    let lost: Vec<(Vid, SubstrateError)> = card.follow(&store.take_deltas()).map_err(text)?;
    lost.into_iter().next().map_or(Ok(()), |(_, error)| Err(error.to_string()))
}

/// Changes the store and its followers while software makes lookups.
fn both(
    way: Way,
    changes: &[Change<u32>],
    store: &mut Dag,
    card: &mut Card<Recorded>,
) -> Result<Seen, String> {
    let before = card.device().registers().counts;
    let (times, lookups) = looking_up(store, |store| {
        let (mut of_store, mut of_card) = (0.0, 0.0);
        for changes in changes.chunks(way.batch) {
            let began = machine::thread_seconds();
            store.apply(vid(1), changes).map_err(text)?;
            let done = machine::thread_seconds();
            follow(card, store)?;
            of_store += done - began;
            of_card += machine::thread_seconds() - done;
        }
        Ok((of_store, of_card))
    })?;
    let counts = card.device().registers().counts - before;
    let count = changes.len() as f64;
    Ok(Seen { store: count / times.0, card: count / times.1, words: counts.words as f64 / count, lookups })
}

/// Runs `work` while another thread makes lookups, for at least a fifth of a second. Returns the lookups a second.
fn looking_up<T>(
    store: &mut Dag,
    work: impl FnOnce(&mut Dag) -> Result<T, String>,
) -> Result<(T, f64), String> {
    let mut reader = store.reader().map_err(text)?;
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let looks = scope.spawn(|| look_up(&mut reader, &stop));
        let began = Instant::now();
        let done = work(store);
        std::thread::sleep(std::time::Duration::from_millis(200).saturating_sub(began.elapsed()));
        stop.store(true, Ordering::Relaxed);
        let rate = looks.join().map_err(|_| "the reader broke".to_owned())?;
        done.map(|done| (done, rate))
    })
}

fn look_up(reader: &mut Reader, stop: &AtomicBool) -> f64 {
    let mut rng = Rng::new(7);
    let keys: Vec<u32> = (0..KEYS).map(|_| rng.bits() as u32).collect();
    let vids = [vid(1); BATCH];
    let mut out = [0; BATCH];
    let (began, mut count) = (Instant::now(), 0);
    while !stop.load(Ordering::Relaxed) {
        for keys in keys.chunks_exact(BATCH).take(64) {
            reader.pin().lookup_batch(&vids, keys, &mut out);
            std::hint::black_box(&out);
            count += BATCH;
        }
    }
    count as f64 / began.elapsed().as_secs_f64()
}

/// Whether the card, software and the oracle agree on every prefix.
fn agree(day: &Day, way: Way, updates: usize, store: &mut Dag, card: &Card<Recorded>) -> Result<(), String> {
    let mut oracle = Oracle::default();
    let table = day.table_at(way.fresh, updates);
    table.iter().for_each(|(prefix, hop)| _ = oracle.insert(*prefix, *hop));
    let mut reader = store.reader().map_err(text)?;
    for key in table.keys().flat_map(|prefix| [prefix.addr(), prefix.last(), prefix.last().wrapping_add(1)]) {
        let expected: Option<NextHop> = oracle.lookup(key).map(|(_, hop)| hop);
        let (soft, hard) = (reader.pin().lookup(vid(1), key), card.answer(vid(1), key));
        if (soft, hard) != (expected, expected) {
            return Err(format!("{key:08x}: software {soft:?}, card {hard:?}, oracle {expected:?}"));
        }
    }
    Ok(())
}
