//! Receiving and sending allocates nothing, on any live driver. The drivers with an interface need root.

#![allow(clippy::unwrap_used)] // a test fails by panicking
#![allow(unsafe_code)]

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::time::Duration;

use common::{Lab, Raw, frame, may_run};
use hue_ports::{
    AfXdp, AfXdpOptions, ClassRule, Faults, Faulty, MemoryPort, Packet, PacketSocket, Pool, Port, Tap,
};

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: hands everything to the system's allocator; counting touches a thread-local cell without a destructor.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: as asked.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as asked.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: as asked.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];

/// Bounces frames that `feed` provides and returns (frames, allocations meanwhile).
fn bounce(port: &mut dyn Port, pool: &mut Pool, feed: &dyn Fn(u32)) -> (usize, u64) {
    let mut packets: Vec<Packet> = Vec::with_capacity(256);
    let (mut bounced, mut allocated) = (0, 0);
    for round in 0..40 {
        (0..32).for_each(feed);
        std::thread::sleep(Duration::from_millis(1));
        let before = ALLOCATIONS.with(Cell::get);
        for step in 0..4 {
            port.receive(pool, round * 1_000_000_000 + step, &mut packets, 64).unwrap();
            bounced += packets.len();
            for packet in packets.drain(..) {
                if packet.class != 0 {
                    port.consumed(packet.class, 1);
                }
                if let Err(packet) = port.send(pool, packet) {
                    pool.give(packet.slot);
                }
            }
            port.flush(pool).unwrap();
        }
        allocated += ALLOCATIONS.with(Cell::get) - before;
    }
    (bounced, allocated)
}

fn check(name: &str, mut port: impl Port, mut pool: Pool, feed: &dyn Fn(u32)) {
    let (bounced, allocated) = bounce(&mut port, &mut pool, feed);
    assert!(bounced >= 40, "{name}: {bounced} frames are too few to tell");
    assert_eq!(allocated, 0, "{name}: allocations for {bounced} frames");
    port.close(&mut pool);
    assert_eq!(pool.free(), pool.slots() as usize, "{name}");
}

#[test]
fn memory_and_faults() {
    let (port, handle) = MemoryPort::pair("m", 64).unwrap();
    handle.discard_sent();
    let bad = Faults { loss: 0.1, duplication: 0.2, reordering: 0.2, truncation: 0.1, corruption: 0.1 };
    let feed = |i| assert!(handle.feed(&frame(MAC, i, 60)));
    check("memory", Faulty::new(port, 1, bad, bad), Pool::new(512, 2048).unwrap(), &feed);
}

#[test]
fn interfaces() {
    if !may_run() {
        return;
    }
    let pool = || Pool::new(1024, 2048).unwrap();
    for generic in [false, true] {
        let (lab, pool) = (Lab::new(), pool());
        let region = pool.region();
        let options = AfXdpOptions { ring: 256, generic, ..AfXdpOptions::default() };
        let (mut port, _) = lab.inside("near", || AfXdp::open("near", &options, &region)).unwrap();
        port.set_classes(&[ClassRule::Mac { mac: MAC, class: 3 }], &[(3, 100)]).unwrap();
        let raw = lab.raw();
        check("afxdp", port, pool, &|i| raw.send(&frame(MAC, i, 60)));
    }
    let (lab, near) = (Lab::new(), pool());
    let region = near.region();
    let port = lab.inside("near", || PacketSocket::open("near", 256, &region)).unwrap();
    let raw = lab.raw();
    check("packet", port, near, &|i| raw.send(&frame(MAC, i, 60)));

    let tap = lab.inside("near", || Tap::open("tap0", false)).unwrap();
    common::run(&format!("ip -n {} link set dev tap0 up", lab.namespace("near")));
    let raw = lab.inside("near", || Raw::open("tap0"));
    check("tap", tap, pool(), &|i| raw.send(&frame(MAC, i, 60)));
}

#[test]
fn the_counter_counts() {
    let before = ALLOCATIONS.with(Cell::get);
    drop(std::hint::black_box(Vec::<u8>::with_capacity(10)));
    assert_eq!(ALLOCATIONS.with(Cell::get), before + 1);
}
