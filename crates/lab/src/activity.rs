//! Switching activity of the card's logic by block: how often its signals change.
//!
//! Flow: twin → waveform of all signals → changes of bits, added up by block → [`Activity`]. Dynamic power of CMOS
//! logic is proportional to it at a given voltage and clock, with weights that depend on the part (the capacitance of
//! each net). So activities compare states of one block, and only roughly one block with another. The waveform has
//! the registers and nets of the RTL and the output registers of memories, but neither the inside of memories nor the
//! clock tree.
//! Source: Unnikrishnan (FPGA 2010), §3.6 and table 2, which estimate the power that a clock gate saves.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use fst_reader::{FstFilter, FstHierarchyEntry, FstReader, FstSignalValue};
use hue_card::{Card, Twin};

use crate::error::LabError;
use crate::run::{Experiment, Wave, run};

/// Clock cycles before the waveform begins: packets reach all blocks by then.
const LEAD_CYCLES: u64 = 1000;

/// Switching activity: changes of bits in a number of clock cycles.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Activity {
    /// Changes by block, in the order of names.
    pub blocks: BTreeMap<String, u64>,
    /// Clock cycles.
    pub cycles: u64,
}

impl Activity {
    /// Changes of all blocks.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.blocks.values().sum()
    }

    /// Changes of a block; 0 when it has none.
    #[must_use]
    pub fn block(&self, name: &str) -> u64 {
        self.blocks.get(name).copied().unwrap_or_default()
    }
}

/// The activity of a fresh card in `cycles` clock cycles of an experiment, whose duration and waveform are set here.
/// Without streams the card is idle.
///
/// # Errors
/// All errors of [`LabError`].
pub fn measure(
    mut card: Card<Twin>,
    ports: &[String],
    experiment: &Experiment,
    cycles: u64,
) -> Result<Activity, LabError> {
    let folder = tempfile::tempdir().map_err(|error| LabError::Wave(error.to_string()))?;
    let file = folder.path().join("activity.fst");
    if experiment.streams.is_empty() {
        let twin = card.twin();
        let start = twin.cycles() + LEAD_CYCLES;
        twin.set_wave(&file, start, start + cycles)?;
        twin.run_exactly(LEAD_CYCLES + cycles + 1);
        twin.end_wave();
    } else {
        let clock_khz = u64::from(card.description().clock_khz);
        let duration_us = Some(((LEAD_CYCLES + cycles) * 1000).div_ceil(clock_khz));
        let wave = Some(Wave { file: file.clone(), cycles: (LEAD_CYCLES, LEAD_CYCLES + cycles) });
        let experiment = Experiment { duration_us, wave, ..experiment.clone() };
        run(card, ports, &experiment, |_| ())?;
    }
    Ok(Activity { blocks: changes(&file)?, cycles })
}

/// Changes of bits in a waveform, by block.
fn changes(file: &Path) -> Result<BTreeMap<String, u64>, LabError> {
    let wrong = |error: String| LabError::Wave(error);
    let input = File::open(file).map_err(|error| wrong(error.to_string()))?;
    let mut reader = FstReader::open(BufReader::new(input)).map_err(|error| wrong(error.to_string()))?;
    let mut names: Vec<String> = Vec::new();
    // By signal: its block.
    let mut blocks: Vec<usize> = Vec::new();
    let (mut path, mut sums) = (Vec::new(), Vec::new());
    let hierarchy = |entry| match entry {
        FstHierarchyEntry::Scope { name, .. } => path.push(name),
        FstHierarchyEntry::UpScope => drop(path.pop()),
        // A port of a module is an alias of the net that it is connected to.
        FstHierarchyEntry::Var { handle, is_alias: false, .. } => {
            let name = block(&path);
            let at = names.iter().position(|known| *known == name).unwrap_or_else(|| {
                names.push(name);
                sums.push(0);
                sums.len() - 1
            });
            let signal = handle.get_index();
            if blocks.len() <= signal {
                blocks.resize(signal + 1, usize::MAX);
            }
            if let Some(block) = blocks.get_mut(signal) {
                *block = at;
            }
        }
        _ => {}
    };
    reader.read_hierarchy(hierarchy).map_err(|error| wrong(error.to_string()))?;
    let mut before: Vec<Vec<u8>> = vec![Vec::new(); blocks.len()];
    let change = |_, handle: fst_reader::FstSignalHandle, value: FstSignalValue<'_>| {
        let FstSignalValue::String(bits) = value else { return Ok::<(), std::convert::Infallible>(()) };
        let signal = handle.get_index();
        let Some(old) = before.get_mut(signal) else { return Ok(()) };
        // The first value is the one at the start: nothing has changed yet.
        let changed = old.iter().zip(bits).filter(|(old, new)| old != new).count();
        if let Some(sum) = blocks.get(signal).and_then(|block| sums.get_mut(*block)) {
            *sum += changed as u64;
        }
        old.clear();
        old.extend_from_slice(bits);
        Ok(())
    };
    reader.read_signals(&FstFilter::all(), change).map_err(|error| wrong(error.to_string()))?;
    Ok(names.into_iter().zip(sums).collect())
}

/// Blocks of the card, by where their instances are below the top module; the first that matches.
const BLOCKS: [(&str, &str); 19] = [
    ("g_in", "input queues"),
    ("q_arrival", "input queues"),
    ("u_join", "input queues"),
    ("u_strip", "input queues"),
    ("u_flood", "group frames"),
    ("u_arbiter", "arbiter"),
    ("u_gather", "gather"),
    ("g_head", "gather"),
    ("u_stages.u_select", "design select"),
    ("u_stages.u_network", "networks"),
    ("u_stages.u_meter", "meters"),
    ("u_stages.u_routes.gen_shared.gen_dag36.u_dag36", "trie"),
    ("u_stages.u_routes.gen_shared.gen_sram.u_dag36", "trie"),
    ("g_banks", "trie"),
    ("u_stages.u_routes.gen_shared.u_hop", "next hops"),
    ("u_stages.u_routes", "routes"),
    ("u_stages", "counters by network"),
    ("u_queues", "output queues"),
    ("u_scatter", "scatter"),
];

/// The block of a scope, from the top on.
fn block(path: &[String]) -> String {
    // The testbench's top and the card itself.
    let below = path.get(2..).unwrap_or_default().join(".");
    let plane = below.strip_prefix("u_stages.u_routes.gen_tcam.gen_plane[");
    if let Some((number, _)) = plane.and_then(|rest| rest.split_once(']')) {
        return format!("plane {number}");
    }
    let found = BLOCKS.iter().find(|(prefix, _)| below.starts_with(prefix));
    found.map_or("between blocks", |(_, name)| name).to_owned()
}
