//! Reads the lines of a text file one by one, without blank lines and comments, and reports invalid ones.

use crate::source::Source;
use crate::{Options, RoutingError};

/// Longest line in bytes; a longer one is invalid.
pub const LINE_BYTES_MAX: usize = 4096;

/// Most characters of an invalid line in an error message.
const QUOTE_CHARS_MAX: usize = 60;

/// What is wrong with a line.
pub(crate) enum Fault {
    /// The line is invalid; it can be skipped.
    Bad { found: String, expected: String },
    /// A limit was reached; reading must stop.
    Fatal(RoutingError),
}

impl Fault {
    pub(crate) fn bad(found: impl Into<String>, expected: impl Into<String>) -> Self {
        Self::Bad { found: found.into(), expected: expected.into() }
    }
}

/// `text` in quotes, truncated if long, with control characters escaped.
pub(crate) fn quote(text: &str) -> String {
    let mut out = String::from("'");
    let mut chars = text.chars();
    for c in chars.by_ref().take(QUOTE_CHARS_MAX) {
        if c.is_control() { out.extend(c.escape_default()) } else { out.push(c) }
    }
    out.push_str(if chars.next().is_some() { "…'" } else { "'" });
    out
}

/// Passes every line that is not blank to `take`, with its number (from 1). Returns the number of skipped
/// lines.
pub(crate) fn each_line(
    mut source: Source,
    options: &Options,
    mut take: impl FnMut(&str, u64) -> Result<(), Fault>,
) -> Result<u64, RoutingError> {
    let mut buffer = Vec::with_capacity(LINE_BYTES_MAX);
    let mut number = 0;
    let mut skipped = 0;
    loop {
        let len = source.line(&mut buffer, LINE_BYTES_MAX).map_err(|error| source.error(error))?;
        if len == 0 {
            return Ok(skipped);
        }
        number += 1;
        let result = if len > LINE_BYTES_MAX {
            Err(Fault::bad(
                format!("a line of {len} bytes"),
                format!("at most LINE_BYTES_MAX = {LINE_BYTES_MAX} bytes"),
            ))
        } else {
            one_line(&buffer, number, &mut take)
        };
        match result {
            Ok(()) => {}
            Err(Fault::Bad { .. }) if options.skip_bad => skipped += 1,
            Err(Fault::Bad { found, expected }) => {
                let path = source.path().to_owned();
                return Err(RoutingError::BadLine { path, line: number, found, expected });
            }
            Err(Fault::Fatal(error)) => return Err(error),
        }
    }
}

fn one_line(
    bytes: &[u8],
    number: u64,
    take: &mut impl FnMut(&str, u64) -> Result<(), Fault>,
) -> Result<(), Fault> {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return Err(Fault::bad(quote(&String::from_utf8_lossy(bytes)), "UTF-8 text"));
    };
    let text = if number == 1 { text.strip_prefix('\u{feff}').unwrap_or(text) } else { text };
    let text = text.trim_ascii();
    if text.is_empty() || text.starts_with('#') {
        return Ok(());
    }
    if text.contains('\0') {
        return Err(Fault::bad(quote(text), "text without NUL bytes"));
    }
    take(text, number)
}
