//! System calls that several ports share, with errors as `io::Error`. All of them act in the network namespace of the
//! calling thread.

#![allow(unsafe_code)]

use std::ffi::c_ulong;
use std::io;
use std::mem::{MaybeUninit, size_of};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::fs::MetadataExt;

/// The return value of a system call, or its error.
pub(crate) fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// The same for calls that return a size.
pub(crate) fn check_size(result: isize) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}

/// Takes ownership of a descriptor that a system call has just returned.
pub(crate) fn own(result: libc::c_int) -> io::Result<OwnedFd> {
    let fd = check(result)?;
    // SAFETY: the kernel has just returned this descriptor, and nothing else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// A socket, closed on exec and non-blocking.
pub(crate) fn socket(family: i32, kind: i32, protocol: i32) -> io::Result<OwnedFd> {
    // SAFETY: takes numbers only.
    own(unsafe { libc::socket(family, kind | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK, protocol) })
}

/// Sets a socket option from a plain value.
pub(crate) fn set_option<T: Copy>(fd: &OwnedFd, level: i32, name: i32, value: &T) -> io::Result<()> {
    let size = size_of::<T>() as libc::socklen_t;
    // SAFETY: the pointer is to a `T` of `size` bytes, which the kernel only reads.
    check(unsafe { libc::setsockopt(fd.as_raw_fd(), level, name, std::ptr::from_ref(value).cast(), size) })?;
    Ok(())
}

/// Reads a socket option into a plain value; bytes that the kernel does not write are zero.
///
/// Every bit pattern must be a valid `T`: integers and C structures of them.
pub(crate) fn option<T: Copy>(fd: &OwnedFd, level: i32, name: i32) -> io::Result<T> {
    let mut value = MaybeUninit::<T>::zeroed();
    let mut size = size_of::<T>() as libc::socklen_t;
    // SAFETY: the pointer is to `size` writable bytes; the kernel writes no more.
    check(unsafe {
        libc::getsockopt(fd.as_raw_fd(), level, name, value.as_mut_ptr().cast(), &raw mut size)
    })?;
    // SAFETY: zeroed or written by the kernel, and any bytes are a valid `T` (see above).
    Ok(unsafe { value.assume_init() })
}

/// An `ioctl` whose argument is a structure that the kernel reads and may write.
pub(crate) fn ioctl<T>(fd: RawFd, request: c_ulong, argument: &mut T) -> io::Result<i32> {
    // SAFETY: the callers in this crate pass each request its own structure.
    check(unsafe { libc::ioctl(fd, request as _, std::ptr::from_mut(argument)) })
}

/// An `ioctl` whose argument is a number.
pub(crate) fn ioctl_number(fd: RawFd, request: c_ulong, argument: c_ulong) -> io::Result<i32> {
    // SAFETY: the argument is not a pointer.
    check(unsafe { libc::ioctl(fd, request as _, argument) })
}

/// An interface request with the name filled in.
///
/// # Errors
/// `InvalidInput` when the name is empty, has a zero byte or is longer than 15 bytes.
pub(crate) fn request(name: &str) -> io::Result<libc::ifreq> {
    let bytes = name.as_bytes();
    if bytes.is_empty() || bytes.len() >= libc::IFNAMSIZ || bytes.contains(&0) {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    }
    // SAFETY: a C structure of integers, characters and a pointer: all zero is valid.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(bytes) {
        *to = *from as libc::c_char;
    }
    Ok(request)
}

/// Whether a descriptor is that of the calling thread's network namespace.
pub(crate) fn is_own_network_namespace(fd: OwnedFd) -> io::Result<bool> {
    let identity = |file: std::fs::Metadata| (file.dev(), file.ino());
    let own = std::fs::metadata("/proc/thread-self/ns/net")?;
    Ok(identity(std::fs::File::from(fd).metadata()?) == identity(own))
}

/// The kernel's data on an interface.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Interface {
    /// Its index.
    pub(crate) index: u32,
    /// Its MTU, bytes without the Ethernet header.
    pub(crate) mtu: u32,
}

/// Looks an interface up by name.
pub(crate) fn interface(name: &str) -> io::Result<Interface> {
    let socket = socket(libc::AF_INET, libc::SOCK_DGRAM, 0)?;
    let mut asked = request(name)?;
    ioctl(socket.as_raw_fd(), libc::SIOCGIFINDEX as c_ulong, &mut asked)?;
    // SAFETY: SIOCGIFINDEX fills this member.
    let index = unsafe { asked.ifr_ifru.ifru_ifindex };
    ioctl(socket.as_raw_fd(), libc::SIOCGIFMTU as c_ulong, &mut asked)?;
    // SAFETY: SIOCGIFMTU fills this member.
    let mtu = unsafe { asked.ifr_ifru.ifru_mtu };
    Ok(Interface { index: index as u32, mtu: mtu as u32 })
}

/// The flags of an interface (`IFF_UP` and others).
pub(crate) fn flags(name: &str) -> io::Result<i32> {
    let socket = socket(libc::AF_INET, libc::SOCK_DGRAM, 0)?;
    let mut asked = request(name)?;
    ioctl(socket.as_raw_fd(), libc::SIOCGIFFLAGS as c_ulong, &mut asked)?;
    // SAFETY: SIOCGIFFLAGS fills this member.
    Ok(i32::from(unsafe { asked.ifr_ifru.ifru_flags }))
}

/// `struct ethtool_channels`.
#[repr(C)]
#[derive(Default)]
struct Channels {
    command: u32,
    max: [u32; 4],
    rx: u32,
    tx: u32,
    other: u32,
    combined: u32,
}

const SIOCETHTOOL: c_ulong = 0x8946;
const ETHTOOL_GCHANNELS: u32 = 0x3c;

/// Number of receive queues of an interface; 1 where the driver does not report it.
pub(crate) fn receive_queues(name: &str) -> io::Result<u32> {
    let socket = socket(libc::AF_INET, libc::SOCK_DGRAM, 0)?;
    let mut channels = Channels { command: ETHTOOL_GCHANNELS, ..Channels::default() };
    let mut asked = request(name)?;
    asked.ifr_ifru.ifru_data = (&raw mut channels).cast();
    match ioctl(socket.as_raw_fd(), SIOCETHTOOL, &mut asked) {
        Ok(_) => Ok((channels.rx + channels.combined).max(1)),
        Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => Ok(1),
        Err(error) => Err(error),
    }
}

/// An event descriptor, non-blocking.
pub(crate) fn eventfd() -> io::Result<OwnedFd> {
    // SAFETY: takes numbers only.
    own(unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) })
}

/// Makes an event descriptor readable.
pub(crate) fn signal(fd: BorrowedFd<'_>) {
    let one = 1u64;
    // SAFETY: reads eight bytes of a local. It fails only when the counter is full, and then it is readable already.
    unsafe { libc::write(fd.as_raw_fd(), (&raw const one).cast(), 8) };
}

/// Makes an event descriptor unreadable again.
pub(crate) fn clear(fd: BorrowedFd<'_>) {
    let mut count = 0u64;
    // SAFETY: writes eight bytes to a local. It fails if the descriptor was not readable.
    unsafe { libc::read(fd.as_raw_fd(), (&raw mut count).cast(), 8) };
}

/// Keeps an interface in promiscuous mode while the returned socket is open. The socket receives nothing.
pub(crate) fn promiscuous(interface: u32) -> io::Result<OwnedFd> {
    let socket = socket(libc::AF_PACKET, libc::SOCK_RAW, 0)?;
    join_promiscuous(&socket, interface)?;
    Ok(socket)
}

/// Keeps an interface in promiscuous mode while this packet socket is open.
pub(crate) fn join_promiscuous(socket: &OwnedFd, interface: u32) -> io::Result<()> {
    let membership = libc::packet_mreq {
        mr_ifindex: interface as i32,
        mr_type: libc::PACKET_MR_PROMISC as u16,
        mr_alen: 0,
        mr_address: [0; 8],
    };
    set_option(socket, libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, &membership)
}

/// Wakes the kernel to process a ring that was filled.
pub(crate) fn poke(socket: BorrowedFd<'_>) {
    // SAFETY: no buffer and no address are given. An error shows up at the next send or check of the socket.
    unsafe {
        libc::recvfrom(
            socket.as_raw_fd(),
            std::ptr::null_mut(),
            0,
            libc::MSG_DONTWAIT,
            std::ptr::null_mut(),
            std::ptr::null_mut(),
        )
    };
}

/// One descriptor that is readable when any of several others is.
pub(crate) struct Readiness(OwnedFd);

impl Readiness {
    pub(crate) fn of<'fd>(many: impl Iterator<Item = BorrowedFd<'fd>>) -> io::Result<Self> {
        // SAFETY: takes numbers only.
        let epoll = own(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
        for fd in many {
            let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: 0 };
            // SAFETY: both descriptors are open and `event` is a local.
            check(unsafe {
                libc::epoll_ctl(epoll.as_raw_fd(), libc::EPOLL_CTL_ADD, fd.as_raw_fd(), &raw mut event)
            })?;
        }
        Ok(Self(epoll))
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Prefetches the first bytes into the cache.
#[inline]
pub(crate) fn prefetch(bytes: &[u8]) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a hint; it never faults.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(bytes.as_ptr().cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = bytes;
}

/// Requests a larger socket buffer: above the system's limit if permitted, otherwise up to the limit.
pub(crate) fn grow_buffer(socket: &OwnedFd, force: i32, ask: i32, bytes: i32) {
    if set_option(socket, libc::SOL_SOCKET, force, &bytes).is_err() {
        // Best effort: a smaller buffer drops earlier, which is counted.
        let _ = set_option(socket, libc::SOL_SOCKET, ask, &bytes);
    }
}
