//! Writes and lookups for the test bench of `rtl/tables/hue_dir.sv`, made by [`Dir`] and checked by the oracle.
//!
//! `cargo run -p hue-tables --example dir_vectors -- SEED CHANGES` prints a line a step, numbers in hexadecimal:
//!
//! ```text
//! 1 INDEX WORD                    write a word of bank 1
//! 2 INDEX WORD                    write a word of bank 2
//! r ROW VID PREFIX LENGTH INDEX   write a row of the Conflict CAM; PREFIX is 19 bits
//! u ROW                           the row is unused
//! d                               wait until every lookup so far has been answered
//! l VID KEY OLD NEW               look up; the answer is OLD or NEW
//! m VID KEY OLD NEW               likewise, or no route
//! b, e                            lookups between these come as fast as they can
//! ```

use std::collections::HashMap;
use std::io::Write as _;
use std::process::ExitCode;

use hue_tables::dir::words::{DirRow, DirWrite};
use hue_tables::dir::{Dir, DirLimits};
use hue_tables::{Change, NextHop, Oracle, Prefix4, Vid};

/// Networks in the table.
const NETWORKS: u16 = 6;
/// Lookups before a change, and after it.
const LOOKUPS: usize = 24;
/// Words written between two lookups of a change, at most.
const STRIDE: u32 = 24;
/// Lookups without a pause, at the end.
const BURST: usize = 20_000;

type Error = Box<dyn std::error::Error>;
type Oracles = HashMap<Vid, Oracle<u32>>;

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

    fn vid(&mut self) -> Option<Vid> {
        Vid::new(1 + self.below(u32::from(NETWORKS)) as u16)
    }

    /// Lengths as routers have them, most of them /16 to /24; slots that networks have in common, and their own.
    fn prefix(&mut self, vid: Vid) -> Prefix4 {
        let len = match self.below(16) {
            0 => 8 + self.below(6),
            1..4 => 14 + self.below(5),
            4..8 => 19,
            8..13 => 20 + self.below(5),
            _ => 25 + self.below(8),
        };
        let net = if self.below(8) == 0 { 10 } else { 20 + u32::from(vid.get()) };
        let address = net << 24 | self.below(8) << 13 | self.below(8) << 10 | self.below(1 << 10);
        Prefix4::containing(address, len as u8)
    }
}

fn main() -> ExitCode {
    let numbers: Vec<u64> = std::env::args().skip(1).filter_map(|text| text.parse().ok()).collect();
    let [seed, changes] = numbers[..] else {
        eprintln!("usage: dir_vectors SEED CHANGES");
        return ExitCode::from(2);
    };
    match run(seed, changes) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("dir_vectors: {error}");
            ExitCode::FAILURE
        }
    }
}

/// A lookup that is going to be printed: the answer before a change, and where to print.
struct Asked {
    vid: Vid,
    key: u32,
    old: u16,
}

fn answer(oracles: &Oracles, vid: Vid, key: u32) -> u16 {
    NextHop::word(oracles.get(&vid).and_then(|oracle| oracle.lookup(key)).map(|(_, hop)| hop))
}

/// What both say.
fn checked(dir: &Dir, oracles: &Oracles, vid: Vid, key: u32) -> Result<u16, Error> {
    let (found, right) = (dir.lookup(vid, key).word, answer(oracles, vid, key));
    if found == right {
        Ok(found)
    } else {
        Err(format!("network {vid}, {key:#x}: {found}, not {right}").into())
    }
}

fn run(seed: u64, changes: u64) -> Result<(), Error> {
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let limits = DirLimits::default();
    let mut dir = Dir::new(limits);
    dir.record_writes();
    let mut oracles = Oracles::new();
    for vid in (1..=NETWORKS).filter_map(Vid::new) {
        dir.add_network(vid)?;
        oracles.entry(vid).or_default();
    }
    let mut routes: Vec<(Vid, Prefix4)> = Vec::new();
    let mut recent: Vec<u32> = vec![0];
    let mut refused = 0;
    for _ in 0..changes {
        let Some(vid) = random.vid() else { continue };
        let mut change: Vec<Change<u32>> = Vec::new();
        for _ in 0..1 + random.below(3) {
            let known = (!routes.is_empty()).then(|| random.below(routes.len() as u32) as usize);
            let old =
                known.and_then(|at| routes.get(at)).filter(|(of, _)| *of == vid).map(|(_, prefix)| *prefix);
            match (random.below(5), old) {
                (0..3, Some(prefix)) => change.push((prefix, None)),
                _ => change.push((random.prefix(vid), NextHop::new(random.below(0xffff) as u16))),
            }
        }
        recent.extend(change.iter().flat_map(|(at, _)| {
            [at.addr(), at.last(), at.addr() + random.below(1 << 13), at.last().wrapping_add(1)]
        }));
        let asked = |random: &mut Random, oracles: &Oracles| -> Option<Asked> {
            let at = random.below(recent.len() as u32) as usize;
            // The newest ones, which this change is about, more than others.
            let at = if random.below(2) == 0 { recent.len() - 1 - at % (4 * change.len()) } else { at };
            let (vid, key) = (if random.below(2) == 0 { vid } else { random.vid()? }, *recent.get(at)?);
            Some(Asked { vid, key, old: answer(oracles, vid, key) })
        };
        let before: Vec<Asked> = (0..LOOKUPS).filter_map(|_| asked(&mut random, &oracles)).collect();
        let interruptions = dir.interruptions();
        if dir.apply(vid, &change).is_err() {
            refused += 1;
            continue;
        }
        let kind = if dir.interruptions() > interruptions { 'm' } else { 'l' };
        let writes = dir.take_writes();
        let mut between: Vec<Asked> = Vec::new();
        let stride = 1 + random.below(STRIDE);
        for _ in 0..writes.len() as u32 / stride {
            between.extend(asked(&mut random, &oracles));
        }
        for (prefix, hop) in &change {
            let oracle = oracles.entry(vid).or_default();
            match hop {
                Some(hop) => {
                    oracle.insert(*prefix, *hop);
                    routes.push((vid, *prefix));
                }
                None => {
                    oracle.remove(*prefix);
                    routes.retain(|route| *route != (vid, *prefix));
                }
            }
        }
        let line = |out: &mut dyn std::io::Write, kind: char, asked: &Asked| -> Result<(), Error> {
            let new = checked(&dir, &oracles, asked.vid, asked.key)?;
            Ok(writeln!(out, "{kind} {:x} {:x} {:x} {new:x}", asked.vid.get(), asked.key, asked.old)?)
        };
        for asked in &before {
            line(&mut out, kind, asked)?;
        }
        let mut between = between.iter();
        for (at, write) in writes.iter().enumerate() {
            print(&mut out, write)?;
            if (at as u32).is_multiple_of(stride) {
                between.next().map_or(Ok(()), |asked| line(&mut out, kind, asked))?;
            }
        }
        writeln!(out, "d")?;
        for _ in 0..LOOKUPS {
            asked(&mut random, &oracles).map_or(Ok(()), |asked| line(&mut out, 'l', &asked))?;
        }
        writeln!(out, "d")?;
    }
    writeln!(out, "b")?;
    for _ in 0..BURST {
        let at = random.below(recent.len() as u32) as usize;
        let (Some(vid), Some(key)) = (random.vid(), recent.get(at)) else { continue };
        let word = checked(&dir, &oracles, vid, *key)?;
        writeln!(out, "l {:x} {key:x} {word:x} {word:x}", vid.get())?;
    }
    writeln!(out, "e")?;
    out.flush()?;
    let usage = dir.usage();
    eprintln!(
        "dir_vectors: {changes} changes, {refused} refused, {} without room beside; at the end {} sets, {} rows",
        dir.interruptions(),
        usage.sets,
        usage.cam_rows
    );
    Ok(())
}

fn print(out: &mut dyn std::io::Write, write: &DirWrite) -> std::io::Result<()> {
    match write {
        DirWrite::Bank1 { index, word } => writeln!(out, "1 {index:x} {word:x}"),
        DirWrite::Bank2 { index, word } => writeln!(out, "2 {index:x} {word:x}"),
        DirWrite::Row { row, to: Some(DirRow { vid, prefix, index }) } => {
            writeln!(out, "r {row:x} {:x} {:x} {:x} {index:x}", vid.get(), prefix.addr() >> 13, prefix.len())
        }
        DirWrite::Row { row, to: None } => writeln!(out, "u {row:x}"),
        DirWrite::Drain => writeln!(out, "d"),
    }
}
