//! A TAP device: its kernel receives the frames that we send, and we receive the frames that it sends.
//!
//! Flow: namespace's kernel ↔ TAP ↔ worker. The device is created, or an existing one is used, in the network
//! namespace of the thread that calls [`Tap::open`]; the descriptor then works from any thread. Frames carry no extra
//! header; the kernel completes checksums and cuts segments, because no offload is offered. Each packet takes one
//! system call, because TAP devices have no batches. Source: Linux `Documentation/networking/tuntap.rst`,
//! `drivers/net/tun.c`.

#![allow(unsafe_code)]

use std::ffi::c_ulong;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use crate::{Driver, DriverCounters, Ending, Packet, Pool, Port, PortError, sys};

const TUNSETIFF: c_ulong = 0x4004_54ca;
const TUNSETPERSIST: c_ulong = 0x4004_54cb;
const TUNSETOWNER: c_ulong = 0x4004_54cc;
const TUNSETCARRIER: c_ulong = 0x4004_54e2;
const TUNGETIFF: c_ulong = 0x8004_54d2;
const TUNGETDEVNETNS: c_ulong = 0x54e3;
const IFF_TAP: libc::c_short = 0x0002;
const IFF_NO_PI: libc::c_short = 0x1000;
/// Fail if the device exists: `0x8000` of an unsigned field.
const IFF_TUN_EXCL: libc::c_short = i16::MIN;

/// A TAP device, open.
pub struct Tap {
    name: String,
    fd: OwnedFd,
    counters: DriverCounters,
    /// Why the last `send` failed permanently; the next `flush` reports it.
    failure: Option<io::Error>,
}

impl Tap {
    /// Opens the TAP device `name`, or creates it if it does not exist. A persistent device stays when it is closed.
    ///
    /// # Errors
    /// `System` if permission is missing (root, or the device's owner), if another kind of interface has the name, or
    /// if another process has the device open.
    pub fn open(name: &str, persist: bool) -> Result<Self, PortError> {
        let tap = Self::request(name, IFF_TAP | IFF_NO_PI)?;
        tap.set_persistent(persist)?;
        Ok(tap)
    }

    /// Creates a TAP device that did not exist. Besides root, only the user with the number `owner` may open it: without an owner, the
    /// kernel lets every user open a persistent device. It is not persistent yet.
    ///
    /// # Errors
    /// `System` if permission is missing (root), or if an interface has the name.
    pub fn create(name: &str, owner: u32) -> Result<Self, PortError> {
        let tap = Self::request(name, IFF_TAP | IFF_NO_PI | IFF_TUN_EXCL)?;
        sys::ioctl_number(tap.fd.as_raw_fd(), TUNSETOWNER, c_ulong::from(owner))
            .map_err(|source| PortError::of(name, "set the owner of the TAP device", source))?;
        Ok(tap)
    }

    fn request(name: &str, flags: libc::c_short) -> Result<Self, PortError> {
        let wrong = |action: &'static str, hint: &'static str| {
            move |source: io::Error| match source.raw_os_error() {
                Some(libc::EPERM | libc::EACCES) => {
                    PortError::System { interface: name.to_owned(), action, source, hint: "run as root" }
                }
                _ => PortError::System { interface: name.to_owned(), action, source, hint },
            }
        };
        // SAFETY: a path that ends in a zero byte.
        let fd = sys::own(unsafe {
            libc::open(c"/dev/net/tun".as_ptr(), libc::O_RDWR | libc::O_NONBLOCK | libc::O_CLOEXEC)
        })
        .map_err(wrong("open /dev/net/tun", "load the module: modprobe tun"))?;
        let mut request =
            sys::request(name).map_err(wrong("use this name", "an interface name has 1 to 15 characters"))?;
        request.ifr_ifru.ifru_flags = flags;
        sys::ioctl(fd.as_raw_fd(), TUNSETIFF, &mut request).map_err(wrong(
            "make or open the TAP device",
            "another process may hold it, or the name belongs to another kind of interface",
        ))?;
        Ok(Self { name: name.to_owned(), fd, counters: DriverCounters::default(), failure: None })
    }

    /// The TAP device behind a descriptor that was kept open. `None` if it is no longer the device `name` of the calling
    /// thread's network namespace.
    #[must_use]
    pub fn adopt(name: &str, fd: OwnedFd) -> Option<Self> {
        let mut request = sys::request(name).ok()?;
        request.ifr_name = [0; libc::IFNAMSIZ];
        sys::ioctl(fd.as_raw_fd(), TUNGETIFF, &mut request).ok()?;
        // SAFETY: TUNGETIFF fills this member.
        let flags = unsafe { request.ifr_ifru.ifru_flags };
        let same_name = sys::request(name).ok()?.ifr_name == request.ifr_name;
        let namespace = sys::own(sys::ioctl_number(fd.as_raw_fd(), TUNGETDEVNETNS, 0).ok()?).ok()?;
        let is_tap = flags & IFF_TAP != 0 && flags & IFF_NO_PI != 0;
        let same = is_tap && same_name && sys::is_own_network_namespace(namespace).ok()?;
        same.then(|| Self { name: name.to_owned(), fd, counters: DriverCounters::default(), failure: None })
    }

    /// Its descriptor.
    #[must_use]
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// The device's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether the device stays when it is closed.
    ///
    /// # Errors
    /// `Gone` if the device was removed.
    pub fn set_persistent(&self, persistent: bool) -> Result<(), PortError> {
        sys::ioctl_number(self.fd.as_raw_fd(), TUNSETPERSIST, c_ulong::from(persistent))
            .map_err(|source| PortError::of(&self.name, "make the TAP device persistent", source))?;
        Ok(())
    }

    /// Sets the device's MAC, as the kernel at the other end sees it.
    ///
    /// # Errors
    /// `System` for a group address; `Gone` if the device was removed.
    pub fn set_mac(&self, mac: [u8; 6]) -> Result<(), PortError> {
        let wrong = |source| PortError::of(&self.name, "set the MAC", source);
        let mut request = sys::request(&self.name).map_err(wrong)?;
        let mut data = [0; 14];
        for (to, from) in data.iter_mut().zip(mac) {
            *to = from as libc::c_char;
        }
        request.ifr_ifru.ifru_hwaddr = libc::sockaddr { sa_family: libc::ARPHRD_ETHER, sa_data: data };
        sys::ioctl(self.fd.as_raw_fd(), libc::SIOCSIFHWADDR as c_ulong, &mut request).map_err(wrong)?;
        Ok(())
    }

    /// The device's MAC.
    ///
    /// # Errors
    /// `Gone` if the device was removed.
    pub fn mac(&self) -> Result<[u8; 6], PortError> {
        let wrong = |source| PortError::of(&self.name, "read the MAC", source);
        let mut request = sys::request(&self.name).map_err(wrong)?;
        sys::ioctl(self.fd.as_raw_fd(), libc::SIOCGIFHWADDR as c_ulong, &mut request).map_err(wrong)?;
        // SAFETY: SIOCGIFHWADDR fills this member.
        let data = unsafe { request.ifr_ifru.ifru_hwaddr.sa_data };
        let mut mac = [0; 6];
        for (to, from) in mac.iter_mut().zip(data) {
            *to = from as u8;
        }
        Ok(mac)
    }

    /// Another handle of the same open device, with separate counters. It is used for settings while a worker has
    /// this one.
    ///
    /// # Errors
    /// `System` if too many files are open.
    pub fn try_clone(&self) -> Result<Self, PortError> {
        let wrong = |source| PortError::of(&self.name, "share the TAP device", source);
        let fd = self.fd.try_clone().map_err(wrong)?;
        Ok(Self { name: self.name.clone(), fd, counters: DriverCounters::default(), failure: None })
    }

    /// Tells the kernel at the other end whether the wire behind the device is up.
    ///
    /// # Errors
    /// `Gone` if the device was removed.
    pub fn set_carrier(&self, up: bool) -> Result<(), PortError> {
        let mut value = libc::c_int::from(up);
        sys::ioctl(self.fd.as_raw_fd(), TUNSETCARRIER, &mut value)
            .map_err(|source| PortError::of(&self.name, "set the carrier", source))?;
        Ok(())
    }
}

/// Whether the device did not accept this packet but will accept others.
fn is_full(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::ENOBUFS | libc::ENOMEM | libc::EINTR))
}

impl Port for Tap {
    fn driver(&self) -> Driver {
        Driver::Tap
    }

    fn ending(&self) -> Ending {
        Ending::SlowDrop
    }

    fn receive(
        &mut self,
        pool: &mut Pool,
        now_ns: u64,
        into: &mut Vec<Packet>,
        limit: usize,
    ) -> Result<usize, PortError> {
        let room = pool.frame_bytes_max() as usize;
        let mut received = 0;
        while received < limit {
            let Some(slot) = pool.take() else { break };
            let start = pool.start(&slot);
            let buffer = &mut pool.bytes_mut()[start as usize..start as usize + room];
            // SAFETY: `buffer` is `room` writable bytes.
            let read =
                sys::check_size(unsafe { libc::read(self.fd.as_raw_fd(), buffer.as_mut_ptr().cast(), room) });
            match read {
                // A frame that fills the slot may have been truncated by the kernel, which does not report this.
                Ok(len) if len < room => {
                    self.counters.received_bytes += len as u64;
                    into.push(Packet { slot, start, len: len as u32, time_ns: now_ns, class: 0 });
                    received += 1;
                }
                Ok(_) => {
                    pool.give(slot);
                    self.counters.ring_full += 1;
                }
                Err(error) => {
                    pool.give(slot);
                    if is_full(&error) {
                        break;
                    }
                    self.counters.received_packets += received as u64;
                    return Err(PortError::of(&self.name, "read the TAP device", error));
                }
            }
        }
        self.counters.received_packets += received as u64;
        Ok(received)
    }

    fn send(&mut self, pool: &mut Pool, packet: Packet) -> Result<(), Packet> {
        let frame = packet.bytes(pool);
        // SAFETY: reads the bytes of `frame` only.
        let wrote =
            sys::check_size(unsafe { libc::write(self.fd.as_raw_fd(), frame.as_ptr().cast(), frame.len()) });
        match wrote {
            Ok(_) => {
                self.counters.sent_packets += 1;
                self.counters.sent_bytes += u64::from(packet.len);
            }
            Err(error) if is_full(&error) => return Err(packet),
            Err(error) => {
                self.counters.send_failed += 1;
                // If the kernel rejects a frame (for example one shorter than a header), the device has not failed.
                if error.raw_os_error() != Some(libc::EINVAL) {
                    self.failure = Some(error);
                }
            }
        }
        pool.give(packet.slot);
        Ok(())
    }

    fn flush(&mut self, _pool: &mut Pool) -> Result<(), PortError> {
        match self.failure.take() {
            None => Ok(()),
            Some(error) => Err(PortError::of(&self.name, "write to the TAP device", error)),
        }
    }

    fn close(&mut self, _pool: &mut Pool) {}

    fn readiness(&self) -> Option<BorrowedFd<'_>> {
        Some(self.fd.as_fd())
    }

    fn counters(&self) -> DriverCounters {
        self.counters
    }
}
