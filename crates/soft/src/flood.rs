//! Copies of group frames that several networks receive: each network's plane processes its own. Not in the fast path.
//!
//! Only forwarded copies take memory, because other copies equal the frame.

use hue_demux::{PortId, Target};
use hue_planes::{Plane, Reason, finish, with_plane};
use hue_tables::Guard;

use crate::engine::place;
use crate::frame::{Fate, Frame};
use crate::matching::{At, Matching};
use crate::network::Network;
use crate::policies::redirected;

/// Most copies of one batch, unless a single frame needs more.
pub const COPIES_MAX: usize = 4096;

/// A copy of a flooded frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FloodCopy<'a> {
    /// Which frame of the batch it is a copy of.
    pub frame: usize,
    /// The copy's fate.
    pub fate: Fate,
    /// Its bytes when it is forwarded; `None` when they are the frame's.
    pub bytes: Option<&'a [u8]>,
}

#[derive(Default)]
pub(crate) struct Copies {
    rows: Vec<Copy>,
    bytes: Vec<u8>,
}

struct Copy {
    frame: usize,
    fate: Fate,
    start: usize,
    len: usize,
}

impl Copies {
    pub fn clear(&mut self) {
        self.rows.clear();
        self.bytes.clear();
    }

    pub fn have_room(&self, copies: usize) -> bool {
        self.rows.is_empty() || self.rows.len() + copies <= COPIES_MAX
    }

    /// Makes a copy for each target, given with the slot of its network.
    #[cold]
    pub fn flood(
        &mut self,
        index: usize,
        frame: &Frame,
        bytes: &[u8],
        targets: impl Iterator<Item = (Target, u16)>,
        networks: &mut [Network],
        table: &Guard<'_>,
    ) {
        for (target, slot) in targets {
            let Some(network) = networks.get_mut(place(slot)) else { continue };
            let start = self.bytes.len();
            let (outcome, egress) =
                with_plane!(network.kind(), P => self.copy::<P>(frame, target.vport, bytes, network, table));
            let fate = Fate::Network { vid: target.vid, vport: target.vport, outcome, egress };
            self.rows.push(Copy { frame: index, fate, start, len: self.bytes.len() - start });
        }
    }

    /// Passes one network's copy through all stages after design select, and appends its bytes if it is forwarded.
    fn copy<P: Plane<Match: Matching<P>>>(
        &mut self,
        frame: &Frame,
        vport: u16,
        bytes: &[u8],
        network: &mut Network,
        table: &Guard<'_>,
    ) -> (Reason, PortId) {
        let mut egress = frame.port;
        let admitted = network.admit(frame.time_ns, bytes.len());
        let carried = admitted.and_then(|()| P::front(bytes, P::settings(&network.settings)));
        let outcome = carried.map_or_else(
            |outcome| outcome,
            |carried| {
                let at = At { vport, time_ns: frame.time_ns, bytes: bytes.len(), flow: P::flow(bytes) };
                let word = P::Match::word(table, network.vid, P::key(carried));
                let word = redirected(network, table, word, bytes);
                let (answer, left) = P::Match::answer(network, word, carried, at);
                let (start, hop) = (self.bytes.len(), P::egress(answer));
                let outcome = if P::RESIZES {
                    let mut copy = bytes.to_vec();
                    let outcome = finish::<P>(&mut copy, carried, answer);
                    self.bytes.extend_from_slice(&copy);
                    outcome
                } else {
                    if P::decide(carried, answer).is_forward() {
                        self.bytes.extend_from_slice(bytes);
                    }
                    P::back(self.bytes.get_mut(start..).unwrap_or_default(), carried, answer)
                };
                let outcome = P::Match::settle(network, bytes, carried, outcome, at, left);
                egress = if outcome.has_one_egress() { hop } else { frame.port };
                if !outcome.is_forward() {
                    self.bytes.truncate(start);
                }
                outcome
            },
        );
        network.counters.count(outcome);
        (outcome, egress)
    }

    pub fn iter(&self) -> impl Iterator<Item = FloodCopy<'_>> {
        self.rows.iter().map(|row| FloodCopy {
            frame: row.frame,
            fate: row.fate,
            bytes: if row.len == 0 { None } else { self.bytes.get(row.start..row.start + row.len) },
        })
    }
}
