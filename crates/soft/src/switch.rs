//! What a network of a kind that learns knows: which port its hosts are behind, and how much it may still flood.
//!
//! The network's home owns it and enters what each packet teaches before it looks at the next packet.

use hue_planes::{Debts, Learning, Meter, RateLimit};
use hue_substrate::handover::Sighting;
use hue_substrate::{Addresses, Program, VirtualPort};
use hue_tables::{Learnt, MacEntry, MacKey};
use hue_wire::Mac;

/// See the head of this file.
#[derive(Clone, Debug)]
pub struct Switch {
    /// Where its hosts are.
    pub addresses: Addresses,
    limit: Option<RateLimit>,
    storm: Option<Meter>,
    /// What frames have taught since it was last taken, while somebody wants to know; see [`Switch::tell`].
    told: Option<Vec<Sighting>>,
}

/// An entry of a network's table of MAC addresses.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct MacRow {
    /// The address.
    pub mac: Mac,
    /// Index of the virtual port that it is behind.
    pub vport: u16,
    /// Whether it is static, not learnt.
    pub fixed: bool,
    /// Time since the last frame that taught it, nanoseconds; 0 for a static one.
    pub age_ns: u64,
}

impl Switch {
    /// That of a network that is loaded, or loaded again: `before` is that before, and the virtual ports that the network had.
    pub fn new(program: &Program, learning: Learning, before: Option<(&Self, &[VirtualPort])>) -> Self {
        let limit = learning.storm_limit;
        let known = before.map(|(before, ports)| (&before.addresses, ports));
        let addresses = Addresses::new(program, learning, known);
        let storm = match before.filter(|(before, _)| before.limit == limit) {
            Some((before, _)) => before.storm,
            None => limit.map(Meter::new),
        };
        Self { addresses, limit, storm, told: None }
    }

    /// The same with the entries of these addresses only: what a decision about one packet depends on.
    pub fn only(&self, macs: &[MacKey]) -> Self {
        Self { addresses: self.addresses.only(macs), limit: self.limit, storm: self.storm, told: None }
    }

    /// Enters what the home before had learnt; see [`hue_tables::MacTable::adopt`]. It is not counted as learnt here.
    pub fn adopt(&mut self, rows: &[MacRow], now_ns: u64) {
        let entry = |row: &MacRow| MacEntry {
            mac: row.mac.to_u64(),
            hop: row.vport,
            fixed: row.fixed,
            age_ns: row.age_ns,
        };
        self.addresses.macs.adopt(&rows.iter().map(entry).collect::<Vec<_>>(), now_ns);
    }

    /// Enters what a frame teaches: an address is behind a virtual port.
    #[inline]
    pub fn learn(&mut self, mac: MacKey, vport: u16, now_ns: u64) {
        let became = self.addresses.learn(mac, vport, now_ns);
        if let Some(told) = &mut self.told
            && matches!(became, Learnt::New | Learnt::Moved)
            && told.len() < told.capacity()
        {
            told.push(Sighting { mac, vport, seen_ns: now_ns });
        }
    }

    /// Keeps what frames teach from now on, up to `most` addresses, until [`Switch::take_told`] takes it; or ends this.
    pub fn tell(&mut self, most: Option<usize>) {
        self.told = most.map(Vec::with_capacity);
    }

    /// What frames have taught since the last call. What is not taken is lost when there is no more room.
    pub fn take_told(&mut self, take: impl FnOnce(&[Sighting])) {
        if let Some(told) = self.told.as_mut().filter(|told| !told.is_empty()) {
            take(told);
            told.clear();
        }
    }

    /// What it has learnt, in no order; static entries are not among it.
    pub fn sightings(&self, now_ns: u64) -> impl Iterator<Item = Sighting> + '_ {
        let learnt = self.addresses.macs.entries(now_ns).filter(|entry| !entry.fixed);
        learnt.map(move |MacEntry { mac, hop, age_ns, .. }| Sighting {
            mac,
            vport: hop,
            seen_ns: now_ns.saturating_sub(age_ns),
        })
    }

    /// The debts of its storm limit; `None` if it has none.
    pub fn debts(&self) -> Option<Debts> {
        self.storm.as_ref().map(Meter::debts)
    }

    /// Sets the debts of its storm limit; does nothing if it has none.
    pub fn set_debts(&mut self, debts: Debts) {
        if let Some(meter) = &mut self.storm {
            meter.set_debts(debts.within(meter.limit()));
        }
    }

    /// Whether a packet may be sent to all ports; charges the limit if so.
    #[inline]
    pub fn may_flood(&mut self, now_ns: u64, frame_bytes: usize) -> bool {
        self.storm.as_mut().is_none_or(|meter| meter.conforms(now_ns, frame_bytes))
    }

    /// The table, in no order: sorting is not for the worker's thread.
    pub fn rows(&self, now_ns: u64) -> Vec<MacRow> {
        let row = |entry: MacEntry| MacRow {
            mac: Mac::from_u64(entry.mac),
            vport: entry.hop,
            fixed: entry.fixed,
            age_ns: if entry.fixed { 0 } else { entry.age_ns },
        };
        self.addresses.macs.entries(now_ns).map(row).collect()
    }
}
