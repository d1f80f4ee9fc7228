//! Addresses of interfaces, of IPv4 and IPv6.
//!
//! Addresses set by hueplane carry the protocol number [`protocol::OURS`]; no other address is ever removed.
//! Setting an existing address, or removing one that does not exist, is not an error.

use std::net::{IpAddr, Ipv4Addr};

use nix::errno::Errno;

pub use crate::netlink::{Address, AddressState};

use crate::error::HostError;
use crate::netlink::{self, Dump, Object, Request, Socket, protocol};

/// `IFA_PROTO`, since Linux 5.18; older kernels ignore it.
const PROTOCOL: u16 = 11;

/// All addresses in the socket's namespace.
///
/// # Errors
/// If the system call fails.
pub fn list(socket: &mut Socket) -> Result<Vec<Address>, HostError> {
    socket.dump_all([Dump::Addresses4, Dump::Addresses6], |message| match message.notice()?.object {
        Object::Address(address) => Some(address),
        _ => None,
    })
}

/// Adds an address to an interface: an IPv4 address with the broadcast address of its link, an IPv6 address without
/// duplicate address detection.
///
/// Detection takes a second, during which a router cannot be reached, and it would let any host on the link take the
/// router's address away by claiming it. IPv4 has no detection either.
///
/// # Errors
/// If the interface does not exist, or the system call fails.
pub fn add(socket: &mut Socket, link: u32, address: impl Into<IpAddr>, len: u8) -> Result<(), HostError> {
    let address = address.into();
    let what = format!("set address {address}/{len}");
    let flags = libc::NLM_F_CREATE | libc::NLM_F_EXCL;
    let mut request =
        message(what, libc::RTM_NEWADDR, flags, link, address, len).u8(PROTOCOL, protocol::OURS);
    match address {
        IpAddr::V4(address) if len <= 30 => {
            let last = address.to_bits() | u32::MAX.checked_shr(len.into()).unwrap_or(0);
            request = request.address(libc::IFA_BROADCAST, Ipv4Addr::from_bits(last));
        }
        IpAddr::V4(_) => {}
        IpAddr::V6(_) => request = request.u32(libc::IFA_FLAGS, libc::IFA_F_NODAD),
    }
    match socket.execute(request) {
        Err(error) if error.errno() == Some(Errno::EEXIST) => Ok(()),
        done => done,
    }
}

/// Removes an address from an interface. Returns whether it existed.
///
/// # Errors
/// If the system call fails.
pub fn remove(
    socket: &mut Socket,
    link: u32,
    address: impl Into<IpAddr>,
    len: u8,
) -> Result<bool, HostError> {
    let address = address.into();
    let what = format!("remove address {address}/{len}");
    match socket.execute(message(what, libc::RTM_DELADDR, 0, link, address, len)) {
        Ok(()) => Ok(true),
        Err(error) if error.is_missing() || error.errno() == Some(Errno::EADDRNOTAVAIL) => Ok(false),
        Err(error) => Err(error),
    }
}

/// `ifaddrmsg`: family, prefix length, flags, scope u8, index u32.
fn message(what: String, kind: u16, flags: i32, link: u32, address: IpAddr, len: u8) -> Request {
    let mut header = [0; 8];
    header[0] = netlink::family(address);
    header[1] = len;
    header[3] = if address.is_loopback() { libc::RT_SCOPE_HOST } else { libc::RT_SCOPE_UNIVERSE };
    header[4..].copy_from_slice(&link.to_ne_bytes());
    Request::new(what, kind, flags, &header)
        .address(libc::IFA_LOCAL, address)
        .address(libc::IFA_ADDRESS, address)
}
