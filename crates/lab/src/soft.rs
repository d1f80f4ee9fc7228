//! Runs an experiment in software: the same traffic through the engine of the software substrate.
//!
//! Flow: feeds → schedules, merged by time → batches → engine → capture and counters. Frames carry the arrival times
//! that they would have on a wire, so rate limits work as on the card. [`Engine`] reports the time that the engine
//! itself takes. There are no queues before or behind it, so no frame is lost for lack of room.

use std::time::Duration;

use hue_card::{FRAME_BYTES_MAX, Way};
use hue_planes::{Counters, Verdict};
use hue_soft::{Batch, Fate, Soft};
use hue_substrate::{Program, Substrate};
use hue_tables::Limits;

use crate::capture::{Captured, Latency};
use crate::counts::{NetworkCounts, PortCounts};
use crate::error::LabError;
use crate::feed::{Feed, name};
use crate::rate::wire_bytes;
use crate::run::{Experiment, FRAMES_MAX, Measured, PortMeasured, Stream, StreamMeasured};
use crate::schedule::{Bus, Schedule};
use crate::traffic::{Offer, Source};

/// Clock and width of an ideal bus: a cycle is a nanosecond, and the bus is fast enough for every rate.
pub const WIRES: Bus = Bus { clock_khz: 1_000_000, bytes: 64 };
/// Frames in a batch.
const BATCH_FRAMES: usize = 256;

/// The speed of the engine, on one core.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Engine {
    /// Frames that it processed.
    pub frames: u64,
    /// The time that it took.
    pub took: Duration,
}

/// A stream of frames for a port.
struct Offering {
    stream: usize,
    feed: Feed,
    schedule: Schedule,
    /// Time of the next frame; `None` at the end.
    next: Option<u64>,
    frame: Vec<u8>,
}

/// Fate of a frame.
#[derive(Clone, Copy, Default)]
struct Arrival {
    stream: usize,
    forwarded: bool,
    punted: bool,
}

/// Runs an experiment on a fresh engine with these networks. `ports` are the names of its ports; `bus` gives the unit
/// of time: [`WIRES`], or the bus of a card, so that the frames are the same as on the card. Calls `each` with every
/// frame that leaves, in the order of arrival; its cycles are those of arrival.
///
/// # Errors
/// All errors of [`LabError`]; an experiment with a line, a wave, or `rate:max` is for the card only.
pub fn run_soft(
    programs: &[Program],
    ports: &[String],
    experiment: &Experiment,
    bus: Bus,
    mut each: impl FnMut(Captured<'_>),
) -> Result<(Measured, Engine), LabError> {
    let end = check(experiment, bus)?;
    let mut engine = Soft::new(Limits::default()).map_err(|error| LabError::Engine(error.to_string()))?;
    engine.load(programs).map_err(|error| LabError::Engine(error.to_string()))?;
    // Sort as a card lists them, so that a seed gives the same frames.
    let mut known: Vec<&Program> = programs.iter().collect();
    known.sort_by_key(|program| program.vid);
    let mut measured = empty(experiment, ports.len(), bus);
    let mut offerings = Vec::with_capacity(experiment.streams.len());
    for (stream, Stream { port, traffic }) in experiment.streams.iter().enumerate() {
        let Offer::Rate(rate) = traffic.offer else { continue };
        let again = experiment.duration_us.is_some();
        let (feed, cut) = Feed::open(&traffic.source, stream, *port, &known, ports, again)?;
        if let Some(measured) = measured.ports.get_mut(port.index()) {
            measured.cut = cut;
        }
        let schedule = Schedule::new(rate, bus);
        let mut offering = Offering { stream, feed, schedule, next: None, frame: Vec::new() };
        offering.advance(end, || name(ports, *port))?;
        offerings.push(offering);
    }
    let mut speed = Engine::default();
    let (mut batch, mut arrivals) = (Batch::new(), Vec::<Arrival>::new());
    let mut last = 0;
    loop {
        let next = offerings.iter().zip(0..).filter_map(|(one, at)| Some((one.next?, at))).min();
        if let Some((time, at)) = next
            && let Some(Offering { stream, frame, .. }) = offerings.get(at)
            && let Some(Stream { port, .. }) = experiment.streams.get(*stream)
        {
            if speed.frames as usize + batch.len() >= FRAMES_MAX {
                return Err(LabError::Frames);
            }
            batch.push(*port, bus.nanoseconds(time), frame);
            arrivals.push(Arrival { stream: *stream, ..Arrival::default() });
            if let Some(measured) = measured.ports.get_mut(port.index()) {
                measured.offered += 1;
                measured.offered_wire_bytes += wire_bytes(frame.len());
                measured.counts.received += 1;
                measured.counts.received_bytes += frame.len() as u64;
            }
            last = last.max(time);
            let port = *port;
            if let Some(offering) = offerings.get_mut(at) {
                offering.advance(end, || name(ports, port))?;
            }
        }
        if batch.len() < BATCH_FRAMES && next.is_some() {
            continue;
        }
        if batch.is_empty() {
            break;
        }
        speed.frames += batch.len() as u64;
        let mut outputs = Outputs { measured: &mut measured, arrivals: &mut arrivals, bus, each: &mut each };
        // Only the engine's time, without the lab's processing of frames.
        speed.took += engine.run_timed(&mut batch, |output| outputs.take(output));
        batch.clear();
        finish(&mut arrivals, &mut measured);
    }
    measured.offered_cycles = if end == u64::MAX { last } else { end };
    measured.cycles = measured.offered_cycles;
    measured.unclaimed = engine.unclaimed();
    for program in known {
        let counters = engine.counters(program.vid).unwrap_or(Counters::new(program.kind()));
        let vid = program.vid;
        measured.networks.push(NetworkCounts { vid, counters, port_full: 0, handover_full: 0 });
    }
    Ok((measured, speed))
}

impl Offering {
    /// Fetches the next frame, if it is due before the end.
    fn advance(&mut self, end: u64, port: impl Fn() -> String) -> Result<(), LabError> {
        self.next = None;
        if !self.feed.next(&mut self.frame)? {
            return Ok(());
        }
        // Anything beyond this length is too long in any case.
        self.frame.truncate(FRAME_BYTES_MAX);
        let slot = self.schedule.next(self.frame.len());
        let slot = slot.map_err(|fault| LabError::TooFast { port: port(), fault })?;
        self.next = (slot.due < end).then_some(slot.begin);
        Ok(())
    }
}

/// Destinations of the frames of a batch.
struct Outputs<'a, F> {
    measured: &'a mut Measured,
    arrivals: &'a mut Vec<Arrival>,
    bus: Bus,
    each: &'a mut F,
}

impl<F: FnMut(Captured<'_>)> Outputs<'_, F> {
    fn take(&mut self, output: hue_soft::Output<'_>) {
        let Fate::Network { vid, vport, outcome, egress } = output.fate else { return };
        let Some(arrival) = self.arrivals.get_mut(output.frame) else { return };
        let way = match outcome.verdict() {
            Verdict::Drop => return,
            Verdict::Punt => {
                arrival.punted = true;
                self.measured.punted += 1;
                Way::Control { vid, vport, outcome: Some(outcome) }
            }
            Verdict::Forward => {
                arrival.forwarded = true;
                if let Some(port) = self.measured.ports.get_mut(egress.index()) {
                    port.counts.sent += 1;
                    port.counts.sent_bytes += output.bytes.len() as u64;
                    port.window += 1;
                    port.window_wire_bytes += wire_bytes(output.bytes.len());
                }
                Way::Port(egress)
            }
        };
        // Times were rounded to nanoseconds when the frames were pushed; this gives the original cycle.
        let cycle = (u128::from(output.time_ns) * u128::from(self.bus.clock_khz)).div_ceil(1_000_000) as u64;
        (self.each)(Captured { way, bytes: output.bytes, first_cycle: cycle, last_cycle: cycle });
    }
}

/// Adds the frames of a batch to their streams.
fn finish(arrivals: &mut Vec<Arrival>, measured: &mut Measured) {
    for arrival in arrivals.drain(..) {
        let Some(stream) = measured.streams.get_mut(arrival.stream) else { continue };
        stream.offered += 1;
        stream.forwarded += u64::from(arrival.forwarded);
        stream.punted += u64::from(arrival.punted);
        stream.dropped += u64::from(!arrival.forwarded && !arrival.punted);
    }
}

/// Checks the experiment. Returns the cycle at which traffic ends; `u64::MAX` when captures end by themselves.
fn check(experiment: &Experiment, bus: Bus) -> Result<u64, LabError> {
    if experiment.streams.is_empty() {
        return Err(LabError::Plan("no port has traffic"));
    }
    if experiment.line.is_some() || experiment.wave.is_some() {
        return Err(LabError::Plan("lines and waveforms are only for the card"));
    }
    for Stream { traffic, .. } in &experiment.streams {
        if traffic.offer == Offer::Max {
            return Err(LabError::Plan("rate:max is only for the card: give a rate for software"));
        }
        if experiment.duration_us.is_none() && matches!(traffic.source, Source::Synthetic(_)) {
            return Err(LabError::Plan("generated traffic has no end: set a duration"));
        }
    }
    let cycles = |us: u64| (u128::from(us) * u128::from(bus.clock_khz) / 1000) as u64;
    Ok(experiment.duration_us.map_or(u64::MAX, cycles))
}

fn empty(experiment: &Experiment, ports: usize, bus: Bus) -> Measured {
    Measured {
        bus,
        offered_cycles: 0,
        cycles: 0,
        ports: vec![PortMeasured { counts: PortCounts::default(), ..PortMeasured::default() }; ports],
        streams: vec![StreamMeasured::default(); experiment.streams.len()],
        networks: Vec::new(),
        unclaimed: hue_planes::UnclaimedCounters::default(),
        punted: 0,
        first_word: Latency::default(),
        last_word: Latency::default(),
    }
}
