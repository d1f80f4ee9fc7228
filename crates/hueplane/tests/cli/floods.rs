//! `lab run`: a flood of any sort does not affect networks that stay within their share.
//!
//! `victim` sends from p1 to p2. `beside` sends from p0, on which floods arrive too. `flooder`, and in images with room a
//! hundred others, have a virtual port on p0. Every flood fills p0 and p3.

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::Command;

use hue_testdata::{full, make_images, root, target};
use serde_json::Value;

use crate::card::images;
use crate::support::Scratch;

/// Longest frame, bytes without check sequence.
const LONGEST_BYTES: u64 = 9216;

/// An image, its lines in Mbit/s, the bytes of its bus, networks on p0 besides the three, and the duration of the flood.
struct Image {
    name: &'static str,
    line_mbps: u64,
    bus_bytes: u64,
    others: usize,
    us: u64,
}

/// Every image that holds three networks; the first two always.
const IMAGES: [Image; 6] = [
    Image { name: "tcam3", line_mbps: 1000, bus_bytes: 8, others: 0, us: 4000 },
    Image { name: "default", line_mbps: 10_000, bus_bytes: 32, others: 97, us: 800 },
    Image { name: "wide", line_mbps: 25_000, bus_bytes: 64, others: 27, us: 300 },
    Image { name: "sram", line_mbps: 1000, bus_bytes: 8, others: 27, us: 4000 },
    Image { name: "tcam4", line_mbps: 1000, bus_bytes: 8, others: 1, us: 4000 },
    Image { name: "tcam5", line_mbps: 1000, bus_bytes: 8, others: 2, us: 4000 },
];

/// A flood: the sort, and the bytes of a frame.
const FLOODS: [(&str, u64); 11] = [
    ("forward", 64),
    ("forward", 2040),
    ("forward", LONGEST_BYTES + 4),
    ("broadcast", 64),
    ("broadcast", LONGEST_BYTES + 4),
    ("multicast", 64),
    ("runt", 64),
    ("nobody", 64),
    ("nobody", LONGEST_BYTES + 4),
    ("ttl1", 64),
    ("own", 64),
];

/// A network that sends from one port to another.
fn network(text: &mut String, name: &str, id: usize, ports: [usize; 2]) {
    let mac = |port: usize| format!("02:00:{id:02x}:00:00:{port:02x}");
    let _ = write!(
        text,
        "---\napiVersion: hueplane/v1\nkind: Network\nmetadata: {{name: {name}}}\nspec:\n  plane: {{kind: ipv4}}\n  ports:\n"
    );
    for port in ports {
        let _ = writeln!(
            text,
            "    - {{name: v{port}, port: p{port}, mac: \"{}\", addresses: [10.{port}.{id}.1/24]}}",
            mac(port)
        );
    }
    let [from, to] = ports;
    let _ = writeln!(text, "  routes:\n    - {{to: 10.100.0.0/16, via: 10.{to}.{id}.2}}");
    let _ = writeln!(text, "    - {{to: 10.101.0.0/16, via: 10.{from}.{id}.2}}\n  neighbours:");
    for port in ports {
        let _ = writeln!(
            text,
            "    - {{port: v{port}, address: 10.{port}.{id}.2, mac: \"02:aa:{id:02x}:00:00:{port:02x}\"}}"
        );
    }
}

fn documents(image: &Image) -> String {
    let mut text = String::new();
    network(&mut text, "victim", 1, [1, 2]);
    network(&mut text, "beside", 2, [0, 2]);
    network(&mut text, "flooder", 3, [0, 3]);
    for other in 0..image.others {
        network(&mut text, &format!("other{other}"), 10 + other, [0, 3]);
    }
    text
}

/// Result of a stream: frames offered and forwarded, and the 99th percentile of the latency, first word to first word, in
/// cycles.
#[derive(Debug)]
struct Seen {
    offered: u64,
    forwarded: u64,
    p99: u64,
}

fn seen(report: &Value, stream: usize) -> Seen {
    let one = &report["traffic"][stream];
    let number = |value: &Value| value.as_u64().unwrap_or_else(|| panic!("{value} in {report}"));
    Seen {
        offered: number(&one["offered"]),
        forwarded: number(&one["forwarded"]),
        p99: number(&one["first_word"]["cycles"]["p99"]),
    }
}

/// Networks, and the traffic that is offered to them.
struct Lab {
    dir: Scratch,
    image: &'static Image,
    images: String,
}

impl Lab {
    fn new(image: &'static Image, images: &str) -> Self {
        let dir = Scratch::new();
        dir.write("lab.yaml", documents(image));
        Self { dir, image, images: images.to_owned() }
    }

    /// Runs `victim` and `beside` at shares of their lines, in percent, together with a flood.
    fn run(&self, shares: [u64; 2], flood: &str) -> (Value, [Seen; 2]) {
        let Image { name, line_mbps, us, .. } = self.image;
        let [victim, beside] = shares.map(|percent| line_mbps * percent / 100);
        let line = format!(
            "lab run -f lab.yaml --image {name} --traffic p1=rate:{victim}M,size:64,networks:victim,to:p2 \
             p0=rate:{beside}M,size:64,networks:beside,to:p2 {flood} --duration-us {us} --line {line_mbps}M -o json"
        );
        let report = self.dir.hueplane_env(&line, &[("HUEPLANE_IMAGES", &self.images)]).ok().json();
        let seen = [0, 1].map(|stream| seen(&report, stream));
        (report, seen)
    }

    /// Floods p3, and p0 with the part of its line that `beside` leaves.
    fn flood(&self, sort: &str, size: u64, beside: u64) -> String {
        let line = self.image.line_mbps;
        let rest = line * (100 - beside) / 100;
        let what = format!("sort:{sort},size:{size},flows:64");
        let own = if matches!(sort, "forward" | "ttl1" | "own") { ",networks:flooder" } else { "" };
        format!("p0=rate:{rest}M,{what}{own} p3=rate:{line}M,{what}{own}")
    }
}

/// Violations by a flood, one per line.
fn damage(lab: &Lab) -> Vec<String> {
    let Image { name, bus_bytes, .. } = lab.image;
    let (_, alone) = lab.run([40, 10], "");
    let mut damage = Vec::new();
    for (sort, size) in FLOODS {
        let (report, flooded) = lab.run([40, 10], &lab.flood(sort, size, 10));
        let offered = |stream: usize| report["traffic"][stream]["offered"].as_u64().unwrap();
        assert!(offered(2) > 10 && offered(3) > 10, "{name}, {sort} {size}: no flood: {report}");
        // A frame waits for one frame of the greatest length, and for short ones. On the flooded port it also waits for
        // such a frame of its own port, because frames of a port keep their order; that frame in turn waits for one of
        // another port and a copy.
        let words = LONGEST_BYTES / bus_bytes;
        let longest = words + words / 16;
        let beside = if size > LONGEST_BYTES { 7 * longest / 2 } else { longest };
        for ((before, after), (who, most)) in
            alone.iter().zip(&flooded).zip([("victim", longest), ("beside", beside)])
        {
            println!("{name}, {sort} {size}: {who} {before:?} -> {after:?}");
            if after.forwarded != after.offered {
                damage.push(format!("{name}, {sort} {size}: {who} lost frames: {after:?}"));
            }
            if after.p99 > before.p99 + most {
                damage.push(format!("{name}, {sort} {size}: {who} waits: {before:?}, then {after:?}"));
            }
        }
    }
    damage
}

#[test]
fn a_flood_takes_nothing_from_networks_within_their_share() {
    let images = images();
    for image in &IMAGES[..if full() { IMAGES.len() } else { 1 }] {
        let damage = damage(&Lab::new(image, images));
        assert!(damage.is_empty(), "{damage:#?}");
    }
}

/// The experiment must detect a card that sends copies of broadcasts before all other frames.
#[test]
#[ignore = "long: make test-full"]
fn a_card_in_which_copies_go_first_is_found() {
    let out = target().join("tmp/mutated/floods");
    let rtl = out.join("rtl");
    let _ = fs::remove_dir_all(&rtl); // it may not exist
    fs::create_dir_all(&out).unwrap();
    let copied = Command::new("cp").arg("-r").arg(root().join("rtl")).arg(&rtl).status().unwrap();
    assert!(copied.success());
    let arbiter = rtl.join("card/hue_arbiter.sv");
    let text = fs::read_to_string(&arbiter).unwrap();
    let (from, to) = ("`ifdef HUE_PLANT_ARBITER_PRIORITY", "`ifndef HUE_PLANT_ARBITER_PRIORITY");
    assert!(text.contains(from));
    // Its own assertion would find it before the experiment does.
    let text = text.replace(from, to).replace("a_priority: assert property", "a_priority: cover property");
    fs::write(&arbiter, text).unwrap();
    make_images(&out, &[Path::new("--rtl"), &rtl], &["tcam3"]);
    let damage = damage(&Lab::new(&IMAGES[0], out.to_str().unwrap()));
    assert!(damage.iter().any(|line| line.contains("broadcast")), "{damage:#?}");
}
