//! Speed of the twin: packets per second of the machine's time.

use std::time::Instant;

use hue_card::{Card, Images, Offered, Twin};
use hue_demux::PortId;
use serde_json::{Value, json};

use crate::measure::{Spread, interleave};
use crate::networks::{card, frames};
use crate::report::{Section, round};
use crate::{Settings, machine};

/// Frames that `hueplane run` passes to the card at once.
const BATCH_FRAMES: usize = 1024;
/// The targets for `default`: bytes in the card, packets a second.
const AIMS: [(u16, f64); 2] = [(64, 300_000.0), (1500, 15_000.0)];
const FCS_BYTES: u16 = 4;

/// One way to run an image.
struct Contestant {
    image: &'static str,
    bytes: u16,
    card: Card<Twin>,
    /// Packets of a round.
    frames: Vec<(PortId, Vec<u8>)>,
    /// Wall time of all rounds, packets a second.
    wall: Vec<f64>,
    cycles: u64,
}

/// Captures through the twin, as `hueplane run --on card` takes them.
pub fn twin(images: &Images, settings: &Settings, title: &str) -> Result<Section, String> {
    let columns = [
        "image",
        "bytes in the card",
        "packets/s of wall time median",
        "min",
        "max",
        "packets/s of processor time median",
        "k cycles/s",
        "aim, at least",
    ];
    let mut section = Section::new(title, &columns);
    let mut contestants = Vec::new();
    for image in settings.images.iter().copied() {
        for (bytes, _) in AIMS {
            contestants.push(Contestant::new(images, image, bytes, settings.quick)?);
        }
    }
    let mut failed = None;
    let spreads = interleave(contestants.len(), settings.rounds, |at| match contestants[at].round() {
        Ok(result) => result,
        Err(error) => {
            failed.get_or_insert(error);
            (0.0, 1.0)
        }
    });
    if let Some(error) = failed {
        return Err(error);
    }
    for (contestant, processor) in contestants.iter().zip(&spreads) {
        // The first round is a warm-up.
        let wall = Spread::new(contestant.wall.iter().skip(1).copied().collect());
        let aim = AIMS.iter().find(|(bytes, _)| contestant.image == "default" && *bytes == contestant.bytes);
        let frames = (contestant.frames.len() * (settings.rounds + 1)) as f64;
        section.row(vec![
            json!(contestant.image),
            json!(contestant.bytes),
            round(wall.median(), 0),
            round(wall.min(), 0),
            round(wall.max(), 0),
            round(processor.median(), 0),
            round(contestant.cycles as f64 / frames * wall.median() / 1e3, 0),
            aim.map_or(Value::Null, |(_, aim)| json!(aim)),
        ]);
    }
    section.note(
        "One thread, release build; frames of four ports in batches of 1,024 through the driver, as `hueplane run --on card` takes \
         captures (without reading and writing files). Images take turns in each round.",
    );
    Ok(section)
}

impl Contestant {
    fn new(images: &Images, image: &'static str, bytes: u16, quick: bool) -> Result<Self, String> {
        let mut card = card(images, image, 1)?;
        card.set_offline().map_err(|error| error.to_string())?;
        let batches = if quick { 4 } else { 24 } / if bytes > 1000 { 8 } else { 1 };
        let frames = frames(bytes + FCS_BYTES, BATCH_FRAMES * batches.max(1))?;
        Ok(Self { image, bytes, card, frames, wall: Vec::new(), cycles: 0 })
    }

    /// A round: packets, and seconds of this thread's processor time.
    fn round(&mut self) -> Result<(f64, f64), String> {
        let offered: Vec<Offered<'_>> =
            self.frames.iter().map(|(port, bytes)| Offered { port: *port, time_ns: 0, bytes }).collect();
        let count = offered.len();
        let (wall, processor) = (Instant::now(), machine::thread_seconds());
        let before = self.card.twin().cycles();
        let mut left = 0;
        for batch in offered.chunks(BATCH_FRAMES) {
            self.card.run(batch, |_| left += 1).map_err(|error| error.to_string())?;
        }
        let seconds = machine::thread_seconds() - processor;
        self.wall.push(count as f64 / wall.elapsed().as_secs_f64());
        self.cycles += self.card.twin().cycles() - before;
        if left == count {
            Ok((count as f64, seconds))
        } else {
            Err(format!("{left} of {count} packets left"))
        }
    }
}
