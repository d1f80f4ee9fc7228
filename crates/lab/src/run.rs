//! Runs an experiment: sends traffic to the ports of a card, captures the frames that leave it, and reads its
//! counters.
//!
//! Flow: feeds → schedules → twin → capture → counters, which must agree. The card behaves as in live
//! operation: frames without room are dropped and counted, unless traffic is offered as fast as the card
//! accepts it. All ports start at cycle 0. Rate limits use the same clock.

use std::path::PathBuf;

use hue_card::generated as regs;
use hue_card::{Card, CardError, FRAME_BYTES_MAX, Kinds, ToCpu, Twin, TwinFrame, Way};
use hue_demux::PortId;
use hue_planes::UnclaimedCounters;
use hue_substrate::Program;
use hue_tables::{MacKey, Vid};

use crate::capture::{Captured, Latency};
use crate::counts::{self, NetworkCounts, PortCounts};
use crate::error::LabError;
use crate::feed::{Feed, name};
use crate::rate::{Rate, wire_bytes};
use crate::schedule::{Bus, Schedule};
use crate::traffic::{Offer, SIZE_BYTES_MAX, Source, Traffic};

/// Most frames in an experiment.
pub const FRAMES_MAX: usize = 1 << 24;
/// Frames are pushed to the card ahead of time, for this many cycles.
const SLICE_CYCLES: u64 = 4096;
/// Number of frames that wait outside a port whose rate is `max`. A frame has at least one beat.
const AHEAD_FRAMES: u64 = 64;
/// Cycles without any beat, while no frame is due, after which the card is considered broken.
const STILL_CYCLES_MAX: u64 = 200_000;

/// Traffic of a port, or a part of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stream {
    /// The port.
    pub port: PortId,
    /// The traffic.
    pub traffic: Traffic,
}

/// The experiment to run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Experiment {
    /// Streams of traffic; several of one port share its wire.
    pub streams: Vec<Stream>,
    /// Duration in microseconds of the card's time; `None` plays each capture once.
    pub duration_us: Option<u64>,
    /// Speed of the lines that the ports send to; `None` means one beat in each clock cycle.
    pub line: Option<Rate>,
    /// Signals to record.
    pub wave: Option<Wave>,
}

/// A waveform of the card's signals in FST format.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Wave {
    /// The file to write.
    pub file: PathBuf,
    /// First cycle of the experiment to record, and the cycle after the last.
    pub cycles: (u64, u64),
}

/// Frames offered to a port, and the port's counters.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PortMeasured {
    /// Frames offered.
    pub offered: u64,
    /// Byte times of these frames on the wire.
    pub offered_wire_bytes: u64,
    /// Offered frames that are truncated in the capture.
    pub cut: u64,
    /// Counters of the card.
    pub counts: PortCounts,
    /// Frames that left through it in the throughput window.
    pub window: u64,
    /// Byte times of those frames on the wire.
    pub window_wire_bytes: u64,
}

/// Outcomes of a stream's frames.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct StreamMeasured {
    /// Frames offered.
    pub offered: u64,
    /// Frames with at least one copy that left through a port.
    pub forwarded: u64,
    /// Frames with at least one copy that went to a control plane.
    pub punted: u64,
    /// Frames without any copy that left: they were dropped by a rule, or lost for lack of room.
    pub dropped: u64,
    /// Cycles from a frame's first beat in to its first beat out through a port; empty if ports had to wait.
    pub first_word: Latency,
}

/// The result of an experiment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Measured {
    /// Clock and width of the bus.
    pub bus: Bus,
    /// Cycles during which frames were offered. Throughput is measured in a window of the same length that
    /// starts with the first departure.
    pub offered_cycles: u64,
    /// Cycles from the first frame offered until the card was empty.
    pub cycles: u64,
    /// MAC ports, by number.
    pub ports: Vec<PortMeasured>,
    /// Streams, in their order.
    pub streams: Vec<StreamMeasured>,
    /// Networks, by id.
    pub networks: Vec<NetworkCounts>,
    /// Frames that belong to no network.
    pub unclaimed: UnclaimedCounters,
    /// Frames that went to networks' control planes.
    pub punted: u64,
    /// Cycles from a frame's first beat in to its first beat out; empty if ports had to wait.
    pub first_word: Latency,
    /// Cycles from a frame's last beat in to its last beat out.
    pub last_word: Latency,
}

impl Measured {
    /// Frames that left through ports in the throughput window, and their byte times.
    #[must_use]
    pub fn window(&self) -> (u64, u64) {
        self.ports
            .iter()
            .fold((0, 0), |(frames, bytes), port| (frames + port.window, bytes + port.window_wire_bytes))
    }

    /// Frames lost in full queues.
    #[must_use]
    pub fn queue_drops(&self) -> u64 {
        let networks: u64 =
            self.networks.iter().map(|network| network.port_full + network.handover_full).sum();
        let lost = |port: &PortMeasured| port.counts.input_queue_full + port.counts.flood_memory_full;
        self.ports.iter().map(lost).sum::<u64>() + networks
    }

    /// Cycles per frame that left through a port in the window; `None` if there were none.
    #[must_use]
    pub fn cycles_a_packet(&self) -> Option<f64> {
        let (frames, _) = self.window();
        (frames > 0).then(|| self.offered_cycles as f64 / frames as f64)
    }
}

/// Runs an experiment on a fresh card. `ports` are the names of its ports. Calls `each` with every frame that
/// leaves, in the order of their last beats.
///
/// # Errors
/// All errors of [`LabError`].
pub fn run(
    mut card: Card<Twin>,
    ports: &[String],
    experiment: &Experiment,
    mut each: impl FnMut(Captured<'_>),
) -> Result<Measured, LabError> {
    let mut lab = Lab::new(&mut card, ports, experiment)?;
    while lab.offer(&mut card)? {
        lab.capture(&mut card, &mut each)?;
    }
    lab.finish(&mut card, &mut each)?;
    lab.measured(&mut card)
}

/// A frame that was offered.
struct Arrival {
    /// Cycles of its first and last beat.
    beats: (u64, u64),
    /// Its stream, by number.
    stream: usize,
    /// Whether a copy of it left through a port, or went to a control plane.
    forwarded: bool,
    punted: bool,
}

/// A stream of frames for a port.
struct Offering {
    port: PortId,
    name: String,
    feed: Feed,
    /// `None` means as many as the port accepts.
    schedule: Option<Schedule>,
    /// The next frame's first and last beat; `None` at the end.
    next: Option<(u64, u64)>,
    frame: Vec<u8>,
}

struct Lab {
    bus: Bus,
    /// Cycle of the card at which the experiment began.
    start: u64,
    /// Cycles during which frames are offered; `u64::MAX` until captures end.
    end: u64,
    offerings: Vec<Offering>,
    ports: Vec<PortMeasured>,
    streams: Vec<StreamMeasured>,
    /// Cycle from which each port accepts the next beat.
    free: Vec<u64>,
    /// By tag.
    arrivals: Vec<Arrival>,
    mac_ports: u32,
    /// Cycle of the first departure.
    departed: Option<u64>,
    /// Frames captured from each MAC port.
    captured: Vec<u64>,
    /// Of the networks on the card.
    kinds: Kinds,
    punted: u64,
    /// What notes of the card say: a network, an address, and the virtual port that it is behind.
    notes: Vec<(Vid, MacKey, u16)>,
    first_word: Latency,
    last_word: Latency,
}

impl Lab {
    fn new(card: &mut Card<Twin>, ports: &[String], experiment: &Experiment) -> Result<Self, LabError> {
        let description = card.description().clone();
        let bus = Bus { clock_khz: description.clock_khz, bytes: description.bus_bytes };
        let waits = check(experiment, description.mac_ports, ports)?;
        let programs: Vec<&Program> = card.programs().collect();
        let mut offerings = Vec::with_capacity(experiment.streams.len());
        let mut measured = vec![PortMeasured::default(); description.mac_ports as usize];
        for (stream, Stream { port, traffic }) in experiment.streams.iter().enumerate() {
            let again = experiment.duration_us.is_some();
            let (feed, cut) = Feed::open(&traffic.source, stream, *port, &programs, ports, again)?;
            if let Some(measured) = measured.get_mut(port.index()) {
                measured.cut = cut;
            }
            let schedule = match traffic.offer {
                Offer::Rate(rate) => Some(Schedule::new(rate, bus)),
                Offer::Max => None,
            };
            let (name, frame) = (name(ports, *port), Vec::new());
            offerings.push(Offering { port: *port, name, feed, schedule, next: None, frame });
        }
        let control = if waits { regs::CONTROL_OFFLINE } else { 0 };
        card.device().write(regs::CONTROL, control)?;
        let line = experiment.line;
        for port in 0..description.mac_ports {
            card.twin()
                .set_line(port as u8, line.map(|rate| (8 * u64::from(bus.clock_khz) * 1000, rate.bits())));
        }
        let cycles = |us: u64| (u128::from(us) * u128::from(bus.clock_khz) / 1000) as u64;
        let mut lab = Self {
            bus,
            start: card.twin().cycles(),
            end: experiment.duration_us.map_or(u64::MAX, cycles),
            offerings,
            ports: measured,
            streams: vec![StreamMeasured::default(); experiment.streams.len()],
            free: vec![0; description.mac_ports as usize],
            arrivals: Vec::new(),
            mac_ports: description.mac_ports,
            departed: None,
            captured: vec![0; description.mac_ports as usize],
            kinds: card.kinds(),
            punted: 0,
            notes: Vec::new(),
            first_word: Latency::default(),
            last_word: Latency::default(),
        };
        for at in 0..lab.offerings.len() {
            lab.advance(at)?;
        }
        if let Some(Wave { file, cycles: (from, to) }) = &experiment.wave {
            let cycle = |of: u64| lab.start.saturating_add(of);
            card.twin().set_wave(file, cycle(*from), cycle(*to))?;
        }
        Ok(lab)
    }

    /// Fetches the next frame of a source.
    fn advance(&mut self, at: usize) -> Result<(), LabError> {
        let Some(offering) = self.offerings.get_mut(at) else { return Ok(()) };
        offering.next = None;
        if !offering.feed.next(&mut offering.frame)? {
            return Ok(());
        }
        // Cut long frames: anything beyond this length is too long in any case.
        offering.frame.truncate(FRAME_BYTES_MAX);
        let Some(schedule) = &mut offering.schedule else {
            offering.next = Some((0, 0));
            return Ok(());
        };
        let slot = schedule.next(offering.frame.len());
        let slot = slot.map_err(|fault| LabError::TooFast { port: offering.name.clone(), fault })?;
        if slot.due < self.end {
            offering.next = Some((slot.begin, slot.begin + slot.beats - 1));
        }
        Ok(())
    }

    /// Offers the frames of a time slice and runs it. Returns `false` if no frames are left.
    fn offer(&mut self, card: &mut Card<Twin>) -> Result<bool, LabError> {
        let now = card.twin().cycles() - self.start;
        let waits = self.offerings.iter().all(|offering| offering.schedule.is_none());
        let more = if waits { self.offer_all(card, now)? } else { self.offer_due(card, now + SLICE_CYCLES)? };
        if more {
            let slice = if waits { AHEAD_FRAMES } else { SLICE_CYCLES };
            let until = (now + slice).min(self.end.max(now + 1));
            let ran = card.twin().run(until - now);
            // Nothing was inside the card in between, but time passes.
            card.twin().run_exactly(until - now - ran);
            // With scheduled frames, the card may be idle until the next one.
            if waits {
                self.check_progress(card)?;
            }
        }
        Ok(more)
    }

    /// Offers as many frames as ports accept. Returns `false` if no frames are left.
    fn offer_all(&mut self, card: &mut Card<Twin>, now: u64) -> Result<bool, LabError> {
        let mut more = false;
        for at in 0..self.offerings.len() {
            while now < self.end
                && let Some(offering) = self.offerings.get(at).filter(|offering| offering.next.is_some())
            {
                more = true;
                if card.twin().waiting(offering.port.get()) >= AHEAD_FRAMES {
                    break;
                }
                // Its arrival time is the time at which it was pushed.
                self.push(card, at, now, now)?;
                self.advance(at)?;
            }
        }
        Ok(more)
    }

    /// Offers the frames that begin before a cycle, in the order in which they begin. Returns `false` if no frames
    /// are left.
    fn offer_due(&mut self, card: &mut Card<Twin>, until: u64) -> Result<bool, LabError> {
        let mut any = false;
        loop {
            let next = self.offerings.iter().zip(0..).filter_map(|(one, at)| Some((one.next?, at))).min();
            let Some(((begin, last), at)) = next else { return Ok(any) };
            any = true;
            if begin >= until {
                return Ok(any);
            }
            let (begin, last) = self.make_room(at, begin, last)?;
            self.push(card, at, begin, last)?;
            self.advance(at)?;
        }
    }

    /// Moves a frame behind those that the port's other streams have sent.
    fn make_room(&mut self, at: usize, begin: u64, last: u64) -> Result<(u64, u64), LabError> {
        let Some(offering) = self.offerings.get(at) else { return Ok((begin, last)) };
        let streams = self.offerings.iter().filter(|other| other.port == offering.port).count() as u64;
        let Some(free) = self.free.get_mut(offering.port.index()) else { return Ok((begin, last)) };
        let late = free.saturating_sub(begin);
        // Each of the other streams may have a frame of maximum length before it.
        if late > streams * self.bus.beats(usize::from(SIZE_BYTES_MAX)) {
            let what = "the rates of its streams add up to more than it carries".to_owned();
            return Err(LabError::Traffic { port: offering.name.clone(), what });
        }
        *free = last + late + 1;
        Ok((begin + late, last + late))
    }

    fn push(&mut self, card: &mut Card<Twin>, at: usize, begin: u64, last: u64) -> Result<(), LabError> {
        let Some(offering) = self.offerings.get(at) else { return Ok(()) };
        if self.arrivals.len() >= FRAMES_MAX {
            return Err(LabError::Frames);
        }
        let tag = self.arrivals.len() as u32;
        self.arrivals.push(Arrival { beats: (begin, last), stream: at, forwarded: false, punted: false });
        let port = offering.port;
        let time_ns = self.bus.nanoseconds(begin);
        let pushed = card.twin().push(port.get(), time_ns, tag, self.start + begin, &offering.frame);
        if !pushed {
            return Err(CardError::Port { port: port.get(), ports: self.mac_ports }.into());
        }
        if let Some(measured) = self.ports.get_mut(port.index()) {
            measured.offered += 1;
            measured.offered_wire_bytes += wire_bytes(offering.frame.len());
        }
        Ok(())
    }

    /// Collects the frames that left.
    fn capture(
        &mut self,
        card: &mut Card<Twin>,
        each: &mut impl FnMut(Captured<'_>),
    ) -> Result<(), LabError> {
        if let Some(failure) = card.twin().failure() {
            return Err(CardError::Assertion(failure).into());
        }
        let now_ns = self.bus.nanoseconds(card.twin().cycles() - self.start);
        while let Some(frame) = card.twin().pop() {
            if let Some(captured) = self.take(frame)? {
                each(captured);
            }
        }
        // The driver of a card does the same: it writes what notes tell it, while frames go on.
        for (vid, mac, vport) in std::mem::take(&mut self.notes) {
            card.learn(vid, mac, vport, now_ns)?;
        }
        card.advance(now_ns)?;
        Ok(())
    }

    /// A frame that left; `None` for a note, which is for the driver.
    fn take<'a>(&mut self, frame: TwinFrame<'a>) -> Result<Option<Captured<'a>>, LabError> {
        let (first_cycle, last_cycle) = (frame.first_cycle - self.start, frame.last_cycle - self.start);
        let offered = self.arrivals.len();
        let Some(arrival) = self.arrivals.get_mut(frame.tag as usize) else {
            let what = format!("a frame with tag {}, of {offered}", frame.tag);
            return Err(CardError::Nonsense(what).into());
        };
        let (first_in, last_in) = arrival.beats;
        let port = usize::from(frame.port);
        let (way, bytes) = if let Some(captured) = self.captured.get_mut(port) {
            *captured += 1;
            arrival.forwarded = true;
            let window_end = self.departed.get_or_insert(first_cycle).saturating_add(self.end);
            if let Some(measured) = self.ports.get_mut(port).filter(|_| last_cycle < window_end) {
                measured.window += 1;
                measured.window_wire_bytes += wire_bytes(frame.bytes.len());
            }
            if self.offerings.iter().all(|offering| offering.schedule.is_some()) {
                self.first_word.add(first_cycle - first_in);
                if let Some(stream) = self.streams.get_mut(arrival.stream) {
                    stream.first_word.add(first_cycle - first_in);
                }
                self.last_word.add(last_cycle - last_in);
            }
            (Way::Port(PortId::new(frame.port)), frame.bytes)
        } else {
            let (header, bytes) = ToCpu::split(frame.bytes).map_err(CardError::Nonsense)?;
            if header.is_note {
                self.notes.extend(header.note(bytes));
                return Ok(None);
            }
            self.punted += 1;
            arrival.punted = true;
            (self.kinds.way(header)?, bytes)
        };
        Ok(Some(Captured { way, bytes, first_cycle, last_cycle }))
    }

    /// Runs until the card is empty.
    fn finish(&mut self, card: &mut Card<Twin>, each: &mut impl FnMut(Captured<'_>)) -> Result<(), LabError> {
        self.end = self.end.min(card.twin().cycles() - self.start);
        while !card.twin().idle() {
            card.twin().run(SLICE_CYCLES);
            self.capture(card, each)?;
            self.check_progress(card)?;
        }
        self.capture(card, each)
    }

    /// Checks that the card makes progress.
    fn check_progress(&self, card: &mut Card<Twin>) -> Result<(), LabError> {
        let cycles = card.twin().still_cycles();
        if cycles > STILL_CYCLES_MAX && !card.twin().idle() {
            return Err(CardError::Stuck { cycles, waiting: self.arrivals.len() }.into());
        }
        Ok(())
    }

    fn measured(mut self, card: &mut Card<Twin>) -> Result<Measured, LabError> {
        let cycles = card.twin().cycles() - self.start;
        card.twin().end_wave();
        for (measured, port) in self.ports.iter_mut().zip(0..) {
            measured.counts = counts::port(card, port)?;
        }
        for arrival in &self.arrivals {
            let Some(stream) = self.streams.get_mut(arrival.stream) else { continue };
            stream.offered += 1;
            stream.forwarded += u64::from(arrival.forwarded);
            stream.punted += u64::from(arrival.punted);
            stream.dropped += u64::from(!arrival.forwarded && !arrival.punted);
        }
        let networks = counts::networks(card)?;
        let measured = Measured {
            bus: self.bus,
            offered_cycles: self.end,
            cycles,
            ports: self.ports,
            streams: self.streams,
            networks,
            unclaimed: card.read_unclaimed()?,
            punted: self.punted,
            first_word: self.first_word,
            last_word: self.last_word,
        };
        balance(&measured, &self.captured)?;
        Ok(measured)
    }
}

/// Checks the streams. Returns whether ports wait (they all do, or none does).
fn check(experiment: &Experiment, mac_ports: u32, ports: &[String]) -> Result<bool, LabError> {
    let streams = &experiment.streams;
    if streams.is_empty() {
        return Err(LabError::Plan("no port has traffic"));
    }
    for (at, stream) in streams.iter().enumerate() {
        if u32::from(stream.port.get()) >= mac_ports {
            return Err(CardError::Port { port: stream.port.get(), ports: mac_ports }.into());
        }
        let is_other = |other: &Stream| other.port == stream.port && stream.traffic.offer == Offer::Max;
        if streams.iter().take(at).any(is_other) {
            let what = "it has two streams, but rate:max uses the whole port".to_owned();
            return Err(LabError::Traffic { port: name(ports, stream.port), what });
        }
        if experiment.duration_us.is_none() && matches!(stream.traffic.source, Source::Synthetic(_)) {
            return Err(LabError::Plan("generated traffic has no end: set a duration"));
        }
    }
    let waiting = streams.iter().filter(|stream| stream.traffic.offer == Offer::Max).count();
    if waiting != 0 && waiting != streams.len() {
        return Err(LabError::Plan("rate:max makes ports wait, so no other port can have a rate"));
    }
    Ok(waiting != 0)
}

/// Checks that the counters agree with the offered and captured frames.
fn balance(measured: &Measured, captured: &[u64]) -> Result<(), LabError> {
    let fault = |what: String| Err(LabError::Unbalanced(what));
    for (index, (port, captured)) in measured.ports.iter().zip(captured).enumerate() {
        let counts = &port.counts;
        if port.offered != counts.received + counts.input_queue_full {
            return fault(format!(
                "port {index} was offered {} frames, received {} and dropped {}",
                port.offered, counts.received, counts.input_queue_full
            ));
        }
        if *captured != counts.sent {
            return fault(format!("port {index} sent {} frames, {captured} were captured", counts.sent));
        }
    }
    Ok(())
}
