//! Networks and frames of the golden cases. The software engine's own tests check their results; here both sides must
//! agree.

use std::fs;
use std::path::Path;

use hue_demux::{Match, PortId, Row};
use hue_planes::ipv4::Adjacency;
use hue_planes::{Kind, Rate, RateLimit, Settings, extract, l2, mpls, rofl, splice};
use hue_substrate::{Entries, Program, VirtualPort, flat};
use hue_tables::slice::SlicedPrefix;
use hue_tables::{Key, NextHop, Pattern, Prefix, Vid};
use serde::Deserialize;

use crate::world::Frame;
use crate::world10;

/// A file of golden cases.
pub struct Golden {
    /// Its name.
    pub name: String,
    /// Its networks.
    pub programs: Vec<Program>,
    /// Its frames.
    pub frames: Vec<Frame>,
}

#[derive(Deserialize)]
struct File {
    network: Vec<Network>,
    frame: Vec<Line>,
}

#[derive(Deserialize)]
struct Network {
    vid: u16,
    name: String,
    /// That of the folder, unless the network has its own.
    kind: Option<String>,
    ports: Vec<Port>,
    #[serde(default)]
    select: Vec<Select>,
    next_hops: Vec<Hop>,
    routes: Vec<(String, u16)>,
    rate_limit: Option<Limit>,
    /// Of kind `l2`.
    storm_limit: Option<Limit>,
    /// Of kind `l2`.
    #[serde(default)]
    sticky: bool,
    /// Of kind `extract`: offset and mask of each byte.
    key: Option<Vec<(u8, u8)>>,
    /// Of kind `rofl`.
    label_bits: Option<u8>,
    /// Of kind `rofl`.
    pointers_max: Option<u16>,
    /// Of kind `rofl`.
    pointer_seconds: Option<u32>,
    /// Of kind `splice`.
    slices: Option<u8>,
    /// Of kind `splice`.
    #[serde(default)]
    bits: splice::Bits,
    /// Of kind `mpls`.
    ttl: Option<mpls::Ttl>,
    #[serde(default)]
    gated: bool,
}

#[derive(Deserialize)]
struct Port {
    name: String,
    port: u8,
    mac: String,
    mtu: u16,
}

#[derive(Deserialize)]
struct Select {
    vport: u16,
    inner: Option<String>,
    port: Option<u8>,
    all: Option<u8>,
}

#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
enum Hop {
    Local,
    Drop,
    Glean { port: u8 },
    Port { port: u8, mtu: u16, dst: Option<String>, src: Option<String> },
    Forward { port: u8, src: String, dst: String, mtu: u16 },
    Labels { labels: Vec<u32>, then: u16 },
}

#[derive(Deserialize)]
struct Limit {
    packets: Option<Numbers>,
    bits: Option<Numbers>,
}

#[derive(Deserialize)]
struct Numbers {
    per_second: u64,
    burst: u64,
}

#[derive(Deserialize)]
struct Line {
    port: u8,
    #[serde(default)]
    time_ns: u64,
    #[serde(rename = "in")]
    bytes: String,
    #[serde(default)]
    zeros: usize,
}

/// The golden cases of these kinds, `spec/vectors/KIND`, by file.
#[must_use]
pub fn golden(kinds: &[Kind]) -> Vec<Golden> {
    kinds.iter().flat_map(|kind| golden_of(*kind)).collect()
}

/// The same for cards: networks that compare bits or labels have whole ports, so several need more than a card has. Those with label
/// stacks have only the entries that a card has.
#[must_use]
pub fn golden_for_cards(kinds: &[Kind]) -> Vec<Golden> {
    let is_whole = |kind| matches!(kind, Kind::Extract | Kind::Rofl | Kind::Mpls);
    let has_whole_ports = |case: &Golden| case.programs.iter().any(|one| is_whole(one.kind()));
    let split = |case| if has_whole_ports(&case) { apart(case).collect() } else { vec![case] };
    let cases = golden(kinds).into_iter().flat_map(split).map(as_on_card);
    cases.filter(|case: &Golden| case.programs.iter().all(is_for_cards)).collect()
}

/// The same case without what a card cannot do: entries of labels that push or pop.
pub(crate) fn as_on_card(mut case: Golden) -> Golden {
    let labels = case.programs.iter_mut().filter(|one| one.kind() == Kind::Mpls);
    labels.for_each(|program| *program = world10::swapping(program));
    case
}

/// Whether a card decides the packets of a network, if its image has the kind: packets there teach no pointers.
#[must_use]
pub fn is_for_cards(program: &Program) -> bool {
    !flat::caches(&program.settings)
}

fn golden_of(kind: Kind) -> Vec<Golden> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../spec/vectors").join(kind.name());
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    files.sort();
    let one = |path: &std::path::PathBuf| {
        let file: File = toml::from_str(&fs::read_to_string(path).unwrap()).unwrap();
        Golden {
            name: format!("{} {}", kind.name(), path.file_name().unwrap().to_string_lossy()),
            programs: file.network.iter().map(|network| program(network, kind)).collect(),
            frames: file.frame.iter().map(frame).collect(),
        }
    };
    let cases = files.iter().map(one);
    match Settings::of(kind).learning() {
        None => cases.collect(),
        Some(_) => cases.flat_map(apart).collect(),
    }
}

/// A case of each network. Switches have whole ports, so several need more than a card has.
pub(crate) fn apart(case: Golden) -> impl Iterator<Item = Golden> {
    let Golden { name, programs, frames } = case;
    programs.into_iter().map(move |program| {
        let ports: Vec<PortId> = program.ports.iter().map(|port| port.port).collect();
        let at = |port: PortId| ports.iter().position(|other| *other == port).map(|at| PortId::new(at as u8));
        let own = frames.iter().filter_map(|frame| Some(Frame { port: at(frame.port)?, ..frame.clone() }));
        Golden {
            name: format!("{name}, {}", program.name),
            programs: vec![program.renumbered(|port| at(port).unwrap_or(port))],
            frames: own.collect(),
        }
    })
}

fn frame(line: &Line) -> Frame {
    let digits: Vec<u8> = line.bytes.bytes().map(|c| (c as char).to_digit(16).unwrap() as u8).collect();
    let mut bytes: Vec<u8> = digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect();
    bytes.resize(bytes.len() + line.zeros, 0);
    Frame { port: PortId::new(line.port), time_ns: line.time_ns, bytes }
}

fn program(network: &Network, kind: Kind) -> Program {
    let named = |name: &String| Kind::ALL.into_iter().find(|kind| kind.name() == name).unwrap();
    let kind = network.kind.as_ref().map_or(kind, named);
    let vid = Vid::new(network.vid).unwrap();
    let ports: Vec<VirtualPort> = network
        .ports
        .iter()
        .map(|port| VirtualPort {
            name: port.name.clone(),
            port: PortId::new(port.port),
            mac: port.mac.parse().unwrap(),
            mtu_bytes: port.mtu,
            tunnel: None,
        })
        .collect();
    let rows = if network.select.is_empty() {
        let row = |(port, vport): (&VirtualPort, u16)| Row {
            vid,
            vport,
            select: Match::Mac { port: port.port, mac: port.mac },
        };
        ports.iter().zip(0u16..).map(row).collect()
    } else {
        network.select.iter().map(|select| row(vid, select)).collect()
    };
    let hop = |hop: &Hop| match hop {
        Hop::Local => Adjacency::local(),
        Hop::Drop => Adjacency::drop(),
        Hop::Port { port, mtu, dst, src } => {
            let mac = |mac: &Option<String>| mac.as_deref().map(|mac| mac.parse().unwrap());
            Adjacency::out_with(PortId::new(*port), *mtu, mac(dst), mac(src))
        }
        Hop::Labels { labels, then } => Adjacency::labels(labels, *then).unwrap(),
        Hop::Glean { port } => Adjacency::glean(PortId::new(*port)),
        Hop::Forward { port, src, dst, mtu } => {
            Adjacency::forward(PortId::new(*port), src.parse().unwrap(), dst.parse().unwrap(), *mtu)
        }
    };
    let rate = |numbers: &Option<Numbers>| {
        numbers.as_ref().map(|numbers| Rate::new(numbers.per_second, numbers.burst).unwrap())
    };
    let limit = |limit: &Limit| RateLimit { packets: rate(&limit.packets), bits: rate(&limit.bits) };
    Program {
        vid,
        name: network.name.clone(),
        settings: match Settings::of(kind) {
            Settings::L2(default) => Settings::L2(l2::Settings {
                sticky: network.sticky,
                storm_limit: network.storm_limit.as_ref().map(limit),
                ..default
            }),
            Settings::Extract(default) => Settings::Extract(network.key.as_ref().map_or(default, |key| {
                let lane = |(offset, mask): &(u8, u8)| extract::Lane { offset: *offset, mask: *mask };
                extract::Settings::new(&key.iter().map(lane).collect::<Vec<_>>()).unwrap()
            })),
            Settings::Rofl(default) => Settings::Rofl(
                rofl::Settings::new(
                    network.label_bits.unwrap_or(default.label_bits()),
                    network.pointers_max.unwrap_or(default.pointers_max()),
                    network.pointer_seconds.unwrap_or(default.pointer_seconds()),
                )
                .unwrap(),
            ),
            Settings::Splice(default) => Settings::Splice(splice::Settings {
                slices: network.slices.unwrap_or(default.slices),
                bits: network.bits,
                ..default
            }),
            Settings::Mpls(_) => Settings::Mpls(mpls::Settings { ttl: network.ttl.unwrap_or_default() }),
            other => other,
        },
        ports,
        rows,
        next_hops: network.next_hops.iter().map(hop).collect(),
        groups: Vec::new(),
        entries: entries(network, kind),
        rate_limit: network.rate_limit.as_ref().map(limit),
        weight: 1,
        policies: None,
        gated: network.gated,
    }
}

fn entries(network: &Network, kind: Kind) -> Entries {
    // Those of one family.
    fn routes<K: Key>(network: &Network) -> Vec<(Prefix<K>, NextHop)> {
        let of_family = |prefix: &str| prefix.contains(':') == (K::BITS == 128);
        let routes = network.routes.iter().filter(|(prefix, _)| of_family(prefix));
        routes.map(|(prefix, hop)| (prefix.parse().unwrap(), NextHop::new(*hop).unwrap())).collect()
    }
    match Entries::none(kind) {
        Entries::Lpm32(_) => routes::<u32>(network).into(),
        Entries::Lpm128(_) => routes::<u128>(network).into(),
        Entries::Exact(_) => {
            let fixed = |(mac, hop): &(String, u16)| (mac.parse().unwrap(), NextHop::new(*hop).unwrap());
            Entries::Exact(network.routes.iter().map(fixed).collect())
        }
        Entries::Ternary(_) => {
            let bits = |digits: &str| u128::from_str_radix(digits, 16).unwrap() << (128 - 4 * digits.len());
            let pattern = |(text, hop): &(String, u16)| {
                let (value, mask) = text.split_once('/').unwrap();
                (Pattern::new(bits(value), bits(mask)), NextHop::new(*hop).unwrap())
            };
            Entries::Ternary(network.routes.iter().map(pattern).collect())
        }
        Entries::Nearest(_) => {
            let label = |(digits, hop): &(String, u16)| {
                let label = u128::from_str_radix(digits, 16).unwrap() << (128 - 4 * digits.len());
                (label, NextHop::new(*hop).unwrap())
            };
            Entries::Nearest(network.routes.iter().map(label).collect())
        }
        Entries::Dual(..) => Entries::Dual(routes::<u32>(network), routes::<u128>(network)),
        Entries::Sliced(_) => {
            let route = |(text, hop): &(String, u16)| {
                let (prefix, slice) = text.split_once(" slice ").unwrap();
                let one = SlicedPrefix { slice: slice.parse().unwrap(), prefix: prefix.parse().unwrap() };
                (one.wide(), NextHop::new(*hop).unwrap())
            };
            Entries::Sliced(network.routes.iter().map(route).collect())
        }
        Entries::None => Entries::None,
    }
}

fn row(vid: Vid, select: &Select) -> Row {
    let claim = match (&select.inner, select.all) {
        (Some(prefix), None) => {
            Match::Inner { port: select.port.map(PortId::new), prefix: prefix.parse().unwrap() }
        }
        (None, Some(port)) => Match::Port(PortId::new(port)),
        _ => panic!("select: expected inner or all"),
    };
    Row { vid, vport: select.vport, select: claim }
}
