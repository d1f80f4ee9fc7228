//! If nothing moves in a card any more, its user reports this in bounded time: a run over captures, an experiment, a live card. A port that
//! ends slowly is none of these.

use std::path::Path;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};

use hue_card::{Card, CardCommand, CardEvent, Image, LiveCard, Seats, Twin};
use hue_demux::PortId;
use hue_differential::{Frame, Random, card, frames, image, offered, programs};
use hue_lab::{Experiment, Stream};
use hue_ports::{Ending, MemoryPort, OutputDir, Resolution, SlowEnd};
use hue_substrate::Program;
use hue_substrate::clock::Clock;
use hue_substrate::wake::Wake;

const FRAMES: usize = 100;

fn world() -> (Vec<Program>, Vec<Frame>) {
    let mut random = Random::new(5);
    let programs = programs(&mut random, 1, 20);
    let frames = frames(&mut random, &programs, FRAMES);
    (programs, frames)
}

/// A card whose ports offer nothing in `idle`, and take nothing in `stall`, of 256 cycles.
fn card_with(image: &Image, idle: u16, stall: u16) -> Card<Twin> {
    let mut card = card(image, &world().0);
    assert!(card.twin().set_stress(0, idle, stall));
    card
}

#[test]
fn a_run_that_stands_still_ends() {
    let image = image("tcam3");
    for (idle, stall) in [(0, 256), (256, 0)] {
        let error = card_with(&image, idle, stall).run(&offered(&world().1), |_| ()).unwrap_err().to_string();
        assert!(error.starts_with("the card is stuck: nothing moved for "), "{error}");
        assert!(error.ends_with(" cycles with 100 frames inside"), "{error}");
    }
}

fn write_capture(folder: &Path) -> String {
    let mut out = OutputDir::open(folder).unwrap();
    let index = out.add("in.pcap", Resolution::Micro).unwrap();
    for frame in world().1 {
        let wire_len = frame.bytes.len() as u32;
        let frame = hue_ports::Frame { bytes: &frame.bytes, time_ns: frame.time_ns, wire_len };
        out.writer(index).unwrap().write(frame).unwrap();
    }
    out.commit().unwrap();
    folder.join("in.pcap").display().to_string()
}

/// Also if frames are offered as fast as they are taken; here none is taken.
#[test]
fn an_experiment_that_stands_still_ends() {
    let image = image("tcam3");
    let folder = tempfile::tempdir().unwrap();
    let capture = write_capture(folder.path());
    let names: Vec<String> = (0..4).map(|port| format!("p{port}")).collect();
    for (rate, duration_us) in [("max", None), ("max", Some(1_000_000_000)), ("1G", None), ("1G", Some(100))]
    {
        let traffic = format!("{capture}@{rate}").parse().unwrap();
        let streams = vec![Stream { port: PortId::new(0), traffic }];
        let experiment = Experiment { streams, duration_us, line: None, wave: None };
        for (idle, stall) in [(0, 256), (256, 0)] {
            let ended = hue_lab::run(card_with(&image, idle, stall), &names, &experiment, |_| ());
            let error = ended.unwrap_err().to_string();
            assert!(error.starts_with("the card is stuck: nothing moved for "), "{rate}: {error}");
        }
    }
}

/// A live card whose rounds the test runs.
fn live(card: Card<Twin>, tell: impl Fn(CardEvent) + Send + 'static) -> LiveCard {
    let (clock, _) = Clock::by_hand(1);
    let (wake, seats) = (Arc::new(Wake::new().unwrap()), Arc::new(Seats::new().unwrap()));
    LiveCard::by_hand(card, wake, Vec::new(), (64, 2048), seats, clock, tell).unwrap()
}

#[test]
fn a_live_card_that_stands_still_has_failed() {
    let image = image("tcam3");
    for (idle, stall) in [(0, 256), (256, 0)] {
        let mut card = card_with(&image, idle, stall);
        for frame in world().1 {
            assert!(card.twin().push(frame.port.get(), 0, 0, 0, &frame.bytes));
        }
        let (told, events) = channel();
        let told = Mutex::new(told);
        let tell = move |event| told.lock().unwrap().send(event).unwrap();
        let live = live(card, tell);
        let mut rounds = 0;
        let event = loop {
            if let Ok(event) = events.try_recv() {
                break event;
            }
            assert!(live.round() && rounds < 10_000, "it does not notice");
            rounds += 1;
        };
        let CardEvent::Failed(reason) = event else { panic!("{event:?}") };
        assert!(reason.starts_with("nothing has moved in the card for "), "{reason}");
        assert!(reason.ends_with(" cycles, although it is not empty"), "{reason}");
        assert!(!live.round(), "it has ended");
    }
}

/// The kernel takes its time to close a port: the card's thread moves frames meanwhile, and has the port's memory afterwards.
#[test]
fn a_port_that_the_kernel_closes_slowly_stalls_nobody() {
    for ending in [Ending::SlowDrop, Ending::SlowRelease] {
        let live = live(card_with(&image("tcam3"), 0, 0), |_| ());
        let (open, gate) = channel();
        let (port, _far) = MemoryPort::pair("slow", 64).unwrap();
        assert!(live.set_port(2, PortId::new(2), Box::new(SlowEnd::new(port, ending, gate))));
        live.tell(CardCommand::TakePort(2));
        // The gate is closed, so a card that waited would never come back from here.
        for _ in 0..20 {
            live.round();
        }
        assert!(live.look(|runner| runner.inside().closing).unwrap(), "{ending:?}: nobody has closed it");
        drop(open);
        while live.look(|runner| runner.inside().closing).unwrap() {
            live.round();
        }
    }
}
