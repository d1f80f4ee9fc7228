//! Interfaces: veth pairs, bridges, their state, and notifications of changes.
//!
//! Flow: callers → **[`Links`]** → netlink → kernel. A [`Links`] belongs to one namespace permanently.
//! Deleting an interface that does not exist, or setting an existing value, is not an error.

use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use hue_wire::Mac;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

pub use crate::netlink::Link;

use crate::error::HostError;
use crate::netlink::{Dump, Groups, Incoming, Message, Object, Received, Request, Socket};
use crate::netns::Namespace;

/// Group of interfaces that are about to be deleted together; see [`Links::delete_together`].
pub const DELETE_GROUP: u32 = 0x6875_6501;

/// Longest interface name, in bytes.
pub const NAME_BYTES_MAX: usize = 15;

const KIND: u16 = 1;
const DATA: u16 = 2;
const SLAVE_DATA: u16 = 5;
const SLAVE_KIND: u16 = 4;
const VETH_PEER: u16 = 1;
const PORT_ISOLATED: u16 = 33;
const BRIDGE_SNOOPING: u16 = 23;
const UP: u32 = libc::IFF_UP as u32;
const NO_ARP: u32 = libc::IFF_NOARP as u32;

/// The interfaces of one namespace.
#[derive(Debug)]
pub struct Links {
    socket: Socket,
    namespace: Option<String>,
}

impl Links {
    /// Interfaces of the calling thread's namespace.
    ///
    /// # Errors
    /// If the system call fails.
    pub fn here() -> Result<Self, HostError> {
        Ok(Self { socket: Socket::open(Groups::NONE)?, namespace: None })
    }

    /// Interfaces of a namespace.
    ///
    /// # Errors
    /// If the system call fails.
    pub fn inside(namespace: &Namespace) -> Result<Self, HostError> {
        let socket = Socket::open_in(namespace, Groups::NONE)?;
        Ok(Self { socket, namespace: Some(namespace.name().to_owned()) })
    }

    /// The socket, for other requests in the same namespace.
    pub fn socket(&mut self) -> &mut Socket {
        &mut self.socket
    }

    /// All interfaces, sorted by index.
    ///
    /// # Errors
    /// If the system call fails.
    pub fn list(&mut self) -> Result<Vec<Link>, HostError> {
        let mut links = self.socket.dump(Dump::Links, link)?;
        links.sort_by_key(|link| link.index);
        Ok(links)
    }

    /// The interface with this name, if it exists.
    ///
    /// # Errors
    /// If the system call fails.
    pub fn find(&mut self, name: &str) -> Result<Option<Link>, HostError> {
        let what = format!("look for interface {name:?}");
        let request = message(what, libc::RTM_GETLINK, 0, 0, 0, 0).text(libc::IFLA_IFNAME, checked(name)?);
        match self.ask(request) {
            Ok(found) => Ok(found),
            Err(error) if error.is_missing() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The interface with this name.
    ///
    /// # Errors
    /// [`HostError::NoInterface`], or if the system call fails.
    pub fn get(&mut self, name: &str) -> Result<Link, HostError> {
        self.find(name)?.ok_or_else(|| self.missing(name))
    }

    /// The index of the interface with this name.
    ///
    /// # Errors
    /// [`HostError::NoInterface`], or if the system call fails.
    pub fn index_of(&mut self, name: &str) -> Result<u32, HostError> {
        self.get(name).map(|link| link.index)
    }

    /// Creates a veth pair: `a` in this namespace, `b` in this or another one. Both are down.
    ///
    /// # Errors
    /// `EEXIST` if one of them exists, or if a name is invalid or the system call fails.
    pub fn create_veth(&mut self, a: &str, b: &str, b_in: Option<&Namespace>) -> Result<(), HostError> {
        use std::os::fd::AsRawFd;
        let (a, b) = (checked(a)?, checked(b)?);
        let request = create(format!("create veth {a} and {b}")).text(libc::IFLA_IFNAME, a).nested(
            libc::IFLA_LINKINFO,
            |info| {
                info.text(KIND, "veth").nested(DATA, |data| {
                    data.nested_after(VETH_PEER, &[0; 16], |peer| {
                        let peer = peer.text(libc::IFLA_IFNAME, b);
                        match b_in {
                            Some(namespace) => {
                                let fd = namespace.as_fd().as_raw_fd();
                                peer.u32(libc::IFLA_NET_NS_FD, fd.unsigned_abs())
                            }
                            None => peer,
                        }
                    })
                })
            },
        );
        self.socket.execute(request)
    }

    /// Creates a bridge that forwards at once and sends no packets of its own: without spanning tree and
    /// multicast snooping. The bridge is down.
    ///
    /// # Errors
    /// `EEXIST` if it exists, or if the name is invalid or the system call fails.
    pub fn create_bridge(&mut self, name: &str) -> Result<(), HostError> {
        let request = create(format!("create bridge {name}"))
            .text(libc::IFLA_IFNAME, checked(name)?)
            .nested(libc::IFLA_LINKINFO, |info| {
                info.text(KIND, "bridge").nested(DATA, |data| data.u8(BRIDGE_SNOOPING, 0))
            });
        self.socket.execute(request)
    }

    /// Adds an interface to a bridge, or removes it from its bridge.
    ///
    /// # Errors
    /// If one of them does not exist, or the system call fails.
    pub fn set_master(&mut self, name: &str, bridge: Option<&str>) -> Result<(), HostError> {
        let bridge_index = bridge.map_or(Ok(0), |bridge| self.index_of(bridge))?;
        let what = format!("add {name} to {}", bridge.unwrap_or("no bridge"));
        self.set(name, what, |request| request.u32(libc::IFLA_MASTER, bridge_index))
    }

    /// Isolates a port of a bridge: it exchanges frames only with ports that are not isolated.
    ///
    /// # Errors
    /// If the interface does not exist or belongs to no bridge, or the system call fails.
    pub fn set_isolated(&mut self, name: &str, isolated: bool) -> Result<(), HostError> {
        self.set(name, format!("isolate bridge port {name}"), |request| {
            request.nested(libc::IFLA_LINKINFO, |info| {
                info.text(SLAVE_KIND, "bridge")
                    .nested(SLAVE_DATA, |data| data.u8(PORT_ISOLATED, isolated.into()))
            })
        })
    }

    /// Brings an interface up or down.
    ///
    /// # Errors
    /// If the interface does not exist, or the system call fails.
    pub fn set_up(&mut self, name: &str, up: bool) -> Result<(), HostError> {
        let index = self.index_of(name)?;
        let what = format!("bring {name} {}", if up { "up" } else { "down" });
        self.socket.execute(message(what, libc::RTM_NEWLINK, 0, index, if up { UP } else { 0 }, UP))
    }

    /// Switches the resolution of neighbours by ARP and neighbor discovery on or off. Without it, frames have the
    /// interface's own MAC address as destination.
    ///
    /// # Errors
    /// If the interface does not exist, or the system call fails.
    pub fn set_arp(&mut self, name: &str, on: bool) -> Result<(), HostError> {
        let index = self.index_of(name)?;
        let what = format!("switch ARP of {name} {}", if on { "on" } else { "off" });
        let flags = if on { 0 } else { NO_ARP };
        self.socket.execute(message(what, libc::RTM_NEWLINK, 0, index, flags, NO_ARP))
    }

    /// Sets the MAC address of an interface.
    ///
    /// # Errors
    /// If the interface does not exist, or the system call fails.
    pub fn set_mac(&mut self, name: &str, mac: Mac) -> Result<(), HostError> {
        self.set(name, format!("set the MAC address of {name} to {mac}"), |request| {
            request.bytes(libc::IFLA_ADDRESS, &mac.0)
        })
    }

    /// Sets the MTU of an interface, in bytes of IP packet.
    ///
    /// # Errors
    /// If the interface does not exist or does not support the MTU, or the system call fails.
    pub fn set_mtu(&mut self, name: &str, mtu: u32) -> Result<(), HostError> {
        self.set(name, format!("set the MTU of {name} to {mtu}"), |request| request.u32(libc::IFLA_MTU, mtu))
    }

    /// Sets the alias of an interface, a free text; an empty one removes it.
    ///
    /// # Errors
    /// If the interface does not exist, or the system call fails.
    pub fn set_alias(&mut self, name: &str, alias: &str) -> Result<(), HostError> {
        self.set(name, format!("set the alias of {name}"), |request| {
            request.bytes(libc::IFLA_IFALIAS, alias.as_bytes())
        })
    }

    /// Moves an interface to another namespace. It is down afterwards.
    ///
    /// # Errors
    /// If the interface does not exist or cannot be moved, or the system call fails.
    pub fn move_to(&mut self, name: &str, namespace: &Namespace) -> Result<(), HostError> {
        use std::os::fd::AsRawFd;
        let fd = namespace.as_fd().as_raw_fd().unsigned_abs();
        self.set(name, format!("move {name} into {:?}", namespace.name()), |request| {
            request.u32(libc::IFLA_NET_NS_FD, fd)
        })
    }

    /// Renames an interface. Old kernels require it to be down.
    ///
    /// # Errors
    /// If the interface does not exist, the new name is in use or invalid, or the system call fails.
    pub fn rename(&mut self, name: &str, to: &str) -> Result<(), HostError> {
        let to = checked(to)?;
        self.set(name, format!("rename {name} to {to}"), |request| request.text(libc::IFLA_IFNAME, to))
    }

    /// Deletes an interface; for a veth, both ends of the pair. Returns whether it existed.
    ///
    /// # Errors
    /// If the system call fails.
    pub fn delete(&mut self, name: &str) -> Result<bool, HostError> {
        let request = message(format!("delete {name}"), libc::RTM_DELLINK, 0, 0, 0, 0)
            .text(libc::IFLA_IFNAME, checked(name)?);
        match self.socket.execute(request) {
            Ok(()) => Ok(true),
            Err(error) if error.is_missing() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Deletes several interfaces together. The kernel waits until an interface is no longer used (10 to 40
    /// ms, during which nobody else can change an interface); this way, it waits only once. The interfaces
    /// are moved to the group [`DELETE_GROUP`], and every interface in that group is deleted. Interfaces that
    /// do not exist are ignored.
    ///
    /// # Errors
    /// If the system call fails.
    pub fn delete_together(&mut self, names: &[&str]) -> Result<(), HostError> {
        let mut grouped = false;
        for name in names {
            let what = format!("move {name} to the group of interfaces to delete");
            match self.set(name, what, |request| request.u32(libc::IFLA_GROUP, DELETE_GROUP)) {
                Ok(()) => grouped = true,
                Err(error) if error.is_missing() => {}
                Err(error) => return Err(error),
            }
        }
        if !grouped {
            return Ok(());
        }
        let what = format!("delete {}", names.join(", "));
        let request = message(what, libc::RTM_DELLINK, 0, 0, 0, 0).u32(libc::IFLA_GROUP, DELETE_GROUP);
        match self.socket.execute(request) {
            Err(error) if !error.is_missing() => Err(error),
            _ => Ok(()),
        }
    }

    fn set(
        &mut self,
        name: &str,
        what: String,
        change: impl FnOnce(Request) -> Request,
    ) -> Result<(), HostError> {
        let index = self.index_of(name)?;
        self.socket.execute(change(message(what, libc::RTM_NEWLINK, 0, index, 0, 0)))
    }

    fn missing(&self, name: &str) -> HostError {
        HostError::NoInterface { name: name.to_owned(), namespace: self.namespace.clone() }
    }

    /// Sends a request that is answered with one link.
    fn ask(&mut self, request: Request) -> Result<Option<Link>, HostError> {
        let what = request.what().to_owned();
        let asked = self.socket.send(request)?;
        let (mut found, mut failed, mut answered) = (None, None, false);
        while !answered {
            let received = self.socket.wait(|incoming| match incoming {
                Incoming::Message(message) if message.sequence == asked => {
                    (found, answered) = (link(message), true);
                }
                Incoming::Failed { sequence, errno, .. } if sequence == asked => {
                    (failed, answered) = (Some(errno), true);
                }
                _ => {}
            })?;
            if received == Received::Overrun {
                failed = Some(Errno::ENOBUFS);
                break;
            }
        }
        failed.map_or(Ok(found), |errno| Err(HostError::system(what, errno)))
    }
}

/// A change of an interface.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LinkEvent {
    /// The interface is new or has changed.
    Present(Link),
    /// The interface was removed.
    Gone(Link),
    /// Events were lost because there were too many: list all interfaces again.
    Lost,
}

/// Reports changes of the interfaces of a namespace.
#[derive(Debug)]
pub struct Watch {
    socket: Socket,
}

impl Watch {
    /// Watches the calling thread's namespace. Also returns the current interfaces.
    ///
    /// # Errors
    /// If the system call fails.
    pub fn here() -> Result<(Self, Vec<Link>), HostError> {
        // Subscribe before listing, so that no change is missed.
        let socket = Socket::open(Groups::LINK)?;
        let links = Links::here()?.list()?;
        socket.set_nonblocking(true)?;
        Ok((Self { socket }, links))
    }

    /// Watches a namespace.
    ///
    /// # Errors
    /// If the system call fails.
    pub fn inside(namespace: &Namespace) -> Result<(Self, Vec<Link>), HostError> {
        namespace.run(Self::here)?
    }

    /// Waits for events, up to a timeout. Empty if nothing happened.
    ///
    /// # Errors
    /// If the system call fails.
    pub fn next(&mut self, timeout: Duration) -> Result<Vec<LinkEvent>, HostError> {
        let milliseconds = PollTimeout::try_from(timeout).unwrap_or(PollTimeout::MAX);
        match poll(&mut [PollFd::new(self.socket.as_fd(), PollFlags::POLLIN)], milliseconds) {
            Ok(_) | Err(Errno::EINTR) => self.pending(),
            Err(errno) => Err(HostError::system("wait for changes of interfaces", errno)),
        }
    }

    /// Events that are available now.
    ///
    /// # Errors
    /// If the system call fails.
    pub fn pending(&mut self) -> Result<Vec<LinkEvent>, HostError> {
        /// Limits the duration of a call if changes keep arriving.
        const READS_MAX: usize = 64;
        let mut events = Vec::new();
        for _ in 0..READS_MAX {
            let received = self.socket.receive(|incoming| {
                let Incoming::Message(message) = incoming else { return };
                if let Some(notice) = message.notice()
                    && let Object::Link(link) = notice.object
                {
                    events.push(if notice.gone { LinkEvent::Gone(link) } else { LinkEvent::Present(link) });
                }
            })?;
            match received {
                Received::Nothing => break,
                Received::Some => {}
                Received::Overrun => events.push(LinkEvent::Lost),
            }
        }
        Ok(events)
    }
}

impl AsFd for Watch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Checks the name of an interface.
///
/// # Errors
/// [`HostError::InterfaceName`].
pub fn checked(name: &str) -> Result<&str, HostError> {
    let good = (1..=NAME_BYTES_MAX).contains(&name.len())
        && !matches!(name, "." | "..")
        && !name.contains(['/', ':', '\0'])
        && !name.chars().any(char::is_whitespace);
    if good { Ok(name) } else { Err(HostError::InterfaceName(name.to_owned())) }
}

fn create(what: String) -> Request {
    message(what, libc::RTM_NEWLINK, libc::NLM_F_CREATE | libc::NLM_F_EXCL, 0, 0, 0)
}

/// `ifinfomsg`: family u8, pad u8, type u16, index i32, flags u32, change u32.
fn message(what: String, kind: u16, flags: i32, index: u32, set: u32, mask: u32) -> Request {
    let mut header = [0; 16];
    header[4..8].copy_from_slice(&index.to_ne_bytes());
    header[8..12].copy_from_slice(&set.to_ne_bytes());
    header[12..16].copy_from_slice(&mask.to_ne_bytes());
    Request::new(what, kind, flags, &header)
}

fn link(message: Message<'_>) -> Option<Link> {
    match message.notice()?.object {
        Object::Link(link) => Some(link),
        _ => None,
    }
}
