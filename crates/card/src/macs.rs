//! Contents of the card's table of exact rows: design select by port and destination MAC address.
//!
//! Flow: plan → **macs** → load → device. An exact row takes precedence over all ternary ones, so it may be in either
//! table. `hue_tables::cuckoo` decides its place. An existing row moves only to make room. It is written to its new
//! place before the old place is overwritten, so that frames always find it.

use std::collections::{BTreeMap, HashMap};

use hue_tables::Cuckoo;
use hue_tables::cuckoo::Placed;

use crate::generated::{MacRow, SelectRow};
use crate::plan::Claims;

/// The table.
#[derive(Clone, Debug, Default)]
pub struct Macs {
    places: Cuckoo,
    /// By key.
    rows: HashMap<u64, MacRow>,
}

/// Writes that change the contents of the table.
#[derive(Default, Debug)]
pub struct MacWrites {
    /// Rows to write, in this order.
    pub come: Vec<(u32, MacRow)>,
    /// Rows to clear.
    pub go: Vec<u32>,
}

impl Macs {
    /// An empty table of `rows` rows; `None` if no card has a table of this size.
    pub fn new(rows: u32) -> Option<Self> {
        Some(Self { places: Cuckoo::new(rows)?, rows: HashMap::new() })
    }

    /// Moves as many of `claims` as possible into the table, and removes them from `claims`.
    pub fn change(&mut self, claims: &mut Claims) -> MacWrites {
        let mut wanted: BTreeMap<u64, MacRow> =
            claims.rows.iter().filter_map(|(_, row)| exact(row)).collect();
        if self.places.rows() == 0 {
            return MacWrites::default();
        }
        let gone: Vec<u64> = self.rows.keys().copied().filter(|key| !wanted.contains_key(key)).collect();
        let mut go: Vec<u32> = gone.iter().filter_map(|key| self.remove(*key)).collect();
        let mut come = Vec::new();
        for (key, row) in &wanted {
            let before = self.rows.insert(*key, *row);
            if let Some(place) = self.places.place(*key) {
                come.extend((before != Some(*row)).then_some((place, *row)));
                continue;
            }
            let mut moves = Vec::new();
            if !self.places.insert(*key, &mut moves) {
                self.rows.remove(key);
            }
            let row = |Placed { place, key }: Placed| Some((place, *self.rows.get(&key)?));
            come.extend(moves.into_iter().filter_map(row));
        }
        go.sort_unstable();
        go.retain(|place| self.places.key(*place).is_none());
        wanted.retain(|key, _| self.rows.contains_key(key));
        claims.rows.retain(|(_, row)| exact(row).is_none_or(|(key, _)| !wanted.contains_key(&key)));
        MacWrites { come, go }
    }

    fn remove(&mut self, key: u64) -> Option<u32> {
        self.rows.remove(&key);
        self.places.remove(key)
    }
}

/// A row that depends only on port and MAC address, with the key that the card computes.
fn exact(row: &SelectRow) -> Option<(u64, MacRow)> {
    let SelectRow { valid, port_care, port, mac_care, mac, inner_care, arp_care, net, vport, .. } = *row;
    let fits = valid && port_care && mac_care && !inner_care && !arp_care && port < 8;
    fits.then_some((mac << 3 | u64::from(port), MacRow { valid, port, mac, net, vport }))
}

#[cfg(test)]
mod tests {
    use hue_tables::cuckoo::{BANKS, index_of};
    use proptest::prelude::*;

    use super::*;
    use crate::plan;

    const ROWS: u32 = 1024;
    const TERNARY: usize = 64;

    /// The card's tables as the driver writes them.
    #[derive(Default)]
    struct Tables {
        exact: HashMap<u32, MacRow>,
        select: Vec<Option<SelectRow>>,
    }

    impl Tables {
        fn write(&mut self, writes: &MacWrites, claims: &Claims) {
            self.exact.extend(writes.come.iter().copied());
            self.select = plan::select(&self.select, claims, TERNARY);
            writes.go.iter().for_each(|place| _ = self.exact.remove(place));
        }

        /// The card's result for a frame without inner destination.
        fn find(&self, port: u8, mac: u64, arp: bool) -> Option<(u8, u8)> {
            let place = |bank| bank << 8 | index_of(8, bank, mac << 3 | u64::from(port)).unwrap();
            let mut exact = (0..BANKS).filter_map(|bank| self.exact.get(&place(bank)));
            let matches = |row: &&SelectRow| {
                (!row.port_care || row.port == port)
                    && (!row.mac_care || row.mac == mac)
                    && (!row.arp_care || arp)
                    && !row.inner_care
            };
            let ternary = || self.select.iter().flatten().find(matches).map(|row| (row.net, row.vport));
            let exact = exact.find(|row| row.valid && (row.port, row.mac) == (port, mac));
            exact.map(|row| (row.net, row.vport)).or_else(ternary)
        }
    }

    fn by_mac(port: u8, mac: u64, net: u8) -> SelectRow {
        SelectRow { valid: true, port_care: true, port, mac_care: true, mac, net, ..SelectRow::default() }
    }

    fn claims(rows: Vec<(u8, SelectRow)>) -> Claims {
        Claims { rows, hidden: 0 }
    }

    #[test]
    fn rows_for_arp_and_whole_ports_stay_ternary() {
        let arp = SelectRow { arp_care: true, ..by_mac(1, 8, 2) };
        let port = SelectRow { valid: true, port_care: true, port: 1, net: 3, ..SelectRow::default() };
        let (mut macs, mut tables) = (Macs::new(ROWS).unwrap(), Tables::default());
        let mut all = claims(vec![(0, by_mac(1, 7, 1)), (0, arp), (u8::MAX, port)]);
        let writes = macs.change(&mut all);
        assert_eq!((writes.come.len(), all.rows.len()), (1, 2));
        tables.write(&writes, &all);
        assert_eq!(tables.find(1, 7, true), Some((1, 0)));
        assert_eq!((tables.find(1, 8, true), tables.find(1, 8, false)), (Some((2, 0)), Some((3, 0))));
        // Unchanged rows are not written again.
        let mut all = claims(vec![(0, by_mac(1, 7, 1)), (0, arp), (u8::MAX, port)]);
        let writes = macs.change(&mut all);
        assert!(writes.come.is_empty() && writes.go.is_empty());
        // Without a table, all rows stay ternary.
        let mut all = claims(vec![(0, by_mac(1, 7, 1))]);
        assert!(Macs::new(0).unwrap().change(&mut all).come.is_empty() && all.rows.len() == 1);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        /// After any loads and unloads, each address is found with its current result, and removed ones are not found.
        #[test]
        fn every_claim_is_found(
            base in 0u64..1 << 40,
            steps in prop::collection::vec(prop::collection::btree_map(0u64..1100, 0u8..8, 0..1060), 1..6),
        ) {
            let (mut macs, mut tables) = (Macs::new(ROWS).unwrap(), Tables::default());
            let mac = |n: u64| if n.is_multiple_of(3) { base + n } else { n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 16 };
            let mut before = BTreeMap::new();
            for step in steps {
                let mut all =
                    claims(step.iter().map(|(n, net)| (0, by_mac(*n as u8 % 4, mac(*n), *net))).collect());
                let writes = macs.change(&mut all);
                prop_assert!(all.rows.len() <= TERNARY, "{} of {}", all.rows.len(), step.len());
                if step.len() <= 900 {
                    prop_assert!(all.rows.is_empty());
                }
                tables.write(&writes, &all);
                prop_assert_eq!(tables.exact.len(), macs.rows.len());
                for (n, net) in &step {
                    prop_assert_eq!(tables.find(*n as u8 % 4, mac(*n), false), Some((*net, 0)));
                }
                for n in before.keys().filter(|n| !step.contains_key(n)) {
                    prop_assert_eq!(tables.find(*n as u8 % 4, mac(*n), false), None);
                }
                before = step;
            }
        }
    }
}
