//! Nodes in a row, veth to veth, joined by VXLAN: packets enter a tunnel at the first node, go from tunnel to tunnel in the middle, and
//! leave the last tunnel at the last node. One, two and three nodes, each with a daemon of its own, beside Linux namespaces with
//! `vxlan` devices. Throughput under overload, and one-way latency at a low rate, from which the latency of a hop follows.

use std::net::Ipv4Addr;

use hue_e2e::frame::Mac;
use hue_e2e::lab::text;
use serde_json::json;

use crate::Settings;
use crate::contestant::{self, Contestant, names};
use crate::load::{self, Offer};
use crate::measure::Spread;
use crate::report::{Report, Section, round};
use crate::rounds::{interleave, three};
use crate::wires::{self, GENERATOR, SINK, Wires};

/// Bytes of the frames inside, with FCS.
const LENGTHS: [usize; 2] = [64, 1400];
/// Nodes in a row.
const NODES: [usize; 3] = [1, 2, 3];
/// Packets a second of the low rate.
const LOW: f64 = 10_000.0;
/// The VNI of the tunnel at a side of a node. Each link has its own, because a Linux node has one device for each VNI.
const fn vni(at: usize, side: usize) -> usize {
    7 + at + side
}

/// What joins a node to the next one: the addresses of both outside and inside the tunnel.
struct Link {
    outer: [Ipv4Addr; 2],
    inner: [Ipv4Addr; 2],
}

/// The link from node `at`, counted from 0, to the next.
fn link(at: usize) -> Link {
    let end = |first: u8, end: u8| Ipv4Addr::new(first, 18, at as u8, end); // few nodes
    Link { outer: [end(198, 1), end(198, 2)], inner: [end(10, 1), end(10, 2)] }
}

/// MAC address of a node's port outside (`p0`, `p1`), and of its end of the tunnel by it.
fn macs(at: usize, side: usize) -> [Mac; 2] {
    let of = |kind: usize| [2, 0x72, at as u8, 0, kind as u8, side as u8];
    [of(0), of(1)]
}

/// A side of a node: the way to a host, or to the next node.
enum Side {
    /// Own address, the host's address and its MAC address.
    Host(Ipv4Addr, Ipv4Addr, Mac),
    /// Own addresses and those of the other node, with its MAC addresses, outside and inside.
    Tunnel { own: [Ipv4Addr; 2], other: [Ipv4Addr; 2], macs: [Mac; 2] },
}

fn side(at: usize, side: usize, nodes: usize) -> Side {
    match side {
        0 if at == 0 => Side::Host(wires::left(1, 1), wires::left(1, 2), GENERATOR),
        1 if at + 1 == nodes => Side::Host(wires::right(1, 1), wires::right(1, 2), SINK),
        0 => {
            let Link { outer, inner } = link(at - 1);
            Side::Tunnel { own: [outer[1], inner[1]], other: [outer[0], inner[0]], macs: macs(at - 1, 1) }
        }
        _ => {
            let Link { outer, inner } = link(at);
            Side::Tunnel { own: [outer[0], inner[0]], other: [outer[1], inner[1]], macs: macs(at + 1, 0) }
        }
    }
}

/// The MAC address of a node's port; the generator sends to that of the first node.
fn port_mac(at: usize, side: usize) -> Mac {
    if at == 0 && side == 0 { wires::router(1, 0) } else { macs(at, side)[0] }
}

const NAMES: [&str; 2] = ["left", "right"];
const PORTS: [&str; 2] = ["p0", "p1"];

fn hueplane(nodes: usize) -> Contestant {
    let wires = Wires::row(nodes);
    let daemons = wires.labs().enumerate().map(|(at, lab)| {
        let document = |name: &str, spec: &str| {
            let name = lab.name(name);
            format!(
                "apiVersion: hueplane/v1\nkind: Network\nmetadata: {{name: {name}}}\nspec:\n  plane: {{kind: ipv4}}\n{spec}"
            )
        };
        let neighbour = |port: &str, address: Ipv4Addr, mac: Mac| {
            format!("{{port: {port}, address: {address}, mac: \"{}\"}}", text(mac))
        };
        let (mut ports, mut neighbours, mut documents) = (String::new(), Vec::new(), Vec::new());
        let mut routes = String::new();
        for nth in 0..2 {
            let (name, port, mac) = (NAMES[nth], PORTS[nth], text(port_mac(at, nth)));
            match side(at, nth, nodes) {
                Side::Host(own, other, host) => {
                    ports += &format!(
                        "    - {{name: {name}, port: {port}, mac: \"{mac}\", addresses: [{own}/24]}}\n"
                    );
                    neighbours.push(neighbour(name, other, host));
                }
                Side::Tunnel { own, other, macs: far } => {
                    let (outer, inner) = (own[0], own[1]);
                    documents.push(document(
                        name,
                        &format!(
                            "  ports:\n    - {{name: up, port: {port}, mac: \"{mac}\", addresses: [{outer}/24]}}\n  neighbours: [{}]\n",
                            neighbour("up", other[0], far[0])
                        ),
                    ));
                    ports += &format!(
                        "    - {{name: {name}, tunnel: {{type: vxlan, local: {outer}, remote: {}, vni: {}}}, over: {}, mac: \"{}\", addresses: [{inner}/24]}}\n",
                        other[0],
                        vni(at, nth),
                        lab.name(name),
                        text(macs(at, nth)[1])
                    );
                    neighbours.push(neighbour(name, other[1], far[1]));
                    if nth == 1 {
                        routes = format!("  routes: [{{to: {}/24, via: {}}}]\n", wires::right(1, 0), other[1]);
                    }
                }
            }
        }
        documents.push(document("red", &format!("  ports:\n{ports}  neighbours: [{}]\n{routes}", neighbours.join(", "))));
        contestant::hueplane_at(&wires, lab, "afxdp", documents)
    });
    let daemons = daemons.collect();
    Contestant::row(format!("hueplane, {}", named(nodes)), wires, daemons)
}

fn linux(nodes: usize) -> Contestant {
    let wires = Wires::row(nodes);
    for (at, lab) in wires.labs().enumerate() {
        let mut lines = String::new();
        let neighbour = |address: Ipv4Addr, mac: Mac, device: &str| {
            format!("neighbour replace {address} lladdr {} dev {device} nud permanent\n", text(mac))
        };
        for nth in 0..2 {
            let port = PORTS[nth];
            // The kernel forgets a port's neighbours when its own address changes.
            lines += &format!("link set {port} address {}\n", text(port_mac(at, nth)));
            match side(at, nth, nodes) {
                Side::Host(own, other, host) => {
                    lines += &format!("address add {own}/24 dev {port}\n{}", neighbour(other, host, port));
                }
                Side::Tunnel { own, other, macs: far } => {
                    let device = format!("vx{nth}");
                    lines += &format!(
                        "address add {}/24 dev {port}\n{}link add {device} type vxlan id {} local {} remote {} dstport 4789\n\
                         link set {device} address {} up\naddress add {}/24 dev {device}\n{}",
                        own[0],
                        neighbour(other[0], far[0], port),
                        vni(at, nth),
                        own[0],
                        other[0],
                        text(macs(at, nth)[1]),
                        own[1],
                        neighbour(other[1], far[1], &device)
                    );
                    if nth == 1 {
                        lines += &format!("route add {}/24 via {}\n", wires::right(1, 0), other[1]);
                    }
                }
            }
        }
        contestant::route_at(
            lab.node(),
            &lines,
            &[("ipv4/ip_forward", "1"), ("ipv4/conf/all/rp_filter", "0")],
        );
    }
    contestant::receive_on_forwarder(&wires);
    Contestant::linux_row(format!("Linux, {}", named(nodes)), wires)
}

fn named(nodes: usize) -> String {
    match nodes {
        1 => "1 node, without tunnels".into(),
        nodes => format!("{nodes} nodes"),
    }
}

/// Measures.
pub fn run(settings: &Settings, report: &mut Report) -> Result<(), String> {
    let mut contestants = Vec::new();
    for (name, make) in [("hueplane", hueplane as fn(usize) -> Contestant), ("Linux", linux)] {
        for nodes in NODES {
            let name = format!("{name}, {}", named(nodes));
            if settings.wants(&name) {
                eprintln!("  set up: {name}");
                contestants.push((nodes, make(nodes)));
            }
        }
    }
    let (nodes, contestants): (Vec<usize>, Vec<Contestant>) = contestants.into_iter().unzip();
    for bytes in LENGTHS {
        measure(settings, &nodes, &contestants, bytes, report);
    }
    Ok(())
}

/// Of the contestants of the same kind, how much a figure grows from one node to `at`'s, for each node more.
fn per_hop(nodes: &[usize], contestants: &[Contestant], figures: &[&Spread], at: usize) -> Option<f64> {
    let kind = |contestant: &Contestant| contestant.name.split(',').next().map(str::to_owned);
    let same = |other: &usize| nodes[*other] == 1 && kind(&contestants[*other]) == kind(&contestants[at]);
    let one = (0..contestants.len()).find(same)?;
    let more = nodes[at].checked_sub(1).filter(|more| *more > 0)?;
    Some((figures[at].median() - figures[one].median()) / more as f64)
}

fn measure(
    settings: &Settings,
    nodes: &[usize],
    contestants: &[Contestant],
    bytes: usize,
    report: &mut Report,
) {
    let what = format!("row, {bytes}-byte frames");
    let mut wrong = vec![0; contestants.len()];
    let figures = interleave(&what, &names(contestants), settings.rounds, |i| {
        let full = load::offer(&contestants[i], &Offer::full(bytes, 1, settings.seconds));
        let low = load::offer(&contestants[i], &Offer::steady(bytes, 1, LOW, settings.seconds));
        wrong[i] += full.wrong + low.wrong;
        vec![full.arrived, low.latency_us(0.5), low.latency_us(0.99), low.loss * 100.0]
    });
    let mut section = Section::new(
        format!("Nodes in a row, {bytes}-byte frames"),
        &[
            "contestant",
            "k packets/s median",
            "min",
            "max",
            "us of a core a packet and node",
            "p50 us median",
            "min",
            "max",
            "p50 us a further node",
            "p99 us median",
            "lost % at the low rate",
            "wrong",
        ],
    );
    let p50: Vec<&Spread> = figures.iter().map(|figures| &figures[1]).collect();
    for (i, contestant) in contestants.iter().enumerate() {
        let [rate, latency, p99, loss] = &figures[i][..] else { continue };
        let mut row = vec![json!(contestant.name)];
        row.extend(three(rate, 1e-3, 1));
        row.push(round(1e6 / rate.median().max(1.0) / nodes[i] as f64, 2));
        row.extend(three(latency, 1.0, 1));
        row.push(per_hop(nodes, contestants, &p50, i).map_or(json!(null), |hop| round(hop, 1)));
        row.extend([round(p99.median(), 1), round(loss.median(), 3), json!(wrong[i])]);
        section.row(row);
    }
    section.note(
        "Delivered rate while one core offers as many frames as it can, and one-way latency at 10,000 packets/s, as in live-forwarding. All \
         nodes of a row share the forwarder's core, so two nodes carry at most half of what one does. One node forwards without tunnels; with \
         two, the first puts packets into a tunnel and the second takes them out; the third one, in the middle, does both. The length is that \
         of the frame inside, with FCS; what counts is what the sink got with TTL and checksum right.",
    );
    report.push(section);
}
