//! The interfaces of the network: frames with flat labels, in and out.

use std::collections::BTreeMap;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use hue_ports::{OpenOptions, Packet, Pool, Port, Wanted, open};
use hue_routing::ring::{self, Sent};
use hue_wire::Mac;
use hue_wire::ethernet::HEADER_BYTES;
use hue_wire::rofl::ETHERTYPE;
use hueplaned::labels::{Offer, OfferedPort};

use super::{broken, note};
use crate::failure::Failure;

/// Least MTU of a port: the longest message fits.
pub const MTU_MIN: u16 = 1280;
/// Frames that wait, of all ports.
const SLOTS: u32 = 4096;
/// Bytes of a slot; messages are shorter.
const SLOT_BYTES: u32 = 2048;
/// Ring of a packet socket, frames.
const RING: u32 = 64;
/// Frames taken from a port before the next one's turn.
const BATCH: usize = 64;
/// Pause before an interface that cannot be opened is tried again.
const AGAIN: Duration = Duration::from_secs(1);

/// A virtual port.
struct Wire {
    offered: OfferedPort,
    mac: Mac,
    port: Option<Box<dyn Port>>,
    again: Instant,
}

/// See the head of this file. Ports have the numbers of their places in the offer.
pub struct Wires {
    pool: Pool,
    wires: BTreeMap<u16, Wire>,
    batch: Vec<Packet>,
    /// Frames that could not be sent.
    pub failed: u64,
}

impl Wires {
    /// None yet.
    pub fn new() -> Result<Self, Failure> {
        let pool = Pool::new(SLOTS, SLOT_BYTES).map_err(broken)?;
        Ok(Self { pool, wires: BTreeMap::new(), batch: Vec::new(), failed: 0 })
    }

    /// Replaces the ports by those of an offer.
    pub fn take(&mut self, offer: &Offer) {
        let numbered = || (0_u16..).zip(&offer.ports);
        let gone = self
            .wires
            .iter()
            .filter(|(id, wire)| !numbered().any(|(at, one)| at == **id && *one == wire.offered));
        for id in gone.map(|(id, _)| *id).collect::<Vec<_>>() {
            if let Some(mut port) = self.wires.remove(&id).and_then(|wire| wire.port) {
                port.close(&mut self.pool);
            }
        }
        for (id, offered) in numbered() {
            let Some(mac) = offered.mac.parse().ok().filter(|_| !self.wires.contains_key(&id)) else {
                continue;
            };
            if offered.mtu < MTU_MIN {
                note(&format!(
                    "port {}: an MTU of {}, expected at least {MTU_MIN}: it takes no part",
                    offered.name, offered.mtu
                ));
                continue;
            }
            self.wires.insert(id, Wire { offered: offered.clone(), mac, port: None, again: Instant::now() });
        }
        self.open();
    }

    /// Opens what is not open, if it is time to. Returns whether that changed something.
    pub fn open(&mut self) -> bool {
        let mut changed = false;
        for wire in self.wires.values_mut().filter(|wire| wire.port.is_none() && wire.again <= Instant::now())
        {
            let options = OpenOptions { driver: Wanted::Packet, ring: RING, ..OpenOptions::default() };
            match open(&wire.offered.interface, &options, &self.pool) {
                Ok(opened) => (wire.port, changed) = (Some(opened.port), true),
                Err(error) => {
                    note(&format!("port {}: {error}", wire.offered.name));
                    wire.again = Instant::now() + AGAIN;
                }
            }
        }
        changed
    }

    /// When [`Wires::open`] has something to do.
    pub fn due(&self) -> Option<Instant> {
        self.wires.values().filter(|wire| wire.port.is_none()).map(|wire| wire.again).min()
    }

    /// The ports that are open.
    pub fn ports(&self) -> Vec<ring::Port> {
        let open = self.wires.iter().filter(|(_, wire)| wire.port.is_some());
        open.map(|(id, wire)| ring::Port { id: *id, name: wire.offered.name.clone(), mac: wire.mac })
            .collect()
    }

    /// The number of a port, and its name the other way.
    pub fn id(&self, name: &str) -> Option<u16> {
        self.wires.iter().find(|(_, wire)| wire.offered.name == name).map(|(id, _)| *id)
    }

    /// The name of a port.
    pub fn name(&self, id: u16) -> Option<&str> {
        self.wires.get(&id).map(|wire| wire.offered.name.as_str())
    }

    /// To wait for.
    pub fn readiness(&self) -> Vec<BorrowedFd<'_>> {
        self.wires.values().filter_map(|wire| wire.port.as_ref()?.readiness()).collect()
    }

    /// Gives each frame with flat labels that others sent to `take`. Returns whether a port was lost.
    pub fn receive(&mut self, mut take: impl FnMut(u16, &[u8])) -> bool {
        let mut lost = false;
        for (id, wire) in &mut self.wires {
            let Some(port) = &mut wire.port else { continue };
            let mut batch = std::mem::take(&mut self.batch);
            let received = port.receive(&mut self.pool, 0, &mut batch, BATCH);
            for packet in batch.drain(..) {
                let frame = packet.bytes(&self.pool);
                let is_own = frame.get(6..12) == Some(&wire.mac.0);
                if !is_own && frame.get(12..HEADER_BYTES) == Some(&ETHERTYPE.0.to_be_bytes()) {
                    take(*id, frame);
                }
                self.pool.give(packet.slot);
            }
            self.batch = batch;
            if let Err(error) = received {
                note(&format!("port {}: {error}", wire.offered.name));
                port.close(&mut self.pool);
                (wire.port, wire.again, lost) = (None, Instant::now() + AGAIN, true);
            }
        }
        lost
    }

    /// Sends frames.
    pub fn send(&mut self, all: &[Sent]) {
        let mut frame = Vec::new();
        for sent in all {
            let Some(wire) = self.wires.get_mut(&sent.port) else { continue };
            let Some(port) = &mut wire.port else { continue };
            frame.clear();
            frame.extend(sent.to.0);
            frame.extend(wire.mac.0);
            frame.extend(ETHERTYPE.0.to_be_bytes());
            frame.extend(&sent.packet);
            let packet = self.pool.copy_in(&frame, 0);
            let queued = packet.is_some_and(|packet| {
                port.send(&mut self.pool, packet).map_err(|packet| self.pool.give(packet.slot)).is_ok()
            });
            self.failed += u64::from(!queued);
        }
        for wire in self.wires.values_mut() {
            // An error is that of an interface that is gone, which reading it reports.
            let _ = wire.port.as_mut().map(|port| port.flush(&mut self.pool));
        }
    }
}
