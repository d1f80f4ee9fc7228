//! Neighbours of a namespace: what ARP and neighbour discovery found, and static ones.
//!
//! Neighbours set by hueplane are permanent and carry the protocol number [`protocol::OURS`]; no other is
//! ever removed.

use std::net::IpAddr;

use hue_wire::Mac;

pub use crate::netlink::Neighbour;

use crate::error::HostError;
use crate::netlink::{self, Dump, Failure, Object, Request, Socket, neighbour_state, protocol};

/// `NDA_PROTOCOL`, since Linux 5.2.
const PROTOCOL: u16 = 12;
/// `NTF_USE`: treat the neighbour as just used.
const USE: u8 = 1;

/// All neighbours in the socket's namespace.
///
/// # Errors
/// If the system call fails.
pub fn list(socket: &mut Socket) -> Result<Vec<Neighbour>, HostError> {
    socket.dump_all([Dump::Neighbours4, Dump::Neighbours6], |message| match message.notice()?.object {
        Object::Neighbour(neighbour) => Some(neighbour),
        _ => None,
    })
}

/// Sets permanent neighbours (interface, address, MAC address), replacing the kernel's entries. Returns those
/// that the kernel rejected.
///
/// # Errors
/// If the socket fails.
pub fn set<'a>(
    socket: &mut Socket,
    neighbours: impl IntoIterator<Item = &'a (u32, IpAddr, Mac)>,
) -> Result<Vec<Failure>, HostError> {
    let flags = libc::NLM_F_CREATE | libc::NLM_F_REPLACE;
    socket.execute_all(neighbours.into_iter().map(|(link, address, mac)| {
        let what = format!("set neighbour {address} to {mac}");
        message(what, libc::RTM_NEWNEIGH, flags, *link, *address, neighbour_state::PERMANENT, 0)
            .bytes(libc::NDA_LLADDR, &mac.0)
            .u8(PROTOCOL, protocol::OURS)
    }))
}

/// Removes neighbours (interface, address). Returns those that the kernel rejected; `ENOENT` means that it
/// did not exist.
///
/// # Errors
/// If the socket fails.
pub fn remove<'a>(
    socket: &mut Socket,
    neighbours: impl IntoIterator<Item = &'a (u32, IpAddr)>,
) -> Result<Vec<Failure>, HostError> {
    socket.execute_all(neighbours.into_iter().map(|(link, address)| {
        let what = format!("remove neighbour {address}");
        message(what, libc::RTM_DELNEIGH, 0, *link, *address, 0, 0)
    }))
}

/// A request that makes the kernel resolve a neighbour as if it had been used: an unknown one is resolved, a
/// stale one is probed. For [`Socket::send`] or [`Socket::execute`].
#[must_use]
pub fn probe(link: u32, address: impl Into<IpAddr>) -> Request {
    let address = address.into();
    let flags = libc::NLM_F_CREATE;
    message(format!("probe neighbour {address}"), libc::RTM_NEWNEIGH, flags, link, address, 0, USE)
}

/// `ndmsg`: family u8, pads, index i32, state u16, flags u8, type u8.
fn message(
    what: String,
    kind: u16,
    flags: i32,
    link: u32,
    address: IpAddr,
    state: u16,
    marks: u8,
) -> Request {
    let mut header = [0; 12];
    header[0] = netlink::family(address);
    header[4..8].copy_from_slice(&link.to_ne_bytes());
    header[8..10].copy_from_slice(&state.to_ne_bytes());
    header[10] = marks;
    Request::new(what, kind, flags, &header).address(libc::NDA_DST, address)
}
