//! The state of an interface, read before it is opened.

use crate::{PortError, sys};

/// State of an interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Link {
    /// Bytes of the longest packet, without the Ethernet header.
    pub mtu_bytes: u32,
    /// Whether it is enabled (`ip link set up`).
    pub is_up: bool,
    /// Whether it has a carrier: a device is connected at the other end.
    pub has_carrier: bool,
    /// Whether it is the loopback.
    pub is_loopback: bool,
}

impl Link {
    /// The state of `interface` in the network namespace of the calling thread; `None` if it does not exist.
    ///
    /// # Errors
    /// `System` if the kernel does not report the state.
    pub fn of(interface: &str) -> Result<Option<Self>, PortError> {
        let asked = sys::interface(interface).and_then(|found| Ok((found, sys::flags(interface)?)));
        match asked {
            Ok((found, flags)) => Ok(Some(Self {
                mtu_bytes: found.mtu,
                is_up: flags & libc::IFF_UP != 0,
                has_carrier: flags & libc::IFF_RUNNING != 0,
                is_loopback: flags & libc::IFF_LOOPBACK != 0,
            })),
            Err(error) if error.raw_os_error() == Some(libc::ENODEV) => Ok(None),
            // The text cannot be the name of an interface.
            Err(error) if error.kind() == std::io::ErrorKind::InvalidInput => Ok(None),
            Err(error) => Err(PortError::of(interface, "find the interface", error)),
        }
    }
}
