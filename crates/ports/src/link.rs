//! The state of an interface, before anybody opens it.

use crate::{PortError, sys};

/// State of an interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Link {
    /// Bytes of the longest packet, without the Ethernet header.
    pub mtu_bytes: u32,
    /// Whether it was switched on.
    pub is_up: bool,
    /// Whether something is at the other end of its cable.
    pub has_carrier: bool,
}

impl Link {
    /// The state of `interface` in the network namespace of the calling thread; `None` when there is no such interface.
    ///
    /// # Errors
    /// `System` when the kernel does not tell.
    pub fn of(interface: &str) -> Result<Option<Self>, PortError> {
        let asked = sys::interface(interface).and_then(|found| Ok((found, sys::flags(interface)?)));
        match asked {
            Ok((found, flags)) => Ok(Some(Self {
                mtu_bytes: found.mtu,
                is_up: flags & libc::IFF_UP != 0,
                has_carrier: flags & libc::IFF_RUNNING != 0,
            })),
            Err(error) if error.raw_os_error() == Some(libc::ENODEV) => Ok(None),
            // Not a name of an interface.
            Err(error) if error.kind() == std::io::ErrorKind::InvalidInput => Ok(None),
            Err(error) => Err(PortError::of(interface, "find the interface", error)),
        }
    }
}
