//! Reading captures: pcap (both byte orders, microseconds and nanoseconds) and pcapng.
//!
//! Flow: file → `CaptureReader` → [`Batch`]. Offsets are bytes from the start of the file, packets count from 1.
//! Policy: a file that ends inside a record, an impossible record or a link type other than Ethernet is an error
//! that names the packet and the offset. A packet that the capture truncated (captured length below its length
//! on the wire) is a frame of the captured bytes and counted in [`CaptureReader::cut`]. A pcapng simple packet
//! block has no time: it gets the time of the packet before it.
//! Source: draft-ietf-opsawg-pcap, draft-ietf-opsawg-pcapng.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use pcap_file::DataLink;
use pcap_file::pcap::{PcapReadError, PcapReader, PcapTsResolution, PcapValidationError};
use pcap_file::pcapng::blocks::{
    ENHANCED_PACKET_BLOCK, INTERFACE_DESCRIPTION_BLOCK, PACKET_BLOCK, SIMPLE_PACKET_BLOCK,
};
use pcap_file::pcapng::{Block, PcapNgFormatError, PcapNgReadError, PcapNgReader, PcapNgState};

use crate::{Batch, Frame, PortError};

/// The only link type that is read.
pub const LINK_TYPE_ETHERNET: u32 = 1;

/// Largest record of a capture, bytes. A longer record means that its length field is damaged.
pub const MAX_RECORD_BYTES: usize = 4 << 20;

/// Link types are 16 bits; the bits above carry the length of the frame check sequence.
const LINK_TYPE_MASK: u32 = 0xffff;

/// Resolution of a capture's times.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum Resolution {
    /// Microseconds.
    #[default]
    Micro,
    /// Nanoseconds.
    Nano,
}

/// Summary of a whole capture, from reading it once.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CaptureInfo {
    /// Packets.
    pub packets: u64,
    /// Packets that are truncated in the capture.
    pub cut: u64,
    /// The finest time resolution of its interfaces.
    pub resolution: Resolution,
    /// Whether no packet is older than the one before it.
    pub in_order: bool,
}

/// Reads a capture to its end and summarizes it; every error of the file is found here.
///
/// # Errors
/// As [`CaptureReader::open`] and [`CaptureReader::next_frame`].
pub fn scan(path: &Path) -> Result<CaptureInfo, PortError> {
    let mut reader = CaptureReader::open(path)?;
    let mut info = CaptureInfo { in_order: true, ..CaptureInfo::default() };
    let mut last_ns = 0;
    while reader.next_frame(|frame| {
        info.in_order &= frame.time_ns >= last_ns;
        last_ns = frame.time_ns;
    })? {}
    info.packets = reader.packets;
    info.cut = reader.cut;
    info.resolution = reader.resolution;
    Ok(info)
}

enum Format {
    Pcap(PcapReader<Counted>),
    PcapNg(PcapNgReader<Counted>),
}

/// A capture being read, packet by packet.
pub struct CaptureReader {
    path: PathBuf,
    format: Format,
    /// Bytes read from the file so far; some may still be in the parser's buffer.
    taken: Arc<AtomicU64>,
    offset: u64,
    packets: u64,
    cut: u64,
    last_ns: u64,
    resolution: Resolution,
}

impl CaptureReader {
    /// Opens a capture and reads its header.
    ///
    /// # Errors
    /// `Read`, `NotACapture`, `Truncated` (inside the header), `LinkType`.
    pub fn open(path: &Path) -> Result<Self, PortError> {
        let path = path.to_owned();
        let read = |source| PortError::Read { path: path.clone(), source };
        let file = File::open(&path).map_err(read)?;
        let taken = Arc::new(AtomicU64::new(0));
        let mut counted = Counted { head: Vec::new(), file, taken: taken.clone() };
        let magic = counted.peek(4).map_err(read)?;
        let header_cut = || PortError::Truncated {
            path: path.clone(),
            what: "the file header".to_owned(),
            offset: 0,
            whole_packets: 0,
        };
        let not_a_capture = |found| PortError::NotACapture { path: path.clone(), found };
        if magic.is_empty() {
            return Err(not_a_capture("an empty file".to_owned()));
        }
        let (format, resolution) = if magic == [0x0a, 0x0d, 0x0d, 0x0a] {
            let reader =
                PcapNgReader::with_capacity(counted, MAX_RECORD_BYTES).map_err(|error| match error {
                    PcapNgReadError::Io(source) if source.kind() == io::ErrorKind::UnexpectedEof => {
                        header_cut()
                    }
                    PcapNgReadError::Io(source) => read(source),
                    other => not_a_capture(chain(&other)),
                })?;
            (Format::PcapNg(reader), Resolution::Micro)
        } else {
            let reader =
                PcapReader::with_capacity(counted, MAX_RECORD_BYTES).map_err(|error| match error {
                    PcapReadError::Io(source) if source.kind() == io::ErrorKind::UnexpectedEof => {
                        header_cut()
                    }
                    PcapReadError::Io(source) => read(source),
                    PcapReadError::Validation(PcapValidationError::InvalidMagicNumber(magic)) => {
                        not_a_capture(format!("magic number {magic:#010x}"))
                    }
                    PcapReadError::Validation(other) => not_a_capture(chain(&other)),
                })?;
            let header = reader.header();
            check_link(&path, header.datalink)?;
            let resolution = match header.ts_resolution {
                PcapTsResolution::MicroSecond => Resolution::Micro,
                PcapTsResolution::NanoSecond => Resolution::Nano,
            };
            (Format::Pcap(reader), resolution)
        };
        let offset = match &format {
            Format::Pcap(_) => PCAP_HEADER_BYTES,
            Format::PcapNg(reader) => reader.bytes_parsed(),
        };
        Ok(Self { path, format, taken, offset, packets: 0, cut: 0, last_ns: 0, resolution })
    }

    /// The capture's path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Number of truncated packets so far.
    #[must_use]
    pub fn cut(&self) -> u64 {
        self.cut
    }

    /// The finest time resolution seen so far.
    #[must_use]
    pub fn resolution(&self) -> Resolution {
        self.resolution
    }

    /// Packets read so far.
    #[must_use]
    pub fn packets(&self) -> u64 {
        self.packets
    }

    /// Passes the next packet to `take`; `false` at the end of the capture.
    ///
    /// # Errors
    /// `Read`, `Truncated`, `Damaged`, `LinkType`.
    pub fn next_frame(&mut self, take: impl FnOnce(Frame<'_>)) -> Result<bool, PortError> {
        let offset = self.offset;
        let step = match &mut self.format {
            Format::Pcap(reader) => next_pcap(reader, self.resolution),
            Format::PcapNg(reader) => next_pcapng(reader, &mut self.resolution, self.last_ns),
        };
        match step {
            Ok(None) => Ok(false),
            Ok(Some(found)) => {
                let wire_len = found.wire_len.max(u32::try_from(found.bytes.len()).unwrap_or(u32::MAX));
                let frame = Frame { bytes: &found.bytes, time_ns: found.time_ns, wire_len };
                self.packets += 1;
                self.cut += u64::from(frame.is_cut());
                self.last_ns = found.time_ns;
                let after = found.after;
                take(frame);
                self.offset = match after {
                    After::Skip(bytes) => offset + bytes,
                    After::At(position) => position,
                };
                Ok(true)
            }
            Err(fault) => {
                let offset = match fault.at {
                    Some(position) => position,
                    None => offset,
                };
                Err(self.error(fault.kind, offset))
            }
        }
    }

    /// Appends up to `limit` packets to `batch` and returns how many; 0 means that the capture has ended.
    ///
    /// # Errors
    /// As [`CaptureReader::next_frame`]; packets appended before it stay in `batch`.
    pub fn receive(&mut self, batch: &mut Batch, limit: usize) -> Result<usize, PortError> {
        let mut received = 0;
        while received < limit && self.next_frame(|frame| batch.push(frame))? {
            received += 1;
        }
        Ok(received)
    }

    fn error(&self, fault: FaultKind, offset: u64) -> PortError {
        let path = self.path.clone();
        let packet = self.packets + 1;
        let held = self.taken.load(Ordering::Relaxed).saturating_sub(offset);
        match fault {
            FaultKind::Io(source) if source.kind() != io::ErrorKind::UnexpectedEof => {
                PortError::Read { path, source }
            }
            FaultKind::Io(_) if held >= MAX_RECORD_BYTES as u64 => PortError::Damaged {
                path,
                packet,
                offset,
                found: format!("the record claims to be longer than {MAX_RECORD_BYTES} bytes"),
            },
            FaultKind::Io(_) => PortError::Truncated {
                path,
                what: format!("packet {packet}"),
                offset,
                whole_packets: self.packets,
            },
            FaultKind::Damaged(found) => PortError::Damaged { path, packet, offset, found },
            FaultKind::Link(link) => link_error(&self.path, link),
        }
    }
}

const PCAP_HEADER_BYTES: u64 = 24;
/// Most interfaces of a section in a pcapng file: each is kept while the section is read.
pub const INTERFACES_MAX: usize = 65_536;
const PCAP_RECORD_HEADER_BYTES: u64 = 16;

enum After {
    Skip(u64),
    At(u64),
}

/// A packet as a format's reader returns it.
struct Found<'a> {
    bytes: std::borrow::Cow<'a, [u8]>,
    time_ns: u64,
    wire_len: u32,
    after: After,
}

enum FaultKind {
    Io(io::Error),
    Damaged(String),
    Link(DataLink),
}

struct Fault {
    kind: FaultKind,
    /// Where the record starts, if the format's reader knows this better than the caller.
    at: Option<u64>,
}

fn next_pcap(reader: &mut PcapReader<Counted>, resolution: Resolution) -> Result<Option<Found<'_>>, Fault> {
    let fault = |kind| Fault { kind, at: None };
    let packet = match reader.next_raw_packet() {
        None => return Ok(None),
        Some(Ok(packet)) => packet,
        Some(Err(PcapReadError::Io(source))) => return Err(fault(FaultKind::Io(source))),
        Some(Err(other)) => return Err(fault(FaultKind::Damaged(chain(&other)))),
    };
    let unit_ns = match resolution {
        Resolution::Micro => 1_000,
        Resolution::Nano => 1,
    };
    Ok(Some(Found {
        // Both fields are 32 bits, so the sum stays below 2^63.
        time_ns: u64::from(packet.ts_sec) * 1_000_000_000 + u64::from(packet.ts_frac) * unit_ns,
        wire_len: packet.orig_len,
        after: After::Skip(PCAP_RECORD_HEADER_BYTES + u64::from(packet.incl_len)),
        bytes: packet.data,
    }))
}

fn next_pcapng<'a>(
    reader: &'a mut PcapNgReader<Counted>,
    resolution: &mut Resolution,
    last_ns: u64,
) -> Result<Option<Found<'a>>, Fault> {
    // Skip to the next packet block first: borrowing it inside the loop would hold the reader across iterations.
    let (block, at) = loop {
        let at = reader.bytes_parsed();
        let fault = |kind| Fault { kind, at: Some(at) };
        let raw = match reader.next_raw_block() {
            None => return Ok(None),
            Some(Err(PcapNgReadError::Io(source))) => return Err(fault(FaultKind::Io(source))),
            Some(Err(PcapNgReadError::InvalidFormat(PcapNgFormatError::MissingSectionHeader))) => {
                return Err(fault(FaultKind::Damaged("no section header".to_owned())));
            }
            Some(Err(other)) => return Err(fault(FaultKind::Damaged(chain(&other)))),
            Some(Ok((raw, state))) => match raw.type_ {
                ENHANCED_PACKET_BLOCK | SIMPLE_PACKET_BLOCK | PACKET_BLOCK => raw
                    .try_into_block(state)
                    .map(|block| block.into_owned())
                    .map_err(|error| fault(FaultKind::Damaged(chain(&error))))?,
                INTERFACE_DESCRIPTION_BLOCK => {
                    if state.interfaces().len() > INTERFACES_MAX {
                        let found = format!("a section has more than {INTERFACES_MAX} interfaces");
                        return Err(fault(FaultKind::Damaged(found)));
                    }
                    // Only the new one: a section may have many.
                    *resolution = (*resolution).max(finest(state));
                    continue;
                }
                _ => continue,
            },
        };
        break (raw, at);
    };
    let fault = |kind| Fault { kind, at: Some(at) };
    let (bytes, interface, time, wire_len) = match block {
        Block::EnhancedPacket(packet) => {
            (packet.data, packet.interface_id as usize, Some(packet.timestamp), packet.original_len)
        }
        Block::Packet(packet) => {
            (packet.data, usize::from(packet.interface_id), Some(packet.timestamp), packet.original_len)
        }
        Block::SimplePacket(packet) => (packet.data, 0, None, packet.original_len),
        _ => return Ok(None),
    };
    if let Some(interface) = reader.interfaces().get(interface)
        && u32::from(interface.linktype) & LINK_TYPE_MASK != LINK_TYPE_ETHERNET
    {
        return Err(fault(FaultKind::Link(interface.linktype)));
    }
    let time_ns = match time.map(|time| u64::try_from(time.as_nanos())) {
        None => last_ns,
        Some(Ok(ns)) => ns,
        Some(Err(_)) => {
            return Err(fault(FaultKind::Damaged("its time is beyond the year 2554".to_owned())));
        }
    };
    Ok(Some(Found { bytes, time_ns, wire_len, after: After::At(reader.bytes_parsed()) }))
}

/// The resolution of the section's newest interface; anything finer than a microsecond counts as nanoseconds.
fn finest(state: &PcapNgState) -> Resolution {
    let is_fine = state.interfaces().last().is_some_and(|interface| {
        let resolution = interface.ts_resolution();
        // 2^-20 s is the first binary resolution finer than a microsecond.
        resolution.resolution() > if resolution.is_bin() { 19 } else { 6 }
    });
    if is_fine { Resolution::Nano } else { Resolution::Micro }
}

fn check_link(path: &Path, link: DataLink) -> Result<(), PortError> {
    if u32::from(link) & LINK_TYPE_MASK == LINK_TYPE_ETHERNET { Ok(()) } else { Err(link_error(path, link)) }
}

fn link_error(path: &Path, link: DataLink) -> PortError {
    let found = u32::from(link) & LINK_TYPE_MASK;
    let name = match DataLink::from(found) {
        DataLink::Unknown(_) => "an unknown one".to_owned(),
        known => format!("{known:?}"),
    };
    PortError::LinkType { path: path.to_owned(), found, name }
}

/// An error with its causes, on one line.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}

/// A file that counts the bytes read from it and whose first bytes can be peeked at.
#[derive(Debug)]
struct Counted {
    head: Vec<u8>,
    file: File,
    taken: Arc<AtomicU64>,
}

impl Counted {
    /// The first `len` bytes, fewer when the file is shorter; `read` returns them again.
    fn peek(&mut self, len: u64) -> io::Result<Vec<u8>> {
        let mut head = Vec::new();
        (&mut self.file).take(len).read_to_end(&mut head)?;
        self.head.clone_from(&head);
        Ok(head)
    }
}

impl Read for Counted {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let read = if self.head.is_empty() {
            loop {
                match self.file.read(buf) {
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    other => break other?,
                }
            }
        } else {
            let len = self.head.len().min(buf.len());
            for (to, from) in buf.iter_mut().zip(self.head.drain(..len)) {
                *to = from;
            }
            len
        };
        self.taken.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}
