//! Parses server-sent events.
//!
//! Source: WHATWG HTML §9.2.6 (interpreting an event stream), as far as the daemon uses it.

use std::time::Duration;

use super::{ByteStream, ClientError};
use crate::api::Event;

/// Maximum bytes of one event.
const EVENT_BYTES_MAX: usize = 1 << 20;

/// Events as they happen. The iterator blocks; it ends when the daemon ends the stream, or after an error. A new
/// stream can continue from [`Self::last_sequence`].
pub struct EventStream {
    bytes: ByteStream,
    lines: Lines,
    last: u64,
    over: bool,
}

impl EventStream {
    pub(super) fn new(bytes: ByteStream, since: u64) -> Self {
        Self { bytes, lines: Lines::default(), last: since, over: false }
    }

    /// Number of the last event received.
    #[must_use]
    pub fn last_sequence(&self) -> u64 {
        self.last
    }

    /// Whether the stream has ended, by the daemon or by an error.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.over
    }

    /// The next event, or `None` if none came in this time or the stream has ended.
    ///
    /// # Errors
    /// `Connection`, `Timeout` or `Answer`.
    pub fn wait(&mut self, at_most: Duration) -> Result<Option<Event>, ClientError> {
        self.next_within(Some(at_most))
    }

    fn next_within(&mut self, wait: Option<Duration>) -> Result<Option<Event>, ClientError> {
        loop {
            if let Some(data) = self.lines.event() {
                let event: Event = serde_json::from_str(&data).map_err(|error| self.end(error))?;
                self.last = event.sequence;
                return Ok(Some(event));
            }
            if self.over {
                return Ok(None);
            }
            match self.bytes.piece(wait) {
                Ok(None) => return Ok(None),
                Ok(Some(piece)) if piece.is_empty() => self.over = true,
                Ok(Some(piece)) if self.lines.add(&piece) => {}
                Ok(Some(_)) => return Err(self.end("an event is too long")),
                Err(error) => {
                    self.over = true;
                    return Err(error);
                }
            }
        }
    }

    fn end(&mut self, error: impl std::fmt::Display) -> ClientError {
        self.over = true;
        self.bytes.unexpected(error)
    }
}

impl Iterator for EventStream {
    type Item = Result<Event, ClientError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_within(None).transpose()
    }
}

/// Bytes received and not yet returned as events.
#[derive(Default)]
struct Lines {
    bytes: Vec<u8>,
    /// Bytes at the front that have been processed.
    done: usize,
}

impl Lines {
    /// Adds bytes; false if an event is too long.
    fn add(&mut self, piece: &[u8]) -> bool {
        self.bytes.drain(..self.done);
        self.done = 0;
        self.bytes.extend_from_slice(piece);
        self.bytes.len() <= EVENT_BYTES_MAX
    }

    /// The data of the next complete event; comments and events without data are skipped.
    fn event(&mut self) -> Option<String> {
        loop {
            let rest = &self.bytes[self.done..];
            let end = rest.windows(2).position(|pair| pair == b"\n\n")?;
            let block = String::from_utf8_lossy(&rest[..end]).into_owned();
            self.done += end + 2;
            let data: Vec<&str> = block
                .lines()
                .filter_map(|line| line.strip_prefix("data:"))
                .map(|data| data.strip_prefix(' ').unwrap_or(data))
                .collect();
            if !data.is_empty() {
                return Some(data.join("\n"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_out_whole_however_the_bytes_come() {
        let stream =
            b": hello\n\nid: 1\nevent: started\ndata: {\"a\":\ndata: 1}\n\n:\n\ndata:x\n\ndata: part";
        for size in 1..stream.len() {
            let (mut lines, mut seen) = (Lines::default(), Vec::new());
            for piece in stream.chunks(size) {
                assert!(lines.add(piece));
                seen.extend(std::iter::from_fn(|| lines.event()));
            }
            assert_eq!(seen, ["{\"a\":\n1}", "x"], "{size} bytes at a time");
        }
        assert!(!Lines::default().add(&vec![b'a'; EVENT_BYTES_MAX + 1]));
    }
}
