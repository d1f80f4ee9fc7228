//! Writes and lookups for the test benches of `rtl/tables/hue_dag36.sv` (four memories) and `hue_dag36_sram.sv` (one), made
//! by the updater and the oracle.
//!
//! `cargo run -p hue-tables --example dag36_vectors -- SEED CHANGES WORDS…` prints a line a step:
//!
//! ```text
//! w LEVEL INDEX WORD    write a word (hexadecimal)
//! l ITEM KEY HOP        look up KEY from root ITEM; HOP is the answer
//! f                     wait until every lookup so far has left (words are about to be reused)
//! ```

use std::collections::HashMap;
use std::io::Write as _;
use std::process::ExitCode;

use hue_tables::dag36_levels::{Retired, Write};
use hue_tables::{Dag, Dag36Levels, Delta, Limits, NextHop, Oracle, Prefix, Vid};

/// Networks in the table.
const NETWORKS: u16 = 5;
/// Lookups after each change.
const LOOKUPS: usize = 12;

struct Random(u64);

impl Random {
    /// xorshift64*.
    fn next(&mut self) -> u32 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32) as u32
    }

    fn below(&mut self, end: u32) -> u32 {
        self.next() % end
    }

    /// Addresses that crowd in few places at every depth, so that nodes of all forms come up.
    fn address(&mut self) -> u32 {
        let dense = |random: &mut Self| match random.below(3) {
            0 => random.below(4),
            1 => random.below(40) * 6,
            _ => random.below(256),
        };
        (0..4).fold(0, |address, _| address << 8 | dense(self))
    }
}

fn main() -> ExitCode {
    let numbers: Vec<u64> = std::env::args().skip(1).filter_map(|text| text.parse().ok()).collect();
    let [seed, changes, words @ ..] = &numbers[..] else {
        eprintln!("usage: dag36_vectors SEED CHANGES WORDS [WORDS WORDS WORDS]");
        return ExitCode::from(2);
    };
    match run(*seed, *changes, words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("dag36_vectors: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(seed: u64, changes: u64, words: &[u64]) -> Result<(), Box<dyn std::error::Error>> {
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    let mut random = Random(seed | 1);
    let mut dag = Dag::<u32>::new(Limits::default())?;
    dag.enable_deltas();
    let vids: Vec<_> = (1..=NETWORKS).filter_map(Vid::new).collect();
    let mut oracles: HashMap<Vid, Oracle<u32>> = HashMap::new();
    for vid in &vids {
        dag.add_network(*vid)?;
        oracles.entry(*vid).or_default();
    }
    let words: Vec<u32> = words.iter().map(|words| *words as u32).collect();
    let mut levels = match words[..] {
        [words] => Dag36Levels::flat(words, 4),
        _ => Dag36Levels::new(&words),
    };
    let mut retired = Retired::default();
    let mut recent: Vec<u32> = vec![0];
    for change in 0..changes {
        let vid = vids[random.below(u32::from(NETWORKS)) as usize];
        let oracle = oracles.entry(vid).or_default();
        let prefix = Prefix::containing(random.address(), random.below(33) as u8);
        // Few next hops at first, so that byte items occur, then more.
        let hops = if change < changes / 2 { 200 } else { 2_000 };
        let hop = NextHop::new(random.below(hops) as u16).filter(|_| random.below(3) > 0);
        match hop {
            Some(hop) => _ = dag.insert(vid, prefix, hop)?,
            None => _ = dag.remove(vid, prefix)?,
        }
        let mut writes = Vec::new();
        let deltas: Vec<Delta> = dag.take_deltas();
        let fits = deltas.iter().all(|delta| levels.apply(delta, &mut writes).is_ok());
        if !fits {
            return Err("the levels are too small for so many changes".into());
        }
        match hop {
            Some(hop) => _ = oracle.insert(prefix, hop),
            None => _ = oracle.remove(prefix),
        }
        for write in writes {
            if let Write::Word { level, index, word } = write {
                writeln!(out, "w {level} {index:x} {word:x}")?;
            }
        }
        recent.extend([prefix.addr(), prefix.last(), prefix.last().wrapping_add(1)]);
        for _ in 0..LOOKUPS {
            let vid = vids[random.below(u32::from(NETWORKS)) as usize];
            let key = match random.below(4) {
                0 => random.address(),
                _ => recent[random.below(recent.len() as u32) as usize],
            };
            let Some(item) = levels.root(vid) else { continue };
            let expected = oracles.get(&vid).and_then(|oracle| oracle.lookup(key));
            let hop = expected.map_or(u16::MAX, |(_, hop)| hop.get());
            writeln!(out, "l {item:x} {key:x} {hop:x}")?;
        }
        if random.below(8) == 0 {
            writeln!(out, "f")?;
            levels.reclaim(std::mem::take(&mut retired));
            retired = levels.take_retired();
        }
    }
    out.flush()?;
    Ok(())
}
