//! The MAC addresses of a network that learns, on whatever substrate it runs.

use hue_planes::Learning;
use hue_tables::{Learnt, MacKey, MacTable};

use crate::{Program, VirtualPort};

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

/// The table, and what happened to it.
#[derive(Clone, Debug)]
pub struct Addresses {
    /// The table. Its hops are virtual ports.
    pub macs: MacTable,
    counts: SwitchCounts,
}

impl Addresses {
    /// Those of a network that is loaded, or loaded again: `before` is what it knew, and the virtual ports that it had. What was
    /// learnt stays at ports that are still there, by name.
    #[must_use]
    pub fn new(program: &Program, learning: Learning, before: Option<(&Self, &[VirtualPort])>) -> Self {
        let Learning { entries_max, ageing_ns, .. } = learning;
        let fixed: Vec<(MacKey, u16)> =
            program.entries.macs().iter().map(|(mac, hop)| (mac.to_u64(), hop.get())).collect();
        let Some((before, ports)) = before else {
            let macs = MacTable::new(&fixed, entries_max, ageing_ns);
            return Self { macs, counts: SwitchCounts::default() };
        };
        let now = |vport: u16| {
            let name = &ports.get(usize::from(vport))?.name;
            program.ports.iter().zip(0u16..).find(|(port, _)| port.name == *name).map(|(_, now)| now)
        };
        Self { macs: before.macs.with(&fixed, entries_max, ageing_ns, now), counts: before.counts }
    }

    /// The same with the entries of these addresses only.
    #[must_use]
    pub fn only(&self, macs: &[MacKey]) -> Self {
        Self { macs: self.macs.only(macs), counts: self.counts }
    }

    /// Enters that an address is behind a virtual port; see [`MacTable::learn`].
    #[inline]
    pub fn learn(&mut self, mac: MacKey, vport: u16, now_ns: u64) -> Learnt {
        let became = self.macs.learn(mac, vport, now_ns);
        match became {
            Learnt::Known | Learnt::Fixed => {}
            Learnt::New => self.counts.learnt += 1,
            Learnt::Moved => self.counts.moved += 1,
            Learnt::Full => self.counts.not_learnt += 1,
        }
        became
    }

    /// What happened to addresses.
    #[must_use]
    pub const fn counts(&self) -> SwitchCounts {
        self.counts
    }
}
