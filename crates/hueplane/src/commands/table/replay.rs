//! `hueplane table replay`: applies route changes to a table, with counts, timing and optional checks.

use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};

use hue_routing::{AnyPrefix, Update, load_updates};
use hue_tables::{Change, Key, NextHop, Oracle, Prefix};
use serde::Serialize;

use super::amount::Amount;
use super::on_card::Family;
use super::stores::{Refused, Store, Stores, full};
use super::{Network, load, options, passed_over, skipped};
use crate::cli::Replay;
use crate::failure::Failure;
use crate::print::{grouped, result};
use crate::progress;

/// Changes between two updates of clock and progress bar.
const SEGMENT_UPDATES: usize = 65_536;

/// Addresses compared at each moment of `--verify`, half of them near changed prefixes.
const CHECKED_ADDRESSES: u64 = 2000;

/// The result of the changes.
#[derive(Serialize, Default)]
struct Report<'a> {
    layout: &'static str,
    encoding: &'static str,
    network: &'a str,
    /// Number of changes applied, of all kinds.
    applied: u64,
    announced: u64,
    withdrawn: u64,
    /// Number of withdrawals of routes that did not exist.
    unknown_withdrawals: u64,
    routes_before: u64,
    routes_after: u64,
    bytes_before: Amount,
    bytes_after: Amount,
    #[serde(skip_serializing_if = "Option::is_none")]
    skipped: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    passed_over: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    verified: Option<Verified>,
    overflow: Option<String>,
}

/// Number of comparisons by `--verify`.
#[derive(Serialize, Clone, Copy, Default)]
struct Verified {
    seed: u64,
    moments: u64,
    lookups: u64,
}

/// Runs the command.
pub fn run(args: &Replay) -> Result<(), Failure> {
    let tables = &args.tables;
    let mut networks = load(tables)?;
    let (index, path) = target(&args.updates, &networks)?;
    let network =
        networks.get_mut(index).ok_or_else(|| Failure::Usage("--routes: expected a network".into()))?;
    let spinner = progress::spinner(&format!("reading {}", path.display()));
    let updates = load_updates(&path, &mut network.routes.hops, &options(tables))?;
    spinner.finish_and_clear();
    if updates.skipped > 0 {
        eprintln!("hueplane: {}: {} invalid lines skipped", path.display(), grouped(updates.skipped));
    }
    let vid = network.vid;
    let has4 = updates.list.iter().any(|update| matches!(update.prefix, AnyPrefix::V4(_)));
    let has6 = updates.list.iter().any(|update| matches!(update.prefix, AnyPrefix::V6(_)));
    let mut stores = Stores::build(tables, &networks, (has4.then_some(vid), has6.then_some(vid)))?;
    let network = networks.get(index).ok_or_else(|| Failure::Usage("--routes: expected a network".into()))?;
    let mut report = Report {
        layout: tables.layout_name(),
        encoding: tables.words(),
        network: &network.name,
        routes_before: stores.account(vid)?.0,
        bytes_before: stores.total(),
        skipped: skipped(tables, &networks).map(|routes| routes + updates.skipped),
        passed_over: passed_over(&networks),
        overflow: stores.overflow.clone(),
        ..Report::default()
    };
    let mut replayer = Replayer::new(args, network);
    let outcome = if report.overflow.is_none() {
        replayer.all(&mut stores, &updates.list, &mut report)
    } else {
        Ok(())
    };
    report.routes_after = stores.account(vid)?.0;
    report.bytes_after = stores.total();
    report.verified = replayer.checker.as_ref().map(|checker| checker.done);
    result(tables.output.format, &report, || table(&report))?;
    let seconds = replayer.spent.as_secs_f64();
    if seconds > 0.0 {
        let rate = (report.applied as f64 / seconds) as u64;
        eprintln!(
            "hueplane: {} changes in {seconds:.2} s: {} per second",
            grouped(report.applied),
            grouped(rate)
        );
    }
    outcome?;
    report.overflow.map_or(Ok(()), |text| Err(Failure::Full(text)))
}

/// The network that the updates apply to, and their file: `NAME=FILE` if NAME is a network, otherwise a file.
fn target(updates: &str, networks: &[Network]) -> Result<(usize, PathBuf), Failure> {
    if let Some((name, file)) = updates.split_once('=') {
        if let Some(index) = networks.iter().position(|network| network.name == name) {
            return Ok((index, file.into()));
        }
        if !PathBuf::from(updates).exists() {
            let known: Vec<&str> = networks.iter().map(|network| network.name.as_str()).collect();
            return Err(Failure::Usage(format!(
                "--updates {updates}: found network '{name}', expected one of: {}",
                known.join(", ")
            )));
        }
    }
    Ok((0, updates.into()))
}

/// Applies changes in segments, and checks between them.
struct Replayer<'a> {
    network: &'a Network,
    batch: usize,
    known4: Oracle<u32>,
    known6: Oracle<u128>,
    checker: Option<Checker>,
    /// Time spent in the table.
    spent: Duration,
}

impl<'a> Replayer<'a> {
    fn new(args: &Replay, network: &'a Network) -> Self {
        let mut known4 = Oracle::default();
        let mut known6 = Oracle::default();
        for (prefix, hop) in &network.routes.v4 {
            known4.insert(*prefix, *hop);
        }
        for (prefix, hop) in &network.routes.v6 {
            known6.insert(*prefix, *hop);
        }
        let checker = args.verify.map(|moments| {
            let clock = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
            let seed = args.seed.unwrap_or(clock.as_nanos() as u64);
            eprintln!("hueplane: --verify {moments} --seed {seed}");
            Checker { state: seed, moments, done: Verified { seed, ..Verified::default() } }
        });
        let batch = args.batch as usize;
        Self { network, batch, known4, known6, checker, spent: Duration::ZERO }
    }

    fn all(
        &mut self,
        stores: &mut Stores,
        updates: &[Update],
        report: &mut Report<'_>,
    ) -> Result<(), Failure> {
        let bar = progress::bar("replaying", updates.len() as u64);
        let moments = self.checker.as_mut().map(|checker| checker.choose(updates.len())).unwrap_or_default();
        let mut moments = moments.into_iter().peekable();
        let mut at = 0;
        loop {
            while moments.next_if(|moment| *moment <= at).is_some() {
                self.check(stores, updates.get(at.saturating_sub(SEGMENT_UPDATES)..at).unwrap_or_default())?;
            }
            if at >= updates.len() {
                break;
            }
            let end =
                moments.peek().copied().unwrap_or(usize::MAX).min(at + SEGMENT_UPDATES).min(updates.len());
            let segment = updates.get(at..end).unwrap_or_default();
            let full = self.segment(stores, segment, report)?;
            bar.inc(segment.len() as u64);
            if full.is_some() {
                report.overflow = full;
                break;
            }
            at = end;
        }
        bar.finish_and_clear();
        Ok(())
    }

    /// Applies one segment. Returns `Some` if the table is full.
    fn segment(
        &mut self,
        stores: &mut Stores,
        updates: &[Update],
        report: &mut Report<'_>,
    ) -> Result<Option<String>, Failure> {
        let mut changes4: Vec<Change<u32>> = Vec::new();
        let mut changes6: Vec<Change<u128>> = Vec::new();
        for update in updates {
            match update.prefix {
                AnyPrefix::V4(prefix) => changes4.push((prefix, update.hop)),
                AnyPrefix::V6(prefix) => changes6.push((prefix, update.hop)),
            }
        }
        let full = apply(
            stores.v4.as_mut(),
            &changes4,
            &mut self.known4,
            self.network,
            self.batch,
            &mut self.spent,
            report,
        )?;
        if full.is_some() {
            return Ok(full);
        }
        apply(
            stores.v6.as_mut(),
            &changes6,
            &mut self.known6,
            self.network,
            self.batch,
            &mut self.spent,
            report,
        )
    }

    fn check(&mut self, stores: &Stores, recent: &[Update]) -> Result<(), Failure> {
        let Some(checker) = &mut self.checker else { return Ok(()) };
        let recent4: Vec<Prefix<u32>> = recent
            .iter()
            .filter_map(|update| if let AnyPrefix::V4(prefix) = update.prefix { Some(prefix) } else { None })
            .collect();
        let recent6: Vec<Prefix<u128>> = recent
            .iter()
            .filter_map(|update| if let AnyPrefix::V6(prefix) = update.prefix { Some(prefix) } else { None })
            .collect();
        checker.done.moments += 1;
        checker.compare(stores.v4.as_ref(), &self.known4, &recent4, self.network)?;
        checker.compare(stores.v6.as_ref(), &self.known6, &recent6, self.network)
    }
}

/// Applies changes of one address family, `batch` at a time, to the table and to the oracle.
fn apply<K: Family>(
    store: Option<&mut Store<K>>,
    changes: &[Change<K>],
    known: &mut Oracle<K>,
    network: &Network,
    batch: usize,
    spent: &mut Duration,
    report: &mut Report<'_>,
) -> Result<Option<String>, Failure> {
    let Some(store) = store else { return Ok(None) };
    let mut applied = 0;
    let start = Instant::now();
    let mut result = Ok(());
    for part in changes.chunks(batch) {
        result = store.apply(network.vid, part);
        if result.is_err() {
            break;
        }
        applied += part.len();
    }
    *spent += start.elapsed();
    for (prefix, hop) in changes.iter().take(applied) {
        report.applied += 1;
        match hop {
            Some(hop) => {
                report.announced += 1;
                known.insert(*prefix, *hop);
            }
            None => {
                report.withdrawn += 1;
                report.unknown_withdrawals += u64::from(known.remove(*prefix).is_none());
            }
        }
    }
    match result {
        Ok(()) => Ok(None),
        Err(Refused::Full(limit)) => {
            let changes = report.applied;
            Ok(Some(full(&network.name, &limit, &format!("after {changes} changes, {} routes", known.len()))))
        }
        Err(Refused::Other(error)) => Err(error),
    }
}

/// Random moments and addresses from a seed.
struct Checker {
    state: u64,
    moments: u32,
    done: Verified,
}

impl Checker {
    /// SplitMix64 (Steele, Lea, Flood 2014).
    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Moments in ascending order, as counts of applied changes; the last one is always the end.
    fn choose(&mut self, updates: usize) -> Vec<usize> {
        let mut moments: Vec<usize> = (1..self.moments.max(1))
            .map(|_| (self.next() % (updates as u64 + 1)) as usize)
            .chain([updates])
            .collect();
        moments.sort_unstable();
        moments
    }

    /// A random address; half of them are inside a recently changed prefix.
    fn key<K: Key>(&mut self, recent: &[Prefix<K>]) -> K {
        let random = u128::from(self.next()) << 64 | u128::from(self.next());
        let near = (self.next() % (2 * recent.len().max(1) as u64)) as usize;
        match recent.get(near) {
            Some(prefix) => {
                let (first, last) = (prefix.addr().to_bits(), prefix.last().to_bits());
                K::from_bits(first | (random & (first ^ last)))
            }
            None => K::from_bits(random),
        }
    }

    fn compare<K: Family>(
        &mut self,
        store: Option<&Store<K>>,
        known: &Oracle<K>,
        recent: &[Prefix<K>],
        network: &Network,
    ) -> Result<(), Failure> {
        let Some(store) = store else { return Ok(()) };
        let mut keys = Vec::new();
        while keys.len() < CHECKED_ADDRESSES as usize {
            let key = self.key(recent);
            keys.extend(store.can_ask(key).then_some(key));
        }
        let words = store.lookup(&vec![network.vid; keys.len()], &keys)?;
        self.done.lookups += CHECKED_ADDRESSES;
        for (key, (word, _)) in keys.into_iter().zip(words) {
            let table = NextHop::new(word);
            let naive = known.lookup(key).map(|(_, hop)| hop);
            if table != naive {
                let name = |hop: NextHop| network.routes.hops.name(hop).to_owned();
                return Err(Failure::Broken(format!(
                    "network '{}', {}: the table answers {:?}, a linear search {:?} (seed {}); please report this bug",
                    network.name,
                    key.to_ip(),
                    table.map(name),
                    naive.map(name),
                    self.done.seed
                )));
            }
        }
        Ok(())
    }
}

fn table(report: &Report<'_>) -> String {
    let mut out = format!(
        "network {}: {} changes applied: {} announced, {} withdrawn ({} of them unknown)\n\
         routes {} -> {}\nbytes  {} -> {} ({})\n",
        report.network,
        grouped(report.applied),
        grouped(report.announced),
        grouped(report.withdrawn),
        grouped(report.unknown_withdrawals),
        grouped(report.routes_before),
        grouped(report.routes_after),
        report.bytes_before.text(),
        report.bytes_after.text(),
        report.encoding,
    );
    if let Some(verified) = report.verified {
        let (moments, lookups) = (grouped(verified.moments), grouped(verified.lookups));
        out.push_str(&format!("verified at {moments} moments with {lookups} lookups\n"));
    }
    if let Some(overflow) = &report.overflow {
        out.push_str(&format!("{overflow}\n"));
    }
    out
}
