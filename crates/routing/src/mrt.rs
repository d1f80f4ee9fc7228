//! Reads routes from MRT table dumps (RFC 6396 §4.3, TABLE_DUMP_V2).
//!
//! The next hop of a prefix is that of the first entry in its record that has one. In the dump of a router,
//! the first entry is the router's own choice; the dump of a collector mixes peers, and this takes one of
//! them. Unicast IPv4 and IPv6 records are routes, peer tables are ignored, and any other record is invalid.

use bgpkit_parser::BgpkitParser;
use bgpkit_parser::error::ParserError;
use bgpkit_parser::models::{MrtMessage, MrtRecord, RibAfiEntries, TableDumpV2Message, TableDumpV2Type};
use std::io;
use std::net::IpAddr;

use hue_tables::Prefix;

use crate::routes::{Routes, add};
use crate::source::Source;
use crate::text::Fault;
use crate::{AnyPrefix, Options, RoutingError};

const EXPECTED: &str = "a TABLE_DUMP_V2 record (RFC 6396)";

/// Largest MRT type in use. Text files never have such bytes at this position.
const TYPE_MAX: u8 = 64;

/// Whether a file that begins with `head` is MRT: a type below [`TYPE_MAX`]. Text has no NUL byte at this
/// position.
pub(crate) fn is_mrt(head: &[u8]) -> bool {
    matches!(head, [_, _, _, _, 0, kind, 0, _, ..] if *kind <= TYPE_MAX)
}

/// Adds the routes of a dump to `routes`. Returns the number of skipped records.
pub(crate) fn load(source: Source, options: &Options, routes: &mut Routes) -> Result<u64, RoutingError> {
    let path = source.path().to_owned();
    let mut parser = BgpkitParser::from_reader(source.reader).disable_warnings();
    let mut number = 0;
    let mut skipped = 0;
    loop {
        number += 1;
        let bad =
            |found| RoutingError::BadRecord { path: path.clone(), record: number, found, expected: EXPECTED };
        let (result, is_end) = match parser.next_record() {
            Ok(record) => (one_record(record, routes, &path, number, options), false),
            Err(error) => match error.error {
                ParserError::EofExpected => return Ok(skipped),
                ParserError::IoError(error) | ParserError::EofError(error)
                    if error.kind() == io::ErrorKind::FileTooLarge =>
                {
                    return Err(RoutingError::TooLarge { path });
                }
                // The parser no longer knows where records begin, so the rest is unusable.
                ParserError::IoError(error) | ParserError::EofError(error) => {
                    (Err(Fault::bad(format!("damage ({error})"), "")), true)
                }
                error @ ParserError::OversizedRecord { .. } => {
                    (Err(Fault::bad(format!("damage ({error})"), "")), true)
                }
                error => (Err(Fault::bad(format!("damage ({error})"), "")), false),
            },
        };
        match result {
            Ok(()) => {}
            Err(Fault::Fatal(error)) => return Err(error),
            Err(Fault::Bad { .. }) if options.skip_bad => skipped += 1,
            Err(Fault::Bad { found, .. }) => return Err(bad(found)),
        }
        if is_end {
            return Ok(skipped);
        }
    }
}

fn one_record(
    record: MrtRecord,
    routes: &mut Routes,
    path: &std::path::Path,
    number: u64,
    options: &Options,
) -> Result<(), Fault> {
    let entries = match record.message {
        MrtMessage::TableDumpV2Message(TableDumpV2Message::RibAfi(entries)) => entries,
        MrtMessage::TableDumpV2Message(
            TableDumpV2Message::PeerIndexTable(_) | TableDumpV2Message::GeoPeerTable(_),
        ) => return Ok(()),
        _ => return Err(Fault::bad(format!("type {:?}", record.common_header.entry_type), "")),
    };
    let unicast = matches!(
        entries.rib_type,
        TableDumpV2Type::RibIpv4Unicast
            | TableDumpV2Type::RibIpv6Unicast
            | TableDumpV2Type::RibIpv4UnicastAddPath
            | TableDumpV2Type::RibIpv6UnicastAddPath
    );
    if !unicast {
        return Err(Fault::bad(format!("{:?}", entries.rib_type), ""));
    }
    let prefix = entries.prefix.prefix;
    let network = match prefix.network() {
        IpAddr::V4(ip) => AnyPrefix::V4(Prefix::containing(ip.to_bits(), prefix.prefix_len())),
        IpAddr::V6(ip) => AnyPrefix::V6(Prefix::containing(ip.to_bits(), prefix.prefix_len())),
    };
    let Some(hop) = first_hop(&entries) else {
        return Err(Fault::bad(format!("{network} without a next hop"), ""));
    };
    add(routes, network, &hop.to_string(), path, number, options)
}

fn first_hop(entries: &RibAfiEntries) -> Option<IpAddr> {
    entries.rib_entries.iter().find_map(|entry| {
        entry.attributes.next_hop().or_else(|| {
            entry.attributes.get_reachable_nlri().and_then(|nlri| nlri.next_hop.map(|hop| hop.addr()))
        })
    })
}
