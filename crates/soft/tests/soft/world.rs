//! A running system with ports in memory, for tests that observe it from outside.

#![allow(dead_code)] // each test binary uses its part

use std::time::{Duration, Instant};

use hue_demux::PortId;
use hue_ports::{MemoryHandle, MemoryPort};
use hue_soft::live::{Live, LiveConfig, NetworkTotals};
use hue_substrate::{Program, Substrate};
use hue_tables::Limits;

use crate::common::{PORTS, vid};

/// A time limit longer than any operation takes on a busy machine; only a failing test waits this long.
pub const PATIENCE: Duration = Duration::from_secs(30);

pub fn config(workers: usize) -> LiveConfig {
    let limits = Limits { image_bytes_max: 64 << 20, ..Limits::default() };
    LiveConfig { workers, slots: 8192, limits, ..LiveConfig::default() }
}

/// A running system with memory ports 0 to 2.
pub struct World {
    pub live: Live,
    pub wires: Vec<MemoryHandle>,
}

pub fn world(workers: usize, programs: &[Program]) -> World {
    let mut live = Live::start(config(workers)).unwrap();
    let wires = (0..PORTS).map(|port| wire(&mut live, port)).collect();
    live.load(programs).unwrap();
    World { live, wires }
}

pub fn wire(live: &mut Live, port: u8) -> MemoryHandle {
    wire_of(live, port, 1024)
}

/// A wire that holds so many frames in each direction.
pub fn wire_of(live: &mut Live, port: u8, room: usize) -> MemoryHandle {
    let (memory, handle) = MemoryPort::pair(&format!("p{port}"), room).unwrap();
    live.add_port(PortId::new(port), |_| Ok(Box::new(memory))).unwrap();
    handle
}

pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < end, "timeout while waiting for {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

impl World {
    pub fn feed(&self, port: u8, frame: &[u8]) {
        until("room to feed", || self.wires[usize::from(port)].feed(frame));
    }

    pub fn totals(&self, id: u16) -> NetworkTotals {
        self.live.totals(vid(id)).unwrap()
    }

    /// Waits until a network has received this many frames and processed them.
    pub fn settled(&self, id: u16, received: u64) -> NetworkTotals {
        let done = |totals: &NetworkTotals| {
            totals.received_packets() + totals.losses.at("arrival") >= received
                && totals.waiting_packets + totals.crossing_packets == 0
                && totals.check().is_ok()
        };
        until("all frames dealt with", || done(&self.totals(id)));
        let totals = self.totals(id);
        assert_eq!(totals.received_packets() + totals.losses.at("arrival"), received);
        totals
    }

    pub fn tap(&mut self, id: u16, vport: u16) -> MemoryHandle {
        let (memory, handle) = MemoryPort::pair("tap", 256).unwrap();
        self.live.add_tap(vid(id), vport, Box::new(memory)).unwrap();
        handle
    }
}
