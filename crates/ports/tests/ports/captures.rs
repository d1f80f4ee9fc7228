//! Reads, merges and writes captures through the public API: every format, and damage at every byte.

use std::fs;
use std::path::{Path, PathBuf};

use hue_ports::{Batch, CaptureReader, Frame, MergedCaptures, OutputDir, PortError, Resolution, scan};
use proptest::prelude::*;

#[derive(Clone, Debug, PartialEq)]
struct Packet {
    time_ns: u64,
    bytes: Vec<u8>,
    wire_len: u32,
}

fn word(value: u32, big: bool) -> [u8; 4] {
    if big { value.to_be_bytes() } else { value.to_le_bytes() }
}

fn half(value: u16, big: bool) -> [u8; 2] {
    if big { value.to_be_bytes() } else { value.to_le_bytes() }
}

/// A pcap file built by hand, independent of the library.
fn pcap(packets: &[Packet], big: bool, nano: bool, link: u32) -> Vec<u8> {
    let mut file = Vec::new();
    file.extend(word(if nano { 0xa1b2_3c4d } else { 0xa1b2_c3d4 }, big));
    file.extend(half(2, big));
    file.extend(half(4, big));
    for field in [0, 0, 262_144, link] {
        file.extend(word(field, big));
    }
    for packet in packets {
        file.extend(word((packet.time_ns / 1_000_000_000) as u32, big));
        let rest = (packet.time_ns % 1_000_000_000) as u32;
        file.extend(word(if nano { rest } else { rest / 1000 }, big));
        file.extend(word(packet.bytes.len() as u32, big));
        file.extend(word(packet.wire_len, big));
        file.extend(&packet.bytes);
    }
    file
}

fn block(kind: u32, body: &[u8], big: bool) -> Vec<u8> {
    let len = (12 + body.len().next_multiple_of(4)) as u32;
    let mut out = Vec::new();
    out.extend(word(kind, big));
    out.extend(word(len, big));
    out.extend(body);
    out.resize(8 + body.len().next_multiple_of(4), 0);
    out.extend(word(len, big));
    out
}

fn interface(link: u16, tsresol: Option<u8>, big: bool) -> Vec<u8> {
    let mut body = Vec::new();
    body.extend(half(link, big));
    body.extend([0, 0]);
    body.extend(word(0, big));
    if let Some(resolution) = tsresol {
        body.extend(half(9, big));
        body.extend(half(1, big));
        body.extend([resolution, 0, 0, 0]);
        body.extend([0; 4]);
    }
    block(1, &body, big)
}

fn section(big: bool) -> Vec<u8> {
    let mut body = Vec::new();
    body.extend(word(0x1a2b_3c4d, big));
    body.extend(half(1, big));
    body.extend(half(0, big));
    body.extend([0xff; 8]);
    block(0x0a0d_0d0a, &body, big)
}

fn enhanced(packet: &Packet, ticks: u64, interface: u32, big: bool) -> Vec<u8> {
    let mut body = Vec::new();
    for field in [interface, (ticks >> 32) as u32, ticks as u32, packet.bytes.len() as u32, packet.wire_len] {
        body.extend(word(field, big));
    }
    body.extend(&packet.bytes);
    block(6, &body, big)
}

fn pcapng(packets: &[Packet], big: bool, nano: bool) -> Vec<u8> {
    let mut file = section(big);
    file.extend(interface(1, nano.then_some(9), big));
    for packet in packets {
        let ticks = if nano { packet.time_ns } else { packet.time_ns / 1000 };
        file.extend(enhanced(packet, ticks, 0, big));
    }
    file
}

fn save(dir: &Path, name: &str, bytes: &[u8]) -> PathBuf {
    let path = dir.join(name);
    fs::write(&path, bytes).unwrap();
    path
}

fn read_all(path: &Path) -> Result<Vec<Packet>, PortError> {
    let mut reader = CaptureReader::open(path)?;
    let mut batch = Batch::new();
    while reader.receive(&mut batch, 3)? > 0 {}
    Ok(owned(&batch))
}

fn owned(batch: &Batch) -> Vec<Packet> {
    batch
        .iter()
        .map(|f| Packet { time_ns: f.time_ns, bytes: f.bytes.to_vec(), wire_len: f.wire_len })
        .collect()
}

fn sample() -> Vec<Packet> {
    (0..4u32)
        .map(|i| Packet {
            time_ns: 1_700_000_000_000_000_000 + u64::from(i) * 1_000_001_000,
            bytes: vec![i as u8; 20 + i as usize],
            wire_len: 20 + i + if i == 2 { 100 } else { 0 },
        })
        .collect()
}

#[test]
fn reads_every_format_byte_order_and_resolution() {
    let dir = tempfile::tempdir().unwrap();
    for big in [false, true] {
        for nano in [false, true] {
            for (name, bytes) in
                [("a.pcap", pcap(&sample(), big, nano, 1)), ("a.pcapng", pcapng(&sample(), big, nano))]
            {
                let path = save(dir.path(), name, &bytes);
                assert_eq!(read_all(&path).unwrap(), sample(), "{name} big {big} nano {nano}");
                let info = scan(&path).unwrap();
                assert_eq!((info.packets, info.cut, info.in_order), (4, 1, true));
                assert_eq!(info.resolution, if nano { Resolution::Nano } else { Resolution::Micro });
            }
        }
    }
}

#[test]
fn a_file_cut_anywhere_is_an_error_or_a_shorter_capture() {
    let dir = tempfile::tempdir().unwrap();
    let starts = |file: &[u8], cut: usize, all: &[Packet], sizes: &[usize], header: usize| {
        let path = save(dir.path(), "cut", &file[..cut]);
        let mut whole = 0;
        let mut end = header;
        while whole < sizes.len() && end + sizes[whole] <= cut {
            end += sizes[whole];
            whole += 1;
        }
        match read_all(&path) {
            Ok(read) => assert!(end == cut && read == all[..whole], "cut at {cut}"),
            Err(PortError::Truncated { offset, whole_packets, .. }) => {
                assert!(end != cut || cut < header, "cut at {cut}");
                if cut >= header {
                    assert_eq!((offset, whole_packets), (end as u64, whole as u64), "cut at {cut}");
                }
            }
            Err(PortError::NotACapture { .. }) if cut < 4 => {}
            Err(other) => assert!(cut < header, "cut at {cut}: {other}"),
        }
    };
    let all = sample();
    let file = pcap(&all, false, false, 1);
    let sizes: Vec<usize> = all.iter().map(|p| 16 + p.bytes.len()).collect();
    (0..=file.len()).for_each(|cut| starts(&file, cut, &all, &sizes, 24));
    let file = pcapng(&all, true, true);
    let sizes: Vec<usize> = all.iter().map(|p| 32 + p.bytes.len().next_multiple_of(4)).collect();
    let header = file.len() - sizes.iter().sum::<usize>();
    (header..=file.len()).for_each(|cut| starts(&file, cut, &all, &sizes, header));
}

/// The time to read a file depends only on its size. If every packet required a scan of all interfaces, this would
/// take minutes.
#[test]
fn many_interfaces_are_read_once_each() {
    let dir = tempfile::tempdir().unwrap();
    let mut file = section(false);
    (0..65_535).for_each(|_| file.extend(interface(1, None, false)));
    file.extend(interface(1, Some(9), false));
    file.extend(enhanced(&sample()[0], 5, 65_535, false));
    let path = save(dir.path(), "many.pcapng", &file);
    assert_eq!(read_all(&path).unwrap().len(), 1);
    // A section with more interfaces is refused before they fill the memory.
    file.extend(interface(1, None, false));
    let error = read_all(&save(dir.path(), "more.pcapng", &file)).unwrap_err().to_string();
    assert!(error.contains("more than 65536 interfaces"), "{error}");
}

#[test]
fn wrong_files_are_named_with_their_kind() {
    let dir = tempfile::tempdir().unwrap();
    let message = |bytes: &[u8]| match read_all(&save(dir.path(), "x", bytes)) {
        Ok(_) => "accepted".to_owned(),
        Err(error) => error.to_string(),
    };
    assert!(message(b"").contains("found an empty file"));
    assert!(message(&[b'x'; 100]).contains("found magic number 0x78787878, expected a pcap or pcapng"));
    assert!(message(&pcap(&sample(), false, false, 101)).contains("found RAW (101), expected ETHERNET (1)"));
    let mut file = section(false);
    file.extend(interface(1, None, false));
    file.extend(interface(113, None, false));
    file.extend(enhanced(&sample()[0], 5, 0, false));
    file.extend(enhanced(&sample()[0], 5, 1, false));
    assert!(message(&file).contains("found LINUX_SLL (113)"));
    let mut huge = pcap(&sample()[..1], false, false, 1);
    huge[24 + 8..24 + 12].copy_from_slice(&u32::MAX.to_le_bytes());
    assert!(message(&huge).contains("truncated"), "{}", message(&huge));
    huge.resize(5 << 20, 0);
    assert!(message(&huge).contains("packet 1 at byte offset 24: the record claims"), "{}", message(&huge));
    assert!(CaptureReader::open(&dir.path().join("absent")).is_err());
}

#[test]
fn outputs_appear_whole_or_not_at_all() {
    let dir = tempfile::tempdir().unwrap();
    let target = dir.path().join("deep/out");
    let frame = Frame { bytes: &[7; 60], time_ns: 1_000_000_123, wire_len: 60 };
    {
        let mut out = OutputDir::open(&target).unwrap();
        let index = out.add("p0.pcap", Resolution::Nano).unwrap();
        out.writer(index).unwrap().write(frame).unwrap();
    }
    assert!(!dir.path().join("deep").exists(), "dropped without commit: nothing stays");
    let mut first = Vec::new();
    for round in 0..2 {
        let mut out = OutputDir::open(&target).unwrap();
        let index = out.add("p0.pcap", Resolution::Nano).unwrap();
        out.writer(index).unwrap().write(frame).unwrap();
        out.add("p1.pcap", Resolution::Nano).unwrap();
        assert_eq!(out.commit().unwrap().len(), 2);
        let bytes = fs::read(target.join("p0.pcap")).unwrap();
        if round == 1 {
            assert_eq!(bytes, first, "equal input, equal bytes");
        }
        first = bytes;
    }
    assert_eq!(fs::read_dir(&target).unwrap().count(), 2, "no temporary file stays");
    let read = read_all(&target.join("p0.pcap")).unwrap();
    assert_eq!((read[0].time_ns, read[0].bytes.len()), (1_000_000_123, 60));
    assert!(read_all(&target.join("p1.pcap")).unwrap().is_empty());
    fs::write(dir.path().join("file"), b"").unwrap();
    assert!(matches!(OutputDir::open(&dir.path().join("file")), Err(PortError::Write { .. })));
    let mut out = OutputDir::open(&target).unwrap();
    let index = out.add("late.pcap", Resolution::Micro).unwrap();
    let late = Frame { time_ns: (1 << 32) * 1_000_000_000, ..frame };
    assert!(matches!(out.writer(index).unwrap().write(late), Err(PortError::Time { .. })));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    /// Merging is the stable sort of all packets, whether a capture is in order (streamed) or not (sorted).
    #[test]
    fn merging_is_a_stable_sort(times in proptest::collection::vec(
        proptest::collection::vec(0u64..50, 0..40), 1..4), sorted in any::<bool>())
    {
        let dir = tempfile::tempdir().unwrap();
        let mut expected = Vec::new();
        let mut paths = Vec::new();
        for (source, times) in times.iter().enumerate() {
            let mut times = times.clone();
            if sorted {
                times.sort_unstable();
            }
            let packets: Vec<Packet> = times.iter().enumerate().map(|(i, t)| Packet {
                time_ns: t * 1000, bytes: vec![source as u8, i as u8, 9], wire_len: 3 }).collect();
            paths.push(save(dir.path(), &format!("{source}"), &pcap(&packets, false, false, 1)));
            expected.extend(packets.into_iter().map(|p| (p.time_ns, source, p.bytes)));
        }
        expected.sort_by_key(|(time, source, _)| (*time, *source));
        let mut merged = MergedCaptures::open(&paths).unwrap();
        prop_assert_eq!(merged.packets(), expected.len() as u64);
        let mut got = Vec::new();
        while merged.next_frame(|m| got.push((m.frame.time_ns, m.source, m.frame.bytes.to_vec()))).unwrap() {}
        prop_assert_eq!(got, expected);
    }

    /// No bytes make the reader panic.
    #[test]
    fn loaders_accept_or_reject_any_bytes(kind in 0..4, noise in proptest::collection::vec(any::<u8>(), 0..300),
        flips in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6))
    {
        let dir = tempfile::tempdir().unwrap();
        let mut bytes = match kind {
            0 => noise,
            1 => pcap(&sample(), false, false, 1),
            2 => pcapng(&sample(), false, true),
            _ => [pcapng(&sample(), true, false), noise].concat(),
        };
        for (at, value) in flips {
            if !bytes.is_empty() {
                let at = at.index(bytes.len());
                bytes[at] = value;
            }
        }
        let path = save(dir.path(), "any", &bytes);
        let _ = read_all(&path);
        let _ = MergedCaptures::open(&[path]);
    }
}

#[test]
fn real_captures_are_read_to_the_end() {
    let Some(data) = hue_testdata::path("pcap") else { return };
    let mut packets = 0;
    let files = fs::read_dir(&data).unwrap().chain(fs::read_dir(data.join("ndpi")).unwrap());
    for entry in files.map(|entry| entry.unwrap().path()).filter(|path| path.is_file()) {
        match scan(&entry) {
            Ok(info) => packets += info.packets,
            Err(error) => assert!(
                matches!(error, PortError::LinkType { found: 104, .. }) && entry.ends_with("BGP_redist.pcap"),
                "{error}"
            ),
        }
    }
    assert!(packets > 4000, "{packets}");
}
