//! The demultiplexer: built from rows, then queried for each frame.

use std::collections::HashMap;

use hue_tables::{Prefix4, Vid};

use crate::inner::{Ranges, inner_destination};
use crate::mac_table::{MacTable, frame_key, row_key};
use crate::types::{Attachment, By, DemuxError, Match, PortId, ROWS_MAX, Row, Target};

const ETHERNET_BYTES: usize = 14;
/// The group bit in the first byte of a MAC address (IEEE 802 §8.2).
const GROUP_BIT: u8 = 1;

/// The networks that a frame belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Selection<'a> {
    /// One network.
    One(Target, By),
    /// Several virtual ports get a copy each: a group frame.
    Several(&'a [Target]),
    /// No network.
    Nobody,
}

/// The rows of a port that do not depend on the destination MAC.
#[derive(Clone, Debug, Default)]
struct PortRows {
    /// The row that claims the entire port.
    all: Option<Target>,
    /// Index into [`Demux::inner`].
    inner: u16,
    /// Virtual ports on this port: a range of [`Demux::attached`].
    attached: (u32, u32),
}

/// The design select of a node.
#[derive(Clone, Debug)]
pub struct Demux {
    macs: MacTable,
    /// One for each of the [`PortId::COUNT`] ports.
    ports: Box<[PortRows]>,
    /// Inner prefixes. The first entry is for ports without their own prefixes.
    inner: Vec<Ranges>,
    /// Attachments, sorted by port, then by VID and virtual port.
    attached: Vec<Target>,
}

impl Demux {
    /// Builds a demultiplexer from these rows; `attached` decides on group frames. The order of both is
    /// irrelevant.
    ///
    /// # Errors
    /// `Conflict` if two rows claim the same frames: the same MAC on a port, the same prefix on a port (a
    /// prefix on any port conflicts with the same one on a single port), or the same port. `GroupMac` for a
    /// row with a group MAC. `Full` for more than [`ROWS_MAX`] rows or attachments.
    pub fn new(rows: &[Row], attached: &[Attachment]) -> Result<Self, DemuxError> {
        for (what, count) in [("rows", rows.len()), ("attachments", attached.len())] {
            if count > ROWS_MAX {
                return Err(DemuxError::Full { what, count });
            }
        }
        check_claims(rows)?;
        let mut ports = vec![PortRows::default(); PortId::COUNT].into_boxed_slice();
        let mut macs = Vec::new();
        for row in rows {
            let target = target_of(row);
            match row.select {
                Match::Mac { port, mac } => macs.push((row_key(port, mac), target)),
                Match::Port(port) => ports[port.index()].all = Some(target),
                Match::Inner { .. } => {}
            }
        }
        let inner = inner_ranges(rows, &mut ports);
        let attached = attach(attached, &mut ports);
        Ok(Self { macs: MacTable::new(&macs), ports, inner, attached })
    }

    /// Finds the networks of a frame that arrived on `port`. A frame below 14 bytes belongs to no network.
    #[inline]
    #[must_use]
    pub fn select(&self, port: PortId, frame: &[u8]) -> Selection<'_> {
        match self.select_mac(port, frame) {
            Some(target) => Selection::One(target, By::Mac),
            None => self.select_rest(port, frame),
        }
    }

    /// Finds the network of a frame by its destination MAC, which has priority and is the common case.
    /// Returns `None` if no MAC row matches; call [`Demux::select`] then.
    #[inline(always)]
    #[must_use]
    pub fn select_mac(&self, port: PortId, frame: &[u8]) -> Option<Target> {
        let head = frame.first_chunk::<8>()?;
        self.macs.get(frame_key(port, *head))
    }

    #[cold]
    fn select_rest(&self, port: PortId, frame: &[u8]) -> Selection<'_> {
        let Some(head) = frame.first_chunk::<ETHERNET_BYTES>() else { return Selection::Nobody };
        let rows = &self.ports[port.index()];
        if head[0] & GROUP_BIT != 0 {
            let (from, to) = rows.attached;
            return match self.attached.get(from as usize..to as usize) {
                Some([one]) => Selection::One(*one, By::Group),
                Some(several @ [_, ..]) => Selection::Several(several),
                _ => Selection::Nobody,
            };
        }
        let ranges = &self.inner[usize::from(rows.inner)];
        if !ranges.is_empty()
            && let Some(target) = inner_destination(frame).and_then(|address| ranges.get(address))
        {
            return Selection::One(target, By::Inner);
        }
        match rows.all {
            Some(target) => Selection::One(target, By::Port),
            None => Selection::Nobody,
        }
    }

    /// The virtual ports attached to a port, sorted by VID and virtual port.
    #[must_use]
    pub fn attached(&self, port: PortId) -> &[Target] {
        let (from, to) = self.ports[port.index()].attached;
        self.attached.get(from as usize..to as usize).unwrap_or_default()
    }
}

impl Default for Demux {
    /// A demultiplexer without rows: frames belong to no network.
    fn default() -> Self {
        Self {
            macs: MacTable::new(&[]),
            ports: vec![PortRows::default(); PortId::COUNT].into_boxed_slice(),
            inner: vec![Ranges::default()],
            attached: Vec::new(),
        }
    }
}

fn target_of(row: &Row) -> Target {
    Target { vid: row.vid, vport: row.vport }
}

fn check_claims(rows: &[Row]) -> Result<(), DemuxError> {
    let mut claims: HashMap<Match, Vid> = HashMap::with_capacity(rows.len());
    // Networks with a prefix on a single port: a row for any port conflicts with the same prefix there.
    let mut single: HashMap<Prefix4, Vid> = HashMap::new();
    for row in rows {
        if let Match::Mac { port, mac } = row.select
            && mac.is_multicast()
        {
            return Err(DemuxError::GroupMac { vid: row.vid, port, mac });
        }
        let other = match row.select {
            Match::Inner { port: Some(_), prefix } => {
                single.entry(prefix).or_insert(row.vid);
                claims.get(&Match::Inner { port: None, prefix }).copied()
            }
            Match::Inner { port: None, prefix } => single.get(&prefix).copied(),
            _ => None,
        };
        if let Some(first) = other.or_else(|| claims.insert(row.select, row.vid)) {
            return Err(DemuxError::Conflict { first, second: row.vid, claim: row.select });
        }
    }
    Ok(())
}

/// The ranges of each port that has its own prefixes, including those for any port. The first are for all
/// other ports.
fn inner_ranges(rows: &[Row], ports: &mut [PortRows]) -> Vec<Ranges> {
    let on = |wanted: Option<PortId>| -> Vec<(Prefix4, Target)> {
        rows.iter()
            .filter_map(|row| match row.select {
                Match::Inner { port, prefix } if port.is_none() || port == wanted => {
                    Some((prefix, target_of(row)))
                }
                _ => None,
            })
            .collect()
    };
    let mut inner = vec![Ranges::new(&on(None))];
    for row in rows {
        if let Match::Inner { port: Some(port), .. } = row.select
            && let rows = &mut ports[port.index()]
            && rows.inner == 0
        {
            rows.inner = inner.len() as u16; // at most PortId::COUNT
            inner.push(Ranges::new(&on(Some(port))));
        }
    }
    inner
}

fn attach(attached: &[Attachment], ports: &mut [PortRows]) -> Vec<Target> {
    let mut sorted = attached.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    for (index, one) in sorted.iter().enumerate() {
        let range = &mut ports[one.port.index()].attached;
        let index = index as u32; // at most ROWS_MAX
        if range.1 == 0 {
            range.0 = index;
        }
        range.1 = index + 1;
    }
    sorted.into_iter().map(|one| Target { vid: one.vid, vport: one.vport }).collect()
}

#[cfg(test)]
mod tests {
    use hue_wire::Mac;
    use proptest::prelude::*;

    use super::*;

    const P0: PortId = PortId::new(0);
    const P1: PortId = PortId::new(1);

    fn vid(id: u16) -> Vid {
        Vid::new(id).unwrap()
    }

    fn mac(last: u8) -> Mac {
        Mac([2, 0, 0, 0, 0, last])
    }

    fn by_mac(id: u16, port: PortId, last: u8) -> Row {
        Row { vid: vid(id), vport: 0, select: Match::Mac { port, mac: mac(last) } }
    }

    fn by_inner(id: u16, port: Option<PortId>, prefix: &str) -> Row {
        Row { vid: vid(id), vport: 0, select: Match::Inner { port, prefix: prefix.parse().unwrap() } }
    }

    fn by_port(id: u16, port: PortId) -> Row {
        Row { vid: vid(id), vport: 0, select: Match::Port(port) }
    }

    fn frame(dst: Mac, address: [u8; 4]) -> Vec<u8> {
        let mut bytes = dst.0.to_vec();
        bytes.extend([2, 9, 9, 9, 9, 9, 8, 0, 0x45, 0, 0, 20, 0, 0, 0, 0, 64, 6, 0, 0, 1, 1, 1, 1]);
        bytes.extend(address);
        bytes
    }

    fn one(selection: Selection<'_>) -> Option<(u16, By)> {
        match selection {
            Selection::One(target, by) => Some((target.vid.get(), by)),
            Selection::Several(_) => panic!("{selection:?}"),
            Selection::Nobody => None,
        }
    }

    #[test]
    fn mac_then_inner_then_port() {
        let rows = [
            by_mac(1, P0, 1),
            by_inner(2, None, "10.0.0.0/8"),
            by_inner(3, Some(P0), "10.1.0.0/16"),
            by_port(4, P0),
        ];
        let demux = Demux::new(&rows, &[]).unwrap();
        let ask = |port, last, address| one(demux.select(port, &frame(mac(last), address)));
        assert_eq!(ask(P0, 1, [10, 1, 0, 1]), Some((1, By::Mac)));
        assert_eq!(ask(P0, 2, [10, 1, 0, 1]), Some((3, By::Inner)));
        assert_eq!(ask(P0, 2, [10, 2, 0, 1]), Some((2, By::Inner)));
        assert_eq!(ask(P0, 2, [11, 0, 0, 1]), Some((4, By::Port)));
        assert_eq!(ask(P1, 1, [10, 1, 0, 1]), Some((2, By::Inner)), "MAC and prefix are of port 0 only");
        assert_eq!(ask(P1, 1, [11, 0, 0, 1]), None);
    }

    #[test]
    fn malformed_inner_packets_select_by_port() {
        let demux = Demux::new(&[by_inner(1, None, "0.0.0.0/0"), by_port(2, P0)], &[]).unwrap();
        let mut bytes = frame(mac(1), [10, 0, 0, 1]);
        assert_eq!(one(demux.select(P0, &bytes)), Some((1, By::Inner)));
        bytes[23] = 4;
        assert_eq!(one(demux.select(P0, &bytes)), Some((2, By::Port)));
        bytes.truncate(33);
        assert_eq!(one(demux.select(P0, &bytes)), Some((2, By::Port)));
    }

    #[test]
    fn group_frames_reach_all_attached_ports() {
        let at = |port, id, vport| Attachment { port, vid: vid(id), vport };
        let attached = [at(P1, 3, 1), at(P0, 2, 0), at(P0, 1, 0), at(P0, 1, 7), at(P0, 1, 0)];
        let demux = Demux::new(&[by_port(9, P0)], &attached).unwrap();
        let broadcast = frame(Mac::BROADCAST, [10, 0, 0, 1]);
        let target = |id, vport| Target { vid: vid(id), vport };
        let several = [target(1, 0), target(1, 7), target(2, 0)];
        assert_eq!(demux.select(P0, &broadcast), Selection::Several(&several));
        assert_eq!(demux.attached(P0), several);
        let multicast = frame(Mac([1, 0, 0x5e, 0, 0, 5]), [224, 0, 0, 5]);
        assert_eq!(demux.select(P1, &multicast), Selection::One(target(3, 1), By::Group));
        assert_eq!(demux.select(PortId::new(2), &broadcast), Selection::Nobody);
    }

    #[test]
    fn conflicts_name_both_networks() {
        let clash = |rows: &[Row]| Demux::new(rows, &[]).unwrap_err().to_string();
        assert_eq!(
            clash(&[by_mac(1, P0, 5), by_mac(2, P0, 5)]),
            "networks 1 and 2 both claim MAC 02:00:00:00:00:05 on port 0"
        );
        assert_eq!(
            clash(&[by_port(1, P1), by_port(3, P1)]),
            "networks 1 and 3 both claim everything on port 1"
        );
        let prefix = "10.0.0.0/8";
        for (one, other) in [(None, None), (None, Some(P0)), (Some(P0), None), (Some(P0), Some(P0))] {
            let text = clash(&[by_inner(1, one, prefix), by_inner(2, other, prefix)]);
            assert!(text.starts_with("networks 1 and 2 both claim inner prefix 10.0.0.0/8"), "{text}");
        }
        assert!(Demux::new(&[by_inner(1, Some(P0), prefix), by_inner(2, Some(P1), prefix)], &[]).is_ok());
        assert!(Demux::new(&[by_mac(1, P0, 5), by_mac(2, P1, 5)], &[]).is_ok());
        let group = Row { vid: vid(1), vport: 0, select: Match::Mac { port: P0, mac: Mac::BROADCAST } };
        assert!(clash(&[group]).contains("group MAC ff:ff:ff:ff:ff:ff"));
    }

    #[test]
    fn rows_have_a_limit() {
        let row = |n: usize| {
            let [a, b, c, ..] = (n as u32).to_le_bytes();
            let select = Match::Mac { port: P0, mac: Mac([2, 0, 0, a, b, c]) };
            Row { vid: vid(1), vport: 0, select }
        };
        let rows: Vec<_> = (0..=ROWS_MAX).map(row).collect();
        assert!(Demux::new(&rows[1..], &[]).is_ok());
        assert_eq!(
            Demux::new(&rows, &[]).unwrap_err(),
            DemuxError::Full { what: "rows", count: ROWS_MAX + 1 }
        );
        let attached = vec![Attachment { port: P0, vid: vid(1), vport: 0 }; ROWS_MAX + 1];
        assert!(Demux::new(&[], &attached[1..]).is_ok());
        assert!(Demux::new(&[], &attached).is_err());
    }

    proptest! {
        /// Any frame on any port gets the result of a linear scan over all rows.
        #[test]
        fn agrees_with_a_scan(
            macs in prop::collection::btree_set((0u8..3, 0u8..20), 0..30),
            inner in prop::collection::btree_set((0u32..16, 0u8..6), 0..10),
            ports in prop::collection::btree_set(0u8..3, 0..3),
            port in 0u8..4, last in 0u8..20, address in any::<[u8; 4]>(), ipv4 in any::<bool>(),
        ) {
            let mut rows: Vec<Row> = Vec::new();
            let port_of = |n: u8| PortId::new(n);
            rows.extend(macs.iter().map(|(port, last)| by_mac(1, port_of(*port), *last)));
            let prefixes: std::collections::BTreeSet<_> =
                inner.iter().map(|(bits, len)| Prefix4::containing(bits << 28, *len)).collect();
            rows.extend(prefixes.iter().map(|prefix| {
                Row { vid: vid(1), vport: 0, select: Match::Inner { port: None, prefix: *prefix } }
            }));
            rows.extend(ports.iter().map(|port| by_port(1, port_of(*port))));
            for (row, id) in rows.iter_mut().zip(1..) {
                row.vid = vid(id);
            }
            let mut bytes = frame(mac(last), address);
            if !ipv4 {
                bytes[13] = 6;
            }
            let key = u32::from_be_bytes(address);
            let rank = |row: &&Row| match row.select {
                Match::Mac { port: at, mac: dst } => (at.get() == port && dst == mac(last)).then_some(100),
                Match::Inner { prefix, .. } => (ipv4 && prefix.contains(key)).then_some(10 + u32::from(prefix.len())),
                Match::Port(at) => (at.get() == port).then_some(1),
            };
            let wanted = rows.iter().filter(|row| rank(row).is_some()).max_by_key(rank).map(|row| row.vid.get());
            let demux = Demux::new(&rows, &[]).unwrap();
            prop_assert_eq!(one(demux.select(port_of(port), &bytes)).map(|(id, _)| id), wanted);
        }
    }
}
