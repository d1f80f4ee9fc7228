//! The network of a virtual machine, as a program that opens a TAP device: it answers ARP requests and pings, and sends UDP.

use std::net::Ipv4Addr;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use hue_ports::{Pool, Port, SLOT_BYTES, Tap};

use crate::frame::{self, Ends, Mac};
use crate::space::Space;

const SLOTS: u32 = 64;
/// Time after which an unanswered ARP request is repeated.
const AGAIN: Duration = Duration::from_millis(200);
const ARP: [u8; 2] = [0x08, 0x06];
const IPV4: [u8; 2] = [0x08, 0x00];
const ICMP: u8 = 1;

/// A UDP packet to be sent through a gateway.
struct Parcel {
    gateway: Ipv4Addr,
    to: Ipv4Addr,
    port: u16,
    payload: Vec<u8>,
}

/// A machine that runs until it is dropped.
#[derive(Debug)]
pub struct Machine {
    parcels: Option<Sender<Parcel>>,
    thread: Option<JoinHandle<()>>,
}

impl Machine {
    /// Opens the TAP device of a namespace.
    ///
    /// # Panics
    /// When it does not exist or is in use.
    #[track_caller]
    #[must_use]
    pub fn start(space: &Space, tap: &str, mac: Mac, address: Ipv4Addr) -> Self {
        let exists = space.run("ip", &["link", "show", tap]);
        assert!(exists.ok(), "{exists}");
        let tap = space.inside(|| Tap::open(tap, true)).unwrap_or_else(|error| panic!("{error}"));
        let pool =
            Pool::new(SLOTS, SLOT_BYTES[1]).unwrap_or_else(|error| panic!("memory for frames: {error}"));
        let (sender, parcels) = channel();
        let thread = std::thread::spawn(move || Card { tap, pool, mac, address }.run(&parcels));
        Self { parcels: Some(sender), thread: Some(thread) }
    }

    /// Sends a UDP packet, once the gateway's MAC address is known.
    ///
    /// # Panics
    /// When the machine has ended.
    pub fn send(&self, gateway: Ipv4Addr, to: Ipv4Addr, port: u16, payload: &[u8]) {
        let parcel = Parcel { gateway, to, port, payload: payload.to_vec() };
        let sent = self.parcels.as_ref().is_some_and(|parcels| parcels.send(parcel).is_ok());
        assert!(sent, "the machine has ended");
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.parcels = None;
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has been printed.
            let _ = thread.join();
        }
    }
}

struct Card {
    tap: Tap,
    pool: Pool,
    mac: Mac,
    address: Ipv4Addr,
}

impl Card {
    fn run(&mut self, parcels: &Receiver<Parcel>) {
        let mut waiting: Option<(Parcel, Instant)> = None;
        loop {
            if waiting.is_none() {
                match parcels.try_recv() {
                    Ok(parcel) => {
                        self.ask(parcel.gateway);
                        waiting = Some((parcel, Instant::now()));
                    }
                    Err(TryRecvError::Empty) => {}
                    Err(TryRecvError::Disconnected) => return,
                }
            }
            if let Some((parcel, asked)) = &mut waiting
                && asked.elapsed() > AGAIN
            {
                *asked = Instant::now();
                self.ask(parcel.gateway);
            }
            let frames = self.receive();
            if frames.is_empty() {
                std::thread::sleep(Duration::from_millis(2));
            }
            for frame in frames {
                if let Some(answer) = self.answer(&frame) {
                    self.send(&answer);
                }
                let gateway = |(parcel, _): &mut (Parcel, Instant)| is_reply_of(&frame, parcel.gateway);
                if let Some((parcel, _)) = waiting.take_if(gateway) {
                    let macs = [sender_of(&frame), self.mac];
                    let ends = Ends { macs, addresses: [self.address, parcel.to], ttl: 64 };
                    self.send(&frame::udp(ends, [parcel.port; 2], &parcel.payload));
                }
            }
        }
    }

    fn receive(&mut self) -> Vec<Vec<u8>> {
        let mut packets = Vec::new();
        // A device that was removed has no more frames.
        let _ = self.tap.receive(&mut self.pool, 0, &mut packets, SLOTS as usize);
        let copy = |packet: hue_ports::Packet| {
            let frame = packet.bytes(&self.pool).to_vec();
            self.pool.give(packet.slot);
            frame
        };
        packets.into_iter().map(copy).collect()
    }

    fn send(&mut self, frame: &[u8]) {
        let Some(packet) = self.pool.copy_in(frame, 0) else { return };
        if let Err(packet) = self.tap.send(&mut self.pool, packet) {
            self.pool.give(packet.slot);
        }
        // As in `receive`.
        let _ = self.tap.flush(&mut self.pool);
    }

    fn ask(&mut self, who: Ipv4Addr) {
        let ends = [frame::BROADCAST, self.mac];
        self.send(&frame::arp(ends, 1, (self.mac, self.address), ([0; 6], who)));
    }

    /// The answer to an ARP request for its address, or to a ping.
    fn answer(&self, frame: &[u8]) -> Option<Vec<u8>> {
        let own = self.address.octets();
        match [*frame.get(12)?, *frame.get(13)?] {
            ARP if frame.get(20..22)? == [0, 1] && frame.get(38..42)? == own => {
                let asker: [u8; 4] = frame.get(28..32)?.try_into().ok()?;
                let (me, them) = ((self.mac, self.address), (sender_of(frame), asker.into()));
                Some(frame::arp([them.0, self.mac], 2, me, them))
            }
            IPV4 if frame.get(23)? == &ICMP && frame.get(30..34)? == own && frame.get(34)? == &8 => {
                let end = 14 + usize::from(u16::from_be_bytes([*frame.get(16)?, *frame.get(17)?]));
                let mut reply = frame.get(..end)?.to_vec();
                reply[0..6].copy_from_slice(&frame[6..12]);
                reply[6..12].copy_from_slice(&self.mac);
                reply[26..30].copy_from_slice(&own);
                reply[30..34].copy_from_slice(&frame[26..30]);
                reply[34] = 0;
                reply[36..38].fill(0);
                let sum = frame::checksum(&reply[34..]);
                reply[36..38].copy_from_slice(&sum.to_be_bytes());
                Some(reply)
            }
            _ => None,
        }
    }
}

/// The sender's MAC address in the Ethernet header.
fn sender_of(frame: &[u8]) -> Mac {
    frame.get(6..12).and_then(|mac| mac.try_into().ok()).unwrap_or_default()
}

fn is_reply_of(frame: &[u8], who: Ipv4Addr) -> bool {
    frame.get(12..14) == Some(&ARP)
        && frame.get(20..22) == Some(&[0, 2])
        && frame.get(28..32) == Some(&who.octets())
}
