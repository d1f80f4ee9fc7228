//! Vectors for the test bench of `rtl/card/hue_tunnel.sv`: tunnels of every type, frames that enter them, and packets that may come
//! out of them, most of them nearly sound; and what [`Tunnel::encapsulate`], [`Outer::parse`] and [`Outer::decapsulate`] make of them.
//!
//! `cargo run -p hue-demux --example tunnel_vectors -- SEED FRAMES ROWS` prints, numbers hexadecimal, addresses of 16 bytes:
//!
//! ```text
//! row PLACE OVER OVER_VPORT VXLAN WIDE VNI REMOTE LOCAL ANY_MAC MAC OVER_MAC NET VPORT TTL DSCP_FIXED DSCP
//! out NET VPORT FRAME (sent NET VPORT FRAME | lost)
//! in NET VPORT FRAME (sent NET VPORT FRAME | back)
//! ```
//!
//! The frame of `out` has the place of its row in the lowest byte of its source MAC address. A packet that the card leaves to
//! software is `back`: it needs more than a look at fixed places, or it is of no tunnel, or faulty.

use std::fmt::Write as _;
use std::io::Write as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::process::ExitCode;

use hue_demux::tunnel::{Dscp, Encapsulation, Outer, Tunnel};
use hue_tables::Vid;
use hue_wire::vxlan::Vni;
use hue_wire::{Mac, checksum, ethernet, toeplitz, vxlan};

const FRAME_BYTES_MAX: usize = 9216;

struct Random(u64);

impl Random {
    /// xorshift64*.
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, end: usize) -> usize {
        ((self.next() >> 32) as usize) % end.max(1)
    }

    fn percent(&mut self, share: usize) -> bool {
        self.below(100) < share
    }

    fn byte(&mut self) -> u8 {
        (self.next() >> 32) as u8
    }

    fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.byte()).collect()
    }

    /// One of few addresses, so that tunnels share ends.
    fn address(&mut self, wide: bool) -> IpAddr {
        let last = self.below(6) as u8;
        match wide {
            true => Ipv6Addr::from([0x20, 1, 0xd, 0xb8, last & 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7, last]).into(),
            false => Ipv4Addr::new(192, 0, 2 + (last & 1), last).into(),
        }
    }

    fn mac(&mut self) -> Mac {
        Mac([self.byte() & !1, self.byte(), self.byte(), self.byte(), self.byte(), self.byte()])
    }
}

/// A row of the card.
struct Row {
    place: usize,
    over: u8,
    over_vport: u8,
    tunnel: Tunnel,
    any_mac: bool,
    mac: Mac,
    over_mac: Mac,
    net: u8,
    vport: u8,
}

fn octets(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V6(address) => address.octets(),
        IpAddr::V4(address) => u128::from(u32::from(address)).to_be_bytes(),
    }
}

fn vni_of(encapsulation: Encapsulation) -> u32 {
    match encapsulation {
        Encapsulation::Ipip => 0,
        Encapsulation::Vxlan { vni, .. } => vni.get(),
    }
}

/// Where the search for a tunnel begins.
fn first_place(over: u8, tunnel: &Tunnel, rows: usize) -> usize {
    let vni = vni_of(tunnel.encapsulation).to_be_bytes();
    let key = [&octets(tunnel.remote)[..], &octets(tunnel.local), &vni[1..], &[over]].concat();
    toeplitz::hash(&key) as usize % rows
}

/// One of few VNIs, so that tunnels differ in nothing else.
fn vni(random: &mut Random) -> Vni {
    Vni::new([7, 8, 0x01_0203][random.below(3)]).unwrap_or(Vni::MAX)
}

fn tunnels(random: &mut Random, count: usize, space: usize) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    while rows.len() < count {
        let wide = random.percent(50);
        let (local, remote) = (random.address(wide), random.address(wide));
        let vni = vni(random);
        let encapsulation = match random.percent(50) {
            true => Encapsulation::Ipip,
            false => Encapsulation::Vxlan { vni, port: vxlan::PORT },
        };
        let dscp = if random.percent(50) { Dscp::Inherit } else { Dscp::Fixed(random.byte() & 63) };
        let ttl = [1, 64, 254, 255][random.below(4)];
        let over = random.below(3) as u8;
        let Some(over_vid) = Vid::new(1) else { break };
        let tunnel = Tunnel { over: over_vid, encapsulation, local, remote, ttl, dscp };
        let key = |row: &Row| (row.over, row.tunnel.encapsulation, row.tunnel.local, row.tunnel.remote);
        if tunnel.check().is_err() || rows.iter().any(|row| key(row) == (over, encapsulation, local, remote))
        {
            continue;
        }
        let first = first_place(over, &tunnel, space);
        let free = |place: &usize| rows.iter().all(|row| row.place != *place);
        let Some(place) = (first..first + space).map(|place| place % space).find(free) else { break };
        let (mac, over_mac) = (random.mac(), random.mac());
        let [over_vport, net, vport] = [random.byte(), 16 + (random.byte() & 31), random.byte()];
        let any_mac = random.percent(30);
        rows.push(Row { place, over, over_vport, tunnel, any_mac, mac, over_mac, net, vport });
    }
    rows
}

fn put16(frame: &mut [u8], at: usize, value: usize) {
    if let Some(place) = frame.get_mut(at..at + 2) {
        place.copy_from_slice(&(value as u16).to_be_bytes());
    }
}

fn get16(frame: &[u8], at: usize) -> usize {
    frame.get(at..at + 2).map_or(0, |bytes| usize::from(bytes[0]) << 8 | usize::from(bytes[1]))
}

/// A frame with an IP packet, or of another type, up to `most` bytes of payload.
fn inner(random: &mut Random, mac: Mac, most: usize) -> Vec<u8> {
    let to = if random.percent(10) { [0xff; 6] } else { mac.0 };
    let mut frame = [&to[..], &random.bytes(6)].concat();
    let payload = if random.percent(60) { random.below(60) } else { random.below(most) };
    let protocol = [6, 17, 1, 47, 132, 4, 58][random.below(7)];
    let kind = random.below(10);
    if kind < 5 {
        let options = if random.percent(15) { 4 * random.below(10) } else { 0 };
        let flags = if random.percent(15) { random.byte() & 0x3f } else { 0x40 };
        frame.extend([8, 0, 0x45 + (options / 4) as u8, random.byte()]);
        frame.extend(((20 + options + payload) as u16).to_be_bytes());
        frame.extend([random.byte(), random.byte(), flags, 0, 64, protocol, random.byte(), random.byte()]);
        frame.extend(random.bytes(8 + options + payload));
    } else if kind < 9 {
        frame.extend([0x86, 0xdd, 0x60 | random.byte() & 15, random.byte(), random.byte(), random.byte()]);
        frame.extend((payload as u16).to_be_bytes());
        frame.extend([if random.percent(15) { 44 } else { protocol }, 64]);
        frame.extend(random.bytes(32 + payload));
    } else {
        frame.extend([8, 6]);
        frame.extend(random.bytes(28));
    }
    if random.percent(30) {
        let padding = random.below(30);
        frame.extend(random.bytes(padding));
    }
    // Sometimes a length or another byte of the header is wrong.
    if random.percent(15) {
        let at = 12 + random.below(12);
        frame[at] = random.byte();
    }
    if random.percent(10) {
        let at = [16, 18][random.below(2)];
        let value = frame.len().saturating_sub(14) + random.below(4);
        put16(&mut frame, at, value);
    }
    frame
}

/// Whether the card leaves a packet to software whatever is in it, although `Outer::parse` reads it.
fn needs_software(frame: &[u8]) -> bool {
    if get16(frame, 12) == 0x86dd {
        return !matches!(frame[20], 4 | 41 | 17) || frame[20] == 17 && get16(frame, 60) != 0;
    }
    frame[14] != 0x45 || frame[23] == 17 && get16(frame, 40) != 0
}

/// A packet that came to network `over`, after the checks of its plane.
fn taken_out(rows: &[Row], over: u8, frame: &[u8]) -> Option<(u8, u8, Vec<u8>)> {
    let outer = Outer::parse(frame, |_| true)?.ok()?;
    let row = rows.iter().find(|row| {
        let Tunnel { encapsulation, local, remote, .. } = row.tunnel;
        row.over == over
            && (encapsulation, local, remote) == (outer.encapsulation, outer.destination, outer.source)
    })?;
    let mut bytes = frame.to_vec();
    let place = outer.decapsulate(&mut bytes, row.mac).ok()?;
    let inside = bytes.get(place)?.to_vec();
    let for_port = outer.encapsulation == Encapsulation::Ipip
        || row.any_mac
        || ethernet::is_group(&inside)
        || inside.get(..6) == Some(&row.mac.0);
    (for_port && !needs_software(frame)).then_some((row.net, row.vport, inside))
}

fn encapsulated(row: &Row, frame: &[u8]) -> Option<Vec<u8>> {
    let made = row.tunnel.encapsulate(frame).ok()?;
    let mut bytes = [made.headers(), frame.get(made.payload.clone())?].concat();
    bytes.get_mut(..6)?.copy_from_slice(&row.over_mac.0);
    (bytes.len() <= FRAME_BYTES_MAX).then_some(bytes)
}

/// Changes to a packet of a tunnel, as a hostile sender makes them.
fn hostile(random: &mut Random, frame: &mut Vec<u8>) {
    let wide = frame[12] == 0x86;
    let behind = if wide { 54 } else { 34 };
    // What tells VXLAN from other packets, and one tunnel from another with the same ends.
    if frame[if wide { 20 } else { 23 }] == 17 && frame.len() >= behind + 16 && random.percent(40) {
        match random.below(3) {
            0 => put16(frame, behind + 6, 1 + random.below(0xffff)),
            1 => frame[behind + 8] &= !8,
            _ => {
                let vni = vni(random).get().to_be_bytes();
                frame[behind + 12..behind + 15].copy_from_slice(&vni[1..]);
            }
        }
        return;
    }
    for _ in 0..=random.below(2) {
        match random.below(11) {
            // The outer packet: congestion, fragments, options, extension headers, addresses, lengths, padding.
            0 if wide => frame[15] = frame[15] & !0x30 | (random.byte() & 3) << 4,
            0 => frame[15] = frame[15] & !3 | random.byte() & 3,
            1 if !wide => frame[20] = random.byte() & 0x3f,
            2 if !wide && frame.len() > behind => {
                let total = get16(frame, 16) + 4;
                frame[14] = 0x46;
                put16(frame, 16, total);
                frame.splice(34..34, [1, 1, 1, 1]);
            }
            2 if wide && frame.len() > behind => {
                let payload = get16(frame, 18) + 8;
                let extension = [frame[20], 0, 1, 4, 0, 0, 0, 0];
                frame[20] = 60;
                put16(frame, 18, payload);
                frame.splice(54..54, extension);
            }
            3 => {
                let at = if wide { 22 } else { 26 } + random.below(if wide { 32 } else { 8 });
                frame[at] ^= 1 << random.below(8);
            }
            4 => {
                let at = if wide { 18 } else { 16 };
                let value = get16(frame, at) + 3 - random.below(7);
                put16(frame, at, value);
            }
            5 => frame.extend(random.bytes(9)),
            6 => frame[if wide { 20 } else { 23 }] = [4, 41, 17, 6][random.below(4)],
            // UDP, VXLAN and what is behind them, or an inner IP header.
            7 => {
                let at = behind + random.below(16);
                if let Some(byte) = frame.get_mut(at) {
                    *byte ^= 1 << random.below(8);
                }
            }
            8 => {
                let value = (get16(frame, behind + 4) + 3).saturating_sub(random.below(40));
                put16(frame, behind + 4, value);
            }
            9 => {
                let at = behind + random.below(44);
                if let Some(byte) = frame.get_mut(at) {
                    *byte = random.byte();
                }
            }
            _ => {
                let less = frame.len() - random.below(20);
                frame.truncate(behind.max(less));
            }
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn row_text(row: &Row) -> String {
    let Tunnel { encapsulation, local, remote, ttl, dscp, .. } = row.tunnel;
    let (fixed, value) = if let Dscp::Fixed(value) = dscp { (1, value) } else { (0, 0) };
    let far = format!(
        "row {:x} {:x} {:x} {} {} {:x}",
        row.place,
        row.over,
        row.over_vport,
        u8::from(encapsulation != Encapsulation::Ipip),
        u8::from(local.is_ipv6()),
        vni_of(encapsulation),
    );
    let ends = format!("{} {} {}", hex(&octets(remote)), hex(&octets(local)), u8::from(row.any_mac));
    let macs = format!("{} {}", hex(&row.mac.0), hex(&row.over_mac.0));
    let ttl = ttl.saturating_add(1);
    format!("{far} {ends} {macs} {:x} {:x} {ttl:x} {fixed} {value:x}\n", row.net, row.vport)
}

/// The line of a frame that enters a tunnel.
fn entering(random: &mut Random, rows: &[Row], row: &Row, mut frame: Vec<u8>, space: usize) -> String {
    // The card writes the address of the virtual port over the place.
    frame[6..12].copy_from_slice(&row.mac.0);
    let mut expected = encapsulated(row, &frame);
    frame[11] = row.place as u8;
    // A row of another network, or of none.
    let mut net = row.net;
    if random.percent(3) {
        net = net.wrapping_add(1 + random.byte() % 100);
        expected = None;
    }
    let free = (0..space).find(|place| rows.iter().all(|row| row.place != *place));
    if random.percent(5)
        && let Some(free) = free
    {
        frame[11] = free as u8;
        expected = None;
    }
    let fate = expected.map_or_else(
        || "lost".to_owned(),
        |bytes| format!("sent {:x} {:x} {}", row.over, row.over_vport, hex(&bytes)),
    );
    format!("out {net:x} {:x} {} {fate}\n", random.byte(), hex(&frame))
}

/// The line of a packet that may come out of a tunnel.
fn coming(random: &mut Random, rows: &[Row], row: &Row, frame: &[u8]) -> String {
    let Some(mut packet) = encapsulated(row, frame) else { return String::new() };
    if random.percent(60) {
        hostile(random, &mut packet);
    }
    if packet[12] == 8 {
        packet[24..26].fill(0);
        let header = usize::from(packet[14] & 15) * 4;
        if let Some(header) = packet.get(14..14 + header.max(20)) {
            let sum = checksum::full(header);
            put16(&mut packet, 24, usize::from(sum));
        }
    }
    let over = if random.percent(95) { row.over } else { random.byte() };
    let fate = taken_out(rows, over, &packet).map_or_else(
        || "back".to_owned(),
        |(net, vport, bytes)| format!("sent {net:x} {vport:x} {}", hex(&bytes)),
    );
    format!("in {over:x} {:x} {} {fate}\n", random.byte(), hex(&packet))
}

fn main() -> ExitCode {
    let arguments: Vec<usize> = std::env::args().skip(1).filter_map(|text| text.parse().ok()).collect();
    let [seed, frames, space] = arguments[..] else {
        eprintln!("usage: tunnel_vectors SEED FRAMES ROWS");
        return ExitCode::from(2);
    };
    let mut random = Random(seed as u64 * 2 + 1);
    let rows = tunnels(&mut random, space * 3 / 4, space);
    let mut text: String = rows.iter().map(row_text).collect();
    for number in 0..frames {
        let Some(row) = rows.get(random.below(rows.len())) else { break };
        // Some of the longest, which become longer than a frame can be.
        let most = if number % 50 == 0 { FRAME_BYTES_MAX - 150 } else { 1500 };
        let to = if random.percent(80) { row.mac } else { random.mac() };
        let frame = inner(&mut random, to, most);
        text += &match random.percent(60) {
            true => entering(&mut random, &rows, row, frame, space),
            false => coming(&mut random, &rows, row, &frame),
        };
    }
    match std::io::stdout().lock().write_all(text.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}
