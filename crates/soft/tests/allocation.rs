//! The per-packet path does not allocate once it is warm: forwarding, dropping, punting, metering and flooding.

#![allow(clippy::unwrap_used)] // a test may panic: that is how it fails

mod common;

use common::{mac, packet, program, soft, vid};
use hue_demux::PortId;
use hue_planes::{Rate, RateLimit};
use hue_soft::{Frame, Soft};
use hue_substrate::Substrate;
use hue_wire::Mac;

const FRAMES: usize = 1000;

fn frames() -> (Vec<u8>, Vec<Frame>) {
    let (mut buffer, mut frames) = (Vec::new(), Vec::new());
    for index in 0..FRAMES {
        let dst = match index % 10 {
            0 => Mac::BROADCAST,
            1 => mac(77, 0),
            other => mac(1 + (other % 3) as u16, 0),
        };
        let mut bytes = packet(dst, [10, (index % 4) as u8, 0, (index % 3) as u8]);
        if index % 7 == 0 {
            bytes[24] ^= 1;
        }
        frames.push(Frame::new(PortId::new(0), index as u64, buffer.len() as u32, bytes.len() as u32));
        buffer.extend(bytes);
    }
    (buffer, frames)
}

fn process(soft: &mut Soft, buffer: &mut [u8], frames: &mut [Frame]) -> usize {
    let (mut done, mut copies) = (0, 0);
    while done < frames.len() {
        done += soft.process(buffer, &mut frames[done..]);
        copies += soft.copies().count();
    }
    copies
}

#[test]
fn a_warm_engine_does_not_allocate() {
    let mut soft = soft();
    let mut metered = program(2);
    let rate = Rate::new(1000, 20).unwrap();
    metered.rate_limit = Some(RateLimit { packets: Some(rate), bits: Some(rate) });
    soft.load(&[program(1), metered, program(3)]).unwrap();
    let (fresh, mut descriptors) = frames();
    let mut buffer = fresh.clone();
    process(&mut soft, &mut buffer, &mut descriptors);
    let before = soft.counters(vid(1)).unwrap().received();
    assert!(before > 0);
    buffer.copy_from_slice(&fresh);
    let mut copies = 0;
    let allocated =
        allocation_counter::measure(|| copies = process(&mut soft, &mut buffer, &mut descriptors));
    assert!(copies > 0, "frames were copied");
    assert_eq!(allocated.count_total, 0);
    assert_eq!(soft.counters(vid(1)).unwrap().received(), 2 * before);
    // Checks the counter itself.
    assert_eq!(allocation_counter::measure(|| drop(std::hint::black_box(vec![0u8; 64]))).count_total, 1);
}
