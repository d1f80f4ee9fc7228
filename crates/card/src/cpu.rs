//! The header in front of a frame on a CPU queue, in both directions: the frame's network, and its source or
//! destination port.
//!
//! Flow: card → CPU queue → **header**, frame → software plane; software plane → **header**, frame → CPU queue → card.
//! Source: `hue_cpu_header_t` in `rtl/common/hue_pkg.sv`. Big endian; lengths in bytes.

use hue_planes::{Kind, Reason};
use hue_tables::{MacKey, Vid};
use hue_wire::ethernet;

use crate::error::NAME;

/// Bytes of the header.
pub const HEADER_BYTES: usize = 16;
/// The frame comes from a software plane and leaves without further processing.
const FROM_PLANE: u8 = 1;
/// The frame has been dealt with. Its sender is to be learnt.
const NOTE: u8 = 2;

/// Why a frame came to a CPU queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ToCpu {
    /// Its network.
    pub vid: Vid,
    /// Index of the virtual port it arrived on.
    pub vport: u16,
    /// Code of the plane's outcome, of the network's kind; 0 when no plane saw the frame (the plane is gated, or the network runs in
    /// software), or when it is for the router itself and the card's loop has found no tunnel that it came by.
    pub code: u8,
    /// Port it arrived on.
    pub port_in: u8,
    /// It is a copy for the driver, which tells that the frame's sender is behind the virtual port.
    pub is_note: bool,
}

impl ToCpu {
    /// Splits bytes from a CPU queue into header and frame; the error says what is wrong with them.
    pub fn split(bytes: &[u8]) -> Result<(Self, &[u8]), String> {
        let Some((header, frame)) = bytes.split_first_chunk::<HEADER_BYTES>() else {
            return Err(format!(
                "{} bytes on a CPU queue: expected at least a header of {HEADER_BYTES}",
                bytes.len()
            ));
        };
        let [vid_high, vid_low, _, vport, code, port_in, _, flags, length_high, length_low, ..] = *header;
        let length = u16::from_be_bytes([length_high, length_low]);
        if usize::from(length) != frame.len() {
            return Err(format!("a CPU header gives a length of {length} bytes, but {} follow", frame.len()));
        }
        let vid = u16::from_be_bytes([vid_high, vid_low]);
        let vid = Vid::new(vid).ok_or_else(|| format!("a CPU header has the invalid network id {vid}"))?;
        let known = |kind: Kind| kind.runs_on().contains(&NAME) && Reason::new(kind, code).is_some();
        if code != 0 && !Kind::ALL.into_iter().any(known) {
            return Err(format!("a CPU header has the unknown outcome {code}"));
        }
        let is_note = flags & NOTE != 0;
        Ok((Self { vid, vport: u16::from(vport), code, port_in, is_note }, frame))
    }

    /// What a note says: the network, the address of the sender, and the virtual port that it is behind. `frame` is what
    /// follows the header.
    #[must_use]
    pub fn note(&self, frame: &[u8]) -> Option<(Vid, MacKey, u16)> {
        let (header, _) = ethernet::Header::over(frame).filter(|_| self.is_note)?;
        Some((self.vid, header.source().to_u64(), self.vport))
    }
}

/// The port that a frame from a CPU queue arrived on.
#[must_use]
pub fn port_in(header: &[u8; HEADER_BYTES]) -> u8 {
    header[5]
}

/// The header of a frame that a software plane sends. `net` selects the network's share of the output queue,
/// `port_out` the port.
#[must_use]
pub fn from_plane(net: u8, port_out: u8) -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    (header[2], header[6], header[7]) = (net, port_out, FROM_PLANE);
    header
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_read_or_refused() {
        let mut bytes = vec![0, 7, 1, 2, 9, 3, 4, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0xa, 0xb, 0xc];
        let header = ToCpu { vid: Vid::new(7).unwrap(), vport: 2, code: 9, port_in: 3, is_note: false };
        assert_eq!(ToCpu::split(&bytes), Ok((header, &[0xa, 0xb, 0xc][..])));
        bytes[7] = NOTE;
        let note = ToCpu { is_note: true, ..header };
        assert_eq!(ToCpu::split(&bytes), Ok((note, &[0xa, 0xb, 0xc][..])));
        for (at, value) in [(9, 4), (1, 0), (0, 0xff), (4, 32)] {
            let before = std::mem::replace(&mut bytes[at], value);
            assert!(ToCpu::split(&bytes).is_err(), "byte {at}");
            bytes[at] = before;
        }
        assert!(ToCpu::split(&bytes[..15]).is_err());
    }
}
