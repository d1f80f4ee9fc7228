//! One experiment: the same networks and frames on both sides, and the first difference.

use std::collections::BTreeMap;

use hue_card::generated::PortRow;
use hue_card::{Card, Events, Image, Offered, Twin, Way};
use hue_demux::PortId;
use hue_planes::{Counters, Kind, UnclaimedCounters, Verdict};
use hue_soft::{Batch, Fate, Soft};
use hue_substrate::{Program, Substrate};
use hue_tables::{Limits, MacEntry, Vid};
use hue_wire::Mac;

use crate::world::Frame;

/// A description of a difference.
pub type Difference = String;

/// Results of an experiment: packets by outcome, of all networks together, and unclaimed frames.
#[derive(Clone, Default, Debug)]
pub struct Tally {
    /// Counts by kind and name of the outcome; without a kind, by reason why frames are unclaimed.
    pub by_name: BTreeMap<(Option<Kind>, &'static str), u64>,
    /// Clock cycles that it took on the card.
    pub cycles: u64,
}

/// A frame that left, in a form that both sides have.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Departed {
    pub frame: usize,
    to: Option<PortId>,
    /// For punted frames: network, virtual port, code of the outcome.
    why: Option<(Vid, u16, u8)>,
    bytes: Vec<u8>,
}

impl Departed {
    /// Whether it went to the control plane of this network, from this virtual port.
    pub(crate) fn is_of(&self, vid: Vid, vport: u16) -> bool {
        self.why.is_some_and(|(whose, at, _)| whose == vid && at == vport)
    }

    /// Whether it went to its network's control plane, unchanged, with this outcome.
    pub(crate) fn is_punted(&self, code: u8, bytes: &[u8]) -> bool {
        self.to.is_none() && self.why.is_some_and(|(_, _, why)| why == code) && self.bytes == bytes
    }
}

/// Identifies a flow: network, port in, port out (`None`: control), and whether its frames are copies of group frames, which
/// other frames may overtake.
type Flow = (Vid, PortId, Option<PortId>, bool);

pub(crate) struct SoftResult {
    pub departed: Vec<Departed>,
    /// Network of each departed frame.
    vids: Vec<Vid>,
    counters: Vec<Counters>,
    unclaimed: UnclaimedCounters,
    /// Bytes received and sent by network. A frame that is sent to several ports counts once.
    bytes: BTreeMap<Vid, (u64, u64)>,
    /// What became of each frame in its networks.
    outcomes: BTreeMap<usize, Vec<(Vid, &'static str)>>,
    /// Copies of such frames.
    copies: BTreeMap<Vid, u64>,
    /// What networks of kinds that learn have learnt.
    learnt: BTreeMap<Vid, Stations>,
}

/// What a network has learnt: addresses with their virtual ports, whether they are static, and their ages in nanoseconds; how many
/// addresses were learnt, moved, and not learnt for lack of room.
type Stations = (Vec<(Mac, u16, bool, u64)>, [u64; 3]);

/// A card of an image, offline, with networks on it.
#[must_use]
pub fn card(image: &Image, programs: &[Program]) -> Card<Twin> {
    let mut card = Card::new(image.start().unwrap()).unwrap();
    card.set_offline().unwrap();
    card.load(programs).unwrap();
    card
}

/// Runs both sides from the beginning.
///
/// # Errors
/// The first difference.
pub fn compare(
    image: &Image,
    programs: &[Program],
    frames: &[Frame],
    seed: u64,
) -> Result<Tally, Difference> {
    let mut card = card(image, programs);
    let pauses = [(0, 0), (100, 0), (0, 100), (160, 160), (0, 0), (30, 230)];
    let (idle, stall) = pauses[(seed % pauses.len() as u64) as usize];
    assert!(card.twin().set_stress(seed, idle, stall));
    compare_on(&mut card, programs, frames)
}

/// Runs both sides with the card in its present state; the software engine runs `programs`.
///
/// # Errors
/// The first difference.
pub fn compare_on(
    card: &mut Card<Twin>,
    programs: &[Program],
    frames: &[Frame],
) -> Result<Tally, Difference> {
    let expected = software(programs, frames);
    let before = card.twin().cycles();
    card.offer(&offered(frames)).map_err(|error| error.to_string())?;
    let (found, cycles) = collect(card, frames.len())?;
    let taken = card.twin().cycles() - before;
    departures(&expected, &found, frames)?;
    order(&expected, &cycles, frames)?;
    counters(card, programs, &expected)?;
    stations(card, programs, &expected, frames)?;
    ports(card, frames, &found)?;
    let events = card.take_events().map_err(|error| error.to_string())?;
    if events != Events::default() {
        return Err(format!("nothing should have happened: {events:?}"));
    }
    let mut tally = Tally { cycles: taken, ..Tally::default() };
    for (program, counters) in programs.iter().zip(&expected.counters) {
        for (outcome, count) in counters.iter().filter(|(_, count)| *count > 0) {
            *tally.by_name.entry((Some(program.kind()), outcome.name())).or_default() += count;
        }
    }
    for (reason, count) in expected.unclaimed.iter().filter(|(_, count)| *count > 0) {
        *tally.by_name.entry((None, reason.name())).or_default() += count;
    }
    Ok(tally)
}

/// The frames in the form that the card takes.
#[must_use]
pub fn offered(frames: &[Frame]) -> Vec<Offered<'_>> {
    frames
        .iter()
        .map(|frame| Offered { port: frame.port, time_ns: frame.time_ns, bytes: &frame.bytes })
        .collect()
}

/// The frames that left, of this number of frames, in their order, and the cycle in which each left.
pub(crate) fn collect(card: &mut Card<Twin>, frames: usize) -> Result<(Vec<Departed>, Vec<u64>), Difference> {
    let mut found = Vec::new();
    let mut cycles = Vec::new();
    card.drain(frames, |sent| {
        let (to, why) = match sent.way {
            Way::Port(port) => (Some(port), None),
            Way::Control { vid, vport, outcome } => {
                (None, Some((vid, vport, outcome.map_or(0, |outcome| outcome.code()))))
            }
        };
        found.push(Departed { frame: sent.frame, to, why, bytes: sent.bytes.to_vec() });
        cycles.push(sent.cycle);
    })
    .map_err(|error| error.to_string())?;
    Ok((found, cycles))
}

pub(crate) fn software(programs: &[Program], frames: &[Frame]) -> SoftResult {
    let limits = Limits { image_bytes_max: 64 << 20, ..Limits::default() };
    let mut soft = Soft::new(limits).unwrap();
    soft.load(programs).unwrap();
    let mut batch = Batch::new();
    for frame in frames {
        assert!(batch.push(frame.port, frame.time_ns, &frame.bytes));
    }
    let (mut departed, mut vids) = (Vec::new(), Vec::new());
    let mut bytes: BTreeMap<Vid, (u64, u64)> = BTreeMap::new();
    let mut copies: BTreeMap<Vid, u64> = BTreeMap::new();
    let mut outcomes: BTreeMap<usize, Vec<(Vid, &'static str)>> = BTreeMap::new();
    let mut flooded = None;
    soft.run(&mut batch, |output| {
        let Fate::Network { vid, vport, outcome, egress } = output.fate else { return };
        outcomes.entry(output.frame).or_default().push((vid, outcome.name()));
        let length = output.bytes.len() as u64;
        let counted = bytes.entry(vid).or_default();
        let again = outcome.is_flood() && flooded.replace((output.frame, vid)) == Some((output.frame, vid));
        if outcome.is_flood() {
            *copies.entry(vid).or_default() += 1;
        }
        counted.0 += if again { 0 } else { length };
        let (to, why) = match outcome.verdict() {
            Verdict::Forward => (Some(egress), None),
            Verdict::Punt => (None, Some((vid, vport, outcome.code()))),
            Verdict::Drop => return,
        };
        counted.1 += if to.is_some() && !again { length } else { 0 };
        departed.push(Departed { frame: output.frame, to, why, bytes: output.bytes.to_vec() });
        vids.push(vid);
    });
    let counters = programs.iter().map(|program| soft.counters(program.vid).unwrap()).collect();
    let learns = |program: &&Program| program.settings.learning().is_some();
    let learnt = programs.iter().filter(learns).map(|program| {
        let rows = soft.macs(program.vid, end_ns(frames));
        let rows = rows.into_iter().map(|row| (row.mac, row.vport, row.fixed, row.age_ns));
        let counts = soft.switch_counts(program.vid).unwrap_or_default();
        (program.vid, (rows.collect(), [counts.learnt, counts.moved, counts.not_learnt]))
    });
    let learnt = learnt.collect();
    SoftResult { departed, vids, counters, unclaimed: soft.unclaimed(), bytes, outcomes, copies, learnt }
}

/// The time of the last frame.
fn end_ns(frames: &[Frame]) -> u64 {
    frames.last().map_or(0, |frame| frame.time_ns)
}

/// Compares what networks have learnt, and the number of copies that they made.
fn stations(
    card: &Card<Twin>,
    programs: &[Program],
    expected: &SoftResult,
    frames: &[Frame],
) -> Result<(), Difference> {
    for program in programs {
        let Some(want) = expected.learnt.get(&program.vid) else { continue };
        let rows = card.macs(program.vid, end_ns(frames));
        let age_ns = |entry: &MacEntry| if entry.fixed { 0 } else { entry.age_ns };
        let rows = rows.iter().map(|entry| (Mac::from_u64(entry.mac), entry.hop, entry.fixed, age_ns(entry)));
        let counts = card.learnt_counts(program.vid).unwrap_or_default();
        let have: Stations = (rows.collect(), [counts.learnt, counts.moved, counts.not_learnt]);
        if have != *want {
            return Err(format!("addresses of {}: software {want:?}, card {have:?}", program.name));
        }
        let want = expected.copies.get(&program.vid).copied().unwrap_or_default();
        let have = card.read_copies(program.vid).map_err(|error| error.to_string())?;
        if have != Some(want) {
            return Err(format!("copies of {}: software {want}, card {have:?}", program.name));
        }
    }
    Ok(())
}

fn departures(expected: &SoftResult, found: &[Departed], frames: &[Frame]) -> Result<(), Difference> {
    for (index, want) in expected.departed.iter().enumerate() {
        let Some(have) = found.get(index) else {
            return Err(format!("frame {}: {want:?} is missing on the card", want.frame));
        };
        if want != have {
            let first = want.frame.min(have.frame);
            let (frame, outcomes) = (frames.get(first), expected.outcomes.get(&first));
            return Err(format!("of {frame:02x?}\n{outcomes:?}\nsoftware {want:02x?}\ncard     {have:02x?}"));
        }
    }
    match found.get(expected.departed.len()) {
        Some(more) => Err(format!("frame {}: the card alone sends {more:02x?}", more.frame)),
        None => Ok(()),
    }
}

/// Checks that frames of one network from one port to another keep their order. `cycles` has the cycle in which each left.
fn order(expected: &SoftResult, cycles: &[u64], frames: &[Frame]) -> Result<(), Difference> {
    let mut last: BTreeMap<Flow, (usize, u64)> = BTreeMap::new();
    for ((one, vid), cycle) in expected.departed.iter().zip(&expected.vids).zip(cycles) {
        let frame = &frames[one.frame];
        let group = hue_wire::ethernet::is_group(&frame.bytes);
        let flow = (*vid, frame.port, one.to, group);
        if let Some((frame, before)) = last.insert(flow, (one.frame, *cycle))
            && before > *cycle
        {
            return Err(format!("frame {} overtook frame {frame} of its flow {flow:?}", one.frame));
        }
    }
    Ok(())
}

fn counters(card: &Card<Twin>, programs: &[Program], expected: &SoftResult) -> Result<(), Difference> {
    for (program, want) in programs.iter().zip(&expected.counters) {
        let have = card.read_counters(program.vid).map_err(|error| error.to_string())?;
        if have.as_ref() != Some(want) {
            return Err(format!("counters of {}: software {want:?}, card {have:?}", program.name));
        }
        let want = expected.bytes.get(&program.vid).copied().unwrap_or_default();
        let have = card.read_bytes(program.vid).map_err(|error| error.to_string())?;
        if have != Some(want) {
            return Err(format!("bytes of {}: software {want:?}, card {have:?}", program.name));
        }
    }
    let (want, have) = (expected.unclaimed, card.read_unclaimed().map_err(|error| error.to_string())?);
    if want != have {
        return Err(format!("unclaimed: software {want:?}, card {have:?}"));
    }
    Ok(())
}

/// Checks the counters of ports: packets that came in, packets that left, and no drops in queues.
fn ports(card: &mut Card<Twin>, frames: &[Frame], found: &[Departed]) -> Result<(), Difference> {
    for port in 0..4u8 {
        let id = PortId::new(port);
        let mut read = |counter: u32| {
            let row = card.device().read_row::<PortRow>(u32::from(port) * 8 + counter);
            row.map(|row| row.value).map_err(|error| error.to_string())
        };
        let arrived = frames.iter().filter(|frame| frame.port == id);
        let left = found.iter().filter(|one| one.to == Some(id));
        let want = [
            arrived.clone().count() as u64,
            arrived.map(|frame| frame.bytes.len() as u64).sum(),
            0,
            left.clone().count() as u64,
            left.map(|one| one.bytes.len() as u64).sum(),
            0,
            0,
        ];
        for (counter, want) in (0u32..).zip(want) {
            let have = read(counter)?;
            if have != want {
                return Err(format!("counter {counter} of port {port}: expected {want}, card {have}"));
            }
        }
    }
    Ok(())
}
