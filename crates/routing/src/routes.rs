//! Route files: lines with `PREFIX [NEXTHOP]`, or an MRT table dump.
//!
//! Text: columns are separated by whitespace. The second column is the next hop, any token; further columns
//! are ignored (dumps of routers have an interface there). `#` starts a comment line. A line without a next
//! hop has the empty token. If a prefix occurs several times, the last line wins.

use std::net::IpAddr;
use std::path::Path;

use hue_tables::{Key, NextHop, Prefix, Prefix4, Prefix6};

use crate::source::Source;
use crate::text::{Fault, each_line, quote};
use crate::{AnyPrefix, HopNames, Options, RoutingError, mrt};

/// Most routes in a file, for both address families together.
pub const ROUTES_MAX: usize = 1 << 24;

/// A network's routes, in ascending order and without duplicate prefixes.
#[derive(Clone, Default, Debug)]
pub struct Routes {
    /// IPv4 routes, sorted by prefix.
    pub v4: Vec<(Prefix4, NextHop)>,
    /// IPv6 routes, sorted by prefix.
    pub v6: Vec<(Prefix6, NextHop)>,
    /// Names of the next hops.
    pub hops: HopNames,
    /// Number of skipped lines or records.
    pub skipped: u64,
    /// Valid records of an MRT dump without unicast routes: records of other families.
    pub passed_over: u64,
}

impl Routes {
    /// Number of routes of both address families.
    #[must_use]
    pub fn len(&self) -> usize {
        self.v4.len() + self.v6.len()
    }

    /// Whether there are no routes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.v4.is_empty() && self.v6.is_empty()
    }

    /// The longest prefix that contains `address`, and its next hop. A linear search, independent of any
    /// table.
    #[must_use]
    pub fn longest(&self, address: IpAddr) -> Option<(AnyPrefix, NextHop)> {
        match address {
            IpAddr::V4(ip) => {
                longest(&self.v4, ip.to_bits()).map(|(prefix, hop)| (AnyPrefix::V4(prefix), hop))
            }
            IpAddr::V6(ip) => {
                longest(&self.v6, ip.to_bits()).map(|(prefix, hop)| (AnyPrefix::V6(prefix), hop))
            }
        }
    }

    pub(crate) fn push(&mut self, prefix: AnyPrefix, hop: NextHop) {
        match prefix {
            AnyPrefix::V4(prefix) => self.v4.push((prefix, hop)),
            AnyPrefix::V6(prefix) => self.v6.push((prefix, hop)),
        }
    }
}

/// Reads a route file; `-` is standard input.
///
/// # Errors
/// [`RoutingError`]; for invalid lines only if `options.skip_bad` is off.
pub fn load_routes(path: &Path, options: &Options) -> Result<Routes, RoutingError> {
    let source = Source::open(path)?;
    let mut routes = Routes::default();
    routes.skipped = if mrt::is_mrt(&source.head) {
        mrt::load(source, options, &mut routes)?
    } else {
        each_line(source, options, |line, number| {
            let (prefix, token) = split_route(line)?;
            add(&mut routes, prefix, token, path, number, options)
        })?
    };
    last_wins(&mut routes.v4);
    last_wins(&mut routes.v6);
    Ok(routes)
}

/// Splits a line `PREFIX [NEXTHOP] …`.
pub(crate) fn split_route(line: &str) -> Result<(AnyPrefix, &str), Fault> {
    let mut columns = line.split_ascii_whitespace();
    let text = columns.next().unwrap_or_default();
    let prefix = AnyPrefix::parse(text)
        .map_err(|error| Fault::bad(quote(line), format!("PREFIX [NEXTHOP] ({error})")))?;
    Ok((prefix, columns.next().unwrap_or_default()))
}

/// Adds one route, and derives its next hop if the options say so.
pub(crate) fn add(
    routes: &mut Routes,
    prefix: AnyPrefix,
    token: &str,
    path: &Path,
    line: u64,
    options: &Options,
) -> Result<(), Fault> {
    if routes.len() >= ROUTES_MAX {
        return Err(Fault::Fatal(RoutingError::TooManyRoutes { path: path.to_owned(), line }));
    }
    let hop = hop_of(&mut routes.hops, prefix, token, path, line, options)?;
    routes.push(prefix, hop);
    Ok(())
}

/// The index of a route's next hop.
pub(crate) fn hop_of(
    hops: &mut HopNames,
    prefix: AnyPrefix,
    token: &str,
    path: &Path,
    line: u64,
    options: &Options,
) -> Result<NextHop, Fault> {
    let hop = match options.derive_hops {
        Some(count) if token.is_empty() => {
            let bits = match prefix {
                AnyPrefix::V4(prefix) => prefix.addr().to_bits(),
                AnyPrefix::V6(prefix) => prefix.addr().to_bits(),
            };
            hops.intern(&HopNames::derived(bits, count).to_string())
        }
        _ => hops.intern(token),
    };
    hop.ok_or_else(|| {
        Fault::Fatal(RoutingError::TooManyHops { path: path.to_owned(), line, token: token.to_owned() })
    })
}

/// Tries every length, from long to short, in the sorted routes.
fn longest<K: Key>(routes: &[(Prefix<K>, NextHop)], key: K) -> Option<(Prefix<K>, NextHop)> {
    (0..=K::BITS).rev().find_map(|len| {
        let prefix = Prefix::containing(key, len);
        let at = routes.binary_search_by_key(&prefix, |(prefix, _)| *prefix).ok()?;
        routes.get(at).copied()
    })
}

/// Sorts by prefix, and keeps the last of several routes with the same prefix.
fn last_wins<K: Key>(routes: &mut Vec<(Prefix<K>, NextHop)>) {
    routes.sort_by_key(|(prefix, _)| *prefix); // stable: equal prefixes stay in the order of their lines
    routes.dedup_by(|later, kept| {
        let same = later.0 == kept.0;
        if same {
            *kept = *later;
        }
        same
    });
}
