//! Frames of an interface for AF_XDP sockets of another process, which may not load XDP programs.
//!
//! Flow: [`XdpRedirect::attach`] → the program on the interface, and its map → the other process inherits the map's descriptor and puts
//! its socket there. Invariant: the program is detached when this is dropped or the process dies (a BPF link).

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use aya::maps::Map;
use aya::programs::{Xdp, xdp::XdpMode};
use aya::{Ebpf, EbpfLoader};

use super::program::{missing, other};

static OBJECT: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/redirect.o"));
/// Name of the program, for us and for the kernel.
const NAME: &str = "redirect";

/// A program on an interface that passes frames to a socket in its map, and to Linux while there is none.
#[derive(Debug)]
pub struct XdpRedirect {
    bpf: Ebpf,
}

impl XdpRedirect {
    /// Attaches it to an interface of the namespace of this thread.
    ///
    /// # Errors
    /// If a system call fails, because the interface does not exist or has another XDP program, for example.
    pub fn attach(interface: &str) -> io::Result<Self> {
        let mut bpf = EbpfLoader::new().load(OBJECT).map_err(other)?;
        let program: &mut Xdp =
            bpf.program_mut(NAME).ok_or_else(|| missing("program"))?.try_into().map_err(other)?;
        program.load().map_err(other)?;
        program.attach(interface, XdpMode::default()).map_err(other)?;
        Ok(Self { bpf })
    }

    /// The map of sockets (`BPF_MAP_TYPE_XSKMAP`), by queue; there is one queue, 0.
    ///
    /// # Errors
    /// If there are too many open files.
    pub fn sockets(&self) -> io::Result<OwnedFd> {
        match self.bpf.map("SOCKETS") {
            Some(Map::XskMap(data)) => data.fd().as_fd().try_clone_to_owned(),
            _ => Err(missing("map SOCKETS")),
        }
    }
}
