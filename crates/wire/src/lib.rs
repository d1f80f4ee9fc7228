//! Header views and edits: read the headers of a frame and change them in place.
//!
//! Place in the flow: the first stage after a port, `port → wire → demux → plane → port`. All higher crates
//! read and edit frames only through this crate.
//!
//! Invariants: no allocation, no I/O, no clock, no unsafe code. A view is checked once, when it is created,
//! and its accessors cannot fail. Nothing here panics, whatever the bytes. Multi-byte fields are in network
//! byte order in the frame and in host byte order once read. Lengths and offsets are in bytes unless the name
//! says otherwise.
//!
//! Names: each protocol is a module with a `Header` (the fixed part of the header), a `View` (header and the
//! payload that its length field delimits) and, if a router edits it, a `ViewMut`.
//!
//! ```
//! use hue_wire::{ethernet, ipv4};
//! # let mut frame = [0u8; 34];
//! # frame[12..14].copy_from_slice(&[8, 0]);
//! # frame[14..18].copy_from_slice(&[0x45, 0, 0, 20]);
//! # frame[22] = 64;
//! let eth = ethernet::View::parse(&frame)?;
//! let ip = ipv4::View::parse(eth.payload())?;
//! assert_eq!(ip.header().ttl, 64);
//! # Ok::<(), hue_wire::WireError>(())
//! ```
#![no_std]
#![forbid(unsafe_code)]

#[cfg(test)]
extern crate std;

mod error;
mod mac;

pub mod arp;
pub mod checksum;
pub mod ethernet;
pub mod icmp;
pub mod icmpv6;
pub mod ip;
pub mod ipip;
pub mod ipv4;
pub mod ipv6;
pub mod mpls;
pub mod ndp;
pub mod rofl;
pub mod tcp;
pub mod toeplitz;
pub mod udp;
pub mod vxlan;
pub mod walk;

#[doc(hidden)]
pub mod exercise;

pub use error::{Layer, MacFault, WireError};
pub use mac::Mac;
pub use walk::walk;

/// Largest frame length in bytes: a jumbo frame with its Ethernet header, without FCS.
pub const FRAME_MAX: usize = 9216;
/// Smallest frame length in bytes: an Ethernet header.
pub const FRAME_MIN: usize = 14;
