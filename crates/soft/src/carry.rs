//! Packets through tunnels, offline: what a plane sends into a tunnel passes the carrier's plane, and what the carrier's plane
//! accepts as its own leaves the tunnel, at once and in order. A running system does the same with queues in between.
//!
//! Flow: fate of a packet → [`Soft::onward`] → packet of another network → its plane → fate. [`Tunnels`] has the functions
//! that both use. See ADR 0059.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::ops::Range;
use std::time::{Duration, Instant};

use hue_demux::{PortId, Target};
use hue_planes::{Loss, Losses, Stage, Verdict};
use hue_ports::HEADROOM_BYTES;
use hue_tables::Vid;

use crate::batch::{After, Batch, Output};
use crate::engine::{Claimed, Soft, place, slot_of};
use crate::explain::{NetworkTrace, State, stage};
use crate::frame::{Fate, Frame};
use crate::tunnels::{FROM_TUNNEL, Tunnels};

/// Most passages into or out of tunnels of one frame and its copies. More occur only if switches flood in a circle, which never
/// ends; a running system loses these frames too, when its queues are full.
pub const PASSAGES_MAX: usize = 4096;

/// What tunnels did with the packets of a network.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TunnelCounts {
    /// Punted packets that were those of tunnels, and went on to the networks with the tunnels.
    pub to_tunnels: u64,
    /// Packets that were lost on their way into or out of tunnels.
    pub losses: Losses,
}

/// A packet on its way through a tunnel, explained.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Passage {
    /// The virtual port at the end of the tunnel; for packets that are lost on their way out, that of the carrier at which they
    /// arrived.
    pub end: Target,
    /// The port at which it arrives next.
    pub port: PortId,
    /// What the tunnel did.
    pub stages: Vec<Stage>,
    /// The packet behind it; before it if it is lost.
    pub bytes: Vec<u8>,
    /// What the next network does with the packet, or why it is lost.
    pub next: Result<NetworkTrace, Loss>,
}

/// See the head of this file.
#[derive(Default)]
pub(crate) struct Carry {
    tunnels: Tunnels,
    counts: BTreeMap<Vid, TunnelCounts>,
}

/// A packet between two planes.
struct Moving {
    /// It, and the room before it.
    buffer: Vec<u8>,
    place: Range<usize>,
    target: Target,
    port: PortId,
    /// See [`Passage::end`].
    end: Target,
}

impl Soft {
    /// Joins the tunnels of the loaded networks to their carriers; to be called after they are loaded. `near` finds the virtual
    /// port of a network that has an address. Without this call packets end at tunnels.
    pub fn join_tunnels(&mut self, near: impl Fn(Vid, IpAddr) -> Option<u16>) {
        self.carry.tunnels = Tunnels::of(&self.engine.networks, near);
    }

    /// What tunnels did with the packets of a network.
    #[must_use]
    pub fn tunnel_counts(&self, vid: Vid) -> TunnelCounts {
        self.carry.counts.get(&vid).copied().unwrap_or_default()
    }

    pub(crate) fn has_tunnels(&self) -> bool {
        !self.carry.tunnels.is_empty()
    }

    /// Where a packet goes on if a tunnel takes it, with `room` bytes before it.
    fn onward(
        &self,
        tunnels: &Tunnels,
        fate: Fate,
        bytes: &[u8],
        room: usize,
    ) -> Option<Result<Moving, Loss>> {
        let Fate::Network { vid, outcome, egress, .. } = fate else { return None };
        let copied = || [&vec![0; room], bytes].concat();
        if outcome.is_forward() && egress.is_tunnel() {
            return Some(self.put_in(tunnels, self.egress_of(fate), copied(), room));
        }
        if outcome.verdict() != Verdict::Punt || !outcome.is_own() || !tunnels.has(vid) {
            return None;
        }
        let mut buffer = copied();
        let taken = tunnels.take_out(vid, buffer.get_mut(room..).unwrap_or_default())?;
        Some(taken.and_then(|(target, inner)| {
            let port =
                self.network(target.vid).and_then(|next| next.shape.ports.get(usize::from(target.vport)));
            let port = port.ok_or(Loss::TunnelStranger)?.port;
            let place = room + inner.start..room + inner.end;
            Ok(Moving { buffer, place, target, port, end: target })
        }))
    }

    /// Puts a frame, which `buffer` has from `room` on, into a tunnel.
    fn put_in(
        &self,
        tunnels: &Tunnels,
        end: Option<Target>,
        mut buffer: Vec<u8>,
        room: usize,
    ) -> Result<Moving, Loss> {
        let end = end.ok_or(Loss::PortDown)?;
        let way = tunnels.out(end.vid, end.vport).ok_or(Loss::PortDown)?;
        let target = Target { vid: way.tunnel.over, vport: way.over_vport };
        let carrier = self.network(target.vid).filter(|carrier| carrier.vid != end.vid);
        let port = carrier.and_then(|carrier| carrier.shape.ports.get(usize::from(target.vport)));
        let mac = port.ok_or(Loss::PortDown)?.mac;
        let frame = room..buffer.len();
        let place = way.put_in(&mut buffer, frame, 0, mac)?;
        Ok(Moving { buffer, place, target, port: FROM_TUNNEL, end })
    }

    /// As [`Soft::run_timed`], with networks that have tunnels: a frame is through all of them before the next one. This path
    /// allocates.
    pub(crate) fn run_through_tunnels(
        &mut self,
        batch: &mut Batch,
        mut each: impl FnMut(Output<'_>),
    ) -> Duration {
        let mut took = Duration::ZERO;
        for index in 0..batch.len() {
            let (buffer, frame) = batch.one(index);
            let begun = Instant::now();
            self.process(buffer, std::slice::from_mut(frame));
            took += begun.elapsed();
            let (port, time_ns) = (frame.port, frame.time_ns);
            let mut passages = Passages::default();
            let mut tell = |output: Output<'_>| each(Output { frame: index, time_ns, ..output });
            let own = frame.bytes(buffer).unwrap_or_default();
            let room = HEADROOM_BYTES as usize;
            if frame.fate != Fate::Flooded {
                self.after_plane(frame.fate, port, own, room, &mut passages, &mut tell);
            }
            for copy in self.copies() {
                let bytes = copy.bytes.unwrap_or(own);
                self.after_plane(copy.fate, port, bytes, room, &mut passages, &mut tell);
            }
            took += self.carry_on(passages, time_ns, &mut tell);
        }
        took
    }

    /// Decides a packet that a card's plane passed to software, as a running node does: without design select and without the
    /// network's rate limit, because the card has applied both. `each` gets its fate, and then those behind tunnels.
    pub fn take_over(
        &mut self,
        target: Target,
        time_ns: u64,
        bytes: &[u8],
        each: &mut impl FnMut(Output<'_>),
    ) {
        let slot = place(slot_of(&self.engine.slots, target.vid));
        let Some(network) = self.engine.networks.get_mut(slot) else { return };
        let Some(port) = network.shape.ports.get(usize::from(target.vport)).map(|port| port.port) else {
            return;
        };
        let meter = network.meter.take();
        let mut each = |output: Output<'_>| each(Output { time_ns, ..output });
        let mut passages = Passages::default();
        let room = HEADROOM_BYTES as usize;
        let buffer = [&vec![0; room], bytes].concat();
        let place = room..buffer.len();
        self.pass(Moving { buffer, place, target, port, end: target }, time_ns, &mut passages, &mut each);
        if let Some(network) = self.engine.networks.get_mut(slot) {
            network.meter = meter;
        }
        self.carry_on(passages, time_ns, &mut each);
    }

    /// Takes packets through the next networks until none is left, and counts what tunnels did. Returns the time of the planes.
    fn carry_on(
        &mut self,
        mut passages: Passages,
        time_ns: u64,
        tell: &mut impl FnMut(Output<'_>),
    ) -> Duration {
        let mut took = Duration::ZERO;
        while let Some(moving) = passages.waiting.pop_front() {
            took += self.pass(moving, time_ns, &mut passages, tell);
        }
        for (vid, lost) in passages.counted {
            let counts = self.carry.counts.entry(vid).or_default();
            match lost {
                Some(loss) => counts.losses.add(loss, 1),
                None => counts.to_tunnels += 1,
            }
        }
        took
    }

    /// Takes a packet through the plane of one network. Returns the plane's time.
    fn pass(
        &mut self,
        moving: Moving,
        time_ns: u64,
        passages: &mut Passages,
        tell: &mut impl FnMut(Output<'_>),
    ) -> Duration {
        let Moving { mut buffer, place: at, target, port, .. } = moving;
        let slot = place(slot_of(&self.engine.slots, target.vid)) as u16; // below NETWORKS_MAX
        let mut frames =
            [Frame::new(port, time_ns, at.start as u32, at.len() as u32).with_room(at.start as u32)];
        let claims = [Claimed { slot, vport: target.vport }];
        let begun = Instant::now();
        self.engine.process_claimed(&mut buffer, &mut frames, &claims);
        let took = begun.elapsed();
        let [frame] = frames;
        let bytes = frame.bytes(&buffer).unwrap_or_default();
        self.after_plane(frame.fate, port, bytes, frame.start as usize, passages, tell);
        took
    }

    /// Passes on what a plane decided, and keeps what a tunnel takes.
    fn after_plane(
        &self,
        fate: Fate,
        port: PortId,
        bytes: &[u8],
        room: usize,
        passages: &mut Passages,
        tell: &mut impl FnMut(Output<'_>),
    ) {
        self.spread(fate, |fate| {
            let onward = self.onward(&self.carry.tunnels, fate, bytes, room);
            let after = onward.map_or(After::Verdict, |moving| passages.take(fate, moving));
            tell(Output { frame: 0, port, time_ns: 0, fate, bytes, after });
        });
    }

    /// Explains what tunnels do with a packet that a network sent or accepted as its own, and what the next network does with
    /// it. Nothing if no tunnel takes it; several only if the packet goes to several ports.
    #[must_use]
    pub fn explain_tunnels(&self, trace: &NetworkTrace, time_ns: u64) -> Vec<Passage> {
        let state = |vid, bytes: &[u8]| {
            self.network(vid).map(|network| State::of(network, bytes)).unwrap_or_default()
        };
        self.explain_passages(&self.carry.tunnels, trace, time_ns, state)
    }

    /// The same for these tunnels. `state` is that of a network, for a packet.
    pub(crate) fn explain_passages(
        &self,
        tunnels: &Tunnels,
        trace: &NetworkTrace,
        time_ns: u64,
        state: impl Fn(Vid, &[u8]) -> State,
    ) -> Vec<Passage> {
        let NetworkTrace { vid, vport, outcome, egress, .. } = *trace;
        let fate = Fate::Network { vid, vport, outcome, egress: egress.unwrap_or(FROM_TUNNEL) };
        let mut passages = Vec::new();
        if tunnels.is_empty() {
            return passages;
        }
        self.spread(fate, |fate| {
            if let Some(moving) = self.onward(tunnels, fate, &trace.bytes, HEADROOM_BYTES as usize) {
                passages.push(self.explain_passage(tunnels, (fate, trace), moving, time_ns, &state));
            }
        });
        passages
    }

    fn explain_passage(
        &self,
        tunnels: &Tunnels,
        (fate, trace): (Fate, &NetworkTrace),
        moving: Result<Moving, Loss>,
        time_ns: u64,
        state: &impl Fn(Vid, &[u8]) -> State,
    ) -> Passage {
        let here = Target { vid: trace.vid, vport: trace.vport };
        let lost = |end, loss: Loss| {
            let stages = vec![stage("tunnel", loss.row().doc.to_owned(), Some(loss.name()))];
            Passage { end, port: FROM_TUNNEL, stages, bytes: trace.bytes.clone(), next: Err(loss) }
        };
        let moving = match moving {
            Ok(moving) => moving,
            Err(loss) => return lost(self.egress_of(fate).unwrap_or(here), loss),
        };
        let Moving { buffer, place, target, port, end } = moving;
        let bytes = buffer.get(place).unwrap_or_default();
        let Some(next) = self.explain_one(target, time_ns, bytes, |vid| state(vid, bytes)) else {
            return lost(end, Loss::PortDown);
        };
        let way = tunnels.out(end.vid, end.vport);
        let name = |vid| self.network(vid).map_or("?", |network| network.shape.name.as_str());
        let detail = way.map(|way| {
            let sense = if end == target { "out of" } else { "into" };
            format!("{sense} {} of {} over {}", way.tunnel, name(end.vid), name(way.tunnel.over))
        });
        let stages = vec![stage("tunnel", detail.unwrap_or_default(), None)];
        Passage { end, port, stages, bytes: bytes.to_vec(), next: Ok(next) }
    }

    /// The virtual port by which a packet leaves into a tunnel.
    fn egress_of(&self, fate: Fate) -> Option<Target> {
        let Fate::Network { vid, egress, .. } = fate else { return None };
        let mut ports = self.network(vid)?.shape.ports.iter().zip(0u16..);
        let (_, vport) = ports.find(|(port, _)| egress.is_tunnel() && port.port == egress)?;
        Some(Target { vid, vport })
    }
}

/// What tunnels took of one frame.
#[derive(Default)]
struct Passages {
    waiting: VecDeque<Moving>,
    /// Those so far.
    count: usize,
    /// Networks, with losses; without one, the packet left its carrier.
    counted: Vec<(Vid, Option<Loss>)>,
}

impl Passages {
    fn take(&mut self, fate: Fate, moving: Result<Moving, Loss>) -> After {
        let Fate::Network { vid, outcome, .. } = fate else { return After::Verdict };
        let moving = moving.and_then(|moving| {
            self.count += 1;
            if self.count > PASSAGES_MAX { Err(Loss::QueueFull) } else { Ok(moving) }
        });
        match moving {
            Ok(moving) => {
                if outcome.verdict() == Verdict::Punt {
                    self.counted.push((vid, None));
                }
                self.waiting.push_back(moving);
                After::Tunnel
            }
            Err(loss) => {
                self.counted.push((vid, Some(loss)));
                After::Lost(loss)
            }
        }
    }
}
