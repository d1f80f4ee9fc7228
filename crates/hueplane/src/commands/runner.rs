//! Runs frames for `hueplane run`: in the software engine or in the card's twin. Both accept frames in
//! batches and return the outgoing frames in input order.
//!
//! What the card leaves to software of networks that have or carry tunnels, software decides here too, as in a running node.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Instant;

use hue_card::{Card, Offered, Twin, Way};
use hue_demux::{PortId, Target};
use hue_planes::{Counters, Loss, Reason, UnclaimedCounters, Verdict};
use hue_soft::{After, Batch, Fate, Output, Soft, TunnelCounts};
use hue_substrate::Substrate;
use hue_tables::Vid;
use serde::Serialize;

use super::engine::{Networks, loaded, with_tunnels};
use crate::cli::{On, Run};
use crate::failure::Failure;
use crate::print::grouped;

/// An outgoing frame.
pub struct Departed<'a> {
    /// Port through which it left; `None` means its network's control plane.
    pub port: Option<PortId>,
    /// Arrival time in nanoseconds.
    pub time_ns: u64,
    /// Bytes of the frame.
    pub bytes: &'a [u8],
}

impl<'a> Departed<'a> {
    /// What leaves the software engine; `None` for packets that were dropped, or that a tunnel took or lost.
    fn of(output: &Output<'a>) -> Option<Self> {
        let Fate::Network { outcome, egress, .. } = output.fate else { return None };
        let port = match outcome.verdict() {
            _ if output.after != After::Verdict => return None,
            Verdict::Forward => Some(egress),
            Verdict::Punt => None,
            Verdict::Drop => return None,
        };
        Some(Self { port, time_ns: output.time_ns, bytes: output.bytes })
    }
}

/// Statistics of the simulation.
#[derive(Serialize)]
pub struct CardReport {
    image: String,
    clock_khz: u32,
    cycles: u64,
    simulated_ns: u64,
    wall_ns: u64,
    /// Punted packets of networks with tunnels, and of their carriers, that software decided again.
    #[serde(skip_serializing_if = "Option::is_none")]
    to_software: Option<u64>,
    #[serde(skip)]
    packets: u64,
}

impl CardReport {
    /// The statistics as text.
    pub fn text(&self) -> String {
        let seconds = (self.wall_ns as f64 / 1e9).max(1e-9);
        let software = self.to_software.map(|count| format!("; {} packets to software", grouped(count)));
        format!(
            "image {}: {} cycles, {} us on the card; {:.2} s here, {} packets/s{}",
            self.image,
            grouped(self.cycles),
            grouped(self.simulated_ns / 1000),
            seconds,
            grouped((self.packets as f64 / seconds) as u64),
            software.unwrap_or_default(),
        )
    }
}

/// A substrate with networks, and the frames of the next batch.
pub enum Runner {
    /// The software engine.
    Soft { soft: Box<Soft>, batch: Batch },
    /// The card's twin.
    Card(Box<OnCard>),
}

/// A frame in the buffer.
struct Waiting {
    port: PortId,
    time_ns: u64,
    start: usize,
    end: usize,
}

/// Software that decides what the card leaves to it.
struct Software {
    soft: Soft,
    networks: BTreeSet<Vid>,
    /// What the card counted for packets that software counts again.
    again: BTreeMap<Vid, Counters>,
}

impl Software {
    /// For networks that have or carry tunnels; `None` if there are none.
    fn of(networks: &Networks) -> Result<Option<Self>, Failure> {
        let programs = with_tunnels(&networks.programs);
        if programs.is_empty() {
            return Ok(None);
        }
        let vids = programs.iter().map(|program| program.vid).collect();
        let soft = loaded(&programs, networks)?;
        Ok(Some(Self { soft, networks: vids, again: BTreeMap::new() }))
    }

    /// Decides a packet that the card punted; false if it stays with the control plane. A packet without `outcome` is for the router
    /// itself and went through the card's loop, which found no tunnel that it can decide.
    fn decide(
        &mut self,
        target: Target,
        outcome: Option<Reason>,
        time_ns: u64,
        bytes: &[u8],
        each: &mut impl FnMut(Departed<'_>),
    ) -> bool {
        if !self.networks.contains(&target.vid) {
            return false;
        }
        let mut counted = outcome;
        self.soft.take_over(target, time_ns, bytes, &mut |output| {
            if let Fate::Network { outcome, .. } = output.fate {
                counted.get_or_insert(outcome);
            }
            if let Some(departed) = Departed::of(&output) {
                each(departed);
            }
        });
        if let Some(counted) = counted {
            self.again.entry(target.vid).or_insert_with(|| Counters::new(counted.kind())).count(counted);
        }
        true
    }

    fn packets(&self) -> u64 {
        self.again.values().map(Counters::received).sum()
    }

    /// Counters of a network that counted `card` on the card.
    fn counters(&self, vid: Vid, card: Counters) -> Counters {
        let Some(soft) = self.soft.counters(vid) else { return card };
        let again = self.again.get(&vid);
        let mut sum = Counters::new(card.kind());
        for (reason, count) in card.iter() {
            let again = again.map_or(0, |again| again.get(reason));
            sum.add(reason, (count + soft.get(reason)).saturating_sub(again));
        }
        sum
    }
}

/// The twin, and the state that `run` needs around it.
pub struct OnCard {
    card: Card<Twin>,
    software: Option<Software>,
    buffer: Vec<u8>,
    waiting: Vec<Waiting>,
    started: Instant,
    packets: u64,
    /// Clock cycles with frames in the card.
    cycles: u64,
    wave: Option<(PathBuf, u64)>,
}

impl Runner {
    /// Loads the networks into the substrate given by the arguments.
    pub fn start(args: &Run, networks: &Networks) -> Result<Self, Failure> {
        match args.on {
            On::Soft => {
                if args.wave.is_some() {
                    return Err(Failure::Usage("--wave requires --on card".to_owned()));
                }
                let soft = Box::new(loaded(&networks.programs, networks)?);
                Ok(Self::Soft { soft, batch: Batch::new() })
            }
            On::Card => Ok(Self::Card(Box::new(OnCard::start(args, networks)?))),
        }
    }

    /// Frames pushed but not yet run.
    pub fn held(&self) -> usize {
        match self {
            Self::Soft { batch, .. } => batch.len(),
            Self::Card(on) => on.waiting.len(),
        }
    }

    /// Adds a frame; times must not decrease.
    pub fn push(&mut self, port: PortId, time_ns: u64, bytes: &[u8]) -> Result<(), Failure> {
        match self {
            Self::Soft { batch, .. } => match batch.push(port, time_ns, bytes) {
                true => Ok(()),
                false => Err(Failure::Broken("a batch of frames exceeds 4 GiB".to_owned())),
            },
            Self::Card(on) => {
                let start = on.buffer.len();
                on.buffer.extend_from_slice(bytes);
                on.waiting.push(Waiting { port, time_ns, start, end: on.buffer.len() });
                Ok(())
            }
        }
    }

    /// Runs the pushed frames, and passes outgoing ones to `each`.
    pub fn run(&mut self, mut each: impl FnMut(Departed<'_>)) -> Result<(), Failure> {
        match self {
            Self::Soft { soft, batch } => {
                soft.run(batch, |output| {
                    if let Some(departed) = Departed::of(&output) {
                        each(departed);
                    }
                });
                batch.clear();
                Ok(())
            }
            Self::Card(on) => on.run(each),
        }
    }

    /// Counters of a network.
    pub fn counters(&self, vid: Vid) -> Result<Option<Counters>, Failure> {
        Ok(match self {
            Self::Soft { soft, .. } => soft.counters(vid),
            Self::Card(on) => {
                let card = on.card.read_counters(vid)?;
                let with = |card| on.software.as_ref().map_or(card, |software| software.counters(vid, card));
                card.map(with)
            }
        })
    }

    /// What tunnels did with the packets of a network.
    pub fn tunnel_counts(&self, vid: Vid) -> Result<TunnelCounts, Failure> {
        let on = match self {
            Self::Soft { soft, .. } => return Ok(soft.tunnel_counts(vid)),
            Self::Card(on) => on,
        };
        let software = on.software.as_ref().map(|software| software.soft.tunnel_counts(vid));
        let mut counts = software.unwrap_or_default();
        let card = on.card.read_tunnel_counts(vid)?.unwrap_or_default();
        counts.to_tunnels += card.entered;
        counts.losses.add(Loss::TunnelNotIp, card.lost);
        counts.losses.add(Loss::QueueFull, card.full);
        Ok(counts)
    }

    /// Counters of frames that belong to no network.
    pub fn unclaimed(&self) -> Result<UnclaimedCounters, Failure> {
        Ok(match self {
            Self::Soft { soft, .. } => soft.unclaimed(),
            Self::Card(on) => on.card.read_unclaimed()?,
        })
    }

    /// Clock cycles since the card's reset; none in software.
    pub fn clock(&mut self) -> Option<u64> {
        match self {
            Self::Soft { .. } => None,
            Self::Card(on) => Some(on.card.twin().cycles()),
        }
    }

    /// Statistics of the simulation, if this is one.
    pub fn card_report(&mut self) -> Option<CardReport> {
        let Self::Card(on) = self else { return None };
        let description = on.card.description();
        let (image, clock_khz) = (description.name.clone(), description.clock_khz);
        Some(CardReport {
            image,
            clock_khz,
            cycles: on.cycles,
            simulated_ns: (u128::from(on.cycles) * 1_000_000 / u128::from(clock_khz)) as u64,
            wall_ns: on.started.elapsed().as_nanos() as u64,
            to_software: on.software.as_ref().map(Software::packets),
            packets: on.packets,
        })
    }
}

impl OnCard {
    fn start(args: &Run, networks: &Networks) -> Result<Self, Failure> {
        let image = hueplaned::options::images().load(&args.image)?;
        let mut twin = image.start()?;
        let mut wave = None;
        match (&args.wave, args.wave_packet) {
            (Some(file), Some(packet)) => {
                // A file that cannot be written is reported before anything runs.
                twin.set_wave(file, 0, 0)?;
                twin.end_wave();
                wave = Some((file.clone(), packet));
            }
            (Some(file), None) => {
                let (from, to) = args.wave_cycles.unwrap_or((0, u64::MAX));
                twin.set_wave(file, from, to)?;
            }
            (None, _) => {}
        }
        let mut card = Card::new(twin)?;
        card.set_offline()?;
        card.load(&networks.programs)?;
        card.join_tunnels(networks.addresses.clone())?;
        let software = Software::of(networks)?;
        let started = Instant::now();
        let (buffer, waiting) = (Vec::new(), Vec::new());
        Ok(Self { card, software, buffer, waiting, started, packets: 0, cycles: 0, wave })
    }

    fn run(&mut self, mut each: impl FnMut(Departed<'_>)) -> Result<(), Failure> {
        let alone = self.wave.as_ref().and_then(|(_, packet)| {
            let index = usize::try_from(packet.checked_sub(self.packets + 1)?).ok()?;
            (index < self.waiting.len()).then_some(index)
        });
        let waiting = std::mem::take(&mut self.waiting);
        match alone {
            None => self.run_some(&waiting, &mut each)?,
            Some(index) => {
                let (before, rest) = waiting.split_at(index);
                let (packet, after) = rest.split_at(1);
                self.run_some(before, &mut each)?;
                if let Some((file, _)) = self.wave.take() {
                    let now = self.card.twin().cycles();
                    self.card.twin().set_wave(&file, now, u64::MAX)?;
                }
                self.run_some(packet, &mut each)?;
                self.card.twin().end_wave();
                self.run_some(after, &mut each)?;
            }
        }
        self.buffer.clear();
        Ok(())
    }

    fn run_some(&mut self, waiting: &[Waiting], mut each: impl FnMut(Departed<'_>)) -> Result<(), Failure> {
        let offered: Vec<Offered<'_>> = waiting
            .iter()
            .map(|one| Offered {
                port: one.port,
                time_ns: one.time_ns,
                bytes: self.buffer.get(one.start..one.end).unwrap_or_default(),
            })
            .collect();
        let before = self.card.twin().cycles();
        let Self { card, software, .. } = self;
        card.run(&offered, |sent| {
            let time_ns = offered.get(sent.frame).map_or(0, |one| one.time_ns);
            let port = match (sent.way, software.as_mut()) {
                (Way::Port(port), _) => Some(port),
                (Way::Control { vid, vport, outcome }, Some(software)) => {
                    let target = Target { vid, vport };
                    if software.decide(target, outcome, time_ns, sent.bytes, &mut each) {
                        return;
                    }
                    None
                }
                (Way::Control { .. }, None) => None,
            };
            each(Departed { port, time_ns, bytes: sent.bytes });
        })?;
        self.cycles += self.card.twin().cycles() - before;
        self.packets += waiting.len() as u64;
        Ok(())
    }
}
