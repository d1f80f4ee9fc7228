//! A port that the kernel closes slowly, for tests of those who must not wait for it.

use std::os::fd::BorrowedFd;
use std::sync::mpsc::Receiver;

use crate::{Driver, DriverCounters, Ending, MemoryPort, Packet, Pool, Port, PortError};

/// A port whose end takes until a message, or the end of its sender, opens a gate.
pub struct SlowEnd {
    port: MemoryPort,
    ending: Ending,
    gate: Receiver<()>,
    released: bool,
}

impl SlowEnd {
    /// The same port with another end.
    #[must_use]
    pub const fn new(port: MemoryPort, ending: Ending, gate: Receiver<()>) -> Self {
        Self { port, ending, gate, released: false }
    }
}

impl Port for SlowEnd {
    fn driver(&self) -> Driver {
        self.port.driver()
    }

    fn ending(&self) -> Ending {
        self.ending
    }

    fn receive(
        &mut self,
        pool: &mut Pool,
        now_ns: u64,
        into: &mut Vec<Packet>,
        limit: usize,
    ) -> Result<usize, PortError> {
        self.port.receive(pool, now_ns, into, limit)
    }

    fn send(&mut self, pool: &mut Pool, packet: Packet) -> Result<(), Packet> {
        self.port.send(pool, packet)
    }

    fn flush(&mut self, pool: &mut Pool) -> Result<(), PortError> {
        self.port.flush(pool)
    }

    fn release(&mut self) {
        if self.ending == Ending::SlowRelease && !std::mem::replace(&mut self.released, true) {
            let _ = self.gate.recv();
        }
    }

    fn close(&mut self, pool: &mut Pool) {
        self.release();
        self.port.close(pool);
    }

    fn readiness(&self) -> Option<BorrowedFd<'_>> {
        self.port.readiness()
    }

    fn counters(&self) -> DriverCounters {
        self.port.counters()
    }
}

impl Drop for SlowEnd {
    fn drop(&mut self) {
        if self.ending == Ending::SlowDrop {
            let _ = self.gate.recv();
        }
    }
}
