//! Update files: lines with `A PREFIX [NEXTHOP]` (announce) and `W PREFIX` (withdraw), in chronological
//! order.

use std::path::Path;

use hue_tables::NextHop;

use crate::routes::{ROUTES_MAX, hop_of, split_route};
use crate::source::Source;
use crate::text::{Fault, each_line, quote};
use crate::{AnyPrefix, HopNames, Options, RoutingError};

/// One change of a network's routes: `Some` announces, `None` withdraws.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Update {
    /// Destination of the route.
    pub prefix: AnyPrefix,
    /// New next hop.
    pub hop: Option<NextHop>,
}

/// An update file.
#[derive(Clone, Default, Debug)]
pub struct Updates {
    /// The changes, in order.
    pub list: Vec<Update>,
    /// Number of skipped lines.
    pub skipped: u64,
}

/// Reads an update file. `hops` are the next hops of the network that the changes apply to. An announcement
/// without a next hop has the empty token (or a derived one), as in a route file.
///
/// # Errors
/// [`RoutingError`]; for invalid lines only if `options.skip_bad` is off.
pub fn load_updates(path: &Path, hops: &mut HopNames, options: &Options) -> Result<Updates, RoutingError> {
    let source = Source::open(path)?;
    let mut list = Vec::new();
    let skipped = each_line(source, options, |line, number| {
        if list.len() >= ROUTES_MAX {
            return Err(Fault::Fatal(RoutingError::TooManyRoutes { path: path.to_owned(), line: number }));
        }
        let bad = || Fault::bad(quote(line), "A PREFIX [NEXTHOP] or W PREFIX");
        let (verb, rest) = line.split_once(|c: char| c.is_ascii_whitespace()).ok_or_else(bad)?;
        let announce = match verb {
            "A" => true,
            "W" => false,
            _ => return Err(bad()),
        };
        let (prefix, token) = split_route(rest).map_err(|fault| match fault {
            Fault::Bad { expected, .. } => Fault::bad(quote(line), format!("{verb} {expected}")),
            fatal @ Fault::Fatal(_) => fatal,
        })?;
        let hop = if announce { Some(hop_of(hops, prefix, token, path, number, options)?) } else { None };
        list.push(Update { prefix, hop });
        Ok(())
    })?;
    Ok(Updates { list, skipped })
}
