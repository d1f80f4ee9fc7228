//! The golden cases of every kind, `spec/vectors/KIND`, on the software substrate.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use hue_demux::{Match, PortId, Row};
use hue_planes::{
    Adjacency, Kind, Rate, RateLimit, Reason, Settings, Unclaimed, Verdict, extract, mpls, rofl, splice,
};
use hue_soft::{Batch, Fate, NetworkTrace, Soft, Trace};
use hue_substrate::{Entries, Program, Substrate, VirtualPort};
use hue_tables::slice::SlicedPrefix;
use hue_tables::{Key, Limits, NextHop, Pattern, Prefix, Prefix6, Vid};
use serde::Deserialize;

type Error = Box<dyn std::error::Error>;
type Tally = BTreeMap<String, u64>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    network: Vec<Network>,
    frame: Vec<Frame>,
    #[serde(default)]
    counters: BTreeMap<String, Tally>,
    #[serde(default)]
    unclaimed: Tally,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
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
#[serde(deny_unknown_fields)]
struct Port {
    name: String,
    port: u8,
    mac: String,
    mtu: u16,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Select {
    vport: u16,
    inner: Option<String>,
    port: Option<u8>,
    all: Option<u8>,
}

#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
enum Hop {
    Local,
    Drop,
    Glean { port: u8 },
    Forward { port: u8, src: String, dst: String, mtu: u16 },
    Port { port: u8, mtu: u16, dst: Option<String>, src: Option<String> },
    Labels { labels: Vec<u32>, then: u16 },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Limit {
    packets: Option<Numbers>,
    bits: Option<Numbers>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Numbers {
    per_second: u64,
    burst: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Frame {
    doc: String,
    port: u8,
    #[serde(default)]
    time_ns: u64,
    #[serde(rename = "in")]
    bytes: String,
    #[serde(default)]
    zeros: usize,
    #[serde(default)]
    expect: Vec<Expect>,
    unclaimed: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Expect {
    network: String,
    vport: u16,
    outcome: String,
    egress: Option<u8>,
    out: Option<String>,
}

/// The result of one frame in one network; without a network for a frame that belongs to none.
#[derive(PartialEq, Debug)]
struct Result_ {
    network: Option<String>,
    vport: u16,
    reason: String,
    egress: Option<u8>,
    bytes: Vec<u8>,
}

fn hex(text: &str, zeros: usize) -> Result<Vec<u8>, Error> {
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if !rest.is_empty() {
        return Err("an odd number of hex digits".into());
    }
    let byte = |pair: &[u8; 2]| Ok(u8::from_str_radix(str::from_utf8(pair)?, 16)?);
    let mut bytes = pairs.iter().map(byte).collect::<Result<Vec<u8>, Error>>()?;
    bytes.resize(bytes.len() + zeros, 0);
    Ok(bytes)
}

/// The kind of this name.
fn kind_of(name: &str) -> Result<Kind, Error> {
    Ok(Kind::ALL.into_iter().find(|kind| kind.name() == name).ok_or("kind")?)
}

/// A network's program.
fn program(network: &Network, kind: Kind) -> Result<Program, Error> {
    let kind = network.kind.as_deref().map_or(Ok(kind), kind_of)?;
    let vid = Vid::new(network.vid).ok_or("network id")?;
    let ports = network.ports.iter().map(|port| {
        let (name, mac) = (port.name.clone(), port.mac.parse()?);
        Ok(VirtualPort { name, port: PortId::new(port.port), mac, mtu_bytes: port.mtu, tunnel: None })
    });
    let ports = ports.collect::<Result<Vec<_>, Error>>()?;
    let by_mac = ports
        .iter()
        .zip(0u16..)
        .map(|(port, vport)| Ok(Row { vid, vport, select: Match::Mac { port: port.port, mac: port.mac } }));
    let by_select = network.select.iter().map(|row| {
        let select = match (&row.inner, row.all) {
            (Some(prefix), None) => Match::Inner { port: row.port.map(PortId::new), prefix: prefix.parse()? },
            (None, Some(port)) => Match::Port(PortId::new(port)),
            _ => return Err("select: expected inner or all".into()),
        };
        Ok(Row { vid, vport: row.vport, select })
    });
    let rows: Result<Vec<_>, Error> =
        if network.select.is_empty() { by_mac.collect() } else { by_select.collect() };
    let next_hops = network.next_hops.iter().map(|hop| {
        Ok(match hop {
            Hop::Local => Adjacency::local(),
            Hop::Drop => Adjacency::drop(),
            Hop::Port { port, mtu, dst, src } => {
                let mac = |mac: &Option<String>| mac.as_deref().map(str::parse).transpose();
                Adjacency::out_with(PortId::new(*port), *mtu, mac(dst)?, mac(src)?)
            }
            Hop::Labels { labels, then } => Adjacency::labels(labels, *then).ok_or("labels")?,
            Hop::Glean { port } => Adjacency::glean(PortId::new(*port)),
            Hop::Forward { port, src, dst, mtu } => {
                Adjacency::forward(PortId::new(*port), src.parse()?, dst.parse()?, *mtu)
            }
        })
    });
    let entries = match Entries::none(kind) {
        Entries::Lpm32(_) => Entries::Lpm32(routes(&network.routes)?),
        Entries::Lpm128(_) => Entries::Lpm128(routes(&network.routes)?),
        Entries::Dual(..) => {
            let (narrow, wide): (Vec<_>, Vec<_>) =
                network.routes.iter().cloned().partition(|(prefix, _)| !prefix.contains(':'));
            Entries::Dual(routes(&narrow)?, routes(&wide)?)
        }
        Entries::Exact(_) => Entries::Exact(macs(network)?),
        Entries::Ternary(_) => Entries::Ternary(patterns(network)?),
        Entries::Nearest(_) => Entries::Nearest(labels(network)?),
        Entries::Sliced(_) => Entries::Sliced(sliced(&network.routes)?),
        Entries::None => Entries::None,
    };
    let rate = |numbers: &Option<Numbers>| {
        numbers.as_ref().map(|numbers| Rate::new(numbers.per_second, numbers.burst)).transpose()
    };
    let limit = |limit: &Option<Limit>| -> Result<_, Error> {
        let limit = limit.as_ref();
        limit
            .map(|limit| Ok(RateLimit { packets: rate(&limit.packets)?, bits: rate(&limit.bits)? }))
            .transpose()
    };
    let rate_limit = limit(&network.rate_limit)?;
    let settings = match Settings::of(kind) {
        Settings::L2(default) => Settings::L2(hue_planes::l2::Settings {
            sticky: network.sticky,
            storm_limit: limit(&network.storm_limit)?,
            ..default
        }),
        Settings::Extract(default) => Settings::Extract(match &network.key {
            Some(key) => {
                let lane = |(offset, mask): &(u8, u8)| extract::Lane { offset: *offset, mask: *mask };
                extract::Settings::new(&key.iter().map(lane).collect::<Vec<_>>())?
            }
            None => default,
        }),
        Settings::Rofl(default) => Settings::Rofl(rofl::Settings::new(
            network.label_bits.unwrap_or(default.label_bits()),
            network.pointers_max.unwrap_or(default.pointers_max()),
            network.pointer_seconds.unwrap_or(default.pointer_seconds()),
        )?),
        Settings::Splice(default) => Settings::Splice(splice::Settings {
            slices: network.slices.unwrap_or(default.slices),
            bits: network.bits,
            ..default
        }),
        Settings::Mpls(_) => Settings::Mpls(mpls::Settings { ttl: network.ttl.unwrap_or_default() }),
        other => other,
    };
    Ok(Program {
        vid,
        name: network.name.clone(),
        settings,
        ports,
        rows: rows?,
        next_hops: next_hops.collect::<Result<_, Error>>()?,
        groups: Vec::new(),
        entries,
        rate_limit,
        weight: 1,
        policies: None,
        gated: network.gated,
    })
}

/// The static MAC addresses of a network.
fn macs(network: &Network) -> Result<Vec<(hue_wire::Mac, NextHop)>, Error> {
    let row = |(mac, hop): &(String, u16)| -> Result<_, Error> {
        Ok((mac.parse()?, NextHop::new(*hop).ok_or("next hop")?))
    };
    network.routes.iter().map(row).collect()
}

/// The patterns of a network: value and mask, in digits from the highest on.
fn patterns(network: &Network) -> Result<Vec<(Pattern, NextHop)>, Error> {
    let bits = |digits: &str| -> Result<u128, Error> {
        Ok(u128::from_str_radix(digits, 16)? << (128 - 4 * digits.len()))
    };
    let row = |(text, hop): &(String, u16)| -> Result<_, Error> {
        let (value, mask) = text.split_once('/').ok_or("an entry without a mask")?;
        Ok((Pattern::new(bits(value)?, bits(mask)?), NextHop::new(*hop).ok_or("next hop")?))
    };
    network.routes.iter().map(row).collect()
}

/// The labels of a network: digits from the highest on.
fn labels(network: &Network) -> Result<Vec<(u128, NextHop)>, Error> {
    let row = |(digits, hop): &(String, u16)| -> Result<_, Error> {
        let label = u128::from_str_radix(digits, 16)? << (128 - 4 * digits.len());
        Ok((label, NextHop::new(*hop).ok_or("next hop")?))
    };
    network.routes.iter().map(row).collect()
}

/// The routes of slices: each prefix with the number of its slice.
fn sliced(routes: &[(String, u16)]) -> Result<Vec<(Prefix6, NextHop)>, Error> {
    let route = |(text, hop): &(String, u16)| -> Result<_, Error> {
        let (prefix, slice) = text.split_once(" slice ").ok_or("a route without a slice")?;
        let one = SlicedPrefix { slice: slice.parse()?, prefix: prefix.parse()? };
        Ok((one.wide(), NextHop::new(*hop).ok_or("next hop")?))
    };
    routes.iter().map(route).collect()
}

/// The routes of a network whose keys are of this width.
fn routes<K: Key>(routes: &[(String, u16)]) -> Result<Vec<(Prefix<K>, NextHop)>, Error> {
    let route = |(prefix, hop): &(String, u16)| -> Result<_, Error> {
        Ok((prefix.parse::<Prefix<K>>()?, NextHop::new(*hop).ok_or("next hop")?))
    };
    routes.iter().map(route).collect()
}

fn expected(frame: &Frame) -> Result<Vec<Result_>, Error> {
    let input = hex(&frame.bytes, frame.zeros)?;
    if let Some(reason) = &frame.unclaimed {
        let reason = reason.clone();
        return Ok(vec![Result_ { network: None, vport: 0, reason, egress: None, bytes: input }]);
    }
    let one = |expect: &Expect| {
        Ok(Result_ {
            network: Some(expect.network.clone()),
            vport: expect.vport,
            reason: expect.outcome.clone(),
            egress: expect.egress,
            bytes: match &expect.out {
                Some(out) => hex(out, frame.zeros)?,
                None => input.clone(),
            },
        })
    };
    frame.expect.iter().map(one).collect()
}

/// What a trace says happens to a frame.
fn explained(trace: &Trace) -> Vec<Result_> {
    let one = |network: &NetworkTrace| Result_ {
        network: Some(network.name.clone()),
        vport: network.vport,
        reason: network.outcome.name().to_owned(),
        egress: network.egress.map(PortId::get),
        bytes: network.bytes.clone(),
    };
    trace.networks.iter().map(one).collect()
}

/// Runs the frames of a file of a kind; the first difference is an error. Also compares them with what `explain` says.
fn drive(text: &str, kind: Kind) -> Result<usize, Error> {
    let case: Case = toml::from_str(text)?;
    let programs = case.network.iter().map(|one| program(one, kind)).collect::<Result<Vec<_>, Error>>()?;
    let names: BTreeMap<Vid, &str> = programs.iter().map(|one| (one.vid, one.name.as_str())).collect();
    let mut soft = Soft::new(Limits::default())?;
    soft.load(&programs)?;
    let mut batch = Batch::new();
    let mut traces = Vec::new();
    for frame in &case.frame {
        let (port, bytes) = (PortId::new(frame.port), hex(&frame.bytes, frame.zeros)?);
        traces.push(soft.explain(port, frame.time_ns, &bytes));
        batch.push(port, frame.time_ns, &bytes);
    }
    let mut found: Vec<Vec<Result_>> = case.frame.iter().map(|_| Vec::new()).collect();
    soft.run(&mut batch, |output| {
        let (network, vport, reason, egress) = match output.fate {
            Fate::Unclaimed(reason) => (None, 0, reason.name(), None),
            Fate::Network { vid, vport, outcome, egress } => {
                let egress = (outcome.verdict() == Verdict::Forward).then_some(egress.get());
                (Some(names[&vid].to_owned()), vport, outcome.name(), egress)
            }
            fate => panic!("{fate:?}"),
        };
        let bytes = output.bytes.to_vec();
        found[output.frame].push(Result_ { network, vport, reason: reason.to_owned(), egress, bytes });
    });
    for ((frame, found), trace) in case.frame.iter().zip(found).zip(traces) {
        let expected = expected(frame)?;
        let explained = explained(&trace);
        // Traces are made before all frames, so their meters are full, and nothing is learnt yet.
        let metered = case.network.iter().any(|one| one.rate_limit.is_some())
            || programs.iter().any(|program| {
                let caches = program.settings.caching().is_some_and(|caching| caching.pointers_max > 0);
                caches || program.settings.learning().is_some()
            });
        if !metered && !trace.networks.is_empty() && explained != expected {
            return Err(format!("{}: expected {expected:?}, explained {explained:?}", frame.doc).into());
        }
        if expected != found {
            return Err(format!("{}: expected {expected:?}, found {found:?}", frame.doc).into());
        }
    }
    for program in &programs {
        let counters = soft.counters(program.vid).ok_or("counters")?;
        let mut found: Tally =
            counters.iter().map(|(outcome, count)| (outcome.name().to_owned(), count)).collect();
        found.insert("received".to_owned(), counters.received());
        compare(&program.name, case.counters.get(&program.name), found)?;
    }
    let found = soft.unclaimed().iter().map(|(reason, count)| (reason.name().to_owned(), count)).collect();
    compare("unclaimed", Some(&case.unclaimed), found)?;
    Ok(case.frame.len())
}

fn compare(name: &str, expected: Option<&Tally>, mut found: Tally) -> Result<(), Error> {
    found.retain(|_, count| *count > 0);
    if expected.unwrap_or(&Tally::new()) != &found {
        return Err(format!("counters of {name}: expected {expected:?}, found {found:?}").into());
    }
    Ok(())
}

fn folder(kind: Kind) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../spec/vectors")).join(kind.name())
}

fn files(kind: Kind) -> Vec<PathBuf> {
    let mut files: Vec<_> = fs::read_dir(folder(kind)).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    files.sort();
    files
}

#[test]
fn every_file_holds() {
    for kind in Kind::ALL {
        let files = files(kind);
        assert!(!files.is_empty());
        for file in files {
            let text = fs::read_to_string(&file).unwrap();
            let frames = drive(&text, kind).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
            assert!(frames > 0, "{} has no frames", file.display());
        }
    }
}

#[test]
fn every_outcome_and_reason_has_a_case() {
    let text =
        |kind| -> String { files(kind).iter().map(|file| fs::read_to_string(file).unwrap()).collect() };
    for kind in Kind::ALL {
        let text = text(kind);
        for outcome in Reason::all(kind) {
            assert!(text.contains(&format!("outcome = \"{}\"", outcome.name())), "{outcome:?}");
        }
        for reason in Unclaimed::ALL {
            assert!(text.contains(&format!("unclaimed = \"{}\"", reason.name())), "{}", reason.name());
        }
    }
}

/// The test driver must detect a wrong outcome, a wrong byte, a wrong port and a wrong counter.
#[test]
fn planted_errors_are_found() {
    for (kind, file, limit, other, out) in [
        (Kind::Ipv4, "next_hop", "ttl", "options", "020000000a02"),
        (Kind::Ipv6, "next_hop", "hop_limit", "options", "020000000a02"),
        (Kind::Extract, "extract", "drop_entry", "no_entry", "02aa00000001"),
        (Kind::Rofl, "rofl", "for_us", "link", "02bb00000001"),
        (Kind::Mpls, "mpls", "drop_entry", "no_entry", "02cc00000001"),
    ] {
        let text = fs::read_to_string(folder(kind).join(format!("{file}.toml"))).unwrap();
        let (wrong, out) = (format!("outcome = \"{other}\""), format!("out = \"{out}"));
        let wrong_out = format!("out = \"ff{}", &out[9..]);
        let outcome = format!("outcome = \"{limit}\"");
        for (from, to) in [
            (outcome.as_str(), wrong.as_str()),
            (&out, &wrong_out),
            ("egress = 1", "egress = 0"),
            ("received = ", "received = 1"),
        ] {
            let planted = text.replacen(from, to, 1);
            assert_ne!(planted, text);
            assert!(drive(&planted, kind).is_err(), "not found: {from} as {to}");
        }
    }
}
