//! Opens an interface with the best driver that works on it, and reports the reason if that is not the first choice.

use std::any::Any;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::pool::Region;
use crate::{AfXdp, AfXdpOptions, GroupLimits, PacketSocket, Pool, Port, PortError, Tap, sys};

/// The driver that the configuration requests.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
pub enum Wanted {
    /// AF_XDP where it works, else the packet socket.
    #[default]
    Auto,
    /// AF_XDP or an error.
    AfXdp,
    /// Packet socket.
    Packet,
    /// TAP device, created when it does not exist.
    Tap,
}

impl FromStr for Wanted {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            "afxdp" => Ok(Self::AfXdp),
            "packet" => Ok(Self::Packet),
            "tap" => Ok(Self::Tap),
            other => Err(format!("unknown driver '{other}': expected auto, afxdp, packet or tap")),
        }
    }
}

/// What a port keeps until it is closed, such as a descriptor.
pub type Keep = Arc<dyn Any + Send + Sync>;

/// How to open a port.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct OpenOptions {
    /// Which driver.
    pub driver: Wanted,
    /// Packets of each ring (receive, transmit, fill, completion); a power of two.
    pub ring: u32,
    /// Frames that no network claims go to the kernel instead of being dropped (AF_XDP).
    pub pass_unknown: bool,
    /// Limits on frames to group addresses before the ring (AF_XDP).
    pub group: GroupLimits,
    /// Whether a TAP device persists after it is closed.
    pub persist: bool,
    /// What an AF_XDP or packet socket port keeps until it is closed itself.
    #[serde(skip)]
    pub keep: Option<Keep>,
    /// How long an AF_XDP port waits for another process to close the interface.
    pub busy_for: Duration,
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self {
            driver: Wanted::Auto,
            ring: 2048,
            pass_unknown: false,
            group: GroupLimits::default(),
            persist: false,
            keep: None,
            busy_for: Duration::ZERO,
        }
    }
}

/// An open port.
pub struct Opened {
    /// The port.
    pub port: Box<dyn Port>,
    /// Why the first choice of driver or mode was not used; for `get ports`.
    pub note: Option<String>,
}

/// Opens `interface` in the network namespace of the calling thread; its frames are stored in `pool`.
///
/// # Errors
/// `System` and `Unfit` describe the problem of the driver, or of the last one tried; `Gone` if the interface does
/// not exist; `Loopback` if it is the loopback.
pub fn open(interface: &str, options: &OpenOptions, pool: &Pool) -> Result<Opened, PortError> {
    open_on(interface, options, &pool.region())
}

/// The same for a pool that another thread owns. Opening takes some milliseconds in the kernel, which a worker should
/// spend on packets. The port takes slots from the pool when it first receives.
///
/// # Errors
/// As [`open`].
pub fn open_on(interface: &str, options: &OpenOptions, region: &Region) -> Result<Opened, PortError> {
    // An interface that does not exist is reported by its driver, which may create it.
    if sys::flags(interface).is_ok_and(|flags| flags & libc::IFF_LOOPBACK != 0) {
        return Err(PortError::Loopback { interface: interface.to_owned() });
    }
    let packet = |note: Option<String>| -> Result<Opened, PortError> {
        let port = PacketSocket::open(interface, options.ring, region)?.keeping(options.keep.clone());
        Ok(Opened { port: Box::new(port), note })
    };
    let afxdp = || -> Result<Opened, PortError> {
        let wanted = AfXdpOptions {
            ring: options.ring,
            pass_unknown: options.pass_unknown,
            group: options.group,
            generic: false,
            busy_for: options.busy_for,
        };
        AfXdp::prepare(interface, &wanted, region)?.open(options.keep.clone())
    };
    match options.driver {
        Wanted::AfXdp => afxdp(),
        Wanted::Packet => packet(None),
        Wanted::Tap => Ok(Opened { port: Box::new(Tap::open(interface, options.persist)?), note: None }),
        Wanted::Auto => match afxdp() {
            Err(error) if !error.is_gone() => packet(Some(format!("packet socket, because {error}"))),
            opened => opened,
        },
    }
}
