//! Query files: lines with `NAME ADDRESS`.

use std::net::IpAddr;
use std::path::Path;

use crate::source::Source;
use crate::text::{Fault, each_line, quote};
use crate::{Options, RoutingError};

/// A lookup in a table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Query {
    /// The network, as the caller's index.
    pub network: usize,
    /// The destination.
    pub address: IpAddr,
}

/// Reads a query file. `names` are the networks, in the order of the returned indices. Also returns the
/// number of skipped lines.
///
/// # Errors
/// [`RoutingError`]; for invalid lines (including unknown names) only if `options.skip_bad` is off.
pub fn load_queries(
    path: &Path,
    names: &[&str],
    options: &Options,
) -> Result<(Vec<Query>, u64), RoutingError> {
    let source = Source::open(path)?;
    let index: std::collections::HashMap<&str, usize> =
        names.iter().enumerate().map(|(index, name)| (*name, index)).collect();
    let mut queries = Vec::new();
    let skipped = each_line(source, options, |line, _| {
        let mut columns = line.split_ascii_whitespace();
        let (Some(name), Some(address), None) = (columns.next(), columns.next(), columns.next()) else {
            return Err(Fault::bad(quote(line), "NAME ADDRESS"));
        };
        let network = *index.get(name).ok_or_else(|| {
            Fault::bad(format!("network {}", quote(name)), format!("one of: {}", names.join(", ")))
        })?;
        let address = address
            .parse()
            .map_err(|_| Fault::bad(quote(address), "an IPv4 or IPv6 address (NAME ADDRESS)"))?;
        queries.push(Query { network, address });
        Ok(())
    })?;
    Ok((queries, skipped))
}
