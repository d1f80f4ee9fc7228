//! Tests every live driver against a raw socket at the other end of a wire: both directions, bursts, full rings, an
//! interface that is removed and added again. Needs root.

use std::time::Duration;

use crate::common::{Lab, Raw, collect, collect_for, fails, flush, frame, may_run, number, send};
use hue_ports::{
    AfXdp, AfXdpOptions, Attachment, Driver, Link, Offered, OpenOptions, Opened, Packet, PacketSocket, Pool,
    Port, PortError, Tap, Wanted, open,
};

const TO: [u8; 6] = [2, 0, 0, 0, 0, 1];
const SLOTS: u32 = 4096;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Native,
    Generic,
    Packet,
    Tap,
}

const KINDS: [Kind; 4] = [Kind::Native, Kind::Generic, Kind::Packet, Kind::Tap];

/// A port of some kind, and a raw socket at the other end.
fn port(lab: &Lab, kind: Kind, ring: u32, pool: &mut Pool) -> (Box<dyn Port>, Raw) {
    let region = pool.region();
    match kind {
        Kind::Native | Kind::Generic => {
            let options = AfXdpOptions { ring, generic: kind == Kind::Generic, ..AfXdpOptions::default() };
            let (mut port, note) = lab.inside("near", || AfXdp::open("near", &options, &region)).unwrap();
            assert_eq!(note.is_some(), kind == Kind::Generic, "{note:?}");
            port.fill(pool);
            (Box::new(port), lab.raw())
        }
        Kind::Packet => {
            let port = lab.inside("near", || PacketSocket::open("near", ring, &region)).unwrap();
            (Box::new(port), lab.raw())
        }
        Kind::Tap => {
            let tap = lab.inside("near", || Tap::open("tap0", false)).unwrap();
            crate::common::run(&format!("ip -n {} link set dev tap0 up", lab.namespace("near")));
            (Box::new(tap), lab.inside("near", || Raw::open("tap0")))
        }
    }
}

fn close(mut port: Box<dyn Port>, pool: &mut Pool) {
    port.close(pool);
    drop(port);
    assert_eq!(pool.free(), SLOTS as usize, "every slot was returned");
}

#[test]
fn frames_pass_both_ways_whole_and_in_order() {
    if !may_run() {
        return;
    }
    for kind in KINDS {
        let lab = Lab::new();
        let mut pool = Pool::new(SLOTS, 2048).unwrap();
        let (mut port, raw) = port(&lab, kind, 1024, &mut pool);
        println!("{kind:?}: {}", port.driver());
        let frames: Vec<_> =
            (0..600u32).map(|i| frame(TO, i, [60, 61, 128, 1000, 1514][i as usize % 5])).collect();
        for part in frames.chunks(150) {
            part.iter().for_each(|frame| raw.send(frame));
            assert_eq!(collect(&mut *port, &mut pool, part.len()), part, "{kind:?}");
        }
        for part in frames.chunks(200) {
            part.iter().for_each(|frame| send(&mut *port, &mut pool, frame));
            flush(&mut *port, &mut pool);
        }
        let begin = std::time::Instant::now();
        let mut got = Vec::new();
        while got.len() < frames.len() && begin.elapsed() < crate::common::PATIENCE {
            match raw.receive() {
                Some(frame) => got.push(frame),
                None => flush(&mut *port, &mut pool),
            }
        }
        assert_eq!(got, frames, "{kind:?}");
        let counters = port.counters();
        let bytes: u64 = frames.iter().map(|frame| frame.len() as u64).sum();
        assert_eq!((counters.sent_packets, counters.sent_bytes), (600, bytes), "{kind:?}");
        assert!(counters.received_packets >= 600 && counters.received_bytes >= bytes, "{kind:?}");
        assert_eq!((counters.ring_full, counters.send_failed), (0, 0), "{kind:?}");
        close(port, &mut pool);
    }
}

#[test]
fn packets_are_offered_at_once_and_stamped_by_the_kernel() {
    if !may_run() {
        return;
    }
    let lab = Lab::new();
    let mut pool = Pool::new(SLOTS, 2048).unwrap();
    let region = pool.region();
    let port = lab.inside("near", || PacketSocket::open("near", 256, &region)).unwrap();
    let (mut port, raw) = (port.with_kernel_times(), lab.raw());
    let packet = |pool: &mut Pool, length| pool.copy_in(&frame(TO, 7, length), 0).unwrap();
    let mut packets: Vec<Packet> = (0..3).map(|_| packet(&mut pool, 60)).collect();
    packets.push(packet(&mut pool, 1600));
    assert_eq!(port.offer(&pool, &packets).unwrap(), Offered::Taken(3));
    assert_eq!(port.offer(&pool, &packets[3..]).unwrap(), Offered::Unfit, "longer than the MTU");
    assert_eq!((port.counters().sent_packets, port.counters().send_failed), (3, 0));
    for packet in packets {
        pool.give(packet.slot);
    }

    let unix_ns = || {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        now.as_nanos() as u64
    };
    let before_ns = unix_ns();
    raw.send(&frame(TO, 1, 60));
    let mut got = Vec::new();
    let begin = std::time::Instant::now();
    while got.is_empty() && begin.elapsed() < crate::common::PATIENCE {
        port.receive(&mut pool, 1, &mut got, 1).unwrap();
    }
    assert!((before_ns..=unix_ns()).contains(&got[0].time_ns), "{} is not the kernel's", got[0].time_ns);
    got.drain(..).for_each(|packet| pool.give(packet.slot));
    close(Box::new(port), &mut pool);

    let state = |interface: &str| lab.inside("near", || Link::of(interface)).unwrap();
    assert_eq!(
        state("near"),
        Some(Link { mtu_bytes: 1500, is_up: true, has_carrier: true, is_loopback: false })
    );
    crate::common::run(&format!("ip -n {} link set dev near down", lab.namespace("near")));
    assert!(state("near").is_some_and(|link| !link.is_up && !link.has_carrier));
    assert_eq!((state("absent"), state("a-name-that-is-too-long")), (None, None));
}

#[test]
fn readiness_tells_of_frames() {
    if !may_run() {
        return;
    }
    for kind in KINDS {
        let lab = Lab::new();
        let mut pool = Pool::new(SLOTS, 2048).unwrap();
        let (mut port, raw) = port(&lab, kind, 256, &mut pool);
        collect_for(&mut *port, &mut pool, Duration::from_millis(50)); // what the kernel itself sends at first
        assert!(!readable(&*port, 0), "{kind:?}: nothing is there");
        raw.send(&frame(TO, 1, 60));
        assert!(readable(&*port, 10_000), "{kind:?}: a frame is there");
        assert_eq!(collect(&mut *port, &mut pool, 1).len(), 1);
        assert!(!readable(&*port, 0), "{kind:?}: it was taken");
        close(port, &mut pool);
    }
}

#[allow(unsafe_code)]
fn readable(port: &dyn Port, timeout_ms: i32) -> bool {
    use std::os::fd::AsRawFd;
    let fd = port.readiness().unwrap().as_raw_fd();
    let mut polled = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    // SAFETY: one entry.
    unsafe { libc::poll(&raw mut polled, 1, timeout_ms) == 1 }
}

#[test]
fn a_full_ring_hands_packets_back_and_recovers() {
    if !may_run() {
        return;
    }
    for kind in [Kind::Native, Kind::Generic, Kind::Packet] {
        let lab = Lab::new();
        let mut pool = Pool::new(SLOTS, 2048).unwrap();
        let (mut port, raw) = port(&lab, kind, 64, &mut pool);
        for round in 0..3 {
            let mut refused = 0;
            for i in 0..100 {
                let packet = pool.copy_in(&frame(TO, i, 60), 0).unwrap();
                if let Err(packet) = port.send(&mut pool, packet) {
                    pool.give(packet.slot);
                    refused += 1;
                }
            }
            assert_eq!(refused, 36, "{kind:?}, round {round}");
            flush(&mut *port, &mut pool);
            let begin = std::time::Instant::now();
            let mut got = 0;
            while got < 64 && begin.elapsed() < crate::common::PATIENCE {
                got += u32::from(raw.receive().is_some());
            }
            assert_eq!(got, 64, "{kind:?}, round {round}");
            flush(&mut *port, &mut pool); // takes completions back
        }
        close(port, &mut pool);
    }
}

#[test]
fn a_full_receive_ring_drops_and_counts() {
    if !may_run() {
        return;
    }
    for kind in [Kind::Native, Kind::Generic] {
        let lab = Lab::new();
        let mut pool = Pool::new(SLOTS, 2048).unwrap();
        let (mut port, raw) = port(&lab, kind, 64, &mut pool);
        for i in 0..500 {
            raw.send(&frame(TO, i, 60));
        }
        let got = collect_for(&mut *port, &mut pool, Duration::from_millis(300));
        assert!(got.len() >= 64 && got.len() < 500, "{kind:?}: {}", got.len());
        let lost = port.counters().ring_full;
        assert!(got.len() as u64 + lost >= 500, "{kind:?}: {} came, {lost} were dropped", got.len());
        raw.send(&frame(TO, 1000, 60));
        assert_eq!(number(&collect(&mut *port, &mut pool, 1)[0]), 1000);
        close(port, &mut pool);
    }
}

#[test]
fn without_free_slots_nothing_breaks() {
    if !may_run() {
        return;
    }
    for kind in KINDS {
        let lab = Lab::new();
        let mut pool = Pool::new(SLOTS, 2048).unwrap();
        let mut taken: Vec<_> = std::iter::from_fn(|| pool.take()).collect();
        let (mut port, raw) = port(&lab, kind, 64, &mut pool);
        for i in 0..10 {
            raw.send(&frame(TO, i, 60));
        }
        let mut packets = Vec::new();
        assert_eq!(port.receive(&mut pool, 0, &mut packets, 64).unwrap(), 0, "{kind:?}");
        for _ in 0..200 {
            pool.give(taken.pop().unwrap());
        }
        // Slots are free again, so frames arrive again (earlier frames are lost if the ring had no slot).
        collect_for(&mut *port, &mut pool, Duration::from_millis(50));
        raw.send(&frame(TO, 99, 60));
        assert_eq!(number(collect(&mut *port, &mut pool, 1).last().unwrap()), 99, "{kind:?}");
        for slot in taken {
            pool.give(slot);
        }
        close(port, &mut pool);
    }
}

#[test]
fn a_deleted_interface_is_gone_and_works_again_when_it_is_back() {
    if !may_run() {
        return;
    }
    for kind in KINDS {
        let lab = Lab::new();
        let mut pool = Pool::new(SLOTS, 2048).unwrap();
        for round in 0..3 {
            let (mut port, raw) = port(&lab, kind, 256, &mut pool);
            raw.send(&frame(TO, 7, 60));
            assert_eq!(collect(&mut *port, &mut pool, 1).len(), 1, "{kind:?}, round {round}");
            // Frames are under way in both directions when the interface is removed.
            for i in 0..50 {
                raw.send(&frame(TO, i, 60));
                send(&mut *port, &mut pool, &frame(TO, i, 60));
            }
            match kind {
                Kind::Tap => {
                    crate::common::run(&format!("ip -n {} link del dev tap0", lab.namespace("near")))
                }
                _ => lab.part(),
            }
            let error = fails(&mut *port, &mut pool, &frame(TO, 0, 60)).expect("the port fails");
            assert!(error.is_gone(), "{kind:?}: {error}");
            assert!(error.to_string().contains("removed or is down"), "{error}");
            let again = fails(&mut *port, &mut pool, &frame(TO, 0, 60)).expect("and fails on");
            assert!(again.is_gone(), "{kind:?}: {again}");
            close(port, &mut pool);
            if kind != Kind::Tap {
                lab.join(1);
            }
        }
    }
}

#[test]
fn sending_to_an_interface_that_is_down_reports_it_gone() {
    if !may_run() {
        return;
    }
    for kind in [Kind::Native, Kind::Packet, Kind::Tap] {
        let lab = Lab::new();
        let mut pool = Pool::new(SLOTS, 2048).unwrap();
        let (mut port, _raw) = port(&lab, kind, 256, &mut pool);
        let name = if kind == Kind::Tap { "tap0" } else { "near" };
        crate::common::run(&format!("ip -n {} link set dev {name} down", lab.namespace("near")));
        let error = fails(&mut *port, &mut pool, &frame(TO, 0, 60)).expect("the port fails");
        assert!(error.is_gone(), "{kind:?}: {error}");
        close(port, &mut pool);
    }
}

#[test]
fn frames_that_the_system_rejects_cost_no_slot() {
    if !may_run() {
        return;
    }
    for kind in KINDS {
        let lab = Lab::new();
        let mut pool = Pool::new(SLOTS, 2048).unwrap();
        let (mut port, raw) = port(&lab, kind, 64, &mut pool);
        for bytes in [0, 1, 13, 1515, 1792] {
            let packet = pool.copy_in(&vec![2; bytes], 0).unwrap();
            if let Err(packet) = port.send(&mut pool, packet) {
                pool.give(packet.slot);
            }
            flush(&mut *port, &mut pool);
        }
        send(&mut *port, &mut pool, &frame(TO, 5, 60));
        flush(&mut *port, &mut pool);
        let begin = std::time::Instant::now();
        let mut got = None;
        while got.is_none() && begin.elapsed() < crate::common::PATIENCE {
            got = raw.receive();
        }
        assert_eq!(got.map(|frame| number(&frame)), Some(5), "{kind:?}");
        close(port, &mut pool);
    }
}

#[test]
fn all_queues_of_an_interface_are_served() {
    if !may_run() {
        return;
    }
    let lab = Lab::with_queues(3);
    let mut pool = Pool::new(SLOTS, 2048).unwrap();
    let (mut port, raw) = port(&lab, Kind::Native, 256, &mut pool);
    // The sender's kernel spreads flows over its queues by a hash.
    let frames: Vec<_> = (0..200)
        .map(|i| {
            let mut frame = frame(TO, i, 60);
            frame[6..12].copy_from_slice(&[2, 0, 0, 0, (i % 7) as u8, i as u8]);
            frame
        })
        .collect();
    frames.iter().for_each(|frame| raw.send(frame));
    assert!(readable(&*port, 10_000));
    let mut got = collect(&mut *port, &mut pool, frames.len());
    got.sort_by_key(|frame| number(frame));
    assert_eq!(got, frames);
    send(&mut *port, &mut pool, &frames[0]);
    flush(&mut *port, &mut pool);
    close(port, &mut pool);
}

#[test]
fn a_port_is_opened_again_right_after_it_was_closed() {
    if !may_run() {
        return;
    }
    let lab = Lab::new();
    let mut pool = Pool::new(SLOTS, 2048).unwrap();
    for _ in 0..10 {
        let mut opened = lab.inside("near", || open("near", &OpenOptions::default(), &pool)).unwrap();
        assert_eq!((opened.port.driver(), opened.note), (Driver::AfXdp { zero_copy: false }, None));
        collect_for(&mut *opened.port, &mut pool, Duration::from_millis(2));
        close(opened.port, &mut pool);
    }
}

#[test]
fn open_takes_the_best_driver_and_says_why_not_the_first() {
    if !may_run() {
        return;
    }
    let lab = Lab::new();
    let mut pool = Pool::new(SLOTS, 2048).unwrap();
    let near = |options: &OpenOptions, pool: &Pool| lab.inside("near", || open("near", options, pool));
    let first = near(&OpenOptions::default(), &pool).unwrap();
    assert_eq!((first.port.driver(), first.note.clone()), (Driver::AfXdp { zero_copy: false }, None));

    // The queue is in use, so the second port falls back to another driver, which works.
    let mut second = near(&OpenOptions::default(), &pool).unwrap();
    assert_eq!(second.port.driver(), Driver::Packet);
    let note = second.note.clone().unwrap();
    assert!(note.starts_with("packet socket, because near: cannot"), "{note}");
    second.port.close(&mut pool);
    let forced = near(&OpenOptions { driver: Wanted::AfXdp, ..OpenOptions::default() }, &pool);
    let Err(error) = forced else { panic!("the queue is taken") };
    assert!(matches!(error, PortError::System { .. }) && error.to_string().contains("another"), "{error}");
    close(first.port, &mut pool);

    for driver in [Wanted::Auto, Wanted::AfXdp, Wanted::Packet] {
        let options = OpenOptions { driver, ..OpenOptions::default() };
        let Err(error) = lab.inside("near", || open("lo", &options, &pool)) else { panic!("the loopback") };
        assert!(matches!(error, PortError::Loopback { .. }), "{error}");
        assert_eq!(error.to_string(), "lo: the loopback has no Ethernet segment; use one end of a veth pair");
    }

    crate::common::run(&format!("ip -n {} link set dev near mtu 3000", lab.namespace("near")));
    let Err(error) = near(&OpenOptions::default(), &pool) else { panic!("it does not fit") };
    assert!(matches!(error, PortError::Unfit { .. }) && error.to_string().contains("3000"), "{error}");
    let mut large = Pool::new(64, 4096).unwrap();
    let mut opened = near(&OpenOptions::default(), &large).unwrap();
    assert!(matches!(opened.port.driver(), Driver::AfXdp { .. }));
    opened.port.close(&mut large);
    assert_eq!(large.free(), 64);

    let Err(error) = lab.inside("near", || open("nothere", &OpenOptions::default(), &pool)) else {
        panic!("opened an interface that does not exist")
    };
    assert!(error.is_gone(), "{error}");
    let tap = OpenOptions { driver: Wanted::Tap, ..OpenOptions::default() };
    assert_eq!(lab.inside("near", || open("tap7", &tap, &pool)).unwrap().port.driver(), Driver::Tap);
    let Err(error) = lab.inside("near", || open("a-name-that-is-too-long", &tap, &pool)) else {
        panic!("the name is too long")
    };
    assert!(error.to_string().contains("15 characters"), "{error}");
}

#[test]
fn a_persistent_tap_stays_and_is_taken_over() {
    if !may_run() {
        return;
    }
    let lab = Lab::new();
    let near = lab.namespace("near");
    let tap = lab.inside("near", || Tap::open("tap0", true)).unwrap();
    tap.set_mac([2, 0, 0, 0, 0, 0x42]).unwrap();
    assert!(tap.set_mac([3, 0, 0, 0, 0, 0]).is_err(), "a group address");
    let Err(error) = lab.inside("near", || Tap::open("tap0", true)) else { panic!("it is taken") };
    assert!(error.to_string().contains("another process"), "{error}");
    drop(tap);
    crate::common::run(&format!("ip -n {near} link show dev tap0"));
    let tap = lab.inside("near", || Tap::open("tap0", true)).unwrap();
    assert_eq!(tap.mac().unwrap(), [2, 0, 0, 0, 0, 0x42]);
    crate::common::run(&format!("ip -n {near} link set dev tap0 up"));
    let carrier = || {
        let shown =
            std::process::Command::new("ip").args(["-n", &near, "link", "show", "dev", "tap0"]).output();
        !String::from_utf8(shown.unwrap().stdout).unwrap().contains("NO-CARRIER")
    };
    tap.set_carrier(false).unwrap();
    assert!(!carrier());
    tap.set_carrier(true).unwrap();
    assert!(carrier());
    tap.set_persistent(false).unwrap();
    drop(tap);
    assert!(!crate::common::try_run(&format!("ip -n {near} link show dev tap0")));
}

#[test]
fn a_created_tap_is_new_has_an_owner_and_stays_only_when_it_is_persistent() {
    if !may_run() {
        return;
    }
    let lab = Lab::new();
    let near = lab.namespace("near");
    let create = || lab.inside("near", || Tap::create("tap0", 1234));
    let there = || crate::common::try_run(&format!("ip -n {near} link show dev tap0"));
    drop(create().unwrap());
    assert!(!there());
    let tap = create().unwrap();
    tap.set_persistent(true).unwrap();
    drop(tap);
    assert!(there());
    let shown =
        std::process::Command::new("ip").args(["-n", &near, "-d", "link", "show", "dev", "tap0"]).output();
    let shown = String::from_utf8(shown.unwrap().stdout).unwrap();
    assert!(shown.contains("user 1234"), "{shown}");
    // It exists, although nobody has it open.
    assert!(create().is_err());
    assert!(there());
}

/// Id of the XDP program at the driver's hook of the interface `near`.
fn program_of(lab: &Lab) -> Option<u32> {
    let out = std::process::Command::new("ip")
        .args(["-d", "-n", &lab.namespace("near"), "link", "show", "dev", "near"])
        .output()
        .unwrap();
    let text = String::from_utf8(out.stdout).unwrap();
    let (_, after) = text.split_once("prog/xdp id ")?;
    after.split(' ').next()?.parse().ok()
}

#[test]
fn the_next_process_takes_over_the_attachment_of_the_program() {
    if !may_run() {
        return;
    }
    let lab = Lab::new();
    let mut pool = Pool::new(SLOTS, 2048).unwrap();
    let (before, raw) = port(&lab, Kind::Native, 256, &mut pool);
    let old = program_of(&lab).unwrap();
    assert!(Attachment::of_program(0).unwrap().is_none());
    let attachment = Attachment::of_program(old).unwrap().unwrap();

    // The other process opens the interface while this one still has its queue.
    let mut next = Pool::new(SLOTS, 2048).unwrap();
    let options = AfXdpOptions { ring: 256, busy_for: Duration::from_secs(5), ..AfXdpOptions::default() };
    let prepared = lab.inside("near", || AfXdp::prepare("near", &options, &next.region())).unwrap();
    let prepared = prepared.with_attachment(Some(attachment));
    let opened = std::thread::scope(|scope| {
        let opens = scope.spawn(|| lab.inside("near", || prepared.open(None)));
        std::thread::sleep(Duration::from_millis(50));
        assert!(!opens.is_finished());
        close(before, &mut pool);
        opens.join().unwrap()
    })
    .unwrap();
    let Opened { mut port, note } = opened;
    assert_eq!(note, None);
    assert_eq!(port.receive(&mut next, 0, &mut Vec::new(), 1).unwrap(), 0, "it has slots to receive into");
    let new = program_of(&lab).unwrap();
    assert_ne!(new, old);
    assert!(Attachment::of_program(old).unwrap().is_none());
    let frames: Vec<_> = (0..100).map(|i| frame(TO, i, 60)).collect();
    frames.iter().for_each(|frame| raw.send(frame));
    assert_eq!(collect(&mut *port, &mut next, frames.len()), frames);
    close(port, &mut next);
    assert_eq!(program_of(&lab), None, "the program stays attached");
}
