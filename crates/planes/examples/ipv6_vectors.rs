//! Vectors for the test bench of `rtl/planes/hue_ipv6_check.sv`: random frames, most of them nearly valid, and what the
//! first half of the `ipv6` plane says about them.
//!
//! `cargo run -p hue-planes --example ipv6_vectors -- SEED FRAMES` prints a line a frame, numbers hexadecimal:
//!
//! ```text
//! FRAME ASKS OUTCOME TOTAL HOP_LIMIT     the frame's bytes; whether a route decides; else, or unless that is `local`, the
//!                                        outcome, 0 for none; length of the packet and hop limit if a route decides
//! ```

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::ExitCode;

use hue_demux::PortId;
use hue_planes::ipv6::{self, Adjacency, Outcome};
use hue_planes::{FRAME_BYTES_MAX, FRAME_BYTES_MIN};
use hue_wire::Mac;

const HEADERS_BYTES: usize = 54;
/// Special addresses: each kind of RFC 4291 §2.4, and the first and last of their prefixes.
const SPECIAL: [u128; 12] = [
    0,
    1,
    2,
    0xff00 << 112,
    0xff02 << 112 | 1,
    0xfeff << 112,
    0xfe80 << 112 | 9,
    0xfebf << 112 | u128::MAX >> 16,
    0xfec0 << 112,
    0xfe7f << 112,
    0xfd00 << 112,
    0xffff_7f00_0001,
];

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

    /// One of the special addresses, often with a bit changed.
    fn special(&mut self) -> [u8; 16] {
        let address = SPECIAL.get(self.below(SPECIAL.len())).copied().unwrap_or_default();
        let bit = if self.percent(40) { 1 << self.below(128) } else { 0 };
        (address ^ bit).to_be_bytes()
    }
}

/// Replaces bytes of a frame at a place, as far as the frame has them.
fn put(frame: &mut [u8], at: usize, bytes: &[u8]) {
    frame.iter_mut().skip(at).zip(bytes).for_each(|(to, from)| *to = *from);
}

fn frame(random: &mut Random) -> Vec<u8> {
    let end = if random.percent(97) { 200 } else { FRAME_BYTES_MAX };
    let len = HEADERS_BYTES + random.below(end + 1 - HEADERS_BYTES);
    let mut frame: Vec<u8> = (0..len).map(|_| random.byte()).collect();
    let group = random.percent(10);
    let mac = random.byte();
    put(&mut frame, 0, &[if group { mac | 1 } else { mac & !1 }]);
    put(&mut frame, 12, &[0x86, 0xdd, 0x60 | random.byte() & 15]);
    put(&mut frame, 18, &((len - HEADERS_BYTES) as u16).to_be_bytes());
    put(&mut frame, 20, &[1 | random.byte(), 2 | random.byte()]);
    put(&mut frame, 22, &[0x20]);
    put(&mut frame, 38, &[0x20]);
    for at in [22, 38] {
        if random.percent(15) {
            let address = random.special();
            put(&mut frame, at, &address);
        }
    }
    if random.percent(10) {
        put(&mut frame, 20, &[0]);
    }
    if random.percent(10) {
        let hop_limit = random.below(4) as u8;
        put(&mut frame, 21, &[hop_limit]);
    }
    if random.percent(15) {
        let payload = match random.below(4) {
            0 => random.below(0x1_0000),
            near => (len - HEADERS_BYTES + near).saturating_sub(2),
        };
        put(&mut frame, 18, &(payload as u16).to_be_bytes());
    }
    if random.percent(3) {
        let version = random.byte();
        put(&mut frame, 14, &[version]);
    }
    if random.percent(3) {
        let changed = (0x86dd_u16 ^ 1 << random.below(16)).to_be_bytes();
        put(&mut frame, 12, if random.percent(50) { &[8, 6] } else { &changed });
    }
    if random.percent(6) {
        frame.truncate(FRAME_BYTES_MIN + random.below(HEADERS_BYTES + 6 - FRAME_BYTES_MIN));
    }
    frame
}

fn line(frame: &[u8]) -> String {
    let mut text = frame.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    });
    let hop = |mtu_bytes| Adjacency::forward(PortId::new(0), Mac::default(), Mac::default(), mtu_bytes);
    let result = match ipv6::check(frame) {
        Err(outcome) => format!(" 0 {:x} 0 0", outcome.code()),
        Ok(checked) => {
            let outcome = ipv6::decide(checked, &hop(u16::MAX));
            let code = if outcome == Outcome::Forward { 0 } else { outcome.code() };
            // The length is what the plane compares with an MTU; it says it itself if nothing else stops the packet.
            let total = if code == 0 {
                (0..=FRAME_BYTES_MAX as u16).find(|mtu| ipv6::decide(checked, &hop(*mtu)) == Outcome::Forward)
            } else {
                frame.get(18..20).map(|two| two.iter().fold(0, |n, byte| n << 8 | u16::from(*byte)) + 40)
            };
            let hop_limit = frame.get(21).copied().unwrap_or_default();
            format!(" 1 {code:x} {:x} {hop_limit:x}", total.unwrap_or_default())
        }
    };
    text.push_str(&result);
    text
}

fn main() -> ExitCode {
    let numbers: Vec<u64> = std::env::args().skip(1).filter_map(|text| text.parse().ok()).collect();
    let [seed, frames] = numbers[..] else {
        eprintln!("usage: ipv6_vectors SEED FRAMES");
        return ExitCode::from(2);
    };
    let mut random = Random(seed << 1 | 1);
    for _ in 0..20 {
        random.next();
    }
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    for _ in 0..frames {
        let frame = frame(&mut random);
        if writeln!(out, "{}", line(&frame)).is_err() {
            return ExitCode::FAILURE;
        }
    }
    if out.flush().is_err() { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
