//! Frames of the captures under `shared/data/pcap`, and a small random generator that mutates them.

// Each test binary uses only part of this module.
#![allow(dead_code)]

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use pcap_file::DataLink;
use pcap_file::pcap::PcapReader;
use pcap_file::pcapng::{Block, PcapNgReader};
use proptest::test_runner::{Config, FileFailurePersistence};

/// A configuration with `cases` cases. The seed of a failing case is saved beside the test's source and
/// replayed first.
pub fn config(cases: u32) -> Config {
    let failure_persistence = Some(Box::new(FileFailurePersistence::WithSource("regressions")) as _);
    Config { cases, failure_persistence, ..Config::default() }
}

/// A capture file.
pub struct Capture {
    /// File name.
    pub name: String,
    /// Whether the frames are Ethernet frames. Other frames only test that nothing panics.
    pub ethernet: bool,
    /// The captured bytes of each frame.
    pub frames: Vec<Vec<u8>>,
}

/// All captures, sorted by name; empty if the data is missing.
pub fn captures() -> Vec<Capture> {
    let Some(root) = hue_testdata::path("pcap") else { return Vec::new() };
    let mut files = Vec::new();
    list(&root, &mut files);
    files.sort();
    files.iter().map(|file| read(file)).collect()
}

fn list(folder: &Path, files: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries {
        let path = entry.expect("a readable folder").path();
        if path.is_dir() {
            list(&path, files);
        } else {
            files.push(path);
        }
    }
}

fn read(path: &Path) -> Capture {
    let name = path.file_name().expect("a file's path").to_string_lossy().into_owned();
    let file = File::open(path).expect("a readable file");
    let mut frames = Vec::new();
    // Detects the format by the first bytes, not by the name: one file named .pcap is a pcapng.
    let magic = fs::read(path).expect("a readable file").first_chunk::<4>().copied();
    let ethernet = if magic == Some([0x0a, 0x0d, 0x0d, 0x0a]) {
        let mut reader = PcapNgReader::new(file).expect("a pcapng header");
        while let Some(block) = reader.next_block() {
            // Damaged files are tested in the ports crate.
            let Ok((block, _)) = block else { break };
            match block {
                Block::EnhancedPacket(block) => frames.push(block.data.into_owned()),
                Block::SimplePacket(block) => frames.push(block.data.into_owned()),
                Block::Packet(block) => frames.push(block.data.into_owned()),
                _ => (),
            }
        }
        reader.interfaces().iter().all(|interface| interface.linktype == DataLink::ETHERNET)
    } else {
        let mut reader = PcapReader::new(file).expect("a pcap header");
        while let Some(Ok(packet)) = reader.next_packet() {
            frames.push(packet.data().to_vec());
        }
        reader.header().datalink == DataLink::ETHERNET
    };
    Capture { name, ethernet, frames }
}

/// A small generator (xorshift64*) for mutations: the same seed gives the same mutations.
pub struct Random(pub u64);

impl Random {
    /// Returns the next number.
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// Returns a number below `bound`, which must not be zero.
    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    /// Changes one to four bytes near the headers, mostly to boundary values.
    pub fn mutate(&mut self, bytes: &mut [u8]) {
        for _ in 0..=self.below(4) {
            let reach = if self.below(4) == 0 { bytes.len() } else { bytes.len().min(80) };
            if reach == 0 {
                return;
            }
            let at = self.below(reach);
            let edges = [0, 1, 4, 6, 8, 17, 41, 44, 0x45, 0x46, 0x60, 0x7f, 0x80, 0xfe, 0xff];
            let edge = edges[self.below(edges.len())];
            bytes[at] = if self.below(2) == 0 { edge } else { self.next() as u8 };
        }
    }
}
