//! The attachment of an XDP program to an interface that another process of ours has made.
//!
//! Flow: the daemon that takes another's place finds the [`Attachment`]s of its ports while that one forwards → the
//! other closes its ports → each attachment gets the new daemon's program. The interface always has a program. For
//! taking one away and attaching another, the kernel waits twice (10 to 20 ms each), and some network cards reset their
//! queues. Source: `bpf(2)`, BPF_LINK_UPDATE.

#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use aya::programs::links::LinkType;
use aya::programs::{loaded_links, loaded_programs};

use super::program::NAME;
use crate::sys;

/// Commands of `bpf(2)`.
const LINK_UPDATE: libc::c_int = 29;
const LINK_GET_FD_BY_ID: libc::c_int = 30;

/// See the head of this file. While one exists, its program stays attached.
#[derive(Debug)]
pub struct Attachment(OwnedFd);

impl Attachment {
    /// Finds the attachment of the program with this id. `None` if there is none, or if the program is not one of this
    /// crate.
    ///
    /// # Errors
    /// If the kernel refuses; this needs CAP_SYS_ADMIN.
    pub fn of_program(id: u32) -> io::Result<Option<Self>> {
        let ours = loaded_programs()
            .filter_map(Result::ok)
            .any(|program| program.id() == id && program.name_as_str() == Some(NAME));
        if !ours {
            return Ok(None);
        }
        let link = loaded_links()
            .filter_map(Result::ok)
            .find(|link| link.program_id() == id && matches!(link.link_type(), Ok(LinkType::Xdp)));
        let Some(link) = link else { return Ok(None) };
        // The id, and two fields that are zero.
        Ok(Some(Self(sys::own(bpf(LINK_GET_FD_BY_ID, &[link.id(), 0, 0])?)?)))
    }

    /// Replaces the program. No frame is handled by neither.
    pub(super) fn replace(&self, program: BorrowedFd<'_>) -> io::Result<()> {
        let numbers = [self.0.as_fd(), program].map(|fd| fd.as_raw_fd().unsigned_abs());
        // The attachment, the program, flags, and the program expected before (only with a flag).
        bpf(LINK_UPDATE, &[numbers[0], numbers[1], 0, 0]).map(drop)
    }
}

/// `bpf(2)` with the first fields of `union bpf_attr`; the others are zero.
fn bpf<const N: usize>(command: libc::c_int, attributes: &[u32; N]) -> io::Result<libc::c_int> {
    // SAFETY: the kernel reads the given number of bytes of the live array; these commands write nothing to it.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, attributes.as_ptr(), size_of::<[u32; N]>()) };
    sys::check(i32::try_from(result).map_err(io::Error::other)?)
}
