//! The readers, each with samples to damage, and with shapes of inputs that can be made as long as wished.

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use hue_intent::{Source, parse};
use hue_ports::scan;
use hue_routing::{HopNames, Options, load_queries, load_routes, load_updates};
use hueplaned::store::{COPY, Store};

use crate::topologies;

#[path = "../../../crates/hueplaned/tests/hueplaned/world.rs"]
mod world;

/// Something that reads an input to its end. Returns whether there was nothing wrong with it.
pub type Read = Box<dyn FnMut(&[u8]) -> bool>;

/// A reader of bytes from outside.
pub struct Reader {
    /// Its name.
    pub name: &'static str,
    /// Whole inputs.
    pub samples: fn() -> Vec<Vec<u8>>,
    /// Words of its language, which are inserted.
    pub words: &'static [&'static str],
    /// Prepares it.
    pub start: fn() -> Read,
    /// Whether it gives all memory back after an input.
    pub returns_memory: bool,
    /// Memory that an input may take, in MiB.
    pub memory_mib: usize,
    /// Inputs of any length.
    pub shapes: &'static [Shape],
}

/// Inputs of one form.
pub struct Shape {
    /// Its name.
    pub name: &'static str,
    /// Most elements that are accepted: more are refused early.
    pub elements_max: usize,
    /// The input with so many elements.
    pub of: fn(usize) -> Vec<u8>,
}

const fn shape(name: &'static str, elements_max: usize, of: fn(usize) -> Vec<u8>) -> Shape {
    Shape { name, elements_max, of }
}

/// Elements of a shape whose reader has no limit that matters here.
const MANY: usize = 1 << 16;

/// All readers.
pub const READERS: &[Reader] = &[
    Reader {
        name: "frames",
        samples: frames,
        words: &[],
        start: || Box::new(|bytes| hue_wire::exercise::exercise(&mut bytes.to_vec()) < u64::MAX),
        returns_memory: true,
        memory_mib: 16,
        shapes: &[shape("bytes", 9_216, |count| vec![0x45; count])],
    },
    Reader {
        name: "pcap",
        samples: || {
            vec![
                pcap(0xa1b2_c3d4, 6),
                pcap(0xa1b2_3c4d, 3),
                include_bytes!("../../../labs/basic/p0.pcap").to_vec(),
            ]
        },
        words: &[],
        start: || with_file(|path| scan(path).is_ok()),
        returns_memory: true,
        memory_mib: 64,
        shapes: &[shape("packets", MANY, |count| pcap(0xa1b2_c3d4, count))],
    },
    Reader {
        name: "pcapng",
        samples: || vec![pcapng(1, 6), pcapng(3, 2), [pcapng(1, 1), pcapng(2, 1)].concat()],
        words: &["\n\r\r\n", "\x01\0\0\0", "\x06\0\0\0"],
        start: || with_file(|path| scan(path).is_ok()),
        returns_memory: true,
        memory_mib: 64,
        shapes: &[
            shape("packets", MANY, |count| pcapng(1, count)),
            // None has an option at which a search of all of them would end.
            shape("plain interfaces", MANY, |count| {
                [pcapng(1, 0), PLAIN_INTERFACE.repeat(count), pcapng(1, 1)].concat()
            }),
            shape("interfaces", MANY, |count| pcapng(count, 1)),
            shape("sections", MANY, |count| pcapng(1, 1).repeat(count)),
            shape("options", MANY / 4, |count| {
                // Comments of a section header, in one block.
                let options = [1, 0, 4, 0, b'a', b'b', b'c', b'd'].repeat(count);
                [
                    block(
                        0x0a0d_0d0a,
                        &[&[0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0][..], &[0xff; 8], &options].concat(),
                    ),
                    pcapng(1, 1),
                ]
                .concat()
            }),
        ],
    },
    Reader {
        name: "routes",
        samples: || {
            let text = include_str!("../../../labs/tables/red.txt");
            let text: String = text.lines().take(60).flat_map(|line| [line, "\n"]).collect();
            let text = text.into_bytes();
            vec![
                text.clone(),
                gzip(&text),
                xz(&text),
                b"2001:db8::/32 a\n::/0 -\n10.0.0.0/8\n# no\n".to_vec(),
            ]
        },
        words: &["/", "\n", "#", "::", "0.0.0.0/0 ", "/33 ", "/129 ", "\u{feff}", "\t"],
        start: || with_file(|path| each_option(|options| load_routes(path, options).is_ok())),
        returns_memory: true,
        // The xz decoder may ask for 256 MiB.
        memory_mib: 320,
        shapes: &[
            shape("lines", MANY, routes),
            shape("next hops", MANY - 4, |count| {
                lines(count, |n| format!("10.{}.{}.0/24 hop{n}", n >> 8 & 255, n & 255))
            }),
            shape("bad lines", MANY, |count| b"nonsense\n".repeat(count)),
            shape("comment", MANY, |count| [b"#".repeat(16 * count), b"\n10.0.0.0/8\n".to_vec()].concat()),
            shape("compressed members", MANY / 4, |count| gzip(b"10.0.0.0/8 a\n").repeat(count)),
        ],
    },
    Reader {
        name: "mrt",
        samples: || vec![mrt(1, 5, 2), mrt(3, 2, 1), gzip(&mrt(2, 4, 3))],
        words: &["\0\x0d\0\x02", "\0\x0d\0\x04", "\0\x0d\0\x06"],
        start: || with_file(|path| each_option(|options| load_routes(path, options).is_ok())),
        returns_memory: true,
        memory_mib: 320,
        shapes: &[
            shape("records", MANY, |count| mrt(1, count, 1)),
            shape("entries", 65_535, |count| mrt(1, 1, count)),
            shape("peers", 65_535, |count| mrt(count, 1, 1)),
        ],
    },
    Reader {
        name: "updates",
        samples: || vec![b"A 10.0.0.0/8 a\nW 10.0.0.0/8\nA 2001:db8::/32 b\n# c\n".repeat(5)],
        words: &["A ", "W ", "\n", "/", "::", " "],
        start: || {
            with_file(|path| {
                each_option(|options| load_updates(path, &mut HopNames::default(), options).is_ok())
            })
        },
        returns_memory: true,
        memory_mib: 320,
        shapes: &[
            shape("changes", MANY, |count| {
                lines(count, |n| format!("A 10.{}.{}.0/24 hop{}", n >> 8 & 255, n & 255, n % 9))
            }),
            shape("next hops", MANY - 4, |count| lines(count, |n| format!("A 10.0.0.0/8 hop{n}"))),
        ],
    },
    Reader {
        name: "queries",
        samples: || vec![b"red 10.9.1.2\nblue 2001:db8::1\n".repeat(5)],
        words: &["red ", "\n", "::", " "],
        start: || {
            with_file(|path| each_option(|options| load_queries(path, &["red", "blue"], options).is_ok()))
        },
        returns_memory: true,
        memory_mib: 320,
        shapes: &[shape("lines", MANY, |count| b"red 10.9.1.2\n".repeat(count))],
    },
    Reader {
        name: "documents",
        samples: || {
            vec![BASIC.to_vec(), LIVE.to_vec(), [NODE.as_bytes(), b"---\n", &network(1, 3, 2, 2)].concat()]
        },
        words: &[
            "- ",
            ": ",
            "\n",
            "  ",
            "{",
            "}",
            "[",
            "]",
            "\"",
            "'",
            "&a ",
            "*a",
            "<<: *a\n",
            "!",
            "? ",
            "|\n",
            ">",
            "---\n",
            "\t",
            "/33",
            "null",
            "\u{85}",
            "kind: Network\n",
            "%YAML 1.2\n",
        ],
        start: || Box::new(read_documents),
        returns_memory: true,
        memory_mib: 64,
        shapes: &[
            shape("routes", MANY, |count| network(1, count, 0, 0)),
            shape("neighbours", 32_767, |count| network(1, 0, count, 0)),
            shape("addresses", 250, |count| network(1, 0, 0, count)),
            shape("networks", 4_095, |count| (1..=count).flat_map(|n| network(n, 1, 1, 0)).collect()),
            shape("equal names", 4_095, |count| network(1, 0, 0, 0).repeat(count)),
            shape("equal routes", MANY, |count| {
                [
                    network(1, 0, 0, 0),
                    b"  routes:\n".to_vec(),
                    b"    - {to: 10.9.0.0/16, via: 10.1.0.2}\n".repeat(count),
                ]
                .concat()
            }),
            shape("errors", MANY, |count| [b"a:\n".to_vec(), b"  - {b: c}\n".repeat(count)].concat()),
            shape("documents", MANY, |count| b"---\n{}\n".repeat(count)),
            shape("aliases", MANY, |count| [b"a: &x 1\nb:\n".to_vec(), b"  - *x\n".repeat(count)].concat()),
            shape("anchors", MANY, |count| lines(count, |n| format!("- &x{n} 1"))),
            shape("keys", MANY, |count| lines(count, |n| format!("k{n}: 1"))),
            shape("depth", MANY, |count| [b"[".repeat(count), b"]".repeat(count)].concat()),
            shape("long text", MANY, |count| {
                [b"a: \"".to_vec(), b"word ".repeat(count), b"\"\n".to_vec()].concat()
            }),
            shape("block text", MANY, |count| [b"a: |\n".to_vec(), b"  word\n".repeat(count)].concat()),
            shape("comments", MANY, |count| b"# nothing\n".repeat(count)),
            shape("blanks", MANY, |count| [b" ".repeat(8 * count), b"a: 1".to_vec()].concat()),
        ],
    },
    Reader {
        name: "topologies",
        samples: topologies::samples,
        words: &[
            "- ",
            ": ",
            "\n",
            "{",
            "}",
            "[",
            "]",
            ", ",
            "\"",
            "&a ",
            "*a",
            "/33",
            "/30",
            "/31",
            "::/48",
            "kind: rofl",
            "kind: mpls",
            "kind: \
             extract",
            "kind: splice",
            "kind: kernel",
            "kind: l2",
            "kind: dual",
            "routing: ring",
            "routing: none",
            "tunnel: vxlan, over: w",
            "tunnel: ipip, over: w",
            "mtu: 68",
            "mtu: 1279",
            "slices: 16",
            "label_bits: 128",
            "nodes: [a]",
            "match: \"0x00\"",
        ],
        start: || Box::new(topologies::read),
        returns_memory: true,
        memory_mib: 64,
        shapes: &[shape("hosts", 4_096, topologies::hosts)],
    },
    Reader {
        name: "pwospf",
        samples: || vec![pwospf(1), pwospf(20)],
        words: &["\x02\x01\0\x20", "\x02\x04\0", "\0\0\0\x01", "\x7f", "\0\0\0\0"],
        start: || Box::new(|bytes| hue_routing::pwospf::exercise(bytes) > 0),
        returns_memory: true,
        memory_mib: 64,
        shapes: &[
            shape("routers", 1_024, pwospf),
            shape("hellos", MANY / 4, |count| pwospf_packet(0xc9, &pwospf_hello(1)).repeat(count)),
            shape("short packets", MANY, |count| pwospf_packet(0x81, &[0x45; 4]).repeat(count)),
        ],
    },
    Reader {
        name: "ring",
        samples: || vec![ring(1), ring(20)],
        words: &["\x01\x01\x03\u{68}", "\x03\x01\0\0", "\x09\0\0\x05", "\x7f", "\0\0\0\0"],
        start: || Box::new(|bytes| hue_routing::ring::exercise(bytes) > 0),
        returns_memory: true,
        memory_mib: 64,
        shapes: &[
            shape("routers", 1_024, ring),
            shape("hosts", 4_096, |count| {
                (0..count as u32).flat_map(|n| ring_message(0xc0, n as u8, &[2, 0, 0, 35])).collect()
            }),
            shape("hellos", MANY / 4, |count| ring_message(0xc0, 2, &ring_hello()).repeat(count)),
            shape("short messages", MANY, |count| ring_message(0xc0, 2, &[1, 0]).repeat(count)),
        ],
    },
    Reader {
        name: "copy",
        samples: || vec![copy(1), copy(3)],
        words: &["\"", "{", "}", "[", ":", ",", "\\u0000", "\\n", "null", "1e999", "-1", "\"format\":"],
        start: || Box::new(open_store),
        returns_memory: true,
        memory_mib: 64,
        shapes: &[shape("networks", 1_024, copy), shape("depth", MANY, |count| b"[".repeat(count))],
    },
    Reader {
        name: "requests",
        samples: requests,
        words: &[
            "\r\n",
            "\r\n\r\n",
            "%00",
            "%ff",
            "?",
            "&",
            "network=",
            "Content-Length: ",
            "Transfer-Encoding: chunked\r\n",
            "{",
            "\"",
        ],
        start: || {
            let served = world::Served::new();
            served.world.captures_end.store(true, std::sync::atomic::Ordering::Relaxed);
            Box::new(move |bytes| {
                let mut stream = served.connect();
                let _ = stream.write_all(bytes);
                // Closing the sending side takes a request back, so whole ones get their answer first.
                let wait = if is_whole(bytes) { Duration::from_secs(2) } else { Duration::from_millis(10) };
                stream.set_read_timeout(Some(wait)).unwrap();
                let mut answer = Vec::new();
                if std::io::Read::read_to_end(&mut stream, &mut answer).is_err() {
                    let _ = stream.shutdown(std::net::Shutdown::Write);
                    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
                    let _ = std::io::Read::read_to_end(&mut stream, &mut answer);
                }
                answer.starts_with(b"HTTP/1.1 2")
            })
        },
        // The world behind it remembers requests.
        returns_memory: false,
        memory_mib: 64,
        shapes: &[
            shape("documents", 2_000, |count| {
                let sources: Vec<_> = (0..count)
                    .map(|n| serde_json::json!({"name": format!("a{n}"), "text": "kind: Network\n"}))
                    .collect();
                post("/v1/apply", &serde_json::json!({"sources": sources, "dry_run": true}).to_string())
            }),
            shape("fields", 4_096, |count| {
                [
                    b"GET /v1/node HTTP/1.1\r\nhost: a\r\nconnection: close\r\n".to_vec(),
                    b"a: b\r\n".repeat(count),
                    b"\r\n".to_vec(),
                ]
                .concat()
            }),
            shape("query", 8_192, |count| {
                format!(
                    "GET /v1/events?{} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n",
                    "since=1&".repeat(count)
                )
                .into_bytes()
            }),
        ],
    },
];

/// A reader of a file, which gets each input in a file of its own.
fn with_file(read: impl Fn(&std::path::Path) -> bool + 'static) -> Read {
    let folder = tempfile::tempdir().unwrap();
    let path: PathBuf = folder.path().join("input");
    Box::new(move |bytes| {
        let _ = &folder; // removed with the reader
        fs::write(&path, bytes).unwrap();
        read(&path)
    })
}

fn each_option(read: impl Fn(&Options) -> bool) -> bool {
    read(&Options { skip_bad: true, derive_hops: Some(7) });
    read(&Options { skip_bad: false, derive_hops: None })
}

fn frames() -> Vec<Vec<u8>> {
    let ipv4 = [
        &[2, 0, 0, 0, 1, 1, 2, 0, 0, 0, 9, 9, 8, 0][..],
        &[0x45, 0, 0, 40, 0, 0, 0, 0, 64, 17, 0, 0],
        &[10; 8],
        &[0; 20],
    ];
    let ipv6 = [
        &[2; 12][..],
        &[0x86, 0xdd, 0x60, 0, 0, 0, 0, 40, 44, 64],
        &[0x20; 32],
        &[17, 0, 0, 1, 0, 0, 0, 1],
        &[0; 40],
    ];
    let arp = [&[0xff; 6][..], &[2; 6], &[8, 6, 0, 1, 8, 0, 6, 4, 0, 1], &[1; 20]];
    let tagged =
        [&[2; 12][..], &[0x81, 0, 0, 1, 0x81, 0, 0, 2, 8, 0, 0x46, 0, 0, 60, 0, 0, 0x20, 0, 9, 6], &[3; 60]];
    vec![ipv4.concat(), ipv6.concat(), arp.concat(), tagged.concat()]
}

fn pcap(magic: u32, packets: usize) -> Vec<u8> {
    let mut out = magic.to_le_bytes().to_vec();
    out.extend([2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 1, 0, 0, 0]);
    for n in 0..packets {
        let len = 20 + n % 40;
        for word in [n, 0, len, len] {
            out.extend((word as u32).to_le_bytes());
        }
        out.extend(vec![n as u8; len]);
    }
    out
}

/// A block of pcapng; its body is padded.
fn block(kind: u32, body: &[u8]) -> Vec<u8> {
    let mut body = body.to_vec();
    body.resize(body.len().next_multiple_of(4), 0);
    let len = (body.len() as u32 + 12).to_le_bytes();
    [&kind.to_le_bytes()[..], &len, &body, &len].concat()
}

/// A description of an interface: Ethernet, resolution of microseconds.
const PLAIN_INTERFACE: &[u8] = &[1, 0, 0, 0, 20, 0, 0, 0, 1, 0, 0, 0, 0, 0, 4, 0, 20, 0, 0, 0];

fn pcapng(interfaces: usize, packets: usize) -> Vec<u8> {
    let mut out = block(0x0a0d_0d0a, &[&[0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0][..], &[0xff; 8]].concat());
    // The same with a resolution of nanoseconds.
    let fine = block(1, &[1, 0, 0, 0, 0, 0, 4, 0, 9, 0, 1, 0, 9, 0, 0, 0, 0, 0, 0, 0]);
    (0..interfaces).for_each(|n| out.extend(if n % 2 == 0 { PLAIN_INTERFACE } else { &fine }));
    for n in 0..packets {
        let mut body = Vec::new();
        for word in [n % interfaces.max(1), 0, n, 20, 20] {
            body.extend((word as u32).to_le_bytes());
        }
        body.extend([n as u8; 20]);
        out.extend(block(6, &body));
    }
    out
}

fn lines(count: usize, line: impl Fn(usize) -> String) -> Vec<u8> {
    let mut out = String::new();
    (0..count).for_each(|n| writeln!(out, "{}", line(n)).unwrap());
    out.into_bytes()
}

fn routes(count: usize) -> Vec<u8> {
    lines(count, |n| {
        format!("{}.{}.{}.0/24\tcore{}\teth{}", 10 + (n >> 16), n >> 8 & 255, n & 255, n % 7, n % 3)
    })
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn xz(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = lzma_rust2::XzWriter::new(Vec::new(), lzma_rust2::XzOptions::with_preset(1)).unwrap();
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// An MRT table dump (RFC 6396).
fn mrt(peers: usize, records: usize, entries: usize) -> Vec<u8> {
    let record = |subtype: u8, body: &[u8]| {
        let head = [0x5f, 0, 0, 0, 0, 13, 0, subtype];
        [&head[..], &(body.len() as u32).to_be_bytes(), body].concat()
    };
    let mut body = vec![10, 0, 0, 1, 0, 0];
    body.extend((peers as u16).to_be_bytes());
    (0..peers).for_each(|_| body.extend([2, 10, 0, 0, 2, 10, 0, 0, 2, 0, 0, 0xfd, 0xe8]));
    let mut out = record(1, &body);
    let attributes = [0x40, 1, 1, 0, 0x40, 2, 6, 2, 1, 0, 0, 0xfd, 0xe8, 0x40, 3, 4, 192, 0, 2, 1];
    let six = [&[0x40, 1, 1, 0, 0x80, 14, 17, 16][..], &[0x20; 16]].concat();
    for n in 0..records {
        let mut body = (n as u32).to_be_bytes().to_vec();
        body.extend(if n % 3 == 2 {
            [32, 0x20, 1, (n >> 8) as u8, n as u8]
        } else {
            [32, 10, 1, (n >> 8) as u8, n as u8]
        });
        body.extend((entries as u16).to_be_bytes());
        for _ in 0..entries {
            let attributes = if n % 3 == 2 { &six[..] } else { &attributes[..] };
            body.extend([0, 0, 0x5f, 0, 0, 0]);
            body.extend((attributes.len() as u16).to_be_bytes());
            body.extend(attributes);
        }
        out.extend(record(if n % 3 == 2 { 4 } else { 2 }, &body));
    }
    out
}

/// Documents that people read.
const BASIC: &[u8] = include_bytes!("../../../labs/basic/hueplane.yaml");
const LIVE: &[u8] = include_bytes!("../../../labs/live/hueplane.yaml");
const NODE: &str = "apiVersion: hueplane/v1\nkind: Node\nmetadata: {name: node}\nspec:\n  ports:\n    - {name: p0, mtu: 1500, \
                    driver: auto, bandwidth: 10Gbit/s}\n    - {name: p1}\n";

/// Network number `n` with so many routes, neighbours and further addresses.
fn network(n: usize, routes: usize, neighbours: usize, addresses: usize) -> Vec<u8> {
    let mac = format!("02:00:00:01:{:02x}:{:02x}", n >> 8, n & 255);
    let more: String = (0..addresses).map(|at| format!(", 10.{}.{}.1/24", 3 + at / 200, at % 200)).collect();
    let mut out = format!(
        "---\napiVersion: hueplane/v1\nkind: Network\nmetadata: {{name: n{n}}}\nspec:\n  plane: {{kind: ipv4}}\n  ports:\n    - {{name: left, \
         port: p0, mac: \"{mac}\", addresses: [10.{}.{}.1/16{more}]}}\n",
        100 + n / 256,
        n % 256
    );
    let base = format!("10.{}", 100 + n / 256);
    for (list, count) in [("routes", routes), ("neighbours", neighbours)] {
        if count > 0 {
            let _ = writeln!(out, "  {list}:");
        }
        for at in 0..count {
            // Never a router's address, nor the first one of the link.
            let (high, low) = (at >> 7 & 255, 128 | at & 127);
            let _ = match list {
                "routes" => {
                    writeln!(out, "    - {{to: {}.{high}.{low}.0/24, via: {base}.200.200}}", 20 + (at >> 16))
                }
                _ => writeln!(
                    out,
                    "    - {{port: left, address: {base}.{high}.{low}, mac: \"02:00:00:02:{high:02x}:{low:02x}\"}}"
                ),
            };
        }
    }
    out.into_bytes()
}

fn read_documents(bytes: &[u8]) -> bool {
    let parsed = parse(vec![Source { name: "a.yaml".to_owned(), bytes: bytes.to_vec() }]);
    parsed.is_ok_and(|intent| hue_control::compile(&intent).is_ok())
}

/// What a store writes beside its database, made by a store.
fn copy(networks: usize) -> Vec<u8> {
    let text: Vec<u8> = [NODE.as_bytes().to_vec()]
        .into_iter()
        .chain((1..=networks).map(|n| network(n, 2, 1, 0)))
        .flatten()
        .collect();
    let intent = parse(vec![Source { name: "a.yaml".to_owned(), bytes: text }]).unwrap();
    let ids: serde_json::Map<_, _> = (1..=networks).map(|n| (format!("n{n}"), n.into())).collect();
    let mut documents: serde_json::Map<_, _> = intent
        .networks
        .iter()
        .map(|network| {
            let (key, text) = hueplaned::store::network_document(network);
            (key, text.into())
        })
        .collect();
    let node = serde_json::json!({"apiVersion": "hueplane/v1", "kind": "Node", "metadata": {"name": "node"},
                                  "spec": {"ports": [{"name": "p0"}, {"name": "p1"}]}});
    documents.insert(hueplaned::store::NODE_KEY.to_owned(), node.to_string().into());
    serde_json::to_vec(&serde_json::json!({"format": 1, "generation": 3, "applied_us": 7, "documents": documents, "ids": ids})).unwrap()
}

/// Opens a store that has a copy and nothing else.
fn open_store(bytes: &[u8]) -> bool {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join(COPY), bytes).unwrap();
    Store::open(folder.path()).is_ok()
}

/// A message for a router of the ring of flat labels, as `exercise` takes it.
fn ring_message(what: u8, sender: u8, body: &[u8]) -> Vec<u8> {
    [&[what, sender][..], &(body.len() as u16).to_be_bytes(), body].concat()
}

/// A hello that hears the router.
fn ring_hello() -> Vec<u8> {
    [&[1, 1, 3, 0xe8][..], &[0; 8], &[9, 0, 0, 0]].concat()
}

/// A neighbour's hello, and the links of so many routers in a row behind it.
fn ring(routers: usize) -> Vec<u8> {
    let mut out = ring_message(0xc0, 2, &ring_hello());
    for n in 0..routers as u32 {
        let label = |n: u32| (0x0200_0000 + n).to_be_bytes();
        let before = if n == 0 { [9, 0, 0, 0] } else { label(n - 1) };
        let body = [&[3, 2, 0, 0][..], &[0, 0, 0, 0, 0, 0, 0, 1], &label(n), &before, &label(n + 1)].concat();
        out.extend(ring_message(0xc0, 2, &body));
    }
    // Time for the ways.
    out.extend(ring_message(1, 0, &[]));
    out
}

/// A packet for a router of PW-OSPF, as `exercise` takes it.
fn pwospf_packet(what: u8, bytes: &[u8]) -> Vec<u8> {
    [&[what][..], &(bytes.len() as u16).to_be_bytes(), bytes].concat()
}

/// A hello without length and checksum.
fn pwospf_hello(router: u8) -> Vec<u8> {
    [&[2, 1, 0, 0, 7, 7, 7, router][..], &[0; 16], &[255, 255, 255, 0, 0, 5, 0, 0]].concat()
}

/// A neighbour's hello, and so many LSUs of routers behind it, in a row.
fn pwospf(routers: usize) -> Vec<u8> {
    let mut out = pwospf_packet(0xc9, &pwospf_hello(1));
    for n in 0..routers {
        let mut lsu =
            [&[2, 4, 0, 0, 7, 7][..], &(n as u16 + 1).to_be_bytes(), &[0; 16], &[0, 1, 0, 9, 0, 0, 0, 2]]
                .concat();
        for (subnet, other) in [(n, n), (n + 1, n + 2)] {
            lsu.extend([10, 1 + (subnet >> 8) as u8, subnet as u8, 0, 255, 255, 255, 0, 7, 7]);
            lsu.extend((other as u16).to_be_bytes());
        }
        out.extend(pwospf_packet(0xc9, &lsu));
    }
    // Time for the paths.
    out.extend(pwospf_packet(1, &[]));
    out
}

fn post(path: &str, body: &str) -> Vec<u8> {
    format!(
        "POST {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// Whether a request asks for the connection to be closed, and has all of its body.
fn is_whole(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let field = |name: &str| head.lines().find_map(|line| line.strip_prefix(name));
    let len = field("content-length: ").map_or(Some(0), |len| len.parse::<usize>().ok());
    field("connection: ") == Some("close") && len.is_some_and(|len| body.len() >= len)
}

fn requests() -> Vec<Vec<u8>> {
    let get =
        |path: &str| format!("GET {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").into_bytes();
    let apply =
        serde_json::json!({"sources": [{"name": "a", "text": world::document("red")}], "dry_run": true});
    let mut all: Vec<_> =
        ["/v1/node", "/v1/networks?limit=2", "/v1/networks/red", "/v1/history", "/v1/stats", "/metrics"]
            .map(get)
            .into();
    all.push(post("/v1/apply", &apply.to_string()));
    all.push(post("/v1/trace", r#"{"port": "p0", "frame": "00ff"}"#));
    all.push(post("/v1/rollback", r#"{"revision": 1}"#));
    all.push(
        b"POST /v1/apply HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n\
          2\r\n{}\r\n0\r\n\r\n"
            .to_vec(),
    );
    all
}
