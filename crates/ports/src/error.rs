//! Errors of ports, with whose fault each is.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// Why a port could not be opened, read or written.
#[derive(Debug, Error)]
pub enum PortError {
    /// The input file cannot be opened or read; the caller's fault (path, permission) or the device's.
    #[error("{}: cannot be read: {source}", path.display())]
    Read {
        /// The capture.
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
    /// The file does not start like a capture; the caller's fault.
    #[error("{}: not a capture: found {found}, expected a pcap or pcapng file", path.display())]
    NotACapture {
        /// The file.
        path: PathBuf,
        /// The first bytes found.
        found: String,
    },
    /// The file ends inside a record; the caller's fault. Re-capture, or cut it at the last whole packet.
    #[error(
        "{}: truncated capture: the file ends inside {what} at byte offset {offset} \
         ({whole_packets} whole packets precede it)",
        path.display()
    )]
    Truncated {
        /// The capture.
        path: PathBuf,
        /// What was being read: the header, or a packet by number (from 1).
        what: String,
        /// Where that record starts, bytes from the start of the file.
        offset: u64,
        /// Packets read before it.
        whole_packets: u64,
    },
    /// A record is invalid; the caller's fault.
    #[error("{}: damaged capture: packet {packet} at byte offset {offset}: {found}", path.display())]
    Damaged {
        /// The capture.
        path: PathBuf,
        /// Which packet (from 1) was being read.
        packet: u64,
        /// Where the record starts, bytes from the start of the file.
        offset: u64,
        /// What is wrong with it.
        found: String,
    },
    /// The frames are not Ethernet; the caller's fault.
    #[error(
        "{}: wrong link type: found {name} ({found}), expected ETHERNET (1); capture on an Ethernet interface",
        path.display()
    )]
    LinkType {
        /// The capture.
        path: PathBuf,
        /// The link type's number.
        found: u32,
        /// The link type's name.
        name: String,
    },
    /// An output cannot be created or written; the caller's fault (path, permission) or the device's (full).
    #[error("{}: cannot be written: {source}", path.display())]
    Write {
        /// The output.
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
    /// A frame has a time that the pcap format cannot hold; the caller's fault.
    #[error("{}: time {time_ns} ns is beyond the range of a pcap file (2106-02-07)", path.display())]
    Time {
        /// The output.
        path: PathBuf,
        /// The time, nanoseconds since the Unix epoch.
        time_ns: u64,
    },
    /// The interface was deleted or is down, or its device was removed (nobody's fault). Open it again when it is
    /// back.
    #[error("{interface}: the interface was removed or is down: {source}")]
    Gone {
        /// The interface.
        interface: String,
        /// The operating system's error.
        source: io::Error,
    },
    /// The operating system refused an operation; `hint` says what to do.
    #[error("{interface}: cannot {action}: {source}{}{hint}", if hint.is_empty() { "" } else { "; " })]
    System {
        /// The interface.
        interface: String,
        /// The operation that failed, a verb phrase.
        action: &'static str,
        /// The operating system's error.
        source: io::Error,
        /// What to do about it; may be empty.
        hint: &'static str,
    },
    /// The interface is unfit for this driver; the caller's fault.
    #[error("{interface}: {driver} does not fit: {found}")]
    Unfit {
        /// The interface.
        interface: String,
        /// The driver's name.
        driver: &'static str,
        /// Why.
        found: String,
    },
    /// The interface is the loopback; the caller's fault.
    #[error("{interface}: the loopback has no Ethernet segment; use one end of a veth pair")]
    Loopback {
        /// The interface.
        interface: String,
    },
    /// A class is out of range; a bug of the caller.
    #[error(
        "{interface}: invalid class {class}: expected 1 to {}, or the class of group frames or of others",
        crate::CLASS_MAX
    )]
    Class {
        /// The interface.
        interface: String,
        /// The class.
        class: u16,
    },
    /// A pool cannot be made; the caller's fault (sizes) or the machine's (memory).
    #[error("{slots} packet slots of {slot_bytes} bytes (2048 or 4096) cannot be allocated: {source}")]
    Pool {
        /// How many.
        slots: u32,
        /// Bytes of each.
        slot_bytes: u32,
        /// The operating system's error.
        source: io::Error,
    },
}

impl PortError {
    /// Whether the fault is in the destination, not in the input.
    #[must_use]
    pub fn is_output(&self) -> bool {
        matches!(self, Self::Write { .. })
    }

    /// Whether the interface was removed or is down, so that opening it again later may work.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        matches!(self, Self::Gone { .. })
    }

    /// Converts an operating system's error on an open port to `Gone` or `System`.
    pub(crate) fn of(interface: &str, action: &'static str, source: io::Error) -> Self {
        let interface = interface.to_owned();
        match source.raw_os_error() {
            Some(
                libc::ENETDOWN
                | libc::ENODEV
                | libc::ENXIO
                | libc::EBADF
                | libc::EBADFD
                | libc::EIO
                | libc::ENETUNREACH,
            ) => Self::Gone { interface, source },
            Some(libc::EPERM | libc::EACCES) => {
                Self::System { interface, action, source, hint: "run as root" }
            }
            _ => Self::System { interface, action, source, hint: "" },
        }
    }
}
