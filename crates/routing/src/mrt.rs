//! Reads routes from MRT table dumps (RFC 6396 §4.3, TABLE_DUMP_V2).
//!
//! The next hop of a prefix is that of the first entry in its record that has one. In the dump of a router, the first
//! entry is the router's own choice; the dump of a collector mixes peers, and the first entry is one of them. Unicast
//! IPv4 and IPv6 records are routes, and peer tables are ignored. Records of other families (multicast, and
//! `RIB_GENERIC`, §4.3.3 and RFC 8050 §4) are skipped and counted. Any other record is invalid.

use bgpkit_parser::error::ParserError;
use bgpkit_parser::models::{
    EntryType, MrtMessage, MrtRecord, RibAfiEntries, TableDumpV2Message, TableDumpV2Type,
};
use bgpkit_parser::{ParserErrorWithBytes, RawMrtRecord, chunk_mrt_record};
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

/// RIB_GENERIC (RFC 6396 §4.3.3) and RIB_GENERIC_ADDPATH (RFC 8050 §4.2).
const GENERIC: [u16; 2] = [6, 12];
/// Sequence number, AFI, SAFI.
const GENERIC_HEAD_BYTES: usize = 7;
/// SAFIs whose NLRI consists of a length in bits and as many bits, including labels and distinguishers: unicast,
/// multicast, labelled, VPN, multicast VPN (RFC 4760 §5, RFC 8277 §2, RFC 4364 §4.3.4).
const PREFIX_SAFIS: [u8; 5] = [1, 2, 4, 128, 129];

/// Adds the routes of a dump to `routes`, and counts records of other families there. Returns the number of invalid records
/// skipped.
pub(crate) fn load(mut source: Source, options: &Options, routes: &mut Routes) -> Result<u64, RoutingError> {
    let path = source.path().to_owned();
    let mut number = 0;
    let mut skipped = 0;
    loop {
        number += 1;
        let bad =
            |found| RoutingError::BadRecord { path: path.clone(), record: number, found, expected: EXPECTED };
        let (result, is_end) = match next_record(&mut source) {
            Ok(Next::Record(record)) => (one_record(*record, routes, &path, number, options), false),
            Ok(Next::OtherFamily) => {
                routes.passed_over += 1;
                continue;
            }
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

/// Kind of the next record.
enum Next {
    Record(Box<MrtRecord>),
    /// A complete RIB_GENERIC, which the library does not support.
    OtherFamily,
}

fn next_record(source: &mut Source) -> Result<Next, ParserErrorWithBytes> {
    let raw = chunk_mrt_record(&mut source.reader)?;
    let RawMrtRecord { common_header, message_bytes, .. } = &raw;
    let subtype = common_header.entry_subtype;
    if common_header.entry_type == EntryType::TABLE_DUMP_V2 && GENERIC.contains(&subtype) {
        let with_path_ids = subtype == GENERIC[1];
        return if is_generic(message_bytes, with_path_ids) {
            Ok(Next::OtherFamily)
        } else {
            Err(ParserError::TruncatedMsg("a RIB_GENERIC record that is not whole".to_owned()).into())
        };
    }
    Ok(Next::Record(Box::new(raw.parse()?)))
}

/// Whether these bytes are the body of a RIB_GENERIC. If the form of its NLRI is known, all of it is checked; for
/// other families only the head is checked, as RFC 6396 §4.3.3 specifies.
fn is_generic(body: &[u8], with_path_ids: bool) -> bool {
    let Some(([_, _, _, _, _, _, safi], rest)) = body.split_first_chunk::<GENERIC_HEAD_BYTES>() else {
        return false;
    };
    if !PREFIX_SAFIS.contains(safi) {
        // An NLRI, and how many entries follow.
        return rest.len() > size_of::<u16>();
    }
    let Some((bits, rest)) = rest.split_first() else { return false };
    let Some((count, mut rest)) =
        rest.get(usize::from(*bits).div_ceil(8)..).and_then(|rest| rest.split_first_chunk::<2>())
    else {
        return false;
    };
    // Peer, time, path id, length of attributes, attributes.
    let before = if with_path_ids { 10 } else { 6 };
    for _ in 0..u16::from_be_bytes(*count) {
        let Some((length, attributes)) = rest.get(before..).and_then(|rest| rest.split_first_chunk::<2>())
        else {
            return false;
        };
        let Some(next) = attributes.get(usize::from(u16::from_be_bytes(*length))..) else { return false };
        rest = next;
    }
    rest.is_empty()
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
        routes.passed_over += 1;
        return Ok(());
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
