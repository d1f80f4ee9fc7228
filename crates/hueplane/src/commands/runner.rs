//! Runs frames for `hueplane run`: in the software engine or in the card's twin. Both accept frames in
//! batches and return the outgoing frames in input order.

use std::path::PathBuf;
use std::time::Instant;

use hue_card::{Card, Offered, Twin, Way};
use hue_demux::PortId;
use hue_planes::{Counters, UnclaimedCounters, Verdict};
use hue_soft::{After, Batch, Fate, Soft, TunnelCounts};
use hue_substrate::{Program, Substrate};
use hue_tables::Vid;
use serde::Serialize;

use super::engine::{Networks, loaded};
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

/// Statistics of the simulation.
#[derive(Serialize)]
pub struct CardReport {
    image: String,
    clock_khz: u32,
    cycles: u64,
    simulated_ns: u64,
    wall_ns: u64,
    #[serde(skip)]
    packets: u64,
}

impl CardReport {
    /// The statistics as text.
    pub fn text(&self) -> String {
        let seconds = (self.wall_ns as f64 / 1e9).max(1e-9);
        format!(
            "image {}: {} cycles, {} us on the card; {:.2} s here, {} packets/s",
            self.image,
            grouped(self.cycles),
            grouped(self.simulated_ns / 1000),
            seconds,
            grouped((self.packets as f64 / seconds) as u64),
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

/// The twin, and the state that `run` needs around it.
pub struct OnCard {
    card: Card<Twin>,
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
                Ok(Self::Soft { soft: Box::new(loaded(networks)?), batch: Batch::new() })
            }
            On::Card => Ok(Self::Card(Box::new(OnCard::start(args, &networks.programs)?))),
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
                    let Fate::Network { outcome, egress, .. } = output.fate else { return };
                    // What a tunnel took or lost goes nowhere else.
                    if output.after != After::Verdict {
                        return;
                    }
                    let port = match outcome.verdict() {
                        Verdict::Forward => Some(egress),
                        Verdict::Punt => None,
                        Verdict::Drop => return,
                    };
                    each(Departed { port, time_ns: output.time_ns, bytes: output.bytes });
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
            Self::Card(on) => on.card.read_counters(vid)?,
        })
    }

    /// What tunnels did with the packets of a network.
    pub fn tunnel_counts(&self, vid: Vid) -> TunnelCounts {
        match self {
            Self::Soft { soft, .. } => soft.tunnel_counts(vid),
            Self::Card(_) => TunnelCounts::default(),
        }
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
            packets: on.packets,
        })
    }
}

impl OnCard {
    fn start(args: &Run, programs: &[Program]) -> Result<Self, Failure> {
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
        card.load(programs)?;
        let started = Instant::now();
        let (buffer, waiting) = (Vec::new(), Vec::new());
        Ok(Self { card, buffer, waiting, started, packets: 0, cycles: 0, wave })
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
        self.card.run(&offered, |sent| {
            let port = match sent.way {
                Way::Port(port) => Some(port),
                Way::Control { .. } => None,
            };
            let time_ns = offered.get(sent.frame).map_or(0, |one| one.time_ns);
            each(Departed { port, time_ns, bytes: sent.bytes });
        })?;
        self.cycles += self.card.twin().cycles() - before;
        self.packets += waiting.len() as u64;
        Ok(())
    }
}
