//! Runs captures through the twin: takes frames in order and returns each frame's result in the same order.
//!
//! Flow: frames → twin's ports → cycles → frames that left → **offline** → captures. Where a network has a rate
//! limit, frames reach the meters in the order in which they are offered. Full queues apply back-pressure instead of
//! dropping, and idle cycles are skipped. A frame that leaves is identified by the tag it entered with; a dropped
//! frame does not leave.

use std::collections::{BTreeMap, HashMap, HashSet};

use hue_demux::PortId;
use hue_planes::{Kind, Reason};
use hue_substrate::Program;
use hue_tables::Vid;
use hue_wire::{Mac, ethernet};

use crate::card::Card;
use crate::cpu::ToCpu;
use crate::error::CardError;
use crate::generated as regs;
use crate::left::{Left, Way};
use crate::twin::{FRAME_BYTES_MAX, Twin};

/// Cycles run between two checks of the watchdog.
const SLICE_CYCLES: u64 = 65_536;
/// Cycles without any moving beat after which the card counts as stuck. A frame of 9,216 bytes needs fewer cycles to
/// pass every queue of the narrowest bus.
const STILL_CYCLES_MAX: u64 = 200_000;

/// A frame for the card.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Offered<'a> {
    /// Port it arrives on.
    pub port: PortId,
    /// Arrival time, nanoseconds from any origin; the meters use it.
    pub time_ns: u64,
    /// Destination MAC to last byte.
    pub bytes: &'a [u8],
}

/// The kinds of the networks that a card had when these were read. The header of a frame on a CPU queue has only the
/// code of an outcome.
#[derive(Clone, Default, Debug)]
pub struct Kinds(BTreeMap<Vid, Kind>);

impl Kinds {
    /// Where a frame with this header goes, and why.
    ///
    /// # Errors
    /// `Nonsense` for an outcome that the network's kind does not have.
    pub fn way(&self, ToCpu { vid, vport, code, .. }: ToCpu) -> Result<Way, CardError> {
        let unknown =
            || CardError::Nonsense(format!("a CPU header of network {vid} has the unknown outcome {code}"));
        let outcome = match code {
            0 => None,
            _ => Some(self.0.get(&vid).and_then(|kind| Reason::new(*kind, code)).ok_or_else(unknown)?),
        };
        Ok(Way::Control { vid, vport, outcome })
    }
}

/// A frame that left the card.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sent<'a> {
    /// Which of the offered frames it was.
    pub frame: usize,
    /// Where it left.
    pub way: Way,
    /// Its bytes.
    pub bytes: &'a [u8],
    /// Cycle in which its last beat left.
    pub cycle: u64,
}

/// Which network sends what leaves by a port: the one whose router has the source address there, or else the one that has the
/// port as a whole.
struct Senders {
    routers: HashMap<(u8, Mac), u16>,
    /// With the virtual port, which tells a switch's copies of a frame apart.
    switches: HashMap<u8, (u16, u16)>,
}

impl Senders {
    fn of<'a>(programs: impl Iterator<Item = &'a Program>) -> Self {
        let mut all = Self { routers: HashMap::new(), switches: HashMap::new() };
        for program in programs {
            for (port, vport) in program.ports.iter().zip(0u16..) {
                let (number, vid) = (port.port.get(), program.vid.get());
                match program.kind() {
                    Kind::L2 | Kind::Extract => _ = all.switches.insert(number, (vid, vport)),
                    _ => _ = all.routers.entry((number, port.mac)).or_insert(vid),
                }
            }
        }
        all
    }

    /// The network of a frame that left, and where the frame is among the copies that the network made.
    fn of_frame(&self, one: &Left) -> (u16, u16) {
        let port = match one.way {
            Way::Control { vid, .. } => return (vid.get(), 0),
            Way::Port(port) => port.get(),
        };
        let source = ethernet::Header::over(&one.bytes).map(|(header, _)| header.source());
        let router = source.and_then(|source| self.routers.get(&(port, source)));
        router.map(|vid| (*vid, 0)).or(self.switches.get(&port).copied()).unwrap_or_default()
    }
}

impl Card<Twin> {
    /// Sets the card up for captures: full queues apply back-pressure, and frames keep their order where it matters.
    ///
    /// # Errors
    /// `Access`.
    pub fn set_offline(&mut self) -> Result<(), CardError> {
        self.device().write(regs::CONTROL, regs::CONTROL_OFFLINE)
    }

    /// Sets the card up for live use: full queues drop, ports do not wait for each other.
    ///
    /// # Errors
    /// `Access`.
    pub fn set_live(&mut self) -> Result<(), CardError> {
        self.device().write(regs::CONTROL, 0)?;
        self.twin().set_ordered(false);
        self.live = true;
        Ok(())
    }

    /// The twin itself: cycles, waves, pauses.
    pub fn twin(&mut self) -> &mut Twin {
        self.device().registers()
    }

    /// The kinds of the loaded networks.
    #[must_use]
    pub fn kinds(&self) -> Kinds {
        Kinds(self.programs().map(|program| (program.vid, program.kind())).collect())
    }

    /// Runs frames through the card and hands out those that left, in the order offered; copies of one are ordered by
    /// network, and those of one network by virtual port. Bytes above the port's frame size limit are ignored: such a frame is
    /// too long in any case.
    ///
    /// # Errors
    /// `Stuck`, `Nonsense`, `Assertion`, or `Port` for a port that the card does not have; frames may then remain inside.
    pub fn run(&mut self, frames: &[Offered<'_>], each: impl FnMut(Sent<'_>)) -> Result<(), CardError> {
        self.offer(frames)?;
        self.drain(frames.len(), each)
    }

    /// The first half of [`Card::run`]: frames wait at the ports and enter as cycles run. A frame for a network that learns enters
    /// alone, once what earlier ones taught is in the card's table.
    ///
    /// # Errors
    /// `Port` for a port that the card does not have; with networks that learn, also those of [`Card::run`].
    pub fn offer(&mut self, frames: &[Offered<'_>]) -> Result<(), CardError> {
        // Only meters depend on the order of frames of different ports, and keeping that order costs cycles.
        let metered = self.programs().any(|program| program.rate_limit.is_some());
        self.twin().set_ordered(metered);
        let ports = self.description().mac_ports;
        let learning: HashSet<u8> = self.ports_that_teach().collect();
        for (frame, tag) in frames.iter().zip(0u32..) {
            let teaches = learning.contains(&frame.port.get());
            if teaches {
                self.finish(frames.len())?;
                self.advance(frame.time_ns)?;
            }
            let bytes = frame.bytes.get(..FRAME_BYTES_MAX).unwrap_or(frame.bytes);
            let port = frame.port.get();
            if u32::from(port) >= ports || !self.twin().push(port, frame.time_ns, tag, 0, bytes) {
                return Err(CardError::Port { port, ports });
            }
            if teaches {
                self.finish(frames.len())?;
                self.collect(frames.len(), frame.time_ns)?;
            }
        }
        Ok(())
    }

    /// Ports of networks that learn.
    fn ports_that_teach(&self) -> impl Iterator<Item = u8> + '_ {
        let learning = self.networks.values().filter(|loaded| loaded.learner.is_some());
        learning.flat_map(|loaded| loaded.program().ports.iter().map(|port| port.port.get()))
    }

    /// The second half of [`Card::run`]: runs until the card is idle and hands out the frames that left. `frames` is
    /// the number of frames offered.
    ///
    /// # Errors
    /// As [`Card::run`].
    pub fn drain(&mut self, frames: usize, mut each: impl FnMut(Sent<'_>)) -> Result<(), CardError> {
        self.finish(frames)?;
        self.collect(frames, 0)?;
        let mut left = std::mem::take(&mut self.left);
        // Frames of one network on one port come out in order. Only frames of different networks overtake each other.
        let senders = Senders::of(self.programs());
        left.sort_by_cached_key(|one| (one.tag, senders.of_frame(one)));
        for one in &left {
            each(Sent { frame: one.tag as usize, way: one.way, bytes: &one.bytes, cycle: one.cycle });
        }
        Ok(())
    }

    /// Runs until the card is idle.
    fn finish(&mut self, frames: usize) -> Result<(), CardError> {
        let twin = self.twin();
        while !twin.idle() {
            twin.run(SLICE_CYCLES);
            if let Some(failure) = twin.failure() {
                return Err(CardError::Assertion(failure));
            }
            let cycles = twin.still_cycles();
            if cycles > STILL_CYCLES_MAX && !twin.idle() {
                return Err(CardError::Stuck { cycles, waiting: frames });
            }
        }
        match twin.failure() {
            Some(failure) => Err(CardError::Assertion(failure)),
            None => Ok(()),
        }
    }

    /// Takes the frames that left, and learns what notes say. `now_ns` is the time of the frames that left notes.
    fn collect(&mut self, frames: usize, now_ns: u64) -> Result<(), CardError> {
        let mut notes = Vec::new();
        let mut left = std::mem::take(&mut self.left);
        let (ports, kinds) = (self.description().mac_ports, self.kinds());
        let twin = self.twin();
        while let Some(frame) = twin.pop() {
            if frame.tag as usize >= frames {
                return Err(CardError::Nonsense(format!("a frame with tag {}, of {frames}", frame.tag)));
            }
            let (tag, cycle) = (frame.tag, frame.last_cycle);
            if u32::from(frame.port) < ports {
                let way = Way::Port(PortId::new(frame.port));
                left.push(Left { tag, way, bytes: frame.bytes.to_vec(), cycle });
            } else {
                let (header, bytes) = ToCpu::split(frame.bytes).map_err(CardError::Nonsense)?;
                if header.is_note {
                    notes.extend(header.note(bytes));
                    continue;
                }
                left.push(Left { tag, way: kinds.way(header)?, bytes: bytes.to_vec(), cycle });
            }
        }
        self.left = left;
        notes.into_iter().try_for_each(|(vid, mac, vport)| self.learn(vid, mac, vport, now_ns))
    }
}

#[cfg(test)]
mod tests {
    use hue_planes::ipv4::Outcome;

    use super::*;

    #[test]
    fn an_outcome_is_one_of_the_networks_kind() {
        let vid = |id| Vid::new(id).unwrap();
        let kinds = Kinds(BTreeMap::from([(vid(7), Kind::Ipv4)]));
        let way = |id, code| kinds.way(ToCpu { vid: vid(id), vport: 2, code, port_in: 3, is_note: false });
        let control = |id, outcome| Way::Control { vid: vid(id), vport: 2, outcome };
        assert_eq!(way(7, Outcome::Arp.code()).unwrap(), control(7, Some(Outcome::Arp.into())));
        assert_eq!(way(7, 0).unwrap(), control(7, None));
        assert_eq!(way(8, 0).unwrap(), control(8, None), "a network in software");
        assert!(way(7, 31).unwrap_err().to_string().contains("network 7 has the unknown outcome 31"));
        assert!(way(8, Outcome::Arp.code()).is_err(), "not loaded");
    }
}
