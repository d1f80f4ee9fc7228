//! What can be wrong with a file of routes, updates or queries. All are the caller's fault but `Read`.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use crate::{DECOMPRESSED_BYTES_MAX, HOPS_MAX, ROUTES_MAX};

/// Why a file was refused.
#[derive(Debug, Error)]
pub enum RoutingError {
    /// The file cannot be opened or read.
    #[error("{}: cannot be read: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// The compressed data is damaged or cut short.
    #[error("{}: found damaged or truncated compressed data ({reason}), expected a whole {format} file",
        path.display())]
    Compressed {
        /// The file.
        path: PathBuf,
        /// `gzip` or `xz`.
        format: &'static str,
        /// What the decompressor said.
        reason: String,
    },
    /// The file grows beyond the limit when decompressed.
    #[error(
        "{}: larger than DECOMPRESSED_BYTES_MAX = {DECOMPRESSED_BYTES_MAX} bytes when decompressed; split it",
        path.display()
    )]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
    /// More routes than a file may hold.
    #[error("{}:{line}: more than ROUTES_MAX = {ROUTES_MAX} routes; split the file", path.display())]
    TooManyRoutes {
        /// The file.
        path: PathBuf,
        /// The line of the first route too many.
        line: u64,
    },
    /// More different next hops than a next-hop index tells apart.
    #[error(
        "{}:{line}: found next hop '{token}', expected at most HOPS_MAX = {HOPS_MAX} different ones a network",
        path.display()
    )]
    TooManyHops {
        /// The file.
        path: PathBuf,
        /// Line (or MRT record).
        line: u64,
        /// The first one too many.
        token: String,
    },
    /// A line is not what the file's format asks for.
    #[error("{}:{line}: found {found}, expected {expected}", path.display())]
    BadLine {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// What stands there.
        found: String,
        /// What should stand there.
        expected: String,
    },
    /// An MRT record is damaged or of a kind that holds no table.
    #[error("{}: MRT record {record}: found {found}, expected {expected}", path.display())]
    BadRecord {
        /// The file.
        path: PathBuf,
        /// The record, from 1.
        record: u64,
        /// What it is.
        found: String,
        /// What it should be.
        expected: &'static str,
    },
}
