//! Measurements in the card's own clock cycles: packets with all ports busy, line rates, latency.

use hue_card::Images;
use hue_lab::{Measured, Offer, Rate};
use serde_json::{Value, json};

use crate::Settings;
use crate::networks::{Load, PORTS, card};
use crate::report::{Section, round};

/// Frame sizes without FCS with which the reference router was measured, and its cycles for each.
const REFERENCE: [(u16, f64); 3] = [(64, 10.0), (128, 18.0), (1500, 189.0)];
/// The targets for 64 bytes, image by image.
const AIMS: [(&str, f64); 3] = [("tcam1", 8.4), ("default", 2.1), ("wide", 1.1)];
/// Bytes of the FCS.
const FCS_BYTES: u16 = 4;
const GIGABIT: u64 = 1_000_000_000;

/// Cycles per packet if every port offers as much as the card takes.
pub fn busy(images: &Images, settings: &Settings, title: &str) -> Result<Section, String> {
    let columns = [
        "contestant",
        "networks",
        "bytes in the card",
        "cycles a packet",
        "aim, at most",
        "clock MHz",
        "Mpps",
    ];
    let mut section = Section::new(title, &columns);
    for image in settings.images.iter().copied() {
        let aim = AIMS.iter().find(|(name, _)| *name == image).map(|(_, aim)| *aim);
        for networks in counts(image) {
            for (bytes, _) in [(60, 0.0)].into_iter().chain(REFERENCE) {
                let load = Load::of(bytes + FCS_BYTES, Offer::Max, None, 1000)?;
                let measured = load.run(card(images, image, *networks)?, PORTS)?;
                let cycles = measured.cycles_a_packet().ok_or_else(|| format!("{image} forwards nothing"))?;
                let mhz = f64::from(measured.bus.clock_khz) / 1e3;
                section.row(vec![
                    json!(format!("hueplane {image}")),
                    json!(networks),
                    json!(bytes),
                    round(cycles, 2),
                    if bytes == 64 { json!(aim) } else { Value::Null },
                    json!(mhz),
                    round(mhz / cycles, 3),
                ]);
            }
        }
    }
    for (bytes, cycles) in REFERENCE {
        let name = "NetFPGA-1G reference router, output_port_lookup alone, measured before";
        let mhz = 62.5;
        let row = [
            json!(name),
            json!(1),
            json!(bytes),
            json!(cycles),
            Value::Null,
            json!(mhz),
            round(mhz / cycles, 3),
        ];
        section.row(row.into());
    }
    section.note(
        "Each port sends to the next one, over and over, from 256 pairs of addresses; input queues hold back and nothing is \
         dropped. Bytes are those on the card's bus, without check sequence: an Ethernet frame of 64 bytes is 60 there. \
         Cycles are those for which frames are offered, divided by the frames that left in as many cycles.",
    );
    Ok(section)
}

/// Networks to measure an image with.
fn counts(image: &str) -> &'static [u16] {
    if image == "tcam1" { &[1] } else { &[1, 64] }
}

/// Four ports at 1 Gbit/s, in and out: whether anything is lost.
pub fn line_rate(images: &Images, settings: &Settings, title: &str) -> Result<Section, String> {
    let columns = ["image", "lengths", "experiments", "frames offered", "lost", "lost in"];
    let mut section = Section::new(title, &columns);
    let named = [64, 65, 128, 256, 512, 1024, 1518];
    let step = if settings.quick { 16 } else { 1 };
    let rate = Rate::new(GIGABIT).ok_or("no rate")?;
    for image in settings.images.iter().copied() {
        // Every length at the papers' clock, where the margin is small. Elsewhere every length of the last beat of the widest bus, and
        // other lengths.
        let apart = if image == "tcam1" { 1 } else { 45 };
        let awkward: Vec<u16> = (64..=131).step_by(step).chain((132..=1518).step_by(apart * step)).collect();
        let mut all = named.map(|size| (size.to_string(), vec![size])).to_vec();
        let others = format!("{} from 64 to 1518, one by one", awkward.len());
        all.push((others, awkward));
        for (name, sizes) in all {
            let (mut offered, mut lost, mut places) = (0, 0, String::new());
            for size in &sizes {
                let duration_us = if sizes.len() > 1 { 100 } else { 1000 };
                let load = Load::of(*size, Offer::Rate(rate), Some(rate), duration_us)?;
                let measured = load.run(card(images, image, 1)?, PORTS)?;
                offered += frames(&measured);
                lost += measured.queue_drops();
                if measured.queue_drops() > 0 {
                    places.push_str(&format!("{size} "));
                }
            }
            let places = if places.is_empty() { Value::Null } else { json!(places.trim_end()) };
            section.row(vec![
                json!(image),
                json!(name),
                json!(sizes.len()),
                json!(offered),
                json!(lost),
                places,
            ]);
        }
    }
    section.note(
        "Lengths with check sequence; 84 byte times for 64 bytes. All four ports begin at once, each sends to the next one, over \
         a line of 1 Gbit/s again. 1 ms of each length, 0.1 ms of each of the others.",
    );
    Ok(section)
}

fn frames(measured: &Measured) -> u64 {
    measured.ports.iter().map(|port| port.offered).sum()
}

/// The highest rate of all four ports together at which nothing is lost.
pub fn sustained(images: &Images, settings: &Settings, title: &str) -> Result<Section, String> {
    let columns =
        ["image", "bytes", "Gbit/s a port", "Gbit/s in all", "Mpps", "of 10 Gbit/s", "of 25 Gbit/s"];
    let mut section = Section::new(title, &columns);
    let all = [64, 65, 128, 256, 512, 1024, 1518, 9220];
    let sizes: &[u16] = if settings.quick { &[64, 1518] } else { &all };
    for image in settings.images.iter().copied() {
        for size in sizes {
            let bits = highest(images, image, *size)?;
            let gbps = bits as f64 / 1e9;
            let wire_bits = 8 * hue_lab::wire_bytes(usize::from(size - FCS_BYTES));
            section.row(vec![
                json!(image),
                json!(size),
                round(gbps, 2),
                round(4.0 * gbps, 2),
                round(4.0 * bits as f64 / wire_bits as f64 / 1e6, 2),
                json!(if gbps >= 10.0 { "line rate" } else { "less" }),
                json!(if gbps >= 25.0 { "line rate" } else { "less" }),
            ]);
        }
    }
    section.note(
        "Bisection to 0.5 %, 200 µs each, nothing lost and as much sent as offered (to 0.4 % and 8 frames, so up to \
         2 % high); preambles and gaps count. Lines are as fast as what is offered.",
    );
    Ok(section)
}

/// Bits a second a port.
fn highest(images: &Images, image: &str, size: u16) -> Result<u64, String> {
    let bus = card(images, image, 1)?.description().clone();
    let passes = |bits: u64| -> Result<bool, String> {
        let rate = Rate::new(bits).ok_or("no rate")?;
        let load = Load::of(size, Offer::Rate(rate), Some(rate), 200)?;
        let measured = load.run(card(images, image, 1)?, PORTS)?;
        // Frames that only fill the queues would be lost in a longer run: as many must leave as come, except those in flight.
        let (left, _) = measured.window();
        let waiting = frames(&measured).saturating_sub(left);
        Ok(measured.queue_drops() == 0 && waiting <= frames(&measured) / 250 + 2 * u64::from(PORTS))
    };
    // A quarter of the bus's rate, with gaps, is more than each of four ports can have.
    let bytes = u64::from(size - FCS_BYTES);
    let bus_bits = 8 * u64::from(bus.bus_bytes) * u64::from(bus.clock_khz) * 1000;
    let mut high = bus_bits / 4 * hue_lab::wire_bytes(bytes as usize) / bytes * 101 / 100;
    let mut low = 0;
    while high - low > high / 200 {
        let middle = low + (high - low) / 2;
        if passes(middle)? { low = middle } else { high = middle }
    }
    Ok(low)
}

/// From a frame's first beat in to its first beat out, alone on the card and with all ports at 1 Gbit/s.
pub fn latency(images: &Images, settings: &Settings, title: &str) -> Result<Section, String> {
    let columns = [
        "image",
        "bytes",
        "load",
        "first word cycles min",
        "median",
        "p99",
        "max",
        "ns median",
        "last word cycles median",
    ];
    let mut section = Section::new(title, &columns);
    for image in settings.images.iter().copied() {
        for size in [64, 1518] {
            for (name, rate, ports) in
                [("one port, 50 Mbit/s", GIGABIT / 20, 1), ("four ports, 1 Gbit/s", GIGABIT, PORTS)]
            {
                let offer = Offer::Rate(Rate::new(rate).ok_or("no rate")?);
                let load = Load::of(size, offer, Rate::new(GIGABIT), 2000)?;
                let measured = load.run(card(images, image, 1)?, ports)?;
                let first = |thousandths| measured.first_word.quantile(thousandths);
                let median = first(500).ok_or_else(|| format!("{image} forwards nothing"))?;
                section.row(vec![
                    json!(image),
                    json!(size),
                    json!(name),
                    json!(first(0)),
                    json!(median),
                    json!(first(990)),
                    json!(first(1000)),
                    round(median as f64 * 1e6 / f64::from(measured.bus.clock_khz), 0),
                    json!(measured.last_word.quantile(500)),
                ]);
            }
        }
    }
    section.note(
        "As in §7.1.2 of Unnikrishnan's paper: the difference of two time stamps, here exact to a cycle, of every frame. The first \
         word is the first beat. A frame waits in its input queue until it is whole, so its own beats are in the figure. The \
         reference router's first word takes 19 cycles, measured before, in output_port_lookup alone, without input and output \
         queues. Lines behind the ports run at 1 Gbit/s.",
    );
    Ok(section)
}
