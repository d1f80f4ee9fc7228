//! What a network of a kind that learns knows: which port its hosts are behind, and how much it may still flood.
//!
//! The network's home owns it and enters what each packet teaches before it looks at the next packet.

use hue_planes::{Learning, Meter, RateLimit};
use hue_substrate::Program;
use hue_tables::{Learnt, MacEntry, MacKey, MacTable};
use hue_wire::Mac;

/// See the head of this file.
#[derive(Clone, Debug)]
pub struct Switch {
    /// The table. Its hops are virtual ports.
    pub macs: MacTable,
    limit: Option<RateLimit>,
    storm: Option<Meter>,
    counts: SwitchCounts,
}

/// What happened to addresses since the network was loaded.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SwitchCounts {
    /// Addresses learnt.
    pub learnt: u64,
    /// Learnt addresses that moved to another port.
    pub moved: u64,
    /// Frames whose sender was not learnt, because the network has reached its limit.
    pub not_learnt: u64,
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
    /// That of a network that is loaded, or loaded again. `at` maps its former virtual ports to the present ones.
    pub fn new(
        program: &Program,
        learning: Learning,
        before: Option<&Self>,
        at: impl Fn(u16) -> Option<u16>,
    ) -> Self {
        let Learning { entries_max, ageing_ns, storm_limit } = learning;
        let fixed: Vec<(MacKey, u16)> =
            program.entries.macs().iter().map(|(mac, hop)| (mac.to_u64(), hop.get())).collect();
        let macs = match before {
            Some(before) => before.macs.with(&fixed, entries_max, ageing_ns, at),
            None => MacTable::new(&fixed, entries_max, ageing_ns),
        };
        let storm = match before.filter(|before| before.limit == storm_limit) {
            Some(before) => before.storm,
            None => storm_limit.map(Meter::new),
        };
        Self { macs, limit: storm_limit, storm, counts: before.map(Self::counts).unwrap_or_default() }
    }

    /// The same with the entries of these addresses only: what a decision about one packet depends on.
    pub fn only(&self, macs: &[MacKey]) -> Self {
        Self { macs: self.macs.only(macs), limit: self.limit, storm: self.storm, counts: self.counts }
    }

    /// Enters what a packet teaches.
    #[inline]
    pub fn learn(&mut self, mac: MacKey, vport: u16, now_ns: u64) {
        match self.macs.learn(mac, vport, now_ns) {
            Learnt::Known | Learnt::Fixed => {}
            Learnt::New => self.counts.learnt += 1,
            Learnt::Moved => self.counts.moved += 1,
            Learnt::Full => self.counts.not_learnt += 1,
        }
    }

    /// Enters what the home before had learnt; see [`MacTable::adopt`]. It is not counted as learnt here.
    pub fn adopt(&mut self, rows: &[MacRow], now_ns: u64) {
        let entry = |row: &MacRow| MacEntry {
            mac: row.mac.to_u64(),
            hop: row.vport,
            fixed: row.fixed,
            age_ns: row.age_ns,
        };
        self.macs.adopt(&rows.iter().map(entry).collect::<Vec<_>>(), now_ns);
    }

    /// Whether a packet may be sent to all ports; charges the limit if so.
    #[inline]
    pub fn may_flood(&mut self, now_ns: u64, frame_bytes: usize) -> bool {
        self.storm.as_mut().is_none_or(|meter| meter.conforms(now_ns, frame_bytes))
    }

    /// What happened to addresses.
    pub fn counts(&self) -> SwitchCounts {
        self.counts
    }

    /// The table, in no order: sorting is not for the worker's thread.
    pub fn rows(&self, now_ns: u64) -> Vec<MacRow> {
        let row = |entry: MacEntry| MacRow {
            mac: Mac::from_u64(entry.mac),
            vport: entry.hop,
            fixed: entry.fixed,
            age_ns: if entry.fixed { 0 } else { entry.age_ns },
        };
        self.macs.entries(now_ns).map(row).collect()
    }
}
