//! A row of a network's next-hop table: what to do with packets whose route names it.
//!
//! 16 bytes, so that four share a cache line. The MAC pair has the order of the wire (destination, source), so that
//! rewriting is one copy of 12 bytes.

use std::fmt;

use hue_demux::PortId;
use hue_wire::ethernet::Macs;
use hue_wire::{Mac, mpls};
use serde::{Deserialize, Serialize};

/// Kind of an [`Adjacency`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[repr(u8)]
pub enum AdjacencyKind {
    /// No route: the result of a lookup without a match. No route names it.
    None = 0,
    /// The router itself: punt.
    Local = 1,
    /// A link's own prefix, or a gateway without a known MAC address: punt until there is a neighbour.
    Glean = 2,
    /// A neighbour: rewrite and send.
    Forward = 3,
    /// A port of the network: send, unchanged but for the MAC addresses that the row has.
    Port = 4,
    /// Several rows, one of which a packet's hash selects.
    Group = 5,
    /// Drop: an entry of a table that says so. Kinds with routes have no such rows.
    Drop = 6,
    /// Labels that replace the top of a stack, and the row by which packets leave then ([`Adjacency::then`]).
    Labels = 7,
}

/// Most labels of a row.
pub const LABELS_MAX: usize = 3;
/// Bytes of a label in a row.
const LABEL_BYTES: usize = 3;

/// One next hop.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[repr(C, align(16))]
pub struct Adjacency {
    macs: Macs,
    mtu_bytes: u16,
    port: PortId,
    kind: AdjacencyKind,
}

const _: () = assert!(size_of::<Adjacency>() == 16);

impl Adjacency {
    /// The row of "no route".
    pub const NONE: Self = Self::without_neighbour(AdjacencyKind::None, PortId::new(0));

    const fn without_neighbour(kind: AdjacencyKind, port: PortId) -> Self {
        Self { macs: Macs { destination: Mac::ZERO, source: Mac::ZERO }, mtu_bytes: 0, port, kind }
    }

    /// The router itself.
    #[must_use]
    pub const fn local() -> Self {
        Self::without_neighbour(AdjacencyKind::Local, PortId::new(0))
    }

    /// A destination or gateway on the link at `port` whose MAC address is not known.
    #[must_use]
    pub const fn glean(port: PortId) -> Self {
        Self::without_neighbour(AdjacencyKind::Glean, port)
    }

    /// A neighbour at `dst`, reached through `port`, whose address there is `src`. `mtu_bytes` is the longest IP
    /// packet that the port accepts.
    #[must_use]
    pub const fn forward(port: PortId, src: Mac, dst: Mac, mtu_bytes: u16) -> Self {
        let macs = Macs { destination: dst, source: src };
        Self { macs, mtu_bytes, port, kind: AdjacencyKind::Forward }
    }

    /// A port of the network, on which frames are sent unchanged. `mtu_bytes` is the longest IP packet that it accepts.
    #[must_use]
    pub const fn out(port: PortId, mtu_bytes: u16) -> Self {
        Self { mtu_bytes, ..Self::without_neighbour(AdjacencyKind::Port, port) }
    }

    /// The same, with the MAC addresses replaced for which there is another one.
    #[must_use]
    pub const fn out_with(
        port: PortId,
        mtu_bytes: u16,
        destination: Option<Mac>,
        source: Option<Mac>,
    ) -> Self {
        const fn of(mac: Option<Mac>) -> Mac {
            match mac {
                Some(mac) => mac,
                None => Mac::ZERO,
            }
        }
        let macs = Macs { destination: of(destination), source: of(source) };
        Self { macs, ..Self::out(port, mtu_bytes) }
    }

    /// An entry whose packets are dropped.
    #[must_use]
    pub const fn drop() -> Self {
        Self::without_neighbour(AdjacencyKind::Drop, PortId::new(0))
    }

    /// A group of rows. `number` is for those who keep its slots, and 0 elsewhere: everywhere else a row's slots are found by
    /// the row's index.
    #[must_use]
    pub const fn group(number: u16) -> Self {
        let [high, low] = number.to_be_bytes();
        let row = Self::without_neighbour(AdjacencyKind::Group, PortId::new(0));
        Self { macs: Macs { destination: Mac::ZERO, source: Mac([0, 0, 0, 0, high, low]) }, ..row }
    }

    /// The number of a group; see [`Adjacency::group`].
    #[inline]
    #[must_use]
    pub const fn group_number(&self) -> u16 {
        let Mac([.., high, low]) = self.macs.source;
        u16::from_be_bytes([high, low])
    }

    /// Labels, from the lowest to the top, which replace the top of a stack, and the row by which packets leave then. `None` if
    /// there are more than [`LABELS_MAX`], or one is above 20 bits.
    #[must_use]
    pub fn labels(labels: &[u32], then: u16) -> Option<Self> {
        let mut bytes = [0; 12];
        let (count, places) = bytes.split_first_mut()?;
        *count = u8::try_from(labels.len()).ok().filter(|count| usize::from(*count) <= LABELS_MAX)?;
        for (place, label) in places.chunks_exact_mut(LABEL_BYTES).zip(labels) {
            let [0, rest @ ..] = label.to_be_bytes() else { return None };
            if *label > mpls::LABEL_MAX {
                return None;
            }
            place.copy_from_slice(&rest);
        }
        let [destination @ .., _, _, _, _, _, _] = bytes;
        let [_, _, _, _, _, _, source @ ..] = bytes;
        let macs = Macs { destination: Mac(destination), source: Mac(source) };
        let row = Self::without_neighbour(AdjacencyKind::Labels, PortId::new(0));
        Some(Self { macs, mtu_bytes: then, ..row })
    }

    /// How many labels a row with labels has; 0 for another row.
    #[inline(always)]
    #[must_use]
    pub const fn label_count(&self) -> usize {
        let Mac([count, ..]) = self.macs.destination;
        if matches!(self.kind, AdjacencyKind::Labels) && count as usize <= LABELS_MAX {
            count as usize
        } else {
            0
        }
    }

    /// A label of such a row, from the lowest on, below [`LABELS_MAX`].
    #[inline(always)]
    #[must_use]
    pub const fn label(&self, at: usize) -> u32 {
        let (Mac([_, a, b, c, d, e]), Mac([f, g, h, i, ..])) = (self.macs.destination, self.macs.source);
        let [high, middle, low] = match at {
            0 => [a, b, c],
            1 => [d, e, f],
            _ => [g, h, i],
        };
        u32::from_be_bytes([0, high, middle, low])
    }

    /// The row by which packets leave that got the labels of a row of kind [`AdjacencyKind::Labels`].
    #[inline(always)]
    #[must_use]
    pub const fn then(&self) -> u16 {
        self.mtu_bytes
    }

    /// The same row on another port; unchanged if the row names no port.
    #[must_use]
    pub const fn on_port(self, port: PortId) -> Self {
        match self.kind {
            AdjacencyKind::None
            | AdjacencyKind::Local
            | AdjacencyKind::Group
            | AdjacencyKind::Drop
            | AdjacencyKind::Labels => self,
            AdjacencyKind::Glean | AdjacencyKind::Forward | AdjacencyKind::Port => Self { port, ..self },
        }
    }

    /// Its kind.
    #[inline(always)]
    #[must_use]
    pub const fn kind(&self) -> AdjacencyKind {
        self.kind
    }

    /// Port to send on; for a glean row, the port to resolve the address on.
    #[inline(always)]
    #[must_use]
    pub const fn port(&self) -> PortId {
        self.port
    }

    /// Longest IP packet that the port accepts, bytes; 0 unless the row forwards or is a port.
    #[inline(always)]
    #[must_use]
    pub const fn mtu_bytes(&self) -> u16 {
        self.mtu_bytes
    }

    /// Destination and source MAC address as on the wire; zeros unless the row replaces them.
    #[inline(always)]
    #[must_use]
    pub const fn macs(&self) -> &Macs {
        &self.macs
    }

    /// The neighbour's MAC address.
    #[must_use]
    pub const fn dst(&self) -> Mac {
        self.macs.destination
    }

    /// The sending port's MAC address.
    #[must_use]
    pub const fn src(&self) -> Mac {
        self.macs.source
    }
}

impl fmt::Debug for Adjacency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Adjacency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            AdjacencyKind::None => f.write_str("none"),
            AdjacencyKind::Local => f.write_str("local"),
            AdjacencyKind::Group => f.write_str("group"),
            AdjacencyKind::Glean => write!(f, "glean on port {}", self.port),
            AdjacencyKind::Drop => f.write_str("drop"),
            AdjacencyKind::Labels => {
                f.write_str(if self.label_count() == 0 { "no label" } else { "labels" })?;
                (0..self.label_count()).try_for_each(|at| write!(f, " {}", self.label(at)))?;
                write!(f, ", then next hop {}", self.then())
            }
            AdjacencyKind::Port => {
                write!(f, "port {}", self.port)?;
                let macs = [("destination", self.dst()), ("source", self.src())];
                for (name, mac) in macs.into_iter().filter(|(_, mac)| *mac != Mac::ZERO) {
                    write!(f, ", {name} {mac}")?;
                }
                write!(f, ", MTU {}", self.mtu_bytes)
            }
            AdjacencyKind::Forward => write!(
                f,
                "forward on port {}, source {}, destination {}, MTU {}",
                self.port,
                self.src(),
                self.dst(),
                self.mtu_bytes
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_keeps_its_labels() {
        let all = [16, mpls::LABEL_MAX, 0];
        for count in 0..=LABELS_MAX {
            let row = Adjacency::labels(&all[..count], u16::MAX - 1).unwrap();
            let labels: Vec<u32> = (0..row.label_count()).map(|at| row.label(at)).collect();
            assert_eq!((&labels[..], row.then()), (&all[..count], u16::MAX - 1));
            assert_eq!(row.on_port(PortId::new(3)), row);
        }
        assert_eq!(Adjacency::labels(&[16; LABELS_MAX + 1], 0), None);
        assert_eq!(Adjacency::labels(&[mpls::LABEL_MAX + 1], 0), None);
        assert_eq!(Adjacency::out(PortId::new(1), 1500).label_count(), 0);
    }
}
