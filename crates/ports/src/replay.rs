//! A port over capture files: it receives the packets of one file, and writes sent packets to another.
//!
//! Invariants: packets are received in the file's order, as fast as they are requested or at the pace of the capture;
//! the complete output appears under its name when the port is closed. Reading a pcapng file allocates. Units:
//! nanoseconds; packets carry the time they are received at, the output the time they were received at first.

use std::os::fd::BorrowedFd;
use std::path::Path;

use crate::output::CaptureWriter;
use crate::{CaptureReader, Driver, DriverCounters, Frame, Packet, Pool, Port, PortError, Resolution};

/// When the packets of a capture are received.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Pace {
    /// As soon as there is room.
    #[default]
    Fast,
    /// With the gaps of the capture, starting at the first call.
    Recorded,
}

/// A port over capture files.
pub struct CapturePort {
    input: Option<CaptureReader>,
    output: Option<CaptureWriter>,
    pace: Pace,
    /// The next packet, read and waiting for its time or for a slot.
    next: Option<Next>,
    /// Memory of the previous packet.
    spare: Vec<u8>,
    /// (time of the first call, time of the first packet).
    origin: Option<(u64, u64)>,
    queued: Vec<Packet>,
    counters: DriverCounters,
}

struct Next {
    bytes: Vec<u8>,
    time_ns: u64,
}

/// Packets that may wait for a flush.
const QUEUE: usize = 1024;

impl CapturePort {
    /// Receives the packets of `input` and writes sent packets to `output` (pcap, nanoseconds). Without an input
    /// nothing is received. Without an output, sent packets are counted and discarded.
    ///
    /// # Errors
    /// As [`CaptureReader::open`]; `Write` if the output cannot be created.
    pub fn open(input: Option<&Path>, output: Option<&Path>, pace: Pace) -> Result<Self, PortError> {
        Ok(Self {
            input: input.map(CaptureReader::open).transpose()?,
            output: output
                .map(|path| CaptureWriter::create(path.to_owned(), Resolution::Nano))
                .transpose()?,
            pace,
            next: None,
            spare: Vec::new(),
            origin: None,
            queued: Vec::with_capacity(QUEUE),
            counters: DriverCounters::default(),
        })
    }

    /// Reads ahead; `false` at the end of the input.
    fn fetch(&mut self) -> Result<bool, PortError> {
        if self.next.is_some() {
            return Ok(true);
        }
        let Some(input) = &mut self.input else { return Ok(false) };
        let (mut bytes, mut time_ns) = (std::mem::take(&mut self.spare), 0);
        bytes.clear();
        let more = input.next_frame(|frame| {
            bytes.extend_from_slice(frame.bytes);
            time_ns = frame.time_ns;
        })?;
        if more {
            self.next = Some(Next { bytes, time_ns });
        } else {
            self.input = None;
        }
        Ok(more)
    }

    fn is_due(&mut self, time_ns: u64, now_ns: u64) -> bool {
        let (began_ns, first_ns) = *self.origin.get_or_insert((now_ns, time_ns));
        self.pace == Pace::Fast || time_ns.saturating_sub(first_ns) <= now_ns.saturating_sub(began_ns)
    }
}

impl Port for CapturePort {
    fn driver(&self) -> Driver {
        Driver::Capture
    }

    fn receive(
        &mut self,
        pool: &mut Pool,
        now_ns: u64,
        into: &mut Vec<Packet>,
        limit: usize,
    ) -> Result<usize, PortError> {
        let mut received = 0;
        while received < limit && self.fetch()? {
            let Some(next) = self.next.take() else { break };
            if !self.is_due(next.time_ns, now_ns) {
                self.next = Some(next);
                break;
            }
            if next.bytes.len() > pool.frame_bytes_max() as usize {
                self.counters.ring_full += 1;
            } else if let Some(packet) = pool.copy_in(&next.bytes, now_ns) {
                self.counters.received_packets += 1;
                self.counters.received_bytes += u64::from(packet.len);
                into.push(packet);
                received += 1;
            } else {
                self.next = Some(next); // no slot is free now
                break;
            }
            self.spare = next.bytes;
        }
        Ok(received)
    }

    fn send(&mut self, _pool: &mut Pool, packet: Packet) -> Result<(), Packet> {
        if self.queued.len() == QUEUE {
            return Err(packet);
        }
        self.queued.push(packet);
        Ok(())
    }

    fn flush(&mut self, pool: &mut Pool) -> Result<(), PortError> {
        let mut outcome = Ok(());
        for packet in self.queued.drain(..) {
            if let (Some(output), Ok(())) = (&mut self.output, &outcome) {
                let frame =
                    Frame { bytes: packet.bytes(pool), time_ns: packet.time_ns, wire_len: packet.len };
                outcome = output.write(frame);
            }
            if outcome.is_ok() {
                self.counters.sent_packets += 1;
                self.counters.sent_bytes += u64::from(packet.len);
            } else {
                self.counters.send_failed += 1;
            }
            pool.give(packet.slot);
        }
        outcome
    }

    fn close(&mut self, pool: &mut Pool) {
        // Sent packets are written; after an error, they count as not sent and the file does not appear.
        let flushed = self.flush(pool);
        if let (Some(output), Ok(())) = (self.output.take(), flushed) {
            let packets = output.packets();
            if output.commit().is_err() {
                self.counters.sent_packets -= packets;
                self.counters.send_failed += packets;
            }
        }
        self.input = None;
        self.next = None;
    }

    fn readiness(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn pending(&self) -> usize {
        self.queued.len()
    }

    fn counters(&self) -> DriverCounters {
        self.counters
    }

    fn ended(&self) -> bool {
        self.input.is_none() && self.next.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drain(port: &mut CapturePort, pool: &mut Pool, now_ns: u64) -> usize {
        let mut packets = Vec::new();
        let got = port.receive(pool, now_ns, &mut packets, 16).unwrap();
        for packet in packets {
            pool.give(packet.slot);
        }
        got
    }

    #[test]
    fn sent_packets_are_received_from_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.pcap");
        let mut pool = Pool::new(8, 2048).unwrap();
        let mut port = CapturePort::open(None, Some(&path), Pace::Fast).unwrap();
        for i in 0..5u8 {
            let packet = pool.copy_in(&[i; 60], u64::from(i) * 1000).unwrap();
            port.send(&mut pool, packet).unwrap();
        }
        assert!(port.ended() && !path.exists());
        port.close(&mut pool);
        assert_eq!((pool.free(), port.counters().sent_packets), (8, 5));

        let mut port = CapturePort::open(Some(&path), None, Pace::Fast).unwrap();
        let mut packets = Vec::new();
        assert_eq!(port.receive(&mut pool, 77, &mut packets, 3).unwrap(), 3);
        assert_eq!(port.receive(&mut pool, 78, &mut packets, 3).unwrap(), 2);
        assert_eq!(port.receive(&mut pool, 79, &mut packets, 3).unwrap(), 0);
        assert!(port.ended());
        assert_eq!(packets[4].bytes(&pool), [4; 60]);
        assert_eq!(packets[4].time_ns, 78);
        for packet in packets {
            pool.give(packet.slot);
        }

        let mut port = CapturePort::open(Some(&path), None, Pace::Recorded).unwrap();
        assert_eq!(drain(&mut port, &mut pool, 1_000_000), 1);
        assert_eq!(drain(&mut port, &mut pool, 1_000_999), 0);
        assert_eq!(drain(&mut port, &mut pool, 1_003_000), 3);
        assert!(!port.ended());
        assert_eq!(drain(&mut port, &mut pool, 1_009_000), 1);
        assert_eq!(drain(&mut port, &mut pool, 1_009_000), 0);
        assert!(port.ended());
        assert_eq!(pool.free(), 8);
    }

    #[test]
    fn without_a_free_slot_a_packet_waits() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.pcap");
        let mut pool = Pool::new(2, 2048).unwrap();
        let mut port = CapturePort::open(None, Some(&path), Pace::Fast).unwrap();
        for _ in 0..2 {
            let packet = pool.copy_in(&[1; 60], 0).unwrap();
            port.send(&mut pool, packet).unwrap();
        }
        port.close(&mut pool);
        let mut port = CapturePort::open(Some(&path), None, Pace::Fast).unwrap();
        let held = pool.take().unwrap();
        let mut packets = Vec::new();
        assert_eq!(port.receive(&mut pool, 0, &mut packets, 9).unwrap(), 1);
        pool.give(held);
        assert_eq!(port.receive(&mut pool, 0, &mut packets, 9).unwrap(), 1);
        for packet in packets {
            pool.give(packet.slot);
        }
    }
}
