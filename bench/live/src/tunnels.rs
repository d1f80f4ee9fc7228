//! Tunnels, veth to veth: into a tunnel, out of one, and from one into another, as in the middle of a row of nodes. VXLAN beside
//! Linux's `vxlan` device and Open vSwitch in user space; IP in IP, which these do not have here; and each contestant's
//! forwarding without tunnels for reference. Throughput under overload and one-way latency; contestants in turn.

use std::net::Ipv4Addr;

use hue_e2e::frame::{self, Ends, Mac};
use hue_e2e::lab::text;
use serde_json::json;

use crate::Settings;
use crate::bpf::{IN_IPIP, IN_VXLAN};
use crate::contestant::{self, Contestant, Kind, names};
use crate::forwarding;
use crate::load::{self, Offer};
use crate::report::{Report, Section, round};
use crate::rounds::{interleave, three};
use crate::wires::{self, GENERATOR, SINK, Wires};

/// Bytes of the frames inside, with FCS.
const LENGTHS: [usize; 2] = [64, 1400];
/// The node's own end of the outer link on each side, and the far end: generator or sink.
const OUTER: [[Ipv4Addr; 2]; 2] = [
    [Ipv4Addr::new(198, 51, 100, 1), Ipv4Addr::new(198, 51, 100, 2)],
    [Ipv4Addr::new(192, 0, 2, 1), Ipv4Addr::new(192, 0, 2, 2)],
];
/// The same inside the tunnels.
const INNER: [[Ipv4Addr; 2]; 2] = [
    [Ipv4Addr::new(10, 8, 0, 1), Ipv4Addr::new(10, 8, 0, 2)],
    [Ipv4Addr::new(10, 8, 1, 1), Ipv4Addr::new(10, 8, 1, 2)],
];

/// A type of tunnel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Type {
    /// Ethernet frames in UDP.
    Vxlan,
    /// IP packets in IP packets.
    Ipip,
}

impl Type {
    /// Bytes before a frame in the tunnel.
    pub fn bytes(self) -> usize {
        match self {
            Self::Vxlan => IN_VXLAN,
            Self::Ipip => IN_IPIP,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Vxlan => "vxlan",
            Self::Ipip => "ipip",
        }
    }

    /// A frame from the generator, in the tunnel that arrives at the node.
    pub fn around(self, inner: &[u8]) -> Vec<u8> {
        let [near, far] = OUTER[0];
        let ends = Ends { macs: [wires::router(1, 0), GENERATOR], addresses: [far, near], ttl: 64 };
        match self {
            Self::Vxlan => {
                let mut payload = vec![8, 0, 0, 0, 0, 0, vni(0), 0];
                payload.extend_from_slice(inner);
                payload[8..14].copy_from_slice(&port_mac(0));
                frame::udp(ends, [50_000, 4789], &payload)
            }
            Self::Ipip => {
                // As UDP, but for the protocol, and the UDP header, which is not there.
                let packet = &inner[14..];
                let mut frame = frame::udp(ends, [0, 0], &packet[8..]);
                frame[34..].copy_from_slice(packet);
                frame[23] = 4;
                frame[24..26].fill(0);
                let checksum = frame::checksum(&frame[14..34]);
                frame[24..26].copy_from_slice(&checksum.to_be_bytes());
                frame
            }
        }
    }
}

/// VNI of the tunnel on a side.
const fn vni(side: usize) -> u8 {
    7 + side as u8
}

/// MAC address of the node's end of a VXLAN tunnel.
fn port_mac(side: u8) -> Mac {
    wires::router(1, 2 + side)
}

/// What a frame passes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Way {
    arrives_in: Option<Type>,
    leaves_in: Option<Type>,
}

impl Way {
    fn of(tunnel: Type) -> [Self; 3] {
        let some = Some(tunnel);
        [(None, some), (some, None), (some, some)]
            .map(|(arrives_in, leaves_in)| Self { arrives_in, leaves_in })
    }

    const PLAIN: Self = Self { arrives_in: None, leaves_in: None };

    fn text(self) -> String {
        match (self.arrives_in, self.leaves_in) {
            (None, None) => "without tunnels".into(),
            (None, Some(out)) => format!("into {}", out.name()),
            (Some(into), None) => format!("out of {}", into.name()),
            (Some(into), Some(out)) => format!("{} to {}", into.name(), out.name()),
        }
    }

    fn wires(self) -> Wires {
        let mut wires = Wires::veth(1);
        (wires.arrives_in, wires.leaves_in) = (self.arrives_in, self.leaves_in);
        wires
    }

    /// The tunnel on a side.
    fn tunnel(self, side: usize) -> Option<Type> {
        [self.arrives_in, self.leaves_in][side]
    }
}

/// The host on a side, and the node's address there, without tunnels.
fn plain_ends(side: usize) -> [Ipv4Addr; 2] {
    let link = [wires::left, wires::right][side];
    [link(1, 1), link(1, 2)]
}

const MACS: [Mac; 2] = [GENERATOR, SINK];
const NAMES: [&str; 2] = ["left", "right"];

fn hueplane(way: Way) -> Contestant {
    let wires = way.wires();
    let document = |name: &str, spec: &str| {
        let name = wires.lab.name(name);
        format!(
            "apiVersion: hueplane/v1\nkind: Network\nmetadata: {{name: {name}}}\nspec:\n  plane: {{kind: ipv4}}\n{spec}"
        )
    };
    let (mut ports, mut neighbours, mut documents) = (String::new(), Vec::new(), Vec::new());
    for side in 0..2 {
        let (port, mac, host) = (wires.ports()[side], text(wires::router(1, side as u8)), text(MACS[side]));
        let neighbour =
            |port: &str, address: Ipv4Addr| format!("{{port: {port}, address: {address}, mac: \"{host}\"}}");
        let name = NAMES[side];
        let Some(tunnel) = way.tunnel(side) else {
            let [own, other] = plain_ends(side);
            ports +=
                &format!("    - {{name: {name}, port: {port}, mac: \"{mac}\", addresses: [{own}/24]}}\n");
            neighbours.push(neighbour(name, other));
            continue;
        };
        let [near, far] = OUTER[side];
        documents.push(document(
            name,
            &format!(
                "  ports:\n    - {{name: up, port: {port}, mac: \"{mac}\", addresses: [{near}/24]}}\n  neighbours: [{}]\n",
                neighbour("up", far)
            ),
        ));
        let [own, other] = INNER[side];
        let of_vxlan = match tunnel {
            Type::Vxlan => {
                neighbours.push(neighbour(name, other));
                (format!(", vni: {}", vni(side)), format!("mac: \"{}\", ", text(port_mac(side as u8))))
            }
            Type::Ipip => (String::new(), String::new()),
        };
        ports += &format!(
            "    - {{name: {name}, tunnel: {{type: {}, local: {near}, remote: {far}{}}}, over: {}, {}addresses: [{own}/30]}}\n",
            tunnel.name(),
            of_vxlan.0,
            wires.lab.name(name),
            of_vxlan.1
        );
    }
    let mut spec = format!("  ports:\n{ports}  neighbours: [{}]\n", neighbours.join(", "));
    if way.leaves_in.is_some() {
        spec += &format!("  routes: [{{to: {}/24, via: {}}}]\n", wires::right(1, 0), INNER[1][1]);
    }
    documents.push(document("red", &spec));
    let daemon = contestant::hueplane_with(&wires, "afxdp", documents);
    Contestant::running(format!("hueplane, {}", way.text()), wires, daemon)
}

fn linux(way: Way) -> Contestant {
    let wires = way.wires();
    let mut lines = String::new();
    for (side, port) in wires.ports().iter().enumerate() {
        let host = text(MACS[side]);
        let [own, other] = if way.tunnel(side).is_some() { OUTER[side] } else { plain_ends(side) };
        lines += &format!(
            "address add {own}/24 dev {port}\nneighbour replace {other} lladdr {host} dev {port} nud permanent\n"
        );
        if way.tunnel(side).is_some() {
            let ([near, far], [own, other]) = (OUTER[side], INNER[side]);
            lines += &format!(
                "link add vx{side} type vxlan id {} local {near} remote {far} dstport 4789\n\
                 link set vx{side} address {} up\naddress add {own}/30 dev vx{side}\n\
                 neighbour replace {other} lladdr {host} dev vx{side} nud permanent\n",
                vni(side),
                text(port_mac(side as u8))
            );
        }
    }
    if way.leaves_in.is_some() {
        lines += &format!("route add {}/24 via {}\n", wires::right(1, 0), INNER[1][1]);
    }
    contestant::become_router(&wires, &lines, &[("ipv4/ip_forward", "1"), ("ipv4/conf/all/rp_filter", "0")]);
    contestant::receive_on_forwarder(&wires);
    Contestant::other(format!("Linux, {}", way.text()), wires, Kind::Linux)
}

/// Open vSwitch in user space, with flows that rewrite as a router does; `None` when it is not installed or lacks a type.
fn open_vswitch(way: Way) -> Option<Contestant> {
    let wires = way.wires();
    let node = wires.lab.node();
    let ovs = contestant::ovs_bridge(&wires)?;
    for (side, port) in wires.ports().iter().enumerate() {
        let request = format!("ofport_request={}", side + 1);
        if way.tunnel(side).is_none() {
            contestant::ovs_port(&wires, &ovs, "br0", port, &["type=afxdp", &request])?;
            continue;
        }
        let ([near, far], bridge) = (OUTER[side], format!("wan{side}"));
        let mac = wires::router(1, side as u8);
        ovs.reach_tunnels_by(node, &bridge, (port, "afxdp"), (mac, near));
        let line = ["tnl/neigh/set", &bridge, &far.to_string(), &text(MACS[side])];
        let _ = ovs.appctl(node, &line).expect_ok();
        let settings = [
            "type=vxlan".to_owned(),
            format!("options:remote_ip={far}"),
            format!("options:local_ip={near}"),
            format!("options:key={}", vni(side)),
            request,
        ];
        contestant::ovs_port(
            &wires,
            &ovs,
            "br0",
            &format!("vx{side}"),
            &settings.each_ref().map(String::as_str),
        )?;
    }
    let rewrites = format!("mod_dl_src:{},mod_dl_dst:{}", text(wires::router(1, 1)), text(SINK));
    let flow = format!("in_port=1,ip,nw_dst={}/24,actions={rewrites},dec_ttl,output:2\n", wires::right(1, 0));
    let file = ovs.file("flows");
    hue_e2e::daemon::write(file.as_ref(), &flow);
    ovs.flows(node, "br0", "del-flows", &[]);
    ovs.flows(node, "br0", "add-flows", &[&file]);
    let name = format!("Open vSwitch user space, {}", way.text());
    Some(Contestant::other(name, wires, Kind::Ovs(ovs)))
}

/// Measures.
pub fn run(settings: &Settings, report: &mut Report) -> Result<(), String> {
    let mut contestants: Vec<Contestant> = Vec::new();
    let mut add = |name: &str, way: Way, make: &dyn Fn(Way) -> Option<Contestant>| {
        let name = format!("{name}, {}", way.text());
        if settings.wants(&name) {
            eprintln!("  set up: {name}");
            contestants.extend(make(way));
        }
    };
    for way in [&[Way::PLAIN][..], &Way::of(Type::Vxlan), &Way::of(Type::Ipip)].concat() {
        add("hueplane", way, &|way| Some(hueplane(way)));
    }
    for way in [&[Way::PLAIN][..], &Way::of(Type::Vxlan)].concat() {
        add("Linux", way, &|way| Some(linux(way)));
        add("Open vSwitch user space", way, &open_vswitch);
    }
    contestants.iter().for_each(|contestant| contestant.run(false));
    for bytes in LENGTHS {
        let rates = throughput(settings, &contestants, bytes, report);
        forwarding::latencies(settings, &contestants, bytes, report, &rates);
    }
    Ok(())
}

/// The same forwarder without tunnels.
fn plain_of(contestants: &[Contestant], at: usize) -> Option<usize> {
    let kind = |contestant: &Contestant| std::mem::discriminant(&contestant.kind);
    contestants.iter().position(|other| {
        let wires = &other.wires;
        wires.arrives_in.is_none() && wires.leaves_in.is_none() && kind(other) == kind(&contestants[at])
    })
}

fn throughput(
    settings: &Settings,
    contestants: &[Contestant],
    bytes: usize,
    report: &mut Report,
) -> Vec<f64> {
    let what = format!("throughput, {bytes}-byte frames");
    let mut wrong = vec![0; contestants.len()];
    let figures = interleave(&what, &names(contestants), settings.rounds, |i| {
        let contestant = &contestants[i];
        let outcome = contestant.alone(|| load::offer(contestant, &Offer::full(bytes, 1, settings.seconds)));
        wrong[i] += outcome.wrong;
        vec![outcome.arrived, outcome.offered]
    });
    let mut section = Section::new(
        format!("Throughput, {bytes}-byte frames"),
        &["contestant", "k packets/s median", "min", "max", "of it without tunnels", "offered k/s", "wrong"],
    );
    let median = |at: usize| figures[at][0].median();
    for (i, contestant) in contestants.iter().enumerate() {
        let mut row = vec![json!(contestant.name)];
        row.extend(three(&figures[i][0], 1e-3, 1));
        let plain = plain_of(contestants, i);
        row.push(plain.map_or(json!(null), |plain| round(median(i) / median(plain).max(1.0), 2)));
        row.extend([round(figures[i][1].median() / 1e3, 1), json!(wrong[i])]);
        section.row(row);
    }
    section.note(
        "Delivered rate while one core offers as many frames as it can, measured as in live-forwarding. The length is that of the \
         frame inside, with FCS; what counts is what the sink got with the inner TTL and checksum right. VXLAN adds 50 bytes, IP in \
         IP 6 (20, without the inner Ethernet header). \"vxlan to vxlan\" is a node in the middle of a row: packets come by one tunnel and \
         leave by another. hueplane's packets pass the planes of the tunnelled network and of each carrier. Open vSwitch has ports \
         of type afxdp, and flows with the rewrites of a router.",
    );
    report.push(section);
    (0..contestants.len()).map(median).collect()
}
