//! The lab's generator: the same traffic has the same results on the card and in software.

use std::collections::BTreeMap;
use std::str::FromStr;

use hue_card::Way;
use hue_demux::PortId;
use hue_differential::{Random, card, image, programs};
use hue_lab::{Bus, Captured, Experiment, Measured, Sort, Stream, Traffic, run, run_soft};
use hue_substrate::Program;

/// All frames that left, by port and network. In software their order is that of arrival, on the card that of departure.
type Left = BTreeMap<(Option<u8>, u16), Vec<Vec<u8>>>;

fn take(left: &mut Left, captured: Captured<'_>) {
    let way = match captured.way {
        Way::Port(port) => (Some(port.get()), 0),
        Way::Control { vid, .. } => (None, vid.get()),
    };
    left.entry(way).or_default().push(captured.bytes.to_vec());
}

fn sorted(mut left: Left) -> Left {
    left.values_mut().for_each(|frames| frames.sort());
    left
}

/// Networks without rate limits: meters use times to the nanosecond, and copies of a frame pass the card's meter later than the
/// frame.
fn networks() -> Vec<Program> {
    let mut all = programs(&mut Random::new(5), 3, 20);
    for program in &mut all {
        (program.rate_limit, program.gated) = (None, false);
    }
    all
}

#[test]
fn generated_traffic_has_the_same_results_in_software() {
    for name in ["tcam3", "default"] {
        let image = image(name);
        let networks = networks();
        let names: Vec<String> = (0..4).map(|port| format!("p{port}")).collect();
        let sorts = Sort::ALL.iter().map(|(_, sort)| format!("sort:{sort}"));
        for what in
            sorts.chain(["sort:forward,size:64-1518".to_owned(), "size:imix,flows:300,seed:9".to_owned()])
        {
            let mut streams = Vec::new();
            for port in 0..4 {
                // Ports on which no network can have such traffic are skipped.
                let traffic = Traffic::from_str(&format!("rate:50M,{what}")).unwrap();
                let one = Stream { port: PortId::new(port), traffic };
                let alone =
                    Experiment { streams: vec![one.clone()], duration_us: Some(20), line: None, wave: None };
                let bus = Bus { clock_khz: 62_500, bytes: 8 };
                if run_soft(&networks, &names, &alone, bus, |_| ()).is_ok() {
                    streams.push(one);
                }
            }
            assert!(!streams.is_empty(), "{name}, {what}");
            let experiment = Experiment { streams, duration_us: Some(400), line: None, wave: None };
            let mut card = card(&image, &networks);
            let description = card.description();
            let bus = Bus { clock_khz: description.clock_khz, bytes: description.bus_bytes };
            let (mut left, mut left_soft) = (Left::new(), Left::new());
            let on_card = run(card, &names, &experiment, |captured| take(&mut left, captured)).unwrap();
            let (soft, engine) =
                run_soft(&networks, &names, &experiment, bus, |captured| take(&mut left_soft, captured))
                    .unwrap();
            assert_eq!(on_card.queue_drops(), 0, "{name}, {what}: the card has room");
            assert_eq!(on_card.networks, soft.networks, "{name}, {what}");
            assert_eq!(on_card.unclaimed, soft.unclaimed, "{name}, {what}");
            let counts = |measured: &Measured| -> Vec<_> {
                let port = |port: &hue_lab::PortMeasured| {
                    let counts = &port.counts;
                    (port.offered, counts.received, counts.received_bytes, counts.sent, counts.sent_bytes)
                };
                measured.ports.iter().take(4).map(port).collect()
            };
            assert_eq!(counts(&on_card), counts(&soft), "{name}, {what}");
            let fates = |measured: &Measured| -> Vec<_> {
                let fate =
                    |one: &hue_lab::StreamMeasured| (one.offered, one.forwarded, one.punted, one.dropped);
                measured.streams.iter().map(fate).collect()
            };
            assert_eq!(fates(&on_card), fates(&soft), "{name}, {what}");
            assert!(engine.frames > 0 && on_card.punted == soft.punted);
            assert!(sorted(left) == sorted(left_soft), "{name}, {what}: other bytes left");
        }
    }
}
