//! Offloads and queues of interfaces, as set by `ethtool -K` and `ethtool -L`.
//!
//! Functions operate on interfaces in the calling thread's namespace.
#![allow(unsafe_code)] // the ioctl

use std::os::fd::{AsRawFd, OwnedFd};

use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};

use crate::error::HostError;
use crate::links::checked;

const SIOCETHTOOL: libc::c_ulong = 0x8946;

/// An offload: work that an interface can do instead of the processor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Feature {
    /// Checksums of sent packets; segmentation needs it. A veth with this offload passes packets on without
    /// checksums, which is correct only as long as they stay on this machine.
    TransmitChecksum,
    /// Checksums of received packets.
    ReceiveChecksum,
    /// TCP segmentation offload.
    Segmentation,
    /// Generic receive offload: joins received packets.
    GenericReceive,
}

impl Feature {
    /// Commands to get and set the offload: `ETHTOOL_G…`, `ETHTOOL_S…`.
    fn commands(self) -> (u32, u32) {
        match self {
            Self::ReceiveChecksum => (0x14, 0x15),
            Self::TransmitChecksum => (0x16, 0x17),
            Self::Segmentation => (0x1e, 0x1f),
            Self::GenericReceive => (0x2b, 0x2c),
        }
    }
}

/// Numbers of queues of an interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Channels {
    /// Queues that only receive.
    pub receive: u32,
    /// Queues that only send.
    pub transmit: u32,
    /// Queues that do both.
    pub combined: u32,
    /// Maximum of each.
    pub most: (u32, u32, u32),
}

impl Channels {
    /// Number of queues that receive.
    #[must_use]
    pub fn receiving(&self) -> u32 {
        (self.receive + self.combined).max(1)
    }
}

/// Turns the checksum offload for sent packets on or off. Turning it off also turns off segmentation.
///
/// # Errors
/// If the interface does not exist or does not support it, or the system call fails.
pub fn set_tx_checksum(interface: &str, on: bool) -> Result<(), HostError> {
    set(interface, Feature::TransmitChecksum, on)
}

/// Turns an offload on or off.
///
/// # Errors
/// If the interface does not exist or does not support it, or the system call fails.
pub fn set(interface: &str, feature: Feature, on: bool) -> Result<(), HostError> {
    let mut words = [feature.commands().1, on.into()];
    request(
        interface,
        &mut words,
        &format!("turn {feature:?} of {interface} {}", if on { "on" } else { "off" }),
    )
}

/// Whether an offload is on.
///
/// # Errors
/// If the interface does not exist or does not support it, or the system call fails.
pub fn get(interface: &str, feature: Feature) -> Result<bool, HostError> {
    let mut words = [feature.commands().0, 0];
    request(interface, &mut words, &format!("read {feature:?} of {interface}"))?;
    Ok(words[1] != 0)
}

/// The queues of an interface.
///
/// # Errors
/// If the interface does not exist or does not support it, or the system call fails.
pub fn channels(interface: &str) -> Result<Channels, HostError> {
    const GET: u32 = 0x3c;
    // ethtool_channels: command; maximum of receive, transmit, other, combined; current values in the same
    // order.
    let mut words = [GET, 0, 0, 0, 0, 0, 0, 0, 0];
    request(interface, &mut words, &format!("read the queues of {interface}"))?;
    let [_, most_rx, most_tx, _, most, receive, transmit, _, combined] = words;
    Ok(Channels { receive, transmit, combined, most: (most_rx, most_tx, most) })
}

/// Makes an ethtool request. `words` begins with the command and has the size of the command's structure.
fn request(interface: &str, words: &mut [u32], what: &str) -> Result<(), HostError> {
    let name = checked(interface)?;
    let fd: OwnedFd = socket(AddressFamily::Inet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)
        .map_err(|errno| HostError::system(what, errno))?;
    let mut letters: [libc::c_char; libc::IFNAMSIZ] = [0; libc::IFNAMSIZ];
    for (place, byte) in letters.iter_mut().zip(name.bytes()) {
        *place = byte.cast_signed();
    }
    let data = libc::__c_anonymous_ifr_ifru { ifru_data: words.as_mut_ptr().cast() };
    let mut ask = libc::ifreq { ifr_name: letters, ifr_ifru: data };
    // SAFETY: `ask` is a live ifreq whose name ends in a zero. It points to as many live words as the command reads and
    // writes: two of ethtool_value, nine of ethtool_channels.
    let code = unsafe { libc::ioctl(fd.as_raw_fd(), SIOCETHTOOL, &raw mut ask) };
    if code >= 0 {
        return Ok(());
    }
    let error = HostError::last(what);
    if error.errno() == Some(nix::errno::Errno::ENODEV) {
        return Err(HostError::NoInterface { name: name.to_owned(), namespace: None });
    }
    Err(error)
}
