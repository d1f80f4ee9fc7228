//! `hueplane splice-host`: sets the splicing bits of a host's packets, and others when a path fails.
//!
//! Flow: the host's kernel → TAP device → bits of the flow's lane ([`lanes`], [`packet`]) → raw socket on the interface → routers;
//! keepalives and, with a header for the bits, packets of peers → raw sockets → lanes, TAP device. One thread does all of it. The
//! state machine decides; device, sockets, clock and signals are here. The device has no addresses and no ARP: the kernel sends
//! packets to peers there by a route for each, from the address that the interface has.

mod lanes;
mod packet;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{self, Read};
use std::net::{IpAddr, Ipv4Addr, SocketAddrV4};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use hue_host::links::Links;
use hue_host::routes::{self, MAIN, Wanted};
use hue_host::{HostError, addresses, sysctl};
use hue_planes::splice::{Bits, SHIM_BYTES, SHIM_PROTOCOL, Settings};
use hue_ports::Tap;
use hue_tables::AnyPrefix;
use hue_wire::{ethernet, toeplitz};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};

use self::lanes::{Keepalive, Lanes};
use crate::cli::SpliceHost;
use crate::failure::Failure;
use crate::local::stop;
use crate::print;

/// Packets read from one place before the next one's turn.
const PACKETS_MAX: usize = 64;
/// Bytes of the largest IP packet, and its Ethernet header.
const BUFFER_BYTES: usize = 65_535 + ethernet::HEADER_BYTES;
/// Sends what the caller's header says (`IPPROTO_RAW`).
const ANY_PROTOCOL: i32 = 255;
/// Paths back are checked against routes: strictly, so that a packet of a peer must come by the device; and loosely.
const STRICT: &str = "1";
const LOOSE: &str = "2";

fn note(text: &str) {
    print::note("splice-host", text);
}

/// Runs until a signal.
pub fn splice_host(args: &SpliceHost) -> Result<(), Failure> {
    let stop = stop::signalled()?;
    let mut links = Links::here()?;
    let interface = links.find(&args.interface)?.ok_or_else(|| {
        Failure::Usage(format!(
            "found interface {:?}, which does not exist; `ip link` lists them",
            args.interface
        ))
    })?;
    let own = addresses::list(links.socket())?.into_iter().find_map(|one| match one.address {
        IpAddr::V4(address) if one.link == interface.index => Some(address),
        _ => None,
    });
    let own = own.ok_or_else(|| {
        Failure::Usage(format!("interface {} has no IPv4 address: give it one first", args.interface))
    })?;
    if let Some(peer) =
        args.peers.iter().find(|peer| **peer == own || peer.is_multicast() || peer.is_broadcast())
    {
        return Err(Failure::Usage(format!("found peer {peer}, expected the address of another host")));
    }
    if links.find(&args.device)?.is_some() {
        return Err(Failure::NoDaemon(format!(
            "interface {} exists: another `hueplane splice-host` may run here; or give --device",
            args.device
        )));
    }
    let tap = Tap::open(&args.device, false)?;
    let mac = tap.mac()?;
    links.set_arp(&args.device, false)?;
    let place = args.bits.bits();
    // Packets grow by the header for the bits.
    let grows = if place == Bits::Shim { SHIM_BYTES as u32 } else { 0 };
    links.set_mtu(&args.device, interface.mtu.saturating_sub(grows))?;
    links.set_up(&args.device, true)?;
    let link = links.index_of(&args.device)?;
    let wanted: Vec<Wanted> = args
        .peers
        .iter()
        .map(|peer| Wanted { table: MAIN, prefix: AnyPrefix::host((*peer).into()), via: None, link })
        .collect();
    if let Some(refused) = routes::add(links.socket(), &wanted)?.into_iter().next() {
        return Err(HostError::from(refused).into());
    }
    let _loosened = if place == Bits::IpId { Loosened::of(&args.interface)? } else { None };
    let mut host = Host::new(args, own, tap, mac, stop)?;
    note(&format!("{own} on {} sets bits in {} for {}", args.interface, place.name(), named(&args.peers)));
    host.serve()
}

fn named(peers: &[Ipv4Addr]) -> String {
    peers.iter().map(Ipv4Addr::to_string).collect::<Vec<_>>().join(", ")
}

/// An interface that takes packets of peers although the route back to them is another one, as long as this exists.
struct Loosened(String);

impl Loosened {
    fn of(interface: &str) -> Result<Option<Self>, Failure> {
        let key = |of: &str| format!("net/ipv4/conf/{of}/rp_filter");
        let value = |of: &str| sysctl::get_here(&key(of));
        let (all, own) = (value("all")?, value(interface)?);
        let is = |value: &Option<String>, what: &str| value.as_deref().map(str::trim) == Some(what);
        // The larger of both counts.
        if is(&all, LOOSE) || is(&own, LOOSE) || !(is(&all, STRICT) || is(&own, STRICT)) {
            return Ok(None);
        }
        sysctl::set_here(&key(interface), LOOSE)?;
        note(&format!(
            "{} is {LOOSE} (loose) meanwhile: packets of peers come by another way than they go",
            key(interface)
        ));
        Ok(is(&own, STRICT).then(|| Self(key(interface))))
    }
}

impl Drop for Loosened {
    fn drop(&mut self) {
        // The interface may be gone.
        let _ = sysctl::set_here(&self.0, STRICT);
    }
}

/// A raw socket of an interface for packets of one protocol.
fn raw(interface: &str, protocol: i32) -> Result<Socket, Failure> {
    let socket = Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::from(protocol)))?;
    socket.bind_device(Some(interface.as_bytes()))?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

struct Host {
    own: Ipv4Addr,
    settings: Settings,
    peers: BTreeMap<Ipv4Addr, Peer>,
    tap: Tap,
    mac: [u8; 6],
    out: Socket,
    /// What comes from peers: keepalives, or packets with a header for the bits.
    arrive: Socket,
    stop: UnixStream,
    start: Instant,
    interval: Duration,
    send_failed: u64,
}

struct Peer {
    lanes: Lanes,
    /// Whether it was heard at the last look.
    is_heard: bool,
}

impl Host {
    fn new(
        args: &SpliceHost,
        own: Ipv4Addr,
        tap: Tap,
        mac: [u8; 6],
        stop: UnixStream,
    ) -> Result<Self, Failure> {
        let bits = args.bits.bits();
        let settings = Settings { slices: args.slices, bits, forward_martians: false };
        let interval = Duration::from_millis(args.interval.into());
        let clock = SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |time| time.as_nanos() as u64);
        let peer = |peer: &Ipv4Addr| {
            let seed = clock ^ u64::from(peer.to_bits()) << 32;
            let lanes = Lanes::new(settings, args.lanes, interval, Duration::ZERO, seed);
            (*peer, Peer { lanes, is_heard: false })
        };
        let protocol = match bits {
            Bits::IpId => packet::KEEPALIVE_PROTOCOL,
            Bits::Shim => SHIM_PROTOCOL,
        };
        Ok(Self {
            own,
            settings,
            peers: args.peers.iter().map(peer).collect(),
            tap,
            mac,
            out: raw(&args.interface, ANY_PROTOCOL)?,
            arrive: raw(&args.interface, protocol.into())?,
            stop,
            start: Instant::now(),
            interval,
            send_failed: 0,
        })
    }

    fn serve(&mut self) -> Result<(), Failure> {
        let mut buffer = vec![0; BUFFER_BYTES];
        let mut due = Duration::ZERO;
        loop {
            let now = self.start.elapsed();
            if now >= due {
                self.tick(now);
                // Times that were missed are not made up for.
                due = now + self.interval;
            }
            if self.wait(due)? {
                return Ok(());
            }
            self.depart(&mut buffer)?;
            self.arrive(&mut buffer)?;
        }
    }

    /// Waits for packets, at most until `due`; whether to stop.
    fn wait(&self, due: Duration) -> Result<bool, Failure> {
        // Rounded up: a wake-up slightly too early would be one without work.
        let left = (due.saturating_sub(self.start.elapsed()) + Duration::from_micros(999)).as_millis();
        let timeout = PollTimeout::try_from(left.min(60_000) as i32).unwrap_or(PollTimeout::ZERO);
        let mut fds = [self.stop.as_fd(), self.tap.fd(), self.arrive.as_fd()]
            .map(|fd| PollFd::new(fd, PollFlags::POLLIN));
        match poll(&mut fds, timeout) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => Ok(fds[0].any() == Some(true)),
            Err(errno) => Err(Failure::Broken(format!("wait for packets: {}", errno.desc()))),
        }
    }

    /// Sends keepalives, and changes the bits of what does not work.
    fn tick(&mut self, now: Duration) {
        let mut sent = Vec::new();
        for (address, peer) in &mut self.peers {
            let is_heard = peer.lanes.is_heard(now);
            if is_heard != peer.is_heard {
                note(&format!("{address} is {}", if is_heard { "heard" } else { "silent" }));
                peer.is_heard = is_heard;
            }
            let digits = self.settings.bits.width() as usize / 4;
            for changed in peer.lanes.check(now) {
                let (lane, before, bits) = (changed.lane, changed.before, changed.now);
                note(&format!("{address}: lane {lane}: bits 0x{before:0digits$x} -> 0x{bits:0digits$x}"));
            }
            for (bits, keepalive) in peer.lanes.keepalives(now) {
                sent.push((*address, packet::keepalive(self.own, *address, &keepalive.bytes()), bits));
            }
        }
        for (address, packet, bits) in sent {
            self.send(address, &packet, bits);
        }
    }

    fn send(&mut self, to: Ipv4Addr, packet: &[u8], bits: u64) {
        let packet = packet::with_bits(packet, self.settings.bits, bits);
        if let Err(error) = self.out.send_to(&packet, &SockAddr::from(SocketAddrV4::new(to, 0))) {
            if self.send_failed == 0 {
                note(&format!("a packet to {to} cannot be sent: {error}; further ones are not reported"));
            }
            self.send_failed += 1;
        }
    }

    /// Takes packets of the host.
    fn depart(&mut self, buffer: &mut [u8]) -> Result<(), Failure> {
        for _ in 0..PACKETS_MAX {
            let bytes = match nix::unistd::read(self.tap.fd(), buffer) {
                Ok(bytes) => bytes,
                Err(nix::errno::Errno::EAGAIN | nix::errno::Errno::EINTR) => return Ok(()),
                Err(errno) => {
                    return Err(Failure::Broken(format!("device {}: {}", self.tap.name(), errno.desc())));
                }
            };
            let frame = buffer.get(..bytes).unwrap_or_default();
            let Some((ethernet, packet)) = ethernet::Header::over(frame) else { continue };
            // The kernel also sends IPv6 router solicitations there.
            let Some((header, _)) = hue_wire::ipv4::Header::over(packet) else { continue };
            if ethernet.ethertype() != ethernet::EtherType::IPV4 {
                continue;
            }
            let to = header.destination();
            if let Some(peer) = self.peers.get(&to) {
                let bits = peer.lanes.bits_of(toeplitz::ipv4(packet));
                self.send(to, packet, bits);
            }
        }
        Ok(())
    }

    /// Takes packets of peers.
    fn arrive(&mut self, buffer: &mut [u8]) -> Result<(), Failure> {
        for _ in 0..PACKETS_MAX {
            let bytes = match (&self.arrive).read(buffer) {
                Ok(bytes) => bytes,
                Err(error)
                    if [io::ErrorKind::WouldBlock, io::ErrorKind::Interrupted].contains(&error.kind()) =>
                {
                    return Ok(());
                }
                Err(error) => return Err(Failure::Broken(format!("packets of peers: {error}"))),
            };
            let packet = buffer.get(..bytes).unwrap_or_default();
            let inner = match self.settings.bits {
                Bits::IpId => Some(Cow::Borrowed(packet)),
                Bits::Shim => packet::without_shim(packet).map(Cow::Owned),
            };
            let Some(inner) = inner else { continue };
            let Some((source, protocol, content)) = packet::content(&inner) else { continue };
            let now = self.start.elapsed();
            // Of others nobody asked for packets with such a header.
            let Some(peer) = self.peers.get_mut(&source) else { continue };
            if protocol == packet::KEEPALIVE_PROTOCOL {
                if let Some(keepalive) = Keepalive::of(content) {
                    peer.lanes.hear(keepalive, now);
                }
            } else if self.settings.bits == Bits::Shim {
                let frame =
                    [&self.mac[..], &self.mac, &ethernet::EtherType::IPV4.0.to_be_bytes(), &inner].concat();
                // If the device has no room, the packet is lost, as on any link.
                let _ = nix::unistd::write(self.tap.fd(), &frame);
            }
        }
        Ok(())
    }
}
