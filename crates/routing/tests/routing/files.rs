//! Route, update and query files through the public API: formats, compression, limits, damage.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

use hue_routing::{
    AnyPrefix, HopNames, Options, Query, Routes, RoutingError, load_queries, load_routes, load_updates,
};
use proptest::prelude::*;

const STRICT: Options = Options { skip_bad: false, derive_hops: None };
const SKIP: Options = Options { skip_bad: true, derive_hops: None };

fn save(dir: &Path, name: &str, bytes: &[u8]) -> PathBuf {
    let path = dir.join(name);
    fs::write(&path, bytes).unwrap();
    path
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn xz(bytes: &[u8]) -> Vec<u8> {
    let options = lzma_rust2::XzOptions::with_preset(1);
    let mut encoder = lzma_rust2::XzWriter::new(Vec::new(), options).unwrap();
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn listed(routes: &Routes) -> Vec<(String, String)> {
    let v4 = routes.v4.iter().map(|(p, h)| (p.to_string(), routes.hops.name(*h).to_owned()));
    let v6 = routes.v6.iter().map(|(p, h)| (p.to_string(), routes.hops.name(*h).to_owned()));
    v4.chain(v6).collect()
}

fn pairs(list: &[(&str, &str)]) -> Vec<(String, String)> {
    list.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect()
}

#[test]
fn text_routes_plain_and_compressed() {
    let dir = tempfile::tempdir().unwrap();
    let text = "\u{feff}10.0.0.0/8 a\n# note\n\n10.1.0.0/16\tb\tucst\tge-0/0/0\r\n10.0.0.0/8 c\n  2001:db8::/32   d \n\
                0.0.0.0/0\n::/0 -";
    let want = pairs(&[
        ("0.0.0.0/0", ""),
        ("10.0.0.0/8", "c"),
        ("10.1.0.0/16", "b"),
        ("::/0", "-"),
        ("2001:db8::/32", "d"),
    ]);
    let twice = [gzip(&text.as_bytes()[..20]), gzip(&text.as_bytes()[20..])].concat();
    for (name, bytes) in [
        ("plain", text.as_bytes().to_vec()),
        ("gz", gzip(text.as_bytes())),
        ("xz", xz(text.as_bytes())),
        ("gz2", twice),
    ] {
        let routes = load_routes(&save(dir.path(), name, &bytes), &STRICT).unwrap();
        assert_eq!(listed(&routes), want, "{name}");
    }
    assert!(load_routes(&save(dir.path(), "empty", b""), &STRICT).unwrap().is_empty());
}

#[test]
fn damaged_compressed_files_are_errors() {
    let dir = tempfile::tempdir().unwrap();
    let text: String = (0..200).map(|i| format!("10.{i}.0.0/16 hop{i}\n")).collect();
    for whole in [gzip(text.as_bytes()), xz(text.as_bytes())] {
        for cut in [whole.len() / 4, whole.len() / 2, whole.len() - 1] {
            let error = load_routes(&save(dir.path(), "cut", &whole[..cut]), &STRICT).unwrap_err();
            assert!(matches!(error, RoutingError::Compressed { .. }), "{error}");
        }
    }
    assert!(matches!(load_routes(dir.path(), &STRICT), Err(RoutingError::Read { .. })));
    assert!(matches!(load_routes(&dir.path().join("absent"), &STRICT), Err(RoutingError::Read { .. })));
}

#[test]
fn invalid_lines_are_reported_or_skipped() {
    let dir = tempfile::tempdir().unwrap();
    let text = b"10.0.0.0/8 a\n10.0.0.1/8 b\nnonsense\n\xff\xfe\n10.0.0.0/40\n11.0.0.0/8 c\n";
    let path = save(dir.path(), "r.txt", text);
    let message = load_routes(&path, &STRICT).unwrap_err().to_string();
    assert!(message.ends_with(
        "r.txt:2: found '10.0.0.1/8 b', expected PREFIX [NEXTHOP] (10.0.0.1/8 has bits set beyond its length: \
         expected 10.0.0.0/8)"
    ), "{message}");
    let routes = load_routes(&path, &SKIP).unwrap();
    assert_eq!((routes.len(), routes.skipped), (2, 4));
    let mut long = vec![b'x'; 5000];
    long.extend(b"\n10.0.0.0/8 a\n");
    let path = save(dir.path(), "long", &long);
    assert!(
        load_routes(&path, &STRICT)
            .unwrap_err()
            .to_string()
            .contains("a line of 5001 bytes, expected at most")
    );
    assert_eq!(load_routes(&path, &SKIP).unwrap().len(), 1);
    let many: String =
        (0..70_000).map(|i| format!("{}.{}.{}.0/24 h{i}\n", 1 + (i >> 16), i >> 8 & 255, i & 255)).collect();
    let error = load_routes(&save(dir.path(), "many", many.as_bytes()), &SKIP).unwrap_err();
    assert!(
        error.to_string().contains("many:65536: found next hop 'h65535', expected at most HOPS_MAX = 65535"),
        "{error}"
    );
}

#[test]
fn updates_and_queries() {
    let dir = tempfile::tempdir().unwrap();
    let path = save(dir.path(), "u", b"A 10.0.0.0/8 x\nW 10.0.0.0/8\nA 11.0.0.0/8\nX 1\nA\nW 10.0.0.1/8\n");
    let mut hops = HopNames::default();
    hops.intern("old").unwrap();
    let updates = load_updates(&path, &mut hops, &SKIP).unwrap();
    assert_eq!((updates.list.len(), updates.skipped), (3, 3));
    assert_eq!(updates.list[0].hop.map(|h| hops.name(h)), Some("x"));
    assert_eq!(updates.list[1].hop, None);
    assert_eq!(updates.list[2].hop.map(|h| hops.name(h)), Some(""));
    let error = load_updates(&path, &mut hops, &STRICT).unwrap_err().to_string();
    assert!(error.contains(":4: found 'X 1', expected A PREFIX [NEXTHOP] or W PREFIX"), "{error}");
    let path = save(dir.path(), "q", b"b 1.2.3.4\n#\na ::1\nc 1.1.1.1\na\na x\na 1.1.1.1 2\n");
    let (queries, skipped) = load_queries(&path, &["a", "b"], &SKIP).unwrap();
    assert_eq!(skipped, 4);
    assert_eq!(queries[0], Query { network: 1, address: "1.2.3.4".parse().unwrap() });
    let error = load_queries(&path, &["a", "b"], &STRICT).unwrap_err().to_string();
    assert!(error.ends_with("q:4: found network 'c', expected one of: a, b"), "{error}");
}

/// MRT records built by hand (RFC 6396), independent of the library that reads them.
fn mrt_record(subtype: u16, body: &[u8]) -> Vec<u8> {
    let mut out = vec![0x5f, 0, 0, 0, 0, 13];
    out.extend(subtype.to_be_bytes());
    out.extend((body.len() as u32).to_be_bytes());
    out.extend(body);
    out
}

fn peer_table() -> Vec<u8> {
    let mut body = vec![10, 0, 0, 1, 0, 0, 0, 1, 2];
    body.extend([10, 0, 0, 2, 10, 0, 0, 2, 0, 0, 0xfd, 0xe8]);
    mrt_record(1, &body)
}

fn rib(subtype: u16, len: u8, prefix: &[u8], entries: &[Vec<u8>]) -> Vec<u8> {
    let mut body = vec![0, 0, 0, 7, len];
    body.extend(prefix);
    body.extend((entries.len() as u16).to_be_bytes());
    for attributes in entries {
        body.extend([0, 0, 0x5f, 0, 0, 0]);
        body.extend((attributes.len() as u16).to_be_bytes());
        body.extend(attributes);
    }
    mrt_record(subtype, &body)
}

fn attributes4(hop: [u8; 4]) -> Vec<u8> {
    let mut out = vec![0x40, 1, 1, 0, 0x40, 2, 6, 2, 1, 0, 0, 0xfd, 0xe8, 0x40, 3, 4];
    out.extend(hop);
    out
}

/// RFC 6396 §4.3.4: in a dump, MP_REACH_NLRI contains only the next hop and its length.
fn attributes6(hop: [u8; 16]) -> Vec<u8> {
    let mut out = vec![0x40, 1, 1, 0, 0x40, 2, 6, 2, 1, 0, 0, 0xfd, 0xe8, 0x80, 14, 17, 16];
    out.extend(hop);
    out
}

#[test]
fn mrt_table_dumps() {
    let dir = tempfile::tempdir().unwrap();
    let hop6 = "2001:db8::1".parse::<std::net::Ipv6Addr>().unwrap().octets();
    let dump = [
        peer_table(),
        rib(2, 8, &[10], &[attributes4([192, 0, 2, 1]), attributes4([192, 0, 2, 2])]),
        rib(2, 24, &[10, 1, 2], &[attributes4([192, 0, 2, 2])]),
        rib(4, 32, &[0x20, 1, 0x0d, 0xb8], &[attributes6(hop6)]),
    ]
    .concat();
    let want =
        pairs(&[("10.0.0.0/8", "192.0.2.1"), ("10.1.2.0/24", "192.0.2.2"), ("2001:db8::/32", "2001:db8::1")]);
    for (name, bytes) in [("plain", dump.clone()), ("gz", gzip(&dump)), ("xz", xz(&dump))] {
        let routes = load_routes(&save(dir.path(), name, &bytes), &STRICT).unwrap();
        assert_eq!(listed(&routes), want, "{name}");
    }
    for cut in [13, dump.len() - 1] {
        let error = load_routes(&save(dir.path(), "cut", &dump[..cut]), &STRICT).unwrap_err().to_string();
        assert!(error.contains("MRT record"), "{error}");
    }
    let routes = load_routes(&save(dir.path(), "cut", &dump[..dump.len() - 1]), &SKIP).unwrap();
    assert_eq!((routes.len(), routes.skipped), (2, 1));
    let with_empty =
        [peer_table(), rib(2, 8, &[10], &[]), rib(2, 8, &[11], &[attributes4([1, 2, 3, 4])])].concat();
    let path = save(dir.path(), "empty", &with_empty);
    let error = load_routes(&path, &STRICT).unwrap_err().to_string();
    assert!(error.contains("MRT record 2: found 10.0.0.0/8 without a next hop"), "{error}");
    assert_eq!(load_routes(&path, &SKIP).unwrap().len(), 1);
}

/// RFC 6396 §4.3.3; with path ids RFC 8050 §4.2.
fn rib_generic(subtype: u16, family: [u8; 3], nlri: &[u8], entries: &[Vec<u8>]) -> Vec<u8> {
    let mut body = vec![0, 0, 0, 8];
    body.extend(family);
    body.extend(nlri);
    body.extend((entries.len() as u16).to_be_bytes());
    for attributes in entries {
        body.extend([0, 0, 0x5f, 0, 0, 0]);
        if subtype == 12 {
            body.extend([0, 0, 0, 1]);
        }
        body.extend((attributes.len() as u16).to_be_bytes());
        body.extend(attributes);
    }
    mrt_record(subtype, &body)
}

#[test]
fn mrt_records_of_other_families_are_passed_over_and_counted() {
    let dir = tempfile::tempdir().unwrap();
    let hop = || attributes4([192, 0, 2, 1]);
    // A VPN route: label, route distinguisher, 10.9.0.0/16.
    let vpn = [&[104, 0, 1, 0x11][..], &[0, 0, 0xfd, 0xe8, 0, 0, 0, 9], &[10, 9]].concat();
    // An EVPN route of type 3: its NLRI has another form.
    let evpn = [&[3, 17][..], &[0; 17]].concat();
    let others = [
        rib_generic(6, [0, 1, 128], &vpn, &[hop(), hop()]),
        rib_generic(12, [0, 1, 128], &vpn, &[hop()]),
        rib_generic(6, [0, 25, 70], &evpn, &[hop()]),
        rib(3, 8, &[10], &[hop()]),
    ];
    let ends = (peer_table(), rib(2, 8, &[10], &[hop()]));
    let dump = |others: &[Vec<u8>]| [&ends.0, &others.concat(), &ends.1].map(Vec::as_slice).concat();
    let routes = load_routes(&save(dir.path(), "sound", &dump(&others)), &STRICT).unwrap();
    assert_eq!(listed(&routes), pairs(&[("10.0.0.0/8", "192.0.2.1")]));
    assert_eq!((routes.passed_over, routes.skipped), (4, 0));

    // A record that is truncated, or longer than its entries, is damaged.
    let sound = &others[0][12..];
    let longer = [sound, &[0]].concat();
    for body in [&sound[..6], &sound[..12], &sound[..sound.len() - 1], &longer] {
        let path = save(dir.path(), "damaged", &dump(&[mrt_record(6, body)]));
        let error = load_routes(&path, &STRICT).unwrap_err().to_string();
        assert!(error.contains("MRT record 2: found damage") && error.contains("RIB_GENERIC"), "{error}");
        let routes = load_routes(&path, &SKIP).unwrap();
        assert_eq!((routes.len(), routes.passed_over, routes.skipped), (1, 0, 1));
    }
    let short = mrt_record(6, &[0, 0, 0, 8, 0, 25, 70, 0, 0]);
    let error = load_routes(&save(dir.path(), "short", &dump(&[short])), &STRICT).unwrap_err().to_string();
    assert!(error.contains("damage"), "{error}");
}

#[test]
fn a_full_table_and_a_day_of_updates_load() {
    let Some(path) = hue_testdata::path("rib/ris-as3333-2026-05-11.v4.txt.xz") else { return };
    let start = Instant::now();
    let options = Options { derive_hops: Some(8), ..STRICT };
    let mut routes = load_routes(&path, &options).unwrap();
    eprintln!("{} routes in {:.2} s", routes.len(), start.elapsed().as_secs_f64());
    assert_eq!((routes.v4.len(), routes.hops.len()), (1_042_325, 8));
    let Some(path) = hue_testdata::path("updates/ris-as3333-2026-05-11.mutations.v4.txt.xz") else { return };
    let updates = load_updates(&path, &mut routes.hops, &options).unwrap();
    assert_eq!(updates.list.len(), 1_393_421);
    let Some(path) = hue_testdata::path("updates/bgpdump-updates.20160811.1600.gz") else { return };
    let error = load_routes(&path, &STRICT).unwrap_err().to_string();
    assert!(error.contains("MRT record 1: found type BGP4MP"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    /// The last of several routes with the same prefix wins, compared with a map.
    #[test]
    fn last_line_wins(lines in proptest::collection::vec((0u32..40, 0u8..=32, 0u16..5), 0..200)) {
        let dir = tempfile::tempdir().unwrap();
        let mut text = String::new();
        let mut map = std::collections::BTreeMap::new();
        for (addr, len, hop) in lines {
            let prefix = hue_tables::Prefix4::containing(addr << 26, len);
            text.push_str(&format!("{prefix} h{hop}\n"));
            map.insert(prefix, format!("h{hop}"));
        }
        let routes = load_routes(&save(dir.path(), "r", text.as_bytes()), &STRICT).unwrap();
        let got: Vec<_> = routes.v4.iter().map(|(p, h)| (*p, routes.hops.name(*h).to_owned())).collect();
        prop_assert_eq!(got, map.into_iter().collect::<Vec<_>>());
    }

    /// No loader panics, whatever the bytes.
    #[test]
    fn loaders_accept_or_reject_any_bytes(kind in 0..4, noise in proptest::collection::vec(any::<u8>(), 0..200),
        flips in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6))
    {
        let dir = tempfile::tempdir().unwrap();
        let hop = [attributes4([192, 0, 2, 1])];
        let generic = rib_generic(6, [0, 1, 128], &[24, 0, 0, 1], &hop);
        let dump = [peer_table(), generic, rib(2, 8, &[10], &hop)].concat();
        let mut bytes = match kind {
            0 => noise,
            1 => dump,
            2 => xz(&dump),
            _ => gzip(b"10.0.0.0/8 a\n"),
        };
        for (at, value) in flips {
            if !bytes.is_empty() {
                let at = at.index(bytes.len());
                bytes[at] = value;
            }
        }
        let path = save(dir.path(), "any", &bytes);
        for options in [STRICT, SKIP] {
            let _ = load_routes(&path, &options);
            let _ = load_updates(&path, &mut HopNames::default(), &options);
            let _ = load_queries(&path, &["a"], &options);
        }
    }
}

#[test]
fn address_families_sort_separately() {
    assert!(AnyPrefix::parse("255.0.0.0/8").unwrap() < AnyPrefix::parse("::/0").unwrap());
}
