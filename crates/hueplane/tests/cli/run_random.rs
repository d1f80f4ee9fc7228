//! Compares `run` with the model for random networks and captures: counters, every byte of every output,
//! order.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::model::{End, Model, Network, Port, Select, To};
use crate::support::{Scratch, checksum, mac, pcap_of};

/// SplitMix64: one seed determines an entire experiment.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    fn pick<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        let at = self.below(list.len());
        &list[at]
    }
}

fn ip(a: u32, b: u32, c: u32, d: u32) -> u32 {
    a << 24 | b << 16 | c << 8 | d
}

/// Networks whose addresses overlap deliberately: every network has the same links.
fn networks(random: &mut Random) -> Vec<Network> {
    let count = 1 + random.below(3);
    let with_port = random.below(4);
    (0..count)
        .map(|k| {
            let number = k as u32;
            let mut on: Vec<usize> = (0..3).collect();
            if random.chance(50) {
                on.remove(random.below(3));
            }
            let ports: Vec<Port> = on
                .iter()
                .map(|j| {
                    let mut addresses = vec![(ip(10, *j as u32, 0, 1 + number), 24)];
                    if random.chance(40) {
                        addresses.push((ip(172, 16, *j as u32, 4 * number + 1), 30));
                    }
                    Port {
                        name: format!("v{j}"),
                        port: *j,
                        mac: format!("02:00:00:00:{k:02x}:{j:02x}"),
                        addresses,
                        mtu: *random.pick(&[1500, 1500, 600, 68]),
                    }
                })
                .collect();
            let select = match random.below(4) {
                _ if k == with_port => Select::Port,
                0 => Select::Inner(vec![
                    (ip(10, 9 + number, 0, 0), 16),
                    (ip(10, 20, number, 0), 24),
                    (ip(192, 168, 16 * number, 0), 20),
                ]),
                _ => Select::Mac,
            };
            let rate = random.chance(30).then(|| (1 + random.below(2000) as u64, 1 + random.below(5) as u64));
            let (routes, neighbours) = routes(random, &ports);
            Network { name: format!("net{k}"), select, ports, routes, neighbours, rate }
        })
        .collect()
}

type Routes = (Vec<((u32, u8), To)>, Vec<(usize, u32, String)>);

fn routes(random: &mut Random, ports: &[Port]) -> Routes {
    let mut neighbours = Vec::new();
    for (index, port) in ports.iter().enumerate() {
        for host in [50, 51, 200] {
            if random.chance(70) {
                neighbours.push((
                    index,
                    ip(10, port.port as u32, 0, host),
                    format!("02:00:00:0a:{:02x}:{host:02x}", port.port),
                ));
            }
        }
    }
    let wanted = [
        (ip(0, 0, 0, 0), 0),
        (ip(10, 9, 0, 0), 16),
        (ip(10, 9, 1, 0), 24),
        (ip(10, 9, 1, 7), 32),
        (ip(10, 20, 0, 0), 15),
        (ip(10, 0, 0, 128), 25),
        (ip(10, 1, 0, 48), 28),
        (ip(192, 168, 0, 0), 16),
        (ip(192, 168, 16, 0), 20),
    ];
    let mut routes = Vec::new();
    for prefix in wanted {
        if !random.chance(60) {
            continue;
        }
        let index = random.below(ports.len());
        let is_far = prefix.0 >> 24 == 192;
        if is_far && random.chance(50) {
            routes.push((prefix, To::Port(index)));
            let host = prefix.0 | 7;
            // Only on the longest on-link route, otherwise the document would be rejected.
            if prefix.1 == 20 && random.chance(50) {
                neighbours.push((index, host | 0x1000, format!("02:00:00:0b:00:{:02x}", random.below(256))));
            }
        } else {
            let via = ip(10, ports[index].port as u32, 0, *random.pick(&[50, 51, 60, 200]));
            routes.push((prefix, To::Via(via)));
        }
    }
    // For a neighbour outside the link, the on-link route must be that of its own port.
    neighbours.retain(|(index, address, _)| {
        address >> 24 != 192
            || routes.iter().any(|((prefix, len), to)| {
                *len == 20 && prefix >> 12 == address >> 12 && matches!(to, To::Port(port) if port == index)
            })
    });
    (routes, neighbours)
}

fn destination(random: &mut Random) -> u32 {
    let link = random.below(3) as u32;
    let host = *random.pick(&[0, 1, 2, 3, 50, 51, 60, 77, 200, 255]);
    let near = ip(10, link, 0, host);
    match random.below(9) {
        0..=2 => near,
        3 => ip(10, 9 + random.below(3) as u32, *random.pick(&[0, 1]), *random.pick(&[7, 8])),
        4 => ip(10, 20 + random.below(2) as u32, random.below(3) as u32, 9),
        5 => ip(192, 168, *random.pick(&[0, 16, 31, 32]), *random.pick(&[7, 9])),
        6 => ip(172, 16, link, random.below(16) as u32),
        7 => *random.pick(&[
            ip(224, 0, 0, 5),
            ip(239, 255, 255, 255),
            u32::MAX,
            ip(240, 0, 0, 1),
            ip(127, 0, 0, 1),
            7,
        ]),
        _ => random.next() as u32,
    }
}

/// An IPv4 packet with a valid header.
fn packet(random: &mut Random, protocol: u8, options: usize, payload: &[u8]) -> Vec<u8> {
    let ihl = 20 + options;
    let total = (ihl + payload.len()) as u16;
    let ttl = *random.pick(&[64, 64, 64, 64, 255, 2, 1, 0]);
    let mut out = vec![0x40 | (ihl / 4) as u8, random.below(256) as u8];
    out.extend(total.to_be_bytes());
    let (flags, offset) = (*random.pick(&[0, 0, 0, 0x40, 0x20]), if random.chance(8) { 9 } else { 0 });
    out.extend([0, 7, flags, offset, ttl, protocol, 0, 0]);
    let source = match random.below(20) {
        0 => {
            *random.pick(&[0, ip(127, 0, 0, 1), ip(224, 0, 0, 9), u32::MAX, ip(1, 0, 0, 0), ip(126, 0, 0, 1)])
        }
        _ => ip(10, random.below(3) as u32, 0, 99),
    };
    out.extend(source.to_be_bytes());
    out.extend(destination(random).to_be_bytes());
    out.resize(ihl, 1);
    let sum = checksum(&out);
    out[10..12].copy_from_slice(&sum.to_be_bytes());
    out.extend(payload);
    out
}

fn ethernet(dst: [u8; 6], ethertype: [u8; 2], payload: &[u8]) -> Vec<u8> {
    [&dst[..], &[2, 0, 0, 0, 0xee, 1], &ethertype, payload].concat()
}

fn frame(random: &mut Random, networks: &[Network], port: usize) -> Vec<u8> {
    let dst = match random.below(20) {
        0 => [0xff; 6],
        1 => [1, 0, 0x5e, 0, 0, 5],
        2 => mac("02:de:ad:00:00:00"),
        _ => {
            let network = random.below(networks.len());
            let on: Vec<&Port> = networks[network].ports.iter().filter(|own| own.port == port).collect();
            on.first().map_or([2, 0, 0, 0, 9, 9], |own| mac(&own.mac))
        }
    };
    let options = if random.chance(6) { 4 * (1 + random.below(10)) } else { 0 };
    let filler: Vec<u8> = (0..*random.pick(&[0, 8, 8, 20, 26, 40, 60, 600, 1470, 1480, 1481, 9000]))
        .map(|_| random.next() as u8)
        .collect();
    let inner = match random.below(10) {
        0 => {
            let inside = packet(random, 17, 0, &filler);
            packet(random, 4, options, &inside)
        }
        1 => {
            let flags = *random.pick(&[8, 8, 8, 0]);
            let mut payload = vec![0x12, 0x34, 0x12, 0xb5, 0, 0, 0, 0, flags, 0, 0, 0, 0, 0, 5, 0];
            let ethertype = *random.pick(&[[8, 0], [8, 0], [0x86, 0xdd]]);
            let inside = packet(random, 6, 0, &filler);
            payload.extend(ethernet([2, 0, 0, 0, 7, 7], ethertype, &inside));
            packet(random, 17, options, &payload)
        }
        // Ports stay below 256, so that no payload looks like VXLAN.
        2..=4 => packet(random, 17, options, &[&[0, 7, 0, 9, 0, 8, 0, 0], &filler[..]].concat()),
        _ => {
            let protocol = *random.pick(&[1, 6, 47]);
            packet(random, protocol, options, &filler)
        }
    };
    let ethertype = *random.pick(&[
        [8, 0],
        [8, 0],
        [8, 0],
        [8, 0],
        [8, 0],
        [8, 0],
        [8, 0],
        [8, 6],
        [0x86, 0xdd],
        [0x81, 0],
    ]);
    let mut frame = ethernet(dst, ethertype, &inner);
    damage(random, &mut frame);
    frame
}

/// Occasional damage of each kind, and frequent padding.
fn damage(random: &mut Random, frame: &mut Vec<u8>) {
    let is_tunnel = matches!(frame[23], 4 | 17);
    match random.below(24) {
        0 => frame.truncate(random.below(14)),
        1 => frame.truncate(14 + random.below(20)),
        2 => frame.resize(9210 + random.below(12), 0),
        3 if !is_tunnel => frame[14] = *random.pick(&[0x65, 0x05, 0x55]),
        4 if !is_tunnel => frame[14] = 0x40 | random.below(16) as u8,
        5 => frame[16] = frame[16].wrapping_add(1 + random.below(3) as u8),
        6 => {
            frame[16] = 0;
            frame[17] = random.below(30) as u8;
        }
        7 => frame[24] ^= 1 << random.below(8),
        8 => frame.truncate(frame.len() - 1),
        9..=13 => frame.resize(frame.len() + random.below(20), 0xaa),
        _ => {}
    }
}

type Capture = (usize, bool, Vec<(u64, Vec<u8>)>);

fn captures(random: &mut Random, networks: &[Network]) -> Vec<Capture> {
    (0..1 + random.below(3))
        .map(|_| {
            let port = *random.pick(&networks[0].ports.iter().map(|own| own.port).collect::<Vec<_>>());
            let nano = random.chance(30);
            let mut time_ns = 1_700_000_000_000_000_000;
            let packets = (0..random.below(250))
                .map(|_| {
                    let step = random.below(2_000_000) as u64;
                    time_ns = if random.chance(3) { time_ns - step } else { time_ns + step };
                    let time = if random.chance(20) { time_ns / 1_000_000 * 1_000_000 } else { time_ns };
                    (if nano { time } else { time / 1000 * 1000 }, frame(random, networks, port))
                })
                .collect();
            (port, nano, packets)
        })
        .collect()
}

/// Packets sent by each physical port, punted packets, and the report.
type Expected = (Vec<Vec<(u64, Vec<u8>)>>, Vec<(u64, Vec<u8>)>, Value);

fn expected(networks: &[Network], captures: &[Capture]) -> Expected {
    let mut all: Vec<(u64, usize, &Vec<u8>)> = Vec::new();
    for (port, _, packets) in captures {
        all.extend(packets.iter().map(|(time, bytes)| (*time, *port, bytes)));
    }
    all.sort_by_key(|(time, _, _)| *time);
    let mut model = Model::new(networks.to_vec());
    let mut sent = vec![Vec::new(); 3];
    let mut punted = Vec::new();
    let mut unclaimed: BTreeMap<&str, u64> = BTreeMap::new();
    let mut counts: Vec<(u64, u64, u64, BTreeMap<&str, u64>)> = vec![Default::default(); networks.len()];
    for (time, port, bytes) in all {
        for end in model.frame(port, time, bytes) {
            match end {
                End::Unclaimed(reason) => *unclaimed.entry(reason).or_default() += 1,
                End::Drop(index, reason) => {
                    counts[index].0 += 1;
                    *counts[index].3.entry(reason).or_default() += 1;
                }
                End::Punt(index) => {
                    counts[index].0 += 1;
                    counts[index].2 += 1;
                    punted.push((time, bytes.clone()));
                }
                End::Forward(index, port, bytes) => {
                    counts[index].0 += 1;
                    counts[index].1 += 1;
                    sent[port].push((time, bytes));
                }
            }
        }
    }
    let networks: BTreeMap<&str, Value> = networks
        .iter()
        .zip(counts)
        .map(|(network, (received, forward, punt, drop))| {
            (
                network.name.as_str(),
                json!({"received": received, "forward": forward, "punt": punt, "drop": drop}),
            )
        })
        .collect();
    (sent, punted, json!({"networks": networks, "unclaimed": unclaimed}))
}

/// Runs one experiment and returns the report, on which both agree.
fn experiment(seed: u64) -> Value {
    let mut random = Random(seed);
    let networks = networks(&mut random);
    let captures = captures(&mut random, &networks);
    let dir = Scratch::new();
    let document: String = networks.iter().map(Network::yaml).collect();
    dir.write("all.yaml", &document);
    let mut args: Vec<String> =
        ["run", "-f", "all.yaml", "--out", "out", "-o", "json"].map(str::to_owned).to_vec();
    for (index, (port, nano, packets)) in captures.iter().enumerate() {
        dir.write(&format!("{index}.pcap"), pcap_of(packets, *nano, 1));
        args.extend(["--in".to_owned(), format!("p{port}={index}.pcap")]);
    }
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let done = dir.hueplane_with(&args, "");
    assert_eq!(done.code, 0, "seed {seed}: {}\n{document}", done.stderr);
    let (sent, punted, report) = expected(&networks, &captures);
    assert_eq!(done.json(), report, "seed {seed}\n{document}");
    let nano = captures.iter().any(|(_, nano, _)| *nano);
    assert!(dir.files("out").contains(&"punt.pcap".to_owned()));
    for (port, packets) in sent.iter().enumerate() {
        let name = format!("out/p{port}.pcap");
        if !dir.path(&name).exists() {
            assert!(
                packets.is_empty() && networks.iter().all(|n| n.ports.iter().all(|own| own.port != port))
            );
            continue;
        }
        assert!(dir.packets(&name) == *packets, "seed {seed}: p{port}");
        assert!(std::fs::read(dir.path(&name)).unwrap() == pcap_of(packets, nano, 1), "seed {seed}: p{port}");
    }
    assert!(dir.packets("out/punt.pcap") == punted, "seed {seed}: punt");
    report
}

/// Checks the experiments: every reason of a report occurs, and so do both other verdicts.
#[test]
fn experiments_reach_every_outcome() {
    let mut wanted: Vec<&str> = vec![
        "rate_limited",
        "ethertype",
        "truncated",
        "version",
        "header_length",
        "total_length",
        "checksum",
        "l2_group",
        "martian_source",
        "martian_destination",
        "runt",
        "too_long",
        "no_network",
    ];
    let (mut forward, mut punt) = (0, 0);
    for seed in 0..40 {
        let report = experiment(seed);
        let mut seen = |map: &Value| wanted.retain(|reason| map.get(reason).is_none());
        seen(&report["unclaimed"]);
        for network in report["networks"].as_object().unwrap().values() {
            seen(&network["drop"]);
            forward += network["forward"].as_u64().unwrap();
            punt += network["punt"].as_u64().unwrap();
        }
    }
    assert!(wanted.is_empty(), "never seen: {wanted:?}");
    assert!(forward > 250 && punt > 500, "{forward} forwarded, {punt} punted");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 120, failure_persistence: None, max_shrink_iters: 0, ..ProptestConfig::default() })]

    #[test]
    fn runs_equal_the_model(seed in any::<u64>()) {
        let _ = experiment(seed);
    }
}
