//! Routes by source in the card's tables: runs of ranges of addresses, of pairs of ranges, and of rules.
//!
//! Flow: program → [`Encoded`] → **policies** → rows of RANGE, PAIR and RULE, then of POLICY → device. A packet's source and
//! destination are searched in the network's ranges; the values of the two ranges add up to the place of its pair, which names
//! a rule. A rule names the address of a gateway, which the card looks up in the network's own table. So routes, neighbours and
//! links change without a write here, and rows change only when a program is loaded or comes to the card. Source: ADR 0062, ADR 0064.
//!
//! Order of writes: rows of new runs, which no packet uses; then the network's row of POLICY, which changes all at once; then
//! its row of NETWORK. Former runs are used again when the records that came before have left.
//! Invariant: a network in software needs no runs. It may have some while it is on its way to the card.

use std::ops::Range;

use hue_planes::Keys;
use hue_substrate::planted::{Bug, planted};
use hue_substrate::{Program, SubstrateError};
use hue_tables::{Key, PolicyRows, PolicyTable};

use crate::device::Device;
use crate::error::CardError;
use crate::generated::{PairRow, PolicyRow, RangeRow, RuleRow};
use crate::registers::Registers;
use crate::runs::Rows;

/// A network's runs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PolicyRuns {
    sources: Range<u32>,
    destinations: Range<u32>,
    pairs: Range<u32>,
    rules: Range<u32>,
}

impl PolicyRuns {
    /// The network's row of POLICY.
    fn row(&self) -> PolicyRow {
        // No table has more than 32,768 rows.
        let [source, destination, pair, rule] = [&self.sources, &self.destinations, &self.pairs, &self.rules]
            .map(|run| {
                let first = if run.is_empty() { 0 } else { run.start as u16 };
                (first, run.len() as u16)
            });
        PolicyRow {
            source_first: source.0,
            source_count: source.1,
            source_bits: steps(source.1),
            destination_first: destination.0,
            destination_count: destination.1,
            destination_bits: steps(destination.1),
            pair_first: pair.0,
            pair_count: pair.1,
            rule_first: rule.0,
            rule_count: rule.1,
        }
    }
}

/// Steps of a search among so many ranges.
fn steps(count: u16) -> u8 {
    u32::from(count).next_power_of_two().trailing_zeros() as u8
}

/// A network's policies as rows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Encoded {
    sources: Vec<RangeRow>,
    destinations: Vec<RangeRow>,
    pairs: Vec<PairRow>,
    rules: Vec<RuleRow>,
}

impl Encoded {
    /// Those of a program, if it has any. The program was checked, also against the image.
    pub fn of(program: &Program) -> Option<Self> {
        let policies = program.policies.as_ref()?;
        match program.kind().limits().keys {
            Keys::V4 => policies.table::<u32>().map(|table| Self::rows_of(&table)).ok(),
            Keys::V6 => policies.table::<u128>().map(|table| Self::rows_of(&table)).ok(),
            // These kinds have no policies.
            Keys::Dual | Keys::Slices | Keys::Mac | Keys::Bits | Keys::Label | Keys::None => None,
        }
    }

    fn rows_of<K: Key>(table: &PolicyTable<K>) -> Self {
        // An image that has room for the pairs has at most 32,768.
        let range = |(start, value): (K, usize)| {
            let (start_low, start_high) = halves(start);
            RangeRow { start_low, start_high, value: value as u16 }
        };
        let of_source = |(start, class): (K, u16)| range((start, usize::from(class) * table.columns()));
        let of_destination = |(start, class): (K, u16)| range((start, usize::from(class)));
        let rule = |(via, both)| {
            let (via_low, via_high) = halves(via);
            RuleRow { via_low, via_high, both }
        };
        Self {
            sources: table.sources().map(of_source).collect(),
            destinations: table.destinations().map(of_destination).collect(),
            pairs: table.pairs().iter().map(|rule| PairRow { rule: *rule }).collect(),
            rules: table.precedences().map(rule).collect(),
        }
    }
}

/// An address as the card has it: in the highest bits of 128. The lower half, and the upper one.
fn halves<K: Key>(address: K) -> (u64, u64) {
    let wide = address.to_bits();
    (wide as u64, (wide >> 64) as u64)
}

/// The rows of all networks.
pub struct Policies {
    ranges: Rows,
    pairs: Rows,
    rules: Rows,
}

impl Policies {
    /// No policies in an image with these rows.
    pub fn new(rows: PolicyRows) -> Self {
        Self {
            ranges: Rows::new(
                rows.ranges,
                "ranges of addresses of routes by source in one run, beside other networks' runs",
            ),
            pairs: Rows::new(
                rows.pairs,
                "pairs of ranges of routes by source in one run, beside other networks' runs",
            ),
            rules: Rows::new(rows.rules, "routes by source in one run, beside other networks' runs"),
        }
    }

    /// Ranges, pairs and rules in use.
    pub fn used(&self) -> [u64; 3] {
        [&self.ranges, &self.pairs, &self.rules].map(Rows::used)
    }

    /// Runs for a network's policies. On an error nothing is taken.
    ///
    /// # Errors
    /// `Room`.
    pub fn allocate(
        &mut self,
        rows: &Encoded,
        name: &str,
        image: &str,
    ) -> Result<PolicyRuns, SubstrateError> {
        fn take(
            from: &mut Rows,
            needed: usize,
            name: &str,
            image: &str,
        ) -> Result<Range<u32>, SubstrateError> {
            if needed == 0 {
                return Ok(0..0);
            }
            let run = u32::try_from(needed).ok().and_then(|count| from.allocate(count));
            run.ok_or_else(|| from.lacks(name, image, needed))
        }
        let none = 0..0;
        let mut runs = PolicyRuns {
            sources: none.clone(),
            destinations: none.clone(),
            pairs: none.clone(),
            rules: none,
        };
        let mut take_all = || {
            runs.sources = take(&mut self.ranges, rows.sources.len(), name, image)?;
            runs.destinations = take(&mut self.ranges, rows.destinations.len(), name, image)?;
            runs.pairs = take(&mut self.pairs, rows.pairs.len(), name, image)?;
            runs.rules = take(&mut self.rules, rows.rules.len(), name, image)?;
            Ok(())
        };
        match take_all() {
            Ok(()) => Ok(runs),
            Err(error) => {
                self.release(runs);
                Err(error)
            }
        }
    }

    /// Frees a network's runs.
    pub fn release(&mut self, runs: PolicyRuns) {
        let PolicyRuns { sources, destinations, pairs, rules } = runs;
        self.ranges.release(sources);
        self.ranges.release(destinations);
        self.pairs.release(pairs);
        self.rules.release(rules);
    }
}

/// Writes the rows of runs that no packet uses yet.
pub fn write<R: Registers>(
    runs: &PolicyRuns,
    rows: &Encoded,
    device: &mut Device<R>,
) -> Result<(), CardError> {
    let ranges = runs.sources.clone().zip(&rows.sources);
    for (place, row) in ranges.chain(runs.destinations.clone().zip(&rows.destinations)) {
        device.write_row(place, row)?;
    }
    for (place, row) in runs.pairs.clone().zip(&rows.pairs) {
        device.write_row(place, row)?;
    }
    runs.rules.clone().zip(&rows.rules).try_for_each(|(place, row)| device.write_row(place, row))
}

/// Makes these runs those of a network index. Packets that read the row of NETWORK with policies use them at once.
pub fn point<R: Registers>(net: u8, runs: &PolicyRuns, device: &mut Device<R>) -> Result<(), CardError> {
    if planted(Bug::PoliciesStay) && device.read_row::<PolicyRow>(net.into())?.source_count > 0 {
        return Ok(());
    }
    device.write_row(net.into(), &runs.row())
}

#[cfg(test)]
mod tests {
    use hue_planes::{Kind, Settings};
    use hue_substrate::Entries;
    use hue_tables::{AnyPrefix, Policies as List, Policy, RouteBy, Vid};

    use super::*;

    /// A network of a kind with policies from these prefixes.
    fn program(kind: Kind, from: &[&str], via: &str) -> Program {
        let everything = |from: AnyPrefix| AnyPrefix::containing(from.addr(), 0);
        let list = from.iter().map(|from| from.parse().unwrap()).map(|from: AnyPrefix| Policy {
            from,
            to: everything(from),
            via: via.parse().unwrap(),
        });
        Program {
            vid: Vid::new(1).unwrap(),
            name: "red".to_owned(),
            settings: Settings::of(kind),
            ports: Vec::new(),
            rows: Vec::new(),
            next_hops: Vec::new(),
            groups: Vec::new(),
            entries: Entries::none(kind),
            rate_limit: None,
            weight: 1,
            policies: Some(List { by: RouteBy::Source, links: Vec::new(), list: list.collect() }),
            gated: false,
        }
    }

    #[test]
    fn addresses_are_in_the_highest_bits() {
        let rows = Encoded::of(&program(Kind::Ipv4, &["10.1.0.0/16"], "192.0.2.9")).unwrap();
        let starts: Vec<_> = rows.sources.iter().map(|row| (row.start_high >> 32, row.value)).collect();
        assert_eq!(starts, [(0, 0), (0x0a01_0000, 1), (0x0a02_0000, 0)]);
        assert!(rows.sources.iter().all(|row| row.start_low == 0 && row.start_high as u32 == 0));
        assert_eq!(rows.rules, [RuleRow { via_low: 0, via_high: 0xc000_0209 << 32, both: 511 }]);
        let rows = Encoded::of(&program(Kind::Ipv6, &["2001:db8::/32"], "2001:db8::9")).unwrap();
        assert_eq!((rows.rules[0].via_high, rows.rules[0].via_low), (0x2001_0db8 << 32, 9));
        assert_eq!(rows.pairs.iter().map(|pair| pair.rule).collect::<Vec<_>>(), [u16::MAX, 0]);
    }

    #[test]
    fn a_search_takes_the_fewest_steps() {
        let found = [0, 1, 2, 3, 4, 5, 8, 9, 1024, 1025].map(steps);
        assert_eq!(found, [0, 0, 1, 2, 2, 3, 3, 4, 10, 11]);
    }

    #[test]
    fn a_network_that_finds_no_room_takes_none() {
        let rows = Encoded::of(&program(Kind::Ipv4, &["10.1.0.0/16", "10.3.0.0/16"], "192.0.2.9")).unwrap();
        let room = PolicyRows { ranges: 16, pairs: 8, rules: 2 };
        for (lacks, error) in [
            (
                PolicyRows { ranges: 4, ..room },
                "network 'red' needs 5 ranges of addresses of routes by source",
            ),
            (PolicyRows { pairs: 2, ..room }, "network 'red' needs 3 pairs of ranges of routes by source"),
            (PolicyRows { rules: 1, ..room }, "network 'red' needs 2 routes by source"),
        ] {
            let mut policies = Policies::new(lacks);
            let refused = policies.allocate(&rows, "red", "small").unwrap_err().to_string();
            assert!(refused.starts_with(error) && refused.contains("image small has "), "{refused}");
            assert_eq!(policies.used(), [0; 3]);
        }
        let mut policies = Policies::new(room);
        let runs = policies.allocate(&rows, "red", "small").unwrap();
        assert_eq!(policies.used(), [6, 3, 2]);
        let row = PolicyRow {
            source_count: 5,
            source_bits: 3,
            destination_first: 5,
            destination_count: 1,
            pair_count: 3,
            rule_count: 2,
            ..PolicyRow::default()
        };
        assert_eq!(runs.row(), row);
        assert!(policies.allocate(&rows, "blue", "small").is_err());
        policies.release(runs);
        // A network without policies yet needs no rule, even if there is none left.
        let none = Encoded::of(&program(Kind::Ipv4, &[], "192.0.2.9")).unwrap();
        let full = policies.allocate(&rows, "red", "small").unwrap();
        let empty = policies.allocate(&none, "blue", "small").unwrap();
        assert_eq!((policies.used(), empty.row().rule_count), ([8, 4, 2], 0));
        policies.release(empty);
        policies.release(full);
        assert_eq!(policies.used(), [0; 3]);
    }
}
