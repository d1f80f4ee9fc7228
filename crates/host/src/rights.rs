//! Passes descriptors to another process over a Unix stream socket. Source: unix(7), `SCM_RIGHTS`.

#![allow(unsafe_code)] // descriptors that a system call has just made

use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use nix::sys::socket::{ControlMessage, ControlMessageOwned, MsgFlags, recvmsg, sendmsg};

/// Most descriptors of one message: the kernel's limit.
pub const DESCRIPTORS_MAX: usize = 253;

/// Sends descriptors, at least one and at most [`DESCRIPTORS_MAX`].
///
/// # Errors
/// The kernel's error.
pub fn send(socket: BorrowedFd<'_>, fds: &[BorrowedFd<'_>]) -> io::Result<()> {
    let fds: Vec<RawFd> = fds.iter().map(AsRawFd::as_raw_fd).collect();
    let rights = [ControlMessage::ScmRights(&fds)];
    // Descriptors need at least one byte to travel with.
    sendmsg::<()>(socket.as_raw_fd(), &[IoSlice::new(&[0])], &rights, MsgFlags::MSG_NOSIGNAL, None)?;
    Ok(())
}

/// Receives the descriptors of one [`send`].
///
/// # Errors
/// The kernel's error; `UnexpectedEof` if the other end is closed; `InvalidData` if there are more than
/// [`DESCRIPTORS_MAX`].
pub fn receive(socket: BorrowedFd<'_>) -> io::Result<Vec<OwnedFd>> {
    let mut byte = [0];
    let mut space = nix::cmsg_space!([RawFd; DESCRIPTORS_MAX]);
    let mut into = [IoSliceMut::new(&mut byte)];
    let received =
        recvmsg::<()>(socket.as_raw_fd(), &mut into, Some(&mut space), MsgFlags::MSG_CMSG_CLOEXEC)?;
    let mut found = Vec::new();
    for message in received.cmsgs()? {
        if let ControlMessageOwned::ScmRights(fds) = message {
            // SAFETY: the kernel has just made these descriptors, and nothing else has them.
            found.extend(fds.into_iter().map(|raw| unsafe { OwnedFd::from_raw_fd(raw) }));
        }
    }
    if received.flags.contains(MsgFlags::MSG_CTRUNC) {
        return Err(io::Error::from(io::ErrorKind::InvalidData));
    }
    if received.bytes == 0 { Err(io::Error::from(io::ErrorKind::UnexpectedEof)) } else { Ok(found) }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn descriptors_arrive_in_their_order_before_later_bytes() {
        let (mut one, mut other) = UnixStream::pair().unwrap();
        let pairs: Vec<_> = (0..100).map(|_| UnixStream::pair().unwrap()).collect();
        let ends: Vec<_> = pairs.iter().map(|(_, far)| far.as_fd()).collect();
        send(one.as_fd(), &ends).unwrap();
        one.write_all(b"later").unwrap();
        let found = receive(other.as_fd()).unwrap();
        assert_eq!(found.len(), 100);
        for (number, (fd, (near, _))) in (0u8..).zip(found.into_iter().zip(&pairs)) {
            (&*near).write_all(&[number]).unwrap();
            let mut byte = [0];
            UnixStream::from(fd).read_exact(&mut byte).unwrap();
            assert_eq!(byte, [number]);
        }
        let mut later = [0; 5];
        other.read_exact(&mut later).unwrap();
        assert_eq!(&later, b"later");
        drop(one);
        assert_eq!(receive(other.as_fd()).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }
}
