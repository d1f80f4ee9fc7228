//! Events and captures: order, resumption, gaps, and the bytes of a capture.

use std::io::{Read, Write};
use std::time::Duration;

use crate::world::{Served, eventually};
use hueplaned::api::*;
use hueplaned::client::EventStream;
use hueplaned::http::ServeLimits;

const LONG: Duration = Duration::from_secs(30);
const SHORT: Duration = Duration::from_millis(200);

fn sequences(stream: &mut EventStream, count: usize) -> Vec<u64> {
    (0..count).map(|_| stream.wait(LONG).unwrap().expect("an event").sequence).collect()
}

#[test]
fn events_follow_and_resume_where_the_client_was() {
    let served = Served::new();
    let client = served.client();
    (0..5).for_each(|_| served.world.happen(EventKind::NetworkChanged, Some("red")));
    let page = client.events(3).unwrap();
    assert_eq!((page.first, page.last, page.events.len()), (1, 5, 2));

    let mut stream = client.follow_events(0).unwrap();
    assert_eq!(sequences(&mut stream, 5), [1, 2, 3, 4, 5]);
    served.world.happen(EventKind::PortDown, None);
    assert_eq!(sequences(&mut stream, 1), [6]);
    let last = stream.last_sequence();
    drop(stream);
    (0..3).for_each(|_| served.world.happen(EventKind::PortUp, None));
    let mut stream = client.follow_events(last).unwrap();
    assert_eq!(sequences(&mut stream, 3), [7, 8, 9]);
    assert_eq!(stream.wait(SHORT).unwrap(), None);
    // No number is too large; one that does not exist yet is from another daemon, so all events follow.
    let mut stream = client.follow_events(u64::MAX).unwrap();
    assert_eq!(sequences(&mut stream, 3), [1, 2, 3]);
}

#[test]
fn last_event_id_counts_more_than_since() {
    let served = Served::new();
    (0..5).for_each(|_| served.world.happen(EventKind::PortUp, None));
    let read = |head: &str, until: &str| {
        let mut stream = served.connect();
        stream.write_all(format!("GET {head}\r\n\r\n").as_bytes()).unwrap();
        let mut text = String::new();
        while !text.contains(until) {
            let mut bytes = [0; 4096];
            let count = stream.read(&mut bytes).unwrap();
            assert!(count > 0, "{text}");
            text += std::str::from_utf8(&bytes[..count]).unwrap();
        }
        text
    };
    let text = read("/v1/events?follow=true&since=1 HTTP/1.1\r\nhost: a\r\nLast-Event-ID: 3", "id: 5\n");
    assert!(text.contains("content-type: text/event-stream"), "{text}");
    assert!(!text.contains("id: 3\n") && text.contains("id: 4\nevent: port_up\ndata: {"), "{text}");
    let text = read("/v1/events?follow=true&since=2 HTTP/1.1\r\nhost: a", "id: 5\n");
    assert!(!text.contains("id: 2\n") && text.contains("id: 3\n"), "{text}");
    let page = read("/v1/events HTTP/1.1\r\nhost: a\r\nLast-Event-ID: 4", "\"events\":[");
    assert!(page.contains("\"sequence\":5") && !page.contains("\"sequence\":4"), "{page}");
    let wrong = read("/v1/events HTTP/1.1\r\nhost: a\r\nLast-Event-ID: x", "Last-Event-ID");
    assert!(wrong.starts_with("HTTP/1.1 400"), "{wrong}");
}

#[test]
fn a_late_client_learns_that_events_were_dropped() {
    let served = Served::new();
    let client = served.client();
    (0..1_500).for_each(|_| served.world.happen(EventKind::PortUp, None));
    let mut stream = client.follow_events(100).unwrap();
    let gap = stream.wait(LONG).unwrap().unwrap();
    assert_eq!((gap.kind, gap.sequence), (EventKind::Gap, 500));
    assert_eq!(sequences(&mut stream, 1_000), (501..=1_500).collect::<Vec<_>>());
    // From the beginning: all events that are kept, without a gap.
    assert_eq!(sequences(&mut client.follow_events(0).unwrap(), 1), [501]);
    // A number of an earlier daemon.
    assert_eq!(sequences(&mut client.follow_events(9_999).unwrap(), 1), [501]);
}

#[test]
fn a_reader_that_falls_behind_loses_events_and_holds_up_nobody() {
    let served = Served::new();
    let client = served.client();
    let mut slow = client.follow_events(0).unwrap();
    let mut quick = client.follow_events(0).unwrap();
    // A follower that requests all kept events is notified of gaps from its first event on.
    served.world.happen(EventKind::Started, None);
    let mut before = slow.wait(LONG).unwrap().expect("the first event").sequence;
    for _ in 0..40 {
        (0..1_000).for_each(|_| served.world.happen(EventKind::PortUp, Some(&"n".repeat(60))));
        let end = quick.last_sequence() + 1;
        while quick.last_sequence() < end {
            quick.wait(LONG).unwrap().unwrap();
        }
    }
    served.world.happen(EventKind::Stopping, None);
    let mut gaps = 0;
    while before < 40_002 {
        let event = slow.wait(LONG).unwrap().expect("an event");
        let is_gap = event.kind == EventKind::Gap;
        assert!(event.sequence == before + 1 || is_gap, "{before} then {}", event.sequence);
        gaps += u32::from(is_gap);
        before = event.sequence;
    }
    assert!(gaps > 0, "the test did not make it fall behind");
}

#[test]
fn an_event_stream_shows_that_it_lives() {
    let served = Served::with(ServeLimits { alive: SHORT, ..ServeLimits::default() }, async || None);
    let mut stream = served.connect();
    stream.write_all(b"GET /v1/events?follow=true HTTP/1.1\r\nhost: a\r\n\r\n").unwrap();
    let mut text = String::new();
    while !text.contains(": alive\n\n") {
        let mut bytes = [0; 4096];
        let count = stream.read(&mut bytes).unwrap();
        text += std::str::from_utf8(&bytes[..count]).unwrap();
    }
    assert!(text.contains(": events\n\n"), "something comes at once");
}

/// Blocks of a pcapng file: type and body.
fn blocks(mut bytes: &[u8]) -> Vec<(u32, Vec<u8>)> {
    let word = |bytes: &[u8], at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    let mut list = Vec::new();
    while !bytes.is_empty() {
        let length = word(bytes, 4) as usize;
        assert!(length.is_multiple_of(4) && word(bytes, length - 4) as usize == length, "lengths agree");
        list.push((word(bytes, 0), bytes[8..length - 4].to_vec()));
        bytes = &bytes[length..];
    }
    list
}

fn holds(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

#[test]
fn a_capture_is_pcapng_with_interfaces_and_verdicts() {
    let served = Served::new();
    let client = served.client();
    let filter = CaptureFilter { count: Some(3), ..CaptureFilter::default() };
    let mut capture = client.capture(&filter).unwrap();
    eventually("the capture listens", || served.world.captures() == 1);
    served.world.pass(Some("red"), "drop", "no_route", vec![1; 61]);
    served.world.pass(Some("blue"), "forward", "forward", vec![2; 60]);
    served.world.pass(Some("red"), "punt", "arp", vec![3; 64]);
    served.world.pass(Some("red"), "punt", "arp", vec![4; 64]);
    let mut bytes = Vec::new();
    capture.read_to_end(&mut bytes).unwrap(); // ends after three
    let blocks = blocks(&bytes);
    let kinds: Vec<u32> = blocks.iter().map(|(kind, _)| *kind).collect();
    assert_eq!(kinds, [0x0a0d_0d0a, 1, 6, 1, 6, 6]);
    assert!(holds(&blocks[1].1, "red/left") && holds(&blocks[3].1, "blue/left"));
    assert!(holds(&blocks[2].1, "drop no_route") && holds(&blocks[5].1, "punt arp"));
    assert!(holds(&blocks[4].1, "forward") && !holds(&blocks[4].1, "forward forward"));
    assert_eq!(blocks[5].1[..4], [0; 4], "the third is red's again");
    eventually("the capture is gone", || served.world.captures() == 0);

    // Our own reader accepts it.
    let path = served.folder.join("capture.pcapng");
    std::fs::write(&path, &bytes).unwrap();
    let mut reader = hue_ports::CaptureReader::open(&path).unwrap();
    let mut frames = Vec::new();
    while reader.next_frame(|frame| frames.push((frame.time_ns, frame.bytes.to_vec()))).unwrap() {}
    let time_ns = 1_700_000_000_123_456_789;
    assert_eq!(frames, [(time_ns, vec![1; 61]), (time_ns, vec![2; 60]), (time_ns, vec![3; 64])]);
}

#[test]
fn a_capture_without_a_reader_ends() {
    let served = Served::new();
    let client = served.client();
    let capture = client.capture(&CaptureFilter::default()).unwrap();
    eventually("the capture listens", || served.world.captures() == 1);
    drop(capture);
    drop(client);
    eventually("the capture is gone", || served.world.captures() == 0);
}

/// Bytes that a client sent after the request, and that nobody reads, hide that the connection is closed.
#[test]
fn a_capture_ends_also_when_its_reader_sent_more_than_it_should() {
    let served = Served::with(ServeLimits { alive: SHORT, ..ServeLimits::default() }, async || None);
    let mut stream = served.connect();
    stream
        .write_all(b"GET /v1/capture HTTP/1.1\r\nhost: a\r\ncontent-length: 9\r\n\r\nabcdefghi more")
        .unwrap();
    eventually("the capture listens", || served.world.captures() == 1);
    drop(stream);
    eventually("the capture is gone", || served.world.captures() == 0);
}

#[test]
fn a_silent_capture_shows_that_it_lives() {
    let served = Served::with(ServeLimits { alive: SHORT, ..ServeLimits::default() }, async || None);
    let mut capture = served.client().capture(&CaptureFilter::default()).unwrap();
    let mut bytes = Vec::new();
    while blocks(&bytes).len() < 3 {
        bytes.extend(capture.piece(Some(LONG)).unwrap().expect("a piece"));
    }
    assert_eq!(blocks(&bytes)[1..], [(4, vec![0; 4]), (4, vec![0; 4])]);
}
