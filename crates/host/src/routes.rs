//! Routes of a namespace, of IPv4 and IPv6.
//!
//! Routes installed by hueplane carry the protocol number [`protocol::OURS`], those of a routing daemon of its own the
//! number of that ([`Origin`]); no other route is ever changed or removed. Routes of documents have the best metric (0; IPv6
//! has no 0, so 1): they have priority over those of routing daemons.

use std::net::IpAddr;

use hue_tables::AnyPrefix;

pub use crate::netlink::{NextHop, Route, RouteKind, Scope};

use crate::error::HostError;
use crate::netlink::{self, Dump, Failure, Object, Request, Socket, protocol};

/// The main table: `RT_TABLE_MAIN`.
pub const MAIN: u32 = libc::RT_TABLE_MAIN as u32;

/// The kernel's table of the routes of a network's slice: slice 0 has the main table, slice *i* table 100 + *i*.
#[must_use]
pub const fn table_of(slice: u8) -> u32 {
    if slice == 0 { MAIN } else { SLICES + slice as u32 }
}

/// See [`table_of`].
const SLICES: u32 = 100;
/// Most slices of a network whose routes hueplane installs.
const SLICES_MAX: u32 = 16;

/// Whether a table is that of a slice.
const fn is_of_slice(table: u32) -> bool {
    table == MAIN || table > SLICES && table < SLICES + SLICES_MAX
}

/// Metric of hueplane's IPv6 routes; for the kernel, 0 means the default (1024).
const METRIC6: u32 = 1;

/// `RTNH_F_ONLINK`.
const ONLINK: u32 = 4;

/// Whose routes: each program changes only its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Origin {
    /// The number of the program.
    pub protocol: u8,
    /// The metric of its IPv4 routes.
    pub metric: u32,
}

impl Origin {
    /// Routes of documents.
    pub const DOCUMENTS: Self = Self { protocol: protocol::OURS, metric: 0 };
    /// Routes of `hueplane pwospf`. Those of other routing daemons usually have lower metrics, and win.
    pub const PWOSPF: Self = Self { protocol: protocol::PWOSPF, metric: 120 };
}

/// A static route.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Wanted {
    /// The table, see [`table_of`].
    pub table: u32,
    /// Destination.
    pub prefix: AnyPrefix,
    /// The gateway; `None` if destinations are on the link.
    pub via: Option<IpAddr>,
    /// Interface, on which the gateway is then considered on the link. With 0 and a gateway, the kernel finds
    /// the link.
    pub link: u32,
}

/// A static route with several next hops.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Multipath {
    /// The table, see [`table_of`].
    pub table: u32,
    /// Destination.
    pub prefix: AnyPrefix,
    /// Its next hops, sorted; at least two, with different gateways.
    pub ways: Vec<Way>,
}

/// A next hop of a static route with several.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Way {
    /// The gateway.
    pub via: IpAddr,
    /// Interface, on which the gateway is considered on the link.
    pub link: u32,
    /// Weight, 1 to 256.
    pub weight: u16,
}

impl Multipath {
    /// The static route that a kernel route with several next hops is; `None` if it has fewer, or one without a gateway.
    #[must_use]
    pub fn of(route: &Route) -> Option<Self> {
        let way = |hop: &NextHop| Some(Way { via: hop.via?, link: hop.link, weight: hop.weight });
        let mut ways = route.hops.iter().map(way).collect::<Option<Vec<_>>>()?;
        ways.sort_unstable();
        (ways.len() > 1).then_some(Self { table: route.table, prefix: route.prefix, ways })
    }
}

/// All routes of all tables in the socket's namespace.
///
/// # Errors
/// If the system call fails.
pub fn list(socket: &mut Socket) -> Result<Vec<Route>, HostError> {
    select(socket, |_| true)
}

/// hueplane's routes in the tables of slices, of which the main table is one.
///
/// # Errors
/// If the system call fails.
pub fn ours(socket: &mut Socket) -> Result<Vec<Route>, HostError> {
    select(socket, |route| route.protocol == Origin::DOCUMENTS.protocol && is_of_slice(route.table))
}

/// The routes of an origin in the main table.
///
/// # Errors
/// If the system call fails.
pub fn of(socket: &mut Socket, origin: Origin) -> Result<Vec<Route>, HostError> {
    select(socket, |route| route.protocol == origin.protocol && route.table == MAIN)
}

fn select(socket: &mut Socket, wanted: impl Fn(&Route) -> bool) -> Result<Vec<Route>, HostError> {
    socket.dump_all([Dump::Routes4, Dump::Routes6], |message| match message.notice()?.object {
        Object::Route(route) if !route.cloned && wanted(&route) => Some(route),
        _ => None,
    })
}

/// Adds routes. Returns those that the kernel rejected; `EEXIST` means that a foreign route has the same
/// prefix.
///
/// # Errors
/// If the socket fails.
pub fn add<'a>(
    socket: &mut Socket,
    routes: impl IntoIterator<Item = &'a Wanted>,
) -> Result<Vec<Failure>, HostError> {
    add_of(socket, Origin::DOCUMENTS, routes)
}

/// As [`add`], for another origin.
///
/// # Errors
/// If the socket fails.
pub fn add_of<'a>(
    socket: &mut Socket,
    origin: Origin,
    routes: impl IntoIterator<Item = &'a Wanted>,
) -> Result<Vec<Failure>, HostError> {
    let flags = libc::NLM_F_CREATE | libc::NLM_F_EXCL;
    let add = |route| message("add", libc::RTM_NEWROUTE, flags, origin, route);
    socket.execute_all(routes.into_iter().map(add))
}

/// Gives routes that exist another next hop, without a moment between in which there is none. Only for routes of the
/// origin: the kernel replaces the one with the same prefix and metric. Returns those that the kernel rejected.
///
/// # Errors
/// If the socket fails.
pub fn replace_of<'a>(
    socket: &mut Socket,
    origin: Origin,
    routes: impl IntoIterator<Item = &'a Wanted>,
) -> Result<Vec<Failure>, HostError> {
    let flags = libc::NLM_F_CREATE | libc::NLM_F_REPLACE;
    let replace = |route| message("replace", libc::RTM_NEWROUTE, flags, origin, route);
    socket.execute_all(routes.into_iter().map(replace))
}

/// As [`add`], with several next hops.
///
/// # Errors
/// If the socket fails.
pub fn add_multipath<'a>(
    socket: &mut Socket,
    routes: impl IntoIterator<Item = &'a Multipath>,
) -> Result<Vec<Failure>, HostError> {
    let flags = libc::NLM_F_CREATE | libc::NLM_F_EXCL;
    let add = |route| multipath_message("add", libc::RTM_NEWROUTE, flags, route);
    socket.execute_all(routes.into_iter().map(add))
}

/// As [`remove`], of routes with several next hops.
///
/// # Errors
/// If the socket fails.
pub fn remove_multipath<'a>(
    socket: &mut Socket,
    routes: impl IntoIterator<Item = &'a Multipath>,
) -> Result<Vec<Failure>, HostError> {
    let remove = |route| multipath_message("remove", libc::RTM_DELROUTE, 0, route);
    socket.execute_all(routes.into_iter().map(remove))
}

/// Removes hueplane's routes. Returns those that the kernel rejected; `ESRCH` means that it did not exist.
///
/// # Errors
/// If the socket fails.
pub fn remove<'a>(
    socket: &mut Socket,
    routes: impl IntoIterator<Item = &'a Wanted>,
) -> Result<Vec<Failure>, HostError> {
    remove_of(socket, Origin::DOCUMENTS, routes)
}

/// As [`remove`], for another origin.
///
/// # Errors
/// If the socket fails.
pub fn remove_of<'a>(
    socket: &mut Socket,
    origin: Origin,
    routes: impl IntoIterator<Item = &'a Wanted>,
) -> Result<Vec<Failure>, HostError> {
    let remove = |route| message("remove", libc::RTM_DELROUTE, 0, origin, route);
    socket.execute_all(routes.into_iter().map(remove))
}

/// `rtmsg`: family, destination length, source length, tos, table, protocol, scope, type u8, flags u32.
fn message(verb: &str, kind: u16, flags: i32, origin: Origin, route: &Wanted) -> Request {
    let what = match route.via {
        Some(via) => format!("{verb} route to {} via {via}", route.prefix),
        None => format!("{verb} route to {}", route.prefix),
    };
    let scope = if route.via.is_some() { libc::RT_SCOPE_UNIVERSE } else { libc::RT_SCOPE_LINK };
    let onlink = route.via.is_some() && route.link != 0;
    let mut request = begin(what, kind, flags, origin, (route.table, route.prefix, scope, onlink));
    if let Some(via) = route.via {
        request = request.address(libc::RTA_GATEWAY, via);
    }
    if route.link != 0 {
        request = request.u32(libc::RTA_OIF, route.link);
    }
    request
}

/// `rtnexthop`s in `RTA_MULTIPATH`: length u16, flags u8, weight - 1 u8, interface i32, attributes.
fn multipath_message(verb: &str, kind: u16, flags: i32, route: &Multipath) -> Request {
    let gateways: Vec<String> = route.ways.iter().map(|way| way.via.to_string()).collect();
    let what = format!("{verb} route to {} via {}", route.prefix, gateways.join(", "));
    let request = begin(
        what,
        kind,
        flags,
        Origin::DOCUMENTS,
        (route.table, route.prefix, libc::RT_SCOPE_UNIVERSE, false),
    );
    let mut hops = Vec::with_capacity(28 * route.ways.len());
    for way in &route.ways {
        let octets = match way.via {
            IpAddr::V4(via) => via.octets().to_vec(),
            IpAddr::V6(via) => via.octets().to_vec(),
        };
        let attribute = 4 + octets.len() as u16;
        hops.extend((8 + attribute).to_ne_bytes());
        hops.extend([ONLINK as u8, u8::try_from(way.weight.saturating_sub(1)).unwrap_or(u8::MAX)]);
        hops.extend(way.link.to_ne_bytes());
        hops.extend(attribute.to_ne_bytes());
        hops.extend(libc::RTA_GATEWAY.to_ne_bytes());
        hops.extend(octets);
    }
    request.bytes(libc::RTA_MULTIPATH, &hops)
}

/// The beginning of a message about a route: header, destination, metric.
fn begin(
    what: String,
    kind: u16,
    flags: i32,
    origin: Origin,
    (table, prefix, scope, onlink): (u32, AnyPrefix, u8, bool),
) -> Request {
    let mut header = [0; 12];
    header[0] = netlink::family(prefix.addr());
    header[1] = prefix.len();
    // Tables of slices have numbers of a byte.
    header[4] = u8::try_from(table).unwrap_or(libc::RT_TABLE_UNSPEC);
    header[5] = origin.protocol;
    header[6] = scope;
    header[7] = libc::RTN_UNICAST;
    if onlink {
        header[8..].copy_from_slice(&ONLINK.to_ne_bytes());
    }
    let request = Request::new(what, kind, flags, &header).address(libc::RTA_DST, prefix.addr());
    match prefix {
        AnyPrefix::V6(_) => request.u32(libc::RTA_PRIORITY, METRIC6),
        AnyPrefix::V4(_) if origin.metric > 0 => request.u32(libc::RTA_PRIORITY, origin.metric),
        AnyPrefix::V4(_) => request,
    }
}
