//! A burst for one port: the output queues hold the frames that fit in their memory, and all of these leave whole and in order.

use hue_card::{Card, Twin};
use hue_demux::{Match, PortId, Row};
use hue_differential::{card, image};
use hue_planes::ipv4::Adjacency;
use hue_planes::{Kind, Settings};
use hue_substrate::{Entries, Program, VirtualPort};
use hue_tables::{NextHop, Prefix4, Vid};
use hue_wire::{Mac, checksum};

const FRAME_BYTES: usize = 1514;
/// Cycles from one frame to the next: more than its beats, so that no frame waits at the card's ports.
const STEP_CYCLES: u64 = 220;
/// Size of an on-chip output memory on the papers' card.
const ON_CHIP_BYTES: u32 = 131_072;

fn own(port: u8) -> Mac {
    Mac([2, 0, 0, 0, 0, port])
}

/// A network that sends packets for 10.1.0.0/16 by port 1.
fn program() -> Program {
    let vid = Vid::new(7).unwrap();
    let port = |port| VirtualPort {
        name: format!("v{port}"),
        port: PortId::new(port),
        mac: own(port),
        mtu_bytes: 1500,
        tunnel: None,
    };
    let row = |port| Row {
        vid,
        vport: u16::from(port),
        select: Match::Mac { port: PortId::new(port), mac: own(port) },
    };
    Program {
        vid,
        name: "burst".to_owned(),
        settings: Settings::of(Kind::Ipv4),
        ports: (0..2).map(port).collect(),
        rows: (0..2).map(row).collect(),
        next_hops: vec![Adjacency::forward(PortId::new(1), own(1), Mac([2, 9, 0, 0, 0, 1]), 1500)],
        groups: Vec::new(),
        entries: Entries::Lpm32(vec![(Prefix4::containing(0x0a01_0000, 16), NextHop::new(0).unwrap())]),
        rate_limit: None,
        weight: 1,
        policies: None,
        gated: false,
    }
}

fn frame(number: u32) -> Vec<u8> {
    let mut packet = vec![0x45, 0, 0, 0, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 2, 10, 1, 0, 2];
    packet[2..4].copy_from_slice(&1500u16.to_be_bytes());
    let sum = checksum::full(&packet);
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    let head = [&own(0).0[..], &[2, 8, 0, 0, 0, 0], &[8, 0], &packet].concat();
    let body = (head.len()..FRAME_BYTES).map(|at| ((at as u32 * 7) ^ number ^ (number << 3)) as u8);
    head.iter().copied().chain(body).collect()
}

/// Offers the burst while the line of port 1 is busy, then frees the line. Returns the size of the output memory, and the
/// numbers of the frames that left.
fn burst(name: &str, frames: u32) -> (u32, Vec<u32>) {
    let mut card: Card<Twin> = card(&image(name), &[program()]);
    card.set_live().unwrap();
    let memory_bytes = card.description().out_bytes;
    let twin = card.twin();
    // The first frame occupies the line until it is freed.
    assert!(twin.set_line(1, Some((1 << 20, 1))));
    let begin = twin.cycles();
    for number in 0..frames {
        assert!(twin.push(0, 0, number, begin + u64::from(number) * STEP_CYCLES, &frame(number)));
    }
    twin.run_exactly(u64::from(frames) * STEP_CYCLES + 20_000);
    assert_eq!(twin.waiting(0), 0);
    assert!(twin.pop().is_some_and(|frame| frame.tag == 0) && twin.pop().is_none());
    assert!(twin.set_line(1, None));
    while !twin.idle() {
        assert!(twin.run(100_000) > 0 && twin.still_cycles() < 10_000, "{name} stands still");
    }
    let mut left = vec![0];
    while let Some(out) = twin.pop() {
        let expected = frame(out.tag);
        // All bytes except the MAC addresses, TTL and checksum.
        assert_eq!((out.port, out.bytes.len()), (1, FRAME_BYTES), "frame {}", out.tag);
        assert_eq!(out.bytes[12..22], expected[12..22], "frame {}", out.tag);
        assert_eq!(out.bytes[26..], expected[26..], "frame {}", out.tag);
        left.push(out.tag);
    }
    assert_eq!(twin.failure(), None);
    (memory_bytes, left)
}

#[test]
#[ignore = "long: make test-full"]
fn external_memory_holds_a_burst_that_block_ram_does_not() {
    const FRAMES: u32 = 500;
    let (memory_bytes, left) = burst("tcam3", 100);
    assert_eq!(memory_bytes, ON_CHIP_BYTES);
    // A queue uses half of the memory; some frames are already on their way out.
    assert!((40..60).contains(&left.len()), "{} frames", left.len());
    assert!(left.is_sorted());
    let (memory_bytes, left) = burst("sram", FRAMES);
    assert!(
        FRAMES * FRAME_BYTES as u32 > 5 * ON_CHIP_BYTES && memory_bytes / 2 > FRAMES * FRAME_BYTES as u32
    );
    assert_eq!(left, (0..FRAMES).collect::<Vec<_>>());
}
