//! Entries of networks of kinds `extract` and `mpls` in the card's tables: runs of rows of PATTERN and PATTERN_HOP, and rows of LANE.
//!
//! Flow: program → [`Encoded`] → **patterns** → rows → device. A frame's key is compared with four entries each clock, in the order
//! of the document, so that a network on the card has at most [`Description::entries_max`](crate::Description::entries_max). Its row of NETWORK names its run. The key of a label is the label itself,
//! so such a network has no lanes. Source: ADR 0076, ADR 0079.
//!
//! Order of writes: rows of a new run, which no packet uses; the network's rows of LANE; then its row of NETWORK. A former run is
//! used again when the records that came before have left.
//! Invariant: a network in software needs no run. It may have one while it is on its way to the card.

use std::ops::Range;

use hue_planes::{Adjacency, AdjacencyKind, Kind, Settings};
use hue_substrate::{Program, SubstrateError};
use hue_tables::{NextHop, Pattern};

use crate::device::{Device, LANES};
use crate::error::CardError;
use crate::generated::{LaneRow, PatternHopRow, PatternRow};
use crate::registers::Registers;
use crate::runs::Rows;

/// Banks of PATTERN: entries of a group.
const BANKS: u32 = 4;
/// Entries of one network, for errors.
pub const OF_ONE: &str = "entries of one network";
/// Rows of all networks, for errors and lists.
pub const ROWS: &str = "rows of entries";

/// A network's entries as rows, without its index.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Encoded {
    /// Pattern and action; the network's index is that of another row.
    rows: Vec<(PatternRow, PatternHopRow)>,
    lanes: Vec<LaneRow>,
}

impl Encoded {
    /// Those of a program, if its kind has any.
    pub fn of(program: &Program) -> Option<Self> {
        let lanes = match &program.settings {
            Settings::Extract(settings) => {
                settings.lanes().map(|lane| LaneRow { offset: lane.offset, mask: lane.mask }).collect()
            }
            Settings::Mpls(_) => Vec::new(),
            _ => return None,
        };
        let row = |(pattern, hop): &(Pattern, NextHop)| (pattern_row(pattern), action(program, *hop));
        Some(Self { rows: program.entries.patterns().iter().map(row).collect(), lanes })
    }

    /// Groups of entries.
    fn groups(&self) -> u32 {
        // A program has at most 16,384 entries.
        (self.rows.len() as u32).div_ceil(BANKS)
    }
}

/// What an entry with this next hop does, in a network without index. Of a row with a label, it is the row by which packets leave.
fn action(program: &Program, hop: NextHop) -> PatternHopRow {
    match program.next_hops.get(usize::from(hop.get())) {
        Some(row) if row.kind() == AdjacencyKind::Labels => {
            PatternHopRow { net: 0, hop: row.then(), label: row.label(0) }
        }
        _ => PatternHopRow { net: 0, hop: hop.get(), label: 0 },
    }
}

/// Entries that the card cannot carry out, for errors.
pub const RESIZING: &str = "entries that push or pop labels";

/// How many entries of a network the card cannot carry out: those of labels that do not replace one label by one.
pub fn resizing(program: &Program) -> usize {
    if program.kind() != Kind::Mpls {
        return 0;
    }
    let hop = |hop: &NextHop| program.next_hops.get(usize::from(hop.get()));
    let is_plain = |row: &Adjacency| match row.kind() {
        AdjacencyKind::Labels => row.label_count() == 1,
        AdjacencyKind::Drop | AdjacencyKind::Local => true,
        _ => false,
    };
    program.entries.patterns().iter().filter(|(_, of)| !hop(of).is_some_and(is_plain)).count()
}

fn pattern_row(pattern: &Pattern) -> PatternRow {
    let (value, mask) = (pattern.value(), pattern.mask());
    PatternRow {
        value_low: value as u64,
        value_high: (value >> 64) as u64,
        mask_low: mask as u64,
        mask_high: (mask >> 64) as u64,
    }
}

/// A row that matches no key.
const NOTHING: PatternRow = PatternRow { value_low: 1, value_high: 0, mask_low: 0, mask_high: 0 };

/// What the row of a network has in place of a root; see `extract_settings_t` in rtl/planes/hue_stages_pkg.sv.
pub fn root(run: &Range<u32>) -> u64 {
    u64::from(run.start) | (run.len() as u64) << 12
}

/// The rows of all networks.
pub struct Patterns {
    /// In groups.
    groups: Rows,
}

impl Patterns {
    /// No entries in an image with so many rows.
    pub fn new(rows: u32) -> Self {
        Self {
            groups: Rows::new(rows / BANKS, "groups of four entries in one run, beside other networks' runs"),
        }
    }

    /// Rows in use.
    pub fn used(&self) -> u64 {
        self.groups.used() * u64::from(BANKS)
    }

    /// A run for a network's entries.
    ///
    /// # Errors
    /// `Room`.
    pub fn allocate(
        &mut self,
        rows: &Encoded,
        name: &str,
        image: &str,
    ) -> Result<Range<u32>, SubstrateError> {
        if rows.groups() == 0 {
            return Ok(0..0);
        }
        let run = self.groups.allocate(rows.groups());
        run.ok_or_else(|| self.groups.lacks(name, image, rows.groups() as usize))
    }

    /// Frees a run.
    pub fn release(&mut self, run: Range<u32>) {
        self.groups.release(run);
    }
}

/// Writes the rows of a run that no packet uses yet.
pub fn write<R: Registers>(
    run: &Range<u32>,
    rows: &Encoded,
    net: u8,
    device: &mut Device<R>,
) -> Result<(), CardError> {
    let bank_rows = device.description().pattern_rows / BANKS;
    let unused = (NOTHING, PatternHopRow { net, hop: u16::MAX, label: 0 });
    let all = rows.rows.iter().copied().chain(std::iter::repeat(unused));
    for (at, (pattern, action)) in (0..BANKS * run.len() as u32).zip(all) {
        let place = at % BANKS * bank_rows + run.start + at / BANKS;
        device.write_row(place, &pattern)?;
        device.write_row(place, &PatternHopRow { net, ..action })?;
    }
    Ok(())
}

/// Makes the lanes of a network index those of a program; a network of another kind has none. No packet may use them meanwhile.
pub fn point<R: Registers>(net: u8, rows: Option<&Encoded>, device: &mut Device<R>) -> Result<(), CardError> {
    if device.description().pattern_rows == 0 {
        return Ok(());
    }
    let first = u32::from(net) * LANES;
    let lanes = rows.map_or(&[][..], |rows| &rows.lanes);
    // The row behind the last lane ends them. The first one comes last: with it the card looks at the others.
    let all = lanes.iter().copied().chain([LaneRow::default()]);
    let all: Vec<(u32, LaneRow)> = (first..first + LANES).zip(all).collect();
    all.iter().rev().try_for_each(|(place, row)| device.write_row(*place, row))
}

#[cfg(test)]
mod tests {
    use hue_planes::extract::{self, Lane};
    use hue_substrate::Entries;
    use hue_tables::{NextHop, Vid};

    use super::*;

    /// A network with a key of two bytes and these entries: value, mask and next hop.
    fn program(entries: &[(u16, u16, u16)]) -> Program {
        let lanes = [Lane { offset: 12, mask: 0xff }, Lane { offset: 0, mask: 0x0f }];
        let wide = |bits: u16| u128::from(bits) << 112;
        let entry = |(value, mask, hop): &(u16, u16, u16)| {
            (Pattern::new(wide(*value), wide(*mask)), NextHop::new(*hop).unwrap())
        };
        Program {
            vid: Vid::new(1).unwrap(),
            name: "red".to_owned(),
            settings: Settings::Extract(extract::Settings::new(&lanes).unwrap()),
            ports: Vec::new(),
            rows: Vec::new(),
            next_hops: Vec::new(),
            groups: Vec::new(),
            entries: Entries::Ternary(entries.iter().map(entry).collect()),
            rate_limit: None,
            weight: 1,
            policies: None,
            gated: false,
        }
    }

    #[test]
    fn the_first_lane_is_in_the_highest_bits() {
        let rows = Encoded::of(&program(&[(0x0806, 0xff0f, 7), (0, 0, 9)])).unwrap();
        let lanes: Vec<_> = rows.lanes.iter().map(|lane| (lane.offset, lane.mask)).collect();
        assert_eq!(lanes, [(12, 0xff), (0, 0x0f)]);
        let pattern =
            PatternRow { value_high: 0x0806 << 48, mask_high: 0xff0f << 48, ..PatternRow::default() };
        let action = |hop| PatternHopRow { net: 0, hop, label: 0 };
        assert_eq!(rows.rows, [(pattern, action(7)), (PatternRow::default(), action(9))]);
    }

    #[test]
    fn a_run_has_whole_groups() {
        let entries = |count: u16| {
            let all: Vec<_> = (0..count).map(|value| (value, 0xffff, 0)).collect();
            Encoded::of(&program(&all)).unwrap()
        };
        let mut patterns = Patterns::new(16);
        let take = |patterns: &mut Patterns, count| patterns.allocate(&entries(count), "red", "test");
        assert_eq!(take(&mut patterns, 0).unwrap(), 0..0);
        let (one, five) = (take(&mut patterns, 1).unwrap(), take(&mut patterns, 5).unwrap());
        assert_eq!((one.clone(), five.clone(), patterns.used()), (0..1, 1..3, 12));
        assert_eq!(root(&five), 2 << 12 | 1);
        let refused = take(&mut patterns, 5).unwrap_err().to_string();
        assert!(refused.starts_with("network 'red' needs 2 groups of four entries in one run"), "{refused}");
        assert_eq!(patterns.used(), 12);
        [one, five, 0..0].into_iter().for_each(|run| patterns.release(run));
        assert_eq!((take(&mut patterns, 16).unwrap(), patterns.used()), (0..4, 16));
    }
}
