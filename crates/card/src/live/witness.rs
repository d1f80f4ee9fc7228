//! What happened to a network's frames while it moved, as the wires of the card saw it.
//!
//! Flow: frames from wires, frames to wires → **witness** → [`Proof`]. It knows nothing of planes, counters or queues: a
//! frame that arrives for the network is remembered by what forwarding does not change of it (RFC 1812 §5.2.1: all but
//! TTL and checksum of the IPv4 header), and is found again when it leaves. Frames that arrived before it began to look
//! are nobody's. Identical frames are taken for one another. Times in nanoseconds.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hasher};

use hue_demux::{By, Demux, PortId, Selection};
use hue_wire::ethernet::EtherType;

/// Frames that are remembered at most: more than cross a card in a second at the twin's pace.
const FRAMES_MAX: usize = 1 << 18;
/// Ethernet and the shortest IPv4 header.
const HEADERS_BYTES: usize = 14 + 20;

/// What was seen in a stretch of time.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Seen {
    /// Frames that arrived for the network.
    pub received: u64,
    /// Frames of those, of any stretch, that left.
    pub sent: u64,
    /// How long it was.
    pub ns: u64,
    /// The longest time between two that left, or until the first one left since the first one arrived. One that reaches into
    /// two stretches is that of the move.
    pub gap_ns_max: u64,
}

/// What was seen of a move.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Proof {
    /// Before, while it moved, and after.
    pub seen: [Seen; 3],
    /// Frames that arrived and did not leave: lost, or dropped or answered by the network itself.
    pub missing: u64,
    /// Frames that left again.
    pub doubled: u64,
    /// Frames that left after one of the same flow that had arrived after them (RFC 4737 §3.3).
    pub reordered: u64,
    /// There were more frames than are remembered: those that came then are in none of the counts.
    pub cut: bool,
}

/// A frame, or several identical ones.
struct Frame {
    flow: u64,
    number: u32,
    /// That have not left.
    inside: u32,
}

#[derive(Default)]
struct Flow {
    arrived: u32,
    /// One above the latest number that left.
    left: u32,
}

/// See the head of this file.
pub struct Witness {
    demux: Demux,
    frames: HashMap<u64, Frame>,
    flows: HashMap<u64, Flow>,
    proof: Proof,
    at: usize,
    began_ns: u64,
    /// When the latest one left; before that, when the first one arrived.
    left_ns: Option<u64>,
    /// When the move was over.
    moved_ns: u64,
    /// Frames that are inside.
    inside: u64,
    ended: bool,
}

impl Witness {
    /// Begins to look at the network that `demux` finds the frames of, ports in the card's numbers.
    pub fn new(demux: Demux, now_ns: u64) -> Self {
        Self {
            demux,
            frames: HashMap::new(),
            flows: HashMap::new(),
            proof: Proof::default(),
            at: 0,
            began_ns: now_ns,
            left_ns: None,
            moved_ns: u64::MAX,
            inside: 0,
            ended: false,
        }
    }

    /// A frame comes from a wire.
    pub fn arrived(&mut self, port: u8, bytes: &[u8], now_ns: u64) {
        if self.ended {
            return;
        }
        let port = PortId::new(port);
        match self.demux.select(port, bytes) {
            Selection::One(_, By::Mac | By::Inner | By::Port) => {}
            _ => return,
        }
        let Some((key, flow)) = keys(bytes) else { return };
        if self.frames.len() >= FRAMES_MAX {
            self.proof.cut = true;
            return;
        }
        let count = self.flows.entry(flow).or_default();
        let number = count.arrived;
        count.arrived += 1;
        let frame = self.frames.entry(key).or_insert(Frame { flow, number, inside: 0 });
        if frame.inside == 0 {
            (frame.flow, frame.number) = (flow, number);
        }
        frame.inside += 1;
        self.inside += 1;
        self.left_ns.get_or_insert(now_ns);
        if let Some(seen) = self.proof.seen.get_mut(self.at) {
            seen.received += 1;
        }
    }

    /// A frame goes to a wire.
    pub fn left(&mut self, bytes: &[u8], now_ns: u64) {
        let Some((key, _)) = keys(bytes) else { return };
        let Some(frame) = self.frames.get_mut(&key) else { return };
        if frame.inside == 0 {
            self.proof.doubled += 1;
            return;
        }
        frame.inside -= 1;
        self.inside -= 1;
        let flow = self.flows.entry(frame.flow).or_default();
        if frame.number < flow.left {
            self.proof.reordered += 1;
        } else {
            flow.left = frame.number + 1;
        }
        if let Some(seen) = self.proof.seen.get_mut(self.at) {
            seen.sent += 1;
        }
        if let Some(before) = self.left_ns {
            let at = if before < self.moved_ns { self.at.min(1) } else { self.at };
            if let Some(seen) = self.proof.seen.get_mut(at) {
                seen.gap_ns_max = seen.gap_ns_max.max(now_ns.saturating_sub(before));
            }
        }
        self.left_ns = Some(now_ns);
    }

    /// The next stretch of time begins.
    pub fn turn(&mut self, now_ns: u64) {
        if let Some(seen) = self.proof.seen.get_mut(self.at) {
            seen.ns = now_ns.saturating_sub(self.began_ns);
        }
        if self.at == 1 {
            self.moved_ns = now_ns;
        }
        self.began_ns = now_ns;
        self.at += 1;
    }

    /// What arrives from now on is not looked at; what is inside may still leave. `true` when nothing is.
    pub fn settle(&mut self, now_ns: u64) -> bool {
        if !self.ended {
            self.ended = true;
            self.turn(now_ns);
            self.at = 2;
        }
        self.inside == 0
    }

    /// What was seen.
    pub fn proof(self) -> Proof {
        Proof { missing: self.inside, ..self.proof }
    }
}

/// What a frame is remembered by, and its flow; nothing unless it is IPv4.
fn keys(bytes: &[u8]) -> Option<(u64, u64)> {
    if bytes.len() < HEADERS_BYTES || bytes.get(12..14)? != EtherType::IPV4.0.to_be_bytes() {
        return None;
    }
    let packet = bytes.get(14..)?;
    let total = usize::from(u16::from_be_bytes(packet.get(2..4)?.try_into().ok()?));
    let packet = packet.get(..total).unwrap_or(packet);
    let mut whole = DefaultHasher::new();
    whole.write(packet.get(..8)?);
    whole.write(packet.get(9..10)?);
    whole.write(packet.get(12..)?);
    // Fragments have no ports, and stay in the order of their own.
    let first = packet.get(6..8)?.iter().fold(0, |sum, byte| sum << 8 | u16::from(*byte)) & 0x3fff == 0;
    let header = usize::from(packet.first()? & 0xf) * 4;
    let mut flow = DefaultHasher::new();
    flow.write(packet.get(9..10)?);
    flow.write(packet.get(12..20)?);
    if first && matches!(packet.get(9), Some(6 | 17)) {
        flow.write(packet.get(header..header + 4).unwrap_or_default());
    }
    Some((whole.finish(), flow.finish()))
}

#[cfg(test)]
mod tests {
    use hue_demux::{Match, Row};
    use hue_tables::Vid;
    use hue_wire::Mac;

    use super::*;

    const MAC: Mac = Mac([2, 0, 0, 0, 0, 1]);

    fn witness() -> Witness {
        let select = Match::Mac { port: PortId::new(0), mac: MAC };
        let row = Row { vid: Vid::new(1).unwrap(), vport: 0, select };
        Witness::new(Demux::new(&[row], &[]).unwrap(), 0)
    }

    fn frame(mac: Mac, number: u16, ttl: u8, sport: u16) -> Vec<u8> {
        let mut bytes = mac.0.to_vec();
        bytes.extend([
            2, 9, 9, 9, 9, 9, 8, 0, 0x45, 0, 0, 32, 0, 0, 0, 0, ttl, 17, ttl, ttl, 10, 0, 0, 1, 10, 0, 0, 2,
        ]);
        bytes.extend(sport.to_be_bytes());
        bytes.extend([0, 7, 0, 12, 0, 0]);
        bytes.extend(number.to_be_bytes());
        bytes.extend([0, 0]);
        bytes.resize(60, 0);
        bytes
    }

    #[test]
    fn what_is_lost_doubled_or_late_is_seen() {
        let mut witness = witness();
        let out = Mac([2, 0, 0, 0, 0, 9]);
        witness.left(&frame(out, 0, 63, 5), 1);
        for number in 0..8 {
            witness.arrived(0, &frame(MAC, number, 64, 5), 5);
            witness.arrived(0, &frame(MAC, number, 64, 6), 5);
        }
        witness.arrived(0, &frame(out, 9, 64, 5), 5); // another network's
        witness.arrived(1, &frame(MAC, 9, 64, 5), 5);
        // Flow 5: 2 after 3, 5 twice, 6 lost. Flow 6 as it should be, padding or not.
        for (at, number) in [0u16, 1, 3, 2, 4, 5, 5, 7].into_iter().enumerate() {
            witness.left(&frame(out, number, 63, 5), 10 + 10 * at as u64);
        }
        witness.turn(100);
        for number in 0..8 {
            witness.left(&frame(out, number, 63, 6)[..46], 200);
        }
        witness.turn(300);
        assert!(!witness.settle(350));
        witness.arrived(0, &frame(MAC, 50, 64, 5), 5);
        let proof = witness.proof();
        let [before, during, after] = proof.seen;
        assert_eq!((proof.missing, proof.doubled, proof.reordered, proof.cut), (1, 1, 1, false));
        assert_eq!((before.received, before.sent, before.ns, before.gap_ns_max), (16, 7, 100, 20));
        assert_eq!((during.received, during.sent, during.ns, during.gap_ns_max), (0, 8, 200, 120));
        assert_eq!((after.received, after.ns), (0, 50));
    }

    #[test]
    fn a_gap_that_reaches_out_of_the_move_is_its_own() {
        let mut witness = witness();
        let out = Mac([2, 0, 0, 0, 0, 9]);
        for number in 0..6 {
            witness.arrived(0, &frame(MAC, number, 64, 5), 5);
        }
        let left = |witness: &mut Witness, number, ns| witness.left(&frame(out, number, 63, 5), ns);
        left(&mut witness, 0, 10);
        left(&mut witness, 1, 20);
        witness.turn(30);
        witness.turn(100);
        left(&mut witness, 2, 150);
        left(&mut witness, 3, 155);
        witness.settle(160);
        left(&mut witness, 4, 180);
        let gaps = witness.proof().seen.map(|seen| seen.gap_ns_max);
        assert_eq!(gaps, [10, 130, 25]);
    }

    #[test]
    fn nothing_that_leaves_before_the_move_is_a_gap_too() {
        let mut witness = witness();
        let out = Mac([2, 0, 0, 0, 0, 9]);
        (0..2).for_each(|number| witness.arrived(0, &frame(MAC, number, 64, 5), 5 + u64::from(number)));
        witness.turn(30);
        witness.turn(100);
        witness.left(&frame(out, 0, 63, 5), 150);
        assert_eq!(witness.proof().seen.map(|seen| seen.gap_ns_max), [0, 145, 0]);
    }
}
