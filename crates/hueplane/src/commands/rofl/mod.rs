//! `hueplane rofl-host`: a TAP device on one side, packets with flat labels on the other.
//!
//! Flow: kernel → TAP device → [`endpoint`] → packet socket → router, and back. One thread waits for both, and for a signal.

mod endpoint;

use std::io::Read;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use hue_host::addresses;
use hue_host::links::Links;
use hue_ports::{OpenOptions, Packet, Pool, Port, Tap, Wanted, open};
use hue_wire::Mac;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::cli::RoflHost;
use crate::failure::Failure;
use crate::local::stop;
use crate::print::{self, result};
use endpoint::{Counts, Endpoint};

/// Frames that wait between the two sides.
const SLOTS: u32 = 1024;
/// Bytes of a slot: interfaces with an MTU up to about 3,800 bytes.
const SLOT_BYTES: u32 = 4096;
/// Frames taken from one side before it is the other's turn.
const BATCH: usize = 64;
/// Ring of the packet socket, frames.
const RING: u32 = 512;
/// Least MTU of the TAP device (IPv6, RFC 8200 §5).
const MTU_MIN: u32 = 1280;
/// Time between two messages that the label is here.
const JOIN_EACH: Duration = Duration::from_secs(1);
/// How long the router believes one, tenths of a second: until the third one in a row is lost.
const JOIN_HOLD_DS: u16 = 35;
/// Longest time without a look at the interface.
const WAIT: Duration = Duration::from_secs(1);

/// Runs until a signal.
pub fn rofl_host(args: &RoflHost) -> Result<(), Failure> {
    if let Some(wrong) = args.to.iter().find(|one| one.label.bytes != args.label.bytes) {
        return Err(Failure::Usage(format!(
            "--to {}: found a label of {} bits, expected {}, as --label has",
            wrong.prefix,
            8 * wrong.label.bytes,
            8 * args.label.bytes
        )));
    }
    let stop = stop::signalled()?;
    let mut links = Links::here()?;
    let link = links.get(&args.interface)?;
    let own = link.mac.ok_or_else(|| {
        Failure::Usage(format!("{}: expected an Ethernet interface, which has a MAC address", args.interface))
    })?;
    let mut pool = Pool::new(SLOTS, SLOT_BYTES).map_err(broken)?;
    let options = OpenOptions { driver: Wanted::Packet, ring: RING, ..OpenOptions::default() };
    let wire = open(&args.interface, &options, &pool).map_err(broken)?.port;
    let tap = Tap::open(&args.tap, false).map_err(broken)?;
    let endpoint = Endpoint {
        label: args.label.label,
        label_bytes: args.label.bytes,
        budget: args.hops + 1,
        teach: args.teach,
        map: args.to.iter().map(|one| (one.prefix, one.label.label)).collect(),
        own,
        router: args.router,
        tap: Mac(tap.mac().map_err(broken)?),
        mtu_bytes: link.mtu as usize,
    };
    let mtu = link.mtu.saturating_sub(u32::try_from(endpoint.added_bytes()).unwrap_or(u32::MAX));
    if mtu < MTU_MIN {
        return Err(Failure::Usage(format!(
            "{}: an MTU of {} leaves {mtu} bytes for IP packets, expected at least {MTU_MIN}",
            args.interface, link.mtu
        )));
    }
    links.set_arp(&args.tap, false)?;
    links.set_mtu(&args.tap, mtu)?;
    links.set_up(&args.tap, true)?;
    let index = links.index_of(&args.tap)?;
    for (address, len) in &args.addresses {
        addresses::add(links.socket(), index, *address, *len)?;
    }
    note(&format!("{} carries IP packets of up to {mtu} bytes over {}", args.tap, args.interface));
    let join = args.join.then(Instant::now);
    let mut host = Host { endpoint, counts: Counts::default(), out: Vec::new(), batch: Vec::new(), join };
    let served = host.serve(Box::new(tap), wire, &mut pool, &stop);
    result(args.output.format, &host.counts, || text(&host.counts))?;
    served
}

/// Says something to the operator.
fn note(text: &str) {
    print::note("rofl-host", text);
}

fn broken(error: impl ToString) -> Failure {
    Failure::Broken(error.to_string())
}

fn text(counts: &Counts) -> String {
    let mut text = format!("sent {}, received {}", counts.sent, counts.received);
    for (reason, count) in &counts.dropped {
        text += &format!(", {reason} {count}");
    }
    text
}

/// A side.
#[derive(Clone, Copy, PartialEq)]
enum Side {
    Tap,
    Wire,
}

struct Host {
    endpoint: Endpoint,
    counts: Counts,
    out: Vec<u8>,
    batch: Vec<Packet>,
    /// When to say next that the label is here.
    join: Option<Instant>,
}

impl Host {
    fn serve(
        &mut self,
        mut tap: Box<dyn Port>,
        mut wire: Box<dyn Port>,
        pool: &mut Pool,
        mut stop: &UnixStream,
    ) -> Result<(), Failure> {
        stop.set_nonblocking(true)?;
        loop {
            let moved = self.carry(Side::Tap, &mut *tap, &mut *wire, pool)?
                | self.carry(Side::Wire, &mut *wire, &mut *tap, pool)?;
            if stop.read(&mut [0]).is_ok_and(|count| count > 0) {
                break;
            }
            if self.join.is_some_and(|due| due <= Instant::now()) {
                self.join = Some(Instant::now() + JOIN_EACH);
                self.say(JOIN_HOLD_DS, &mut *wire, pool)?;
            }
            if !moved {
                let sides = [tap.readiness(), wire.readiness()];
                let mut waits: Vec<PollFd<'_>> =
                    sides.into_iter().flatten().map(|fd| PollFd::new(fd, PollFlags::POLLIN)).collect();
                waits.push(PollFd::new(stop.as_fd(), PollFlags::POLLIN));
                let join = self.join.map(|due| due.saturating_duration_since(Instant::now()));
                let timeout = PollTimeout::try_from(join.map_or(WAIT, |join| join.min(WAIT)))
                    .unwrap_or(PollTimeout::MAX);
                // An interrupted wait is a wait that ended.
                let _ = poll(&mut waits, timeout);
            }
        }
        if self.join.is_some() {
            self.say(0, &mut *wire, pool)?;
        }
        wire.close(pool);
        tap.close(pool);
        Ok(())
    }

    /// Tells the router for how long the label is here, tenths of a second.
    fn say(&mut self, hold_ds: u16, wire: &mut dyn Port, pool: &mut Pool) -> Result<(), Failure> {
        self.endpoint.here(hold_ds, &mut self.out);
        let packet = pool.copy_in(&self.out, 0);
        if let Some(Err(packet)) = packet.map(|packet| wire.send(pool, packet)) {
            pool.give(packet.slot);
        }
        wire.flush(pool).map_err(broken)
    }

    /// Carries a batch from one side to the other. Returns whether there was something.
    fn carry(
        &mut self,
        from: Side,
        source: &mut dyn Port,
        target: &mut dyn Port,
        pool: &mut Pool,
    ) -> Result<bool, Failure> {
        let mut batch = std::mem::take(&mut self.batch);
        source.receive(pool, 0, &mut batch, BATCH).map_err(broken)?;
        let any = !batch.is_empty();
        for packet in batch.drain(..) {
            let frame = packet.bytes(pool);
            let made = match from {
                Side::Tap => self.endpoint.outwards(frame, &mut self.out),
                Side::Wire => self.endpoint.inwards(frame, &mut self.out),
            };
            pool.give(packet.slot);
            let sent = made.and_then(|()| {
                let packet = pool.copy_in(&self.out, 0).ok_or("full")?;
                target.send(pool, packet).map_err(|packet| {
                    pool.give(packet.slot);
                    "full"
                })
            });
            match (sent, from) {
                (Ok(()), Side::Tap) => self.counts.sent += 1,
                (Ok(()), Side::Wire) => self.counts.received += 1,
                // Frames of other protocols, and what the host itself sends, are none of its business.
                (Err("other"), _) => {}
                (Err(reason), _) => *self.counts.dropped.entry(reason).or_default() += 1,
            }
        }
        target.flush(pool).map_err(broken)?;
        self.batch = batch;
        Ok(any)
    }
}
