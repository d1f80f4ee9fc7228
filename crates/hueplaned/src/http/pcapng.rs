//! Writes captured frames as pcapng.
//!
//! One section; an interface for each `network/port` when it first appears; an enhanced packet block for each frame,
//! with its direction, its outcome as a comment, and how many frames were lost before it.
//! Units: times in nanoseconds since 1970, lengths in bytes. All numbers little-endian.
//! Source: draft-ietf-opsawg-pcapng-03 §4.1 (section), §4.2 (interface), §4.3 (packet), §4.5 (names), §3.5 (options).

use std::collections::HashMap;

use bytes::Bytes;

use crate::api::{CapturedFrame, Direction};

const SECTION: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const NAMES: u32 = 4;
const PACKET: u32 = 6;
const BYTE_ORDER: u32 = 0x1a2b_3c4d;
const LINK_TYPE_ETHERNET: u16 = 1;

const OPTION_END: u16 = 0;
const OPTION_COMMENT: u16 = 1;
const OPTION_SECTION_APPLICATION: u16 = 4;
const OPTION_INTERFACE_NAME: u16 = 2;
const OPTION_INTERFACE_RESOLUTION: u16 = 9;
const OPTION_PACKET_FLAGS: u16 = 2;
const OPTION_PACKET_DROPS: u16 = 4;

/// Writes one capture.
pub(super) struct Writer {
    snap: u32,
    /// Number of each interface written so far.
    interfaces: HashMap<String, u32>,
}

impl Writer {
    /// A capture whose frames are truncated to `snap` bytes; 0 means not at all.
    pub(super) fn new(snap: u32) -> Self {
        Self { snap, interfaces: HashMap::new() }
    }

    /// The section header that begins a capture.
    pub(super) fn head(&self) -> Bytes {
        let mut out = Vec::new();
        block(&mut out, SECTION, |body| {
            body.extend(BYTE_ORDER.to_le_bytes());
            body.extend(1u16.to_le_bytes());
            body.extend(0u16.to_le_bytes());
            body.extend(u64::MAX.to_le_bytes()); // section length unknown
            let application = concat!("hueplane ", env!("CARGO_PKG_VERSION"));
            option(body, OPTION_SECTION_APPLICATION, application.as_bytes());
            option(body, OPTION_END, &[]);
        });
        out.into()
    }

    /// A keep-alive without content: an empty block of names.
    pub(super) fn alive(&self) -> Bytes {
        let mut out = Vec::new();
        block(&mut out, NAMES, |body| option(body, OPTION_END, &[]));
        out.into()
    }

    /// Adds a frame, and its interface if it is new.
    pub(super) fn frame(&mut self, frame: &CapturedFrame, out: &mut Vec<u8>) {
        let interface = self.interface(frame.interface(), out);
        block(out, PACKET, |body| {
            body.extend(interface.to_le_bytes());
            body.extend(((frame.time_ns >> 32) as u32).to_le_bytes());
            body.extend((frame.time_ns as u32).to_le_bytes());
            body.extend((frame.bytes.len() as u32).to_le_bytes());
            body.extend(frame.length.max(frame.bytes.len() as u32).to_le_bytes());
            body.extend(&frame.bytes);
            pad(body);
            if let Some(verdict) = frame.verdict {
                let comment = if verdict.verdict == verdict.reason {
                    verdict.verdict.to_owned()
                } else {
                    format!("{} {}", verdict.verdict, verdict.reason)
                };
                option(body, OPTION_COMMENT, comment.as_bytes());
            }
            let flags: u32 = match frame.direction {
                Direction::In => 1,
                Direction::Out => 2,
            };
            option(body, OPTION_PACKET_FLAGS, &flags.to_le_bytes());
            option(body, OPTION_PACKET_DROPS, &frame.lost.to_le_bytes());
            option(body, OPTION_END, &[]);
        });
    }

    /// Number of an interface, written if it is new.
    fn interface(&mut self, name: String, out: &mut Vec<u8>) -> u32 {
        if let Some(number) = self.interfaces.get(&name) {
            return *number;
        }
        let number = self.interfaces.len() as u32;
        block(out, INTERFACE, |body| {
            body.extend(LINK_TYPE_ETHERNET.to_le_bytes());
            body.extend(0u16.to_le_bytes());
            body.extend(self.snap.to_le_bytes());
            option(body, OPTION_INTERFACE_NAME, name.as_bytes());
            option(body, OPTION_INTERFACE_RESOLUTION, &[9]);
            option(body, OPTION_END, &[]);
        });
        self.interfaces.insert(name, number);
        number
    }
}

/// A block: type, length, body, length again.
fn block(out: &mut Vec<u8>, kind: u32, body: impl FnOnce(&mut Vec<u8>)) {
    out.extend(kind.to_le_bytes());
    let length_at = out.len();
    out.extend([0; 4]);
    body(out);
    let length = (out.len() - length_at + 8) as u32;
    out[length_at..length_at + 4].copy_from_slice(&length.to_le_bytes());
    out.extend(length.to_le_bytes());
}

/// An option: code, length, value padded to a multiple of four bytes.
fn option(out: &mut Vec<u8>, code: u16, value: &[u8]) {
    out.extend(code.to_le_bytes());
    out.extend((value.len() as u16).to_le_bytes());
    out.extend(value);
    pad(out);
}

/// Pads to a multiple of four bytes, to which blocks are aligned.
fn pad(out: &mut Vec<u8>) {
    out.resize(out.len().next_multiple_of(4), 0);
}
