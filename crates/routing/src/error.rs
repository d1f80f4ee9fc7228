//! Errors in files of routes, updates or queries. All are the caller's fault except `Read`.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use crate::{DECOMPRESSED_BYTES_MAX, HOPS_MAX, ROUTES_MAX};

/// Why a file was rejected.
#[derive(Debug, Error)]
pub enum RoutingError {
    /// The file cannot be opened or read.
    #[error("{}: cannot be read: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Message of the operating system.
        source: io::Error,
    },
    /// The compressed data is damaged or truncated.
    #[error("{}: found damaged or truncated compressed data ({reason}), expected a whole {format} file",
        path.display())]
    Compressed {
        /// The file.
        path: PathBuf,
        /// `gzip` or `xz`.
        format: &'static str,
        /// Message of the decompressor.
        reason: String,
    },
    /// The decompressed file exceeds the limit.
    #[error(
        "{}: larger than DECOMPRESSED_BYTES_MAX = {DECOMPRESSED_BYTES_MAX} bytes when decompressed; split it",
        path.display()
    )]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
    /// The file has too many routes.
    #[error("{}:{line}: more than ROUTES_MAX = {ROUTES_MAX} routes; split the file", path.display())]
    TooManyRoutes {
        /// The file.
        path: PathBuf,
        /// Line of the first route beyond the limit.
        line: u64,
    },
    /// The file has more different next hops than there are next-hop indices.
    #[error(
        "{}:{line}: found next hop '{token}', expected at most HOPS_MAX = {HOPS_MAX} different ones a network",
        path.display()
    )]
    TooManyHops {
        /// The file.
        path: PathBuf,
        /// Line (or MRT record).
        line: u64,
        /// The first next hop beyond the limit.
        token: String,
    },
    /// A line does not have the expected format.
    #[error("{}:{line}: found {found}, expected {expected}", path.display())]
    BadLine {
        /// The file.
        path: PathBuf,
        /// Line, counted from 1.
        line: u64,
        /// The text found.
        found: String,
        /// The expected text.
        expected: String,
    },
    /// An MRT record is damaged or of an unsupported type.
    #[error("{}: MRT record {record}: found {found}, expected {expected}", path.display())]
    BadRecord {
        /// The file.
        path: PathBuf,
        /// Record, counted from 1.
        record: u64,
        /// The record found.
        found: String,
        /// The expected record.
        expected: &'static str,
    },
}
