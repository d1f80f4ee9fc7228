//! Lookups in the card's logic: `hue_dag36_sram`, simulated by Verilator, with the words of an image in its two banks.
//!
//! Flow: words, root items, keys and right answers → the bench `rtl/tests/hue_dag36_sram` → clocks and words a lookup. Lookups
//! come as fast as the logic takes them; each answer is compared there. Clocks are exact; a run of the same input gives the
//! same figures. Units: clock cycles.

use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use hue_tables::NextHop;

use crate::Failure;

/// Clock of the image `sram`, the papers' card, MHz.
pub const CLOCK_MHZ: f64 = 62.5;

/// A lookup: root item of the network, address, right answer.
pub struct Lookup {
    pub item: u64,
    pub key: u32,
    pub hop: Option<NextHop>,
}

/// The measured rates.
pub struct Rate {
    pub lookups: u64,
    /// Clocks between two lookups.
    pub clocks: f64,
    /// Words read for a lookup.
    pub words: f64,
    /// Clocks from root item to answer, mean and longest.
    pub latency: f64,
    pub latency_max: u64,
}

impl Rate {
    /// Lookups a second at [`CLOCK_MHZ`], millions.
    pub fn millions(&self) -> f64 {
        CLOCK_MHZ / self.clocks
    }
}

/// The logic, ready to run.
pub struct Rtl(PathBuf);

impl Rtl {
    /// Builds it; `None`, with a message on standard error, if that is not possible.
    pub fn new() -> Result<Option<Self>, Failure> {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
        let script = format!("{root}/scripts/rtl-test");
        let built = Command::new(script).args(["--build", "hue_dag36_sram"]).current_dir(root).output()?;
        let text = String::from_utf8_lossy(&built.stdout).trim().to_owned();
        if !built.status.success() {
            eprintln!("skipped in RTL: {text}");
            return Ok(None);
        }
        Ok(Some(Self(text.into())))
    }

    /// Writes an image's words to the banks and makes the lookups.
    ///
    /// # Errors
    /// `Disagree` when an answer is wrong.
    pub fn run(&self, words: &[u64], lookups: impl Iterator<Item = Lookup>) -> Result<Rate, Failure> {
        let mut bench = Command::new(&self.0)
            .args(["1", "lookups", "rate"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        if let Some(input) = bench.stdin.take() {
            let mut input = BufWriter::with_capacity(1 << 16, input);
            let feed = || {
                for (index, word) in words.iter().enumerate() {
                    writeln!(input, "w 0 {index:x} {word:x}")?;
                }
                for Lookup { item, key, hop } in lookups {
                    writeln!(input, "l {item:x} {key:x} {:x}", NextHop::word(hop))?;
                }
                input.flush()
            };
            // A bench that ends early says why.
            let _ = feed();
        }
        let done = bench.wait_with_output()?;
        let text = String::from_utf8_lossy(&done.stdout);
        let numbers: Option<Vec<f64>> = text.lines().find(|line| line.starts_with("rate: ")).map(|line| {
            let number = |word: &str| word.trim_end_matches([',', ';']).parse().ok();
            line.split(' ').filter_map(number).collect()
        });
        match numbers.as_deref() {
            Some([lookups, clocks, words, latency, latency_max, _]) if done.status.success() => Ok(Rate {
                lookups: *lookups as u64,
                clocks: *clocks,
                words: *words,
                latency: *latency,
                latency_max: *latency_max as u64,
            }),
            _ => Err(Failure::Disagree(format!("the card's logic: {text}"))),
        }
    }
}
