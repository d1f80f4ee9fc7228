//! Where the MAC addresses of networks that learn are: the driver's tables, and the card's table of exact rows.
//!
//! Flow: static entries, notes from the card → **stations** → rows of STATION. Each network has its own [`MacTable`](hue_tables::MacTable), which decides
//! what is learnt and forgotten, as in software; the rows are a copy of all of them in one memory. The card looks addresses up in
//! the rows, and sends the driver a note where a frame's sender is not as the row says (ADR 0055). The driver marks a row as old
//! when the next frame from its address is worth recording, so that a note comes then.
//!
//! Room is set aside for the most entries that each network may have, so that none takes another's.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use hue_substrate::handover::Sighting;
use hue_substrate::{Addresses, Program, SwitchCounts, VirtualPort};
use hue_tables::cuckoo::Placed;
use hue_tables::{Cuckoo, Learnt, MacEntry, MacKey};

use crate::generated::StationRow;

/// How often an address that sends is noted in its ageing time, in live use. Software records it every second; on a card, each
/// time takes a note and two rows.
const LIVE_REFRESHES: u64 = 8;

/// The rows, and which are used.
#[derive(Clone, Debug, Default)]
pub struct Stations {
    places: Cuckoo,
    /// By key.
    rows: HashMap<u64, StationRow>,
}

/// Rows to write, in this order.
pub type StationWrites = Vec<(u32, StationRow)>;

impl Stations {
    /// An empty table of `rows` rows; `None` if no card has a table of this size.
    pub fn new(rows: u32) -> Option<Self> {
        Some(Self { places: Cuckoo::new(rows)?, rows: HashMap::new() })
    }

    /// Enters a row, or replaces that of its address. An address that finds no place stays unknown to the card.
    pub fn set(&mut self, row: StationRow, writes: &mut StationWrites) {
        let key = key_of(row.net, row.mac);
        if self.rows.insert(key, row) == Some(row) {
            return;
        }
        if let Some(place) = self.places.place(key) {
            writes.push((place, row));
            return;
        }
        let mut moves = Vec::new();
        if !self.places.insert(key, &mut moves) {
            self.rows.remove(&key);
        }
        let row = |Placed { place, key }: Placed| Some((place, *self.rows.get(&key)?));
        writes.extend(moves.into_iter().filter_map(row));
    }

    /// Removes the row of an address.
    pub fn remove(&mut self, net: u8, mac: MacKey, writes: &mut StationWrites) {
        let key = key_of(net, mac);
        self.rows.remove(&key);
        writes.extend(self.places.remove(key).map(|place| (place, StationRow::default())));
    }

    /// The addresses that a network has rows for.
    pub fn macs(&self, net: u8) -> impl Iterator<Item = MacKey> + '_ {
        self.rows.values().filter(move |row| row.net == net).map(|row| row.mac)
    }

    /// Makes these the rows of a network.
    pub fn replace(
        &mut self,
        net: u8,
        rows: impl IntoIterator<Item = StationRow>,
        writes: &mut StationWrites,
    ) {
        let rows: BTreeMap<MacKey, StationRow> = rows.into_iter().map(|row| (row.mac, row)).collect();
        let gone: BTreeSet<MacKey> = self.macs(net).filter(|mac| !rows.contains_key(mac)).collect();
        gone.into_iter().for_each(|mac| self.remove(net, mac, writes));
        rows.into_values().for_each(|row| self.set(row, writes));
    }
}

/// The key of a row, as rtl/planes/hue_l2.sv has it.
const fn key_of(net: u8, mac: MacKey) -> u64 {
    (net as u64) << 48 | mac
}

/// What the driver knows about a network that learns.
#[derive(Clone, Debug)]
pub struct Learner {
    addresses: Addresses,
    /// Addresses whose rows are not old yet, and when they were seen, oldest first. Some have been seen again since.
    fresh: VecDeque<(u64, MacKey)>,
    /// Whether it came from software, in live use.
    is_live: bool,
}

impl Learner {
    /// That of a network that is loaded, or loaded again: `before` is that before, and the virtual ports that the network had. `None` if
    /// its kind does not learn.
    pub fn new(program: &Program, before: Option<(&Self, &[VirtualPort])>) -> Option<Self> {
        let learning = program.settings.learning()?;
        let known = before.map(|(before, ports)| (&before.addresses, ports));
        let fresh = before.map(|(before, _)| before.fresh.clone()).unwrap_or_default();
        let is_live = before.is_some_and(|(before, _)| before.is_live);
        Some(Self { addresses: Addresses::new(program, learning, known), fresh, is_live })
    }

    /// That of a network that comes from software, which has learnt this.
    pub fn adopted(program: &Program, known: &[Sighting], now_ns: u64) -> Option<Self> {
        let mut learner = Self { is_live: true, ..Self::new(program, None)? };
        let entry = |seen: &Sighting| MacEntry {
            mac: seen.mac,
            hop: seen.vport,
            fixed: false,
            age_ns: now_ns.saturating_sub(seen.seen_ns),
        };
        learner.addresses.macs.adopt(&known.iter().map(entry).collect::<Vec<_>>(), now_ns);
        // Those whose rows are old from the beginning are not waited for.
        let refresh_ns = learner.refresh_ns();
        let mut fresh: Vec<(u64, MacKey)> = learner
            .addresses
            .macs
            .entries(now_ns)
            .filter(|entry| !entry.fixed && entry.age_ns < refresh_ns)
            .map(|entry| (now_ns.saturating_sub(entry.age_ns), entry.mac))
            .collect();
        fresh.sort_unstable();
        learner.fresh = fresh.into();
        Some(learner)
    }

    /// Time after which a row is old: the next frame from its address leaves a note.
    fn refresh_ns(&self) -> u64 {
        let macs = &self.addresses.macs;
        if self.is_live { macs.ageing_ns() / LIVE_REFRESHES } else { macs.refresh_ns() }
    }

    /// The addresses that it has rows for.
    pub fn macs(&self) -> impl Iterator<Item = MacKey> + '_ {
        self.addresses.macs.entries(0).map(|entry| entry.mac)
    }

    /// The row of an address, if it has one.
    pub fn row(&self, program: &Program, net: u8, mac: MacKey, now_ns: u64) -> Option<StationRow> {
        let found = self.addresses.macs.get(mac, now_ns)?;
        let age_ns = self.addresses.macs.age_ns(mac, now_ns);
        row(
            program,
            net,
            mac,
            found.hop,
            found.fixed,
            age_ns.is_some_and(|age_ns| age_ns >= self.refresh_ns()),
        )
    }

    /// The rows of all entries.
    pub fn rows(&self, program: &Program, net: u8, now_ns: u64) -> impl Iterator<Item = StationRow> {
        self.macs().filter_map(move |mac| self.row(program, net, mac, now_ns))
    }

    /// Brings the rows to this time: forgets what is too old, and marks what is worth recording when it is seen again.
    pub fn advance(
        &mut self,
        program: &Program,
        net: u8,
        now_ns: u64,
        stations: &mut Stations,
        writes: &mut StationWrites,
    ) {
        while let Some(mac) = self.addresses.macs.expire(now_ns) {
            stations.remove(net, mac, writes);
        }
        while let Some((seen_ns, mac)) = self.fresh.front().copied()
            && now_ns.saturating_sub(seen_ns) >= self.refresh_ns()
        {
            self.fresh.pop_front();
            // Unless it has been seen again.
            let row = self.row(program, net, mac, now_ns).filter(|row| row.old);
            row.into_iter().for_each(|row| stations.set(row, writes));
        }
    }

    /// Enters what a note says: a frame from this address arrived at this virtual port.
    pub fn learn(
        &mut self,
        program: &Program,
        net: u8,
        (mac, vport): (MacKey, u16),
        now_ns: u64,
        stations: &mut Stations,
        writes: &mut StationWrites,
    ) {
        // Also removes the rows of addresses that would otherwise make room in the table only.
        self.advance(program, net, now_ns, stations, writes);
        let became = self.addresses.learn(mac, vport, now_ns);
        if matches!(became, Learnt::Full | Learnt::Fixed) {
            return;
        }
        // Several notes may come before the row is written.
        if let Some(row) = row(program, net, mac, vport, false, false) {
            stations.set(row, writes);
            self.fresh.push_back((now_ns, mac));
        }
    }

    /// What happened to addresses.
    pub fn counts(&self) -> SwitchCounts {
        self.addresses.counts()
    }

    /// The entries, sorted by address.
    pub fn entries(&self, now_ns: u64) -> Vec<MacEntry> {
        let mut entries: Vec<MacEntry> = self.addresses.macs.entries(now_ns).collect();
        entries.sort_unstable_by_key(|entry| entry.mac);
        entries
    }
}

/// The row of an address behind a virtual port; `None` if there is no such port.
fn row(program: &Program, net: u8, mac: MacKey, vport: u16, fixed: bool, old: bool) -> Option<StationRow> {
    let port = program.ports.get(usize::from(vport))?.port.get();
    Some(StationRow { valid: true, mac, net, port, fixed, old })
}

#[cfg(test)]
mod tests {
    use hue_demux::PortId;
    use hue_planes::{Adjacency, Settings, l2};
    use hue_substrate::Entries;
    use hue_tables::{NextHop, Vid};
    use hue_wire::Mac;
    use proptest::prelude::*;

    use super::*;

    const ROWS: u32 = 1024;
    const SECOND_NS: u64 = 1_000_000_000;

    fn switch(id: u16, macs_max: u16, fixed: &[MacKey]) -> Program {
        let port = |port: u8| VirtualPort {
            name: format!("v{port}"),
            port: PortId::new(port),
            mac: Mac([2, 0, 0, 0, id as u8, port]),
            mtu_bytes: 1500,
            tunnel: None,
        };
        Program {
            vid: Vid::new(id).unwrap(),
            name: format!("net{id}"),
            settings: Settings::L2(l2::Settings { macs_max, ageing_s: 10, ..l2::Settings::default() }),
            // Virtual ports do not have the numbers of their ports.
            ports: vec![port(3), port(1)],
            rows: Vec::new(),
            next_hops: vec![Adjacency::out(PortId::new(3), 1500), Adjacency::out(PortId::new(1), 1500)],
            groups: Vec::new(),
            entries: Entries::Exact(
                fixed.iter().map(|mac| (Mac::from_u64(*mac), NextHop::new(1).unwrap())).collect(),
            ),
            rate_limit: None,
            weight: 1,
            policies: None,
            gated: false,
        }
    }

    /// The card's rows as they are written.
    #[derive(Default)]
    struct Card(BTreeMap<u32, StationRow>);

    impl Card {
        fn write(&mut self, writes: &StationWrites) {
            for (place, row) in writes {
                match row.valid {
                    true => _ = self.0.insert(*place, *row),
                    false => _ = self.0.remove(place),
                }
            }
        }

        /// Port, whether static, and whether old, by address.
        fn of(&self, net: u8) -> BTreeMap<MacKey, (u8, bool, bool)> {
            let own = self.0.values().filter(|row| row.net == net);
            own.map(|row| (row.mac, (row.port, row.fixed, row.old))).collect()
        }
    }

    #[test]
    fn what_comes_from_software_has_its_ages() {
        let program = switch(1, 5, &[3]);
        let now_ns = 100 * SECOND_NS;
        let seen = |mac, vport, age_ms: u64| Sighting { mac, vport, seen_ns: now_ns - age_ms * 1_000_000 };
        let known = [seen(1, 0, 500), seen(2, 1, 2_000), seen(4, 1, 11_000)];
        let mut learner = Learner::adopted(&program, &known, now_ns).unwrap();
        let mut card = Card::default();
        let mut stations = Stations::new(ROWS).unwrap();
        let write = |card: &mut Card, stations: &mut Stations, learner: &Learner| {
            let mut writes = Vec::new();
            learner.rows(&program, 0, now_ns).for_each(|row| stations.set(row, &mut writes));
            card.write(&writes);
        };
        write(&mut card, &mut stations, &learner);
        // The ageing time is 10 s. A row is old after an eighth of it.
        assert_eq!(
            card.of(0),
            BTreeMap::from([(1, (3, false, false)), (2, (1, false, true)), (3, (1, true, false))])
        );
        let mut writes = Vec::new();
        learner.advance(&program, 0, now_ns + SECOND_NS, &mut stations, &mut writes);
        card.write(&writes);
        assert_eq!(card.of(0)[&1], (3, false, true));
        writes.clear();
        learner.learn(&program, 0, (1, 1), now_ns + SECOND_NS, &mut stations, &mut writes);
        card.write(&writes);
        assert_eq!(card.of(0)[&1], (1, false, false));
        // 2 is forgotten in time, whatever frame comes first.
        writes.clear();
        learner.learn(&program, 0, (6, 0), now_ns + 9 * SECOND_NS, &mut stations, &mut writes);
        card.write(&writes);
        assert_eq!(card.of(0).into_keys().collect::<Vec<_>>(), [1, 3, 6]);
    }

    proptest! {
        /// The rows of each network are the entries of its table, whatever the other one learns.
        #[test]
        fn rows_follow_the_tables(
            steps in prop::collection::vec((0usize..2, 0u64..12, 0u16..2, 0u64..4_000_000_000), 1..200)
        ) {
            let programs = [switch(1, 5, &[3]), switch(2, 100, &[])];
            let mut learners = programs.each_ref().map(|program| Learner::new(program, None).unwrap());
            let (mut stations, mut card) = (Stations::new(ROWS).unwrap(), Card::default());
            let mut writes = Vec::new();
            for ((learner, program), net) in learners.iter().zip(&programs).zip(0..) {
                learner.rows(program, net, 0).for_each(|row| stations.set(row, &mut writes));
            }
            card.write(&writes);
            let mut now_ns = SECOND_NS;
            for (which, mac, vport, wait) in steps {
                now_ns += wait;
                let mut writes = Vec::new();
                for ((learner, program), net) in learners.iter_mut().zip(&programs).zip(0..) {
                    learner.advance(program, net, now_ns, &mut stations, &mut writes);
                }
                // A card leaves a note only if the row does not say the same, or is old.
                card.write(&writes);
                let port = programs[which].ports[usize::from(vport)].port.get();
                let row = card.of(which as u8).get(&mac).copied();
                let note = row.is_none_or(|(at, _, old)| at != port || old);
                let fixed = row.is_some_and(|(_, fixed, _)| fixed);
                if note && !fixed {
                    let mut writes = Vec::new();
                    learners[which].learn(&programs[which], which as u8, (mac, vport), now_ns, &mut stations, &mut writes);
                    card.write(&writes);
                }
                for ((learner, program), net) in learners.iter().zip(&programs).zip(0u8..) {
                    let want = learner.entries(now_ns).into_iter().map(|entry| {
                        let old = !entry.fixed && entry.age_ns >= SECOND_NS;
                        (entry.mac, (program.ports[usize::from(entry.hop)].port.get(), entry.fixed, old))
                    });
                    prop_assert_eq!(card.of(net), want.collect::<BTreeMap<_, _>>());
                }
            }
        }
    }

    /// All networks together may have as many addresses as can be set aside, and each is found.
    #[test]
    fn what_is_set_aside_has_room() {
        let (mut stations, mut card) = (Stations::new(ROWS).unwrap(), Card::default());
        let row = |n: u64| StationRow {
            valid: true,
            mac: n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 16,
            net: (n % 7) as u8,
            port: (n % 4) as u8,
            fixed: false,
            old: false,
        };
        let count = u64::from(ROWS) * 9 / 10;
        for n in 0..count {
            let mut writes = Vec::new();
            stations.set(row(n), &mut writes);
            card.write(&writes);
        }
        assert_eq!(card.0.len() as u64, count);
        assert!((0..count).all(|n| card.of((n % 7) as u8).contains_key(&row(n).mac)));
        let mut writes = Vec::new();
        stations.replace(3, [], &mut writes);
        card.write(&writes);
        assert!(card.of(3).is_empty());
        assert_eq!(card.0.len() as u64, count - (0..count).filter(|n| n % 7 == 3).count() as u64);
    }
}
