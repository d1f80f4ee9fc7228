//! Follows each frame of a network until its end, during a move of the network.
//!
//! Flow: frames from wires, frames handed over by software, frames to wires, and reports of the card and the workers
//! on frames that end inside ([`TwinEnding`](crate::TwinEnding), [`Ending`]) → **witness** → [`Proof`]. The witness
//! is independent of planes, counters and queues. Inside the card a tag identifies a frame, elsewhere its
//! [`FrameKey`] does. A frame is lost if its loss is reported, or if everything behind it has left the card and it
//! has not ([`Witness::vanished`]). If neither is known, the frame is undecided. Frames that arrived before the
//! observation began are ignored: in the card they have no tag here, in software an earlier time ([`Witness::stamp`]).
//! Times in nanoseconds.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};

use hue_demux::{Demux, PortId, Selection};
use hue_planes::{FRAME_BYTES_MAX, FRAME_BYTES_MIN, Keys, Kind, Loss, Reason, Settings};
use hue_substrate::follow::{Ending, FrameKey};
use hue_tables::Vid;
use hue_wire::ethernet::is_group;
use serde::{Deserialize, Serialize};

use crate::twin::Cause;

/// Largest number of frames that are remembered: more than cross a card in a second at the twin's speed.
const FRAMES_MAX: usize = 1 << 18;
/// Reasons for losses outside software (see [`hue_planes::Loss`] for losses in software).
pub const VANISHED: &str = "vanished";
/// The card's output queues had no room.
pub const OUTPUT_FULL: &str = "output_full";
/// The card had no room to copy a group frame.
pub const FLOOD_FULL: &str = "flood_full";

/// Observations in a period.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct Seen {
    /// Frames that arrived for the network.
    pub received: u64,
    /// Frames that left, whenever they arrived.
    pub sent: u64,
    /// Length of the period.
    pub ns: u64,
    /// The longest time between two frames that left, or from the first arrival to the first frame that left. A gap
    /// that spans two periods is counted in the period of the move.
    pub gap_ns_max: u64,
}

/// Observations of a move.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct Proof {
    /// Before, during and after the move.
    pub seen: [Seen; 3],
    /// Frames that were lost, by reason.
    pub lost: BTreeMap<Cow<'static, str>, u64>,
    /// Frames that the network dropped by a rule of its own, by outcome or reason.
    pub dropped: BTreeMap<Cow<'static, str>, u64>,
    /// Frames that went to the network's control plane, by outcome.
    pub punted: BTreeMap<Cow<'static, str>, u64>,
    /// Frames whose end is unknown.
    pub undecided: u64,
    /// Frames that left a second time.
    pub doubled: u64,
    /// Frames that left after a frame of the same flow that had arrived later (RFC 4737 §3.3).
    pub reordered: u64,
    /// Whether there were more frames than can be remembered. The frames above the limit are in none of the counts.
    pub cut: bool,
}

impl Proof {
    /// Frames that were lost.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost.values().sum()
    }
}

/// A frame, or several identical ones.
struct Frame {
    flow: u64,
    /// Its place in the flow; `None` while several identical frames are inside, because they cannot be distinguished.
    number: Option<u32>,
    /// Number of these frames that have not ended.
    inside: u32,
    /// Number of identical frames that arrived when the observation was over, and have not left.
    later: u32,
}

/// A frame in the card.
struct Tagged {
    key: u64,
    number: Option<u32>,
    /// Copies of it that leave besides the next one.
    more: u32,
    /// Whether no copy of the network's leaves: it is a group frame, and the network does not flood. What leaves with this tag is a
    /// copy of another network, a switch at the same port.
    stays: bool,
}

/// See the head of this file.
pub struct Witness {
    demux: Demux,
    vid: Vid,
    kind: Kind,
    frames: HashMap<u64, Frame>,
    /// Number of frames that arrived, by flow.
    flows: HashMap<u64, u32>,
    /// One more than the highest number that left, by flow and, for kinds that flood, port: copies of a frame keep their
    /// order at each port by itself.
    left: HashMap<(u64, u8), u32>,
    /// Frames in the card, by tag.
    tags: HashMap<u32, Tagged>,
    /// Group frames whose copies the card has not made yet, by tag: the number of the network's copies.
    copying: HashMap<u32, u32>,
    proof: Proof,
    at: usize,
    /// Frames that arrived in software earlier are not followed.
    since_ns: u64,
    began_ns: u64,
    /// When the latest frame left. Before any frame left: when the first one arrived.
    left_ns: Option<u64>,
    /// When the move was over.
    moved_ns: u64,
    /// Frames that have not ended.
    inside: u64,
    /// Tags of frames from software that are still in the card. A second copy of a frame that has already ended has
    /// its tag here too.
    returning: HashSet<u32>,
    over: bool,
}

impl Witness {
    /// Begins to observe a network. `demux` finds the frames of all networks, with the card's port numbers.
    pub fn new(vid: Vid, kind: Kind, demux: Demux, now_ns: u64) -> Self {
        Self {
            demux,
            vid,
            kind,
            frames: HashMap::new(),
            flows: HashMap::new(),
            left: HashMap::new(),
            tags: HashMap::new(),
            copying: HashMap::new(),
            proof: Proof::default(),
            at: 0,
            since_ns: now_ns + 1, // what was handed over until now has no later time
            began_ns: now_ns,
            left_ns: None,
            moved_ns: u64::MAX,
            inside: 0,
            returning: HashSet::new(),
            over: false,
        }
    }

    /// The network whose frames are followed.
    pub fn vid(&self) -> Vid {
        self.vid
    }

    /// The network, and the time from which its frames in software are followed.
    pub fn following(&self) -> (Vid, u64) {
        (self.vid, self.since_ns)
    }

    /// The time with which a frame of the network goes from the card to software, where it tells frames that are followed from
    /// those that were in the card already.
    pub fn stamp(&self, tag: u32, now_ns: u64) -> u64 {
        if self.tags.contains_key(&tag) { now_ns.max(self.since_ns) } else { now_ns.min(self.since_ns - 1) }
    }

    /// A frame arrives from a wire and enters the card with this tag. Returns whether it is followed.
    pub fn arrived(&mut self, port: u8, tag: u32, bytes: &[u8], now_ns: u64) -> bool {
        if !(FRAME_BYTES_MIN..=FRAME_BYTES_MAX).contains(&bytes.len()) {
            return false; // it belongs to no network, whatever it contains
        }
        let copies = match self.demux.select(PortId::new(port), bytes) {
            Selection::One(target, _) => usize::from(target.vid == self.vid),
            Selection::Several(targets) => targets.iter().filter(|target| target.vid == self.vid).count(),
            Selection::Nobody => 0,
        };
        let copies = u32::try_from(copies).unwrap_or(u32::MAX);
        if copies == 0 {
            return false;
        }
        let key = FrameKey::of(self.kind, bytes);
        if self.over {
            // It is not a second copy of the earlier one.
            if let Some(frame) = self.frames.get_mut(&key.frame) {
                frame.later += copies;
            }
            return false;
        }
        if !self.enter(key, tag, copies) {
            return false;
        }
        if is_group(bytes) {
            self.copying.insert(tag, copies);
            let stays = !self.floods();
            if let Some(tagged) = self.tags.get_mut(&tag) {
                tagged.stays = stays;
            }
        }
        self.left_ns.get_or_insert(now_ns);
        if let Some(seen) = self.proof.seen.get_mut(self.at) {
            seen.received += 1;
        }
        true
    }

    /// A frame that the network sends from software enters the card with this tag. Returns whether it is followed. A
    /// frame of the network's control plane is first seen here; any other frame has arrived before, at `time_ns` in software.
    pub fn handed_over(&mut self, from_control: bool, tag: u32, bytes: &[u8], time_ns: u64) -> bool {
        let key = FrameKey::of(self.kind, bytes);
        if from_control {
            return !self.over && self.enter(key, tag, 1);
        }
        if time_ns < self.since_ns {
            return false;
        }
        let Some(frame) = self.frames.get(&key.frame) else { return false };
        self.tags.insert(tag, Tagged { key: key.frame, number: frame.number, more: 0, stays: false });
        self.returning.insert(tag);
        true
    }

    /// Whether the network sends frames to several ports.
    fn floods(&self) -> bool {
        Settings::of(self.kind).learning().is_some()
    }

    /// Whether frames of one flow leave by several ports, each of which keeps their order: copies, or packets whose own bits choose
    /// the way.
    fn spreads(&self) -> bool {
        self.floods() || self.kind.limits().keys == Keys::Slices
    }

    fn enter(&mut self, key: FrameKey, tag: u32, copies: u32) -> bool {
        if self.frames.len() >= FRAMES_MAX {
            self.proof.cut = true;
            return false;
        }
        let count = self.flows.entry(key.flow).or_default();
        let number = *count;
        *count += 1;
        let frame = self.frames.entry(key.frame).or_insert(Frame {
            flow: key.flow,
            number: None,
            inside: 0,
            later: 0,
        });
        frame.number = (frame.inside == 0).then_some(number);
        frame.inside += copies;
        self.inside += u64::from(copies);
        self.tags.insert(tag, Tagged { key: key.frame, number: Some(number), more: 0, stays: false });
        true
    }

    /// A frame left the card with this tag and goes to the wire of a port, which accepted it or refused it for this reason.
    pub fn left(&mut self, tag: u32, port: u8, taken: Result<(), Loss>, now_ns: u64) {
        let spreads = self.spreads();
        let Some(tagged) = self.tags.get_mut(&tag) else { return };
        let Tagged { key, number, more, stays } = *tagged;
        if stays {
            return;
        }
        tagged.more = more.saturating_sub(1);
        if more == 0 {
            self.tags.remove(&tag);
        }
        self.returning.remove(&tag);
        if let Err(loss) = taken {
            return self.lose(key, loss.name());
        }
        let Some(frame) = self.frames.get_mut(&key) else { return };
        if frame.inside == 0 {
            match frame.later {
                0 => self.proof.doubled += 1,
                _ => frame.later -= 1,
            }
            return;
        }
        frame.inside -= 1;
        self.inside -= 1;
        if let Some(number) = number {
            let left = self.left.entry((frame.flow, if spreads { port } else { 0 })).or_default();
            self.proof.reordered += u64::from(number < *left);
            *left = (*left).max(number + 1);
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

    /// A frame of the network, or a frame without network, ended inside the card.
    pub fn ended_in_card(&mut self, tag: u32, cause: Cause) {
        let copies = match cause {
            Cause::FloodFull | Cause::Copied => self.copying.remove(&tag).unwrap_or(0),
            _ => 0,
        };
        let Some(key) = self.tags.get(&tag).map(|tagged| tagged.key) else { return };
        if !matches!(cause, Cause::Flooded(_)) {
            self.returning.remove(&tag);
        }
        match cause {
            Cause::Dropped(code) => match Reason::new(self.kind, code) {
                Some(reason) => self.drop(key, reason.name()),
                // A plane of this kind drops nothing for that.
                None => self.lose(key, OUTPUT_FULL),
            },
            Cause::Unclaimed(reason) => self.lose(key, reason.name()),
            Cause::Refused => self.lose(key, OUTPUT_FULL),
            Cause::FloodFull => (0..copies).for_each(|_| self.lose(key, FLOOD_FULL)),
            Cause::Copied => {}
            Cause::Flooded(count) => {
                let more = u32::from(count).saturating_sub(1);
                if let Some(tagged) = self.tags.get_mut(&tag) {
                    tagged.more += more;
                }
                self.copied(key, more);
            }
        }
    }

    /// One of the frames of a key becomes several: `more` besides itself.
    fn copied(&mut self, key: u64, more: u32) {
        match self.frames.get_mut(&key) {
            Some(frame) if frame.inside > 0 => {
                frame.inside += more;
                self.inside += u64::from(more);
            }
            Some(frame) if frame.later > 0 => frame.later += more,
            _ => {}
        }
    }

    /// A worker reports how a frame ended there.
    pub fn ended_in_software(&mut self, key: u64, ending: Ending) {
        match ending {
            Ending::Left => {
                if self.end(key)
                    && let Some(seen) = self.proof.seen.get_mut(self.at)
                {
                    seen.sent += 1;
                }
            }
            Ending::Copied(count) => self.copied(key, u32::from(count).saturating_sub(1)),
            Ending::Punted(outcome) => {
                if self.end(key) {
                    *self.proof.punted.entry(outcome.name().into()).or_default() += 1;
                }
            }
            Ending::Dropped(outcome) => self.drop(key, outcome.name()),
            Ending::Refused(loss) => self.drop(key, loss.name()),
            Ending::Lost(loss) => self.lose(key, loss.name()),
        }
    }

    /// A frame from software did not enter the card.
    pub fn not_sent(&mut self, tag: u32) {
        self.returning.remove(&tag);
    }

    /// A frame on its way between card and software was lost for lack of room. `time_ns` is that of [`Witness::stamp`].
    pub fn lost_between(&mut self, bytes: &[u8], time_ns: u64, loss: Loss) {
        match time_ns < self.since_ns {
            true => self.lost_unseen(loss, 1),
            false => self.lose(FrameKey::of(self.kind, bytes).frame, loss.name()),
        }
    }

    /// Ends one of the frames of a key; returns `false` if none is inside.
    fn end(&mut self, key: u64) -> bool {
        let Some(frame) = self.frames.get_mut(&key).filter(|frame| frame.inside > 0) else { return false };
        frame.inside -= 1;
        self.inside -= 1;
        true
    }

    fn drop(&mut self, key: u64, reason: &'static str) {
        if self.end(key) {
            *self.proof.dropped.entry(reason.into()).or_default() += 1;
        }
    }

    /// Counts a loss. Frames without an arrival, such as those of the control plane, count as lost too.
    fn lose(&mut self, key: u64, reason: &'static str) {
        let known = self.end(key);
        if known || !self.over {
            *self.proof.lost.entry(reason.into()).or_default() += 1;
        }
    }

    /// Begins the next period.
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

    /// Later frames are not followed any more; frames that are inside may still end. Returns whether following was
    /// active until now.
    pub fn close(&mut self, now_ns: u64) -> bool {
        if self.over {
            return false;
        }
        self.over = true;
        self.turn(now_ns);
        self.at = 2;
        true
    }

    /// Counts frames that were lost before they could be observed and are not among the arrivals.
    pub fn lost_unseen(&mut self, loss: Loss, count: u64) {
        if count > 0 {
            *self.proof.lost.entry(loss.name().into()).or_default() += count;
        }
    }

    /// Whether group frames still wait to be copied: later frames overtake them.
    pub fn is_copying(&self) -> bool {
        !self.copying.is_empty()
    }

    /// Whether nothing is followed any more.
    pub fn is_done(&self) -> bool {
        self.over && self.inside == 0 && self.returning.is_empty()
    }

    /// Everything behind the frames that are still inside has passed, so these frames are lost. As many of them as
    /// workers had no room to report (`untold`) are undecided instead.
    pub fn vanished(&mut self, untold: u64) {
        let undecided = self.inside.min(untold);
        let lost = self.inside - undecided;
        if lost > 0 {
            *self.proof.lost.entry(VANISHED.into()).or_default() += lost;
        }
        self.inside = undecided;
        self.returning.clear();
    }

    /// Returns the observations.
    pub fn proof(self) -> Proof {
        Proof { undecided: self.inside, ..self.proof }
    }
}

#[cfg(test)]
mod tests {
    use hue_demux::{Attachment, Match, Row};
    use hue_planes::Unclaimed;
    use hue_planes::ipv4::Outcome;
    use hue_wire::Mac;

    use super::*;

    const MAC: Mac = Mac([2, 0, 0, 0, 0, 1]);

    fn witness() -> Witness {
        let vid = Vid::new(1).unwrap();
        let row = |vport: u16, port: u8| Row {
            vid,
            vport,
            select: Match::Mac { port: PortId::new(port), mac: MAC },
        };
        let attached = |vid, vport: u16, port: u8| Attachment { port: PortId::new(port), vid, vport };
        let all = [attached(vid, 0, 0), attached(Vid::new(2).unwrap(), 0, 0), attached(vid, 1, 2)];
        Witness::new(vid, Kind::Ipv4, Demux::new(&[row(0, 0), row(1, 2)], &all).unwrap(), 0)
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

    fn tag(number: u16, sport: u16) -> u32 {
        (u32::from(sport) << 16) + u32::from(number) + 1
    }

    fn arrives(witness: &mut Witness, number: u16, sport: u16, ns: u64) -> bool {
        witness.arrived(0, tag(number, sport), &frame(MAC, number, 64, sport), ns)
    }

    fn named<const COUNT: usize>(counts: [(&'static str, u64); COUNT]) -> BTreeMap<Cow<'static, str>, u64> {
        counts.into_iter().map(|(name, count)| (name.into(), count)).collect()
    }

    #[test]
    fn lost_duplicated_and_late_frames_are_found() {
        let mut witness = witness();
        witness.left(tag(0, 5), 0, Ok(()), 1);
        for number in 0..8 {
            assert!(arrives(&mut witness, number, 5, 5) && arrives(&mut witness, number, 6, 5));
        }
        // A frame of another network.
        assert!(!witness.arrived(0, 99, &frame(Mac([2, 0, 0, 0, 0, 9]), 9, 64, 5), 5));
        assert!(!witness.arrived(1, 99, &frame(MAC, 9, 64, 5), 5));
        assert!(!witness.arrived(0, 99, &frame(MAC, 9, 64, 5)[..13], 5), "a runt belongs to no network");
        // Flow 5: 2 after 3, 5 twice, 6 lost. Flow 6 is in order.
        for (at, number) in [0u16, 1, 3, 2, 4, 5, 7].into_iter().enumerate() {
            witness.left(tag(number, 5), 0, Ok(()), 10 + 10 * at as u64);
        }
        assert!(witness.handed_over(false, 77, &frame(MAC, 5, 63, 5), 9));
        witness.left(77, 0, Ok(()), 75);
        witness.turn(100);
        (0..8).for_each(|number| witness.left(tag(number, 6), 0, Ok(()), 200));
        witness.turn(300);
        witness.close(350);
        assert!(!arrives(&mut witness, 50, 5, 360) && !witness.is_done());
        witness.vanished(0);
        let proof = witness.proof();
        let [before, during, after] = proof.seen;
        assert_eq!(proof.lost, named([(VANISHED, 1)]));
        assert_eq!((proof.undecided, proof.doubled, proof.reordered, proof.cut), (0, 1, 1, false));
        assert_eq!((before.received, before.sent, before.ns, before.gap_ns_max), (16, 7, 100, 10));
        assert_eq!((during.received, during.sent, during.ns, during.gap_ns_max), (0, 8, 200, 130));
        assert_eq!((after.received, after.ns), (0, 50));
    }

    #[test]
    fn each_copy_of_a_flood_is_followed() {
        let vid = Vid::new(1).unwrap();
        let row = |vport: u16| Row { vid, vport, select: Match::Port(PortId::new(vport as u8)) };
        let attached = |vport: u16| Attachment { port: PortId::new(vport as u8), vid, vport };
        let demux = Demux::new(&[0, 1, 2, 3].map(row), &[0, 1, 2, 3].map(attached)).unwrap();
        let mut witness = Witness::new(vid, Kind::L2, demux, 0);
        (0..4).for_each(|number| assert!(arrives(&mut witness, number, 5, 5)));
        // In the card: the first to three ports, one of which has no room; the second overtakes at no port.
        witness.ended_in_card(tag(0, 5), Cause::Flooded(3));
        witness.left(tag(0, 5), 1, Ok(()), 10);
        witness.ended_in_card(tag(1, 5), Cause::Flooded(2));
        witness.left(tag(1, 5), 1, Ok(()), 11);
        witness.ended_in_card(tag(0, 5), Cause::Refused);
        witness.left(tag(0, 5), 2, Ok(()), 12);
        assert_eq!(witness.inside, 3);
        witness.left(tag(1, 5), 2, Ok(()), 13);
        // In software: the third to two ports, and one of them twice.
        let bytes = frame(MAC, 2, 64, 5);
        witness.ended_in_software(FrameKey::of(Kind::L2, &bytes).frame, Ending::Copied(2));
        assert!((70..73).all(|tag| witness.handed_over(false, tag, &bytes, 9)));
        (70..73).zip([1, 3, 3]).for_each(|(tag, port)| witness.left(tag, port, Ok(()), 20));
        witness.close(30);
        assert!(!witness.is_done(), "the fourth is inside");
        let last = frame(MAC, 3, 64, 5);
        witness.ended_in_software(FrameKey::of(Kind::L2, &last).frame, Ending::Left);
        assert!(witness.is_done());
        let proof = witness.proof();
        assert_eq!((proof.lost, proof.doubled, proof.reordered), (named([(OUTPUT_FULL, 1)]), 1, 0));
        assert_eq!(proof.seen[0].sent, 6);
    }

    #[test]
    fn copies_keep_their_order_at_each_port() {
        let vid = Vid::new(1).unwrap();
        let row = Row { vid, vport: 0, select: Match::Port(PortId::new(0)) };
        let attached = Attachment { port: PortId::new(0), vid, vport: 0 };
        let mut witness = Witness::new(vid, Kind::L2, Demux::new(&[row], &[attached]).unwrap(), 0);
        for number in 0..2 {
            assert!(arrives(&mut witness, number, 5, 5));
            witness.ended_in_card(tag(number, 5), Cause::Flooded(2));
        }
        for (number, port) in [(0, 1), (1, 1), (1, 2), (0, 2)] {
            witness.left(tag(number, 5), port, Ok(()), 10);
        }
        assert_eq!(witness.proof().reordered, 1, "at port 2");
    }

    #[test]
    fn a_second_copy_inside_is_waited_for() {
        let mut witness = witness();
        assert!(arrives(&mut witness, 0, 5, 5));
        let bytes = frame(MAC, 0, 63, 5);
        assert!((70..74).all(|tag| witness.handed_over(false, tag, &bytes, 9)));
        witness.left(70, 0, Ok(()), 10);
        witness.close(20);
        assert!(!witness.is_done(), "three copies are in the card");
        witness.left(71, 0, Ok(()), 30);
        witness.ended_in_card(72, Cause::Refused);
        assert!(!witness.is_done());
        witness.not_sent(73);
        assert!(witness.is_done());
        assert_eq!(witness.proof().doubled, 1);
    }

    #[test]
    fn every_ending_is_in_order() {
        let mut witness = witness();
        (0..9).for_each(|number| assert!(arrives(&mut witness, number, 5, 5)));
        let key = |number| FrameKey::of(Kind::Ipv4, &frame(MAC, number, 63, 5)).frame;
        witness.left(tag(0, 5), 0, Err(Loss::PortFull), 10);
        witness.ended_in_card(tag(1, 5), Cause::Dropped(Outcome::Checksum.code()));
        witness.ended_in_card(tag(2, 5), Cause::Refused);
        witness.ended_in_card(tag(3, 5), Cause::Unclaimed(Unclaimed::NoNetwork));
        witness.ended_in_software(key(4), Ending::Left);
        witness.ended_in_software(key(5), Ending::Punted(Outcome::Options.into()));
        witness.ended_in_software(key(6), Ending::of_loss(Loss::PuntLimited));
        witness.ended_in_software(key(7), Ending::of_loss(Loss::QueueFull));
        // Its arrival was not seen: it counts as lost, and no other end is known.
        witness.ended_in_software(key(20), Ending::of_loss(Loss::QueueFull));
        witness.ended_in_software(key(21), Ending::Punted(Outcome::Options.into()));
        witness.lost_between(&frame(MAC, 8, 63, 5), 9, Loss::HandoverFull);
        witness.close(100);
        assert!(witness.is_done());
        let proof = witness.proof();
        let lost =
            [("port_full", 1), (OUTPUT_FULL, 1), ("no_network", 1), ("queue_full", 2), ("handover_full", 1)];
        assert_eq!(proof.lost, named(lost));
        assert_eq!(proof.dropped, named([("checksum", 1), ("punt_limited", 1)]));
        assert_eq!(proof.punted, named([("options", 1)]));
        assert_eq!((proof.seen[0].sent, proof.undecided, proof.lost()), (1, 0, 6));
    }

    #[test]
    fn a_drop_for_an_outcome_that_the_kind_does_not_have_is_a_loss() {
        let mut witness = witness();
        (0..2).for_each(|number| assert!(arrives(&mut witness, number, 5, 5)));
        witness.ended_in_card(tag(0, 5), Cause::Dropped(0));
        witness.ended_in_card(tag(1, 5), Cause::Dropped(31));
        witness.close(100);
        let proof = witness.proof();
        assert_eq!((proof.lost(), proof.dropped.len()), (2, 0));
    }

    #[test]
    fn a_group_frame_ends_once_for_each_virtual_port() {
        let mut witness = witness();
        let mut all = frame(Mac([0xff; 6]), 0, 64, 5);
        assert!(witness.arrived(0, 1, &all, 5));
        witness.ended_in_card(1, Cause::Dropped(Outcome::L2Group.code()));
        assert_eq!(witness.inside, 0);
        witness.ended_in_card(1, Cause::Copied);
        assert!(!witness.is_copying());
        // Frames that are not IPv4 are followed too.
        all[12..14].copy_from_slice(&[8, 6]);
        assert!(witness.arrived(2, 2, &all, 5));
        witness
            .ended_in_software(FrameKey::of(Kind::Ipv4, &all).frame, Ending::Punted(Outcome::Options.into()));
        assert!(witness.is_copying(), "the card reports this");
        witness.ended_in_card(2, Cause::Copied);
        witness.close(9);
        assert!(witness.is_done() && !witness.is_copying());
    }

    #[test]
    fn a_group_frame_that_finds_no_room_is_lost_for_each_virtual_port() {
        let row = |vport| Row {
            vid: Vid::new(1).unwrap(),
            vport,
            select: Match::Mac { port: PortId::new(0), mac: MAC },
        };
        let attached = |vport| Attachment { vid: Vid::new(1).unwrap(), vport, port: PortId::new(0) };
        let demux = Demux::new(&[row(0)], &[attached(0), attached(1)]).unwrap();
        let mut witness = Witness::new(Vid::new(1).unwrap(), Kind::Ipv4, demux, 0);
        let all = frame(Mac([0xff; 6]), 0, 64, 5);
        for tag in [1, 2] {
            assert!(witness.arrived(0, tag, &all, 5));
        }
        assert_eq!(witness.inside, 4);
        witness.ended_in_card(1, Cause::FloodFull);
        assert!(witness.inside == 2 && witness.is_copying());
        witness.ended_in_card(2, Cause::FloodFull);
        witness.close(9);
        assert!(witness.is_done() && !witness.is_copying());
        assert_eq!(witness.proof().lost, named([(FLOOD_FULL, 4)]));
    }

    #[test]
    fn frames_of_the_control_plane_begin_as_they_are_handed_over() {
        let mut witness = witness();
        let (one, other) = (frame(MAC, 1, 63, 5), frame(MAC, 2, 63, 5));
        assert!(!witness.handed_over(false, 1, &one, 9), "it arrived before");
        assert!(witness.handed_over(true, 2, &one, 9) && witness.handed_over(true, 3, &other, 9));
        witness.left(3, 0, Ok(()), 10);
        witness.left(2, 0, Ok(()), 11);
        witness.close(20);
        let proof = witness.proof();
        assert_eq!((proof.reordered, proof.doubled, proof.lost(), proof.undecided), (1, 0, 0, 0));
    }

    /// A switch at the same port forwards its own copy of a broadcast, which has the same tag.
    #[test]
    fn a_copy_of_another_network_is_no_second_one() {
        let mut witness = witness();
        assert!(witness.arrived(0, 1, &frame(Mac::BROADCAST, 1, 64, 5), 5));
        witness.left(1, 1, Ok(()), 10);
        witness.ended_in_card(1, Cause::Dropped(Outcome::L2Group.code()));
        witness.left(1, 2, Ok(()), 11);
        witness.ended_in_card(1, Cause::Copied);
        witness.close(20);
        assert!(witness.is_done());
        let proof = witness.proof();
        assert_eq!((proof.seen[0].sent, proof.doubled, proof.lost()), (0, 0, 0));
        assert_eq!(proof.dropped, named([(Outcome::L2Group.name(), 1)]));
    }

    #[test]
    fn identical_frames_are_in_order_whichever_of_them_is_lost() {
        let mut witness = witness();
        let (same, other) = (frame(MAC, 1, 63, 5), frame(MAC, 2, 63, 5));
        // In the card each has its tag.
        assert!(witness.handed_over(true, 1, &same, 9) && witness.handed_over(true, 2, &other, 9));
        assert!(witness.handed_over(true, 3, &same, 9));
        witness.left(2, 0, Ok(()), 10);
        witness.left(3, 0, Ok(()), 11);
        // For frames from software, it is not known which of the two this is.
        assert!(witness.arrived(0, 4, &frame(MAC, 1, 64, 5), 12));
        assert!(witness.handed_over(false, 5, &same, 9));
        witness.left(5, 0, Ok(()), 13);
        witness.close(20);
        witness.vanished(0);
        let proof = witness.proof();
        assert_eq!((proof.reordered, proof.doubled, proof.lost()), (0, 0, 1));
    }

    #[test]
    fn an_identical_frame_that_comes_later_is_no_second_copy() {
        let mut witness = witness();
        assert!(arrives(&mut witness, 0, 5, 5));
        let bytes = frame(MAC, 0, 63, 5);
        assert!(witness.handed_over(false, 70, &bytes, 9));
        witness.left(70, 0, Ok(()), 10);
        witness.close(20);
        assert!(!arrives(&mut witness, 0, 5, 30));
        for (tag, doubled) in [(71, 0), (72, 1)] {
            assert!(witness.handed_over(false, tag, &bytes, 9));
            witness.left(tag, 0, Ok(()), 40);
            assert_eq!(witness.proof.doubled, doubled);
        }
    }

    #[test]
    fn an_identical_frame_from_before_the_observation_is_not_followed() {
        let mut witness = Witness { since_ns: 21, ..witness() };
        let bytes = frame(MAC, 0, 64, 5);
        assert!(arrives(&mut witness, 0, 5, 22));
        // Software has two of them from before, or the card has one: only the third is this one.
        assert_eq!((witness.stamp(77, 30), witness.stamp(tag(0, 5), 20)), (20, 21));
        for time_ns in [15, witness.stamp(77, 30)] {
            assert!(!witness.handed_over(false, 70, &bytes, time_ns));
            witness.left(70, 0, Ok(()), 40);
            witness.lost_between(&bytes, time_ns, Loss::HandoverFull);
        }
        assert_eq!(witness.inside, 1);
        assert!(witness.handed_over(false, 71, &bytes, 21));
        witness.left(71, 0, Ok(()), 40);
        witness.close(50);
        assert!(witness.is_done());
        let proof = witness.proof();
        assert_eq!((proof.doubled, proof.lost(), proof.seen[0].sent), (0, 2, 1));
    }

    #[test]
    fn unknown_results_are_undecided() {
        let mut witness = witness();
        (0..5).for_each(|number| assert!(arrives(&mut witness, number, 5, 5)));
        witness.close(20);
        witness.vanished(2);
        let proof = witness.proof();
        assert_eq!((proof.lost(), proof.undecided), (3, 2));
    }

    #[test]
    fn a_gap_that_reaches_out_of_the_move_is_its_own() {
        let mut witness = witness();
        (0..6).for_each(|number| assert!(arrives(&mut witness, number, 5, 5)));
        let left = |witness: &mut Witness, number, ns| witness.left(tag(number, 5), 0, Ok(()), ns);
        left(&mut witness, 0, 10);
        left(&mut witness, 1, 20);
        witness.turn(30);
        witness.turn(100);
        left(&mut witness, 2, 150);
        left(&mut witness, 3, 155);
        witness.close(160);
        left(&mut witness, 4, 180);
        let gaps = witness.proof().seen.map(|seen| seen.gap_ns_max);
        assert_eq!(gaps, [10, 130, 25]);
    }

    #[test]
    fn nothing_that_leaves_before_the_move_is_a_gap_too() {
        let mut witness = witness();
        (0..2).for_each(|number| assert!(arrives(&mut witness, number, 5, 5 + u64::from(number))));
        witness.turn(30);
        witness.turn(100);
        witness.left(tag(0, 5), 0, Ok(()), 150);
        assert_eq!(witness.proof().seen.map(|seen| seen.gap_ns_max), [0, 145, 0]);
    }
}
